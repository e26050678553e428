/* admin - kvd's commands, and its counters.
 *
 * Contract: kvd's thread. Counters are in the segment, so a successor goes on counting.
 *
 * The command `verify` reads each record of the log, and tells what is bad. One goes on at a time,
 * beside requests, as a walk of the log. A successor of a killed kvd begins it anew. After the
 * record of a large value the walk waits until each of its pieces is read, one after the other, and
 * compared with its sum. Meanwhile the value's zones are held.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "peers/kvd/kvd.h"
#include "xtypes/xcrc.h"

#define BAD_TOLD    100u			/* bad records in the answer */
#define PATIENCE_NS (60 * KVD_SECOND)		/* for the log to be open */

static const char *const keys[KVD_NR_STATS] = {
	[KS_PUTS] = "puts", [KS_GETS] = "gets", [KS_DELETES] = "deletes", [KS_HITS] = "hits",
	[KS_MISSES] = "misses", [KS_SCANS] = "scans", [KS_LOOKS] = "looks",
	[KS_BAD_RECORDS] = "bad_records", [KS_EXPIRED] = "expired", [KS_EVICTED] = "evicted",
	[KS_REFUSED] = "refused", [KS_PRELOADED_BYTES] = "preloaded_bytes",
	[KS_KEYS] = "keys", [KS_LIVE_BYTES] = "live_bytes",
	[KS_DIRTY_BYTES] = "dirty_bytes", [KS_LARGE_KEYS] = "large_keys",
	[KS_LARGE_BYTES] = "large_bytes",
};

int kvd_stats_open(struct kvd *k)
{
	return xseg_stats_open(k->peer.xp, k->peer.name, "kv", keys, KVD_NR_STATS, &k->stats);
}

void kvd_stats_update(struct kvd *k)
{
	if (!alog_serves(k->log))		/* what a predecessor counted holds until then */
		return;
	xseg_stats_set(k->stats, KS_KEYS, k->index.keys);
	xseg_stats_set(k->stats, KS_LIVE_BYTES, k->index.live_bytes + k->large.t.named_bytes);
	xseg_stats_set(k->stats, KS_LARGE_KEYS, k->large.t.named);
	xseg_stats_set(k->stats, KS_LARGE_BYTES, k->large.t.named_bytes);
	xseg_stats_set(k->stats, KS_DIRTY_BYTES, alog_end(k->log) - alog_written(k->log));
}

static uint64_t counted(const struct kvd *k, enum kvd_stat what)
{
	return xseg_stats_get(k->stats, what);
}

static const char *const states[] = {
	[KVD_OPENING] = "opening", [KVD_NAMING] = "opening", [KVD_KEEPING] = "opening",
	[KVD_OPEN] = "open",
	[KVD_BROKEN] = "broken", [KVD_SALVAGING] = "broken", [KVD_SALVAGED] = "salvaged",
};

/* How far the opening is, or why there is none. */
static void add_opening(const struct kvd *k, const struct alog_stats *s, struct kv_text *t)
{
	if (k->state < KVD_OPEN)
		kv_add(t, "opening_done=%" PRIu64 "\nopening_of=%" PRIu64 "\n", s->opening_done,
			s->opening_of);
	if (k->state >= KVD_BROKEN)
		kv_add(t, "error=%s\nreason=" KVD_BROKEN_FORMAT "\n", strerrorname_np(-k->error),
			k->cfg.prefix, kvd_why_broken(k->error));
}

static int64_t info(struct kvd *k, struct kv_text *t)
{
	struct alog_stats s;

	alog_stats(k->log, &s);
	index_paid(&k->index, alog_gone_stable(k->log));
	kv_add(t, "state=%s\nprefix=%s\nid=%u\nkeys=%" PRIu64 "\nkeys_max=%" PRIu64 "\n"
		  "keys_left=%" PRIu64 "\n",
		states[k->state], k->cfg.prefix, k->id, k->index.keys, k->opt.keys_max,
		index_room(&k->index));
	kv_add(t, "live_bytes=%" PRIu64 "\nlog_bytes=%" PRIu64 "\nsize_bytes=%" PRIu64
		  "\nzones=%u\nzones_free=%u\nindex_bytes=%" PRIu64 "\n",
		k->index.live_bytes + k->large.t.named_bytes,
		(uint64_t)(s.zones + s.own_zones) * k->cfg.zone_bytes, k->opt.size_bytes,
		s.zones + s.own_zones, s.zones_free, index_bytes(k->opt.keys_max));
	kv_add(t, "large_keys=%" PRIu64 "\nlarge_bytes=%" PRIu64 "\nlarge_zones=%u\n"
		  "handles=%u\n", k->large.t.named, k->large.t.named_bytes, s.own_zones,
		k->large.t.nr_handles);
	kv_add(t, "puts=%" PRIu64 "\ngets=%" PRIu64 "\ndeletes=%" PRIu64 "\nhits=%" PRIu64
		  "\nmisses=%" PRIu64 "\n", counted(k, KS_PUTS), counted(k, KS_GETS),
		counted(k, KS_DELETES), counted(k, KS_HITS), counted(k, KS_MISSES));
	kv_add(t, "scans=%" PRIu64 "\nlooks=%" PRIu64 "\nexpired=%" PRIu64 "\nevicted=%" PRIu64
		  "\nrefused=%" PRIu64 "\npreloaded_bytes=%" PRIu64 "\n", counted(k, KS_SCANS),
		counted(k, KS_LOOKS), counted(k, KS_EXPIRED), counted(k, KS_EVICTED),
		counted(k, KS_REFUSED), counted(k, KS_PRELOADED_BYTES));
	kv_add(t, "tombstones=%" PRIu64 "\nappended_bytes=%" PRIu64 "\ncompacted_bytes=%" PRIu64
		  "\nwritten_bytes=%" PRIu64 "\nflushes=%" PRIu64 "\nzones_deleted=%" PRIu64
		  "\nrepairs=%" PRIu64 "\n", k->index.tombstones, s.appended_bytes,
		s.copied_bytes, s.written_bytes, s.flushes, s.zones_deleted, s.repairs);
	kv_add(t, "bad_records=%" PRIu64 "\nholes=%" PRIu64 "\ndirty_bytes=%" PRIu64
		  "\nopened_ns=%" PRIu64 "\nopened_by_scan=%u\nsync=%s\n",
		counted(k, KS_BAD_RECORDS), s.holes, counted(k, KS_DIRTY_BYTES), k->opened_ns,
		s.opened_by_scan, k->opt.sync_text);
	add_opening(k, &s, t);
	return (int64_t)t->used;
}

/* ---- verify ---- */

static bool is_live(const struct kvd *k, uint64_t zone, const struct alog_hint *hint)
{
	uint64_t slot = index_find(&k->index, hint->identity);
	struct index_entry e;

	if (hint->type == ALOG_CLEAR || slot == INDEX_NONE)
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

static bool begin(struct kvd *k, struct xreq *r)
{
	struct alog_walk walk = { .record = record, .over = over, .ctx = k,
		.ready = ready };
	struct kvd_verify *v = &k->verify;

	if (k->state != KVD_OPEN || v->r || v->busy || alog_walk(k->log, &walk))
		return false;
	*v = (struct kvd_verify){ .r = r, .buf = v->buf, .sums = v->sums };
	kv_init(&v->text, v->buf, KVD_VERIFY_BYTES);
	return true;
}

static void say_why(const struct kvd *k, struct kv_text *t)
{
	const char *why = k->state >= KVD_BROKEN
				  ? "its log cannot be opened; the log of the stack says why"
			  : k->state != KVD_OPEN ? "its log is not open yet; try again later"
			  : k->verify.r || k->verify.waits
				  ? "another verify is under way; try again later"
				  : "a backup or a repair is under way; try again later";

	kv_add(t, "%s: %s", k->peer.name, why);
}

/* While the log is opened the command waits, as gets do. */
int64_t kvd_verify(struct kvd *k, struct xreq *r, struct kv_text *t)
{
	struct kvd_verify *v = &k->verify;

	if (k->state < KVD_OPEN && !v->waits) {
		v->waits = r;
		v->until_ns = k->pp->now_ns + PATIENCE_NS;
		return PEER_ADMIN_LATER;
	}
	if (begin(k, r))
		return PEER_ADMIN_LATER;
	say_why(k, t);
	return -EBUSY;
}

uint64_t kvd_verify_poll(struct kvd *k)
{
	struct kvd_verify *v = &k->verify;
	bool over = k->pp->now_ns >= v->until_ns;
	struct xreq *r = v->waits;
	struct kv_text t;
	char text[160];

	if (!r)
		return PEER_NEVER;
	if (k->state < KVD_OPEN && !over)
		return v->until_ns;
	v->waits = NULL;
	if (begin(k, r))
		return PEER_NEVER;
	kv_init(&t, text, sizeof(text));
	say_why(k, &t);
	peer_answer_text(k->pp, r, -EBUSY, text);
	return PEER_NEVER;
}

void kvd_verify_fail(struct kvd *k, int error)
{
	struct xreq *r = k->verify.r;

	k->verify.r = NULL;
	k->verify.run = NULL;			/* the runs are forgotten */
	if (r)
		peer_answer_text(k->pp, r, error, "the log is being read anew; try again later");
}

/* ---- the commands ---- */

int64_t kvd_admin(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size)
{
	struct kvd *k = kvd_of(pp->peer);
	struct kv_text t;

	kv_init(&t, out, size);
	if (!strcmp(line, "info") || !strcmp(line, "status"))
		return info(k, &t);
	if (!strcmp(line, "verify"))
		return kvd_verify(k, r, &t);
	return -ENOSYS;
}
