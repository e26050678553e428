/* units - see units.h. */
#include "peers/host/units.h"

#include <stdio.h>

enum xseg_peer_state units_peer_state(struct units *us, uint32_t peer, struct xseg_peer_info *info)
{
	uint32_t index = xseg_peer_find(us->seg, us->stack->peers[peer].name);

	if (index == XSEG_NONE || !xseg_peer_get_info(us->seg, index, info))
		return XSEG_PEER_FREE;
	return info->state;
}

bool unit_has(struct units *us, const struct unit *u, bool (*is)(enum xseg_peer_state state))
{
	struct xseg_peer_info info;
	uint32_t i;

	for (i = 0; i < u->nr; i++)
		if (is(units_peer_state(us, u->peer[i], &info)))
			return true;
	return false;
}

bool unit_below_serves(struct units *us, const struct unit *u)
{
	uint32_t below = us->stack->peers[u->peer[0]].downstream;
	struct xseg_peer_info info;

	return below == STACK_NONE || units_peer_state(us, below, &info) == XSEG_PEER_LIVE;
}

const char *unit_name(const struct units *us, const struct unit *u)
{
	static char text[256];
	size_t used = 0;
	uint32_t i;

	for (i = 0; i < u->nr && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? ", " : "",
					 us->stack->peers[u->peer[i]].name);
	return text;
}

const struct unit *units_of(const struct units *us, uint32_t peer)
{
	const struct unit *u;
	uint32_t k;

	for (u = us->unit; u < us->unit + us->nr; u++)
		for (k = 0; k < u->nr; k++)
			if (u->peer[k] == peer)
				return u;
	return NULL;
}

static void add_to_unit(struct unit *u, const struct stack *stack, uint32_t peer)
{
	u->peer[u->nr++] = peer;
	u->restart |= stack->peers[peer].restart;
}

void units_make(struct units *us)
{
	struct unit *of_group[STACK_MAX_GROUPS] = { NULL };
	const struct stack_peer *p;
	struct unit *u;
	uint32_t i;

	stack_order(us->stack, us->order);
	for (i = 0; i < us->stack->nr_peers; i++) {
		p = &us->stack->peers[us->order[i]];
		u = p->group == STACK_NONE ? NULL : of_group[p->group];
		if (!u) {
			u = &us->unit[us->nr++];
			u->together = p->group != STACK_NONE;
			if (u->together)
				of_group[p->group] = u;
		}
		add_to_unit(u, us->stack, us->order[i]);
	}
}
