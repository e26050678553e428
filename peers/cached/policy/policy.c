/* policy - the table of write policies, one file each, and which one a request has.
 *
 * A request is under the policy that held for its object when it was first looked at, to its end:
 * its volume's own, or the cache's.
 */
#include "peers/cached/bucket/cport.h"
#include "peers/cached/object/object.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/volume/volume.h"

const struct policy *const policies[NR_POLICIES] = { &policy_write_back, &policy_write_through,
	&policy_write_around, &policy_pass_through };

const struct policy *object_policy(struct cport *ps, struct object *o)
{
	return volume_promise(ps->cache, object_volume(o), object_entry(ps->cache, o)->volume);
}
