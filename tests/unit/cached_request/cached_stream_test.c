/* cached_stream_test - which data is read ahead for sequential readers, and which of their data is
 * not kept (peers/cached/request/read.c, stream.c).
 */
#include "tests/rig/cached_rig.h"

#define PAGES 256u

/* Reads buckets from .. to - 1 of the object, one by one. */
static void scan(const char *name, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		crig_expect_data(name, B(i), B(1), 5);
}

static void a_sequential_reader_finds_what_comes_next(void **state)
{
	uint32_t reads;

	(void)state;
	crig_up("read_ahead=64k");
	crig_store_fill("a", 0, B(256), 5);
	scan("a", 0, 16);
	reads = crig_count_calls(XSEG_OP_READ, 0);
	assert_in_range(reads, 1, 10);
	assert_true(crig_counter(CC_READ_AHEAD_BYTES) >= B(16));
	scan("a", 16, 256);
	assert_in_range(crig_count_calls(XSEG_OP_READ, 0) - reads, 1, 240 / 8 + 2);
	assert_true(crig_counter(CC_HITS) > 240);
}

static void nothing_is_read_ahead_when_that_is_off_or_reads_are_random(void **state)
{
	(void)state;
	crig_up("read_ahead=0");
	crig_store_fill("a", 0, B(64), 5);
	scan("a", 0, 32);
	assert_int_equal(crig_counter(CC_READ_AHEAD_BYTES), 0);
	crig_set("read_ahead=128k");
	for (uint32_t i = 0, at = 1; i < 32; i++, at = at * 29 % 1021)
		crig_expect(crig_read("b", B(at), B(1)), B(1));
	assert_int_equal(crig_counter(CC_READ_AHEAD_BYTES), 0);
}

static void read_ahead_ends_with_the_object(void **state)
{
	(void)state;
	crig_up("read_ahead=128k");
	crig_store_fill("a", B(1000), B(24), 5);
	scan("a", 1000, 1024);
	for (uint32_t i = 0; i < crig_nr_calls(); i++)
		assert_true(crig_call(i)->offset + crig_call(i)->size <= B(1024));
}

/* 64 KiB each: what lies between the beginnings of two is known from the second one on. */
static void nothing_is_read_beyond_the_end_of_small_objects(void **state)
{
	uint32_t second = 0;
	struct crig_io *io;
	char name[16];

	(void)state;
	crig_up("read_ahead=512k");
	crig_volume(1);
	for (uint32_t i = 0; i < B(512); i += B(1)) {
		snprintf(name, sizeof(name), "v:%u", i / B(16));
		if (i == B(16))
			second = crig_nr_calls();
		io = crig_send_apart(name, i, i % B(16), B(1));
		crig_settle();
		crig_expect(io, B(1));
	}
	for (uint32_t i = second + 1; i < crig_nr_calls(); i++)
		assert_true(crig_call(i)->offset + crig_call(i)->size <= B(16));
	/* of each object its first read, and all that is left */
	assert_int_equal(crig_nr_calls() - second, 2 * 31);
	assert_int_equal(crig_counter(CC_MISSES) + crig_counter(CC_PARTIAL), 31 + 2);
}

/* Fills the cache with hot buckets, then scans an object beside them. */
static void scan_beside_hot_ones(const char *options, uint32_t nr_hot)
{
	crig_up(options);
	crig_limit(PAGES);
	crig_store_fill("hot", 0, B(nr_hot), 5);
	crig_store_fill("a", 0, B(1024), 5);
	for (uint32_t i = 0; i < nr_hot; i++)
		crig_expect_data("hot", B(i * 7 % nr_hot), B(1), 5);
	scan("a", 0, 1024);
	crig_admin("status");
	assert_int_equal(crig_number("hits") + crig_number("partial") + crig_number("misses") +
				 crig_number("bypassed"),
		crig_number("reads"));
	assert_true(crig_number("bypassed_by.sequential") > 800);
	assert_true(crig_object("hot")->nr[BUCKET_VALID] > nr_hot - 32);
}

static void a_scan_does_not_empty_a_full_cache(void **state)
{
	(void)state;
	scan_beside_hot_ones("read_ahead=0 seq_cutoff=64k", 230);
}

static void what_is_read_ahead_beyond_the_cut_off_goes_when_it_was_read(void **state)
{
	(void)state;
	scan_beside_hot_ones("read_ahead=32k seq_cutoff=64k", 230);
	assert_in_range(crig_count_calls(XSEG_OP_READ, 230), 1, 1024 / 4);
	assert_true(crig_counter(CC_READ_AHEAD_BYTES) > B(900));
}

static void a_cache_with_room_keeps_all_that_is_read(void **state)
{
	(void)state;
	crig_up("read_ahead=0 seq_cutoff=64k");
	crig_store_fill("a", 0, B(512), 5);
	scan("a", 0, 512);
	assert_int_equal(crig_counter(CC_BYPASSED_SEQUENTIAL), 0);
	assert_int_equal(crig_object("a")->nr[BUCKET_VALID], 512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_sequential_reader_finds_what_comes_next),
		CRIG_T(nothing_is_read_ahead_when_that_is_off_or_reads_are_random),
		CRIG_T(read_ahead_ends_with_the_object),
		CRIG_T(nothing_is_read_beyond_the_end_of_small_objects),
		CRIG_T(a_scan_does_not_empty_a_full_cache),
		CRIG_T(what_is_read_ahead_beyond_the_cut_off_goes_when_it_was_read),
		CRIG_T(a_cache_with_room_keeps_all_that_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
