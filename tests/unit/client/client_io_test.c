/* client_io_test - I/O of queues: every operation, sizes, memory, parts, errors. */
#include "tests/rig/client_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MB (1u << 20)

static uint8_t plain[4 * MB + 4096];

/* ---- what goes in comes out ---- */

static void data_of_any_size_at_any_address_comes_back(void **state)
{
	static const struct {
		uint64_t offset, size;
		uint32_t in;
	} at[] = {
		{ 0, 4096, 0 },
		{ 512, 512, 1 },
		{ 4096 - 512, 1024, 7 },
		{ 65536 - 512, 65536 + 1024, 0 },
		{ MB - 4096, 8192, 512 },
		{ 3 * MB + 1536, 2 * MB + 512, 3 },
		{ 16 * MB - 512, 512, 0 },
	};
	struct clientrig *g = *state;

	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		clientrig_fill(plain + at[i].in, at[i].offset, at[i].size, i);
		assert_int_equal(
			clientrig_do(g, XSEG_OP_WRITE, at[i].offset, at[i].size, plain + at[i].in),
			at[i].size);
		clientrig_expect(g, at[i].offset, at[i].size, i);
	}
}

static void what_was_written_is_seen_by_another_volume_handle_and_queue(void **state)
{
	struct xseg_volume_params params = {
		.attached = NULL, .volume = "disk", .volumed = "volumed"
	};
	struct clientrig *g = *state, other = *g;

	params.attached = g->seg;
	clientrig_fill(plain, 0, 65536, 1);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 0, 65536, plain), 65536);
	assert_int_equal(xseg_volume_open(&params, &other.v, NULL), 0);
	assert_int_equal(xseg_queue_create(other.v, NULL, &other.q, NULL), 0);
	clientrig_expect(&other, 0, 65536, 1);
	xseg_volume_close(other.v);		/* the queue keeps it */
	clientrig_expect(&other, 4096, 512, 1);
	xseg_queue_destroy(other.q);
}

static void pieces_of_any_length_are_one_range(void **state)
{
	struct clientrig *g = *state;
	struct iovec iov[] = {
		{ plain, 0 }, { plain + 5, 1 }, { plain + 100, 4095 }, { plain + 9000, 0 },
		  { plain + 10000, 100000 }, { plain + 200000, 96000 },
		{ plain + 400000, 1000 },
	};
	struct xseg_io io = {
		.op = XSEG_OP_WRITE, .offset = 1024, .size = 200192, .iov = iov, .nr_iov = 7
	};
	uint8_t *flat = malloc(200192), *at = flat;

	clientrig_fill(flat, 1024, 200192, 3);
	for (unsigned i = 0; i < 7; i++) {
		uint64_t n = iov[i].iov_len < (uint64_t)(flat + 200192 - at)
				     ? iov[i].iov_len
				     : (uint64_t)(flat + 200192 - at);

		memcpy(iov[i].iov_base, at, n);
		at += n;
	}
	assert_int_equal(xseg_queue_run(g->q, &io), 200192);
	clientrig_expect(g, 1024, 200192, 3);
	memset(plain, 0, sizeof(plain));
	io.op = XSEG_OP_READ;
	assert_int_equal(xseg_queue_run(g->q, &io), 200192);
	for (unsigned i = 0, n = 0; i < 6; n += (unsigned)iov[i++].iov_len)
		assert_memory_equal(iov[i].iov_base, flat + n, iov[i].iov_len);
	free(flat);
}

/* ---- memory of the segment ---- */

static void aligned_memory_of_the_segment_is_sent_as_it_is(void **state)
{
	struct clientrig *g = *state;
	uint8_t *buf = xseg_queue_buffer(g->q, 3 * MB);
	uint64_t before;

	assert_non_null(buf);
	clientrig_fill(buf + 512, 512, 2 * MB, 1);
	before = clientrig_count(g, "disk", "writes");
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 512, 2 * MB, buf + 512), 2 * MB);
	/* of 1 MiB, where a copy has 64 KiB */
	assert_int_equal(clientrig_count_reaches(g, "disk", "writes", before + 3), before + 3);
	clientrig_expect(g, 512, 2 * MB, 1);
	memset(buf, 0, 3 * MB);
	assert_int_equal(clientrig_do(g, XSEG_OP_READ, 512, 2 * MB, buf + 512), 2 * MB);
	clientrig_expect_bytes(buf + 512, 512, 2 * MB, 1);
	assert_int_equal(buf[511], 0);
	assert_int_equal(buf[512 + 2 * MB], 0);
	xseg_queue_buffer_free(g->q, buf);
}

static void memory_of_the_segment_at_another_place_in_its_page_is_copied(void **state)
{
	struct clientrig *g = *state;
	uint8_t *buf = xseg_queue_buffer(g->q, MB);

	clientrig_fill(buf + 1024, 512, 65536, 2);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 512, 65536, buf + 1024), 65536);
	clientrig_expect(g, 512, 65536, 2);
	assert_int_equal(clientrig_do(g, XSEG_OP_READ, 512, 65536, buf + 3), 65536);
	clientrig_expect_bytes(buf + 3, 512, 65536, 2);
}

static void pieces_in_the_segment_and_elsewhere_may_be_mixed(void **state)
{
	struct clientrig *g = *state;
	uint8_t *buf = xseg_queue_buffer(g->q, 4 * MB), *flat = malloc(64 << 10);
	struct iovec iov[] = { { buf + 8192, 4096 }, { buf, 8192 }, { plain + 1, 4096 },
		{ buf + 40960, 12288 + 512 }, { plain + 9000, 3584 },
		{ buf + 2 * MB - 4096, 8192 } };
	struct xseg_io io = {
		.op = XSEG_OP_WRITE, .offset = 8192, .size = 40960, .iov = iov, .nr_iov = 6
	};

	clientrig_fill(flat, 8192, 40960, 4);
	for (unsigned i = 0, n = 0; i < 6; n += (unsigned)iov[i++].iov_len)
		memcpy(iov[i].iov_base, flat + n, iov[i].iov_len);
	assert_int_equal(xseg_queue_run(g->q, &io), 40960);
	clientrig_expect(g, 8192, 40960, 4);
	memset(buf, 0, 4 * MB);
	memset(plain, 0, 16384);
	io.op = XSEG_OP_READ;
	assert_int_equal(xseg_queue_run(g->q, &io), 40960);
	for (unsigned i = 0, n = 0; i < 6; n += (unsigned)iov[i++].iov_len)
		assert_memory_equal(iov[i].iov_base, flat + n, iov[i].iov_len);
	free(flat);
}

static void pages_on_loan_are_copied_from_like_any_memory(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io loan = {
		.op = XSEG_OP_READ, .flags = XSEG_IO_LOAN, .offset = 0, .size = 4096
	};
	struct iovec piece;

	clientrig_fill(plain, 0, 8192, 5);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 0, 8192, plain), 8192);
	assert_int_equal(xseg_queue_run(g->q, &loan), 4096);
	assert_int_equal(xseg_io_data(g->q, &loan, &piece, 1), 1);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 65536, 4096, piece.iov_base), 4096);
	xseg_io_release(g->q, &loan);
	assert_int_equal(clientrig_do(g, XSEG_OP_READ, 65536, 4096, plain), 4096);
	clientrig_expect_bytes(plain, 0, 4096, 5);
}

/* ---- other operations ---- */

static void zeroes_and_discarded_ranges_read_as_zeroes(void **state)
{
	struct clientrig *g = *state;

	clientrig_fill(plain, 0, 4 * MB, 6);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 0, 4 * MB, plain), 4 * MB);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE_ZEROES, 512, 2 * MB, NULL), 2 * MB);
	assert_int_equal(clientrig_do(g, XSEG_OP_DISCARD, 3 * MB, 65536, NULL), 65536);
	clientrig_expect(g, 0, 512, 6);
	clientrig_expect_zeroes(g, 512, 2 * MB);
	clientrig_expect(g, 512 + 2 * MB, 4096, 6);
	clientrig_expect_zeroes(g, 3 * MB, 65536);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE_ZEROES, 0, 16 * MB, NULL), 16 * MB);
	clientrig_expect_zeroes(g, 0, 16 * MB);
}

static void zeroes_are_sent_as_data_to_who_knows_no_other_way(void **state)
{
	struct clientrig *g = *state;

	clientrig_fill(plain, 0, 2 * MB, 7);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 0, 2 * MB, plain), 2 * MB);
	clientrig_admin(g, "cached", "set policy=pass-through");
	clientrig_admin(g, "memd", "set fail=write_zeroes:1:EOPNOTSUPP");
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE_ZEROES, 512, MB + 512, NULL), MB + 512);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE_ZEROES, 65536, 4096, NULL), 4096);
	clientrig_expect(g, 0, 512, 7);
	clientrig_expect_zeroes(g, 512, MB + 512);
	clientrig_expect(g, MB + 1024, 512, 7);
}

static void a_copy_of_any_alignment_is_what_it_was_copied_from(void **state)
{
	static const struct {
		uint64_t from, to, size;
	} at[] = {
		{ 0, 8 * MB, 3 * MB },
		{ 512, 8 * MB + 1024, MB },
		{ 1024, 9 * MB - 512, 512 },
		{ 2 * MB, 0, 2 * MB },
	};
	struct clientrig *g = *state;

	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct xseg_io io = { .op = XSEG_OP_COPY,
			.offset = at[i].to,
			.size = at[i].size,
			.from = at[i].from,
			.flags = i & 1 ? XSEG_IO_FUA : 0 };
		uint8_t *buf = malloc(at[i].size);

		clientrig_fill(plain, at[i].from, at[i].size, 10 + i);
		assert_int_equal(
			clientrig_do(g, XSEG_OP_WRITE, at[i].from, at[i].size, plain), at[i].size);
		assert_int_equal(xseg_queue_run(g->q, &io), at[i].size);
		assert_int_equal(
			clientrig_do(g, XSEG_OP_READ, at[i].to, at[i].size, buf), at[i].size);
		assert_memory_equal(buf, plain, at[i].size);
		free(buf);
	}
}

static void flush_and_fua_reach_the_store(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = {
		.op = XSEG_OP_WRITE, .flags = XSEG_IO_FUA, .offset = 0, .size = 65536, .buf = plain
	};
	uint64_t before = clientrig_count_all(g, "memd", "bytes");

	assert_int_equal(clientrig_do(g, XSEG_OP_FLUSH, 0, 0, NULL), 0);
	clientrig_fill(plain, 0, 65536, 8);
	assert_int_equal(xseg_queue_run(g->q, &io), 65536);
	assert_true(clientrig_count_reaches(g, "memd", "bytes", before + 65536) >= before + 65536);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, MB, 65536, plain), 65536);
	before = clientrig_count_all(g, "memd", "bytes");
	assert_int_equal(clientrig_do(g, XSEG_OP_FLUSH, 0, 0, NULL), 0);
	assert_true(clientrig_count_reaches(g, "memd", "bytes", before + 65536) >= before + 65536);
}

/* ---- many at a time ---- */

static void info_says_how_far_there_may_be_data_also_in_the_cache_alone(void **state)
{
	struct clientrig *g = *state;
	uint64_t before = clientrig_count_all(g, "volumed", "ops");

	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(clientrig_do(g, XSEG_OP_INFO, i * MB, MB, NULL), 0);
	clientrig_count_reaches(g, "volumed", "ops", before + 16);
	clientrig_fill(plain, 3 * MB + 65536, 4096, 1);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 3 * MB + 65536, 4096, plain), 4096);
	for (unsigned flushed = 0; flushed < 2; flushed++) {
		assert_int_equal(clientrig_do(g, XSEG_OP_INFO, 3 * MB, MB, NULL), 65536 + 4096);
		assert_int_equal(
			clientrig_do(g, XSEG_OP_INFO, 3 * MB + 65536 + 512, MB - 65536 - 512, NULL),
			4096 - 512);
		assert_int_equal(clientrig_do(g, XSEG_OP_INFO, 3 * MB, 512, NULL), 512);
		assert_int_equal(
			clientrig_do(g, XSEG_OP_INFO, 3 * MB + 65536 + 4096, 512, NULL), 0);
		assert_int_equal(clientrig_do(g, XSEG_OP_INFO, 2 * MB, MB, NULL), 0);
		assert_int_equal(clientrig_do(g, XSEG_OP_INFO, 4 * MB, MB, NULL), 0);
		assert_int_equal(clientrig_do(g, XSEG_OP_FLUSH, 0, 0, NULL), 0);
	}
	clientrig_admin(g, "memd", "set fail=info:1:EIO");
	assert_int_equal(clientrig_do(g, XSEG_OP_INFO, 3 * MB, MB, NULL), -EIO);
	clientrig_admin(g, "memd", "set fail=");
	assert_int_equal(clientrig_do(g, XSEG_OP_INFO, 3 * MB, 0, NULL), 0);
}

static void more_ios_than_requests_wait_and_all_come_back_once(void **state)
{
	enum { NR = 100 };
	struct clientrig *g = *state;
	struct xseg_io io[NR] = { 0 }, *done[7];
	unsigned seen[NR] = { 0 }, left = NR, n;

	for (unsigned i = 0; i < NR; i++) {
		clientrig_fill(plain + i * 8192, i * 8192, 8192, i);
		io[i] = (struct xseg_io){ .op = XSEG_OP_WRITE,
			.offset = i * 8192,
			.size = 8192,
			.buf = plain + i * 8192,
			.cookie = &seen[i] };
		assert_int_equal(xseg_queue_submit(g->q, &io[i]), 0);
		assert_int_equal(xseg_queue_submit(g->q, &io[i]), -EBUSY);
	}
	assert_int_equal(xseg_queue_out(g->q), NR);
	while (left) {
		n = xseg_queue_wait(g->q, done, 7, CLIENTRIG_PATIENCE_NS);
		assert_in_range(n, 1, 7);
		for (left -= n; n-- > 0;) {
			assert_int_equal(done[n]->result, 8192);
			++*(unsigned *)done[n]->cookie;
		}
	}
	for (unsigned i = 0; i < NR; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(xseg_queue_out(g->q), 0);
	/* at once: none is out */
	assert_int_equal(xseg_queue_wait(g->q, done, 7, CLIENTRIG_SECOND * 3600), 0);
	for (unsigned i = 0; i < NR; i++)
		clientrig_expect(g, i * 8192, 8192, i);
}

static void what_comes_back_while_another_is_run_is_there_for_the_next_poll(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io a = { .op = XSEG_OP_WRITE, .offset = 0, .size = 4096, .buf = plain }, b = a,
		       *done[2];

	b.offset = 4096;
	assert_int_equal(xseg_queue_submit(g->q, &a), 0);
	assert_int_equal(xseg_queue_run(g->q, &b), 4096);
	assert_int_equal(xseg_queue_wait(g->q, done, 2, CLIENTRIG_PATIENCE_NS), 1);
	assert_ptr_equal(done[0], &a);
}

/* ---- errors ---- */

static void what_cannot_be_is_refused_and_never_sent(void **state)
{
	struct iovec small = { plain, 1000 };
	const struct {
		struct xseg_io io;
		int rc;
	} wrong[] = {
		{ { .op = XSEG_OP_READ, .offset = 1, .size = 512, .buf = plain }, -EINVAL },
		{ { .op = XSEG_OP_READ, .offset = 0, .size = 511, .buf = plain }, -EINVAL },
		{ { .op = XSEG_OP_READ, .offset = 0, .size = 512 }, -EINVAL },
		{ { .op = XSEG_OP_WRITE, .offset = 0, .size = 1024, .iov = &small, .nr_iov = 1 },
		  -EINVAL },
		{ { .op = XSEG_OP_READ, .flags = XSEG_IO_FUA, .size = 512, .buf = plain },
		  -EINVAL },
		{ { .op = XSEG_OP_READ, .flags = XSEG_IO_LOAN, .size = 512, .buf = plain },
		  -EINVAL },
		{ { .op = XSEG_OP_READ, .flags = XSEG_IO_LOAN, .offset = 512, .size = 65536 },
		  -EINVAL },
		{ { .op = XSEG_OP_WRITE, .flags = XSEG_IO_GIVE, .size = 4096 }, -EINVAL },
		{ { .op = XSEG_OP_FLUSH, .size = 512 }, -EINVAL },
		{ { .op = XSEG_OP_INFO, .offset = MB - 512, .size = 1024 }, -EINVAL },
		{ { .op = XSEG_OP_INFO, .offset = 512, .size = 511 }, -EINVAL },
		{ { .op = XSEG_OP_INFO, .flags = XSEG_IO_FUA, .size = 512 }, -EINVAL },
		{ { .op = XSEG_OP_INFO, .offset = 16 * MB, .size = 512 }, -ENXIO },
		{ { .op = XSEG_OP_DELETE }, -EINVAL },
		{ { .op = (enum xseg_op)77 }, -EINVAL },
		{ { .op = XSEG_OP_COPY, .offset = 512, .from = 0, .size = 1024 }, -EINVAL },
		{ { .op = XSEG_OP_COPY, .offset = 0, .from = 16 * MB, .size = 512 }, -ENXIO },
		{ { .op = XSEG_OP_READ, .offset = 16 * MB, .size = 512, .buf = plain }, -ENXIO },
		{ { .op = XSEG_OP_DISCARD, .offset = UINT64_MAX - 511, .size = 512 }, -ENXIO },
		{ { .op = XSEG_OP_DISCARD, .offset = 512, .size = UINT64_MAX - 511 }, -ENXIO },
	};
	struct clientrig *g = *state;
	uint64_t before = clientrig_count_all(g, "volumed", "ops");

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct xseg_io io = wrong[i].io;

		assert_int_equal(xseg_queue_submit(g->q, &io), wrong[i].rc);
	}
	assert_int_equal(xseg_queue_out(g->q), 0);
	assert_int_equal(clientrig_count_all(g, "volumed", "ops"), before);
	/* nothing, at the end */
	assert_int_equal(clientrig_do(g, XSEG_OP_READ, 16 * MB, 0, NULL), 0);
}

static void an_error_of_the_store_ends_the_io_and_not_the_queue(void **state)
{
	struct clientrig *g = *state;

	clientrig_admin(g, "cached", "set policy=pass-through");
	clientrig_admin(g, "memd", "set fail=write:1@5:ENOSPC");
	clientrig_fill(plain, 0, 4 * MB, 1);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 0, 4 * MB, plain), -ENOSPC);
	clientrig_admin(g, "memd", "set fail=");
	assert_int_equal(xseg_queue_out(g->q), 0);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 0, 4 * MB, plain), 4 * MB);
	clientrig_expect(g, 0, 4 * MB, 1);
	clientrig_admin(g, "memd", "set fail=read:1:EIO");
	assert_int_equal(clientrig_do(g, XSEG_OP_READ, 0, 4 * MB, plain), -EIO);
	assert_int_equal(clientrig_do(g, XSEG_OP_COPY, 8 * MB, 65536, NULL), -EIO);
	/* not taken for an end of the volume */
	clientrig_admin(g, "memd", "set fail=write:1:EINVAL");
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, 0, 4096, plain), -EINVAL);
	clientrig_admin(g, "memd", "set fail=");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLIENT_TEST(data_of_any_size_at_any_address_comes_back),
		CLIENT_TEST(what_was_written_is_seen_by_another_volume_handle_and_queue),
		CLIENT_TEST(pieces_of_any_length_are_one_range),
		CLIENT_TEST(aligned_memory_of_the_segment_is_sent_as_it_is),
		CLIENT_TEST(memory_of_the_segment_at_another_place_in_its_page_is_copied),
		CLIENT_TEST(pieces_in_the_segment_and_elsewhere_may_be_mixed),
		CLIENT_TEST(pages_on_loan_are_copied_from_like_any_memory),
		CLIENT_TEST(zeroes_and_discarded_ranges_read_as_zeroes),
		CLIENT_TEST(zeroes_are_sent_as_data_to_who_knows_no_other_way),
		CLIENT_TEST(a_copy_of_any_alignment_is_what_it_was_copied_from),
		CLIENT_TEST(flush_and_fua_reach_the_store),
		CLIENT_TEST(info_says_how_far_there_may_be_data_also_in_the_cache_alone),
		CLIENT_TEST(more_ios_than_requests_wait_and_all_come_back_once),
		CLIENT_TEST(what_comes_back_while_another_is_run_is_there_for_the_next_poll),
		CLIENT_TEST(what_cannot_be_is_refused_and_never_sent),
		CLIENT_TEST(an_error_of_the_store_ends_the_io_and_not_the_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
