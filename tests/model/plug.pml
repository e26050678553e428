/* plug - a cache enters between two peers that serve, and leaves again, while requests are on their
 * way. uppers.pml has several upper peers.
 *
 * Proves, whoever of command, upper peer, cache and lower peer is killed between any two stores: no
 * request is refused or lost; none is served by a cache that is off the path, nor by the lower peer
 * past one that is on it; a read returns what was last answered as written, also when the cache
 * comes again with copies of before; the lower peer is kept for one of the two at every moment; and
 * what was begun is ended or undone.
 *
 *   step here         stands for (xseg/plug.c, and where it says so peers/common/runtime/gate.c,
 *                     peers/cached/life/plug.c)
 *   ask               xseg_plug, xseg_unplug, xseg_plug_cancel: one store of `plug`; its process
 *                     may be killed, and does no more
 *   call              xseg_plug_call: turn = ASKED
 *   hold              gate.c: sends nothing; when nothing is below, xseg_turn_hold: turn = HELD,
 *                     with its generation
 *   mind              xseg_turn_mind: the cache does not serve, so what it had begun is undone, and
 *                     the turn with it
 *   claim             xseg_plug_claim: the cache has its route, and the lower peer to itself
 *   others            xseg_plug_others: what others have at the lower peer
 *   prove             peers/cached/life/plug.c: takes nothing in, has nothing left, what it sent on is
 *                     answered, nothing is dirty
 *   decided           xseg_plug_switch: the store of PLUG_DECIDED; then settle: the upper peer's
 *                     route and the other stores, by the process that comes next
 *   foreign           xseg_req_is_foreign: what the lower peer refuses
 *
 * One client has one request out, a write or a read of one bucket, and REQUESTS of them. The upper
 * peer is a cache itself, so that the lower one is kept for it when ours is off the path. Ours has
 * a bucket: none, clean or dirty; it answers from it, loads (also what nobody asked for) and
 * flushes by children, or sends reads on. It is on the path when it begins.
 *
 * Abstracted: the memory order (claim and look at places, acceptance and look at the claim are
 * sequentially consistent in code; here steps are); lanes: what is offered is accepted later, or
 * never; several ports: a gate is passed by all before the next step.
 *
 * What it says about the code:
 *  - a cache that leaves must wait for what it sent on, too: nobody else counts that, and the lower
 *    peer would refuse it once it is kept for another (BUG_SENT_ON_IS_IGNORED);
 *  - that a successor of the upper peer begins with the gate closed is needed, not only quick:
 *    between the stores of route and claim it would send what is refused (BUG_SUCCESSOR_SENDS). As
 *    it does, the generation in HELD is not;
 *  - a successor of the lower peer forgets who sent what it takes over, so only the look at others
 *    finds it (BUG_OTHERS_ARE_IGNORED).
 *
 * Broken rules: BUG_SWITCHED_UNHELD, BUG_SUCCESSOR_SENDS, BUG_HELD_WITH_REQUESTS_BELOW,
 * BUG_OTHERS_ARE_IGNORED, BUG_CLAIM_IS_KEPT, BUG_KEPT_FIRST, BUG_DIRTY_IS_IGNORED,
 * BUG_SENT_ON_IS_IGNORED, BUG_COPIES_ARE_KEPT, BUG_NOBODY_SETTLES
 */
#ifdef LONG
#define REQUESTS 4
#define KILLS    2
#else
#define REQUESTS 3
#define KILLS    1
#endif
#define ASKS     2

#define NONE     0
#define CLIENT   1
#define UPPER    2
#define CACHE    3
#define LOWER    4

#define ENTER    1
#define LEAVE    2
#define ASKED    1
#define HELD     2

#define CLEAN    1
#define DIRTY    2

/* The words; `decided` is one with `plug`. */
byte plug, turn, turn_gen;
bool decided;
byte route_upper = CACHE, route_cache = LOWER;
byte above_cache = UPPER, above_lower = CACHE;
byte epoch, arena_epoch;            /* of the cache's route; as its arena says */
byte gen;                           /* of the upper peer */
bool cache_serves = true;
byte lock;

/* The request: who has it, to whom he offered it, and who sent it on last. */
byte holder = CLIENT, offered, via;
bool is_write;
byte value;                         /* of the write */

byte store, copy, data;		/* the lower peer's; the cache's bucket: state, and what is in it */
byte child; /* the cache's own request: NONE, or who has it: CACHE (offered, or answered), LOWER */
bool child_out, child_is_write;
byte child_value;

bool killed_upper, killed_cache;
byte asks, sent, written;           /* ghosts; written: the last write that was answered */

#define TAKE_LOCK(who) atomic { lock == 0 -> lock = who }
#define IS_OFF       (route_cache == NONE)

/* Called within atomic. */
inline answer(v)
{
	assert(is_write || v == written);
	written = (is_write -> value : written);
	holder = CLIENT; offered = NONE; via = NONE
}

/* ---- under the lock ---- */

/* What follows from the decision; done says whether there was one. */
inline settle()
{
	done = decided;
	if
	:: done ->
		route_upper = (plug == ENTER -> CACHE : LOWER);
		if
		:: plug == LEAVE ->
			if
			:: above_cache == UPPER -> above_lower = UPPER
			:: else
			fi;
			if
			:: route_cache != NONE -> d_step { route_cache = NONE; epoch++ }
			:: else
			fi;
			above_cache = NONE
		:: else
		fi;
		d_step { turn = NONE; turn_gen = 0 };
		d_step { plug = NONE; decided = false }
	:: else
	fi
}

inline claim_undo()
{
	if
	:: plug == ENTER && route_cache != NONE ->
		if
		:: above_cache == UPPER -> above_lower = UPPER
		:: else
		fi;
		d_step { route_cache = NONE; epoch++ };
		above_cache = NONE
	:: else
	fi
}

#ifdef BUG_SWITCHED_UNHELD
#define HOLDS true
#else
#define HOLDS (turn == HELD && turn_gen == gen)
#endif

/* ---- who asks; killed after the store, or not ---- */

active proctype command()
{
	do
	:: asks < ASKS ->
		atomic {
			lock == 0 ->
			if
			:: plug == NONE && turn == NONE && route_upper == CACHE -> plug = LEAVE; asks++
			:: plug == NONE && turn == NONE && route_upper == LOWER && IS_OFF && cache_serves -> plug = ENTER; asks++
			fi
		}
	:: asks == ASKS -> break
	od
}

/* ---- the client ---- */

active proctype client()
{
	do
	:: sent < REQUESTS ->
		atomic {
			sent++;
			if
			:: is_write = true; value = sent
			:: is_write = false
			fi;
			offered = UPPER
		};
		holder == CLIENT && offered == NONE
	:: sent == REQUESTS -> break
	od
}

/* ---- the upper peer ---- */

#define IS_BELOW (via == UPPER && (holder != UPPER || offered != NONE))

active proctype upper()
{
	byte to;
	bool holds, done;

end_again:
	{
end_upper:
		do
		:: atomic { holder == CLIENT && offered == UPPER -> holder = UPPER; offered = NONE; via = NONE }
		:: !holds && holder == UPPER && offered == NONE ->
			to = route_upper;
			atomic { assert(to != NONE); via = UPPER; offered = to; to = NONE }
		:: turn != NONE && !holds -> holds = true
		:: turn == NONE && holds -> holds = false
		:: atomic { holds && turn != NONE && (turn == ASKED || turn_gen != gen) &&
#ifndef BUG_HELD_WITH_REQUESTS_BELOW
			!IS_BELOW &&
#endif
			lock == 0 -> lock = UPPER };
		   if
		   :: turn != NONE && plug != NONE -> d_step { turn = HELD; turn_gen = gen }
		   :: else -> d_step { turn = NONE; turn_gen = 0 }
		   fi;
		   lock = NONE
		:: atomic { holds && turn != NONE && (plug == NONE || !cache_serves) && lock == 0 -> lock = UPPER };
		   if
		   :: plug == NONE -> d_step { turn = NONE; turn_gen = 0 }
		   :: plug != NONE && !cache_serves ->
			settle();
			if
			:: !done ->
#ifndef BUG_CLAIM_IS_KEPT
				claim_undo();
#endif
				d_step { turn = NONE; turn_gen = 0 }
			:: else
			fi
		   :: else
		   fi;
		   d_step { done = false; lock = NONE }
		od
	} unless { killed_upper };
	/* Its successor: recover_one() voids the offer of what is at its own ports. It begins with
	 * the gate closed (gate_open_peer). */
	atomic {
		killed_upper = false; gen++; to = NONE; done = false;
		lock = (lock == UPPER -> 0 : lock);
		if
		:: holder == UPPER -> offered = NONE; via = NONE
		:: else
		fi;
#ifdef BUG_SUCCESSOR_SENDS
		holds = false
#else
		holds = turn != NONE
#endif
	};
	goto end_again
}

/* ---- the lower peer ---- */

#define FOREIGN(by) (above_lower != NONE && above_lower != by && !(above_lower == CACHE && IS_OFF) && \
		     !(above_lower == UPPER && route_upper != LOWER))

active proctype lower()
{
end_lower:
	do
	:: atomic { offered == LOWER -> holder = LOWER; offered = NONE };
	   assert(via == NONE || !FOREIGN(via))    /* a successor that took it over does not look */
	:: atomic { holder == LOWER ->
		store = (is_write -> value : store);
		answer(store) }
	:: atomic { child_out && child == CACHE -> child = LOWER };
	   assert(!FOREIGN(CACHE))
	:: atomic { child == LOWER ->
		if
		:: child_is_write -> store = child_value
		:: else -> child_value = store
		fi;
		child = CACHE; child_out = false }
	od
}

/* ---- the cache ---- */

inline send_child(w, v)
{
	atomic { child = CACHE; child_out = true; child_is_write = w; child_value = v }
}

/* Called within atomic. */
inline child_put()
{
	child = NONE; child_is_write = false; child_value = 0
}

#define TAKES (!off && !closed)

/* What it serves as long as it is on the path. */
#define SERVES \
		:: atomic { TAKES && offered == CACHE && holder == UPPER -> holder = CACHE; offered = NONE } \
		:: atomic { off && !closed && offered == CACHE -> assert(false) } \
		:: holder == CACHE && offered == NONE && is_write && child == NONE -> copy = DIRTY; data = value; atomic { answer(0) } \
		:: atomic { holder == CACHE && offered == NONE && !is_write && copy != NONE -> answer(data) } \
		:: holder == CACHE && offered == NONE && !is_write && copy == NONE && child == NONE -> \
			if \
			:: send_child(false, 0) \
			:: atomic { via = CACHE; offered = LOWER } \
			fi \
		:: !off && copy == DIRTY && child == NONE -> send_child(true, data) \
		:: !off && !closed && plug == NONE && copy == NONE && child == NONE -> send_child(false, 0) \
		:: atomic { child == CACHE && !child_out -> \
			if \
			:: child_is_write && copy == DIRTY && data == child_value -> copy = CLEAN \
			:: !child_is_write && copy == NONE -> copy = CLEAN; data = child_value \
			:: else \
			fi; \
			child_put() }

#ifdef BUG_SENT_ON_IS_IGNORED
#define SENT_ON false
#else
#define SENT_ON (via == CACHE && holder != CLIENT)
#endif
#ifdef BUG_DIRTY_IS_IGNORED
#define CLEAN_NOW true
#else
#define CLEAN_NOW (copy != DIRTY)
#endif

active proctype cache()
{
	bool off, closed, done;

end_again:
	{
end_cache:
		do
		SERVES
		/* call */
		:: atomic { !closed && plug != NONE && turn == NONE && (plug == ENTER || CLEAN_NOW) && lock == 0 -> turn = ASKED; turn_gen = 0 }
		/* leaving: prove, switch */
		:: atomic { !closed && !off && plug == LEAVE && HOLDS -> closed = true }
		:: atomic { closed && !off && holder != CACHE && child == NONE && !SENT_ON && lock == 0 -> lock = CACHE };
		   if
		   :: !CLEAN_NOW && plug == LEAVE -> d_step { turn = NONE; turn_gen = 0 }
		   :: CLEAN_NOW && plug == LEAVE && HOLDS ->
			off = true;
			decided = true;
			settle()
		   :: else
		   fi;
		   d_step { done = false; closed = false; lock = NONE };
#ifndef BUG_COPIES_ARE_KEPT
		   if
		   :: off -> d_step { copy = NONE; data = 0 }
		   :: else
		   fi
#endif
		/* entering: claim, others, switch */
		:: atomic { !closed && off && IS_OFF && plug == ENTER && HOLDS && lock == 0 -> lock = CACHE };
		   if
		   :: plug == ENTER && HOLDS && route_upper == LOWER ->
			above_cache = (above_lower == UPPER -> UPPER : NONE);
#ifdef BUG_KEPT_FIRST
			above_lower = CACHE;
			d_step { route_cache = LOWER; epoch++ };
#else
			d_step { route_cache = LOWER; epoch++ };
			above_lower = CACHE;
#endif
			lock = NONE;
			d_step { arena_epoch = epoch; closed = true }
		   :: else -> lock = NONE
		   fi
		:: atomic { closed && off && (IS_OFF || plug != ENTER || !HOLDS ||
#ifdef BUG_OTHERS_ARE_IGNORED
			true
#else
			!(holder == LOWER && via != CACHE)
#endif
			) && lock == 0 -> lock = CACHE };
		   if
		   :: plug == ENTER && HOLDS && !IS_OFF ->
			off = false;
			decided = true;
			settle()
		   :: else ->
			settle();
			if
			:: !done -> claim_undo(); d_step { turn = (plug == NONE -> turn : NONE); turn_gen = 0 }
			:: else
			fi
		   fi;
		   d_step { done = false; closed = false; lock = NONE }
		od
	} unless { killed_cache };
	/* Dead; what it had sent on stays offered. Then its successor: xseg_peer_open(),
	 * xseg_plug_settle(), arena_load(), orphans. */
	atomic { killed_cache = false; cache_serves = false; closed = false; done = false; lock = (lock == CACHE -> 0 : lock) };
#ifndef BUG_NOBODY_SETTLES
	TAKE_LOCK(CACHE);
	settle();
	claim_undo();
	d_step { done = false; lock = NONE };
#endif
	atomic {
		!child_out && child != LOWER ->
		child_put();
		off = IS_OFF;
#ifndef BUG_COPIES_ARE_KEPT
		if
		:: off || arena_epoch != epoch -> assert(copy != DIRTY); copy = NONE; data = 0
		:: else
		fi;
#endif
		arena_epoch = epoch;
		if
		:: holder == CACHE -> offered = NONE; via = NONE
		:: else
		fi;
		cache_serves = true
	};
	goto end_again
}

active proctype killer()
{
	byte left;

	select(left : 0 .. KILLS);
end_killer:
	do
	:: atomic { left > 0 && !killed_upper && !killed_cache -> left--; killed_upper = true }
	:: atomic { left > 0 && !killed_upper && !killed_cache && cache_serves -> left--; killed_cache = true }
	/* the lower peer, and its successor has taken over what was there: nobody knows any more
	 * who sent it */
	:: atomic { left > 0 && holder == LOWER -> left--; via = NONE }
	od
}

#define SAFE (copy == NONE -> store : data)

/* The lower peer is kept for one of the two at every moment, or others would get there. */
active proctype kept()
{
end_kept:
	atomic {
		!(above_lower == CACHE && route_cache == LOWER) &&
		!(above_lower == UPPER && route_upper == LOWER) -> assert(false)
	}
}

active proctype watch()
{
	timeout -> assert(asks == ASKS && sent == REQUESTS && holder == CLIENT && offered == NONE && plug == NONE && turn == NONE &&
			  lock == NONE && child == NONE && copy != DIRTY && store == written &&
			  ((route_upper == CACHE && route_cache == LOWER && above_lower == CACHE && above_cache == UPPER) ||
			   (route_upper == LOWER && IS_OFF && above_lower == UPPER && copy == NONE)))
}
