/* reactor - one thread's loop: rounds, helping, looking, sleeping, the tick. See reactor.h. The
 * other files: reactor_life.c (a peer's way from opening to leaving), reactor_board.c (which
 * reactor drives which port), reactor_set.c (the set of all reactors of a process).
 *
 * Invariants
 *   A1  A reactor reads under the board's lock which ports it drives, and has its own list of them.
 *   A2  All ports that a reactor drives ring the doorbell on which it sleeps. That doorbell belongs
 *       to one of the ports. When that port goes, the doorbell changes before the peer is closed,
 *       since a successor in another process will sleep on the old one.
 *   A3  A peer is closed by its home, when home has all of its ports, and no thread is inside.
 *   A4  Work that another thread leaves for a port is announced by `kicked`, and for a reactor by
 *       `called`. The reactor looks at both after it has announced its sleep.
 */
#include "peers/common/runtime/reactor.h"

#include <sched.h>
#include <sys/prctl.h>

#include "peers/common/runtime/bus.h"
#include "peers/common/runtime/gate.h"
#include "peers/common/log/log.h"
#include "peers/common/runtime/peer_box.h"
#include "peers/common/runtime/reactor_inside.h"

#define LOOKS	      64
#define PARTNER_LOOKS 16u			/* between two looks at the partners */
#define NEAR_NS	      60000ull			/* deadlines closer than this are polled for */
#define AWAY_NS	      2000ull	/* a processor that comes back after so long was another's, */
#define CROWD_NS      50000ull			/* and who misses it for so long */
#define WINDOW_NS     5000000ull		/* of such a time shares it */
/* a sibling that was in no round for so long does not run, or has too much to do */
#define STILL_NS      3000ull
#define HELP_LOOKS    8				/* between two looks at the siblings */
#define SWAMPED_NS    200000ull			/* so long without a pause */
/* it has seen to the same ports for so long: who sends is told so */
#define STEER_NS      2000000ull
#define TICK_NS	      1000000000ull
#define DATE_NS	      100000000ull	/* between two looks at the date */
#define QUIET	      64u			/* rounds without work: a port is quiet */
#define QUIET_NS      4000ull	/* between two looks at those, while others have work */
#define BUDGET	      8u			/* requests and replies of one port in one round */

void reactor_ring(void *arg)
{
	peer_port_kick(arg);
}

int reactor_watch(struct peer_port *pp, int eventfd)
{
	if (!pp->seat)
		return 0;
	pp->seat->stays = true;
	return watch_add(&home_of(pp->seat)->watch, eventfd, pp);
}

/* ---- rounds ------------------------------------------------------------------------------ */

/* A cache asks its peer to hold, or it is to be plugged: port 0 sees to that. */
static bool is_called(const struct peer_port *pp)
{
	return pp->nr == 0 && peer_serving(pp->peer) && gate_called(pp->peer);
}

/* A round of a port, if nobody else is in it; alone with its peer, if so wanted and nobody is in
 * that. */
static bool round_of(struct seat *s, uint64_t now_ns, bool whole, bool *worked)
{
	uint64_t next_ns;

	*worked = false;
	if (whole ? !seat_enter_only(s) : !seat_enter(s))
		return false;
	if (atomic_load_explicit(&s->kicked, memory_order_relaxed))
		atomic_exchange(&s->kicked, false);
	if (s->pp->peer->cls->dates && now_ns >= s->date_ns) {
		s->pp->date_s = clock_date_s();
		s->date_ns = now_ns + DATE_NS;
	}
	*worked = peer_port_round(s->pp, now_ns, BUDGET, &next_ns);
	atomic_store_explicit(&s->next_ns, next_ns, memory_order_relaxed);
	seat_leave(s);
	return true;
}

/* When it wants to be called. */
static uint64_t wants_ns(const struct seat *s)
{
	return atomic_load_explicit(&s->next_ns, memory_order_relaxed);
}

/* It had nothing to do for long, and wants nothing now. */
static bool is_quiet_port(const struct reactor *r, uint32_t i, uint64_t now_ns)
{
	const struct seat *s = r->seat[i];

	return r->vain[i] >= QUIET && !atomic_load_explicit(&s->kicked, memory_order_relaxed) &&
	       now_ns < wants_ns(s);
}

/* It sees to all ports of that one's peer, and whoever wants one need not wait for its processor.
 * Before it serves its home takes over what a predecessor left, outside of rounds. */
static bool enters_only(const struct reactor *r, uint32_t i)
{
	const struct seat *s = r->seat[i];

	return r->whole[i] && !s->alone && !is_crowded(r) && peer_serving(s->pp->peer);
}

/* While some have work the quiet ones are looked at now and then: a round in vain is not free. */
static bool round_ports(struct reactor *r, uint64_t now_ns, uint64_t *next_ns)
{
	bool all = !r->busy || now_ns >= r->quiet_ns, worked = false, any;
	uint64_t again_ns;
	uint32_t i;

	if (all)
		r->quiet_ns = now_ns + QUIET_NS;
	for (i = 0; i < r->nr_seats; i++) {
		if (!all && is_quiet_port(r, i, now_ns)) {
			again_ns = wants_ns(r->seat[i]);
		} else if (round_of(r->seat[i], now_ns, enters_only(r, i), &any)) {
			worked |= any;
			r->vain[i] = any ? 0 : r->vain[i] + 1;
			again_ns = wants_ns(r->seat[i]);
		} else {
			again_ns = now_ns;
		}
		if (again_ns < *next_ns)
			*next_ns = again_ns;
	}
	r->busy = worked;
	return worked;
}

/* ---- helping ----------------------------------------------------------------------------- */

/* A round of a port that another sees to. What it wants to be called for then, he has to know. */
static bool help_port(struct seat *s, uint64_t now_ns)
{
	uint64_t before_ns = wants_ns(s);
	bool worked;

	if (!round_of(s, now_ns, false, &worked))
		return false;
	if (worked)
		xseg_stats_add(s->pp->stats, PEER_STAT_HELPED, 1);
	if (wants_ns(s) < before_ns)
		peer_port_kick(s->pp);
	return worked;
}

/* Whether a sibling that is awake was in no round since a while: it waits for its processor, or a
 * round takes it long. */
static bool stands_still(struct reactor *r, const struct reactor *sibling, uint64_t now_ns)
{
	if (!atomic_load_explicit(&sibling->awake, memory_order_relaxed) ||
		reactor_has_moved(r, sibling)) {
		r->seen[sibling->nr].beat = atomic_load_explicit(
			&sibling->beat, memory_order_relaxed);
		r->seen[sibling->nr].since_ns = now_ns;
		return false;
	}
	return now_ns - r->seen[sibling->nr].since_ns >= STILL_NS;
}

/* With nothing to do of its own: what siblings do not come to. */
static bool help(struct reactor *r, uint64_t now_ns)
{
	bool worked = false;
	uint32_t i, k;

	if (r->set->nr_reactors == 1 || (!is_crowded(r) && r->looks % HELP_LOOKS))
		return false;
	for (i = 0; i < r->set->nr_reactors; i++) {
		struct reactor *sibling = &r->set->reactor[i];

		if (sibling == r || !stands_still(r, sibling, now_ns))
			continue;
		/* it is not that it has too much to do */
		if (is_crowded(sibling) && !is_crowded(r))
			board_take(r, sibling);
		for (k = 0; k < r->set->nr_seats; k++)
			if (atomic_load_explicit(&r->set->seat[k].with, memory_order_relaxed) ==
				sibling)
				worked |= help_port(&r->set->seat[k], now_ns);
	}
	return worked;
}

/* ---- looking and sleeping ---------------------------------------------------------------- */

static bool takes_work(const struct peer_port *pp)
{
	return peer_serving(pp->peer) &&
	       !atomic_load_explicit(&peer_box(pp->peer)->closed_to_requests, memory_order_relaxed);
}

/* Whether a port has something to do, or somebody is just doing it. Rings for what was published by
 * one who meant to go on. */
static bool has_work(const struct reactor *r, struct seat *s)
{
	bool has;

	if (!seat_enter(s))
		return true;
	if (peer_serving(s->pp->peer))
		xseg_port_flush(s->pp->port);
	/* it may have got the port since it knew how long it may sleep */
	has = wants_ns(s) < r->until_ns || atomic_load(&s->kicked) ||
	      (takes_work(s->pp) && xseg_port_has_work(s->pp->port)) || is_called(s->pp);
	seat_leave(s);
	return has;
}

/* Called by xseg_bell_wait() after the announcement. */
static bool looks(void *arg)
{
	struct reactor *r = arg;
	uint32_t i;

	if (atomic_load(&r->called) || atomic_load(&r->news))
		return true;
	watch_arm(&r->watch);
	for (i = 0; i < r->nr_seats; i++)
		if (has_work(r, r->seat[i]))
			return true;
	return false;
}

static void set_crowded(struct reactor *r, bool crowded)
{
	if (crowded != is_crowded(r))
		atomic_store_explicit(&r->crowded, crowded, memory_order_relaxed);
}

static void end_idle(struct reactor *r, uint64_t now_ns)
{
	if (!r->idle_since_ns)
		return;
	xseg_stats_add(
		r->first->stats, PEER_STAT_AWAKE_IDLE_NS, now_ns - r->idle_since_ns - r->away_ns);
	r->idle_since_ns = r->away_ns = 0;
	r->looks = 0;
}

/* Lets others have the processor; who shares his with others does so at each look. One look says
 * little: the scheduler may choose the same thread again, or it was a moment of the kernel's
 * own. */
static void give_way(struct reactor *r, uint64_t now_ns)
{
	uint64_t after_ns, took_ns;

	sched_yield();
	after_ns = clock_ns(&r->clock);
	took_ns = after_ns - now_ns;
	if (took_ns >= AWAY_NS) {
		r->away_ns += took_ns;
		r->others_ns += took_ns;
	}
	if (r->others_ns >= CROWD_NS)
		set_crowded(r, true);
}

/* Whether others had its processor for long, since it last looked: it neither ran nor slept. Who
 * has work all the time does not give way, and it is taken from him. */
static void mind_processor(struct reactor *r, uint64_t now_ns)
{
	uint64_t ran_ns = clock_thread_ns();
	uint64_t had_ns = ran_ns - r->ran_ns + r->slept_ns, took_ns = now_ns - r->from_ns;

	if (r->from_ns)
		set_crowded(r, took_ns > had_ns && took_ns - had_ns >= CROWD_NS);
	r->from_ns = now_ns;
	r->ran_ns = ran_ns;
	r->slept_ns = r->others_ns = 0;
	r->window_ns = now_ns + WINDOW_NS;
}

static void fall_asleep(struct reactor *r, uint64_t now_ns, uint64_t next_ns)
{
	uint64_t idle_since_ns = r->idle_since_ns, after_ns;

	r->until_ns = next_ns > now_ns ? next_ns : now_ns;
	if (!board_leave(r, now_ns)) {
		give_way(r, now_ns);
		return;
	}
	end_idle(r, now_ns);
	xseg_stats_add(r->first->stats, PEER_STAT_SLEEPS, 1);
	if (xseg_bell_wait(r->first->port, r->until_ns - now_ns, looks, r))
		xseg_stats_add(r->first->stats, PEER_STAT_WAKES, 1);
	after_ns = clock_ns(&r->clock);
	r->slept_ns += after_ns - now_ns;
	r->poll_ns = xseg_poll_adapt(r->poll_ns, after_ns - idle_since_ns);
	board_return(r, false);
}

/* Whether a partner of one of its ports waits for its processor. The port of a guest can be closed
 * at any time by the guest's home, unless a thread is inside (A3). */
static bool blocks_partner(const struct reactor *r)
{
	bool blocks = false;

	for (uint32_t i = 0; i < r->nr_seats && !blocks; i++) {
		if (!seat_enter(r->seat[i]))
			continue;
		blocks = xseg_port_blocks_partner(r->seat[i]->pp->port);
		seat_leave(r->seat[i]);
	}
	return blocks;
}

static void rest(struct reactor *r, uint64_t now_ns, uint64_t next_ns)
{
	bool crowded = is_crowded(r);

	xseg_bell_here(r->first->port);
	if (!crowded)
		r->busy_since_ns = 0;
	if (!r->idle_since_ns)
		r->idle_since_ns = now_ns;
	if (r->looks++ < LOOKS && !crowded &&
		((r->looks - 1) % PARTNER_LOOKS || !blocks_partner(r)))
		return;
	/* who has a processor to himself looks for all */
	if (crowded && board_heir(r, now_ns))
		fall_asleep(r, now_ns, next_ns);
	else if (now_ns - r->idle_since_ns < r->poll_ns || next_ns < now_ns + NEAR_NS)
		give_way(r, now_ns);
	else
		fall_asleep(r, now_ns, next_ns);
}

/* Once a second: what a sender that died has published without a sign; what dead clients left;
 * whether there is a segment. */
static void tick(struct reactor *r, uint64_t now_ns)
{
	uint32_t i;

	r->tick_ns = now_ns + TICK_NS;
	for (i = 0; i < r->nr_seats; i++)
		if (peer_serving(r->seat[i]->pp->peer) && seat_enter(r->seat[i])) {
			xseg_port_has_work(r->seat[i]->pp->port);
			seat_leave(r->seat[i]);
		}
	if (r->nr)
		return;
	if (!xseg_is_whole(r->first->peer->seg))
		bus_leave();
	xseg_sweep(r->first->peer->seg);
}

static void pin(const struct reactor *r)
{
	cpu_set_t set;

	if (r->cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(r->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		log_warn(
			"%s: this machine has no processor %d, so thread %u may run on any; see "
			"--cpus",
			r->set->served[0].peer->name, r->cpu, r->nr);
}

/* Several ports of a peer are one to who sends, when it has seen to them for a while. */
static void mind_list(struct reactor *r, uint64_t now_ns)
{
	if (!r->same_since_ns)
		r->same_since_ns = now_ns;
	if (now_ns - r->same_since_ns >= STEER_NS)
		r->to_steer = !board_steer(r);
}

/* It had no pause for long: the ports of others should be seen to by these again. */
static void mind_load(struct reactor *r, uint64_t now_ns)
{
	r->worked++;
	if (!r->busy_since_ns)
		r->busy_since_ns = now_ns;
	if (r->to_steer)
		mind_list(r, now_ns);
	if (!r->nr_guests || now_ns - r->busy_since_ns < SWAMPED_NS)
		return;
	r->busy_since_ns = now_ns;
	board_call_help(r, now_ns);
}

/* Another has too much to do, or something has come that home has to see to. */
static void answer_call(struct reactor *r)
{
	if (!atomic_exchange(&r->called, false))
		return;
	board_return(r, true);
	xseg_stats_add(r->first->stats, PEER_STAT_CALLS, 1);
	r->was_called = true;
	r->worked = 0;
}

static void read_board(struct reactor *r)
{
	if (atomic_load_explicit(&r->news, memory_order_relaxed) &&
		atomic_exchange(&r->news, false))
		board_read(r);
}

/* Whether it goes on: it has ports of its own. */
static bool read_news(struct reactor *r)
{
	read_board(r);
	if (r->nr_own && atomic_load_explicit(&r->called, memory_order_relaxed)) {
		answer_call(r);
		read_board(r);
	}
	return r->nr_own > 0;
}

void *reactor_main(void *arg)
{
	struct reactor *r = arg;
	uint64_t now_ns, next_ns;
	bool worked;

	pthread_setname_np(pthread_self(), "reactor");
	/* a deadline of 1 ms is not to become one of 1.05 */
	prctl(PR_SET_TIMERSLACK, 1000);
	pin(r);
	r->poll_ns = XSEG_POLL_NS;
	while (read_news(r)) {
		now_ns = clock_ns(&r->clock);
		atomic_store_explicit(&r->beat, r->beat + 1, memory_order_relaxed);
		if (now_ns >= r->tick_ns)
			tick(r, now_ns);
		if (now_ns >= r->window_ns)
			mind_processor(r, now_ns);
		next_ns = r->tick_ns;
		worked = round_ports(r, now_ns, &next_ns) || help(r, now_ns);
		if (worked) {
			end_idle(r, now_ns);
			mind_load(r, now_ns);
		}
		reactor_mind_peers(r, now_ns, &next_ns);
		if (!worked && !atomic_load_explicit(&r->news, memory_order_relaxed))
			rest(r, now_ns, next_ns);
	}
	board_quit(r);
	return NULL;
}
