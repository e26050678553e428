/* xcache_stress_test - the cache of names under a random run against xcache_check(), and under
 * lookup, insert, evict, remove and put on three threads. */
#include "tests/rig/long.h"
#include "tests/rig/xcache_rig.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

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
}

/* ---- three threads ---- */

#define STRESS_ENTRIES 4u
#define STRESS_NAMES 6u
#ifdef __SANITIZE_THREAD__
#define STRESS_STEPS 60000u
#else
#define STRESS_STEPS in_short(300000, 5)
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
	uint32_t idx, i, nr = STRESS_STEPS;
	uint64_t hash;
	char name[2];
	unsigned op;

	for (i = 0; i < nr; i++) {
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_random_run_keeps_all_invariants),
		T(lookup_insert_evict_and_put_on_three_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
