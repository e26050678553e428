/* cache_cost_test - what a cache costs beside its data (peers/common/cache_cost.h): the formula, the budget of the design, and
 * what a cached that runs really takes. */
#include "tests/unit/cached_rig.h"

#include <malloc.h>

#include "peers/common/cache_cost.h"

#define MIB		(1ull << 20)
#define GIB		(1ull << 30)
#define BUCKET_BUDGET	40ull
#define OBJECT_BUDGET	512ull

/* Objects that are all half filled and fill the memory. */
static uint32_t half_filled(uint64_t memory)
{
	return (uint32_t)(memory / 4096 / (OBJECT_BUCKETS / 2));
}

/* With one thread. */
static uint64_t cost_of(uint64_t memory, uint32_t objects)
{
	return cached_metadata_bytes(memory, objects, cached_nr_volumes(memory), 1);
}

static uint64_t budget(uint64_t memory, uint32_t objects)
{
	return memory / 4096 * BUCKET_BUDGET + objects * OBJECT_BUDGET;
}

static void metadata_is_within_the_budget_where_objects_are_at_least_half_filled(void **state)
{
	(void)state;
	for (uint64_t memory = 16 * MIB; memory <= 1024 * GIB; memory *= 2)
		for (uint32_t fill = 1; fill <= 2; fill++) {
			uint32_t objects = half_filled(memory) / fill;
			uint64_t cost = cost_of(memory, objects) + memory / 4096 * 16;	/* slots, half of them used */

			if (cost > budget(memory, objects))
				fail_msg("%llu MiB, %u objects: %llu bytes, budget %llu", (unsigned long long)(memory / MIB), objects,
					 (unsigned long long)cost, (unsigned long long)budget(memory, objects));
		}
}

static void the_smallest_caches_cost_little_more_than_their_fixed_tables(void **state)
{
	(void)state;
	for (uint64_t memory = 4 * MIB; memory < 16 * MIB; memory += MIB)
		assert_true(cost_of(memory, half_filled(memory)) <= budget(memory, half_filled(memory)) + 16384);
}

static void there_is_an_object_for_each_64_kib(void **state)
{
	(void)state;
	assert_int_equal(cached_default_objects(GIB), GIB / 65536);
	assert_int_equal(cached_default_objects(4 * MIB), 64);
	assert_int_equal(cached_default_objects(1ull << 50), 1u << 24);
}

static void a_sparse_object_costs_its_entry_a_chunk_and_a_page(void **state)
{
	uint64_t more = (cost_of(GIB, 2000000) - cost_of(GIB, 1000000)) / 1000000;

	(void)state;
	assert_int_equal(cached_sparse_object_bytes(), 224 + 224 + 512 + 4096);
	assert_in_range(more, cached_sparse_object_bytes() - 4096 - 512, cached_sparse_object_bytes() - 4096 - 512 + 96);	/* the names' index */
}

static void the_arena_is_as_large_as_said_and_status_says_it_all(void **state)
{
	struct xseg_peer_info info;

	(void)state;
	crig_up("memory=8M objects=64");
	assert_true(xseg_peer_get_info(crig.seg, xseg_peer_index(crig.peer->xp), &info));
	assert_true(info.arena_bytes >= cached_arena_bytes(64, 16, 1));
	assert_true(info.arena_bytes < cached_arena_bytes(64, 16, 1) + XSEG_EXTENT_SIZE);
	assert_true(crig_admin("status") > 0);
	assert_int_equal(crig_number("metadata_bytes"), cost_of(8 * MIB, 64));
	assert_int_equal(crig_number("memory_bytes"), 8 * MIB);
	assert_true(crig.k->head->off_objects + 64 * sizeof(struct arena_object) <= info.arena_bytes);
}

#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
static uint64_t private_bytes(uint64_t memory, uint32_t objects, struct xseg_config *cfg)
{
	struct xseg_error err = { "" };
	struct xseg *seg;
	struct peer *p;
	uint64_t before, after;
	char text[32];

	assert_int_equal(xseg_create_private(cfg, &seg, &err), 0);
	p = peer_create(&cached_class);
	opt_format_size(memory, text, sizeof(text));
	assert_int_equal(opt_set(opt_find(cached_class.opts, "memory"), p, text, &err), 0);
	snprintf(text, sizeof(text), "%u", objects);
	assert_int_equal(opt_set(opt_find(cached_class.opts, "objects"), p, text, &err), 0);
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	if (peer_open(p, seg, &err))
		fail_msg("%s", err.text);
	after = mallinfo2().uordblks + mallinfo2().hblkhd;
	peer_close(p, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(p);
	xseg_detach(seg);
	return after - before;
}

/* Two caches in segments just large enough: the difference is what buckets and objects cost, without what any cached has. */
static void what_is_really_allocated_is_within_the_budget(void **state)
{
	struct xseg_config small = { .memory_bytes = 36 * MIB, .nr_requests = 512, .nr_ports = 8, .huge = XSEG_HUGE_NEVER };
	struct xseg_config large = { .memory_bytes = 136 * MIB, .nr_requests = 512, .nr_ports = 8, .huge = XSEG_HUGE_NEVER };
	uint64_t a = private_bytes(32 * MIB, 16, &small), b = private_bytes(128 * MIB, 64, &large), arena;

	(void)state;
	arena = cached_arena_bytes(64, cached_nr_volumes(128 * MIB), 1) - cached_arena_bytes(16, cached_nr_volumes(32 * MIB), 1);
	print_message("private %llu bytes for 32 MiB, %llu for 128 MiB; the arena grows by %llu\n", (unsigned long long)a,
		      (unsigned long long)b, (unsigned long long)arena);
	/* owner words, and slots of objects that are half filled, which are in pages */
	assert_true(b - a + arena + (8 + 16) * 96 * MIB / 4096 <= budget(96 * MIB, 48));
}
#define MEASURED cmocka_unit_test(what_is_really_allocated_is_within_the_budget),
#endif
#endif
#ifndef MEASURED
#define MEASURED
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metadata_is_within_the_budget_where_objects_are_at_least_half_filled),
		cmocka_unit_test(the_smallest_caches_cost_little_more_than_their_fixed_tables),
		cmocka_unit_test(there_is_an_object_for_each_64_kib),
		cmocka_unit_test(a_sparse_object_costs_its_entry_a_chunk_and_a_page),
		CRIG_T(the_arena_is_as_large_as_said_and_status_says_it_all),
		MEASURED
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
