/* kv.h - values by key, for programs: open a store, put and get values, many at a time.
 *
 * Purpose
 *   A store is a peer of kind `kvd`, which keeps values in a log on whatever is below it. This
 *   header is for programs that want a map from keys to values; volume.h is for programs that want
 *   a disk. Link with libxseg (pkg-config xseg). It is for C and for C++.
 *
 * How a value is put and got (docs/kv_example.c is a whole program)
 *      struct xseg_kv_params params = { .segment = "xseg" };
 *      struct xseg_kv_io io = { .op = XSEG_KV_PUT,
 *              .item = { .key = "a", .key_bytes = 1, .value = buf, .value_bytes = 100 } }, *done;
 *
 *      xseg_kv_open(&params, &kv, &err);
 *      xseg_kv_queue_create(kv, NULL, &q, &err);
 *      xseg_kv_submit(q, &io);				// any number of them
 *      while (xseg_kv_wait(q, &done, 1, 1000000000) == 0)
 *              ;			// &io is back: io.result is 0, or a negative errno
 *      n = xseg_kv_get(q, "a", 1, buf, sizeof(buf));	// or one at a time
 *
 * Units and limits
 *   A key has 1 byte to 64 KiB, any bytes. A value has 0 bytes to value_max_bytes of struct
 *   xseg_kv_info. A larger one is refused with -EFBIG. A value of about 1 MiB and more is a *large*
 *   one (xseg_kv_is_large()): see "large values" below. Times to live are seconds. Other times are
 *   nanoseconds of CLOCK_MONOTONIC.
 *
 * What is promised
 *   A put is atomic: a reader sees the old value or the new one, whole. It is done once, whatever
 *   is killed meanwhile. When it is back it survives the death of any process. It survives a loss
 *   of power when it had XSEG_KV_FORCE, or when a FLUSH that was submitted later is back, or when
 *   the store's option `sync` says so. A get sees all changes that were back before it was
 *   submitted. Operations that are out at the same time are done in any order. All changes of a
 *   BATCH are done, or none is.
 *
 *   A value bears a CRC that this library makes, and checks when the value is got. A damaged value
 *   is -EIO. It is never "not there", and never an older value.
 *
 * Versions
 *   Each change of a key gives it another version, which is larger than the one before. A change
 *   with XSEG_KV_IF_VERSION is done only if the key still has that version: -EEXIST otherwise.
 *
 * Ownership of memory
 *   A struct xseg_kv_io and the memory that it points to are the caller's. From submission until it
 *   comes back the library alone uses them. It is zeroed before its first use, and may be used
 *   again. Nothing is allocated for an operation: a queue takes all that it needs when it is
 *   created. Large values are the exception: each PUT, GET or stream of one allocates some KiB, and
 *   4 bytes for each MiB of a value that is read. Operations that find no request free wait in the
 *   queue.
 *
 * Copies
 *   The value of a PUT is copied once, into memory of the segment. A PUT with XSEG_KV_GIVE copies
 *   nothing: xseg_kv_prepare() says where the program is to write the value. The value of a GET is
 *   copied from where the cache has it. A GET with XSEG_KV_LOAN copies nothing: xseg_kv_data() says
 *   where the value is. What is lent shows whole pages, so also values that stand beside the one
 *   that was asked for.
 *
 * Threads, forks
 *   As in volume.h: a store belongs to all threads of the process, a queue with its operations to
 *   one thread at a time. A child after fork() has no part of either. There calls return -ENOTCONN,
 *   and what was out at the fork comes back so.
 *
 * Failures
 *   If a process below is killed or restarts, or if a cache is plugged or unplugged, operations
 *   take longer, and no error is seen. These are the errors:
 *      -ENOENT    There is no such key, or it has expired.
 *      -EEXIST    IF_ABSENT: the key is there. IF_VERSION: it has another version.
 *      -ECANCELED Another change of the same batch failed.
 *      -EIO       The value is damaged, or the store below failed. FLUSH: the store has lost what
 *                 it had answered; the next one succeeds.
 *      -ENOSPC    The store is full; deletes still work.
 *      -EFBIG     The value is larger than value_max_bytes. A large value cannot be lent, changed
 *                 in place, or be part of a batch.
 *      -E2BIG     The changes of a batch are more than 1000, or more than 1 MiB.
 *      -EINVAL    The operation cannot be done: an empty key, memory that is missing. INCR and
 *                 DECR: the value is not a decimal number. Never sent, but for the last case.
 *      -EAGAIN    The value changed its size each time that it was asked for. xseg_kv_prepare():
 *                 all memory of the queue is in use.
 *      -EMSGSIZE  SCAN: the memory does not hold the next key.
 *      -EBUSY     This struct xseg_kv_io is out already, or holds a loan, or is prepared. Or too
 *                 many streams are open.
 *      -ESTALE    kvd serves another log than at the opening. To go on: open the store again. GET
 *                 of a version: the key has another one. A stream: kvd has forgotten it. To go on:
 *                 begin it anew.
 *      -ENOTCONN  kvd has been stopped, or is dead with nobody to start it, since params.gone_ns,
 *                 or the segment was removed. The queue is lost; what was out is done or not, and
 *                 xseg_kv_look() says why. To go on: destroy the queue, close the store, and open
 *                 it again.
 *      -EPROTO    kvd's answer makes no sense.
 *
 *   Nothing here prints, ends the process, reads the environment, or has a handler of signals.
 */
#ifndef XSEG_KV_H
#define XSEG_KV_H

#include <stddef.h>
#include <sys/uio.h>

#include "xseg/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xseg_kv;
struct xseg_kv_queue;
struct xseg_kv_stream;

#define XSEG_KV_KEY_MAX	  65536u
#define XSEG_KV_BATCH_MAX 1000u			/* changes; of 1 MiB in all */

/* ---- stores ------------------------------------------------------------------------------ */

struct xseg_kv_params {
	const char *segment;			/* its name; or NULL, and */
	/* an attachment of the caller's, who detaches it after the store is closed */
	struct xseg *attached;
	/* which; NULL: the segment's only one, beside those that are stopped */
	const char *kvd;
	uint64_t timeout_ns;			/* for kvd to start and to answer; 0: 10 s */
	/* with no server: what is out fails; 0: 5 s. An open waits for a kvd that is
	 * stopped under a supervisor, as in a restart, for that time; 0: 2 s */
	uint64_t gone_ns;
	/* whose segment is let in besides the caller's and root's: a user's name, or number as
	 * text; NULL: nobody's. Used where `segment` is */
	const char *owner;
};

struct xseg_kv_info {
	char kvd[XSEG_NAME_MAX];
	uint32_t id;				/* of the log, in this segment */
	uint32_t time_s;			/* kvd's clock, by which values expire */
	uint64_t keys, keys_max;
	/* live: of records that are the newest of their key; log: of all; size: what it may grow
	 * to */
	uint64_t live_bytes, log_bytes, size_bytes;
	uint64_t value_max_bytes;
	uint64_t piece_bytes;			/* of a large value; 1 MiB or less */
};

/* Attaches if need be, and asks kvd. Errors as those of xseg_volume_open(); -ENOENT: no such
 * segment or kvd. */
int xseg_kv_open(const struct xseg_kv_params *params, struct xseg_kv **kv,
	struct xseg_error *err) XSEG_MUST_CHECK;
/* After all of its queues were destroyed. NULL: nothing. */
void xseg_kv_close(struct xseg_kv *kv);
/* Asks kvd. 0; -ESTALE: kvd serves another log; -ENOTCONN; -ETIMEDOUT; -ENOSPC, -ENOMEM: the
 * segment has nothing left to ask with; -EPROTO. Any thread; waits. */
int xseg_kv_get_info(struct xseg_kv *kv, struct xseg_kv_info *info) XSEG_MUST_CHECK;
/* Why operations come back with -ENOTCONN, as xseg_volume_look(). Any thread; does not wait. */
int xseg_kv_look(struct xseg_kv *kv, struct xseg_error *err) XSEG_MUST_CHECK;

/* ---- queues ------------------------------------------------------------------------------ */

struct xseg_kv_queue_params {
	uint32_t depth;				/* requests out at a time, 1 to 1024; 0: 32 */
	/* what one operation takes: key and value and a page or two, rounded up to 4 KiB; 8 KiB to
	 * 1 MiB; 0: 64 KiB. Larger operations, and pieces of large values, share rooms of 1 MiB */
	uint32_t room_bytes;
	uint32_t large_rooms;	/* so many of those are out at a time: 1 to 64; 0: 1 */
};

/* What a queue takes of the segment's memory, in bytes: whole pieces of 2 MiB. It also takes a port
 * and `depth` requests. params may be NULL. Pure. */
uint64_t xseg_kv_queue_memory(const struct xseg_kv_queue_params *params);
/* Takes a port, `depth` requests and depth * room_bytes + large_rooms MiB of memory, in pieces of
 * 2 MiB, from the segment. -ENOSPC, -ENOMEM: they are not there; -ENOTCONN; -EPROTO: somebody
 * truncated the segment's file. params may be NULL. */
int xseg_kv_queue_create(struct xseg_kv *kv, const struct xseg_kv_queue_params *params,
	struct xseg_kv_queue **queue, struct xseg_error *err) XSEG_MUST_CHECK;
/* What is out is abandoned: it may be done yet, or not. NULL: nothing. */
void xseg_kv_queue_destroy(struct xseg_kv_queue *queue);

/* ---- operations -------------------------------------------------------------------------- */

enum xseg_kv_op {
	XSEG_KV_GET,	/* result: the value's bytes; as many as fit are copied to `value` */
	XSEG_KV_EXISTS,	/* result: 0; version and expiry are 0 if kvd did not read them */
	XSEG_KV_SCAN,				/* see below */
	XSEG_KV_BACKUP,				/* see below */
	XSEG_KV_PUT,
	XSEG_KV_DELETE,				/* -ENOENT: it was not there */
	XSEG_KV_APPEND,				/* to the value that is there; -ENOENT */
	XSEG_KV_PREPEND,
	XSEG_KV_INCR,	/* the value is a decimal number; `number` is added, modulo 2^64 */
	XSEG_KV_DECR,				/* taken away, down to 0 */
	XSEG_KV_TOUCH,				/* a new expiry, and nothing else */
	/* PUTs and DELETEs; the delete of a key that is not there does not fail the others */
	XSEG_KV_BATCH,
	XSEG_KV_FLUSH,		/* all that was back before is on stable storage, by any queue */
	/* of a stream: see "large values" */
	XSEG_KV_BEGIN, XSEG_KV_PART, XSEG_KV_COMMIT, XSEG_KV_ABORT,
	XSEG_KV_OPEN, XSEG_KV_PIECE, XSEG_KV_CLOSE,
	XSEG_KV_DELETE_ALL,			/* see below */
	XSEG_KV_NR_OPS
};

/* of a change: what must be so for it to be done */
enum xseg_kv_condition {
	XSEG_KV_ALWAYS, XSEG_KV_IF_ABSENT, XSEG_KV_IF_PRESENT, XSEG_KV_IF_VERSION
};

#define XSEG_KV_FORCE	  1u	/* changes, BATCH, COMMIT: back when it is on stable storage */
#define XSEG_KV_LOAN	  2u	/* GET: see xseg_kv_data() */
/* GET, PIECE: the CRC of key and value is not checked; that of the header, and the key, are */
#define XSEG_KV_UNCHECKED 4u
/* GET, SCAN, OPEN, PIECE: a cache below need not keep what is read; PUT, PART: nor what is put */
#define XSEG_KV_ONCE	  8u
#define XSEG_KV_GIVE	  16u	/* PUT, PART: see xseg_kv_prepare() */

/* A key, and what is wanted of it or known of it. */
struct xseg_kv_item {
	const void *key;
	void *value;				/* is only read by changes */
	uint32_t key_bytes;
	uint32_t op;				/* in a BATCH: enum xseg_kv_op */
	uint64_t value_bytes;		/* of the value that is put; of the memory for a GET */
	uint32_t condition;			/* of a change: enum xseg_kv_condition */
	uint32_t ttl_s;				/* of a change: seconds from now; 0: see expiry */
	uint32_t expiry;	/* seconds of kvd's clock, 0: never; of a change, and after a GET */
	uint32_t client;	/* a word of the caller's, kept with the value */
	/* IF_VERSION; GET: only that one, 0: any. Afterwards the version that the key has */
	uint64_t version;
	uint64_t number;		/* INCR, DECR: how much; afterwards the number as it is */
	int32_t result;				/* of a change: 0 or a negative errno */
};

struct xseg_kv_io {
	enum xseg_kv_op op;
	uint32_t flags;				/* XSEG_KV_* */
	struct xseg_kv_item item;		/* of all but BATCH and FLUSH */
	struct xseg_kv_item *batch;		/* BATCH: no key twice */
	uint32_t nr_batch;
	int32_t state;				/* libxseg's */
	uint64_t cursor;			/* SCAN */
	struct xseg_kv_stream *stream;		/* BEGIN to CLOSE */
	uint64_t offset;			/* PART, PIECE */
	void *cookie;				/* the caller's */
	int64_t result;				/* when it is back */
	struct {				/* libxseg's */
		struct xseg_kv_io *next;
		void *slot, *whole;
		uint64_t zone, place, total;
		uint32_t pages, asked, looks, tries, step;
	} own;
};

/* A DELETE_ALL deletes all values of the store, large ones too, in one step. That step does not
 * take longer if there are many. It has no key. With a ttl_s, or an expiry, it does so at that
 * time: all values that are there then go, also those that were put meanwhile. A later DELETE_ALL
 * replaces one that waits for its time. XSEG_KV_FORCE: it is back when it is on stable storage; one
 * that waits stays, too, then. A reader of a large value has its version to the end. */

/* Takes an operation. It is sent, at the latest, when the queue is next polled, waited for or
 * armed: a batch of them costs one ring. 0, or an error above: then it is the caller's still. Never
 * waits. */
int xseg_kv_submit(struct xseg_kv_queue *queue, struct xseg_kv_io *io) XSEG_MUST_CHECK;
/* Sends what was submitted. */
void xseg_kv_kick(struct xseg_kv_queue *queue);
/* Takes up to max operations that are back, in the order in which they came. */
uint32_t xseg_kv_poll(struct xseg_kv_queue *queue, struct xseg_kv_io **done, uint32_t max);
/* The same; sleeps up to timeout_ns until there is one. 0: none in that time, or none is out. */
uint32_t xseg_kv_wait(
	struct xseg_kv_queue *queue, struct xseg_kv_io **done, uint32_t max, uint64_t timeout_ns);
/* Submits an operation and waits until it is back, however long; others that come back meanwhile
 * are there for the next poll. Its result; -EDEADLK: the caller has all of the queue's requests, or
 * its large room (XSEG_KV_LOAN, XSEG_KV_GIVE), so it would wait for ever. */
int64_t xseg_kv_run(struct xseg_kv_queue *queue, struct xseg_kv_io *io) XSEG_MUST_CHECK;
/* Operations that were submitted and not yet taken by poll or wait. */
uint32_t xseg_kv_out(const struct xseg_kv_queue *queue);

/* A GET with XSEG_KV_LOAN has no `value`: when it is back with a good result, this says where its
 * value is, in up to max pieces (no more than result / 4096 + 2), only to be read; returns how
 * many. It stays there, unchanged, until xseg_kv_release(), which must follow. So long it takes one
 * of the queue's `depth`, and pages that the cache would like to have back. */
uint32_t xseg_kv_data(struct xseg_kv_queue *queue, const struct xseg_kv_io *io,
	struct iovec *piece, uint32_t max);
/* For a PUT or PART with XSEG_KV_GIVE and without item.value: takes one of the queue's `depth`, and
 * a large room if it needs one, and says where the value is to be written, up to value_bytes of
 * it, before the operation is submitted. It is the queue's own memory, in the segment, and the
 * caller's to write until the submission. It begins at a multiple of 64 bytes. Returns the number
 * of pieces, no more than 1 in this version.
 * -EAGAIN: all are out; -EFBIG: a PUT of a large value, which is put by PARTs; -EINVAL: also
 * without a byte of value; or an error above. The key need not be there yet.
 *
 * It is submitted to this queue as the same operation, with the same key_bytes, of a PART also the
 * same stream and offset. value_bytes may be less, but not 0; all else may change. -EINVAL: it is
 * another one, and stays prepared. Not submitted after all: xseg_kv_release(). When it is back the
 * memory is the queue's again, also after an error. A PUT or PART with XSEG_KV_GIVE and a value is
 * copied, as without. */
int xseg_kv_prepare(struct xseg_kv_queue *queue, struct xseg_kv_io *io, struct iovec *piece,
	uint32_t max) XSEG_MUST_CHECK;
/* Of what is held through this queue. Else nothing: also the second time. */
void xseg_kv_release(struct xseg_kv_queue *queue, struct xseg_kv_io *io);

/* A SCAN tells keys that begin with item.key (0 bytes: all), in an order of kvd's own. It fills
 * item.value, of item.value_bytes, 4 KiB or more, with entries. The result is their bytes, and
 * io.cursor is where to go on: 0 at first, and after the last. Each key that was there all the time
 * is told exactly once, one that came or went meanwhile at most once. An answer may have no entry
 * and lead on.
 *
 *      io.cursor = 0;
 *      do {
 *              if (xseg_kv_run(q, &io) < 0) ...
 *              for (size_t at = 0; xseg_kv_next(&io, &at, &entry);)
 *                      ... entry.key ...
 *      } while (io.cursor);
 */
struct xseg_kv_entry {
	const void *key;			/* in item.value */
	uint64_t value_bytes, version;
	uint32_t key_bytes, expiry, client;
};
/* The next entry of a SCAN that is back, and 1; *at is 0 at first. 0: there is none. */
int xseg_kv_next(const struct xseg_kv_io *io, size_t *at, struct xseg_kv_entry *entry);

/* A BACKUP tells the records of the log, as a SCAN tells keys: io.cursor is 0 at first and after
 * the last, and item.value has XSEG_KV_BACKUP_BYTES or more. Changes may go on. All records that
 * are told are together the state at the begin: of those with one identity the one with the highest
 * sequence counts, of equal ones any; a key of which that one is not `set` is deleted. Records that
 * do not verify are left out, and counted in item.number. -EBUSY: another backup or verify is under
 * way. -ESTALE, -EIO, -ENOSPC: it broke off; begin anew. */
#define XSEG_KV_BACKUP_BYTES (1u << 20)

struct xseg_kv_record {
	/* in item.value; a deleted one has no value, nor has a large one: see
	 * xseg_kv_record_open() */
	const void *key, *value;
	uint64_t identity[2], sequence, version;
	uint64_t value_bytes;
	uint32_t key_bytes, expiry, client;
	int32_t set;
	const void *list;			/* libxseg's, of a large value; else NULL */
	uint32_t list_bytes;
};
/* The next record of a BACKUP that is back, and 1; *at is 0 at first. 0: there is none. */
int xseg_kv_next_record(
	const struct xseg_kv_io *io, size_t *at, struct xseg_kv_record *record);

/* ---- large values -------------------------------------------------------------------------
 *
 * A large value stands in pieces of piece_bytes (struct xseg_kv_info); the last one may be shorter.
 * Each piece bears a CRC. PUT and GET of a large value work as they do of others, if the caller's
 * memory has all of it: the library sends pieces, up to `large_rooms` at a time. Such a put is
 * atomic, too: the value shows when its last piece is stored.
 *
 * A *stream* puts or gets a value in pieces that the caller has one after the other, so neither
 * side needs memory for all of it. A stream belongs to one queue. Its operations name it in
 * io.stream, and have what the list says:
 *
 *   BEGIN    key; value_bytes: the length, or XSEG_KV_UNKNOWN. -ENOSPC: there is no room for it
 *   PART     offset, a multiple of piece_bytes; value, value_bytes: a piece. In any order, several
 *            at a time, also again. -ENOSPC: of a value of unknown length
 *   COMMIT   key; value_bytes: the length, not 0; condition, version, ttl_s, expiry, client as of a
 *            PUT. When all PARTs are back. -EINVAL: a piece is missing. -EIO: a piece was lost, so
 *            begin anew. The stream is free if the result is 0
 *   ABORT    what was put is forgotten, and the stream is free
 *   OPEN     key; version (0: any). Result: the value's bytes. version, expiry and client are set.
 *            The stream reads this version to its end, whatever is put or deleted meanwhile
 *   PIECE    offset, a multiple of piece_bytes; value, value_bytes: the memory. Result: the bytes
 *            of the piece. As many as fit are copied
 *   CLOSE    the version is let go, and the stream is free
 *
 * OPEN takes values of any size. PUT is faster for one that is not xseg_kv_is_large().
 *
 * kvd frees what a stream has there when its queue is destroyed, or its process dies. If kvd is
 * killed, its successor knows the streams. After a loss of power it does not: -ESTALE; begin anew.
 * PUT and GET do that themselves. -EBUSY: too many streams are open. */
#define XSEG_KV_UNKNOWN UINT64_MAX

/* Whether a value of that size is put in pieces. */
int xseg_kv_is_large(const struct xseg_kv *kv, uint32_t key_bytes, uint64_t value_bytes);
/* NULL: no memory. */
struct xseg_kv_stream *xseg_kv_stream_create(struct xseg_kv_queue *queue);
/* With none of its operations out; also after the queue was destroyed. NULL: nothing. */
void xseg_kv_stream_destroy(struct xseg_kv_stream *stream);
/* After an OPEN: the value's bytes, version, expiry and client. */
void xseg_kv_stream_item(const struct xseg_kv_stream *stream, struct xseg_kv_item *item);
/* The bytes of a piece, but for the last one. */
uint64_t xseg_kv_stream_piece(const struct xseg_kv_stream *stream);

/* The large value of a record that a BACKUP told; `io` is the BACKUP that is back. PIECE and CLOSE
 * are for the stream then, until the next BACKUP is submitted. 0, -EINVAL, -ENOMEM; -EPROTO. */
int xseg_kv_record_open(struct xseg_kv_queue *queue, const struct xseg_kv_io *io,
	const struct xseg_kv_record *record, struct xseg_kv_stream *stream) XSEG_MUST_CHECK;

/* Streams by calls that wait, for values of any size. */

/* item: as of BEGIN and COMMIT together. flags: XSEG_KV_FORCE, XSEG_KV_ONCE. The key is copied. 0,
 * or a negative errno: then there is no stream. */
int xseg_kv_put_begin(struct xseg_kv_queue *queue, const struct xseg_kv_item *item, uint32_t flags,
	struct xseg_kv_stream **stream) XSEG_MUST_CHECK;
/* The next bytes of the value, as many as the caller has. 0 or a negative errno: only abort is left
 * then. */
int xseg_kv_put_part(
	struct xseg_kv_stream *stream, const void *data, uint64_t bytes) XSEG_MUST_CHECK;
/* Puts the value; the stream is gone in any case. *version (may be NULL): the value's. 0 or a
 * negative errno, as of a PUT. */
int xseg_kv_put_commit(struct xseg_kv_stream *stream, uint64_t *version) XSEG_MUST_CHECK;
/* Nothing is put, and the stream is gone. NULL: nothing. */
void xseg_kv_put_abort(struct xseg_kv_stream *stream);

/* item: key and version (0: any); value_bytes, version, expiry and client are set. flags:
 * XSEG_KV_ONCE, XSEG_KV_UNCHECKED. */
int xseg_kv_get_open(struct xseg_kv_queue *queue, struct xseg_kv_item *item, uint32_t flags,
	struct xseg_kv_stream **stream) XSEG_MUST_CHECK;
/* Reads at any place: the bytes that were read, fewer than `size` only at the end of the value; or
 * a negative errno. A stream that kvd does not know is opened again. -ESTALE: then another version
 * was there. */
int64_t xseg_kv_get_piece(struct xseg_kv_stream *stream, uint64_t offset, void *buf,
	uint64_t size) XSEG_MUST_CHECK;
/* The stream is gone. NULL: nothing. */
void xseg_kv_get_close(struct xseg_kv_stream *stream);

/* ---- one at a time ----------------------------------------------------------------------- */

/* The value's bytes, of which as many as fit are in buf; or a negative errno. */
int64_t xseg_kv_get(struct xseg_kv_queue *queue, const void *key, uint32_t key_bytes, void *buf,
	uint64_t size) XSEG_MUST_CHECK;
/* Each of these: 0 or a negative errno. */
int xseg_kv_put(struct xseg_kv_queue *queue, const void *key, uint32_t key_bytes,
	const void *value, uint64_t value_bytes) XSEG_MUST_CHECK;
int xseg_kv_delete(
	struct xseg_kv_queue *queue, const void *key, uint32_t key_bytes) XSEG_MUST_CHECK;
/* -ENOENT: it is not there. */
int xseg_kv_exists(
	struct xseg_kv_queue *queue, const void *key, uint32_t key_bytes) XSEG_MUST_CHECK;
/* ttl_s: in so many seconds; 0: now. */
int xseg_kv_delete_all(struct xseg_kv_queue *queue, uint32_t ttl_s) XSEG_MUST_CHECK;
int xseg_kv_flush(struct xseg_kv_queue *queue) XSEG_MUST_CHECK;

/* ---- for loops that wait for descriptors: as in volume.h --------------------------------- */

int xseg_kv_fd(struct xseg_kv_queue *queue);
int xseg_kv_arm(struct xseg_kv_queue *queue) XSEG_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
