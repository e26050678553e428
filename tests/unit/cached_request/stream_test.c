/* stream_test - sequential readers: which reads are advised, which are cut off, which reader loses
 * its place, edges of the numbers, threads. stream_order_test.c tests which reads count as a
 * stream.
 */
#include "tests/rig/stream_rig.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

/* ---- read-ahead ---- */

static void one_read_is_no_stream(void **state)
{
	(void)state;
	srig_expect_range(srig_note(0, 4 * K), 0, 0);
	srig_expect_range(srig_note(9 * M, M), 0, 0);
	assert_int_equal(srig_cut, 0);
}

static void the_second_read_in_order_begins_to_read_ahead(void **state)
{
	(void)state;
	srig_note(40 * K, 4 * K);
	srig_expect_range(srig_note(44 * K, 4 * K), 48 * K, 32 * K);
}

static void the_third_one_does_so_when_another_read_came_between(void **state)
{
	(void)state;
	srig_note(40 * K, 4 * K);
	srig_note(900 * M, 4 * K);
	srig_expect_range(srig_note(44 * K, 4 * K), 0, 0);
	srig_note(700 * M, 4 * K);
	srig_expect_range(srig_note(48 * K, 4 * K), 52 * K, 32 * K);
}

static void the_first_window_is_at_least_twice_the_read(void **state)
{
	(void)state;
	srig_expect_range(srig_read_on(0, 64 * K, 2), 128 * K, 128 * K);
	srig_expect_range(srig_read_on(100 * M, M, 2), 2 * M, AHEAD);
}

static void the_next_range_is_asked_for_when_half_of_the_window_is_left_and_is_larger(void **state)
{
	(void)state;
	srig_expect_range(srig_read_on(0, 4 * K, 2), 8 * K, 32 * K);
	srig_expect_range(srig_read_on(8 * K, 4 * K, 3), 0, 0);
	srig_expect_range(srig_note(20 * K, 4 * K), 40 * K, 48 * K);	/* 64 KiB from 24 on */
	srig_expect_range(srig_read_on(24 * K, 4 * K, 7), 0, 0);
	srig_expect_range(srig_note(52 * K, 4 * K), 88 * K, 96 * K);	/* 128 KiB from 56 on */
}

static void the_window_grows_up_to_the_limit(void **state)
{
	struct stream_advice a;
	uint32_t largest = 0;

	(void)state;
	for (uint64_t at = 0; at < OBJECT; at += 4 * K) {
		a = srig_note(at, 4 * K);
		if (a.ahead_bytes)
			assert_true(a.ahead_from + a.ahead_bytes <= at + 4 * K + AHEAD);
		if (a.ahead_bytes && a.ahead_from + a.ahead_bytes - at - 4 * K > largest)
			largest = (uint32_t)(a.ahead_from + a.ahead_bytes - at - 4 * K);
	}
	assert_int_equal(largest, AHEAD);
}

/* What a reader of depth 1 has read, or what was read ahead for it, whose loads take no time. */
struct reader_of_pages {
	uint8_t page[16 * M / 4096 + 1024];	/* 1: is there; 2: was asked for */
	unsigned misses;
};

static void reader_read(struct reader_of_pages *r, uint64_t at, uint32_t size, bool may_miss)
{
	struct stream_advice a = srig_note(at, size);
	uint64_t ahead = at / OBJECT * OBJECT + a.ahead_from;

	for (uint64_t p = at / 4096; p <= (at + size - 1) / 4096; p++) {
		r->misses += !may_miss && !r->page[p];
		r->page[p] |= 1;
	}
	for (uint64_t p = ahead / 4096; p < (ahead + a.ahead_bytes) / 4096; p++) {
		assert_false(r->page[p] & 2);
		r->page[p] = 3;
	}
}

/* 16 MiB in order, split at the borders of objects. The first two reads may miss, or three pages of
 * smaller reads. */
static unsigned misses_of_reader(uint64_t start, uint32_t size)
{
	static struct reader_of_pages r;
	uint64_t known = start + (size < 4 * K ? 12 * K : 2 * size), left;

	memset(&r, 0, sizeof(r));
	for (uint64_t at = start; at < start + 16 * M; at += left < size ? left : size) {
		left = OBJECT - at % OBJECT;
		reader_read(&r, at, left < size ? (uint32_t)left : size,
			at < known || at % OBJECT == 0);
	}
	return r.misses;
}

static void a_reader_finds_all_read_ahead_but_the_beginnings_of_objects(void **state)
{
	const uint32_t sizes[] = { 512, 1536, 4 * K, 12 * K, 20 * K, 64 * K, 100 * K, 256 * K };

	(void)state;
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (uint32_t shift = 0; shift < 8 * K; shift += 2560) {
			srig_again();
			assert_int_equal(misses_of_reader(shift, sizes[i]), 0);
		}
}

static void ranges_of_unaligned_reads_are_of_whole_pages(void **state)
{
	(void)state;
	srig_note(512, 4 * K);
	srig_expect_range(srig_note(512 + 4 * K, 4 * K), 12 * K, 32 * K);
}

static void a_range_ends_where_the_object_ends(void **state)
{
	(void)state;
	srig_expect_range(srig_read_on(OBJECT - 24 * K, 4 * K, 2), OBJECT - 16 * K, 16 * K);
	srig_expect_range(srig_read_on(OBJECT - 16 * K, 4 * K, 4), 0, 0);
}

static void the_next_object_of_a_volume_is_read_ahead_with_a_whole_window_at_once(void **state)
{
	(void)state;
	srig_read_on(OBJECT - 24 * K, 4 * K, 6);
	srig_expect_range(srig_note(OBJECT, 4 * K), 4 * K, AHEAD);
	srig_expect_range(srig_read_on(OBJECT + 4 * K, 4 * K, 63), 0, 0);
	srig_expect_range(srig_note(OBJECT + 256 * K, 4 * K), 4 * K + AHEAD, 256 * K);
}

static struct stream_advice note_small(uint64_t offset)
{
	struct stream_advice a = stream_note(&srig, 1, 0, offset, offset % (64 * K), 4 * K);

	srig_check_advice(a, offset % (64 * K), 4 * K);
	return a;
}

static void how_long_objects_are_is_known_when_the_second_one_begins(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 64 * K; at += 4 * K)
		note_small(at);
	srig_expect_range(note_small(64 * K), 4 * K, 60 * K);
	srig_expect_range(note_small(60 * K), 0, 0);
	for (uint64_t at = 68 * K; at < 128 * K; at += 4 * K)
		srig_expect_range(note_small(at), 0, 0);
	srig_expect_range(note_small(128 * K), 4 * K, 60 * K);
}

static void nothing_is_asked_of_the_next_object_by_a_read_of_this_one(void **state)
{
	(void)state;
	srig_read_on(OBJECT - 24 * K, 4 * K, 5);
	srig_note(OBJECT, 4 * K);
	srig_expect_range(srig_note(OBJECT - 4 * K, 4 * K), 0, 0);
	srig_expect_range(srig_note(OBJECT + 4 * K, 4 * K), 8 * K, AHEAD);
}

static void objects_of_no_volume_are_streams_of_their_own(void **state)
{
	struct stream_advice a;

	(void)state;
	for (uint64_t at = 0; at < 40 * K; at += 4 * K)
		for (uint64_t hash = 1; hash <= 3; hash++) {
			a = stream_note(
				&srig, 0, hash * UINT64_C(0x123456789abcdef1), at, at, 4 * K);
			srig_check_advice(a, at, 4 * K);
			assert_int_equal(a.ahead_bytes > 0, at == 8 * K || at == 24 * K);
		}
}

static void the_same_offset_of_another_volume_or_object_is_another_stream(void **state)
{
	(void)state;
	srig_note_in(1, 0, 4 * K);
	srig_expect_range(srig_note_in(2, 4 * K, 4 * K), 0, 0);
	srig_expect_range(srig_note_in(0, 8 * K, 4 * K), 0, 0);
	srig_expect_range(srig_note_in(3, 12 * K, 4 * K), 0, 0);
	assert_false(stream_note(&srig, 0, 78, 12 * K, 12 * K, 4 * K).ahead_bytes);
}

/* ---- cut-off ---- */

static void a_stream_is_cut_off_from_when_it_is_longer_than_the_threshold(void **state)
{
	(void)state;
	srig_read_on(0, 4 * K, CUTOFF / (4 * K));
	assert_int_equal(srig_cut, 0);
	srig_read_on(CUTOFF, 4 * K, 5000);
	assert_int_equal(srig_cut, 5000);
}

static void overlapping_reads_are_counted_once(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < CUTOFF; at += 4 * K)
		assert_false(srig_note(at, 8 * K).cut_off && at + 8 * K <= CUTOFF);
	assert_int_equal(srig_longest(), CUTOFF + 4 * K);
}

static void reading_the_same_data_again_makes_no_stream_longer(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++)
		srig_read_on(0, 4 * K, CUTOFF / (4 * K));
	assert_int_equal(srig_cut, 0);
}

static void a_stream_that_lost_its_order_begins_anew(void **state)
{
	(void)state;
	assert_true(srig_read_on(0, 64 * K, 100).cut_off);
	for (unsigned i = 0; i < 20; i++)
		srig_note(6 * M, 64 * K);
	assert_int_equal(srig_longest(), 0);
	srig_asked = 0;
	for (uint64_t at = 100 * 64 * K; srig_asked == 0; at += 64 * K) {
		struct stream_advice a = srig_note(at, 64 * K);

		assert_false(a.cut_off);
		assert_true(a.ahead_bytes <= 128 * K);
	}
}

/* ---- the table ---- */

static void the_stream_that_had_no_read_for_the_longest_time_is_replaced(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 63; i++)
		srig_note(i * 16ull * M, 4 * K);
	srig_note(4 * K, 4 * K);				/* the first stream has a score */
	srig_note(1000 * 16ull * M, 4 * K);
	srig_note(1001 * 16ull * M, 4 * K);		/* in place of the second one, at 16 MiB */
	srig_note(16 * M + 4 * K, 4 * K);			/* in place of the third */
	srig_expect_range(srig_note(16 * M + 8 * K, 4 * K), 12 * K, 32 * K);
	srig_expect_range(srig_note(8 * K, 4 * K), 12 * K, 32 * K);
	srig_check_lists();
}

static void random_reads_do_not_replace_a_stream_with_a_score(void **state)
{
	(void)state;
	srig_read_on(0, 4 * K, 8);
	for (uint32_t i = 0; i < 1000; i++)
		srig_note((i + 2) * 64ull * M, 4 * K);
	assert_true(srig_longest() == 32 * K);
	srig_read_on(32 * K, 4 * K, 300);
	assert_true(srig_cut > 0);
}

static void a_stream_that_is_idle_for_long_is_replaced_though_it_has_a_score(void **state)
{
	(void)state;
	srig_read_on(0, 4 * K, 8);
	for (uint32_t i = 0; i < 1100; i++)
		srig_note((i + 2) * 64ull * M, 4 * K);
	assert_true(srig_longest() == 4 * K);
	assert_int_equal(srig.proven.nr, 0);
}

static void sixteen_places_are_kept_for_new_streams(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 64; i++)
		srig_read_on(i * 64ull * M, 4 * K, 3);
	assert_in_range(srig.proven.nr, 48, 49);
	assert_true(srig_read_on(100 * 64ull * M, 4 * K, 2).ahead_bytes > 0);
	srig_check_lists();
}

/* ---- edges of the numbers, limits, threads ---- */

static void an_offset_in_the_object_that_cannot_be_gets_no_range(void **state)
{
	const uint64_t wrong[] = { OBJECT, OBJECT + 4 * K, UINT64_C(1) << 63, UINT64_MAX - 64 * K,
		UINT64_MAX };

	(void)state;
	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		for (uint64_t at = 0; at < 256 * K; at += 4 * K)
			assert_int_equal(
				stream_note(&srig, i + 1, 0, at, wrong[i], 4 * K).ahead_bytes, 0);
}

static void objects_whose_edges_seem_near_by_chance_are_told_apart(void **state)
{
	uint64_t factor = UINT64_C(0x9e3779b97f4a7c15), inverse = factor, hash;

	(void)state;
	for (int i = 0; i < 6; i++)
		inverse *= 2 - factor * inverse;
	/* its offsets are where those of hash 1 are that are smaller by 4096 */
	hash = 1 - 4096 * inverse;
	stream_note(&srig, 0, 1, 0, 0, 4 * K);
	stream_note(&srig, 0, hash, 8 * K, 8 * K, 4 * K);
	srig_expect_range(stream_note(&srig, 0, hash, 12 * K, 12 * K, 4 * K), 16 * K, 32 * K);
}

static void a_read_of_nothing_is_not_noted(void **state)
{
	(void)state;
	srig_note(0, 4 * K);
	srig_expect_range(srig_note(4 * K, 0), 0, 0);
	srig_expect_range(srig_note(4 * K, 4 * K), 8 * K, 32 * K);
	assert_int_equal(srig.nr_notes, 2);
}

static void offsets_beyond_any_volume_are_not_noted(void **state)
{
	(void)state;
	for (uint64_t at = UINT64_MAX - 8 * M; at < UINT64_MAX - 64 * K; at += 64 * K)
		srig_note(at, 64 * K);
	srig_note(UINT64_MAX, UINT32_MAX);
	srig_note(UINT64_C(1) << 63, 4 * K);
	assert_int_equal(srig.nr_notes, 0);
	srig_read_on(0, 64 * K, 40);
	assert_int_equal(srig_longest(), 40 * 64 * K);
}

static void the_last_offsets_of_a_volume_are_a_stream_and_do_not_wrap(void **state)
{
	uint64_t start = (UINT64_C(1) << 63) - 16 * OBJECT;

	(void)state;
	for (uint64_t at = start; at < UINT64_C(1) << 63; at += 64 * K)
		srig_note(at, 64 * K);
	assert_int_equal(srig_longest(), 16 * OBJECT);
	assert_true(srig_asked > 16 * 4);
	srig_expect_range(srig_note(0, 64 * K), 0, 0);
	assert_int_equal(srig.tried.nr, STREAMS_NR - 1);
}

static void any_reads_keep_the_invariants(void **state)
{
	uint64_t at = 0;

	(void)state;
	srig_seed(8);
	for (uint32_t i = 0; i < 300000; i++) {
		uint64_t what = srig_random_below(8), far = srig_random_below(4 * M);
		uint32_t size = 1 +
				(uint32_t)srig_random_below(UINT64_C(1) << srig_random_below(21));

		at = what == 0               ? srig_random_below(64 * M)
		     : what == 1             ? at + far
		     : what == 2 && at > far ? at - far
					     : at;
		if (at % OBJECT + size > OBJECT)
			at = (at / OBJECT + 1) * OBJECT;
		srig_note_in((uint32_t)srig_random_below(3), at, size);
		at += size;
		if (i % 64 == 0)
			srig_check_lists();
	}
	assert_true(srig_asked > 0 && srig_cut > 0);
}

/* Of any magnitude. */
static uint64_t any_number(void)
{
	uint64_t n = srig_random_below(UINT64_MAX) << 11;

	return n >> srig_random_below(64);
}

static void any_numbers_are_survived(void **state)
{
	(void)state;
	srig_seed(9);
	for (uint32_t i = 0; i < 300000; i++) {
		uint64_t offset = any_number(), obj_offset = i % 2 ? any_number() : offset % OBJECT;

		stream_note(&srig, i % 3, i % 5, offset, obj_offset, (uint32_t)any_number());
	}
	srig_check_lists();
}

static void without_limits_nothing_is_noted_and_limits_hold_at_once(void **state)
{
	(void)state;
	streams_set(&srig, 0, 0);
	srig_read_on(0, 64 * K, 64);
	assert_int_equal(srig.nr_notes + srig_asked + srig_cut, 0);
	streams_set(&srig, 2 * M, 0);
	assert_true(srig_read_on(0, 64 * K, 33).cut_off);
	assert_int_equal(srig_asked, 0);
	streams_set(&srig, 0, 128 * K);
	srig_expect_range(srig_note(33 * 64 * K, 64 * K), 34 * 64 * K, 128 * K);
	assert_false(srig_read_on(34 * 64 * K, 64 * K, 10).cut_off);
	streams_set(&srig, 0, 10 * K);
	srig_asked = 0;
	srig_read_on(44 * 64 * K, 4 * K, 64);
	assert_true(srig_asked > 0);
	streams_set(&srig, 0, 4095);
	srig_asked = 0;
	srig_read_on(44 * 64 * K + 64 * 4 * K, 4 * K, 64);
	assert_int_equal(srig_asked, 0);
}

struct reader {
	pthread_t thread;
	uint32_t volume;
	uint32_t cut;
};

static void *read_in_order(void *arg)
{
	struct reader *me = arg;

	for (uint32_t i = 0; i < 20000; i++) {
		me->cut += stream_note(
			&srig, me->volume, 0, i * 4096ull, i * 4096ull % OBJECT, 4096)
				   .cut_off;
		if (i % 1000 == 0)
			streams_set(&srig, CUTOFF, i % 2000 ? AHEAD : AHEAD / 2);
	}
	return NULL;
}

static void *read_at_random(void *arg)
{
	struct reader *me = arg;

	for (uint32_t i = 0; i < 20000; i++) {
		stream_note(&srig, 9, 0, i * UINT64_C(7919) % 262144 * 4096, 0, 4096);
		stream_note(&srig, me->volume, 0, i / 16 * 16 * 4096ull + i % 7 * 4096, 0, 4096);
	}
	return NULL;
}

static void run_two(void *(*body)(void *), struct reader r[2])
{
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&r[i].thread, NULL, body, &r[i]), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(pthread_join(r[i].thread, NULL), 0);
	srig_check_lists();
}

static void two_threads_read_at_the_same_time(void **state)
{
	struct reader r[2] = { { .volume = 1 }, { .volume = 2 } };

	(void)state;
	run_two(read_in_order, r);
	assert_int_equal(srig.nr_notes, 40000);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(r[i].cut, 20000 - CUTOFF / 4096);
	run_two(read_at_random, r);
	assert_int_equal(srig.nr_notes, 120000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_read_is_no_stream),
		TEST(the_second_read_in_order_begins_to_read_ahead),
		TEST(the_third_one_does_so_when_another_read_came_between),
		TEST(the_first_window_is_at_least_twice_the_read),
		TEST(the_next_range_is_asked_for_when_half_of_the_window_is_left_and_is_larger),
		TEST(the_window_grows_up_to_the_limit),
		TEST(a_reader_finds_all_read_ahead_but_the_beginnings_of_objects),
		TEST(ranges_of_unaligned_reads_are_of_whole_pages),
		TEST(a_range_ends_where_the_object_ends),
		TEST(the_next_object_of_a_volume_is_read_ahead_with_a_whole_window_at_once),
		TEST(how_long_objects_are_is_known_when_the_second_one_begins),
		TEST(nothing_is_asked_of_the_next_object_by_a_read_of_this_one),
		TEST(objects_of_no_volume_are_streams_of_their_own),
		TEST(the_same_offset_of_another_volume_or_object_is_another_stream),
		TEST(a_stream_is_cut_off_from_when_it_is_longer_than_the_threshold),
		TEST(overlapping_reads_are_counted_once),
		TEST(reading_the_same_data_again_makes_no_stream_longer),
		TEST(a_stream_that_lost_its_order_begins_anew),
		TEST(the_stream_that_had_no_read_for_the_longest_time_is_replaced),
		TEST(random_reads_do_not_replace_a_stream_with_a_score),
		TEST(a_stream_that_is_idle_for_long_is_replaced_though_it_has_a_score),
		TEST(sixteen_places_are_kept_for_new_streams),
		TEST(an_offset_in_the_object_that_cannot_be_gets_no_range),
		TEST(objects_whose_edges_seem_near_by_chance_are_told_apart),
		TEST(a_read_of_nothing_is_not_noted),
		TEST(offsets_beyond_any_volume_are_not_noted),
		TEST(the_last_offsets_of_a_volume_are_a_stream_and_do_not_wrap),
		TEST(any_reads_keep_the_invariants),
		TEST(any_numbers_are_survived),
		TEST(without_limits_nothing_is_noted_and_limits_hold_at_once),
		TEST(two_threads_read_at_the_same_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
