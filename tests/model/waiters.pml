/* waiters - requests that wait for pages of the cache, and those who free some; nobody waits for
 * what is there.
 *
 * Proves: when nothing moves any more, every request had its pages and gave them back, whatever the
 * order in which ports look at the queue, the counts and their own flags; no port's flag is lost,
 * and a port that sleeps owes nobody anything.
 *
 *   step here         stands for (peers/cached/memory/pages.c, xtypes/xwaitq.c)
 *   get               pages_get: newcomers stand behind those who wait; what was taken in vain goes
 *                     back
 *   wait              list_get, wait_for_entry: xwaitq_add, which ends with a fence; then a look at
 *                     the counts, and `freed` for its own poll if there is something. pages_wait
 *                     sets `freed` in any case: its poll looks
 *   put               page_put: `freed`, and the page to the magazine, if nobody seems to wait, or
 *                     to the pool
 *   signal            pages_signal, by the poll of a port whose `freed` is set: xwaitq_has_waiters,
 *                     which begins with a fence, magazine_empty, next_waiter: xwaitq_pop with what
 *                     is available; who is popped is stepped by who popped him
 *
 * Memory: both counts are changed under a lock, and read without. A change stands in its thread's
 * buffer until memory() drains it, the thread passes a fence, or another thread takes that lock.
 * (On x86 a mutex is a fence; here it is not.)
 *
 * Abstracted: whose pages they are (share.h: queues of those who are owed pages, and of full
 * volumes, which all are waited in, and looked at, like this one); clean pages, which count as free
 * ones, as they are taken by evicting; lists of pages and entries have the same two halves (of
 * entries the lock of the names is taken by both sides after the store). One port has a magazine:
 * all of them together have an eighth of the pages at most (use_magazine), so what one keeps is not
 * what somebody needs. Who sleeps: a port whose `freed` is clear, and that has nothing in hand.
 *
 * Broken rules: BUG_NO_FENCE_WAITER, BUG_NO_FENCE_SIGNALLER, BUG_NO_SECOND_LOOK,
 * BUG_PUT_DOES_NOT_TELL, BUG_LOOK_BEFORE_ADD
 *
 * What it says about the code: emptying the magazine and looking on after one was served make waits
 * shorter, and are not needed that they end: whoever was served frees pages later, and tells.
 */
#define PORTS    3
#define PAGES    3
#define MAGAZINE 1                  /* of port 0 */
#ifdef LONG
#define ROUNDS(p) (p == 0 -> 2 : 1)
#else
#define ROUNDS(p) 1
#endif
#define NEED(p)  (p == 1 -> 2 : 1)

chan queue = [2 * PORTS] of { byte };       /* what each needs, oldest first */
byte available = PAGES;                     /* exact: under mem_lock */

/* Seen without the locks; late: whose change is not seen yet, + 1. */
byte nr_seen, available_seen = PAGES;
byte late_nr, late_available;

byte done;                                  /* pages that were given back */

#define NR(p)        (late_nr == p + 1 -> len(queue) : nr_seen)
#define AVAILABLE(p) (late_available == p + 1 -> available : available_seen)
#define FENCED(p)    (late_nr != p + 1 && late_available != p + 1)

active proctype memory()
{
end_memory:
	do
	:: d_step { late_nr != 0 -> nr_seen = len(queue); late_nr = 0 }
	:: d_step { late_available != 0 -> available_seen = available; late_available = 0 }
	od
}

#define me (_pid - 1)

/* Within d_step: the lock is taken, so the last holder's changes are seen; ours is not yet. */
inline count_by(n)
{
	available_seen = available;
	available = available + n;
	late_available = me + 1
}

inline queue_changed()
{
	nr_seen = len(queue);
	late_nr = me + 1
}

inline put()
{
#ifndef BUG_PUT_DOES_NOT_TELL
	freed = true;
#endif
	if
	:: me == 0 && magazine < MAGAZINE && NR(me) == 0 -> magazine++
	:: else -> d_step { count_by(1) }
	fi
}

/* ok says whether `need` pages were taken. */
inline get()
{
	ok = woken || NR(me) == 0;
	if
	:: ok ->
		do
		:: got < need ->
			if
			:: magazine > 0 -> magazine--; got++
			:: else ->
				d_step {
					ok = available > 0;
					if
					:: ok -> count_by(-1); got++
					:: else -> count_by(0)
					fi
				};
				if
				:: ok
				:: else -> break
				fi
			fi
		:: else -> break
		od;
		if
		:: ok -> held = held + need
		:: else ->
			do
			:: got > 0 -> put(); got--
			:: else -> break
			od
		fi;
		got = 0
	:: else
	fi
}

inline wait()
{
#ifdef BUG_LOOK_BEFORE_ADD
	if
	:: AVAILABLE(me) >= need -> freed = true
	:: else
	fi;
#endif
	d_step { queue_changed(); queue!need };
#ifndef BUG_NO_FENCE_WAITER
	FENCED(me);
#endif
#ifndef BUG_LOOK_BEFORE_ADD
#ifndef BUG_NO_SECOND_LOOK
	if
	:: AVAILABLE(me) >= need -> freed = true
	:: else
	fi
#endif
#endif
}

inline get_or_wait()
{
	get();
	if
	:: ok
	:: else -> wait()
	fi;
	d_step { need = 0; ok = false; woken = false }
}

inline signal()
{
	do
	::
#ifndef BUG_NO_FENCE_SIGNALLER
		FENCED(me);
#endif
		if
		:: NR(me) == 0 -> break
		:: else
		fi;
		do
		:: magazine > 0 -> magazine--; d_step { count_by(1) }
		:: else -> break
		od;
		seen = AVAILABLE(me);
		d_step {
			if
			:: queue?[need] ->
				queue?<need>;
				if
				:: need <= seen -> queue_changed(); queue?_; woken = true
				:: else -> need = 0
				fi
			:: else -> need = 0
			fi;
			seen = 0
		};
		if
		:: woken -> get_or_wait()
		:: else -> break
		fi;
	od
}

active [PORTS] proctype port()
{
	byte rounds, need, got, held, magazine, seen;
	bool freed, ok, woken;

end_port:
	do
	:: rounds < ROUNDS(me) -> rounds++; need = NEED(me); get_or_wait()
	:: held > 0 -> held--; put(); done++
	:: freed -> freed = false; signal()
	od
}

#define WANTED (ROUNDS(0) * NEED(0) + ROUNDS(1) * NEED(1) + ROUNDS(2) * NEED(2))

active proctype watch()
{
	timeout -> assert(done == WANTED && len(queue) == 0 && available + MAGAZINE >= PAGES)
}
