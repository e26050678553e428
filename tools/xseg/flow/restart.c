/* restart - see restart.h. */
#include "tools/xseg/flow/restart.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/say/words.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/stack_lock.h"
#include "tools/xseg/base/stopped.h"
#include "tools/xseg/base/view.h"
#include "tools/xseg/flow/ending.h"
#include "tools/xseg/flow/launch.h"

#define WHAT "peer restart"
#define LOOK_NS (TOOL_SECOND / 50)

/* Of one command. */
struct restart {
	struct tool *t;
	struct xseg *seg;
	struct stack *stack;
	char *text;
	bool locked;				/* the caller has the lock of stack_lock.h */
};

/* The peers of one process, bottom up: what they are before, and their places in the stack. */
struct process {
	uint32_t nr, place[STACK_MAX_PEERS];
	struct xseg_peer_info old[STACK_MAX_PEERS];
	bool stays[STACK_MAX_PEERS];		/* `xseg peer stop` has stopped it meanwhile */
};

static int open_restart(struct restart *r)
{
	return launch_stack(r->t, r->seg, WHAT, &r->stack, &r->text);
}

static void close_restart(struct restart *r)
{
	stack_destroy(r->stack);
	free(r->text);
}

static bool is_alive(struct restart *r, uint32_t place, struct xseg_peer_info *info)
{
	uint32_t index = xseg_peer_find(r->seg, r->stack->peers[place].name);

	return index != XSEG_NONE && xseg_peer_get_info(r->seg, index, info) &&
	       view_peer_alive(info);
}

/* The peers of the process that serves `peer`. It alone, if its process has gone meanwhile: another
 * command restarts it, and this one waits for that. */
static void find_process(struct restart *r, const struct xseg_peer_info *peer, struct process *p)
{
	uint32_t order[STACK_MAX_PEERS], i;
	struct xseg_peer_info info;

	p->nr = 0;
	stack_order(r->stack, order);
	for (i = 0; view_peer_alive(peer) && i < r->stack->nr_peers; i++)
		if (is_alive(r, order[i], &info) && info.member == peer->member) {
			p->place[p->nr] = order[i];
			p->stays[p->nr] = false;
			p->old[p->nr++] = info;
		}
	if (p->nr)
		return;
	p->nr = 1;
	p->place[0] = stack_find(r->stack, peer->name);
	p->stays[0] = false;
	p->old[0] = *peer;
}

/* The stack as it is now: another command may have changed it since. */
static int look_again(struct restart *r)
{
	struct restart now = *r;
	int rc = open_restart(&now);

	if (rc)
		return rc;
	close_restart(r);
	*r = now;
	return TOOL_DONE;
}

/* The same, with the places of the peers in it. */
static int find_places(struct restart *r, struct process *p)
{
	int rc = look_again(r);

	for (uint32_t i = 0; !rc && i < p->nr; i++) {
		p->place[i] = stack_find(r->stack, p->old[i].name);
		if (p->place[i] == STACK_NONE)
			rc = tool_fail(TOOL_REFUSED,
				WHAT " %s: another command has taken it out of the stack meanwhile",
				p->old[i].name);
	}
	return rc;
}

/* TOOL_DONE also where there is none: *supervised. */
static int tell_supervisor(struct restart *r, const struct process *p, bool *supervised)
{
	struct xseg_peer_info supervisor;
	int rc = 0;
	uint32_t i;

	*supervised = view_supervisor(r->seg, &supervisor);
	if (*supervised && peer_word_stopping(&supervisor))
		return launch_refuse(r->t, r->seg);
	for (i = 0; *supervised && !rc && i < p->nr; i++)
		rc = proc_restart_peer(
			r->seg, &supervisor, p->place[i], p->old[i].generation);
	return rc ? tool_fail_errno(rc, NULL, "ask the owner of its process",
				    WHAT ": the supervisor of segment %s", r->t->segment)
		  : TOOL_DONE;
}

static int ask_to_stop(struct restart *r, const struct xseg_peer_info *peer)
{
	int rc = proc_stop_peer(r->seg, peer);

	return rc && rc != -ESRCH ? tool_fail_errno(rc, NULL, "ask the owner of its process",
						    WHAT " %s", peer->name)
				  : TOOL_DONE;
}

/* Nobody else starts a peer then. */
static int wait_stopped(struct restart *r, const struct xseg_peer_info *peer)
{
	int rc = ending_wait_stopped(r->t, r->seg, peer);

	if (rc == TOOL_LATER)
		tool_note(r->t,
			  WHAT " %s: it is not started again; 'xseg peer start %s' does that when "
			  "it has stopped",
			  peer->name, peer->name);
	return rc;
}

/* Top down: what is above may have something to write below. The last one ends the process. */
static int stop_process(struct restart *r, const struct process *p, bool supervised)
{
	uint32_t i = p->nr;
	int rc = TOOL_DONE;

	while (!rc && i-- > 0) {
		rc = ask_to_stop(r, &p->old[i]);
		if (!rc && (i > 0 || !supervised))
			rc = wait_stopped(r, &p->old[i]);
	}
	return rc;
}

/* An order has a place in the stack, which nobody changes meanwhile. */
static int give_order(struct restart *r, struct process *p, bool *supervised)
{
	int fd = -1, rc = TOOL_DONE;

	if (!r->locked)
		rc = stack_lock_patiently(r->t, WHAT, &fd);
	if (!rc)
		rc = find_places(r, p);
	if (!rc)
		rc = tell_supervisor(r, p, supervised);
	stack_unlock(fd);
	return rc;
}

static int run_process(struct restart *r, struct process *p)
{
	bool supervised = false;
	struct launch watch;
	uint32_t i;
	int rc;

	launch_watch(&watch, r->t, r->seg, r->stack, WHAT);
	rc = give_order(r, p, &supervised);
	watch.stack = r->stack;
	if (!rc)
		rc = stop_process(r, p, supervised);
	if (!rc && !supervised)
		rc = launch_peer(r->t, r->seg, p->old[0].name);
	for (i = 0; !rc && supervised && i < p->nr; i++)
		rc = launch_wait_again(&watch, &p->old[i], &p->stays[i]);
	return rc;
}

/* Others of its process are no reason to have the supervisor start that anew. */
static int run_alone(struct restart *r, const struct xseg_peer_info *peer)
{
	int rc = ask_to_stop(r, peer);

	if (!rc)
		rc = wait_stopped(r, peer);
	return rc ? rc : launch_peer(r->t, r->seg, peer->name);
}

/* The supervisor starts the process of a group, and not one peer of it. */
static bool is_in_group(const struct restart *r, const char *name)
{
	uint32_t place = stack_find(r->stack, name);

	return place != STACK_NONE && r->stack->peers[place].group != STACK_NONE;
}

int restart_peer(
	struct tool *t, struct xseg *seg, const struct xseg_peer_info *peer, bool locked)
{
	struct restart r = { .t = t, .seg = seg, .locked = locked };
	struct process p;
	int rc = open_restart(&r);

	if (rc)
		return rc;
	find_process(&r, peer, &p);
	if (!view_peer_alive(peer) && is_in_group(&r, peer->name))
		rc = launch_peer(t, seg, peer->name);
	else
		rc = p.nr == 1 ? run_process(&r, &p) : run_alone(&r, peer);
	close_restart(&r);
	if (!rc && p.nr == 1 && p.stays[0])
		rc = tool_fail(TOOL_REFUSED,
			WHAT " %s: 'xseg peer stop' has stopped it meanwhile; 'xseg peer start %s' "
			"starts it",
			peer->name, peer->name);
	return rc;
}

static void say_restarted(struct restart *r, const struct process *p)
{
	uint32_t i;

	for (i = 0; i < p->nr; i++)
		if (!p->stays[i])
			tool_say(r->t, "%s is running again", p->old[i].name);
}

/* In one line. */
static void note_stopped(struct restart *r)
{
	char names[STACK_STOPPED_BYTES] = "";
	struct xseg_peer_info info;
	struct stopped s;
	size_t used = 0;
	uint32_t nr = 0;

	stopped_load(r->seg, &s);
	for (uint32_t i = 0; i < xseg_nr_peers(r->seg); i++) {
		if (!xseg_peer_get_info(r->seg, i, &info) || !stopped_peer(&s, &info) ||
			used >= sizeof(names))
			continue;
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
			nr++ ? ", " : "", info.name);
	}
	if (nr)
		tool_note(r->t,
			WHAT ": these stay stopped, as 'xseg peer stop' has stopped them: %s; "
			"'xseg peer start NAME' starts one",
			names);
}

/* One that writes its log elsewhere was started by other means, and is left to those. */
static int replace_supervisor(struct restart *r, bool if_replaced)
{
	char log[PATH_MAX], own[PATH_MAX];
	struct xseg_peer_info supervisor;
	struct launch launch;
	int fd, rc;

	if (!view_supervisor(r->seg, &supervisor) ||
		(if_replaced && !proc_is_replaced(supervisor.pid)))
		return TOOL_DONE;
	proc_log_path(r->t->segment, own, sizeof(own));
	if (!proc_errors_path(supervisor.pid, log, sizeof(log)) || strcmp(log, own)) {
		tool_note(r->t,
			  WHAT ": the supervisor, process %u, was not started by 'xseg up' in "
			  "this environment, and stays as it is",
			  supervisor.pid);
		return TOOL_DONE;
	}
	/* the next one begins with the stack as it is then */
	rc = stack_lock_patiently(r->t, WHAT, &fd);
	if (!rc)
		rc = look_again(r);
	if (!rc)
		rc = ending_kill_supervisor(r->t, r->seg);
	if (!rc)
		rc = launch_supervisor(&launch, r->t, r->seg, r->stack, r->text);
	stack_unlock(fd);
	if (!rc)
		tool_say(r->t, "the supervisor runs again, as a new process");
	return rc;
}

/* The peers of the stack, bottom up, as it is at the beginning. */
struct all {
	uint32_t nr;
	char name[STACK_MAX_PEERS][XSEG_NAME_MAX];	/* "": that one is done */
};

static void list_all(const struct restart *r, struct all *all)
{
	uint32_t order[STACK_MAX_PEERS];

	all->nr = r->stack->nr_peers;
	stack_order(r->stack, order);
	for (uint32_t i = 0; i < all->nr; i++)
		memcpy(all->name[i], r->stack->peers[order[i]].name, XSEG_NAME_MAX);
}

static void take_out(struct all *all, const struct process *p)
{
	for (uint32_t i = 0; i < all->nr; i++)
		for (uint32_t k = 0; k < p->nr; k++)
			if (!strcmp(all->name[i], p->old[k].name))
				all->name[i][0] = '\0';
}

static bool is_serving(struct restart *r, uint32_t place, struct xseg_peer_info *info)
{
	return is_alive(r, place, info) && info->state == XSEG_PEER_LIVE;
}

/* The peer does not serve, and may be about to. The supervisor tries again each 5 s, or more often
 * (peers/host/pace.h). TOOL_DONE also if nobody starts the peer. */
static int wait_started(struct restart *r, uint32_t place)
{
	const char *name = r->stack->peers[place].name;
	struct xseg_peer_info info = { .state = XSEG_PEER_FREE };
	struct tool_span gone = { 0 };
	struct launch watch;
	int rc = TOOL_DONE;

	launch_watch(&watch, r->t, r->seg, r->stack, WHAT);
	while (!rc && !is_serving(r, place, &info)) {
		if (xseg_peer_find(r->seg, name) == XSEG_NONE || stopped_look(r->seg, &info) ||
			tool_span_ns(&gone, xseg_peer_is_gone(r->seg, &info)) > TOOL_GONE_NS)
			break;
		rc = launch_look_for_failure(&watch, name);
		if (!rc && tool_out_of_time(r->t))
			rc = tool_later(WHAT ": %s is not serving yet, and nothing above it is "
					     "restarted; see 'xseg peer list'",
				name);
		tool_progress(r->t, "waiting for %s", name);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	return rc;
}

/* A gateway among the peers of the process has clients. Their connections would end. */
static bool has_connections(struct restart *r, const struct process *p)
{
	for (uint32_t i = 0; i < p->nr; i++)
		if (view_connections(r->seg, p->old[i].index))
			return true;
	return false;
}

int restart_all(struct tool *t, struct xseg *seg, bool if_replaced)
{
	struct restart r = { .t = t, .seg = seg };
	struct xseg_peer_info info;
	struct process p;
	struct all all;
	uint32_t at;
	int rc = open_restart(&r);

	if (rc)
		return rc;
	list_all(&r, &all);
	for (uint32_t i = 0; !rc && i < all.nr; i++) {
		at = stack_find(r.stack, all.name[i]);
		if (at != STACK_NONE && !is_serving(&r, at, &info))
			rc = wait_started(&r, at);
		if (rc || at == STACK_NONE || !is_alive(&r, at, &info))
			continue;
		find_process(&r, &info, &p);
		take_out(&all, &p);
		if (if_replaced && (!proc_is_replaced(info.pid) || has_connections(&r, &p)))
			continue;
		rc = run_process(&r, &p);
		if (!rc)
			say_restarted(&r, &p);
	}
	if (!rc)
		rc = replace_supervisor(&r, if_replaced);
	if (!rc)
		note_stopped(&r);
	close_restart(&r);
	return rc;
}
