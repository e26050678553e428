/* room - whether a segment has room for all peers that a stack is to begin in it.
 *
 * Contract: any thread; allocates and frees.
 */
#ifndef PEERS_HOST_ROOM_H
#define PEERS_HOST_ROOM_H

#include "peers/common/options/stack.h"
#include "xseg/xseg.h"

/* Compares the memory, the requests and the ports that the stack's peers take when they begin with
 * those that are left. A peer whose name the segment has, alive or not, may have all of that
 * already, so it is not counted. -ENOSPC: not all of them can begin, whatever the order. 0 is no
 * promise: others may take some meanwhile, and requests may lie apart. */
int room_check(struct xseg *seg, const struct stack *stack, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
