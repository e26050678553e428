/* kv - jobs on a kvd: each a thread with a queue of xseg/kv.h, which keeps iodepth operations out.
 *
 * Contract: the main thread calls open, close, create and destroy while no job runs. The job's
 * thread calls xb_kv_job_run(), by job->run. It allocates nothing, and makes no system call but to
 * sleep and to wake others. Its results are those of job.h: a get is a read, a put a write, a flush
 * a sync.
 *
 * Invariants:
 *   V2  an operation is counted once: as answered, or as failed
 *   V3  what a get lends is released before its place is used again
 */
#ifndef BENCH_XBENCH_KV_H
#define BENCH_XBENCH_KV_H

#include "bench/xbench/job/job.h"
#include "bench/xbench/oracle/keys.h"
#include "xseg/kv.h"

/* The state that all jobs of a run share. */
struct xb_kv {
	struct xseg_kv *store;
	struct xb_keys *keys;			/* NULL: nothing is verified */
	_Atomic uint64_t *versions;	/* of each key, as told last; NULL: no cas */
};

/* Opens the store, finds its peer for shared->where, sets the counters to 0. 0, or -errno with a
 * line in err. */
int xb_kv_open(struct xb_kv *kv, struct xb_shared *shared, struct xseg_error *err) XSEG_MUST_CHECK;
void xb_kv_close(struct xb_kv *kv);

/* NULL with a line in err, *rc the errno. */
struct xb_job *xb_kv_job_create(struct xb_shared *shared, uint32_t nr, int *rc,
				struct xseg_error *err);

#endif
