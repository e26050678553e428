/* xbench_value_test - stamps of values by key: what is told apart, of each size; names of keys, and
 * the sequence of operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "bench/xbench/oracle/value.h"
#include "bench/xbench/plan/kv_gen.h"
#include "bench/xbench/plan/kv_options.h"

#define KEY 5u

static _Alignas(64) uint8_t value[4096], other[4096], first[4096];
static const struct xb_whose whose = { .signature = 1, .run = 2, .target = 3 };
static const struct xb_value_stamp ours = {
	.signature = 1, .run = 2, .target = 3, .key = KEY, .tag = 77
};

static struct xb_seen look(uint32_t bytes)
{
	struct xb_seen seen;

	xb_value_read(value, bytes, &whose, KEY, &seen);
	return seen;
}

static void a_stamp_of_any_size_is_read_as_it_was_written(void **state)
{
	(void)state;
	for (uint32_t bytes = XB_STAMPED_MIN; bytes < 1200; bytes++) {
		xb_value_write(value, bytes, &ours);
		assert_int_equal(look(bytes).kind, XB_SEEN_OURS);
		assert_int_equal(look(bytes).value, 77);
		assert_int_equal(look(bytes).offset, xb_value_offset(KEY));
	}
}

static void every_changed_byte_is_torn(void **state)
{
	(void)state;
	xb_value_write(value, 200, &ours);
	for (uint32_t i = 0; i < 200; i++) {
		value[i] ^= 0x10;
		assert_int_equal(look(200).kind, XB_SEEN_TORN);
		value[i] ^= 0x10;
	}
	assert_int_equal(look(200).kind, XB_SEEN_OURS);
}

static void a_value_that_is_cut_or_too_long_is_torn(void **state)
{
	(void)state;
	xb_value_write(value, 300, &ours);
	assert_int_equal(look(299).kind, XB_SEEN_TORN);
	assert_int_equal(look(128).kind, XB_SEEN_TORN);
	assert_int_equal(look(301).kind, XB_SEEN_TORN);
}

static void a_value_of_two_is_torn_wherever_the_seam_is(void **state)
{
	struct xb_value_stamp second = ours;
	uint32_t nr = 0;

	(void)state;
	second.tag = 78;
	xb_value_write(other, 512, &second);
	xb_value_write(first, 512, &ours);
	for (uint32_t seam = 1; seam < 512; seam++) {
		memcpy(value, first, 512);
		memcpy(value, other, seam);
		/* their first bytes are the same, and their last ones */
		if (memcmp(value, first, 512) && memcmp(value, other, 512)) {
			assert_int_equal(look(512).kind, XB_SEEN_TORN);
			nr++;
		}
	}
	assert_in_range(nr, 400, 512);
}

/* Also if the head is of another run: the mark at the end is ours. */
static void a_head_of_another_run_over_our_value_is_torn(void **state)
{
	struct xb_value_stamp second = ours;

	(void)state;
	second.run = 9;
	xb_value_write(other, 512, &second);
	xb_value_write(value, 512, &ours);
	memcpy(value, other, 256);
	assert_int_equal(look(512).kind, XB_SEEN_TORN);
}

static void other_keys_stores_and_runs_are_told_apart(void **state)
{
	struct xb_value_stamp stamp = ours;

	(void)state;
	stamp.key = KEY + 1;
	xb_value_write(value, 512, &stamp);
	assert_int_equal(look(512).kind, XB_SEEN_MISPLACED);
	assert_int_equal(look(512).offset, xb_value_offset(KEY + 1));
	stamp = ours;
	stamp.target = 4;
	xb_value_write(value, 512, &stamp);
	assert_int_equal(look(512).kind, XB_SEEN_MISPLACED);
	stamp = ours;
	stamp.run = 9;
	xb_value_write(value, 512, &stamp);
	assert_int_equal(look(512).kind, XB_SEEN_OTHER);
	assert_true(look(512).value & XB_VALUE_OTHER);
	value[300] ^= 1;
	assert_int_equal(look(512).kind, XB_SEEN_BROKEN);
	memset(value, 0, 512);
	assert_int_equal(look(512).kind, XB_SEEN_UNSTAMPED);
	assert_int_equal(look(3).kind, XB_SEEN_UNSTAMPED);
	assert_int_equal(look(0).kind, XB_SEEN_UNSTAMPED);
	/* it is one value to readers with room for more or less of it */
	value[500] = 7;
	assert_int_equal(look(512).value, look(256).value);
	value[5] = 7;
	assert_int_not_equal(look(512).value, look(0).value);
}

/* ---- the plan ---------------------------------------------------------------------------- */

static struct xb_options o;
static struct xb_kv_gen g, h;

static int begin(void **state)
{
	(void)state;
	memset(&o, 0, sizeof(o));
	memcpy(o.kv.kvd, "kvd", 4);
	o.rw = XB_RW_GETPUT;
	o.rwmixread = 50;
	o.numjobs = 3;
	o.kv.keys = 1000;
	o.kv.key_size = 16;
	o.kv.value_size = o.kv.value_max = 100;
	o.randseed = 7;
	return 0;
}

static void a_fill_has_each_key_once(void **state)
{
	static uint8_t nr[1000];
	struct xb_kv_io io;

	(void)state;
	o.rw = XB_RW_FILL;
	memset(nr, 0, sizeof(nr));
	for (uint32_t job = 0; job < 3; job++) {
		xb_kv_gen_init(&g, &o, job);
		while (xb_kv_gen_next(&g, &io)) {
			assert_int_equal(io.op, XB_WRITE);
			assert_true(io.key < 1000);
			nr[io.key]++;
		}
	}
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(nr[i], 1);
}

static void jobs_without_an_end_do_as_much_as_there_are_keys(void **state)
{
	struct xb_kv_io io;
	uint32_t nr = 0;

	(void)state;
	for (uint32_t job = 0; job < 3; job++) {
		xb_kv_gen_init(&g, &o, job);
		while (xb_kv_gen_next(&g, &io))
			nr++;
	}
	assert_int_equal(nr, 1000);
}

static void a_sequence_can_be_made_again(void **state)
{
	struct xb_kv_io a, b;

	(void)state;
	o.number_ios = 500;
	o.mix[XB_CAS] = 30;
	o.zipf = 1.1;
	xb_kv_gen_init(&g, &o, 1);
	xb_kv_gen_init(&h, &o, 1);
	for (uint32_t i = 0; i < 500; i++) {
		assert_true(xb_kv_gen_next(&g, &a) && xb_kv_gen_next(&h, &b));
		assert_true(a.op == b.op && a.key == b.key && a.seq == b.seq);
	}
	assert_false(xb_kv_gen_next(&g, &a));
	xb_kv_gen_restart(&g);
	assert_true(xb_kv_gen_next(&g, &a));
	assert_int_equal(a.seq, 501);
}

static void a_mix_is_as_was_asked_for(void **state)
{
	uint32_t nr[XB_NR_OPS] = { 0 };
	struct xb_kv_io io;

	(void)state;
	o.number_ios = 100000;
	o.rwmixread = 80;
	o.mix[XB_INCR] = 10;
	o.mix[XB_FLUSH] = 5;
	o.mix[XB_ADD] = 25;
	xb_kv_gen_init(&g, &o, 0);
	while (xb_kv_gen_next(&g, &io)) {
		nr[io.op]++;
		assert_true(io.op == XB_INCR ? io.key >= 1000 && io.key < 1000 + xb_kv_counters(&o)
					     : io.key < 1000);
		assert_int_equal(io.bytes, io.op == XB_WRITE || io.op == XB_ADD ? 100 : 0);
	}
	assert_in_range(nr[XB_INCR], 9000, 11000);
	assert_in_range(nr[XB_FLUSH], 4400, 5600);
	assert_in_range(nr[XB_ADD], 24000, 26000);
	assert_in_range(nr[XB_READ], 46500, 49500);
	assert_in_range(nr[XB_WRITE], 11000, 13000);
}

static void exponential_sizes_have_their_mean_and_bounds(void **state)
{
	uint64_t sum = 0, tail = 0;
	struct xb_kv_io io;

	(void)state;
	o.rw = XB_RW_PUT;
	o.number_ios = 200000;
	o.kv.is_exp = true;
	o.kv.value_size = 1024;
	o.kv.value_max = 16384;
	o.verify = 1;
	xb_kv_gen_init(&g, &o, 0);
	while (xb_kv_gen_next(&g, &io)) {
		assert_in_range(io.bytes, XB_STAMPED_MIN, 16384);
		sum += io.bytes;
		tail += io.bytes > 2048;
	}
	assert_in_range(sum / 200000, 1000, 1050);
	assert_in_range(tail, 26000, 28200);	/* exp(-2) of them: 27067 */
}

static void every_key_has_a_name_of_its_own(void **state)
{
	char name[32], last[32];

	(void)state;
	xb_kv_name_begin(name, 20);
	xb_kv_name(name, 20, 0x12ab);
	assert_memory_equal(name, "kkkk00000000000012ab", 20);
	xb_kv_name_begin(name, 3);
	for (uint64_t key = 0; key < 4096; key++) {
		memcpy(last, name, 3);
		xb_kv_name(name, 3, key);
		assert_true(memcmp(name, last, 3) > 0 || key == 0);
	}
	assert_memory_equal(name, "fff", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stamp_of_any_size_is_read_as_it_was_written),
		cmocka_unit_test(every_changed_byte_is_torn),
		cmocka_unit_test(a_value_that_is_cut_or_too_long_is_torn),
		cmocka_unit_test(a_value_of_two_is_torn_wherever_the_seam_is),
		cmocka_unit_test(a_head_of_another_run_over_our_value_is_torn),
		cmocka_unit_test(other_keys_stores_and_runs_are_told_apart),
		cmocka_unit_test_setup(a_fill_has_each_key_once, begin),
		cmocka_unit_test_setup(jobs_without_an_end_do_as_much_as_there_are_keys, begin),
		cmocka_unit_test_setup(a_sequence_can_be_made_again, begin),
		cmocka_unit_test_setup(a_mix_is_as_was_asked_for, begin),
		cmocka_unit_test_setup(exponential_sizes_have_their_mean_and_bounds, begin),
		cmocka_unit_test_setup(every_key_has_a_name_of_its_own, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
