/* alog_own_test - own zones: the pieces of large values, and what becomes of them (V1 to V3 of
 * own.c). The last test leads random lives, as alog_random_test does.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rig/alog_rules.h"
#include "tests/rig/long.h"

#define RECORDS 4096u

/* What the record of this sequence names. */
static struct named {
	uint64_t sequence, first;
	uint32_t nr;
} named[RECORDS];
static uint32_t nr_named;
static uint64_t run_of[AR_KEYS];		/* of the key: index + 1 in named[] */

static const char *target(uint64_t id)
{
	static char to[XSEG_TARGET_MAX];

	alog_own_target(rig->log, id, to);
	return to;
}

static void begin_own(uint32_t zones, uint32_t own, uint64_t seed)
{
	struct alog_config cfg = { .prefix = "log", .zones = zones, .zone_bytes = 8 * ALOG_PAGE,
		.tail_pages = 64, .reserve = 3, .uuid = { 9, 8, 7 }, .owner = 5, .own = own };

	nr_named = 0;
	memset(run_of, 0, sizeof(run_of));
	rig = ar_create(seed, &cfg);
}

static void go_on(void)
{
	ar_poll(rig);
	ar_step(rig);
	rig->now += 1000000;
}

static int own(uint32_t nr, uint64_t *first)
{
	int rc;

	for (uint32_t tries = 0; tries < 300; tries++) {
		rc = alog_own(rig->log, nr, nr, first);
		if (rc != -EAGAIN)
			break;
		go_on();
	}
	return rc;
}

static int flushed(void)
{
	uint64_t barrier = alog_barrier(rig->log);

	for (uint32_t i = 0; i < 2000 && !alog_barrier_state(rig->log, barrier); i++)
		go_on();
	return alog_barrier_state(rig->log, barrier);
}

static void free_old(uint32_t key)
{
	const struct named *old;

	if (!run_of[key])
		return;
	old = &named[run_of[key] - 1];
	assert_int_equal(alog_own_free(rig->log, old->first, old->nr), 0);
	run_of[key] = 0;
}

static bool put_small(uint32_t key, bool delete)
{
	for (uint32_t tries = 0; tries < 50; tries++) {
		if (!ar_put(rig, key, 40, delete))
			return true;
		go_on();
	}
	return false;
}

/* As kvd is to do it. */
static bool put_large(uint32_t key, uint32_t nr)
{
	struct named *n = &named[nr_named];
	uint64_t first;

	assert_in_range(nr_named, 0, RECORDS - 1);
	if (own(nr, &first))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		ar_write_page(rig, target(first + i), first + i);
	if (flushed() != 1 || !put_small(key, false)) {
		assert_int_equal(alog_own_free(rig->log, first, nr), 0);
		return false;
	}
	*n = (struct named){ .sequence = rig->index[key].sequence, .first = first, .nr = nr };
	nr_named++;
	free_old(key);
	run_of[key] = nr_named;
	return true;
}

static void drop(uint32_t key)
{
	if (put_small(key, true))
		free_old(key);
}

/* A record that shows has all its pieces, and keeps them. */
static void keep_all(void)
{
	memset(run_of, 0, sizeof(run_of));
	for (uint32_t k = 0; k < AR_KEYS; k++) {
		for (uint32_t i = 0; i < nr_named && rig->index[k].type == ALOG_VALUE; i++)
			if (named[i].sequence == rig->index[k].sequence)
				run_of[k] = i + 1;
		if (!run_of[k])
			continue;
		for (uint32_t i = 0; i < named[run_of[k] - 1].nr; i++)
			assert_true(ar_has_page(rig, target(named[run_of[k] - 1].first + i),
				named[run_of[k] - 1].first + i));
		assert_int_equal(alog_own_keep(rig->log, named[run_of[k] - 1].first,
			named[run_of[k] - 1].nr), 0);
	}
	alog_own_swept(rig->log);
}

static uint32_t objects(void)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < rig->nr_objects; i++)
		nr += strstr(rig->object[i].name, ":own.") && rig->object[i].now;
	return nr;
}

static uint32_t pieces_named(void)
{
	uint32_t nr = 0;

	for (uint32_t k = 0; k < AR_KEYS; k++)
		nr += run_of[k] ? named[run_of[k] - 1].nr : 0;
	return nr;
}

static void a_value_in_own_zones_is_there_after_a_loss_of_power(void **state)
{
	(void)state;
	begin_own(40, 8, 1);
	assert_true(ar_open(rig));
	assert_true(put_large(1, 3));
	assert_true(put_large(2, 1));
	assert_int_equal(stats().own_zones, 4);
	ar_force_now(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[1].type, ALOG_VALUE);
	keep_all();
	ar_settle(rig);
	assert_int_equal(stats().own_zones, 4);
	assert_int_equal(objects(), 4);
}

static void own_ids_are_never_used_twice(void **state)
{
	uint64_t first, last = 0;

	(void)state;
	begin_own(40, 8, 1);
	for (uint32_t i = 0; i < 12; i++) {
		assert_true(ar_open(rig));
		assert_int_equal(own(2, &first), 0);
		assert_true(first > last);
		last = first + 1;
		if (i % 3 == 0)
			ar_cut(rig);
		else if (i % 3 == 1)
			ar_kill(rig);
		else
			ar_forget(rig);
	}
}

static void what_no_record_names_is_deleted_after_opening(void **state)
{
	uint64_t first;

	(void)state;
	begin_own(40, 8, 1);
	assert_true(ar_open(rig));
	assert_true(put_large(1, 2));
	assert_int_equal(own(3, &first), 0);
	for (uint32_t i = 0; i < 3; i++)
		ar_write_page(rig, target(first + i), 7);
	ar_kill(rig);				/* before its record is appended */
	assert_true(ar_open(rig));
	keep_all();
	ar_put_now(rig, 9, 100, false);
	ar_force_now(rig);
	ar_settle(rig);
	assert_int_equal(objects(), 2);
	assert_int_equal(alog_own_keep(rig->log, first, 3), -ENOENT);
	ar_force_now(rig);
	ar_cut(rig);
	assert_true(ar_open(rig));
	keep_all();
}

static void a_promised_one_stays_until_its_superseder_is_stable(void **state)
{
	(void)state;
	begin_own(40, 8, 1);
	assert_true(ar_open(rig));
	assert_true(put_large(1, 2));
	ar_force_now(rig);
	drop(1);
	ar_settle(rig);
	assert_int_equal(objects(), 2);		/* a loss of power brings the value back */
	ar_cut(rig);
	assert_true(ar_open(rig));
	assert_int_equal(rig->index[1].type, ALOG_VALUE);
	keep_all();
	drop(1);
	ar_force_now(rig);
	ar_settle(rig);
	assert_int_equal(objects(), 0);
}

static void own_zones_count_against_the_log(void **state)
{
	uint64_t first;
	uint32_t nr = 0;

	(void)state;
	begin_own(20, 18, 1);
	assert_true(ar_open(rig));
	assert_int_equal(alog_own(rig->log, 18, 18, &first), -E2BIG);
	assert_int_equal(alog_own(rig->log, 0, 0, &first), -E2BIG);
	while (!own(1, &first))
		nr++;
	assert_int_equal(own(1, &first), -ENOSPC);
	assert_int_equal(nr, 17);
	assert_int_equal(ar_put(rig, 1, 100, false), -ENOSPC);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(alog_own_free(rig->log, first - i, 1), 0);
	assert_int_equal(alog_own_free(rig->log, first, 1), -ENOENT);
	ar_put_now(rig, 1, 100, false);
	assert_int_equal(own(2, &first), 0);
}

/* A value whose length is not known takes ids for the longest, and space as it grows. */
static void a_run_is_counted_as_it_grows(void **state)
{
	uint64_t first, other;

	(void)state;
	begin_own(20, 18, 1);
	assert_true(ar_open(rig));
	while (alog_own(rig->log, 17, 1, &first) == -EAGAIN)
		go_on();
	assert_int_equal(stats().own_zones, 1);
	assert_int_equal(alog_own_count(rig->log, first, 18), -ENOENT);
	assert_int_equal(alog_own_count(rig->log, first + 1, 2), -ENOENT);
	assert_int_equal(alog_own_count(rig->log, first, 10), 0);
	assert_int_equal(own(7, &other), 0);
	assert_true(other >= first + 17);
	assert_int_equal(alog_own_count(rig->log, first, 11), -ENOSPC);
	assert_int_equal(alog_own_count(rig->log, first, 3), 0);
	assert_int_equal(alog_own_count(rig->log, first, 4), 0);
	assert_int_equal(stats().own_zones, 11);
	assert_int_equal(alog_own_cut(rig->log, first, 2), 0);
	assert_int_equal(stats().own_zones, 9);
	assert_int_equal(alog_own_count(rig->log, first, 3), -ENOENT);
	for (uint64_t id = first; id < first + 2; id++)
		ar_write_page(rig, target(id), id);
	assert_int_equal(objects(), 2);
	assert_int_equal(alog_own_free(rig->log, first, 2), 0);
	ar_put_now(rig, 1, 100, false);
	ar_force_now(rig);
	ar_settle(rig);
	assert_int_equal(objects(), 0);
	assert_int_equal(stats().own_zones, 7);
}

static void compaction_makes_room_for_own_zones(void **state)
{
	uint64_t first;

	(void)state;
	begin_own(20, 18, 1);
	assert_true(ar_open(rig));
	for (uint32_t i = 0; i < 300; i++) {	/* zones in which little is live */
		ar_put_now(rig, i % 7 == 0 ? i / 7 % 40 : 41 + i % 4, 1500, false);
		ar_settle(rig);
	}
	ar_force_now(rig);
	assert_true(stats().zones_free < 12 + 3);
	assert_int_equal(own(12, &first), 0);
	ar_check_values(rig);
}

static void a_barrier_covers_what_was_written_before_it(void **state)
{
	(void)state;
	begin_own(20, 8, 1);
	assert_true(ar_open(rig));
	ar_write_page(rig, "+log:own.x", 1);
	assert_int_equal(flushed(), 1);
	ar_write_page(rig, "+log:own.y", 1);
	ar_cut(rig);
	assert_true(ar_has_page(rig, "+log:own.x", 1));
	assert_true(ar_open(rig));
	ar_put_now(rig, 1, 100, false);
	rig->fail_flush = 1000;
	assert_int_equal(flushed(), -EIO);
	rig->fail_flush = 0;
}

static void a_flush_that_was_sent_before_meets_no_barrier(void **state)
{
	uint64_t barrier;

	(void)state;
	begin_own(20, 8, 1);
	assert_true(ar_open(rig));
	ar_put_now(rig, 1, 100, false);
	alog_force(rig->log, alog_end(rig->log));
	for (ar_poll(rig); !out_of(XSEG_OP_FLUSH); ar_poll(rig))
		ar_step(rig);
	ar_write_page(rig, "+log:own.x", 1);
	barrier = alog_barrier(rig->log);
	answer(XSEG_OP_FLUSH);
	assert_int_equal(alog_barrier_state(rig->log, barrier), 0);
	ar_settle(rig);
	assert_int_equal(alog_barrier_state(rig->log, barrier), 1);
	ar_cut(rig);
	assert_true(ar_has_page(rig, "+log:own.x", 1));
	assert_true(ar_open(rig));
}

static void a_hold_delays_the_deletion_of_own_zones(void **state)
{
	struct alog_walk_state s;

	(void)state;
	begin_own(40, 8, 1);
	assert_true(ar_open(rig));
	assert_true(put_large(1, 2));
	ar_force_now(rig);
	assert_true(ar_backup(rig, 1));
	drop(1);
	for (uint32_t i = 0; i < 400; i++) {
		alog_force(rig->log, alog_end(rig->log));
		go_on();
	}
	assert_int_equal(objects(), 2);
	alog_walk_state(rig->log, &s);
	assert_true(s.waits);
	alog_walk_stop(rig->log);
	ar_settle(rig);
	assert_int_equal(objects(), 0);
}

/* ---- random lives ---- */

static void work(struct ar *a)
{
	uint32_t steps = 5 + ar_random(a, 40);

	for (uint32_t i = 0; i < steps; i++) {
		uint32_t key = ar_random(a, 12);

		switch (ar_random(a, 4)) {
		case 0:
			drop(key);
			break;
		case 1:
			if (put_small(key, false))
				free_old(key);
			break;
		default:
			put_large(key, 1 + ar_random(a, 3));
		}
		if (ar_random(a, 4) == 0)
			alog_force(a->log, alog_end(a->log));
		for (uint32_t n = ar_random(a, 20); n; n--)
			go_on();
		ar_note_promises(a);
	}
}

static void settle(struct ar *a)
{
	a->fail_write = a->fail_flush = 0;
	ar_put_now(a, 40, 100, false);		/* a FLUSH, also if there was nothing */
	ar_force_now(a);
	ar_put_now(a, 40, 100, false);
	ar_force_now(a);
	ar_settle(a);
	if (objects() != pieces_named() || stats().own_zones != pieces_named()) {
		fprintf(stderr, "ERROR: seed %" PRIu64 ": %u objects, %u are named\n", a->seed,
			objects(), pieces_named());
		abort();
	}
}

static void open_again(void)
{
	do
		rig->kill_in = ar_random(rig, 3) == 0 ? 1 + ar_random(rig, 60) : 0;
	while (!ar_open(rig));
	rig->kill_in = 0;
	keep_all();
}

static void live(uint64_t seed)
{
	begin_own(20 + seed % 20, 8 + seed % 8, seed);
	open_again();
	for (uint32_t life = 0; life < 10; life++) {
		rig->fail_write = seed % 3 == 0 && ar_random(rig, 2) ? ar_random(rig, 20) : 0;
		rig->fail_flush = seed % 3 == 0 && ar_random(rig, 2) ? ar_random(rig, 100) : 0;
		rig->kill_in = ar_random(rig, 2) ? 1 + ar_random(rig, 600) : 0;
		if (!ar_run(rig, work)) {
			rig->kill_in = 0;
			if (ar_random(rig, 3) == 0 && !ar_run(rig, settle))
				continue;
			if (ar_random(rig, 3) == 0)
				ar_forget(rig);
			else if (ar_random(rig, 2) == 0)
				ar_cut(rig);
			else
				ar_kill(rig);
		} else if (ar_random(rig, 3) == 0) {
			ar_cut(rig);
		}
		open_again();
	}
	rig->kill_in = 0;
	while (ar_run(rig, settle))
		open_again();
	ar_destroy(rig);
}

static uint64_t first_seed = 1, last_seed;

static void whatever_happens_records_that_show_have_their_pieces(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed <= last_seed; seed++)
		live(seed);
	begin();				/* for RULE() */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RULE(a_value_in_own_zones_is_there_after_a_loss_of_power),
		RULE(own_ids_are_never_used_twice),
		RULE(what_no_record_names_is_deleted_after_opening),
		RULE(a_promised_one_stays_until_its_superseder_is_stable),
		RULE(own_zones_count_against_the_log),
		RULE(a_run_is_counted_as_it_grows),
		RULE(compaction_makes_room_for_own_zones),
		RULE(a_barrier_covers_what_was_written_before_it),
		RULE(a_flush_that_was_sent_before_meets_no_barrier),
		RULE(a_hold_delays_the_deletion_of_own_zones),
		RULE(whatever_happens_records_that_show_have_their_pieces),
	};

	last_seed = in_short(20000, 50);
	if (argc > 1)
		first_seed = last_seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		last_seed = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
