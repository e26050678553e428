/* alog_rules_test - the log's rules L1 to L8, each by the sequence that breaks a log without it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/rig/alog_rules.h"

/* ---- L1 ---- */

static void a_flush_is_sent_only_when_all_before_it_is_written(void **state)
{
	(void)state;
	begin();
	put_many(3, 3000);
	alog_force(rig->log, alog_end(rig->log));
	ar_poll(rig);
	assert_int_not_equal(out_of(XSEG_OP_WRITE), 0);
	while (out_of(XSEG_OP_WRITE)) {
		assert_int_equal(out_of(XSEG_OP_FLUSH), 0);
		assert_int_equal(alog_stable(rig->log), 0);
		assert_true(ar_step(rig));
	}
	ar_poll(rig);
	assert_int_equal(out_of(XSEG_OP_FLUSH), 1);
	assert_int_equal(alog_stable(rig->log), 0);
	ar_settle(rig);
	assert_int_equal(alog_stable(rig->log), alog_end(rig->log));
}

static void four_groups_may_be_out_and_no_fifth(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(ar_put(rig, i, 100, false), 0);
		alog_force(rig->log, alog_end(rig->log));
		for (uint32_t n = 0; n < 4; n++) {
			ar_poll(rig);
			while (out_of(XSEG_OP_WRITE))
				ar_step(rig);
		}
	}
	assert_in_range(out_of(XSEG_OP_FLUSH), 0, 4);
	ar_settle(rig);
	assert_int_equal(alog_stable(rig->log), alog_end(rig->log));
}

static void an_append_that_nobody_forces_waits_for_no_request(void **state)
{
	(void)state;
	begin();
	rig->stuck = true;
	assert_int_equal(ar_put(rig, 1, 100, false), 0);
	ar_poll(rig);
	assert_int_equal(rig->nr_out, 0);
	ar_kill(rig);
	rig->stuck = false;
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[1].type, ALOG_VALUE);
}

/* ---- L2 ---- */

static void a_failed_append_is_appended_anew_before_it_is_promised(void **state)
{
	uint64_t zone, wanted;

	(void)state;
	begin();
	ar_put_now(rig, 1, 500, false);
	zone = rig->index[1].zone;
	rig->fail_write = 1000;
	wanted = alog_end(rig->log);
	alog_force(rig->log, wanted);
	ar_poll(rig);
	while (out_of(XSEG_OP_WRITE))
		ar_step(rig);
	rig->fail_write = 0;
	ar_settle(rig);
	assert_int_equal(stats().repairs, 1);
	assert_int_not_equal(rig->index[1].zone, zone);
	assert_true(alog_stable(rig->log) >= wanted);
	ar_note_promises(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[1].type, ALOG_VALUE);
}

static void a_store_that_refuses_for_long_loses_nothing(void **state)
{
	(void)state;
	begin();
	put_many(6, 700);
	rig->fail_write = 700;
	alog_force(rig->log, alog_end(rig->log));
	for (uint32_t i = 0; i < 400; i++) {
		ar_poll(rig);
		ar_step(rig);
		rig->now += 50000000;
	}
	rig->fail_write = 0;
	ar_force_now(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	for (uint32_t k = 0; k < 6; k++)
		assert_int_equal(rig->index[k].type, ALOG_VALUE);
}

/* ---- L3 ---- */

static void nothing_is_appended_to_a_zone_of_an_earlier_opening(void **state)
{
	uint64_t zone;

	(void)state;
	begin();
	ar_put_now(rig, 1, 100, false);
	zone = rig->index[1].zone;
	ar_kill(rig);
	assert_true(ar_open(rig));
	ar_put_now(rig, 2, 100, false);
	assert_true(rig->index[2].zone > zone);
	ar_force_now(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	ar_put_now(rig, 3, 100, false);
	assert_true(rig->index[3].zone > rig->index[2].zone);
}

static void an_id_is_used_once_even_if_the_opening_that_had_it_wrote_nothing(void **state)
{
	uint64_t last = 0;

	(void)state;
	begin();
	for (uint32_t i = 0; i < 6; i++) {
		ar_put_now(rig, 1, 100, false);
		assert_true(rig->index[1].zone > last);
		last = rig->index[1].zone;
		ar_cut(rig);			/* nothing of it was flushed */
		assert_true(ar_open(rig));
	}
}

static void a_record_of_an_earlier_epoch_in_its_place_is_not_believed(void **state)
{
	struct ar_object *old, *now;
	uint64_t zone;

	(void)state;
	begin();
	ar_put_now(rig, 1, 100, false);
	ar_force_now(rig);
	old = ar_zone(rig, rig->index[1].zone);
	ar_cut(rig);
	assert_true(ar_open(rig));
	ar_put_now(rig, 2, 100, false);
	ar_force_now(rig);
	zone = rig->index[2].zone;
	now = ar_zone(rig, zone);
	/* the old record's bytes behind the new one */
	memcpy(now->durable + 2048, old->durable + ALOG_ZONE_HEAD_END, 168);
	memcpy(now->now + 2048, old->durable + ALOG_ZONE_HEAD_END, 168);
	ar_cut(rig);
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[1].count, 1);
}

/* ---- L4 ---- */

static void hints_bring_the_index_back_of_what_was_flushed(void **state)
{
	(void)state;
	begin_sized(12, 4);
	seal_one(1);
	ar_force_now(rig);
	seal_one(20);			/* a later zone's header tells of the flush */
	ar_force_now(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	assert_int_not_equal(stats().opened_by_hints, 0);
	ar_check_values(rig);
}

static void hints_whose_records_are_lost_are_not_believed(void **state)
{
	struct ar_object *o;
	uint64_t zone;

	(void)state;
	begin();
	zone = seal_one(1);
	ar_settle(rig);
	ar_kill(rig);
	/* power fails: of the zone all is kept but the second page */
	o = ar_zone(rig, zone);
	for (uint32_t i = rig->first_op; i < rig->nr_ops; i++) {
		struct ar_op *op = &rig->op[i];

		op->durable = true;
		if (op->object == o && op->offset <= 4096 && op->offset + op->size > 4096)
			memset(op->data + (4096 - op->offset), 0, 4096);
	}
	ar_cut(rig);
	assert_true(ar_open(rig));
	assert_int_not_equal(rig->damages[ALOG_HOLE], 0);
	assert_int_equal(stats().opened_by_hints, 0);
	/* and they stay so when a flush has made that stable */
	ar_force_now(rig);
	ar_put_now(rig, 5, 100, false);
	ar_force_now(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	ar_check_values(rig);
}

/* ---- L5, L6 ---- */

static void a_zone_with_promised_records_stays_until_their_superseders_are_stable(void **state)
{
	(void)state;
	begin();
	for (uint32_t k = 0; k < 40; k++)
		ar_put_now(rig, k, 200, false);
	ar_force_now(rig);
	/* all of the first zone is dead, and nothing is flushed */
	for (uint32_t i = 0; i < 120; i++) {
		assert_int_equal(ar_put(rig, i % 40, 700, false), 0);
		ar_settle(rig);
	}
	assert_true(stats().zones >= 3);
	assert_int_equal(stats().zones_deleted, 0);
	assert_true(alog_stable(rig->log) < alog_end(rig->log));
	ar_cut(rig);
	assert_true(ar_open(rig));		/* the promised values, or newer ones */
	for (uint32_t k = 0; k < 40; k++)
		assert_int_equal(rig->index[k].type, ALOG_VALUE);
}

static void zones_of_which_nothing_was_promised_go_without_a_flush(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 40 * 20; i++) {
		assert_int_equal(ar_put(rig, i % 40, 200, false), 0);
		ar_settle(rig);
	}
	assert_int_equal(rig->nr_flushes, 0);
	assert_true(stats().zones_deleted >= 3);
	ar_check_values(rig);
}

/* ---- L7 ---- */

static void a_deleted_key_stays_deleted_when_its_tombstone_is_gone(void **state)
{
	(void)state;
	begin();
	ar_put_now(rig, 1, 200, false);
	ar_force_now(rig);
	ar_put_now(rig, 1, 0, true);
	ar_force_now(rig);
	for (uint32_t i = 0; i < 600 && rig->index[1].type != ALOG_NOTHING; i++) {
		ar_put_now(rig, 2 + i * 7 % 43, 4000, false);
		ar_force_now(rig);
	}
	assert_int_equal(rig->index[1].type, ALOG_NOTHING);
	for (uint32_t i = 0; i < 5; i++) {
		ar_cut(rig);
		assert_true(ar_open(rig));
		assert_int_equal(rig->index[1].type, ALOG_NOTHING);
		put_many(20, 300);
		ar_put_now(rig, 1, 0, true);
	}
}

static void the_highest_sequence_counts_wherever_it_stands(void **state)
{
	uint64_t first;

	(void)state;
	begin();
	ar_put_now(rig, 1, 100, false);
	first = rig->index[1].zone;
	for (uint32_t i = 0; i < 400 && rig->index[1].zone == first; i++) {
		ar_put_now(rig, 2 + i * 7 % 43, 4000, false);	/* compaction copies it */
		ar_force_now(rig);
	}
	assert_true(rig->index[1].zone > first);
	assert_true(rig->index[1].sequence < rig->index[2].sequence);
	ar_put_now(rig, 1, 120, false);
	ar_force_now(rig);
	ar_forget(rig);
	assert_true(ar_open(rig));
	ar_check_values(rig);
}

/* Key 1 has a value in zone *a and a tombstone in zone *b, both promised. Then all else in these
 * zones is superseded, and nothing of that is flushed. */
static void hide_one(uint64_t *a, uint64_t *b)
{
	uint32_t k = 2, from;

	ar_put_now(rig, 1, 300, false);
	*a = rig->index[1].zone;
	while (ar_put_now(rig, k, 1800, false), rig->index[k].zone == *a)
		k++;
	ar_put_now(rig, 1, 0, true);
	*b = rig->index[1].zone;
	for (k++; ar_put_now(rig, k, 1800, false), rig->index[k].zone == *b;)
		k++;
	ar_force_now(rig);
	from = rig->nr_deletes;
	for (uint32_t i = 2; i < k; i++)
		ar_put_now(rig, i, 200, false);
	ar_settle(rig);
	assert_int_equal(rig->nr_deletes, from);
}

static void a_zone_that_hid_records_goes_when_their_deletion_is_stable(void **state)
{
	uint64_t a, b;

	(void)state;
	begin_sized(20, 8);
	hide_one(&a, &b);
	assert_int_equal(rig->index[1].count, 1);	/* the value's zone is empty */
	alog_dead(rig->log, b, rig->index[1].bytes);	/* so nothing needs the tombstone */
	ar_settle(rig);
	assert_int_equal(rig->index[1].type, ALOG_NOTHING);
	assert_int_equal(rig->nr_deletes, 0);
	alog_force(rig->log, alog_end(rig->log));
	ar_settle(rig);
	/* one flush allows both: a loss of power could undo the first and keep the second */
	assert_int_equal(rig->nr_deletes, 1);
	assert_null(ar_zone(rig, a)->now);
	assert_non_null(ar_zone(rig, b)->now);
	ar_note_promises(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	assert_int_not_equal(rig->index[1].type, ALOG_VALUE);
	ar_put_now(rig, 2, 200, false);
	ar_force_now(rig);
	ar_put_now(rig, 2, 200, false);
	ar_force_now(rig);
	assert_null(ar_zone(rig, a)->now);
}

/* If space is short, a head makes the first deletion stable. Nothing else happens that the log is
 * called for, so the rig fails if it does not want to be called. */
static void if_space_is_short_a_head_makes_it_stable(void **state)
{
	struct alog_config cfg = { .prefix = "log", .zones = 10, .zone_bytes = 8 * ALOG_PAGE,
		.tail_pages = 64, .reserve = 3, .uuid = { 9, 8, 7 }, .owner = 5, .own = 8 };
	uint64_t a, b, first;
	uint32_t nr;

	(void)state;
	rig = ar_create(4711, &cfg);
	assert_true(ar_open(rig));
	hide_one(&a, &b);
	alog_dead(rig->log, b, rig->index[1].bytes);
	ar_settle(rig);
	alog_force(rig->log, alog_end(rig->log));
	ar_settle(rig);
	assert_null(ar_zone(rig, a)->now);
	assert_non_null(ar_zone(rig, b)->now);
	nr = stats().zones_free - cfg.reserve + 1;
	assert_int_equal(alog_own(rig->log, nr, nr, &first), -EAGAIN);
	ar_settle(rig);
	assert_null(ar_zone(rig, b)->now);
}

/* Puts until key 1 is copied. */
static void copy_key_1(void)
{
	uint64_t first = rig->index[1].zone;

	for (uint32_t i = 0; i < 400 && rig->index[1].zone == first; i++) {
		ar_put_now(rig, 3 + i * 7 % 43, 4000, false);
		ar_force_now(rig);
	}
	assert_true(rig->index[1].zone > first);
}

static void an_expired_record_is_copied_as_a_tombstone_that_hides_older_ones(void **state)
{
	(void)state;
	for (uint32_t paged = 0; paged < 2; paged++) {
		begin();
		ar_put_now(rig, 1, 200, false);
		ar_force_now(rig);
		rig->expiry = 1;
		if (paged)
			assert_int_equal(ar_put_paged(rig, 1, 9000, false), 0);
		else
			ar_put_now(rig, 1, 3000, false);
		rig->expiry = 0;
		ar_force_now(rig);
		copy_key_1();
		assert_int_equal(rig->index[1].type, ALOG_TOMBSTONE);
		assert_int_equal(rig->index[1].bytes, ALOG_HEADER_BYTES);
		rig->key[1].damaged = true;	/* the oracle knows of no expiry */
		ar_cut(rig);
		assert_true(ar_open(rig));
		assert_int_not_equal(rig->index[1].type, ALOG_VALUE);
		if (!paged)
			end(NULL);
	}
}

/* ---- copies ---- */

/* Pages that are out, and need not be kept below. */
static uint32_t pages_out(bool once)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < rig->nr_out; i++)
		if (rig->out[i].io->op == XSEG_OP_WRITE && rig->out[i].io->once == once &&
			!strstr(rig->out[i].io->target, "head"))
			nr += rig->out[i].io->nr_pages;
	return nr;
}

/* Key 1 is in the zone that was closed first, which is emptied. */
static void a_cache_need_not_keep_copies(void **state)
{
	uint64_t zone;

	(void)state;
	begin_evicting(20);
	ar_put_now(rig, 1, 12000, false);
	zone = rig->index[1].zone;
	for (uint32_t k = 2; rig->index[k - 1].zone == zone; k++)
		ar_put_now(rig, k, 4000, false);
	ar_force_now(rig);
	assert_true(alog_evict(rig->log));
	for (uint32_t i = 0; i < 20; i++) {
		ar_poll(rig);
		if (out_of(XSEG_OP_READ))
			answer(XSEG_OP_READ);
	}
	assert_int_not_equal(rig->index[1].zone, zone);
	ar_put_now(rig, 20, 9000, false);	/* it begins in the last page of the copies */
	alog_push(rig->log, alog_end(rig->log));
	ar_poll(rig);
	assert_in_range(pages_out(true), 3, 7);
	assert_in_range(pages_out(false), 3, 4);
	ar_settle(rig);
	ar_check_values(rig);
}

/* ---- L8 ---- */

static void one_failed_flush_is_not_for_ever(void **state)
{
	uint32_t fua;

	(void)state;
	begin();
	put_many(5, 800);
	alog_force(rig->log, alog_end(rig->log));
	rig->fail_flush = 1000;
	for (uint32_t i = 0; i < 60 && !rig->nr_flushes; i++) {
		ar_poll(rig);
		ar_step(rig);
	}
	fua = rig->nr_fua;
	/* each FLUSH fails, and what is forced becomes stable all the same */
	for (uint32_t i = 0; i < 2000 && alog_stable(rig->log) < alog_end(rig->log); i++) {
		if (alog_failed(rig->log))
			break;
		alog_poll(rig->log, rig->now += 1000000);
		ar_step(rig);
	}
	if (alog_failed(rig->log)) {		/* the store has lost some of it for good */
		assert_int_equal(alog_failed(rig->log), -EIO);
		ar_kill(rig);
		assert_true(ar_open(rig));
	} else {
		assert_int_equal(alog_stable(rig->log), alog_end(rig->log));
		assert_true(rig->nr_fua > fua);
	}
	rig->fail_flush = 0;
	put_many(5, 800);
	ar_force_now(rig);
	for (uint32_t i = 0; i < rig->nr_objects; i++)
		assert_false(rig->object[i].bad);
	ar_cut(rig);
	assert_true(ar_open(rig));
	ar_check_values(rig);
}

/* ---- space ---- */

static void a_full_log_refuses_puts_and_takes_deletions(void **state)
{
	(void)state;
	begin();
	fill_log();
	for (uint32_t k = 0; k < 30; k++)
		assert_int_equal(ar_put(rig, k, 0, true), 0);
	for (uint32_t i = 0; i < 20; i++) {
		alog_force(rig->log, alog_end(rig->log));
		ar_settle(rig);
	}
	ar_put_now(rig, 40, 1000, false);
	ar_check_values(rig);
}

/* A new process begins a new zone, and is killed. */
static void kill_and_open(void)
{
	ar_kill(rig);
	assert_true(ar_open(rig));
}

static bool put_two(uint32_t key)
{
	return ar_put(rig, key, 100, false) == 0 && ar_put(rig, key + 1, 100, false) == 0;
}

/* It dies at the upcall behind the first copy. */
static void (*copied)(void *ctx, uint64_t from_zone, const struct alog_hint *from,
	uint64_t to_zone, const struct alog_hint *to);
static void copy_and_die(void *ctx, uint64_t from_zone, const struct alog_hint *from,
	uint64_t to_zone, const struct alog_hint *to)
{
	copied(ctx, from_zone, from, to_zone, to);
	rig->kill_in = 1;
}

static void copy_one(struct ar *a)
{
	for (uint32_t i = 0; i < 1000; i++) {
		ar_poll(a);
		ar_step(a);
	}
}

/* Kills use up all zones but one, and each has something that lives. A compaction may begin one
 * more then. */
static void zones_that_kills_have_left_are_put_together(void **state)
{
	uint32_t key = 0;

	(void)state;
	begin();
	for (; put_two(key); key += 2)
		kill_and_open();
	assert_int_equal(stats().zones_free, rig->cfg.reserve);
	/* the zone with the fewest live bytes has two records, so one of them is left */
	assert_int_equal(ar_put(rig, 0, 0, true), 0);
	assert_int_equal(ar_put(rig, 2, 0, true), 0);
	copied = rig->user.copied;
	rig->user.copied = copy_and_die;
	kill_and_open();
	assert_true(ar_run(rig, copy_one));
	rig->user.copied = copied;
	assert_true(ar_open(rig));
	assert_int_equal(stats().zones_free, 1);
	ar_put_now(rig, key, 1000, false);
	ar_check_values(rig);
}

static void a_tail_that_is_full_makes_appends_wait(void **state)
{
	int rc = 0;

	(void)state;
	begin();
	rig->stuck = true;
	for (uint32_t i = 0; i < 100 && !rc; i++)
		rc = ar_put(rig, i % AR_KEYS, 3000, false);
	assert_int_equal(rc, -EAGAIN);
	rig->stuck = false;
	ar_settle(rig);
	assert_int_equal(ar_put(rig, 1, 3000, false), 0);
}

static void what_is_too_long_is_refused(void **state)
{
	(void)state;
	begin();
	assert_int_equal(ar_put(rig, 1, rig->cost.record_max, false), -E2BIG);
	assert_int_equal(ar_put(rig, 1, rig->cost.record_max - 80, false), 0);
}

/* ---- heads ---- */

static void the_log_opens_with_one_head_and_not_with_none(void **state)
{
	struct ar_object *h[2];

	(void)state;
	begin();
	put_many(40, 700);
	for (int i = 0; i < 2; i++) {
		alog_words_write(rig->log);
		ar_force_now(rig);
	}
	ar_cut(rig);
	h[0] = ar_find(rig, "+log:head.0", false);
	h[1] = ar_find(rig, "+log:head.1", false);
	for (int i = 0; i < 2; i++) {
		memset(h[i]->now + 64, 0x5a, 100);
		memset(h[i]->durable + 64, 0x5a, 100);
		assert_true(ar_open(rig));
		assert_int_equal(rig->damages[ALOG_BAD_HEAD], i + 1);
		put_many(3, 100);
		ar_force_now(rig);
		ar_cut(rig);
	}
	for (int i = 0; i < 2; i++)
		memset(h[i]->now + 64, 0x5a, 100);
	rig->log = alog_create(&rig->cfg, &rig->user, rig->arena, rig->scratch);
	for (int i = 0; i < 20; i++) {
		alog_poll(rig->log, 1);
		ar_step(rig);
	}
	assert_int_equal(alog_failed(rig->log), -EBADMSG);
}

static void a_tail_whose_log_was_opened_elsewhere_is_refused(void **state)
{
	uint8_t *kept;

	(void)state;
	begin();
	ar_put_now(rig, 1, 100, false);
	ar_kill(rig);
	kept = malloc(rig->cost.arena_bytes);
	memcpy(kept, rig->arena, rig->cost.arena_bytes);
	ar_forget(rig);
	assert_true(ar_open(rig));
	ar_kill(rig);
	memcpy(rig->arena, kept, rig->cost.arena_bytes);
	free(kept);
	rig->log = alog_create(&rig->cfg, &rig->user, rig->arena, rig->scratch);
	for (int i = 0; i < 20; i++) {
		alog_poll(rig->log, 1);
		ar_step(rig);
	}
	assert_int_equal(alog_failed(rig->log), -ESTALE);
}

/* ---- damage ---- */

static void a_bad_record_of_a_flushed_zone_is_counted_and_loses_no_other(void **state)
{
	struct ar_object *o;
	uint64_t zone;
	uint32_t at;

	(void)state;
	begin();
	seal_one(1);
	ar_force_now(rig);
	seal_one(5);
	ar_put_now(rig, 3, 200, false);
	ar_force_now(rig);
	at = rig->index[3].place;
	zone = rig->index[3].zone;
	ar_put_now(rig, 4, 200, false);
	ar_force_now(rig);
	o = ar_zone(rig, zone);
	o->durable[at + 100] ^= 1;
	rig->key[3].damaged = true;
	ar_cut(rig);
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[4].type, ALOG_VALUE);
	assert_int_not_equal(rig->damages[ALOG_BAD_RECORD] + rig->damages[ALOG_HOLE], 0);
}

/* A reading fails as a whole now and then, and its pages fail once more. */
static void what_cannot_be_read_once_is_not_lost(void **state)
{
	(void)state;
	begin();
	put_many(40, 700);
	ar_force_now(rig);
	rig->fail_read = 40;
	for (uint32_t i = 0; i < 40; i++) {
		ar_cut(rig);
		assert_true(ar_open(rig));
		put_many(3, 300);
		ar_force_now(rig);
	}
	assert_int_equal(rig->nr_lost, 0);
	assert_int_equal(rig->damages[ALOG_BAD_RECORD], 0);
}

static void a_zone_that_is_sealed_for_a_stop_is_opened_by_its_hints(void **state)
{
	(void)state;
	begin();
	assert_true(alog_seal(rig->log));		/* there is none */
	ar_put_now(rig, 3, 200, false);
	ar_put_now(rig, 4, 200, false);
	ar_force_now(rig);
	assert_true(alog_seal(rig->log));
	assert_true(alog_seal(rig->log));
	ar_force_now(rig);
	alog_words_write(rig->log);
	ar_settle(rig);
	ar_kill(rig);
	memset(rig->arena, 0, rig->cost.arena_bytes);	/* a stop gives it back */
	assert_true(ar_open(rig));
	assert_int_equal(stats().opened_by_hints, 1);
	assert_int_equal(rig->index[3].type, ALOG_VALUE);
	assert_int_equal(rig->index[4].type, ALOG_VALUE);
}

static void a_head_of_another_version_is_told_apart(void **state)
{
	static const char *const names[] = { "+log:head.0", "+log:head.1" };

	(void)state;
	begin();
	put_many(40, 700);
	for (int i = 0; i < 2; i++) {
		alog_words_write(rig->log);
		ar_force_now(rig);
	}
	ar_kill(rig);
	for (int i = 0; i < 2; i++) {
		struct ar_object *o = ar_find(rig, names[i], false);

		assert_memory_equal(o->now + 16, "XSGLOG01", 8);
		memcpy(o->now + 16, "XSGLOG77", 8);
	}
	rig->log = alog_create(&rig->cfg, &rig->user, rig->arena, rig->scratch);
	for (int i = 0; i < 20; i++) {
		alog_poll(rig->log, 1);
		ar_step(rig);
	}
	assert_int_equal(alog_failed(rig->log), -EPROTONOSUPPORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(a_flush_is_sent_only_when_all_before_it_is_written),
		RULE(four_groups_may_be_out_and_no_fifth),
		RULE(an_append_that_nobody_forces_waits_for_no_request),
		RULE(a_failed_append_is_appended_anew_before_it_is_promised),
		RULE(a_store_that_refuses_for_long_loses_nothing),
		RULE(nothing_is_appended_to_a_zone_of_an_earlier_opening),
		RULE(an_id_is_used_once_even_if_the_opening_that_had_it_wrote_nothing),
		RULE(a_record_of_an_earlier_epoch_in_its_place_is_not_believed),
		RULE(hints_bring_the_index_back_of_what_was_flushed),
		RULE(hints_whose_records_are_lost_are_not_believed),
		RULE(a_zone_with_promised_records_stays_until_their_superseders_are_stable),
		RULE(zones_of_which_nothing_was_promised_go_without_a_flush),
		RULE(a_deleted_key_stays_deleted_when_its_tombstone_is_gone),
		RULE(the_highest_sequence_counts_wherever_it_stands),
		RULE(a_zone_that_hid_records_goes_when_their_deletion_is_stable),
		RULE(if_space_is_short_a_head_makes_it_stable),
		RULE(an_expired_record_is_copied_as_a_tombstone_that_hides_older_ones),
		RULE(a_cache_need_not_keep_copies),
		RULE(one_failed_flush_is_not_for_ever),
		RULE(a_full_log_refuses_puts_and_takes_deletions),
		RULE(zones_that_kills_have_left_are_put_together),
		RULE(a_tail_that_is_full_makes_appends_wait),
		RULE(what_is_too_long_is_refused),
		RULE(the_log_opens_with_one_head_and_not_with_none),
		RULE(a_tail_whose_log_was_opened_elsewhere_is_refused),
		RULE(a_bad_record_of_a_flushed_zone_is_counted_and_loses_no_other),
		RULE(what_cannot_be_read_once_is_not_lost),
		RULE(a_zone_that_is_sealed_for_a_stop_is_opened_by_its_hints),
		RULE(a_head_of_another_version_is_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
