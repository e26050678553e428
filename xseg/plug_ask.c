/* plug_ask - a person's demands: a cache is to enter, to leave, or the demand is taken back. Also
 * which of them are rejected. See plug.c for the rest.
 *
 * Contract: each function takes the lock of routes, stores one word, and returns; the peers do the
 * work. A function that takes a demand back undoes the begun steps first. A demand that would lose
 * data, or would never end, is rejected, with a line that says what to do.
 */
#include <errno.h>
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
		if (i != cache && is_there(seg, i) && plug_get(seg, i) &&
			plug_upper(plug_get(seg, i)) == peer)
			return i;
	return XSEG_NONE;
}

/* Each peer has a part in one plug at a time, but for a lower one that is the upper one of nothing:
 * so what is asked for stays possible. */
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

static int check_enter(
	struct xseg *seg, uint32_t cache, uint32_t upper, uint32_t lower, struct xseg_error *err)
{
	uint32_t other;
	int rc;

	if (lower_of(seg, cache) == lower && lower_of(seg, upper) == cache)
		return xseg_fail(err, -EEXIST, "'%s' is between '%s' and '%s' already",
			name_of(seg, cache), name_of(seg, upper), name_of(seg, lower));
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
	if (lower_of(seg, upper) != lower)
		return xseg_fail(err, -ENOTCONN,
			"'%s' sends to '%s', not to '%s'; 'xseg peer list' shows the routes",
			name_of(seg, upper), name_of(seg, lower_of(seg, upper)),
			name_of(seg, lower));
	other = xs_route_upper(seg, lower, upper);
	if (other != XSEG_NONE)
		return xseg_fail(err, -EBUSY,
			"'%s' sends to '%s', too, and would write past the cache; stop it first",
			name_of(seg, other), name_of(seg, lower));
	rc = check_serves(seg, cache, err);
	rc = rc ? rc : check_serves(seg, upper, err);
	rc = rc ? rc : check_serves(seg, lower, err);
	rc = rc ? rc : check_idle(seg, upper, cache, err);
	return rc ? rc : check_idle(seg, lower, cache, err);
}

static int check_leave(
	struct xseg *seg, uint32_t cache, uint32_t upper, uint32_t lower, struct xseg_error *err)
{
	uint32_t other;
	int rc;

	if (lower == XSEG_NONE)
		return xseg_fail(
			err, -ENOTCONN, "'%s' is off the path already", name_of(seg, cache));
	if (upper == XSEG_NONE)
		return xseg_fail(err, -ENOTCONN,
			"no peer sends to '%s', so it is between no peers; stop it with 'xseg peer "
			"stop %s'",
			name_of(seg, cache), name_of(seg, cache));
	other = xs_route_upper(seg, cache, upper);
	if (other != XSEG_NONE)
		return xseg_fail(err, -EBUSY,
			"'%s' and '%s' both send to '%s'; stop one of them first",
			name_of(seg, upper), name_of(seg, other), name_of(seg, cache));
	if (state_of(seg, cache) == XSEG_PEER_STOPPED)
		return xseg_fail(
			err, -EHOSTDOWN, "'%s' is stopped; start it first", name_of(seg, cache));
	rc = check_idle(seg, upper, cache, err);
	return rc ? rc : check_idle(seg, lower, cache, err);
}

/* Under the lock of routes. */
static int ask(struct xseg *seg, uint32_t cache, uint64_t wanted, struct xseg_error *err)
{
	uint64_t now = plug_get(seg, cache);
	int rc;

	if (now == wanted)
		return 0;
	if (now)
		return xseg_fail(err, -EBUSY,
			"'%s' is being %s '%s'; wait for that, or take it back with 'xseg unplug "
			"%s --cancel'",
			name_of(seg, cache),
			plug_op(now) == XSEG_PLUG_ENTER ? "plugged below" : "unplugged from",
			name_of(seg, plug_upper(now)), name_of(seg, cache));
	rc = check_idle(seg, cache, cache, err);
	if (rc)
		return rc;
	rc = plug_op(wanted) == XSEG_PLUG_ENTER
		     ? check_enter(seg, cache, plug_upper(wanted), plug_lower(wanted), err)
		     : check_leave(seg, cache, plug_upper(wanted), plug_lower(wanted), err);
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
	return fd;
}

int xseg_plug(
	struct xseg *seg, uint32_t cache, uint32_t upper, uint32_t lower, struct xseg_error *err)
{
	int fd = lock(seg, err), rc;

	if (fd < 0)
		return fd;
	if (!is_there(seg, cache) || !is_there(seg, upper) || !is_there(seg, lower)) {
		rc = xseg_fail(err, -ENOENT, "one of the three peers is not there");
	} else if (cache == upper || cache == lower || upper == lower) {
		rc = xseg_fail(err, -ELOOP, "'%s' would be above itself",
			name_of(seg, cache == upper ? cache : lower));
	} else {
		xs_plug_settle(seg, cache);
		rc = ask(seg, cache, plug_word(XSEG_PLUG_ENTER, upper, lower), err);
	}
	xs_unlock(fd);
	return rc;
}

int xseg_unplug(struct xseg *seg, uint32_t cache, struct xseg_error *err)
{
	int fd = lock(seg, err), rc = 0;
	uint32_t upper, lower;

	if (fd < 0)
		return fd;
	if (!is_there(seg, cache)) {
		rc = xseg_fail(err, -ENOENT, "there is no such peer");
		goto out_unlock;
	}
	xs_plug_settle(seg, cache);
	if (plug_op(plug_get(seg, cache)) == XSEG_PLUG_LEAVE)
		goto out_unlock;
	upper = xs_route_upper(seg, cache, XSEG_NONE);
	lower = lower_of(seg, cache);
	if (plug_get(seg, cache) || (upper != XSEG_NONE && lower != XSEG_NONE))
		rc = ask(seg, cache, plug_word(XSEG_PLUG_LEAVE, upper & 0xffff, lower & 0xffff),
			err);
	else
		rc = check_leave(seg, cache, upper, lower, err);
out_unlock:
	xs_unlock(fd);
	return rc;
}

int xseg_plug_cancel(struct xseg *seg, uint32_t cache, struct xseg_error *err)
{
	int fd = lock(seg, err), rc = 0;

	if (fd < 0)
		return fd;
	if (is_there(seg, cache))
		xs_plug_settle(seg, cache);
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
