/* peer_cmds - peer list, start, stop, restart, kill, set; clients.
 *
 * Contract: see commands.h. `start` starts a peer as the stack file in the segment describes it. A
 * supervisor that runs takes such a peer under its care.
 *
 * Invariants
 *   N1  A peer of the stack that `stop` has stopped stays so, whatever supervisor follows, until
 *       `start` or `restart` of that name. Its name is in the record of the stack (stopped.h). It
 *       is written before the peer is asked to stop, and taken out before it is started.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/say/export_words.h"
#include "peers/common/say/volume_users.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/base/extend.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/ending.h"
#include "tools/xseg/base/halted.h"
#include "tools/xseg/flow/launch.h"
#include "tools/xseg/flow/restart.h"
#include "tools/xseg/flow/stack_save.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/text/clients_text.h"
#include "tools/xseg/text/export_text.h"
#include "tools/xseg/text/peer_text.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/ready.h"
#include "tools/xseg/base/stopped.h"
#include "tools/xseg/base/view.h"

#define AT(field) offsetof(struct peer_list_opts, field)
const struct opt peer_list_table[] = {
	{ .name = "all", .kind = OPT_BOOL, .off = AT(all),
	  .help = "each queue of a client in a line of its own, as JSON always has them" },
	{ 0 },
};
#undef AT

#define AT(field) offsetof(struct peer_stop_opts, field)
const struct opt peer_stop_table[] = {
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "even if peers send to it, or clients use it" },
	{ 0 },
};
#undef AT

#define AT(field) offsetof(struct peer_restart_opts, field)
const struct opt peer_restart_table[] = {
	{ .name = "all", .kind = OPT_BOOL, .off = AT(all),
	  .help = "all peers one after the other, then the supervisor" },
	{ .name = "replaced", .kind = OPT_BOOL, .off = AT(replaced),
	  .help = "the same of those whose program was replaced, as by an upgrade" },
	{ 0 },
};
#undef AT

#define AT(field) offsetof(struct peer_kill_opts, field)
const struct opt peer_kill_table[] = {
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "even if its process hosts other peers" },
	{ 0 },
};
#undef AT

#define AT(field) offsetof(struct peer_set_opts, field)
const struct opt peer_set_table[] = {
	{ .name = "save", .kind = OPT_BOOL, .off = AT(save),
	  .help = "write it into the stack file, too" },
	{ 0 },
};
#undef AT

/* ---- one peer by name -------------------------------------------------------------------- */

struct one_peer {
	struct xseg *seg;
	struct view_peers peers;
	const struct xseg_peer_info *info;
};

static void one_peer_close(struct one_peer *p)
{
	view_peers_fini(&p->peers);
	xseg_detach(p->seg);
}

static int one_peer_open(struct tool *t, const char *name, struct one_peer *p)
{
	int rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &p->seg);

	if (rc)
		return rc;
	rc = view_peers_need(p->seg, &p->peers);
	p->info = rc ? NULL : view_peer_named(&p->peers, name);
	if (!rc && !p->info)
		rc = tool_fail(TOOL_REFUSED,
			"%s: segment %s has no peer of that name; 'xseg peer list' shows its peers",
			name, t->segment);
	if (rc)
		one_peer_close(p);
	assert(rc || p->info);
	return rc;
}

static int not_running(struct xseg *seg, const struct xseg_peer_info *info)
{
	struct xseg_peer_info supervisor;

	if (info->state == XSEG_PEER_DEAD && view_supervisor(seg, &supervisor) &&
		view_in_stack(seg, info->name) && !xseg_peer_is_gone(seg, info))
		return tool_fail(TOOL_REFUSED,
			"%s: it is dead already, and is being started again; 'xseg peer list' "
			"shows when it runs",
			info->name);
	return tool_fail(TOOL_REFUSED, "%s: it is %s already; start it with 'xseg peer start %s'",
			 info->name, view_state_name(info->state), info->name);
}

/* N1 */
static int remember(struct tool *t, struct xseg *seg, const char *what, const char *name,
	bool stopped)
{
	struct stopped_change change = { .what = STACK_STOPPED_PEER, .stopped = stopped, .nr = 1,
		.name = { name } };

	return stopped_remember(t, seg, what, &change);
}

/* N1. The lock of the record is left alone where the name is not there. */
static int forget(struct tool *t, struct xseg *seg, const char *what, const char *name)
{
	struct stopped s;

	stopped_load(seg, &s);
	return stack_stopped_has(s.names, STACK_STOPPED_PEER, name)
		       ? remember(t, seg, what, name, false)
		       : TOOL_DONE;
}

/* ---- list -------------------------------------------------------------------------------- */

static int show_list(const struct tool *t, const struct view_peers *peers, bool all)
{
	const struct xseg_peer_info *p;
	char text[HALTED_TEXT], stays[STOPPED_TEXT], failing[VIEW_FAILING_TEXT];
	struct opened opened;
	struct stopped s;
	int rc;

	if (t->json)
		return out_json(peer_text_json(peers));
	if (!peers->nr) {
		tool_say(t, "no peers; start a stack with 'xseg up STACK.conf'");
		return TOOL_DONE;
	}
	opened_load(t, peers, &opened);
	rc = out_table_print(peer_text_table(peers, &opened, all));
	opened_fini(&opened);
	for (p = peers->info; p < peers->info + peers->nr; p++)
		if (halted_is(peers->seg, p))
			tool_note(t, "%s", halted_tell(p->name, p->pid, text));
	for (p = peers->info; p < peers->info + peers->nr; p++)
		if (view_is_failing(peers->seg, p->name))
			tool_note(t, "%s", view_failing_tell(p->name, failing));
	stopped_load(peers->seg, &s);
	for (p = peers->info; p < peers->info + peers->nr; p++)
		if (stopped_peer(&s, p))
			tool_note(t, "%s", stopped_tell(p->name, stays));
	peer_text_note_replaced(t, peers);
	return rc;
}

int peer_list(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct peer_list_opts *o = opts;
	struct view_peers peers = { 0 };
	struct xseg *seg;
	int rc;

	(void)argc;
	(void)argv;
	rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);
	if (rc)
		return rc;
	rc = view_peers_need(seg, &peers);
	if (!rc)
		rc = show_list(t, &peers, o->all);
	view_peers_fini(&peers);
	xseg_detach(seg);
	return rc;
}

/* ---- clients ----------------------------------------------------------------------------- */

static int show_clients(struct tool *t, const struct view_peers *peers)
{
	struct opened opened;
	json_t *j;
	int rc;

	opened_load(t, peers, &opened);
	j = clients_text_json(peers, &opened);
	opened_fini(&opened);
	if (t->json)
		return out_json(j);
	rc = TOOL_DONE;
	if (!json_array_size(j))
		tool_say(t, "no clients");
	else
		rc = out_table_print(clients_text_table(j));
	json_decref(j);
	return rc;
}

int clients_run(struct tool *t, const void *opts, int argc, char **argv)
{
	struct view_peers peers = { 0 };
	struct xseg *seg;
	int rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);

	(void)opts;
	(void)argc;
	(void)argv;
	if (rc)
		return rc;
	rc = view_peers_need(seg, &peers);
	if (!rc)
		rc = show_clients(t, &peers);
	view_peers_fini(&peers);
	xseg_detach(seg);
	return rc;
}

/* ---- start ------------------------------------------------------------------------------- */

int peer_start(struct tool *t, const void *opts, int argc, char **argv)
{
	struct xseg *seg;
	int rc;

	(void)opts;
	(void)argc;
	rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);
	if (rc)
		return rc;
	rc = forget(t, seg, "peer start", argv[0]);
	if (!rc)
		rc = launch_peer(t, seg, argv[0]);
	if (!rc)
		rc = ready_wait_named(t, seg, "peer start", argv[0]);
	xseg_detach(seg);
	if (rc)
		return rc;
	tool_say(t, "%s is running", argv[0]);
	return t->json ? out_state(argv[0], "running") : TOOL_DONE;
}

/* ---- stop -------------------------------------------------------------------------------- */

static int refuse_stop(const struct xseg_peer_info *info, const char *names)
{
	if (!strcmp(info->kind, "cached") && info->downstream != XSEG_NONE)
		return tool_fail(TOOL_REFUSED,
			"peer stop %s: these send to it:%s; take it off the path with 'xseg unplug "
			"%s' first, or add --force and they wait",
			info->name, names, info->name);
	return tool_fail(TOOL_REFUSED,
		"peer stop %s: these send to it:%s; stop them first, or add --force and they wait",
		info->name, names);
}

/* Clients send to the volumed whose volumes they have open; they get errors when it stays away. */
static int refuse_users(const struct one_peer *p)
{
	char users[512];

	volume_users_of(p->seg, p->info->index, NULL, NULL, users, sizeof(users));
	if (!users[0])
		return TOOL_DONE;
	return tool_fail(TOOL_REFUSED,
		"peer stop %s: these have its %s open:%s; end them first, 'xseg peer restart %s' "
		"lets them wait, or add --force and their I/O fails",
		p->info->name, strcmp(p->info->kind, "kvd") ? "volumes" : "values", users,
		p->info->name);
}

static int refuse_client(const struct xseg_peer_info *info)
{
	const char *export = export_of_peer(info);

	if (export)
		return tool_fail(TOOL_REFUSED,
			"%s %s: it is the server of an export; 'xseg export stop %s' stops that",
			tool_command(), info->name, export);
	return tool_fail(TOOL_REFUSED,
		"%s %s: it is a client, which ends by itself; end its process %u", tool_command(),
		info->name, info->pid);
}

/* One that has stopped before, or could not begin. */
static bool stopped_by_itself(const struct one_peer *p)
{
	return p->info->state == XSEG_PEER_STOPPED && view_in_stack(p->seg, p->info->name) &&
	       !stopped_look(p->seg, p->info);
}

static int may_be_stopped(const struct one_peer *p)
{
	if (!view_peer_alive(p->info))
		return not_running(p->seg, p->info);
	if (view_peer_is_client(p->info))
		return refuse_client(p->info);
	return TOOL_DONE;
}

static int ask_to_stop(struct tool *t, const struct one_peer *p)
{
	int rc = proc_stop_peer(p->seg, p->info);

	if (rc && rc != -ESRCH)
		return tool_fail_errno(rc, NULL, "ask the owner of its process", "peer stop %s",
				       p->info->name);
	return ending_wait_stopped(t, p->seg, p->info);
}

/* It was not asked, or has died, and is started again. */
static bool runs_on(const struct one_peer *p)
{
	struct xseg_peer_info now;

	return xseg_peer_get_info(p->seg, p->info->index, &now) &&
	       (view_peer_alive(&now) ? !peer_word_stopping(&now)
				      : now.state == XSEG_PEER_DEAD);
}

/* A peer that is not in the stack is started by nobody. */
static int stop_for_good(struct tool *t, const struct one_peer *p)
{
	const char *name = p->info->name;
	bool in_stack = view_in_stack(p->seg, name);
	int rc = in_stack ? remember(t, p->seg, "peer stop", name, true) : TOOL_DONE;

	if (rc || !view_peer_alive(p->info))
		return rc;
	rc = ask_to_stop(t, p);
	if (rc == TOOL_FAILED && in_stack && runs_on(p))
		(void)forget(t, p->seg, "peer stop", name);
	return rc;
}

static int stop_one(struct tool *t, const struct one_peer *p, bool force)
{
	const struct xseg_peer_info *info = p->info;
	char names[512];
	int rc;

	if (stopped_by_itself(p))
		return stop_for_good(t, p);
	rc = may_be_stopped(p);
	if (!rc && !force && view_peer_names(&p->peers, view_sends_to, info, names, sizeof(names)))
		return refuse_stop(info, names);
	if (!rc && !force)
		rc = refuse_users(p);
	return rc ? rc : stop_for_good(t, p);
}

int peer_stop(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct peer_stop_opts *o = opts;
	struct one_peer p;
	int rc;

	(void)argc;
	rc = one_peer_open(t, argv[0], &p);
	if (rc)
		return rc;
	rc = stop_one(t, &p, o->force);
	one_peer_close(&p);
	if (rc)
		return rc;
	tool_say(t, "%s is stopped", argv[0]);
	return t->json ? out_state(argv[0], "stopped") : TOOL_DONE;
}

/* ---- restart ----------------------------------------------------------------------------- */

static int restart_one(struct tool *t, const struct one_peer *p)
{
	const char *name = p->info->name;
	bool alive = view_peer_alive(p->info);
	/* another command may be restarting it: two processes of one peer would be made */
	bool by_supervisor = alive || (stopped_by_itself(p) && xseg_supervisor_alive(p->seg));
	int rc = alive ? may_be_stopped(p) : TOOL_DONE;

	if (!rc && !view_in_stack(p->seg, name))
		rc = tool_fail(TOOL_REFUSED,
			"peer restart %s: it is not in the stack of segment %s, so it could not be "
			"started again; stop it, and start it as it was started before",
			name, t->segment);
	if (!rc)
		rc = forget(t, p->seg, "peer restart", name);
	if (rc)
		return rc;
	rc = by_supervisor ? restart_peer(t, p->seg, p->info, false)
			   : launch_peer(t, p->seg, name);
	return rc ? rc : ready_wait_named(t, p->seg, "peer restart", name);
}

static int restart_named(struct tool *t, const char *name)
{
	struct one_peer p;
	int rc = one_peer_open(t, name, &p);

	if (rc)
		return rc;
	rc = restart_one(t, &p);
	one_peer_close(&p);
	if (rc)
		return rc;
	tool_say(t, "%s is running again", name);
	return t->json ? out_state(name, "running") : TOOL_DONE;
}

/* Clients of gateways and of exports would lose their connections, so these are told of only. */
static int note_gateways(const struct tool *t, struct xseg *seg)
{
	struct view_peers peers = { 0 };
	int rc = view_peers_need(seg, &peers);

	if (!rc)
		peer_text_note_replaced(t, &peers);
	view_peers_fini(&peers);
	return rc;
}

static int note_exports(const struct tool *t, struct xseg *seg)
{
	struct exported_all all;
	int rc = exported_load(seg, &all);

	if (rc)
		return tool_fail_errno(rc, NULL, "free some memory", "the stack file");
	export_text_note_replaced(t, &all);
	exported_fini(&all);
	return TOOL_DONE;
}

static int restart_stack(struct tool *t, bool if_replaced)
{
	struct extend extend;
	struct xseg *seg;
	int rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);

	if (rc)
		return rc;
	extend_begin(&extend, t, seg, "peer restart");
	rc = restart_all(t, seg, if_replaced);
	if (!rc)
		rc = ready_wait_named(t, seg, "peer restart", NULL);
	extend_end(&extend, t, rc);
	if (!rc)
		rc = note_gateways(t, seg);
	if (!rc)
		rc = note_exports(t, seg);
	xseg_detach(seg);
	return rc || !t->json ? rc : out_state(t->segment, "running");
}

int peer_restart(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct peer_restart_opts *o = opts;

	if (o->all + o->replaced + argc != 1)
		return tool_fail(TOOL_USAGE,
			"peer restart: it needs one of these; give the NAME of a peer, --all or "
			"--replaced");
	return argc ? restart_named(t, argv[0]) : restart_stack(t, o->replaced);
}

/* ---- kill -------------------------------------------------------------------------------- */

/* others: the names of those that are killed with it */
static int kill_one(const struct one_peer *p, bool force, char *others, size_t size)
{
	const struct xseg_peer_info *info = p->info;
	struct xseg_peer_info supervisor;
	int rc;

	if (!view_peer_alive(info))
		return not_running(p->seg, info);
	if (view_peer_names(&p->peers, view_shares_process, info, others, size) && !force)
		return tool_fail(
			TOOL_REFUSED,
			"peer kill %s: its process %u also hosts:%s; add --force to kill them, too",
			info->name, info->pid, others);
	rc = proc_signal_named(p->seg, info, SIGKILL);
	if (!rc && view_supervisor(p->seg, &supervisor))
		proc_log_note(supervisor.pid,
			"xseg: process %u of %s%s is killed by 'xseg peer kill'",
			info->pid, info->name, others);
	if (rc == -EPROTO)
		return proc_fail_named(p->seg, info, "peer kill");
	if (rc == -ESRCH)
		return tool_fail(
			TOOL_REFUSED,
			"peer kill %s: its process has just ended; see 'xseg peer list'",
			info->name);
	if (rc)
		return tool_fail_errno(rc, NULL, "ask the owner of its process", "peer kill %s",
				       info->name);
	return TOOL_DONE;
}

int peer_kill(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct peer_kill_opts *o = opts;
	char others[512] = "";
	struct one_peer p;
	int rc;

	(void)argc;
	rc = one_peer_open(t, argv[0], &p);
	if (rc)
		return rc;
	rc = kill_one(&p, o->force, others, sizeof(others));
	if (!rc)
		rc = ending_wait_gone(t, p.seg, p.info);
	one_peer_close(&p);
	if (rc)
		return rc;
	tool_say(t, "%s is killed%s%s", argv[0], others[0] ? ", and with its process:" : "",
		others);
	return t->json ? out_state(argv[0], "killed") : TOOL_DONE;
}

/* ---- set --------------------------------------------------------------------------------- */

/* settings: " KEY=VALUE..." as they are given, and then as they were set. */
static int set(struct client *c, int argc, char **argv, char *settings, size_t size)
{
	uint32_t peer;
	int64_t rc;
	int code = client_find_peer(c, NULL, argv[0], &peer);

	if (code)
		return code;
	rc = client_tell(c, peer, "set%s", settings);
	if (rc < 0)
		return client_fail(
			c, rc, "'xseg peer set --help' lists the keys", "peer set %s", argv[0]);
	client_settings_done(c, argc - 1, argv + 1, settings, size);
	return TOOL_DONE;
}

int peer_set(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct peer_set_opts *o = opts;
	struct stack_record *record = calloc(1, sizeof(*record));
	char given[2048], settings[2048];
	struct client *c;
	int code = record ? client_settings(argc - 1, argv + 1, given, sizeof(given))
			  : tool_fail(TOOL_FAILED, "peer set: no memory; free some");

	if (!code)
		code = client_open(t, &c);
	if (code)
		goto out;
	snprintf(settings, sizeof(settings), "%s", given);
	if (o->save)
		code = stack_save_check(t, c->seg, "peer set --save", record);
	if (!code)
		code = set(c, argc, argv, settings, sizeof(settings));
	if (!code)
		tool_say(t, "%s: set%s", argv[0], settings);
	if (!code && o->save)
		code = stack_save_write(t, c->seg, "peer set --save", record, argv[0], given);
	client_close(c);
	if (!code && t->json)
		code = out_state(argv[0], "set");
out:
	free(record);
	return code;
}
