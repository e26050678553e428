/* export_flow - see export_flow.h. */
#include "tools/xseg/flow/export_flow.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "peers/common/say/export_words.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/view.h"

#define LOOK_NS (TOOL_SECOND / 50)
#define KILL_NS (15 * TOOL_SECOND)	/* the guard cuts connections after 3 s */

/* ---- up ---------------------------------------------------------------------------------- */

/* Whether no volumed of the export serves, and one of them stays away. */
static bool has_no_volumed(
	const struct launch *l, const struct stopped *s, const struct stack_export *e)
{
	const struct stack_peer *p;
	struct xseg_peer_info info;
	uint32_t index;
	bool away = false;

	for (p = l->stack->peers; p < l->stack->peers + l->stack->nr_peers; p++) {
		if (!stack_export_takes(e, p))
			continue;
		index = xseg_peer_find(l->seg, p->name);
		if (index != XSEG_NONE && xseg_peer_get_info(l->seg, index, &info) &&
			info.state == XSEG_PEER_LIVE)
			return false;
		away |= launch_stays_away(l, s, (uint32_t)(p - l->stack->peers));
	}
	return away;
}

/* Its server is not started: one of the server's exports has no volumed. */
static bool stays_away(
	const struct launch *l, const struct stopped *s, const struct stack_export *e)
{
	const struct stack_export *y;

	for (y = l->stack->exports; y < l->stack->exports + l->stack->nr_exports; y++)
		if (y->server == e->server && has_no_volumed(l, s, y))
			return true;
	return false;
}

/* The supervisor takes a moment to say of one that it stays stopped. */
static bool is_settled(const struct launch *l, const struct stopped *s, const struct exported *x)
{
	if (!exported_is_served(x) && stopped_export(s, x->e->name))
		return x->state == EXPORTED_STOPPED;
	return exported_is_served(x) || stays_away(l, s, x->e);
}

static uint32_t count_settled(struct launch *l, const struct stopped *s, const char **waiting)
{
	const struct stack *stack = l->stack;
	struct exported x;
	uint32_t nr = 0;

	*waiting = NULL;
	for (uint32_t i = 0; i < stack->nr_exports; i++) {
		exported_look(l->seg, &stack->exports[i], i, &x);
		if (is_settled(l, s, &x))
			nr++;
		else if (!*waiting)
			*waiting = stack->exports[i].name;
	}
	return nr;
}

static void note_missing(struct launch *l, const struct stopped *s)
{
	const struct stack *stack = l->stack;
	struct exported x;

	for (uint32_t i = 0; i < stack->nr_exports; i++) {
		exported_look(l->seg, &stack->exports[i], i, &x);
		if (x.state == EXPORTED_NO_VOLUME)
			tool_note(l->t,
				"export %s: its volume is not there; 'xseg volume create %s --size "
				"SIZE' makes it, and the export serves it then",
				x.e->name, x.e->volume);
		else if (!exported_is_served(&x) && stopped_export(s, x.e->name))
			tool_note(l->t,
				"export %s: it stays stopped, as 'xseg export stop' has stopped "
				"it; 'xseg export start %s' starts it",
				x.e->name, x.e->name);
		else if (!exported_is_served(&x) && stays_away(l, s, x.e))
			tool_note(l->t,
				"export %s: it is not started while the volumed of its volume is "
				"stopped",
				x.e->name);
	}
}

int export_flow_wait(struct launch *l)
{
	uint32_t nr = l->stack->nr_exports, served;
	const char *waiting;
	struct stopped s;
	int rc;

	stopped_load(l->seg, &s);
	while ((served = count_settled(l, &s, &waiting)) < nr) {
		rc = launch_look_for_failure(l, waiting);
		if (rc)
			return rc;
		if (tool_out_of_time(l->t))
			return tool_later(
				"all peers serve, and %u of %u exports: %s does not yet, the start "
				"goes on; see 'xseg export list' and %s, or stop it by 'xseg down'",
				served, nr, waiting, l->log);
		tool_progress(l->t, "%u of %u exports are served, waiting for %s", served, nr,
			waiting);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	note_missing(l, &s);
	return TOOL_DONE;
}

/* ---- one export -------------------------------------------------------------------------- */

static bool is_done(enum export_order order, const struct exported *before,
	const struct exported *now)
{
	if (order == EXPORT_STOP)
		return now->state == EXPORTED_STOPPED || now->state == EXPORTED_DEAD;
	return exported_is_served(now) &&
	       (order == EXPORT_START || !exported_is_served(before) ||
		       now->peer.generation != before->peer.generation);
}

int export_flow_wait_order(
	struct launch *l, enum export_order order, const struct exported *before)
{
	uint32_t place = stack_find_export(l->stack, before->e->name);
	struct tool_span gone = { 0 };
	struct exported now;
	int rc = TOOL_DONE;

	for (;;) {
		exported_look(l->seg, before->e, place, &now);
		if (is_done(order, before, &now))
			break;
		if (order != EXPORT_STOP)
			rc = launch_look_for_failure(l, before->e->name);
		else if (tool_span_ns(&gone, !xseg_supervisor_alive(l->seg)) > TOOL_GONE_NS)
			rc = tool_fail(TOOL_FAILED,
				"%s: the supervisor went away, and nobody stops export %s; see %s",
				l->what, before->e->name, l->log);
		if (rc)
			return rc;
		if (tool_out_of_time(l->t))
			return tool_later(
				"%s %s: it is %s, and that goes on; see 'xseg export list'",
				l->what, before->e->name, exported_state_name(now.state));
		tool_progress(l->t, "%s %s", l->what, before->e->name);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	return TOOL_DONE;
}

/* ---- down, without a supervisor ---------------------------------------------------------- */

/* A server of exports that is alive. */
static bool find_server(struct xseg *seg, struct xseg_peer_info *info)
{
	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, info) && view_peer_alive(info) &&
			export_of_peer(info))
			return true;
	return false;
}

static int end_one(struct tool *t, struct xseg *seg, const struct xseg_peer_info *server)
{
	uint64_t since = tool_now_ns();
	struct xseg_peer_info now;
	bool killed = false;
	int rc = proc_signal_peer(seg, server, SIGTERM);

	while (!rc && xseg_peer_get_info(seg, server->index, &now) &&
		now.generation == server->generation && view_peer_alive(&now)) {
		if (!killed && tool_now_ns() - since >= KILL_NS) {
			killed = true;
			rc = proc_signal_peer(seg, server, SIGKILL);
		}
		if (tool_out_of_time(t))
			return tool_later(
				"export %s: its server is still ending; see 'xseg status'",
				export_of_peer(server));
		tool_progress(t, "stopping export %s", export_of_peer(server));
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	if (rc && rc != -ESRCH)
		return tool_fail_errno(rc, NULL, "ask the owner of its process", "export %s",
			export_of_peer(server));
	return TOOL_DONE;
}

int export_flow_end(struct tool *t, struct xseg *seg)
{
	struct xseg_peer_info server;
	int rc = TOOL_DONE;

	while (!rc && find_server(seg, &server))
		rc = end_one(t, seg, &server);
	return rc;
}

/* ---- exports that go --------------------------------------------------------------------- */

static int end_gone(struct launch *l, uint32_t place)
{
	struct xseg_peer_info supervisor;
	struct exported x;
	int rc;

	exported_look(l->seg, &l->stack->exports[place], place, &x);
	if (!exported_is_served(&x))
		return TOOL_DONE;
	if (!view_supervisor(l->seg, &supervisor))
		return end_one(l->t, l->seg, &x.peer);
	rc = proc_order_export(l->seg, &supervisor, EXPORT_STOP, place);
	if (rc)
		return tool_fail_errno(rc, NULL, "ask the owner of its process",
			"%s: the supervisor of segment %s", l->what, l->t->segment);
	return export_flow_wait_order(l, EXPORT_STOP, &x);
}

int export_flow_end_gone(struct tool *t, struct xseg *seg, const struct stack *old,
	const struct stack *file, const char *what)
{
	struct launch launch;
	int rc = TOOL_DONE;

	launch_watch(&launch, t, seg, old, what);
	for (uint32_t i = 0; !rc && i < old->nr_exports; i++)
		if (stack_find_export(file, old->exports[i].name) == STACK_NONE)
			rc = end_gone(&launch, i);
	return rc;
}
