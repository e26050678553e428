/* plug - shared by the files of plugging: the words, and the steps that others may have to end or
 * to undo. See plug.c.
 *
 * Contract: plug_get(), turn_get(), lower_of(), state_of() and is_there() are a load, at any time.
 * All else is under the lock of routes.
 */
#ifndef XSEG_PLUG_H
#define XSEG_PLUG_H

#include "xseg/internal.h"

/* 0 also for one that cannot be (R5). */
static inline uint64_t plug_get(struct xseg *seg, uint32_t cache)
{
	uint64_t w = atomic_load_explicit(&seg->peers[cache].plug, memory_order_acquire);

	return plug_lower(w) < seg->geo.nr_ports ? w : 0;
}

static inline void plug_set(struct xseg *seg, uint32_t cache, uint64_t word)
{
	xs_keep(seg, cache, XS_KEPT_PLUG, word);
}

static inline uint64_t turn_get(struct xseg *seg, uint32_t peer)
{
	return atomic_load_explicit(&seg->peers[peer].turn, memory_order_acquire);
}

static inline uint32_t lower_of(struct xseg *seg, uint32_t peer)
{
	return route_lower(atomic_load_explicit(&seg->peers[peer].route, memory_order_acquire));
}

static inline enum xseg_peer_state state_of(struct xseg *seg, uint32_t peer)
{
	return peer_state(xs_peer_word(seg, peer));
}

static inline bool is_there(struct xseg *seg, uint32_t peer)
{
	return peer < seg->geo.nr_ports && state_of(seg, peer) != XSEG_PEER_FREE;
}

/* What follows from the decision that all upper peers hold; without one nothing. True: there was
 * one, and all is done. */
bool xs_plug_settle(struct xseg *seg, uint32_t cache);
/* Nothing is wanted of the cache any more; what it has begun is undone. */
void xs_plug_take_back(struct xseg *seg, uint32_t cache);

#endif
