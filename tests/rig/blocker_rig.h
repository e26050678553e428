/* blocker_rig - one object store and one client in one thread, over a private segment: for the
 * tests of blockers.
 *
 * Contract: one thread. Everything asserts (cmocka's assert_*): an error here is a failed test.
 * Requests are sent with rig_send() and wait in the store until rig_wait() or rig_settle() steps
 * it. Without a real clock time stands still but for rig_advance() and rig_wait(), which goes to
 * the store's next deadline when nothing else can happen. With a real clock nothing has a limit of
 * time here, because the machine may be slow: tests/run.sh ends a test that hangs.
 */
#ifndef TESTS_UNIT_BLOCKER_RIG_H
#define TESTS_UNIT_BLOCKER_RIG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "peers/common/runtime/peer.h"

#define KIB 1024u
#define MIB (1024u * 1024)

/* The options of a store; for as long as the block in which it is written lasts. */
#define OPTIONS(...) ((const char *const[]){ __VA_ARGS__, NULL })

#define RIG_IOS 32			/* requests in flight at most */

struct rig_io {
	bool used, sent, done;
	int64_t result;
	uint64_t done_ns;
	struct xreq *r;
	uint32_t slot;			/* its pages are slot * 257 ... */
};

struct rig {
	const struct peer_class *cls;
	const char *const *options;	/* "key=value", ended by NULL; kept for successors */
	struct xseg *seg;
	struct peer *peer;
	struct xseg_peer *client;
	struct xport *port;
	uint32_t *pages;
	uint64_t now_ns;
	bool real_clock;
	uint64_t ahead_ns;			/* of the real clock: rig_advance() */
	uint32_t nr_rests;
	uint64_t nr_done;		/* replies in all */
	struct rig_io io[RIG_IOS];
	_Atomic bool threads_run;
	pthread_t thread[PEER_MAX_THREADS];
};

/* From now on the clock is a real one, and each port is served by a thread of its own, as by
 * reactors; and no longer. */
void rig_threads_start(struct rig *g);
void rig_threads_stop(struct rig *g);

/* Segment, client and store. */
void rig_open(struct rig *g, const struct peer_class *cls, const char *const *options,
	bool real_clock);
/* In order; a store that has not answered all, as when a test has failed, is killed. */
void rig_close(struct rig *g);
/* The store begins, as successor of one that was killed or stopped; 0 or what peer_open() says. */
int rig_start(struct rig *g);
void rig_kill(struct rig *g);
void rig_stop(struct rig *g);
void rig_restart(struct rig *g);
/* A live option; what the "set" command does. */
int rig_set(struct rig *g, const char *key, const char *value);
/* An ADMIN line; the answer's length or error, the text in out. */
int64_t rig_admin(struct rig *g, const char *line, char *out, size_t size);
/* The answer to "status" has that text in it. */
void rig_status_has(struct rig *g, const char *line);

/* Sends a request whose data (may be NULL) is laid out in its pages as xseg.h says. */
struct rig_io *rig_send(struct rig *g, enum xseg_op op, const char *object, uint64_t offset,
	uint32_t size, const void *data, unsigned flags);
struct rig_io *rig_send_copy(
	struct rig *g, const char *from, const char *to, uint64_t offset, uint32_t size);
/* `size` bytes of room; obj_offset is the cursor. */
struct rig_io *rig_send_list(struct rig *g, const char *prefix, uint64_t cursor, uint32_t size);
struct rig_io *rig_send_flush(struct rig *g, uint32_t volume, const char *target);
/* Steps the store until the request is answered; its result. Its pages can still be read until
 * the next rig_send(). */
int64_t rig_wait(struct rig *g, struct rig_io *io);
/* One round of each port and of the client. */
void rig_step(struct rig *g);
/* Between steps, with a real clock: leaves the processor to the store's threads now and then. It
 * sleeps, as who yields beside programs that never sleep gets it back when each of these has had a
 * time slice; and for so long that going to sleep is not most of the work. */
void rig_rest(struct rig *g);
/* Rounds until nothing more happens at this time (with a real clock: for a while). */
void rig_settle(struct rig *g);
void rig_advance(struct rig *g, uint64_t ns);
void rig_data(struct rig *g, struct rig_io *io, void *buf, uint32_t size);

/* Send and wait. */
int64_t rig_read(struct rig *g, const char *object, uint64_t offset, void *buf, uint32_t size);
int64_t rig_write(struct rig *g, const char *object, uint64_t offset, const void *data,
	uint32_t size, unsigned flags);
int64_t rig_op(struct rig *g, enum xseg_op op, const char *object, uint64_t offset, uint32_t size);
int64_t rig_copy(struct rig *g, const char *from, const char *to, uint64_t offset, uint32_t size);
int64_t rig_flush(struct rig *g, uint32_t volume, const char *target);
/* One step of a listing, with a page of room. 0 and *cursor to go on with, 0 at the end; or the
 * error. Each name is handed to tell(). */
int64_t rig_list(struct rig *g, const char *prefix, uint64_t *cursor,
	void (*tell)(void *arg, const char *name), void *arg);

/* Whether `size` bytes of the object are all `byte`. */
bool rig_holds(struct rig *g, const char *object, uint64_t offset, uint32_t size, uint8_t byte);
/* Writes `size` times `byte`. */
int64_t rig_fill(struct rig *g, const char *object, uint64_t offset, uint32_t size, uint8_t byte,
	unsigned flags);
/* Writes 4 KiB of the byte i + 1 to each object oI, I from 0 to nr - 1; they must have it. */
void rig_fill_many(struct rig *g, uint32_t nr);
void rig_many_hold(struct rig *g, uint32_t nr);

#endif
