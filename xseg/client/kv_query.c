/* kv_query - queries: the request of each, and what the answer to a GET holds.
 *
 * A query is a READ. The pages of the answer come first in its list, then the pages with the query
 * and the key (kv_wire.h). They are the last ones of the slot's room, so that the answer, which is
 * longer than the key, begins at the room's begin.
 *
 * Invariants
 *   Q1  Of an answer nothing is believed that does not verify: header, key and value by their CRCs
 *       (xtypes/xrecord.h), the key by comparing it, lengths against the pages that were asked for.
 *   Q2  A record that does not verify is asked for again with KV_LOOK, so that kvd reads it. After
 *       LOOKS times it is -EIO: it is never told that it is not there. So is one whose pages the
 *       store cannot read: a bad one may be beside the record.
 *   Q3  Pages that are too few are asked for again, with what kvd says that it takes.
 *
 * Contract: the queue's thread. Nothing here blocks, allocates or sends; states are kv_queue.c's.
 */
#include <errno.h>
#include <string.h>

#include "xseg/client/kv_inside.h"
#include "xtypes/xcrc.h"
#include "xtypes/xrecord.h"

#define LOOKS 4u
#define TRIES 32u
/* of a scan: hundreds of keys, each of which kvd may have to read from the store */
#define SCAN_PAGES 4u

/* ---- the request ------------------------------------------------------------------------- */

static uint32_t head_pages(const struct xseg_kv_io *io)
{
	return (uint32_t)kv_pages(sizeof(struct kv_query) + io->item.key_bytes);
}

int xs_kv_query_check(const struct xseg_kv *kv, const struct xseg_kv_io *io)
{
	static const uint32_t flags[] = {
		[XSEG_KV_GET] = XSEG_KV_LOAN | XSEG_KV_UNCHECKED | XSEG_KV_ONCE,
		[XSEG_KV_EXISTS] = 0,
		[XSEG_KV_SCAN] = XSEG_KV_ONCE,
		[XSEG_KV_BACKUP] = 0
	};
	const struct xseg_kv_item *item = &io->item;

	(void)kv;
	if (io->flags & ~flags[io->op] || item->key_bytes > KV_KEY_MAX ||
		(item->key_bytes ? !item->key : io->op < XSEG_KV_SCAN))
		return -EINVAL;
	if (io->op == XSEG_KV_GET && io->flags & XSEG_KV_LOAN ? item->value != NULL
							      : item->value_bytes && !item->value)
		return -EINVAL;
	if (io->op == XSEG_KV_BACKUP &&
		(item->key_bytes || item->value_bytes < XSEG_KV_BACKUP_BYTES))
		return -EINVAL;
	return io->op == XSEG_KV_SCAN && item->value_bytes < KV_PAGE ? -EINVAL : 0;
}

static uint32_t least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* Pages of the answer that are asked for at first. */
static uint32_t first_guess(const struct xseg_kv_queue *q, const struct xseg_kv_io *io)
{
	uint32_t head = head_pages(io), room = q->room_pages > head ? q->room_pages - head : 1;

	switch (io->op) {
	case XSEG_KV_GET:
	case XSEG_KV_OPEN:
		return xs_kv_guess(&q->guess, xseg_hash(io->item.key, io->item.key_bytes));
	case XSEG_KV_SCAN:
		return least(io->item.value_bytes / KV_PAGE, least(room, SCAN_PAGES));
	case XSEG_KV_BACKUP:
		return XSEG_KV_BACKUP_BYTES / KV_PAGE;
	default:
		return 1;
	}
}

uint32_t xs_kv_query_pages(const struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	uint32_t head = head_pages(io);

	if (!io->own.pages)
		io->own.pages = first_guess(q, io);
	io->own.pages = least(io->own.pages, KV_PAGES - head);
	return io->own.pages + head;
}

static void write_query(const struct xseg_kv_io *io, uint8_t *to)
{
	static const uint8_t kinds[] = {
		[XSEG_KV_GET] = KV_GET, [XSEG_KV_EXISTS] = KV_EXISTS,
		[XSEG_KV_SCAN] = KV_SCAN, [XSEG_KV_BACKUP] = KV_BACKUP,
		[XSEG_KV_OPEN] = KV_GET
	};
	struct kv_query query = { .magic = KV_QUERY_MAGIC, .kind = kinds[io->op],
		.key_bytes = io->item.key_bytes, .cursor = io->cursor };

	if (query.kind == KV_GET)
		query.version = io->item.version;
	if (io->own.looks) {
		query.flags |= KV_LOOK;
		query.zone = io->own.zone;
		query.place = (uint32_t)io->own.place;
	}
	memcpy(to, &query, sizeof(query));
	if (io->item.key_bytes)
		memcpy(to + sizeof(query), io->item.key, io->item.key_bytes);
}

void xs_kv_query_fill(struct xseg_kv_queue *q, struct kv_slot *s, struct xseg_kv_io *io)
{
	const struct kv_room *room = s->room;
	uint32_t head = head_pages(io), at = room->pages - head, n = io->own.pages;
	struct xreq *r = s->r;

	write_query(io, room->mem + (size_t)at * KV_PAGE);
	io->own.asked = n;
	r->op = XSEG_OP_READ;
	r->flags = XSEG_REQ_LOAN | (io->flags & XSEG_KV_ONCE ? XSEG_REQ_ONCE : 0);
	r->volume = q->kv->id;
	r->offset = 0;
	r->size = n * KV_PAGE;
	r->nr_pages = (uint16_t)(n + head);
	r->hash = xseg_hash(io->item.key, io->item.key_bytes);
	memcpy(r->page, room->page, n * sizeof(r->page[0]));
	memcpy(r->page + n, room->page + at, head * sizeof(r->page[0]));
}

/* ---- the pages of an answer -------------------------------------------------------------- */

/* The bytes from `at` on to the end of the page, at most `left`. */
static const uint8_t *piece_at(struct xseg_kv_queue *q, const struct kv_slot *s, uint32_t at,
	uint32_t left, uint32_t *bytes)
{
	const uint8_t *page = xseg_req_page(q->client.seg, s->r, at / KV_PAGE);

	*bytes = least(KV_PAGE - at % KV_PAGE, left);
	return page + at % KV_PAGE;
}

void xs_kv_answer_copy(
	struct xseg_kv_queue *q, const struct kv_slot *s, uint32_t at, void *to, uint32_t bytes)
{
	uint8_t *out = to;
	uint32_t n;

	for (; bytes; at += n, out += n, bytes -= n) {
		const uint8_t *from = piece_at(q, s, at, bytes, &n);

		memcpy(out, from, n);
	}
}

static bool is_key(struct xseg_kv_queue *q, const struct kv_slot *s, uint32_t at)
{
	const uint8_t *key = s->io->item.key;
	uint32_t n, left = s->io->item.key_bytes;

	for (; left; at += n, key += n, left -= n) {
		const uint8_t *from = piece_at(q, s, at, left, &n);

		if (memcmp(from, key, n) != 0)
			return false;
	}
	return true;
}

uint32_t xs_kv_answer_sum(struct xseg_kv_queue *q, const struct kv_slot *s, uint32_t crc,
	uint32_t at, uint32_t bytes, uint8_t *to, uint64_t room)
{
	uint32_t n, copied;

	for (; bytes; at += n, bytes -= n) {
		const uint8_t *from = piece_at(q, s, at, bytes, &n);

		copied = least(n, room);
		if (copied)
			crc = xcrc32c_copy(crc, to, from, copied);
		if (copied < n)
			crc = xcrc32c(crc, from + copied, n - copied);
		if (copied)
			to += copied;
		room -= copied;
	}
	return crc;
}

/* ---- GET --------------------------------------------------------------------------------- */

/* What kvd says of the record (kv_wire.h). */
struct noted {
	uint64_t zone, time, epoch;
	uint32_t place, bytes, begin;
};

static struct noted notes_of(struct xseg_kv_queue *q, const struct kv_slot *s)
{
	uint64_t place = xseg_req_note(q->client.seg, s->r, KV_NOTE_PLACE),
		 epoch = xseg_req_note(q->client.seg, s->r, KV_NOTE_EPOCH);

	return (struct noted){ .place = (uint32_t)(place >> 32), .bytes = (uint32_t)place,
		.zone = xseg_req_note(q->client.seg, s->r, KV_NOTE_ZONE),
		.time = xseg_req_note(q->client.seg, s->r, KV_NOTE_TIME),
		.epoch = epoch >> 24, .begin = (uint32_t)(epoch & 0xffffff) };
}

/* What a larger record needs comes while its first pages are read. */
#define AHEAD_BYTES 8192u
#define LINE	    64u

void xs_kv_get_prefetch(struct xseg_kv_queue *q, const struct kv_slot *s, bool all)
{
	struct noted note = notes_of(q, s);
	uint64_t end = s->io->own.asked * (uint64_t)KV_PAGE;
	uint32_t n, bytes = note.begin < end ? least(note.bytes, end - note.begin) : 0;

	if (s->r->result <= 0 || (all && s->io->flags & XSEG_KV_UNCHECKED && !s->io->item.value))
		return;
	bytes = least(bytes, all ? AHEAD_BYTES : 2 * LINE);
	for (uint32_t at = note.begin; bytes; at += n, bytes -= n) {
		const uint8_t *from = piece_at(q, s, at, bytes, &n);

		for (uint32_t i = 0; i < n; i += LINE)
			__builtin_prefetch(from + i, 0, 2);
	}
}

static uint32_t pages_of(uint32_t begin, uint32_t bytes)
{
	return (uint32_t)kv_pages((uint64_t)begin % KV_PAGE + bytes);
}

/* Q1, but for the CRC of key and value. */
static bool header_of(struct xseg_kv_queue *q, const struct kv_slot *s, const struct noted *note,
	struct xrecord *rec)
{
	const struct xseg_kv_item *item = &s->io->item;
	uint8_t head[XRECORD_HEADER_BYTES];
	uint64_t end = (uint64_t)note->begin + note->bytes;

	if (note->bytes < sizeof(head) || note->begin % XRECORD_ALIGN ||
		end > s->io->own.asked * (uint64_t)KV_PAGE || (uint64_t)s->r->result < end)
		return false;
	xs_kv_answer_copy(q, s, note->begin, head, sizeof(head));
	if (!xrecord_decode(head, xrecord_seed(q->kv->uuid, note->zone, note->epoch), note->place,
		    note->bytes, rec))
		return false;
	return rec->type == XRECORD_VALUE && rec->key_bytes == item->key_bytes &&
	       is_key(q, s, note->begin + xrecord_data_at(note->place, rec->key_bytes, rec->flags));
}

/* The length of a large value. What is not lent and has memory is got by kv_whole.c, of which
 * own.total tells. */
static int64_t large_of(struct xseg_kv_queue *q, struct kv_slot *s, const struct xrecord *rec)
{
	struct xseg_kv_io *io = s->io;
	struct kv_large large;

	if (rec->value_bytes < sizeof(large))
		return -EPROTO;
	xs_kv_answer_copy(q, s, s->value_at, &large, sizeof(large));
	if (large.bytes > KV_VALUE_MAX)
		return -EPROTO;
	if (io->flags & XSEG_KV_LOAN)
		return -EFBIG;
	io->own.total = io->item.value_bytes ? large.bytes : 0;
	return (int64_t)large.bytes;
}

/* Copies the value out. False: key and value do not verify. */
static bool take_data(struct xseg_kv_queue *q, struct kv_slot *s, const struct xrecord *rec)
{
	const struct xseg_kv_item *item = &s->io->item;
	bool large = rec->flags & XRECORD_LARGE;
	uint64_t room = large || s->io->op == XSEG_KV_OPEN || s->io->flags & XSEG_KV_LOAN
				? 0
				: item->value_bytes;
	uint32_t crc;

	if (s->io->flags & XSEG_KV_UNCHECKED && !large) {
		if (room)
			xs_kv_answer_copy(
				q, s, s->value_at, item->value, least(rec->value_bytes, room));
		return true;
	}
	crc = xs_kv_answer_sum(q, s, 0, s->value_at - rec->key_bytes, rec->key_bytes, NULL, 0);
	crc = xs_kv_answer_sum(q, s, crc, s->value_at, rec->value_bytes, item->value, room);
	return crc == rec->data_crc;
}

/* Of a record that is what it should be. */
static int64_t result_of(struct xseg_kv_queue *q, struct kv_slot *s, const struct noted *note,
	const struct xrecord *rec)
{
	uint64_t wanted = s->io->item.version;

	if (rec->expiry && rec->expiry <= note->time)
		return -ENOENT;
	if (wanted && rec->version != wanted)
		return -ESTALE;
	if (s->io->op == XSEG_KV_OPEN)
		return xs_kv_stream_take(q, s, rec);
	return rec->flags & XRECORD_LARGE ? large_of(q, s, rec) : (int64_t)rec->value_bytes;
}

/* False: it does not verify. */
static bool take_record(struct xseg_kv_queue *q, struct kv_slot *s, const struct noted *note)
{
	struct xseg_kv_io *io = s->io;
	struct xseg_kv_item *item = &io->item;
	struct xrecord rec;

	if (!header_of(q, s, note, &rec))
		return false;
	s->value_at = note->begin + rec.key_bytes +
		      xrecord_data_at(note->place, rec.key_bytes, rec.flags);
	s->value_bytes = rec.value_bytes;
	if (!take_data(q, s, &rec))
		return false;
	io->result = result_of(q, s, note, &rec);
	item->version = rec.version;
	item->expiry = rec.expiry;
	item->client = rec.client;
	return true;
}

/* Q3 */
static enum kv_step ask_for_more(struct kv_slot *s, uint32_t pages)
{
	struct xseg_kv_io *io = s->io;

	if (++io->own.tries > TRIES) {
		io->result = -EAGAIN;
		return KV_DONE;
	}
	if (pages + head_pages(io) > KV_PAGES || pages <= io->own.asked) {
		io->result = -EPROTO;
		return KV_DONE;
	}
	io->own.pages = pages;
	return pages + head_pages(io) > s->room->pages ? KV_WAIT : KV_AGAIN;
}

/* Q2 */
static enum kv_step look(struct kv_slot *s, const struct noted *note)
{
	struct xseg_kv_io *io = s->io;

	if (++io->own.looks > LOOKS) {
		io->result = -EIO;
		return KV_DONE;
	}
	io->own.zone = note->zone;
	io->own.place = note->place;
	return KV_AGAIN;
}

static enum kv_step get_end(struct xseg_kv_queue *q, struct kv_slot *s)
{
	struct noted note = notes_of(q, s);
	struct xseg_kv_io *io = s->io;

	if (s->r->result == -EMSGSIZE)
		return ask_for_more(s, pages_of(note.place, note.bytes));
	if (s->r->result == -EIO && !io->own.looks)
		return look(s, &note);		/* a page beside the record may be bad */
	if (s->r->result < 0) {
		io->result = s->r->result;
		return KV_DONE;
	}
	if (!take_record(q, s, &note))
		return look(s, &note);
	xs_kv_learn(&q->guess, s->r->hash, pages_of(note.begin, note.bytes));
	if (io->op == XSEG_KV_GET)
		return io->result > 0 && io->own.total ? KV_WHOLE : KV_DONE;
	if (io->result < 0 || io->stream->state != KV_STREAM_FREE)
		return KV_DONE;
	io->own.step = 1;			/* of a large value: it is to be held */
	return KV_WAIT;
}

/* ---- other queries ----------------------------------------------------------------------- */

/* The next key alone is longer than the answer: as much as the caller's memory takes. */
static enum kv_step scan_more(struct kv_slot *s)
{
	struct xseg_kv_io *io = s->io;
	uint32_t pages = least(io->item.value_bytes / KV_PAGE, KV_PAGES - head_pages(io));

	if (pages > io->own.asked)
		return ask_for_more(s, pages);
	io->result = -EMSGSIZE;
	return KV_DONE;
}

enum kv_step xs_kv_query_end(struct xseg_kv_queue *q, struct kv_slot *s)
{
	struct xseg_kv_io *io = s->io;

	if (io->op == XSEG_KV_GET || io->op == XSEG_KV_OPEN)
		return get_end(q, s);
	if (io->op == XSEG_KV_SCAN && s->r->result == -EMSGSIZE)
		return scan_more(s);
	if (s->r->result < 0)
		io->result = s->r->result;
	else if (io->op == XSEG_KV_EXISTS)
		io->result = xs_kv_take_exists(q, s);
	else
		io->result = io->op == XSEG_KV_SCAN ? xs_kv_take_scan(q, s)
						    : xs_kv_take_backup(q, s);
	return KV_DONE;
}

/* ---- data that the caller reads where it is ---------------------------------------------- */

uint32_t xseg_kv_data(struct xseg_kv_queue *q, const struct xseg_kv_io *io, struct iovec *piece,
	uint32_t max)
{
	const struct kv_slot *s = io->own.slot;
	uint32_t at, left, n, nr = 0;

	if (!s || io->op != XSEG_KV_GET || xs_is_forked(q->client.seg))
		return 0;
	at = s->value_at;
	for (left = s->value_bytes; left; at += n, left -= n) {
		uint8_t *from = (uint8_t *)(uintptr_t)piece_at(q, s, at, left, &n);

		if (nr && (uint8_t *)piece[nr - 1].iov_base + piece[nr - 1].iov_len == from)
			piece[nr - 1].iov_len += n;
		else if (nr < max)
			piece[nr++] = (struct iovec){ from, n };
		else
			break;
	}
	return nr;
}
