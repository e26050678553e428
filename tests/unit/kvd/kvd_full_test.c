/* kvd_full_test - an index that is full of keys that are owed (I8 of logged.c), or of deleted keys
 * (table/room.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/rig/kvd_rig.h"

#define OPTIONS "keys=100 sync=never"

static const char *text_of(uint32_t bytes)
{
	static char text[50001];

	memset(text, 't', bytes);
	text[bytes] = '\0';
	return text;
}

static const char *name_of(char first, uint32_t i)
{
	static char name[16];

	snprintf(name, sizeof(name), "%c%u", first, i);
	return name;
}

static int begin(void **state)
{
	(void)state;
	kr_begin("track_flush=yes");
	kr_start(OPTIONS);
	return 0;
}

static uint32_t how_many(char first, uint32_t nr)
{
	struct kw_value v;
	uint32_t n = 0;

	for (uint32_t i = 0; i < nr; i++)
		n += kr_get(name_of(first, i), &v) == 0;
	return n;
}

/* All keys of "k" are put and deleted; then others are put over and over, until no zone has a
 * record of them but those that wait for their deletion. No flush comes, so these wait for long. */
static void delete_and_forget(uint32_t nr)
{
	struct kvd *k = kr_kvd();

	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(kr_put(name_of('k', i), text_of(100)), 0);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(kr_put(name_of('f', i), text_of(20000)), 0);
	assert_int_equal(kr_flush(), 0);
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(kr_delete(name_of('k', i)), 0);
	for (uint32_t i = 0; k->index.used > 20 && i < 3000; i++)
		assert_int_equal(kr_put(name_of('f', i % 20), text_of(20000)), 0);
	assert_int_equal(k->index.used, 20);
}

static void put_others(uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(kr_put(name_of('n', i), text_of(100)), 0);
}

static void a_kill_before_the_zones_go_finds_room(void **state)
{
	(void)state;
	delete_and_forget(80);
	put_others(80);
	kr_kill();
	kr_start(OPTIONS);
	assert_int_equal(kr_kvd()->state, KVD_OPEN);
	assert_int_equal(how_many('n', 80), 80);
	assert_int_equal(how_many('k', 80), 0);
	assert_int_equal(how_many('f', 20), 20);
	assert_int_equal(kr_put("more", "1"), -ENOSPC);
}

/* What the store had deleted is back. */
static void a_loss_of_power_that_undoes_deletions_finds_room(void **state)
{
	(void)state;
	delete_and_forget(80);
	put_others(80);
	kr_power_cut();
	kr_start(OPTIONS);
	assert_int_equal(kr_kvd()->state, KVD_OPEN);
	assert_int_equal(how_many('k', 80), 0);
	assert_int_equal(how_many('f', 20), 20);
}

/* The put waits for the deletion, and no longer. */
static void a_put_waits_until_the_zones_are_gone(void **state)
{
	struct kw_change c = { .kind = KV_PUT, .key = "last", .key_bytes = 4, .value = "1",
		.value_bytes = 1 };
	struct xreq *r;

	(void)state;
	delete_and_forget(80);
	kr.store_stands = true;
	r = xseg_req_alloc(kr.port);
	assert_true(kw_batch(kr.seg, r, &kr.log, &c, 1, false, kr_slot(0), KR_PAGES) > 0);
	kr_submit(r);
	kr_pass(10 * KVD_SECOND);
	assert_null(kr_reply());
	kr.store_stands = false;
	kr_pass(KVD_SECOND / 100);
	assert_ptr_equal(kr_reply(), r);
	assert_int_equal(r->result, r->size);
	xseg_req_free(kr.port, r);
	assert_true(kr_has("last", "1"));
	put_others(79);
	assert_int_equal(kr_put("more", "1"), -ENOSPC);
}

/* ---- deleted keys ---- */

/* Each key by itself; all of them are in the index for as long as the log knows them. */
static void come_and_go(uint32_t from, uint32_t nr, uint32_t bytes)
{
	for (uint32_t i = from; i < from + nr; i++) {
		assert_int_equal(kr_put(name_of('q', i), text_of(bytes)), 0);
		assert_int_equal(kr_delete(name_of('q', i)), 0);
	}
}

/* All records are in the open zone. */
static void keys_that_come_and_go_never_fill_the_index(void **state)
{
	(void)state;
	come_and_go(0, 2000, 10);
	assert_int_equal(kr_counter(KS_REFUSED), 0);
	assert_int_equal(how_many('q', 2000), 0);
}

static void beside_keys_that_stay(void **state)
{
	(void)state;
	put_others(70);
	come_and_go(0, 1000, 300);
	assert_int_equal(how_many('n', 70), 70);
	kr_kill();
	kr_start(OPTIONS);
	assert_int_equal(how_many('n', 70), 70);
	assert_int_equal(how_many('q', 1000), 0);
	come_and_go(1000, 1000, 300);
	kr_power_cut();
	kr_start(OPTIONS);
	assert_int_equal(how_many('q', 2000), 0);
	come_and_go(2000, 1000, 300);
}

/* Their records are in older zones. */
static void keys_that_are_deleted_later_make_room_for_as_many(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < 90; i++)
			assert_int_equal(kr_put(name_of('a', 90 * round + i), text_of(4000)), 0);
		for (uint32_t i = 0; i < 90; i++)
			assert_int_equal(kr_delete(name_of('a', 90 * round + i)), 0);
	}
	assert_int_equal(how_many('a', 1800), 0);
}

/* M1: a pass for a few would copy all the others. */
static void few_deleted_keys_are_in_the_way_until_there_are_more(void **state)
{
	uint64_t copied;
	struct alog_stats s;

	(void)state;
	put_others(100);
	for (uint32_t i = 0; i < 11; i++)
		assert_int_equal(kr_delete(name_of('n', i)), 0);
	assert_int_equal(kr_put("more", "1"), -ENOSPC);
	alog_stats(kr_kvd()->log, &s);
	copied = s.copied_bytes;
	assert_int_equal(copied, 0);
	for (uint32_t i = 11; i < 13; i++)
		assert_int_equal(kr_delete(name_of('n', i)), 0);
	assert_int_equal(kr_put("more", "1"), 0);
	alog_stats(kr_kvd()->log, &s);
	assert_true(s.copied_bytes > copied);
	assert_int_equal(how_many('n', 100), 87);
}

/* M2, for tombstones that no pass frees: the log does not tell of records that a repair leaves. */
static void what_no_pass_frees_is_refused_until_more_is_deleted(void **state)
{
	struct index *ix = &kr_kvd()->index;
	struct index_entry e;

	(void)state;
	come_and_go(0, 86, 10);
	for (uint64_t slot = index_from(ix, 0); slot != INDEX_NONE; slot = index_next(ix, slot)) {
		index_get(ix, slot, &e);
		e.count++;
		index_set(ix, slot, &e);
	}
	put_others(14);
	assert_int_equal(kr_put("more", "1"), -ENOSPC);
	assert_int_equal(kr_put("more", "1"), -ENOSPC);
	assert_int_equal(kr_delete(name_of('n', 0)), 0);
	assert_int_equal(kr_put("more", "1"), 0);
}

/* All records are in the open zone, again. */
static void an_index_that_small_values_fill_evicts(void **state)
{
	(void)state;
	kr_kill();
	kr_start(OPTIONS " full=evict");
	put_others(500);
	assert_true(kr_has(name_of('n', 499), text_of(100)));
	come_and_go(0, 500, 10);
	assert_int_equal(kr_put("more", "1"), 0);
	assert_int_equal(kr_counter(KS_REFUSED), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, kr_teardown)
	const struct CMUnitTest tests[] = {
		T(a_kill_before_the_zones_go_finds_room),
		T(a_loss_of_power_that_undoes_deletions_finds_room),
		T(a_put_waits_until_the_zones_are_gone),
		T(keys_that_come_and_go_never_fill_the_index),
		T(beside_keys_that_stay),
		T(keys_that_are_deleted_later_make_room_for_as_many),
		T(what_no_pass_frees_is_refused_until_more_is_deleted),
		T(an_index_that_small_values_fill_evicts),
		T(few_deleted_keys_are_in_the_way_until_there_are_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
