/* shape - see shape.h. */
#include "peers/common/blocker/shape.h"

#include <errno.h>
#include <string.h>

const struct shape shapes[XSEG_NR_OPS] = {
	[XSEG_OP_READ] = { true, SHAPE_BYTES, false, true },
	[XSEG_OP_WRITE] = { true, SHAPE_BYTES, true, true },
	[XSEG_OP_FLUSH] = { true, SHAPE_ALL, false, false },
	[XSEG_OP_DISCARD] = { true, SHAPE_BYTES, true, false },
	[XSEG_OP_WRITE_ZEROES] = { true, SHAPE_BYTES, true, false },
	[XSEG_OP_COPY] = { true, SHAPE_BYTES, true, false },
	[XSEG_OP_INFO] = { true, SHAPE_OBJECT, false, false },
	[XSEG_OP_DELETE] = { true, SHAPE_OBJECT, true, false },
	[XSEG_OP_LIST] = { true, SHAPE_NAMES, false, false },
};

static int names_check(const struct xreq *r)
{
	bool room = r->size >= XSEG_PAGE_SIZE && r->size <= XSEG_REQ_BYTES;

	return room && r->nr_pages >= xseg_req_span(0, r->size) ? 0 : -EPROTO;
}

int shape_check(const struct xreq *r, uint64_t end_max)
{
	const struct shape *shape = r->op < XSEG_NR_OPS ? &shapes[r->op] : NULL;

	if (!shape || !shape->known)
		return -EPROTO;
	if (shape->range == SHAPE_NAMES)
		return names_check(r);
	if (shape->range != SHAPE_ALL && !r->target[0])
		return -EPROTO;
	if (shape->range == SHAPE_BYTES && (r->size > XSEG_REQ_BYTES || r->obj_offset > end_max ||
						   r->size > end_max - r->obj_offset))
		return -EPROTO;
	if (shape->data && r->nr_pages < xseg_req_span(r->obj_offset, r->size))
		return -EPROTO;
	return 0;
}

int shape_source(struct xseg *seg, const struct xreq *r, char *name)
{
	if (r->nr_pages == 0)
		return -EOPNOTSUPP;
	memcpy(name, xseg_page(seg, r->page[0] & XSEG_PAGE_INDEX), XSEG_TARGET_MAX);
	if (!name[0])
		return -EOPNOTSUPP;
	return strnlen(name, XSEG_TARGET_MAX) < XSEG_TARGET_MAX ? 0 : -EPROTO;
}

bool shape_flush_covers(const struct xreq *r, const char *name)
{
	const char *colon = strchr(r->target, ':');

	return !r->volume || !colon || !strncmp(name, r->target, (size_t)(colon - r->target) + 1);
}
