/* started - rule R3, checked when it is broken, not when its consequences are read: those take more
 * luck than a seed has.
 *
 *   when a cache is killed   no slot has data of a write that is still AT it: its successor would
 *                            take that for a new one
 *                          and a bucket of a STARTED one whose page was exchanged has its data, if
 *                          it is there: its successor leaves that alone
 *   when a cache answers     no write that overlaps is STARTED at it, unless the answered one was
 *                            APPLIED before, or failed: a successor finishes STARTED ones before
 *                            anything else of their object, and a write that goes past the cache
 *                            holds its buckets
 *
 * Contract: looks at the clients' own requests only, where they are; changes nothing.
 */
#include <string.h>

#include "peers/cached/life/cached.h"
#include "tests/sim/sim.h"
#include "xseg/internal.h"

static struct sim *watched;

void started_watch(struct sim *s)
{
	watched = s;
}

/* The state of a request that is at that node; FREE: it is not. */
static enum xseg_req_state state_at(struct sim *s, const struct io *io, const struct node *n)
{
	uint64_t w = io->r ? atomic_load(&s->seg->reqs[io->r->index].place) : 0;
	enum xseg_req_state state = place_state(w);

	if (state != XSEG_REQ_AT && state != XSEG_REQ_STARTED && state != XSEG_REQ_APPLIED)
		return XSEG_REQ_FREE;
	return atomic_load(&s->seg->ports[place_port(w)].peer) == xseg_peer_index(n->p->xp) + 1
		       ? state
		       : XSEG_REQ_FREE;
}

/* The object, and the range in it, of an I/O that is at a cache: within one object. */
static uint64_t object_of_io(const struct sim *s, const struct io *io, char name[XSEG_TARGET_MAX])
{
	uint64_t at = (uint64_t)io->first * ORACLE_SECTOR;

	/* one of a volume that is gone overlaps nothing that there is */
	if (!object_name(s, io->volume, at / s->plan.object_size, name) ||
		io->id != s->volume[io->volume].id)
		name[0] = '\0';
	return at % s->plan.object_size;
}

/* ---- at a kill ---- */

static bool is_in_slot(struct sim *s, struct cached *k, struct object *o, const struct io *io,
	uint64_t at, uint32_t sector)
{
	uint64_t w = slot_get(k, o, (uint32_t)(at / BUCKET_SIZE));

	return bucket_is_dirty(slot_state(w)) && slot_has_page(w) &&
	       oracle_is_from((char *)xseg_page(s->seg, slot_page(w)) + at % BUCKET_SIZE, io->write,
		       io->volume, sector);
}

static void check_at(struct sim *s, struct cached *k, const struct io *io)
{
	char name[XSEG_TARGET_MAX];
	uint64_t at = object_of_io(s, io, name);
	uint32_t idx = xcache_lookup(&k->object.xc, name, xseg_hash(name, strlen(name)));

	for (uint32_t i = 0; idx != XCACHE_NONE && i < io->nr; i++)
		if (is_in_slot(s, k, &k->object.objects[idx], io, at + (uint64_t)i * ORACLE_SECTOR,
			    io->first + i))
			sim_fail(s,
				"%s is killed with a write in its slots that is not STARTED: write "
				"%u",
				k->base.peer.name, io->write);
}

/* Its i-th page, of the range's, was given and exchanged. */
static bool is_taken(struct sim *s, const struct io *io, uint32_t i)
{
	const struct xs_page *e = &s->seg->reqs[io->r->index].page[i];

	return e->page & XSEG_PAGE_GIVEN &&
	       atomic_load(&e->lent) !=
		       ((e->page & XSEG_PAGE_INDEX) | XSEG_LENT_PAGE | XSEG_LENT_GIFT);
}

static void check_taken(struct sim *s, struct cached *k, const struct io *io)
{
	char name[XSEG_TARGET_MAX];
	uint64_t at = object_of_io(s, io, name);
	uint32_t idx = xcache_lookup(&k->object.xc, name, xseg_hash(name, strlen(name)));

	for (uint32_t i = 0; idx != XCACHE_NONE && i < io->nr; i++) {
		uint64_t byte = at + (uint64_t)i * ORACLE_SECTOR;
		uint64_t w = slot_get(k, &k->object.objects[idx], (uint32_t)(byte / BUCKET_SIZE));

		if (is_taken(s, io,
			    (uint32_t)((at % BUCKET_SIZE + (uint64_t)i * ORACLE_SECTOR) /
				       BUCKET_SIZE)) &&
			slot_present(w) &&
			!(slot_has_page(w) &&
				oracle_is_from((char *)xseg_page(s->seg, slot_page(w)) +
						       byte % BUCKET_SIZE,
					io->write, io->volume, io->first + i)))
			sim_fail(s,
				"%s is killed with a page of a write exchanged, and its bucket not "
				"stored: write %u",
				k->base.peer.name, io->write);
	}
}

void started_check_kill(struct sim *s, struct node *n)
{
	for (uint32_t i = 0; n->serving && i < s->plan.nr_clients; i++)
		for (uint32_t k = 0; k < s->plan.depth; k++) {
			const struct io *io = &s->client[i].io[k];

			if (io->op != XSEG_OP_WRITE || !io->r)
				continue;
			if (state_at(s, io, n) == XSEG_REQ_AT)
				check_at(s, cached_of(n->p), io);
			else if (io->give && state_at(s, io, n) == XSEG_REQ_STARTED)
				check_taken(s, cached_of(n->p), io);
		}
}

/* ---- at an answer ---- */

static bool overlaps(const struct sim *s, const struct io *io, const struct xreq *r)
{
	char name[XSEG_TARGET_MAX];
	uint64_t at = object_of_io(s, io, name);

	return strcmp(name, r->target) == 0 && at < r->obj_offset + r->size &&
	       r->obj_offset < at + (uint64_t)io->nr * ORACLE_SECTOR;
}

static void check_node(struct sim *s, const struct node *n, const struct xreq *r)
{
	for (uint32_t i = 0; i < s->plan.nr_clients; i++)
		for (uint32_t k = 0; k < s->plan.depth; k++) {
			const struct io *io = &s->client[i].io[k];

			if (state_at(s, io, n) == XSEG_REQ_STARTED && io->r->index != r->index &&
				overlaps(s, io, r))
				sim_fail(s,
					"%s answers a %s of what a STARTED %s overlaps: sectors "
					"%u+%u of volume %u",
					n->p->name, xseg_op_name(r->op), xseg_op_name(io->op),
					io->first, io->nr, io->volume);
		}
}

void started_check_answer(struct xport *port, const struct xreq *r, int64_t result)
{
	struct sim *s = watched;

	if (r->op == XSEG_OP_ADMIN || r->op == XSEG_OP_FLUSH || r->op == XSEG_OP_INFO ||
		r->state == XSEG_REQ_APPLIED || result < 0)
		return;
	for (uint32_t i = 0; s && i < NR_NODES; i++)
		if (is_cache(i) && s->node[i].p && s->node[i].p->xp == xseg_port_peer(port))
			check_node(s, &s->node[i], r);
}
