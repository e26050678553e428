/* kv_job - the loop of a job on a kvd: what comes next, sending it, and its answer. See kv.h. */
#include "bench/xbench/kv/kv_job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "peers/common/options/hex.h"
#include "peers/common/say/progress_line.h"

#define IDLE_LOOKS 256u	/* looks in vain before the queue's own wait is used, as in job.c */
#define LINE	   64u
#define BATCH	   16u				/* answers taken at once */
#define MAX_PIECES (XSEG_REQ_BYTES / XSEG_PAGE_SIZE + 2)

/* How each operation is asked for, and which errors are an answer. */
static const struct {
	enum xseg_kv_op op;
	const char *name;
	bool changes;				/* not an incr, which has an oracle of its own */
	bool value;
	uint32_t condition;
	int miss, refusal;			/* errnos; 0: none */
} kinds[XB_NR_OPS] = {
	[XB_READ] = { XSEG_KV_GET, "get", .miss = ENOENT },
	[XB_WRITE] = { XSEG_KV_PUT, "put", true, true },
	[XB_FLUSH] = { XSEG_KV_FLUSH, "flush" },
	[XB_DELETE] = { XSEG_KV_DELETE, "delete", true, .miss = ENOENT },
	[XB_ADD] = { XSEG_KV_PUT, "add", true, true, XSEG_KV_IF_ABSENT, .refusal = EEXIST },
	[XB_CAS] = { XSEG_KV_PUT, "cas", true, true, XSEG_KV_IF_VERSION, ENOENT, EEXIST },
	[XB_INCR] = { XSEG_KV_INCR, "incr" },
	[XB_EXISTS] = { XSEG_KV_EXISTS, "exists", .miss = ENOENT },
};

static bool is_loading(const struct xb_kv_job *job)
{
	return job->base.shared->phase == XB_LOAD;
}

static uint32_t nr_out(const struct xb_kv_job *job)
{
	return job->depth - job->nr_idle;
}

static bool is_counter(const struct xb_kv_job *job, uint64_t key)
{
	return key >= job->base.shared->opts->kv.keys;
}

/* ---- answers ----------------------------------------------------------------------------- */

static void tell(struct xb_kv_job *job, const struct xb_kv_place *p, int error)
{
	const char *more = error == EFBIG ? "; this kvd takes no value so large in one put"
			   : error == ENOSPC ? "; give the kvd a larger size, or fewer --keys"
			   : error == ENOTCONN ? "; nobody serves it, see 'xseg status'"
					     : "";
	char digits[HEX_DIGITS + 1] = "";
	bool last;

	if (!xb_job_count_error(&job->base, error, &last))
		return;
	hex_digits(digits, p->io.key);
	progress_line_hide();
	fprintf(stderr, "xbench: job %u: %s%s%s failed: %s%s%s\n", job->base.nr,
		kinds[p->io.op].name, p->io.op == XB_FLUSH ? "" : " of key number 0x",
		p->io.op == XB_FLUSH ? "" : digits, strerror(error), more,
		last ? " (more are not shown)" : "");
}

/* V2 */
static void account(struct xb_kv_job *job, struct xb_kv_place *p, int64_t result)
{
	struct xb_results *results = &job->base.results;
	int error = result < 0 ? (int)-result : 0;

	if (error && error == kinds[p->io.op].miss)
		xhist_add_relaxed(&results->misses, 1);
	else if (error && error == kinds[p->io.op].refusal)
		xhist_add_relaxed(&results->refused, 1);
	else if (error) {
		tell(job, p, error);
		return;
	}
	xb_job_count(&job->base, p->io.op, p->submit_ns,
		p->io.op == XB_READ ? (uint64_t)(error ? 0 : result) : p->io.bytes);
}

/* The first line of each page of what was lent is read, as job.c does; with verify all of it. */
static void read_loan(struct xb_kv_job *job, struct xb_kv_place *p)
{
	struct iovec piece[MAX_PIECES];
	uint32_t nr = xseg_kv_data(job->queue, &p->kio, piece, MAX_PIECES);
	char *to = p->value;

	for (uint32_t i = 0; i < nr; i++) {
		const char *from = piece[i].iov_base;

		if (job->base.shared->kv->keys) {
			memcpy(to, from, piece[i].iov_len);
			to += piece[i].iov_len;
			continue;
		}
		for (size_t at = 0; at < piece[i].iov_len; at += XSEG_PAGE_SIZE)
			job->base.read ^= *(const volatile uint8_t *)(from + at);
	}
	xseg_kv_release(job->queue, &p->kio);
}

/* Of a counter: its digits. */
static uint64_t number_of(const struct xb_kv_place *p, int64_t bytes)
{
	const char *digit = p->value;
	uint64_t number = 0;

	for (int64_t i = 0; i < bytes && digit[i] >= '0' && digit[i] <= '9'; i++)
		number = number * 10 + (uint64_t)(digit[i] - '0');
	return number;
}

static uint32_t check_get(struct xb_kv_job *job, struct xb_kv_place *p, const struct xb_told *told)
{
	uint64_t room = job->base.shared->opts->kv.value_max;
	struct xb_keys *keys = job->base.shared->kv->keys;
	struct xb_seen seen;

	if (is_counter(job, p->io.key))
		return told->result < 0 && told->result != -ENOENT
			       ? 0
			       : xb_keys_counter(keys, p->io.key, told->result < 0,
					 number_of(p, told->result));
	if (told->result < 0 || p->io.op != XB_READ)
		return xb_keys_get_end(keys, &p->t, told, NULL);
	/* a value that is longer than any of ours is cut, and so is none of ours */
	xb_value_read(p->value,
		(uint64_t)told->result < room ? (uint64_t)told->result : room,
		xb_keys_whose(keys), p->io.key, &seen);
	return xb_keys_get_end(keys, &p->t, told, &seen);
}

static void check(struct xb_kv_job *job, struct xb_kv_place *p, int64_t result)
{
	struct xb_told told = { .result = result, .version = p->kio.item.version,
		.number = p->kio.item.number };
	struct xb_keys *keys = job->base.shared->kv->keys;
	uint32_t wrong = 0;

	if (kinds[p->io.op].changes)
		wrong = xb_keys_change_end(keys, &p->t, &told);
	else if (p->io.op == XB_INCR)
		wrong = xb_keys_incr_end(keys, &p->t, &told);
	else if (p->io.op != XB_FLUSH)
		wrong = check_get(job, p, &told);
	if (wrong)
		xhist_add_relaxed(&job->base.results.verify_errors, wrong);
}

/* For the next cas of the key. */
static void note_version(struct xb_kv_job *job, const struct xb_kv_place *p, int64_t result)
{
	_Atomic uint64_t *versions = job->base.shared->kv->versions;
	bool told = result >= 0 || result == -EEXIST;

	if (!versions || p->io.op == XB_FLUSH || is_counter(job, p->io.key) ||
		!(told || result == -ENOENT) || p->io.op == XB_EXISTS)
		return;
	atomic_store_explicit(&versions[p->io.key],
		told && p->io.op != XB_DELETE ? p->kio.item.version : 0, memory_order_relaxed);
}

static void complete(struct xb_kv_job *job, struct xb_kv_place *p)
{
	int64_t result = p->kio.result;

	account(job, p, result);
	note_version(job, p, result);
	/* V3 */
	if (p->kio.flags & XSEG_KV_LOAN && result >= 0)
		read_loan(job, p);
	if (job->base.shared->kv->keys)
		check(job, p, result);
	job->idle[job->nr_idle++] = p;
	if (result == -ENOTCONN)
		job->base.next.over = true;
}

static uint32_t take(struct xb_kv_job *job, struct xseg_kv_io **done, uint32_t n)
{
	if (!n)
		return 0;
	job->base.times.now = clock_ns(&job->base.times.clock);
	for (uint32_t i = 0; i < n; i++)
		complete(job, done[i]->cookie);
	xb_job_note_answers(&job->base, nr_out(job));
	return n;
}

/* ---- what comes next --------------------------------------------------------------------- */

/* Keys are dealt out to the jobs, then the counters. */
static bool next_to_read(struct xb_kv_job *job, struct xb_kv_io *io)
{
	struct xb_shared *s = job->base.shared;
	uint64_t end = s->opts->kv.keys + job->gen.counters, key;

	do {
		key = atomic_fetch_add(&s->cursor, 1);
		if (key >= end)
			return false;
	} while (s->phase == XB_READ_BACK ? !xb_keys_is_known(s->kv->keys, key)
					  : !xb_keys_is_suspect(s->kv->keys, key));
	*io = (struct xb_kv_io){ .op = XB_READ, .key = key };
	return true;
}

static bool next_of_load(struct xb_kv_job *job, struct xb_kv_io *io)
{
	if (xb_kv_gen_next(&job->gen, io))
		return true;
	if (!job->base.shared->opts->time_based)
		return false;
	xb_kv_gen_restart(&job->gen);
	return xb_kv_gen_next(&job->gen, io);
}

static bool is_over(struct xb_kv_job *job)
{
	const struct xb_shared *s = job->base.shared;
	struct xb_next *next = &job->base.next;

	if (next->over)
		return true;
	if (s->kv->keys && is_loading(job))
		next->over = next->is_full = xb_keys_is_full(s->kv->keys);
	if (atomic_load_explicit(&s->stop, memory_order_relaxed) != XB_GO ||
		(job->base.times.end_ns && job->base.times.now >= job->base.times.end_ns))
		next->over = true;
	return next->over;
}

/* Whether the load has a rate. What is read back has none. */
static bool is_paced(const struct xb_kv_job *job)
{
	return job->base.pace.is_limited && is_loading(job);
}

static uint64_t due_ns(const struct xb_kv_job *job)
{
	return xb_pace_due(&job->base.pace, job->next.op);
}

/* Whether there is a next operation, and it is due. */
static bool may_issue(struct xb_kv_job *job)
{
	struct xb_next *next = &job->base.next;

	if (!next->has_io) {
		next->has_io = is_loading(job) ? next_of_load(job, &job->next)
					       : next_to_read(job, &job->next);
		next->over = !next->has_io;
	}
	return next->has_io && (!is_paced(job) || job->base.times.now >= due_ns(job));
}

/* ---- sending ----------------------------------------------------------------------------- */

/* A cas of a key whose version nobody was told is an add: that tells it. */
static void choose_condition(struct xb_kv_job *job, struct xb_kv_place *p, enum xb_op *judged)
{
	struct xseg_kv_item *item = &p->kio.item;

	item->condition = kinds[p->io.op].condition;
	*judged = p->io.op;
	if (p->io.op != XB_CAS)
		return;
	item->version = atomic_load_explicit(
		&job->base.shared->kv->versions[p->io.key], memory_order_relaxed);
	if (item->version)
		return;
	item->condition = XSEG_KV_IF_ABSENT;
	*judged = XB_ADD;
}

static uint32_t flags_of(const struct xb_kv_job *job, const struct xb_kv_place *p)
{
	const struct xb_options *o = job->base.shared->opts;

	if (p->io.op == XB_READ)
		return (job->base.by_loan && !is_counter(job, p->io.key) ? XSEG_KV_LOAN : 0) |
		       (o->kv.unchecked ? XSEG_KV_UNCHECKED : 0) | (o->once ? XSEG_KV_ONCE : 0);
	return o->kv.force && (kinds[p->io.op].changes || p->io.op == XB_INCR) ? XSEG_KV_FORCE : 0;
}

/* Where the value of a put is written: by loan where it is sent from, if that is free. Without
 * verify the first line of each page is, as job.c does. */
static void take_room(struct xb_kv_job *job, struct xb_kv_place *p)
{
	struct xseg_kv_item *item = &p->kio.item;
	struct iovec piece = { 0 };

	item->value_bytes = p->io.bytes;
	p->data = p->value;
	if (job->base.by_loan && p->io.bytes) {
		p->kio.flags |= XSEG_KV_GIVE;
		if (xseg_kv_prepare(job->queue, &p->kio, &piece, 1) == 1)
			p->data = piece.iov_base;
	}
	if (p->data == p->value) {
		item->value = p->value;
		return;
	}
	for (uint32_t at = 0; at < p->io.bytes && !job->base.shared->kv->keys; at += XSEG_PAGE_SIZE)
		memset((char *)p->data + at, (int)p->io.seq,
			p->io.bytes - at < LINE ? p->io.bytes - at : LINE);
}

static void build(struct xb_kv_job *job, struct xb_kv_place *p, enum xb_op *judged)
{
	const struct xb_options *o = job->base.shared->opts;
	struct xseg_kv_item *item = &p->kio.item;

	p->kio = (struct xseg_kv_io){
		.op = kinds[p->io.op].op, .flags = flags_of(job, p), .cookie = p
	};
	*judged = p->io.op;
	if (p->io.op == XB_FLUSH)
		return;
	xb_kv_name(p->key, o->kv.key_size, p->io.key);
	item->key = p->key;
	item->key_bytes = (uint32_t)o->kv.key_size;
	if (kinds[p->io.op].changes)
		choose_condition(job, p, judged);
	if (kinds[p->io.op].value) {
		take_room(job, p);
	} else if (p->io.op == XB_READ && !(p->kio.flags & XSEG_KV_LOAN)) {
		item->value = p->value;
		item->value_bytes = o->kv.value_max;
	}
	if (p->io.op == XB_INCR)
		item->number = 1;
}

static void verify_begin(struct xb_kv_job *job, struct xb_kv_place *p, enum xb_op judged)
{
	struct xb_keys *keys = job->base.shared->kv->keys;
	uint64_t tag = xb_value(job->base.nr, p->io.seq);

	p->t.again = job->base.shared->phase == XB_LOOK_AGAIN;
	if (kinds[p->io.op].changes) {
		xb_keys_change_begin(keys, &p->t, judged, p->io.key, tag, p->kio.item.version);
		if (kinds[p->io.op].value)
			xb_keys_stamp(keys, p->data, p->io.bytes, p->io.key, tag);
	} else if (p->io.op == XB_INCR) {
		xb_keys_incr_begin(keys, &p->t, p->io.key);
	} else if (p->io.op != XB_FLUSH && !is_counter(job, p->io.key)) {
		xb_keys_get_begin(keys, &p->t, p->io.op, p->io.key);
	}
}

/* The next operation goes out. stamp: when, for those that follow each other at once. */
static void issue(struct xb_kv_job *job, uint64_t *stamp)
{
	struct xb_kv_place *p = job->idle[--job->nr_idle];
	struct xb_next *next = &job->base.next;
	enum xb_op judged;
	int rc;

	p->io = job->next;
	next->has_io = false;
	xb_pace_sent(&job->base.pace, p->io.op, p->io.bytes);
	build(job, p, &judged);
	if (job->base.shared->kv->keys)
		verify_begin(job, p, judged);
	if (!*stamp || job->base.shared->kv->keys)
		*stamp = clock_ns(&job->base.times.clock);
	p->submit_ns = *stamp;
	rc = xseg_kv_submit(job->queue, &p->kio);
	if (!rc)
		return;
	xseg_kv_release(job->queue, &p->kio);
	p->kio.result = rc;
	complete(job, p);
}

static uint32_t submit(struct xb_kv_job *job)
{
	uint32_t before = nr_out(job), n = 0;
	uint64_t stamp = 0;

	if (before == job->depth || is_over(job))
		return 0;
	for (; n < job->depth && job->nr_idle && !job->base.next.over && may_issue(job); n++)
		issue(job, &stamp);
	if (!n)
		return 0;
	xseg_kv_kick(job->queue);
	if (before == 0)
		atomic_store_explicit(
			&job->base.results.waiting_since_ns, stamp, memory_order_relaxed);
	atomic_store_explicit(&job->base.results.inflight, nr_out(job), memory_order_relaxed);
	return n;
}

/* ---- the loop ---------------------------------------------------------------------------- */

/* Until there is an answer, or the next operation is due, or the time is over. The queue polls for
 * a while before it sleeps, and sleeps only if something is out. */
static void wait_for_work(struct xb_kv_job *job)
{
	uint64_t due = job->base.next.has_io && is_paced(job) ? due_ns(job) : UINT64_MAX;
	uint64_t ns = xb_job_sleep_ns(&job->base, due);
	struct timespec ts = { .tv_nsec = (long)ns };	/* less than a second */
	struct xseg_kv_io *done[BATCH];

	if (nr_out(job))
		take(job, done, xseg_kv_wait(job->queue, done, BATCH, ns));
	else if (ns)
		nanosleep(&ts, NULL);
	job->base.times.now = clock_ns(&job->base.times.clock);
}

void xb_kv_job_run(struct xb_job *base)
{
	struct xb_kv_job *job = (struct xb_kv_job *)base;
	struct xseg_kv_io *done[BATCH];
	uint32_t looks = 0;

	xb_job_begin_times(base);
	for (;;) {
		uint32_t n = take(job, done, xseg_kv_poll(job->queue, done, BATCH));

		n += submit(job);
		if (n) {
			looks = 0;
			continue;
		}
		if (base->next.over && nr_out(job) == 0)
			break;
		base->times.now = clock_ns(&base->times.clock);
		if (++looks < IDLE_LOOKS)
			continue;
		if (atomic_load_explicit(&base->shared->stop, memory_order_relaxed) == XB_ABANDON)
			break;
		wait_for_work(job);
	}
	xb_job_note_end(base);
}
