/* large - large values: clients' handles, and zones that are taken, kept and given back.
 *
 * A put of a large value:
 *
 *   1  BEGIN takes a run of own zones (peers/alog/own.c), and its handle is stored in the arena
 *   2  each PART is written to its zone (part.c)
 *   3  COMMIT waits for a FLUSH that begins after all parts
 *   4  COMMIT is a change (change.c): the record that names the run is appended, under its
 *      conditions; then the run is NAMED, and the handle is no more
 *
 * Contract: kvd's thread, state OPEN.
 *
 * Invariants
 *   V1  A record that names a run is appended only when a FLUSH that began after the last part has
 *       succeeded. If a FLUSH has failed since BEGIN, the store may have lost a part: the put
 *       fails.
 *   V2  A BEGIN and a HOLD are done once: the handle's number is noted before the handle is stored,
 *       so a successor answers with it, or does it anew.
 *   V3  A run is given back to the log when no record that counts names it, and nobody reads or
 *       writes it (G1 of table/large.h). The log deletes it when what superseded the record is
 *       stable. So a reader has the version that it holds for as long as it likes.
 *   V4  Space is taken from the log before the data comes. A BEGIN that finds none waits while
 *       zones may become free, and no other change waits for it.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/kvd/kvd.h"
#include "xtypes/xcrc.h"
#include "xtypes/xkill.h"

#define NOTE_NUMBER 3				/* V2; the others are those of a change */
#define GIVEN_BACK 32u				/* runs at a time */
#define UNKNOWN_MAX 16384u			/* zones of a value whose length is not known */

/* ---- sizes ---- */

int kvd_large_open(struct kvd *k, void *arena)
{
	return large_open(&k->large.t, k->cfg.own + 1, k->cfg.zone_bytes, arena);
}

/* The record has the sums of so many bytes. */
static bool record_fits(const struct kvd *k, uint32_t key_bytes, uint64_t bytes)
{
	return kvd_fits(k, key_bytes, sizeof(struct kv_large) +
			large_pieces(&k->large.t, bytes) * sizeof(uint32_t));
}

/* Of the shortest key. */
uint64_t kvd_value_max(const struct kvd *k)
{
	uint64_t most = (uint64_t)(k->cfg.zones - k->cfg.reserve) * k->large.t.zone_bytes,
		 sums = (k->record_max - ALOG_HEADER_BYTES - ALOG_ALIGN - sizeof(struct kv_large)) /
			sizeof(uint32_t);

	most = most < KV_VALUE_MAX ? most : KV_VALUE_MAX;
	return most < sums * k->large.t.piece_bytes ? most : sums * k->large.t.piece_bytes;
}

/* ---- answers ---- */

static void answer(struct kvd *k, struct xreq *r, int result, uint64_t version, uint64_t number)
{
	kvd_outcome(k, r, 0, result, 0, version, number);
	peer_answer(k->pp, r, r->size);
}

/* V2. The number that a predecessor has noted, and stored. */
static uint64_t number_of_predecessor(struct kvd *k, const struct xreq *r, enum large_kind kind)
{
	uint64_t number = xseg_req_note(k->peer.seg, r, NOTE_NUMBER);

	return large_run_of(&k->large.t, number, kind) ? number : 0;
}

static void take(struct kvd *k, const struct xreq *r, uint64_t number, enum large_kind kind,
	struct large_run *run, uint64_t bytes)
{
	xseg_req_note_set(k->peer.seg, r, NOTE_NUMBER, number);
	large_take(&k->large.t, number, kind, xseg_req_sender(k->peer.seg, r), run, bytes);
	XKILL(KVD_HANDED);
	if (k->large.look_ns == PEER_NEVER)
		k->large.look_ns = k->pp->now_ns + KVD_SECOND;
}

/* ---- HOLD ---- */

static void hold(struct kvd *k, struct xreq *r, const struct kvd_work *w)
{
	uint64_t slot = index_find(&k->index, w->id), number;
	struct large_run *run = large_by_id(&k->large.t, w->id);
	struct index_entry e = { .type = INDEX_GHOST };
	int rc = 0;

	if (slot != INDEX_NONE)
		index_get(&k->index, slot, &e);
	number = number_of_predecessor(k, r, LARGE_READS);
	if (number) {
		run = large_run_of(&k->large.t, number, LARGE_READS);
		answer(k, r, 0, run->version, number);
		return;
	}
	if (e.type != INDEX_VALUE || (run && kvd_is_expired(k, run->expiry)))
		rc = -ENOENT;
	else if (!e.large)
		rc = -EINVAL;
	else if (!run)				/* its record is damaged, or it has expired */
		rc = e.expires ? -ENOENT : -EIO;
	else if (w->c.version && w->c.version != run->version)
		rc = -ESTALE;
	else if (!(number = large_number(&k->large.t, xseg_req_sender(k->peer.seg, r))))
		rc = -EBUSY;
	if (rc) {
		answer(k, r, rc, 0, 0);
		return;
	}
	run->hit = true;
	take(k, r, number, LARGE_READS, run, run->bytes);
	answer(k, r, 0, run->version, number);
}

void kvd_piece(struct kvd *k, struct xreq *r, const struct kv_query *q)
{
	struct large_run *run = q->held ? large_run_of(&k->large.t, q->held, LARGE_READS)
				: kvd_backup_run(k, q);
	uint64_t piece = k->large.t.piece_bytes, end = q->offset + r->size;
	char target[XSEG_TARGET_MAX];
	uint32_t place;

	if (!run) {
		peer_answer(k->pp, r, q->held ? -EBADF : -ESTALE);
		return;
	}
	if (q->offset % KV_PAGE || q->offset >= run->bytes ||
		end > kv_pages(run->bytes) * KV_PAGE || q->offset / piece != (end - 1) / piece) {
		peer_answer(k->pp, r, -EINVAL);
		return;
	}
	alog_own_target(k->log, large_at(&k->large.t, run, q->offset, &place), target);
	xseg_req_set_target(r, target, strlen(target));
	r->obj_offset = place;
	peer_forward(k->pp, r);
}

/* ---- room ---- */

/* A log that evicts: the next large value goes, as if it had been deleted. One that a put by pages
 * is replacing goes with that put: a tombstone would stand behind the put's record (G4 of
 * paged.c). */
static bool evict_one(struct kvd *k)
{
	struct large_run *run = k->opt.full == KVD_EVICT ? large_victim(&k->large.t) : NULL;
	struct alog_put put = { .rec = { .type = ALOG_TOMBSTONE } };
	struct alog_place at;

	if (!run)
		return false;
	if (paged_find(&k->paged, run->id))
		return true;
	put.rec.identity[0] = run->id[0];
	put.rec.identity[1] = run->id[1];
	if (alog_append(k->log, &put, 1, &at))
		return false;
	kvd_index_put(k, run->id, &at, &put.rec);
	large_gone(&k->large.t, run->id);
	kvd_count(k, KS_EVICTED, 1);
	return true;
}

/* By D1 and D2 of date.c an expired value does not come back, so its zones can go before its
 * record. */
static bool expire_one(struct kvd *k)
{
	struct large_run *run = large_expired(&k->large.t, kvd_time(k));

	if (!run)
		return false;
	large_gone(&k->large.t, run->id);
	return true;
}

/* Those that have expired go though nobody needs the room. */
static uint64_t expire_some(struct kvd *k)
{
	uint64_t next, time = kvd_time(k);

	if (k->pp->now_ns < k->large.expire_ns)
		return k->large.expire_ns;
	for (uint32_t i = 0; i < GIVEN_BACK && expire_one(k);)
		i++;
	next = large_next_expiry(&k->large.t);
	k->large.expire_ns = !next ? PEER_NEVER
		: k->pp->now_ns + (next > time ? next - time : 1) * KVD_SECOND;
	return k->large.expire_ns;
}

/* Some at a time: after a DELETE_ALL it is each large value. */
static void give_back(struct kvd *k)
{
	struct large_run *run;
	int rc;

	for (uint32_t i = 0; i < GIVEN_BACK && (run = large_leaving(&k->large.t)); i++) {
		rc = alog_own_free(k->log, run->first, run->ids);
		assert(!rc);
		large_freed(&k->large.t, run);
	}
}

/* The log has no zones, and will have none by itself. -EAGAIN: it may have some soon. */
static int make_room(struct kvd *k)
{
	struct large *t = &k->large.t;

	if (!large_may_leave(t) && !expire_one(k) && !evict_one(k))
		return kvd_clear_sweeps(k) ? -EAGAIN : -ENOSPC;
	if (t->kept && large_may_leave(t))
		kvd_backup_break(k, -ENOSPC);
	give_back(k);
	return -EAGAIN;
}

/* ---- BEGIN ---- */

static int refuse(struct kvd *k, const struct kvd_work *w)
{
	kvd_count(k, KS_REFUSED, 1);
	log_warn("%s: a value of %llu bytes was refused: the log has not so many bytes free; "
		"delete values, or use full = evict", k->peer.name, (unsigned long long)w->c.total);
	return -ENOSPC;
}

static int too_large(struct kvd *k, const struct kvd_work *w)
{
	log_warn("%s: a value of %llu bytes was refused: this log can have values of %llu bytes; "
		"start kvd with a larger tail=, or move the values to a kvd with a larger size=",
		k->peer.name, (unsigned long long)w->c.total, (unsigned long long)kvd_value_max(k));
	return -EFBIG;
}

/* Of a value whose length is not known: as many as the longest may need. */
static uint32_t ids_for(const struct kvd *k, uint64_t total)
{
	uint64_t most = k->cfg.zones - k->cfg.reserve;

	if (total)
		return (uint32_t)large_zones(&k->large.t, total);
	return (uint32_t)(most < UNKNOWN_MAX ? most : UNKNOWN_MAX);
}

/* -EAGAIN: it has to wait. */
static int begin(struct kvd *k, struct xreq *r, const struct kvd_work *w, uint64_t *number)
{
	uint64_t total = w->c.total, first = 0;
	struct large_run *run;
	int rc;

	*number = number_of_predecessor(k, r, LARGE_WRITES);
	if (*number)
		return 0;
	if (total > kvd_value_max(k) || !record_fits(k, w->c.key_bytes, total))
		return too_large(k, w);
	*number = large_number(&k->large.t, xseg_req_sender(k->peer.seg, r));
	if (!*number)
		return -EBUSY;
	rc = alog_own(k->log, ids_for(k, total), total ? ids_for(k, total) : 1, &first);
	if (rc == -ENOSPC)
		rc = make_room(k);
	if (rc)
		return rc == -ENOSPC ? refuse(k, w) : rc;
	run = large_add(&k->large.t, first, ids_for(k, total), LARGE_UPLOAD);
	assert(run);
	run->bytes = total;
	run->zones = total ? run->ids : 1;
	take(k, r, *number, LARGE_WRITES, run, total);
	return 0;
}

/* False: it waits. */
static bool try_begin(struct kvd *k, struct xreq *r, const struct kvd_work *w)
{
	uint64_t number;
	int rc = begin(k, r, w, &number);

	if (rc == -EAGAIN)
		return false;
	answer(k, r, rc, 0, rc ? 0 : number);
	return true;
}

/* The oldest goes first; a smaller one does not overtake it. */
static void begins_poll(struct kvd *k)
{
	struct kvd_fifo *q = &k->q.begins;

	while (q->first) {
		struct xreq *r = fifo_pop(q);

		if (kvd_batch_parse(k, r) != 1 || k->now.work[0].c.kind != KV_BEGIN) {
			peer_answer(k->pp, r, -EINVAL);		/* its client changed it */
		} else if (!try_begin(k, r, &k->now.work[0])) {
			fifo_push_first(q, r);
			return;
		}
	}
}

void kvd_large_change(struct kvd *k, struct xreq *r)
{
	const struct kvd_work *w = &k->now.work[0];

	switch (w->c.kind) {
	case KV_HOLD:
		hold(k, r, w);
		break;
	case KV_DROP:
		answer(k, r, large_drop(&k->large.t, w->c.handle) ? 0 : -EBADF, 0, 0);
		break;
	default:
		if (k->q.begins.first || !try_begin(k, r, w))
			fifo_push(&k->q.begins, r);
	}
}

/* ---- COMMIT ---- */

/* V1 */
int kvd_commit_check(struct kvd *k, struct xreq *r, const struct kvd_work *w)
{
	struct large_run *run = large_run_of(&k->large.t, w->c.handle, LARGE_WRITES);
	uint64_t total = w->c.total;

	if (!run)
		return -EBADF;
	if (!total || (run->bytes && run->bytes != total) || run->holds ||
		total > (uint64_t)run->zones * k->large.t.zone_bytes ||
		w->c.value_bytes != large_pieces(&k->large.t, total) * sizeof(uint32_t))
		return -EINVAL;
	if (large_failed(&k->large.t, w->c.handle))
		return -EIO;
	if (run->flushed)
		return 0;
	k->context[r->index] = (struct kvd_context){ .number = w->c.handle };
	r->user = (void *)(uintptr_t)alog_barrier(k->log);
	fifo_push(&k->q.commits, r);
	return 1;
}

static int state_of_first(const struct kvd *k)
{
	return k->q.commits.first
		       ? alog_barrier_state(k->log, (uintptr_t)k->q.commits.first->user) : 0;
}

bool kvd_commits_due(struct kvd *k)
{
	return state_of_first(k) != 0;
}

struct xreq *kvd_commit_next(struct kvd *k)
{
	int state = state_of_first(k);
	struct large_run *run;
	uint64_t number;
	struct xreq *r;

	if (!state)
		return NULL;
	r = fifo_pop(&k->q.commits);
	number = k->context[r->index].number;
	k->context[r->index] = (struct kvd_context){ 0 };
	run = large_run_of(&k->large.t, number, LARGE_WRITES);
	if (run && state > 0)
		run->flushed = !run->holds;
	else if (run)
		large_fail(&k->large.t, number);
	return r;
}

void kvd_commit_make(struct kvd *k, const struct kvd_work *w, struct alog_put *put)
{
	const struct large_run *run = large_run_of(&k->large.t, w->c.handle, LARGE_WRITES);
	struct kv_large l = { .bytes = w->c.total, .zone = run->first,
		.nr_zones = (uint32_t)large_zones(&k->large.t, w->c.total),
		.nr_pieces = w->c.value_bytes / (uint32_t)sizeof(uint32_t),
		.piece_bytes = k->large.t.piece_bytes };

	memcpy(k->now.value, &l, sizeof(l));
	memcpy(k->now.value + sizeof(l), w->value, w->c.value_bytes);
	put->value = k->now.value;
	put->rec.flags = ALOG_LARGE;
	put->rec.value_bytes = (uint32_t)sizeof(l) + w->c.value_bytes;
	put->rec.expiry = w->c.expiry;
	put->rec.client = w->c.client;
	put->rec.data_crc = xcrc32c(xcrc32c(0, w->key, w->c.key_bytes), put->value,
		put->rec.value_bytes);
}

void kvd_commit_done(struct kvd *k, const struct kvd_work *w, const struct alog_put *put,
	const struct alog_place *at)
{
	struct large_run *run = large_run_of(&k->large.t, w->c.handle, LARGE_WRITES);
	uint32_t zones = (uint32_t)large_zones(&k->large.t, w->c.total);
	int rc = alog_own_cut(k->log, run->first, zones);

	assert(!rc);
	run->ids = run->zones = zones;
	run->bytes = w->c.total;
	run->version = at->sequence;
	run->expiry = put->rec.expiry;
	k->large.expire_ns = 0;
	large_name(&k->large.t, run, w->id);
	XKILL(KVD_COMMITTED);
	large_forget(&k->large.t, w->c.handle);
}

/* ---- a round ---- */

uint64_t kvd_larges_poll(struct kvd *k)
{
	uint64_t expires;

	if (k->pp->now_ns >= k->large.look_ns)
		k->large.look_ns = large_look(&k->large.t, k->peer.seg)
					   ? k->pp->now_ns + KVD_SECOND : PEER_NEVER;
	expires = expire_some(k);
	give_back(k);
	begins_poll(k);
	kvd_parts_poll(k);
	return large_leaving(&k->large.t) ? k->pp->now_ns : peer_earlier(k->large.look_ns, expires);
}
