/* dump - the internal state of a cached, for a run that hangs. */
#include <inttypes.h>

#include "peers/cached/life/cached.h"
#include "tests/sim/sim.h"

static void dump_object(struct cached *k, struct object *o, FILE *out)
{
	uint32_t i = o->index, waiters = 0, through = 0;

	for (struct creq *c = o->waiters; c; c = c->next)
		waiters++;
	for (struct creq *c = o->through; c; c = c->next)
		through++;
	fprintf(out, "    %s: %s, %s, %u refs,", xcache_name(&k->object.xc, i),
		xstate_name(&object_states, o->state),
		xcache_state_of(&k->object.xc, i) == XCACHE_ACTIVE ? "active" : "evicted",
		xcache_refs(&k->object.xc, i));
	for (uint32_t b = BUCKET_LOADING; b < BUCKET_NR_STATES; b++)
		fprintf(out, " %u %s", o->nr[b], xstate_name(&bucket_states, b));
	fprintf(out,
		", sets %u %u, out %u loads %u flushes, wait %u + %u through, redo %u%s%s%s%s%s\n",
		o->cnt[0], o->cnt[1], o->loads_out, o->flushes_out, waiters, through, o->nr_redo,
		o->listed ? ", listed" : "", o->asked & OBJECT_FLUSH ? ", flush queued" : "",
		o->flush_waiting ? ", flush waits" : "", o->reclaiming ? ", being emptied" : "",
		o->q.owned ? ", owned" : "");
}

/* Whose the chunks of a page are. */
static void dump_cut(struct cached *k, uint32_t page, FILE *out)
{
	fprintf(out, " %u (chunks, free %02x", page, k->memory.page_use[page].chunks_free);
	for (uint32_t i = 0; i < nr_entries(k); i++)
		for (uint32_t nr = 0; nr < OBJECT_CHUNKS; nr++)
			if ((k->object.entries[i].chunk[nr] - 1) / CHUNKS_PER_PAGE == page &&
				k->object.entries[i].chunk[nr])
				fprintf(out, ", %s has number %u as its chunk %u",
					xcache_name(&k->object.xc, i),
					(k->object.entries[i].chunk[nr] - 1) % CHUNKS_PER_PAGE, nr);
	fprintf(out, ")");
}

/* What keeps extents from leaving. */
static void dump_leaving(struct cached *k, FILE *out)
{
	fprintf(out,
		"    resizing: %u pages asked for, %u stay, %u leave: %u of them out, %u free, %u "
		"clean, %u cut, the rest:",
		k->memory.target_pages, k->memory.nr_pages, k->memory.nr_leaving, k->memory.nr_out,
		k->memory.leaving_free, clean_nr(&k->memory.leaving),
		k->memory.leaving_chunk_pages);
	for (uint32_t page = 0; page < xseg_nr_pages(k->base.peer.seg); page++) {
		uint64_t owner = xseg_page_owner(k->base.peer.seg, page);

		if (page_leaves(k, page) && owner == OWNER_CHUNKS)
			dump_cut(k, page, out);
		if (page_leaves(k, page) && owner != OWNER_OUT && owner != OWNER_CHUNKS &&
			!page_is_listed(k, page))
			fprintf(out, " %u (%" PRIx64 ")", page, owner);
	}
	fprintf(out, "\n");
}

/* Where those are that are neither free nor in a slot. */
static void dump_pages(struct cached *k, FILE *out)
{
	uint32_t gifts = 0, kept = 0;

	for (uint32_t i = 0; i < k->base.peer.nr_ports; i++) {
		gifts += nr_gifts(cport_at(k, i));
		kept += memory_port(cport_at(k, i))->nr_magazine + early_pages(cport_at(k, i));
	}
	fprintf(out,
		"    %u pages: %u cut, %u out, %u in limbo, %u lent as gifts, %u with ports, %u of "
		"%u in the reserve, %u withheld; %u wait with urgency\n",
		nr_owned(k), k->memory.nr_chunk_pages + k->memory.leaving_chunk_pages,
		k->memory.nr_out, k->memory.limbo.nr, gifts, kept, k->memory.reserve.nr,
		k->memory.reserve.size, k->memory.withheld, xwaitq_nr(&k->memory.want_urgent));
}

void cached_dump(struct peer *p, FILE *out)
{
	struct cached *k = cached_of(p);

	fprintf(out,
		"  %s: plug %s; %u pages free, %u clean, %" PRIu64
		" dirty KiB; %u chunks free; wait: %u owed, %u for pages, %u "
		"for room, %u for entries, %u in the throttle; %u FLUSHes; %u being emptied; %u "
		"listed\n",
		p->name, xstate_name(&plug_states, k->life.plug.state), k->memory.nr_free,
		k->memory.nr_clean, cached_total(k, CC_DIRTY_BYTES) >> 10, k->memory.nr_free_chunks,
		xwaitq_nr(&k->memory.want_owed), xwaitq_nr(&k->memory.want_pages),
		k->volume.shares.waiting, xwaitq_nr(&k->object.want_entries), k->flush.throttle.nr,
		k->flush.nr_flushes, k->evict.reclaims, k->flush.nr_listed);
	dump_pages(k, out);
	for (uint32_t i = 0; i < k->volume.shares.nr; i++) {
		const struct share *sh = &k->volume.states[k->volume.shares.rec[i]].share;

		fprintf(out, "    volume %u: %u pages, %u clean, min %u, max %u, %u wait%s\n",
			k->volume.volume_ids[k->volume.shares.rec[i]], sh->used,
			clean_nr(&sh->clean), sh->min, sh->max, xwaitq_nr(&sh->want),
			sh->flushes ? ", is flushed" : "");
	}
	if (resizing(k))
		dump_leaving(k, out);
	for (uint32_t i = 0; i < p->nr_ports; i++)
		fprintf(out, "    port %u: %u wait for requests, %u flushes, %u loads out%s\n", i,
			xwaitq_nr(&store_port(cport_at(k, i))->want_requests),
			store_port(cport_at(k, i))->flushes_out,
			store_port(cport_at(k, i))->loads_out,
			object_port(cport_at(k, i))->ready ? ", objects ready" : "");
	for (uint32_t i = 0; i < nr_entries(k); i++)
		if (xcache_state_of(&k->object.xc, i) != XCACHE_FREE)
			dump_object(k, &k->object.objects[i], out);
}
