/* stack_check - whether a stack file has only options that its kinds of peer understand.
 *
 * Contract: any thread; allocates and frees.
 */
#ifndef PEERS_COMMON_STACK_CHECK_H
#define PEERS_COMMON_STACK_CHECK_H

#include "peers/common/options/stack.h"

/* Checks the peers' own options: find(kind) gives the kind, or NULL when this build has none of it.
 * Needs no segment. -EINVAL with "line N: ..." for an option that the kind does not have, or a
 * value that is wrong. */
struct peer_class;
int stack_check_options(const struct stack *stack,
			const struct peer_class *(*find)(const char *kind),
			struct xseg_error *err) XSEG_MUST_CHECK;

#endif
