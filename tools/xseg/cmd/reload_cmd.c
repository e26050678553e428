/* reload_cmd - reload: a stack that runs becomes what a stack file says, as far as that can be.
 *
 * Contract: see commands.h.
 *
 * Invariants
 *   R1  Nothing is changed before all that would be refused is refused.
 *   R2  The order is: live keys; peers that go; the segment's copy of the file, with the names of
 *       the peers that are to be restarted for it; the supervisor, if peers or exports come or go;
 *       restarts, each of which takes its name out. So a second reload does what is left, wherever
 *       the first one was killed.
 *   R3  What only down and up, or plug and unplug, can change is said, and stays.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "peers/common/say/volume_users.h"
#include "peers/common/say/words.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/view.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/ending.h"
#include "tools/xseg/flow/launch.h"
#include "tools/xseg/flow/restart.h"
#include "tools/xseg/flow/stack_diff.h"
#include "tools/xseg/flow/stack_save.h"

#define WHAT "reload"

#define AT(field) offsetof(struct reload_opts, field)
const struct opt reload_table[] = {
	{ .name = "dry_run", .kind = OPT_BOOL, .off = AT(dry_run),
	  .help = "only name the differences, and how each would be applied" },
	{ 0 },
};
#undef AT

struct reloading {
	struct tool *t;
	struct xseg *seg;
	struct stack_record *record, *before;
	struct stack_file *file;
	struct stack_diff *d;
};

/* ---- refusing ---------------------------------------------------------------------------- */

static bool goes(const struct reloading *r, const char *name)
{
	for (uint32_t i = 0; i < r->d->nr; i++)
		if (r->d->row[i].how == STACK_DIFF_REMOVE && !strcmp(r->d->row[i].peer, name))
			return true;
	return false;
}

/* A peer that goes is used by nobody, but by peers that go, too. */
static int may_go(struct reloading *r, const struct view_peers *peers, const char *name)
{
	const struct xseg_peer_info *info = view_peer_named(peers, name), *p;
	char users[512];

	if (!info || !view_peer_alive(info))
		return TOOL_DONE;
	for (p = peers->info; p < peers->info + peers->nr; p++)
		if (view_sends_to(p, info) && !view_peer_is_client(p) && !goes(r, p->name))
			return tool_fail(TOOL_REFUSED,
				WHAT ": %s does not have %s, and %s sends to it; %s",
				r->file->path, name, p->name,
				strcmp(info->kind, "cached")
					? "let that send to another peer by 'xseg down' and 'xseg "
					  "up', or keep it in the file"
					: "take it off the path with 'xseg unplug' first");
	volume_users_of(r->seg, info->index, users, sizeof(users));
	if (users[0])
		return tool_fail(TOOL_REFUSED,
			WHAT ": %s does not have %s, and these have its volumes open:%s; end them "
			"first, or keep it in the file",
			r->file->path, name, users);
	return TOOL_DONE;
}

static int check_removed(struct reloading *r)
{
	struct view_peers peers = { 0 };
	int rc = view_peers_need(r->seg, &peers);

	for (uint32_t i = 0; !rc && i < r->d->nr; i++)
		if (r->d->row[i].how == STACK_DIFF_REMOVE)
			rc = may_go(r, &peers, r->d->row[i].peer);
	view_peers_fini(&peers);
	return rc;
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
		return client_fail(c, rc, "correct the file", WHAT ": %s", peer);
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
		if (r->d->row[i].how == STACK_DIFF_LIVE && strcmp(last, r->d->row[i].peer) != 0) {
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
			rc, NULL, "ask the owner of its process", WHAT ": stopping %s", name);
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
			    WHAT ": the segment's copy of %s", r->file->path)
		  : TOOL_DONE;
}

/* R2. The file's text, its path, and who is to be restarted. */
static int keep_file(struct reloading *r)
{
	const char *last = "", *peer;
	char real[PATH_MAX];
	struct kv_text t;

	*r->before = *r->record;
	kv_init(&t, r->record->pending, sizeof(r->record->pending));
	r->record->pending[0] = '\0';
	for (uint32_t i = 0; i < r->d->nr; i++) {
		peer = r->d->row[i].peer;
		if (r->d->row[i].how != STACK_DIFF_RESTART || !strcmp(last, peer))
			continue;
		kv_add(&t, "%s%s", t.used ? "," : "", peer);
		last = peer;
	}
	snprintf(r->record->text, sizeof(r->record->text), "%s", r->file->text);
	if (realpath(r->file->path, real))
		snprintf(r->record->path, sizeof(r->record->path), "%s", real);
	return keep(r);
}

/* Whether peers or exports come or go, or nobody supervises. */
static bool needs_supervisor(struct reloading *r)
{
	return stack_diff_count(r->d, STACK_DIFF_ADD) ||
	       stack_diff_count(r->d, STACK_DIFF_REMOVE) ||
	       stack_diff_count(r->d, STACK_DIFF_STACK) || !xseg_supervisor_alive(r->seg);
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
		tool_note(r->t, WHAT ": the stack is the one from before");
	stack_destroy(stack);
}

static int replace_supervisor(struct reloading *r)
{
	struct launch launch;
	int rc;

	if (!needs_supervisor(r))
		return TOOL_DONE;
	rc = ending_kill_supervisor(r->t, r->seg);
	if (!rc)
		rc = launch_supervisor(&launch, r->t, r->seg, r->file->stack, r->file->text);
	if (rc == TOOL_FAILED || rc == TOOL_REFUSED)
		put_back(r);
	launch.what = WHAT;
	if (!rc)
		rc = launch_wait(&launch);
	if (!rc)
		tool_say(r->t, "the supervisor has the stack of %s", r->file->path);
	return rc;
}

static int restart_one(struct reloading *r, const char *name)
{
	struct xseg_peer_info info;
	int rc;

	/* one that is stopped begins with the new options anyway */
	if (!find_alive(r, name, &info))
		return TOOL_DONE;
	rc = restart_peer(r->t, r->seg, &info);
	if (!rc)
		tool_say(r->t, "%s is running again", name);
	return rc;
}

static int restart_pending(struct reloading *r)
{
	char *rest = strdup(r->record->pending), *all = rest, *name;
	int rc = rest ? TOOL_DONE : tool_fail(TOOL_FAILED, WHAT ": no memory; free some");

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
	int rc = check_removed(r);

	if (!rc)
		rc = set_all(r);
	if (!rc)
		rc = stop_removed(r);
	if (!rc)
		rc = keep_file(r);
	if (!rc)
		rc = replace_supervisor(r);
	if (!rc)
		rc = restart_pending(r);
	if (!rc)
		forget_removed(r);
	return rc;
}

/* ---- the command ------------------------------------------------------------------------- */

static int show_json(struct reloading *r, bool applied)
{
	json_t *j = json_object();

	out_set_text(j, "segment", r->t->segment);
	out_set_text(j, "file", r->file->path);
	out_set_bool(j, "applied", applied);
	out_set_int(j, "left", stack_diff_count(r->d, STACK_DIFF_DOWN) +
				       stack_diff_count(r->d, STACK_DIFF_ROUTE));
	json_object_set_new(j, "differences", stack_diff_json(r->d));
	return out_json(j);
}

static int show(struct reloading *r, bool dry)
{
	uint32_t down = stack_diff_count(r->d, STACK_DIFF_DOWN),
		 route = stack_diff_count(r->d, STACK_DIFF_ROUTE);

	if (r->t->json)
		return show_json(r, !dry);
	if (!r->d->nr)
		tool_say(r->t, "segment %s is as %s says", r->t->segment, r->file->path);
	else if (dry && !r->t->quiet)
		return stack_diff_print(r->d);
	if (!dry && down)
		tool_note(r->t,
			"%u of the differences need 'xseg down' and 'xseg up %s'; 'xseg reload "
			"--dry-run' shows them",
			down, r->file->path);
	if (!dry && route)
		tool_note(r->t,
			"%u routes are others than in %s; 'xseg reload --dry-run' shows them, "
			"'xseg plug' and 'xseg unplug' change them",
			route, r->file->path);
	return TOOL_DONE;
}

static int reload_file(struct reloading *r, const char *path, bool dry)
{
	int rc;

	r->file = stack_file_read(r->t, WHAT, path, &rc);
	if (!rc)
		rc = stack_file_tell(r->file, WHAT, false);
	if (!rc)
		rc = stack_diff_make(r->t, r->seg, r->record, r->file, r->d);
	if (!rc && !dry)
		rc = apply(r);
	return rc ? rc : show(r, dry);
}

static int attach(struct reloading *r)
{
	int rc = tool_attach(r->t, 0, &r->seg);
	struct xseg_peer_info supervisor;

	if (rc)
		return rc;
	if (!xseg_is_own(r->seg))
		return tool_fail(TOOL_REFUSED,
			WHAT ": another user made segment %s; that user can reload its stack",
			r->t->segment);
	if (!stack_record_get(r->seg, r->record))
		return tool_fail(TOOL_REFUSED,
			WHAT ": segment %s holds no stack file; start one with 'xseg up "
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
		.before = calloc(1, sizeof(*r.before)), .d = calloc(1, sizeof(*r.d)) };
	char path[PATH_MAX] = "";
	int rc = r.record && r.before && r.d ? attach(&r)
				 : tool_fail(TOOL_FAILED, WHAT ": no memory; free some");

	if (!rc)
		snprintf(path, sizeof(path), "%s", argc ? argv[0] : r.record->path);
	if (!rc && !*path)
		rc = tool_fail(TOOL_USAGE,
			WHAT ": segment %s does not know its stack file; name it, as in 'xseg "
			"reload STACK.conf'",
			t->segment);
	if (!rc)
		rc = reload_file(&r, path, o->dry_run);
	stack_file_drop(r.file);
	if (r.seg)
		xseg_detach(r.seg);
	free(r.record);
	free(r.before);
	free(r.d);
	return rc;
}
