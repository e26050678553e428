/* server - the peer that a program sends to, which is known by kind and name: attaching, finding
 * it, and whether anybody serves it.
 *
 * Contract: any thread; attaching, finding and waiting for an answer wait. Nothing here is on the
 * path of data but xs_server_is_there().
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "xseg/client/client.h"

#define START_NS 10000000ull	/* between looks at a server that is being started */

/* ---- attaching ---------------------------------------------------------------------------- */

int xs_check_whole(struct xseg *seg, struct xseg_error *err)
{
	if (xseg_is_whole(seg))
		return 0;
	return xseg_fail(err, -EPROTO,
		"memory of segment '%s' is gone: somebody truncated its file", xseg_name(seg));
}

/* The caller's attachment. */
static int check_attached(struct xseg *seg, struct xseg_error *err)
{
	if (xs_is_forked(seg))
		return xseg_fail(err, -ENOTCONN,
			"segment '%s' was attached before this process was forked; attach it here",
			xseg_name(seg));
	return xs_check_whole(seg, err);
}

int xs_server_attach(struct xs_server *s, struct xseg *attached, const char *segment,
	const char *owner, struct xseg_error *err)
{
	int rc;

	s->seg = attached;
	if (s->seg)
		return check_attached(s->seg, err);
	if (!segment)
		return xseg_fail(err, -EINVAL, "no segment is named");
	rc = xseg_attach_owned(segment, owner, 0, &s->seg, err);
	s->attached_here = rc == 0;
	return rc;
}

void xs_server_detach(struct xs_server *s)
{
	if (s->attached_here)
		xseg_detach(s->seg);
}

uint64_t xs_server_until(const struct xs_server *s)
{
	uint64_t now = xs_now_ns();

	return s->timeout_ns < UINT64_MAX - now ? now + s->timeout_ns : UINT64_MAX;
}

/* ---- who serves it ----------------------------------------------------------------------- */

/* *generation: of the server that it has, or had; 0: there is none of that name. */
static bool is_gone(struct xs_server *s, uint32_t *generation)
{
	struct xseg_peer_info info;

	*generation = 0;
	if (!xseg_is_whole(s->seg) || !xseg_peer_get_info(s->seg, s->peer, &info) ||
		strcmp(info.kind, s->kind) != 0 || strcmp(info.name, s->name) != 0)
		return true;
	*generation = info.generation;
	return xseg_peer_is_gone(s->seg, &info);
}

bool xs_server_is_gone(struct xs_server *s)
{
	uint32_t generation;

	return is_gone(s, &generation);
}

/* A name is another's only with another generation. */
bool xs_server_is_there(const struct xs_server *s, uint64_t *known)
{
	/* acquire: the name comes before the word */
	uint64_t generation = peer_gen(xs_peer_word(s->seg, s->peer)) + 1ull;
	const struct xs_peer *p = &s->seg->peers[s->peer];

	if (*known == generation)
		return true;
	if (strncmp(p->kind, s->kind, sizeof(p->kind)) != 0 ||
		strncmp(p->name, s->name, sizeof(p->name)) != 0)
		return false;
	*known = generation;
	return true;
}

bool xs_server_is_lost(struct xs_server *s, uint64_t now, struct gone *g)
{
	uint32_t generation;

	if (!is_gone(s, &generation))
		g->since_ns = 0;
	else if (!g->since_ns || g->generation != generation)
		*g = (struct gone){ .since_ns = now, .generation = generation };
	return g->since_ns && (now - g->since_ns >= s->gone_ns || !xseg_is_whole(s->seg) ||
				      xseg_is_removed(s->seg));
}

static int fail_stopped(const struct xs_server *s, const char *name, struct xseg_error *err)
{
	return xseg_fail(err, -ENOTCONN,
		"%s does not run; start it with 'xseg -s %s peer start %s', or the stack with "
		"'xseg -s %s up STACK.conf'",
		name, xseg_name(s->seg), name, xseg_name(s->seg));
}

int xs_server_look(struct xs_server *s, struct xseg_error *err)
{
	int rc = check_attached(s->seg, err);

	if (rc || !xs_server_is_gone(s))
		return rc;
	if (!xseg_is_removed(s->seg))
		return fail_stopped(s, s->name, err);
	return xseg_fail(err, -ENOTCONN,
		"segment '%s' was removed, as 'xseg down' does; start its stack with 'xseg -s %s "
		"up STACK.conf', then begin anew",
		xseg_name(s->seg), xseg_name(s->seg));
}

/* The one of that name or, for NULL, the only one: of those that are not gone, if there are any. */
static int find(const struct xs_server *s, const char *name, struct xseg_peer_info *found,
	struct xseg_error *err)
{
	struct xseg *seg = s->seg;
	struct xseg_meant meant = { .nr = 0 };
	struct xseg_peer_info info;

	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &info) && strcmp(info.kind, s->kind) == 0 &&
			(!name || strcmp(info.name, name) == 0))
			xseg_meant_add(seg, &meant, &info);
	if (meant.nr == 0)
		return xseg_fail(err, -ENOENT,
			"segment '%s' has no %s%s%.63s; start one with 'xseg -s %s up STACK.conf'",
			xseg_name(seg), s->kind, name ? " called " : "", name ? name : "",
			xseg_name(seg));
	if (meant.nr > 1)
		return xseg_fail(err, -EINVAL, "segment '%s' has several %ss, and none was named",
			xseg_name(seg), s->kind);
	*found = meant.info;
	return 0;
}

/* One that is restarted is stopped for a moment. */
static bool is_gone_for_good(struct xs_server *s, struct xseg_peer_info *info, uint64_t until)
{
	uint64_t now = xs_now_ns(), left = until > now ? until - now : 0;

	return xseg_peer_is_gone(s->seg, info) &&
	       (!xseg_peer_get_settled(s->seg, info->index,
			left < s->restart_ns ? left : s->restart_ns, info) ||
		       xseg_peer_is_gone(s->seg, info));
}

int xs_server_find(
	struct xs_server *s, const char *name, uint64_t until, struct xseg_error *err)
{
	const struct timespec pause = { .tv_nsec = START_NS };
	struct xseg_peer_info info = { .index = XSEG_NONE };
	int rc;

	for (;;) {
		rc = find(s, name, &info, err);
		if (rc)
			return rc;
		if (info.state == XSEG_PEER_LIVE)
			break;
		if (is_gone_for_good(s, &info, until))
			return fail_stopped(s, info.name, err);
		if (xs_now_ns() >= until)
			return xseg_fail(err, -ETIMEDOUT,
				"%s is not serving yet; see 'xseg -s %s status'", info.name,
				xseg_name(s->seg));
		nanosleep(&pause, NULL);
	}
	s->peer = info.index;
	memcpy(s->name, info.name, sizeof(s->name));
	return 0;
}

int64_t xs_server_wait(struct xs_server *s, struct xport *port)
{
	uint64_t begun = xs_now_ns(), now;
	struct gone gone = { 0 };
	struct xreq *r;

	for (;;) {
		if (xseg_port_replies(port, &r, 1))
			return r->result;
		now = xs_now_ns();
		if (xs_server_is_lost(s, now, &gone))
			return -ENOTCONN;
		if (now - begun >= s->timeout_ns)
			return -ETIMEDOUT;
		xseg_port_wait(port, LOOK_NS);
	}
}
