/* client_lend_test - queues: reads that borrow the cache's pages, writes into pages that it lent.
 */
#include "tests/rig/client_rig.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECES 20

static uint8_t plain[1 << 20];

static void write_plain(struct clientrig *g, uint64_t offset, uint64_t size, unsigned seed)
{
	clientrig_fill(plain, offset, size, seed);
	assert_int_equal(clientrig_do(g, XSEG_OP_WRITE, offset, size, plain), size);
}

/* Data of a loan, in pieces, is what was written. */
static void expect_loan(struct clientrig *g, struct xseg_io *io, unsigned seed)
{
	struct iovec piece[PIECES];
	uint32_t nr = xseg_io_data(g->q, io, piece, PIECES);
	uint64_t at = io->offset;

	for (uint32_t i = 0; i < nr; at += piece[i++].iov_len)
		clientrig_expect_bytes(piece[i].iov_base, at, piece[i].iov_len, seed);
	assert_int_equal(at, io->offset + io->size);
}

static void a_loan_shows_what_was_there_until_it_is_released(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = {
		.op = XSEG_OP_READ, .flags = XSEG_IO_LOAN, .offset = 512, .size = 32768
	};

	write_plain(g, 0, 65536, 1);
	assert_int_equal(xseg_queue_run(g->q, &io), 32768);
	/* its whole pages */
	assert_true(clientrig_count_reaches(g, "cached", "lent_bytes", 28672) >= 28672);
	expect_loan(g, &io, 1);
	write_plain(g, 0, 65536, 2);
	expect_loan(g, &io, 1);
	assert_int_equal(xseg_queue_submit(g->q, &io), -EBUSY);
	xseg_io_release(g->q, &io);
	xseg_io_release(g->q, &io);		/* once more is nothing */
	assert_int_equal(xseg_queue_run(g->q, &io), 32768);
	expect_loan(g, &io, 2);
	xseg_io_release(g->q, &io);
}

/* An I/O that is used again still says how many pieces it had. */
static void a_loan_without_pieces_looks_at_none(void **state)
{
	struct clientrig *g = *state;
	struct iovec piece = { plain, 4096 };
	struct xseg_io io = { .op = XSEG_OP_WRITE, .size = 4096, .iov = &piece, .nr_iov = 1 };

	clientrig_fill(plain, 0, 4096, 6);
	assert_int_equal(xseg_queue_run(g->q, &io), 4096);
	io.op = XSEG_OP_READ;
	io.flags = XSEG_IO_LOAN;
	io.iov = NULL;
	assert_int_equal(xseg_queue_run(g->q, &io), 4096);
	expect_loan(g, &io, 6);
	xseg_io_release(g->q, &io);
}

/* It would be told as written, and was read once more. */
static void a_loan_that_is_not_released_is_no_write(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = { .op = XSEG_OP_READ, .flags = XSEG_IO_LOAN, .size = 4096 };

	write_plain(g, 0, 4096, 7);
	assert_int_equal(xseg_queue_run(g->q, &io), 4096);
	clientrig_fill(plain, 0, 4096, 8);
	io.op = XSEG_OP_WRITE;
	io.flags = 0;
	io.buf = plain;
	assert_int_equal(xseg_queue_run(g->q, &io), -EBUSY);
	xseg_io_release(g->q, &io);
	assert_int_equal(xseg_queue_run(g->q, &io), 4096);
	clientrig_expect(g, 0, 4096, 8);
}

static void a_loan_of_what_was_never_written_is_zeroes(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = {
		.op = XSEG_OP_READ, .flags = XSEG_IO_LOAN, .offset = 1 << 20, .size = 8192
	};
	struct iovec piece[PIECES];
	uint64_t all = 0;

	assert_int_equal(xseg_queue_run(g->q, &io), 8192);
	for (uint32_t i = 0, nr = xseg_io_data(g->q, &io, piece, PIECES); i < nr;
		all += piece[i++].iov_len)
		for (uint64_t k = 0; k < piece[i].iov_len; k++)
			assert_int_equal(((uint8_t *)piece[i].iov_base)[k], 0);
	assert_int_equal(all, 8192);
	xseg_io_release(g->q, &io);
}

static void loans_take_of_the_depth_and_the_rest_goes_on(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io[4] = { 0 }, *done[4];

	write_plain(g, 0, 65536, 3);
	for (unsigned i = 0; i < 4; i++) {
		io[i] = (struct xseg_io){
			.op = XSEG_OP_READ, .flags = XSEG_IO_LOAN, .offset = i * 4096, .size = 4096
		};
		assert_int_equal(xseg_queue_run(g->q, &io[i]), 4096);
	}
	assert_int_equal(clientrig_do(g, XSEG_OP_READ, 0, 4096, plain), -EDEADLK);
	assert_int_equal(xseg_queue_wait(g->q, done, 4, CLIENTRIG_SECOND), 0);
	xseg_io_release(g->q, &io[2]);
	clientrig_expect(g, 0, 65536, 3);
	for (unsigned i = 0; i < 4; i++)
		xseg_io_release(g->q, &io[i]);
}

static void an_io_that_waited_for_a_loan_is_sent_when_that_is_released(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io[4] = { 0 },
		       late = { .op = XSEG_OP_READ, .offset = 0, .size = 4096, .buf = plain };

	for (unsigned i = 0; i < 4; i++) {
		io[i] = (struct xseg_io){
			.op = XSEG_OP_READ, .flags = XSEG_IO_LOAN, .offset = i * 4096, .size = 4096
		};
		assert_int_equal(xseg_queue_run(g->q, &io[i]), 4096);
	}
	assert_int_equal(xseg_queue_submit(g->q, &late), 0);
	xseg_io_release(g->q, &io[0]);
	assert_int_equal(clientrig_wait(g->q, &late), 4096);
	for (unsigned i = 0; i < 4; i++)
		xseg_io_release(g->q, &io[i]);
}

/* Prepares, writes the data where it says, submits, waits. */
static void give(struct clientrig *g, uint64_t offset, uint64_t size, unsigned seed)
{
	struct xseg_io io = {
		.op = XSEG_OP_WRITE, .flags = XSEG_IO_GIVE, .offset = offset, .size = size
	};
	struct iovec piece[PIECES];
	int nr = xseg_io_prepare(g->q, &io, piece, PIECES);
	uint64_t at = offset;

	assert_in_range(nr, 1, PIECES);
	for (int i = 0; i < nr; at += piece[i++].iov_len)
		clientrig_fill(piece[i].iov_base, at, piece[i].iov_len, seed);
	assert_int_equal(at, offset + size);
	assert_int_equal(xseg_queue_run(g->q, &io), size);
}

static void what_was_written_in_place_is_there(void **state)
{
	struct clientrig *g = *state;

	/* what is written for the first time lets go of no page that could be lent */
	for (unsigned i = 0; i < 120; i++)
		give(g, i % 40 * 65536, 65536, 4);
	for (unsigned i = 0; i < 40; i++)
		give(g, (4 << 20) + 512 + i * 40960, 32768, 5);
	for (unsigned i = 0; i < 40; i++) {
		clientrig_expect(g, i * 65536, 65536, 4);
		clientrig_expect(g, (4 << 20) + 512 + i * 40960, 32768, 5);
	}
	assert_true(clientrig_count_reaches(g, "cached", "given_bytes", 65536) >= 65536);
}

static void a_write_that_may_be_given_is_copied_into_what_was_lent(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io[64] = { 0 }, *done;

	for (unsigned n = 0; n < 4 * 64; n++) {
		unsigned i = n % 64;

		clientrig_fill(plain + i * 16384, i * 16384, 16384, n / 64);
		io[i] = (struct xseg_io){ .op = XSEG_OP_WRITE,
			.flags = XSEG_IO_GIVE | (i % 8 == 7 ? XSEG_IO_FUA : 0),
			.offset = i * 16384,
			.size = 16384,
			.buf = plain + i * 16384 };
		assert_int_equal(xseg_queue_submit(g->q, &io[i]), 0);
		while (xseg_queue_out(g->q) > (i < 63 ? 8 : 0)) {
			assert_int_equal(xseg_queue_wait(g->q, &done, 1, CLIENTRIG_PATIENCE_NS), 1);
			assert_int_equal(done->result, 16384);
		}
	}
	clientrig_expect(g, 0, 1 << 20, 3);
	assert_true(clientrig_count_reaches(g, "cached", "given_bytes", 16384) >= 16384);
}

static void a_slot_that_was_lent_pages_serves_other_ios_too(void **state)
{
	struct clientrig *g = *state;
	uint8_t *buf = xseg_queue_buffer(g->q, 65536);
	struct xseg_io io = {
		.op = XSEG_OP_WRITE, .flags = XSEG_IO_GIVE, .offset = 0, .size = 65536, .buf = buf
	};

	for (unsigned i = 0; i < 8; i++) {
		give(g, 1 << 20, 65536, i);
		clientrig_fill(buf, 0, 65536, i + 1);
		assert_int_equal(xseg_queue_run(g->q, &io), 65536);
		clientrig_expect(g, 0, 65536, i + 1);
		clientrig_expect(g, 1 << 20, 65536, i);
	}
}

static void what_was_prepared_and_not_submitted_changes_nothing(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = {
		.op = XSEG_OP_WRITE, .flags = XSEG_IO_GIVE, .offset = 0, .size = 4096
	};
	struct iovec piece[2];

	write_plain(g, 0, 4096, 1);
	give(g, 8192, 4096, 1);
	assert_int_equal(xseg_io_prepare(g->q, &io, piece, 2), 1);
	memset(piece[0].iov_base, 0xee, 4096);
	xseg_io_release(g->q, &io);
	clientrig_expect(g, 0, 4096, 1);
	clientrig_expect(g, 8192, 4096, 1);
}

/* Its data is where that range has it, in pages that only its own queue can send. */
static void what_was_prepared_is_submitted_as_it_was_or_not_at_all(void **state)
{
	struct clientrig *g = *state;
	const struct xseg_io was = {
		.op = XSEG_OP_WRITE, .flags = XSEG_IO_GIVE, .offset = 4096, .size = 8192
	};
	struct xseg_io io = was;
	struct xseg_queue *other;
	struct iovec piece[3];

	write_plain(g, 0, 65536, 1);
	assert_int_equal(xseg_queue_create(g->v, &(struct xseg_queue_params){ .depth = 4 }, &other,
				 NULL),
		0);
	assert_true(xseg_io_prepare(g->q, &io, piece, 3) > 0);
	io.offset += 512;
	assert_int_equal(xseg_queue_submit(g->q, &io), -EINVAL);
	io.offset = was.offset;
	io.size -= 512;
	assert_int_equal(xseg_queue_submit(g->q, &io), -EINVAL);
	io.size = was.size;
	io.buf = plain;
	assert_int_equal(xseg_queue_submit(g->q, &io), -EINVAL);
	io.buf = NULL;
	io.flags |= XSEG_IO_LOAN;
	assert_int_equal(xseg_queue_submit(g->q, &io), -EINVAL);
	io.flags = was.flags;
	assert_int_equal(xseg_queue_submit(other, &io), -EINVAL);
	xseg_io_release(other, &io);
	assert_int_equal(xseg_io_prepare(g->q, &io, piece, 3), -EBUSY);
	assert_int_equal(xseg_queue_out(g->q) + xseg_queue_out(other), 0);
	xseg_io_release(g->q, &io);
	xseg_queue_destroy(other);
	clientrig_expect(g, 0, 65536, 1);
}

/* It may be moved, and has one owner: it is not sent twice, nor free while it is out. */
static void of_what_was_prepared_one_copy_is_submitted(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = {
		.op = XSEG_OP_WRITE, .flags = XSEG_IO_GIVE, .offset = 4096, .size = 4096
	}, moved, *done[2];
	struct iovec piece[2];

	assert_int_equal(xseg_io_prepare(g->q, &io, piece, 2), 1);
	clientrig_fill(piece[0].iov_base, 4096, 4096, 1);
	moved = io;
	assert_int_equal(xseg_queue_submit(g->q, &moved), 0);
	assert_int_equal(xseg_queue_submit(g->q, &io), -EINVAL);
	xseg_io_release(g->q, &io);
	assert_int_equal(xseg_queue_wait(g->q, done, 2, CLIENTRIG_PATIENCE_NS), 1);
	assert_ptr_equal(done[0], &moved);
	assert_int_equal(moved.result, 4096);
	assert_int_equal(xseg_queue_submit(g->q, &io), -EINVAL);
	clientrig_expect(g, 4096, 4096, 1);
}

static void what_was_prepared_may_still_become_fua(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = {
		.op = XSEG_OP_WRITE, .flags = XSEG_IO_GIVE, .offset = 4096, .size = 4096
	};
	struct iovec piece[2];
	uint64_t before;

	assert_int_equal(clientrig_do(g, XSEG_OP_FLUSH, 0, 0, NULL), 0);
	before = clientrig_count_all(g, "memd", "bytes");
	assert_int_equal(xseg_io_prepare(g->q, &io, piece, 2), 1);
	clientrig_fill(piece[0].iov_base, 4096, 4096, 1);
	io.flags |= XSEG_IO_FUA;
	assert_int_equal(xseg_queue_run(g->q, &io), 4096);
	assert_true(clientrig_count_reaches(g, "memd", "bytes", before + 4096) >= before + 4096);
	clientrig_expect(g, 4096, 4096, 1);
}

static void no_more_is_prepared_than_the_depth(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io[5] = { 0 };
	struct iovec piece[2];

	for (unsigned i = 0; i < 5; i++) {
		io[i] = (struct xseg_io){
			.op = XSEG_OP_WRITE, .flags = XSEG_IO_GIVE, .offset = 0, .size = 4096
		};
		assert_int_equal(xseg_io_prepare(g->q, &io[i], piece, 2), i < 4 ? 1 : -EAGAIN);
	}
	for (unsigned i = 0; i < 5; i++)
		xseg_io_release(g->q, &io[i]);
	clientrig_expect_zeroes(g, 0, 4096);
}

/* Loans and gifts that are held when the queue ends are let go of: clientrig_teardown() counts. */
static void a_queue_ends_with_loans_and_gifts(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io loan = {
		.op = XSEG_OP_READ, .flags = XSEG_IO_LOAN, .offset = 0, .size = 4096
	};
	struct xseg_io gift = {
		.op = XSEG_OP_WRITE, .flags = XSEG_IO_GIVE, .offset = 0, .size = 4096
	};
	struct iovec piece[2];

	give(g, 0, 65536, 1);
	assert_int_equal(xseg_queue_run(g->q, &loan), 4096);
	assert_int_equal(xseg_io_prepare(g->q, &gift, piece, 2), 1);
}

static int64_t read_directly(struct clientrig *g, uint64_t offset, uint64_t size, void *buf)
{
	struct xseg_io io = { .op = XSEG_OP_READ,
		.flags = XSEG_IO_DIRECT,
		.offset = offset,
		.size = size,
		.buf = buf };

	return xseg_queue_run(g->q, &io);
}

static void expect_directly(struct clientrig *g, uint64_t offset, uint64_t size, unsigned seed)
{
	memset(plain, 0xee, size);
	assert_int_equal(read_directly(g, offset, size, plain), size);
	clientrig_expect_bytes(plain, offset, size, seed);
}

static void what_the_cache_has_is_read_without_a_request(void **state)
{
	struct clientrig *g = *state;
	uint64_t before;

	write_plain(g, 0, 1 << 20, 1);
	for (uint64_t at = 0; at < 1 << 20; at += 65536)
		expect_directly(g, at, 65536, 1);	/* each page is lent once */
	before = clientrig_count_all(g, "volumed", "ops");
	for (unsigned i = 0; i < 200; i++)
		expect_directly(g, i * 4608 % (1 << 19), 4096, 1);
	assert_int_equal(clientrig_count_all(g, "volumed", "ops"), before);
}

/* Also to memory into which a request would have had the data written. */
static void what_is_found_goes_to_memory_of_the_segment_too(void **state)
{
	struct clientrig *g = *state;
	uint8_t *buf = xseg_queue_buffer(g->q, 65536);
	uint64_t before;

	assert_non_null(buf);
	write_plain(g, 0, 65536, 1);
	assert_int_equal(read_directly(g, 0, 65536, buf), 65536);	/* each page is lent once */
	clientrig_expect_bytes(buf, 0, 65536, 1);
	before = clientrig_count_all(g, "volumed", "ops");
	for (uint64_t at = 0; at < 65536; at += 4096) {
		memset(buf + at, 0xee, 4096);
		assert_int_equal(read_directly(g, at, 4096, buf + at), 4096);
		clientrig_expect_bytes(buf + at, at, 4096, 1);
	}
	assert_int_equal(clientrig_count_all(g, "volumed", "ops"), before);
}

/* Before and after each write, which makes the page another one. */
static void it_is_as_new_as_any_read(void **state)
{
	struct clientrig *g = *state;

	for (unsigned seed = 1; seed < 200; seed++) {
		write_plain(g, seed % 3 * 4096, 8192, seed);
		expect_directly(g, seed % 3 * 4096, 8192, seed);
		expect_directly(g, seed % 3 * 4096 + 512, 4096, seed);
	}
}

/* Parts: larger than a copy, in several objects, aligned like nothing; some are found, others asked
 * for. */
static void a_large_read_may_find_some_parts_and_ask_for_others(void **state)
{
	struct clientrig *g = *state;
	uint64_t size = 800 << 10;

	write_plain(g, 512, 1 << 20, 3);
	write_plain(g, (1 << 20) + 512, 1 << 20, 3);
	for (unsigned i = 0; i < 20; i++) {
		expect_directly(g, 512 + i * 53248, size, 3);
		write_plain(g, 512 + i * 53248, 512, 3);
	}
}

static void a_loan_that_was_found_is_as_any(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = { .op = XSEG_OP_READ,
		.flags = XSEG_IO_LOAN | XSEG_IO_DIRECT,
		.offset = 4096,
		.size = 32768 };

	write_plain(g, 0, 65536, 1);
	expect_directly(g, 0, 65536, 1);
	for (unsigned seed = 2; seed < 20; seed++) {
		assert_int_equal(xseg_queue_run(g->q, &io), 32768);
		expect_loan(g, &io, seed - 1);
		write_plain(g, 0, 65536, seed);
		expect_loan(g, &io, seed - 1);
		xseg_io_release(g->q, &io);
		expect_directly(g, 0, 65536, seed);
	}
}

/* What is asked for directly is at fault like any read: beyond the end; and only reads may be. */
/* What the parent has read is not counted yet when it forks. */
static void a_forked_child_may_end_a_queue_that_has_read_directly(void **state)
{
	struct clientrig *g = *state;
	int status;
	pid_t pid;

	write_plain(g, 0, 4096, 1);
	for (unsigned i = 0; i < 4; i++)
		expect_directly(g, 0, 4096, 1);
	pid = fork();
	if (pid == 0) {
		xseg_queue_destroy(g->q);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect_directly(g, 0, 4096, 1);
}

static void only_reads_within_the_volume_are_direct(void **state)
{
	struct clientrig *g = *state;
	struct xseg_io io = { .op = XSEG_OP_WRITE,
		.flags = XSEG_IO_DIRECT,
		.offset = 0,
		.size = 4096,
		.buf = plain };

	assert_int_equal(xseg_queue_run(g->q, &io), -EINVAL);
	assert_int_equal(read_directly(g, 16 << 20, 4096, plain), -ENXIO);
	assert_int_equal(read_directly(g, 100, 4096, plain), -EINVAL);
}

/* ---- threads ---- */

#define SHARED_PAGES 16u
#define GIFTS	     2000u
#define ALONE	     (1u << 20)			/* where pages begin that only the giver uses */

struct giver {
	struct xseg_volume *v;
	int64_t result;				/* of the first write that failed, or 4096 */
	_Atomic bool over;
};

/* Each byte of a page becomes the same, in a page that the cache then keeps. */
static int64_t give_page(struct xseg_queue *q, uint64_t offset, int byte)
{
	struct xseg_io io = { .op = XSEG_OP_WRITE,
		.flags = XSEG_IO_GIVE,
		.offset = offset,
		.size = 4096 };
	struct iovec piece[PIECES];
	int nr = xseg_io_prepare(q, &io, piece, PIECES);

	for (int i = 0; i < nr; i++)
		memset(piece[i].iov_base, byte, piece[i].iov_len);
	return nr < 0 ? nr : xseg_queue_run(q, &io);
}

static void *gives(void *arg)
{
	struct giver *w = arg;
	struct xseg_queue *q = NULL;

	w->result = xseg_queue_create(w->v,
		&(struct xseg_queue_params){ .depth = 4, .copy_bytes = 16384 }, &q, NULL);
	if (!w->result)
		w->result = 4096;
	for (unsigned i = 0; w->result == 4096 && i < 2 * SHARED_PAGES; i++)
		w->result = give_page(q, ALONE + i % SHARED_PAGES * 4096, 0);
	for (unsigned i = 0; w->result == 4096 && i < GIFTS; i++)
		w->result = give_page(q, i % SHARED_PAGES * 4096, (int)(i / SHARED_PAGES % 255));
	xseg_queue_destroy(q);
	atomic_store(&w->over, true);
	return NULL;
}

/* The threads meet in the pages alone. So ThreadSanitizer sees whether each page has passed through
 * the cache before the other thread reads it, or writes it again. The giver first writes pages that
 * no other thread reads. From then on it has a page to give, as each page that is given is
 * exchanged for another. Without one it might get none: a write that is copied is not lent a page
 * that a reader may have on loan. */
static void a_page_that_a_thread_gives_is_whole_for_one_that_reads(void **state)
{
	struct clientrig *g = *state;
	struct giver w = { .v = g->v };
	uint8_t buf[4096];
	pthread_t id;

	for (unsigned i = 0; i < SHARED_PAGES; i++)
		assert_int_equal(give_page(g->q, i * 4096, 0), 4096);
	assert_int_equal(pthread_create(&id, NULL, gives, &w), 0);
	for (unsigned i = 0; !atomic_load(&w.over); i++) {
		assert_int_equal(clientrig_do(g, XSEG_OP_READ, i % SHARED_PAGES * 4096,
					 sizeof(buf), buf),
			sizeof(buf));
		assert_memory_equal(buf, buf + 1, sizeof(buf) - 1);
	}
	pthread_join(id, NULL);
	assert_int_equal(w.result, 4096);
	assert_true(clientrig_count_all(g, "cached", "given_bytes") >= GIFTS * 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLIENT_TEST(a_loan_shows_what_was_there_until_it_is_released),
		CLIENT_TEST(a_loan_without_pieces_looks_at_none),
		CLIENT_TEST(a_loan_that_is_not_released_is_no_write),
		CLIENT_TEST(a_loan_of_what_was_never_written_is_zeroes),
		CLIENT_TEST(loans_take_of_the_depth_and_the_rest_goes_on),
		CLIENT_TEST(an_io_that_waited_for_a_loan_is_sent_when_that_is_released),
		CLIENT_TEST(what_was_written_in_place_is_there),
		CLIENT_TEST(a_write_that_may_be_given_is_copied_into_what_was_lent),
		CLIENT_TEST(a_slot_that_was_lent_pages_serves_other_ios_too),
		CLIENT_TEST(what_was_prepared_and_not_submitted_changes_nothing),
		CLIENT_TEST(what_was_prepared_is_submitted_as_it_was_or_not_at_all),
		CLIENT_TEST(of_what_was_prepared_one_copy_is_submitted),
		CLIENT_TEST(what_was_prepared_may_still_become_fua),
		CLIENT_TEST(no_more_is_prepared_than_the_depth),
		CLIENT_TEST(a_queue_ends_with_loans_and_gifts),
		CLIENT_TEST(what_the_cache_has_is_read_without_a_request),
		CLIENT_TEST(what_is_found_goes_to_memory_of_the_segment_too),
		CLIENT_TEST(it_is_as_new_as_any_read),
		CLIENT_TEST(a_large_read_may_find_some_parts_and_ask_for_others),
		CLIENT_TEST(a_loan_that_was_found_is_as_any),
		CLIENT_TEST(a_forked_child_may_end_a_queue_that_has_read_directly),
		CLIENT_TEST(only_reads_within_the_volume_are_direct),
		CLIENT_TEST(a_page_that_a_thread_gives_is_whole_for_one_that_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
