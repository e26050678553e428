/* space - how much space is free, or soon will be, and what a compaction would gain.
 *
 * Contract: see inside.h.
 */
#include "peers/alog/inside.h"

#define LEAST_GAIN 32u				/* a zone with less than this part dead is left */

/* A part of the space that is not live: each zone of the margin is one that its dead records cannot
 * fill, and a full log has few of these. */
uint32_t space_margin(const struct alog *l)
{
	uint32_t live = (uint32_t)(l->z.live_bytes / l->cfg.zone_bytes) + l->own.used,
		 part = live < l->cfg.zones ? (l->cfg.zones - live) / 32 : 0;

	return part < 2 ? 2 : part;
}

uint32_t space_soon(const struct alog *l)
{
	return zones_free(l) + l->g.nr;
}

void space_credit(struct alog *l, uint32_t bytes)
{
	uint32_t low = l->cfg.reserve + space_margin(l), have = space_soon(l), lack;

	if (have >= low)
		return;
	lack = low - have;
	l->credit += bytes + 8ull * bytes * lack / space_margin(l);
	if (l->credit > l->cfg.zone_bytes)
		l->credit = l->cfg.zone_bytes;
}

uint32_t space_dead(const struct alog *l, const struct zone *z)
{
	return l->cfg.zone_bytes - z->live;
}

bool space_gains(const struct alog *l, const struct zone *z)
{
	return l->cfg.evicts || z->total - z->live >= l->cfg.zone_bytes / LEAST_GAIN ||
	       (z->old && space_dead(l, z) >= l->cfg.zone_bytes / LEAST_GAIN);
}

bool space_is_hopeless(const struct alog *l)
{
	if (l->g.nr || own_leaves(l) || l->job == JOB_COPY || l->repair.state != REPAIR_NONE)
		return false;
	for (uint32_t i = 0; i < l->z.nr; i++)
		if (l->z.table[i].state == ZONE_CLOSED && space_gains(l, &l->z.table[i]))
			return false;
	return true;
}
