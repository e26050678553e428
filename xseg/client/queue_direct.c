/* queue_direct - reads that send no request: a part's data is looked for in the cache (direct.c),
 * before a request is sent for it.
 *
 * An object of the volume, as volumed cuts it, is an object of the cache. A part that is in two of
 * them is sent. The loans of an answer say where its object is. So the first read of an object
 * sends a request. Later reads of it need none, as long as the cache has their data.
 *
 * Each read with XSEG_IO_DIRECT is tried. All other reads of a queue with XSEG_DIRECT_AUTO are
 * tried while that pays (xseg_direct_pays()). If it does not, the request is the same as that of a
 * queue with XSEG_DIRECT_NEVER.
 *
 * Contract: the queue's thread. Nothing here blocks or allocates.
 */
#include "xseg/client/queue.h"

/* Where the range is in its object. False: it is in more than one. */
static bool place_of(const struct xseg_queue *q, uint64_t offset, uint32_t size, uint64_t *object,
	uint64_t *in)
{
	*object = offset >> q->v->object_shift;
	*in = offset & (q->v->info.object_bytes - 1);
	return *in + size <= q->v->info.object_bytes;
}

bool xs_part_pays(const struct xseg_queue *q, uint64_t offset, uint32_t size)
{
	uint64_t object, in;

	return q->auto_direct && place_of(q, offset, size, &object, &in) &&
	       xseg_direct_pays(q->direct, q->v->info.id, object);
}

bool xs_part_find(struct xseg_queue *q, struct slot *s)
{
	uint64_t object, in;

	return s->r->op == XSEG_OP_READ && s->r->flags & XSEG_REQ_DIRECT &&
	       place_of(q, s->r->offset, s->r->size, &object, &in) &&
	       xseg_direct_read(q->direct, s->r, object, in);
}

void xs_part_learn(struct xseg_queue *q, const struct slot *s)
{
	uint64_t object, in;

	if (s->r->op == XSEG_OP_READ && s->r->flags & XSEG_REQ_DIRECT &&
		place_of(q, s->r->offset, s->r->size, &object, &in))
		xseg_direct_learn(q->direct, s->r, object, in);
}
