/* pace - when a job may send its next I/O: --rate_iops and --rate.
 *
 * Contract: the job's thread alone. The functions only compute. Each limit is a schedule that is
 * fixed when the load begins: I/O N is due at N / rate_iops, and the byte after B bytes at B /
 * rate. So a job catches up after a pause.
 *
 * Invariant: P1  due and rounding are exact: they follow from all I/Os since the beginning, so
 *                errors do not add up
 */
#ifndef BENCH_XBENCH_PACE_H
#define BENCH_XBENCH_PACE_H

#include "bench/xbench/plan/options.h"

#define XB_SECOND_NS 1000000000ull

struct xb_pace {
	bool is_limited;
	uint64_t begin_ns;
	uint64_t iops, sent;			/* 0: no limit; I/Os so far */
	uint64_t rate[XB_NR_RATES], bytes[XB_NR_RATES];	/* a second, 0: no limit; so far */
};

static inline void xb_pace_init(struct xb_pace *p, const struct xb_options *o)
{
	*p = (struct xb_pace){ .iops = o->rate_iops };
	for (uint32_t i = 0; i < XB_NR_RATES; i++)
		p->rate[i] = o->rate_bytes[i];
	p->is_limited = p->iops || p->rate[XB_RATE_READ] || p->rate[XB_RATE_WRITE];
}

static inline void xb_pace_begin(struct xb_pace *p, uint64_t now_ns)
{
	p->begin_ns = now_ns;
	p->sent = 0;
	for (uint32_t i = 0; i < XB_NR_RATES; i++)
		p->bytes[i] = 0;
}

/* ns that `count` units take at `rate` units a second, 0 without a limit. */
static inline uint64_t xb_pace_ns(uint64_t count, uint64_t rate)
{
	return rate ? (uint64_t)((unsigned __int128)count * XB_SECOND_NS / rate) : 0;
}

/* When the next I/O may be sent, if it is an `op`. */
static inline uint64_t xb_pace_due(const struct xb_pace *p, enum xb_op op)
{
	enum xb_rate_of of = op == XB_READ ? XB_RATE_READ : XB_RATE_WRITE;
	uint64_t by_iops = xb_pace_ns(p->sent, p->iops);
	uint64_t by_bytes = xb_pace_ns(p->bytes[of], p->rate[of]);

	return p->begin_ns + (by_iops > by_bytes ? by_iops : by_bytes);
}

static inline void xb_pace_sent(struct xb_pace *p, enum xb_op op, uint32_t bytes)
{
	p->sent++;
	p->bytes[op == XB_READ ? XB_RATE_READ : XB_RATE_WRITE] += bytes;
}

#endif
