/* plug_ask - a person's demands: a cache is to enter, to leave, or the demand is taken back. Also
 * which of them are rejected. See plug.c for the rest.
 *
 * Contract: each function takes the lock of routes, stores one word, and returns; the peers do the
 * work. Each first ends a decided plug that is not finished. A function that takes a demand back
 * undoes the begun steps first. A demand that would lose data, or would never end, is rejected,
 * with a line that says what to do.
 *
 * A person who plugs names all upper peers, so that no peer's path changes unnoticed. The demand
 * itself names none: each peer that sends there when the cache asks is one of them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "xseg/plug.h"

static const char *name_of(struct xseg *seg, uint32_t peer)
{
	return peer < seg->geo.nr_ports ? seg->peers[peer].name : "nobody";
}

static int check_serves(struct xseg *seg, uint32_t peer, struct xseg_error *err)
{
	struct xseg_peer_info info;

	if (state_of(seg, peer) == XSEG_PEER_LIVE)
		return 0;
	if (!xseg_peer_get_info(seg, peer, &info) || xseg_peer_is_gone(seg, &info))
		return xseg_fail(err, -EHOSTDOWN, "'%s' does not serve; start it first",
			name_of(seg, peer));
	return xseg_fail(err, -EHOSTDOWN,
		"'%s' does not serve yet, as it is being started; do this again when it does, as "
		"'xseg peer list' shows",
		name_of(seg, peer));
}

/* Who is to enter or to leave below it but `cache`, though it may not have called yet; or
 * XSEG_NONE. */
static uint32_t other_below(struct xseg *seg, uint32_t peer, uint32_t cache)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (i != cache && is_there(seg, i) && xs_plug_is_upper(seg, i, peer))
			return i;
	return XSEG_NONE;
}

/* Each peer has a part in one plug at a time, but for a lower one that is the upper one of nothing:
 * so what is wanted stays possible. */
static int check_idle(struct xseg *seg, uint32_t peer, uint32_t cache, struct xseg_error *err)
{
	uint32_t other = other_below(seg, peer, cache);

	if (plug_get(seg, peer))
		return xseg_fail(err, -EBUSY,
			"'%s' is being %s itself; wait for that, or take it back with 'xseg unplug "
			"%s --cancel'",
			name_of(seg, peer),
			plug_op(plug_get(seg, peer)) == XSEG_PLUG_ENTER ? "plugged" : "unplugged",
			name_of(seg, peer));
	/* who was asked may be dead, and its successor goes on; or nobody starts that */
	if (other != XSEG_NONE)
		return xseg_fail(err, -EBUSY,
			"another cache is being plugged below '%s' or unplugged, '%s'; wait for "
			"that, or take it back with 'xseg unplug %s --cancel'",
			name_of(seg, peer), name_of(seg, other), name_of(seg, other));
	if (turn_get(seg, peer))
		return xseg_fail(err, -EBUSY,
			"'%s' still holds requests for a cache that is gone; try again",
			name_of(seg, peer));
	return 0;
}

/* The peers that a person named. */
struct named {
	const uint32_t *peer;
	uint32_t nr;
};

static bool is_named(const struct named *n, uint32_t peer)
{
	for (uint32_t i = 0; i < n->nr; i++)
		if (n->peer[i] == peer)
			return true;
	return false;
}

/* Each sends to lower, and they are all that do. */
static int check_named(
	struct xseg *seg, const struct named *n, uint32_t cache, uint32_t lower,
	struct xseg_error *err)
{
	char missing[sizeof(err->text) / 2] = "";
	size_t len = 0;

	for (uint32_t i = 0; i < n->nr; i++)
		if (lower_of(seg, n->peer[i]) != lower)
			return xseg_fail(err, -ENOTCONN,
				"'%s' sends to '%s', not to '%s'; 'xseg peer list' shows the "
				"routes",
				name_of(seg, n->peer[i]), name_of(seg, lower_of(seg, n->peer[i])),
				name_of(seg, lower));
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (i != cache && is_there(seg, i) && !xs_peer_is_client(seg, i) &&
			lower_of(seg, i) == lower && !is_named(n, i) && len < sizeof(missing) - 1)
			len += (size_t)snprintf(missing + len, sizeof(missing) - len, "%s%s",
				len ? "," : "", name_of(seg, i));
	if (!len)
		return 0;
	return xseg_fail(err, -EBUSY,
		"'%s' is for all peers that send to '%s', or the others would write past it; name "
		"these, too: %s",
		name_of(seg, cache), name_of(seg, lower), missing);
}

/* A stopped one stands still already; but somebody is to be served. */
static int check_uppers_serve(struct xseg *seg, const struct named *n, struct xseg_error *err)
{
	bool any = false;
	int rc;

	for (uint32_t i = 0; i < n->nr; i++)
		any |= state_of(seg, n->peer[i]) == XSEG_PEER_LIVE;
	for (uint32_t i = 0; i < n->nr; i++) {
		if (any && state_of(seg, n->peer[i]) == XSEG_PEER_STOPPED)
			continue;
		rc = check_serves(seg, n->peer[i], err);
		if (rc)
			return rc;
	}
	return 0;
}

static bool is_between(
	struct xseg *seg, const struct named *n, uint32_t cache, uint32_t lower)
{
	for (uint32_t i = 0; i < n->nr; i++)
		if (lower_of(seg, n->peer[i]) != cache)
			return false;
	return lower_of(seg, cache) == lower;
}

static int check_enter(struct xseg *seg, const struct named *n, uint32_t cache, uint32_t lower,
	struct xseg_error *err)
{
	uint32_t other;
	int rc;

	if (is_between(seg, n, cache, lower))
		return xseg_fail(err, -EEXIST, "'%s' is between '%s' and '%s' already",
			name_of(seg, cache), name_of(seg, n->peer[0]), name_of(seg, lower));
	other = xs_route_upper(seg, cache, XSEG_NONE);
	/* a route is kept for the life of the segment, so nothing less helps */
	if (lower_of(seg, cache) != XSEG_NONE && other == XSEG_NONE)
		return xseg_fail(err, -EBUSY,
			"'%s' sends to '%s' and serves peers that send to it directly; to plug it, "
			"leave its downstream out of the stack file, then 'xseg down' and 'xseg up "
			"STACK.conf'",
			name_of(seg, cache), name_of(seg, lower_of(seg, cache)));
	if (lower_of(seg, cache) != XSEG_NONE)
		return xseg_fail(err, -EBUSY,
			"'%s' sends to '%s'; only a cache that is off the path can be plugged: "
			"unplug it first",
			name_of(seg, cache), name_of(seg, lower_of(seg, cache)));
	if (other != XSEG_NONE)
		return xseg_fail(err, -EBUSY, "'%s' sends to '%s' already; stop that first",
			name_of(seg, other), name_of(seg, cache));
	rc = check_named(seg, n, cache, lower, err);
	rc = rc ? rc : check_serves(seg, cache, err);
	rc = rc ? rc : check_uppers_serve(seg, n, err);
	rc = rc ? rc : check_serves(seg, lower, err);
	for (uint32_t i = 0; i < n->nr && !rc; i++)
		rc = check_idle(seg, n->peer[i], cache, err);
	return rc ? rc : check_idle(seg, lower, cache, err);
}

static int check_leave(struct xseg *seg, uint32_t cache, uint32_t lower, struct xseg_error *err)
{
	int rc = 0;

	if (lower == XSEG_NONE)
		return xseg_fail(
			err, -ENOTCONN, "'%s' is off the path already", name_of(seg, cache));
	if (xs_route_upper(seg, cache, XSEG_NONE) == XSEG_NONE)
		return xseg_fail(err, -ENOTCONN,
			"no peer sends to '%s', so it is between no peers; stop it with 'xseg peer "
			"stop %s'",
			name_of(seg, cache), name_of(seg, cache));
	if (state_of(seg, cache) == XSEG_PEER_STOPPED)
		return xseg_fail(
			err, -EHOSTDOWN, "'%s' is stopped; start it first", name_of(seg, cache));
	for (uint32_t i = 0; i < seg->geo.nr_ports && !rc; i++)
		if (is_there(seg, i) && !xs_peer_is_client(seg, i) && lower_of(seg, i) == cache)
			rc = check_idle(seg, i, cache, err);
	return rc ? rc : check_idle(seg, lower, cache, err);
}

/* One of the upper peers, for a message. */
static const char *name_above(struct xseg *seg, uint32_t cache)
{
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		if (xs_plug_is_upper(seg, cache, i))
			return name_of(seg, i);
	return "nobody";
}

/* Under the lock of routes. n: who was named; NULL to leave. */
static int ask(struct xseg *seg, uint32_t cache, const struct named *n, uint32_t lower,
	struct xseg_error *err)
{
	uint64_t now = plug_get(seg, cache),
		 wanted = plug_word(n ? XSEG_PLUG_ENTER : XSEG_PLUG_LEAVE, lower);
	int rc;

	if (now == wanted)
		return n ? check_named(seg, n, cache, lower, err) : 0;
	if (now)
		return xseg_fail(err, -EBUSY,
			"'%s' is being %s '%s'; wait for that, or take it back with 'xseg unplug "
			"%s --cancel'",
			name_of(seg, cache),
			plug_op(now) == XSEG_PLUG_ENTER ? "plugged below" : "unplugged from",
			name_above(seg, cache), name_of(seg, cache));
	rc = check_idle(seg, cache, cache, err);
	if (rc)
		return rc;
	rc = n ? check_enter(seg, n, cache, lower, err) : check_leave(seg, cache, lower, err);
	if (rc)
		return rc;
	plug_set(seg, cache, wanted);
	xs_ring_peer(seg, cache);
	return 0;
}

static int lock(struct xseg *seg, struct xseg_error *err)
{
	int fd = xs_lock(seg, XSEG_LOCK_ROUTES);

	if (fd < 0)
		return xs_fail_lock(seg, fd, err);
	xs_mark_dead(seg);
	xs_plug_settle_all(seg);
	return fd;
}

static bool all_there(struct xseg *seg, const struct named *n)
{
	for (uint32_t i = 0; i < n->nr; i++)
		if (!is_there(seg, n->peer[i]))
			return false;
	return n->nr > 0;
}

int xseg_plug(struct xseg *seg, uint32_t cache, const uint32_t *upper, uint32_t nr_upper,
	uint32_t lower, struct xseg_error *err)
{
	const struct named n = { .peer = upper, .nr = nr_upper };
	int fd = lock(seg, err), rc;

	if (fd < 0)
		return fd;
	if (!is_there(seg, cache) || !all_there(seg, &n) || !is_there(seg, lower))
		rc = xseg_fail(err, -ENOENT, "one of the peers is not there");
	else if (cache == lower || is_named(&n, cache) || is_named(&n, lower))
		rc = xseg_fail(err, -ELOOP, "'%s' would be above itself",
			name_of(seg, is_named(&n, cache) ? cache : lower));
	else
		rc = ask(seg, cache, &n, lower, err);
	xs_unlock(fd);
	return rc;
}

int xseg_unplug(struct xseg *seg, uint32_t cache, struct xseg_error *err)
{
	int fd = lock(seg, err), rc = 0;
	uint32_t lower;

	if (fd < 0)
		return fd;
	if (!is_there(seg, cache)) {
		rc = xseg_fail(err, -ENOENT, "there is no such peer");
		goto out_unlock;
	}
	if (plug_op(plug_get(seg, cache)) == XSEG_PLUG_LEAVE)
		goto out_unlock;
	lower = lower_of(seg, cache);
	if (plug_get(seg, cache) || lower != XSEG_NONE)
		rc = ask(seg, cache, NULL, lower & 0xffff, err);
	else
		rc = check_leave(seg, cache, lower, err);
out_unlock:
	xs_unlock(fd);
	return rc;
}

int xseg_plug_cancel(struct xseg *seg, uint32_t cache, struct xseg_error *err)
{
	int fd = lock(seg, err), rc = 0;

	if (fd < 0)
		return fd;
	if (is_there(seg, cache) && plug_get(seg, cache))
		xs_plug_take_back(seg, cache);
	else
		rc = xseg_fail(err, -ENOENT,
			"'%s' is being neither plugged nor unplugged, so there is nothing to take "
			"back",
			name_of(seg, cache));
	xs_unlock(fd);
	return rc;
}
