/* client_life_test - volumes and queues: opening and its errors, volumed that restarts or leaves,
 * volumes that change, threads, descriptors, forked children. */
#include "tests/rig/client_rig.h"
#include "tests/rig/files.h"
#include "tests/rig/seg_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "xseg/client/queue.h"

static uint8_t plain[1 << 20];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CLIENTRIG_SECOND + (uint64_t)ts.tv_nsec;
}

/* ---- opening ---- */

static int open_fails(struct xseg_volume_params params, const char *says)
{
	struct xseg_error err = { "" };
	struct xseg_volume *v;
	int rc = xseg_volume_open(&params, &v, &err);

	if (!strstr(err.text, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
	return rc;
}

static void what_cannot_be_opened_says_why(void **state)
{
	struct clientrig *g = *state;
	struct xseg *seg = g->seg;

	assert_int_equal(
		open_fails((struct xseg_volume_params){ .volume = "disk" }, "no segment"), -EINVAL);
	assert_int_equal(
		open_fails((struct xseg_volume_params){ .attached = seg }, "volume name"), -EINVAL);
	assert_int_equal(open_fails((struct xseg_volume_params){ .attached = seg, .volume = "a b" },
				 "volume name"),
		-EINVAL);
	assert_int_equal(
		open_fails((struct xseg_volume_params){ .attached = seg, .volume = "none" },
			"no volume 'none'"),
		-ENOENT);
	assert_int_equal(open_fails(
				 (struct xseg_volume_params){
					 .attached = seg, .volume = "disk", .volumed = "other" },
				 "no volumed called other"),
		-ENOENT);
	assert_int_equal(open_fails((struct xseg_volume_params){ .attached = seg,
					    .volume = "disk",
					    .volumed = "a b" },
				 "volumed's name 'a b'"),
		-EINVAL);
	assert_int_equal(open_fails((struct xseg_volume_params){ .segment = "no-such-segment",
					    .volume = "disk" },
				 "no segment"),
		-ENOENT);
	assert_int_equal(
		open_fails((struct xseg_volume_params){ .segment = "a/b", .volume = "disk" },
			"segment name"),
		-EINVAL);
	clientrig_stop_volumed(g);
	assert_int_equal(
		open_fails((struct xseg_volume_params){ .attached = seg, .volume = "disk" },
			"'xseg -s private peer start volumed'"),
		-ENOTCONN);
}

static void a_volumed_that_is_stopped_is_none_of_several(void **state)
{
	struct clientrig *g = *state;
	struct xseg_volume_params params = { .attached = g->seg, .volume = "disk" };
	struct xseg_peer_params other = { .name = "other", .kind = "volumed", .nr_ports = 1 };
	struct xseg_peer *peer;
	struct xseg_volume *v;

	assert_int_equal(xseg_peer_open(g->seg, &other, &peer, NULL), 0);
	assert_int_equal(open_fails(params, "several volumeds"), -EINVAL);
	xseg_peer_close(peer, XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(xseg_volume_open(&params, &v, NULL), 0);
	xseg_volume_close(v);
	clientrig_stop_volumed(g);
	assert_int_equal(open_fails(params, "several volumeds"), -EINVAL);
}

static void who_waits_without_an_end_gets_an_answer(void **state)
{
	struct clientrig *g = *state;
	struct xseg_volume_params params = {
		.attached = g->seg, .volume = "disk", .timeout_ns = UINT64_MAX
	};
	struct xseg_volume *v;

	assert_int_equal(xseg_volume_open(&params, &v, NULL), 0);
	assert_int_equal(xseg_volume_refresh(v), 0);
	xseg_volume_close(v);
}

static void get_name(struct xseg_peer *peer, char *name)
{
	struct xseg_peer_info info;

	assert_true(xseg_peer_get_info(xseg_peer_segment(peer), xseg_peer_index(peer), &info));
	memcpy(name, info.name, sizeof(info.name));
}

/* As where programs of several containers share /dev/shm. */
static void other_processes_of_the_same_pid_leave_names_enough(void **state)
{
	struct clientrig *g = *state;
	struct xseg_config cfg = {
		.memory_bytes = 4 << 20, .nr_ports = 80, .huge = XSEG_HUGE_NEVER
	};
	struct xseg_peer *other[79 - XSEG_RESERVE_PORTS], *client;
	struct xseg *seg;
	char name[XSEG_NAME_MAX];
	unsigned next, i;

	assert_int_equal(xs_client_open(g->seg, 1, &client, NULL), 0);
	get_name(client, name);
	assert_int_equal(sscanf(name, "io.%*d.%u", &next), 1);
	xseg_peer_close(client, XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(xseg_create_private(&cfg, &seg, NULL), 0);
	for (i = 0; i < 79 - XSEG_RESERVE_PORTS; i++) {
		struct xseg_peer_params params = { .name = name, .kind = "client", .nr_ports = 1 };

		snprintf(name, sizeof(name), "io.%d.%u", (int)getpid(), next + 1 + i);
		assert_int_equal(xseg_peer_open(seg, &params, &other[i], NULL), 0);
	}
	assert_int_equal(xs_client_open(seg, 1, &client, NULL), 0);
	xseg_peer_close(client, XSEG_CLOSE_FREE_ARENA);
	while (i-- > 0)
		xseg_peer_close(other[i], XSEG_CLOSE_FREE_ARENA);
	xseg_detach(seg);
}

static void info_says_what_volumed_knows(void **state)
{
	struct clientrig *g = *state;
	struct xseg_volume_info info;

	xseg_volume_get_info(g->v, &info);
	assert_string_equal(info.name, "disk");
	assert_string_equal(info.volumed, "volumed");
	assert_int_equal(info.size_bytes, 16 << 20);
	assert_int_equal(info.object_bytes, 1 << 20);
	assert_int_equal(info.sector_bytes, 512);
	assert_int_equal(info.page_bytes, 4096);
	assert_int_equal(info.generation, info.id >> 16);
	assert_int_equal(info.generation, 1);
}

static void queues_out_of_range_and_of_more_than_there_is_are_refused(void **state)
{
	static const struct {
		struct xseg_queue_params params;
		int rc;
	} wrong[] = {
		{ { .depth = 1025 }, -EINVAL },
		{ { .copy_bytes = 4095 }, -EINVAL },
		{ { .copy_bytes = (1 << 20) + 1 }, -EINVAL },
		{ { .depth = 1024, .copy_bytes = 4096 }, -ENOSPC },
		{ { .depth = 200, .copy_bytes = 1 << 20 }, -ENOMEM },
	};
	struct clientrig *g = *state;
	struct xseg_error err;
	struct xseg_queue *q;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		err.text[0] = '\0';
		assert_int_equal(xseg_queue_create(g->v, &wrong[i].params, &q, &err), wrong[i].rc);
		assert_true(strlen(err.text) > 10);
	}
	assert_null(xseg_queue_buffer(g->q, 1ull << 40));
	assert_null(xseg_queue_buffer(g->q, 60 << 20));
}

static void opening_and_closing_leaves_nothing(void **state)
{
	struct clientrig *g = *state;
	struct xseg_volume_params params = { .attached = g->seg, .volume = "disk" };
	struct xseg_volume *v;
	struct xseg_queue *q;

	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(xseg_volume_open(&params, &v, NULL), 0);
		assert_int_equal(xseg_queue_create(v,
					 &(struct xseg_queue_params){
						 .depth = 1 + i % 8, .copy_bytes = 4096 },
					 &q, NULL),
			0);
		assert_true(i % 2 || xseg_queue_fd(q) >= 0);
		assert_non_null(xseg_queue_buffer(q, 1));
		xseg_queue_destroy(q);
		xseg_volume_close(v);
	}
	xseg_queue_destroy(NULL);
	xseg_volume_close(NULL);
}

static uint64_t free_bytes(struct xseg *seg)
{
	struct xseg_info info;

	xseg_get_info(seg, &info);
	return (uint64_t)info.free_extents * XSEG_EXTENT_SIZE;
}

static void a_queue_takes_as_much_memory_as_it_says(void **state)
{
	static const struct xseg_queue_params params[] = {
		{ 0 }, { .depth = 1, .copy_bytes = 4096 }, { .depth = 5, .copy_bytes = 1000000 },
		{ .depth = 127, .copy_bytes = 1 << 14 }, { .depth = 128, .copy_bytes = 1 << 14 },
	};
	struct clientrig *g = *state;
	struct xseg_queue *q;

	for (unsigned i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		uint64_t before = free_bytes(g->seg);

		assert_int_equal(xseg_queue_create(g->v, &params[i], &q, NULL), 0);
		assert_int_equal(before - free_bytes(g->seg), xseg_queue_memory(&params[i]));
		xseg_queue_destroy(q);
	}
	assert_int_equal(xseg_queue_memory(NULL), xseg_queue_memory(&params[0]));
	assert_int_equal(xseg_queue_memory(NULL), 4 << 20);
}

/* A command of the shell opens and closes one: it must not look at all requests of the segment. */
static void a_client_that_ends_looks_at_its_own_requests_alone(void **state)
{
	enum { REQUESTS = 4096 };
	struct xseg_peer *client;
	struct xseg *seg;
	struct rusage before, after;

	(void)state;
	if (SEGRIG_SANITIZED)
		skip();		/* a sanitizer touches more */
	seg = segrig_private_of(REQUESTS, 16);
	client = segrig_client(seg, "client", 8);
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	xseg_peer_close(client, 0);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	assert_in_range(after.ru_minflt - before.ru_minflt, 0,
		REQUESTS * sizeof(struct xreq) / XSEG_PAGE_SIZE / 4);
	xseg_detach(seg);
}

static void a_segment_in_which_nothing_can_be_opened_is_detached_again(void **state)
{
	struct xseg *seg;
	const char *name = segrig_named(&seg);
	unsigned before = nr_open_files();

	(void)state;
	assert_int_equal(open_fails((struct xseg_volume_params){ .segment = name, .volume = ""
		"disk" },
				 "has no volumed"),
		-ENOENT);
	assert_int_equal(nr_open_files(), before);
	assert_int_equal(xseg_remove(seg, false), 0);
	xseg_detach(seg);
}

/* ---- volumed comes and goes ---- */

static void a_volumed_that_restarts_is_a_pause(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io[8] = { 0 }, *done;

	for (unsigned round = 0; round < 3; round++) {
		clientrig_stop_volumed(g);
		for (unsigned i = 0; i < 8; i++) {
			clientrig_fill(plain + i * 4096, i * 4096, 4096, round);
			io[i] = (struct xseg_io){ .op = XSEG_OP_WRITE,
				.offset = i * 4096,
				.size = 4096,
				.buf = plain + i * 4096 };
			assert_int_equal(xseg_queue_submit(g->q, &io[i]), 0);
		}
		assert_int_equal(xseg_queue_wait(g->q, &done, 1, CLIENTRIG_SECOND / 20), 0);
		clientrig_start_volumed(g, 1);
		for (unsigned i = 0; i < 8; i++) {
			assert_int_equal(xseg_queue_wait(g->q, &done, 1, CLIENTRIG_PATIENCE_NS), 1);
			assert_int_equal(done->result, 4096);
		}
		clientrig_expect(g, 0, 32768, round);
	}
}

static void a_volumed_that_stays_away_is_an_error_that_stays(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io[8] = { 0 }, *done, more = { .op = XSEG_OP_FLUSH };
	struct xseg_error err;
	uint64_t begun;
	void *buf;

	clientrig_reopen(g, CLIENTRIG_SECOND / 5);
	buf = xseg_queue_buffer(g->q, 4096);
	clientrig_stop_volumed(g);
	begun = now_ns();			/* it is missed from the first I/O on */
	for (unsigned i = 0; i < 8; i++) {
		io[i] = (struct xseg_io){ .op = i & 1 ? XSEG_OP_READ : XSEG_OP_WRITE,
			.offset = i * 4096,
			.size = 512 << 10,
			.buf = plain };
		assert_int_equal(xseg_queue_submit(g->q, &io[i]), 0);
	}
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(xseg_queue_wait(g->q, &done, 1, CLIENTRIG_PATIENCE_NS), 1);
		assert_int_equal(done->result, -ENOTCONN);
	}
	assert_true(now_ns() - begun >= CLIENTRIG_SECOND / 5);
	assert_int_equal(xseg_queue_out(g->q), 0);
	assert_int_equal(xseg_queue_submit(g->q, &more), -ENOTCONN);
	assert_int_equal(xseg_queue_run(g->q, &more), -ENOTCONN);
	xseg_queue_buffer_free(g->q, buf);
	assert_int_equal(xseg_queue_wait(g->q, &done, 1, CLIENTRIG_SECOND), 0);
	assert_int_equal(xseg_volume_look(g->v, &err), -ENOTCONN);
	assert_non_null(strstr(err.text, "volumed does not run; start it with"));
	assert_int_equal(xseg_volume_refresh(g->v), -ENOTCONN);
	/* and what to do then */
	xseg_queue_destroy(g->q);
	g->q = NULL;
	clientrig_start_volumed(g, 1);
	clientrig_reopen(g, 0);
	clientrig_fill(plain, 0, 65536, 1);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 0, 65536, plain), 65536);
	clientrig_expect(g, 0, 65536, 1);
}

#define PAUSE_NS (CLIENTRIG_SECOND * 3 / 2)

/* A pause of volumed, of one I/O that waits for it. False: the test stood still until volumed was
 * gone, and by this pause alone. */
static bool a_pause_is_seen(struct clientrig *g, struct xseg_io *io)
{
	uint64_t begun = now_ns();
	struct xseg_io *done;
	uint32_t n;

	clientrig_stop_volumed(g);
	assert_int_equal(xseg_queue_submit(g->q, io), 0);
	n = xseg_queue_wait(g->q, &done, 1, CLIENTRIG_SECOND * 3 / 10);
	assert_true(n == 0 || done->result == -ENOTCONN);
	clientrig_start_volumed(g, 1);
	if (n == 0)
		assert_int_equal(xseg_queue_wait(g->q, &done, 1, CLIENTRIG_PATIENCE_NS), 1);
	if (done->result == 4096)
		return true;
	assert_int_equal(done->result, -ENOTCONN);
	assert_true(now_ns() - begun >= PAUSE_NS);
	return false;
}

static void a_pause_counts_from_its_own_begin(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = { .op = XSEG_OP_READ, .size = 4096, .buf = plain };
	bool first, second = false;

	while (!second) {
		clientrig_reopen(g, PAUSE_NS);
		first = a_pause_is_seen(g, &io);
		usleep(PAUSE_NS / 1000);
		second = first && a_pause_is_seen(g, &io);
	}
}

/* The reads are answered, by the cache, and wait in one batch, when nobody is there to be sent the
 * writes. */
static void a_volumed_that_is_forgotten_amid_copies_is_an_error(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io copy[2] = { 0 }, read = { .op = XSEG_OP_READ, .size = 4096, .buf = plain };
	struct xseg_io *done[3];
	uint64_t before = clientrig_count_all(g, "cached", "ops");

	for (unsigned i = 0; i < 2; i++) {
		copy[i] = (struct xseg_io){
			.op = XSEG_OP_COPY, .offset = (8 + i) << 20, .size = 4096, .from = i << 20
		};
		assert_int_equal(xseg_queue_submit(g->q, &copy[i]), 0);
	}
	assert_int_equal(xseg_queue_submit(g->q, &read), 0);
	xseg_queue_kick(g->q);
	assert_int_equal(clientrig_count_reaches(g, "cached", "ops", before + 3), before + 3);
	clientrig_stop_volumed(g);
	assert_int_equal(xseg_peer_forget(g->seg, xseg_peer_find(g->seg, "volumed")), 0);
	assert_int_equal(xseg_queue_poll(g->q, done, 3), 3);
	assert_int_equal(copy[0].result, -ENOTCONN);
	assert_int_equal(copy[1].result, -ENOTCONN);
	assert_int_equal(read.result, 4096);
	assert_int_equal(xseg_queue_submit(g->q, &read), -ENOTCONN);
}

/* Of another name, in the same place of the table, with a volume of the same id. */
static void another_volumed_in_the_place_of_one_that_was_forgotten_is_sent_nothing(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io write = { .op = XSEG_OP_WRITE, .size = 4096, .buf = plain };
	uint32_t index = xseg_peer_find(g->seg, "volumed");
	struct xseg_peer *other;
	struct xreq *r;

	clientrig_stop_volumed(g);
	assert_int_equal(xseg_peer_forget(g->seg, index), 0);
	assert_int_equal(xseg_peer_open(g->seg,
				 &(struct xseg_peer_params){
					 .name = "other", .kind = "volumed", .nr_ports = 1 },
				 &other,
				 NULL),
		0);
	assert_int_equal(xseg_peer_index(other), index);
	xseg_peer_serve(other);
	assert_int_equal(xseg_volume_refresh(g->v), -ENOTCONN);
	assert_int_equal(xseg_queue_run(g->q, &write), -ENOTCONN);
	assert_int_equal(xseg_port_receive(xseg_peer_port(other, 0), &r, 1), 0);
	xseg_peer_close(other, XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(xseg_peer_forget(g->seg, index), 0);
}

static void what_was_prepared_for_one_that_was_forgotten_is_an_error(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io write[2];
	struct iovec piece;

	for (unsigned i = 0; i < 2; i++) {
		write[i] = (struct xseg_io){
			.op = XSEG_OP_WRITE, .flags = XSEG_IO_GIVE, .offset = i << 20, .size = 4096
		};
		assert_int_equal(xseg_io_prepare(g->q, &write[i], &piece, 1), 1);
	}
	clientrig_stop_volumed(g);
	assert_int_equal(xseg_peer_forget(g->seg, xseg_peer_find(g->seg, "volumed")), 0);
	assert_int_equal(xseg_queue_submit(g->q, &write[0]), -ENOTCONN);
	assert_int_equal(xseg_queue_submit(g->q, &write[1]), -ENOTCONN);
	assert_int_equal(xseg_queue_out(g->q), 0);
	xseg_io_release(g->q, &write[0]);	/* which has been already */
	xseg_io_release(g->q, &write[1]);
	assert_int_equal(xseg_io_prepare(g->q, &write[0], &piece, 1), -ENOTCONN);
}

/* It is not in a lane that anybody could look into, and goes out when the queue is next polled. */
static void a_volumed_that_was_sent_what_is_not_published_is_not_forgotten(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io read = { .op = XSEG_OP_READ, .size = 4096, .buf = plain };
	uint32_t index = xseg_peer_find(g->seg, "volumed");

	assert_int_equal(xseg_queue_submit(g->q, &read), 0);
	clientrig_stop_volumed(g);
	assert_int_equal(xseg_peer_forget(g->seg, index), -ENOTEMPTY);
	clientrig_start_volumed(g, 1);
	assert_int_equal(clientrig_wait(g->q, &read), 4096);
	clientrig_stop_volumed(g);
	assert_int_equal(xseg_peer_forget(g->seg, index), 0);
}

static void a_queue_may_end_with_ios_out(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io[8] = { 0 };

	clientrig_admin(g, "memd", "set latency=100ms");
	for (unsigned i = 0; i < 8; i++) {
		io[i] = (struct xseg_io){
			.op = XSEG_OP_READ, .offset = i << 20, .size = 4096, .buf = plain
		};
		assert_int_equal(xseg_queue_submit(g->q, &io[i]), 0);
	}
	xseg_queue_kick(g->q);
	xseg_queue_destroy(g->q);
	clientrig_admin(g, "memd", "set latency=0");
	assert_int_equal(xseg_queue_create(g->v, NULL, &g->q, NULL), 0);
	clientrig_expect_zeroes(g, 0, 4096);
}

static bool somebody_has(struct clientrig *g, uint32_t volume)
{
	uint32_t volumed = xseg_peer_find(g->seg, "volumed");
	struct xseg_peer_info info;

	for (uint32_t i = 0; i < xseg_nr_peers(g->seg); i++)
		if (xseg_peer_get_info(g->seg, i, &info) &&
			xseg_client_has_volume(&info, volumed, volume))
			return true;
	return false;
}

static void a_queue_says_which_volume_it_has(void **state)
{
	struct clientrig *g = *state;
	struct xseg_volume_info info;

	xseg_volume_get_info(g->v, &info);
	assert_true(somebody_has(g, info.id));
	assert_false(somebody_has(g, info.id + 1));
	xseg_queue_destroy(g->q);
	assert_false(somebody_has(g, info.id));
	assert_int_equal(xseg_queue_create(g->v, NULL, &g->q, NULL), 0);
	assert_true(somebody_has(g, info.id));
}

/* ---- the volume changes ---- */

static void a_volume_that_was_removed_is_stale(void **state)
{
	struct clientrig *g = *state;

	clientrig_fill(plain, 0, 4096, 1);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 0, 4096, plain), 4096);
	clientrig_admin(g, "volumed", "volume remove disk force");
	assert_int_equal(clientrig_do(g, XSEG_OP_READ, 0, 4096, plain), -ESTALE);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE_ZEROES, 0, 16 << 20, NULL), -ESTALE);
	assert_int_equal(clientrig_do(g, XSEG_OP_FLUSH, 0, 0, NULL), -ESTALE);
	assert_int_equal(xseg_volume_refresh(g->v), -ESTALE);
}

static void a_volume_of_the_same_name_is_another_one(void **state)
{
	struct clientrig *g = *state;
	struct xseg_volume_params params = { .attached = g->seg, .volume = "disk" };
	struct xseg_volume_info a, b;
	struct xseg_error err = { "" };
	struct xseg_volume *v = NULL;
	int rc = -EBUSY;

	clientrig_admin(g, "volumed", "volume remove disk force");
	while (rc != -ENOENT) {
		usleep(10000);
		rc = xseg_volume_open(&params, &v, &err);
		assert_true(rc == -EBUSY || rc == -ENOENT);
	}
	clientrig_admin(g, "volumed", "volume create disk size=16M");
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 0, 4096, plain), -ESTALE);
	assert_int_equal(xseg_volume_open(&params, &v, NULL), 0);
	xseg_volume_get_info(g->v, &a);
	xseg_volume_get_info(v, &b);
	assert_int_not_equal(a.id, b.id);
	assert_int_equal(b.generation, a.generation + 1);
	xseg_volume_close(v);
}

static void a_volume_that_grew_or_shrank_says_so(void **state)
{
	struct clientrig *g = *state;
	struct xseg_volume_info info;

	clientrig_admin(g, "volumed", "volume resize disk size=20M");
	/* not before it is asked for */
	assert_int_equal(clientrig_do(g, XSEG_OP_READ, 16 << 20, 4096, plain), -ENXIO);
	assert_int_equal(xseg_volume_refresh(g->v), 0);
	xseg_volume_get_info(g->v, &info);
	assert_int_equal(info.size_bytes, 20 << 20);
	assert_int_equal(clientrig_do(g, XSEG_OP_READ, 16 << 20, 4096, plain), 4096);
	clientrig_admin(g, "volumed", "volume resize disk size=4M");
	/* what volumed says */
	assert_int_equal(clientrig_do(g, XSEG_OP_READ, 16 << 20, 4096, plain), -ENXIO);
	assert_int_equal(xseg_volume_refresh(g->v), 0);
	xseg_volume_get_info(g->v, &info);
	assert_int_equal(info.size_bytes, 4 << 20);
}

static void a_size_that_cannot_be_asked_for_is_an_error(void **state)
{
	struct clientrig *g = *state;
	struct xseg_peer *other[32];
	unsigned nr = 0;
	int rc;

	while ((rc = xs_client_open(g->seg, 1, &other[nr], NULL)) == 0)
		assert_true(++nr < 32);
	assert_int_equal(xseg_volume_refresh(g->v), rc);
	while (nr-- > 0)
		xseg_peer_close(other[nr], XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(xseg_volume_refresh(g->v), 0);
}

/* ---- threads ---- */

#define THREADS 4

struct worker {
	struct xseg_volume *v;
	unsigned nr;
};

static void *works(void *arg)
{
	struct worker *w = arg;
	uint64_t base = (uint64_t)w->nr << 20;
	uint8_t *buf = malloc(65536), *back = malloc(65536);
	struct xseg_io io = { .flags = 0 };
	struct xseg_queue *q;

	assert_int_equal(
		xseg_queue_create(w->v,
			&(struct xseg_queue_params){ .depth = 2, .copy_bytes = 16384 }, &q, NULL),
		0);
	for (unsigned i = 0; i < 100; i++) {
		uint64_t offset = base + i % 13 * 65536;

		clientrig_fill(buf, offset, 65536, i + w->nr);
		io = (struct xseg_io){
			.op = XSEG_OP_WRITE, .offset = offset, .size = 65536, .buf = buf
		};
		assert_int_equal(xseg_queue_run(q, &io), 65536);
		assert_int_equal(xseg_volume_refresh(w->v), 0);
		io = (struct xseg_io){
			.op = XSEG_OP_READ, .offset = offset, .size = 65536, .buf = back
		};
		assert_int_equal(xseg_queue_run(q, &io), 65536);
		assert_memory_equal(buf, back, 65536);
	}
	xseg_queue_destroy(q);
	free(buf);
	free(back);
	return NULL;
}

static void each_thread_has_a_queue(void **state)
{
	struct clientrig *g = *state;
	struct worker w[THREADS];
	pthread_t id[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ g->v, i };
		assert_int_equal(pthread_create(&id[i], NULL, works, &w[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
}

/* ---- the descriptor ---- */

#define PATIENCE_MS ((int)(CLIENTRIG_PATIENCE_NS / 1000000))

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

/* Of that name and kind, and alive; it reads nothing and rings nobody. */
static struct xseg_peer *stand_in_for_volumed(struct clientrig *g)
{
	struct xseg_peer_params params = { .name = "volumed", .kind = "volumed", .nr_ports = 1 };
	struct xseg_peer *peer;

	assert_int_equal(xseg_peer_open(g->seg, &params, &peer, NULL), 0);
	xseg_peer_serve(peer);
	return peer;
}

/* The test is volumed itself, and answers when it has seen that nothing is there. */
static void the_descriptor_is_readable_when_something_is_back(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = { .op = XSEG_OP_READ, .size = 4096, .buf = plain }, *done;
	struct xseg_peer *volumed;
	struct xport *port;
	int fd;

	assert_int_equal(xseg_queue_arm(g->q), -EBADF);
	fd = xseg_queue_fd(g->q);
	assert_true(fd >= 0);
	assert_int_equal(xseg_queue_fd(g->q), fd);
	clientrig_stop_volumed(g);
	volumed = stand_in_for_volumed(g);
	port = segrig_port(volumed);
	for (unsigned i = 0; i < 4; i++) {
		io.offset = i << 20;
		assert_int_equal(xseg_queue_submit(g->q, &io), 0);
		assert_int_equal(xseg_queue_arm(g->q), 0);
		assert_false(is_readable(fd, 20));
		segrig_answer(port, segrig_request(port), 4096);
		assert_true(is_readable(fd, PATIENCE_MS));
		assert_int_equal(xseg_queue_poll(g->q, &done, 1), 1);
		assert_int_equal(done->result, 4096);
		assert_false(is_readable(fd, 1));
	}
	xseg_peer_close(volumed, XSEG_CLOSE_KEEP_ARENA);
	clientrig_start_volumed(g, 1);
	assert_int_equal(xseg_queue_arm(g->q), 0);
	assert_false(is_readable(fd, 50));	/* nothing is out */
}

/* The thread that sleeps for it takes no signal of the program's, and no program that is executed
 * gets the descriptor. */
static void the_descriptor_changes_nothing_for_its_program(void **state)
{
	struct clientrig *g = *state;
	const struct timespec now = { 0 };
	sigset_t usr, before, after;
	int fd;

	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_false(sigismember(&before, SIGUSR1));
	fd = xseg_queue_fd(g->q);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i < NSIG; i++)
		assert_int_equal(sigismember(&after, i), sigismember(&before, i));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	/* one sent to the thread that sleeps would end the program if that did not block it */
	pthread_sigmask(SIG_BLOCK, &usr, NULL);
	pthread_kill(g->q->client.watch.thread, SIGUSR1);
	assert_int_equal(sigtimedwait(&usr, NULL, &now), -1);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Fast answers, so that each moment of arming is met. */
static void an_event_loop_loses_no_wake_up(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io[3] = { 0 }, *done[3];
	int fd = xseg_queue_fd(g->q);
	uint32_t left = 6000, n;

	for (unsigned i = 0; i < 3; i++) {
		io[i] = (struct xseg_io){
			.op = XSEG_OP_READ, .offset = i * 4096, .size = 4096, .buf = plain
		};
		assert_int_equal(xseg_queue_submit(g->q, &io[i]), 0);
	}
	while (left) {
		int rc = xseg_queue_arm(g->q);

		assert_in_range(rc, 0, 1);
		if (rc == 0)
			assert_true(is_readable(fd, PATIENCE_MS));
		n = xseg_queue_poll(g->q, done, 3);
		for (left -= n; n-- > 0;)
			if (left >= 3)
				assert_int_equal(xseg_queue_submit(g->q, done[n]), 0);
		if (left < 3 && xseg_queue_out(g->q) == 0)
			break;
	}
}

static void who_waits_after_arming_gets_it_as_well(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = { .op = XSEG_OP_READ, .size = 4096, .buf = plain };

	assert_true(xseg_queue_fd(g->q) >= 0);
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(xseg_queue_submit(g->q, &io), 0);
		assert_in_range(xseg_queue_arm(g->q), 0, 1);
		assert_int_equal(clientrig_wait(g->q, &io), 4096);
	}
	/* and who ends it */
	assert_int_equal(xseg_queue_submit(g->q, &io), 0);
	assert_in_range(xseg_queue_arm(g->q), 0, 1);
}

static void the_descriptor_tells_that_volumed_is_gone(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = { .op = XSEG_OP_READ, .size = 4096, .buf = plain }, *done;
	int fd;

	clientrig_reopen(g, CLIENTRIG_SECOND / 5);
	fd = xseg_queue_fd(g->q);
	clientrig_stop_volumed(g);
	assert_int_equal(xseg_queue_submit(g->q, &io), 0);
	while (xseg_queue_poll(g->q, &done, 1) == 0)
		if (xseg_queue_arm(g->q) == 0)
			assert_true(is_readable(fd, PATIENCE_MS));
	assert_int_equal(done->result, -ENOTCONN);
}

/* With offers that are out of date, as only a port that is not read for long has them. */
static void fill_lane(struct clientrig *g, uint32_t peer)
{
	struct xport *port = g->q->client.port;
	uint64_t place = atomic_load(&g->seg->reqs[port->req_first].place);
	int to = xs_route_port(g->seg, peer, 0);

	assert_true(to >= 0);
	while (port->nr_backlog == 0)
		xs_offer_by_lane(port, (uint32_t)to, offer_word(port->req_first, place - 1));
}

static void the_descriptor_tells_that_it_is_time_to_look_for_room_in_a_lane(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = { .op = XSEG_OP_READ, .size = 4096, .buf = plain }, *done;
	int fd = xseg_queue_fd(g->q);
	struct xseg_peer *volumed;

	assert_true(fd >= 0);
	clientrig_stop_volumed(g);
	volumed = stand_in_for_volumed(g);
	fill_lane(g, xseg_peer_index(volumed));
	assert_int_equal(xseg_queue_submit(g->q, &io), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(xseg_queue_arm(g->q), 0);
		assert_true(is_readable(fd, PATIENCE_MS));
		assert_int_equal(xseg_queue_poll(g->q, &done, 1), 0);
	}
	xseg_peer_close(volumed, XSEG_CLOSE_KEEP_ARENA);
	clientrig_start_volumed(g, 1);
	while (xseg_queue_poll(g->q, &done, 1) == 0)
		if (xseg_queue_arm(g->q) == 0)
			assert_true(is_readable(fd, PATIENCE_MS));
	assert_int_equal(done->result, 4096);
}

/* ---- forks ---- */

/* Everything refuses, what is out comes back so, and closing what was inherited disturbs nobody. */
static int child_of(struct clientrig *g)
{
	struct xseg_volume_params params = { .attached = g->seg, .volume = "disk" };
	struct xseg_io io = { .op = XSEG_OP_FLUSH }, *done, *rest[6];
	struct xseg_volume *v;
	struct xseg_queue *q;
	bool ok = xseg_queue_submit(g->q, &io) == -ENOTCONN &&
		  xseg_queue_wait(g->q, &done, 1, CLIENTRIG_SECOND) == 1 &&
		  done->result == -ENOTCONN && xseg_queue_out(g->q) == 5 &&
		  xseg_queue_poll(g->q, rest, 6) == 5 && rest[4]->result == -ENOTCONN &&
		  xseg_queue_out(g->q) == 0 && xseg_queue_poll(g->q, &done, 1) == 0 &&
		  xseg_queue_run(g->q, &io) == -ENOTCONN && xseg_queue_arm(g->q) == -ENOTCONN &&
		  xseg_queue_fd(g->q) == -ENOTCONN && !xseg_queue_buffer(g->q, 1) &&
		  xseg_volume_refresh(g->v) == -ENOTCONN &&
		  xseg_volume_open(&params, &v, NULL) == -ENOTCONN &&
		  xseg_queue_create(g->v, NULL, &q, NULL) == -ENOTCONN;

	xseg_queue_kick(g->q);
	xseg_queue_destroy(g->q);
	xseg_volume_close(g->v);
	xseg_detach(g->seg);
	return ok ? 0 : 1;
}

static void a_forked_child_is_refused_and_its_parent_goes_on(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io[6], *done;
	struct xseg_peer *volumed;
	int status;
	pid_t pid;

	assert_true(xseg_queue_fd(g->q) >= 0);
	clientrig_stop_volumed(g);
	volumed = stand_in_for_volumed(g);	/* nothing is answered yet */
	for (unsigned i = 0; i < 6; i++) {	/* more than the queue's depth */
		io[i] = (struct xseg_io){
			.op = XSEG_OP_READ, .offset = i * 4096, .size = 4096, .buf = plain
		};
		assert_int_equal(xseg_queue_submit(g->q, &io[i]), 0);
	}
	assert_in_range(xseg_queue_arm(g->q), 0, 1);
	pid = fork();
	if (pid == 0)
		_exit(child_of(g));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	xseg_peer_close(volumed, XSEG_CLOSE_KEEP_ARENA);
	clientrig_start_volumed(g, 1);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(xseg_queue_wait(g->q, &done, 1, CLIENTRIG_PATIENCE_NS), 1);
		assert_int_equal(done->result, 4096);
	}
	clientrig_fill(plain, 0, 65536, 1);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 0, 65536, plain), 65536);
	clientrig_expect(g, 0, 65536, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLIENT_TEST(what_cannot_be_opened_says_why),
		CLIENT_TEST(a_volumed_that_is_stopped_is_none_of_several),
		CLIENT_TEST(who_waits_without_an_end_gets_an_answer),
		CLIENT_TEST(other_processes_of_the_same_pid_leave_names_enough),
		CLIENT_TEST(info_says_what_volumed_knows),
		CLIENT_TEST(queues_out_of_range_and_of_more_than_there_is_are_refused),
		CLIENT_TEST(opening_and_closing_leaves_nothing),
		CLIENT_TEST(a_queue_takes_as_much_memory_as_it_says),
		cmocka_unit_test(a_client_that_ends_looks_at_its_own_requests_alone),
		cmocka_unit_test(a_segment_in_which_nothing_can_be_opened_is_detached_again),
		CLIENT_TEST(a_volumed_that_restarts_is_a_pause),
		CLIENT_TEST(a_volumed_that_stays_away_is_an_error_that_stays),
		CLIENT_TEST(a_pause_counts_from_its_own_begin),
		CLIENT_TEST(a_volumed_that_is_forgotten_amid_copies_is_an_error),
		CLIENT_TEST(another_volumed_in_the_place_of_one_that_was_forgotten_is_sent_nothing),
		CLIENT_TEST(what_was_prepared_for_one_that_was_forgotten_is_an_error),
		CLIENT_TEST(a_volumed_that_was_sent_what_is_not_published_is_not_forgotten),
		CLIENT_TEST(a_queue_may_end_with_ios_out),
		CLIENT_TEST(a_queue_says_which_volume_it_has),
		CLIENT_TEST(a_volume_that_was_removed_is_stale),
		CLIENT_TEST(a_volume_of_the_same_name_is_another_one),
		CLIENT_TEST(a_volume_that_grew_or_shrank_says_so),
		CLIENT_TEST(a_size_that_cannot_be_asked_for_is_an_error),
		CLIENT_TEST(each_thread_has_a_queue),
		CLIENT_TEST(the_descriptor_is_readable_when_something_is_back),
		CLIENT_TEST(the_descriptor_changes_nothing_for_its_program),
		CLIENT_TEST(an_event_loop_loses_no_wake_up),
		CLIENT_TEST(who_waits_after_arming_gets_it_as_well),
		CLIENT_TEST(the_descriptor_tells_that_volumed_is_gone),
		CLIENT_TEST(the_descriptor_tells_that_it_is_time_to_look_for_room_in_a_lane),
		CLIENT_TEST(a_forked_child_is_refused_and_its_parent_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
