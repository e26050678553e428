/* reactor - one thread's loop: rounds, looking, sleeping, the tick, and the ports that come and go.
 * See reactor.h; the set of all reactors of a process is in reactor_set.c.
 *
 * Invariants
 *   A1  only the reactor's thread changes its list of ports and its bell while it runs
 *   A2  all its ports share the bell of the first; when that one goes, the others change bells
 *       before the peer is closed, since a successor in another process will sleep on the old one
 *   A3  a peer is closed by its home, when home has all of its ports
 *   A4  what another thread leaves for this one is announced by `kicked`, which is looked at after
 *       the sleep was announced
 */
#include "peers/common/reactor.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "peers/common/bus.h"
#include "peers/common/gate.h"
#include "peers/common/log.h"
#include "peers/common/peer_box.h"
#include "peers/common/reactor_inside.h"

#define LOOKS	      64
#define SPIN_NS	      50000ull
#define NEAR_NS	      60000ull			/* deadlines closer than this are polled for */
#define TICK_NS	      1000000000ull
#define BUDGET	      8u			/* requests and replies of one port in one round */
#define RETRY_MIN_NS  1000000ull		/* between two tries to serve */
#define RETRY_MAX_NS  50000000ull
#define STOP_POLL_NS 1000000ull /* between two looks whether a peer has come to rest */
#define NEARLY_BYTES  (4ull << 20)		/* so little left to flush: take no more in */
#define CLOSED_NS     2000000000ull		/* LEAVING without an end: closed for so long, */
#define REOPENED_NS   1000000000ull		/* then open for so long */

uint64_t reactor_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

void peer_port_kick(struct peer_port *pp)
{
	if (!pp->reactor)
		return;
	/* seq_cst: partner is the exchange in looks(), after the announcement (A4) */
	atomic_store(&pp->reactor->kicked, true);
	xseg_bell_ring(pp->port);
}

void reactor_ring(void *arg)
{
	peer_port_kick(arg);
}

int reactor_watch(struct peer_port *pp, int eventfd)
{
	return pp->reactor ? watch_add(&pp->reactor->watch, eventfd, pp) : 0;
}

/* ---- ports that come and go -------------------------------------------------------------- */

void reactor_add_port(struct reactor *r, struct peer_port *pp)
{
	r->port[r->nr_ports++] = pp;
	pp->reactor = r;
	xseg_port_share_bell(pp->port, r->port[0]->port);
}

/* Takes port i out of the list; returns the descriptor that was watched for it, or -1. */
static int drop_port(struct reactor *r, uint32_t i)
{
	struct peer_port *pp = r->port[i];
	uint32_t k;

	for (k = i; k + 1 < r->nr_ports; k++)
		r->port[k] = r->port[k + 1];
	r->nr_ports--;
	for (k = 0; i == 0 && k < r->nr_ports; k++)
		xseg_port_share_bell(r->port[k]->port, r->port[0]->port);
	xseg_port_share_bell(pp->port, pp->port);
	return watch_remove(&r->watch, pp);
}

/* Gives the ports of a leaving peer to its home, which looks for them every STOP_POLL_NS. */
static void hand_over_ports(struct reactor *r, struct served *s)
{
	uint32_t i = 0;

	while (i < r->nr_ports) {
		if (r->port[i]->peer != s->peer) {
			i++;
			continue;
		}
		s->watched[r->port[i]->nr] = drop_port(r, i);
		/* release: partner is the acquire in gather(): home sees all that this thread did
		 * to the port */
		atomic_fetch_sub_explicit(&s->ports_away, 1, memory_order_release);
	}
}

/* Home takes the ports that others handed over; true when it has all. */
static bool gather(struct reactor *r, struct served *s)
{
	struct peer_port *pp;
	uint32_t i;

	if (s->gathered)
		return true;
	if (atomic_load_explicit(&s->ports_away, memory_order_acquire))
		return false;
	for (i = 0; i < s->peer->nr_ports; i++) {
		pp = &s->peer->ports[i];
		if (pp->reactor == r)
			continue;
		reactor_add_port(r, pp);
		if (s->watched[i] >= 0 && watch_add(&r->watch, s->watched[i], pp))
			log_error(
				"%s: a file descriptor is not watched any more; stopping may take long",
				s->peer->name);
	}
	s->gathered = true;
	return true;
}

/* ---- from opening to leaving ------------------------------------------------------------- */

static void set_phase(struct served *s, enum reactor_phase phase)
{
	atomic_store(&s->phase, phase);
	eventfd_write(s->set->events, 1);
}

static void try_serve(struct served *s, uint64_t now_ns)
{
	if (now_ns < s->again_ns)
		return;
	s->peer->ports[0].now_ns = now_ns;
	if (peer_try_serve(s->peer)) {
		set_phase(s, REACTOR_SERVING);
		return;
	}
	s->retry_ns = s->retry_ns ? s->retry_ns * 2 : RETRY_MIN_NS;
	if (s->retry_ns > RETRY_MAX_NS)
		s->retry_ns = RETRY_MAX_NS;
	s->again_ns = now_ns + s->retry_ns;
}

static bool is_quiet(struct served *s, bool *nearly)
{
	uint64_t left = 0, total = 0;
	bool quiet = !s->peer->cls->quiesced || s->peer->cls->quiesced(s->peer, &left, &total);

	atomic_store_explicit(&s->left_bytes, left, memory_order_relaxed);
	atomic_store_explicit(&s->total_bytes, total, memory_order_relaxed);
	*nearly = left < NEARLY_BYTES;
	return quiet;
}

static void close_to_requests(struct served *s, bool closed, uint64_t until_ns)
{
	atomic_store(&peer_box(s->peer)->closed_to_requests, closed);
	s->turn_ns = until_ns;
}

static void begin_leaving(struct reactor *r, struct served *s, uint64_t now_ns)
{
	uint32_t i;

	close_to_requests(s, true, now_ns + CLOSED_NS);
	set_phase(s, REACTOR_LEAVING);
	for (i = 0; i < s->peer->nr_ports; i++)
		if (s->peer->ports[i].reactor != r)
			peer_port_kick(&s->peer->ports[i]);
}

/* Asked to stop, and still serving. */
static void try_leave(struct reactor *r, struct served *s, uint64_t now_ns)
{
	bool nearly;

	if (now_ns < s->again_ns)
		return;
	s->again_ns = now_ns + STOP_POLL_NS;
	if (is_quiet(s, &nearly) || nearly)
		begin_leaving(r, s, now_ns);
}

static void leave(struct reactor *r, struct served *s)
{
	struct peer *p = s->peer;
	bool clean = peer_serving(p);
	enum xseg_close how = clean ? XSEG_CLOSE_FREE_ARENA : XSEG_CLOSE_KEEP_ARENA;
	uint32_t i = 0;

	while (i < r->nr_ports)
		if (r->port[i]->peer == p)
			drop_port(r, i);
		else
			i++;
	if (p->cls->close_how)
		how = p->cls->close_how(p, clean);
	pthread_mutex_lock(&r->set->leaving);
	peer_close(p, how);
	atomic_store(&s->phase, REACTOR_LEFT);
	pthread_mutex_unlock(&r->set->leaving);
	eventfd_write(r->set->events, 1);
}

static void go_on_leaving(struct reactor *r, struct served *s, uint64_t now_ns)
{
	struct peer_box *box = peer_box(s->peer);
	bool nearly;

	if (!gather(r, s))
		return;
	if (!peer_serving(s->peer)) {
		leave(r, s);
		return;
	}
	if (atomic_load(&box->closed_to_requests)) {
		if (is_quiet(s, &nearly) && peer_outstanding(s->peer) == 0)
			leave(r, s);
		else if (now_ns >= s->turn_ns)
			close_to_requests(s, false, now_ns + REOPENED_NS);
	} else if (now_ns >= s->turn_ns && (is_quiet(s, &nearly) || nearly)) {
		close_to_requests(s, true, now_ns + CLOSED_NS);
	}
}

/* Takes each peer of this reactor one step further in its life. *next_ns: when to look again. */
static void mind_peers(struct reactor *r, uint64_t now_ns, uint64_t *next_ns)
{
	uint64_t again_ns = PEER_NEVER;
	struct served *s;
	unsigned i;

	for (i = 0; i < r->set->nr; i++) {
		s = &r->set->served[i];
		switch (atomic_load_explicit(&s->phase, memory_order_acquire)) {
		case REACTOR_OPENING:
			if (s->home != r)
				continue;
			if (atomic_load(&s->peer->stopping))
				begin_leaving(r, s, now_ns);
			else
				try_serve(s, now_ns);
			again_ns = s->again_ns;
			break;
		case REACTOR_SERVING:
			if (s->home != r ||
			    !atomic_load_explicit(&s->peer->stopping, memory_order_relaxed))
				continue;
			try_leave(r, s, now_ns);
			again_ns = now_ns + STOP_POLL_NS;
			break;
		case REACTOR_LEAVING:
			if (s->home == r)
				go_on_leaving(r, s, now_ns);
			else
				hand_over_ports(r, s);
			again_ns = now_ns + STOP_POLL_NS;
			break;
		default:
			continue;
		}
		if (again_ns < *next_ns)
			*next_ns = again_ns;
	}
}

/* ---- looking and sleeping ---------------------------------------------------------------- */

static bool takes_work(const struct peer_port *pp)
{
	return peer_serving(pp->peer) &&
	       !atomic_load_explicit(&peer_box(pp->peer)->closed_to_requests, memory_order_relaxed);
}

/* A cache asks its peer to hold, or it is to be plugged: port 0 sees to that. */
static bool is_called(const struct peer_port *pp)
{
	return pp->nr == 0 && peer_serving(pp->peer) && gate_called(pp->peer);
}

/* Called by xseg_bell_wait() after the announcement. */
static bool looks(void *arg)
{
	struct reactor *r = arg;
	uint32_t i;

	if (atomic_exchange(&r->kicked, false))
		return true;
	watch_arm(&r->watch);
	for (i = 0; i < r->nr_ports; i++)
		if ((takes_work(r->port[i]) && xseg_port_has_work(r->port[i]->port)) || is_called(r->port[i]))
			return true;
	return false;
}

static void end_idle(struct reactor *r, uint64_t now_ns)
{
	if (!r->idle_since_ns)
		return;
	xseg_stats_add(r->port[0]->stats, PEER_STAT_AWAKE_IDLE_NS, now_ns - r->idle_since_ns);
	r->idle_since_ns = 0;
	r->looks = 0;
}

static void rest(struct reactor *r, uint64_t now_ns, uint64_t next_ns)
{
	struct peer_port *first = r->port[0];

	if (!r->idle_since_ns)
		r->idle_since_ns = now_ns;
	if (++r->looks <= LOOKS)
		return;
	if (now_ns - r->idle_since_ns < SPIN_NS || next_ns < now_ns + NEAR_NS) {
		sched_yield();
		return;
	}
	end_idle(r, now_ns);
	xseg_stats_add(first->stats, PEER_STAT_SLEEPS, 1);
	if (xseg_bell_wait(first->port, next_ns - now_ns, looks, r))
		xseg_stats_add(first->stats, PEER_STAT_WAKES, 1);
}

/* Once a second: what a sender that died has published without a sign; what dead clients left; whether there is a segment. */
static void tick(struct reactor *r, uint64_t now_ns)
{
	uint32_t i;

	r->tick_ns = now_ns + TICK_NS;
	for (i = 0; i < r->nr_ports; i++)
		xseg_port_has_work(r->port[i]->port);
	if (r->nr)
		return;
	if (!xseg_is_whole(r->port[0]->peer->seg))
		bus_leave();
	xseg_sweep(r->port[0]->peer->seg);
}

static bool round_ports(struct reactor *r, uint64_t now_ns, uint64_t *next_ns)
{
	uint64_t again_ns;
	bool worked = false;
	uint32_t i;

	for (i = 0; i < r->nr_ports; i++) {
		worked |= peer_port_round(r->port[i], now_ns, BUDGET, &again_ns);
		if (again_ns < *next_ns)
			*next_ns = again_ns;
	}
	return worked;
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
			"%s: this machine has no processor %d, so thread %u runs where it likes; see --cpus",
			r->set->served[0].peer->name, r->cpu, r->nr);
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
	while (r->nr_ports) {
		now_ns = reactor_clock_ns();
		if (now_ns >= r->tick_ns)
			tick(r, now_ns);
		next_ns = r->tick_ns;
		worked = round_ports(r, now_ns, &next_ns);
		if (worked)
			end_idle(r, now_ns);
		mind_peers(r, now_ns, &next_ns);
		if (!worked && r->nr_ports)
			rest(r, now_ns, next_ns);
	}
	return NULL;
}
