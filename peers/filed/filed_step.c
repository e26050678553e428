/* filed_step - the step of an op, and how it goes from one thread to another. See filed.h for the
 * states.
 */
#include "peers/filed/filed.h"

#include "xtypes/xstate.h"

#define TO(step) (1u << FILED_##step)

static const struct xstates states = {
	.what = "operation of filed",
	XSTATE(FILED_, WAITING, TO(BEGUN)),
	XSTATE(FILED_, BEGUN, TO(MOVING) | TO(WORKING) | TO(ENDED) | TO(SYNCING)),
	XSTATE(FILED_, MOVING, TO(WORKING) | TO(ENDED)),
	XSTATE(FILED_, WORKING, TO(MOVING) | TO(ENDED)),
	XSTATE(FILED_, ENDED, TO(SYNCING)),
	XSTATE(FILED_, SYNCING, TO(SYNCED)),
};

void filed_op_set(struct filed_op *op, enum filed_step step)
{
	xstate_check(&states, op->step, step);
	op->step = step;
}

void filed_give_back(struct filed_op *op, enum filed_step step, int64_t result)
{
	struct peer_port *pp = op->pp;
	struct filed_port *port = filed_port_of(pp);

	filed_op_set(op, step);
	op->result = result;
	pthread_mutex_lock(&port->lock);
	ops_list_add(&port->inbox, &op->order);
	/* release: partner is the acquire in filed_poll() */
	atomic_store_explicit(&port->has_mail, true, memory_order_release);
	pthread_mutex_unlock(&port->lock);
	peer_port_kick(pp);
}

void filed_files_idle(struct filed *f)
{
	struct ops_list hungry;
	struct filed_op *op;

	ops_list_init(&hungry);
	pthread_mutex_lock(&f->lock);
	f->idle_seq++;
	ops_list_move(&hungry, &f->starving);
	pthread_mutex_unlock(&f->lock);
	while ((op = ops_list_take(&hungry)))
		filed_pool_push(&f->pool, &op->work);
}
