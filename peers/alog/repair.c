/* repair - zones in doubt after a failed write or a failed FLUSH are left.
 *
 * Contract: see inside.h.
 *
 *   from    to      when                                            by
 *   NONE    WAIT    a write or a FLUSH has failed                   repair_begin
 *   any     WAIT    another one has failed: the range grows         repair_begin
 *   WAIT    TAIL    the pause is over, the scratch is free, no      repair_pump
 *                   write is out, no good page stands before the doubtful ones
 *   TAIL    COPY    what the tail alone may have is copied, and no failed page is left there
 *   COPY    SETTLE  the live records of all zones in doubt are copied
 *   SETTLE  NONE    all copies are written
 *
 * Then promises wait for a FLUSH, which makes the copies stable, and for a head that says that the
 * zones are dying.
 *
 * In TAIL no page is written, so that no failure ends it: else each round would leave a page more
 * of copies in the ring beside the originals, until no copy has room (T3 of tail.c).
 *
 * The range of ids is in the arena before anything is done about it, and leaves it when the last of
 * these zones is deleted. A successor that finds a range begins in WAIT.
 *
 * A store may fail for hours, and each round of copies begins a zone. So a round that has failed
 * for long only sends its writes again.
 *
 * Invariants
 *   R1  When the pauses are at their longest, or few zones are left, a write that fails is sent
 *       again. What the store may lose of it is overwritten then. A bad place is left after AGAIN
 *       of these, as long as there are zones for copies of all that is live.
 *   L2  A failed append closes its zone, and is appended anew before anything at or behind its
 *       place is promised (G1 of flush.c). No zone at or behind the failed one is called flushed
 *       before the failed one is dying in the head (`doomed` in zone.c, grave.c).
 *   L8  A failed FLUSH puts all zones into doubt that no good FLUSH covers. Their copies, and all
 *       later pages, are written with FUA until a FLUSH succeeds. So promises go on while the store
 *       fails each FLUSH, and the deletion of the bad zones is the way to mend the store.
 *   L9  Before anything behind the failure is promised, the zones in doubt are dying in the head. A
 *       page that a repair drops is not written any more. If it had a filler (T5 of tail.c), the
 *       store may have the record that was undone, and a loss of power would bring it back.
 */
#include <errno.h>

#include "peers/alog/inside.h"

#define AGAIN	    32u
#define SPARE_ZONES 8u				/* zones that copies leave with gaps */

/* R1: the table has no room for one more round beside all that is live. */
static bool is_short(const struct alog *l)
{
	return l->z.used + l->z.live_bytes / l->cfg.zone_bytes + SPARE_ZONES >= l->z.nr;
}

bool repair_waits(struct alog *l)
{
	struct repair *r = &l->repair;
	bool late = r->pause_ns >= ALOG_RETRY_MAX_NS && r->again < AGAIN;

	if (r->state == REPAIR_WAIT || r->state == REPAIR_TAIL || (!late && !is_short(l)))
		return false;
	r->again++;
	return true;
}

void repair_begin(struct alog *l, uint64_t low, uint64_t high, uint64_t hold, bool fua)
{
	struct repair *r = &l->repair;

	if (low > high)
		return;
	doubt_note(l, low, high);
	low = doubt_low(l);
	high = doubt_high(l);
	if (r->named || hold < r->hold)
		r->hold = hold;
	r->named = false;
	r->mark = r->covered = 0;
	if (r->state != REPAIR_WAIT) {
		r->retry_ns = l->now + r->pause_ns;
		r->pause_ns = r->pause_ns ? 2 * r->pause_ns : ALOG_RETRY_NS;
		if (r->pause_ns > ALOG_RETRY_MAX_NS)
			r->pause_ns = ALOG_RETRY_MAX_NS;
	}
	r->state = REPAIR_WAIT;
	r->fua |= fua;
	r->again = 0;
	r->until = UINT64_MAX;
	l->stats.repairs++;
	for (uint32_t i = 0; i < l->z.nr; i++) {
		struct zone *z = &l->z.table[i];

		if (z->state != ZONE_FREE && z->id >= low && z->id <= high)
			z->doomed = true;
	}
	if (l->z.open && l->z.open->doomed)
		zone_close(l);
	copy_stop(l);
	walk_break(l, -EIO);
}

/* The next zone of the range from `at` on that has to be copied. What was emptied before needs its
 * pages no more. */
static struct zone *next_zone(struct alog *l)
{
	struct zone *z;

	for (; l->repair.at <= doubt_high(l); l->repair.at++) {
		z = l->repair.at < l->head.next_id ? zone_find(l, l->repair.at) : NULL;
		if (!z)
			continue;
		if (z->state == ZONE_CLOSED && l->repair.state == REPAIR_TAIL &&
			tail_pin(l, z->id) == UINT64_MAX)
			continue;
		if (z->state == ZONE_CLOSED)
			return z;
		tail_drop(l, z->id);
		write_advance(l);
	}
	return NULL;
}

static bool copy_next(struct alog *l)
{
	struct zone *z;

	if (l->job != JOB_NONE)
		return false;
	z = next_zone(l);
	if (z) {
		l->repair.at = z->id + 1;
		return copy_begin(
			l, z, l->repair.state == REPAIR_TAIL ? COPY_TAIL : COPY_REST);
	}
	if (l->repair.state == REPAIR_TAIL) {
		l->repair.at = doubt_low(l);
		l->repair.state = REPAIR_COPY;
		return true;
	}
	l->repair.until = l->s.end;
	l->repair.state = REPAIR_SETTLE;
	return true;
}

static bool settle(struct alog *l)
{
	struct repair *r = &l->repair;

	alog_push(l, r->until);
	if (l->s.written < r->until)
		return false;
	r->state = REPAIR_NONE;
	r->pause_ns = 0;
	r->flush_ns = l->now;
	if (r->fua) {
		l->s.flushed = true;		/* all that was not was in doubt, and is copied */
		r->covered = l->s.written;
	}
	write_advance(l);
	return true;
}

/* L9 */
static bool name_zones(struct alog *l)
{
	struct repair *r = &l->repair;

	if (r->named)
		return false;
	if (r->covered && !r->mark) {
		r->mark = grave_name(l, r->until);
		return true;
	}
	if ((!r->mark || l->head.in.mark < r->mark) && doubt_low(l))
		return false;
	r->named = true;
	flush_stable(l, r->covered);
	write_advance(l);
	return true;
}

/* Pages of good zones stand before all that are in doubt, and are being written. */
static bool front_is_good(const struct alog *l)
{
	uint64_t zone = tail_front(l);

	return zone && zone < doubt_low(l);
}

bool repair_pump(struct alog *l)
{
	struct repair *r = &l->repair;

	switch (r->state) {
	case REPAIR_NONE:
		return name_zones(l);
	case REPAIR_WAIT:
		if (l->now < r->retry_ns || l->job != JOB_NONE || l->io_out[IO_PAGES] ||
			front_is_good(l))
			return false;
		r->at = doubt_low(l);
		tail_keep(l);
		r->state = REPAIR_TAIL;
		return true;
	case REPAIR_TAIL:
	case REPAIR_COPY:
		return copy_next(l);
	case REPAIR_SETTLE:
		return settle(l);
	}
	return false;
}

void repair_probed(struct alog *l, bool ok)
{
	if (ok && l->repair.state == REPAIR_NONE)
		l->repair.fua = false;
	else
		l->repair.flush_ns = l->now + ALOG_RETRY_NS;
}
