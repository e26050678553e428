/* stack_check - whether a stack file has only options that its kinds of peer understand, and
 * whether what these name is there.
 *
 * Contract: any thread; allocates and frees. `find` gives a kind, or NULL when this build has none
 * of it. Needs no segment.
 */
#ifndef PEERS_COMMON_STACK_CHECK_H
#define PEERS_COMMON_STACK_CHECK_H

#include "peers/common/options/stack.h"

struct peer_class;
typedef const struct peer_class *stack_find_class(const char *kind);

/* Checks the peers' own options, of all peers whose kind is known, and adds all that is wrong. 0,
 * -ENOMEM, or -EINVAL: there are errors. */
int stack_check_all(const struct stack *stack, stack_find_class *find,
		    struct stack_errors *errors) XSEG_MUST_CHECK;
/* The same where one error is enough: -EINVAL with "line N: ..." for an option that the kind does
 * not have, or a value that is wrong. */
int stack_check_options(const struct stack *stack, stack_find_class *find,
			struct xseg_error *err) XSEG_MUST_CHECK;
/* Whether directories, files and sockets that the options name can be used: opt_path.h. Adds what
 * cannot. */
void stack_check_paths(
	const struct stack *stack, stack_find_class *find, struct stack_errors *errors);

#endif
