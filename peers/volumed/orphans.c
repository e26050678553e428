/* orphans - volumes without a record, found by their objects: the names that a LIST gave, by
 * prefix.
 *
 * A prefix that a record names is known: its objects are counted, and it is no orphan. All other
 * prefixes that can be a volume's are orphans. One with an identity tells the size of its objects.
 * One without tells the volume's name instead. An orphan tells the volume's size only as far as its
 * last object.
 *
 * Contract: port 0's thread. Nothing allocates; the table is vd_loading's. If there are more than
 * VD_SLOTS orphans, the rest is passed over, and comes to light when these are brought back.
 */
#include <stdlib.h>
#include <string.h>

#include "peers/volumed/volumed.h"

static bool is_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* The prefix of a volume's object, with the ':'; false: it is none. */
static bool prefix_of(const char *name, char prefix[VD_PREFIX_BYTES])
{
	const char *colon = strrchr(name, ':');
	size_t len = colon ? (size_t)(colon - name) : 0, i;
	uint64_t identity, object_size;

	if (len < 1 || len + 1 >= VD_PREFIX_BYTES || strlen(colon + 1) != 16)
		return false;
	for (i = 1; i <= 16; i++)
		if (!is_digit(colon[i]))
			return false;
	memset(prefix, 0, VD_PREFIX_BYTES);
	memcpy(prefix, name, len);
	if (!xseg_name_ok(prefix) && !vd_prefix_identity(prefix, &identity, &object_size))
		return false;
	prefix[len] = ':';
	return true;
}

/* The place of that prefix, or a free one; NULL: the table is full. */
static struct vd_orphan *orphan_at(struct vd_loading *l, const char *prefix)
{
	uint64_t at = xseg_hash(prefix, strlen(prefix));
	uint32_t i;

	for (i = 0; i < VD_ORPHANS; i++, at++) {
		struct vd_orphan *o = &l->orphan[at % VD_ORPHANS];

		if (!o->prefix[0] || !strcmp(o->prefix, prefix))
			return o;
	}
	return NULL;
}

void vd_orphans_know(struct volumed *vd)
{
	struct vd_loading *l = vd->catalog.loading;
	char prefix[VD_PREFIX_BYTES];
	struct vd_orphan *o;

	for (uint32_t slot = 0; slot < VD_SLOTS; slot++) {
		struct vd_meta *m = &vd->volume[slot].meta;

		if (m->state == VD_FREE || m->state == VD_DAMAGED)
			continue;
		vd_prefix_make(m, prefix);
		o = orphan_at(l, prefix);
		if (!o)
			continue;
		memcpy(o->prefix, prefix, sizeof(prefix));
		o->known = true;
	}
}

void vd_orphans_forget(struct volumed *vd)
{
	struct vd_loading *l = vd->catalog.loading;

	memset(l->orphan, 0, sizeof(l->orphan));
	atomic_store_explicit(&vd->nr_orphans, 0, memory_order_relaxed);
}

uint32_t vd_orphans_nr(const struct volumed *vd)
{
	return atomic_load_explicit(&vd->nr_orphans, memory_order_relaxed);
}

void vd_orphans_add(struct volumed *vd, uint32_t by)
{
	atomic_fetch_add_explicit(&vd->nr_orphans, by, memory_order_relaxed);
}

void vd_orphan_note(struct volumed *vd, const char *name)
{
	struct vd_loading *l = vd->catalog.loading;
	char prefix[VD_PREFIX_BYTES];
	struct vd_orphan *o;
	uint64_t number;

	if (!prefix_of(name, prefix))
		return;
	o = orphan_at(l, prefix);
	if (!o || (!o->prefix[0] && vd_orphans_nr(vd) == VD_SLOTS))
		return;
	vd_orphans_add(vd, !o->prefix[0]);
	memcpy(o->prefix, prefix, sizeof(prefix));
	number = strtoull(strrchr(name, ':') + 1, NULL, 16);
	o->highest = number > o->highest ? number : o->highest;
	o->nr++;
}

/* What a damaged record says may be so: its checksum is of all of it, and so tells of no part. */
void vd_orphans_name(struct volumed *vd)
{
	for (uint32_t slot = 0; slot < VD_SLOTS; slot++) {
		const struct vd_meta *m = &vd->volume[slot].meta;
		struct vd_orphan *o;

		if (m->state != VD_DAMAGED || !m->name[0] || !m->object_size)
			continue;
		o = vd_orphan_of(vd, m);
		if (!o || o->known)
			continue;
		memcpy(o->name, m->name, sizeof(o->name));
		o->object_size = m->object_size;
	}
}

struct vd_orphan *vd_orphan_get(struct volumed *vd, uint32_t i)
{
	struct vd_orphan *o = &vd->catalog.loading->orphan[i];

	return o->prefix[0] && !o->known ? o : NULL;
}

struct vd_orphan *vd_orphan_of(struct volumed *vd, const struct vd_meta *meta)
{
	char prefix[VD_PREFIX_BYTES];
	struct vd_orphan *o;

	vd_prefix_make(meta, prefix);
	o = orphan_at(vd->catalog.loading, prefix);
	return o && o->prefix[0] ? o : NULL;
}

bool vd_orphan_has_name(struct volumed *vd, const char *name)
{
	struct vd_meta meta = { .identity = 0 };
	struct vd_orphan *o;

	if (!vd_orphans_nr(vd))
		return false;
	memcpy(meta.name, name, strlen(name));
	o = vd_orphan_of(vd, &meta);
	return o && !o->known;
}

uint64_t vd_identities_end(struct volumed *vd)
{
	struct vd_loading *l = vd->catalog.loading;
	uint64_t end = l->head_rc ? 1 : l->head.next_identity, identity, object_size;
	uint32_t i;

	for (i = 0; i < VD_SLOTS; i++) {
		const struct vd_meta *m = &vd->volume[i].meta;

		if (m->state != VD_DAMAGED && m->identity >= end)
			end = m->identity + 1;
		if (l->copy[i].state != VD_DAMAGED && l->copy[i].identity >= end)
			end = l->copy[i].identity + 1;
	}
	for (i = 0; i < VD_ORPHANS; i++)
		if (vd_prefix_identity(l->orphan[i].prefix, &identity, &object_size) &&
			identity >= end)
			end = identity + 1;
	return end;
}
