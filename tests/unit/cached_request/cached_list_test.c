/* cached_list_test - LIST through the cache (peers/cached/request/list.c). */
#include "peers/common/blocker/listing.h"
#include "tests/rig/cached_rig.h"

#define OWN_ENDED ((1ull << XSEG_LIST_STORE_BITS) - 1)

/* The names "v:NUMBER" that were listed, each how often; and all others. */
#define NAMES 128u
static uint32_t named[NAMES], others;

static const char *name_of(uint32_t i)
{
	static char name[XSEG_TARGET_MAX];

	snprintf(name, sizeof(name), "v:%0100u", i);
	return name;
}

static void count_name(const char *name)
{
	unsigned i;

	if (sscanf(name, "v:%u", &i) == 1 && i < NAMES)
		named[i]++;
	else
		others++;
}

static void forget_names(void)
{
	memset(named, 0, sizeof(named));
	others = 0;
}

static uint64_t own_top(void)
{
	return (uint64_t)(xseg_peer_index(crig.k->base.peer.xp) + 1) << XSEG_LIST_STORE_BITS;
}

/* The next answer of a listing: counts its names, returns the next cursor. */
static uint64_t list_on(const char *prefix, uint64_t cursor)
{
	struct crig_io *io = crig_send_list(prefix, cursor);
	struct listing_names names;
	char name[XSEG_TARGET_MAX];

	crig_settle();
	assert_true(io->done);
	assert_true(io->result > 0);
	assert_int_equal(listing_open(&names, crig.seg, io->r), 0);
	while (listing_next(&names, name) == 1)
		count_name(name);
	crig_expect(io, io->result);
	return names.head.next;
}

static uint32_t list_all(const char *prefix)
{
	uint64_t cursor = 0;
	uint32_t answers = 0;

	forget_names();
	do {
		cursor = list_on(prefix, cursor);
		answers++;
		assert_true(answers < 100);
	} while (cursor);
	return answers;
}

static void a_listing_names_what_only_the_cache_has_and_what_the_store_has(void **state)
{
	(void)state;
	crig_up("");
	crig_store_fill(name_of(1), 0, B(1), 5);
	crig_store_fill("w:1", 0, B(1), 5);
	crig_expect_data(name_of(1), 0, B(1), 5);
	crig_expect(crig_write(name_of(2), B(3), B(1), 6), B(1));
	crig_expect(crig_write("w:2", 0, B(1), 6), B(1));
	assert_int_equal(list_all("v:"), 2);
	assert_int_equal(named[1], 1);
	assert_int_equal(named[2], 1);
	assert_int_equal(others, 0);
	list_all("");
	assert_int_equal(others, 2);
	crig_expect(crig_op(XSEG_OP_DELETE, name_of(2), 0, 0), 0);
	list_all("v:");
	assert_int_equal(named[2], 0);
	assert_int_equal(named[1], 1);
}

static void what_was_only_read_is_not_named(void **state)
{
	(void)state;
	crig_up("");
	crig_fail_next(XSEG_OP_READ, -EIO, 1);
	crig_expect(crig_read(name_of(1), 0, B(1)), -EIO);
	list_all("v:");
	assert_int_equal(named[1], 0);
}

static void what_an_answer_has_no_room_for_is_in_the_next(void **state)
{
	(void)state;
	crig_up("objects=128");
	for (uint32_t i = 0; i < NAMES; i++)
		crig_expect(crig_write(name_of(i), 0, B(1), 5), B(1));
	assert_true(list_all("v:") >= NAMES * 100 / CRIG_PAGE + 1);
	for (uint32_t i = 0; i < NAMES; i++)
		assert_int_equal(named[i], 1);
}

static void what_leaves_the_cache_during_a_listing_is_named_by_the_store(void **state)
{
	uint64_t cursor;

	(void)state;
	crig_up("objects=128");
	for (uint32_t i = 0; i < NAMES; i++)
		crig_expect(crig_write(name_of(i), 0, B(1), 5), B(1));
	forget_names();
	cursor = list_on("v:", 0);
	assert_int_equal(cursor & ~OWN_ENDED, own_top());
	crig_expect(crig_flush(0), 0);
	assert_true(crig_admin("drop") >= 0);
	while (cursor)
		cursor = list_on("v:", cursor);
	for (uint32_t i = 0; i < NAMES; i++)
		assert_true(named[i] > 0);
}

static void a_listing_waits_neither_for_objects_nor_for_memory(void **state)
{
	struct crig_io *delete, *read;

	(void)state;
	crig_up("objects=1");
	crig_expect(crig_write(name_of(1), 0, B(1), 5), B(1));
	crig_hold(true);
	read = crig_read("a", 0, B(1));
	delete = crig_op(XSEG_OP_DELETE, name_of(1), 0, 0);
	crig_limit(0);
	forget_names();
	assert_int_equal(list_on("v:", 0), own_top() | OWN_ENDED);
	assert_int_equal(named[1], 1);
	crig_expect_waits(delete);
	crig_expect_waits(read);
	crig_hold(false);
	crig_expect(delete, 0);
	crig_expect(read, B(1));
}

static void a_cursor_is_good_for_a_successor(void **state)
{
	uint64_t cursor;

	(void)state;
	crig_up("objects=128");
	for (uint32_t i = 0; i < NAMES; i++)
		crig_expect(crig_write(name_of(i), 0, B(1), 5), B(1));
	forget_names();
	cursor = list_on("v:", 0);
	crig_kill();
	assert_int_equal(crig_open("objects=128"), 0);
	while (cursor != (own_top() | OWN_ENDED))
		cursor = list_on("v:", cursor);
	for (uint32_t i = 0; i < NAMES; i++)
		assert_int_equal(named[i], 1);
	assert_int_equal(list_on("v:", cursor), 0);
}

static void a_cursor_of_another_peer_is_handed_on(void **state)
{
	static const uint64_t low[] = { 0, 7, OWN_ENDED };
	uint64_t other;

	(void)state;
	crig_up("");
	crig_store_fill(name_of(1), 0, B(1), 5);
	for (uint32_t i = 0; i < 3; i++) {
		other = (own_top() + (1ull << XSEG_LIST_STORE_BITS)) | low[i];
		crig_expect(crig_op(XSEG_OP_LIST, "v:", 0, 0), -EPROTO);
		crig_hold(true);
		crig_send_list("v:", other);
		crig_settle();
		assert_int_equal(crig_call(crig_nr_calls() - 1)->offset, other);
		crig_hold(false);
	}
	forget_names();
	assert_int_equal(list_on("v:", 1), 0);	/* behind the store's first object */
	assert_int_equal(named[1], 0);
	assert_int_equal(list_on("v:", own_top() | OWN_ENDED), 0);
	assert_int_equal(named[1], 1);
	assert_int_equal(crig_call(crig_nr_calls() - 1)->offset, 0);
	/* behind the last entry */
	assert_int_equal(list_on("v:", own_top() | (OWN_ENDED - 1)), own_top() | OWN_ENDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_listing_names_what_only_the_cache_has_and_what_the_store_has),
		CRIG_T(what_was_only_read_is_not_named),
		CRIG_T(what_an_answer_has_no_room_for_is_in_the_next),
		CRIG_T(what_leaves_the_cache_during_a_listing_is_named_by_the_store),
		CRIG_T(a_listing_waits_neither_for_objects_nor_for_memory),
		CRIG_T(a_cursor_is_good_for_a_successor),
		CRIG_T(a_cursor_of_another_peer_is_handed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
