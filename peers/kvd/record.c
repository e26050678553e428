/* record - kvd's own requests: their targets and pages, reads; identities of keys, and whether a
 * record verifies.
 *
 * Contract: kvd's thread. A job has one read at a time. Its run() is called when the read is back
 * or, after LATER, when there is room for one. It is never called from within kvd_read_record().
 *
 * Invariants
 *   R1  A record counts only if its header verifies at its place, and key and value too where they
 *       are used. What does not verify is EIO, never "not found" and never an older value (K20).
 *   R2  A read that is out keeps its pages. A job that ends has none out.
 */
#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/kvd/kvd.h"
#include "xtypes/xcrc.h"

/* ---- requests, pages, identities ---- */

_Static_assert(crypto_shorthash_siphashx24_BYTES == 16, "an identity");

void kvd_identity(const struct kvd *k, const void *key, uint32_t bytes, uint64_t id[2])
{
	unsigned char out[crypto_shorthash_siphashx24_BYTES];

	crypto_shorthash_siphashx24(out, key, bytes, k->secret);
	memcpy(id, out, sizeof(out));
}

uint32_t kvd_page_of(void *ctx, const void *at)
{
	const struct kvd *k = ctx;
	uint64_t from = (uint64_t)((const uint8_t *)at - k->mem.base);

	assert(from < k->mem.base_bytes);
	return k->mem.extent[from / XSEG_EXTENT_SIZE] +
	       (uint32_t)(from % XSEG_EXTENT_SIZE / XSEG_PAGE_SIZE);
}

void kvd_target(const struct kvd *k, uint64_t zone, struct xreq *r)
{
	char name[XSEG_TARGET_MAX];
	uint32_t len = k->target_len;

	memcpy(name, k->target, len);
	for (int shift = 60; shift >= 0; shift -= 4)
		name[len++] = "0123456789abcdef"[zone >> shift & 15];
	xseg_req_set_target(r, name, len);
}

bool kvd_submit(struct kvd *k, struct xreq *r, struct kvd_context c)
{
	r->volume = k->id;
	if (peer_submit(k->pp, r)) {
		xseg_req_free(k->pp->port, r);
		return false;
	}
	k->context[r->index] = c;
	return true;
}

/* ---- whether it verifies ---- */

static bool bytes_ok(const struct kvd *k, const uint8_t *data, uint64_t zone, uint64_t epoch,
	uint32_t place, uint32_t bytes, bool whole, struct xrecord *rec)
{
	uint32_t n, at;

	if (!xrecord_decode(data, xrecord_seed(alog_uuid(k->log), zone, epoch), place,
		    k->cfg.zone_bytes - place, rec) ||
		rec->type == ALOG_LOST)
		return false;
	if (!whole)
		return true;
	n = rec->key_bytes + rec->value_bytes;
	at = xrecord_data_at(place, rec->key_bytes, rec->flags);
	return at + n <= bytes && xcrc32c(0, data + at, n) == rec->data_crc;
}

bool kvd_record_ok(const struct kvd *k, const struct kvd_read *rd, bool whole,
	struct xrecord *rec)
{
	return rd->result >= 0 && bytes_ok(k, rd->data, rd->zone, rd->epoch, rd->place, rd->bytes,
					  whole, rec);
}

bool kvd_bytes_ok(struct kvd *k, const struct index_entry *e, const uint8_t *data, uint32_t bytes,
	bool whole, struct xrecord *rec)
{
	return bytes_ok(k, data, e->zone, alog_zone_epoch(k->log, e->zone), e->place, bytes, whole,
		rec);
}

void kvd_record_bad(struct kvd *k, uint64_t slot, struct index_entry *e)
{
	if (e->bad)
		return;
	e->bad = true;
	index_set(&k->index, slot, e);
	kvd_count(k, KS_BAD_RECORDS, 1);
	log_error("%s: the record of %u bytes at %u of +%s:%016llx is damaged: a get of its key is "
		"EIO; put the key again, or delete it", k->peer.name, e->bytes, e->place, k->cfg.prefix,
		(unsigned long long)e->zone);
}

/* ---- jobs ---- */

struct kvd_job *kvd_job_get(struct kvd *k, struct xreq *r,
	void (*run)(struct kvd *k, struct kvd_job *j))
{
	struct kvd_job *j = k->jobs.free;
	struct kvd_fact *fact;

	if (!j)
		return NULL;
	k->jobs.free = j->next;
	fact = j->fact;
	*j = (struct kvd_job){ .r = r, .run = run, .fact = fact };
	k->jobs.nr++;
	return j;
}

void kvd_job_put(struct kvd *k, struct kvd_job *j)
{
	assert(!j->out);
	kvd_read_put(k, j);
	j->r = NULL;
	j->next = k->jobs.free;
	k->jobs.free = j;
	k->jobs.nr--;
}

void kvd_job_answer(struct kvd *k, struct kvd_job *j, int64_t result)
{
	struct xreq *r = j->r;

	kvd_job_put(k, j);
	peer_answer(k->pp, r, result);
}

/* ---- reads ---- */

struct kvd_read **kvd_read_list(struct kvd *k, const struct kvd_read *rd)
{
	uint32_t i = (uint32_t)(rd - k->reads.read);

	return i < KVD_BIG_READS			  ? &k->reads.big_free
	       : i < KVD_BIG_READS + KVD_SMALL_READS ? &k->reads.small_free
						     : &k->reads.ahead_free;
}

static struct kvd_read **list_for(struct kvd *k, uint32_t pages)
{
	return pages <= KVD_SMALL_PAGES && k->reads.small_free ? &k->reads.small_free
							       : &k->reads.big_free;
}

static struct kvd_read *get_read(struct kvd_read **list)
{
	struct kvd_read *rd = *list;

	if (rd)
		*list = rd->next;
	return rd;
}

void kvd_read_put(struct kvd *k, struct kvd_job *j)
{
	struct kvd_read *rd = j->read, **list;

	if (!rd)
		return;
	list = kvd_read_list(k, rd);
	rd->job = NULL;
	rd->next = *list;
	*list = rd;
	j->read = NULL;
}

static bool send_read(struct kvd *k, struct kvd_read *rd)
{
	struct xreq *r = xseg_req_alloc(k->pp->port);
	char target[XSEG_TARGET_MAX];
	uint32_t from = rd->place / XSEG_PAGE_SIZE * XSEG_PAGE_SIZE;

	if (!r)
		return false;
	r->op = XSEG_OP_READ;
	r->flags = rd->job->r ? rd->job->r->flags & XSEG_REQ_ONCE : 0;	/* of a query */
	r->offset = r->obj_offset = from;
	r->nr_pages = (uint16_t)xseg_req_span(rd->place, rd->bytes);
	r->size = r->nr_pages * XSEG_PAGE_SIZE;
	assert(r->nr_pages <= rd->nr_pages);
	for (uint32_t i = 0; i < r->nr_pages; i++)
		r->page[i] = kvd_page_of(k, rd->pages + i * XSEG_PAGE_SIZE);
	if (rd->own) {
		alog_own_target(k->log, rd->zone, target);
		xseg_req_set_target(r, target, strlen(target));
	} else {
		kvd_target(k, rd->zone, r);
	}
	if (!kvd_submit(k, r, (struct kvd_context){ .read = rd }))
		return false;
	k->reads.out++;
	return true;
}

void kvd_job_wants(struct kvd *k, struct kvd_job *j)
{
	j->next = NULL;
	*k->jobs.wants_last = j;
	k->jobs.wants_last = &j->next;
}

/* A request has at most 1 MiB, and a longest record at an odd place one page more. */
static uint32_t bounded(const struct index_entry *e, uint32_t bytes)
{
	uint32_t room = XSEG_REQ_BYTES - e->place % XSEG_PAGE_SIZE;

	if (bytes > e->bytes)
		bytes = e->bytes;
	return bytes < room ? bytes : room;
}

/* NULL: none is free now. */
static struct kvd_read *begin_read(struct kvd *k, struct kvd_job *j, struct kvd_read **list,
	uint64_t zone, uint32_t place, uint32_t bytes)
{
	bool may = k->state == KVD_OPEN || k->state == KVD_KEEPING;
	struct kvd_read *rd;

	rd = may ? get_read(list) : NULL;
	if (!rd)
		return NULL;
	j->read = rd;
	rd->job = j;
	rd->zone = zone;
	rd->place = place;
	rd->bytes = bytes;
	rd->own = false;
	rd->data = rd->pages + place % XSEG_PAGE_SIZE;
	rd->result = bytes;
	return rd;
}

static enum kvd_got sent(struct kvd *k, struct kvd_job *j)
{
	j->out = send_read(k, j->read);
	if (j->out)
		return KVD_SENT;
	kvd_read_put(k, j);
	return KVD_LATER;
}

static enum kvd_got try_record(struct kvd *k, struct kvd_job *j, struct kvd_read **list,
	const struct index_entry *e, uint32_t bytes)
{
	struct kvd_read *rd = begin_read(k, j, list, e->zone, e->place, bytes);

	if (!rd)
		return KVD_LATER;
	rd->epoch = alog_zone_epoch(k->log, e->zone);
	if (alog_read_tail(k->log, e->zone, e->place, bytes, (void *)(uintptr_t)rd->data))
		return KVD_HERE;
	return sent(k, j);
}

enum kvd_got kvd_try_record(struct kvd *k, struct kvd_job *j, const struct index_entry *e,
	uint32_t bytes)
{
	bytes = bounded(e, bytes);
	kvd_read_put(k, j);
	return try_record(k, j, list_for(k, xseg_req_span(e->place, bytes)), e, bytes);
}

enum kvd_got kvd_try_ahead(struct kvd *k, struct kvd_job *j, const struct index_entry *e,
	uint32_t bytes)
{
	return try_record(k, j, &k->reads.ahead_free, e, bounded(e, bytes));
}

enum kvd_got kvd_read_record(struct kvd *k, struct kvd_job *j, const struct index_entry *e,
	uint32_t bytes)
{
	enum kvd_got got = kvd_try_record(k, j, e, bytes);

	if (got == KVD_LATER)
		kvd_job_wants(k, j);
	return got;
}

enum kvd_got kvd_read_own(struct kvd *k, struct kvd_job *j, uint64_t zone, uint32_t place,
	uint32_t bytes)
{
	struct kvd_read *rd;
	enum kvd_got got = KVD_LATER;

	kvd_read_put(k, j);
	rd = begin_read(k, j, list_for(k, xseg_req_span(place, bytes)), zone, place, bytes);

	if (rd) {
		rd->own = true;
		got = sent(k, j);
	}
	if (got == KVD_LATER)
		kvd_job_wants(k, j);
	return got;
}

void kvd_read_back(struct kvd *k, struct kvd_read *rd, int64_t result)
{
	struct kvd_job *j = rd->job;

	rd->result = result;
	j->out = false;
	j->run(k, j);
}

/* Those that could not have one at the begin of the call; each asks again, or goes on without. */
void kvd_jobs_poll(struct kvd *k)
{
	struct kvd_job *j, **end = k->jobs.wants_last;

	while ((j = k->jobs.wants_first) && xseg_port_nr_free(k->pp->port) > 2 && k->reads.big_free) {
		bool last = &j->next == end;

		k->jobs.wants_first = j->next;
		if (!k->jobs.wants_first)
			k->jobs.wants_last = &k->jobs.wants_first;
		j->run(k, j);
		if (last)
			break;
	}
}
