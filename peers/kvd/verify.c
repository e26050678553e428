/* verify - the command `verify`: each record of the log is read, and what is bad is told.
 *
 * Contract: kvd's thread. One at a time; it goes on beside requests, as a walk of the log. A
 * successor of a killed kvd begins it anew.
 *
 * After the record of a large value the walk waits until each of its pieces is read, one after the
 * other, and compared with its sum. Meanwhile the value's zones are held.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "peers/kvd/kvd.h"
#include "xtypes/xcrc.h"

#define BAD_TOLD 100u				/* bad records in the answer */

static bool is_live(const struct kvd *k, uint64_t zone, const struct alog_hint *hint)
{
	uint64_t slot = index_find(&k->index, hint->identity);
	struct index_entry e;

	if (slot == INDEX_NONE)
		return false;
	index_get(&k->index, slot, &e);
	return e.type == INDEX_VALUE && e.zone == zone && e.place == hint->place;
}

static void tell(struct kvd *k, const char *own, uint64_t zone, uint32_t place, uint32_t bytes,
	bool live)
{
	if (k->verify.bad + k->verify.bad_pieces <= BAD_TOLD)
		kv_add(&k->verify.text, "bad=+%s:%s%016" PRIx64 " place=%u bytes=%u live=%s\n",
			k->cfg.prefix, own, zone, place, bytes, live ? "yes" : "no");
}

static void give(struct kvd *k)
{
	struct kvd_verify *v = &k->verify;
	struct xreq *r = v->r;

	v->r = NULL;
	kv_add(&v->text, "records=%" PRIu64 "\nbytes=%" PRIu64 "\nlive=%" PRIu64 "\nbad=%" PRIu64
			 "\nbad_live=%" PRIu64 "\n", v->records, v->bytes, v->live, v->bad,
		v->bad_live);
	kv_add(&v->text, "pieces=%" PRIu64 "\nbad_pieces=%" PRIu64 "\n", v->pieces,
		v->bad_pieces);
	if (r)
		peer_answer_text(k->pp, r, (int64_t)v->text.used, v->text.buf);
}

/* ---- pieces ---- */

static uint32_t piece_bytes(const struct kvd *k)
{
	uint64_t left = k->verify.run->bytes - (uint64_t)k->verify.piece * k->large.t.piece_bytes;

	return left < k->large.t.piece_bytes ? (uint32_t)left : k->large.t.piece_bytes;
}

static void take_piece(struct kvd *k, const struct kvd_read *rd)
{
	struct kvd_verify *v = &k->verify;
	uint32_t bytes = piece_bytes(k);

	v->pieces++;
	v->bytes += bytes;
	if (rd->result < 0 || xcrc32c(0, rd->data, bytes) != v->sums[v->piece]) {
		v->bad_pieces++;
		v->is_bad = true;
		tell(k, "own.", rd->zone, rd->place, bytes, true);
	}
	v->piece++;
}

static void end_pieces(struct kvd *k)
{
	struct kvd_verify *v = &k->verify;

	v->bad += v->is_bad;
	v->bad_live += v->is_bad;
	large_let_go(&k->large.t, v->run);
	v->run = NULL;
	v->busy = false;
	if (v->over)
		give(k);
	else
		alog_walk_go(k->log);
}

static void run_pieces(struct kvd *k, struct kvd_job *j)
{
	struct kvd_verify *v = &k->verify;
	uint64_t zone;
	uint32_t place;

	if (!v->run) {				/* the log was opened anew */
		kvd_read_put(k, j);
		v->busy = false;
		return;
	}
	if (j->read)
		take_piece(k, j->read);
	kvd_read_put(k, j);
	if (v->piece == v->nr_pieces) {
		end_pieces(k);
		return;
	}
	zone = large_at(&k->large.t, v->run, (uint64_t)v->piece * k->large.t.piece_bytes, &place);
	kvd_read_own(k, j, zone, place, (uint32_t)kv_pages(piece_bytes(k)) * KV_PAGE);
}

/* ---- records ---- */

static void begin_pieces(struct kvd *k, const struct xrecord *rec, const uint8_t *value)
{
	struct kvd_verify *v = &k->verify;
	struct large_run *run = large_by_id(&k->large.t, rec->identity);
	struct kv_large l;

	if (!large_ok(&k->large.t, value, rec->value_bytes, &l) || !run || run->first != l.zone) {
		v->bad += !kvd_is_expired(k, rec->expiry);
		v->bad_live += !kvd_is_expired(k, rec->expiry);
		return;
	}
	memcpy(v->sums, value + sizeof(l), l.nr_pieces * sizeof(*v->sums));
	large_hold(run);
	v->run = run;
	v->nr_pieces = l.nr_pieces;
	v->piece = 0;
	v->is_bad = false;
	v->busy = true;
	v->job = (struct kvd_job){ .run = run_pieces };
	run_pieces(k, &v->job);
}

static void record(void *ctx, uint64_t zone, const struct alog_hint *hint,
	const struct xrecord *rec, const void *data)
{
	struct kvd *k = ctx;
	struct kvd_verify *v = &k->verify;
	bool live = is_live(k, zone, hint);

	v->records++;
	v->bytes += hint->bytes;
	v->live += live;
	if (rec && data && (rec->type != ALOG_LOST || !live)) {
		if (live && rec->flags & ALOG_LARGE)
			begin_pieces(k, rec, (const uint8_t *)data + rec->key_bytes);
		return;
	}
	v->bad++;
	v->bad_live += live;
	tell(k, "", zone, hint->place, hint->bytes, live);
}

static bool ready(void *ctx, uint32_t bytes)
{
	const struct kvd *k = ctx;

	(void)bytes;
	return !k->verify.run;
}

static void over(void *ctx)
{
	struct kvd *k = ctx;

	k->verify.over = true;
	if (!k->verify.run)
		give(k);
}

int64_t kvd_verify(struct kvd *k, struct xreq *r, struct kv_text *t)
{
	struct alog_walk walk = { .record = record, .over = over, .ctx = k,
		.ready = ready };
	struct kvd_verify *v = &k->verify;

	if (k->state != KVD_OPEN || v->r || v->busy || alog_walk(k->log, &walk)) {
		kv_add(t, "%s: %s; try again later", k->peer.name, v->r ?
			"another verify is under way" : "its log is not open");
		return -EBUSY;
	}
	*v = (struct kvd_verify){ .r = r, .buf = v->buf, .sums = v->sums };
	kv_init(&v->text, v->buf, KVD_VERIFY_BYTES);
	return PEER_ADMIN_LATER;
}

void kvd_verify_fail(struct kvd *k, int error)
{
	struct xreq *r = k->verify.r;

	k->verify.r = NULL;
	k->verify.run = NULL;			/* the runs are forgotten */
	if (r)
		peer_answer_text(k->pp, r, error, "the log is being read anew; try again later");
}
