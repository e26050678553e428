/* promise - when a FLUSH or a FUA write has been answered: whether it is true (P1).
 *
 * What the store would be left with by a loss of power is looked at at that moment, sector by sector, so that no power needs to
 * be lost just then for a broken promise to be seen.
 *
 * Contract: a step of the scheduler. Only in runs whose store knows what is durable (plan.track).
 */
#include <inttypes.h>
#include <stdio.h>

#include "peers/memd/memd.h"
#include "tests/sim/sim.h"

void object_name(const struct sim *s, uint32_t volume, uint64_t object, char name[XSEG_TARGET_MAX])
{
	if (s->plan.node[NODE_VOLUMED])
		snprintf(name, XSEG_TARGET_MAX, "vol%u:%016" PRIx64, volume, object);
	else
		snprintf(name, XSEG_TARGET_MAX, "v%u.%" PRIx64, volume, object);
}

/* A walk over the sectors of a volume as they are durable in the store. */
struct walk {
	struct sim *s;
	uint32_t volume, first;
	const char *page;			/* of the sector that was asked for last */
};

static const void *durable_sector(void *arg, uint32_t i)
{
	static const char zeroes[XSEG_PAGE_SIZE];
	struct walk *w = arg;
	uint64_t at = (uint64_t)(w->first + i) * ORACLE_SECTOR, in = at % w->s->plan.object_size;
	char name[XSEG_TARGET_MAX];

	if (i == 0 || at % XSEG_PAGE_SIZE == 0) {
		object_name(w->s, w->volume, at / w->s->plan.object_size, name);
		w->page = memd_durable_page(w->s->node[NODE_MEMD].p, name, (uint32_t)(in / XSEG_PAGE_SIZE));
		if (!w->page)
			w->page = zeroes;
	}
	return w->page + at % XSEG_PAGE_SIZE;
}

void promise_check(struct sim *s, uint32_t volume, uint32_t first, uint32_t nr)
{
	struct walk w = { .s = s, .volume = volume, .first = first };

	if (!s->plan.track || !s->node[NODE_MEMD].p)
		return;
	if (!oracle_durable(&s->oracle, volume, first, nr, durable_sector, &w))
		sim_fail(s, "%s", s->oracle.error);
}
