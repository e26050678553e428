/* kv_value - see kv_value.h. */
#include "tools/xseg/flow/kv_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/xseg/base/out.h"

#define PIECES	    KV_STORE_PIECES
#define PIECE_BYTES (1u << 20)			/* of a store that has no large values */

static uint64_t piece_bytes(const struct kv_store *s)
{
	return s->info.piece_bytes ? s->info.piece_bytes : PIECE_BYTES;
}

static void show(const struct kv_store *s, const char *shown, uint64_t done, uint64_t all)
{
	char a[OUT_TEXT], b[OUT_TEXT];

	if (shown && all)
		tool_progress(s->t, "%s: %s of %s", shown, out_size(done, a), out_size(all, b));
	else if (shown)
		tool_progress(s->t, "%s: %s", shown, out_size(done, a));
}

/* ---- descriptors ------------------------------------------------------------------------- */

static int64_t read_fd(struct kv_source *from, uint8_t *to, uint64_t bytes)
{
	uint64_t done = 0;

	while (done < bytes) {
		ssize_t n = read(from->fd, to + done, bytes - done);

		if (n < 0 && errno == EINTR && !tool_interrupted())
			continue;
		if (n < 0 && errno == EINTR)
			return -EINTR;
		if (n < 0) {
			from->error = errno;
			return -errno;
		}
		if (n == 0)
			break;
		done += (uint64_t)n;
	}
	return (int64_t)done;
}

struct kv_source kv_source_fd(int fd)
{
	return (struct kv_source){ .read = read_fd, .fd = fd };
}

static int write_fd(struct kv_sink *to, const uint8_t *data, uint64_t bytes)
{
	while (bytes) {
		ssize_t n = write(to->fd, data, bytes);

		if (n < 0 && errno == EINTR && !tool_interrupted())
			continue;
		if (n < 0 && errno == EINTR)
			return -EINTR;
		if (n < 0) {
			to->error = errno;
			return -errno;
		}
		data += n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

struct kv_sink kv_sink_fd(int fd)
{
	return (struct kv_sink){ .write = write_fd, .fd = fd };
}

/* ---- put --------------------------------------------------------------------------------- */

struct put {
	struct kv_store *s;
	struct kv_source *from;
	const char *shown;
	struct xseg_kv_stream *stream;
	struct xseg_kv_io part[PIECES];
	uint32_t idle[PIECES], nr_idle;		/* parts that are not out */
	uint8_t *room;				/* `piece` bytes: the first ones */
	uint64_t piece, at;
};

static int64_t take_back(struct put *p)
{
	struct xseg_kv_io *done[PIECES];
	int nr = kv_store_wait(p->s, done, PIECES);
	int64_t rc = nr < 0 ? nr : 0;

	for (int i = 0; i < nr; i++) {
		p->idle[p->nr_idle++] = (uint32_t)(done[i] - p->part);
		if (done[i]->result < 0 && !rc)
			rc = done[i]->result;
	}
	return rc;
}

/* Reads the next piece to where it is sent from. Its bytes, or a negative errno. */
static int64_t read_piece(struct put *p, struct xseg_kv_io *io)
{
	struct iovec to;
	int64_t n;
	int rc;

	io->flags |= XSEG_KV_GIVE;
	io->item.value_bytes = p->piece;
	rc = xseg_kv_prepare(p->s->q, io, &to, 1);
	if (rc < 0)
		return rc;
	n = p->from->read(p->from, to.iov_base, p->piece);
	if (n > 0)
		io->item.value_bytes = (uint64_t)n;
	else
		xseg_kv_release(p->s->q, io);
	return n;
}

/* The next piece; or the first one, of which `have` bytes are in the room already. Its bytes, or a
 * negative errno. */
static int64_t put_piece(struct put *p, uint64_t have, uint32_t flags)
{
	struct xseg_kv_io *io = &p->part[p->idle[p->nr_idle - 1]];
	int64_t n = (int64_t)have;
	int rc;

	*io = (struct xseg_kv_io){ .op = XSEG_KV_PART, .flags = flags, .stream = p->stream,
		.offset = p->at, .item = { .value = have ? p->room : NULL, .value_bytes = have } };
	if (!have)
		n = read_piece(p, io);
	if (n <= 0)
		return n;
	rc = xseg_kv_submit(p->s->q, io);
	if (rc)
		return rc;
	xseg_kv_kick(p->s->q);
	p->nr_idle--;
	p->at += (uint64_t)n;
	return n;
}

/* Until the end of the source. The first piece is there already. */
static int64_t put_pieces(struct put *p, uint64_t first, uint32_t flags)
{
	int64_t n = put_piece(p, first, flags), rc = 0;

	while (n == (int64_t)p->piece && rc >= 0) {
		while (!rc && p->nr_idle == 0)
			rc = take_back(p);
		show(p->s, p->shown, p->at, 0);
		if (!rc)
			n = put_piece(p, 0, flags);
	}
	if (n < 0)
		rc = n;
	while (p->nr_idle < PIECES && rc != -EINTR && rc != -ETIMEDOUT) {
		int64_t other = take_back(p);

		rc = rc ? rc : other;
	}
	return rc;
}

static int64_t turn(struct put *p, enum xseg_kv_op op, struct xseg_kv_io *put, uint32_t flags)
{
	struct xseg_kv_io io = { .op = op, .flags = flags, .stream = p->stream };
	int64_t rc;

	if (put)
		io.item = put->item;
	rc = kv_store_run(p->s, &io);
	if (put)
		put->item.version = io.item.version;
	return rc;
}

static int64_t put_stream(struct put *p, struct xseg_kv_io *put, uint64_t first)
{
	uint32_t flags = put->flags;
	int64_t rc;

	p->stream = xseg_kv_stream_create(p->s->q);
	if (!p->stream)
		return -ENOMEM;
	put->item.value = NULL;
	put->item.value_bytes = XSEG_KV_UNKNOWN;
	rc = turn(p, XSEG_KV_BEGIN, put, 0);
	if (rc)
		return rc;
	rc = put_pieces(p, first, flags & XSEG_KV_ONCE);
	if (!rc) {
		put->item.value_bytes = p->at;
		rc = turn(p, XSEG_KV_COMMIT, put, flags & XSEG_KV_FORCE);
	}
	if (rc && rc != -EINTR && rc != -ETIMEDOUT)
		turn(p, XSEG_KV_ABORT, NULL, 0);
	return rc;
}

/* A value that ends within the first piece is put whole, if it is no large one. */
static int64_t put_any(struct put *p, struct xseg_kv_io *put)
{
	int64_t n = p->from->read(p->from, p->room, p->piece);

	if (n < 0)
		return n;
	if (n == (int64_t)p->piece ||
		xseg_kv_is_large(p->s->kv, put->item.key_bytes, (uint64_t)n))
		return put_stream(p, put, (uint64_t)n);
	put->op = XSEG_KV_PUT;
	put->item.value = p->room;
	put->item.value_bytes = (uint64_t)n;
	n = kv_store_run(p->s, put);
	put->item.value = NULL;
	return n;
}

int64_t kv_value_put(struct kv_store *s, struct xseg_kv_io *put, struct kv_source *from,
	const char *shown)
{
	struct put p = { .s = s, .from = from, .shown = shown, .piece = piece_bytes(s) };
	int64_t rc = -ENOMEM;

	for (uint32_t i = 0; i < PIECES; i++)
		p.idle[p.nr_idle++] = PIECES - 1 - i;
	p.room = malloc(p.piece);
	if (p.room)
		rc = put_any(&p, put);
	kv_store_let_go(s, p.stream, p.room);
	return rc;
}

/* ---- get --------------------------------------------------------------------------------- */

static int64_t prepare(struct kv_store *s, struct kv_value *v, uint32_t flags)
{
	*v = (struct kv_value){ .s = s, .flags = flags };
	v->stream = xseg_kv_stream_create(s->q);
	v->room = malloc(PIECES * (uint64_t)PIECE_BYTES);
	return v->stream && v->room ? 0 : -ENOMEM;
}

int64_t kv_value_open(struct kv_store *s, struct kv_value *v, const void *key, uint32_t key_bytes,
	uint32_t flags)
{
	struct xseg_kv_io io = { .op = XSEG_KV_OPEN, .flags = flags,
		.item = { .key = key, .key_bytes = key_bytes } };
	int64_t rc = prepare(s, v, flags);

	io.stream = v->stream;
	if (!rc)
		rc = kv_store_run(s, &io);
	v->item.key = key;
	v->item.key_bytes = key_bytes;
	if (rc >= 0)
		xseg_kv_stream_item(v->stream, &v->item);
	return rc < 0 ? rc : 0;
}

int64_t kv_value_of_record(struct kv_store *s, struct kv_value *v, const struct xseg_kv_io *io,
	const struct xseg_kv_record *record)
{
	int64_t rc = prepare(s, v, 0);

	if (!rc)
		rc = xseg_kv_record_open(s->q, io, record, v->stream);
	if (!rc)
		xseg_kv_stream_item(v->stream, &v->item);
	return rc;
}

/* Asks for the piece at that place. */
static int64_t ask(struct kv_value *v, uint64_t at, uint64_t piece)
{
	uint32_t i = (uint32_t)(at / piece % PIECES);

	v->back[i] = false;
	v->piece[i] = (struct xseg_kv_io){ .op = XSEG_KV_PIECE, .flags = v->flags,
		.stream = v->stream, .offset = at, .cookie = &v->back[i],
		.item = { .value = v->room + i * (uint64_t)PIECE_BYTES, .value_bytes = piece } };
	return xseg_kv_submit(v->s->q, &v->piece[i]);
}

/* 0: the piece is there. */
static int64_t wait_for(struct kv_value *v, uint64_t at, uint64_t piece)
{
	uint32_t i = (uint32_t)(at / piece % PIECES);
	struct xseg_kv_io *done[PIECES];
	int nr;

	while (!v->back[i]) {
		nr = kv_store_wait(v->s, done, PIECES);
		if (nr < 0)
			return nr;
		for (int k = 0; k < nr; k++)
			*(bool *)done[k]->cookie = true;
	}
	return v->piece[i].result < 0 ? v->piece[i].result : 0;
}

int64_t kv_value_write(struct kv_value *v, struct kv_sink *to, const char *shown)
{
	uint64_t all = v->item.value_bytes, piece = xseg_kv_stream_piece(v->stream), asked = 0;
	struct xseg_kv_io *done[PIECES];
	int64_t rc = 0;
	int nr = 1;

	for (uint64_t at = 0, n; at < all && !rc; at += n) {
		n = all - at < piece ? all - at : piece;
		for (; asked < all && asked < at + PIECES * piece && !rc; asked += piece)
			rc = ask(v, asked, piece);
		if (!rc)
			rc = wait_for(v, at, piece);
		if (!rc)
			rc = to->write(to, v->piece[at / piece % PIECES].item.value, n);
		if (all > piece)
			show(v->s, shown, at + n, all);
	}
	while (rc && nr > 0 && rc != -EINTR && rc != -ETIMEDOUT) {
		nr = kv_store_wait(v->s, done, PIECES);
		rc = nr < 0 ? nr : rc;
	}
	return rc;
}

void kv_value_close(struct kv_value *v)
{
	struct xseg_kv_io io = { .op = XSEG_KV_CLOSE, .stream = v->stream };

	if (!v->s)
		return;
	if (v->stream && !xseg_kv_out(v->s->q))
		(void)!kv_store_run(v->s, &io);
	kv_store_let_go(v->s, v->stream, v->room);
	v->stream = NULL;
	v->room = NULL;
}
