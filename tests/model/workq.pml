/* workq - who pushes a job, and who leaves, hand an object over; no job is stranded, and nobody is
 * inside beside another.
 *
 * Proves: jobs run one at a time, in the order in which they were pushed; what a job changed is
 * seen by the next one, whoever runs it; when nothing moves any more, all jobs were run, and nobody
 * owns the queue.
 *
 *   step here         stands for (xtypes/xworkq.h, xworkq.c)
 *   push              xworkq_push: the job's link, the swap of `in`
 *   try_enter         xworkq_try_enter: the load of `owned`, then its swap
 *   take_over         jobs_take_over: the exchange of `in`, turning the list round
 *   run               xworkq_run with a budget of BUDGET jobs; its caller calls again as long as it
 *                     says that there are more
 *   leave             xworkq_leave: owned = 0, then the look at `in`
 *   visitor           evict_page() of peers/cached/memory/pages.c: enters without a job, and leaves
 *
 * Memory: x86-TSO made weaker. What a process stores it sees at once, others when its buffer
 * drains: a job's link, what jobs change (data, which stands for all that an owner stores), and
 * owned = 0, each at any time and in any order, unless an order is asked for. What releases waits
 * until all that its process stored before is drained; a swap is in memory at once. Loads are not
 * delayed: in the code those that matter are acquiring or sequentially consistent.
 *
 * Abstracted: turning the list round is one step (whoever does it is alone with it, if the rest is
 * right). Nobody dies: it is one process's memory. With LONG there is a third thread, which visits.
 *
 * Broken rules: BUG_LEAVE_IS_A_PLAIN_STORE, BUG_LEAVE_IS_RELAXED, BUG_LEAVE_DOES_NOT_LOOK,
 * BUG_LEAVE_LOOKS_FIRST, BUG_LEAVE_KEEPS_RUN, BUG_STAYS_WITHOUT_ENTERING, BUG_PUSH_LOOKS_FIRST,
 * BUG_PUSH_IS_RELAXED, BUG_ENTER_BY_STORE, BUG_TAKE_OVER_BY_STORE,
 * BUG_TAKE_OVER_BEFORE_RUN_IS_EMPTY
 */
#define PUSHERS 2
#define BUDGET  2
#define JOBS    4                   /* in all */
#ifdef LONG
#define THREADS (PUSHERS + 1)
#else
#define THREADS PUSHERS
#endif
#define NONE    0                   /* jobs are numbered from 1 */
#define GARBAGE 255

/* In memory: the newest job that arrived, and each job's link; the oldest one that was taken
 * over. */
byte in, taken, data;
bit owned;
byte link[JOBS + 1] = GARBAGE;

/* Stored by a process, and not yet in memory. */
bool wait_link[THREADS], wait_data[THREADS], wait_owned[THREADS];
byte late_job[THREADS], late_link[THREADS], late_data[THREADS];

/* As a process sees its own stores. */
#define DATA(p)    (wait_data[p] -> late_data[p] : data)
#define OWNED(p)   (wait_owned[p] -> 0 : owned)
#define DRAINED(p) (!wait_link[p] && !wait_data[p])

/* Ghosts: what the assertions speak of. */
byte pushed;                        /* the last number that was given to a job */
byte order[JOBS + 4];               /* job by place in the order of the swaps of `in` */
byte arrived, ran, visits;
byte inside;

active [THREADS] proctype buffer()
{
end_buffer:
	do
	:: d_step { wait_link[_pid] -> link[late_job[_pid]] = late_link[_pid]; wait_link[_pid] = false;
		    late_job[_pid] = 0; late_link[_pid] = 0 }
	:: d_step { wait_data[_pid] -> data = late_data[_pid]; wait_data[_pid] = false; late_data[_pid] = 0 }
	:: d_step { wait_owned[_pid] -> owned = 0; wait_owned[_pid] = false }
	od
}

#define me (_pid - THREADS)

/* Alone: changes data by 1, with others' chance to be seen inside. */
inline work()
{
	d_step { assert(inside == 0); inside++; d = DATA(me) + 1 };
	d_step { wait_data[me] = true; late_data[me] = d; d = 0; inside-- }
}

/* ok says whether the caller is the owner now. */
inline try_enter()
{
	ok = !OWNED(me);
	if
	:: ok ->
#ifdef BUG_ENTER_BY_STORE
		d_step { DRAINED(me) && !wait_owned[me] -> owned = 1 }
#else
		atomic {
			DRAINED(me) && !wait_owned[me] ->
			ok = !owned;
			owned = 1
		}
#endif
	:: else
	fi
}

/* ok says whether the caller is the owner now. */
inline push()
{
#ifdef BUG_PUSH_LOOKS_FIRST
	seen = OWNED(me);
#endif
	do
	:: first = in;
	   d_step { wait_link[me] = true; late_job[me] = w; late_link[me] = first };
	   atomic {
#ifndef BUG_PUSH_IS_RELAXED
		DRAINED(me);
#endif
		ok = in == first;
		first = 0;
		if
		:: ok -> in = w; arrived++; order[arrived] = w; w = 0
		:: else
		fi
	   };
	   if
	   :: ok -> break
	   :: else
	   fi
	od;
#ifdef BUG_PUSH_LOOKS_FIRST
	if
	:: seen -> ok = false; seen = 0
	:: else -> try_enter()
	fi
#else
	try_enter()
#endif
}

inline take_over()
{
#ifdef BUG_TAKE_OVER_BY_STORE
	w = in;
	atomic {
		in = NONE;
#else
	atomic {
		w = in; in = NONE;
#endif
		do
		:: w != NONE ->
			assert(link[w] != GARBAGE);
			first = link[w];
			link[w] = taken;
			taken = w;
			w = first
		:: else -> break
		od;
		first = 0
	}
}

/* ok says whether the caller is the owner (still, or again). */
inline leave()
{
	ok = true;
	if
#ifndef BUG_LEAVE_KEEPS_RUN
	:: taken != NONE
#endif
	:: else ->
#ifdef BUG_LEAVE_LOOKS_FIRST
		seen = in != NONE;
#endif
#ifdef BUG_LEAVE_IS_RELAXED
		wait_owned[me] = true;
#else
		atomic { DRAINED(me) -> wait_owned[me] = true };
#endif
#ifndef BUG_LEAVE_IS_A_PLAIN_STORE
		!wait_owned[me];
#endif
#ifndef BUG_LEAVE_LOOKS_FIRST
#ifdef BUG_LEAVE_DOES_NOT_LOOK
		seen = 0;
#else
		seen = in != NONE;
#endif
#endif
		if
#ifdef BUG_STAYS_WITHOUT_ENTERING
		:: seen -> d_step { DRAINED(me) -> owned = 1 }
#else
		:: seen -> try_enter()
#endif
		:: else -> ok = false
		fi;
		seen = 0
	fi
}

#ifdef BUG_TAKE_OVER_BEFORE_RUN_IS_EMPTY
#define MAY_TAKE_OVER true
#else
#define MAY_TAKE_OVER (taken == NONE)
#endif

/* Called by the owner; leaves when all is done. */
inline run_all()
{
	do
	:: ok && budget > 0 ->
		if
		:: MAY_TAKE_OVER && in != NONE -> take_over()
		:: else
		fi;
		atomic {
			w = taken;
			if
			:: w != NONE ->
				taken = link[w];
				budget--;
				ran++;
				assert(order[ran] == w);
				w = 0
			:: else -> goto leaves
			fi
		};
		work();
		goto goes_on;
leaves:		leave();
goes_on:	skip
	:: ok && budget == 0 ->
		/* the budget may have been just enough; the caller comes again if it says that
		 * there are more */
		if
		:: in != NONE
		:: else -> leave()
		fi;
		budget = BUDGET
	:: !ok -> break
	od
}

active [PUSHERS] proctype pusher()
{
	byte w, first, d, budget = BUDGET;
	bit seen;
	bool ok;

	do
	:: d_step { pushed < JOBS -> pushed++; w = pushed };
	   push();
	   run_all();
	   budget = BUDGET
	:: pushed == JOBS -> break
	od
}

#ifdef LONG
active proctype visitor()
{
	byte w, first, d, budget = BUDGET;
	bit seen;
	bool ok;

	try_enter();
	if
	:: ok -> visits++; work(); leave()
	:: else
	fi;
	run_all()
}
#endif

active proctype watch()
{
	timeout -> assert(ran == JOBS && data == JOBS + visits && owned == 0 && in == NONE && taken == NONE)
}
