/* kv_change - PUT, DELETE and the other changes, alone or as a BATCH: the request, and its outcome.
 *
 * A change is a WRITE. Its pages hold (kv_wire.h)
 *
 *      struct kv_batch, a struct kv_change for each change, the keys and the small values;
 *      then each value of BIG bytes and more, from a page on, so that it is written below as it is
 *
 * Invariants
 *   W1  The CRC is of the bytes in the request's pages, which nobody changes any more. A caller
 *       that writes to its value meanwhile gets the old bytes or the new ones, and no damaged
 *       value. With XSEG_KV_GIVE the caller has written to these pages, and must not go on.
 *   W3  What follows a value of BIG bytes in its last page is zeroes, as it is written below.
 *   W2  The outcome of a change is input: a change of which kvd said nothing is -EPROTO.
 *
 * Contract: the queue's thread. Nothing here blocks, allocates or sends; states are kv_queue.c's.
 */
#include <errno.h>
#include <string.h>

#include "xseg/client/kv_inside.h"
#include "xtypes/xcrc.h"

#define BIG	  32768u
#define LINE	  64u		/* where a value begins that the caller writes to the room */
#define UNTOLD	  INT32_MIN	/* what kvd writes over */
#define MAX_PAGES (XSEG_REQ_BYTES / KV_PAGE)

/* ---- what is asked for ------------------------------------------------------------------- */

static uint32_t nr_of(const struct xseg_kv_io *io)
{
	return io->op == XSEG_KV_BATCH ? io->nr_batch : 1;
}

static const struct xseg_kv_item *item_at(const struct xseg_kv_io *io, uint32_t i)
{
	return io->op == XSEG_KV_BATCH ? &io->batch[i] : &io->item;
}

static uint32_t op_at(const struct xseg_kv_io *io, uint32_t i)
{
	return io->op == XSEG_KV_BATCH ? io->batch[i].op : (uint32_t)io->op;
}

static bool has_value(uint32_t op)
{
	return op == XSEG_KV_PUT || op == XSEG_KV_APPEND || op == XSEG_KV_PREPEND;
}

static uint64_t value_of(const struct xseg_kv_io *io, uint32_t i)
{
	return has_value(op_at(io, i)) ? item_at(io, i)->value_bytes : 0;
}

/* Where each key and value stands, by `place` if that is not NULL. Returns the size of all. */
static uint64_t lay_out(const struct xseg_kv_io *io, struct kv_change *change)
{
	uint32_t nr = nr_of(io);
	uint64_t at = sizeof(struct kv_batch) + nr * sizeof(struct kv_change), bytes;

	for (uint32_t i = 0; i < nr; i++) {
		if (change)
			change[i].key_at = (uint32_t)at;
		at += item_at(io, i)->key_bytes;
		bytes = value_of(io, i);
		if (bytes >= BIG)
			continue;
		if (io->flags & XSEG_KV_GIVE)
			at = (at + LINE - 1) / LINE * LINE;
		if (change)
			change[i].value_at = (uint32_t)at;
		at += bytes;
	}
	for (uint32_t i = 0; i < nr; i++) {
		bytes = value_of(io, i);
		if (bytes < BIG)
			continue;
		at = kv_pages(at) * KV_PAGE;
		if (change)
			change[i].value_at = (uint32_t)at;
		at += bytes;
	}
	return at;
}

/* Of a change in a batch. */
static bool may_be_many(uint32_t op)
{
	return op == XSEG_KV_PUT || op == XSEG_KV_DELETE;
}

static int check_item(const struct xseg_kv *kv, const struct xseg_kv_item *item, uint32_t op)
{
	if (op == XSEG_KV_DELETE_ALL)
		return item->key_bytes || item->condition ? -EINVAL : 0;
	if (op < XSEG_KV_PUT || op > XSEG_KV_TOUCH || item->condition > XSEG_KV_IF_VERSION)
		return -EINVAL;
	if (!item->key || item->key_bytes == 0 || item->key_bytes > KV_KEY_MAX)
		return -EINVAL;
	if (!has_value(op))
		return 0;
	if (item->value_bytes && !item->value)
		return -EINVAL;
	return xseg_kv_is_large(kv, item->key_bytes, item->value_bytes) ? -EFBIG : 0;
}

/* kv_whole.c puts a large value that stands alone. */
static int check_one(const struct xseg_kv *kv, const struct xseg_kv_io *io)
{
	int rc = check_item(kv, &io->item, (uint32_t)io->op);

	if (rc != -EFBIG || io->op != XSEG_KV_PUT)
		return rc;
	return kv->piece_bytes && io->item.value_bytes <= kv->value_max ? 0 : -EFBIG;
}

int xs_kv_change_check(const struct xseg_kv *kv, const struct xseg_kv_io *io)
{
	int rc = 0;

	if (io->flags & ~(XSEG_KV_FORCE | (io->op == XSEG_KV_PUT ? XSEG_KV_ONCE | XSEG_KV_GIVE : 0)))
		return -EINVAL;
	if (io->op != XSEG_KV_BATCH)
		return check_one(kv, io);
	if (!io->batch || io->nr_batch == 0)
		return -EINVAL;
	if (nr_of(io) > KV_BATCH_MAX)
		return -E2BIG;
	for (uint32_t i = 0; i < nr_of(io) && !rc; i++)
		rc = may_be_many(op_at(io, i)) ? check_item(kv, item_at(io, i), op_at(io, i))
					       : -EINVAL;
	if (rc)
		return rc;
	return kv_pages(lay_out(io, NULL)) > MAX_PAGES ? -E2BIG : 0;
}

uint32_t xs_kv_change_pages(const struct xseg_kv_io *io)
{
	return (uint32_t)kv_pages(lay_out(io, NULL));
}

uint32_t xs_kv_change_value_at(const struct xseg_kv_io *io)
{
	struct kv_change c = { 0 };

	lay_out(io, &c);
	return c.value_at;
}

/* ---- the request ------------------------------------------------------------------------- */

static uint8_t kind_of(uint32_t op)
{
	static const uint8_t kinds[] = {
		[XSEG_KV_PUT] = KV_PUT,
		[XSEG_KV_DELETE] = KV_DELETE,
		[XSEG_KV_APPEND] = KV_APPEND,
		[XSEG_KV_PREPEND] = KV_PREPEND,
		[XSEG_KV_INCR] = KV_INCR,
		[XSEG_KV_DECR] = KV_DECR,
		[XSEG_KV_TOUCH] = KV_TOUCH,
		[XSEG_KV_DELETE_ALL] = KV_DELETE_ALL
	};

	return kinds[op];
}

/* W1: key_at and value_at are set. */
static void write_change(
	struct kv_change *c, const struct xseg_kv_item *item, uint32_t op, uint8_t *mem)
{
	uint64_t value = has_value(op) ? item->value_bytes : 0;

	c->kind = kind_of(op);
	c->condition = (uint8_t)item->condition;
	c->flags = item->ttl_s ? KV_TTL : 0;
	c->expiry = item->ttl_s ? item->ttl_s : item->expiry;
	c->client = item->client;
	c->version = item->condition == XSEG_KV_IF_VERSION ? item->version : 0;
	c->amount = op == XSEG_KV_INCR || op == XSEG_KV_DECR ? item->number : 0;
	c->key_bytes = item->key_bytes;
	c->value_bytes = (uint32_t)value;
	c->result = UNTOLD;
	if (item->key_bytes)
		memcpy(mem + c->key_at, item->key, item->key_bytes);
	c->data_crc = xcrc32c(0, mem + c->key_at, item->key_bytes);
	if (value && item->value)
		c->data_crc = xcrc32c_copy(c->data_crc, mem + c->value_at, item->value, value);
	else if (value)				/* XSEG_KV_GIVE */
		c->data_crc = xcrc32c(c->data_crc, mem + c->value_at, value);
	if (value >= BIG)			/* W3 */
		memset(mem + c->value_at + value, 0, kv_pages(value) * KV_PAGE - value);
}

void xs_kv_change_fill(struct xseg_kv_queue *q, struct kv_slot *s, struct xseg_kv_io *io)
{
	struct kv_batch *batch = (struct kv_batch *)s->room->mem;
	struct kv_change *change = (struct kv_change *)(batch + 1);
	const struct xseg_kv_item *first = item_at(io, 0);
	uint32_t nr = nr_of(io);
	struct xreq *r = s->r;

	*batch = (struct kv_batch){ .magic = KV_BATCH_MAGIC, .nr = (uint16_t)nr };
	memset(change, 0, nr * sizeof(*change));
	r->size = (uint32_t)lay_out(io, change);
	for (uint32_t i = 0; i < nr; i++)
		write_change(&change[i], item_at(io, i), op_at(io, i), s->room->mem);
	r->op = XSEG_OP_WRITE;
	r->flags = (io->flags & XSEG_KV_FORCE ? XSEG_REQ_FUA : 0) |
		   (io->flags & XSEG_KV_ONCE ? XSEG_REQ_ONCE : 0);
	r->volume = q->kv->id;
	r->offset = 0;
	r->nr_pages = (uint16_t)kv_pages(r->size);
	r->hash = xseg_hash(first->key, first->key_bytes);
	memcpy(r->page, s->room->page, r->nr_pages * sizeof(r->page[0]));
}

/* ---- the outcome ------------------------------------------------------------------------- */

/* W2 */
static void take_outcome(struct xseg_kv_item *item, uint32_t op, const struct kv_change *told)
{
	struct kv_change c = *told;

	if (c.result == UNTOLD || c.result > 0) {
		item->result = -EPROTO;
		return;
	}
	item->result = c.result;
	if (c.result != 0 && c.result != -EEXIST)
		return;
	item->version = c.new_version;
	if (c.result == 0 && (op == XSEG_KV_INCR || op == XSEG_KV_DECR))
		item->number = c.number;
}

/* Whether that is the result of the whole, too. An absent key in a batch need not be deleted. */
static bool is_failure(const struct xseg_kv_io *io, const struct xseg_kv_item *item)
{
	if (item->result == -ENOENT && io->op == XSEG_KV_BATCH)
		return item->op != XSEG_KV_DELETE || item->condition != XSEG_KV_ALWAYS;
	return item->result && item->result != -ECANCELED;
}

enum kv_step xs_kv_change_end(struct xseg_kv_queue *q, struct kv_slot *s)
{
	const struct kv_batch *batch = (const struct kv_batch *)s->room->mem;
	const struct kv_change *change = (const struct kv_change *)(batch + 1);
	struct xseg_kv_io *io = s->io;
	int64_t result = s->r->result;

	(void)q;
	io->result = result < 0 ? result : 0;
	for (uint32_t i = 0; i < nr_of(io); i++) {
		struct xseg_kv_item *item = io->op == XSEG_KV_BATCH ? &io->batch[i] : &io->item;

		if (result < 0)
			item->result = (int32_t)result;
		else
			take_outcome(item, op_at(io, i), &change[i]);
		if (!io->result && is_failure(io, item))
			io->result = item->result;
	}
	return KV_DONE;
}
