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
 *       before. A client that changes them meanwhile damages its own value alone.
 *   G2  A kill before step 4 undoes the append, or the log has made a copy. The sequence tells a
 *       successor whether the record is there (C1 of change.c). If not, the put is done anew.
 *   G3  The record is live from step 3 on: a compaction and a repair copy it, and step 4 points to
 *       the copy (I6 of logged.c).
 *   G4  One change of a key at a time (C2): no other change of the key is between steps 3 and 4, and
 *       no clear, which is a change of every key.
 */
#include <assert.h>
#include <errno.h>

#include "peers/kvd/kvd.h"
#include "xtypes/xkill.h"

static struct kvd_paged_put *put_at(struct kvd *k, uint32_t i)
{
	return &k->paged.put[(k->paged.from + i) % KVD_PAGED_MAX];
}

static uint64_t bit_of(const uint64_t id[2])
{
	return 1ull << (id[0] >> 58);
}

static struct kvd_paged_put *find(struct kvd *k, const uint64_t id[2])
{
	if (!(k->paged.ids & bit_of(id)))
		return NULL;
	for (uint32_t i = 0; i < k->paged.nr; i++) {
		struct kvd_paged_put *p = put_at(k, i);

		if (p->id[0] == id[0] && p->id[1] == id[1])
			return p;
	}
	return NULL;
}

bool kvd_paged_meets(struct kvd *k, uint32_t nr)
{
	for (uint32_t i = 0; i < nr && k->paged.nr; i++)
		if (k->now.work[i].c.kind == KV_DELETE_ALL || find(k, k->now.work[i].id))
			return true;
	return false;
}

struct kvd_paged_put *kvd_paged_at(struct kvd *k, const uint64_t id[2], uint64_t zone,
	uint32_t place)
{
	struct kvd_paged_put *p = find(k, id);

	return p && p->at.zone == zone && p->at.place == place ? p : NULL;
}

void kvd_paged_lost(struct kvd *k, uint64_t zone)
{
	for (uint32_t i = 0; i < k->paged.nr; i++)
		put_at(k, i)->lost |= put_at(k, i)->at.zone == zone;
}

/* ---- steps 2 and 3 ---- */

bool kvd_paged_may(const struct kvd *k, const struct kvd_work *w)
{
	return w->left && w->c.value_bytes >= k->paged.least &&
	       w->c.value_at % XSEG_PAGE_SIZE == 0 && k->paged.nr < KVD_PAGED_MAX &&
	       !k->q.behind.first;
}

int kvd_paged_append(struct kvd *k, struct xreq *r, struct alog_place *at)
{
	const struct kvd_work *w = &k->now.work[0];
	struct kvd_paged_put *p = put_at(k, k->paged.nr);
	int rc = alog_append_paged(k->log, &k->now.put[0],
		r->page + w->c.value_at / XSEG_PAGE_SIZE, at);

	if (rc)
		return rc;
	*p = (struct kvd_paged_put){ .r = r, .id = { w->id[0], w->id[1] }, .at = *at,
		.expiry = w->c.expiry };
	k->paged.nr++;
	k->paged.ids |= bit_of(w->id);
	XKILL(KVD_APPENDED);
	kvd_index_expect(k, w->id, at);
	return 0;
}

/* ---- steps 4 and 5 ---- */

static void show(struct kvd *k, const struct kvd_paged_put *p)
{
	XKILL(KVD_WRITTEN);
	if (p->lost) {				/* nothing points to it: the old record counts */
		peer_answer(k->pp, p->r, -EIO);
		return;
	}
	kvd_index_show(k, p);
	kvd_count(k, KS_PUTS, 1);
	XKILL(KVD_INDEXED);
	kvd_change_done(k, p->r, p->at.end);
}

bool kvd_paged_due(struct kvd *k)
{
	return k->paged.nr && put_at(k, 0)->at.end <= alog_written(k->log);
}

static void forget_first(struct kvd *k)
{
	k->paged.from = (k->paged.from + 1) % KVD_PAGED_MAX;
	k->paged.nr--;
	k->paged.ids = 0;
	for (uint32_t i = 0; i < k->paged.nr; i++)
		k->paged.ids |= bit_of(put_at(k, i)->id);
}

/* In order, but those that meet a put again, which are behind it then. */
static void take_behind(struct kvd *k)
{
	struct kvd_fifo q = k->q.behind;

	if (!q.first)
		return;
	fifo_init(&k->q.behind);
	while (q.first)
		kvd_change_again(k, fifo_pop(&q));
}

void kvd_paged_poll(struct kvd *k)
{
	bool any = false;

	for (; kvd_paged_due(k); any = true) {
		struct kvd_paged_put p = *put_at(k, 0);

		forget_first(k);
		show(k, &p);
	}
	if (any || !k->paged.nr)
		take_behind(k);
}

void kvd_paged_leave(struct kvd *k)
{
	for (; k->paged.nr; forget_first(k))
		kvd_change_begun(k, put_at(k, 0)->r);
}
