/* kv_wire_client - requests to kvd as xseg/kv_wire.h has them, for tests: filled, and their answers
 * checked.
 *
 * Contract: the caller has the port and the pages, sends the request and waits. One thread. A page
 * list is `nr` pages of the caller's; a get uses the first of them for its answer and the rest for
 * its query.
 */
#ifndef TESTS_RIG_KV_WIRE_CLIENT_H
#define TESTS_RIG_KV_WIRE_CLIENT_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "peers/alog/record.h"
#include "xseg/kv_wire.h"
#include "xseg/xseg.h"
#include "xtypes/xcrc.h"

struct kw_log {					/* of kvd's KV_INFO */
	uint32_t id;
	uint8_t uuid[16];
	uint32_t paged_least;			/* bytes of a value at a page; 0: as kvd has it */
};

struct kw_change {
	uint8_t kind, condition;
	const void *key, *value;
	uint32_t key_bytes, value_bytes, expiry, client;
	uint64_t version, amount, handle, total;
	/* of the answer */
	int32_t result;
	uint64_t new_version, number;
};

struct kw_value {				/* of a get; points into its pages, or to `copy` */
	uint64_t version;
	uint32_t value_bytes, expiry, client;
	bool large;				/* the value is a struct kv_large and sums */
	uint8_t *copy;				/* the caller's room for the record, 1 MiB */
	const uint8_t *value;
};

static inline void kw_put(struct xseg *seg, struct xreq *r, uint32_t *at, const void *from,
	uint32_t bytes)
{
	if (bytes)
		xseg_req_write_data(seg, r, *at, from, bytes);
	*at += bytes;
}

static inline void kw_pages(struct xreq *r, const uint32_t *page, uint32_t nr)
{
	r->nr_pages = (uint16_t)nr;
	memcpy(r->page, page, nr * sizeof(*page));
}

/* A query with an answer of `pages`. */
static inline void kw_query(struct xseg *seg, struct xreq *r, const struct kw_log *log,
	const struct kv_query *query, const void *key, const uint32_t *page, uint32_t pages)
{
	struct kv_query q = *query;
	uint32_t at = pages * KV_PAGE, more;

	q.magic = KV_QUERY_MAGIC;
	more = xseg_req_span(0, (uint32_t)sizeof(q) + q.key_bytes);
	r->op = XSEG_OP_READ;
	r->flags = 0;
	r->volume = log->id;
	r->offset = 0;
	r->size = pages * KV_PAGE;
	kw_pages(r, page, pages + more);
	kw_put(seg, r, &at, &q, sizeof(q));
	kw_put(seg, r, &at, key, q.key_bytes);
}

/* Where the value of a change stands behind its key: one that is long, and alone, at a page. */
static inline uint32_t kw_value_at(const struct kw_log *log, const struct kw_change *c, uint32_t nr,
	uint32_t at)
{
	uint32_t least = log->paged_least ? log->paged_least : ALOG_PAGED_LEAST;

	return nr == 1 && c->value_bytes >= least ? xrecord_round(at, KV_PAGE) : at;
}

/* A batch. Returns the pages that it takes; 0: more than `nr`. */
static inline uint32_t kw_batch(struct xseg *seg, struct xreq *r, const struct kw_log *log,
	const struct kw_change *c, uint32_t nr, bool fua, const uint32_t *page, uint32_t nr_pages)
{
	struct kv_batch b = { .magic = KV_BATCH_MAGIC, .nr = (uint16_t)nr };
	uint32_t at = (uint32_t)(sizeof(b) + nr * sizeof(struct kv_change)), head = 0, size = at;

	for (uint32_t i = 0; i < nr; i++)
		size = kw_value_at(log, &c[i], nr, size + c[i].key_bytes) + c[i].value_bytes;
	if (xseg_req_span(0, size) > nr_pages)
		return 0;
	r->op = XSEG_OP_WRITE;
	r->flags = fua ? XSEG_REQ_FUA : 0;
	r->volume = log->id;
	r->offset = 0;
	r->size = size;
	kw_pages(r, page, xseg_req_span(0, size));
	kw_put(seg, r, &head, &b, sizeof(b));
	for (uint32_t i = 0; i < nr; i++) {
		struct kv_change w = { .kind = c[i].kind, .condition = c[i].condition,
			.key_bytes = c[i].key_bytes, .value_bytes = c[i].value_bytes,
			.key_at = at, .value_at = kw_value_at(log, &c[i], nr, at + c[i].key_bytes),
			.expiry = c[i].expiry,
			.client = c[i].client, .version = c[i].version, .amount = c[i].amount,
			.handle = c[i].handle, .total = c[i].total };

		w.data_crc = xcrc32c(xcrc32c(0, c[i].key, c[i].key_bytes), c[i].value,
			c[i].value_bytes);
		kw_put(seg, r, &head, &w, sizeof(w));
		kw_put(seg, r, &at, c[i].key, c[i].key_bytes);
		at = w.value_at;
		kw_put(seg, r, &at, c[i].value, c[i].value_bytes);
	}
	return r->nr_pages;
}

/* A PART of so many bytes, whole pages, which the pages have already; the page behind them is the
 * last of the list. */
static inline void kw_part(struct xseg *seg, struct xreq *r, const struct kw_log *log,
	uint64_t handle, uint64_t offset, uint32_t bytes, const uint32_t *page)
{
	struct kv_part part = { .magic = KV_PART_MAGIC, .handle = handle, .offset = offset };

	r->op = XSEG_OP_WRITE;
	r->flags = 0;
	r->volume = log->id;
	r->offset = 0;
	r->size = bytes;
	kw_pages(r, page, bytes / KV_PAGE + 1);
	xseg_req_write_data(seg, r, bytes, &part, sizeof(part));
}

/* The outcomes of a batch that was answered with its size. */
static inline void kw_outcomes(struct xseg *seg, struct xreq *r, struct kw_change *c, uint32_t nr)
{
	struct kv_change w;

	for (uint32_t i = 0; i < nr; i++) {
		xseg_req_read_data(seg, r, (uint32_t)(sizeof(struct kv_batch) + i * sizeof(w)), &w,
			sizeof(w));
		c[i].result = w.result;
		c[i].new_version = w.new_version;
		c[i].number = w.number;
	}
}

/* What a get was answered with. 0; -ENOENT: expired; -EBADMSG: it does not verify, and is to be
 * asked again with *place and *zone; -EMSGSIZE: again with *need pages; or the answer's error. */
static inline int kw_got(struct xseg *seg, struct xreq *r, const struct kw_log *log,
	const void *key, uint32_t key_bytes, struct kw_value *v, uint64_t *zone, uint32_t *place,
	uint32_t *need)
{
	uint64_t where = xseg_req_note(seg, r, KV_NOTE_PLACE),
		 epoch = xseg_req_note(seg, r, KV_NOTE_EPOCH);
	uint32_t begin = epoch & 0xffffff, bytes = (uint32_t)where, at;
	struct xrecord rec;

	if (r->result < 0 && r->result != -EMSGSIZE)
		return (int)r->result;
	*zone = xseg_req_note(seg, r, KV_NOTE_ZONE);
	*place = (uint32_t)(where >> 32);
	*need = xseg_req_span(*place, bytes);
	if (r->result < 0)
		return (int)r->result;
	if (bytes < ALOG_HEADER_BYTES || begin > r->size || bytes > r->size - begin)
		return -EPROTO;
	xseg_req_read_data(seg, r, begin, v->copy, bytes);
	if (!xrecord_decode(v->copy, xrecord_seed(log->uuid, *zone, epoch >> 24), *place, bytes,
		    &rec))
		return -EBADMSG;
	at = xrecord_data_at(*place, rec.key_bytes, rec.flags);
	if (at + rec.key_bytes + rec.value_bytes > bytes ||
		xcrc32c(0, v->copy + at, rec.key_bytes + rec.value_bytes) != rec.data_crc ||
		rec.key_bytes != key_bytes || memcmp(v->copy + at, key, key_bytes))
		return -EBADMSG;
	v->version = rec.version;
	v->value_bytes = rec.value_bytes;
	v->expiry = rec.expiry;
	v->client = rec.client;
	v->large = rec.flags & XRECORD_LARGE;
	v->value = v->copy + at + rec.key_bytes;
	return rec.expiry && rec.expiry <= xseg_req_note(seg, r, KV_NOTE_TIME) ? -ENOENT : 0;
}

#endif
