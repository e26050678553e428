/* kv_all_cmds - kv list, import, export, flush, backup, restore, verify: all values of a store.
 *
 * Contract: see commands.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/cli.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/kv_backup.h"
#include "tools/xseg/flow/kv_dir.h"
#include "tools/xseg/flow/kv_item.h"
#include "tools/xseg/flow/kv_value.h"
#include "tools/xseg/text/key_text.h"

#define BAD_SHOWN  100u				/* keys in the JSON of verify */
#define LARGE_FROM 4096				/* bytes; smaller values are never in pieces here */

/* ---- options ----------------------------------------------------------------------------- */

#define AT(field) offsetof(struct kv_opts, field)
/* clang-format off */
#define OPT_KVD \
	{ .name = "kvd", .kind = OPT_STR, .off = AT(kvd), .len = XSEG_NAME_MAX, \
	  .arg = "NAME", .check = cli_check_name, .help = "the store's kvd, if there are several" }
#define OPT_FLAT(text) \
	{ .name = "flat", .kind = OPT_BOOL, .off = AT(flat), .help = text }
#define OPT_PREFIX(text) \
	{ .name = "prefix", .kind = OPT_STR, .off = AT(prefix), .len = KV_PREFIX_BYTES, \
	  .arg = "TEXT", .help = text }
/* clang-format on */

const struct opt kv_table[] = {
	OPT_KVD,
	{ 0 },
};
const struct opt kv_list_table[] = {
	OPT_KVD,
	OPT_PREFIX("only keys that begin with this"),
	{ .name = "long", .kind = OPT_BOOL, .off = AT(details),
	  .help = "also sizes, versions, expiry and client flags" },
	{ 0 },
};
const struct opt kv_import_table[] = {
	OPT_KVD,
	OPT_PREFIX("stands before each file's name in its key"),
	OPT_FLAT("names are percent-encoded, as 'xseg kv export --flat' writes them"),
	{ .name = "follow", .kind = OPT_BOOL, .off = AT(follow),
	  .help = "in place of a symbolic link that leaves DIR, put the file or directory "
		  "at its end" },
	{ 0 },
};
const struct opt kv_export_table[] = {
	OPT_KVD,
	OPT_PREFIX("only keys that begin with this"),
	OPT_FLAT("one percent-encoded name a key; no links, and no directories of keys with a '/'"),
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force), .help = "replace files" },
	{ 0 },
};
const struct opt kv_backup_table[] = {
	OPT_KVD,
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force), .help = "replace a file" },
	{ .name = "salvage", .kind = OPT_BOOL, .off = AT(salvage),
	  .help = "read the zones of a log whose two heads are damaged" },
	{ 0 },
};
const struct opt kv_restore_table[] = {
	OPT_KVD,
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "also into a store that has keys" },
	{ 0 },
};
#undef AT

/* ---- list -------------------------------------------------------------------------------- */

struct listing {
	bool details;
	uint64_t nr;
};

/* An array that is written as it comes: there may be millions. */
static bool list_json(struct listing *l, const struct xseg_kv_entry *e)
{
	const struct xseg_kv_item item = { .key = e->key, .key_bytes = e->key_bytes,
		.version = e->version, .expiry = e->expiry, .client = e->client };
	json_t *j = kv_item_json(&item, e->value_bytes);
	char *text = json_dumps(j, JSON_PRESERVE_ORDER);

	json_decref(j);
	if (!text)
		return false;
	printf("%s%s", l->nr ? ",\n " : "[", text);
	free(text);
	return true;
}

static bool list_line(const struct listing *l, const struct xseg_kv_entry *e)
{
	char *text = malloc(KEY_TEXT_BYTES(e->key_bytes)), expires[OUT_TEXT];

	if (!text)
		return false;
	key_text(e->key, e->key_bytes, text);
	if (l->details)
		printf("%12" PRIu64 "  %12" PRIu64 "  %19s  %10" PRIu32 "  %s\n",
			e->value_bytes, e->version,
			e->expiry ? out_moment(e->expiry, expires) : "-", e->client, text);
	else
		printf("%s\n", text);
	free(text);
	return true;
}

static int list_group(
	struct kv_store *s, const struct xseg_kv_entry *entry, uint32_t nr, void *arg)
{
	struct listing *l = arg;

	for (uint32_t i = 0; i < nr; i++, l->nr++)
		if (!(s->t->json ? list_json(l, &entry[i]) : list_line(l, &entry[i])))
			return tool_fail(TOOL_FAILED, "%s: out of memory; free some", s->what);
	if (ferror(stdout))
		return out_done();
	return tool_out_of_time(s->t) ? tool_later("%s: more keys are there", s->what) : -1;
}

int kv_list(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct kv_opts *o = opts;
	struct listing l = { .details = o->details };
	struct kv_store s;
	int rc;

	(void)argc;
	(void)argv;
	rc = kv_store_open(&s, t, "kv list", o->kvd);
	if (!rc && o->details && !t->json)
		printf("%12s  %12s  %19s  %10s  KEY\n", "VALUE BYTES", "VERSION", "EXPIRES",
			"FLAGS");
	if (!rc)
		rc = kv_store_each(&s, o->prefix, (uint32_t)strlen(o->prefix), true, list_group,
			&l);
	if (!rc && t->json)
		printf("%s]\n", l.nr ? "" : "[");
	else if (!rc && !l.nr)
		tool_say(t, "no keys");
	kv_store_close(&s);
	return rc ? rc : out_done();
}

/* ---- import, export, flush --------------------------------------------------------------- */

static int show_done(const struct kv_store *s, const char *dir, const struct kv_dir_done *d,
	const char *done, const char *skipped)
{
	char bytes[OUT_TEXT];
	json_t *j;

	tool_progress_end();
	if (s->t->json) {
		j = json_object();
		out_set_int(j, "keys", d->keys);
		out_set_int(j, "value_bytes", d->bytes);
		out_set_int(j, "skipped", d->skipped);
		return out_json(j);
	}
	tool_say(s->t, "%s %s: %" PRIu64 " value%s of %s", done, dir, d->keys, out_s(d->keys),
		out_bytes(d->bytes, bytes));
	if (d->skipped)
		tool_note(s->t, skipped, s->what, d->skipped, out_s(d->skipped), dir);
	return TOOL_DONE;
}

int kv_import(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct kv_opts *o = opts;
	const struct kv_dir_opts dir = { .prefix = o->prefix, .flat = o->flat,
		.follow = o->follow };
	struct kv_dir_done done;
	struct kv_store s;
	int rc;

	(void)argc;
	rc = kv_store_open(&s, t, "kv import", o->kvd);
	if (!rc)
		rc = kv_dir_import(&s, argv[0], &dir, &done);
	if (!rc)
		rc = show_done(&s, argv[0], &done, "imported from",
			o->flat ? "%s: %" PRIu64 " name%s of %s left out: links and special files"
				: "%s: %" PRIu64 " special file%s of %s left out");
	kv_store_close(&s);
	return rc;
}

int kv_export(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct kv_opts *o = opts;
	const struct kv_dir_opts dir = { .prefix = o->prefix, .force = o->force,
		.flat = o->flat };
	struct kv_dir_done done;
	struct kv_store s;
	int rc;

	(void)argc;
	rc = kv_store_open(&s, t, "kv export", o->kvd);
	if (!rc)
		rc = kv_dir_export(&s, argv[0], &dir, &done);
	if (!rc)
		rc = show_done(&s, argv[0], &done, "exported to",
			"%s: %" PRIu64 " link%s left out that would lead out of %s");
	kv_store_close(&s);
	return rc;
}

int kv_flush(struct tool *t, const void *opts, int argc, char **argv)
{
	struct xseg_kv_io io = { .op = XSEG_KV_FLUSH };
	const struct kv_opts *o = opts;
	struct kv_store s;
	int64_t n;
	int rc;

	(void)argc;
	(void)argv;
	rc = kv_store_open(&s, t, "kv flush", o->kvd);
	if (!rc) {
		n = kv_store_run(&s, &io);
		rc = n < 0 ? kv_store_fail(&s, n, "", 0) : TOOL_DONE;
	}
	if (!rc)
		tool_say(t, "all values are on stable storage");
	if (!rc && t->json)
		rc = out_state(s.info.kvd, "flushed");
	kv_store_close(&s);
	return rc;
}

/* ---- backup and restore ------------------------------------------------------------------ */

/* A command that reads the whole log; `doing` stands in its progress. The caller closes *c, with
 * the answer in (*c)->text, if it returns TOOL_DONE. */
static int ask_kvd(struct tool *t, const char *kvd, const char *command, const char *what,
	const char *doing, struct client **c)
{
	uint32_t peer;
	int64_t n;
	int rc = client_open(t, c);

	if (rc)
		return rc;
	rc = client_find_peer(*c, "kvd", kvd, &peer);
	if (!rc) {
		tool_progress(t, "%s: %s", what, doing);
		n = client_tell(*c, peer, "%s", command);
		tool_progress_end();
		rc = n < 0 ? client_fail(*c, n, NULL, "%s", what) : TOOL_DONE;
	}
	if (rc)
		client_close(*c);
	return rc;
}

/* Kvd then tells the records of the zones, and nothing else. */
static int ask_salvage(struct tool *t, const char *kvd)
{
	struct client *c;
	int rc = ask_kvd(t, kvd, "salvage", "kv backup", "reading the zones", &c);

	if (!rc)
		client_close(c);
	return rc;
}

int kv_backup(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct kv_opts *o = opts;
	struct kv_backup_done done;
	char bytes[OUT_TEXT];
	struct kv_store s;
	json_t *j;
	int rc;

	(void)argc;
	if (o->salvage && (rc = ask_salvage(t, o->kvd)))
		return rc;
	rc = kv_store_open(&s, t, "kv backup", o->kvd);
	if (!rc)
		rc = kv_backup_write(&s, argv[0], o->force, &done);
	tool_progress_end();
	if (!rc && t->json && strcmp(argv[0], "-") != 0) {
		j = json_object();
		out_set_int(j, "records", done.records);
		out_set_int(j, "bad", done.bad);
		out_set_int(j, "bytes", done.bytes);
		rc = out_json(j);
	} else if (!rc && strcmp(argv[0], "-") != 0) {
		tool_say(t, "backed up to %s: %" PRIu64 " record%s of %s", argv[0], done.records,
			out_s(done.records), out_bytes(done.bytes, bytes));
	}
	if (!rc && done.bad)
		rc = tool_fail(TOOL_FAILED,
			"kv backup: %" PRIu64 " damaged record%s left out; %s", done.bad,
			out_s(done.bad),
			o->salvage ? "the others can be restored"
				   : "'xseg kv verify' shows which");
	kv_store_close(&s);
	return rc;
}

int kv_restore(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct kv_opts *o = opts;
	struct kv_backup_done done;
	struct kv_store s;
	json_t *j;
	int rc;

	(void)argc;
	rc = kv_store_open(&s, t, "kv restore", o->kvd);
	if (!rc && s.info.keys && !o->force)
		rc = tool_fail(TOOL_REFUSED,
			"kv restore: %s has keys already; add --force to put those of the backup "
			"beside and over them",
			s.info.kvd);
	if (!rc)
		rc = kv_backup_restore(&s, argv[0], &done);
	tool_progress_end();
	if (!rc && t->json) {
		j = json_object();
		out_set_int(j, "keys", done.keys);
		out_set_int(j, "expired", done.expired);
		rc = out_json(j);
	} else if (!rc) {
		tool_say(t, "restored from %s: %" PRIu64 " value%s", argv[0], done.keys,
			out_s(done.keys));
	}
	kv_store_close(&s);
	return rc;
}

/* ---- verify ------------------------------------------------------------------------------ */

/* What is read of the whole log is kvd's to say. Names of damaged keys are found by reading all
 * values, if there are any. */
struct verified {
	uint64_t records, bytes, live, bad, bad_live;
	json_t *places, *keys;
};

static int drop(struct kv_sink *to, const uint8_t *data, uint64_t bytes)
{
	(void)to;
	(void)data;
	(void)bytes;
	return 0;
}

/* Reads all pieces of a large value. */
static int64_t read_large(struct kv_store *s, const struct xseg_kv_item *item)
{
	struct kv_sink to = { .write = drop };
	struct kv_value v;
	int64_t rc = kv_value_open(s, &v, item->key, item->key_bytes, XSEG_KV_ONCE);

	if (!rc)
		rc = kv_value_write(&v, &to, s->what);
	kv_value_close(&v);
	return rc;
}

static int verify_group(
	struct kv_store *s, const struct xseg_kv_entry *entry, uint32_t nr, void *arg)
{
	struct xseg_kv_io io[KV_STORE_DEPTH];
	struct verified *v = arg;
	int rc;

	for (uint32_t i = 0; i < nr; i++)
		io[i] = (struct xseg_kv_io){ .op = XSEG_KV_GET, .flags = XSEG_KV_ONCE,
			.item = { .key = entry[i].key, .key_bytes = entry[i].key_bytes } };
	rc = kv_store_run_all(s, io, nr);
	if (rc)
		return tool_later("%s: names of damaged keys are not all known", s->what);
	for (uint32_t i = 0; i < nr; i++) {
		const struct xseg_kv_item *item = &io[i].item;

		if (io[i].result > LARGE_FROM)
			io[i].result = read_large(s, item);
		if (io[i].result == -EINTR || io[i].result == -ETIMEDOUT)
			return tool_later("%s: names of damaged keys are not all known", s->what);
		if (io[i].result >= 0 || io[i].result == -ENOENT ||
			json_array_size(v->keys) >= BAD_SHOWN)
			continue;
		json_array_append_new(v->keys, kv_item_key_json(item->key, item->key_bytes));
		if (!s->t->json)
			kv_store_fail(s, io[i].result, item->key, item->key_bytes);
	}
	return -1;
}

static void read_answer(struct verified *v, const char *text)
{
	/* behind the lines of damaged places, which have words of the same names */
	const char *sums = strstr(text, "records=");
	char *copy = strdup(text), *line, *save = NULL;

	v->records = sums ? client_number(sums, "records") : 0;
	v->bytes = sums ? client_number(sums, "bytes") : 0;
	v->live = sums ? client_number(sums, "live") : 0;
	v->bad = sums ? client_number(sums, "bad") : 0;
	v->bad_live = sums ? client_number(sums, "bad_live") : 0;
	for (line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
		line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, "bad=+", 5))
			json_array_append_new(v->places, json_string(line + 4));
	free(copy);
}

static int ask_verify(struct tool *t, const char *kvd, struct verified *v)
{
	struct client *c;
	int rc = ask_kvd(t, kvd, "verify", "kv verify", "reading the log", &c);

	if (rc)
		return rc;
	read_answer(v, c->text);
	client_close(c);
	return rc;
}

static int show_verified(const struct tool *t, const struct verified *v)
{
	char bytes[OUT_TEXT];
	json_t *j, *place;
	size_t i;
	int rc = TOOL_DONE;

	if (t->json) {
		j = json_object();
		out_set_int(j, "keys", v->live);
		out_set_int(j, "records", v->records);
		out_set_int(j, "bytes", v->bytes);
		out_set_int(j, "bad", v->bad);
		out_set_int(j, "bad_live", v->bad_live);
		json_object_set(j, "bad_records", v->places);
		json_object_set(j, "bad_keys", v->keys);
		rc = out_json(j);
	} else if (!v->bad) {
		tool_say(t, "all records are whole: %" PRIu64 " of %s, %" PRIu64 " of them live",
			v->records, out_bytes(v->bytes, bytes), v->live);
	} else {
		json_array_foreach(v->places, i, place)
			printf("damaged  %s\n", json_string_value(place));
	}
	if (!rc && v->bad)
		rc = tool_fail(TOOL_FAILED,
			"kv verify: %" PRIu64 " of %" PRIu64 " records are damaged, %" PRIu64
			" of them live; put these values again, or delete them",
			v->bad, v->records, v->bad_live);
	return rc;
}

static int name_bad(struct tool *t, const char *kvd, struct verified *v)
{
	struct kv_store s;
	int rc = kv_store_open(&s, t, "kv verify", kvd);

	if (!rc)
		rc = kv_store_each(&s, "", 0, true, verify_group, v);
	kv_store_close(&s);
	return rc;
}

int kv_verify(struct tool *t, const void *opts, int argc, char **argv)
{
	struct verified v = { .places = json_array(), .keys = json_array() };
	const struct kv_opts *o = opts;
	int rc = ask_verify(t, o->kvd, &v);

	(void)argc;
	(void)argv;
	if (!rc && v.bad_live)
		rc = name_bad(t, o->kvd, &v);
	if (!rc)
		rc = show_verified(t, &v);
	json_decref(v.places);
	json_decref(v.keys);
	return rc;
}
