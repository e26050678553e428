/* plug - a cache enters between serving peers, or leaves again, and no request fails.
 *
 * A command (xseg plug, xseg unplug) stores its demand once, in one word of the cache (`plug`). The
 * peers do all the rest. The cache makes the steps. The *upper peers* are all servers whose route
 * leads to the place of the cache: to the lower peer if it enters, to the cache if it leaves.
 * Nobody lists them; each step looks at the routes. An upper peer only holds back its requests as
 * long as its own word (`turn`) names a cache. So a killed command harms nothing, and a killed
 * peer's successor continues its work.
 *
 * ENTER: the cache is empty, off the path.            what a kill leaves there, and who goes on
 *   1 turn = ASKED, of each upper peer   cache        a successor of the cache begins again; the
 *                                                     upper peers let go of what they hold
 *   2 holds; nothing sent is below;                   if the cache does not serve (xseg_turn_mind)
 *     turn = HELD                        each upper   its successor holds, and says so again (HELD
 *                                                     bears its generation)
 *   3 all hold: the cache has its route,              undone by the one that finds the cache not
 *                                                     serving; until the second store lower is
 *     lower is kept for the cache        cache        kept for the peer it was kept for before
 *   4 no request of others is at lower   cache
 *   5 all hold: plug = DECIDED           cache        from here on it is done: the next one makes
 *     the route of each upper peer                    all stores that are missing
 *     = the cache, one after the other
 *     each turn = NONE, plug = NONE
 * LEAVE: the cache has become clean while it served.
 *   1, 2 as above
 *   3 takes no more in; proves that it is clean       a successor of the cache serves on, and
 *                                                     becomes clean again
 *   4 all hold: plug = DECIDED           cache        from here on it is done, as above
 *     the route of each upper peer = lower
 *     the cache has no route; each turn = NONE, plug = NONE
 *
 * *Below* a peer is each unanswered request that one of its ports sent on. The request names the
 * port that sent it last (`via`). The request is at another peer, or is still at its sender and
 * offered. The upper peer sends nothing more, so the requests below only become fewer. None of them
 * is found in a lane later. So no peer has to withdraw an offer, and no route has to be compared
 * with a request's epoch.
 *
 * *Several upper peers.* They hold until the last of them does. So none is asked to hold while
 * another is dead or being started: it would stand still for that one. If one dies before it
 * holds, the others go on, and all are asked again when its successor serves. A stopped one sends
 * nothing; the cache notes HELD for it. A peer that would begin to send there waits while they are
 * asked (xs_plug_waits()); before that it is one of them.
 *
 * *Kept.* A cache has its lower peer to itself. `above` of the lower peer names the cache, and
 * counts while that cache's route leads there. It does not count if the cache was stopped in order,
 * since then the cache keeps nothing. A kept peer rejects everybody else's requests
 * (xseg_req_is_foreign()) and routes (route.c). The claiming cache stores its claim, then looks at
 * the places of requests. The receiving peer accepts, then looks at the claim. At least one of the
 * two sees the other.
 *
 * Contract: functions that change something take the lock of routes. xseg_plug_get(), xseg_turn()
 * and xseg_req_is_foreign() are a load or two. xseg_plug_is_held() looks at all peers, and
 * xseg_turn_below() and xseg_plug_others() at all requests.
 *
 * Invariants:
 *   G1  A route is changed here only while all upper peers hold, or are stopped. So nothing is sent
 *       past the cache while others send through it.
 *   G2  A cache has a route only while it keeps the peer that the route leads to. The one exception
 *       is the moment between the two stores of a claim. So nobody else changes data that the cache
 *       has copies of.
 *   G3  `turn` names a cache that enters or leaves below this peer. Otherwise it is void, and goes
 *       with the next look of the upper peer.
 *   G4  Once DECIDED is stored no upper peer goes on before all routes are stored: its turn is
 *       cleared after them, and a successor begins holding.
 */
#include <errno.h>
#include <string.h>

#include "xseg/plug.h"
#include "xtypes/xkill.h"

/* ---- kept peers ---- */

static void above_set(struct xseg *seg, uint32_t lower, uint32_t above)
{
	/* seq_cst: partner is the load in xs_plug_keeper() */
	xs_keep(seg, lower, XS_KEPT_ABOVE, above);
}

uint32_t xs_plug_keeper(struct xseg *seg, uint32_t lower)
{
	/* seq_cst: comes after the acceptance of the request that it is asked for
	 * (xs_req_take()) */
	uint32_t above = atomic_load(&seg->peers[lower].above);
	struct xs_peer *p;

	if (above == 0 || above > seg->geo.nr_ports)
		return XSEG_NONE;
	p = &seg->peers[above - 1];
	if (route_lower(atomic_load(&p->route)) != lower ||
		state_of(seg, above - 1) == XSEG_PEER_FREE)
		return XSEG_NONE;
	if (state_of(seg, above - 1) == XSEG_PEER_STOPPED &&
		!atomic_load_explicit(&p->arena_extents, memory_order_relaxed))
		return XSEG_NONE;
	return above - 1;
}

bool xseg_port_is_kept(struct xport *port)
{
	return atomic_load(&port->peer->sh->above) != 0;
}

bool xseg_req_is_foreign(struct xport *port, const struct xreq *r)
{
	uint32_t above = atomic_load(&port->peer->sh->above);

	if (above == 0 || r->op == XSEG_OP_ADMIN ||
		xs_peer_of_port(port->seg, r->via - 1u) == above)
		return false;
	return xs_plug_keeper(port->seg, port->peer->index) != XSEG_NONE;
}

/* ---- the upper peers ---- */

/* Where they send to before, and after. */
static uint32_t place_before(uint32_t cache, uint64_t plug)
{
	return plug_op(plug) == XSEG_PLUG_ENTER ? plug_lower(plug) : cache;
}

static uint32_t place_after(uint32_t cache, uint64_t plug)
{
	return plug_op(plug) == XSEG_PLUG_ENTER ? cache : plug_lower(plug);
}

static bool sends_to(struct xseg *seg, uint32_t peer, uint32_t lower)
{
	return is_there(seg, peer) && !xs_peer_is_client(seg, peer) && lower_of(seg, peer) == lower;
}

/* It is one of them, and its route has not been switched. */
static bool is_before(struct xseg *seg, uint32_t cache, uint64_t plug, uint32_t peer)
{
	return peer != cache && sends_to(seg, peer, place_before(cache, plug));
}

bool xs_plug_is_upper(struct xseg *seg, uint32_t cache, uint32_t peer)
{
	uint64_t plug = cache < seg->geo.nr_ports ? plug_get(seg, cache) : 0;

	return plug && (is_before(seg, cache, plug, peer) ||
			       (plug_is_decided(plug) && peer != cache &&
				       sends_to(seg, peer, place_after(cache, plug))));
}

bool xs_plug_refers(struct xseg *seg, uint32_t index)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		uint64_t plug = is_there(seg, i) && i != index ? plug_get(seg, i) : 0;

		if (plug && (plug_lower(plug) == index || xs_plug_is_upper(seg, i, index)))
			return true;
	}
	return false;
}

/* ---- what is below ---- */

/* See the head. One that is at rest with its origin was sent and not taken back if it is not
 * answered yet. */
static bool is_below(struct xseg *seg, uint32_t index, uint32_t peer)
{
	struct xs_req *r = &seg->reqs[index];
	uint64_t w = atomic_load(&r->place);
	enum xseg_req_state s = place_state(w);

	if (s == XSEG_REQ_FREE || s == XSEG_REQ_ANSWERED || xs_req_is_idle(seg, index))
		return false;
	if (!xs_peer_has_port(seg, peer,
		    atomic_load_explicit(&r->via, memory_order_relaxed) - 1u))
		return false;
	if (s == XSEG_REQ_PRIVATE)
		return atomic_load_explicit(&r->result, memory_order_relaxed) == XS_NOT_ANSWERED;
	return s == XSEG_REQ_AT || !xs_peer_has_port(seg, peer, place_port(w));
}

uint32_t xseg_turn_below(struct xseg_peer *peer)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < peer->seg->geo.nr_requests; i++)
		n += is_below(peer->seg, i, peer->index);
	return n;
}

/* By one of its ports; or its own, and what was below has a successor since. */
static bool is_sent_by(struct xseg *seg, uint32_t index, uint32_t peer)
{
	uint32_t via = atomic_load_explicit(&seg->reqs[index].via, memory_order_relaxed);

	return xs_peer_has_port(seg, peer, via ? via - 1 : xs_req_owner(seg, index));
}

uint32_t xseg_plug_others(struct xseg_peer *peer)
{
	struct xseg *seg = peer->seg;
	uint32_t lower = lower_of(seg, peer->index), n = 0;

	for (uint32_t i = 0; i < seg->geo.nr_requests && lower != XSEG_NONE; i++) {
		struct xs_req *r = &seg->reqs[i];
		/* seq_cst: comes after the claim; see the head */
		uint64_t w = atomic_load(&r->place);
		enum xseg_req_state s = place_state(w);

		if ((s != XSEG_REQ_AT && s != XSEG_REQ_STARTED && s != XSEG_REQ_APPLIED) ||
			xs_req_is_idle(seg, i))
			continue;
		n += XS_FETCH(r->op) != XSEG_OP_ADMIN &&
		     xs_peer_has_port(seg, lower, place_port(w)) &&
		     !is_sent_by(seg, i, peer->index);
	}
	return n;
}

/* ---- steps, under the lock of routes ---- */

static void turn_set(struct xseg *seg, uint32_t peer, uint64_t word)
{
	xs_keep(seg, peer, XS_KEPT_TURN, word);
	xs_ring_peer(seg, peer);
}

static bool is_asked_by(struct xseg *seg, uint32_t peer, uint32_t cache)
{
	uint64_t turn = turn_get(seg, peer);

	return turn && turn_cache(turn) == cache;
}

/* Nobody holds for the cache any more. */
static void turns_clear(struct xseg *seg, uint32_t cache)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (is_asked_by(seg, i, cache)) {
			turn_set(seg, i, 0);
			XKILL(PLUG_LET_GO);
		}
}

bool xs_plug_waits(struct xseg *seg, uint32_t lower)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		uint32_t cache = turn_cache(turn_get(seg, i));
		uint64_t plug = turn_get(seg, i) && cache < seg->geo.nr_ports
					? plug_get(seg, cache) : 0;

		if (plug && place_before(cache, plug) == lower)
			return true;
	}
	return false;
}

/* The upper peer sends nothing: it says so, and is that incarnation still; or nobody serves it and
 * nothing that it sent is left. */
static bool holds(struct xseg *seg, uint32_t upper, uint32_t cache)
{
	uint64_t turn = turn_get(seg, upper), word = xs_peer_word(seg, upper);

	return turn_state(turn) == XSEG_TURN_HELD && turn_cache(turn) == cache &&
	       turn_gen(turn) == peer_gen(word);
}

/* All upper peers do, and there are some. */
static bool all_hold(struct xseg *seg, uint32_t cache, uint64_t plug)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		if (!is_before(seg, cache, plug, i))
			continue;
		if (!holds(seg, i, cache))
			return false;
		nr++;
	}
	return nr > 0;
}

/* What the cache noted as the peer that had its lower one to itself has that again. */
static void keeper_back(struct xseg *seg, uint32_t cache, uint32_t lower)
{
	uint32_t above = atomic_load(&seg->peers[cache].above);

	if (above != 0 && above <= seg->geo.nr_ports && sends_to(seg, above - 1, lower))
		above_set(seg, lower, above);
}

/* Of a cache that is entering and not there yet: the lower peer is the upper one's again, as it was
 * before the claim. */
static void claim_undo(struct xseg *seg, uint32_t cache, uint64_t plug)
{
	if (plug_op(plug) != XSEG_PLUG_ENTER || lower_of(seg, cache) == XSEG_NONE)
		return;
	keeper_back(seg, cache, plug_lower(plug));
	XKILL(PLUG_UNDONE_ABOVE);
	xs_route_store(seg, cache, XSEG_NONE, true);
	XKILL(PLUG_UNDONE_ROUTE);
	above_set(seg, cache, 0);
}

/* The upper peers' routes have been switched past the cache. */
static void left(struct xseg *seg, uint32_t cache, uint64_t plug)
{
	atomic_store_explicit(
		&seg->peers[cache].was_above, plug_lower(plug) + 1, memory_order_relaxed);
	keeper_back(seg, cache, plug_lower(plug));
	XKILL(PLUG_GIVEN_BACK);
	if (lower_of(seg, cache) != XSEG_NONE)
		xs_route_store(seg, cache, XSEG_NONE, true);
	XKILL(PLUG_ROUTE_GONE);
	above_set(seg, cache, 0);
}

bool xs_plug_settle(struct xseg *seg, uint32_t cache)
{
	uint64_t plug = plug_get(seg, cache);

	if (!plug_is_decided(plug))
		return false;
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (is_before(seg, cache, plug, i)) {
			xs_route_store(seg, i, place_after(cache, plug), false);
			XKILL(PLUG_SWITCHED);
		}
	if (plug_op(plug) == XSEG_PLUG_LEAVE)
		left(seg, cache, plug);
	turns_clear(seg, cache);
	plug_set(seg, cache, 0);
	XKILL(PLUG_ENDED);
	return true;
}

void xs_plug_settle_all(struct xseg *seg)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (is_there(seg, i))
			xs_plug_settle(seg, i);
}

void xs_plug_take_back(struct xseg *seg, uint32_t cache)
{
	claim_undo(seg, cache, plug_get(seg, cache));
	plug_set(seg, cache, 0);
	turns_clear(seg, cache);
	xs_ring_peer(seg, cache);
}

void xs_plug_forget(struct xseg *seg, uint32_t index)
{
	/* what others kept goes back to them first */
	if (plug_get(seg, index) && !xs_plug_settle(seg, index))
		xs_plug_take_back(seg, index);
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		struct xs_peer *p = &seg->peers[i];

		if (atomic_load_explicit(&p->above, memory_order_relaxed) == index + 1)
			above_set(seg, i, 0);
		if (i == index ||
			atomic_load_explicit(&p->was_above, memory_order_relaxed) == index + 1)
			atomic_store_explicit(&p->was_above, 0, memory_order_relaxed);
	}
	above_set(seg, index, 0);
	plug_set(seg, index, 0);
	xs_keep(seg, index, XS_KEPT_TURN, 0);
}

/* ---- the cache's part ---- */

struct xseg_plug xseg_plug_get(struct xseg_peer *peer)
{
	uint64_t w = plug_get(peer->seg, peer->index);

	return w ? (struct xseg_plug){ .op = plug_op(w), .lower = plug_lower(w) }
		 : (struct xseg_plug){ .op = XSEG_PLUG_NONE, .lower = XSEG_NONE };
}

uint32_t xseg_plug_was_above(struct xseg *seg, uint32_t cache)
{
	uint32_t above = cache < seg->geo.nr_ports
				 ? atomic_load_explicit(
					   &seg->peers[cache].was_above, memory_order_relaxed) : 0;

	return above && above <= seg->geo.nr_ports && is_there(seg, above - 1) ? above - 1
									       : XSEG_NONE;
}

/* A stopped peer holds by itself, when nothing of it is below any more. */
static void hold_stopped(struct xseg *seg, uint32_t upper, uint32_t cache)
{
	/* once: a successor that begins meanwhile has another generation, and holds by itself */
	uint64_t word = xs_peer_word(seg, upper);

	if (peer_state(word) != XSEG_PEER_STOPPED)
		return;
	for (uint32_t i = 0; i < seg->geo.nr_requests; i++)
		if (is_below(seg, i, upper))
			return;
	turn_set(seg, upper, turn_word(XSEG_TURN_HELD, cache, peer_gen(word)));
}

/* Whether they can be asked. -EBUSY: one is asked by another cache; -EAGAIN: one would let the
 * others stand still, as it is dead or begins. */
static int check_uppers(struct xseg *seg, uint32_t cache, uint64_t plug)
{
	uint32_t nr = 0;
	bool away = false;

	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		if (!is_before(seg, cache, plug, i))
			continue;
		if (turn_get(seg, i) && !is_asked_by(seg, i, cache))
			return -EBUSY;
		nr++;
		away |= state_of(seg, i) != XSEG_PEER_LIVE &&
			state_of(seg, i) != XSEG_PEER_STOPPED && !holds(seg, i, cache);
	}
	return away && nr > 1 ? -EAGAIN : 0;
}

static void ask_upper(struct xseg *seg, uint32_t upper, uint32_t cache)
{
	if (!turn_get(seg, upper)) {
		turn_set(seg, upper, turn_word(XSEG_TURN_ASKED, cache, 0));
		XKILL(PLUG_TURN_ASKED);
	}
	if (!holds(seg, upper, cache))
		hold_stopped(seg, upper, cache);
}

int xseg_plug_call(struct xseg_peer *peer)
{
	struct xseg *seg = peer->seg;
	int fd = xs_lock(seg, XSEG_LOCK_ROUTES), rc;
	uint64_t plug;

	if (fd < 0)
		return fd;
	xs_mark_dead(seg);
	plug = plug_get(seg, peer->index);
	rc = plug ? check_uppers(seg, peer->index, plug) : -ESTALE;
	if (rc == -EAGAIN)
		turns_clear(seg, peer->index);
	for (uint32_t i = 0; i < seg->geo.nr_ports && rc == 0; i++)
		if (is_before(seg, peer->index, plug, i))
			ask_upper(seg, i, peer->index);
	xs_unlock(fd);
	return rc;
}

bool xseg_plug_is_held(struct xseg_peer *peer)
{
	uint64_t plug = plug_get(peer->seg, peer->index);

	return plug && all_hold(peer->seg, peer->index, plug);
}

uint32_t xseg_plug_uppers(struct xseg_peer *peer)
{
	uint64_t plug = plug_get(peer->seg, peer->index);
	uint32_t nr = 0;

	for (uint32_t i = 0; plug && i < peer->seg->geo.nr_ports; i++)
		nr += is_before(peer->seg, peer->index, plug, i);
	return nr;
}

int xseg_plug_let_go(struct xseg_peer *peer)
{
	struct xseg *seg = peer->seg;
	int fd = xs_lock(seg, XSEG_LOCK_ROUTES);
	uint64_t plug = plug_get(seg, peer->index);

	if (fd < 0)
		return fd;
	if (plug && !xs_plug_settle(seg, peer->index)) {
		claim_undo(seg, peer->index, plug);
		turns_clear(seg, peer->index);
	}
	xs_unlock(fd);
	return 0;
}

/* Whether the routes are such that it can be done; who stops a peer, or sets its route, may have
 * changed them. */
static bool is_possible(struct xseg_peer *peer, uint64_t plug)
{
	struct xseg *seg = peer->seg;

	return xseg_plug_uppers(peer) &&
	       (plug_op(plug) == XSEG_PLUG_LEAVE
			       ? lower_of(seg, peer->index) == plug_lower(plug)
			       : is_there(seg, plug_lower(plug)));
}

/* Whether the next step may be made: the upper peers hold. What cannot be any more is taken back,
 * or they would hold for ever. */
static bool may_step(struct xseg_peer *peer, uint64_t plug)
{
	if (!plug || xs_plug_settle(peer->seg, peer->index))
		return false;
	if (is_possible(peer, plug))
		return all_hold(peer->seg, peer->index, plug);
	xs_plug_take_back(peer->seg, peer->index);
	return false;
}

int xseg_plug_claim(struct xseg_peer *peer)
{
	struct xseg *seg = peer->seg;
	int fd = xs_lock(seg, XSEG_LOCK_ROUTES), rc = -ESTALE;
	uint64_t plug = plug_get(seg, peer->index);
	uint32_t lower = plug_lower(plug), keeper;

	if (fd < 0)
		return fd;
	if (plug_op(plug) == XSEG_PLUG_ENTER && may_step(peer, plug)) {
		keeper = xs_plug_keeper(seg, lower);
		/* what is kept for the upper peer, the only one then, is the cache's now, and the
		 * cache the upper peer's */
		above_set(seg, peer->index, keeper == XSEG_NONE || keeper == peer->index
						    ? 0 : keeper + 1);
		XKILL(PLUG_ABOVE_NOTED);
		xs_route_store(seg, peer->index, lower, true);
		XKILL(PLUG_CLAIMED);
		/* last: until then the lower peer is kept for whom it was kept for before */
		above_set(seg, lower, peer->index + 1);
		XKILL(PLUG_KEPT);
		rc = 0;
	}
	xs_unlock(fd);
	return rc;
}

int xseg_plug_switch(struct xseg_peer *peer)
{
	struct xseg *seg = peer->seg;
	int fd = xs_lock(seg, XSEG_LOCK_ROUTES), rc = -ESTALE;
	uint64_t plug = plug_get(seg, peer->index);

	if (fd < 0)
		return fd;
	if (may_step(peer, plug) &&
		lower_of(seg, peer->index) == plug_lower(plug)) {
		plug_set(seg, peer->index, plug | PLUG_DECIDED);
		XKILL(PLUG_DECIDED);
		xs_plug_settle(seg, peer->index);
		rc = 0;
	}
	xs_unlock(fd);
	return rc;
}

/* A cache that begins keeps what its route leads to; or it has no route any more, where others have
 * got there since it was stopped. One that is entering between the two may be at any step of
 * that. */
static void keep(struct xseg *seg, uint32_t cache, uint32_t lower)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (is_there(seg, i) && xs_plug_is_upper(seg, i, cache) &&
			lower_of(seg, i) == lower)
			return;		/* it has claimed that, and goes on, or gives it back */
	if (xs_route_upper(seg, lower, cache) != XSEG_NONE)
		xs_route_store(seg, cache, XSEG_NONE, true);
	else
		above_set(seg, lower, cache + 1);
}

int xseg_plug_settle(struct xseg_peer *peer, struct xseg_error *err)
{
	struct xseg *seg = peer->seg;
	int fd = xs_lock(seg, XSEG_LOCK_ROUTES);
	uint32_t lower;

	if (fd < 0)
		return xs_fail_lock(seg, fd, err);
	xs_plug_settle_all(seg);
	claim_undo(seg, peer->index, plug_get(seg, peer->index));
	lower = lower_of(seg, peer->index);
	if (lower != XSEG_NONE)
		keep(seg, peer->index, lower);
	xs_unlock(fd);
	return 0;
}

uint64_t xseg_peer_called(struct xseg_peer *peer)
{
	return atomic_load_explicit(&peer->sh->plug, memory_order_relaxed) * 3 +
	       atomic_load_explicit(&peer->sh->turn, memory_order_relaxed);
}

/* ---- the upper peer's part ---- */

enum xseg_turn xseg_turn(struct xseg_peer *peer)
{
	uint64_t w = atomic_load_explicit(&peer->sh->turn, memory_order_acquire);

	if (turn_state(w) == XSEG_TURN_HELD && turn_gen(w) != peer->generation)
		return XSEG_TURN_ASKED;
	return turn_state(w);
}

void xseg_turn_hold(struct xseg_peer *peer)
{
	struct xseg *seg = peer->seg;
	int fd = xs_lock(seg, XSEG_LOCK_ROUTES);
	uint64_t turn = turn_get(seg, peer->index);
	uint32_t cache = turn_cache(turn);

	if (fd < 0)
		return;
	if (turn && xs_plug_is_upper(seg, cache, peer->index)) {
		turn_set(seg, peer->index, turn_word(XSEG_TURN_HELD, cache, peer->generation));
		XKILL(PLUG_TURN_HELD);
		xs_ring_peer(seg, cache);
	} else if (turn) {
		turn_set(seg, peer->index, 0);
	}
	xs_unlock(fd);
}

void xseg_turn_mind(struct xseg_peer *peer)
{
	struct xseg *seg = peer->seg;
	int fd = xs_lock(seg, XSEG_LOCK_ROUTES);
	uint64_t turn = turn_get(seg, peer->index);
	uint32_t cache = turn_cache(turn);

	if (fd < 0)
		return;
	xs_mark_dead(seg);
	if (turn && !xs_plug_is_upper(seg, cache, peer->index)) {
		turn_set(seg, peer->index, 0);
	} else if (turn && state_of(seg, cache) != XSEG_PEER_LIVE && !xs_plug_settle(seg, cache)) {
		claim_undo(seg, cache, plug_get(seg, cache));
		turn_set(seg, peer->index, 0);
	}
	xs_unlock(fd);
}
