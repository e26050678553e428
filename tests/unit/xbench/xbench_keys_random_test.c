/* xbench_keys_random_test - random histories of a few keys: of a store that is right nothing is
 * found, and of one that has a fault the fault is.
 *
 * The store is a model: an operation is begun, takes effect at some later step, and ends at a later
 * one. At a step a fault may be put in. Each seed is a history of its own.
 */
#include "tests/rig/xbench_keys_rig.h"

#include <stdio.h>

#include "bench/xbench/plan/gen.h"

#define MODEL_KEYS 3u
#define NR_OUT	   8u
#define STEPS	   2000u
#define SEEDS	   300u

enum fault {
	NONE,
	FORGET,					/* the last change of a key is taken back */
	DROP,					/* a key is gone */
	ECHO,					/* a get answers what the key held before */
	SWAP,					/* a get answers what another key has */
	TWICE,					/* a change is done once more, and answers so */
	LAX,					/* a condition is not looked at */
	AGAIN,					/* an incr counts twice */
	NR_FAULTS
};

/* What a key holds. version 0: it was never there. */
struct held {
	uint64_t value, version;
	bool present;
};

struct op {
	struct xb_try t;
	enum xb_op op;
	uint32_t key;
	uint64_t value, base;
	bool out, done, fails;
	int64_t result;
	struct held got;
	uint64_t number;
};

static struct held held[MODEL_KEYS], before[MODEL_KEYS];
static uint64_t counter, version, rng, seq, known[MODEL_KEYS];
static struct op ops[NR_OUT];
static enum fault fault;
static bool planted;

static uint64_t below(uint64_t n)
{
	return xb_random_below(&rng, n);
}

/* Once in a while, and only with such a fault. */
static bool plant(enum fault which)
{
	if (fault != which || below(40))
		return false;
	planted = true;
	return true;
}

/* ---- the store --------------------------------------------------------------------------- */

static void set(uint32_t key, uint64_t value, bool present)
{
	before[key] = held[key];
	held[key] = (struct held){ .value = value, .version = ++version, .present = present };
}

static int condition(const struct op *o, const struct held *h)
{
	switch (o->op) {
	case XB_ADD:
		return h->present ? -EEXIST : 0;
	case XB_CAS:
		return !h->present ? -ENOENT : h->version == o->base ? 0 : -EEXIST;
	case XB_DELETE:
		return h->present ? 0 : -ENOENT;
	default:
		return 0;
	}
}

static void do_change(struct op *o)
{
	struct held *h = &held[o->key];
	bool twice;

	o->result = condition(o, h);
	if ((o->op == XB_ADD || o->op == XB_CAS) && o->result && plant(LAX))
		o->result = 0;
	if (!o->result) {
		twice = o->op != XB_WRITE && plant(TWICE);
		set(o->key, o->value, o->op != XB_DELETE);
		if (twice)
			o->result = condition(o, h);
	}
	o->got = *h;
}

static void do_get(struct op *o)
{
	const struct held *h = &held[o->key];

	if (plant(ECHO))
		h = &before[o->key];
	o->got = *h;
	o->result = h->present ? 0 : -ENOENT;
	if (o->result == 0 && plant(SWAP))
		o->got.value = held[(o->key + 1) % MODEL_KEYS].value;
}

static void do_op(struct op *o)
{
	o->done = true;
	if (o->op == XB_INCR)
		o->number = counter += plant(AGAIN) ? 2 : 1;
	else if (o->op == XB_READ || o->op == XB_EXISTS)
		do_get(o);
	else
		do_change(o);
}

static void damage(void)
{
	uint32_t key = (uint32_t)below(MODEL_KEYS);

	if (fault == FORGET && held[key].present && before[key].version && plant(FORGET))
		held[key] = before[key];
	else if (fault == DROP && held[key].present && plant(DROP))
		held[key].present = false;
}

/* ---- the client -------------------------------------------------------------------------- */

static void begin_op(struct op *o, uint32_t slot)
{
	static const enum xb_op all[] = { XB_READ, XB_READ, XB_WRITE, XB_DELETE, XB_ADD, XB_CAS,
		XB_INCR, XB_EXISTS };

	*o = (struct op){ .out = true, .op = all[below(8)], .key = (uint32_t)below(MODEL_KEYS),
		.t.slot = slot };
	o->fails = below(50) == 0 && o->op != XB_READ && o->op != XB_EXISTS;
	o->value = o->op == XB_DELETE ? 0 : V(++seq);
	if (o->op == XB_CAS) {
		o->base = known[o->key];
		if (!o->base)
			o->op = XB_ADD;
	}
	if (o->op == XB_INCR)
		xb_keys_incr_begin(keys, &o->t, NR_KEYS);
	else if (o->op == XB_READ || o->op == XB_EXISTS)
		xb_keys_get_begin(keys, &o->t, o->op, o->key);
	else
		xb_keys_change_begin(keys, &o->t, o->op, o->key, o->value, o->base);
}

static struct xb_seen seen_by(const struct op *o)
{
	return seen_of(o->key, o->got.value,
		o->got.value == XB_VALUE_ZERO ? XB_SEEN_ZERO : XB_SEEN_OURS);
}

static void end_op(struct op *o)
{
	struct xb_told told = { .result = o->fails ? -EIO : o->result, .number = o->number };
	struct xb_seen seen = seen_by(o);

	if (told.result == 0 || told.result == -EEXIST)
		told.version = o->got.version;
	if (told.result >= 0 && o->op != XB_INCR && o->op != XB_DELETE)
		known[o->key] = told.version;
	o->out = false;
	if (o->op == XB_INCR)
		xb_keys_incr_end(keys, &o->t, &told);
	else if (o->op == XB_READ)
		xb_keys_get_end(keys, &o->t, &told, told.result ? NULL : &seen);
	else if (o->op == XB_EXISTS)
		xb_keys_get_end(keys, &o->t, &told, NULL);
	else
		xb_keys_change_end(keys, &o->t, &told);
}

/* One operation goes on by one. A failed one may take effect, or not: then when it would end. */
static void step(void)
{
	uint32_t slot = (uint32_t)below(NR_OUT);
	struct op *o = &ops[slot];

	if (!o->out)
		begin_op(o, slot);
	else if (!o->done && o->fails && below(2))
		end_op(o);
	else if (!o->done)
		do_op(o);
	else
		end_op(o);
	if (fault == FORGET || fault == DROP)
		damage();
}

/* What the last look finds. */
static void read_back(void)
{
	for (uint32_t key = 0; key < MODEL_KEYS; key++) {
		struct op o = { .op = XB_READ, .key = key };

		xb_keys_get_begin(keys, &o.t, XB_READ, key);
		o.got = held[key];
		o.result = held[key].present ? 0 : -ENOENT;
		end_op(&o);
	}
	xb_keys_counter(keys, NR_KEYS, false, counter);
}

/* Returns how much is wrong. */
static uint64_t run(uint64_t seed)
{
	uint64_t found;

	assert_int_equal(begin_keys(NULL), 0);
	rng = seed;
	memset(held, 0, sizeof(held));
	memset(before, 0, sizeof(before));
	memset(ops, 0, sizeof(ops));
	memset(known, 0, sizeof(known));
	counter = version = seq = 0;
	planted = false;
	for (uint32_t i = 0; i < STEPS; i++)
		step();
	for (uint32_t i = 0; i < NR_OUT; i++) {
		if (ops[i].out && !ops[i].done)
			do_op(&ops[i]);
		if (ops[i].out)
			end_op(&ops[i]);
	}
	read_back();
	found = xb_keys_wrong_in_all(keys);
	end_keys(NULL);
	return found;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void nothing_is_found_of_a_store_that_is_right(void **state)
{
	(void)state;
	fault = NONE;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		if (run(seed))
			fail_msg("seed %lu: something is wrong with a store that is right",
				(unsigned long)seed);
}

/* A fault may hide: what it changed was overwritten before anybody looked, or it looks like an incr
 * that failed. */
static void assert_found(enum fault which)
{
	uint32_t nr = 0, found = 0;

	fault = which;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		uint64_t wrong = run(seed);

		nr += planted;
		found += planted && wrong > 0;
		if (!planted && wrong)
			fail_msg("seed %lu: wrong without a fault", (unsigned long)seed);
	}
	printf("fault %d: found in %u of %u histories\n", (int)which, found, nr);
	assert_true(nr > SEEDS / 2);
	assert_true(found > nr * 8 / 10);
}

static void every_fault_is_found(void **state)
{
	(void)state;
	for (enum fault which = NONE + 1; which < NR_FAULTS; which++)
		assert_found(which);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_found_of_a_store_that_is_right),
		cmocka_unit_test(every_fault_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
