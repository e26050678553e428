/* cached_step_test - how data leaves the cache, and the eviction policy's three functions
 * (peers/cached/evict/step.c, order.h).
 */
#include "tests/rig/cached_rig.h"

#define QUIET "dirty_age=1h dirty_high=100 dirty_low=100 "

static struct cport *port(void)
{
	return cport_at(crig.k, 0);
}

/* What evict_step() says of that bucket, called inside the object. */
static uint32_t step(const char *name, uint32_t b, enum evict_reason why)
{
	struct object *o = crig_object(name);
	uint32_t page;

	assert_true(xworkq_try_enter(&o->q));
	page = evict_step(port(), o, b, crig_slot(name, b), why);
	assert_false(xworkq_leave(&o->q));
	return page;
}

static enum verdict verdict(const char *name, uint32_t b, uint32_t rec)
{
	struct object *o = crig_object(name);
	enum verdict v;

	assert_true(xworkq_try_enter(&o->q));
	v = order_verdict(port(), o, b, crig_slot(name, b), rec);
	assert_false(xworkq_leave(&o->q));
	return v;
}

static void slot_word_is(const char *name, uint32_t b, uint64_t word)
{
	struct object *o = crig_object(name);

	assert_true(xworkq_try_enter(&o->q));
	bucket_set(port(), o, b, word);
	assert_false(xworkq_leave(&o->q));
}

/* Bucket b is what that reason is for. */
static void make_fit(const char *name, uint32_t b, enum evict_reason why)
{
	if (why != EVICT_FLUSHED && why != EVICT_ZEROES)
		return;
	crig_expect(crig_write(name, B(b), B(1), 7), B(1));
	slot_word_is(name, b,
		slot_word(BUCKET_WRITING, slot_page(crig_slot(name, b)),
			crig_slot(name, b) & SLOT_GEN));
}

/* As the flush would, when evict_step() is back. */
static void flush_ends(const char *name, enum evict_reason why)
{
	struct object *o = crig_object(name);

	if (why == EVICT_FLUSHED || why == EVICT_ZEROES) {
		dirty_end(port(), o, o->gen);
		dirty_unlist(port(), o);
	}
}

static uint64_t all_evicted(void)
{
	return crig_counter(CC_EVICTED_CLEAN) + crig_counter(CC_EVICTED_OBJECT) +
	       crig_counter(CC_EVICTED_DIRTY) + crig_counter(CC_EVICTED_PRESSURE) +
	       crig_counter(CC_EVICTED_UNPROMISED);
}

/* ---- the step ---------------------------------------------------------------------------- */

static void each_reason_has_its_own_counter_or_none(void **state)
{
	static const struct {
		enum evict_reason why;
		enum cache_counter counter;	/* NR_CC: none */
	} reasons[] = {
		{ EVICT_WANTED, CC_EVICTED_CLEAN },
		{ EVICT_OBJECT, CC_EVICTED_OBJECT },
		{ EVICT_FLUSHED, CC_EVICTED_DIRTY },
		{ EVICT_PRESSURE, CC_EVICTED_PRESSURE },
		{ EVICT_ONCE, NR_CC },
		{ EVICT_ZEROES, NR_CC },
		{ EVICT_BYPASSED, NR_CC },
		{ EVICT_UNSURE, NR_CC },
		{ EVICT_UNPLUGGED, NR_CC },
		{ EVICT_DELETED, NR_CC },
	};

	(void)state;
	crig_up(QUIET);
	crig_volume(1);
	crig_have_clean("a", 0, B(16), 5);
	for (uint32_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		uint64_t all = all_evicted(), volume = crig_volume_number(1, "evicted");
		uint64_t its = reasons[i].counter < NR_CC ? crig_counter(reasons[i].counter) : 0;
		unsigned counts = reasons[i].counter < NR_CC;

		make_fit("a", i, reasons[i].why);
		page_put(port(), step("a", i, reasons[i].why));
		flush_ends("a", reasons[i].why);
		if (counts)
			assert_int_equal(crig_counter(reasons[i].counter), its + 1);
		assert_int_equal(all_evicted(), all + counts);
		assert_int_equal(crig_volume_number(1, "evicted"), volume + counts);
		assert_int_equal(crig_state("a", i),
			reasons[i].why == EVICT_BYPASSED ? BUCKET_BYPASS : BUCKET_INVALID);
		if (reasons[i].why == EVICT_BYPASSED)
			slot_word_is("a", i, slot_word(BUCKET_INVALID, 0, 0));
	}
	cached_check(crig.peer);
}

static void the_page_is_the_callers_and_in_no_list_any_more(void **state)
{
	uint32_t page, before, clean;

	(void)state;
	crig_up(QUIET);
	crig_have_clean("a", 0, B(4), 5);
	clean = clean_nr(&memory_of(crig.k)->clean);
	page = slot_page(crig_slot("a", 2));
	before = pages_available(crig.k);
	assert_int_equal(step("a", 2, EVICT_WANTED), page);
	assert_int_equal(clean_nr(&memory_of(crig.k)->clean), clean - 1);
	assert_false(page_is_listed(crig.k, page));
	assert_int_equal(pages_available(crig.k), before - 1);
	page_put(port(), page);
	cached_check(crig.peer);
	cached_check_idle(crig.peer);
}

static void a_bucket_of_zeroes_has_no_page_for_the_caller(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", 0, B(2)), B(2));
	crig_expect(crig_flush(0), 0);
	assert_int_equal(memory_of(crig.k)->nr_zeroes, 2);
	assert_int_equal(step("a", 0, EVICT_PRESSURE), NO_PAGE);
	assert_int_equal(memory_of(crig.k)->nr_zeroes, 1);
	cached_check(crig.peer);
}

static void the_share_of_its_volume_has_one_page_less(void **state)
{
	struct share *sh;

	(void)state;
	crig_up(QUIET);
	crig_volume_set("id=1 max=64k");
	crig_volume(1);
	crig_have_clean("a", 0, B(4), 5);
	sh = share_of(crig.k, object_volume(crig_object("a")));
	assert_int_equal(sh->used, 4);
	assert_int_equal(clean_nr(&sh->clean), 4);
	page_put(port(), step("a", 1, EVICT_WANTED));
	assert_int_equal(sh->used, 3);
	assert_int_equal(clean_nr(&sh->clean), 3);
	assert_int_equal(crig_volume_number(1, "used_bytes"), B(3));
	cached_check(crig.peer);
}

static void refused_data_counts_as_unpromised_whatever_the_reason(void **state)
{
	static const enum evict_reason reasons[] = { EVICT_WANTED, EVICT_OBJECT, EVICT_PRESSURE,
		EVICT_GIVEN_UP };

	(void)state;
	crig_up("policy=write-through " QUIET);
	crig_fail_next(XSEG_OP_WRITE, -ENOSPC, UINT32_MAX);
	crig_expect(crig_write("a", 0, B(4), 5), -ENOSPC);
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(slot_is_refused(crig_slot("a", i)));
		page_put(port(), step("a", i, reasons[i]));
		assert_int_equal(crig_counter(CC_EVICTED_UNPROMISED), i + 1);
		assert_int_equal(all_evicted(), i + 1);
	}
	assert_int_equal(crig_counter(CC_UNPROMISED_BYTES), 0);
	crig_fail_next(XSEG_OP_WRITE, 0, 0);
	crig_expect(crig_flush(0), 0);
	cached_check(crig.peer);
}

/* ---- what is refused --------------------------------------------------------------------- */

static void bypass(void)
{
	slot_word_is("a", 0, slot_word(BUCKET_INVALID, 0, 0));
}

static void take_promised(void)
{
	step("a", 1, EVICT_WANTED);
}

static void give_up_clean(void)
{
	step("a", 0, EVICT_GIVEN_UP);
}

static void take_empty(void)
{
	step("a", 2, EVICT_WANTED);
}

static void leave_by_set(void)
{
	struct object *o = crig_object("a");

	assert_true(xworkq_try_enter(&o->q));
	bucket_leave(port(), o, 0, BUCKET_DIRTY);
}

static jmp_buf refused;
static bool expects_refusal;

/* In place of the C library's. */
void __assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
	if (expects_refusal)
		longjmp(refused, 1);
	fprintf(stderr, "%s:%u: %s: %s does not hold\n", file, line, function, what);
	abort();
}

/* An assertion of the cache fails, before anything was changed. */
static void expect_refused(void (*fn)(void))
{
	struct object *o = crig_object("a");

	expects_refusal = true;
	if (setjmp(refused) == 0) {
		fn();
		expects_refusal = false;
		fail_msg("no assertion failed");
	}
	expects_refusal = false;
	if (xworkq_is_owned(&o->q))
		assert_false(xworkq_leave(&o->q));
	cached_check(crig.peer);
}

static void data_leaves_by_no_other_way_and_for_no_wrong_reason(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_have_clean("a", 0, B(1), 5);
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	expect_refused(bypass);
	expect_refused(take_promised);
	expect_refused(give_up_clean);
	expect_refused(take_empty);
	expect_refused(leave_by_set);
}

static void leave_outside(void)
{
	evict_step(port(), crig_object("a"), 0, crig_slot("a", 0), EVICT_WANTED);
}

static void nobody_evicts_from_outside_of_an_object(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_have_clean("a", 0, B(1), 5);
	expect_refused(leave_outside);
}

/* ---- the policy -------------------------------------------------------------------------- */

static void a_bucket_that_was_touched_stays_once(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_have_clean("a", 0, B(2), 5);
	crig_expect_data("a", 0, B(1), 5);
	crig_expect_data("a", 0, B(1), 5);
	assert_true(order_is_hot(crig_slot("a", 0)));
	assert_int_equal(verdict("a", 0, OTHERS), VERDICT_USED);
	assert_false(order_is_hot(crig_slot("a", 0)));
	assert_int_equal(verdict("a", 0, OTHERS), VERDICT_GOES);
	assert_int_equal(verdict("a", 0, OTHERS), VERDICT_GOES);
}

static void touching_changes_the_mark_and_nothing_else(void **state)
{
	uint64_t w = slot_word(BUCKET_VALID, 7, SLOT_WRITTEN);

	(void)state;
	assert_true(order_is_hot(order_touched(w)));
	assert_int_equal(order_touched(w) & ~SLOT_REF, w);
	assert_int_equal(order_touched(order_touched(w)), order_touched(w));
}

static void dirty_data_and_absent_data_are_never_victims(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	assert_int_equal(verdict("a", 0, FOR_NOBODY), VERDICT_DIRTY);
	assert_int_equal(verdict("a", 1, FOR_NOBODY), VERDICT_DIRTY);
}

static void a_volume_at_its_minimum_is_spared_but_from_itself(void **state)
{
	uint32_t rec;

	(void)state;
	crig_up(QUIET);
	crig_volume_set("id=1 min=64k");
	crig_volume(1);
	crig_have_clean("a", 0, B(4), 5);
	rec = object_volume(crig_object("a"));
	for (uint32_t b = 0; b < 4; b++)
		slot_clear_flag(crig.k, crig_object("a"), b, SLOT_REF);
	assert_int_equal(verdict("a", 0, OTHERS), VERDICT_SPARED);
	assert_int_equal(verdict("a", 0, rec), VERDICT_GOES);
	assert_int_equal(verdict("a", 0, FOR_NOBODY), VERDICT_GOES);
}

static void victims_come_in_the_order_in_which_they_became_clean_and_then_again(void **state)
{
	const struct claim any = { .rec = OTHERS };

	(void)state;
	crig_up(QUIET);
	assert_int_equal(order_next_page(crig.k, NULL, &any), XLIST_NONE);
	for (uint32_t b = 0; b < 3; b++)
		crig_have_clean("a", B(b), B(1), 5);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(order_next_page(crig.k, NULL, &any),
			slot_page(crig_slot("a", i % 3)));
	assert_int_equal(clean_nr(&memory_of(crig.k)->clean), 3);
}

static void the_object_that_was_touched_last_is_the_last_victim(void **state)
{
	bool all;
	struct object *o;

	(void)state;
	crig_up(QUIET);
	crig_have_clean("a", 0, B(1), 5);
	crig_have_clean("b", 0, B(1), 5);
	order_touched_object(crig.k, crig_object("a"));
	o = order_next_object(port(), &all);
	assert_ptr_equal(o, crig_object("b"));
	assert_false(all);
	object_put(port(), o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(each_reason_has_its_own_counter_or_none),
		CRIG_T(the_page_is_the_callers_and_in_no_list_any_more),
		CRIG_T(a_bucket_of_zeroes_has_no_page_for_the_caller),
		CRIG_T(the_share_of_its_volume_has_one_page_less),
		CRIG_T(refused_data_counts_as_unpromised_whatever_the_reason),
		CRIG_T(data_leaves_by_no_other_way_and_for_no_wrong_reason),
		CRIG_T(nobody_evicts_from_outside_of_an_object),
		CRIG_T(a_bucket_that_was_touched_stays_once),
		cmocka_unit_test(touching_changes_the_mark_and_nothing_else),
		CRIG_T(dirty_data_and_absent_data_are_never_victims),
		CRIG_T(a_volume_at_its_minimum_is_spared_but_from_itself),
		CRIG_T(victims_come_in_the_order_in_which_they_became_clean_and_then_again),
		CRIG_T(the_object_that_was_touched_last_is_the_last_victim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
