/* life - kvd's memory, its id and prefix, the opening of the log, and stopping.
 *
 * The arena holds, one after the other: a page of its own words (struct kvd_arena), the handles of
 * large values (struct large_arena), the log's arena, which is its tail, the log's scratch, and the
 * pages of kvd's own reads. What counts for a successor are the first three.
 *
 * Contract: kvd's thread.
 *
 * Invariants
 *   L1  The id is made of the prefix, so it is the same for a log whenever and wherever it is
 *       opened: a cache below knows the log's data by it. No two kvds of a segment have one id, and
 *       so no two have one prefix (K13).
 *   L2  The secret of the hash is in both copies of the head before the first record is appended.
 *   L3  The arena is given back only when all that was appended is stable, and no client has a
 *       handle.
 *   L4  There is always a log. If there is no memory for another one, the old one stays: after a
 *       loss another is tried each second, and requests wait; a salvage fails and may be repeated.
 *   L5  A predecessor's changes go below in time, though nothing more is changed: what `sync`
 *       promises begins anew with the opening.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "peers/common/log/log.h"
#include "peers/common/runtime/own_memory.h"
#include "peers/kvd/kvd.h"
#include "xseg/arenas.h"
#include "xtypes/xkill.h"

#define ARENA_MAGIC XSEG_ARENA_MAGIC(0x4e455241445648, XSEG_FORMAT_KVD)	/* "HVDAREN2" */
#define WORDS_BYTES (XSEG_PAGE_SIZE + (uint32_t)sizeof(struct large_arena))
#define PERCENT	    100u
/* As many pages as a version had that knew no reads ahead, so it can be followed by this one. */
#define READ_PAGES  1316u
_Static_assert(READ_PAGES >= KVD_BIG_READS * KVD_BIG_PAGES + KVD_SMALL_READS * KVD_SMALL_PAGES +
		KVD_AHEAD_READS * KVD_AHEAD_PAGES, "the pages of kvd's own reads");

/* ---- what it needs ---- */

int kvd_cost(const struct kvd *k, struct alog_config *cfg, struct alog_cost *cost)
{
	uint32_t zones = (uint32_t)(k->opt.size_bytes / k->opt.zone_bytes);

	*cfg = (struct alog_config){ .zones = zones, .zone_bytes = (uint32_t)k->opt.zone_bytes,
		.tail_pages = (uint32_t)(k->opt.tail_bytes / XSEG_PAGE_SIZE),
		.reserve = (uint32_t)((uint64_t)zones * k->opt.reserve_percent / PERCENT) };
	if (cfg->reserve < 3)
		cfg->reserve = 3;
	if (zones > cfg->reserve)
		cfg->own = zones - cfg->reserve < KVD_OWN_MAX ? zones - cfg->reserve : KVD_OWN_MAX;
	cfg->evicts = k->opt.full == KVD_EVICT;
	/* of a struct that has nothing but options the name is not known */
	memcpy(cfg->prefix, k->opt.prefix[0] ? k->opt.prefix : k->peer.name, sizeof(cfg->prefix));
	if (!cfg->prefix[0])
		cfg->prefix[0] = '-';
	return alog_cost(cfg, cost);
}

static uint64_t arena_bytes(const struct alog_cost *cost)
{
	return WORDS_BYTES + cost->arena_bytes + cost->scratch_bytes +
	       (uint64_t)READ_PAGES * XSEG_PAGE_SIZE;
}

uint64_t kvd_arena_bytes(const struct kvd *k)
{
	struct alog_config cfg;
	struct alog_cost cost;

	return kvd_cost(k, &cfg, &cost) ? 0 : peer_whole_extents(arena_bytes(&cost));
}

static uint64_t keys_of(const struct kvd *k)
{
	return k->opt.keys_max ? k->opt.keys_max : k->opt.size_bytes / 1024;
}

static uint64_t change_bytes(void)
{
	return 4ull * XSEG_REQ_BYTES + KV_KEY_MAX +
	       KV_BATCH_MAX * (sizeof(struct kvd_work) + sizeof(struct alog_put) +
			       sizeof(struct alog_place) + KVD_JOBS * sizeof(struct kvd_fact));
}

uint64_t kvd_private_bytes(const struct kvd *k)
{
	struct alog_config cfg;
	struct alog_cost cost;

	return kvd_cost(k, &cfg, &cost) ? 0 : index_bytes(keys_of(k)) +
		index_opening_bytes(keys_of(k)) + 2 * cost.private_bytes + change_bytes() +
		large_bytes(cfg.own + 1);
}

/* ---- id and prefix ---- */

uint32_t kvd_id_of(const char *prefix)
{
	uint64_t hash = xseg_hash(prefix, strlen(prefix));

	return (uint32_t)hash | KVD_ID_FROM;
}

/* What a stopped one left may be in its arena. */
static bool may_hold(const struct xseg_peer_info *info)
{
	return xseg_peer_is_up(info->state) || info->state == XSEG_PEER_DEAD || info->arena_bytes;
}

/* L1. Of two that begin together each sees the other, as each stores its id first. */
static int check_id(struct kvd *k, struct xseg_error *err)
{
	struct xseg_peer_info info;

	k->id = kvd_id_of(k->cfg.prefix);
	xseg_peer_user_set(k->peer.xp, KVD_WORD_ID, k->id);
	for (uint32_t i = 0; i < xseg_nr_peers(k->peer.seg); i++)
		if (i != xseg_peer_index(k->peer.xp) &&
			xseg_peer_get_info(k->peer.seg, i, &info) && !strcmp(info.kind, "kvd") &&
			(uint16_t)info.user[KVD_WORD_ID] == (uint16_t)k->id && may_hold(&info))
			return xseg_fail(err, -EBUSY,
				"'%s' has that prefix, or one with the same number; give this kvd "
				"another prefix=", info.name);
	return 0;
}

/* ---- memory ---- */

static bool is_of_this_geometry(const struct kvd *k, const struct kvd_arena *a)
{
	return a->zones == k->cfg.zones && a->zone_bytes == k->cfg.zone_bytes &&
	       a->tail_pages == k->cfg.tail_pages;
}

static int random_fill(void *to, size_t bytes, struct xseg_error *err)
{
	return getrandom(to, bytes, 0) == (ssize_t)bytes
		       ? 0 : xseg_fail(err, -EIO, "the system gives no random bytes: %s",
				       strerror(errno));
}

static int make_arena(struct kvd *k, struct xseg_error *err)
{
	struct kvd_arena *a = k->mem.arena;
	int rc = random_fill(&a->owner, sizeof(a->owner), err);

	if (rc)
		return rc;
	a->zones = k->cfg.zones;
	a->zone_bytes = k->cfg.zone_bytes;
	a->tail_pages = k->cfg.tail_pages;
	atomic_store_explicit(&a->is_new, 1, memory_order_relaxed);
	/* a successor that sees the magic sees the rest; the partner is the kernel, from which it
	 * learns of the death */
	atomic_thread_fence(memory_order_release);
	a->magic = ARENA_MAGIC;
	return 0;
}

/* It was left by a predecessor, and has no values. */
static bool is_empty(const struct kvd *k, const struct kvd_arena *a)
{
	return !a->magic || (a->magic == ARENA_MAGIC && !is_of_this_geometry(k, a) &&
		atomic_load_explicit(&a->is_new, memory_order_relaxed));
}

/* An empty one is made anew. */
static int open_arena(struct kvd *k, struct xseg_error *err)
{
	uint64_t want = arena_bytes(&k->cost);
	bool fresh;
	void *base;
	int rc;

	k->mem.base_bytes = want;
	rc = xseg_arena_open(k->peer.xp, &k->mem.base_bytes, &base, &fresh, err);
	if (!rc && !fresh && is_empty(k, base)) {
		rc = xseg_arena_free(k->peer.xp, err);
		k->mem.base_bytes = want;
		if (!rc)
			rc = xseg_arena_open(k->peer.xp, &k->mem.base_bytes, &base, &fresh, err);
	}
	if (rc)
		return rc;
	k->mem.base = base;
	k->mem.arena = base;
	if (!k->mem.arena->magic)
		return make_arena(k, err);
	if (k->mem.arena->magic != ARENA_MAGIC || !is_of_this_geometry(k, k->mem.arena) ||
		k->mem.base_bytes < want)
		return xseg_fail(err, -EINVAL,
			"it left values in the segment that are not in its log yet; start it with "
			"the size, tail, zone_size and reserve that it had, %u zones of %u bytes "
			"and a tail of %u pages, and stop it in order to change them",
			k->mem.arena->zones, k->mem.arena->zone_bytes, k->mem.arena->tail_pages);
	return 0;
}

static int find_extents(struct kvd *k, struct xseg_error *err)
{
	uint32_t nr = (uint32_t)(peer_whole_extents(k->mem.base_bytes) / XSEG_EXTENT_SIZE);

	k->mem.extent = calloc(nr, sizeof(*k->mem.extent));
	if (!k->mem.extent)
		return xseg_fail(err, -ENOMEM, "out of memory");
	return xseg_arena_pages(k->peer.xp, k->mem.extent, nr) == nr
		       ? 0 : xseg_fail(err, -EPROTO, "its arena is damaged; see 'xseg check'");
}

static void make_reads(struct kvd *k)
{
	uint8_t *at = k->mem.base + WORDS_BYTES + k->cost.arena_bytes + k->cost.scratch_bytes;

	for (uint32_t i = 0; i < KVD_NR_READS; i++) {
		struct kvd_read *rd = &k->reads.read[i], **list = kvd_read_list(k, rd);

		*rd = (struct kvd_read){ .pages = at, .next = *list,
			.nr_pages = i < KVD_BIG_READS			  ? KVD_BIG_PAGES
				    : i < KVD_BIG_READS + KVD_SMALL_READS ? KVD_SMALL_PAGES
									  : KVD_AHEAD_PAGES };
		*list = rd;
		at += rd->nr_pages * XSEG_PAGE_SIZE;
	}
}

static int make_lists(struct kvd *k)
{
	fifo_init(&k->q.held);
	fifo_init(&k->q.begun);
	fifo_init(&k->q.waiting);
	fifo_init(&k->q.behind);
	fifo_init(&k->q.no_job);
	fifo_init(&k->q.written);
	fifo_init(&k->q.stable);
	fifo_init(&k->q.barriers);
	fifo_init(&k->q.begins);
	fifo_init(&k->q.parts);
	fifo_init(&k->q.commits);
	k->large.look_ns = PEER_NEVER;
	k->jobs.wants_last = &k->jobs.wants_first;
	k->sync_at_ns = PEER_NEVER;
	k->context = calloc(xseg_nr_requests(k->peer.seg), sizeof(*k->context));
	k->now.batch = malloc(XSEG_REQ_BYTES);
	k->now.value = malloc(XSEG_REQ_BYTES);
	k->now.record = malloc(XSEG_REQ_BYTES);
	k->now.key = malloc(KV_KEY_MAX);
	k->verify.buf = malloc(KVD_VERIFY_BYTES);
	k->verify.sums = malloc(XSEG_REQ_BYTES);
	k->now.work = calloc(KV_BATCH_MAX, sizeof(*k->now.work));
	k->now.put = calloc(KV_BATCH_MAX, sizeof(*k->now.put));
	k->now.at = calloc(KV_BATCH_MAX, sizeof(*k->now.at));
	k->jobs.facts = calloc((size_t)KVD_JOBS * KV_BATCH_MAX, sizeof(*k->jobs.facts));
	if (!k->verify.buf || !k->verify.sums || !k->context || !k->now.batch || !k->now.value ||
		!k->now.record || !k->now.key || !k->now.work || !k->now.put || !k->now.at ||
		!k->jobs.facts)
		return -ENOMEM;
	for (uint32_t i = 0; i < KVD_JOBS; i++) {
		k->jobs.job[i].fact = k->jobs.facts + (size_t)i * KV_BATCH_MAX;
		k->jobs.job[i].next = k->jobs.free;
		k->jobs.free = &k->jobs.job[i];
	}
	return 0;
}

/* L4: both are there for a moment. */
bool kvd_make_log(struct kvd *k)
{
	struct alog_user user = kvd_log_user;
	uint8_t *at = k->mem.base + WORDS_BYTES;
	struct alog *log;

	user.ctx = k;
	log = alog_create(&k->cfg, &user, at, at + k->cost.arena_bytes);
	if (!log || index_begin(&k->index)) {
		alog_destroy(log);
		return false;
	}
	alog_destroy(k->log);
	k->log = log;
	k->large.unread = 0;
	kvd_clear_begin(k);
	return true;
}

static void name_log(struct kvd *k)
{
	k->target[0] = '+';
	k->target_len = (uint32_t)strlen(k->cfg.prefix) + 2;
	memcpy(k->target + 1, k->cfg.prefix, k->target_len - 2);
	k->target[k->target_len - 1] = ':';
}

/* Asked first: it takes all of its index at once, and the kernel kills a process that takes more
 * than there is. A second log is made only after a loss, which waits for memory (L4). */
static int check_memory(const struct kvd *k, struct xseg_error *err)
{
	char what[64];

	snprintf(what, sizeof(what), "a kvd of %llu keys", (unsigned long long)k->opt.keys_max);
	return own_memory_check(kvd_private_bytes(k) - k->cost.private_bytes, what,
		"give fewer keys=", err);
}

int kvd_life_init(struct kvd *k, struct xseg_error *err)
{
	int rc = kvd_cost(k, &k->cfg, &k->cost);

	if (rc)
		return xseg_fail(err, rc, "its size, zone_size or tail cannot be");
	k->pp = &k->peer.ports[0];
	k->opt.keys_max = keys_of(k);
	if (!k->paged.least)
		k->paged.least = ALOG_PAGED_LEAST;
	k->record_max = k->cost.record_max < XSEG_REQ_BYTES - XSEG_PAGE_SIZE
				? k->cost.record_max : XSEG_REQ_BYTES - XSEG_PAGE_SIZE;
	name_log(k);
	rc = check_id(k, err);
	if (!rc)
		rc = random_fill(k->cfg.uuid, sizeof(k->cfg.uuid), err);
	if (!rc)
		rc = random_fill(k->secret, sizeof(k->secret), err);
	if (!rc)
		rc = open_arena(k, err);
	if (!rc)
		rc = find_extents(k, err);
	if (rc)
		return rc;
	k->cfg.owner = k->mem.arena->owner;
	/* relaxed: its writer is dead. D1 of date.c */
	k->time.s = atomic_load_explicit(&k->mem.arena->time_s, memory_order_relaxed);
	make_reads(k);
	rc = check_memory(k, err);
	if (rc)
		return rc;
	if (make_lists(k) || kvd_large_open(k, k->mem.base + XSEG_PAGE_SIZE) ||
		index_open(&k->index, k->opt.keys_max) || !kvd_make_log(k))
		return xseg_fail(err, -ENOMEM, "no memory for an index of %llu keys, which takes "
			"%llu MiB; give fewer keys=", (unsigned long long)k->opt.keys_max,
			(unsigned long long)(kvd_private_bytes(k) >> 20));
	return kvd_stats_open(k) ? xseg_fail(err, -ENOSPC,
		"no place for its statistics: all places are taken") : 0;
}

void kvd_life_fini(struct kvd *k)
{
	alog_destroy(k->log);
	index_close(&k->index);
	large_close(&k->large.t);
	free(k->mem.extent);
	free(k->verify.buf);
	free(k->verify.sums);
	free(k->context);
	free(k->now.batch);
	free(k->now.value);
	free(k->now.record);
	free(k->now.key);
	free(k->now.work);
	free(k->now.put);
	free(k->now.at);
	free(k->jobs.facts);
	k->log = NULL;
	k->mem.base = NULL;
}

/* ---- opening ---- */

static void tell_open(struct kvd *k)
{
	struct alog_stats s;

	alog_stats(k->log, &s);
	k->opened_ns = k->pp->now_ns - k->began_ns;
	log_info("%s: its log is open: %llu keys, %u zones, %u of them by their hints",
		k->peer.name, (unsigned long long)k->index.keys, s.zones, s.opened_by_hints);
}

static void be_known(struct kvd *k)
{
	const struct kvd_words *w = alog_words(k->log);

	memcpy(k->secret, w->secret, sizeof(k->secret));
	kvd_date_begin(k);
	kvd_clear_known(k);
	index_begun(&k->index);
	k->state = KVD_KEEPING;
	kvd_keep_begin(k);
}

static void go_on_keeping(struct kvd *k)
{
	if (!kvd_keep_poll(k))
		return;
	k->state = KVD_OPEN;
	if (alog_stable(k->log) < alog_end(k->log))	/* L5 */
		kvd_want_below(k, alog_end(k->log));
	tell_open(k);
}

static void be_broken(struct kvd *k, int error)
{
	k->state = KVD_BROKEN;
	k->error = error;
	log_error("%s: " KVD_BROKEN_FORMAT, k->peer.name, k->cfg.prefix, kvd_why_broken(error));
}

/* L2 */
static void begin_naming(struct kvd *k)
{
	struct kvd_words *w = alog_words(k->log);

	/* before the first request: from now on there may be values */
	atomic_store_explicit(&k->mem.arena->is_new, 0, memory_order_relaxed);
	if (w->magic == KVD_WORDS || w->magic == KVD_WORDS_CLEARED) {
		be_known(k);
		return;
	}
	if (w->magic || k->index.used) {
		be_broken(k, -EPROTO);
		return;
	}
	memcpy(w->secret, k->secret, sizeof(w->secret));
	w->time_s = k->time.s;
	w->magic = KVD_WORDS;
	k->state = KVD_NAMING;
	k->naming = 0;
	alog_words_write(k->log);
}

static void go_on_naming(struct kvd *k)
{
	if (!alog_words_stable(k->log))
		return;
	XKILL(KVD_NAMED);
	if (++k->naming == 2)
		be_known(k);
	else
		alog_words_write(k->log);
}

/* Of all that is done and not answered. */
static void fail_answers(struct kvd *k, int error)
{
	struct kvd_fifo *q[] = { &k->q.written, &k->q.stable, &k->q.barriers, &k->q.commits };

	for (unsigned i = 0; i < 4; i++)
		while (q[i]->first) {
			if (q[i]->first->op == XSEG_OP_FLUSH)
				kvd_owed(k, q[i]->first);	/* that is told so */
			peer_answer(k->pp, fifo_pop(q[i]), error);
		}
}

/* The store has lost what it had answered. The log is opened anew, when nothing is out. */
static void reopen(struct kvd *k)
{
	if (k->state != KVD_OPENING)
		kvd_owe_all(k);
	fail_answers(k, -EIO);
	kvd_paged_leave(k);
	kvd_verify_fail(k, -EIO);
	kvd_backup_fail(k, -EIO);
	k->state = KVD_OPENING;
	if (k->log_out || k->reads.out || k->large.parts_out || k->pp->now_ns < k->mem.again_ns)
		return;
	large_forget_writers(&k->large.t);	/* their parts may be lost, too */
	if (!k->mem.again_ns)
		log_error("%s: the store has lost data that it had answered; the log is read anew",
			k->peer.name);
	k->began_ns = k->pp->now_ns;
	k->mem.again_ns = 0;
	if (kvd_make_log(k))
		return;
	log_error("%s: no memory to read the log anew; requests wait, and it is tried each second; "
		"free some, or start it with fewer keys=", k->peer.name);
	k->mem.again_ns = k->pp->now_ns + KVD_SECOND;
}

void kvd_life_poll(struct kvd *k)
{
	int failed = alog_failed(k->log);

	kvd_see_date(k);
	if (k->state >= KVD_BROKEN)
		return;
	if (failed == -EIO)
		reopen(k);
	else if (failed)
		be_broken(k, failed);
	else if (k->state == KVD_OPENING && k->error)
		be_broken(k, k->error);
	else if (k->state == KVD_OPENING && alog_serves(k->log))
		begin_naming(k);
	else if (k->state == KVD_NAMING)
		go_on_naming(k);
	if (k->state == KVD_KEEPING)
		go_on_keeping(k);
}
