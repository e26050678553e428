/* stamp - the stamp that xbench writes into each 512-byte sector when it verifies, and its reading.
 *
 * A stamped sector holds: magic, signature of the options, run, target, offset and tag. Then come
 * words that follow from these. Last come half of the run's hash as a trailer and a CRC-32C
 * (Castagnoli) over all before it. A sector put together from two writes fails its checksum,
 * wherever the seam is. A sector that was written to the wrong place has a right checksum and a
 * wrong target or offset.
 *
 * Contract: pure functions; any thread.
 *
 * Values: a sector's content is known to the oracle by 64 bits.
 *   0                unknown, not of this run
 *   1                zeroes
 *   2                anything
 *   job << 48 | seq  a write of this run; job from 1
 *   bit 63 set       other content, with a hash of it
 *
 * Bit 62 is left free (state.c marks with it).
 */
#ifndef BENCH_XBENCH_STAMP_H
#define BENCH_XBENCH_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XB_SECTOR	 512u
#define XB_VALUE_UNKNOWN 0ull
#define XB_VALUE_ZERO	 1ull
#define XB_VALUE_ANY	 2ull
#define XB_VALUE_OTHER	 (1ull << 63)
#define XB_VALUE_SPARE	 (1ull << 62)

static inline uint64_t xb_value(uint32_t job, uint64_t seq)
{
	return ((uint64_t)job + 1) << 48 | seq;
}
static inline uint32_t xb_value_job(uint64_t value) { return (uint32_t)(value >> 48) - 1; }
static inline uint64_t xb_value_seq(uint64_t value) { return value & 0xffffffffffffull; }

struct xb_stamp {
	uint64_t signature, run, target, offset, tag;	/* tag: a value of this run */
};

/* Whose a stamp is: `any_run` compares the signature instead of the run (verify_only without a
 * state). */
struct xb_whose {
	uint64_t signature, run, target;
	bool any_run;
};

enum xb_kind {
	XB_SEEN_ZERO, XB_SEEN_OURS,		/* ours: right place, right checksum */
	XB_SEEN_TORN,			/* certainly of our run, and the checksum is wrong */
	XB_SEEN_MISPLACED,			/* ours, from another place */
	XB_SEEN_OTHER,			/* something else with a right stamp: another run's */
	XB_SEEN_BROKEN,			/* a stamp of whatever run, and the checksum is wrong */
	XB_SEEN_UNSTAMPED			/* no stamp */
};

struct xb_seen {
	uint64_t value;				/* as above */
	uint64_t run;				/* stamped: of which run */
	uint64_t offset;			/* stamped: what it says */
	enum xb_kind kind;
};

/* sector: 512 bytes, aligned to 8. */
void xb_stamp_write(void *sector, const struct xb_stamp *stamp);
void xb_stamp_read(const void *sector, const struct xb_whose *whose, uint64_t offset,
		   struct xb_seen *seen);

#endif
