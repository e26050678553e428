/* arena - peers' tables in the segment, overwritten with arbitrary bytes, and their successors. The
 * stack is volumed over cached over memd, killed with dirty data and with requests in every state.
 *
 * The tables are made once, by a run of the peers themselves, and kept as bytes. An input is a list
 * of pieces to write into the tables: cached's head, records, entries and slots; memd's header,
 * objects and owner words; the words of extents and pages; the requests. Then the successors begin:
 * each refuses with a clear error, or serves. A successor that serves holds its invariants
 * (cached_check()), continues, and stops.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "peers/cached/life/cached.h"
#include "tests/fuzz/rig.h"

#define REST_ROUNDS 3000u

static struct {
	uint8_t *tables, *pages;		/* of the whole segment */
	uint8_t *arena[RIG_NODES];		/* where the arenas are, in the segment */
	uint64_t arena_bytes[RIG_NODES];
	uint64_t entries;			/* where cached's are, in its arena */
	uint8_t *chunk_page;			/* a page of cached's that has slots */
} was;

/* ---- what is left by those who were killed ---- */

static const char *const cached_options =
	"memory=4M requests=8 objects=64 dirty_age=1s read_ahead=0";

static void plan(void)
{
	rig_plan(RIG_STORE, &memd_class, "memd", "", "memory=1M");
	rig_plan(RIG_CACHED, &cached_class, "cached", "memd", cached_options);
	rig_plan(RIG_VOLUMED, &volumed_class, "volumed", "cached", "requests=4 object_size=64k");
}

static void send(
	enum xseg_op op, const char *peer, const char *target, uint64_t offset, uint32_t size)
{
	struct xport *port = rig.port[RIG_HONEST];
	struct xreq *r = rig_serves(peer) ? xseg_req_alloc(port) : NULL;

	if (!r)
		return;
	r->op = (uint8_t)op;
	r->volume = 0x10001;
	r->offset = r->obj_offset = offset;
	r->size = size;
	r->nr_pages = (uint16_t)xseg_req_span(offset, size);
	memcpy(r->page, rig.page[RIG_HONEST], r->nr_pages * sizeof(r->page[0]));
	xseg_req_set_target(r, target, strlen(target));
	if (xseg_req_submit(port, r, xseg_peer_find(rig.seg, peer)))
		xseg_req_free(port, r);
	xseg_port_flush(port);
}

static void take(void)
{
	struct xreq *r;

	while (rig.port[RIG_HONEST] && xseg_port_replies(rig.port[RIG_HONEST], &r, 1))
		xseg_req_free(rig.port[RIG_HONEST], r);
}

/* Where an arena is: its extents lie one after the other, as nothing was ever given back. */
static void find_arena(enum rig_node n)
{
	uint32_t peer = xseg_peer_find(rig.seg, rig.node[n].name);

	for (uint32_t i = 0; i < rig.seg->geo.nr_extents; i++) {
		uint64_t w = atomic_load(&rig.seg->extents[i].word);

		if (extent_kind(w) == XS_EXTENT_ARENA && extent_peer(w) == peer &&
			extent_nr(w) == 0)
			was.arena[n] = rig.seg->pages + (uint64_t)i * XSEG_EXTENT_SIZE;
	}
	was.arena_bytes[n] = atomic_load(&rig.seg->peers[peer].arena_bytes);
	assert(was.arena[n]);
}

static void find_chunks(void)
{
	for (uint32_t i = 0; i < rig.seg->nr_pages && !was.chunk_page; i++)
		if (xseg_page_owner(rig.seg, i) == OWNER_CHUNKS)
			was.chunk_page = xseg_page(rig.seg, i);
	assert(was.chunk_page);
}

/* Objects clean and dirty, of a volume and without one, and requests on their way. */
static void live(void)
{
	char name[8];

	rig_settle(100);
	if (rig_admin("volumed", "volume create vol size=1M") < 0 ||
		rig_admin("cached", "volume-set id=65537 policy=write-through") < 0)
		abort();
	for (unsigned i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		send(XSEG_OP_WRITE, i % 2 ? "volumed" : "cached", name, i * 12288,
			4096 * (1 + i % 5));
		send(i % 3 ? XSEG_OP_READ : XSEG_OP_WRITE_ZEROES, "cached", name, i * 8192, 8192);
		rig_settle(60);
		take();
	}
	for (unsigned i = 0; i < 14; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		send(i % 4 ? XSEG_OP_WRITE : XSEG_OP_DISCARD, i % 3 ? "volumed" : "cached", name,
			i * 65536 - (i > 2) * 2048, 8192);
		rig_round();
	}
}

static void snapshot(void)
{
	rig_begin();
	plan();
	for (unsigned n = 0; n < RIG_NODES; n++)
		if (!rig_start(n))
			abort();
	if (!rig_client_open(RIG_HONEST))
		abort();
	live();
	find_arena(RIG_STORE);
	find_arena(RIG_CACHED);
	find_chunks();
	was.entries = cached_of(rig.node[RIG_CACHED].p)->life.head->off_objects;
	rig_end();
	was.tables = malloc(rig.seg->geo.off_pages);
	was.pages = malloc((size_t)rig.seg->nr_pages * XSEG_PAGE_SIZE);
	assert(was.tables && was.pages);
	memcpy(was.tables, rig.seg->base, rig.seg->geo.off_pages);
	memcpy(was.pages, rig.seg->pages, (size_t)rig.seg->nr_pages * XSEG_PAGE_SIZE);
}

static void restore(void)
{
	memcpy(rig.seg->base, was.tables, rig.seg->geo.off_pages);
	memcpy(rig.seg->pages, was.pages, (size_t)rig.seg->nr_pages * XSEG_PAGE_SIZE);
}

/* ---- scribbling ---- */

/* A word that a slot, an owner or a chunk may nearly be. */
static uint64_t likely(struct input *in)
{
	uint8_t how = in_u8(in);
	uint32_t page = in_u16(in) % (rig.seg->nr_pages + 2);

	if (how < 64)
		return slot_word((enum bucket_state)(how % 9), page, (uint64_t)in_u8(in) << 40);
	if (how < 128)
		return (uint64_t)(1 + how % 66) << 16 | page % 1026;
	if (how < 160)
		return (uint64_t)(1 + how % 70) << 32 | page % 1026;
	return how < 192 ? page * 8u + how % 8 + 1 : in_wild(in);
}

static void piece(struct input *in)
{
	const struct xs_geometry *g = &rig.seg->geo;
	struct {
		uint8_t *at;
		uint64_t bytes;
	} part[] = {
		{ was.arena[RIG_CACHED], sizeof(struct arena_head) },
		{ was.arena[RIG_CACHED], was.arena_bytes[RIG_CACHED] },
		{ was.arena[RIG_CACHED] + was.entries, 16 * sizeof(struct arena_object) },
		{ was.arena[RIG_CACHED] + CACHE_HEAD_BYTES, 4096 },
		{ was.chunk_page, XSEG_PAGE_SIZE },
		{ was.arena[RIG_STORE], 64 },
		{ was.arena[RIG_STORE] + XSEG_PAGE_SIZE, 16 * 144 },
		{ was.arena[RIG_STORE], 64 * 1024 },
		{ rig.seg->base + g->off_extents, g->off_owners - g->off_extents },
		{ rig.seg->base + g->off_owners, g->off_stats - g->off_owners },
		{ rig.seg->base + g->off_requests, g->off_extents - g->off_requests },
		{ rig.seg->base + g->off_peers, 4 * sizeof(struct xs_peer) },
	};
	uint32_t n = in_below(in, sizeof(part) / sizeof(part[0]));
	uint64_t at = in_number(in, 3) % part[n].bytes, room, v;
	uint8_t how = in_u8(in);

	room = part[n].bytes - at;
	if (how < 96) {
		v = likely(in);
		at = at / 8 * 8;
		memcpy(part[n].at + at, &v, 8 < part[n].bytes - at ? 8 : part[n].bytes - at);
	} else if (how < 160) {
		v = in_wild(in);
		at = at / 4 * 4;
		memcpy(part[n].at + at, &v, 4 < part[n].bytes - at ? 4 : part[n].bytes - at);
	} else if (how < 200) {
		memset(part[n].at + at, how & 1 ? 0xff : 0, how * 2u < room ? how * 2u : room);
	} else {
		in_copy(in, part[n].at + at, how - 199u < room ? how - 199u : room);
	}
}

/* ---- successors ---- */

static void check(void)
{
	if (rig.node[RIG_CACHED].serving)
		cached_check(rig.node[RIG_CACHED].p);
}

static void use(void)
{
	char name[8];

	if (!rig_client_open(RIG_HONEST))
		return;
	for (unsigned i = 0; i < 14; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		send(i % 3 ? XSEG_OP_READ : XSEG_OP_WRITE, i % 2 ? "volumed" : "cached", name,
			i * 12288, 8192);
		rig_settle(40);
		take();
	}
	check();
	rig_admin("cached", "status");
	rig_admin("cached", "volumes");
	rig_admin("cached", "set memory=6M");
	rig_admin("cached", "drop");
	rig_admin("memd", "status");
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	if (!was.tables)
		snapshot();
	rig_begin();
	plan();
	restore();
	while (in.left)
		piece(&in);
	for (unsigned n = 0; n < RIG_NODES; n++)
		rig_start(n);
	rig_settle(200);
	use();
	rig_settle(REST_ROUNDS);
	check();
	rig_end();
}
