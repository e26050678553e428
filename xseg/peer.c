/* peer - registering, taking over, leaving: which process serves which ports. The cleaning up after
 * the dead is in sweep.c.
 *
 * Contract: control path. A function that changes a table holds its lock (internal.h). It waits for
 * another process only for that lock. A server's successor that has all the ports that it wants
 * takes the lock of that peer alone. No client takes that lock, so no halted client keeps the
 * successor from serving (P4).
 *
 * A peer's word (state, member, generation):
 *
 *   from       to        when                                             by
 *   FREE       OPENING   xseg_peer_open, a new name                       its process
 *   STOPPED    OPENING   xseg_peer_open, a successor                      its process
 *   DEAD       OPENING   xseg_peer_open, a successor                      its process
 *   OPENING    LIVE      xseg_peer_serve; a client: xseg_peer_open        its process
 *   LIVE, OPENING  STOPPED   xseg_peer_close of a server                  its process
 *   LIVE, OPENING  DEAD  its member's lock was found free                 the one that finds it
 *   DEAD       FREE      a client whose requests have all come home       a sweep
 *   LIVE       FREE      xseg_peer_close of a client with nothing out     its process
 *   LIVE       DEAD      the same, with requests out                      its process
 *   LIVE, OPENING  DEAD  xseg_peer_close, and the lock cannot be taken    its process
 *   OPENING    DEAD      xseg_peer_close of a peer that cannot begin      its process
 *                        where one has died
 *   LIVE       LIVE      xseg_peer_serve of a client: nothing             its process
 *   OPENING    STOPPED, DEAD, FREE  xseg_peer_open fails: as it was       its process
 *   STOPPED, DEAD  FREE  xseg_peer_forget                                 anybody
 *
 * A process asserts its own edges by the word that it stored itself. The word may be damaged (R5).
 * A process that makes another edge looks at the word first, and takes it as it is.
 *
 * A takeover is done in steps that the next successor can begin again. Ports and requests stay with
 * the name. Each request is moved by one swap from its exact old place (R4).
 *
 * Invariants:
 *   P1  A port's requests are a range of whole units that no other port has.
 *   P2  A port belongs to the peer that its own word names; the peer's list of ports only finds it.
 *       So a process that dies between the two takes no port with it, and gives none away.
 *   P4  The control lock guards a client's entry, a free entry, and the owners of ports. A server's
 *       own lock guards its entry. A process that makes a server's name, gives it ports, or forgets
 *       it, has both locks.
 *   P3  Generations only grow. A place word bears the generation of the incarnation that made the
 *       edge. FREE and ANSWERED bear 0.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xseg/internal.h"
#include "xtypes/xkill.h"
#include "xtypes/xstate.h"

/* FREE: it is not open here yet. To FREE it goes by xs_peer_release(). */
#define TO(s) (1u << XSEG_PEER_##s)
static const struct xstates states = {
	.what = "peer",
	XSTATE(XSEG_PEER_, FREE, TO(OPENING)),
	XSTATE(XSEG_PEER_, OPENING, TO(LIVE) | TO(STOPPED) | TO(DEAD)),
	XSTATE(XSEG_PEER_, LIVE, TO(LIVE) | TO(STOPPED) | TO(DEAD)),
	XSTATE(XSEG_PEER_, STOPPED, 0),
	XSTATE(XSEG_PEER_, DEAD, 0),
};

static void peer_set(struct xseg_peer *peer, enum xseg_peer_state state)
{
	xstate_check(&states, peer->state, state);
	peer->state = state;
	xs_peer_word_set(peer->seg, peer->index, state, peer->seg->member, peer->generation);
}

static bool is_client_kind(const char *kind)
{
	return strncmp(kind, "client", sizeof(((struct xs_peer *)0)->kind)) == 0;
}

bool xs_peer_is_client(struct xseg *seg, uint32_t index)
{
	return is_client_kind(seg->peers[index].kind);
}

uint32_t xseg_nr_peers(struct xseg *seg)
{
	return seg->geo.nr_ports;
}

uint32_t xseg_peer_find(struct xseg *seg, const char *name)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (peer_state(xs_peer_word(seg, i)) != XSEG_PEER_FREE &&
		    strncmp(seg->peers[i].name, name, XSEG_NAME_MAX) == 0)
			return i;
	return XSEG_NONE;
}

/* ---- opening ---- */

/* First fit of n requests (whole units) between the ranges that ports have. */
static uint32_t find_requests(struct xseg *seg, uint32_t n)
{
	uint32_t first = 0;
	bool moved = true;

	while (moved) {
		moved = false;
		for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
			uint32_t at, nr;

			if (!atomic_load_explicit(&seg->ports[i].peer, memory_order_acquire))
				continue;
			nr = xs_port_requests(seg, i, &at);
			if (nr && first < at + nr && at < first + n) {
				first = at + nr;
				moved = true;
			}
		}
	}
	return first + n <= seg->geo.nr_requests ? first : XSEG_NONE;
}

/* Whether the peer's list has the port among its first nr. */
static bool is_listed(const struct xs_peer *p, uint32_t nr, uint32_t port)
{
	for (uint32_t i = 0; i < nr; i++)
		if (p->port[i] == port)
			return true;
	return false;
}

/* A port for the peer, which has nr: one that was being added when its process died, or a free one,
 * which gets n requests. */
static int find_port(
	struct xseg *seg, uint32_t peer, uint32_t nr, uint32_t n, struct xseg_error *err)
{
	struct xs_peer *p = &seg->peers[peer];
	uint32_t spare = XSEG_NONE;
	uint32_t units = n <= seg->geo.nr_requests
				 ? (n + XSEG_REQ_UNIT - 1) / XSEG_REQ_UNIT * XSEG_REQ_UNIT
				 : XSEG_NONE;
	uint32_t first = units == XSEG_NONE ? XSEG_NONE : units ? find_requests(seg, units) : 0;

	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		if (xs_peer_has_port(seg, peer, i) && !is_listed(p, nr, i))
			return (int)i;
		if (spare == XSEG_NONE &&
			!atomic_load_explicit(&seg->ports[i].peer, memory_order_acquire))
			spare = i;
	}
	if (spare == XSEG_NONE)
		return xseg_fail(err, -ENOSPC,
			"the segment has no port left; make it with more ports, or close "
			"clients");
	if (first == XSEG_NONE)
		return xseg_fail(err, -ENOSPC,
			"the segment has fewer than the %u requests left that this needs; make it "
			"with more requests, or close clients",
			n);
	xs_keep_range(seg, spare, first, units);
	return (int)spare;
}

/* Gives another port to the peer, which has nr of them. */
static int add_port(
	struct xseg *seg, uint32_t peer, uint32_t nr, uint32_t n, struct xseg_error *err)
{
	uint32_t i, first, units;
	int rc = find_port(seg, peer, nr, n, err);

	if (rc < 0)
		return rc;
	i = (uint32_t)rc;
	units = xs_port_requests(seg, i, &first);
	atomic_store_explicit(&seg->ports[i].answered, 0, memory_order_relaxed);
	atomic_store_explicit(&seg->ports[i].asked, 0, memory_order_relaxed);
	atomic_store_explicit(&seg->ports[i].bell, i, memory_order_relaxed);
	atomic_store_explicit(&seg->ports[i].steer, 0, memory_order_relaxed);
	for (uint32_t k = 0; k < units; k++) {
		struct xs_req *r = &seg->reqs[first + k];
		uint32_t seq = place_seq(atomic_load_explicit(&r->place, memory_order_relaxed));

		r->origin = (uint16_t)i;
		atomic_store_explicit(&r->result, XS_IDLE, memory_order_relaxed);
		atomic_store_explicit(
			&r->place, place_word(XSEG_REQ_FREE, i, 0, seq + 1), memory_order_release);
	}
	xs_keep_listed(seg, peer, nr, i);
	xs_keep_port(seg, i, peer + 1);
	XKILL(PORT_TAKEN);
	xs_keep(seg, peer, XS_KEPT_PORTS, nr + 1);
	return 0;
}

/* Finds the peer of that name, or a place for it. -EEXIST when it is served by a living process. */
static int claim_peer(struct xseg *seg, const struct xseg_peer_params *params, uint32_t *index,
	struct xseg_error *err)
{
	uint32_t i = xseg_peer_find(seg, params->name);
	struct xs_peer *p;

	if (i != XSEG_NONE && xs_sweep_client(seg, i))
		i = XSEG_NONE;
	if (i != XSEG_NONE) {
		p = &seg->peers[i];
		if (xseg_peer_is_up(peer_state(xs_peer_word(seg, i))))
			return xseg_fail(err, -EEXIST,
				"a peer of that name is running already in this segment; stop it "
				"first, or choose another --name");
		if (xs_peer_is_client(seg, i) || strncmp(p->kind, params->kind, sizeof(p->kind)))
			return xseg_fail(err, -EEXIST,
				"that is the name of a %.15s in this segment; choose another "
				"--name",
				p->kind);
		*index = i;
		return 0;
	}
	for (i = 0; i < seg->geo.nr_ports; i++) {
		uint64_t w = xs_peer_word(seg, i);

		/* not one of a server that somebody wrote over: a sweep puts it back */
		if (peer_state(w) == XSEG_PEER_FREE && xs_kept_agrees(seg, i, w))
			break;
	}
	if (i == seg->geo.nr_ports)
		return xseg_fail(err, -ENOSPC,
			"the segment has no place for another peer; make it with more ports");
	xs_keep_name(seg, i, params->name, params->kind);
	xs_keep(seg, i, XS_KEPT_PORTS, 0);
	xs_keep(seg, i, XS_KEPT_EPOCH, XSEG_NO_EPOCH);
	*index = i;
	return 0;
}

static int claim_ports(struct xseg *seg, uint32_t index, const struct xseg_peer_params *params,
	struct xseg_error *err)
{
	uint32_t nr = atomic_load_explicit(&seg->peers[index].nr_ports, memory_order_relaxed);
	int rc = 0;

	for (; rc == 0 && nr < params->nr_ports; nr++)
		rc = add_port(seg, index, nr, params->nr_requests, err);
	return rc;
}

/* The private side: one struct xport a port; what is FREE goes into its pool. */
static int open_handles(struct xseg_peer *peer, struct xseg_error *err)
{
	struct xseg *seg = peer->seg;
	uint32_t nr = atomic_load_explicit(&peer->sh->nr_ports, memory_order_relaxed);
	int rc = 0;

	for (uint32_t i = 0; i < nr && rc == 0; i++) {
		uint32_t index = XS_FETCH(peer->sh->port[i]);

		if (nr > XSEG_PEER_PORTS || index >= seg->geo.nr_ports ||
			!xs_peer_has_port(seg, peer->index, index))
			return xseg_fail(err, -EPROTO,
				"the peer's ports are damaged; see 'xseg check'");
		peer->nr_ports = i + 1;
		atomic_store_explicit(
			&seg->ports[index].generation, peer->generation, memory_order_relaxed);
		atomic_store_explicit(&seg->ports[index].bell, index, memory_order_relaxed);
		atomic_store_explicit(&seg->ports[index].steer, 0, memory_order_relaxed);
		/* a predecessor may have taken the hint and not the requests; who does not receive
		 * has no use for it */
		atomic_store_explicit(
			&seg->ports[index].asked, !peer->client,
			memory_order_relaxed);
		rc = xs_port_init(&peer->port[i], peer, index, peer->generation);
	}
	return rc ? xseg_fail(err, rc, "out of memory") : 0;
}

/* Puts the own requests that are FREE into the pools; a successor calls it when its orphans are
 * home. */
static void fill_pools(struct xseg_peer *peer)
{
	for (uint32_t i = 0; i < peer->nr_ports; i++) {
		struct xport *port = &peer->port[i];

		xpool_init(&port->free, port->free_mem, port->req_nr ? port->req_nr : 1);
		for (uint32_t k = port->req_nr; k-- > 0;) {
			uint64_t w = atomic_load_explicit(
				&peer->seg->reqs[port->req_first + k].place, memory_order_acquire);

			if (place_state(w) != XSEG_REQ_FREE)
				continue;
			/* one that was to be adopted, and was not, is nobody's answer any more */
			view_own(peer->seg, port->req_first + k)->out = false;
			xpool_put(&port->free, port->req_first + k);
		}
	}
}

static void close_handles(struct xseg_peer *peer)
{
	for (uint32_t i = 0; i < peer->nr_ports; i++)
		xs_port_fini(&peer->port[i]);
	xs_arena_unmap(peer);
	free(peer);
}

static int check_params(
	struct xseg *seg, const struct xseg_peer_params *params, struct xseg_error *err)
{
	size_t kind_max = sizeof(seg->peers[0].kind) - 1;

	if (seg->observer)
		return xseg_fail(err, -EPERM, "this process only observes the segment");
	if (strlen(params->kind) > kind_max)
		return xseg_fail(err, -EINVAL, "peer kind '%s': at most %zu characters",
			params->kind, kind_max);
	if (!xseg_name_ok(params->name))
		return xseg_fail(err, -EINVAL, "peer name '%s': use 1 to 63 of A-Z a-z 0-9 . _ -",
			params->name);
	if (params->nr_ports < 1 || params->nr_ports > XSEG_PEER_PORTS)
		return xseg_fail(err, -EINVAL, "a peer has 1 to %u ports, not %u", XSEG_PEER_PORTS,
			params->nr_ports);
	return 0;
}

/* Whether a request that the peer's predecessors left bears that generation, of which places have
 * 20 bits. */
static bool is_borne(struct xseg *seg, uint32_t peer, uint32_t generation)
{
	for (uint32_t i = 0; i < seg->geo.nr_requests; i++) {
		uint64_t w = atomic_load_explicit(&seg->reqs[i].place, memory_order_acquire);

		if (place_gen(w) == (generation & 0xfffff) && xs_peer_holds(seg, peer, w))
			return true;
	}
	return false;
}

/* P3. One that is borne there is left out: recover_one() tells by it what it has taken over. The
 * first of 20 bits have not been given before, so the requests need not be read: that would touch
 * all of their pages. */
static uint32_t next_generation(struct xseg *seg, uint32_t peer)
{
	uint32_t generation;

	do
		generation = (uint32_t)atomic_fetch_add_explicit(
				     &seg->super->generation, 1, memory_order_relaxed) +
			     1;
	while (generation > 0xfffff && is_borne(seg, peer, generation));
	return generation;
}

/* Under the control lock. */
static int leave_reserve(
	struct xseg *seg, const struct xseg_peer_params *params, struct xseg_error *err)
{
	uint64_t units = ((uint64_t)params->nr_requests + XSEG_REQ_UNIT - 1) / XSEG_REQ_UNIT *
			 XSEG_REQ_UNIT * params->nr_ports;
	struct xs_free f;

	xs_count_free(seg, &f);
	if (f.reserve_ports && f.ports < params->nr_ports + f.reserve_ports)
		return xseg_fail(err, -ENOSPC,
			"the segment has no port left, as its last %u are a reserve for "
			"administration; make it with more ports, or close clients",
			f.reserve_ports);
	if (f.reserve_requests && f.requests < units + f.reserve_requests)
		return xseg_fail(err, -ENOSPC,
			"the segment has fewer than the %u requests left that this needs, as its "
			"last %u are a reserve for administration; make it with more requests, "
			"or close clients",
			params->nr_requests, f.reserve_requests);
	return 0;
}

/* Whether the peer is one that this may be the successor of, and nothing else than its entry has to
 * be changed for that. */
static bool is_succession(struct xseg *seg, const struct xseg_peer_params *params, uint32_t i)
{
	return i != XSEG_NONE && xseg_peer_find(seg, params->name) == i &&
	       !xs_peer_is_client(seg, i) &&
	       strncmp(seg->peers[i].kind, params->kind, sizeof(seg->peers[i].kind)) == 0 &&
	       atomic_load_explicit(&seg->peers[i].nr_ports, memory_order_relaxed) >=
		       params->nr_ports &&
	       xs_kept_is_sound(seg, i);
}

/* P4. Returns a descriptor or -errno; what is locked is as its copies say. */
static int lock_to_open(struct xseg *seg, const struct xseg_peer_params *params)
{
	uint32_t i = xseg_peer_find(seg, params->name);
	int fd;

	if (is_succession(seg, params, i)) {
		fd = xs_lock(seg, XSEG_LOCK_PEER0 + i);
		if (fd < 0 || is_succession(seg, params, i))
			return fd;
		xs_unlock(fd);
	}
	if (is_client_kind(params->kind)) {
		fd = xs_lock(seg, XSEG_LOCK_CONTROL);
		if (fd >= 0)
			xs_kept_mend_clients(seg);
		return fd;
	}
	fd = xs_lock_all(seg);
	if (fd >= 0)
		xs_kept_look(seg, true, NULL, NULL);
	return fd;
}

/* Under the locks of lock_to_open(). On failure the peer's state is as it was; but a successor's
 * generation and member stay in its word, and ports that were added with the name. */
static int open_locked(
	struct xseg_peer *peer, const struct xseg_peer_params *params, struct xseg_error *err)
{
	struct xseg *seg = peer->seg;
	int rc = claim_peer(seg, params, &peer->index, err);

	if (rc)
		return rc;
	peer->sh = &seg->peers[peer->index];
	peer->before = peer_state(xs_peer_word(seg, peer->index));
	if (peer->before != XSEG_PEER_FREE)
		xs_kept_close(seg, peer->index);
	/* what a predecessor was taking is nobody's */
	xs_extents_free(seg, peer->index, XS_EXTENT_TAKING);
	xs_stats_free(seg, peer->index, false);
	peer->generation = next_generation(seg, peer->index);
	peer_set(peer, XSEG_PEER_OPENING);
	XKILL(PEER_OPENING);
	rc = claim_ports(seg, peer->index, params, err);
	if (rc == 0)
		rc = open_handles(peer, err);
	if (rc) {
		/* a new name stays OPENING until it is FREE: killed in between it is found dead */
		if (peer->before == XSEG_PEER_FREE)
			xs_peer_release(seg, peer->index);
		else
			peer_set(peer, peer->before == XSEG_PEER_DEAD ? XSEG_PEER_DEAD
								      : XSEG_PEER_STOPPED);
		return rc;
	}
	xs_requests_out(seg, peer->index);
	fill_pools(peer);
	if (peer->client)
		peer_set(peer, XSEG_PEER_LIVE);
	return 0;
}

int xseg_peer_open(struct xseg *seg, const struct xseg_peer_params *params, struct xseg_peer **out,
	struct xseg_error *err)
{
	struct xseg_peer *peer;
	int fd, rc;

	rc = check_params(seg, params, err);
	if (rc)
		return rc;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return xseg_fail(err, -ENOMEM, "out of memory");
	peer->seg = seg;
	peer->client = is_client_kind(params->kind);
	fd = lock_to_open(seg, params);
	if (fd < 0) {
		rc = xs_fail_lock(seg, fd, err);
		goto out_close;
	}
	xs_mark_dead(seg);
	rc = params->leaves_reserve ? leave_reserve(seg, params, err) : 0;
	if (!rc)
		rc = open_locked(peer, params, err);
	xs_unlock(fd);
	if (rc)
		goto out_close;
	*out = peer;
	return 0;
out_close:
	close_handles(peer);
	return rc;
}

uint32_t xseg_peer_orphans(struct xseg_peer *peer)
{
	uint32_t out = xs_requests_out(peer->seg, peer->index);

	if (out == 0)
		fill_pools(peer);
	return out;
}

static bool is_out(struct xseg *seg, uint32_t index)
{
	enum xseg_req_state s = place_state(
		atomic_load_explicit(&seg->reqs[index].place, memory_order_acquire));

	return s != XSEG_REQ_FREE && s != XSEG_REQ_PRIVATE;
}

uint32_t xseg_peer_requests_out(struct xseg *seg, uint32_t index)
{
	uint32_t out = 0, first, nr;

	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		nr = xs_peer_has_port(seg, index, i) ? xs_port_requests(seg, i, &first) : 0;
		for (uint32_t k = 0; k < nr; k++)
			out += is_out(seg, first + k);
	}
	return out;
}

uint32_t xseg_peer_adopt(struct xseg_peer *peer,
	void (*fn)(struct xport *port, struct xreq *r, const struct xreq *sent, void *arg),
	void *arg)
{
	struct xreq *sent = malloc(sizeof(*sent));
	uint32_t damaged = sent == NULL;

	for (uint32_t i = 0; sent && i < peer->nr_ports; i++) {
		struct xport *port = &peer->port[i];

		for (uint32_t k = port->req_first; k < port->req_first + port->req_nr; k++) {
			if (!is_out(peer->seg, k))
				continue;
			struct xreq *r = view_own(peer->seg, k);

			sent->index = k;
			/* for xs_req_accept(): its answer is one to us */
			r->out = true;
			if (xs_req_copy_in(
				    peer->seg, sent, &(struct xs_origin){ .port = XSEG_NONE })) {
				damaged++;
				continue;
			}
			r->op = sent->op;	/* what its result is measured by */
			r->size = sent->size;
			fn(port, r, sent, arg);
		}
	}
	free(sent);
	return damaged;
}

static struct xport *own_port(struct xseg_peer *peer, uint32_t index)
{
	for (uint32_t i = 0; i < peer->nr_ports; i++)
		if (peer->port[i].index == index)
			return &peer->port[i];
	return NULL;
}

/* Whether it may be one that a predecessor had; not one that nobody has submitted, nor one of the
 * peer's own (rules 1 and 2 of place.c), whatever is written there. */
static bool is_inherited(struct xseg_peer *peer, uint32_t index)
{
	uint32_t owner = xs_req_owner(peer->seg, index);

	if (!xs_req_is_idle(peer->seg, index) && owner != XSEG_NONE &&
		!xs_peer_has_port(peer->seg, peer->index, owner))
		return true;
	xs_count_bad(peer->seg);
	return false;
}

/* One request that may be a predecessor's, in state `want`: restamped with our generation, then
 * handed over. */
static void recover_one(struct xseg_peer *peer, uint32_t index, enum xseg_req_state want,
			void (*fn)(struct xport *port, struct xreq *r, void *arg), void *arg)
{
	struct xs_req *sh = &peer->seg->reqs[index];
	uint64_t w = atomic_load_explicit(&sh->place, memory_order_acquire);
	struct xport *port = place_state(w) == want ? own_port(peer, place_port(w)) : NULL;
	struct xreq *r = view_held(peer->seg, index);

	if (!port || place_gen(w) == port->generation || !is_inherited(peer, index) ||
		!xs_req_take(port, r, index, w, want))
		return;
	XKILL(REQ_TAKEN_OVER);
	/* the predecessor's offer of it is void */
	atomic_store_explicit(&sh->via, 0, memory_order_relaxed);
	if (xs_req_copy_in(peer->seg, r, &(struct xs_origin){ .port = XSEG_NONE })) {
		xs_count_bad(peer->seg);
		xseg_req_answer(port, r, -EPROTO);
		return;
	}
	fn(port, r, arg);
}

void xseg_peer_recover(struct xseg_peer *peer,
	void (*fn)(struct xport *port, struct xreq *r, void *arg), void *arg)
{
	static const enum xseg_req_state order[] = { XSEG_REQ_STARTED, XSEG_REQ_APPLIED,
		XSEG_REQ_AT };

	for (uint32_t s = 0; s < 3; s++)
		for (uint32_t i = 0; i < peer->seg->geo.nr_requests; i++)
			recover_one(peer, i, order[s], fn, arg);
	xs_alert_answered(peer->seg);
	for (uint32_t i = 0; i < peer->nr_ports; i++)
		xseg_port_flush(&peer->port[i]);
}

void xseg_peer_serve(struct xseg_peer *peer)
{
	XKILL(PEER_RECOVERED);
	peer_set(peer, XSEG_PEER_LIVE);
	xs_ring_all(peer->seg);
}

/* What it has sent and answered gets to whom it is for. */
static void send_off(struct xseg_peer *peer)
{
	for (uint32_t i = 0; i < peer->nr_ports; i++)
		xs_near_close(&peer->port[i]);
	for (uint32_t i = 0; i < peer->nr_ports; i++)
		xseg_port_flush(&peer->port[i]);
}

static void close_client(struct xseg_peer *peer)
{
	xs_direct_shut(peer->sh);
	if (xs_requests_out(peer->seg, peer->index))
		peer_set(peer, XSEG_PEER_DEAD);
	else
		xs_peer_release(peer->seg, peer->index);
}

static void close_server(struct xseg_peer *peer, enum xseg_close how)
{
	xs_direct_shut(peer->sh);
	if (how == XSEG_CLOSE_FREE_ARENA) {
		xs_keep(peer->seg, peer->index, XS_KEPT_EXTENTS, 0);
		xs_extents_free(peer->seg, peer->index, XS_EXTENT_ARENA);
		xs_extents_free(peer->seg, peer->index, XS_EXTENT_PAGES);
		XKILL(PEER_EMPTIED);
	}
	peer_set(peer, XSEG_PEER_STOPPED);
}

void xseg_peer_close(struct xseg_peer *peer, enum xseg_close how)
{
	struct xseg *seg = peer->seg;
	int fd;

	if (xs_is_forked(seg))
		peer->arena = NULL;	/* what may be mapped there is something else */
	if (!xs_is_usable(seg)) {
		close_handles(peer);
		return;
	}
	if (how != XSEG_CLOSE_ABANDON)
		send_off(peer);
	fd = xs_lock(seg, xs_peer_lock_byte(peer));
	/* before another thread can have the ports, and their requests */
	for (uint32_t i = 0; i < peer->nr_ports; i++)
		xs_views_forget(&peer->port[i]);
	/* without the lock nothing else is ours to change than the word, while it says that we
	 * serve: a sweep, or a successor, does the rest */
	if (how == XSEG_CLOSE_ABANDON || fd < 0)
		peer_set(peer, XSEG_PEER_DEAD);
	else if (peer->client)
		close_client(peer);
	else
		close_server(peer, how);
	xs_ring_all(seg);
	if (fd >= 0)
		xs_unlock(fd);
	close_handles(peer);
}

/* ---- small accessors ---- */

struct xseg *xseg_peer_segment(struct xseg_peer *peer)
{
	return peer->seg;
}

uint32_t xseg_peer_index(struct xseg_peer *peer)
{
	return peer->index;
}

uint32_t xseg_peer_generation(const struct xseg_peer *peer)
{
	return peer->generation;
}

uint32_t xseg_peer_nr_ports(struct xseg_peer *peer)
{
	return peer->nr_ports;
}

enum xseg_peer_state xseg_peer_before(const struct xseg_peer *peer)
{
	return peer->before;
}

struct xport *xseg_peer_port(struct xseg_peer *peer, uint32_t i)
{
	return i < peer->nr_ports ? &peer->port[i] : NULL;
}

uint64_t xseg_arena_epoch(struct xseg_peer *peer)
{
	return atomic_load_explicit(&peer->sh->arena_epoch, memory_order_relaxed);
}

void xseg_arena_epoch_set(struct xseg_peer *peer, uint64_t epoch)
{
	xs_keep(peer->seg, peer->index, XS_KEPT_EPOCH, epoch);
}

void xseg_peer_user_set(struct xseg_peer *peer, unsigned n, uint64_t value)
{
	if (n < 8)
		atomic_store_explicit(&peer->sh->user[n], value, memory_order_release);
}

uint64_t xseg_peer_user(struct xseg_peer *peer, unsigned n)
{
	return n < 8 ? atomic_load_explicit(&peer->sh->user[n], memory_order_acquire) : 0;
}
