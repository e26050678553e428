/* walk - goes through all objects that have buckets, with a job inside each. It takes one after the
 * other, as each lets it in, so that requests go on meanwhile.
 *
 * Contract: walk_begin() where object_push() may be called, with no lock held, when the last walk
 * of that struct has ended. The function each() runs inside the object. The function end() runs
 * once, after all, inside the last object or where the walk began. It may begin the next walk.
 *
 * Invariants:
 *   X1  An object that has buckets from the beginning to the end of a walk is visited, once.
 *   X2  A walk has one job at most, with a reference to its object; the struct is that job's, and
 *       after end() it is unowned.
 */
#ifndef PEERS_CACHED_WALK_H
#define PEERS_CACHED_WALK_H

#include <stdint.h>

#include "xtypes/xworkq.h"

struct cport;
struct object;

struct walk {
	void (*each)(struct cport *ps, struct object *o);
	void (*end)(struct cport *ps);
	struct xwork work;
	uint32_t next;		/* entry that is looked at next; the one before it has its turn */
};

void walk_begin(struct cport *ps, struct walk *w,
	void (*each)(struct cport *ps, struct object *o), void (*end)(struct cport *ps));

#endif
