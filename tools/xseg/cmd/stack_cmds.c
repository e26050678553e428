/* stack_cmds - up and down: a whole stack, from nothing to serving and back.
 *
 * Contract: see commands.h.
 *
 * Invariants
 *   U1  If `up` fails, it undoes its own steps: the processes it started, and the segment if it
 *       made it.
 *   U2  If `up` is interrupted or timed out, it leaves the supervisor at work (TOOL_LATER). If it
 *       is to stay, as a service or in the foreground, an interrupt has the supervisor stop all, as
 *       it does when all serve (stay.h).
 *   U3  `down` removes a segment only after all in it has stopped and nothing dirty is left.
 *   U4  If `down` cannot have a cache flush, it starts the stopped peers again and leaves the stack
 *       serving. `down --cancel`, and `up` during a stop, do so, too.
 *   U5  `up` starts nothing while a peer that nobody would start again has dirty data, or one of
 *       those that it would start still sends to that.
 *   U6  A peer that runs and is not ready (ready.h) is told, with the exit code of that. The stack
 *       stays: other peers serve, and values of a log that cannot be opened are saved from there.
 *       A service or one in the foreground stays, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/say/dirty.h"
#include "peers/common/options/owner.h"
#include "tools/xseg/base/extend.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/damage.h"
#include "tools/xseg/flow/ending.h"
#include "tools/xseg/flow/export_flow.h"
#include "tools/xseg/flow/launch.h"
#include "tools/xseg/flow/stack_diff.h"
#include "tools/xseg/flow/stack_file.h"
#include "tools/xseg/flow/stack_save.h"
#include "tools/xseg/flow/stay.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/ready.h"
#include "tools/xseg/base/view.h"

#define AT(field) offsetof(struct stack_up_opts, field)
const struct opt stack_up_table[] = {
	{ .name = "foreground", .kind = OPT_BOOL, .off = AT(foreground),
	  .help = "stay and show the log; Ctrl-C stops all peers" },
	{ .name = "service", .kind = OPT_BOOL, .off = AT(service),
	  .help = "the same for systemd: tell it when all peers serve; at the end remove the "
		  "segment" },
	{ 0 },
};
#undef AT

#define AT(field) offsetof(struct stack_down_opts, field)
const struct opt stack_down_table[] = {
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "kill everything, and lose dirty data" },
	{ .name = "cancel", .kind = OPT_BOOL, .off = AT(cancel),
	  .help = "take back a stop that has not ended" },
	{ 0 },
};
#undef AT

/* ---- up: the file ------------------------------------------------------------------------ */

struct upping {
	struct tool *t;
	const char *path;
	const char *named;			/* what named the segment: STACK_NAMED_... */
	struct stack_file *file;
	struct stack *stack;			/* the file's */
	struct xseg *seg;
	bool made;				/* the segment is ours */
	struct view_peers before;		/* what was there */
	struct launch launch;
	bool stays;				/* in the foreground, or as a service */
	bool service;
	bool begun;				/* a supervisor starts the stack */
	uint32_t nr_not;			/* peers that run and are not ready (U6) */
	bool taken_back;	/* the stack serves, as a stop of it was taken back */
	bool again;		/* the stack serves, and this program was its predecessor
				 * (stay.h) */
};

/* Whether a segment of that name has to be made. */
static bool makes_segment(struct upping *u)
{
	struct xseg_error err = { "" };
	struct xseg *seg;
	int rc = owner_attach(u->t->segment, XSEG_ATTACH_OBSERVER, &seg, &err);

	if (!rc)
		xseg_detach(seg);
	return rc == -ENOENT || rc == -ESTALE;
}

static int read_stack(struct upping *u)
{
	int rc;

	u->file = stack_file_read(u->t, "up", u->path, &rc);
	if (rc)
		return rc;
	u->stack = u->file->stack;
	u->named = u->t->segment_given ? STACK_NAMED_OPTION : STACK_NAMED_DEFAULT;
	if (!u->t->segment_given && u->stack->segment.name[0]) {
		u->named = STACK_NAMED_FILE;
		snprintf(u->t->segment, sizeof(u->t->segment), "%s", u->stack->segment.name);
	}
	if (!owner_is_named())
		owner_use(u->stack->segment.owner);
	return stack_file_tell(u->file, "up", makes_segment(u));
}

/* ---- up: the segment --------------------------------------------------------------------- */

static int make_segment(struct upping *u)
{
	struct xseg_error err = { "" };
	struct xseg_config cfg;
	const char *hint;
	int rc;

	/* it has the stores' files open */
	if (proc_find_supervisor(u->t->segment, false))
		return tool_fail_attach(u->t, -ENOENT, NULL);
	rc = stack_segment_config(&u->stack->segment, &cfg, &err);
	if (!rc)
		rc = xseg_create(u->t->segment, &cfg, &err);
	hint = tool_make_hint(rc);
	if (rc)
		return tool_fail_errno(rc, &err,
			rc == -EEXIST ? "see 'xseg status'" :
			hint ? hint : "correct [segment]", "up: segment %s", u->t->segment);
	u->made = true;
	rc = tool_attach(u->t, 0, &u->seg);
	if (rc && xseg_destroy(u->t->segment))
		tool_fail(TOOL_FAILED,
			  "segment %s: it was made and cannot be removed; use 'xseg destroy'",
			  u->t->segment);
	return rc;
}

/* One that is there already is taken over as it is, whatever [segment] says by now. */
static void note_size(struct upping *u)
{
	struct xseg_info info;
	struct xseg_config cfg;
	struct xseg_plan plan;
	char has[OUT_TEXT];

	if (!u->stack->segment.memory || stack_segment_config(&u->stack->segment, &cfg, NULL) ||
	    xseg_plan(&cfg, &plan, NULL))
		return;
	xseg_get_info(u->seg, &info);
	if (plan.pages_bytes == info.memory_bytes && plan.nr_requests == info.nr_requests)
		return;
	tool_note(u->t,
		  "segment %s keeps its %s of memory and %u requests; to have those of %s, stop it "
		  "with 'xseg down' first",
		  u->t->segment, out_size(info.memory_bytes, has), info.nr_requests, u->path);
}

/* Routes are kept, whatever a file says. */
static const struct xseg_peer_info *sender_of(const struct upping *u,
					      const struct xseg_peer_info *lower)
{
	const struct xseg_peer_info *p;

	for (p = u->before.info; p < u->before.info + u->before.nr; p++)
		if (p->downstream == lower->index && stack_find(u->stack, p->name) != STACK_NONE)
			return p;
	return NULL;
}

static int refuse_left_out(struct upping *u, const struct xseg_peer_info *p)
{
	uint64_t dirty = dirty_bytes_of(u->seg, p->index);
	const struct xseg_peer_info *sender = sender_of(u, p);
	char size[OUT_TEXT];

	if (dirty)
		return tool_fail(TOOL_REFUSED,
			"up: %s has no %s, which is %s in segment %s and has %s (%" PRIu64
			" bytes) that the store does not have; add it, or run 'xseg up' with the "
			"file that it was started by, or 'xseg destroy --force' and lose them",
			u->path, p->name, view_state_name(p->state), u->t->segment,
			out_size(dirty, size), dirty);
	if (sender)
		return tool_fail(TOOL_REFUSED,
			"up: %s has no %s, which is %s in segment %s, and %s still sends to it; "
			"add it, or run 'xseg up' with the file that it was started by, or begin "
			"anew after 'xseg destroy'",
			u->path, p->name, view_state_name(p->state), u->t->segment, sender->name);
	return TOOL_DONE;
}

/* U5 */
static int check_left_out(struct upping *u)
{
	const struct xseg_peer_info *p;
	int rc = TOOL_DONE;

	for (p = u->before.info; !rc && p < u->before.info + u->before.nr; p++)
		if (!view_peer_alive(p) && !view_peer_is_client(p) &&
			stack_find(u->stack, p->name) == STACK_NONE)
			rc = refuse_left_out(u, p);
	return rc;
}

/* A stack that runs stays as it is: what differs is told. */
static int tell_running(struct upping *u)
{
	struct stack_record *record = calloc(1, sizeof(*record));
	struct stack_diff *d = calloc(1, sizeof(*d));
	int rc = TOOL_DONE;

	if (record && d && stack_record_get(u->seg, record) && xseg_is_own(u->seg))
		rc = stack_diff_make(u->t, u->seg, record, u->file, d);
	if (!rc && d && d->nr && !u->t->json && !u->t->quiet)
		rc = stack_diff_print(d);
	if (!rc && d && u->t->json)
		rc = out_json(json_pack("{s:s, s:o}", "segment", u->t->segment, "differences",
			stack_diff_json(d)));
	if (!rc && d && d->nr)
		rc = tool_fail(TOOL_REFUSED,
			"up: segment %s has a stack that runs, and %s differs from it in %u "
			"place%s; 'xseg reload %s' applies those that can be applied",
			u->t->segment, u->path, d->nr, out_s(d->nr), u->path);
	else if (!rc)
		rc = launch_refuse(u->t, u->seg);
	free(record);
	free(d);
	return rc;
}

/* A stack that somebody stops is not stopped any more. *again: it has stopped meanwhile. */
static int take_stop_back(struct upping *u, bool *again)
{
	struct xseg_peer_info supervisor;
	int rc;

	if (!view_supervisor(u->seg, &supervisor))
		return launch_refuse(u->t, u->seg);
	if (!peer_word_stopping(&supervisor))
		return tell_running(u);
	proc_log_path(u->t->segment, u->launch.log, sizeof(u->launch.log));
	tool_mute_interrupts(u->stays);
	rc = ending_cancel(u->t, u->seg, "up", again);
	tool_mute_interrupts(false);
	u->begun = !*again;
	if (rc || *again)
		return rc;
	u->taken_back = true;
	tool_say(u->t, "the stop of segment %s is taken back", u->t->segment);
	return TOOL_DONE;
}

static int go_on(struct upping *u)
{
	proc_log_path(u->t->segment, u->launch.log, sizeof(u->launch.log));
	u->launch.log_from = (off_t)strtoll(getenv(STAY_AGAIN), NULL, 10);
	u->begun = u->taken_back = true;
	return TOOL_DONE;
}

static int open_segment(struct upping *u)
{
	struct xseg_error err = { "" };
	bool again = false;
	int rc = owner_attach(u->t->segment, 0, &u->seg, &err);

	if (rc == -ENOENT || rc == -ESTALE)
		rc = make_segment(u);
	else if (rc)
		rc = tool_fail_attach(u->t, rc, &err);
	else
		tool_be_patient(u->t, u->seg);
	if (!rc && !u->made && xseg_supervisor_alive(u->seg))
		rc = u->again ? go_on(u) : take_stop_back(u, &again);
	if (!rc && again) {
		xseg_detach(u->seg);
		u->seg = NULL;
		return open_segment(u);
	}
	if (u->taken_back)
		return rc;
	if (!rc)
		rc = view_peers_need(u->seg, &u->before);
	if (!rc)
		rc = check_left_out(u);
	if (rc)
		return rc;
	if (!u->made)
		note_size(u);
	return TOOL_DONE;
}

/* ---- up: undoing ------------------------------------------------------------------------- */

static bool was_there(const struct xseg_peer_info *p, void *arg)
{
	const struct upping *u = arg;
	const struct xseg_peer_info *old = view_peer_named(&u->before, p->name);

	return old && view_peer_alive(old) && old->generation == p->generation;
}

static void undo_segment(struct upping *u)
{
	if (u->made && !ending_remove(u->t, u->seg, ENDING_REMOVE_IDLE, 0))
		tool_say(u->t, "segment %s is removed again", u->t->segment);
}

/* The supervisor first, which would start them again (U1). What failed has been said. A signal may
 * have come in time to ask for the same; one that comes later ends a wait here, but of a service,
 * which is to be stopped. */
static void undo(struct upping *u)
{
	int rc;

	tool_clear_interrupt();
	tool_hold_signals(u->service);
	rc = ending_kill_start(u->t, u->seg);
	if (!rc)
		rc = export_flow_end(u->t, u->seg);
	if (!rc)
		rc = ending_stop_peers(u->t, u->seg,
			&(struct ending_stop){ .spare = was_there, .arg = u });
	if (!rc)
		undo_segment(u);
	else
		tool_note(u->t,
			"up: segment %s stays, with what has not stopped; 'xseg down' stops that",
			u->t->segment);
	tool_hold_signals(false);
}

/* ---- up ---------------------------------------------------------------------------------- */

static int say_up(const struct upping *u)
{
	uint32_t nr_not = u->launch.nr_away + u->nr_not, i;
	json_t *j, *peers, *exports, *away;
	struct stopped s;

	if (u->taken_back && !u->t->json)
		return out_done();
	if (!u->t->json && nr_not) {
		tool_say(u->t, "%u of %u peers serve; 'xseg status' shows them",
			u->stack->nr_peers - nr_not, u->stack->nr_peers);
		return out_done();
	}
	if (!u->t->json) {
		tool_say(u->t,
			 u->stack->nr_peers > 1 ? "all %u peers serve; 'xseg status' shows them"
						: "%u peer serves; 'xseg status' shows it",
			 u->stack->nr_peers);
		return out_done();
	}
	j = json_object();
	peers = json_array();
	out_set_text(j, "segment", u->t->segment);
	out_set_bool(j, "created", u->made);
	out_set_text(j, "log", u->launch.log);
	away = json_array();
	stopped_load(u->seg, &s);
	for (i = 0; i < u->stack->nr_peers; i++) {
		json_array_append_new(peers, json_string(u->stack->peers[i].name));
		if (u->launch.nr_away && launch_stays_away(&u->launch, &s, i))
			json_array_append_new(away, json_string(u->stack->peers[i].name));
	}
	json_object_set_new(j, "peers", peers);
	json_object_set_new(j, "away", away);
	exports = json_array();
	for (i = 0; i < u->stack->nr_exports; i++)
		json_array_append_new(exports, json_string(u->stack->exports[i].name));
	json_object_set_new(j, "exports", exports);
	return out_json(j);
}

/* Until all that is to serve does. */
static int wait_for_all(struct upping *u)
{
	int rc;

	tool_mute_interrupts(u->stays);
	rc = launch_wait(&u->launch);
	if (!rc)
		launch_note_away(&u->launch);
	if (!rc)
		rc = export_flow_wait(&u->launch);
	tool_mute_interrupts(false);
	return rc;
}

static int bring_up(struct upping *u)
{
	int rc;

	if (u->stays && tool_interrupted()) {
		undo_segment(u);
		return TOOL_LATER;
	}
	tool_hold_signals(u->stays);	/* a supervisor that has begun can be asked to stop */
	rc = launch_supervisor(&u->launch, u->t, u->seg, u->stack, u->file->text);
	tool_hold_signals(false);
	/* what may run there then is somebody else's */
	if (rc == TOOL_FAILED)
		undo_segment(u);
	if (rc)
		return rc;
	u->begun = true;
	stack_save_remember(u->t, u->seg, u->path, u->named);
	tool_say(u->t, "segment %s is %s; log: %s", u->t->segment,
		 u->made ? "made" : "there already", u->launch.log);
	fflush(stdout);
	rc = wait_for_all(u);
	if (rc == TOOL_FAILED || rc == TOOL_REFUSED)
		undo(u);
	return rc;
}

/* It serves what is certain; whoever has started it is to know that this is not all. */
static void note_damage(const struct upping *u)
{
	struct damage d;
	char text[DAMAGE_MAX];

	damage_ask(u->t, u->seg, &d);
	if (damage_any(&d))
		tool_note(u->t, "up: %s", damage_tell(&d, text));
}

static int wait_until_ready(struct upping *u)
{
	int rc;

	tool_mute_interrupts(u->stays);
	rc = ready_wait(u->t, u->seg, u->stack, "up", NULL, &u->nr_not);
	tool_mute_interrupts(false);
	return rc;
}

/* *not_ready: the exit code of U6. */
static int start(struct upping *u, int *not_ready)
{
	struct extend extend;
	int rc = read_stack(u);

	if (!rc && u->stays && tool_interrupted())
		return TOOL_LATER;
	if (!rc)
		rc = open_segment(u);
	if (u->seg && u->service)
		extend_begin(&extend, u->t, u->seg, "up");
	if (!rc && !u->taken_back)
		rc = bring_up(u);
	if (!rc)
		*not_ready = wait_until_ready(u);
	if (*not_ready == TOOL_LATER)
		rc = *not_ready;
	if (u->seg && u->service)
		extend_end(&extend, u->t, rc ? rc : *not_ready);
	return rc;
}

/* Of a start that a signal has interrupted (U2). */
static int stop_start(struct upping *u)
{
	if (!u->begun) {
		tool_note(u->t, "up: asked to stop before it has started anything");
		return TOOL_DONE;
	}
	tool_note(u->t, "up: asked to stop before all of segment %s served; stopping all of it",
		u->t->segment);
	return stay_until_stopped(&u->launch, u->service, u->nr_not);
}

static int tell_up(struct upping *u)
{
	int rc = say_up(u);

	if (!rc && !u->stays && !u->taken_back)
		launch_note_warnings(&u->launch);
	if (!rc)
		note_damage(u);
	return rc;
}

int stack_up(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct stack_up_opts *o = opts;
	struct upping u = { .t = t,
		.path = argv[0],
		.stays = o->foreground || o->service,
		.service = o->service,
		.again = o->service && getenv(STAY_AGAIN) };
	int rc, not_ready = TOOL_DONE;

	(void)argc;
	rc = start(&u, &not_ready);
	unsetenv(STAY_AGAIN);
	u.launch.t = t;
	u.launch.seg = u.seg;
	if (!rc)
		rc = tell_up(&u);
	if (rc == TOOL_LATER && u.stays && tool_interrupted())
		rc = stop_start(&u);
	else if (!rc && u.stays)
		rc = stay_until_stopped(&u.launch, u.service, u.nr_not);
	else if (!rc)
		rc = not_ready;
	view_peers_fini(&u.before);
	if (u.seg)
		xseg_detach(u.seg);
	stack_file_drop(u.file);
	return rc;
}

/* ---- down -------------------------------------------------------------------------------- */

/* U4, without a supervisor: bottom up. */
static void start_again(struct tool *t, struct xseg *seg, const struct ending_stop *how)
{
	struct xseg_peer_info p;
	uint32_t i = how->nr_stopped;

	while (i-- > 0) {
		if (!xseg_peer_get_info(seg, how->stopped[i], &p))
			continue;
		if (view_in_stack(seg, p.name))
			(void)launch_peer(t, seg, p.name); /* it says what is wrong */
		else
			tool_note(t,
				"%s was stopped, and is not in the stack; start it as it was "
				"started before",
				p.name);
	}
}

static int stop_by_hand(struct tool *t, struct xseg *seg)
{
	struct ending_stop how = { .flush = true };
	int rc = ending_flush(t, seg, &how);

	if (!rc)
		rc = export_flow_end(t, seg);
	if (!rc)
		rc = ending_stop_peers(t, seg, &how);
	if (how.flush_failed)
		start_again(t, seg, &how);
	return rc;
}

static int stop_all(struct tool *t, struct xseg *seg)
{
	int rc = TOOL_DONE;

	ending_name_clients(t, seg);
	if (!xseg_supervisor_alive(seg))
		rc = ending_no_dirty(t, seg, "down");
	if (!rc)
		rc = ending_can_flush(t, seg, "down");
	if (!rc)
		rc = ending_stop_supervisor(t, seg);
	if (!rc)
		rc = stop_by_hand(t, seg);
	if (!rc)
		rc = ending_no_dirty(t, seg, "down");
	return rc ? rc : ending_may_destroy(t, seg, true);
}

static int cancel(struct tool *t, struct xseg *seg)
{
	bool gone;
	int rc = ending_cancel(t, seg, "down --cancel", &gone);

	if (!rc && gone)
		return tool_fail(TOOL_REFUSED,
			"down --cancel: all of segment %s had stopped before; start it with 'xseg "
			"up STACK.conf'",
			t->segment);
	if (rc)
		return rc;
	tool_say(t, "the stop of segment %s is taken back", t->segment);
	return t->json ? out_state(t->segment, "running") : TOOL_DONE;
}

static int end(struct tool *t, struct xseg *seg, bool force)
{
	uint32_t nr_idle = ending_count_idle(seg);
	int rc = force ? ending_kill_all(t, seg) : stop_all(t, seg);

	if (!rc)
		rc = ending_remove(t, seg,
			force ? ENDING_REMOVE_BY_FORCE : ENDING_REMOVE_UNDER_CLIENTS, nr_idle);
	if (rc)
		return rc;
	tool_say(t, "the stack of segment %s has stopped, and the segment is removed", t->segment);
	return t->json ? out_state(t->segment, "removed") : TOOL_DONE;
}

int stack_down(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct stack_down_opts *o = opts;
	struct xseg *seg;
	int rc;

	(void)argc;
	(void)argv;
	if (o->force && o->cancel)
		return tool_fail(TOOL_USAGE,
			"down: --cancel takes a stop back, and --force kills; give one");
	rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);
	if (rc)
		return rc;
	rc = o->cancel ? cancel(t, seg) : end(t, seg, o->force);
	xseg_detach(seg);
	return rc;
}
