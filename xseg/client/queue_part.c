/* queue_part - the parts of an I/O: the request of each one.
 *
 *   READ, WRITE    as much as one request may have: pages of the caller's that are listed as they
 *                  are, unless it is read directly; or as much as the slot's room
 *   COPY           as much as the slot's room takes: a READ, and when that was answered the WRITE
 *   WRITE_ZEROES   a request's range; where the store knows no zeroes, they are sent as data
 *   DISCARD        a request's range
 *   INFO, FLUSH    one part
 *
 * Contract: the queue's thread. Nothing here blocks, allocates or sends; states are queue.c's.
 */
#include <errno.h>
#include <string.h>

#include "xseg/client/queue.h"

static uint32_t least(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

static uint8_t fua_of(const struct xseg_io *io)
{
	return io->flags & XSEG_IO_FUA ? XSEG_REQ_FUA : 0;
}

static uint8_t once_of(const struct xseg_io *io)
{
	return io->flags & XSEG_IO_ONCE ? XSEG_REQ_ONCE : 0;
}

/* Volumed's port is chosen by it: what begins in one object goes to one. */
static uint64_t hash_of(const struct xseg_volume *v, uint64_t offset)
{
	uint64_t x = ((offset >> v->object_shift) + 1) * 0x9e3779b97f4a7c15ull ^ v->info.id;

	return (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
}

static void list_pages(struct xreq *r, const uint32_t *page)
{
	r->nr_pages = (uint16_t)xseg_req_span(r->offset, r->size);
	memcpy(r->page, page, r->nr_pages * sizeof(*page));
}

/* The slot's first page, over and over: so the queue has no page for zeroes alone, which would be a
 * piece of 2 MiB more. */
static void list_zeroes(struct slot *s)
{
	struct xreq *r = s->r;

	memset(s->mem, 0, XSEG_PAGE_SIZE);
	r->op = XSEG_OP_WRITE;
	r->nr_pages = (uint16_t)xseg_req_span(r->offset, r->size);
	for (uint32_t i = 0; i < r->nr_pages; i++)
		r->page[i] = s->page[0];
}

static bool wants_direct(const struct xseg_io *io)
{
	return (io->flags & (XSEG_IO_DIRECT | XSEG_IO_ONCE)) == XSEG_IO_DIRECT;
}

/* Whether the next part of a READ is looked for in the cache. Then its data is copied from where
 * the cache has it, wherever it goes. */
static bool is_looked_for(const struct xseg_queue *q, const struct slot *s, uint64_t left)
{
	const struct xseg_io *io = s->io;
	uint64_t offset = s->r->offset;

	if (io->op != XSEG_OP_READ || io->size > XSEG_DIRECT_PAGES * XSEG_PAGE_SIZE ||
		io->flags & XSEG_IO_ONCE)
		return false;
	return wants_direct(io) ||
	       xs_part_pays(q, offset,
		       least(left, q->copy_bytes - (uint32_t)(offset % XSEG_PAGE_SIZE)));
}

static void fill_data(struct xseg_queue *q, struct slot *s, uint64_t left)
{
	struct xseg_io *io = s->io;
	struct xreq *r = s->r;
	uint32_t in = (uint32_t)(r->offset % XSEG_PAGE_SIZE);
	bool direct = is_looked_for(q, s, left);

	r->size = 0;
	if (!direct)
		r->size = xs_io_list_pages(q, io, s->piece, s->in_piece, r->offset,
			least(left, XSEG_REQ_BYTES - in), r->page);
	s->direct = r->size > 0;
	if (s->direct) {
		r->nr_pages = (uint16_t)xseg_req_span(r->offset, r->size);
		return;
	}
	r->size = least(left, q->copy_bytes - in);
	list_pages(r, s->page);
	if (r->op == XSEG_OP_READ)
		r->flags |= XSEG_REQ_LOAN |
			    (direct || wants_direct(io) ? XSEG_REQ_DIRECT : 0);
	else if (io->flags & XSEG_IO_GIVE)
		r->flags |= XSEG_REQ_GIVE;
	if (r->op == XSEG_OP_WRITE)
		xs_slot_copy_in(q, s);
}

static void fill_copy(struct xseg_queue *q, struct slot *s, uint64_t left)
{
	struct xreq *r = s->r;
	uint32_t to = (uint32_t)(r->offset % XSEG_PAGE_SIZE),
		 from = (uint32_t)((s->io->from + s->begin) % XSEG_PAGE_SIZE);

	r->op = XSEG_OP_READ;
	r->flags = 0;
	r->offset = s->io->from + s->begin;
	r->size = least(left, q->copy_bytes - (from > to ? from : to));
	list_pages(r, s->page);
}

uint64_t xs_part_bytes(const struct xseg_io *io, const struct slot *s)
{
	switch (io->op) {
	case XSEG_OP_FLUSH:
		return 0;
	case XSEG_OP_INFO:
		return io->size;
	default:
		return s->r->size;
	}
}

void xs_part_fill(struct xseg_queue *q, struct slot *s, struct xseg_io *io)
{
	uint64_t left = io->size - io->own.begun;
	struct xreq *r = s->r;

	s->io = io;
	s->begin = io->own.begun;
	s->piece = io->own.piece;
	s->in_piece = io->own.in_piece;
	s->direct = false;
	r->op = (uint8_t)io->op;
	r->flags = fua_of(io) | once_of(io);
	r->volume = q->v->info.id;
	r->offset = io->op == XSEG_OP_FLUSH ? 0 : io->offset + s->begin;
	r->nr_pages = 0;
	if (io->op == XSEG_OP_READ || io->op == XSEG_OP_WRITE) {
		fill_data(q, s, left);
		xs_io_skip(io, &io->own.piece, &io->own.in_piece, r->size);
	} else if (io->op == XSEG_OP_COPY) {
		fill_copy(q, s, left);
	} else if (io->op == XSEG_OP_INFO) {
		r->size = XSEG_SECTOR;
	} else {
		r->size = least(left, XSEG_REQ_BYTES - r->offset % XSEG_PAGE_SIZE);
		if (io->op == XSEG_OP_WRITE_ZEROES && q->no_zeroes)
			list_zeroes(s);
	}
	r->hash = hash_of(q->v, r->offset);
}

void xs_part_fill_gift(struct xseg_queue *q, struct slot *s, struct xseg_io *io)
{
	struct xreq *r = s->r;

	s->io = io;
	s->direct = false;
	r->op = XSEG_OP_WRITE;
	r->flags = XSEG_REQ_GIVE | fua_of(io) | once_of(io);
	r->volume = q->v->info.id;
	r->offset = io->offset;
	r->size = (uint32_t)io->size;
	r->hash = hash_of(q->v, io->offset);
	list_pages(r, s->page);
}

bool xs_part_again(struct xseg_queue *q, struct slot *s, int error)
{
	struct xseg_io *io = s->io;
	struct xreq *r = s->r;
	uint32_t from = (uint32_t)(r->offset % XSEG_PAGE_SIZE);

	if (error == -EOPNOTSUPP && r->op == XSEG_OP_WRITE_ZEROES) {
		q->no_zeroes = true;
		list_zeroes(s);
	} else if (!error && io->op == XSEG_OP_COPY && r->op == XSEG_OP_READ) {
		r->op = XSEG_OP_WRITE;
		r->flags = fua_of(io);
		r->offset = io->offset + s->begin;
		r->hash = hash_of(q->v, r->offset);
		xs_slot_shift(s, from, (uint32_t)(r->offset % XSEG_PAGE_SIZE), r->size);
		list_pages(r, s->page);
	} else {
		return false;
	}
	return true;
}
