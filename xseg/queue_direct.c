/* queue_direct - reads with XSEG_IO_DIRECT: a part's data is looked for in the cache (direct.c),
 * before a request is sent for it.
 *
 * An object of the volume, as volumed cuts it, is an object of the cache. A part that is in two of
 * them is sent. The loans of an answer say where its object is. So the first read of an object
 * sends a request. Later reads of it need none, as long as the cache has their data.
 *
 * Contract: the queue's thread. Nothing here blocks or allocates.
 */
#include "xseg/queue.h"

/* Where the part is in its object. False: it is in more than one. */
static bool place_of(
	const struct xseg_queue *q, const struct xreq *r, uint64_t *object, uint64_t *in)
{
	*object = r->offset >> q->v->object_shift;
	*in = r->offset & (q->v->info.object_bytes - 1);
	return *in + r->size <= q->v->info.object_bytes;
}

bool xs_part_find(struct xseg_queue *q, struct slot *s)
{
	uint64_t object, in;

	return s->r->op == XSEG_OP_READ && s->r->flags & XSEG_REQ_DIRECT &&
	       place_of(q, s->r, &object, &in) && xseg_direct_read(q->direct, s->r, object, in);
}

void xs_part_learn(struct xseg_queue *q, const struct slot *s)
{
	uint64_t object, in;

	if (s->r->op == XSEG_OP_READ && s->r->flags & XSEG_REQ_DIRECT &&
		place_of(q, s->r, &object, &in))
		xseg_direct_learn(q->direct, s->r, object, in);
}
