/* policy - what a write policy is, and which one holds: the cache's, and what is left of the last.
 *
 * Contract: a policy is constant. What is asked of an object is asked inside of it.
 */
#ifndef PEERS_CACHED_POLICY_H
#define PEERS_CACHED_POLICY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "peers/cached/bucket/counters.h"

#define NR_POLICIES 4

struct cached;
struct cport;
struct creq;
struct object;

struct policy {
	const char *name;
	enum cache_counter counter;		/* writes under it */
	/* past the cache, where nothing there is newer than the store (around.c) */
	bool writes_around, reads_around;
	bool answers_before_store;	/* a write without FUA, when its slots are stored */
	/* The slots are stored and the request is STARTED: answer it, or have it wait for the
	 * store. */
	void (*applied)(struct cport *ps, struct creq *c);
};
extern const struct policy policy_write_back, policy_write_through, policy_write_around,
	policy_pass_through;
void through_applied(struct cport *ps, struct creq *c);			/* waits for the store */
extern const struct policy *const policies[NR_POLICIES];	/* by option value */
/* for its requests from now on */
const struct policy *object_policy(struct cport *ps, struct object *o);

struct policy_room {
	_Atomic(const struct policy *) current;	/* of writes from now on */
	_Atomic bool switching;		/* left write-back: until what was dirty then is clean */
	/* at the last switch, for the status: what was dirty, when that was (0: no port has seen it
	 * yet), and the policy that it left */
	_Atomic uint64_t switch_bytes, switch_ns;
	_Atomic(const struct policy *) switch_from;
	uint32_t switch_ticket;	/* dirty_lock's: dirty sets up to it are from before the switch */
};

struct policy_room *policy_of(const struct cached *k);

#endif
