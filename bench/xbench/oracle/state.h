/* state - a file of the possible contents of every sector, so that a later run can read it back.
 *
 * Format (this machine's byte order): struct xb_state_head, records, CRC-32C of all before it. A
 * record is { u64 offset; u32 sectors; u32 nr; u64 value[nr] }. Each of `sectors` sectors from
 * offset on may hold one of the values (stamp.h; bit 62: its write was not acknowledged). Sectors
 * without knowledge have no record.
 *
 * Contract: one thread, nothing in flight. Saving writes FILE.PID.tmp, syncs it and renames it:
 * FILE is the old or the new one, whole. Loading trusts nothing in the file.
 */
#ifndef BENCH_XBENCH_STATE_H
#define BENCH_XBENCH_STATE_H

#include "bench/xbench/oracle/oracle.h"

struct xb_state_head {
	uint64_t magic;
	uint64_t signature, run, target;	/* whose the stamps are */
	uint64_t start, length;			/* bytes */
};

/* Whether a file can be made there: before a run that would be for nothing. 0; -EIO; -EINVAL: what
 * is there is no regular file. */
int xb_state_may_save(const char *path, struct xseg_error *err) XSEG_MUST_CHECK;
/* head->magic, start and length are set here. */
int xb_state_save(const char *path, struct xb_state_head *head, struct xb_oracle *o,
		  struct xseg_error *err) XSEG_MUST_CHECK;
/* Makes the oracle of the file's range. 0; -EIO: it cannot be opened; -EINVAL: not a whole file of
 * this kind; -ENOMEM. */
int xb_state_load(const char *path, struct xb_state_head *head, const _Atomic uint64_t *floors,
		  uint32_t nr_floors, struct xb_oracle **oracle,
		  struct xseg_error *err) XSEG_MUST_CHECK;

#endif
