/* lend - a port goes from one reactor to another and back, while a sender has work for it; no wake
 * is lost.
 *
 * Proves: when nothing moves any more, all that was sent is taken, although both reactors may
 * sleep, in any order, each leaves the port to the other as long as that is awake, its home takes
 * it back when it likes (TAKES times), and no time-out wakes anybody. Also with store buffers.
 *
 *   step here         stands for
 *   publish, ring     xseg_port_flush, xs_bell_ring: publish, fence, read the port's bell, then
 *                     that doorbell's word; ring if it is announced
 *   leave             board_leave: under the lock: the port is the other's if that is awake, and
 *                     rings his bell; asleep from now on
 *   announce, look    xseg_bell_wait, looks: announce, fence, look at what one sees to, and whether
 *                     that has changed
 *   return, take      board_return, board_take: under the lock: awake again; its own port may be
 *                     its again
 *   news              who sees to a port has changed: its list is read anew, under the lock
 *
 * Memory: as in doorbell.pml; a reactor's buffer has its stores of the port's bell and its
 * announcements, and letting go of the lock waits until it is empty, as the next holder sees what
 * the last one stored. Who sees to the port is read under the lock alone.
 *
 * Abstracted: a second port, which each reactor has, only that its doorbell is the reactor's; what
 * a doorbell counts to tell two sleeps apart (doorbell.pml); deaths, as both reactors are of one
 * process, whose successor begins with doorbells of its own.
 *
 * Broken rules: BUG_BELL_AFTER_LOCK, BUG_NOT_TOLD, BUG_NO_SECOND_LOOK, BUG_BELL_READ_FIRST,
 * BUG_NO_FENCE_SENDER, BUG_NO_FENCE_SLEEPER
 */
#define HOME  1
#define ITEMS 2
#define TAKES 2
#define NONE  255

byte tail, head, pushed;
byte with = HOME, bell = HOME;
byte word[2];                       /* bit 0: announced; above: rings */
bool awake[2] = true, news[2], waiting[2];
bool locked;
byte takes;
chan buffer[2] = [2] of { byte };   /* 0, 1: the port's bell; ANNOUNCE */

#define ANNOUNCE 2
#define BUFFERED (pushed - tail)

active proctype memory()
{
	byte op;

end_memory:
	do
	:: d_step { BUFFERED > 0 -> tail++ }
	:: d_step { nempty(buffer[0]) -> buffer[0]?op;
		if
		:: op == ANNOUNCE -> word[0] = word[0] | 1
		:: else -> bell = op
		fi; op = 0 }
	:: d_step { nempty(buffer[1]) -> buffer[1]?op;
		if
		:: op == ANNOUNCE -> word[1] = word[1] | 1
		:: else -> bell = op
		fi; op = 0 }
	od
}

active proctype sender()
{
	byte b, w;

end_sender:
	do
	:: pushed < ITEMS ->
#ifdef BUG_BELL_READ_FIRST
		b = bell;
#endif
		pushed++;
#ifndef BUG_NO_FENCE_SENDER
		BUFFERED == 0;
#endif
#ifndef BUG_BELL_READ_FIRST
		b = bell;
#endif
		w = word[b];
		if
		:: w & 1 -> d_step { BUFFERED == 0 -> word[b] = word[b] + 2; waiting[b] = false }
		:: else
		fi;
		w = 0;
		b = 0
	od
}

inline lock()   { atomic { !locked -> locked = true } }
inline unlock() { atomic { empty(buffer[me]) -> locked = false } }

inline give(to)
{
#ifndef BUG_NOT_TOLD
	d_step { news[with] = true; news[to] = true; with = to };
#else
	with = to;
#endif
#ifndef BUG_BELL_AFTER_LOCK
	buffer[me]!to
#endif
}

inline look()
{
	d_step {
		if
		:: has && tail != head -> found = true; head = tail
		:: else -> found = false
		fi
	}
}

proctype reactor(byte me)
{
	byte other = 1 - me, late = NONE;
	bool has = (me == HOME), found;

	do
	:: if
	   :: news[me] ->
		lock();
		d_step { news[me] = false; has = (with == me) };
		unlock()
	   :: else
	   fi;
	   if
	   :: me == HOME && takes < TAKES ->
		lock();
		takes++;
		if
		:: with != me ->
			give(me);
#ifdef BUG_BELL_AFTER_LOCK
			late = me
#endif
		:: else
		fi;
		unlock();
		if
		:: late != NONE -> buffer[me]!late; late = NONE
		:: else
		fi
	   :: true
	   fi;
	   look();
	   if
	   :: found
	   :: else ->
		lock();
		if
		:: with == me && awake[other] ->
			give(other);
#ifdef BUG_BELL_AFTER_LOCK
			late = other
#endif
		:: else
		fi;
#ifndef BUG_NOT_TOLD
		d_step { news[me] = false; has = (with == me) };
#else
		has = has && with == me;
#endif
		awake[me] = false;
		unlock();
		if
		:: late != NONE -> buffer[me]!late; late = NONE
		:: else
		fi;
		buffer[me]!ANNOUNCE;
#ifndef BUG_NO_FENCE_SLEEPER
		empty(buffer[me]);
#endif
#ifndef BUG_NO_SECOND_LOOK
		look();
#endif
		if
		:: found || news[me]
		:: else ->
			/* a ring between the announcement and here has changed the word, and the
			 * wait returns at once */
			atomic {
				empty(buffer[me]) ->
				if
				:: word[me] == 1 -> waiting[me] = true
				:: else
				fi
			};
end_asleep:		!waiting[me]
		fi;
		atomic { empty(buffer[me]) -> word[me] = 0 };
		lock();
		awake[me] = true;
		unlock()
	   fi
	od
}

init
{
	atomic { run reactor(0); run reactor(1) }
}

active proctype watch()
{
	timeout -> assert(head == ITEMS)
}
