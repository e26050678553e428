/* job_life - makes and ends a job: its client of the segment, its memory and its requests. See
 * job.h.
 *
 * Contract: the main thread, while the job's thread does not run. All that may fail is a step of
 * xb_job_create(); xb_job_destroy() undoes the steps that were done.
 */
#include "bench/xbench/job/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_KNOWN (1u << 20)			/* objects that a direct reader knows, at most */

/* J4: where the segment has not so much, the spare ones are done without. */
static bool drop_spare(struct xb_requests *rs)
{
	bool had = rs->nr > rs->depth;

	rs->nr = rs->depth;
	return had;
}

static int open_port(struct xb_job *job, struct xseg_error *err)
{
	int rc;

	do {
		rc = xb_client_open(
			job->shared->seg, job->nr, job->reqs.nr, &job->peer, err);
	} while (rc && drop_spare(&job->reqs));
	if (rc)
		return rc;
	job->port = xseg_peer_port(job->peer, 0);
	if (job->shared->where.volume)
		xseg_client_volume_set(
			job->peer, job->shared->where.peer, job->shared->where.volume);
	return 0;
}

static int take_pages(struct xb_job *job, struct xseg_error *err)
{
	struct xb_requests *rs = &job->reqs;
	uint32_t nr = rs->nr * rs->pages_each;
	int rc;

	rs->page = calloc(xseg_pages_round(nr), sizeof(*rs->page));
	if (!rs->page)
		return xseg_fail(err, -ENOMEM, "no memory");
	do {
		nr = rs->nr * rs->pages_each;
		rc = xseg_pages_take(job->peer, nr, rs->page);
	} while (rc && drop_spare(rs));
	if (rc)
		return xseg_fail(err, rc,
			"segment %s has less than the %u MiB left that job %u needs; use fewer "
			"jobs, a smaller iodepth or bs, or a segment with more memory",
			xseg_name(job->shared->seg),
			xseg_pages_round(nr) / (1048576u / XSEG_PAGE_SIZE), job->nr);
	return 0;
}

/* Any bytes, but no zeroes: what is written must cost what real data costs. */
static void fill_pages(struct xb_job *job)
{
	uint64_t rng = job->nr;

	for (uint32_t i = 0; i < job->reqs.nr * job->reqs.pages_each; i++) {
		uint64_t *word = xseg_page(job->shared->seg, job->reqs.page[i]);

		for (uint32_t j = 0; j < XSEG_PAGE_SIZE / sizeof(*word); j++)
			word[j] = xb_random(&rng);
	}
}

static int take_requests(struct xb_job *job, struct xseg_error *err)
{
	struct xb_requests *rs = &job->reqs;

	rs->all = calloc(rs->nr, sizeof(*rs->all));
	rs->idle = calloc(rs->nr, sizeof(struct xb_flight *));
	job->places = calloc(XB_PLACES, sizeof(*job->places));
	if (!rs->all || !rs->idle || !job->places)
		return xseg_fail(err, -ENOMEM, "no memory");
	for (uint32_t i = 0; i < rs->nr; i++) {
		struct xb_flight *f = &rs->all[i];

		f->r = xseg_req_alloc(job->port);
		if (!f->r)
			return xseg_fail(err, -EPROTO, "the segment gives fewer requests than it"
					 " promised; see 'xseg check'");
		f->r->cookie = f;
		f->slot = job->nr * rs->depth + i;
		memcpy(f->r->page, rs->page + (size_t)i * rs->pages_each,
		       rs->pages_each * sizeof(*rs->page));
		rs->idle[rs->nr_plain++] = f;
	}
	return 0;
}

/* Room to know all objects, if they are not too many; twice, as each has one place. */
static int prepare_direct(struct xb_job *job, struct xseg_error *err)
{
	const struct xb_options *o = job->shared->opts;
	const struct xb_where *w = &job->shared->where;
	uint64_t objects = w->total_bytes / w->object_size * 2 + 1;
	int rc;

	if (o->by.data != XB_DATA_DIRECT && o->by.direct == XB_DIRECT_NEVER)
		return 0;
	rc = xseg_direct_create(job->port, w->peer,
		objects < MAX_KNOWN ? (uint32_t)objects : MAX_KNOWN, &job->direct);
	return rc ? xseg_fail(err, rc, "no memory") : 0;
}

static void choose_flags(struct xb_job *job, const struct xb_options *o)
{
	if (o->sync)
		job->flags[XB_WRITE] |= XSEG_REQ_FUA;
	if (job->by_loan) {
		job->flags[XB_READ] |= XSEG_REQ_LOAN;
		job->flags[XB_WRITE] |= XSEG_REQ_GIVE;
	}
	if (o->once) {
		job->flags[XB_READ] |= XSEG_REQ_ONCE;
		job->flags[XB_WRITE] |= XSEG_REQ_ONCE;
	}
	if (o->by.data == XB_DATA_DIRECT)
		job->flags[XB_READ] |= XSEG_REQ_DIRECT;
}

static int prepare_verify(struct xb_job *job, struct xseg_error *err)
{
	struct xb_order *order = &job->order;

	if (!job->shared->verify)
		return 0;
	order->window = xb_verify_window(job->shared->opts);
	order->answered = calloc(order->window, 1);
	order->seen = calloc(XB_MAX_SEEN, sizeof(*order->seen));
	return order->answered && order->seen ? 0 : xseg_fail(err, -ENOMEM, "no memory");
}

/* J4 */
static uint32_t nr_spare(const struct xb_options *o)
{
	if (o->by.data != XB_DATA_LOAN || o->verify || o->bs_max > XB_SPARE_BYTES)
		return 0;
	return o->iodepth / 2 < XB_SPARE ? o->iodepth / 2 : XB_SPARE;
}

static int open_log(struct xb_job *job, struct xseg_error *err)
{
	const struct xb_options *o = job->shared->opts;
	char path[PATH_MAX + 16];

	if (!*o->write_iolog)
		return 0;
	snprintf(path, sizeof(path), o->numjobs == 1 ? "%s" : "%s.%u", o->write_iolog, job->nr);
	job->log = xb_iolog_create(path, *o->volume ? o->volume : o->target, err);
	return job->log ? 0 : -EIO;
}

struct xb_job *xb_job_create(struct xb_shared *shared, uint32_t nr, int *rc, struct xseg_error *err)
{
	static int (*const steps[])(struct xb_job *, struct xseg_error *) = {
		open_port, take_pages, take_requests, prepare_direct, prepare_verify, open_log
	};
	const struct xb_options *o = shared->opts;
	struct xb_job *job = aligned_alloc(64, (sizeof(*job) + 63) / 64 * 64);

	*rc = -ENOMEM;
	if (!job) {
		xseg_fail(err, *rc, "no memory");
		return NULL;
	}
	memset(job, 0, sizeof(*job));
	job->run = xb_job_run;
	job->destroy = xb_job_destroy;
	job->shared = shared;
	job->nr = nr;
	job->reqs.depth = o->iodepth;
	job->reqs.nr = job->reqs.depth + nr_spare(o);
	job->by_loan = o->by.data != XB_DATA_COPY;
	choose_flags(job, o);
	job->reqs.pages_each = xseg_req_span(XSEG_PAGE_SIZE - XSEG_SECTOR, (uint32_t)o->bs_max);
	xb_pace_init(&job->pace, o);
	xb_gen_init(&job->gen, o, shared->where.boundary, nr);
	for (uint32_t i = 0; i < XB_NR_STATS; i++)
		xhist_init(&job->results.stats[i].lat);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		*rc = steps[i](job, err);
		if (*rc) {
			if (xb_job_destroy(job))
				*rc = -EIO;
			return NULL;
		}
	}
	fill_pages(job);
	return job;
}

int xb_job_destroy(struct xb_job *job)
{
	int rc = xb_iolog_destroy(job->log);

	if (job->direct)
		xseg_direct_destroy(job->direct);
	if (job->peer)
		xseg_peer_close(job->peer, XSEG_CLOSE_FREE_ARENA);
	free(job->reqs.page);
	free(job->reqs.all);
	free(job->reqs.idle);
	free(job->places);
	free(job->order.answered);
	free(job->order.seen);
	free(job);
	return rc;
}
