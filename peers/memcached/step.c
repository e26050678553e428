/* step - what a connection does in a round: it reads, understands, answers and writes, as far as it
 * goes now.
 *
 * Lines and values are understood where they lie. A connection reads no more while it has as many
 * operations as it may, while the worker has none free, or while its answers are not read (M3). So
 * a client that only sends is stopped by its own socket.
 *
 * Contract: the worker's port.
 */
#include <string.h>

#include "peers/memcached/memcached.h"

#define LINES_MOST 64u			/* in a step */

/* M1. A broken connection has nobody who reads answers. Borrowed values are in the socket, or
 * copied, when their operations end. */
static void answer(struct mc_conn *c)
{
	uint32_t n = 0;

	while (n < c->nr_ops && mc_op_at(c, n)->state == MC_OP_DONE &&
		(c->state == MC_CONN_BROKEN || mc_answer(mc_op_at(c, n))))
		n++;
	if (c->worker->nr_holes)
		mc_conn_write(c);
	while (n--)
		mc_op_end(mc_op_at(c, 0));
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
	if (mc_filled(c, value, value[bytes] == '\r' && value[bytes + 1] == '\n') ==
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
				    !memcmp(line, "bget ", 5) ||
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
	return c->nr_ops >= MC_CONN_OPS || c->starved || c->out_to - c->out_from > MC_READ_MOST;
}

/* Nothing is to be done for it but to close it. */
static bool is_over(const struct mc_conn *c)
{
	return !c->nr_ops && (c->state == MC_CONN_BROKEN ||
				     (c->state == MC_CONN_ENDING && c->out_from == c->out_to));
}

/* More answers are to come soon, and all go out together. Each round that brings none ends that. */
static bool hold_back(struct mc_conn *c, uint32_t nr_before)
{
	bool hopes = c->worker->nr_out && c->state == MC_CONN_OPEN && c->nr_ops &&
		     c->out_to - c->out_from < MC_READ_MOST;

	c->held_back = hopes && (c->nr_ops < nr_before || !c->held_back);
	return c->held_back;
}

static void read_and_understand(struct mc_conn *c, bool *more)
{
	if (c->readable)
		mc_conn_read(c);
	/* what the last operation was taken from may be free before the end of this round */
	*more = understand(c) || c->nr_ops == MC_CONN_OPS;
	if (!*more && c->eof && !is_full(c))
		mc_conn_end(c);
}

void mc_conn_step(struct mc_conn *c)
{
	uint32_t nr_before = c->nr_ops;
	bool more = false, held;

	if (c->state == MC_CONN_FREE)
		return;
	answer(c);
	held = hold_back(c, nr_before);
	if (c->state == MC_CONN_OPEN && !is_full(c)) {
		read_and_understand(c, &more);
		answer(c);
	} else {
		more = true;
	}
	if (c->state != MC_CONN_BROKEN && !held)
		mc_conn_write(c);
	/* what was written may have made room */
	answer(c);
	mc_ops_go_on(c);
	/* one that was listed meanwhile has another step */
	if (is_over(c) && !c->listed) {
		mc_ops_unstarve(c);
		mc_conn_free(c);
	} else if ((c->state == MC_CONN_OPEN && !is_full(c) &&
			   (more || (c->readable && mc_conn_may_read(c)) || c->eof)) ||
		(c->writable && c->out_from < c->out_to)) {
		mc_conn_ready(c);
	}
}
