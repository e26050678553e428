/* plug_cmds - plug, unplug: a cache goes between peers that serve, or out again.
 *
 * Contract: see commands.h. The command stores its request in the segment at once, and the peers do
 * it. Afterwards the command only watches, so it may be ended at any time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/options/stack.h"
#include "peers/common/say/dirty.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/view.h"

#define LOOK_NS   (TOOL_SECOND / 200)
#define AWAY_TEXT (XSEG_NAME_MAX + 64)

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

struct plugging {
	struct tool *t;
	struct xseg *seg;
	uint32_t cache, lower, nr_upper, upper[XSEG_MAX_PORTS];
	uint64_t dirty_bytes, began_ns;		/* what was dirty at the beginning */
	struct tool_span gone;			/* somebody is whom nobody starts again */
};

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

static bool is_upper(const struct plugging *p, uint32_t peer)
{
	uint32_t i;

	for (i = 0; i < p->nr_upper && p->upper[i] != peer; i++)
		;
	return i < p->nr_upper;
}

static void add_upper(struct plugging *p, uint32_t peer)
{
	if (p->nr_upper < XSEG_MAX_PORTS && !is_upper(p, peer))
		p->upper[p->nr_upper++] = peer;
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
			add_upper(p, index);
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
		return tool_fail(TOOL_REFUSED, "plug %s: it is on the path already", cache);
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

/* All that send to the lower peer. */
static int find_senders(struct plugging *p, const char *cache)
{
	struct xseg_peer_info info;

	for (uint32_t i = 0; i < xseg_nr_peers(p->seg); i++)
		if (i != p->cache && xseg_peer_get_info(p->seg, i, &info) &&
			!view_peer_is_client(&info) && info.downstream == p->lower)
			add_upper(p, i);
	if (p->nr_upper || !xseg_peer_get_info(p->seg, p->lower, &info))
		return TOOL_DONE;
	return tool_fail(TOOL_REFUSED,
		"plug %s: no peer sends to %s, so there is nothing to put it between; 'xseg peer "
		"list' shows the routes",
		cache, info.name);
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

static const char *name_of(struct plugging *p, uint32_t index)
{
	static struct xseg_peer_info info;

	return xseg_peer_get_info(p->seg, index, &info) ? info.name : "?";
}

/* ---- watching ---------------------------------------------------------------------------- */

/* It holds by itself, while another one is served. */
static bool is_waited_for(const struct plugging *p, const struct xseg_peer_info *upper)
{
	return upper->state != XSEG_PEER_LIVE &&
	       (p->nr_upper == 1 || upper->state != XSEG_PEER_STOPPED);
}

/* One of the peers, or of those below them, that does not serve, or XSEG_NONE. */
static uint32_t missing(struct plugging *p, struct xseg_peer_info *info)
{
	const uint32_t ends[] = { p->cache, p->lower };
	struct xseg_peer_info lower;
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (xseg_peer_get_info(p->seg, ends[i], info) && info->state != XSEG_PEER_LIVE)
			return ends[i];
	for (i = 0; i < p->nr_upper; i++)
		if (xseg_peer_get_info(p->seg, p->upper[i], info) && is_waited_for(p, info))
			return p->upper[i];
	if (xseg_peer_get_info(p->seg, p->lower, &lower) && view_stranded(p->seg, &lower, info))
		return info->index;
	return XSEG_NONE;
}

/* The supervisor takes a moment to say so of one that it knows nothing of. */
static bool nobody_starts(struct plugging *p, const struct xseg_peer_info *info)
{
	return xseg_peer_is_gone(p->seg, info) ||
	       (!view_peer_alive(info) && !view_in_stack(p->seg, info->name));
}

/* It is told, once it is sure. */
static bool is_gone(struct plugging *p, const struct xseg_peer_info *info)
{
	return tool_span_ns(&p->gone, nobody_starts(p, info)) > TOOL_GONE_NS;
}

static void show(struct plugging *p, bool leaving, const struct xseg_peer_info *away)
{
	uint64_t dirty = dirty_bytes_of(p->seg, p->cache),
		 done = p->dirty_bytes > dirty ? p->dirty_bytes - dirty : 0;
	char left[OUT_TEXT], of[OUT_TEXT], eta[OUT_TEXT];

	if (away) {
		tool_progress(p->t, "waiting for %s, which is %s", away->name,
			view_state_name(away->state));
	} else if (leaving && dirty) {
		tool_progress(p->t, "draining %s: %s of %s dirty, ETA %s", name_of(p, p->cache),
			out_size(dirty, left), out_size(p->dirty_bytes, of),
			out_eta(tool_now_ns() - p->began_ns, done, dirty, eta));
	} else {
		tool_progress(p->t,
			leaving ? "%s is clean; waiting until that is stable, and for requests in "
				"flight"
				: "plugging %s: waiting for requests in flight",
			name_of(p, p->cache));
	}
}

/* away: who does not serve. The cache itself is what the line is about. */
static const char *away_text(const struct plugging *p, const struct xseg_peer_info *away,
	const char *before, char text[AWAY_TEXT])
{
	if (away->index == p->cache)
		snprintf(text, AWAY_TEXT, "it is %s", view_state_name(away->state));
	else
		snprintf(text, AWAY_TEXT, "%s%s, which is %s", before, away->name,
			view_state_name(away->state));
	return text;
}

/* away: who does not serve, or NULL */
static int later(struct plugging *p, bool leaving, const struct xseg_peer_info *away)
{
	const char *cache = name_of(p, p->cache);
	char how[VIEW_START_MAX], text[AWAY_TEXT];

	if (away && nobody_starts(p, away))
		return tool_later(
			"%s %s: %s; %s, 'xseg unplug %s --cancel' takes it back",
			leaving ? "unplug" : "plug", cache,
			away_text(p, away, "it waits for ", text),
			view_how_to_start(p->seg, away->name, how), cache);
	if (away)
		return tool_later(
			"%s %s: %s; 'xseg peer list' shows when that serves, 'xseg unplug %s "
			"--cancel' takes it back",
			leaving ? "unplug" : "plug", cache,
			away_text(p, away, "it waits for ", text), cache);
	if (leaving && !dirty_bytes_of(p->seg, p->cache))
		return tool_later(
			"unplug %s: it is clean, and leaves when the store has made that stable "
			"and requests in flight are answered; 'xseg unplug %s --cancel' takes it "
			"back",
			cache, cache);
	if (leaving)
		return tool_later(
			"unplug %s: it goes on draining and leaves when it is clean; 'xseg cache "
			"status %s' shows how far it is, 'xseg unplug %s --cancel' takes it back",
			cache, cache, cache);
	return tool_later(
		"plug %s: it goes on, and ends with the requests in flight; 'xseg unplug %s "
		"--cancel' takes it back",
		cache, cache);
}

/* All upper peers pass at once, so one of them tells. */
static bool is_on_path(const struct plugging *p)
{
	struct xseg_peer_info info;

	return p->nr_upper && xseg_peer_get_info(p->seg, p->upper[0], &info) &&
	       info.downstream == p->cache;
}

/* Until it is done; *on_path is what has come out. */
static int watch(struct plugging *p, bool leaving, bool *on_path)
{
	struct xseg_peer_info info, away;
	char how[VIEW_START_MAX], text[AWAY_TEXT];
	uint32_t who;

	p->began_ns = tool_now_ns();
	p->dirty_bytes = dirty_bytes_of(p->seg, p->cache);
	while (xseg_peer_get_info(p->seg, p->cache, &info) && info.plug != XSEG_PLUG_NONE) {
		who = missing(p, &away);
		if (who == XSEG_NONE)
			tool_span_ns(&p->gone, false);
		else if (is_gone(p, &away))
			return tool_fail(TOOL_FAILED,
				"%s %s: %s, and it goes on when that serves; %s, 'xseg unplug %s "
				"--cancel' takes it back",
				leaving ? "unplug" : "plug", info.name,
				away_text(p, &away, "it needs ", text),
				view_how_to_start(p->seg, away.name, how), info.name);
		if (tool_out_of_time(p->t))
			return later(p, leaving, who == XSEG_NONE ? NULL : &away);
		show(p, leaving, who == XSEG_NONE ? NULL : &away);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	*on_path = is_on_path(p);
	return TOOL_DONE;
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
			name_of(p, p->upper[i]));
	out_set_text(j, "name", name_of(p, p->cache));
	out_set_text(j, "above", name_of(p, p->lower));
	out_set_text(j, "below", below);
	out_set_text(j, "state", state);
	return out_json(j);
}

static int refused(int rc, const struct xseg_error *err, const char *what, const char *name)
{
	if (rc == -EHOSTDOWN)
		return tool_fail_reason(TOOL_REFUSED, err, "%s %s", what, name);
	return tool_fail_errno(rc, err, "see 'xseg peer list'", "%s %s", what, name);
}

static int enter(struct plugging *p, const char *name)
{
	struct xseg_error err = { "" };
	bool on_path = false;
	int rc = xseg_plug(p->seg, p->cache, p->upper, p->nr_upper, p->lower, &err);

	if (rc)
		return refused(rc, &err, "plug", name);
	rc = watch(p, false, &on_path);
	if (rc)
		return rc;
	if (!on_path)
		return tool_fail(
			TOOL_FAILED,
			"plug %s: another command took it back; see 'xseg peer list'", name);
	tool_say(p->t, "%s is on the path, above %s", name, name_of(p, p->lower));
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

/* Who stands above and below it: as is wanted, or as it is. Those above a cache that enters send
 * past it still. */
static void ends_of(struct plugging *p)
{
	struct xseg_peer_info info;
	uint32_t i, place;

	p->lower = XSEG_NONE;
	if (!xseg_peer_get_info(p->seg, p->cache, &info))
		return;
	p->lower = info.plug ? info.plug_lower : info.downstream;
	place = info.plug == XSEG_PLUG_ENTER ? p->lower : p->cache;
	for (i = 0; i < xseg_nr_peers(p->seg); i++)
		if (i != p->cache && xseg_peer_get_info(p->seg, i, &info) &&
			info.downstream == place)
			add_upper(p, i);
}

static int leave(struct plugging *p, const char *name)
{
	struct xseg_error err = { "" };
	bool on_path = false;
	int rc;

	ends_of(p);
	rc = xseg_unplug(p->seg, p->cache, &err);
	if (rc)
		return refused(rc, &err, "unplug", name);
	rc = watch(p, true, &on_path);
	if (rc)
		return rc;
	if (on_path)
		return tool_fail(
			TOOL_FAILED,
			"unplug %s: another command took it back; it is on the path", name);
	tool_say(p->t,
		"%s is off the path; it runs on, empty, until 'xseg peer stop %s'; 'xseg plug %s' "
		"puts it back",
		name, name, name);
	return p->t->json ? show_json(p, "drained") : TOOL_DONE;
}

static int cancel(struct plugging *p, const char *name)
{
	struct xseg_error err = { "" };
	bool on_path;
	int rc;

	ends_of(p);
	rc = xseg_plug_cancel(p->seg, p->cache, &err);
	if (rc)
		return refused(rc, &err, "unplug --cancel", name);
	on_path = is_on_path(p);
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
