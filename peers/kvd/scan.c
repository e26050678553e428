/* scan - SCAN: the keys of the log, in the order of the index.
 *
 * Contract: kvd's thread. A scan is a job. It takes the begin of one record after the other, and
 * writes entries into the client's pages, until these are full or the index ends. The cursor is a
 * hash, so it means the same whatever is put, deleted and moved meanwhile (K23).
 *
 * Records behind the one that it takes are read meanwhile, by jobs of their own (kvd_jobs.ahead).
 * Each answer asks the index again which record is next. What was read ahead and is not next, as
 * the record has moved or its key is deleted, is dropped.
 *
 * Invariants
 *   S1  Each key that is there during the whole scan is named exactly once. Keys with one hash
 *       (64 bits of the identity) are in one answer: what does not fit of them begins the next.
 *   S2  A record that does not verify is left out, and counted as damaged; an expired one is left
 *       out.
 *   S3  An answer looks at no more than LOOKS entries, so that a prefix that few keys have does not
 *       make one that takes for ever. It may be empty and still lead on.
 *   S4  A read ahead has a page or two of its own, and leaves requests to others. A scan that gets
 *       none goes on with the reads of other jobs.
 */
#include <errno.h>
#include <string.h>

#include "peers/kvd/kvd.h"

#define LOOKS	   4096u
#define LIKELY_KEY 256u
#define SPARE	   24u				/* requests that others have (S4) */

static void run_scan(struct kvd *k, struct kvd_job *j);

/* ---- reading ahead ---- */

static void let_go(struct kvd *k, struct kvd_job *a)
{
	a->scan = NULL;
	a->r = NULL;
	if (!a->out)
		kvd_read_put(k, a);
}

static bool is_free(const struct kvd_job *a)
{
	return !a->scan && !a->out;
}

static void forget_all_of(struct kvd *k, const struct kvd_job *j)
{
	for (uint32_t i = 0; i < KVD_AHEAD_READS; i++)
		if (k->jobs.ahead[i].scan == j)
			let_go(k, &k->jobs.ahead[i]);
}

void kvd_scan_forget(struct kvd *k)
{
	for (uint32_t i = 0; i < KVD_AHEAD_READS; i++)
		let_go(k, &k->jobs.ahead[i]);
}

/* A read ahead is back. */
static void run_ahead(struct kvd *k, struct kvd_job *a)
{
	struct kvd_job *j = a->scan;

	if (!j) {
		kvd_read_put(k, a);
		return;
	}
	if (j->awaits != a)
		return;
	j->awaits = NULL;
	if (k->state == KVD_OPEN)
		run_scan(k, j);
	else
		kvd_job_wants(k, j);
}

static bool is_of(const struct kvd_job *a, const struct kvd_job *j, const struct index_entry *e)
{
	return a->scan == j && a->read && a->read->zone == e->zone && a->read->place == e->place;
}

static struct kvd_job *ahead_of(struct kvd *k, const struct kvd_job *j,
	const struct index_entry *e)
{
	for (uint32_t i = 0; i < KVD_AHEAD_READS; i++)
		if (is_of(&k->jobs.ahead[i], j, e))
			return &k->jobs.ahead[i];
	return NULL;
}

static struct kvd_job *free_ahead(struct kvd *k)
{
	for (uint32_t i = 0; i < KVD_AHEAD_READS; i++)
		if (is_free(&k->jobs.ahead[i]))
			return &k->jobs.ahead[i];
	return NULL;
}

static void end_scan(struct kvd *k, struct kvd_job *j, uint64_t next)
{
	struct kv_scan_head head = { .next = next, .nr = j->nr, .bytes = j->used };

	forget_all_of(k, j);
	xseg_req_write_data(k->peer.seg, j->r, 0, &head, sizeof(head));
	kvd_job_answer(k, j, j->r->size);
}

static void fail_scan(struct kvd *k, struct kvd_job *j, int error)
{
	forget_all_of(k, j);
	kvd_job_answer(k, j, error);
}

/* What the last hash has so far is left for the next answer, which begins with it. */
static void end_full(struct kvd *k, struct kvd_job *j, uint64_t hash)
{
	if (hash == j->last_hash && j->group_nr) {
		j->used = j->group;
		j->nr -= j->group_nr;
	}
	if (!j->nr)
		fail_scan(k, j, -EMSGSIZE);
	else
		end_scan(k, j, hash);
}

static uint64_t value_bytes(struct kvd *k, const struct xrecord *rec)
{
	const struct large_run *run = large_by_id(&k->large.t, rec->identity);

	return !(rec->flags & ALOG_LARGE) ? rec->value_bytes : run ? run->bytes : 0;
}

/* False: it does not fit. */
static bool add(struct kvd *k, struct kvd_job *j, const struct xrecord *rec, uint64_t hash,
	const uint8_t *key)
{
	struct kv_scan_entry e = { .version = rec->version, .value_bytes = value_bytes(k, rec),
		.key_bytes = rec->key_bytes, .expiry = rec->expiry, .client = rec->client };
	uint32_t bytes = xrecord_round((uint32_t)sizeof(e) + rec->key_bytes, 8);

	if (bytes > j->r->size - j->used)
		return false;
	if (hash != j->last_hash || !j->group_nr) {
		j->group = j->used;
		j->group_nr = 0;
		j->last_hash = hash;
	}
	xseg_req_write_data(k->peer.seg, j->r, j->used, &e, sizeof(e));
	xseg_req_write_data(
		k->peer.seg, j->r, j->used + (uint32_t)sizeof(e), key, rec->key_bytes);
	j->used += bytes;
	j->nr++;
	j->group_nr++;
	return true;
}

static bool has_prefix(const struct kvd *k, const struct kv_query *q, const struct xrecord *rec,
	const uint8_t *key)
{
	return rec->key_bytes >= q->key_bytes && memcmp(key, k->now.key, q->key_bytes) == 0;
}

/* The record in the job's read, which is that of the slot. -EAGAIN: more of it has to be read;
 * -ENOSPC: it does not fit. Others are errors of the store. */
static int take_record(struct kvd *k, struct kvd_job *j, const struct kv_query *q, uint64_t slot,
	struct index_entry *e)
{
	struct kvd_read *rd = j->read;
	const uint8_t *key;
	struct xrecord rec;
	uint32_t need;

	if (rd->result < 0 && rd->result != -ENOENT)
		return (int)rd->result;
	if (!kvd_record_ok(k, rd, false, &rec)) {
		kvd_record_bad(k, slot, e);
		return 0;
	}
	key = kvd_record_key(rd->data, rd->place, &rec);
	need = (uint32_t)(key - rd->data) + rec.key_bytes;
	if (need > rd->bytes)
		return need > e->bytes ? 0 : -EAGAIN;
	if (kvd_is_expired(k, rec.expiry) || !has_prefix(k, q, &rec, key))
		return 0;
	return add(k, j, &rec, index_hash(&k->index, slot), key) ? 0 : -ENOSPC;
}

/* The first entry at or behind the cursor (at + 1: and behind that one, of the same hash) that is a
 * key. */
static uint64_t next_key(const struct kvd *k, const struct kvd_job *j, struct index_entry *e)
{
	uint64_t slot = index_from(&k->index, j->cursor);

	for (uint32_t skip = j->skip; slot != INDEX_NONE; slot = index_next(&k->index, slot)) {
		if (skip && index_hash(&k->index, slot) == j->cursor) {
			skip--;
			continue;
		}
		index_get(&k->index, slot, e);
		if (e->type == INDEX_VALUE)
			return slot;
	}
	return INDEX_NONE;
}

/* The cursor goes behind this slot. */
static void pass(struct kvd *k, struct kvd_job *j, uint64_t slot)
{
	uint64_t hash = index_hash(&k->index, slot), first = index_from(&k->index, hash);

	j->cursor = hash;
	j->skip = (uint32_t)(slot - first) + 1;
	kvd_read_put(k, j);
}

/* So much is read first: the key is mostly in it. */
static uint32_t first_bytes(const struct index_entry *e)
{
	uint32_t bytes = XSEG_PAGE_SIZE - e->place % XSEG_PAGE_SIZE;

	return bytes < ALOG_HEADER_BYTES + LIKELY_KEY ? bytes + XSEG_PAGE_SIZE : bytes;
}

/* The longest key is in it, also that of a PAGED record, which ends at a page. */
static uint32_t most_bytes(const struct index_entry *e)
{
	uint32_t in = e->place % XSEG_PAGE_SIZE;

	return xrecord_round(in + ALOG_HEADER_BYTES + KV_KEY_MAX, XSEG_PAGE_SIZE) - in;
}

/* The record of the slot is read. False: the scan has ended, or waits for a read. */
static bool use_read(struct kvd *k, struct kvd_job *j, const struct kv_query *q, uint64_t slot,
	struct index_entry *e)
{
	int rc = take_record(k, j, q, slot, e);

	if (rc == -EAGAIN)
		return kvd_read_record(k, j, e, most_bytes(e)) == KVD_HERE;
	if (rc == -ENOSPC)
		end_full(k, j, index_hash(&k->index, slot));
	else if (rc)
		fail_scan(k, j, rc);
	else
		pass(k, j, slot);
	return !rc;
}

/* Goes on where it ended, as far as there is room (S4). */
static void read_ahead(struct kvd *k, struct kvd_job *j)
{
	uint64_t slot = index_from(&k->index, j->ahead);
	struct index_entry e;
	struct kvd_job *a;

	for (; slot != INDEX_NONE; slot = index_next(&k->index, slot)) {
		index_get(&k->index, slot, &e);
		if (e.type != INDEX_VALUE || ahead_of(k, j, &e))
			continue;
		a = xseg_port_nr_free(k->pp->port) > SPARE ? free_ahead(k) : NULL;
		if (!a)
			break;
		*a = (struct kvd_job){ .r = j->r, .run = run_ahead, .scan = j };
		if (kvd_try_ahead(k, a, &e, first_bytes(&e)) == KVD_LATER) {
			let_go(k, a);
			break;
		}
	}
	j->ahead = slot == INDEX_NONE ? UINT64_MAX : index_hash(&k->index, slot);
}

/* What was read of this record becomes the job's read. HERE, SENT: as of kvd_read_record(). */
static enum kvd_got take_ahead(struct kvd *k, struct kvd_job *j, uint64_t slot,
	const struct index_entry *e)
{
	struct kvd_job *a = ahead_of(k, j, e);

	if (!a) {				/* the first one; or others have come between */
		forget_all_of(k, j);
		j->ahead = index_hash(&k->index, slot);
		read_ahead(k, j);
		a = ahead_of(k, j, e);
	}
	if (!a)
		return kvd_read_record(k, j, e, first_bytes(e));
	if (a->out) {
		j->awaits = a;
		return KVD_SENT;
	}
	kvd_read_put(k, j);
	j->read = a->read;
	j->read->job = j;
	a->read = NULL;
	let_go(k, a);
	read_ahead(k, j);
	return KVD_HERE;
}

/* One entry. False: as above. */
static bool step(struct kvd *k, struct kvd_job *j, const struct kv_query *q)
{
	struct index_entry e;
	uint64_t slot = next_key(k, j, &e);

	if (slot == INDEX_NONE || (j->tries++ > LOOKS &&
		index_hash(&k->index, slot) != j->last_hash)) {
		end_scan(k, j, slot == INDEX_NONE ? 0 : index_hash(&k->index, slot));
		return false;
	}
	if (j->read && j->read->zone == e.zone && j->read->place == e.place)
		return use_read(k, j, q, slot, &e);
	return take_ahead(k, j, slot, &e) == KVD_HERE;
}

static void run_scan(struct kvd *k, struct kvd_job *j)
{
	struct kv_query q;
	int rc = kvd_query_parse(k, j->r, &q);

	if (rc) {
		kvd_job_answer(k, j, rc);
		return;
	}
	while (step(k, j, &q))
		;
}

void kvd_scan(struct kvd *k, struct xreq *r, const struct kv_query *q)
{
	struct kvd_job *j = kvd_job_get(k, r, run_scan);

	if (!j) {
		fifo_push(&k->q.no_job, r);
		return;
	}
	kvd_count(k, KS_SCANS, 1);
	j->cursor = q->cursor;
	j->used = sizeof(struct kv_scan_head);
	run_scan(k, j);
}
