/* kvd_full_test - an index that is full, and zones that are to be deleted: I8 of logged.c. */
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

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, kr_teardown)
	const struct CMUnitTest tests[] = {
		T(a_kill_before_the_zones_go_finds_room),
		T(a_loss_of_power_that_undoes_deletions_finds_room),
		T(a_put_waits_until_the_zones_are_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
