/* alog_rig - see alog_rig.h: the index, the oracle, and life. The store is in alog_rig_store.c. */
#include "tests/rig/alog_rig.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rig/alog_rig_inside.h"
#include "tests/rig/xorshift.h"
#include "xtypes/xcrc.h"

uint32_t ar_random(struct ar *a, uint32_t below)
{
	uint64_t next = xorshift_next(&a->random);

	return below ? (uint32_t)(next >> 16) % below : 0;
}

void ar_fail(const struct ar *a, const char *what, uint64_t n)
{
	fprintf(stderr, "ERROR: seed %" PRIu64 ": %s (%" PRIu64 ")\n", a->seed, what, n);
	abort();
}

void ar_may_die(struct ar *a)
{
	if (a->kill_in && --a->kill_in == 0)
		longjmp(a->killed, 1);
}

/* ---- values ---- */

static void make_value(uint32_t key, uint32_t value, uint8_t *to, uint32_t bytes)
{
	uint64_t x = ((uint64_t)key << 32 | value) * 0x9e3779b97f4a7c15ull + 1;

	for (uint32_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)xorshift_next(&x);
}

static uint32_t key_of(const uint64_t identity[2])
{
	return (uint32_t)identity[0] - 1000;
}

/* ---- the index ---- */

static void clear_index(struct ar *a)
{
	memset(a->index, 0, sizeof(a->index));
}

static void found(void *ctx, uint64_t zone, const struct alog_hint *hint)
{
	struct ar *a = ctx;
	uint32_t k = key_of(hint->identity);
	struct ar_entry *e;

	ar_may_die(a);
	if (k >= AR_KEYS)
		ar_fail(a, "a record of no key is found", hint->identity[0]);
	e = &a->index[k];
	e->count++;
	a->nr_found++;
	if (e->type != ALOG_NOTHING && (e->sequence > hint->sequence ||
		(e->sequence == hint->sequence && e->zone > zone))) {
		alog_dead(a->log, zone, hint->bytes);
		return;
	}
	if (e->type != ALOG_NOTHING)
		alog_dead(a->log, e->zone, e->bytes);
	e->zone = zone;
	e->sequence = hint->sequence;
	e->place = hint->place;
	e->bytes = hint->bytes;
	e->type = hint->type;
}

static bool is_at(const struct ar_entry *e, uint64_t zone, const struct alog_hint *hint)
{
	return e->type != ALOG_NOTHING && e->zone == zone && e->place == hint->place &&
	       e->sequence == hint->sequence;
}

static enum alog_verdict judge(
	void *ctx, uint64_t zone, const struct alog_hint *hint, bool keep)
{
	struct ar *a = ctx;
	struct ar_entry *e = &a->index[key_of(hint->identity)];

	ar_may_die(a);
	if (!is_at(e, zone, hint))
		return ALOG_DEAD;
	if (e->type == ALOG_TOMBSTONE && e->count == 1 && !keep) {
		e->type = ALOG_NOTHING;
		alog_dead(a->log, zone, hint->bytes);
		return ALOG_DEAD;
	}
	return hint->expiry ? ALOG_EXPIRED : ALOG_LIVE;
}

static void copied(void *ctx, uint64_t from_zone, const struct alog_hint *from, uint64_t to_zone,
	const struct alog_hint *to)
{
	struct ar *a = ctx;
	struct ar_entry *e = &a->index[key_of(from->identity)];

	ar_may_die(a);
	if (from->sequence != to->sequence)
		ar_fail(a, "a copy has another sequence", to->sequence);
	e->count++;
	a->nr_copied++;
	a->copied_bytes += to->bytes;
	if (!is_at(e, from_zone, from))
		return;
	e->zone = to_zone;
	e->place = to->place;
	e->bytes = to->bytes;
	e->type = to->type;
}

static void gone(void *ctx, uint64_t zone, const struct alog_hint *hint)
{
	struct ar *a = ctx;
	struct ar_entry *e = &a->index[key_of(hint->identity)];

	(void)zone;
	ar_may_die(a);
	if (!e->count)
		ar_fail(a, "more records go than were counted", key_of(hint->identity));
	e->count--;
	a->nr_gone++;
}

/* The version is undone; older ones may be there, or have been deleted for it. */
static void lose_version(struct ar *a, uint32_t k)
{
	struct ar_key *key = &a->key[k];

	for (uint32_t i = 0; i < key->nr; i++) {
		if (key->v[i].sequence != a->index[k].sequence)
			continue;
		if (key->v[i].promised)
			ar_fail(a, "a promised record is lost", k);
		key->nr = i;
	}
	key->damaged = true;
	a->index[k].type = ALOG_NOTHING;
	a->nr_lost++;
}

/* The rig's index drops it, and its oracle knows that older versions may show. */
static bool lost(void *ctx, uint64_t zone, struct alog_hint *hint)
{
	struct ar *a = ctx;

	(void)hint;
	ar_may_die(a);
	for (uint32_t k = 0; k < AR_KEYS; k++)
		if (a->index[k].type != ALOG_NOTHING && a->index[k].zone == zone)
			lose_version(a, k);
	return false;
}

static void damaged(void *ctx, enum alog_damage what, uint64_t zone, uint32_t place,
	uint32_t bytes)
{
	struct ar *a = ctx;

	(void)zone;
	(void)place;
	(void)bytes;
	ar_may_die(a);
	a->damages[what]++;
}

/* ---- puts ---- */

static void add_version(struct ar *a, uint32_t k, const struct alog_place *at, uint32_t value,
	uint32_t batch)
{
	struct ar_key *key = &a->key[k];

	if (key->nr == AR_VERSIONS) {		/* the newest promised one, and newer, can show */
		uint32_t from = 1;

		for (uint32_t i = 1; i < key->nr; i++)
			if (key->v[i].promised)
				from = i;
		memmove(key->v, key->v + from, (key->nr - from) * sizeof(key->v[0]));
		key->nr -= from;
	}
	key->v[key->nr++] = (struct ar_version){ .sequence = at->sequence, .end = at->end,
		.value = value, .batch = batch };
}

/* The oldest version that is not promised must stay known. */
static bool has_room(const struct ar_key *key)
{
	uint32_t promised = 0;

	for (uint32_t i = 0; i < key->nr; i++)
		if (key->v[i].promised)
			promised = i;
	return key->nr < AR_VERSIONS || promised > 0;
}

static void index_put(struct ar *a, uint32_t k, const struct alog_place *at, bool delete)
{
	struct ar_entry *e = &a->index[k];

	if (e->type != ALOG_NOTHING)
		alog_dead(a->log, e->zone, e->bytes);
	e->zone = at->zone;
	e->sequence = at->sequence;
	e->place = at->place;
	e->bytes = at->bytes;
	e->type = delete ? ALOG_TOMBSTONE : ALOG_VALUE;
	e->count++;
}

/* One change of a key at a time. */
static bool may_change(const struct ar *a, uint32_t key)
{
	for (uint32_t i = 0; i < AR_LENT; i++)
		if (a->lent[i].end && a->lent[i].key == key)
			return false;
	return has_room(&a->key[key]);
}

int ar_put(struct ar *a, uint32_t key, uint32_t value_bytes, bool delete)
{
	static uint8_t data[1 << 20];
	struct alog_put put = { .rec = { .identity = { 1000 + key, 7 }, .key_bytes = 4,
		.value_bytes = delete ? 0 : value_bytes, .expiry = a->expiry,
		.client = delete ? 0 : ++a->next_value,
		.type = delete ? ALOG_TOMBSTONE : ALOG_VALUE }, .key = &key, .value = data };
	struct alog_place at, next;
	int rc;

	if (!may_change(a, key))
		return -EAGAIN;
	make_value(key, put.rec.client, data, put.rec.value_bytes);
	put.rec.data_crc = xcrc32c(xcrc32c(0, &key, 4), data, put.rec.value_bytes);
	rc = alog_next(a->log, xrecord_bytes(4, put.rec.value_bytes), 1, delete, &next);
	if (rc)
		return rc;
	rc = alog_append(a->log, &put, 1, &at);
	if (rc || at.zone != next.zone || at.place != next.place || at.sequence != next.sequence ||
		at.end != next.end)
		ar_fail(a, "an append is not where it was said", at.zone);
	add_version(a, key, &at, put.rec.client, 0);
	index_put(a, key, &at, delete);
	return 0;
}

static uint8_t *client_page(struct ar *a, uint32_t slot)
{
	return a->client + (size_t)slot * AR_LENT_MAX * ALOG_PAGE;
}

static struct ar_lent *free_lent(struct ar *a)
{
	for (uint32_t i = 0; i < AR_LENT; i++)
		if (!a->lent[i].end)
			return &a->lent[i];
	return NULL;
}

int ar_put_paged(struct ar *a, uint32_t key, uint32_t value_bytes, bool lend)
{
	struct ar_lent *lent = free_lent(a);
	uint32_t slot = lent ? (uint32_t)(lent - a->lent) : 0, page[AR_LENT_MAX];
	struct alog_put put = { .rec = { .identity = { 1000 + key, 7 }, .key_bytes = 4,
		.value_bytes = value_bytes, .client = ++a->next_value, .type = ALOG_VALUE,
		.expiry = a->expiry }, .key = &key, .value = client_page(a, slot) };
	struct alog_place at, next;
	int rc;

	assert(value_bytes <= AR_LENT_MAX * ALOG_PAGE);
	if (!lent || !may_change(a, key))
		return -EAGAIN;
	make_value(key, put.rec.client, client_page(a, slot), value_bytes);
	put.rec.data_crc = xcrc32c(xcrc32c(0, &key, 4), put.value, value_bytes);
	for (uint32_t i = 0; i < AR_LENT_MAX; i++)
		page[i] = 2u << 20 | (slot * AR_LENT_MAX + i);
	rc = alog_next_paged(a->log, 4, value_bytes, &next);
	if (rc)
		return rc;
	rc = alog_append_paged(a->log, &put, lend ? page : NULL, &at);
	if (rc || at.zone != next.zone || at.place != next.place || at.sequence != next.sequence ||
		at.end != next.end || at.bytes != next.bytes)
		ar_fail(a, "an append is not where it was said", at.zone);
	add_version(a, key, &at, put.rec.client, 0);
	index_put(a, key, &at, false);
	if (lend) {
		*lent = (struct ar_lent){ .end = at.end, .key = key };
		a->key[key].v[a->key[key].nr - 1].pending = true;
	}
	return 0;
}

static void end_lent(struct ar *a, struct ar_lent *lent)
{
	memset(client_page(a, (uint32_t)(lent - a->lent)), 0xee, AR_LENT_MAX * ALOG_PAGE);
	lent->end = 0;
}

void ar_answer_lent(struct ar *a)
{
	for (uint32_t i = 0; i < AR_LENT; i++) {
		struct ar_lent *lent = &a->lent[i];
		struct ar_key *key = &a->key[lent->key];

		if (!lent->end || lent->end > alog_written(a->log))
			continue;
		for (uint32_t v = 0; v < key->nr; v++)
			key->v[v].pending = false;
		end_lent(a, lent);
	}
}

int ar_batch(struct ar *a, uint32_t first_key, uint32_t nr, uint32_t value_bytes)
{
	static uint8_t data[8][8192];
	struct alog_put put[8] = { 0 };
	struct alog_place at[8];
	uint32_t key[8];
	int rc;

	assert(nr <= 8 && value_bytes <= sizeof(data[0]));
	for (uint32_t i = 0; i < nr; i++) {
		key[i] = (first_key + i) % AR_KEYS;
		if (!may_change(a, key[i]))
			return -EAGAIN;
		put[i] = (struct alog_put){ .rec = { .identity = { 1000 + key[i], 7 },
			.key_bytes = 4, .value_bytes = value_bytes, .client = ++a->next_value,
			.type = ALOG_VALUE }, .key = &key[i], .value = data[i] };
		make_value(key[i], put[i].rec.client, data[i], value_bytes);
		put[i].rec.data_crc = xcrc32c(xcrc32c(0, &key[i], 4), data[i], value_bytes);
	}
	rc = alog_append(a->log, put, nr, at);
	if (rc)
		return rc;
	a->next_batch++;
	for (uint32_t i = 0; i < nr; i++) {
		add_version(a, key[i], &at[i], put[i].rec.client, a->next_batch);
		index_put(a, key[i], &at[i], false);
	}
	return 0;
}

void ar_put_now(struct ar *a, uint32_t key, uint32_t value_bytes, bool delete)
{
	for (int tries = 0; ar_put(a, key, value_bytes, delete); tries++) {
		if (tries > 10000)
			ar_fail(a, "a put never succeeds", key);
		alog_force(a->log, alog_end(a->log));
		ar_settle(a);
		ar_note_promises(a);
	}
}

void ar_force_now(struct ar *a)
{
	uint64_t end = alog_end(a->log);

	alog_force(a->log, end);
	ar_settle(a);
	if (alog_stable(a->log) < end)
		ar_fail(a, "a flush does not come to its end", end);
	ar_note_promises(a);
}

void ar_note_promises(struct ar *a)
{
	uint64_t stable = alog_stable(a->log);

	if (stable >= a->ghosts_until)
		a->nr_ghosts = 0;
	for (uint32_t k = 0; k < AR_KEYS; k++)
		for (uint32_t i = 0; i < a->key[k].nr; i++)
			a->key[k].v[i].promised |= a->key[k].v[i].end <= stable;
}

/* ---- the oracle ---- */

/* The version that the index has; -1: the key is not there. */
static int shown(const struct ar *a, uint32_t k)
{
	const struct ar_entry *e = &a->index[k];

	if (e->type == ALOG_NOTHING)
		return -1;
	for (uint32_t i = 0; i < a->key[k].nr; i++)
		if (a->key[k].v[i].sequence == e->sequence)
			return (int)i;
	ar_fail(a, "a version shows that was undone, or never was", k);
	return -1;
}

static bool is_deleted_since(const struct ar_key *key, int least)
{
	for (uint32_t i = (uint32_t)least; i < key->nr; i++)
		if (!key->v[i].value)
			return true;
	return false;
}

static int newest_promised(const struct ar_key *key)
{
	int newest = -1;

	for (uint32_t i = 0; i < key->nr; i++)
		if (key->v[i].promised)
			newest = (int)i;
	return newest;
}

static int newest_answered(const struct ar_key *key)
{
	return (int)key->nr - 1 - (key->nr && key->v[key->nr - 1].pending);
}

/* After an opening. `all`: nothing that was answered may be lost. */
static void check_shown(struct ar *a, bool all)
{
	for (uint32_t k = 0; k < AR_KEYS; k++) {
		struct ar_key *key = &a->key[k];
		int at = shown(a, k), least = all ? newest_answered(key) : newest_promised(key);

		if (key->damaged)
			continue;
		/* a deletion, and all older versions with it, may be gone */
		if (at < 0 && least >= 0 && !is_deleted_since(key, least))
			ar_fail(a, "a promised value is gone", k);
		if (at >= 0 && at < least)
			ar_fail(a, "an older version shows than was promised", k);
	}
}

static void check_batches(struct ar *a)
{
	for (uint32_t k = 0; k < AR_KEYS; k++) {
		int at = shown(a, k);
		uint32_t batch = at < 0 ? 0 : a->key[k].v[at].batch;

		if (!batch)
			continue;
		for (uint32_t j = 0; j < AR_KEYS; j++) {
			int other = shown(a, j);

			for (int i = 0; i < (int)a->key[j].nr; i++)
				if (a->key[j].v[i].batch == batch && !a->key[j].damaged &&
					other < i && !is_deleted_since(&a->key[j], i))
					ar_fail(a, "half of a batch shows", batch);
		}
	}
}

static void add_ghost(struct ar *a, uint32_t k, const struct ar_version *v)
{
	if (a->nr_ghosts == AR_GHOSTS)
		ar_fail(a, "too many ghosts for the rig", k);
	a->ghost[a->nr_ghosts++] = (struct ar_ghost){ .v = *v, .key = k };
}

/* A ghost that shows is a version like others. */
static void wake_ghosts(struct ar *a)
{
	for (uint32_t i = 0; i < a->nr_ghosts; i++) {
		struct ar_ghost *g = &a->ghost[i];
		struct ar_key *key = &a->key[g->key];
		uint32_t at = 0;

		if (a->index[g->key].sequence != g->v.sequence)
			continue;
		if (key->nr == AR_VERSIONS)	/* the oldest one makes room */
			memmove(&key->v[0], &key->v[1], --key->nr * sizeof(key->v[0]));
		while (at < key->nr && key->v[at].sequence < g->v.sequence)
			at++;
		memmove(&key->v[at + 1], &key->v[at], (key->nr - at) * sizeof(key->v[0]));
		key->v[at] = g->v;
		key->v[at].end = 1;
		key->nr++;
		*g = a->ghost[--a->nr_ghosts];
		i--;
	}
}

/* What does not show now must never show again. `stable`: what shows is on stable storage. */
static void strike(struct ar *a, bool stable)
{
	for (uint32_t k = 0; k < AR_KEYS; k++) {
		struct ar_key *key = &a->key[k];
		int at = shown(a, k), last = (int)key->nr - 1;

		if (last >= 0 && at < last && key->v[last].pending && !stable)
			add_ghost(a, k, &key->v[last]);
		if (at >= 0) {
			key->nr = (uint32_t)at + 1;
			key->v[at].promised |= stable;
		} else {
			/* the deletion that it was for, and what that hides, may still be there */
			while (key->nr && (key->damaged || key->v[key->nr - 1].value))
				key->nr--;
		}
		for (uint32_t i = 0; i < key->nr; i++) {
			key->v[i].pending = false;
			if (!key->v[i].promised && a->positions_gone)
				key->v[i].end = 1;	/* the first flush covers it */
		}
		key->damaged = false;
	}
}

void ar_check_values(struct ar *a)
{
	static uint8_t got[1 << 20], want[1 << 20];

	for (uint32_t k = 0; k < AR_KEYS; k++) {
		const struct ar_entry *e = &a->index[k];
		const struct ar_object *o;
		struct xrecord_header h;
		int at = shown(a, k);

		if (at < 0 || e->type == ALOG_TOMBSTONE ||
			(a->lossy && (!a->key[k].v[at].promised || ar_zone(a, e->zone)->bad)))
			continue;		/* a repair is to find it lost */
		if (!alog_read_tail(a->log, e->zone, e->place, e->bytes, got)) {
			o = ar_zone(a, e->zone);
			if (!o->now)
				ar_fail(a, "a live record's zone is not there", e->zone);
			memcpy(got, o->now + e->place, e->bytes);
		}
		memcpy(&h, got, sizeof(h));
		make_value(k, a->key[k].v[at].value, want, h.value_bytes % sizeof(want));
		if (h.client != a->key[k].v[at].value || h.sequence != e->sequence ||
			xrecord_bytes_at(e->place, h.key_bytes, h.value_bytes, h.flags) !=
				e->bytes ||
			memcmp(got + xrecord_data_at(e->place, h.key_bytes, h.flags) + h.key_bytes,
				want, h.value_bytes) != 0)
			ar_fail(a, "a value is not what was put", k);
	}
}

/* ---- life ---- */

static bool send_io(void *ctx, struct alog_io *io)
{
	struct ar *a = ctx;

	ar_may_die(a);
	if (a->refuse_send && ar_random(a, 3) == 0)
		return false;
	ar_arrive(a, io);
	return true;
}

static uint32_t page_of(void *ctx, const void *at)
{
	struct ar *a = ctx;
	const uint8_t *p = at;

	if (p >= a->arena && p < a->arena + a->cost.arena_bytes)
		return (uint32_t)((p - a->arena) / ALOG_PAGE);
	return 1u << 20 | (uint32_t)((p - a->scratch) / ALOG_PAGE);
}

static const void *at_page(void *ctx, uint32_t page)
{
	return ar_page_at(ctx, page);
}

struct ar *ar_create(uint64_t seed, const struct alog_config *cfg)
{
	struct ar *a = calloc(1, sizeof(*a));

	assert(a);
	a->seed = seed;
	a->random = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
	a->cfg = *cfg;
	a->now = 1;
	if (alog_cost(cfg, &a->cost))
		ar_fail(a, "the configuration cannot be", 0);
	a->arena = aligned_alloc(ALOG_PAGE, a->cost.arena_bytes);
	a->scratch = aligned_alloc(ALOG_PAGE, a->cost.scratch_bytes);
	a->client = aligned_alloc(ALOG_PAGE, (size_t)AR_LENT * AR_LENT_MAX * ALOG_PAGE);
	assert(a->arena && a->scratch && a->client);
	memset(a->arena, 0, a->cost.arena_bytes);
	a->user = (struct alog_user){ .ctx = a, .send = send_io, .page = page_of, .found = found,
		.judge = judge, .copied = copied, .gone = gone, .lost = lost, .damage = damaged,
		.at = at_page };
	return a;
}

void ar_destroy(struct ar *a)
{
	alog_destroy(a->log);
	ar_store_free(a);
	free(a->arena);
	free(a->scratch);
	free(a->client);
	free(a);
}

/* Behind `end` anything may stand after a kill: a record half copied. */
static void scribble_tail(struct ar *a)
{
	uint64_t end = alog_end(a->log);
	uint8_t *tail = a->arena + a->cost.arena_bytes -
		(uint64_t)a->cfg.tail_pages * ALOG_PAGE;
	uint8_t *page = tail + end / ALOG_PAGE % a->cfg.tail_pages * ALOG_PAGE;

	if (end % ALOG_PAGE)
		for (uint32_t i = end % ALOG_PAGE; i < ALOG_PAGE; i++)
			page[i] = (uint8_t)ar_random(a, 256);
}

void ar_kill(struct ar *a)
{
	if (a->log && alog_serves(a->log)) {
		ar_note_promises(a);
		scribble_tail(a);
	}
	a->kill_in = 0;
	ar_withdraw(a);
	for (uint32_t i = 0; i < AR_LENT; i++)	/* the client died, too */
		end_lent(a, &a->lent[i]);
	alog_destroy(a->log);
	a->log = NULL;
}

void ar_forget(struct ar *a)
{
	ar_kill(a);
	memset(a->arena, 0, a->cost.arena_bytes);
	a->cold = a->positions_gone = true;
}

void ar_cut(struct ar *a)
{
	ar_kill(a);
	memset(a->arena, 0, a->cost.arena_bytes);
	ar_store_cut(a);
	a->cold = a->cut = a->positions_gone = true;
}

static void open_until_it_serves(struct ar *a)
{
	for (int i = 0; !alog_serves(a->log); i++) {
		if (alog_failed(a->log))
			ar_fail(a, "the opening fails", (uint64_t)-alog_failed(a->log));
		if (i > 1000000)
			ar_fail(a, "the opening does not end", 0);
		ar_poll(a);
		ar_step(a);
		a->now += 1000000;
	}
}

bool ar_open(struct ar *a)
{
	if (setjmp(a->killed)) {
		ar_withdraw(a);
		alog_destroy(a->log);
		a->log = NULL;
		return false;
	}
	clear_index(a);
	a->log = alog_create(&a->cfg, &a->user, a->arena, a->scratch);
	assert(a->log);
	open_until_it_serves(a);
	wake_ghosts(a);
	check_shown(a, !a->cold && !a->lossy);
	check_batches(a);
	strike(a, a->cut);
	ar_check_values(a);
	if (a->cut) {
		a->lossy = false;
		a->nr_ghosts = 0;
	}
	a->ghosts_until = alog_end(a->log) + 1;
	a->cold = a->cut = a->positions_gone = false;
	return true;
}

bool ar_run(struct ar *a, void (*fn)(struct ar *a))
{
	if (setjmp(a->killed)) {
		ar_kill(a);
		return true;
	}
	fn(a);
	return false;
}
