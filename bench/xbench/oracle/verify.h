/* verify - between the jobs, whose requests have pages, and the oracle, which knows values of
 * sectors.
 *
 * Contract: one thread calls create, finish, save and print while no job runs. Any job calls the
 * others, each for its own requests, in the order of oracle.h. `slot` is the number of a request
 * slot over all jobs. Nothing but create and save blocks or allocates.
 *
 * Invariants:
 *   V1  a run in which every I/O was answered can be made again from its options: a job issues I/O
 *       n only when all I/Os up to n - window were answered, so writes further apart than that have
 *       an order
 */
#ifndef BENCH_XBENCH_VERIFY_H
#define BENCH_XBENCH_VERIFY_H

#include "bench/xbench/plan/gen.h"
#include "bench/xbench/oracle/oracle.h"
#include "bench/xbench/plan/where.h"

#define XB_MAX_RUNS 8u
#define XB_MAX_SEEN (XSEG_REQ_BYTES / XB_SECTOR)	/* room for the sectors of one request */

/* How many I/Os of a job may be between the oldest that is out and the newest, with --verify. */
static inline uint64_t xb_verify_window(const struct xb_options *o)
{
	return 8ull * o->iodepth;
}

/* A run whose stamps were found when any run would do (verify_only without a state). */
struct xb_found_run {
	_Atomic uint64_t run, sectors;
	uint64_t first_offset;
};

struct xb_verify {
	const struct xb_options *opts;
	struct xb_oracle *oracle;
	struct xb_whose whose;
	_Atomic uint64_t *floors;
	atomic_flag runs_lock;
	struct xb_found_run runs[XB_MAX_RUNS];
};

/* With verify_only what an earlier run left is known afterwards: from its state file, or by making
 * it again. */
int xb_verify_create(struct xb_verify *v, const struct xb_options *o, const struct xb_where *w,
		     struct xseg_error *err) XSEG_MUST_CHECK;
void xb_verify_destroy(struct xb_verify *v);

/* Before a write, trim or zeroing is submitted; stamps its pages. Returns its issue time. */
uint64_t xb_verify_write(struct xb_verify *v, struct xseg *seg, const struct xreq *r, uint32_t job,
			 const struct xb_io *io);
/* After its reply. */
void xb_verify_written(struct xb_verify *v, const struct xb_io *io, uint64_t issued, bool ok);
/* Before a read is submitted. Returns its issue time. */
uint64_t xb_verify_read(struct xb_verify *v, uint32_t slot, const struct xb_io *io);
/* After its reply. seen: XB_MAX_SEEN of the job's. again: a second look. Returns how many sectors
 * are wrong. */
uint32_t xb_verify_check(struct xb_verify *v, struct xseg *seg, const struct xreq *r, uint32_t slot,
			 const struct xb_io *io, uint64_t issued, bool ok, bool again,
			 struct xb_seen *seen);

/* After all reads: stamps of several runs were found where one was expected. */
void xb_verify_finish(struct xb_verify *v);
/* Writes the state file. 0 or -errno with a line in err. */
int xb_verify_save(struct xb_verify *v, struct xseg_error *err) XSEG_MUST_CHECK;
/* Sectors that are wrong, of all kinds. */
uint64_t xb_verify_wrong(const struct xb_verify *v);
/* Counts and the first findings, for people. Nothing when all is right. */
void xb_verify_print(const struct xb_verify *v);

#endif
