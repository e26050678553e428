/* live - the line on a terminal that shows how far a phase is, its rates and the time left.
 *
 * Contract: the main thread's. It reads the jobs' atomics, and writes the line with
 * progress_line.h. Without a terminal it does nothing.
 */
#ifndef BENCH_XBENCH_LIVE_H
#define BENCH_XBENCH_LIVE_H

#include "bench/xbench/job/job.h"

/* One point in time of a phase: the I/Os and the bytes since it began. */
struct xb_live_point {
	uint64_t at_ns, ios[XB_NR_STATS], bytes[XB_NR_STATS];
};

struct xb_live {
	const struct xb_shared *shared;
	struct xb_job *const *jobs;
	uint32_t nr_jobs;
	uint64_t begin_ns, next_ns;		/* of the phase; of the line */
	struct xb_live_point first, last;	/* of the phase; of the last line */
};

/* A phase begins. jobs: the caller's, until the phase is over. */
void xb_live_start(struct xb_live *l, const struct xb_shared *shared, struct xb_job *const *jobs,
		   uint32_t nr_jobs, uint64_t now_ns);
/* Writes the line, if that is due. */
void xb_live_look(struct xb_live *l, uint64_t now_ns);
/* How much of the phase is done, of 1; below 0: it cannot be known. */
double xb_live_done(const struct xb_live *l, uint64_t now_ns);

#endif
