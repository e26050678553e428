/* evil - the acts of a hostile process on a live stack: requests with any content, offers, places,
 * hints and tables.
 *
 * Contract: rig.h's. There are two manners. Within its own (its requests, its pages, its lanes,
 * everybody's hints), others must not notice it. Anywhere in the segment's tables, no peer may
 * crash or hang. It spares one peer's own memory that happens to lie in the segment: its arena, its
 * pages, and the words that name their owner (docs/design/members.md says why).
 */
#ifndef TESTS_FUZZ_EVIL_H
#define TESTS_FUZZ_EVIL_H

#include "tests/fuzz/rig.h"

struct evil {
	struct input in;
	bool anywhere;
	char prefix[16];		/* of its objects' names */
	uint32_t volume;		/* its volume; 0: none */
};

/* Does one thing, by the input. */
void evil_act(struct evil *e);
/* The parts of it. */
void evil_send(struct evil *e);
void evil_take(struct evil *e);
void evil_scribble_request(struct evil *e);
void evil_forge_place(struct evil *e);
void evil_hints(struct evil *e);
void evil_ring(struct evil *e);
void evil_tables(struct evil *e);

#endif
