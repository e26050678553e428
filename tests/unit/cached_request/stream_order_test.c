/* stream_order_test - which reads count as sequential: reads out of order, with gaps, many readers
 * among random reads. And which do not: random reads, zipf, strides. Bounds on random reads are
 * several times the measured values.
 */
#include "tests/rig/stream_rig.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#define NR_PAGES 262144u		/* of 4 KiB in 1 GiB */

/* ---- order ---- */

/* A reader that makes one of the `among` oldest of the reads that are still to come. */
struct unordered {
	uint64_t start;
	uint32_t size, among;
	uint32_t waiting[16], nr, next;
};

static struct stream_advice unordered_read(struct unordered *u)
{
	uint32_t i, n;

	while (u->nr < u->among)
		u->waiting[u->nr++] = u->next++;
	i = u->waiting[0] + 2 * u->among <= u->next ? 0 : (uint32_t)srig_random_below(u->nr);
	n = u->waiting[i];
	memmove(u->waiting + i, u->waiting + i + 1, (--u->nr - i) * sizeof(n));
	return srig_note(u->start + (uint64_t)n * u->size, u->size);
}

static void reads_out_of_order_go_on_with_their_stream(void **state)
{
	const uint32_t sizes[] = { 4 * K, 8 * K, 12 * K, 16 * K, 20 * K, 64 * K, 100 * K, 256 * K,
		M };

	(void)state;
	srig_seed(1);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (uint32_t among = 1; among <= 5; among++) {
			struct unordered u = {
				.start = 64 * K + among % 3 * 512, .size = sizes[i], .among = among
			};

			srig_again();
			for (uint32_t n = 0; n < 4000; n++)
				unordered_read(&u);
			assert_true(srig_cut > 4000 - 40 - CUTOFF / sizes[i]);
			assert_in_range(srig_longest(), 4000ull * sizes[i] * 97 / 100,
				4000ull * sizes[i] * 101 / 100);
			srig_check_lists();
		}
}

static void eight_readers_out_of_order_are_recognised_side_by_side(void **state)
{
	struct unordered u[8] = { 0 };

	(void)state;
	srig_seed(10);
	for (uint32_t i = 0; i < 8; i++)
		u[i] = (struct unordered){ .start = i * 100ull * M, .size = 16 * K, .among = 5 };
	for (uint32_t i = 0; i < 8000; i++)
		unordered_read(&u[srig_random_below(8)]);
	assert_true(srig_cut > 8 * (1000 - 20 - CUTOFF / (16 * K)));
	assert_int_equal(srig.proven.nr, 8);
}

static void pages_are_asked_for_once_also_when_reads_are_out_of_order(void **state)
{
	static uint8_t page[16 * M / 4096];
	struct stream_advice a;
	uint64_t at;

	(void)state;
	srig_seed(2);
	memset(page, 0, sizeof(page));
	for (uint32_t block = 0; block < sizeof(page) / 8; block++)
		for (uint32_t i = 0, by = 1 + 2 * (uint32_t)srig_random_below(4); i < 8; i++) {
			at = (block * 8ull + i * by % 8) * 4096;
			a = srig_note(at, 4096);
			for (uint32_t p = 0; p < a.ahead_bytes / 4096; p++)
				assert_int_equal(
					page[(at / OBJECT * OBJECT + a.ahead_from) / 4096 + p]++,
					0);
		}
	assert_in_range(srig_asked, 40, 400);
}

static void the_edge_moves_over_what_was_read_early(void **state)
{
	(void)state;
	srig_read_on(0, 4 * K, 2);
	srig_note(12 * K, 4 * K);
	srig_note(20 * K, 4 * K);
	srig_note(16 * K, 4 * K);
	assert_int_equal(srig_longest(), 8 * K);
	srig_note(8 * K, 4 * K);
	assert_int_equal(srig_longest(), 24 * K);
}

static void a_late_read_fills_a_gap_that_was_given_up_once(void **state)
{
	(void)state;
	srig_read_on(0, 4 * K, 8);
	srig_read_on(36 * K, 4 * K, 32);
	assert_int_equal(srig_longest(), 32 * K);
	srig_note(164 * K, 4 * K);
	assert_int_equal(srig_longest(), 164 * K);
	srig_read_on(172 * K, 4 * K, 33);
	assert_int_equal(srig_longest(), 296 * K);
	srig_note(32 * K, 4 * K);
	srig_note(168 * K, 4 * K);
	assert_int_equal(srig_longest(), 304 * K);
	srig_note(32 * K, 4 * K);
	assert_int_equal(srig_longest(), 304 * K);
}

static void a_gap_that_was_given_up_is_forgotten_with_the_order(void **state)
{
	(void)state;
	srig_read_on(0, 4 * K, 8);
	srig_read_on(92 * K, 4 * K, 33);
	for (int i = 0; i < 8; i++)
		srig_note(0, 4 * K);
	assert_int_equal(srig_longest(), 0);
	srig_note(92 * K + 33 * 4 * K, 4 * K);
	srig_note(32 * K, 4 * K);
	assert_int_equal(srig_longest(), 4 * K);
}

static void after_a_gap_the_reader_is_read_ahead_for_at_once(void **state)
{
	(void)state;
	srig_expect_range(srig_read_on(0, 4 * K, 2), 8 * K, 32 * K);
	srig_expect_range(srig_read_on(8 * K, 4 * K, 2), 0, 0);
	srig_expect_range(srig_note(20 * K, 4 * K), 0, 0);
	srig_expect_range(srig_note(24 * K, 4 * K), 40 * K, 52 * K);
}

static void a_stream_that_catches_up_with_another_one_goes_on(void **state)
{
	(void)state;
	srig_read_on(2 * M, 4 * K, 3);
	assert_true(srig_read_on(0, 4 * K, 512 + 3).cut_off);
	assert_true(srig_read_on(2 * M + 12 * K, 4 * K, 64).cut_off);
	assert_int_equal(srig_longest(), 2 * M + 12 * K + 64 * 4 * K);
	assert_int_equal(srig.proven.nr, 2);
	srig_check_lists();
}

static void two_readers_that_begin_400_KiB_apart_are_both_recognised(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 12 * K; at += 4 * K) {
		srig_note(at, 4 * K);
		srig_note(at + 400 * K, 4 * K);
	}
	assert_int_equal(srig_asked, 2);
	assert_int_equal(srig.proven.nr, 2);
}

static void data_that_was_read_before_is_read_ahead_again(void **state)
{
	(void)state;
	srig_read_on(0, 4 * K, 75);
	srig_asked = 0;
	srig_read_on(0, 4 * K, 8 + 1 + 4);
	assert_int_equal(srig_asked, 1);
}

static void a_stride_of_small_reads_does_not_go_on_with_a_stream_of_large_ones(void **state)
{
	(void)state;
	assert_true(srig_read_on(0, 64 * K, 64).cut_off);
	for (uint32_t i = 0; i < 1000; i++)
		srig_note(64 * 64 * K + 4 * K + i * 12 * K, 4 * K);
	srig_cut = 0;
	for (uint32_t i = 1000; i < 2000; i++)
		srig_note(64 * 64 * K + 4 * K + i * 12 * K, 4 * K);
	assert_int_equal(srig_cut, 0);
}

static void two_readers_at_one_place_are_one_stream(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 4 * M; at += 4 * K) {
		srig_note(at, 4 * K);
		srig_note(at, 4 * K);
	}
	assert_true(srig_cut > 2 * (3 * M / (4 * K)) - 8);
	assert_int_equal(srig_longest(), 4 * M);
}

static void a_reader_of_what_is_cached_in_part_stays_recognised(void **state)
{
	unsigned n = 0;

	(void)state;
	srig_seed(3);
	for (uint64_t at = 0; at < 64 * M; at += 4 * K)
		if (srig_random_below(10)) {
			srig_note(at, 4 * K);
			n += at > 2 * M;
		}
	assert_true(srig_cut > n * 99ull / 100);
	assert_true(srig_longest() > 64ull * M * 85 / 100 && srig_longest() < 64ull * M * 91 / 100);
}

static void a_reader_that_begins_beyond_an_old_edge_is_recognised_with_the_fourth_read(void **state)
{
	(void)state;
	for (uint64_t gap = 4 * K; gap <= 1 * M; gap += 4 * K) {
		srig_again();
		srig_note(100 * M, 4 * K);
		srig_read_on(100 * M + 4 * K + gap, 4 * K, 4);
		assert_true(srig_asked > 0);
	}
}

static void a_reader_that_begins_before_an_old_edge_is_recognised_a_little_later(void **state)
{
	(void)state;
	for (uint64_t gap = 4 * K; gap <= 1 * M; gap += 4 * K) {
		srig_again();
		srig_note(100 * M, 4 * K);
		srig_read_on(
			100 * M - gap, 4 * K, gap <= 64 * K ? (uint32_t)(gap / (4 * K)) + 3 : 5);
		assert_true(srig_asked > 0);
	}
}

/* ---- several ---- */

/* 32 readers of 400 reads, 256 MiB apart, and as many random reads; the share of theirs after the
 * second that are cut off. */
static double share_recognised(bool in_turn, unsigned noise_percent)
{
	uint32_t at[32] = { 0 }, reads = 0, good = 0, all = 0, who;

	streams_set(&srig, 1, AHEAD);
	while (reads < 32 * 400) {
		if (srig_random_below(100) < noise_percent) {
			srig_note(srig_random_below(32 * 65536) * 4096, 4096);
			continue;
		}
		who = in_turn ? reads % 32 : (uint32_t)srig_random_below(32);
		reads++;
		all += at[who] >= 2;
		good += srig_note(who * UINT64_C(0x10000000) + at[who] * 4096ull, 4096).cut_off &&
			at[who] >= 2;
		at[who]++;
	}
	srig_check_lists();
	return (double)good / all;
}

static void thirty_two_readers_among_random_reads_are_recognised(void **state)
{
	double share;

	(void)state;
	srig_seed(7);
	for (unsigned noise = 0; noise <= 50; noise += 25)
		for (int in_turn = 0; in_turn < 2; in_turn++) {
			srig_again();
			share = share_recognised(in_turn, noise);
			print_message("%u %% random: %.2f %%\n", noise, 100 * share);
			assert_true(share >= 0.95);
		}
}

/* ---- what is no stream ---- */

static void random_reads_are_no_stream(void **state)
{
	(void)state;
	for (uint64_t n = 1; n <= 3; n++) {
		srig_again();
		srig_seed(n);
		for (uint32_t i = 0; i < 1000000; i++)
			srig_note(srig_random_below(NR_PAGES) * 4096, 4096);
		print_message("%u ranges in a million\n", srig_asked);
		assert_true(srig_asked <= 15);
		assert_int_equal(srig_cut, 0);
		srig_check_lists();
	}
}

static void random_reads_of_a_small_region_are_hardly_ever_a_stream(void **state)
{
	const uint32_t mib[] = { 1, 4, 16, 64 };

	(void)state;
	srig_seed(4);
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t size = 4 * K; size <= 64 * K; size *= 4) {
			srig_again();
			for (uint32_t n = 0; n < 100000; n++)
				srig_note(srig_random_below(mib[i] * M / size) * size, size);
			print_message("%u MiB, %u bytes: %u ranges, %u cut off\n", mib[i], size,
				srig_asked, srig_cut);
			assert_true(srig_asked <= 500 && srig_cut <= 100);
		}
}

static void pages_that_are_read_once_in_random_order_are_no_stream(void **state)
{
	static uint32_t page[NR_PAGES / 16];
	uint32_t n = NR_PAGES / 16;

	(void)state;
	srig_seed(5);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = (uint32_t)srig_random_below(i + 1);

		page[i] = page[j];
		page[j] = i;
	}
	for (uint32_t i = 0; i < n; i++)
		srig_note(page[i] * 4096ull, 4096);
	assert_true(srig_asked <= 10);
	assert_int_equal(srig_cut, 0);
}

/* Ranks of a zipf distribution, by bisection of its sums. */
static uint64_t zipf_rank(const double *sum)
{
	double u = (double)srig_random_below(UINT64_C(1) << 52) / (double)(UINT64_C(1) << 52) *
		   sum[NR_PAGES - 1];
	uint64_t low = 0, high = NR_PAGES - 1;

	while (low < high) {
		uint64_t mid = (low + high) / 2;

		if (sum[mid] < u)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void zipf(double exponent, uint64_t step, unsigned allowed)
{
	static double sum[NR_PAGES];

	sum[0] = 1;
	for (uint32_t i = 1; i < NR_PAGES; i++)
		sum[i] = sum[i - 1] + pow(i + 1, -exponent);
	srig_again();
	for (uint32_t i = 0; i < 500000; i++)
		srig_note(zipf_rank(sum) * step % NR_PAGES * 4096, 4096);
	print_message("exponent %.1f: %u ranges in half a million\n", exponent, srig_asked);
	assert_true(srig_asked <= allowed);
	assert_int_equal(srig_cut, 0);
	srig_check_lists();
}

static void zipf_reads_are_no_stream(void **state)
{
	(void)state;
	srig_seed(6);
	zipf(0.8, 100003, 8);
	zipf(1.2, 100003, 8);
	/* The hottest pages side by side: some in order happen by chance, again and again. */
	zipf(0.8, 1, 100);
	zipf(1.2, 1, 100);
}

static void a_stride_is_no_stream(void **state)
{
	(void)state;
	for (uint32_t size = 4 * K; size <= M; size += size < 32 * K ? 4 * K : size)
		for (uint64_t stride = 2ull * size; stride <= 1024ull * size;
			stride += (stride / 8 + 4095) / 4096 * 4096) {
			srig_again();
			for (uint32_t i = 0; i < 1000; i++)
				srig_note(i * stride, size);
			assert_int_equal(srig_asked + srig_cut, 0);
		}
}

static void a_stride_with_a_gap_of_half_a_read_is_no_stream(void **state)
{
	(void)state;
	for (uint32_t size = 8 * K; size <= 512 * K; size *= 2) {
		srig_again();
		for (uint32_t i = 0; i < 2000; i++)
			srig_note(i * (uint64_t)(size + size / 2), size);
		assert_int_equal(srig_asked + srig_cut, 0);
	}
}

static void reading_backwards_is_no_stream(void **state)
{
	(void)state;
	for (uint64_t at = 64 * M; at > 0; at -= 4 * K)
		srig_note(at, 4 * K);
	assert_int_equal(srig_asked + srig_cut, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_out_of_order_go_on_with_their_stream),
		TEST(eight_readers_out_of_order_are_recognised_side_by_side),
		TEST(pages_are_asked_for_once_also_when_reads_are_out_of_order),
		TEST(the_edge_moves_over_what_was_read_early),
		TEST(a_late_read_fills_a_gap_that_was_given_up_once),
		TEST(a_gap_that_was_given_up_is_forgotten_with_the_order),
		TEST(after_a_gap_the_reader_is_read_ahead_for_at_once),
		TEST(a_stream_that_catches_up_with_another_one_goes_on),
		TEST(two_readers_that_begin_400_KiB_apart_are_both_recognised),
		TEST(data_that_was_read_before_is_read_ahead_again),
		TEST(a_stride_of_small_reads_does_not_go_on_with_a_stream_of_large_ones),
		TEST(two_readers_at_one_place_are_one_stream),
		TEST(a_reader_of_what_is_cached_in_part_stays_recognised),
		TEST(a_reader_that_begins_beyond_an_old_edge_is_recognised_with_the_fourth_read),
		TEST(a_reader_that_begins_before_an_old_edge_is_recognised_a_little_later),
		TEST(thirty_two_readers_among_random_reads_are_recognised),
		TEST(random_reads_are_no_stream),
		TEST(random_reads_of_a_small_region_are_hardly_ever_a_stream),
		TEST(pages_that_are_read_once_in_random_order_are_no_stream),
		TEST(zipf_reads_are_no_stream),
		TEST(a_stride_is_no_stream),
		TEST(a_stride_with_a_gap_of_half_a_read_is_no_stream),
		TEST(reading_backwards_is_no_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
