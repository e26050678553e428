/* client_memory_test - once a stack serves and a queue is created, I/O allocates nothing: not in
 * the queue, and not in volumed, cached and memd, whose threads are this process's. Allocations are
 * counted (--wrap, Makefile).
 */
#include "tests/rig/client_rig.h"

#include <stdatomic.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

static _Atomic unsigned nr_allocated;

void *__wrap_malloc(size_t size)
{
	nr_allocated++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	nr_allocated++;
	return __real_calloc(nr, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	nr_allocated++;
	return __real_aligned_alloc(align, size);
}

static uint8_t plain[300 << 10];

/* A piece of everything, larger than a request, over two objects, and more than there are slots. */
static void do_everything(struct clientrig *g, uint8_t *memory)
{
	struct iovec half[2] = { { plain, 100 << 10 }, { memory, 200 << 10 } };
	struct xseg_io io[] = {
		{ .op = XSEG_OP_WRITE, .offset = (15 << 20) - 4608, .size = 300 << 10,
		  .buf = plain },
		{ .op = XSEG_OP_WRITE, .offset = 1 << 20, .size = 256 << 10, .buf = memory,
		  .flags = XSEG_IO_FUA },
		{ .op = XSEG_OP_WRITE, .offset = 2 << 20, .size = 128 << 10, .buf = plain,
		  .flags = XSEG_IO_GIVE },
		{ .op = XSEG_OP_READ, .offset = (3 << 20) - 4096, .size = 300 << 10, .iov = half,
		  .nr_iov = 2 },
		{ .op = XSEG_OP_WRITE_ZEROES, .offset = (4 << 20) - 512, .size = 3 << 20 },
		{ .op = XSEG_OP_DISCARD, .offset = 7 << 20, .size = 65536 },
		{ .op = XSEG_OP_COPY, .offset = 8 << 20, .size = 256 << 10, .from = 1 << 20 },
		{ .op = XSEG_OP_FLUSH },
	}, *done[2];
	struct xseg_io loan = {
		.op = XSEG_OP_READ, .flags = XSEG_IO_LOAN, .offset = 1 << 20, .size = 65536
	};
	uint32_t n;

	for (unsigned i = 0; i < sizeof(io) / sizeof(io[0]); i++)
		if (xseg_queue_submit(g->q, &io[i]))
			abort();
	while (xseg_queue_out(g->q)) {
		if (xseg_queue_arm(g->q) < 0)
			abort();
		for (n = xseg_queue_wait(g->q, done, 2, CLIENTRIG_SECOND); n-- > 0;)
			if (done[n]->result != (int64_t)done[n]->size)
				abort();
	}
	if (xseg_queue_run(g->q, &loan) != 65536 || xseg_io_data(g->q, &loan, half, 2) == 0)
		abort();
	xseg_io_release(g->q, &loan);
}

static void io_allocates_nothing(void **state)
{
	struct clientrig *g = *state;
	uint8_t *memory = xseg_queue_buffer(g->q, 256 << 10);
	unsigned before;

	assert_true(xseg_queue_fd(g->q) >= 0);
	assert_int_not_equal(nr_allocated, 0);		/* it counts */
	before = nr_allocated;
	for (unsigned i = 0; i < 10; i++)
		do_everything(g, memory);
	assert_int_equal(nr_allocated, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLIENT_TEST(io_allocates_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
