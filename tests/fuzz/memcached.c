/* memcached - the gateway's parser and order: the input is what a client sends, cut into pieces.
 *
 * The store is a table of this file. It does operations in their order, and in a second run in any
 * order that the gateway allows. Answers do not depend on that (M1, M2 of memcached.h), nor on how
 * the input was cut. Each connection ends, and nothing stays borrowed.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peers/memcached/memcached.h"
#include "tests/fuzz/fuzz.h"

#define CELLS 256u

struct cell {
	char key[MC_KEY_MAX], *value;
	uint32_t key_bytes, client;
	uint64_t bytes, version;
};

static struct cell cell[CELLS];
static uint32_t nr_cells, nr_io, nr_lent, chance;
static struct xseg_kv_io *out[MC_DEPTH];
static bool shuffles;

static uint32_t below(uint32_t n)
{
	chance = chance * 1664525 + 1013904223;
	return (chance >> 8) % n;
}

/* ---- the store --------------------------------------------------------------------------- */

static struct cell *cell_of(const struct xseg_kv_item *item)
{
	for (uint32_t i = 0; i < nr_cells; i++)
		if (cell[i].key_bytes == item->key_bytes &&
			!memcmp(cell[i].key, item->key, item->key_bytes))
			return &cell[i];
	assert(nr_cells < CELLS && item->key_bytes && item->key_bytes <= MC_KEY_MAX);
	cell[nr_cells] = (struct cell){ .key_bytes = item->key_bytes };
	memcpy(cell[nr_cells].key, item->key, item->key_bytes);
	return &cell[nr_cells++];
}

static void set_value(struct cell *c, const void *value, uint64_t bytes)
{
	char *copy = malloc(bytes + 1);

	assert(copy);
	if (bytes)
		memcpy(copy, value, bytes);
	free(c->value);
	c->value = copy;
	c->bytes = bytes;
	c->version++;
}

static void drop(struct cell *c)
{
	free(c->value);
	c->value = NULL;
}

static int64_t put(struct cell *c, struct xseg_kv_io *io)
{
	if (io->item.condition == XSEG_KV_IF_ABSENT && c->value)
		return -EEXIST;
	if (io->item.condition != XSEG_KV_ALWAYS && io->item.condition != XSEG_KV_IF_ABSENT &&
		!c->value)
		return -ENOENT;
	if (io->item.condition == XSEG_KV_IF_VERSION && io->item.version != c->version)
		return -EEXIST;
	set_value(c, io->item.value, io->item.value_bytes);
	c->client = io->item.client;
	if (io->item.expiry == 1)
		drop(c);
	return 0;
}

static int64_t join(struct cell *c, struct xseg_kv_io *io)
{
	uint64_t n = io->item.value_bytes, old = c->bytes;
	bool last = io->op == XSEG_KV_APPEND;
	char *both;

	if (!c->value)
		return -ENOENT;
	if (n + old > MC_VALUE_MAX)
		return -EFBIG;
	both = malloc(n + old + 1);
	assert(both);
	memcpy(both + (last ? 0 : n), c->value, old);
	if (n)
		memcpy(both + (last ? old : 0), io->item.value, n);
	set_value(c, both, n + old);
	free(both);
	return 0;
}

static int64_t count(struct cell *c, struct xseg_kv_io *io)
{
	uint64_t n, by = io->item.number;
	char text[24];

	if (!c->value)
		return -ENOENT;
	if (!mc_number(c->value, (uint32_t)c->bytes, &n))
		return -EINVAL;
	n = io->op == XSEG_KV_INCR ? n + by : n > by ? n - by : 0;
	set_value(c, text, (uint64_t)snprintf(text, sizeof(text), "%" PRIu64, n));
	io->item.number = n;
	return 0;
}

/* What is lent is a copy: it does not change any more. */
static int64_t get(struct cell *c, struct xseg_kv_io *io)
{
	if (!c->value)
		return -ENOENT;
	io->own.whole = malloc(c->bytes + 1);
	assert(io->own.whole);
	memcpy(io->own.whole, c->value, c->bytes);
	io->item.client = c->client;
	nr_lent++;
	return (int64_t)c->bytes;
}

static int64_t drop_all(void)
{
	for (uint32_t i = 0; i < nr_cells; i++)
		drop(&cell[i]);
	return 0;
}

static int64_t delete_or_touch(struct cell *c, struct xseg_kv_io *io)
{
	if (!c->value)
		return -ENOENT;
	if (io->item.condition == XSEG_KV_IF_VERSION && io->item.version != c->version)
		return -EEXIST;
	if (io->op == XSEG_KV_DELETE || io->item.expiry == 1)
		drop(c);
	return 0;
}

static void perform(struct xseg_kv_io *io)
{
	struct cell *c = io->op == XSEG_KV_DELETE_ALL ? NULL : cell_of(&io->item);

	switch (io->op) {
	case XSEG_KV_DELETE_ALL: io->result = drop_all(); break;
	case XSEG_KV_PUT: io->result = put(c, io); break;
	case XSEG_KV_APPEND:
	case XSEG_KV_PREPEND: io->result = join(c, io); break;
	case XSEG_KV_INCR:
	case XSEG_KV_DECR: io->result = count(c, io); break;
	case XSEG_KV_GET: io->result = get(c, io); break;
	default: io->result = delete_or_touch(c, io); break;
	}
	if (c && io->result >= 0)
		io->item.version = c->version;
}

int __wrap_xseg_kv_submit(struct xseg_kv_queue *q, struct xseg_kv_io *io);
int __wrap_xseg_kv_submit(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	(void)q;
	assert(nr_io + nr_lent < MC_DEPTH);
	out[nr_io++] = io;
	return 0;
}

uint32_t __wrap_xseg_kv_data(struct xseg_kv_queue *q, const struct xseg_kv_io *io,
	struct iovec *piece, uint32_t max);
uint32_t __wrap_xseg_kv_data(struct xseg_kv_queue *q, const struct xseg_kv_io *io,
	struct iovec *piece, uint32_t max)
{
	(void)q;
	assert(max && io->own.whole);
	*piece = (struct iovec){ io->own.whole, (size_t)io->result };
	return 1;
}

void __wrap_xseg_kv_release(struct xseg_kv_queue *q, struct xseg_kv_io *io);
void __wrap_xseg_kv_release(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	(void)q;
	assert(nr_lent && io->own.whole);
	free(io->own.whole);
	io->own.whole = NULL;
	nr_lent--;
}

/* ---- the gateway's rounds ---------------------------------------------------------------- */

static void answer_some(void)
{
	for (uint32_t n = shuffles ? below(4) : nr_io; n && nr_io; n--) {
		uint32_t i = shuffles ? below(nr_io) : 0;
		struct xseg_kv_io *io = out[i];

		memmove(&out[i], &out[i + 1], (--nr_io - i) * sizeof(out[0]));
		perform(io);
		mc_op_back(io->cookie);
	}
}

static void round_of(struct mc_worker *w)
{
	struct mc_conn *c = w->ready, *next;

	answer_some();
	w->ready = NULL;
	w->ready_last = &w->ready;
	for (; c; c = next) {
		next = c->next;
		c->next = NULL;
		c->listed = false;
		c->readable = c->writable = true;
		mc_conn_step(c);
	}
	mc_ops_feed(w);
}

struct text {
	char *at;
	size_t bytes;
};

static bool take(struct text *t, int fd)
{
	char part[4096];
	ssize_t n = recv(fd, part, sizeof(part), MSG_DONTWAIT);

	if (n <= 0)
		return n == 0;
	t->at = realloc(t->at, t->bytes + (size_t)n);
	assert(t->at);
	memcpy(t->at + t->bytes, part, (size_t)n);
	t->bytes += (size_t)n;
	return take(t, fd);
}

static void talk(struct mc_worker *w, const uint8_t *data, size_t size, struct text *t)
{
	int fd[2];
	bool ended = false;

	assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
	mc_conn_open(w, fd[0]);
	while (w->nr_conns) {
		size_t n = shuffles ? 1 + below(200) : size;
		ssize_t sent = size ? send(fd[1], data, n < size ? n : size, MSG_NOSIGNAL) : 0;

		data += sent > 0 ? sent : 0;
		size -= sent > 0 ? (size_t)sent : 0;
		if (sent < 0 && errno == EPIPE)
			size = 0;
		if (!size && !ended)
			ended = !shutdown(fd[1], SHUT_WR);
		mc_conn_ready(&w->conn[0]);
		round_of(w);
		if (!shuffles || !below(3))
			take(t, fd[1]);
	}
	take(t, fd[1]);
	close(fd[1]);
	assert(!nr_io && !nr_lent && !w->nr_out && !w->nr_held && !w->starved);
}

static void run(const uint8_t *data, size_t size, struct text *t)
{
	static struct memcached mc;
	static struct peer_port port;
	struct mc_worker *w = &mc.worker[0];
	struct xseg_error err;
	size_t bytes = MC_IN_BYTES + MC_OUT_BYTES;
	uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert(memory != MAP_FAILED);
	port.now_ns = 1;
	mc.per_worker = mc.peer.nr_ports = 1;
	*w = (struct mc_worker){ .mc = &mc, .pp = &port, .queue = (struct xseg_kv_queue *)&mc };
	w->ready_last = &w->ready;
	w->starved_last = &w->starved;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	assert(w->epoll >= 0 && !mc_conns_init(w, memory, &err));
	talk(w, data, size, t);
	drop_all();
	nr_cells = 0;
	close(w->epoll);
	free(w->conn);
	free(w->op);
	munmap(memory, bytes);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct text one = { 0 }, two = { 0 };

	/* no more keys than there are cells; stats tell of the moment */
	if (size < 4 || size > 1200 || memmem(data, size, "stats", 5))
		return;
	memcpy(&chance, data, 4);
	shuffles = false;
	run(data + 4, size - 4, &one);
	shuffles = true;
	run(data + 4, size - 4, &two);
	assert(one.bytes == two.bytes && (!one.bytes || !memcmp(one.at, two.at, one.bytes)));
	free(one.at);
	free(two.at);
}
