/* dirty - see dirty.h. */
#include "peers/common/say/dirty.h"

#include <stdlib.h>
#include <string.h>

/* A cache's, or a kvd's, whose tail is newer than the peer below. */
static bool has_dirty(const struct xseg_stats_view *block)
{
	return !strcmp(block->kind, "cache") || !strcmp(block->kind, "kv");
}

static uint64_t sum_of(struct xseg *seg, uint32_t peer, const char *key)
{
	struct xseg_stats_view *block = malloc(sizeof(*block));
	uint32_t i, bound = xseg_nr_stats(seg);
	uint64_t sum = 0;

	if (!block)
		return UINT64_MAX;
	for (i = 0; i < bound; i++)
		if (xseg_stats_view(seg, i, block) && has_dirty(block) &&
		    (peer == XSEG_NONE || block->peer == peer))
			sum += xseg_stats_value(block, key);
	free(block);
	return sum;
}

uint64_t dirty_bytes_of(struct xseg *seg, uint32_t peer)
{
	return sum_of(seg, peer, "dirty_bytes");
}

uint64_t unpromised_bytes_of(struct xseg *seg, uint32_t peer)
{
	return sum_of(seg, peer, "unpromised_bytes");
}

uint64_t flushed_bytes_of(struct xseg *seg, uint32_t peer)
{
	return sum_of(seg, peer, "flushed_bytes");
}
