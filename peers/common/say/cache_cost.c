/* cache_cost - see cache_cost.h. */
#include "peers/common/say/cache_cost.h"
#include "xseg/xseg.h"
#include "xtypes/xcache.h"

#define PASSING_MAX 64u

uint32_t cached_default_objects(uint64_t memory_bytes)
{
	uint64_t buckets = memory_bytes / XSEG_PAGE_SIZE;
	uint64_t n = buckets / 16;

	return n < 64 ? 64 : n > 1u << 24 ? 1u << 24 : (uint32_t)n;
}

uint32_t cached_nr_entries(uint32_t objects)
{
	return objects + (objects < PASSING_MAX ? objects : PASSING_MAX);
}

uint32_t cached_nr_volumes(uint64_t memory_bytes)
{
	uint32_t n = 16;

	while (n < 256 && n * (2ull << 20) < memory_bytes)
		n *= 2;
	return n;
}

uint64_t cached_arena_head_bytes(uint32_t volumes, uint32_t ports)
{
	uint64_t bytes = CACHE_HEAD_BYTES +
			 (uint64_t)volumes *
				 (CACHE_VOLUME_BYTES + (uint64_t)ports * CACHE_VOLUME_COUNTERS);

	return (bytes + XSEG_PAGE_SIZE - 1) / XSEG_PAGE_SIZE * XSEG_PAGE_SIZE;
}

uint64_t cached_arena_bytes(uint32_t objects, uint32_t volumes, uint32_t ports)
{
	return cached_arena_head_bytes(volumes, ports) +
	       (uint64_t)cached_nr_entries(objects) * CACHE_OBJECT_BYTES;
}

static uint64_t entries_bytes(uint32_t n)
{
	return (uint64_t)n * (CACHE_OBJECT_BYTES + CACHE_OBJECT_PRIVATE) + xcache_mem_bytes(n);
}

void cache_cost(const struct cache_size *s, struct cache_cost *cost)
{
	uint64_t buckets = s->memory_bytes / XSEG_PAGE_SIZE,
		 extents = s->segment_bytes / XSEG_EXTENT_SIZE;
	uint64_t arena = cached_arena_bytes(s->objects, s->volumes, s->ports);

	cost->buckets = buckets * (CACHE_OWNER_BYTES + CACHE_PAGE_PRIVATE) +
			extents * CACHE_EXTENT_PRIVATE;
	cost->objects = entries_bytes(s->objects);
	cost->requests = (uint64_t)s->requests * (CACHE_CREQ_BYTES + CACHE_CHILD_BYTES);
	cost->fixed = cached_arena_head_bytes(s->volumes, s->ports) +
		      (uint64_t)s->volumes * (CACHE_GROUP_BYTES + CACHE_VOLUME_PRIVATE) +
		      entries_bytes(cached_nr_entries(s->objects)) - cost->objects +
		      CACHE_LISTS * (uint64_t)((XSEG_REQ_PAGES + 1) * sizeof(uint32_t)) +
		      (uint64_t)s->ports * CACHE_GIFTS * 8 + 2 * CACHE_PEER_BYTES;
	cost->arena = (arena + XSEG_EXTENT_SIZE - 1) / XSEG_EXTENT_SIZE * XSEG_EXTENT_SIZE;
	cost->unused = cost->arena - arena;
	cost->all = cost->buckets + cost->objects + cost->requests + cost->fixed + cost->unused;
	cost->own = cost->all - cost->arena - buckets * CACHE_OWNER_BYTES;
}

uint64_t cached_sparse_object_bytes(void)
{
	return CACHE_OBJECT_BYTES + CACHE_OBJECT_PRIVATE + CACHE_OBJECT_INDEX +
	       CACHE_CHUNK_SLOTS * 8 + XSEG_PAGE_SIZE;
}
