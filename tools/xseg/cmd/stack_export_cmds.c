/* stack_export_cmds - export list, start, stop, restart: the exports of the stack file, which the
 * supervisor serves. export_cmds.c serves one by itself.
 *
 * Contract: see commands.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/export_flow.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/stack_lock.h"
#include "tools/xseg/base/stopped.h"
#include "tools/xseg/base/view.h"
#include "tools/xseg/text/export_text.h"

#define AT(field) offsetof(struct export_stop_opts, field)
const struct opt export_stop_table[] = {
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "even if it has connections, or other exports share the server" },
	{ 0 },
};
#undef AT

static int load(struct xseg *seg, struct exported_all *all)
{
	int rc = exported_load(seg, all);

	return rc ? tool_fail_errno(rc, NULL, "free some memory", "the stack file") : TOOL_DONE;
}

/* ---- list -------------------------------------------------------------------------------- */

int export_list(struct tool *t, const void *opts, int argc, char **argv)
{
	struct exported_all all;
	struct xseg *seg;
	int rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);

	(void)opts;
	(void)argc;
	(void)argv;
	if (rc)
		return rc;
	rc = load(seg, &all);
	if (!rc && t->json)
		rc = out_json(export_text_json(&all));
	else if (!rc && !all.nr)
		tool_say(t, "no exports; add [export NAME] sections to the stack file, or use "
			    "'xseg export VOL --nbd SOCKET'");
	else if (!rc)
		rc = out_table_print(export_text_table(&all));
	if (!rc && !t->json)
		export_text_note_replaced(t, &all);
	exported_fini(&all);
	xseg_detach(seg);
	return rc;
}

/* ---- one export by name ------------------------------------------------------------------ */

struct ordered {
	struct tool *t;
	struct xseg *seg;
	int lock;			/* held until the order is given: no reload moves places */
	struct exported_all all;
	struct exported *x;
	struct xseg_peer_info supervisor;
	struct launch launch;
};

static void unlock(struct ordered *o)
{
	stack_unlock(o->lock);
	o->lock = -1;
}

static void close_one(struct ordered *o)
{
	unlock(o);
	exported_fini(&o->all);
	xseg_detach(o->seg);
}

static int find(struct ordered *o, const char *what, const char *name)
{
	uint32_t place = stack_find_export(o->all.stack, name);

	if (place == STACK_NONE || place >= o->all.nr)
		return tool_fail(TOOL_REFUSED,
			"%s %s: the stack file of segment %s has no export of that name; 'xseg "
			"export list' shows its exports",
			what, name, o->t->segment);
	if (!view_supervisor(o->seg, &o->supervisor))
		return tool_fail(TOOL_REFUSED,
			"%s %s: no supervisor runs, which would do that; start one with 'xseg up "
			"STACK.conf'",
			what, name);
	if (peer_word_stopping(&o->supervisor))
		return tool_fail(TOOL_REFUSED,
			"%s %s: the stack is being stopped; 'xseg down --cancel' takes that back",
			what, name);
	o->x = &o->all.export[place];
	return TOOL_DONE;
}

static int open_one(struct tool *t, const char *what, const char *name, struct ordered *o)
{
	int rc;

	*o = (struct ordered){ .t = t, .lock = -1 };
	rc = tool_attach(t, 0, &o->seg);
	if (rc)
		return rc;
	rc = stack_lock(t, what, &o->lock);
	if (!rc)
		rc = load(o->seg, &o->all);
	if (!rc)
		rc = find(o, what, name);
	if (rc)
		close_one(o);
	else
		launch_watch(&o->launch, t, o->seg, o->all.stack, what);
	return rc;
}

/* H5 of peers/host/exports.h: all exports of the server, for each supervisor that follows. */
static int remember(const struct ordered *o, bool stopped)
{
	struct stopped_change change = { .what = STACK_STOPPED_EXPORT, .stopped = stopped };
	const struct exported *y;

	for (y = o->all.export; y < o->all.export + o->all.nr; y++)
		if (y->e->server == o->x->e->server)
			change.name[change.nr++] = y->e->name;
	return stopped_write(o->t, o->seg, o->launch.what, &change);
}

static int give_order(struct ordered *o, enum export_order order)
{
	uint32_t place = (uint32_t)(o->x - o->all.export);
	int rc = remember(o, order == EXPORT_STOP);

	if (rc)
		return rc;
	rc = proc_order_export(o->seg, &o->supervisor, order, place);
	unlock(o);
	if (rc)
		return tool_fail_errno(rc, NULL, "ask the owner of its process",
			"the supervisor of segment %s", o->t->segment);
	return export_flow_wait_order(&o->launch, order, o->x);
}

static int say(const struct ordered *o, const char *state)
{
	tool_say(o->t, "export %s is %s", o->x->e->name, state);
	return o->t->json ? out_state(o->x->e->name, state) : TOOL_DONE;
}

/* Clients would lose their connections. */
static int refuse_users(const struct ordered *o, const char *what)
{
	const struct exported *y;

	for (y = o->all.export; y < o->all.export + o->all.nr; y++) {
		if (y->e->server != o->x->e->server)
			continue;
		if (y->connections)
			return tool_fail(TOOL_REFUSED,
				"%s %s: %s%s has %" PRIu32 " connection%s; end the clients first, "
				"or add --force, and they are cut",
				what, o->x->e->name, y == o->x ? "it" : "export ",
				y == o->x ? "" : y->e->name, y->connections,
				y->connections == 1 ? "" : "s");
		if (y != o->x)
			return tool_fail(TOOL_REFUSED,
				"%s %s: export %s has the same address, and so the same server; "
				"add --force to do that to both",
				what, o->x->e->name, y->e->name);
	}
	return TOOL_DONE;
}

static int end_or_restart(struct tool *t, const struct export_stop_opts *opts, const char *what,
	enum export_order order, const char *name)
{
	struct ordered o;
	int rc = open_one(t, what, name, &o);

	if (rc)
		return rc;
	if (!exported_is_served(o.x) && order == EXPORT_STOP && o.x->state == EXPORTED_STOPPED)
		rc = tool_fail(TOOL_REFUSED,
			"%s %s: it is stopped already; 'xseg export start %s' starts it", what,
			name, name);
	if (!rc && !opts->force)
		rc = refuse_users(&o, what);
	if (!rc)
		rc = give_order(&o, order);
	if (!rc)
		rc = say(&o, order == EXPORT_STOP ? "stopped" : "serving");
	close_one(&o);
	return rc;
}

int export_stop(struct tool *t, const void *opts, int argc, char **argv)
{
	(void)argc;
	return end_or_restart(t, opts, "export stop", EXPORT_STOP, argv[0]);
}

int export_restart(struct tool *t, const void *opts, int argc, char **argv)
{
	(void)argc;
	return end_or_restart(t, opts, "export restart", EXPORT_RESTART, argv[0]);
}

int export_start(struct tool *t, const void *opts, int argc, char **argv)
{
	struct ordered o;
	int rc = open_one(t, "export start", argv[0], &o);

	(void)opts;
	(void)argc;
	if (rc)
		return rc;
	if (exported_is_served(o.x))
		rc = tool_fail(TOOL_REFUSED,
			"export start %s: it is served already; 'xseg export restart %s' starts it "
			"anew",
			argv[0], argv[0]);
	if (!rc)
		rc = give_order(&o, EXPORT_START);
	if (!rc)
		rc = say(&o, "serving");
	close_one(&o);
	return rc;
}
