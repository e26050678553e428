/* policy - the table of write policies, one file each, and which one a request has.
 *
 * A request is under the policy that held when it was first looked at, to its end.
 */
#include "peers/cached/cached.h"

const struct policy *const policies[] = { &policy_write_back, &policy_write_through, &policy_write_around, &policy_pass_through };

const struct policy *object_policy(struct cport *ps, struct object *o)
{
	(void)o;
	return atomic_load_explicit(&ps->cache->policy, memory_order_relaxed);
}
