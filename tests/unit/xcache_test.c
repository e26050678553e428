/* xcache_test - the cache of names with 2 to 100 entries: every edge of the state table with its
 * hooks in order, choice of victims, names from hostile memory, recovery, a random run against
 * xcache_check(), and a stress of lookup, insert, evict, remove and put on three threads.
 *
 * Hooks write one letter each into `trace`: i init, e evict, p post_evict, r reinsert, z put,
 * f finalize, F free; with the entry's index.
 */
#include "xtypes/xcache.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#define STRIDE 16u
#define NAMES_MAX 128u

static struct xcache c;
static char names[NAMES_MAX * STRIDE];
static char trace[1024];
static bool veto[NAMES_MAX];
static unsigned asked;
static void (*in_post_evict)(uint32_t idx);

static void note(char what, uint32_t idx)
{
	size_t len = strlen(trace);

	snprintf(trace + len, sizeof(trace) - len, "%c%u ", what, idx);
}

static void note_init(void *arg, uint32_t idx)
{
	(void)arg;
	note('i', idx);
}

static void note_evict(void *arg, uint32_t idx)
{
	(void)arg;
	note('e', idx);
}

static void note_reinsert(void *arg, uint32_t idx)
{
	(void)arg;
	note('r', idx);
}

static void note_put(void *arg, uint32_t idx)
{
	(void)arg;
	note('z', idx);
}

static void note_finalize(void *arg, uint32_t idx)
{
	(void)arg;
	note('f', idx);
}

static void note_free(void *arg, uint32_t idx)
{
	(void)arg;
	note('F', idx);
}

static void note_post_evict(void *arg, uint32_t idx)
{
	void (*fn)(uint32_t idx) = in_post_evict;

	(void)arg;
	assert_true(xcache_refs(&c, idx) > 0);
	note('p', idx);
	in_post_evict = NULL;
	if (fn)
		fn(idx);
}

static bool ask_veto(void *arg, uint32_t idx)
{
	(void)arg;
	asked++;
	return !veto[idx];
}

static const struct xcache_ops note_ops = {
	.init = note_init,
	.evict = note_evict,
	.post_evict = note_post_evict,
	.reinsert = note_reinsert,
	.put = note_put,
	.finalize = note_finalize,
	.free = note_free,
	.may_evict = ask_veto,
};

static void cache_init(uint32_t nr, const struct xcache_ops *ops)
{
	struct xcache_params p = {
		.nr_entries = nr, .names = names, .name_stride = STRIDE, .name_max = STRIDE,
		.ops = ops,
	};

	memset(veto, 0, sizeof(veto));
	trace[0] = '\0';
	asked = 0;
	in_post_evict = NULL;
	assert_int_equal(xcache_init(&c, &p), 0);
}

static void cache_fini(void)
{
	xcache_check(&c);
	xcache_fini(&c);
}

/* Short names, so that different ones can be given the same hash on purpose. */
static uint64_t hash_of(const char *name)
{
	return (uint64_t)(unsigned char)name[0];
}

static int insert(const char *name, uint32_t *idx)
{
	return xcache_insert(&c, name, hash_of(name), idx);
}

static uint32_t lookup(const char *name)
{
	return xcache_lookup(&c, name, hash_of(name));
}

/* Inserts and lets go of the reference. */
static uint32_t add(const char *name)
{
	uint32_t idx;

	assert_int_equal(insert(name, &idx), 0);
	xcache_put(&c, idx);
	return idx;
}

static bool is_active(const char *name)
{
	uint32_t idx = lookup(name);

	if (idx == XCACHE_NONE)
		return false;
	xcache_put(&c, idx);
	return true;
}

static void expect_trace(const char *want)
{
	assert_string_equal(trace, want);
	trace[0] = '\0';
}

static void expect_nr(uint32_t active, uint32_t evicted, uint32_t nr_free)
{
	assert_int_equal(xcache_nr_active(&c), active);
	assert_int_equal(xcache_nr_evicted(&c), evicted);
	assert_int_equal(xcache_nr_free(&c), nr_free);
	xcache_check(&c);
}

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
	cache_fini();
}

static void a_failing_node_fails_the_start(void **state)
{
	const struct xcache_ops ops = { .node_init = node_count };
	struct xcache_params p = {
		.nr_entries = 5, .names = names, .name_stride = STRIDE, .name_max = STRIDE,
		.ops = &ops,
	};

	(void)state;
	nodes_made = 0;
	node_that_fails = 2;
	assert_int_equal(xcache_init(&c, &p), -EIO);
	assert_int_equal(nodes_made, 3);
}

static void impossible_parameters_are_refused(void **state)
{
	const struct xcache_params good = {
		.nr_entries = 1, .names = names, .name_stride = STRIDE, .name_max = STRIDE,
	};
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
	xcache_prefetch(&c, 'a');
	xcache_prefetch_entry(&c, 'a');
	xcache_prefetch_entry(&c, 'b');
	assert_int_equal(lookup("a"), idx);
	assert_int_equal(xcache_refs(&c, idx), 3);
	xcache_get(&c, idx);
	xcache_put(&c, idx);
	xcache_put(&c, idx);
	xcache_put(&c, idx);
	assert_int_equal(xcache_refs(&c, idx), 1);
	expect_nr(1, 0, 3);
	expect_trace("");
	cache_fini();
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
	cache_fini();
}

static void inserting_an_active_name_returns_its_entry(void **state)
{
	uint32_t a, again;

	(void)state;
	cache_init(2, &note_ops);
	a = add("a");
	trace[0] = '\0';
	assert_int_equal(insert("a", &again), -EEXIST);
	assert_int_equal(again, a);
	assert_int_equal(xcache_refs(&c, a), 2);
	expect_trace("");
	cache_fini();
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
	cache_fini();
}

/* ---- eviction ---- */

static void insert_into_a_full_cache_evicts_the_oldest(void **state)
{
	uint32_t a, d;

	(void)state;
	cache_init(3, &note_ops);
	a = add("a");
	add("b");
	add("c");
	trace[0] = '\0';
	d = add("d");
	assert_int_equal(d, a);
	expect_trace("e0 p0 z0 f0 i0 ");	/* taken over: never on the free list */
	assert_false(is_active("a"));
	assert_true(is_active("b") && is_active("c") && is_active("d"));
	expect_nr(3, 0, 0);
	cache_fini();
}

static void a_hit_gives_a_second_chance(void **state)
{
	(void)state;
	cache_init(3, &note_ops);
	add("a");
	add("b");
	add("c");
	assert_true(is_active("a"));
	add("d");
	assert_false(is_active("b"));
	add("e");		/* a's chance is used up, but c is older in the list now */
	assert_true(lookup("c") == XCACHE_NONE);
	add("f");
	assert_true(lookup("a") == XCACHE_NONE);
	cache_fini();
}

static void when_all_were_hit_the_oldest_goes(void **state)
{
	(void)state;
	cache_init(3, &note_ops);
	add("a");
	add("b");
	add("c");
	assert_true(is_active("b") && is_active("a") && is_active("c"));
	add("d");
	assert_false(is_active("a"));
	cache_fini();
}

static void a_search_clears_a_bounded_number_of_bits(void **state)
{
	char name[2] = { 0 };
	uint32_t i, hot = 0;

	(void)state;
	cache_init(100, NULL);
	for (i = 0; i < 100; i++) {
		name[0] = (char)(i + 20);
		add(name);
		assert_true(is_active(name));
	}
	assert_int_equal(xcache_evict_lru(&c), XCACHE_CHANCES_MAX);
	for (i = 0; i < 100; i++)
		hot += atomic_load(&c.entries[i].hot);
	assert_int_equal(hot, 100 - XCACHE_CHANCES_MAX);
	cache_fini();
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
	cache_fini();
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
	cache_fini();
}

static void one_insert_evicts_a_bounded_number_of_referenced_victims(void **state)
{
	char name[2] = { 0 };
	uint32_t i, idx;

	(void)state;
	cache_init(100, NULL);
	for (i = 0; i < 100; i++) {
		name[0] = (char)(i + 20);
		assert_int_equal(insert(name, &idx), 0);
	}
	assert_int_equal(insert("\x01", &idx), -ENOSPC);
	expect_nr(100 - XCACHE_VICTIMS_MAX, XCACHE_VICTIMS_MAX, 0);
	cache_fini();
}

static void a_vetoed_victim_stays_and_the_next_one_goes(void **state)
{
	uint32_t a;

	(void)state;
	cache_init(3, &note_ops);
	a = add("a");
	add("b");
	add("c");
	veto[a] = true;
	add("d");
	assert_int_equal(asked, 2);
	assert_true(lookup("b") == XCACHE_NONE);
	veto[a] = false;
	add("e");		/* a kept its place at the tail */
	assert_true(lookup("a") == XCACHE_NONE);
	cache_fini();
}

static void vetoes_by_all_mean_no_space(void **state)
{
	uint32_t i, idx;

	(void)state;
	cache_init(2, &note_ops);
	add("a");
	add("b");
	for (i = 0; i < 2; i++)
		veto[i] = true;
	assert_int_equal(insert("c", &idx), -ENOSPC);
	assert_int_equal(asked, 2);
	assert_true(xcache_evict_lru(&c) == XCACHE_NONE);
	expect_nr(2, 0, 0);
	cache_fini();
}

static void a_search_stops_at_64_vetoes_and_the_next_sees_others(void **state)
{
	char name[2] = { 0 };
	uint32_t i, idx;

	(void)state;
	cache_init(100, &note_ops);
	for (i = 0; i < 100; i++) {
		name[0] = (char)(i + 20);
		add(name);
		veto[i] = i < 80;
	}
	assert_int_equal(insert("\x01", &idx), -ENOSPC);
	assert_int_equal(asked, XCACHE_VETOES_MAX);
	assert_int_equal(insert("\x01", &idx), 0);
	assert_int_equal(idx, 80);
	cache_fini();
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
	cache_fini();
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
	cache_fini();
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
	cache_fini();
}

static void invalidate_removes_by_name(void **state)
{
	(void)state;
	cache_init(2, &note_ops);
	add("a");
	trace[0] = '\0';
	assert_int_equal(xcache_invalidate(&c, "b", 'b'), -ENOENT);
	expect_trace("");
	assert_int_equal(xcache_invalidate(&c, "a", 'a'), 0);
	expect_trace("e0 p0 z0 f0 F0 ");
	assert_int_equal(xcache_invalidate(&c, "a", 'a'), -ENOENT);
	expect_nr(0, 0, 2);
	cache_fini();
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
	cache_fini();
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
	cache_fini();
}

static void an_idle_evicted_entry_is_not_reinserted(void **state)
{
	uint32_t a;

	(void)state;
	cache_init(2, &note_ops);
	a = add("a");
	assert_true(xcache_remove(&c, a));
	trace[0] = '\0';
	add("a");
	expect_trace("i0 ");
	cache_fini();
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
	cache_init(2, &note_ops);
	add("a");
	add("b");
	trace[0] = '\0';
	in_post_evict = reinsert_victim;
	assert_int_equal(insert("c", &idx), 0);
	expect_trace("e0 p0 r0 e1 p1 z1 f1 i1 ");
	assert_int_equal(inner, 0);
	assert_int_equal(xcache_refs(&c, 0), 2);
	cache_fini();
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
	cache_init(2, &note_ops);
	add("a");
	add("b");
	trace[0] = '\0';
	in_post_evict = insert_wanted_name;
	assert_int_equal(insert("c", &idx), -EEXIST);
	assert_int_equal(idx, inner);
	expect_trace("e0 p0 e1 p1 z1 f1 i1 z0 f0 F0 ");
	expect_nr(1, 0, 1);
	assert_int_equal(xcache_refs(&c, idx), 3);
	cache_fini();
}

/* ---- recovery ---- */

static void a_successor_restores_entries_from_their_names(void **state)
{
	uint32_t idx;

	(void)state;
	cache_init(4, &note_ops);
	add("a");
	add("b");
	add("c");
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
	cache_fini();
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
	cache_fini();
}

/* ---- random run ---- */

#define RANDOM_NAMES 7u

static void random_step(unsigned *seed, uint32_t *held, uint32_t *nr_held)
{
	char name[2] = { (char)('a' + rand_r(seed) % RANDOM_NAMES), 0 };
	uint32_t idx = XCACHE_NONE;
	uint32_t at;
	int rc;

	switch ((rand_r(seed) >> 8) % 6) {
	case 0:
	case 1:
		rc = insert(name, &idx);
		assert_true(rc == 0 || rc == 1 || rc == -EEXIST || rc == -ENOSPC);
		break;
	case 2:
		idx = lookup(name);
		break;
	case 3:
		if (xcache_invalidate(&c, name, hash_of(name)) == 0)
			assert_false(is_active(name));
		break;
	case 4:
		xcache_evict_lru(&c);
		break;
	case 5:
		idx = xcache_peek_and_get_lru(&c);
		break;
	}
	if (idx != XCACHE_NONE)
		held[(*nr_held)++] = idx;
	while (*nr_held > 0 && (*nr_held == 6 || rand_r(seed) % 2)) {
		at = (uint32_t)rand_r(seed) % *nr_held;
		xcache_put(&c, held[at]);
		held[at] = held[--*nr_held];
	}
}

static void a_random_run_keeps_all_invariants(void **state)
{
	unsigned seed = 1234;
	uint32_t held[8], nr_held = 0;
	int i;

	(void)state;
	print_message("seed %u\n", seed);
	cache_init(4, &note_ops);
	for (i = 0; i < 50000; i++) {
		trace[0] = '\0';
		random_step(&seed, held, &nr_held);
		xcache_check(&c);
	}
	while (nr_held > 0)
		xcache_put(&c, held[--nr_held]);
	assert_int_equal(xcache_nr_evicted(&c), 0);
	cache_fini();
}

/* ---- three threads ---- */

#define STRESS_ENTRIES 4u
#define STRESS_NAMES 6u
#ifdef __SANITIZE_THREAD__
#define STRESS_STEPS 60000
#else
#define STRESS_STEPS 300000
#endif

/* What the user keeps under an index: written by init, wiped by finalize, read by who has a
 * reference, without any lock of its own. */
static uint64_t payload[STRESS_ENTRIES];
static uint64_t nr_hook[128];		/* locked hooks only */
static _Atomic uint64_t nr_freed, nr_post, nr_fresh, nr_again, nr_hits, nr_wrong;

static void stress_init(void *arg, uint32_t idx)
{
	(void)arg;
	nr_hook['i']++;
	assert(payload[idx] == 0);
	payload[idx] = xcache_hash_of(&c, idx);
}

static void stress_evict(void *arg, uint32_t idx)
{
	(void)arg;
	(void)idx;
	nr_hook['e']++;
}

static void stress_post_evict(void *arg, uint32_t idx)
{
	(void)arg;
	assert(payload[idx] == xcache_hash_of(&c, idx));
	atomic_fetch_add(&nr_post, 1);
}

static void stress_reinsert(void *arg, uint32_t idx)
{
	(void)arg;
	nr_hook['r']++;
	assert(payload[idx] == xcache_hash_of(&c, idx));
}

static void stress_finalize(void *arg, uint32_t idx)
{
	(void)arg;
	nr_hook['f']++;
	assert(payload[idx] == xcache_hash_of(&c, idx));
	payload[idx] = 0;
}

static void stress_free(void *arg, uint32_t idx)
{
	(void)arg;
	(void)idx;
	atomic_fetch_add(&nr_freed, 1);
}

static const struct xcache_ops stress_ops = {
	.init = stress_init,
	.evict = stress_evict,
	.post_evict = stress_post_evict,
	.reinsert = stress_reinsert,
	.finalize = stress_finalize,
	.free = stress_free,
};

/* Two names to a hash, so that lookups meet strangers. */
static uint64_t stress_name(unsigned r, char *name)
{
	unsigned n = r % STRESS_NAMES;

	name[0] = (char)('a' + n);
	name[1] = '\0';
	return 1 + n / 2;
}

static void stress_check_held(uint32_t idx, const char *name, uint64_t hash)
{
	if (strcmp(xcache_name(&c, idx), name) != 0 || xcache_hash_of(&c, idx) != hash ||
	    payload[idx] != hash)
		atomic_fetch_add(&nr_wrong, 1);
}

static uint32_t stress_insert(const char *name, uint64_t hash)
{
	uint32_t idx;
	int rc = xcache_insert(&c, name, hash, &idx);

	if (rc == 0)
		atomic_fetch_add(&nr_fresh, 1);
	if (rc == 1)
		atomic_fetch_add(&nr_again, 1);
	return idx;
}

/* Removes an entry and inserts its name while it is still referenced: the same entry must come. */
static uint32_t stress_reinsert_held(uint32_t idx, const char *name, uint64_t hash)
{
	uint32_t again;

	xcache_remove(&c, idx);
	again = stress_insert(name, hash);
	if (again != idx)
		atomic_fetch_add(&nr_wrong, 1);
	xcache_put(&c, idx);
	return again;
}

static void *stress_run(void *arg)
{
	unsigned seed = *(unsigned *)arg;
	uint32_t idx, i;
	uint64_t hash;
	char name[2];
	unsigned op;

	for (i = 0; i < STRESS_STEPS; i++) {
		hash = stress_name((unsigned)rand_r(&seed) >> 4, name);
		op = ((unsigned)rand_r(&seed) >> 4) % 16;
		idx = xcache_lookup(&c, name, hash);
		if (idx != XCACHE_NONE)
			atomic_fetch_add_explicit(&nr_hits, 1, memory_order_relaxed);
		else if (op < 8)
			idx = stress_insert(name, hash);
		if (idx != XCACHE_NONE) {
			stress_check_held(idx, name, hash);
			if (op == 8)
				xcache_remove(&c, idx);
			if (op == 9)
				idx = stress_reinsert_held(idx, name, hash);
		}
		if (op == 10)
			xcache_evict_lru(&c);
		if (op == 11 && xcache_invalidate(&c, name, hash) == -ENOENT)
			sched_yield();
		if (idx != XCACHE_NONE) {
			stress_check_held(idx, name, hash);
			xcache_put(&c, idx);
		}
	}
	return NULL;
}

static void lookup_insert_evict_and_put_on_three_threads(void **state)
{
	unsigned seeds[3] = { 11, 22, 33 };
	pthread_t t[3];
	int i;

	(void)state;
	cache_init(STRESS_ENTRIES, &stress_ops);
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, stress_run, &seeds[i]), 0);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	print_message("hits %lu fresh %lu again %lu evicted %lu\n", (unsigned long)nr_hits,
		      (unsigned long)nr_fresh, (unsigned long)nr_again,
		      (unsigned long)nr_hook['e']);
	assert_int_equal(atomic_load(&nr_wrong), 0);
	assert_int_equal(xcache_nr_evicted(&c), 0);	/* every reference was given back */
	assert_true(nr_hook['i'] == nr_fresh && nr_hook['r'] == nr_again);
	assert_true(nr_hook['e'] == nr_post);
	assert_true(nr_hook['i'] == nr_hook['f'] + xcache_nr_active(&c));
	assert_true(nr_hook['e'] == nr_hook['f'] + nr_hook['r']);
	assert_true(nr_freed <= nr_hook['f'] && nr_hits > 0 && nr_again > 0);
	cache_fini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_node_is_initialized_once),
		cmocka_unit_test(a_failing_node_fails_the_start),
		cmocka_unit_test(impossible_parameters_are_refused),
		cmocka_unit_test(private_memory_is_below_the_designs_limit),
		cmocka_unit_test(an_inserted_name_is_found_and_referenced),
		cmocka_unit_test(names_of_one_hash_are_told_apart),
		cmocka_unit_test(inserting_an_active_name_returns_its_entry),
		cmocka_unit_test(a_name_that_does_not_fit_is_refused),
		cmocka_unit_test(insert_into_a_full_cache_evicts_the_oldest),
		cmocka_unit_test(a_hit_gives_a_second_chance),
		cmocka_unit_test(when_all_were_hit_the_oldest_goes),
		cmocka_unit_test(a_search_clears_a_bounded_number_of_bits),
		cmocka_unit_test(a_referenced_victim_gives_no_entry_and_the_next_is_tried),
		cmocka_unit_test(when_all_are_referenced_there_is_no_space),
		cmocka_unit_test(one_insert_evicts_a_bounded_number_of_referenced_victims),
		cmocka_unit_test(a_vetoed_victim_stays_and_the_next_one_goes),
		cmocka_unit_test(vetoes_by_all_mean_no_space),
		cmocka_unit_test(a_search_stops_at_64_vetoes_and_the_next_sees_others),
		cmocka_unit_test(evict_lru_evicts_and_frees_an_idle_entry),
		cmocka_unit_test(peeking_references_the_next_victim_and_leaves_it_active),
		cmocka_unit_test(a_removed_entry_lives_until_its_last_reference),
		cmocka_unit_test(invalidate_removes_by_name),
		cmocka_unit_test(insert_of_an_evicted_name_reinserts_its_entry),
		cmocka_unit_test(reinsertion_works_in_a_full_cache),
		cmocka_unit_test(an_idle_evicted_entry_is_not_reinserted),
		cmocka_unit_test(a_victim_reinserted_during_post_evict_gives_no_entry),
		cmocka_unit_test(a_name_that_came_during_post_evict_is_found_and_the_entry_freed),
		cmocka_unit_test(a_successor_restores_entries_from_their_names),
		cmocka_unit_test(restoring_nonsense_is_refused),
		cmocka_unit_test(a_random_run_keeps_all_invariants),
		cmocka_unit_test(lookup_insert_evict_and_put_on_three_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
