/* shape - see shape.h. */
#include "peers/common/blocker/shape.h"

#include <errno.h>
#include <string.h>

const struct shape shapes[XSEG_NR_OPS] = {
#define XSEG_OP_ROW(op, word, range, changes, data, ...)                                           \
	[XSEG_OP_##op] = { SHAPE_##range, changes, data },
#include "xseg/ops.def"
};

static int names_check(const struct xreq *r)
{
	bool room = r->size >= XSEG_PAGE_SIZE && r->size <= XSEG_REQ_BYTES;

	return room && r->nr_pages >= xseg_req_span(0, r->size) ? 0 : -EPROTO;
}

int shape_check(const struct xreq *r, uint64_t end_max)
{
	const struct shape *shape = r->op < XSEG_NR_OPS ? &shapes[r->op] : NULL;

	if (!shape || shape->range == SHAPE_NONE)
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
