/* alog_random_test - thousands of short lives of a log, each from a seed: puts, deletions, batches,
 * forced ones, values that lend their pages. Zones are compacted, in a log that is nearly full and
 * in passes. The store fails, kills come in the middle of an upcall or a send, and power is lost.
 *
 * After each opening: all that was forced or flushed is there, all that was appended is there if
 * the arena is, no batch shows by halves, no version shows that was once undone, and each value is
 * what was put. A backup is the state of the moment at which it began.
 *
 *      alog_random_test [FIRST [LAST]]		these seeds; a failure prints its seed
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/rig/alog_rig.h"
#include "tests/rig/long.h"

static uint64_t first_seed = 1, last_seed;

struct plan {
	uint32_t puts_max, value_max, keys, force_in, delete_in, batch_in, backup_in, paged_in;
	uint32_t pass_in;
	bool faults, kills, cuts;
};

static struct plan plan;

static uint32_t value_size(struct ar *a)
{
	uint32_t n = ar_random(a, 10);

	if (n == 9)
		return ar_random(a, plan.value_max);
	return ar_random(a, n < 6 ? 200 : 2000);
}

static void one_put(struct ar *a)
{
	uint32_t key = ar_random(a, plan.keys);
	bool delete = plan.delete_in && ar_random(a, plan.delete_in) == 0;

	if (plan.batch_in && ar_random(a, plan.batch_in) == 0)
		(void)ar_batch(a, key, 2 + ar_random(a, 4), ar_random(a, 600));
	else if (plan.paged_in && ar_random(a, plan.paged_in) == 0)
		(void)ar_put_paged(a, key, 1 + ar_random(a, 5 * ALOG_PAGE), ar_random(a, 3));
	else
		(void)ar_put(a, key, value_size(a), delete);
	if (plan.force_in && ar_random(a, plan.force_in) == 0)
		alog_force(a->log, alog_end(a->log));
	else if (ar_random(a, 16) == 0)
		alog_push(a->log, alog_end(a->log));
}

static void work(struct ar *a)
{
	uint32_t puts = 1 + ar_random(a, plan.puts_max);

	for (uint32_t i = 0; i < puts; i++) {
		if (ar_random(a, 3))
			one_put(a);
		if (plan.backup_in && ar_random(a, plan.backup_in) == 0)
			(void)ar_backup(a, ar_random(a, 2) * 30);
		if (plan.pass_in && !alog_pass_goes_on(a->log) && ar_random(a, plan.pass_in) == 0)
			(void)!alog_pass_begin(a->log);
		if (ar_random(a, 8) == 0)
			alog_walk_go(a->log);
		ar_poll(a);
		for (uint32_t n = ar_random(a, 4); n; n--)
			ar_step(a);
		a->now += 1 + ar_random(a, 2) * 20000000;
		ar_note_promises(a);
	}
	if (ar_random(a, 3) == 0)
		ar_check_values(a);
}

static void settle(struct ar *a)
{
	a->fail_write = a->fail_flush = 0;
	alog_walk_stop(a->log);
	ar_force_now(a);
	ar_check_values(a);
}

/* Which end a process has. True: it goes on. */
static bool end_of_life(struct ar *a)
{
	switch (ar_random(a, 8)) {
	case 0:
	case 1:
		ar_kill(a);
		return false;
	case 2:
		ar_forget(a);
		return false;
	case 3:
	case 4:
		if (!plan.cuts)
			return true;
		ar_cut(a);
		return false;
	default:
		return true;
	}
}

static void choose_plan(struct ar *a)
{
	plan = (struct plan){ .puts_max = 50 + ar_random(a, 400), .value_max = 7000,
		.keys = 1 + ar_random(a, AR_KEYS),
		.force_in = ar_random(a, 3) ? 2 + ar_random(a, 60) : 0,
		.delete_in = ar_random(a, 3) ? 2 + ar_random(a, 20) : 0,
		.batch_in = ar_random(a, 2) ? 3 + ar_random(a, 20) : 0,
		.paged_in = ar_random(a, 2) ? 2 + ar_random(a, 12) : 0,
		.backup_in = ar_random(a, 3) ? 0 : 10 + ar_random(a, 100),
		.pass_in = a->seed % 3 == 1 ? 30 : 0,
		.faults = ar_random(a, 3) == 0,
		.kills = ar_random(a, 2), .cuts = ar_random(a, 4) != 0 };
}

static struct alog_config config(uint64_t seed)
{
	struct alog_config cfg = { .prefix = "log", .zones = 8 + seed % 3 * 6,
		.zone_bytes = (seed % 2 ? 8 : 16) * ALOG_PAGE, .tail_pages = seed % 5 ? 40 : 100,
		.reserve = 3, .uuid = { 1, 2, 3, (uint8_t)seed }, .owner = 77 };

	return cfg;
}

static void open_again(struct ar *a)
{
	do
		a->kill_in = plan.kills && ar_random(a, 3) == 0 ? 1 + ar_random(a, 60) : 0;
	while (!ar_open(a));
	a->kill_in = 0;
}

static void run(uint64_t seed)
{
	struct alog_config cfg = config(seed);
	struct ar *a = ar_create(seed, &cfg);

	choose_plan(a);
	a->refuse_send = seed % 4 == 0;
	open_again(a);
	for (uint32_t life = 0; life < 12; life++) {
		a->fail_write = plan.faults && ar_random(a, 2) ? 1 + ar_random(a, 30) : 0;
		a->fail_flush = plan.faults && ar_random(a, 2) ? 1 + ar_random(a, 200) : 0;
		a->kill_in = plan.kills && ar_random(a, 2) ? 1 + ar_random(a, 1500) : 0;
		if (ar_run(a, work) || !end_of_life(a)) {
			if (plan.cuts && ar_random(a, 4) == 0 && !a->log)
				ar_cut(a);
			open_again(a);
		} else if (ar_random(a, 3) == 0) {
			a->kill_in = 0;
			if (ar_run(a, settle))
				open_again(a);
		}
		a->kill_in = 0;
	}
	while (ar_run(a, settle))
		open_again(a);
	ar_destroy(a);
}

static void whatever_happens_promises_are_kept(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
		if (getenv("ALOG_SEEDS"))
			fprintf(stderr, "seed %" PRIu64 "\n", seed);
		run(seed);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_happens_promises_are_kept),
	};

	last_seed = in_short(50000, 50);
	if (argc > 1)
		first_seed = last_seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		last_seed = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
