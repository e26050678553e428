/* doorbell - two producers ring one sleeper; no wake is lost, on a machine with store buffers.
 *
 * Proves: when nothing moves any more, the sleeper has taken all that was published, although any
 * of the three is killed between any two steps (KILLS times in all), and although no time-out wakes
 * anybody.
 *
 *   step here         stands for
 *   publish           xq_publish
 *   ring              xseg_port_flush, xs_bell_ring: fence, load the word, if announced, and not as
 *                     we left it when we rang last (rung), add 2 and futex_wake
 *   look              the reactor looks at all its lanes (xseg_port_has_work)
 *   announce          xseg_bell_wait: or 1 into the word; if it was there already, as a dead
 *                     sleeper left it, add 2: another sleep
 *   futex_wait        the same: wait for the word as it was announced
 *   take_back         the same: add 1, which clears the bit and counts; the sleeper alone does it
 *   producer's repair xs_ring_all: ring every doorbell, whatever was rung before
 *
 * Memory: x86-TSO made weaker. Each process has a buffer of two entries, drained in order at any
 * time by memory(); a fence, a system call and fetch_add wait until it is empty. The sleeper's or
 * and and stand in the buffer too, since C lets later loads pass a relaxed read-modify-write. A
 * dead process's buffer still drains. A producer's entries are consecutive values of its tail, so
 * their number says all.
 *
 * Abstracted: futex_wait and futex_wake are one step each, as the kernel's lock makes them. The
 * polling before the announcement is one look. The ring count (31 bits) does not wrap all round
 * between announcing and waiting. How a death is found (the tick that probes members): here the
 * successor just begins.
 *
 * Broken rules: BUG_NO_FENCE_PRODUCER, BUG_NO_FENCE_SLEEPER, BUG_NO_SECOND_LOOK,
 * BUG_PRODUCER_TAKES_BACK, BUG_REPAIR_DOES_NOT_RING, BUG_WORD_UNCHANGED, BUG_LOAD_BEFORE_PUBLISH,
 * BUG_TAKE_BACK_DOES_NOT_COUNT, BUG_STALE_ANNOUNCEMENT_STANDS
 */
#define PRODUCERS 2
#if defined(SHORT) && !defined(BUG_STALE_ANNOUNCEMENT_STANDS)  /* which nobody meets so soon */
#define ITEMS(p)  1
#else
#define ITEMS(p)  (2 - (p))          /* the one that may be killed pushes two */
#endif
#ifdef LONG
#define KILLS     2
#else
#define KILLS     1
#endif
#define SLEEPER   2                 /* index in killed[] */
#define DEPTH     2                 /* of a store buffer */

#define ANNOUNCE  1
#define TAKE_BACK 2

byte tail[PRODUCERS], head[PRODUCERS];
byte pushed[PRODUCERS];             /* what the producer has published, as it sees it itself */
byte word;                          /* bit 0: announced; above: rings and sleeps */
byte announced;                     /* the word as the sleeper left it */
bool waiting;                       /* the kernel's queue */
bool killed[3];

#define BUFFERED(p)     (pushed[p] - tail[p])
chan sleeper_buffer = [DEPTH] of { byte };

active proctype memory()
{
	byte op;

end_memory:
	do
	:: d_step { BUFFERED(0) > 0 -> tail[0]++ }
	:: d_step { BUFFERED(1) > 0 -> tail[1]++ }
	:: d_step {
		nempty(sleeper_buffer) ->
		sleeper_buffer?op;
		if
#ifndef BUG_STALE_ANNOUNCEMENT_STANDS
		:: op == ANNOUNCE && (word & 1) -> word = word + 2; announced = word
		:: op == ANNOUNCE && !(word & 1) -> word = word | 1; announced = word
#else
		:: op == ANNOUNCE -> word = word | 1; announced = word
#endif
#ifdef BUG_TAKE_BACK_DOES_NOT_COUNT
		:: op == TAKE_BACK -> word = word & 254; announced = 0
#else
		:: op == TAKE_BACK -> word = word + 1; announced = 0
#endif
		fi;
		op = 0
	   }
	od
}

inline ring(p)
{
#ifndef BUG_NO_FENCE_PRODUCER
	BUFFERED(p) == 0;
#endif
	w = word;
	if
	:: (w & 1) && w != rung ->
		atomic {
			BUFFERED(p) == 0;
#ifdef BUG_PRODUCER_TAKES_BACK
			word = (word + 2) & 254
#else
#ifndef BUG_WORD_UNCHANGED
			word = word + 2
#endif
#endif
			;
			rung = word
		};
		d_step { waiting = false; w = 0 }
	:: else -> w = 0
	fi
}

active [PRODUCERS] proctype producer()
{
	byte w, rung;
	bool reborn;

#define me (_pid - 1)
again:
	{
		if
		:: reborn ->
#ifndef BUG_REPAIR_DOES_NOT_RING
			ring(me)
#endif
		:: else
		fi;
		do
		:: pushed[me] < ITEMS(me) ->
#ifdef BUG_LOAD_BEFORE_PUBLISH
			w = word;
			pushed[me]++;
			BUFFERED(me) == 0;
			if
			:: (w & 1) && w != rung -> atomic { word = word + 2; rung = word }; d_step { waiting = false; w = 0 }
			:: else -> w = 0
			fi
#else
			atomic { BUFFERED(me) < DEPTH -> pushed[me]++ };
			ring(me)
#endif
		:: else -> break
		od;
end_idle:	false                      /* lives on, with nothing to do */
	} unless { killed[me] };
	/* The kernel gave the lock away, so all that it stored is seen. */
	atomic { BUFFERED(me) == 0 -> killed[me] = false; w = 0; rung = 0; reborn = true };
	goto again
#undef me
}

#define NOTHING (tail[0] == head[0] && tail[1] == head[1])

inline look()
{
	d_step { found = (tail[0] != head[0]); head[0] = tail[0] };
	d_step { found = found || (tail[1] != head[1]); head[1] = tail[1] }
}

active proctype sleeper()
{
	bool found;

again:
	{
		do
		:: look();
		   if
		   :: found
		   :: else ->
			sleeper_buffer!ANNOUNCE;
#ifndef BUG_NO_FENCE_SLEEPER
			empty(sleeper_buffer);
#endif
#ifndef BUG_NO_SECOND_LOOK
			look();
#endif
			if
			:: found
			:: else ->
				atomic {
					empty(sleeper_buffer) ->
					if
					:: word == announced -> waiting = true
					:: else
					fi
				};
end_asleep:			!waiting
			fi;
			sleeper_buffer!TAKE_BACK
		   fi;
		   found = false
		od
	} unless { killed[SLEEPER] };
	atomic { empty(sleeper_buffer) -> killed[SLEEPER] = false; found = false; waiting = false };
	goto again
}

/* How many die is chosen first, when is open: so that a state with nobody left to die is a state to
 * be stuck in. */
active proctype killer()
{
	byte left;

	select(left : 0 .. KILLS);
end_killer:
	do
	/* the producers are alike */
	:: atomic { left > 0 && !killed[0] && !killed[SLEEPER] -> left--; killed[0] = true }
	:: atomic { left > 0 && !killed[0] && !killed[SLEEPER] -> left--; killed[SLEEPER] = true }
	od
}

active proctype watch()
{
	timeout -> assert(head[0] == ITEMS(0) && head[1] == ITEMS(1))
}
