/* conn - a connection: its bytes, and its life. See struct mc_conn for the states.
 *
 * Input is read into one piece of memory, where lines and values are understood in place. A value
 * stays there until its operation is back. When the end of the memory is near, and no operation has
 * its value there, what is left moves to the front. Answers go into another piece, and from there
 * to the socket, once in a round.
 *
 * A connection reads no more while it has as many operations as it may, while the worker has none
 * free, or while its answers are not read (M3). So a client that only sends is stopped by its own
 * socket.
 *
 * Contract: the worker's port.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peers/memcached/memcached.h"

#define READ_MOST  (64u << 10)		/* in a step, unless a value is awaited */
#define LINES_MOST 64u			/* in a step */
#define KEEP_BYTES (64u << 10)		/* of memory, when all of it is free again */

static void set_state(struct mc_conn *c, enum mc_conn_state state)
{
	static const uint8_t may[] = {
		[MC_CONN_FREE] = 1 << MC_CONN_OPEN,
		[MC_CONN_OPEN] = 1 << MC_CONN_ENDING | 1 << MC_CONN_BROKEN,
		[MC_CONN_ENDING] = 1 << MC_CONN_BROKEN | 1 << MC_CONN_FREE,
		[MC_CONN_BROKEN] = 1 << MC_CONN_FREE,
	};

	assert(may[c->state] >> state & 1);
	c->state = state;
}

int mc_conns_init(struct mc_worker *w, uint8_t *memory, struct xseg_error *err)
{
	uint32_t nr = w->mc->per_worker;

	w->conn = calloc(nr, sizeof(*w->conn));
	if (!w->conn)
		return xseg_fail(err, -ENOMEM, "no memory for %u connections; give fewer", nr);
	for (uint32_t i = nr; i--;) {
		struct mc_conn *c = &w->conn[i];

		c->worker = w;
		c->in = memory + i * (uint64_t)(MC_IN_BYTES + MC_OUT_BYTES);
		c->out = c->in + MC_IN_BYTES;
		c->fd = -1;
		c->next = w->free_conns;
		w->free_conns = c;
	}
	return 0;
}

void mc_conn_open(struct mc_worker *w, int fd)
{
	struct mc_conn *c = w->free_conns;
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.ptr = c };

	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e)) {
		close(fd);
		return;
	}
	w->free_conns = c->next;
	*c = (struct mc_conn){ .worker = w, .fd = fd, .in = c->in, .out = c->out,
		.in_most = c->in_most, .out_most = c->out_most, .since_ns = w->pp->now_ns,
		.readable = true, .writable = true };
	c->last = &c->first;
	set_state(c, MC_CONN_OPEN);
	w->nr_conns++;
	mc_conn_ready(c);
}

void mc_conn_ready(struct mc_conn *c)
{
	struct mc_worker *w = c->worker;

	if (c->listed || c->state == MC_CONN_FREE)
		return;
	c->listed = true;
	c->next = NULL;
	*w->ready_last = c;
	w->ready_last = &c->next;
}

void mc_conn_end(struct mc_conn *c)
{
	if (c->state == MC_CONN_OPEN)
		set_state(c, MC_CONN_ENDING);
	mc_conn_ready(c);
}

static void break_off(struct mc_conn *c)
{
	if (c->state != MC_CONN_BROKEN)
		set_state(c, MC_CONN_BROKEN);
	c->out_from = c->out_to = 0;
}

void mc_conn_break(struct mc_conn *c)
{
	if (c->state == MC_CONN_FREE)
		return;
	break_off(c);
	mc_conn_ready(c);
}

/* Memory that a large value has used goes back. */
static void give_back(uint8_t *memory, uint32_t *most)
{
	if (*most > KEEP_BYTES)
		madvise(memory + KEEP_BYTES, *most - KEEP_BYTES, MADV_DONTNEED);
	*most = 0;
}

static void free_conn(struct mc_conn *c)
{
	struct mc_worker *w = c->worker;

	mc_op_unstarve(c);
	close(c->fd);			/* it leaves the epoll with that */
	c->fd = -1;
	give_back(c->in, &c->in_most);
	give_back(c->out, &c->out_most);
	set_state(c, MC_CONN_FREE);
	c->next = w->free_conns;
	w->free_conns = c;
	w->nr_conns--;
}

/* ---- bytes out --------------------------------------------------------------------------- */

uint8_t *mc_conn_room(struct mc_conn *c, uint32_t bytes)
{
	if (c->out_to + bytes > MC_OUT_BYTES && c->out_from) {
		memmove(c->out, c->out + c->out_from, c->out_to - c->out_from);
		c->out_to -= c->out_from;
		c->out_from = 0;
	}
	return c->out_to + bytes > MC_OUT_BYTES ? NULL : c->out + c->out_to;
}

void mc_conn_wrote(struct mc_conn *c, uint32_t bytes)
{
	c->out_to += bytes;
	if (c->out_to > c->out_most)
		c->out_most = c->out_to;
}

static void write_out(struct mc_conn *c)
{
	ssize_t n;

	while (c->writable && c->out_from < c->out_to) {
		n = send(c->fd, c->out + c->out_from, c->out_to - c->out_from,
			MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			c->writable = false;
		} else if (n < 0) {
			break_off(c);
			return;
		} else {
			c->out_from += (uint32_t)n;
			mc_count(c->worker, MS_BYTES_WRITTEN, (uint64_t)n);
		}
	}
	if (c->out_from == c->out_to) {
		c->out_from = c->out_to = 0;
		if (c->out_most > KEEP_BYTES)
			give_back(c->out, &c->out_most);
	}
}

/* M1. A broken connection has nobody who reads answers. */
static void answer(struct mc_conn *c)
{
	while (c->first && c->first->state == MC_OP_DONE) {
		if (c->state == MC_CONN_BROKEN || mc_answer(c->first))
			mc_op_end(c->first);
		else
			break;
	}
}

/* ---- bytes in ---------------------------------------------------------------------------- */

/* At least so many bytes of room behind what is there; false: not while values lie before it. */
static bool make_room(struct mc_conn *c, uint32_t bytes)
{
	if (c->in_from == c->in_to && !c->nr_in_place) {
		c->in_from = c->in_to = 0;
		if (c->in_most > KEEP_BYTES)
			give_back(c->in, &c->in_most);
	}
	if (c->in_to + bytes <= MC_IN_BYTES)
		return true;
	if (c->nr_in_place)
		return false;
	memmove(c->in, c->in + c->in_from, c->in_to - c->in_from);
	c->in_to -= c->in_from;
	c->in_from = 0;
	return c->in_to + bytes <= MC_IN_BYTES;
}

/* How much more is wanted of what has begun. */
static uint32_t wanted(const struct mc_conn *c)
{
	uint32_t have = c->in_to - c->in_from, want = c->filling ? c->filling_bytes + 2 : 0;

	return want > have + READ_MOST ? want - have : READ_MOST;
}

static void read_in(struct mc_conn *c)
{
	uint32_t want = wanted(c);
	ssize_t n;

	if (!make_room(c, want) && !make_room(c, MC_LINE_MAX))
		return;
	if (want > MC_IN_BYTES - c->in_to)
		want = MC_IN_BYTES - c->in_to;
	n = recv(c->fd, c->in + c->in_to, want, MSG_DONTWAIT);
	if (n > 0) {
		c->in_to += (uint32_t)n;
		if (c->in_to > c->in_most)
			c->in_most = c->in_to;
		mc_count(c->worker, MS_BYTES_READ, (uint64_t)n);
		c->since_ns = c->worker->pp->now_ns;
		/* a short read has emptied the socket: the next bytes are another edge */
		if ((uint32_t)n < want)
			c->readable = false;
	} else if (n == 0) {
		c->readable = false;
		c->eof = true;
	} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
		c->readable = false;
	} else if (errno != EINTR) {
		break_off(c);
	}
}

/* A value that was refused is read, and forgotten. */
static bool swallow(struct mc_conn *c)
{
	uint32_t have = c->in_to - c->in_from;

	if (c->swallow < have)
		have = (uint32_t)c->swallow;
	c->in_from += have;
	c->swallow -= have;
	return c->swallow == 0;
}

/* The value of a command, and the end of its line. */
static bool fill(struct mc_conn *c)
{
	uint32_t bytes = c->filling_bytes;
	uint8_t *value = c->in + c->in_from;

	if (c->in_to - c->in_from < bytes + 2)
		return false;
	if (mc_command_filled(c, value, value[bytes] == '\r' && value[bytes + 1] == '\n') ==
		MC_NO_OP)
		return false;
	c->in_from += bytes + 2;
	return true;
}

static void refuse_line(struct mc_conn *c)
{
	mc_say(c, "CLIENT_ERROR line too long\r\n");
	mc_conn_end(c);
}

/* The next keys of a get, as far as the line is there. False: no more can be done now. */
static bool go_on_gets(struct mc_conn *c)
{
	uint32_t used = 0, have = c->in_to - c->in_from;
	enum mc_taken taken = mc_command_gets(c, (char *)c->in + c->in_from, have, &used);

	c->in_from += used;
	if (taken == MC_NO_OP)
		return false;
	if (c->in_gets && c->in_to - c->in_from > MC_LINE_MAX) {
		refuse_line(c);
		return false;
	}
	return used > 0;
}

/* Whether the line of a get may be understood before its end: it may be a long one. */
static bool is_get(const uint8_t *line, uint32_t bytes)
{
	return bytes > 5 && (!memcmp(line, "get ", 4) || !memcmp(line, "gets ", 5) ||
				    !memcmp(line, "gat ", 4) || !memcmp(line, "gats ", 5));
}

/* One line. False: there is none, or nothing can be done with it now. */
static bool take_line(struct mc_conn *c)
{
	uint8_t *line = c->in + c->in_from, *end;
	uint32_t have = c->in_to - c->in_from, bytes;

	if (!have)
		return false;
	end = memchr(line, '\n', have);
	if (!end) {
		if (have > (is_get(line, have) ? MC_GETS_MAX : MC_LINE_MAX))
			refuse_line(c);
		return false;
	}
	bytes = (uint32_t)(end - line);
	if (bytes > MC_LINE_MAX && !is_get(line, have)) {
		refuse_line(c);
		return false;
	}
	if (mc_command(c, (char *)line, bytes && line[bytes - 1] == '\r' ? bytes - 1 : bytes) ==
		MC_NO_OP)
		return false;
	if (!c->in_gets)
		c->in_from += bytes + 1;
	return true;
}

/* Some of its lines. True: there may be more that can be understood now. */
static bool understand(struct mc_conn *c)
{
	bool more = true;

	for (uint32_t i = 0; i < LINES_MOST && more && c->state == MC_CONN_OPEN; i++) {
		if (c->swallow)
			more = swallow(c);
		else if (c->filling)
			more = fill(c);
		else if (c->in_gets)
			more = go_on_gets(c);
		else
			more = take_line(c);
	}
	return more && c->state == MC_CONN_OPEN;
}

/* It has what it may have: its client is to read first, or the store to answer. */
static bool is_full(const struct mc_conn *c)
{
	return c->nr_ops >= MC_CONN_OPS || c->starved || c->out_to - c->out_from > READ_MOST;
}

void mc_conns_mind(struct mc_worker *w)
{
	uint64_t most_ns = w->mc->opt.idle_timeout_ns;

	for (uint32_t i = 0; most_ns && i < w->mc->per_worker; i++)
		if (w->conn[i].state == MC_CONN_OPEN && !w->conn[i].nr_ops &&
			w->pp->now_ns - w->conn[i].since_ns > most_ns)
			mc_conn_end(&w->conn[i]);
}

/* Nothing is to be done for it but to close it. */
static bool is_over(const struct mc_conn *c)
{
	return !c->nr_ops && (c->state == MC_CONN_BROKEN ||
				     (c->state == MC_CONN_ENDING && c->out_from == c->out_to));
}

void mc_conn_step(struct mc_conn *c)
{
	bool more = false;

	if (c->state == MC_CONN_FREE)
		return;
	answer(c);
	if (c->state == MC_CONN_OPEN && !is_full(c)) {
		if (c->readable)
			read_in(c);
		more = understand(c);
		if (!more && c->eof && !is_full(c))
			mc_conn_end(c);
		answer(c);
	}
	if (c->state != MC_CONN_BROKEN)
		write_out(c);
	/* what was written may have made room */
	answer(c);
	mc_ops_go_on(c);
	/* one that was listed meanwhile has another step */
	if (is_over(c) && !c->listed)
		free_conn(c);
	else if (c->state == MC_CONN_OPEN && !is_full(c) && (more || c->readable || c->eof))
		mc_conn_ready(c);
	else if (c->writable && c->out_from < c->out_to)
		mc_conn_ready(c);
}
