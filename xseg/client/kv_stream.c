/* kv_stream - large values in pieces: the requests of BEGIN to CLOSE, and what their answers hold.
 *
 *   stream  to     when                                               by
 *   FREE    PUTS   kvd has given a handle for a value to come          change_end (BEGIN)
 *   PUTS    FREE   the value is put, or what was sent is dropped       change_end (COMMIT, ABORT)
 *   FREE    GETS   kvd holds a version                                 change_end (OPEN)
 *   FREE    HAS    the value is not a large one, and was copied        xs_kv_stream_take
 *   FREE    TOLD   a backup told the record of a large value           xseg_kv_record_open
 *   GETS    FREE   kvd was asked to let go                             change_end (CLOSE)
 *   HAS     FREE   it is closed                                        xs_kv_stream_at_once
 *   TOLD    FREE   it is closed                                        xs_kv_stream_at_once
 *
 * An OPEN is a GET of the record, and then, of a large value, a HOLD of that version. If the key
 * has another version by then, it begins anew.
 *
 * Invariants
 *   S1  The sum of a piece is made of the bytes in the request's pages (as W1 of kv_change.c), and
 *       checked when the piece is got. A piece that does not verify is asked for again, and after
 *       LOOKS times it is -EIO.
 *   S2  A value is committed with the sum of each piece that was answered. A piece that was not, or
 *       one that is too short, is -EINVAL before anything is sent.
 *   S3  Of a record's list nothing is believed that does not fit the length that it tells.
 *   S4  A handle that kvd does not know is -ESTALE, whatever was asked of it.
 *
 * Contract: the queue's thread. Nothing here blocks or sends; states of slots are kv_queue.c's.
 * Memory is allocated for sums and for small values, when an operation is submitted or a record
 * has come.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xseg/client/kv_inside.h"
#include "xtypes/xcrc.h"
#include "xtypes/xrecord.h"
#include "xtypes/xstate.h"

#define LOOKS  4u
#define TRIES  32u
#define BIG    32768u
#define UNTOLD INT32_MIN			/* what kvd writes over */

#define TO(s) (1u << KV_STREAM_##s)
static const struct xstates stream_states = {
	.what = "stream of a large value",
	XSTATE(KV_STREAM_, FREE, TO(PUTS) | TO(GETS) | TO(HAS) | TO(TOLD)),
	XSTATE(KV_STREAM_, PUTS, TO(FREE)),
	XSTATE(KV_STREAM_, GETS, TO(FREE)),
	XSTATE(KV_STREAM_, HAS, TO(FREE)),
	XSTATE(KV_STREAM_, TOLD, TO(FREE)),
};
#undef TO

static void stream_set(struct xseg_kv_stream *st, enum kv_stream_state state)
{
	xstate_check(&stream_states, st->state, state);
	st->state = state;
	if (state != KV_STREAM_FREE)
		return;
	free(st->sums);
	free(st->has);
	st->sums = NULL;
	st->has = NULL;
	st->nr_sums = 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- sums -------------------------------------------------------------------------------- */

/* Of a piece: its length above its CRC; 0: it was not sent. */
static uint64_t sum_word(uint32_t crc, uint64_t bytes)
{
	return bytes << 32 | crc;
}

static bool sums_grow(struct xseg_kv_stream *st, uint64_t nr)
{
	uint64_t room = nr < 2 * (uint64_t)st->nr_sums ? 2 * (uint64_t)st->nr_sums : nr, *more;

	if (nr <= st->nr_sums)
		return true;
	more = realloc(st->sums, room * sizeof(*more));
	if (!more)
		return false;
	memset(more + st->nr_sums, 0, (room - st->nr_sums) * sizeof(*more));
	st->sums = more;
	st->nr_sums = (uint32_t)room;
	return true;
}

static uint64_t pieces_of(const struct xseg_kv_stream *st, uint64_t bytes)
{
	return (bytes + st->piece_bytes - 1) / st->piece_bytes;
}

static uint64_t piece_at(const struct xseg_kv_stream *st, uint64_t offset)
{
	return least(st->piece_bytes, st->bytes - offset);
}

bool xs_kv_stream_reserve(struct xseg_kv_stream *st, uint64_t bytes)
{
	return sums_grow(st, pieces_of(st, bytes));
}

/* S2 */
static bool is_complete(const struct xseg_kv_stream *st, uint64_t bytes)
{
	uint64_t nr = pieces_of(st, bytes);

	if (nr > st->nr_sums)
		return false;
	for (uint64_t i = 0; i < nr; i++)
		if (st->sums[i] >> 32 !=
			least(st->piece_bytes, bytes - i * st->piece_bytes))
			return false;
	return true;
}

/* ---- what is asked for ------------------------------------------------------------------- */

static int check_key(const struct xseg_kv_item *item)
{
	return item->key && item->key_bytes && item->key_bytes <= KV_KEY_MAX ? 0 : -EINVAL;
}

static int check_begin(const struct xseg_kv *kv, const struct xseg_kv_io *io)
{
	const struct xseg_kv_item *item = &io->item;

	if (io->stream->state != KV_STREAM_FREE || item->value_bytes == 0)
		return -EINVAL;
	if (!kv->piece_bytes ||
		(item->value_bytes != XSEG_KV_UNKNOWN && item->value_bytes > kv->value_max))
		return -EFBIG;
	return check_key(item);
}

static int check_part(const struct xseg_kv *kv, const struct xseg_kv_io *io)
{
	struct xseg_kv_stream *st = io->stream;
	uint64_t bytes = io->item.value_bytes, max = least(st->bytes, kv->value_max);

	if (st->state != KV_STREAM_PUTS || !io->item.value || bytes == 0 ||
		bytes > st->piece_bytes || io->offset % st->piece_bytes)
		return -EINVAL;
	if (io->offset >= max || bytes > max - io->offset)
		return st->bytes == XSEG_KV_UNKNOWN ? -EFBIG : -EINVAL;
	return sums_grow(st, io->offset / st->piece_bytes + 1) ? 0 : -ENOMEM;
}

static int check_commit(const struct xseg_kv_io *io)
{
	const struct xseg_kv_stream *st = io->stream;
	uint64_t bytes = io->item.value_bytes;

	if (st->state != KV_STREAM_PUTS || bytes == 0 ||
		io->item.condition > XSEG_KV_IF_VERSION)
		return -EINVAL;
	if ((st->bytes != XSEG_KV_UNKNOWN && bytes != st->bytes) || !is_complete(st, bytes))
		return -EINVAL;
	return check_key(&io->item);
}

static int check_end(const struct xseg_kv_io *io)
{
	bool puts = io->stream->state == KV_STREAM_PUTS;

	if (io->stream->state == KV_STREAM_FREE)
		return -EINVAL;
	return puts == (io->op == XSEG_KV_ABORT) ? 0 : -EINVAL;
}

static int check_piece(const struct xseg_kv_io *io)
{
	const struct xseg_kv_stream *st = io->stream;

	return st->state <= KV_STREAM_PUTS || io->offset % st->piece_bytes ||
			       (io->item.value_bytes && !io->item.value)
		       ? -EINVAL
		       : 0;
}

/* Several of these may be out at a time, and nothing else of the stream then. */
static bool is_piece(const struct xseg_kv_io *io)
{
	return io->op == XSEG_KV_PART || io->op == XSEG_KV_PIECE;
}

int xs_kv_stream_check(const struct xseg_kv_queue *q, const struct xseg_kv_io *io)
{
	static const uint32_t flags[] = {
		[XSEG_KV_PART] = XSEG_KV_ONCE | XSEG_KV_GIVE,
		[XSEG_KV_COMMIT] = XSEG_KV_FORCE,
		[XSEG_KV_OPEN] = XSEG_KV_ONCE,
		[XSEG_KV_PIECE] = XSEG_KV_ONCE | XSEG_KV_UNCHECKED,
		[XSEG_KV_CLOSE] = 0
	};

	if (!io->stream || io->stream->q != q || io->flags & ~flags[io->op] || io->stream->busy ||
		(!is_piece(io) && io->stream->out))
		return -EINVAL;
	switch (io->op) {
	case XSEG_KV_BEGIN:
		return check_begin(q->kv, io);
	case XSEG_KV_PART:
		return check_part(q->kv, io);
	case XSEG_KV_COMMIT:
		return check_commit(io);
	case XSEG_KV_OPEN:
		return io->stream->state == KV_STREAM_FREE ? check_key(&io->item) : -EINVAL;
	case XSEG_KV_PIECE:
		return check_piece(io);
	default:
		return check_end(io);
	}
}

void xs_kv_stream_goes(struct xseg_kv_io *io)
{
	if (is_piece(io))
		io->stream->out++;
	else
		io->stream->busy = true;
}

void xs_kv_stream_is_back(struct xseg_kv_io *io)
{
	if (is_piece(io))
		io->stream->out--;
	else
		io->stream->busy = false;
}

/* ---- what needs no request --------------------------------------------------------------- */

static int64_t copy_out(const struct xseg_kv_io *io)
{
	const struct xseg_kv_stream *st = io->stream;
	uint64_t bytes = piece_at(st, io->offset), room = least(bytes, io->item.value_bytes);

	if (room)
		memcpy(io->item.value, st->has + io->offset, room);
	return (int64_t)bytes;
}

bool xs_kv_stream_at_once(struct xseg_kv_io *io)
{
	struct xseg_kv_stream *st = io->stream;

	if (io->op == XSEG_KV_CLOSE && st->state != KV_STREAM_GETS) {
		stream_set(st, KV_STREAM_FREE);
		return true;
	}
	if (io->op != XSEG_KV_PIECE ||
		(st->state != KV_STREAM_HAS && io->offset < st->bytes))
		return false;
	io->result = io->offset < st->bytes ? copy_out(io) : 0;
	return true;
}

/* ---- requests ---------------------------------------------------------------------------- */

static uint32_t sums_bytes(const struct xseg_kv_io *io)
{
	if (io->op != XSEG_KV_COMMIT)
		return 0;
	return (uint32_t)pieces_of(io->stream, io->item.value_bytes) * (uint32_t)sizeof(uint32_t);
}

/* The key of a change, which ABORT and CLOSE have none of. */
static uint32_t key_bytes(const struct xseg_kv_io *io)
{
	return io->op == XSEG_KV_ABORT || io->op == XSEG_KV_CLOSE ? 0 : io->item.key_bytes;
}

static uint32_t sums_place(const struct xseg_kv_io *io)
{
	uint32_t at = (uint32_t)(sizeof(struct kv_batch) + sizeof(struct kv_change)) +
		      key_bytes(io);

	at = (at + 7) / 8 * 8;
	return sums_bytes(io) >= BIG ? (uint32_t)kv_pages(at) * KV_PAGE : at;
}

static uint32_t data_pages(const struct xseg_kv_io *io)
{
	uint64_t bytes = io->op == XSEG_KV_PART ? io->item.value_bytes
						: piece_at(io->stream, io->offset);

	return (uint32_t)kv_pages(bytes);
}

uint32_t xs_kv_stream_pages(const struct xseg_kv_io *io)
{
	if (is_piece(io))
		return data_pages(io) + 1;
	return (uint32_t)kv_pages(sums_place(io) + (uint64_t)sums_bytes(io));
}

static uint8_t kind_of(const struct xseg_kv_io *io)
{
	switch (io->op) {
	case XSEG_KV_BEGIN:
		return KV_BEGIN;
	case XSEG_KV_COMMIT:
		return KV_COMMIT;
	case XSEG_KV_OPEN:
		return KV_HOLD;
	default:
		return KV_DROP;
	}
}

static void fill_commit(const struct xseg_kv_io *io, struct kv_change *c, uint8_t *to)
{
	const struct xseg_kv_item *item = &io->item;
	uint32_t nr = sums_bytes(io) / (uint32_t)sizeof(uint32_t);

	c->condition = (uint8_t)item->condition;
	c->flags = item->ttl_s ? KV_TTL : 0;
	c->expiry = item->ttl_s ? item->ttl_s : item->expiry;
	c->client = item->client;
	c->version = item->condition == XSEG_KV_IF_VERSION ? item->version : 0;
	c->total = item->value_bytes;
	c->value_bytes = sums_bytes(io);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t crc = (uint32_t)io->stream->sums[i];

		memcpy(to + i * sizeof(crc), &crc, sizeof(crc));
	}
}

static void fill_change(struct kv_slot *s, struct xseg_kv_io *io)
{
	struct kv_batch *batch = (struct kv_batch *)s->room->mem;
	struct kv_change *c = (struct kv_change *)(batch + 1);
	const struct xseg_kv_stream *st = io->stream;
	uint8_t *key = (uint8_t *)(c + 1);
	uint32_t at = sums_place(io);

	*batch = (struct kv_batch){ .magic = KV_BATCH_MAGIC, .nr = 1 };
	*c = (struct kv_change){ .kind = kind_of(io), .key_bytes = key_bytes(io),
		.key_at = (uint32_t)(key - s->room->mem), .value_at = at, .handle = st->handle,
		.result = UNTOLD };
	if (io->op == XSEG_KV_BEGIN)
		c->total = io->item.value_bytes == XSEG_KV_UNKNOWN ? 0 : io->item.value_bytes;
	else if (io->op == XSEG_KV_OPEN)
		c->version = st->version;
	else if (io->op == XSEG_KV_COMMIT)
		fill_commit(io, c, s->room->mem + at);
	if (c->key_bytes)
		memcpy(key, io->item.key, c->key_bytes);
	c->data_crc = xcrc32c(xcrc32c(0, key, c->key_bytes), s->room->mem + at, c->value_bytes);
	s->r->size = at + c->value_bytes;
	s->r->op = XSEG_OP_WRITE;
	s->r->flags = io->flags & XSEG_KV_FORCE ? XSEG_REQ_FUA : 0;
	s->r->nr_pages = (uint16_t)kv_pages(s->r->size);
	memcpy(s->r->page, s->room->page, s->r->nr_pages * sizeof(s->r->page[0]));
}

/* S1 */
static void fill_part(struct kv_slot *s, struct xseg_kv_io *io)
{
	uint32_t n = data_pages(io), bytes = (uint32_t)io->item.value_bytes;
	struct kv_part part = { .magic = KV_PART_MAGIC, .handle = io->stream->handle,
		.offset = io->offset };
	uint8_t *mem = s->room->mem;

	if (io->item.value)			/* else XSEG_KV_GIVE */
		memcpy(mem, io->item.value, bytes);
	memset(mem + bytes, 0, n * KV_PAGE - bytes);
	memcpy(mem + n * KV_PAGE, &part, sizeof(part));
	io->own.place = sum_word(xcrc32c(0, mem, bytes), bytes);
	s->r->op = XSEG_OP_WRITE;
	s->r->flags = io->flags & XSEG_KV_ONCE ? XSEG_REQ_ONCE : 0;
	s->r->size = n * KV_PAGE;
	s->r->nr_pages = (uint16_t)(n + 1);
	memcpy(s->r->page, s->room->page, s->r->nr_pages * sizeof(s->r->page[0]));
}

static void fill_piece(struct kv_slot *s, struct xseg_kv_io *io)
{
	const struct xseg_kv_stream *st = io->stream;
	bool told = st->state == KV_STREAM_TOLD;
	struct kv_query query = { .magic = KV_QUERY_MAGIC, .kind = KV_PIECE,
		.held = told ? 0 : st->handle, .offset = io->offset,
		.zone = told ? st->zone : 0, .cursor = told ? st->cursor : 0 };
	uint32_t n = data_pages(io);

	memcpy(s->room->mem + n * KV_PAGE, &query, sizeof(query));
	io->own.asked = n;
	s->r->op = XSEG_OP_READ;
	s->r->flags = XSEG_REQ_LOAN | (io->flags & XSEG_KV_ONCE ? XSEG_REQ_ONCE : 0);
	s->r->size = n * KV_PAGE;
	s->r->nr_pages = (uint16_t)(n + 1);
	memcpy(s->r->page, s->room->page, s->r->nr_pages * sizeof(s->r->page[0]));
}

void xs_kv_stream_fill(struct xseg_kv_queue *q, struct kv_slot *s, struct xseg_kv_io *io)
{
	s->r->volume = q->kv->id;
	s->r->offset = 0;
	s->r->hash = io->stream->handle;
	if (io->op == XSEG_KV_PART)
		fill_part(s, io);
	else if (io->op == XSEG_KV_PIECE)
		fill_piece(s, io);
	else
		fill_change(s, io);
}

/* ---- answers ----------------------------------------------------------------------------- */

/* S4 */
static int64_t error_of(int64_t result)
{
	return result == -EBADF ? -ESTALE : result;
}

/* The outcome of a change is input. */
static int64_t outcome(const struct kv_slot *s, struct kv_change *c)
{
	const struct kv_batch *batch = (const struct kv_batch *)s->room->mem;

	if (s->r->result < 0)
		return s->r->result;
	memcpy(c, batch + 1, sizeof(*c));
	return c->result == UNTOLD || c->result > 0 ? -EPROTO : error_of(c->result);
}

/* The key has another version than the one that was read. */
static enum kv_step open_again(struct xseg_kv_io *io)
{
	if (++io->own.tries > TRIES) {
		io->result = -EAGAIN;
		return KV_DONE;
	}
	io->own.step = 0;
	io->own.pages = 0;
	return KV_WAIT;
}

static enum kv_step open_end(struct xseg_kv_io *io, const struct kv_change *c)
{
	struct xseg_kv_stream *st = io->stream;

	if (io->result == 0) {
		st->handle = c->number;
		stream_set(st, KV_STREAM_GETS);
		io->result = (int64_t)st->bytes;
		return KV_DONE;
	}
	free(st->sums);
	st->sums = NULL;
	st->nr_sums = 0;
	if (io->result == -ESTALE || io->result == -EINVAL)
		return open_again(io);
	return KV_DONE;
}

static enum kv_step change_end(struct kv_slot *s)
{
	struct xseg_kv_io *io = s->io;
	struct xseg_kv_stream *st = io->stream;
	struct kv_change c = { 0 };

	io->result = outcome(s, &c);
	io->item.result = (int32_t)io->result;
	if (io->op == XSEG_KV_OPEN)
		return open_end(io, &c);
	if (io->op == XSEG_KV_BEGIN && io->result == 0) {
		st->handle = c.number;
		st->bytes = io->item.value_bytes;
		stream_set(st, KV_STREAM_PUTS);
	} else if (io->op == XSEG_KV_COMMIT) {
		if (io->result == 0 || io->result == -EEXIST)
			io->item.version = c.new_version;
		if (io->result == 0)
			stream_set(st, KV_STREAM_FREE);
	} else if (io->op == XSEG_KV_ABORT || io->op == XSEG_KV_CLOSE) {
		if (io->result == -ESTALE)
			io->result = 0;		/* it is let go already */
		stream_set(st, KV_STREAM_FREE);
	}
	return KV_DONE;
}

static enum kv_step piece_end(struct xseg_kv_queue *q, struct kv_slot *s)
{
	struct xseg_kv_io *io = s->io;
	struct xseg_kv_stream *st = io->stream;
	uint32_t bytes = (uint32_t)piece_at(st, io->offset);
	uint32_t crc = (uint32_t)st->sums[io->offset / st->piece_bytes];

	io->result = error_of(s->r->result);
	if (io->result < 0)
		return KV_DONE;
	if (io->result < bytes) {
		io->result = -EPROTO;
		return KV_DONE;
	}
	io->result = bytes;
	if (io->flags & XSEG_KV_UNCHECKED)
		xs_kv_answer_copy(q, s, 0, io->item.value,
			(uint32_t)least(bytes, io->item.value_bytes));
	else if (xs_kv_answer_sum(q, s, 0, 0, bytes, io->item.value, io->item.value_bytes) != crc) {
		if (++io->own.looks < LOOKS)
			return KV_AGAIN;
		io->result = -EIO;
	}
	return KV_DONE;
}

enum kv_step xs_kv_stream_end(struct xseg_kv_queue *q, struct kv_slot *s)
{
	struct xseg_kv_io *io = s->io;

	if (io->op == XSEG_KV_PIECE)
		return piece_end(q, s);
	if (io->op != XSEG_KV_PART)
		return change_end(s);
	io->result = error_of(s->r->result);
	if (io->result >= 0) {
		io->result = 0;
		io->stream->sums[io->offset / io->stream->piece_bytes] = io->own.place;
	}
	return KV_DONE;
}

/* ---- records ----------------------------------------------------------------------------- */

/* S3 */
static int take_list(struct xseg_kv_stream *st, const struct kv_large *large, uint64_t list_bytes)
{
	if (large->bytes == 0 || large->bytes > KV_VALUE_MAX || large->piece_bytes == 0 ||
		large->piece_bytes > KV_PIECE_BYTES || large->piece_bytes % KV_PAGE)
		return -EPROTO;
	st->bytes = large->bytes;
	st->piece_bytes = large->piece_bytes;
	if (large->nr_pieces != pieces_of(st, large->bytes) ||
		list_bytes < sizeof(*large) + large->nr_pieces * (uint64_t)sizeof(uint32_t))
		return -EPROTO;
	return sums_grow(st, large->nr_pieces) ? 0 : -ENOMEM;
}

/* An OPEN has got the record of a large value. */
static int64_t take_large(struct xseg_kv_queue *q, struct kv_slot *s, const struct xrecord *rec)
{
	struct xseg_kv_stream *st = s->io->stream;
	struct kv_large large;
	uint32_t crc, at = s->value_at;
	int rc;

	if (rec->value_bytes < sizeof(large))
		return -EPROTO;
	xs_kv_answer_copy(q, s, at, &large, sizeof(large));
	rc = take_list(st, &large, rec->value_bytes);
	for (uint32_t i = 0; i < large.nr_pieces && !rc; i++) {
		xs_kv_answer_copy(q, s, at + (uint32_t)(sizeof(large) + i * sizeof(crc)), &crc,
			sizeof(crc));
		st->sums[i] = crc;
	}
	return rc ? rc : 0;
}

int64_t xs_kv_stream_take(struct xseg_kv_queue *q, struct kv_slot *s, const struct xrecord *rec)
{
	struct xseg_kv_stream *st = s->io->stream;

	st->version = rec->version;
	st->expiry = rec->expiry;
	st->client = rec->client;
	if (rec->flags & XRECORD_LARGE)
		return take_large(q, s, rec);
	st->has = malloc(rec->value_bytes + 1);
	if (!st->has)
		return -ENOMEM;
	xs_kv_answer_copy(q, s, s->value_at, st->has, rec->value_bytes);
	st->bytes = rec->value_bytes;
	st->piece_bytes = q->kv->piece_bytes ? (uint32_t)q->kv->piece_bytes : KV_PIECE_BYTES;
	stream_set(st, KV_STREAM_HAS);
	return rec->value_bytes;
}

int xseg_kv_record_open(struct xseg_kv_queue *q, const struct xseg_kv_io *io,
	const struct xseg_kv_record *record, struct xseg_kv_stream *st)
{
	const uint8_t *sums = (const uint8_t *)record->list + sizeof(struct kv_large);
	struct kv_large large;
	uint32_t crc;
	int rc;

	if (!record->list || record->list_bytes < sizeof(large) || st->q != q ||
		st->state != KV_STREAM_FREE)
		return -EINVAL;
	memcpy(&large, record->list, sizeof(large));
	rc = take_list(st, &large, record->list_bytes);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < large.nr_pieces; i++) {
		memcpy(&crc, sums + i * sizeof(crc), sizeof(crc));
		st->sums[i] = crc;
	}
	st->zone = large.zone;
	st->cursor = io->cursor;
	st->version = record->version;
	st->expiry = record->expiry;
	st->client = record->client;
	stream_set(st, KV_STREAM_TOLD);
	return 0;
}

/* ---- streams ----------------------------------------------------------------------------- */

struct xseg_kv_stream *xseg_kv_stream_create(struct xseg_kv_queue *q)
{
	struct xseg_kv_stream *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	st->q = q;
	st->piece_bytes = q->kv->piece_bytes ? (uint32_t)q->kv->piece_bytes : KV_PIECE_BYTES;
	return st;
}

void xseg_kv_stream_destroy(struct xseg_kv_stream *st)
{
	if (!st)
		return;
	free(st->sums);
	free(st->has);
	free(st);
}

void xseg_kv_stream_item(const struct xseg_kv_stream *st, struct xseg_kv_item *item)
{
	item->value_bytes = st->bytes;
	item->version = st->version;
	item->expiry = st->expiry;
	item->client = st->client;
}

uint64_t xseg_kv_stream_piece(const struct xseg_kv_stream *st)
{
	return st->piece_bytes;
}
