/* cached_volume_test - cached's work for single volumes: their FLUSH (flush/ticket.c and
 * flush/flush.c), records and counters (volume.c, volume_text.c), policies (volume_set.c).
 */
#include "tests/rig/cached_rig.h"

static void dirty_bucket(uint32_t volume, const char *name)
{
	crig_volume(volume);
	crig_expect(crig_write(name, 0, B(1), volume), B(1));
}

static void a_flush_of_one_volume_writes_no_other_volume_s_data(void **state)
{
	(void)state;
	crig_up("");
	dirty_bucket(1, "a:1");
	dirty_bucket(2, "b:1");
	dirty_bucket(1, "a:2");
	crig_expect(crig_flush(1), 0);
	assert_true(crig_stable("a:1", 0, B(1), 1) && crig_stable("a:2", 0, B(1), 1));
	assert_int_equal(crig_state("b:1", 0), BUCKET_DIRTY);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 2);
}

/* More objects of volume 1 (a) than the store is sent at once, and four of volume 2 (b) after them;
 * the store holds. Returns how many it is sent at once. */
static uint32_t up_with_two_volumes_dirty(void)
{
	uint32_t share;
	char name[16];

	crig_up("requests=8 objects=128");
	share = crig_share();
	for (unsigned i = 0; i < share + 8; i++) {
		snprintf(name, sizeof(name), "%c:%u", i < share + 4 ? 'a' : 'b', i);
		dirty_bucket(i < share + 4 ? 1 : 2, name);
	}
	crig_hold(true);
	return share;
}

/* Its FLUSH comes when the store has as much of volume 1 as it is sent at once. */
static struct crig_io *flush_takes_turns(uint32_t first)
{
	struct crig_io *flush;

	assert_int_equal(crig_nr_calls(), first);
	flush = crig_flush(2);
	crig_answer(0);
	crig_answer(1);
	assert_int_equal(crig_nr_calls(), first + 2);
	assert_true(crig_call(first)->target[0] != crig_call(first + 1)->target[0]);
	crig_hold(false);
	return flush;
}

static void volumes_whose_flushes_wait_take_turns(void **state)
{
	uint32_t first = up_with_two_volumes_dirty();
	struct crig_io *one = crig_flush(1), *two = flush_takes_turns(first);

	(void)state;
	crig_expect(one, 0);
	crig_expect(two, 0);
}

static void a_flush_of_one_volume_takes_turns_with_a_switch_of_all(void **state)
{
	uint32_t first = up_with_two_volumes_dirty();

	(void)state;
	crig_set("policy=write-through");
	crig_expect(flush_takes_turns(first), 0);
}

static void a_flush_of_one_volume_goes_on_beside_the_flush_rate_and_the_age(void **state)
{
	(void)state;
	crig_up("flush_rate=4k dirty_age=1h");
	for (unsigned i = 0; i < 4; i++)
		crig_expect(crig_write("b:1", B(2 * i), B(1), 5), B(1));
	dirty_bucket(1, "a:1");
	crig_expect(crig_flush(1), 0);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(4));
}

/* ---- records and counters ---- */

static void a_volume_is_counted_apart_from_its_first_request_on(void **state)
{
	(void)state;
	crig_up("");
	crig_volume(7);
	crig_expect(crig_write("seven:0", 0, B(2), 5), B(2));
	crig_expect_data("seven:0", 0, 1024, 5);
	crig_volume(8);
	crig_store_fill("eight:0", 0, B(4), 6);
	crig_expect_data("eight:0", 0, B(1), 6);
	crig_expect_data("eight:0", 0, B(4), 6);
	assert_int_equal(crig_volume_number(7, "reads"), 1);
	assert_int_equal(crig_number("hits"), 1);
	assert_int_equal(crig_number("writes"), 1);
	assert_int_equal(crig_number("read_bytes"), 1024);
	assert_int_equal(crig_number("write_bytes"), B(2));
	assert_int_equal(crig_number("used_bytes"), B(2));
	assert_int_equal(crig_number("dirty_bytes"), B(2));
	assert_true(crig_says("name=seven\n"));
	assert_int_equal(crig_volume_number(8, "reads"), 2);
	assert_int_equal(crig_number("misses"), 1);
	assert_int_equal(crig_number("partial"), 1);
	assert_int_equal(crig_number("hit_bytes"), B(1));
	assert_int_equal(crig_number("miss_bytes"), B(4));
	assert_int_equal(crig_number("used_bytes"), B(4));
	assert_int_equal(crig_number("dirty_bytes"), 0);
}

static void evictions_are_counted_with_the_volume_that_loses_the_bucket(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(8);
	crig_volume(1);
	crig_have_clean("a:0", 0, B(8), 5);
	crig_volume(2);
	crig_have_clean("b:0", 0, B(4), 6);
	assert_int_equal(crig_volume_number(1, "evicted"), 4);
	assert_int_equal(crig_number("used_bytes"), B(4));
	assert_int_equal(crig_volume_number(2, "evicted"), 0);
	assert_int_equal(crig_number("used_bytes"), B(4));
}

static void counters_of_a_volume_survive_the_death_of_cached(void **state)
{
	(void)state;
	crig_up("");
	crig_volume(3);
	crig_have_clean("v:0", 0, B(2), 5);
	crig_expect(crig_write("v:1", 0, B(1), 6), B(1));
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	assert_int_equal(crig_volume_number(3, "reads"), 1);
	assert_int_equal(crig_number("writes"), 1);
	assert_int_equal(crig_number("used_bytes"), B(3));
	assert_int_equal(crig_number("dirty_bytes"), B(1));
	assert_true(crig_says("name=v\n"));
}

static void volumes_that_find_no_record_are_counted_together(void **state)
{
	char name[16];

	(void)state;
	crig_up("objects=64");
	for (uint32_t v = 1; v <= 20; v++) {
		snprintf(name, sizeof(name), "v%u:0", v);
		dirty_bucket(v, name);
	}
	assert_int_equal(crig_volume_number(15, "dirty_bytes"), B(1));
	assert_int_equal(crig_volume_number(16, "dirty_bytes"), 0);
	assert_int_equal(crig_volume_number(0, "dirty_bytes"), B(5));
	crig_volume_status(15);
	assert_true(crig_says("\ncounted=yes\n"));
	crig_volume_status(16);
	assert_true(crig_says("\ncounted=no\n"));
	crig_expect(crig_flush(16), 0);
	assert_true(crig_stable("v16:0", 0, B(1), 16));
	assert_int_equal(crig_volume_number(0, "dirty_bytes"), B(4));
}

static void a_record_that_nobody_needs_is_given_to_a_new_volume_which_begins_at_zero(void **state)
{
	char name[16];

	(void)state;
	crig_up("objects=64");
	for (uint32_t v = 1; v <= 15; v++) {
		snprintf(name, sizeof(name), "v%u:0", v);
		dirty_bucket(v, name);
	}
	crig_expect(crig_flush(0), 0);
	crig_volume(4);
	crig_expect(crig_op(XSEG_OP_DELETE, "v4:0", 0, 0), 0);
	dirty_bucket(100, "new:0");
	assert_int_equal(crig_volume_number(100, "writes"), 1);
	assert_int_equal(crig_number("used_bytes"), B(1));
	assert_int_equal(crig_volume_number(4, "writes"), 0);
	assert_int_equal(crig_volume_number(0, "writes"), 0);
}

static void a_volume_that_comes_back_to_its_record_begins_at_zero(void **state)
{
	(void)state;
	crig_up("");
	dirty_bucket(4, "v4:0");
	crig_expect(crig_flush(4), 0);
	crig_expect(crig_op(XSEG_OP_DELETE, "v4:0", 0, 0), 0);
	assert_true(crig_admin("volume-forget id=4") > 0);
	dirty_bucket(4, "v4:0");
	assert_int_equal(crig_volume_number(4, "writes"), 1);
	assert_int_equal(crig_number("used_bytes"), B(1));
}

/* Who takes it away takes its id first, and gives it back if an object of the volume has come. */
static void a_record_that_is_nearly_taken_away_keeps_its_numbers(void **state)
{
	_Atomic uint32_t *id;
	uint32_t rec;

	(void)state;
	crig_up("");
	crig_volume(7);
	crig_have_clean("v:0", 0, B(2), 5);
	rec = volume_find(crig.k, 7);
	id = &crig.k->volume.volume_ids[rec];
	atomic_store(id, 0);
	volume_add(volume_block(cport_at(crig.k, 0), rec), VC_READS, 1);
	atomic_store(id, 7);
	assert_int_equal(crig_volume_number(7, "used_bytes"), B(2));
	assert_int_equal(crig_number("reads"), 2);
}

static void an_object_that_another_volume_takes_over_when_it_is_clean_counts_there(void **state)
{
	(void)state;
	crig_up("");
	crig_volume(1);
	crig_have_clean("a:0", 0, B(3), 5);
	crig_volume(2);
	crig_expect(crig_write("a:0", 0, B(1), 6), B(1));
	assert_int_equal(crig_volume_number(1, "used_bytes"), 0);
	assert_int_equal(crig_volume_number(2, "used_bytes"), B(3));
	crig_volume(1);
	crig_expect_data("a:0", 0, B(1), 6);	/* not while it is dirty */
	assert_int_equal(crig_volume_number(2, "used_bytes"), B(3));
	assert_int_equal(crig_volume_number(1, "reads"), 2);
}

static void a_damaged_record_is_dropped_by_a_successor(void **state)
{
	(void)state;
	crig_up("");
	dirty_bucket(5, "five:0");
	dirty_bucket(6, "six:0");
	crig.k->volume.volume_ids[9] = 5;	/* a second time */
	memset(crig.k->volume.records[volume_find(crig.k, 6)].name, 'x', XSEG_NAME_MAX);
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	assert_int_equal(crig_volume_number(5, "used_bytes"), B(1));
	assert_int_equal(crig_volume_number(6, "used_bytes"), 0);
	assert_int_equal(crig_volume_number(0, "used_bytes"), B(1));
	dirty_bucket(6, "six:0");	/* gets its record again, and its object with it */
	assert_int_equal(crig_volume_number(6, "used_bytes"), B(1));
	assert_int_equal(crig_volume_number(0, "used_bytes"), 0);
}

static void the_list_has_a_line_for_each_volume(void **state)
{
	(void)state;
	crig_up("");
	dirty_bucket(1, "a:0");
	dirty_bucket(2, "b:0");
	dirty_bucket(3, "no-number");
	assert_true(crig_admin("volumes") > 0);
	assert_true(crig_says("name=a id=1 ") && crig_says("\nname=b id=2 "));
	/* of one that never came here it is known that it has nothing */
	crig_volume_status(4);
	assert_true(crig_says("\ncounted=yes\n"));
	assert_false(crig_says("id=3") || crig_says("next="));
	assert_int_equal(crig_admin("volume-status"), -EINVAL);
	assert_int_equal(crig_admin("volume-status id=x"), -EINVAL);
}

/* ---- policies ---- */

static bool volume_says(uint32_t id, const char *part)
{
	crig_volume_status(id);
	return crig_says(part);
}

static void a_volume_s_policy_holds_for_its_own_writes_only(void **state)
{
	struct crig_io *through;

	(void)state;
	crig_up("");
	crig_volume_set("id=1 name=a policy=write-through");
	crig_hold(true);
	dirty_bucket(2, "b:0");
	crig_volume(1);
	through = crig_write("a:0", 0, B(1), 5);
	crig_expect_waits(through);
	assert_int_equal(crig_nr_calls(), 1);
	crig_hold(false);
	crig_expect(through, B(1));
	assert_true(volume_says(1, "policy=write-through\npolicy_from=volume\n"));
	assert_true(volume_says(2, "policy=write-back\npolicy_from=cache\n"));
	assert_int_equal(crig_counter(CC_WRITES_THROUGH), 1);
	assert_int_equal(crig_counter(CC_WRITES_BACK), 1);
}

static void a_volume_may_be_written_back_under_a_cache_that_writes_through(void **state)
{
	(void)state;
	crig_up("policy=write-through");
	crig_volume_set("id=1 policy=write-back");
	crig_hold(true);
	dirty_bucket(1, "a:0");
	assert_int_equal(crig_nr_calls(), 0);
	crig_volume_set("id=1 policy=");
	assert_int_equal(crig_nr_held(), 1);	/* the cache's again, so it is flushed */
	crig_hold(false);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
}

static void a_switch_of_one_volume_drains_that_volume_only(void **state)
{
	(void)state;
	crig_up("");
	dirty_bucket(1, "a:0");
	dirty_bucket(2, "b:0");
	dirty_bucket(1, "a:1");
	crig_hold(true);
	crig_volume_set("id=1 policy=write-around");
	assert_int_equal(crig_nr_held(), 2);
	assert_true(
		volume_says(1, "state=draining\ndraining.from=write-back\ndraining.percent=0\n"));
	assert_int_equal(crig_number("draining.bytes_left"), B(2));
	assert_true(volume_says(2, "state=running\n"));
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	assert_true(volume_says(1, "draining.percent=50\n"));
	crig_hold(false);
	assert_true(volume_says(1, "state=running\n"));
	assert_int_equal(crig_state("b:0", 0), BUCKET_DIRTY);
	assert_int_equal(crig_counter(CC_FLUSHED_SWITCH), 2);
}

/* A bucket of each of four objects more, and the store holds. */
static void dirty_more_than_is_flushed_at_once(void)
{
	for (unsigned i = 0; i < crig_share() + 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "a:%u", i);
		dirty_bucket(1, name);
	}
	crig_hold(true);
}

static void a_switch_back_to_write_back_ends_the_draining(void **state)
{
	(void)state;
	crig_up("requests=8 objects=128");
	dirty_more_than_is_flushed_at_once();
	crig_volume_set("id=1 policy=pass-through");
	assert_int_equal(crig_nr_held(), crig_share());
	crig_volume_set("id=1 policy=write-back");
	assert_true(volume_says(1, "state=running\n"));
	crig_hold(false);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(4));
}

static void a_policy_of_its_own_goes_on_with_the_draining_of_the_cache_s_switch(void **state)
{
	(void)state;
	crig_up("requests=8 objects=128");
	dirty_more_than_is_flushed_at_once();
	crig_set("policy=write-through");
	crig_volume_set("id=1 policy=write-through");
	crig_set("policy=write-back");
	assert_true(volume_says(1, "state=draining\n"));
	crig_hold(false);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
	assert_true(volume_says(1, "state=running\n"));
}

static void settings_of_a_volume_survive_the_death_of_cached(void **state)
{
	(void)state;
	crig_up("");
	crig_volume_set("id=65537 name=vol policy=write-through");
	dirty_bucket(2, "b:0");
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	assert_true(crig_admin("volume-get id=65537") > 0);
	assert_true(crig_says("policy=write-through\n"));
	assert_true(volume_says(65537, "name=vol\n"));
	assert_true(crig_admin("volume-get id=2") > 0);
	assert_true(crig_says("policy=\n"));
}

static void a_volume_that_drained_when_cached_was_killed_drains_after_it(void **state)
{
	(void)state;
	crig_up("");
	dirty_bucket(1, "a:0");
	dirty_bucket(2, "b:0");
	crig_hold(true);
	crig_volume_set("id=1 policy=write-through");
	crig_kill();
	crig_hold(false);
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	assert_int_equal(crig_state("a:0", 0), BUCKET_VALID);
	assert_int_equal(crig_state("b:0", 0), BUCKET_DIRTY);
}

/* Another volume of its group holds it up. */
static void a_volume_in_the_place_of_one_that_drained_drains_for_itself(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	dirty_bucket(17, "b:0");
	dirty_bucket(1, "a:0");
	crig_hold(true);
	crig_volume_set("id=1 policy=write-through");
	crig_answer(1);
	assert_int_equal(crig_state("a:0", 0), BUCKET_VALID);
	crig_volume(1);
	io = crig_op(XSEG_OP_DELETE, "a:0", 0, 0);
	crig_answer(crig_held(XSEG_OP_DELETE, 0));
	crig_expect(io, 0);
	assert_true(crig_admin("volume-forget id=1") > 0);
	dirty_bucket(2, "c:0");
	assert_true(volume_says(2, "state=running\n"));
	crig_volume_set("id=2 policy=write-through");
	crig_hold(false);
	assert_int_equal(crig_state("c:0", 0), BUCKET_VALID);
}

static void a_setting_that_is_wrong_changes_nothing(void **state)
{
	(void)state;
	crig_up("");
	crig_volume_set("id=1 policy=write-through");
	crig_expect_refused("volume-set id=1 policy=write-round", -EINVAL, "choose write-back");
	crig_expect_refused(
		"volume-set id=1 policy=write-back size=3", -EINVAL, "no setting 'size'");
	crig_expect_refused("volume-set policy=write-back", -EINVAL, "begin with id=N");
	crig_expect_refused("volume-set id=0 policy=write-back", -EINVAL, "begin with id=N");
	crig_expect_refused(
		"volume-set id=1 name=.x policy=write-back", -EINVAL, "not a volume's name");
	assert_true(volume_says(1, "policy=write-through\n"));
}

static void settings_of_a_removed_volume_do_not_fall_to_another(void **state)
{
	(void)state;
	crig_up("");
	crig_volume_set("id=1 name=vol policy=write-through");
	/* the next volume of that name, in the same slot of volumed's table */
	dirty_bucket(65537, "vol:0");
	assert_true(volume_says(65537, "policy=write-back\npolicy_from=cache\n"));
	assert_true(volume_says(1, "name=\n"));
	assert_true(volume_says(1, "policy_from=cache\n"));
	crig_volume_set("id=65537 name=vol policy=write-through");
	assert_true(crig_admin("volume-forget id=65537") > 0);
	assert_true(volume_says(65537, "policy_from=cache\n"));
	assert_true(crig_admin("volumes") >= 0);
	assert_false(crig_says("name=vol"));
}

static void when_all_records_have_settings_a_further_volume_s_are_refused(void **state)
{
	char line[64];

	(void)state;
	crig_up("");
	for (unsigned id = 1; id < 16; id++) {
		snprintf(line, sizeof(line), "id=%u policy=write-through", id);
		crig_volume_set(line);
	}
	crig_expect_refused(
		"volume-set id=16 policy=write-through", -ENOSPC, "reset those of a volume");
	dirty_bucket(16, "p:0");
	crig_volume_set("id=3 policy=");
	crig_volume_set("id=16 policy=write-through");
	assert_true(volume_says(16, "policy_from=volume\n"));
	crig_hold(true);
	crig_expect_waits(crig_write("p:0", 0, B(1), 6));
	crig_hold(false);
}

static void what_is_of_no_volume_is_counted_so_after_one_was_forgotten(void **state)
{
	uint64_t reads;

	(void)state;
	crig_up("");
	crig_volume(7);
	crig_expect(crig_write("vol7:0", 0, B(1), 5), B(1));
	crig_expect(crig_op(XSEG_OP_DELETE, "vol7:0", 0, 0), 0);
	assert_true(crig_admin("volume-forget id=7") >= 0);
	reads = crig_volume_number(0, "reads");
	crig_volume(0);
	crig_expect(crig_write("x", 0, B(1), 5), B(1));
	crig_expect_data("x", 0, B(1), 5);
	assert_int_equal(crig_volume_number(0, "reads"), reads + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(what_is_of_no_volume_is_counted_so_after_one_was_forgotten),
		CRIG_T(a_flush_of_one_volume_writes_no_other_volume_s_data),
		CRIG_T(volumes_whose_flushes_wait_take_turns),
		CRIG_T(a_flush_of_one_volume_takes_turns_with_a_switch_of_all),
		CRIG_T(a_flush_of_one_volume_goes_on_beside_the_flush_rate_and_the_age),
		CRIG_T(a_volume_is_counted_apart_from_its_first_request_on),
		CRIG_T(evictions_are_counted_with_the_volume_that_loses_the_bucket),
		CRIG_T(counters_of_a_volume_survive_the_death_of_cached),
		CRIG_T(volumes_that_find_no_record_are_counted_together),
		CRIG_T(a_record_that_nobody_needs_is_given_to_a_new_volume_which_begins_at_zero),
		CRIG_T(a_volume_that_comes_back_to_its_record_begins_at_zero),
		CRIG_T(a_record_that_is_nearly_taken_away_keeps_its_numbers),
		CRIG_T(an_object_that_another_volume_takes_over_when_it_is_clean_counts_there),
		CRIG_T(a_damaged_record_is_dropped_by_a_successor),
		CRIG_T(the_list_has_a_line_for_each_volume),
		CRIG_T(a_volume_s_policy_holds_for_its_own_writes_only),
		CRIG_T(a_volume_may_be_written_back_under_a_cache_that_writes_through),
		CRIG_T(a_switch_of_one_volume_drains_that_volume_only),
		CRIG_T(a_switch_back_to_write_back_ends_the_draining),
		CRIG_T(a_policy_of_its_own_goes_on_with_the_draining_of_the_cache_s_switch),
		CRIG_T(settings_of_a_volume_survive_the_death_of_cached),
		CRIG_T(a_volume_that_drained_when_cached_was_killed_drains_after_it),
		CRIG_T(a_volume_in_the_place_of_one_that_drained_drains_for_itself),
		CRIG_T(a_setting_that_is_wrong_changes_nothing),
		CRIG_T(settings_of_a_removed_volume_do_not_fall_to_another),
		CRIG_T(when_all_records_have_settings_a_further_volume_s_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
