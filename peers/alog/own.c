/* own - zones that are the user's own: objects of large values, which the user writes itself.
 *
 * Contract: alog_own() and the calls behind it in alog.h. An own zone is one object of up to
 * zone_bytes. Those that the user has counted take from the size of the log. Own ids are apart from
 * those of the chain, so a value that lives for long does not hold the span.
 *
 *   from      to        when                                            by
 *   NONE      LIVE      the user takes a run of ids                     alog_own
 *   NONE      FOUND     the head names it, or had reserved it           own_found
 *   FOUND     LIVE      a record of the log names it, or a client has it  alog_own_keep
 *   FOUND     FREED     all records were looked at, and none names it   alog_own_swept
 *   LIVE      FREED     no record names it any more, and nobody reads   alog_own_free
 *   FREED     DELETING  V2 holds
 *   DELETING  DELETED   the last of its DELETEs is answered             own_done
 *   DELETED   NONE      a FLUSH has made that stable                    own_stable
 *
 * Invariants
 *   V1  An id is taken below the reservation of a head whose write was answered (H1), and is never
 *       used twice. The head names each run that is not NONE, and what is reserved. So a successor
 *       finds all objects that there may be.
 *   V2  A run that a flush may have promised is deleted when `stable` has passed the end that the
 *       log had when it was freed, and a flush of this opening has succeeded (as L5). Another run
 *       is deleted when that end is written (as L6).
 *   V3  A hold of a walk delays all deletions.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "peers/alog/inside.h"

/* More ids than that are not one run of a head that verifies. */
#define MAX_FOUND(l) (2 * (l)->cfg.zones + ALOG_STEP)

static struct own_run *add(struct alog *l, uint64_t first, uint32_t nr, enum own_state state)
{
	struct own *o = &l->own;

	while (o->hint < o->top && o->run[o->hint].state != OWN_NONE)
		o->hint++;
	if (o->hint == own_slots(&l->cfg))
		return NULL;
	o->top = o->hint == o->top ? o->top + 1 : o->top;
	o->run[o->hint] = (struct own_run){ .first = first, .nr = nr, .state = (uint8_t)state };
	return &o->run[o->hint];
}

/* One that holds all of these ids. */
static struct own_run *find(struct alog *l, uint64_t first, uint32_t nr)
{
	for (uint32_t i = 0; i < l->own.top; i++) {
		struct own_run *run = &l->own.run[i];

		if (run->state != OWN_NONE && first >= run->first &&
			first + nr <= run->first + run->nr)
			return run;
	}
	return NULL;
}

/* The run becomes just this one; what is before and behind it stays as it was. */
static bool cut_out(struct alog *l, struct own_run *run, uint64_t first, uint32_t nr)
{
	uint32_t before = (uint32_t)(first - run->first), behind = run->nr - before - nr;
	struct own_run was = *run, *part;

	if (before) {
		part = add(l, was.first, before, was.state);
		if (!part)
			return false;
		run->first += before;
		run->nr -= before;
	}
	if (behind) {
		part = add(l, first + nr, behind, was.state);
		if (!part)
			return false;
		run->nr -= behind;
	}
	return true;
}

/* ---- the head ---- */

/* What openings reserved one after the other, and did not use, is one run: else openings that are
 * killed soon fill the head with names. */
static bool extend(struct alog *l, uint64_t first, uint32_t nr)
{
	struct own_run *run = first > 1 ? find(l, first - 1, 1) : NULL;

	if (!run || run->state != OWN_FOUND || run->first + run->nr != first ||
		run->nr + nr > MAX_FOUND(l))
		return false;
	run->nr += nr;
	return true;
}

void own_found(struct alog *l, uint64_t first, uint32_t nr)
{
	if (nr && nr <= MAX_FOUND(l) && !extend(l, first, nr))
		add(l, first, nr, OWN_FOUND);
}

uint32_t own_write(const struct alog *l, struct own_named *to)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < l->own.top; i++)
		if (l->own.run[i].state != OWN_NONE)
			to[nr++] = (struct own_named){ .first = l->own.run[i].first,
				.nr = l->own.run[i].nr };
	return nr;
}

/* ---- the user ---- */

static void ask_for_flush(struct alog *l)
{
	alog_force(l, l->s.end);
	l->g.want_flush |= !l->s.flushed;
}

/* Compaction goes on for it, and deletions may go. */
static int no_room(struct alog *l, uint32_t nr)
{
	l->own.wanted = nr;
	if (own_leaves(l))
		ask_for_flush(l);
	return space_is_hopeless(l) ? -ENOSPC : -EAGAIN;
}

int alog_own(struct alog *l, uint32_t ids, uint32_t nr, uint64_t *first)
{
	struct own *o = &l->own;
	struct own_run *run;

	if (!nr || !l->cfg.own || nr > ids || ids > l->cfg.zones - l->cfg.reserve)
		return -E2BIG;
	if (!serves(l))
		return -EAGAIN;
	if (o->taken >= l->cfg.own) {
		l->g.want_flush |= o->deleted != o->stable;
		if (own_leaves(l))
			ask_for_flush(l);
		return o->deleted != o->stable || own_leaves(l) ? -EAGAIN : -ENOSPC;
	}
	if (zones_free(l) < nr + l->cfg.reserve)
		return no_room(l, nr);
	o->wanted = 0;
	if (o->next + ids > o->in) {
		o->ask = o->ask < ids ? ids : o->ask;
		l->head.wanted = true;
		return -EAGAIN;
	}
	run = add(l, o->next, ids, OWN_LIVE);
	if (!run)
		return -EAGAIN;			/* what was found is not swept yet */
	run->from = l->s.end;
	run->counted = nr;
	*first = o->next;
	o->next += ids;
	o->used += nr;
	o->taken++;
	return 0;
}

static struct own_run *live(struct alog *l, uint64_t first)
{
	struct own_run *run = find(l, first, 1);

	return run && run->state == OWN_LIVE && run->first == first ? run : NULL;
}

int alog_own_count(struct alog *l, uint64_t first, uint32_t nr)
{
	struct own_run *run = live(l, first);

	if (!run || nr > run->nr)
		return -ENOENT;
	if (nr > run->counted && zones_free(l) < nr - run->counted + l->cfg.reserve)
		return no_room(l, nr - run->counted);
	l->own.wanted = 0;
	l->own.used += nr - run->counted;
	run->counted = nr;
	return 0;
}

int alog_own_cut(struct alog *l, uint64_t first, uint32_t nr)
{
	struct own_run *run = live(l, first);

	if (!run || !nr || nr > run->nr)
		return -ENOENT;
	if (nr < run->counted) {
		l->own.used -= run->counted - nr;
		run->counted = nr;
	}
	run->nr = nr;
	return 0;
}

int alog_own_keep(struct alog *l, uint64_t first, uint32_t nr)
{
	struct own_run *run = find(l, first, nr);

	if (!run || run->state != OWN_FOUND || !nr)
		return -ENOENT;
	if (!cut_out(l, run, first, nr))
		return -ENOSPC;
	run->state = OWN_LIVE;
	run->old = true;
	run->counted = nr;
	l->own.used += nr;
	l->own.taken++;
	return 0;
}

static void leave(struct alog *l, struct own_run *run)
{
	run->state = OWN_FREED;
	run->after = l->s.end;
	l->own.leaving = true;
	l->own.seen = 0;
}

int alog_own_free(struct alog *l, uint64_t first, uint32_t nr)
{
	struct own_run *run = find(l, first, nr);

	if (!run || run->state != OWN_LIVE || run->first != first || run->nr != nr)
		return -ENOENT;
	leave(l, run);
	return 0;
}

void alog_own_swept(struct alog *l)
{
	for (uint32_t i = 0; i < l->own.top; i++)
		if (l->own.run[i].state == OWN_FOUND) {
			leave(l, &l->own.run[i]);
			l->own.run[i].old = true;
			l->own.taken++;
		}
}

void alog_own_target(const struct alog *l, uint64_t id, char *to)
{
	snprintf(to, XSEG_TARGET_MAX, "+%s:own.%016" PRIx64, l->cfg.prefix, id);
}

/* ---- deletion ---- */

static bool may_go(const struct alog *l, const struct own_run *run)
{
	bool promised = run->old || run->from < l->s.flush_sent || run->from < l->s.stable;

	if (!promised)
		return l->s.written >= run->after;
	return l->s.stable >= run->after && l->s.flushed;
}

static struct own_run *next_run(const struct alog *l)
{
	struct own_run *found = NULL;

	for (uint32_t i = 0; i < l->own.top; i++) {
		struct own_run *run = &l->own.run[i];

		if (run->state == OWN_DELETING)
			return run;
		if (run->state == OWN_FREED && may_go(l, run))
			found = run;
	}
	return found;
}

bool own_pump(struct alog *l)
{
	struct own *o = &l->own;
	struct own_run *run;
	struct io *io;

	if (!o->leaving || l->io_out[IO_OWN] || l->now < o->retry_ns ||
		o->seen == l->s.stable + l->s.written + 1 + l->s.flushed ||
		l->repair.state != REPAIR_NONE || (l->w.state.active && l->w.walk.hold))
		return false;			/* V3 */
	run = next_run(l);
	if (!run) {
		o->seen = l->s.stable + l->s.written + 1 + l->s.flushed;
		o->leaving = own_leaves(l);
		if (o->leaving && zones_free(l) <= l->cfg.reserve + 1)
			ask_for_flush(l);
		return false;
	}
	if (!(io = io_get(l, IO_OWN)))
		return false;
	run->state = OWN_DELETING;
	io->from = (uint64_t)(run - o->run);
	io->pub.op = XSEG_OP_DELETE;
	alog_own_target(l, run->first + run->gone, io->pub.target);
	io_send(l, io);
	return true;
}

void own_done(struct alog *l, struct io *io, int64_t result)
{
	struct own *o = &l->own;
	struct own_run *run = &o->run[io->from];

	io_put(l, io);
	if (result < 0 && result != -ENOENT) {
		o->retry_ns = l->now + ALOG_RETRY_NS;
		return;
	}
	assert(run->state == OWN_DELETING);
	if (++run->gone < run->nr)
		return;
	o->used -= run->counted;
	run->counted = 0;
	run->state = OWN_DELETED;
	run->after = ++o->deleted;
}
