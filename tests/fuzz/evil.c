/* evil - see evil.h. */
#include "tests/fuzz/evil.h"

#include <stdio.h>

static const char *const peer_name[] = { "volumed", "cached", "memd", "nobody" };

#define EVIL_BYTES (256u << 10)		/* of each of its objects */

/* ---- requests ---- */

static void fill_pages(struct evil *e, struct xreq *r)
{
	uint32_t first = in_below(&e->in, RIG_PAGES), how = in_u8(&e->in);
	uint32_t span = xseg_req_span(r->offset, r->size);

	r->nr_pages = (uint16_t)(how % 4 ? span : in_below(&e->in, XSEG_REQ_PAGES + 1));
	if (r->nr_pages > XSEG_REQ_PAGES)
		r->nr_pages = XSEG_REQ_PAGES;
	for (uint32_t i = 0; i < r->nr_pages; i++)
		r->page[i] = rig.page[RIG_EVIL][(first + i * (how / 64 != 1)) % RIG_PAGES];
	if (how / 4 % 16 == 1 && r->nr_pages)
		r->page[in_below(&e->in, r->nr_pages)] = rig.seg->nr_pages +
							 (uint32_t)in_wild(&e->in);
}

static void fill_target(struct evil *e, struct xreq *r)
{
	char name[XSEG_TARGET_MAX];
	uint8_t how = in_u8(&e->in);
	int len = snprintf(name, sizeof(name), "%s%u", e->prefix, how % 4u);

	if (how >= 240 && e->anywhere)
		len += (int)in_copy(&e->in, name + len, sizeof(name) - 1 - (size_t)len);
	xseg_req_set_target(r, name, (size_t)len);
	if (how / 4 % 16 == 1)
		r->hash = in_number(&e->in, 8);
}

static void fill_range(struct evil *e, struct xreq *r)
{
	uint8_t how = in_u8(&e->in);

	r->offset = how & 1 ? in_wild(&e->in) : (uint64_t)in_u16(&e->in) * 512;
	r->size = how & 2 ? (uint32_t)in_wild(&e->in) : in_u8(&e->in) * 512u;
	if (how & 4)
		r->size *= 16;
	if (!e->anywhere && !(how & 16)) { /* it must not fill the store, which is not its own */
		r->offset %= EVIL_BYTES;
		r->size %= EVIL_BYTES;
	}
	r->obj_offset = how & 8 && e->anywhere ? in_wild(&e->in)
					       : r->offset % (how & 16 ? 4u << 20 : EVIL_BYTES);
	if (!e->anywhere && r->offset > EVIL_BYTES)
		r->size = 512;
}

/* The bytes of older inputs mean the ops that they meant. */
static uint8_t op_of(const struct evil *e, uint8_t how)
{
	if (how >= 248)
		return e->anywhere && how & 1 ? XSEG_NR_OPS : XSEG_OP_LIST;
	return how % (e->anywhere ? XSEG_NR_OPS : XSEG_OP_ADMIN);
}

void evil_send(struct evil *e)
{
	struct xport *port = rig.port[RIG_EVIL];
	struct xreq *r = port ? xseg_req_alloc(port) : NULL;
	uint8_t to = in_u8(&e->in);

	if (!r)
		return;
	r->op = op_of(e, in_u8(&e->in));
	r->flags = in_u8(&e->in);
	r->volume = e->anywhere && to >= 128 ? (uint32_t)in_wild(&e->in) : e->volume;
	r->parent = in_u8(&e->in);
	r->part = in_u8(&e->in);
	fill_range(e, r);
	fill_pages(e, r);
	fill_target(e, r);
	if (xseg_req_submit(port, r, xseg_peer_find(rig.seg, peer_name[to % 4])))
		xseg_req_free(port, r);
	else if (to / 4 % 4)
		xseg_port_flush(port);
}

void evil_take(struct evil *e)
{
	struct xport *port = rig.port[RIG_EVIL];
	struct xreq *r;

	if (!port)
		return;
	xseg_port_flush(port);
	for (unsigned i = 0; i < 32 && xseg_port_replies(port, &r, 1); i++)
		xseg_req_free(port, r);
	if (in_u8(&e->in) == 1)
		for (unsigned i = 0; i < 4 && xseg_port_receive(port, &r, 1); i++)
			xseg_req_answer(port, r, (int64_t)in_wild(&e->in));
}

static uint32_t pick_request(struct evil *e)
{
	struct xport *port = rig.port[RIG_EVIL];

	if (e->anywhere || !port || !port->req_nr)
		return in_below(&e->in, rig.seg->geo.nr_requests);
	return port->req_first + in_below(&e->in, port->req_nr);
}

/* What an origin writes, after it was submitted; anywhere: all of it. */
void evil_scribble_request(struct evil *e)
{
	struct xs_req *sh = &rig.seg->reqs[pick_request(e)];
	uint8_t what = in_u8(&e->in);
	uint64_t v = in_wild(&e->in);
	char name[XSEG_TARGET_MAX];

	switch (what % (e->anywhere ? 14 : 10)) {
	case 0:
		sh->op = (uint8_t)(e->anywhere ? v : v % XSEG_OP_ADMIN);
		break;
	case 1:
		sh->flags = (uint8_t)v;
		break;
	case 2:
		sh->nr_pages = (uint16_t)v;
		break;
	case 3:
		sh->size = (uint32_t)v;
		break;
	case 4:
		sh->offset = v;
		break;
	case 5:
		sh->origin = (uint16_t)v;
		break;
	case 6:
		sh->result = (int64_t)v;
		break;
	case 7:
		sh->part = (uint32_t)v;
		break;
	case 8:
		if (what & 0x80) {
			atomic_store(&sh->page[in_below(&e->in, XSEG_REQ_PAGES)].lent,
				(uint32_t)v | XSEG_LENT_PAGE);
			atomic_store(&sh->nr_lent, (uint16_t)(v >> 32));
			break;
		}
		sh->page[in_below(&e->in, XSEG_REQ_PAGES)]
			.page = (uint32_t)(v | (v < rig.seg->nr_pages ? 1u << 28 : 0));
		break;
	case 9:
		sh->via = (uint16_t)v;
		break;
	case 10:
		sh->volume = (uint32_t)v;
		break;
	case 11:
		sh->hash = v;
		break;
	case 12:
		sh->obj_offset = v;
		break;
	default:
		memset(name, (int)v, sizeof(name));
		in_copy(&e->in, name, sizeof(name));
		memcpy(sh->target, name, sizeof(sh->target));
		memcpy(sh->target_rest, name + sizeof(sh->target), sizeof(sh->target_rest));
	}
}

/* ---- places and lanes ---- */

void evil_forge_place(struct evil *e)
{
	struct xs_req *sh = &rig.seg->reqs[pick_request(e)];
	uint64_t old = atomic_load(&sh->place);
	uint32_t port = in_u8(&e->in), gen = place_gen(old),
		 seq = place_seq(old) + (uint32_t)(int8_t)in_u8(&e->in);

	if (port < 32)
		gen = atomic_load(&rig.seg->ports[port % rig.seg->geo.nr_ports].generation);
	atomic_store(&sh->place,
		place_word((enum xseg_req_state)(in_u8(&e->in) % 8), port % 16, gen, seq));
}

/* Offers to any port what a place says now, or will say. */
static void evil_offer(struct evil *e)
{
	struct xport *port = rig.port[RIG_EVIL];
	uint32_t index = pick_request(e), to = in_below(&e->in, rig.seg->geo.nr_ports),
		 how = in_u8(&e->in);
	uint64_t place = atomic_load(&rig.seg->reqs[index].place),
		 offer = offer_word(index, place + (how >> 4));

	if (!port)
		return;
	if (how % 8 == 7)
		offer = in_number(&e->in, 8);
	if ((uint32_t)offer >= rig.seg->geo.nr_requests)
		offer |= UINT32_MAX;
	if (how & 1)
		xs_offer_answer(port, to, offer);
	else if ((uint32_t)offer < rig.seg->geo.nr_requests)
		xs_offer(port, to, offer);
	xseg_port_flush(port);
}

void evil_ring(struct evil *e)
{
	struct xseg *seg = rig.seg;
	uint32_t lane = in_below(&e->in, seg->geo.nr_lanes),
		 word = atomic_load(&seg->lanes[lane].word);
	struct xq *q = (struct xq *)(seg->base + seg->geo.off_rings + lane * seg->geo.ring_bytes);
	uint32_t slot = (uint32_t)(atomic_load(&q->tail) + in_u8(&e->in)) % seg->geo.lane_slots, n;

	if (!e->anywhere &&
		(!rig.port[RIG_EVIL] || (word >> 10 & 0x1ff) != rig.port[RIG_EVIL]->index))
		return;
	n = in_u8(&e->in) % 8;
	for (uint32_t i = 0; i < n; i++)
		atomic_store(&q->ring[(slot + i) % seg->geo.lane_slots], in_wild(&e->in));
	if (e->anywhere && in_u8(&e->in) % 4 == 0)
		atomic_store(&q->head, atomic_load(&q->head) + in_wild(&e->in));
	atomic_store(&q->tail, atomic_load(&q->tail) + (in_u8(&e->in) % 4 ? n : in_wild(&e->in)));
}

void evil_hints(struct evil *e)
{
	struct xs_port *port = &rig.seg->ports[in_below(&e->in, rig.seg->geo.nr_ports)];
	uint8_t what = in_u8(&e->in);
	uint64_t v = in_number(&e->in, 8);

	if (what % 4 == 0)
		atomic_store(&port->answered, (uint32_t)v);
	else if (what % 4 == 1)
		atomic_store(&port->bell, (uint32_t)v);
	else if (what % 4 == 2)
		atomic_store(&rig.seg->bells[v % rig.seg->geo.nr_ports].word, (uint32_t)(v >> 32));
	else
		atomic_store(&port->mask[what >> 2 & 1][what >> 3 & 3], v);
}

/* ---- bytes ---- */

static void evil_payload(struct evil *e)
{
	uint32_t page = rig.page[RIG_EVIL][in_below(&e->in, RIG_PAGES)];
	char bytes[XSEG_TARGET_MAX];
	size_t n = in_copy(&e->in, bytes, in_u8(&e->in) % sizeof(bytes));

	memcpy((char *)xseg_page(rig.seg, page) + in_u8(&e->in) * 16, bytes, n);
}

/* The tables that are written under the control lock, or by one peer: all but what says whose pages
 * are. */
void evil_tables(struct evil *e)
{
	const struct xs_geometry *g = &rig.seg->geo;
	const struct {
		uint64_t from, to;
	} part[] = {
		{ offsetof(struct xs_super, generation), sizeof(struct xs_super) },
		  { g->off_members, g->off_peers },
		{ g->off_peers, g->off_ports }, { g->off_ports, g->off_bells },
		  { g->off_bells, g->off_lanes },
		{ g->off_lanes, g->off_rings }, { g->off_rings, g->off_requests },
		  { g->off_requests, g->off_extents },
		{ g->off_stats, g->off_stack }, { g->off_stack, g->off_pages },
	};
	uint32_t n = in_below(&e->in, sizeof(part) / sizeof(part[0]));
	uint64_t at = part[n].from + in_number(&e->in, 3) % (part[n].to - part[n].from);
	uint8_t bytes[16];
	size_t len = in_copy(&e->in, bytes, 1 + in_u8(&e->in) % 8);

	if (at + len <= part[n].to)
		memcpy(rig.seg->base + at, bytes, len);
}

/* ---- all of it ---- */

static void evil_comes_or_goes(struct evil *e)
{
	uint8_t how = in_u8(&e->in);

	if (!rig.client[RIG_EVIL])
		rig_client_open(RIG_EVIL);
	else if (how % 4 == 0)
		rig_client_close(RIG_EVIL, how & 4 ? XSEG_CLOSE_ABANDON : XSEG_CLOSE_FREE_ARENA);
	if (how & 8)
		xseg_sweep(rig.seg);
}

void evil_act(struct evil *e)
{
	static void (*const acts[])(struct evil *) = {
		evil_send,
		evil_send,
		evil_send,
		evil_take,
		evil_scribble_request,
		evil_forge_place,
		evil_offer,
		evil_hints,
		evil_payload,
		evil_ring,
		evil_comes_or_goes,
		evil_tables,
	};
	uint32_t n = in_below(&e->in, sizeof(acts) / sizeof(acts[0]) - !e->anywhere);

	acts[n](e);
}
