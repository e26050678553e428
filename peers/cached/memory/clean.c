/* clean - the lists of pages that may be evicted: the order in which they are offered.
 *
 * A page enters a list at its head when its bucket becomes clean, and at its tail if its bucket is
 * unkept (bucket/bucket.h). A page that is offered as a
 * victim goes from the tail to the head, so that other threads look elsewhere (clean_turn_locked).
 * So a list is in order of the last time when its pages became clean or were offered. A volume with
 * a share has a list of its own (evict/share.h). Pages of an extent that leaves are in the list
 * `leaving`, which offers none for new data. evict/order.h says which page goes.
 *
 * Contract: any port's thread. mem_lock guards the lists; it is a leaf, held for a few words' work.
 *
 * Invariants:
 *   G1  Except within one job, a page is in a clean list iff its bucket is VALID, or unpromised and
 *       refused (unpromised.c). If its extent leaves, that is the list `leaving`.
 */
#include "peers/cached/memory/events.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/volume/volume.h"

/* ---- a list ---- */

void clean_init(struct clean_list *list, struct xlist_node *nodes)
{
	xlist_init(&list->pages, nodes);
}

uint32_t clean_first(const struct clean_list *list)
{
	return xlist_head(&list->pages);
}

uint32_t clean_after(const struct clean_list *list, uint32_t page)
{
	return xlist_next(&list->pages, page);
}

/* ---- under mem_lock ---- */

static struct clean_list *list_of(struct cached *k, uint32_t rec)
{
	return rec == OTHERS ? &memory_of(k)->clean : &volume_of(k)->states[rec].share.clean;
}

uint32_t share_list_locked(struct cached *k, uint32_t page)
{
	uint32_t rec = OTHERS;

	if (atomic_load_explicit(&volume_of(k)->shares.nr, memory_order_relaxed))
		rec = page_record(k, page);
	return has_share(k, rec) ? rec : OTHERS;
}

/* The page is in no list. */
static void clean_put(struct cached *k, uint32_t page, bool at_head)
{
	uint32_t rec = page_leaves(k, page) ? OTHERS : share_list_locked(k, page);
	struct clean_list *list = page_leaves(k, page) ? &memory_of(k)->leaving : list_of(k, rec);

	memory_of(k)->page_use[page].list = (uint8_t)rec;
	volume_of(k)->shares.clean += rec != OTHERS;
	if (at_head)
		xlist_push_head(&list->pages, page);
	else
		xlist_push_tail(&list->pages, page);
	/* those that have still to be looked at are the last ones, and this is behind them */
	if (!at_head && list == &memory_of(k)->clean && volume_of(k)->shares.unsorted)
		volume_of(k)->shares.unsorted++;
}

static void clean_take(struct cached *k, uint32_t page, bool from_leaving)
{
	uint32_t rec = memory_of(k)->page_use[page].list;

	xlist_remove(&(from_leaving ? &memory_of(k)->leaving : list_of(k, rec))->pages, page);
	memory_of(k)->page_use[page].list = OTHERS;
	volume_of(k)->shares.clean -= rec != OTHERS;
}

void clean_leave_locked(struct cached *k, uint32_t page)
{
	clean_take(k, page, false);
	clean_put(k, page, true);
}

void clean_stay_locked(struct cached *k, uint32_t page)
{
	clean_take(k, page, true);
	clean_put(k, page, false);
}

uint32_t clean_turn_locked(struct cached *k, struct clean_list *list)
{
	uint32_t page = xlist_tail(&list->pages);

	if (page == XLIST_NONE)
		return XLIST_NONE;
	clean_take(k, page, list == &memory_of(k)->leaving);
	clean_put(k, page, true);
	if (list == &memory_of(k)->clean && volume_of(k)->shares.unsorted)
		volume_of(k)->shares.unsorted--;
	return page;
}

void clean_restore(struct cached *k, uint32_t page)
{
	clean_put(k, page, true);
}

/* ---- buckets become clean, and cease to be ---- */

static void clean_new(struct cport *ps, uint32_t page, bool at_head)
{
	struct cached *k = ps->cache;

	if (page == NO_PAGE)
		return;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	clean_put(k, page, at_head);
	pages_count(k);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	memory_port(ps)->freed = true;
}

void page_clean(struct cport *ps, uint32_t page)
{
	clean_new(ps, page, true);
}

void page_clean_first(struct cport *ps, uint32_t page)
{
	clean_new(ps, page, false);
}

void page_unclean(struct cport *ps, uint32_t page)
{
	struct cached *k = ps->cache;

	if (page == NO_PAGE)
		return;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	clean_take(k, page, page_leaves(k, page));
	pages_count(k);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
}

void page_relist(struct cached *k, uint32_t page)
{
	if (page == NO_PAGE)
		return;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	clean_take(k, page, page_leaves(k, page));
	clean_put(k, page, true);
	pages_count(k);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
}
