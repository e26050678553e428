/* kvd_clear_test - DELETE_ALL: E1 to E5 of clear.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peers/memd/memd.h"
#include "tests/rig/kvd_rig.h"

static int delete_all_at(uint32_t expiry, bool fua)
{
	struct kw_change c = { .kind = KV_DELETE_ALL, .expiry = expiry };

	return kr_change(&c, 1, fua);
}

static int delete_all(void)
{
	return delete_all_at(0, false);
}

static char *text_of(uint32_t bytes, char c)
{
	static char text[50001];

	memset(text, c, bytes);
	text[bytes] = '\0';
	return text;
}

static void put_many(const char *prefix, uint32_t nr, uint32_t bytes)
{
	char name[32];

	for (uint32_t i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "%s%u", prefix, i);
		assert_int_equal(kr_put(name, text_of(bytes, 'm')), 0);
	}
}

static uint32_t how_many(const char *prefix, uint32_t nr)
{
	struct kw_value v = { 0 };
	char name[32];
	uint32_t n = 0;

	for (uint32_t i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "%s%u", prefix, i);
		n += kr_get(name, &v) == 0;
	}
	return n;
}

/* How many keys a SCAN tells. */
static uint32_t scanned(void)
{
	struct kv_scan_head head = { .next = 0 };
	uint32_t nr = 0;
	struct xreq *r;

	do {
		r = xseg_req_alloc(kr.port);
		kw_query(kr.seg, r, &kr.log, &(struct kv_query){ .kind = KV_SCAN,
			.cursor = head.next }, "", kr_slot(0), 4);
		assert_int_equal(kr_call(r), r->size);
		xseg_req_read_data(kr.seg, r, 0, &head, sizeof(head));
		nr += head.nr;
		xseg_req_free(kr.port, r);
	} while (head.next);
	return nr;
}

static void set_fault(const char *fail)
{
	struct xseg_error err = { "" };
	const struct opt *o = opt_find(memd_class.opts, "fail");

	assert_int_equal(opt_set(o, kr.store, fail, &err), 0);
	assert_int_equal(memd_class.changed(kr.store, o, &err), 0);
}

/* ---- at once: E1 ---- */

static void nothing_is_there_behind_it(void **state)
{
	(void)state;
	put_many("k", 200, 3000);		/* most of them are below */
	assert_int_equal(delete_all(), 0);
	assert_int_equal(how_many("k", 200), 0);
	assert_int_equal(scanned(), 0);
	assert_int_equal(kr_delete("k7"), -ENOENT);
	assert_int_equal(kr_kvd()->index.keys, 0);
	assert_int_equal(kr_kvd()->index.live_bytes, 0);
	assert_int_equal(kr_put("k3", "new"), 0);
	assert_true(kr_has("k3", "new"));
	assert_int_equal(scanned(), 1);
	assert_int_equal(kr_kvd()->index.keys, 1);
}

static void the_sweep_takes_all_entries_out(void **state)
{
	struct alog_stats s;

	(void)state;
	kr_kill();
	kr_start("keys=5000");
	put_many("k", 3000, 10);
	assert_int_equal(kr_put("k1", "2"), 0);
	assert_int_equal(kr_delete("k2"), 0);
	assert_int_equal(delete_all(), 0);
	put_many("n", 3, 10);
	kr_settle();
	assert_false(kvd_clear_sweeps(kr_kvd()));
	assert_int_equal(kr_kvd()->index.used, 3);
	assert_int_equal(kr_kvd()->index.keys, 3);
	assert_int_equal(kr_flush(), 0);
	kr_pass(KVD_SECOND);
	alog_stats(kr_kvd()->log, &s);
	assert_true(s.zones <= 2);		/* all others are given back */
	assert_int_equal(how_many("n", 3), 3);
}

/* The answer of a conditional put is that of an absent key, also before the sweep. */
static void conditions_find_no_key(void **state)
{
	struct kw_change c = { .kind = KV_PUT, .key = "key", .key_bytes = 3, .value = "new",
		.value_bytes = 3, .condition = KV_IF_PRESENT };

	(void)state;
	assert_int_equal(kr_put("key", "old"), 0);
	kr_settle();
	kr.store_stands = true;			/* no head, so no sweep */
	assert_int_equal(delete_all(), 0);
	assert_int_equal(kr_change(&c, 1, false), -ENOENT);
	c.condition = KV_IF_ABSENT;
	assert_int_equal(kr_change(&c, 1, false), 0);
	assert_int_equal(kr_change(&c, 1, false), -EEXIST);
	assert_int_equal(kr_delete("key"), 0);
	assert_true(kr_has("key", NULL));
	assert_true(kvd_clear_sweeps(kr_kvd()));
	kr.store_stands = false;
}

static void malformed_ones_are_refused(void **state)
{
	struct kw_change c[2] = { { .kind = KV_DELETE_ALL }, { .kind = KV_DELETE_ALL } };

	(void)state;
	assert_int_equal(kr_put("key", "stays"), 0);
	assert_int_equal(kr_change(c, 2, false), -EINVAL);
	c[0].condition = KV_IF_PRESENT;
	assert_int_equal(kr_change(c, 1, false), -EINVAL);
	c[0] = (struct kw_change){ .kind = KV_DELETE_ALL, .key = "key", .key_bytes = 3 };
	assert_int_equal(kr_change(c, 1, false), -EINVAL);
	assert_true(kr_has("key", "stays"));
}

/* ---- kills, stops and losses of power ---- */

static void it_survives_a_kill_and_a_stop(void **state)
{
	(void)state;
	put_many("k", 100, 3000);
	assert_int_equal(delete_all(), 0);
	put_many("n", 50, 3000);
	kr_kill();
	kr_start("");
	assert_int_equal(how_many("k", 100), 0);
	assert_int_equal(how_many("n", 50), 50);
	assert_int_equal(kr_kvd()->index.keys, 50);
	kr_stop();
	kr_start("");
	assert_int_equal(how_many("k", 100), 0);
	assert_int_equal(how_many("n", 50), 50);
}

/* No head has it: the records alone say it. */
static void an_opening_that_the_head_tells_nothing_finds_it(void **state)
{
	(void)state;
	put_many("k", 30, 3000);
	assert_int_equal(kr_flush(), 0);
	kr_settle();
	kr.store_stands = true;
	assert_int_equal(delete_all(), 0);
	assert_int_equal(kr_put("k1", "new"), 0);
	kr_kill();
	kr.store_stands = false;
	kr_start("");
	assert_int_equal(how_many("k", 30), 1);
	assert_true(kr_has("k1", "new"));
	assert_int_equal(kr_kvd()->index.keys, 1);
	assert_int_equal(kr_delete("k1"), 0);
	for (uint32_t i = 0; i < 3; i++) {	/* with compactions between */
		put_many("n", 200, 3000);
		assert_int_equal(kr_flush(), 0);
		kr_kill();
		kr_start("");
		assert_int_equal(how_many("k", 30), 0);
	}
}

static void a_forced_one_survives_a_loss_of_power(void **state)
{
	(void)state;
	put_many("k", 100, 3000);
	assert_int_equal(kr_flush(), 0);
	assert_int_equal(delete_all_at(0, true), 0);
	assert_int_equal(kr_put("n", "new"), 0);
	kr_power_cut();
	kr_start("");
	assert_int_equal(how_many("k", 100), 0);
	assert_int_equal(scanned(), 0);
}

/* Its record is copied for as long as the log lives. */
static void it_holds_when_the_log_was_written_anew(void **state)
{
	(void)state;
	put_many("k", 40, 3000);
	assert_int_equal(delete_all(), 0);
	for (uint32_t i = 0; i < 30; i++)
		put_many("n", 100, 3000);
	assert_int_equal(kr_flush(), 0);
	kr_kill();
	kr_start("");
	assert_true(kr_kvd()->clear.last.bytes > 0);
	assert_int_equal(how_many("k", 40), 0);
	assert_int_equal(how_many("n", 100), 100);
	kr_power_cut();
	kr_start("");
	assert_true(kr_kvd()->clear.last.bytes > 0);
	assert_int_equal(how_many("k", 40), 0);
	assert_int_equal(how_many("n", 100), 100);
}

/* A tombstone behind it lives for as long as a record behind it does. */
static void tombstones_count_what_came_behind_it(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(kr_put("key", "before"), 0);
	put_many("f", 20, 30000);
	assert_int_equal(delete_all(), 0);
	assert_int_equal(kr_put("key", "behind"), 0);
	put_many("f", 20, 30000);
	assert_int_equal(kr_delete("key"), 0);
	for (uint32_t i = 0; i < 40; i++) {
		put_many("f", 10, 30000);
		if (i % 10 == 9) {
			assert_int_equal(kr_flush(), 0);
			kr_kill();
			kr_start("");
			assert_true(kr_has("key", NULL));
		}
	}
	kr_power_cut();
	kr_start("");
	assert_true(kr_has("key", NULL));
}

/* ---- room: E3, E5 ---- */

static void a_full_log_takes_puts_behind_it(void **state)
{
	char name[16];
	uint32_t n = 0;

	(void)state;
	do
		snprintf(name, sizeof(name), "k%u", n);
	while (kr_put(name, text_of(50000, 'f')) == 0 && ++n < 1000);
	assert_in_range(n, 50, 170);
	assert_int_equal(delete_all(), 0);
	put_many("n", n - 10, 50000);
	assert_int_equal(how_many("k", n), 0);
	assert_int_equal(how_many("n", n - 10), n - 10);
}

static void a_full_index_takes_puts_behind_it(void **state)
{
	(void)state;
	kr_kill();
	kr_start("keys=300");
	put_many("k", 300, 100);
	assert_int_equal(kr_put("more", "1"), -ENOSPC);
	assert_int_equal(delete_all(), 0);
	put_many("n", 300, 100);
	assert_int_equal(kr_put("more", "1"), -ENOSPC);
	kr_kill();				/* all old records are there yet */
	kr_start("keys=300");
	assert_int_equal(how_many("n", 300), 300);
	assert_int_equal(how_many("k", 300), 0);
	kr_power_cut();
	kr_start("keys=300");
}

/* Killed before a head has it, and a key is put. */
static void no_entry_is_taken_out_before_the_head_has_it(void **state)
{
	struct kw_change c = { .kind = KV_PUT, .key = "more", .key_bytes = 4, .value = "1",
		.value_bytes = 1 };
	struct xreq *r;

	(void)state;
	kr_kill();
	kr_start("keys=100");
	put_many("k", 100, 100);
	assert_int_equal(kr_flush(), 0);
	kr_settle();
	kr.store_stands = true;
	assert_int_equal(delete_all(), 0);
	r = xseg_req_alloc(kr.port);
	kw_batch(kr.seg, r, &kr.log, &c, 1, false, kr_slot(0), KR_PAGES);
	kr_submit(r);
	kr_settle();
	assert_null(kr_reply());
	kr_kill();
	kr.store_stands = false;
	assert_int_equal(kr_open("keys=100"), 0);
	kr_pass(KVD_SECOND);
	assert_ptr_equal(kr_reply(), r);
	assert_int_equal(r->result, r->size);
	xseg_req_free(kr.port, r);
	assert_true(kr_has("more", "1"));
	assert_int_equal(how_many("k", 100), 0);
}

/* ---- those that wait: E4 ---- */

static void one_with_a_time_takes_what_is_there_then(void **state)
{
	(void)state;
	assert_int_equal(kr_put("before", "1"), 0);
	assert_int_equal(delete_all_at(kr.date_s + 10, false), 0);
	assert_int_equal(kr_put("meanwhile", "1"), 0);
	kr.date_s += 9;
	kr_pass(KVD_SECOND);
	assert_true(kr_has("before", "1"));
	assert_true(kr_has("meanwhile", "1"));
	kr.date_s += 1;
	assert_true(kr_has("before", NULL));
	assert_true(kr_has("meanwhile", NULL));
	assert_int_equal(kr_put("behind", "1"), 0);
	kr.date_s += 1000;
	kr_pass(KVD_SECOND);
	kr_kill();
	kr_start("");
	assert_true(kr_has("behind", "1"));
	assert_int_equal(scanned(), 1);
}

/* A get that comes at that time finds nothing, and nobody else need come. */
static void it_is_done_though_nobody_asks(void **state)
{
	(void)state;
	put_many("k", 10, 1000);
	assert_int_equal(delete_all_at(kr.date_s + 3, false), 0);
	kr_settle();
	kr.date_s += 3;
	kr_pass(10 * KVD_SECOND);
	assert_int_equal(kr_kvd()->index.keys, 0);
}

static void one_that_waits_survives(void **state)
{
	(void)state;
	assert_int_equal(kr_put("before", "1"), 0);
	assert_int_equal(delete_all_at(kr.date_s + 100, true), 0);
	kr_kill();
	kr_start("");
	assert_true(kr_has("before", "1"));
	put_many("n", 200, 30000);		/* its zone is compacted */
	put_many("n", 10, 30000);
	kr_stop();
	kr_start("");
	assert_int_equal(kr_flush(), 0);
	kr_power_cut();
	kr_start("");
	assert_true(kr_has("before", "1"));
	kr.date_s += 100;
	assert_true(kr_has("before", NULL));
	assert_int_equal(kr_put("behind", "1"), 0);
	assert_int_equal(kr_flush(), 0);
	kr.date_s -= 5000;
	kr_power_cut();
	kr_start("");
	assert_true(kr_has("before", NULL));
	assert_true(kr_has("behind", "1"));
	assert_int_equal(scanned(), 1);
}

/* What was told to be gone stays gone, though nothing of it was flushed. */
static void what_a_time_has_taken_does_not_come_back(void **state)
{
	(void)state;
	assert_int_equal(kr_put("key", "1"), 0);
	assert_int_equal(delete_all_at(kr.date_s + 5, true), 0);
	kr_settle();
	kr.date_s += 5;
	assert_true(kr_has("key", NULL));
	kr.date_s -= 5000;
	kr_power_cut();
	kr_start("");
	assert_true(kr_has("key", NULL));
}

static void a_later_one_replaces_one_that_waits(void **state)
{
	uint32_t date = kr.date_s;

	(void)state;
	assert_int_equal(delete_all_at(date + 10, false), 0);
	assert_int_equal(delete_all_at(date + 100, false), 0);
	assert_int_equal(kr_put("key", "1"), 0);
	kr.date_s = date + 50;
	assert_true(kr_has("key", "1"));
	kr_kill();
	kr_start("");
	assert_true(kr_has("key", "1"));
	assert_int_equal(delete_all(), 0);
	assert_true(kr_has("key", NULL));
	assert_int_equal(kr_put("key", "2"), 0);
	kr.date_s = date + 200;
	assert_true(kr_has("key", "2"));
	kr_kill();
	kr_start("");
	assert_true(kr_has("key", "2"));
}

/* ---- others ---- */

static void it_is_done_once_though_kvd_dies(void **state)
{
	struct kw_change c = { .kind = KV_DELETE_ALL };
	struct xreq *r;

	(void)state;
	for (uint32_t i = 0; i < 40; i++) {
		assert_int_equal(kr_put("old", "1"), 0);
		r = xseg_req_alloc(kr.port);
		kw_batch(kr.seg, r, &kr.log, &c, 1, i % 2, kr_slot(0), KR_PAGES);
		kr_submit(r);
		for (uint32_t n = 0; n < i / 2; n++)
			kr_step();
		kr_kill();
		assert_int_equal(kr_open(""), 0);
		kr_pass(KVD_SECOND);
		assert_ptr_equal(kr_reply(), r);
		assert_int_equal(r->result, r->size);
		xseg_req_free(kr.port, r);
		assert_true(kr_has("old", NULL));
		assert_int_equal(kr_put("old", "2"), 0);
		kr_kill();
		kr_start("");
		assert_true(kr_has("old", "2"));
	}
}

static void a_verify_counts_no_value_before_it(void **state)
{
	struct xreq *r;
	char text[1000];

	(void)state;
	put_many("k", 30, 3000);
	assert_int_equal(delete_all(), 0);
	put_many("n", 4, 3000);
	r = xseg_req_alloc(kr.port);
	r->op = XSEG_OP_ADMIN;
	r->size = KV_PAGE;
	kw_pages(r, kr_slot(0), 1);
	xseg_req_write_data(kr.seg, r, 0, "verify", 7);
	assert_true(kr_call(r) > 0);
	xseg_req_read_data(kr.seg, r, 0, text, sizeof(text) - 1);
	text[r->result] = '\0';
	assert_non_null(strstr(text, "live=4\nbad=0\n"));
	xseg_req_free(kr.port, r);
}

/* Values whose reads fail while a repair goes on. */
static void it_holds_while_the_store_fails(void **state)
{
	(void)state;
	put_many("k", 100, 3000);
	set_fault("write:0.3:EIO");
	set_fault("flush:0.5:EIO");
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(delete_all(), 0);
		put_many("n", 60, 3000);
		kr_pass(KVD_SECOND);
	}
	set_fault("");
	kr_pass(10 * KVD_SECOND);
	assert_int_equal(kr_flush(), 0);
	assert_int_equal(how_many("k", 100), 0);
	assert_int_equal(how_many("n", 60), 60);
	kr_power_cut();
	kr_start("");
	assert_int_equal(how_many("k", 100), 0);
	assert_int_equal(how_many("n", 60), 60);
}

/* ---- damage ---- */

static void damage_record(const struct kvd_clear_record *c)
{
	char name[XSEG_TARGET_MAX];
	uint8_t *page;

	snprintf(name, sizeof(name), "+kv:%016llx", (unsigned long long)c->zone);
	page = (uint8_t *)(uintptr_t)memd_page(kr.store, name, c->place / KV_PAGE);
	assert_non_null(page);
	page[c->place % KV_PAGE + 20] ^= 0x55;
}

/* Others are put until that zone is compacted. */
static void empty_zone(uint64_t zone)
{
	char name[16];

	for (uint32_t i = 0; alog_zone_epoch(kr_kvd()->log, zone) && i < 20000; i++) {
		snprintf(name, sizeof(name), "f%u", i * 7919 % 300);
		assert_int_equal(kr_put(name, text_of(4000, 'm')), 0);
	}
	assert_int_equal(alog_zone_epoch(kr_kvd()->log, zone), 0);
	assert_int_equal(kr_flush(), 0);
}

/* Its zone is compacted, and the record stands in another one. */
static void a_damaged_one_is_written_anew(void **state)
{
	struct kvd_clear_record was;

	(void)state;
	put_many("k", 40, 3000);
	assert_int_equal(delete_all(), 0);
	was = kr_kvd()->clear.last;
	put_many("f", 20, 30000);
	assert_int_equal(kr_flush(), 0);
	damage_record(&was);
	empty_zone(was.zone);
	assert_int_equal(kr_counter(KS_BAD_RECORDS), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_not_equal(kr_kvd()->clear.last.zone, was.zone);
		assert_int_equal(kr_kvd()->clear.last.sequence, was.sequence);
		assert_true(kr_kvd()->clear.last.bytes > 0);
		assert_int_equal(how_many("k", 40), 0);
		assert_int_equal(how_many("f", 20), 20);
		kr_kill();
		kr_start("");
	}
}

static void a_damaged_one_that_waits_comes_all_the_same(void **state)
{
	uint32_t at_s = kr.date_s + 100;

	(void)state;
	put_many("k", 40, 3000);
	assert_int_equal(delete_all_at(at_s, true), 0);
	put_many("f", 20, 30000);
	assert_int_equal(kr_flush(), 0);
	damage_record(&kr_kvd()->clear.waits);
	empty_zone(kr_kvd()->clear.waits.zone);
	assert_int_equal(kr_counter(KS_BAD_RECORDS), 1);
	kr_kill();
	kr_start("");
	assert_int_equal(kr_kvd()->clear.waits.at_s, at_s);
	assert_int_equal(how_many("k", 40), 40);
	kr.date_s = at_s;
	assert_int_equal(how_many("k", 40), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, kr_setup, kr_teardown)
	const struct CMUnitTest tests[] = {
		T(nothing_is_there_behind_it),
		T(the_sweep_takes_all_entries_out),
		T(conditions_find_no_key),
		T(malformed_ones_are_refused),
		T(it_survives_a_kill_and_a_stop),
		T(an_opening_that_the_head_tells_nothing_finds_it),
		T(a_forced_one_survives_a_loss_of_power),
		T(it_holds_when_the_log_was_written_anew),
		T(tombstones_count_what_came_behind_it),
		T(a_full_log_takes_puts_behind_it),
		T(a_full_index_takes_puts_behind_it),
		T(no_entry_is_taken_out_before_the_head_has_it),
		T(one_with_a_time_takes_what_is_there_then),
		T(it_is_done_though_nobody_asks),
		T(one_that_waits_survives),
		T(what_a_time_has_taken_does_not_come_back),
		T(a_later_one_replaces_one_that_waits),
		T(it_is_done_once_though_kvd_dies),
		T(a_verify_counts_no_value_before_it),
		T(it_holds_while_the_store_fails),
		T(a_damaged_one_is_written_anew),
		T(a_damaged_one_that_waits_comes_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
