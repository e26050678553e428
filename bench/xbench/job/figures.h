/* figures - what jobs did in a span of time: counts, rates, latencies.
 *
 * Contract: any thread, at any time: only the jobs' atomics are read. Of several jobs, counts are
 * added and histograms merged.
 */
#ifndef BENCH_XBENCH_FIGURES_H
#define BENCH_XBENCH_FIGURES_H

#include "bench/xbench/job/job.h"

#define XB_NR_PERCENTILES 17u
extern const double xb_percentiles[XB_NR_PERCENTILES];	/* fio's, ascending */

/* One direction in one span of time. */
struct xb_figures {
	uint64_t ios, bytes, span_ns;
	uint64_t min, max, mean, percentile[XB_NR_PERCENTILES];	/* ns */
};

/* The results of `nr` jobs beside their statistics. */
struct xb_totals {
	int error;				/* the first that is known, as a positive errno */
	uint64_t errors, verify_errors, misses, refused, direct_ios, runtime_ns;
};

/* From what was counted in `span_ns`. */
void xb_figures_of(
	const struct xhist *lat, uint64_t bytes, uint64_t span_ns, struct xb_figures *f);
/* Of one of the statistics of `nr` jobs together: an op, or XB_STAT_VERIFY. The span is that of the
 * job that ran longest. */
void xb_jobs_figures(
	struct xb_job *const *jobs, uint32_t nr, uint32_t stat, struct xb_figures *f);
/* The sums of their errors, and of other figures that are counted apart. */
void xb_jobs_totals(struct xb_job *const *jobs, uint32_t nr, struct xb_totals *t);
/* Per second; 0 for an empty span. */
uint64_t xb_rate(uint64_t count, uint64_t span_ns);
/* In a unit in which they have a few digits before the point. Returns out. */
const char *xb_human_ns(uint64_t ns, char *out, size_t size);

#endif
