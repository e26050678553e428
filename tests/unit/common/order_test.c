/* order_test - the order of overlapping requests, against a plain list of all requests. */
#include "peers/common/blocker/order.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define NR_OPS	   64
#define NR_ROUNDS  20000
#define NR_THREADS 3

struct op {
	struct order_op order;			/* first */
	enum { OUT, WAITING, STARTED } state;
	uint64_t arrival;
};

static bool ranges_conflict(const struct order_range *a, const struct order_range *b)
{
	return a->hash == b->hash && (a->exclusive || b->exclusive) && a->from < b->to &&
		b->from < a->to;
}

static bool ops_conflict(const struct op *a, const struct op *b)
{
	uint32_t i, k;

	for (i = 0; i < a->order.nr; i++)
		for (k = 0; k < b->order.nr; k++)
			if (ranges_conflict(&a->order.range[i], &b->order.range[k]))
				return true;
	return false;
}

static void add_random_range(struct op *op, unsigned *seed)
{
	uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) * (1 + (unsigned)rand_r(seed) % 3);
	uint64_t from = (unsigned)rand_r(seed) % 100, len = (unsigned)rand_r(seed) % 20;

	if (rand_r(seed) % 16 == 0)
		order_op_add(&op->order, hash, 0, ORDER_END, rand_r(seed) % 2);
	else
		order_op_add(&op->order, hash, from, from + len, rand_r(seed) % 2);
}

/* An op must be started exactly when no earlier one that is in conflicts with it. */
static void check(struct op *ops)
{
	bool free_to_start;
	uint32_t i, k;

	for (i = 0; i < NR_OPS; i++) {
		if (ops[i].state == OUT)
			continue;
		free_to_start = true;
		for (k = 0; k < NR_OPS; k++)
			if (ops[k].state != OUT && ops[k].arrival < ops[i].arrival)
				free_to_start &= !ops_conflict(&ops[k], &ops[i]);
		assert_int_equal(ops[i].state == STARTED, free_to_start);
	}
}

static void op_leave(struct order *o, struct op *op)
{
	struct order_op *ready;

	op->state = OUT;
	for (ready = order_leave(o, &op->order); ready; ready = ready->next) {
		assert_int_equal(((struct op *)ready)->state, WAITING);
		((struct op *)ready)->state = STARTED;
	}
}

/* Whatever is left: of those that wait, the earliest of all waits for one that has started. */
static void leave_all(struct order *o, struct op *ops)
{
	for (unsigned n = 0; n < NR_OPS; n++)
		for (unsigned i = 0; i < NR_OPS; i++)
			if (ops[i].state == STARTED)
				op_leave(o, &ops[i]);
}

static void ops_start_when_all_earlier_conflicts_are_gone(void **state)
{
	static struct op ops[NR_OPS];
	unsigned seed = (unsigned)time(NULL), round;
	struct order o;
	uint64_t arrival = 0;
	struct op *op;

	(void)state;
	print_message("seed %u\n", seed);
	memset(ops, 0, sizeof(ops));
	order_init(&o);
	for (round = 0; round < NR_ROUNDS; round++) {
		op = &ops[(unsigned)rand_r(&seed) % NR_OPS];
		if (op->state == OUT) {
			order_op_init(&op->order);
			add_random_range(op, &seed);
			if (rand_r(&seed) % 4 == 0)
				add_random_range(op, &seed);
			op->arrival = arrival++;
			op->state = order_enter(&o, &op->order) ? STARTED : WAITING;
		} else if (op->state == STARTED) {
			op_leave(&o, op);
		}
		if (round % 8 == 0)
			check(ops);
	}
	leave_all(&o, ops);
	check(ops);
	assert_int_equal(order_nr(&o), 0);
	order_fini(&o);
}

/* ---- threads ----------------------------------------------------------------------------- */

static struct order shared;
/* Readers, or -1: a writer; relaxed atomics, by builtins. */
static int32_t cells[3][100];

static void touch(const struct order_range *r, int enter)
{
	int32_t was;
	uint64_t at;

	for (at = r->from; at < r->to; at++) {
		was = __atomic_fetch_add(&cells[r->hash >> 32][at], r->exclusive ? -enter : enter,
			__ATOMIC_RELAXED);
		if (enter > 0 && (r->exclusive ? was != 0 : was < 0))
			abort();
	}
}

static void *run(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg, i, k, object;
	struct order_op *list, **last;
	struct order_op *op;

	for (i = 0; i < 4000; i++) {
		op = calloc(1, sizeof(*op));
		order_op_init(op);
		for (k = 0; k <= (unsigned)rand_r(&seed) % 2; k++) {
			object = (unsigned)rand_r(&seed) % 3;
			order_op_add(op, (uint64_t)object << 32 | object << 8, 50u * k,
				50u * k + (unsigned)rand_r(&seed) % 50, rand_r(&seed) % 2);
		}
		list = order_enter(&shared, op) ? op : NULL;
		while ((op = list)) {
			list = op->next;
			for (k = 0; k < op->nr; k++)
				touch(&op->range[k], 1);
			for (k = 0; k < op->nr; k++)
				touch(&op->range[k], -1);
			for (last = &list; *last; last = &(*last)->next)
				;
			*last = order_leave(&shared, op);
			free(op);
		}
	}
	return NULL;
}

static void threads_never_meet_in_a_range(void **state)
{
	pthread_t thread[NR_THREADS];
	uintptr_t i;

	(void)state;
	order_init(&shared);
	for (i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run, (void *)(i + 1)), 0);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(order_nr(&shared), 0);
	order_fini(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ops_start_when_all_earlier_conflicts_are_gone),
		cmocka_unit_test(threads_never_meet_in_a_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
