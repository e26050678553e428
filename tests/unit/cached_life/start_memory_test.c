/* start_memory_test - memory runs out while a cache begins, at each of its allocations. The cache
 * says so in a line and does not change its predecessor's state. Once it serves it allocates
 * nothing.
 *
 * The linker leads the allocations of the program through here (--wrap, see the Makefile).
 */
#include "tests/rig/cached_rig.h"

#define OF_PEER_CREATE 1		/* what the rig asks for before: it cannot do without */

static uint32_t nr, fail_at;		/* allocations since then; 0: none fails */

static bool fails(void)
{
	return ++nr == fail_at;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

static int open_failing_at(uint32_t at)
{
	int rc;

	nr = 0;
	fail_at = at;
	rc = crig_open("dirty_age=1h");
	fail_at = 0;
	return rc;
}

static void a_cache_that_cannot_begin_says_so_and_loses_nothing(void **state)
{
	uint32_t at = OF_PEER_CREATE + 1, spared = 0;
	int rc;

	(void)state;
	crig_up("dirty_age=1h");
	crig_have_clean("a", 0, B(4), 5);
	crig_expect(crig_write("a", B(2), B(8), 6), B(8));
	crig_expect(crig_write("b", 512, 512, 7), 512);
	crig_kill();
	/* until there is none left to fail; what it can do without is no reason not to begin */
	for (; (rc = open_failing_at(at)) != 0 || nr >= at; at++) {
		if (rc == 0) {
			spared++;
			crig_kill();
			continue;
		}
		if (rc != -ENOMEM)
			fail_msg("allocation %u fails, and it says %d: %s", at, rc, crig.text);
		assert_true(crig.text[0] && !strchr(crig.text, '\n'));
	}
	assert_true(at > spared + OF_PEER_CREATE + 10);
	crig_settle();
	crig_expect_data("a", 0, B(2), 5);
	crig_expect_data("a", B(2), B(8), 6);
	crig_expect_data("b", 512, 512, 7);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stored("a", B(2), B(8), 6) && crig_stored("b", 512, 512, 7));
}

static void a_cache_that_serves_allocates_nothing(void **state)
{
	char name[8];

	(void)state;
	crig_up("dirty_age=1ms objects=4");
	crig_expect_data("warm", 0, B(1), 0);
	for (uint32_t i = 0; i < 12; i++) {
		struct crig_io *write, *read;

		snprintf(name, sizeof(name), "o%u", i);
		write = crig_send(XSEG_OP_WRITE, name, 512 * i, B(3), 0, i + 1);
		read = crig_send(XSEG_OP_READ, name, 0, B(4), 0, 0);
		nr = 0;
		for (uint32_t k = 0; k < 64; k++) {
			/* not by the rig, whose checks allocate */
			peer_port_step_request(&crig.peer->ports[0]);
			peer_port_step_reply(&crig.peer->ports[0]);
			peer_port_step_poll(&crig.peer->ports[0]);
		}
		assert_int_equal(nr, 0);
		crig_settle();
		crig_expect(write, B(3));
		crig_expect(read, B(4));
		crig_pass(CRIG_MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_cache_that_cannot_begin_says_so_and_loses_nothing),
		CRIG_T(a_cache_that_serves_allocates_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
