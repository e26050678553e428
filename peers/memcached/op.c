/* op - an operation: from a command to the store, and back. See enum mc_op_state.
 *
 * Several commands take more than one step at the store. gat, and mg with T, change the expiry and
 * then get the value. ma with N puts the first value of a key that is absent, and counts on if
 * another client was faster. ma with T and t changes the expiry, and asks for it, when it has
 * counted.
 *
 * Contract: the worker's port.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/memcached/memcached.h"

#define VIVIFIES 8u				/* between others that put and delete the key */
#define FEED	 16u				/* requests that are free before one gets some */

static bool waits(enum mc_op_state state)
{
	return state == MC_OP_WAITING || state == MC_OP_AGAIN;
}

/* M2: a change of the key may have to wait for it. A value that is borrowed may be got again. */
static bool is_undone(const struct mc_op *op)
{
	return op->state != MC_OP_FREE && (op->state != MC_OP_DONE || op->holds);
}

/* It may be another thing than it was. */
static void note_undone(struct mc_op *op, bool was)
{
	uint8_t *n = &op->conn->nr_undone[op->hash % MC_HASHES];
	int more = is_undone(op) - was;

	*n = (uint8_t)(*n + more);
	if (op->kind == MC_FLUSH)
		op->conn->nr_flushes = (uint8_t)(op->conn->nr_flushes + more);
}

static void set_state(struct mc_op *op, enum mc_op_state state)
{
	static const uint8_t may[] = {
		[MC_OP_FREE] = 1 << MC_OP_WAITING,
		[MC_OP_WAITING] = 1 << MC_OP_OUT | 1 << MC_OP_DONE,
		[MC_OP_OUT] = 1 << MC_OP_WAITING | 1 << MC_OP_DONE,
		[MC_OP_DONE] = 1 << MC_OP_FREE | 1 << MC_OP_AGAIN,
		[MC_OP_AGAIN] = 1 << MC_OP_OUT | 1 << MC_OP_DONE,
	};
	bool was = is_undone(op);

	assert(may[op->state] >> state & 1);
	op->conn->nr_waiting += waits(state);
	op->conn->nr_waiting -= waits(op->state);
	op->state = state;
	note_undone(op, was);
}

static void set_holds(struct mc_op *op, bool holds)
{
	struct mc_worker *w = op->conn->worker;
	bool was = is_undone(op);

	w->nr_held += holds;
	w->nr_held -= op->holds;
	op->holds = holds;
	note_undone(op, was);
}

/* ---- the connection's ring, and requests of the queue ------------------------------------- */

struct mc_op *mc_op_get(struct mc_conn *c, enum mc_kind kind)
{
	struct mc_op *op;

	if (c->nr_ops == MC_CONN_OPS)
		return NULL;
	op = mc_op_at(c, c->nr_ops);
	memset(op, 0, offsetof(struct mc_op, key));
	op->conn = c;
	op->kind = kind;
	op->io.cookie = op;
	return op;
}

static uint32_t nr_free(const struct mc_worker *w)
{
	return MC_DEPTH - w->nr_out - w->nr_held;
}

static void starve(struct mc_conn *c)
{
	if (c->starved)
		return;
	c->starved = true;
	c->next_starved = NULL;
	*c->worker->starved_last = c;
	c->worker->starved_last = &c->next_starved;
}

void mc_ops_unstarve(struct mc_conn *c)
{
	struct mc_worker *w = c->worker;
	struct mc_conn **at = &w->starved;

	if (!c->starved)
		return;
	while (*at != c)
		at = &(*at)->next_starved;
	*at = c->next_starved;
	if (!*at)
		w->starved_last = at;
	c->starved = false;
}

/* Not one at a time: a connection is to have several. */
void mc_ops_feed(struct mc_worker *w)
{
	struct mc_conn *c;

	if (w->starved && !w->nr_out)
		mc_ops_give_back(w);
	while ((c = w->starved) && (nr_free(w) >= FEED || (!w->nr_out && nr_free(w)))) {
		mc_ops_unstarve(c);
		mc_conn_ready(c);
		mc_ops_go_on(c);
	}
}

/* ---- order ------------------------------------------------------------------------------- */

/* M2. flush_all has all keys. */
static bool is_before_it(const struct mc_op *a, const struct mc_op *op)
{
	if (!is_undone(a))
		return false;
	if (a->kind == MC_FLUSH || op->kind == MC_FLUSH)
		return true;
	return a->hash == op->hash && !(a->reads && op->reads);
}

static bool must_wait(const struct mc_op *op)
{
	const struct mc_conn *c = op->conn;
	const struct mc_op *a;

	/* it counts itself */
	if (c->nr_undone[op->hash % MC_HASHES] == 1 && !c->nr_flushes)
		return false;
	for (uint32_t i = 0; (a = mc_op_at(c, i)) != op; i++)
		if (is_before_it(a, op))
			return true;
	return false;
}

/* ---- to the store, and back -------------------------------------------------------------- */

/* Not before: an operation that waits in the queue, behind a large one, has its value here. */
static void leave_place(struct mc_op *op)
{
	if (op->in_place)
		op->conn->nr_in_place--;
	op->in_place = false;
}

static void finish(struct mc_op *op)
{
	leave_place(op);
	set_state(op, MC_OP_DONE);
	mc_conn_ready(op->conn);
}

/* Of the queue, and with it all that is borrowed. */
static void lose(struct mc_worker *w)
{
	for (uint32_t i = 0; i < w->mc->per_worker * MC_CONN_OPS && w->nr_held; i++)
		if (w->op[i].holds) {
			set_holds(&w->op[i], false);
			w->op[i].io.result = -ENOTCONN;
		}
	mc_store_lose(w);
}

/* False: it waits for a request of the queue. */
static bool send(struct mc_op *op)
{
	struct mc_worker *w = op->conn->worker;
	int rc;

	if (w->queue && !nr_free(w)) {
		starve(op->conn);
		return false;
	}
	rc = w->queue ? xseg_kv_submit(w->queue, &op->io) : -ENOTCONN;
	if (rc) {
		op->io.result = rc;
		finish(op);
		if (rc == -ENOTCONN && w->queue && !w->nr_out)
			lose(w);
		return true;
	}
	if (!w->nr_out++)
		w->answered_ns = w->pp->now_ns;
	set_state(op, MC_OP_OUT);
	return true;
}

static bool has_io(enum mc_kind kind)
{
	return kind != MC_TEXT && kind != MC_STATS && kind != MC_END;
}

void mc_op_begin(struct mc_op *op)
{
	struct mc_conn *c = op->conn;

	c->nr_ops++;
	c->nr_in_place += op->in_place;
	set_state(op, MC_OP_WAITING);
	if (!has_io(op->kind))
		finish(op);
	else if (!must_wait(op))
		send(op);
}

/* The expiry is changed: now the value. */
static bool get_what_was_touched(struct mc_op *op)
{
	struct xseg_kv_io *io = &op->io;

	if (io->op != XSEG_KV_TOUCH || io->result)
		return false;
	io->op = XSEG_KV_GET;
	io->flags = XSEG_KV_LOAN;
	io->item.ttl_s = io->item.expiry = 0;
	return true;
}

/* ma N: a key that is absent gets the first value, unless another client is faster. */
static bool vivify(struct mc_op *op)
{
	struct xseg_kv_io *io = &op->io;

	if (!op->meta.vivifies)
		return false;
	if (io->op == op->arith && io->result == -ENOENT && op->tries++ < VIVIFIES) {
		io->item.value_bytes = (uint64_t)snprintf(op->number, sizeof(op->number),
			"%" PRIu64, op->meta.initial);
		io->item.value = op->number;
		io->item.condition = XSEG_KV_IF_ABSENT;
		io->item.ttl_s = op->meta.vivify_ttl;
		io->op = XSEG_KV_PUT;
		return true;
	}
	if (io->op == XSEG_KV_PUT && io->result == -EEXIST) {
		io->item.number = op->amount;
		io->item.condition = XSEG_KV_ALWAYS;
		io->item.ttl_s = 0;
		io->op = op->arith;
		return true;
	}
	if (io->op == XSEG_KV_PUT && !io->result)
		io->item.number = op->meta.initial;
	return false;
}

/* ma: the number is there; its expiry is changed, and asked for, if so wanted. */
static bool count_further(struct mc_op *op)
{
	struct xseg_kv_io *io = &op->io;

	if (vivify(op))
		return true;
	if (io->result < 0)
		return false;
	if (io->op == XSEG_KV_GET)
		io->result = 0;
	else if (op->touches) {
		op->touches = false;
		io->op = XSEG_KV_TOUCH;
		io->item.condition = XSEG_KV_ALWAYS;
		io->item.ttl_s = op->ttl_s;
		io->item.expiry = op->expiry;
		return true;
	} else if (op->looks) {
		op->looks = false;
		io->op = XSEG_KV_GET;
		io->flags = XSEG_KV_LOAN;
		io->item.condition = XSEG_KV_ALWAYS;
		io->item.version = 0;
		io->item.ttl_s = io->item.expiry = 0;
		io->item.value = NULL;
		io->item.value_bytes = 0;
		return true;
	}
	return false;
}

/* A set that finds no room: what the key had is stale now, and goes, as memcached has it. */
static bool drop_stale(struct mc_op *op)
{
	struct xseg_kv_io *io = &op->io;

	if (op->refused) {
		io->result = op->refused;
		return false;
	}
	if (io->op != XSEG_KV_PUT || io->item.condition != XSEG_KV_ALWAYS ||
		(io->result != -ENOSPC && io->result != -EFBIG))
		return false;
	op->refused = (int)io->result;
	io->op = XSEG_KV_DELETE;
	return true;
}

/* Whether it has another step at the store. */
static bool goes_on(struct mc_op *op)
{
	switch (op->kind) {
	case MC_GET:
	case MC_META_GET:
		return get_what_was_touched(op);
	case MC_META_ARITH:
		return count_further(op);
	case MC_STORE:
	case MC_META_STORE:
		return drop_stale(op);
	default:
		return false;
	}
}

void mc_op_back(struct mc_op *op)
{
	struct mc_worker *w = op->conn->worker;
	bool lost = op->io.result == -ENOTCONN;

	w->nr_out--;
	set_holds(op, op->io.op == XSEG_KV_GET && op->io.result >= 0);
	if (goes_on(op)) {
		/* only for another request */
		set_state(op, MC_OP_WAITING);
		send(op);
	} else {
		finish(op);
	}
	if (lost && !w->nr_out && w->queue)
		lose(w);
}

static void release(struct mc_op *op)
{
	struct mc_worker *w = op->conn->worker;

	if (!op->holds)
		return;
	xseg_kv_release(w->queue, &op->io);
	set_holds(op, false);
}

void mc_op_again(struct mc_op *op)
{
	release(op);
	op->io.item.version = 0;	/* else only the value that it had would do */
	set_state(op, MC_OP_AGAIN);
}

static void give_back(struct mc_conn *c)
{
	for (uint32_t i = 1; i < c->nr_ops; i++) {
		struct mc_op *op = mc_op_at(c, i);

		if (op->state == MC_OP_DONE && op->holds)
			mc_op_again(op);
	}
}

void mc_ops_give_back(struct mc_worker *w)
{
	for (uint32_t i = 0; i < w->mc->per_worker && w->nr_held; i++)
		give_back(&w->conn[i]);
}

/* An answer that found no room has it when all before it has been read. */
static bool may_try_again(const struct mc_op *op)
{
	const struct mc_conn *c = op->conn;

	return op == mc_op_at(c, 0) && c->out_from == c->out_to;
}

void mc_ops_go_on(struct mc_conn *c)
{
	for (uint32_t i = 0; i < c->nr_ops && c->nr_waiting; i++) {
		struct mc_op *op = mc_op_at(c, i);

		if (!waits(op->state))
			continue;
		if (op->state == MC_OP_AGAIN && c->state == MC_CONN_BROKEN)
			finish(op);
		else if (op->state == MC_OP_AGAIN ? may_try_again(op) : !must_wait(op))
			if (!send(op))
				return;
	}
}

void mc_op_end(struct mc_op *op)
{
	struct mc_conn *c = op->conn;

	release(op);
	c->op_first = (c->op_first + 1) % MC_CONN_OPS;
	c->nr_ops--;
	set_state(op, MC_OP_FREE);
}
