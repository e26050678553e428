/* plug_flow - see plug_flow.h. */
#include "tools/xseg/flow/plug_flow.h"

#include <errno.h>
#include <string.h>

#include "peers/common/say/dirty.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/stopped.h"
#include "tools/xseg/base/view.h"

#define LOOK_NS	   (TOOL_SECOND / 200)
#define RESTART_NS (5 * TOOL_SECOND)
#define AWAY_TEXT  (XSEG_NAME_MAX + 64)

/* ---- who takes part ---------------------------------------------------------------------- */

static bool is_upper(const struct plugging *p, uint32_t peer)
{
	uint32_t i;

	for (i = 0; i < p->nr_upper && p->upper[i] != peer; i++)
		;
	return i < p->nr_upper;
}

void plug_flow_add_upper(struct plugging *p, uint32_t peer)
{
	if (p->nr_upper < XSEG_MAX_PORTS && !is_upper(p, peer))
		p->upper[p->nr_upper++] = peer;
}

void plug_flow_senders(struct plugging *p)
{
	struct xseg_peer_info info;

	for (uint32_t i = 0; i < xseg_nr_peers(p->seg); i++)
		if (i != p->cache && xseg_peer_get_info(p->seg, i, &info) &&
			!view_peer_is_client(&info) && info.downstream == p->lower)
			plug_flow_add_upper(p, i);
}

/* Those above a cache that enters send past it still. */
void plug_flow_ends(struct plugging *p)
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
			plug_flow_add_upper(p, i);
}

const char *plug_flow_name(struct plugging *p, uint32_t index)
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
		tool_progress(p->t, "draining %s: %s of %s dirty, ETA %s",
			plug_flow_name(p, p->cache), out_size(dirty, left),
			out_size(p->dirty_bytes, of),
			out_eta(tool_now_ns() - p->began_ns, done, dirty, eta));
	} else {
		tool_progress(p->t,
			leaving ? "%s is clean; waiting until that is stable, and for requests in "
				"flight"
				: "plugging %s: waiting for requests in flight",
			plug_flow_name(p, p->cache));
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
	const char *cache = plug_flow_name(p, p->cache);
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
bool plug_flow_is_on_path(const struct plugging *p)
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
		if (leaving)
			tool_flushes(p->t);
		show(p, leaving, who == XSEG_NONE ? NULL : &away);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	*on_path = plug_flow_is_on_path(p);
	return TOOL_DONE;
}

/* ---- asking ------------------------------------------------------------------------------ */

/* Whether the segment shall be asked again: a peer that another command restarts does not serve for
 * a moment. until_ns: then its word holds. */
static bool asks_again(struct plugging *p, int rc, uint64_t until_ns)
{
	struct xseg_peer_info away;

	if (rc != -EHOSTDOWN || tool_now_ns() >= until_ns || tool_out_of_time(p->t))
		return false;
	if (missing(p, &away) != XSEG_NONE && (stopped_look(p->seg, &away) || is_gone(p, &away)))
		return false;
	tool_sleep_ns(LOOK_NS);
	return true;
}

static int ask(struct plugging *p, bool leaving, struct xseg_error *err)
{
	uint64_t until = tool_now_ns() + RESTART_NS;
	int rc;

	do
		rc = leaving ? xseg_unplug(p->seg, p->cache, err)
			     : xseg_plug(p->seg, p->cache, p->upper, p->nr_upper, p->lower, err);
	while (asks_again(p, rc, until));
	tool_span_ns(&p->gone, false);
	return rc;
}

/* ---- plugging ---------------------------------------------------------------------------- */

int plug_flow_refused(int rc, const struct xseg_error *err, const char *what, const char *name)
{
	if (rc == -EHOSTDOWN)
		return tool_fail_reason(TOOL_REFUSED, err, "%s %s", what, name);
	return tool_fail_errno(rc, err, "see 'xseg peer list'", "%s %s", what, name);
}

int plug_flow_enter(struct plugging *p)
{
	const char *name = plug_flow_name(p, p->cache);
	struct xseg_error err = { "" };
	bool on_path = false;
	int rc = ask(p, false, &err);

	if (rc)
		return plug_flow_refused(rc, &err, "plug", name);
	rc = watch(p, false, &on_path);
	if (rc || on_path)
		return rc;
	return tool_fail(TOOL_FAILED, "plug %s: another command took it back; see 'xseg peer list'",
		plug_flow_name(p, p->cache));
}

int plug_flow_leave(struct plugging *p)
{
	struct xseg_error err = { "" };
	bool on_path = false;
	int rc;

	plug_flow_ends(p);
	rc = ask(p, true, &err);
	if (rc)
		return plug_flow_refused(rc, &err, "unplug", plug_flow_name(p, p->cache));
	rc = watch(p, true, &on_path);
	if (rc || !on_path)
		return rc;
	return tool_fail(TOOL_FAILED,
		"unplug %s: another command took it back; it is on the path",
		plug_flow_name(p, p->cache));
}
