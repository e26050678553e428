/* stats_test - blocks of counters: one writer, any reader, as long-lived as the peer's name. */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static const char *const keys[] = { "ops", "bytes", "a_key_of_exactly_23_chr" };

static struct xseg_peer *peer;

static int setup_peer(void **state)
{
	setup(state);
	peer = segrig_server(seg, "memd", 2, 0);
	return 0;
}

static int teardown_peer(void **state)
{
	close_peer(peer);
	return teardown(state);
}

static struct xseg_stats *open_block(const char *name, const char *kind)
{
	struct xseg_stats *stats = NULL;

	assert_int_equal(xseg_stats_open(peer, name, kind, keys, 3, &stats), 0);
	return stats;
}

/* The n-th block of that name; false when there is none. */
static bool find(const char *name, unsigned n, struct xseg_stats_view *view)
{
	for (uint32_t i = 0; i < xseg_nr_stats(seg); i++)
		if (xseg_stats_view(seg, i, view) && strcmp(view->name, name) == 0 && n-- == 0)
			return true;
	return false;
}

static void what_is_counted_is_seen(void **state)
{
	struct xseg_stats *stats = open_block("memd.0", "memd");
	struct xseg_stats_view view;

	(void)state;
	assert_true(find("memd.0", 0, &view));
	assert_int_equal(view.value[0] | view.value[1] | view.value[2] | view.lat.count, 0);
	xseg_stats_add(stats, 0, 3);
	xseg_stats_add(stats, 0, 4);
	xseg_stats_set(stats, 1, 1ull << 63);
	xseg_stats_add(stats, 1, 1);
	xhist_record(xseg_stats_lat(stats), 1000);
	assert_int_equal(xseg_stats_get(stats, 0), 7);
	assert_true(find("memd.0", 0, &view));
	assert_string_equal(view.kind, "memd");
	assert_int_equal(view.peer, xseg_peer_index(peer));
	assert_int_equal(view.nr, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(view.key[i], keys[i]);
	assert_int_equal(view.value[0], 7);
	assert_int_equal(view.value[1], (1ull << 63) + 1);
	assert_int_equal(xseg_stats_value(&view, keys[1]), view.value[1]);
	assert_int_equal(xseg_stats_value(&view, "byte"), 0);
	assert_int_equal(view.lat.count, 1);
	assert_false(find("memd.1", 0, &view));
	assert_false(xseg_stats_view(seg, xseg_nr_stats(seg), &view));
	assert_false(xseg_stats_view(seg, UINT32_MAX, &view));
}

static void a_second_block_of_a_name_is_another_one(void **state)
{
	struct xseg_stats *a = open_block("memd", "memd"), *b = open_block("memd", "memd");
	struct xseg_stats_view view;

	(void)state;
	assert_ptr_not_equal(a, b);
	xseg_stats_add(a, 0, 1);
	assert_int_equal(xseg_stats_get(b, 0), 0);
	assert_true(find("memd", 1, &view));
	assert_false(find("memd", 2, &view));
}

static void a_successor_goes_on_counting_in_the_same_blocks(void **state)
{
	struct xseg_stats_view view;

	(void)state;
	for (unsigned life = 1; life < 5; life++) {
		struct xseg_stats *a = open_block("memd", "memd"), *b = open_block("memd", "memd");

		xseg_stats_add(a, 0, 1);
		xseg_stats_add(b, 0, 10);
		xhist_record(xseg_stats_lat(a), 50);
		assert_int_equal(xseg_stats_get(a, 0), life);
		assert_int_equal(xseg_stats_get(b, 0), 10 * life);
		assert_true(find("memd", 0, &view));
		assert_int_equal(view.lat.count, life);
		xseg_peer_close(peer, life % 2 ? XSEG_CLOSE_ABANDON : XSEG_CLOSE_KEEP_ARENA);
		assert_true(find("memd", 0, &view));
		peer = segrig_server(seg, "memd", 2, 0);
	}
}

static void a_successor_that_counts_other_things_begins_at_zero(void **state)
{
	static const char *const other[] = { "bytes", "ops" };
	struct xseg_stats *stats = open_block("memd", "memd");
	struct xseg_stats_view view;

	(void)state;
	xseg_stats_add(stats, 0, 5);
	abandon(peer);
	peer = segrig_server(seg, "memd", 1, 0);
	assert_int_equal(xseg_stats_open(peer, "memd", "memd", other, 2, &stats), 0);
	assert_int_equal(xseg_stats_get(stats, 0), 0);
	assert_true(find("memd", 0, &view));
	assert_int_equal(view.nr, 2);
	assert_string_equal(view.key[0], "bytes");
	assert_false(find("memd", 1, &view));
}

static void a_closed_block_is_gone_and_used_again_empty(void **state)
{
	struct xseg_stats *stats = open_block("vol", "volume");
	struct xseg_stats_view view;

	(void)state;
	xseg_stats_add(stats, 2, 5);
	xhist_record(xseg_stats_lat(stats), 50);
	xseg_stats_close(peer, stats);
	assert_false(find("vol", 0, &view));
	stats = open_block("other", "volume");
	assert_int_equal(xseg_stats_get(stats, 2), 0);
	assert_true(find("other", 0, &view));
	assert_int_equal(view.lat.count, 0);
}

static void blocks_run_out_and_come_back_with_the_peer(void **state)
{
	struct segrig_accounts before = segrig_accounts(seg);
	struct xseg_peer *other = segrig_client(seg, "me", 0);
	struct xseg_stats *stats;
	uint32_t n = 0;

	(void)state;
	while (xseg_stats_open(other, "c", "client", keys, 3, &stats) == 0)
		n++;
	assert_int_equal(n, xseg_nr_stats(seg));
	assert_int_equal(xseg_stats_open(peer, "memd", "memd", keys, 3, &stats), -ENOSPC);
	abandon(other);
	assert_int_equal(xseg_sweep(seg), 1);
	segrig_same(seg, &before);
	open_block("memd", "memd");
}

static void too_many_keys_are_refused_and_the_most_are_not(void **state)
{
	const char *many[XSEG_STATS_MAX + 1];
	struct xseg_stats_view view;
	struct xseg_stats *stats;

	(void)state;
	for (unsigned i = 0; i <= XSEG_STATS_MAX; i++)
		many[i] = "key";
	assert_int_equal(
		xseg_stats_open(peer, "x", "memd", many, XSEG_STATS_MAX + 1, &stats), -EINVAL);
	assert_int_equal(xseg_stats_open(peer, "x", "memd", many, XSEG_STATS_MAX, &stats), 0);
	xseg_stats_add(stats, XSEG_STATS_MAX - 1, 1);
	assert_true(find("x", 0, &view));
	assert_int_equal(view.value[XSEG_STATS_MAX - 1], 1);
}

static void a_damaged_block_is_read_within_its_bounds(void **state)
{
	struct xseg_stats *stats = open_block("memd", "memd");
	struct xs_stats *b = (struct xs_stats *)stats;
	struct xseg_stats_view view;

	(void)state;
	b->nr = UINT32_MAX;
	memset(b->name, 'n', sizeof(b->name));
	memset(b->kind, 'k', sizeof(b->kind));
	memset(b->key, 'y', sizeof(b->key));
	for (uint32_t i = 0, seen = 0; i < xseg_nr_stats(seg); i++) {
		if (!xseg_stats_view(seg, i, &view))
			continue;
		assert_int_equal(seen++, 0);
		assert_int_equal(view.nr, XSEG_STATS_MAX);
		assert_int_equal(strlen(view.name), XSEG_NAME_MAX - 1);
		assert_int_equal(strlen(view.kind), 15);
		assert_int_equal(strlen(view.key[XSEG_STATS_MAX - 1]), XSEG_STATS_KEY - 1);
	}
}

static void *count_up(void *arg)
{
	for (unsigned i = 0; i < 100000; i++) {
		xseg_stats_add(arg, 0, 1);
		xhist_record(xseg_stats_lat(arg), i);
	}
	return NULL;
}

static void a_reader_beside_the_writer_sees_numbers_that_only_grow(void **state)
{
	struct xseg_stats *stats = open_block("memd", "memd");
	struct xseg_stats_view view = { .nr = 0 };
	uint64_t last = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, count_up, stats), 0);
	do {
		assert_true(find("memd", 0, &view));
		assert_true(view.value[0] >= last);
		last = view.value[0];
	} while (last < 100000);
	pthread_join(thread, NULL);
	assert_true(find("memd", 0, &view));
	assert_int_equal(view.lat.count, 100000);
}

/* Two of a name at a time: a bit that another thread's store has taken back makes them one. */
static void *open_and_close(void *arg)
{
	const char *name = arg;

	for (unsigned i = 0; i < 2000; i++) {
		struct xseg_stats *a = open_block(name, "memd"), *b = open_block(name, "memd");

		assert_ptr_not_equal(a, b);
		xseg_stats_close(peer, a);
		xseg_stats_close(peer, b);
	}
	return NULL;
}

static void threads_open_and_close_blocks_at_the_same_time(void **state)
{
	pthread_t thread[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, open_and_close, i ? "a" : "b"), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(segrig_accounts(seg).nr_stats, 0);
}

#define S(name) cmocka_unit_test_setup_teardown(name, setup_peer, teardown_peer)

int main(void)
{
	const struct CMUnitTest tests[] = {
		S(what_is_counted_is_seen),
		S(a_second_block_of_a_name_is_another_one),
		S(a_successor_goes_on_counting_in_the_same_blocks),
		S(a_successor_that_counts_other_things_begins_at_zero),
		S(a_closed_block_is_gone_and_used_again_empty),
		S(blocks_run_out_and_come_back_with_the_peer),
		S(too_many_keys_are_refused_and_the_most_are_not),
		S(a_damaged_block_is_read_within_its_bounds),
		S(a_reader_beside_the_writer_sees_numbers_that_only_grow),
		S(threads_open_and_close_blocks_at_the_same_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
