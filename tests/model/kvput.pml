/* kvput - kvd makes changes and answers them, while it is killed and the log is read anew.
 *
 * Proves: a change that is answered with success was made once, and its answer is that of the
 * record in the log. A change that is refused was not made. A batch is made as a whole. A forced
 * change, and all changes that a FLUSH covers, are durable when they are answered. No request waits
 * for ever. A change that was answered with EIO was made once or never, and the client's retry is
 * a change of its own. A value that shows is not undone by a kill.
 *
 * The rules of kvd that are tried here:
 *   C1  the outcome and the notes are written before STARTED, and STARTED before the append. By the
 *       notes a successor finds out whether the record is there. If so, it only answers
 *   C2  conditions and old values are those of the step that appends
 *   C3  an answer that promises something waits for its position, in each successor anew
 *   G2, G4 of paged.c: the record of an ADD by pages shows when it is written; a kill before undoes
 *       it. Other changes of the key wait meanwhile
 *
 *   step here      stands for
 *   read_old       a read of the old record for INCR (look_at). Meanwhile others may change the key
 *   decide         the begin of the step: the condition is judged by the index (try_change)
 *   next_part      outcome, notes, STARTED, append, answer: kvd does nothing else between these
 *                  (make), and may be killed between any two of them
 *   show_value     the pages of an ADD by pages are written: the index has it (show_written)
 *   finish         a change that a predecessor had begun, and whose record is there (finish_begun)
 *   write, flush   pages go below; a FLUSH below covers all that was written when it was sent
 *   kill           the log's end, and the requests with their states and notes, survive
 *   lose           the store has lost what it had answered. The log is read anew (reopen)
 *   retry          the client puts again what was answered with EIO, in the same request
 *
 * A position is the number of a record. After a kill the log gives positions anew that were noted
 * and not filled. The epoch stands for zone and sequence, which no two openings share. A loss of
 * power is no step: each promise must be durable when it is made.
 *
 * The first record is of an earlier process. It is in the store, and perhaps not durable.
 *
 * Left out: how the log keeps its promises (logtail.pml, logclean.pml); copies of a record that is
 * not written from its client's pages; expiry; the order of the waiting changes; a client that dies.
 *
 * Broken rules:
 *   C1  BUG_NOTED_LATE, BUG_STARTED_LATE, BUG_STARTED_EARLY, BUG_OUTCOME_LATE, BUG_ANSWERED_EARLY,
 *       BUG_STARTED_IS_REDONE, BUG_STARTED_IS_DONE, BUG_APPLIED_IS_REDONE, BUG_ZONE_NOT_NOTED,
 *       BUG_BATCH_ONE_BY_ONE, BUG_LOST_IS_ANSWERED
 *   C2  BUG_FACT_OF_ANOTHER
 *   C3  BUG_FORCED_IS_WRITTEN, BUG_APPLIED_IS_ANSWERED, BUG_LEFT_IS_STABLE,
 *       BUG_FLUSH_OF_WRITTEN, BUG_FLUSH_BELIEVES_STABLE
 *   G2  BUG_SHOWN_EARLY, BUG_PAGED_ANSWERED_EARLY
 *   G4  BUG_OTHERS_PASS
 */
#define CHANGES 2
#if defined(SHORT) && !defined(BUG_STARTED_EARLY) && !defined(BUG_ZONE_NOT_NOTED)
#define FAULTS  1                   /* kills and losses */
#else
#ifdef LONG
#define FAULTS  3
#else
#define FAULTS  2
#endif
#endif
#define PLACES  5
#define NO_PLACE 15
#define ABSENT   14                  /* read_of: there was no record to read */

/* States of a request. */
#define FREE     0
#define AT       1
#define STARTED  2
#define APPLIED  3
#define ANSWERED 4
#define FAILED   5                  /* answered with EIO */

/* A batch puts both keys, if A is absent. The others are of A alone. */
#define ADD    0
#define INCR   1
#define DELETE 2
#define BATCH  3
#define PAGED  4                    /* an ADD whose value is lent to the log */

#define NO_KEY 0
#define A      1
#define B      2

/* When a change is answered. */
#define IN_TAIL 0
#define WRITTEN 1
#define STABLE  2

/* The segment: requests survive a kill. */
byte state[CHANGES], kind[CHANGES], sync[CHANGES];
byte outcome[CHANGES];              /* the new value + 1 */
byte note[CHANGES], note_epoch[CHANGES];
byte flush_state;
/* The log, with its end and its positions in the arena. A value of 0: the key is absent. */
byte key[PLACES], value[PLACES], epoch_of[PLACES];
byte end, written, stable, epoch;

/* Memory of kvd. */
byte part, now, made;               /* the step: its part, its change, the new value */
bool found[CHANGES];                /* begun by a predecessor, and its record is there */
byte read_of[CHANGES];              /* the place of the old record, once it was read */
byte waits_for[CHANGES], flush_waits_for;
bool barrier, barrier_sent;
bool on_way;                        /* change 0 is PAGED, and appended; the index does not show it */
byte lent_at;                       /* the place of its record, as long as that may be undone */

/* The peer below. */
bool flush_out, old_is_durable;
byte flush_to, durable;

/* Ghosts: the attempt that made a record; changes that were answered with success; those of them
 * that a FLUSH covers; the client's retries. */
byte by[PLACES];
bool succeeded[CHANGES], covered[CHANGES], retried[CHANGES];
bool shown;                         /* the PAGED one was */
byte faults;

#define OLD       15
#define ME(r)     ((r) * 2 + retried[r] + 1)
#define NR(r)     (kind[r] == BATCH -> 2 : 1)
#define IS_OF_KEY(n, k) (key[n] == (k) && !(on_way && (n) == lent_at))
/* A successor finds no record whose pages are the client's. */
#define IS_LENT (lent_at < end && written <= lent_at)

/* Parts of the step, in the order in which kvd does them. */
#define DO_OUTCOME 1
#define DO_NOTE    2
#define DO_START   3
#define DO_APPEND  4
#define DO_SECOND  5                /* of a batch whose records are appended one by one */
#define DO_ANSWER  6

/* at: the place of the last record of A before `to`, or NO_PLACE; old: its value. */
inline find(to)
{
	at = NO_PLACE; old = 0; n = 0;
	do
	:: n < to ->
		if
		:: IS_OF_KEY(n, A) -> at = n; old = value[n]
		:: else
		fi;
		n++
	:: else -> break
	od;
	n = 0
}

/* nr: how many records this attempt has made; first: the place of the first. */
inline count(r)
{
	nr = 0; first = NO_PLACE; n = 0;
	do
	:: n < end ->
		if
		:: by[n] == ME(r) && key[n] != NO_KEY ->
			first = (nr -> first : n);
			nr++
		:: else
		fi;
		n++
	:: else -> break
	od;
	n = 0
}

#define MAY_BE(r, v) ((kind[r] == ADD || kind[r] == BATCH || kind[r] == PAGED) && !(v) || \
	(kind[r] == INCR || kind[r] == DELETE) && (v))
#define NEW(r, v) (kind[r] == INCR -> (v) + 1 : (kind[r] == DELETE -> 0 : 1))

inline is_over(r)
{
	state[r] = ANSWERED; waits_for[r] = 0; found[r] = false; read_of[r] = NO_PLACE;
	kind[r] = 0; sync[r] = 0; outcome[r] = 0; note[r] = NO_PLACE; note_epoch[r] = 0;
	nr = 0; first = 0
}

/* Success: the log has it once, at a place where it could be made, and the client is told so. */
inline answer(r)
{
	count(r);
	assert(nr == NR(r));
	find(first);
	assert(MAY_BE(r, old));
	assert(value[first] == NEW(r, old));
	assert(outcome[r] == value[first] + 1);
	assert(sync[r] != STABLE || first + nr <= durable);
	at = 0; old = 0;
	succeeded[r] = true;
	is_over(r)
}

/* It was not made: the condition is not met, or the log is full. */
inline refuse(r)
{
	count(r);
	assert(!nr);
	is_over(r)
}

/* The record is in the log. */
inline promise(r)
{
	found[r] = false;
	if
	:: sync[r] == IN_TAIL -> answer(r)
	:: else -> state[r] = APPLIED; waits_for[r] = end
	fi
}

/* ---- the step ---- */

#ifdef BUG_OTHERS_PASS
#define MEETS(r)     (on_way && r == 0)
#else
#define MEETS(r)     on_way
#endif
#define IS_ASKED(r)  ((state[r] == AT || state[r] == STARTED) && !found[r] && !part && !MEETS(r))
#define MAY_READ(r)  (IS_ASKED(r) && kind[r] == INCR && read_of[r] == NO_PLACE)

inline read_old(r)
{
	find(end);
	read_of[r] = (at == NO_PLACE -> ABSENT : at);
	at = 0; old = 0
}

inline decide(r)
{
	find(end);
#ifdef BUG_FACT_OF_ANOTHER
	old = (read_of[r] < ABSENT && old -> value[read_of[r]] : old);
#endif
	if
	:: !MAY_BE(r, old) || end + NR(r) > PLACES -> refuse(r)
	:: else ->
		now = r; made = NEW(r, old); part = DO_OUTCOME; read_of[r] = NO_PLACE
	fi;
	at = 0; old = 0
}

inline append_one(which, to)
{
	key[end] = which; value[end] = to; epoch_of[end] = epoch; by[end] = ME(now);
	end++
}

inline append()
{
	lent_at = (kind[now] == PAGED -> end : lent_at);
	append_one(A, made);
#ifndef BUG_BATCH_ONE_BY_ONE
	if
	:: kind[now] == BATCH -> append_one(B, 1)
	:: else
	fi
#endif
}

inline next_part()
{
	if
	:: part == DO_OUTCOME ->
#ifndef BUG_OUTCOME_LATE
		outcome[now] = made + 1;
#endif
		part = DO_NOTE
	:: part == DO_NOTE ->
#ifdef BUG_ANSWERED_EARLY
		succeeded[now] = sync[now] == IN_TAIL;
#endif
#ifdef BUG_STARTED_EARLY
		state[now] = STARTED;
#else
#ifndef BUG_NOTED_LATE
		note[now] = end; note_epoch[now] = epoch;
#endif
#endif
		part = DO_START
	:: part == DO_START ->
#ifdef BUG_STARTED_EARLY
		note[now] = end; note_epoch[now] = epoch;
#else
#ifndef BUG_STARTED_LATE
		state[now] = STARTED;
#endif
#endif
		part = DO_APPEND
	:: part == DO_APPEND ->
#ifdef BUG_NOTED_LATE
		n = end;
#endif
		append();
#ifndef BUG_PAGED_ANSWERED_EARLY
		if
		:: kind[now] == PAGED -> on_way = true; part = 0; now = 0; made = 0
		:: else -> part = DO_SECOND
		fi
#else
		part = DO_SECOND
#endif
	:: part == DO_SECOND ->
#ifdef BUG_BATCH_ONE_BY_ONE
		if
		:: kind[now] == BATCH -> append_one(B, 1)
		:: else
		fi;
#endif
#ifdef BUG_OUTCOME_LATE
		outcome[now] = made + 1;
#endif
#ifdef BUG_NOTED_LATE
		note[now] = end - NR(now); note_epoch[now] = epoch;
#endif
#ifdef BUG_STARTED_LATE
		state[now] = STARTED;
#endif
		part = DO_ANSWER
	:: part == DO_ANSWER ->
		promise(now);
		part = 0; now = 0; made = 0
	fi;
	n = 0
}

#ifdef BUG_SHOWN_EARLY
#define MAY_SHOW (on_way && !part)
#else
#define MAY_SHOW (on_way && !part && written > lent_at)
#endif

/* Then it is answered; a kill may be between the two. */
inline show_value()
{
	on_way = false; shown = true;
#ifndef BUG_SHOWN_EARLY
	lent_at = NO_PLACE;
#endif
	now = 0; part = DO_ANSWER
}

/* ---- answers that wait ---- */

#ifdef BUG_FORCED_IS_WRITTEN
#define REACHED(r) written
#else
#define REACHED(r) (sync[r] == STABLE -> stable : written)
#endif
#define MAY_ANSWER(r) (state[r] == APPLIED && waits_for[r] && waits_for[r] <= REACHED(r) && !part)

/* All that is answered when the client sends it. */
inline ask_flush()
{
	n = 0;
	do
	:: n < CHANGES -> covered[n] = succeeded[n]; n++
	:: else -> break
	od;
	n = 0;
	flush_state = AT
}

inline take_flush()
{
	flush_state = STARTED;
	if
#ifdef BUG_FLUSH_BELIEVES_STABLE
	:: stable >= end -> flush_waits_for = end
#else
	:: stable >= end -> barrier = true
#endif
	:: else -> flush_waits_for = end
	fi
}

#ifdef BUG_FLUSH_OF_WRITTEN
#define FLUSH_REACHED written
#else
#define FLUSH_REACHED stable
#endif
#define MAY_ANSWER_FLUSH (flush_state == STARTED && !part && \
	flush_waits_for && flush_waits_for <= FLUSH_REACHED)

inline answer_flush()
{
	assert(old_is_durable);
	r = 0;
	do
	:: r < CHANGES ->
		if
		:: covered[r] ->
			count(r);
			assert(nr && first + nr <= durable)
		:: else
		fi;
		covered[r] = false;
		r++
	:: else -> break
	od;
	r = 0; nr = 0; first = 0;
	flush_state = ANSWERED; flush_waits_for = 0; barrier = false; barrier_sent = false
}

#define MAY_FLUSH_BELOW (!flush_out && (stable < written || barrier))

inline flush_is_back()
{
	flush_out = false;
	durable = (flush_to > durable -> flush_to : durable);
	stable = (flush_to > stable -> flush_to : stable);
	flush_to = 0;
	old_is_durable = true;
	if
	:: barrier_sent -> answer_flush()
	:: else
	fi
}

/* ---- kills ---- */

/* A STARTED change was appended if its record is at the place that it noted. */
inline open_begun(r)
{
	found[r] = false;
	if
#ifdef BUG_STARTED_IS_DONE
	:: state[r] == STARTED -> found[r] = true
#else
#ifdef BUG_ZONE_NOT_NOTED
	:: state[r] == STARTED && note[r] < end -> found[r] = true
#else
#ifndef BUG_STARTED_IS_REDONE
	:: state[r] == STARTED && note[r] < end && note_epoch[r] == epoch_of[note[r]] &&
		key[note[r]] != NO_KEY -> found[r] = true
#endif
#endif
#endif
#ifdef BUG_APPLIED_IS_REDONE
	:: state[r] == APPLIED -> state[r] = AT
#else
	:: state[r] == APPLIED -> found[r] = true
#endif
	:: else
	fi
}

#define MAY_FINISH(r) (found[r] && !part)
#define NOTHING_FOUND (!found[0] && !found[1])

inline finish(r)
{
#ifdef BUG_APPLIED_IS_ANSWERED
	if
	:: state[r] == APPLIED -> answer(r)
	:: else -> promise(r)
	fi
#else
	promise(r)
#endif
}

/* What is out below ends before the successor begins. Nothing is said of a FLUSH. */
inline kill()
{
	if
	:: IS_LENT -> key[lent_at] = NO_KEY
	:: else
	fi;
	on_way = false; lent_at = NO_PLACE;
	part = 0; now = 0; made = 0;
	flush_out = false; flush_to = 0;
	barrier = false; barrier_sent = false; flush_waits_for = 0;
	flush_state = (flush_state == STARTED -> AT : flush_state);
	r = 0;
	do
	:: r < CHANGES ->
		waits_for[r] = 0; read_of[r] = NO_PLACE;
		count(r);
		assert(nr || !succeeded[r]);
		assert(r || nr || !shown);
		open_begun(r);
		r++
	:: else -> break
	od;
	r = 0; nr = 0; first = 0;
#ifdef BUG_LEFT_IS_STABLE
	stable = written;
#endif
	epoch++; faults++
}

/* Records from `from` on, none of which is durable. All that a predecessor had begun is finished: a
 * log that is being opened does not fail so. */
#define MAY_LOSE(from) (faults < FAULTS && !part && NOTHING_FOUND && (from) >= durable && (from) < end && \
	!(by[from] == by[(from) - 1] && key[from] == B))

/* What waited for a position is failed. The client gets EIO. */
inline lose(from)
{
	if
	:: IS_LENT -> key[lent_at] = NO_KEY
	:: else
	fi;
	on_way = false; lent_at = NO_PLACE; shown = false;
	n = from;
	do
	:: n < end -> key[n] = NO_KEY; n++
	:: else -> break
	od;
	n = 0; r = 0;
	do
	:: r < CHANGES ->
		count(r);
		succeeded[r] = succeeded[r] && nr;
		covered[r] = covered[r] && nr;
#ifndef BUG_LOST_IS_ANSWERED
		if
		:: state[r] == APPLIED ->
			state[r] = FAILED; waits_for[r] = 0; found[r] = false; outcome[r] = 0
		:: else
		fi;
#endif
		read_of[r] = NO_PLACE;
		r++
	:: else -> break
	od;
	r = 0; nr = 0; first = 0;
	flush_out = false; flush_to = 0;
	flush_state = (flush_state == STARTED -> ANSWERED : flush_state);
	flush_waits_for = 0; barrier = false; barrier_sent = false;
	epoch++; faults++
}

inline retry(r)
{
	if
	:: retried[r] -> state[r] = ANSWERED
	:: else -> retried[r] = true; state[r] = AT
	fi
}

#define ALL_ANSWERED (state[0] == ANSWERED && state[1] == ANSWERED && \
	flush_state == ANSWERED && !part)

active proctype kvd()
{
	byte n, r, nr, first, at, old;

	d_step {
		key[0] = A; value[0] = 1; by[0] = OLD; end = 1; written = 1; stable = 1; epoch = 1;
		durable = 1; lent_at = NO_PLACE;
		do
		:: r < CHANGES -> note[r] = NO_PLACE; read_of[r] = NO_PLACE; r++
		:: else -> break
		od;
		r = 0
	};
	/* the first record counts, or the key is absent */
	if
	:: true
	:: key[0] = NO_KEY
	fi;
	do
	/* clients */
	:: atomic { state[0] == FREE ->
		if
		:: kind[0] = ADD :: kind[0] = INCR :: kind[0] = DELETE :: kind[0] = BATCH
		:: kind[0] = PAGED
		fi;
		if :: sync[0] = IN_TAIL :: sync[0] = WRITTEN :: sync[0] = STABLE fi;
		state[0] = AT }
	:: atomic { state[1] == FREE ->
		if :: kind[1] = ADD :: kind[1] = INCR :: kind[1] = DELETE fi;
		if :: sync[1] = IN_TAIL :: sync[1] = STABLE fi;
		state[1] = AT }
	:: d_step { flush_state == FREE -> ask_flush() }
	:: d_step { state[0] == FAILED -> retry(0) }
	:: d_step { state[1] == FAILED -> retry(1) }
	/* kvd */
	:: d_step { MAY_READ(0) -> read_old(0) }
	:: d_step { MAY_READ(1) -> read_old(1) }
	:: d_step { IS_ASKED(0) -> decide(0) }
	:: d_step { IS_ASKED(1) -> decide(1) }
	:: d_step { part -> next_part() }
	:: d_step { MAY_SHOW -> show_value() }
	:: d_step { MAY_FINISH(0) -> finish(0) }
	:: d_step { MAY_FINISH(1) -> finish(1) }
	:: d_step { MAY_ANSWER(0) -> answer(0) }
	:: d_step { MAY_ANSWER(1) -> answer(1) }
	:: d_step { flush_state == AT && !part -> take_flush() }
	:: d_step { MAY_ANSWER_FLUSH -> answer_flush() }
	/* the peer below */
	:: d_step { written < end && !part -> written = end }
	:: d_step { MAY_FLUSH_BELOW ->
		flush_out = true; flush_to = written; barrier_sent = barrier }
	:: d_step { flush_out -> flush_is_back() }
	/* faults */
	:: d_step { faults < FAULTS -> kill() }
	:: d_step { MAY_LOSE(1) -> lose(1) }
	:: d_step { MAY_LOSE(2) -> lose(2) }
	:: d_step { MAY_LOSE(3) -> lose(3) }
	:: d_step { MAY_LOSE(4) -> lose(4) }
	:: ALL_ANSWERED -> break
	od
}
