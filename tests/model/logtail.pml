/* logtail - an append-only log writes the records of its open zone to the store, while writes fail,
 * the log is killed and the power fails.
 *
 * Proves: an opening shows each promised record. A record that an opening did not show never comes
 * back. Hints that are believed name only records that are there. A record behind the length of a
 * closed zone does not show after a later promise: it was appended anew, and no tombstone counts
 * it. A bad record in a zone that was flushed hides no other record.
 *
 * The rules of the log that are tried here:
 *   L1  a FLUSH promises a prefix of the places. A successor fills the holes that a kill left
 *   L2  a failed write closes its zone at that place. The length of a closed zone is durable before
 *       anything later is promised. All behind that place is appended anew
 *   L3  nothing is appended to a zone of an earlier opening. Its length is where the scan ended
 *   L4  hints are believed if their zone was flushed, or if the arena that wrote them is there
 *
 *   step here    stands for
 *   give         a put gets the next place, notes it, and is STARTED
 *   fill         the record is copied into the tail, which survives a kill. An unforced put is
 *                answered. After a kill the successor fills the place: from the STARTED put, or by
 *                a filler record
 *   send         a page is written: its filled records, the mark, and with the zone's last record
 *                the hints
 *   land, fail   the answer. A failed write may have left any part of its page
 *   settle       the length of a closed zone becomes durable
 *   flush        a FLUSH; its answer is the promise
 *   kill         the tail survives
 *   power        the tail is lost. Of all data that no FLUSH covered, any part is left
 *   opening      hints or a scan of each zone
 *
 * A zone has three places. The first two share a page, which is written again when it has grown.
 * The third one shares its page with the hints. A place that is given again is another record.
 *
 * The mark says which zones were flushed whole, or have a durable length. It goes below with later
 * pages. An opening needs it to know whether it may believe hints after a loss of power.
 *
 * Left out: keys, copies and deletes, and a FLUSH that fails (logclean.pml); the head
 * (loghead.pml); large values, which are not in the tail; two FLUSHes at a time; a bad record in a
 * zone without hints. A FLUSH takes effect when it is sent. A loss of power before its answer is
 * the same as one before the FLUSH, as it has promised nothing yet.
 *
 * Broken rules:
 *   L1  BUG_NOT_A_PREFIX, BUG_PREFIX_AT_ANSWER, BUG_HOLE_LEFT, BUG_TWO_WRITES_OUT
 *   L2  BUG_FAILED_IS_WRITTEN, BUG_CLOSED_NOT_DURABLE, BUG_HINTS_PAST_CLOSED
 *   L3  BUG_APPEND_AFTER_RECOVERY, BUG_SEAL_NOT_DURABLE
 *   L4  BUG_HINTS_NOT_FLUSHED, BUG_MARK_NOT_FLUSHED, BUG_MARK_BEFORE_SETTLED, BUG_BAD_ENDS_ZONE
 */
#define ZONES   2
#if defined(SHORT) && !defined(BUG_TWO_WRITES_OUT) && !defined(BUG_HOLE_LEFT)
#define OUTS    1                   /* writes that may be on their way at a time */
#define FILLS   1                   /* records that are being copied at a time */
#else
#define OUTS    2
#define FILLS   2
#endif
#define PLACES  3                   /* of a zone */
#define N       (ZONES * PLACES)
#define CRASHES 2

#define ZONE(g) ((g) / PLACES)

/* A place in the store, and a zone's hints. */
#define NONE     0
#define VOLATILE 1
#define DURABLE  2

/* The arena: survives a kill. */
byte next;                          /* the next place to give */
byte acked;                         /* places below it are promised, or need not be */
byte base;                          /* the first place of this arena; older zones are durable */
bool filled[N], written[N];         /* in the tail; answered by the store */
bool anew[N];                       /* at or behind the end of a closed zone: appended anew */
byte closed[ZONES];                 /* its length; PLACES: not closed early */
byte flushed;                       /* zones below were flushed whole */

/* The store. */
byte store[N], hints[ZONES];
bool settled[ZONES];                /* closed[] is durable */
byte mark, mark_durable;            /* the highest one that has landed; that is durable */
byte bad;                           /* place + 1 of a record that the medium lost */

/* Two writes on their way: page + 1, the records in it, the mark in it. */
byte out[2], out_mark[2];
bool out_first[2], out_second[2];

/* A FLUSH on its way: places below `flush_to` are covered. */
bool flush_out;
byte flush_to;

/* Ghosts. */
bool promised[N], undone[N], late[ZONES];
byte crashes, fails;

/* Page: 0, 1 of zone 0; 2, 3 of zone 1. */
#define PAGE_OF(g)   (ZONE(g) * 2 + ((g) % PLACES == 2))
#define FIRST(page)  (((page) / 2) * PLACES + ((page) % 2) * 2)
#define HAS_TWO(page) ((page) % 2 == 0)
#define IS_OUT(page) (out[0] == (page) + 1 || out[1] == (page) + 1)

#ifdef BUG_CLOSED_NOT_DURABLE
#define SETTLED(z) true
#else
#define SETTLED(z) (closed[z] == PLACES || settled[z])
#endif
#define ALL_SETTLED (SETTLED(0) && SETTLED(1))

/* The prefix that is in the store: places below it are written, or need not be. */
inline prefix(to)
{
	to = base;
	do
	:: to < next && (written[to] || anew[to]) -> to++
	:: else -> break
	od
}

inline close_at(z, at)
{
	closed[z] = at;
	settled[z] = false;
	g = z * PLACES + at;
	do
	:: g < (z + 1) * PLACES && g < N -> anew[g] = true; g++
	:: else -> break
	od;
	if
	:: next > z * PLACES && next < (z + 1) * PLACES -> next = (z + 1) * PLACES
	:: else
	fi;
	g = 0
}

inline send()
{
	slot = out[0] != 0;
	g = FIRST(page);
	out[slot] = page + 1;
	out_first[slot] = filled[g] && !anew[g];
	out_second[slot] = HAS_TWO(page) && filled[g + 1] && !anew[g + 1];
#ifdef BUG_MARK_NOT_FLUSHED
	prefix(tmp);
	tmp = ZONE(tmp);
#else
	tmp = flushed;
#endif
#ifndef BUG_MARK_BEFORE_SETTLED
	do
	:: out_mark[slot] < tmp && SETTLED(out_mark[slot]) -> out_mark[slot]++
	:: else -> break
	od;
#else
	out_mark[slot] = tmp;
#endif
	tmp = 0;
	g = 0; page = 0; slot = 0
}

/* A record that was in the store and is not in this image of its page is overwritten. */
inline land_one(g, has)
{
	store[g] = (!has -> NONE : (store[g] == NONE -> VOLATILE : store[g]));
	written[g] = written[g] || has
}

/* If one write is out, it is the first. */
inline forget(slot)
{
	out[slot] = out[1]; out_first[slot] = out_first[1]; out_second[slot] = out_second[1];
	out_mark[slot] = out_mark[1];
	out[1] = 0; out_first[1] = false; out_second[1] = false; out_mark[1] = 0
}

inline land(slot)
{
	page = out[slot] - 1;
	z = page / 2;
	land_one(FIRST(page), out_first[slot]);
	if
	:: HAS_TWO(page) -> land_one(FIRST(page) + 1, out_second[slot])
	:: else -> hints[z] = (hints[z] == NONE -> VOLATILE : hints[z])
	fi;
	mark = (out_mark[slot] > mark -> out_mark[slot] : mark);
	forget(slot);
	page = 0; z = 0
}

/* A page that is on its way when the power fails: all may land. cut() takes away any part of it. */
inline spill(slot)
{
	if
	:: out[slot] ->
		page = out[slot] - 1;
		g = FIRST(page);
		store[g] = (out_first[slot] && store[g] == NONE -> VOLATILE : store[g]);
		if
		:: HAS_TWO(page) && out_second[slot] && store[g + 1] == NONE ->
			store[g + 1] = VOLATILE
		:: !HAS_TWO(page) && hints[page / 2] == NONE -> hints[page / 2] = VOLATILE
		:: else
		fi;
		mark = (out_mark[slot] > mark -> out_mark[slot] : mark);
		forget(slot)
	:: else
	fi;
	g = 0; page = 0
}

/* Any part of the page lands. */
inline tear(slot)
{
	page = out[slot] - 1;
	z = page / 2;
	g = FIRST(page);
	if
	:: out_first[slot] && store[g] == NONE -> store[g] = VOLATILE
	:: true
	fi;
	if
	:: HAS_TWO(page) && out_second[slot] && store[g + 1] == NONE -> store[g + 1] = VOLATILE
	:: !HAS_TWO(page) && hints[z] == NONE -> hints[z] = VOLATILE
	:: true
	fi
}

/* The zone ends before the first record of the page that had not landed. */
inline fail(slot)
{
	tear(slot);
#ifdef BUG_FAILED_IS_WRITTEN
	written[g] = written[g] || out_first[slot];
	if
	:: HAS_TWO(page) -> written[g + 1] = written[g + 1] || out_second[slot]
	:: else
	fi;
#else
	tmp = g % PLACES + (written[g] || !out_first[slot]);
	if
	:: tmp < closed[z] -> close_at(z, tmp)
	:: else
	fi;
#endif
	forget(slot);
	page = 0; z = 0; g = 0; tmp = 0; fails++
}

/* The promise covers every place below `to`. */
inline promise_to(to)
{
	g = base;
	do
	:: g < to ->
		if
		:: filled[g] && !anew[g] -> promised[g] = true; promise(g)
		:: else
		fi;
		g++
	:: else -> break
	od;
	g = 0
}

/* Promised in a zone behind a closed one: the end of that one is what it is from now on. */
inline promise(g)
{
	z = 0;
	do
	:: z < ZONE(g) -> late[z] = late[z] || closed[z] < PLACES; z++
	:: else -> break
	od;
	z = 0
}

inline flush_sent()
{
	g = 0;
	do
	:: g < N -> store[g] = (store[g] == VOLATILE -> DURABLE : store[g]); g++
	:: else -> break
	od;
	z = 0;
	do
	:: z < ZONES -> hints[z] = (hints[z] == VOLATILE -> DURABLE : hints[z]); z++
	:: else -> break
	od;
	mark_durable = mark;
	z = 0; g = 0;
	prefix(flush_to);
	flush_out = true
}

inline flush_answered()
{
#ifdef BUG_PREFIX_AT_ANSWER
	prefix(flush_to);
#endif
	promise_to(flush_to);
#ifdef BUG_NOT_A_PREFIX
	g = base;
	do
	:: g < next -> if :: store[g] == DURABLE && !anew[g] -> promised[g] = true :: else fi; g++
	:: else -> break
	od;
	g = 0;
#endif
	flushed = (ZONE(flush_to) > flushed -> ZONE(flush_to) : flushed);
	acked = flush_to;
	flush_out = false; flush_to = 0
}

/* ---- crashes ---- */

/* Nothing is appended to the zone that was open. */
inline leave_zone()
{
	if
	:: next % PLACES -> z = ZONE(next); close_at(z, next % PLACES); z = 0
	:: else
	fi
}

inline kill()
{
	forget(1);
	forget(0);
	flush_out = false; flush_to = 0;
#ifdef BUG_HOLE_LEFT
	g = base;
	do
	:: g < next -> anew[g] = anew[g] || !filled[g]; g++
	:: else -> break
	od;
	g = 0;
#endif
#ifndef BUG_APPEND_AFTER_RECOVERY
	leave_zone()
#endif
}

/* What is left: any part. */
inline cut()
{
	g = 0;
	do
	:: g < N ->
		if
		:: store[g] == VOLATILE -> store[g] = NONE
		:: store[g] == VOLATILE -> store[g] = DURABLE
		:: else
		fi;
		g++
	:: else -> break
	od;
	z = 0;
	do
	:: z < ZONES ->
		if
		:: hints[z] == VOLATILE -> hints[z] = NONE
		:: hints[z] == VOLATILE -> hints[z] = DURABLE
		:: else
		fi;
		z++
	:: else -> break
	od;
	if
	:: mark != mark_durable -> mark = mark_durable
	:: mark_durable = mark
	fi;
	g = 0; z = 0
}

/* end: the opening shows the first `end` records of zone z. */
inline look()
{
	tmp = (closed[z] < PLACES && settled[z] -> closed[z] : PLACES);
	end = 0;
	if
#ifdef BUG_HINTS_NOT_FLUSHED
	:: hints[z] == DURABLE && tmp == PLACES ->
#else
#ifdef BUG_HINTS_PAST_CLOSED
	:: hints[z] == DURABLE && z < mark ->
#else
	:: hints[z] == DURABLE && z < mark && tmp == PLACES ->
#endif
#endif
		end = PLACES;
		assert(store[z * PLACES] && store[z * PLACES + 1] && store[z * PLACES + 2]);
#ifdef BUG_BAD_ENDS_ZONE
		if
		:: bad && ZONE(bad - 1) == z -> end = (bad - 1) % PLACES
		:: else
		fi
#endif
	:: else ->
		do
		:: end < tmp && store[z * PLACES + end] -> end++
		:: else -> break
		od
	fi
}

inline judge()
{
	g = z * PLACES;
	do
	:: g < (z + 1) * PLACES ->
		if
		:: g % PLACES < end ->
			assert(!undone[g]);
			assert(!(anew[g] && late[z]));
			promised[g] = true;             /* it is durable, and was shown */
			anew[g] = false
		:: else ->
			assert(!promised[g] || bad == g + 1);
			undone[g] = true
		fi;
		g++
	:: else -> break
	od;
	g = 0
}

/* All zones that were begun. The next zone has an id that was never used. */
inline opening()
{
	g = 0;
	do
	:: g < N -> filled[g] = false; written[g] = false; g++
	:: else -> break
	od;
	g = 0; z = 0; base = 0;
	do
	:: z * PLACES < next ->
		look();
		judge();
		late[z] = false;
		if
		:: closed[z] < PLACES && settled[z] -> late[z] = true
#ifndef BUG_SEAL_NOT_DURABLE
		:: !(closed[z] < PLACES && settled[z]) && end < PLACES -> close_at(z, end)
#endif
		:: else -> closed[z] = PLACES
		fi;
		base = (z + 1) * PLACES;
		z++
	:: else -> break
	od;
#ifdef BUG_APPEND_AFTER_RECOVERY
	if
	:: base && end < PLACES ->
		z = ZONE(base - 1);
		closed[z] = PLACES;
		base = base - PLACES;
		next = base + end;
		g = base;
		do
		:: g < base + PLACES ->
			filled[g] = g < next; written[g] = g < next; anew[g] = false;
			g++
		:: else -> break
		od
	:: else -> next = base
	fi;
#else
	next = base;
#endif
	acked = base;
	flushed = ZONE(base);
	g = 0; z = 0; end = 0; tmp = 0
}

#define FULL_OR_GONE(g) (filled[g] || anew[g])
#define MAY_GIVE   (next < N && (next < FILLS || FULL_OR_GONE(next - FILLS)))
#define TO_FILL(n) (next >= base + (n) && !FULL_OR_GONE(next - (n)))

#define IS_NEW(g)  (filled[g] && !written[g] && !anew[g])
#define HAS_NEW(page) (IS_NEW(FIRST(page)) || (HAS_TWO(page) && IS_NEW(FIRST(page) + 1)))
/* A page with hints is written when its zone is complete. */
#define IS_WHOLE(page) (HAS_TWO(page) || (filled[FIRST(page) - 1] && filled[FIRST(page) - 2]))
#ifdef BUG_TWO_WRITES_OUT
#define MAY_SEND(page) (out[OUTS - 1] == 0 && HAS_NEW(page) && IS_WHOLE(page))
#else
#define MAY_SEND(page) (out[OUTS - 1] == 0 && HAS_NEW(page) && IS_WHOLE(page) && !IS_OUT(page))
#endif

#define HAS_MORE   (acked < next && (written[acked] || anew[acked]))

/* The medium loses a record of a zone that was flushed, and is known to be. */
#define MAY_LOSE   (!bad && mark_durable > 0 && hints[0] == DURABLE && closed[0] == PLACES)

active proctype log()
{
	byte g, z, page, slot, tmp, end;

	d_step {
		do
		:: z < ZONES -> closed[z] = PLACES; z++
		:: else -> break
		od;
		z = 0
	};
end_log:
	do
	:: d_step { MAY_GIVE -> undone[next] = false; next++ }
	:: d_step { TO_FILL(1) -> filled[next - 1] = true }
	:: d_step { TO_FILL(2) -> filled[next - 2] = true }
	:: d_step { MAY_SEND(0) -> page = 0; send() }
	:: d_step { MAY_SEND(1) -> page = 1; send() }
	:: d_step { MAY_SEND(2) -> page = 2; send() }
	:: d_step { MAY_SEND(3) -> page = 3; send() }
	:: d_step { out[0] -> land(0) }
	:: d_step { out[1] -> land(1) }
	:: atomic { out[0] && fails < 1 -> fail(0) }
	:: atomic { out[1] && fails < 1 -> fail(1) }
	:: d_step { closed[0] < PLACES && !settled[0] -> settled[0] = true }
	:: d_step { closed[1] < PLACES && !settled[1] -> settled[1] = true }
	:: d_step { !flush_out && HAS_MORE && ALL_SETTLED -> flush_sent() }
	:: d_step { flush_out -> flush_answered() }
	:: d_step { MAY_LOSE -> bad = 1 }
	:: d_step { MAY_LOSE -> bad = 2 }
	:: d_step { crashes < CRASHES - 1 -> crashes++; kill() }
	:: atomic { crashes++;                     /* power */
		d_step { spill(1); spill(0); flush_out = false; flush_to = 0 };
		cut();
		d_step { opening() };
		if
		:: crashes == CRASHES -> goto over
		:: else
		fi }
	od;
over:	skip
}
