/* kv_model - see kv_rig.h. Records are written one behind the other into zones in memory, with the
 * headers of a log, and values of 32 KiB and more at a page. Nothing is ever reclaimed but by
 * kvmodel_forget(). */
#include "tests/rig/kv_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rig/kv_model_large.h"
#include "tests/rig/kv_rig.h"
#include "xseg/kv_wire.h"
#include "xtypes/xcrc.h"
#include "xtypes/xrecord.h"

#define ZONES	   24u
#define ZONE_BYTES XRECORD_ZONE_MAX
#define MAX_KEYS   4096u
#define EPOCH	   3u
#define ID	   0x8001u
#define MAX_HELD   16u
#define VALUE_MAX  (32u << 20)

static const uint8_t uuid[16] = "a model of kvd.";

struct key {
	uint8_t *key;
	uint32_t key_bytes, value_bytes;
	uint32_t zone, place, bytes;
	struct xrecord rec;
	bool there;
	uint64_t large, large_bytes;		/* the number of a large value, and its length */
};

static struct {
	struct kvmodel pub;
	uint8_t *zone[ZONES];
	uint32_t at_zone, at;			/* where the next record goes */
	struct key key[MAX_KEYS];
	uint32_t nr_keys;
	uint64_t sequence;
	struct xreq *held[MAX_HELD];
	uint32_t nr_held;
} m;

struct model_peer {
	struct peer peer;
};

struct kvmodel *kvmodel_get(void)
{
	return &m.pub;
}

void kvmodel_forget(void)
{
	for (uint32_t i = 0; i < ZONES; i++)
		free(m.zone[i]);
	for (uint32_t i = 0; i < m.nr_keys; i++)
		free(m.key[i].key);
	kvmodel_large_forget();
	memset(&m, 0, sizeof(m));
	m.pub.time = 1000;
}

static uint32_t fault(void)
{
	return atomic_load(&m.pub.fault);
}

/* ---- records ----------------------------------------------------------------------------- */

static struct key *find(const uint8_t *key, uint32_t bytes)
{
	for (uint32_t i = 0; i < m.nr_keys; i++)
		if (m.key[i].key_bytes == bytes && !memcmp(m.key[i].key, key, bytes))
			return &m.key[i];
	return NULL;
}

static bool is_there(const struct key *k)
{
	return k && k->there && (!k->rec.expiry || k->rec.expiry > m.pub.time);
}

static struct key *make(const uint8_t *key, uint32_t bytes)
{
	struct key *k = find(key, bytes);

	if (k)
		return k;
	assert_true(m.nr_keys < MAX_KEYS);
	k = &m.key[m.nr_keys++];
	k->key = malloc(bytes);
	memcpy(k->key, key, bytes);
	k->key_bytes = bytes;
	return k;
}

static uint8_t *value_of(const struct key *k)
{
	return m.zone[k->zone] + k->place + k->key_bytes +
	       xrecord_data_at(k->place, k->key_bytes, k->rec.flags);
}

static void append_as(struct key *k, const uint8_t *value, uint32_t bytes, uint32_t expiry,
	uint32_t client, uint8_t flags)
{
	uint8_t *to;
	uint32_t all = xrecord_bytes_at(m.at, k->key_bytes, bytes, flags), at;
	struct xrecord_header h;

	if (m.at + all > ZONE_BYTES) {
		m.at_zone++;
		m.at = 0;
		all = xrecord_bytes_at(m.at, k->key_bytes, bytes, flags);
	}
	assert_true(m.at_zone < ZONES);
	if (!m.zone[m.at_zone])
		m.zone[m.at_zone] = calloc(1, ZONE_BYTES);
	m.sequence++;
	k->rec = (struct xrecord){ .type = XRECORD_VALUE, .flags = flags, .sequence = m.sequence,
		.version = m.sequence, .key_bytes = k->key_bytes, .value_bytes = bytes,
		.expiry = expiry, .client = client,
		.data_crc = xcrc32c(xcrc32c(0, k->key, k->key_bytes), value, bytes) };
	k->zone = m.at_zone;
	k->place = m.at;
	k->bytes = all;
	k->value_bytes = bytes;
	k->there = true;
	xrecord_encode(&k->rec, xrecord_seed(uuid, k->zone, EPOCH), k->place, &h);
	to = m.zone[k->zone] + k->place;
	memcpy(to, &h, sizeof(h));
	at = xrecord_data_at(k->place, k->key_bytes, flags);
	memcpy(to + at, k->key, k->key_bytes);
	if (bytes)
		memcpy(to + at + k->key_bytes, value, bytes);
	m.at += all;
}

/* The key has no large value any more. */
static void end_large(struct key *k)
{
	if (k->large)
		kvmodel_large_gone(k->large);
	k->large = 0;
}

static void append(struct key *k, const uint8_t *value, uint32_t bytes, uint32_t expiry,
	uint32_t client)
{
	end_large(k);
	append_as(k, value, bytes, expiry, client, bytes >= 32768 ? XRECORD_PAGED : 0);
}

/* ---- queries ----------------------------------------------------------------------------- */

/* The list of a large value that cannot be, with a good sum. */
static void spoil_list(const struct key *k, uint8_t *image)
{
	uint32_t at = xrecord_data_at(k->place, k->key_bytes, k->rec.flags);
	struct xrecord rec = k->rec;
	struct xrecord_header h;
	struct kv_large large;

	memcpy(&large, image + at + k->key_bytes, sizeof(large));
	large.nr_pieces--;
	memcpy(image + at + k->key_bytes, &large, sizeof(large));
	rec.data_crc = xcrc32c(0, image + at, k->key_bytes + k->value_bytes);
	xrecord_encode(&rec, xrecord_seed(uuid, k->zone, EPOCH), k->place, &h);
	memcpy(image, &h, sizeof(h));
}

static int64_t get(struct xseg *seg, struct xreq *r, const struct kv_query *q, const uint8_t *key)
{
	bool look = q->flags & KV_LOOK;
	struct key *k = find(key, q->key_bytes);
	uint32_t begin, bytes, f = fault();
	uint8_t *image;

	atomic_fetch_add(look ? &m.pub.looks : &m.pub.gets, 1);
	if (f == KVF_EIO)
		return -EIO;
	if (!k || !k->there)
		return -ENOENT;
	if (f == KVF_KEY && !look)
		k = k == &m.key[0] ? &m.key[1] : &m.key[0];
	bytes = f == KVF_GROWS ? r->size + 1 : k->bytes;
	begin = k->place % KV_PAGE;
	xseg_req_note_set(seg, r, KV_NOTE_PLACE, kv_note_place(k->place, bytes));
	xseg_req_note_set(seg, r, KV_NOTE_ZONE, k->zone);
	xseg_req_note_set(seg, r, KV_NOTE_TIME, m.pub.time);
	xseg_req_note_set(seg, r, KV_NOTE_EPOCH,
		kv_note_epoch(EPOCH, f == KVF_BEYOND ? r->size - 8 : begin));
	if (f == KVF_GROWS || f == KVF_SHORT || begin + k->bytes > r->size)
		return -EMSGSIZE;
	image = malloc(k->bytes);
	memcpy(image, m.zone[k->zone] + k->place, k->bytes);
	if ((f == KVF_VALUE && !look) || f == KVF_VALUE_ALWAYS)
		image[k->key_bytes + xrecord_data_at(k->place, k->key_bytes, k->rec.flags)] ^= 1;
	if (f == KVF_HEADER && !look)
		image[20] ^= 1;
	if (f == KVF_LIST && k->large)
		spoil_list(k, image);
	xseg_req_write_data(seg, r, begin, image, k->bytes);
	free(image);
	return r->size;
}

static int64_t exists(struct xseg *seg, struct xreq *r, const uint8_t *key, uint32_t bytes)
{
	struct key *k = find(key, bytes);
	struct kv_info_of_key info = { 0 };

	if (!is_there(k))
		return -ENOENT;
	info.version = k->rec.version;
	info.expiry = k->rec.expiry;
	info.record_bytes = k->bytes;
	info.large_bytes = k->large ? k->large_bytes : 0;
	xseg_req_write_data(seg, r, 0, &info, sizeof(info));
	return r->size;
}

static int64_t scan(
	struct xseg *seg, struct xreq *r, const struct kv_query *q, const uint8_t *prefix)
{
	struct kv_scan_head head = { .bytes = sizeof(head) };
	uint32_t i = q->cursor ? (uint32_t)q->cursor - 1 : 0, most = m.pub.scan_nr, f = fault();

	atomic_fetch_add(&m.pub.scans, 1);
	for (; i < m.nr_keys && (!most || head.nr < most); i++) {
		struct key *k = &m.key[i];
		struct kv_scan_entry e = { .version = k->rec.version, .client = k->rec.client,
			.value_bytes = k->large ? k->large_bytes : k->value_bytes,
			.key_bytes = k->key_bytes, .expiry = k->rec.expiry };
		uint32_t all = (uint32_t)(sizeof(e) + k->key_bytes + 7) / 8 * 8;

		if (!is_there(k) || k->key_bytes < q->key_bytes ||
			memcmp(k->key, prefix, q->key_bytes) != 0)
			continue;
		if (head.bytes + all > r->size)
			break;
		if (f == KVF_SCAN_KEY)
			e.key_bytes = r->size;
		xseg_req_write_data(seg, r, head.bytes, &e, sizeof(e));
		xseg_req_write_data(
			seg, r, head.bytes + (uint32_t)sizeof(e), k->key, k->key_bytes);
		head.bytes += all;
		head.nr++;
	}
	head.next = i < m.nr_keys ? i + 1 : 0;
	if (head.next && !head.nr && !most)
		return -EMSGSIZE;
	head.nr += f == KVF_SCAN_NR;
	if (f == KVF_SCAN_BYTES)
		head.bytes = r->size + 1;
	xseg_req_write_data(seg, r, 0, &head, sizeof(head));
	return r->size;
}

/* Keys from the cursor on, as many as fit. */
static int64_t backup(struct xseg *seg, struct xreq *r, const struct kv_query *q)
{
	struct kv_backup_head head = { .bytes = sizeof(head), .bad = 7 };
	uint32_t i = q->cursor ? (uint32_t)q->cursor - 1 : 0, f = fault();

	for (; i < m.nr_keys; i++) {
		const struct key *k = &m.key[i];
		struct kv_backup_entry e = { .identity = { i, 1 }, .sequence = k->rec.sequence,
			.version = k->rec.version, .key_bytes = k->there ? k->key_bytes : 0,
			.value_bytes = k->there ? k->value_bytes : 0,
			.data_crc = k->rec.data_crc ^ (f == KVF_VALUE), .client = k->rec.client,
			.flags = (k->there ? KV_BACKUP_SET : 0) |
				 (k->there && k->large ? KV_BACKUP_LARGE : 0) };
		uint32_t data = e.key_bytes + e.value_bytes,
			 all = (uint32_t)(sizeof(e) + data + 7) / 8 * 8;

		if (head.bytes + all > r->size)
			break;
		e.key_bytes += f == KVF_SCAN_KEY ? r->size : 0;
		xseg_req_write_data(seg, r, head.bytes, &e, sizeof(e));
		if (data)
			xseg_req_write_data(seg, r, head.bytes + (uint32_t)sizeof(e),
				value_of(k) - k->key_bytes, data);
		head.bytes += all;
		head.nr++;
	}
	head.next = i < m.nr_keys ? i + 1 : 0;
	head.nr += f == KVF_SCAN_NR;
	if (f == KVF_SCAN_BYTES)
		head.bytes = r->size + 1;
	xseg_req_write_data(seg, r, 0, &head, sizeof(head));
	return r->size;
}

/* A range of a large value. One that is held, or the one of a backup whose number is `zone`. */
static int64_t piece(struct xseg *seg, struct xreq *r, const struct kv_query *q)
{
	const uint8_t *data;
	uint32_t f = fault();
	uint8_t *image;

	atomic_fetch_add(&m.pub.pieces, 1);
	if (f == KVF_FORGET_ONCE) {
		kvmodel_large_lose();
		atomic_store(&m.pub.fault, KVF_NONE);
	}
	data = kvmodel_large_piece(q->held, q->zone, q->offset, r->size);
	if (!data || f == KVF_FORGET)
		return -EBADF;
	image = malloc(r->size);
	memcpy(image, data, r->size);
	if (f == KVF_PIECE || f == KVF_PIECE_ALWAYS)
		image[0] ^= 1;
	if (f == KVF_PIECE)
		atomic_store(&m.pub.fault, KVF_NONE);
	xseg_req_write_data(seg, r, 0, image, r->size);
	free(image);
	return f == KVF_PIECE_SHORT ? 1 : r->size;
}

static int64_t info(struct xseg *seg, struct xreq *r)
{
	struct kv_info i = { .version = KV_WIRE_VERSION, .id = ID, .record_max = 1 << 20,
		.time = m.pub.time, .keys_max = MAX_KEYS, .size_bytes = ZONES * ZONE_BYTES,
		.value_max = VALUE_MAX, .piece_bytes = KVMODEL_PIECE };

	for (uint32_t k = 0; k < m.nr_keys; k++)
		if (is_there(&m.key[k])) {
			i.keys++;
			i.live_bytes += m.key[k].bytes;
		}
	memcpy(i.uuid, uuid, sizeof(i.uuid));
	i.id += fault() == KVF_ESTALE;
	xseg_req_write_data(seg, r, 0, &i, sizeof(i));
	return r->size;
}

static int64_t query(struct xseg *seg, struct xreq *r)
{
	static uint8_t key[KV_KEY_MAX];
	struct kv_query q;

	if (r->offset || r->size % KV_PAGE || r->nr_pages * KV_PAGE < r->size + sizeof(q))
		return -EINVAL;
	xseg_req_read_data(seg, r, r->size, &q, sizeof(q));
	if (q.magic != KV_QUERY_MAGIC || q.key_bytes > KV_KEY_MAX ||
		r->nr_pages * KV_PAGE < r->size + sizeof(q) + q.key_bytes)
		return -EINVAL;
	if (q.kind != KV_INFO && r->volume != ID)
		return -ESTALE;
	xseg_req_read_data(seg, r, r->size + (uint32_t)sizeof(q), key, q.key_bytes);
	switch (q.kind) {
	case KV_GET:
		return get(seg, r, &q, key);
	case KV_EXISTS:
		return exists(seg, r, key, q.key_bytes);
	case KV_SCAN:
		return scan(seg, r, &q, key);
	case KV_INFO:
		return info(seg, r);
	case KV_BACKUP:
		return backup(seg, r, &q);
	case KV_PIECE:
		return piece(seg, r, &q);
	default:
		return -EINVAL;
	}
}

/* ---- changes ----------------------------------------------------------------------------- */

static int condition(const struct kv_change *c, const struct key *k)
{
	switch (c->condition) {
	case KV_IF_ABSENT:
		return is_there(k) ? -EEXIST : 0;
	case KV_IF_PRESENT:
		return is_there(k) ? 0 : -ENOENT;
	case KV_IF_VERSION:
		return !is_there(k) ? -ENOENT : k->rec.version == c->version ? 0 : -EEXIST;
	default:
		return c->kind != KV_PUT && c->kind < KV_HOLD && !is_there(k) ? -ENOENT : 0;
	}
}

static void join(struct key *k, const uint8_t *a, uint32_t na, const uint8_t *b, uint32_t nb)
{
	uint8_t *all = malloc(na + nb + 1);

	if (na)
		memcpy(all, a, na);
	if (nb)
		memcpy(all + na, b, nb);
	append(k, all, na + nb, k->rec.expiry, k->rec.client);
	free(all);
}

static int count(struct kv_change *c, struct key *k)
{
	char text[32], *end;
	uint64_t n;

	if (k->value_bytes == 0 || k->value_bytes >= sizeof(text))
		return -EINVAL;
	memcpy(text, value_of(k), k->value_bytes);
	text[k->value_bytes] = '\0';
	n = strtoull(text, &end, 10);
	if (*end)
		return -EINVAL;
	n = c->kind == KV_INCR ? n + c->amount : n > c->amount ? n - c->amount : 0;
	c->number = n;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	append(k, (uint8_t *)text, (uint32_t)strlen(text), k->rec.expiry, k->rec.client);
	return 0;
}

static uint32_t expiry_of(const struct kv_change *c)
{
	return c->flags & KV_TTL && c->expiry ? c->expiry + m.pub.time : c->expiry;
}

static int commit(struct kv_change *c, struct key *k, const uint8_t *sums)
{
	uint64_t nr = c->value_bytes / sizeof(uint32_t), was = k->large;
	struct kv_large *large;
	int64_t rc;

	if (fault() == KVF_COMMIT_EIO) {
		atomic_store(&m.pub.fault, KVF_NONE);
		return -EIO;
	}
	rc = kvmodel_large_commit(c->handle, c->total, sums, c->value_bytes);
	if (rc < 0)
		return (int)rc;
	large = calloc(1, sizeof(*large) + c->value_bytes);
	*large = (struct kv_large){ .bytes = c->total, .zone = (uint64_t)rc, .nr_zones = 1,
		.nr_pieces = (uint32_t)nr, .piece_bytes = KVMODEL_PIECE };
	memcpy(large + 1, sums, c->value_bytes);
	append_as(k, (uint8_t *)large, (uint32_t)sizeof(*large) + c->value_bytes, expiry_of(c),
		c->client, XRECORD_LARGE);
	free(large);
	k->large = (uint64_t)rc;
	k->large_bytes = c->total;
	if (was)
		kvmodel_large_gone(was);
	c->new_version = m.sequence;
	return 0;
}

/* Changes of handles, but for COMMIT. */
static int apply_handle(struct kv_change *c, const uint8_t *key)
{
	struct key *k = find(key, c->key_bytes);
	int64_t rc;

	if (c->kind == KV_DROP)
		return kvmodel_large_drop(c->handle);
	if (c->kind == KV_BEGIN)
		rc = fault() == KVF_NO_HANDLE	  ? -EBUSY
		     : c->total > VALUE_MAX ? -EFBIG
					    : kvmodel_large_begin(c->total);
	else if (!is_there(k))
		rc = -ENOENT;
	else if (c->version && k->rec.version != c->version)
		rc = -ESTALE;
	else
		rc = kvmodel_large_hold(k->large);
	if (c->kind == KV_HOLD && fault() == KVF_HOLD_STALE) {
		atomic_store(&m.pub.fault, KVF_NONE);
		if (rc > 0)
			kvmodel_large_drop((uint64_t)rc);
		rc = -ESTALE;
	}
	c->number = rc < 0 ? 0 : (uint64_t)rc;
	return rc < 0 ? (int)rc : 0;
}

static int delete_all(struct kv_change *c)
{
	for (uint32_t i = 0; i < m.nr_keys; i++) {
		end_large(&m.key[i]);
		m.key[i].there = false;
	}
	c->new_version = ++m.sequence;
	return 0;
}

static int apply(struct kv_change *c, const uint8_t *key, const uint8_t *value)
{
	uint32_t expiry = expiry_of(c);
	struct key *k;
	int rc = 0;

	if (c->kind == KV_HOLD || c->kind == KV_DROP || c->kind == KV_BEGIN)
		return apply_handle(c, key);
	if (c->kind == KV_DELETE_ALL)
		return delete_all(c);
	k = make(key, c->key_bytes);
	switch (c->kind) {
	case KV_COMMIT:
		return commit(c, k, value);
	case KV_PUT:
		append(k, value, c->value_bytes, expiry, c->client);
		break;
	case KV_DELETE:
		end_large(k);
		k->there = false;
		m.sequence++;
		break;
	case KV_APPEND:
		join(k, value_of(k), k->value_bytes, value, c->value_bytes);
		break;
	case KV_PREPEND:
		join(k, value, c->value_bytes, value_of(k), k->value_bytes);
		break;
	case KV_TOUCH:
		append(k, value_of(k), k->value_bytes, expiry, k->rec.client);
		break;
	default:
		rc = count(c, k);
	}
	c->new_version = m.sequence;
	return rc;
}

static int64_t part(struct xseg *seg, struct xreq *r, const uint8_t *data)
{
	struct kv_part p;
	int rc;

	atomic_fetch_add(&m.pub.parts, 1);
	xseg_req_read_data(seg, r, r->size, &p, sizeof(p));
	if (fault() == KVF_FORGET_ONCE) {
		kvmodel_large_lose();
		atomic_store(&m.pub.fault, KVF_NONE);
	}
	if (fault() == KVF_FORGET)
		return -EBADF;
	rc = p.magic != KV_PART_MAGIC || r->size % KV_PAGE
		     ? -EINVAL
		     : kvmodel_large_part(p.handle, p.offset, data, r->size);
	return rc ? rc : (int64_t)r->size;
}

static int64_t change(struct xseg *seg, struct xreq *r)
{
	static uint8_t image[XSEG_REQ_BYTES];
	struct kv_batch *batch = (struct kv_batch *)image;
	struct kv_change *c = (struct kv_change *)(batch + 1);
	bool failed = false;

	if (r->volume != ID)
		return -ESTALE;
	xseg_req_read_data(seg, r, 0, image, r->size);
	if (r->nr_pages > kv_pages(r->size))
		return part(seg, r, image);
	if (batch->magic != KV_BATCH_MAGIC || !batch->nr)
		return -EINVAL;
	for (uint32_t i = 0; i < batch->nr; i++) {
		if (xcrc32c(xcrc32c(0, image + c[i].key_at, c[i].key_bytes), image + c[i].value_at,
			    c[i].value_bytes) != c[i].data_crc)
			return -EPROTO;
		c[i].result = condition(&c[i], find(image + c[i].key_at, c[i].key_bytes));
		failed |= c[i].result && (batch->nr == 1 || c[i].kind != KV_DELETE ||
						 c[i].condition != KV_ALWAYS);
	}
	for (uint32_t i = 0; i < batch->nr; i++)
		if (failed && !c[i].result)
			c[i].result = -ECANCELED;
		else if (!c[i].result)
			c[i].result = apply(&c[i], image + c[i].key_at, image + c[i].value_at);
	atomic_fetch_add(&m.pub.changes, batch->nr);
	atomic_fetch_add(&m.pub.forced, r->flags & XSEG_REQ_FUA ? 1 : 0);
	if (fault() != KVF_UNTOLD)
		xseg_req_write_data(seg, r, 0, image,
			(uint32_t)(sizeof(*batch) + batch->nr * sizeof(*c)));
	return r->size;
}

/* ---- the peer ---------------------------------------------------------------------------- */

static int64_t answer_to(struct xseg *seg, struct xreq *r)
{
	atomic_fetch_add(&m.pub.once, r->flags & XSEG_REQ_ONCE ? 1 : 0);
	switch (r->op) {
	case XSEG_OP_READ:
		return query(seg, r);
	case XSEG_OP_WRITE:
		return change(seg, r);
	case XSEG_OP_FLUSH:
		atomic_fetch_add(&m.pub.flushes, 1);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static void model_request(struct peer_port *pp, struct xreq *r)
{
	if (fault() != KVF_SILENT || m.nr_held == MAX_HELD) {
		peer_answer(pp, r, answer_to(pp->peer->seg, r));
		return;
	}
	m.held[m.nr_held++] = r;
	atomic_store(&m.pub.held, m.nr_held);
}

static uint64_t model_poll(struct peer_port *pp)
{
	if (fault() == KVF_SILENT)
		return m.nr_held ? pp->now_ns + 1000000 : PEER_NEVER;
	while (m.nr_held) {
		struct xreq *r = m.held[--m.nr_held];

		peer_answer(pp, r, answer_to(pp->peer->seg, r));
	}
	atomic_store(&m.pub.held, 0);
	return PEER_NEVER;
}

static void model_fini(struct peer *p)
{
	(void)p;
	m.nr_held = 0;
	atomic_store(&m.pub.held, 0);
}

static const struct opt model_opts[] = { { 0 } };

const struct peer_class kvmodel_class = {
	.kind = "kvd",
	.summary = "a model of kvd",
	.opts = model_opts,
	.size = sizeof(struct model_peer),
	.request = model_request,
	.poll = model_poll,
	.fini = model_fini
};
