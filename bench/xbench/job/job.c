/* job - see job.h; making and ending one is in job_life.c. */
#include "bench/xbench/job/job.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/runtime/bus.h"
#include "peers/common/say/progress_line.h"
#include "xtypes/xhot.h"

#define IDLE_LOOKS  256u		/* looks in vain before the port's own wait is used */
#define LOOK_UP_NS  100000000ull	/* how often a waiting job looks whether it shall stop */
#define SHORT_NS    60000ull			/* xseg_port_wait() may take that long anyway */
#define MAX_TOLD    10u				/* failed I/Os that are printed */
#define DIRECT_ROW  64u			/* reads without a request before replies are looked for */

const char *const xb_stat_names[XB_NR_STATS] = {
	[XB_READ] = "read",  [XB_WRITE] = "write",         [XB_TRIM] = "trim",
	[XB_FLUSH] = "sync", [XB_ZEROES] = "write_zeroes", [XB_COPY] = "copy",
	[XB_INFO] = "info",  [XB_DELETE] = "delete",       [XB_ADD] = "add",
	[XB_CAS] = "cas",    [XB_INCR] = "incr",           [XB_EXISTS] = "exists",
	[XB_STAT_VERIFY] = "verify",
};

/* How each operation is asked for. */
static const struct {
	enum xseg_op op;
	bool pages;				/* its data is in pages */
	bool whole;				/* it is about a range: all of it must be done */
	bool changes;				/* the oracle must know */
	bool may_lack;		/* -ENOENT says that there is no such object yet: no error */
} kinds[XB_NR_OPS] = {
	[XB_READ] = { XSEG_OP_READ, true, true, false, false },
	[XB_WRITE] = { XSEG_OP_WRITE, true, true, true, false },
	[XB_TRIM] = { XSEG_OP_DISCARD, false, true, true, false },
	[XB_FLUSH] = { XSEG_OP_FLUSH, false, false, false, false },
	[XB_ZEROES] = { XSEG_OP_WRITE_ZEROES, false, true, true, false },
	[XB_COPY] = { XSEG_OP_COPY, false, true, false, true },
	[XB_INFO] = { XSEG_OP_INFO, false, false, false, true },
};

uint32_t xb_job_inflight(const struct xb_job *job)
{
	return atomic_load_explicit(&job->results.inflight, memory_order_relaxed);
}

/* ---- results ----------------------------------------------------------------------------- */

bool xb_job_count_error(struct xb_job *job, int error, bool *last)
{
	uint32_t told = atomic_fetch_add(&job->shared->told, 1);

	if (!atomic_load_explicit(&job->results.error, memory_order_relaxed))
		atomic_store_explicit(&job->results.error, error, memory_order_relaxed);
	xhist_add_relaxed(&job->results.errors, 1);
	*last = told + 1 == MAX_TOLD;
	return told < MAX_TOLD;
}

static void count_error(struct xb_job *job, const struct xb_io *io, int error)
{
	bool last;

	if (!xb_job_count_error(job, error, &last))
		return;
	progress_line_hide();
	fprintf(stderr, "xbench: job %u: %s of %u bytes at offset %" PRIu64 " failed: %s%s%s\n",
		job->nr, xb_stat_names[io->op], io->size, io->offset, strerror(error),
		error == EBUSY ? ": only its cache may send to this peer" : "",
		last ? " (more are not shown)" : "");
}

static void count_alike(struct xb_job *job)
{
	struct xb_stat *stat = &job->results.stats[job->alike.what];

	if (!job->alike.nr)
		return;
	xhist_record_many(&stat->lat, job->alike.lat_ns, job->alike.nr);
	xhist_add_relaxed(&stat->bytes, job->alike.bytes);
	job->alike.nr = 0;
	job->alike.bytes = 0;
}

/* Those that were sent together, and answered together, are counted together. */
void xb_job_count(struct xb_job *job, uint32_t what, uint64_t submit_ns, uint64_t bytes)
{
	uint64_t lat_ns = job->times.now - submit_ns;

	if (job->after)
		what = XB_STAT_VERIFY;
	if (job->times.now < job->times.count_from_ns)
		return;
	if (lat_ns != job->alike.lat_ns || what != job->alike.what) {
		count_alike(job);
		job->alike.lat_ns = lat_ns;
		job->alike.what = what;
	}
	job->alike.nr++;
	job->alike.bytes += bytes;
}

/* The errno of an answer, 0 if it is good. */
static int error_of(const struct xb_job *job, const struct xb_flight *f)
{
	int64_t result = f->r->result;

	if (result == -ENOENT && kinds[f->io.op].may_lack && !job->shared->where.volume)
		return 0;
	if (result < 0)
		return (int)-result;
	return kinds[f->io.op].whole && result != f->io.size ? EIO : 0;
}

/* J2 */
static void order_begin(struct xb_order *o, uint64_t seq)
{
	o->next_seq = seq + 1;
	o->answered[seq % o->window] = 0;
}

static void order_end(struct xb_order *o, uint64_t seq)
{
	o->answered[seq % o->window] = 1;
	while (o->oldest < o->next_seq && o->answered[o->oldest % o->window])
		o->oldest++;
}

static void verify_end(struct xb_job *job, struct xb_flight *f, bool ok)
{
	struct xb_shared *s = job->shared;
	uint32_t wrong;

	if (kinds[f->io.op].changes) {
		xb_verify_written(s->verify, &f->io, f->issued, ok);
	} else if (f->io.op == XB_READ) {
		wrong = xb_verify_check(s->verify, s->seg, f->r, f->slot, &f->io, f->issued, ok,
					s->phase == XB_LOOK_AGAIN, job->order.seen);
		if (wrong)
			xhist_add_relaxed(&job->results.verify_errors, wrong);
	}
	order_end(&job->order, f->io.seq);
}

/* ---- requests that are at rest: those that have pages to give are for writes ---- */

static uint32_t nr_out(const struct xb_job *job)
{
	const struct xb_requests *rs = &job->reqs;

	return rs->nr - rs->nr_plain - rs->nr_gifted - rs->nr_unread;
}

/* What was lent to be read is let go of: nothing is kept from the cache that is not being read. */
static void put_back(struct xb_job *job, struct xb_flight *f)
{
	bool gifted = f->io.op == XB_WRITE && xseg_req_has_gift(f->r);
	struct xb_requests *rs = &job->reqs;

	if (f->r->nr_lent && !gifted)
		xseg_req_drop_loans(job->port, f->r);
	if (gifted)
		rs->idle[rs->nr - ++rs->nr_gifted] = f;
	else
		rs->idle[rs->nr_plain++] = f;
	if (f->io.barrier)
		job->next.alone = false;
}

static struct xb_flight *take(struct xb_requests *rs, enum xb_op op)
{
	if (rs->nr_gifted && (op == XB_WRITE || !rs->nr_plain))
		return rs->idle[rs->nr - rs->nr_gifted--];
	return rs->idle[--rs->nr_plain];
}

/* Nothing is to be done for a while: the cache may need its pages. */
static void drop_gifts(struct xb_job *job)
{
	struct xb_requests *rs = &job->reqs;

	while (rs->nr_gifted) {
		struct xb_flight *f = rs->idle[rs->nr - rs->nr_gifted--];

		xseg_req_drop_loans(job->port, f->r);
		rs->idle[rs->nr_plain++] = f;
	}
}

static bool reads_where_it_is(const struct xb_flight *f)
{
	return f->r->flags & XSEG_REQ_LOAN;
}

/* The first line of each page is read: what is lent and never looked at would cost nothing. */
static void read_pages(struct xb_job *job, const struct xb_flight *f)
{
	job->read ^= *f->first;
	for (uint32_t i = 1; i < f->r->nr_pages; i++)
		job->read ^= *(const uint64_t *)xseg_req_page(job->shared->seg, f->r, i);
}

/* The same of what is given: the first line is written. The rest is what was there; with verify all
 * of it is stamped. */
static void write_pages(struct xb_job *job, const struct xb_flight *f)
{
	for (uint32_t i = 0; i < f->r->nr_pages; i++)
		*(uint64_t *)xseg_req_gift_page(job->shared->seg, f->r, i) ^= f->io.offset + 1;
}

/* They are on their way to this CPU before the first of a batch is read, or written for the next
 * write. */
static void prefetch_pages(struct xb_job *job, struct xb_flight *f)
{
	uint32_t nr = f->r->nr_pages;

	if (f->io.op == XB_READ) {
		f->first = xseg_req_page(job->shared->seg, f->r, 0);
		__builtin_prefetch(f->first);
		for (uint32_t i = 1; i < nr; i++)
			__builtin_prefetch(xseg_req_page(job->shared->seg, f->r, i));
	} else if (f->io.op == XB_WRITE)
		for (uint32_t i = 0; i < nr; i++)
			__builtin_prefetch(xseg_req_gift_page(job->shared->seg, f->r, i), 1);
}

/* Reads by copy are lent what they are tried for. Then the copy is made here. */
static void copy_pages(struct xb_job *job, struct xb_flight *f)
{
	uint32_t in = (uint32_t)(f->r->offset % XSEG_PAGE_SIZE), left = f->r->size;
	struct xseg *seg = job->shared->seg;

	for (uint32_t i = 0; left; i++, in = 0) {
		uint32_t n = XSEG_PAGE_SIZE - in < left ? XSEG_PAGE_SIZE - in : left;
		uint8_t *to = xseg_page(seg, f->r->page[i] & XSEG_PAGE_INDEX);
		const uint8_t *from = xseg_req_page(seg, f->r, i);

		if (from != to)
			memcpy(to + in, from + in, n);
		left -= n;
	}
	if (f->r->nr_lent)
		xseg_req_drop_loans(job->port, f->r);
}

/* What was lent is used. */
static void use_pages(struct xb_job *job, struct xb_flight *f)
{
	if (job->by_loan)
		read_pages(job, f);
	else
		copy_pages(job, f);
}

static bool is_direct(const struct xb_flight *f)
{
	return f->r->flags & XSEG_REQ_DIRECT;
}

/* What is in two objects is sent. */
static bool read_directly(struct xb_job *job, struct xb_flight *f)
{
	uint64_t size = job->shared->where.object_size, in = f->io.offset % size;

	return is_direct(f) && in + f->r->size <= size &&
	       xseg_direct_read(job->direct, f->r, f->io.offset / size, in);
}

/* Whether a read that is not direct by its option is to be looked for. */
static bool direct_pays(const struct xb_job *job, const struct xb_flight *f)
{
	uint64_t size = job->shared->where.object_size, in = f->io.offset % size;
	const struct xb_options *o = job->shared->opts;

	return o->by.direct == XB_DIRECT_AUTO && !o->once && in + f->io.size <= size &&
	       f->r->nr_pages <= XSEG_DIRECT_PAGES &&
	       xseg_direct_pays(job->direct, f->r->volume, f->io.offset / size);
}

/* It had to be sent: the next one of its object need not be. */
static void learn(struct xb_job *job, const struct xb_flight *f)
{
	uint64_t size = job->shared->where.object_size;

	if (is_direct(f))
		xseg_direct_learn(job->direct, f->r, f->io.offset / size, f->io.offset % size);
}

static void account(struct xb_job *job, struct xb_flight *f, int error)
{
	f->error = error;
	if (error)
		count_error(job, &f->io, error);
	else
		xb_job_count(job, f->io.op, f->submit_ns, f->io.size);
}

/* It was accounted for, and its data has been read, where that is to be. */
static void finish(struct xb_job *job, struct xb_flight *f)
{
	if (job->shared->verify)
		verify_end(job, f, !f->error);
	put_back(job, f);
}

static void complete(struct xb_job *job, struct xb_flight *f)
{
	if (!f->error && reads_where_it_is(f))
		use_pages(job, f);
	finish(job, f);
}

/* J4: false when there is no spare request for it. */
static bool set_aside(struct xb_requests *rs, struct xb_flight *f)
{
	if (!reads_where_it_is(f) || rs->nr_unread == rs->nr - rs->depth)
		return false;
	rs->unread[rs->nr_unread++] = f;
	return true;
}

static void read_what_was_set_aside(struct xb_job *job)
{
	uint32_t n = job->reqs.nr_unread;

	for (uint32_t i = 0; i < n; i++)
		complete(job, job->reqs.unread[i]);
	job->reqs.nr_unread = 0;
}

static void set_inflight(struct xb_job *job, uint32_t nr)
{
	atomic_store_explicit(&job->results.inflight, nr, memory_order_relaxed);
}

/* Results of the phase now span the time until job->times.now. */
static void note_counted(struct xb_job *job)
{
	const struct xb_times *t = &job->times;

	if (t->now > t->count_from_ns)
		atomic_store_explicit(&job->results.counted_ns[job->after],
				      t->now - t->count_from_ns, memory_order_relaxed);
}

void xb_job_note_answers(struct xb_job *job, uint32_t inflight)
{
	count_alike(job);
	atomic_store_explicit(&job->results.waiting_since_ns, job->times.now, memory_order_relaxed);
	note_counted(job);
	set_inflight(job, inflight);
}

/* ---- what comes next --------------------------------------------------------------------- */

/* Blocks of bs_max, dealt out to the jobs, of which something must be looked at. */
static bool next_to_read(struct xb_job *job, struct xb_io *io)
{
	struct xb_shared *s = job->shared;
	struct xb_oracle *oracle = s->verify->oracle;
	uint64_t end = xb_oracle_start(oracle) + xb_oracle_length(oracle), at, size;

	for (;;) {
		at = atomic_load(&s->cursor);
		do {
			uint64_t from = xb_oracle_skip(oracle, at), room;

			if (from >= end)
				return false;
			size = s->opts->bs_max < end - from ? s->opts->bs_max : end - from;
			room = s->where.object_size - from % s->where.object_size;
			if (size > room)
				size = room;
			io->offset = from;
		} while (!atomic_compare_exchange_weak(&s->cursor, &at, io->offset + size));
		if (s->phase == XB_READ_BACK
			    ? xb_oracle_any_known(oracle, io->offset, (uint32_t)size)
			    : xb_oracle_any_suspect(oracle, io->offset, (uint32_t)size))
			break;
	}
	io->op = XB_READ;
	io->size = (uint32_t)size;
	io->barrier = false;
	io->seq = job->order.next_seq;
	return true;
}

static bool next_of_load(struct xb_job *job, struct xb_io *io)
{
	if (xb_gen_next(&job->gen, io))
		return true;
	if (!job->shared->opts->time_based)
		return false;
	xb_gen_restart(&job->gen);
	return xb_gen_next(&job->gen, io);
}

static bool is_loading(const struct xb_job *job)
{
	return job->shared->phase == XB_LOAD;
}

/* Whether the phase is over for this job. What was to come next does not any more. */
static bool is_over(struct xb_job *job)
{
	const struct xb_shared *s = job->shared;
	struct xb_next *next = &job->next;

	if (next->over)
		return true;
	if (s->verify && is_loading(job))
		next->over = next->is_full = xb_oracle_is_full(s->verify->oracle);
	if (atomic_load_explicit(&s->stop, memory_order_relaxed) != XB_GO ||
		(job->times.end_ns && job->times.now >= job->times.end_ns))
		next->over = true;
	return next->over;
}

/* Sees to it that there is a next I/O; false when there is none: the phase is over, too. */
static bool make_next(struct xb_job *job)
{
	struct xb_next *next = &job->next;

	if (!next->has_io) {
		next->has_io = is_loading(job) ? next_of_load(job, &next->io)
					       : next_to_read(job, &next->io);
		next->over = !next->has_io;
	}
	return next->has_io;
}

/* Whether the load has a rate. What is read back has none. */
static bool is_paced(const struct xb_job *job)
{
	return job->pace.is_limited && is_loading(job);
}

static bool may_issue(const struct xb_job *job)
{
	const struct xb_next *next = &job->next;
	const struct xb_order *order = &job->order;

	if (next->alone || (next->io.barrier && nr_out(job)))
		return false;
	if (order->window && next->io.seq - order->oldest >= order->window)
		return false;
	return !is_paced(job) || job->times.now >= xb_pace_due(&job->pace, next->io.op);
}

/* Takes replies. Returns how many. */
XHOT static uint32_t collect(struct xb_job *job)
{
	struct xreq *replies[XB_BATCH];
	uint32_t n = xseg_port_replies(job->port, replies, XB_BATCH);

	/* what submit() published has reached the other side while we looked */
	xseg_port_flush(job->port);
	if (!n)
		return 0;
	job->times.now = clock_ns(&job->times.clock);
	for (uint32_t i = 0; job->by_loan && i < n; i++)
		prefetch_pages(job, replies[i]->cookie);
	for (uint32_t i = 0; job->direct && i < n; i++)
		learn(job, replies[i]->cookie);
	/* while the pages come */
	for (uint32_t i = 0; i < n; i++)
		account(job, replies[i]->cookie, error_of(job, replies[i]->cookie));
	for (uint32_t i = 0; i < n; i++)
		if (!set_aside(&job->reqs, replies[i]->cookie))
			complete(job, replies[i]->cookie);
	xb_job_note_answers(job, nr_out(job));
	return n;
}

/* ---- issuing ----------------------------------------------------------------------------- */

static void build(struct xb_job *job, struct xb_flight *f)
{
	const struct xb_io *io = &f->io;
	struct xreq *r = f->r;

	r->op = (uint8_t)kinds[io->op].op;
	r->flags = job->flags[io->op];
	r->size = io->size;
	if (io->op == XB_FLUSH) {
		r->volume = job->shared->where.volume;
		r->offset = r->obj_offset = r->hash = 0;
		r->target[0] = '\0';
	} else {
		xb_where_address(&job->shared->where, job->places, r, io->offset);
	}
	r->nr_pages = kinds[io->op].pages ? (uint16_t)xseg_req_span(r->offset, io->size) : 0;
	if (io->op == XB_READ && job->direct && direct_pays(job, f))
		r->flags |= XSEG_REQ_LOAN | XSEG_REQ_DIRECT;
	if (io->op == XB_COPY) {
		r->nr_pages = 1;
		xb_where_object_name(io->from / job->shared->where.object_size,
				     xseg_page(job->shared->seg, r->page[0]));
	}
}

static void verify_begin(struct xb_job *job, struct xb_flight *f)
{
	struct xb_shared *s = job->shared;

	order_begin(&job->order, f->io.seq);
	if (kinds[f->io.op].changes)
		f->issued = xb_verify_write(s->verify, s->seg, f->r, job->nr, &f->io);
	else if (f->io.op == XB_READ)
		f->issued = xb_verify_read(s->verify, f->slot, &f->io);
}

/* The data of a read without a request has been read when its time is taken: that is when the next
 * one begins. */
static void complete_directly(struct xb_job *job, struct xb_flight *f, uint64_t *stamp)
{
	f->first = xseg_req_page(job->shared->seg, f->r, 0);
	use_pages(job, f);
	*stamp = job->times.now = clock_ns(&job->times.clock);
	if (job->times.now >= job->times.count_from_ns)
		xhist_add_relaxed(&job->results.direct_ios, 1);
	account(job, f, 0);
	finish(job, f);
}

/* Field by field, as they have just been stored: a load that is wider than the stores before it
 * waits for them. */
static void io_copy(struct xb_io *to, const volatile struct xb_io *from)
{
	to->op = from->op;
	to->size = from->size;
	to->offset = from->offset;
	to->from = from->from;
	to->seq = from->seq;
	to->barrier = from->barrier;
}

/* Sends the next I/O, or does without that: true. stamp: when, for those that follow each other at
 * once; 0: not known yet. */
static bool issue(struct xb_job *job, uint64_t *stamp)
{
	struct xb_flight *f = take(&job->reqs, job->next.io.op);
	int rc;

	io_copy(&f->io, &job->next.io);
	job->next.has_io = false;
	job->next.alone = f->io.barrier;
	xb_pace_sent(&job->pace, f->io.op, f->io.size);
	build(job, f);
	if (job->shared->verify)
		verify_begin(job, f);
	else if (xseg_req_gives(f->r))
		write_pages(job, f);
	if (job->log && is_loading(job))
		xb_iolog_add(job->log, &f->io);
	if (!*stamp || job->shared->verify)
		*stamp = clock_ns(&job->times.clock);
	f->submit_ns = *stamp;
	if (read_directly(job, f)) {
		complete_directly(job, f, stamp);
		return true;
	}
	rc = xseg_req_submit(job->port, f->r, job->shared->where.peer);
	if (!rc)
		return false;
	/* The peer is gone for good, or the segment has no lane left: no use in going on. */
	job->next.over = true;
	account(job, f, -rc);
	finish(job, f);
	return false;
}

XHOT static uint32_t submit(struct xb_job *job)
{
	uint32_t before = nr_out(job), n = 0, direct = 0;
	uint64_t stamp = 0;

	if (before == job->reqs.depth || is_over(job))
		return 0;
	while (direct < DIRECT_ROW && before + n - direct < job->reqs.depth && !job->next.over &&
		make_next(job) && may_issue(job)) {
		direct += issue(job, &stamp);
		n++;
	}
	if (!n)
		return 0;
	if (direct)
		xb_job_note_answers(job, nr_out(job));
	if (direct == n)
		return n;
	xseg_port_publish(job->port);
	if (before == 0)
		atomic_store_explicit(&job->results.waiting_since_ns, stamp, memory_order_relaxed);
	set_inflight(job, nr_out(job));
	return n;
}

/* ---- the loop ---------------------------------------------------------------------------- */

uint64_t xb_job_sleep_ns(const struct xb_job *job, uint64_t due_ns)
{
	const struct xb_times *t = &job->times;
	uint64_t until = t->now + LOOK_UP_NS;

	if (due_ns < until)
		until = due_ns;
	if (t->end_ns > t->now && t->end_ns < until)
		until = t->end_ns;
	return until > t->now + SHORT_NS ? until - t->now : 0;
}

/* Sleeps until there is a reply, or the next I/O is due, or the time is over. */
static void wait_for_work(struct xb_job *job)
{
	uint64_t due_ns = job->next.has_io && is_paced(job)
				  ? xb_pace_due(&job->pace, job->next.io.op)
				  : UINT64_MAX;
	uint64_t ns = xb_job_sleep_ns(job, due_ns);

	if (ns) {
		drop_gifts(job);
		bus_port_wait(job->port, ns);
	} else {
		sched_yield();
	}
	job->times.now = clock_ns(&job->times.clock);
}

void xb_job_begin_times(struct xb_job *job)
{
	const struct xb_options *o = job->shared->opts;
	enum xb_phase phase = job->shared->phase;
	struct xb_next *next = &job->next;
	struct xb_times *t = &job->times;
	bool load = phase == XB_LOAD;

	job->after = phase == XB_LOOK_AGAIN || (phase == XB_READ_BACK && !o->verify_only);
	next->has_io = false;
	next->over = next->alone = false;
	t->now = clock_ns(&t->clock);
	xb_pace_begin(&job->pace, t->now);
	t->count_from_ns = t->now + (load ? o->ramp_time : 0);
	t->end_ns = load && o->runtime ? t->count_from_ns + o->runtime : 0;
}

static void begin(struct xb_job *job)
{
	struct xb_order *order = &job->order;

	xb_job_begin_times(job);
	order->next_seq = order->oldest = 1;
	if (order->answered)
		memset(order->answered, 0, order->window);
}

void xb_job_note_end(struct xb_job *job)
{
	if (!job->after)
		note_counted(job);
}

void xb_job_run(struct xb_job *job)
{
	uint32_t looks = 0;

	begin(job);
	for (;;) {
		uint32_t done = collect(job), sent = submit(job);

		read_what_was_set_aside(job);
		if (done || sent) {
			looks = 0;
			continue;
		}
		if (job->next.over && nr_out(job) == 0)
			break;
		job->times.now = clock_ns(&job->times.clock);
		if (++looks < IDLE_LOOKS && !xseg_port_blocks_partner(job->port))
			continue;
		if (atomic_load_explicit(&job->shared->stop, memory_order_relaxed) == XB_ABANDON)
			break;
		wait_for_work(job);
	}
	xb_job_note_end(job);
	drop_gifts(job);
}
