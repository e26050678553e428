/* volume_change_cmds - volume set, get: the limits of a volume, which volumed keeps; rename; copy.
 *
 * Contract: see commands.h. Of limits, what is not given stays as it is. A copy has the name
 * DST.partial until all of it is on stable storage. What is not whole is removed, or, after a kill,
 * stays under that name.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "peers/common/options/cli.h"
#include "peers/common/say/kv.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/text/volume_ask.h"
#include "tools/xseg/flow/volume_copy.h"
#include "tools/xseg/text/cache_volume.h"

/* ---- limits ------------------------------------------------------------------------------ */

struct limits {
	uint32_t iops;
	uint64_t bandwidth, burst;
};

#define AT(field) offsetof(struct limits, field)
const struct opt volume_limit_table[] = {
	{ .name = "iops", .kind = OPT_UINT, .off = AT(iops), .min = 1, .max = 10000000,
	  .flags = OPT_OR_ZERO, .help = "requests a second; 0 or none for no limit" },
	{ .name = "bandwidth", .kind = OPT_RATE, .off = AT(bandwidth), .min = 4096,
	  .max = 1ull << 40, .flags = OPT_OR_ZERO,
	  .help = "bytes a second that are read and written; 0 or none for no limit" },
	{ .name = "burst", .kind = OPT_TIME, .off = AT(burst), .min = 10000000,
	  .max = 60 * TOOL_SECOND, .flags = OPT_OR_ZERO,
	  .help = "how much of the limits may be saved up; 0 or none for 10ms" },
	{ 0 },
};
#undef AT

/* " KEY=NUMBER" of a word "KEY=VALUE". */
static int limit_word(const char *name, const char *word, struct kv_text *text)
{
	const char *value = strchr(word, '=');
	struct limits limits = { 0 };
	struct xseg_error err;
	const struct opt *o;
	char key[32];

	snprintf(key, sizeof(key), "%.*s", (int)strcspn(word, "="), word);
	o = opt_find(volume_limit_table, key);
	if (!o || !value)
		return tool_fail(TOOL_USAGE,
			"volume set %s: '%.80s' is none of its limits; give iops=N, "
			"bandwidth=SIZE/s or burst=TIME",
			name, word);
	value = strcmp(value + 1, "none") ? value + 1 : "0";
	if (opt_set(o, &limits, value, &err))
		return tool_fail(TOOL_USAGE, "volume set %s: %s", name, err.text);
	kv_add(text, " %s=%" PRIu64, o->name,
		o->kind == OPT_UINT ? (uint64_t)limits.iops : limits.bandwidth + limits.burst);
	return TOOL_DONE;
}

static int show_limits(const struct tool *t, const struct volume *v)
{
	char text[32];
	json_t *j;

	if (t->json) {
		j = json_object();
		out_set_text(j, "name", v->name);
		out_set_int(j, "iops", v->iops);
		out_set_int(j, "bandwidth_bytes", v->bandwidth_bytes);
		out_set_int(j, "burst_ns", v->burst_ns);
		out_set_int(j, "waiting", v->waiting);
		return out_json(j);
	}
	for (const struct opt *o = volume_limit_table; o->name; o++) {
		struct limits limits = { (uint32_t)v->iops, v->bandwidth_bytes, v->burst_ns };

		opt_get(o, &limits, text, sizeof(text));
		printf("%s=%s\n", o->name,
			strcmp(text, "0") && strcmp(text, "0s") ? text : "none");
	}
	return out_done();
}

int volume_set(struct tool *t, const void *opts, int argc, char **argv)
{
	char words[256], limits[VOLUME_LIMITS_TEXT];
	struct kv_text text;
	struct client *c;
	struct volume v;
	uint32_t peer;
	int64_t rc;
	int code;

	kv_init(&text, words, sizeof(words));
	for (int i = 1; i < argc; i++) {
		code = limit_word(argv[0], argv[i], &text);
		if (code)
			return code;
	}
	code = volume_open_volumed(
		t, ((const struct volume_opts *)opts)->volumed, argv[0], &c, &peer);
	if (code)
		return code;
	rc = client_tell(c, peer, "volume set %s%s", argv[0], words);
	code = rc < 0 ? volume_fail(c, rc, "volume set", argv[0]) : TOOL_DONE;
	if (!code)
		volume_read(c->text, &v);
	client_close(c);
	if (code)
		return code;
	tool_say(t, "volume %s: limits %s", argv[0], volume_limits_text(&v, limits));
	return t->json ? show_limits(t, &v) : TOOL_DONE;
}

int volume_get(struct tool *t, const void *opts, int argc, char **argv)
{
	struct client *c;
	struct volume v;
	uint32_t peer;
	int code;

	(void)argc;
	code = volume_open_volumed(
		t, ((const struct volume_opts *)opts)->volumed, argv[0], &c, &peer);
	if (code)
		return code;
	code = volume_ask(c, peer, "volume get", argv[0], &v);
	client_close(c);
	return code ? code : show_limits(t, &v);
}

/* ---- rename ------------------------------------------------------------------------------ */

int volume_rename(struct tool *t, const void *opts, int argc, char **argv)
{
	struct client *c;
	struct volume v;
	uint32_t peer;
	int64_t rc;
	int code = volume_check_name(argv[1]);

	(void)argc;
	if (!code)
		code = volume_open_volumed(
			t, ((const struct volume_opts *)opts)->volumed, argv[0], &c, &peer);
	if (code)
		return code;
	rc = client_tell(c, peer, "volume rename %s %s", argv[0], argv[1]);
	if (rc < 0) {
		code = client_fail(c, rc,
			rc == -ENOENT ? "'xseg volume list' shows the volumes" :
					"choose another name",
			"volume rename %s", argv[0]);
	} else {
		volume_read(c->text, &v);
		cache_volume_rename(c, peer, (uint32_t)v.id, argv[1]);
	}
	client_close(c);
	if (code)
		return code;
	tool_say(t, "volume %s is named %s now", argv[0], argv[1]);
	return t->json ? out_json(volume_json(&v)) : TOOL_DONE;
}

/* ---- copy -------------------------------------------------------------------------------- */

#define PARTIAL ".partial"
#define DROP_NS (5 * TOOL_SECOND)	/* for the end of a copy that is given up */

#define AT(field) offsetof(struct volume_opts, field)
const struct opt volume_copy_table[] = {
	{ .name = "size", .kind = OPT_SIZE, .off = AT(size_bytes), .min = 512,
	  .help = "bytes of the new volume, if it is to be larger" },
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "even if the source is in use; the copy is of no one moment then" },
	{ .name = "volumed", .kind = OPT_STR, .off = AT(volumed), .len = XSEG_NAME_MAX,
	  .arg = "NAME", .check = cli_check_name,
	  .help = "the volume's volumed, if there are several" },
	{ 0 },
};
#undef AT

struct copy {
	const struct volume_opts *o;
	const char *dst;
	char partial[XSEG_NAME_MAX];
	struct volume v, made;			/* the source, and what becomes the copy */
	struct volume_ref from, to;
};

static int is_there(const char *name, const char *next)
{
	return tool_fail(
		TOOL_REFUSED, "volume copy: there is a volume '%s' already; %s", name, next);
}

/* Nothing has been changed yet. */
static int copy_check(struct copy *p, struct client *c, uint32_t peer, const char *src)
{
	char has[OUT_TEXT], wants[OUT_TEXT];
	int code = volume_ask(c, peer, "volume copy", src, &p->v);

	if (code)
		return code;
	if (strcmp(p->v.state, "ok"))
		return tool_fail(TOOL_REFUSED,
			"volume copy %s: it is %s; wait until that is done, or copy another", src,
			p->v.state);
	if (p->o->size_bytes && p->o->size_bytes < p->v.size_bytes)
		return tool_fail(TOOL_REFUSED,
			"volume copy %s: it has %s, and %s would lose the data beyond; give no "
			"less",
			src, out_size(p->v.size_bytes, has), out_size(p->o->size_bytes, wants));
	if (client_ask(c, peer, "volume info %s", p->dst) >= 0 &&
		(client_value(c->text, "state", has, sizeof(has)), strcmp(has, "removing")))
		return is_there(p->dst, "choose another name, or remove it first");
	return TOOL_DONE;
}

/* Also after Ctrl-C, and when time is over: nobody wants a half of it. */
static void copy_drop(struct copy *p, struct client *c, uint32_t peer)
{
	if (tool_out_of_time(c->t) && !tool_interrupted())
		c->t->deadline_ns = tool_now_ns() + DROP_NS;
	tool_clear_interrupt();
	if (client_tell(c, peer, "volume remove %s force", p->partial) < 0)
		tool_note(c->t, "volume copy: a part of the copy is in %s; remove it with 'xseg "
			"volume remove %s'", p->partial, p->partial);
	else
		cache_volume_forget(c, peer, p->to.id);
}

/* Interrupted while volumed makes the volume: that would be there a moment later. */
static int copy_unmake(struct copy *p, struct client *c, uint32_t peer, const char *src)
{
	const char *how = tool_interrupted() ? "interrupted" : "timed out";
	int64_t late;

	if (!client_settle(c, DROP_NS, &late))
		return tool_fail(TOOL_LATER,
			"%s: volume copy %s: volumed has not answered yet; if there is a volume %s "
			"later, remove it with 'xseg volume remove %s'",
			how, src, p->partial, p->partial);
	if (late >= 0) {
		volume_read(c->text, &p->made);
		p->to.id = (uint32_t)p->made.id;
		copy_drop(p, c, peer);
	}
	return tool_fail(
		TOOL_LATER, "%s: volume copy %s: nothing was copied; run it again", how, src);
}

static int copy_make(struct copy *p, struct client *c, uint32_t peer, const char *src)
{
	uint64_t bytes = p->o->size_bytes ? p->o->size_bytes : p->v.size_bytes;
	int64_t rc = client_tell(
		c, peer, "volume create %s size=%" PRIu64 " like=%s", p->partial, bytes, src);

	if (rc == -EEXIST)
		return is_there(p->partial,
			"it is of a copy that runs, or was killed; wait, or remove it first");
	if (rc == -EINTR || rc == -ETIMEDOUT)
		return copy_unmake(p, c, peer, src);
	if (rc < 0)
		return client_fail(c, rc, "choose another name", "volume copy %s", src);
	volume_read(c->text, &p->made);
	p->from = (struct volume_ref){ .c = c, .peer = peer, .id = (uint32_t)p->v.id,
		.size_bytes = p->v.size_bytes, .name = src };
	p->to = p->from;
	p->to.id = (uint32_t)p->made.id;
	p->to.name = p->partial;
	return TOOL_DONE;
}

/* Interrupted while volumed gives the copy its name: it would have that a moment later. It is
 * whole, so it stays. */
static int copy_end(struct copy *p, struct client *c, uint32_t peer)
{
	int64_t rc = client_tell(c, peer, "volume rename %s %s", p->partial, p->dst), late;

	if ((rc == -EINTR || rc == -ETIMEDOUT) && client_settle(c, DROP_NS, &late)) {
		if (tool_out_of_time(c->t))
			c->t->deadline_ns = tool_now_ns() + DROP_NS;
		rc = late;
	}
	if (rc < 0)
		return client_fail(c, rc, "the whole copy has that name", "volume copy %s: %s",
			p->from.name, p->partial);
	cache_volume_rename(c, peer, p->to.id, p->dst);
	return TOOL_DONE;
}

static int show_copied(const struct tool *t, const struct copy *p, const struct volume_io_result *r)
{
	char all[OUT_TEXT], data[OUT_TEXT], time[OUT_TEXT];
	json_t *j;

	if (t->json) {
		j = json_object();
		out_set_text(j, "volume", p->dst);
		out_set_text(j, "source", p->from.name);
		out_set_int(j, "bytes", r->bytes);
		out_set_int(j, "data_bytes", r->data_bytes);
		out_set_int(j, "elapsed_ns", r->elapsed_ns);
		return out_json(j);
	}
	tool_say(t, "copied %s to %s: %s, of which %s are in objects, in %s", p->from.name, p->dst,
		out_bytes(r->bytes, all), out_size(r->data_bytes, data),
		out_time(r->elapsed_ns, time));
	return TOOL_DONE;
}

static int copy_names(struct copy *p, const char *dst)
{
	int code = volume_check_name(dst);

	p->dst = dst;
	if (!code && (size_t)snprintf(p->partial, sizeof(p->partial), "%s" PARTIAL, dst) >=
			     sizeof(p->partial))
		code = tool_fail(TOOL_USAGE,
			"volume copy: '%s' is too long a name, as the copy is %s" PARTIAL
			" until it is whole; choose one of %zu letters at most",
			dst, "NAME", XSEG_NAME_MAX - sizeof(PARTIAL));
	return code;
}

int volume_copy_run(struct tool *t, const void *opts, int argc, char **argv)
{
	struct copy p = { .o = opts };
	struct volume_io_result result;
	struct client *c;
	uint32_t peer;
	int code = copy_names(&p, argv[1]);

	(void)argc;
	if (!code)
		code = volume_open_volumed(t, p.o->volumed, argv[0], &c, &peer);
	if (code)
		return code;
	code = copy_check(&p, c, peer, argv[0]);
	if (!code)
		code = copy_make(&p, c, peer, argv[0]);
	if (!code) {
		code = volume_copy(
			&p.from, &p.to, p.v.object_size_bytes, p.o->force, &result);
		if (code)
			copy_drop(&p, c, peer);
		else
			code = copy_end(&p, c, peer);
	}
	client_close(c);
	return code ? code : show_copied(t, &p, &result);
}
