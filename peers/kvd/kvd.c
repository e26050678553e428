/* kvd - the class: options, and what the port does each round. See kvd.h.
 *
 * Contract: see peer.h. Requests that come before the log is open are held in a list, which has
 * room for every request there is.
 */
#include "peers/kvd/kvd.h"

#include <errno.h>
#include <string.h>

#include "xtypes/xkill.h"

/* ---- options ----------------------------------------------------------------------------- */

int kvd_sync_parse(const char *text, enum kvd_sync *sync, uint64_t *ns)
{
	static const char *const names[] = { [KVD_NEVER] = "never", [KVD_WRITTEN] = "written",
					     [KVD_ALWAYS] = "always" };

	*ns = KVD_SECOND;
	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(text, names[i])) {
			*sync = (enum kvd_sync)i;
			return 0;
		}
	*sync = KVD_TIMED;
	return opt_parse_time(text, ns) || !*ns ? -EINVAL : 0;
}

static int check_sync(const char *text, struct xseg_error *err)
{
	enum kvd_sync sync;
	uint64_t ns;

	return kvd_sync_parse(text, &sync, &ns)
		       ? xseg_fail(err, -EINVAL, "sync: '%.60s' is not one of never, written, "
				   "always, or a time such as 1s", text) : 0;
}

static int check_preload(const char *text, struct xseg_error *err)
{
	uint64_t bytes;

	return strcmp(text, "no") && strcmp(text, "all") && opt_parse_size(text, &bytes)
		       ? xseg_fail(err, -EINVAL, "preload: '%.60s' is not one of no, all, or a "
				   "size such as 1G", text) : 0;
}

static int check_prefix(const char *text, struct xseg_error *err)
{
	if (*text && !xseg_name_ok(text))
		return xseg_fail(err, -EINVAL, "prefix: '%.70s' is not 1 to 63 of the characters "
			"A-Z a-z 0-9 . _ -", text);
	if (!strcmp(text, "volumed"))
		return xseg_fail(err, -EINVAL, "prefix: 'volumed' is reserved; give another");
	return 0;
}

#define FIELD(f) offsetof(struct kvd, f)

static const char *const full_names[] = { "refuse", "evict", NULL };

static const struct opt kvd_opts[] = {
	{ .name = "prefix", .kind = OPT_STR, .off = FIELD(opt.prefix), .len = XSEG_NAME_MAX,
	  .arg = "NAME", .check = check_prefix,
	  .help = "its objects are named +NAME:...; if it is not given, NAME is the peer's name" },
	{ .name = "size", .kind = OPT_SIZE, .off = FIELD(opt.size_bytes), .min = 1 << 20,
	  .max = 1ull << 42, .flags = OPT_REQUIRED | OPT_FIXED, .arg = "SIZE",
	  .help = "how large the log in the store may get; a log keeps its size" },
	{ .name = "keys", .kind = OPT_SIZE, .off = FIELD(opt.keys_max), .max = 1ull << 32,
	  .arg = "N", .help = "most keys that it can have; 0: one for each KiB of the size" },
	{ .name = "full", .kind = OPT_ENUM, .off = FIELD(opt.full), .names = full_names,
	  .def = "refuse", .arg = "refuse|evict",
	  .help = "whether a put into a full log is refused, or evicts other values" },
	{ .name = "preload", .kind = OPT_STR, .off = FIELD(opt.preload), .len = 16, .def = "no",
	  .arg = "no|all|SIZE", .check = check_preload,
	  .help = "zones to read into a cache below at the start; with SIZE, the newest" },
	{ .name = "sync", .kind = OPT_STR, .off = FIELD(opt.sync_text), .len = 16, .def = "1s",
	  .arg = "never|written|always|TIME", .flags = OPT_LIVE, .check = check_sync,
	  .help = "when a put is answered, or flushed" },
	{ .name = "reserve", .kind = OPT_PERCENT, .off = FIELD(opt.reserve_percent), .min = 1,
	  .max = 50, .def = "5", .arg = "PERCENT",
	  .help = "part of the log for deletes and compaction; three zones at least" },
	{ .name = "tail", .kind = OPT_SIZE, .off = FIELD(opt.tail_bytes), .min = 64 << 10,
	  .max = 64 << 20, .def = "4M", .arg = "SIZE",
	  .help = "memory for the end of the log" },
	{ .name = "zone_size", .kind = OPT_SIZE, .off = FIELD(opt.zone_bytes), .min = 256 << 10,
	  .max = ALOG_ZONE_MAX, .def = "4M", .flags = OPT_FIXED, .arg = "SIZE",
	  .help = "size of the objects that the log is made of; a log keeps it" },
	{ .name = NULL },
};

static int kvd_fit(const struct peer *p, const char **key, struct xseg_error *err)
{
	const struct kvd *k = (const struct kvd *)p;
	struct alog_config cfg;
	struct alog_cost cost;
	char zone[32], least[32];

	*key = "threads";
	if (p->threads > 1)
		return xseg_fail(err, -EINVAL,
			"a kvd has one thread for now; leave out threads=");
	*key = "prefix";
	if (!k->opt.prefix[0] && check_prefix(p->name, err))
		return -EINVAL;
	*key = k->opt.zone_bytes % XSEG_PAGE_SIZE ? "zone_size" : "tail";
	if (k->opt.zone_bytes % XSEG_PAGE_SIZE || k->opt.tail_bytes % XSEG_PAGE_SIZE)
		return xseg_fail(err, -EINVAL, "zone_size and tail are whole pages of 4k");
	*key = "size";
	if (kvd_cost(k, &cfg, &cost)) {
		opt_format_size(k->opt.zone_bytes, zone, sizeof(zone));
		opt_format_size((cfg.reserve + 4) * k->opt.zone_bytes, least, sizeof(least));
		return xseg_fail(err, -EINVAL,
			"size is too small: with zones of %s and this reserve it is %s at least",
			zone, least);
	}
	return 0;
}

static int kvd_changed(struct peer *p, const struct opt *o, struct xseg_error *err)
{
	struct kvd *k = kvd_of(p);

	(void)o;
	(void)err;
	return kvd_sync_parse(k->opt.sync_text, &k->sync, &k->sync_ns);
}

/* ---- requests ---------------------------------------------------------------------------- */

void kvd_serve(struct kvd *k, struct xreq *r)
{
	switch (r->op) {
	case XSEG_OP_READ:
		kvd_query(k, r);
		break;
	case XSEG_OP_WRITE:
		if (kvd_is_part(r))
			kvd_part(k, r);
		else if (r->volume == k->id)
			kvd_change(k, r);
		else
			peer_answer(k->pp, r, -ESTALE);
		break;
	case XSEG_OP_FLUSH:
		if (r->volume == k->id)
			kvd_flush(k, r);
		else
			peer_answer(k->pp, r, -ESTALE);
		break;
	default:
		peer_answer(k->pp, r, -EOPNOTSUPP);
	}
}

static void kvd_request(struct peer_port *pp, struct xreq *r)
{
	struct kvd *k = kvd_of(pp->peer);

	kvd_see_date(k);
	if (k->state == KVD_OPEN && !k->q.held.first && !kvd_time_lags(k) && !kvd_clear_lags(k))
		kvd_serve(k, r);
	else if (k->state >= KVD_BROKEN)
		kvd_salvage_request(k, r);
	else
		fifo_push(&k->q.held, r);
}

static void kvd_recover(struct peer_port *pp, struct xreq *r)
{
	if (r->op == XSEG_OP_WRITE && r->state != XSEG_REQ_AT)
		kvd_change_begun(kvd_of(pp->peer), r);
	else
		kvd_request(pp, r);
}

/* A reply to what is not out is somebody's scribbling in the segment. */
static void kvd_reply(struct peer_port *pp, struct xreq *r)
{
	struct kvd *k = kvd_of(pp->peer);
	struct kvd_context c = k->context[r->index];
	/* a short one is an error of the store, and no damage */
	bool is_short = (c.read || c.part) && r->op != XSEG_OP_LIST && r->result >= 0 &&
			r->result < r->size;
	int64_t result = is_short ? -EIO : r->result;

	if (!c.io && !c.read && !c.part)
		return;
	k->context[r->index] = (struct kvd_context){ 0 };
	xseg_req_free(pp->port, r);
	if (c.part) {
		kvd_part_done(k, c, result);
		return;
	}
	if (c.read) {
		k->reads.out--;
		kvd_read_back(k, c.read, result);
		return;
	}
	k->log_out--;
	XKILL(KVD_LOG_ANSWERED);
	if (c.io->op == XSEG_OP_FLUSH && result < 0)
		large_fail_writers(&k->large.t);	/* V1 of large.c */
	alog_done(k->log, c.io, result);
}

/* ---- a round ----------------------------------------------------------------------------- */

static void answer_all(struct kvd *k, struct kvd_fifo *q)
{
	while (q->first)
		peer_answer(k->pp, fifo_pop(q), k->error);
}

/* What waited for a put by pages, in order; what meets another is behind it again. */
static void take_behind(struct kvd *k)
{
	struct kvd_fifo q = k->q.behind;

	if (!q.first || !k->paged.news)
		return;
	k->paged.news = false;
	fifo_init(&k->q.behind);
	while (q.first)
		kvd_serve(k, fifo_pop(&q));
}

static void changes_poll(struct kvd *k)
{
	kvd_changes_poll(k);
	take_behind(k);
}

/* Of before the log was opened anew; none has a read out. */
static void fail_jobs(struct kvd *k)
{
	struct kvd_job *j;

	while (k->q.waiting.first) {
		struct xreq *r = fifo_pop(&k->q.waiting);

		if (r->user)
			kvd_job_put(k, r->user);
		peer_answer(k->pp, r, k->error);
	}
	while ((j = k->jobs.wants_first)) {
		k->jobs.wants_first = j->next;
		if (j->r)
			kvd_job_answer(k, j, k->error);
	}
	k->jobs.wants_last = &k->jobs.wants_first;
}

/* What a predecessor had begun comes first. */
static void go_on(struct kvd *k)
{
	struct xreq *r;

	kvd_preload_begin(k);
	kvd_clear_lags(k);
	kvd_backup_poll(k);
	changes_poll(k);
	while ((r = kvd_commit_next(k)))
		kvd_change(k, r);
	kvd_jobs_poll(k);
	kvd_queries_poll(k);
	while (k->q.held.first && !kvd_time_lags(k) && !kvd_clear_lags(k))
		kvd_serve(k, fifo_pop(&k->q.held));
}

/* All is to be below and stable, the last zone with its hints, and then the head says so: the next
 * opening reads hints alone.
 * True: the log was asked for more. */
static bool settle(struct kvd *k)
{
	uint64_t end = alog_end(k->log);
	bool busy = k->verify.r || k->backup.r || k->log_out || k->jobs.nr ||
		    k->q.waiting.first || k->q.behind.first || k->paged.nr ||
		    k->q.written.first || k->q.stable.first || k->q.barriers.first ||
		    k->q.begun.first || k->large.parts_out ||
		    k->q.begins.first || k->q.parts.first || k->q.commits.first;
	bool asks = false;

	k->stop.settled = false;
	if (!busy && !k->stop.head_asked && alog_stable(k->log) >= end) {
		busy = !alog_seal(k->log);
		end = alog_end(k->log);
	}
	if (alog_stable(k->log) < end || alog_written(k->log) < end) {
		asks = k->stop.end != end;
		k->stop.end = end;
		alog_force(k->log, end);
		k->stop.head_asked = false;
	} else if (!busy && !k->stop.head_asked) {
		kvd_date_end(k);
		asks = k->stop.head_asked = true;
	} else {
		k->stop.settled = !busy && alog_words_stable(k->log);
	}
	return asks;
}

static bool is_stopping(const struct kvd *k)
{
	return atomic_load_explicit(&k->peer.stopping, memory_order_relaxed);
}

/* The log has gone on in its poll, and nothing else may come that makes this port poll. */
static bool is_due(struct kvd *k)
{
	if (alog_failed(k->log))
		return k->pp->now_ns >= k->mem.again_ns;
	if (k->state == KVD_OPENING)
		return alog_serves(k->log);
	return k->state == KVD_OPEN && (kvd_changes_due(k) || kvd_commits_due(k) ||
					       (is_stopping(k) && settle(k)));
}

/* The log may have gone on in its poll as they need it. */
static bool waits_for_log(const struct kvd *k)
{
	return k->q.waiting.first || k->q.begins.first || k->q.parts.first ||
	       (large_may_leave(&k->large.t) && !k->large.t.kept);
}

/* For the head, or for a clear: the log calls when it has gone on, but for what its poll does. */
static uint64_t held_until(const struct kvd *k)
{
	return k->time.held_ns ? k->time.held_ns : k->pp->now_ns + KVD_SECOND / 1000;
}

static uint64_t kvd_poll(struct peer_port *pp)
{
	struct kvd *k = kvd_of(pp->peer);
	uint64_t next, larges = PEER_NEVER, verify, salvage;

	kvd_life_poll(k);
	verify = kvd_verify_poll(k);
	salvage = kvd_salvage_poll(k);
	if (k->state >= KVD_BROKEN) {
		fail_jobs(k);
		answer_all(k, &k->q.held);
		answer_all(k, &k->q.begun);
		answer_all(k, &k->q.behind);
		answer_all(k, &k->q.no_job);
		answer_all(k, &k->q.begins);
		answer_all(k, &k->q.parts);
		return salvage;
	}
	if (k->state == KVD_KEEPING)		/* its reads are out, or cannot be sent */
		return k->reads.out ? PEER_NEVER : pp->now_ns + KVD_SECOND / 1000;
	if (k->state == KVD_OPEN) {
		go_on(k);
		larges = kvd_larges_poll(k);
	}
	next = alog_poll(k->log, pp->now_ns);
	if (k->state == KVD_OPEN && waits_for_log(k)) {
		changes_poll(k);
		larges = kvd_larges_poll(k);
		next = peer_earlier(next, alog_poll(k->log, pp->now_ns));
	}
	if (is_due(k))
		return pp->now_ns;
	kvd_stats_update(k);
	if (k->state == KVD_OPEN)
		next = peer_earlier(next, kvd_clear_poll(k));
	if (k->state == KVD_OPEN && k->q.held.first)
		next = peer_earlier(next, held_until(k));
	if (k->state == KVD_OPEN)
		next = peer_earlier(next, k->sync_at_ns);
	next = peer_earlier(next, verify);
	if (k->mem.again_ns)
		next = peer_earlier(next, k->mem.again_ns);
	return peer_earlier(next, larges);
}

/* ---- life -------------------------------------------------------------------------------- */

static uint32_t kvd_nr_requests(struct peer *p)
{
	(void)p;
	return KVD_REQUESTS;
}

static uint64_t kvd_memory_bytes(const struct peer *p)
{
	return kvd_arena_bytes((const struct kvd *)p);
}

static int64_t kvd_command(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size)
{
	struct kvd *k = kvd_of(pp->peer);
	struct kv_text t;

	if (strcmp(line, "salvage") != 0)
		return kvd_admin(pp, r, line, out, size);
	kv_init(&t, out, size);
	return kvd_salvage(k, r, &t);
}

static void kvd_fini(struct peer *p)
{
	kvd_salvage_close(kvd_of(p));
	kvd_life_fini(kvd_of(p));
}

static int kvd_init(struct peer *p, struct xseg_error *err)
{
	struct kvd *k = kvd_of(p);
	int rc = kvd_sync_parse(k->opt.sync_text, &k->sync, &k->sync_ns);

	if (!rc)
		rc = kvd_life_init(k, err);
	if (rc)
		kvd_life_fini(k);
	return rc;
}

static void kvd_recovered(struct peer *p)
{
	struct kvd *k = kvd_of(p);

	k->began_ns = k->pp->now_ns;
}

static uint64_t dirty_bytes(const struct kvd *k)
{
	return k->state >= KVD_BROKEN || !alog_serves(k->log)
		       ? 0 : alog_end(k->log) - alog_written(k->log);
}

/* The log may have gone on since settle(): it copies and deletes by itself. */
static bool has_ended(const struct kvd *k)
{
	return k->stop.settled && alog_stable(k->log) >= alog_end(k->log) && dirty_bytes(k) == 0;
}

static bool kvd_quiesced(struct peer *p, uint64_t *left_bytes)
{
	const struct kvd *k = kvd_of(p);

	*left_bytes = dirty_bytes(k);
	return !k->log_out && !k->reads.out && !k->large.parts_out &&
	       (k->state != KVD_OPEN || has_ended(k));
}

static uint64_t kvd_dirty_bytes(struct peer *p)
{
	return dirty_bytes(kvd_of(p));
}

static enum xseg_close kvd_close_how(struct peer *p, bool clean)
{
	const struct kvd *k = kvd_of(p);
	const struct kvd_arena *a = k->mem.arena;
	bool empty = has_ended(k) ||
		     (k->state >= KVD_BROKEN && a &&
			     atomic_load_explicit(&a->is_new, memory_order_relaxed));

	/* clients go on with their handles */
	return clean && empty && !k->large.t.nr_handles ? XSEG_CLOSE_FREE_ARENA
							: XSEG_CLOSE_KEEP_ARENA;
}

const struct peer_class kvd_class = {
	.kind = "kvd",
	.summary = "values by key, in an append-only log in the peer below",
	.opts = kvd_opts,
	.size = sizeof(struct kvd),
	.sends = true,
	.dates = true,
	.absent_is_answer = true,
	.fit = kvd_fit,
	.nr_requests = kvd_nr_requests,
	.memory_bytes = kvd_memory_bytes,
	.init = kvd_init,
	.recover = kvd_recover,
	.recovered = kvd_recovered,
	.prefetch = kvd_prefetch,
	.request = kvd_request,
	.reply = kvd_reply,
	.poll = kvd_poll,
	.admin = kvd_command,
	.changed = kvd_changed,
	.quiesced = kvd_quiesced,
	.dirty_bytes = kvd_dirty_bytes,
	.close_how = kvd_close_how,
	.fini = kvd_fini,
};
