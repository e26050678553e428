/* share - how much of the memory a volume has for sure, and how much it has at most.
 *
 * A volume may have a minimum and a maximum (settings of its record, volume.h), in pages. What
 * counts are the pages in its buckets; a hit changes no count, nor does a write that puts a new
 * page in the place of another.
 *
 *   used + what is to come     the volume is
 *   up to its minimum          owed: it gets pages before all others, and others' clean ones; it
 *                              waits in want_owed, and meanwhile all that is dirty is flushed
 *   up to its maximum          as any volume without a share; it waits in want_pages
 *   more                       full: as many of its own clean pages go first, the least recently
 *                              used; it waits in its own queue, and meanwhile its own group is
 *                              flushed. A read goes past the cache
 *
 * Minima are promises: a volume at its minimum or below loses no page to another's need, be it for
 * a page, for an entry, or as the cache shrinks. (Two threads that take one each at the same moment
 * may both see it one above.) They hold while
 *
 *      sum of minima + pages cut into chunks + reserve <= pages of the cache
 *
 * so that whoever waits for pages finds enough in the end, with all that is promised at rest: the
 * reserve is what the largest request takes, and what ports have in their magazines. More than an
 * eighth of the cache being chunks can be, where objects are very sparse, or that a successor finds
 * less memory; then nobody's minimum holds until it is over. What is asked for is refused if it
 * would leave less than the reserve and that eighth. Entries are promised to nobody: who has all of
 * them loses one.
 *
 * Who is owed cannot keep others waiting for ever: what is owed is what the minima lack, and each
 * page that he gets makes it less. He who is full waits for nothing but his own flushes. Whoever
 * had his turn in want_pages takes his pages even if his volume has become full meanwhile; then, as
 * when the maximum is lowered, port 0's poll evicts what is too much (share_run).
 *
 * A clean page of a volume that has a share is in the list of its volume, others in the common one.
 * Victims come from the lists by turns, a sixteenth of each list at a time: so the hands of all
 * clocks go round in the same time. When a volume gets its first share, the common list is turned
 * round once, a few pages a poll, and its pages go over; they keep their order.
 *
 * Contract: any thread; _locked under mem_lock. share_run() in port 0's poll.
 *
 * Invariants (shares_check):
 *   A1  used of a record is the number of its objects' buckets that have a page
 *   A2  a clean page that stays is in its own volume's list, or in the common one, where those of
 *       volumes with shares are only until it has been turned round; k->page_use says in which
 *   A3  min_sum is the sum of minima; record 0 has no share
 *   A4  a share flushes its group only while somebody waits in its queue, or it is above its
 *       maximum, or share_run() is to come
 */
#ifndef PEERS_CACHED_SHARE_H
#define PEERS_CACHED_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "xtypes/xlist.h"
#include "xtypes/xwaitq.h"

struct cached;
struct cport;
struct flush_group;
struct object;

/* Of one record. */
struct share {
	_Atomic uint32_t used;			/* pages in buckets: any thread */
	_Atomic uint32_t min, max;		/* pages, 0: none; written under volume_lock */
	/* written under dirty_lock: its group, while that is flushed for its sake */
	struct flush_group *_Atomic flushes;
	struct xlist clean;			/* under mem_lock: as cached.clean */
	struct xwaitq want;			/* requests that wait for room below the maximum */
};

/* Of all. */
struct shares {
	/* records that have a share, or had one; written under mem_lock, read without */
	_Atomic uint32_t nr;
	uint16_t rec[256];			/* which */
	_Atomic uint32_t min_sum;		/* written under volume_lock */
	_Atomic uint32_t waiting;		/* in queues of single shares */
	/* entries of those who are spared, since an object was last chosen to be emptied */
	_Atomic uint32_t passed;
	_Atomic uint32_t work;		/* what share_run() has to do: any thread adds to it */
	/* a page that is spared has to leave, and there is none in its place: resize.c */
	_Atomic bool squeezed;
	/* under mem_lock */
	uint32_t clean;				/* pages in lists of single shares */
	uint32_t unsorted;	/* pages of the common list that have still to be looked at */
	/* whose list loses pages, 0: the common one, else rec[at - 1]; how many yet */
	uint32_t at, left;
};

struct evict_room {
	struct shares shares;
	_Atomic uint32_t reclaims;		/* objects being emptied */
	_Atomic uint32_t nr_admitted;		/* objects that may keep buckets */
};

struct evict_room *evict_of(const struct cached *k);

/* what a request waited for, and now may take before those who wait */
/* URGENT: it waits behind nobody, and may have the reserve (room.c) */
enum turn { TURN_NONE, TURN_ROOM, TURN_PAGES, TURN_URGENT };

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

#define FOR_NOBODY UINT32_MAX			/* for a record: not even what is spared stays */

void shares_open(struct cached *k);		/* before anything is loaded: by the settings */
void shares_close(struct cached *k);
/* Under volume_lock: as the settings are now. */
void share_set(struct cached *k, uint32_t rec, uint32_t min, uint32_t max);
/* How much may be promised, in all, by a cache of so many pages; the least that may promise so
 * much, in whole extents. */
uint32_t share_limit(struct cached *k, uint32_t pages);
uint32_t share_pages_for(struct cached *k, uint32_t min_sum);

/* How many of so many pages for data are promised to nobody. */
uint32_t share_unpromised(struct cached *k, uint32_t pages);

/* The volume has so many pages more, or less. */
void share_count(struct cached *k, uint32_t rec, int by);
/* Whether the object's pages are spared when somebody takes pages for that volume. */
bool share_spares(struct cached *k, struct object *o, uint32_t rec);
/* n pages for [first, first + nr) of the object, of which some have one already. Inside the
 * object. */
struct claim share_claim(struct cport *ps, struct object *o, uint32_t first, uint32_t nr,
	uint32_t n, enum turn turn);
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
/* Who waits for room goes on if there is some. */
void share_signal(struct cport *ps);
/* A request was taken out of that queue, which may be a share's. */
void share_left(struct cached *k, const struct xwaitq *queue);
/* A page has left its bucket and is not free yet: a volume that was full has room all the same. */
void share_has_room(struct cport *ps);
/* The group of that share is flushed for its sake from now on, or no more: whichever is right. */
void share_look(struct cached *k, uint32_t rec);
uint64_t share_run(struct cport *ps);			/* returns when it wants to run again */
bool shares_kept(struct cached *k);			/* nobody is above his maximum */
void shares_check(struct cached *k);

/* The list of clean pages that the next victim is to come from; NULL: none may lose one. */
struct xlist *share_victims_locked(struct cached *k, const struct claim *cl);
/* Which of the lists a clean page is to be in: a record, OTHERS for the common one. */
uint32_t share_list_locked(struct cached *k, uint32_t page);

#endif
