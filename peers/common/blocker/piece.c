/* piece - see piece.h. */
#include "peers/common/blocker/piece.h"

bool piece_next(struct xseg *seg, const struct xreq *r, uint32_t end, struct piece *p)
{
	uint64_t at = r->obj_offset % XSEG_PAGE_SIZE + p->from + p->len;
	uint32_t in, part;
	uint8_t *data;

	p->from += p->len;
	p->len = 0;
	for (; p->from + p->len < end; p->len += part, at += part) {
		in = (uint32_t)(at % XSEG_PAGE_SIZE);
		part = XSEG_PAGE_SIZE - in;
		if (part > end - p->from - p->len)
			part = end - p->from - p->len;
		data = (uint8_t *)xseg_page(seg, r->page[at / XSEG_PAGE_SIZE] & XSEG_PAGE_INDEX) +
		       in;
		if (!p->len)
			p->data = data;
		else if (p->data + p->len != data)
			break;
	}
	return p->len;
}
