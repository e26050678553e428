/* query - what asks and changes nothing: GET, EXISTS, INFO. SCAN is in scan.c.
 *
 * Contract: kvd's thread, state OPEN; INFO in any state but OPENING.
 *
 * Invariants
 *   Q1  A get that is sent on has whole pages within one zone, and the notes were written before
 *       (K1). It never bears DIRECT: a zone that is deleted must not be read without asking.
 *   Q2  A record that a client cannot read is read by kvd (LOOK). If the index points elsewhere
 *       meanwhile it is read there. Else it is damaged: EIO, and never "not found" (K20).
 */
#include <errno.h>
#include <string.h>

#include "peers/kvd/kvd.h"

#define LOOK_TRIES 8u

static void answer(struct kvd *k, struct xreq *r, int64_t result)
{
	peer_answer(k->pp, r, result);
}

/* The slot of a key that has a record; INDEX_NONE: it has none. */
static uint64_t find(struct kvd *k, const struct kv_query *q, struct index_entry *e)
{
	uint64_t id[2], slot;

	kvd_identity_seen(k, k->now.key, q->key_bytes, id);
	slot = index_find(&k->index, id);
	if (slot == INDEX_NONE)
		return INDEX_NONE;
	index_get(&k->index, slot, e);
	return e->type == INDEX_VALUE ? slot : INDEX_NONE;
}

/* ---- GET ---- */

/* Where in the zone the range of the get begins; the notes say the rest. */
static uint32_t range_from(const struct kvd *k, const struct xreq *r, const struct index_entry *e)
{
	uint32_t first = e->place / XSEG_PAGE_SIZE * XSEG_PAGE_SIZE;

	return r->size < k->cfg.zone_bytes && first > k->cfg.zone_bytes - r->size
		       ? k->cfg.zone_bytes - r->size : first;
}

static bool holds(const struct kvd *k, const struct xreq *r, const struct index_entry *e)
{
	uint32_t from = range_from(k, r, e);

	return r->size <= k->cfg.zone_bytes - from && e->place - from + e->bytes <= r->size;
}

static void write_notes(struct kvd *k, const struct xreq *r, const struct index_entry *e)
{
	struct xseg *seg = k->peer.seg;
	uint32_t begin = e->place - range_from(k, r, e);

	xseg_req_note_set(seg, r, KV_NOTE_PLACE, kv_note_place(e->place, e->bytes));
	xseg_req_note_set(seg, r, KV_NOTE_ZONE, e->zone);
	xseg_req_note_set(seg, r, KV_NOTE_TIME, k->time.used ? kvd_time(k) : 0);
	xseg_req_note_set(seg, r, KV_NOTE_EPOCH,
		kv_note_epoch(alog_zone_epoch(k->log, e->zone), begin));
}

static void give_record(struct kvd *k, struct xreq *r, const struct index_entry *e,
	const uint8_t *record)
{
	xseg_req_write_data(k->peer.seg, r, e->place - range_from(k, r, e), record, e->bytes);
}

static void get(struct kvd *k, struct xreq *r, const struct kv_query *q)
{
	struct index_entry e;
	uint64_t slot = find(k, q, &e);

	kvd_count(k, KS_GETS, 1);
	kvd_count(k, slot == INDEX_NONE ? KS_MISSES : KS_HITS, 1);
	if (slot == INDEX_NONE) {
		answer(k, r, -ENOENT);
		return;
	}
	if (!e.hit && k->opt.full == KVD_EVICT && !(r->flags & XSEG_REQ_ONCE)) {
		e.hit = true;
		index_set(&k->index, slot, &e);
	}
	write_notes(k, r, &e);
	if (!holds(k, r, &e)) {
		answer(k, r, -EMSGSIZE);
		return;
	}
	if (alog_read_tail(k->log, e.zone, e.place, e.bytes, k->now.record)) {
		give_record(k, r, &e, k->now.record);
		answer(k, r, r->size);
		return;
	}
	kvd_target(k, e.zone, r);
	r->obj_offset = range_from(k, r, &e);
	peer_forward(k->pp, r);
}

/* ---- looking ---- */

static void run_look(struct kvd *k, struct kvd_job *j);

/* The job's read is back. 0: it is the record of this key. */
static int looked_at(struct kvd *k, struct kvd_job *j, const struct kv_query *q, uint64_t slot,
	struct index_entry *e, bool whole)
{
	struct xrecord rec;
	int64_t result = j->read->result;

	if (result < 0 && result != -ENOENT)
		return (int)result;
	if (!kvd_record_ok(k, j->read, whole, &rec)) {
		kvd_record_bad(k, slot, e);
		return -EIO;
	}
	if (kvd_is_expired(k, rec.expiry))
		return -ENOENT;
	/* another key with this identity: there is one pair in 10^10 logs of 10 M keys */
	return whole && (rec.key_bytes != q->key_bytes ||
			memcmp(kvd_record_key(j->read->data, j->read->place, &rec), k->now.key,
				rec.key_bytes) != 0)
		       ? -ENOENT : 0;
}

static int64_t give_info(struct kvd *k, struct xreq *r, const struct index_entry *e,
	const uint64_t id[2], const struct xrecord *rec)
{
	struct kv_info_of_key info = { .record_bytes = e->bytes };
	const struct large_run *run = e->large ? large_by_id(&k->large.t, id) : NULL;

	if (run)
		info.large_bytes = run->bytes;

	if (rec) {
		info.version = rec->version;
		info.sequence = rec->sequence;
		info.expiry = rec->expiry;
	}
	xseg_req_write_data(k->peer.seg, r, 0, &info, sizeof(info));
	return r->size;
}

static int64_t give_looked(struct kvd *k, struct kvd_job *j, const struct kv_query *q,
	const struct index_entry *e)
{
	struct xrecord rec;

	if (!kvd_record_ok(k, j->read, q->kind == KV_GET, &rec))
		return -EIO;
	if (q->kind == KV_EXISTS)
		return give_info(k, j->r, e, rec.identity, &rec);
	if (q->version && rec.version != q->version)
		return -ESTALE;
	write_notes(k, j->r, e);
	if (!holds(k, j->r, e))
		return -EMSGSIZE;
	give_record(k, j->r, e, j->read->data);
	return j->r->size;
}

/* Q2 */
static void run_look(struct kvd *k, struct kvd_job *j)
{
	struct kv_query q;
	struct index_entry e;
	uint64_t slot;
	int64_t rc = kvd_query_parse(k, j->r, &q);
	bool whole = !rc && q.kind == KV_GET;

	if (rc) {
		kvd_job_answer(k, j, rc);
		return;
	}
	slot = find(k, &q, &e);
	if (slot == INDEX_NONE) {
		kvd_job_answer(k, j, -ENOENT);
		return;
	}
	if (!j->read || j->read->zone != e.zone || j->read->place != e.place) {
		if (j->tries++ == LOOK_TRIES)
			kvd_job_answer(k, j, -EIO);
		else if (kvd_read_record(k, j, &e, whole ? e.bytes : ALOG_HEADER_BYTES) ==
			 KVD_HERE)
			run_look(k, j);
		return;
	}
	rc = looked_at(k, j, &q, slot, &e, whole);
	kvd_job_answer(k, j, rc ? rc : give_looked(k, j, &q, &e));
}

static void look(struct kvd *k, struct xreq *r)
{
	struct kvd_job *j = kvd_job_get(k, r, run_look);

	kvd_count(k, KS_LOOKS, 1);
	if (j)
		run_look(k, j);
	else
		fifo_push(&k->q.no_job, r);
}

/* ---- EXISTS, INFO ---- */

static void exists(struct kvd *k, struct xreq *r, const struct kv_query *q)
{
	struct index_entry e;
	uint64_t id[2], slot = find(k, q, &e);

	if (slot == INDEX_NONE) {
		answer(k, r, -ENOENT);
	} else if (e.expires) {
		look(k, r);
	} else {
		index_identity(&k->index, slot, id);
		answer(k, r, give_info(k, r, &e, id, NULL));
	}
}

static void info(struct kvd *k, struct xreq *r)
{
	struct alog_stats s;
	struct kv_info i = { .version = KV_WIRE_VERSION, .id = k->id,
		.record_max = k->record_max, .time = (uint32_t)kvd_time(k),
		.keys = k->index.keys, .keys_max = k->opt.keys_max,
		.live_bytes = k->index.live_bytes + k->large.t.named_bytes,
		.size_bytes = k->opt.size_bytes, .value_max = kvd_value_max(k),
		.piece_bytes = k->large.t.piece_bytes };

	alog_stats(k->log, &s);
	i.log_bytes = (uint64_t)(s.zones + s.own_zones) * k->cfg.zone_bytes;
	memcpy(i.uuid, alog_uuid(k->log), sizeof(i.uuid));
	xseg_req_write_data(k->peer.seg, r, 0, &i, sizeof(i));
	answer(k, r, r->size);
}

/* ---- the table ---- */

static void ask(struct kvd *k, struct xreq *r, const struct kv_query *q)
{
	switch (q->kind) {
	case KV_GET:
		if (q->flags & KV_LOOK)
			look(k, r);
		else
			get(k, r, q);
		break;
	case KV_EXISTS:
		exists(k, r, q);
		break;
	case KV_SCAN:
		kvd_scan(k, r, q);
		break;
	case KV_INFO:
		info(k, r);
		break;
	case KV_BACKUP:
		kvd_backup(k, r, q);
		break;
	default:				/* PIECE */
		kvd_piece(k, r, q);
	}
}

void kvd_query(struct kvd *k, struct xreq *r)
{
	struct kv_query q;
	int rc = kvd_query_parse(k, r, &q);

	if (!rc && q.kind != KV_INFO && r->volume != k->id)
		rc = -ESTALE;
	if (!rc && (q.kind == KV_GET || q.kind == KV_EXISTS) && !q.key_bytes)
		rc = -EINVAL;
	if (rc)
		answer(k, r, rc);
	else
		ask(k, r, &q);
}

void kvd_queries_poll(struct kvd *k)
{
	while (k->q.no_job.first && k->jobs.free)
		kvd_query(k, fifo_pop(&k->q.no_job));
}
