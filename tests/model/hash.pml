/* hash - a lookup without a lock in a table of which entries are removed by shifting others back.
 *
 * Proves: an entry that is in all the time is found, whatever is inserted and removed beside it;
 * and one that was not found was not in at some moment of the call.
 *
 *   step here         stands for (xtypes/xhash.h, xhash.c)
 *   find              xhash_find: the sequence, xhash_probe slot by slot, the sequence again
 *   insert            xhash_insert: the first empty slot from the home slot on
 *   remove            xhash_remove: the sequence becomes odd, shift_back, the sequence becomes even
 *
 * Entries A, B and X: the first two come and go, X stays. All homes are at the end of the table or
 * at its beginning, so that runs of slots wrap. The table begins with any of them, inserted in any
 * order.
 *
 * Abstracted: the memory order. The writer's stores are releases and the reader's loads of slots
 * are acquiring, so both have the order of the code, and that is all that is needed; the BUG_
 * variants turn it round. Writers have a lock (xcache.c). Tags that are equal: refs.pml.
 *
 * Broken rules: BUG_LOOKS_ONCE, BUG_IGNORES_ODD, BUG_SEQUENCE_AFTER_PROBE, BUG_ODD_AFTER_SHIFT,
 * BUG_EVEN_BEFORE_SHIFT, BUG_CLEARS_ONLY, BUG_SHIFTS_ALL
 */
#define SLOTS   8
#define NONE    0
#define A       1
#define B       2
#define X       3
#ifdef LONG
#define OPS     4
#define FINDS   2
#else
#define OPS     3
#define FINDS   1
#endif

byte slot[SLOTS];
byte seq;
bool made;
byte changed;                       /* ghost: removals of A, and that it is not in */
bool in[4];

#define AT(i)    ((i) & (SLOTS - 1))
byte home[4];

#define DISTANCE(from, to) (AT(to + SLOTS - from))

inline insert(e)
{
	at = home[e];
	do
	:: slot[at] != NONE -> at = AT(at + 1)
	:: else -> break
	od;
	atomic { slot[at] = e; in[e] = true };
	at = 0
}

inline shift_back()
{
	hole = at;
	do
	:: at = AT(at + 1);
	   if
	   :: slot[at] == NONE -> break
#ifdef BUG_CLEARS_ONLY
	   :: true -> break
#endif
#ifndef BUG_SHIFTS_ALL
	   :: slot[at] != NONE && DISTANCE(home[slot[at]], at) < DISTANCE(hole, at)
#endif
	   :: else -> slot[hole] = slot[at]; hole = at
	   fi
	od;
	atomic { slot[hole] = NONE; hole = 0; at = 0 }
}

inline remove(e)
{
	at = home[e];
	do
	:: slot[at] != e -> at = AT(at + 1)
	:: else -> break
	od;
#ifndef BUG_ODD_AFTER_SHIFT
	seq++;
#endif
#ifdef BUG_EVEN_BEFORE_SHIFT
	seq++;
#endif
	atomic { in[e] = false; changed = changed + (e == A) };
	shift_back();
#ifdef BUG_ODD_AFTER_SHIFT
	seq++;
#endif
#ifndef BUG_EVEN_BEFORE_SHIFT
	seq++
#endif
}

active proctype writer()
{
	byte at, hole, ops;

	atomic {
		home[A] = SLOTS - 1;
		if
		:: home[B] = SLOTS - 1
		:: home[B] = 0
		fi;
		if
		:: home[X] = SLOTS - 1
		:: home[X] = 0
		fi;
		do
		:: !in[A] -> insert(A)
		:: !in[B] -> insert(B)
		:: !in[X] -> insert(X)
		:: in[X] -> break
		od;
		made = true
	};
	do
	:: ops < OPS ->
		ops++;
		if
		:: !in[A] -> insert(A)
		:: in[A] -> remove(A)
		:: !in[B] -> insert(B)
		:: in[B] -> remove(B)
		fi
	:: else -> break
	od
}

active proctype reader()
{
	byte e, at, before, left, finds, removals, v;
	bool found, was_in;

	made;
	do
	:: finds < FINDS ->
		finds++;
		if
		:: e = X
		:: e = A
		fi;
		d_step { removals = changed; was_in = in[A] };
		do
		::
#ifndef BUG_SEQUENCE_AFTER_PROBE
			before = seq;
#endif
			at = home[e];
			left = SLOTS;
			do
			:: left > 0 ->
				d_step { v = slot[at]; found = v == e };
				if
				:: v == NONE || found -> break
				:: else -> at = AT(at + 1); left--
				fi
			:: else -> break
			od;
			if
			:: found -> break
			:: else
			fi;
#ifdef BUG_SEQUENCE_AFTER_PROBE
			before = seq;
#endif
#ifdef BUG_LOOKS_ONCE
			break;
#endif
			if
#ifdef BUG_IGNORES_ODD
			:: before == seq -> break
#else
			:: before % 2 == 0 && before == seq -> break
#endif
			/* it spins until something changed */
			:: else -> before != seq || seq % 2 == 0
			fi
		od;
		assert(found || (e == A && (!was_in || changed != removals)));
		d_step { at = 0; before = 0; left = 0; found = false; was_in = false; removals = 0; e = 0; v = 0 }
	:: else -> break
	od
}
