/* zones - what bad.c asks of the log's own tables, whose names the simulator has for other things.
 *
 * Contract: pure; of the simulator's thread.
 */
#include "tests/sim/kv/zones.h"

#include "peers/alog/inside.h"

bool zone_is_known(struct alog *l, uint64_t zone, uint32_t *hints_at)
{
	const struct zone *z = zone_find(l, zone);

	if (!z || z->state != ZONE_CLOSED || !z->believed || z->doomed ||
		z->epoch < atomic_load(&l->arena->born) ||
		(z->old ? l->s.recovered : z->to) > l->s.written)
		return false;
	*hints_at = alog_hints_at(l->cfg.zone_bytes, z->nr_hints);
	return true;
}
