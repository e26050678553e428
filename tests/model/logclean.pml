/* logclean - an append-only log copies live records out of old zones and deletes these zones, while
 * a FLUSH fails, the log is killed and the power fails.
 *
 * Proves: after a kill, each key shows the version that was answered last. After a loss of power it
 * shows the promised version or a newer one, and a promised delete stays done. One failed FLUSH is
 * not for ever: when the log has dealt with it, the next FLUSH succeeds.
 *
 * The rules of the log that are tried here:
 *   L5  a promised record is destroyed only after a FLUSH that began after the answer of the record
 *       that supersedes it (`since`)
 *   L6  a zone of which nothing was promised is deleted without a FLUSH. A FLUSH that is under way
 *       counts as a promise (`covered`)
 *   L7  the highest sequence of a key wins, and a copy keeps its sequence. A tombstone stays in the
 *       index while an undeleted zone has an older record of its key
 *   L8  after a failed FLUSH nothing is appended to a zone that was not flushed. Such a zone is
 *       sick: its live records are copied, then it is deleted
 *
 *   step here    stands for
 *   change       a put or a delete is appended and answered; the index names it
 *   copy, swap   a live record is appended again; then the index names the copy, if it still named
 *                the old record
 *   drop         a tombstone leaves the index
 *   delete       the head says durably that the zone is dying; then the object is deleted
 *   flush        a FLUSH, which takes effect when it is sent, and its answer
 *   kill         the index is lost. The arena has the tail, the zones that are sick, whether a
 *                FLUSH was under way, and the records that the last good one covered
 *   power        of each zone a prefix is left that has at least the durable records (logtail.pml)
 *   opening      the index is built anew
 *
 * Two kinds of stores fail a FLUSH. One is like filed: FLUSH answers EIO until the lost files are
 * deleted. Another one forgets, and its next FLUSH succeeds without the lost data. The log handles
 * both in one way. Copies of a sick zone are FUA writes, since no FLUSH succeeds before the zone is
 * deleted. While there is a sick zone, changes are FUA writes too. No sick zone is deleted before
 * all of them are copied. A FLUSH that was under way at a kill counts as failed.
 *
 * Left out: places and pages (logtail.pml); the head's copies (loghead.pml); eviction; expiry,
 * which makes tombstones; two FLUSHes at a time. Each id is used once, so a run ends when all zones
 * are full.
 *
 * Broken rules:
 *   L5  BUG_DELETE_BEFORE_FLUSH, BUG_ANY_FLUSH, BUG_NO_DYING_MARK, BUG_DELETE_UNDER_COPY
 *   L6  BUG_COVERED_AT_ANSWER, BUG_FUA_NOT_COVERED
 *   L7  BUG_COPY_NEW_SEQUENCE, BUG_SWAP_BLINDLY, BUG_TOMBSTONE_DROPPED, BUG_TOMBSTONE_BY_ZONE
 *   L8  BUG_FAILED_FLUSH_FORGOTTEN, BUG_FAILED_COPIES_FLUSHED, BUG_FLUSH_OUT_AT_KILL,
 *       BUG_SICK_GO_ONE_BY_ONE
 */
#define ZONES   3
#ifdef LONG
#define KEYS    2
#else
#define KEYS    1
#endif
#if defined(SHORT) && !defined(BUG_DELETE_UNDER_COPY)
#define FILLS   1                   /* zones that are filled at a time */
#else
#define FILLS   2
#endif
#define RECORDS 2                   /* of a zone */
#define N       (ZONES * RECORDS)
#define CRASHES 2
#define FAILS   1

#define ZONE(i) ((i) / RECORDS)
#define NO_COPY  255

/* Zones. */
#define UNUSED  0
#define FILLED  1                   /* is being filled */
#define SEALED  2
#define DYING   3                   /* so says the head, durably; or it is deleted */
#define DELETED 4                   /* BUG_NO_DYING_MARK: until a FLUSH it may come back */

byte state[ZONES], nr[ZONES];
byte durable[ZONES];                /* records that a power cut leaves */
byte key[N], seq[N];
bool tomb[N];

/* Of each zone, in memory. */
byte since[ZONES];                  /* 0: all is covered; 2: when the FLUSH that is out succeeds */
bool covered[ZONES];                /* it had records when a FLUSH was sent, or may have had */

/* In the arena. */
byte good[ZONES];                   /* records that the last good FLUSH covered */
bool sick[ZONES];                   /* a failed FLUSH covered it */
byte flush_out;                     /* 1: out; it will succeed; 2: it will fail */

bool lost[ZONES];                   /* the store's: what is not durable will never be */
bool forgets;                       /* the store answers the next FLUSH as if nothing was */

byte at[2];                         /* the index: record + 1, 0: none */
byte copy_of = NO_COPY, copy_at;
byte last_seq;

/* Ghosts: the newest answered version of a key, the promised one, the one that a FLUSH covers. */
byte newest[2], promised[2], sent[2];
bool newest_tomb[2], promised_tomb[2], sent_tomb[2];
byte crashes, fails;

#ifdef BUG_COPY_NEW_SEQUENCE
byte rank[N];
#define RANK(i) rank[i]
#else
#define RANK(i) seq[i]
#endif

#define IS_LIVE_ZONE(z) (state[z] == FILLED || state[z] == SEALED)
#define IS_RECORD(i)  (IS_LIVE_ZONE(ZONE(i)) && (i) % RECORDS < nr[ZONE(i)])
#define IS_INDEXED(i) (IS_RECORD(i) && at[key[i]] == (i) + 1)
#define IS_GOOD(i)    ((i) % RECORDS < good[ZONE(i)])
#define HAS_LIVE(z)   (IS_INDEXED((z) * RECORDS) || IS_INDEXED((z) * RECORDS + 1))
#define IS_SICK(z)    (sick[z] && state[z] == SEALED)

#define ANY(what)     (what(0) || what(1) || what(2))
#define MENDING       (IS_SICK(0) || IS_SICK(1) || IS_SICK(2))
#define NR_FILLED     ((state[0] == FILLED) + (state[1] == FILLED) + (state[2] == FILLED))

/* With two zones that are filled, a copy and a change may go into different ones. A FUA write makes
 * a zone durable only if all that is before it is. */
#define FITS(z) ((state[z] == FILLED && (!MENDING || good[z] == nr[z])) || \
	(state[z] == UNUSED && NR_FILLED < FILLS && ((z) == 0 || state[(z) - 1] != UNUSED)))

#define FOR_ZONES z = 0; do :: z < ZONES ->
#define END_ZONES z++ :: else -> z = 0; break od

/* t: any zone that fits. There is one. */
inline choose_target()
{
	d_step {
		last = ZONES - 1;
		do
		:: FITS(last) -> break
		:: else -> last--
		od;
		t = 0
	};
	do
	:: FITS(t) -> break
	:: t < last -> t++
	od;
	last = 0
}

inline append(k, s, is_tomb)
{
	fua = MENDING;
	i = t * RECORDS + nr[t];
	key[i] = k; seq[i] = s; tomb[i] = is_tomb;
	nr[t]++;
	state[t] = (nr[t] == RECORDS -> SEALED : FILLED);
	if
	:: fua ->
		durable[t] = nr[t]; good[t] = nr[t];
#ifndef BUG_FUA_NOT_COVERED
		covered[t] = true
#endif
	:: else
	fi
}

/* Record i supersedes the record that the index names. */
inline supersede(k)
{
	if
	:: at[k] && !IS_GOOD(i) -> since[ZONE(at[k] - 1)] = 1
	:: else
	fi;
	at[k] = i + 1
}

inline change()
{
	last_seq++;
	append(k, last_seq, is_tomb);
#ifdef BUG_COPY_NEW_SEQUENCE
	rank[i] = last_seq;
#endif
	supersede(k);
	newest[k] = last_seq; newest_tomb[k] = is_tomb;
	if
	:: fua -> promised[k] = last_seq; promised_tomb[k] = is_tomb
	:: else
	fi;
	i = 0; k = 0; t = 0; is_tomb = false; fua = false
}

inline copy()
{
	append(key[from], seq[from], tomb[from]);
#ifdef BUG_COPY_NEW_SEQUENCE
	rank[i] = rank[from];
#endif
	copy_of = from; copy_at = i;
	i = 0; from = 0; t = 0; fua = false
}

inline swap()
{
	k = key[copy_of];
	i = copy_at;
#ifdef BUG_COPY_NEW_SEQUENCE
	last_seq++;
	rank[i] = last_seq;
#endif
#ifdef BUG_SWAP_BLINDLY
	supersede(k);
#else
	if
	:: at[k] == copy_of + 1 -> supersede(k)
	:: else
	fi;
#endif
	if
	:: at[k] == i + 1 && IS_GOOD(i) ->
		promised[k] = newest[k]; promised_tomb[k] = newest_tomb[k]
	:: else
	fi;
	copy_of = NO_COPY; copy_at = 0; i = 0; k = 0
}

/* Record i is an older one of the key of record j, whose tombstone has to stay then. */
#ifdef BUG_TOMBSTONE_BY_ZONE
#define IS_OLDER(i, j) (IS_RECORD(i) && key[i] == key[j] && RANK(i) < RANK(j) && ZONE(i) < ZONE(j))
#else
#define IS_OLDER(i, j) (IS_RECORD(i) && key[i] == key[j] && RANK(i) < RANK(j))
#endif
#define HAS_OLDER(j) (IS_OLDER(0, j) || IS_OLDER(1, j) || IS_OLDER(2, j) || IS_OLDER(3, j) || \
	IS_OLDER(4, j) || IS_OLDER(5, j))
#ifdef BUG_TOMBSTONE_DROPPED
#define MAY_DROP(k)  (copy_of == NO_COPY && at[k] && tomb[at[k] - 1])
#else
#define MAY_DROP(k)  (copy_of == NO_COPY && at[k] && tomb[at[k] - 1] && !HAS_OLDER(at[k] - 1))
#endif

/* ---- FLUSH ---- */

#define IS_UNFLUSHED(z) (IS_LIVE_ZONE(z) && nr[z] > durable[z])
#define IS_LOST(z)      (IS_LIVE_ZONE(z) && lost[z])
#define HAS_TARGET      ANY(FITS)
#if defined(BUG_FAILED_COPIES_FLUSHED)
#define MAY_FLUSH (!flush_out && ANY(IS_UNFLUSHED) && !(ANY(HAS_SICK_LIVE)))
#else
#define MAY_FLUSH (!flush_out && ANY(IS_UNFLUSHED) && !MENDING)
#endif
#define HAS_SICK_LIVE(z) (IS_SICK(z) && HAS_LIVE(z))

inline flush_sent(how)
{
	assert(how == 2 || forgets || !ANY(IS_LOST));
	FOR_ZONES
		if
		:: IS_UNFLUSHED(z) && how == 1 && !lost[z] -> durable[z] = nr[z]
		:: IS_UNFLUSHED(z) && how == 2 -> lost[z] = true
		:: else
		fi;
		state[z] = (state[z] == DELETED && how == 1 -> DYING : state[z]);
#ifndef BUG_COVERED_AT_ANSWER
		covered[z] = covered[z] || nr[z];
#endif
		since[z] = (since[z] == 1 -> 2 : since[z]);
	END_ZONES;
	sent[0] = newest[0]; sent_tomb[0] = newest_tomb[0];
	sent[1] = newest[1]; sent_tomb[1] = newest_tomb[1];
	flush_out = how
}

/* All that is not known to be durable is in a zone that nothing is appended to any more. */
inline make_sick()
{
	sick[z] = sick[z] || (IS_LIVE_ZONE(z) && nr[z] > good[z]);
	state[z] = (sick[z] && state[z] == FILLED -> SEALED : state[z])
}

inline flush_answered()
{
	FOR_ZONES
		if
		:: flush_out == 1 ->
			good[z] = durable[z];
#ifdef BUG_COVERED_AT_ANSWER
			covered[z] = covered[z] || nr[z];
#endif
#ifdef BUG_ANY_FLUSH
			since[z] = 0
#else
			since[z] = (since[z] == 2 -> 0 : since[z])
#endif
		:: else ->
			since[z] = (since[z] == 2 -> 1 : since[z]);
#ifndef BUG_FAILED_FLUSH_FORGOTTEN
			make_sick()
#endif
		fi;
	END_ZONES;
	if
	:: flush_out == 1 ->
		promised[0] = sent[0]; promised_tomb[0] = sent_tomb[0];
		promised[1] = sent[1]; promised_tomb[1] = sent_tomb[1]
	:: else
	fi;
	sent[0] = 0; sent[1] = 0; sent_tomb[0] = false; sent_tomb[1] = false;
	flush_out = 0
}

/* ---- deletion ---- */

#ifdef BUG_DELETE_BEFORE_FLUSH
#define IS_COVERED(z) true
#else
#define IS_COVERED(z) (!covered[z] || since[z] == 0)
#endif
#ifdef BUG_SICK_GO_ONE_BY_ONE
#define MAY_GO_SICK(z) true
#else
#define MAY_GO_SICK(z) (!ANY(HAS_SICK_LIVE))
#endif
/* The index does not name a copy yet whose swap is to come. */
#ifdef BUG_DELETE_UNDER_COPY
#define IS_IN_COPY(z) false
#else
#define IS_IN_COPY(z) (copy_of != NO_COPY && (ZONE(copy_of) == (z) || ZONE(copy_at) == (z)))
#endif
#define MAY_DELETE(z) (state[z] == SEALED && !HAS_LIVE(z) && !IS_IN_COPY(z) && \
	((sick[z] && MAY_GO_SICK(z)) || (!sick[z] && IS_COVERED(z))))

/* What is not there any more is the same in all states. */
inline wipe(z)
{
	i = z * RECORDS + nr[z];
	do
	:: i < (z + 1) * RECORDS ->
		key[i] = 0; seq[i] = 0; tomb[i] = false;
		i++
	:: else -> i = 0; break
	od
}

inline delete(z)
{
#ifdef BUG_NO_DYING_MARK
	state[z] = DELETED;
#else
	state[z] = DYING;
	nr[z] = 0; durable[z] = 0; good[z] = 0;
	wipe(z);
#endif
	since[z] = 0; covered[z] = false; sick[z] = false; lost[z] = false;
	forgets = forgets && ANY(IS_LOST)
}

/* ---- crashes ---- */

/* Record and copy have the same sequence: either may be found. */
#define WINS(i, j) (RANK(i) > RANK(j) || (tie && RANK(i) == RANK(j)))

inline rebuild()
{
	k = 0;
	do
	:: k < KEYS ->
		at[k] = 0;
		i = 0;
		do
		:: i < N ->
			if
			:: IS_RECORD(i) && key[i] == k ->
				if
				:: at[k] == 0 -> at[k] = i + 1
				:: at[k] && WINS(i, at[k] - 1) -> at[k] = i + 1
				:: else
				fi
			:: else
			fi;
			i++
		:: else -> break
		od;
		k++
	:: else -> break
	od;
	i = 0; k = 0
}

inline forget()
{
	copy_of = NO_COPY; copy_at = 0; flush_out = 0;
	sent[0] = 0; sent[1] = 0; sent_tomb[0] = false; sent_tomb[1] = false
}

#define SHOWN(k) (at[k] -> seq[at[k] - 1] : 0)

inline kill()
{
	FOR_ZONES
#ifndef BUG_FLUSH_OUT_AT_KILL
		if
		:: flush_out -> make_sick()
		:: else
		fi;
#endif
		state[z] = (state[z] == FILLED -> SEALED : state[z]);
		if
		:: IS_LIVE_ZONE(z) -> since[z] = 1; covered[z] = true
		:: else
		fi;
	END_ZONES;
	forget();
	rebuild();
	assert(SHOWN(0) == newest[0] || (newest_tomb[0] && SHOWN(0) == 0));
	assert(SHOWN(1) == newest[1] || (newest_tomb[1] && SHOWN(1) == 0))
}

/* How much of each zone is left. */
inline cut()
{
	FOR_ZONES
		do
		:: IS_LIVE_ZONE(z) && nr[z] > durable[z] -> nr[z]--
		:: durable[z] = nr[z]; break
		od;
		if
		:: state[z] == DELETED -> state[z] = SEALED
		:: state[z] == DELETED -> state[z] = DYING
		:: else
		fi;
	END_ZONES
}

inline judge(k)
{
	assert(SHOWN(k) >= promised[k] || (promised_tomb[k] && SHOWN(k) == 0));
	if
	:: at[k] -> promised[k] = SHOWN(k); promised_tomb[k] = tomb[at[k] - 1]
	:: else
	fi;
	newest[k] = promised[k]; newest_tomb[k] = promised_tomb[k]
}

inline power()
{
	FOR_ZONES
		state[z] = (state[z] == FILLED -> SEALED : state[z]);
		wipe(z);
		good[z] = nr[z]; sick[z] = false; lost[z] = false; since[z] = 0;
		covered[z] = IS_LIVE_ZONE(z);
	END_ZONES;
	forgets = false;
	forget();
	rebuild();
	judge(0);
	judge(1)
}

/* After the last crash nothing is of interest: one end state. */
inline finish()
{
	FOR_ZONES
		nr[z] = 0; state[z] = UNUSED; durable[z] = 0; good[z] = 0; covered[z] = false;
		wipe(z);
	END_ZONES;
	at[0] = 0; at[1] = 0; newest[0] = 0; newest[1] = 0; promised[0] = 0; promised[1] = 0;
	promised_tomb[0] = false; promised_tomb[1] = false;
	newest_tomb[0] = false; newest_tomb[1] = false;
	last_seq = 0; fails = 0
}

#define MAY_COPY(i) (HAS_TARGET && copy_of == NO_COPY && IS_INDEXED(i) && state[ZONE(i)] == SEALED)
#define IS_VALUE(k) (at[k] && !tomb[at[k] - 1])

active proctype log()
{
	byte i, k, t, z, from, last;
	bool fua, is_tomb, tie;

end_log:
	do
	:: atomic { HAS_TARGET -> k = 0; choose_target(); d_step { change() } }
	:: atomic { HAS_TARGET && IS_VALUE(0) -> k = 0; is_tomb = true; choose_target();
		d_step { change() } }
#if KEYS == 2
	:: atomic { HAS_TARGET && last_seq -> k = 1; choose_target(); d_step { change() } }
	:: atomic { HAS_TARGET && IS_VALUE(1) -> k = 1; is_tomb = true; choose_target();
		d_step { change() } }
#endif
	:: atomic { MAY_COPY(0) -> from = 0; choose_target(); d_step { copy() } }
	:: atomic { MAY_COPY(1) -> from = 1; choose_target(); d_step { copy() } }
	:: atomic { MAY_COPY(2) -> from = 2; choose_target(); d_step { copy() } }
	:: atomic { MAY_COPY(3) -> from = 3; choose_target(); d_step { copy() } }
	:: d_step { copy_of != NO_COPY -> swap() }
	:: d_step { MAY_DROP(0) -> at[0] = 0 }
	:: d_step { MAY_DROP(1) -> at[1] = 0 }
	:: d_step { MAY_DELETE(0) -> delete(0) }
	:: d_step { MAY_DELETE(1) -> delete(1) }
	:: d_step { MAY_DELETE(2) -> delete(2) }
	:: d_step { MAY_FLUSH -> flush_sent(1) }
	:: d_step { MAY_FLUSH && fails < FAILS -> fails++; flush_sent(2) }
	:: d_step { MAY_FLUSH && fails < FAILS -> fails++; forgets = true; flush_sent(2) }
	:: d_step { flush_out -> flush_answered() }
	:: atomic { crashes < CRASHES - 1 ->
		crashes++;
		d_step { kill() } }
	:: atomic { crashes++;
		cut();
		if
		:: tie = true
		:: tie = false
		fi;
		d_step { power(); tie = false };
		if
		:: crashes == CRASHES -> d_step { finish() }; goto over
		:: else
		fi }
	od;
over:	skip
}
