/* xbench_gen_test - the generator: ranges, boundaries, mixes, distributions, ends, and that a
 * sequence can be repeated. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "bench/xbench/plan/gen.c" /* NOLINT(bugprone-suspicious-include) */

static struct xb_options o;
static struct xb_gen g, h;

static int begin(void **state)
{
	(void)state;
	memset(&o, 0, sizeof(o));
	o.numjobs = o.iodepth = 1;
	o.bs_min = o.bs_max = 4096;
	o.size = 1u << 20;
	o.randseed = 7;
	o.rwmixread = 50;
	return 0;
}

static void init(uint64_t boundary, uint32_t job)
{
	xb_gen_init(&g, &o, boundary, job);
}

static void sequential_covers_the_range_once_in_order(void **state)
{
	struct xb_io io;
	uint64_t at = 8192;

	(void)state;
	o.rw = XB_RW_WRITE;
	o.offset = 8192;
	o.size = 10 * 4096 + 512;
	init(0, 0);
	while (xb_gen_next(&g, &io)) {
		assert_int_equal(io.op, XB_WRITE);
		assert_int_equal(io.offset, at);
		at += io.size;
	}
	assert_int_equal(at, 8192 + o.size);
	assert_int_equal(io.size, 0);
}

static void sequential_wraps_when_it_has_more_to_do(void **state)
{
	struct xb_io io;

	(void)state;
	o.rw = XB_RW_READ;
	o.size = 3 * 4096;
	o.number_ios = 7;
	init(0, 0);
	for (unsigned i = 0; i < 7; i++) {
		assert_true(xb_gen_next(&g, &io));
		assert_int_equal(io.offset, i % 3 * 4096);
		assert_int_equal(io.seq, i + 1);
	}
	assert_false(xb_gen_next(&g, &io));
}

static void reads_and_writes_in_sequence_go_on_each_for_itself(void **state)
{
	uint64_t next[XB_NR_OPS] = { 0 };
	struct xb_io io;

	(void)state;
	o.rw = XB_RW_RW;
	init(0, 0);
	while (xb_gen_next(&g, &io)) {
		assert_int_equal(io.offset, next[io.op]);
		next[io.op] += io.size;
	}
	assert_true(next[XB_READ] > 0 && next[XB_WRITE] > 0);
	assert_int_equal(next[XB_READ] + next[XB_WRITE], o.size);
}

static void every_io_stays_in_its_range_and_within_a_boundary(void **state)
{
	struct xb_io io;

	(void)state;
	o.rw = XB_RW_RANDRW;
	o.bs_min = 512;
	o.bs_max = 256 << 10;
	o.offset = 5 * 512;
	o.offset_increment = 3 * 512;
	o.size = (4u << 20) - 512;
	o.number_ios = 20000;
	o.mix[XB_TRIM] = o.mix[XB_ZEROES] = 10;
	for (uint32_t job = 0; job < 3; job++) {
		uint64_t start = o.offset + job * o.offset_increment;

		init(1u << 20, job);
		while (xb_gen_next(&g, &io)) {
			assert_true(io.size >= 512 && io.size <= o.bs_max);
			assert_int_equal(io.size % 512 + io.offset % 512, 0);
			assert_true(io.offset >= start && io.offset + io.size <= start + o.size);
			assert_int_equal(io.offset >> 20, (io.offset + io.size - 1) >> 20);
		}
	}
}

static void sizes_of_a_range_are_equally_likely_multiples_of_the_smaller(void **state)
{
	unsigned seen[9] = { 0 };
	struct xb_io io;

	(void)state;
	o.rw = XB_RW_RANDREAD;
	o.bs_max = 32768;
	o.size = 1ull << 40;
	o.number_ios = 80000;
	init(0, 0);
	while (xb_gen_next(&g, &io)) {
		assert_int_equal(io.size % 4096, 0);
		seen[io.size / 4096]++;
	}
	for (unsigned i = 1; i <= 8; i++)
		assert_in_range(seen[i], 9400, 10600);
}

static void uniform_offsets_reach_every_block(void **state)
{
	unsigned seen[64] = { 0 };
	struct xb_io io;

	(void)state;
	o.rw = XB_RW_RANDREAD;
	o.size = 64 * 4096;
	o.number_ios = 64000;
	init(0, 0);
	while (xb_gen_next(&g, &io))
		seen[io.offset / 4096]++;
	for (unsigned i = 0; i < 64; i++)
		assert_in_range(seen[i], 800, 1200);
}

static void shares_of_a_mix_are_as_asked(void **state)
{
	unsigned seen[XB_NR_OPS] = { 0 };
	struct xb_io io;

	(void)state;
	o.rw = XB_RW_RANDRW;
	o.rwmixread = 70;
	o.number_ios = 100000;
	o.mix[XB_TRIM] = 10;
	o.mix[XB_FLUSH] = 5;
	o.mix[XB_INFO] = 5;
	init(0, 0);
	while (xb_gen_next(&g, &io))
		seen[io.op]++;
	assert_in_range(seen[XB_TRIM], 9600, 10400);
	assert_in_range(seen[XB_FLUSH], 4700, 5300);
	assert_in_range(seen[XB_INFO], 4700, 5300);
	assert_in_range(seen[XB_READ], 55200, 56800);
	assert_in_range(seen[XB_WRITE], 23300, 24700);
	assert_int_equal(seen[XB_COPY] + seen[XB_ZEROES], 0);
}

static void all_reads_means_all_reads(void **state)
{
	struct xb_io io;

	(void)state;
	o.rw = XB_RW_RANDRW;
	o.rwmixread = 100;
	o.number_ios = 100000;
	init(0, 0);
	while (xb_gen_next(&g, &io))
		assert_int_equal(io.op, XB_READ);
}

static void a_barrier_follows_every_n_writes(void **state)
{
	unsigned writes = 0, barriers = 0;
	struct xb_io io;

	(void)state;
	o.rw = XB_RW_RANDWRITE;
	o.fsync = 10;
	o.number_ios = 100;
	init(0, 0);
	while (xb_gen_next(&g, &io)) {
		writes += io.op == XB_WRITE;
		if (io.barrier) {
			assert_int_equal(io.op, XB_FLUSH);
			assert_int_equal(writes, 10 * ++barriers);
		}
	}
	assert_int_equal(writes, 100);
	assert_int_equal(barriers, 10);
}

static void the_same_seed_makes_the_same_sequence_and_jobs_differ(void **state)
{
	unsigned same = 0, nr = 0;
	struct xb_io a, b;

	(void)state;
	o.rw = XB_RW_RANDRW;
	o.bs_min = 512;
	o.bs_max = 65536;
	o.zipf = 1.1;
	o.number_ios = 5000;
	o.mix[XB_TRIM] = 5;
	init(0, 3);
	xb_gen_init(&h, &o, 0, 3);
	while (xb_gen_next(&g, &a)) {
		assert_true(xb_gen_next(&h, &b));
		assert_true(a.op == b.op && a.offset == b.offset && a.size == b.size &&
			    a.seq == b.seq);
	}
	init(0, 1);
	xb_gen_init(&h, &o, 0, 2);
	for (; xb_gen_next(&g, &a) && xb_gen_next(&h, &b); nr++)
		same += a.offset == b.offset && a.size == b.size;
	assert_true(same < nr / 10);
}

static void a_restart_repeats_the_ios_and_counts_on(void **state)
{
	struct xb_io first[50], io;

	(void)state;
	o.rw = XB_RW_RANDWRITE;
	o.fsync = 3;				/* the last two of each time have none */
	o.number_ios = 38;
	init(0, 0);
	for (unsigned i = 0; i < 50; i++)
		assert_true(xb_gen_next(&g, &first[i]));
	assert_false(xb_gen_next(&g, &io));
	xb_gen_restart(&g);
	for (unsigned i = 0; i < 50; i++) {
		assert_true(xb_gen_next(&g, &io));
		assert_int_equal(io.op, first[i].op);
		assert_int_equal(io.offset, first[i].offset);
		assert_int_equal(io.seq, 51 + i);
	}
}

/* The share of each of the first ranks against the law, within five standard deviations. */
static void assert_zipf(double exponent, uint64_t n)
{
	enum { DRAWS = 400000, RANKS = 20 };
	static unsigned seen[RANKS + 1];
	uint64_t rng = 42, rank;
	struct xb_zipf z;
	double sum = 0;

	memset(seen, 0, sizeof(seen));
	for (uint64_t k = 1; k <= n; k++)
		sum += pow((double)k, -exponent);
	xb_zipf_init(&z, exponent, n);
	for (unsigned i = 0; i < DRAWS; i++) {
		rank = xb_zipf_rank(&z, &rng);
		assert_true(rank >= 1 && rank <= n);
		if (rank <= RANKS)
			seen[rank]++;
	}
	for (unsigned k = 1; k <= RANKS && k <= n; k++) {
		double p = pow(k, -exponent) / sum, off = fabs(seen[k] - DRAWS * p);

		assert_true(off <= 5 * sqrt(DRAWS * p * (1 - p)) + 1);
	}
}

static void zipf_follows_its_law(void **state)
{
	(void)state;
	assert_zipf(0.5, 100000);
	assert_zipf(0.99, 1000);
	assert_zipf(1, 100000);
	assert_zipf(1.2, 1000000);
	assert_zipf(3, 50);
	assert_zipf(1.2, 1);
	assert_zipf(1.2, 2);
}

static void zipf_ranks_are_spread_over_all_blocks(void **state)
{
	static uint8_t hit[1000];
	unsigned nr = 0;

	(void)state;
	o.rw = XB_RW_RANDREAD;
	o.zipf = 1.1;
	o.size = 1000 * 4096;
	init(0, 0);
	for (uint64_t rank = 0; rank < 1000; rank++) {
		uint64_t block = rank * g.zipf.step % 1000;

		nr += !hit[block];
		hit[block] = 1;
	}
	assert_int_equal(nr, 1000);
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sequential_covers_the_range_once_in_order),
		TEST(sequential_wraps_when_it_has_more_to_do),
		TEST(reads_and_writes_in_sequence_go_on_each_for_itself),
		TEST(every_io_stays_in_its_range_and_within_a_boundary),
		TEST(sizes_of_a_range_are_equally_likely_multiples_of_the_smaller),
		TEST(uniform_offsets_reach_every_block),
		TEST(shares_of_a_mix_are_as_asked),
		TEST(all_reads_means_all_reads),
		TEST(a_barrier_follows_every_n_writes),
		TEST(the_same_seed_makes_the_same_sequence_and_jobs_differ),
		TEST(a_restart_repeats_the_ios_and_counts_on),
		TEST(zipf_follows_its_law),
		TEST(zipf_ranks_are_spread_over_all_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
