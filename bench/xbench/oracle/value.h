/* value - the stamp of a value by key that xbench puts when it verifies, and its reading.
 *
 * A stamped value has a head: magic, signature of the options, run, store, key, tag, its size, and
 * a CRC-32C over all of it. Behind the head come words that follow from it. Last comes a mark of
 * the run. So a value that was cut, or put together from two, fails its checksum, wherever the seam
 * is. A value of another key has a right checksum and a wrong key.
 *
 * Contract: pure functions; any thread. struct xb_whose, struct xb_seen and the 64 bits that a
 * value is known by are stamp.h's; the offset there is xb_value_offset() of the key.
 */
#ifndef BENCH_XBENCH_VALUE_H
#define BENCH_XBENCH_VALUE_H

#include "bench/xbench/oracle/stamp.h"

/* What the oracle has in place of a key: a sector each. */
static inline uint64_t xb_value_offset(uint64_t key) { return key * XB_SECTOR; }

struct xb_value_stamp {
	uint64_t signature, run, target, key, tag;
};

/* value: aligned to 8, XB_STAMPED_MIN bytes or more. */
void xb_value_write(void *value, uint32_t bytes, const struct xb_value_stamp *stamp);
void xb_value_read(const void *value, uint64_t bytes, const struct xb_whose *whose, uint64_t key,
		   struct xb_seen *seen);
/* What is seen of a key that is not there. */
void xb_value_absent(struct xb_seen *seen);

#endif
