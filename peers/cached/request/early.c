/* early - copies the data of single-page writes before they are served, for a whole batch at once.
 *
 * Such a copy bypasses the processor's caches (data.h). Its stores have to be complete before a
 * slot may say that they are there. The next instruction that locks waits for them too. That wait
 * costs nearly half of the copy, and a batch has it only once. The copies go to pages that the port
 * has at hand. These pages are free, so their content does not matter. A write that comes to its
 * data later than expected copies it again.
 *
 * A *note* has such a page, which has left the magazine. It also names the request of the data: its
 * index and its place word, which is that of one hold of it and of no other. A write that
 * overwrites a bucket takes that page. A write that has got a page, because its bucket had none,
 * exchanges it for that page. Writes are served in the order of arrival, so a search nearly always
 * ends at the first note that is left.
 *
 * Contract: the port's thread; early_copy() outside of any object.
 *
 * Invariants:
 *   M1  The page of note[i] has all the data of its request, settled, for i from first to nr - 1.
 *   M2  Pages of notes are free, as those of the magazine are. They go back there at the next poll
 *       that looks at everything, or with the next batch, before any of it is served. So a note is
 *       never older than the batch.
 */
#include "peers/cached/memory/pages.h"
#include "peers/cached/request/request.h"
#include "peers/cached/bucket/data.h"
#include "xtypes/xhot.h"

/* It overwrites a bucket, and is of the kind that the short way serves (hit_write). */
static bool is_single(const struct xreq *r)
{
	return r->op == XSEG_OP_WRITE && !r->flags && r->size == BUCKET_SIZE &&
	       r->obj_offset % BUCKET_SIZE == 0;
}

bool early_wanted(const struct cport *ps, struct xreq *const *r, uint32_t nr)
{
	for (uint32_t i = 0; i < nr && request_port(ps)->early.pays; i++)
		if (is_single(r[i]))
			return true;
	return false;
}

XHOT void early_copy(struct cport *ps, struct xreq *const *r, uint32_t nr)
{
	struct xseg *seg = peer_of(ps->cache)->seg;
	struct early *e = &request_port(ps)->early;

	early_forget(ps);
	for (uint32_t i = 0; i < nr && e->nr < EARLY_MAX && memory_port(ps)->nr_magazine; i++) {
		uint32_t page;

		if (!is_single(r[i]))
			continue;
		page = memory_port(ps)->magazine[--memory_port(ps)->nr_magazine];
		data_copy_past(
			xseg_page(seg, page), xseg_page(seg, r[i]->page[0] & XSEG_PAGE_INDEX));
		e->note[e->nr++] = (struct early_note){ r[i]->place, r[i]->index, page };
	}
	data_settle();
}

/* Which note has its data, or nr: none. */
static uint32_t find(const struct early *e, const struct xreq *r)
{
	uint32_t i = e->first;

	while (i < e->nr && (e->note[i].index != r->index || e->note[i].place != r->place))
		i++;
	return i;
}

/* The page of note i; the note has `instead`, and is none any more. */
static uint32_t exchange(struct early *e, uint32_t i, uint32_t instead)
{
	uint32_t page = e->note[i].page;

	e->note[i] = e->note[e->first];
	e->note[e->first++].page = instead;
	return page;
}

bool early_take(struct cport *ps, const struct xreq *r, uint32_t *page)
{
	struct early *e = &request_port(ps)->early;
	uint32_t i = find(e, r);

	if (i == e->nr || pages_wanted(ps->cache))
		return false;
	*page = exchange(e, i, NO_PAGE);
	return true;
}

bool early_change(struct cport *ps, const struct xreq *r, uint32_t *page)
{
	struct early *e = &request_port(ps)->early;
	uint32_t i;

	if (!is_single(r))
		return false;
	e->pays = r->stamp_ns == ps->pp->now_ns;
	i = find(e, r);
	if (i == e->nr)
		return false;
	*page = exchange(e, i, *page);
	return true;
}

void early_forget(struct cport *ps)
{
	struct early *e = &request_port(ps)->early;

	while (e->nr) {
		uint32_t page = e->note[--e->nr].page;

		if (page != NO_PAGE)
			magazine_return(ps, page);
	}
	e->first = 0;
}

uint32_t early_pages(const struct cport *ps)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < request_port(ps)->early.nr; i++)
		nr += request_port(ps)->early.note[i].page != NO_PAGE;
	return nr;
}

void early_check(const struct cport *ps)
{
	const struct early *e = &request_port(ps)->early;

	assert(e->first <= e->nr && e->nr <= EARLY_MAX);
	for (uint32_t i = 0; i < e->nr; i++) {
		uint32_t page = e->note[i].page;

		if (page == NO_PAGE)
			assert(i < e->first);
		else
			assert(page_is_ours(ps->cache, page));
	}
}
