/* oracle - the possible contents of each 512-byte sector of the range, from all writes and reads of
 * the run.
 *
 * The rule. A sector is an atomic register whose writes have unique values. Each value v has a zone
 * of two times. f(v) is the earliest end of an operation that proves that v was there: its write
 * was acknowledged, or a read returned it. s(v) is the latest begin of an operation that must come
 * before v's end: its write, or a read that returned it. Values v and w conflict when f(v) < s(w)
 * and f(w) < s(v). The history is right if and only if no two values conflict. (P. Gibbons, E.
 * Korach, "Testing shared memories", SIAM J. Comput. 26(4), 1997.) In words, a read value is wrong
 * in three cases. It was never written there. Or its write was acknowledged before another was
 * issued that was itself complete before the read began. Or a read that was complete before already
 * returned a value that comes after it.
 *
 * The memory. A sector at rest, which can hold one value only, is 16 bytes. Otherwise it has a list
 * of nodes, one for each value that a read may still return. A value leaves the list when a read
 * issued from now on could not return it without a conflict: some w has f(v) < s(w), and f(w) lies
 * before the issue of every read in flight. So lists are as long as there are I/Os in flight on the
 * sector. The work for a sector is O(1) but for these.
 *
 * The uncertain cases. A write that failed may have happened or not, and may be undone later (a
 * store that lost its write cache). It proves nothing, and stays possible until a write issued
 * after its end is acknowledged. If a sector's writes keep failing, only some are told apart, at
 * last one: then any write of the run is possible there. Zeroing has no unique value. If several
 * zeroings could explain a read of zeroes, or a zeroing and the sector's older content, the read
 * proves none of them. The first read of a sector that was never written defines its older content.
 *
 * Lost or stale: the reader of an old value cannot know whether the newer one is gone. If the newer
 * one was read before, or is read later while nothing was written in between, the old one was
 * stale. Else the newer one counts as lost.
 *
 * Contract: any thread may call all functions at any time, but create, destroy and those for a
 * state file. begin functions are called before the request is submitted, end functions after its
 * reply was taken. A read without a request begins before the cache's tables are looked at, and
 * ends after its data was looked at. A read: its floor is set to xb_oracle_now(), then to the
 * result of xb_oracle_read_begin() (its issue time), and cleared after xb_oracle_read_end(). A
 * write: its issue time is xb_oracle_tick(). Spins on a lock of 64 sectors; allocates nothing.
 *
 * Invariants:
 *   M1  nr of nodes of a sector that is at rest is 0; else it has at least one node
 *   M2  nothing is dropped that a read in flight, or one that has not begun yet, may rightly return
 *   M3  knowing less (an end not yet reported) makes fewer things wrong, never more
 */
#ifndef BENCH_XBENCH_ORACLE_H
#define BENCH_XBENCH_ORACLE_H

#include <stdatomic.h>

#include "bench/xbench/oracle/stamp.h"
#include "xseg/xseg.h"

#define XB_NOT_READING UINT64_MAX
#define XB_FINDINGS    10

enum xb_wrong { XB_STALE, XB_LOST, XB_TORN, XB_MISPLACED, XB_NR_WRONG };
extern const char *const xb_wrong_names[XB_NR_WRONG];

struct xb_finding {
	enum xb_wrong wrong;
	uint64_t offset, expected, found, found_offset;
	enum xb_kind kind;
};

struct xb_oracle;

/* start and length in bytes, multiples of 512. floors: one word a request slot of all jobs: while
 * it reads, its issue time (or a lower bound), else XB_NOT_READING; they are the caller's. NULL
 * with a line in err. */
struct xb_oracle *xb_oracle_create(uint64_t start, uint64_t length, const _Atomic uint64_t *floors,
				   uint32_t nr_floors, struct xseg_error *err);
void xb_oracle_destroy(struct xb_oracle *o);
uint64_t xb_oracle_start(const struct xb_oracle *o);
uint64_t xb_oracle_length(const struct xb_oracle *o);

/* A time later than all that were given before. */
uint64_t xb_oracle_tick(struct xb_oracle *o);
uint64_t xb_oracle_now(struct xb_oracle *o);

/* Whether no write may begin any more, as there is no room to note what it may leave. */
bool xb_oracle_is_full(struct xb_oracle *o);

/* See above. value: what each sector of a write holds then (stamp.h); ok: it was answered well. */
void xb_oracle_write_begin(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t value,
			   uint64_t issued);
void xb_oracle_write_end(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t issued,
			 bool ok);
uint64_t xb_oracle_read_begin(struct xb_oracle *o, uint64_t offset, uint32_t size);
/* seen: one for each sector, or NULL when the read failed. Returns how many were wrong. */
uint32_t xb_oracle_read_end(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t issued,
			    const struct xb_seen *seen);

/* The write was refused: it is certainly not done. False: a read returned it all the same. */
bool xb_oracle_write_refused(struct xb_oracle *o, uint64_t offset, uint64_t issued);
/* The end of a read of one sector, which the caller counts: true if it is right, or if `seen` is
 * NULL; else f says what is wrong. */
bool xb_oracle_read_one(struct xb_oracle *o, uint64_t offset, uint64_t issued,
			const struct xb_seen *seen, struct xb_finding *f);

/* xb_oracle_read_end() of a second look at what may be lost: nothing is counted, but what is right
 * now was stale, not lost. */
void xb_oracle_look_again(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t issued,
			  const struct xb_seen *seen);

/* Counters of wrong sectors. A lost one may turn into a stale one later, never else. */
uint64_t xb_oracle_wrong(struct xb_oracle *o, enum xb_wrong wrong);
/* Counts `nr` sectors that were found wrong otherwise, of which f is the first. */
void xb_oracle_report(struct xb_oracle *o, const struct xb_finding *f, uint64_t nr);
/* The first XB_FINDINGS of them; returns how many. */
uint32_t xb_oracle_findings(struct xb_oracle *o, struct xb_finding *out);

/* What a read back must look at: anything known, or only what was read old and may be lost. */
bool xb_oracle_any_known(struct xb_oracle *o, uint64_t offset, uint32_t size);
bool xb_oracle_any_suspect(struct xb_oracle *o, uint64_t offset, uint32_t size);
/* The first sector at or behind offset that might be known (skips what was never touched), or the
 * end. */
uint64_t xb_oracle_skip(struct xb_oracle *o, uint64_t offset);

/* ---- for a state file, and for a run that is made again: one thread, nothing in flight ---- */

struct xb_possible {
	uint64_t value;
	bool unsure;			/* written by a request that failed or was not answered */
};
#define XB_MAX_POSSIBLE 1024u
/* What a sector may hold: fills out, returns how many; 0: never touched. */
uint32_t xb_oracle_possible(struct xb_oracle *o, uint64_t offset, struct xb_possible *out);
/* Replaces what is known of a sector. False: there is no room for it. */
bool xb_oracle_set_possible(struct xb_oracle *o, uint64_t offset, const struct xb_possible *all,
			    uint32_t nr);
/* A write of a run that is made again: removes values of the same job that are at least `window`
 * I/Os older. For zeroes, the job and its count must be known as well: tag is xb_value(job, seq),
 * value what is written. */
void xb_oracle_redo(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t value,
		    uint64_t tag, uint64_t window);

#endif
