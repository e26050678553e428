/* parse - the parsing of requests: copied once, then checked; and the outcomes of changes. The
 * value of a put that stands alone is left in the client's pages: it is copied to where its record
 * will stand, and checked there (kvd_lay()).
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

#define ONE_BYTES  ((uint32_t)(sizeof(struct kv_batch) + sizeof(struct kv_change)))
#define LEFT_LEAST 256u				/* bytes of a value that is not copied here */

/* ---- what a batch of requests will need: prefetched, before any is handled ---- */

/* The page in which a request begins to say what it wants. NULL: it is malformed, or has none. */
static const uint8_t *words_of(const struct kvd *k, const struct xreq *r)
{
	uint32_t nr = r->nr_pages, at = r->op == XSEG_OP_READ ? r->size / XSEG_PAGE_SIZE : 0;

	if ((r->op != XSEG_OP_READ && r->op != XSEG_OP_WRITE) || at >= nr || nr > XSEG_REQ_PAGES)
		return NULL;
	return xseg_req_page(k->peer.seg, r, at);
}

/* The key of a query, or of the first change. NULL: it is not in the page. */
static const uint8_t *key_of(const struct xreq *r, const uint8_t *page, uint32_t *bytes)
{
	struct kv_query q;
	struct kv_change c;
	uint32_t at = sizeof(q);

	if (r->op == XSEG_OP_READ) {
		memcpy(&q, page, sizeof(q));
		*bytes = q.key_bytes;
	} else {
		memcpy(&c, page + sizeof(struct kv_batch), sizeof(c));
		at = c.key_at;
		*bytes = c.key_bytes;
	}
	return at < XSEG_PAGE_SIZE && *bytes <= XSEG_PAGE_SIZE - at ? page + at : NULL;
}

/* The key is copied first: its client may change the page meanwhile. */
static void see_ahead(struct kvd *k, const uint8_t *key, uint32_t bytes, uint64_t id[2])
{
	struct kvd_ahead *a = &k->now.ahead;

	if (bytes > KVD_AHEAD_KEY) {
		kvd_identity(k, key, bytes, id);
		return;
	}
	memcpy(a->known[a->nr].key, key, bytes);
	a->known[a->nr].bytes = bytes;
	kvd_identity(k, a->known[a->nr].key, bytes, id);
	memcpy(a->known[a->nr++].id, id, sizeof(a->known[0].id));
}

void kvd_prefetch(struct peer_port *pp, struct xreq *const *r, uint32_t nr)
{
	struct kvd *k = kvd_of(pp->peer);
	const uint8_t *page[PEER_TAKE], *key;
	uint32_t bytes;
	uint64_t id[2];

	k->now.ahead.nr = k->now.ahead.at = 0;
	if (k->state != KVD_OPEN)
		return;
	for (uint32_t i = 0; i < nr; i++) {
		page[i] = words_of(k, r[i]);
		for (uint32_t at = 0; page[i] && at < 192; at += 64)
			__builtin_prefetch(page[i] + at);
	}
	for (uint32_t i = 0; i < nr; i++) {
		key = page[i] ? key_of(r[i], page[i], &bytes) : NULL;
		if (!key)
			continue;
		see_ahead(k, key, bytes, id);
		index_prefetch(&k->index, id[0]);
	}
}

void kvd_identity_seen(struct kvd *k, const void *key, uint32_t bytes, uint64_t id[2])
{
	struct kvd_ahead *a = &k->now.ahead;

	for (uint32_t i = a->at; i < a->nr; i++)
		if (a->known[i].bytes == bytes && !memcmp(a->known[i].key, key, bytes)) {
			memcpy(id, a->known[i].id, sizeof(a->known[i].id));
			a->at = i + 1;
			return;
		}
	kvd_identity(k, key, bytes, id);
}

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
	xseg_req_read_data(k->peer.seg, r, r->size + (uint32_t)sizeof(*q), k->now.key,
		q->key_bytes);
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
	return part->magic == KV_PART_MAGIC && part->offset % k->large.t.piece_bytes == 0 ? 0
											  : -EINVAL;
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

static bool needs_key(uint8_t kind)
{
	return kind != KV_DROP && kind != KV_DELETE_ALL;
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

static int check(struct kvd *k, struct kvd_work *w, uint32_t nr)
{
	const struct kv_change *c = &w->c;
	uint32_t value = has_value(c->kind) ? c->value_bytes : 0;

	if (c->kind < KV_PUT || c->kind >= KV_NR_CHANGES || c->condition > KV_IF_VERSION ||
		(!c->key_bytes && needs_key(c->kind)) || c->key_bytes > KV_KEY_MAX ||
		(c->kind == KV_DELETE_ALL && (c->key_bytes || c->condition)) ||
		!is_within(c->key_at, c->key_bytes, k->now.batch_bytes) ||
		!is_within(c->value_at, value, k->now.batch_bytes))
		return -EINVAL;
	if ((kvd_needs_value(c->kind) || c->kind >= KV_HOLD) && nr > 1)
		return -EINVAL;
	if (!kvd_fits(k, c->key_bytes,
		    value + (c->kind == KV_COMMIT ? sizeof(struct kv_large) : 0)))
		return too_large(k, c);
	if (c->flags & KV_TTL && c->expiry)
		w->c.expiry = expiry_from_now(k, c->expiry);
	w->key = k->now.batch + c->key_at;
	w->value = k->now.batch + c->value_at;
	if (has_value(c->kind) && !w->left &&
		xcrc32c(xcrc32c(0, w->key, c->key_bytes), w->value, value) != c->data_crc)
		return -EPROTO;
	kvd_identity_seen(k, w->key, c->key_bytes, w->id);
	return 0;
}

/* B2 */
static bool has_twins(struct kvd *k, uint32_t nr)
{
	const struct kvd_work *w = k->now.work;
	uint16_t *seen = k->now.seen;
	uint32_t at;

	memset(seen, 0, sizeof(k->now.seen));
	for (uint32_t i = 0; i < nr; i++) {
		for (at = w[i].id[0] % KVD_SEEN; seen[at]; at = (at + 1) % KVD_SEEN)
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

/* A value that stands behind all else. */
static bool may_be_left(const struct kv_batch *b, const struct kv_change *c, uint32_t size)
{
	return b->nr == 1 && c->kind == KV_PUT && c->value_bytes >= LEFT_LEAST &&
	       is_within(c->value_at, c->value_bytes, size) && c->value_at >= ONE_BYTES &&
	       is_within(c->key_at, c->key_bytes, c->value_at);
}

/* The whole batch, or all but the value that is left. */
static bool copy_batch(struct kvd *k, const struct xreq *r)
{
	struct kv_batch b;
	struct kv_change c;
	uint32_t bytes = k->now.batch_bytes;
	bool left;

	xseg_req_read_data(k->peer.seg, r, 0, k->now.batch, ONE_BYTES);
	memcpy(&b, k->now.batch, sizeof(b));
	memcpy(&c, k->now.batch + sizeof(b), sizeof(c));
	left = may_be_left(&b, &c, bytes);
	if (left)
		bytes = c.value_at;
	xseg_req_read_data(k->peer.seg, r, ONE_BYTES, k->now.batch + ONE_BYTES, bytes - ONE_BYTES);
	return left;
}

int kvd_batch_parse(struct kvd *k, const struct xreq *r)
{
	struct kv_batch b;
	uint32_t least = ONE_BYTES;
	bool left;
	int rc;

	if (r->offset || r->size < least || r->size > XSEG_REQ_BYTES ||
		r->nr_pages < xseg_req_span(0, r->size))
		return -EINVAL;
	k->now.batch_bytes = r->size;
	left = copy_batch(k, r);
	memcpy(&b, k->now.batch, sizeof(b));
	if (b.magic != KV_BATCH_MAGIC || !b.nr || b.nr > KV_BATCH_MAX ||
		!is_within(sizeof(b), b.nr * (uint32_t)sizeof(struct kv_change), r->size))
		return -EINVAL;
	for (uint32_t i = 0; i < b.nr; i++) {
		struct kvd_work *w = &k->now.work[i];

		*w = (struct kvd_work){ .left = left };
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
