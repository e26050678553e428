/* reactor_inside - declarations that the reactor's files and send.c share. No other file includes
 * it.
 *
 * Contract: fields without a note are their thread's, or written before the threads start.
 *
 * Locks
 *   board   which reactor is awake, and which one drives which port. Taken by a reactor that goes
 *           to sleep, wakes up, or lets a peer go; never on the data path. A leaf, but for the
 *           doorbells that are rung under it.
 *   inside  one per seat: a thread is in that port, and alone with it and all that is the port's.
 *           Held for a round. Only the thread that closes the peer waits for it.
 *   only    one per peer: a thread is in one of its ports, and alone with all of the peer. The
 *           driver of all ports of the peer takes it in place of `inside`, and holds it so. Then
 *           the round needs no locked instruction for data that only rounds of the peer touch.
 */
#ifndef PEERS_COMMON_REACTOR_INSIDE_H
#define PEERS_COMMON_REACTOR_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "peers/common/clock/clock.h"
#include "peers/common/runtime/reactor.h"
#include "peers/common/runtime/watch.h"

/* A peer that a set drives. */
struct served {
	struct reactor_set *set;
	struct peer *peer;
	struct reactor *home;
	struct seat *seat;			/* of its ports, which follow each other */
	uint32_t nr_seats;
	_Atomic enum reactor_phase phase;		/* home writes it */
	_Atomic uint64_t left_bytes;			/* home writes it */
	_Atomic uint32_t ports_away;		/* ports whose home is another reactor still */
	int watched[PEER_MAX_THREADS];		/* descriptors of ports that were handed over */
	_Atomic bool told;				/* home knows that it is to stop */
	/* home's own */
	bool gathered;
	uint64_t again_ns, retry_ns, turn_ns;
	_Alignas(64) _Atomic bool only;	/* whoever is inside so writes it */
};

/* A port of a peer, as the reactors of its set see it. */
struct seat {
	struct peer_port *pp;
	struct served *of;				/* its peer */
	/* board; read without. Whose it is; NULL: its peer has left */
	struct reactor *_Atomic home;
	/* board; read without. Who sees to it now, and hears its doorbell */
	struct reactor *_Atomic with;
	bool stays;				/* a descriptor is watched for it, by its home */
	bool alone;	/* the set has one thread: it makes all rounds, ever, and pp->only is set */
	_Alignas(64) _Atomic bool inside;
	_Atomic bool kicked;		/* any thread sets it; whoever is inside clears it */
	_Atomic uint64_t next_ns; /* when it wants to be called; whoever was inside writes it */
	uint64_t date_ns;		/* when the date is to be looked at; who is inside */
};

struct reactor {
	struct reactor_set *set;
	uint32_t nr;
	int cpu;					/* -1: any */
	bool running;
	pthread_t thread;
	struct clock clock;
	struct seat **seat;				/* those that it sees to; room for all */
	uint32_t *vain;			/* of each: rounds without work, in a row */
	bool *whole;				/* of each: it sees to all ports of that peer */
	bool busy;				/* one of them had work in the last round */
	uint64_t quiet_ns;		/* then it looks at those that have none */
	/* of which so many are at home here, and so many are not */
	uint32_t nr_seats, nr_own, nr_guests;
	bool to_steer;		/* several are of one peer, and who sends does not send to one */
	uint64_t same_since_ns;	/* 0: it has had no work since its list was made */
	struct peer_port *first;	/* the first that is at home here: has its counters */
	struct xport *bell;		/* board. On whose doorbell it sleeps: that of `first` */
	_Atomic bool awake;				/* board; read without */
	/* idle_since_ns 0: not idle; of that time its processor was others' */
	uint64_t tick_ns, idle_since_ns, away_ns;
	uint64_t until_ns;		/* it sleeps, or is about to, no longer than until then */
	uint64_t busy_since_ns;		/* 0: it was idle on a processor that nobody else wants */
	uint32_t looks;
	uint64_t poll_ns;		/* it polls for so long before it sleeps */
	/* From then, until then: how long its processor was others' when it gave way; and how long
	 * it ran, before, and slept. */
	uint64_t from_ns, window_ns, others_ns, ran_ns, slept_ns;
	/* while it sees to its own ports because it was called */
	bool was_called;
	uint32_t worked;				/* rounds since */
	uint64_t pause_ns;
	_Atomic uint64_t call_ns;		/* it is not to be called before; it writes it */
	struct {	/* what it saw of a sibling: since when it stands still at that beat */
		uint32_t beat;
		uint64_t since_ns;
	} seen[PEER_MAX_THREADS];
	struct watch watch;
	_Alignas(64) _Atomic uint32_t beat;		/* it counts its rounds; siblings look */
	_Alignas(64) _Atomic bool news;	/* board. Its list is to be read anew; it clears it */
	_Atomic bool crowded;		/* another thread wants its processor; it writes it */
	_Atomic bool called;	/* any thread sets it: come, and see to your ports; it clears it */
};

struct reactor_set {
	unsigned nr, nr_reactors;
	uint32_t nr_seats;
	int events;
	pthread_mutex_t leaving; /* held while a peer is closed: its ports may be rung under it */
	pthread_mutex_t board;
	struct served *served;
	struct xseg_near *near;	/* of all ports, where there is one reactor; or NULL */
	struct seat *seat;	/* PEER_MAX_THREADS a peer; those that have a port come first */
	struct reactor reactor[PEER_MAX_THREADS];
};

void *reactor_main(void *arg);
/* arg: a struct peer_port; for struct watch. */
void reactor_ring(void *arg);

/* ---- reactor_life.c ---- */

/* Takes each peer of this reactor one step further in its life. *next_ns: when to look again. */
void reactor_mind_peers(struct reactor *r, uint64_t now_ns, uint64_t *next_ns);

/* ---- reactor_board.c ---- */

/* Before the threads start: a seat for each port. */
void board_open(struct reactor_set *set);
/* The reactor makes its list of the ports that it sees to. */
void board_read(struct reactor *r);
/* Who would see to its ports if it went to sleep: he is awake, runs, and has a processor to
 * himself. NULL: nobody. Exact under the lock. */
struct reactor *board_heir(struct reactor *r, uint64_t now_ns);
/* It goes to sleep: who is awake sees to its ports meanwhile; or it to those of one that is awake
 * and does not run. False: not now. */
bool board_leave(struct reactor *r, uint64_t now_ns);
/* It is awake again; its own ports are its again if `back`. */
void board_return(struct reactor *r, bool back);
/* It has time, and the sibling has not even a processor to itself: it sees to all that the sibling
 * saw to. */
void board_take(struct reactor *r, struct reactor *sibling);
/* Who sends to ports of one peer that it sees to sends to one of them, until one changes hands.
 * False: not now. */
bool board_steer(struct reactor *r);
/* Wakes it, to see to its own ports. */
void board_call(struct reactor *r);
/* Has more to do than it can: calls the home of a port that it sees to, unless that was in vain
 * lately. */
void board_call_help(struct reactor *r, uint64_t now_ns);
/* A leaving peer's ports that are at home here have their home at `to`. Returns how many these
 * are. */
uint32_t board_hand_over(struct reactor *r, struct peer *p, struct reactor *to);
/* A peer leaves: nobody is in its ports any more, nor will be. */
void board_remove(struct reactor *r, struct peer *p);
/* The reactor ends. */
void board_quit(struct reactor *r);

static inline struct reactor *home_of(const struct seat *s)
{
	return atomic_load_explicit(&s->home, memory_order_relaxed);
}

static inline bool is_crowded(const struct reactor *r)
{
	return atomic_load_explicit(&r->crowded, memory_order_relaxed);
}

/* Whether the sibling has begun a round since the reactor looked at it. */
static inline bool reactor_has_moved(const struct reactor *r, const struct reactor *sibling)
{
	return atomic_load_explicit(&sibling->beat, memory_order_relaxed) !=
	       r->seen[sibling->nr].beat;
}

static inline bool seat_enter(struct seat *s)
{
	if (atomic_load_explicit(&s->inside, memory_order_relaxed))
		return false;
	if (s->alone) {
		atomic_store_explicit(&s->inside, true, memory_order_relaxed);
		return true;
	}
	/* acquires what the last one did to the port: partner is the release in seat_leave().
	 * seq_cst: then the look at `only`; partner is the exchange in seat_enter_only() */
	if (atomic_exchange(&s->inside, true))
		return false;
	if (!atomic_load(&s->of->only))
		return true;
	atomic_store_explicit(&s->inside, false, memory_order_release);
	return false;
}

/* In any port of its peer. */
static inline bool is_anybody_inside(const struct seat *s)
{
	for (uint32_t i = 0; i < s->of->nr_seats; i++)
		/* also acquires what he did who left it: partner is the release in seat_leave() */
		if (atomic_load(&s->of->seat[i].inside))
			return true;
	return false;
}

/* The same by who sees to all ports of the peer: if nobody is in any, he is alone with all of them
 * (pp->only) until he leaves. Modelled in tests/model/only.pml. */
static inline bool seat_enter_only(struct seat *s)
{
	/* seq_cst: then the look at who is inside; partner is the exchange in seat_enter(): he sees
	 * us or we see him, or each the other. Acquires what the last one did who was alone */
	if (atomic_exchange(&s->of->only, true))
		return false;
	if (!is_anybody_inside(s)) {
		s->pp->only = true;
		return true;
	}
	atomic_store_explicit(&s->of->only, false, memory_order_release);
	return seat_enter(s);
}

static inline void seat_leave(struct seat *s)
{
	if (s->pp->only && !s->alone) {
		s->pp->only = false;
		atomic_store_explicit(&s->of->only, false, memory_order_release);
	} else {
		atomic_store_explicit(&s->inside, false, memory_order_release);
	}
}

#endif
