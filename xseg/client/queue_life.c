/* queue_life - making and ending queues.
 *
 * A queue is a client of the segment of its own (client.c), so threads share nothing but the
 * volume.
 *
 * Contract: takes the control lock, and waits for it for as long as the volume waits for answers.
 * Any thread may create and destroy a queue, but not while another thread uses it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xseg/client/queue.h"

#define DEPTH_MAX   1024u
#define COPY_BYTES  (128u << 10)
#define OBJECTS	    4096u		/* that reads without a request may know of at a time */

static uint32_t depth_of(const struct xseg_queue_params *params)
{
	return params && params->depth ? params->depth : XSEG_QUEUE_DEPTH;
}

/* Rounded up to whole pages. */
static uint32_t copy_bytes_of(const struct xseg_queue_params *params)
{
	uint32_t bytes = params && params->copy_bytes ? params->copy_bytes : COPY_BYTES;

	return (bytes + XSEG_PAGE_SIZE - 1) / XSEG_PAGE_SIZE * XSEG_PAGE_SIZE;
}

/* Pages for all that is copied at a time. */
static uint64_t memory_of(uint32_t depth, uint32_t copy_bytes)
{
	return (uint64_t)depth * copy_bytes;
}

uint64_t xseg_queue_memory(const struct xseg_queue_params *params)
{
	uint64_t bytes = memory_of(depth_of(params), copy_bytes_of(params));

	return (bytes + XSEG_EXTENT_SIZE - 1) / XSEG_EXTENT_SIZE * XSEG_EXTENT_SIZE;
}

static int take_memory(struct xseg_queue *q, struct xseg_error *err)
{
	uint32_t each = q->copy_bytes / XSEG_PAGE_SIZE;
	size_t bytes = memory_of(q->depth, q->copy_bytes);
	struct region *m;
	int rc;

	m = xs_client_memory(&q->client, bytes, q->depth, "copy_bytes", &rc, err);
	if (!m)
		return rc;
	q->slots = calloc(q->depth, sizeof(*q->slots));
	q->idle = calloc(q->depth, sizeof(struct slot *));
	if (!q->slots || !q->idle)
		return xseg_fail(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < q->depth; i++) {
		q->slots[i].mem = m->base + (size_t)i * q->copy_bytes;
		q->slots[i].page = m->page + (size_t)i * each;
	}
	return 0;
}

static int take_requests(struct xseg_queue *q, struct xseg_error *err)
{
	for (uint32_t i = 0; i < q->depth; i++) {
		struct slot *s = &q->slots[i];

		s->r = xs_client_request(&q->client, s, err);
		if (!s->r)
			return -EPROTO;
		q->idle[q->nr_plain++] = s;
	}
	return 0;
}

static int take_direct(struct xseg_queue *q, struct xseg_error *err)
{
	int rc = xseg_direct_create(q->client.port, q->client.server->peer, OBJECTS, &q->direct);

	return rc ? xseg_fail(err, rc, "out of memory") : 0;
}

static int create(struct xseg_volume *v, const struct xseg_queue_params *params,
	struct xseg_queue **queue, struct xseg_error *err)
{
	uint32_t copy_bytes = params && params->copy_bytes ? params->copy_bytes : COPY_BYTES;
	uint32_t depth = depth_of(params);
	uint32_t direct = params ? params->direct : XSEG_DIRECT_AUTO;
	struct xseg_queue *q;
	int rc;

	if (xs_is_forked(v->server.seg))
		return xseg_fail(err, -ENOTCONN,
			"the volume was opened before this process was forked; open it here");
	rc = xs_check_whole(v->server.seg, err);
	if (rc)
		return rc;
	if (depth > DEPTH_MAX || copy_bytes < XSEG_PAGE_SIZE || copy_bytes > XSEG_REQ_BYTES)
		return xseg_fail(err, -EINVAL,
			"a queue has a depth of 1 to %u, and copies 4 KiB to 1 MiB at a time",
			DEPTH_MAX);
	if (direct > XSEG_DIRECT_NEVER)
		return xseg_fail(err, -EINVAL,
			"direct=%u: a queue reads directly XSEG_DIRECT_AUTO or XSEG_DIRECT_NEVER",
			direct);
	q = calloc(1, sizeof(*q));
	if (!q)
		return xseg_fail(err, -ENOMEM, "out of memory");
	q->client.cls = &xs_queue_class;
	q->client.server = &v->server;
	q->client.seg = v->server.seg;
	q->v = v;
	q->depth = depth;
	q->auto_direct = direct == XSEG_DIRECT_AUTO;
	q->copy_bytes = copy_bytes_of(params);
	io_list_init(&q->waiting);
	io_list_init(&q->back);
	xs_watch_init(&q->client);
	/* relaxed: the caller has a reference */
	atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
	rc = xs_client_begin(&q->client, depth, err);
	if (rc)
		goto out_destroy;
	xseg_client_volume_set(q->client.peer, v->server.peer, v->info.id);
	rc = take_memory(q, err);
	if (!rc)
		rc = take_requests(q, err);
	if (!rc)
		rc = take_direct(q, err);
	if (rc)
		goto out_destroy;
	*queue = q;
	return 0;
out_destroy:
	xseg_queue_destroy(q);
	return rc;
}

int xseg_queue_create(struct xseg_volume *v, const struct xseg_queue_params *params,
	struct xseg_queue **queue, struct xseg_error *err)
{
	uint64_t before = xs_wait_limit(v->server.timeout_ns);
	int rc = create(v, params, queue, err);

	xs_wait_limit(before);
	return rc;
}

void xseg_queue_destroy(struct xseg_queue *q)
{
	if (!q)
		return;
	xs_watch_fini(&q->client);
	if (q->direct)
		xseg_direct_destroy(q->direct);
	xs_client_end(&q->client);
	xs_volume_put(q->v);
	free(q->slots);
	free(q->idle);
	free(q);
}
