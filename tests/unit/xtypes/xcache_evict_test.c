/* xcache_evict_test - eviction from the cache of names: which entries go, which stay, which are
 * asked, and how long a search may be.
 */
#include "tests/rig/xcache_rig.h"

#include <errno.h>

/* 100 names of one character. */
static const char *name_of(uint32_t i)
{
	static char name[2];

	name[0] = (char)(i + 20);
	return name;
}

static void insert_into_a_full_cache_evicts_the_oldest(void **state)
{
	(void)state;
	cache_of(3, "abc");
	assert_int_equal(add("d"), 0);
	expect_trace("e0 p0 z0 f0 i0 ");	/* taken over: never on the free list */
	assert_false(is_active("a"));
	assert_true(is_active("b") && is_active("c") && is_active("d"));
	expect_nr(3, 0, 0);
}

static void a_hit_gives_a_second_chance(void **state)
{
	(void)state;
	cache_of(3, "abc");
	assert_true(is_active("a"));
	add("d");
	assert_false(is_active("b"));
	add("e");		/* a's chance is used up, but c is older in the list now */
	assert_true(lookup("c") == XCACHE_NONE);
	add("f");
	assert_true(lookup("a") == XCACHE_NONE);
}

static void an_entry_that_was_touched_is_passed_by_once(void **state)
{
	uint32_t a;

	(void)state;
	cache_of(3, "abc");
	a = xcache_peek_and_get_lru(&c);
	xcache_touch(&c, a);
	xcache_put(&c, a);
	add("d");
	assert_true(lookup("b") == XCACHE_NONE);
	add("e");
	add("f");
	assert_true(lookup("a") == XCACHE_NONE);
}

static void an_entry_that_was_cooled_goes_first(void **state)
{
	uint32_t c_at;

	(void)state;
	cache_of(3, "abc");
	c_at = lookup("c");
	xcache_cool(&c, c_at);
	xcache_put(&c, c_at);
	add("d");
	assert_true(lookup("c") == XCACHE_NONE);
	assert_true(is_active("a") && is_active("b") && is_active("d"));
}

static void when_all_were_hit_the_oldest_goes(void **state)
{
	(void)state;
	cache_of(3, "abc");
	assert_true(is_active("b") && is_active("a") && is_active("c"));
	add("d");
	assert_false(is_active("a"));
}

static void a_search_clears_a_bounded_number_of_bits(void **state)
{
	uint32_t i, hot = 0;

	(void)state;
	cache_init(100, NULL);
	for (i = 0; i < 100; i++) {
		add(name_of(i));
		assert_true(is_active(name_of(i)));
	}
	assert_int_equal(xcache_evict_lru(&c), XCACHE_CHANCES_MAX);
	for (i = 0; i < 100; i++)
		hot += atomic_load(&c.entries[i].hot);
	assert_int_equal(hot, 100 - XCACHE_CHANCES_MAX);
}

static void a_referenced_victim_gives_no_entry_and_the_next_is_tried(void **state)
{
	uint32_t a, idx;

	(void)state;
	cache_init(2, &note_ops);
	assert_int_equal(insert("a", &a), 0);
	add("b");
	trace[0] = '\0';
	assert_int_equal(insert("c", &idx), 0);
	expect_trace("e0 p0 e1 p1 z1 f1 i1 ");
	expect_nr(1, 1, 0);
	assert_true(xcache_state_of(&c, a) == XCACHE_EVICTED);
	xcache_put(&c, a);
	expect_trace("z0 f0 F0 ");
	expect_nr(1, 0, 1);
}

static void when_all_are_referenced_there_is_no_space(void **state)
{
	uint32_t a, b, idx;

	(void)state;
	cache_init(2, &note_ops);
	assert_int_equal(insert("a", &a), 0);
	assert_int_equal(insert("b", &b), 0);
	assert_int_equal(insert("c", &idx), -ENOSPC);
	assert_true(idx == XCACHE_NONE);
	expect_nr(0, 2, 0);
	assert_int_equal(insert("c", &idx), -ENOSPC);
	xcache_put(&c, b);
	assert_int_equal(insert("c", &idx), 0);
	assert_int_equal(idx, b);
	xcache_put(&c, a);
	expect_nr(1, 0, 1);
}

static void one_insert_evicts_a_bounded_number_of_referenced_victims(void **state)
{
	uint32_t i, idx;

	(void)state;
	cache_init(100, NULL);
	for (i = 0; i < 100; i++)
		assert_int_equal(insert(name_of(i), &idx), 0);
	assert_int_equal(insert("\x01", &idx), -ENOSPC);
	expect_nr(100 - XCACHE_VICTIMS_MAX, XCACHE_VICTIMS_MAX, 0);
}

static void a_vetoed_victim_stays_and_the_next_one_goes(void **state)
{
	(void)state;
	cache_of(3, "abc");
	veto[0] = true;
	add("d");
	assert_int_equal(asked, 2);
	assert_true(lookup("b") == XCACHE_NONE);
	veto[0] = false;
	add("e");		/* a kept its place at the tail */
	assert_true(lookup("a") == XCACHE_NONE);
}

static void vetoes_by_all_mean_no_space(void **state)
{
	uint32_t i, idx;

	(void)state;
	cache_of(2, "ab");
	for (i = 0; i < 2; i++)
		veto[i] = true;
	assert_int_equal(insert("c", &idx), -ENOSPC);
	assert_int_equal(asked, 2);
	assert_true(xcache_evict_lru(&c) == XCACHE_NONE);
	expect_nr(2, 0, 0);
}

static void a_search_stops_at_64_vetoes_and_the_next_sees_others(void **state)
{
	uint32_t i, idx;

	(void)state;
	cache_init(100, &note_ops);
	for (i = 0; i < 100; i++) {
		add(name_of(i));
		veto[i] = i < 80;
	}
	assert_int_equal(insert("\x01", &idx), -ENOSPC);
	assert_int_equal(asked, XCACHE_VETOES_MAX);
	assert_int_equal(insert("\x01", &idx), 0);
	assert_int_equal(idx, 80);
}

static void evict_lru_evicts_and_frees_an_idle_entry(void **state)
{
	(void)state;
	cache_init(2, &note_ops);
	assert_true(xcache_evict_lru(&c) == XCACHE_NONE);
	add("a");
	add("b");
	trace[0] = '\0';
	assert_int_equal(xcache_evict_lru(&c), 0);
	expect_trace("e0 p0 z0 f0 F0 ");
	expect_nr(1, 0, 1);
}

static void peeking_references_the_next_victim_and_leaves_it_active(void **state)
{
	uint32_t idx;

	(void)state;
	cache_init(2, &note_ops);
	assert_true(xcache_peek_and_get_lru(&c) == XCACHE_NONE);
	add("a");
	add("b");
	idx = xcache_peek_and_get_lru(&c);
	assert_int_equal(idx, 0);
	assert_int_equal(xcache_refs(&c, idx), 2);
	assert_int_equal(asked, 0);
	expect_nr(2, 0, 0);
	xcache_put(&c, idx);
	assert_int_equal(xcache_evict_lru(&c), idx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(insert_into_a_full_cache_evicts_the_oldest),
		T(a_hit_gives_a_second_chance),
		T(an_entry_that_was_touched_is_passed_by_once),
		T(an_entry_that_was_cooled_goes_first),
		T(when_all_were_hit_the_oldest_goes),
		T(a_search_clears_a_bounded_number_of_bits),
		T(a_referenced_victim_gives_no_entry_and_the_next_is_tried),
		T(when_all_are_referenced_there_is_no_space),
		T(one_insert_evicts_a_bounded_number_of_referenced_victims),
		T(a_vetoed_victim_stays_and_the_next_one_goes),
		T(vetoes_by_all_mean_no_space),
		T(a_search_stops_at_64_vetoes_and_the_next_sees_others),
		T(evict_lru_evicts_and_frees_an_idle_entry),
		T(peeking_references_the_next_victim_and_leaves_it_active),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
