/* sosd_cluster_test - sosd through peer.h, one client and one store in one process, on a cluster of
 * its own (tests/system/ceph): the contract of blockers, the effect of a dead OSD on requests, and
 * the messages about missing parts.
 *
 * Without Ceph's programs the tests are skipped. They are too under sanitizers, which do not know
 * librados.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "peers/sosd/sosd.h"
#include "tests/rig/blocker_contract.h"

#define SCRIPT "tests/system/ceph/cluster.sh"

static char dir[300];				/* the cluster's */
static char opt_conf[320], opt_prefix[64];	/* "conf=..." */
static bool is_up, osd_stands;
static struct rig g;

/* ---- the cluster ------------------------------------------------------------------------- */

static int cluster(const char *command)
{
	char line[400];

	snprintf(line, sizeof(line), SCRIPT " %s %s", command, dir);
	return system(line);
}

static void need_cluster(void)
{
	if (!is_up)
		skip();
}

static int end_cluster(void **state)
{
	(void)state;
	if (is_up)
		cluster("down");
	is_up = false;
	return 0;
}

/* Whether this machine can have one. */
static bool can_have_cluster(void)
{
	const char *san = getenv("SAN");

	if (san && *san) {
		print_message("skipped: sanitizers do not know librados\n");
		return false;
	}
	if (access(SCRIPT, X_OK) || system("command -v ceph-mon ceph-osd ceph rados >/dev/null")) {
		print_message(
			"skipped: ceph-mon, ceph-osd or ceph-common is not there (`make deps` "
			"installs them)\n");
		return false;
	}
	return true;
}

static void begin_cluster(void)
{
	const char *build = getenv("BUILD");

	snprintf(dir, sizeof(dir), "%s/tests/sosd-cluster.%d",
		build && !access(build, W_OK) ? build : "build", (int)getpid());
	snprintf(opt_conf, sizeof(opt_conf), "conf=%s/ceph.conf", dir);
	is_up = cluster("up") == 0;
}

/* Whose lock nobody had. */
static void fresh_prefix(void)
{
	static int nr;

	snprintf(opt_prefix, sizeof(opt_prefix), "prefix=t%d", nr++);
}

/* ---- the contract of blockers ------------------------------------------------------------ */

static void open_empty(struct rig *r, uint32_t ports)
{
	static const char *const one[] = { "pool=xseg", opt_conf, "user=xseg", opt_prefix,
		"iodepth=4", NULL };
	static const char *const more[] = { "pool=xseg", opt_conf, "user=xseg", opt_prefix,
		"threads=3", NULL };

	fresh_prefix();
	rig_open(r, &sosd_class, ports == 1 ? one : more, true);
	assert_int_equal(r->peer->nr_ports, ports);
}

/* Also when the OSD stands: it goes on, or nothing would come to an end. */
static void close_store(struct rig *r)
{
	if (osd_stands)
		assert_int_equal(cluster("cont-osd"), 0);
	osd_stands = false;
	rig_close(r);
}

/* The OSD has them, and stands still. Told to go on when the next one has begun, it finds them
 * there. */
static void hold(struct rig *r, uint32_t n)
{
	assert_int_equal(cluster("stop-osd"), 0);
	while (n--)
		peer_port_step_request(&r->peer->ports[0]);
	usleep(100000);
	assert_int_equal(cluster("cont-osd"), 0);
}

static const struct contract contract = {
	.open = open_empty,
	.close = close_store,
	.hold = hold,
	.align = 512,
	.nr_random = 300,
	.nr_torn = 1000,
};

/* ---- the test's own store ---------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	if (is_up)
		open_empty(&g, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (g.seg)
		close_store(&g);
	memset(&g, 0, sizeof(g));
	return 0;
}

static void stop_osd(void)
{
	assert_int_equal(cluster("stop-osd"), 0);
	osd_stands = true;
}

static void go_on(void)
{
	assert_int_equal(cluster("cont-osd"), 0);
	osd_stands = false;
}

/* From now on so much time passes, and the store makes its rounds. */
static void pass_time(uint64_t ns)
{
	uint64_t since;

	rig_step(&g);				/* the clock may not have been read for long */
	since = g.now_ns;
	while (g.now_ns - since < ns) {
		rig_step(&g);
		usleep(1000);
	}
}

#define S UINT64_C(1000000000)

static void tools_see_the_objects(void **state)
{
	char line[1000];

	(void)state;
	need_cluster();
	assert_int_equal(rig_fill(&g, "a b", 0, 5000, 0x41, 0), 5000);
	snprintf(line, sizeof(line),
		"rados -c %s/ceph.conf -p xseg get '%s.a%%20b' - | tr -d A | wc -c | grep -qx 0",
		dir, opt_prefix + 7);
	assert_int_equal(system(line), 0);
	snprintf(line, sizeof(line),
		"rados -c %s/ceph.conf -p xseg stat '%s.a%%20b' | grep -q 'size 5000$'", dir,
		opt_prefix + 7);
	assert_int_equal(system(line), 0);
}

/* A page here and a page there, in all slots of the rig: a request has as many pieces as pages. */
static void scatter_pages(void)
{
	static uint32_t page[XSEG_REQ_PAGES];
	uint32_t slot, i, *pages;

	for (slot = 0; slot < RIG_IOS; slot++) {
		pages = g.pages + (size_t)slot * XSEG_REQ_PAGES;
		memcpy(page, pages, sizeof(page));
		for (i = 0; i < XSEG_REQ_PAGES; i++)
			pages[i] = page[i * 3 % XSEG_REQ_PAGES];	/* 257 is a prime */
	}
}

/* Directly, and by a buffer; with an end of the object within. */
static void pages_that_are_not_side_by_side_are_read_and_written(void **state)
{
	static const uint32_t sizes[] = { 3000, 4096, 2 * 4096, 16 * 4096, MIB };
	static uint8_t data[MIB], got[MIB];
	uint32_t i, k, size;

	(void)state;
	need_cluster();
	scatter_pages();
	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 4096);
	for (k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size = sizes[k];
		rig_op(&g, XSEG_OP_DELETE, "a", 0, 0);
		assert_int_equal(rig_write(&g, "a", 700, data, size, 0), size);
		assert_int_equal(rig_read(&g, "a", 700, got, size), size);
		assert_memory_equal(got, data, size);
		assert_int_equal(rig_read(&g, "a", 700 + size / 2, got, size), size);
		assert_memory_equal(got, data + size / 2, size - size / 2);
		for (i = size - size / 2; i < size; i++)
			assert_int_equal(got[i], 0);
		assert_int_equal(rig_read(&g, "none", 700, got, size), size);
		for (i = 0; i < size; i++)
			assert_int_equal(got[i], 0);
	}
}

static void more_reads_of_many_pieces_than_buffers_are_served(void **state)
{
	static uint8_t data[64 * KIB], got[64 * KIB];
	struct rig_io *io[RIG_IOS - 2];
	uint32_t i, k;

	(void)state;
	need_cluster();
	close_store(&g);
	fresh_prefix();
	rig_open(&g, &sosd_class,
		OPTIONS("pool=xseg", opt_conf, "user=xseg", opt_prefix, "iodepth=64"), true);
	scatter_pages();
	assert_true(RIG_IOS - 2 > SOSD_BOUNCES);
	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 4096);
	assert_int_equal(rig_write(&g, "a", 4096, data, sizeof(data), 0), sizeof(data));
	for (k = 0; k < 5; k++) {
		for (i = 0; i < RIG_IOS - 2; i++)
			io[i] = rig_send(&g, XSEG_OP_READ, "a", 4096, sizeof(data), NULL, 0);
		for (i = 0; i < RIG_IOS - 2; i++) {
			assert_int_equal(rig_wait(&g, io[i]), sizeof(data));
			rig_data(&g, io[i], got, sizeof(got));
			assert_memory_equal(got, data, sizeof(data));
		}
	}
	for (i = 0; i < g.peer->nr_ports; i++)
		assert_int_equal(sosd_of(g.peer)->port[i].calls.nr_spare, SOSD_BOUNCES);
}

static void copies_that_come_at_once_take_turns_with_the_buffer(void **state)
{
	static const char *const to[] = { "c0", "c1", "c2", "c3" };
	struct rig_io *io[4];
	uint32_t i;

	(void)state;
	need_cluster();
	for (i = 0; i < 4; i++)
		assert_int_equal(rig_fill(&g, "a", i * 4096, 4096, (uint8_t)(i + 1), 0), 4096);
	for (i = 0; i < 4; i++)
		io[i] = rig_send_copy(&g, "a", to[i], i * 4096, 4096);
	for (i = 0; i < 4; i++)
		assert_int_equal(rig_wait(&g, io[i]), 4096);
	for (i = 0; i < 4; i++)
		assert_true(rig_holds(&g, to[i], i * 4096, 4096, (uint8_t)(i + 1)));
}

static void an_osd_that_stands_is_a_pause(void **state)
{
	struct rig_io *write, *read;
	uint8_t data[4096];

	(void)state;
	need_cluster();
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x22, 0), 4096);
	memset(data, 0x11, sizeof(data));
	stop_osd();
	write = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	read = rig_send(&g, XSEG_OP_READ, "b", 0, 4096, NULL, 0);
	pass_time(2 * S);
	assert_true(!write->done && !read->done);
	go_on();
	assert_int_equal(rig_wait(&g, write), 4096);
	assert_int_equal(rig_wait(&g, read), 4096);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
}

static unsigned long status_number(const char *key)
{
	char text[XSEG_PAGE_SIZE], line[32];
	const char *at;

	assert_true(rig_admin(&g, "status", text, sizeof(text)) > 0);
	snprintf(line, sizeof(line), "\n%s=", key);
	at = strstr(text, line);
	assert_non_null(at);
	return strtoul(at + strlen(line), NULL, 10);
}

static void all_end(struct rig_io **io, unsigned nr)
{
	unsigned i;

	for (i = 0; i < nr; i++) {
		while (!io[i]->done) {
			rig_step(&g);
			usleep(1000);
		}
		assert_int_equal(io[i]->result, -EIO);
	}
}

static void who_is_asked_nothing_is_not_silent(void **state)
{
	unsigned long before;

	(void)state;
	need_cluster();
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	before = status_number("silences");
	g.real_clock = false;
	rig_advance(&g, 60 * S);
	rig_step(&g);
	g.real_clock = true;
	assert_int_equal(status_number("silences"), before);
}

static void an_osd_that_stands_for_too_long_is_an_error(void **state)
{
	unsigned long trips;
	struct rig_io *io[8];
	uint8_t data[4096];
	uint64_t since;
	unsigned i;

	(void)state;
	need_cluster();
	memset(data, 0x11, sizeof(data));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), 4096);
	trips = status_number("trips");
	stop_osd();
	assert_int_equal(rig_set(&g, "io_timeout", "2s"), 0);
	for (i = 0; i < 8; i++)			/* more than iodepth: some are not even sent */
		io[i] = rig_send(&g, i < 6 ? XSEG_OP_WRITE : XSEG_OP_READ, "a", i * 4096, 4096,
			i < 6 ? data : NULL, 0);
	since = g.now_ns;
	g.real_clock = false;			/* librados' clock is before this one */
	all_end(io, 8);
	g.real_clock = true;
	pass_time(1);
	assert_true(g.now_ns - since >= S);
	rig_status_has(&g, "timeouts=8\n");
	/* those that were not sent have failed with them */
	assert_int_equal(status_number("trips") - trips, 4);
	assert_int_equal(rig_set(&g, "io_timeout", "60s"), 0);
	go_on();
	assert_int_equal(rig_fill(&g, "a", 0, 32768, 0x33, 0), 32768);
	assert_true(rig_holds(&g, "a", 0, 32768, 0x33));
	pass_time(S);
	assert_true(rig_holds(&g, "a", 0, 32768, 0x33));
}

/* What it sent before it died lies in the OSD's socket until the OSD goes on: its successor's write
 * is not undone by it. */
static void what_the_dead_sent_is_not_done_after_what_its_successor_sends(void **state)
{
	struct rig_io *io;
	uint8_t data[4096];
	char line[1000];

	(void)state;
	need_cluster();
	snprintf(line, sizeof(line),
		"ceph -c %s/ceph.conf osd blocklist ls 2>/dev/null | grep -qF '%s'", dir,
		sosd_of(g.peer)->rados.address);
	assert_int_not_equal(system(line), 0);
	memset(data, 0x11, sizeof(data));
	stop_osd();
	io = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	peer_port_step_request(&g.peer->ports[0]);
	usleep(100000);
	rig_restart(&g);			/* nobody says that it may serve, yet */
	rig_status_has(&g, "owner=asking\n");
	pass_time(S);
	assert_false(io->done);
	go_on();
	assert_int_equal(rig_wait(&g, io), 4096);
	rig_status_has(&g, "owner=yes\n");
	assert_int_equal(system(line), 0);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), 4096);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x22));
	pass_time(S);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x22));
}

static void who_was_blocklisted_is_told_and_changes_nothing(void **state)
{
	char line[1000];

	(void)state;
	need_cluster();
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	snprintf(line, sizeof(line), "ceph -c %s/ceph.conf osd blocklist add %s >/dev/null 2>&1",
		dir, sosd_of(g.peer)->rados.address);
	assert_int_equal(system(line), 0);
	while (rig_fill(&g, "a", 0, 4096, 0x22, 0) == 4096)
		pass_time(S / 10);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x33, 0), -EIO);
	rig_restart(&g);
	assert_false(rig_holds(&g, "a", 0, 4096, 0x33));
}

/* What peer_open() says to these options. */
static int try_to_open(const char *const *options, struct xseg_error *err)
{
	struct peer *p = peer_create(&sosd_class);
	struct xseg_config cfg = {
		.memory_bytes = 4u << 20, .nr_requests = 64, .nr_ports = 4, .huge = XSEG_HUGE_NEVER
	};
	const struct opt *o;
	struct xseg *seg;
	char key[16];
	int rc;

	assert_non_null(p);
	for (; *options; options++) {
		snprintf(key, sizeof(key), "%.*s", (int)strcspn(*options, "="), *options);
		o = opt_find(sosd_class.opts, key);
		assert_non_null(o);
		assert_int_equal(opt_set(o, p, strchr(*options, '=') + 1, err), 0);
	}
	assert_int_equal(xseg_create_private(&cfg, &seg, err), 0);
	rc = peer_open(p, seg, err);
	peer_destroy(p);
	xseg_detach(seg);
	return rc;
}

/* ---- two hosts ---------------------------------------------------------------------------- */

static struct rig other;
static _Atomic time_t slept_s;

/* In libc's stead: the clock that counts on while a machine sleeps does not agree with the others,
 * once this one did. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	if (!rc && clock == CLOCK_BOOTTIME)
		now->tv_sec += atomic_load(&slept_s);
	return rc;
}

static bool lock_is_free(void)
{
	char line[1000];

	snprintf(line, sizeof(line),
		"rados -c %s/ceph.conf -p xseg lock info %s:owner xseg | grep -qF '\"lockers\":[]'",
		dir, opt_prefix + 7);
	return system(line) == 0;
}

/* A second segment, when nobody has the lock. The same prefix; its name is another one, as it was
 * made in another second. */
static void open_other(const char *const *options)
{
	usleep(1100000);
	while (!lock_is_free())
		usleep(100000);
	rig_open(&other, &sosd_class, options, true);
}

static void close_other(void)
{
	rig_close(&other);
	memset(&other, 0, sizeof(other));
}

/* A renewal that takes more than a second is of no use: requests wait until one is faster. */
static void open_with_short_lock(void)
{
	close_store(&g);
	fresh_prefix();
	rig_open(&g, &sosd_class,
		OPTIONS("pool=xseg", opt_conf, "user=xseg", opt_prefix, "lock_expiry=1s",
			"io_timeout=600s"), true);
}

/* In order, and in time for the cluster to hear of it. */
static void leave(void)
{
	rig_stop(&g);
	while (!lock_is_free()) {
		assert_int_equal(rig_start(&g), 0);
		rig_stop(&g);
	}
}

static bool is_asking(struct peer *p)
{
	return sosd_owner_state(&sosd_of(p)->owner) == SOSD_ASKING;
}

/* What a store that begins is told; one that is not told in time begins anew. */
static int start_and_be_told(void)
{
	int rc;

	while (!(rc = rig_start(&g)) && is_asking(g.peer))
		rig_kill(&g);
	return rc;
}

static int try_to_open_other(const char *const *options)
{
	struct xseg_config cfg = {
		.memory_bytes = 4u << 20, .nr_requests = 64, .nr_ports = 4, .huge = XSEG_HUGE_NEVER
	};
	struct peer *p = peer_create(&sosd_class);
	struct xseg_error err = { "" };
	char key[16], host[65] = "", text[100];
	struct xseg *seg;
	int rc;

	assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
	snprintf(text, sizeof(text), "are served by %s/", host);
	for (; *options; options++) {
		snprintf(key, sizeof(key), "%.*s", (int)strcspn(*options, "="), *options);
		assert_int_equal(
			opt_set(opt_find(sosd_class.opts, key), p, strchr(*options, '=') + 1, &err),
			0);
	}
	assert_int_equal(xseg_create_private(&cfg, &seg, &err), 0);
	rc = peer_open(p, seg, &err);
	if (rc == -EEXIST)
		assert_non_null(strstr(err.text, text));
	if (!rc && is_asking(p))
		rc = -EAGAIN;
	if (!rc || rc == -EAGAIN)
		peer_close(p, XSEG_CLOSE_ABANDON);
	peer_destroy(p);
	xseg_detach(seg);
	return rc;
}

static bool other_is_refused(const char *const *options)
{
	int rc;

	do {					/* until it is told anything */
		rc = try_to_open_other(options);
	} while (rc == -EAGAIN || rc == -ETIMEDOUT);
	return rc == -EEXIST;
}

static void a_second_host_is_refused_and_told_who_serves(void **state)
{
	static const char *const options[] = { "pool=xseg", opt_conf, "user=xseg", opt_prefix,
		NULL };

	(void)state;
	need_cluster();
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	usleep(1100000);
	assert_true(other_is_refused(options));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), 4096);
	rig_restart(&g);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x22));
	leave();				/* in order: the other need not wait */
	open_other(options);
	assert_true(rig_holds(&other, "a", 0, 4096, 0x22));
	rig_status_has(&other, "owner=yes\n");
	close_other();
	/* its caches do not know what the other one did */
	assert_int_equal(start_and_be_told(), -EEXIST);
	close_store(&g);
	open_other(options);
	close_other();
	memset(&g, 0, sizeof(g));
}

static void a_host_that_died_is_replaced_when_its_lock_has_expired(void **state)
{
	static const char *const options[] = { "pool=xseg", opt_conf, "user=xseg", opt_prefix,
		NULL };

	(void)state;
	need_cluster();
	open_with_short_lock();
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	rig_kill(&g);
	open_other(options);
	assert_true(rig_holds(&other, "a", 0, 4096, 0x11));
	close_other();
}

static void who_could_not_renew_its_lock_sends_nothing_until_it_can(void **state)
{
	struct sosd_owner *owner;
	struct rig_io *io;
	uint8_t data[4096];

	(void)state;
	need_cluster();
	open_with_short_lock();
	owner = &sosd_of(g.peer)->owner;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	sosd_owner_close(owner);
	pass_time(11 * S / 10);
	memset(data, 0x22, sizeof(data));
	io = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	pass_time(S / 5);
	assert_false(io->done);
	rig_status_has(&g, "trips=1\n");
	rig_status_has(&g, "owner=asking\n");
	atomic_store(&owner->lease_end_ns, UINT64_MAX);
	assert_int_equal(rig_wait(&g, io), 4096);
	rig_status_has(&g, "owner=yes\n");
}

static void who_slept_longer_than_its_lock_lasts_sends_nothing_until_it_is_renewed(void **state)
{
	struct sosd_owner *owner;
	struct rig_io *io;
	uint8_t data[4096];

	(void)state;
	need_cluster();
	owner = &sosd_of(g.peer)->owner;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	sosd_owner_close(owner);
	/* longer than this test takes on a machine that is slow */
	atomic_fetch_add(&owner->lease_end_ns, 1000 * S);
	atomic_store(&slept_s, 1031);
	memset(data, 0x22, sizeof(data));
	io = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	pass_time(S / 5);
	assert_false(io->done);
	atomic_store(&slept_s, 0);
	assert_int_equal(rig_wait(&g, io), 4096);
}

/* It does not know of it, as when its machine stood still, and goes on writing. */
static void who_lost_its_lock_changes_nothing_any_more(void **state)
{
	static const char *const options[] = { "pool=xseg", opt_conf, "user=xseg", opt_prefix,
		NULL };
	struct rig_io *io;
	uint8_t data[4096];

	(void)state;
	need_cluster();
	open_with_short_lock();
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	/* nobody renews it, and it does not know what time it is */
	sosd_owner_close(&sosd_of(g.peer)->owner);
	atomic_store(&sosd_of(g.peer)->owner.lease_end_ns, UINT64_MAX);
	memset(data, 0x22, sizeof(data));
	open_other(options);
	/* it serves, and who does what it sent to that object refuses the one before */
	assert_true(rig_holds(&other, "a", 0, 4096, 0x11));
	rig_status_has(&g, "owner=yes\n");
	io = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	assert_int_equal(rig_wait(&g, io), -EIO);
	assert_true(rig_holds(&other, "a", 0, 4096, 0x11));
	assert_int_equal(rig_fill(&other, "a", 0, 4096, 0x33, 0), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), -EIO);
	assert_true(rig_holds(&other, "a", 0, 4096, 0x33));
	close_other();
}

static bool status_says(const char *line)
{
	char text[XSEG_PAGE_SIZE];

	return rig_admin(&g, "status", text, sizeof(text)) > 0 && strstr(text, line);
}

/* Its lock lasts for a second: on a machine that is slow it is asking now and then. */
static void wait_until_it_may_serve(void)
{
	while (!status_says("owner=yes\n")) {
		assert_false(status_says("owner=lost\n"));
		pass_time(S / 10);
	}
}

/* Another one has its lock, before it is renewed. */
static void take_the_lock(void)
{
	const struct sosd_owner *owner = &sosd_of(g.peer)->owner;
	rados_ioctx_t io = owner->rados->io;
	int rc;

	do {					/* until this is faster than who renews it */
		rc = rados_unlock(io, owner->object, "xseg", owner->me);
		assert_true(rc == 0 || rc == -ENOENT);
		rc = rados_lock_exclusive(io, owner->object, "xseg", "other/host", "", NULL, 0);
		assert_true(rc == 0 || rc == -EBUSY);
	} while (rc);
}

static void who_learns_that_it_lost_its_lock_sends_nothing(void **state)
{
	(void)state;
	need_cluster();
	open_with_short_lock();
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	take_the_lock();
	while (!status_says("owner=lost\n"))
		pass_time(S / 10);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
}

/* Its lock expires, another one serves, and leaves in order; all that before it is renewed. Nobody
 * refuses it any more, as when it stood still for longer than it was blocklisted. */
static void who_was_replaced_by_one_that_has_left_sends_nothing(void **state)
{
	static const char record[] = "- other/host";
	const struct sosd_owner *owner;
	rados_ioctx_t io;

	(void)state;
	need_cluster();
	open_with_short_lock();
	owner = &sosd_of(g.peer)->owner;
	io = owner->rados->io;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	take_the_lock();
	assert_int_equal(rados_write_full(io, owner->object, record, strlen(record)), 0);
	assert_int_equal(rados_unlock(io, owner->object, "xseg", "other/host"), 0);
	while (!status_says("owner=lost\n"))
		pass_time(S / 10);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), -EIO);
}

/* What the object of the lock says, for Ceph's tools. */
static bool record_has(const char *text)
{
	char line[1000];

	snprintf(line, sizeof(line),
		"rados -c %s/ceph.conf -p xseg get %s:owner - 2>/dev/null | grep -qF -- '%s'", dir,
		opt_prefix + 7, text);
	return system(line) == 0;
}

/* Nobody refuses it, as above; here it is stopped before its lock is to be renewed. */
static void who_was_replaced_does_not_say_that_it_was_the_last_to_leave(void **state)
{
	static const char *const records[] = { "127.0.0.1:0/1 other/host", "- other/host" };
	struct sosd_owner *owner;
	rados_ioctx_t io;

	(void)state;
	need_cluster();
	for (size_t i = 0; i < 2; i++) {
		close_store(&g);
		open_empty(&g, 1);
		owner = &sosd_of(g.peer)->owner;
		io = owner->rados->io;
		assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
		sosd_owner_close(owner);	/* nobody renews it */
		take_the_lock();
		assert_int_equal(
			rados_write_full(io, owner->object, records[i], strlen(records[i])), 0);
		if (i == 1)			/* it has left, too */
			assert_int_equal(rados_unlock(io, owner->object, "xseg", "other/host"), 0);
		rig_stop(&g);
		assert_true(record_has(records[i]));
		if (i == 1)			/* also not after that */
			assert_int_equal(start_and_be_told(), -EEXIST);
	}
}

/* Else nobody would refuse what it has sent, should it die. */
static void a_record_that_was_removed_is_written_again(void **state)
{
	const struct sosd_owner *owner;
	char line[400];

	(void)state;
	need_cluster();
	open_with_short_lock();
	owner = &sosd_of(g.peer)->owner;
	snprintf(line, sizeof(line), "%s %s", owner->rados->address, owner->me);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_true(record_has(line));
	assert_int_equal(rados_remove(owner->rados->io, owner->object), 0);
	while (!record_has(line))
		usleep(100000);
	wait_until_it_may_serve();
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
}

static void who_may_not_serve_leaves_no_lock_behind(void **state)
{
	struct xseg_error err = { "" };
	char line[1300];

	(void)state;
	need_cluster();
	snprintf(line, sizeof(line),
		"ceph -c %s/ceph.conf auth get-or-create client.nowrite mon 'profile rbd' osd "
		"'allow rx pool=xseg' >%s/client.nowrite.keyring 2>/dev/null",
		dir, dir);
	assert_int_equal(system(line), 0);
	fresh_prefix();
	while (try_to_open(OPTIONS("pool=xseg", opt_conf, "user=nowrite", opt_prefix), &err) ==
		-ETIMEDOUT)
		;
	assert_non_null(strstr(err.text, "osd 'allow rwx pool=xseg'"));
	assert_true(lock_is_free());
}

/* As it could not be renewed for long; but nobody else had it. */
static void a_lock_that_has_expired_is_taken_again(void **state)
{
	const struct sosd_owner *owner;
	int rc;

	(void)state;
	need_cluster();
	open_with_short_lock();
	owner = &sosd_of(g.peer)->owner;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	rc = rados_unlock(owner->rados->io, owner->object, "xseg", owner->me);
	assert_true(rc == 0 || rc == -ENOENT);
	while (lock_is_free())
		pass_time(S / 10);
	wait_until_it_may_serve();
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), 4096);
}

static void all_fails(void)
{
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -EIO);
	assert_int_equal(rig_wait(&g, rig_send(&g, XSEG_OP_READ, "a", 0, 4096, NULL, 0)), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), -EIO);
}

static void a_pool_that_was_removed_does_not_read_as_zeroes(void **state)
{
	char line[1000];

	(void)state;
	need_cluster();
	rig_close(&g);
	memset(&g, 0, sizeof(g));
	snprintf(line, sizeof(line),
		"export CEPH_CONF=%s/ceph.conf; ceph osd pool create gone 1 >/dev/null 2>&1", dir);
	assert_int_equal(system(line), 0);
	rig_open(&g, &sosd_class, OPTIONS("pool=gone", opt_conf, "user=admin"), true);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_true(rig_holds(&g, "none", 0, 4096, 0));
	snprintf(line, sizeof(line),
		"export CEPH_CONF=%s/ceph.conf; ceph osd pool rm gone gone "
		"--yes-i-really-really-mean-it >/dev/null 2>&1",
		dir);
	assert_int_equal(system(line), 0);
	while (rig_op(&g, XSEG_OP_INFO, "a", 0, 0) == 4096)	/* the OSD has not heard of it */
		pass_time(S / 10);
	all_fails();
	/* nor when the lock has gone with the pool, and requests are not even sent */
	assert_int_equal(rig_set(&g, "io_timeout", "1s"), 0);
	while (!sosd_owner_error(&sosd_of(g.peer)->owner))
		pass_time(S / 10);
	all_fails();
}

/* ---- what is missing --------------------------------------------------------------------- */

/* A monitor that is slow is asked again. */
static void refuses(const char *const *options, const char *text)
{
	struct xseg_error err = { "" };
	bool says_so;
	int rc;

	do {
		rc = try_to_open(options, &err);
		assert_true(rc < 0);
		says_so = strstr(err.text, text);
		if (!says_so)
			print_message("'%s' does not say '%s'\n", err.text, text);
	} while (!says_so && rc == -ETIMEDOUT);
	assert_true(says_so);
	assert_null(strchr(err.text, '\n'));
}

static void write_conf(const char *path, const char *from, const char *to)
{
	char line[2000];

	snprintf(line, sizeof(line), "sed 's|^%s.*|%s|' %s/ceph.conf >%s", from, to, dir, path);
	assert_int_equal(system(line), 0);
}

static void what_is_missing_is_named(void **state)
{
	char path[320], conf[330], empty[330], torn[1300];

	(void)state;
	need_cluster();
	snprintf(path, sizeof(path), "%s/other.conf", dir);
	snprintf(conf, sizeof(conf), "conf=%s", path);
	snprintf(empty, sizeof(empty), "conf=%s/none.conf", dir);
	refuses(OPTIONS("pool=xseg", empty, "user=xseg"), "no Ceph configuration at ");
	refuses(OPTIONS("pool=nowhere", opt_conf, "user=xseg"), "there is no pool 'nowhere'");
	refuses(OPTIONS("pool=xseg", opt_conf, "user=nobody"), "no key for client.nobody in ");
	write_conf(path, "keyring =", "keyring = /nonexistent/keyring");
	refuses(OPTIONS("pool=xseg", conf, "user=xseg"),
		"no key for client.xseg in /nonexistent/keyring");
	snprintf(torn, sizeof(torn), "keyring = %s/torn.keyring", dir);
	write_conf(path, "keyring =", torn);
	snprintf(torn, sizeof(torn), "echo torn >%s/torn.keyring", dir);
	assert_int_equal(system(torn), 0);
	refuses(OPTIONS("pool=xseg", conf, "user=xseg"),
		"the key of client.xseg cannot be read from ");
	write_conf(path, "mon_host =", "mon_host = [v2:");
	refuses(OPTIONS("pool=xseg", conf, "user=xseg"),
		"mon_host = [v2: is neither a known host nor an address");
	write_conf(path, "mon_host =", "");
	refuses(OPTIONS("pool=xseg", conf, "user=xseg"), "names no monitor");
	write_conf(path, "keyring =", "key = AQDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==");
	refuses(OPTIONS("pool=xseg", conf, "user=xseg"), "the monitor refuses client.xseg");
	snprintf(torn, sizeof(torn),
		"ceph -c %s/ceph.conf auth get-or-create client.nomon osd 'allow rwx pool=xseg' "
		">%s/client.nomon.keyring 2>/dev/null",
		dir, dir);
	assert_int_equal(system(torn), 0);
	refuses(OPTIONS("pool=xseg", opt_conf, "user=nomon"), "or has no caps for mon");
	write_conf(path, "mon_host =", "mon_host = [v2:127.0.0.1:1/0]");
	refuses(OPTIONS("pool=xseg", conf, "user=xseg"),
		"no monitor answers within 10 s (mon_host = [v2:127.0.0.1:1/0])");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(tools_see_the_objects),
		T(pages_that_are_not_side_by_side_are_read_and_written),
		T(more_reads_of_many_pieces_than_buffers_are_served),
		T(copies_that_come_at_once_take_turns_with_the_buffer),
		T(an_osd_that_stands_is_a_pause),
		T(who_is_asked_nothing_is_not_silent),
		T(an_osd_that_stands_for_too_long_is_an_error),
		T(what_the_dead_sent_is_not_done_after_what_its_successor_sends),
		T(who_was_blocklisted_is_told_and_changes_nothing),
		T(a_second_host_is_refused_and_told_who_serves),
		T(a_host_that_died_is_replaced_when_its_lock_has_expired),
		T(who_could_not_renew_its_lock_sends_nothing_until_it_can),
		T(who_slept_longer_than_its_lock_lasts_sends_nothing_until_it_is_renewed),
		T(who_lost_its_lock_changes_nothing_any_more),
		T(who_learns_that_it_lost_its_lock_sends_nothing),
		T(who_was_replaced_by_one_that_has_left_sends_nothing),
		T(who_was_replaced_does_not_say_that_it_was_the_last_to_leave),
		T(a_record_that_was_removed_is_written_again),
		T(who_may_not_serve_leaves_no_lock_behind),
		T(a_lock_that_has_expired_is_taken_again),
		T(a_pool_that_was_removed_does_not_read_as_zeroes),
		cmocka_unit_test(what_is_missing_is_named),
	};
	int failed = 0;

	if (can_have_cluster()) {
		begin_cluster();		/* which says what went wrong */
		failed = is_up ? contract_run(&contract) : 1;
	}
	return failed + cmocka_run_group_tests(tests, NULL, end_cluster);
}
