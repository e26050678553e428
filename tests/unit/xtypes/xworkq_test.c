/* xworkq_test - the work queue: ownership, order, budget, jobs that push and free themselves, and
 * two thread tests without time limits: exclusion, and no job stranded by the hand-over. */
#include "xtypes/xworkq.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/rig/long.h"
#include "tests/rig/meet.h"

struct job {
	struct xwork w;
	int id;
};

static int done[16];
static int nr_done;

static void job_note(struct xwork *w, void *ctx)
{
	(void)ctx;
	done[nr_done++] = ((struct job *)w)->id;
}

static void job_init(struct job *j, int id, void (*fn)(struct xwork *, void *))
{
	j->w.fn = fn;
	j->id = id;
}

static int setup(void **state)
{
	(void)state;
	nr_done = 0;
	return 0;
}

static void the_first_pusher_is_the_owner_and_the_others_leave(void **state)
{
	struct xworkq q;
	struct job a, b;

	(void)state;
	xworkq_init(&q);
	assert_true(xworkq_idle(&q));
	job_init(&a, 1, job_note);
	job_init(&b, 2, job_note);
	assert_true(xworkq_push(&q, &a.w));
	assert_false(xworkq_push(&q, &b.w));
	assert_false(xworkq_idle(&q));
	assert_false(xworkq_run(&q, 10, NULL));
	assert_int_equal(nr_done, 2);
	assert_true(xworkq_idle(&q));
}

static void jobs_run_in_order_of_arrival_over_many_runs(void **state)
{
	struct xworkq q;
	struct job j[6];
	int i;

	(void)state;
	xworkq_init(&q);
	for (i = 0; i < 6; i++)
		job_init(&j[i], i, job_note);
	for (i = 0; i < 4; i++)
		assert_true(xworkq_push(&q, &j[i].w) == (i == 0));
	assert_true(xworkq_run(&q, 2, NULL));
	assert_int_equal(nr_done, 2);
	assert_false(xworkq_push(&q, &j[4].w));
	assert_false(xworkq_push(&q, &j[5].w));
	assert_true(xworkq_run(&q, 3, NULL));
	assert_int_equal(nr_done, 5);
	assert_false(xworkq_run(&q, 3, NULL));
	for (i = 0; i < 6; i++)
		assert_int_equal(done[i], i);
}

static void a_budget_that_is_just_enough_lets_go(void **state)
{
	struct xworkq q;
	struct job a;

	(void)state;
	xworkq_init(&q);
	job_init(&a, 1, job_note);
	assert_true(xworkq_push(&q, &a.w));
	assert_true(xworkq_run(&q, 0, NULL));
	assert_int_equal(nr_done, 0);
	assert_false(xworkq_run(&q, 1, NULL));
	assert_true(xworkq_idle(&q));
}

static void who_enters_an_idle_queue_shuts_the_others_out(void **state)
{
	struct xworkq q;
	struct job a;

	(void)state;
	xworkq_init(&q);
	assert_true(xworkq_try_enter(&q));
	assert_false(xworkq_try_enter(&q));
	assert_false(xworkq_leave(&q));
	assert_true(xworkq_try_enter(&q));
	job_init(&a, 1, job_note);
	assert_false(xworkq_push(&q, &a.w));
	assert_true(xworkq_leave(&q));		/* work came: the owner again */
	assert_false(xworkq_run(&q, 1, NULL));
	assert_int_equal(nr_done, 1);
}

static void who_is_alone_anyway_enters_and_leaves_all_the_same(void **state)
{
	struct xworkq q;
	struct job a;

	(void)state;
	xworkq_init(&q);
	assert_true(xworkq_enter_alone(&q));
	assert_false(xworkq_enter_alone(&q));
	assert_false(xworkq_try_enter(&q));
	assert_false(xworkq_leave_alone(&q));
	assert_true(xworkq_idle(&q));
	assert_true(xworkq_enter_alone(&q));
	job_init(&a, 1, job_note);
	assert_false(xworkq_push(&q, &a.w));
	assert_true(xworkq_leave_alone(&q));		/* work came: still the owner */
	assert_false(xworkq_enter_alone(&q));
	assert_false(xworkq_run(&q, 1, NULL));
	assert_int_equal(nr_done, 1);
	assert_true(xworkq_idle(&q));
}

static void leaving_with_jobs_taken_over_keeps_the_ownership(void **state)
{
	struct xworkq q;
	struct job a, b;

	(void)state;
	xworkq_init(&q);
	job_init(&a, 1, job_note);
	job_init(&b, 2, job_note);
	assert_true(xworkq_push(&q, &a.w));
	assert_false(xworkq_push(&q, &b.w));
	assert_true(xworkq_run(&q, 1, NULL));
	assert_true(xworkq_leave(&q));
	assert_false(xworkq_try_enter(&q));
	assert_false(xworkq_run(&q, 1, NULL));
	assert_int_equal(nr_done, 2);
}

static void job_push_itself(struct xwork *w, void *ctx)
{
	struct job *j = (struct job *)w;

	done[nr_done++] = j->id;
	if (j->id++ < 3)
		assert_false(xworkq_push(ctx, w));
}

static void a_job_may_push_itself_again(void **state)
{
	struct xworkq q;
	struct job a;

	(void)state;
	xworkq_init(&q);
	job_init(&a, 1, job_push_itself);
	assert_true(xworkq_push(&q, &a.w));
	assert_false(xworkq_run(&q, 10, &q));
	assert_int_equal(nr_done, 3);
}

static void job_free_itself(struct xwork *w, void *ctx)
{
	job_note(w, ctx);
	free(w);
}

static void a_job_may_free_itself(void **state)
{
	struct xworkq q;
	struct job *j;
	int i;

	(void)state;
	xworkq_init(&q);
	for (i = 0; i < 3; i++) {
		j = malloc(sizeof(*j));
		assert_non_null(j);
		job_init(j, i, job_free_itself);
		assert_true(xworkq_push(&q, &j->w) == (i == 0));
	}
	assert_false(xworkq_run(&q, 10, NULL));
	assert_int_equal(nr_done, 3);
}

/* ---- threads ---- */

#define THREADS 3
#define PAIR 2
#define ROUNDS ((int)in_short(100000, 10))

struct shared {
	struct xworkq q;
	_Atomic int arrived;		/* the barrier before each round */
	_Atomic int ran;		/* jobs done in all */
	_Atomic int stranded;
	uint64_t plain;			/* touched by jobs only, without a lock */
	int inside;
};

struct thread_job {
	struct xwork w;
	struct shared *s;
};

static void job_count(struct xwork *w, void *ctx)
{
	struct shared *s = ((struct thread_job *)w)->s;

	(void)ctx;
	assert(s->inside == 0);		/* W1; the race detector watches it as well */
	s->inside = 1;
	s->plain++;
	s->inside = 0;
	atomic_fetch_add_explicit(&s->ran, 1, memory_order_relaxed);
}

/* Each round: two threads push one job each at once. When both have returned, none may be left. */
static void *push_in_rounds(void *arg)
{
	struct shared *s = arg;
	struct thread_job j = { .w.fn = job_count, .s = s };
	int round;

	for (round = 0; round < ROUNDS; round++) {
		meet(&s->arrived, (2 * round + 1) * PAIR);
		if (xworkq_push(&s->q, &j.w))
			while (xworkq_run(&s->q, 2, NULL))
				;
		meet(&s->arrived, (2 * round + 2) * PAIR);
		if (atomic_load(&s->ran) < (round + 1) * PAIR) {
			atomic_fetch_add(&s->stranded, 1);
			break;		/* the other one sees the same */
		}
	}
	return NULL;
}

static void no_job_is_stranded_by_the_hand_over(void **state)
{
	struct shared s = { .plain = 0 };
	pthread_t t[PAIR];
	int i;

	(void)state;
	xworkq_init(&s.q);
	for (i = 0; i < PAIR; i++)
		assert_int_equal(pthread_create(&t[i], NULL, push_in_rounds, &s), 0);
	for (i = 0; i < PAIR; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(atomic_load(&s.stranded), 0);
	assert_int_equal(s.plain, PAIR * ROUNDS);
	assert_true(xworkq_idle(&s.q));
}

#define FREE_RUN ((int)in_short(30000, 5))

static void *push_freely(void *arg)
{
	struct shared *s = arg;
	int i, nr = FREE_RUN;
	struct thread_job *jobs = calloc((size_t)nr, sizeof(*jobs));

	assert(jobs);
	for (i = 0; i < nr; i++) {
		jobs[i].w.fn = job_count;
		jobs[i].s = s;
		if (xworkq_push(&s->q, &jobs[i].w))
			while (xworkq_run(&s->q, 16, NULL))
				;
		if (i % 8 == 0 && xworkq_try_enter(&s->q)) {
			s->plain++;
			s->plain--;
			if (xworkq_leave(&s->q))
				while (xworkq_run(&s->q, 1, NULL))
					;
		}
	}
	meet(&s->arrived, THREADS);		/* others may still run our jobs */
	while (atomic_load(&s->ran) < THREADS * nr)
		sched_yield();
	free(jobs);
	return NULL;
}

static void jobs_of_many_threads_run_one_at_a_time(void **state)
{
	struct shared s = { .plain = 0 };
	pthread_t t[THREADS];
	int i;

	(void)state;
	xworkq_init(&s.q);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, push_freely, &s), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(s.plain, THREADS * FREE_RUN);
	assert_true(xworkq_idle(&s.q));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_first_pusher_is_the_owner_and_the_others_leave, setup),
		cmocka_unit_test_setup(jobs_run_in_order_of_arrival_over_many_runs, setup),
		cmocka_unit_test_setup(a_budget_that_is_just_enough_lets_go, setup),
		cmocka_unit_test_setup(who_enters_an_idle_queue_shuts_the_others_out, setup),
		cmocka_unit_test_setup(
			who_is_alone_anyway_enters_and_leaves_all_the_same, setup),
		cmocka_unit_test_setup(leaving_with_jobs_taken_over_keeps_the_ownership, setup),
		cmocka_unit_test_setup(a_job_may_push_itself_again, setup),
		cmocka_unit_test_setup(a_job_may_free_itself, setup),
		cmocka_unit_test(no_job_is_stranded_by_the_hand_over),
		cmocka_unit_test(jobs_of_many_threads_run_one_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
