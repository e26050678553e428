/* reply - an evil store below volumed and cached. It sends answers that no one asked for, with any
 * result, twice, late, never. It scribbles into the requests of the peers above it. Its catalogue
 * may be anything.
 *
 * The first byte chooses the stack. An honest client sends through the top. No peer crashes or
 * spins. cached_check() holds unless the store wrote outside its own memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "peers/cached/life/cached.h"
#include "peers/volumed/volumed.h"
#include "tests/fuzz/evil.h"

#define STACK_VOLUMED 1u
#define STACK_CACHED  2u
#define ANYWHERE      4u
#define MAX_HELD      64u
#define REST_ROUNDS   5000u

/* ---- the store ---- */

struct store {
	struct peer peer;
	struct xreq *held[MAX_HELD];
	uint32_t nr_held;
};

static void store_request(struct peer_port *pp, struct xreq *r)
{
	struct store *s = (struct store *)pp->peer;

	if (s->nr_held == MAX_HELD)
		peer_answer(pp, r, -EBUSY);
	else
		s->held[s->nr_held++] = r;
}

static const struct opt no_opts[] = { { .name = NULL } };
static const struct peer_class store_class = {
	.kind = "memd", .opts = no_opts, .size = sizeof(struct store), .request = store_request,
};

static struct store *store(void)
{
	return (struct store *)rig.node[RIG_STORE].p;
}

/* A record of the catalogue as it would be, or nearly. */
static void record(struct input *in, uint8_t *at, uint32_t slot)
{
	struct vd_meta meta = { .state = (enum vd_slot_state)(in_u8(in) % VD_NR_STATES),
		.generation = in_u8(in) };
	uint8_t how = in_u8(in);

	meta.object_size = how & 1 ? in_wild(in) : 1u << (12 + how % 11);
	meta.size_bytes = how & 2 ? in_wild(in) : in_u16(in) * 512ull;
	meta.cut_bytes = how & 4 ? in_wild(in) : meta.size_bytes + in_u8(in) * 512ull;
	if (meta.state != VD_SHRINKING && !(how & 8))
		meta.cut_bytes = 0;
	snprintf(meta.name, sizeof(meta.name), "v%u", how / 16u);
	if (how & 16)
		in_copy(in, meta.name, sizeof(meta.name) - (how & 1));
	vd_record_encode(&meta, how & 32 ? slot + in_u8(in) : slot, at);
	if (how & 64)
		in_copy(in, at + in_u8(in), 8);
}

/* What a read gets; in its pages, which the store may write. */
static void fill(struct input *in, const struct xreq *r)
{
	uint32_t n = in_u8(in) % 8;

	if (r->op != XSEG_OP_READ)
		return;
	for (uint32_t i = 0; i < r->nr_pages; i++)
		memset(xseg_page(rig.seg, r->page[i]), 0, XSEG_PAGE_SIZE);
	for (uint32_t i = 0; i < n && strcmp(r->target, ":catalog") == 0; i++) {
		uint32_t slot = in_u8(in) % 16, page = slot / 8;

		record(in,
			(uint8_t *)xseg_page(rig.seg, r->page[page]) + slot % 8 * VD_RECORD_BYTES,
			(uint32_t)(r->obj_offset / VD_RECORD_BYTES) + slot);
	}
}

static void answer(struct input *in, uint32_t i, uint8_t how)
{
	struct store *s = store();
	struct xreq *r = s->held[i];
	int64_t result = r->size;

	s->held[i] = s->held[--s->nr_held];
	fill(in, r);
	if (how % 4 == 1)
		result = in_u8(in) % 2 ? -(int64_t)in_u8(in) : (int64_t)in_wild(in);
	else if (how % 4 == 2)
		result -= in_u8(in);
	if (how == 3)
		result = -EOPNOTSUPP;
	peer_answer(&s->peer.ports[0], r, result);
}

/* ---- the client ---- */

static void client_send(struct input *in, bool volumed)
{
	struct xport *port = rig.port[RIG_HONEST];
	struct xreq *r = port ? xseg_req_alloc(port) : NULL;
	uint8_t how = in_u8(in), op = in_u8(in);

	if (!r)
		return;
	r->op = op % XSEG_OP_ADMIN;
	r->flags = op / 16 & XSEG_REQ_FUA;
	r->volume = volumed ? 0x10000u * (how / 16u) + 1 + how % 4u : how % 4u;
	r->offset = r->obj_offset = in_u16(in) * 512ull;
	r->size = in_u8(in) % 64 * 512u;
	if (how & 4)
		r->size *= 8;
	r->nr_pages = (uint16_t)xseg_req_span(r->offset, r->size);
	memcpy(r->page, rig.page[RIG_HONEST], r->nr_pages * sizeof(r->page[0]));
	xseg_req_set_target(r, how & 8 ? "one" : "two", 3);
	if (xseg_req_submit(port, r, xseg_peer_find(rig.seg, volumed ? "volumed" : "cached")))
		xseg_req_free(port, r);
	xseg_port_flush(port);
}

static void client_take(void)
{
	struct xport *port = rig.port[RIG_HONEST];
	struct xreq *r;

	while (port && xseg_port_replies(port, &r, 1))
		xseg_req_free(port, r);
}

/* ---- all of it ---- */

static const char *const lines[] = {
	"volume create one size=1M", "volume remove v1", "volume resize v2 size=4k", "volume list",
	"volume info v1", "status",
	"volume remove v0", "volume resize v0 size=100M",
};

static void go_on(struct evil *e, bool volumed)
{
	uint8_t what = in_u8(&e->in);

	switch (what % 8) {
	case 0:
		rig_step((enum rig_node)(what / 8 % RIG_NODES),
			(enum rig_what)(what / 32 % RIG_NR_WHAT));
		break;
	case 1:
		rig_settle(what / 4 + 1u);
		break;
	case 2:
		client_send(&e->in, volumed);
		break;
	case 3:
	case 4:
		if (store() && store()->nr_held)
			answer(&e->in, what / 8 % store()->nr_held, in_u8(&e->in));
		break;
	case 5:
		client_take();
		rig.now_ns += (uint64_t)what * what * RIG_MS;
		break;
	case 6:
		if (volumed && what >= 128)
			rig_admin("volumed", lines[what / 8 % (sizeof(lines) / sizeof(lines[0]))]);
		else
			rig_round();
		break;
	default:
		evil_act(e);
	}
}

static void stack_up(uint8_t how)
{
	bool volumed = (how & STACK_VOLUMED) || !(how & STACK_CACHED),
	     cached = (how & STACK_CACHED) || !volumed;

	rig_begin();
	rig_plan(RIG_STORE, &store_class, "memd", "", "");
	if (cached)
		rig_plan(RIG_CACHED, &cached_class, "cached", "memd",
			how & 8 ? "memory=4M requests=8 objects=4 policy=write-around"
				: "memory=4M requests=8 objects=4 dirty_age=1s");
	if (volumed)
		rig_plan(RIG_VOLUMED, &volumed_class, "volumed", cached ? "cached" : "memd",
			"requests=4 object_size=64k");
	for (unsigned n = 0; n < RIG_NODES; n++)
		if (rig.node[n].cls && !rig_start(n))
			abort();
	if (!rig_client_open(RIG_EVIL) || !rig_client_open(RIG_HONEST))
		abort();
	rig_settle(50);
}

/* All that is held fails; then nothing may want to be done for ever. */
static void come_to_rest(bool anywhere)
{
	for (unsigned i = 0; i < 20; i++) {
		while (store() && store()->nr_held)
			peer_answer(&store()->peer.ports[0], store()->held[--store()->nr_held],
				i % 2 ? -EIO : -ENOENT);
		rig_settle(REST_ROUNDS / 20);
		client_take();
	}
	if (!anywhere && rig.node[RIG_CACHED].serving)
		cached_check(rig.node[RIG_CACHED].p);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct evil e = { .in = { data, size }, .prefix = "evil:", .volume = 3 };
	uint8_t how = in_u8(&e.in);

	e.anywhere = how & ANYWHERE;
	stack_up(how);
	while (e.in.left)
		go_on(&e, rig.node[RIG_VOLUMED].cls);
	come_to_rest(e.anywhere);
	rig_end();
}
