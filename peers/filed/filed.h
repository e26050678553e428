/* filed - a blocker whose objects are files of a directory. For users: filed.8.
 *
 * Its files:
 *   filed_dir      the directory
 *   filed_rights   who may read it
 *   filed_tag      the object that a file belongs to
 *   filed_marks    the unsynced bytes, in the arena
 *   filed_files    the table of files
 *   filed_aio      asynchronous I/O
 *   filed_work     threads for calls that block
 *   filed_jobs     the work of these threads
 *   filed_list     the names in a LIST
 *   filed.c        the way of a request
 *   filed_life     beginning and end
 *
 * The way of a request, an op:
 *
 *   from     to        when                                              by
 *   WAITING  BEGUN     nothing that it overlaps is in flight (order.h)   its port, or the one of
 *                                                                        the op that it waited for
 *   BEGUN    MOVING    aligned READ or WRITE of a file that is open      its port
 *   BEGUN    ENDED     no bytes; READ of a file that is not there        its port
 *   BEGUN    SYNCING   FLUSH                                             its port
 *   BEGUN    WORKING   anything else                                     its port
 *   WORKING  MOVING    aligned READ or WRITE: the file is open now       a worker
 *   WORKING  ENDED     it is done, or failed                             a worker
 *   MOVING   ENDED     the kernel has done it, or failed                 its port
 *   MOVING   WORKING   the kernel did a part, or wants it otherwise      its port
 *   ENDED    SYNCING   FUA of a change that was made                     its port
 *   ENDED    answered  anything else                                     its port
 *   SYNCING  SYNCED    the file, or all files, were synced after that    a worker
 *   SYNCED   answered                                                    its port
 *
 * A worker, or the port of another op, sets the state as it gives the op back to its port's inbox.
 *
 * Contract: as peer.h says. poll() and workers do the I/O, so filed is never simulated.
 *
 * Invariants:
 *   O1  An op is held by its port's thread, by one worker or by the kernel, or is in one list.
 *   O2  Of two ops that overlap, of which one changes data, the later begins after the earlier was
 *       answered. An op that is not aligned to blocks takes part with whole blocks. If it changes
 *       data, it takes part with all bytes behind it too, as it may have to set the file's end.
 *   O3  A change is marked in the arena before the kernel gets it (K1). Its mark is told of the end
 *       before the change is answered.
 *   O4  A LIST waits for earlier LISTs, and a step of a count, only: it has no range, no file, and
 *       a worker of its own.
 */
#ifndef PEERS_FILED_FILED_H
#define PEERS_FILED_FILED_H

#include "peers/common/blocker/failures.h"
#include "peers/common/blocker/ops.h"
#include "peers/common/runtime/peer.h"
#include "peers/common/blocker/shape.h"
#include "peers/common/blocker/usage.h"
#include "peers/filed/filed_aio.h"
#include "peers/filed/filed_files.h"
#include "peers/filed/filed_work.h"

enum filed_step {
	FILED_WAITING,				/* the order has it */
	FILED_BEGUN,				/* its port, to look what is to be done */
	FILED_MOVING,				/* the kernel, or its port until there is room */
	FILED_WORKING,				/* a worker, or those that starve for a file */
	FILED_ENDED,				/* its port: it is done, but for a sync */
	FILED_SYNCING,				/* a worker syncs, or will */
	FILED_SYNCED,				/* its port, to answer it */
	FILED_NR_STEPS
};

struct filed_op {
	struct order_op order;		/* first (ops.h); in the one list that it is in (O1) */
	struct filed_work work;
	struct peer_port *pp;		/* its port */
	struct xreq *r;
	uint64_t hash, source_hash;
	struct filed_file *file;	/* with a reference, or NULL */
	int fd;				/* the file's, or -1: there is no such file */
	struct filed_change change;
	bool changing;			/* `change` has begun */
	bool again;			/* a predecessor may have done it */
	bool of_source;			/* it failed for the file that a COPY is from */
	enum filed_step step;
	uint32_t done;			/* bytes that were moved */
	int64_t result;
	char source[XSEG_TARGET_MAX];	/* COPY */
};

/* One port. All but the inbox is its thread's. */
struct filed_port {
	struct filed_aio aio;
	struct ops_list ready;		/* BEGUN */
	struct ops_list moving;		/* wait for room in aio */
	pthread_mutex_t lock;		/* a leaf; guards the inbox */
	struct ops_list inbox;		/* ops that other threads give back */
	_Atomic bool has_mail;
};

/* FUA ops that wait for a sync of one file; guarded by filed's lock. */
struct filed_fua {
	struct filed_work work;
	struct ops_list ops;
	bool running;
};

struct filed {
	struct peer peer;
	/* options */
	char dir_path[1024];
	char group[33];
	bool want_direct;
	uint32_t iodepth, nr_files;

	uint64_t nr_fds;		/* descriptors that it may use */
	struct filed_dir dir;
	struct filed_files files;
	struct filed_pool pool;
	struct filed_pool lister;	/* for LIST and counts alone (O4) */
	struct failures failures;	/* of requests */
	struct usage usage;
	struct filed_work count_work;
	uint32_t count_parent;		/* where the count goes on; the lister's */
	struct order order;
	struct filed_port port[PEER_MAX_THREADS];
	struct ops_table ops;
	struct filed_fua *fua;		/* one a slot of files */
	struct filed_work flush_work;
	struct filed_work space_work;	/* looks how much room is left */
	/* not before; UINT64_MAX: it is being done. By port 0, and by the work at its end */
	_Atomic uint64_t space_due_ns;
	_Atomic bool space_changed;	/* since it was begun last */
	bool space_low;			/* the worker's: that was told */

	/* guards what follows, and fua[]; only the lock of ops is taken under it */
	pthread_mutex_t lock;
	struct ops_list starving;	/* wait for a slot of files */
	uint64_t idle_seq;		/* counts slots that became idle */
	struct ops_list flush;
	bool flush_running, flush_owed;	/* owed: there were changes since the last of all began */
};

static inline struct filed *filed_of(struct peer *p)
{
	return (struct filed *)p;
}

/* The only writer of an op's step. */
void filed_op_set(struct filed_op *op, enum filed_step step);
static inline struct filed_port *filed_port_of(struct peer_port *pp)
{
	return &filed_of(pp->peer)->port[pp->nr];
}
/* From another thread: the op's port goes on with it at `step`. */
void filed_give_back(struct filed_op *op, enum filed_step step, int64_t result);

/* A slot of the table of files may have become idle: those that starve for one try again. */
void filed_files_idle(struct filed *f);

/* The first block boundary at or before an offset; at or behind it. */
static inline uint64_t filed_block_down(const struct filed *f, uint64_t offset)
{
	return offset - offset % f->dir.align;
}

static inline uint64_t filed_block_up(const struct filed *f, uint64_t offset)
{
	return filed_block_down(f, offset + f->dir.align - 1);
}

/* READ or WRITE that the kernel can do asynchronously as it is. */
static inline bool filed_aligned(const struct filed *f, const struct xreq *r)
{
	return (r->obj_offset | r->size) % f->dir.align == 0;
}

/* filed.c: callbacks of the class, and what filed_life.c needs of it. */
void filed_request(struct peer_port *pp, struct xreq *r);
void filed_recover(struct peer_port *pp, struct xreq *r);
uint64_t filed_poll(struct peer_port *pp);
/* Has all files synced, and the op (may be NULL) answered then. */
void filed_sync_all(struct filed *f, struct filed_op *op);

/* filed_jobs.c: runs in a worker, does what the op asks for, gives it back. */
void filed_job_run(struct filed_work *w, void *arg, uint8_t *bounce);
/* The same for a LIST. */
void filed_job_list(struct filed_work *w, void *arg, uint8_t *bounce);
/* How much room is left; says so once if it is little. */
void filed_job_space(struct filed_work *w, void *arg, uint8_t *bounce);
/* A step of a count of the bytes that the objects take. */
void filed_job_count(struct filed_work *w, void *arg, uint8_t *bounce);
/* Syncs all files for the FLUSH requests that wait. */
void filed_job_flush(struct filed_work *w, void *arg, uint8_t *bounce);
/* Syncs one file for the FUA requests that wait. */
void filed_job_fua(struct filed_work *w, void *arg, uint8_t *bounce);
/* The op is about to change its file (O3). Any thread that has the op. */
void filed_op_change(struct filed *f, struct filed_op *op);

#endif
