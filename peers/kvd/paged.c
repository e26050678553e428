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
 * Here is the list of those that are between steps 3 and 5. The steps are in change.c.
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
 *   G4  One change of a key at a time (C2): no other change of the key is between steps 3 and 4.
 */
#include "peers/kvd/kvd.h"

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
		if (find(k, k->now.work[i].id))
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

/* ---- the list ---- */

bool kvd_paged_may(const struct kvd *k, const struct kvd_work *w)
{
	return w->left && w->c.value_bytes >= k->paged.least &&
	       w->c.value_at % XSEG_PAGE_SIZE == 0 && k->paged.nr < KVD_PAGED_MAX &&
	       !k->q.behind.first;
}

void kvd_paged_add(struct kvd *k, struct xreq *r, const struct alog_place *at)
{
	const struct kvd_work *w = &k->now.work[0];

	*put_at(k, k->paged.nr++) = (struct kvd_paged_put){ .r = r, .id = { w->id[0], w->id[1] },
		.at = *at, .expiry = w->c.expiry };
	k->paged.ids |= bit_of(w->id);
}

bool kvd_paged_due(struct kvd *k)
{
	return k->paged.nr && put_at(k, 0)->at.end <= alog_written(k->log);
}

struct kvd_paged_put kvd_paged_take(struct kvd *k)
{
	struct kvd_paged_put p = *put_at(k, 0);

	k->paged.from = (k->paged.from + 1) % KVD_PAGED_MAX;
	k->paged.nr--;
	k->paged.ids = 0;
	for (uint32_t i = 0; i < k->paged.nr; i++)
		k->paged.ids |= bit_of(put_at(k, i)->id);
	return p;
}
