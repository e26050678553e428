/* slots - writes over two buckets of a cached object, and their flushes, when cached is killed
 * between any two stores.
 *
 * Proves: no read, and not the store in the end, has half of a write, or what an answered write
 * came after, or what an earlier read had seen replaced; a write-through write is answered when the
 * store has it, or what came after; and nobody is stuck.
 *
 *   step here         stands for (peers/cached)
 *   write             write_apply (write.c): STARTED, each slot, then ANSWERED, or APPLIED and wait
 *                     (through_wait)
 *   read              read_step (read.c): both buckets at once, as its reader is alone in the
 *                     object; from the store what is not here
 *   flush             start_run (flush.c): the slot becomes WRITING, then a child goes out with its
 *                     page
 *   flushed           flushed_bucket, and through_cover (write.c) for the flushes that began after
 *                     the write was applied
 *   evict             evict_step (step.c)
 *   load              arena_load (arena.c): WRITING becomes DIRTY, INFLIGHT goes
 *   held              orphans_adopt (adopt.c): while a child of the dead one is out, the object is
 *                     HELD: nothing of it is read, written or flushed
 *   let_go            orphan_done, object_let_go: when the last one is home; then what was
 *                     recovered has its turn
 *   recover           xseg_peer_recover: STARTED, then APPLIED, then AT; redo_job, applied_job
 *                     (creq.c)
 *
 * There are three writes of both buckets, of values 1 (write-through), and 2, 3 (write-back), and
 * READS reads. 3 is sent when 2 is answered, all else when it likes. A value stands for the page
 * that has it. KILLS times cached is killed, and so its successors, in their recovery as well.
 *
 * Abstracted: places (offer.pml), the object's queue (workq.pml), loads (a read of what is not here
 * leaves it so), errors of the store. The store does what is out in any order. The third write is
 * there with LONG only.
 *
 * What it says about the code: a new write of a HELD object would do no harm; reads and flushes
 * would.
 *
 * Broken rules: BUG_SLOTS_BEFORE_STARTED, BUG_ANSWERED_BEFORE_SLOTS, BUG_APPLIED_BEFORE_SLOTS,
 * BUG_STARTED_IS_NEW, BUG_STARTED_COMES_LAST, BUG_STARTED_IS_DONE, BUG_APPLIED_IS_REDONE,
 * BUG_APPLIED_IS_ANSWERED, BUG_FLUSH_CLEANS_ANY_PAGE, BUG_FLUSH_COVERS_LATER_WRITE,
 * BUG_INFLIGHT_IS_FLUSHED, BUG_WRITING_IS_CLEAN, BUG_NOT_HELD, BUG_HELD_IS_READ,
 * BUG_HELD_IS_FLUSHED
 */
#define BUCKETS  2
#define REQUESTS 4                  /* by value written; 0 is the reader's */
#define KILLS    2
#define READS    2
#ifdef LONG
#define WRITES   3
#else
#define WRITES   2
#endif

#define IDLE     0
#define AT       1
#define STARTED  2
#define APPLIED  3
#define ANSWERED 4

#define INVALID  0
#define VALID    1
#define DIRTY    2
#define WRITING  3

#define NO_CHILD 0
#define OUT      1                  /* the store may do it */
#define BACK     2                  /* its answer waits */

/* What a kill leaves. */
byte place[REQUESTS];
byte state[BUCKETS], page[BUCKETS];
bool inflight[BUCKETS];
byte store[BUCKETS];

/* Children: two of a bucket, since those of a dead cached are its successor's as well. */
#define CHILDREN (2 * BUCKETS)
#define OF(b, k) (2 * (b) + (k))
byte child[CHILDREN], child_page[CHILDREN];
bool child_covers[CHILDREN];        /* it began after the write-through write was applied */
bool orphan[CHILDREN];              /* of a dead cached */

bool killed;

/* Ghosts: sets of values are bits. */
byte before[REQUESTS];              /* the writes that were answered when this one was sent */
byte answered = 1, seen, replaced;  /* answered: 0 was there in the beginning */
byte reads, nr_applied, stamp[REQUESTS];

#define BIT(v)        (1 << (v))
#define MAY_BE(v)     ((replaced & BIT(v)) == 0 && IS_LATE(v, 1) && IS_LATE(v, 2) && IS_LATE(v, 3))
#define IS_LATE(v, w) ((answered & BIT(w)) == 0 || (before[w] & BIT(v)) == 0)
#define DATA(b)       (state[b] == INVALID -> store[b] : page[b])

#define IS_DIRTY(b)   (state[b] >= DIRTY)
#define NONE_OUT(b)   (child[OF(b, 0)] == NO_CHILD && child[OF(b, 1)] == NO_CHILD)

/* ---- cached, inside the object ---- */

/* Called within atomic. */
inline answer(r)
{
	assert(place[r] != ANSWERED);
	place[r] = ANSWERED;
	answered = answered | BIT(r)
}

inline store_slot(b, r)
{
	atomic {
		inflight[b] = inflight[b] || state[b] == WRITING;
		state[b] = DIRTY;
		page[b] = r
	}
}

/* r is AT, or STARTED and done again. */
inline write(r)
{
#ifndef BUG_SLOTS_BEFORE_STARTED
	place[r] = STARTED;
#endif
#ifdef BUG_ANSWERED_BEFORE_SLOTS
	atomic { r != 1 -> answer(r) };
#endif
#ifdef BUG_APPLIED_BEFORE_SLOTS
	place[r] = APPLIED;
#endif
	store_slot(0, r);
	store_slot(1, r);
	d_step { nr_applied++; stamp[r] = nr_applied };
#ifndef BUG_ANSWERED_BEFORE_SLOTS
	atomic {
		if
		:: r == 1 -> place[r] = APPLIED; waits = true; need[0] = true; need[1] = true
		:: else -> answer(r)
		fi
	}
#endif
}

inline read()
{
	atomic {
		assert(DATA(0) == DATA(1) && MAY_BE(DATA(0)));
		replaced = replaced | (seen & (255 - BIT(DATA(0))));
		seen = seen | BIT(DATA(0));
		place[0] = ANSWERED
	}
}

inline flush(b)
{
	state[b] = WRITING;
	atomic {
		if
		:: child[OF(b, 0)] == NO_CHILD -> i = OF(b, 0)
		:: else -> i = OF(b, 1)
		fi;
		assert(child[i] == NO_CHILD);
		child[i] = OUT; child_page[i] = page[b]; child_covers[i] = waits && need[b];
		i = 0
	}
}

/* Called within atomic. */
inline child_put(c)
{
	child[c] = NO_CHILD; child_page[c] = 0; child_covers[c] = false; orphan[c] = false
}

inline cover(b, c)
{
#ifdef BUG_FLUSH_COVERS_LATER_WRITE
	need[b] = false
#else
	need[b] = need[b] && !child_covers[c]
#endif
}

/* The slot is one store; what waits is private. */
inline flushed(b, c)
{
	atomic {
		if
#ifdef BUG_FLUSH_CLEANS_ANY_PAGE
		:: true -> state[b] = VALID; inflight[b] = false
#else
		:: state[b] == WRITING && page[b] == child_page[c] -> state[b] = VALID
#endif
		:: else -> inflight[b] = false
		fi;
		cover(b, c);
		child_put(c)
	}
}

#ifdef BUG_INFLIGHT_IS_FLUSHED
#define MAY_FLUSH(b) (state[b] == DIRTY && (child[OF(b, 0)] == NO_CHILD || child[OF(b, 1)] == NO_CHILD))
#else
#define MAY_FLUSH(b) (state[b] == DIRTY && !inflight[b])
#endif

#define HAS_STORE(b) (stamp[store[b]] >= stamp[1])

inline through_end()
{
	atomic {
		waits && !need[0] && !need[1] ->
		waits = false;
		assert(HAS_STORE(0) && HAS_STORE(1));
		answer(1)
	}
}

/* ---- a successor ---- */

inline load(b)
{
	atomic {
		if
#ifdef BUG_WRITING_IS_CLEAN
		:: state[b] == WRITING -> state[b] = VALID
#else
		:: state[b] == WRITING -> state[b] = DIRTY
#endif
		:: else
		fi;
		inflight[b] = false
	}
}

#define ORPHAN_OUT(c) (orphan[c] && child[c] == OUT)

#define ALL_HOME      (!ORPHAN_OUT(0) && !ORPHAN_OUT(1) && !ORPHAN_OUT(2) && !ORPHAN_OUT(3))

/* What an orphan did counts for nothing. */
inline let_go()
{
	atomic {
		held = false;
		i = 0;
		do
		:: i < CHILDREN ->
			if
			:: orphan[i] && child[i] == BACK -> child_put(i)
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0
	}
}

inline redo(r)
{
	if
#ifdef BUG_STARTED_IS_NEW
	:: place[r] == STARTED -> place[r] = AT
#else
#ifdef BUG_STARTED_IS_DONE
	:: place[r] == STARTED -> atomic { if :: r == 1 -> place[r] = APPLIED :: else -> answer(r) fi }
#else
	:: place[r] == STARTED -> write(r)
#endif
#endif
	:: else
	fi
}

inline recover()
{
#ifdef BUG_STARTED_COMES_LAST
	serve_one();
#endif
	redo(1);
	redo(2);
	redo(3);
	if
#ifdef BUG_APPLIED_IS_REDONE
	:: place[1] == APPLIED && !waits -> write(1)
#endif
#ifdef BUG_APPLIED_IS_ANSWERED
	:: place[1] == APPLIED && !waits -> atomic { assert(HAS_STORE(0) && HAS_STORE(1)); answer(1) }
#endif
	:: place[1] == APPLIED && !waits -> atomic { waits = true; need[0] = IS_DIRTY(0); need[1] = IS_DIRTY(1) }
	:: else
	fi
}

#ifdef BUG_STARTED_COMES_LAST
inline serve_one()
{
	if
	:: place[0] == AT -> read()
	:: place[1] == AT -> write(1)
	:: place[2] == AT -> write(2)
	:: place[3] == AT -> write(3)
	:: true
	fi
}
#endif

#ifdef BUG_HELD_IS_READ
#define MAY_READ true
#else
#define MAY_READ (!held)
#endif
#ifdef BUG_HELD_IS_FLUSHED
#define MAY_START(b) MAY_FLUSH(b)
#else
#define MAY_START(b) (!held && MAY_FLUSH(b))
#endif
#define IS_BACK(c) (child[c] == BACK && !orphan[c])

active proctype cached()
{
	byte i;
	bool waits, need[BUCKETS], reborn, held;

again:
	{
		if
		:: reborn ->
			load(0);
			load(1);
#ifdef BUG_NOT_HELD
			recover()
#else
			held = true
#endif
		:: else
		fi;
end_cached:
		do
		:: held && ALL_HOME -> let_go(); recover()
#ifdef BUG_NOT_HELD
		:: orphan[0] && child[0] == BACK -> atomic { child_put(0) }
		:: orphan[1] && child[1] == BACK -> atomic { child_put(1) }
		:: orphan[2] && child[2] == BACK -> atomic { child_put(2) }
		:: orphan[3] && child[3] == BACK -> atomic { child_put(3) }
#endif
		:: MAY_READ && place[0] == AT -> read()
		:: !held && place[1] == AT -> write(1)
		:: !held && place[2] == AT -> write(2)
		:: !held && place[3] == AT -> write(3)
		:: MAY_START(0) -> flush(0)
		:: MAY_START(1) -> flush(1)
		:: IS_BACK(0) -> flushed(0, 0)
		:: IS_BACK(1) -> flushed(0, 1)
		:: IS_BACK(2) -> flushed(1, 2)
		:: IS_BACK(3) -> flushed(1, 3)
		:: state[0] == VALID -> state[0] = INVALID
		:: state[1] == VALID -> state[1] = INVALID
		:: through_end()
		od
	} unless { killed };
	atomic {
		killed = false; reborn = true; held = false; waits = false; need[0] = false; need[1] = false;
		for (i : 0 .. CHILDREN - 1) {
			orphan[i] = child[i] != NO_CHILD
		};
		i = 0
	};
	goto again
}

/* ---- the others ---- */

active proctype downstream()
{
end_downstream:
	do
	:: d_step { child[0] == OUT -> store[0] = child_page[0]; child[0] = BACK }
	:: d_step { child[1] == OUT -> store[0] = child_page[1]; child[1] = BACK }
	:: d_step { child[2] == OUT -> store[1] = child_page[2]; child[2] = BACK }
	:: d_step { child[3] == OUT -> store[1] = child_page[3]; child[3] = BACK }
	od
}

active proctype clients()
{
end_clients:
	do
	:: d_step { place[0] != AT && reads < READS -> reads++; place[0] = AT }
	:: d_step { place[1] == IDLE -> before[1] = answered; place[1] = AT }
	:: d_step { place[2] == IDLE -> before[2] = answered; place[2] = AT }
	:: d_step { WRITES > 2 && place[3] == IDLE && place[2] == ANSWERED -> before[3] = answered; place[3] = AT }
	od
}

active proctype killer()
{
	byte left;

	select(left : 0 .. KILLS);
end_killer:
	do
	:: atomic { left > 0 && !killed -> left--; killed = true }
	od
}

active proctype watch()
{
	timeout -> assert(answered == BIT(WRITES + 1) - 1 && place[0] == ANSWERED && reads == READS && !IS_DIRTY(0) && !IS_DIRTY(1) &&
			  store[0] == store[1] && MAY_BE(store[0]) && NONE_OUT(0) && NONE_OUT(1))
}
