/* check - verifies the invariants of a whole segment, and mends what is derived.
 *
 * Contract: any process, at any time. While peers run, a finding may be of a moment that has passed: what is looked
 * at twice and is still wrong is reported. `fix` changes only what follows from the truths (place words,
 * extent words, peer words): requests at rest with nobody, extents of nobody.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "xseg/internal.h"

struct check {
	struct xseg *seg;
	bool fix;
	unsigned problems;
	void (*report)(const char *problem, void *arg);
	void *arg;
};

__attribute__((format(printf, 2, 3))) static void problem(struct check *c, const char *fmt, ...)
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
	return peer_state(atomic_load_explicit(&seg->peers[peer].word, memory_order_acquire));
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
	for (uint32_t k = 0; k < nr; k++)
		if (p->port[k] >= c->seg->geo.nr_ports ||
		    atomic_load_explicit(&c->seg->ports[p->port[k]].peer, memory_order_relaxed) != i + 1)
			problem(c, "peer '%.63s': port %u is not its own", p->name, p->port[k]);
	if (xseg_name_ok(p->name) && xseg_peer_find(c->seg, p->name) != i)
		problem(c, "peer '%.63s': its name is used twice", p->name);
}

static void check_ports(struct check *c)
{
	struct xseg *seg = c->seg;

	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		struct xs_port *a = &seg->ports[i];

		if (!atomic_load_explicit(&a->peer, memory_order_relaxed))
			continue;
		if (a->req_first > seg->geo.nr_requests || a->req_nr > seg->geo.nr_requests - a->req_first) {
			problem(c, "port %u: its requests are out of range", i);
			continue;
		}
		for (uint32_t k = 0; k < i; k++) {
			struct xs_port *b = &seg->ports[k];

			if (atomic_load_explicit(&b->peer, memory_order_relaxed) && a->req_nr && b->req_nr &&
			    a->req_first < b->req_first + b->req_nr && b->req_first < a->req_first + a->req_nr)
				problem(c, "ports %u and %u have requests in common", i, k);
		}
	}
}

/* The port that owns request i, or XSEG_NONE. */
static uint32_t owner_of(struct xseg *seg, uint32_t i)
{
	for (uint32_t k = 0; k < seg->geo.nr_ports; k++)
		if (atomic_load_explicit(&seg->ports[k].peer, memory_order_relaxed) && i >= seg->ports[k].req_first &&
		    i - seg->ports[k].req_first < seg->ports[k].req_nr)
			return k;
	return XSEG_NONE;
}

static void check_request(struct check *c, uint32_t i)
{
	struct xs_req *r = &c->seg->reqs[i];
	uint64_t w = atomic_load_explicit(&r->place, memory_order_acquire);
	enum xseg_req_state s = place_state(w);
	uint32_t owner = owner_of(c->seg, i);

	if (s == XSEG_REQ_FREE)
		return;
	if (s > XSEG_REQ_ANSWERED || place_port(w) >= c->seg->geo.nr_ports) {
		problem(c, "request %u: its place is out of range", i);
		return;
	}
	if (owner == XSEG_NONE) {
		if (c->fix && atomic_compare_exchange_strong(&r->place, &w, place_word(XSEG_REQ_FREE, PLACE_NO_PORT, 0, place_seq(w) + 1)))
			return;
		problem(c, "request %u: belongs to no port and is not free", i);
	} else if ((s == XSEG_REQ_PRIVATE || s == XSEG_REQ_ANSWERED) && place_port(w) != owner) {
		problem(c, "request %u: at rest with port %u, but port %u owns it", i, place_port(w), owner);
	} else if (!atomic_load_explicit(&c->seg->ports[place_port(w)].peer, memory_order_relaxed)) {
		problem(c, "request %u: at port %u, which nobody has", i, place_port(w));
	}
}

static void check_extents(struct check *c)
{
	struct xseg *seg = c->seg;

	for (uint32_t i = 0; i < seg->geo.nr_extents; i++) {
		uint64_t w = atomic_load_explicit(&seg->extents[i].word, memory_order_acquire);
		uint32_t peer = extent_peer(w);

		if (extent_kind(w) == XS_EXTENT_FREE)
			continue;
		if (extent_kind(w) > XS_EXTENT_PAGES || peer >= seg->geo.nr_ports) {
			problem(c, "extent %u: its word is out of range", i);
		} else if (state_of(seg, peer) == XSEG_PEER_FREE) {
			if (c->fix)
				atomic_store_explicit(&seg->extents[i].word, extent_word(XS_EXTENT_FREE, 0, 0), memory_order_release);
			else
				problem(c, "extent %u: belongs to no peer (xseg check --fix gives it back)", i);
		} else if (extent_kind(w) == XS_EXTENT_ARENA &&
			   extent_nr(w) >= atomic_load_explicit(&seg->peers[peer].arena_extents, memory_order_relaxed) &&
			   !xs_member_alive(seg, peer_member(atomic_load_explicit(&seg->peers[peer].word, memory_order_relaxed)))) {
			problem(c, "extent %u: part of an arena of '%.63s' that was never finished", i, seg->peers[peer].name);
		}
	}
}

static void check_lanes(struct check *c)
{
	struct xseg *seg = c->seg;

	for (uint32_t i = 0; i < seg->geo.nr_lanes; i++) {
		struct xq *q = (struct xq *)(seg->base + seg->geo.off_rings + i * seg->geo.ring_bytes);
		uint64_t head = atomic_load_explicit(&q->head, memory_order_acquire);
		uint64_t tail = atomic_load_explicit(&q->tail, memory_order_acquire);

		if (atomic_load_explicit(&seg->lanes[i].word, memory_order_relaxed) && tail - head > seg->geo.lane_slots)
			problem(c, "lane %u: %llu offers in %u places", i, (unsigned long long)(tail - head), seg->geo.lane_slots);
	}
}

unsigned xseg_check(struct xseg *seg, bool fix, void (*report)(const char *problem, void *arg), void *arg)
{
	struct check c = { .seg = seg, .fix = fix, .report = report, .arg = arg };
	int fd = xs_control_lock(seg);
	uint32_t i;

	if (fd < 0) {
		problem(&c, "the control lock cannot be taken");
		return c.problems;
	}
	if (fix && !seg->observer)
		xs_mark_dead(seg, fd);
	for (i = 0; i < seg->geo.nr_ports; i++)
		check_peer(&c, i);
	check_ports(&c);
	for (i = 0; i < seg->geo.nr_requests; i++)
		check_request(&c, i);
	check_extents(&c);
	check_lanes(&c);
	xs_control_unlock(fd);
	if (fix)
		xseg_sweep(seg);
	return c.problems;
}
