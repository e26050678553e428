/* writers.h - how the guard (guard.c) has small writes done by the plug-in (writers.c), without a
 * thread of nbdkit for each: nbdkit has no call for that, so the plug-in looks the function of the
 * guard up when it begins.
 *
 * A writer is a queue of the plug-in, with several writes in flight. The plug-in makes some when it
 * begins. A connection takes one while it has writes in flight.
 *
 * Contract: a writer is used by one thread at a time, from take() to put(). Nothing but reap()
 * sleeps. submit() copies the data.
 */
#ifndef XSEG_NBDKIT_WRITERS_H
#define XSEG_NBDKIT_WRITERS_H

#include <stdbool.h>
#include <stdint.h>

#define WRITER_BYTES   (32u << 10)	/* of a write, at most */
#define WRITER_ANSWERS 16u		/* that reap() returns, at most */
#define WRITERS_SYMBOL "xseg_guard_use_writers"
#define BIND_SYMBOL    "xseg_guard_bind"

struct writer_io {
	uint64_t handle;			/* the client's, returned with the answer */
	uint64_t offset;
	uint32_t size;
	bool fua;
	const void *data;
};

struct writer_answer {
	uint64_t handle;
	uint32_t error;				/* as the NBD protocol numbers them; 0: done */
};

struct writer_ops {
	void *(*take)(void *export);		/* NULL: all are taken */
	void (*put)(void *writer);		/* nothing of it is in flight */
	/* 0: it is in flight; -EAGAIN: as many are as can be; else an error for the client */
	int (*submit)(void *writer, const struct writer_io *w);
	/* Sends what was submitted, and waits until there is an answer, or the time is over. */
	unsigned (*reap)(void *writer, struct writer_answer *answers, uint64_t timeout_ns);
	/* The thread will do something else than wait in reap(). */
	void (*leave)(void);
	/* A descriptor that becomes readable when there are answers, until reap(). -EAGAIN: there
	 * may be some now; another error: there is no descriptor. */
	int (*arm)(void *writer);
};

/* The guard's function; false: it does no writes. `ops` stays. */
typedef bool use_writers_fn(const struct writer_ops *ops);
use_writers_fn xseg_guard_use_writers;
/* The connection whose handshake this thread does has chosen what it wants: its small writes are
 * for the writers of `export`; NULL: it has none. It may choose again before its first request. */
typedef void bind_fn(void *export);
bind_fn xseg_guard_bind;

#endif
