/* spared - the promise of a minimum (share.h), checked when it is broken. A volume that has no more
 * pages than its minimum loses none of them to another's need, while the minima hold.
 *
 * The check runs when a clean bucket is emptied from outside its object: so pages are taken for
 * others. The administrator's drops are exempt. The volume for which a COPY takes pages cannot be
 * seen, so runs with copies are left out.
 *
 * Contract: before the slot is changed, in the thread of the run; changes nothing.
 */
#include "peers/cached/life/cached.h"
#include "tests/sim/sim.h"

static struct sim *watched;

void spared_watch(struct sim *s)
{
	watched = s;
	for (uint32_t i = 0; i < s->nr_items; i++)
		if (s->item[i].act == ACT_IO && s->item[i].op == XSEG_OP_COPY)
			watched = NULL;
}

/* share.h: sum of minima + pages cut into chunks + reserve <= pages of the cache */
static bool promises_hold(struct cached *k)
{
	uint32_t pages = k->memory.nr_pages - k->memory.withheld,
		 reserve = XSEG_REQ_PAGES + 15 + MAGAZINE * k->base.peer.nr_ports;
	uint64_t sum = 0;

	for (uint32_t r = 0; r < k->volume.nr_volumes; r++)
		sum += k->volume.states[r].share.min;
	return sum + k->memory.nr_chunk_pages + (reserve < pages / 3 ? reserve : pages / 3) <=
	       pages;
}

void spared_check(struct cport *ps, struct object *o, uint32_t b)
{
	struct cached *k = ps->cache;
	const struct share *sh = &k->volume.states[object_volume(o)].share;
	uint64_t old = slot_get(k, o, b);

	if (!watched || watched->dropping || slot_state(old) != BUCKET_VALID ||
		!slot_has_page(old) || object_port(ps)->inside == o ||
		(object_port(ps)->inside &&
			object_volume(object_port(ps)->inside) == object_volume(o)))
		return;
	if (sh->min && sh->used <= sh->min && promises_hold(k))
		sim_fail(watched,
			"%s: volume %u has %u pages, and %u for sure, and loses one of them to "
			"another's need",
			k->base.peer.name, k->volume.volume_ids[object_volume(o)], sh->used,
			sh->min);
}
