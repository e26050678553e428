/* alog_pass_test - passes over all zones of a log; evictions of a log that has one zone only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/rig/alog_rules.h"

static void end_pass(void)
{
	for (uint32_t i = 0; alog_pass_goes_on(rig->log); i++) {
		assert_in_range(i, 0, 100);
		ar_settle(rig);
	}
}

static void pass_over(void)
{
	assert_true(alog_pass_begin(rig->log));
	end_pass();
}

static void end_backup(void)
{
	for (uint32_t i = 0; i < 100 && !rig->backup.over; i++) {
		alog_walk_go(rig->log);
		ar_settle(rig);
	}
	assert_int_equal(rig->backup.over, 1);
}

static void delete_many(uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		ar_put_now(rig, i, 0, true);
}

static uint32_t known(uint32_t nr)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < nr; i++)
		n += rig->index[i].type != ALOG_NOTHING;
	return n;
}

static void all_live_records_are_in_new_zones(void **state)
{
	uint64_t last;

	(void)state;
	begin();
	put_many(40, 900);
	last = rig->index[39].zone;
	pass_over();
	for (uint32_t i = 0; i < 40; i++)
		assert_true(rig->index[i].zone > last);
	ar_force_now(rig);
	ar_check_values(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	ar_check_values(rig);
}

static void tombstones_go_with_the_records_of_older_zones(void **state)
{
	(void)state;
	begin();
	put_many(20, 3000);
	delete_many(10);
	assert_true(rig->index[0].zone > 1);
	pass_over();
	assert_in_range(known(10), 0, 4);	/* some stand in one zone with their values */
	assert_int_equal(known(20) - known(10), 10);
	pass_over();
	assert_int_equal(known(10), 0);
	ar_check_values(rig);
}

static void tombstones_beside_their_records_go_with_the_next_pass(void **state)
{
	(void)state;
	begin();
	put_many(10, 100);
	delete_many(10);
	pass_over();
	assert_int_equal(known(10), 10);
	pass_over();
	assert_int_equal(known(10), 0);
	assert_in_range(stats().zones, 0, 2);	/* one may wait for its deletion */
}

static void a_log_that_is_empty_has_nothing_to_pass_over(void **state)
{
	(void)state;
	begin();
	assert_false(alog_pass_begin(rig->log));
	assert_false(alog_pass_goes_on(rig->log));
}

/* A kill forgets it; what it has begun is what any compaction is. */
static void a_kill_forgets_it(void **state)
{
	(void)state;
	begin();
	put_many(30, 3000);
	assert_true(alog_pass_begin(rig->log));
	assert_true(alog_pass_goes_on(rig->log));
	for (uint32_t i = 0; i < 10; i++) {
		ar_poll(rig);
		ar_step(rig);
	}
	ar_kill(rig);
	assert_true(ar_open(rig));
	assert_false(alog_pass_goes_on(rig->log));
	ar_check_values(rig);
}

static void a_full_log_ends_it(void **state)
{
	(void)state;
	begin();
	put_many(8, 6000);
	assert_true(alog_pass_begin(rig->log));
	fill_log();				/* it is paid for by nobody meanwhile */
	for (uint32_t i = 0; i < 20 && alog_pass_goes_on(rig->log); i++)
		ar_settle(rig);
	assert_false(alog_pass_goes_on(rig->log));
	assert_false(alog_pass_begin(rig->log));
	ar_check_values(rig);
}

static void a_backup_ends_it_and_has_none_beside_it(void **state)
{
	(void)state;
	begin();
	put_many(30, 900);
	ar_settle(rig);
	assert_true(ar_backup(rig, 3));
	assert_false(alog_pass_begin(rig->log));
	end_backup();
	assert_true(alog_pass_begin(rig->log));
	assert_true(alog_pass_goes_on(rig->log));
	ar_poll(rig);
	assert_true(ar_backup(rig, 3));
	assert_false(alog_pass_goes_on(rig->log));
	end_backup();
	ar_check_values(rig);
}

static uint32_t told, over;

static void record_is_told(void *ctx, uint64_t zone, const struct alog_hint *hint,
	const struct xrecord *rec, const void *data)
{
	(void)ctx;
	(void)zone;
	(void)hint;
	(void)rec;
	told += data != NULL;
}

static void walk_is_over(void *ctx)
{
	(void)ctx;
	over++;
}

/* It holds no zone, so a record that is copied meanwhile may be told or not. */
static void a_verify_is_done_beside_it(void **state)
{
	const struct alog_walk walk = { .record = record_is_told, .over = walk_is_over };

	(void)state;
	told = over = 0;
	begin_sized(16, 8);
	put_many(30, 6500);
	ar_force_now(rig);
	assert_true(alog_pass_begin(rig->log));
	assert_true(alog_pass_goes_on(rig->log));
	ar_poll(rig);
	assert_int_equal(alog_walk(rig->log, &walk), 0);
	ar_settle(rig);
	assert_int_equal(over, 1);
	assert_true(told > 0);
	end_pass();
	ar_check_values(rig);
}

/* All that there is stands in the open zone. */
static void an_eviction_closes_the_only_zone(void **state)
{
	uint64_t zone;

	(void)state;
	begin_evicting(12);
	assert_false(alog_evict(rig->log));
	put_many(4, 100);
	zone = rig->index[0].zone;
	for (uint32_t i = 0; i < 5 && rig->index[0].zone == zone; i++) {
		assert_true(alog_evict(rig->log));
		ar_settle(rig);
	}
	assert_int_not_equal(rig->index[0].zone, zone);
	ar_check_values(rig);
	assert_false(alog_pass_begin(rig->log));	/* it would evict all */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(all_live_records_are_in_new_zones),
		RULE(tombstones_go_with_the_records_of_older_zones),
		RULE(tombstones_beside_their_records_go_with_the_next_pass),
		RULE(a_log_that_is_empty_has_nothing_to_pass_over),
		RULE(a_kill_forgets_it),
		RULE(a_full_log_ends_it),
		RULE(a_backup_ends_it_and_has_none_beside_it),
		RULE(a_verify_is_done_beside_it),
		RULE(an_eviction_closes_the_only_zone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
