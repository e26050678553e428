/* cached - the cache peer: options, life, and the work of its port in each round.
 *
 * Contract: see peers/common/runtime/peer.h. The core (all but init) reads no clock but now_ns. It
 * makes no system call, except that steps of plugging take the lock of routes.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "peers/cached/admin/admin.h"
#include "peers/cached/evict/evict.h"
#include "peers/cached/life/cached.h"
#include "peers/common/say/kv.h"
#include "xtypes/xkill.h"

static const char *const full_names[] = { "wait", "fail", NULL };

#define DIRTY_LOW 60				/* its default */
#define AT(field) offsetof(struct cached_base, options.field)
static const struct opt cached_opts[] = {
	{ .name = "memory", .kind = OPT_SIZE, .off = AT(memory), .min = SIZE_MIN_BYTES,
	  .max = 1ull << 40, .def = "256M", .flags = OPT_LIVE, .arg = "SIZE",
	  .help = "memory for cached data, in steps of 2M, taken from the segment" },
	{ .name = "objects", .kind = OPT_UINT, .off = AT(objects_wanted), .max = 1u << 24,
	  .def = "0", .arg = "N",
	  .help = "objects that can be cached at the same time; 0: one for each 64 KiB of memory" },
	{ .name = "policy", .kind = OPT_ENUM, .off = AT(policy_nr), .names = policy_names,
	  .def = "write-back", .flags = OPT_LIVE, .arg = "POLICY",
	  .help = "where writes go; under write-back acknowledged data is in RAM until it is "
		  "flushed" },
	{ .name = "dirty_high", .kind = OPT_PERCENT, .off = AT(dirty_high), .min = 1, .max = 100,
	  .def = "70", .flags = OPT_LIVE, .arg = "PERCENT",
	  .help = "begin to flush when more of the cache than this is dirty" },
	{ .name = "dirty_low", .kind = OPT_PERCENT, .off = AT(dirty_low), .max = 100, .def = "60",
	  .flags = OPT_LIVE, .arg = "PERCENT",
	  .help = "stop flushing when no more of the cache than this is dirty" },
	{ .name = "dirty_age", .kind = OPT_TIME, .off = AT(dirty_age_ns), .def = "30s",
	  .flags = OPT_LIVE, .arg = "TIME",
	  .help = "flush data that has been dirty for longer than this" },
	{ .name = "flush_rate", .kind = OPT_RATE, .off = AT(flush_rate), .def = "0",
	  .flags = OPT_LIVE, .arg = "RATE",
	  .help = "flush no faster than this in the background; 0: as fast as the store takes it" },
	{ .name = "read_ahead", .kind = OPT_SIZE, .off = AT(read_ahead), .max = 1u << 20,
	  .def = "512k", .flags = OPT_LIVE, .arg = "SIZE",
	  .help = "read up to this much ahead of a sequential reader; 0: nothing" },
	{ .name = "seq_cutoff", .kind = OPT_SIZE, .off = AT(seq_cutoff), .max = 1ull << 40,
	  .def = "4M", .flags = OPT_LIVE, .arg = "SIZE",
	  .help = "when the cache is full, do not keep a sequential reader's data beyond this; 0: "
		  "keep all" },
	{ .name = "store_full", .kind = OPT_ENUM, .off = AT(store_full), .names = full_names,
	  .def = "wait", .flags = OPT_LIVE, .arg = "wait|fail",
	  .help = "whether writes of a volume wait or fail when the store has no room for it" },
	{ .name = "requests", .kind = OPT_UINT, .off = AT(requests), .min = 8, .max = 4096,
	  .def = "128", .arg = "N",
	  .help = "requests that each thread may have in flight at the store" },
	{ .name = NULL },
};
#undef AT

static uint32_t cached_nr_requests(struct peer *p)
{
	return options_of(cached_of(p))->requests;
}

static uint64_t cached_memory_bytes(const struct peer *p)
{
	return arena_memory_bytes((const struct cached *)p);
}

static void port_init(struct cached *k, uint32_t i)
{
	struct cport *ps = cport_at(k, i);

	ps->pp = &peer_of(k)->ports[i];
	ps->cache = k;
	ps->pp->state = ps;
	object_port(ps)->ready_tail = &object_port(ps)->ready;
	xwaitq_init(&store_port(ps)->want_requests);
}

static void zero_gauges(struct xseg_stats *s)
{
	static const enum cache_counter gauges[] = { CC_MEMORY_BYTES, CC_USED_BYTES,
		CC_METADATA_BYTES, CC_OBJECTS, CC_LIMBO_BYTES, CC_UNPROMISED_BYTES };

	for (unsigned g = 0; g < sizeof(gauges) / sizeof(gauges[0]); g++)
		xseg_stats_set(s, gauges[g], 0);
}

/* Counters of a predecessor go on; gauges begin again, but what is dirty stays until arena_load()
 * has counted it: who asks what would be lost may ask while there is no cached, or one that has
 * just begun. */
static int open_stats(struct cached *k, struct xseg_error *err)
{
	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++) {
		int rc = xseg_stats_open(peer_of(k)->xp, peer_of(k)->name, "cache", cache_keys,
			NR_CC, &cport_at(k, i)->stats);

		if (rc)
			return xseg_fail(err, rc,
				"the segment has no place for its counters; give peers fewer "
				"threads");
		zero_gauges(cport_at(k, i)->stats);
	}
	return 0;
}

void cost_now(struct cached *k, struct cache_cost *cost)
{
	struct cache_size size = { .memory_bytes = (uint64_t)nr_owned(k) * BUCKET_SIZE,
		.segment_bytes = (uint64_t)xseg_nr_pages(peer_of(k)->seg) * BUCKET_SIZE,
		.objects = object_of(k)->nr_objects,
		.volumes = volume_of(k)->nr_volumes,
		.requests = creq_of(k)->nr_requests,
		.ports = life_of(k)->head->nr_ports > peer_of(k)->nr_ports
				 ? life_of(k)->head->nr_ports
				 : peer_of(k)->nr_ports };

	cache_cost(&size, cost);
}

void publish_gauges(struct cached *k, uint64_t now_ns)
{
	struct xseg_stats *s = cport_at(k, 0)->stats;
	struct cache_cost cost;

	cost_now(k, &cost);
	atomic_store(
		&admin_of(k)->gauges_ns, now_ns); /* first: what is set after this is told again */
	direct_look(k);		/* its size may have changed */
	xseg_stats_set(
		s, CC_MEMORY_BYTES, (uint64_t)(nr_owned(k) - memory_of(k)->withheld) * BUCKET_SIZE);
	xseg_stats_set(s, CC_METADATA_BYTES, cost.all);
	xseg_stats_set(s, CC_OBJECTS, xcache_nr_active(&object_of(k)->xc));
	/* as noted: the option is another thread's while it is set */
	xseg_stats_set(s, CC_POLICY,
		(uint32_t)atomic_load_explicit(&life_of(k)->head->policy, memory_order_relaxed) -
			1);
	xseg_stats_set(s, CC_LIMBO_BYTES,
		(uint64_t)atomic_load_explicit(&memory_of(k)->limbo.nr, memory_order_relaxed) *
			BUCKET_SIZE);
}

/* Options that the data path reads. */
static void options_hold(struct cached *k)
{
	atomic_store_explicit(
		&flush_of(k)->high_percent, options_of(k)->dirty_high, memory_order_relaxed);
	atomic_store_explicit(
		&flush_of(k)->low_percent, options_of(k)->dirty_low, memory_order_relaxed);
	atomic_store_explicit(
		&flush_of(k)->age_ns, options_of(k)->dirty_age_ns, memory_order_relaxed);
	atomic_store_explicit(
		&flush_of(k)->full_fails, options_of(k)->store_full, memory_order_relaxed);
	dirty_is_news(k);
	/* what the last flush was charged is by the old rate */
	if (atomic_exchange(&flush_of(k)->flush_bytes_per_s, options_of(k)->flush_rate) !=
		options_of(k)->flush_rate)
		atomic_store_explicit(&flush_of(k)->rate_ns, 0, memory_order_relaxed);
}

/* The new policy holds for what comes from now on; what write-back left dirty is flushed in the
 * background. */
static void policy_switch(struct cached *k, const struct policy *to)
{
	const struct policy *from = atomic_exchange(&policy_of(k)->current, to);

	direct_look(k);
	if (from->answers_before_store && to != from)
		switch_begin(k, from);
	else if (policy_promise(k, to)->answers_before_store)	/* not while it leaves */
		switch_end(k);
}

/* What was promised outlives who promised it. The policy that it was started with, and below it the
 * one that holds, each plus 1. */
static void policy_note(struct cached *k, uint32_t at_start)
{
	/* one store: a successor finds both or neither */
	atomic_store_explicit(&life_of(k)->head->policy,
		(uint64_t)(at_start + 1) << 32 | (options_of(k)->policy_nr + 1),
		memory_order_release);
	XKILL(POLICY_STORED);
}

/* A successor that is started with the policy that its predecessor was started with goes on with
 * the one that was set since then. */
static void policy_open(struct cached *k)
{
	uint64_t was = atomic_load_explicit(&life_of(k)->head->policy, memory_order_acquire);
	uint32_t at_start = options_of(k)->policy_nr, since = (uint32_t)was - 1;

	if (was >> 32 == at_start + 1 && since < NR_POLICIES)
		options_of(k)->policy_nr = since;
	policy_note(k, at_start);
	if (cached_total(k, CC_DIRTY_BYTES))
		policy_switch(k, &policies[options_of(k)->policy_nr]);
	else
		atomic_store(&policy_of(k)->current, &policies[options_of(k)->policy_nr]);
}

/* What needs nothing of the arena. */
static void parts_init(struct cached *k)
{
	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		port_init(k, i);
	pthread_mutex_init(&memory_of(k)->mem_lock, NULL);
	pthread_mutex_init(&lend_of(k)->loans.lock, NULL);
	pthread_mutex_init(&flush_of(k)->dirty_lock, NULL);
	pthread_mutex_init(&volume_of(k)->volume_lock, NULL);
	throttle_init(&flush_of(k)->throttle);
	request_of(k)->recovering = true;
	request_of(k)->cuts_tail = &request_of(k)->cuts;
	CDS_INIT_LIST_HEAD(&flush_of(k)->dirty);
	for (uint32_t i = 0; i < NR_PAUSES; i++)
		CDS_INIT_LIST_HEAD(&flush_of(k)->failed[i]);
	CDS_INIT_LIST_HEAD(&flush_of(k)->again);
	CDS_INIT_LIST_HEAD(&flush_of(k)->wanted);
	group_init(&flush_of(k)->all);
	xwaitq_init(&memory_of(k)->want_urgent);
	xwaitq_init(&memory_of(k)->want_owed);
	xwaitq_init(&memory_of(k)->want_pages);
	xwaitq_init(&object_of(k)->want_entries);
	xwaitq_init(&memory_of(k)->want_lists);
	streams_init(streams_of(k), options_of(k)->seq_cutoff, (uint32_t)options_of(k)->read_ahead);
}

static void parts_fini(struct cached *k)
{
	streams_fini(streams_of(k));
	waiters_drop(&memory_of(k)->want_lists);
	waiters_drop(&object_of(k)->want_entries);
	waiters_drop(&memory_of(k)->want_pages);
	waiters_drop(&memory_of(k)->want_owed);
	waiters_drop(&memory_of(k)->want_urgent);
	throttle_fini(&flush_of(k)->throttle);
	pthread_mutex_destroy(&volume_of(k)->volume_lock);
	pthread_mutex_destroy(&flush_of(k)->dirty_lock);
	pthread_mutex_destroy(&lend_of(k)->loans.lock);
	pthread_mutex_destroy(&memory_of(k)->mem_lock);
	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		waiters_drop(&store_port(cport_at(k, i))->want_requests);
}

/* Queues first: who still waits in one is in memory that goes then. */
static void cached_fini(struct peer *p)
{
	struct cached *k = cached_of(p);

	parts_fini(k);
	arena_close(k);
}

static int cached_fit(const struct peer *p, const char **key, struct xseg_error *err)
{
	const struct cached *k = (const struct cached *)p;

	if (options_of(k)->dirty_low <= options_of(k)->dirty_high)
		return 0;
	/* dirty_low is higher only because of its default */
	*key = options_of(k)->dirty_high < DIRTY_LOW ? "dirty_high" : "dirty_low";
	return xseg_fail(err, -EINVAL, "dirty_low=%u would be above dirty_high=%u; set both",
		       options_of(k)->dirty_low, options_of(k)->dirty_high);
}

static int cached_init(struct peer *p, struct xseg_error *err)
{
	struct cached *k = cached_of(p);
	int rc;

	direct_begin(k);
	parts_init(k);
	atomic_store(&policy_of(k)->current, &policies[POLICY_WRITE_BACK]);
	atomic_store(&policy_of(k)->switch_from, &policies[POLICY_WRITE_BACK]);
	atomic_store(&store_of(k)->sync_epoch, 1);
	options_hold(k);
	rc = open_stats(k, err);
	if (rc == 0)
		rc = arena_open(k, err);
	if (rc == 0)
		rc = arena_load(k, err);
	if (rc == 0) {
		/* for "get": 0 has left the number to the arena */
		options_of(k)->objects_wanted = object_of(k)->nr_objects;
		reserve_begin(k);
		policy_open(k);
		plug_open(k);
		volumes_drain(k);
		publish_gauges(k, p->ports[0].now_ns);
	} else {
		cached_fini(p);
	}
	return rc;
}

static bool cached_adopted(struct peer *p)
{
	return store_of(cached_of(p))->adopted;
}

static void cached_recover(struct peer_port *pp, struct xreq *r)
{
	if (cached_is_off(cached_of(pp->peer)))
		peer_answer(pp, r, -ENOTCONN);
	else
		creq_request(cport_of(pp), r, true);
}

static void cached_recovered(struct peer *p)
{
	creq_recovered(cport_at(cached_of(p), 0));
	plug_begin(cached_of(p));
}

static void cached_reply(struct peer_port *pp, struct xreq *r)
{
	child_reply(cport_of(pp), r);
}

#define GAUGES_NS 200000000ull
#define POLL_NS	  4000ull

/* Hits have come since the last poll, and nothing that has to be seen to at once. */
static bool is_on_hits(struct cport *ps)
{
	uint32_t before = request_port(ps)->hits_polled;

	request_port(ps)->hits_polled = request_port(ps)->hits.nr + request_port(ps)->hits.writes;
	return request_port(ps)->hits_polled != before && !object_port(ps)->ready &&
	       !memory_port(ps)->freed && !store_port(ps)->request_freed &&
	       !flush_port(ps)->throttled &&
	       !atomic_load_explicit(&store_port(ps)->returned, memory_order_relaxed);
}

/* While hits come it looks at everything else every POLL_NS only, as that takes as many
 * instructions as a hit. */
static uint64_t cached_poll(struct peer_port *pp)
{
	struct cport *ps = cport_of(pp);
	struct cached *k = ps->cache;
	uint64_t next_ns, throttle_ns, limbo_ns, control_ns = PEER_NEVER;
	bool more;

	store_port(ps)->sent = request_port(ps)->copied = 0;
	more = batch_poll(ps);
	if (is_on_hits(ps) && pp->now_ns - life_port(ps)->polled_ns < POLL_NS)
		return pp->now_ns;
	life_port(ps)->polled_ns = pp->now_ns;
	hits_publish(ps);
	early_forget(ps);
	children_collect(ps);
	if (memory_port(ps)->nr_magazine &&
		atomic_load_explicit(&memory_of(k)->nr_leaving, memory_order_relaxed))
		magazine_empty(ps);
	if (pp->nr == 0) {
		control_ns = peer_earlier(resize_run(ps), plug_run(ps));
		control_ns = peer_earlier(control_ns, share_run(ps));
		control_ns = peer_earlier(control_ns, own_sync_run(ps));
		control_ns = peer_earlier(control_ns, unpromised_run(ps));
		if (atomic_load_explicit(&lend_of(k)->direct.look, memory_order_relaxed))
			direct_run(k);
	}
	if (store_port(ps)->request_freed) {
		store_port(ps)->request_freed = false;
		requests_signal(ps);
	}
	if (pp->nr == 0) {
		reserve_fill(ps);
		full_run(ps);
	}
	if (memory_port(ps)->freed) {
		memory_port(ps)->freed = false;
		pages_signal(ps);
	}
	throttle_ns = throttle_run(ps);
	switch_clock(ps);
	next_ns = flusher_run(ps);
	limbo_ns = limbo_run(ps);
	next_ns = peer_earlier(peer_earlier(next_ns, limbo_ns), control_ns);
	pages_ahead(ps, request_port(ps)->early.pays);
	more |= object_run_ready(ps, 64);
	if (pp->nr == 0 &&
		pp->now_ns >= atomic_load_explicit(&admin_of(k)->gauges_ns, memory_order_relaxed) +
				      GAUGES_NS)
		publish_gauges(k, pp->now_ns);
	if (more || memory_port(ps)->freed || store_port(ps)->request_freed ||
		flush_port(ps)->throttled)
		return pp->now_ns;
	return peer_earlier(throttle_ns, next_ns);
}

static const struct {
	const char *word;
	int64_t (*run)(struct cached *k, char *args, char *out, size_t size);
} volume_commands[] = {
	{ "volumes", volume_list_text }, { "volume-status", volume_status_text },
	  { "volume-set", volume_set_text },
	{ "volume-get", volume_get_text }, { "volume-forget", volume_forget_text },
};

static int64_t cached_admin(
	struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size)
{
	struct cached *k = cached_of(pp->peer);
	char *args = line, *value, *word = kv_next_word(&args, &value);

	(void)r;
	hits_publish(cport_of(pp));
	if (!word)
		return -ENOSYS;
	if (!args)
		args = word + strlen(word);
	if (strcmp(word, "status") == 0)
		return status_text(cport_of(pp), out, size);
	if (strcmp(word, "drop") == 0)
		return drop_clean(cport_of(pp), out, size);
	for (unsigned i = 0; i < sizeof(volume_commands) / sizeof(volume_commands[0]); i++)
		if (strcmp(word, volume_commands[i].word) == 0)
			return volume_commands[i].run(k, args, out, size);
	return -ENOSYS;
}

/* Options that were changed while it runs. Any thread: what the data path reads is atomic. */
static int cached_changed(struct peer *p, const struct opt *o, struct xseg_error *err)
{
	struct cached *k = cached_of(p);
	const char *key;
	int rc;

	(void)o;
	rc = cached_fit(p, &key, err);
	if (!rc)
		rc = resize_ask(k, err);
	if (rc)
		return rc;
	options_hold(k);
	full_ask(k);
	policy_note(k,
		(uint32_t)(atomic_load_explicit(&life_of(k)->head->policy, memory_order_relaxed) >>
			   32) -
			1);
	atomic_store(
		&admin_of(k)->gauges_ns, 0); /* whoever dies now leaves the policy that holds */
	policy_switch(k, &policies[options_of(k)->policy_nr]);
	streams_set(streams_of(k), options_of(k)->seq_cutoff, (uint32_t)options_of(k)->read_ahead);
	for (uint32_t i = 0; i < p->nr_ports; i++)
		peer_port_kick(&p->ports[i]);
	return 0;
}

static bool cached_quiesced(struct peer *p, uint64_t *left_bytes)
{
	struct cached *k = cached_of(p);
	/* before what is dirty is counted: what fails makes more of it */
	bool at_rest = children_out(k) == 0 && !flush_of(k)->sync.own_sync.out && !sync_walks(k) &&
		       cached_total(k, CC_UNPROMISED_BYTES) == 0 && !unpromised_walks(k);

	*left_bytes = cached_total(k, CC_DIRTY_BYTES);
	/* what is on loan would go to others with its extents: who reads it has to let go first,
	 * and nobody lends himself more */
	direct_end(k);
	return at_rest && *left_bytes == 0 && (cached_is_off(k) || own_sync_covers(k)) &&
	       loans_out(k) == 0;
}

static uint64_t cached_dirty_bytes(struct peer *p)
{
	return cached_total(cached_of(p), CC_DIRTY_BYTES);
}

/* With the arena goes what the gauges have counted. */
static enum xseg_close cached_close_how(struct peer *p, bool clean)
{
	struct cached *k = cached_of(p);

	/* one that is not clean has never served */
	clean = clean || life_of(k)->made_arena;
	for (uint32_t i = 0; clean && i < p->nr_ports; i++)
		zero_gauges(cport_at(k, i)->stats);
	return clean ? XSEG_CLOSE_FREE_ARENA : XSEG_CLOSE_KEEP_ARENA;
}

const struct peer_class cached_class = {
	.kind = "cached",
	.summary = "the cache: keeps objects in RAM, in buckets of 4 KiB",
	.opts = cached_opts,
	.size = sizeof(struct cached),
	.sends = true,
	.keeps = true,
	.nr_requests = cached_nr_requests,
	.memory_bytes = cached_memory_bytes,
	.fit = cached_fit,
	.init = cached_init,
	.adopted = cached_adopted,
	.recover = cached_recover,
	.recovered = cached_recovered,
	.prefetch = batch_prefetch,
	.requests = batch_requests,
	.reply = cached_reply,
	.poll = cached_poll,
	.admin = cached_admin,
	.changed = cached_changed,
	.quiesced = cached_quiesced,
	.dirty_bytes = cached_dirty_bytes,
	.close_how = cached_close_how,
	.fini = cached_fini,
};
