/* plug_rig - for the tests of plugging: a client, an upper peer, a store and a cache beside them.
 * An error here is a failed test. Included once by each test.
 */
#ifndef TESTS_UNIT_PLUG_RIG_H
#define TESTS_UNIT_PLUG_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/rig/seg_rig.h"

static struct xseg *seg;
static struct xseg_peer *client, *upper, *cache, *lower;
static uint32_t u, c, l;
static struct xseg_error err;

static inline struct xport *port_of(struct xseg_peer *peer)
{
	return segrig_port(peer);
}

static inline int setup(void **state)
{
	(void)state;
	seg = segrig_private_of(128, 16);
	client = segrig_client(seg, "me", 16);
	lower = segrig_server(seg, "low", 1, 0);
	upper = segrig_server(seg, "up", 2, 16);
	cache = segrig_server(seg, "cache", 1, 16);
	u = xseg_peer_index(upper);
	c = xseg_peer_index(cache);
	l = xseg_peer_index(lower);
	assert_int_equal(xseg_route_set(seg, u, l), 0);
	return 0;
}

static inline void close_one(struct xseg_peer **peer, enum xseg_close how)
{
	if (*peer)
		xseg_peer_close(*peer, how);
	*peer = NULL;
}

static inline int teardown(void **state)
{
	(void)state;
	segrig_sound(seg);
	close_one(&client, XSEG_CLOSE_FREE_ARENA);
	close_one(&upper, XSEG_CLOSE_FREE_ARENA);
	close_one(&cache, XSEG_CLOSE_FREE_ARENA);
	close_one(&lower, XSEG_CLOSE_FREE_ARENA);
	xseg_detach(seg);
	return 0;
}

static inline void again(
	struct xseg_peer **peer, const char *name, uint32_t ports, uint32_t requests)
{
	close_one(peer, XSEG_CLOSE_ABANDON);
	*peer = segrig_open(seg, name, ports, requests);
	assert_int_equal(xseg_peer_orphans(*peer), 0);
}

static inline struct xseg_peer_info info_of(uint32_t peer)
{
	struct xseg_peer_info info;

	assert_true(xseg_peer_get_info(seg, peer, &info));
	return info;
}

static inline uint32_t route(uint32_t peer)
{
	return info_of(peer).downstream;
}

static inline uint32_t keeper(uint32_t peer)
{
	return info_of(peer).keeper;
}

/* Below one upper peer. */
static inline int plug_one(uint32_t cache_of, uint32_t upper_of, uint32_t lower_of)
{
	return xseg_plug(seg, cache_of, &upper_of, 1, lower_of, &err);
}

/* As who died right after the decision leaves it. */
static inline void decide(void)
{
	xs_keep(seg, c, XS_KEPT_PLUG, atomic_load(&seg->peers[c].plug) | PLUG_DECIDED);
}

static inline void ask_to_enter(void)
{
	assert_int_equal(plug_one(c, u, l), 0);
}

static inline void upper_holds(void)
{
	assert_int_equal(xseg_plug_call(cache), 0);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_ASKED);
	assert_int_equal(xseg_turn_below(upper), 0);
	xseg_turn_hold(upper);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_HELD);
	assert_true(xseg_plug_is_held(cache));
}

static inline void enter(void)
{
	ask_to_enter();
	upper_holds();
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_plug_others(cache), 0);
	assert_int_equal(xseg_plug_switch(cache), 0);
}

static inline void leave(void)
{
	assert_int_equal(xseg_unplug(seg, c, &err), 0);
	upper_holds();
	assert_int_equal(xseg_plug_switch(cache), 0);
}

static inline void nothing_is_wanted(void)
{
	assert_int_equal(info_of(c).plug, XSEG_PLUG_NONE);
	assert_int_equal(info_of(u).turn, XSEG_TURN_NONE);
}

static inline void is_off_the_path(void)
{
	nothing_is_wanted();
	assert_int_equal(route(u), l);
	assert_int_equal(route(c), XSEG_NONE);
	assert_int_equal(keeper(l), XSEG_NONE);
}

static inline void is_on_the_path(void)
{
	nothing_is_wanted();
	assert_int_equal(route(u), c);
	assert_int_equal(route(c), l);
	assert_int_equal(keeper(l), c);
}

static inline void refused(int rc, int want, const char *reason)
{
	assert_int_equal(rc, want);
	if (!strstr(err.text, reason))
		fail_msg("'%s' does not say '%s'", err.text, reason);
}

#endif
