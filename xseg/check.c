/* check - verifies the invariants of a whole segment, and mends derived words.
 *
 * Contract: any process, at any time. It holds all locks, so little moves meanwhile: requests,
 * lanes, and extents and statistics of live peers. Of these it checks only facts that hold at every
 * moment, and it mends by swaps. `fix` changes only words that something else proves wrong: the
 * truths (place words, extent words, peer words), the second copies (kept.c), or the kernel's
 * locks. It corrects requests that no port holds, the words that kept.c has copies of, lanes,
 * doorbells, steering, and members' pids. It frees ports, extents and statistics without an owner.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xseg/check.h"

void xs_check_problem(struct check *c, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->problems++;
	c->report(text, c->arg);
}

static enum xseg_peer_state state_of(struct xseg *seg, uint32_t peer)
{
	return peer_state(xs_peer_word(seg, peer));
}

static void check_peer(struct check *c, uint32_t i)
{
	struct xs_peer *p = &c->seg->peers[i];
	uint32_t nr = atomic_load_explicit(&p->nr_ports, memory_order_relaxed);

	if (state_of(c->seg, i) == XSEG_PEER_FREE)
		return;
	if (state_of(c->seg, i) > XSEG_PEER_DEAD || nr > XSEG_PEER_PORTS) {
		problem(c, "peer %u: its word or port count is out of range", i);
		return;
	}
	for (uint32_t k = 0; k < nr; k++) {
		uint32_t port = XS_FETCH(p->port[k]);

		if (port >= c->seg->geo.nr_ports ||
			atomic_load_explicit(
				&c->seg->ports[port].peer, memory_order_relaxed) != i + 1)
			problem(c, "peer '%.63s': port %u is not its own", p->name, port);
	}
	if (!memchr(p->name, '\0', sizeof(p->name)))
		problem(c, "peer %u: its name has no end", i);
	else if (xseg_name_ok(p->name) && xseg_peer_find(c->seg, p->name) != i)
		problem(c, "peer '%.63s': its name is used twice", p->name);
}

/* Where the peer sends is a peer, and following routes comes to an end. */
static void check_route(struct check *c, uint32_t i)
{
	struct xseg *seg = c->seg;
	uint32_t at = i;

	if (state_of(seg, i) == XSEG_PEER_FREE)
		return;
	for (uint32_t hops = 0; hops <= seg->geo.nr_ports; hops++) {
		at = route_lower(atomic_load_explicit(&seg->peers[at].route, memory_order_relaxed));
		if (at == XSEG_NONE)
			return;
		if (at >= seg->geo.nr_ports || state_of(seg, at) == XSEG_PEER_FREE) {
			problem(c, "peer '%.63s': its route leads to no peer", seg->peers[i].name);
			return;
		}
	}
	problem(c, "peer '%.63s': its route runs in a circle", seg->peers[i].name);
}

/* A peer that is kept has one upstream. Others may be there only while a cache enters between it
 * and them, or leaves from there. */
static void check_keeper(struct check *c, uint32_t i)
{
	struct xseg *seg = c->seg;
	uint32_t keeper = xs_plug_keeper(seg, i);

	for (uint32_t other = 0; keeper != XSEG_NONE && other < seg->geo.nr_ports; other++) {
		uint64_t route = atomic_load_explicit(
			&seg->peers[other].route, memory_order_acquire);

		if (other == keeper || route_lower(route) != i || xs_peer_is_client(seg, other) ||
			state_of(seg, other) == XSEG_PEER_FREE ||
			xs_plug_is_upper(seg, keeper, other) ||
			xs_plug_is_upper(seg, other, keeper))
			continue;
		problem(c, "peer '%.63s': it is kept for '%.63s', and '%.63s' sends there, too",
			seg->peers[i].name, seg->peers[keeper].name, seg->peers[other].name);
	}
}

/* What a serving peer has copies of is what its route leads to; while it is being plugged or
 * unplugged it may be about to see to that. */
static void check_epoch(struct check *c, uint32_t i)
{
	struct xs_peer *p = &c->seg->peers[i];
	uint64_t route = atomic_load_explicit(&p->route, memory_order_acquire),
		 has = atomic_load_explicit(&p->arena_epoch, memory_order_relaxed);

	if (state_of(c->seg, i) != XSEG_PEER_LIVE ||
		!atomic_load_explicit(&p->arena_extents, memory_order_relaxed) ||
		has == XSEG_NO_EPOCH || route_lower(route) == XSEG_NONE ||
		atomic_load_explicit(&p->plug, memory_order_relaxed))
		return;
	if (has != route_epoch(route))
		problem(c,
			"peer '%.63s': its data is of epoch %llu, and its route of epoch %llu",
			p->name, (unsigned long long)has, (unsigned long long)route_epoch(route));
}

/* What plug.c keeps: it names a peer that is there; who is asked to hold is asked by a cache that
 * is being plugged there. */
static void check_plug(struct check *c, uint32_t i)
{
	struct xseg *seg = c->seg;
	struct xs_peer *p = &seg->peers[i];
	uint64_t plug = atomic_load_explicit(&p->plug, memory_order_relaxed),
		 turn = atomic_load_explicit(&p->turn, memory_order_relaxed);
	uint32_t cache = turn_cache(turn);

	if (state_of(seg, i) == XSEG_PEER_FREE)
		return;
	if (plug && (plug_op(plug) > XSEG_PLUG_LEAVE || plug_lower(plug) >= seg->geo.nr_ports ||
			    state_of(seg, plug_lower(plug)) == XSEG_PEER_FREE))
		problem(c,
			"peer '%.63s': it is to be plugged or unplugged above a peer that is not "
			"there",
			p->name);
	if (turn && (turn_state(turn) > XSEG_TURN_HELD || cache >= seg->geo.nr_ports))
		problem(c, "peer '%.63s': it is asked to hold by no peer", p->name);
	if (atomic_load_explicit(&p->above, memory_order_relaxed) > seg->geo.nr_ports)
		problem(c, "peer '%.63s': it is kept for no peer", p->name);
	check_keeper(c, i);
	check_epoch(c, i);
}

/* Who has the port, by its own word; one of nobody goes back. False when there is nothing more to
 * say of it. */
static bool check_port_peer(struct check *c, uint32_t i)
{
	uint32_t peer = atomic_load_explicit(&c->seg->ports[i].peer, memory_order_acquire);

	if (peer == 0)
		return false;
	if (peer <= c->seg->geo.nr_ports && state_of(c->seg, peer - 1) != XSEG_PEER_FREE)
		return true;
	if (c->fix)
		xs_keep_port(c->seg, i, 0);
	else
		problem(c, "port %u: belongs to no peer ('xseg check --fix' gives it back)", i);
	return false;
}

static void check_ports(struct check *c)
{
	struct xseg *seg = c->seg;

	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		struct xs_port *a = &seg->ports[i];

		if (!check_port_peer(c, i))
			continue;
		if (a->req_first > seg->geo.nr_requests ||
			a->req_nr > seg->geo.nr_requests - a->req_first) {
			problem(c, "port %u: its requests are out of range", i);
			continue;
		}
		for (uint32_t k = 0; k < i; k++) {
			struct xs_port *b = &seg->ports[k];

			if (atomic_load_explicit(&b->peer, memory_order_relaxed) && a->req_nr &&
				b->req_nr && a->req_first < (uint64_t)b->req_first + b->req_nr &&
				b->req_first < a->req_first + a->req_nr)
				problem(c, "ports %u and %u have requests in common", i, k);
		}
	}
}

/* One that is still where it was when it was looked at goes there. */
static bool place_fix(struct check *c, uint32_t i, uint64_t from, enum xseg_req_state state,
	uint32_t port)
{
	return c->fix && atomic_compare_exchange_strong(&c->seg->reqs[i].place, &from,
				 place_word(state, port, 0, place_seq(from) + 1));
}

static bool is_result(int64_t result)
{
	return result != XS_NOT_ANSWERED && result != XS_IDLE;
}

/* Its owner's, by the port. */
static const char *owner_name(struct xseg *seg, uint32_t port)
{
	uint32_t peer = xs_peer_of_port(seg, port);

	return peer && peer <= seg->geo.nr_ports ? seg->peers[peer - 1].name : "nobody";
}

/* What is wrong with a place that is not FREE, or NULL. The owner: a port. */
static const char *wrong_place(struct xseg *seg, uint32_t i, uint64_t w, uint32_t owner)
{
	enum xseg_req_state s = place_state(w);
	uint32_t peer = xs_peer_of_port(seg, owner);

	if (s > XSEG_REQ_ANSWERED || place_port(w) >= seg->geo.nr_ports)
		return "its place is out of range";
	if (s == XSEG_REQ_PRIVATE || s == XSEG_REQ_ANSWERED)
		return place_port(w) == owner ? NULL : "it is at rest with a port that is not its "
						       "own";
	if (!xs_peer_of_port(seg, place_port(w)))
		return "it is at a port without an owner";
	if (xs_req_is_idle(seg, i))
		return "it was not sent, and its place says that a port holds it";
	return peer && xs_place_is_stray(seg, i, w, peer - 1)
		       ? "its place names a port that does not hold it"
		       : NULL;
}

static void check_request(struct check *c, uint32_t i)
{
	struct xs_req *r = &c->seg->reqs[i];
	uint64_t w = atomic_load_explicit(&r->place, memory_order_acquire);
	enum xseg_req_state s = place_state(w);
	const char *why;
	uint32_t owner;

	if (s == XSEG_REQ_FREE)
		return;
	owner = xs_req_owner(c->seg, i);
	if (owner == XSEG_NONE) {
		if (!place_fix(c, i, w, XSEG_REQ_FREE, PLACE_NO_PORT))
			problem(c, "request %u: belongs to no port and is not free", i);
		return;
	}
	why = wrong_place(c->seg, i, w, owner);
	if (!why || atomic_load_explicit(&r->place, memory_order_acquire) != w)
		return;		/* it moved on meanwhile */
	if (xs_req_is_idle(c->seg, i) && place_fix(c, i, w, XSEG_REQ_FREE, owner))
		return;
	if (is_result(atomic_load_explicit(&r->result, memory_order_acquire)) &&
		place_fix(c, i, w, XSEG_REQ_ANSWERED, owner)) {
		xs_port_alert(c->seg, owner);
		return;
	}
	problem(c, "request %u of '%.63s': %s%s", i, owner_name(c->seg, owner), why,
		xs_req_is_idle(c->seg, i) ? " ('xseg check --fix' frees it)"
					  : "; start that peer again to have it back");
}

/* How often it lists the page as one to write in. */
static uint32_t lists_gift(struct xseg *seg, uint32_t request, uint32_t page)
{
	struct xs_req *r = &seg->reqs[request];
	uint32_t nr = atomic_load(&r->nr_lent), n = 0;

	if (place_state(atomic_load(&r->place)) == XSEG_REQ_FREE)
		return 0;
	for (uint32_t i = 0; i < nr && i < XSEG_REQ_PAGES; i++)
		n += atomic_load(&r->page[i].lent) == (page | XSEG_LENT_PAGE | XSEG_LENT_GIFT);
	return n;
}

/* A page that is to be written is lent once (gift.c). */
static void check_gift(struct check *c, uint32_t i, uint32_t lent)
{
	uint32_t page = lent & XSEG_PAGE_INDEX, other;

	if (!(lent & XSEG_LENT_GIFT) || page >= c->seg->nr_pages)
		return;
	other = c->gift[page] ? c->gift[page] - 1 : i;
	c->gift[page] = i + 1;
	/* the first may have let go of it before the second got it: then it does not list it now */
	if (lists_gift(c->seg, other, page) > (other == i) && lists_gift(c->seg, i, page))
		problem(c, "requests %u and %u were both lent page %u to write in", other, i, page);
}

/* What is lent belongs to somebody, as long as the request lists it (loan.c, H1). */
static void check_loans(struct check *c, uint32_t i)
{
	struct xseg *seg = c->seg;
	struct xs_req *r = &seg->reqs[i];
	uint64_t w = atomic_load_explicit(&r->place, memory_order_acquire);
	uint32_t nr = atomic_load_explicit(&r->nr_lent, memory_order_acquire);

	for (uint32_t k = 0; place_state(w) != XSEG_REQ_FREE && k < nr && k < XSEG_REQ_PAGES; k++) {
		uint32_t lent = atomic_load_explicit(&r->page[k].lent, memory_order_acquire),
			 page = lent & XSEG_PAGE_INDEX;

		check_gift(c, i, lent);
		if (!(lent & XSEG_LENT_PAGE) || page >= seg->nr_pages ||
			extent_kind(
				atomic_load_explicit(&seg->extents[page / XSEG_EXTENT_PAGES].word,
					memory_order_acquire)) != XS_EXTENT_FREE)
			continue;
		/* it may have been given back in between */
		if (atomic_load(&r->place) == w && atomic_load(&r->nr_lent) == nr &&
			atomic_load(&r->page[k].lent) == lent)
			problem(c, "request %u: it was lent page %u, which has no owner", i,
				page);
	}
}

/* An extent of nobody goes back to the pool. */
static void orphaned_extent(struct check *c, uint32_t i, uint64_t word, const char *why)
{
	if (c->fix)
		atomic_compare_exchange_strong(&c->seg->extents[i].word, &word,
			extent_word(XS_EXTENT_FREE, 0, 0));
	else
		problem(c, "extent %u: %s ('xseg check --fix' gives it back)", i, why);
}

static void check_extents(struct check *c)
{
	struct xseg *seg = c->seg;

	for (uint32_t i = 0; i < seg->geo.nr_extents; i++) {
		uint64_t w = atomic_load_explicit(&seg->extents[i].word, memory_order_acquire);
		uint32_t peer = extent_peer(w);

		if (extent_kind(w) == XS_EXTENT_FREE)
			continue;
		if (extent_kind(w) > XS_EXTENT_TAKING || peer >= seg->geo.nr_ports) {
			problem(c, "extent %u: its word is out of range", i);
		} else if (state_of(seg, peer) == XSEG_PEER_FREE) {
			orphaned_extent(c, i, w, "belongs to no peer");
		} else if (extent_kind(w) == XS_EXTENT_ARENA &&
			   extent_nr(w) >= atomic_load_explicit(&seg->peers[peer].arena_extents,
						   memory_order_relaxed)) {
			orphaned_extent(c, i, w, "part of an arena that was never finished");
		} else if (c->fix && extent_kind(w) == XS_EXTENT_TAKING &&
			   !xseg_peer_is_up(state_of(seg, peer))) {
			/* else the dead peer's successor gives it back */
			orphaned_extent(c, i, w, "was being taken by a peer that died");
		}
	}
}

/* A1: the extents of a committed arena are there, each number once. */
static void check_arena(struct check *c, uint32_t peer)
{
	struct xseg *seg = c->seg;
	uint32_t nr = atomic_load_explicit(&seg->peers[peer].arena_extents, memory_order_acquire),
		 found = 0;

	if (state_of(seg, peer) == XSEG_PEER_FREE || nr == 0)
		return;
	memset(c->seen, 0, seg->geo.nr_extents * sizeof(*c->seen));
	for (uint32_t i = 0; nr <= seg->geo.nr_extents && i < seg->geo.nr_extents; i++) {
		uint64_t w = atomic_load_explicit(&seg->extents[i].word, memory_order_acquire);

		if (extent_kind(w) != XS_EXTENT_ARENA || extent_peer(w) != peer ||
			extent_nr(w) >= nr)
			continue;
		found += !c->seen[extent_nr(w)];
		c->seen[extent_nr(w)] = true;
	}
	if (found != nr)
		problem(c, "peer '%.63s': its arena has %u of its %u extents",
			seg->peers[peer].name, found, nr);
}

static bool serves_a_peer(struct xseg *seg, uint32_t member)
{
	struct xseg_peer_info info;

	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &info) && xseg_peer_is_up(info.state) &&
			info.member == member)
			return true;
	return false;
}

/* Its pid is what signals begin with. One that has joined, and not written it yet, has none, nor
 * has it a peer. */
static void check_member(struct check *c, uint32_t i)
{
	struct xs_member *m = &c->seg->members[i];
	uint32_t pid = atomic_load_explicit(&m->pid, memory_order_relaxed), right;

	if (!xs_member_alive(c->seg, i) ||
		(pid ? xs_pid_has_byte(c->seg, pid, XSEG_LOCK_MEMBER0 + i)
		     : !serves_a_peer(c->seg, i)))
		return;
	right = xs_byte_holder(c->seg, XSEG_LOCK_MEMBER0 + i);
	/* it may have left, and another one may have joined */
	if (!right || pid != atomic_load_explicit(&m->pid, memory_order_relaxed))
		return;
	if (c->fix)
		atomic_compare_exchange_strong_explicit(&m->pid, &pid, right, memory_order_relaxed,
			memory_order_relaxed);
	else
		problem(c,
			"member %u: it says process %u, but process %u has its lock ('xseg check "
			"--fix' corrects it)",
			i, pid, right);
}

static void check_stats(struct check *c, uint32_t i)
{
	uint32_t word = atomic_load_explicit(&c->seg->stats[i].peer, memory_order_acquire),
		 peer = word & ~XS_STATS_MAKING;

	if (word == 0 || (peer && peer <= c->seg->geo.nr_ports &&
				 state_of(c->seg, peer - 1) != XSEG_PEER_FREE))
		return;
	if (c->fix)
		/* by a swap: who takes one has no lock */
		atomic_compare_exchange_strong(&c->seg->stats[i].peer, &word, 0);
	else
		problem(c,
			"statistics block %u: belongs to no peer ('xseg check --fix' gives it "
			"back)",
			i);
}

/* Hints that their server stores once, and others follow for as long as it lives. */
static void check_hints(struct check *c, uint32_t i)
{
	struct xs_port *p = &c->seg->ports[i];
	uint32_t bell = atomic_load_explicit(&p->bell, memory_order_relaxed);

	if (!xs_peer_of_port(c->seg, i))
		return;
	if (bell >= c->seg->geo.nr_ports || !xs_peer_of_port(c->seg, bell)) {
		if (c->fix)
			atomic_store_explicit(&p->bell, i, memory_order_release);
		else
			problem(c, "port %u: its doorbell belongs to no port ('xseg check --fix' "
				   "gives it its own)", i);
	}
	if (atomic_load_explicit(&p->steer, memory_order_relaxed) > XSEG_PEER_PORTS) {
		if (c->fix)
			atomic_store_explicit(&p->steer, 0, memory_order_relaxed);
		else
			problem(c, "port %u: it is steered to no port ('xseg check --fix' ends "
				   "that)", i);
	}
}

static void kept_problem(uint32_t peer, uint32_t port, const char *what, void *arg)
{
	struct check *c = arg;

	if (peer != XSEG_NONE)
		problem(c, "peer %u ('%.63s'): %s was overwritten ('xseg check --fix' puts it "
			   "back)", peer, c->seg->kept_peers[peer].lists.name, what);
	else
		problem(c, "port %u: %s was overwritten ('xseg check --fix' puts it back)",
			port, what);
}

static void check_all(struct check *c)
{
	struct xseg *seg = c->seg;
	uint32_t i;

	for (i = 0; i < seg->geo.nr_ports; i++) {
		check_peer(c, i);
		check_route(c, i);
		check_plug(c, i);
		check_hints(c, i);
	}
	check_ports(c);
	for (i = 0; i < seg->geo.nr_requests; i++) {
		check_request(c, i);
		check_loans(c, i);
	}
	check_extents(c);
	for (i = 0; i < seg->geo.nr_ports; i++)
		check_arena(c, i);
	xs_check_lanes(c);
	for (i = 0; i < seg->geo.nr_stats; i++)
		check_stats(c, i);
	for (i = 0; i < XSEG_MAX_MEMBERS; i++)
		check_member(c, i);
}

unsigned xseg_check(
	struct xseg *seg, bool fix, void (*report)(const char *problem, void *arg), void *arg)
{
	struct check c = { .seg = seg, .fix = fix, .report = report, .arg = arg };
	struct xseg_error err = { "" };
	int fd = xs_lock_all(seg);

	if (fd < 0) {
		xs_fail_lock(seg, fd, &err);
		problem(&c, "%s", err.text);
		return XSEG_NOT_CHECKED;
	}
	xs_kept_look(seg, fix, fix ? NULL : kept_problem, &c);
	if (fix && !seg->observer)
		xs_mark_dead(seg);
	c.gift = calloc(seg->nr_pages, sizeof(*c.gift));
	c.seen = calloc(seg->geo.nr_extents, sizeof(*c.seen));
	if (c.gift && c.seen)
		check_all(&c);
	else
		problem(&c, "out of memory: nothing was checked");
	free(c.gift);
	free(c.seen);
	xs_unlock(fd);
	if (fix && !seg->observer) {
		xseg_sweep(seg);
		xs_look_again(seg);
	}
	return c.problems;
}
