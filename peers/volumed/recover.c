/* recover - restores the lost parts of a damaged catalogue: LOST slots by the record that is
 * believed, orphans by a new record. The command is answered when all of that is on stable storage.
 *
 *   from     to       when                                                   by
 *   IDLE     ASKED    an admin asks, and there is damage                     vd_recover_begin
 *   ASKED    LOOKING  nothing else is on its way to the catalogue; records   look_begin
 *                     are not certain, and an object with records was not
 *                     read when the catalogue was
 *   LOOKING  LOOKING  that page still cannot be read, and there is another   looked
 *                     one of this object, or of the other
 *   LOOKING  MENDING  the same, and there is no other one                    looked
 *   LOOKING  IDLE     it can be read (K3), or the store fails                looked
 *   ASKED    MENDING  nothing else is on its way to the catalogue; else      mend_begin
 *   MENDING  ORPHANS  copy, catalogue and header are written whole           vd_recover_poll
 *   ORPHANS  HEAD     each orphan that can have a name has a record          orphan_next
 *   HEAD     IDLE     the header no longer says that there is damage         recover_end
 *   MENDING, ORPHANS, HEAD  IDLE   a write failed; the command can be given  recover_end
 *                     again
 *
 * The header keeps VD_HEAD_DAMAGED until the end. So after a kill at any step a successor finds
 * damage again, lists the objects again, and goes on with the rest. MENDING writes the copy, the
 * catalogue and the header in this order. If the copy or the catalogue was right before, it
 * is written unchanged and is still right. Only after that a record is added.
 *
 * If a volume was being removed, or cut, when it got lost, the removal or cut is completed.
 *
 * Contract: port 0's thread; nothing blocks. Other commands wait meanwhile (volumed_admin.c).
 *
 * Invariants
 *   K1  No record is given up: a slot is FREE afterwards only if no record of it can be believed.
 *       Then its objects are orphans.
 *   K2  An orphan gets a name that no volume has. One without an identity can only have its own.
 *   K3  Records that were guessed without an object, or without pages of it, are not written over
 *       that object if one of these pages can be read again. It may know volumes that the guess
 *       does not. So each page is tried as it was when the catalogue was read: a try of another
 *       one, or of all at once, may come to another result for ever.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/say/kv.h"
#include "peers/common/log/log.h"
#include "peers/volumed/volumed.h"
#include "xtypes/xstate.h"

#define TO(step) (1u << VD_RECOVER_##step)

static const struct xstates states = {
	.what = "recovery of volumes",
	XSTATE(VD_RECOVER_, IDLE, TO(ASKED)),
	XSTATE(VD_RECOVER_, ASKED, TO(LOOKING) | TO(MENDING)),
	XSTATE(VD_RECOVER_, LOOKING, TO(LOOKING) | TO(MENDING) | TO(IDLE)),
	XSTATE(VD_RECOVER_, MENDING, TO(ORPHANS) | TO(IDLE)),
	XSTATE(VD_RECOVER_, ORPHANS, TO(HEAD) | TO(IDLE)),
	XSTATE(VD_RECOVER_, HEAD, TO(IDLE)),
};

static void step_set(struct vd_recover *rec, enum vd_recover_step step)
{
	xstate_check(&states, rec->step, step);
	rec->step = step;
}

/* ---- names ------------------------------------------------------------------------------- */

/* A volume that is being removed does not need its name (V7). */
static bool is_taken(struct volumed *vd, const char *name)
{
	const struct vd_volume *v = vd_volume_find(vd, name);

	return v && v->meta.state != VD_REMOVING;
}

static void name_by_identity(uint64_t identity, char name[XSEG_NAME_MAX])
{
	memset(name, 0, XSEG_NAME_MAX);
	snprintf(name, XSEG_NAME_MAX, "recovered-%016" PRIx64, identity);
}

bool vd_recover_orphan(struct volumed *vd, const struct vd_orphan *o, struct vd_meta *meta)
{
	uint64_t nr = o->highest < VD_OBJECTS_MAX ? o->highest + 1 : VD_OBJECTS_MAX;

	memset(meta, 0, sizeof(*meta));
	meta->state = VD_LIVE;
	memcpy(meta->name, o->name, sizeof(meta->name));
	if (!vd_prefix_identity(o->prefix, &meta->identity, &meta->object_size)) {
		memset(meta->name, 0, sizeof(meta->name));
		memcpy(meta->name, o->prefix, strlen(o->prefix) - 1);
		meta->object_size = o->object_size ? o->object_size : vd->object_size;
	} else if (!meta->name[0] || is_taken(vd, meta->name)) {
		name_by_identity(meta->identity, meta->name);
	}
	meta->size_bytes = nr * meta->object_size;
	return !is_taken(vd, meta->name);
}

bool vd_recover_lost(struct volumed *vd, const struct vd_volume *v, struct vd_meta *meta)
{
	*meta = vd->catalog.loading->copy[vd_slot_of(vd, v)];
	if (meta->state == VD_REMOVING || !is_taken(vd, meta->name))
		return true;
	if (!meta->identity)
		return false;
	name_by_identity(meta->identity, meta->name);
	return !is_taken(vd, meta->name);
}

/* ---- the end ----------------------------------------------------------------------------- */

static void recover_end(struct peer_port *pp, int rc)
{
	struct vd_recover *rec = &vd_of(pp)->recover;

	step_set(rec, VD_RECOVER_IDLE);
	rec->done(pp, rec->r, rc);
	rec->r = NULL;
}

/* ---- LOST and DAMAGED slots -------------------------------------------------------------- */

/* The objects of a record that cannot be used are an orphan (K1). */
static void orphan_make(struct volumed *vd, const struct vd_meta *meta)
{
	struct vd_orphan *o = vd_orphan_of(vd, meta);

	if (!o || !o->known || !o->nr)
		return;
	o->known = false;
	vd_orphans_add(vd, 1);
}

static void slot_recover(struct peer_port *pp, struct vd_volume *v)
{
	struct volumed *vd = vd_of(pp);
	struct vd_meta free = { .generation = v->meta.generation }, meta;
	enum vd_slot_state was = v->meta.state;
	bool usable = was == VD_LOST && vd_recover_lost(vd, v, &meta);

	if (was == VD_LOST && !usable)
		orphan_make(vd, &vd->catalog.loading->copy[vd_slot_of(vd, v)]);
	vd_volume_become(pp, v, &free);
	if (!usable)
		return;
	vd_volume_become(pp, v, &meta);
	vd->recover.nr++;
	log_info("%s: volume '%s' of %" PRIu64 " bytes is brought back", pp->peer->name, meta.name,
		meta.size_bytes);
}

static void head_count(struct volumed *vd)
{
	struct vd_head *h = &vd->catalog.head;

	h->sum = h->count = 0;
	for (uint32_t slot = 0; slot < VD_SLOTS; slot++) {
		uint64_t sum = vd_meta_sum(&vd->volume[slot].meta, slot);

		h->sum += sum;
		h->count += sum != 0;
	}
}

static void mend_begin(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_catalog *c = &vd->catalog;

	step_set(&vd->recover, VD_RECOVER_MENDING);
	for (struct vd_volume *v = vd->volume; v < vd->volume + VD_SLOTS; v++)
		if (v->meta.state == VD_LOST || v->meta.state == VD_DAMAGED)
			slot_recover(pp, v);
	head_count(vd);
	c->head.generation++;
	c->head.flags = VD_HEAD_DAMAGED;
	c->mend_copy = c->mend_record = UINT64_MAX;
	c->mend_later = 0;
	c->mend_error = 0;
	vd_catalog_mend(pp);
}

/* ---- pages that were given up (K3) ----------------------------------------------------- */

/* The next object with records that was given up, if the others do not prove what it had; else
 * VD_LOAD_END. A recovery that has written some of it before is past that. */
static enum vd_load_step to_look_at(const struct volumed *vd, enum vd_load_step k)
{
	const struct vd_catalog *c = &vd->catalog;

	for (; k <= VD_LOAD_RECORDS; k++)
		if (c->loading->unreadable[k] && (c->head.flags & VD_HEAD_UNSURE) && !c->mends)
			return k;
	return VD_LOAD_END;
}

static void look_begin(struct peer_port *pp, enum vd_load_step first);
static void look_send(struct peer_port *pp);

static void looked(struct peer_port *pp, struct xreq *r)
{
	struct volumed *vd = vd_of(pp);
	struct vd_recover *rec = &vd->recover;
	int64_t result = r->result;

	xseg_req_free(pp->port, r);
	vd->catalog.r = NULL;
	if (result == -EIO) {
		rec->look_slot += VD_PAGE_RECORDS;
		look_send(pp);
		return;
	}
	if (result == -ENOENT) {
		look_begin(pp, rec->looks_at + 1);
		return;
	}
	if (result >= 0)
		rec->readable = vd_load_target(rec->looks_at);
	recover_end(pp, result >= 0 ? -EBUSY : (int)result);
}

/* The next page of that object that was given up; after the last one, the next object. */
static void look_send(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_recover *rec = &vd->recover;
	const struct vd_loading *l = vd->catalog.loading;
	struct xreq *r;
	int rc;

	while (rec->look_slot < VD_SLOTS && !vd_load_is_lost(l, rec->looks_at, rec->look_slot))
		rec->look_slot += VD_PAGE_RECORDS;
	if (rec->look_slot == VD_SLOTS) {
		look_begin(pp, rec->looks_at + 1);
		return;
	}
	step_set(rec, VD_RECOVER_LOOKING);
	r = vd_catalog_request(pp, vd_load_target(rec->looks_at), XSEG_OP_READ,
		(uint64_t)rec->look_slot * VD_RECORD_BYTES, XSEG_PAGE_SIZE, 0);
	if (!r) {
		recover_end(pp, -ENOBUFS);
		return;
	}
	vd->catalog.r = r;
	rc = vd_submit(pp, r, looked);
	if (rc) {
		xseg_req_free(pp->port, r);
		vd->catalog.r = NULL;
		recover_end(pp, rc);
	}
}

/* Mending begins when no object is left to look at. */
static void look_begin(struct peer_port *pp, enum vd_load_step first)
{
	struct vd_recover *rec = &vd_of(pp)->recover;

	rec->looks_at = to_look_at(vd_of(pp), first);
	rec->look_slot = 0;
	if (rec->looks_at == VD_LOAD_END)
		mend_begin(pp);
	else
		look_send(pp);
}

/* ---- orphans ----------------------------------------------------------------------------- */

static void orphan_written(struct peer_port *pp, int rc)
{
	struct volumed *vd = vd_of(pp);
	struct vd_recover *rec = &vd->recover;
	struct vd_orphan *o = vd_orphan_get(vd, rec->orphan);
	struct vd_meta meta = vd->catalog.meta;

	rec->sent = false;
	if (rc) {
		recover_end(pp, rc);
		return;
	}
	o->known = true;
	vd_orphans_add(vd, UINT32_MAX);
	rec->nr++;
	vd_volume_become(pp, rec->v, &meta);
	log_info("%s: volume '%s' of %" PRIu64 " bytes is brought back, by its %" PRIu64
		 " objects", pp->peer->name, meta.name, meta.size_bytes, o->nr);
}

/* The next one that can be brought back; then the header. */
static void orphan_next(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_recover *rec = &vd->recover;
	const struct vd_orphan *o = NULL;
	struct vd_meta meta;

	rec->v = vd_volume_unused(vd);
	for (; rec->v && rec->orphan < VD_ORPHANS; rec->orphan++) {
		o = vd_orphan_get(vd, rec->orphan);
		if (o && vd_recover_orphan(vd, o, &meta))
			break;
		o = NULL;
	}
	if (o) {
		meta.generation = (rec->v->meta.generation + 1) & 0xffff;
		rec->sent = true;
		if (!vd_catalog_write(pp, rec->v, &meta, orphan_written))
			rec->sent = false;
		return;
	}
	step_set(rec, VD_RECOVER_HEAD);
	if (!vd_orphans_nr(vd))
		vd->catalog.head.flags = 0;
	vd_catalog_mend(pp);
}

/* ---- going on ---------------------------------------------------------------------------- */

void vd_recover_begin(struct peer_port *pp, struct xreq *r,
		      void (*done)(struct peer_port *pp, struct xreq *r, int rc))
{
	struct vd_recover *rec = &vd_of(pp)->recover;

	*rec = (struct vd_recover){ .step = rec->step, .r = r, .done = done };
	step_set(rec, VD_RECOVER_ASKED);
}

bool vd_recover_runs(const struct volumed *vd)
{
	return vd->recover.step != VD_RECOVER_IDLE;
}

/* What was to be written whole is written, or was tried: *rc. */
static bool is_mended(const struct vd_catalog *c, int *rc)
{
	*rc = c->mends ? c->mend_error : 0;
	return c->write == VD_WRITE_NONE && (!c->mends || c->mend_error);
}

static void mended(struct peer_port *pp, int rc)
{
	struct volumed *vd = vd_of(pp);
	struct vd_recover *rec = &vd->recover;

	if (!rc && rec->step == VD_RECOVER_MENDING) {
		step_set(rec, VD_RECOVER_ORPHANS);
		/* those that could be written all the same, too */
		memset(vd->catalog.loading->unreadable, 0,
			sizeof(vd->catalog.loading->unreadable));
		return;
	}
	if (!rc)
		vd_damage_set(vd, vd_orphans_nr(vd) ? VD_DAMAGE_ORPHANS : NULL);
	recover_end(pp, rc);
}

void vd_recover_poll(struct peer_port *pp)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	struct vd_recover *rec = &vd_of(pp)->recover;
	int rc;

	if (rec->step == VD_RECOVER_ASKED && c->write == VD_WRITE_NONE)
		look_begin(pp, VD_LOAD_COPY);
	if (rec->step == VD_RECOVER_MENDING && is_mended(c, &rc))
		mended(pp, rc);
	if (rec->step == VD_RECOVER_ORPHANS && !rec->sent && c->write == VD_WRITE_NONE)
		orphan_next(pp);
	if (rec->step == VD_RECOVER_HEAD && is_mended(c, &rc))
		mended(pp, rc);
}

/* ---- in words ---------------------------------------------------------------------------- */

static const char *state_name(enum vd_slot_state state)
{
	return state == VD_REMOVING ? "removing" : state == VD_SHRINKING ? "shrinking" : "ok";
}

/* meta: what it would become. */
static bool add_item(struct kv_text *t, uint32_t i, const char *found_in,
	const struct vd_meta *meta, const struct vd_orphan *o, bool usable)
{
	char prefix[VD_PREFIX_BYTES];

	vd_prefix_make(meta, prefix);
	return kv_add(t,
		"lost=%u found_in=%s name=%s identity=%" PRIu64 " prefix=%s size_bytes=%" PRIu64
		" object_size_bytes=%" PRIu64 " objects=%" PRIu64 " state=%s usable=%s\n",
		i, found_in, meta->name, meta->identity, prefix, meta->size_bytes,
		meta->object_size, o ? o->nr : 0, state_name(meta->state), usable ? "yes" : "no");
}

/* A damaged record, of which no objects are known. */
static bool add_damaged(struct volumed *vd, uint32_t slot, struct kv_text *t)
{
	const struct vd_meta *m = &vd->volume[slot].meta;
	const struct vd_orphan *o = m->name[0] ? vd_orphan_of(vd, m) : NULL;

	if (o && !o->known)
		return true;
	return kv_add(t, "lost=%u found_in=nothing name=%s slot=%u objects=0 usable=no\n", slot,
		m->name, slot);
}

static bool add_slot(struct volumed *vd, uint32_t slot, struct kv_text *t)
{
	const struct vd_volume *v = &vd->volume[slot];
	struct vd_meta meta;
	bool usable;

	if (v->meta.state == VD_DAMAGED)
		return add_damaged(vd, slot, t);
	if (v->meta.state != VD_LOST)
		return true;
	usable = vd_recover_lost(vd, v, &meta);
	return add_item(t, slot, "record", &meta, vd_orphan_of(vd, &meta), usable);
}

static bool add_orphan(struct volumed *vd, uint32_t i, struct kv_text *t)
{
	const struct vd_orphan *o = vd_orphan_get(vd, i);
	struct vd_meta meta;
	bool usable;

	if (!o)
		return true;
	usable = vd_recover_orphan(vd, o, &meta);
	return add_item(t, VD_SLOTS + i, meta.identity || o->object_size ? "objects" : "names",
		&meta, o, usable);
}

uint32_t vd_recover_list(struct volumed *vd, uint32_t i, struct kv_text *t)
{
	for (; i < VD_SLOTS; i++)
		if (!add_slot(vd, i, t))
			return i;
	for (; i < VD_SLOTS + VD_ORPHANS; i++)
		if (!add_orphan(vd, i - VD_SLOTS, t))
			return i;
	return UINT32_MAX;
}
