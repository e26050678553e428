/* alog_repair_test - appends and the copies of a repair find room in the tail at last, however the
 * writes before them ended (T2 and T3 of tail.c). All that is random follows from a seed.
 *
 *      alog_repair_test [FIRST [LAST]]		these seeds; a failure prints its seed
 */
#include <stdlib.h>

#include "tests/rig/alog_rules.h"
#include "tests/rig/long.h"

static uint64_t first_seed = 1, last_seed;

static uint32_t at_most(uint32_t n, uint32_t most)
{
	return n < most ? n : most;
}

static int put_some(uint32_t key, bool paged)
{
	uint32_t max = rig->cost.record_max, pages = at_most(max / ALOG_PAGE, AR_LENT_MAX - 1);

	if (paged && pages > 2 && ar_random(rig, 2))
		return ar_put_paged(rig, key, 1 + ar_random(rig, (pages - 2) * ALOG_PAGE),
			ar_random(rig, 2));
	if (ar_random(rig, 3) == 0)
		return ar_put(rig, key, ar_random(rig, max / 4 * 3), false);
	return ar_put(rig, key, ar_random(rig, 600), false);
}

/* As full as callers may make it. */
static void fill_tail(bool paged)
{
	uint32_t key = ar_random(rig, AR_KEYS);

	for (uint32_t i = 0; i < 200 && put_some(key, paged) == 0; i++) {
		key = (key + 1) % AR_KEYS;
		if (ar_random(rig, 20) == 0)
			ar_poll(rig);
	}
}

static void fail_for_a_while(bool paged)
{
	rig->fail_write = 300 + ar_random(rig, 701);
	for (uint32_t rounds = ar_random(rig, 30); rounds; rounds--) {
		alog_push(rig->log, alog_end(rig->log));
		ar_poll(rig);
		for (uint32_t n = ar_random(rig, 40); n; n--)
			ar_step(rig);
		rig->now += 100000000;
		ar_note_promises(rig);
		if (ar_random(rig, 4) == 0)
			fill_tail(paged);
	}
	rig->fail_write = 0;
}

static void one_seed(uint64_t seed, bool kills)
{
	static const uint32_t tails[] = { 16, 20, 40, 64 };
	struct alog_config cfg = { .prefix = "log", .zones = 80,
		.zone_bytes = (4u << seed / 4 % 4) * ALOG_PAGE, .tail_pages = tails[seed % 4],
		.reserve = 3, .uuid = { 9, 8, 7 }, .owner = 5 };

	rig = ar_create(seed, &cfg);
	assert_true(ar_open(rig));
	for (uint32_t i = 0; i < 5; i++) {
		rig->stuck = true;
		fill_tail(!kills);
		rig->stuck = false;
		for (uint32_t n = 1 + ar_random(rig, 3); n; n--) {
			fail_for_a_while(!kills);
			if (!kills || ar_random(rig, 2))
				continue;
			ar_kill(rig);
			assert_true(ar_open(rig));
		}
		ar_force_now(rig);
		ar_check_values(rig);
	}
	ar_destroy(rig);
	rig = NULL;
}

static void a_full_tail_whose_writes_fail_is_written_at_last(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed <= last_seed; seed++)
		one_seed(seed, false);
}

static void so_it_is_when_processes_are_killed(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed <= last_seed; seed++)
		one_seed(seed, true);
}

/* Writes of zones fail for some hours, and heads can be written. */
static void a_store_that_fails_for_hours_uses_up_no_zones(void **state)
{
	static const uint32_t percent[] = { 100, 50, 10 };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		begin();
		rig->heads_are_good = true;
		rig->fail_write = 10 * percent[i];
		for (uint32_t n = 0; n < 20000; n++) {
			if (ar_random(rig, 4) == 0)
				(void)ar_put(rig, ar_random(rig, 20), ar_random(rig, 3000), false);
			if (n % 5000 == 4999) {
				ar_kill(rig);
				assert_true(ar_open(rig));
			}
			alog_push(rig->log, alog_end(rig->log));
			ar_poll(rig);
			for (uint32_t k = ar_random(rig, 8); k; k--)
				ar_step(rig);
			rig->now += 1000000000;
		}
		rig->fail_write = 0;
		ar_force_now(rig);
		assert_in_range(stats().zones, 1, rig->cfg.zones);
		ar_check_values(rig);
		ar_cut(rig);
		assert_true(ar_open(rig));
		end(NULL);
	}
	begin();
}

/* Answers some of what is out: each write, and half of the rest. */
static void answer_some(void)
{
	while (out_of(XSEG_OP_WRITE))
		answer(XSEG_OP_WRITE);
	for (uint32_t n = ar_random(rig, 3); n; n--)
		ar_step(rig);
}

static void put_up_to(uint32_t nr, uint32_t most)
{
	while (nr && ar_put(rig, ar_random(rig, AR_KEYS), ar_random(rig, most), false) == 0)
		nr--;
}

/* All that is written fails, and processes are killed while they copy. */
static void copies_that_fail_do_not_fill_the_ring(uint64_t seed)
{
	struct alog_config cfg = { .prefix = "log", .zones = 80,
		.zone_bytes = (4u << seed % 4) * ALOG_PAGE, .tail_pages = 16 + seed / 4 % 5 * 4,
		.reserve = 3, .uuid = { 9, 8, 7 }, .owner = 5 };
	uint32_t most;

	rig = ar_create(seed, &cfg);
	assert_true(ar_open(rig));
	rig->heads_are_good = true;
	most = 30 + ar_random(rig, 6000);
	rig->stuck = true;
	put_up_to(400, most);
	rig->stuck = false;
	for (uint32_t n = 0; n < 60; n++) {
		rig->fail_write = 1000;
		if (ar_random(rig, 3) == 0)
			put_up_to(10, most);
		alog_push(rig->log, alog_end(rig->log));
		ar_poll(rig);
		answer_some();
		rig->now += 20000000ull << ar_random(rig, 8);
		rig->fail_write = 0;
		if (ar_random(rig, 4))
			continue;
		ar_kill(rig);
		assert_true(ar_open(rig));
	}
	ar_force_now(rig);
	ar_check_values(rig);
	ar_destroy(rig);
	rig = NULL;
}

/* Each try of a repair would leave pages of copies in the ring, beside what is not copied yet. */
static void a_repair_writes_nothing_before_the_ring_is_copied(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed <= first_seed + 5 * (last_seed - first_seed); seed++)
		copies_that_fail_do_not_fill_the_ring(seed);
}

/* The last page has the end of one such record. The next one has room beside it. */
static void records_of_the_greatest_size_follow_each_other(void **state)
{
	(void)state;
	begin_sized(40, 64);
	for (uint32_t i = 0; i < 200; i++)
		ar_put_now(rig, i % 20, rig->cost.record_max - 80 - ar_random(rig, 3000), false);
	ar_check_values(rig);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_tail_whose_writes_fail_is_written_at_last),
		cmocka_unit_test(so_it_is_when_processes_are_killed),
		cmocka_unit_test(a_repair_writes_nothing_before_the_ring_is_copied),
		RULE(a_store_that_fails_for_hours_uses_up_no_zones),
		RULE(records_of_the_greatest_size_follow_each_other),
	};

	last_seed = in_short(2000, 40);
	if (argc > 1)
		first_seed = last_seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		last_seed = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
