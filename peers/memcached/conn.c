/* conn - a connection: its bytes, and its life. See struct mc_conn for the states.
 *
 * Input is read into one piece of memory, where lines and values are understood in place (step.c).
 * A value stays there until its operation is back. When the end of the memory is near, and no
 * operation has its value there, what is left moves to the front. Answers go into another piece,
 * and from there to the socket, once in a round.
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

#define PIECES	   320u			/* of one sendmsg(): a value of 1 MiB, or several */
#define QUIET_NS   300000000u		/* a connection is silent */

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
	w->op = calloc((size_t)nr * MC_CONN_OPS, sizeof(*w->op));
	if (!w->conn || !w->op)
		return xseg_fail(err, -ENOMEM, "no memory for %u connections; give fewer", nr);
	for (uint32_t i = nr; i--;) {
		struct mc_conn *c = &w->conn[i];

		c->worker = w;
		c->in = memory + i * (uint64_t)(MC_IN_BYTES + MC_OUT_BYTES);
		c->out = c->in + MC_IN_BYTES;
		c->op = w->op + (size_t)i * MC_CONN_OPS;
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
	*c = (struct mc_conn){ .worker = w, .fd = fd, .in = c->in, .out = c->out, .op = c->op,
		.since_ns = w->pp->now_ns, .readable = true, .writable = true };
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
	if (*most > MC_KEEP_BYTES)
		madvise(memory + MC_KEEP_BYTES, *most - MC_KEEP_BYTES, MADV_DONTNEED);
	*most = 0;
}

static void give_memory_back(struct mc_conn *c)
{
	give_back(c->in, &c->in_most);
	give_back(c->out, &c->out_most);
	c->worker->nr_large -= c->large;
	c->large = false;
}

static void note_used(struct mc_conn *c)
{
	if (c->in_to > c->in_most)
		c->in_most = c->in_to;
	if (c->out_to > c->out_most)
		c->out_most = c->out_to;
	if (!c->large && (c->in_most > MC_KEEP_BYTES || c->out_most > MC_KEEP_BYTES)) {
		c->large = true;
		c->worker->nr_large++;
	}
}

void mc_conn_free(struct mc_conn *c)
{
	struct mc_worker *w = c->worker;

	close(c->fd);			/* it leaves the epoll with that */
	c->fd = -1;
	give_memory_back(c);
	set_state(c, MC_CONN_FREE);
	c->next = w->free_conns;
	w->free_conns = c;
	w->nr_conns--;
	w->accept_ns = 0;		/* a descriptor is free */
}

/* ---- bytes out --------------------------------------------------------------------------- */

/* What was not sent of the values is copied. */
static void fill_holes(struct mc_conn *c)
{
	struct mc_worker *w = c->worker;

	for (const struct mc_hole *h = w->hole; h < w->hole + w->nr_holes; h++) {
		uint32_t sent = c->out_from > h->at ? c->out_from - h->at : 0;

		if (sent < h->bytes && c->state != MC_CONN_BROKEN)
			mc_value_copy(h->op, sent, c->out + h->at + sent, h->bytes - sent);
	}
	w->nr_holes = 0;
}

bool mc_conn_lend(struct mc_op *op, const uint8_t *to)
{
	struct mc_conn *c = op->conn;
	struct mc_worker *w = c->worker;

	if (!c->writable || w->nr_holes == MC_HOLES)
		return false;
	w->hole[w->nr_holes++] = (struct mc_hole){ .op = op, .at = (uint32_t)(to - c->out),
		.bytes = (uint32_t)op->io.result };
	return true;
}

uint8_t *mc_conn_room(struct mc_conn *c, uint32_t bytes)
{
	if (c->out_to + bytes > MC_OUT_BYTES && c->out_from) {
		fill_holes(c);
		memmove(c->out, c->out + c->out_from, c->out_to - c->out_from);
		c->out_to -= c->out_from;
		c->out_from = 0;
	}
	return c->out_to + bytes > MC_OUT_BYTES ? NULL : c->out + c->out_to;
}

void mc_conn_wrote(struct mc_conn *c, uint32_t bytes)
{
	c->out_to += bytes;
	note_used(c);
}

/* What is between two holes, or behind the last one: [at, to). */
static uint32_t add_piece(
	struct mc_conn *c, struct iovec *to, uint32_t nr, uint32_t at, uint32_t end)
{
	if (at >= end || nr == PIECES)
		return nr;
	to[nr] = (struct iovec){ c->out + at, end - at };
	return nr + 1;
}

/* All that is to be sent, or as much as so many pieces can be. */
static uint32_t list_pieces(struct mc_conn *c, struct iovec *to)
{
	struct mc_worker *w = c->worker;
	uint32_t at = c->out_from, nr = 0;

	for (const struct mc_hole *h = w->hole; h < w->hole + w->nr_holes; h++) {
		if (h->at + h->bytes <= at)
			continue;
		nr = add_piece(c, to, nr, at, h->at);
		if (at < h->at)
			at = h->at;
		nr += mc_value_pieces(
			h->op, at - h->at, h->at + h->bytes - at, to + nr, PIECES - nr);
		at = h->at + h->bytes;
	}
	return add_piece(c, to, nr, at, c->out_to);
}

static ssize_t send_some(struct mc_conn *c)
{
	struct iovec piece[PIECES];
	struct msghdr m = { .msg_iov = piece };

	if (!c->worker->nr_holes)
		return send(c->fd, c->out + c->out_from, c->out_to - c->out_from,
			MSG_NOSIGNAL | MSG_DONTWAIT);
	m.msg_iovlen = list_pieces(c, piece);
	return sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void mc_conn_write(struct mc_conn *c)
{
	ssize_t n;

	while (c->writable && c->out_from < c->out_to) {
		n = send_some(c);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			c->writable = false;
		} else if (n < 0) {
			break_off(c);
		} else {
			c->out_from += (uint32_t)n;
			mc_count(c->worker, MS_BYTES_WRITTEN, (uint64_t)n);
		}
	}
	fill_holes(c);
	if (c->out_from == c->out_to)
		c->out_from = c->out_to = 0;
}

/* ---- bytes in ---------------------------------------------------------------------------- */

/* At least so many bytes of room behind what is there; false: not while values lie before it. */
static bool make_room(struct mc_conn *c, uint32_t bytes)
{
	if (c->in_from == c->in_to && !c->nr_in_place)
		c->in_from = c->in_to = 0;
	if (c->in_to + bytes <= MC_IN_BYTES)
		return true;
	if (c->nr_in_place)
		return false;
	memmove(c->in, c->in + c->in_from, c->in_to - c->in_from);
	c->in_to -= c->in_from;
	c->in_from = 0;
	return c->in_to + bytes <= MC_IN_BYTES;
}

/* Not while values that are at the store take all of the memory. */
bool mc_conn_may_read(const struct mc_conn *c)
{
	return !c->nr_in_place || c->in_to + MC_LINE_MAX <= MC_IN_BYTES;
}

/* How much more is wanted of what has begun. */
static uint32_t wanted(const struct mc_conn *c)
{
	uint32_t have = c->in_to - c->in_from, want = c->filling ? c->filling_bytes + 2 : 0;

	return want > have + MC_READ_MOST ? want - have : MC_READ_MOST;
}

void mc_conn_read(struct mc_conn *c)
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
		note_used(c);
		mc_count(c->worker, MS_BYTES_READ, (uint64_t)n);
		c->since_ns = c->worker->pp->now_ns;
		/* a short read has emptied the socket: the next bytes are another edge, and so is
		 * its end, if that was not told before */
		if ((uint32_t)n < want && !c->leaves)
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

/* ---- silent ones ------------------------------------------------------------------------- */

static bool is_empty(const struct mc_conn *c)
{
	return !c->nr_ops && c->in_from == c->in_to && c->out_from == c->out_to;
}

static void mind(struct mc_conn *c)
{
	uint64_t silent_ns = c->worker->pp->now_ns - c->since_ns;
	uint64_t most_ns = c->worker->mc->opt.idle_timeout_ns;

	if (c->large && is_empty(c) && silent_ns > QUIET_NS)
		give_memory_back(c);
	if (most_ns && c->state == MC_CONN_OPEN && !c->nr_ops && silent_ns > most_ns)
		mc_conn_end(c);
}

void mc_conns_mind(struct mc_worker *w)
{
	if (!w->nr_large && !w->mc->opt.idle_timeout_ns)
		return;
	for (uint32_t i = 0; i < w->mc->per_worker; i++)
		if (w->conn[i].state != MC_CONN_FREE)
			mind(&w->conn[i]);
}
