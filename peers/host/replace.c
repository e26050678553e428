/* replace - see replace.h. */
#include "peers/host/replace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/common/say/dirty.h"
#include "peers/host/stop.h"
#include "peers/host/supervise_inside.h"

/* The incarnation that is meant; false: it is not there any more. */
static bool look_at(struct supervisor *s, struct replaced *r, struct xseg_peer_info *info)
{
	uint32_t index = xseg_peer_find(s->units.seg, r->what.name);

	if (index == XSEG_NONE || !xseg_peer_get_info(s->units.seg, index, info))
		return false;
	if (r->returns && info->generation != r->what.generation) {
		r->what.generation = info->generation;
		r->returns = false;
	}
	return info->generation == r->what.generation;
}

/* Its place in the stack, if its kind is the same there. */
static bool stays_of_its_kind(const struct supervisor *s, const struct xseg_peer_info *info)
{
	uint32_t at = stack_find(s->units.stack, info->name);

	return at != STACK_NONE && !strcmp(s->units.stack->peers[at].kind, info->kind);
}

void replace_make(struct supervisor *s)
{
	struct stack_record *record = calloc(1, sizeof(*record));
	struct replace *all = &s->replace;
	const char *pending;
	struct xseg_peer_info info;

	if (record && stack_record_get(s->units.seg, record)) {
		pending = record->pending;
		while (all->nr < REPLACE_MAX &&
			stack_replaced_next(&pending, &all->peer[all->nr].what)) {
			all->peer[all->nr].returns = false;
			if (look_at(s, &all->peer[all->nr], &info)) {		/* P1 */
				log_info("%s: %s is replaced, as asked", me, info.name);
				all->nr++;
			}
		}
	}
	free(record);
}

bool replace_holds(struct supervisor *s, const struct unit *u)
{
	for (uint32_t i = 0; i < u->nr; i++) {
		const struct replaced *r =
			replace_of(&s->replace, s->units.stack->peers[u->peer[i]].name);

		if (r && !r->returns)
			return true;
	}
	return false;
}

/* ---- stopping ---------------------------------------------------------------------------- */

/* Another one of these is alive and sends to it. */
static bool is_sent_to(struct supervisor *s, const struct xseg_peer_info *to)
{
	struct xseg_peer_info info;

	for (uint32_t i = 0; i < s->replace.nr; i++)
		if (look_at(s, &s->replace.peer[i], &info) && xseg_peer_is_up(info.state) &&
			info.downstream == to->index)
			return true;
	return false;
}

/* Whether it has stopped; else that goes on. */
static bool step(struct supervisor *s, struct replaced *r, const struct xseg_peer_info *info)
{
	if (xseg_peer_is_up(info->state)) {
		if (info->state == XSEG_PEER_LIVE && !is_sent_to(s, info))
			stop_ask(s, info);
		return false;
	}
	if (info->state != XSEG_PEER_DEAD || r->what.keeps_route || !stays_of_its_kind(s, info))
		return true;
	r->returns = true;
	return false;
}

/* ---- at other places --------------------------------------------------------------------- */

/* P2. False: it cannot be done yet. */
static bool take_route(struct supervisor *s, const struct xseg_peer_info *info)
{
	int rc = info->downstream == XSEG_NONE
			 ? 0
			 : xseg_route_set(s->units.seg, info->index, XSEG_NONE);

	if (rc && !s->replace.told)
		log_warn("%s: %s cannot be replaced yet: %s; trying again", me, info->name,
			strerror(-rc));
	s->replace.told |= rc != 0;
	return rc == 0;
}

static void forget(struct supervisor *s, const struct xseg_peer_info *info)
{
	int rc;

	if (dirty_bytes_of(s->units.seg, info->index)) {		/* P3 */
		log_error("%s: %s has dirty data, and stays as it is; see 'xseg status'", me,
			info->name);
		return;
	}
	rc = xseg_peer_forget(s->units.seg, info->index);
	if (rc)
		log_warn("%s: %s stays listed: %s", me, info->name, strerror(-rc));
}

/* Routes first: a peer is forgotten if no other one sends to it. */
static bool finish(struct supervisor *s)
{
	struct xseg_peer_info info;
	struct replaced *r, *end = s->replace.peer + s->replace.nr;

	for (r = s->replace.peer; r < end; r++)
		if (!r->what.keeps_route && look_at(s, r, &info) && !take_route(s, &info))
			return false;
	for (r = s->replace.peer; r < end; r++)
		if (!r->what.keeps_route && look_at(s, r, &info) && !stays_of_its_kind(s, &info))
			forget(s, &info);
	return true;
}

/* Those of these that have stopped are to be started. */
static void let_go(struct supervisor *s)
{
	uint32_t peer;
	struct unit *u;

	for (uint32_t i = 0; i < s->replace.nr; i++) {
		peer = stack_find(s->units.stack, s->replace.peer[i].what.name);
		if (peer == STACK_NONE)
			continue;
		u = &s->units.unit[units_of(&s->units, peer) - s->units.unit];
		u->started = false;
		/* its end may not have been seen yet */
		u->return_once =
			u->state == UNIT_RUNNING && !unit_has(&s->units, u, xseg_peer_is_up);
		if (u->state == UNIT_STOPPED)
			unit_set(u, UNIT_WAITING);
	}
	s->replace.nr = 0;
	log_info("%s: all that is replaced has stopped, and is started", me);
}

void replace_step(struct supervisor *s)
{
	struct xseg_peer_info info;
	struct replaced *r = s->replace.peer;
	bool ready = true;

	if (!s->replace.nr || stop_is_on(s))		/* P4 */
		return;
	while (r < s->replace.peer + s->replace.nr)
		if (look_at(s, r, &info)) {
			ready &= step(s, r, &info);
			r++;
		} else {
			/* P1: the next one has begun, or none is there */
			*r = s->replace.peer[--s->replace.nr];
		}
	if (ready && s->replace.nr && finish(s))
		let_go(s);
}
