/* keep - the second part of an opening: which zones of large values are in use; and the preload.
 *
 * The log tells the index which records there are, but not what they name. So the record of each
 * large value is read, and its run kept. Then the handles of clients that go on are taken over.
 * What is left then is in use by nobody: values that were begun and not put, and values that were
 * superseded. The log deletes these zones.
 *
 * When the log is open its zones are read, so that a cache below has them, if the option preload
 * says so. Two jobs do it, whose reads go beside those of requests, and whose data is not looked
 * at. The newest zones come first. It ends when all is read, or so much as the option says, or when
 * kvd is to stop.
 *
 * Contract: kvd's thread, state KEEPING. The log is not polled, so no record moves meanwhile. The
 * preload is in state OPEN.
 *
 * Invariants
 *   K1  Nothing is deleted before each record was looked at. If a record cannot be read, or the log
 *       has found damage, nothing is deleted before the next opening: a run may be named there.
 *   K2  Handles count if the arena is that of the last opening (alog_stats.warm): another segment
 *       may have opened the log since, and deleted their zones.
 *   K3  A run that is named and has a writer's handle was put: a COMMIT was killed before it was
 *       answered.
 */
#include <errno.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/kvd/kvd.h"

#define TRIES 5u				/* of a record */
#define PIECE XSEG_REQ_BYTES			/* of a preload */

/* ---- records ---- */

static void tell_missing(struct kvd *k, const struct kv_large *l, int error)
{
	kvd_count(k, KS_BAD_RECORDS, 1);
	log_error("%s: a large value of %llu bytes is damaged: its %u zones from +%s:own.%016llx "
		"on are not there (%s); a get of its key is EIO: put the key again, or delete it",
		k->peer.name, (unsigned long long)l->bytes, l->nr_zones, k->cfg.prefix,
		(unsigned long long)l->zone, strerror(-error));
}

static void name(struct kvd *k, const struct xrecord *rec, const struct kv_large *l)
{
	int rc = alog_own_keep(k->log, l->zone, l->nr_zones);
	struct large_run *run = rc ? NULL
				   : large_add(&k->large.t, l->zone, l->nr_zones, LARGE_UPLOAD);

	if (!run) {
		tell_missing(k, l, rc ? rc : -EEXIST);
		return;
	}
	run->bytes = l->bytes;
	run->version = rec->version;
	run->expiry = rec->expiry;
	large_name(&k->large.t, run, rec->identity);
}

/* An expired one may have lost its zones (expire_one() in large.c). */
static void take(struct kvd *k, struct kvd_job *j, uint64_t slot)
{
	const struct kvd_read *rd = j->read;
	struct index_entry e;
	struct xrecord rec;
	struct kv_large l;

	index_get(&k->index, slot, &e);
	if (!kvd_record_ok(k, rd, true, &rec) || !(rec.flags & ALOG_LARGE) ||
		!large_ok(&k->large.t, kvd_record_key(rd->data, rd->place, &rec) + rec.key_bytes,
			rec.value_bytes, &l)) {
		kvd_record_bad(k, slot, &e);
		k->large.unread++;
	} else if (!kvd_is_expired(k, rec.expiry)) {
		name(k, &rec, &l);
	}
}

static bool next_slot(struct kvd *k, struct kvd_job *j)
{
	struct index_entry e = { .large = false };
	uint64_t slot = k->large.slot;

	for (; slot != INDEX_NONE; slot = index_next(&k->index, slot)) {
		index_get(&k->index, slot, &e);
		if (e.type == INDEX_VALUE && e.large)
			break;
	}
	j->cursor = slot;
	j->tries = 0;
	k->large.slot = slot == INDEX_NONE ? slot : index_next(&k->index, slot);
	return slot != INDEX_NONE;
}

/* The read is back. False: the store has an error, and is asked again. */
static bool use_read(struct kvd *k, struct kvd_job *j)
{
	int64_t result = j->read->result;
	bool again = result < 0 && result != -ENOENT && ++j->tries < TRIES;

	if (!again)
		take(k, j, j->cursor);
	kvd_read_put(k, j);
	return !again;
}

/* Goes on until a read is out, or cannot be sent now, or no record is left. */
static void run_keep(struct kvd *k, struct kvd_job *j)
{
	struct index_entry e;

	do {
		if (j->read && use_read(k, j) && !next_slot(k, j))
			return;
		index_get(&k->index, j->cursor, &e);
	} while (kvd_try_record(k, j, &e, e.bytes) == KVD_HERE);
}

/* ---- handles ---- */

/* False: there is no such run any more. */
static bool adopt(struct kvd *k, uint32_t slot)
{
	const struct large_handle *h = &k->large.t.arena->handle[slot];
	uint32_t zones = atomic_load_explicit(&h->zones, memory_order_relaxed);
	struct large_run *run = large_by_first(&k->large.t, h->first);
	bool writes = h->kind == LARGE_WRITES;

	if (run && writes)
		return false;			/* K3 */
	if (!run) {
		if (alog_own_keep(k->log, h->first, h->ids))
			return false;
		run = large_add(&k->large.t, h->first, h->ids, writes ? LARGE_UPLOAD : LARGE_GONE);
		if (!run || alog_own_count(k->log, h->first, zones))
			return false;
		run->bytes = h->bytes;
		run->version = h->version;
		run->zones = zones;
	}
	large_adopt(&k->large.t, slot, run);
	return true;
}

/* K2 */
static void adopt_all(struct kvd *k)
{
	struct large *t = &k->large.t;
	struct alog_stats s;

	alog_stats(k->log, &s);
	for (uint32_t i = 0; i < LARGE_HANDLES; i++) {
		if (s.warm && large_is_handle(t, i) && adopt(k, i))
			continue;
		atomic_store_explicit(&t->arena->handle[i].number, 0, memory_order_relaxed);
	}
	k->large.look_ns = k->pp->now_ns;
}

/* ---- all of it ---- */

void kvd_keep_begin(struct kvd *k)
{
	struct kvd_large *l = &k->large;

	for (uint32_t i = 0; i < KVD_JOBS; i++)	/* of before the log was opened anew */
		if (!k->jobs.job[i].out)
			kvd_read_put(k, &k->jobs.job[i]);
	kvd_scan_forget(k);
	l->expire_ns = 0;
	large_begin(&l->t);
	l->slot = index_from(&k->index, 0);
	for (uint32_t i = 0; i < KVD_KEEPERS; i++) {
		l->job[i] = (struct kvd_job){ .run = run_keep };
		next_slot(k, &l->job[i]);
	}
}

/* K1 */
bool kvd_keep_poll(struct kvd *k)
{
	struct kvd_large *l = &k->large;
	bool over = true;

	for (uint32_t i = 0; i < KVD_KEEPERS; i++) {
		struct kvd_job *j = &l->job[i];

		if (!j->out && j->cursor != INDEX_NONE)
			run_keep(k, j);
		over &= !j->out && j->cursor == INDEX_NONE;
	}
	if (!over)
		return false;
	adopt_all(k);
	if (l->unread)
		log_error("%s: its log is damaged in %u places: zones of large values that no "
			"record names are kept until the next start", k->peer.name, l->unread);
	else
		alog_own_swept(k->log);
	return true;
}

/* ---- the preload ---- */

static uint64_t wanted(const struct kvd *k)
{
	uint64_t bytes = 0;

	if (!strcmp(k->opt.preload, "no"))
		return 0;
	return opt_parse_size(k->opt.preload, &bytes) ? UINT64_MAX : bytes;
}

/* The next piece. False: there is none. */
static bool next_piece(struct kvd *k, struct index_entry *e)
{
	struct kvd_preload *p = &k->preload;

	for (; p->zone > p->lowest; p->zone--, p->from = 0) {
		if (p->from >= k->cfg.zone_bytes || !alog_zone_epoch(k->log, p->zone))
			continue;
		*e = (struct index_entry){ .zone = p->zone, .place = p->from,
			.bytes = k->cfg.zone_bytes - p->from < PIECE ?
				k->cfg.zone_bytes - p->from : PIECE };
		p->from += e->bytes;
		return true;
	}
	return false;
}

static void run_preload(struct kvd *k, struct kvd_job *j)
{
	struct kvd_preload *p = &k->preload;
	struct index_entry e;

	while (p->left && !atomic_load_explicit(&k->peer.stopping, memory_order_relaxed) &&
		next_piece(k, &e)) {
		p->left -= e.bytes < p->left ? e.bytes : p->left;
		kvd_count(k, KS_PRELOADED_BYTES, e.bytes);
		/* LATER: this piece is left out, and the job goes on */
		if (kvd_read_record(k, j, &e, e.bytes) != KVD_HERE)
			return;
	}
	kvd_job_put(k, j);
}

void kvd_preload_begin(struct kvd *k)
{
	struct kvd_preload *p = &k->preload;
	uint64_t span = 4ull * k->cfg.zones + 2048;
	struct kvd_job *j;

	if (p->begun)
		return;
	*p = (struct kvd_preload){ .begun = true, .left = wanted(k), .zone = k->index.newest,
		.lowest = k->index.newest > span ? k->index.newest - span : 0 };
	for (int i = 0; i < 2 && p->left; i++)
		if ((j = kvd_job_get(k, NULL, run_preload)))
			run_preload(k, j);
}
