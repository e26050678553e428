/* peers_memory_test - memory runs out while a peer begins, at each of its allocations. It says so
 * in a line, and its successor begins as if nothing had happened. (start_memory_test has the cache,
 * and its predecessor's state.) And a filed that serves allocates nothing, nor do its workers.
 * (client_memory_test has the other kinds.)
 *
 * The linker leads the allocations of the program through here (--wrap, see the Makefile).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/rig/blocker_rig.h"
#include "tests/rig/tree.h"

static _Atomic uint32_t nr;		/* allocations since the peer opens, or serves */
static uint32_t fail_at;		/* 0: none fails */
static struct xseg *seg;
static char dir[64];

static bool fails(void)
{
	return ++nr == fail_at;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(align, size);
}

/* options: keys, each with its value behind it, and NULL */
static struct peer *made(const struct peer_class *cls, const char *const *options)
{
	struct peer *p = peer_create(cls);
	struct xseg_error err = { "" };

	assert_non_null(p);
	for (; *options; options += 2)
		assert_int_equal(
			opt_set(opt_find(cls->opts, options[0]), p, options[1], &err), 0);
	return p;
}

static int open_failing_at(struct peer *p, uint32_t at, struct xseg_error *err)
{
	int rc;

	nr = 0;
	fail_at = at;
	rc = peer_open(p, seg, err);
	fail_at = 0;
	return rc;
}

/* Returns at how many allocations it could not begin. */
static uint32_t each_fails(const struct peer_class *cls, const char *const *options)
{
	uint32_t nr_failed = 0;

	for (uint32_t at = 1;; at++) {
		struct peer *p = made(cls, options);
		struct xseg_error err = { "" };
		int rc = open_failing_at(p, at, &err);
		bool all = nr < at;

		if (rc == 0)
			peer_close(p, XSEG_CLOSE_KEEP_ARENA);
		peer_destroy(p);
		if (all) {
			assert_int_equal(rc, 0);
			return nr_failed;
		}
		if (rc == 0)
			continue;		/* it does without */
		if (rc != -ENOMEM)
			fail_msg("allocation %u of %s fails, and it says %d: %s", at, cls->kind, rc,
				err.text);
		assert_true(err.text[0] && !strchr(err.text, '\n'));
		nr_failed++;
	}
}

static void a_memd_that_cannot_begin_says_so(void **state)
{
	static const char *const options[] = { "memory", "8M", "track_flush", "yes", NULL };

	(void)state;
	assert_true(each_fails(&memd_class, options) > 5);
}

static void a_filed_that_cannot_begin_says_so(void **state)
{
	const char *const options[] = { "dir", dir, NULL };

	(void)state;
	assert_true(each_fails(&filed_class, options) > 5);
}

static void a_volumed_that_cannot_begin_says_so(void **state)
{
	static const char *const options[] = { NULL };

	(void)state;
	assert_true(each_fails(&volumed_class, options) > 5);
}

static void do_everything(struct rig *g, const char *object)
{
	static uint8_t data[64 * KIB];

	memset(data, 0x11, sizeof(data));	/* a copy of nothing but zeroes makes no object */
	assert_int_equal(rig_write(g, object, 0, data, 40 * KIB, 0), 40 * KIB);
	assert_int_equal(rig_write(g, object, 700, data, 300, 0), 300);
	assert_int_equal(rig_read(g, object, 100, data, 7000), 7000);
	assert_int_equal(rig_write(g, object, 4 * KIB, data, 64 * KIB, XSEG_REQ_FUA), 64 * KIB);
	assert_int_equal(rig_read(g, object, 1 * KIB, data, 64 * KIB), 64 * KIB);
	assert_int_equal(rig_copy(g, object, "copy", 0, 64 * KIB), 64 * KIB);
	assert_int_equal(rig_op(g, XSEG_OP_WRITE_ZEROES, object, 512, 8 * KIB), 8 * KIB);
	assert_int_equal(rig_op(g, XSEG_OP_DISCARD, object, 16 * KIB, 8 * KIB), 8 * KIB);
	assert_true(rig_op(g, XSEG_OP_INFO, object, 0, MIB) >= 0);
	assert_int_equal(rig_flush(g, 0, ""), 0);
	assert_int_equal(rig_op(g, XSEG_OP_DELETE, "copy", 0, 0), 0);
}

/* Of more objects than it may have files open. */
static void a_filed_that_serves_allocates_nothing(void **state)
{
	static struct rig g;
	char option[sizeof(dir) + 4], object[8];

	(void)state;
	snprintf(option, sizeof(option), "dir=%s", dir);
	rig_open(&g, &filed_class, OPTIONS(option, "iodepth=4", "files=16"), true);
	nr = 0;
	for (unsigned i = 0; i < 20; i++) {
		snprintf(object, sizeof(object), "o%u", i);
		do_everything(&g, object);
	}
	assert_int_equal(nr, 0);
	rig_close(&g);
}

static int segment_make(void **state)
{
	struct xseg_config cfg = { .memory_bytes = 64u << 20,
		.nr_requests = 256,
		.nr_ports = 16,
		.huge = XSEG_HUGE_NEVER };
	struct xseg_error err = { "" };

	(void)state;
	snprintf(dir, sizeof(dir), "%s/peers-memory-%d", access("build", W_OK) ? "/tmp" : "build",
		(int)getpid());
	return xseg_create_private(&cfg, &seg, &err);
}

static int segment_drop(void **state)
{
	(void)state;
	xseg_detach(seg);
	remove_tree(dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_memd_that_cannot_begin_says_so),
		cmocka_unit_test(a_filed_that_cannot_begin_says_so),
		cmocka_unit_test(a_volumed_that_cannot_begin_says_so),
		cmocka_unit_test(a_filed_that_serves_allocates_nothing),
	};

	return cmocka_run_group_tests(tests, segment_make, segment_drop);
}
