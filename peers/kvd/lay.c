/* lay - the value of a put goes from the client's pages to the end of the log.
 *
 * A value is copied once, to where its record will stand in the tail, and its CRC is made of the
 * copy on the way. If the CRC is wrong, nothing is appended, and what was copied means nothing.
 *
 * Contract: kvd's thread, between alog_next() and alog_append(). A client that changes its pages
 * meanwhile gets -EPROTO, or puts what was copied.
 */
#include <errno.h>

#include "peers/kvd/kvd.h"
#include "xtypes/xcrc.h"

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* A page is on its way below: then it goes by kvd's own memory. */
static int by_batch(struct kvd *k, const struct xreq *r, struct kvd_work *w, uint32_t crc)
{
	uint8_t *to = k->now.batch + w->c.value_at;

	xseg_req_read_data(k->peer.seg, r, w->c.value_at, to, w->c.value_bytes);
	k->now.put[0].value = to;
	return xcrc32c(crc, to, w->c.value_bytes) == w->c.data_crc ? 0 : -EPROTO;
}

int kvd_lay(struct kvd *k, const struct xreq *r, const struct alog_place *next)
{
	struct kvd_work *w = &k->now.work[0];
	uint32_t crc = xcrc32c(0, w->key, w->c.key_bytes), part, from, room;
	uint32_t before = ALOG_HEADER_BYTES + w->c.key_bytes;
	const uint8_t *page;
	uint8_t *to;

	for (uint32_t at = 0; at < w->c.value_bytes; at += part) {
		to = alog_lay(k->log, next, before + at, &room);
		if (!to)
			return by_batch(k, r, w, xcrc32c(0, w->key, w->c.key_bytes));
		from = w->c.value_at + at;
		page = xseg_req_page(k->peer.seg, r, from / XSEG_PAGE_SIZE);
		part = least(least(room, XSEG_PAGE_SIZE - from % XSEG_PAGE_SIZE),
			w->c.value_bytes - at);
		crc = xcrc32c_copy(crc, to, page + from % XSEG_PAGE_SIZE, part);
	}
	k->now.put[0].laid = true;
	return crc == w->c.data_crc ? 0 : -EPROTO;
}
