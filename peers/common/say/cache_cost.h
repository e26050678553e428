/* cache_cost - the cost of a cache of a given size beside its data, before it is made.
 *
 * Contract: pure arithmetic, the same that cached uses to lay out its arena. `xseg create` prints
 * it. All memory that a cached allocates for itself is counted, in the segment and private.
 * cached's files assert the sizes, and cache_cost_test compares the sums. Memory that every peer
 * has is not counted: libxseg's side of its ports and requests, and its threads. Tables by page are
 * addressed by the segment's pages. Their parts for extents that the cache has not got are never
 * touched, so they take no memory.
 */
#ifndef PEERS_COMMON_CACHE_COST_H
#define PEERS_COMMON_CACHE_COST_H

#include <stdint.h>

#define CACHE_CHUNK_SLOTS   64u		/* buckets in a chunk */
#define CACHE_OBJECT_CHUNKS 16u		/* chunks of an object: 4 MiB */
#define CACHE_OBJECT_BYTES  224u	/* an object's entry in the arena */
#define CACHE_OBJECT_PRIVATE 224u	/* and what is private of it, beside the index of names */
#define CACHE_OBJECT_INDEX  60u	/* of the index of names, at most: its table is a power of two */
#define CACHE_BYTES_MIN	    (4ull << 20) /* the least memory of a cache */
#define CACHE_HEAD_BYTES    128u	/* head of the arena; the volumes follow it */
#define CACHE_VOLUME_BYTES  76u		/* a volume's record in the arena */
#define CACHE_VOLUME_COUNTERS 120u	/* and its counters, for each port */
#define CACHE_VOLUME_PRIVATE 152u
#define CACHE_GROUP_BYTES   184u	/* tickets of a group of volumes */
/* a bucket's page: links, a place in the free pool, which chunks of it are free, when it was seen
 * on loan */
#define CACHE_PAGE_PRIVATE  14u
#define CACHE_EXTENT_PRIVATE 6u		/* for each extent of the segment */
/* a bucket's owner word, and whether it was read directly: in the segment */
#define CACHE_OWNER_BYTES   9u
#define CACHE_CREQ_BYTES    288u /* for each request of the segment: if it is one from above, */
#define CACHE_CHILD_BYTES   120u	/* if it is one of cached's own */
#define CACHE_LISTS	    128u	/* lists of pages for large writes */
#define CACHE_GIFTS	    1024u	/* pages that each port may have lent to write in */
/* cached itself, with its ports and streams; twice, as options are tried on a copy */
#define CACHE_PEER_BYTES    43520u

/* What it is made for; segment_bytes: the pages of the segment that it is in. */
struct cache_size {
	uint64_t memory_bytes, segment_bytes;
	uint32_t objects, volumes, ports, requests;	/* requests: of the segment */
};

/* Bytes, by what they grow with. */
struct cache_cost {
	uint64_t buckets;	/* by its buckets, and 6 bytes for each extent of the segment */
	/* by the objects that it can have: entries and the index of their names */
	uint64_t objects;
	uint64_t requests;			/* by the segment's requests */
	uint64_t fixed;		/* volumes, ports, entries for objects that only pass, the rest */
	uint64_t unused;	/* its arena is whole extents: what is left of the last one */
	uint64_t all;				/* the sum */
	/* of that, what comes out of the segment's pages, beside those of the buckets */
	uint64_t arena;
	uint64_t own;				/* of that, what is private memory of the process */
};

/* Objects for which a cache of that memory is made when `objects` is not given. */
uint32_t cached_default_objects(uint64_t memory_bytes);
/* Entries of objects: some more than may keep data, for those that only pass. */
uint32_t cached_nr_entries(uint32_t objects);
/* Volumes that it keeps books about: one for each 2 MiB of memory, 16 to 256, a power of two. */
uint32_t cached_nr_volumes(uint64_t memory_bytes);
/* Bytes of its arena up to the objects' entries; all, before it is rounded to extents. */
uint64_t cached_arena_head_bytes(uint32_t volumes, uint32_t ports);
uint64_t cached_arena_bytes(uint32_t objects, uint32_t volumes, uint32_t ports);
/* All that it needs beside its pages. (The slots of its buckets are in pages: 8 bytes a bucket
 * where objects are filled, 512 for 64 neighbours of which one is there.) */
void cache_cost(const struct cache_size *size, struct cache_cost *cost);
/* What one more object with a single bucket costs, in bytes. */
uint64_t cached_sparse_object_bytes(void);

#endif
