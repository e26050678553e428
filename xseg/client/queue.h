/* queue.h - the declarations that the files of volumes and queues share; nobody else includes it.
 *
 *   volume.c      which volume: opening, asking
 *   queue.c       I/Os and their parts: sending, and the handling of the answers
 *   queue_mem.c   where data is: copies, pages that are listed as they are, pages that were lent
 *   queue_life.c  making and ending queues
 *   queue_part.c  the request of each part of an I/O
 *   queue_direct.c  reads that send no request, and whether to look for them
 *
 * Contract: struct xseg_volume is shared by the threads of the process. After it was opened only
 * its size and its count of references change. struct xseg_queue is used by one thread at a time,
 * except where struct xs_watch says otherwise (client.h).
 */
#ifndef XSEG_QUEUE_H
#define XSEG_QUEUE_H

#include "xseg/client/client.h"
#include "xseg/volume.h"

struct xseg_volume {
	struct xs_server server;		/* its volumed */
	struct xseg_volume_info info;		/* but for the size */
	uint8_t object_shift;
	_Atomic uint64_t size_bytes;		/* relaxed: a number that may change at any time */
	_Atomic uint32_t refs;			/* the opener's, and one for each queue */
};

/* A slot: a request of the queue's, with room for what it copies. See queue.c for its states. */
enum slot_state { SLOT_IDLE, SLOT_KEPT, SLOT_OUT, SLOT_LOST, SLOT_NR_STATES };

struct slot {
	enum slot_state state;
	bool direct;				/* it lists the caller's pages */
	struct xreq *r;
	uint8_t *mem;				/* its room, as one piece, */
	const uint32_t *page;			/* and the pages of that */
	struct xseg_io *io;			/* not IDLE, LOST: whose part it has */
	uint64_t begin;				/* of the part, in the I/O */
	uint64_t in_piece;		/* where the part's data begins in the I/O's memory */
	uint32_t piece;
};

struct io_list {
	struct xseg_io *first, **last;
};

struct xseg_queue {
	struct xs_client client;		/* nr_sent counts slots that are OUT */
	struct xseg_volume *v;
	struct xseg_direct *direct;
	bool auto_direct;			/* reads without XSEG_IO_DIRECT are tried, too */
	uint32_t depth, copy_bytes;
	struct slot *slots, **idle;		/* idle: those that have gifts are at its end */
	uint32_t nr_plain, nr_gifted;
	uint32_t nr_ios;			/* submitted, and not taken back by the caller */
	struct io_list waiting, back;
	bool no_zeroes;				/* the store knows no WRITE_ZEROES */
};

/* ---- volume.c ---- */
/* Gives a reference back; the last one ends the volume. */
void xs_volume_put(struct xseg_volume *v);

/* ---- queue.c ---- */
extern const struct xs_client_class xs_queue_class;

static inline void io_list_init(struct io_list *l)
{
	l->first = NULL;
	l->last = &l->first;
}

static inline void io_list_push(struct io_list *l, struct xseg_io *io)
{
	io->own.next = NULL;
	*l->last = io;
	l->last = &io->own.next;
}

static inline struct xseg_io *io_list_pop(struct io_list *l)
{
	struct xseg_io *io = l->first;

	if (io) {
		l->first = io->own.next;
		if (!l->first)
			l->last = &l->first;
	}
	return io;
}

/* ---- queue_part.c ---- */
/* The next part of an I/O that has one, into the slot's request; one whose pages the caller is to
 * write first. */
void xs_part_fill(struct xseg_queue *q, struct slot *s, struct xseg_io *io);
void xs_part_fill_gift(struct xseg_queue *q, struct slot *s, struct xseg_io *io);
/* So much of the I/O is begun with the part. */
uint64_t xs_part_bytes(const struct xseg_io *io, const struct slot *s);
/* Makes the request what is to be sent next for the same part, after that answer. False: it has had
 * all that it needs. */
bool xs_part_again(struct xseg_queue *q, struct slot *s, int error);

/* ---- queue_mem.c ---- */
/* Whether the I/O's memory is enough. */
bool xs_io_fits(const struct xseg_io *io);
/* Moves the place in an I/O's memory on by `bytes`. */
void xs_io_skip(const struct xseg_io *io, uint32_t *piece, uint64_t *in_piece, uint64_t bytes);
/* Lists the pages of the I/O's own memory from there on that can be sent as they are, for the range
 * of the volume that begins at `offset`. Returns how many of up to `want` bytes that are: 0, or
 * whole sectors. */
uint32_t xs_io_list_pages(struct xseg_queue *q, const struct xseg_io *io, uint32_t piece,
	uint64_t in_piece, uint64_t offset, uint32_t want, uint32_t *page);
/* Data of a part, from the I/O's memory to the slot's room or what it was lent; and from where the
 * answer says it is. */
void xs_slot_copy_in(struct xseg_queue *q, struct slot *s);
void xs_slot_copy_out(struct xseg_queue *q, struct slot *s);
/* Has memory send the first page of a read that the caller reads in place. Where no other read
 * covers the wait, a core that is told all lines at once gets them sooner than one that finds them
 * out. They go to the second cache, as the first one has too few lines in flight. */
void xs_slot_fetch(struct xseg_queue *q, const struct slot *s);
/* The second half of a COPY: moves what was read at in-page offset `from` to `to`. */
void xs_slot_shift(struct slot *s, uint32_t from, uint32_t to, uint32_t bytes);

/* ---- queue_direct.c ---- */
/* Whether a read of that range, at most XSEG_DIRECT_PAGES, is to be looked for without having been
 * asked to; once for each part. */
bool xs_part_pays(const struct xseg_queue *q, uint64_t offset, uint32_t size);
/* A part of a read, before it is sent: true when it need not be, as its data is lent, as by an
 * answer. */
bool xs_part_find(struct xseg_queue *q, struct slot *s);
/* One that was answered says where its object is. Before its loans are dropped. */
void xs_part_learn(struct xseg_queue *q, const struct slot *s);

#endif
