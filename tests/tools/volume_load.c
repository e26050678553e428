/* volume_load - I/O through the library for volumes, by several threads, each of which knows its
 * own writes: for tests/system/client.sh.
 *
 *      volume_load SEGMENT VOLUME THREADS SECONDS WAY [GONE_MS]
 *
 * WAY is the way of the data and of a thread's wait. "copy" and "memory" (of the segment) wait in
 * the queue, "lend" reads by loan and writes by gift, "loop" has two queues in one epoll loop. Runs
 * until the time is over, or an I/O failed. The last line is
 *
 *      ios=N wrong=N error=E refreshed=E
 *
 * with the first error of an I/O, and the final result of xseg_volume_refresh() (names of errno, or
 * 0). Exit code 0: neither wrong nor failed.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "tests/rig/long.h"
#include "xseg/volume.h"

#define BLOCK	    16384u
#define BLOCKS	    24u			/* of a queue */
#define DEPTH	    8u
#define QUEUES	    2u
#define MAX_THREADS 16u
#define SECOND	    1000000000ull
#define REST_US	    1000u			/* after each batch of answers */

enum way { WAY_COPY, WAY_MEMORY, WAY_LEND, WAY_LOOP, NR_WAYS };
static const char *const ways[NR_WAYS] = { "copy", "memory", "lend", "loop" };

/* What a queue writes to and reads again, one I/O at a time. */
struct block {
	struct xseg_io io;
	uint64_t offset;
	uint32_t version;		/* 0: zeroes */
	uint32_t writing;		/* what it will be */
	uint8_t *buf;
};

struct lane {
	struct xseg_queue *q;
	struct block block[BLOCKS];
};

struct worker {
	pthread_t thread;
	unsigned nr;
	uint64_t rng, end_ns;
	int epoll;
	struct lane lane[QUEUES];
};

static struct xseg_volume *volume;
static enum way way;
static _Atomic uint64_t nr_ios, nr_wrong;
static _Atomic int first_error;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static uint32_t next_random(uint64_t *rng)
{
	*rng = *rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*rng >> 33);
}

/* ---- what a block holds ---- */

static uint64_t word_at(uint64_t offset, uint32_t version)
{
	return version ? (offset + 1) * 0x9e3779b97f4a7c15ull ^ (uint64_t)version << 20 : 0;
}

static void write_data(void *data, uint64_t offset, uint64_t bytes, uint32_t version)
{
	for (uint64_t i = 0; i < bytes; i += 8) {
		uint64_t word = word_at(offset + i, version);

		memcpy((uint8_t *)data + i, &word, 8);
	}
}

static bool is_data(const void *data, uint64_t offset, uint64_t bytes, uint32_t version)
{
	for (uint64_t i = 0; i < bytes; i += 8) {
		uint64_t word = word_at(offset + i, version);

		if (memcmp((const uint8_t *)data + i, &word, 8) != 0)
			return false;
	}
	return true;
}

/* ---- one I/O ---- */

static void note_error(int64_t error)
{
	int none = 0;

	atomic_compare_exchange_strong(&first_error, &none, (int)-error);
}

static int prepare_in_place(struct lane *l, struct block *b)
{
	struct iovec piece[8];
	uint64_t at = b->offset;
	int nr = xseg_io_prepare(l->q, &b->io, piece, 8);

	for (int i = 0; i < nr; at += piece[i++].iov_len)
		write_data(piece[i].iov_base, at, piece[i].iov_len, b->writing);
	return nr < 0 ? nr : 0;
}

/* Begins something with a block that is at rest. -EAGAIN: later. */
static int begin(struct worker *w, struct lane *l, struct block *b)
{
	static const enum xseg_op ops[8] = { XSEG_OP_READ, XSEG_OP_READ, XSEG_OP_READ,
		XSEG_OP_WRITE, XSEG_OP_WRITE, XSEG_OP_WRITE, XSEG_OP_WRITE_ZEROES, XSEG_OP_FLUSH };
	uint32_t chance = next_random(&w->rng);
	enum xseg_op op = ops[chance % 8];
	bool data = op == XSEG_OP_READ || op == XSEG_OP_WRITE, lends = way == WAY_LEND && data;
	int rc = 0;

	b->io = (struct xseg_io){ .op = op, .cookie = b };
	if (op != XSEG_OP_FLUSH) {
		b->io.offset = b->offset;
		b->io.size = BLOCK;
	}
	b->writing = op == XSEG_OP_WRITE ? b->version + 1 : 0;
	b->io.buf = data && !lends ? b->buf : NULL;
	if (lends)
		b->io.flags = op == XSEG_OP_READ ? XSEG_IO_LOAN : XSEG_IO_GIVE;
	if (op == XSEG_OP_WRITE && chance % 64 == 3)
		b->io.flags |= XSEG_IO_FUA;
	if (op == XSEG_OP_WRITE && !lends)
		write_data(b->buf, b->offset, BLOCK, b->writing);
	else if (op == XSEG_OP_WRITE)
		rc = prepare_in_place(l, b);
	return rc ? rc : xseg_queue_submit(l->q, &b->io);
}

static bool read_is_right(struct lane *l, struct block *b)
{
	struct iovec piece[8];
	uint64_t at = b->offset;
	uint32_t nr;

	if (!(b->io.flags & XSEG_IO_LOAN))
		return is_data(b->buf, b->offset, BLOCK, b->version);
	nr = xseg_io_data(l->q, &b->io, piece, 8);
	for (uint32_t i = 0; i < nr; at += piece[i++].iov_len)
		if (!is_data(piece[i].iov_base, at, piece[i].iov_len, b->version))
			return false;
	return at == b->offset + BLOCK;
}

static void end(struct lane *l, struct block *b)
{
	if (b->io.result < 0) {
		note_error(b->io.result);
		return;
	}
	atomic_fetch_add_explicit(&nr_ios, 1, memory_order_relaxed);
	if (b->io.op == XSEG_OP_READ && !read_is_right(l, b))
		atomic_fetch_add(&nr_wrong, 1);
	if (b->io.op == XSEG_OP_WRITE || b->io.op == XSEG_OP_WRITE_ZEROES)
		b->version = b->writing;
	xseg_io_release(l->q, &b->io);
}

/* ---- a thread ---- */

static bool is_over(const struct worker *w)
{
	return atomic_load(&first_error) || atomic_load(&nr_wrong) || now_ns() >= w->end_ns;
}

/* One that is at rest: a block belongs to one I/O at a time, which begin() zeroes. */
static void send_some(struct worker *w, struct lane *l)
{
	uint32_t from = next_random(&w->rng), rc = 0;

	for (uint32_t i = 0; i < BLOCKS && !rc && xseg_queue_out(l->q) < DEPTH + 4; i++) {
		struct block *b = &l->block[(from + i) % BLOCKS];

		if (b->io.state)
			continue;
		rc = (uint32_t)begin(w, l, b);
		if (rc && (int)rc != -EAGAIN)
			note_error((int)rc);
	}
}

static void take(struct lane *l, struct xseg_io **done, uint32_t nr)
{
	while (nr-- > 0)
		end(l, done[nr]->cookie);
}

static void run_lane(struct worker *w, struct lane *l)
{
	struct xseg_io *done[DEPTH];

	do {
		if (!is_over(w))
			send_some(w, l);
		take(l, done, xseg_queue_wait(l->q, done, DEPTH, SECOND / 10));
		rest_in_short(REST_US);
	} while (xseg_queue_out(l->q) || !is_over(w));
}

/* Arms all, waits for one, polls all. */
static void run_loop(struct worker *w)
{
	struct epoll_event event;
	struct xseg_io *done[DEPTH];
	uint32_t out;

	do {
		bool ready = false;

		out = 0;
		for (unsigned i = 0; i < QUEUES; i++) {
			if (!is_over(w))
				send_some(w, &w->lane[i]);
			ready |= xseg_queue_arm(w->lane[i].q) != 0;
		}
		if (!ready)
			epoll_wait(w->epoll, &event, 1, 2000);
		for (unsigned i = 0; i < QUEUES; i++) {
			take(&w->lane[i], done, xseg_queue_poll(w->lane[i].q, done, DEPTH));
			out += xseg_queue_out(w->lane[i].q);
		}
		rest_in_short(REST_US);
	} while (out || !is_over(w));
}

static void lane_open(struct worker *w, struct lane *l, unsigned nr)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct xseg_error err = { "" };
	uint8_t *memory;

	if (xseg_queue_create(volume,
		    &(struct xseg_queue_params){ .depth = DEPTH, .copy_bytes = BLOCK }, &l->q,
		    &err)) {
		fprintf(stderr, "volume_load: %s\n", err.text);
		exit(2);
	}
	memory = way == WAY_MEMORY ? xseg_queue_buffer(l->q, BLOCKS * BLOCK)
				   : malloc(BLOCKS * BLOCK);
	for (uint32_t i = 0; i < BLOCKS; i++)
		l->block[i] = (struct block){ .offset = (uint64_t)(nr * BLOCKS + i) * BLOCK,
			.buf = memory + i * BLOCK };
	if (way == WAY_LOOP && epoll_ctl(w->epoll, EPOLL_CTL_ADD, xseg_queue_fd(l->q), &event))
		abort();
}

static void *thread_main(void *arg)
{
	struct worker *w = arg;
	unsigned queues = way == WAY_LOOP ? QUEUES : 1;

	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned i = 0; i < queues; i++)
		lane_open(w, &w->lane[i], w->nr * QUEUES + i);
	if (way == WAY_LOOP)
		run_loop(w);
	else
		run_lane(w, &w->lane[0]);
	for (unsigned i = 0; i < queues; i++) {
		xseg_queue_destroy(w->lane[i].q);
		if (way != WAY_MEMORY)
			free(w->lane[i].block[0].buf);
	}
	return NULL;
}

/* ---- the program ---- */

static const char *name_of(int error)
{
	return error ? strerrorname_np(error) : "0";
}

/* All blocks begin as zeroes. */
static int zero_all(unsigned threads)
{
	struct xseg_io io = { .op = XSEG_OP_WRITE_ZEROES,
		.size = (uint64_t)threads * QUEUES * BLOCKS * BLOCK };
	struct xseg_error err = { "" };
	struct xseg_queue *q;
	int64_t rc = xseg_queue_create(volume, NULL, &q, &err);

	if (!rc) {
		rc = xseg_queue_run(q, &io);
		xseg_queue_destroy(q);
	}
	if (rc < 0)
		fprintf(stderr, "volume_load: %s%s\n", err.text, strerror((int)-rc));
	return rc < 0;
}

int main(int argc, char **argv)
{
	static struct worker worker[MAX_THREADS];
	struct xseg_error err = { "" };
	struct xseg_volume_params params = { 0 };
	unsigned threads = argc > 5 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	int rc;

	while (argc > 5 && way < NR_WAYS && strcmp(ways[way], argv[5]) != 0)
		way++;
	if (threads < 1 || threads > MAX_THREADS || way == NR_WAYS) {
		fprintf(stderr,
			"usage: volume_load SEGMENT VOLUME THREADS SECONDS copy|memory|lend|loop "
			"[GONE_MS]\n");
		return 2;
	}
	params.segment = argv[1];
	params.volume = argv[2];
	params.gone_ns = argc > 6 ? strtoull(argv[6], NULL, 10) * (SECOND / 1000) : 0;
	if (xseg_volume_open(&params, &volume, &err)) {
		fprintf(stderr, "volume_load: %s\n", err.text);
		return 2;
	}
	if (zero_all(threads))
		return 2;
	for (unsigned i = 0; i < threads; i++) {
		worker[i] = (struct worker){ .nr = i,
			.rng = i + 1,
			.end_ns = now_ns() + strtoull(argv[4], NULL, 10) * SECOND };
		if (pthread_create(&worker[i].thread, NULL, thread_main, &worker[i]))
			abort();
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(worker[i].thread, NULL);
	rc = xseg_volume_refresh(volume);
	xseg_volume_close(volume);
	printf("ios=%" PRIu64 " wrong=%" PRIu64 " error=%s refreshed=%s\n", atomic_load(&nr_ios),
		atomic_load(&nr_wrong), name_of(atomic_load(&first_error)), name_of(-rc));
	return atomic_load(&nr_wrong) || atomic_load(&first_error) ? 1 : 0;
}
