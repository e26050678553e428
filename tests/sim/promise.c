/* promise - checks an answered FLUSH or FUA write: is the promise true (P1)? The same for a write
 * that waits for the store.
 *
 * At that moment it looks, sector by sector, at the data that a loss of power would leave in the
 * store. So a broken promise shows without a loss of power just then. This is only in runs whose
 * store knows its durable data (plan.track).
 *
 * If no cache on its way answers a write before the store does, the write is looked for in the
 * store as it is. This is only in runs where that holds for all writes: no cache begins with
 * write-back, or is given another policy.
 *
 * Contract: a step of the scheduler.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/memd/memd.h"
#include "tests/sim/sim.h"

bool object_name(const struct sim *s, uint32_t volume, uint64_t object, char name[XSEG_TARGET_MAX])
{
	const char *prefix = s->volume[volume].prefix;

	if (s->plan.node[NODE_VOLUMED])
		snprintf(name, XSEG_TARGET_MAX, "%s%016" PRIx64, prefix, object);
	else
		snprintf(name, XSEG_TARGET_MAX, "v%u.%" PRIx64, volume, object);
	return !s->plan.node[NODE_VOLUMED] || prefix[0];
}

/* What is being cut off is not looked at. */
static uint32_t within(const struct sim *s, uint32_t volume, uint32_t first, uint32_t nr)
{
	uint32_t least = s->volume[volume].least, left = first < least ? least - first : 0;
	char name[XSEG_TARGET_MAX];

	return !object_name(s, volume, 0, name) ? 0 : nr < left ? nr : left;
}

/* A walk over the sectors of a volume as the store has them, or would have them after a loss of
 * power. */
struct walk {
	struct sim *s;
	const void *(*get)(struct peer *p, const char *object, uint32_t nr);
	uint32_t volume, first;
	const char *page;			/* of the sector that was asked for last */
};

static const void *store_sector(void *arg, uint32_t i)
{
	static const char zeroes[XSEG_PAGE_SIZE];
	struct walk *w = arg;
	uint64_t at = (uint64_t)(w->first + i) * ORACLE_SECTOR, in = at % w->s->plan.object_size;
	char name[XSEG_TARGET_MAX];

	if (i == 0 || at % XSEG_PAGE_SIZE == 0) {
		object_name(w->s, w->volume, at / w->s->plan.object_size, name);
		w->page = w->get(w->s->node[NODE_MEMD].p, name, (uint32_t)(in / XSEG_PAGE_SIZE));
		if (!w->page)
			w->page = zeroes;
	}
	return w->page + at % XSEG_PAGE_SIZE;
}

void promise_check(struct sim *s, uint32_t volume, uint32_t first, uint32_t nr)
{
	struct walk w = { .s = s, .get = memd_durable_page, .volume = volume, .first = first };

	if (!s->plan.track || !s->node[NODE_MEMD].p)
		return;
	nr = within(s, volume, first, nr);
	if (!oracle_durable(&s->oracle, volume, first, nr, store_sector, &w))
		sim_fail(s, "%s", s->oracle.error);
}

static bool begins_write_back(const struct sim *s, enum node_id id)
{
	bool back = true;

	for (uint32_t i = 0; i < s->nr_items; i++)
		if (s->item[i].act == ACT_OPTION && s->item[i].node == id && !s->item[i].left_out &&
		    strncmp(s->item[i].text, "policy=", 7) == 0)
			back = strcmp(s->item[i].text, "policy=write-back") == 0;
	return back;
}

bool promise_waits(const struct sim *s)
{
	for (uint32_t i = 0; i < s->nr_items; i++)
		if (s->item[i].act == ACT_CHANGE && !s->item[i].left_out &&
			strstr(s->item[i].text, "policy="))
			return false;
	for (uint32_t id = 0; id < NR_NODES; id++)
		if (is_cache(id) && s->plan.node[id] && begins_write_back(s, id))
			return false;
	return true;
}

void promise_check_stored(struct sim *s, uint32_t volume, uint32_t first, uint32_t nr)
{
	struct walk w = { .s = s, .get = memd_page, .volume = volume, .first = first };

	if (!s->waits || !s->node[NODE_MEMD].p)
		return;
	nr = within(s, volume, first, nr);
	if (!oracle_stored(&s->oracle, volume, first, nr, store_sector, &w))
		sim_fail(s, "%s", s->oracle.error);
}
