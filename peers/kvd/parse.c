/* parse - the parsing of requests: copied once, then checked; and the outcomes of changes.
 *
 * Contract: kvd's thread. All that is read afterwards is kvd's own copy, so a client that changes
 * its pages meanwhile changes nothing (R5 of docs/design/segment.md).
 *
 * Invariants
 *   B1  Each key and value is within the batch, and the CRC of key and value is the client's.
 *   B2  No two changes of a batch are of one key.
 *   B3  A record that a change makes can be read with its key in one request.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/kvd/kvd.h"
#include "xtypes/xcrc.h"

#define SEEN_SLOTS 2048u			/* twice KV_BATCH_MAX and a little */

/* ---- queries ---- */

int kvd_query_parse(struct kvd *k, const struct xreq *r, struct kv_query *q)
{
	uint32_t have = r->nr_pages * XSEG_PAGE_SIZE;

	if (r->offset || r->size < XSEG_PAGE_SIZE || r->size % XSEG_PAGE_SIZE ||
		r->flags & XSEG_REQ_DIRECT || have < r->size || have - r->size < sizeof(*q))
		return -EINVAL;
	have -= r->size + (uint32_t)sizeof(*q);
	xseg_req_read_data(k->peer.seg, r, r->size, q, sizeof(*q));
	if (q->magic != KV_QUERY_MAGIC || !q->kind || q->kind >= KV_NR_QUERIES ||
		q->key_bytes > KV_KEY_MAX || q->key_bytes > have)
		return -EINVAL;
	xseg_req_read_data(k->peer.seg, r, r->size + (uint32_t)sizeof(*q), k->now.key, q->key_bytes);
	return 0;
}

/* ---- parts of large values ---- */

bool kvd_is_part(const struct xreq *r)
{
	return r->nr_pages > xseg_req_span(0, r->size);
}

int kvd_part_parse(struct kvd *k, const struct xreq *r, struct kv_part *part)
{
	if (r->offset || !r->size || r->size % XSEG_PAGE_SIZE || r->size > k->large.t.piece_bytes)
		return -EINVAL;
	xseg_req_read_data(k->peer.seg, r, r->size, part, sizeof(*part));
	return part->magic == KV_PART_MAGIC && part->offset % k->large.t.piece_bytes == 0 ? 0 : -EINVAL;
}

/* ---- changes ---- */

static bool is_within(uint32_t at, uint32_t bytes, uint32_t size)
{
	return at <= size && bytes <= size - at;
}

static bool has_value(uint8_t kind)
{
	return kind == KV_PUT || kind == KV_APPEND || kind == KV_PREPEND || kind == KV_COMMIT;
}

static int too_large(const struct kvd *k, const struct kv_change *c)
{
	log_warn("%s: a value of %u bytes was refused: a key and its value have at most %u bytes "
		"together in one record; put it as a large value", k->peer.name, c->value_bytes,
		k->record_max - ALOG_HEADER_BYTES);
	return -EFBIG;
}

static uint32_t expiry_from_now(const struct kvd *k, uint32_t ttl)
{
	uint64_t expiry = k->time.s + ttl;

	return expiry < UINT32_MAX ? (uint32_t)expiry : UINT32_MAX;
}

static int check(const struct kvd *k, struct kvd_work *w, uint32_t nr)
{
	const struct kv_change *c = &w->c;
	uint32_t value = has_value(c->kind) ? c->value_bytes : 0;

	if (c->kind < KV_PUT || c->kind >= KV_NR_CHANGES || c->condition > KV_IF_VERSION ||
		(!c->key_bytes && c->kind != KV_DROP) || c->key_bytes > KV_KEY_MAX ||
		!is_within(c->key_at, c->key_bytes, k->now.batch_bytes) ||
		!is_within(c->value_at, value, k->now.batch_bytes))
		return -EINVAL;
	if ((kvd_needs_value(c->kind) || c->kind >= KV_HOLD) && nr > 1)
		return -EINVAL;
	if (!kvd_fits(k, c->key_bytes, value + (c->kind == KV_COMMIT ? sizeof(struct kv_large) : 0)))
		return too_large(k, c);
	if (c->flags & KV_TTL && c->expiry)
		w->c.expiry = expiry_from_now(k, c->expiry);
	w->key = k->now.batch + c->key_at;
	w->value = k->now.batch + c->value_at;
	if (has_value(c->kind) && xcrc32c(xcrc32c(0, w->key, c->key_bytes), w->value, value) !=
					  c->data_crc)
		return -EPROTO;
	kvd_identity(k, w->key, c->key_bytes, w->id);
	return 0;
}

/* B2 */
static bool has_twins(const struct kvd *k, uint32_t nr)
{
	static uint16_t seen[SEEN_SLOTS];	/* number + 1; the thread's, which is one */
	const struct kvd_work *w = k->now.work;
	uint32_t at;

	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < nr; i++) {
		for (at = w[i].id[0] % SEEN_SLOTS; seen[at]; at = (at + 1) % SEEN_SLOTS)
			if (w[seen[at] - 1].id[0] == w[i].id[0] &&
				w[seen[at] - 1].id[1] == w[i].id[1])
				return true;
		seen[at] = (uint16_t)(i + 1);
	}
	return false;
}

uint8_t kvd_kind_of(struct kvd *k, const struct xreq *r)
{
	uint8_t kind = 0;

	if (r->size >= sizeof(struct kv_batch) + sizeof(struct kv_change))
		xseg_req_read_data(k->peer.seg, r, sizeof(struct kv_batch) +
				offsetof(struct kv_change, kind), &kind, sizeof(kind));
	return kind;
}

int kvd_batch_parse(struct kvd *k, const struct xreq *r)
{
	struct kv_batch b;
	uint32_t least = sizeof(b) + sizeof(struct kv_change);
	int rc;

	if (r->offset || r->size < least || r->size > XSEG_REQ_BYTES ||
		r->nr_pages < xseg_req_span(0, r->size))
		return -EINVAL;
	k->now.batch_bytes = r->size;
	xseg_req_read_data(k->peer.seg, r, 0, k->now.batch, r->size);
	memcpy(&b, k->now.batch, sizeof(b));
	if (b.magic != KV_BATCH_MAGIC || !b.nr || b.nr > KV_BATCH_MAX ||
		!is_within(sizeof(b), b.nr * (uint32_t)sizeof(struct kv_change), r->size))
		return -EINVAL;
	for (uint32_t i = 0; i < b.nr; i++) {
		struct kvd_work *w = &k->now.work[i];

		*w = (struct kvd_work){ .result = 0 };
		memcpy(&w->c, k->now.batch + sizeof(b) + i * sizeof(w->c), sizeof(w->c));
		rc = check(k, w, b.nr);
		if (rc)
			return rc;
	}
	return b.nr > 1 && has_twins(k, b.nr) ? -EINVAL : b.nr;
}

/* ---- outcomes ---- */

/* What kvd writes into a struct kv_change. */
struct outcome {
	int32_t result;
	uint32_t new_bytes;
	uint64_t new_version, number;
};
_Static_assert(sizeof(struct kv_change) - offsetof(struct kv_change, result) ==
	sizeof(struct outcome), "the outcome is the end of a change");

void kvd_outcome(struct kvd *k, const struct xreq *r, uint32_t i, int result, uint32_t bytes,
	uint64_t version, uint64_t number)
{
	struct outcome o = { .result = result, .new_bytes = bytes, .new_version = version,
		.number = number };
	uint32_t from = (uint32_t)(sizeof(struct kv_batch) + i * sizeof(struct kv_change) +
				   offsetof(struct kv_change, result));

	xseg_req_write_data(k->peer.seg, r, from, &o, sizeof(o));
}
