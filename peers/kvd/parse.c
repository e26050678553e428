/* parse - the parsing of a query.
 *
 * Contract: kvd's thread. The query and its key are copied once; then what a client does to its
 * pages changes nothing.
 */
#include <errno.h>

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
