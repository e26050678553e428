/* route - where peers send, to which of a peer's ports, and which questions about peers can be
 * asked.
 *
 * Contract: xseg_route() is one load, for any thread, at any time. The lock of routes is taken by
 * xseg_route_set() and xseg_route_claim(), so that two of them do not make a loop together. A call
 * of xseg_peer_get_info() only reads; its answer may be out of date when it returns.
 *
 * Invariants:
 *   U1  Following routes from any peer comes to an end.
 *   U2  A route's epoch changes whenever others may have changed the data below. So it changes with
 *       each route that is set here, and when a cache leaves (plug.c). A cache that enters or
 *       leaves below changes nothing that its upper peer sees. So that peer keeps its epoch.
 *   U3  A peer that is kept (plug.c) gets no second upstream. Nor does one below which others are
 *       asked to hold get another: that peer waits (-EAGAIN).
 *   U4  Any of a peer's ports may serve a request, with the same effect. A hash leads to one port,
 *       and that port may have the request sent to another.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "xseg/internal.h"
#include "xtypes/xkill.h"

#define SETTLE_LOOK_NS 10000000ll

static uint64_t route_get(struct xseg *seg, uint32_t peer)
{
	return atomic_load_explicit(&seg->peers[peer].route, memory_order_relaxed);
}

static bool is_there(struct xseg *seg, uint32_t peer)
{
	return peer < seg->geo.nr_ports && peer_state(xs_peer_word(seg, peer)) != XSEG_PEER_FREE;
}

void xs_route_store(struct xseg *seg, uint32_t upper, uint32_t lower, bool new_epoch)
{
	uint64_t epoch = route_epoch(route_get(seg, upper)) + new_epoch;

	/* seq_cst: partner is the look in xs_plug_keeper(), and the acquire in xseg_route() */
	xs_keep(seg, upper, XS_KEPT_ROUTE, route_word(lower, epoch));
}

uint32_t xs_route_upper(struct xseg *seg, uint32_t lower, uint32_t but)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (i != but && is_there(seg, i) && !xs_peer_is_client(seg, i) &&
			route_lower(route_get(seg, i)) == lower)
			return i;
	return XSEG_NONE;
}

void xseg_port_steer(struct xport *port, struct xport *to)
{
	uint32_t steer = port == to ? 0 : (uint32_t)(to - to->peer->port) + 1;

	if (atomic_load_explicit(&port->sh->steer, memory_order_relaxed) != steer)
		atomic_store_explicit(&port->sh->steer, steer, memory_order_relaxed);
}

static uint32_t steered(struct xseg *seg, const struct xs_peer *p, uint32_t nr, uint32_t port)
{
	uint32_t to = atomic_load_explicit(&seg->ports[port].steer, memory_order_relaxed);

	return to == 0 || to > nr ? port : XS_FETCH(p->port[to - 1]);
}

int xs_route_port(struct xseg *seg, uint32_t peer, uint64_t hash)
{
	struct xs_peer *p;
	uint32_t nr, port;

	if (peer >= seg->geo.nr_ports)
		return -ENOENT;
	p = &seg->peers[peer];
	if (peer_state(atomic_load_explicit(&p->word, memory_order_acquire)) == XSEG_PEER_FREE)
		return -ENOENT;
	/* acquire: partner is the release in add_port(): the peer's word comes before its ports, so
	 * it does not do */
	nr = atomic_load_explicit(&p->nr_ports, memory_order_acquire);
	if (nr == 0 || nr > XSEG_PEER_PORTS)
		return -ENOENT;
	port = XS_FETCH(p->port[nr == 1 ? 0 : (uint32_t)(hash >> 32) % nr]);
	if (nr > 1 && port < seg->geo.nr_ports)
		port = steered(seg, p, nr, port);
	return port < seg->geo.nr_ports ? (int)port : -ENOENT;
}

static int check_loop(struct xseg *seg, uint32_t upper, uint32_t lower)
{
	uint32_t at = lower;

	for (uint32_t hops = 0;
		at != XSEG_NONE && at < seg->geo.nr_ports && hops <= seg->geo.nr_ports; hops++) {
		if (at == upper)
			return -ELOOP;
		at = route_lower(route_get(seg, at));
	}
	return 0;
}

/* Under the lock of routes: whether the route may be. */
static int check_route(struct xseg *seg, uint32_t upper, uint32_t lower, bool claims)
{
	uint32_t keeper;
	int rc;

	if (!is_there(seg, upper) || (lower != XSEG_NONE && !is_there(seg, lower)))
		return -ENOENT;
	rc = check_loop(seg, upper, lower);
	if (rc || lower == XSEG_NONE)
		return rc;
	keeper = xs_plug_keeper(seg, lower);
	if (claims && xs_route_upper(seg, lower, upper) != XSEG_NONE)
		return -EBUSY;
	if (route_lower(route_get(seg, upper)) != lower && xs_plug_waits(seg, lower))
		return -EAGAIN;
	return keeper != XSEG_NONE && keeper != upper ? -EBUSY : 0;
}

static int route_set(struct xseg *seg, uint32_t upper, uint32_t lower, bool claims)
{
	int fd = xs_lock(seg, XSEG_LOCK_ROUTES), rc;

	if (fd < 0)
		return fd;
	xs_plug_settle_all(seg);
	rc = check_route(seg, upper, lower, claims);
	if (rc == 0) {
		/* before the route: it counts while that leads there (plug.c) */
		if (lower != XSEG_NONE)
			xs_keep(seg, lower, XS_KEPT_ABOVE, claims ? upper + 1 : 0);
		xs_route_store(seg, upper, lower, true);
		XKILL(ROUTE_STORED);
	}
	xs_unlock(fd);
	return rc;
}

int xseg_route_set(struct xseg *seg, uint32_t upper, uint32_t lower)
{
	return route_set(seg, upper, lower, false);
}

int xseg_route_claim(struct xseg *seg, uint32_t upper, uint32_t lower)
{
	return route_set(seg, upper, lower, true);
}

uint32_t xseg_route(struct xseg_peer *peer, uint64_t *epoch)
{
	uint64_t w = atomic_load_explicit(&peer->sh->route, memory_order_acquire);

	if (epoch)
		*epoch = route_epoch(w);
	return route_lower(w);
}

bool xseg_peer_get_info(struct xseg *seg, uint32_t index, struct xseg_peer_info *info)
{
	enum xseg_peer_state state;
	struct xs_peer *p;
	uint64_t w, route;

	if (index >= seg->geo.nr_ports)
		return false;
	p = &seg->peers[index];
	w = xs_peer_now(seg, index, &state);
	if (state == XSEG_PEER_FREE)
		return false;
	memset(info, 0, sizeof(*info));
	snprintf(info->name, sizeof(info->name), "%.*s", XSEG_NAME_MAX - 1, p->name);
	snprintf(info->kind, sizeof(info->kind), "%.*s", (int)sizeof(p->kind) - 1, p->kind);
	/* a state that there is not is that of nobody who serves */
	info->state = state > XSEG_PEER_DEAD ? XSEG_PEER_DEAD : state;
	info->index = index;
	info->generation = peer_gen(w);
	info->member = peer_member(w);
	if (xseg_peer_is_up(info->state) && info->member < XSEG_MAX_MEMBERS) {
		info->pid = atomic_load_explicit(
			&seg->members[info->member].pid, memory_order_relaxed);
		snprintf(info->member_label, sizeof(info->member_label), "%.*s", XSEG_NAME_MAX - 1,
			 seg->members[info->member].label);
	}
	info->nr_ports = atomic_load_explicit(&p->nr_ports, memory_order_relaxed);
	if (info->nr_ports > XSEG_PEER_PORTS)
		info->nr_ports = XSEG_PEER_PORTS;
	route = atomic_load_explicit(&p->route, memory_order_acquire);
	info->downstream = route_lower(route);
	info->epoch = route_epoch(route);
	info->keeper = xs_plug_keeper(seg, index);
	info->turn = turn_state(atomic_load_explicit(&p->turn, memory_order_relaxed));
	w = atomic_load_explicit(&p->plug, memory_order_relaxed);
	info->plug = plug_op(w);
	info->plug_lower = w ? plug_lower(w) : XSEG_NONE;
	info->arena_bytes = atomic_load_explicit(&p->arena_extents, memory_order_relaxed) ?
			    atomic_load_explicit(&p->arena_bytes, memory_order_relaxed) : 0;
	for (unsigned i = 0; i < 8; i++)
		info->user[i] = atomic_load_explicit(&p->user[i], memory_order_relaxed);
	info->direct_reads = atomic_load_explicit(&p->direct_reads, memory_order_relaxed);
	info->direct_bytes = atomic_load_explicit(&p->direct_bytes, memory_order_relaxed);
	return true;
}

_Static_assert(XSEG_MAX_PORTS <= 64 * XSEG_SUPERVISOR_NR_LEFT, "a supervisor has a bit a peer");

/* Whether the supervisor says so: of several of its kind, the one that serves. */
static bool is_left_dead(struct xseg *seg, uint32_t index)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports && index < seg->geo.nr_ports; i++) {
		const struct xs_peer *p = &seg->peers[i];
		enum xseg_peer_state state;
		const _Atomic uint64_t *left = &p->user[XSEG_SUPERVISOR_WORD_LEFT];

		if (peer_state(xs_peer_word(seg, i)) != XSEG_PEER_LIVE ||
			strncmp(p->kind, XSEG_SUPERVISOR_KIND, sizeof(p->kind)))
			continue;
		xs_peer_now(seg, i, &state);
		if (state == XSEG_PEER_LIVE)
			return atomic_load_explicit(&left[index / 64], memory_order_relaxed) >>
				       index % 64 &
			       1;
	}
	return false;
}

bool xseg_peer_is_gone(struct xseg *seg, const struct xseg_peer_info *info)
{
	return info->state == XSEG_PEER_STOPPED ||
	       (info->state == XSEG_PEER_DEAD &&
		       (!xseg_supervisor_alive(seg) || is_left_dead(seg, info->index)));
}

bool xseg_peer_get_settled(
	struct xseg *seg, uint32_t index, uint64_t limit_ns, struct xseg_peer_info *info)
{
	const struct timespec pause = { .tv_nsec = SETTLE_LOOK_NS };
	uint64_t begun = xs_now_ns();

	while (xseg_peer_get_info(seg, index, info)) {
		if (info->state != XSEG_PEER_STOPPED || !xseg_supervisor_alive(seg) ||
			xseg_is_removed(seg) || xs_now_ns() - begun >= limit_ns)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

void xseg_meant_add(struct xseg *seg, struct xseg_meant *m, const struct xseg_peer_info *info)
{
	bool gone = xseg_peer_is_gone(seg, info);

	if (m->nr == 0 || (m->gone && !gone))
		*m = (struct xseg_meant){ .info = *info, .nr = 1, .gone = gone };
	else if (gone == m->gone)
		m->nr++;
}
