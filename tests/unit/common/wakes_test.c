/* wakes_test - no thread sleeps over work: volumed, cached and filed on threads, as one process and
 * as three, with clients that leave all of them just the time to go to sleep.
 *
 * No time-out here could hide a lost wake-up. Reactors have no tick (see no_tick.h), and clients do
 * not look now and then (the linker leads xseg_port_wait() through here). After a lost wake-up the
 * test hangs. By default there are 5,000 I/Os, most of which go down to filed; with LONG=1 in the
 * environment 500,000. Clients go on after that, with longer and longer pauses, until the reactors
 * have slept often enough: on a loaded machine a reactor that polls is seldom alone for 50 us.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "peers/common/runtime/reactor.h"
#include "tests/rig/long.h"
#include "tests/rig/no_tick.h"
#include "tests/rig/seg_rig.h"
#include "tests/rig/tree.h"
#include "xseg/volume.h"

#define NR_PEERS   3
#define NR_CLIENTS 2
#define THREADS	   2u
#define BLOCKS	   4096u			/* of the volume; twice what the cache has */
#define BLOCK	   4096u

static const struct {
	const struct peer_class *cls;
	const char *downstream, *key, *value;
} kinds[NR_PEERS] = {
	{ &filed_class, "", "dir", NULL },
	{ &cached_class, "filed", "memory", "8M" },
	{ &volumed_class, "cached", "object_size", "1M" },
};

static struct xseg *seg;
static struct xseg_volume *volume;
static struct peer *peer[NR_PEERS];
static struct reactor_set *set[NR_PEERS];
static unsigned nr_sets;			/* one of all peers, or one for each */
static char dir[64];

bool __real_xseg_port_wait(struct xport *port, uint64_t timeout_ns);
bool __wrap_xseg_port_wait(struct xport *port, uint64_t timeout_ns);

bool __wrap_xseg_port_wait(struct xport *port, uint64_t timeout_ns)
{
	(void)timeout_ns;
	return __real_xseg_port_wait(port, NO_TICK_FOR_EVER);
}

/* ---- the stack ---- */

static void make_peer(unsigned i)
{
	const char *value = kinds[i].value ? kinds[i].value : dir;
	struct xseg_error err = { "" };
	struct peer *p = peer[i] = peer_create(kinds[i].cls);

	assert_non_null(p);
	snprintf(p->name, sizeof(p->name), "%s", kinds[i].cls->kind);
	snprintf(p->downstream_name, sizeof(p->downstream_name), "%s", kinds[i].downstream);
	p->threads = THREADS;
	assert_int_equal(opt_set(opt_find(kinds[i].cls->opts, kinds[i].key), p, value, &err), 0);
}

static void start(void)
{
	unsigned each = NR_PEERS / nr_sets, failed;
	struct xseg_error err = { "" };

	for (unsigned i = 0; i < nr_sets; i++) {
		set[i] = reactor_set_create(&peer[i * each], each, "", &err);
		assert_non_null(set[i]);
		if (reactor_set_open(set[i], seg, &failed, &err))
			fail_msg("%s", err.text);
		assert_int_equal(reactor_set_start(set[i], &err), 0);
	}
}

static void make_volume(void)
{
	struct xseg_volume_params params = { .attached = seg, .volume = "disk" };
	struct xseg_peer *admin = segrig_client(seg, "admin", 1);
	uint32_t page[XSEG_EXTENT_PAGES];
	struct xseg_error err = { "" };

	assert_int_equal(xseg_pages_take(admin, 1, page), 0);
	while (xseg_peer_find(seg, "volumed") == XSEG_NONE)
		usleep(1000);
	assert_true(xseg_admin_call(segrig_port(admin), xseg_peer_find(seg, "volumed"),
			    "volume create disk size=16M", page, 1, NO_TICK_FOR_EVER) >= 0);
	xseg_peer_close(admin, XSEG_CLOSE_FREE_ARENA);
	if (xseg_volume_open(&params, &volume, &err))
		fail_msg("%s", err.text);
}

static void setup_as(unsigned processes)
{
	struct xseg_config cfg = { .memory_bytes = 64 << 20,
		.nr_requests = 512,
		.nr_ports = 24,
		.huge = XSEG_HUGE_NEVER };

	nr_sets = processes;
	snprintf(dir, sizeof(dir), "/tmp/wakes_test.XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(xseg_create_private(&cfg, &seg, NULL), 0);
	for (unsigned i = 0; i < NR_PEERS; i++)
		make_peer(i);
	start();
	make_volume();
}

static int setup_one(void **state)
{
	(void)state;
	setup_as(1);
	return 0;
}

static int setup_three(void **state)
{
	(void)state;
	setup_as(NR_PEERS);
	return 0;
}

/* What is above has left, and needs it no more. */
static void stop(unsigned i)
{
	unsigned each = NR_PEERS / nr_sets;
	struct reactor_progress progress;

	reactor_set_stop(set[i / each], i % each);
	do {
		usleep(1000);
		reactor_set_progress(set[i / each], i % each, &progress);
	} while (progress.phase != REACTOR_LEFT);
}

static int teardown(void **state)
{
	(void)state;
	xseg_volume_close(volume);
	for (unsigned i = NR_PEERS; i-- > 0;)
		stop(i);
	for (unsigned i = nr_sets; i-- > 0;)
		reactor_set_destroy(set[i]);
	for (unsigned i = 0; i < NR_PEERS; i++)
		peer_destroy(peer[i]);
	assert_int_equal(xseg_check(seg, false, NULL, NULL), 0);
	xseg_detach(seg);
	remove_tree(dir);
	return 0;
}

/* ---- clients ---- */

struct client {
	uint64_t seed;
	uint32_t ios;
	uint64_t sleeps;			/* no_tick_sleeps has to become so many */
	bool ok;
};

#define PAUSE_NS     120000u			/* a reactor polls for 50 us before it sleeps */
#define PAUSE_MAX_NS 100000000u

static void pause_some(uint64_t *seed, uint32_t max_ns)
{
	struct timespec ts = { .tv_nsec = (long)(segrig_random(seed) % max_ns) };

	if (segrig_random(seed) % 4)
		nanosleep(&ts, NULL);
}

/* The longest pause before I/O i of nr. After the last of them it doubles at each 16th. */
static uint32_t pause_max_ns(uint32_t i, uint32_t nr)
{
	uint32_t ns = PAUSE_NS;

	for (; i >= nr + 16 && ns < PAUSE_MAX_NS; i -= 16)
		ns *= 2;
	return ns < PAUSE_MAX_NS ? ns : PAUSE_MAX_NS;
}

static bool one_io(struct xseg_queue *q, uint64_t *seed, uint8_t *buf)
{
	uint64_t dice = segrig_random(seed) % 100;
	struct xseg_io io = { .op = dice < 80   ? XSEG_OP_READ
				    : dice < 98 ? XSEG_OP_WRITE
						: XSEG_OP_FLUSH };

	if (io.op != XSEG_OP_FLUSH) {
		io.offset = segrig_random(seed) % BLOCKS * BLOCK;
		io.size = BLOCK;
		io.buf = buf;
	}
	return xseg_queue_run(q, &io) == (int64_t)io.size;
}

static void *use(void *arg)
{
	struct xseg_queue_params params = { .depth = 2, .copy_bytes = BLOCK };
	struct client *c = arg;
	uint8_t buf[BLOCK] = { 0 };
	struct xseg_queue *q;

	c->ok = xseg_queue_create(volume, &params, &q, NULL) == 0;
	if (!c->ok)
		return NULL;
	for (uint32_t i = 0; c->ok && (i < c->ios || atomic_load(&no_tick_sleeps) < c->sleeps);
		i++) {
		pause_some(&c->seed, pause_max_ns(i, c->ios));
		c->ok = one_io(q, &c->seed, buf);
	}
	xseg_queue_destroy(q);
	return NULL;
}

/* Of each client. */
static uint32_t nr_ios(void)
{
	if (is_long())
		return 250000 / NR_CLIENTS;
	return (SEGRIG_SANITIZED ? 250 : 2500) / NR_CLIENTS;
}

static void use_from_many_threads(void)
{
	struct client client[NR_CLIENTS];
	pthread_t thread[NR_CLIENTS];
	uint64_t sleeps = atomic_load(&no_tick_sleeps) + nr_ios() / 10 + 1;

	for (unsigned i = 0; i < NR_CLIENTS; i++) {
		client[i] = (struct client){ .seed = i + 1, .ios = nr_ios(), .sleeps = sleeps };
		assert_int_equal(pthread_create(&thread[i], NULL, use, &client[i]), 0);
	}
	for (unsigned i = 0; i < NR_CLIENTS; i++) {
		pthread_join(thread[i], NULL);
		assert_true(client[i].ok);
	}
	assert_true(atomic_load(&no_tick_sleeps) >= sleeps);
}

static void peers_of_one_process_lose_no_wake(void **state)
{
	(void)state;
	use_from_many_threads();
}

static void peers_of_a_process_each_lose_no_wake(void **state)
{
	(void)state;
	use_from_many_threads();
}

#define T(name, setup) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(peers_of_one_process_lose_no_wake, setup_one),
		T(peers_of_a_process_each_lose_no_wake, setup_three),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
