/* paged - puts whose value goes below from the client's own pages.
 *
 * A put of 32 KiB or more, alone in its request and with its value at a page, is not copied to the
 * tail. The log's writes list the client's pages (alog_append_paged()). The other steps are those
 * of change.c, but two of them wait:
 *
 *   1  place, zone and sequence are noted in the request, and its outcome in the client's page
 *   2  the request is STARTED
 *   3  the record is appended; the index counts it, and does not point to it
 *   4  when all that lies before the record's end is written below, the index points to it
 *   5  the request is answered, or APPLIED
 *
 * Until step 4 gets of the key find the old record, and other changes of the key wait in `behind`.
 * So does the begin of a backup, which would have records that do not show. While a request waits
 * there, other values are copied, so the puts that are on their way come to an end.
 *
 * Contract: kvd's thread, state OPEN.
 *
 * Invariants
 *   G1  The client's pages are the request's until all of them are written: it is not answered
 *       before. kvd does not read them, so a wrong CRC is found by the get. A client that changes
 *       them meanwhile, or makes a wrong CRC, damages its own value alone.
 *   G2  A kill before step 4 undoes the append, or the log has made a copy. The sequence tells a
 *       successor whether the record is there (C1 of change.c). If not, the put is done anew.
 *   G3  The record is live from step 3 on: a compaction and a repair copy it, and step 4 points to
 *       the copy (I6 of logged.c).
 *   G4  One change of a key at a time (C2): no other change of the key is between steps 3 and 4,
 *       no eviction of its large value, and no clear, which is a change of every key.
 */
#include <errno.h>

#include "peers/kvd/kvd.h"
#include "xtypes/xkill.h"

bool kvd_paged_meets(struct kvd *k, uint32_t nr)
{
	for (uint32_t i = 0; i < nr && k->paged.nr; i++)
		if (k->now.work[i].c.kind == KV_DELETE_ALL ||
			paged_find(&k->paged, k->now.work[i].id))
			return true;
	return false;
}

/* ---- steps 2 and 3 ---- */

bool kvd_paged_may(const struct kvd *k, const struct kvd_work *w)
{
	return w->left && w->c.value_bytes >= k->paged.least &&
	       w->c.value_at % XSEG_PAGE_SIZE == 0 && k->paged.nr < PAGED_MAX &&
	       !k->q.behind.first;
}

int kvd_paged_append(struct kvd *k, struct xreq *r, struct alog_place *at)
{
	const struct kvd_work *w = &k->now.work[0];
	struct paged_put p = { .r = r, .id = { w->id[0], w->id[1] }, .expiry = w->c.expiry };
	int rc = alog_append_paged(k->log, &k->now.put[0],
		r->page + w->c.value_at / XSEG_PAGE_SIZE, at);

	if (rc)
		return rc;
	p.at = *at;
	paged_add(&k->paged, &p);
	XKILL(KVD_APPENDED);
	kvd_index_expect(k, w->id, at);
	return 0;
}

/* ---- step 4 ---- */

bool kvd_paged_due(struct kvd *k)
{
	const struct paged_put *p = paged_first(&k->paged);

	return p && p->at.end <= alog_written(k->log);
}

/* One that is lost is answered here: nothing points to it, and the old record counts. */
struct xreq *kvd_paged_next(struct kvd *k, uint64_t *end)
{
	while (kvd_paged_due(k)) {
		struct paged_put p = *paged_first(&k->paged);

		paged_pop(&k->paged);
		XKILL(KVD_WRITTEN);
		if (p.lost) {
			peer_answer(k->pp, p.r, -EIO);
			continue;
		}
		kvd_index_show(k, &p);
		kvd_count(k, KS_PUTS, 1);
		XKILL(KVD_INDEXED);
		*end = p.at.end;
		return p.r;
	}
	return NULL;
}

void kvd_paged_leave(struct kvd *k)
{
	for (; k->paged.nr; paged_pop(&k->paged))
		kvd_change_begun(k, paged_first(&k->paged)->r);
}
