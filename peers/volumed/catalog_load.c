/* catalog_load - reads the catalogue, and checks that its three objects fit together.
 *
 * The remains of a kill are mended; anything else is damage (catalog.c has the order in which a
 * change is written).
 *
 *   copy, records, header            state                     then
 *   all three agree, and the header  sound
 *   says so
 *   the copy has one record more,    a change that was not     the copy is written as the records
 *   of the next change               made                      are
 *   copy and records agree, and the  a change that was made    the header is written
 *   header is one change behind
 *   no header; no record has an      an older store, or one    it gets copy and header
 *   identity; the copy has none      that an older program
 *   that the records lack            has changed
 *   none of the three                a new store, if LIST      nothing
 *                                    names no volume's object
 *   anything else, or the header     damage                    see below
 *   says that there was damage
 *
 * Damage. If the records or the copy agree with the header, or are one change ahead of it, all of
 * them are right. If neither is, a record is certain in two cases: the copy has it too, or the copy
 * says nothing of it. Of two other records the newer one is noted, and the slot is LOST. Certain
 * records are served. All objects are listed, to find volumes without a record (orphans.c). Nothing
 * is mended before an admin asks for it (recover.c).
 *
 * A store says EIO of an object that it knows to be wrong, and of a bad sector. An object is read
 * in parts of 1 MiB. A part that is EIO after some tries is given up in the first round. If another
 * part of the object was read, the second round reads it by pages, each once, and gives up only
 * pages (`lost`). The catalogue is not changed until an object with such pages, or a header that
 * was given up, is recovered.
 *
 * An outage looks the same as wrong objects, and may just have ended:
 *
 *   a round over the three gave up    then
 *   nothing                           what was read counts
 *   something, for the first time     the three are read once more
 *   something again                   what was read counts
 *   all                               the store counts as failing, and reading is retried. After an
 *                                     admin has asked for a recovery, one more round counts, if
 *                                     the store can list its objects
 *
 * Contract: port 0's thread. It begins when the predecessor's requests have been drained
 * (`wanted`), and goes on by replies. vd_load_poll() tries it again each second. Meanwhile requests
 * are held.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/common/say/lost.h"
#include "peers/volumed/volumed.h"
#include "xtypes/xkill.h"

#define LOAD_BYTES   (VD_LOAD_PAGES * XSEG_PAGE_SIZE)
#define LOAD_RECORDS (LOAD_BYTES / VD_RECORD_BYTES)
#define LIST_BYTES   (VD_LIST_PAGES * XSEG_PAGE_SIZE)
#define TRIES	     4u				/* of an object that is EIO */
#define TRY_NS	     (VD_RETRY_NS / 10)		/* the first pause between them; each doubles */
_Static_assert(VD_SLOTS % LOAD_RECORDS == 0, "read in whole parts");

static struct vd_loading *loading_of(const struct peer_port *pp)
{
	return vd_of(pp)->catalog.loading;
}

static void load_failed(struct peer_port *pp, int rc)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;

	if (atomic_load_explicit(&c->error, memory_order_relaxed) != rc)
		log_error("%s: cannot read the catalogue of volumes from the peer below: %s; "
			  "I/O waits, trying again each second%s%s%s",
			  pp->peer->name,
			  rc == -ENOTCONN ? "there is none, give one with --downstream"
					  : strerror(-rc),
			c->loading->refused ? "; if all else can be read, run 'xseg -s " : "",
			c->loading->refused ? pp->peer->segment : "",
			c->loading->refused ? " volume recover'" : "");
	atomic_store_explicit(&c->error, rc, memory_order_relaxed);
	c->retry_ns = pp->now_ns + (rc == -ENOTCONN ? VD_CONNECT_NS : VD_RETRY_NS);
}

/* From here on everybody may look (release: partner is the acquire in volumed_request()). */
static void load_end(struct peer_port *pp, enum vd_load load)
{
	struct volumed *vd = vd_of(pp);
	int error = load == VD_FOREIGN ? -EPROTO : 0;
	uint32_t i;

	assert(atomic_load_explicit(&vd->catalog.load, memory_order_relaxed) == VD_LOADING);
	atomic_store_explicit(&vd->catalog.error, error, memory_order_relaxed);
	atomic_store_explicit(&vd->catalog.load, load, memory_order_release);
	vd_direct_follow(vd);
	for (i = 0; i < vd->peer.nr_ports; i++)
		if (i != pp->nr)
			peer_port_kick(&vd->peer.ports[i]);
}

/* ---- what does not fit ------------------------------------------------------------------- */

/* relaxed: it is a text of this program, whoever reads it when */
const char *vd_damage(const struct volumed *vd)
{
	return atomic_load_explicit(&vd->catalog.loading->damage, memory_order_relaxed);
}

void vd_damage_set(struct volumed *vd, const char *damage)
{
	atomic_store_explicit(&vd->catalog.loading->damage, damage, memory_order_relaxed);
}

const char *vd_unreadable(const struct volumed *vd)
{
	for (enum vd_load_step step = VD_LOAD_COPY; step < VD_LOAD_LIST; step++)
		if (vd->catalog.loading->unreadable[step])
			return vd_load_target(step);
	return NULL;
}

/* ---- the end ----------------------------------------------------------------------------- */

static void load_publish(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_catalog *c = &vd->catalog;
	struct vd_volume *v;
	struct vd_meta meta;
	char words[LOST_MAX];
	uint32_t nr, damaged, lost;

	c->next_identity = vd_identities_end(vd);
	for (v = vd->volume; v < vd->volume + VD_SLOTS; v++) {
		meta = v->meta;
		v->meta.state = VD_FREE;
		vd_volume_become(pp, v, &meta);
	}
	nr = atomic_load_explicit(&vd->nr_volumes, memory_order_relaxed);
	damaged = atomic_load_explicit(&vd->nr_damaged, memory_order_relaxed);
	lost = atomic_load_explicit(&vd->nr_lost, memory_order_relaxed) + vd_orphans_nr(vd);
	log_info("%s: serves %u volume%s", pp->peer->name, nr, nr == 1 ? "" : "s");
	if (vd_damage(vd))
		log_error("%s: the catalogue of volumes is damaged: %s, and %s; "
			  "see 'xseg -s %s volume recover --list'",
			pp->peer->name, vd_damage(vd), lost_tell(words, damaged, lost),
			pp->peer->segment);
	XKILL(CATALOG_READ);
	load_end(pp, VD_LOADED);
	if (c->mends)
		vd_catalog_mend(pp);
}

/* ---- what was read, taken together ------------------------------------------------------- */

struct verdict {
	uint64_t sum[2];			/* VD_LOAD_COPY, VD_LOAD_RECORDS */
	uint32_t count[2], damaged[2];
	uint32_t nr_differ, differs;		/* slots; the last one */
	bool right[2];				/* agrees with the header */
	bool ahead[2];				/* would, without its newest record */
	bool has_identity;			/* some record has */
};

static struct vd_meta *meta_of(struct volumed *vd, unsigned which, uint32_t slot)
{
	return which == VD_LOAD_COPY ? &vd->catalog.loading->copy[slot] : &vd->volume[slot].meta;
}

static void verdict_slot(struct volumed *vd, uint32_t slot, struct verdict *t)
{
	struct vd_loading *l = vd->catalog.loading;
	unsigned k;

	for (k = VD_LOAD_COPY; k <= VD_LOAD_RECORDS; k++) {
		t->sum[k] += l->sum[k][slot];
		t->count[k] += l->sum[k][slot] != 0;
		t->damaged[k] += meta_of(vd, k, slot)->state == VD_DAMAGED;
		t->has_identity |= meta_of(vd, k, slot)->identity != 0;
	}
	if (l->sum[0][slot] == l->sum[1][slot])
		return;
	t->nr_differ++;
	t->differs = slot;
}

/* Of a change that was made, or begun, the header does not know. */
static bool is_one_ahead(struct volumed *vd, const struct verdict *t, unsigned k)
{
	const struct vd_head *h = &vd->catalog.loading->head;
	const uint64_t *sum = vd->catalog.loading->sum[k];

	for (uint32_t slot = 0; slot < VD_SLOTS; slot++) {
		const struct vd_meta *m = meta_of(vd, k, slot);

		if (m->change == h->generation + 1 &&
			t->sum[k] - sum[slot] + m->replaced == h->sum &&
			t->count[k] - (sum[slot] != 0) + (m->replaced != 0) == h->count)
			return true;
	}
	return false;
}

/* Neither object was read whole. If the header proves what both say together, the table gets it. */
static bool parts_join(struct volumed *vd)
{
	struct vd_loading *l = vd->catalog.loading;
	uint64_t sum = 0;
	uint32_t count = 0, slot;

	for (slot = 0; slot < VD_SLOTS; slot++) {
		uint64_t one = l->sum[!vd_load_is_lost(l, VD_LOAD_RECORDS, slot)][slot];

		sum += one;
		count += one != 0;
	}
	if (sum != l->head.sum || count != l->head.count)
		return false;
	for (slot = 0; slot < VD_SLOTS; slot++)
		if (vd_load_is_lost(l, VD_LOAD_RECORDS, slot)) {
			vd->volume[slot].meta = l->copy[slot];
			l->sum[VD_LOAD_RECORDS][slot] = l->sum[VD_LOAD_COPY][slot];
		}
	return true;
}

static void verdict_make(struct volumed *vd, struct verdict *t)
{
	struct vd_loading *l = vd->catalog.loading;
	const struct vd_head *h = &l->head;
	bool proves = !l->head_rc && !(h->flags & VD_HEAD_UNSURE);
	unsigned k;

	memset(t, 0, sizeof(*t));
	if (proves && l->unreadable[VD_LOAD_COPY] && l->unreadable[VD_LOAD_RECORDS])
		t->right[VD_LOAD_RECORDS] = parts_join(vd);
	for (uint32_t slot = 0; slot < VD_SLOTS; slot++)
		verdict_slot(vd, slot, t);
	for (k = VD_LOAD_COPY; k <= VD_LOAD_RECORDS; k++) {
		if (!proves || l->unreadable[k] || t->damaged[k])
			continue;
		t->right[k] = t->sum[k] == h->sum && t->count[k] == h->count;
		t->ahead[k] = !t->right[k] && is_one_ahead(vd, t, k);
	}
}

static void mend_part(struct vd_catalog *c, uint32_t slot)
{
	c->mend_copy |= 1ull << slot / VD_PART_RECORDS;
	c->mends = true;
}

/* A change that was not made: the copy is one record ahead. */
static bool is_copy_ahead(struct volumed *vd, const struct verdict *t)
{
	struct vd_loading *l = vd->catalog.loading;
	const struct vd_meta *copy = &l->copy[t->differs];

	return t->right[VD_LOAD_RECORDS] && t->nr_differ == 1 && copy->state != VD_DAMAGED &&
	       copy->change == l->head.generation + 1 &&
	       copy->replaced == l->sum[VD_LOAD_RECORDS][t->differs];
}

/* A change that was made: the header is one behind. */
static bool is_head_behind(const struct verdict *t)
{
	return t->ahead[VD_LOAD_RECORDS] && !t->nr_differ;
}

/* Whether an older program can have made `now` of `then`: it knows no numbers of changes, never
 * makes a slot unused again, and no volume again of one that is gone. */
static bool is_older_change(const struct vd_meta *then, const struct vd_meta *now)
{
	if (now->state == VD_DAMAGED || then->state == VD_DAMAGED || now->change)
		return false;
	if (now->generation != then->generation)
		return true;
	return then->state != VD_FREE && (then->state != VD_REMOVING || now->state == VD_REMOVING ||
						 now->state == VD_FREE);
}

/* No record has an identity, and what the copy says an older program may have changed. */
static bool is_older(struct volumed *vd, const struct verdict *t)
{
	struct vd_loading *l = vd->catalog.loading;

	if (t->has_identity || t->damaged[1] || (l->head_rc && l->head_rc != -ENOENT) ||
		l->unreadable[0] || l->unreadable[1] || l->unreadable[2] || !t->count[1])
		return false;
	for (uint32_t slot = 0; slot < VD_SLOTS; slot++) {
		uint64_t copy = l->sum[0][slot], now = l->sum[1][slot];

		if (copy != now && copy && (!now || !is_older_change(&l->copy[slot],
						    &vd->volume[slot].meta)))
			return false;
	}
	return true;
}

static void bring_over(struct volumed *vd, const struct verdict *t)
{
	struct vd_catalog *c = &vd->catalog;
	struct vd_loading *l = c->loading;

	for (uint32_t slot = 0; slot < VD_SLOTS; slot++)
		if (l->sum[0][slot] != l->sum[1][slot])
			mend_part(c, slot);
	c->head = (struct vd_head){ .generation = l->head_rc ? 0 : l->head.generation + 1,
		.next_identity = l->head_rc ? 1 : l->head.next_identity,
		.sum = t->sum[1], .count = t->count[1] };
	c->mends = true;
}

/* ---- damage ------------------------------------------------------------------------------ */

static const char *damage_of(struct volumed *vd, const struct verdict *t)
{
	struct vd_loading *l = vd->catalog.loading;

	if (t->right[0] && t->right[1])
		return "its recovery has not finished";
	if (l->unreadable[0] && l->unreadable[1] && l->unreadable[2])
		return "the objects " VD_CATALOG ", " VD_CATALOG_COPY " and " VD_CATALOG_HEAD
		       " cannot be read";
	if (l->unreadable[VD_LOAD_RECORDS] && l->unreadable[VD_LOAD_COPY])
		return "the objects " VD_CATALOG " and " VD_CATALOG_COPY " cannot be read";
	if (l->unreadable[VD_LOAD_RECORDS])
		return "the object " VD_CATALOG " cannot be read";
	if (!t->count[1] && (t->count[0] || (!l->head_rc && l->head.count)))
		return "the object " VD_CATALOG " is gone or empty";
	if (l->unreadable[VD_LOAD_HEAD])
		return "the object " VD_CATALOG_HEAD " cannot be read";
	if (l->head_rc == -EBADMSG)
		return "the object " VD_CATALOG_HEAD " is damaged";
	if (!t->count[1] && l->head_rc)
		return "there are objects of volumes, and no catalogue";
	if (l->head_rc)
		return "the object " VD_CATALOG_HEAD " is gone";
	if (t->right[VD_LOAD_RECORDS] || t->ahead[VD_LOAD_RECORDS])
		return l->unreadable[VD_LOAD_COPY] ? "the object " VD_CATALOG_COPY " cannot be read"
		       : !t->count[0] ? "the object " VD_CATALOG_COPY " is gone or empty"
				      : "the object " VD_CATALOG_COPY " does not fit";
	if (t->damaged[1])
		return "records of the object " VD_CATALOG " are damaged";
	if (t->right[VD_LOAD_COPY] || t->ahead[VD_LOAD_COPY])
		return "the object " VD_CATALOG " is cut short, or another one";
	return "its objects are of different times and do not match";
}

/* Neither is known to be right: see the head. */
static void slot_settle(struct volumed *vd, uint32_t slot)
{
	struct vd_loading *l = vd->catalog.loading;
	struct vd_meta *now = &vd->volume[slot].meta, *copy = &l->copy[slot];
	uint64_t sum = l->sum[VD_LOAD_RECORDS][slot], other = l->sum[VD_LOAD_COPY][slot];

	if (sum == other || copy->state == VD_DAMAGED)
		return;
	if (!other && (now->state != VD_DAMAGED || now->name[0]))
		return;
	if (now->state != VD_DAMAGED && sum && now->change > copy->change)
		*copy = *now;
	*now = *copy;
	now->state = copy->state == VD_FREE ? VD_FREE : VD_LOST;
}

/* c->head is such that a successor comes to the same. Returns whether one of the two is right, as
 * the header says. */
static bool head_settle(struct volumed *vd, const struct verdict *t)
{
	struct vd_catalog *c = &vd->catalog;
	struct vd_loading *l = c->loading;
	bool right = t->right[0] || t->right[1];
	unsigned k = t->ahead[VD_LOAD_RECORDS] ? VD_LOAD_RECORDS : VD_LOAD_COPY;

	c->head = l->head;
	c->head.flags = VD_HEAD_DAMAGED;
	if (right)
		return true;
	if (t->ahead[k]) {
		c->head.generation++;
		c->head.sum = t->sum[k];
		c->head.count = t->count[k];
		return true;
	}
	c->head.flags |= VD_HEAD_UNSURE;
	return false;
}

/* No header tells how many changes there were. */
static void head_guess(struct volumed *vd)
{
	struct vd_head *h = &vd->catalog.head;

	*h = (struct vd_head){ .next_identity = 1, .flags = h->flags };
	for (uint32_t slot = 0; slot < VD_SLOTS; slot++)
		if (vd->volume[slot].meta.change > h->generation)
			h->generation = vd->volume[slot].meta.change;
}

static void damage_settle(struct volumed *vd, const struct verdict *t)
{
	struct vd_loading *l = vd->catalog.loading;
	bool sure = head_settle(vd, t);
	bool records = t->right[VD_LOAD_RECORDS] ||
		       (!t->right[VD_LOAD_COPY] && t->ahead[VD_LOAD_RECORDS]);

	for (uint32_t slot = 0; slot < VD_SLOTS; slot++)
		if (!sure)
			slot_settle(vd, slot);
		else if (!records)
			vd->volume[slot].meta = l->copy[slot];
	if (l->head_rc)
		head_guess(vd);
}

static void list_begin(struct peer_port *pp, const char *damage)
{
	struct vd_loading *l = loading_of(pp);

	vd_damage_set(vd_of(pp), damage);
	vd_orphans_know(vd_of(pp));
	l->step = VD_LOAD_LIST;
	l->cursor = 0;
}

static void lost_log(struct peer_port *pp)
{
	struct vd_loading *l = loading_of(pp);
	unsigned k;

	for (k = VD_LOAD_COPY; k <= VD_LOAD_RECORDS; k++)
		if (vd_load_in_part(l, k))
			log_error("%s: %u of the %u pages of the object %s cannot be read: %s",
				pp->peer->name, vd_load_lost_pages(l, k),
				VD_SLOTS / VD_PAGE_RECORDS, vd_load_target(k), strerror(EIO));
	for (k = VD_LOAD_COPY; k <= VD_LOAD_HEAD; k++)
		if (l->unreadable[k] && (k == VD_LOAD_HEAD || !vd_load_in_part(l, k)))
			log_error("%s: the object %s cannot be read: %s", pp->peer->name,
				vd_load_target(k), strerror(EIO));
}

/* All three are read. */
static void load_judge(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_catalog *c = &vd->catalog;
	struct vd_loading *l = c->loading;
	struct verdict t;

	lost_log(pp);
	verdict_make(vd, &t);
	c->head = l->head;
	if (l->head.flags) {
		damage_settle(vd, &t);
		list_begin(pp, damage_of(vd, &t));
		return;
	}
	if (t.right[0] && t.right[1]) {
		/* it is sound */
	} else if (is_copy_ahead(vd, &t)) {
		mend_part(c, t.differs);
	} else if (is_head_behind(&t)) {
		c->head.generation++;
		c->head.sum = t.sum[1];
		c->head.count = t.count[1];
		c->mends = true;
	} else if (is_older(vd, &t)) {
		bring_over(vd, &t);
	} else if (l->head_rc == -ENOENT && !t.count[0] && !t.count[1] && !vd_unreadable(vd)) {
		c->head = (struct vd_head){ .next_identity = 1 };
		list_begin(pp, NULL);
		return;
	} else {
		damage_settle(vd, &t);
		list_begin(pp, damage_of(vd, &t));
		return;
	}
	l->step = VD_LOAD_END;
	load_publish(pp);
}

/* ---- reading ----------------------------------------------------------------------------- */

static void object_begin(struct vd_loading *l, enum vd_load_step step)
{
	l->step = step;
	l->read = l->failed = 0;
	l->piece = LOAD_RECORDS;
}

static void round_begin(struct vd_loading *l)
{
	for (unsigned k = VD_LOAD_COPY; k <= VD_LOAD_RECORDS; k++)
		l->by_pages[k] = vd_load_in_part(l, k);
	memset(l->unreadable, 0, sizeof(l->unreadable));
	memset(l->lost, 0, sizeof(l->lost));
	l->answered = false;
	l->gives_up = l->give_up;
	object_begin(l, VD_LOAD_COPY);
}

/* See the table in the head. */
static bool round_counts(const struct volumed *vd)
{
	const struct vd_loading *l = vd->catalog.loading;

	if (!vd_unreadable(vd))
		return true;
	return l->answered ? l->answered_before : l->gives_up;
}

/* The next object, or all is judged, or read once more. */
static void step_next(struct peer_port *pp)
{
	struct vd_loading *l = loading_of(pp);
	bool answered = l->answered;

	if (l->step != VD_LOAD_HEAD) {
		object_begin(l, l->step + 1);
	} else if (round_counts(vd_of(pp))) {
		load_judge(pp);
	} else {
		l->answered_before = answered;
		l->refused = !answered;
		round_begin(l);
		if (!answered && !l->gives_up)
			load_failed(pp, -EIO);
	}
}

/* That many records have been read, or given up. */
static void records_pass(struct peer_port *pp)
{
	struct vd_loading *l = loading_of(pp);

	l->read += l->piece;
	if (l->read % LOAD_RECORDS == 0)
		l->piece = LOAD_RECORDS;
	if (l->read == VD_SLOTS)
		step_next(pp);
}

static void piece_give_up(struct peer_port *pp)
{
	struct vd_loading *l = loading_of(pp);

	for (uint32_t slot = l->read; slot < l->read + l->piece; slot++) {
		l->lost[l->step][slot / VD_PAGE_RECORDS / 64] |= 1ull
								  << slot / VD_PAGE_RECORDS % 64;
		memset(meta_of(vd_of(pp), l->step, slot), 0, sizeof(struct vd_meta));
		l->sum[l->step][slot] = 0;
	}
	records_pass(pp);
}

/* EIO: the same is asked for again soon, since volumes wait for the catalogue. */
static void piece_failed(struct peer_port *pp)
{
	struct vd_loading *l = loading_of(pp);

	if (!l->unreadable[l->step] && ++l->failed < TRIES) {
		vd_of(pp)->catalog.retry_ns = pp->now_ns + (TRY_NS << (l->failed - 1));
		return;
	}
	l->unreadable[l->step] = true;
	if (l->step == VD_LOAD_HEAD) {
		l->head_rc = -EBADMSG;
		step_next(pp);
	} else if (l->piece > VD_PAGE_RECORDS && l->by_pages[l->step]) {
		l->piece = VD_PAGE_RECORDS;
	} else {
		piece_give_up(pp);
	}
}

bool vd_load_give_up(struct volumed *vd)
{
	struct vd_catalog *c = &vd->catalog;

	c->loading->give_up = c->loading->refused && !c->loading->give_up;
	if (!c->loading->give_up)
		return false;
	c->retry_ns = 0;
	atomic_store_explicit(&c->error, 0, memory_order_relaxed);
	return true;
}

/* Takes in a part that has been read; false: of a foreign version. Nothing is published yet
 * (C1). */
static bool take_records(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_loading *l = vd->catalog.loading;
	uint32_t i, slot;
	const char *rec, *name;
	int rc;

	for (i = 0; i < l->piece; i++) {
		rec = xseg_page(vd->peer.seg, vd->catalog.page[i / VD_PAGE_RECORDS]);
		rec += i % VD_PAGE_RECORDS * VD_RECORD_BYTES;
		slot = l->read + i;
		rc = vd_record_decode(rec, slot, meta_of(vd, l->step, slot));
		l->sum[l->step][slot] = vd_record_sum(rec);
		if (rc == -EPROTO)
			return false;
		name = meta_of(vd, l->step, slot)->name;
		if (rc)
			log_error("%s: record %u of %s is damaged%s%s%s; its slot is left as it is",
				  pp->peer->name, slot, vd_load_target(l->step),
				  *name ? " and was of a volume '" : "", name, *name ? "'" : "");
	}
	XKILL(CATALOG_PART);
	return true;
}

static bool take_head(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_loading *l = vd->catalog.loading;

	l->head_rc = vd_head_decode(xseg_page(vd->peer.seg, vd->catalog.page[0]), &l->head);
	return l->head_rc != -EPROTO;
}

static void load_foreign(struct peer_port *pp)
{
	log_error("%s: the catalogue of volumes is of another version of volumed; nothing is "
		  "served and nothing is changed: start the version that made it",
		pp->peer->name);
	load_end(pp, VD_FOREIGN);
}

static void load_done(struct peer_port *pp, struct xreq *r)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	struct vd_loading *l = c->loading;
	int64_t result = r->result;
	uint32_t size = r->size;

	xseg_req_free(pp->port, r);
	c->r = NULL;
	if (result >= 0 && result < size)
		result = -EIO;		/* what is not there is answered, too, as zeroes */
	if (result < 0 && result != -ENOENT) {
		if (result == -EIO)
			piece_failed(pp);
		else
			load_failed(pp, (int)result);
		return;
	}
	c->retry_ns = 0;
	l->answered = true;
	l->refused = l->give_up = l->gives_up = false;
	if (l->step == VD_LOAD_HEAD ? !take_head(pp) : !take_records(pp))
		load_foreign(pp);
	else if (l->step == VD_LOAD_HEAD)
		step_next(pp);
	else
		records_pass(pp);
}

/* Names of objects; false: the answer has no form. */
static bool take_names(struct peer_port *pp, const struct xreq *r)
{
	struct vd_loading *l = loading_of(pp);
	struct listing_names names;
	char name[XSEG_TARGET_MAX];
	int rc = listing_open(&names, pp->peer->seg, r);

	while (!rc && (rc = listing_next(&names, name)) == 1) {
		vd_orphan_note(vd_of(pp), name);
		rc = 0;
	}
	l->cursor = names.head.next;
	return rc == 0;
}

static void list_over(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);

	if (!vd_damage(vd) && vd_orphans_nr(vd)) {
		vd_damage_set(vd, "there are objects of volumes, and no catalogue");
		vd->catalog.head.flags = VD_HEAD_DAMAGED | VD_HEAD_UNSURE;
	}
	vd_orphans_name(vd);
	loading_of(pp)->step = VD_LOAD_END;
	load_publish(pp);
}

static void list_done(struct peer_port *pp, struct xreq *r)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	struct vd_loading *l = c->loading;
	int64_t result = r->result;

	if (result > 0 && !take_names(pp, r))
		result = -EIO;
	xseg_req_free(pp->port, r);
	c->r = NULL;
	c->retry_ns = 0;
	if (result == -ESTALE) {
		l->cursor = 0;
	} else if (result == -EOPNOTSUPP) {
		l->lists_nothing = true;
		list_over(pp);
	} else if (result <= 0) {
		if (l->gives_up) {		/* the store fails as a whole */
			vd_damage_set(vd_of(pp), NULL);
			vd_orphans_forget(vd_of(pp));
			round_begin(l);
			l->gives_up = false;
		}
		load_failed(pp, result ? (int)result : -EIO);
	} else if (!l->cursor) {
		list_over(pp);
	}
}

static struct xreq *load_request(struct peer_port *pp)
{
	struct vd_loading *l = loading_of(pp);
	const char *target = vd_load_target(l->step);

	if (l->step == VD_LOAD_LIST)
		return vd_catalog_request(
			pp, target, XSEG_OP_LIST, l->cursor, LIST_BYTES, VD_LIST_PAGES);
	if (l->step == VD_LOAD_HEAD)
		return vd_catalog_request(pp, target, XSEG_OP_READ, 0, VD_RECORD_BYTES, 0);
	return vd_catalog_request(pp, target, XSEG_OP_READ, (uint64_t)l->read * VD_RECORD_BYTES,
		l->piece * VD_RECORD_BYTES, 0);
}

/* Pages are cleared first: for an object that was never written a store may answer -ENOENT. */
static void load_send(struct peer_port *pp)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	struct xreq *r = load_request(pp);
	uint32_t i;
	int rc;

	if (!r) {
		load_failed(pp, -ENOBUFS);
		return;
	}
	for (i = 0; i < r->nr_pages; i++)
		memset(xseg_page(pp->peer->seg, r->page[i]), 0, XSEG_PAGE_SIZE);
	c->r = r;
	rc = vd_submit(pp, r, r->op == XSEG_OP_LIST ? list_done : load_done);
	if (rc) {
		c->r = NULL;
		xseg_req_free(pp->port, r);
		load_failed(pp, rc);
	}
}

uint64_t vd_load_poll(struct peer_port *pp)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;

	if (!c->wanted || c->r)
		return PEER_NEVER;
	if (atomic_load_explicit(&c->error, memory_order_relaxed) && vd_stopping(pp))
		return PEER_NEVER;
	if (pp->now_ns >= c->retry_ns)
		load_send(pp);
	return c->r ? PEER_NEVER : c->retry_ns;
}

int vd_load_init(struct volumed *vd)
{
	vd->catalog.loading = calloc(1, sizeof(*vd->catalog.loading));
	if (!vd->catalog.loading)
		return -ENOMEM;
	round_begin(vd->catalog.loading);
	return 0;
}

void vd_load_fini(struct volumed *vd)
{
	free(vd->catalog.loading);
}
