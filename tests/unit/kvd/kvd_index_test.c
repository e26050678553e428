/* kvd_index_test - the index of kvd against a plain model, its memory, and its order. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peers/kvd/table/index.h"
#include "tests/rig/xorshift.h"

#define KEYS 500u
#define ALL  1500u

static uint64_t random_state;

static uint64_t rnd(void)
{
	return xorshift_next(&random_state);
}

struct model {
	uint64_t id[2];
	struct index_entry e;
	uint64_t sequence;
	bool there;
};
static struct model model[ALL];

static bool same(const struct index_entry *a, const struct index_entry *b)
{
	return a->zone == b->zone && a->place == b->place && a->bytes == b->bytes &&
	       a->count == b->count && a->type == b->type && a->expires == b->expires &&
	       a->hit == b->hit && a->bad == b->bad;
}

/* Identities crowd at both ends and in the middle, and some differ in their last bits only. */
static void make_identities(void)
{
	for (uint32_t i = 0; i < ALL; i++) {
		model[i] = (struct model){ .id = { rnd(), rnd() & 0xffff } };
		if (i % 5 == 1)
			model[i].id[0] >>= 50;
		if (i % 5 == 2)
			model[i].id[0] |= 0xfffffffffffff000ull;
		if (i % 5 == 3) {
			model[i].id[0] = model[i - 1].id[0];
			model[i].id[1] = (uint16_t)(model[i - 1].id[1] + 1);
		}
	}
}

static struct index_entry random_entry(uint64_t *zone)
{
	*zone += rnd() % 3;
	return (struct index_entry){ .zone = *zone - (*zone > 2000 ? rnd() % 2000 : 0),
		.place = (uint32_t)(rnd() % (1u << 19)) * 8,
		.bytes = (uint32_t)(rnd() % (1u << 19)) * 8,
		.count = (uint32_t)(rnd() % (INDEX_COUNT_MAX + 1ull)), .type = rnd() % 3,
		.expires = rnd() & 1, .hit = rnd() & 1,
		.bad = rnd() & 1 };
}

static void check_all(const struct index *ix)
{
	uint64_t keys = 0, tombstones = 0, bytes = 0, used = 0, slot, before[2] = { 0 }, id[2];
	struct index_entry e;

	for (uint32_t i = 0; i < ALL; i++) {
		slot = index_find(ix, model[i].id);
		assert_int_equal(slot != INDEX_NONE, model[i].there);
		if (!model[i].there)
			continue;
		index_get(ix, slot, &e);
		assert_true(same(&e, &model[i].e));
		if (ix->sequence)
			assert_int_equal(ix->sequence[slot], model[i].sequence);
		used++;
		keys += e.type == INDEX_VALUE;
		bytes += e.type == INDEX_VALUE ? e.bytes : 0;
		tombstones += e.type == INDEX_TOMBSTONE;
	}
	assert_int_equal(ix->used, used);
	assert_int_equal(ix->keys, keys);
	assert_int_equal(ix->tombstones, tombstones);
	assert_int_equal(ix->live_bytes, bytes);
	for (slot = index_from(ix, 0); slot != INDEX_NONE; slot = index_next(ix, slot), used--) {
		index_identity(ix, slot, id);
		assert_true(before[0] < id[0] || (before[0] == id[0] && before[1] <= id[1]));
		memcpy(before, id, sizeof(id));
	}
	assert_int_equal(used, 0);
}

static void change_one(struct index *ix, uint64_t *zone)
{
	struct model *m = &model[rnd() % ALL];
	uint64_t slot = index_find(ix, m->id);
	bool full = ix->used == KEYS;

	if (slot == INDEX_NONE) {
		m->e = random_entry(zone);
		slot = index_insert(ix, m->id, &m->e);
		assert_int_equal(slot == INDEX_NONE, full);
		m->there = slot != INDEX_NONE;
		m->sequence = rnd();
		if (m->there && ix->sequence)
			ix->sequence[slot] = m->sequence;
	} else if (rnd() % 2) {
		index_remove(ix, slot);
		m->there = false;
	} else {
		m->e = random_entry(zone);
		index_set(ix, slot, &m->e);
	}
}

static void the_index_is_that_of_a_plain_model(void **state)
{
	uint64_t seed = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 10) : 0;
	uint32_t rounds = seed ? 1 : 20;
	struct index ix;

	(void)state;
	for (uint32_t r = 0; r < rounds; r++) {
		uint64_t zone = r % 2 ? (1ull << 24) - 700 : 5;

		random_state = (seed ? seed : r + 1) * 0x9e3779b97f4a7c15ull;
		print_message("seed %" PRIu64 "\n", seed ? seed : r + 1);
		make_identities();
		assert_int_equal(index_open(&ix, KEYS), 0);
		assert_int_equal(index_begin(&ix), 0);
		for (uint32_t i = 0; i < 6000; i++) {
			change_one(&ix, &zone);
			if (i % 500 == 0)
				check_all(&ix);
			if (i == 3000)
				index_begun(&ix);
		}
		check_all(&ix);
		assert_int_equal(index_begin(&ix), 0);
		assert_int_equal(index_from(&ix, 0), INDEX_NONE);
		index_close(&ix);
	}
}

static void a_key_costs_25_bytes(void **state)
{
	uint64_t keys = 10000000;

	(void)state;
	assert_true(index_bytes(keys) <= keys * 25 + 100000);
	assert_true(index_bytes(keys) <= 240ull << 20);
	assert_true(index_opening_bytes(keys) <= keys * 10);
}

/* 10 M keys would be too slow for a test; the load is the same. */
static void a_full_index_is_still_fast(void **state)
{
	uint64_t keys = 300000, id[2], n = 0, slot;
	struct index_entry e = { .zone = 1, .bytes = 64, .type = INDEX_VALUE, .count = 1 };
	struct index ix;

	(void)state;
	random_state = 99;
	assert_int_equal(index_open(&ix, keys), 0);
	for (uint64_t i = 0; i < keys; i++) {
		id[0] = rnd();
		id[1] = i;
		assert_int_not_equal(index_insert(&ix, id, &e), INDEX_NONE);
	}
	assert_int_equal(index_room(&ix), 0);
	id[0]++;
	assert_int_equal(index_insert(&ix, id, &e), INDEX_NONE);
	for (slot = index_from(&ix, 0); slot != INDEX_NONE; slot = index_next(&ix, slot))
		n++;
	assert_int_equal(n, keys);
	index_close(&ix);
}

/* X5. Never sooner than it may be, and at last all of it. */
static void what_is_owed_takes_room_until_it_is_paid(void **state)
{
	struct index ix;

	(void)state;
	assert_int_equal(index_open(&ix, 10), 0);
	index_owe(&ix, 3);
	index_owe(&ix, 3);
	index_paid(&ix, 2);
	assert_int_equal(index_room(&ix), 8);
	index_owe(&ix, 5);
	index_paid(&ix, 2);
	assert_int_equal(index_room(&ix), 7);
	index_paid(&ix, 4);			/* those of 3 may be paid with that of 5 */
	assert_in_range(index_room(&ix), 7, 9);
	for (uint32_t i = 0; i < 12; i++)
		index_owe(&ix, 6);
	assert_int_equal(index_room(&ix), 0);
	index_paid(&ix, 5);
	assert_int_equal(index_room(&ix), 0);
	index_paid(&ix, 6);
	assert_int_equal(index_room(&ix), 10);
	index_close(&ix);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_index_is_that_of_a_plain_model),
		cmocka_unit_test(a_key_costs_25_bytes),
		cmocka_unit_test(a_full_index_is_still_fast),
		cmocka_unit_test(what_is_owed_takes_room_until_it_is_paid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
