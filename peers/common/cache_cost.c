/* cache_cost - see cache_cost.h. */
#include "peers/common/cache_cost.h"
#include "xseg/xseg.h"
#include "xtypes/xcache.h"

#define PAGE_LINKS_BYTES     13u	/* links of the clean list, a place in the free pool, which chunks are free */
#define OWNER_BYTES	     8u		/* the page's owner word, in the segment */

uint32_t cached_default_objects(uint64_t memory_bytes)
{
	uint64_t buckets = memory_bytes / XSEG_PAGE_SIZE;
	uint64_t n = buckets / 16;

	return n < 64 ? 64 : n > 1u << 24 ? 1u << 24 : (uint32_t)n;
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
	uint64_t bytes = CACHE_HEAD_BYTES + (uint64_t)volumes * (CACHE_VOLUME_BYTES + (uint64_t)ports * CACHE_VOLUME_COUNTERS);

	return (bytes + XSEG_PAGE_SIZE - 1) / XSEG_PAGE_SIZE * XSEG_PAGE_SIZE;
}

uint64_t cached_arena_bytes(uint32_t objects, uint32_t volumes, uint32_t ports)
{
	return cached_arena_head_bytes(volumes, ports) + (uint64_t)objects * CACHE_OBJECT_BYTES;
}

uint64_t cached_metadata_bytes(uint64_t memory_bytes, uint32_t objects, uint32_t volumes, uint32_t ports)
{
	uint64_t buckets = memory_bytes / XSEG_PAGE_SIZE;

	return cached_arena_bytes(objects, volumes, ports) + buckets * (PAGE_LINKS_BYTES + OWNER_BYTES) +
	       (uint64_t)objects * CACHE_OBJECT_PRIVATE + xcache_mem_bytes(objects) +
	       (uint64_t)volumes * (CACHE_GROUP_BYTES + CACHE_VOLUME_PRIVATE);
}

uint64_t cached_sparse_object_bytes(void)
{
	return CACHE_OBJECT_BYTES + CACHE_OBJECT_PRIVATE + CACHE_CHUNK_SLOTS * 8 + XSEG_PAGE_SIZE;
}
