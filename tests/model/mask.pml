/* mask - which lanes have work; two senders, one receiver that is never idle enough to look at all
 * lanes.
 *
 * Proves: the mask alone, without the look at all lanes that comes before sleeping, leaves nothing
 * behind: an entry in a lane of a busy receiver is found. Senders are killed KILLS times in all.
 *
 *   step here         stands for
 *   publish           xq_publish
 *   mark              set_mask_bit (xseg/port.c), after the fence of xseg_port_flush: fence, load
 *                     the mask, or the lane's bit into it if it is not set
 *   clear             collect_mask: take the bits out of the mask, fence, then read the tails
 *   sender's repair   xseg_peer_recover: its holder offers again, and so marks the lane again
 *
 * Memory: as in doorbell.pml. Abstracted: slots, places, bells.
 *
 * Broken rules: BUG_NO_FENCE_SENDER, BUG_NO_FENCE_RECEIVER, BUG_CLEAR_AFTER_LOOK,
 * BUG_MARK_BEFORE_PUBLISH, BUG_REPAIR_DOES_NOT_MARK
 */
#define SENDERS 2
#define ITEMS   2
#define KILLS   2
#define DEPTH   2

byte tail[SENDERS], head[SENDERS], pushed[SENDERS];
byte mask;
byte clearing;                      /* the receiver's buffer: bits that it takes out of the mask */
bool killed;

#define BUFFERED(p) (pushed[p] - tail[p])

active proctype memory()
{
end_memory:
	do
	:: d_step { BUFFERED(0) > 0 -> tail[0]++ }
	:: d_step { BUFFERED(1) > 0 -> tail[1]++ }
	:: d_step { clearing -> mask = mask & (3 - clearing); clearing = 0 }
	od
}

inline mark(p)
{
#ifndef BUG_NO_FENCE_SENDER
	BUFFERED(p) == 0;
#endif
	if
	:: mask & (1 << p)
	:: else -> d_step { BUFFERED(p) == 0 -> mask = mask | (1 << p) }
	fi
}

active [SENDERS] proctype sender()
{
	bool reborn;

#define me (_pid - 1)
again:
	{
		if
		:: reborn ->
#ifndef BUG_REPAIR_DOES_NOT_MARK
			mark(me)
#endif
		:: else
		fi;
		do
		:: pushed[me] < ITEMS ->
#ifdef BUG_MARK_BEFORE_PUBLISH
			mark(me);
			pushed[me]++
#else
			atomic { BUFFERED(me) < DEPTH -> pushed[me]++ };
			mark(me)
#endif
		:: else -> break
		od;
end_idle:	false
	} unless { killed && me == 0 };
	atomic { BUFFERED(me) == 0 -> killed = false; reborn = true };
	goto again
#undef me
}

active proctype receiver()
{
	byte m;

end_receiver:
	do
	:: d_step { clearing == 0 && mask -> m = mask };
#ifndef BUG_CLEAR_AFTER_LOOK
		clearing = m;
#ifndef BUG_NO_FENCE_RECEIVER
		clearing == 0;
#endif
#endif
		if
		:: m & 1 -> head[0] = tail[0]
		:: else
		fi;
		if
		:: m & 2 -> head[1] = tail[1]
		:: else
		fi;
#ifdef BUG_CLEAR_AFTER_LOOK
		clearing = m;
#endif
		m = 0
	od
}

/* How many die is chosen first, when is open: so that a state with nobody left to die is a state to
 * be stuck in. */
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
	timeout -> assert(head[0] == ITEMS && head[1] == ITEMS)
}
