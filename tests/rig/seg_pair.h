/* seg_pair - a private segment for each test and, if it wants them, one client "me" and one server
 * "memd" in it. Included once by each test.
 *
 * Contract: T() and P() are rows of a test's table: T has the segment, P the pair as well. A test
 * may close either and open it again in the same variable. At the end the open ones are closed, and
 * then the segment must be sound. U() is P for a test that leaves it unsound.
 */
#ifndef TESTS_UNIT_SEG_PAIR_H
#define TESTS_UNIT_SEG_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/rig/seg_rig.h"

static struct xseg *seg;
static struct xseg_peer *client, *server;	/* NULL: is not there */
static struct xport *c, *s;			/* their first ports */
static uint32_t to;				/* the server */

static inline void end_peer(struct xseg_peer *peer, enum xseg_close how)
{
	client = client == peer ? NULL : client;
	server = server == peer ? NULL : server;
	xseg_peer_close(peer, how);
}

static inline void close_peer(struct xseg_peer *peer)
{
	end_peer(peer, XSEG_CLOSE_KEEP_ARENA);
}

static inline void abandon(struct xseg_peer *peer)
{
	end_peer(peer, XSEG_CLOSE_ABANDON);
}

static inline void client_open(uint32_t nr_requests)
{
	client = segrig_client(seg, "me", nr_requests);
	c = segrig_port(client);
}

static inline void server_open(uint32_t nr_ports)
{
	server = segrig_server(seg, "memd", nr_ports, 0);
	s = segrig_port(server);
	to = xseg_peer_index(server);
}

static inline void pair_close(void)
{
	if (client)
		close_peer(client);
	if (server)
		close_peer(server);
}

static inline int setup(void **state)
{
	(void)state;
	seg = segrig_private();
	return 0;
}

static inline int setup_pair(void **state)
{
	setup(state);
	client_open(16);
	server_open(1);
	return 0;
}

static inline int teardown_unsound(void **state)
{
	(void)state;
	pair_close();
	xseg_detach(seg);
	return 0;
}

static inline int teardown(void **state)
{
	pair_close();
	segrig_sound(seg);
	return teardown_unsound(state);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define P(name) cmocka_unit_test_setup_teardown(name, setup_pair, teardown)
#define U(name) cmocka_unit_test_setup_teardown(name, setup_pair, teardown_unsound)

#endif
