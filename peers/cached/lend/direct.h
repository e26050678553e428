/* direct - whether clients may read from the tables of the cache without a request (direct.c).
 *
 * Contract: any thread.
 */
#ifndef PEERS_CACHED_DIRECT_H
#define PEERS_CACHED_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

struct cached;
struct cport;
struct object;
struct xreq;

struct direct {
	_Atomic bool ended;		/* written under volume_lock: never again in this process */
	/* something changed on which it depends: any thread; port 0 clears it before it looks */
	_Atomic bool look;
	uint32_t max;		/* port 0's: pages that a port may pin, as it was published last */
};

void direct_begin(struct cached *k);	/* before anything that a predecessor left is touched */
/* Port 0: opens or shuts it, by what holds now; what is shut is shut when this returns. */
void direct_run(struct cached *k);
void direct_look(struct cached *k);		/* has port 0 do that in its next round */
void direct_renew_locked(struct cached *k);	/* what readers know is void: they ask once more */
void direct_end(struct cached *k);		/* the cache stops */
/* Inside: r is lent one of buckets first to first + nr - 1 that could not be read directly before,
 * and can from now on: those beside them, too, if it seems worth it. */
void direct_mark(
	struct cport *ps, struct object *o, const struct xreq *r, uint32_t first, uint32_t nr);

#endif
