/* cache_volume - see cache_volume.h. */
#include "tools/xseg/text/cache_volume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "tools/xseg/text/cache_text.h"
#include "tools/xseg/base/out.h"

#define OFF_PATH "off the path"			/* state of a volume in such a cache */

/* ---- whose volumes they are -------------------------------------------------------------- */

static bool passes(const struct view_peers *peers, const struct xseg_peer_info *p, uint32_t cache)
{
	uint32_t i;

	for (i = 0; p && i < peers->nr && p->index != cache; i++)
		p = view_peer_at(peers, p->downstream);
	return p && p->index == cache;
}

/* The volumed whose volumes pass the cache, where those of `volumed` do not; NULL: they do, or the
 * cache is off the path and has whatever volumes will pass it. */
static const struct xseg_peer_info *another(const struct view_peers *peers, uint32_t cache,
					    uint32_t volumed)
{
	const struct xseg_peer_info *p = NULL;

	/* more than one where some have stopped */
	if (passes(peers, view_peer_at(peers, volumed), cache))
		return NULL;
	while ((p = view_peer_of_kind(peers, "volumed", p)) && !passes(peers, p, cache))
		;
	return p;
}

static int refuse_another(struct client *c, uint32_t cache, uint32_t volumed, const char *volume)
{
	const struct xseg_peer_info *of, *at, *has;
	struct view_peers peers = { 0 };
	int code = view_peers_need(c->seg, &peers);

	of = view_peer_at(&peers, volumed);
	at = view_peer_at(&peers, cache);
	has = of && at ? another(&peers, cache, volumed) : NULL;
	if (has)
		code = tool_fail(TOOL_REFUSED,
			"%s: volume %s is of %s, which does not send through %s, but %s does; "
			"'xseg status' shows the routes",
			tool_command(), volume, of->name, at->name, has->name);
	view_peers_fini(&peers);
	return code;
}

/* What a kvd says of itself: the prefix of its objects, and the id that they bear. False: it does
 * not answer. */
static bool ask_store(struct client *c, const struct xseg_peer_info *p, char *prefix, size_t size,
	uint32_t *id)
{
	if (p->state != XSEG_PEER_LIVE || client_ask(c, p->index, "info") < 0)
		return false;
	*id = (uint32_t)client_number(c->text, "id");
	return client_value(c->text, "prefix", prefix, size);
}

/* The id of a store of values, whose objects' names begin with +PREFIX. */
static int store_id(struct client *c, uint32_t cache, const char *prefix, uint32_t *id)
{
	const struct xseg_peer_info *p = NULL;
	struct view_peers peers = { 0 };
	char of[XSEG_NAME_MAX];
	int code = view_peers_need(c->seg, &peers);

	while (!code && !*id && (p = view_peer_of_kind(&peers, "kvd", p)))
		if (another(&peers, cache, p->index) || !ask_store(c, p, of, sizeof(of), id) ||
			strcmp(of, prefix) != 0)
			*id = 0;
	view_peers_fini(&peers);
	if (!code && !*id)
		code = tool_fail(TOOL_REFUSED,
			"%s: volume +%s: no kvd that sends through the cache has that prefix; "
			"'xseg kv info' shows a kvd's",
			tool_command(), prefix);
	return code;
}

int cache_volume_id(struct client *c, uint32_t cache, const struct cache_opts *o, uint32_t *id)
{
	uint32_t volumed;
	int64_t rc;
	int code;

	*id = 0;
	if (o->volume[0] == '+')
		return store_id(c, cache, o->volume + 1, id);
	if (!o->volume[0] && o->volumed[0])
		return tool_fail(TOOL_USAGE,
				 "%s: --volumed needs a volume; name it with --volume",
				 tool_command());
	if (!o->volume[0])
		return TOOL_DONE;
	code = client_find_peer(c, "volumed", o->volumed, &volumed);
	if (!code)
		code = refuse_another(c, cache, volumed, o->volume);
	if (code)
		return code;
	rc = client_ask(c, volumed, "volume info %s", o->volume);
	if (rc < 0)
		return client_fail(c, rc, NULL, "volume %s", o->volume);
	*id = (uint32_t)client_number(c->text, "id");
	return TOOL_DONE;
}

/* ---- to JSON ----------------------------------------------------------------------------- */

/* next() cuts the text into pairs. */
static json_t *volume_json(char *text, char *(*next)(char **cursor, char **value))
{
	json_t *j = json_object();
	char *key, *value;

	json_object_set_new(j, "draining", json_null());
	while ((key = next(&text, &value))) {
		if (value && !strcmp(key, "name"))
			out_set_text(j, key, value);
		else if (value && !strcmp(key, "counted"))
			out_set_bool(j, key, !strcmp(value, "yes"));
		else if (value)
			cache_text_put(j, key, value);
	}
	return j;
}

/* In an array; NULL: it does not answer. */
static json_t *volumes_json(struct client *c, uint32_t peer)
{
	json_t *array = json_array();
	uint64_t from = 0, next = 0;
	char *line, *save;

	do {
		from = next;
		if (client_ask(c, peer, "volumes %" PRIu64, from) < 0) {
			json_decref(array);
			return NULL;
		}
		line = strtok_r(c->text, "\n", &save);
		for (; line; line = strtok_r(NULL, "\n", &save))
			if (!strncmp(line, "next=", 5))
				next = client_number(line, "next");
			else
				json_array_append_new(array, volume_json(line, kv_next_word));
	} while (next > from);
	return array;
}

/* A cache that was not told of a rename, as xseg was killed or the cache did not serve, is told
 * now. */
static void names_mend(struct client *c, uint32_t cache, const json_t *array)
{
	const char *now, *was;
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)array, i, v) {
		now = out_text(v, "name");
		was = out_text(v, "named");
		if (json_object_get(v, "named") && *was && *now && strcmp(was, now) &&
			client_ask(c, cache, "volume-set id=%" PRIu64 " name=%s", out_int(v, "id"),
				now) < 0)
			return;
	}
}

/* Puts the names of the volumes of that volumed in, which knows best. What the cache calls them
 * goes to the key "named". */
static void names_put(struct client *c, uint32_t volumed, json_t *array)
{
	uint64_t from = 0, next = 0;
	char *line, *save, name[XSEG_NAME_MAX];
	json_t *v;
	size_t i;

	do {
		from = next;
		if (client_ask(c, volumed, "volume list %" PRIu64, from) < 0)
			return;
		next = client_number(c->text, "next");
		line = strtok_r(c->text, "\n", &save);
		for (; line; line = strtok_r(NULL, "\n", &save)) {
			if (strncmp(line, "slot=", 5))
				continue;
			client_value(line, "name", name, sizeof(name));
			json_array_foreach(array, i, v)
				if (out_int(v, "id") == client_number(line, "id")) {
					out_set_text(v, "named", out_text(v, "name"));
					out_set_text(v, "name", name);
				}
		}
	} while (next > from);
}

/* The same of a kvd: its one number is called +PREFIX. */
static void store_name_put(struct client *c, const struct xseg_peer_info *kvd, json_t *array)
{
	char prefix[XSEG_NAME_MAX], name[XSEG_NAME_MAX + 1];
	uint32_t id;
	json_t *v;
	size_t i;

	if (!ask_store(c, kvd, prefix, sizeof(prefix), &id))
		return;
	snprintf(name, sizeof(name), "+%s", prefix);
	json_array_foreach(array, i, v)
		if (!*out_text(v, "name") && out_int(v, "id") == id)
			out_set_text(v, "name", name);
}

/* A cache sees the objects of volumes, whose names need not tell. What nobody has a name for has
 * been removed. */
static void names_learn(struct client *c, const struct xseg_peer_info *cache, json_t *array)
{
	const struct xseg_peer_info *p = NULL;
	struct view_peers peers = { 0 };
	size_t i = json_array_size(array);

	if (view_peers_load(c->seg, &peers))
		return;
	while ((p = view_peer_of_kind(&peers, "volumed", p)))
		if (p->state == XSEG_PEER_LIVE && !another(&peers, cache->index, p->index))
			names_put(c, p->index, array);
	while ((p = view_peer_of_kind(&peers, "kvd", p)))
		store_name_put(c, p, array);
	view_peers_fini(&peers);
	names_mend(c, cache->index, array);
	while (i-- > 0) {
		json_object_del(json_array_get(array, i), "named");
		if (!*out_text(json_array_get(array, i), "name"))
			json_array_remove(array, i);
	}
}

/* The volume for which the store is full. */
static void full_name_put(json_t *full, const json_t *volumes)
{
	const json_t *v;
	size_t i;

	if (!json_is_object(full))
		return;
	out_set_text(full, "volume", "");
	json_array_foreach(volumes, i, v)
		if (out_int(v, "id") == out_int(full, "id"))
			out_set_text(full, "volume", out_text(v, "name"));
}

/* Those of a cache that is off the path: it gets nothing of them, whatever their policy says. */
static void volumes_are_off(json_t *volumes)
{
	json_t *v;
	size_t i;

	json_array_foreach(volumes, i, v)
		out_set_text(v, "state", OFF_PATH);
}

int64_t cache_ask_status(struct client *c, uint32_t peer, const struct xseg_peer_info *cache,
	json_t **status)
{
	int64_t rc = client_ask(c, peer, "status");
	json_t *volumes;

	*status = NULL;
	if (rc < 0)
		return rc;
	*status = cache_text_to_json(c->text, c->seg, cache);
	volumes = volumes_json(c, peer);
	if (volumes)
		names_learn(c, cache, volumes);
	full_name_put(json_object_get(*status, "full"), volumes);
	if (volumes)
		json_object_set_new(*status, "volumes", volumes);
	if (cache->downstream == XSEG_NONE)
		volumes_are_off(volumes);
	return 0;
}

/* ---- to people --------------------------------------------------------------------------- */

static const char *hit_percent(const json_t *v, char *buf)
{
	uint64_t hits = out_int(v, "hits");

	return out_percent(hits, hits + out_int(v, "misses") + out_int(v, "partial"), buf);
}

static const char *share_size(const json_t *v, const char *key, char *buf)
{
	return out_int(v, key) ? out_size(out_int(v, key), buf) : "-";
}

void cache_volumes_print(const json_t *volumes)
{
	struct out_table *table;
	json_t *v;
	size_t i;

	if (json_array_size(volumes) == 0)
		return;
	putchar('\n');
	table = out_table_create(
		"VOLUME\tPOLICY\tSTATE\t>USED\t>MIN\t>MAX\t>DIRTY\t>READS\t>HITS\t>WRITES");
	json_array_foreach(volumes, i, v) {
		char used[OUT_TEXT], dirty[OUT_TEXT], reads[OUT_TEXT], writes[OUT_TEXT],
			hits[OUT_TEXT], min[OUT_TEXT], max[OUT_TEXT];

		out_table_row(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", out_text(v, "name"),
			      out_text(v, "policy"), out_text(v, "state"),
			      out_size(out_int(v, "used_bytes"), used),
			      share_size(v, "min_bytes", min), share_size(v, "max_bytes", max),
			      out_size(out_int(v, "dirty_bytes"), dirty),
			      out_count(out_int(v, "reads"), reads), hit_percent(v, hits),
			      out_count(out_int(v, "writes"), writes));
	}
	out_table_write(table, stdout);
}

static void print_numbers(const json_t *v)
{
	char a[OUT_TEXT], b[OUT_TEXT];

	printf("memory    %s used, %s dirty", out_size(out_int(v, "used_bytes"), a),
	       out_size(out_int(v, "dirty_bytes"), b));
	if (out_int(v, "unpromised_bytes"))
		printf(", %s unpromised", out_size(out_int(v, "unpromised_bytes"), a));
	if (out_int(v, "min_bytes"))
		printf(", %s for sure", out_size(out_int(v, "min_bytes"), a));
	if (out_int(v, "max_bytes"))
		printf(", %s at most", out_size(out_int(v, "max_bytes"), a));
	putchar('\n');
	printf("requests  %" PRIu64 " reads, %" PRIu64 " writes\n", out_int(v, "reads"),
	       out_int(v, "writes"));
	printf("looked up %" PRIu64 " reads: %" PRIu64 " hits (%s), %" PRIu64 " misses, %" PRIu64
	       " partial; %" PRIu64 " reads bypassed\n",
	       out_int(v, "hits") + out_int(v, "misses") + out_int(v, "partial"),
	       out_int(v, "hits"), hit_percent(v, a), out_int(v, "misses"),
	       out_int(v, "partial"), out_int(v, "bypassed"));
	printf("bytes     %s read, %s written\n", out_size(out_int(v, "read_bytes"), a),
	       out_size(out_int(v, "write_bytes"), b));
	printf("evicted   %" PRIu64 " buckets\n", out_int(v, "evicted"));
}

static void print_volume(const json_t *v, const char *cache)
{
	char words[CACHE_PROMISE_MAX], a[OUT_TEXT];
	const json_t *draining = json_object_get(v, "draining");
	const char *policy = out_text(v, "policy"),
		   *promise = cache_text_promise(policy, "the store", words);
	bool off = !strcmp(out_text(v, "state"), OFF_PATH);

	if (off)
		promise = tool_hints(words, sizeof(words), "holds again after 'xseg plug'");
	else
		cache_text_except(v, words);
	printf("volume    %s, in cache %s, %s", out_text(v, "name"), cache, out_text(v, "state"));
	if (json_is_object(draining))
		printf(" (%" PRIu64 "%%, %s dirty)", out_int(draining, "percent"),
		       out_size(out_int(draining, "bytes_left"), a));
	putchar('\n');
	printf("policy    %s%s%s\n", policy, *promise ? ": " : "", promise);
	if (json_is_true(json_object_get(v, "counted")))
		print_numbers(v);
	else
		printf("counted   together with other volumes: the cache has no room for more "
			"separate counters\n");
}

/* ---- one volume -------------------------------------------------------------------------- */

static int show_volume(const struct tool *t, struct client *c, uint32_t peer, uint32_t id,
		       const char *cache, const struct cache_opts *o)
{
	int64_t rc = client_ask(c, peer, "volume-status id=%" PRIu32, id);
	struct xseg_peer_info info;
	json_t *j;

	if (rc < 0)
		return client_fail(c, rc, NULL, "cache status %s", cache);
	j = volume_json(c->text, kv_next_line);
	out_set_text(j, "name", o->volume);
	if (xseg_peer_get_info(c->seg, peer, &info) && info.downstream == XSEG_NONE)
		out_set_text(j, "state", OFF_PATH);
	if (t->json)
		return out_json(j);
	print_volume(j, cache);
	json_decref(j);
	return out_done();
}

int cache_volume_status(struct tool *t, const char *cache, const struct cache_opts *o)
{
	struct client *c;
	uint32_t peer, id;
	int rc;

	rc = client_open(t, &c);
	if (rc)
		return rc;
	rc = client_find_peer(c, "cached", cache, &peer);
	if (!rc)
		rc = cache_volume_id(c, peer, o, &id);
	if (!rc)
		rc = show_volume(t, c, peer, id, cache, o);
	client_close(c);
	return rc;
}

/* Tells each cache that has, or may have, volumes of that volumed. */
static void tell_caches(struct client *c, uint32_t volumed, const char *line)
{
	const struct xseg_peer_info *p = NULL;
	struct view_peers peers = { 0 };
	int64_t rc = 0;

	if (view_peers_load(c->seg, &peers))
		return;
	while (rc != -EINTR && (p = view_peer_of_kind(&peers, "cached", p)))
		if (p->state == XSEG_PEER_LIVE && !another(&peers, p->index, volumed))
			rc = client_ask(c, p->index, "%s", line);
	view_peers_fini(&peers);
}

void cache_volume_forget(struct client *c, uint32_t volumed, uint32_t id)
{
	char line[64];

	snprintf(line, sizeof(line), "volume-forget id=%" PRIu32, id);
	tell_caches(c, volumed, line);
}

void cache_volume_rename(struct client *c, uint32_t volumed, uint32_t id, const char *name)
{
	char line[64 + XSEG_NAME_MAX];

	snprintf(line, sizeof(line), "volume-set id=%" PRIu32 " name=%s", id, name);
	tell_caches(c, volumed, line);
}
