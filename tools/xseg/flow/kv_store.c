/* kv_store - see kv_store.h. */
#include "tools/xseg/flow/kv_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/say/kv.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/text/key_text.h"

#define WAIT_NS	 (TOOL_SECOND / 10)
#define STALL_NS (5 * TOOL_SECOND)
#define SHOWN	 60u				/* bytes of a key in a message */

/* ---- opening ----------------------------------------------------------------------------- */

#define BAD_HEADS \
	"its log cannot be opened; the log of the stack says why, and 'xseg kv backup FILE " \
	"--salvage' saves its values"

/* Errors by which a kvd says that it cannot open its log. */
static bool is_of_log(int rc)
{
	return rc == -EPROTONOSUPPORT || rc == -EINVAL || rc == -ESTALE ||
	       rc == -EPROTO;
}

static int fail_open(const struct kv_store *s, int rc, const struct xseg_error *err)
{
	return tool_fail_errno(rc, err,
		rc == -EBADMSG ? BAD_HEADS
		: rc == -ENOSPC || rc == -ENOMEM
			? "stop a client, or make the segment with more memory"
			: is_of_log(rc)
			? "its log cannot be opened; the log of the stack says why, and what to do"
			: "'xseg status' shows the peers",
		"%s", s->what);
}

int kv_store_open(struct kv_store *s, struct tool *t, const char *what, const char *kvd)
{
	struct xseg_kv_params params = { .kvd = *kvd ? kvd : NULL };
	struct xseg_kv_queue_params queue = { .depth = KV_STORE_DEPTH,
		.large_rooms = KV_STORE_PIECES };
	struct xseg_error err = { "" };
	int rc;

	*s = (struct kv_store){ .t = t, .what = what };
	rc = tool_attach(t, 0, &s->seg);
	if (rc)
		return rc;
	params.attached = s->seg;
	params.timeout_ns = t->timeout_ns;
	rc = xseg_kv_open(&params, &s->kv, &err);
	if (!rc)
		rc = xseg_kv_queue_create(s->kv, &queue, &s->q, &err);
	if (!rc)
		rc = xseg_kv_get_info(s->kv, &s->info);
	return rc ? fail_open(s, rc, &err) : TOOL_DONE;
}

void kv_store_close(struct kv_store *s)
{
	xseg_kv_queue_destroy(s->q);
	xseg_kv_close(s->kv);
	if (s->seg)
		xseg_detach(s->seg);
	xseg_kv_stream_destroy(s->left_stream);
	free(s->left_room);
	*s = (struct kv_store){ 0 };
}

void kv_store_let_go(struct kv_store *s, struct xseg_kv_stream *stream, void *room)
{
	if (xseg_kv_out(s->q)) {
		s->left_stream = stream;
		s->left_room = room;
	} else {
		xseg_kv_stream_destroy(stream);
		free(room);
	}
}

/* ---- operations -------------------------------------------------------------------------- */

int kv_store_wait(struct kv_store *s, struct xseg_kv_io **done, uint32_t max)
{
	uint64_t since = tool_now_ns();
	bool noted = false;
	uint32_t nr;

	while (xseg_kv_out(s->q)) {
		nr = xseg_kv_wait(s->q, done, max, WAIT_NS);
		if (nr)
			return (int)nr;
		if (tool_out_of_time(s->t))
			return tool_interrupted() ? -EINTR : -ETIMEDOUT;
		if (noted || tool_now_ns() - since < STALL_NS)
			continue;
		noted = true;
		tool_note(s->t, "%s: it still waits for %s; 'xseg status' shows the peers", s->what,
			s->info.kvd);
	}
	return 0;
}

static int wait_all(struct kv_store *s)
{
	struct xseg_kv_io *done[KV_STORE_DEPTH];
	int rc;

	do
		rc = kv_store_wait(s, done, KV_STORE_DEPTH);
	while (rc > 0);
	return rc;
}

int64_t kv_store_run(struct kv_store *s, struct xseg_kv_io *io)
{
	int rc = xseg_kv_submit(s->q, io);

	if (!rc)
		rc = wait_all(s);
	return rc ? rc : io->result;
}

int kv_store_run_all(struct kv_store *s, struct xseg_kv_io *io, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		int rc = xseg_kv_submit(s->q, &io[i]);

		if (rc)
			io[i].result = rc;
	}
	return wait_all(s);
}

/* Whether kvd says that it has as many keys as it can. Deleted ones count for a while. */
static bool is_full_of_keys(const struct kv_store *s)
{
	char *key, *value, *text;
	bool full = false;
	struct client *c;
	uint32_t peer;

	if (client_open(s->t, &c))
		return false;
	if (!client_find_peer(c, "kvd", s->info.kvd, &peer) && client_ask(c, peer, "info") >= 0) {
		text = c->text;
		while ((key = kv_next_line(&text, &value)))
			full |= value && !strcmp(key, "keys_left") && !strcmp(value, "0");
	}
	client_close(c);
	return full;
}

static const char *hint_of(const struct kv_store *s, int64_t rc)
{
	switch (rc) {
	case -ENOSPC:
		return is_full_of_keys(s) ? "it has as many keys as it may: delete some, or start "
					    "kvd with a larger keys="
					  : "delete values, or move all to a larger kvd: "
					    "'xseg kv backup' and 'xseg kv restore'";
	case -EIO:
		return "the value or the store is damaged: 'xseg kv verify' shows which";
	case -EFBIG:
		return "the value is larger than this store takes";
	case -ESTALE:
		return "the store does not know the request, or has another version: run it "
		       "again";
	case -EBUSY:
		return "too many programs put or get large values; wait for them";
	case -ENOTCONN:
		return "'xseg status' shows the peers";
	case -EBADMSG:
		return BAD_HEADS;
	default:
		return NULL;
	}
}

int kv_store_fail(const struct kv_store *s, int64_t rc, const void *key, uint32_t bytes)
{
	uint32_t shown = bytes < SHOWN ? bytes : SHOWN;
	struct xseg_error why = { "" };
	char text[KEY_TEXT_BYTES(SHOWN)];

	if (rc == -ENOTCONN && xseg_kv_look(s->kv, &why))
		return tool_fail(TOOL_FAILED, "%s: %s", s->what, why.text);
	key_text(key, shown, text);
	if (rc == -EINTR || rc == -ETIMEDOUT)
		return tool_later("%s %s: what was sent may be done yet", s->what, text);
	if (rc == -ENOENT)
		return tool_fail(TOOL_REFUSED,
			"%s: there is no key '%s%s'; 'xseg kv list' shows the keys",
			s->what, text, shown < bytes ? "..." : "");
	if (rc == -EEXIST)
		return tool_fail(TOOL_REFUSED,
			"%s: the key '%s%s' is there already; leave --if-absent out to replace it",
			s->what, text, shown < bytes ? "..." : "");
	return tool_exit_of_store(tool_fail_errno(rc, NULL, hint_of(s, rc), "%s %s%s", s->what,
		text, shown < bytes ? "..." : ""));
}

/* ---- all keys ---------------------------------------------------------------------------- */

#define SCAN_BYTES (256u << 10)		/* a key of 64 KiB, or thousands of usual ones */

static int each_of(struct kv_store *s, const struct xseg_kv_io *scan, kv_store_fn *fn, void *arg)
{
	struct xseg_kv_entry entry[KV_STORE_DEPTH];
	uint32_t nr = 0;
	size_t at = 0;
	int rc = -1;

	while (rc < 0 && xseg_kv_next(scan, &at, &entry[nr]))
		if (++nr == KV_STORE_DEPTH) {
			rc = fn(s, entry, nr, arg);
			nr = 0;
		}
	return rc < 0 && nr ? fn(s, entry, nr, arg) : rc;
}

int kv_store_each(struct kv_store *s, const void *prefix, uint32_t bytes, bool once,
	kv_store_fn *fn, void *arg)
{
	struct xseg_kv_io scan = { .op = XSEG_KV_SCAN, .flags = once ? XSEG_KV_ONCE : 0,
		.item = { .key = prefix, .key_bytes = bytes, .value = malloc(SCAN_BYTES),
			.value_bytes = SCAN_BYTES } };
	int64_t result;
	int rc = -1;

	if (!scan.item.value)
		return tool_fail(TOOL_FAILED, "%s: out of memory; free some", s->what);
	do {
		result = kv_store_run(s, &scan);
		if (result < 0)
			rc = kv_store_fail(s, result, prefix, bytes);
		else
			rc = each_of(s, &scan, fn, arg);
	} while (rc < 0 && scan.cursor);
	free(scan.item.value);
	return rc < 0 ? TOOL_DONE : rc;
}

/* ---- files ------------------------------------------------------------------------------- */

int64_t kv_store_read_fd(int fd, uint64_t max, uint8_t **data)
{
	uint64_t room = 65536, used = 0;
	uint8_t *more;
	ssize_t n;

	*data = malloc(room);
	while (*data) {
		n = read(fd, *data + used, room - used);
		if (n < 0 && errno == EINTR && !tool_interrupted())
			continue;
		if (n <= 0)
			return n < 0 ? -errno : (int64_t)used;
		used += (uint64_t)n;
		if (used > max)
			return -EFBIG;
		if (used < room)
			continue;
		room *= 2;
		more = realloc(*data, room);
		if (!more)
			return -ENOMEM;
		*data = more;
	}
	return -ENOMEM;
}
