/* through - requests that wait until the store has the data of their buckets: writes under
 * write-through and with FUA, and a COPY that needs its source there.
 *
 * They are in their object's list `through`. They are answered or stepped when flushes that began
 * after they were applied have covered their buckets. While a write waits its request is APPLIED:
 * a successor completes it and does not apply it again.
 *
 * Contract: inside the object.
 */
#include <string.h>

#include "peers/cached/flush/flush.h"
#include "peers/cached/creq/creq.h"

/* The store has all of c, or, if it is not applied, all that c wants to be there first. What a
 * predecessor stored may have gone out before anybody asked for FUA. */
static void through_end(struct cport *ps, struct creq *c)
{
	if (!c->applied)
		c->step(ps, c);
	else if (c->fua && c->inherited && !c->error)
		sync_send(ps, c);
	else
		creq_finish(ps, c, c->error ? c->error : (int64_t)c->r->size);
}

/* Waits until the store has the pages that c put into its slots, or newer ones: buckets that are
 * clean by now count as done (a successor's requests). */
void through_wait(struct cport *ps, struct creq *c)
{
	struct object *o = c->obj;

	memset(c->done, 0, sizeof(c->done));
	c->nr_done = 0;
	for (uint32_t i = 0; i < c->nr; i++) {
		if (!bucket_is_dirty(slot_state(slot_get(ps->cache, o, c->first + i))))
			creq_set_done(c, i);
	}
	if (c->nr_done == c->nr) {
		through_end(ps, c);
		return;
	}
	creq_set_state(c, CREQ_AT_STORE);
	o->nr_fua = (uint16_t)(o->nr_fua + c->fua);
	count_wait(ps, WAIT_FLUSH);
	c->next = o->through;
	o->through = c;
	flush_start(ps, o, c->first, c->nr, FLUSH_FLUSH);
}

/* The object was shut, and is not: flushes that are waited for may start again. */
void through_restart(struct cport *ps, struct object *o)
{
	for (struct creq *c = o->through; c && flush_start(ps, o, c->first, c->nr, FLUSH_FLUSH);
		c = c->next)
		;
}

/* The object was deleted: those who wait for its data at the store wait for nothing now. (A DELETE
 * waits for them; but a successor finds both, as it may when one of them was at its last step.) */
void through_deleted(struct cport *ps, struct object *o)
{
	struct creq *c = o->through, *next;

	o->through = NULL;
	for (; c; c = next) {
		next = c->next;
		o->nr_fua = (uint16_t)(o->nr_fua - c->fua);
		creq_set_state(c, CREQ_RUNNING);
		through_end(ps, c);
	}
}

/* Whether a flush that ended covers bucket b for c: c had been applied when it started. One that is
 * not applied wants what was there when it came, and one that is redone has slots of before: that
 * may have been on its way already, and was if the bucket is clean now. */
static bool covers(struct cport *ps, struct object *o, const struct child *ch, const struct creq *c,
	uint32_t b)
{
	return b >= ch->first && b < (uint32_t)ch->first + ch->nr &&
	       (ch->seq >= c->seq ||
		       ((!c->applied || c->inherited) &&
			       !bucket_is_dirty(slot_state(slot_get(ps->cache, o, b)))));
}

/* A flush of the object ended: those whom it covers wait for those of its buckets no more. */
void through_cover(struct cport *ps, struct object *o, struct child *ch, int error)
{
	struct creq **at = &o->through, *c;

	while ((c = *at) != NULL) {
		for (uint32_t i = 0; i < c->nr; i++) {
			if (creq_is_done(c, i) || !covers(ps, o, ch, c, c->first + i))
				continue;
			creq_set_done(c, i);
			if (error)
				c->error = error;
		}
		if (c->nr_done < c->nr) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		o->nr_fua = (uint16_t)(o->nr_fua - c->fua);
		creq_set_state(c, CREQ_RUNNING);
		through_end(ps, c);
	}
}

void through_applied(struct cport *ps, struct creq *c)
{
	if (c->r->state == XSEG_REQ_STARTED)
		xseg_req_apply(ps->pp->port, c->r);
	through_wait(ps, c);
}
