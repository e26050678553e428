/* policy_write_back - a write is answered when the cache has it; the store gets it later.
 *
 * Promise: the data survives the death of any process. It is in RAM only until it is flushed: a
 * FLUSH that is answered, or FUA, promises that it is stable at the store.
 */
#include "peers/cached/policy/policy.h"
#include "peers/cached/request/creq.h"

static void applied(struct cport *ps, struct creq *c)
{
	creq_finish(ps, c, c->r->size);
}

const struct policy policy_write_back = {
	.name = "write-back", .counter = CC_WRITES_BACK,
	.answers_before_store = true, .applied = applied
};
