/* value - the bytes of a borrowed value, where the cache has them.
 *
 * Contract: the worker's port; the operation holds its value.
 */
#include <string.h>

#include "peers/memcached/memcached.h"

#define PIECES (MC_VALUE_MAX / 4096 + 2)

uint32_t mc_value_pieces(
	struct mc_op *op, uint32_t from, uint32_t bytes, struct iovec *to, uint32_t room)
{
	struct iovec piece[PIECES];
	uint32_t nr = xseg_kv_data(op->conn->worker->queue, &op->io, piece, PIECES), n = 0;

	for (uint32_t i = 0; i < nr && bytes && n < room; i++) {
		uint32_t skip = from < piece[i].iov_len ? from : (uint32_t)piece[i].iov_len;
		uint32_t take = (uint32_t)piece[i].iov_len - skip;

		from -= skip;
		if (take > bytes)
			take = bytes;
		if (!take)
			continue;
		to[n++] = (struct iovec){ (uint8_t *)piece[i].iov_base + skip, take };
		bytes -= take;
	}
	return n;
}

void mc_value_copy(struct mc_op *op, uint32_t from, uint8_t *to, uint32_t bytes)
{
	struct iovec piece[PIECES];
	uint32_t nr = mc_value_pieces(op, from, bytes, piece, PIECES);

	for (uint32_t i = 0; i < nr; i++) {
		memcpy(to, piece[i].iov_base, piece[i].iov_len);
		to += piece[i].iov_len;
	}
}
