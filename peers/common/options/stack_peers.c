/* stack_peers - a stack's peers: by name, and in the order in which they start. See stack.h. */
#include <assert.h>
#include <string.h>

#include "peers/common/options/stack.h"

uint32_t stack_find(const struct stack *stack, const char *name)
{
	uint32_t i;

	for (i = 0; i < stack->nr_peers; i++)
		if (!strcmp(stack->peers[i].name, name))
			return i;
	return STACK_NONE;
}

void stack_order(const struct stack *stack, uint32_t order[STACK_MAX_PEERS])
{
	bool placed[STACK_MAX_PEERS] = { false };
	uint32_t i, nr = 0, before;

	while (nr < stack->nr_peers) {
		before = nr;
		for (i = 0; i < stack->nr_peers; i++) {
			uint32_t below = stack->peers[i].downstream;

			if (placed[i] || (below != STACK_NONE && !placed[below]))
				continue;
			placed[i] = true;
			order[nr++] = i;
		}
		assert(nr > before);
	}
}

const char *stack_downstream(const struct stack_peer *p)
{
	return p->waits ? "" : p->downstream_name;
}
