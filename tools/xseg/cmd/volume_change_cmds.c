/* volume_change_cmds - volume set, get: the limits of a volume, which volumed keeps.
 *
 * Contract: see commands.h. What is not given stays as it is.
 */
#include <inttypes.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/cmd/volume_ask.h"

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
		printf("%-9s = %s\n", o->name,
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
