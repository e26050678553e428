/* resize - how the cache becomes larger and smaller while it serves (resize.c).
 *
 * Contract: port 0's thread, unless it says otherwise.
 */
#ifndef PEERS_CACHED_RESIZE_H
#define PEERS_CACHED_RESIZE_H

#include <stdbool.h>
#include <stdint.h>

struct cached;
struct cport;
struct xseg_error;

/* How far the emptying of extents is: port 0's. */
struct resize {
	uint32_t page, entry, pool_at;		/* what is looked at next */
	uint32_t nr_out;			/* as it was when the pass began */
	/* not before then, after a pass without effect; how long that was */
	uint64_t next_ns, pause_ns;
};

static inline uint64_t size_word(uint32_t at_start, uint32_t since)
{
	return (uint64_t)at_start << 32 | since;
}
void size_open(struct cached *k);		/* before serving: how many pages it is to have */
/* Option `memory` was changed. May refuse. */
int resize_ask(struct cached *k, struct xseg_error *err);
/* port 0: goes on with it; returns when it wants to run again */
uint64_t resize_run(struct cport *ps);
uint64_t resize_left(struct cached *k);	/* bytes that it still has to take or to give back */
bool resizing(struct cached *k);

#endif
