/* sosd_owner - who may serve the objects of a prefix: one process at a time, of whatever host.
 *
 * The object PREFIX:owner, which is no object's name, has a lock (class "lock" of the OSD) that
 * expires when its holder does not renew it, and as its data the *record*: the address by which the
 * OSDs know the one who served last, or "-" if that left in order, and its name. The lock's cookie
 * is the holder's name, too: HOST/SEGMENT/PEER/MADE, MADE being when its segment was made.
 *
 *   from     to       when                                              by
 *   ASKING   OWNER    it has the lock; whom the record names is         sosd_owner_open(), else the
 *                     refused by the OSDs; the record names us          keeper
 *   ASKING   LOST     another one has the lock, or had it, whom we      the keeper
 *                     only met after we had begun
 *   OWNER    LOST     it could not be renewed, as another one has it,   the keeper
 *                     or has had it, or the OSDs refuse us
 *
 * Who is not OWNER sends nothing, nor does an OWNER whose last renewal was asked for longer ago
 * than it lasts (its *lease*): it may have been replaced. The time that the machine slept counts
 * (CLOCK_BOOTTIME). A lock that another one of the same name
 * has is a dead predecessor's: the segment lets one process at a time have the name. It is broken,
 * after the OSDs have been told to refuse that one.
 *
 * Contract: sosd_owner_open(), _leave() and _close() block, and belong to init, close_how and fini.
 * sosd_owner_state() is one load, for any thread. The keeper is a thread of its own, which blocks
 * in librados; it calls `changed` when the state has changed.
 *
 * Invariants:
 *   W1  before anything is sent by an OWNER the OSDs know that they are to refuse whoever was OWNER
 *       before it and did not leave. An OSD that does what the new one sends knows the map that
 *       says so, and does nothing more of the old one: also nothing that lay in its socket
 *   W2  a segment that served before does not serve again when another one has served meanwhile:
 *       what its caches hold is out of date. That it did is in a word of the peer
 *       (SOSD_WORD_SERVED), stored before the first trip, and the other one's name in the record
 *   W3  the record names every process that may have sent something since the last one left in
 *       order, but those whom W1 is true of. It is written by who has the lock just then, which the
 *       OSD looks at in the same operation, and is of one length, so that a full pool takes it
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
