/* batch - the parsing of a change: copied once, then checked.
 *
 * The value of a put that stands alone is left in the client's pages. It is copied to where its
 * record will stand in the log, and its CRC is made of that copy on the way. If the CRC is wrong,
 * nothing is appended, and what was copied means nothing.
 *
 * Contract: kvd's thread. All that is read afterwards is kvd's own copy, so a client that changes
 * its pages meanwhile changes nothing (R5 of docs/design/segment.md). Nothing is changed here.
 *
 * Invariants
 *   B1  Each key and value is within the batch, and the CRC of key and value is the client's.
 *   B2  No two changes of a batch are of one key.
 *   B3  A record that a change makes can be read with its key in one request.
 */
#include <errno.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/kvd/kvd.h"
#include "xtypes/xcrc.h"

#define SEEN_SLOTS 2048u			/* twice KV_BATCH_MAX and a little */
#define ONE_BYTES  ((uint32_t)(sizeof(struct kv_batch) + sizeof(struct kv_change)))
#define LEFT_LEAST 256u				/* bytes of a value that is not copied here */

static bool is_within(uint32_t at, uint32_t bytes, uint32_t size)
{
	return at <= size && bytes <= size - at;
}

static bool has_value(uint8_t kind)
{
	return kind == KV_PUT || kind == KV_APPEND || kind == KV_PREPEND;
}

static int too_large(const struct kvd *k, const struct kv_change *c)
{
	log_warn("%s: a value of %u bytes was refused: a key and its value have at most %u bytes "
		"together; keep larger values in parts", k->peer.name, c->value_bytes,
		k->record_max - ALOG_HEADER_BYTES);
	return -EFBIG;
}

static uint32_t expiry_from_now(const struct kvd *k, uint32_t ttl)
{
	uint64_t expiry = k->time.s + ttl;

	return expiry < UINT32_MAX ? (uint32_t)expiry : UINT32_MAX;
}

static int check(const struct kvd *k, struct kvd_work *w, uint32_t nr)
{
	const struct kv_change *c = &w->c;
	uint32_t value = has_value(c->kind) ? c->value_bytes : 0;

	if (c->kind >= KV_HOLD && c->kind < KV_NR_CHANGES)
		return too_large(k, c);
	if (c->kind < KV_PUT || c->kind >= KV_NR_CHANGES || c->condition > KV_IF_VERSION ||
		!c->key_bytes || c->key_bytes > KV_KEY_MAX ||
		!is_within(c->key_at, c->key_bytes, k->now.batch_bytes) ||
		!is_within(c->value_at, value, k->now.batch_bytes))
		return -EINVAL;
	if (kvd_needs_value(c->kind) && nr > 1)
		return -EINVAL;
	if (!kvd_fits(k, c->key_bytes, value))
		return too_large(k, c);
	if (c->flags & KV_TTL && c->expiry)
		w->c.expiry = expiry_from_now(k, c->expiry);
	w->key = k->now.batch + c->key_at;
	w->value = k->now.batch + c->value_at;
	if (has_value(c->kind) && !w->left && xcrc32c(xcrc32c(0, w->key, c->key_bytes), w->value, value) !=
					  c->data_crc)
		return -EPROTO;
	kvd_identity(k, w->key, c->key_bytes, w->id);
	return 0;
}

/* B2 */
static bool has_twins(const struct kvd *k, uint32_t nr)
{
	static uint16_t seen[SEEN_SLOTS];	/* number + 1; the thread's, which is one */
	const struct kvd_work *w = k->now.work;
	uint32_t at;

	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < nr; i++) {
		for (at = w[i].id[0] % SEEN_SLOTS; seen[at]; at = (at + 1) % SEEN_SLOTS)
			if (w[seen[at] - 1].id[0] == w[i].id[0] &&
				w[seen[at] - 1].id[1] == w[i].id[1])
				return true;
		seen[at] = (uint16_t)(i + 1);
	}
	return false;
}

/* A value that stands behind all else. */
static bool may_be_left(const struct kv_batch *b, const struct kv_change *c, uint32_t size)
{
	return b->nr == 1 && c->kind == KV_PUT && c->value_bytes >= LEFT_LEAST &&
	       is_within(c->value_at, c->value_bytes, size) && c->value_at >= ONE_BYTES &&
	       is_within(c->key_at, c->key_bytes, c->value_at);
}

/* The whole batch, or all but the value that is left. */
static bool copy_batch(struct kvd *k, const struct xreq *r)
{
	struct kv_batch b;
	struct kv_change c;
	uint32_t bytes = k->now.batch_bytes;
	bool left;

	xseg_req_read_data(k->peer.seg, r, 0, k->now.batch, ONE_BYTES);
	memcpy(&b, k->now.batch, sizeof(b));
	memcpy(&c, k->now.batch + sizeof(b), sizeof(c));
	left = may_be_left(&b, &c, bytes);
	if (left)
		bytes = c.value_at;
	xseg_req_read_data(k->peer.seg, r, ONE_BYTES, k->now.batch + ONE_BYTES, bytes - ONE_BYTES);
	return left;
}

int kvd_batch_parse(struct kvd *k, const struct xreq *r)
{
	struct kv_batch b;
	uint32_t least = ONE_BYTES;
	bool left;
	int rc;

	if (r->offset || r->size < least || r->size > XSEG_REQ_BYTES ||
		r->nr_pages < xseg_req_span(0, r->size))
		return -EINVAL;
	k->now.batch_bytes = r->size;
	left = copy_batch(k, r);
	memcpy(&b, k->now.batch, sizeof(b));
	if (b.magic != KV_BATCH_MAGIC || !b.nr || b.nr > KV_BATCH_MAX ||
		!is_within(sizeof(b), b.nr * (uint32_t)sizeof(struct kv_change), r->size))
		return -EINVAL;
	for (uint32_t i = 0; i < b.nr; i++) {
		struct kvd_work *w = &k->now.work[i];

		*w = (struct kvd_work){ .left = left };
		memcpy(&w->c, k->now.batch + sizeof(b) + i * sizeof(w->c), sizeof(w->c));
		rc = check(k, w, b.nr);
		if (rc)
			return rc;
	}
	return b.nr > 1 && has_twins(k, b.nr) ? -EINVAL : b.nr;
}

/* ---- the value that was left ---- */

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
