/* kv_job - what the two files of the room share: a job on a kvd. kv.h has its contract. */
#ifndef BENCH_XBENCH_KV_JOB_H
#define BENCH_XBENCH_KV_JOB_H

#include "bench/xbench/kv/kv.h"

/* One operation at a time, and its memory. */
struct xb_kv_place {
	struct xseg_kv_io kio;
	struct xb_kv_io io;
	struct xb_try t;
	uint64_t submit_ns;
	void *value;				/* value_max bytes, aligned to 64 */
	void *data;				/* of a put: that, or where it is sent from */
	char *key;				/* key_size bytes */
};

/* The job's thread changes it while the job runs. */
struct xb_kv_job {
	struct xb_job base;
	struct xseg_kv_queue *queue;
	struct xb_kv_gen gen;
	struct xb_kv_io next;			/* if base.next.has_io */
	struct xb_kv_place *places, **idle;
	uint32_t nr_idle, depth;
	uint8_t *memory;
};

void xb_kv_job_run(struct xb_job *job);

#endif
