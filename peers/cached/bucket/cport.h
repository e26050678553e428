/* cport - the cache and a port's side of it, as far as every room knows them, with the counters.
 *
 * Each room has a part of the cache, and a part of each port's side. A room's header declares the
 * functions that return them: flush_of() and flush_port(). These are plain functions
 * (life/wiring.c), which the linker turns into additions. So a room sees its own parts and those of
 * the rooms below, and no others.
 *
 * Contract: a port's side is for the port's thread, unless a part says otherwise.
 */
#ifndef PEERS_CACHED_CPORT_H
#define PEERS_CACHED_CPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peers/cached/bucket/counters.h"
#include "peers/cached/bucket/stream.h"
#include "peers/common/runtime/peer.h"

struct cached;

struct cport {
	struct peer_port *pp;
	struct cached *cache;
	struct xseg_stats *stats;	/* enum cache_counter; sums over ports are what counts */
};

/* The values of the options, as given at the start or set since; life/cached.c has their table. */
struct cached_options {
	uint64_t memory, dirty_age_ns, flush_rate, seq_cutoff, read_ahead;
	uint32_t objects_wanted, policy_nr, requests, dirty_high, dirty_low, store_full;
};

/* The beginning of struct cached (life/cached.h). */
struct cached_base {
	struct peer peer;			/* first: cached_of() casts */
	struct cached_options options;
	struct streams streams;
};

/* A caller that changes nothing itself may pass the cache to a room that changes its own part. So
 * the result is not const. */
static inline struct cached_base *base_of(const struct cached *k)
{
	return (struct cached_base *)(uintptr_t)k;
}
static inline struct cached *cached_of(struct peer *p) { return (struct cached *)p; }
static inline struct peer *peer_of(const struct cached *k) { return &base_of(k)->peer; }
static inline struct cached_options *options_of(const struct cached *k)
{
	return &base_of(k)->options;
}
static inline struct streams *streams_of(const struct cached *k) { return &base_of(k)->streams; }
/* Where the first port's side is in struct cached, and how far from it the next one is. */
extern const size_t cport_first, cport_stride;
static inline struct cport *cport_at(const struct cached *k, uint32_t port)
{
	return (struct cport *)((char *)base_of(k) + cport_first + port * cport_stride);
}
static inline struct cport *cport_of(struct peer_port *pp) { return pp->state; }
/* No other thread is in the cache: what only its threads do needs no locked instruction. */
static inline bool cache_is_alone(const struct cport *ps)
{
	return ps->pp->only || peer_of(ps->cache)->nr_ports == 1;
}
static inline void count(struct cport *ps, enum cache_counter n, uint64_t by)
{
	xseg_stats_add(ps->stats, n, by);
}
static inline void count_wait(struct cport *ps, enum wait_why w)
{
	count(ps, (enum cache_counter)(CC_WAITS_BUCKET + w), 1);
}
uint64_t cached_total(struct cached *k, enum cache_counter n);		/* sum over the ports */

#endif
