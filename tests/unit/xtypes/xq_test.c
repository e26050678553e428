/* xq_test - the lane: order, batches, wrap, death of either side, hostile indices, two threads.
 * Runs in one process; the two-thread test yields when it cannot go on and has no time limit. */
#include "xtypes/xq.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/rig/long.h"

#define SLOTS 4u

struct lane {
	struct xq *q;
	struct xq_writer w;
	struct xq_reader r;
};

static void lane_init(struct lane *l, uint32_t nr_slots, uint64_t start)
{
	l->q = aligned_alloc(64, xq_size_bytes(nr_slots));
	assert_non_null(l->q);
	memset(l->q, 0, xq_size_bytes(nr_slots));	/* as a segment's memory is */
	xq_init(l->q, start);
	xq_writer_attach(&l->w, l->q, nr_slots);
	xq_reader_attach(&l->r, l->q, nr_slots);
}

static void size_holds_the_indices_and_all_slots(void **state)
{
	(void)state;
	assert_int_equal(xq_size_bytes(1), 192);
	assert_int_equal(xq_size_bytes(8), 192);
	assert_int_equal(xq_size_bytes(16), 256);
}

static void a_new_lane_has_no_work(void **state)
{
	struct lane l;
	uint64_t v;

	(void)state;
	lane_init(&l, SLOTS, 0);
	assert_false(xq_has_work(&l.r));
	assert_int_equal(xq_take(&l.r, &v, 1), 0);
	free(l.q);
}

static void a_batch_is_invisible_until_it_is_published(void **state)
{
	struct lane l;
	uint64_t v[SLOTS];

	(void)state;
	lane_init(&l, SLOTS, 0);
	assert_false(xq_staged(&l.w));
	assert_true(xq_push(&l.w, 7));
	assert_true(xq_push(&l.w, 8));
	assert_true(xq_staged(&l.w));
	assert_false(xq_has_work(&l.r));
	xq_publish(&l.w);
	assert_false(xq_staged(&l.w));
	assert_true(xq_has_work(&l.r));
	assert_int_equal(xq_take(&l.r, v, SLOTS), 2);
	assert_int_equal(v[0], 7);
	assert_int_equal(v[1], 8);
	free(l.q);
}

static void a_full_lane_refuses_until_the_reader_releases(void **state)
{
	struct lane l;
	uint64_t v[SLOTS], i;

	(void)state;
	lane_init(&l, SLOTS, 0);
	for (i = 0; i < SLOTS; i++)
		assert_true(xq_push(&l.w, i));
	assert_false(xq_push(&l.w, 99));
	xq_publish(&l.w);
	assert_int_equal(xq_take(&l.r, v, 2), 2);
	assert_false(xq_push(&l.w, 99));
	xq_release(&l.r, 1);
	assert_true(xq_push(&l.w, 4));
	assert_false(xq_push(&l.w, 99));
	xq_publish(&l.w);
	assert_int_equal(l.w.bad, 0);
	free(l.q);
}

static void indices_wrap_at_64_bits(void **state)
{
	struct lane l;
	uint64_t i, v;

	(void)state;
	lane_init(&l, SLOTS, UINT64_MAX - 5);
	for (i = 0; i < 20; i++) {
		assert_true(xq_push(&l.w, 2 * i));
		assert_true(xq_push(&l.w, 2 * i + 1));
		xq_publish(&l.w);
		assert_int_equal(xq_take(&l.r, &v, 1), 1);
		assert_int_equal(v, 2 * i);
		xq_release(&l.r, 1);
		assert_int_equal(xq_take(&l.r, &v, 1), 1);
		assert_int_equal(v, 2 * i + 1);
		xq_release(&l.r, 1);
	}
	assert_false(xq_has_work(&l.r));
	assert_int_equal(l.r.bad + l.w.bad, 0);
	free(l.q);
}

static void a_lane_of_one_slot_works(void **state)
{
	struct lane l;
	uint64_t v;

	(void)state;
	lane_init(&l, 1, 3);
	assert_true(xq_push(&l.w, 1));
	assert_false(xq_push(&l.w, 2));
	xq_publish(&l.w);
	assert_int_equal(xq_take(&l.r, &v, 8), 1);
	xq_release(&l.r, 1);
	assert_true(xq_push(&l.w, 2));
	free(l.q);
}

static void a_reader_that_died_before_release_sees_its_words_again(void **state)
{
	struct lane l;
	uint64_t v[SLOTS], i;

	(void)state;
	lane_init(&l, SLOTS, 0);
	for (i = 0; i < 3; i++)
		assert_true(xq_push(&l.w, 10 + i));
	xq_publish(&l.w);
	assert_int_equal(xq_take(&l.r, v, SLOTS), 3);
	xq_release(&l.r, 1);
	xq_reader_attach(&l.r, l.q, SLOTS);
	assert_int_equal(xq_take(&l.r, v, SLOTS), 2);
	assert_int_equal(v[0], 11);
	assert_int_equal(v[1], 12);
	free(l.q);
}

static void a_writer_that_died_before_publishing_leaves_nothing(void **state)
{
	struct lane l;
	uint64_t v[SLOTS];

	(void)state;
	lane_init(&l, SLOTS, 0);
	assert_true(xq_push(&l.w, 1));
	xq_publish(&l.w);
	assert_true(xq_push(&l.w, 2));
	xq_writer_attach(&l.w, l.q, SLOTS);
	assert_false(xq_staged(&l.w));
	assert_true(xq_push(&l.w, 3));
	xq_publish(&l.w);
	assert_int_equal(xq_take(&l.r, v, SLOTS), 2);
	assert_int_equal(v[0], 1);
	assert_int_equal(v[1], 3);
	free(l.q);
}

static void a_writers_successor_does_not_overwrite_what_is_unread(void **state)
{
	struct lane l;
	uint64_t i;

	(void)state;
	lane_init(&l, SLOTS, 0);
	for (i = 0; i < SLOTS; i++)
		assert_true(xq_push(&l.w, i));
	xq_publish(&l.w);
	xq_writer_attach(&l.w, l.q, SLOTS);
	assert_false(xq_push(&l.w, 99));
	free(l.q);
}

static void a_reader_does_not_follow_an_impossible_tail(void **state)
{
	struct lane l;
	uint64_t v[SLOTS];

	(void)state;
	lane_init(&l, SLOTS, 100);
	atomic_store(&l.q->tail, 100 + SLOTS + 1);
	assert_false(xq_has_work(&l.r));
	assert_int_equal(xq_take(&l.r, v, SLOTS), 0);
	assert_int_equal(l.r.bad, 2);
	atomic_store(&l.q->tail, 99);
	assert_int_equal(xq_take(&l.r, v, SLOTS), 0);
	assert_int_equal(l.r.bad, 3);
	atomic_store(&l.q->tail, 100 + SLOTS);
	assert_int_equal(xq_take(&l.r, v, SLOTS), SLOTS);
	free(l.q);
}

static void a_writer_does_not_follow_an_impossible_head(void **state)
{
	struct lane l;
	uint64_t i;

	(void)state;
	lane_init(&l, SLOTS, 100);
	for (i = 0; i < SLOTS; i++)
		assert_true(xq_push(&l.w, i));
	xq_publish(&l.w);
	atomic_store(&l.q->head, 105);		/* ahead of the tail */
	assert_false(xq_push(&l.w, 99));
	atomic_store(&l.q->head, 99);		/* further behind than there are slots */
	assert_false(xq_push(&l.w, 99));
	assert_int_equal(l.w.bad, 2);
	atomic_store(&l.q->head, 101);
	assert_true(xq_push(&l.w, 4));
	free(l.q);
}

static void a_reader_that_begins_again_has_all_words_that_it_had_not(void **state)
{
	struct lane l;
	uint64_t v[SLOTS];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		lane_init(&l, SLOTS, 100);
		for (uint64_t k = 0; k < 3; k++)
			assert_true(xq_push(&l.w, 10 + k));
		xq_publish(&l.w);
		assert_int_equal(xq_take(&l.r, v, 1), 1);
		xq_release(&l.r, 1);
		/* of what came later this reader knows, or does not */
		if (i & 1)
			xq_reader_attach(&l.r, l.q, SLOTS);
		atomic_store(&l.q->tail, i & 2 ? 7 : UINT64_MAX / 2);
		xq_reader_again(&l.r);
		assert_int_equal(xq_take(&l.r, v, SLOTS), SLOTS);
		assert_int_equal(v[0] + v[1] + v[2] + v[3], 10 + 11 + 12);
		xq_release(&l.r, SLOTS);
		assert_false(xq_has_work(&l.r));
		assert_int_equal(l.r.bad, 0);
		free(l.q);
	}
}

/* Whichever of the two it was, and whoever begins anew. */
static void a_lane_that_was_scribbled_over_works_again(void **state)
{
	struct lane l;
	uint64_t v[SLOTS];
	uint32_t n;

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		lane_init(&l, SLOTS, 100);
		assert_true(xq_push(&l.w, 1));
		xq_publish(&l.w);
		atomic_store(i & 1 ? &l.q->head : &l.q->tail, i & 2 ? 7 : UINT64_MAX / 2);
		if (i & 4)
			xq_reader_attach(&l.r, l.q, SLOTS);
		if (i & 8)
			xq_writer_attach(&l.w, l.q, SLOTS);
		for (uint64_t k = 2; k < 12; k++) {
			while (!xq_push(&l.w, k)) {
				xq_reader_again(&l.r);
				xq_release(&l.r, xq_take(&l.r, v, SLOTS));
			}
			xq_publish(&l.w);
			if (!xq_has_work(&l.r))
				xq_reader_again(&l.r);
			n = xq_take(&l.r, v, SLOTS);
			assert_int_equal(v[n - 1], k);
			xq_release(&l.r, n);
		}
		assert_int_equal(atomic_load(&l.q->head), atomic_load(&l.q->tail));
		free(l.q);
	}
}

#define STREAM in_short(200000, 5)

/* Plain memory behind the words, so that a race detector watches what publish and release order:
 * a place is used again after 32 words, and the lane holds 16. */
static uint64_t payload[32];

static bool stream_push(struct xq_writer *w, uint64_t i)
{
	payload[i % 32] = ~i;
	return xq_push(w, i);
}

static void *stream_write(void *arg)
{
	struct xq_writer *w = arg;
	uint64_t i = 0, nr = STREAM;
	unsigned burst;

	while (i < nr) {
		for (burst = 0; burst < i % 7 + 1 && i < nr && stream_push(w, i); burst++)
			i++;
		if (xq_staged(w))
			xq_publish(w);
		else
			sched_yield();
	}
	return NULL;
}

static void two_threads_pass_a_stream_in_order(void **state)
{
	struct lane l;
	uint64_t v[8], next = 0, nr = STREAM;
	uint32_t n, i, wrong = 0;
	pthread_t t;

	(void)state;
	lane_init(&l, 16, UINT64_MAX - 1000);
	assert_int_equal(pthread_create(&t, NULL, stream_write, &l.w), 0);
	while (next < nr) {
		n = xq_take(&l.r, v, 8);
		for (i = 0; i < n; i++, next++)
			wrong += v[i] != next || payload[v[i] % 32] != ~next;
		if (n)
			xq_release(&l.r, n);
		else
			sched_yield();
	}
	pthread_join(t, NULL);
	assert_int_equal(wrong, 0);
	assert_int_equal(l.r.bad + l.w.bad, 0);
	assert_false(xq_has_work(&l.r));
	free(l.q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_holds_the_indices_and_all_slots),
		cmocka_unit_test(a_new_lane_has_no_work),
		cmocka_unit_test(a_batch_is_invisible_until_it_is_published),
		cmocka_unit_test(a_full_lane_refuses_until_the_reader_releases),
		cmocka_unit_test(indices_wrap_at_64_bits),
		cmocka_unit_test(a_lane_of_one_slot_works),
		cmocka_unit_test(a_reader_that_died_before_release_sees_its_words_again),
		cmocka_unit_test(a_writer_that_died_before_publishing_leaves_nothing),
		cmocka_unit_test(a_writers_successor_does_not_overwrite_what_is_unread),
		cmocka_unit_test(a_reader_does_not_follow_an_impossible_tail),
		cmocka_unit_test(a_reader_that_begins_again_has_all_words_that_it_had_not),
		cmocka_unit_test(a_writer_does_not_follow_an_impossible_head),
		cmocka_unit_test(a_lane_that_was_scribbled_over_works_again),
		cmocka_unit_test(two_threads_pass_a_stream_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
