/* sweep - the dead: which peers are dead, which parts of a dead client go back to the segment, and
 * which names may be forgotten.
 *
 * Contract: control path. Of the table in peer.c, this file makes the edge to DEAD of a peer that
 * was found dead, and all edges to FREE. Those to FREE are made under the control lock, and a
 * server's under all locks. Any process may sweep, at any time, and may itself be killed anywhere:
 * the next sweep begins again (R4). A sweep waits for nobody. If another process has the lock, the
 * work is left to the next sweep.
 *
 * Invariants:
 *   W1  The kernel's lock on a member's byte proves its peer's death, and nothing else does. The
 *       word says OPENING or LIVE, and then nobody has that byte (K2 of lock.c). The mark is a swap
 *       from exactly that word, so it needs no lock, and never hits a successor. A peer is alive if
 *       the byte is locked and the word is the same afterwards. A locked byte alone may be that of
 *       a newcomer in the same slot. Every reader of states calls xs_peer_now(), or marks the dead
 *       first.
 *   W2  A peer's name and ports stay with it as long as one of its requests is out. So an answer
 *       finds its origin.
 */
#include <errno.h>

#include "xseg/internal.h"
#include "xtypes/xkill.h"

void xs_alert_answered(struct xseg *seg)
{
	for (uint32_t i = 0; i < seg->geo.nr_requests; i++) {
		uint64_t w = atomic_load_explicit(&seg->reqs[i].place, memory_order_acquire);

		if (place_state(w) == XSEG_REQ_ANSWERED && place_port(w) < seg->geo.nr_ports)
			xs_port_alert(seg, place_port(w));
	}
}

/* Of words that change as fast as they are looked at (R5), the last answer counts. */
#define NOW_LOOKS 16

uint64_t xs_peer_now(struct xseg *seg, uint32_t peer, enum xseg_peer_state *state)
{
	uint64_t w = xs_peer_word(seg, peer), before;
	uint32_t looks = 0;

	do {
		before = w;
		*state = peer_state(w);
		if (!xseg_peer_is_up(*state))
			break;
		if (!xs_member_alive(seg, peer_member(w))) {
			*state = XSEG_PEER_DEAD;
			break;
		}
		/* acquire, in xs_peer_word(): partner is the swap in mark_dead(), which a newcomer
		 * makes before it locks the byte that we have just looked at */
		w = xs_peer_word(seg, peer);
	} while (w != before && ++looks < NOW_LOOKS);
	return w;
}

/* Peers in service whose member is dead, or that name the member `gone`. What they may owe is done
 * before they are marked: who is killed in between leaves it to the next one, who finds them. */
static void mark_dead(struct xseg *seg, uint32_t gone)
{
	uint64_t dead[XSEG_MAX_PORTS], w;
	bool found = false;

	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		w = xs_peer_word(seg, i);
		/* not by a word that somebody wrote over: it is put back, by the next sweep */
		dead[i] = xseg_peer_is_up(peer_state(w)) && xs_kept_agrees(seg, i, w) &&
					  (gone == XSEG_NONE
							  ? !xs_member_alive(seg, peer_member(w))
							  : peer_member(w) == gone)
				  ? w
				  : 0;
		found |= dead[i] != 0;
	}
	if (!found)
		return;
	xs_alert_answered(seg);
	xs_ring_all(seg);
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		w = dead[i];
		if (!w)
			continue;
		xs_keep_dead_open(seg, i);
		/* release: partner is the acquire in xs_peer_now(). Fails where somebody was
		 * faster, or a successor is there */
		if (atomic_compare_exchange_strong_explicit(&seg->peers[i].word, &w,
				 peer_word(XSEG_PEER_DEAD, peer_member(w), peer_gen(w)),
				 memory_order_acq_rel, memory_order_relaxed)) {
			XKILL(DEAD_MARKED);
			xs_keep_dead(seg, i, w,
				peer_word(XSEG_PEER_DEAD, peer_member(w), peer_gen(w)));
		} else {
			xs_keep_dead_not(seg, i);
		}
	}
	/* who waits for an answer of theirs may want to know that they are dead */
	xs_ring_all(seg);
}

void xs_mark_dead(struct xseg *seg)
{
	mark_dead(seg, XSEG_NONE);
}

void xs_mark_dead_before(struct xseg *seg, uint32_t member)
{
	mark_dead(seg, member);
}

/* One request of a dead or leaving origin: what is at rest with it becomes FREE. True when it is
 * FREE now. */
static bool bring_home(struct xseg *seg, uint32_t index, uint32_t port, uint32_t peer)
{
	uint64_t w = atomic_load_explicit(&seg->reqs[index].place, memory_order_acquire);
	enum xseg_req_state s = place_state(w);

	if (s == XSEG_REQ_FREE)
		return true;
	if (s != XSEG_REQ_PRIVATE && s != XSEG_REQ_ANSWERED &&
		!xs_place_is_stray(seg, index, w, peer))
		return false;
	return xs_req_home(seg, index, w, port);
}

uint32_t xs_requests_out(struct xseg *seg, uint32_t index)
{
	uint32_t out = 0, first, nr;

	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		nr = xs_peer_has_port(seg, index, i) ? xs_port_requests(seg, i, &first) : 0;
		for (uint32_t k = 0; k < nr; k++)
			out += !bring_home(seg, first + k, i, index);
	}
	return out;
}

void xs_peer_release(struct xseg *seg, uint32_t index)
{
	struct xs_peer *p = &seg->peers[index];

	xs_direct_shut(p);
	xs_keep(seg, index, XS_KEPT_EXTENTS, 0);
	xs_extents_free(seg, index, XS_EXTENT_ARENA);
	xs_extents_free(seg, index, XS_EXTENT_PAGES);
	xs_extents_free(seg, index, XS_EXTENT_TAKING);
	xs_stats_free(seg, index, true);
	/* before the ports: who opens the name again after a death in between has what it lists */
	xs_keep(seg, index, XS_KEPT_PORTS, 0);
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (xs_peer_has_port(seg, index, i))
			xs_keep_port(seg, i, 0);
	/* nobody plugs beside a client: its release needs no lock of routes */
	if (!xs_peer_is_client(seg, index))
		xs_plug_forget(seg, index);
	if (atomic_load_explicit(&p->route, memory_order_relaxed))
		xs_keep(seg, index, XS_KEPT_ROUTE, route_word(XSEG_NONE, 0));
	xs_keep(seg, index, XS_KEPT_EPOCH, XSEG_NO_EPOCH);
	for (unsigned i = 0; i < 8; i++)
		atomic_store_explicit(&p->user[i], 0, memory_order_relaxed);
	atomic_store_explicit(&p->direct_reads, 0, memory_order_relaxed);
	atomic_store_explicit(&p->direct_bytes, 0, memory_order_relaxed);
	XKILL(CLIENT_RELEASED);
	xs_peer_word_set(seg, index, XSEG_PEER_FREE, 0, peer_gen(xs_peer_word(seg, index)));
}

static bool any_dead(struct xseg *seg)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		uint64_t w = xs_peer_word(seg, i);

		if (peer_state(w) == XSEG_PEER_DEAD && xs_peer_is_client(seg, i))
			return true;
		if (xseg_peer_is_up(peer_state(w)) && !xs_member_alive(seg, peer_member(w)))
			return true;
	}
	return false;
}

bool xs_sweep_client(struct xseg *seg, uint32_t index)
{
	if (peer_state(xs_peer_word(seg, index)) != XSEG_PEER_DEAD ||
		!xs_peer_is_client(seg, index) || xs_requests_out(seg, index))
		return false;
	xs_peer_release(seg, index);
	return true;
}

unsigned xseg_sweep(struct xseg *seg)
{
	unsigned swept = 0;
	bool all;
	int fd;

	if (seg->observer || (!any_dead(seg) && !xs_kept_look(seg, false, NULL, NULL)))
		return 0;
	fd = xs_lock_try(seg, &all);
	if (all)
		xs_kept_look(seg, true, NULL, NULL);
	/* that needs no lock; who waits for the dead is told */
	xs_mark_dead(seg);
	if (fd < 0)
		return 0;
	if (!all)
		xs_kept_mend_clients(seg);
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		swept += xs_sweep_client(seg, i);
	xs_unlock(fd);
	return swept;
}

/* ---- forgetting ---- */

static bool has_upstream(struct xseg *seg, uint32_t index)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (peer_state(xs_peer_word(seg, i)) != XSEG_PEER_FREE &&
			route_lower(atomic_load_explicit(
				&seg->peers[i].route, memory_order_relaxed)) == index)
			return true;
	return false;
}

/* It was sent there, or sent on, and nobody has accepted it: who sent it has it still. Its sender
 * need not have published that, so no lane is looked into. */
static bool is_offered_to(struct xseg *seg, uint32_t index, uint32_t peer)
{
	uint32_t to = atomic_load_explicit(&seg->reqs[index].to, memory_order_relaxed);

	return to && xs_peer_has_port(seg, peer, to - 1) &&
		xs_req_is_offered_to(seg, index, to - 1);
}

/* What dead clients have offered is taken back; but of that peer's, if it is one itself. */
static void sweep_clients(struct xseg *seg, uint32_t but)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (i != but)
			xs_sweep_client(seg, i);
}

/* Requests that it has accepted, or that are offered to it. */
static bool holds_requests(struct xseg *seg, uint32_t index)
{
	for (uint32_t i = 0; i < seg->geo.nr_requests; i++)
		if (is_offered_to(seg, i, index) ||
			(!xs_req_is_idle(seg, i) &&
				xs_peer_holds(seg, index,
					atomic_load_explicit(
						&seg->reqs[i].place, memory_order_acquire))))
			return true;
	return false;
}

int xseg_peer_forget(struct xseg *seg, uint32_t index)
{
	int fd, rc = 0;

	if (index >= seg->geo.nr_ports)
		return -ENOENT;
	fd = xs_lock_all(seg);
	if (fd < 0)
		return fd;
	xs_kept_look(seg, true, NULL, NULL);
	xs_mark_dead(seg);
	if (peer_state(xs_peer_word(seg, index)) == XSEG_PEER_FREE)
		rc = -ENOENT;
	else if (xseg_peer_is_up(peer_state(xs_peer_word(seg, index))))
		rc = -EBUSY;
	if (rc == 0) {
		xs_direct_shut(&seg->peers[index]);
		sweep_clients(seg, index);
	}
	if (rc == 0 && (has_upstream(seg, index) || xs_requests_out(seg, index) ||
			       holds_requests(seg, index) || xs_plug_refers(seg, index) ||
			       xs_has_lent(seg, index)))
		rc = -ENOTEMPTY;
	if (rc == 0)
		xs_peer_release(seg, index);
	xs_unlock(fd);
	return rc;
}
