/* status - the texts of cached about itself: the counters' names, `cache status`, `cache drop`.
 *
 * Contract: status_text() from any port's thread; it reads other ports' counters while they count.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "peers/cached/admin/admin.h"
#include "peers/cached/life/cached.h"
#include "peers/common/clock/clock.h"
#include "peers/common/say/kv.h"

#define WRITES_KEY(number, name_, counter_, ...) [counter_] = "writes_by." name_,
const char *const cache_keys[NR_CC] = {
	[CC_READS] = "reads", [CC_WRITES] = "writes", [CC_HITS] = "hits", [CC_MISSES] = "misses",
	[CC_PARTIAL] = "partial", [CC_HIT_BYTES] = "hit_bytes", [CC_MISS_BYTES] = "miss_bytes",
	[CC_BYPASSED_SEQUENTIAL] = "bypassed_by.sequential",
		[CC_BYPASSED_FULL] = "bypassed_by.full",
	[CC_BYPASSED_POLICY] = "bypassed_by.policy", [CC_BYPASSED_ERROR] = "bypassed_by.error",
		[CC_BYPASSED_ONCE] = "bypassed_by.once",
	[CC_BYPASSED_BYTES] = "bypassed_bytes",
	POLICIES(WRITES_KEY)
	[CC_WRITES_BYPASSED] = "writes_bypassed",
	[CC_READ_AHEAD_BYTES] = "read_ahead_bytes",
	[CC_EVICTED_CLEAN] = "evicted_by.clean", [CC_EVICTED_DIRTY] = "evicted_by.dirty",
	[CC_EVICTED_OBJECT] = "evicted_by.object", [CC_EVICTED_PRESSURE] = "evicted_by.pressure",
	[CC_EVICTED_UNPROMISED] = "evicted_by.unpromised",
	[CC_FLUSHED_WATERMARK] = "flushed_by.watermark", [CC_FLUSHED_AGE] = "flushed_by.age",
	[CC_FLUSHED_EVICTION] = "flushed_by.eviction", [CC_FLUSHED_FLUSH] = "flushed_by.flush",
	[CC_FLUSHED_SWITCH] = "flushed_by.switch", [CC_WAITS_BUCKET] = "waits_by.bucket",
	[CC_WAITS_REQUEST] = "waits_by.request", [CC_WAITS_LOAD] = "waits_by.load",
		[CC_WAITS_FLUSH] = "waits_by.flush",
	[CC_WAITS_THROTTLE] = "waits_by.throttle",
	[CC_FLUSHED_BYTES] = "flushed_bytes", [CC_FLUSH_ERRORS] = "flush_errors",
		[CC_LOAD_ERRORS] = "load_errors",
	[CC_REINSERTED] = "reinserted", [CC_MEMORY_BYTES] = "memory_bytes",
		[CC_USED_BYTES] = "used_bytes",
	[CC_DIRTY_BYTES] = "dirty_bytes", [CC_UNPROMISED_BYTES] = "unpromised_bytes",
	[CC_METADATA_BYTES] = "metadata_bytes",
		[CC_OBJECTS] = "objects",
	[CC_POLICY] = "policy_number", [CC_LENT_BYTES] = "lent_bytes",
		[CC_LOANS_REFUSED] = "loans_refused",
	[CC_LIMBO_BYTES] = "limbo_bytes", [CC_GIVEN_BYTES] = "given_bytes",
};

static uint64_t sum_of(struct cached *k, enum cache_counter from, enum cache_counter to)
{
	uint64_t sum = 0;

	for (enum cache_counter n = from; n <= to; n++)
		sum += cached_total(k, n);
	return sum;
}

/* In the wait queues now: for memory, for requests of our own, for what is being flushed. */
static uint32_t nr_waiting(struct cached *k)
{
	uint32_t n = xwaitq_nr(&memory_of(k)->want_urgent) + xwaitq_nr(&memory_of(k)->want_owed) +
		     xwaitq_nr(&memory_of(k)->want_pages) +
		     xwaitq_nr(&object_of(k)->want_entries) + xwaitq_nr(&memory_of(k)->want_lists) +
		     atomic_load_explicit(&volume_of(k)->shares.waiting, memory_order_relaxed) +
		     atomic_load_explicit(&flush_of(k)->nr_flushes, memory_order_relaxed) +
		     atomic_load_explicit(&flush_of(k)->throttle.nr, memory_order_relaxed);

	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		n += xwaitq_nr(&store_port(cport_at(k, i))->want_requests);
	return n;
}

/* Bytes a second by which `from` has become `dirty` since the switch; 0 while it has not. */
static uint64_t drain_rate(const struct cport *ps, uint64_t from, uint64_t dirty)
{
	uint64_t begun = atomic_load_explicit(
			 &policy_of(ps->cache)->switch_ns, memory_order_relaxed),
		 now = ps->pp->now_ns, ms = begun ? clock_since(begun, now) / 1000000 : 0;

	return ms ? (from - dirty) * 1000 / ms : 0;
}

/* How long it will take is left out while nobody can know. */
static void add_draining(const struct cport *ps, struct kv_text *t, uint64_t dirty)
{
	const struct cached *k = ps->cache;
	uint64_t begun = atomic_load_explicit(&policy_of(k)->switch_bytes, memory_order_relaxed),
		 from = begun > dirty ? begun : dirty, rate = drain_rate(ps, from, dirty);

	kv_add(t, "draining.from=%s\n",
		atomic_load_explicit(&policy_of(k)->switch_from, memory_order_relaxed)->name);
	kv_add(t, "draining.percent=%" PRIu64 "\n", from ? 100 - dirty * 100 / from : 100);
	kv_add(t, "draining.bytes_left=%" PRIu64 "\n", dirty);
	kv_add(t, "draining.rate=%" PRIu64 "\n", rate);
	if (rate || !dirty)
		kv_add(t, "draining.eta_ms=%" PRIu64 "\n", rate ? dirty * 1000 / rate : 0);
}

/* Since when the store is full, and for what. */
static void add_full(const struct cport *ps, struct kv_text *t)
{
	struct cached *k = ps->cache;
	uint32_t nr, rec = full_first(k, &nr), entry;
	uint64_t since_ns, now = ps->pp->now_ns;

	kv_add(t, "store_full=%s\n",
		atomic_load_explicit(&flush_of(k)->full_fails, memory_order_relaxed) ? "fail"
										     : "wait");
	if (rec == UINT32_MAX)
		return;
	since_ns = atomic_load_explicit(&volume_of(k)->states[rec].full_ns, memory_order_relaxed);
	entry = atomic_load_explicit(&volume_of(k)->states[rec].full_entry, memory_order_relaxed);
	kv_add(t, "full.ms=%" PRIu64 "\n", clock_since(since_ns, now) / 1000000);
	kv_add(t, "full.id=%u\n", volume_of(k)->volume_ids[rec]);
	kv_add(t, "full.object=%.*s\n", XSEG_TARGET_MAX - 1, object_of(k)->entries[entry].name);
	kv_add(t, "full.volumes=%u\n", nr);
}

/* False: it has none. */
static bool add_trouble(const struct cport *ps, enum trouble_kind kind, const char *name,
	struct kv_text *t)
{
	uint64_t ns;
	int error;

	if (!trouble_get(ps, kind, &error, &ns))
		return false;
	kv_add(t, "%s.errno=%d\n", name, -error);
	kv_add(t, "%s.error=%s\n", name, strerror(-error));
	kv_add(t, "%s.ms=%" PRIu64 "\n", name, ns / 1000000);
	return true;
}

/* What does not reach the store is tried again by itself. A FLUSH is its client's to send again. */
static void add_flush_trouble(const struct cport *ps, struct kv_text *t)
{
	if (add_trouble(ps, TROUBLE_FLUSH, "flushes_fail", t))
		kv_add(t, "flushes_fail.of=write\n");
	else if (add_trouble(ps, TROUBLE_SYNC, "flushes_fail", t))
		kv_add(t, "flushes_fail.of=flush\n");
}

static void add_resizing(struct cached *k, struct kv_text *t)
{
	kv_add(t, "resizing.to_bytes=%" PRIu64 "\n",
		(uint64_t)atomic_load_explicit(&memory_of(k)->target_pages, memory_order_relaxed) *
			BUCKET_SIZE);
	kv_add(t, "resizing.left_bytes=%" PRIu64 "\n", resize_left(k));
}

int64_t status_text(struct cport *ps, char *out, size_t size)
{
	struct cached *k = ps->cache;
	uint64_t dirty = cached_total(k, CC_DIRTY_BYTES);
	/* one that was leaving until just now has not looked yet */
	bool draining =
		atomic_load_explicit(&policy_of(k)->leaving, memory_order_relaxed)
			? plug_is_leaving(k)
			: atomic_load_explicit(&policy_of(k)->switching, memory_order_relaxed);
	bool off = cached_is_off(k);
	struct kv_text t;

	kv_init(&t, out, size);
	kv_add(&t, "name=%s\n", peer_of(k)->name);
	kv_add(&t, "policy=%s\n", policy_promise(k, NULL)->name);
	if (draining)
		add_draining(ps, &t, dirty);
	if (resizing(k))
		add_resizing(k, &t);
	add_full(ps, &t);
	add_flush_trouble(ps, &t);
	add_trouble(ps, TROUBLE_LOAD, "loads_fail", &t);
	kv_add(&t, "state=%s\n", off ? "drained" : draining ? "draining" : "running");
	for (uint32_t i = 0; i < NR_CC; i++)
		if (i != CC_POLICY && i != CC_OBJECTS)
			kv_add(&t, "%s=%" PRIu64 "\n", cache_keys[i], cached_total(k, i));
	kv_add(&t, "objects=%u\n", xcache_nr_active(&object_of(k)->xc));
	kv_add(&t, "bypassed=%" PRIu64 "\n", sum_of(k, CC_BYPASSED_SEQUENTIAL, CC_BYPASSED_ONCE));
	kv_add(&t, "evicted=%" PRIu64 "\n",
		sum_of(k, CC_EVICTED_CLEAN, CC_EVICTED_UNPROMISED));
	kv_add(&t, "waiting=%u\n", nr_waiting(k));
	kv_add(&t, "evicting=%u\n",
		atomic_load_explicit(&evict_of(k)->reclaims, memory_order_relaxed));
	return t.full ? -ENOSPC : (int64_t)t.used;
}

/* Forgets all that is clean or not promised; refuses while anything is dirty. */
int64_t drop_clean(struct cport *ps, char *out, size_t size)
{
	struct cached *k = ps->cache;
	uint64_t dirty = cached_total(k, CC_DIRTY_BYTES);
	struct kv_text t;
	char text[24];

	kv_init(&t, out, size);
	if (dirty) {
		opt_human_size(dirty, text, sizeof(text));
		kv_add(&t, "%s are dirty; flush first ('xseg cache flush %s')", text,
			peer_of(k)->name);
		return -EBUSY;
	}
	kv_add(&t, "dropped_bytes=%" PRIu64 "\n", (uint64_t)pages_drop(ps) * BUCKET_SIZE);
	return (int64_t)t.used;
}
