/* memd_heap - which timer is due next: a binary heap of timers by time, ties in order of arrival.
 *
 * Algorithm: J. W. J. Williams, "Algorithm 232: Heapsort", CACM 7 (1964). Contract: one thread; the
 * memory is the caller's; a timer is in one heap at most.
 */
#ifndef PEERS_MEMD_MEMD_HEAP_H
#define PEERS_MEMD_MEMD_HEAP_H

#include <stdint.h>

struct memd_timer {
	uint64_t due_ns;
	uint64_t seq;			/* the heap's */
};

struct memd_heap {
	struct memd_timer **timer;	/* room for as many as there can be */
	uint32_t nr;
	uint64_t seq;
};

void memd_heap_push(struct memd_heap *h, struct memd_timer *t);
/* The earliest; there is one. */
struct memd_timer *memd_heap_pop(struct memd_heap *h);

/* When the earliest is due; UINT64_MAX: there is none. */
static inline uint64_t memd_heap_due(const struct memd_heap *h)
{
	return h->nr ? h->timer[0]->due_ns : UINT64_MAX;
}

#endif
