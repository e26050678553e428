/* job - one thread with one port that keeps iodepth I/Os in flight, and counts them.
 *
 * Contract: the main thread calls create and destroy while the job's thread does not run; the job's
 * thread calls xb_job_run(). It polls, then sleeps in xseg_port_wait(); it allocates nothing and
 * makes no other system call. It returns when the phase is over and all is answered, or at
 * XB_ABANDON with I/Os still in flight: then the job must not be run again. The main thread may
 * read the results at any time.
 *
 * Latency runs from just before a batch is submitted until a batch of replies is taken.
 *
 * Invariants:
 *   J1  inflight is the number of requests that are submitted and not answered, and
 *       nr_plain + nr_gifted + nr_unread + inflight == reqs.nr
 *   J2  with verify, no I/O is issued while one that is `window` or more older is in flight
 *       (verify.h, V1)
 *   J3  a barrier flush is issued when nothing is in flight, and nothing is issued until it is
 *       answered
 *   J4  lent pages are read when the next I/Os are on their way: until then their requests are in
 *       `unread`, and spare ones are in flight. Never more than iodepth are
 */
#ifndef BENCH_XBENCH_JOB_H
#define BENCH_XBENCH_JOB_H

#include <stdatomic.h>

#include "bench/xbench/job/pace.h"
#include "bench/xbench/plan/gen.h"
#include "bench/xbench/plan/iolog.h"
#include "bench/xbench/oracle/verify.h"
#include "bench/xbench/plan/where.h"
#include "peers/common/clock/clock.h"
#include "xtypes/xhist.h"

/* Replies taken at once: what they lend is looked at before it is pushed out of the first cache
 * (bench/limits/limit_client.c); with 8 the peer and the job wait for each other. */
#define XB_BATCH       10u
#define XB_SPARE       16u			/* J4 */
#define XB_SPARE_BYTES (64u << 10)		/* blocks larger than this have none */
#define XB_STAT_VERIFY XB_NR_OPS		/* reads of the read back after the load */
#define XB_NR_STATS    (XB_NR_OPS + 1)

extern const char *const xb_stat_names[XB_NR_STATS];	/* as in the JSON */

enum xb_phase {
	XB_LOAD,				/* what the options say */
	XB_READ_BACK,				/* all that is known to the oracle */
	XB_LOOK_AGAIN				/* what may be lost */
};
enum xb_stop { XB_GO, XB_STOP, XB_ABANDON };	/* STOP: issue no more, wait for what is out */

struct xb_stat {
	struct xhist lat;			/* ns */
	_Atomic uint64_t bytes;
};

/* The state that all jobs of a run share. Constant while they run, but for what is atomic. */
struct xb_kv;

struct xb_shared {
	const struct xb_options *opts;
	struct xseg *seg;
	struct xb_where where;
	struct xb_verify *verify;		/* NULL: not asked for, or a kvd */
	struct xb_kv *kv;			/* NULL: no kvd (kv/kv.h) */
	enum xb_phase phase;
	_Atomic int stop;			/* enum xb_stop */
	_Atomic uint64_t cursor;		/* reading back: where the next block begins */
	_Atomic uint32_t told;			/* errors printed */
};

/* A request and what it is out for. */
struct xb_flight {
	struct xreq *r;
	struct xb_io io;
	uint64_t submit_ns;
	const uint64_t *first;			/* loan: where the first page of its answer is */
	uint64_t issued;			/* the oracle's time */
	uint32_t slot;				/* its number over all jobs */
	int error;				/* of its answer, an errno */
};

/* The I/O that comes next, and what keeps it back. The job's thread changes it: make_next() puts an
 * I/O there, issue() takes it. */
struct xb_next {
	struct xb_io io;			/* if has_io */
	bool has_io;
	bool over;				/* the phase: no more is issued in it */
	bool alone;				/* a barrier is out (J3) */
	bool is_full;				/* the oracle had no room: why it is over */
};

/* The requests and their pages (J1, J4). xb_job_create() takes them from the segment; later the
 * job's thread alone moves them between idle, in flight and unread. */
struct xb_requests {
	struct xb_flight *all;
	struct xb_flight **idle; /* the plain ones first; last those that have pages to give */
	uint32_t nr_plain, nr_gifted, depth;
	uint32_t nr;				/* depth, and the spare ones */
	struct xb_flight *unread[XB_SPARE];	/* J4 */
	uint32_t nr_unread;
	uint32_t *page, pages_each;
};

/* Which I/Os were answered (J2). order_begin() and order_end() change it, on the job's thread.
 * Without verify there is no window. */
struct xb_order {
	uint64_t window, oldest, next_seq;
	uint8_t *answered;			/* by seq % window */
	struct xb_seen *seen;			/* room for what one read found */
};

/* Answers that took the same time, not yet in the results. The job's thread changes it. */
struct xb_alike {
	uint64_t lat_ns, bytes;
	uint32_t nr, what;			/* what: of xb_results.stats */
};

/* Times of the phase, ns. begin() sets them; `now` follows the clock on the job's thread. */
struct xb_times {
	struct clock clock;
	uint64_t now;
	uint64_t count_from_ns, end_ns;		/* end 0: none */
};

/* What the job has done. The job's thread adds to it, and the main thread may read it at any time;
 * at the end of a run it adds verify_errors of no job in particular. */
struct xb_results {
	struct xb_stat stats[XB_NR_STATS];
	_Atomic uint64_t counted_ns[2];	/* to the last reply, then the end; [1]: of `after` */
	_Atomic uint64_t waiting_since_ns;	/* last reply, or when something went out first */
	_Atomic uint32_t inflight;
	_Atomic uint64_t direct_ios;		/* reads for which no request was sent */
	_Atomic uint64_t misses, refused;	/* of a kvd: absent keys; conditions that failed */
	_Atomic uint64_t errors;		/* I/Os that failed */
	_Atomic int error;			/* the first, as a positive errno */
	_Atomic uint64_t verify_errors;		/* sectors */
};

struct xb_job {
	/* xb_job_run() and xb_job_destroy() of this kind of job */
	void (*run)(struct xb_job *job);
	int (*destroy)(struct xb_job *job);
	struct xb_shared *shared;
	uint32_t nr;
	struct xseg_peer *peer;
	struct xport *port;
	struct xseg_direct *direct;		/* NULL: all is sent */
	struct xb_iolog *log;			/* NULL: none */
	struct xb_gen gen;
	struct xb_place *places;
	bool by_loan;		/* data is not copied, but read and written where it is */
	bool after;		/* the phase is not what was asked for: it counts as "verify" */
	uint8_t flags[XB_NR_OPS];		/* of requests for each operation */
	uint64_t read;			/* of data=loan and direct: what was read, so that it is */
	struct xb_next next;
	struct xb_pace pace;
	struct xb_requests reqs;
	struct xb_order order;
	struct xb_alike alike;
	struct xb_times times;
	struct xb_results results;
};

/* Opens a client peer, takes its pages and requests. NULL with a line in err, *rc the errno. */
struct xb_job *xb_job_create(struct xb_shared *shared, uint32_t nr, int *rc,
			     struct xseg_error *err);
/* Returns -errno when the I/O log could not be written. */
int xb_job_destroy(struct xb_job *job) XSEG_MUST_CHECK;
/* The thread's, for one phase. */
void xb_job_run(struct xb_job *job);
uint32_t xb_job_inflight(const struct xb_job *job);

/* ---- what jobs of other kinds share ---- */

/* The beginning of a phase: sets job->times, job->pace and `after`. */
void xb_job_begin_times(struct xb_job *job);
/* Counts what `alike` has; then results span the time until job->times.now. */
void xb_job_note_answers(struct xb_job *job, uint32_t inflight);
/* One answer of statistic `what`, sent at submit_ns, taken at job->times.now. */
void xb_job_count(struct xb_job *job, uint32_t what, uint64_t submit_ns, uint64_t bytes);
/* An I/O failed. True: say so, as less than the most that are said were said; *last: and this is
 * the last one. */
bool xb_job_count_error(struct xb_job *job, int error, bool *last);
/* The time without answers at the end counts, too. */
void xb_job_note_end(struct xb_job *job);
/* How long to sleep, or 0: not at all, as something is due soon. due_ns: when the next I/O may be
 * sent; UINT64_MAX: there is none, or something else keeps it back. */
uint64_t xb_job_sleep_ns(const struct xb_job *job, uint64_t due_ns);

#endif
