/* room - what the peers and exports of a stack take of a segment, and whether that is there.
 *
 * Contract: any thread; allocates and frees.
 */
#ifndef PEERS_HOST_ROOM_H
#define PEERS_HOST_ROOM_H

#include "peers/common/options/stack.h"
#include "xseg/xseg.h"

struct room_need {
	uint64_t memory_bytes, requests, ports;
	/* of each of the stack's peers and exports; 0 also of one that is not counted */
	uint64_t peer_bytes[STACK_MAX_PEERS], export_bytes[STACK_MAX_EXPORTS];
};

/* What the peers of a stack take when they begin. A peer whose name the segment has (NULL: there is
 * none), alive or not, may have all of that already, so it is not counted; nor is one whose options
 * are wrong, which is the answer then. */
int room_count(struct xseg *seg, const struct stack *stack, struct room_need *need,
	       struct xseg_error *err) XSEG_MUST_CHECK;
/* "cached 34.0M, memd 4.0M"; returns text. */
#define ROOM_TEXT 160
const char *room_text(
	const struct stack *stack, const struct room_need *need, char text[ROOM_TEXT]);

/* Compares what the stack's peers take with what is left. -ENOSPC: not all of them can begin,
 * whatever the order. 0 is no promise: others may take some meanwhile, and requests may lie
 * apart. */
int room_check(struct xseg *seg, const struct stack *stack, struct xseg_error *err) XSEG_MUST_CHECK;
/* Adds what the peers need, and a good value, to what is wrong with [segment] memory by itself. */
void room_add_good(const struct stack *stack, const struct room_need *need,
	struct stack_error *error);
/* The same of a segment that is made as the stack's [segment] says. Adds what is too little. */
void room_check_plan(const struct stack *stack, const struct room_need *need,
		     struct stack_errors *errors);

#endif
