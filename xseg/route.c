/* route - where peers send, and what can be asked about them.
 *
 * Contract: xseg_route() is one load, for any thread, at any time. xseg_route_set() takes the control lock, so
 * that two of them do not make a loop together. xseg_peer_get_info() only reads; what it says may be out of date
 * when it returns.
 *
 * Invariants:
 *   D1  following routes from any peer comes to an end
 *   D2  each change of a route takes the next epoch
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "xseg/internal.h"
#include "xtypes/xkill.h"

int xseg_route_set(struct xseg *seg, uint32_t upper, uint32_t lower)
{
	uint32_t at = lower, hops;
	uint64_t old;
	int fd, rc = 0;

	if (upper >= seg->geo.nr_ports || (lower != XSEG_NONE && lower >= seg->geo.nr_ports))
		return -ENOENT;
	fd = xs_control_lock(seg);
	if (fd < 0)
		return fd;
	if (peer_state(xs_peer_word(seg, upper)) == XSEG_PEER_FREE ||
	    (lower != XSEG_NONE && peer_state(xs_peer_word(seg, lower)) == XSEG_PEER_FREE))
		rc = -ENOENT;
	for (hops = 0; rc == 0 && at != XSEG_NONE && at < seg->geo.nr_ports && hops <= seg->geo.nr_ports; hops++) {
		if (at == upper) {
			rc = -ELOOP;
			break;
		}
		at = route_lower(atomic_load_explicit(&seg->peers[at].route, memory_order_relaxed));
	}
	if (rc == 0) {
		old = atomic_load_explicit(&seg->peers[upper].route, memory_order_relaxed);
		/* release: partner is the acquire in xseg_route() */
		atomic_store_explicit(&seg->peers[upper].route, route_word(lower, route_epoch(old) + 1), memory_order_release);
		XKILL(ROUTE_STORED);
	}
	xs_control_unlock(fd);
	return rc;
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
	struct xs_peer *p;
	uint64_t w, route;

	if (index >= seg->geo.nr_ports)
		return false;
	p = &seg->peers[index];
	w = xs_peer_word(seg, index);
	if (peer_state(w) == XSEG_PEER_FREE)
		return false;
	memset(info, 0, sizeof(*info));
	snprintf(info->name, sizeof(info->name), "%.*s", XSEG_NAME_MAX - 1, p->name);
	snprintf(info->kind, sizeof(info->kind), "%.*s", (int)sizeof(p->kind) - 1, p->kind);
	info->state = peer_state(w);
	/* a state that there is not is that of nobody who serves */
	if (info->state > XSEG_PEER_DEAD || (peer_serves(info->state) && !xs_member_alive(seg, peer_member(w))))
		info->state = XSEG_PEER_DEAD;
	info->index = index;
	info->generation = peer_gen(w);
	info->member = peer_member(w);
	if (peer_serves(info->state) && info->member < XSEG_MAX_MEMBERS) {
		info->pid = atomic_load_explicit(&seg->members[info->member].pid, memory_order_relaxed);
		snprintf(info->member_label, sizeof(info->member_label), "%.*s", XSEG_NAME_MAX - 1,
			 seg->members[info->member].label);
	}
	info->nr_ports = atomic_load_explicit(&p->nr_ports, memory_order_relaxed);
	if (info->nr_ports > XSEG_PEER_PORTS)
		info->nr_ports = XSEG_PEER_PORTS;
	route = atomic_load_explicit(&p->route, memory_order_acquire);
	info->downstream = route_lower(route);
	info->epoch = route_epoch(route);
	info->arena_bytes = atomic_load_explicit(&p->arena_extents, memory_order_relaxed) ?
			    atomic_load_explicit(&p->arena_bytes, memory_order_relaxed) : 0;
	for (unsigned i = 0; i < 8; i++)
		info->user[i] = atomic_load_explicit(&p->user[i], memory_order_relaxed);
	return true;
}
