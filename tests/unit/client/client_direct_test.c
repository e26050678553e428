/* client_direct_test - reads of a queue that need no request, without having been asked to; queues
 * that send each read; volumes that may not be read so; what counts them. */
#include "tests/rig/client_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OBJECT (1u << 20)

static uint8_t plain[128 << 10];

/* ---- the rig ---- */

static void queue_anew(struct clientrig *g, uint32_t direct)
{
	struct xseg_queue_params params = {
		.depth = 4, .copy_bytes = 64 << 10, .direct = direct
	};

	xseg_queue_destroy(g->q);
	g->q = NULL;
	assert_int_equal(xseg_queue_create(g->v, &params, &g->q, NULL), 0);
}

static void write_all(struct clientrig *g, uint64_t offset, uint64_t size, unsigned seed)
{
	for (uint64_t at = 0; at < size; at += sizeof(plain)) {
		uint64_t n = size - at < sizeof(plain) ? size - at : sizeof(plain);

		clientrig_fill(plain, offset + at, n, seed);
		assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, offset + at, n, plain), n);
	}
}

/* So many reads of pages of a range, each looked at. Returns how many were requests. */
static uint64_t read_pages(
	struct clientrig *g, uint64_t offset, uint64_t size, unsigned nr, unsigned seed)
{
	uint64_t before = clientrig_count_all(g, "volumed", "ops");

	for (unsigned i = 0; i < nr; i++)
		clientrig_expect(g, offset + i * 7ull % (size / 4096) * 4096, 4096, seed);
	return clientrig_count_all(g, "volumed", "ops") - before;
}

static uint64_t direct_reads(struct clientrig *g)
{
	return clientrig_count(g, "disk", "direct_reads");
}

/* ---- queues ---- */

static void hot_data_is_read_without_requests(void **state)
{
	struct clientrig *g = *state;

	write_all(g, 0, OBJECT, 1);
	read_pages(g, 0, OBJECT, 600, 1);		/* it learns that it pays */
	read_pages(g, 0, OBJECT, 600, 1);
	assert_in_range(read_pages(g, 0, OBJECT, 1000, 1), 0, 20);
}

static void a_queue_that_is_never_to_sends_each_read(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = { .op = XSEG_OP_READ, .flags = XSEG_IO_DIRECT, .size = 4096,
		.buf = plain };

	queue_anew(g, XSEG_DIRECT_NEVER);
	write_all(g, 0, OBJECT, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(read_pages(g, 0, OBJECT, 500, 1), 500);
	assert_int_equal(direct_reads(g), 0);
	/* but for one that is asked for */
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(xseg_queue_run(g->q, &io), 4096);
	queue_anew(g, XSEG_DIRECT_NEVER);	/* it has counted */
	assert_in_range(direct_reads(g), 30, 39);
}

/* XSEG_IO_DIRECT has no effect beside it. */
static void a_read_that_is_to_leave_nothing_is_always_sent(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = { .op = XSEG_OP_READ, .flags = XSEG_IO_ONCE | XSEG_IO_DIRECT,
		.size = 4096, .buf = plain };
	uint64_t before;

	write_all(g, 0, OBJECT, 1);
	read_pages(g, 0, OBJECT, 600, 1);
	read_pages(g, 0, OBJECT, 600, 1);
	before = clientrig_count_all(g, "volumed", "ops");
	for (io.offset = 0; io.offset < 40 * 4096; io.offset += 4096) {
		assert_int_equal(xseg_queue_run(g->q, &io), 4096);
		clientrig_expect_bytes(plain, io.offset, 4096, 1);
	}
	assert_int_equal(clientrig_count_all(g, "volumed", "ops") - before, 40);
	io.op = XSEG_OP_WRITE_ZEROES;
	assert_int_equal(xseg_queue_run(g->q, &io), -EINVAL);
}

static void a_way_that_is_none_is_refused(void **state)
{
	struct clientrig *g = *state;
	struct xseg_queue_params params = { .direct = XSEG_DIRECT_NEVER + 1 };
	struct xseg_queue *q;

	assert_int_equal(xseg_queue_create(g->v, &params, &q, NULL), -EINVAL);
}

/* Loans, and memory of the segment that a request would have read into. */
static void all_ways_to_read_find_it(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = { .op = XSEG_OP_READ, .flags = XSEG_IO_LOAN, .size = 4096 };
	uint8_t *buf = xseg_queue_buffer(g->q, 4096);
	uint64_t before;
	struct iovec v;

	assert_non_null(buf);
	write_all(g, 0, OBJECT, 1);
	read_pages(g, 0, 65536, 600, 1);
	before = clientrig_count_all(g, "volumed", "ops");
	for (io.offset = 0; io.offset < 65536; io.offset += 4096) {
		assert_int_equal(xseg_queue_run(g->q, &io), 4096);
		assert_int_equal(xseg_io_data(g->q, &io, &v, 1), 1);
		clientrig_expect_bytes(v.iov_base, io.offset, 4096, 1);
		xseg_io_release(g->q, &io);
		assert_int_equal(clientrig_do(g, XSEG_OP_READ, io.offset, 4096, buf), 4096);
		clientrig_expect_bytes(buf, io.offset, 4096, 1);
	}
	assert_in_range(clientrig_count_all(g, "volumed", "ops") - before, 0, 2);
}

/* Through another queue, too: what was acknowledged is read, also at other offsets of the page. */
static void a_write_is_seen_at_once(void **state)
{
	struct clientrig *g = *state;
	struct clientrig other = *g;

	other.q = NULL;
	queue_anew(&other, XSEG_DIRECT_AUTO);
	write_all(g, 0, 65536, 1);
	read_pages(g, 0, 65536, 300, 1);
	read_pages(&other, 0, 65536, 300, 1);
	for (unsigned seed = 2; seed < 300; seed++) {
		uint64_t at = seed % 13 * 4096;

		write_all(seed % 2 ? g : &other, at, 8192, seed);
		clientrig_expect(g, at, 8192, seed);
		clientrig_expect(&other, at + 512, 4096, seed);
	}
	xseg_queue_destroy(other.q);
}

/* ---- whether it pays ---- */

/* Each page is written before it is read, so no read is found. Soon few are looked for, and the
 * rest are the requests of a queue that never looks: the cache writes to the caller's page, and
 * lends none. */
static void reads_of_new_data_are_seldom_looked_for(void **state)
{
	struct clientrig *g = *state;
	uint8_t *buf = xseg_queue_buffer(g->q, 4096);

	assert_non_null(buf);
	for (unsigned i = 0; i < 1000; i++) {
		write_all(g, i % 16 * 4096, 4096, i);
		assert_int_equal(clientrig_do(g, XSEG_OP_READ, i % 16 * 4096, 4096, buf), 4096);
		clientrig_expect_bytes(buf, i % 16 * 4096, 4096, i);
	}
	assert_int_equal(direct_reads(g), 0);
	assert_in_range(clientrig_count_all(g, "cached", "lent_bytes") / 4096, 16, 80);
}

/* ---- volumes that may not ---- */

/* Its own policy is set while the client knows where its data is: each read is a request from then
 * on, and after it was taken back reads need none. */
static void a_volume_that_is_not_to_be_cached_is_read_by_requests(void **state)
{
	struct clientrig *g = *state;
	struct xseg_volume_info info;
	char line[80];

	xseg_volume_get_info(g->v, &info);
	write_all(g, 0, OBJECT, 1);
	read_pages(g, 0, OBJECT, 1200, 1);
	assert_in_range(read_pages(g, 0, OBJECT, 500, 1), 0, 20);
	snprintf(line, sizeof(line), "volume-set id=%u policy=pass-through", info.id);
	clientrig_admin(g, "cached", line);
	assert_int_equal(read_pages(g, 0, OBJECT, 3000, 1), 3000);
	snprintf(line, sizeof(line), "volume-set id=%u policy=", info.id);
	clientrig_admin(g, "cached", line);
	for (unsigned i = 0; i < 8; i++)
		read_pages(g, 0, OBJECT, 1000, 1);
	assert_in_range(read_pages(g, 0, OBJECT, 500, 1), 0, 20);
}

/* The store refuses writes, so the volume does not come to the end of its dirty data. */
static void a_volume_that_drains_to_pass_through_is_read_by_requests(void **state)
{
	struct clientrig *g = *state;
	struct xseg_volume_info info;
	uint64_t requests = 0;
	char line[80];

	xseg_volume_get_info(g->v, &info);
	clientrig_admin(g, "memd", "set fail=write:1:EIO");
	write_all(g, 0, OBJECT, 1);
	read_pages(g, 0, OBJECT, 1200, 1);
	assert_in_range(read_pages(g, 0, OBJECT, 500, 1), 0, 20);
	snprintf(line, sizeof(line), "volume-set id=%u policy=pass-through", info.id);
	clientrig_admin(g, "cached", line);
	for (unsigned i = 0; i < 3; i++)
		requests += read_pages(g, 0, OBJECT, 500, 1);
	clientrig_admin(g, "memd", "set fail=");
	assert_int_equal(requests, 1500);
}

/* ---- counting ---- */

/* All reads are reads of the volume. */
static void the_volume_counts_them(void **state)
{
	struct clientrig *g = *state;
	uint64_t reads;

	write_all(g, 0, OBJECT, 1);
	read_pages(g, 0, OBJECT, 1000, 1);
	queue_anew(g, XSEG_DIRECT_AUTO);	/* what was counted late */
	reads = clientrig_count_reaches(
		g, "disk", "reads", 1000 - clientrig_count(g, "disk", "direct_reads"));
	assert_int_equal(reads + direct_reads(g), 1000);
	assert_int_equal(clientrig_count(g, "disk", "direct_bytes"), direct_reads(g) * 4096);
	assert_in_range(direct_reads(g), 500, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLIENT_TEST(hot_data_is_read_without_requests),
		CLIENT_TEST(a_queue_that_is_never_to_sends_each_read),
		CLIENT_TEST(a_read_that_is_to_leave_nothing_is_always_sent),
		CLIENT_TEST(a_way_that_is_none_is_refused),
		CLIENT_TEST(all_ways_to_read_find_it),
		CLIENT_TEST(a_write_is_seen_at_once),
		CLIENT_TEST(reads_of_new_data_are_seldom_looked_for),
		CLIENT_TEST(a_volume_that_is_not_to_be_cached_is_read_by_requests),
		CLIENT_TEST(a_volume_that_drains_to_pass_through_is_read_by_requests),
		CLIENT_TEST(the_volume_counts_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
