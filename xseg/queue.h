/* queue.h - the declarations that the files of volumes and queues share; nobody else includes it.
 *
 *   volume.c      which volume: opening, asking, whether anybody serves it
 *   queue.c       I/Os and their parts: sending, and the handling of the answers
 *   queue_mem.c   where data is: copies, pages that are listed as they are, pages that were lent;
 *                 memory of the queue's
 *   queue_life.c  making and ending queues
 *   queue_wait.c  sleeping, the descriptor
 *   queue_part.c  the request of each part of an I/O
 *   queue_direct.c  reads that send no request, and whether to look for them
 *
 * Contract: struct xseg_volume is shared by the threads of the process. After it was opened only
 * its size and its count of references change. struct xseg_queue is used by one thread at a time,
 * except where struct queue_watch says otherwise.
 */
#ifndef XSEG_QUEUE_H
#define XSEG_QUEUE_H

#include <pthread.h>

#include "xseg/internal.h"
#include "xseg/volume.h"

#define LOOK_NS 100000000ull	/* between two looks whether volumed is there */

struct xseg_volume {
	struct xseg *seg;
	bool attached_here;			/* it is ours to detach */
	uint32_t peer;				/* volumed's index */
	uint64_t gone_ns, timeout_ns;
	struct xseg_volume_info info;		/* but for the size */
	uint8_t object_shift;
	_Atomic uint64_t size_bytes;		/* relaxed: a number that may change at any time */
	_Atomic uint32_t refs;			/* the opener's, and one for each queue */
};

/* Since when volumed is gone; 0: it is not, as far as was seen. It may have been there between two
 * looks: then it is of another generation, and has not been gone for so long. */
struct gone {
	uint64_t since_ns;
	uint32_t generation;
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

/* Pages of the queue's peer, mapped as one piece. */
struct region {
	struct region *next;
	uint8_t *base;
	size_t bytes;
	uint32_t page[];
};

struct io_list {
	struct xseg_io *first, **last;
};

/* The sleeper for the descriptor. `lock` is a leaf; it guards all that follows it. */
struct queue_watch {
	int fd;	/* -1: nobody asked for it. The queue's thread, before the sleeper is there */
	pthread_t thread;
	bool announced;	/* the queue's thread: it has announced a sleep on its port's doorbell */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t word, turn;			/* what to sleep on; which arming that was */
	bool armed, fired, stop;	/* fired: the descriptor was written, and not read since */
	bool late;				/* something waits for room in a lane */
};

struct xseg_queue {
	struct xseg_volume *v;
	struct xseg *seg;
	struct xseg_peer *peer;
	struct xport *port;
	struct xseg_direct *direct;
	bool auto_direct;			/* reads without XSEG_IO_DIRECT are tried, too */
	uint32_t depth, copy_bytes, zero_page;	/* zero_page: one that nobody writes to */
	struct slot *slots, **idle;		/* idle: those that have gifts are at its end */
	uint32_t nr_plain, nr_gifted;
	uint32_t nr_sent;			/* slots that are OUT */
	uint32_t nr_ios;			/* submitted, and not taken back by the caller */
	struct io_list waiting, back;
	struct region *regions;
	bool lost;
	bool no_zeroes;				/* the store knows no WRITE_ZEROES */
	uint32_t vain;				/* looks for answers */
	uint64_t looked_ns;			/* when volumed was looked at */
	uint64_t known;				/* for xs_volume_is_there() */
	struct gone gone;
	struct queue_watch watch;
};

/* ---- volume.c ---- */
/* A client of the segment, under a name of its own. */
int xs_client_open(struct xseg *seg, uint32_t nr_requests, struct xseg_peer **peer,
	struct xseg_error *err) XSEG_MUST_CHECK;
/* Nobody serves it, and nobody will start it. Any thread. */
bool xs_volume_is_gone(struct xseg_volume *v);
/* What has the place of its volumed in the segment is that one, or a successor: not another peer,
 * since it was forgotten. *known is the caller's, 0 at first. */
bool xs_volume_is_there(const struct xseg_volume *v, uint64_t *known);
/* Has it been so for long enough? *gone is the caller's, 0 at first. Any thread, with one of its
 * own. */
bool xs_volume_is_lost(struct xseg_volume *v, uint64_t now, struct gone *gone);
/* Gives a reference back; the last one ends the volume. */
void xs_volume_put(struct xseg_volume *v);
/* -EPROTO where its file was truncated. Not in a forked child. */
int xs_check_whole(struct xseg *seg, struct xseg_error *err) XSEG_MUST_CHECK;

/* ---- queue.c ---- */
/* Takes answers, and sends what waited for that. Returns how many answers. */
uint32_t xs_queue_advance(struct xseg_queue *q);
/* Whether volumed is gone for good; loses the queue then. Looks no more than ten times a second. */
void xs_queue_look(struct xseg_queue *q);
/* What idle slots were lent for writes goes back: nothing is to be done for a while. */
void xs_queue_drop_gifts(struct xseg_queue *q);

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
/* More memory of the segment, mapped; NULL with the error in *rc. */
struct region *xs_region_add(struct xseg_queue *q, size_t bytes, int *rc);
/* Of the process; the segment's is given back with the peer. */
void xs_regions_free(struct xseg_queue *q);
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

/* ---- queue_wait.c ---- */
/* Takes answers; sleeps for them, if there are none, up to that time. */
void xs_queue_sleep(struct xseg_queue *q, uint64_t timeout_ns);
/* There is no descriptor yet; the queue is awake, whatever was armed; the sleeper ends. */
void xs_watch_init(struct xseg_queue *q);
void xs_watch_disarm(struct xseg_queue *q);
void xs_watch_fini(struct xseg_queue *q);

#endif
