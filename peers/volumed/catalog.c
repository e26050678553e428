/* catalog - the volumes' records, in one object of the store: format, reading all, writing one.
 *
 * The object ":catalog" holds VD_SLOTS records of a sector each; slot n is at byte 512 n, so that a
 * record is on the store whole or not at all. A slot that was never used is all zeroes, as is all
 * that the object does not reach to. Numbers are as the machine has them.
 *
 * Contract: encode and decode are pure. The rest runs in port 0's thread and does not block:
 * reading begins when the predecessor's requests have been drained (`wanted`), goes on by replies,
 * and is tried again each second by vd_catalog_poll() when the store fails. Meanwhile requests are
 * held.
 *
 * Invariants
 *   C1  nothing of the catalogue is believed before all of it has been read: one record of a
 *       foreign version, and none is used or ever written
 *   C2  a damaged record's slot is never written again, nor is its name used again, as far as that
 *       can be read; the other volumes are served
 *   C3  records are written with FUA
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "peers/common/log.h"
#include "peers/volumed/volumed.h"
#include "xtypes/xkill.h"

#define RECORD_MAGIC	0x31304c4f56474553ull	/* "SEGVOL01" */
#define RECORD_VERSION	1
#define LOAD_BYTES	(VD_LOAD_PAGES * XSEG_PAGE_SIZE)
#define LOAD_RECORDS	(LOAD_BYTES / VD_RECORD_BYTES)
#define PAGE_RECORDS	(XSEG_PAGE_SIZE / VD_RECORD_BYTES)

struct record {
	uint64_t magic;
	uint32_t version;
	uint32_t slot;
	uint32_t state;				/* enum vd_slot_state */
	uint32_t generation;
	uint64_t size_bytes, object_size, cut_bytes;
	char name[XSEG_NAME_MAX];
	uint8_t unused[392];
	uint64_t checksum;			/* xseg_hash() of all before */
};
_Static_assert(sizeof(struct record) == VD_RECORD_BYTES, "a record is a sector");
_Static_assert(offsetof(struct record, checksum) == VD_RECORD_BYTES - 8, "no padding");
_Static_assert(VD_SLOTS % LOAD_RECORDS == 0, "read in whole parts");
_Static_assert(VD_SLOTS <= VD_OBJECT_MAX / VD_RECORD_BYTES, "the catalogue is one object");

/* ---- the format -------------------------------------------------------------------------- */

static uint64_t record_sum(const struct record *rec)
{
	return xseg_hash((const char *)rec, offsetof(struct record, checksum));
}

void vd_record_encode(const struct vd_meta *meta, uint32_t slot, void *record)
{
	struct record *rec = record;

	memset(rec, 0, sizeof(*rec));
	rec->magic = RECORD_MAGIC;
	rec->version = RECORD_VERSION;
	rec->slot = slot;
	rec->state = meta->state;
	rec->generation = meta->generation;
	rec->size_bytes = meta->size_bytes;
	rec->object_size = meta->object_size;
	rec->cut_bytes = meta->cut_bytes;
	memcpy(rec->name, meta->name, sizeof(rec->name));
	rec->checksum = record_sum(rec);
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
	if (rec->checksum != record_sum(rec) || rec->slot != slot || rec->generation > 0xffff)
		return false;
	return rec->state == VD_FREE || (rec->state < VD_DAMAGED && volume_ok(rec));
}

int vd_record_decode(const void *record, uint32_t slot, struct vd_meta *meta)
{
	static const struct record never_used;
	struct record rec;

	memcpy(&rec, record, sizeof(rec));
	memset(meta, 0, sizeof(*meta));
	if (memcmp(&rec, &never_used, sizeof(rec)) == 0)
		return 0;
	if (rec.magic == RECORD_MAGIC && rec.version != RECORD_VERSION)
		return -EPROTO;
	if (rec.magic != RECORD_MAGIC || !record_ok(&rec, slot)) {
		meta->state = VD_DAMAGED;
		if (name_ok(&rec))
			memcpy(meta->name, rec.name, sizeof(meta->name));
		return -EBADMSG;
	}
	meta->state = (enum vd_slot_state)rec.state;
	meta->generation = rec.generation;
	if (rec.state == VD_FREE)
		return 0;
	meta->size_bytes = rec.size_bytes;
	meta->object_size = rec.object_size;
	meta->cut_bytes = rec.cut_bytes;
	memcpy(meta->name, rec.name, sizeof(meta->name));
	return 0;
}

/* ---- an own request to the catalogue ----------------------------------------------------- */

static struct xreq *catalog_request(struct peer_port *pp, enum xseg_op op, uint64_t offset,
				    uint32_t size)
{
	static const char target[] = ":catalog";
	struct vd_catalog *c = &vd_of(pp)->catalog;
	struct xreq *r = xseg_req_alloc(pp->port);

	if (!r)
		return NULL;
	r->op = (uint8_t)op;
	r->offset = r->obj_offset = offset;
	r->size = size;
	r->nr_pages = (uint16_t)xseg_req_span(offset, size);
	memcpy(r->page, c->page, r->nr_pages * sizeof(r->page[0]));
	xseg_req_set_target(r, target, sizeof(target) - 1);
	return r;
}

/* ---- writing a record -------------------------------------------------------------------- */

static void write_done(struct peer_port *pp, struct xreq *r)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	int64_t result = r->result;

	xseg_req_free(pp->port, r);
	c->r = NULL;
	if (result >= 0)
		result = result == VD_RECORD_BYTES ? 0 : -EIO;
	XKILL(RECORD_WRITTEN);
	c->written(pp, (int)result);
}

bool vd_catalog_write(struct peer_port *pp, struct vd_volume *v, const struct vd_meta *meta,
		      void (*written)(struct peer_port *pp, int rc))
{
	struct volumed *vd = vd_of(pp);
	struct vd_catalog *c = &vd->catalog;
	uint32_t slot = vd_slot_of(vd, v);
	char record[VD_RECORD_BYTES];
	struct xreq *r;
	int rc;

	if (c->r)
		return false;
	r = catalog_request(pp, XSEG_OP_WRITE, (uint64_t)slot * VD_RECORD_BYTES, VD_RECORD_BYTES);
	if (!r) {
		written(pp, -ENOBUFS);
		return true;
	}
	r->flags = XSEG_REQ_FUA;
	vd_record_encode(meta, slot, record);
	xseg_req_write_data(vd->peer.seg, r, 0, record, sizeof(record));
	c->r = r;
	c->written = written;
	rc = vd_submit(pp, r, write_done);
	if (rc) {
		r->result = rc;
		write_done(pp, r);
	}
	XKILL(RECORD_SENT);
	return true;
}

/* ---- reading all ------------------------------------------------------------------------- */

static void load_failed(struct peer_port *pp, int rc)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;

	if (atomic_load_explicit(&c->error, memory_order_relaxed) != rc)
		log_error("%s: cannot read the catalogue of volumes from the peer below: %s; "
			  "I/O waits, trying again each second",
			  pp->peer->name,
			  rc == -ENOTCONN ? "there is none, give one with --downstream"
					  : strerror(-rc));
	atomic_store_explicit(&c->error, rc, memory_order_relaxed);
	c->retry_ns = pp->now_ns + (rc == -ENOTCONN ? VD_CONNECT_NS : VD_RETRY_NS);
}

/* Takes in a part that has been read; false: of a foreign version. Nothing is published yet
 * (C1). */
static bool load_records(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_catalog *c = &vd->catalog;
	uint32_t i, slot;
	const char *rec, *name;
	int rc;

	for (i = 0; i < LOAD_RECORDS; i++) {
		rec = xseg_page(vd->peer.seg, c->page[i / PAGE_RECORDS]);
		rec += i % PAGE_RECORDS * VD_RECORD_BYTES;
		slot = c->loaded + i;
		rc = vd_record_decode(rec, slot, &vd->volume[slot].meta);
		if (rc == -EPROTO)
			return false;
		name = vd->volume[slot].meta.name;
		if (rc)
			log_error("%s: record %u of the catalogue is damaged%s%s%s; its slot is "
				  "left as it is, the other volumes are served",
				  pp->peer->name, slot, *name ? " and was of a volume '" : "", name,
				  *name ? "'" : "");
	}
	c->loaded += LOAD_RECORDS;
	XKILL(CATALOG_PART);
	return true;
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

static void load_publish(struct peer_port *pp)
{
	struct volumed *vd = vd_of(pp);
	struct vd_volume *v;
	struct vd_meta meta;
	uint32_t nr;

	for (v = vd->volume; v < vd->volume + VD_SLOTS; v++) {
		meta = v->meta;
		v->meta.state = VD_FREE;
		vd_volume_become(pp, v, &meta);
	}
	nr = atomic_load_explicit(&vd->nr_volumes, memory_order_relaxed);
	log_info("%s: serves %u volume%s", pp->peer->name, nr, nr == 1 ? "" : "s");
	XKILL(CATALOG_READ);
	load_end(pp, VD_LOADED);
}

static void load_done(struct peer_port *pp, struct xreq *r)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	int64_t result = r->result;

	xseg_req_free(pp->port, r);
	c->r = NULL;
	if (result >= 0 && result < LOAD_BYTES)
		result = -EIO;		/* what is not there is answered, too, as zeroes */
	if (result < 0 && result != -ENOENT) {
		load_failed(pp, (int)result);
		return;
	}
	if (!load_records(pp)) {
		log_error(
			"%s: the catalogue of volumes is of another version of volumed; nothing is "
			"served and nothing is changed: start the version that made it",
			pp->peer->name);
		load_end(pp, VD_FOREIGN);
		return;
	}
	c->retry_ns = 0;
	if (c->loaded == VD_SLOTS)
		load_publish(pp);
}

/* Pages are cleared first: for an object that was never written a store may answer -ENOENT. */
static void load_send(struct peer_port *pp)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;
	uint64_t from = (uint64_t)c->loaded * VD_RECORD_BYTES;
	struct xreq *r = catalog_request(pp, XSEG_OP_READ, from, LOAD_BYTES);
	uint32_t i;
	int rc;

	if (!r) {
		load_failed(pp, -ENOBUFS);
		return;
	}
	for (i = 0; i < VD_LOAD_PAGES; i++)
		memset(xseg_page(pp->peer->seg, c->page[i]), 0, XSEG_PAGE_SIZE);
	c->r = r;
	rc = vd_submit(pp, r, load_done);
	if (rc) {
		c->r = NULL;
		xseg_req_free(pp->port, r);
		load_failed(pp, rc);
	}
}

uint64_t vd_catalog_poll(struct peer_port *pp)
{
	struct vd_catalog *c = &vd_of(pp)->catalog;

	if (atomic_load_explicit(&c->load, memory_order_relaxed) != VD_LOADING || !c->wanted ||
		c->r)
		return PEER_NEVER;
	if (atomic_load_explicit(&c->error, memory_order_relaxed) && vd_stopping(pp))
		return PEER_NEVER;
	if (pp->now_ns >= c->retry_ns)
		load_send(pp);
	return c->r ? PEER_NEVER : c->retry_ns;
}
