/* oracle - says which values a read may return, sector by sector, and which values a loss of power
 * may leave.
 *
 * Each write has a number, stamped into every 512-byte sector of it together with the sector's
 * place. So a sector tells by itself which write it is from. A sector's candidates are the writes
 * that a read may still return. Time is a count of events: issues and completions.
 *
 * The rule, for a candidate W. W takes effect at some moment e(W) between its issue and by(W), the
 * first of its completion and the first read that returned it. X is surely after W if by(W) <
 * issue(X). W is stale for a read issued at t in two cases. An X surely after W had taken effect by
 * t. Or a read that ended by t returned a value V != W while by(W) lay before that read's issue
 * (then e(W) < e(V)).
 *
 * A write that failed may have been applied, by its completion, or not at all: it makes nothing
 * stale until a read returns it. In a run whose store fails requests, it makes nothing stale even
 * then. Nor does a write that is not answered yet: a cache may give up its data that the store has
 * refused. The read may end before the store begins to fail, so this holds for the whole run.
 * (Concurrent writes may land in either order, so "the newest acknowledged" would give false
 * alarms.)
 *
 * Durability (P1): a value is durable when its own write was FUA and acknowledged, or acknowledged
 * before the issue of a FLUSH of its volume that was answered. A loss of power may bring back every
 * value that is not surely before a durable one. So after a promise the store's durable contents
 * must be one of these.
 *
 * A cut (a volume shrinks, or is removed) is a durable write of zeroes to all that is cut off. One
 * thing is different: when a cut is answered, every write that was sent by then is before it, even
 * if that write is not answered yet. A write beyond the end is refused, and has no effect at all.
 *
 * A bucket of 4 KiB is written whole: a read must not show parts of two writes in one bucket that
 * both cover both parts.
 *
 * Contract: one thread. Nothing here knows peers or requests.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORACLE_VOLUMES 8
#define ORACLE_READS   256
#define ORACLE_SECTOR  512u
#define ORACLE_NEVER   UINT64_MAX

enum oracle_kind { ORACLE_DATA, ORACLE_ZEROES, ORACLE_COPY, ORACLE_CUT };

struct oracle_write {
	uint64_t issue, done;			/* done: NEVER while it is out */
	uint32_t volume, first, nr;		/* sectors */
	uint8_t kind, fua, ok;			/* ok: acknowledged */
	uint8_t era;				/* losses of power before it */
};

/* What a sector holds: what a write put into a sector, perhaps another one from which it was
 * copied; or zeroes. */
struct oracle_content {
	uint32_t write, volume, sector;
};

/* A write as a candidate of one sector. */
struct oracle_value {
	uint32_t write, next;
	struct oracle_content content;
	uint64_t by, stale;			/* stale for reads issued at or after that */
	bool certain;				/* it did take effect: acknowledged or read */
	bool durable;				/* outlived a loss of power */
};

struct oracle {
	uint64_t clock;
	uint32_t nr_volumes, sectors[ORACLE_VOLUMES];
	uint32_t *head[ORACLE_VOLUMES];		/* by sector: first candidate + 1 */
	uint64_t flushed[ORACLE_VOLUMES];	/* latest issue of a FLUSH that was answered */
	struct oracle_write *writes;
	uint32_t nr_writes, room_writes;
	struct oracle_value *values;
	uint32_t nr_values, room_values, free_value;
	uint8_t era;
	bool atomic_buckets;
	bool fails;		/* the store fails requests, now or later in the run */
	bool halves;		/* the store has done, or may do, half of a write and fail it */
	uint64_t reading[ORACLE_READS];		/* issues of the reads in flight */
	uint32_t nr_reading;
	char error[16384];
	uint32_t bad_volume, bad_sector;
};

void oracle_init(
	struct oracle *o, uint32_t nr_volumes, const uint32_t *sectors, bool atomic_buckets);
void oracle_fini(struct oracle *o);

uint64_t oracle_now(struct oracle *o);		/* the next moment */

/* A write, discard or write-zeroes is sent; its number. */
uint32_t oracle_write_begin(struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr,
	enum oracle_kind kind, bool fua);
/* A copy of the same sectors of another volume. They have to be settled: all that was sent to them
 * has been answered, and a read could return one value only. So they have to stay until the copy is
 * answered. */
bool oracle_is_settled(struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr);
uint32_t oracle_copy_begin(
	struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr, uint32_t source, bool fua);
/* The contents of one of its sectors. */
void oracle_fill(const struct oracle *o, uint32_t write, uint32_t sector, void *buf);
bool oracle_is_from(const void *data, uint32_t write, uint32_t volume, uint32_t sector);
void oracle_write_end(struct oracle *o, uint32_t write, bool ok);
/* It was answered as one beyond the end. False: a read has seen it; o->error says so. */
bool oracle_write_refused(struct oracle *o, uint32_t write);

/* A cut is sent: its number. Where a loss of power comes between, it is ended as a write that
 * failed, and sent again as another one. */
uint32_t oracle_cut_begin(struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr);
void oracle_cut_end(struct oracle *o, uint32_t cut);
/* What was cut is about to be there again. This write is out, and nobody has looked at its range
 * yet: it may still come, unless a read has seen it. */
void oracle_write_may_come(struct oracle *o, uint32_t write);

/* A read is sent: its moment. Ends with oracle_read_end() or, when it failed,
 * oracle_read_drop(). */
uint64_t oracle_read_begin(struct oracle *o);
void oracle_read_drop(struct oracle *o, uint64_t begin);

/* A read of nr sectors, issued at `begin`, has ended well; get() gives the address of its i-th
 * sector. False: something cannot be; o->error says what. */
bool oracle_read_end(struct oracle *o, uint64_t begin, uint32_t volume, uint32_t first, uint32_t nr,
		     const void *(*get)(void *arg, uint32_t i), void *arg);

/* A FLUSH issued at `begin` was answered; volume ORACLE_VOLUMES: all. */
void oracle_flush_end(struct oracle *o, uint64_t begin, uint32_t volume);

/* What a loss of power would leave now of nr sectors, which get() gives the addresses of. False:
 * something that was promised would be lost; o->error says what. */
bool oracle_durable(struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr,
	const void *(*get)(void *arg, uint32_t i), void *arg);

/* The same for what is in the store now, where writes are answered when it has them: false when it
 * is older than one of them. */
bool oracle_stored(struct oracle *o, uint32_t volume, uint32_t first, uint32_t nr,
	const void *(*get)(void *arg, uint32_t i), void *arg);

/* Everything that was out is lost, and what was not durable may be. */
void oracle_power_loss(struct oracle *o);

#endif
