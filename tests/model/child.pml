/* child - a forwarder that splits a write dies; the child it left at the blocker must not undo a later write.
 *
 * A forwarded request has one place word, so a repair takes it back. A child does not: it is a request
 * of its own, at a live blocker, and the successor of its origin redoes the parent with a new one. The old
 * child may be written long after: after the parent was answered, and after a later write of the same range
 * was answered too.
 *
 * Proves: when a write is answered, and when nothing moves any more, the store holds that write, whoever of the two
 * is killed (KILLS times in all); nobody is stuck, and every child is freed.
 *
 *   step here           stands for
 *   issue               xseg_req_get and xseg_req_offer of a child that bears its origin's generation
 *   take                xseg_req_accept at the blocker, which may keep any number of accepted children
 *   start               the blocker compares the child's origin generation with the port's; a stale child is freed
 *                       unwritten, another goes STARTED, if it overlaps nothing STARTED. In one callback
 *                       of one reactor, which accepts the later children too
 *   finish              the store answers; xseg_req_answer; a dead generation's child is freed
 *   forwarder's repair  mark the generation dead, free the children at rest with the dead, redo the parent
 *   blocker's repair    wait until what the dead had on its way in the store is written or refused (stray), then
 *                       take what is at the dead over as it stands, STARTED or not
 *
 * Abstracted: places and lanes (offer.pml), all children overlap, the parent has one part.
 * The blocker may start accepted children in any order: its repair finds them by a scan.
 *
 * What it says about the code: a blocker must look at the origin's generation when it *starts* a request,
 * not when it accepts it, and a repair must mark the generation dead before it redoes anything. The rule that no
 * write starts over a started one holds back the new child while an old one is being written; without it the same loss.
 * And a blocker's successor must know that no write of the dead one is still on its way inside the store, before
 * it starts or finishes any. The kernel waits for a dead process's own asynchronous I/O, a remote store does not: there
 * the successor has to fence the dead client off.
 *
 * Broken rules: BUG_START_ANY_GENERATION, BUG_GENERATION_AT_ACCEPT, BUG_START_OVERLAPPING,
 * BUG_GENERATION_AFTER_REDO, BUG_NO_STORE_FENCE
 */
#define CHILDREN 3
#define WRITES   2
#define KILLS    2

#define FREE     0
#define OFFERED  1
#define TAKEN    2                  /* at the blocker */
#define STARTED  3
#define ANSWERED 4

#define FORWARDER 0
#define BLOCKER   1

byte state[CHILDREN], data[CHILDREN], child_gen[CHILDREN];
byte gen;                           /* of the forwarder's port */
byte store;
byte stray;                         /* a dead blocker's write that the store has not done yet */
byte answered;                      /* the last write that was answered to the client */
bool killed[2];

#define STARTED_ANY   (state[0] == STARTED || state[1] == STARTED || state[2] == STARTED)
#define STALE(c)      (child_gen[c] != gen)

/* Called within atomic. */
inline release(c)
{
	state[c] = FREE; data[c] = 0; child_gen[c] = 0
}

active proctype forwarder()
{
	byte c, mine;               /* mine: the generation that this process believes it has */

again:
	{
		c = 0;
		do
		:: c < CHILDREN ->
			atomic {
				if
				:: (state[c] == OFFERED || state[c] == ANSWERED) && child_gen[c] != mine -> release(c)
				:: else
				fi;
				c++
			}
		:: else -> break
		od;
		do
		:: answered < WRITES ->
			/* The parent is the client's next write; what the dead had sent of it is sent again. */
			atomic {
				if
				:: state[0] == FREE -> c = 0
				:: state[1] == FREE -> c = 1
				:: state[2] == FREE -> c = 2
				fi;
				data[c] = answered + 1; child_gen[c] = mine; state[c] = OFFERED
			};
#ifdef BUG_GENERATION_AFTER_REDO
			gen = mine;
#endif
			atomic {
				state[c] == ANSWERED ->
				assert(store == data[c]);
				release(c);
				answered++;
				c = 0
			}
		:: else -> break
		od;
end_forwarder:
		false
	} unless { killed[FORWARDER] };
	atomic {
		killed[FORWARDER] = false;
		c = 0;
		mine++;
#ifndef BUG_GENERATION_AFTER_REDO
		gen = mine;
#endif
		goto again
	}
}

#ifdef BUG_START_ANY_GENERATION
#define MAY_START(c) true
#else
#ifdef BUG_GENERATION_AT_ACCEPT
#define MAY_START(c) true
#else
#define MAY_START(c) (!STALE(c))
#endif
#endif

#ifdef BUG_GENERATION_AT_ACCEPT
#define MAY_TAKE(c) (!STALE(c))
#else
#define MAY_TAKE(c) true
#endif

#ifdef BUG_START_OVERLAPPING
#define ROOM true
#else
#define ROOM (!STARTED_ANY)
#endif

inline take(c)
{
	if
	:: MAY_TAKE(c) -> state[c] = TAKEN
	:: else -> release(c)
	fi
}

inline start(c)
{
	if
	:: MAY_START(c) -> state[c] = STARTED
	:: else -> release(c)
	fi
}

/* The store answers for a started child; the answer goes to its origin, or the child is freed if that is dead. */
inline finish(c)
{
	store = data[c];
	atomic {
		if
		:: STALE(c) -> release(c)
		:: else -> state[c] = ANSWERED
		fi
	}
}

/* The store does what it still has of a dead blocker, or refuses it. */
active proctype late_store()
{
end_late_store:
	do
	:: atomic { stray != 0 -> store = stray; stray = 0 }
	:: atomic { stray != 0 -> stray = 0 }
	od
}

active proctype blocker()
{
end_again:
	{
#ifndef BUG_NO_STORE_FENCE
		stray == 0;
#endif
end_blocker:
		do
		:: atomic { state[0] == OFFERED -> take(0) }
		:: atomic { state[1] == OFFERED -> take(1) }
		:: atomic { state[2] == OFFERED -> take(2) }
		:: atomic { state[0] == TAKEN && ROOM -> start(0) }
		:: atomic { state[1] == TAKEN && ROOM -> start(1) }
		:: atomic { state[2] == TAKEN && ROOM -> start(2) }
		:: state[0] == STARTED -> finish(0)
		:: state[1] == STARTED -> finish(1)
		:: state[2] == STARTED -> finish(2)
		od
	} unless { killed[BLOCKER] };
	atomic {
		killed[BLOCKER] = false;
		if
		:: state[0] == STARTED -> stray = data[0]
		:: state[1] == STARTED -> stray = data[1]
		:: state[2] == STARTED -> stray = data[2]
		:: else
		fi;
		goto end_again
	}
}

/* How many die is chosen first, when is open: so that a state with nobody left to die is a state to be stuck in. */
active proctype killer()
{
	byte left;

	select(left : 0 .. KILLS);
end_killer:
	do
	:: atomic { left > 0 && !killed[FORWARDER] && !killed[BLOCKER] -> left--; killed[FORWARDER] = true }
	:: atomic { left > 0 && !killed[FORWARDER] && !killed[BLOCKER] -> left--; killed[BLOCKER] = true }
	od
}

active proctype watch()
{
	timeout -> assert(answered == WRITES && store == WRITES &&
			  state[0] == FREE && state[1] == FREE && state[2] == FREE)
}
