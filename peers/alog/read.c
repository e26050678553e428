/* read - a range of a zone, or both heads, are read into the scratch.
 *
 * Contract: one reading at a time, for the job that has the scratch; then() is called when all of
 * it is there, never before the call returns. Ranges that the store does not have read as zeroes.
 *
 * A piece that cannot be read, or comes short, is tried again page by page. If pages fail again,
 * all is read anew after a pause, as a store may fail for a while. What is missing after PAUSES of
 * them, some 6 s, is zeroes and counted in `bad`. A store with many bad places is not waited for
 * each time: behind such a reading there is one pause, for a minute.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "peers/alog/inside.h"

#define PAUSES	   6u
#define COPY_PIECE (16u * ALOG_PAGE)
#define A_WHILE_NS 60000000000ull

/* Requests of callers wait while the peer below copies a piece. At an opening there are none. */
static uint32_t piece_of(const struct alog *l)
{
	return l->job == JOB_COPY ? COPY_PIECE : ALOG_IO_PAGES * ALOG_PAGE;
}

void read_zone(struct alog *l, uint64_t zone, uint32_t from, uint32_t to,
	void (*then)(struct alog *l))
{
	assert(!l->reader.active && from % ALOG_PAGE == 0 && to % ALOG_PAGE == 0);
	l->images++;
	l->reader = (struct reader){ .then = then, .zone = zone, .from = from, .next = from,
		.to = to, .piece = piece_of(l), .active = true,
		.pin = zone ? tail_pin(l, zone) : UINT64_MAX };
}

/* A store reads what is not there as zeroes. */
void read_exists(struct alog *l, uint64_t zone, void (*then)(struct alog *l))
{
	read_zone(l, zone, 0, ALOG_PAGE, then);
	l->reader.asks = true;
}

/* One behind the other in the pages of the heads. */
void read_heads(struct alog *l, void (*then)(struct alog *l))
{
	read_zone(l, 0, 0, 2 * head_bytes(&l->cfg), then);
	l->reader.head = true;
	l->reader.piece = head_bytes(&l->cfg);
}

static uint8_t *room(const struct alog *l, uint32_t from)
{
	return (l->reader.head ? l->head_page : l->scratch) + from;
}

static void target(struct alog *l, struct io *io, uint32_t from)
{
	uint32_t copy;

	io_target(l, io, l->reader.zone);
	io->pub.offset = from;
	if (!l->reader.head)
		return;
	copy = from / head_bytes(&l->cfg);
	head_target(l, io, copy);
	io->pub.offset = from % head_bytes(&l->cfg);
}

static void send_piece(struct alog *l, uint32_t from, uint32_t bytes)
{
	struct io *io = io_get(l, IO_READ);

	assert(io);
	io->pub.op = XSEG_OP_READ;
	io->pub.once = true;
	io->from = from;
	target(l, io, from);
	if (l->reader.asks)
		io->pub.op = XSEG_OP_INFO;
	else
		io_pages(l, io, room(l, from), bytes);
	l->reader.out++;
	io_send(l, io);
}

bool read_stop(struct alog *l)
{
	if (l->reader.active && l->reader.out)
		return false;
	l->reader.active = false;
	return true;
}

/* Some pages are missing. False: they are given up. */
static bool read_later(struct alog *l)
{
	struct reader *r = &l->reader;
	bool lately = l->gave_up_ns && l->now - l->gave_up_ns < A_WHILE_NS;

	if (r->tries >= (lately ? 1 : PAUSES)) {
		l->gave_up_ns = l->now;
		return false;
	}
	r->again_ns = l->now + (ALOG_RETRY_NS << r->tries++);
	r->bad = 0;
	r->absent = false;
	r->next = r->from;
	r->pin = UINT64_MAX;			/* nothing of it counts until it is read */
	return true;
}

static bool is_time(struct alog *l)
{
	struct reader *r = &l->reader;

	if (l->now < r->again_ns)
		return false;
	if (r->again_ns && r->zone)
		r->pin = tail_pin(l, r->zone);
	r->again_ns = 0;
	return true;
}

static bool is_wanted(const struct reader *r, uint32_t from)
{
	uint32_t page = from / ALOG_PAGE;

	return !r->pages || r->pages[page / 64] >> page % 64 & 1;
}

/* The bytes that are read next, at most a piece. 0: none is left. */
static uint32_t next_piece(struct reader *r)
{
	uint32_t bytes = 0;

	while (r->next < r->to && !is_wanted(r, r->next))
		r->next += ALOG_PAGE;
	if (!r->pages)
		return r->to - r->next < r->piece ? r->to - r->next : r->piece;
	while (bytes < r->piece && r->next + bytes < r->to && is_wanted(r, r->next + bytes))
		bytes += ALOG_PAGE;
	return bytes;
}

bool read_pump(struct alog *l)
{
	struct reader *r = &l->reader;
	bool did = false;
	uint32_t bytes;

	if (!r->active || !is_time(l))
		return false;
	while (r->out < ALOG_READ_IOS && l->io_free && (bytes = next_piece(r))) {
		send_piece(l, r->next, bytes);
		r->next += bytes;
		did = true;
	}
	if (r->next < r->to || r->out)
		return did;
	if (r->bad && read_later(l))
		return true;
	r->active = false;
	r->then(l);
	return true;
}

/* From there on a page at a time. Pieces behind it that are out come twice, which does no harm. */
static void again_by_pages(struct alog *l, uint32_t from)
{
	l->reader.piece = ALOG_PAGE;
	if (l->reader.next > from)
		l->reader.next = from;
}

void read_done(struct alog *l, struct io *io, int64_t result)
{
	uint32_t from = (uint32_t)io->from, bytes = io->pub.size;
	uint64_t have = result > 0 ? (uint64_t)result : 0;

	l->reader.out--;
	io_put(l, io);
	if (have < bytes)
		memset(room(l, from) + have, 0, bytes - have);
	l->reader.absent |= result == -ENOENT;
	if (result == bytes || result == -ENOENT)
		return;
	if (bytes > ALOG_PAGE && !l->reader.head)
		again_by_pages(l, from);
	else
		l->reader.bad++;
}

/* ---- from the tail ---- */

/* The page of the stream that has this page of a zone. UINT64_MAX: it is not in the ring. */
static uint64_t find_page(const struct alog *l, const struct zone *z, uint32_t page)
{
	uint64_t k = z->base + page;

	if (z->old) {
		if (l->s.written >= l->s.recovered)
			return UINT64_MAX;
		for (k = tail_first(l); k * ALOG_PAGE < l->s.recovered; k++)
			if (tail_slot(l, k)->zone == z->id && tail_slot(l, k)->page == page)
				return k;
		return UINT64_MAX;
	}
	if (k < tail_first(l) || k >= l->s.next_page || tail_slot(l, k)->zone != z->id ||
		tail_slot(l, k)->page != page)
		return UINT64_MAX;
	return k;
}

bool alog_read_tail(struct alog *l, uint64_t zone, uint32_t from, uint32_t bytes, void *to)
{
	const struct zone *z = zone_find(l, zone);
	uint8_t *data = to;
	uint32_t part;
	uint64_t k;

	for (; bytes; bytes -= part, from += part, data += part) {
		k = z ? find_page(l, z, from / ALOG_PAGE) : UINT64_MAX;
		if (k == UINT64_MAX)
			return false;
		part = ALOG_PAGE - from % ALOG_PAGE;
		if (part > bytes)
			part = bytes;
		memcpy(data, tail_content(l, k) + from % ALOG_PAGE, part);
	}
	return true;
}

uint64_t alog_zone_epoch(struct alog *l, uint64_t zone)
{
	const struct zone *z = zone_find(l, zone);

	return z ? z->epoch : 0;
}

const uint8_t *alog_uuid(const struct alog *l)
{
	return l->cfg.uuid;
}
