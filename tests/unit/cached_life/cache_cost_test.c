/* cache_cost_test - the cost of a cache beside its data (peers/common/say/cache_cost.h): the
 * formula, the design's budget, and the real cost of a running cached.
 */
#include "tests/rig/cached_rig.h"

#include "peers/cached/admin/admin.h"

#include <malloc.h>

#include "peers/common/say/cache_cost.h"

#define MIB		(1ull << 20)
#define GIB		(1ull << 30)
#define BUCKET_BUDGET	40ull
#define OBJECT_BUDGET	512ull

/* Objects that are all half filled and fill the memory. */
static uint32_t half_filled(uint64_t memory)
{
	return (uint32_t)(memory / 4096 / (OBJECT_BUCKETS / 2));
}

/* With one thread, in a segment that is twice as large. */
static struct cache_cost cost_of(uint64_t memory, uint32_t objects)
{
	struct cache_size size = { .memory_bytes = memory,
		.segment_bytes = 2 * memory,
		.objects = objects,
		.volumes = cached_nr_volumes(memory),
		.ports = 1,
		.requests = 2048 };
	struct cache_cost cost;

	cache_cost(&size, &cost);
	return cost;
}

/* What grows with buckets and objects; the slots of buckets that are half used. */
static uint64_t growing(uint64_t memory, uint32_t objects)
{
	struct cache_cost cost = cost_of(memory, objects);

	return cost.buckets + cost.objects + memory / 4096 * 16;
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

			if (growing(memory, objects) > budget(memory, objects))
				fail_msg("%llu MiB, %u objects: %llu bytes, budget %llu",
					(unsigned long long)(memory / MIB), objects,
					(unsigned long long)growing(memory, objects),
					(unsigned long long)budget(memory, objects));
		}
}

_Static_assert(CACHE_OBJECT_BYTES + CACHE_OBJECT_PRIVATE + CACHE_OBJECT_INDEX <= OBJECT_BUDGET,
	"an object's budget");

/* Whatever power of two the index of names is rounded up to; lines of 64 bytes are rounded up to,
 * too. */
static void an_object_costs_no_more_than_its_budget_whatever_their_number(void **state)
{
	(void)state;
	for (uint32_t objects = 1; objects < 1u << 24; objects += objects / 7 + 1)
		assert_in_range(cost_of(GIB, objects).objects, 0,
			objects * (224ull + 224 + CACHE_OBJECT_INDEX) + 4 * 64);
}

static void all_of_it_is_the_sum_of_its_parts_and_what_does_not_grow_is_small(void **state)
{
	struct cache_cost small = cost_of(4 * MIB, 64), large = cost_of(GIB, 16384);

	(void)state;
	assert_int_equal(small.all,
		small.buckets + small.objects + small.requests + small.fixed + small.unused);
	assert_int_equal(large.all,
		large.buckets + large.objects + large.requests + large.fixed + large.unused);
	assert_in_range(small.requests, 1, MIB);
	assert_int_equal(small.requests, large.requests);
	/* of 256 volumes, and entries for objects that pass */
	assert_in_range(large.fixed, small.fixed, 21 * MIB / 32);
	assert_true(small.arena % XSEG_EXTENT_SIZE == 0 && small.unused < XSEG_EXTENT_SIZE);
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
	uint64_t more = (cost_of(GIB, 2000000).objects - cost_of(GIB, 1000000).objects) / 1000000;

	(void)state;
	assert_int_equal(cached_sparse_object_bytes(), 224 + 224 + CACHE_OBJECT_INDEX + 512 + 4096);
	assert_in_range(more, 224 + 224 + 16 + 8, cached_sparse_object_bytes() - 4096 - 512);
}

static void the_arena_is_as_large_as_said_and_status_says_it_all(void **state)
{
	struct xseg_peer_info info;
	struct cache_cost cost;

	(void)state;
	crig_up("memory=8M objects=64");
	assert_true(xseg_peer_get_info(crig.seg, xseg_peer_index(crig.peer->xp), &info));
	assert_true(info.arena_bytes >= cached_arena_bytes(64, 16, 1));
	assert_true(info.arena_bytes < cached_arena_bytes(64, 16, 1) + XSEG_EXTENT_SIZE);
	assert_true(crig_admin("status") > 0);
	cost_now(crig.k, &cost);
	assert_int_equal(crig_number("metadata_bytes"), cost.all);
	assert_in_range(info.arena_bytes, cost.arena - cost.unused, cost.arena);
	assert_int_equal(crig_number("memory_bytes"), 8 * MIB);
	assert_true(crig.k->life.head->off_objects + 64 * sizeof(struct arena_object) <=
		    info.arena_bytes);
}

/* Of pages that it has not got: in its tables, but never touched. */
static uint64_t untouched(struct cached *k)
{
	return (uint64_t)(xseg_nr_pages(k->base.peer.seg) - nr_owned(k)) * CACHE_PAGE_PRIVATE;
}

/* Every table of a cached that runs: xcache's and its own; the peer, and the copy of it that
 * options are tried on. */
static uint64_t allocated(struct cached *k)
{
	return k->memory.allocs.bytes - untouched(k) + xcache_mem_bytes(nr_entries(k)) +
	       2 * (uint64_t)CACHE_PEER_BYTES;
}

static void what_is_private_is_what_the_formula_says_to_the_byte(void **state)
{
	static const char *const sizes[] = { "memory=4M objects=1", "memory=8M objects=100",
		"memory=12M objects=4096" };
	struct cache_cost cost;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		crig_up(sizes[i]);
		cost_now(crig.k, &cost);
		assert_int_equal(allocated(crig.k), cost.own);
		crig_down(NULL);
	}
	crig_up("");
}

#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
/* What malloc() gave; *own: what the formula says. */
static uint64_t private_bytes(
	uint64_t memory, uint32_t objects, struct xseg_config *cfg, uint64_t *own)
{
	struct cache_cost cost;
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
	cost_now(cached_of(p), &cost);
	*own = cost.own + untouched(cached_of(p)) - 2 * CACHE_PEER_BYTES;
	peer_close(p, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(p);
	xseg_detach(seg);
	return after - before;
}

/* Nothing is allocated that is not counted: what malloc() gave beyond the formula is libxseg's,
 * which it takes for any peer with as many ports and requests, and is the same for a small and for
 * a large cache. */
static void nothing_is_allocated_that_is_not_counted(void **state)
{
	struct xseg_config small = {
		.memory_bytes = 36 * MIB, .nr_requests = 512, .nr_ports = 8, .huge = XSEG_HUGE_NEVER
	};
	struct xseg_config large = { .memory_bytes = 136 * MIB,
		.nr_requests = 512,
		.nr_ports = 8,
		.huge = XSEG_HUGE_NEVER };
	uint64_t own_a, own_b, a = private_bytes(32 * MIB, 16, &small, &own_a),
			       b = private_bytes(128 * MIB, 64, &large, &own_b);

	(void)state;
	print_message("private %llu bytes of %llu for 32 MiB, %llu of %llu for 128 MiB\n",
		(unsigned long long)own_a, (unsigned long long)a, (unsigned long long)own_b,
		(unsigned long long)b);
	assert_in_range(a - own_a, 0, 131072);	/* the text of admin answers is 64 KiB of that */
	assert_in_range(b - own_b, 0, a - own_a + 1024);
}
#define MEASURED cmocka_unit_test(nothing_is_allocated_that_is_not_counted),
#endif
#endif
#ifndef MEASURED
#define MEASURED
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			metadata_is_within_the_budget_where_objects_are_at_least_half_filled),
		cmocka_unit_test(an_object_costs_no_more_than_its_budget_whatever_their_number),
		cmocka_unit_test(all_of_it_is_the_sum_of_its_parts_and_what_does_not_grow_is_small),
		cmocka_unit_test(there_is_an_object_for_each_64_kib),
		cmocka_unit_test(a_sparse_object_costs_its_entry_a_chunk_and_a_page),
		CRIG_T(what_is_private_is_what_the_formula_says_to_the_byte),
		CRIG_T(the_arena_is_as_large_as_said_and_status_says_it_all), MEASURED
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
