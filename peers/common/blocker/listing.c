/* listing - see listing.h. */
#include "peers/common/blocker/listing.h"

#include <errno.h>
#include <string.h>

static uint8_t *byte_at(struct xseg *seg, const struct xreq *r, uint32_t at)
{
	uint8_t *page = xseg_page(seg, r->page[at / XSEG_PAGE_SIZE] & XSEG_PAGE_INDEX);

	return page + at % XSEG_PAGE_SIZE;
}

/* The bytes from `at` on that lie in one page. */
static uint32_t piece_of(uint32_t at, uint32_t len)
{
	uint32_t in_page = XSEG_PAGE_SIZE - at % XSEG_PAGE_SIZE;

	return len < in_page ? len : in_page;
}

static void bytes_write(struct xseg *seg, const struct xreq *r, uint32_t at, const void *from,
	uint32_t len)
{
	const uint8_t *src = from;

	while (len) {
		uint32_t n = piece_of(at, len);

		memcpy(byte_at(seg, r, at), src, n);
		at += n;
		src += n;
		len -= n;
	}
}

static void bytes_read(struct xseg *seg, const struct xreq *r, uint32_t at, void *to, uint32_t len)
{
	uint8_t *dst = to;

	while (len) {
		uint32_t n = piece_of(at, len);

		memcpy(dst, byte_at(seg, r, at), n);
		at += n;
		dst += n;
		len -= n;
	}
}

bool listing_wants(const struct xreq *r, const char *name)
{
	return !strncmp(name, r->target, strnlen(r->target, XSEG_TARGET_MAX));
}

void listing_begin(struct listing *l, struct xseg *seg, const struct xreq *r)
{
	l->seg = seg;
	l->r = r;
	l->head = (struct xseg_list){ .bytes = sizeof(l->head) };
}

bool listing_add(struct listing *l, const char *name)
{
	uint32_t len = (uint32_t)strlen(name) + 1;

	if (len > l->r->size - l->head.bytes)
		return false;
	bytes_write(l->seg, l->r, l->head.bytes, name, len);
	l->head.bytes += len;
	l->head.nr++;
	return true;
}

int64_t listing_end(struct listing *l, uint64_t next)
{
	l->head.next = next;
	bytes_write(l->seg, l->r, 0, &l->head, sizeof(l->head));
	return l->head.bytes;
}

int listing_open(struct listing_names *names, struct xseg *seg, const struct xreq *r)
{
	const struct xseg_list *head = &names->head;

	*names = (struct listing_names){ .seg = seg, .r = r, .at = sizeof(*head) };
	if (r->result < (int64_t)sizeof(*head) || r->result > r->size ||
		r->nr_pages < xseg_req_span(0, r->size))
		return -EPROTO;
	bytes_read(seg, r, 0, &names->head, sizeof(*head));
	if (head->bytes != r->result)
		return -EPROTO;
	names->left = head->nr;
	return 0;
}

int listing_next(struct listing_names *names, char *name)
{
	uint32_t len = names->head.bytes - names->at, used;

	if (!names->left)
		return 0;
	if (len > XSEG_TARGET_MAX)
		len = XSEG_TARGET_MAX;
	bytes_read(names->seg, names->r, names->at, name, len);
	used = (uint32_t)strnlen(name, len) + 1;
	if (used > len || used == 1)
		return -EPROTO;
	names->at += used;
	names->left--;
	return 1;
}
