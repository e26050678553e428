/* bucket - one 4 KiB piece of a cached object: its slot word, and its states.
 *
 * A slot is one 64-bit word in the arena: page (bits 0-31), state (32-34), loan (35-39), flags
 * (40-47), epoch (48-63). It is the durable truth about its bucket (rule R1). One store changes it.
 * The thread that makes the store is inside the object's work queue, and so is alone.
 *
 * States (bucket_set_at() and bucket_leave() are the only writers while the cache serves; arena.c
 * treats the states that a predecessor left). bucket_leave() makes the edges on which data leaves
 * the cache, from VALID, DIRTY or WRITING to INVALID or BYPASS. Only evict_step() calls it.
 *
 *   from      to        when                                               by
 *   FREE      LOADING   a read misses, or reads ahead; a write's edge      load_send, edge_load
 *   FREE      DIRTY     a write covers it                                  write_slot
 *   LOADING   VALID     the store answered, or its write failed            load_done,
 *                                                                          write_release
 *   LOADING   DIRTY     a write came, or the write whose edge it is        write_slot
 *   LOADING   INVALID   the store failed, or its write has to wait         load_done, edge_done,
 *                                                                          edge_release
 *   VALID     DIRTY     a write puts a new page into it                    write_slot
 *   VALID     DIRTY     a FLUSH failed: it may not be stable               object_redirty
 *   VALID, DIRTY   the same   its data moves to a page that stays          move_bucket
 *   VALID     INVALID   it is evicted, dropped, or goes with its object    evict_step
 *   DIRTY     DIRTY     a write puts a newer page into it                  write_slot
 *   DIRTY     DIRTY     the flush of an older page of it has ended         flushed_bucket
 *   DIRTY     WRITING   it is on its way to the store                      start_run
 *   DIRTY     INVALID   its object is deleted                              evict_step
 *   DIRTY     INVALID   it is REFUSED, and given up                        evict_step
 *   WRITING   VALID     the store has it                                   flushed_clean
 *   WRITING   INVALID   the same, and it is not kept                       evict_step
 *   WRITING   DIRTY     the store failed, or a write puts a newer page in  flush_refused,
 *                                                                          write_slot
 *   FREE, INVALID, LOADING   BYPASS   a write goes past the cache          bypass_bucket
 *   VALID     BYPASS    the same                                           evict_step
 *   BYPASS    INVALID   and is answered                                    around_done
 *   INVALID   LOADING, DIRTY   like FREE
 *
 * FREE was never used since its chunk was taken; INVALID had data and lost it. Neither has a page.
 * Nor has BYPASS. A BYPASS bucket must not be loaded or written until the store has answered a
 * write that the cache does not see.
 *
 * Flags, and the states that they stand beside:
 *
 *   flag         beside           meaning
 *   REF          any with data    it was hit since it was last offered for eviction
 *   INFLIGHT     DIRTY            an older page of it is still being written, so it must not be
 *                                 flushed again yet (two writes of one bucket never overlap)
 *   GEN          DIRTY, WRITING   which of its object's two dirty sets it belongs to (ticket.c)
 *   LOADED       LOADING          its data is there and may be read; its page is kept for the
 *                                 write whose edge it is (write.c)
 *   ZERO         VALID, DIRTY,    its data is zeroes, and it has no page
 *                WRITING
 *   WRITTEN      VALID            a flush has cleaned it, in the epoch of bits 48-63 (sync.c)
 *   AHEAD        VALID            it was read ahead, and no request has read it yet
 *   ONCE         AHEAD            it goes when a request has read it (read.c)
 *   ONCE         VALID, no AHEAD  unkept: only requests with XSEG_REQ_ONCE have used it; it goes
 *                                 when such a request has read it (read.c)
 *   UNKEPT       DIRTY, WRITING   only writes with XSEG_REQ_ONCE have brought it; it becomes VALID
 *                                 and ONCE, the first of its list to be evicted (flush.c)
 *   UNPROMISED   DIRTY, WRITING   no acknowledged write is in its data that is newer than the store
 *   REFUSED      UNPROMISED and   the store has failed to take it, and it may be given up
 *                DIRTY            (unpromised.c)
 *   WRITTEN and  UNPROMISED       those of the data below it, at the store
 *   the epoch
 *   LENT         VALID, DIRTY,    its page was lent, in the era of bits 37-39, and may be on loan;
 *                WRITING          the flag stays as long as the page does (loan.c)
 *   DIRECT       LENT             clients may pin the page at any time without asking; perhaps no
 *                                 client was lent it yet (direct.c)
 *
 * Contract: the caller is inside the object's work queue. Nothing here locks, blocks or does I/O.
 *
 * Invariants (object_check() tests them):
 *   B1  LOADING, VALID, DIRTY and WRITING have a page, or (but for LOADING) ZERO; the others have
 *       neither.
 *   B2  object->nr[s] == number of the object's slots in state s.
 *   B3  Acknowledged bytes leave DIRTY by a flush, a newer write or a delete, never by eviction: a
 *       bucket with UNPROMISED has none.
 *   B4  A page stands in at most one slot; INFLIGHT stands only beside DIRTY.
 */
#ifndef PEERS_CACHED_BUCKET_H
#define PEERS_CACHED_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "xseg/xseg.h"
#include "xtypes/xstate.h"

enum bucket_state {
	BUCKET_FREE,
	BUCKET_INVALID,
	BUCKET_BYPASS,
	BUCKET_LOADING,
	BUCKET_VALID,
	BUCKET_DIRTY,
	BUCKET_WRITING,
	BUCKET_NR_STATES
};

#define SLOT_DIRECT   XSEG_SLOT_DIRECT
#define SLOT_LENT     (1ull << 36)
#define SLOT_ERA_SHIFT 37		/* of the era in which it was lent last: 3 bits */
#define SLOT_ERAS     7u
#define SLOT_LOAN     (SLOT_LENT | (uint64_t)SLOT_ERAS << SLOT_ERA_SHIFT)
#define SLOT_REF      (1ull << 40)
#define SLOT_INFLIGHT (1ull << 41)
#define SLOT_GEN      (1ull << 42)
#define SLOT_LOADED   (1ull << 43)
#define SLOT_ZERO     (1ull << 44)
#define SLOT_WRITTEN  (1ull << 45)
#define SLOT_AHEAD    (1ull << 46)
#define SLOT_ONCE     (1ull << 47)
#define SLOT_EPOCH_SHIFT 48
#define SLOT_EPOCH    (0xffffull << SLOT_EPOCH_SHIFT)
/* Beside DIRTY and WRITING, where the flags whose bits they have mean nothing. */
#define SLOT_UNPROMISED SLOT_LOADED
#define SLOT_REFUSED  SLOT_ONCE
#define SLOT_UNKEPT   SLOT_AHEAD
#define SLOT_PROMISE  (SLOT_UNPROMISED | SLOT_REFUSED | SLOT_WRITTEN | SLOT_EPOCH)
#define NO_PAGE	      UINT32_MAX	/* for a page: it is zeroes */

static inline uint64_t slot_word(enum bucket_state s, uint32_t page, uint64_t flags)
{
	return (uint64_t)s << 32 | flags | (page == NO_PAGE ? SLOT_ZERO : page);
}
static inline enum bucket_state slot_state(uint64_t w) { return (enum bucket_state)(w >> 32 & 7); }
static inline uint32_t slot_page(uint64_t w) { return w & SLOT_ZERO ? NO_PAGE : (uint32_t)w; }

/* The same, with another page of the same data, which was not lent. */
static inline uint64_t slot_with_page(uint64_t w, uint32_t page)
{
	return (w & ~(SLOT_DIRECT | SLOT_LOAN | UINT32_MAX)) | page;
}

static inline bool slot_is_clean_zero(uint64_t w)
{
	return slot_state(w) == BUCKET_VALID && (w & SLOT_ZERO);
}

/* Newer than the store. */
static inline bool bucket_is_dirty(enum bucket_state s)
{
	return s == BUCKET_DIRTY || s == BUCKET_WRITING;
}

static inline bool slot_is_unpromised(uint64_t w)
{
	return bucket_is_dirty(slot_state(w)) && (w & SLOT_UNPROMISED);
}

static inline bool slot_is_promised(uint64_t w)
{
	return bucket_is_dirty(slot_state(w)) && !(w & SLOT_UNPROMISED);
}

static inline bool slot_is_refused(uint64_t w)
{
	return slot_state(w) == BUCKET_DIRTY && (w & SLOT_REFUSED);
}

static inline bool slot_is_ahead(uint64_t w)
{
	return slot_state(w) == BUCKET_VALID && (w & SLOT_AHEAD);
}

/* Only requests with XSEG_REQ_ONCE have used it. */
static inline bool slot_is_unkept(uint64_t w)
{
	return slot_state(w) == BUCKET_VALID ? (w & (SLOT_AHEAD | SLOT_ONCE)) == SLOT_ONCE
					     : bucket_is_dirty(slot_state(w)) && (w & SLOT_UNKEPT);
}

/* Clean, or it may be given up: its page is in a list of those that may be evicted. */
static inline bool slot_is_evictable(uint64_t w)
{
	return slot_state(w) == BUCKET_VALID || slot_is_refused(w);
}

static inline bool slot_absent(uint64_t w)
{
	return slot_state(w) <= BUCKET_INVALID;
}

static inline bool slot_has_page(uint64_t w)
{
	return slot_state(w) >= BUCKET_LOADING && !(w & SLOT_ZERO);
}

/* Has data that may be read. */
static inline bool slot_present(uint64_t w)
{
	return slot_state(w) >= BUCKET_VALID || (w & SLOT_LOADED);
}

extern const struct xstates bucket_states;	/* the table above */
/* Whether a word has no page and no flag that its state cannot have (B1, B4, Y1, U2). */
bool slot_is_sound(uint64_t w);
/* Whether data leaves the cache on that edge. */
static inline bool bucket_edge_leaves(enum bucket_state from, enum bucket_state to)
{
	return from >= BUCKET_VALID && to <= BUCKET_BYPASS;
}

#endif
