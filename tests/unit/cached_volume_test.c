/* cached_volume_test - what cached does for single volumes: their FLUSH (peers/cached/ticket.c, flush.c), records and counters
 * (volume.c, volume_text.c). */
#include "tests/unit/cached_rig.h"

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

static void volumes_whose_flushes_wait_take_turns(void **state)
{
	struct crig_io *one, *two;
	uint32_t first;
	char name[16];

	(void)state;
	crig_up("requests=8 objects=128");
	first = crig_share();
	for (unsigned i = 0; i < first + 8; i++) {
		snprintf(name, sizeof(name), "%c:%u", i < first + 4 ? 'a' : 'b', i);
		dirty_bucket(i < first + 4 ? 1 : 2, name);
	}
	crig_hold(true);
	one = crig_flush(1);
	assert_int_equal(crig_nr_calls(), first);
	two = crig_flush(2);
	crig_answer(0);
	crig_answer(1);
	assert_int_equal(crig_nr_calls(), first + 2);
	assert_true(crig_call(first)->target[0] != crig_call(first + 1)->target[0]);
	crig_hold(false);
	crig_expect(one, 0);
	crig_expect(two, 0);
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

static uint64_t volume_number(uint32_t id, const char *key)
{
	char line[64];

	snprintf(line, sizeof(line), "volume-status id=%u", id);
	assert_true(crig_admin(line) > 0);
	return crig_number(key);
}

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
	assert_int_equal(volume_number(7, "reads"), 1);
	assert_int_equal(crig_number("hits"), 1);
	assert_int_equal(crig_number("writes"), 1);
	assert_int_equal(crig_number("read_bytes"), 1024);
	assert_int_equal(crig_number("write_bytes"), B(2));
	assert_int_equal(crig_number("used_bytes"), B(2));
	assert_int_equal(crig_number("dirty_bytes"), B(2));
	assert_true(crig_says("name=seven\n"));
	assert_int_equal(volume_number(8, "reads"), 2);
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
	assert_int_equal(volume_number(1, "evicted"), 4);
	assert_int_equal(crig_number("used_bytes"), B(4));
	assert_int_equal(volume_number(2, "evicted"), 0);
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
	assert_int_equal(volume_number(3, "reads"), 1);
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
	assert_int_equal(volume_number(15, "dirty_bytes"), B(1));
	assert_int_equal(volume_number(16, "dirty_bytes"), 0);
	assert_int_equal(volume_number(0, "dirty_bytes"), B(5));
	crig_expect(crig_flush(16), 0);
	assert_true(crig_stable("v16:0", 0, B(1), 16));
	assert_int_equal(volume_number(0, "dirty_bytes"), B(4));
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
	assert_int_equal(volume_number(100, "writes"), 1);
	assert_int_equal(crig_number("used_bytes"), B(1));
	assert_int_equal(volume_number(4, "writes"), 0);
	assert_int_equal(volume_number(0, "writes"), 0);
}

static void an_object_that_another_volume_takes_over_when_it_is_clean_counts_there(void **state)
{
	(void)state;
	crig_up("");
	crig_volume(1);
	crig_have_clean("a:0", 0, B(3), 5);
	crig_volume(2);
	crig_expect(crig_write("a:0", 0, B(1), 6), B(1));
	assert_int_equal(volume_number(1, "used_bytes"), 0);
	assert_int_equal(volume_number(2, "used_bytes"), B(3));
	crig_volume(1);
	crig_expect_data("a:0", 0, B(1), 6);	/* not while it is dirty */
	assert_int_equal(volume_number(2, "used_bytes"), B(3));
	assert_int_equal(volume_number(1, "reads"), 2);
}

static void a_damaged_record_is_dropped_by_a_successor(void **state)
{
	(void)state;
	crig_up("");
	dirty_bucket(5, "five:0");
	dirty_bucket(6, "six:0");
	crig.k->volume_ids[9] = 5;	/* a second time */
	memset(crig.k->volumes[volume_find(crig.k, 6)].name, 'x', XSEG_NAME_MAX);
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	assert_int_equal(volume_number(5, "used_bytes"), B(1));
	assert_int_equal(volume_number(6, "used_bytes"), 0);
	assert_int_equal(volume_number(0, "used_bytes"), B(1));
	dirty_bucket(6, "six:0");	/* gets its record again, and its object with it */
	assert_int_equal(volume_number(6, "used_bytes"), B(1));
	assert_int_equal(volume_number(0, "used_bytes"), 0);
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
	assert_false(crig_says("id=3") || crig_says("next="));
	assert_int_equal(crig_admin("volume-status"), -EINVAL);
	assert_int_equal(crig_admin("volume-status id=x"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_flush_of_one_volume_writes_no_other_volume_s_data),
		CRIG_T(volumes_whose_flushes_wait_take_turns),
		CRIG_T(a_flush_of_one_volume_goes_on_beside_the_flush_rate_and_the_age),
		CRIG_T(a_volume_is_counted_apart_from_its_first_request_on),
		CRIG_T(evictions_are_counted_with_the_volume_that_loses_the_bucket),
		CRIG_T(counters_of_a_volume_survive_the_death_of_cached),
		CRIG_T(volumes_that_find_no_record_are_counted_together),
		CRIG_T(a_record_that_nobody_needs_is_given_to_a_new_volume_which_begins_at_zero),
		CRIG_T(an_object_that_another_volume_takes_over_when_it_is_clean_counts_there),
		CRIG_T(a_damaged_record_is_dropped_by_a_successor),
		CRIG_T(the_list_has_a_line_for_each_volume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
