/* units - see units.h. */
#include "peers/host/units.h"

#include <stdio.h>
#include <string.h>

#include "peers/common/say/dirty.h"
#include "peers/common/say/words.h"
#include "xtypes/xstate.h"

#define TO(state) (1u << UNIT_##state)

static const struct xstates states = {
	.what = "process of the stack",
	XSTATE(UNIT_, WAITING, TO(WAITING) | TO(RUNNING) | TO(STOPPED)),
	XSTATE(UNIT_, RUNNING, TO(WAITING) | TO(STOPPED) | TO(FAILED)),
	XSTATE(UNIT_, STOPPED, TO(WAITING) | TO(RUNNING) | TO(FAILED)),
	XSTATE(UNIT_, FAILED, TO(RUNNING) | TO(WAITING)),
};

void unit_set(struct unit *u, enum unit_state state)
{
	xstate_check(&states, u->state, state);
	u->state = state;
}

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

/* What it sends to: as routes are now, since a cache may have been plugged or unplugged; as the
 * file says while it has none yet. False: nothing. */
static bool look_below(struct units *us, uint32_t peer, struct xseg_peer_info *below)
{
	struct xseg_peer_info info;
	enum xseg_peer_state state = units_peer_state(us, peer, &info);
	uint32_t next = us->stack->peers[peer].downstream;

	if (state != XSEG_PEER_FREE && (state != XSEG_PEER_OPENING || info.downstream != XSEG_NONE))
		return info.downstream != XSEG_NONE &&
		       xseg_peer_get_info(us->seg, info.downstream, below);
	if (next == STACK_NONE)
		return false;
	if (units_peer_state(us, next, below) == XSEG_PEER_FREE) {
		*below = (struct xseg_peer_info){ .state = XSEG_PEER_FREE };
		snprintf(below->name, sizeof(below->name), "%s", us->stack->peers[next].name);
	}
	return true;
}

/* Which peer of the stack that is. STACK_NONE: none of it. */
static uint32_t below_of(struct units *us, uint32_t peer)
{
	struct xseg_peer_info below;

	return look_below(us, peer, &below) ? stack_find(us->stack, below.name) : STACK_NONE;
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

static bool is_stopping(struct units *us, uint32_t peer)
{
	struct xseg_peer_info info;

	return xseg_peer_is_up(units_peer_state(us, peer, &info)) && peer_word_stopping(&info);
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
			if (p->group != STACK_NONE)
				of_group[p->group] = u;
		}
		add_to_unit(u, us->stack, us->order[i]);
		u->return_once |= is_stopping(us, us->order[i]);
	}
}

static bool same_peers(const struct stack *a, const struct stack *b)
{
	if (a->nr_peers != b->nr_peers)
		return false;
	for (uint32_t i = 0; i < a->nr_peers; i++) {
		const struct stack_peer *p = &a->peers[i], *q = &b->peers[i];

		if (strcmp(p->name, q->name) || strcmp(p->kind, q->kind) ||
			p->downstream != q->downstream || p->group != q->group)
			return false;
	}
	return true;
}

bool units_take_options(struct units *us, struct stack *stack)
{
	if (!same_peers(us->stack, stack) || !stack_same_exports(us->stack, stack))
		return false;
	stack_destroy(us->stack);
	us->stack = stack;
	for (struct unit *u = us->unit; u < us->unit + us->nr; u++) {
		u->restart = false;
		for (uint32_t k = 0; k < u->nr; k++)
			u->restart |= stack->peers[u->peer[k]].restart;
	}
	return true;
}

/* A process: the supervisor's child, or else a member of the segment. A pid in the segment may be
 * anybody's. */
struct process {
	pid_t child;				/* 0: none */
	uint32_t member;
};

/* The unit's: that of the first of its peers that is alive, where it is no child. False: none. */
static bool process_of(struct units *us, const struct unit *u, struct process *process)
{
	struct xseg_peer_info info;
	uint32_t i;

	*process = (struct process){ .child = u->child };
	if (u->child)
		return true;
	for (i = 0; i < u->nr; i++)
		if (xseg_peer_is_up(units_peer_state(us, u->peer[i], &info))) {
			process->member = info.member;
			return true;
		}
	return false;
}

/* A pid that is another one is proved wrong before it counts. */
static bool is_in(struct units *us, struct xseg_peer_info *info, const struct process *process)
{
	if (!process->child)
		return info->member == process->member;
	if (info->pid == (uint32_t)process->child)
		return true;
	info->pid = (uint32_t)process->child;
	return xseg_peer_pid_check(us->seg, info) == 0;
}

static bool serves_in(struct units *us, const struct unit *u, const struct process *process)
{
	struct xseg_peer_info info;
	uint32_t i;

	for (i = 0; i < u->nr; i++)
		if (units_peer_state(us, u->peer[i], &info) == XSEG_PEER_LIVE &&
		    is_in(us, &info, process))
			return true;
	return false;
}

/* Whether a peer of the unit is alive in another process than this one, or is dead while this one
 * serves: a process opens all of its peers before it serves any, and all of them die with it. */
static bool is_elsewhere(struct units *us, const struct unit *u, uint32_t peer,
			 const struct process *process)
{
	struct xseg_peer_info info;
	enum xseg_peer_state state = units_peer_state(us, peer, &info);

	if (xseg_peer_is_up(state))
		return !is_in(us, &info, process);
	return unit_peer_is_dead(state) && serves_in(us, u, process);
}

const struct unit *units_split(struct units *us, struct unit *u)
{
	struct unit here = *u, elsewhere = *u;
	struct process process;
	uint32_t i;

	if (u->nr == 1 || !process_of(us, u, &process))
		return NULL;
	here.nr = elsewhere.nr = 0;
	here.restart = elsewhere.restart = false;
	elsewhere.child = 0;
	for (i = 0; i < u->nr; i++)
		add_to_unit(is_elsewhere(us, u, u->peer[i], &process) ? &elsewhere : &here,
			    us->stack, u->peer[i]);
	if (!here.nr || !elsewhere.nr)
		return NULL;
	*u = here;
	us->unit[us->nr] = elsewhere;
	return &us->unit[us->nr++];
}

/* ---- while all is being stopped ---------------------------------------------------------- */

/* A process that has some of its peers already will not open others of them. */
static bool may_return(struct units *us, const struct unit *u)
{
	if (u->child)
		return !unit_has(us, u, xseg_peer_is_up);
	return u->state == UNIT_WAITING && u->stop_restarts < UNIT_STOP_RESTARTS;
}

static bool is_dirty(struct units *us, uint32_t peer)
{
	uint32_t index = xseg_peer_find(us->seg, us->stack->peers[peer].name);

	return index != XSEG_NONE && dirty_bytes_of(us->seg, index);
}

bool units_holds_data(struct units *us, uint32_t peer)
{
	bool is_store = us->stack->peers[peer].downstream == STACK_NONE &&
			below_of(us, peer) == STACK_NONE;

	return is_store || is_dirty(us, peer);
}

/* Routes have no loops, nor has the stack, so this ends. */
static bool is_stood_on(struct units *us, uint32_t peer)
{
	struct xseg_peer_info info;
	uint32_t i;

	for (i = 0; i < us->stack->nr_peers; i++)
		if (below_of(us, i) == peer &&
		    (xseg_peer_is_up(units_peer_state(us, i, &info)) || units_needs(us, i)))
			return true;
	return false;
}

bool units_needs(struct units *us, uint32_t peer)
{
	struct xseg_peer_info info;
	enum xseg_peer_state state = units_peer_state(us, peer, &info);

	if ((state != XSEG_PEER_DEAD && state != XSEG_PEER_STOPPED) ||
		!may_return(us, units_of(us, peer)))
		return false;
	if (is_stood_on(us, peer))
		return true;
	return state == XSEG_PEER_DEAD ? units_holds_data(us, peer) : is_dirty(us, peer);
}

bool units_must_serve(struct units *us, uint32_t peer)
{
	struct xseg_peer_info info;

	return units_peer_state(us, peer, &info) == XSEG_PEER_OPENING &&
	       units_holds_data(us, peer);
}

bool units_comes_back(struct units *us, const struct xseg_peer_info *below)
{
	uint32_t at = stack_find(us->stack, below->name);

	return at != STACK_NONE && units_needs(us, at);
}

bool units_stands_on_lost(struct units *us, const struct xseg_peer_info *peer,
			  struct xseg_peer_info *lost)
{
	uint32_t next = peer->downstream, hops;

	for (hops = 0; next != XSEG_NONE && hops < XSEG_MAX_PORTS; hops++) {
		if (!xseg_peer_get_info(us->seg, next, lost))
			return false;
		if (!xseg_peer_is_up(lost->state))
			return !units_comes_back(us, lost);
		next = lost->downstream;
	}
	return false;
}

bool units_stranded(struct units *us, struct xseg_peer_info *peer, struct xseg_peer_info *lost)
{
	uint32_t i;

	for (i = 0; i < us->stack->nr_peers; i++)
		if (xseg_peer_is_up(units_peer_state(us, i, peer)) && look_below(us, i, lost) &&
			!xseg_peer_is_up(lost->state) && !units_comes_back(us, lost))
			return true;
	for (i = 0; i < xseg_nr_peers(us->seg); i++)
		if (xseg_peer_get_info(us->seg, i, peer) && xseg_peer_is_up(peer->state) &&
			units_stands_on_lost(us, peer, lost))
			return true;
	return false;
}
