/* stack_resolve - what holds between the peers of a stack file: kinds, downstreams, groups;
 * and the exports.
 *
 * Contract: called once, by stack_read(), when all of the text is read.
 */
#ifndef PEERS_COMMON_STACK_RESOLVE_H
#define PEERS_COMMON_STACK_RESOLVE_H

#include "peers/common/options/stack.h"
#include "peers/common/options/stack_errors.h"

/* Adds what is wrong; of a peer that is wrong itself nothing more is said. */
void stack_resolve(struct stack *stack, struct stack_errors *errors);

#endif
