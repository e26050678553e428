/* xwaitq_test - the queue of waiters: strict order, removal, and the protocol against lost wake-ups
 * on three threads (no time limit: a lost one hangs the test). */
#include "xtypes/xwaitq.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/rig/long.h"
#include "tests/rig/meet.h"

static void a_new_queue_is_empty(void **state)
{
	struct xwaitq q;

	(void)state;
	xwaitq_init(&q);
	assert_true(xwaitq_empty(&q));
	assert_false(xwaitq_has_waiters(&q));
	assert_null(xwaitq_pop(&q, UINT32_MAX));
	xwaitq_fini(&q);
}

static void waiters_are_popped_in_order_of_arrival(void **state)
{
	struct xwaitq q;
	struct xwait w[3] = { 0 };
	int i;

	(void)state;
	xwaitq_init(&q);
	for (i = 0; i < 3; i++)
		xwaitq_add(&q, &w[i], 1);
	assert_int_equal(xwaitq_nr(&q), 3);
	assert_true(xwaitq_has_waiters(&q));
	for (i = 0; i < 3; i++) {
		assert_true(w[i].queued);
		assert_ptr_equal(xwaitq_pop(&q, 1), &w[i]);
		assert_false(w[i].queued);
	}
	assert_null(xwaitq_pop(&q, 1));
	xwaitq_fini(&q);
}

static void a_large_need_is_not_starved_by_small_ones(void **state)
{
	struct xwaitq q;
	struct xwait large = { 0 }, small = { 0 };

	(void)state;
	xwaitq_init(&q);
	xwaitq_add(&q, &large, 10);
	xwaitq_add(&q, &small, 1);
	assert_null(xwaitq_pop(&q, 9));
	assert_ptr_equal(xwaitq_pop(&q, 10), &large);
	assert_null(xwaitq_pop(&q, 0));
	assert_ptr_equal(xwaitq_pop(&q, 9), &small);
	xwaitq_fini(&q);
}

static void a_waiter_leaves_from_anywhere_once(void **state)
{
	struct xwaitq q;
	struct xwait w[4] = { 0 };
	int i;

	(void)state;
	xwaitq_init(&q);
	for (i = 0; i < 4; i++)
		xwaitq_add(&q, &w[i], 0);
	assert_true(xwaitq_remove(&q, &w[1]));
	assert_false(xwaitq_remove(&q, &w[1]));
	assert_true(xwaitq_remove(&q, &w[0]));
	assert_true(xwaitq_remove(&q, &w[3]));
	assert_int_equal(xwaitq_nr(&q), 1);
	xwaitq_add(&q, &w[1], 0);
	assert_ptr_equal(xwaitq_pop(&q, 0), &w[2]);
	assert_ptr_equal(xwaitq_pop(&q, 0), &w[1]);
	assert_false(xwaitq_remove(&q, &w[1]));
	xwaitq_fini(&q);
}

/* ---- threads: tokens are taken by two threads and given back through a third ---- */

#define GRANTS ((int)in_short(20000, 10))

struct tokens {
	struct xwaitq q;
	_Atomic uint32_t free;
	_Atomic uint32_t used;		/* to be made free by the signaller */
	_Atomic int running;
};

struct taker {
	struct xwait w;
	_Atomic bool granted;
	struct tokens *t;
};

static bool token_take(_Atomic uint32_t *n)
{
	uint32_t old = atomic_load(n);

	while (old > 0)
		if (atomic_compare_exchange_weak(n, &old, old - 1))
			return true;
	return false;
}

static void taker_granted(struct xwait *w, void *ctx)
{
	(void)ctx;
	atomic_store(&((struct taker *)w)->granted, true);
}

/* A waiter that was popped has looked nowhere yet: it only tries again. */
static void token_wait(struct taker *k)
{
	while (!token_take(&k->t->free)) {
		atomic_store(&k->granted, false);
		xwaitq_add(&k->t->q, &k->w, 1);
		if (atomic_load_explicit(&k->t->free, memory_order_relaxed) > 0 &&
		    xwaitq_remove(&k->t->q, &k->w))
			continue;
		while (!atomic_load(&k->granted))
			sched_yield();
	}
}

static void *taker_run(void *arg)
{
	struct taker *k = arg;
	int i;

	for (i = 0; i < GRANTS; i++) {
		token_wait(k);
		atomic_fetch_add(&k->t->used, 1);
	}
	atomic_fetch_sub(&k->t->running, 1);
	return NULL;
}

static void signal_one(struct tokens *t)
{
	struct xwait *w;

	atomic_fetch_add_explicit(&t->free, 1, memory_order_relaxed);
	if (xwaitq_has_waiters(&t->q)) {
		w = xwaitq_pop(&t->q, 1);
		if (w)
			w->fn(w, t);
	}
}

static void no_wake_up_is_lost(void **state)
{
	struct tokens t = { .free = 1, .running = 2 };
	struct taker k[2] = { { .t = &t }, { .t = &t } };
	pthread_t th[2];
	int i;

	(void)state;
	xwaitq_init(&t.q);
	for (i = 0; i < 2; i++) {
		k[i].w.fn = taker_granted;
		assert_int_equal(pthread_create(&th[i], NULL, taker_run, &k[i]), 0);
	}
	while (atomic_load(&t.running) > 0 || atomic_load(&t.used) > 0) {
		if (token_take(&t.used))
			signal_one(&t);
		else
			sched_yield();
	}
	for (i = 0; i < 2; i++)
		pthread_join(th[i], NULL);
	assert_int_equal(atomic_load(&t.free), 1);
	assert_true(xwaitq_empty(&t.q));
	xwaitq_fini(&t.q);
}

/* One waiter and one signaller at once, in rounds. The condition is one plain store. After each
 * round the waiter went on by itself or was popped; neither is a lost wake-up. */
#define ROUNDS ((int)in_short(100000, 10))

struct duel {
	struct xwaitq q;
	struct xwait w;
	_Atomic int condition;		/* the last round for which it is true */
	_Atomic int arrived;
	int went_on, popped;		/* of the waiter, of the signaller */
};

static void *duel_signal(void *arg)
{
	struct duel *d = arg;
	int round;

	for (round = 1; round <= ROUNDS; round++) {
		meet(&d->arrived, 4 * round - 2);
		atomic_store_explicit(&d->condition, round, memory_order_relaxed);
		if (xwaitq_has_waiters(&d->q))
			d->popped += xwaitq_pop(&d->q, 0) != NULL;
		meet(&d->arrived, 4 * round);
	}
	return NULL;
}

static void a_signal_beside_an_add_is_seen_by_one_of_them(void **state)
{
	struct duel d = { .condition = 0 };
	int round, lost = 0;
	pthread_t t;

	(void)state;
	xwaitq_init(&d.q);
	assert_int_equal(pthread_create(&t, NULL, duel_signal, &d), 0);
	for (round = 1; round <= ROUNDS; round++) {
		meet(&d.arrived, 4 * round - 2);
		xwaitq_add(&d.q, &d.w, 0);
		if (atomic_load_explicit(&d.condition, memory_order_relaxed) == round)
			d.went_on += xwaitq_remove(&d.q, &d.w);
		meet(&d.arrived, 4 * round);
		lost += xwaitq_remove(&d.q, &d.w);
	}
	pthread_join(t, NULL);
	assert_int_equal(lost, 0);
	assert_int_equal(d.went_on + d.popped, ROUNDS);
	xwaitq_fini(&d.q);
}

static bool is_it(struct xwait *w, void *arg)
{
	return w == arg;
}

static void the_first_that_matches_is_taken_whatever_it_needs(void **state)
{
	struct xwait w[3] = { 0 };
	struct xwaitq q;

	(void)state;
	xwaitq_init(&q);
	for (int i = 0; i < 3; i++)
		xwaitq_add(&q, &w[i], 9);
	assert_ptr_equal(xwaitq_take(&q, is_it, &w[1]), &w[1]);
	assert_null(xwaitq_take(&q, is_it, &w[1]));
	assert_ptr_equal(xwaitq_pop(&q, 9), &w[0]);
	assert_ptr_equal(xwaitq_pop(&q, 9), &w[2]);
	assert_true(xwaitq_empty(&q));
	xwaitq_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_queue_is_empty),
		cmocka_unit_test(waiters_are_popped_in_order_of_arrival),
		cmocka_unit_test(a_large_need_is_not_starved_by_small_ones),
		cmocka_unit_test(a_waiter_leaves_from_anywhere_once),
		cmocka_unit_test(the_first_that_matches_is_taken_whatever_it_needs),
		cmocka_unit_test(no_wake_up_is_lost),
		cmocka_unit_test(a_signal_beside_an_add_is_seen_by_one_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
