/* evil - what a hostile process does to a live stack: requests with any content, offers, places,
 * hints and tables.
 *
 * Contract: rig.h's. Two manners: within its own (its requests, its pages, its lanes, everybody's
 * hints), where others must not notice; and anywhere in the segment's tables, where nobody may
 * crash or hang. Not touched: what is one peer's own memory that happens to lie in the segment, its
 * arena, its pages, and the words that say whose they are (docs/design/members.md says why).
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
