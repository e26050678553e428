/* xcache_rig - for xcache's tests: one cache of names, hooks that note the entries of their calls,
 * and short cuts. Everything asserts. Included once by each test.
 *
 * Hooks write one letter each into `trace`: i init, e evict, p post_evict, r reinsert, z put,
 * f finalize, F free; with the entry's index.
 */
#ifndef TESTS_UNIT_XCACHE_RIG_H
#define TESTS_UNIT_XCACHE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "xtypes/xcache.h"

#define STRIDE	  16u
#define NAMES_MAX 128u

static struct xcache c;
static char names[NAMES_MAX * STRIDE];
static char trace[1024];
static bool veto[NAMES_MAX];
static unsigned asked;
static void (*in_post_evict)(uint32_t idx);

static inline void note(char what, uint32_t idx)
{
	size_t len = strlen(trace);

	snprintf(trace + len, sizeof(trace) - len, "%c%u ", what, idx);
}

#define NOTE(hook, letter)                                     \
	static inline void note_##hook(void *arg, uint32_t idx) \
	{                                                      \
		(void)arg;                                     \
		note(letter, idx);                             \
	}
NOTE(init, 'i')
NOTE(evict, 'e')
NOTE(reinsert, 'r')
NOTE(put, 'z')
NOTE(finalize, 'f')
NOTE(free, 'F')

static inline void note_post_evict(void *arg, uint32_t idx)
{
	void (*fn)(uint32_t idx) = in_post_evict;

	(void)arg;
	assert_true(xcache_refs(&c, idx) > 0);
	note('p', idx);
	in_post_evict = NULL;
	if (fn)
		fn(idx);
}

static inline bool ask_veto(void *arg, uint32_t idx)
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

static inline struct xcache_params params_of(uint32_t nr, const struct xcache_ops *ops)
{
	return (struct xcache_params){
		.nr_entries = nr, .names = names, .name_stride = STRIDE, .name_max = STRIDE,
		.ops = ops,
	};
}

static inline void cache_init(uint32_t nr, const struct xcache_ops *ops)
{
	struct xcache_params p = params_of(nr, ops);

	memset(veto, 0, sizeof(veto));
	trace[0] = '\0';
	asked = 0;
	in_post_evict = NULL;
	assert_int_equal(xcache_init(&c, &p), 0);
}

/* Of each test that began a cache. */
static inline int cache_fini(void **state)
{
	(void)state;
	xcache_check(&c);
	xcache_fini(&c);
	return 0;
}

/* Short names, so that different ones can be given the same hash on purpose. */
static inline uint64_t hash_of(const char *name)
{
	return (uint64_t)(unsigned char)name[0];
}

static inline int insert(const char *name, uint32_t *idx)
{
	return xcache_insert(&c, name, hash_of(name), idx);
}

static inline uint32_t lookup(const char *name)
{
	return xcache_lookup(&c, name, hash_of(name));
}

/* Inserts and lets go of the reference. */
static inline uint32_t add(const char *name)
{
	uint32_t idx;

	assert_int_equal(insert(name, &idx), 0);
	xcache_put(&c, idx);
	return idx;
}

/* A cache of nr entries, the first of which have the letters of `filled` for names. */
static inline void cache_of(uint32_t nr, const char *filled)
{
	char name[2] = { 0 };

	cache_init(nr, &note_ops);
	for (uint32_t i = 0; filled[i]; i++) {
		name[0] = filled[i];
		assert_int_equal(add(name), i);
	}
	trace[0] = '\0';
}

static inline bool is_active(const char *name)
{
	uint32_t idx = lookup(name);

	if (idx == XCACHE_NONE)
		return false;
	xcache_put(&c, idx);
	return true;
}

static inline void expect_trace(const char *want)
{
	assert_string_equal(trace, want);
	trace[0] = '\0';
}

static inline void expect_nr(uint32_t active, uint32_t evicted, uint32_t nr_free)
{
	assert_int_equal(xcache_nr_active(&c), active);
	assert_int_equal(xcache_nr_evicted(&c), evicted);
	assert_int_equal(xcache_nr_free(&c), nr_free);
	xcache_check(&c);
}

#define T(name) cmocka_unit_test_teardown(name, cache_fini)

#endif
