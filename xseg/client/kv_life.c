/* kv_life - making and ending queues of a store.
 *
 * A queue is a client of the segment of its own (client.c), so threads share nothing but the store.
 *
 * Contract: takes the control lock, and waits for it for as long as the store waits for answers.
 * Any thread may create and destroy a queue, but not while another thread uses it.
 */
#include <errno.h>
#include <stdlib.h>

#include "xseg/client/kv_inside.h"

#define DEPTH	   32u
#define DEPTH_MAX  1024u
#define ROOM_BYTES (64u << 10)
#define ROOM_MIN   (2 * KV_PAGE)
#define LARGE_MAX  64u

static struct xseg_kv_queue_params with_defaults(const struct xseg_kv_queue_params *params)
{
	struct xseg_kv_queue_params p = params ? *params : (struct xseg_kv_queue_params){ 0 };

	p.depth = p.depth ? p.depth : DEPTH;
	p.room_bytes = p.room_bytes ? p.room_bytes : ROOM_BYTES;
	p.large_rooms = p.large_rooms ? p.large_rooms : 1;
	return p;
}

static uint32_t room_pages_of(const struct xseg_kv_queue_params *p)
{
	return (p->room_bytes + KV_PAGE - 1) / KV_PAGE;
}

uint64_t xseg_kv_queue_memory(const struct xseg_kv_queue_params *params)
{
	struct xseg_kv_queue_params p = with_defaults(params);
	uint64_t bytes = ((uint64_t)p.depth * room_pages_of(&p) +
				 (uint64_t)p.large_rooms * KV_PAGES) * KV_PAGE;

	return (bytes + XSEG_EXTENT_SIZE - 1) / XSEG_EXTENT_SIZE * XSEG_EXTENT_SIZE;
}

static int take_memory(struct xseg_kv_queue *q, struct xseg_error *err)
{
	uint32_t nr = q->depth * q->room_pages, at;
	size_t bytes = ((size_t)nr + q->nr_large * KV_PAGES) * KV_PAGE;
	struct region *m;
	int rc;

	m = xs_client_memory(&q->client, bytes, q->depth, "room_bytes", &rc, err);
	if (!m)
		return rc;
	q->slots = calloc(q->depth, sizeof(*q->slots));
	q->idle = calloc(q->depth, sizeof(struct kv_slot *));
	q->large = calloc(q->nr_large, sizeof(*q->large));
	if (!q->slots || !q->idle || !q->large)
		return xseg_fail(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < q->depth; i++)
		q->slots[i].own = (struct kv_room){ .pages = q->room_pages,
			.mem = m->base + (size_t)i * q->room_pages * KV_PAGE,
			.page = m->page + (size_t)i * q->room_pages };
	for (uint32_t i = 0; i < q->nr_large; i++) {
		at = nr + i * KV_PAGES;
		q->large[i] = (struct kv_room){ .pages = KV_PAGES,
			.mem = m->base + (size_t)at * KV_PAGE, .page = m->page + at };
	}
	return 0;
}

static int take_requests(struct xseg_kv_queue *q, struct xseg_error *err)
{
	for (uint32_t i = 0; i < q->depth; i++) {
		struct kv_slot *s = &q->slots[i];

		s->r = xs_client_request(&q->client, s, err);
		if (!s->r)
			return -EPROTO;
		s->room = &s->own;
		q->idle[q->nr_idle++] = s;
	}
	return 0;
}

static int open_queue(struct xseg_kv_queue *q, struct xseg_error *err)
{
	int rc = xs_client_begin(&q->client, q->depth, err);

	if (rc)
		return rc;
	/* as a volume's queue does, so that peer stop can tell */
	xseg_client_volume_set(q->client.peer, q->kv->server.peer, q->kv->id);
	rc = take_memory(q, err);
	return rc ? rc : take_requests(q, err);
}

static int create(struct xseg_kv *kv, const struct xseg_kv_queue_params *params,
	struct xseg_kv_queue **queue, struct xseg_error *err)
{
	struct xseg_kv_queue *q = calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return xseg_fail(err, -ENOMEM, "out of memory");
	q->client.cls = &xs_kv_class;
	q->client.server = &kv->server;
	q->client.seg = kv->server.seg;
	q->kv = kv;
	q->depth = params->depth;
	q->room_pages = room_pages_of(params);
	q->nr_large = params->large_rooms;
	q->waiting.last = &q->waiting.first;
	q->back.last = &q->back.first;
	xs_watch_init(&q->client);
	/* relaxed: the caller has a reference */
	atomic_fetch_add_explicit(&kv->refs, 1, memory_order_relaxed);
	rc = open_queue(q, err);
	if (rc)
		xseg_kv_queue_destroy(q);
	else
		*queue = q;
	return rc;
}

int xseg_kv_queue_create(struct xseg_kv *kv, const struct xseg_kv_queue_params *params,
	struct xseg_kv_queue **queue, struct xseg_error *err)
{
	struct xseg_kv_queue_params p = with_defaults(params);
	uint64_t before;
	int rc;

	if (xs_is_forked(kv->server.seg))
		return xseg_fail(err, -ENOTCONN,
			"the store was opened before this process was forked; open it here");
	rc = xs_check_whole(kv->server.seg, err);
	if (rc)
		return rc;
	if (p.depth > DEPTH_MAX || p.room_bytes < ROOM_MIN || p.room_bytes > XSEG_REQ_BYTES ||
		p.large_rooms > LARGE_MAX)
		return xseg_fail(err, -EINVAL,
			"a queue has a depth of 1 to %u, rooms of 8 KiB to 1 MiB, and up to %u "
			"large rooms",
			DEPTH_MAX, LARGE_MAX);
	before = xs_wait_limit(kv->server.timeout_ns);
	rc = create(kv, &p, queue, err);
	xs_wait_limit(before);
	return rc;
}

void xseg_kv_queue_destroy(struct xseg_kv_queue *q)
{
	if (!q)
		return;
	xs_watch_fini(&q->client);
	xs_client_end(&q->client);
	while (q->wholes)
		xs_kv_whole_end(q, q->wholes);
	xs_kv_put(q->kv);
	free(q->large);
	free(q->slots);
	free(q->idle);
	free(q);
}
