/* kv_options - the options of a load on a kvd, checked and worked out.
 *
 * Contract: as options.h, whose xb_options_parse() calls it.
 *
 * Invariants, after it, with a kvd:
 *   P1  rw is one of get, put, getput and fill
 *   P2  each of `keys` keys, and of XB_COUNTERS_MAX counters behind them, has a name of its own of
 *       key_size bytes
 *   P3  1 <= value_size <= value_max <= XB_VALUE_SIZE_MAX; with verify a value has room for a stamp
 *   P4  no option is set that says where in a range, or how large a block
 */
#ifndef BENCH_XBENCH_KV_OPTIONS_H
#define BENCH_XBENCH_KV_OPTIONS_H

#include "bench/xbench/plan/options.h"

#define XB_KEYS_MAX	  (1ull << 32)
#define XB_KEY_SIZE_MAX	  16384u
/* With the longest key, what a queue of xseg/kv.h puts and gets in one request. */
#define XB_VALUE_SIZE_MAX (960u << 10)
#define XB_COUNTERS_MAX	  4096u
#define XB_KV_IODEPTH_MAX 1024u			/* of a queue */
#define XB_STAMPED_MIN	  64u			/* bytes of a stamped value, at least */

/* Without --kvd: refuses the options that are of a kvd only. */
int xb_kv_options(struct xb_options *o, struct xseg_error *err) XSEG_MUST_CHECK;
/* The same, when all options have been read. */
int xb_kv_options_together(const struct xb_options *o, struct xseg_error *err) XSEG_MUST_CHECK;
/* Keys that INCR counts in, beside the others: 0 if nothing does. */
uint32_t xb_kv_counters(const struct xb_options *o);

#endif
