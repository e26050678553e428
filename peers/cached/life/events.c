/* events - defines the calls that a room makes to rooms above it: memory/events.h,
 * volume/events.h, object/events.h, store/events.h.
 */
#include "peers/cached/life/cached.h"
#include "peers/cached/memory/events.h"
#include "peers/cached/object/events.h"
#include "peers/cached/store/events.h"
#include "peers/cached/volume/events.h"

uint32_t page_record(struct cached *k, uint32_t page)
{
	uint32_t b;
	struct object *o = page_object(k, page, &b);

	return o ? object_volume(o) : OTHERS;
}

void record_cleared(struct cached *k, uint32_t rec)
{
	drain_cancel(k, rec);
	full_forget(k, rec);
}

void settings_dropped(struct cached *k, uint32_t rec)
{
	share_set(k, rec, 0, 0);
}

void object_asked(struct cport *ps, struct object *o, unsigned what)
{
	if (what & OBJECT_RECLAIM)
		object_reclaim(ps, o);
	if (what & OBJECT_FLUSH)
		flush_job(ps, o);
}

void object_after(struct cport *ps, struct object *o)
{
	object_reclaim_step(ps, o);
}

void object_filled(struct cport *ps, struct object *o)
{
	object_refill(ps, o);
}

bool bucket_flushed(struct cport *ps, struct object *o, uint32_t b, uint64_t w)
{
	return reclaim_flushed(ps, o, b, w);
}

void entry_freed(struct cached *k, struct object *o)
{
	object_dismiss(k, o);
}

typedef void (*done_fn)(struct cport *ps, struct child *ch, int64_t result);

static const done_fn done[] = {
	[CHILD_LOAD] = load_done,
	[CHILD_EDGE] = edge_done,
	[CHILD_AROUND] = around_done,
	[CHILD_FLUSH] = flush_done,
	[CHILD_DELETE] = delete_done,
	[CHILD_INFO] = info_done,
	[CHILD_SYNC] = sync_done,
	[CHILD_ORPHAN] = orphan_done,
	[CHILD_OWN_SYNC] = own_sync_done,
};

void child_done(struct cport *ps, struct child *ch, int64_t result)
{
	done[ch->kind](ps, ch, result);
}
