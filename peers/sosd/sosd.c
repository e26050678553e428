/* sosd - the way of a request through the peer. See sosd.h for its states and invariants. */
#include "peers/sosd/sosd.h"

#include <errno.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/sosd/sosd_error.h"
#include "xtypes/xstate.h"

#define END_MAX	      (UINT64_C(1) << 40)
#define SECOND_NS     UINT64_C(1000000000)
#define SPACE_LOOK_NS (10 * SECOND_NS)
#define SILENCE_NS    (5 * SECOND_NS)	/* no answer for so long is worth a line */

#define TO(state) (1u << SOSD_##state)

static const struct xstates states = {
	.what = "operation of sosd",
	XSTATE(SOSD_, FREE, TO(WAITING)),
	XSTATE(SOSD_, WAITING, TO(READY)),
	XSTATE(SOSD_, READY, TO(OUT) | TO(LINED_UP) | TO(FREE)),
	XSTATE(SOSD_, LINED_UP, TO(READY)),
	XSTATE(SOSD_, OUT, TO(READY) | TO(PAUSED) | TO(FREE)),
	XSTATE(SOSD_, PAUSED, TO(READY)),
};

static void op_set(struct sosd_op *op, enum sosd_state state)
{
	xstate_check(&states, op->state, state);
	op->state = state;
}

static void count(struct sosd_port *port, enum sosd_count what)
{
	atomic_store_explicit(&port->count[what],
		atomic_load_explicit(&port->count[what], memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* ---- between threads --------------------------------------------------------------------- */

void sosd_post(struct sosd_op *op)
{
	if (sosd_mail_post(&sosd_port_of(op->pp)->mail, &op->letter))
		peer_port_kick(op->pp);
}

/* On a thread of librados. */
static void trip_ended(rados_completion_t c, void *arg)
{
	struct sosd_op *op = arg;

	op->result = rados_aio_get_return_value(c);
	sosd_post(op);
}

static void op_ready(struct sosd_port *port, struct sosd_op *op)
{
	op_set(op, SOSD_READY);
	ops_list_add(&port->ready, &op->order);
}

/* ---- answering --------------------------------------------------------------------------- */

static void tell_failure(struct peer_port *pp, const struct sosd_op *op, int error)
{
	uint32_t nr =
		failures_note(&sosd_of(pp->peer)->failures, op->r, -error, pp->now_ns);

	if (!nr)
		return;
	log_warn(
		"%s: %s of %s in the pool %s failed: %s; %s (failures since the last such line: "
		"%u)",
		pp->peer->name, xseg_op_name((enum xseg_op)op->r->op), op->r->target,
		sosd_of(pp->peer)->rados.pool,
		error == -ESHUTDOWN ? "blocklisted" : strerror(-error), sosd_error_remedy(error),
		nr);
}

static void next_copy(struct sosd_port *port, struct sosd_op *op)
{
	struct sosd_op *next;

	if (port->copying != op)
		return;
	port->copying = NULL;
	next = ops_list_take(&port->lined_up);
	if (next)
		op_ready(port, next);
}

/* The answer comes before the leaving (S2). */
static void op_end(struct peer_port *pp, struct sosd_op *op, int64_t result)
{
	struct sosd *s = sosd_of(pp->peer);
	struct order_op *ready = NULL, *next;
	struct sosd_op *other;

	if (result < 0 && sosd_error_is_the_stores((int)result))
		tell_failure(pp, op, (int)result);
	peer_answer(pp, op->r, result < 0 ? sosd_error_for_client((int)result) : result);
	next_copy(sosd_port_of(pp), op);
	if (op->order.nr)
		ready = order_leave(&s->order, &op->order);
	op_set(op, SOSD_FREE);
	ops_put(&s->ops, &op->order);
	for (; ready; ready = next) {
		next = ready->next;
		other = (struct sosd_op *)ready;
		if (other->pp == pp)
			op_ready(sosd_port_of(pp), other);
		else
			sosd_post(other);
	}
}

/* ---- silence ----------------------------------------------------------------------------- */

static uint64_t silent_for_ns(const struct peer_port *pp)
{
	const struct sosd_port *port = &sosd_of(pp->peer)->port[pp->nr];

	return port->asked_ns ? pp->now_ns - port->asked_ns : 0;
}

/* RADOS has answered one of the calls that are out. */
static void heard(struct peer_port *pp)
{
	struct sosd_port *port = sosd_port_of(pp);

	if (port->silent)
		log_info("%s: the pool %s answers again, after %lu s", pp->peer->name,
			sosd_of(pp->peer)->rados.pool,
			(unsigned long)(silent_for_ns(pp) / SECOND_NS));
	port->silent = false;
	port->asked_ns = port->calls.nr_out > 1 + port->lists ? pp->now_ns : 0;
	port->given_up_ns = 0;
}

static void look_for_silence(struct peer_port *pp)
{
	struct sosd *s = sosd_of(pp->peer);
	struct sosd_port *port = sosd_port_of(pp);

	if (port->silent || silent_for_ns(pp) < SILENCE_NS || sosd_owner_error(&s->owner))
		return;				/* or it was said why nothing is sent */
	port->silent = true;
	count(port, SOSD_COUNT_SILENCES);
	log_warn(
		"%s: the pool %s has not answered for %lu s; requests wait, up to %lu s each, and "
		"dirty data stays in the cache; 'ceph -s' may say why",
		pp->peer->name, s->rados.pool, (unsigned long)(SILENCE_NS / SECOND_NS),
		(unsigned long)(atomic_load_explicit(&s->timeout_ns, memory_order_relaxed) /
				SECOND_NS));
}

/* It has waited for so long, and RADOS has been silent all that time: to send it would be to wait
 * as long again. By librados' clock, which may be some ms before this one, or by this one. */
static bool is_hopeless(const struct peer_port *pp, const struct sosd_op *op, uint64_t timeout_ns)
{
	if (op->sent_ns)
		return false;
	return op->since_ns <= sosd_of(pp->peer)->port[pp->nr].given_up_ns ||
	       (pp->now_ns - op->since_ns >= timeout_ns && silent_for_ns(pp) >= timeout_ns);
}

/* ---- the way of a request ---------------------------------------------------------------- */

static const struct sosd_trip *trip_of(const struct sosd_op *op)
{
	return &sosd_trips[op->r->op][op->trip];
}

static void op_came(struct peer_port *pp, struct sosd_op *op)
{
	struct sosd *s = sosd_of(pp->peer);
	struct sosd_port *port = sosd_port_of(pp);
	uint64_t timeout_ns = atomic_load_explicit(&s->timeout_ns, memory_order_relaxed);
	int64_t result = op->result;

	if (op->result < 0 && sosd_error_passes(op->result) &&
		pp->now_ns - op->sent_ns < timeout_ns) {
		count(port, SOSD_COUNT_AGAIN);
		op->due_ns = pp->now_ns + sosd_error_pause_ns(++op->tries);
		op_set(op, SOSD_PAUSED);
		ops_list_add(&port->paused, &op->order);
	} else {
		result = trip_of(op)->came(s, op, op->result);
	}
	sosd_call_put(&port->calls, op->call);
	op->call = NULL;
	if (op->state == SOSD_PAUSED)
		return;
	if (op->result == -ETIMEDOUT)
		count(port, SOSD_COUNT_TIMEOUTS);
	if (result != SOSD_MORE) {
		op_end(pp, op, result);
		return;
	}
	op->trip++;
	op->tries = 0;
	op_ready(port, op);
}

static void op_send(struct peer_port *pp, struct sosd_op *op)
{
	struct sosd *s = sosd_of(pp->peer);
	struct sosd_port *port = sosd_port_of(pp);
	char name[SOSD_NAME_MAX];
	int rc;

	op->call = sosd_call_get(&port->calls, trip_ended, op);
	if (!op->call) {
		op_end(pp, op, -ENOMEM);
		return;
	}
	if (op->r->op == XSEG_OP_LIST)
		port->lists++;
	else if (!port->asked_ns)
		port->asked_ns = pp->now_ns;
	if (!op->sent_ns)
		op->sent_ns = pp->now_ns;
	op_set(op, SOSD_OUT);
	count(port, SOSD_COUNT_TRIPS);
	sosd_name(s->prefix, op->r->target, name);
	rc = trip_of(op)->send(s, op, name);
	if (rc < 0) {				/* it did not go: no callback */
		op->result = rc;
		sosd_post(op);
	}
}

static void op_begin(struct peer_port *pp, struct sosd_op *op)
{
	struct sosd_port *port = sosd_port_of(pp);

	if (op->r->op == XSEG_OP_FLUSH) {
		op_end(pp, op, 0);
	} else if (shapes[op->r->op].range == SHAPE_BYTES && !op->r->size) {
		op_end(pp, op, 0);
	} else if (op->r->op == XSEG_OP_COPY && port->copying && port->copying != op) {
		op_set(op, SOSD_LINED_UP);
		ops_list_add(&port->lined_up, &op->order);
	} else {
		if (op->r->op == XSEG_OP_COPY)
			port->copying = op;
		op_send(pp, op);
	}
}

static void ops_begin(struct peer_port *pp)
{
	struct sosd *s = sosd_of(pp->peer);
	struct sosd_port *port = sosd_port_of(pp);
	uint64_t timeout_ns = atomic_load_explicit(&s->timeout_ns, memory_order_relaxed);
	enum sosd_owner_state own = sosd_owner_state(&s->owner);
	int error = sosd_owner_error(&s->owner);
	struct sosd_op *op;

	while ((op = (struct sosd_op *)port->ready.first)) {
		if (own == SOSD_LOST) {
			op_end(pp, ops_list_take(&port->ready), -ESHUTDOWN);
		} else if (is_hopeless(pp, op, timeout_ns)) {
			count(port, SOSD_COUNT_TIMEOUTS);
			op_end(pp, ops_list_take(&port->ready), error ? error : -ETIMEDOUT);
		} else if (sosd_owner_may_send(&s->owner) &&
			   sosd_calls_has_room(&port->calls)) {
			op_begin(pp, ops_list_take(&port->ready));
		} else {
			if (!port->asked_ns)
				port->asked_ns = pp->now_ns;
			break;
		}
	}
}

static void sosd_accept(struct peer_port *pp, struct xreq *r, bool again)
{
	struct sosd *s = sosd_of(pp->peer);
	struct sosd_op *op;
	int rc = shape_check(r, END_MAX);

	if (rc) {
		peer_answer(pp, r, rc);
		return;
	}
	op = ops_get(&s->ops);
	*op = (struct sosd_op){ .pp = pp, .r = r, .again = again, .state = SOSD_FREE,
		.since_ns = pp->now_ns };
	if (r->op == XSEG_OP_COPY)
		rc = shape_source(s->peer.seg, r, op->source);
	if (rc) {
		ops_put(&s->ops, &op->order);
		peer_answer(pp, r, rc);
		return;
	}
	op_set(op, SOSD_WAITING);
	sosd_add_ranges(op);
	if (!op->order.nr || order_enter(&s->order, &op->order))
		op_ready(sosd_port_of(pp), op);
	ops_begin(pp);
}

void sosd_request(struct peer_port *pp, struct xreq *r)
{
	sosd_accept(pp, r, false);
}

/* Whether it was STARTED or not: doing it (again) is harmless, as nothing that overlaps it was
 * begun since, and the OSDs do nothing more of what a predecessor sent (S3). */
void sosd_recover(struct peer_port *pp, struct xreq *r)
{
	sosd_accept(pp, r, true);
}

/* ---- poll -------------------------------------------------------------------------------- */

static struct sosd_op *op_of_letter(struct sosd_letter *l)
{
	return (struct sosd_op *)((uint8_t *)l - offsetof(struct sosd_op, letter));
}

static void read_mail(struct peer_port *pp)
{
	struct sosd_port *port = sosd_port_of(pp);
	struct sosd_letter *l = sosd_mail_take(&port->mail), *next;
	struct sosd_op *op;

	for (; l; l = next) {
		next = l->next;
		op = op_of_letter(l);
		if (op->state == SOSD_WAITING) {
			op_ready(port, op);
			continue;
		}
		if (op->r->op == XSEG_OP_LIST)
			port->lists--;
		if (op->result != -ETIMEDOUT)
			heard(pp);
		else if (port->asked_ns <= op->sent_ns && port->given_up_ns < op->sent_ns)
			port->given_up_ns = op->sent_ns;
		op_came(pp, op);
	}
}

/* Those whose pause is over are ready; when the next one will be. */
static uint64_t end_pauses(struct peer_port *pp)
{
	struct sosd_port *port = sosd_port_of(pp);
	struct ops_list paused;
	uint64_t next_ns = PEER_NEVER;
	struct sosd_op *op;

	ops_list_init(&paused);
	ops_list_move(&paused, &port->paused);
	while ((op = ops_list_take(&paused))) {
		if (op->due_ns <= pp->now_ns) {
			op_ready(port, op);
			continue;
		}
		ops_list_add(&port->paused, &op->order);
		if (op->due_ns < next_ns)
			next_ns = op->due_ns;
	}
	return next_ns;
}

/* What waits has to be looked at when it may have become hopeless; silence, when it is worth a
 * line. */
static uint64_t next_look(const struct peer_port *pp)
{
	const struct sosd_port *port = &sosd_of(pp->peer)->port[pp->nr];

	if (!port->asked_ns || (port->silent && !port->ready.first))
		return PEER_NEVER;
	return pp->now_ns + SECOND_NS;
}

/* While there are requests. */
static void look_for_space(struct peer_port *pp)
{
	struct sosd *s = sosd_of(pp->peer);

	if (pp->nr || pp->now_ns < s->space_due_ns)
		return;
	s->space_due_ns = pp->now_ns + SPACE_LOOK_NS;
	sosd_lister_look(&s->lister);
}

uint64_t sosd_poll(struct peer_port *pp)
{
	uint64_t pause_ns, look_ns;

	read_mail(pp);
	pause_ns = end_pauses(pp);
	ops_begin(pp);
	look_for_space(pp);
	look_for_silence(pp);
	look_ns = next_look(pp);
	return pause_ns < look_ns ? pause_ns : look_ns;
}
