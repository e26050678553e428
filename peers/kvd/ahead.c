/* ahead - prefetches what a batch of requests will need: their first lines, and the lines of the index.
 *
 * Contract: kvd's thread. Nothing is changed. What stands in the pages of a client is input: it is
 * copied, and then checked against the page.
 */
#include <string.h>

#include "peers/kvd/kvd.h"

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
