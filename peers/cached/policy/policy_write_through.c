/* policy_write_through - a write is answered when the store has answered it.
 *
 * It is write-back plus waiting for that page's flush: if the store fails, the bucket stays dirty,
 * is tried again, and the writer is told; it is unpromised, and may be given up (unpromised.c).
 * While it waits its request is APPLIED: a successor
 * completes it and does not apply it again.
 */
#include "peers/cached/bucket/cport.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/request/creq.h"

void through_applied(struct cport *ps, struct creq *c)
{
	if (c->r->state == XSEG_REQ_STARTED)
		xseg_req_apply(ps->pp->port, c->r);
	through_wait(ps, c);
}

const struct policy policy_write_through = {
	.name = "write-through",
	.counter = CC_WRITES_THROUGH,
	.applied = through_applied,
};
