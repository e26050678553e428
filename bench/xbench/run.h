/* run - a whole run: its jobs, its phases, signals, samples, and the watch over missing answers.
 *
 * Contract: one run at a time, by the main thread, which holds no locks. SIGINT and SIGTERM end the
 * load. The run waits up to 5 s for I/Os in flight (after a second signal: not at all), and the
 * results so far are the result. Without io_timeout a run waits for an answer for ever: a peer that
 * is restarted is a pause. Lines for people go to stderr.
 */
#ifndef BENCH_XBENCH_RUN_H
#define BENCH_XBENCH_RUN_H

#include "bench/xbench/job.h"

#define XB_NR_PERCENTILES 17u
extern const double xb_percentiles[XB_NR_PERCENTILES];	/* fio's, ascending */

/* One direction in one span of time. */
struct xb_figures {
	uint64_t ios, bytes, span_ns;
	uint64_t min, max, mean, percentile[XB_NR_PERCENTILES];	/* ns */
};

struct xb_sample {
	uint64_t start_ns, end_ns;		/* since counting began */
	struct xb_figures figures[XB_NR_OPS];
};

struct xb_run {
	const struct xb_options *opts;
	struct xb_shared shared;
	struct xb_verify verify;
	struct xb_job **jobs;
	uint32_t nr_jobs;
	struct xb_sample *samples;
	uint32_t nr_samples;
	bool interrupted, timed_out, log_failed, save_failed;
	bool is_full;				/* ended early, as the oracle had no room */
};

/* Finds the target, opens all jobs. 0 or -errno with a line in err. seg stays the caller's. */
int xb_run_open(struct xb_run *run, struct xb_options *o, struct xseg *seg,
		struct xseg_error *err) XSEG_MUST_CHECK;
/* Does all phases. 0, or -errno with a line in err when it could not begin; I/O errors are results.
 */
int xb_run_all(struct xb_run *run, struct xseg_error *err) XSEG_MUST_CHECK;
void xb_run_close(struct xb_run *run);

/* 0, 1 (an I/O failed or did not verify, the oracle had no room, the state could not be saved) or 3
 * (interrupted, timed out). */
int xb_run_exit_code(const struct xb_run *run);
/* Of one of a job's statistics: an op, or XB_STAT_VERIFY. */
void xb_job_figures(const struct xb_job *job, uint32_t stat, struct xb_figures *f);
/* Per second; 0 for an empty span. */
uint64_t xb_rate(uint64_t count, uint64_t span_ns);

#endif
