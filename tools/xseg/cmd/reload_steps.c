/* reload_steps - see reload.h. */
#include "tools/xseg/cmd/reload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/say/export_words.h"
#include "peers/common/say/volume_users.h"
#include "tools/xseg/base/client.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/view.h"
#include "tools/xseg/flow/ending.h"
#include "tools/xseg/flow/export_flow.h"
#include "tools/xseg/flow/plug_flow.h"

#define LOOK_NS (TOOL_SECOND / 50)

static const struct route_node *end_of(const struct route_plan *plan)
{
	return plan->node + plan->nr;
}

/* ---- refusing ---------------------------------------------------------------------------- */

bool reload_replaces(const struct reloading *r)
{
	const struct route_plan *plan = &r->d->plan;

	for (const struct route_node *n = plan->node; n < end_of(plan); n++)
		if (n->replaced)
			return true;
	return false;
}

static int refuse_sender(struct reloading *r, const struct route_node *n, uint32_t sender)
{
	const char *name = r->d->plan.node[sender].name;

	if (n->goes)
		return tool_fail(TOOL_REFUSED,
			RELOAD ": %s does not have %s, and %s still sends there; stop that first, "
			"have it send to another peer, or keep the peer in the file",
			r->file->path, n->name, name);
	return tool_fail(TOOL_REFUSED,
		RELOAD ": %s gives %s another kind, and %s, which is not in that file, sends "
		"there; stop that first, or keep the kind",
		r->file->path, n->name, name);
}

static int refuse_users(struct reloading *r, const struct route_node *n, const char *users)
{
	if (n->goes)
		return tool_fail(TOOL_REFUSED,
			RELOAD ": %s does not have %s, and these have its volumes open:%s; end "
			"them first, or keep it in the file",
			r->file->path, n->name, users);
	return tool_fail(TOOL_REFUSED,
		RELOAD ": by %s, %s has the data of another store, and these have its volumes "
		"open:%s; end them first",
		r->file->path, n->name, users);
}

/* Whether the client's process ends first: it is a gateway that is stopped for this, or the server
 * of exports that the file does not have. */
static bool ends_before(const struct xseg_peer_info *client, void *arg)
{
	const struct reloading *r = arg;
	const struct route_plan *plan = &r->d->plan;
	const struct route_node *n;
	struct xseg_peer_info p;
	bool ends = false;

	for (n = plan->node; n < end_of(plan); n++)
		if (n->alive && n->member == client->member && n->by_name &&
			(n->goes || (n->replaced && !n->keeps_route)))
			return true;
	for (uint32_t i = 0; i < xseg_nr_peers(r->seg); i++) {
		if (!xseg_peer_get_info(r->seg, i, &p) || p.member != client->member ||
			!xseg_peer_is_up(p.state) || !export_of_peer(&p))
			continue;
		if (stack_find_export(r->file->stack, export_of_peer(&p)) != STACK_NONE)
			return false;
		ends = true;
	}
	return ends;
}

static int refuse_connections(struct reloading *r, const struct route_node *n)
{
	uint64_t nr = view_connections(r->seg, n->peer);

	return nr ? tool_fail(TOOL_REFUSED,
			    RELOAD ": by %s, %s serves the values of another store, and %" PRIu64
				   " client%s connected to it; end them first",
			    r->file->path, n->name, nr, nr == 1 ? " is" : "s are")
		  : TOOL_DONE;
}

/* The peer could not open its data any more. */
static int refuse_fixed(struct reloading *r)
{
	const struct stack_diff_row *row = r->d->row;

	while (row->how != STACK_DIFF_FIXED)
		row++;
	return tool_fail(TOOL_REFUSED,
		RELOAD ": by %s, %s of %s is %s, and its log in the store has %s, which cannot be "
		"changed; set that again, or move the values to another prefix = with 'xseg kv "
		"backup'",
		r->file->path, row->key, row->peer, row->file, row->now);
}

int reload_check(struct reloading *r)
{
	const struct route_plan *plan = &r->d->plan;
	const struct route_node *n;
	char users[512];
	uint32_t sender;

	if (stack_diff_count(r->d, STACK_DIFF_FIXED))
		return refuse_fixed(r);
	for (n = plan->node; n < end_of(plan); n++) {
		if (!n->alive || (!n->goes && !n->other_kind && !n->other_data))
			continue;
		sender = route_plan_sender(plan, (uint32_t)(n - plan->node));
		if ((n->goes || n->other_kind) && sender != ROUTE_NONE)
			return refuse_sender(r, n, sender);
		volume_users_of(r->seg, n->peer, ends_before, r, users, sizeof(users));
		if (users[0])
			return refuse_users(r, n, users);
		if (n->by_name && n->other_data && refuse_connections(r, n))
			return TOOL_REFUSED;
	}
	return TOOL_DONE;
}

/* ---- before ------------------------------------------------------------------------------ */

/* One below another is flushed by that. */
static bool is_topmost_cache(const struct route_plan *plan, uint32_t i)
{
	const struct route_node *n = &plan->node[i];

	if (!n->alive || !n->cache || n->now == ROUTE_NONE)
		return false;
	for (n = plan->node; n < end_of(plan); n++)
		if (n->alive && n->cache && n->now == i)
			return false;
	return true;
}

int reload_flush(struct reloading *r)
{
	const struct route_plan *plan = &r->d->plan;
	struct client *c;
	int rc;

	if (!reload_replaces(r))
		return TOOL_DONE;
	rc = client_open(r->t, &c);
	if (rc)
		return rc;
	for (uint32_t i = 0; !rc && i < plan->nr; i++)
		if (is_topmost_cache(plan, i))
			rc = client_flush(c, plan->node[i].peer, 0, RELOAD, plan->node[i].name);
	client_close(c);
	return rc;
}

bool reload_changes_rights(const struct reloading *r)
{
	bool differ = false;

	for (uint32_t i = 0; i < r->d->nr; i++)
		differ |= r->d->row[i].how == STACK_DIFF_LIVE && !*r->d->row[i].peer;
	return differ;
}

int reload_rights(struct reloading *r)
{
	struct xseg_error err = { "" };
	struct xseg_config cfg;
	int64_t group;
	int rc;

	if (!reload_changes_rights(r))
		return TOOL_DONE;
	rc = stack_segment_config(&r->file->stack->segment, &cfg, &err);
	group = cfg.group < 0 ? (int64_t)getegid() : cfg.group;
	if (!rc)
		rc = xseg_access_set(r->seg, cfg.mode, group);
	if (rc)
		return tool_fail_errno(rc, &err, "give a group that you are in",
			RELOAD ": the mode and the group of segment %s", r->t->segment);
	tool_say(r->t, "segment %s: its mode and its group are set", r->t->segment);
	return TOOL_DONE;
}

/* ---- routes ------------------------------------------------------------------------------ */

/* Before the peers that they use go: so they end in order. If another supervisor has still to take
 * over, the present one may have other exports than the segment's text: the next one ends these. */
int reload_end_exports(struct reloading *r)
{
	struct stack *old;
	int rc = TOOL_DONE;

	if (stack_names_have(r->before->pending, XSEG_SUPERVISOR_KIND))
		return TOOL_DONE;
	old = view_stack(r->seg);
	if (old)
		rc = export_flow_end_gone(r->t, r->seg, old, r->file->stack, RELOAD);
	stack_destroy(old);
	return rc;
}

int reload_unplug(struct reloading *r)
{
	const struct route_plan *plan = &r->d->plan;
	struct xseg_peer_info info;
	int rc = TOOL_DONE;

	for (uint32_t i = 0; !rc && i < plan->nr_unplug; i++) {
		struct plugging p = { .t = r->t, .seg = r->seg,
			.cache = plan->node[plan->unplug[i]].peer };

		if (!xseg_peer_get_info(r->seg, p.cache, &info) || info.downstream == XSEG_NONE)
			continue;
		rc = plug_flow_leave(&p);
		if (!rc)
			tool_say(r->t, "%s is off the path", info.name);
	}
	return rc;
}

/* A new one may have found its place free, and have it. */
static int plug_one(struct reloading *r, const struct route_node *n)
{
	struct plugging p = { .t = r->t, .seg = r->seg, .cache = xseg_peer_find(r->seg, n->name) };
	const char *lower = r->d->plan.node[n->want].name;
	struct xseg_peer_info info;
	int rc;

	p.lower = xseg_peer_find(r->seg, lower);
	if (p.cache == XSEG_NONE || p.lower == XSEG_NONE ||
		!xseg_peer_get_info(r->seg, p.cache, &info) || info.downstream == p.lower)
		return TOOL_DONE;
	plug_flow_senders(&p);
	if (!p.nr_upper)
		return TOOL_DONE;
	rc = plug_flow_enter(&p);
	if (!rc)
		tool_say(r->t, "%s is on the path, above %s", n->name, lower);
	return rc;
}

int reload_plug(struct reloading *r)
{
	const struct route_plan *plan = &r->d->plan;
	int rc = TOOL_DONE;

	for (uint32_t i = 0; !rc && i < plan->nr_plug; i++)
		rc = plug_one(r, &plan->node[plan->plug[i]]);
	return rc;
}

/* ---- what the supervisor replaces -------------------------------------------------------- */

int reload_check_same(struct reloading *r)
{
	const struct route_plan *plan = &r->d->plan;
	struct xseg_peer_info info;

	for (const struct route_node *n = plan->node; n < end_of(plan); n++)
		if (n->replaced && (!xseg_peer_get_info(r->seg, n->peer, &info) ||
					   info.generation != n->generation))
			return tool_fail(TOOL_FAILED,
				RELOAD ": %s was started anew meanwhile, and nothing is replaced; "
				"do this again",
				n->name);
	return TOOL_DONE;
}

/* One that `xseg peer stop` has stopped begins at its new place when it is started: that has no
 * route to its old one any more. */
static bool is_ready_to_start(const struct stopped *s, const struct route_node *n,
	const struct xseg_peer_info *info)
{
	return stopped_peer(s, info) && (n->keeps_route || info->downstream == XSEG_NONE);
}

/* The peer that is to be replaced and is not yet; false: there is none. */
static bool find_waiting(struct reloading *r, struct xseg_peer_info *info)
{
	const struct route_plan *plan = &r->d->plan;
	struct stopped s;

	stopped_load(r->seg, &s);
	for (const struct route_node *n = plan->node; n < end_of(plan); n++)
		if (n->replaced && xseg_peer_get_info(r->seg, n->peer, info) &&
			!strcmp(info->name, n->name) && info->generation == n->generation &&
			(n->in_file || view_peer_alive(info)) && !is_ready_to_start(&s, n, info))
			return true;
	return false;
}

int reload_wait_replaced(struct reloading *r, struct launch *launch)
{
	struct ending_stall stall = ENDING_STALL_OF(NULL);
	struct xseg_peer_info info, old = { .generation = 0 };
	int rc;

	while (find_waiting(r, &info)) {
		if (info.generation != old.generation) {
			old = info;
			stall = ENDING_STALL_OF(&old);
		}
		if (view_peer_alive(&info))
			ending_look_for_stall(r->t, r->seg, &stall);
		rc = launch_look_for_failure(launch, info.name);
		if (rc)
			return rc;
		if (tool_out_of_time(r->t))
			return tool_later(RELOAD ": %s is not replaced yet, and that goes on; see "
						 "'xseg peer list', and do this again for the rest",
				info.name);
		tool_progress(r->t, "replacing %s", info.name);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	return TOOL_DONE;
}

int reload_verify(struct reloading *r)
{
	const struct route_plan *plan = &r->d->plan;
	struct xseg_peer_info info, below;
	uint32_t index;
	struct stopped s;

	stopped_load(r->seg, &s);
	for (const struct route_node *n = plan->node; n < end_of(plan); n++) {
		index = xseg_peer_find(r->seg, n->name);
		if (!n->replaced || n->keeps_route || n->by_name || n->want == ROUTE_NONE ||
			index == XSEG_NONE || !xseg_peer_get_info(r->seg, index, &info) ||
			stopped_peer(&s, &info))
			continue;
		if (!xseg_peer_get_info(r->seg, info.downstream, &below) ||
			strcmp(below.name, plan->node[n->want].name) != 0)
			return tool_fail(TOOL_FAILED,
				RELOAD ": %s does not send to %s yet, as when it died meanwhile; "
				"do this again",
				n->name, plan->node[n->want].name);
	}
	return TOOL_DONE;
}
