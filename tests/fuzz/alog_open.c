/* alog_open - an arena and a store of an append-only log, overwritten with arbitrary bytes, and the
 * successor that opens them.
 *
 * A log is made once and killed: with records in the tail, lent pages that are not written, zones
 * in doubt, and own zones. An input is a list of pieces to write into the arena, the heads and the
 * zones. The sums of the heads may be made good again, so that all that a head says is tried. Then
 * the log is opened: it refuses with an error, or serves. If it serves it takes appends, tells all
 * records, and comes to rest.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/alog/inside.h"
#include "tests/fuzz/fuzz.h"
#include "xtypes/xcrc.h"

#define ZONE_BYTES (8u * ALOG_PAGE)
#define OBJECTS	   256u
#define LENT_PAGES 4u
#define POLLS	   20000u

struct object {
	char name[XSEG_TARGET_MAX];
	uint8_t *data;
};

static const struct alog_config config = { .prefix = "f", .zones = 12, .zone_bytes = ZONE_BYTES,
	.tail_pages = 48, .reserve = 3, .uuid = { 1, 2, 3 }, .owner = 7, .own = 4 };

static struct world {
	struct alog *log;
	uint8_t *arena, *scratch, *lent;
	struct object object[OBJECTS];
	uint32_t nr;
	struct alog_io *queue[64];
	uint32_t nr_out, fail_writes;
	uint64_t now;
	uint64_t place[16];			/* index: zone << 32 | place */
} w;

static struct {
	uint8_t *arena;
	struct object object[OBJECTS];
	uint32_t nr;
} was;

static struct alog_cost cost;

/* ---- the store ---- */

static struct object *object_of(const char *name)
{
	for (uint32_t i = 0; i < w.nr; i++)
		if (strcmp(w.object[i].name, name) == 0)
			return &w.object[i];
	assert(w.nr < OBJECTS);
	w.object[w.nr].data = NULL;
	snprintf(w.object[w.nr].name, sizeof(w.object[0].name), "%s", name);
	return &w.object[w.nr++];
}

static uint8_t *page_at(uint32_t page)
{
	uint8_t *from[] = { w.arena, w.scratch, w.lent };

	assert(page >> 20 < 3);
	return from[page >> 20] + (size_t)(page & 0xfffff) * ALOG_PAGE;
}

static uint32_t object_bytes(void)
{
	uint32_t head = (uint32_t)(cost.scratch_bytes - ZONE_BYTES);

	return head > ZONE_BYTES ? head : ZONE_BYTES;
}

static int64_t serve(const struct alog_io *io)
{
	struct object *o;

	if (io->op == XSEG_OP_FLUSH)
		return 0;
	o = object_of(io->target);
	if (io->op == XSEG_OP_DELETE) {
		free(o->data);
		o->data = NULL;
		return 0;
	}
	if (io->op == XSEG_OP_WRITE && w.fail_writes) {
		w.fail_writes--;
		return -EIO;
	}
	if (!o->data && io->op == XSEG_OP_READ)
		return -ENOENT;
	if (!o->data)
		o->data = calloc(1, object_bytes());
	assert(o->data && io->offset + io->size <= object_bytes());
	for (uint32_t i = 0; i < io->nr_pages; i++) {
		uint8_t *at = o->data + io->offset + i * ALOG_PAGE, *page = page_at(io->page[i]);

		if (io->op == XSEG_OP_READ)
			memcpy(page, at, ALOG_PAGE);
		else
			memcpy(at, page, ALOG_PAGE);
	}
	return io->size;
}

static bool send_io(void *ctx, struct alog_io *io)
{
	(void)ctx;
	w.queue[w.nr_out++] = io;
	return true;
}

static void answer(void)
{
	while (w.nr_out) {
		struct alog_io *io = w.queue[--w.nr_out];

		alog_done(w.log, io, serve(io));
	}
}

static void go_on(uint32_t polls)
{
	for (uint32_t i = 0; i < polls && !alog_failed(w.log); i++) {
		uint64_t next = alog_poll(w.log, w.now);

		if (!w.nr_out && next == ALOG_NEVER)
			return;
		answer();
		if (next != ALOG_NEVER && next > w.now)
			w.now = next;
	}
	assert(polls < POLLS || alog_failed(w.log));	/* it comes to rest */
}

/* ---- the user ---- */

static uint32_t page_of(void *ctx, const void *at)
{
	const uint8_t *p = at;

	(void)ctx;
	if (p >= w.arena && p < w.arena + cost.arena_bytes)
		return (uint32_t)((p - w.arena) / ALOG_PAGE);
	return 1u << 20 | (uint32_t)((p - w.scratch) / ALOG_PAGE);
}

static const void *lent_at(void *ctx, uint32_t page)
{
	(void)ctx;
	assert(page >> 20 == 2 && (page & 0xfffff) < LENT_PAGES);
	return page_at(page);
}

static uint64_t *place_of(const struct alog_hint *hint)
{
	return &w.place[hint->identity[0] % 16];
}

static uint64_t place(uint64_t zone, const struct alog_hint *hint)
{
	return zone << 32 | hint->place;
}

static void found(void *ctx, uint64_t zone, const struct alog_hint *hint)
{
	(void)ctx;
	assert(hint->place + hint->bytes <= ZONE_BYTES);
	*place_of(hint) = place(zone, hint);
}

static enum alog_verdict judge(
	void *ctx, uint64_t zone, const struct alog_hint *hint, bool keep)
{
	(void)ctx;
	if (*place_of(hint) != place(zone, hint))
		return ALOG_DEAD;
	if (hint->expiry)
		return ALOG_EXPIRED;
	return hint->type == ALOG_TOMBSTONE && !keep ? ALOG_DEAD : ALOG_LIVE;
}

static void copied(void *ctx, uint64_t from_zone, const struct alog_hint *from, uint64_t to_zone,
	const struct alog_hint *to)
{
	(void)ctx;
	if (*place_of(from) == place(from_zone, from))
		*place_of(from) = place(to_zone, to);
}

static void gone(void *ctx, uint64_t zone, const struct alog_hint *hint)
{
	(void)ctx;
	(void)zone;
	assert(hint->place + hint->bytes <= ZONE_BYTES);
}

static bool lost(void *ctx, uint64_t zone, struct alog_hint *hint)
{
	(void)ctx;
	(void)hint;
	for (uint32_t i = 0; i < 16; i++)
		if (w.place[i] >> 32 == zone)
			w.place[i] = 0;
	return false;
}

static void damaged(void *ctx, enum alog_damage what, uint64_t zone, uint32_t at, uint32_t bytes)
{
	(void)ctx;
	(void)what;
	(void)zone;
	(void)at;
	(void)bytes;
}

static const struct alog_user user = { .send = send_io, .page = page_of, .found = found,
	.judge = judge, .copied = copied, .gone = gone, .lost = lost, .damage = damaged,
	.at = lent_at };

static int put(uint32_t key, uint32_t bytes, bool lend)
{
	static uint8_t value[4 * ALOG_PAGE];
	uint32_t pages[LENT_PAGES] = { 2u << 20, 2u << 20 | 1, 2u << 20 | 2, 2u << 20 | 3 };
	uint64_t k = key;
	struct alog_put put = { .rec = { .identity = { key, 1 }, .key_bytes = 8,
		.value_bytes = bytes, .type = bytes ? ALOG_VALUE : ALOG_TOMBSTONE,
		.expiry = key == 5, .data_crc = xcrc32c(xcrc32c(0, &k, 8), value, bytes) },
		.key = &k, .value = value };
	struct alog_place at;
	int rc = lend ? alog_append_paged(w.log, &put, pages, &at)
		      : alog_append(w.log, &put, 1, &at);

	if (rc == 0)
		w.place[key % 16] = at.zone << 32 | at.place;
	return rc;
}

static void tell(void *ctx, uint64_t zone, const struct alog_hint *hint,
	const struct xrecord *rec, const void *data)
{
	(void)ctx;
	(void)zone;
	assert(!rec == !data && (!rec || hint->place + hint->bytes <= ZONE_BYTES));
	if (rec)
		assert(xcrc32c(0, data, rec->key_bytes + rec->value_bytes) == rec->data_crc);
}

static void over(void *ctx)
{
	(void)ctx;
}

/* ---- what a killed process left ---- */

static void make(void)
{
	uint64_t own;

	assert(alog_cost(&config, &cost) == 0);
	w.arena = aligned_alloc(ALOG_PAGE, cost.arena_bytes);
	w.scratch = aligned_alloc(ALOG_PAGE, cost.scratch_bytes);
	w.lent = aligned_alloc(ALOG_PAGE, LENT_PAGES * ALOG_PAGE);
	was.arena = malloc(cost.arena_bytes);
	assert(w.arena && w.scratch && w.lent && was.arena);
	memset(w.arena, 0, cost.arena_bytes);
	memset(w.lent, 1, LENT_PAGES * ALOG_PAGE);
	w.now = 1;
	w.log = alog_create(&config, &user, w.arena, w.scratch);
	go_on(POLLS);
	assert(alog_serves(w.log));
	while (alog_own(w.log, 2, 2, &own) == -EAGAIN)
		go_on(100);
	for (uint32_t i = 0; i < 90; i++) {
		put(i % 11, i % 13 ? 600 + i * 17 : 0, false);
		if (i % 10 == 0)
			alog_force(w.log, alog_end(w.log));
		go_on(100);
	}
	w.fail_writes = 1;			/* a repair that is not over */
	put(3, 3000, false);
	alog_force(w.log, alog_end(w.log));
	alog_poll(w.log, w.now);
	answer();
	put(4, 9000, true);
	put(6, 700, false);
	alog_destroy(w.log);
	memcpy(was.arena, w.arena, cost.arena_bytes);
	memcpy(was.object, w.object, sizeof(w.object));
	was.nr = w.nr;
}

/* Again as it was. The pages are copied, since an input writes into them. */
static void restore(void)
{
	memcpy(w.arena, was.arena, cost.arena_bytes);
	w.nr = was.nr;
	for (uint32_t i = 0; i < was.nr; i++) {
		w.object[i] = was.object[i];
		if (!was.object[i].data)
			continue;
		w.object[i].data = malloc(object_bytes());
		assert(w.object[i].data);
		memcpy(w.object[i].data, was.object[i].data, object_bytes());
	}
	w.nr_out = w.fail_writes = 0;
	w.now = 1;
	memset(w.place, 0, sizeof(w.place));
}

static void end(void)
{
	alog_destroy(w.log);
	for (uint32_t i = 0; i < w.nr; i++)
		free(w.object[i].data);
}

/* ---- an input ---- */

static void make_heads_good(void)
{
	uint32_t bytes = head_bytes(&config), crc;

	for (uint32_t i = 0; i < w.nr; i++) {
		if (!w.object[i].data || !strstr(w.object[i].name, "head"))
			continue;
		crc = xcrc32c(0, w.object[i].data + sizeof(crc), bytes - sizeof(crc));
		memcpy(w.object[i].data, &crc, sizeof(crc));
	}
}

static void scribble(struct input *in)
{
	uint8_t what = in_u8(in);
	struct object *o = what & 8 ? object_of(what & 16 ? "+f:head.0" : "+f:head.1")
				    : &w.object[in_u8(in) % w.nr];
	uint64_t value;
	uint32_t at = in_u16(in);

	value = in_wild(in);
	if (what & 1 && o->data)
		memcpy(o->data + at % (object_bytes() - 8), &value, what & 32 ? 8 : 4);
	else if (what & 2)			/* the words, and the slots */
		memcpy(w.arena + at % 2000 / 8 * 8, &value, what & 32 ? 8 : 4);
	else
		memcpy(w.arena + at % (cost.arena_bytes - 8), &value, what & 32 ? 8 : 4);
}

static void use(void)
{
	struct alog_walk walk = { .record = tell, .over = over };
	uint64_t own = 0;

	for (uint32_t i = 0; i < 40 && !alog_failed(w.log); i++) {
		put(i % 16, i % 5 ? 500 + i * 40 : 0, false);
		go_on(40);
	}
	if (!alog_failed(w.log) && alog_own(w.log, 1, 1, &own) == 0)
		assert(alog_own_free(w.log, own, 1) == 0);
	alog_own_swept(w.log);
	alog_force(w.log, alog_end(w.log));
	if (!alog_failed(w.log) && alog_walk(w.log, &walk) == 0)
		go_on(POLLS);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	bool good = in_u8(&in) & 1;

	if (!was.arena)
		make();
	restore();
	while (in.left)
		scribble(&in);
	if (good)
		make_heads_good();
	w.log = alog_create(&config, &user, w.arena, w.scratch);
	assert(w.log);
	go_on(POLLS);
	assert(alog_serves(w.log) || alog_failed(w.log));
	if (alog_serves(w.log))
		use();
	end();
}
