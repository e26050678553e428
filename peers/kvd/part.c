/* part - PART: pieces of large values on their way to their zones.
 *
 * Each PART is one WRITE of kvd's own that lists the client's pages, so nothing is copied here. The
 * client's request stays AT kvd until that write is answered.
 *
 * Contract: kvd's thread, state OPEN. Parts wait in one list, in the order in which they came.
 *
 * Invariants
 *   P1  A part goes to a zone of its run that is counted (V4 of large.c), and to no other.
 *   P2  While it is out, it holds its run (G1 of table/large.h). So the zone is not deleted before
 *       the write has ended, and the write does not make it anew.
 *   P3  A part may be done again, by a successor or for a client: no record names its zone yet.
 *   P4  COMMIT knows of each part that failed, and of those that came after the last flush.
 */
#include <errno.h>
#include <string.h>

#include "peers/kvd/kvd.h"
#include "xtypes/xkill.h"

/* P1. How far the value may go. */
static uint64_t limit(const struct kvd *k, const struct large_run *run)
{
	return run->bytes ? kv_pages(run->bytes) * KV_PAGE
			  : (uint64_t)run->ids * k->large.t.zone_bytes;
}

/* Of a value whose length is not known: an eighth more than is needed, if there is so much. */
static int grow(struct kvd *k, struct large_run *run, uint64_t number, uint32_t zones)
{
	uint32_t more = zones + zones / 8 < run->ids ? zones + zones / 8 : run->ids;
	int rc = alog_own_count(k->log, run->first, more);

	if (rc == -ENOSPC && more > zones)
		rc = alog_own_count(k->log, run->first, more = zones);
	if (!rc)
		large_grow(&k->large.t, number, more);
	return rc;
}

static int send(struct kvd *k, struct xreq *part, struct large_run *run, uint64_t number,
	uint64_t offset)
{
	struct xreq *r = k->large.parts_out < KVD_PARTS ? xseg_req_alloc(k->pp->port) : NULL;
	char target[XSEG_TARGET_MAX];
	uint32_t place;

	if (!r)
		return -EAGAIN;
	alog_own_target(k->log, large_at(&k->large.t, run, offset, &place), target);
	xseg_req_set_target(r, target, strlen(target));
	r->op = XSEG_OP_WRITE;
	r->flags = part->flags & XSEG_REQ_ONCE;
	r->offset = r->obj_offset = place;
	r->size = part->size;
	r->nr_pages = (uint16_t)(part->size / XSEG_PAGE_SIZE);
	memcpy(r->page, part->page, r->nr_pages * sizeof(r->page[0]));
	if (!kvd_submit(k, r, (struct kvd_context){ .part = part, .run = run,
			.number = number }))
		return -EAGAIN;
	large_hold(run);			/* P2 */
	run->flushed = false;			/* P4 */
	k->large.parts_out++;
	XKILL(KVD_PART_SENT);
	return 0;
}

/* -EAGAIN: it has to wait. */
static int try_part(struct kvd *k, struct xreq *r)
{
	struct large_run *run;
	struct kv_part part;
	uint32_t place;
	uint64_t zones;
	int rc = kvd_part_parse(k, r, &part);

	if (rc)
		return rc;
	run = large_run_of(&k->large.t, part.handle, LARGE_WRITES);
	if (!run)
		return -EBADF;
	if (part.offset >= limit(k, run) || r->size > limit(k, run) - part.offset)
		return -EINVAL;
	zones = large_at(&k->large.t, run, part.offset, &place) - run->first + 1;
	if (zones > run->zones)
		rc = grow(k, run, part.handle, (uint32_t)zones);
	return rc ? rc : send(k, r, run, part.handle, part.offset);
}

/* False: it waits. */
static bool begin(struct kvd *k, struct xreq *r)
{
	int rc = try_part(k, r);

	if (rc == -EAGAIN)
		return false;
	if (rc)
		peer_answer(k->pp, r, rc);
	return true;
}

void kvd_part(struct kvd *k, struct xreq *r)
{
	if (r->volume != k->id)
		peer_answer(k->pp, r, -ESTALE);
	else if (k->q.parts.first || !begin(k, r))
		fifo_push(&k->q.parts, r);
}

void kvd_part_done(struct kvd *k, struct kvd_context c, int64_t result)
{
	k->large.parts_out--;
	if (result < 0)
		large_fail(&k->large.t, c.number);	/* P4 */
	large_let_go(&k->large.t, c.run);
	peer_answer(k->pp, c.part, result < 0 ? result : c.part->size);
}

void kvd_parts_poll(struct kvd *k)
{
	while (k->q.parts.first) {
		struct xreq *r = fifo_pop(&k->q.parts);

		if (!begin(k, r)) {
			fifo_push_first(&k->q.parts, r);
			return;
		}
	}
}
