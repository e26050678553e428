/* refs - entries of a cache of names: lookup without a lock, against eviction, insertion again,
 * another use of the entry, and the flush of what is dirty in its object.
 *
 * Proves the claim of xtypes/xcache.h: as entries are type-stable, it is enough to raise the count
 * by a swap if it is not 0, and to compare the name after that. Who got an entry for a name has
 * that name's only entry, which keeps its name until he puts it; a count goes to 0 once a life, of
 * an evicted entry, and in the end nothing is referenced but by the table. And of O4 of
 * peers/cached/object/object.c: as an object with buckets holds a reference to itself, what is dirty stays
 * in the entry of its name, however that was evicted, until a flush has written it by that name.
 *
 *   step here         stands for (xtypes/xcache.c)
 *   lookup            xcache_lookup: an index from the table (xhash_probe), get_unless_free,
 *                     name_is, or put of a stranger's
 *   get_unless_free   ref_get_unless_free: a load and a swap, again if another was faster
 *   put               xcache_put: a swap, or the lock and ref_drop_locked
 *   insert            xcache_insert: found active, found evicted (insert_again_locked), a free
 *                     entry (insert_fresh_locked), or a victim is evicted, if nobody but the table
 *                     refers to it (hook_may_evict of peers/cached/object/object.c)
 *   invalidate        xcache_invalidate: evict_locked, then the put of the table's reference, which
 *                     the evictor inherits
 *   write             by who has the entry: its object has a bucket from then on, and a reference
 *                     to itself (count_used of peers/cached/object/object.c)
 *   flush             a child goes out, to the object of that name (start_run of flush.c); when it
 *                     is back the bucket goes, as if it was evicted at once, and with it the
 *                     reference (flushed_bucket, count_used)
 *
 * The table is which entries are in it, and all names are taken to collide: a lookup asks every
 * entry that it finds there, in any order of steps, as late as it likes. That it finds what is
 * there all the time is hash.pml's. A name is two halves, since no string is written or compared at
 * once.
 *
 * Abstracted: the memory order. Two pairs need one in code: name before count
 * (entry_publish_locked, ref_get_unless_free), and all that holders did before the last put
 * (xcache_put, ref_drop_locked). Here steps have the order that they enforce; the BUG_ variants
 * turn it round. The list of the dirty and children have references of their own, which are left
 * out: that of the object has to be enough. A bucket that is written while it is being flushed is
 * in slots.pml. With LONG there are three threads, of one operation each, instead of two of two.
 *
 * Broken rules: BUG_NAME_IS_NOT_COMPARED, BUG_NAME_BEFORE_COUNT, BUG_PUBLISHED_BEFORE_NAME,
 * BUG_GET_FROM_ZERO, BUG_STRANGER_IS_KEPT, BUG_LAST_PUT_WITHOUT_LOCK, BUG_FREED_WHILE_REFERENCED,
 * BUG_EVICTED_IS_NOT_FOUND, BUG_TABLE_HAS_NO_REFERENCE, BUG_REINSERTED_WITHOUT_TABLES_REFERENCE,
 * BUG_DIRTY_HAS_NO_REFERENCE, BUG_FLUSH_LETS_GO_FIRST
 */
#define ENTRIES 2
#define NAMES   3                   /* 1 .. NAMES */
#define FREE    0
#define ACTIVE  1
#define EVICTED 2

/* Both have a name when it begins, and there is a third; the first is dirty. */
byte ref[ENTRIES] = 1, state[ENTRIES] = ACTIVE, left[ENTRIES], right[ENTRIES];
bool listed[ENTRIES] = true;        /* in the active table */
bool dirty[ENTRIES], out[ENTRIES];  /* of its object: a bucket, and the flush of it */
byte data[ENTRIES];                 /* a ghost: whose the bucket is */
bit lock;

#define IS_NAME(e, n) (left[e] == n && right[e] == n)

/* Of entry e, for who holds it as n: C4, and what the claim says. */
#define HOLDS(e, n)   (ref[e] > 0 && state[e] != FREE && IS_NAME(e, n) && (ref[1 - e] == 0 || !IS_NAME(1 - e, n)))

/* ok says whether the count was raised. */
inline get_unless_free()
{
	do
	:: n = ref[e];
#ifndef BUG_GET_FROM_ZERO
	   if
	   :: n == 0 -> ok = false; break
	   :: else
	   fi;
#endif
	   d_step {
		ok = ref[e] == n;
		if
		:: ok -> ref[e] = n + 1
		:: else
		fi
	   };
	   if
	   :: ok -> break
	   :: else
	   fi
	od;
	n = 0
}

/* ok says whether e has that name. */
inline name_is()
{
	ok = left[e] == want;
	if
	:: ok -> ok = right[e] == want
	:: else
	fi
}

/* With the lock. Its object is empty (hook_finalize). */
inline free_entry()
{
	d_step { assert(state[e] == EVICTED && !dirty[e]); state[e] = FREE }
}

/* With the lock: the last reference frees the entry. */
inline drop_locked()
{
	d_step { assert(ref[e] > 0); ref[e]-- };
#ifdef BUG_FREED_WHILE_REFERENCED
	free_entry();
#else
	if
	:: ref[e] == 0 -> free_entry()
	:: else
	fi
#endif
}

inline put()
{
#ifdef BUG_LAST_PUT_WITHOUT_LOCK
	d_step { ref[e]--; ok = ref[e] == 0 };
	if
	:: ok ->
		atomic { lock == 0 -> lock = 1 };
		free_entry();
		lock = 0
	:: else
	fi;
#else
	do
	:: n = ref[e];
	   if
	   :: n > 1 ->
		d_step {
			ok = ref[e] == n;
			if
			:: ok -> ref[e] = n - 1
			:: else
			fi
		};
		if
		:: ok -> break
		:: else
		fi
	   :: else ->
		atomic { lock == 0 -> lock = 1 };
		drop_locked();
		lock = 0;
		break
	   fi
	od;
	n = 0;
#endif
	ok = false
}

/* ok says whether e is the entry of `want`, with a reference. */
inline lookup()
{
	ok = false;
	e = 0;
	do
	:: e < ENTRIES ->
		if
		:: listed[e] ->
#ifdef BUG_NAME_BEFORE_COUNT
			name_is();
			if
			:: ok -> get_unless_free()
			:: else
			fi;
#else
			get_unless_free();
			if
			:: ok ->
#ifndef BUG_NAME_IS_NOT_COMPARED
				name_is();
#endif
#ifndef BUG_STRANGER_IS_KEPT
				if
				:: !ok -> put()
				:: else
				fi;
#endif
				skip
			:: else
			fi;
#endif
			if
			:: ok -> break
			:: else -> e++
			fi
		:: else -> e++
		fi
	:: else -> e = 0; break
	od
}

#ifdef BUG_TABLE_HAS_NO_REFERENCE
#define REFS_OF_NEW 1
#else
#define REFS_OF_NEW 2
#endif
#ifdef BUG_REINSERTED_WITHOUT_TABLES_REFERENCE
#define REFS_OF_REINSERTED 1
#else
#define REFS_OF_REINSERTED 2
#endif

inline find_locked(s)
{
	atomic {
		if
		:: state[0] == s && IS_NAME(0, want) -> e = 0; ok = true
		:: state[1] == s && IS_NAME(1, want) -> e = 1; ok = true
		:: else -> ok = false
		fi
	}
}

inline fresh_locked()
{
	state[e] = ACTIVE;
#ifdef BUG_PUBLISHED_BEFORE_NAME
	ref[e] = REFS_OF_NEW;
	left[e] = want;
	right[e] = want;
#else
	left[e] = want;
	right[e] = want;
	d_step { assert(ref[e] == 0); ref[e] = REFS_OF_NEW };
#endif
	listed[e] = true
}

/* Any victim that nobody uses; ok says whether there was one. The caller has the table's reference
 * then. */
inline evict_locked()
{
	listed[e] = false;
	state[e] = EVICTED
}

/* ok says whether e is the entry of `want`, with a reference; if not, it is for the caller to
 * wait. */
inline insert()
{
	atomic { lock == 0 -> lock = 1 };
	find_locked(ACTIVE);
	if
	:: ok -> ref[e]++
	:: else ->
#ifndef BUG_EVICTED_IS_NOT_FOUND
		find_locked(EVICTED);
#endif
		if
		:: ok ->
			ref[e] = ref[e] + REFS_OF_REINSERTED;
			state[e] = ACTIVE;
			listed[e] = true
		:: else ->
			do
			:: state[0] == FREE -> e = 0; ok = true; break
			:: state[1] == FREE -> e = 1; ok = true; break
			:: state[0] == ACTIVE && ref[0] == 1 && state[1] != FREE -> e = 0; evict_locked(); drop_locked()
			:: state[1] == ACTIVE && ref[1] == 1 && state[0] != FREE -> e = 1; evict_locked(); drop_locked()
			:: state[0] != FREE && state[1] != FREE && (state[0] != ACTIVE || ref[0] != 1) &&
			   (state[1] != ACTIVE || ref[1] != 1) -> break
			od;
			if
			:: ok -> fresh_locked()
			:: else
			fi
		fi
	fi;
	lock = 0
}

#ifdef BUG_DIRTY_HAS_NO_REFERENCE
#define REFS_OF_DIRTY 0
#else
#define REFS_OF_DIRTY 1
#endif

/* Inside the object. */
inline write()
{
	d_step {
		assert(!dirty[e] || data[e] == want);
		if
		:: !dirty[e] -> dirty[e] = true; data[e] = want; ref[e] = ref[e] + REFS_OF_DIRTY
		:: else
		fi
	}
}

inline use()
{
	assert(HOLDS(e, want));
	if
	:: write()
	:: skip
	fi;
	assert(HOLDS(e, want));
	put()
}

inline let_go_of_bucket()
{
#ifdef BUG_DIRTY_HAS_NO_REFERENCE
	skip
#else
	put()
#endif
}

/* Of any object that is dirty, whether it is in the table or not. */
inline flush()
{
	atomic {
		if
		:: dirty[0] && !out[0] -> e = 0; out[0] = true; ok = true
		:: dirty[1] && !out[1] -> e = 1; out[1] = true; ok = true
		:: else
		fi
	};
	if
	:: ok ->
#ifdef BUG_FLUSH_LETS_GO_FIRST
		let_go_of_bucket();
#endif
		assert(left[e] == data[e]);
		assert(right[e] == data[e]);
		d_step { dirty[e] = false; out[e] = false; data[e] = 0 };
#ifndef BUG_FLUSH_LETS_GO_FIRST
		let_go_of_bucket()
#endif
	:: else
	fi
}

inline invalidate()
{
	atomic { lock == 0 -> lock = 1 };
	find_locked(ACTIVE);
	if
	:: ok -> evict_locked()
	:: else
	fi;
	lock = 0;
	if
	:: ok -> put()
	:: else
	fi
}

proctype thread(byte ops)
{
	byte e, n, want;
	bool ok;

	do
	:: ops > 0 ->
		ops--;
		select(want : 1 .. NAMES);
		if
		:: lookup();
		   if
		   :: ok
		   :: else -> insert()
		   fi;
		   if
		   :: ok -> use()
		   :: else
		   fi
		:: invalidate()
		:: flush()
		fi;
		d_step { e = 0; ok = false; want = 0 }
	:: else -> break
	od
}

init
{
	atomic {
		left[0] = 1; right[0] = 1; left[1] = 2; right[1] = 2;
		dirty[0] = true; data[0] = 1; ref[0] = 1 + REFS_OF_DIRTY;
#ifdef LONG
		run thread(1);
		run thread(1);
		run thread(1)
#else
		run thread(2);
		run thread(2)
#endif
	}
}

#define AT_REST(e) (!out[e] && \
		    ((state[e] == FREE && ref[e] == 0 && !listed[e] && !dirty[e]) || \
		     (state[e] == ACTIVE && ref[e] == 1 + REFS_OF_DIRTY * dirty[e] && listed[e]) || \
		     (state[e] == EVICTED && ref[e] == 1 && !listed[e] && dirty[e])))

active proctype watch()
{
	timeout -> assert(AT_REST(0) && AT_REST(1))
}
