/* reload_cmd - reload: a stack that runs becomes what a stack file says, as far as that can be.
 *
 * Contract: see commands.h.
 *
 * Invariants
 *   R1  Nothing is changed before all that would be refused is refused.
 *   R2  The steps are in this order:
 *	1. Caches flush, if peers are to be replaced.
 *	2. Live keys are set.
 *	3. Servers of exports that the file lacks end.
 *	4. Caches leave the path. Then peers that the file lacks stop.
 *	5. The segment's copy of the file is written. With it stand the names of the peers that are
 *	   to be restarted or replaced.
 *	6. If peers, processes or exports change, another supervisor begins. It replaces peers
 *	   (peers/host/replace.h).
 *	7. Caches enter the path.
 *	8. Peers are restarted. Each restart removes a name from the list of step 5.
 *       The first reload may be killed at any step. The supervisor completes its own steps, and a
 *       second reload applies the other differences.
 *   R3  Differences that only down and up can apply are printed, and stay.
 *   R4  One reload at a time (stack_lock.h).
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "peers/common/say/words.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/base/extend.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/ready.h"
#include "tools/xseg/base/stack_lock.h"
#include "tools/xseg/base/view.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/cmd/reload.h"
#include "tools/xseg/flow/ending.h"
#include "tools/xseg/flow/export_flow.h"
#include "tools/xseg/flow/restart.h"

#define AT(field) offsetof(struct reload_opts, field)
const struct opt reload_table[] = {
	{ .name = "dry-run", .kind = OPT_BOOL, .off = AT(dry_run),
	  .help = "only name the differences, and how each would be applied" },
	{ 0 },
};
#undef AT

static uint32_t count(const struct reloading *r, enum stack_diff_how how)
{
	return stack_diff_count(r->d, how);
}

/* A peer that goes by itself. Others go with those that are replaced. */
static bool goes(const struct reloading *r, const char *name)
{
	uint32_t at = route_plan_find(&r->d->plan, name);

	return at != ROUTE_NONE && r->d->plan.node[at].goes && !r->d->plan.node[at].replaced;
}

/* ---- steps ------------------------------------------------------------------------------- */

/* " KEY=VALUE..." of all live keys of a peer that differ. */
static void settings_of(const struct stack_diff *d, const char *peer, char *text, size_t size)
{
	const struct stack_diff_row *row;
	char values[STACK_DIFF_VALUE], *rest, *value;
	struct kv_text t;

	kv_init(&t, text, size);
	text[0] = '\0';
	for (row = d->row; row < d->row + d->nr; row++) {
		if (row->how != STACK_DIFF_LIVE || strcmp(row->peer, peer) != 0)
			continue;
		snprintf(values, sizeof(values), "%s", row->file);
		rest = values;
		while ((value = strsep(&rest, "\n")))
			kv_add(&t, " %s=%s", row->key, value);
	}
}

static int set_live(struct reloading *r, struct client *c, const char *peer)
{
	char settings[2048];
	uint32_t index;
	int64_t rc;
	int code = client_find_peer(c, NULL, peer, &index);

	settings_of(r->d, peer, settings, sizeof(settings));
	if (code)
		return code;
	rc = client_tell(c, index, "set%s", settings);
	if (rc < 0)
		return client_fail(c, rc, "correct the file", RELOAD ": %s", peer);
	tool_say(r->t, "%s: set%s", peer, settings);
	return TOOL_DONE;
}

/* Rows of a peer are beside each other. */
static int set_all(struct reloading *r)
{
	const char *last = "";
	struct client *c;
	int rc;

	if (!stack_diff_count(r->d, STACK_DIFF_LIVE))
		return TOOL_DONE;
	rc = client_open(r->t, &c);
	if (rc)
		return rc;
	for (uint32_t i = 0; !rc && i < r->d->nr; i++)
		if (r->d->row[i].how == STACK_DIFF_LIVE && *r->d->row[i].peer &&
			strcmp(last, r->d->row[i].peer) != 0) {
			last = r->d->row[i].peer;
			rc = set_live(r, c, last);
		}
	client_close(c);
	return rc;
}

static bool find_alive(struct reloading *r, const char *name, struct xseg_peer_info *info)
{
	uint32_t index = xseg_peer_find(r->seg, name);

	return index != XSEG_NONE && xseg_peer_get_info(r->seg, index, info) &&
	       view_peer_alive(info);
}

static int stop_one(struct reloading *r, const char *name)
{
	struct xseg_peer_info info;
	int rc;

	if (!find_alive(r, name, &info))
		return TOOL_DONE;
	rc = proc_stop_peer(r->seg, &info);
	if (rc && rc != -ESRCH)
		return tool_fail_errno(
			rc, NULL, "ask the owner of its process", RELOAD ": stopping %s", name);
	rc = ending_wait_stopped(r->t, r->seg, &info);
	if (!rc)
		tool_say(r->t, "%s is stopped", name);
	return rc;
}

/* Those above first. */
static int stop_removed(struct reloading *r)
{
	struct stack *old = view_stack(r->seg);
	uint32_t order[STACK_MAX_PEERS], i;
	int rc = TOOL_DONE;

	if (!old || !stack_diff_count(r->d, STACK_DIFF_REMOVE)) {
		stack_destroy(old);
		return TOOL_DONE;
	}
	stack_order(old, order);
	for (i = old->nr_peers; !rc && i-- > 0;)
		if (goes(r, old->peers[order[i]].name))
			rc = stop_one(r, old->peers[order[i]].name);
	stack_destroy(old);
	return rc;
}

static int keep(struct reloading *r)
{
	int rc = stack_record_set(r->seg, r->record);

	return rc ? tool_fail_errno(rc, NULL, "do this again",
			    RELOAD ": the segment's copy of %s", r->file->path)
		  : TOOL_DONE;
}

/* Whether peers, processes or exports change, or the rights that exports have from the segment, or
 * nobody supervises, or a reload before this one was killed there. */
static bool needs_supervisor(const struct reloading *r)
{
	return (r->file->stack->nr_exports && reload_changes_rights(r)) ||
	       count(r, STACK_DIFF_ADD) || count(r, STACK_DIFF_REMOVE) || reload_replaces(r) ||
	       count(r, STACK_DIFF_STACK) || !xseg_supervisor_alive(r->seg) ||
	       stack_names_have(r->before->pending, XSEG_SUPERVISOR_KIND);
}

/* Those that are replaced begin with all options of the file. */
static bool is_restarted(const struct reloading *r, const struct stack_diff_row *row)
{
	uint32_t at = route_plan_find(&r->d->plan, row->peer);

	return row->how == STACK_DIFF_RESTART &&
	       (at == ROUTE_NONE || !r->d->plan.node[at].replaced);
}

/* Also those that go by themselves, for the supervisor to forget them. */
static bool add_replaced(struct reloading *r)
{
	const struct route_plan *plan = &r->d->plan;
	struct stack_replaced replaced;
	bool fits = true;

	for (const struct route_node *n = plan->node; n < plan->node + plan->nr; n++) {
		if (!n->replaced && !n->goes)
			continue;
		replaced = (struct stack_replaced){ .generation = n->generation,
			.keeps_route = n->keeps_route };
		memcpy(replaced.name, n->name, sizeof(replaced.name));
		fits &= stack_replaced_add(
			r->record->pending, sizeof(r->record->pending), &replaced);
	}
	return fits;
}

static void keep_one(struct reloading *r, enum stack_stopped what, const char *name)
{
	if (stack_stopped_has(r->before->stopped, what, name))
		(void)stack_stopped_add(r->record, what, name);
}

/* Exports and peers that the file does not have are forgotten. */
static void keep_stopped(struct reloading *r)
{
	const struct stack *file = r->file->stack;

	*r->record->stopped = '\0';
	for (uint32_t i = 0; i < file->nr_exports; i++)
		keep_one(r, STACK_STOPPED_EXPORT, file->exports[i].name);
	for (uint32_t i = 0; i < file->nr_peers; i++)
		keep_one(r, STACK_STOPPED_PEER, file->peers[i].name);
}

/* R2, step 5: the file's text, its path, and the names of the peers to restart and to replace. The
 * record is kept later. */
static int make_record(struct reloading *r)
{
	struct stack_record *record = r->record;
	char real[PATH_MAX];
	bool fits = true;

	*r->before = *record;
	*record->pending = '\0';
	for (uint32_t i = 0; i < r->d->nr; i++)
		if (is_restarted(r, &r->d->row[i]))
			fits &= stack_names_add(record->pending, sizeof(record->pending),
				r->d->row[i].peer);
	fits &= add_replaced(r);
	if (needs_supervisor(r))
		fits &= stack_names_add(
			record->pending, sizeof(record->pending), XSEG_SUPERVISOR_KIND);
	snprintf(record->text, sizeof(record->text), "%s", r->file->text);
	if (realpath(r->file->path, real))
		snprintf(record->path, sizeof(record->path), "%s", real);
	keep_stopped(r);
	if (fits && stack_record_fits(record))
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED,
		RELOAD ": %s has nearly 64k, and a segment has no room beside it for the work to "
		       "be done; make it shorter",
		r->file->path);
}

/* The supervisor could not begin, as when the segment has no room for all peers: another one begins
 * with the stack that was there before, and starts again what was stopped for the new one. */
static void put_back(struct reloading *r)
{
	struct stack *stack = stack_create();
	struct launch launch;

	*r->record = *r->before;
	if (stack && !keep(r) && !stack_parse(r->record->text, stack, NULL) &&
		!launch_supervisor(&launch, r->t, r->seg, stack, r->record->text))
		tool_note(r->t, RELOAD ": the stack is the one from before");
	stack_destroy(stack);
}

/* What the supervisor has done is nobody's to do any more. */
static int keep_restarts(struct reloading *r)
{
	*r->record->pending = '\0';
	for (uint32_t i = 0; i < r->d->nr; i++)
		if (is_restarted(r, &r->d->row[i]))
			(void)stack_names_add(r->record->pending, sizeof(r->record->pending),
				r->d->row[i].peer);
	return keep(r);
}

static int replace_supervisor(struct reloading *r)
{
	struct launch launch;
	int rc;

	if (!stack_names_have(r->record->pending, XSEG_SUPERVISOR_KIND))
		return TOOL_DONE;
	rc = ending_kill_supervisor(r->t, r->seg);
	if (!rc)
		rc = launch_supervisor(&launch, r->t, r->seg, r->file->stack, r->file->text);
	if (rc == TOOL_FAILED || rc == TOOL_REFUSED)
		put_back(r);
	launch.what = RELOAD;
	if (!rc)
		rc = reload_wait_replaced(r, &launch);
	if (!rc)
		rc = launch_wait(&launch);
	if (!rc)
		rc = export_flow_wait(&launch);
	if (!rc)
		rc = keep_restarts(r);
	if (!rc)
		tool_say(r->t, "the supervisor has the stack of %s", r->file->path);
	return rc;
}

/* What differs of it holds when it is started, by a person or by the supervisor. */
static void say_stopped(struct reloading *r, const char *name)
{
	uint32_t index = xseg_peer_find(r->seg, name);
	struct xseg_peer_info info;
	bool stopped = index != XSEG_NONE && xseg_peer_get_info(r->seg, index, &info) &&
		       info.state == XSEG_PEER_STOPPED;
	char keys[256], how[XSEG_NAME_MAX + 48] = "";
	struct kv_text t;

	kv_init(&t, keys, sizeof(keys));
	keys[0] = '\0';
	for (uint32_t i = 0; i < r->d->nr; i++)
		if (is_restarted(r, &r->d->row[i]) && !strcmp(r->d->row[i].peer, name))
			kv_add(&t, "%s%s", t.used ? ", " : "", r->d->row[i].key);
	if (stopped)
		snprintf(how, sizeof(how), "; 'xseg peer start %s' starts it", name);
	tool_say(r->t, "%s does not run, and begins with the new %s when it is started%s", name,
		*keys ? keys : "options", how);
}

static int restart_one(struct reloading *r, const char *name)
{
	struct xseg_peer_info info;
	int rc;

	if (!find_alive(r, name, &info)) {
		say_stopped(r, name);
		return TOOL_DONE;
	}
	rc = restart_peer(r->t, r->seg, &info, true);
	if (!rc)
		tool_say(r->t, "%s is running again", name);
	return rc;
}

static int restart_pending(struct reloading *r)
{
	char *rest = strdup(r->record->pending), *all = rest, *name;
	int rc = rest ? TOOL_DONE : tool_fail(TOOL_FAILED, RELOAD ": no memory; free some");

	while (!rc && rest && *rest) {
		name = strsep(&rest, ",");
		rc = restart_one(r, name);
		if (rc)
			break;
		memmove(r->record->pending, rest ? rest : "", rest ? strlen(rest) + 1 : 1);
		rc = keep(r);
	}
	free(all);
	return rc;
}

/* Their names go with them, if nothing refers to these. */
static void forget_removed(struct reloading *r)
{
	uint32_t index;

	for (uint32_t i = 0; i < r->d->nr; i++) {
		if (r->d->row[i].how != STACK_DIFF_REMOVE)
			continue;
		index = xseg_peer_find(r->seg, r->d->row[i].peer);
		if (index != XSEG_NONE && xseg_peer_forget(r->seg, index))
			tool_note(r->t, "%s stays listed, as stopped", r->d->row[i].peer);
	}
}

static int apply(struct reloading *r)
{
	int rc = reload_check(r);

	if (!rc)
		rc = make_record(r);
	if (!rc)
		rc = reload_flush(r);
	if (!rc)
		rc = reload_check_same(r);
	if (!rc)
		rc = reload_rights(r);
	if (!rc)
		rc = set_all(r);
	if (!rc)
		rc = reload_end_exports(r);
	if (!rc)
		rc = reload_unplug(r);
	if (!rc)
		rc = stop_removed(r);
	if (!rc)
		rc = keep(r);
	if (!rc)
		rc = replace_supervisor(r);
	if (!rc)
		rc = reload_plug(r);
	if (!rc)
		rc = reload_verify(r);
	if (!rc)
		rc = restart_pending(r);
	if (!rc)
		forget_removed(r);
	if (!rc)
		launch_note_away(&(struct launch){
			.t = r->t, .seg = r->seg, .stack = r->file->stack });
	if (!rc && r->d->nr)
		rc = ready_wait(r->t, r->seg, r->file->stack, RELOAD, NULL, NULL);
	return rc;
}

/* ---- the command ------------------------------------------------------------------------- */

static int show_json(struct reloading *r, bool applied)
{
	json_t *j = json_object();

	out_set_text(j, "segment", r->t->segment);
	out_set_text(j, "file", r->file->path);
	out_set_bool(j, "applied", applied);
	out_set_int(j, "left", count(r, STACK_DIFF_DOWN));
	json_object_set_new(j, "differences", stack_diff_json(r->d));
	return out_json(j);
}

/* R3 */
static int refuse_left(struct reloading *r)
{
	char keys[128];
	struct kv_text t;

	kv_init(&t, keys, sizeof(keys));
	keys[0] = '\0';
	for (uint32_t i = 0; i < r->d->nr; i++)
		if (r->d->row[i].how == STACK_DIFF_DOWN)
			kv_add(&t, "%s%s", t.used ? ", " : "", r->d->row[i].key);
	return tool_fail(TOOL_REFUSED,
		RELOAD ": all of %s holds but %s of [segment], which cannot be changed while it "
		"runs; use 'xseg down', then 'xseg up %s'",
		r->file->path, keys, r->file->path);
}

static int show(struct reloading *r, bool dry)
{
	int rc = TOOL_DONE;

	if (r->t->json)
		rc = show_json(r, !dry);
	else if (!r->d->nr)
		tool_say(r->t, "segment %s is as %s says", r->t->segment, r->file->path);
	else if (dry && !r->t->quiet)
		rc = stack_diff_print(r->d);
	if (!rc && !dry && count(r, STACK_DIFF_DOWN))
		rc = refuse_left(r);
	return rc;
}

static int reload_file(struct reloading *r, const char *path, bool dry)
{
	int rc;

	r->file = stack_file_read(r->t, RELOAD, path, &rc);
	if (!rc)
		rc = stack_file_tell(r->file, RELOAD, false);
	if (!rc)
		rc = stack_diff_make(r->t, r->seg, r->record, r->file, r->d);
	if (!rc && !dry)
		rc = apply(r);
	return rc ? rc : show(r, dry);
}

/* R4 */
static int attach(struct reloading *r, bool dry)
{
	int rc = tool_attach(r->t, 0, &r->seg);
	struct xseg_peer_info supervisor;

	if (!rc && !dry)
		rc = stack_lock(r->t, RELOAD, &r->lock);
	if (rc)
		return rc;
	if (!xseg_is_own(r->seg))
		return tool_fail(TOOL_REFUSED,
			RELOAD ": another user made segment %s; that user can reload its stack",
			r->t->segment);
	if (!stack_record_get(r->seg, r->record))
		return tool_fail(TOOL_REFUSED,
			RELOAD ": segment %s holds no stack file; start one with 'xseg up "
			"STACK.conf'",
			r->t->segment);
	if (view_supervisor(r->seg, &supervisor) && peer_word_stopping(&supervisor))
		return launch_refuse(r->t, r->seg);
	return TOOL_DONE;
}

int stack_reload(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct reload_opts *o = opts;
	struct reloading r = { .t = t, .record = calloc(1, sizeof(*r.record)),
		.before = calloc(1, sizeof(*r.before)), .d = calloc(1, sizeof(*r.d)), .lock = -1 };
	char path[PATH_MAX] = "";
	struct extend extend;
	int rc = r.record && r.before && r.d ? attach(&r, o->dry_run)
				 : tool_fail(TOOL_FAILED, RELOAD ": no memory; free some");

	if (!rc)
		snprintf(path, sizeof(path), "%s", argc ? argv[0] : r.record->path);
	if (!rc && !*path)
		rc = tool_fail(TOOL_USAGE,
			RELOAD ": segment %s does not know its stack file; name it, as in 'xseg "
			"reload STACK.conf'",
			t->segment);
	if (r.seg)
		extend_begin(&extend, t, r.seg, RELOAD);
	if (!rc)
		rc = reload_file(&r, path, o->dry_run);
	if (r.seg)
		extend_end(&extend, t, rc);
	stack_file_drop(r.file);
	stack_unlock(r.lock);
	if (r.seg)
		xseg_detach(r.seg);
	free(r.record);
	free(r.before);
	free(r.d);
	return rc;
}
