/* policy_write_around - a write goes past the cache to the store; reads are cached.
 *
 * Promise: as write-through. What was cached of the range goes; a write over something newer than
 * the store goes through the cache, as there it is in order. For data that is written and not soon
 * read.
 */
#include "peers/cached/policy/policy.h"

const struct policy policy_write_around = {
	.name = "write-around",
	.counter = CC_WRITES_AROUND,
	.writes_around = true,
	.applied = through_applied,
};
