/* filed_work_test - the threads of filed: none sleeps while there is work for it. */
#include "peers/filed/filed_work.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <cmocka.h>

#define ROUNDS 2000

static struct filed_pool pool;
static pthread_barrier_t all;
static _Atomic uint32_t nr_run;

/* Returns when as many are in it as there are workers, and the test. */
static void meet(struct filed_work *w, void *arg, uint8_t *bounce)
{
	(void)w;
	(void)arg;
	(void)bounce;
	pthread_barrier_wait(&all);
}

static void as_much_is_done_at_once_as_there_are_workers(void **state)
{
	struct filed_work work[FILED_WORKERS];

	(void)state;
	assert_int_equal(filed_pool_open(&pool, FILED_WORKERS, NULL), 0);
	assert_int_equal(pthread_barrier_init(&all, NULL, FILED_WORKERS + 1), 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < FILED_WORKERS; i++) {
			work[i].run = meet;
			filed_pool_push(&pool, &work[i]);
		}
		pthread_barrier_wait(&all);
	}
	filed_pool_close(&pool);
	pthread_barrier_destroy(&all);
}

/* Pushes itself until it has been run so often. */
static void again(struct filed_work *w, void *arg, uint8_t *bounce)
{
	(void)arg;
	(void)bounce;
	if (atomic_fetch_add(&nr_run, 1) < ROUNDS)
		filed_pool_push(&pool, w);
	else
		pthread_barrier_wait(&all);
}

static void work_that_is_pushed_by_a_worker_is_done(void **state)
{
	struct filed_work work[2 * FILED_WORKERS];

	(void)state;
	atomic_store(&nr_run, 0);
	assert_int_equal(pthread_barrier_init(&all, NULL, FILED_WORKERS + 1), 0);
	assert_int_equal(filed_pool_open(&pool, FILED_WORKERS, NULL), 0);
	for (unsigned i = 0; i < 2 * FILED_WORKERS; i++) {
		work[i].run = again;
		filed_pool_push(&pool, &work[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_barrier_wait(&all);
	assert_int_equal(atomic_load(&nr_run), ROUNDS + 2 * FILED_WORKERS);
	filed_pool_close(&pool);
	pthread_barrier_destroy(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_much_is_done_at_once_as_there_are_workers),
		cmocka_unit_test(work_that_is_pushed_by_a_worker_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
