/* sosd - a blocker whose objects are in a pool of Ceph RADOS. For users: sosd.8.
 *
 * Its files:
 *   sosd_rados, sosd_call   the pool, and trips to it
 *   sosd_name               the names of objects in the pool
 *   sosd_error              the meaning of errors
 *   sosd_owner              which process may serve the objects
 *   sosd_mail               ops that librados' threads hand over
 *   sosd_ops                the trips that each kind of request makes
 *   sosd_list               the names of objects
 *   sosd_sizes              the sizes of objects
 *   sosd.c                  the way of a request
 *   sosd_life               options, beginning and end
 *
 * The way of a request, an op. It may take several trips (sosd_ops.c):
 *
 *   from     to        when                                            by
 *   FREE     WAITING   it arrives                                      its port
 *   WAITING  READY     nothing that it overlaps is in flight           its port, told by mail if
 *                      (order.h)                                       another's leaves
 *   READY    OUT       we are OWNER (sosd_owner.h), and there is       its port
 *                      a call for it
 *   READY    LINED_UP  COPY: the buffer is in use                      its port
 *   LINED_UP READY     the COPY before it is done                      its port
 *   OUT      READY     the trip is done, and there is another one      its port, told by mail
 *                      to make                                         (librados)
 *   OUT      PAUSED    it failed with a temporary error, and there is  the same
 *                      time left
 *   PAUSED   READY     the pause is over                               its port
 *   READY, OUT  FREE   answered                                        its port
 *
 * A FLUSH is answered at once, and FUA needs nothing. RADOS acknowledges a write when all OSDs that
 * have the object have committed it. sosd answers nothing before that acknowledgement.
 *
 * Contract: as peer.h says. librados does the I/O on threads of its own, so sosd is never
 * simulated. Those threads, and the lister, write an op's `result`, post the op to its port and
 * ring the doorbell.
 *
 * Invariants:
 *   S1  An op is in one list: a port's (ready, paused, lined up), the mail, the order's, or the
 *       free ones. An op that is OUT may be in the lister's list.
 *   S2  Of two ops that overlap, of which one changes data, the later is sent after the earlier was
 *       answered (R3).
 *   S3  An OSD cannot do a predecessor's unanswered request after anything that its successor
 *       sends. Only the OWNER of the prefix sends, and the OSDs are told to refuse the one before
 *       (sosd_owner.h). A request that this process itself gave up after io_timeout went the way
 *       that all later trips to that object go. It is done before them or never.
 */
#ifndef PEERS_SOSD_SOSD_H
#define PEERS_SOSD_SOSD_H

#include <stdatomic.h>

#include "peers/common/blocker/failures.h"
#include "peers/common/blocker/ops.h"
#include "peers/common/runtime/peer.h"
#include "peers/common/blocker/shape.h"
#include "peers/sosd/sosd_list.h"
#include "peers/sosd/sosd_mail.h"
#include "peers/sosd/sosd_name.h"
#include "peers/sosd/sosd_owner.h"
#include "peers/sosd/sosd_rados.h"

enum sosd_state {
	SOSD_FREE, SOSD_WAITING, SOSD_READY, SOSD_LINED_UP, SOSD_OUT, SOSD_PAUSED, SOSD_NR_STATES
};

struct sosd_op {
	/* first: the order hands out its address; in the one list that it is in (S1) */
	struct order_op order;
	struct sosd_letter letter;
	struct peer_port *pp;			/* its port */
	struct xreq *r;
	struct sosd_call *call;			/* OUT */
	enum sosd_state state;
	bool again;				/* a predecessor may have done it */
	uint8_t trip;				/* which one it is at, or is to make next */
	uint32_t tries;				/* of this trip, that failed */
	uint64_t since_ns;			/* it arrived */
	uint64_t sent_ns;			/* its first trip began; 0: not yet */
	uint64_t due_ns;			/* PAUSED: until then */
	uint64_t size;				/* of the object, where a trip asked for it */
	int result;			/* of the trip: librados' thread, before it posts the op */
	char source[XSEG_TARGET_MAX];		/* COPY */
};

enum sosd_count {
	SOSD_COUNT_TRIPS, SOSD_COUNT_AGAIN, SOSD_COUNT_TIMEOUTS, SOSD_COUNT_SILENCES, SOSD_NR_COUNTS
};

/* One port. All but the mail and the counters is its thread's. */
struct sosd_port {
	struct sosd_mail mail;
	struct sosd_calls calls;
	struct ops_list ready, paused, lined_up;
	uint8_t *copy_buf;			/* XSEG_REQ_BYTES; one COPY at a time */
	struct sosd_op *copying;
	/* since when RADOS has been asked and has not answered; 0: nothing is asked. Giving up is
	 * no answer. A LIST is many calls, and counts as none */
	uint64_t asked_ns;
	uint32_t lists;				/* LISTs that are out */
	/* what arrived by then has waited as long as one that librados gave up, and RADOS has not
	 * answered meanwhile; 0: nothing was given up since RADOS answered */
	uint64_t given_up_ns;
	bool silent;				/* that was said */
	_Atomic uint64_t count[SOSD_NR_COUNTS];	/* written by its thread, read by any */
};

struct sosd {
	struct peer peer;
	/* options */
	char pool[128], conf[1024], user[64], prefix[SOSD_PREFIX_MAX];
	uint64_t io_timeout_ns, lock_expiry_ns;
	uint32_t iodepth;

	_Atomic uint64_t timeout_ns;		/* io_timeout, for the ports' threads */
	struct sosd_rados rados;
	struct sosd_owner owner;
	struct sosd_lister lister;
	struct failures failures;		/* of requests */
	uint64_t space_due_ns;		/* port 0's: when to look how much room is left */
	struct order order;
	struct sosd_port port[PEER_MAX_THREADS];
	struct ops_table ops;
};

extern const struct peer_class sosd_class;

static inline struct sosd *sosd_of(struct peer *p)
{
	return (struct sosd *)p;
}

static inline struct sosd_port *sosd_port_of(struct peer_port *pp)
{
	return &sosd_of(pp->peer)->port[pp->nr];
}

/* sosd.c: callbacks of the class, and what sosd_life.c needs of it. */
void sosd_request(struct peer_port *pp, struct xreq *r);
void sosd_recover(struct peer_port *pp, struct xreq *r);
uint64_t sosd_poll(struct peer_port *pp);
/* The op's `result` is set: it is given back to its port. Any thread. */
void sosd_post(struct sosd_op *op);

/* sosd_ops.c: what is asked of RADOS. */

#define SOSD_TRIPS 2				/* an op takes at most */
#define SOSD_MORE  INT64_MAX			/* there is another trip */

struct sosd_trip {
	int (*send)(struct sosd *s, struct sosd_op *op, const char *name);
	/* The trip's result; to the op's, or SOSD_MORE. NULL: an error, or the request's size. */
	int64_t (*came)(struct sosd *s, struct sosd_op *op, int result);
};

/* By op, in order; FLUSH has none. */
extern const struct sosd_trip sosd_trips[XSEG_NR_OPS][SOSD_TRIPS];

void sosd_add_ranges(struct sosd_op *op);

#endif
