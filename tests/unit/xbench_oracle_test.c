/* xbench_oracle_test - the verify oracle: what it calls wrong, what it must not, and that what it
 * forgets it need not know: random histories of one sector are judged by the oracle and by a
 * checker that forgets nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/xbench/oracle.c" /* NOLINT(bugprone-suspicious-include) */
#include "bench/xbench/sector.c" /* NOLINT(bugprone-suspicious-include) */

#include "bench/xbench/gen.h"

#define NR_FLOORS 64

static _Atomic uint64_t floors[NR_FLOORS];
static struct xb_oracle *oracle;

static int begin(void **state)
{
	struct xseg_error err;

	(void)state;
	for (unsigned i = 0; i < NR_FLOORS; i++)
		atomic_store(&floors[i], XB_NOT_READING);
	oracle = xb_oracle_create(4096, 1u << 20, floors, NR_FLOORS, &err);
	return oracle ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	xb_oracle_destroy(oracle);
	return 0;
}

/* ---- one sector, step by step ------------------------------------------------------------ */

#define AT 8192u

static uint64_t write_begin(uint64_t value)
{
	uint64_t issued = xb_oracle_tick(oracle);

	xb_oracle_write_begin(oracle, AT, 512, value, issued);
	return issued;
}

static void write_end(uint64_t issued, bool ok)
{
	xb_oracle_write_end(oracle, AT, 512, issued, ok);
}

static void write_value(uint64_t value)
{
	write_end(write_begin(value), true);
}

static uint64_t read_begin(void)
{
	return xb_oracle_read_begin(oracle, AT, 512);
}

/* A read whose floor is known, as the job does it: for those that are out while much else happens.
 */
static uint64_t long_read_begin(void)
{
	uint64_t issued;

	atomic_store(&floors[0], xb_oracle_now(oracle));
	issued = read_begin();
	atomic_store(&floors[0], issued);
	return issued;
}

static bool read_end_kind(uint64_t issued, uint64_t value, enum xb_kind kind)
{
	struct xb_seen seen = { .value = value, .kind = kind, .offset = AT };

	return xb_oracle_read_end(oracle, AT, 512, issued, &seen) == 0;
}

static bool read_end(uint64_t issued, uint64_t value)
{
	return read_end_kind(issued, value, value == XB_VALUE_ZERO ? XB_SEEN_ZERO : XB_SEEN_OURS);
}

static bool read_value(uint64_t value)
{
	return read_end(read_begin(), value);
}

static bool read_other(uint64_t value)
{
	return read_end_kind(read_begin(), value | XB_VALUE_OTHER, XB_SEEN_UNSTAMPED);
}

static const struct xb_slot *slot(void)
{
	return &oracle->slots[(AT - 4096) / 512];
}

#define V(n) xb_value(0, n)

static void what_was_written_may_be_read(void **state)
{
	(void)state;
	write_value(V(1));
	assert_true(read_value(V(1)));
	write_value(V(2));
	assert_true(read_value(V(2)));
	assert_true(read_value(V(2)));
}

static void what_was_never_written_may_not_be_read(void **state)
{
	(void)state;
	write_value(V(1));
	assert_false(read_value(V(2)));
}

static void an_overwritten_value_is_wrong(void **state)
{
	(void)state;
	write_value(V(1));
	write_value(V(2));
	assert_false(read_value(V(1)));
}

static void a_read_that_overlaps_a_write_may_return_either(void **state)
{
	uint64_t w, early, late;

	(void)state;
	write_value(V(1));
	early = read_begin();
	w = write_begin(V(2));
	late = read_begin();
	write_end(w, true);
	assert_true(read_end(late, V(1)));
	assert_true(read_end(early, V(1)));
	assert_true(read_value(V(2)));
}

static void a_read_in_flight_keeps_old_values_possible(void **state)
{
	uint64_t old;

	(void)state;
	write_value(V(1));
	old = long_read_begin();
	for (unsigned i = 2; i < 100; i++)
		write_value(V(i));
	atomic_store(&floors[0], XB_NOT_READING);
	assert_true(read_end(old, V(1)));
	assert_false(read_value(V(1)));
	assert_true(read_value(V(99)));
	assert_int_equal(slot()->list, 0);
}

static void values_between_are_possible_for_a_long_read_too(void **state)
{
	uint64_t old;

	(void)state;
	write_value(V(1));
	old = long_read_begin();
	for (unsigned i = 2; i < 100; i++)
		write_value(V(i));
	assert_true(read_end(old, V(57)));
}

static void concurrent_writes_may_land_in_either_order(void **state)
{
	uint64_t a = write_begin(V(1)), b = write_begin(V(2));

	(void)state;
	write_end(a, true);
	write_end(b, true);
	assert_true(read_value(V(1)));
}

static void the_order_that_a_read_has_seen_stays(void **state)
{
	uint64_t a = write_begin(V(1)), b = write_begin(V(2));

	(void)state;
	write_end(a, true);
	write_end(b, true);
	assert_true(read_value(V(2)));
	assert_false(read_value(V(1)));
	assert_true(read_value(V(2)));
}

static void a_value_does_not_come_back_between_reads(void **state)
{
	uint64_t a = write_begin(V(1)), b = write_begin(V(2));

	(void)state;
	assert_true(read_value(V(1)));
	assert_true(read_value(V(2)));
	assert_false(read_value(V(1)));
	write_end(a, true);
	write_end(b, true);
	assert_false(read_value(V(1)));
	assert_true(read_value(V(2)));
}

static void a_failed_write_may_have_happened_or_not(void **state)
{
	(void)state;
	write_value(V(1));
	write_end(write_begin(V(2)), false);
	assert_true(read_value(V(1)));
	assert_true(read_value(V(2)));
	assert_true(read_value(V(1)));
	write_value(V(3));
	assert_false(read_value(V(2)));
	assert_false(read_value(V(1)));
	assert_true(read_value(V(3)));
}

static void a_sector_whose_writes_all_fail_keeps_a_short_list(void **state)
{
	const struct xb_node *n;
	unsigned nr = 0;

	(void)state;
	write_value(V(1));
	for (unsigned i = 2; i < 1000; i++)
		write_end(write_begin(V(i)), false);
	for (n = xb_node_of(&oracle->nodes, slot()->list); n;
		n = xb_node_of(&oracle->nodes, n->next))
		nr++;
	assert_true(nr <= 20);
	assert_true(read_value(V(500)));
	assert_false(read_end_kind(read_begin(), V(500), XB_SEEN_TORN));
	write_value(V(1000));
	assert_false(read_value(V(500)));
	assert_int_equal(slot()->list, 0);
}

static void an_unanswered_write_stays_possible_for_ever(void **state)
{
	uint64_t hanging;

	(void)state;
	hanging = write_begin(V(1));
	write_value(V(2));
	assert_true(read_value(V(2)));
	assert_true(read_value(V(1)));
	assert_false(read_value(V(2)));
	write_end(hanging, true);
	assert_true(read_value(V(1)));
}

static void the_first_read_defines_what_was_there_before(void **state)
{
	(void)state;
	assert_true(read_other(77));
	assert_true(read_other(77));
	assert_false(read_other(78));
	assert_false(read_value(XB_VALUE_ZERO));
}

static void a_stamp_of_this_run_is_never_what_was_there_before(void **state)
{
	(void)state;
	assert_false(read_value(V(1)));
	assert_true(read_value(XB_VALUE_ZERO));
}

static void what_was_there_before_is_learnt_beside_a_write(void **state)
{
	uint64_t w = write_begin(V(1));

	(void)state;
	assert_true(read_other(5));
	assert_false(read_other(6));
	assert_true(read_other(5));
	assert_true(read_value(V(1)));
	assert_false(read_other(5));
	write_end(w, true);
}

static void zeroing_is_a_write_of_zeroes(void **state)
{
	uint64_t a, b;

	(void)state;
	write_value(V(1));
	write_value(XB_VALUE_ZERO);
	assert_true(read_value(XB_VALUE_ZERO));
	assert_false(read_value(V(1)));
	write_value(V(2));
	assert_false(read_value(XB_VALUE_ZERO));
	a = write_begin(XB_VALUE_ZERO);
	b = write_begin(XB_VALUE_ZERO);
	assert_true(read_value(XB_VALUE_ZERO));
	assert_true(read_value(V(2)));
	write_end(a, true);
	write_end(b, true);
	assert_false(read_value(V(2)));
	assert_true(read_value(XB_VALUE_ZERO));
	assert_int_equal(slot()->list, 0);
}

static void a_sector_comes_to_rest(void **state)
{
	uint64_t w;

	(void)state;
	write_value(V(1));
	assert_int_equal(slot()->list, 0);
	w = write_begin(V(2));
	assert_int_not_equal(slot()->list, 0);
	write_end(w, true);
	assert_int_equal(slot()->list, 0);
	assert_int_equal(slot()->value, V(2));
}

/* ---- kinds of errors --------------------------------------------------------------------- */

static void assert_wrong(uint64_t stale, uint64_t lost, uint64_t torn, uint64_t misplaced)
{
	assert_int_equal(xb_oracle_wrong(oracle, XB_STALE), stale);
	assert_int_equal(xb_oracle_wrong(oracle, XB_LOST), lost);
	assert_int_equal(xb_oracle_wrong(oracle, XB_TORN), torn);
	assert_int_equal(xb_oracle_wrong(oracle, XB_MISPLACED), misplaced);
}

static void an_old_value_is_stale_when_the_newer_was_seen_before(void **state)
{
	(void)state;
	write_value(V(1));
	write_value(V(2));
	assert_true(read_value(V(2)));
	assert_false(read_value(V(1)));
	assert_wrong(1, 0, 0, 0);
}

static void an_old_value_is_lost_until_the_newer_is_seen(void **state)
{
	(void)state;
	write_value(V(1));
	write_value(V(2));
	assert_false(read_value(V(1)));
	assert_false(read_value(V(1)));
	assert_wrong(0, 2, 0, 0);
	assert_true(read_value(V(2)));
	assert_wrong(2, 0, 0, 0);
}

static void a_lost_write_stays_lost_when_another_overwrites_it(void **state)
{
	(void)state;
	write_value(V(1));
	write_value(V(2));
	assert_false(read_value(V(1)));
	write_value(V(3));
	assert_true(read_value(V(3)));
	assert_wrong(0, 1, 0, 0);
}

static void a_second_look_counts_nothing_but_settles_lost_or_stale(void **state)
{
	struct xb_seen old = { .value = V(1), .kind = XB_SEEN_OURS },
		       right = { .value = V(2), .kind = XB_SEEN_OURS };

	(void)state;
	write_value(V(1));
	write_value(V(2));
	assert_false(read_value(V(1)));
	assert_true(xb_oracle_any_suspect(oracle, AT - 512, 2048));
	xb_oracle_look_again(oracle, AT, 512, read_begin(), &old);
	assert_wrong(0, 1, 0, 0);
	xb_oracle_look_again(oracle, AT, 512, read_begin(), &right);
	assert_wrong(1, 0, 0, 0);
	assert_false(xb_oracle_any_suspect(oracle, AT - 512, 2048));
}

static void torn_and_misplaced_are_wrong_whatever_is_possible(void **state)
{
	uint64_t w = write_begin(V(1));

	(void)state;
	assert_false(read_end_kind(read_begin(), V(1), XB_SEEN_TORN));
	assert_false(read_end_kind(read_begin(), V(1), XB_SEEN_MISPLACED));
	write_end(w, true);
	assert_wrong(0, 0, 1, 1);
}

static void the_first_findings_are_kept(void **state)
{
	struct xb_finding f[XB_FINDINGS];

	(void)state;
	write_value(V(1));
	write_value(V(2));
	for (unsigned i = 0; i < 2 * XB_FINDINGS; i++)
		assert_false(read_value(V(1)));
	assert_int_equal(xb_oracle_findings(oracle, f), XB_FINDINGS);
	assert_int_equal(f[0].offset, AT);
	assert_int_equal(f[0].expected, V(2));
	assert_int_equal(f[0].found, V(1));
}

/* ---- ranges ------------------------------------------------------------------------------ */

static void every_sector_of_a_range_is_judged_for_itself(void **state)
{
	struct xb_seen seen[512] = { 0 };
	uint64_t w;

	(void)state;
	w = xb_oracle_tick(oracle);
	xb_oracle_write_begin(oracle, 4096, 512 * 512, V(1), w);
	xb_oracle_write_end(oracle, 4096, 512 * 512, w, true);
	w = xb_oracle_tick(oracle);
	xb_oracle_write_begin(oracle, 4096 + 100 * 512, 10 * 512, V(2), w);
	xb_oracle_write_end(oracle, 4096 + 100 * 512, 10 * 512, w, true);
	for (unsigned i = 0; i < 512; i++)
		seen[i] = (struct xb_seen){ .value = V(1), .kind = XB_SEEN_OURS };
	w = xb_oracle_read_begin(oracle, 4096, 512 * 512);
	assert_int_equal(xb_oracle_read_end(oracle, 4096, 512 * 512, w, seen), 10);
}

static void a_read_that_failed_teaches_nothing(void **state)
{
	uint64_t r = read_begin();

	(void)state;
	assert_int_equal(xb_oracle_read_end(oracle, AT, 512, r, NULL), 0);
	assert_int_equal(slot()->readers, 0);
	assert_false(xb_oracle_any_known(oracle, 4096, 65536));
}

static void what_was_never_touched_is_skipped(void **state)
{
	struct xb_oracle *big;
	struct xseg_error err;
	uint64_t w;

	(void)state;
	big = xb_oracle_create(0, 1ull << 40, floors, NR_FLOORS, &err);
	assert_non_null(big);
	assert_int_equal(xb_oracle_skip(big, 0), 1ull << 40);
	w = xb_oracle_tick(big);
	xb_oracle_write_begin(big, 1ull << 39, 512, V(1), w);
	xb_oracle_write_end(big, 1ull << 39, 512, w, true);
	assert_int_equal(xb_oracle_skip(big, 0), 1ull << 39);
	assert_true(xb_oracle_any_known(big, 1ull << 39, 4096));
	xb_oracle_destroy(big);
}

static void a_run_made_again_knows_which_writes_may_be_last(void **state)
{
	struct xb_possible p[XB_MAX_POSSIBLE];

	(void)state;
	xb_oracle_redo(oracle, AT, 512, V(1), V(1), 8);
	xb_oracle_redo(oracle, AT, 512, V(5), V(5), 8);
	assert_int_equal(xb_oracle_possible(oracle, AT, p), 2);
	xb_oracle_redo(oracle, AT, 512, V(9), V(9), 8);
	assert_int_equal(xb_oracle_possible(oracle, AT, p), 2);
	xb_oracle_redo(oracle, AT, 512, xb_value(1, 3), xb_value(1, 3), 8);
	assert_int_equal(xb_oracle_possible(oracle, AT, p), 3);
	xb_oracle_redo(oracle, AT, 512, XB_VALUE_ZERO, V(40), 8);
	assert_int_equal(xb_oracle_possible(oracle, AT, p), 2);
	assert_true(read_value(xb_value(1, 3)));
	assert_false(read_value(XB_VALUE_ZERO));
}

/* ---- against a checker that forgets nothing ---------------------------------------------- */

/* All values of one sector, with the zones of all that was noted. unsure: f is when the failed
 * write ended. */
struct zone {
	uint64_t f, s, issued;
	bool unsure, pending;
};

#define MAX_VALUES 4096

static struct zone zones[MAX_VALUES];
static unsigned nr_zones;

static bool is_sure(const struct zone *z)
{
	return !z->unsure && z->f != XB_NEVER;
}

static bool checker_allows(unsigned v, uint64_t issued, uint64_t ended)
{
	uint64_t f = zones[v].f < ended ? zones[v].f : ended,
		 s = zones[v].s > issued ? zones[v].s : issued;

	for (unsigned w = 0; w < nr_zones; w++) {
		if (w == v || !is_sure(&zones[w]))
			continue;
		if (zones[v].unsure ? zones[v].f < zones[w].issued && zones[w].f < issued :
				      f < zones[w].s && zones[w].f < s)
			return false;
	}
	return true;
}

static void checker_notes(unsigned v, uint64_t issued, uint64_t ended)
{
	if (zones[v].unsure)
		return;
	if (ended < zones[v].f)
		zones[v].f = ended;
	if (issued > zones[v].s)
		zones[v].s = issued;
}

struct running {
	bool write;
	unsigned v;				/* write: its value; read: what it will return */
	bool decided;				/* the effect, or the value read, is there */
	uint64_t issued;
};

#define MAX_RUNNING 12

static struct running running[MAX_RUNNING];
static unsigned nr_running, now_there;

static void start_op(uint64_t *rng)
{
	struct running *op = &running[nr_running];
	bool write = xb_random_below(rng, 3) == 0;

	if (nr_running == MAX_RUNNING || (write && nr_zones == MAX_VALUES))
		return;
	*op = (struct running){ .write = write };
	if (write) {
		op->v = nr_zones;
		op->issued = write_begin(V(nr_zones));
		zones[nr_zones++] = (struct zone){
			.f = XB_NEVER, .s = op->issued, .issued = op->issued, .pending = true
		};
	} else {
		atomic_store(&floors[nr_running], xb_oracle_now(oracle));
		op->issued = read_begin();
		atomic_store(&floors[nr_running], op->issued);
	}
	nr_running++;
}

/* The effect of an op somewhere between its issue and its end. Some reads are made to return any
 * old value. */
static void decide(struct running *op, uint64_t *rng, unsigned faults)
{
	if (op->decided)
		return;
	op->decided = true;
	if (op->write)
		now_there = op->v;
	else if (xb_random_below(rng, 1000) < faults)
		op->v = nr_zones - 1 - (unsigned)xb_random_below(rng, nr_zones < 8 ? nr_zones : 8);
	else
		op->v = now_there;
}

static void end_op(unsigned i, uint64_t *rng, unsigned faults, unsigned *nr_wrong)
{
	struct running op = running[i];
	uint64_t now = xb_oracle_now(oracle);
	bool fails = op.write && xb_random_below(rng, 20) == 0;

	if (!fails || xb_random_below(rng, 2))
		decide(&op, rng, faults);
	running[i] = running[--nr_running];
	atomic_store(&floors[i], atomic_load(&floors[nr_running]));
	atomic_store(&floors[nr_running], XB_NOT_READING);
	if (op.write) {
		write_end(op.issued, !fails);
		zones[op.v].pending = false;
		zones[op.v].unsure = fails;
		if (fails || now < zones[op.v].f)
			zones[op.v].f = now;
	} else {
		bool allowed = checker_allows(op.v, op.issued, now);

		assert_int_equal(read_end(op.issued, V(op.v)), allowed);
		*nr_wrong += !allowed;
		if (allowed)
			checker_notes(op.v, op.issued, now);
	}
}

/* Failed writes are decided by chance as well, so even without faults reads flip between what is
 * unsure. */
static void random_history(uint64_t seed, unsigned steps, unsigned faults, unsigned *nr_wrong)
{
	uint64_t rng = seed;

	nr_zones = 1;
	nr_running = now_there = 0;
	zones[0] = (struct zone){ .f = 0, .s = 0 };
	oracle->slots[(AT - 4096) / 512].value = V(0);
	while (steps--) {
		uint64_t what = xb_random_below(&rng, 3);

		if (what == 0)
			start_op(&rng);
		else if (nr_running && what == 1)
			decide(&running[xb_random_below(&rng, nr_running)], &rng, faults);
		else if (nr_running)
			end_op((unsigned)xb_random_below(&rng, nr_running), &rng, faults, nr_wrong);
	}
}

/* Every verdict must be that of the checker, whatever the oracle has dropped meanwhile. A merge of
 * failed writes (more than 16 at once) would make the oracle milder; so many do not come together
 * here. */
static void its_verdicts_are_those_of_a_checker_that_forgets_nothing(void **state)
{
	unsigned wrong = 0;

	for (uint64_t seed = 1; seed <= 3000; seed++) {
		unsigned before = wrong;

		end(state);
		assert_int_equal(begin(state), 0);
		random_history(seed, 400, 60, &wrong);
		if (before != wrong && seed < 4)
			print_message("seed %llu: %u wrong reads\n", (unsigned long long)seed,
				      wrong - before);
	}
	assert_true(wrong > 1000);
}

static void a_true_register_is_never_called_wrong(void **state)
{
	unsigned wrong = 0;

	for (uint64_t seed = 1; seed <= 3000; seed++) {
		end(state);
		assert_int_equal(begin(state), 0);
		random_history(seed * 7919, 400, 0, &wrong);
	}
	assert_int_equal(wrong, 0);
}

/* ---- threads ----------------------------------------------------------------------------- */

#define NR_THREADS 4
#define NR_CELLS   16

static _Atomic uint64_t cells[NR_CELLS];

/* Cells are true registers: a store to an atomic word is its write. */
static void *hammer(void *arg)
{
	uint32_t job = (uint32_t)(uintptr_t)arg;
	uint64_t rng = job + 1, wrong = 0;

	for (uint64_t seq = 1; seq < 20000; seq++) {
		uint64_t cell = xb_random_below(&rng, NR_CELLS), at = 4096 + cell * 512, issued;

		if (xb_random_below(&rng, 2)) {
			issued = xb_oracle_tick(oracle);
			xb_oracle_write_begin(oracle, at, 512, xb_value(job, seq), issued);
			atomic_store(&cells[cell], xb_value(job, seq));
			xb_oracle_write_end(oracle, at, 512, issued, true);
		} else {
			struct xb_seen seen = { .kind = XB_SEEN_OURS, .offset = at };

			atomic_store(&floors[job], xb_oracle_now(oracle));
			issued = xb_oracle_read_begin(oracle, at, 512);
			atomic_store(&floors[job], issued);
			seen.value = atomic_load(&cells[cell]);
			if (seen.value == 0)
				seen = (struct xb_seen){ .kind = XB_SEEN_ZERO,
							 .value = XB_VALUE_ZERO };
			wrong += xb_oracle_read_end(oracle, at, 512, issued, &seen);
			atomic_store(&floors[job], XB_NOT_READING);
		}
	}
	return (void *)(uintptr_t)wrong;
}

static void threads_on_true_registers_are_never_called_wrong(void **state)
{
	pthread_t thread[NR_THREADS];
	uint64_t wrong = 0;
	void *result;

	(void)state;
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, (void *)i), 0);
	for (unsigned i = 0; i < NR_THREADS; i++) {
		pthread_join(thread[i], &result);
		wrong += (uintptr_t)result;
	}
	assert_int_equal(wrong, 0);
	for (unsigned i = 0; i < NR_CELLS; i++)
		assert_int_equal(oracle->slots[i].list, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_may_be_read),
		TEST(what_was_never_written_may_not_be_read),
		TEST(an_overwritten_value_is_wrong),
		TEST(a_read_that_overlaps_a_write_may_return_either),
		TEST(a_read_in_flight_keeps_old_values_possible),
		TEST(values_between_are_possible_for_a_long_read_too),
		TEST(concurrent_writes_may_land_in_either_order),
		TEST(the_order_that_a_read_has_seen_stays),
		TEST(a_value_does_not_come_back_between_reads),
		TEST(a_failed_write_may_have_happened_or_not),
		TEST(a_sector_whose_writes_all_fail_keeps_a_short_list),
		TEST(an_unanswered_write_stays_possible_for_ever),
		TEST(the_first_read_defines_what_was_there_before),
		TEST(a_stamp_of_this_run_is_never_what_was_there_before),
		TEST(what_was_there_before_is_learnt_beside_a_write),
		TEST(zeroing_is_a_write_of_zeroes),
		TEST(a_sector_comes_to_rest),
		TEST(an_old_value_is_stale_when_the_newer_was_seen_before),
		TEST(an_old_value_is_lost_until_the_newer_is_seen),
		TEST(a_lost_write_stays_lost_when_another_overwrites_it),
		TEST(a_second_look_counts_nothing_but_settles_lost_or_stale),
		TEST(torn_and_misplaced_are_wrong_whatever_is_possible),
		TEST(the_first_findings_are_kept),
		TEST(every_sector_of_a_range_is_judged_for_itself),
		TEST(a_read_that_failed_teaches_nothing),
		TEST(what_was_never_touched_is_skipped),
		TEST(a_run_made_again_knows_which_writes_may_be_last),
		TEST(its_verdicts_are_those_of_a_checker_that_forgets_nothing),
		TEST(a_true_register_is_never_called_wrong),
		TEST(threads_on_true_registers_are_never_called_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
