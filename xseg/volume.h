/* volume.h - volumes, for programs that use them: open one, and read and write it, many I/Os at a
 * time.
 *
 * Purpose
 *   xseg.h is for programs that are a part of a segment: requests, pages, lanes. This header is for
 *   programs that want a disk. It is built on xseg.h, and needs to know of volumed alone. Link with
 *   libxseg (pkg-config xseg). It is for C++, too; xseg.h is for C11 alone.
 *
 * How an I/O is done (docs/example.c is a whole program)
 *      struct xseg_volume_params params = { .segment = "xseg", .volume = "disk" };
 *      struct xseg_io io = { .op = XSEG_OP_READ, .offset = 0, .size = 65536, .buf = buf }, *done;
 *
 *      xseg_volume_open(&params, &v, &err);
 *      xseg_queue_create(v, NULL, &q, &err);
 *      xseg_queue_submit(q, &io);			// any number of them
 *      while (xseg_queue_wait(q, &done, 1, 1000000000) == 0)
 *              ;			// &io is back: io.result is 65536, or a negative errno
 *
 * Units and ranges
 *   Offsets and sizes are bytes, multiples of XSEG_SECTOR (512). They lie within the volume as it
 *   was when it was opened or asked again (xseg_volume_refresh()). Times are nanoseconds of
 *   CLOCK_MONOTONIC. An I/O may be of any size and its memory at any address. An I/O larger than a
 *   request is sent in parts, so if it fails any of its parts may have been done. I/Os that are out
 *   at the same time are done in any order; send overlapping ones one after the other. Each sector
 *   is written whole or not at all.
 *
 * Where there is no data
 *   An INFO asks the store below about a range within one object (info.object_bytes). The first
 *   `result` bytes of the range may be data. All bytes that follow are zeroes, and take no room. It
 *   sees data that was acknowledged before, in a cache too. It reads nothing, and costs one
 *   request. Data that was written and zeroed or discarded since may still count as data.
 *
 * Ownership of memory
 *   A struct xseg_io and the memory that it points to are the caller's. From submission until it
 *   comes back the library alone uses them. It is zeroed before its first use, and may be used
 *   again. Nothing is allocated for an I/O: a queue takes all that it needs when it is created.
 *   I/Os that find no request free wait in the queue.
 *
 * Copies
 *   The library does not copy data in memory of the segment (xseg_queue_buffer()) at a fitting
 *   address: as far into a page as the offset is into a page of the volume. All other data is
 *   copied once. Reads with XSEG_IO_LOAN are not copied at all, but read where the cache has them.
 *   Writes with XSEG_IO_GIVE are written into pages of the cache, which keeps them.
 *
 * Reading without a request
 *   A read looks for its data in the cache's own tables first, while that pays. If the data is
 *   there the read sends no request and wakes no thread, and is back when it was submitted. It is
 *   as new as any read. It counts as a read, and not as a request. The cache keeps its data like
 *   data that is read by requests. The library copies it, to memory of the segment too. A read that
 *   is not in one object, or is more than 64 KiB, is sent as a request. So is a read of an object
 *   in which few of the last reads were found, but for a try now and then. A queue with
 *   XSEG_DIRECT_NEVER sends all of its reads. A read with XSEG_IO_DIRECT is looked for in each
 *   case, through any queue.
 *
 * Threads
 *   A volume belongs to all threads of the process. A queue, with its I/Os and its memory, is used
 *   by one thread at a time. A process with several threads makes a queue for each. A child after
 *   fork() has no part of either. There calls return -ENOTCONN, and I/Os that were out at the fork
 *   come back so. Destroying and closing free the child's memory and change nothing of its
 *   parent's.
 *
 * Failures below
 *   A process below may be killed or restart, or a cache may be plugged or unplugged. Then I/Os
 *   take longer, and no error is seen. These are the errors:
 *      -ENOTCONN  volumed has been stopped, or forgotten, or is dead with nobody to start it
 *                 again, since params.gone_ns, or at once if the segment was removed (xseg down);
 *                 or the peer below it was taken away. In the first cases the queue is lost, and
 *                 xseg_volume_look() says why. All its I/Os that are out come back with this
 *                 error, done or not, and everything else is refused with it. Memory of the
 *                 queue's that is out to be read into may be written until volumed has served
 *                 again. To go on: destroy the queue, close the volume, and open it again.
 *      -ESTALE	   The volume has been removed, also if there is another one of its name.
 *      -ENXIO	   A part is beyond the volume's end: as the caller asked for it, or as it was made
 *                 smaller meanwhile.
 *      -EINVAL	   The I/O cannot be done: its sizes, memory that is too small, an operation that
 *                 is none. Never sent; for an I/O that was sent it is the store's.
 *      -EBUSY	   This struct xseg_io is out already, or holds a loan.
 *      -EIO, -ENOSPC and others are the store's.
 *
 *   Nothing here prints, ends the process, reads the environment, or has a handler of signals. If a
 *   process truncates a segment's file, processes that touch the missing part end by SIGBUS, as
 *   with any mapped file. To others volumed is gone for good, at once. Destroying and closing touch
 *   nothing then.
 */
#ifndef XSEG_VOLUME_H
#define XSEG_VOLUME_H

#include <stddef.h>
#include <sys/uio.h>

#include "xseg/base.h"
#ifndef __cplusplus
#include "xseg/xseg.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct xseg_volume;
struct xseg_queue;

/* ---- volumes ----------------------------------------------------------------------------- */

struct xseg_volume_params {
	const char *segment;			/* its name; or NULL, and */
	/* an attachment of the caller's, who detaches it after the volume is closed */
	struct xseg *attached;
	const char *volume;
	/* which; NULL: the segment's only one, beside those that are stopped */
	const char *volumed;
	uint64_t timeout_ns;			/* for volumed to start and to answer; 0: 10 s */
	/* with no server: what is out fails; 0: 5 s. An open waits for a volumed that is
	 * stopped under a supervisor, as in a restart, for that time; 0: 2 s */
	uint64_t gone_ns;
	/* whose segment is let in besides the caller's and root's: a user's name, or number as
	 * text; NULL: nobody's. Used where `segment` is */
	const char *owner;
};

struct xseg_volume_info {
	char name[XSEG_NAME_MAX], volumed[XSEG_NAME_MAX];
	/* no other volume of the segment has had it, but after 65536 others in its place */
	uint32_t id;
	uint32_t generation;	/* how many volumes were in its place before, modulo 65536 */
	uint64_t size_bytes;
	uint32_t object_bytes;			/* of the store: data within one is at one place */
	/* the least that can be written; and what it is best to write multiples of */
	uint32_t sector_bytes, page_bytes;
};

/* Attaches if need be, and asks volumed. -ENOENT: no such segment, volumed or volume; -EBUSY: it is
 * being removed; -EPERM: it is a segment of another user's, who is not `owner`; -EINVAL: names
 * that none can have, or several volumeds; -ETIMEDOUT: no answer in
 * time; -ENOTCONN: volumed does not run, or `attached` is a parent's; -EPROTO: the segment is
 * damaged, or truncated; -ENOMEM, -ENOSPC, -EUSERS: it has no memory, port, request or place for
 * another process left. */
int xseg_volume_open(const struct xseg_volume_params *params, struct xseg_volume **volume,
	struct xseg_error *err) XSEG_MUST_CHECK;
/* After all of its queues were destroyed. NULL: nothing. */
void xseg_volume_close(struct xseg_volume *volume);
/* As it was when it was opened or asked the last time. Any thread. */
void xseg_volume_get_info(struct xseg_volume *volume, struct xseg_volume_info *info);
/* Asks volumed for the size, which somebody may have changed. 0; -ESTALE; -ENOTCONN; -ETIMEDOUT;
 * -ENOSPC: the segment has no port or request left to ask with; -EPROTO: it is damaged, or somebody
 * truncated its file; -ENOMEM,
 * -EMFILE and others are the process's. Any thread; waits. */
int xseg_volume_refresh(struct xseg_volume *volume) XSEG_MUST_CHECK;
/* Why I/O comes back with -ENOTCONN, for people. 0: volumed serves, or is being started; -ENOTCONN:
 * the segment was removed, or volumed has stopped, or the volume is a parent's; -EPROTO: somebody
 * truncated the segment's file. Then *err says that, and what to do. Any thread; does not wait. */
int xseg_volume_look(struct xseg_volume *volume, struct xseg_error *err) XSEG_MUST_CHECK;

/* ---- queues ------------------------------------------------------------------------------ */

struct xseg_queue_params {
	uint32_t depth;				/* requests out at a time, 1 to 1024; 0: 32 */
	/* the most that one of them copies, 4 KiB to 1 MiB, rounded up to 4 KiB; 0: 128 KiB */
	uint32_t copy_bytes;
	uint32_t direct;			/* XSEG_DIRECT_* */
};

#define XSEG_QUEUE_DEPTH 32u			/* of a queue that is given none */

/* What a queue takes of the segment's memory, in bytes: whole pieces of 2 MiB. It also takes a port
 * and `depth` requests. params may be NULL. Pure. */
uint64_t xseg_queue_memory(const struct xseg_queue_params *params);

#define XSEG_DIRECT_AUTO  0u	/* a read is looked for in the cache first, while that pays */
#define XSEG_DIRECT_NEVER 1u	/* it is sent as a request, but with XSEG_IO_DIRECT */

/* Takes a port, `depth` requests and depth * copy_bytes of memory, in pieces of 2 MiB, from the
 * segment. -ENOSPC, -ENOMEM: they are not there; -ENOTCONN; -EPROTO: somebody truncated the
 * segment's file. params may be NULL. */
int xseg_queue_create(struct xseg_volume *volume, const struct xseg_queue_params *params,
	struct xseg_queue **queue, struct xseg_error *err) XSEG_MUST_CHECK;
/* What is out is abandoned: it may be done yet, or not. Its memory goes back to the segment when
 * all of it is answered. NULL: nothing. */
void xseg_queue_destroy(struct xseg_queue *queue);

/* Memory of the segment, zeroed, for I/Os of this queue; rounded up to 2 MiB. NULL: the segment has
 * not so much left, or the process. Goes with the queue, or before that when no I/O uses it. */
void *xseg_queue_buffer(struct xseg_queue *queue, size_t bytes);
void xseg_queue_buffer_free(struct xseg_queue *queue, void *buffer);

/* ---- I/Os -------------------------------------------------------------------------------- */

#define XSEG_IO_FUA  1u	/* WRITE, WRITE_ZEROES, DISCARD, COPY: back when it is on stable storage */
#define XSEG_IO_LOAN 2u				/* READ: see xseg_io_data() */
#define XSEG_IO_GIVE 4u				/* WRITE: see xseg_io_prepare() */
/* READ: data in a cache's memory is read there, whether or not that has paid, through any queue */
#define XSEG_IO_DIRECT 8u
/* READ, WRITE: a cache keeps nothing for this I/O that it would not have kept without it, as for a
 * scan of the volume. What the cache has is served from there. A READ is always sent as a request,
 * and XSEG_IO_DIRECT has no effect beside it. */
#define XSEG_IO_ONCE 16u

struct xseg_io {
	enum xseg_op op;		/* READ, WRITE, FLUSH, DISCARD, WRITE_ZEROES, COPY, INFO */
	uint32_t flags;				/* XSEG_IO_* */
	uint64_t offset, size;			/* FLUSH: 0 */
	/* COPY: where the data is, in the same volume; may not overlap. It is read, and written */
	uint64_t from;
	void *buf;				/* READ, WRITE: `size` bytes; or NULL, and */
	const struct iovec *iov;		/* pieces, of `size` bytes or more in all */
	uint32_t nr_iov;
	int32_t state;				/* libxseg's */
	void *cookie;				/* the caller's */
	/* when it is back: bytes, which is all of `size`, but of INFO; or a negative errno */
	int64_t result;
	struct {				/* libxseg's */
		struct xseg_io *next;
		void *slot;
		uint64_t begun, in_piece;
		uint32_t piece, out;
	} own;
};

/* Takes an I/O. It is sent, at the latest, when the queue is next polled, waited for or armed: a
 * batch costs one ring. A FLUSH covers what came back before it was submitted, through whatever
 * queue or process. 0, or an error above: then it is the caller's still. Never waits. */
int xseg_queue_submit(struct xseg_queue *queue, struct xseg_io *io) XSEG_MUST_CHECK;
/* Sends what was submitted. */
void xseg_queue_kick(struct xseg_queue *queue);
/* Takes up to max I/Os that are back, in the order in which they came. */
uint32_t xseg_queue_poll(struct xseg_queue *queue, struct xseg_io **done, uint32_t max);
/* The same; sleeps up to timeout_ns until there is one. 0: none in that time, or none is out. */
uint32_t xseg_queue_wait(
	struct xseg_queue *queue, struct xseg_io **done, uint32_t max, uint64_t timeout_ns);
/* Submits an I/O and waits until it is back, however long; others that come back meanwhile are
 * there for the next poll. Its result; -EDEADLK: all of the queue's requests are with the caller
 * (XSEG_IO_LOAN, XSEG_IO_GIVE), so it would wait for ever. */
int64_t xseg_queue_run(struct xseg_queue *queue, struct xseg_io *io) XSEG_MUST_CHECK;
/* I/Os that were submitted and not yet taken by poll or wait. */
uint32_t xseg_queue_out(const struct xseg_queue *queue);

/* The processor on which the thread that takes this queue's requests last looked for work: a hint.
 * -1: not known. If there are fewer processors than threads, a caller that waits is best on the
 * same one, as it hands that over by each look. */
int xseg_queue_server_cpu(const struct xseg_queue *queue);

/* ---- without copying --------------------------------------------------------------------- */

/* A READ with XSEG_IO_LOAN has no buf: when it is back with a good result, this says where its data
 * is, in up to max pieces (there are no more than size / 4096 + 2), only to be read; returns how
 * many. It stays there, unchanged, until xseg_io_release(), which must follow. So long it takes one
 * of the queue's `depth`, and pages that the cache would like to have back. offset % 4096 + size is
 * at most copy_bytes. */
uint32_t xseg_io_data(
	struct xseg_queue *queue, const struct xseg_io *io, struct iovec *piece, uint32_t max);
/* For a WRITE with XSEG_IO_GIVE, with neither buf nor iov: takes one of the queue's `depth`, and
 * says where the data is to be written, all of it, before the I/O is submitted: pages that the
 * cache lent for that, and keeps then, or of the queue's own. Returns the number of pieces, or
 * -EAGAIN: all are out; or an error above. Size as above. It is submitted to this queue, with
 * the same range, and with XSEG_IO_FUA or without, else -EINVAL. Not submitted after all:
 * xseg_io_release(). A WRITE with XSEG_IO_GIVE and a buf is copied to such pages. */
int xseg_io_prepare(struct xseg_queue *queue, struct xseg_io *io, struct iovec *piece,
	uint32_t max) XSEG_MUST_CHECK;
/* Of what is held through this queue. Else nothing: also the second time. */
void xseg_io_release(struct xseg_queue *queue, struct xseg_io *io);

/* ---- for loops that wait for descriptors ------------------------------------------------- */

/* A descriptor, the queue's, which is readable when the queue was armed and has something to be
 * polled since. It is never read or written by the caller. The first call makes it, and a thread
 * that sleeps, with all signals blocked; nobody who does not ask for it pays for it. Or a negative
 * errno. */
int xseg_queue_fd(struct xseg_queue *queue);
/* Before the loop waits: sends what was submitted. 0: the descriptor will become readable; 1: there
 * may be something now, poll instead. Good for one time: xseg_queue_poll() and xseg_queue_wait()
 * end it. -EBADF: without xseg_queue_fd(). */
int xseg_queue_arm(struct xseg_queue *queue) XSEG_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
