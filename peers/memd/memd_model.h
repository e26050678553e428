/* memd_model - how slow memd is and how it fails: the timing of a device, and injected faults.
 *
 * A request passes two servers one after the other. One takes 1/iops of a second for each request,
 * the other size/bandwidth. Each serves in order of arrival. Then come the latency and a uniform
 * part of the jitter. So under a constant load the rates are exactly the limits, and each request
 * waits the latency in addition.
 *
 * A fault is `OP:PROBABILITY[@NTH]:WHAT`. OP is a request's op or `any`. PROBABILITY is a number
 * from 0 to 1 or a percentage. With @NTH only the NTH request that matches is meant, counted since
 * the fault was set. The last part is one of
 * 	EIO, ENOSPC ...	the request fails with that error and changes nothing
 * 	short		it does the first half (whole sectors where it has several), and says so
 * 	stall=TIME	it takes that much longer, 1h at most
 *
 * Every fault is asked about every request. The first that fires decides about failing. Stalls add
 * up.
 *
 * Contract: any thread; memd_model_* take the model's lock, a leaf. No clock but the caller's
 * `now_ns`; random numbers come from the seed alone.
 */
#ifndef PEERS_MEMD_MODEL_H
#define PEERS_MEMD_MODEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "xseg/xseg.h"

#define MEMD_FAULTS_MAX	  16
#define MEMD_OP_ANY	  XSEG_NR_OPS
#define MEMD_DELAY_MAX_NS UINT64_C(3600000000000)	/* of a latency, a jitter, a stall */

enum memd_fault_kind { MEMD_FAULT_ERROR, MEMD_FAULT_SHORT, MEMD_FAULT_STALL };

struct memd_fault {
	uint32_t op;				/* enum xseg_op or MEMD_OP_ANY */
	uint64_t chance;			/* of 2^32 */
	uint64_t nth;				/* 0: all that match */
	enum memd_fault_kind kind;
	int error;				/* negative errno */
	uint64_t stall_ns;
	uint64_t seen;				/* matching requests so far */
};

/* What a user sets: memd's options. */
struct memd_timing {
	uint64_t latency_ns, jitter_ns, bandwidth, iops;
};

struct memd_model {
	_Atomic bool active;			/* anything but "at once and without fail" is set */
	pthread_mutex_t lock;			/* guards all below */
	struct memd_timing timing;
	struct memd_fault fault[MEMD_FAULTS_MAX];
	uint32_t nr_faults;
	uint64_t random;
	struct memd_server {
		uint64_t free_ns;		/* when it has done all that it took */
		uint64_t rest;			/* of its divisions, so that rates are exact */
	} by_iops, by_bytes;
};

struct memd_verdict {
	uint64_t due_ns;			/* when it is done; <= now: at once */
	int error;				/* negative: it fails */
	bool cut;				/* it is short */
};

void memd_model_init(struct memd_model *m, const struct memd_timing *timing, uint64_t seed);
void memd_model_fini(struct memd_model *m);
void memd_model_set_timing(struct memd_model *m, const struct memd_timing *timing);
void memd_model_set_seed(struct memd_model *m, uint64_t seed);
/* Whether they are lines of faults, and not too many. -EINVAL with a reason. */
int memd_model_check_faults(const char *lines, struct xseg_error *err) XSEG_MUST_CHECK;
/* Lines of faults. Those that stand where they stood keep their count. -EINVAL with a reason. */
int memd_model_set_faults(struct memd_model *m, const char *lines,
	struct xseg_error *err) XSEG_MUST_CHECK;

/* A request begins. */
struct memd_verdict memd_model_begin(struct memd_model *m, enum xseg_op op, uint32_t size,
	uint64_t now_ns);

/* Reads one fault. -EINVAL with a line that says what would be right. */
int memd_fault_parse(const char *text, struct memd_fault *f,
	struct xseg_error *err) XSEG_MUST_CHECK;

/* For the fast path: false: begin() would answer "at once". */
static inline bool memd_model_active(struct memd_model *m)
{
	return atomic_load_explicit(&m->active, memory_order_relaxed);
}

#endif
