/* usage - how many bytes the objects of each volume take in a store: counted in the background, and
 * told on request.
 *
 * Objects are counted by *prefix*: the beginning of their names, up to the last ':'. The objects of
 * a volume have one prefix, and those of a kvd. Objects without a prefix are in the sum only.
 *
 * A store looks at all of its objects to count them. It does so in steps, beside its requests. A
 * question ("usage [FROM]") has the last complete count at once, and how far the next one is. It
 * also has the next count begun, unless the last one is USAGE_FRESH_NS old or less, or ended less
 * than nine times its own duration ago. So counting takes a tenth of a thread at most.
 *
 *	count=N			the number of the complete count; 0: there is none yet
 *	counting=yes|no		whether a count runs; percent=N: how far it is
 *	age_ms=N		since the end of the complete one
 *	bytes=N			of all objects; objects=N: their number
 *	error=TEXT		why the last count failed; the one before it is told
 *	prefix=P bytes=N objects=N
 *	next=N			there are more: ask "usage N"
 *
 * Contract: usage_ask() from any thread; it holds a lock for the time of an answer. All else from
 * the one thread that counts; usage_add() takes no lock. Nothing blocks, and nothing but
 * usage_open() allocates.
 *
 * Invariants
 *   US1  The table that is shown is of one complete count, and does not change while it is shown.
 *   US2  One count at a time: usage_ask() has a count begun only when none runs.
 */
#ifndef PEERS_COMMON_USAGE_H
#define PEERS_COMMON_USAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xseg/xseg.h"

#define USAGE_PREFIX   64u			/* the longest one, with its ':' and a NUL */
#define USAGE_SLOTS    16384u			/* of a table of prefixes */
#define USAGE_FRESH_NS UINT64_C(1000000000)

struct usage_group;

struct usage_table {
	struct usage_group *slot;		/* USAGE_SLOTS */
	uint64_t count;				/* a slot of another count is free */
	uint64_t bytes, objects;		/* of all */
	uint32_t nr;				/* slots that are taken */
};

struct usage {
	struct usage_table table[2];
	pthread_mutex_t lock;			/* a leaf; guards what follows */
	uint32_t shown;				/* the table to tell (US1); the other is filled */
	uint64_t count;				/* counts that were begun */
	bool running;
	uint32_t percent;
	int error;				/* of the last count */
	uint64_t begun_ns, ended_ns;		/* of the count that runs or ran last */
	uint64_t done_ns;			/* end of the one that is shown */
};

int usage_open(struct usage *u) XSEG_MUST_CHECK;
void usage_close(struct usage *u);		/* one that was not opened is all zeroes */

/* Answers the command `line`. -ENOSYS: it is another one. *begin: the caller has the store counted;
 * usage_begin() to usage_end(). */
int64_t usage_ask(struct usage *u, const char *line, uint64_t now_ns, char *out, size_t size,
	bool *begin) XSEG_MUST_CHECK;

void usage_begin(struct usage *u);
/* An object, or a part of one, for objects = 0. */
void usage_add(struct usage *u, const char *name, uint64_t bytes, uint32_t objects);
/* How far it is, before its end. */
void usage_step(struct usage *u, uint32_t percent);
/* rc: 0, or a negative errno: why it could not be completed. */
void usage_end(struct usage *u, int rc, uint64_t now_ns);

#endif
