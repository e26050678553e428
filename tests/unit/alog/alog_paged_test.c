/* alog_paged_test - records whose value begins at a page, of pages that are copied or lent (F4 of
 * record.h, T5 of tail.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rig/alog_rules.h"

#define LENT(page) ((page) >> 20 == 2)		/* the rig's numbers of a client's pages */

static uint32_t lent_pages_out(void)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < rig->nr_out; i++) {
		uint32_t before = nr;

		for (uint32_t p = 0; p < rig->out[i].io->nr_pages; p++)
			nr += LENT(rig->out[i].io->page[p]);
		assert_int_equal(nr > before, rig->out[i].io->lent);
	}
	return nr;
}

static uint32_t in_hands(void)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < AR_LENT; i++)
		nr += rig->lent[i].end != 0;
	return nr;
}

static void write_all(void)
{
	while (out_of(XSEG_OP_WRITE))
		assert_true(ar_step(rig));
}

static void a_lent_value_goes_below_from_its_own_pages(void **state)
{
	struct ar_entry *e;

	(void)state;
	begin();
	ar_put_now(rig, 2, 300, false);
	assert_int_equal(ar_put_paged(rig, 1, 9000, true), 0);
	e = &rig->index[1];
	assert_int_equal((e->place + xrecord_data_at(e->place, 4, ALOG_PAGED) + 4) % ALOG_PAGE, 0);
	assert_int_equal((e->place + e->bytes) % ALOG_PAGE, 0);
	ar_check_values(rig);			/* from the lent pages */
	ar_poll(rig);				/* it waits for no push */
	assert_int_equal(lent_pages_out(), 3);
	assert_int_equal(in_hands(), 1);
	write_all();
	assert_true(alog_written(rig->log) >= alog_end(rig->log));
	assert_int_equal(in_hands(), 0);
	ar_check_values(rig);			/* the client has changed its pages */
	ar_put_now(rig, 3, 300, false);
	ar_check_values(rig);
}

static void it_is_answered_when_all_its_pages_are_written(void **state)
{
	(void)state;
	begin();
	assert_int_equal(ar_put_paged(rig, 1, 9000, true), 0);
	ar_poll(rig);
	for (; out_of(XSEG_OP_WRITE) > 1; ar_step(rig))
		assert_int_equal(in_hands(), 1);
	assert_int_equal(in_hands(), 1);
	write_all();
	assert_int_equal(in_hands(), 0);
	ar_kill(rig);
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[1].type, ALOG_VALUE);
}

/* Key 1 has an old value; a lent one is killed, and small ones stand before and behind it. */
static void kill_one(void)
{
	begin();
	ar_put_now(rig, 1, 100, false);
	ar_put_now(rig, 2, 200, false);
	ar_force_now(rig);
	assert_int_equal(ar_put_paged(rig, 1, 9000, true), 0);
	assert_int_equal(ar_put(rig, 3, 200, false), 0);
	ar_poll(rig);				/* it is out */
	ar_kill(rig);
}

static void a_kill_before_that_leaves_a_filler(void **state)
{
	uint64_t old;

	(void)state;
	kill_one();
	old = rig->index[1].sequence;
	assert_true(ar_open(rig));
	assert_true(rig->index[1].sequence < old);
	assert_int_equal(rig->index[3].type, ALOG_VALUE);	/* it was answered */
	assert_int_equal(rig->damages[ALOG_HOLE] + rig->damages[ALOG_BAD_RECORD], 0);
	/* flushed, the filler is there after a loss of power, too */
	ar_put_now(rig, 4, 100, false);
	ar_force_now(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[3].type, ALOG_VALUE);
	assert_int_equal(rig->damages[ALOG_HOLE] + rig->damages[ALOG_BAD_RECORD], 0);
}

static void a_successor_that_is_killed_leaves_it_to_the_next(void **state)
{
	(void)state;
	for (uint32_t kill = 1; kill < 30; kill++) {
		kill_one();
		for (uint32_t again = 0; again < 3; again++) {
			rig->kill_in = kill;
			if (ar_open(rig)) {
				rig->kill_in = 0;
				ar_kill(rig);
			}
		}
		assert_true(ar_open(rig));
		assert_int_equal(rig->index[3].type, ALOG_VALUE);
		assert_int_equal(rig->damages[ALOG_HOLE] + rig->damages[ALOG_BAD_RECORD], 0);
		ar_force_now(rig);
		ar_check_values(rig);
		ar_destroy(rig);
	}
	begin();
}

static void hints_that_name_it_are_not_believed(void **state)
{
	uint64_t zone;

	(void)state;
	begin();
	assert_int_equal(ar_put_paged(rig, 1, 9000, true), 0);
	zone = rig->index[1].zone;
	ar_poll(rig);
	rig->stuck = true;
	for (uint32_t k = 10; rig->index[k - 1].zone <= zone; k++) {
		assert_int_equal(ar_put(rig, k, 3000, false), 0);
		ar_poll(rig);
	}
	/* all is written but the lent pages */
	for (uint32_t i = 0; i < rig->nr_out; i++)
		if (rig->out[i].io->lent)
			rig->out[i--] = rig->out[--rig->nr_out];
	rig->stuck = false;
	write_all();
	ar_kill(rig);
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[1].type, ALOG_NOTHING);
	ar_force_now(rig);
	for (uint32_t i = 0; i < 3; i++) {
		ar_put_now(rig, 5, 100, false);
		ar_force_now(rig);
		ar_cut(rig);
		assert_true(ar_open(rig));
		assert_int_equal(rig->index[1].type, ALOG_NOTHING);
		ar_check_values(rig);
	}
}

static void lent_pages_whose_write_failed_are_copied_and_answered(void **state)
{
	uint64_t zone;

	(void)state;
	begin();
	assert_int_equal(ar_put_paged(rig, 1, 9000, true), 0);
	zone = rig->index[1].zone;
	ar_poll(rig);
	rig->fail_write = 1000;
	write_all();
	assert_int_equal(in_hands(), 1);
	rig->fail_write = 0;
	ar_settle(rig);
	assert_int_equal(in_hands(), 0);
	assert_true(rig->index[1].zone > zone);
	ar_force_now(rig);
	ar_check_values(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[1].type, ALOG_VALUE);
}

/* The write that was sent first fails. */
static void fail_first_write(void)
{
	rig->fail_write = 1000;
	answer(XSEG_OP_WRITE);
	rig->fail_write = 0;
}

/* T7. The write of key 1 has failed, so a repair drops it: a lent value has superseded it. */
static void a_repair_drops_nothing_that_a_lent_record_has_superseded(void **state)
{
	(void)state;
	for (uint32_t later = 0; later < 2; later++) {
		begin();
		ar_put_now(rig, 1, 500, false);
		alog_push(rig->log, alog_end(rig->log));
		ar_poll(rig);
		fail_first_write();
		if (later)			/* the repair is reading */
			ar_poll(rig);
		assert_int_equal(ar_put_paged(rig, 1, 9000, true), 0);
		for (uint32_t i = 0; i < 20; i++) {
			ar_poll(rig);
			if (out_of(XSEG_OP_READ))
				answer(XSEG_OP_READ);
		}
		assert_int_equal(in_hands(), 1);
		ar_kill(rig);
		assert_true(ar_open(rig));
		assert_int_equal(rig->index[1].type, ALOG_VALUE);
		ar_check_values(rig);
		end(NULL);
	}
	begin();
}

/* L9. The store has all of a lent record, which a kill undoes. Its zone is in doubt, so a repair
 * drops the page with the filler. */
static void what_a_kill_has_undone_stays_so_when_a_repair_drops_the_filler(void **state)
{
	uint64_t old, wanted;

	(void)state;
	begin();
	ar_put_now(rig, 1, 100, false);
	ar_force_now(rig);
	old = rig->index[1].sequence;
	ar_put_now(rig, 2, 4000, false);
	ar_poll(rig);				/* the first page is full */
	assert_int_equal(out_of(XSEG_OP_WRITE), 1);
	assert_int_equal(ar_put_paged(rig, 1, 9000, true), 0);
	alog_push(rig->log, alog_end(rig->log));
	ar_poll(rig);
	assert_int_equal(out_of(XSEG_OP_WRITE), 2);
	fail_first_write();
	write_all();
	ar_kill(rig);
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[1].sequence, old);
	wanted = alog_end(rig->log);
	alog_force(rig->log, wanted);
	for (uint32_t i = 0; alog_stable(rig->log) < wanted; i++) {
		assert_true(i < 1000);
		ar_poll(rig);
		ar_step(rig);
	}
	ar_note_promises(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[1].sequence, old);
}

static void a_copy_begins_at_a_page_as_well(void **state)
{
	uint64_t zone;
	struct ar_entry *e;

	(void)state;
	begin();
	ar_put_now(rig, 2, 300, false);
	assert_int_equal(ar_put_paged(rig, 1, 9000, false), 0);
	zone = rig->index[1].zone;
	for (uint32_t i = 0; i < 400 && rig->index[1].zone == zone; i++) {
		ar_put_now(rig, 3 + i * 7 % 43, 4000, false);
		ar_force_now(rig);
	}
	e = &rig->index[1];
	assert_true(e->zone > zone);
	assert_int_equal((e->place + e->bytes) % ALOG_PAGE, 0);
	ar_check_values(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
}

static void pages_that_are_read_meanwhile_are_told(void **state)
{
	(void)state;
	begin();
	assert_int_equal(ar_put_paged(rig, 1, 9000, true), 0);
	assert_true(ar_backup(rig, 0));
	ar_poll(rig);
	while (out_of(XSEG_OP_READ) && out_of(XSEG_OP_WRITE))
		ar_step(rig);
	ar_settle(rig);
	assert_int_equal(rig->backup.over, 1);
	assert_int_equal(rig->backup.told, 1);
	assert_int_equal(in_hands(), 0);
}

static void what_is_too_long_is_refused(void **state)
{
	struct alog_place at;

	(void)state;
	begin_sized(12, 40);
	assert_int_equal(alog_next_paged(rig->log, 4, rig->cost.record_max, &at), -E2BIG);
	assert_int_equal(alog_next_paged(rig->log, ALOG_KEY_MAX + 1, 100, &at), -E2BIG);
	assert_int_equal(alog_next_paged(rig->log, 4, UINT32_MAX, &at), -E2BIG);
	assert_int_equal(ar_put_paged(rig, 1, rig->cost.record_max - 72, true), 0);
	ar_settle(rig);
	ar_check_values(rig);
}

static void an_append_of_several_records_has_no_paged_one(void **state)
{
	struct alog_put put = { .rec = { .identity = { 1, 2 }, .type = ALOG_VALUE,
		.flags = ALOG_PAGED } };
	struct alog_place at;

	(void)state;
	begin();
	assert_int_equal(alog_append(rig->log, &put, 1, &at), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(a_lent_value_goes_below_from_its_own_pages),
		RULE(it_is_answered_when_all_its_pages_are_written),
		RULE(a_kill_before_that_leaves_a_filler),
		RULE(a_successor_that_is_killed_leaves_it_to_the_next),
		RULE(hints_that_name_it_are_not_believed),
		RULE(lent_pages_whose_write_failed_are_copied_and_answered),
		RULE(a_repair_drops_nothing_that_a_lent_record_has_superseded),
		RULE(what_a_kill_has_undone_stays_so_when_a_repair_drops_the_filler),
		RULE(a_copy_begins_at_a_page_as_well),
		RULE(pages_that_are_read_meanwhile_are_told),
		RULE(what_is_too_long_is_refused),
		RULE(an_append_of_several_records_has_no_paged_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
