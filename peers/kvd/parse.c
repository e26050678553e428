/* parse - the parsing of a query; and a look at a batch of requests, to prefetch what they need.
 *
 * Contract: kvd's thread. The query and its key are copied once; then what a client does to its
 * pages changes nothing.
 */
#include <errno.h>
#include <string.h>

#include "peers/kvd/kvd.h"

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

/* ---- prefetches ---- */

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

void kvd_prefetch(struct peer_port *pp, struct xreq *const *r, uint32_t nr)
{
	struct kvd *k = kvd_of(pp->peer);
	const uint8_t *page[PEER_TAKE], *key;
	uint32_t bytes;
	uint64_t id[2];

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
		kvd_identity(k, key, bytes, id);
		index_prefetch(&k->index, id[0]);
	}
}
