/* xlist_test - index-linked lists: ends, removal anywhere, two lists over one array, a random run
 * against a plain array (seed printed on failure). */
#include "xtypes/xlist.h"

#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define NODES 8u

static struct xlist_node nodes[NODES];

static void lists_init(struct xlist *a, struct xlist *b)
{
	uint32_t i;

	for (i = 0; i < NODES; i++)
		xlist_node_init(nodes, i);
	xlist_init(a, nodes);
	if (b)
		xlist_init(b, nodes);
}

/* Compares a list with `nr` expected indices, head first, in both directions (L2 to L4). */
static void expect(const struct xlist *l, const uint32_t *want, uint32_t nr)
{
	uint32_t at = xlist_head(l), last = XLIST_NONE, i;

	for (i = 0; i < nr; i++) {
		assert_true(at == want[i]);
		assert_true(xlist_prev(l, at) == last);
		assert_true(xlist_in_list(l, at));
		last = at;
		at = xlist_next(l, at);
	}
	assert_true(at == XLIST_NONE);
	assert_true(xlist_tail(l) == last);
	assert_int_equal(l->nr, nr);
}

#define EXPECT(l, ...) \
	expect(l, (uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4)

static void a_new_list_is_empty_and_its_nodes_are_out(void **state)
{
	struct xlist l;

	(void)state;
	lists_init(&l, NULL);
	expect(&l, NULL, 0);
	assert_false(xlist_in_list(&l, 0));
}

static void nodes_enter_at_either_end(void **state)
{
	struct xlist l;

	(void)state;
	lists_init(&l, NULL);
	xlist_push_head(&l, 3);
	EXPECT(&l, 3);
	xlist_push_head(&l, 4);
	xlist_push_tail(&l, 5);
	EXPECT(&l, 4, 3, 5);
}

static void nodes_leave_from_anywhere(void **state)
{
	struct xlist l;
	uint32_t i;

	(void)state;
	lists_init(&l, NULL);
	for (i = 0; i < 5; i++)
		xlist_push_tail(&l, i);
	xlist_remove(&l, 2);
	EXPECT(&l, 0, 1, 3, 4);
	xlist_remove(&l, 0);
	EXPECT(&l, 1, 3, 4);
	xlist_remove(&l, 4);
	EXPECT(&l, 1, 3);
	xlist_remove(&l, 1);
	xlist_remove(&l, 3);
	expect(&l, NULL, 0);
	assert_false(xlist_in_list(&l, 3));
}

static void moving_to_the_head_keeps_the_others_in_order(void **state)
{
	struct xlist l;
	uint32_t i;

	(void)state;
	lists_init(&l, NULL);
	for (i = 0; i < 3; i++)
		xlist_push_tail(&l, i);
	xlist_move_head(&l, 1);
	EXPECT(&l, 1, 0, 2);
	xlist_move_head(&l, 2);
	EXPECT(&l, 2, 1, 0);
	xlist_move_head(&l, 2);
	EXPECT(&l, 2, 1, 0);
}

static void two_lists_share_an_array(void **state)
{
	struct xlist a, b;

	(void)state;
	lists_init(&a, &b);
	xlist_push_tail(&a, 0);
	xlist_push_tail(&b, 1);
	xlist_push_tail(&a, 2);
	xlist_push_tail(&b, 3);
	EXPECT(&a, 0, 2);
	EXPECT(&b, 1, 3);
	xlist_remove(&a, 0);
	xlist_push_head(&b, 0);
	EXPECT(&a, 2);
	EXPECT(&b, 0, 1, 3);
}

/* One random step on the list and on the model; the model is an array, head first. */
static uint32_t random_step(struct xlist *l, uint32_t *model, uint32_t nr, uint32_t idx, int op)
{
	uint32_t i;

	if (xlist_in_list(l, idx)) {
		for (i = 0; i < nr && model[i] != idx; i++)
			;
		assert_true(i < nr);
		if (op & 1) {
			memmove(model + 1, model, i * sizeof(*model));
			model[0] = idx;
			xlist_move_head(l, idx);
			return nr;
		}
		memmove(model + i, model + i + 1, (nr - i - 1) * sizeof(*model));
		xlist_remove(l, idx);
		return nr - 1;
	}
	if (op & 1) {
		memmove(model + 1, model, nr * sizeof(*model));
		model[0] = idx;
		xlist_push_head(l, idx);
	} else {
		model[nr] = idx;
		xlist_push_tail(l, idx);
	}
	return nr + 1;
}

static void a_random_run_agrees_with_an_array(void **state)
{
	unsigned seed = 42;
	struct xlist l;
	uint32_t model[NODES] = { 0 }, nr = 0;
	int i, r;

	(void)state;
	print_message("seed %u\n", seed);
	lists_init(&l, NULL);
	for (i = 0; i < 20000; i++) {
		r = rand_r(&seed);
		nr = random_step(&l, model, nr, (uint32_t)(r >> 4) % NODES, r >> 12);
		expect(&l, model, nr);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_list_is_empty_and_its_nodes_are_out),
		cmocka_unit_test(nodes_enter_at_either_end),
		cmocka_unit_test(nodes_leave_from_anywhere),
		cmocka_unit_test(moving_to_the_head_keeps_the_others_in_order),
		cmocka_unit_test(two_lists_share_an_array),
		cmocka_unit_test(a_random_run_agrees_with_an_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
