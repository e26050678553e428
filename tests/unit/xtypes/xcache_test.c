/* xcache_test - the cache of names with 2 to 5 entries: the state table's edges with their hooks in
 * order (eviction is in xcache_evict_test.c), names from hostile memory, recovery. */
#include "tests/rig/xcache_rig.h"

#include <errno.h>

/* ---- start ---- */

static uint32_t nodes_made, node_that_fails;

static int node_count(void *arg, uint32_t idx)
{
	(void)arg;
	assert_int_equal(idx, nodes_made);
	nodes_made++;
	return idx == node_that_fails ? -EIO : 0;
}

static void each_node_is_initialized_once(void **state)
{
	const struct xcache_ops ops = { .node_init = node_count };

	(void)state;
	nodes_made = 0;
	node_that_fails = UINT32_MAX;
	cache_init(5, &ops);
	assert_int_equal(nodes_made, 5);
	expect_nr(0, 0, 5);
}

static void a_failing_node_fails_the_start(void **state)
{
	const struct xcache_ops ops = { .node_init = node_count };
	struct xcache_params p = params_of(5, &ops);

	(void)state;
	nodes_made = 0;
	node_that_fails = 2;
	assert_int_equal(xcache_init(&c, &p), -EIO);
	assert_int_equal(nodes_made, 3);
}

static void impossible_parameters_are_refused(void **state)
{
	const struct xcache_params good = params_of(1, NULL);
	struct xcache_params p = good;

	(void)state;
	p.nr_entries = 0;
	assert_int_equal(xcache_init(&c, &p), -EINVAL);
	p = good;
	p.names = NULL;
	assert_int_equal(xcache_init(&c, &p), -EINVAL);
	p = good;
	p.name_max = STRIDE + 1;
	assert_int_equal(xcache_init(&c, &p), -EINVAL);
	p.name_max = 1;
	assert_int_equal(xcache_init(&c, &p), -EINVAL);
}

static void private_memory_is_below_the_designs_limit(void **state)
{
	(void)state;
	assert_true(xcache_mem_bytes(1u << 20) <= (1u << 20) * 64);
	assert_true(xcache_mem_bytes((1u << 20) + 1) <= ((1u << 20) + 1) * 90);
}

/* ---- lookup and insert ---- */

/* Its own room, with something else behind the end. */
static bool is_called(uint32_t idx, const char *name, size_t len, char behind)
{
	char room[STRIDE];

	memset(room, behind, sizeof(room));
	memcpy(room, name, len);
	if (len < sizeof(room))
		room[len] = '\0';
	return xcache_is_active(&c, idx, room, 'h');
}

/* Names of all lengths, and such as differ from them in each place. */
static void an_entry_is_active_under_its_name_alone(void **state)
{
	char name[STRIDE + 1], other[STRIDE + 1];
	uint32_t idx;

	(void)state;
	cache_init(STRIDE, &note_ops);
	for (size_t len = 1; len < STRIDE; len++) {
		memset(name, 'n', sizeof(name));
		name[len] = '\0';
		assert_int_equal(xcache_insert(&c, name, 'h', &idx), 0);
		for (int behind = 0; behind < 256; behind++)
			assert_true(is_called(idx, name, len, (char)behind));
		assert_false(is_called(idx, name, len - 1, 'n'));
		memset(other, 'n', sizeof(other));
		assert_false(is_called(idx, other, len + 1, '\0'));
		for (size_t at = 0; at < len; at++) {
			memcpy(other, name, sizeof(other));
			other[at] ^= (char)0x80;
			assert_false(is_called(idx, other, len, '\0'));
			other[at] = 'o';
			assert_false(is_called(idx, other, len, '\0'));
		}
		assert_false(xcache_is_active(&c, idx, name, 'i'));
	}
}

static void an_inserted_name_is_found_and_referenced(void **state)
{
	uint32_t idx;

	(void)state;
	cache_init(4, &note_ops);
	assert_true(lookup("a") == XCACHE_NONE);
	assert_int_equal(insert("a", &idx), 0);
	expect_trace("i0 ");
	assert_int_equal(xcache_refs(&c, idx), 2);
	assert_string_equal(xcache_name(&c, idx), "a");
	assert_int_equal(xcache_hash_of(&c, idx), 'a');
	assert_int_equal(xcache_guess(&c, 'a'), idx);
	xcache_prefetch(&c, 'a');
	xcache_prefetch_entry(&c, idx);
	assert_int_equal(lookup("a"), idx);
	assert_int_equal(xcache_refs(&c, idx), 3);
	xcache_get(&c, idx);
	xcache_put(&c, idx);
	xcache_put(&c, idx);
	xcache_put(&c, idx);
	assert_int_equal(xcache_refs(&c, idx), 1);
	expect_nr(1, 0, 3);
	expect_trace("");
}

static void names_of_one_hash_are_told_apart(void **state)
{
	uint32_t a, b;

	(void)state;
	cache_init(4, &note_ops);
	a = add("x1");
	b = add("x2");
	assert_int_not_equal(a, b);
	assert_int_equal(lookup("x1"), a);
	assert_int_equal(lookup("x2"), b);
	assert_true(lookup("x3") == XCACHE_NONE);
	assert_int_equal(xcache_refs(&c, a), 2);	/* the comparison let go */
}

static void inserting_an_active_name_returns_its_entry(void **state)
{
	uint32_t again;

	(void)state;
	cache_of(2, "a");
	assert_int_equal(insert("a", &again), -EEXIST);
	assert_int_equal(again, 0);
	assert_int_equal(xcache_refs(&c, 0), 2);
	expect_trace("");
}

static void a_name_that_does_not_fit_is_refused(void **state)
{
	uint32_t idx;

	(void)state;
	cache_init(2, &note_ops);
	assert_int_equal(insert("", &idx), -EINVAL);
	assert_int_equal(insert("0123456789abcdef", &idx), -ENAMETOOLONG);
	assert_true(idx == XCACHE_NONE);
	assert_true(lookup("0123456789abcdef") == XCACHE_NONE);
	assert_int_equal(insert("0123456789abcde", &idx), 0);
	assert_int_equal(lookup("0123456789abcde"), idx);
}

/* ---- removal and re-insertion ---- */

static void a_removed_entry_lives_until_its_last_reference(void **state)
{
	uint32_t a;

	(void)state;
	cache_init(2, &note_ops);
	assert_int_equal(insert("a", &a), 0);
	trace[0] = '\0';
	assert_true(xcache_remove(&c, a));
	expect_trace("e0 p0 ");
	assert_false(xcache_remove(&c, a));
	assert_true(lookup("a") == XCACHE_NONE);
	assert_string_equal(xcache_name(&c, a), "a");
	expect_nr(0, 1, 1);
	xcache_get(&c, a);
	xcache_put(&c, a);
	expect_trace("");
	xcache_put(&c, a);
	expect_trace("z0 f0 F0 ");
	expect_nr(0, 0, 2);
}

static void invalidate_removes_by_name(void **state)
{
	(void)state;
	cache_of(2, "a");
	assert_int_equal(xcache_invalidate(&c, "b", 'b'), -ENOENT);
	expect_trace("");
	assert_int_equal(xcache_invalidate(&c, "a", 'a'), 0);
	expect_trace("e0 p0 z0 f0 F0 ");
	assert_int_equal(xcache_invalidate(&c, "a", 'a'), -ENOENT);
	expect_nr(0, 0, 2);
}

static void insert_of_an_evicted_name_reinserts_its_entry(void **state)
{
	uint32_t a, again;

	(void)state;
	cache_init(2, &note_ops);
	assert_int_equal(insert("a", &a), 0);
	assert_true(xcache_remove(&c, a));
	trace[0] = '\0';
	assert_int_equal(insert("a", &again), 1);
	assert_int_equal(again, a);
	expect_trace("r0 ");
	assert_int_equal(xcache_refs(&c, a), 3);
	assert_int_equal(lookup("a"), a);
	xcache_put(&c, a);
	xcache_put(&c, a);
	xcache_put(&c, a);
	expect_trace("");
	expect_nr(1, 0, 1);
}

static void an_evicted_entry_that_is_referenced_is_found_and_stays_evicted(void **state)
{
	uint32_t a;

	(void)state;
	cache_init(2, &note_ops);
	assert_int_equal(xcache_find(&c, "a", hash_of("a")), XCACHE_NONE);
	assert_int_equal(insert("a", &a), 0);
	assert_int_equal(xcache_find(&c, "a", hash_of("a")), a);
	assert_true(xcache_remove(&c, a));
	assert_int_equal(lookup("a"), XCACHE_NONE);
	assert_int_equal(xcache_find(&c, "a", hash_of("a")), a);
	assert_int_equal(xcache_find(&c, "ab", hash_of("ab")), XCACHE_NONE);
	assert_int_equal(xcache_refs(&c, a), 3);
	expect_nr(0, 1, 1);
	xcache_put(&c, a);
	xcache_put(&c, a);
	xcache_put(&c, a);
	assert_int_equal(xcache_find(&c, "a", hash_of("a")), XCACHE_NONE);
}

static void reinsertion_works_in_a_full_cache(void **state)
{
	uint32_t a, idx;

	(void)state;
	cache_init(2, &note_ops);
	assert_int_equal(insert("a", &a), 0);
	add("b");
	assert_true(xcache_remove(&c, a));
	trace[0] = '\0';
	assert_int_equal(insert("a", &idx), 1);
	expect_trace("r0 ");
}

static void an_idle_evicted_entry_is_not_reinserted(void **state)
{
	(void)state;
	cache_of(2, "a");
	assert_true(xcache_remove(&c, 0));
	trace[0] = '\0';
	add("a");
	expect_trace("i0 ");
}

/* All of one hash, evicted while they are in use: each order of leaving takes the first, a middle
 * and the last one out of the same chain. */
static void evicted_entries_of_one_hash_are_told_apart_in_any_order(void **state)
{
	static const char *const same[] = { "a1", "a2", "a3", "a4" };
	static const uint8_t orders[][4] = { { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 },
		{ 2, 0, 3, 1 } };
	uint32_t idx[4], again;

	(void)state;
	for (unsigned o = 0; o < 4; o++) {
		cache_init(5, NULL);
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(insert(same[i], &idx[i]), 0);
			assert_true(xcache_remove(&c, idx[i]));
		}
		expect_nr(0, 4, 1);
		for (unsigned n = 0; n < 4; n++) {
			unsigned i = orders[o][n];

			if (n % 2)
				xcache_put(&c, idx[i]);
			else
				assert_int_equal(insert(same[i], &again), 1);
			assert_true(n % 2 || again == idx[i]);
			xcache_check(&c);
		}
		expect_nr(2, 0, 3);
		xcache_fini(&c);
	}
	cache_init(1, NULL);
}

static uint32_t inner;

static void reinsert_victim(uint32_t idx)
{
	(void)idx;
	assert_int_equal(insert("a", &inner), 1);
}

static void a_victim_reinserted_during_post_evict_gives_no_entry(void **state)
{
	uint32_t idx;

	(void)state;
	cache_of(2, "ab");
	in_post_evict = reinsert_victim;
	assert_int_equal(insert("c", &idx), 0);
	expect_trace("e0 p0 r0 e1 p1 z1 f1 i1 ");
	assert_int_equal(inner, 0);
	assert_int_equal(xcache_refs(&c, 0), 2);
}

static void insert_wanted_name(uint32_t idx)
{
	(void)idx;
	assert_int_equal(insert("c", &inner), 0);
}

static void a_name_that_came_during_post_evict_is_found_and_the_entry_freed(void **state)
{
	uint32_t idx;

	(void)state;
	cache_of(2, "ab");
	in_post_evict = insert_wanted_name;
	assert_int_equal(insert("c", &idx), -EEXIST);
	assert_int_equal(idx, inner);
	expect_trace("e0 p0 e1 p1 z1 f1 i1 z0 f0 F0 ");
	expect_nr(1, 0, 1);
	assert_int_equal(xcache_refs(&c, idx), 3);
}

/* ---- recovery ---- */

static void a_successor_restores_entries_from_their_names(void **state)
{
	uint32_t idx;

	(void)state;
	cache_of(4, "abc");
	xcache_fini(&c);			/* the predecessor dies; names stay */
	cache_init(4, &note_ops);
	assert_int_equal(xcache_restore(&c, 2, 'c'), 0);
	assert_int_equal(xcache_restore(&c, 1, 'b'), 0);
	expect_trace("");
	expect_nr(2, 0, 2);
	assert_true(lookup("a") == XCACHE_NONE);
	assert_int_equal(lookup("b"), 1);
	xcache_put(&c, 1);
	assert_int_equal(add("d"), 0);		/* free entries are those not restored */
	assert_int_equal(add("e"), 3);
	add("f");
	assert_true(lookup("c") == XCACHE_NONE);	/* restored first, evicted first */
	assert_int_equal(insert("b", &idx), -EEXIST);
}

static void restoring_nonsense_is_refused(void **state)
{
	(void)state;
	cache_init(4, &note_ops);
	memset(names, 'x', sizeof(names));
	memcpy(names + 1 * STRIDE, "a", sizeof("a"));
	memcpy(names + 2 * STRIDE, "a", sizeof("a"));
	memcpy(names + 3 * STRIDE, "", sizeof(""));
	assert_int_equal(xcache_restore(&c, 4, 0), -EINVAL);
	assert_int_equal(xcache_restore(&c, XCACHE_NONE, 0), -EINVAL);
	assert_int_equal(xcache_restore(&c, 0, 'x'), -EINVAL);
	assert_int_equal(xcache_restore(&c, 3, 0), -EINVAL);
	assert_int_equal(xcache_restore(&c, 1, 'a'), 0);
	assert_int_equal(xcache_restore(&c, 1, 'a'), -EBUSY);
	assert_int_equal(xcache_restore(&c, 2, 'a'), -EEXIST);
	expect_nr(1, 0, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_node_is_initialized_once),
		cmocka_unit_test(a_failing_node_fails_the_start),
		cmocka_unit_test(impossible_parameters_are_refused),
		cmocka_unit_test(private_memory_is_below_the_designs_limit),
		T(an_entry_is_active_under_its_name_alone),
		T(an_inserted_name_is_found_and_referenced),
		T(names_of_one_hash_are_told_apart),
		T(inserting_an_active_name_returns_its_entry),
		T(a_name_that_does_not_fit_is_refused),
		T(a_removed_entry_lives_until_its_last_reference),
		T(invalidate_removes_by_name),
		T(insert_of_an_evicted_name_reinserts_its_entry),
		T(an_evicted_entry_that_is_referenced_is_found_and_stays_evicted),
		T(reinsertion_works_in_a_full_cache),
		T(an_idle_evicted_entry_is_not_reinserted),
		T(evicted_entries_of_one_hash_are_told_apart_in_any_order),
		T(a_victim_reinserted_during_post_evict_gives_no_entry),
		T(a_name_that_came_during_post_evict_is_found_and_the_entry_freed),
		T(a_successor_restores_entries_from_their_names),
		T(restoring_nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
