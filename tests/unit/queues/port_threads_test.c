/* port_threads_test - lanes between threads that send a million requests (in a short run a fifth of
 * that), or as many as they can in some seconds. On a busy machine each change of threads may take
 * milliseconds. Nothing here depends on how long it takes.
 */
#include "tests/rig/long.h"
#include "tests/rig/seg_pair.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define DEPTH	  16
#define LEAST	  2000u		/* requests that each sends */
#define SECONDS	  3
#define LOOK_EACH 64u

struct sender {
	pthread_t thread;
	struct xport *port;
	uint32_t to;
	time_t end;
	uint64_t nr, sum;
};

static time_t seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* Sends nr requests, or fewer when the time is over, DEPTH at a time; each answer must be its
 * request's number, made odd. */
static void *send_many(void *arg)
{
	struct sender *me = arg;
	struct xreq *r[DEPTH];
	uint64_t sent = 0, done = 0, look = LEAST;

	while (done < me->nr) {
		uint32_t n, out = (uint32_t)(sent - done);

		if (sent >= look) {
			look = sent + LOOK_EACH;
			if (seconds_now() > me->end)
				me->nr = sent;
		}

		for (; sent < me->nr && out < DEPTH; sent++, out++) {
			struct xreq *q = xseg_req_alloc(me->port);

			q->op = XSEG_OP_INFO;
			q->offset = sent;
			q->hash = sent * 0x9e3779b97f4a7c15ull;
			q->cookie = (void *)(uintptr_t)sent;
			if (xseg_req_submit(me->port, q, me->to))
				abort();
		}
		xseg_port_flush(me->port);
		n = xseg_port_replies(me->port, r, DEPTH);
		if (n == 0)
			xseg_port_wait(me->port, UINT64_MAX / 2);
		for (uint32_t i = 0; i < n; i++, done++) {
			if (r[i]->result != (int64_t)((uintptr_t)r[i]->cookie * 2 + 1))
				abort();
			me->sum += (uint64_t)r[i]->result;
			xseg_req_free(me->port, r[i]);
		}
	}
	return NULL;
}

struct driver {
	pthread_t thread;
	struct xport *port;
	uint32_t lower;			/* XSEG_NONE: answers */
	_Atomic bool stop;
	uint64_t nr;
};

static bool has_reason_to_wake(void *arg)
{
	struct driver *me = arg;

	return atomic_load(&me->stop) || xseg_port_has_work(me->port);
}

static void *serve_many(void *arg)
{
	struct driver *me = arg;
	struct xreq *r[32];
	uint32_t idle = 0;

	while (!atomic_load(&me->stop)) {
		uint32_t n = xseg_port_receive(me->port, r, 32);

		for (uint32_t i = 0; i < n; i++) {
			if (me->lower == XSEG_NONE)
				xseg_req_answer(me->port, r[i], (int64_t)r[i]->offset * 2 + 1);
			else if (xseg_req_forward(me->port, r[i], me->lower))
				abort();
		}
		xseg_port_flush(me->port);
		me->nr += n;
		idle = n ? 0 : idle + 1;
		if (idle % 16 == 1)
			sched_yield();
		if (idle > 64)
			xseg_bell_wait(me->port, UINT64_MAX / 2, has_reason_to_wake, me);
	}
	return NULL;
}

static void start_serving(struct driver *d, struct xseg_peer *peer, uint32_t lower)
{
	for (uint32_t i = 0; i < xseg_peer_nr_ports(peer); i++) {
		d[i] = (struct driver){ .port = xseg_peer_port(peer, i), .lower = lower };
		assert_int_equal(pthread_create(&d[i].thread, NULL, serve_many, &d[i]), 0);
	}
}

/* How many requests they had. */
static uint64_t stop_serving(struct driver *d, uint32_t n)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < n; i++) {
		atomic_store(&d[i].stop, true);
		xseg_bell_ring(d[i].port);
		pthread_join(d[i].thread, NULL);
		nr += d[i].nr;
	}
	return nr;
}

/* ---- two clients, and a server of two threads or of one ---------------------------------- */

static struct xseg_peer *clients[2];
static struct driver store[2];

static int setup_clients(void **state)
{
	setup(state);
	clients[0] = segrig_client(seg, "a", DEPTH);
	clients[1] = segrig_client(seg, "b", DEPTH);
	return 0;
}

static int teardown_clients(void **state)
{
	close_peer(clients[0]);
	close_peer(clients[1]);
	return teardown(state);
}

/* Each sends nr requests to a peer, or fewer. Returns how many they were in all. */
static uint64_t run_clients(uint32_t peer, uint64_t nr)
{
	struct sender sender[2];
	uint64_t sum = 0;

	for (unsigned i = 0; i < 2; i++) {
		sender[i] = (struct sender){ .to = peer, .nr = nr, .end = seconds_now() + SECONDS };
		sender[i].port = segrig_port(clients[i]);
		assert_int_equal(pthread_create(&sender[i].thread, NULL, send_many, &sender[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct xport *port = sender[i].port;

		pthread_join(sender[i].thread, NULL);
		assert_in_range(sender[i].nr, LEAST, nr);
		assert_int_equal(sender[i].sum, sender[i].nr * sender[i].nr);
		sum += sender[i].nr;
		assert_int_equal(xseg_port_nr_free(port), xseg_port_nr_requests(port));
	}
	assert_int_equal(segrig_bad(seg), 0);
	return sum;
}

static void two_clients_send_many_requests_to_one_server(void **state)
{
	uint64_t nr = SEGRIG_SANITIZED ? 20000 : in_short(500000, 5);

	(void)state;
	server_open(1);
	start_serving(store, server, XSEG_NONE);
	nr = run_clients(to, nr);
	assert_int_equal(stop_serving(store, 1), nr);
}

static void a_forwarder_of_two_threads_stands_between_clients_and_a_store_of_two(void **state)
{
	struct xseg_peer *upper = segrig_server(seg, "volumed", 2, 0);
	uint64_t nr = SEGRIG_SANITIZED ? 5000 : in_short(50000, 5);
	struct driver forwarder[2];

	(void)state;
	server_open(2);
	start_serving(store, server, XSEG_NONE);
	start_serving(forwarder, upper, to);
	nr = run_clients(xseg_peer_index(upper), nr);
	assert_int_equal(stop_serving(forwarder, 2), nr);
	assert_int_equal(stop_serving(store, 2), nr);
	close_peer(upper);
}

/* All lanes but the first two. */
static void set_lanes(uint32_t word)
{
	for (uint32_t i = 2; i < seg->geo.nr_lanes; i++)
		atomic_store(&seg->lanes[i].word, word);
}

static void threads_whose_answers_find_no_lanes_lose_none(void **state)
{
	uint64_t nr = SEGRIG_SANITIZED ? 2000 : 20000;

	(void)state;
	server_open(1);
	set_lanes(lane_word(0, 15, 15));
	for (unsigned i = 0; i < 2; i++)
		segrig_send(segrig_port(clients[i]), XSEG_OP_FLUSH, 0, to);
	for (unsigned i = 0; i < 2; i++)
		segrig_answer(s, segrig_request(s), 0);
	for (unsigned i = 0; i < 2; i++)
		xseg_req_free(segrig_port(clients[i]), segrig_reply(segrig_port(clients[i])));
	start_serving(store, server, XSEG_NONE);
	nr = run_clients(to, nr);
	assert_int_equal(stop_serving(store, 1), nr);
	set_lanes(0);
}

/* ---- clients of the process that come and go ---- */

#define GUESTS 6
#define VISITS (SEGRIG_SANITIZED ? 200u : 1000u)

/* Each visit is a client that sends one request, and must get its answer: it waits for ever if the
 * answer, or the ring for it, was lost. */
static void *visit(void *arg)
{
	char name[] = "guest.?";
	struct xreq *r;

	name[6] = (char)('0' + (uintptr_t)arg);
	for (uint32_t i = 0; i < VISITS; i++) {
		struct xseg_peer *peer = segrig_client(seg, name, 1);

		segrig_send(segrig_port(peer), XSEG_OP_INFO, i, to);
		while (xseg_port_replies(segrig_port(peer), &r, 1) == 0)
			xseg_port_wait(segrig_port(peer), UINT64_MAX / 2);
		if (r->result != (int64_t)i * 2 + 1)
			abort();
		xseg_peer_close(peer, XSEG_CLOSE_FREE_ARENA);
	}
	return NULL;
}

static int setup_guests(void **state)
{
	(void)state;
	seg = segrig_private_of(256, 16);
	return 0;
}

static void clients_that_come_and_go_in_several_threads_get_their_answers(void **state)
{
	pthread_t guest[GUESTS];

	(void)state;
	server_open(1);
	start_serving(store, server, XSEG_NONE);
	for (uintptr_t i = 0; i < GUESTS; i++)
		assert_int_equal(pthread_create(&guest[i], NULL, visit, (void *)i), 0);
	for (unsigned i = 0; i < GUESTS; i++)
		pthread_join(guest[i], NULL);
	assert_int_equal(segrig_bad(seg), 0);
	stop_serving(store, 1);
}

#define C(name) cmocka_unit_test_setup_teardown(name, setup_clients, teardown_clients)

int main(void)
{
	const struct CMUnitTest tests[] = {
		C(two_clients_send_many_requests_to_one_server),
		C(a_forwarder_of_two_threads_stands_between_clients_and_a_store_of_two),
		C(threads_whose_answers_find_no_lanes_lose_none),
		cmocka_unit_test_setup_teardown(
			clients_that_come_and_go_in_several_threads_get_their_answers, setup_guests,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
