/* kv_cmds - kv put, get, delete, exists, info: one value of a store, or its figures.
 *
 * Contract: see commands.h. All but `kv info` without a key are a client of the store (kv_store.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/options/cli.h"
#include "peers/common/say/kv.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/image_file.h"
#include "tools/xseg/flow/kv_item.h"
#include "tools/xseg/flow/kv_store.h"
#include "tools/xseg/flow/kv_value.h"
#include "tools/xseg/text/key_text.h"
#include "tools/xseg/text/values_text.h"

#define SHOWN	   60u				/* bytes of a key in a message */
#define JSON_BYTES (64u << 20)		/* of a value within JSON */
#define TTL_MAX_NS (UINT32_MAX * TOOL_SECOND)

/* ---- options ----------------------------------------------------------------------------- */

#define AT(field) offsetof(struct kv_opts, field)
/* clang-format off */
#define OPT_KVD \
	{ .name = "kvd", .kind = OPT_STR, .off = AT(kvd), .len = XSEG_NAME_MAX, \
	  .arg = "NAME", .check = cli_check_name, .help = "the store's kvd, if there are several" }
#define OPT_ENCODED \
	{ .name = "encoded", .kind = OPT_BOOL, .off = AT(encoded), \
	  .help = "KEY is percent-encoded, as 'xseg kv list' prints it" }
/* clang-format on */

const struct opt kv_key_table[] = {
	OPT_KVD,
	OPT_ENCODED,
	{ 0 },
};
const struct opt kv_put_table[] = {
	OPT_KVD,
	OPT_ENCODED,
	{ .name = "if-absent", .kind = OPT_BOOL, .off = AT(if_absent),
	  .help = "refuse (4) a key that is there already" },
	{ .name = "ttl", .kind = OPT_TIME, .off = AT(ttl_ns), .min = TOOL_SECOND,
	  .max = TTL_MAX_NS, .arg = "TIME",
	  .help = "the value expires after that time, in whole seconds" },
	{ .name = "client-flags", .kind = OPT_UINT, .off = AT(client), .max = UINT32_MAX,
	  .arg = "N", .help = "a number that is kept with the value" },
	{ .name = "stable", .kind = OPT_BOOL, .off = AT(stable),
	  .help = "return when the value is on stable storage" },
	{ 0 },
};
const struct opt kv_get_table[] = {
	OPT_KVD,
	OPT_ENCODED,
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "replace a file, or overwrite a device" },
	{ 0 },
};
const struct opt kv_delete_table[] = {
	OPT_KVD,
	OPT_ENCODED,
	{ .name = "all", .kind = OPT_BOOL, .off = AT(all),
	  .help = "delete all values of the store, in one step" },
	{ .name = "in", .kind = OPT_TIME, .off = AT(in_ns), .min = TOOL_SECOND,
	  .max = TTL_MAX_NS, .arg = "TIME",
	  .help = "with --all: delete the values after that time, in whole seconds" },
	{ .name = "stable", .kind = OPT_BOOL, .off = AT(stable),
	  .help = "return when the deletion is on stable storage" },
	{ 0 },
};
#undef AT

/* ---- keys -------------------------------------------------------------------------------- */

struct key {
	uint8_t *data;
	uint32_t bytes;
};

/* Free key->data in any case. */
static int read_key(const char *what, const char *word, const struct kv_opts *o, struct key *key)
{
	size_t len = strlen(word);
	int64_t n = (int64_t)len;

	key->data = malloc(len + 1);
	if (!key->data)
		return tool_fail(TOOL_FAILED, "%s: out of memory; free some", what);
	if (o->encoded)
		n = key_text_decode(word, len, key->data);
	else
		memcpy(key->data, word, len);
	if (n < 0)
		return tool_fail(TOOL_USAGE,
			"%s: key '%.60s' has a '%%' without two digits; write %%25 for it", what,
			word);
	if (n > XSEG_KV_KEY_MAX)
		return tool_fail(TOOL_USAGE, "%s: a key has at most 64 KiB; use a shorter one",
			what);
	key->bytes = (uint32_t)n;
	return TOOL_DONE;
}

static struct xseg_kv_io io_of(enum xseg_kv_op op, const struct key *key)
{
	return (struct xseg_kv_io){ .op = op,
		.item = { .key = key->data, .key_bytes = key->bytes } };
}

/* Opens the store, and runs a command's work for one key. */
typedef int work_fn(struct kv_store *s, const struct kv_opts *o, const struct key *key,
	const char *file);

static int with_key(struct tool *t, const char *what, const struct kv_opts *o, const char *word,
	const char *file, work_fn *work)
{
	struct kv_store s;
	struct key key;
	int rc = read_key(what, word, o, &key);

	if (!rc) {
		rc = kv_store_open(&s, t, what, o->kvd);
		if (!rc)
			rc = work(&s, o, &key, file);
		kv_store_close(&s);
	}
	free(key.data);
	return rc;
}

static void say_key(const struct kv_store *s, const struct key *key, const char *done)
{
	char *text = malloc(KEY_TEXT_BYTES(key->bytes));

	if (text)
		tool_say(s->t, "%s %s", key_text(key->data, key->bytes, text), done);
	free(text);
}

/* ---- put --------------------------------------------------------------------------------- */

/* What is to be said of a put that failed. */
static int fail_put(const struct kv_store *s, const struct key *key, const char *file, int64_t rc,
	int error)
{
	if (error)
		return tool_fail_errno(-error, NULL, "name a file that can be read", "%s: %s",
			s->what, file);
	if (rc == -EFBIG)
		return tool_fail(TOOL_REFUSED,
			"%s: %s is larger than the %" PRIu64 " bytes of a value; keep it in parts",
			s->what, file, s->info.value_max_bytes);
	return kv_store_fail(s, rc, key->data, key->bytes);
}

static int put(struct kv_store *s, const struct kv_opts *o, const struct key *key, const char *file)
{
	struct xseg_kv_io io = io_of(XSEG_KV_PUT, key);
	bool is_stdin = !strcmp(file, "-");
	int fd = is_stdin ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC), rc = TOOL_DONE;
	struct kv_source from = kv_source_fd(fd);
	int64_t result;
	json_t *j;

	if (fd < 0)
		return fail_put(s, key, file, -errno, errno);
	io.flags = o->stable ? XSEG_KV_FORCE : 0;
	io.item.condition = o->if_absent ? XSEG_KV_IF_ABSENT : XSEG_KV_ALWAYS;
	io.item.ttl_s = (uint32_t)(o->ttl_ns / TOOL_SECOND);
	io.item.client = o->client;
	result = kv_value_put(s, &io, &from, s->what);
	tool_progress_end();
	if (result < 0) {
		rc = fail_put(s, key, file, result, from.error);
	} else if (s->t->json) {
		j = kv_item_key_json(key->data, key->bytes);
		out_set_int(j, "value_bytes", io.item.value_bytes);
		out_set_int(j, "version", io.item.version);
		rc = out_json(j);
	} else {
		say_key(s, key, "is put");
	}
	if (!is_stdin)
		close(fd);
	return rc;
}

int kv_put(struct tool *t, const void *opts, int argc, char **argv)
{
	return with_key(t, "kv put", opts, argv[0], argc > 1 ? argv[1] : "-", put);
}

/* ---- get --------------------------------------------------------------------------------- */

static int fail_get(const struct kv_store *s, const struct key *key, const char *file, int64_t rc,
	int error)
{
	tool_progress_end();
	if (error)
		return tool_fail(TOOL_FAILED, "%s: %s: %s; the value is not whole there", s->what,
			file, strerror(error));
	return kv_store_fail(s, rc, key->data, key->bytes);
}

static int to_pipe(struct kv_store *s, struct kv_value *v, const struct key *key, int fd,
	const char *file, const char *shown)
{
	struct kv_sink to = kv_sink_fd(fd);
	int64_t rc = kv_value_write(v, &to, shown);

	if (rc)
		return fail_get(s, key, file, rc, to.error);
	tool_progress_end();
	return TOOL_DONE;
}

static int to_file(struct kv_store *s, const struct kv_opts *o, struct kv_value *v,
	const struct key *key, const char *file)
{
	char shown[KEY_TEXT_BYTES(SHOWN)];
	struct image_file f;
	int rc;

	if (!strcmp(file, "-"))
		return to_pipe(s, v, key, STDOUT_FILENO, "standard output",
			isatty(STDOUT_FILENO) ? NULL : s->what);
	key_text(key->data, key->bytes < SHOWN ? key->bytes : SHOWN, shown);
	rc = image_file_open(&f, s->what, shown, file, o->force, v->item.value_bytes);
	if (!rc)
		rc = to_pipe(s, v, key, f.fd, f.name, s->what);
	if (!rc)
		rc = image_file_finish(&f, v->item.value_bytes);
	image_file_close(&f);
	return rc;
}

static int append(struct kv_sink *to, const uint8_t *data, uint64_t bytes)
{
	uint8_t **at = to->arg;

	memcpy(*at, data, bytes);
	*at += bytes;
	return 0;
}

/* With the value in it. */
static int to_json(struct kv_store *s, struct kv_value *v, const struct key *key)
{
	uint64_t bytes = v->item.value_bytes;
	uint8_t *data, *at;
	struct kv_sink to = { .write = append, .arg = &at };
	int64_t rc;
	json_t *j;

	if (bytes > JSON_BYTES)
		return tool_fail(TOOL_USAGE,
			"%s: the value has %" PRIu64
			" bytes, which are too many for JSON; name a FILE",
			s->what, bytes);
	data = at = malloc(bytes + 1);
	rc = data ? kv_value_write(v, &to, NULL) : -ENOMEM;
	if (!rc) {
		j = kv_item_json(&v->item, bytes);
		key_text_json(j, "value", data, bytes);
		free(data);
		return out_json(j);
	}
	free(data);
	return fail_get(s, key, "", rc, 0);
}

static int get(struct kv_store *s, const struct kv_opts *o, const struct key *key, const char *file)
{
	struct kv_value v;
	int64_t n = kv_value_open(s, &v, key->data, key->bytes, 0);
	int rc;

	if (n < 0) {
		rc = kv_store_fail(s, n, key->data, key->bytes);
	} else if (s->t->json && !strcmp(file, "-")) {
		rc = to_json(s, &v, key);
	} else {
		rc = to_file(s, o, &v, key, file);
		if (!rc && s->t->json)
			rc = out_json(kv_item_json(&v.item, v.item.value_bytes));
	}
	kv_value_close(&v);
	return rc;
}

int kv_get(struct tool *t, const void *opts, int argc, char **argv)
{
	return with_key(t, "kv get", opts, argv[0], argc > 1 ? argv[1] : "-", get);
}

/* ---- delete and exists ------------------------------------------------------------------- */

static int run_one(struct kv_store *s, enum xseg_kv_op op, bool stable, const struct key *key,
	const char *state, const char *said)
{
	struct xseg_kv_io io = io_of(op, key);
	int64_t rc;
	json_t *j;

	io.flags = stable ? XSEG_KV_FORCE : 0;
	rc = kv_store_run(s, &io);
	if (rc < 0)
		return kv_store_fail(s, rc, key->data, key->bytes);
	if (!s->t->json) {
		say_key(s, key, said);
		return TOOL_DONE;
	}
	j = kv_item_key_json(key->data, key->bytes);
	out_set_text(j, "state", state);
	return out_json(j);
}

static int delete (struct kv_store *s, const struct kv_opts *o, const struct key *key,
	const char *file)
{
	(void)file;
	return run_one(s, XSEG_KV_DELETE, o->stable, key, "deleted", "is deleted");
}

static int delete_all(struct tool *t, const struct kv_opts *o)
{
	uint32_t in_s = (uint32_t)(o->in_ns / TOOL_SECOND);
	struct xseg_kv_io io = { .op = XSEG_KV_DELETE_ALL, .flags = o->stable ? XSEG_KV_FORCE : 0,
		.item = { .ttl_s = in_s } };
	struct kv_store s;
	int rc = kv_store_open(&s, t, "kv delete", o->kvd);
	int64_t n = rc ? 0 : kv_store_run(&s, &io);

	if (n < 0)
		rc = kv_store_fail(&s, n, "--all", 5);
	if (!rc && in_s)
		tool_say(t, "all values will be deleted in %u second%s", in_s, out_s(in_s));
	else if (!rc)
		tool_say(t, "all values are deleted");
	if (!rc && t->json)
		rc = out_state(s.info.kvd, in_s ? "waits" : "deleted");
	kv_store_close(&s);
	return rc;
}

int kv_delete(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct kv_opts *o = opts;

	if (o->all == (argc > 0))
		return tool_fail(TOOL_USAGE, "kv delete: %s; see 'xseg help kv delete'",
			o->all ? "--all takes no KEY" : "give a KEY, or --all for all of them");
	if (o->in_ns && !o->all)
		return tool_fail(TOOL_USAGE,
			"kv delete: --in goes with --all; a value alone expires with 'xseg kv put "
			"--ttl'");
	return o->all ? delete_all(t, o)
		      : with_key(t, "kv delete", opts, argv[0], NULL, delete);
}

static int exists(struct kv_store *s, const struct kv_opts *o, const struct key *key,
	const char *file)
{
	(void)o;
	(void)file;
	return run_one(s, XSEG_KV_EXISTS, false, key, "exists", "is there");
}

int kv_exists(struct tool *t, const void *opts, int argc, char **argv)
{
	(void)argc;
	return with_key(t, "kv exists", opts, argv[0], NULL, exists);
}

/* ---- info -------------------------------------------------------------------------------- */

static int info_of_key(struct kv_store *s, const struct kv_opts *o, const struct key *key,
	const char *file)
{
	struct xseg_kv_io io = io_of(XSEG_KV_GET, key);
	int64_t n = kv_store_run(s, &io);
	char size[OUT_TEXT], left[OUT_TEXT], *text;

	(void)o;
	(void)file;
	if (n < 0)
		return kv_store_fail(s, n, key->data, key->bytes);
	if (s->t->json)
		return out_json(kv_item_json(&io.item, (uint64_t)n));
	text = malloc(KEY_TEXT_BYTES(key->bytes));
	printf("key      %s\n", text ? key_text(key->data, key->bytes, text) : "?");
	free(text);
	printf("value    %s\nversion  %" PRIu64 "\n", out_bytes((uint64_t)n, size),
		io.item.version);
	if (io.item.expiry > s->info.time_s)
		printf("expires  in %s\n",
			out_time((io.item.expiry - s->info.time_s) * TOOL_SECOND, left));
	printf("flags    %" PRIu32 "\n", io.item.client);
	return out_done();
}

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

/* What kvd says of itself: the names are those of the JSON. A prefix may be of digits. */
static int show_info(const struct tool *t, char *text)
{
	json_t *j = json_object();
	char *key, *value;

	while ((key = kv_next_line(&text, &value))) {
		if (!value)
			continue;
		if (is_number(value) && strcmp(key, "prefix") != 0)
			out_set_int(j, key, strtoull(value, NULL, 10));
		else
			out_set_text(j, key, value);
	}
	if (t->json)
		return out_json(j);
	values_text_print(j);
	json_decref(j);
	return out_done();
}

static int info(struct tool *t, const struct kv_opts *o)
{
	struct client *c;
	uint32_t peer;
	int64_t n;
	int rc = client_open(t, &c);

	if (rc)
		return rc;
	rc = client_find_peer(c, "kvd", o->kvd, &peer);
	if (!rc) {
		n = client_ask(c, peer, "info");
		rc = n < 0 ? client_fail(c, n, NULL, "kv info") : show_info(t, c->text);
	}
	client_close(c);
	return rc;
}

int kv_info(struct tool *t, const void *opts, int argc, char **argv)
{
	return argc ? with_key(t, "kv info", opts, argv[0], NULL, info_of_key) : info(t, opts);
}
