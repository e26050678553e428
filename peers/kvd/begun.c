/* begun - changes that a predecessor had begun, while the log is opened.
 *
 * Contract: kvd's thread, before the log is OPEN. change.c finishes them then.
 */
#include "peers/kvd/kvd.h"

void kvd_change_begun(struct kvd *k, struct xreq *r)
{
	r->user = NULL;
	fifo_push(&k->q.begun, r);
}

/* C1 */
void kvd_change_found(struct kvd *k, uint64_t zone, const struct alog_hint *hint)
{
	struct xseg *seg = k->peer.seg;

	for (struct xreq *r = k->q.begun.first; r; r = r->next)
		if (r->state == XSEG_REQ_STARTED &&
			xseg_req_note(seg, r, KVD_NOTE_SEQUENCE) == hint->sequence &&
			xseg_req_note(seg, r, KVD_NOTE_ZONE) == zone &&
			xseg_req_note(seg, r, KVD_NOTE_PLACE) == hint->place)
			r->user = r;
}
