/* stack_check - see stack_check.h. */
#include "peers/common/runtime/stack_check.h"

#include <errno.h>
#include <stdlib.h>

#include "peers/common/runtime/peer.h"

static int check_peer(const struct stack_peer *peer, const struct peer_class *cls,
		      struct xseg_error *err)
{
	void *scratch = calloc(1, cls->size);
	struct xseg_error why;
	const char *missing;
	int rc;

	if (!scratch)
		return xseg_fail(err, -ENOMEM, "out of memory");
	opt_set_defaults(cls->opts, scratch);
	rc = stack_set_options(peer, cls->opts, scratch, err);
	missing = opt_missing(cls->opts, scratch);
	if (!rc && cls->fit && cls->fit(scratch, &why))
		rc = xseg_fail(err, -EINVAL, "line %u: peer '%s': %.280s", peer->line, peer->name,
			       why.text);
	/* one that keeps what is below waits to be plugged; any other has nothing to do without */
	if (!missing && cls->sends && !cls->keeps && peer->downstream == STACK_NONE)
		missing = opt_find(cls->opts, "kvd") ? "kvd" : "downstream";
	if (!rc && missing)
		rc = xseg_fail(err, -EINVAL, "line %u: peer '%s' needs %s =", peer->line,
			       peer->name, missing);
	free(scratch);
	return rc;
}

int stack_check_options(const struct stack *stack,
			const struct peer_class *(*find)(const char *kind), struct xseg_error *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < stack->nr_peers && !rc; i++) {
		const struct peer_class *cls = find(stack->peers[i].kind);

		rc = cls ? check_peer(&stack->peers[i], cls, err)
			 : xseg_fail(err, -EINVAL, "line %u: this build has no %s",
				     stack->peers[i].line, stack->peers[i].kind);
	}
	return rc;
}
