/* catalog - the volumes' records: their form, and how a change is written to the store.
 *
 * Three objects of the store hold the catalogue. Numbers in them are in the machine's byte order.
 *
 *   ":catalog"       VD_SLOTS records of a sector each, slot n at byte 512 n. So a record is on
 *                    the store whole or not at all. A slot that was never used is all zeroes,
 *                    as are all slots beyond the end of the object
 *   ":catalog.copy"  the same once more
 *   ":catalog.head"  one sector: the number of changes, the next identity, the number of records
 *                    that are not all zeroes, and the sum of all records
 *
 * A record with an identity has version 2, which an older volumed refuses. So has the record of a
 * slot whose last volume had an identity. Others have version 1. A record has the number of the
 * change that wrote it, the sum of the record that it replaced, and the volume's limits. Older
 * programs ignore these. They serve the volume without limits, and a record that they write again
 * has none.
 *
 * Each step of a change is written with FUA. The last columns show the store's contents then, if
 * the step was done:
 *
 *   step       writes                        then                copy   record  header
 *   NONE       nothing
 *   RESERVE    the header: next identity     COPY                old    old     old
 *   COPY       the copy of the record        RECORD              new    old     old
 *   RECORD     the record                    HEAD                new    new     old
 *   HEAD       the header                    NONE                new    new     new
 *   UNDO_HEAD, UNDO_RECORD, UNDO_COPY: the same backwards, each with the old value;   then NONE
 *   MEND_COPY, MEND_RECORD, MEND_HEAD: the parts that were found wrong when the catalogue was read
 *              (or that an older store has not);   then NONE
 *
 * RESERVE is left out if the header has reserved the identity before. A step that fails ends the
 * change, but the store may have done the step. So nothing else is changed before that step is
 * undone (`uncertain`). A kill may come at any step. The store then has one of the four lines
 * above, and a successor can tell which (catalog_load.c).
 *
 * Contract: encode and decode are pure. The rest runs in port 0's thread and does not block.
 *
 * Invariants
 *   C1  Nothing of the catalogue is believed before all of it has been read. If one record is of a
 *       foreign version, no record is used or ever written.
 *   C2  The slot of a damaged or lost record is not written before it is recovered. Its name is not
 *       used again, as far as it can be read. The other volumes are served.
 *   C3  Records are written with FUA.
 *   C4  next_identity only rises, in memory and in each header that is sent. A record with an
 *       identity is sent only after a header with a higher next_identity is on stable storage.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/volumed/volumed.h"
#include "xtypes/xkill.h"
#include "xtypes/xstate.h"

#define RECORD_MAGIC	0x31304c4f56474553ull	/* "SEGVOL01" */
#define HEAD_MAGIC	0x3130444148474553ull	/* "SEGHAD01" */
#define RECORD_OLD	1			/* without an identity */
#define RECORD_VERSION	2
#define HEAD_VERSION	1
#define PART_BYTES	(VD_PART_RECORDS * VD_RECORD_BYTES)

struct record {
	uint64_t magic;
	uint32_t version;
	uint32_t slot;
	uint32_t state;				/* enum vd_slot_state */
	uint32_t generation;
	uint64_t size_bytes, object_size, cut_bytes;
	char name[XSEG_NAME_MAX];
	uint64_t identity, change, replaced;
	uint64_t iops, bandwidth, burst_ns;	/* of its limits */
	uint8_t unused[344];
	uint64_t checksum;			/* xseg_hash() of all before */
};
_Static_assert(sizeof(struct record) == VD_RECORD_BYTES, "a record is a sector");
_Static_assert(offsetof(struct record, checksum) == VD_RECORD_BYTES - 8, "no padding");
_Static_assert(offsetof(struct record, identity) == 112, "what version 1 ends with");
_Static_assert(VD_SLOTS <= VD_OBJECT_MAX / VD_RECORD_BYTES, "the catalogue is one object");
_Static_assert(VD_SLOTS == 64 * VD_PART_RECORDS, "a bit for each part");

struct head {
	uint64_t magic;
	uint32_t version;
	uint32_t flags;				/* VD_HEAD_* */
	uint64_t generation, next_identity, sum;
	uint32_t count, pad;
	uint8_t unused[456];
	uint64_t checksum;			/* as a record's */
};
_Static_assert(sizeof(struct head) == VD_RECORD_BYTES, "the header is a sector");
_Static_assert(offsetof(struct head, checksum) == VD_RECORD_BYTES - 8, "no padding");

/* ---- the form of a record ---------------------------------------------------------------- */

static uint64_t sector_sum(const void *sector)
{
	return xseg_hash(sector, VD_RECORD_BYTES - sizeof(uint64_t));
}

static bool is_zero(const void *sector)
{
	static const char zeroes[VD_RECORD_BYTES];

	return memcmp(sector, zeroes, VD_RECORD_BYTES) == 0;
}

static bool was_never_used(const struct vd_meta *m)
{
	return m->state == VD_FREE && !m->generation && !m->identity && !m->change;
}

void vd_record_encode(const struct vd_meta *meta, uint32_t slot, void *record)
{
	struct record *rec = record;

	memset(rec, 0, sizeof(*rec));
	if (was_never_used(meta))
		return;
	rec->magic = RECORD_MAGIC;
	rec->version = meta->identity ? RECORD_VERSION : RECORD_OLD;
	rec->slot = slot;
	rec->state = meta->state;
	rec->generation = meta->generation;
	rec->size_bytes = meta->size_bytes;
	rec->object_size = meta->object_size;
	rec->cut_bytes = meta->cut_bytes;
	memcpy(rec->name, meta->name, sizeof(rec->name));
	rec->identity = meta->identity;
	rec->change = meta->change;
	rec->replaced = meta->replaced;
	rec->iops = meta->limits.iops;
	rec->bandwidth = meta->limits.bandwidth;
	rec->burst_ns = meta->limits.burst_ns;
	rec->checksum = sector_sum(rec);
}

static bool name_ok(const struct record *rec)
{
	return !rec->name[XSEG_NAME_MAX - 1] && xseg_name_ok(rec->name);
}

static bool volume_ok(const struct record *rec)
{
	if (!name_ok(rec))
		return false;
	if (!vd_object_size_ok(rec->object_size) || !vd_size_ok(rec->size_bytes))
		return false;
	if (rec->state == VD_SHRINKING)
		return vd_size_ok(rec->cut_bytes) && rec->cut_bytes > rec->size_bytes;
	return !rec->cut_bytes;
}

static bool record_ok(const struct record *rec, uint32_t slot)
{
	if (rec->checksum != sector_sum(rec) || rec->slot != slot || rec->generation > 0xffff)
		return false;
	if ((rec->version == RECORD_VERSION) != (rec->identity != 0))
		return false;
	return rec->state == VD_FREE || (rec->state < VD_DAMAGED && volume_ok(rec));
}

static void meta_fill(struct vd_meta *meta, const struct record *rec)
{
	meta->state = (enum vd_slot_state)rec->state;
	meta->generation = rec->generation;
	meta->identity = rec->identity;
	meta->change = rec->change;
	meta->replaced = rec->replaced;
	if (rec->state == VD_FREE)
		return;
	meta->size_bytes = rec->size_bytes;
	meta->object_size = rec->object_size;
	meta->cut_bytes = rec->cut_bytes;
	memcpy(meta->name, rec->name, sizeof(meta->name));
	meta->limits = (struct vd_limits){ rec->iops, rec->bandwidth, rec->burst_ns };
	if (!vd_limits_ok(&meta->limits))
		meta->limits = (struct vd_limits){ 0 };
}

static void damaged_fill(struct vd_meta *meta, const struct record *rec)
{
	meta->state = VD_DAMAGED;
	meta->generation = rec->generation & 0xffff;
	meta->identity = rec->identity;
	if (vd_object_size_ok(rec->object_size))
		meta->object_size = rec->object_size;
	if (name_ok(rec))
		memcpy(meta->name, rec->name, sizeof(meta->name));
}

int vd_record_decode(const void *record, uint32_t slot, struct vd_meta *meta)
{
	struct record rec;

	memcpy(&rec, record, sizeof(rec));
	memset(meta, 0, sizeof(*meta));
	if (is_zero(&rec))
		return 0;
	if (rec.magic == RECORD_MAGIC && rec.version != RECORD_VERSION && rec.version != RECORD_OLD)
		return -EPROTO;
	if (rec.magic != RECORD_MAGIC || !record_ok(&rec, slot)) {
		damaged_fill(meta, &rec);
		return -EBADMSG;
	}
	meta_fill(meta, &rec);
	return 0;
}

/* What an older program wrote may differ from what is encoded of it; so the checksum counts. */
uint64_t vd_record_sum(const void *record)
{
	struct record rec;

	memcpy(&rec, record, sizeof(rec));
	return is_zero(&rec) ? 0 : sector_sum(&rec);
}

uint64_t vd_meta_sum(const struct vd_meta *meta, uint32_t slot)
{
	char record[VD_RECORD_BYTES];

	vd_record_encode(meta, slot, record);
	return vd_record_sum(record);
}

/* ---- the form of the header -------------------------------------------------------------- */

void vd_head_encode(const struct vd_head *head, void *sector)
{
	struct head *h = sector;

	memset(h, 0, sizeof(*h));
	h->magic = HEAD_MAGIC;
	h->version = HEAD_VERSION;
	h->flags = head->flags;
	h->generation = head->generation;
	h->next_identity = head->next_identity;
	h->sum = head->sum;
	h->count = head->count;
	h->checksum = sector_sum(h);
}

int vd_head_decode(const void *sector, struct vd_head *head)
{
	struct head h;

	memcpy(&h, sector, sizeof(h));
	memset(head, 0, sizeof(*head));
	if (is_zero(&h))
		return -ENOENT;
	if (h.magic == HEAD_MAGIC && h.version != HEAD_VERSION)
		return -EPROTO;
	if (h.magic != HEAD_MAGIC || h.checksum != sector_sum(&h) || h.count > VD_SLOTS ||
		!h.next_identity)
		return -EBADMSG;
	*head = (struct vd_head){ .generation = h.generation, .next_identity = h.next_identity,
		.sum = h.sum, .count = h.count, .flags = h.flags };
	return 0;
}

/* ---- an own request ---------------------------------------------------------------------- */

struct xreq *vd_catalog_request(struct peer_port *pp, const char *target, enum xseg_op op,
	uint64_t offset, uint32_t size, uint32_t page)
{
	struct xreq *r = xseg_req_alloc(pp->port);

	if (!r)
		return NULL;
	r->op = (uint8_t)op;
	r->offset = r->obj_offset = offset;
	r->size = size;
	r->nr_pages = (uint16_t)xseg_req_span(op == XSEG_OP_LIST ? 0 : offset, size);
	assert(page + r->nr_pages <= VD_LOAD_PAGES);
	memcpy(r->page, vd_of(pp)->catalog.page + page, r->nr_pages * sizeof(r->page[0]));
	xseg_req_set_target(r, target, strlen(target));
	return r;
}

/* ---- writing a change -------------------------------------------------------------------- */

#define TO(step) (1u << VD_##step)

static const struct xstates states = {
	.what = "write of the catalogue",
	XSTATE(VD_, WRITE_NONE, TO(WRITE_RESERVE) | TO(WRITE_COPY) | TO(UNDO_HEAD) | TO(MEND_COPY) |
		TO(MEND_RECORD) | TO(MEND_HEAD)),
	XSTATE(VD_, WRITE_RESERVE, TO(WRITE_COPY) | TO(WRITE_NONE)),
	XSTATE(VD_, WRITE_COPY, TO(WRITE_RECORD) | TO(WRITE_NONE)),
	XSTATE(VD_, WRITE_RECORD, TO(WRITE_HEAD) | TO(WRITE_NONE)),
	XSTATE(VD_, WRITE_HEAD, TO(WRITE_NONE)),
	XSTATE(VD_, UNDO_HEAD, TO(UNDO_RECORD) | TO(WRITE_NONE)),
	XSTATE(VD_, UNDO_RECORD, TO(UNDO_COPY) | TO(WRITE_NONE)),
	XSTATE(VD_, UNDO_COPY, TO(WRITE_NONE)),
	XSTATE(VD_, MEND_COPY, TO(MEND_COPY) | TO(MEND_RECORD) | TO(MEND_HEAD) | TO(WRITE_NONE)),
	XSTATE(VD_, MEND_RECORD, TO(MEND_COPY) | TO(MEND_RECORD) | TO(MEND_HEAD) | TO(WRITE_NONE)),
	XSTATE(VD_, MEND_HEAD, TO(WRITE_NONE)),
};

static void step_set(struct vd_catalog *c, enum vd_write step)
{
	xstate_check(&states, c->write, step);
	c->write = step;
}

uint64_t vd_identity_take(struct volumed *vd)
{
	return vd->catalog.next_identity++;
}

/* What the header is to say at this step. The identity after the next one is reserved with it, so
 * that most changes need not do that first. */
static struct vd_head head_of(struct volumed *vd)
{
	struct vd_catalog *c = &vd->catalog;
	struct vd_head h = c->head;
	uint64_t old, new;

	h.next_identity = c->next_identity + (c->write == VD_WRITE_HEAD);
	if (h.next_identity < c->head.next_identity)
		h.next_identity = c->head.next_identity;
	if (c->write != VD_WRITE_HEAD)
		return h;
	old = vd_meta_sum(&c->v->meta, vd_slot_of(vd, c->v));
	new = vd_meta_sum(&c->meta, vd_slot_of(vd, c->v));
	h.generation++;
	h.sum += new - old;
	h.count += (uint32_t)(new != 0) - (uint32_t)(old != 0);
	return h;
}

static bool writes_head(enum vd_write step)
{
	return step == VD_WRITE_RESERVE || step == VD_WRITE_HEAD || step == VD_UNDO_HEAD ||
	       step == VD_MEND_HEAD;
}

static bool writes_copy(enum vd_write step)
{
	return step == VD_WRITE_COPY || step == VD_UNDO_COPY || step == VD_MEND_COPY;
}

static struct xreq *head_request(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct xreq *r = vd_catalog_request(
		pp, VD_CATALOG_HEAD, XSEG_OP_WRITE, 0, VD_RECORD_BYTES, 0);
	char sector[VD_RECORD_BYTES];

	vd->catalog.sent = head_of(vd);
	vd_head_encode(&vd->catalog.sent, sector);
	if (r)
		xseg_req_write_data(vd->peer.seg, r, 0, sector, sizeof(sector));
	return r;
}

static struct xreq *record_request(struct peer_port *pp, const char *target)
{
	struct volumed *vd = vd_of(pp);
	struct vd_catalog *c = &vd->catalog;
	bool undo = c->write == VD_UNDO_RECORD || c->write == VD_UNDO_COPY;
	struct vd_volume *v = undo ? c->uncertain : c->v;
	uint32_t slot = vd_slot_of(vd, v);
	struct xreq *r = vd_catalog_request(pp, target, XSEG_OP_WRITE,
		(uint64_t)slot * VD_RECORD_BYTES, VD_RECORD_BYTES, 0);
	char record[VD_RECORD_BYTES];

	vd_record_encode(undo ? &v->meta : &c->meta, slot, record);
	if (r)
		xseg_req_write_data(vd->peer.seg, r, 0, record, sizeof(record));
	return r;
}

/* The first part of those that are to be mended. */
static struct xreq *part_request(struct peer_port *pp, const char *target, uint64_t parts)
{
	struct volumed *vd = vd_of(pp);
	uint32_t first = (uint32_t)__builtin_ctzll(parts) * VD_PART_RECORDS, i;
	struct xreq *r = vd_catalog_request(pp, target, XSEG_OP_WRITE,
		(uint64_t)first * VD_RECORD_BYTES, PART_BYTES, 0);
	char record[VD_RECORD_BYTES];

	for (i = 0; r && i < VD_PART_RECORDS; i++) {
		vd_record_encode(&vd->volume[first + i].meta, first + i, record);
		xseg_req_write_data(
			vd->peer.seg, r, i * VD_RECORD_BYTES, record, sizeof(record));
	}
	return r;
}

static struct xreq *step_request(struct peer_port *pp)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	const char *target = writes_copy(c->write) ? VD_CATALOG_COPY : VD_CATALOG;

	if (writes_head(c->write))
		return head_request(pp);
	if (c->write == VD_MEND_COPY)
		return part_request(pp, target, c->mend_copy);
	if (c->write == VD_MEND_RECORD)
		return part_request(pp, target, c->mend_record);
	return record_request(pp, target);
}

static void step_over(struct peer_port *pp, int rc);
static void step_send(struct peer_port *pp);

/* The object that a step writes, as its loading names it. */
static enum vd_load_step object_of(enum vd_write step)
{
	if (writes_head(step))
		return VD_LOAD_HEAD;
	return writes_copy(step) ? VD_LOAD_COPY : VD_LOAD_RECORDS;
}

/* A store that knows an object to be wrong (one that was cut short, or has another's name) may
 * refuse writes to it too. When the catalogue is recovered such an object is deleted, once, and
 * written as a whole. Nothing is lost by that: the loading could not read it. An object that was
 * read is never deleted, since it may be all that is left when this program is killed next. A copy
 * that was read in part is deleted after the catalogue has been written (`mend_later`). */
static bool may_write_anew(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);

	return vd->recover.step == VD_RECOVER_MENDING &&
	       vd->catalog.loading->unreadable[object_of(vd->catalog.write)];
}

/* `done` gets its answer, or the error that kept it from being sent. */
static void send_for(struct peer_port *pp, struct xreq *r,
		     void (*done)(struct peer_port *pp, struct xreq *r))
{
	int rc;

	vd_of(pp)->catalog.r = r;
	rc = vd_submit(pp, r, done);
	if (rc) {
		r->result = rc;
		done(pp, r);
	}
}

static void deleted(struct peer_port *pp, struct xreq *r)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	int64_t result = r->result;

	xseg_req_free(pp->port, r);
	c->r = NULL;
	if (result < 0 && result != -ENOENT) {
		step_over(pp, (int)result);
		return;
	}
	c->loading->unreadable[object_of(c->write)] = false;
	if (c->write == VD_MEND_COPY)
		c->mend_copy = UINT64_MAX;
	else if (c->write == VD_MEND_RECORD)
		c->mend_record = UINT64_MAX;
	step_send(pp);
}

static void write_anew(struct peer_port *pp)
{
	const char *target = vd_load_target(object_of(vd_of(pp)->catalog.write));
	struct xreq *r = vd_catalog_request(pp, target, XSEG_OP_DELETE, 0, 0, 0);

	if (r)
		send_for(pp, r, deleted);
	else
		step_over(pp, -ENOBUFS);
}

static bool waits_for_records(const struct vd_catalog *c)
{
	return c->write == VD_MEND_COPY && c->mend_record && !c->mend_later &&
	       vd_load_in_part(c->loading, VD_LOAD_COPY);
}

static void write_refused(struct peer_port *pp)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;

	if (!waits_for_records(c)) {
		write_anew(pp);
		return;
	}
	c->mend_later = UINT64_MAX;
	c->mend_copy = 0;
	step_over(pp, 0);
}

static void write_done(struct peer_port *pp, struct xreq *r)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	int64_t result = r->result;
	uint32_t size = r->size;

	xseg_req_free(pp->port, r);
	c->r = NULL;
	if (result >= 0)
		result = result == size ? 0 : -EIO;
	XKILL(RECORD_WRITTEN);
	if (result == -EIO && may_write_anew(pp))
		write_refused(pp);
	else
		step_over(pp, (int)result);
}

static void step_send(struct peer_port *pp)
{
	struct xreq *r = step_request(pp);

	if (!r) {
		step_over(pp, -ENOBUFS);
		return;
	}
	r->flags = XSEG_REQ_FUA;
	send_for(pp, r, write_done);
	XKILL(RECORD_SENT);
}

static void write_begin(struct vd_catalog *c)
{
	/* C4 */
	step_set(c, c->meta.identity >= c->head.next_identity ? VD_WRITE_RESERVE : VD_WRITE_COPY);
}

static enum vd_write mend_next(const struct vd_catalog *c)
{
	return c->mend_copy ? VD_MEND_COPY : c->mend_record ? VD_MEND_RECORD : VD_MEND_HEAD;
}

/* What follows after a step that went well; NONE: that was the last. */
static enum vd_write step_next(struct vd_catalog *c)
{
	switch (c->write) {
	case VD_WRITE_RESERVE:
	case VD_WRITE_COPY:
	case VD_WRITE_RECORD:
	case VD_UNDO_HEAD:
	case VD_UNDO_RECORD:
		return c->write + 1;
	case VD_MEND_COPY:
		c->mend_copy &= c->mend_copy - 1;
		return mend_next(c);
	case VD_MEND_RECORD:
		c->mend_record &= c->mend_record - 1;
		if (!c->mend_record) {
			c->mend_copy |= c->mend_later;
			c->mend_later = 0;
		}
		return mend_next(c);
	default:
		return VD_WRITE_NONE;
	}
}

static void mend_over(struct peer_port *pp, int rc)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;

	if (rc && !c->mend_error)
		log_error("%s: the header and the copy of the catalogue cannot be written: %s; "
			  "volumes are served, but cannot be changed; trying again each second",
			pp->peer->name, strerror(-rc));
	c->mends = rc != 0;
	c->mend_error = rc;
	c->retry_ns = pp->now_ns + VD_RETRY_NS;
}

/* Undoing goes on with what was to be written. */
static void write_over(struct peer_port *pp, enum vd_write last, int rc)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	void (*written)(struct peer_port *, int) = c->written;

	if (last >= VD_WRITE_COPY && last <= VD_WRITE_HEAD)
		c->uncertain = rc ? c->v : NULL;
	else if (last == VD_UNDO_COPY && !rc)
		c->uncertain = NULL;
	if (last == VD_UNDO_COPY && !rc && c->v) {
		write_begin(c);
		step_send(pp);
		return;
	}
	c->v = NULL;
	written(pp, rc);
}

static void step_over(struct peer_port *pp, int rc)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	enum vd_write last = c->write, next;

	if (!rc && writes_head(last))
		c->head = c->sent;
	next = rc ? VD_WRITE_NONE : step_next(c);
	step_set(c, next);
	if (next != VD_WRITE_NONE)
		step_send(pp);
	else if (last >= VD_MEND_COPY)
		mend_over(pp, rc);
	else
		write_over(pp, last, rc);
}

/* True: it is not to be begun now, or is answered already. */
static bool is_kept_back(
	struct peer_port *pp, void (*written)(struct peer_port *, int), bool *answered)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;

	*answered = c->write == VD_WRITE_NONE && c->mends && c->mend_error;
	if (*answered)
		written(pp, c->mend_error);
	return c->write != VD_WRITE_NONE || c->mends;
}

bool vd_catalog_write(struct peer_port *pp, struct vd_volume *v, const struct vd_meta *meta,
		      void (*written)(struct peer_port *pp, int rc))
{
	struct volumed *vd = vd_of(pp);
	struct vd_catalog *c = &vd->catalog;
	bool answered;

	if (is_kept_back(pp, written, &answered))
		return answered;
	c->v = v;
	c->meta = *meta;
	c->meta.change = c->head.generation + 1;
	c->meta.replaced = vd_meta_sum(&v->meta, vd_slot_of(vd, v));
	c->written = written;
	if (c->uncertain)
		step_set(c, VD_UNDO_HEAD);
	else
		write_begin(c);
	step_send(pp);
	return true;
}

bool vd_catalog_undo(struct peer_port *pp, void (*written)(struct peer_port *pp, int rc))
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	bool answered;

	if (is_kept_back(pp, written, &answered))
		return answered;
	if (!c->uncertain) {
		written(pp, 0);
		return true;
	}
	c->v = NULL;
	c->written = written;
	step_set(c, VD_UNDO_HEAD);
	step_send(pp);
	return true;
}

/* ---- mending ----------------------------------------------------------------------------- */

void vd_catalog_mend(struct peer_port *pp)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;

	c->mends = true;
	if (c->write != VD_WRITE_NONE)
		return;
	step_set(c, mend_next(c));
	step_send(pp);
}

uint64_t vd_catalog_poll(struct peer_port *pp)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;

	if (!c->mends || c->write != VD_WRITE_NONE)
		return PEER_NEVER;
	if (vd_stopping(pp) && c->mend_error)
		return PEER_NEVER;
	if (pp->now_ns >= c->retry_ns)
		vd_catalog_mend(pp);
	return c->mends && c->write == VD_WRITE_NONE ? c->retry_ns : PEER_NEVER;
}

const char *vd_load_target(enum vd_load_step step)
{
	static const char *const targets[] = { [VD_LOAD_COPY] = VD_CATALOG_COPY,
		[VD_LOAD_RECORDS] = VD_CATALOG, [VD_LOAD_HEAD] = VD_CATALOG_HEAD,
		[VD_LOAD_LIST] = "" };

	return targets[step];
}

bool vd_load_is_lost(const struct vd_loading *l, unsigned which, uint32_t slot)
{
	uint32_t page = slot / VD_PAGE_RECORDS;

	return l->lost[which][page / 64] >> page % 64 & 1;
}

uint32_t vd_load_lost_pages(const struct vd_loading *l, unsigned which)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < VD_PAGE_WORDS; i++)
		nr += (uint32_t)__builtin_popcountll(l->lost[which][i]);
	return nr;
}

bool vd_load_in_part(const struct vd_loading *l, unsigned which)
{
	uint32_t nr = vd_load_lost_pages(l, which);

	return nr && nr < VD_SLOTS / VD_PAGE_RECORDS;
}
