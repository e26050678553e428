/* backup - BACKUP: a consistent state of the log, in pieces, while it is used.
 *
 * Contract: kvd's thread. One backup at a time. It is a walk of the log with a hold: no zone that
 * it has not told is deleted. The walk goes on while a request is there that has room, and waits
 * otherwise. The log breaks a hold when puts find no space, and kvd ends a walk that no client has
 * asked on for a minute.
 *
 * Invariants
 *   W1  Records with a sequence of the walk's begin, or a later one, are left out, and so are those
 *       that were cleared before it. The others are a consistent state.
 *   W2  A cursor is good for one answer. A client that has lost one begins anew.
 *   W3  While a backup is under way no zone of a large value is given back. A record of one ends
 *       its answer, and its pieces are read before the next one is asked for. A large value that
 *       was superseded before the begin has no zones any more, and is left out.
 *   W4  At the begin no put is on its way by pages (paged.c). Its record would be in the backup,
 *       though gets do not find it yet.
 *   W5  Of a log that is salvaged a record is told only if it counts for its key.
 */
#include <errno.h>
#include <string.h>

#include "peers/kvd/kvd.h"

#define PATIENCE_NS (60 * KVD_SECOND)

static void give(struct kvd *k, int64_t error, uint64_t next)
{
	struct kvd_backup *b = &k->backup;
	struct kv_backup_head head = { .next = next, .bad = b->bad, .nr = b->nr,
		.bytes = b->used };
	struct xreq *r = b->r;

	b->r = NULL;
	b->asked_ns = k->pp->now_ns;
	if (!r)
		return;
	xseg_req_write_data(k->peer.seg, r, 0, &head, sizeof(head));
	peer_answer(k->pp, r, error ? error : r->size);
}

static void is_over(struct kvd *k)
{
	k->backup.cursor = 0;
	k->large.t.kept = false;
}

static void end(struct kvd *k)
{
	if (k->backup.cursor && !k->backup.walked)
		alog_walk_stop(k->log);
	is_over(k);
}

/* W2. The record is as it stands in the log, so an entry is a little larger. */
static bool ready(void *ctx, uint32_t bytes)
{
	struct kvd *k = ctx;
	struct kvd_backup *b = &k->backup;

	if (!b->r)
		return false;
	if (b->run) {				/* W3 */
		give(k, 0, ++b->cursor);
		return false;
	}
	if (bytes + sizeof(struct kv_backup_entry) <= b->r->size - b->used)
		return true;
	if (b->nr)
		give(k, 0, ++b->cursor);
	else
		give(k, -EMSGSIZE, 0);
	return false;
}

/* It counts for its key. */
static bool is_at(const struct kvd *k, uint64_t zone, const struct alog_hint *hint)
{
	uint64_t slot = index_find(&k->index, hint->identity);
	struct index_entry e;

	if (slot == INDEX_NONE)
		return false;
	index_get(&k->index, slot, &e);
	return e.zone == zone && e.place == hint->place;
}

/* W5: nothing but its record has named it before. NULL: there are too many. */
static struct large_run *salvaged_run(struct kvd *k, const struct kv_large *l)
{
	struct large_run *run = large_by_first(&k->large.t, l->zone);

	if (run)
		return run;
	run = large_add(&k->large.t, l->zone, (uint32_t)large_zones(&k->large.t, l->bytes),
		LARGE_UPLOAD);
	if (run)
		run->bytes = l->bytes;
	return run;
}

/* W3. False: it is left out. */
static bool is_there(struct kvd *k, uint64_t zone, const struct alog_hint *hint,
	const struct xrecord *rec, const void *data)
{
	struct kvd_backup *b = &k->backup;
	struct kv_large l;

	if (!(rec->flags & ALOG_LARGE))
		return true;
	if (large_ok(&k->large.t, (const uint8_t *)data + rec->key_bytes, rec->value_bytes, &l))
		b->run = k->state == KVD_SALVAGED ? salvaged_run(k, &l)
						  : large_by_first(&k->large.t, l.zone);
	if (b->run)
		return true;
	b->bad += is_at(k, zone, hint) && !kvd_is_expired(k, rec->expiry);
	return false;
}

static void record(void *ctx, uint64_t zone, const struct alog_hint *hint,
	const struct xrecord *rec, const void *data)
{
	struct kvd *k = ctx;
	struct kvd_backup *b = &k->backup;
	struct kv_backup_entry e;
	uint32_t at = b->used;

	if (!rec || !data) {
		b->bad++;
		return;
	}
	if (k->state == KVD_SALVAGED && !is_at(k, zone, hint))	/* W5 */
		return;
	b->bad += rec->type == ALOG_LOST && is_at(k, zone, hint);
	if (hint->sequence >= b->before || hint->sequence < b->cleared ||
		hint->type == ALOG_CLEAR || !is_there(k, zone, hint, rec, data))	/* W1 */
		return;
	e = (struct kv_backup_entry){ .identity = { rec->identity[0], rec->identity[1] },
		.sequence = rec->sequence, .version = rec->version, .key_bytes = rec->key_bytes,
		.value_bytes = rec->value_bytes, .data_crc = rec->data_crc,
		.expiry = rec->expiry, .client = rec->client,
		.flags = (rec->type == ALOG_VALUE ? KV_BACKUP_SET : 0) |
			 (b->run ? KV_BACKUP_LARGE : 0) };
	xseg_req_write_data(k->peer.seg, b->r, at, &e, sizeof(e));
	xseg_req_write_data(k->peer.seg, b->r, at + (uint32_t)sizeof(e), data,
		rec->key_bytes + rec->value_bytes);
	b->used += xrecord_round((uint32_t)sizeof(e) + rec->key_bytes + rec->value_bytes, 8);
	b->nr++;
}

/* Of a salvage, which knows no hints: pages that cannot be read, and headers of zones. */
static void bad(void *ctx, enum alog_damage what, uint64_t zone, uint32_t place, uint32_t bytes)
{
	struct kvd *k = ctx;

	(void)zone;
	(void)place;
	(void)bytes;
	k->backup.bad += k->state == KVD_SALVAGED && what == ALOG_BAD_RECORD;
}

static void over(void *ctx)
{
	struct kvd *k = ctx;
	struct alog_walk_state s;

	alog_walk_state(k->log, &s);
	k->backup.walked = true;
	if (k->backup.run && !s.error) {
		give(k, 0, ++k->backup.cursor);
		return;
	}
	is_over(k);
	give(k, s.error, 0);
}

static int begin(struct kvd *k)
{
	struct alog_walk walk = { .record = record, .over = over, .ctx = k, .hold = true,
		.ready = ready, .bad = bad };
	struct alog_walk_state s;
	int rc = alog_walk(k->log, &walk);

	if (rc)
		return rc;
	alog_walk_state(k->log, &s);
	k->backup = (struct kvd_backup){ .cursor = 1, .before = s.before,
		.cleared = k->clear.sequence };
	k->large.t.kept = true;
	return 0;
}

void kvd_backup(struct kvd *k, struct xreq *r, const struct kv_query *q)
{
	struct kvd_backup *b = &k->backup;
	int rc = 0;

	if (!q->cursor && k->paged.nr) {	/* W4 */
		fifo_push(&k->q.behind, r);
		return;
	}
	if (!q->cursor)
		rc = begin(k);
	else if (q->cursor != b->cursor || b->r)
		rc = -ESTALE;
	if (rc) {
		peer_answer(k->pp, r, rc);
		return;
	}
	b->r = r;
	b->nr = 0;
	b->run = NULL;
	b->used = sizeof(struct kv_backup_head);
	if (b->walked) {
		is_over(k);
		give(k, 0, 0);
		return;
	}
	alog_walk_go(k->log);
}

struct large_run *kvd_backup_run(struct kvd *k, const struct kv_query *q)
{
	struct kvd_backup *b = &k->backup;

	if (!q->cursor || q->cursor != b->cursor || b->r || !b->run || b->run->first != q->zone)
		return NULL;
	b->asked_ns = k->pp->now_ns;
	return b->run;
}

void kvd_backup_poll(struct kvd *k)
{
	struct kvd_backup *b = &k->backup;

	if (b->cursor && !b->r && k->pp->now_ns > b->asked_ns + PATIENCE_NS)
		end(k);
}

void kvd_backup_fail(struct kvd *k, int error)
{
	is_over(k);
	give(k, error, 0);
}

void kvd_backup_break(struct kvd *k, int error)
{
	end(k);
	give(k, error, 0);
}
