/* admin - kvd's commands, and its counters.
 *
 * Contract: kvd's thread. Counters are in the segment, so a successor goes on counting.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "peers/kvd/kvd.h"

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
	[KVD_BROKEN] = "broken",
};

static int64_t info(struct kvd *k, struct kv_text *t)
{
	struct alog_stats s;

	alog_stats(k->log, &s);
	kv_add(t, "state=%s\nprefix=%s\nid=%u\nkeys=%" PRIu64 "\nkeys_max=%" PRIu64 "\n",
		states[k->state], k->cfg.prefix, k->id, k->index.keys, k->opt.keys_max);
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
	return (int64_t)t->used;
}

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
