/* adopt - a predecessor's requests at the store, while its successor serves.
 *
 * A cache that was killed leaves children at the store: loads, flushes, writes that bypass the
 * cache, copies, deletes. Until they are answered they may change the store, or write into the
 * pages that they list. A store that stalls takes its time. So the successor takes them over as
 * children of its own (ORPHANs). The objects of these children are HELD until all of theirs are
 * answered: requests wait, nothing is flushed, no page of dirty data moves. All other objects are
 * served. Pages that an orphan lists and no slot has are kept out of use until then (OWNER_ORPHAN).
 * Pages that a slot has stay in that slot, as a HELD object's dirty data stays where it is.
 *
 * The results of orphans count for nothing: WRITING became DIRTY, LOADING and BYPASS became
 * INVALID, and a STARTED request is redone when its object is not HELD any more. There is one
 * exception: if a FLUSH or a write with FUA among them fails, data becomes dirty again (sync.c).
 *
 * Every child has an object, or is a FLUSH, which changes nothing. If the object of a child cannot
 * be told, as the segment is damaged, or if there is no memory, none is adopted. Then nothing is
 * served before all of them are answered.
 *
 * Contract: orphans_adopt() once, before serving, one thread: when all slots are known, and before
 * pages are free. orphan_done() inside the object, if it has one.
 */
#include <stdlib.h>
#include <string.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/life/cached.h"
#include "peers/cached/object/object.h"

/* As it was shown once: what the segment says of it may be something else by now (R5). */
struct orphan {
	struct xport *port;
	struct xreq *r, sent;
};

struct adoption {
	struct cached *k;
	uint8_t *page_is;
	struct orphan *orphans;
	uint32_t nr, strangers;
};

/* With a reference; NULL: none has that name. */
static struct object *object_of_request(struct cached *k, const struct xreq *r)
{
	uint32_t idx = xcache_lookup(
		&object_of(k)->xc, r->target, xseg_hash(r->target, strlen(r->target)));

	return idx == XCACHE_NONE ? NULL : &object_of(k)->objects[idx];
}

static void look_at(struct xport *port, struct xreq *r, const struct xreq *sent, void *arg)
{
	struct adoption *a = arg;
	struct object *o = sent->op == XSEG_OP_FLUSH ? NULL : object_of_request(a->k, sent);

	a->orphans[a->nr++] = (struct orphan){ port, r, *sent };
	if (o)
		xcache_put(&object_of(a->k)->xc, o->index);
	else
		a->strangers += sent->op != XSEG_OP_FLUSH;
}

static struct cport *cport_with(struct cached *k, const struct xport *port)
{
	uint32_t i = 0;

	while (cport_at(k, i)->pp->port != port)
		i++;
	return cport_at(k, i);
}

static void adopt_one(struct adoption *a, const struct orphan *orphan)
{
	const struct xreq *sent = &orphan->sent;
	struct cached *k = a->k;
	struct object *o = sent->op == XSEG_OP_FLUSH ? NULL : object_of_request(k, sent);

	for (uint32_t i = 0; i < sent->nr_pages; i++) {
		uint32_t page = sent->page[i] & XSEG_PAGE_INDEX;

		if (page >= xseg_nr_pages(peer_of(k)->seg) || a->page_is[page] != PAGE_FREE)
			continue; /* in a slot, or of the client whose write went past the cache */
		a->page_is[page] = PAGE_ORPHAN;
		xseg_page_owner_set(peer_of(k)->seg, page, OWNER_ORPHAN);
	}
	child_adopt(cport_with(k, orphan->port), orphan->r, sent->index, o);
	atomic_fetch_add_explicit(&store_of(k)->nr_orphans, 1, memory_order_relaxed);
	if (o && o->loads_out++ == 0)
		object_set_state(o, OBJECT_HELD);
}

void orphans_adopt(struct cached *k, uint8_t *page_is)
{
	struct adoption a = { .k = k, .page_is = page_is };
	uint32_t max = 0;

	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		max += xseg_port_nr_requests(cport_at(k, i)->pp->port);
	a.orphans = calloc(max, sizeof(*a.orphans));
	store_of(k)->adopted =
		a.orphans && xseg_peer_adopt(peer_of(k)->xp, look_at, &a) == 0 && !a.strangers;
	for (uint32_t i = 0; i < a.nr && store_of(k)->adopted; i++)
		adopt_one(&a, &a.orphans[i]);
	free(a.orphans);
}

/* Nothing of a predecessor's is out for the object: it goes on. */
static void object_let_go(struct cport *ps, struct object *o)
{
	object_set_state(o, OBJECT_READY);
	through_restart(ps, o);
	dirty_list(ps, o);
	object_wake(ps, o);
	object_reclaim_step(ps, o);
}

void orphan_done(struct cport *ps, struct child *ch, int64_t result)
{
	struct cached *k = ps->cache;
	struct object *o = ch->obj;

	xseg_req_recall(cport_at(k, ch->home)->pp->port, ch->r);
	if (result < 0 && (ch->r->op == XSEG_OP_FLUSH || ch->r->flags & XSEG_REQ_FUA))
		sync_lost(ps, 0, NULL);
	for (uint32_t i = 0; i < ch->r->nr_pages; i++) {
		uint32_t page = ch->r->page[i] & XSEG_PAGE_INDEX;

		/* one that went past this cache lists pages of a cache above, which may say the
		 * same of them */
		if (page < xseg_nr_pages(peer_of(k)->seg) &&
			(xseg_page_owner(peer_of(k)->seg, page) & OWNER_ORPHAN) &&
			page_is_ours(k, page))
			page_put(ps, page);
	}
	atomic_fetch_sub_explicit(&store_of(k)->nr_orphans, 1, memory_order_relaxed);
	if (o && --o->loads_out == 0)
		object_let_go(ps, o);
	child_put(ps, ch);
}
