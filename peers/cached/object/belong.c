/* belong - the volume that an object belongs to, and the counts of its buckets.
 *
 * Contract: inside the object.
 */
#include <assert.h>

#include "peers/cached/memory/pages.h"
#include "peers/cached/object/object.h"
#include "peers/cached/volume/volume.h"

static void set_record(struct object *o, uint32_t rec)
{
	atomic_store_explicit(&o->volume, (uint16_t)rec, memory_order_relaxed);
}

/* An object with buckets belongs to it no more. */
static void record_let_go(struct cached *k, uint32_t rec)
{
	uint32_t objects = atomic_fetch_sub(&volume_of(k)->states[rec].objects, 1);

	assert(objects > 0);					/* N2 */
}

void object_pin(struct cached *k, struct object *o)
{
	set_record(o, volume_hold(k, object_volume(o), object_entry(k, o)->volume));
}

void object_unpin(struct cached *k, struct object *o)
{
	record_let_go(k, object_volume(o));
}

static uint32_t count_slots(struct cached *k, struct object *o, bool (*is)(uint64_t w))
{
	uint32_t n = 0;

	for (uint32_t b = 0; b < OBJECT_BUCKETS; b++)
		n += is(slot_get(k, o, b));
	return n;
}

static void move_bytes(struct cport *ps, uint32_t from, uint32_t to, enum volume_counter n,
	uint32_t buckets)
{
	volume_add(volume_block(ps, from), n, -((uint64_t)buckets * BUCKET_SIZE));
	volume_add(volume_block(ps, to), n, (uint64_t)buckets * BUCKET_SIZE);
}

/* The object's buckets are counted with another record from now on. */
static void volume_move(struct cport *ps, struct object *o, uint32_t rec)
{
	struct cached *k = ps->cache;
	uint32_t pages = count_slots(k, o, slot_has_page);
	uint32_t old = object_volume(o), new = volume_hold(k, rec, object_entry(k, o)->volume);

	set_record(o, new);
	share_count(k, old, -(int)pages);
	share_count(k, new, (int)pages);
	for (uint32_t b = 0; b < OBJECT_BUCKETS && o->nr[BUCKET_VALID] + o->nr[BUCKET_DIRTY]; b++)
		if (slot_is_evictable(slot_get(k, o, b)))
			page_relist(k, slot_page(slot_get(k, o, b)));
	move_bytes(ps, old, new, VC_USED_BYTES, pages);
	move_bytes(ps, old, new, VC_DIRTY_BYTES, count_slots(k, o, slot_is_promised));
	move_bytes(ps, old, new, VC_UNPROMISED_BYTES, count_slots(k, o, slot_is_unpromised));
	record_let_go(k, old);
}

void object_adopt(struct cport *ps, struct object *o, uint32_t id)
{
	struct cached *k = ps->cache;
	struct arena_object *e = object_entry(k, o);
	uint32_t rec;

	if (object_nr_dirty(o, 0) == 0 && object_nr_dirty(o, 1) == 0)
		e->volume = id;
	rec = volume_find(k, e->volume);
	if (rec == object_volume(o))
		return;
	if (atomic_load_explicit(&o->used, memory_order_relaxed))
		volume_move(ps, o, rec);
	else
		set_record(o, rec);
}
