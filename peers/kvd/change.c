/* change - changes: conditions, the append, and the answers.
 *
 * A change is made in one step, which nothing interrupts:
 *
 *   1  its place, zone and sequence are noted in the request, and its outcome in the client's page
 *   2  the request is STARTED
 *   3  the records are appended (alog_append: all of a batch, or none)
 *   4  the index points to them
 *   5  it is answered; or APPLIED, if its answer waits for a write or a flush
 *
 * A put of 32 KiB and more may do so in two parts: see paged.c.
 *
 * Before that it may need reads: of a version, an expiry or a value. These change nothing. When
 * they are back, the index is asked again, and a record that was superseded meanwhile is read
 * again.
 *
 * Contract: kvd's thread, state OPEN but for kvd_change_begun() and kvd_change_found().
 *
 * Invariants
 *   C1  A change is done once (K11). A successor finds out by the notes whether a STARTED change
 *       was appended, and then only answers it. An APPLIED one was. Those that were not are made
 *       before any other.
 *   C2  One change of a key at a time (K19): steps 1 to 4 are one, and conditions and old values
 *       are those of the index in that step. So the index and the log have the same order.
 *   C3  A change is answered as `sync` says; with FUA, when a flush has passed it. Answers that
 *       wait for a position are in the order of positions.
 *   C6  A put that a successor does anew has the version that it was to have. A kill undoes a put
 *       by pages, but the store may have its record, and a loss of power may bring that back.
 *   C5  A large value is superseded in the step that supersedes its record, and not before.
 *   C4  A change that has no room waits, in order; it is refused when room cannot be made.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/kvd/kvd.h"
#include "xtypes/xkill.h"

/* What comes of looking at a record: it is there, it is on its way, there is no job, or an
 * errno. */
enum { LOOKED = 0, LOOKING = 1 };

static void run_change(struct kvd *k, struct kvd_job *j);

static void finish(struct kvd *k, struct xreq *r, struct kvd_job *j, int64_t result)
{
	if (j)
		kvd_job_put(k, j);
	peer_answer(k->pp, r, result);
}

/* ---- looking at the record that is there ---- */

static bool is_of(const struct index_entry *e, uint64_t zone, uint32_t place)
{
	return e->zone == zone && e->place == place;
}

/* Whether its outcome depends on what the record says of itself. */
static bool needs_fact(const struct kvd_work *w)
{
	if (kvd_needs_value(w->c.kind) || w->c.condition == KV_IF_VERSION)
		return true;
	return w->e.expires && (w->c.condition != KV_ALWAYS || w->c.kind == KV_DELETE);
}

static void fact_set(struct kvd_work *w, const struct xrecord *rec)
{
	w->fact = (struct kvd_fact){ .zone = w->e.zone, .place = w->e.place,
		.version = rec->version, .expiry = rec->expiry };
}

/* The job's read is that of this change, and is back. Errors of the store are no damage. */
static int take_read(struct kvd *k, struct kvd_work *w, struct kvd_job *j, uint32_t i)
{
	struct xrecord rec;
	int64_t result = j->read->result;

	if (result < 0 && result != -ENOENT)
		return (int)result;
	if (!kvd_record_ok(k, j->read, kvd_needs_value(w->c.kind), &rec)) {
		kvd_record_bad(k, index_find(&k->index, w->id), &w->e);
		return -EIO;
	}
	fact_set(w, &rec);
	j->fact[i] = w->fact;
	if (!kvd_needs_value(w->c.kind))
		kvd_read_put(k, j);
	return LOOKED;
}

static int read_it(struct kvd *k, struct xreq *r, struct kvd_work *w, struct kvd_job **j,
	uint32_t i)
{
	if (!*j)
		*j = kvd_job_get(k, r, run_change);
	if (!*j)
		return -EAGAIN;
	(*j)->at = i;
	if (kvd_read_record(k, *j, &w->e, kvd_needs_value(w->c.kind) ? w->e.bytes :
			    ALOG_HEADER_BYTES) != KVD_HERE)
		return LOOKING;
	return take_read(k, w, *j, i);
}

static int look_at(struct kvd *k, struct xreq *r, struct kvd_work *w, struct kvd_job **j,
	uint32_t i)
{
	uint8_t header[ALOG_HEADER_BYTES];
	struct xrecord rec;

	if (*j && (*j)->read && (*j)->at == i &&
		is_of(&w->e, (*j)->read->zone, (*j)->read->place))
		return take_read(k, w, *j, i);
	if (kvd_needs_value(w->c.kind))
		return read_it(k, r, w, j, i);
	if (*j && is_of(&w->e, (*j)->fact[i].zone, (*j)->fact[i].place)) {
		w->fact = (*j)->fact[i];
		return LOOKED;
	}
	if (!alog_read_tail(k->log, w->e.zone, w->e.place, sizeof(header), header))
		return read_it(k, r, w, j, i);
	if (!kvd_bytes_ok(k, &w->e, header, sizeof(header), false, &rec))
		return -EIO;
	fact_set(w, &rec);
	return LOOKED;
}

/* What each change meets. */
static int look_at_all(struct kvd *k, struct xreq *r, struct kvd_job **j, uint32_t nr)
{
	int rc;

	for (uint32_t i = 0; i < nr; i++) {
		struct kvd_work *w = &k->now.work[i];
		uint64_t slot = index_find(&k->index, w->id);

		w->known = slot != INDEX_NONE;
		if (!w->known)
			continue;
		index_get(&k->index, slot, &w->e);
		w->present = w->e.type == INDEX_VALUE;
		if (!w->present || !needs_fact(w))
			continue;
		rc = look_at(k, r, w, j, i);
		if (rc)
			return rc;
		w->present = !kvd_is_expired(k, w->fact.expiry);
	}
	return LOOKED;
}

/* ---- conditions ---- */

static int condition(const struct kvd_work *w)
{
	switch (w->c.condition) {
	case KV_IF_ABSENT:
		return w->present ? -EEXIST : 0;
	case KV_IF_PRESENT:
		return w->present ? 0 : -ENOENT;
	case KV_IF_VERSION:
		return !w->present ? -ENOENT : w->fact.version == w->c.version ? 0 : -EEXIST;
	default:
		return 0;
	}
}

static int one_result(const struct kvd_work *w)
{
	int rc = condition(w);

	if (!rc && !w->present && w->c.kind != KV_PUT && w->c.kind != KV_COMMIT &&
		w->c.kind != KV_DELETE_ALL)
		rc = -ENOENT;
	return rc;
}

/* An absent key need not be deleted. */
static bool is_failure(const struct kvd_work *w)
{
	return w->result && (w->c.kind != KV_DELETE || w->c.condition != KV_ALWAYS);
}

/* True: one fails, so none is done, and the outcomes say so. */
static bool fails(struct kvd *k, const struct xreq *r, uint32_t nr)
{
	bool failed = false;

	for (uint32_t i = 0; i < nr; i++) {
		k->now.work[i].result = one_result(&k->now.work[i]);
		failed |= is_failure(&k->now.work[i]);
	}
	for (uint32_t i = 0; i < nr && failed; i++)
		kvd_outcome(k, r, i, k->now.work[i].result ? k->now.work[i].result : -ECANCELED, 0,
			0, 0);
	return failed;
}

/* ---- the records ---- */

struct making {
	uint32_t nr, bytes, added;		/* records; identities that the index lacks */
	uint64_t number;
	uint64_t version;			/* C6; 0: the sequence */
	bool tombstones;			/* all of them are */
	bool paged;				/* paged.c */
};

static void plain_put(const struct kvd_work *w, struct alog_put *put)
{
	put->rec.expiry = w->c.expiry;
	put->rec.client = w->c.client;
	put->rec.value_bytes = w->c.value_bytes;
	put->rec.data_crc = w->c.data_crc;
	put->value = w->value;
}

/* 0, or the result of the change: a value cannot be made. */
static int make_record(struct kvd *k, struct kvd_work *w, struct kvd_job *j, struct making *m)
{
	struct alog_put *put = &k->now.put[m->nr];
	struct xrecord old;
	int rc = 0;

	*put = (struct alog_put){ .rec = { .identity = { w->id[0], w->id[1] },
		.type = ALOG_TOMBSTONE } };
	if (w->c.kind == KV_DELETE_ALL) {
		kvd_clear_make(k, w, put);
	} else if (w->c.kind != KV_DELETE) {
		put->rec.type = ALOG_VALUE;
		put->rec.key_bytes = w->c.key_bytes;
		put->key = w->key;
		m->tombstones = false;
	}
	if (w->c.kind == KV_PUT) {
		plain_put(w, put);
		put->rec.version = m->version;
	} else if (w->c.kind == KV_COMMIT) {
		kvd_commit_make(k, w, put);
	} else if (kvd_needs_value(w->c.kind) && kvd_record_ok(k, j->read, true, &old)) {
		rc = kvd_value_make(k, w, j->read, &old, put, &m->number);
	}
	m->bytes += xrecord_bytes(put->rec.key_bytes, put->rec.value_bytes);
	m->nr++;
	m->added += !w->known && w->c.kind != KV_DELETE_ALL;
	return rc;
}

static int make_records(struct kvd *k, const struct xreq *r, struct kvd_job *j, uint32_t nr,
	struct making *m)
{
	int rc = 0;

	*m = (struct making){ .tombstones = true };
	if (nr == 1 && r->state == XSEG_REQ_STARTED)
		m->version = xseg_req_note(k->peer.seg, r, KVD_NOTE_VERSION);
	for (uint32_t i = 0; i < nr && !rc; i++) {
		struct kvd_work *w = &k->now.work[i];

		w->does = !w->result;
		if (!w->does)
			continue;
		rc = make_record(k, w, j, m);
		w->result = rc;
	}
	return rc;
}

/* ---- the step ---- */

static bool is_forced(const struct kvd *k, const struct xreq *r)
{
	return r->flags & XSEG_REQ_FUA || k->sync == KVD_ALWAYS;
}

/* What is appended up to `end` goes below, now or later. */
static void want(struct kvd *k, const struct xreq *r, uint64_t end)
{
	if (r->flags & XSEG_REQ_FUA)
		alog_force(k->log, end);
	else
		kvd_want_below(k, end);
	/* before the answer: see peers/common/say/dirty.h */
	xseg_stats_set(k->stats, KS_DIRTY_BYTES, alog_end(k->log) - alog_written(k->log));
}

/* C3. Most go to the end. */
static void push_in_order(struct kvd_fifo *q, struct xreq *r, bool last)
{
	struct xreq **at = &q->first;

	while (!last && *at && (uintptr_t)(*at)->user <= (uintptr_t)r->user)
		at = &(*at)->next;
	if (last || !*at) {
		fifo_push(q, r);
		return;
	}
	r->next = *at;
	*at = r;
}

static void change_done(struct kvd *k, struct xreq *r, uint64_t end)
{
	struct kvd_fifo *to = is_forced(k, r) ? &k->q.stable
		: k->sync == KVD_WRITTEN && alog_written(k->log) < end ? &k->q.written : NULL;

	if (!to) {
		peer_answer(k->pp, r, r->size);
		return;
	}
	if (r->state == XSEG_REQ_STARTED)
		xseg_req_apply(k->pp->port, r);
	r->user = (void *)(uintptr_t)end;
	push_in_order(to, r, end == alog_end(k->log));
}

static void promise(struct kvd *k, struct xreq *r)
{
	uint64_t end = alog_end(k->log);

	want(k, r, end);
	change_done(k, r, end);
}

static void note(struct kvd *k, const struct xreq *r, uint32_t nr, const struct alog_place *at)
{
	struct xseg *seg = k->peer.seg;

	if (nr == 1 && r->state == XSEG_REQ_AT && k->now.work[0].c.kind == KV_PUT)
		xseg_req_note_set(seg, r, KVD_NOTE_VERSION, at->sequence);
	xseg_req_note_set(seg, r, KVD_NOTE_ZONE, at->zone);
	xseg_req_note_set(seg, r, KVD_NOTE_PLACE, at->place);
	xseg_req_note_set(seg, r, KVD_NOTE_SEQUENCE, at->sequence);
	XKILL(KVD_NOTED);
}

/* C5 */
static void superseded(struct kvd *k, const struct kvd_work *w, const struct alog_put *put,
	const struct alog_place *at)
{
	struct large_run *run = w->known && w->e.large ? large_by_id(&k->large.t, w->id) : NULL;

	if (run && w->c.kind == KV_TOUCH) {
		run->expiry = put->rec.expiry;
		k->large.expire_ns = 0;
	}
	if (run && w->c.kind != KV_TOUCH)
		large_gone(&k->large.t, w->id);
	if (w->c.kind == KV_COMMIT)
		kvd_commit_done(k, w, put, at);
}

/* Step 1; `next` is where the first record will stand. */
static void tell(struct kvd *k, struct xreq *r, uint32_t nr, const struct making *m,
	const struct alog_place *next)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < nr; i++) {
		struct kvd_work *w = &k->now.work[i];
		const struct xrecord *rec = &k->now.put[n].rec;

		kvd_outcome(k, r, i, w->result,
			w->does ? xrecord_bytes(rec->key_bytes, rec->value_bytes) : 0,
			!w->does ? 0 : rec->version ? rec->version : next->sequence + n, m->number);
		n += w->does;
	}
	note(k, r, nr, next);
}

/* Steps 2 to 4; of a put by pages steps 2 and 3. */
static void make(struct kvd *k, struct xreq *r, uint32_t nr, const struct making *m,
	const struct alog_place *next)
{
	uint32_t n = 0;
	int rc;

	if (r->state == XSEG_REQ_AT)
		xseg_req_start(k->pp->port, r);
	rc = m->paged ? kvd_paged_append(k, r, k->now.at)
		      : alog_append(k->log, k->now.put, m->nr, k->now.at);
	assert(!rc && k->now.at[0].place == next->place && k->now.at[0].sequence == next->sequence);
	if (m->paged)
		return;
	XKILL(KVD_APPENDED);
	for (uint32_t i = 0; i < nr; i++) {
		struct kvd_work *w = &k->now.work[i];

		if (!w->does)
			continue;
		if (w->c.kind == KV_DELETE_ALL)
			kvd_clear_put(k, &k->now.at[n], &k->now.put[n].rec);
		else
			kvd_index_put(k, w->id, &k->now.at[n], &k->now.put[n].rec);
		superseded(k, w, &k->now.put[n], &k->now.at[n]);
		kvd_count(k, m->tombstones || w->c.kind == KV_DELETE ? KS_DELETES : KS_PUTS, 1);
		n++;
	}
	XKILL(KVD_INDEXED);
}

static int refuse(struct kvd *k, bool keys)
{
	kvd_count(k, KS_REFUSED, 1);
	if (keys)
		log_warn("%s: a put was refused: keys= is used up by %llu keys and %llu deleted "
			"ones; start it with a larger keys=, or delete keys (deleted keys make "
			"room when they are an eighth of keys=)", k->peer.name,
			(unsigned long long)k->index.keys,
			(unsigned long long)(k->index.used - k->index.keys));
	else
		log_warn("%s: a put was refused: the log is full of live values; delete some, or "
			"use full = evict", k->peer.name);
	return -ENOSPC;
}

/* Where it will stand. A record by pages may be too long for a zone, as it ends at a page. */
static int find_place(struct kvd *k, struct making *m, struct alog_place *next)
{
	const struct kvd_work *w = &k->now.work[0];
	int rc = -E2BIG;

	if (m->bytes > k->record_max)
		return -EFBIG;
	if (kvd_paged_may(k, w))
		rc = alog_next_paged(k->log, w->c.key_bytes, w->c.value_bytes, next);
	m->paged = rc != -E2BIG;
	return m->paged ? rc : alog_next(k->log, m->bytes, m->nr, m->tombstones, next);
}

/* The index has no room. -EAGAIN: it will have some. */
static int make_room(struct kvd *k)
{
	bool soon;

	if (kvd_clear_sweeps(k))
		return -EAGAIN;
	soon = room_pass(&k->room, &k->index, k->log);
	if (index_owed(&k->index)) {		/* I8 of logged.c */
		alog_gone_hasten(k->log);
		return -EAGAIN;
	}
	return soon || alog_evict(k->log) ? -EAGAIN : refuse(k, true);
}

/* 0; -EAGAIN: it has to wait; or why it is refused. */
static int append(struct kvd *k, struct xreq *r, uint32_t nr, struct making *m)
{
	struct alog_place next;
	int rc;

	index_paid(&k->index, alog_gone_stable(k->log));
	if (m->added > index_room(&k->index))
		return make_room(k);
	if (m->added && room_is_short(&k->index) && !kvd_clear_sweeps(k))
		(void)room_pass(&k->room, &k->index, k->log);
	rc = find_place(k, m, &next);
	if (rc == -ENOSPC)
		return kvd_clear_sweeps(k) ? -EAGAIN : refuse(k, false);
	if (!rc && !m->paged && k->now.work[0].left)
		rc = kvd_lay(k, r, &next);
	if (rc)
		return rc == -E2BIG ? -EFBIG : rc;
	tell(k, r, nr, m, &next);
	make(k, r, nr, m, &next);
	return 0;
}

/* ---- one change ---- */

/* Of a large value. False: it is a COMMIT that may be done now. */
static bool is_over(struct kvd *k, struct xreq *r, struct kvd_job *j)
{
	const struct kvd_work *w = &k->now.work[0];
	int rc = w->c.kind == KV_COMMIT ? kvd_commit_check(k, r, w) : 1;

	if (!rc)
		return false;
	if (j)
		kvd_job_put(k, j);
	if (w->c.kind != KV_COMMIT) {
		kvd_large_change(k, r);
	} else if (rc < 0) {
		kvd_outcome(k, r, 0, rc, 0, 0, 0);
		peer_answer(k->pp, r, r->size);
	}
	return true;
}

/* False: it has to wait in its list; r->user is its job, if it has one. */
static bool try_change(struct kvd *k, struct xreq *r, struct kvd_job *j)
{
	int nr, rc;
	struct making m;

	r->user = j;
	if (kvd_clear_lags(k))
		return false;
	nr = rc = kvd_batch_parse(k, r);
	if (nr > 0 && kvd_is_of_large(k->now.work[0].c.kind) && is_over(k, r, j))
		return true;
	if (nr > 0 && kvd_paged_meets(k, (uint32_t)nr)) {
		if (j)				/* what it has read will not count */
			kvd_job_put(k, j);
		fifo_push(&k->q.behind, r);
		return true;
	}
	if (nr > 0)
		rc = look_at_all(k, r, &j, (uint32_t)nr);
	r->user = j;
	if (rc == LOOKING)
		return true;
	if (rc == -EAGAIN)
		return false;
	if (rc) {
		finish(k, r, j, rc);
		return true;
	}
	if (fails(k, r, (uint32_t)nr)) {
		finish(k, r, j, r->size);
		return true;
	}
	if (make_records(k, r, j, (uint32_t)nr, &m)) {
		kvd_outcome(k, r, 0, k->now.work[0].result, 0, 0, 0);
		finish(k, r, j, r->size);
		return true;
	}
	rc = m.nr ? append(k, r, (uint32_t)nr, &m) : 0;
	if (rc == -EAGAIN)
		return false;
	if (rc) {
		finish(k, r, j, rc);
		return true;
	}
	if (j)
		kvd_job_put(k, j);
	if (m.nr && m.paged) {
		want(k, r, k->now.at[0].end);
		return true;
	}
	if (m.nr) {
		promise(k, r);
		return true;
	}
	for (uint32_t i = 0; i < (uint32_t)nr; i++)
		kvd_outcome(k, r, i, k->now.work[i].result, 0, 0, 0);
	peer_answer(k->pp, r, r->size);
	return true;
}

/* Large values wait for other things than changes do (V4 of large.c). */
static bool passes(struct kvd *k, const struct xreq *r)
{
	return kvd_is_of_large(kvd_kind_of(k, r)) && kvd_kind_of(k, r) != KV_COMMIT;
}

void kvd_change(struct kvd *k, struct xreq *r)
{
	r->user = NULL;
	if ((k->q.waiting.first && !passes(k, r)) || !try_change(k, r, NULL))
		fifo_push(&k->q.waiting, r);
}

/* Before those that wait for a job. */
static void run_change(struct kvd *k, struct kvd_job *j)
{
	struct xreq *r = j->r;

	if (!try_change(k, r, j))
		fifo_push_first(&k->q.waiting, r);
}

/* ---- of a predecessor ---- */

/* The log is OPEN. */
static void finish_begun(struct kvd *k)
{
	while (k->q.begun.first) {
		struct xreq *r = fifo_pop(&k->q.begun);
		bool done = r->user || r->state == XSEG_REQ_APPLIED;

		r->user = NULL;
		if (done)
			promise(k, r);
		else
			kvd_change(k, r);
	}
}

/* ---- a round ---- */

bool kvd_changes_due(struct kvd *k)
{
	return kvd_paged_due(k) || kvd_answers_due(k);
}

/* What is appended goes below after a while. */
static void look_at_time(struct kvd *k)
{
	uint64_t end = alog_end(k->log);

	if (k->pp->now_ns < k->sync_at_ns)
		return;
	k->sync_at_ns = PEER_NEVER;
	if (k->sync == KVD_TIMED)
		alog_force(k->log, end);
	else
		alog_push(k->log, end);
}

void kvd_changes_poll(struct kvd *k)
{
	struct xreq *r;
	uint64_t end;

	finish_begun(k);
	while ((r = kvd_paged_next(k, &end)))
		change_done(k, r, end);
	kvd_answers_poll(k);
	look_at_time(k);
	while (k->q.waiting.first) {
		r = fifo_pop(&k->q.waiting);
		if (!try_change(k, r, r->user)) {
			fifo_push_first(&k->q.waiting, r);
			return;
		}
	}
}
