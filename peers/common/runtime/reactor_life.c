/* reactor_life - a peer's way from opening to leaving, as its home leads it. See reactor.h for the
 * phases.
 *
 * Contract: the reactor's own thread, between rounds. reactor_mind_peers() looks at each peer of
 * the set. It takes those whose home is this reactor one step further (A3 of reactor.c). No step
 * waits.
 */

#include "peers/common/log/log.h"
#include "peers/common/runtime/peer_box.h"
#include "peers/common/runtime/reactor_inside.h"
#include "xtypes/xstate.h"

#define RETRY_MIN_NS 1000000ull		/* between two tries to serve */
#define RETRY_MAX_NS 50000000ull
#define STOP_POLL_NS 1000000ull		/* between two looks whether a peer has come to rest */
#define NEARLY_BYTES (4ull << 20)	/* so little left to flush: take no more in */
#define CLOSED_NS    2000000000ull	/* LEAVING without an end: closed for so long, */
#define REOPENED_NS  1000000000ull	/* then open for so long */

/* ---- ports of a peer that leaves --------------------------------------------------------- */

/* Gives the ports of a leaving peer to its home, which looks for them every STOP_POLL_NS. */
static void hand_over_ports(struct reactor *r, struct served *s)
{
	struct seat *seat;
	uint32_t nr;

	for (seat = r->set->seat; seat < r->set->seat + r->set->nr_seats; seat++)
		if (home_of(seat) == r && seat->pp->peer == s->peer)
			s->watched[seat->pp->nr] = watch_remove(&r->watch, seat->pp);
	nr = board_hand_over(r, s->peer, s->home);
	/* release: partner is the acquire in gather(): home sees all that this thread did to the
	 * port */
	if (nr)
		atomic_fetch_sub_explicit(&s->ports_away, nr, memory_order_release);
}

/* Home has the ports that others handed over; true when it has all. */
static bool gather(struct reactor *r, struct served *s)
{
	uint32_t i;

	if (s->gathered)
		return true;
	if (atomic_load_explicit(&s->ports_away, memory_order_acquire))
		return false;
	for (i = 0; i < s->peer->nr_ports; i++)
		if (s->watched[i] >= 0 && watch_add(&r->watch, s->watched[i], &s->peer->ports[i]))
			log_error(
				"%s: a file descriptor is not watched any more; stopping may take "
				"long",
				s->peer->name);
	s->gathered = true;
	return true;
}

/* ---- from opening to leaving ------------------------------------------------------------- */

#define TO(s) (1u << REACTOR_##s)
static const struct xstates states = {
	.what = "peer of a reactor",
	XSTATE(REACTOR_, OPENING, TO(SERVING) | TO(LEAVING)),
	XSTATE(REACTOR_, SERVING, TO(LEAVING)),
	XSTATE(REACTOR_, LEAVING, TO(LEFT)),
	XSTATE(REACTOR_, LEFT, 0),
};

static void set_phase(struct served *s, enum reactor_phase phase)
{
	xstate_check(&states, atomic_load(&s->phase), phase);
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
	uint64_t left = 0;
	bool quiet = !s->peer->cls->quiesced || s->peer->cls->quiesced(s->peer, &left);

	atomic_store_explicit(&s->left_bytes, left, memory_order_relaxed);
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
	for (i = 0; i < r->set->nr_reactors; i++)
		if (&r->set->reactor[i] != r)
			board_call(&r->set->reactor[i]);
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
	uint32_t i;

	for (i = 0; i < p->nr_ports; i++)
		watch_remove(&r->watch, &p->ports[i]);
	board_remove(r, p);
	if (p->cls->close_how)
		how = p->cls->close_how(p, clean);
	pthread_mutex_lock(&r->set->leaving);
	peer_close(p, how);
	set_phase(s, REACTOR_LEFT);
	pthread_mutex_unlock(&r->set->leaving);
}

/* Whoever was in a port of it when that was closed to requests has left; who comes sees that it is
 * closed. So what is outstanding, and what is dirty, only becomes less. */
static bool all_know(struct served *s)
{
	for (uint32_t i = 0; i < s->nr_seats; i++) {
		if (!seat_enter(&s->seat[i]))
			return false;
		seat_leave(&s->seat[i]);
	}
	return true;
}

static void go_on_leaving(struct reactor *r, struct served *s, uint64_t now_ns)
{
	struct peer_box *box = peer_box(s->peer);
	bool nearly, owes;

	if (!gather(r, s))
		return;
	if (!peer_serving(s->peer)) {
		leave(r, s);
		return;
	}
	if (atomic_load(&box->closed_to_requests)) {
		owes = !all_know(s) || peer_outstanding(s->peer) != 0;
		if (is_quiet(s, &nearly) && !owes)
			leave(r, s);
		else if (now_ns >= s->turn_ns)
			close_to_requests(s, false, now_ns + REOPENED_NS);
	} else if (now_ns >= s->turn_ns && (is_quiet(s, &nearly) || nearly)) {
		close_to_requests(s, true, now_ns + CLOSED_NS);
	}
}

void reactor_mind_peers(struct reactor *r, uint64_t now_ns, uint64_t *next_ns)
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
			if (!atomic_load_explicit(&s->peer->stopping, memory_order_relaxed))
				continue;
			if (s->home != r) {
				/* a command said so that came in our round */
				if (!atomic_load_explicit(&s->told, memory_order_relaxed) &&
					!atomic_exchange(&s->told, true))
					board_call(s->home);
				continue;
			}
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
