/* bell_test - no thread sleeps over work: rings at every point of going to sleep, between threads
 * and between processes.
 *
 * Only a ring ends a sleep here: after a lost wake-up the test hangs. By default the two thread
 * tests and the process test make 200,000 sleeps together; with LONG=1 in the environment 10
 * million.
 */
#include "tests/rig/long.h"
#include "tests/rig/seg_pair.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define FOR_EVER (UINT64_MAX / 2)

/* The server has two ports. */
static int setup_bells(void **state)
{
	setup(state);
	client_open(16);
	server_open(2);
	return 0;
}

static uint32_t word_of(struct xport *port)
{
	return atomic_load(&seg->bells[port->index].word);
}

static bool sees_nothing(void *arg)
{
	(void)arg;
	return false;
}

static bool sees_work(void *arg)
{
	(void)arg;
	return true;
}

static void a_sleep_without_a_ring_ends_by_its_time_and_takes_the_announcement_back(void **state)
{
	uint32_t before = word_of(s);

	(void)state;
	assert_false(xseg_bell_wait(s, 0, sees_nothing, NULL));
	assert_false(xseg_bell_wait(s, 1000000, sees_nothing, NULL));
	assert_int_equal(word_of(s) & 1, 0);
	assert_int_not_equal(word_of(s), before);
}

static void work_that_came_before_the_announcement_is_seen(void **state)
{
	(void)state;
	assert_true(xseg_bell_wait(s, FOR_EVER, sees_work, NULL));
	assert_int_equal(word_of(s) & 1, 0);
}

static void nobody_is_woken_who_is_awake(void **state)
{
	uint32_t before = word_of(s);

	(void)state;
	xseg_bell_ring(s);
	xs_ring_all(seg);
	segrig_send(c, XSEG_OP_READ, 0, to);
	assert_int_equal(word_of(s), before);
}

static bool rings_itself(void *arg)
{
	xseg_bell_ring(arg);
	return false;
}

static void a_ring_between_announcing_and_sleeping_is_not_lost(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		assert_true(xseg_bell_wait(s, FOR_EVER, rings_itself, s));
}

static bool sends(void *arg)
{
	segrig_send(arg, XSEG_OP_READ, 0, to);
	return false;
}

static void a_request_between_announcing_and_sleeping_wakes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		assert_true(xseg_bell_wait(s, FOR_EVER, sends, c));
		segrig_request(s);
	}
}

static bool sends_twice(void *arg)
{
	uint32_t before = word_of(s);

	sends(arg);
	assert_int_equal(word_of(s), before + 2);
	sends(arg);
	assert_int_equal(word_of(s), before + 2);
	return false;
}

static void one_sleep_costs_a_sender_one_wake(void **state)
{
	struct xreq *r[2];

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		assert_true(xseg_bell_wait(s, FOR_EVER, sends_twice, c));
		assert_int_equal(xseg_port_receive(s, r, 2), 2);
	}
}

/* The one who rang for the dead sleeper must ring for its successor as well. */
static void the_announcement_of_a_dead_sleeper_costs_its_successor_no_wake(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		atomic_fetch_or(&seg->bells[s->index].word, 1);
		sends(c);
		assert_int_equal(word_of(s) & 1, 1);
		segrig_request(s);
		assert_true(xseg_bell_wait(s, FOR_EVER, sends, c));
		segrig_request(s);
		assert_int_equal(word_of(s) & 1, 0);
	}
}

static void ports_that_share_a_bell_are_heard_by_one_sleeper_and_parted_again(void **state)
{
	struct xport *other = xseg_peer_port(server, 1);

	(void)state;
	xseg_port_share_bell(other, s);
	assert_true(xseg_bell_wait(s, FOR_EVER, rings_itself, other));
	assert_false(xseg_bell_wait(other, 1000000, rings_itself, other));
	xseg_port_share_bell(other, other);
	assert_false(xseg_bell_wait(s, 1000000, rings_itself, other));
	assert_true(xseg_bell_wait(other, FOR_EVER, rings_itself, other));
}

static bool wakes_itself(void *arg)
{
	xseg_bell_wake(arg);
	return false;
}

/* A thread that sleeps while another serves its port. */
static void who_sleeps_on_a_port_s_own_bell_is_woken_whoever_has_the_port(void **state)
{
	struct xport *other = xseg_peer_port(server, 1);

	(void)state;
	xseg_port_share_bell(s, other);
	assert_true(xseg_bell_wait(s, FOR_EVER, wakes_itself, s));
	assert_false(xseg_bell_wait(s, 1000000, sends, c));
	segrig_request(s);
	assert_true(xseg_bell_wait(other, FOR_EVER, sends, c));
	segrig_request(s);
	xseg_port_share_bell(s, s);
}

static void a_wild_bell_in_the_segment_is_not_followed(void **state)
{
	(void)state;
	atomic_store(&s->sh->bell, UINT32_MAX);
	sends(c);
	segrig_request(s);
	xs_port_alert(seg, s->index);
	assert_false(xseg_bell_wait(s, 1000000, sees_nothing, NULL));
	assert_true(xseg_bell_wait(s, FOR_EVER, rings_itself, s));
	xseg_port_has_work(s);		/* puts it right */
	assert_int_equal(atomic_load(&s->sh->bell), s->index);
}

/* ---- handing a processor over ---- */

static cpu_set_t all_cpus;

static void share_no_processor(void)
{
	sched_setaffinity(0, sizeof(all_cpus), &all_cpus);
}

/* Both run on the same processor, the client has sent to the server, and the server is asleep, as
 * of that word. */
static void share_a_processor(uint32_t slept)
{
	cpu_set_t one;

	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	xseg_bell_here(s);
	xseg_bell_here(c);
	sends(c);
	atomic_store(&seg->bells[s->index].word, slept);
	atomic_store(&seg->bells[s->index].slept, slept);
}

static void one_that_polls_blocks_a_partner_that_can_run_on_its_processor(void **state)
{
	(void)state;
	assert_false(xseg_port_blocks_partner(c));		/* it has none */
	share_a_processor(5);
	assert_false(xseg_port_blocks_partner(c));		/* it sleeps */
	xs_bell_ring(seg, s->index, NULL);
	assert_true(xseg_port_blocks_partner(c));		/* it was rung */
	atomic_store(&seg->bells[s->index].word, 8);
	assert_true(xseg_port_blocks_partner(c));		/* it is awake */
	atomic_fetch_add(&seg->bells[s->index].cpu, 1);
	assert_false(xseg_port_blocks_partner(c));		/* elsewhere */
	share_no_processor();
}

static void a_sender_can_tell_where_its_server_runs(void **state)
{
	(void)state;
	assert_int_equal(xs_port_server_cpu(c), 0);		/* it has sent nothing */
	share_a_processor(4);
	assert_int_equal(xs_port_server_cpu(c), sched_getcpu() + 1);
	atomic_fetch_add(&seg->bells[s->index].cpu, 3);
	assert_int_equal(xs_port_server_cpu(c), sched_getcpu() + 4);
	atomic_store(&s->sh->bell, UINT32_MAX);
	assert_int_equal(xs_port_server_cpu(c), 0);		/* a wild bell */
	xseg_port_has_work(s);		/* puts it right */
	share_no_processor();
}

static void one_that_was_sent_something_has_a_partner_too(void **state)
{
	struct xreq *r;

	(void)state;
	share_a_processor(5);
	assert_false(xseg_port_blocks_partner(s));		/* it has taken nothing */
	assert_int_equal(xseg_port_receive(s, &r, 1), 1);
	assert_true(xseg_port_blocks_partner(s));
	share_no_processor();
}

static void a_client_that_has_closed_is_no_partner(void **state)
{
	(void)state;
	share_a_processor(5);
	xseg_req_answer(s, segrig_request(s), 0);
	xseg_port_flush(s);
	assert_true(xseg_port_blocks_partner(s));
	close_peer(client);
	assert_false(xseg_port_blocks_partner(s));
	share_no_processor();
}

static void one_answered_before_another_sent_is_no_partner(void **state)
{
	struct xseg_peer *later = segrig_client(seg, "later", 16);
	struct xport *port = segrig_port(later);

	(void)state;
	share_a_processor(5);
	xseg_req_answer(s, segrig_request(s), 0);
	xseg_port_flush(s);
	assert_true(xseg_port_blocks_partner(s));	/* the first client, which is awake */
	sends(port);
	segrig_request(s);			/* whose answer comes from another peer, perhaps */
	assert_false(xseg_port_blocks_partner(s));
	xseg_bell_here(port);
	assert_true(xseg_port_blocks_partner(s));
	share_no_processor();
	close_peer(later);
}

/* What the client has sent is forwarded to `below`, which answers the client. Then it sends
 * again. */
static void pass_one(struct xport *below)
{
	assert_int_equal(xseg_req_forward(s, segrig_request(s), xseg_peer_index(below->peer)), 0);
	xseg_port_flush(s);
	segrig_answer(below, segrig_request(below), 0);
	xseg_req_free(c, segrig_reply(c));
	sends(c);
}

static void a_forwarder_and_the_one_below_it_stay_partners_of_a_client(void **state)
{
	struct xseg_peer *peer = segrig_server(seg, "below", 1, 0);
	struct xport *below = segrig_port(peer);

	(void)state;
	share_a_processor(4);
	pass_one(below);
	pass_one(below);
	assert_true(xseg_port_blocks_partner(c));		/* the forwarder */
	atomic_fetch_add(&seg->bells[s->index].cpu, 1);
	assert_false(xseg_port_blocks_partner(c));
	xseg_bell_here(below);
	assert_true(xseg_port_blocks_partner(c));		/* the one that answers */
	assert_true(xseg_port_blocks_partner(below));		/* the client */
	share_no_processor();
	close_peer(peer);
}

static void a_wild_bell_is_no_partner(void **state)
{
	(void)state;
	share_a_processor(4);
	assert_true(xseg_port_blocks_partner(c));
	atomic_store(&s->sh->bell, UINT32_MAX);
	assert_false(xseg_port_blocks_partner(c));
	xseg_port_has_work(s);		/* puts it right */
	share_no_processor();
}

static void the_time_of_a_poll_follows_what_polls_bring(void **state)
{
	uint64_t poll_ns = XSEG_POLL_NS;

	(void)state;
	assert_int_equal(xseg_poll_adapt(20000, 20000), 20000);
	for (unsigned i = 0; i < 10; i++)
		poll_ns = xseg_poll_adapt(poll_ns, 1000000);
	assert_int_equal(poll_ns, 10000);
	assert_int_equal(xseg_poll_adapt(poll_ns, 100000), 20000);
	assert_int_equal(xseg_poll_adapt(40000, 100000), XSEG_POLL_NS);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void a_signal_ends_the_sleep(void **state)
{
	struct sigaction act = { .sa_handler = on_alarm };
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };

	(void)state;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_true(xseg_bell_wait(s, FOR_EVER, sees_nothing, NULL));
	setitimer(ITIMER_REAL, &never, NULL);
}

/* ---- many ---- */

struct side {
	struct xport *port;
	uint32_t to;
	uint64_t sleeps, target, seed;
	_Atomic bool *stop;
};

static uint64_t target_of(uint64_t sleeps)
{
	if (is_long())
		return sleeps * 112;
	return SEGRIG_SANITIZED ? sleeps / 20 : sleeps;
}

/* Up to about 3 us: so long as it takes the other side to go to sleep. */
static void delay(uint64_t *seed)
{
	for (uint32_t n = segrig_random(seed) % 2048; n; n--)
		atomic_signal_fence(memory_order_seq_cst);
}

static bool side_looks(void *arg)
{
	struct side *me = arg;

	if (xseg_port_has_work(me->port) || (me->stop && atomic_load(me->stop)))
		return true;
	me->sleeps++;
	return false;
}

/* Sends one request at a time, and sleeps until its answer is there, which says how often the other
 * side has slept; until both together have slept often enough. (One side alone may never sleep: on
 * one processor who is woken runs first.) */
static void *ask(void *arg)
{
	struct side *me = arg;
	uint64_t theirs = 0;
	struct xreq *r;

	for (uint64_t round = 0; me->sleeps + theirs < me->target && round < 10 * me->target;
		round++) {
		r = xseg_req_alloc(me->port);
		r->op = XSEG_OP_INFO;
		delay(&me->seed);
		if (xseg_req_submit(me->port, r, me->to))
			abort();
		xseg_port_flush(me->port);
		while (!xseg_port_replies(me->port, &r, 1))
			xseg_bell_wait(me->port, FOR_EVER, side_looks, me);
		theirs = (uint64_t)r->result;
		xseg_req_free(me->port, r);
	}
	return NULL;
}

static void *answer(void *arg)
{
	struct side *me = arg;
	struct xreq *r[4];

	while (!atomic_load(me->stop)) {
		uint32_t n = xseg_port_receive(me->port, r, 4);

		delay(&me->seed);
		for (uint32_t i = 0; i < n; i++)
			xseg_req_answer(me->port, r[i], (int64_t)me->sleeps);
		xseg_port_flush(me->port);
		if (n == 0)
			xseg_bell_wait(me->port, FOR_EVER, side_looks, me);
	}
	return NULL;
}

static void run(struct side *asking, unsigned nr)
{
	_Atomic bool stop = false;
	struct side answering = { .port = s, .seed = 5, .stop = &stop };
	pthread_t thread[3];

	assert_int_equal(pthread_create(&thread[0], NULL, answer, &answering), 0);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(pthread_create(&thread[i + 1], NULL, ask, &asking[i]), 0);
	for (unsigned i = 0; i < nr; i++)
		pthread_join(thread[i + 1], NULL);
	atomic_store(&stop, true);
	xseg_bell_ring(s);
	pthread_join(thread[0], NULL);
}

static void two_threads_that_sleep_by_turns_lose_no_wake(void **state)
{
	struct side asking = { .port = c, .to = to, .target = target_of(30000), .seed = 1 };

	(void)state;
	run(&asking, 1);
}

static void two_senders_and_one_sleeper_lose_no_wake(void **state)
{
	struct xseg_peer *second = segrig_client(seg, "second", 16);
	struct side asking[2] = {
		{ .port = c, .to = to, .target = target_of(15000), .seed = 1 },
		{ .port = segrig_port(second), .to = to, .target = target_of(15000), .seed = 2 },
	};

	(void)state;
	run(asking, 2);
	xseg_peer_close(second, XSEG_CLOSE_KEEP_ARENA);
}

struct child {
	const char *name;
	int ready[2];
};

static int child_answers(void *arg)
{
	struct child *ch = arg;
	_Atomic bool never = false;
	struct side me = { .seed = 3, .stop = &never };
	struct xseg_peer *peer;
	struct xseg *mine;

	if (xseg_attach(ch->name, 0, &mine, NULL) ||
	    xseg_peer_open(mine,
		    &(struct xseg_peer_params){ .name = "memd", .kind = "memd", .nr_ports = 1 },
		    &peer, NULL))
		return 1;
	xseg_peer_serve(peer);
	me.port = xseg_peer_port(peer, 0);
	if (write(ch->ready[1], "r", 1) != 1)
		return 2;
	answer(&me);
	return 0;
}

static void two_processes_that_sleep_by_turns_lose_no_wake(void **state)
{
	struct xseg *both;
	struct child ch = { .name = segrig_named(&both) };
	struct xseg_peer *me;
	struct side asking = { .target = target_of(30000), .seed = 4 };
	char byte;
	int pid;

	(void)state;
	assert_int_equal(pipe(ch.ready), 0);
	pid = segrig_fork(child_answers, &ch);
	assert_int_equal(read(ch.ready[0], &byte, 1), 1);
	me = segrig_client(both, "me", 16);
	asking.port = segrig_port(me);
	asking.to = xseg_peer_find(both, "memd");
	ask(&asking);
	segrig_kill(pid);
	xseg_peer_close(me, XSEG_CLOSE_KEEP_ARENA);
	xseg_detach(both);
	assert_int_equal(xseg_destroy(ch.name), 0);
	close(ch.ready[0]);
	close(ch.ready[1]);
}

static void *sleep_once(void *arg)
{
	xseg_bell_wait(arg, FOR_EVER, sees_nothing, NULL);
	return NULL;
}

static void ringing_all_wakes_every_sleeper(void **state)
{
	struct xport *port[3] = { c, s, xseg_peer_port(server, 1) };
	pthread_t thread[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread[i], NULL, sleep_once, port[i]), 0);
		while (!(word_of(port[i]) & 1))
			sched_yield();
	}
	xs_ring_all(seg);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
}

#define B(name) cmocka_unit_test_setup_teardown(name, setup_bells, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		B(a_sleep_without_a_ring_ends_by_its_time_and_takes_the_announcement_back),
		B(work_that_came_before_the_announcement_is_seen),
		B(nobody_is_woken_who_is_awake),
		B(a_ring_between_announcing_and_sleeping_is_not_lost),
		B(a_request_between_announcing_and_sleeping_wakes),
		B(one_sleep_costs_a_sender_one_wake),
		B(the_announcement_of_a_dead_sleeper_costs_its_successor_no_wake),
		B(ports_that_share_a_bell_are_heard_by_one_sleeper_and_parted_again),
		B(who_sleeps_on_a_port_s_own_bell_is_woken_whoever_has_the_port),
		B(a_wild_bell_in_the_segment_is_not_followed),
		B(a_signal_ends_the_sleep),
		B(one_that_polls_blocks_a_partner_that_can_run_on_its_processor),
		B(a_sender_can_tell_where_its_server_runs),
		B(one_that_was_sent_something_has_a_partner_too),
		B(a_client_that_has_closed_is_no_partner),
		B(one_answered_before_another_sent_is_no_partner),
		B(a_forwarder_and_the_one_below_it_stay_partners_of_a_client),
		B(a_wild_bell_is_no_partner),
		B(the_time_of_a_poll_follows_what_polls_bring),
		B(ringing_all_wakes_every_sleeper),
		B(two_threads_that_sleep_by_turns_lose_no_wake),
		B(two_senders_and_one_sleeper_lose_no_wake),
		B(two_processes_that_sleep_by_turns_lose_no_wake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
