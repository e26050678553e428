/* args - the argument list of a peer's program, as its section of the stack file gives it. For code
 * that starts peers, or an NBD server.
 *
 * Contract: any thread; allocates; nothing blocks. Of a segment it only reads which peers there
 * are, and where they send. If something does not fit or cannot be allocated, `failed` is set: then
 * the list must not be used.
 *
 * Invariant: arg[nr] is NULL.
 */
#ifndef PEERS_COMMON_ARGS_H
#define PEERS_COMMON_ARGS_H

#include <stdbool.h>

#include "peers/common/options/stack.h"

#define ARGS_MAX (2 * STACK_MAX_OPTIONS + STACK_MAX_PEERS + 6 * STACK_MAX_EXPORTS)

struct args {					/* begins zeroed */
	int nr;
	char *arg[ARGS_MAX + 1];
	bool failed;
};

/* One argument. */
void args_add(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* --name, --threads, --downstream, --cpus and the kind's own options. */
void args_add_peer(
	struct args *a, struct xseg *seg, const struct stack *stack, const struct stack_peer *p);
/* The peer that p is told to send to; "": none. A cache off the path answers nothing. So a peer
 * that would send to such a cache begins below it, beside the others there. Then the cache is
 * plugged below all of them (xseg reload, xseg plug). It says nothing of a peer that has a route
 * already, which keeps that. */
const char *args_downstream(
	struct xseg *seg, const struct stack *stack, const struct stack_peer *p);
void args_free(struct args *a);

#endif
