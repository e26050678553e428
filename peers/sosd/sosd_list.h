/* sosd_list - the names of the pool's objects, for LIST.
 *
 * RADOS lists a pool in the order of its objects' hashes. Its cursor has a meaning in this process
 * only. So the space of the hashes is cut into 2^N slices of the same size, and an answer holds the
 * names of whole slices. A LIST's cursor holds the next slice and N. If the names of a slice have
 * no room in the answer, the slice is cut in two. If slices bring few names, the next one is twice
 * as large. All of the pool is read, including objects of other prefixes: RADOS finds no object by
 * the beginning of its name.
 *
 * librados lists by calls that block. So a thread of its own makes them, one LIST at a time.
 * Between LISTs it counts bytes (sosd_sizes.h), and asks how much room the cluster has.
 *
 * Contract: sosd_lister_open() and _close() belong to init and fini. Ports' threads hand over ops.
 * `done` is called on the lister's thread when op->result is set, and the op is the port's again.
 *
 * Invariants
 *   L1  An object that is there all the time is named at least once. It is in one slice of each
 *       size, and a slice is named as a whole or asked for again.
 */
#ifndef PEERS_SOSD_SOSD_LIST_H
#define PEERS_SOSD_SOSD_LIST_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "peers/common/blocker/ops.h"
#include "peers/sosd/sosd_sizes.h"
#include "peers/sosd/sosd_rados.h"

struct sosd_op;
struct peer;

struct sosd_lister {
	struct sosd_rados *rados;
	struct xseg *seg;
	const char *name;			/* of the peer, for the log */
	const char *prefix;
	void (*done)(struct sosd_op *op);
	pthread_t thread;
	bool begun;				/* the thread is there; init's and fini's */
	pthread_mutex_t lock;			/* guards `waiting`, and that `stop` wakes */
	pthread_cond_t wake;
	struct ops_list waiting;
	bool counts, looks;			/* wanted */
	_Atomic bool stop;			/* init's and fini's thread writes it */

	struct sosd_sizes sizes;		/* but for `usage` the thread's */
	bool space_low;				/* the thread's: that was told */
	/* of the cluster, before copies; as it was looked at last */
	_Atomic uint64_t size_bytes, free_bytes;
};

/* Begins the thread. `rados` is open, and stays so until sosd_lister_close(). */
int sosd_lister_open(struct sosd_lister *l, struct sosd_rados *rados, const struct peer *p,
	const char *prefix, void (*done)(struct sosd_op *op)) XSEG_MUST_CHECK;
/* Waits for the call that is out, for librados' time-out at most. One that was not opened is all
 * zeroes. */
void sosd_lister_close(struct sosd_lister *l);
void sosd_lister_give(struct sosd_lister *l, struct sosd_op *op);
/* Has the objects counted, as l->sizes.usage wants. */
void sosd_lister_count(struct sosd_lister *l);
/* Has the cluster asked how much room it has. */
void sosd_lister_look(struct sosd_lister *l);

#endif
