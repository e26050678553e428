/* restart - see restart.h. */
#include "tools/xseg/flow/restart.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/say/words.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/stopped.h"
#include "tools/xseg/base/view.h"
#include "tools/xseg/flow/ending.h"
#include "tools/xseg/flow/launch.h"

#define WHAT "peer restart"

/* Of one command. */
struct restart {
	struct tool *t;
	struct xseg *seg;
	struct stack *stack;
	char *text;
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

static void find_process(struct restart *r, uint32_t member, struct process *p)
{
	uint32_t order[STACK_MAX_PEERS], i;
	struct xseg_peer_info info;

	p->nr = 0;
	stack_order(r->stack, order);
	for (i = 0; i < r->stack->nr_peers; i++)
		if (is_alive(r, order[i], &info) && info.member == member) {
			p->place[p->nr] = order[i];
			p->stays[p->nr] = false;
			p->old[p->nr++] = info;
		}
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
		rc = proc_restart_peer(r->seg, &supervisor, p->place[i]);
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

static int run_process(struct restart *r, struct process *p)
{
	struct launch watch;
	bool supervised;
	uint32_t i;
	int rc;

	launch_watch(&watch, r->t, r->seg, r->stack, WHAT);
	rc = tell_supervisor(r, p, &supervised);
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

int restart_peer(struct tool *t, struct xseg *seg, const struct xseg_peer_info *peer)
{
	struct restart r = { .t = t, .seg = seg };
	struct process p;
	int rc = open_restart(&r);

	if (rc)
		return rc;
	find_process(&r, peer->member, &p);
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
	int rc;

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
	rc = ending_kill_supervisor(r->t, r->seg);
	if (!rc)
		rc = launch_supervisor(&launch, r->t, r->seg, r->stack, r->text);
	if (!rc)
		tool_say(r->t, "the supervisor runs again, as a new process");
	return rc;
}

int restart_all(struct tool *t, struct xseg *seg, bool if_replaced)
{
	struct restart r = { .t = t, .seg = seg };
	uint32_t order[STACK_MAX_PEERS], i;
	struct xseg_peer_info info;
	struct process p;
	bool done[STACK_MAX_PEERS] = { false };
	int rc = open_restart(&r);

	if (rc)
		return rc;
	stack_order(r.stack, order);
	for (i = 0; !rc && i < r.stack->nr_peers; i++) {
		if (done[order[i]] || !is_alive(&r, order[i], &info))
			continue;
		find_process(&r, info.member, &p);
		for (uint32_t k = 0; k < p.nr; k++)
			done[p.place[k]] = true;
		if (if_replaced && !proc_is_replaced(info.pid))
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
