/* kv_calls - streams by calls that wait: see kv.h.
 *
 * A put collects pieces in a buffer, but for those that the caller hands over whole. It begins in
 * kvd when the first piece is full, or at once if the value is known to be large. So a small value
 * becomes an ordinary PUT. A get keeps the piece of which a part was read last.
 *
 * Contract: the queue's thread; waits. The buffer is allocated when it is needed first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xseg/client/kv_inside.h"

#define PARTS 4u				/* out at a time */
#define TRIES 4u				/* to open a stream again, in one call */
#define NONE  UINT64_MAX

struct kv_calls {
	struct xseg_kv_queue *q;
	struct xseg_kv_item item;		/* as the caller gave it */
	uint32_t flags;
	bool begun;
	uint64_t at;				/* put: bytes that were sent */
	uint64_t used;				/* put: bytes in the buffer */
	uint64_t from;				/* get: the piece in the buffer; NONE */
	uint8_t *buf;
	uint8_t key[];
};

static int make(struct xseg_kv_queue *q, const struct xseg_kv_item *item, uint32_t flags,
	struct xseg_kv_stream **stream)
{
	struct xseg_kv_stream *st;
	struct kv_calls *c;

	if (!item->key || item->key_bytes == 0 || item->key_bytes > KV_KEY_MAX)
		return -EINVAL;
	st = xseg_kv_stream_create(q);
	c = malloc(sizeof(*c) + item->key_bytes);
	if (!st || !c) {
		free(c);
		xseg_kv_stream_destroy(st);
		return -ENOMEM;
	}
	*c = (struct kv_calls){ .q = q, .item = *item, .flags = flags, .from = NONE };
	memcpy(c->key, item->key, item->key_bytes);
	c->item.key = c->key;
	c->item.value = NULL;
	st->calls = c;
	*stream = st;
	return 0;
}

static void end(struct xseg_kv_stream *st)
{
	free(st->calls->buf);
	free(st->calls);
	xseg_kv_stream_destroy(st);
}

static bool has_buffer(struct xseg_kv_stream *st)
{
	if (!st->calls->buf)
		st->calls->buf = malloc(st->piece_bytes);
	return st->calls->buf;
}

static int64_t run(struct xseg_kv_stream *st, enum xseg_kv_op op, uint32_t flags,
	struct xseg_kv_item *item)
{
	struct xseg_kv_io io = { .op = op, .flags = flags, .stream = st };
	int64_t rc;

	if (item)
		io.item = *item;
	rc = xseg_kv_run(st->calls->q, &io);
	if (item)
		*item = io.item;
	return rc;
}

/* ---- put --------------------------------------------------------------------------------- */

static int begin(struct xseg_kv_stream *st)
{
	struct xseg_kv_item item = st->calls->item;
	int rc = (int)run(st, XSEG_KV_BEGIN, 0, &item);

	st->calls->begun = rc == 0;
	return rc;
}

int xseg_kv_put_begin(struct xseg_kv_queue *q, const struct xseg_kv_item *item, uint32_t flags,
	struct xseg_kv_stream **stream)
{
	struct xseg_kv_stream *st;
	int rc;

	if (flags & ~(XSEG_KV_FORCE | XSEG_KV_ONCE) || item->condition > XSEG_KV_IF_VERSION)
		return -EINVAL;
	rc = make(q, item, flags, &st);
	if (rc)
		return rc;
	if (item->value_bytes != XSEG_KV_UNKNOWN &&
		xseg_kv_is_large(q->kv, item->key_bytes, item->value_bytes))
		rc = begin(st);
	if (rc)
		end(st);
	else
		*stream = st;
	return rc;
}

/* Up to PARTS pieces that stand one behind the other; only the last one may be shorter. Returns
 * the bytes that are put, or a negative errno. */
static int64_t put_pieces(struct xseg_kv_stream *st, const uint8_t *data, uint64_t bytes)
{
	struct xseg_kv_io io[PARTS] = { 0 };
	struct kv_calls *c = st->calls;
	uint64_t done = 0, n;
	uint32_t nr = 0;

	if (!c->begun) {
		int rc = begin(st);

		if (rc)
			return rc;
	}
	for (; nr < PARTS && done < bytes; nr++, done += n) {
		n = bytes - done < st->piece_bytes ? bytes - done : st->piece_bytes;
		io[nr] = (struct xseg_kv_io){ .op = XSEG_KV_PART, .stream = st,
			.flags = c->flags & XSEG_KV_ONCE, .offset = c->at + done };
		io[nr].item.value = (void *)(uintptr_t)(data + done);	/* is only read */
		io[nr].item.value_bytes = n;
	}
	xs_kv_run_all(c->q, io, nr);
	for (uint32_t i = 0; i < nr; i++)
		if (io[i].result < 0)
			return io[i].result;
	c->at += done;
	return (int64_t)done;
}

/* The next bytes, into the buffer; a full one is put. */
static int64_t collect(struct xseg_kv_stream *st, const uint8_t *data, uint64_t bytes)
{
	struct kv_calls *c = st->calls;
	uint64_t room = st->piece_bytes - c->used, n = bytes < room ? bytes : room;
	int64_t rc;

	if (!has_buffer(st))
		return -ENOMEM;
	memcpy(c->buf + c->used, data, n);
	c->used += n;
	if (c->used < st->piece_bytes)
		return (int64_t)n;
	rc = put_pieces(st, c->buf, c->used);
	c->used = 0;
	return rc < 0 ? rc : (int64_t)n;
}

int xseg_kv_put_part(struct xseg_kv_stream *st, const void *data, uint64_t bytes)
{
	struct kv_calls *c = st->calls;
	const uint8_t *from = data;
	int64_t n;

	if (bytes && !data)
		return -EINVAL;
	if (c->item.value_bytes != XSEG_KV_UNKNOWN &&
		bytes > c->item.value_bytes - c->at - c->used)
		return -EINVAL;
	for (; bytes; from += n, bytes -= (uint64_t)n) {
		if (c->used || bytes < st->piece_bytes)
			n = collect(st, from, bytes);
		else
			n = put_pieces(st, from, bytes - bytes % st->piece_bytes);
		if (n < 0)
			return (int)n;
	}
	return 0;
}

static int commit(struct xseg_kv_stream *st, struct xseg_kv_item *item)
{
	struct kv_calls *c = st->calls;
	uint64_t bytes = c->at + c->used;
	int64_t rc;

	*item = c->item;
	if (item->value_bytes != XSEG_KV_UNKNOWN && item->value_bytes != bytes)
		return -EINVAL;
	item->value_bytes = bytes;
	if (!c->begun) {
		struct xseg_kv_io io = { .op = XSEG_KV_PUT, .flags = c->flags, .item = *item };

		io.item.value = c->buf;
		rc = xseg_kv_run(c->q, &io);
		*item = io.item;
		return (int)rc;
	}
	rc = c->used ? put_pieces(st, c->buf, c->used) : 0;
	return rc < 0 ? (int)rc : (int)run(st, XSEG_KV_COMMIT, c->flags & XSEG_KV_FORCE, item);
}

int xseg_kv_put_commit(struct xseg_kv_stream *st, uint64_t *version)
{
	struct xseg_kv_item item;
	int rc = commit(st, &item);

	if (version)
		*version = item.version;
	xseg_kv_put_abort(st);
	return rc;
}

void xseg_kv_put_abort(struct xseg_kv_stream *st)
{
	if (!st)
		return;
	if (st->state == KV_STREAM_PUTS)
		(void)!run(st, XSEG_KV_ABORT, 0, NULL);
	end(st);
}

/* ---- get --------------------------------------------------------------------------------- */

int xseg_kv_get_open(struct xseg_kv_queue *q, struct xseg_kv_item *item, uint32_t flags,
	struct xseg_kv_stream **stream)
{
	struct xseg_kv_item told = *item;
	struct xseg_kv_stream *st;
	int64_t rc;

	if (flags & ~(XSEG_KV_ONCE | XSEG_KV_UNCHECKED))
		return -EINVAL;
	told.value = NULL;
	told.value_bytes = 0;
	rc = make(q, &told, flags, &st);
	if (rc)
		return (int)rc;
	told.key = st->calls->key;
	rc = run(st, XSEG_KV_OPEN, flags & XSEG_KV_ONCE, &told);
	if (rc < 0) {
		end(st);
		return (int)rc;
	}
	xseg_kv_stream_item(st, item);
	st->calls->item.version = item->version;
	*stream = st;
	return 0;
}

/* Whole pieces from `offset` on, of which the last one of the value may be shorter. Returns bytes,
 * or a negative errno. */
static int64_t get_pieces(
	struct xseg_kv_stream *st, uint64_t offset, uint8_t *to, uint64_t bytes)
{
	struct xseg_kv_io io[PARTS] = { 0 };
	uint64_t done = 0, n;
	uint32_t nr = 0;

	for (; nr < PARTS && done < bytes; nr++, done += n) {
		n = bytes - done < st->piece_bytes ? bytes - done : st->piece_bytes;
		io[nr] = (struct xseg_kv_io){ .op = XSEG_KV_PIECE, .stream = st,
			.flags = st->calls->flags, .offset = offset + done,
			.item = { .value = to + done, .value_bytes = n } };
	}
	xs_kv_run_all(st->calls->q, io, nr);
	for (uint32_t i = 0; i < nr; i++)
		if (io[i].result < 0)
			return io[i].result;
	return (int64_t)done;
}

/* A part of a piece, by the buffer. */
static int64_t get_part(struct xseg_kv_stream *st, uint64_t offset, uint8_t *to, uint64_t bytes)
{
	uint64_t from = offset - offset % st->piece_bytes, left = st->bytes - from;
	uint64_t here = left < st->piece_bytes ? left : st->piece_bytes;
	struct kv_calls *c = st->calls;
	int64_t rc;

	if (!has_buffer(st))
		return -ENOMEM;
	if (c->from != from) {
		c->from = NONE;
		rc = get_pieces(st, from, c->buf, here);
		if (rc < 0)
			return rc;
		c->from = from;
	}
	here -= offset - from;
	here = here < bytes ? here : bytes;
	memcpy(to, c->buf + (offset - from), here);
	return (int64_t)here;
}

static int64_t get_some(struct xseg_kv_stream *st, uint64_t offset, uint8_t *to, uint64_t bytes)
{
	uint64_t whole = bytes - bytes % st->piece_bytes;

	if (offset % st->piece_bytes)
		return get_part(st, offset, to, bytes);
	if (offset + bytes == st->bytes)
		return get_pieces(st, offset, to, bytes);
	return whole ? get_pieces(st, offset, to, whole) : get_part(st, offset, to, bytes);
}

/* The same version. */
static int open_again(struct xseg_kv_stream *st)
{
	struct xseg_kv_item item = st->calls->item;
	int64_t rc = run(st, XSEG_KV_CLOSE, 0, NULL);

	item.value_bytes = 0;
	if (rc >= 0)
		rc = run(st, XSEG_KV_OPEN, st->calls->flags & XSEG_KV_ONCE, &item);
	return rc < 0 ? (int)(rc == -ENOENT ? -ESTALE : rc) : 0;
}

int64_t xseg_kv_get_piece(struct xseg_kv_stream *st, uint64_t offset, void *buf, uint64_t size)
{
	uint32_t tries = 0;
	uint64_t done = 0;
	int64_t n;

	if (st->state == KV_STREAM_FREE)
		return -ESTALE;			/* it could not be opened again */
	if (offset >= st->bytes)
		return 0;
	if (size > st->bytes - offset)
		size = st->bytes - offset;
	while (done < size) {
		n = get_some(st, offset + done, (uint8_t *)buf + done, size - done);
		if (n == -ESTALE && tries++ < TRIES) {
			n = open_again(st);
			st->calls->from = NONE;
		}
		if (n < 0)
			return n;
		done += (uint64_t)n;
	}
	return (int64_t)done;
}

void xseg_kv_get_close(struct xseg_kv_stream *st)
{
	if (!st)
		return;
	if (st->state != KV_STREAM_FREE)
		(void)!run(st, XSEG_KV_CLOSE, 0, NULL);
	end(st);
}
