/* alog_walk_test - walks: verify, and a backup while the log is used (K1 to K5 of walk.c, T4 of
 * tail.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rig/alog_rules.h"

static uint32_t walked, walked_bad, walks_over, walked_damage[4];

static void walk_record(void *ctx, uint64_t zone, const struct alog_hint *hint,
	const struct xrecord *rec, const void *data)
{
	(void)ctx;
	(void)zone;
	assert_int_equal(rec != NULL, data != NULL);
	if (rec)
		assert_int_equal(rec->sequence, hint->sequence);
	walked += rec != NULL;
	walked_bad += rec == NULL;
}

static void walk_over(void *ctx)
{
	(void)ctx;
	walks_over++;
}

static void walk_bad(void *ctx, enum alog_damage what, uint64_t zone, uint32_t place,
	uint32_t bytes)
{
	(void)ctx;
	(void)zone;
	(void)place;
	assert_true(bytes > 0);
	walked_damage[what]++;
}

static struct alog_walk_state walk_state(void)
{
	struct alog_walk_state s;

	alog_walk_state(rig->log, &s);
	return s;
}

static void a_backup_is_the_state_at_its_begin(void **state)
{
	uint64_t deleted;

	(void)state;
	begin();
	put_many(46, 900);
	ar_force_now(rig);
	deleted = stats().zones_deleted;
	assert_true(ar_backup(rig, 0));
	assert_false(ar_backup(rig, 0));
	assert_int_equal(walk_state().zones, stats().zones);
	put_many(40, 200);			/* meanwhile what it tells is superseded */
	alog_force(rig->log, alog_end(rig->log));
	for (uint32_t i = 0; i < 20000 && !rig->backup.over; i++) {
		ar_poll(rig);
		ar_step(rig);
		assert_true(stats().zones_deleted - deleted <= walk_state().told);
	}
	assert_int_equal(rig->backup.over, 1);
	assert_int_equal(rig->backup.error, 0);
	assert_int_equal(walk_state().told, walk_state().zones);
	assert_in_range(rig->backup.told, 46, 86);
}

static void a_walk_waits_for_its_user_and_others_use_the_scratch(void **state)
{
	uint32_t waits = 0;

	(void)state;
	begin();
	put_many(46, 900);
	ar_force_now(rig);
	assert_true(ar_backup(rig, 3));
	for (uint32_t i = 0; i < 4000 && !rig->backup.over; i++) {
		ar_poll(rig);
		ar_step(rig);
		if (!walk_state().waits)
			continue;
		waits++;
		assert_int_equal(ar_put(rig, i % 40, 100, i % 3 == 0), 0);
		alog_force(rig->log, alog_end(rig->log));
		alog_walk_go(rig->log);
	}
	assert_int_equal(rig->backup.over, 1);
	assert_int_equal(rig->backup.error, 0);
	assert_true(waits > 5);
}

static void a_walk_that_is_stopped_tells_nothing_more(void **state)
{
	uint32_t told;

	(void)state;
	begin();
	put_many(46, 900);
	ar_force_now(rig);
	assert_true(ar_backup(rig, 3));
	for (uint32_t i = 0; i < 20000 && !walk_state().waits; i++) {
		ar_poll(rig);
		ar_step(rig);
	}
	told = rig->backup.told;
	alog_walk_stop(rig->log);
	ar_settle(rig);
	assert_int_equal(rig->backup.told, told);
	assert_int_equal(rig->backup.over, 0);
	assert_true(ar_backup(rig, 0));
	ar_settle(rig);
	assert_int_equal(rig->backup.over, 1);
}

/* Puts until callers wait for space, or nr are done. */
static int fill_up(uint32_t nr)
{
	int rc = 0;

	for (uint32_t i = 0; i < nr && !rc; i++) {
		for (uint32_t tries = 0; tries < 20; tries++) {
			rc = ar_put(rig, i % 24, 2000, false);
			if (!rc)
				break;
			alog_force(rig->log, alog_end(rig->log));
			for (uint32_t n = 0; n < 200; n++) {
				ar_poll(rig);
				ar_step(rig);
			}
			ar_note_promises(rig);
		}
	}
	return rc;
}

static void a_hold_whose_user_is_slow_gives_way_to_callers(void **state)
{
	(void)state;
	begin();
	put_many(24, 2000);
	ar_force_now(rig);
	assert_true(ar_backup(rig, 1));
	for (uint32_t i = 0; i < 20000 && !walk_state().waits; i++) {
		ar_poll(rig);
		ar_step(rig);
	}
	assert_int_equal(fill_up(400), -EAGAIN);
	assert_int_equal(rig->backup.over, 0);
	rig->now += 2000000000;
	assert_int_equal(fill_up(400), 0);
	assert_int_equal(rig->backup.over, 1);
	assert_int_equal(rig->backup.error, -ENOSPC);
}

/* The walk stands in its first zone, while all that was there at its begin is superseded. */
static void no_zone_goes_before_it_was_told(void **state)
{
	uint64_t first = 0, last = 0;

	(void)state;
	begin_sized(24, 8);
	put_many(24, 2000);
	ar_force_now(rig);
	for (uint32_t k = 0; k < 24; k++) {
		first = !first || rig->index[k].zone < first ? rig->index[k].zone : first;
		last = rig->index[k].zone > last ? rig->index[k].zone : last;
	}
	assert_true(last > first);
	assert_true(ar_backup(rig, 1));
	for (uint32_t i = 0; i < 20000 && !walk_state().waits; i++) {
		ar_poll(rig);
		ar_step(rig);
	}
	assert_true(walk_state().waits);
	assert_int_equal(walk_state().told, 0);
	assert_int_equal(fill_up(400), -EAGAIN);	/* a second of patience is not over */
	for (uint64_t zone = first; zone <= last; zone++)
		assert_non_null(ar_zone(rig, zone)->now);
	rig->backup.waits_in = 0;
	alog_walk_go(rig->log);
	for (uint32_t i = 0; i < 20000 && !rig->backup.over; i++) {
		ar_poll(rig);
		ar_step(rig);
	}
	assert_int_equal(rig->backup.over, 1);
	assert_int_equal(rig->backup.error, 0);
	assert_int_equal(fill_up(50), 0);
	for (uint64_t zone = first; zone <= last; zone++)
		assert_true(!ar_zone(rig, zone) || !ar_zone(rig, zone)->now);
}

/* At rest: a compaction may stand, as it has no credit. */
static void a_compaction_without_credit_is_in_no_walks_way(void **state)
{
	uint32_t walks = 0;

	(void)state;
	begin_sized(16, 8);
	put_many(44, 6500);
	for (uint32_t i = 0; i < 2000; i++) {
		ar_put_now(rig, i % 8 ? 47 : ar_random(rig, 44), i % 8 ? 300 : 6500, false);
		ar_force_now(rig);
		ar_settle(rig);
		if (!ar_backup(rig, 0))
			continue;
		ar_settle(rig);
		assert_int_equal(rig->backup.over, 1);
		walks++;
	}
	assert_int_equal(walks, 2000);
	assert_true(stats().zones_deleted > 10);
}

static void a_pass_that_nobody_pays_for_is_in_no_walks_way(void **state)
{
	(void)state;
	begin_sized(16, 8);
	put_many(30, 6500);
	ar_force_now(rig);
	assert_true(alog_pass_begin(rig->log));
	ar_settle(rig);
	assert_true(ar_backup(rig, 0));
	ar_settle(rig);
	assert_int_equal(rig->backup.over, 1);
	assert_true(stats().copied_bytes < 30 * 6500);
}

static void a_compaction_without_credit_is_in_no_evictions_way(void **state)
{
	(void)state;
	begin_sized(16, 8);
	put_many(44, 6500);
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t tries = 0;

		ar_put_now(rig, i % 8 ? 47 : ar_random(rig, 44), i % 8 ? 300 : 6500, false);
		ar_force_now(rig);
		ar_settle(rig);
		while (alog_evict(rig->log) && tries++ < 10)
			ar_settle(rig);
		assert_in_range(tries, 0, 9);	/* a log that does not evict has to say so */
	}
	assert_true(stats().zones_deleted > 10);
}

static void a_repair_breaks_a_backup(void **state)
{
	(void)state;
	begin();
	put_many(46, 900);
	ar_force_now(rig);
	assert_true(ar_backup(rig, 1));
	ar_put_now(rig, 1, 200, false);
	rig->fail_write = 1000;
	alog_force(rig->log, alog_end(rig->log));
	for (uint32_t i = 0; i < 20000 && !rig->backup.over; i++) {
		ar_poll(rig);
		ar_step(rig);
	}
	assert_int_equal(rig->backup.error, -EIO);
	assert_false(ar_backup(rig, 0));
	rig->fail_write = 0;
	ar_force_now(rig);
	assert_true(ar_backup(rig, 0));
	ar_settle(rig);
	assert_int_equal(rig->backup.over, 1);
	assert_int_equal(rig->backup.error, 0);
}

static void a_page_that_is_written_while_its_zone_is_read_is_told(void **state)
{
	uint32_t nr = 0;

	(void)state;
	begin_sized(40, 8);
	put_many(7, 3000);
	assert_true(ar_backup(rig, 0));
	alog_push(rig->log, alog_end(rig->log));
	ar_poll(rig);
	answer(XSEG_OP_READ);			/* with what was there before the write */
	while (out_of(XSEG_OP_WRITE))
		answer(XSEG_OP_WRITE);
	while (!ar_put(rig, 10 + nr % 10, 3000, false))
		nr++;				/* until the tail is full */
	assert_in_range(nr, 20, 100);
	ar_settle(rig);
	assert_int_equal(rig->backup.over, 1);
	assert_int_equal(rig->backup.error, 0);
}

static void verify_tells_flipped_bits_of_records_headers_and_hints(void **state)
{
	struct alog_walk walk = { .record = walk_record, .over = walk_over, .bad = walk_bad };
	struct ar_object *o;
	uint64_t zone;
	uint32_t before;

	(void)state;
	begin_sized(40, 8);
	zone = seal_one(1);
	for (uint32_t i = 0; i < 20; i++)
		put_many(8, 3000);		/* out of the tail */
	ar_force_now(rig);
	o = ar_zone(rig, zone);
	walked = walked_bad = walks_over = 0;
	assert_int_equal(alog_walk(rig->log, &walk), 0);
	assert_int_equal(alog_walk(rig->log, &walk), -EBUSY);
	ar_settle(rig);
	before = walked;
	assert_int_equal(walks_over, 1);
	assert_int_equal(walked_bad, 0);
	assert_int_equal(walked_damage[ALOG_BAD_RECORD] + walked_damage[ALOG_BAD_HINTS], 0);
	o->now[ALOG_ZONE_HEAD_END + ALOG_HEADER_BYTES + 20] ^= 4;
	walked = 0;
	assert_int_equal(alog_walk(rig->log, &walk), 0);
	ar_settle(rig);
	assert_int_equal(walked_bad, 1);
	assert_int_equal(walked, before - 1);
	o->now[20] ^= 1;
	o->now[rig->cfg.zone_bytes - 20] ^= 1;
	walked_bad = 0;
	assert_int_equal(alog_walk(rig->log, &walk), 0);
	ar_settle(rig);
	assert_int_equal(walked_bad, 1);
	assert_int_equal(walked_damage[ALOG_BAD_RECORD], 1);
	assert_int_equal(walked_damage[ALOG_BAD_HINTS], 1);
}

/* ---- salvage ---- */

static void damage_heads(bool both)
{
	for (int i = 0; i < 1 + both; i++) {
		struct ar_object *h = ar_find(rig, i ? "+log:head.1" : "+log:head.0", false);

		if (!h)
			continue;
		h->now[70] ^= 1;
		if (h->durable)
			h->durable[70] ^= 1;
	}
}

/* Opens the log without its heads, and compares what a walk tells with what the index had. */
static void salvage(void)
{
	static uint64_t zone[AR_OBJECTS];
	uint32_t nr = 0, writes = rig->nr_writes, deletes = rig->nr_deletes;

	for (uint32_t i = 0; i < rig->nr_objects; i++)
		if (rig->object[i].now && alog_zone_of(&rig->cfg, rig->object[i].name))
			zone[nr++] = alog_zone_of(&rig->cfg, rig->object[i].name);
	rig->log = alog_create(&rig->cfg, &rig->user, rig->arena, rig->scratch);
	assert_non_null(rig->log);
	alog_salvage(rig->log, zone, nr);
	for (uint32_t i = 0; i < 10000 && !alog_salvages(rig->log); i++) {
		assert_int_equal(alog_failed(rig->log), 0);
		alog_poll(rig->log, rig->now);
		ar_step(rig);
	}
	assert_true(ar_backup(rig, 20));
	for (uint32_t i = 0; i < 10000 && !rig->backup.over; i++) {
		alog_poll(rig->log, rig->now);
		ar_step(rig);
		alog_walk_go(rig->log);
	}
	assert_int_equal(rig->backup.over, 1);
	assert_true(rig->backup.told > 0);
	assert_false(alog_serves(rig->log));
	assert_int_equal(rig->nr_writes, writes);
	assert_int_equal(rig->nr_deletes, deletes);
}

static void without_heads_all_that_verifies_is_told(void **state)
{
	(void)state;
	begin();
	rig->cfg.uuid[0] ^= 1;			/* that of a new log: it is not this one's */
	put_many(90, 700);
	ar_put_now(rig, 7, 0, true);
	ar_force_now(rig);
	ar_cut(rig);
	damage_heads(true);
	salvage();
}

static void what_the_tail_alone_has_is_told_as_well(void **state)
{
	(void)state;
	begin();
	put_many(60, 700);
	ar_force_now(rig);
	put_many(10, 900);
	ar_kill(rig);
	damage_heads(true);
	salvage();
}

static void with_one_head_it_says_which_zones_there_are(void **state)
{
	(void)state;
	begin();
	put_many(90, 700);
	ar_force_now(rig);
	ar_cut(rig);
	damage_heads(false);
	salvage();
}

static void an_objects_name_says_which_zone_it_is(void **state)
{
	struct alog_config cfg = { .prefix = "log" };

	(void)state;
	begin();
	assert_int_equal(alog_zone_of(&cfg, "+log:00000000000001fe"), 0x1fe);
	assert_int_equal(alog_zone_of(&cfg, "+log:1fe"), 0);
	assert_int_equal(alog_zone_of(&cfg, "+logs:00000000000001fe"), 0);
	assert_int_equal(alog_zone_of(&cfg, "+log:head.0"), 0);
	assert_int_equal(alog_zone_of(&cfg, "+log:own.0000000000000001"), 0);
	assert_int_equal(alog_zone_of(&cfg, "volume"), 0);
}

static void without_heads_and_zones_a_salvage_fails(void **state)
{
	(void)state;
	begin();
	ar_kill(rig);
	damage_heads(true);
	rig->log = alog_create(&rig->cfg, &rig->user, rig->arena, rig->scratch);
	alog_salvage(rig->log, NULL, 0);
	for (uint32_t i = 0; i < 100; i++) {
		alog_poll(rig->log, rig->now);
		ar_step(rig);
	}
	assert_int_equal(alog_failed(rig->log), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(a_backup_is_the_state_at_its_begin),
		RULE(a_walk_waits_for_its_user_and_others_use_the_scratch),
		RULE(a_walk_that_is_stopped_tells_nothing_more),
		RULE(a_hold_whose_user_is_slow_gives_way_to_callers),
		RULE(no_zone_goes_before_it_was_told),
		RULE(a_compaction_without_credit_is_in_no_walks_way),
		RULE(a_pass_that_nobody_pays_for_is_in_no_walks_way),
		RULE(a_compaction_without_credit_is_in_no_evictions_way),
		RULE(a_repair_breaks_a_backup),
		RULE(a_page_that_is_written_while_its_zone_is_read_is_told),
		RULE(verify_tells_flipped_bits_of_records_headers_and_hints),
		RULE(without_heads_all_that_verifies_is_told),
		RULE(what_the_tail_alone_has_is_told_as_well),
		RULE(with_one_head_it_says_which_zones_there_are),
		RULE(an_objects_name_says_which_zone_it_is),
		RULE(without_heads_and_zones_a_salvage_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
