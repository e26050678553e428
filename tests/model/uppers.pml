/* uppers - a cache enters below several upper peers at one moment, and leaves again.
 *
 * Proves, whoever of the cache and the upper peers is killed between any two stores: no request is
 * refused, as sent to a cache that is off the path, or past one that has the lower peer to itself;
 * none is served by the lower peer while the cache has a copy; all routes are switched, or none; an
 * upper peer that is dead for ever stops no other one; and what was begun is ended or undone.
 * plug.pml has the rest: what one upper peer and the cache do with requests, copies and claims.
 *
 *   step here         stands for (xseg/plug.c, and where it says so others)
 *   ask               xseg_plug, xseg_unplug: one store of `plug`
 *   join              xseg_route_set (route.c): a peer begins to send to the lower peer; it waits
 *                     while the others are asked, and is refused where the cache has it
 *   call              xseg_plug_call: turn = ASKED of each, one store after the other; or of none,
 *                     while one of them is dead and has not held before
 *   hold, mind        xseg_turn_hold, xseg_turn_mind
 *   claim, decide     xseg_plug_claim; the store of PLUG_DECIDED in xseg_plug_switch
 *   settle            xs_plug_settle: by the cache, its successor, an upper peer, or who joins
 *
 * UPPERS upper peers; the last one has a route from the beginning, or joins. Each sends REQUESTS
 * requests of its own, one at a time. The cache's copy is none, clean or dirty.
 *
 * Abstracted: what is in requests; the client; requests that the cache sends; several ports; memory
 * order.
 *
 * What it says about the code:
 *  - that a newcomer waits while others hold is not needed here: the upper peers are looked at again
 *    under the lock at each step. It keeps the pause short.
 *
 * Broken rules: BUG_ONE_HOLDS, BUG_NOBODY_STORES_THE_REST, BUG_LET_GO_FIRST, BUG_SUCCESSOR_SENDS,
 * BUG_HELD_WITH_REQUESTS_BELOW, BUG_STANDS_FOR_A_DEAD_ONE, BUG_SET_OF_THE_COMMAND
 */
#ifdef LONG
#define UPPERS   3
#else
#define UPPERS   2
#endif
#define REQUESTS 1
#define KILLS    1
#define ASKS     2

#define NONE     0
#define CACHE    1
#define LOWER    2

#define ENTER    1
#define LEAVE    2
#define ASKED    1
#define HELD     2
#define NO_LOCK  255
#define OF_CACHE 100

#define CLEAN    1
#define DIRTY    2

#define IDLE     0
#define OFFERED  1
#define AT       2

/* The words. `plug` and `decided` are one. */
byte plug;
bool decided;
byte turn[UPPERS], turn_gen[UPPERS], gen[UPPERS], route[UPPERS];
byte route_cache;
bool kept;                          /* above of the lower peer names the cache */
bool begun, cache_serves = true;
bool dead[UPPERS], killed[UPPERS], killed_cache;
bool for_ever;                      /* one of them stays dead */
byte lock = NO_LOCK;

byte req[UPPERS], dest[UPPERS];     /* a request of each, and where it was offered */
byte sent[UPPERS];
byte copy;

byte asks;                          /* ghosts */
#ifdef BUG_SET_OF_THE_COMMAND
bool listed[UPPERS];
#define IS_LISTED(i) listed[i]
#else
#define IS_LISTED(i) true
#endif

#define BEFORE    (plug == ENTER -> LOWER : CACHE)
#define AFTER     (plug == ENTER -> CACHE : LOWER)
#define IN(i)     (plug != NONE && route[i] == BEFORE && IS_LISTED(i))
#define IS_UPPER(i) (IN(i) || (plug != NONE && decided && route[i] == AFTER))
#define HOLDS(i)  (turn[i] == HELD && turn_gen[i] == gen[i])
#define IS_OFF    (route_cache == NONE)
#define IS_KEPT   (kept && route_cache == LOWER)
#define AWAY(i)   (IN(i) && dead[i] && !HOLDS(i))

#if UPPERS == 3
#define ANY(what)  (what(0) || what(1) || what(2))
#define EACH(what) what(0) what(1) what(2)
#else
#define ANY(what)  (what(0) || what(1))
#define EACH(what) what(0) what(1)
#endif
#define LACKS(i)    (IN(i) && !HOLDS(i))
#define IS_HELD_(i) (IN(i) && HOLDS(i))
#define UNASKED(i)  (IN(i) && turn[i] == NONE)
#define IS_ASKED(i) (turn[i] != NONE)
#define SENDS_TO_CACHE(i) (route[i] == CACHE)
#define SENDS_TO_LOWER(i) (route[i] == LOWER)

#define AT_CACHE(i) (req[i] == AT && dest[i] == CACHE)
#define AT_LOWER(i) (req[i] == AT && dest[i] == LOWER)

#ifdef BUG_ONE_HOLDS
#define ALL_HOLD ANY(IS_HELD_)
#else
#define ALL_HOLD (ANY(IS_HELD_) && !ANY(LACKS))
#endif

/* ---- under the lock; i and done are the caller's ---- */

inline turns_clear()
{
	i = 0;
	do
	:: i < UPPERS -> atomic { turn[i] = NONE; turn_gen[i] = 0; i++ }
	:: i == UPPERS -> break
	od
}

inline settle()
{
	done = decided;
	if
	:: done ->
#ifdef BUG_LET_GO_FIRST
		turns_clear();
#endif
		i = 0;
		do
		:: i < UPPERS ->
			atomic {
				route[i] = (IN(i) -> AFTER : route[i]);
				i++
			}
		:: i == UPPERS -> break
		od;
		if
		:: plug == LEAVE -> route_cache = NONE
		:: else
		fi;
		turns_clear();
		atomic { plug = NONE; decided = false; i = 0 }
	:: else
	fi
}

/* Of what was not decided. */
inline claim_undo()
{
	if
	:: plug == ENTER -> route_cache = NONE
	:: else
	fi
}

/* ---- who asks ---- */

active proctype command()
{
end_command:
	do
	:: atomic {
		asks < ASKS && begun && lock == NO_LOCK && plug == NONE && !ANY(IS_ASKED) && cache_serves &&
		(!IS_OFF || ANY(SENDS_TO_LOWER)) ->
		plug = (IS_OFF -> ENTER : LEAVE);
#ifdef BUG_SET_OF_THE_COMMAND
		listed[0] = route[0] == BEFORE;
		listed[1] = route[1] == BEFORE;
#if UPPERS == 3
		listed[2] = route[2] == BEFORE;
#endif
#endif
		asks++ }
	:: asks == ASKS -> break
	od
}

/* ---- an upper peer ---- */

proctype upper(byte me)
{
	byte to, i;
	bool holds, done;

end_again:
	{
end_upper:
		do
		/* one that begins to send to the lower peer */
		:: atomic { route[me] == NONE && !IS_KEPT && !(ANY(IS_ASKED) && plug == ENTER) && lock == NO_LOCK -> lock = me };
		   settle();
		   atomic {
			if
			:: !IS_KEPT -> route[me] = LOWER
			:: else
			fi;
			lock = NO_LOCK
		   }
		:: atomic { !holds && route[me] != NONE && req[me] == IDLE && sent[me] < REQUESTS -> to = route[me] };
		   atomic { req[me] = OFFERED; dest[me] = to; to = NONE; sent[me]++ }
		:: turn[me] != NONE && !holds -> holds = true
		:: turn[me] == NONE && holds -> holds = false
		:: atomic { holds && turn[me] != NONE && !HOLDS(me) && IS_UPPER(me) &&
#ifndef BUG_HELD_WITH_REQUESTS_BELOW
			req[me] == IDLE &&
#endif
			lock == NO_LOCK -> turn[me] = HELD; turn_gen[me] = gen[me] }
		:: atomic { holds && turn[me] != NONE && (!IS_UPPER(me) || !cache_serves) && lock == NO_LOCK -> lock = me };
		   if
		   :: IS_UPPER(me) && !cache_serves ->
#ifdef BUG_NOBODY_STORES_THE_REST
			done = false;
#else
			settle();
#endif
			if
			:: !done -> claim_undo()
			:: else
			fi
		   :: else
		   fi;
		   atomic { turn[me] = NONE; turn_gen[me] = 0; done = false; i = 0; lock = NO_LOCK }
		od
	} unless { killed[me] };
	atomic {
		killed[me] = false; dead[me] = true; to = NONE; done = false; i = 0; holds = false;
		lock = (lock == me -> NO_LOCK : lock)
	};
	/* Its successor begins with the gate closed (gate_open_peer), if it is asked. */
end_dead:
	atomic {
		!for_ever ->
		gen[me]++; dead[me] = false;
#ifndef BUG_SUCCESSOR_SENDS
		holds = turn[me] != NONE
#endif
	};
	goto end_again
}

/* ---- the lower peer ---- */

#define ACCEPTS(i) :: atomic { req[i] == OFFERED && dest[i] == LOWER -> req[i] = AT; assert(!IS_KEPT) }
#define SERVES(i)  :: atomic { AT_LOWER(i) -> assert(copy == NONE || (IS_OFF && copy != DIRTY)); req[i] = IDLE; dest[i] = NONE }

active proctype lower()
{
end_lower:
	do
	EACH(ACCEPTS)
	EACH(SERVES)
	od
}

/* ---- the cache ---- */

#define TAKES(i) :: atomic { !closed && req[i] == OFFERED && dest[i] == CACHE -> assert(!off); req[i] = AT }
#define READS(i) :: atomic { AT_CACHE(i) -> copy = (copy == NONE -> CLEAN : copy); req[i] = IDLE; dest[i] = NONE }
#define WRITES(i) :: atomic { AT_CACHE(i) -> copy = DIRTY; req[i] = IDLE; dest[i] = NONE }

active proctype cache()
{
	byte i;
	bool off, closed, done;

	atomic { begun -> off = IS_OFF };
end_again:
	{
end_cache:
		do
		EACH(TAKES)
		EACH(READS)
		EACH(WRITES)
		:: !off && copy == DIRTY -> copy = CLEAN
		/* call */
		:: atomic { !closed && ANY(UNASKED) && !decided && !ANY(AWAY) && (plug == ENTER || copy != DIRTY) && lock == NO_LOCK -> lock = OF_CACHE; i = 0 };
		   do
		   :: i < UPPERS ->
			atomic {
				turn[i] = (UNASKED(i) -> ASKED : turn[i]);
				i++
			}
		   :: i == UPPERS -> break
		   od;
		   atomic { i = 0; lock = NO_LOCK }
#ifndef BUG_STANDS_FOR_A_DEAD_ONE
		:: atomic { !closed && ANY(AWAY) && ANY(IS_ASKED) && lock == NO_LOCK -> lock = OF_CACHE };
		   turns_clear();
		   atomic { i = 0; lock = NO_LOCK }
#endif
		/* leaving: prove, decide */
		:: atomic { !closed && !off && plug == LEAVE && ALL_HOLD -> closed = true }
		:: atomic { closed && !off && !ANY(AT_CACHE) && lock == NO_LOCK -> lock = OF_CACHE };
		   if
		   :: plug == LEAVE && ALL_HOLD && copy != DIRTY ->
			off = true;
			decided = true;
			settle()
		   :: plug == LEAVE && copy == DIRTY -> turns_clear()
		   :: else
		   fi;
		   atomic { copy = (off -> NONE : copy); done = false; closed = false; i = 0; lock = NO_LOCK }
		/* entering: claim, decide */
		:: atomic { !closed && off && IS_OFF && plug == ENTER && ALL_HOLD && lock == NO_LOCK -> lock = OF_CACHE };
		   if
		   :: plug == ENTER && ALL_HOLD -> route_cache = LOWER; kept = true; closed = true
		   :: else
		   fi;
		   lock = NO_LOCK
		:: atomic { closed && off && !ANY(AT_LOWER) && lock == NO_LOCK -> lock = OF_CACHE };
		   if
		   :: plug == ENTER && ALL_HOLD && !IS_OFF ->
			off = false;
			decided = true;
			settle()
		   :: else ->
			settle();
			if
			:: !done -> claim_undo(); turns_clear()
			:: else
			fi
		   fi;
		   atomic { done = false; closed = false; i = 0; lock = NO_LOCK }
		od
	} unless { killed_cache };
	/* Dead. Its successor settles before it serves; it has its copies, if it has its route. */
	atomic {
		killed_cache = false; cache_serves = false; closed = false; done = false; i = 0;
		lock = (lock == OF_CACHE -> NO_LOCK : lock)
	};
	atomic { lock == NO_LOCK -> lock = OF_CACHE };
#ifndef BUG_NOBODY_STORES_THE_REST
	settle();
#endif
	claim_undo();
	atomic {
		done = false; i = 0; lock = NO_LOCK;
		off = IS_OFF;
		assert(!off || copy != DIRTY);
		copy = (off -> NONE : copy);
		cache_serves = true
	};
	goto end_again
}

active proctype killer()
{
	byte left = KILLS;

	begun;
end_killer:
	do
	:: left > 0 ->
		if
		:: atomic { cache_serves && !killed_cache -> killed_cache = true; left-- }
		:: atomic { !dead[0] && !killed[0] -> killed[0] = true; left-- }
		:: atomic { !dead[1] && !killed[1] -> killed[1] = true; left-- }
		:: atomic { !dead[1] && !killed[1] && !for_ever -> killed[1] = true; for_ever = true; left = 0 }
		:: left = 0
		fi
	:: left == 0 -> break
	od
}

init {
	atomic {
		byte i = 0;

		if
		:: route_cache = LOWER; kept = true
		:: route_cache = NONE
		fi;
		do
		:: i < UPPERS -> route[i] = (route_cache == NONE -> LOWER : CACHE); i++
		:: i == UPPERS -> break
		od;
		if
		:: route_cache == NONE -> route[UPPERS - 1] = NONE
		:: true
		fi;
		i = 0;
		do
		:: i < UPPERS -> run upper(i); i++
		:: i == UPPERS -> break
		od;
		begun = true
	}
}

#define IS_DONE(i) (dead[i] || route[i] == NONE || (sent[i] == REQUESTS && req[i] == IDLE && turn[i] == NONE))

active proctype watch()
{
	timeout -> assert(lock == NO_LOCK);
	assert(IS_DONE(0) && IS_DONE(1) && IS_DONE(UPPERS - 1));
	assert(for_ever || (plug == NONE && asks == ASKS && copy != DIRTY));
	assert(plug != NONE || (!(ANY(SENDS_TO_CACHE) && (IS_OFF || ANY(SENDS_TO_LOWER)))))
}
