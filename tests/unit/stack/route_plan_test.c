/* route_plan_test - what `xseg reload` does so that peers send where a stack file says: which
 * caches are unplugged and plugged, who is replaced, and that all routes are the file's then.
 */
#include "tools/xseg/base/route_plan.h"

#include <stdio.h>
#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/rig/xorshift.h"

static struct route_plan plan;

static uint32_t node(const char *name)
{
	uint32_t at = route_plan_find(&plan, name);

	assert_int_not_equal(at, ROUTE_NONE);
	return at;
}

/* A peer of that name; one that begins with c is a cache. */
static struct route_node *add(const char *name)
{
	struct route_node *n = &plan.node[plan.nr];
	uint32_t at = route_plan_find(&plan, name);

	if (at != ROUTE_NONE)
		return &plan.node[at];
	*n = (struct route_node){ .peer = plan.nr, .generation = plan.nr + 1, .member = plan.nr,
		.now = ROUTE_NONE, .want = ROUTE_NONE, .group = ROUTE_NONE };
	snprintf(n->name, sizeof(n->name), "%s", name);
	plan.nr++;
	return n;
}

/* "a>b b>c d" are peers and what they send to. */
static void read_routes(const char *routes, bool in_file)
{
	char text[256], *rest = text, *word, *to;
	uint32_t below;

	snprintf(text, sizeof(text), "%s", routes);
	while ((word = strsep(&rest, " "))) {
		struct route_node *n;

		to = strchr(word, '>');
		if (to)
			*to++ = '\0';
		n = add(word);
		below = to ? (uint32_t)(add(to) - plan.node) : ROUTE_NONE;
		if (in_file) {
			n->in_file = true;
			n->goes = false;
			n->want = below;
			n->cache_in_file = word[0] == 'c';
		} else {
			n->there = n->alive = n->goes = true;
			n->now = below;
			n->cache = word[0] == 'c';
		}
	}
}

static void make(const char *now, const char *file)
{
	plan.nr = 0;
	read_routes(now, false);
	read_routes(file, true);
	route_plan_make(&plan);
}

/* "-c1 +c2 a! b=": unplugged, plugged, replaced, restarted at its place; as the work goes. */
static void expect(const char *wanted)
{
	char text[512] = "";

	for (uint32_t i = 0; i < plan.nr_unplug; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "-%s ",
			plan.node[plan.unplug[i]].name);
	for (uint32_t i = 0; i < plan.nr; i++)
		if (plan.node[i].replaced)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s ",
				plan.node[i].name, plan.node[i].keeps_route ? "=" : "!");
	for (uint32_t i = 0; i < plan.nr_plug; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "+%s ",
			plan.node[plan.plug[i]].name);
	if (*text)
		text[strlen(text) - 1] = '\0';
	assert_string_equal(text, wanted);
}

static void nothing_is_done_where_nothing_differs(void **state)
{
	(void)state;
	make("v>c1 c1>c2 c2>s s", "v>c1 c1>c2 c2>s s");
	expect("");
	make("v>s c1 s", "v>s c1 s");
	expect("");
}

static void caches_enter_and_leave_while_all_serve(void **state)
{
	(void)state;
	make("v>c1 c1>s s", "v>s c1 s");
	expect("-c1");
	make("v>s c1 s", "v>c1 c1>s s");
	expect("+c1");
	/* one that is new waits for its place, one that goes leaves it first */
	make("v>s s", "v>c1 c1>s s");
	expect("+c1");
	make("v>c1 c1>s s", "v>s s");
	expect("-c1");
	make("v>c1 c1>s s", "v>c2 c2>s s");
	expect("-c1 +c2");
	/* several: those that leave top down, those that enter bottom up */
	make("v>c1 c1>c2 c2>s s", "v>s c1 c2 s");
	expect("-c1 -c2");
	make("v>s c1 c2 s", "v>c1 c1>c2 c2>s s");
	expect("+c2 +c1");
	/* the order of two is changed by one of them */
	make("v>c1 c1>c2 c2>s s", "v>c2 c2>c1 c1>s s");
	assert_int_equal(plan.nr_unplug, 1);
	assert_int_equal(plan.nr_plug, 1);
	assert_int_equal(plan.unplug[0], plan.plug[0]);
	make("v>c1 c1>s s", "v>c1 c1>c2 c2>s s c2>s");
	expect("+c2");
}

static void another_store_replaces_all_above_it(void **state)
{
	(void)state;
	make("v>c1 c1>s s z", "v>c1 c1>z z s");
	expect("v! c1!");
	assert_true(plan.node[node("v")].other_data);
	assert_false(plan.node[node("c1")].other_data);
	make("v>s s z", "v>z s z");
	expect("v!");
	/* others of the old store stay, and so does its cache */
	make("v>c1 k>c1 c1>s s z", "v>z k>c1 c1>s s z");
	expect("v!");
	/* the store goes with them */
	make("v>c1 c1>s s", "v>c1 c1>z z");
	expect("v! c1! s!");
	/* a gateway is replaced with what it serves */
	make("m>k k>s s z", "m>k k>z s z");
	expect("m! k!");
	make("m>k k>s s l>s", "m>l k>s l>s s");
	expect("m!");
}

static void a_cache_is_plugged_below_new_peers_and_old_ones(void **state)
{
	(void)state;
	make("v>s s", "v>c1 k>c1 c1>s s");
	expect("+c1");
	make("v>s s k>z z", "v>c1 k>c1 c1>s s z");
	expect("k! +c1");
	/* where all begin anew the cache finds its place free */
	make("v>z z s", "v>c1 k>c1 c1>s s z");
	expect("v!");
}

static void another_kind_replaces_it_and_all_above_it(void **state)
{
	(void)state;
	plan.nr = 0;
	read_routes("v>c1 c1>s s", false);
	read_routes("v>c1 c1>s s", true);
	plan.node[node("s")].other_kind = true;
	route_plan_make(&plan);
	expect("v! c1! s!");
	/* a cache that becomes something else is off the path before */
	plan.nr = 0;
	read_routes("v>cx cx>s s", false);
	read_routes("v>s cx s", true);
	plan.node[node("cx")].other_kind = true;
	plan.node[node("cx")].cache_in_file = false;
	route_plan_make(&plan);
	expect("-cx cx!");
}

static void a_cache_that_nobody_uses_is_started_at_its_place(void **state)
{
	(void)state;
	make("c1>s s z", "c1>z s z");
	expect("c1!");
	make("c1 s", "c1>s s v>c1");
	expect("c1!");
}

static void a_cache_that_leaves_some_for_others_is_unplugged_and_started_anew(void **state)
{
	(void)state;
	make("u>c1 v>c1 c1>s s z", "u>s v>c1 c1>z s z");
	expect("-c1 c1! v!");
}

static void peers_of_one_process_are_restarted_together(void **state)
{
	(void)state;
	plan.nr = 0;
	read_routes("v>c1 c1>s s z w>z", false);
	read_routes("v>z c1>s s z w>z", true);
	plan.node[node("v")].member = plan.node[node("w")].member;
	route_plan_make(&plan);
	expect("v! w=");
	plan.nr = 0;
	read_routes("v>c1 c1>s s", false);
	read_routes("v>c1 c1>s s", true);
	plan.node[node("v")].regrouped = plan.node[node("c1")].regrouped = true;
	plan.node[node("v")].group = plan.node[node("c1")].group = 0;
	route_plan_make(&plan);
	expect("v= c1=");
	assert_false(plan.node[node("v")].other_data);
}

static void a_peer_of_neither_stack_stays(void **state)
{
	(void)state;
	plan.nr = 0;
	read_routes("v>cf cf>s s", false);
	plan.node[node("cf")].goes = false;
	read_routes("v>s s", true);
	route_plan_make(&plan);
	expect("");
	assert_int_equal(route_plan_below(&plan, node("v")), node("s"));
	/* and is in the way of a store that goes */
	plan.nr = 0;
	read_routes("f>s s z v>z", false);
	plan.node[node("f")].goes = false;
	read_routes("v>z z", true);
	route_plan_make(&plan);
	assert_int_equal(route_plan_sender(&plan, node("s")), node("f"));
	make("v>c1 c1>s s", "v>s s");
	assert_int_equal(route_plan_sender(&plan, node("c1")), ROUTE_NONE);
	make("v>s s k>z z", "v>z k>z z");
	assert_int_equal(route_plan_sender(&plan, node("s")), ROUTE_NONE);
}

/* ---- any two stacks ---------------------------------------------------------------------- */

#define NR_STORES 3u
#define NR_CACHES 5u
#define NR_USERS  4u

/* Chains of caches above stores, and users on top: each cache in one chain or in none. */
static void make_routes(uint64_t *seed, char *text, size_t size)
{
	char top[NR_STORES][8];

	text[0] = '\0';
	for (unsigned i = 0; i < NR_STORES; i++) {
		snprintf(top[i], sizeof(top[i]), "s%u", i);
		snprintf(text + strlen(text), size - strlen(text), "%ss%u", i ? " " : "", i);
	}
	for (unsigned k = 0, first = xorshift_below(seed, NR_CACHES); k < NR_CACHES; k++) {
		unsigned cache = (k + first) % NR_CACHES, store = xorshift_below(seed, NR_STORES);

		switch (xorshift_below(seed, 4)) {
		case 0:
			break;
		case 1:
			snprintf(text + strlen(text), size - strlen(text), " c%u", cache);
			break;
		default:
			snprintf(text + strlen(text), size - strlen(text), " c%u>%s", cache,
				top[store]);
			snprintf(top[store], sizeof(top[store]), "c%u", cache);
		}
	}
	for (unsigned i = 0; i < NR_USERS; i++)
		if (xorshift_below(seed, 4))
			snprintf(text + strlen(text), size - strlen(text), " v%u>%s", i,
				top[xorshift_below(seed, NR_STORES)]);
}

static bool has_sender(const uint32_t *route, uint32_t to, uint32_t but)
{
	for (uint32_t i = 0; i < plan.nr; i++)
		if (i != but && route[i] == to)
			return true;
	return false;
}

static void switch_all(uint32_t *route, uint32_t from, uint32_t to, uint32_t but)
{
	for (uint32_t i = 0; i < plan.nr; i++)
		if (i != but && route[i] == from)
			route[i] = to;
}

static bool is_off_path(const uint32_t *route, uint32_t i)
{
	return i != ROUTE_NONE && plan.node[i].cache_in_file && route[i] == ROUTE_NONE;
}

/* A cache takes no place that others have, nor one above a cache that is off the path. Any other
 * peer begins below caches that are. */
static void begin(uint32_t *route, uint32_t i)
{
	uint32_t at = plan.node[i].want;

	if (at == ROUTE_NONE)
		return;
	if (!plan.node[i].cache_in_file)
		while (is_off_path(route, at))
			at = plan.node[at].want;
	else if (has_sender(route, at, i) || is_off_path(route, at))
		return;
	route[i] = at;
}

/* As the peers would do it. False: one of them would refuse. */
static bool carry_out(uint32_t *route)
{
	bool begun[ROUTE_PLAN_NODES], more = true;
	uint32_t i, c;

	for (i = 0; i < plan.nr_unplug; i++) {
		c = plan.unplug[i];
		if (route[c] == ROUTE_NONE || !has_sender(route, c, c))
			return false;
		switch_all(route, c, route[c], c);
		route[c] = ROUTE_NONE;
	}
	for (i = 0; i < plan.nr; i++) {
		if (plan.node[i].replaced || (plan.node[i].goes && !plan.node[i].replaced))
			route[i] = ROUTE_NONE;
		begun[i] = plan.node[i].there && !plan.node[i].replaced && !plan.node[i].goes;
	}
	/* bottom up */
	while (more) {
		more = false;
		for (i = 0; i < plan.nr; i++) {
			const struct route_node *n = &plan.node[i];

			if (begun[i] || !n->in_file || (n->want != ROUTE_NONE && !begun[n->want]))
				continue;
			begun[i] = more = true;
			begin(route, i);
		}
	}
	for (i = 0; i < plan.nr_plug; i++) {
		c = plan.plug[i];
		if (route[c] == plan.node[c].want)
			continue;
		if (route[c] != ROUTE_NONE || has_sender(route, c, c) ||
			!has_sender(route, plan.node[c].want, c))
			return false;
		switch_all(route, plan.node[c].want, c, c);
		route[c] = plan.node[c].want;
	}
	return true;
}

static void all_routes_are_those_of_the_file_in_the_end(void **state)
{
	char now[256], file[256];
	uint32_t route[ROUTE_PLAN_NODES];

	(void)state;
	for (uint64_t first = 1; first <= 20000; first++) {
		uint64_t seed = first * 0x9e3779b97f4a7c15ull;

		make_routes(&seed, now, sizeof(now));
		make_routes(&seed, file, sizeof(file));
		make(now, file);
		for (uint32_t i = 0; i < plan.nr; i++)
			route[i] = plan.node[i].now;
		if (!carry_out(route))
			fail_msg("seed %llu: a step cannot be: %s -> %s", (unsigned long long)first,
				now, file);
		for (uint32_t i = 0; i < plan.nr; i++)
			if (plan.node[i].in_file && route[i] != plan.node[i].want)
				fail_msg("seed %llu: %s sends to %s, not to %s: %s -> %s",
					(unsigned long long)first, plan.node[i].name,
					route[i] == ROUTE_NONE ? "nobody"
							       : plan.node[route[i]].name,
					plan.node[i].want == ROUTE_NONE
						? "nobody"
						: plan.node[plan.node[i].want].name,
					now, file);
	}
}

/* One whose store is the same is not stopped. */
static void users_of_the_same_store_are_not_replaced(void **state)
{
	char now[256], file[256];

	(void)state;
	for (uint64_t first = 1; first <= 20000; first++) {
		uint64_t seed = first * 0x9e3779b97f4a7c15ull;

		make_routes(&seed, now, sizeof(now));
		make_routes(&seed, file, sizeof(file));
		make(now, file);
		for (uint32_t i = 0; i < plan.nr; i++) {
			uint32_t a = i, b = i;

			if (plan.node[i].name[0] != 'v' || !plan.node[i].there ||
				!plan.node[i].in_file)
				continue;
			while (plan.node[a].now != ROUTE_NONE)
				a = plan.node[a].now;
			while (plan.node[b].want != ROUTE_NONE)
				b = plan.node[b].want;
			if (plan.node[i].replaced != (a != b))
				fail_msg("seed %llu: %s: %s -> %s", (unsigned long long)first,
					plan.node[i].name, now, file);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_done_where_nothing_differs),
		cmocka_unit_test(caches_enter_and_leave_while_all_serve),
		cmocka_unit_test(another_store_replaces_all_above_it),
		cmocka_unit_test(a_cache_is_plugged_below_new_peers_and_old_ones),
		cmocka_unit_test(another_kind_replaces_it_and_all_above_it),
		cmocka_unit_test(a_cache_that_nobody_uses_is_started_at_its_place),
		cmocka_unit_test(a_cache_that_leaves_some_for_others_is_unplugged_and_started_anew),
		cmocka_unit_test(peers_of_one_process_are_restarted_together),
		cmocka_unit_test(a_peer_of_neither_stack_stays),
		cmocka_unit_test(all_routes_are_those_of_the_file_in_the_end),
		cmocka_unit_test(users_of_the_same_store_are_not_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
