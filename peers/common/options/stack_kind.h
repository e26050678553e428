/* stack_kind - the kinds of peers, as far as a stack must know them without their code.
 *
 * Contract: constant.
 */
#ifndef PEERS_COMMON_STACK_KIND_H
#define PEERS_COMMON_STACK_KIND_H

#include <stdbool.h>

#include "xseg/xseg.h"

#define STACK_KINDS "volumed, cached, filed, memd, sosd, kvd, memcached"	/* for messages */

struct stack_kind {
	const char *name;
	bool sends;				/* has a downstream */
	const char *over;			/* of this kind only, and its key */
};

/* NULL: there is none of that name. */
const struct stack_kind *stack_kind_find(const char *name);
/* For struct opt's check. */
int stack_kind_check(const char *text, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
