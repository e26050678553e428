/* drain - whether older requests of a volume are still in flight, so that their effect may yet
 * come.
 *
 * A peer that maps volumes (volumed) sends requests on, and never sees their answers. Before it
 * cuts or removes a volume it stops sending such requests. Then it asks here until none is left.
 * Queues and lanes need no look: a request's own words say where it is (request.c).
 *
 *   place                    counted if
 *   FREE, ANSWERED           never: its effect is over
 *   PRIVATE                  a peer that is no client has offered it, and it has no answer
 *   AT, STARTED, APPLIED     a peer that is no client sent it last; or it was taken over by a
 *                            successor (`via` is 0), at another peer than this one
 *
 * A client's request at the peer itself was not sent on yet, and is the peer's own matter. A
 * request that a client sends straight to a peer below is no request to a volume, whatever number
 * it bears.
 *
 * Contract: any thread; a look at all requests, which takes no lock and changes nothing.
 *
 * Invariants:
 *   DR1  A request is in one slot for its whole life. So no request that was sent before the look
 *        begins is missed, whatever hands it goes through meanwhile.
 *   DR2  A part that was sent counts by itself. So does each request of a cache's own, unless only
 *        the volume's end is asked for (`from`): such a request bears an offset in an object.
 */
#include "xseg/internal.h"

/* Bits, by operation: those about bytes of a volume. */
enum { RANGE_ALL, RANGE_NONE, RANGE_NAMES, RANGE_OBJECT, RANGE_BYTES };
enum {
	OPS_OF_BYTES = 0
#define XSEG_OP_ROW(op, word, range, ...) | (RANGE_##range == RANGE_BYTES) << XSEG_OP_##op
#include "xseg/ops.def"
};

static bool is_ranged(uint8_t op)
{
	return op < XSEG_NR_OPS && OPS_OF_BYTES >> op & 1;
}

/* The peer that has this port, if it is no client; or XSEG_NONE. */
static uint32_t server_of(struct xseg *seg, uint32_t port)
{
	uint32_t peer = port < seg->geo.nr_ports ? xs_peer_of_port(seg, port) : 0;

	return peer && !xs_peer_is_client(seg, peer - 1) ? peer - 1 : XSEG_NONE;
}

/* Whether its offset is one in the volume. A cache's own requests bear offsets in an object. */
static bool is_of_volume(struct xseg *seg, uint32_t index, uint32_t peer)
{
	uint32_t owner = xs_req_owner(seg, index);
	uint32_t server = owner == XSEG_NONE ? XSEG_NONE : server_of(seg, owner);

	return server == XSEG_NONE || server == peer;
}

static bool is_on_its_way(struct xseg *seg, uint32_t index, uint32_t peer)
{
	struct xs_req *r = &seg->reqs[index];
	/* acquire: what it is was written before its place */
	uint64_t place = atomic_load_explicit(&r->place, memory_order_acquire);
	uint32_t via = atomic_load_explicit(&r->via, memory_order_relaxed);

	switch (place_state(place)) {
	case XSEG_REQ_PRIVATE:
		return via && server_of(seg, via - 1) != XSEG_NONE &&
		       atomic_load_explicit(&r->result, memory_order_relaxed) == XS_NOT_ANSWERED;
	case XSEG_REQ_AT:
	case XSEG_REQ_STARTED:
	case XSEG_REQ_APPLIED:
		if (via)
			return server_of(seg, via - 1) != XSEG_NONE;
		return !xs_peer_has_port(seg, peer, place_port(place));
	default:
		return false;
	}
}

/* What the request is, or was. Its origin may just be submitting it again: then it is not older
 * than the look, and may count or not (DR1). */
struct content {
	uint64_t offset;
	uint32_t volume, size;
	uint8_t op;
};

XS_RACY static struct content content_of(const struct xs_req *r)
{
	return (struct content){ .offset = XS_FETCH(r->offset),
		.volume = XS_FETCH(r->volume),
		.size = XS_FETCH(r->size),
		.op = XS_FETCH(r->op) };
}

uint32_t xseg_volume_requests(struct xseg_peer *peer, uint32_t volume, uint64_t from)
{
	struct xseg *seg = peer->seg;
	uint32_t n = 0;

	/* seq_cst: what this peer, and others before it, sent is seen */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < seg->geo.nr_requests; i++) {
		struct content c = content_of(&seg->reqs[i]);

		if (c.volume != volume || !is_ranged(c.op) || !is_on_its_way(seg, i, peer->index))
			continue;
		if (from && (!is_of_volume(seg, i, peer->index) || c.offset + c.size <= from))
			continue;
		n++;
	}
	return n;
}
