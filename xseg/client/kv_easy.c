/* kv_easy - one operation at a time: see kv.h.
 *
 * Contract: the queue's thread; waits.
 */
#include <assert.h>

#include "xseg/client/kv_inside.h"

static int64_t run(struct xseg_kv_queue *q, enum xseg_kv_op op, const void *key,
	uint32_t key_bytes, void *value, uint64_t bytes)
{
	struct xseg_kv_io io = { .op = op,
		.item = { .key = key, .key_bytes = key_bytes, .value = value,
			.value_bytes = bytes } };

	return xseg_kv_run(q, &io);
}

void xs_kv_run_all(struct xseg_kv_queue *q, struct xseg_kv_io *io, uint32_t nr)
{
	int refused[XS_KV_RUN_MAX];

	assert(nr <= XS_KV_RUN_MAX);
	for (uint32_t i = 0; i < nr; i++)
		refused[i] = xseg_kv_submit(q, &io[i]);
	for (uint32_t i = 0; i < nr; i++)
		io[i].result = refused[i] ? refused[i] : xs_kv_wait_for(q, &io[i]);
}

int64_t xseg_kv_get(
	struct xseg_kv_queue *q, const void *key, uint32_t key_bytes, void *buf, uint64_t size)
{
	return run(q, XSEG_KV_GET, key, key_bytes, buf, size);
}

int xseg_kv_put(struct xseg_kv_queue *q, const void *key, uint32_t key_bytes, const void *value,
	uint64_t value_bytes)
{
	/* a put only reads its value */
	return (int)run(
		q, XSEG_KV_PUT, key, key_bytes, (void *)(uintptr_t)value, value_bytes);
}

int xseg_kv_delete(struct xseg_kv_queue *q, const void *key, uint32_t key_bytes)
{
	return (int)run(q, XSEG_KV_DELETE, key, key_bytes, NULL, 0);
}

int xseg_kv_delete_all(struct xseg_kv_queue *q, uint32_t ttl_s)
{
	struct xseg_kv_io io = { .op = XSEG_KV_DELETE_ALL, .item = { .ttl_s = ttl_s } };

	return (int)xseg_kv_run(q, &io);
}

int xseg_kv_exists(struct xseg_kv_queue *q, const void *key, uint32_t key_bytes)
{
	return (int)run(q, XSEG_KV_EXISTS, key, key_bytes, NULL, 0);
}

int xseg_kv_flush(struct xseg_kv_queue *q)
{
	return (int)run(q, XSEG_KV_FLUSH, NULL, 0, NULL, 0);
}
