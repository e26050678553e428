/* blocker_contract - see blocker_contract.h. */
#include "tests/rig/blocker_contract.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "peers/common/blocker/usage.h"
#include "tests/rig/long.h"

static const struct contract *store;
static struct rig g;

static int setup(void **state)
{
	(void)state;
	store->open(&g, 1);
	return 0;
}

static int setup_three_ports(void **state)
{
	(void)state;
	store->open(&g, 3);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	store->close(&g);
	return 0;
}

/* ---- data -------------------------------------------------------------------------------- */

static void missing_objects_holes_and_ends_read_as_zeroes(void **state)
{
	(void)state;
	assert_true(rig_holds(&g, "none", 0, 128 * KIB, 0));
	assert_true(rig_holds(&g, "none", 12345, 100000, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "none", 0, 0), -ENOENT);
	assert_int_equal(rig_fill(&g, "a", 64 * KIB, 4 * KIB, 0x11, 0), 4 * KIB);
	assert_true(rig_holds(&g, "a", 0, 64 * KIB, 0));
	assert_true(rig_holds(&g, "a", 64 * KIB, 4 * KIB, 0x11));
	assert_true(rig_holds(&g, "a", 68 * KIB, 4 * KIB, 0));
	assert_true(rig_holds(&g, "a", 68 * KIB, 60 * KIB, 0));
	assert_true(rig_holds(&g, "a", 1 * MIB, 4 * KIB, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 68 * KIB);
}

static void reads_over_an_odd_end_are_filled_with_zeroes(void **state)
{
	uint8_t buf[64 * KIB];
	uint32_t i;

	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 5001, 0x11, 0), 5001);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 5001);
	assert_int_equal(rig_read(&g, "a", 0, buf, sizeof(buf)), sizeof(buf));
	for (i = 0; i < sizeof(buf); i++)
		assert_int_equal(buf[i], i < 5001 ? 0x11 : 0);
	assert_true(rig_holds(&g, "a", 4000, 1001, 0x11));
	assert_true(rig_holds(&g, "a", 5001, 30000, 0));
}

static void odd_writes_keep_their_neighbours_and_the_end(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 20000, 0x11, 0), 20000);
	assert_int_equal(rig_fill(&g, "a", 4095, 8194, 0x33, 0), 8194);
	assert_true(rig_holds(&g, "a", 0, 4095, 0x11));
	assert_true(rig_holds(&g, "a", 4095, 8194, 0x33));
	assert_true(rig_holds(&g, "a", 12289, 20000 - 12289, 0x11));
	assert_int_equal(rig_fill(&g, "a", 100, 1, 0x22, 0), 1);
	assert_int_equal(rig_fill(&g, "a", 511, 514, 0x44, 0), 514);
	assert_true(rig_holds(&g, "a", 0, 100, 0x11));
	assert_true(rig_holds(&g, "a", 100, 1, 0x22));
	assert_true(rig_holds(&g, "a", 101, 410, 0x11));
	assert_true(rig_holds(&g, "a", 511, 514, 0x44));
	assert_true(rig_holds(&g, "a", 1025, 3070, 0x11));
	assert_true(rig_holds(&g, "a", 4095, 8194, 0x33));
	assert_true(rig_holds(&g, "a", 12289, 20000 - 12289, 0x11));
	assert_true(rig_holds(&g, "a", 20000, 5000, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 20000);
	assert_int_equal(rig_fill(&g, "a", 4 * MIB - 1, 1, 0x33, 0), 1);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 4 * MIB);
}

static void the_largest_request_at_an_odd_offset_is_served(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 5000, MIB, 0x44, 0), MIB);
	assert_true(rig_holds(&g, "a", 5000, MIB, 0x44));
}

static void discard_and_write_zeroes_read_as_zeroes(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 64 * KIB, 0x11, 0), 64 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 1000, 30000), 30000);
	assert_true(rig_holds(&g, "a", 0, 1000, 0x11));
	assert_true(rig_holds(&g, "a", 1000, 30000, 0));
	assert_true(rig_holds(&g, "a", 31000, 64 * KIB - 31000, 0x11));
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 60 * KIB, 100 * KIB), 100 * KIB);
	assert_in_range(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 60 * KIB, 64 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_WRITE_ZEROES, "a", 56 * KIB, 12 * KIB), 12 * KIB);
	assert_true(rig_holds(&g, "a", 56 * KIB, 12 * KIB, 0));
	assert_in_range(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 56 * KIB, 68 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "none", 0, 4096), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "none", 0, 0), -ENOENT);
}

/* The end of the last data is told, if the store knows of holes. */
static void zeroes_written_over_the_end_are_no_data(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 64 * KIB, 0x11, 0), 64 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_WRITE_ZEROES, "a", 60 * KIB, 8 * KIB), 8 * KIB);
	assert_true(rig_holds(&g, "a", 60 * KIB, 8 * KIB, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), store->thin ? 60 * KIB : 64 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 0, 64 * KIB), 64 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), store->thin ? 0 : -ENOENT);
	assert_true(rig_holds(&g, "a", 0, 64 * KIB, 0));
}

static void a_hole_stays_a_hole(void **state)
{
	(void)state;
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 0, MIB), MIB);
	assert_int_equal(rig_op(&g, XSEG_OP_WRITE_ZEROES, "a", 0, MIB), MIB);
	assert_int_equal(rig_op(&g, XSEG_OP_WRITE_ZEROES, "a", 1000, 3000), 3000);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -ENOENT);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), -ENOENT);
}

static void a_deleted_object_is_gone(void **state)
{
	(void)state;
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), -ENOENT);
	assert_int_equal(rig_fill(&g, "a", 0, 64 * KIB, 0x11, 0), 64 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), -ENOENT);
	assert_true(rig_holds(&g, "a", 0, 64 * KIB, 0));
	assert_int_equal(rig_fill(&g, "a", 4096, 4096, 0x22, 0), 4096);
	assert_true(rig_holds(&g, "a", 0, 4096, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 8192);
}

static void copy_takes_the_same_range_of_another_object(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 4 * KIB, 8 * KIB, 0x11, 0), 8 * KIB);
	assert_int_equal(rig_fill(&g, "b", 0, 64 * KIB, 0x22, 0), 64 * KIB);
	assert_int_equal(rig_copy(&g, "a", "b", 2000, 20000), 20000);
	assert_true(rig_holds(&g, "b", 0, 2000, 0x22));
	assert_true(rig_holds(&g, "b", 2000, 2096, 0));
	assert_true(rig_holds(&g, "b", 4096, 8192, 0x11));
	assert_true(rig_holds(&g, "b", 12288, 22000 - 12288, 0));
	assert_true(rig_holds(&g, "b", 22000, 64 * KIB - 22000, 0x22));
	assert_int_equal(rig_copy(&g, "none", "b", 0, 4096), -ENOENT);
	assert_int_equal(rig_copy(&g, "none", "c", 0, 4096), -ENOENT);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "c", 0, 0), -ENOENT);
	assert_int_equal(rig_copy(&g, "", "b", 0, 4096), -EOPNOTSUPP);
	assert_int_equal(rig_copy(&g, "b", "b", 0, 4096), 4096);
}

static void any_name_is_one_object(void **state)
{
	static const char *const names[] = { "a/b", "../x", ".", "..", ".hidden", "%41", "A", "a b",
		"\xc3\xa4", "xseg-filed", "a:b_c-d" };
	char many[128];
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(rig_fill(&g, names[i], 0, 512, (uint8_t)(i + 1), 0), 512);
	rig_restart(&g);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(rig_holds(&g, names[i], 0, 512, (uint8_t)(i + 1)));
	memset(many, 'n', 127);
	many[127] = '\0';
	assert_int_equal(rig_fill(&g, many, 0, 512, 1, 0), 512);
	assert_int_equal(rig_fill(&g, "", 0, 512, 1, 0), -EPROTO);
}

/* ---- listings ---------------------------------------------------------------------------- */

#define LISTED_MAX 200u

/* So many objects; half of them in a short test, which still take several answers. */
static uint32_t listed;

/* How often a listing has named each object "l:NUMBER", and all others together. */
static uint32_t named[LISTED_MAX], others_named;

static void count_name(void *arg, const char *name)
{
	unsigned nr;

	(void)arg;
	if (sscanf(name, "l:%u", &nr) == 1 && nr < listed)
		named[nr]++;
	else
		others_named++;
}

static const char *listed_name(uint32_t i)
{
	static char name[16];

	snprintf(name, sizeof(name), "l:%u", i);
	return name;
}

static void list_whole(const char *prefix)
{
	uint64_t cursor = 0;

	memset(named, 0, sizeof(named));
	others_named = 0;
	do
		assert_int_equal(rig_list(&g, prefix, &cursor, count_name, NULL), 0);
	while (cursor);
}

static uint32_t nr_named_once(void)
{
	uint32_t i, nr = 0;

	for (i = 0; i < listed; i++)
		nr += named[i] == 1;
	return nr;
}

static void a_listing_names_each_object_of_a_prefix(void **state)
{
	static const char *const odd[] = { "a/b", "..", ".hidden", "%41", "l", "\xc3\xa4",
		"xseg-filed" };
	uint32_t i;

	(void)state;
	list_whole("");
	assert_int_equal(nr_named_once() + others_named, 0);
	for (i = 0; i < listed; i++)
		assert_int_equal(rig_fill(&g, listed_name(i), 0, 512, 1, 0), 512);
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		assert_int_equal(rig_fill(&g, odd[i], 0, 512, 1, 0), 512);
	list_whole("");
	assert_int_equal(nr_named_once(), listed);
	assert_int_equal(others_named, sizeof(odd) / sizeof(odd[0]));
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		list_whole(odd[i]);
		assert_int_equal(others_named, 1);
	}
	list_whole("l:");
	assert_int_equal(nr_named_once(), listed);
	assert_int_equal(others_named, 0);
	list_whole("l:7");
	assert_int_equal(nr_named_once(), 11);
	list_whole("m");
	assert_int_equal(nr_named_once() + others_named, 0);
	for (i = 0; i < listed; i += 2)
		assert_int_equal(rig_op(&g, XSEG_OP_DELETE, listed_name(i), 0, 0), 0);
	list_whole("l:");
	assert_int_equal(nr_named_once(), listed / 2);
}

/* An answer of a page has room for 34 of these names. */
static void names_that_have_no_room_come_in_the_next_answer(void **state)
{
	char name[XSEG_TARGET_MAX];
	uint32_t i;

	(void)state;
	for (i = 0; i < listed; i++) {
		snprintf(name, sizeof(name), "l:%u:%0*u", i, 110, i);
		assert_int_equal(rig_fill(&g, name, 0, 512, 1, 0), 512);
	}
	list_whole("l:");
	for (i = 0; i < listed; i++)
		assert_true(named[i] >= 1);
	list_whole("l:9");
	assert_int_equal(nr_named_once(), 11);
}

/* Between the steps of the listing some objects are made and deleted, and the store is killed. */
static void what_exists_during_a_whole_listing_is_in_it(void **state)
{
	uint32_t i, step = 0;
	uint64_t cursor = 0;
	char name[16];

	(void)state;
	for (i = 0; i < listed; i++)
		assert_int_equal(rig_fill(&g, listed_name(i), 0, 512, 1, 0), 512);
	memset(named, 0, sizeof(named));
	do {
		assert_int_equal(rig_list(&g, "l:", &cursor, count_name, NULL), 0);
		if (step < listed / 4)
			rig_op(&g, XSEG_OP_DELETE, listed_name(step * 4), 0, 0);
		snprintf(name, sizeof(name), "l:new%u", step++ % 50);
		assert_int_equal(rig_fill(&g, name, 0, 512, 1, 0), 512);
		if (step % 64 == 1)
			rig_restart(&g);
	} while (cursor);
	for (i = 0; i < listed; i++)
		assert_true(i % 4 == 0 || named[i] >= 1);
}

static void a_cursor_that_no_store_gave_is_stale(void **state)
{
	uint64_t cursor = UINT64_C(1) << XSEG_LIST_STORE_BITS;

	(void)state;
	assert_int_equal(rig_list(&g, "", &cursor, count_name, NULL), -ESTALE);
}

/* ---- random ops -------------------------------------------------------------------------- */

#define MODEL_BYTES (256 * KIB)

static uint8_t model[3][MODEL_BYTES];
static const char *const model_names[3] = { "x", "y", "z" };

/* One op on object o (a copy is from p); `i` is the byte that a write fills it with. */
static void random_op(struct rig *r, unsigned *seed, uint32_t i, uint32_t off, uint32_t len)
{
	uint32_t o = (uint32_t)rand_r(seed) % 3, p = (uint32_t)rand_r(seed) % 3;
	static uint8_t buf[MODEL_BYTES];
	enum xseg_op zero;

	switch (rand_r(seed) % 6) {
	case 0:
	case 1:
		memset(model[o] + off, (int)(i & 0xff), len);
		assert_int_equal(rig_write(r, model_names[o], off, model[o] + off, len, 0), len);
		break;
	case 2:
		zero = i & 1 ? XSEG_OP_DISCARD : XSEG_OP_WRITE_ZEROES;
		assert_int_equal(rig_op(r, zero, model_names[o], off, len), len);
		memset(model[o] + off, 0, len);
		break;
	case 3:
		if (rig_copy(r, model_names[p], model_names[o], off, len) == (int64_t)len)
			memmove(model[o] + off, model[p] + off, len);
		break;
	case 4:
		if (rand_r(seed) % 8 == 0) {
			rig_op(r, XSEG_OP_DELETE, model_names[o], 0, 0);
			memset(model[o], 0, MODEL_BYTES);
		} else if (rand_r(seed) % 8 == 0) {
			rig_restart(r);
		} else if (rand_r(seed) % 8 == 0) {
			assert_int_equal(rig_op(r, XSEG_OP_FLUSH, "", 0, 0), 0);
		}
		break;
	default:
		assert_int_equal(rig_read(r, model_names[o], off, buf, len), len);
		assert_memory_equal(buf, model[o] + off, len);
	}
}

/* Until a count that began after now is told; its text. */
static const char *counted(void)
{
	static char text[4096];
	unsigned before, nr = 0;

	assert_true(rig_admin(&g, "usage", text, sizeof(text)) > 0);
	assert_int_equal(sscanf(text, "count=%u", &before), 1);
	/* one may run that began before */
	while (nr < before + 2) {
		rig_advance(&g, 2 * USAGE_FRESH_NS);
		rig_settle(&g);
		assert_true(rig_admin(&g, "usage", text, sizeof(text)) > 0);
		assert_int_equal(sscanf(text, "count=%u", &nr), 1);
	}
	return text;
}

static void has_bytes(const char *text, const char *prefix, uint64_t bytes, uint64_t objects)
{
	char words[64];
	const char *at;
	unsigned long is_bytes, is_objects;

	snprintf(words, sizeof(words), "prefix=%s bytes=", prefix);
	at = strstr(text, words);
	assert_non_null(at);
	assert_int_equal(sscanf(at + strlen(words), "%lu objects=%lu", &is_bytes, &is_objects), 2);
	assert_int_equal(is_objects, objects);
	/* a file system may need some blocks of its own */
	assert_in_range(is_bytes, bytes, bytes + 16 * KIB * objects);
}

static void usage_tells_the_bytes_of_each_prefix(void **state)
{
	const char *text;

	(void)state;
	assert_int_equal(rig_fill(&g, "a:1", 0, 256 * KIB, 1, 0), 256 * KIB);
	assert_int_equal(rig_fill(&g, "a:2", 0, 128 * KIB, 1, 0), 128 * KIB);
	assert_int_equal(rig_fill(&g, "b c:1", 0, 128 * KIB, 1, 0), 128 * KIB);
	assert_int_equal(rig_fill(&g, "b:1", 0, 64 * KIB, 1, 0), 64 * KIB);
	text = counted();
	has_bytes(text, "a:", 384 * KIB, 2);
	has_bytes(text, "b:", 64 * KIB, 1);
	assert_non_null(strstr(text, "\nobjects=4\n"));
	assert_null(strstr(text, "b c"));
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a:1", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "b:1", 0, 0), 0);
	text = counted();
	has_bytes(text, "a:", 128 * KIB, 1);
	assert_null(strstr(text, "prefix=b:"));
}

void contract_random_ops(struct rig *r, uint32_t steps, uint32_t align)
{
	unsigned seed = (unsigned)time(NULL);
	uint32_t i, off, len;

	print_message("seed %u\n", seed);
	memset(model, 0, sizeof(model));
	for (i = 0; i < steps; i++) {
		off = (uint32_t)rand_r(&seed) % (200 * KIB);
		len = 1 + (uint32_t)rand_r(&seed) % (56 * KIB);
		if (rand_r(&seed) % 2) {
			off &= ~(align - 1);
			len = (len + align - 1) & ~(align - 1);
		}
		random_op(r, &seed, i, off, len);
	}
}

static void random_ops_agree_with_an_array(void **state)
{
	(void)state;
	contract_random_ops(&g, in_short(store->nr_random, 3), store->align);
}

/* ---- order, and being killed ------------------------------------------------------------- */

static void overlapping_requests_go_in_order_of_arrival(void **state)
{
	struct rig_io *io[12], *read;
	uint8_t data[8192], got[8192];
	uint32_t i;

	(void)state;
	for (i = 0; i < 12; i++) {
		memset(data, (int)i + 1, sizeof(data));
		io[i] = rig_send(&g, XSEG_OP_WRITE, "a", i * 100, 8192 - i * 200, data, 0);
	}
	read = rig_send(&g, XSEG_OP_READ, "a", 0, 8192, NULL, 0);
	for (i = 0; i < 12; i++)
		assert_int_equal(rig_wait(&g, io[i]), 8192 - i * 200);
	assert_int_equal(rig_wait(&g, read), 8192);
	rig_data(&g, read, got, sizeof(got));
	for (i = 0; i < 4096; i++)
		assert_int_equal(got[i], i / 100 < 11 ? i / 100 + 1 : 12);
}

static void requests_of_a_dead_predecessor_are_done_again(void **state)
{
	struct rig_io *write, *read, *gone;
	uint8_t data[4096];

	(void)state;
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x55, 0), 4096);
	memset(data, 0x11, sizeof(data));
	write = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	read = rig_send(&g, XSEG_OP_READ, "b", 0, 4096, NULL, 0);
	gone = rig_send(&g, XSEG_OP_DELETE, "none", 0, 0, NULL, 0);
	store->hold(&g, 3);
	assert_true(!write->done && !read->done && !gone->done);
	rig_restart(&g);
	assert_int_equal(rig_wait(&g, write), 4096);
	assert_int_equal(rig_wait(&g, read), 4096);
	assert_int_equal(rig_wait(&g, gone), 0);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
}

static void objects_survive_a_kill_and_a_stop(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 100, 100000, 0x11, 0), 100000);
	rig_restart(&g);
	assert_true(rig_holds(&g, "a", 100, 100000, 0x11));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 100100);
	rig_stop(&g);
	assert_int_equal(rig_start(&g), 0);
	assert_true(rig_holds(&g, "a", 100, 100000, 0x11));
}

/* ---- several ports ----------------------------------------------------------------------- */

static void several_ports_serve_one_store(void **state)
{
	(void)state;
	rig_fill_many(&g, 30);
	rig_restart(&g);
	rig_many_hold(&g, 30);
	assert_int_equal(rig_copy(&g, "o1", "o2", 0, 4096), 4096);
	assert_true(rig_holds(&g, "o2", 0, 4096, 2));
}

/* What a read of 4 KiB got is of one write. */
static void is_not_torn(struct rig_io *io)
{
	uint8_t got[4096];
	unsigned k;

	if (rig_wait(&g, io) != 4096 || io->r->op != XSEG_OP_READ)
		return;
	rig_data(&g, io, got, sizeof(got));
	for (k = 1; k < sizeof(got); k++)
		assert_int_equal(got[k], got[0]);
}

/* Reads, writes, copies and deletes of the same few blocks from threads of their own. */
static void ports_on_threads_do_not_tear_blocks(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
	struct rig_io *io[16] = { 0 };
	uint32_t nr = in_short(store->nr_torn, 3);
	unsigned seed = 1, i, k;
	uint8_t data[4096];

	(void)state;
	rig_threads_start(&g);
	for (i = 0; i < nr; i++) {
		if (io[i % 16])
			is_not_torn(io[i % 16]);
		memset(data, (int)(i & 0xff), sizeof(data));
		if (i % 50 == 0)
			rig_copy(&g, names[i / 50 % 6], names[i / 300 % 6], 0, 8192);
		if (i % 70 == 0)
			rig_op(&g, XSEG_OP_DELETE, names[i / 70 % 6], 0, 0);
		if (i % 90 == 0)
			assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
		k = (unsigned)rand_r(&seed);
		io[i % 16] = rig_send(&g, k & 1 ? XSEG_OP_WRITE : XSEG_OP_READ, names[k / 8 % 6],
			k & 2 ? 4096 : 0, 4096, k & 1 ? data : NULL, k % 64 ? 0 : XSEG_REQ_FUA);
	}
	for (i = 0; i < 16; i++)
		rig_wait(&g, io[i]);
	rig_threads_stop(&g);
}

#define T(name)	 cmocka_unit_test_setup_teardown(name, setup, teardown)
#define T3(name) cmocka_unit_test_setup_teardown(name, setup_three_ports, teardown)

int contract_run(const struct contract *of)
{
	const struct CMUnitTest contract[] = {
		T(missing_objects_holes_and_ends_read_as_zeroes),
		T(reads_over_an_odd_end_are_filled_with_zeroes),
		T(odd_writes_keep_their_neighbours_and_the_end),
		T(the_largest_request_at_an_odd_offset_is_served),
		T(discard_and_write_zeroes_read_as_zeroes),
		T(zeroes_written_over_the_end_are_no_data),
		T(a_hole_stays_a_hole),
		T(a_deleted_object_is_gone),
		T(copy_takes_the_same_range_of_another_object),
		T(any_name_is_one_object),
		T(random_ops_agree_with_an_array),
		T(overlapping_requests_go_in_order_of_arrival),
		T(requests_of_a_dead_predecessor_are_done_again),
		T(objects_survive_a_kill_and_a_stop),
		T3(several_ports_serve_one_store),
		T3(ports_on_threads_do_not_tear_blocks),
		T(a_listing_names_each_object_of_a_prefix),
		T(names_that_have_no_room_come_in_the_next_answer),
		T(what_exists_during_a_whole_listing_is_in_it),
		T(a_cursor_that_no_store_gave_is_stale),
		T(usage_tells_the_bytes_of_each_prefix),
	};

	store = of;
	listed = in_short(LISTED_MAX, 2);
	return cmocka_run_group_tests(contract, NULL, NULL);
}
