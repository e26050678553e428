/* value - new values that are made of old ones: APPEND, PREPEND, INCR, DECR, TOUCH; and the way of
 * a put's value from the client's pages to the end of the log.
 *
 * Contract: kvd's thread; pure but for k->now.value, which is the new value until the next call.
 * The old record verifies.
 *
 * The new record keeps the expiry and the client's flags of the old one; TOUCH changes the expiry
 * alone, and keeps the version. Of a large value only TOUCH makes a new record; it names the same
 * zones.
 *
 * The value of a put is copied once, to where its record will stand in the tail, and its CRC is
 * made of the copy on the way. If the CRC is wrong, nothing is appended, and what was copied means
 * nothing. A client that changes its pages meanwhile gets -EPROTO, or puts what was copied.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/kvd/kvd.h"
#include "xtypes/xcrc.h"

#define DIGITS_MAX 20u				/* of 2^64 - 1 */

/* B3 of parse.c */
bool kvd_fits(const struct kvd *k, uint32_t key_bytes, uint64_t value_bytes)
{
	return !kv_is_large(key_bytes, value_bytes) &&
	       ALOG_HEADER_BYTES + key_bytes + value_bytes <= k->record_max;
}

bool kvd_needs_value(uint8_t kind)
{
	return kind >= KV_APPEND && kind <= KV_TOUCH;
}

/* False: it is no decimal number below 2^64. */
static bool number_of(const uint8_t *text, uint32_t bytes, uint64_t *n)
{
	*n = 0;
	if (!bytes || bytes > DIGITS_MAX)
		return false;
	for (uint32_t i = 0; i < bytes; i++) {
		if (text[i] < '0' || text[i] > '9' ||
			__builtin_mul_overflow(*n, (uint64_t)10, n) ||
			__builtin_add_overflow(*n, (uint64_t)(text[i] - '0'), n))
			return false;
	}
	return true;
}

static int count(struct kvd *k, const struct kv_change *c, const uint8_t *old, uint32_t bytes,
	uint64_t *number, uint32_t *new_bytes)
{
	char text[DIGITS_MAX + 1];
	uint64_t n;

	if (!number_of(old, bytes, &n))
		return -EINVAL;
	if (c->kind == KV_INCR)
		n += c->amount;
	else
		n -= c->amount < n ? c->amount : n;
	*number = n;
	*new_bytes = (uint32_t)snprintf(text, sizeof(text), "%" PRIu64, n);
	memcpy(k->now.value, text, *new_bytes);
	return 0;
}

static int join(struct kvd *k, const struct kvd_work *w, const uint8_t *old, uint32_t bytes,
	uint32_t *new_bytes)
{
	bool append = w->c.kind == KV_APPEND;

	if (!kvd_fits(k, w->c.key_bytes, (uint64_t)bytes + w->c.value_bytes))
		return -EFBIG;
	*new_bytes = bytes + w->c.value_bytes;
	memcpy(k->now.value + (append ? 0 : w->c.value_bytes), old, bytes);
	memcpy(k->now.value + (append ? bytes : 0), w->value, w->c.value_bytes);
	return 0;
}

int kvd_value_make(struct kvd *k, struct kvd_work *w, const struct kvd_read *rd,
	const struct xrecord *old, struct alog_put *put, uint64_t *number)
{
	const uint8_t *value = kvd_record_key(rd->data, rd->place, old) + old->key_bytes;
	uint32_t bytes = old->value_bytes;
	int rc = 0;

	put->rec.expiry = old->expiry;
	put->rec.client = old->client;
	if (old->flags & ALOG_LARGE && w->c.kind != KV_TOUCH)
		return w->c.kind == KV_APPEND || w->c.kind == KV_PREPEND ? -EFBIG : -EINVAL;
	switch (w->c.kind) {
	case KV_TOUCH:
		put->rec.expiry = w->c.expiry;
		put->rec.version = old->version;
		put->rec.flags = old->flags & ALOG_LARGE;
		memcpy(k->now.value, value, bytes);
		break;
	case KV_INCR:
	case KV_DECR:
		rc = count(k, &w->c, value, old->value_bytes, number, &bytes);
		break;
	default:
		rc = join(k, w, value, old->value_bytes, &bytes);
	}
	put->value = k->now.value;
	put->rec.value_bytes = bytes;
	put->rec.data_crc = xcrc32c(xcrc32c(0, w->key, w->c.key_bytes), k->now.value, bytes);
	return rc;
}

/* ---- from the client's pages to the log --------------------------------------------------- */

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
