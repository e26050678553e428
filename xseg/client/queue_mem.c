/* queue_mem - where the data of a queue's I/Os is: the caller's memory, the slots' rooms, lent
 * pages.
 *
 * A request lists pages, in which data is as far from a page's begin as it is in the volume. Memory
 * of the segment that the queue has taken for its caller consists of such pages. If it is aligned
 * like the range it is listed as it is. All other data is copied, once:
 *
 *   READ    from the pages that the answer lends, or from the slot's room where it lends none
 *   WRITE   into the slot's room or, with XSEG_IO_GIVE, into pages that were lent for that
 *
 * Invariants
 *   M1  Only memory of the queue's own regions is listed. Data at any other address of the segment,
 *       a page on loan for instance, is copied.
 *   M2  A slot's room has copy_bytes, from its begin on: parts that are copied end so that offset %
 *       4096 + size fits.
 *
 * Contract: the queue's thread. Nothing here blocks but xs_region_add(), which takes the control
 * lock.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "xseg/client/queue.h"

#define LINE_BYTES 64u

/* ---- memory of the queue's --------------------------------------------------------------- */

void *xseg_queue_buffer(struct xseg_queue *q, size_t bytes)
{
	struct region *m;
	int rc;

	if (xs_is_forked(q->client.seg))
		return NULL;
	m = xs_region_add(&q->client, bytes, &rc);
	return m ? m->base : NULL;
}

void xseg_queue_buffer_free(struct xseg_queue *q, void *buffer)
{
	xs_region_drop(&q->client, buffer);
}

/* ---- the caller's memory ----------------------------------------------------------------- */

static struct iovec piece_of(const struct xseg_io *io, uint32_t piece)
{
	if (io->buf)
		return (struct iovec){ io->buf, piece == 0 ? io->size : 0 };
	return io->iov && piece < io->nr_iov ? io->iov[piece] : (struct iovec){ NULL, 0 };
}

bool xs_io_fits(const struct xseg_io *io)
{
	uint64_t room = io->buf ? io->size : 0;

	for (uint32_t i = 0; !io->buf && io->iov && i < io->nr_iov && room < io->size; i++)
		if (__builtin_add_overflow(room, io->iov[i].iov_len, &room))
			return false;
	return room >= io->size;
}

void xs_io_skip(const struct xseg_io *io, uint32_t *piece, uint64_t *in_piece, uint64_t bytes)
{
	*in_piece += bytes;
	while (bytes && *in_piece >= piece_of(io, *piece).iov_len) {
		uint64_t len = piece_of(io, *piece).iov_len;

		if (!io->buf && *piece >= io->nr_iov)
			return;
		*in_piece -= len;
		(*piece)++;
		if (io->buf)
			return;
	}
}

/* Pages of one run of memory; the run ends with its region. */
static uint32_t list_run(const struct region *m, const uint8_t *at, uint64_t bytes, uint32_t *page)
{
	uint64_t from = (uint64_t)(at - m->base),
		 run = m->bytes - from < bytes ? m->bytes - from : bytes;
	uint32_t first = (uint32_t)(from / XSEG_PAGE_SIZE);

	memcpy(page, m->page + first, xseg_req_span(from, (uint32_t)run) * sizeof(*page));
	return (uint32_t)run;
}

uint32_t xs_io_list_pages(struct xseg_queue *q, const struct xseg_io *io, uint32_t piece,
	uint64_t in_piece, uint64_t offset, uint32_t want, uint32_t *page)
{
	uint32_t done = 0, nr = 0;

	while (done < want) {
		struct iovec p = piece_of(io, piece);
		const uint8_t *at = (const uint8_t *)p.iov_base + in_piece;
		const struct region *m = p.iov_len > in_piece ? xs_region_of(&q->client, at) : NULL;
		uint32_t in = (uint32_t)((offset + done) % XSEG_PAGE_SIZE), run;

		if (!m || (uintptr_t)at % XSEG_PAGE_SIZE != in || (done && in))
			break;
		run = (uint32_t)(p.iov_len - in_piece < want - done ? p.iov_len - in_piece
								    : want - done);
		run = list_run(m, at, run, page + nr);
		nr += xseg_req_span(in, run);
		done += run;
		xs_io_skip(io, &piece, &in_piece, run);
	}
	return done - done % XSEG_SECTOR;
}

/* ---- copies ------------------------------------------------------------------------------ */

/* Moves a place in the I/O's memory along, copying from or to `at`. */
static void copy_pieces(const struct xseg_io *io, uint32_t *piece, uint64_t *in_piece, uint8_t *at,
	uint32_t len, bool to_io)
{
	while (len) {
		struct iovec p = piece_of(io, *piece);
		uint32_t n = p.iov_len - *in_piece < len ? (uint32_t)(p.iov_len - *in_piece) : len;

		if (n == 0) {			/* an empty piece */
			(*piece)++;
			*in_piece = 0;
			continue;
		}
		assert(p.iov_base);
		if (to_io)
			memcpy((uint8_t *)p.iov_base + *in_piece, at, n);
		else
			memcpy(at, (uint8_t *)p.iov_base + *in_piece, n);
		xs_io_skip(io, piece, in_piece, n);
		at += n;
		len -= n;
	}
}

/* Where the data of a page of the request's list is, or is to be. What is read is not written:
 * there is one pointer for both. */
static uint8_t *data_page(struct xseg_queue *q, const struct slot *s, uint32_t i)
{
	return s->r->op == XSEG_OP_READ
		       ? (uint8_t *)(uintptr_t)xseg_req_page(q->client.seg, s->r, i)
		       : xseg_req_gift_page(q->client.seg, s->r, i);
}

static void copy_pages(struct xseg_queue *q, struct slot *s, bool to_io)
{
	uint64_t in_piece = s->in_piece;
	uint32_t piece = s->piece, in = (uint32_t)(s->r->offset % XSEG_PAGE_SIZE),
		 left = s->r->size;

	for (uint32_t i = 0; left; i++, in = 0) {
		uint32_t n = XSEG_PAGE_SIZE - in < left ? XSEG_PAGE_SIZE - in : left;

		copy_pieces(s->io, &piece, &in_piece, data_page(q, s, i) + in, n, to_io);
		left -= n;
	}
}

void xs_slot_copy_in(struct xseg_queue *q, struct slot *s)
{
	uint64_t in_piece = s->in_piece;
	uint32_t piece = s->piece;

	if (xseg_req_gives(s->r) && xseg_req_has_gift(s->r))
		copy_pages(q, s, false);
	else
		copy_pieces(s->io, &piece, &in_piece, s->mem + s->r->offset % XSEG_PAGE_SIZE,
			s->r->size, false);
}

void xs_slot_copy_out(struct xseg_queue *q, struct slot *s)
{
	uint64_t in_piece = s->in_piece;
	uint32_t piece = s->piece;

	if (s->r->nr_lent)
		copy_pages(q, s, true);
	else
		copy_pieces(s->io, &piece, &in_piece, s->mem + s->r->offset % XSEG_PAGE_SIZE,
			s->r->size, true);
}

void xs_slot_fetch(struct xseg_queue *q, const struct slot *s)
{
	uint32_t in = (uint32_t)(s->r->offset % XSEG_PAGE_SIZE), left = XSEG_PAGE_SIZE - in;
	const uint8_t *at = data_page(q, s, 0) + in;

	left = left < s->r->size ? left : s->r->size;
	/* else gcc takes this for a function without effect */
	__asm__ volatile("" : : "r"(at));
	for (uint32_t i = 0; i < left; i += LINE_BYTES)
		__builtin_prefetch(at + i, 0, 2);
}

void xs_slot_shift(struct slot *s, uint32_t from, uint32_t to, uint32_t bytes)
{
	if (from != to)
		memmove(s->mem + to, s->mem + from, bytes);
}

/* ---- data that the caller reads or writes where it is ------------------------------------ */

uint32_t xseg_io_data(
	struct xseg_queue *q, const struct xseg_io *io, struct iovec *piece, uint32_t max)
{
	const struct slot *s = io->own.slot;
	uint32_t in, left, nr = 0;

	if (!s || xs_is_forked(q->client.seg))
		return 0;
	in = (uint32_t)(s->r->offset % XSEG_PAGE_SIZE);
	left = s->r->size;
	for (uint32_t i = 0; left; i++, in = 0) {
		uint32_t n = XSEG_PAGE_SIZE - in < left ? XSEG_PAGE_SIZE - in : left;
		uint8_t *at = data_page(q, s, i);

		if (nr && (uint8_t *)piece[nr - 1].iov_base + piece[nr - 1].iov_len == at + in)
			piece[nr - 1].iov_len += n;
		else if (nr < max)
			piece[nr++] = (struct iovec){ at + in, n };
		else
			break;
		left -= n;
	}
	return nr;
}
