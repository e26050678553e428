/* loghead - the two copies of an append-only log's head reserve ids and say which zones are dying,
 * while a write of the head fails, the log is killed and the power fails.
 *
 * Proves: an opening always finds a head. No id is used twice, and no object is found under a new
 * id. Each opening has an epoch of its own. The head that an opening finds names each object of the
 * store, so no zone leaks. A zone that the log began to delete never counts as live again.
 *
 *   step here    stands for
 *   reserve      ids are reserved and marked as live, in memory
 *   die, forget  a zone is marked as dying; its bits are cleared, in memory
 *   write        the head goes to one of the copies with the next version, as a FUA write
 *   wrote        it was answered: the head is *confirmed*, and the log may act on it
 *   failed       it failed. The copy is the old one, is torn, or is the new one, which a loss of
 *                power may still take away
 *   use          the first write of the next zone makes its object
 *   delete       the object of a dying zone is deleted. Until a FLUSH it may come back
 *   flush        new objects and deletes become durable
 *   kill         the arena says which copy was confirmed last
 *   power        of all that is not durable, any part is left. So what can be read is durable
 *   opening      the newest copy that is whole. A new epoch is confirmed before the log does
 *                anything else
 *
 * A write always goes to the copy that was not confirmed last. That need not be the older one:
 * after a failed write and a kill, the newer copy may be readable and not durable.
 *
 * Left out: more than one id in a reservation; records, and why a zone is dying (logclean.pml); the
 * limit for the range of ids.
 *
 * Broken rules: BUG_USED_BEFORE_RESERVED, BUG_IDS_GIVEN_BACK, BUG_LIVE_LATER, BUG_ONE_COPY,
 * BUG_ALTERNATES_AFTER_FAIL, BUG_NEWEST_IS_SPARED, BUG_EPOCH_LATE, BUG_DELETED_BEFORE_DYING,
 * BUG_FORGOTTEN_BEFORE_FLUSH
 */
#define IDS     3
#define CRASHES 2
#define FAILS   1
#ifdef LONG
#define WRITES  8
#else
#define WRITES  6
#endif

/* A copy of the head. Version 0: it is torn. */
typedef head {
	byte version, epoch, reserved;  /* ids below `reserved` may be used */
	byte live, dying                /* a bit an id */
}
head now;                           /* in memory */
head copy[2];                       /* as a read finds it */
head old[2];                        /* what a loss of power may leave, if `shaky` */
bool shaky[2];
byte confirmed;                     /* the copy that was confirmed last; in the arena */
#ifdef BUG_ALTERNATES_AFTER_FAIL
byte turn;
#endif

byte to;                            /* the copy that is being written */
bool out, changed;                  /* a write is out; memory differs from the last one */
bool opened;                        /* the new epoch is durable */
byte next;                          /* the next id */
byte reserved, dying;               /* as the last confirmed head has them */

/* The store's objects, a bit an id. */
byte exists, durable;

/* Ghosts: ids that were used; zones that the log began to delete; the opening of each epoch. */
byte used, dead, opening_of[CRASHES + 3];
byte crashes, fails, writes;

#define BIT(id)     (1 << (id))
#define HAS(set, id) (((set) >> (id)) & 1)

inline copy_head(from, into)
{
	into.version = from.version; into.epoch = from.epoch; into.reserved = from.reserved;
	into.live = from.live; into.dying = from.dying
}

inline tear(which)
{
	which.version = 0; which.epoch = 0; which.reserved = 0; which.live = 0; which.dying = 0
}

/* ---- the head ---- */

#ifdef BUG_ONE_COPY
#define SPARE confirmed
#else
#ifdef BUG_ALTERNATES_AFTER_FAIL
#define SPARE turn
#else
#define SPARE (1 - confirmed)
#endif
#endif

inline write()
{
	writes++;
	now.version = (copy[0].version > copy[1].version -> copy[0].version : copy[1].version) + 1;
	to = SPARE;
#ifdef BUG_ALTERNATES_AFTER_FAIL
	turn = 1 - turn;
#endif
	out = true; changed = false
}

inline written()
{
	copy_head(now, copy[to]);
	tear(old[to]);
	shaky[to] = false;
	out = false; to = 0
}

inline wrote()
{
	confirmed = to;
	reserved = now.reserved; dying = now.dying;
	opened = true;
	written()
}

inline keep_old()
{
	if
	:: !shaky[to] -> copy_head(copy[to], old[to]); shaky[to] = true
	:: else
	fi
}

/* What a write that failed has left. */
inline failed()
{
	if
	:: skip                                         /* the old one */
	:: tear(copy[to]); tear(old[to]); shaky[to] = false
	:: keep_old(); copy_head(now, copy[to])
	fi;
	out = false; to = 0
}

/* ---- zones ---- */

inline use()
{
	assert(!HAS(used, next) && !HAS(exists, next));
	assert(opening_of[now.epoch] == 0 || opening_of[now.epoch] == crashes + 1);
	opening_of[now.epoch] = crashes + 1;
	used = used | BIT(next);
	exists = exists | BIT(next);
#ifdef BUG_LIVE_LATER
	now.live = now.live | BIT(next); changed = true;
#endif
	next++
}

inline reserve()
{
#ifndef BUG_LIVE_LATER
	now.live = now.live | BIT(now.reserved);
#endif
	now.reserved++;
	changed = true
}

#ifdef BUG_USED_BEFORE_RESERVED
#define MAY_USE     (opened && next < now.reserved)
#else
#define MAY_USE     (opened && next < reserved)
#endif
#define MAY_RESERVE (opened && !out && !changed && next == now.reserved && next < IDS)
#define MAY_DIE(z)  (opened && !out && HAS(exists & now.live & ~now.dying, z))
#ifdef BUG_DELETED_BEFORE_DYING
#define MAY_DELETE(z) (opened && HAS(exists & now.dying, z))
#else
#define MAY_DELETE(z) (opened && HAS(exists & dying & now.dying, z))
#endif
/* It is deleted, durably; or its id was reserved before this opening, and never used. */
#ifdef BUG_FORGOTTEN_BEFORE_FLUSH
#define IS_GONE(z)  (!HAS(exists, z))
#else
#define IS_GONE(z)  (!HAS(exists | durable, z))
#endif
#define MAY_FORGET(z) (opened && !out && (z) < next && HAS(now.live, z) && IS_GONE(z))

inline delete(z)
{
	exists = exists & ~BIT(z); dead = dead | BIT(z)
}

inline forget(z)
{
	now.live = now.live & ~BIT(z); now.dying = now.dying & ~BIT(z); changed = true
}

/* ---- crashes ---- */

inline opening()
{
	best = copy[1].version > copy[0].version;
	assert(copy[best].version);
	copy_head(copy[best], now);
	assert((exists & ~now.live) == 0);
	assert((dead & now.live & ~now.dying) == 0);
#ifdef BUG_NEWEST_IS_SPARED
	confirmed = best;
#endif
#ifdef BUG_ALTERNATES_AFTER_FAIL
	turn = 1 - confirmed;
#endif
	now.epoch++;
	changed = true; best = 0; reserved = 0; dying = 0;
	next = now.reserved;
#ifdef BUG_IDS_GIVEN_BACK
	next = 0;
	do
	:: HAS(exists, next) -> next++
	:: else -> break
	od;
#endif
#ifdef BUG_EPOCH_LATE
	opened = true; reserved = now.reserved; dying = now.dying
#else
	opened = false
#endif
}

inline cut_copy(c)
{
	if
	:: shaky[c] -> copy_head(old[c], copy[c])
	:: shaky[c] -> tear(copy[c])
	:: true                                         /* it is as it was read */
	fi;
	tear(old[c]);
	shaky[c] = false
}

inline cut_zone(z)
{
	if
	:: HAS(exists ^ durable, z) -> exists = exists ^ BIT(z)
	:: true
	fi
}

active proctype log()
{
	byte best;

	d_step {
		copy[0].version = 1; copy[0].epoch = 1;
		copy_head(copy[0], now);
		opened = true
#ifdef BUG_ALTERNATES_AFTER_FAIL
		; turn = 1
#endif
	};
end_log:
	do
	:: d_step { MAY_RESERVE -> reserve() }
	:: d_step { MAY_USE -> use() }
	:: d_step { MAY_DIE(0) -> now.dying = now.dying | BIT(0); changed = true }
	:: d_step { MAY_DIE(1) -> now.dying = now.dying | BIT(1); changed = true }
	:: d_step { MAY_DELETE(0) -> delete(0) }
	:: d_step { MAY_DELETE(1) -> delete(1) }
	:: d_step { MAY_FORGET(0) -> forget(0) }
	:: d_step { MAY_FORGET(1) -> forget(1) }
	:: d_step { exists != durable -> durable = exists }             /* flush */
	:: d_step { changed && !out && writes < WRITES -> write() }
	:: d_step { out -> wrote() }
	:: atomic { out && fails < FAILS -> fails++; failed(); changed = true }
	:: atomic { crashes < CRASHES - 1 -> crashes++;                 /* kill */
		if
		:: out -> d_step { written() }
		:: out && fails < FAILS -> fails++; failed()
		:: !out
		fi;
		d_step { opening() } }
	:: atomic { crashes++;                                          /* power */
		if
		:: out -> failed()
		:: out -> d_step { written() }
		:: !out
		fi;
		cut_copy(0); cut_copy(1);
		cut_zone(0); cut_zone(1); cut_zone(2);
		d_step {
			durable = exists;
			confirmed = copy[1].version > copy[0].version;
			opening() };
		if
		:: crashes == CRASHES -> goto over
		:: else
		fi }
	od;
over:	skip
}
