/* stack_resolve - see stack_resolve.h. The invariants K1 to K3 are in stack.h. */
#include "peers/common/options/stack_resolve.h"

#include <stdio.h>
#include <string.h>

#include "peers/common/options/stack_kind.h"

/* Of a section's keys, one is wrong itself. */
static bool is_wrong(
	const struct stack_errors *errors, const struct stack_peer *p, const char *key)
{
	return stack_errors_has(errors, p->lines.section, p->lines.last, key);
}

static void resolve_peer(struct stack *stack, struct stack_peer *p, struct stack_errors *errors)
{
	const struct stack_kind *kind = stack_kind_find(p->kind[0] ? p->kind : p->name);

	if (kind && !p->kind[0] && !is_wrong(errors, p, "kind"))
		snprintf(p->kind, sizeof(p->kind), "%s", kind->name);
	if (!p->kind[0]) {
		if (!is_wrong(errors, p, "kind"))
			stack_errors_add(errors, p->lines.section, "kind",
				"peer '%s' has no kind; add kind = one of " STACK_KINDS, p->name);
		return;
	}
	if (p->names_kvd && !kind->over)
		stack_errors_add(errors, p->downstream_line, "kvd",
			"a '%s' has no key kvd; downstream = names the peer that it sends to",
			p->kind);
	else if (p->downstream_name[0] && !kind->sends)
		stack_errors_add(errors, p->downstream_line, "downstream",
			"a '%s' is a store and has no downstream; leave that out", p->kind);
	else if (p->downstream_name[0])
		p->downstream = stack_find(stack, p->downstream_name);
	if (p->downstream_name[0] && p->downstream == STACK_NONE && kind->sends &&
		(!p->names_kvd || kind->over))
		stack_errors_add(errors, p->downstream_line, p->names_kvd ? "kvd" : "downstream",
			"downstream: there is no peer '%s' in this file; add it, or name another",
			p->downstream_name);
}

/* When all kinds are known. */
static void check_below(
	const struct stack *stack, const struct stack_peer *p, struct stack_errors *errors)
{
	const struct stack_kind *kind = stack_kind_find(p->kind), *below_kind;
	const struct stack_peer *below;

	if (p->downstream == STACK_NONE)
		return;
	below = &stack->peers[p->downstream];
	below_kind = stack_kind_find(below->kind);
	if (!kind || !below_kind)
		return;
	if (kind->over && strcmp(below->kind, kind->over))
		stack_errors_add(errors, p->downstream_line, "kvd",
			"kvd: '%s' is no kvd; name a peer of that kind", below->name);
	else if (below_kind->over)
		stack_errors_add(errors, p->downstream_line, "downstream",
			"downstream: '%s' serves clients only; name the peer below it",
			below->name);
}

static bool find_loop(
	const struct stack *stack, const struct stack_peer *p, struct stack_errors *errors)
{
	uint32_t steps, at = p->downstream;

	for (steps = 0; at != STACK_NONE && steps <= stack->nr_peers; steps++)
		at = stack->peers[at].downstream;
	if (at == STACK_NONE)
		return false;
	stack_errors_add(errors, p->downstream_line, "downstream",
		"the downstreams of '%s' are a loop, which leads back to it; have the lowest peer "
		"send to a store",
		p->name);
	return true;
}

static bool is_named(const struct stack *stack, uint32_t peer)
{
	uint32_t i;

	for (i = 0; i < stack->nr_peers; i++)
		if (stack->peers[i].downstream == peer)
			return true;
	return false;
}

/* Another peer that names the same downstream, or NULL. */
static const struct stack_peer *find_beside(const struct stack *stack, const struct stack_peer *p)
{
	const struct stack_peer *q;

	for (q = stack->peers; q < stack->peers + stack->nr_peers; q++)
		if (q != p && p->downstream != STACK_NONE && q->downstream == p->downstream)
			return q;
	return NULL;
}

/* A cache has its downstream to itself. One that nobody sends to is no harm beside others: it
 * waits. */
static void resolve_cache(
	const struct stack *stack, struct stack_peer *p, struct stack_errors *errors)
{
	const struct stack_peer *beside = find_beside(stack, p);

	if (strcmp(p->kind, "cached") || !beside)
		return;
	p->waits = !is_named(stack, (uint32_t)(p - stack->peers));
	if (!p->waits)
		stack_errors_add(errors, p->downstream_line, "downstream",
			"cache '%.60s' must be the only sender to its downstream, and '%.60s' "
			"sends there, too; let that send to the cache, or leave the cache out of "
			"all downstreams and plug it",
			p->name, beside->name);
}

static void resolve_group(struct stack *stack, uint32_t nr, struct stack_errors *errors)
{
	struct stack_group *g = &stack->groups[nr];
	char *name, *rest = g->names;
	uint32_t i, nr_names = 0;

	while ((name = strsep(&rest, " \t,"))) {
		if (!*name)
			continue;
		nr_names++;
		i = stack_find(stack, name);
		if (i == STACK_NONE)
			stack_errors_add(errors, g->line, "together",
				"together: there is no peer '%.80s' in this file; add it, or leave "
				"it out here",
				name);
		else if (stack->peers[i].group != STACK_NONE)
			stack_errors_add(errors, g->line, "together",
				"together: '%s' is named twice; leave one out", name);
		else {
			stack->peers[i].group = nr;
			g->peer[g->nr++] = i;
		}
	}
	if (!nr_names)
		stack_errors_add(errors, g->line, "together",
			"together: names at least one peer; leave it out for processes apart");
}

void stack_resolve(struct stack *stack, struct stack_errors *errors)
{
	struct stack_peer *p, *end = stack->peers + stack->nr_peers;

	for (p = stack->peers; p < end; p++)
		resolve_peer(stack, p, errors);
	for (p = stack->peers; p < end && !find_loop(stack, p, errors); p++)
		;
	for (p = stack->peers; p < end; p++)
		check_below(stack, p, errors);
	for (p = stack->peers; p < end; p++)
		resolve_cache(stack, p, errors);
	for (uint32_t i = 0; i < stack->nr_groups; i++)
		resolve_group(stack, i, errors);
	stack_export_resolve(stack, errors);
}
