/* cached_share_test - minima and maxima of volumes (peers/cached/evict/share.c): a noisy neighbour,
 * clean and dirty; which volume is full; changes while it runs; refused values; a successor; a
 * cache that shrinks.
 */
#include "tests/rig/cached_rig.h"

#include "peers/cached/admin/admin.h"

#include <pthread.h>

#define QUIET  "dirty_age=1h dirty_high=100 dirty_low=100 "
#define NOISY  2u
#define CALM   1u

static uint64_t used(uint32_t id)
{
	return crig_volume_number(id, "used_bytes");
}

static void have(uint32_t volume, const char *name, uint32_t first, uint32_t nr)
{
	crig_volume(volume);
	crig_have_clean(name, B(first), B(nr), volume);
}

static void dirty(uint32_t volume, const char *name, uint32_t first, uint32_t nr)
{
	crig_volume(volume);
	crig_expect(crig_write(name, B(first), B(nr), volume), B(nr));
}

static void forget_hits(const char *name, uint32_t nr)
{
	for (uint32_t b = 0; b < nr; b++)
		if (slot_state(crig_slot(name, b)) == BUCKET_VALID)
			slot_clear_flag(crig.k, crig_object(name), b, SLOT_REF);
}

/* What volume CALM read of its object is still there: all of it is a hit. */
static void expect_hits(uint32_t nr)
{
	uint32_t calls = crig_nr_calls();

	crig_volume(CALM);
	for (uint32_t b = 0; b < nr; b++)
		crig_expect_data("calm:0", B(b), B(1), CALM);
	assert_int_equal(crig_nr_calls(), calls);
}

/* ---- minima ------------------------------------------------------------------------------ */

static void clean_data_up_to_the_minimum_stays_however_much_another_volume_reads(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(64);
	crig_volume_set("id=1 min=64k");
	have(CALM, "calm:0", 0, 24);
	forget_hits("calm:0", 24);
	for (uint32_t i = 0; i < 20; i++)
		have(NOISY, "noisy:0", i * 16, 16);
	assert_int_equal(used(CALM), B(16));
	assert_int_equal(used(NOISY), B(48));
	assert_int_equal(crig_volume_number(CALM, "evicted"), 8);
}

static void without_a_minimum_it_goes(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(64);
	have(CALM, "calm:0", 0, 16);
	forget_hits("calm:0", 16);
	for (uint32_t i = 0; i < 20; i++)
		have(NOISY, "noisy:0", i * 16, 16);
	assert_int_equal(used(CALM), 0);
}

static void a_volume_below_its_minimum_takes_another_s_clean_pages(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(64);
	crig_volume_set("id=1 min=128k");
	have(NOISY, "noisy:0", 0, 64);
	crig_expect_data("noisy:0", 0, B(64), NOISY);	/* hit, but no minimum */
	have(CALM, "calm:0", 0, 32);
	assert_int_equal(used(CALM), B(32));
	assert_int_equal(used(NOISY), B(32));
	expect_hits(32);
}

static void its_reads_wait_for_flushes_where_all_the_rest_is_dirty(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up(QUIET);
	crig_limit(64);
	crig_volume_set("id=1 min=64k");
	dirty(NOISY, "noisy:0", 0, 64);
	crig_store_fill("calm:0", 0, B(8), CALM);
	crig_hold(true);
	cached_drop_reserve(crig.peer);
	crig_volume(CALM);
	io = crig_read("calm:0", 0, B(8));
	crig_expect_waits(io);
	assert_int_equal(crig_count_calls(XSEG_OP_READ, 0), 0);
	assert_int_not_equal(crig_held(XSEG_OP_WRITE, 0), CRIG_NEVER);
	crig_hold(false);
	crig_expect(io, B(8));
	assert_int_equal(used(CALM), B(8));
	assert_int_equal(crig_counter(CC_BYPASSED_FULL), 0);
	crig_volume(3);
	crig_store_fill("third:0", 0, B(1), 3);
	expect_hits(8);
}

static void who_is_owed_pages_goes_before_those_who_wait_already(void **state)
{
	struct crig_io *noisy, *calm;

	(void)state;
	crig_up(QUIET);
	crig_limit(64);
	crig_volume_set("id=1 min=64k");
	for (uint32_t i = 0; i < 64; i++)
		dirty(NOISY, "noisy:0", 2 * i, 1);
	crig_hold(true);
	crig_volume(NOISY);
	noisy = crig_write("noisy:1", 0, B(2), NOISY);
	crig_volume(CALM);
	calm = crig_write("calm:0", 0, B(1), CALM);
	crig_expect_waits(noisy);
	crig_expect_waits(calm);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_expect(calm, B(1));
	crig_expect_waits(noisy);
	crig_hold(false);
	crig_expect(noisy, B(2));
}

static void a_volume_at_its_minimum_takes_from_itself_what_others_have_not(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_limit(64);
	crig_volume_set("id=1 min=64k");
	have(CALM, "calm:0", 0, 16);
	dirty(NOISY, "noisy:0", 0, 48);
	have(CALM, "calm:1", 0, 4);
	assert_int_equal(used(CALM), B(16));
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(48));
	assert_int_equal(crig_state("calm:1", 3), BUCKET_VALID);
}

static void a_writer_that_needs_more_than_is_not_promised_has_it_when_all_is_flushed(void **state)
{
	struct crig_io *io[4];

	(void)state;
	crig_up(QUIET);
	crig_limit(64);
	crig_volume_set("id=1 min=128k");
	have(CALM, "calm:0", 0, 32);
	dirty(NOISY, "noisy:0", 0, 30);
	crig_hold(true);
	for (uint32_t i = 0; i < 4; i++)
		io[i] = crig_write("noisy:1", B(16 * i), B(16), NOISY);
	for (uint32_t i = 0; i < 4; i++)
		crig_expect_waits(io[i]);
	crig_hold(false);
	for (uint32_t i = 0; i < 4; i++)
		crig_expect(io[i], B(16));
	expect_hits(32);
}

/* A cut takes pages of the reserve, which is filled again when no page is free. */
static void the_reserve_takes_no_page_of_a_volume_at_its_minimum(void **state)
{
	uint32_t reserve;

	(void)state;
	crig_up(QUIET);
	crig_limit(64);
	crig_volume_set("id=1 min=128k");
	have(CALM, "calm:0", 0, 32);
	forget_hits("calm:0", 32);
	crig_store_fill("noisy:0", 0, B(64), NOISY);
	while (crig.k->memory.nr_free || memory_port(cport_at(crig.k, 0))->nr_magazine)
		dirty(NOISY, "noisy:0", (uint32_t)(crig_counter(CC_DIRTY_BYTES) / B(1)), 1);
	reserve = crig.k->memory.reserve.nr;
	crig_volume(NOISY);
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "noisy:0", B(50) + 512, B(1)), B(1));
	crig_pass(CRIG_S);
	assert_true(crig.k->memory.reserve.nr < reserve);
	assert_int_equal(used(CALM), B(32));
	expect_hits(32);
}

static void an_object_of_a_volume_at_its_minimum_is_passed_by_when_entries_run_out(void **state)
{
	char name[16];

	(void)state;
	crig_up("objects=4");
	crig_volume_set("id=1 min=64k");
	have(CALM, "calm:0", 0, 4);
	forget_hits("calm:0", 4);
	for (uint32_t i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "noisy:%u", i);
		have(NOISY, name, 0, 1);
		forget_hits(name, 1);
	}
	assert_int_equal(used(CALM), B(4));
	expect_hits(4);
}

static void but_who_has_all_entries_loses_one(void **state)
{
	char name[16];

	(void)state;
	crig_up("objects=4");
	crig_volume_set("id=1 min=64k");
	for (uint32_t i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "calm:%u", i);
		have(CALM, name, 0, 1);
		forget_hits(name, 1);
	}
	have(NOISY, "noisy:0", 0, 1);
	assert_int_equal(used(CALM), B(3));
	assert_int_equal(used(NOISY), B(1));
}

static void dirty_data_of_an_object_that_is_emptied_stays_when_it_is_clean(void **state)
{
	(void)state;
	crig_up(QUIET "objects=2");
	crig_volume_set("id=1 min=8k");
	dirty(CALM, "calm:0", 0, 4);
	have(NOISY, "noisy:0", 0, 1);
	forget_hits("noisy:0", 1);
	have(NOISY, "noisy:1", 0, 1);	/* calm:0 is emptied: it has more than its minimum */
	assert_int_equal(used(CALM), B(2));
	assert_true(crig_stored("calm:0", 0, B(4), CALM));
	assert_int_equal(used(NOISY), B(1));
}

static void very_sparse_objects_end_all_promises_while_they_have_too_many_chunks(void **state)
{
	uint32_t calm;

	(void)state;
	crig_up(QUIET "objects=64");
	crig_limit(64);
	crig_volume_set("id=1 min=128k");
	have(CALM, "calm:0", 0, 32);
	forget_hits("calm:0", 32);
	calm = object_volume(crig_object("calm:0"));
	/* as if they were: no other way to have them in so small a cache */
	atomic_fetch_add(&crig.k->memory.nr_chunk_pages, 32);
	assert_false(share_spares(crig.k, calm, OTHERS));
	atomic_fetch_sub(&crig.k->memory.nr_chunk_pages, 32);
	assert_true(share_spares(crig.k, calm, OTHERS));
	assert_false(share_spares(crig.k, calm, calm));
}

/* ---- maxima ------------------------------------------------------------------------------ */

static void a_volume_at_its_maximum_evicts_its_own(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(64);
	crig_volume_set("id=2 max=32k");
	have(CALM, "calm:0", 0, 16);
	forget_hits("calm:0", 16);
	for (uint32_t i = 0; i < 10; i++)
		have(NOISY, "noisy:0", 4 * i, 4);
	assert_int_equal(used(NOISY), B(8));
	assert_int_equal(used(CALM), B(16));
	assert_true(crig.k->memory.nr_free >= 64 - 24 - 1);		/* one was cut */
	for (uint32_t b = 32; b < 40; b++)
		/* the least recently used went */
		assert_int_equal(crig_state("noisy:0", b), BUCKET_VALID);
	expect_hits(16);
}

static void a_request_larger_than_the_maximum_goes_through(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(64);
	crig_volume_set("id=2 max=8k");
	dirty(NOISY, "noisy:0", 0, 16);
	crig_pass(CRIG_S);
	assert_int_equal(used(NOISY), B(2));
	assert_true(crig_stored("noisy:0", 0, B(14), NOISY));
	have(NOISY, "noisy:1", 0, 16);
	crig_pass(CRIG_S);
	assert_int_equal(used(NOISY), B(2));
	crig_volume(NOISY);
	crig_expect_data("noisy:0", 0, B(16), NOISY);
}

static void writers_of_a_full_volume_wait_for_its_own_flushes_in_their_order(void **state)
{
	struct crig_io *big, *small, *calm;

	(void)state;
	crig_up(QUIET);
	crig_limit(64);
	crig_volume_set("id=2 max=16k");
	dirty(CALM, "calm:0", 0, 4);
	for (uint32_t i = 0; i < 4; i++)
		dirty(NOISY, "noisy:0", 2 * i, 1);
	crig_hold(true);
	big = crig_write("noisy:1", 0, B(3), NOISY);
	small = crig_write("noisy:1", B(8), B(1), NOISY);
	crig_expect_waits(big);
	crig_expect_waits(small);
	assert_int_equal(crig_nr_held(), 4);
	for (uint32_t i = 0; i < crig_nr_calls(); i++)
		/* nobody else is flushed for it */
		assert_string_equal(crig_call(i)->target, "noisy:0");
	crig_volume(CALM);
	calm = crig_write("calm:0", B(8), B(8), CALM);
	crig_expect(calm, B(8));
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_expect_waits(small);
	crig_hold(false);
	assert_true(big->done && small->done && big->order < small->order);
	crig_expect(big, B(3));
	crig_expect(small, B(1));
	crig_pass(CRIG_S);
	assert_true(used(NOISY) <= B(4));
	assert_int_equal(crig_volume_number(CALM, "dirty_bytes"), B(12));
}

static void what_is_written_again_needs_no_room(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_limit(64);
	crig_volume_set("id=2 max=16k");
	dirty(NOISY, "noisy:0", 0, 4);
	crig_hold(true);
	dirty(NOISY, "noisy:0", 0, 4);
	dirty(NOISY, "noisy:0", 1, 2);
	assert_int_equal(crig_nr_calls(), 0);
	crig_hold(false);
}

static void a_copy_onto_what_is_there_needs_no_room(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up(QUIET);
	crig_limit(64);
	crig_volume_set("id=2 max=32k");
	dirty(NOISY, "noisy:0", 0, 4);
	dirty(NOISY, "noisy:1", 0, 4);
	crig_hold(true);
	io = crig_send_copy("noisy:1", "noisy:0", 0, B(4));
	crig_settle();
	assert_int_equal(crig_nr_calls(), 0);
	crig_expect(io, B(4));
	crig_hold(false);
}

static void a_read_of_a_volume_full_of_dirty_data_goes_past_the_cache(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_limit(64);
	crig_volume_set("id=2 max=16k");
	dirty(NOISY, "noisy:0", 0, 4);
	crig_store_fill("noisy:1", 0, B(2), 7);
	crig_expect_data("noisy:1", 0, B(2), 7);
	assert_int_equal(crig_counter(CC_BYPASSED_FULL), 1);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(4));
}

static void a_stream_is_not_kept_where_its_volume_is_full(void **state)
{
	(void)state;
	crig_up("seq_cutoff=16k");
	crig_volume_set("id=2 max=64k");
	crig_store_fill("noisy:0", 0, B(64), NOISY);
	crig_volume(NOISY);
	for (uint32_t i = 0; i < 64; i++)
		crig_expect_data("noisy:0", B(i), B(1), NOISY);
	assert_true(crig_counter(CC_BYPASSED_SEQUENTIAL) > 40);
	crig_volume(CALM);
	crig_store_fill("calm:0", 0, B(64), CALM);
	for (uint32_t i = 0; i < 64; i++)
		crig_expect_data("calm:0", B(i), B(1), CALM);
	assert_int_equal(used(CALM), B(64));			/* the cache has room */
}

/* ---- changes ----------------------------------------------------------------------------- */

static void a_maximum_below_what_there_is_evicts_the_least_recently_used_at_once(void **state)
{
	(void)state;
	crig_up("");
	for (uint32_t i = 0; i < 10; i++) {
		have(NOISY, "noisy:0", 30 * i, 30);
		have(CALM, "calm:0", 30 * i, 30);
	}
	forget_hits("noisy:0", 300);
	crig_volume_set("id=2 max=200k");
	assert_int_equal(used(NOISY), B(50));
	assert_int_equal(crig_counter(CC_EVICTED_PRESSURE), 250);
	for (uint32_t b = 250; b < 300; b++)
		assert_int_equal(crig_state("noisy:0", b), BUCKET_VALID);
	expect_hits(300);
}

static void a_maximum_below_what_is_dirty_flushes_that_volume_and_then_evicts(void **state)
{
	(void)state;
	crig_up(QUIET);
	dirty(CALM, "calm:0", 0, 20);
	dirty(NOISY, "noisy:0", 0, 20);
	crig_volume_set("id=2 max=16k");
	crig_pass(CRIG_S);
	assert_int_equal(used(NOISY), B(4));
	assert_int_equal(crig_volume_number(CALM, "dirty_bytes"), B(20));
	assert_true(crig_stored("noisy:0", 0, B(20), NOISY));
}

static void who_waits_for_room_goes_on_when_the_maximum_is_lifted_or_the_volume_is_forgotten(void **state)
{
	static const char *const lines[] = { "volume-set id=2 max=", "volume-set id=2 max=24k",
		"volume-forget id=2" };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct crig_io *io;

		crig_up(QUIET);
		crig_volume_set("id=2 max=16k");
		dirty(NOISY, "noisy:0", 0, 4);
		crig_hold(true);
		io = crig_write("noisy:1", 0, B(2), NOISY);
		crig_expect_waits(io);
		assert_true(crig_admin(lines[i]) > 0);
		crig_expect(io, B(2));
		crig_hold(false);
		crig_settle();
		crig_down(state);
	}
}

static void who_waits_for_room_below_a_maximum_that_is_lowered_still_goes_on(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up(QUIET);
	crig_volume_set("id=2 max=32k");
	dirty(NOISY, "noisy:0", 0, 8);
	crig_hold(true);
	io = crig_write("noisy:1", 0, B(6), NOISY);
	crig_volume_set("id=2 max=8k");
	crig_expect_waits(io);
	crig_hold(false);
	crig_pass(CRIG_S);
	crig_expect(io, B(6));
	assert_int_equal(used(NOISY), B(2));
}

/* The volume's clean pages are not known to be its own before the common list has been turned
 * round, some pages at a time: here another volume's come first. */
static void who_waits_for_room_goes_on_when_the_clean_pages_of_its_volume_are_found(void **state)
{
	char line[] = "id=1 max=400k", text[256];
	struct crig_io *io;

	(void)state;
	crig_up(QUIET);
	for (uint32_t i = 0; i < 600; i += 100)
		have(NOISY, "noisy:0", i, 100);
	have(CALM, "calm:0", 0, 100);
	assert_true(volume_set_text(crig.k, line, text, sizeof(text)) > 0);
	crig_volume(CALM);
	io = crig_write("calm:0", B(200), B(1), CALM);
	crig_expect(io, B(1));
	assert_int_equal(used(CALM), B(100));
}

/* Where what made the volume full was lent its pages are not free when it goes, but it has room. */
static void who_waits_for_room_goes_on_when_what_is_in_it_is_deleted_and_on_loan(void **state)
{
	struct crig_io *loan, *waits, *delete;

	(void)state;
	crig_up(QUIET);
	crig_volume_set("id=1 max=16k");
	dirty(2, "w:0", 0, 1);		/* so the page of their slots stays */
	dirty(1, "v:0", 0, 4);
	loan = crig_send(XSEG_OP_READ, "v:0", 0, B(4), XSEG_REQ_LOAN, 0);
	crig_settle();
	crig_hold(true);
	waits = crig_write("v:1", 0, B(1), 2);
	crig_expect_waits(waits);
	crig_fail(crig_held(XSEG_OP_WRITE, 0), -EIO);
	delete = crig_op(XSEG_OP_DELETE, "v:0", 0, 0);
	crig_answer(crig_held(XSEG_OP_DELETE, 0));
	crig_expect(delete, 0);
	assert_int_equal(crig_nr_held(), 0);
	crig_expect(waits, B(1));
	crig_expect(loan, B(4));
	crig_hold(false);
}

/* Another thread sets and lifts a maximum, until `done`. */
struct setter {
	_Atomic uint32_t *max;
	atomic_bool done;
};

static void *set_and_lift(void *arg)
{
	struct setter *s = arg;

	for (uint32_t i = 0; !atomic_load(&s->done); i++)
		atomic_store(s->max, i % 2 * 4);
	return NULL;
}

static void pages_are_there_or_waited_for_while_the_maximum_is_set_and_lifted(void **state)
{
	struct setter s = { .max = NULL };
	struct claim cl = { .grow = 1 };
	uint32_t none = 0, changes = 0, max = 0;
	pthread_t thread;

	(void)state;
	crig_up(QUIET);
	crig_volume_set("id=1 max=16k");
	dirty(1, "v:0", 0, 4);
	cl.rec = volume_find(crig.k, 1);
	s.max = &crig.k->volume.states[cl.rec].share.max;
	assert_int_equal(pthread_create(&thread, NULL, set_and_lift, &s), 0);
	/* and longer, until the other thread has run beside this one */
	for (uint32_t i = 0; i < 300000 || changes < 2; i++) {
		uint32_t page = NO_PAGE;

		changes += max != atomic_load(s.max);
		max = atomic_load(s.max);
		if (pages_get(cport_at(crig.k, 0), 1, &page, &cl).nr)
			continue;
		none += page == NO_PAGE;
		page_put(cport_at(crig.k, 0), page);
	}
	atomic_store(&s.done, true);
	pthread_join(thread, NULL);
	atomic_store(s.max, 4);
	assert_int_equal(none, 0);
}

static void an_object_that_another_volume_takes_over_counts_there(void **state)
{
	(void)state;
	crig_up("");
	crig_volume_set("id=1 min=64k");
	crig_volume_set("id=2 max=64k");
	have(CALM, "x:0", 0, 8);
	crig_volume(NOISY);
	crig_expect(crig_write("x:0", 0, B(1), 5), B(1));
	assert_int_equal(used(CALM), 0);
	assert_int_equal(used(NOISY), B(8));
	crig_expect(crig_flush(NOISY), 0);
	crig_volume(3);
	crig_expect(crig_write("x:0", 0, B(1), 6), B(1));
	assert_int_equal(used(NOISY), 0);
}

static void dropping_clean_data_drops_what_is_promised_too(void **state)
{
	(void)state;
	crig_up("");
	crig_volume_set("id=1 min=64k");
	have(CALM, "calm:0", 0, 8);
	have(NOISY, "noisy:0", 0, 8);
	assert_true(crig_admin("drop") > 0);
	assert_int_equal(crig_number("dropped_bytes"), B(16));
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
}

static void settings_are_shown_and_empty_or_0_is_none(void **state)
{
	(void)state;
	crig_up("");
	crig_volume_set("id=1 min=64k max=1M policy=write-through");
	assert_true(crig_says("policy=write-through\nmin=64k\nmax=1M\n"));
	assert_int_equal(crig_volume_number(1, "min_bytes"), B(16));
	assert_int_equal(crig_number("max_bytes"), 1 << 20);
	crig_volume_set("id=1 min=5000");				/* whole buckets */
	assert_int_equal(crig_volume_number(1, "min_bytes"), B(2));
	assert_int_equal(crig_number("max_bytes"), 1 << 20);
	crig_volume_set("id=1 min= max=0");
	assert_true(crig_admin("volume-get id=1") > 0);
	assert_true(crig_says("policy=write-through\nmin=0\nmax=0\n"));
	assert_false(crig_says("policy_in_force="));
	crig_volume_set("id=1 policy=");
	assert_true(crig_admin("volume-get id=1") > 0);
	assert_true(crig_says("policy=\nmin=0\nmax=0\npolicy_in_force=write-back\n"));
}

static void what_cannot_be_promised_is_refused_and_changes_nothing(void **state)
{
	uint32_t limit;
	char line[64];

	(void)state;
	crig_up("");
	limit = share_limit(crig.k, 1024);
	assert_int_equal(limit, 1024 - 128 - 272 - MAGAZINE - RESERVE_PAGES);
	crig_volume_set("id=1 min=1M");
	crig_expect_refused("volume-set id=2 min=2M", -EBUSY,
		"min=2M cannot be promised: of the cache's 4.0M only 2.2M can be, and other "
		"volumes have 1.0M of that");
	snprintf(line, sizeof(line), "ask for %uk at most", (limit - 256) * 4);
	assert_true(crig_says(line));
	snprintf(line, sizeof(line), "id=2 min=%uk", (limit - 256) * 4);
	crig_volume_set(line);
	crig_expect_refused("volume-set id=1 min=1028k", -EBUSY, "cannot be promised");
	crig_volume_set("id=1 min=1000k");
	crig_expect_refused("volume-set id=1 max=100k", -EINVAL, "would be above max=100k");
	crig_expect_refused("volume-set id=1 min=much", -EINVAL, "is not a size");
	crig_expect_refused("volume-set id=1 max=100T", -EINVAL, "more than a cache can have");
	crig_expect_refused("volume-set id=4294967297 max=1M", -EINVAL, "no volume is named");
	crig_expect_refused("volume-forget id=-4294967295", -EINVAL, "no volume is named");
	crig_expect_refused("volume-status id=4294967297", -EINVAL, "no volume is named");
	crig_expect_refused("volumes 4294967297", -EINVAL, "no record is named");
	assert_int_equal(crig_volume_number(1, "min_bytes"), 1000 << 10);
	assert_int_equal(crig_number("max_bytes"), 0);
}

/* ---- successors, other sizes ------------------------------------------------------------- */

static void shares_survive_the_death_of_cached_and_hold_at_once(void **state)
{
	(void)state;
	crig_up("");
	crig_volume_set("id=1 min=64k");
	crig_volume_set("id=2 max=128k");
	have(CALM, "calm:0", 0, 16);
	have(NOISY, "noisy:0", 0, 32);
	forget_hits("calm:0", 16);
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_limit(64);
	crig_settle();
	assert_int_equal(crig_volume_number(CALM, "min_bytes"), B(16));
	assert_int_equal(used(CALM), B(16));
	assert_int_equal(used(NOISY), B(32));
	have(NOISY, "noisy:0", 64, 32);
	assert_int_equal(used(NOISY), B(32));
	for (uint32_t i = 0; i < 10; i++)
		have(3, "third:0", 16 * i, 16);
	expect_hits(16);
}

static void a_successor_with_less_memory_serves_without_the_promises(void **state)
{
	(void)state;
	crig_up("memory=8M");
	crig_volume_set("id=1 min=5M");
	for (uint32_t i = 0; i < 5; i++)
		have(CALM, "calm:0", 200 * i, 200);
	crig_kill();
	assert_int_equal(crig_open("memory=4M"), 0);
	crig_settle();
	assert_int_equal(crig_volume_number(CALM, "min_bytes"), 5 << 20);
	for (uint32_t i = 0; i < 5; i++)
		have(NOISY, "noisy:0", 200 * i, 200);
	assert_true(used(CALM) < B(512));		/* the lists lose by turns */
	assert_true(used(NOISY) > B(400));
	crig_expect_refused("volume-set id=1 min=6M", -EBUSY, "cannot be promised");
	crig_volume_set("id=1 min=5M policy=write-through"); /* what there is may be said again */
	crig_volume_set("id=1 min=1M");
}

static void a_record_with_a_share_only_is_kept_and_a_damaged_one_is_not_believed(void **state)
{
	char name[16];

	(void)state;
	crig_up("objects=64");
	crig_volume_set("id=5 max=1M");
	for (uint32_t v = 6; v < 40; v++) {
		snprintf(name, sizeof(name), "v%u:0", v);
		have(v, name, 0, 1);
	}
	assert_int_equal(crig_volume_number(5, "max_bytes"), 1 << 20);
	crig_volume_set("id=5 min=512k");
	/* min above max */
	crig.k->volume.records[volume_find(crig.k, 5)].settings = 20ull << 4 | 10ull << 34;
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	assert_int_equal(crig_volume_number(5, "min_bytes"), 0);
}

static void a_cache_does_not_shrink_below_the_minima(void **state)
{
	(void)state;
	crig_up("memory=8M");
	crig_volume_set("id=1 min=3M");
	crig_expect_refused("set memory=4M", -EBUSY,
		"memory=4M is too little for the minima of the volumes, 3.0M in all; ask for 6M at "
		"least");
	assert_true(crig_admin("get memory") > 0);
	assert_true(crig_says("memory=8M"));
	crig_set("memory=6M");
	crig_volume_set("id=1 min=2M");
	crig_set("memory=4M");
}

static void what_is_promised_survives_shrinking_before_others_data(void **state)
{
	(void)state;
	crig_up("memory=10M");
	crig_volume_set("id=1 min=2M");
	for (uint32_t i = 0; i < 4; i++)
		have(CALM, "calm:0", 128 * i, 128);
	forget_hits("calm:0", 512);
	for (uint32_t i = 0; i < 15; i++)
		have(NOISY, i < 8 ? "noisy:0" : "noisy:1", 128 * (i % 8), 128);
	crig_set("memory=4M");
	crig_pass(CRIG_S);
	assert_int_equal(used(CALM), B(512));
	assert_int_equal(crig_counter(CC_MEMORY_BYTES), 4 << 20);
	expect_hits(512);
}

static void nor_does_dirty_data_of_others_keep_it_from_that(void **state)
{
	(void)state;
	crig_up(QUIET "memory=8M");
	crig_volume_set("id=1 min=2M");
	for (uint32_t i = 0; i < 4; i++)
		have(CALM, "calm:0", 128 * i, 128);
	for (uint32_t i = 0; i < 11; i++)
		dirty(NOISY, i < 8 ? "noisy:0" : "noisy:1", 128 * (i % 8), 128);
	crig_set("memory=4M");
	crig_pass(10 * CRIG_S);
	assert_int_equal(crig_counter(CC_MEMORY_BYTES), 4 << 20);
	assert_int_equal(used(CALM), B(512));
	expect_hits(512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(clean_data_up_to_the_minimum_stays_however_much_another_volume_reads),
		CRIG_T(without_a_minimum_it_goes),
		CRIG_T(a_volume_below_its_minimum_takes_another_s_clean_pages),
		CRIG_T(its_reads_wait_for_flushes_where_all_the_rest_is_dirty),
		CRIG_T(who_is_owed_pages_goes_before_those_who_wait_already),
		CRIG_T(a_volume_at_its_minimum_takes_from_itself_what_others_have_not),
		CRIG_T(a_writer_that_needs_more_than_is_not_promised_has_it_when_all_is_flushed),
		CRIG_T(the_reserve_takes_no_page_of_a_volume_at_its_minimum),
		CRIG_T(an_object_of_a_volume_at_its_minimum_is_passed_by_when_entries_run_out),
		CRIG_T(but_who_has_all_entries_loses_one),
		CRIG_T(dirty_data_of_an_object_that_is_emptied_stays_when_it_is_clean),
		CRIG_T(very_sparse_objects_end_all_promises_while_they_have_too_many_chunks),
		CRIG_T(a_volume_at_its_maximum_evicts_its_own),
		CRIG_T(a_request_larger_than_the_maximum_goes_through),
		CRIG_T(writers_of_a_full_volume_wait_for_its_own_flushes_in_their_order),
		CRIG_T(what_is_written_again_needs_no_room),
		CRIG_T(a_copy_onto_what_is_there_needs_no_room),
		CRIG_T(a_read_of_a_volume_full_of_dirty_data_goes_past_the_cache),
		CRIG_T(a_stream_is_not_kept_where_its_volume_is_full),
		CRIG_T(a_maximum_below_what_there_is_evicts_the_least_recently_used_at_once),
		CRIG_T(a_maximum_below_what_is_dirty_flushes_that_volume_and_then_evicts),
		CRIG_T(who_waits_for_room_goes_on_when_the_maximum_is_lifted_or_the_volume_is_forgotten),
		CRIG_T(who_waits_for_room_below_a_maximum_that_is_lowered_still_goes_on),
		CRIG_T(who_waits_for_room_goes_on_when_the_clean_pages_of_its_volume_are_found),
		CRIG_T(who_waits_for_room_goes_on_when_what_is_in_it_is_deleted_and_on_loan),
		CRIG_T(pages_are_there_or_waited_for_while_the_maximum_is_set_and_lifted),
		CRIG_T(an_object_that_another_volume_takes_over_counts_there),
		CRIG_T(dropping_clean_data_drops_what_is_promised_too),
		CRIG_T(settings_are_shown_and_empty_or_0_is_none),
		CRIG_T(what_cannot_be_promised_is_refused_and_changes_nothing),
		CRIG_T(shares_survive_the_death_of_cached_and_hold_at_once),
		CRIG_T(a_successor_with_less_memory_serves_without_the_promises),
		CRIG_T(a_record_with_a_share_only_is_kept_and_a_damaged_one_is_not_believed),
		CRIG_T(a_cache_does_not_shrink_below_the_minima),
		CRIG_T(what_is_promised_survives_shrinking_before_others_data),
		CRIG_T(nor_does_dirty_data_of_others_keep_it_from_that),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
