/* xbench_oracle_random_test - the verify oracle does not need the values that it forgets. The
 * oracle and a checker that forgets nothing judge random histories of one sector. And threads.
 */
#include "tests/rig/xbench_oracle_rig.h"

#include <pthread.h>
#include <stdlib.h>

#include "bench/xbench/plan/gen.h"

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
		op->issued = long_read_begin(nr_running);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(its_verdicts_are_those_of_a_checker_that_forgets_nothing),
		T(a_true_register_is_never_called_wrong),
		T(threads_on_true_registers_are_never_called_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
