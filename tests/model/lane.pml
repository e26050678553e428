/* lane - the ring between two reactors, and what is left of it when either end dies.
 *
 * Proves: every request that the writer offers is accepted once a round and no more, whatever dies
 * between any two steps, with counters that wrap; and that nobody is stuck. An end is killed KILLS
 * times in all; its successor is the same process, begun again with nothing but shared memory.
 *
 *   step here         stands for
 *   push              xq_push: store the slot behind the published tail, if there is room
 *   publish           xq_publish: one store of the tail for the whole batch
 *   take              xq_take: copy the published entries, without moving the head
 *   accept            xs_req_accept: swap of the place, from the sequence that was offered
 *   release           xq_release: one store of the head, after the whole batch was accepted
 *   withdraw          swap of the place to the next sequence, as recover_one does it for what a
 *                     dead one held
 *   writer's repair   xseg_peer_open, xseg_peer_recover: withdraw all that the dead writer held,
 *                     offer it again
 *
 * Abstracted: a request that was accepted comes back at once (done); the reply's way is
 * offer.pml's. Stores are seen in program order: the release stores of tail and head are taken for
 * granted.
 *
 * What it says about the code: "never full" does not hold by the lane's length alone. A withdrawn
 * offer stays in the ring until it is read, so withdrawing and repairing add entries beyond the
 * number of requests. xq_push must look at the head, and a sender without room must keep the
 * request and try again (BUG_PUSH_WHEN_FULL loses one).
 *
 * Broken rules: BUG_TAIL_BEFORE_SLOT, BUG_RELEASE_BEFORE_TAKE, BUG_RELEASE_BEFORE_ACCEPT,
 * BUG_PUSH_WHEN_FULL, BUG_NEW_READER_AT_TAIL, BUG_NEW_WRITER_OFFERS_NOTHING, BUG_ACCEPT_NO_SEQ
 */
#define SLOTS     2
#define REQS      2
#define ROUNDS    2
#ifdef SHORT
#define KILLS     1
#else
#define KILLS     2
#endif
#define WITHDRAWS 2
#define START     254               /* of both counters: they wrap soon */

#define ENTRY(r)      ((r) * 64 + seq[r])
#define USED(t, h)    (((t) - (h)) & 255)
#define OFFERABLE(r)  (!with_reader[r] && seq[r] != my_seq[r] && done[r] < ROUNDS)
#ifdef BUG_ACCEPT_NO_SEQ
#define ACCEPTABLE(r, entry) (!with_reader[r])
#else
#define ACCEPTABLE(r, entry) (!with_reader[r] && seq[r] == (entry) % 64)
#endif

byte slot[SLOTS];
byte head = START, tail = START;

bool with_reader[REQS];             /* the place: whose it is, and its sequence */
byte seq[REQS] = 1;
byte done[REQS];                    /* rounds that came back */

bool writer_killed, reader_killed;
byte withdrawn;

/* The reader hands the request back: answer and reply in one step. */
inline finish(r)
{
	d_step { with_reader[r] = false; seq[r]++; done[r]++; assert(done[r] <= ROUNDS) }
}

inline push(r)
{
#ifdef BUG_TAIL_BEFORE_SLOT
	my_tail++;
	tail = my_tail;
	atomic { slot[(my_tail - 1) & (SLOTS - 1)] = ENTRY(r); my_seq[r] = seq[r] }
#else
	atomic { slot[my_tail & (SLOTS - 1)] = ENTRY(r); my_seq[r] = seq[r]; my_tail++ }
#endif
}

active proctype writer()
{
	byte my_tail, i;
	byte my_seq[REQS];          /* the sequence that was offered last; 0: none */

again:
	{
		my_tail = tail;
		i = 0;
		do
		:: i < REQS ->
			d_step {
#ifndef BUG_NEW_WRITER_OFFERS_NOTHING
				if
				:: !with_reader[i] -> seq[i]++
				:: else
				fi;
#else
				my_seq[i] = seq[i];
#endif
				i++
			}
		:: else -> break
		od;
end_writer:
		do
#ifdef BUG_PUSH_WHEN_FULL
		:: atomic { OFFERABLE(0) -> i = 0 }; push(i)
		:: atomic { OFFERABLE(1) -> i = 1 }; push(i)
#else
		:: atomic { OFFERABLE(0) && USED(my_tail, head) < SLOTS -> i = 0 }; push(i)
		:: atomic { OFFERABLE(1) && USED(my_tail, head) < SLOTS -> i = 1 }; push(i)
#endif
		:: my_tail != tail -> tail = my_tail
		:: d_step { withdrawn < WITHDRAWS && !with_reader[0] && my_seq[0] == seq[0] ->
			seq[0]++; withdrawn++ }
		od
	} unless { writer_killed };
	d_step { writer_killed = false; i = 0; my_tail = 0; my_seq[0] = 0; my_seq[1] = 0 };
	goto again
}

active proctype reader()
{
	byte my_head, n, i, r;
	byte copy[SLOTS];

	my_head = head;
again:
	{
		/* Its own repair: what it had accepted is finished. */
		i = 0;
		do
		:: i < REQS && with_reader[i] -> finish(i); i++
		:: i < REQS && !with_reader[i] -> i++
		:: i == REQS -> break
		od;
		i = 0;
end_reader:
		do
		:: tail != my_head ->
			n = USED(tail, my_head);
#ifdef BUG_PUSH_WHEN_FULL
			n = (n > SLOTS -> SLOTS : n);
#endif
			assert(n <= SLOTS);
#ifdef BUG_RELEASE_BEFORE_TAKE
			head = my_head + n;
#endif
			do
			:: i < n -> d_step { copy[i] = slot[(my_head + i) & (SLOTS - 1)]; i++ }
			:: else -> break
			od;
#ifdef BUG_RELEASE_BEFORE_ACCEPT
			head = my_head + n;
#endif
			i = 0;
			do
			:: i < n ->
				r = copy[i] / 64;
				if
				:: atomic { ACCEPTABLE(r, copy[i]) -> with_reader[r] = true; seq[r]++ };
				   finish(r)
				:: else          /* withdrawn or doubled: dropped */
				fi;
				atomic { copy[i] = 0; r = 0; i++ }
			:: else -> break
			od;
			atomic { my_head = my_head + n; head = my_head; n = 0; i = 0 }
		od
	} unless { reader_killed };
	d_step {
		reader_killed = false;
#ifdef BUG_NEW_READER_AT_TAIL
		my_head = tail; head = tail;
#else
		my_head = head;
#endif
		n = 0; i = 0; r = 0; copy[0] = 0; copy[1] = 0
	};
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
	:: atomic { left > 0 && !writer_killed && !reader_killed -> left--; writer_killed = true }
	:: atomic { left > 0 && !writer_killed && !reader_killed -> left--; reader_killed = true }
	od
}

active proctype watch()
{
	timeout -> assert(done[0] == ROUNDS && done[1] == ROUNDS)
}
