/* reactor_board - which reactor drives which port: a sleeping reactor leaves its ports to one that
 * is awake.
 *
 * Each port has a home reactor. While the home sleeps, a reactor that is awake drives the port. The
 * port's doorbell is then that reactor's, so a sender need not wake any thread. The last reactor to
 * sleep keeps all ports. So one thread does all the work as long as it can, whatever port the work
 * is for. A request wakes one thread at most. A port with a watched descriptor stays at its home.
 *
 *   driver of a port   to                    when                                   by
 *   home, or another   one that is awake     the driver goes to sleep, and another  board_leave
 *                                            reactor is awake
 *   home, or another   one that has time     the driver waits for its processor,    board_take
 *                                            which other threads want
 *   home, or another   one that is going to  the driver is awake, and makes no      board_leave
 *                      sleep                 round: it is stuck
 *   another            home                  home was called, as it had no pause    board_return
 *   any                home of its peer      the peer leaves                        board_hand_over
 *
 * Any reactor may make a round of any port if no thread is inside. The driver must make rounds, and
 * the port's doorbell wakes the driver.
 *
 * No offer is lost when a port changes its driver. All of this is done under the lock. A reactor
 * that goes to sleep is marked as asleep under the lock too. So a reactor that was given a port
 * knows of that port when it looks for the last time before it sleeps. A sender publishes its
 * offer, executes a fence, and reads the port's bell. If it reads the old bell, the fence after the
 * store of the new bell is later than the sender's fence. So the new driver sees the published
 * offer. If the sender reads the new bell, the usual protocol of xseg/bell.c applies. Modelled in
 * tests/model/lend.pml.
 *
 * Contract: board_*() are called by the thread of their first argument. None of them is on the data
 * path.
 *
 * When a reactor has driven several ports of one peer for a while, senders to these ports send to
 * one of them (board_steer). So two batches become one. That ends when one of the ports changes its
 * driver.
 *
 * Invariants, under the lock
 *   L1  A port's bell is the bell of its driver.
 *   L2  A driver that is not the port's home was awake when it got the port. It knew of the port
 *       when it fell asleep.
 *   L3  A reactor sleeps on the doorbell of a port whose home it is. Nobody closes that port before
 *       the reactor has let go of the doorbell.
 *   L4  A sender that is told to use another port than its hash says uses a port with the same
 *       driver.
 */
#include <sched.h>

#include "peers/common/runtime/reactor_inside.h"

#define PAUSE_MIN_NS 1000000ull	/* between two calls of a reactor that was not needed for long, */
#define PAUSE_MAX_NS 128000000ull	/* doubling up to this */
/* awake, and in no round for so long: somebody who is about to sleep has been looking on that
 * long */
#define STUCK_NS     40000ull
#define NEEDED	     64			/* rounds with work: it was needed */

static void lock(struct reactor_set *set)
{
	pthread_mutex_lock(&set->board);
}

static void unlock(struct reactor_set *set)
{
	pthread_mutex_unlock(&set->board);
}

static struct reactor *with(const struct seat *s)
{
	return atomic_load_explicit(&s->with, memory_order_relaxed);
}

static void set_home(struct seat *s, struct reactor *home)
{
	atomic_store_explicit(&s->home, home, memory_order_relaxed);
}

static void news(struct reactor *r)
{
	/* release: partner is the exchange in read_board(), after which it takes the lock */
	atomic_store_explicit(&r->news, true, memory_order_release);
}

/* L4: one of its ports changes hands. */
static void end_steering(struct reactor_set *set, const struct peer *p)
{
	struct seat *s;

	for (s = set->seat; s < set->seat + set->nr_seats; s++)
		if (s->pp->peer == p)
			xseg_port_steer(s->pp->port, s->pp->port);
}

/* L1. */
static void give(struct seat *s, struct reactor *to)
{
	end_steering(to->set, s->pp->peer);
	news(with(s));
	news(to);
	atomic_store_explicit(&s->with, to, memory_order_relaxed);
	xseg_port_share_bell(s->pp->port, to->bell);
}

/* After bells were changed, before the lock is let go. */
static void settle(void)
{
	/* seq_cst: partner is the fence in xseg_port_flush(): who read an old bell has published
	 * what is looked at after this */
	atomic_thread_fence(memory_order_seq_cst);
}

/* The first seat that is at home there; NULL: none any more. */
static struct seat *first_of(const struct reactor *r)
{
	uint32_t i;

	for (i = 0; i < r->set->nr_seats; i++)
		if (home_of(&r->set->seat[i]) == r)
			return &r->set->seat[i];
	return NULL;
}

/* L3: it has another doorbell when its first port has gone, and none with the last one; it is told
 * before it needs that. */
static void change_bell(struct reactor *r)
{
	struct seat *first = first_of(r);
	uint32_t i;

	r->first = first ? first->pp : NULL;
	r->bell = first ? first->pp->port : NULL;
	if (!first)
		atomic_store_explicit(&r->awake, false, memory_order_relaxed);
	for (i = 0; first && i < r->set->nr_seats; i++)
		if (with(&r->set->seat[i]) == r)
			xseg_port_share_bell(r->set->seat[i].pp->port, r->bell);
	news(r);
	settle();
}

static void call(struct reactor *r)
{
	if (!r->bell)
		return;
	/* seq_cst: partner is the load in looks(), after the announcement */
	atomic_store(&r->called, true);
	xseg_bell_wake(r->bell);
}

void board_open(struct reactor_set *set)
{
	uint32_t i, k;

	if (set->nr_reactors == 1)
		set->near = xseg_near_create(set->served[0].peer->seg);
	for (i = 0; i < set->nr; i++) {
		set->served[i].seat = &set->seat[set->nr_seats];
		set->served[i].nr_seats = set->served[i].peer->nr_ports;
		for (k = 0; k < set->served[i].peer->nr_ports; k++) {
			struct peer_port *pp = &set->served[i].peer->ports[k];
			struct seat *s = &set->seat[set->nr_seats++];

			s->pp = pp;
			s->of = &set->served[i];
			/* what was watched in init() was with the seat that it has until now */
			s->stays = pp->seat->stays;
			s->alone = pp->only = set->nr_reactors == 1;
			set_home(s, home_of(pp->seat));
			pp->seat = s;
			/* out of memory: they use lanes */
			if (set->near)
				(void)!xseg_near_add(set->near, pp->port);
			atomic_store_explicit(&s->with, home_of(s), memory_order_relaxed);
		}
	}
	for (i = 0; i < set->nr_reactors; i++) {
		change_bell(&set->reactor[i]);
		atomic_store_explicit(
			&set->reactor[i].awake, set->reactor[i].bell != NULL, memory_order_relaxed);
	}
}

/* Which of those in its list are of a peer of several ports that has all of them there. */
static void note_whole(struct reactor *r)
{
	for (uint32_t i = 0, n; i < r->nr_seats; i += n) {
		const struct peer *p = r->seat[i]->pp->peer;

		for (n = 1; i + n < r->nr_seats && r->seat[i + n]->pp->peer == p;)
			n++;
		for (uint32_t k = i; k < i + n; k++)
			r->whole[k] = n > 1 && n == p->nr_ports;
	}
}

/* The seats of a peer follow each other. */
static void make_list(struct reactor *r)
{
	struct seat *s;

	r->nr_seats = r->nr_own = r->nr_guests = 0;
	r->same_since_ns = 0;
	r->to_steer = false;
	for (s = r->set->seat; s < r->set->seat + r->set->nr_seats; s++) {
		r->nr_own += home_of(s) == r;
		if (with(s) != r)
			continue;
		r->nr_guests += home_of(s) != r;
		r->to_steer |= r->nr_seats && r->seat[r->nr_seats - 1]->pp->peer == s->pp->peer;
		r->vain[r->nr_seats] = 0;
		r->seat[r->nr_seats++] = s;
	}
	note_whole(r);
}

void board_read(struct reactor *r)
{
	lock(r->set);
	make_list(r);
	unlock(r->set);
}

/* It is awake, and not to be relied on. */
static bool is_stuck(const struct reactor *r, const struct reactor *sibling, uint64_t now_ns)
{
	return !reactor_has_moved(r, sibling) && now_ns - r->seen[sibling->nr].since_ns >= STUCK_NS;
}

static bool is_awake(const struct reactor *r)
{
	return atomic_load_explicit(&r->awake, memory_order_relaxed);
}

struct reactor *board_heir(struct reactor *r, uint64_t now_ns)
{
	struct reactor *h;

	for (h = r->set->reactor; h < r->set->reactor + r->set->nr_reactors; h++)
		if (h != r && is_awake(h) && !is_crowded(h) && !is_stuck(r, h, now_ns))
			return h;
	return NULL;
}

/* All that may be lent of what `from` sees to. */
static void give_all(struct reactor *from, struct reactor *to)
{
	struct seat *s;

	for (s = from->set->seat; s < from->set->seat + from->set->nr_seats; s++)
		if (with(s) == from && !s->stays)
			give(s, to);
}

/* When it may be called again: who was not needed the last time is left alone for longer. */
static void mind_call(struct reactor *r, uint64_t now_ns)
{
	if (!r->was_called)
		return;
	r->was_called = false;
	if (r->worked >= NEEDED && !is_crowded(r))
		r->pause_ns = 0;
	else
		r->pause_ns = r->pause_ns ? r->pause_ns * 2 : PAUSE_MIN_NS;
	if (r->pause_ns > PAUSE_MAX_NS)
		r->pause_ns = PAUSE_MAX_NS;
	atomic_store_explicit(&r->call_ns, now_ns + r->pause_ns, memory_order_relaxed);
}

bool board_leave(struct reactor *r, uint64_t now_ns)
{
	struct reactor *h;

	if (r->set->nr_reactors == 1)
		return true;
	if (pthread_mutex_trylock(&r->set->board))
		return false;
	mind_call(r, now_ns);
	for (h = r->set->reactor; h < r->set->reactor + r->set->nr_reactors; h++)
		if (h != r && is_awake(h) && is_stuck(r, h, now_ns))
			give_all(h, r);
	h = board_heir(r, now_ns);
	if (h)
		give_all(r, h);
	/* what the news are is in the list that is made below */
	atomic_store_explicit(&r->news, false, memory_order_relaxed);
	atomic_store_explicit(&r->awake, false, memory_order_relaxed);
	settle();
	make_list(r);
	unlock(r->set);
	return true;
}

void board_take(struct reactor *r, struct reactor *sibling)
{
	if (pthread_mutex_trylock(&r->set->board))
		return;
	give_all(sibling, r);
	settle();
	unlock(r->set);
}

void board_return(struct reactor *r, bool back)
{
	struct seat *s;

	if (r->set->nr_reactors == 1)
		return;
	lock(r->set);
	atomic_store_explicit(&r->awake, true, memory_order_relaxed);
	for (s = r->set->seat; back && s < r->set->seat + r->set->nr_seats; s++)
		if (home_of(s) == r && with(s) != r)
			give(s, r);
	settle();
	unlock(r->set);
}

/* Which of the ports of a peer that it sees to has all: one of its own, if there is one. */
static struct seat *main_seat(const struct reactor *r, const struct peer *p)
{
	struct seat *s, *main = NULL;

	for (s = r->set->seat; s < r->set->seat + r->set->nr_seats; s++)
		if (with(s) == r && s->pp->peer == p &&
			(!main || (home_of(s) == r && home_of(main) != r)))
			main = s;
	return main;
}

bool board_steer(struct reactor *r)
{
	struct seat *s;

	if (pthread_mutex_trylock(&r->set->board))
		return false;
	for (s = r->set->seat; s < r->set->seat + r->set->nr_seats; s++)
		if (with(s) == r)
			xseg_port_steer(s->pp->port, main_seat(r, s->pp->peer)->pp->port);
	unlock(r->set);
	return true;
}

void board_call(struct reactor *r)
{
	lock(r->set);
	call(r);
	unlock(r->set);
}

void board_call_help(struct reactor *r, uint64_t now_ns)
{
	uint32_t i;

	if (pthread_mutex_trylock(&r->set->board))
		return;
	for (i = 0; i < r->nr_seats; i++) {
		struct reactor *home = home_of(r->seat[i]);

		/* who shares his processor cannot tell how much it would be alone */
		if (home == r || !home || with(r->seat[i]) != r ||
			(!is_crowded(r) && now_ns < atomic_load_explicit(
							    &home->call_ns, memory_order_relaxed)))
			continue;
		call(home);
		break;
	}
	unlock(r->set);
}

uint32_t board_hand_over(struct reactor *r, struct peer *p, struct reactor *to)
{
	uint32_t nr = 0;
	struct seat *s;

	lock(r->set);
	for (s = r->set->seat; s < r->set->seat + r->set->nr_seats; s++)
		if (home_of(s) == r && s->pp->peer == p) {
			set_home(s, to);
			give(s, to);
			nr++;
		}
	if (nr) {
		change_bell(r);
		call(to);
	}
	unlock(r->set);
	return nr;
}

void board_remove(struct reactor *r, struct peer *p)
{
	struct seat *s;

	lock(r->set);
	end_steering(r->set, p);
	for (s = r->set->seat; s < r->set->seat + r->set->nr_seats; s++)
		if (home_of(s) == r && s->pp->peer == p) {
			news(with(s));
			set_home(s, NULL);
			atomic_store_explicit(&s->with, NULL, memory_order_relaxed);
			xseg_port_share_bell(s->pp->port, s->pp->port);
			/* it is never left: who is inside leaves after his round */
			while (!seat_enter(s))
				sched_yield();
		}
	change_bell(r);
	unlock(r->set);
}

void board_quit(struct reactor *r)
{
	struct seat *s;

	lock(r->set);
	for (s = r->set->seat; s < r->set->seat + r->set->nr_seats; s++)
		if (with(s) == r) {
			give(s, home_of(s));
			call(home_of(s));
		}
	settle();
	unlock(r->set);
}
