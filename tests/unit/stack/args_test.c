/* args_test - the peer that a new one is told to send to, where caches of the stack are off the
 * path: args_downstream().
 */
#include "peers/common/options/args.h"

#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/rig/seg_rig.h"

static const char text[] = "[peer s]\nkind = memd\n"
			   "[peer c2]\nkind = cached\ndownstream = s\n"
			   "[peer c1]\nkind = cached\ndownstream = c2\n"
			   "[peer v]\nkind = volumed\ndownstream = c1\n"
			   "[peer k]\nkind = kvd\nsize = 64M\ndownstream = c1\n"
			   "[peer g]\nkind = memcached\nkvd = k\n";

static struct stack *stack;
static struct xseg *seg;

static int make(void **state)
{
	(void)state;
	stack = stack_create();
	seg = segrig_private();
	return stack && !stack_parse(text, stack, NULL) ? 0 : -1;
}

static int drop(void **state)
{
	(void)state;
	xseg_detach(seg);
	stack_destroy(stack);
	return 0;
}

static struct xseg_peer *open_peer(const char *name, const char *kind)
{
	struct xseg_peer_params params = { .name = name, .kind = kind, .nr_ports = 1 };
	struct xseg_error err = { "" };
	struct xseg_peer *peer = NULL;

	if (xseg_peer_open(seg, &params, &peer, &err))
		fail_msg("%s: %s", name, err.text);
	return peer;
}

/* It serves, and sends there; NULL: nowhere. */
static struct xseg_peer *serve(const char *name, const char *kind, struct xseg_peer *below)
{
	struct xseg_peer *peer = open_peer(name, kind);

	if (below)
		assert_int_equal(
			xseg_route_set(seg, xseg_peer_index(peer), xseg_peer_index(below)), 0);
	xseg_peer_serve(peer);
	return peer;
}

static const char *downstream(const char *name)
{
	return args_downstream(seg, stack, &stack->peers[stack_find(stack, name)]);
}

static void where_nothing_is_there_yet_it_is_that_of_the_file(void **state)
{
	(void)state;
	assert_string_equal(downstream("s"), "");
	assert_string_equal(downstream("c2"), "s");
	assert_string_equal(downstream("c1"), "c2");
	assert_string_equal(downstream("v"), "c1");
	assert_string_equal(downstream("k"), "c1");
	assert_string_equal(downstream("g"), "k");
}

static void caches_that_are_on_the_path_are_sent_to(void **state)
{
	struct xseg_peer *s = serve("s", "memd", NULL), *c2 = serve("c2", "cached", s);

	(void)state;
	/* c1 will find its place free */
	assert_string_equal(downstream("k"), "c1");
	serve("v", "volumed", serve("c1", "cached", c2));
	assert_string_equal(downstream("k"), "c1");
}

static void a_cache_off_the_path_is_passed_by_a_new_user(void **state)
{
	struct xseg_peer *s = serve("s", "memd", NULL), *c2 = serve("c2", "cached", s), *c1;

	(void)state;
	serve("v", "volumed", c2);
	c1 = serve("c1", "cached", NULL);
	assert_string_equal(downstream("k"), "c2");
	/* the cache itself is told what the file says: it waits there */
	assert_string_equal(downstream("c1"), "c2");
	assert_string_equal(downstream("g"), "k");
	/* it is stopped, and will not find its place free either */
	xseg_peer_close(c1, XSEG_CLOSE_FREE_ARENA);
	assert_string_equal(downstream("k"), "c2");
}

static void several_caches_off_the_path_are_passed(void **state)
{
	struct xseg_peer *s = serve("s", "memd", NULL);

	(void)state;
	serve("v", "volumed", s);
	/* those that are not there will find the place of the lower one taken */
	assert_string_equal(downstream("k"), "s");
	serve("c2", "cached", NULL);
	assert_string_equal(downstream("k"), "s");
	serve("c1", "cached", NULL);
	assert_string_equal(downstream("k"), "s");
}

/* A client has no part in who may send where. */
static void a_client_takes_no_place(void **state)
{
	struct xseg_peer *s = serve("s", "memd", NULL), *client = open_peer("me", "client");

	(void)state;
	xseg_peer_serve(client);
	assert_int_equal(xseg_route_set(seg, xseg_peer_index(client), xseg_peer_index(s)), 0);
	assert_string_equal(downstream("k"), "c1");
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, make, drop)
	const struct CMUnitTest tests[] = {
		T(where_nothing_is_there_yet_it_is_that_of_the_file),
		T(caches_that_are_on_the_path_are_sent_to),
		T(a_cache_off_the_path_is_passed_by_a_new_user),
		T(several_caches_off_the_path_are_passed),
		T(a_client_takes_no_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
