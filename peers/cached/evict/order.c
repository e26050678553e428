/* order - see order.h. */
#include "peers/cached/evict/evict.h"
#include "peers/cached/evict/order.h"
#include "peers/cached/volume/volume.h"

#define OBJECT_LOOKS 64u

/* ---- pages ---- */

static bool may_lose(struct cached *k, uint32_t rec, const struct claim *cl)
{
	return rec == cl->rec ? !cl->owed : !share_is_kept(k, rec);
}

/* As shares.at numbers them. */
static struct clean_list *list_at(struct cached *k, uint32_t at)
{
	return at ? &share_at(k, at - 1)->clean : &memory_of(k)->clean;
}

/* Under mem_lock: the list whose turn it is to lose a page; NULL: none may lose one. */
static struct clean_list *next_list(struct cached *k, const struct claim *cl)
{
	struct shares *s = &volume_of(k)->shares;
	uint32_t nr = nr_shares(k);

	for (uint32_t i = 0; i <= nr + 1; i++) {
		struct clean_list *list = list_at(k, s->at);

		if (s->left && clean_nr(list) &&
			(s->at == 0 || may_lose(k, s->rec[s->at - 1], cl))) {
			s->left--;
			return list;
		}
		s->at = s->at < nr ? s->at + 1 : 0;
		s->left = clean_nr(list_at(k, s->at)) / 16 + 1;
	}
	return NULL;
}

uint32_t order_next_page(struct cached *k, struct clean_list *list, const struct claim *cl)
{
	uint32_t page;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	if (!list)
		list = next_list(k, cl);
	page = list ? clean_turn_locked(k, list) : XLIST_NONE;
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return page;
}

/* By a request or directly; forgets that. */
static bool was_used(struct cached *k, struct object *o, uint32_t b, uint64_t w)
{
	bool touched = slot_has_page(w) && xseg_page_touched(peer_of(k)->seg, slot_page(w));

	if (w & SLOT_REF)
		slot_clear_flag(k, o, b, SLOT_REF);
	return touched || w & SLOT_REF;
}

enum verdict order_verdict(
	struct cport *ps, struct object *o, uint32_t b, uint64_t w, uint32_t rec)
{
	if (!slot_is_evictable(w))
		return VERDICT_DIRTY;
	if (slot_has_page(w) && share_spares(ps->cache, object_volume(o), rec))
		return VERDICT_SPARED;
	return was_used(ps->cache, o, b, w) ? VERDICT_USED : VERDICT_GOES;
}

/* ---- objects ---- */

/* Whether the object may be emptied: not one that is spared, before all others have been passed by
 * as well. Then *all* of it goes. */
static bool may_empty(struct cached *k, struct object *o, bool *all)
{
	*all = false;
	if (atomic_load_explicit(&o->used, memory_order_relaxed) &&
		share_spares(k, object_volume(o), OTHERS)) {
		*all = atomic_fetch_add_explicit(&volume_of(k)->shares.passed, 1,
			       memory_order_relaxed) >= xcache_nr_active(&object_of(k)->xc);
		if (!*all)
			return false;
	}
	atomic_store_explicit(&volume_of(k)->shares.passed, 0, memory_order_relaxed);
	return true;
}

/* Where all that were looked at only pass, each that ends wakes who waits. */
struct object *order_next_object(struct cport *ps, bool *all)
{
	struct cached *k = ps->cache;
	bool spared = false;

	for (unsigned n = 0; n < OBJECT_LOOKS; n++) {
		uint32_t idx = xcache_peek_and_get_lru(&object_of(k)->xc);

		if (idx == XCACHE_NONE)
			return NULL;
		if (!object_passes(&object_of(k)->objects[idx])) {
			if (may_empty(k, &object_of(k)->objects[idx], all))
				return &object_of(k)->objects[idx];
			spared = true;
		}
		xcache_touch(&object_of(k)->xc, idx);
		xcache_put(&object_of(k)->xc, idx);
	}
	if (spared || xcache_nr_free(&object_of(k)->xc))
		memory_port(ps)->freed = true;	/* it goes on in the next round */
	return NULL;
}
