/* child - a forwarder that splits a write dies; the child it left at the blocker must not undo a
 * later write.
 *
 * A forwarded request has one place word, so a repair takes it back. A child does not: it is a
 * request of its own, at a living blocker, and the successor of its origin does the parent again
 * with a new one. The old child may be written long after: after the parent was answered, and after
 * a later write of the same range was answered too. So the successor waits for it, before it does
 * anything.
 *
 * Proves: when a write is answered, and when nothing moves any more, the store holds that write,
 * whoever of the two is killed (KILLS times in all); nobody is stuck, and every child is freed.
 *
 *   step here           stands for
 *   send                xseg_req_alloc and xseg_req_submit of a child
 *   take                xs_req_accept at the blocker, which may keep any number of accepted
 *                       children
 *   start               xseg_req_start
 *   finish              the store does it; xseg_req_answer
 *   forwarder's repair  xseg_peer_open, xseg_peer_orphans: what is at rest with the dead one is
 *                       free at once, which makes the offer of a child that was not taken void;
 *                       what was taken is waited for; then the parent is done again
 *   blocker's repair    wait until what the dead had on its way in the store is written or refused
 *                       (stray), then take what is at the dead over as it stands, STARTED or not
 *
 * Abstracted: places and lanes (offer.pml), what the child's answer says of the parent
 * (repair.pml), all children overlap, the parent has one part. The blocker may start what it has
 * taken in any order, and side by side: nothing is asked of it but the last rule. cached waits in
 * the same way for one object at a time (HELD, slots.pml).
 *
 * What it says about the code: a blocker's successor must know that no write of the dead one is
 * still on its way inside the store, before it starts or finishes any. The kernel waits for a dead
 * process's own asynchronous I/O, a remote store does not: there the successor has to fence the
 * dead client off.
 *
 * Broken rules: BUG_NO_WAIT_FOR_CHILDREN, BUG_WAITS_BEFORE_OFFERS_ARE_VOID, BUG_NO_STORE_FENCE
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

byte state[CHILDREN], data[CHILDREN];
byte store;
byte stray;                         /* a dead blocker's write that the store has not done yet */
byte answered;                      /* the last write that was answered to the client */
bool killed[2];

#define IS_OUT(c)     (state[c] == TAKEN || state[c] == STARTED)

/* Called within atomic. */
inline release(c)
{
	state[c] = FREE; data[c] = 0
}

/* Called within atomic: a swap from what it was seen as. */
inline bring_home(c)
{
	if
	:: state[c] == OFFERED || state[c] == ANSWERED -> release(c)
	:: else
	fi
}

inline repair()
{
	c = 0;
	do
	:: c < CHILDREN ->
#ifdef BUG_WAITS_BEFORE_OFFERS_ARE_VOID
		!IS_OUT(c);
		c++
	:: else -> c = 0; break
	od;
	do
	:: c < CHILDREN ->
#endif
		atomic { bring_home(c) };
#ifndef BUG_NO_WAIT_FOR_CHILDREN
#ifndef BUG_WAITS_BEFORE_OFFERS_ARE_VOID
		atomic { !IS_OUT(c) -> bring_home(c) };
#endif
#endif
		c++
	:: else -> c = 0; break
	od
}

active proctype forwarder()
{
	byte c;
	bool reborn;

again:
	{
		if
		:: reborn -> repair()
		:: else
		fi;
		do
		:: answered < WRITES ->
			/* The parent is the client's next write; what the dead had sent of it is
			 * sent again. */
			atomic {
				if
				:: state[0] == FREE -> c = 0
				:: state[1] == FREE -> c = 1
				:: state[2] == FREE -> c = 2
				fi;
				data[c] = answered + 1; state[c] = OFFERED
			};
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
	atomic { killed[FORWARDER] = false; c = 0; reborn = true };
	goto again
}

inline finish(c)
{
	store = data[c];
	state[c] = ANSWERED
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
		:: atomic { state[0] == OFFERED -> state[0] = TAKEN }
		:: atomic { state[1] == OFFERED -> state[1] = TAKEN }
		:: atomic { state[2] == OFFERED -> state[2] = TAKEN }
		:: state[0] == TAKEN -> state[0] = STARTED
		:: state[1] == TAKEN -> state[1] = STARTED
		:: state[2] == TAKEN -> state[2] = STARTED
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

/* How many die is chosen first, when is open: so that a state with nobody left to die is a state to
 * be stuck in. */
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
