/* creq - see creq.h.
 *
 * States (creq_set_state() is the only writer). The owner of the creq sets the state, before it
 * puts the creq where another thread can find it.
 *
 *   from           to              when                                       by
 *   IDLE           RUNNING         it arrives                                 creq_init
 *   RUNNING        WAITS_ENTRY     its name is new and no entry is free       wait_for_entry
 *   RUNNING        WAITS_OBJECT    a load, a delete, a redo or a write past   object_wait
 *                                  the cache of its object is under way
 *   RUNNING        WAITS_MEMORY    there are too few pages, or no list for    pages_wait,
 *                                  them                                       list_get
 *   RUNNING        WAITS_REQUEST   no request of our own is free              sync_send,
 *                                                                             creq_wait_for_request
 *   RUNNING        WAITS_THROTTLE  much is dirty, and its turn has not come   throttle_holds
 *   RUNNING        AT_STORE        a child of its own, or flushes that it     through_wait,
 *                                  waits for, are out                         sync_send, around.c,
 *                                                                             flush_add, ops.c,
 *                                                                             begins_again
 *   WAITS_...      RUNNING         the thing that it waited for is there, or  entry_retry,
 *                                  it is voided                               object_wake,
 *                                                                             change_catch,
 *                                                                             take_due,
 *                                                                             sync_retry,
 *                                                                             creq_retry
 *   AT_STORE       RUNNING         the flushes are over, or their data is     through_cover,
 *                                  deleted; or a walk is over; or the store   through_deleted,
 *                                  has answered its FLUSH                     sync_all,
 *                                                                             redirty_end,
 *                                                                             sync_done
 *   RUNNING,       IDLE            it is answered, or forwarded               creq_finish,
 *   AT_STORE                                                                  around_read
 */
#include "peers/cached/creq/creq.h"
#include "peers/cached/store/store.h"

#define TO(s) (1u << CREQ_##s)

const struct xstates creq_states = {
	.what = "request in the cache",
	XSTATE(CREQ_, IDLE, TO(RUNNING)),
	XSTATE(CREQ_, RUNNING, TO(WAITS_ENTRY) | TO(WAITS_OBJECT) | TO(WAITS_MEMORY) |
		TO(WAITS_REQUEST) | TO(WAITS_THROTTLE) | TO(AT_STORE) | TO(IDLE)),
	XSTATE(CREQ_, WAITS_ENTRY, TO(RUNNING)),
	XSTATE(CREQ_, WAITS_OBJECT, TO(RUNNING)),
	XSTATE(CREQ_, WAITS_MEMORY, TO(RUNNING)),
	XSTATE(CREQ_, WAITS_REQUEST, TO(RUNNING)),
	XSTATE(CREQ_, WAITS_THROTTLE, TO(RUNNING)),
	XSTATE(CREQ_, AT_STORE, TO(RUNNING) | TO(IDLE)),
};

void creq_set_state(struct creq *c, enum creq_state s)
{
	xstate_check(&creq_states, c->state, s);
	c->state = s;
}

void creq_finish(struct cport *ps, struct creq *c, int64_t result)
{
	struct object *o = c->obj, *other = c->other;

	if (c->listed)
		change_leave(ps->cache, o, c);
	c->obj = c->other = NULL;
	list_put(ps, c);
	creq_set_state(c, CREQ_IDLE);
	peer_answer(ps->pp, c->r, result);
	if (o)
		object_leave(ps, o);
	if (other)
		object_leave(ps, other);
}

void creq_retry(struct xwait *w, void *ctx)
{
	struct creq *c = caa_container_of(w, struct creq, wait);

	creq_set_state(c, CREQ_RUNNING);
	object_push(ctx, c->obj, &c->work);
}

void creq_wait_for_request(struct cport *ps, struct creq *c)
{
	creq_set_state(c, CREQ_WAITS_REQUEST);
	c->wait.fn = creq_retry;
	c->queue = &store_port(ps)->want_requests;
	requests_wait(ps, &c->wait);
}

/* ---- waiting inside an object ---- */

void object_wait(struct cport *ps, struct object *o, struct creq *c, enum wait_why why)
{
	count_wait(ps, why);
	creq_set_state(c, CREQ_WAITS_OBJECT);
	c->next = o->waiters;
	o->waiters = c;
}

static struct creq *oldest_first(struct creq *c)
{
	struct creq *list = NULL, *next;

	for (; c; c = next) {
		next = c->next;
		c->next = list;
		list = c;
	}
	return list;
}

void object_wake(struct cport *ps, struct object *o)
{
	struct creq *c = oldest_first(o->waiters), *next;

	o->waiters = NULL;
	for (; c; c = next) {
		next = c->next;
		creq_set_state(c, CREQ_RUNNING);
		c->step(ps, c);
	}
}
