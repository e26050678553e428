/* policy_pass_through - everything goes past the cache, which keeps what it has and takes nothing
 * new.
 *
 * Promise: as write-through. What is newer than the store is still served from the cache, until it
 * is flushed: the switch to this policy begins that. For a cache that is to be quiet: before it is
 * unplugged, or while one measures the store.
 */
#include "peers/cached/policy/policy.h"

const struct policy policy_pass_through = {
	.name = "pass-through",
	.counter = CC_WRITES_PASS,
	.writes_around = true,
	.reads_around = true,
	.applied = through_applied,
};
