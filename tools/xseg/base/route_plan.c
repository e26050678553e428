/* route_plan - see route_plan.h. */
#include "tools/xseg/base/route_plan.h"

#include <stdio.h>
#include <string.h>

#include "peers/common/options/stack_kind.h"
#include "peers/common/options/stack_record.h"

/* ---- loading ----------------------------------------------------------------------------- */

uint32_t route_plan_find(const struct route_plan *plan, const char *name)
{
	for (uint32_t i = 0; i < plan->nr; i++)
		if (!strcmp(plan->node[i].name, name))
			return i;
	return ROUTE_NONE;
}

static struct route_node *add_node(struct route_plan *plan, const char *name)
{
	struct route_node *n = &plan->node[plan->nr];

	if (plan->nr == ROUTE_PLAN_NODES)
		return NULL;
	*n = (struct route_node){ .peer = XSEG_NONE, .now = ROUTE_NONE, .want = ROUTE_NONE,
		.group = ROUTE_NONE };
	snprintf(n->name, sizeof(n->name), "%s", name);
	plan->nr++;
	return n;
}

static bool load_peers(struct xseg *seg, const struct stack *old, struct route_plan *plan)
{
	struct xseg_peer_info info;
	struct route_node *n;

	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++) {
		if (!xseg_peer_get_info(seg, i, &info) || !strcmp(info.kind, "client") ||
			!strcmp(info.kind, XSEG_SUPERVISOR_KIND))
			continue;
		n = add_node(plan, info.name);
		if (!n)
			return false;
		n->there = true;
		n->alive = xseg_peer_is_up(info.state);
		n->peer = i;
		n->generation = info.generation;
		n->member = info.member;
		n->cache = !strcmp(info.kind, "cached");
		n->goes = stack_find(old, info.name) != STACK_NONE;
	}
	return true;
}

static void load_routes(struct xseg *seg, struct route_plan *plan)
{
	struct xseg_peer_info info, below;

	for (struct route_node *n = plan->node; n < plan->node + plan->nr; n++)
		if (n->there && xseg_peer_get_info(seg, n->peer, &info) &&
			info.downstream != XSEG_NONE &&
			xseg_peer_get_info(seg, info.downstream, &below))
			n->now = route_plan_find(plan, below.name);
}

/* A gateway has no route: it opens the store of values that its option names. */
static void load_gateways(const struct stack *old, struct route_plan *plan)
{
	const struct stack_kind *kind;
	const struct stack_peer *p;
	uint32_t at;

	for (p = old->peers; p < old->peers + old->nr_peers; p++) {
		kind = stack_kind_find(p->kind);
		at = route_plan_find(plan, p->name);
		if (!kind || !kind->over || at == ROUTE_NONE || !plan->node[at].there)
			continue;
		plan->node[at].by_name = true;
		plan->node[at].now = route_plan_find(plan, p->downstream_name);
	}
}

static bool load_file(struct xseg *seg, const struct stack *file, struct route_plan *plan)
{
	const struct stack_peer *q;
	struct xseg_peer_info info;
	struct route_node *n;
	uint32_t at;

	for (q = file->peers; q < file->peers + file->nr_peers; q++) {
		at = route_plan_find(plan, q->name);
		n = at == ROUTE_NONE ? add_node(plan, q->name) : &plan->node[at];
		if (!n)
			return false;
		n->in_file = true;
		n->goes = false;
		n->cache_in_file = !strcmp(q->kind, "cached");
		n->group = q->group;
		n->other_kind = n->there && xseg_peer_get_info(seg, n->peer, &info) &&
				strcmp(info.kind, q->kind) != 0;
	}
	for (q = file->peers; q < file->peers + file->nr_peers; q++) {
		at = *stack_downstream(q) ? route_plan_find(plan, stack_downstream(q)) : ROUTE_NONE;
		plan->node[route_plan_find(plan, q->name)].want = at;
	}
	return true;
}

/* Whether two peers of one stack share a process there. */
static bool are_together(const struct stack *stack, uint32_t a, uint32_t b)
{
	return a == b || (stack->peers[a].group != STACK_NONE &&
				 stack->peers[a].group == stack->peers[b].group);
}

/* Of peers of the file, by their places there. A new peer was with no other one. */
static bool were_together(
	const struct stack *old, const struct stack *file, uint32_t i, uint32_t k)
{
	uint32_t a = stack_find(old, file->peers[i].name), b = stack_find(old, file->peers[k].name);

	return a != STACK_NONE && b != STACK_NONE && are_together(old, a, b);
}

static void load_groups(const struct stack *old, const struct stack *file, struct route_plan *plan)
{
	for (uint32_t i = 0; i < file->nr_peers; i++)
		for (uint32_t k = 0; k < file->nr_peers; k++)
			if (i != k && were_together(old, file, i, k) != are_together(file, i, k))
				plan->node[route_plan_find(plan, file->peers[i].name)].regrouped =
					true;
}

/* What a command before this one has begun. */
static void load_pending(const char *pending, struct route_plan *plan)
{
	struct stack_replaced r;
	struct route_node *n;
	uint32_t at;

	while (stack_replaced_next(&pending, &r)) {
		at = route_plan_find(plan, r.name);
		n = at == ROUTE_NONE ? NULL : &plan->node[at];
		if (!n || !n->there || n->generation != r.generation)
			continue;
		n->goes |= !n->in_file;
		n->regrouped |= r.keeps_route;
	}
}

bool route_plan_load(struct xseg *seg, const struct stack *old, const struct stack *file,
	const char *pending, struct route_plan *plan)
{
	plan->nr = 0;
	if (!load_peers(seg, old, plan))
		return false;
	load_routes(seg, plan);
	load_gateways(old, plan);
	if (!load_file(seg, file, plan))
		return false;
	load_groups(old, file, plan);
	load_pending(pending, plan);
	return true;
}

/* ---- paths ------------------------------------------------------------------------------- */

/* One that was started by hand stays where it is. */
static bool is_foreign(const struct route_node *n)
{
	return n->there && !n->in_file && !n->goes;
}

uint32_t route_plan_below(const struct route_plan *plan, uint32_t node)
{
	uint32_t at = plan->node[node].now;

	for (uint32_t hops = 0; at != ROUTE_NONE && hops < plan->nr; hops++) {
		if (!plan->node[at].cache || !is_foreign(&plan->node[at]))
			break;
		at = plan->node[at].now;
	}
	return at;
}

static uint32_t below(const struct route_plan *plan, uint32_t node, bool in_file)
{
	return in_file ? plan->node[node].want : route_plan_below(plan, node);
}

static bool is_cache(const struct route_plan *plan, uint32_t node, bool in_file)
{
	return in_file ? plan->node[node].cache_in_file : plan->node[node].cache;
}

static uint32_t base(const struct route_plan *plan, uint32_t node, bool in_file)
{
	uint32_t at = below(plan, node, in_file);

	for (uint32_t hops = 0; at != ROUTE_NONE && hops < plan->nr; hops++) {
		if (!is_cache(plan, at, in_file))
			break;
		at = below(plan, at, in_file);
	}
	return at;
}

/* Whether the way from that node down to its base leads through a cache. */
static bool passes(const struct route_plan *plan, uint32_t node, uint32_t cache, bool in_file)
{
	uint32_t at = below(plan, node, in_file);

	for (uint32_t hops = 0; at != ROUTE_NONE && hops < plan->nr; hops++) {
		if (at == cache)
			return true;
		if (!is_cache(plan, at, in_file))
			break;
		at = below(plan, at, in_file);
	}
	return false;
}

/* It begins anew at another place. */
static bool is_moved(const struct route_node *n)
{
	return n->replaced && !n->keeps_route;
}

static void move(struct route_node *n)
{
	n->replaced = true;
	n->keeps_route = false;
}

/* Whether a peer that is no cache and goes on serving stands above the cache. */
static bool has_users(const struct route_plan *plan, uint32_t cache, bool in_file)
{
	for (uint32_t i = 0; i < plan->nr; i++) {
		const struct route_node *n = &plan->node[i];

		if (n->there && !is_moved(n) && !n->goes && !n->cache &&
			(n->in_file || !in_file) && passes(plan, i, cache, in_file))
			return true;
	}
	return false;
}

/* ---- who is replaced --------------------------------------------------------------------- */

/* Its data is not there any more, or is another's. */
static bool is_other_base(const struct route_plan *plan, uint32_t node)
{
	return node != ROUTE_NONE &&
	       (plan->node[node].goes || plan->node[node].other_kind ||
		       is_moved(&plan->node[node]));
}

/* A peer that is no cache. */
static bool user_moves(const struct route_plan *plan, uint32_t i)
{
	const struct route_node *n = &plan->node[i];
	uint32_t now = base(plan, i, false);

	return n->other_kind ||
	       (n->now != ROUTE_NONE &&
		       (now != base(plan, i, true) || is_other_base(plan, now)));
}

static bool cache_moves(const struct route_plan *plan, uint32_t i)
{
	const struct route_node *n = &plan->node[i];
	uint32_t at = route_plan_below(plan, i), now = base(plan, i, false);
	bool stays = at == n->want &&
		     (at == ROUTE_NONE ||
			     (now == base(plan, i, true) && !is_other_base(plan, now)));

	if (n->other_kind || stays)
		return n->other_kind;
	return (at != ROUTE_NONE && !has_users(plan, i, false)) ||
	       (n->want != ROUTE_NONE && !has_users(plan, i, true));
}

/* Until nothing more follows from that. */
static void plan_replaced(struct route_plan *plan)
{
	struct route_node *n;
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t i = 0; i < plan->nr; i++) {
			n = &plan->node[i];
			if (is_moved(n) || !n->in_file || !n->there ||
				!(n->cache ? cache_moves(plan, i) : user_moves(plan, i)))
				continue;
			move(n);
			n->other_data = !n->cache;
			more = true;
		}
	}
}

/* A peer that goes, and to which a replaced one sends, stops with that. */
static void plan_removed(struct route_plan *plan)
{
	for (uint32_t i = 0; i < plan->nr; i++)
		for (uint32_t k = 0; k < plan->nr && plan->node[i].goes; k++)
			if (is_moved(&plan->node[k]) && plan->node[k].now == i)
				move(&plan->node[i]);
}

/* One process ends when all its peers have stopped. True: one more is replaced. */
static bool plan_together(struct route_plan *plan, const struct route_node *with)
{
	bool more = false;

	for (struct route_node *n = plan->node; n < plan->node + plan->nr; n++) {
		bool shares = with->alive && n->alive && n->member == with->member;
		bool will = n->group != ROUTE_NONE && n->group == with->group;

		if (n->replaced || !n->there || !n->in_file || (!shares && !will))
			continue;
		n->replaced = n->keeps_route = more = true;
	}
	return more;
}

static void plan_processes(struct route_plan *plan)
{
	bool more = true;

	for (struct route_node *n = plan->node; n < plan->node + plan->nr; n++)
		if (n->regrouped && n->there && n->in_file && !n->replaced)
			n->replaced = n->keeps_route = true;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < plan->nr; i++)
			if (plan->node[i].replaced && plan->node[i].in_file)
				more |= plan_together(plan, &plan->node[i]);
	}
}

/* ---- caches ------------------------------------------------------------------------------ */

#define CHAIN_MAX STACK_MAX_PEERS

struct chain {
	uint32_t nr, cache[CHAIN_MAX];		/* bottom up */
	bool stays[CHAIN_MAX];
};

static bool is_in_chain(const struct route_plan *plan, uint32_t i, uint32_t at, bool in_file)
{
	const struct route_node *n = &plan->node[i];

	if (!is_cache(plan, i, in_file) || is_foreign(n) || (in_file ? !n->in_file : !n->there))
		return false;
	return below(plan, i, in_file) == at;
}

/* A cache has the peer below it to itself, so one stands on each. */
static void find_chain(const struct route_plan *plan, uint32_t node, bool in_file, struct chain *c)
{
	uint32_t i;

	c->nr = 0;
	for (i = 0; i < plan->nr && c->nr < CHAIN_MAX; i++)
		if (is_in_chain(plan, i, node, in_file)) {
			c->stays[c->nr] = false;
			c->cache[c->nr++] = node = i;
			i = UINT32_MAX;			/* from the first one on */
		}
}

/* Marks the longest sequence that both have: those stay. */
static void find_common(struct chain *a, struct chain *b)
{
	static uint8_t len[CHAIN_MAX + 1][CHAIN_MAX + 1];
	uint32_t i, k;

	for (i = a->nr + 1; i-- > 0;)
		for (k = b->nr + 1; k-- > 0;) {
			if (i == a->nr || k == b->nr)
				len[i][k] = 0;
			else if (a->cache[i] == b->cache[k])
				len[i][k] = (uint8_t)(len[i + 1][k + 1] + 1);
			else
				len[i][k] = len[i + 1][k] > len[i][k + 1] ? len[i + 1][k]
									  : len[i][k + 1];
		}
	for (i = k = 0; i < a->nr && k < b->nr;)
		if (a->cache[i] == b->cache[k])
			a->stays[i++] = b->stays[k++] = true;
		else if (len[i + 1][k] >= len[i][k + 1])
			i++;
		else
			k++;
}

/* Caches above one base. Those that leave do so top down, those that enter bottom up. */
static void plan_chain(struct route_plan *plan, uint32_t node)
{
	struct chain now, want;
	struct route_node *n;
	uint32_t i;

	now.nr = want.nr = 0;
	if (!plan->node[node].cache)
		find_chain(plan, node, false, &now);
	if (!plan->node[node].cache_in_file)
		find_chain(plan, node, true, &want);
	find_common(&now, &want);
	for (i = now.nr; i-- > 0;) {
		n = &plan->node[now.cache[i]];
		n->unplugs = !now.stays[i] && has_users(plan, now.cache[i], false);
		if (n->unplugs)
			plan->unplug[plan->nr_unplug++] = now.cache[i];
	}
	for (i = 0; i < want.nr; i++) {
		n = &plan->node[want.cache[i]];
		n->plugs = !want.stays[i] && has_users(plan, want.cache[i], true);
		if (n->plugs)
			plan->plug[plan->nr_plug++] = want.cache[i];
	}
}

void route_plan_make(struct route_plan *plan)
{
	plan->nr_unplug = plan->nr_plug = 0;
	plan_replaced(plan);
	plan_removed(plan);
	for (uint32_t i = 0; i < plan->nr; i++)
		plan_chain(plan, i);
	plan_processes(plan);
}

uint32_t route_plan_sender(const struct route_plan *plan, uint32_t node)
{
	const struct route_node *to = &plan->node[node], *n;

	for (uint32_t i = 0; i < plan->nr; i++) {
		n = &plan->node[i];
		if (n->alive && n->now == node && !n->goes && !is_moved(n) && !n->unplugs &&
			!to->unplugs)
			return i;
	}
	return ROUTE_NONE;
}
