/* args - see args.h. */
#include "peers/common/options/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void args_add(struct args *a, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = a->nr < ARGS_MAX ? vasprintf(&a->arg[a->nr], fmt, ap) : -1;
	va_end(ap);
	if (len >= 0)
		a->nr++;
	else
		a->failed = true;
	a->arg[a->nr] = NULL;
}

void args_free(struct args *a)
{
	while (a->nr > 0)
		free(a->arg[--a->nr]);
}

static bool has_other_sender(struct xseg *seg, uint32_t lower, uint32_t but)
{
	struct xseg_peer_info info;

	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (i != but && xseg_peer_get_info(seg, i, &info) && strcmp(info.kind, "client") &&
			info.downstream == lower)
			return true;
	return false;
}

/* Whether it serves without a route, or will when it begins: it takes no place that other peers
 * have, nor one above a cache that is off the path; and one that died there stays there. */
static bool is_off_path(struct xseg *seg, const struct stack *stack, const struct stack_peer *p)
{
	uint32_t index = xseg_peer_find(seg, p->name), lower;
	struct xseg_peer_info info;

	if (strcmp(p->kind, "cached") || p->downstream == STACK_NONE)
		return false;
	if (index != XSEG_NONE && xseg_peer_get_info(seg, index, &info)) {
		if (info.downstream != XSEG_NONE)
			return false;
		if (info.state == XSEG_PEER_LIVE || (info.state == XSEG_PEER_DEAD && info.epoch))
			return true;
	}
	lower = xseg_peer_find(seg, p->downstream_name);
	return (lower != XSEG_NONE && has_other_sender(seg, lower, index)) ||
	       is_off_path(seg, stack, &stack->peers[p->downstream]);
}

const char *args_downstream(struct xseg *seg, const struct stack *stack, const struct stack_peer *p)
{
	const struct stack_peer *below;

	if (!strcmp(p->kind, "cached") || p->downstream == STACK_NONE)
		return stack_downstream(p);
	below = &stack->peers[p->downstream];
	while (is_off_path(seg, stack, below))
		below = &stack->peers[below->downstream];
	return below->name;
}

void args_add_peer(
	struct args *a, struct xseg *seg, const struct stack *stack, const struct stack_peer *p)
{
	const char *downstream = args_downstream(seg, stack, p);

	args_add(a, "--name=%s", p->name);
	args_add(a, "--threads=%u", p->threads);
	if (*downstream)
		args_add(a, "--downstream=%s", downstream);
	if (p->cpus[0])
		args_add(a, "--cpus=%s", p->cpus);
	for (uint32_t i = 0; i < p->nr_options; i++)
		args_add(a, "--%s=%s", p->option[i].key, p->option[i].value);
}
