/* account - how much of the memory a volume has for sure, and how much it has at most.
 *
 * A volume may have a minimum and a maximum (settings of its record, volume.h), in pages. The pages
 * in its buckets count. A hit changes no count. Nor does a write that puts a new page in the place
 * of another.
 *
 *   used + what is to come     the volume is
 *   up to its minimum          owed: it gets pages before all others, and others' clean ones; it
 *                              waits in want_owed, and meanwhile all dirty data is flushed
 *   up to its maximum          as any volume without a share; it waits in want_pages
 *   more                       full: as many of its own clean pages go first, the least recently
 *                              used; it waits in its own queue, and meanwhile its own group is
 *                              flushed. A read goes past the cache
 *
 * Minima are promises. A volume at its minimum or below loses no page to another's need. This holds
 * for a need of a page or of an entry, and while the cache shrinks. (Two threads that take a page
 * each at the same moment may both see the volume one page above its minimum.) The minima hold
 * while
 *
 *      sum of minima + pages cut into chunks + reserve <= pages of the cache
 *
 * So every request that waits for pages finds enough in the end, even if no promised page moves.
 * The reserve covers the largest request, the ports' magazines, and RESERVE_PAGES for urgent
 * requests. It is at most a third of the pages. Two things can break this inequality: objects are
 * so sparse that chunks take more than an eighth of the cache, or a successor finds less memory.
 * Then no minimum holds until that is over. A new minimum, or a smaller size of the cache, is
 * refused if it would leave less than the reserve and that eighth. Entries are not promised: a
 * volume that has all of them loses one.
 *
 * An owed volume cannot keep others waiting for ever. The debt is the pages that the minima lack,
 * and each page that the volume gets makes it less. A full volume waits for nothing but its own
 * flushes. A request takes its pages when its turn in want_pages comes, even if its volume has
 * become full meanwhile. Then port 0's poll evicts the excess (share_run), as it does when the
 * maximum is lowered.
 *
 * evict/share.h says which volumes lose pages for that.
 *
 * Contract: any thread.
 */
#ifndef PEERS_CACHED_ACCOUNT_H
#define PEERS_CACHED_ACCOUNT_H

#include "peers/cached/volume/volume.h"

/* what a request waited for, and now may take before those who wait */
/* URGENT: it waits behind nobody, and may have the reserve (room.c) */
enum turn { TURN_NONE, TURN_ROOM, TURN_PAGES, TURN_URGENT };

#define FOR_NOBODY UINT32_MAX			/* for a record: not even what is spared stays */

/* What share_run() has to do. */
/* settings: who waits may go on, the common list may have to be turned round */
#define SHARE_CHANGED 1u
#define SHARE_OVER    2u			/* somebody is above his maximum */

/* What somebody takes pages for. */
struct claim {
	uint32_t rec;				/* of the volume */
	uint32_t grow;		/* buckets that had no page: its use will be more by so many */
	bool owed;
	enum turn turn;
};

/* What is lacking: so many pages, to be waited for there. nr 0: nothing. */
struct need {
	uint32_t nr;
	uint32_t rec;				/* TURN_ROOM: whose queue it is */
	struct xwaitq *queue;
	enum turn turn;				/* that it will have then */
};

struct share *share_of(struct cached *k, uint32_t rec);
/* Records that have a share, or had one; the i-th of them. */
uint32_t nr_shares(struct cached *k);
struct share *share_at(struct cached *k, uint32_t i);
bool has_share(struct cached *k, uint32_t rec);
/* It has a minimum, and is at it or below, and minima hold. */
bool share_is_kept(struct cached *k, uint32_t rec);
/* share_run() is port 0's, whatever thread finds something for it to do. */
void share_ask(struct cached *k, uint32_t work);

/* How much may be promised, in all, by a cache of so many pages; the least that may promise so
 * much, in whole extents. */
uint32_t share_limit(struct cached *k, uint32_t pages);
uint32_t share_pages_for(struct cached *k, uint32_t min_sum);

/* How many of so many pages for data are promised to nobody. */
uint32_t share_unpromised(struct cached *k, uint32_t pages);

/* The volume has so many pages more, or less. */
void share_count(struct cached *k, uint32_t rec, int by);
/* Whether pages of the volume `own` are spared when somebody takes pages for that volume. */
bool share_spares(struct cached *k, uint32_t own, uint32_t rec);

/* The same, where nobody has looked at the buckets. */
struct claim share_claim_all(struct cached *k, uint32_t rec, uint32_t n, enum turn turn);
/* How many of its own clean pages have to go before it may have that. */
uint32_t share_over(struct cached *k, const struct claim *cl);
struct need share_need_room(struct cached *k, const struct claim *cl);
/* Nothing more of its own may be kept: it is at its maximum, or nearly. `full`: what is said of the
 * cache as a whole. */
bool share_is_full(struct cached *k, uint32_t rec, bool full);
/* Pages, free or clean, that may be had for any volume. */
uint32_t share_available(struct cached *k);
/* what a request that waits in its queue may need at most to go on */
uint32_t share_room(struct cached *k, uint32_t rec);
/* A page has left its bucket and is not free yet: a volume that was full has room all the same. */
void share_has_room(struct cport *ps);

#endif
