/* rival_xseg.c - kvd by its C API: --iodepth operations in flight of each thread's queue, or that
 * many pieces of a large value. With one in flight the calls wait, one after the other.
 *
 * A large value goes as a stream. Its pieces are made and checked one at a time, so that neither
 * side has memory for all of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rivals/rival.h"
#include "xseg/kv.h"

#define PIECE_BYTES (1u << 20)
#define MAX_PIECES  16u
#define FEW		64u

struct db {
	const struct rival_options *o;
	struct xseg_kv *kv;
};

struct session {
	struct db *db;
	struct xseg_kv_queue *queue;
	struct xseg_kv_io io[MAX_DEPTH];
	struct xseg_kv_io *back[FEW];		/* [at_back .. nr_back) are told next */
	uint32_t nr_back, at_back;
	struct rival_op *streamed;		/* done already */
	/* of a stream */
	struct xseg_kv_io piece[MAX_PIECES];
	uint8_t *buf[MAX_PIECES];
	uint32_t pieces, nr_out;
};

static int kv_open(const struct rival_options *o, void **db, struct xseg_error *err)
{
	struct xseg_kv_params params = { .segment = o->path, .kvd = *o->kvd ? o->kvd : NULL };
	struct db *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return xseg_fail(err, -ENOMEM, "no memory");
	d->o = o;
	rc = xseg_kv_open(&params, &d->kv, err);
	if (rc)
		free(d);
	else
		*db = d;
	return rc;
}

static void kv_close(void *db)
{
	struct db *d = db;

	xseg_kv_close(d->kv);
	free(d);
}

static void kv_end(void *session)
{
	struct session *s = session;

	for (uint32_t i = 0; i < s->pieces; i++)
		free(s->buf[i]);
	xseg_kv_queue_destroy(s->queue);
	free(s);
}

static int make_pieces(struct session *s, struct xseg_error *err)
{
	const struct rival_options *o = s->db->o;

	if (rival_bytes_max(o) < PIECE_BYTES)
		return 0;
	while (s->pieces < (o->iodepth < MAX_PIECES ? o->iodepth : MAX_PIECES)) {
		s->buf[s->pieces] = calloc(1, PIECE_BYTES);
		if (!s->buf[s->pieces++])
			return xseg_fail(err, -ENOMEM, "no memory");
	}
	return 0;
}

static uint32_t room_bytes(const struct rival_options *o)
{
	size_t bytes = rival_bytes_max(o) + o->key_size + 12288;

	/* of exponential sizes nearly all are less than eight times the mean */
	if (o->exponential)
		bytes = o->value_size * 8 + 12288;
	bytes = bytes > PIECE_BYTES ? PIECE_BYTES : bytes;
	return (uint32_t)((bytes + 4095) & ~(size_t)4095);
}

static int kv_begin(void *db, void **session, struct xseg_error *err)
{
	struct session *s = calloc(1, sizeof(*s));
	struct xseg_kv_queue_params params = { 0 };
	int rc;

	if (!s)
		return xseg_fail(err, -ENOMEM, "no memory");
	s->db = db;
	rc = make_pieces(s, err);
	params.depth = s->db->o->iodepth;
	params.room_bytes = s->pieces ? 8192 : room_bytes(s->db->o);
	params.large_rooms = s->pieces ? s->pieces : 1;
	if (!rc)
		rc = xseg_kv_queue_create(s->db->kv, &params, &s->queue, err);
	if (rc)
		kv_end(s);
	else
		*session = s;
	return rc;
}

/* ---- large values ------------------------------------------------------------------------ */

/* Asks for the next piece: 0 or a negative errno. */
static int ask_piece(struct session *s, struct rival_op *op, struct xseg_kv_stream *stream,
	struct xseg_kv_io *io, uint64_t *at)
{
	uint64_t step = xseg_kv_stream_piece(stream), rest = op->bytes - *at;
	int rc;

	io->op = op->put ? XSEG_KV_PART : XSEG_KV_PIECE;
	io->stream = stream;
	io->offset = *at;
	io->item.value = s->buf[io - s->piece];
	io->item.value_bytes = rest < step ? rest : step;
	if (op->put)
		rival_stamp(op, io->item.value, *at, (size_t)io->item.value_bytes);
	*at += step;
	rc = xseg_kv_submit(s->queue, io);
	s->nr_out += !rc;
	return rc;
}

/* Waits for a piece, and checks it: its bytes, or a negative errno. */
static int64_t take_piece(struct session *s, struct rival_op *op, struct xseg_kv_io **io)
{
	while (xseg_kv_wait(s->queue, io, 1, 1000000000) == 0)
		;
	s->nr_out--;
	if ((*io)->result < 0)
		return (*io)->result;
	if (op->put)
		return (int64_t)(*io)->item.value_bytes;
	op->right = op->right && rival_is_stamped(op, (*io)->item.value, (*io)->offset,
					 (size_t)(*io)->result);
	return (*io)->result;
}

/* All pieces of a value: how many bytes, or a negative errno. */
static int64_t move_pieces(struct session *s, struct rival_op *op, struct xseg_kv_stream *stream)
{
	struct xseg_kv_io *io;
	uint64_t at = 0;
	int64_t sum = 0, bad = 0;

	for (uint32_t i = 0; i < s->pieces && at < op->bytes && !bad; i++)
		bad = ask_piece(s, op, stream, &s->piece[i], &at);
	while (s->nr_out) {
		int64_t n = take_piece(s, op, &io);

		if (n < 0)
			bad = n;
		sum += n;
		if (!bad && at < op->bytes)
			bad = ask_piece(s, op, stream, io, &at);
	}
	return bad ? bad : sum;
}

static int64_t run_one(struct session *s, struct rival_op *op, struct xseg_kv_stream *stream,
	enum xseg_kv_op what)
{
	struct xseg_kv_io *io = &s->io[0];

	*io = (struct xseg_kv_io){ .op = what, .stream = stream };
	io->flags = what == XSEG_KV_COMMIT && s->db->o->force ? XSEG_KV_FORCE : 0;
	io->item.key = op->key;
	io->item.key_bytes = (uint32_t)op->key_bytes;
	io->item.value_bytes = op->bytes;
	return xseg_kv_run(s->queue, io);
}

static int64_t put_stream(struct session *s, struct rival_op *op, struct xseg_kv_stream *stream)
{
	int64_t rc = run_one(s, op, stream, XSEG_KV_BEGIN);

	if (rc)
		return rc;
	rc = move_pieces(s, op, stream);
	if (rc == (int64_t)op->bytes)
		return run_one(s, op, stream, XSEG_KV_COMMIT);
	run_one(s, op, stream, XSEG_KV_ABORT);
	return rc < 0 ? rc : -EIO;
}

static int64_t get_stream(struct session *s, struct rival_op *op, struct xseg_kv_stream *stream)
{
	int64_t rc = run_one(s, op, stream, XSEG_KV_OPEN);

	if (rc < 0)
		return rc;
	op->checked = true;
	op->right = (uint64_t)rc == op->bytes;
	if (op->right)
		rc = move_pieces(s, op, stream);
	run_one(s, op, stream, XSEG_KV_CLOSE);
	return rc;
}

static void move_stream(struct session *s, struct rival_op *op)
{
	struct xseg_kv_stream *stream = xseg_kv_stream_create(s->queue);

	if (!stream)
		op->result = -ENOMEM;
	else
		op->result = op->put ? put_stream(s, op, stream) : get_stream(s, op, stream);
	xseg_kv_stream_destroy(stream);
	s->streamed = op;
}

/* ---- others ------------------------------------------------------------------------------ */

static void kv_submit(void *session, struct rival_op *op)
{
	struct session *s = session;
	struct xseg_kv_io *io = &s->io[op->slot];
	int rc;

	if (s->pieces) {
		move_stream(s, op);
		return;
	}
	io->op = op->put ? XSEG_KV_PUT : XSEG_KV_GET;
	io->flags = op->put && s->db->o->force ? XSEG_KV_FORCE : 0;
	io->item = (struct xseg_kv_item){ .key = op->key, .key_bytes = (uint32_t)op->key_bytes };
	io->item.value = op->value;
	io->item.value_bytes = op->bytes + (op->put ? 0 : STAMP_STEP);
	io->cookie = op;
	op->got = op->value;
	rc = xseg_kv_submit(s->queue, io);
	if (!rc)
		return;
	op->result = rc;
	s->streamed = op;
}

static struct rival_op *kv_next(void *session, struct xseg_error *err)
{
	struct session *s = session;
	struct rival_op *op = s->streamed;
	struct xseg_kv_io *io;

	(void)err;
	s->streamed = NULL;
	if (op)
		return op;
	if (s->at_back == s->nr_back) {
		s->at_back = 0;
		do
			s->nr_back = xseg_kv_wait(s->queue, s->back, FEW, 1000000000);
		while (!s->nr_back);
	}
	io = s->back[s->at_back++];
	op = io->cookie;
	op->result = io->result;
	return op;
}

static const char *kv_name(void)
{
	return "xseg";
}

const struct rival_store rival_store = {
	.name = kv_name, .stream_from = PIECE_BYTES, .open = kv_open, .close = kv_close,
	.begin = kv_begin, .end = kv_end, .submit = kv_submit, .next = kv_next
};
