/* run - a whole run: its jobs, its phases, signals, samples, and the watch over missing answers.
 *
 * Contract: one run at a time, by the main thread, which holds no locks. SIGINT and SIGTERM end a
 * load. The run waits up to 5 s for I/Os in flight, if there is an answer at least every second
 * (after a second signal: not at all). The results so far are the result. Without io_timeout a run
 * waits for an answer for ever: a peer that is restarted is a pause. Lines for people go to stderr.
 */
#ifndef BENCH_XBENCH_RUN_H
#define BENCH_XBENCH_RUN_H

#include "bench/xbench/job/job.h"
#include "bench/xbench/job/sample.h"
#include "bench/xbench/kv/kv.h"

struct xb_run {
	const struct xb_options *opts;
	struct xb_shared shared;
	struct xb_verify verify;
	struct xb_kv kv;			/* with --kvd, if shared.kv is set */
	struct xb_job **jobs;
	uint32_t nr_jobs;
	struct xb_sampler sampler;		/* with --status-interval */
	bool interrupted, timed_out, log_failed, save_failed;
	bool lost;				/* the segment was removed meanwhile */
	bool taken;				/* a cache was put above the target meanwhile */
	bool is_full;				/* ended early, as the oracle had no room */
};

/* Finds the target, opens all jobs. 0 or -errno with a line in err. seg stays the caller's. */
int xb_run_open(struct xb_run *run, struct xb_options *o, struct xseg *seg,
		struct xseg_error *err) XSEG_MUST_CHECK;
/* Does all phases. 0, or -errno with a line in err when it could not begin; I/O errors are results.
 */
int xb_run_all(struct xb_run *run, struct xseg_error *err) XSEG_MUST_CHECK;
void xb_run_close(struct xb_run *run);

/* 0, 1 (an I/O failed or did not verify, the segment was removed, the oracle had no room, the state
 * could not be saved, the target got a cache) or 3 (interrupted, timed out). */
int xb_run_exit_code(const struct xb_run *run);

#endif
