/* flush - groups of forced appends, and the stable part of the log.
 *
 * Contract: see inside.h. A group is a FLUSH for all that is appended when the group begins. It is
 * sent when all of that is written. Several may be out: a put that came too late for one need not
 * wait until it is back.
 *
 * Invariants
 *   L1  A FLUSH is sent for a position only when `written` has reached it, and nothing before the
 *       position waits for a repair. So `stable` is a prefix of the stream.
 *   G1  While a repair is under way no position behind its begin becomes stable, nor before the
 *       zones that it left are dying in the head (L9 of repair.c).
 *   G2  With `fua` each page is stable when its write is answered, and a FLUSH is only tried.
 */
#include <errno.h>
#include <stdio.h>

#include "peers/alog/inside.h"

/* G1 */
void flush_stable(struct alog *l, uint64_t pos)
{
	if (!l->repair.named && pos > l->repair.hold)
		pos = l->repair.hold;
	if (l->s.stable >= pos)
		return;
	l->s.stable = pos;
	/* relaxed: a successor may see an older one, which is true as well */
	atomic_store_explicit(&l->arena->stable, pos, memory_order_relaxed);
}

/* A group that is not sent yet will do. */
static bool barrier_wanted(const struct alog *l)
{
	uint64_t covered = l->s.barrier_over;

	for (uint32_t i = 0; i < ALOG_GROUPS; i++)
		if (l->group[i].used && !l->group[i].sent)
			return false;
		else if (l->group[i].used && l->group[i].barrier > covered)
			covered = l->group[i].barrier;
	return l->s.barrier > covered;
}

static bool groups_are_out(const struct alog *l)
{
	for (uint32_t i = 0; i < ALOG_GROUPS; i++)
		if (l->group[i].used)
			return true;
	return false;
}

static bool is_wanted(const struct alog *l)
{
	uint64_t covered = l->s.stable;

	if (!l->repair.named && l->repair.covered > covered)
		covered = l->repair.covered;	/* it is on its way */
	for (uint32_t i = 0; i < ALOG_GROUPS; i++)
		if (l->group[i].used && l->group[i].target > covered)
			covered = l->group[i].target;
	if (l->g.want_flush && !groups_are_out(l))
		return true;
	if (barrier_wanted(l))
		return true;
	return l->s.force > covered;
}

static bool begin_group(struct alog *l)
{
	struct group *g = NULL;

	for (uint32_t i = 0; i < ALOG_GROUPS; i++) {
		if (l->group[i].used && !l->group[i].sent)
			return false;
		if (!l->group[i].used)
			g = &l->group[i];
	}
	if (!g || l->repair.fua || !is_wanted(l))
		return false;
	*g = (struct group){ .target = l->s.end, .used = true };
	if (l->s.push < g->target)
		l->s.push = g->target;
	return true;
}

static bool send_group(struct alog *l, uint8_t which)
{
	struct group *g = &l->group[which];
	struct io *io;

	if (!g->used || g->sent || l->s.written < g->target || l->repair.state != REPAIR_NONE ||
		!(io = io_get(l, IO_FLUSH)))
		return false;
	g->sent = true;
	g->written = l->s.written;
	g->deleted = l->g.deleted;
	g->own_deleted = l->own.deleted;
	g->barrier = l->s.barrier;
	l->s.flush_sent = l->s.end;		/* copies behind the target are covered, too */
	io->pub.op = XSEG_OP_FLUSH;
	io->which = which;
	snprintf(io->pub.target, sizeof(io->pub.target), "+%s:", l->cfg.prefix);
	io_send(l, io);
	return true;
}

/* G2: a FLUSH of all that is written, to see whether the store can again. */
static bool probe(struct alog *l)
{
	if (!l->repair.fua || l->repair.state != REPAIR_NONE || l->now < l->repair.flush_ns ||
		groups_are_out(l) || l->g.nr)
		return false;
	l->group[0] = (struct group){ .target = l->s.written, .used = true };
	return send_group(l, 0);
}

bool flush_pump(struct alog *l)
{
	bool did = begin_group(l);

	if (l->repair.fua && l->s.push < l->s.force)
		l->s.push = l->s.force;
	did |= probe(l);
	for (uint8_t i = 0; i < ALOG_GROUPS; i++)
		did |= send_group(l, i);
	return did;
}

static void barriers_over(struct alog *l, uint64_t until, bool bad)
{
	uint64_t *word, bit;

	while (l->s.barrier_over < until) {
		bit = ++l->s.barrier_over % ALOG_BARRIERS;
		word = &l->s.barrier_bad[bit / 64];
		*word = (*word & ~(1ull << bit % 64)) | (uint64_t)bad << bit % 64;
	}
}

/* L9: the copies of a repair are stable. It was sent when they were written. */
static void cover(struct alog *l, const struct group *was)
{
	struct repair *r = &l->repair;

	if (!r->named && r->state == REPAIR_NONE && was->written >= r->until &&
		was->target > r->covered)
		r->covered = was->target;
}

enum flush_end flush_is_back(struct alog *l, struct io *io, int64_t result)
{
	struct group *g = &l->group[io->which];
	struct group was = *g;

	*g = (struct group){ .used = false };
	io_put(l, io);
	l->stats.flushes++;
	if (result >= 0) {
		cover(l, &was);
		flush_stable(l, was.target);
		l->s.flushed = true;
		l->g.want_flush = false;
		grave_stable(l, was.deleted, true);
		own_stable(l, was.own_deleted);
		barriers_over(l, was.barrier, false);
	} else {
		barriers_over(l, l->s.barrier, true);
	}
	if (l->repair.fua)
		return result >= 0 ? FLUSH_PROBED : FLUSH_PROBED_BAD;
	if (result >= 0)
		return FLUSH_GOOD;
	for (uint32_t i = 0; i < ALOG_GROUPS; i++)	/* the repair covers the others */
		if (!l->group[i].sent)
			l->group[i].used = false;
	return FLUSH_BAD;
}

uint64_t alog_barrier(struct alog *l)
{
	return ++l->s.barrier;
}

int alog_barrier_state(const struct alog *l, uint64_t barrier)
{
	uint64_t bit = barrier % ALOG_BARRIERS;

	if (barrier > l->s.barrier_over)
		return 0;
	return l->s.barrier_bad[bit / 64] >> bit % 64 & 1 ? -EIO : 1;
}

uint64_t alog_end(const struct alog *l)
{
	return l->s.end;
}

uint64_t alog_written(const struct alog *l)
{
	const struct repair *r = &l->repair;

	return r->state != REPAIR_NONE && l->s.written > r->hold ? r->hold : l->s.written;
}

uint64_t alog_stable(const struct alog *l)
{
	return l->s.stable;
}

void alog_push(struct alog *l, uint64_t pos)
{
	if (l->s.push < pos)
		l->s.push = pos;
}

void alog_force(struct alog *l, uint64_t pos)
{
	if (l->s.force < pos)
		l->s.force = pos;
}
