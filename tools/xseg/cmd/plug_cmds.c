/* plug_cmds - plug, unplug: a cache goes between peers that serve, or out again.
 *
 * Contract: see commands.h. The command stores its request in the segment at once, and the peers do
 * it. Afterwards the command only watches, so it may be ended at any time.
 */
#include <stdio.h>
#include <string.h>

#include "peers/common/options/stack.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/view.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/flow/plug_flow.h"

#define AT(field) offsetof(struct plug_opts, field)
const struct opt plug_table[] = {
	{ .name = "above", .kind = OPT_STR, .off = AT(above), .len = XSEG_NAME_MAX, .arg = "LOWER",
	  .help = "the peer that the cache will send to; else the one that it sent to before, or "
		  "its downstream in the stack file" },
	{ .name = "below", .kind = OPT_STR, .off = AT(below), .len = PLUG_BELOW_BYTES,
	  .arg = "UPPER[,UPPER...]",
	  .help = "the peers that will send to the cache, all that send to LOWER now; else these" },
	{ 0 },
};
#undef AT

#define AT(field) offsetof(struct unplug_opts, field)
const struct opt unplug_table[] = {
	{ .name = "cancel", .kind = OPT_BOOL, .off = AT(cancel),
	  .help = "take back an unplug or a plug that has not ended" },
	{ 0 },
};
#undef AT

/* ---- names ------------------------------------------------------------------------------- */

static int find(struct plugging *p, const char *what, const char *name, uint32_t *index,
	struct xseg_peer_info *info)
{
	*index = xseg_peer_find(p->seg, name);
	if (*index != XSEG_NONE && xseg_peer_get_info(p->seg, *index, info))
		return TOOL_DONE;
	return tool_fail(TOOL_REFUSED,
		"%s %s: segment %s has no peer of that name; 'xseg peer list' shows its peers",
		what, name, p->t->segment);
}

static int find_cache(struct plugging *p, const char *what, const char *name)
{
	struct xseg_peer_info info;
	int rc = find(p, what, name, &p->cache, &info);

	if (!rc && strcmp(info.kind, "cached"))
		return tool_fail(TOOL_USAGE,
			"%s %s: it is of kind %s, not a cache; 'xseg peer list' shows the kinds",
			what, name, info.kind);
	return rc;
}

/* "A,B": a name twice is that peer. */
static int find_uppers(struct plugging *p, const char *below)
{
	char names[PLUG_BELOW_BYTES], *rest = names, *name;
	struct xseg_peer_info info;
	uint32_t index;
	int rc = TOOL_DONE;

	snprintf(names, sizeof(names), "%s", below);
	while (!rc && (name = strsep(&rest, ","))) {
		rc = find(p, "plug: --below", name, &index, &info);
		if (!rc)
			plug_flow_add_upper(p, index);
	}
	return rc;
}

/* The downstream of a cache in the stack file, or XSEG_NONE. */
static uint32_t downstream_in_file(struct plugging *p, const char *cache)
{
	struct stack *stack = view_stack(p->seg);
	uint32_t at = stack ? stack_find(stack, cache) : STACK_NONE, peer = XSEG_NONE;

	if (at != STACK_NONE && stack->peers[at].downstream != STACK_NONE)
		peer = xseg_peer_find(p->seg, stack->peers[at].downstream_name);
	stack_destroy(stack);
	return peer;
}

/* Where a cache goes of which no place is named. */
static int find_place(struct plugging *p, const char *cache)
{
	struct xseg_peer_info info;

	if (xseg_peer_get_info(p->seg, p->cache, &info) && info.downstream != XSEG_NONE)
		return tool_fail(TOOL_REFUSED,
			"plug %s: it is on the path already; 'xseg status' shows the chains",
			cache);
	p->lower = info.plug ? info.plug_lower : xseg_plug_was_above(p->seg, p->cache);
	if (p->lower == XSEG_NONE)
		p->lower = downstream_in_file(p, cache);
	if (p->lower != XSEG_NONE)
		return TOOL_DONE;
	return tool_fail(TOOL_USAGE,
		"plug %s: it was not on the path before, and has no downstream in the stack file; "
		"name its place with --above LOWER, as in 'xseg plug %s --above filed'",
		cache, cache);
}

static int find_senders(struct plugging *p, const char *cache)
{
	plug_flow_senders(p);
	if (p->nr_upper)
		return TOOL_DONE;
	return tool_fail(TOOL_REFUSED,
		"plug %s: no peer sends to %s, so there is nothing to put it between; 'xseg peer "
		"list' shows the routes",
		cache, plug_flow_name(p, p->lower));
}

static int find_ends(struct plugging *p, const struct plug_opts *o, const char *cache)
{
	struct xseg_peer_info info;
	int rc = *o->below ? find_uppers(p, o->below) : TOOL_DONE;

	if (!rc)
		rc = *o->above ? find(p, "plug: --above", o->above, &p->lower, &info)
			       : find_place(p, cache);
	if (!rc && *o->above && !strcmp(info.kind, "volumed"))
		return tool_fail(TOOL_USAGE,
			"plug: --above %s: it is of kind volumed, which has no objects; name a "
			"cache or a store",
			o->above);
	return rc || *o->below ? rc : find_senders(p, cache);
}

/* ---- what came out ----------------------------------------------------------------------- */

static int show_json(struct plugging *p, const char *state)
{
	char below[PLUG_BELOW_BYTES] = "";
	json_t *j = json_object();
	size_t len = 0;
	uint32_t i;

	for (i = 0; i < p->nr_upper && len < sizeof(below); i++)
		len += (size_t)snprintf(below + len, sizeof(below) - len, "%s%s", i ? "," : "",
			plug_flow_name(p, p->upper[i]));
	out_set_text(j, "name", plug_flow_name(p, p->cache));
	out_set_text(j, "above", plug_flow_name(p, p->lower));
	out_set_text(j, "below", below);
	out_set_text(j, "state", state);
	return out_json(j);
}

static int enter(struct plugging *p, const char *name)
{
	int rc = plug_flow_enter(p);

	if (rc)
		return rc;
	tool_say(p->t, "%s is on the path, above %s", name, plug_flow_name(p, p->lower));
	return p->t->json ? show_json(p, "running") : TOOL_DONE;
}

int plug_run(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct plug_opts *o = opts;
	struct plugging p = { .t = t };
	int rc;

	(void)argc;
	rc = tool_attach(t, 0, &p.seg);
	if (rc)
		return rc;
	rc = find_cache(&p, "plug", argv[0]);
	if (!rc)
		rc = find_ends(&p, o, argv[0]);
	if (!rc)
		rc = enter(&p, argv[0]);
	xseg_detach(p.seg);
	return rc;
}

/* ---- unplug ------------------------------------------------------------------------------ */

static int leave(struct plugging *p, const char *name)
{
	int rc = plug_flow_leave(p);

	if (rc)
		return rc;
	tool_say(p->t,
		"%s is off the path; 'xseg plug %s' puts it back, 'xseg peer stop %s' ends it",
		name, name, name);
	return p->t->json ? show_json(p, "drained") : TOOL_DONE;
}

static int cancel(struct plugging *p, const char *name)
{
	struct xseg_error err = { "" };
	bool on_path;
	int rc;

	plug_flow_ends(p);
	rc = xseg_plug_cancel(p->seg, p->cache, &err);
	if (rc)
		return plug_flow_refused(rc, &err, "unplug --cancel", name);
	on_path = plug_flow_is_on_path(p);
	tool_say(p->t, on_path ? "%s stays on the path" : "%s stays off the path", name);
	return p->t->json ? show_json(p, on_path ? "running" : "drained") : TOOL_DONE;
}

int unplug_run(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct unplug_opts *o = opts;
	struct plugging p = { .t = t };
	int rc;

	(void)argc;
	rc = tool_attach(t, 0, &p.seg);
	if (rc)
		return rc;
	rc = find_cache(&p, "unplug", argv[0]);
	if (!rc)
		rc = o->cancel ? cancel(&p, argv[0]) : leave(&p, argv[0]);
	xseg_detach(p.seg);
	return rc;
}
