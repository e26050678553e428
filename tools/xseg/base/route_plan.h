/* route_plan - what has to be done so that the peers of a segment send where a stack file says.
 *
 * A peer that is no cache stands on a *base*: the first peer below it that is no cache, and has its
 * data. A cache between them changes no data, so it is unplugged and plugged while all serve. A
 * peer that gets another base, or whose base gets another kind, is *replaced*: it is stopped in
 * order, and its next process begins where the file says (peers/host/replace.h). A peer whose cache
 * is still to be plugged begins below that (peers/common/options/args.h), and the cache is plugged
 * below it, too.
 *
 *   a peer                                              what is done
 *   has another kind in the file                        replaced; a cache is unplugged before
 *   no cache, another base, or a base of another kind   replaced
 *   a cache at another place, and peers above it stay   unplugged
 *   and above its new place                             plugged
 *   a cache at another place, and above one of the two  replaced, after it was unplugged if that
 *   none stays                                          can be
 *   shares a process with a replaced one, or will       restarted with it, and keeps its route
 *
 * Contract: pure functions over the plan, but for route_plan_load(), which looks into the segment.
 */
#ifndef TOOLS_XSEG_ROUTE_PLAN_H
#define TOOLS_XSEG_ROUTE_PLAN_H

#include "peers/common/options/stack.h"
#include "xseg/xseg.h"

#define ROUTE_PLAN_NODES 192u
#define ROUTE_NONE	 UINT32_MAX

struct route_node {
	char name[XSEG_NAME_MAX];
	/* what is there */
	bool there, alive;
	uint32_t peer, generation, member;	/* of the segment */
	bool cache;				/* its kind now, if it is there */
	uint32_t now;				/* the node that it sends to, or ROUTE_NONE */
	bool by_name;		/* a gateway: the segment has no route of it, the stack names it */
	/* what the file says */
	bool in_file, goes;			/* goes: of the stack, and not in the file */
	bool other_kind;			/* it is there with another kind */
	bool cache_in_file;
	uint32_t want;				/* as now */
	uint32_t group;				/* of the file, or ROUTE_NONE */
	bool regrouped;				/* its process begins anew, and keeps its routes */
	/* what is to be done */
	bool replaced, keeps_route;
	bool other_data;			/* its clients would find other data */
	bool unplugs, plugs;
};

struct route_plan {
	uint32_t nr;
	struct route_node node[ROUTE_PLAN_NODES];
	/* caches, in the order of the work: those that leave, and those that enter */
	uint32_t nr_unplug, unplug[ROUTE_PLAN_NODES], nr_plug, plug[ROUTE_PLAN_NODES];
};

/* Fills in what is there, and what the file says. old: the stack of the segment; pending: of its
 * record (stack_record.h). False: there are too many peers. */
bool route_plan_load(struct xseg *seg, const struct stack *old, const struct stack *file,
	const char *pending, struct route_plan *plan);
/* Then says what is to be done. */
void route_plan_make(struct route_plan *plan);
/* ROUTE_NONE: there is none of that name. */
uint32_t route_plan_find(const struct route_plan *plan, const char *name);
/* The node below this one, past caches that neither the stack nor the file has: these stay. */
uint32_t route_plan_below(const struct route_plan *plan, uint32_t node);
/* A peer that is alive and would still send to this one, which goes or gets another kind, or
 * ROUTE_NONE. */
uint32_t route_plan_sender(const struct route_plan *plan, uint32_t node);

#endif
