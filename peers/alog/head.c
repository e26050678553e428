/* head - two objects, written by turns with FUA, that say which zones there are.
 *
 * Contract: see inside.h. One write of a head is out at a time. A write that fails is tried again
 * with growing pauses, at the same copy.
 *
 * Invariants
 *   H1  Ids and sequences are used below the reservation of a head whose write was answered.
 *   H2  The copy that is written is the older one. So a torn write leaves the other.
 *   H3  A zone's live bit is set from its reservation until its deletion is stable. Its dying bit
 *       is set in each head that is written after its DELETE was sent.
 *   H5  A zone whose records did not all verify when it was scanned is `poor` in the head before
 *       the opening ends: a later FLUSH makes it stable, but its hints stay wrong (L4).
 *   H4  If a copy is bad, it may have been the newer one: a further reservation is taken for used,
 *       and an epoch is skipped.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "peers/alog/inside.h"
#include "xtypes/xcrc.h"

#define HEAD_MAGIC 0x3130474f4c475358ull	/* "XSGLOG01" */

struct head_block {
	uint32_t crc;				/* of all behind it, the bits too */
	uint32_t zones, zone_bytes, span;
	uint64_t magic;
	uint8_t uuid[16];
	uint64_t owner, version, epoch, lowest, next_id, reserved, sequence, durable;
	uint8_t words[ALOG_USER_BYTES];
	uint64_t own_next, own_reserved;
	uint32_t own, own_nr;			/* runs: at most; behind the bits */
	uint64_t unused[31];
	uint64_t bits[];			/* live, dying, poor: span / 64 each */
};
_Static_assert(sizeof(struct head_block) == 504, "the head before its bits");

static uint32_t span_of(const struct alog_config *cfg)
{
	return (4 * cfg->zones + ALOG_SPAN_EXTRA + 63) / 64 * 64;
}

uint32_t head_bytes(const struct alog_config *cfg)
{
	return xrecord_round((uint32_t)sizeof(struct head_block) + 3 * span_of(cfg) / 8 +
				  own_slots(cfg) * (uint32_t)sizeof(struct own_named),
		ALOG_PAGE);
}

static struct own_named *named(const struct head_block *b)
{
	return (struct own_named *)(b->bits + 3 * b->span / 64);
}

void head_target(struct alog *l, struct io *io, uint32_t copy)
{
	snprintf(io->pub.target, sizeof(io->pub.target), "+%s:head.%u", l->cfg.prefix, copy);
}

/* ---- writing ---- */

uint64_t head_want(struct alog *l)
{
	l->head.wanted = true;
	return ++l->head.mark;
}

/* An id that is dying and has no zone was deleted. Its bits stay until a FLUSH; where none comes
 * for so long that the span gets long, it is passed. */
static bool may_pass(struct alog *l, uint64_t id)
{
	if (!bit_get(l->z.live, l, id))
		return true;
	return bit_get(l->z.dying, l, id) && !zone_find(l, id) && serves(l) &&
	       l->head.next_id - l->head.lowest > 3ull * l->cfg.zones;
}

static void advance_lowest(struct alog *l)
{
	struct head *h = &l->head;

	for (; h->lowest < h->next_id && may_pass(l, h->lowest); h->lowest++)
		bits_clear(l, h->lowest);
}

/* Few ids are left, and there are more to be had. */
void head_reserve_ahead(struct alog *l)
{
	uint64_t few = l->z.step / 2 < 6 ? l->z.step / 2 : 6;

	if (l->head.next_id + few >= l->head.in.id && !l->head.out &&
		l->head.in.id < l->head.lowest + l->z.span - 1)
		l->head.wanted = true;
}

/* The next reservation: fewer ids where the span is nearly used up. */
static void reserve(struct alog *l, struct reserved *to)
{
	struct head *h = &l->head;
	uint64_t limit = h->lowest + l->z.span - 1;

	to->id = h->next_id + l->z.step;
	if (to->id - h->lowest > 4ull * l->cfg.zones + ALOG_SPAN_EXTRA / 2)
		to->id = h->next_id + (l->z.step < 8 ? l->z.step : 8);
	if (to->id > limit)
		to->id = limit;
	if (to->id < h->in.id)
		to->id = h->in.id;
	to->sequence = l->s.sequence + 2ull * l->z.step * (l->cfg.zone_bytes / ALOG_HEADER_BYTES);
	to->mark = h->mark;
	to->deleted = l->g.deleted;
	for (uint64_t id = h->in.id; id < to->id; id++)
		bit_set(l->z.live, l, id, true);
}

static void fill(struct alog *l, struct head_block *b, const struct reserved *r)
{
	uint32_t words = l->z.span / 64;

	memset(b, 0, head_bytes(&l->cfg));
	*b = (struct head_block){ .zones = l->cfg.zones, .zone_bytes = l->cfg.zone_bytes,
		.span = l->z.span, .magic = HEAD_MAGIC, .owner = l->cfg.owner,
		.version = l->head.version + 1, .epoch = l->head.epoch, .lowest = l->head.lowest,
		.next_id = l->head.next_id, .reserved = r->id, .sequence = r->sequence,
		.durable = zone_durable(l), .own = l->cfg.own, .own_next = l->own.next,
		.own_reserved = l->own.on_its_way };
	memcpy(b->uuid, l->cfg.uuid, sizeof(b->uuid));
	memcpy(b->words, l->words, sizeof(b->words));
	memcpy(b->bits, l->z.live, words * sizeof(uint64_t));
	memcpy(b->bits + words, l->z.dying, words * sizeof(uint64_t));
	memcpy(b->bits + 2 * words, l->z.poor, words * sizeof(uint64_t));
	b->own_nr = own_write(l, named(b));
	b->crc = xcrc32c(0, &b->zones, head_bytes(&l->cfg) - sizeof(b->crc));
}

/* V1 of own.c. */
static void reserve_own(struct alog *l)
{
	struct own *o = &l->own;
	uint32_t ahead = l->z.step < l->cfg.own ? l->z.step : l->cfg.own;

	o->on_its_way = o->next + (o->ask > ahead ? o->ask : ahead);
	if (o->on_its_way < o->in)
		o->on_its_way = o->in;
	o->ask = 0;
}

bool head_pump(struct alog *l)
{
	struct head *h = &l->head;
	struct io *io;

	if (!h->wanted || h->out || l->now < h->retry_ns || !(io = io_get(l, IO_HEAD)))
		return false;
	advance_lowest(l);
	reserve(l, &h->on_its_way);
	reserve_own(l);
	fill(l, (struct head_block *)l->head_page, &h->on_its_way);
	io->pub.op = XSEG_OP_WRITE;
	io->pub.fua = true;
	head_target(l, io, (uint32_t)((h->version + 1) % 2));
	io_pages(l, io, l->head_page, head_bytes(&l->cfg));
	h->out = true;
	h->wanted = false;
	io_send(l, io);
	return true;
}

void head_done(struct alog *l, struct io *io, int64_t result)
{
	struct head *h = &l->head;

	h->out = false;
	if (result != io->pub.size) {
		h->wanted = true;
		h->pause_ns = h->pause_ns ? 2 * h->pause_ns : ALOG_RETRY_NS;
		if (h->pause_ns > ALOG_RETRY_MAX_NS)
			h->pause_ns = ALOG_RETRY_MAX_NS;
		h->retry_ns = l->now + h->pause_ns;
	} else {
		h->pause_ns = h->retry_ns = 0;
		h->version++;
		h->in = h->on_its_way;		/* H1 */
		l->own.in = l->own.on_its_way;
		grave_stable(l, h->in.deleted, false);
	}
	io_put(l, io);
}

void *alog_words(struct alog *l)
{
	return l->words;
}

void alog_words_write(struct alog *l)
{
	head_want(l);
}

bool alog_words_stable(const struct alog *l)
{
	return l->head.in.mark >= l->head.mark;
}

/* ---- reading ---- */

/* The last two bytes are the version of the form. */
static bool has_other_form(const struct head_block *b)
{
	return b->magic != HEAD_MAGIC && b->magic << 16 == HEAD_MAGIC << 16;
}

/* The sum of a head of another geometry cannot be checked: its length is another one. */
static bool has_other_geometry(const struct alog *l, const struct head_block *b)
{
	return b->magic == HEAD_MAGIC && (b->zones != l->cfg.zones || b->own != l->cfg.own ||
		b->zone_bytes != l->cfg.zone_bytes || b->span != l->z.span);
}

static bool is_good(const struct alog *l, const struct head_block *b)
{
	return b->magic == HEAD_MAGIC && !has_other_geometry(l, b) && b->lowest >= 1 &&
	       b->lowest <= b->next_id && b->next_id <= b->reserved &&
	       b->reserved - b->lowest <= b->span &&
	       b->reserved < UINT64_MAX / 2 && b->epoch < UINT64_MAX / 2 &&
	       b->version < UINT64_MAX / 2 && b->sequence < UINT64_MAX / 2 &&
	       b->own_nr <= own_slots(&l->cfg) && b->own_next <= b->own_reserved &&
	       b->own_reserved < UINT64_MAX / 2 &&
	       b->own_reserved - b->own_next <= UINT32_MAX / 2 &&
	       b->crc == xcrc32c(0, &b->zones, head_bytes(&l->cfg) - sizeof(b->crc));
}

static bool is_zero(const struct alog *l, const void *copy)
{
	const uint8_t *c = copy;

	return c[0] == 0 && memcmp(c, c + 1, head_bytes(&l->cfg) - 1) == 0;
}

/* A bad head may have reserved more, and may have taken names out. */
static void believe_own(struct alog *l, const struct head_block *b, bool suspect)
{
	uint64_t end = b->own_reserved + (suspect ? l->cfg.zones : 0);
	const struct own_named *n = named(b);

	for (uint32_t i = 0; i < b->own_nr; i++)
		own_found(l, n[i].first, n[i].nr);
	if (l->cfg.own)
		own_found(l, b->own_next, (uint32_t)(end - b->own_next));
	l->own.next = l->own.in = l->own.on_its_way = end;
}

static void believe(struct alog *l, const struct head_block *b, bool suspect)
{
	uint32_t words = l->z.span / 64;
	uint64_t end;

	l->head.version = b->version;
	l->head.lowest = b->lowest;
	l->head.in.id = b->reserved;
	l->head.next_id = b->reserved;		/* L3: of an earlier opening none is used again */
	l->head.epoch = b->epoch;
	l->s.sequence = b->sequence;
	l->opening.owner = b->owner;
	l->opening.durable = b->durable;
	memcpy(l->cfg.uuid, b->uuid, sizeof(b->uuid));
	memcpy(l->words, b->words, sizeof(l->words));
	memcpy(l->z.live, b->bits, words * sizeof(uint64_t));
	memcpy(l->z.dying, b->bits + words, words * sizeof(uint64_t));
	memcpy(l->z.poor, b->bits + 2 * words, words * sizeof(uint64_t));
	believe_own(l, b, suspect);
	if (!suspect)
		return;
	l->head.epoch++;			/* H4 */
	l->s.sequence += 2ull * l->z.step * (l->cfg.zone_bytes / ALOG_HEADER_BYTES);
	end = l->head.next_id + l->z.step;
	if (end > l->head.lowest + l->z.span - 1)
		end = l->head.lowest + l->z.span - 1;
	while (l->head.next_id < end)
		bit_set(l->z.live, l, l->head.next_id++, true);
	l->head.in.id = l->head.next_id;
}

int head_read(struct alog *l)
{
	const struct head_block *b[2], *newest = NULL;
	bool empty = !l->reader.bad, bad = false, other = false, form = false;

	for (int i = 0; i < 2; i++) {
		b[i] = (const struct head_block *)(l->head_page + i * head_bytes(&l->cfg));
		empty &= is_zero(l, b[i]);
		other |= has_other_geometry(l, b[i]);
		form |= has_other_form(b[i]);
		if (!is_good(l, b[i]))
			bad |= !is_zero(l, b[i]);
		else if (!newest || b[i]->version > newest->version)
			newest = b[i];
	}
	if (empty)
		return -ENOENT;
	if (!newest)
		return other ? -EINVAL : form ? -EPROTONOSUPPORT : -EBADMSG;
	l->opening.suspect = bad || l->reader.bad;
	believe(l, newest, l->opening.suspect);
	return 0;
}
