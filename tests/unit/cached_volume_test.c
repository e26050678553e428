/* cached_volume_test - what cached does for single volumes: their FLUSH (peers/cached/ticket.c, flush.c). */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_flush_of_one_volume_writes_no_other_volume_s_data),
		CRIG_T(volumes_whose_flushes_wait_take_turns),
		CRIG_T(a_flush_of_one_volume_goes_on_beside_the_flush_rate_and_the_age),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
