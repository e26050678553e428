/* xhash_test - the table: capacity, equal hashes, backward shift across the end of the table, churn
 * against a plain array (seed printed), readers beside a remover that shifts their entries. */
#include "xtypes/xhash.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

static void table_init(struct xhash *h, uint32_t capacity)
{
	void *mem = malloc(xhash_mem_bytes(capacity));

	assert_non_null(mem);
	xhash_init(h, mem, capacity);
}

static void table_fini(struct xhash *h)
{
	xhash_check(h);
	free((void *)h->slots);
}

static bool idx_is(void *arg, uint32_t idx)
{
	return *(uint32_t *)arg == idx;
}

static bool has(const struct xhash *h, uint64_t hash, uint32_t idx)
{
	return xhash_find(h, hash, idx_is, &idx) == idx;
}

/* The nth hash, from 0, whose home is this slot. */
static uint64_t hash_with_home(const struct xhash *h, uint32_t home, uint32_t nth)
{
	uint64_t hash;

	for (hash = 1;; hash++)
		if (xhash_home(h, xhash_tag(hash)) == home && nth-- == 0)
			return hash;
}

static void the_table_is_at_most_half_full(void **state)
{
	(void)state;
	assert_int_equal(xhash_mem_bytes(1), 2 * 8);
	assert_int_equal(xhash_mem_bytes(4), 8 * 8);
	assert_int_equal(xhash_mem_bytes(5), 16 * 8);
	assert_true(xhash_mem_bytes(XHASH_CAPACITY_MAX) == UINT64_C(8) << 32);
}

static void what_is_inserted_is_found_until_it_is_removed(void **state)
{
	struct xhash h;

	(void)state;
	table_init(&h, 4);
	assert_false(has(&h, 77, 3));
	assert_int_equal(xhash_insert(&h, 77, 3), 0);
	assert_true(has(&h, 77, 3));
	assert_int_equal(xhash_peek(&h, 77), 3);
	assert_int_equal(xhash_nr(&h), 1);
	assert_true(xhash_remove(&h, 77, 3));
	assert_false(xhash_remove(&h, 77, 3));
	assert_false(has(&h, 77, 3));
	assert_true(xhash_peek(&h, 77) == XHASH_NONE);
	assert_int_equal(xhash_nr(&h), 0);
	table_fini(&h);
}

static void a_full_table_refuses_one_more(void **state)
{
	struct xhash h;
	uint32_t i;

	(void)state;
	table_init(&h, 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(xhash_insert(&h, i, i), 0);
	assert_int_equal(xhash_insert(&h, 9, 9), -ENOSPC);
	assert_true(xhash_remove(&h, 1, 1));
	assert_int_equal(xhash_insert(&h, 9, 9), 0);
	assert_true(has(&h, 9, 9) && has(&h, 0, 0) && has(&h, 2, 2) && !has(&h, 1, 1));
	table_fini(&h);
}

static void a_table_of_one_works(void **state)
{
	struct xhash h;
	uint64_t hash;

	(void)state;
	table_init(&h, 1);
	for (hash = 0; hash < 50; hash++) {
		assert_int_equal(xhash_insert(&h, hash, 0), 0);
		assert_int_equal(xhash_insert(&h, hash, 1), -ENOSPC);
		assert_true(has(&h, hash, 0));
		assert_true(xhash_remove(&h, hash, 0));
	}
	table_fini(&h);
}

static void equal_hashes_are_told_apart_by_eq(void **state)
{
	struct xhash h;
	uint32_t i;

	(void)state;
	table_init(&h, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(xhash_insert(&h, 5, i), 0);
	assert_true(xhash_remove(&h, 5, 1));
	for (i = 0; i < 4; i++)
		assert_true(has(&h, 5, i) == (i != 1));
	table_fini(&h);
}

static void the_largest_index_is_stored(void **state)
{
	struct xhash h;

	(void)state;
	table_init(&h, 2);
	assert_int_equal(xhash_insert(&h, UINT64_MAX, XHASH_NONE - 1), 0);
	assert_int_equal(xhash_insert(&h, 0, 0), 0);
	assert_true(has(&h, UINT64_MAX, XHASH_NONE - 1));
	assert_true(has(&h, 0, 0));
	table_fini(&h);
}

static void removal_shifts_a_run_back_across_the_end_of_the_table(void **state)
{
	struct xhash h;
	uint64_t hash[4];
	uint32_t i;

	(void)state;
	table_init(&h, 4);				/* 8 slots */
	hash[0] = hash_with_home(&h, 7, 0);		/* to slot 7 */
	hash[1] = hash_with_home(&h, 7, 1);		/* to slot 0 */
	hash[2] = hash_with_home(&h, 0, 0);		/* to slot 1 */
	hash[3] = hash_with_home(&h, 2, 0);		/* to slot 2, its home */
	for (i = 0; i < 4; i++)
		assert_int_equal(xhash_insert(&h, hash[i], i), 0);
	assert_true(xhash_remove(&h, hash[0], 0));
	xhash_check(&h);
	for (i = 1; i < 4; i++)
		assert_true(has(&h, hash[i], i));
	assert_true(atomic_load(&h.slots[1]) == 0);	/* 1 to 7, 2 to 0, 3 stays */
	assert_true(atomic_load(&h.slots[2]) != 0);
	table_fini(&h);
}

#define CHURN_NR 64u

static void churn_agrees_with_an_array(void **state)
{
	unsigned seed = 7;
	struct xhash h;
	bool in[CHURN_NR] = { false };
	uint32_t i, k;

	(void)state;
	print_message("seed %u\n", seed);
	table_init(&h, CHURN_NR);
	for (i = 0; i < 100000; i++) {
		k = (uint32_t)(rand_r(&seed) >> 5) % CHURN_NR;
		if (in[k])
			assert_true(xhash_remove(&h, k / 3, k));	/* three share a hash */
		else
			assert_int_equal(xhash_insert(&h, k / 3, k), 0);
		in[k] = !in[k];
		if (i % 97)
			continue;
		xhash_check(&h);
		for (k = 0; k < CHURN_NR; k++)
			assert_true(has(&h, k / 3, k) == in[k]);
	}
	table_fini(&h);
}

/* Readers look for entries that are always in. The writer takes the first of them out of the run,
 * which shifts all the others, after it put it in a second time at the end (only tests may
 * do that). */
#define RUN_NR 8u
#ifdef __SANITIZE_THREAD__
#define ROUNDS 100000u
#else
#define ROUNDS 1000000u
#endif

struct shift_test {
	struct xhash h;
	uint64_t hash;
	_Atomic bool stop;
	_Atomic uint64_t missed;
};

static void *shift_read(void *arg)
{
	struct shift_test *t = arg;
	uint32_t i = 0;

	while (!atomic_load(&t->stop)) {
		if (!has(&t->h, t->hash, i++ % RUN_NR))
			atomic_fetch_add(&t->missed, 1);
	}
	return NULL;
}

static void a_reader_never_misses_an_entry_that_is_being_shifted(void **state)
{
	struct shift_test t = { .hash = 12345 };
	pthread_t readers[2];
	uint32_t i;

	(void)state;
	table_init(&t.h, RUN_NR + 1);
	for (i = 0; i < RUN_NR; i++)
		assert_int_equal(xhash_insert(&t.h, t.hash, i), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, shift_read, &t), 0);
	for (i = 0; i < ROUNDS; i++) {
		assert_int_equal(xhash_insert(&t.h, t.hash, i % RUN_NR), 0);
		assert_true(xhash_remove(&t.h, t.hash, i % RUN_NR));
	}
	atomic_store(&t.stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	assert_int_equal(atomic_load(&t.missed), 0);
	table_fini(&t.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_at_most_half_full),
		cmocka_unit_test(what_is_inserted_is_found_until_it_is_removed),
		cmocka_unit_test(a_full_table_refuses_one_more),
		cmocka_unit_test(a_table_of_one_works),
		cmocka_unit_test(equal_hashes_are_told_apart_by_eq),
		cmocka_unit_test(the_largest_index_is_stored),
		cmocka_unit_test(removal_shifts_a_run_back_across_the_end_of_the_table),
		cmocka_unit_test(churn_agrees_with_an_array),
		cmocka_unit_test(a_reader_never_misses_an_entry_that_is_being_shifted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
