/* policy - the write policies: which one holds for the cache, and the dirty data that the last one
 * left.
 *
 * A policy is a row of POLICIES: its number, its name, the counter of its writes, and its
 * capabilities. The rest of the cache asks for a capability, never which policy it is.
 *
 *   write-back	a write is answered when the cache has it; the store gets it later. Its data
 *			survives the death of any process, but is in RAM only until it is flushed: a
 *			FLUSH that is answered, or FUA, promises that it is stable at the store
 *   write-through	write-back, plus waiting for the flush of its pages. If the store fails, the
 *			bucket stays dirty, is tried again, and the writer is told; it is
 *			unpromised, and may be given up (unpromised.c)
 *   write-around	a write goes past the cache to the store; reads are cached. Cached data
 *			of its range goes. A write over data newer than the store goes through the
 *			cache, as there it is in order. For data that is written and not soon
 *			read
 *   pass-through	everything goes past the cache, which keeps its data and takes nothing
 *			new; data newer than the store is still served from it. For a cache that
 *			is to be quiet: before it is unplugged, or while one measures the store
 * All but write-back promise the same as write-through.
 *
 * A request keeps one policy to its end: the policy that held for its object when it was first
 * looked at. That is its volume's own, or the cache's.
 *
 * Contract: a policy is constant. Any thread.
 */
#ifndef PEERS_CACHED_POLICY_H
#define PEERS_CACHED_POLICY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "peers/cached/bucket/counters.h"

/* X(NUMBER, NAME, COUNTER, CAPABILITIES...): the number is that of the option and of what is in the
 * arena, so rows are added at the end. */
#define POLICIES(X)                                                                                \
	X(WRITE_BACK, "write-back", CC_WRITES_BACK, .answers_before_store = true)                  \
	X(WRITE_THROUGH, "write-through", CC_WRITES_THROUGH, )                                     \
	X(WRITE_AROUND, "write-around", CC_WRITES_AROUND, .writes_around = true)                   \
	X(PASS_THROUGH, "pass-through", CC_WRITES_PASS, .writes_around = true, .reads_around = true)

#define POLICY_NUMBER(number, ...) POLICY_##number,
enum policy_number { POLICIES(POLICY_NUMBER) NR_POLICIES };

struct cached;

struct policy {
	const char *name;
	enum cache_counter counter;		/* writes under it */
	/* past the cache, where nothing there is newer than the store (around.c) */
	bool writes_around, reads_around;
	/* A write without FUA is answered when its slots are stored, and what was answered may be
	 * dirty. Else it is answered when the store has it. */
	bool answers_before_store;
};
extern const struct policy policies[NR_POLICIES];		/* by number */
extern const char *const policy_names[NR_POLICIES + 1];		/* the same; NULL at the end */

struct policy_room {
	_Atomic(const struct policy *) current;	/* of writes from now on */
	/* the cache is to leave the path: what was to be answered before the store has it waits for
	 * the store; read for each write; port 0 writes it (plug.c) */
	_Atomic bool leaving;
	_Atomic bool switching;		/* left write-back: until what was dirty then is clean */
	/* at the last switch, for the status: what was dirty, when that was (0: no port has seen it
	 * yet), and the policy that it left */
	_Atomic uint64_t switch_bytes, switch_ns;
	_Atomic(const struct policy *) switch_from;
	uint32_t switch_ticket;	/* dirty_lock's: dirty sets up to it are from before the switch */
};

struct policy_room *policy_of(const struct cached *k);

/* The policy of that name, or NULL. */
const struct policy *policy_named(const char *name);
/* The cache's own, as it was set. */
const struct policy *policy_current(const struct cached *k);
/* The policy that holds where that one was set; NULL: the cache's. A cache that is leaving promises
 * nothing that it would have to flush later. */
const struct policy *policy_promise(const struct cached *k, const struct policy *p);

#endif
