/* only - one thread that is alone in a peer of two ports, and others that enter single ports.
 *
 * Proves: while a thread is alone in the peer, nobody is in any of its ports; and two are never in
 * one port. Whoever cannot enter does without and comes again, so nobody waits.
 *
 *   step here         stands for (peers/common/runtime/reactor_inside.h)
 *   enter             seat_enter: exchange of `inside`, then the look at `only`
 *   enter_only        seat_enter_only: exchange of `only`, then the look at who is inside
 *   leave             seat_leave
 *
 * Memory: all of these accesses are sequentially consistent, so each is a step.
 *
 * Broken rules: BUG_LOOKS_BEFORE_IT_IS_INSIDE, BUG_DOES_NOT_LOOK, BUG_LOOKS_BEFORE_IT_IS_ONLY,
 * BUG_GOES_IN_ALTHOUGH_SOMEBODY_IS
 */
#define PORTS  2
#define ROUNDS 2

bool only, inside[PORTS];
byte in[PORTS];                         /* how many are in a round of that port */
bool alone;                             /* one of them thinks that it is alone */

/* Sets ok. */
inline enter(p)
{
#ifdef BUG_LOOKS_BEFORE_IT_IS_INSIDE
	ok = !only;
	atomic { was = inside[p]; inside[p] = true };
	ok = ok && !was;
	if
	:: !ok && !was -> inside[p] = false
	:: else
	fi
#else
	atomic { was = inside[p]; inside[p] = true };
	ok = !was;
#ifndef BUG_DOES_NOT_LOOK
	if
	:: ok && only -> inside[p] = false; ok = false
	:: else
	fi
#endif
#endif
}

/* Sets ok, and alone_here. */
inline enter_only(p)
{
#ifdef BUG_LOOKS_BEFORE_IT_IS_ONLY
	alone_here = !inside[0];
	alone_here = alone_here && !inside[1];
#endif
	atomic { was = only; only = true };
	ok = !was;
	if
	:: ok ->
#ifndef BUG_LOOKS_BEFORE_IT_IS_ONLY
		alone_here = !inside[0];
		alone_here = alone_here && !inside[1];
#endif
#ifdef BUG_GOES_IN_ALTHOUGH_SOMEBODY_IS
		alone_here = true;
#endif
		if
		:: alone_here
		:: else -> only = false; enter(p)
		fi
	:: else -> alone_here = false
	fi
}

inline round(p)
{
	atomic {
		in[p]++;
		assert(!alone);
		alone = alone_here;
		assert(in[p] == 1 && (!alone_here || in[0] + in[1] == 1))
	};
	atomic { in[p]--; alone = false };
	if
	:: alone_here -> only = false
	:: else -> inside[p] = false
	fi
}

/* The first two see to all ports, as far as they know; the third to none. */
active [3] proctype thread()
{
	bool ok, was, alone_here;
	byte left = ROUNDS, p;

	do
	:: left > 0 ->
		left--;
		alone_here = false;
		select(p : 0 .. PORTS - 1);
		if
		:: _pid < 2 -> enter_only(p)
		:: else -> enter(p)
		fi;
		if
		:: ok -> round(p)
		:: else
		fi
	:: else -> break
	od
}
