/* send - kvd's own requests to the peer below, their targets and pages; and identities of keys.
 *
 * Contract: kvd's thread.
 */
#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "peers/kvd/kvd.h"

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
