/* cached_resize_test - the cache grows and shrinks while it serves, and over kills
 * (peers/cached/life/resize.c). */
#include "tests/rig/cached_rig.h"

#include "peers/common/runtime/peer_box.h"
#include "xseg/internal.h"

#define EXTENT XSEG_EXTENT_PAGES
#define QUIET  "dirty_age=1h dirty_high=100 dirty_low=100 "	/* nothing is flushed unasked */
#define MB     (1ull << 20)

/* ---- helpers ----------------------------------------------------------------------------- */

static uint64_t memory_bytes(void)
{
	crig_admin("status");
	return crig_number("memory_bytes");
}

static bool is_resizing(void)
{
	crig_admin("status");
	return crig_says("resizing.to_bytes=");
}

/* Buckets [first, first + nr) of objects p0, p1, ..: `per` of each, side by side from its
 * beginning. */
static void each(uint32_t first, uint32_t nr, uint32_t per,
	void (*fn)(const char *name, uint64_t offset, uint32_t size))
{
	char name[16];

	for (uint32_t i = first; i < first + nr; i += per) {
		snprintf(name, sizeof(name), "p%u", i / per);
		for (uint32_t b = 0; b < per; b += 128)
			fn(name, B(b), B(per - b < 128 ? per - b : 128));
	}
}

static void have(const char *name, uint64_t offset, uint32_t size)
{
	crig_have_clean(name, offset, size, 5);
}

static void dirty(const char *name, uint64_t offset, uint32_t size)
{
	crig_expect(crig_write(name, offset, size, 5), size);
}

static void is_right(const char *name, uint64_t offset, uint32_t size)
{
	crig_expect_data(name, offset, size, 5);
}

static void is_stored(const char *name, uint64_t offset, uint32_t size)
{
	assert_true(crig_stored(name, offset, size, 5));
}

/* Data of `fn`, a bucket in each of nr places of as many chunks as there are, with seven times as
 * many pages between that are free again afterwards: so every extent has some of it. */
static void scatter(
	uint32_t nr, uint32_t chunks, void (*fn)(const char *name, uint64_t offset, uint32_t size))
{
	char name[16];

	for (uint32_t i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "s%u", i % chunks / OBJECT_CHUNKS);
		fn(name, B(i % OBJECT_CHUNKS * CHUNK_SLOTS + i / chunks), B(1));
		snprintf(name, sizeof(name), "gone%u", i / 128);
		have(name, B(i % 128 * 7), B(7));
	}
	for (uint32_t i = 0; i * 128 < nr; i++) {
		snprintf(name, sizeof(name), "gone%u", i);
		crig_expect(crig_op(XSEG_OP_DELETE, name, 0, 0), 0);
	}
}

static void scattered_is_right(uint32_t nr, uint32_t chunks)
{
	char name[16];

	for (uint32_t i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "s%u", i % chunks / OBJECT_CHUNKS);
		is_right(name, B(i % OBJECT_CHUNKS * CHUNK_SLOTS + i / chunks), B(1));
	}
}

static void restart(const char *options)
{
	crig_kill();
	if (crig_open(options))
		fail_msg("%s", crig.text);
	crig_hold(false);
	crig_settle();
	assert_true(peer_serving(crig.peer));
}

static void expect_size(uint64_t mb)
{
	if (memory_bytes() != mb * MB || is_resizing())
		fail_msg("%s", crig.text);
	crig_admin("get memory");
	assert_int_equal(strtoul(crig.text + strlen("memory="), NULL, 10), mb);
	assert_int_equal(xseg_pages_owned(crig.peer->xp, NULL, 0), mb << 8);
	assert_int_equal(crig.k->memory.nr_pages, mb << 8);
}

/* ---- growing ----------------------------------------------------------------------------- */

static void a_cache_that_grew_holds_more(void **state)
{
	uint32_t free, calls;

	(void)state;
	crig_up("");
	free = xseg_nr_free_pages(crig.seg);
	each(0, 900, 300, have);
	crig_set("memory=8M");
	expect_size(8);
	assert_int_equal(xseg_nr_free_pages(crig.seg), free - 2 * EXTENT);
	each(900, 1100, 1100 / 5, have);
	calls = crig_nr_calls();
	each(0, 900, 300, is_right);
	each(900, 1100, 1100 / 5, is_right);
	assert_int_equal(crig_nr_calls(), calls);
}

static void a_size_is_rounded_up_to_whole_extents_and_said_so(void **state)
{
	(void)state;
	crig_up("memory=4097k");
	expect_size(6);
	crig_set("memory=7M");
	expect_size(8);
	crig_set("memory=8M");
	expect_size(8);
}

static void more_than_the_segment_has_is_refused_in_one_line_and_changes_nothing(void **state)
{
	(void)state;
	crig_up("");
	assert_int_equal(xseg_nr_free_pages(crig.seg), 5 * EXTENT);
	assert_int_equal(crig_admin("set memory=16M policy=write-through"), -ENOMEM);
	assert_true(crig_says("memory=16.0M needs 12.0M more") &&
		    crig_says("the segment has 10.0M left") && crig_says("14M at most"));
	assert_false(strchr(crig.text, '\n'));
	expect_size(4);
	crig_admin("get policy");
	assert_true(crig_says("write-back"));
	crig_set("memory=14M");
	expect_size(14);
	assert_int_equal(crig_admin("set memory=16M"), -ENOMEM);
	expect_size(14);
	assert_int_equal(crig_admin("set memory=2M"), -EINVAL);
	expect_size(14);
}

static void who_waits_for_pages_is_served_when_the_cache_grows(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up(QUIET);
	crig_limit(4);
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(4), 5), B(4));
	io = crig_write("b", 0, B(8), 6);
	crig_expect_waits(io);
	crig_set("memory=6M");
	crig_expect(io, B(8));
	crig_hold(false);
}

/* Between the answer and the taking another was faster. */
static void memory_that_another_took_first_is_waited_for(void **state)
{
	struct xseg_peer *other;
	uint32_t page[4 * EXTENT];

	(void)state;
	crig_up("");
	crig.k->base.options.memory = 10 * MB;
	assert_int_equal(resize_ask(crig.k, NULL), 0);
	assert_int_equal(xseg_peer_open(crig.seg,
				 &(struct xseg_peer_params){
					 .name = "other", .kind = "client", .nr_ports = 1 },
				 &other, NULL),
		0);
	assert_int_equal(xseg_pages_take(other, 4 * EXTENT, page), 0);
	crig_settle();
	assert_int_equal(memory_bytes(), 6 * MB);
	assert_int_equal(crig_number("resizing.to_bytes"), 10 * MB);
	assert_int_equal(crig_number("resizing.left_bytes"), 4 * MB);
	xseg_peer_close(other, XSEG_CLOSE_KEEP_ARENA);
	crig_pass(2 * CRIG_S);
	expect_size(10);
}

/* ---- shrinking --------------------------------------------------------------------------- */

static void an_empty_cache_shrinks_and_the_segment_has_it_back(void **state)
{
	uint32_t free;

	(void)state;
	crig_up("memory=12M");
	free = xseg_nr_free_pages(crig.seg);
	crig_set("memory=4M");
	expect_size(4);
	assert_int_equal(xseg_nr_free_pages(crig.seg), free + 4 * EXTENT);
	crig_set("memory=12M");
	expect_size(12);
	assert_int_equal(xseg_nr_free_pages(crig.seg), free);
	each(0, 2800, 200, have);
	assert_int_equal(crig_counter(CC_EVICTED_CLEAN), 0);
}

static void clean_data_moves_while_there_is_room_for_it(void **state)
{
	uint32_t calls;

	(void)state;
	crig_up("memory=10M objects=64");
	scatter(300, 128, have);
	calls = crig_nr_calls();
	crig_set("memory=4M");
	expect_size(4);
	scattered_is_right(300, 128);
	assert_int_equal(crig_nr_calls(), calls);
	assert_int_equal(crig_counter(CC_EVICTED_PRESSURE), 0);
}

static void dirty_data_moves_and_is_not_flushed_for_it(void **state)
{
	uint32_t calls;

	(void)state;
	crig_up(QUIET "memory=10M objects=64");
	scatter(300, 128, dirty);
	calls = crig_nr_calls();
	crig_set("memory=4M");
	expect_size(4);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(300));
	scattered_is_right(300, 128);
	assert_int_equal(crig_nr_calls(), calls);
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
	assert_true(crig_stored("s0", 0, B(1), 5));
	scattered_is_right(300, 128);
}

static void what_does_not_fit_any_more_is_evicted_and_what_is_hot_is_not(void **state)
{
	uint32_t calls;

	(void)state;
	crig_up("memory=8M");
	each(0, 1900, 190, have);
	for (uint32_t i = 0; i < crig.k->object.nr_objects; i++)
		for (uint32_t b = 0;
			b < 190 && xcache_state_of(&crig.k->object.xc, i) == XCACHE_ACTIVE; b++)
			slot_clear_flag(crig.k, &crig.k->object.objects[i], b, SLOT_REF);
	each(570, 570, 190, is_right);
	crig_set("memory=4M");
	expect_size(4);
	assert_true(crig_counter(CC_USED_BYTES) > B(900));
	calls = crig_nr_calls();
	each(570, 570, 190, is_right);
	assert_int_equal(crig_nr_calls(), calls);
	each(0, 1900, 190, is_right);
}

static void what_is_dirty_and_does_not_fit_is_flushed_and_then_evicted(void **state)
{
	(void)state;
	crig_up(QUIET "memory=8M");
	each(0, 1900, 190, dirty);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 0);
	crig_set("memory=4M");
	crig_pass(CRIG_S);
	expect_size(4);
	assert_true(crig_counter(CC_FLUSHED_WATERMARK) > 0);
	each(0, 1900, 190, is_right);
	crig_expect(crig_flush(0), 0);
	each(0, 1900, 190, is_stored);
}

static void the_dirty_marks_follow_at_once(void **state)
{
	(void)state;
	crig_up("dirty_age=1h dirty_high=50 dirty_low=40 memory=8M");
	crig_expect(crig_write("a", 0, B(256), 5), B(256));
	crig_expect(crig_write("a", B(256), B(256), 5), B(256));
	crig_expect(crig_write("a", B(512), B(256), 5), B(256));
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 0);
	crig_set("memory=4M");
	expect_size(4);
	assert_true(crig_counter(CC_FLUSHED_WATERMARK) > 0);
	assert_true(crig_counter(CC_DIRTY_BYTES) <= 2 * MB);
	crig_expect_data("a", 0, B(256), 5);
}

/* Shrinks by these two extents, or by the one that they are. */
static void leave_only(uint32_t a, uint32_t b)
{
	char line[32];

	for (uint32_t e = 0; e < xseg_nr_pages(crig.seg) / EXTENT; e++)
		crig.k->memory.extents[e].pinned = e != a && e != b;
	snprintf(line, sizeof(line), "memory=%s", a == b ? "6M" : "4M");
	crig_set(line);
}

static void what_a_child_lists_stays_until_it_ends(void **state)
{
	struct crig_io *read, *fua, *edge;

	(void)state;
	crig_up(QUIET "memory=8M");
	each(0, 900, 300, have);
	crig_store_fill("a", 0, B(300), 7);
	crig_hold(true);
	fua = crig_write_fua("a", B(10), B(5), 8);		/* WRITING */
	crig_expect(crig_write("a", B(11), B(1), 9), B(1));	/* INFLIGHT, over the older page */
	read = crig_read("a", B(100), B(100));			/* LOADING */
	edge = crig_write("a", B(250) + 512, 512, 9);	/* LOADING, into the page of a write */
	leave_only(slot_page(crig_slot("a", 10)) / EXTENT, slot_page(crig_slot("a", 100)) / EXTENT);
	crig_pass(3 * CRIG_S);
	assert_true(is_resizing());
	assert_true(crig_number("resizing.left_bytes") >= B(5) &&
		    crig_number("resizing.left_bytes") <= B(107));
	assert_int_equal(crig_state("a", 10), BUCKET_WRITING);
	assert_int_equal(crig_state("a", 11), BUCKET_DIRTY);
	assert_true(crig_slot("a", 11) & SLOT_INFLIGHT);
	assert_int_equal(crig_state("a", 100), BUCKET_LOADING);
	crig_hold(false);
	crig_expect(fua, B(5));
	crig_expect(read, B(100));
	crig_expect(edge, 512);
	crig_pass(2 * CRIG_S);
	assert_false(is_resizing());
	crig_expect_data("a", B(10), B(1), 8);
	crig_expect_data("a", B(11), B(1), 9);
	crig_expect_data("a", B(100), B(100), 7);
	crig_expect_data("a", B(250) + 512, 512, 9);
}

static void zeroes_that_a_smaller_cache_would_not_keep_go(void **state)
{
	char name[8];

	(void)state;
	crig_up("memory=14M objects=64");
	for (uint32_t i = 0; i < 20; i++)
		for (uint32_t c = 0; c < OBJECT_CHUNKS; c++) {
			snprintf(name, sizeof(name), "z%u", i);
			crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, name, B(c * CHUNK_SLOTS), B(2)),
				B(2));
		}
	crig_expect(crig_flush(0), 0);
	assert_true(crig.k->memory.nr_zeroes == 640);
	crig_set("memory=4M");
	expect_size(4);
	assert_true(crig.k->memory.nr_zeroes <= 256);
	each(0, 900, 180, have);
	crig_expect_data("z7", 0, B(256), 0);
}

/* Port 1 has credit and nothing to do. It polls only if it is kicked, and what it keeps counts. */
static void credit_that_an_idle_port_keeps_does_not_hold_up_a_shrink(void **state)
{
	struct xport *first, *second;
	struct crig_io *io;
	uint32_t credit = 0;

	(void)state;
	crig_up("memory=12M threads=2");
	first = crig.peer->ports[0].port;
	second = crig.peer->ports[1].port;
	have("a", 0, B(1));
	xseg_port_steer(first, second);
	io = crig_send(XSEG_OP_READ, "a", 0, B(1), XSEG_REQ_LOAN, 0);
	crig_settle();
	crig_expect(io, B(1));
	crig_pass(CRIG_MS);
	xseg_port_steer(first, first);
	xseg_port_steer(second, first);
	for (uint32_t i = 0; i < XSEG_MAX_PORTS; i++)
		credit += atomic_load(&lend_port(cport_at(crig.k, 1))->lender.credit[i]);
	/* more than a cache of 4M may lend */
	assert_true(credit > 4 * MB / CRIG_PAGE / 4);
	crig_set("memory=4M");
	crig_pass(CRIG_S);
	expect_size(4);
	is_right("a", 0, B(1));
}

static void clean_data_can_be_dropped_while_it_is_on_its_way_out(void **state)
{
	(void)state;
	crig_up("memory=8M");
	each(0, 1900, 190, have);
	crig.k->base.options.memory = 4 * MB;
	assert_int_equal(resize_ask(crig.k, NULL), 0);
	crig_step_poll();
	assert_true(clean_nr(&crig.k->memory.leaving) > 500);
	assert_true(crig_admin("drop") > 0);
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
	expect_size(4);
	each(0, 1900, 190, is_right);
}

/* ---- asked anew, before it is done --------------------------------------------------------- */

/* All is dirty, and the store takes nothing. */
static void stuck(void)
{
	crig_up(QUIET "memory=8M");
	each(0, 1900, 190, dirty);
	crig_fail_next(CRIG_ANY, -EIO, UINT32_MAX);
	crig_set("memory=4M");
	crig_pass(20 * CRIG_S);
	assert_true(is_resizing());
	assert_int_equal(crig_number("resizing.to_bytes"), 4 * MB);
	assert_true(crig_number("resizing.left_bytes") > 3 * MB);
	assert_int_equal(crig_number("memory_bytes"), 8 * MB);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(1900));
	each(0, 1900, 190, is_right);
}

static void a_shrink_that_cannot_end_shows_and_ends_when_it_can(void **state)
{
	(void)state;
	stuck();
	crig_fail_next(CRIG_ANY, 0, 0);
	crig_pass(10 * CRIG_S);
	expect_size(4);
	each(0, 1900, 190, is_right);
	crig_expect(crig_flush(0), 0);
	each(0, 1900, 190, is_stored);
}

static void a_shrink_that_cannot_end_is_called_off_by_a_larger_size(void **state)
{
	(void)state;
	stuck();
	crig_set("memory=6M");
	crig_pass(CRIG_S);
	assert_int_equal(memory_bytes(), 8 * MB);
	assert_int_equal(crig_number("resizing.to_bytes"), 6 * MB);
	assert_int_equal(crig.k->memory.nr_pages, 6 << 8);
	crig_set("memory=12M");
	expect_size(12);
	crig_fail_next(CRIG_ANY, 0, 0);
	each(1900, 1100, 1100 / 5, have);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(1900));
	each(0, 1900, 190, is_right);
	crig_pass(10 * CRIG_S);
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
	assert_true(crig_admin("drop") > 0);
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
}

/* Called off at every point of a shrink that goes well, one step later each time. */
static void a_shrink_can_be_called_off_at_any_point(void **state)
{
	uint32_t calls;

	(void)state;
	crig_up("memory=8M objects=64");
	scatter(240, 64, have);
	calls = crig_nr_calls();
	for (uint32_t steps = 0; steps < 36; steps += 1 + steps / 8) {
		crig.k->base.options.memory = 4 * MB;
		assert_int_equal(resize_ask(crig.k, NULL), 0);
		for (uint32_t i = 0; i < steps; i++)
			crig_step_poll();
		crig_set("memory=8M");
		expect_size(8);
	}
	scattered_is_right(240, 64);
	assert_int_equal(crig_nr_calls(), calls);
}

/* ---- over kills -------------------------------------------------------------------------- */

static void a_size_that_was_set_survives_a_kill_and_all_data_with_it(void **state)
{
	uint32_t calls;

	(void)state;
	crig_up(QUIET);
	crig_set("memory=8M");
	each(0, 900, 180, dirty);
	each(900, 900, 180, have);
	calls = crig_nr_calls();
	restart(QUIET);
	expect_size(8);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(900));
	each(0, 1800, 180, is_right);
	assert_int_equal(crig_nr_calls(), calls);
	restart(QUIET);
	expect_size(8);
}

static void another_memory_than_at_the_last_start_is_asked_for_anew(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_set("memory=8M");
	each(0, 900, 180, dirty);
	each(900, 900, 180, have);
	restart(QUIET "memory=6M");
	crig_pass(CRIG_S);
	expect_size(6);
	each(0, 1800, 180, is_right);
	restart(QUIET "memory=12M");
	expect_size(12);
	each(0, 1800, 180, is_right);
	restart(QUIET "memory=12M");
	expect_size(12);
	assert_int_equal(crig.k->object.nr_objects, 64); /* one for each 64 KiB of the first size */
}

static void a_shrink_goes_on_after_a_kill_at_any_point_and_nothing_is_lost(void **state)
{
	(void)state;
	crig_up(QUIET "memory=8M objects=64");
	scatter(240, 64, dirty);
	for (uint32_t steps = 0; steps < 36; steps += 1 + steps / 8) {
		crig.k->base.options.memory = 4 * MB;
		assert_int_equal(resize_ask(crig.k, NULL), 0);
		for (uint32_t i = 0; i < steps; i++)
			crig_step_poll();
		restart(QUIET "memory=8M objects=64");
		crig_pass(CRIG_S);
		expect_size(4);
		assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(240));
		crig_set("memory=8M");
		expect_size(8);
	}
	scattered_is_right(240, 64);
	crig_expect(crig_flush(0), 0);
}

/* As killed between the copy of a page and its slot, or of a chunk and its word: the copy is
 * nobody's. */
static void a_copy_that_no_slot_names_is_free_for_the_successor(void **state)
{
	uint32_t copy;

	(void)state;
	crig_up(QUIET);
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	copy = page_get(cport_at(crig.k, 0), false, false);
	memcpy(xseg_page(crig.seg, copy), xseg_page(crig.seg, slot_page(crig_slot("a", 0))),
		BUCKET_SIZE);
	xseg_page_owner_set(
		crig.seg, copy, xseg_page_owner(crig.seg, slot_page(crig_slot("a", 0))));
	copy = page_get(cport_at(crig.k, 0), false, false);
	xseg_page_owner_set(crig.seg, copy, OWNER_CHUNKS);
	copy = page_get(cport_at(crig.k, 0), false, false);
	xseg_page_owner_set(crig.seg, copy, OWNER_OUT);
	restart(QUIET);
	assert_int_equal(crig.k->memory.nr_free, 2 * EXTENT - 3 - RESERVE_PAGES);
	crig_expect_data("a", 0, B(2), 5);
	expect_size(4);
}

static void growth_goes_on_after_a_kill(void **state)
{
	(void)state;
	crig_up(QUIET);
	each(0, 900, 180, dirty);
	crig.k->base.options.memory = 12 * MB;
	assert_int_equal(resize_ask(crig.k, NULL), 0);
	crig_step_poll();
	assert_int_equal(crig.k->memory.nr_pages, 6 << 8);
	restart(QUIET);
	expect_size(12);
	each(0, 900, 180, is_right);
}

/* With no more memory in the segment it serves what it has. */
static void a_successor_serves_with_what_is_there(void **state)
{
	struct xseg_peer *other;
	uint32_t page[5 * EXTENT];

	(void)state;
	crig_up(QUIET);
	each(0, 900, 180, dirty);
	crig_kill();
	assert_int_equal(xseg_peer_open(crig.seg,
				 &(struct xseg_peer_params){
					 .name = "other", .kind = "client", .nr_ports = 1 },
				 &other, NULL),
		0);
	assert_int_equal(xseg_pages_take(other, 5 * EXTENT, page), 0);
	assert_int_equal(crig_open(QUIET "memory=10M"), 0);
	crig_settle();
	each(0, 900, 180, is_right);
	assert_int_equal(memory_bytes(), 4 * MB);
	assert_int_equal(crig_number("resizing.left_bytes"), 6 * MB);
	xseg_peer_close(other, XSEG_CLOSE_KEEP_ARENA);
	crig_pass(2 * CRIG_S);
	expect_size(10);
}

/* As killed while its first pages were being taken. */
static void a_successor_takes_what_a_cache_lacks_to_serve(void **state)
{
	uint32_t pages[2 * EXTENT];

	(void)state;
	crig_up("memory=8M");
	assert_int_equal(xseg_pages_owned(crig.peer->xp, pages, 2 * EXTENT), 8 << 8);
	crig_kill();
	for (uint32_t i = 0, kept = 0; i < xseg_nr_pages(crig.seg) / EXTENT; i++) {
		struct xs_extent *e = &crig.seg->extents[i];

		if (extent_kind(atomic_load(&e->word)) == XS_EXTENT_PAGES &&
			extent_peer(atomic_load(&e->word)) == xseg_peer_find(crig.seg, "cached") &&
			kept++ > 0)
			atomic_store(&e->word, extent_word(XS_EXTENT_FREE, 0, 0));
	}
	assert_int_equal(crig_open("memory=8M"), 0);
	assert_int_equal(crig.k->memory.nr_pages, 4 << 8);
	crig_settle();
	expect_size(8);
}

static void a_size_in_the_arena_that_cannot_be_is_not_believed(void **state)
{
	static const uint32_t since[] = { 0, 512, 1025, UINT32_MAX };

	(void)state;
	crig_up(QUIET);
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	for (uint32_t i = 0; i < 4; i++) {
		atomic_store(&crig.k->life.head->size, size_word(4 << 8, since[i]));
		restart(QUIET);
		expect_size(4);
		crig_expect_data("a", 0, B(2), 5);
	}
}

static void an_orderly_stop_forgets_a_size_that_was_set(void **state)
{
	(void)state;
	crig_up("");
	crig_set("memory=8M");
	crig_stop();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	expect_size(4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_cache_that_grew_holds_more),
		CRIG_T(a_size_is_rounded_up_to_whole_extents_and_said_so),
		CRIG_T(more_than_the_segment_has_is_refused_in_one_line_and_changes_nothing),
		CRIG_T(who_waits_for_pages_is_served_when_the_cache_grows),
		CRIG_T(memory_that_another_took_first_is_waited_for),
		CRIG_T(an_empty_cache_shrinks_and_the_segment_has_it_back),
		CRIG_T(clean_data_moves_while_there_is_room_for_it),
		CRIG_T(dirty_data_moves_and_is_not_flushed_for_it),
		CRIG_T(what_does_not_fit_any_more_is_evicted_and_what_is_hot_is_not),
		CRIG_T(what_is_dirty_and_does_not_fit_is_flushed_and_then_evicted),
		CRIG_T(the_dirty_marks_follow_at_once),
		CRIG_T(what_a_child_lists_stays_until_it_ends),
		CRIG_T(zeroes_that_a_smaller_cache_would_not_keep_go),
		CRIG_T(credit_that_an_idle_port_keeps_does_not_hold_up_a_shrink),
		CRIG_T(clean_data_can_be_dropped_while_it_is_on_its_way_out),
		CRIG_T(a_shrink_that_cannot_end_shows_and_ends_when_it_can),
		CRIG_T(a_shrink_that_cannot_end_is_called_off_by_a_larger_size),
		CRIG_T(a_shrink_can_be_called_off_at_any_point),
		CRIG_T(a_size_that_was_set_survives_a_kill_and_all_data_with_it),
		CRIG_T(another_memory_than_at_the_last_start_is_asked_for_anew),
		CRIG_T(a_shrink_goes_on_after_a_kill_at_any_point_and_nothing_is_lost),
		CRIG_T(a_copy_that_no_slot_names_is_free_for_the_successor),
		CRIG_T(growth_goes_on_after_a_kill),
		CRIG_T(a_successor_serves_with_what_is_there),
		CRIG_T(a_successor_takes_what_a_cache_lacks_to_serve),
		CRIG_T(a_size_in_the_arena_that_cannot_be_is_not_believed),
		CRIG_T(an_orderly_stop_forgets_a_size_that_was_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
