/* cache_cmds - cache status, get, set, flush, drop.
 *
 * Contract: see commands.h. A cache answers "status" with "key=value" lines under the names of the
 * JSON fields, nested ones dotted. Its statistics in the segment have the same names, and are shown
 * while no process serves the cache.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/cli.h"
#include "peers/common/say/dirty.h"
#include "peers/common/say/kv.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/stack_save.h"
#include "tools/xseg/text/cache_text.h"
#include "tools/xseg/base/stack_keys.h"
#include "tools/xseg/text/cache_volume.h"
#include "tools/xseg/base/out.h"

/* +PREFIX is a store of values. */
static int check_volume(const char *text, struct xseg_error *err)
{
	return cli_check_name(text + (*text == '+'), err);
}

#define AT(field) offsetof(struct cache_opts, field)
/* clang-format off */
#define CACHE_VOLUME_OPTS \
	{ .name = "volume", .kind = OPT_STR, .off = AT(volume), .len = XSEG_NAME_MAX, \
	  .arg = "VOL", .check = check_volume, \
	  .help = "for this volume only; +PREFIX: for the values of the kvd with that prefix" }, \
	{ .name = "volumed", .kind = OPT_STR, .off = AT(volumed), .len = XSEG_NAME_MAX, \
	  .arg = "NAME", .check = cli_check_name, \
	  .help = "the volume's volumed, if there are several" }
/* clang-format on */

const struct opt cache_volume_table[] = { CACHE_VOLUME_OPTS, { 0 } };
const struct opt cache_set_table[] = {
	CACHE_VOLUME_OPTS,
	{ .name = "save", .kind = OPT_BOOL, .off = AT(save),
	  .help = "write it into the stack file, too" },
	{ 0 }
};
#undef AT

/* ---- status ------------------------------------------------------------------------------ */

/* What the cache says of itself, or NULL when it does not answer (its process just died). *code:
 * an exit code. */
static json_t *ask_status(struct tool *t, const struct xseg_peer_info *cache, int *code)
{
	json_t *j = NULL;
	struct client *c;
	uint32_t peer;
	int64_t rc;

	*code = client_open(t, &c);
	if (*code)
		return NULL;
	*code = client_find_peer(c, "cached", cache->name, &peer);
	if (!*code) {
		rc = cache_ask_status(c, peer, cache, &j);
		if (rc < 0 && rc != -EHOSTDOWN)
			*code = client_fail(c, rc, NULL, "cache status %s", cache->name);
	}
	client_close(c);
	return j;
}

static int pick_cache(struct tool *t, struct xseg *seg, const struct view_peers *peers,
		      const char *name, const struct xseg_peer_info **found)
{
	bool several = false;

	*found = name ? view_peer_named(peers, name)
		      : view_peer_meant(seg, peers, "cached", &several);
	if (!*found && !name)
		return tool_fail(TOOL_REFUSED,
			"segment %s has no cache; 'xseg peer list' shows its peers", t->segment);
	if (!*found)
		return tool_fail(TOOL_REFUSED,
			"cache %s: segment %s has none of that name; 'xseg peer list' shows its "
			"peers",
			name, t->segment);
	if (strcmp((*found)->kind, "cached"))
		return tool_fail(
			TOOL_USAGE,
			"%s: it is of kind %s, not a cache; 'xseg peer list' shows the kinds", name,
			(*found)->kind);
	if (several)
		return tool_fail(TOOL_USAGE,
			"cache status: segment %s has several caches; name one, as 'xseg peer "
			"list' shows them",
			t->segment);
	return TOOL_DONE;
}

static int show_status(struct tool *t, json_t *j)
{
	int rc;

	if (t->json)
		return out_json(j);
	cache_text_print(j);
	rc = out_done();
	json_decref(j);
	return rc;
}

static int status(struct tool *t, struct xseg *seg, const struct xseg_peer_info *cache)
{
	json_t *j = NULL;
	int rc = TOOL_DONE;

	if (cache->state == XSEG_PEER_LIVE)
		j = ask_status(t, cache, &rc);
	if (!rc && !j)
		j = cache_text_from_stats(seg, cache);
	return rc ? rc : show_status(t, j);
}

int cache_status(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct xseg_peer_info *found;
	struct view_peers peers = { 0 };
	const struct cache_opts *o = opts;
	struct xseg *seg;
	int rc;

	rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);
	if (rc)
		return rc;
	rc = view_peers_need(seg, &peers);
	if (!rc)
		rc = pick_cache(t, seg, &peers, argc ? argv[0] : NULL, &found);
	if (!rc && (o->volume[0] || o->volumed[0]))
		rc = cache_volume_status(t, found->name, o);
	else if (!rc)
		rc = status(t, seg, found);
	view_peers_fini(&peers);
	xseg_detach(seg);
	return rc;
}

/* ---- get and set ------------------------------------------------------------------------- */

static int open_cache(struct tool *t, const char *name, struct client **c, uint32_t *peer)
{
	int rc = client_open(t, c);

	if (rc)
		return rc;
	rc = client_find_peer(*c, "cached", name, peer);
	if (rc)
		client_close(*c);
	return rc;
}

/* Of what has a unit, also the number. */
static void add_number(json_t *j, const char *key, const char *value)
{
	static const struct {
		const char *key, *number;
		int (*parse)(const char *text, uint64_t *out);
	} units[] = {
		{ "memory", "memory_bytes", opt_parse_size },
		{ "min", "min_bytes", opt_parse_size },
		{ "max", "max_bytes", opt_parse_size },
		{ "read_ahead", "read_ahead_bytes", opt_parse_size },
		{ "seq_cutoff", "seq_cutoff_bytes", opt_parse_size },
		{ "dirty_age", "dirty_age_ns", opt_parse_time },
		{ "flush_rate", "flush_rate_bytes", opt_parse_rate },
		{ "dirty_high", "dirty_high_percent", opt_parse_size },
		{ "dirty_low", "dirty_low_percent", opt_parse_size },
	};
	uint64_t number;
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(units[i].key, key) && !units[i].parse(value, &number))
			out_set_int(j, units[i].number, number);
}

/* A plain number, which is one in JSON, too. The others have a unit, or are words. */
static bool is_count(const char *key)
{
	return !strcmp(key, "objects") || !strcmp(key, "requests") || !strcmp(key, "dirty_high") ||
	       !strcmp(key, "dirty_low");
}

/* A key of caches that `cache set` refuses. Without the tables of keys none is. */
static bool is_fixed(const struct stack_keys *keys, const char *key, size_t len)
{
	for (unsigned i = 0; i < keys->nr; i++)
		if (!strcmp(keys->key[i].section, "cached") &&
			strlen(keys->key[i].name) == len && !strncmp(keys->key[i].name, key, len))
			return !stack_key_is_live(&keys->key[i]);
	return false;
}

/* Prints the lines of one of both sorts; returns how many. */
static unsigned print_lines(const struct stack_keys *keys, const char *text, bool fixed,
	const char *title)
{
	unsigned nr = 0;
	size_t len;

	for (; *text; text += len + (text[len] != '\0')) {
		len = strcspn(text, "\n");
		if (is_fixed(keys, text, strcspn(text, "=\n")) != fixed)
			continue;
		if (!nr++ && title)
			printf("%s\n", title);
		printf("%.*s\n", (int)len, text);
	}
	return nr;
}

static json_t *fixed_json(const struct stack_keys *keys)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < keys->nr; i++)
		if (!strcmp(keys->key[i].section, "cached") && !stack_key_is_live(&keys->key[i]))
			json_array_append_new(array, json_string(keys->key[i].name));
	return array;
}

/* Prints the "key=value" lines of c->text, those that cannot be set last. */
static int show_options(const struct tool *t, struct client *c, bool of_volume)
{
	char *cursor = c->text, *key, *value;
	struct stack_keys keys = { .nr = 0 };
	json_t *j;

	if (!of_volume && !stack_keys_load(&keys))
		keys.nr = 0;
	if (!t->json) {
		print_lines(&keys, c->text, false, NULL);
		print_lines(&keys, c->text, true,
			"\n# not by 'cache set': these hold from the cache's next start, by the "
			"stack file");
		stack_keys_drop(&keys);
		return out_done();
	}
	j = json_object();
	if (!of_volume)
		json_object_set_new(j, "fixed", fixed_json(&keys));
	stack_keys_drop(&keys);
	while ((key = kv_next_line(&cursor, &value))) {
		if (is_count(key))
			out_set_int(j, key, strtoull(value ? value : "0", NULL, 10));
		else
			out_set_text(j, key, value ? value : "");
		add_number(j, key, value ? value : "");
	}
	/* a volume's own policy is in force */
	if (of_volume && !json_object_get(j, "policy_in_force"))
		out_set_text(j, "policy_in_force", out_text(j, "policy"));
	return out_json(j);
}

/* id: of a volume, or 0 */
static int64_t ask_get(struct client *c, uint32_t peer, uint32_t id)
{
	if (id)
		return client_ask(c, peer, "volume-get id=%" PRIu32, id);
	return client_ask(c, peer, "get");
}

static int get(struct tool *t, struct client *c, uint32_t peer, uint32_t id, const char *name)
{
	int64_t rc = ask_get(c, peer, id);

	return rc < 0 ? client_fail(c, rc, NULL, "cache get %s", name)
		      : show_options(t, c, id != 0);
}

int cache_get(struct tool *t, const void *opts, int argc, char **argv)
{
	struct client *c;
	uint32_t peer, id;
	int rc;

	(void)argc;
	rc = open_cache(t, argv[0], &c, &peer);
	if (rc)
		return rc;
	rc = cache_volume_id(c, peer, opts, &id);
	if (!rc)
		rc = get(t, c, peer, id, argv[0]);
	client_close(c);
	return rc;
}

static int64_t ask_set(struct client *c, uint32_t peer, uint32_t id, const char *volume,
		       const char *settings)
{
	if (id)
		return client_tell(c, peer, "volume-set id=%" PRIu32 " name=%s%s", id, volume,
				   settings);
	return client_tell(c, peer, "set%s", settings);
}

/* Those of the settings that are a share of the memory, which only a volume has; false: none is. */
static bool shares_of(int argc, char **argv, char *text, size_t size)
{
	struct kv_text t;

	kv_init(&t, text, size);
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "min=", 4) || !strncmp(argv[i], "max=", 4))
			kv_add(&t, " %s", argv[i]);
	return t.used > 0;
}

static void hint_of_set(const struct cache_opts *o, int argc, char **argv, char *hint, size_t size)
{
	bool volume = o->volume[0];
	char shares[64];

	if (!volume && shares_of(argc - 1, argv + 1, shares, sizeof(shares)))
		snprintf(hint, size,
			"only a volume has a share: 'xseg cache set %s --volume VOL%s'",
			argv[0], shares);
	else
		snprintf(hint, size, "'xseg cache get %s%s%s%s%s' shows the keys", argv[0],
			volume ? " --volume " : "", o->volume,
			o->volumed[0] ? " --volumed " : "", o->volumed);
}

/* " KEY=VALUE" of each; "KEY=" of a volume, whose value is the cache's from now on, in words. */
static void print_set(const struct tool *t, const char *cache, const char *volume, char *settings)
{
	char *name, *value, set[2048] = "";
	struct kv_text follows, text;
	char like[256] = "";

	kv_init(&text, set, sizeof(set));
	kv_init(&follows, like, sizeof(like));
	while ((name = kv_next_word(&settings, &value)))
		if (value && *value)
			kv_add(&text, " %s=%s", name, value);
		else
			kv_add(&follows, "%s %s", follows.used ? "," : "", name);
	tool_say(t, "cache %s%s%s:%s%s%s%s%s", cache, *volume ? ", volume " : "", volume,
		text.used ? " set" : "", set, text.used && follows.used ? ";" : "", like,
		!follows.used	    ? ""
		: strchr(like, ',') ? " follow the cache"
				    : " follows the cache");
}

/* argv: the cache, and what is to be set */
static int set(struct tool *t, struct client *c, uint32_t peer, const struct cache_opts *o,
	       int argc, char **argv)
{
	char settings[2048], hint[3 * XSEG_NAME_MAX + 64];
	const char *name = argv[0];
	uint32_t id;
	int code = client_settings(argc - 1, argv + 1, settings, sizeof(settings));
	int64_t rc;

	if (!code)
		code = cache_volume_id(c, peer, o, &id);
	if (code)
		return code;
	rc = ask_set(c, peer, id, o->volume, settings);
	if (rc < 0) {
		hint_of_set(o, argc, argv, hint, sizeof(hint));
		return client_fail(c, rc, hint, "cache set %s", name);
	}
	if (t->json)
		return get(t, c, peer, id, name);
	client_settings_done(c, argc - 1, argv + 1, settings, sizeof(settings));
	print_set(t, name, o->volume, settings);
	return TOOL_DONE;
}

static int set_and_save(struct tool *t, struct client *c, uint32_t peer, const struct cache_opts *o,
	int argc, char **argv)
{
	struct stack_record *record = calloc(1, sizeof(*record));
	char settings[2048];
	int code = record ? stack_save_check(t, c->seg, "cache set --save", record)
			  : tool_fail(TOOL_FAILED, "cache set: no memory; free some");

	if (!code)
		code = set(t, c, peer, o, argc, argv);
	if (!code)
		code = client_settings(argc - 1, argv + 1, settings, sizeof(settings));
	if (!code)
		code = stack_save_write(t, c->seg, "cache set --save", record, argv[0], settings);
	free(record);
	return code;
}

int cache_set(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct cache_opts *o = opts;
	struct client *c;
	uint32_t peer;
	int code;

	if (o->save && *o->volume)
		return tool_fail(TOOL_USAGE,
			"cache set --save: a stack file has no keys of volumes, whose settings the "
			"cache keeps; leave --save out");
	code = open_cache(t, argv[0], &c, &peer);
	if (code)
		return code;
	code = o->save ? set_and_save(t, c, peer, o, argc, argv)
		       : set(t, c, peer, o, argc, argv);
	client_close(c);
	return code;
}

/* ---- flush and drop ---------------------------------------------------------------------- */

/* Off the path, with nothing to write and nobody to write it to. */
static bool is_off(struct client *c, uint32_t peer)
{
	struct xseg_peer_info info;

	return xseg_peer_get_info(c->seg, peer, &info) && info.downstream == XSEG_NONE &&
	       !dirty_bytes_of(c->seg, peer);
}

/* volume: empty for all */
static int show_flushed(const struct tool *t, const char *name, const char *volume)
{
	json_t *j;

	tool_say(t, "cache %s%s%s is flushed", name, *volume ? ", volume " : "", volume);
	if (!t->json)
		return TOOL_DONE;
	j = json_object();
	out_set_text(j, "name", name);
	json_object_set_new(j, "volume", *volume ? json_string(volume) : json_null());
	out_set_text(j, "state", "flushed");
	return out_json(j);
}

int cache_flush(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct cache_opts *o = opts;
	struct client *c;
	uint32_t peer, id;
	int rc;

	(void)argc;
	rc = open_cache(t, argv[0], &c, &peer);
	if (rc)
		return rc;
	rc = cache_volume_id(c, peer, o, &id);
	if (!rc && is_off(c, peer))
		rc = tool_fail(TOOL_REFUSED,
			"cache flush %s: it is off the path and has nothing to write; 'xseg plug' "
			"puts it in",
			argv[0]);
	else if (!rc)
		rc = client_flush(c, peer, id, "cache flush", argv[0]);
	client_close(c);
	return rc ? rc : show_flushed(t, argv[0], o->volume);
}

static int show_dropped(struct tool *t, struct client *c, const char *name)
{
	uint64_t dropped = client_number(c->text, "dropped_bytes");
	char size[OUT_TEXT];
	json_t *j;

	if (t->json) {
		j = json_object();
		out_set_text(j, "name", name);
		out_set_int(j, "dropped_bytes", dropped);
		return out_json(j);
	}
	tool_say(t, "cache %s: %s of clean data dropped", name, out_bytes(dropped, size));
	return TOOL_DONE;
}

int cache_drop(struct tool *t, const void *opts, int argc, char **argv)
{
	struct client *c;
	char hint[128];
	uint32_t peer;
	int64_t rc;
	int code;

	(void)opts;
	(void)argc;
	code = open_cache(t, argv[0], &c, &peer);
	if (code)
		return code;
	rc = client_tell(c, peer, "drop");
	snprintf(hint, sizeof(hint), "flush it first with 'xseg cache flush %s'", argv[0]);
	if (rc < 0)
		code = client_fail(c, rc, hint, "cache drop %s", argv[0]);
	else
		code = show_dropped(t, c, argv[0]);
	client_close(c);
	return code;
}
