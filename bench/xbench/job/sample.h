/* sample - the work of the jobs in each interval of --status-interval, taken from their counters
 * while they run.
 *
 * Contract: the main thread's. It reads the jobs' atomics, keeps each sample, and writes a
 * line a sample on stderr. Samples begin when the ramp is over. Allocates as samples come; without
 * memory for one, samples end.
 */
#ifndef BENCH_XBENCH_SAMPLE_H
#define BENCH_XBENCH_SAMPLE_H

#include "bench/xbench/job/figures.h"

struct xb_sample {
	uint64_t start_ns, end_ns;		/* since counting began */
	struct xb_figures figures[XB_NR_OPS];
};

/* All 0: nothing is sampled. */
struct xb_sampler {
	const struct xb_options *opts;
	struct xb_job *const *jobs;
	uint32_t nr_jobs;
	struct xb_sample *samples;
	uint32_t nr_samples, room;
	uint64_t begin_ns, last_ns, next_ns;
	struct xb_stat *sums;		/* two sets of XB_NR_OPS: as of the last sample, and now */
};

/* jobs: the caller's, until fini. */
void xb_sampler_init(struct xb_sampler *s, const struct xb_options *o, struct xb_job *const *jobs,
		     uint32_t nr_jobs);
/* The load begins. */
void xb_sampler_start(struct xb_sampler *s, uint64_t now_ns);
/* So long the next sample is not due. */
int xb_sampler_timeout_ms(const struct xb_sampler *s, uint64_t now_ns);
/* Takes a sample when one is due. */
void xb_sampler_look(struct xb_sampler *s, uint64_t now_ns);
/* Takes the last, shorter one, unless it is less than a tenth of an interval: too short to mean
 * anything. */
void xb_sampler_end(struct xb_sampler *s, uint64_t now_ns);
void xb_sampler_fini(struct xb_sampler *s);

#endif
