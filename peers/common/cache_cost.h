/* cache_cost - what a cache of a given size costs beside its data, before it is made.
 *
 * Contract: pure arithmetic, the same that cached uses to lay out its arena: `xseg create` prints it.
 */
#ifndef PEERS_COMMON_CACHE_COST_H
#define PEERS_COMMON_CACHE_COST_H

#include <stdint.h>

#define CACHE_CHUNK_SLOTS   64u		/* buckets in a chunk */
#define CACHE_OBJECT_CHUNKS 16u		/* chunks of an object: 4 MiB */
#define CACHE_OBJECT_BYTES  224u	/* an object's entry in the arena */
#define CACHE_OBJECT_PRIVATE 224u	/* and what is private of it, beside the index of names */
#define CACHE_BYTES_MIN	    (4ull << 20) /* the least memory of a cache */
#define CACHE_GROUP_BYTES   184u	/* tickets of a group of volumes */
#define CACHE_HEAD_BYTES    128u	/* head of the arena; the volumes follow it */
#define CACHE_VOLUME_BYTES  76u		/* a volume's record in the arena */
#define CACHE_VOLUME_COUNTERS 112u	/* and its counters, for each port */
#define CACHE_VOLUME_PRIVATE 24u

/* Objects for which a cache of that memory is made when `objects` is not given. */
uint32_t cached_default_objects(uint64_t memory_bytes);
/* Volumes that it keeps books about: one for each 2 MiB of memory, 16 to 256, a power of two. */
uint32_t cached_nr_volumes(uint64_t memory_bytes);
/* Bytes of its arena up to the objects' entries; all. */
uint64_t cached_arena_head_bytes(uint32_t volumes, uint32_t ports);
uint64_t cached_arena_bytes(uint32_t objects, uint32_t volumes, uint32_t ports);
/* All that it needs beside its pages, in the segment and private, in bytes. (The slots of its buckets are in pages: 8 bytes a
 * bucket where objects are filled, 512 for 64 neighbours of which one is there.) */
uint64_t cached_metadata_bytes(uint64_t memory_bytes, uint32_t objects, uint32_t volumes, uint32_t ports);
/* What one more object with a single bucket costs, in bytes. */
uint64_t cached_sparse_object_bytes(void);

#endif
