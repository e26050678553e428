/* sosd_owner - which process may serve the objects of a prefix: one at a time, on whatever host.
 *
 * The object PREFIX:owner has a lock (class "lock" of the OSD) and a *record* as its data. No
 * stored object can have that name. The lock expires when its holder does not renew it. The record
 * has the address by which the OSDs know the last process that served, and that process's name. If
 * that process left in order, the address is "-". The lock's cookie is the holder's name, too:
 * HOST/SEGMENT/PEER/MADE, where MADE is the time at which its segment was made.
 *
 *   from     to       when                                              by
 *   ASKING   OWNER    it has the lock; the OSDs refuse the process      sosd_owner_open(), else the
 *                     that the record names; the record names us        keeper
 *   ASKING   LOST     after we had begun, another process was found     the keeper
 *                     that has the lock, or has had it
 *   OWNER    LOST     the lock could not be renewed, as another has     the keeper
 *                     it, or has had it; or the OSDs refuse us
 *
 * A process that is not OWNER sends nothing. An OWNER has a *lease* from the time at which it asked
 * for its last renewal. After the lease it sends nothing either, as it may have been replaced. The
 * time that the machine slept counts (CLOCK_BOOTTIME). A lock that another process of the same name
 * has is a dead predecessor's, as the segment lets one process at a time have the name. Such a lock
 * is broken, after the OSDs have been told to refuse the predecessor.
 *
 * Contract: sosd_owner_open(), _leave() and _close() block, and belong to init, close_how and fini.
 * sosd_owner_state() is one load, for any thread. The keeper is a thread of its own, which blocks
 * in librados. It calls `changed` when the state has changed.
 *
 * Invariants:
 *   W1  Before an OWNER sends anything, the OSDs know that they must refuse the previous OWNER,
 *       unless that one left in order. An OSD that executes a request of the new OWNER knows the
 *       map that says so. It executes nothing more of the old one, nor anything that lay in its
 *       socket.
 *   W2  A segment that served before does not serve again if another segment has served meanwhile:
 *       the data in its caches is out of date. A word of the peer says that the segment served
 *       (SOSD_WORD_SERVED); it is stored before the first trip. The record says the other's name.
 *   W3  The record names every process that may have sent something since the last one left in
 *       order, except those that W1 holds for. The process that has the lock at that moment writes
 *       it; the OSD checks that in the same operation. The record has one length, so a full pool
 *       takes it.
 */
#ifndef PEERS_SOSD_SOSD_OWNER_H
#define PEERS_SOSD_SOSD_OWNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "peers/common/say/words.h"
#include "peers/sosd/sosd_name.h"
#include "peers/sosd/sosd_rados.h"

/* with the NUL: a host's name is up to 64, segment's and peer's up to 63 */
#define SOSD_HOLDER_MAX 256

enum sosd_owner_state { SOSD_ASKING, SOSD_OWNER, SOSD_LOST };

struct sosd_owner {
	struct sosd_rados *rados;
	const char *who;			/* the peer's name, for the log */
	char object[SOSD_NAME_MAX], me[SOSD_HOLDER_MAX];
	uint64_t expiry_ns;
	void (*changed)(void *arg);
	void *arg;
	struct xseg_peer *xp;
	_Atomic uint32_t state;		/* enum sosd_owner_state; by the keeper, once it runs */
	_Atomic uint64_t lease_end_ns;		/* the same */
	bool lapsed;			/* the keeper's: it had expired; who had it then? */
	/* why the lock cannot be had, or renewed, where that is not silence; or 0. By the keeper,
	 * once it runs, which says so when it changes */
	_Atomic int error;

	bool runs;
	pthread_t keeper;
	pthread_mutex_t lock;			/* guards what follows */
	pthread_cond_t end;
	bool ending;
};

struct sosd_owner_params {
	const char *prefix, *segment, *peer;
	struct xseg_peer *xp;
	uint64_t made_at_s, expiry_ns;
	void (*changed)(void *arg);	/* there is something new to know of state or lease */
	void *arg;
};

enum sosd_word { SOSD_WORD_SERVED = PEER_NR_WORDS };

/* OWNER, or ASKING when the pool does not answer. -EEXIST, with a line that names the holder:
 * another one has the lock, or had it since this segment served (W2). */
int sosd_owner_open(struct sosd_owner *w, struct sosd_rados *rados,
	const struct sosd_owner_params *p, struct xseg_error *err) XSEG_MUST_CHECK;
/* Nothing is out, and nothing will be sent: the next one need not wait. Who had lost the lock, not
 * knowing it, leaves no trace. */
void sosd_owner_leave(struct sosd_owner *w);
/* also without sosd_owner_leave(), as a kill would; before sosd_rados_close() */
void sosd_owner_close(struct sosd_owner *w);

static inline enum sosd_owner_state sosd_owner_state(struct sosd_owner *w)
{
	return (enum sosd_owner_state)atomic_load_explicit(&w->state, memory_order_acquire);
}

/* Why not, other than that the pool is silent; or 0. Any thread. */
static inline int sosd_owner_error(struct sosd_owner *w)
{
	return atomic_load_explicit(&w->error, memory_order_relaxed);
}

/* Right now. Any thread. */
bool sosd_owner_may_send(struct sosd_owner *w);

#endif
