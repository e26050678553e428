/* port - queues: lanes from port to port, offers and acceptance in batches, publishing and ringing.
 *
 * Contract: one thread at a time uses a struct xport. Nothing here takes a lock, blocks, or makes a
 * system call, except the futex wake of a sleeper in xseg_port_flush().
 *
 * Invariants:
 *   Q1  A lane holds offers, never requests. A lost, doubled or late offer loses nothing: the place
 *       word decides, and every repair looks at place words.
 *   Q2  A lane has room for all requests of the segment. Stale offers may fill it all the same.
 *       Then the sender keeps the offer in its backlog and retries at each flush. The backlog holds
 *       offers, not requests. An offer whose request went another way is dropped, and the new
 *       holder is not disturbed.
 *   Q3  The reader releases entries after it accepted or rejected them. A reader that dies between
 *       the two leaves them to its successor. The place words tell the successor which are new.
 *   Q4  The sender sets a mask bit after it publishes (fence). The reader clears it before it looks
 *       (fence). A set bit may be in vain. A clear bit means that the lane is empty, with two
 *       exceptions. A sender may have died after it published: for that xseg_port_has_work() looks
 *       at all lanes. A reader may have died after it noted the bit: for that, see note_lanes().
 *   Q5  An answer needs no lane. If it finds no lane, or no room in one, the origin's port is
 *       alerted, and finds the answer by its place.
 *   Q6  An offer to a port of the same thread needs no lane (near.c). Nor does an offer that finds
 *       no lane, or one that another process has scribbled over. Then the request itself says which
 *       port it is offered to, and that port is alerted. The reader begins a scribbled lane again
 *       when it finds something by its place, before it sleeps, or before it forgets the lane.
 *   Q8  Lanes are joined in two tables. The lane says which ports it joins; the receiving port says
 *       which lane that is. Neither is believed alone. Before it sleeps the sender corrects each
 *       table that disagrees about a lane that it writes to. If the lane is another's by now, the
 *       sender gives it up. The receiver uses the lane on which both tables agree. The port's bell
 *       is corrected in the same way.
 *   Q7  Offers in a queue that its port does not take from are no work. A port that changes hands
 *       may have lanes with offers for its former peer, and nobody would release them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xseg/internal.h"
#include "xtypes/xhot.h"
#include "xtypes/xkill.h"

/* looks into lanes, in vain, after which lanes are asked for by their mask bits again */
#define COLD_LOOKS 64

static struct xq *ring_of(struct xseg *seg, uint32_t lane)
{
	return (struct xq *)(seg->base + seg->geo.off_rings + lane * seg->geo.ring_bytes);
}

/* Of announcements that a predecessor had taken note of nobody else knows: its successor first
 * looks at all lanes that there are. */
static void note_lanes(struct xport *p)
{
	for (uint32_t queue = p->first_queue; queue < p->end_queue; queue++)
		for (uint32_t from = 0; from < p->seg->geo.nr_ports; from++)
			if (atomic_load_explicit(&p->sh->lane[queue][from], memory_order_relaxed))
				p->pending[queue][from / 64] |= 1ull << (from % 64);
}

int xs_port_init(struct xport *p, struct xseg_peer *peer, uint32_t index, uint32_t generation)
{
	struct xseg *seg = peer->seg;
	uint32_t nr = seg->geo.nr_ports;

	memset(p, 0, sizeof(*p));
	p->seg = seg;
	p->peer = peer;
	p->index = index;
	atomic_store_explicit(&p->bell, index, memory_order_relaxed);
	p->poll_ns = XSEG_POLL_NS;
	p->generation = generation & 0xfffff;
	p->own_place = place_word(XSEG_REQ_FREE, index, generation, 0);
	p->sh = &seg->ports[index];
	p->mask_words = (nr + 63) / 64;
	p->req_nr = xs_port_requests(seg, index, &p->req_first);
	p->first_queue = peer->client ? QUEUE_REPLY : QUEUE_REQUEST;
	p->end_queue = p->req_nr ? QUEUE_REPLY + 1 : QUEUE_REPLY;
	p->free_mem = malloc(xpool_mem_bytes(p->req_nr ? p->req_nr : 1));
	p->backlog = calloc(seg->geo.nr_requests, sizeof(*p->backlog));
	p->out[0] = calloc((size_t)nr * 2, sizeof(*p->out[0]));
	p->in[0] = calloc((size_t)nr * 2, sizeof(*p->in[0]));
	p->rung = calloc(nr, sizeof(*p->rung));
	if (!p->free_mem || !p->backlog || !p->out[0] || !p->in[0] || !p->rung) {
		xs_port_fini(p);
		return -ENOMEM;
	}
	p->out[1] = p->out[0] + nr;
	p->in[1] = p->in[0] + nr;
	xpool_init(&p->free, p->free_mem, p->req_nr ? p->req_nr : 1);
	xs_measure_init(p);
	note_lanes(p);
	return 0;
}

void xs_port_fini(struct xport *p)
{
	free(p->free_mem);
	free(p->backlog);
	free(p->out[0]);
	free(p->in[0]);
	free(p->rung);
	if (p->near)
		p->near->port[p->index] = NULL;
	free(p->near_ring);
	memset(p, 0, sizeof(*p));
}

static bool is_lane_of(struct xseg *seg, uint32_t lane, uint32_t word)
{
	return atomic_load_explicit(&seg->lanes[lane].word, memory_order_relaxed) == word;
}

bool xs_lane_is_joined(struct xseg *seg, uint32_t lane)
{
	uint32_t w = atomic_load_explicit(&seg->lanes[lane].word, memory_order_relaxed),
		 queue = w >> 30 & 1, from = w >> 10 & 0x1ff, to = w & 0x1ff;

	return from < seg->geo.nr_ports && to < seg->geo.nr_ports &&
	       w == lane_word(queue, from, to) &&
	       atomic_load_explicit(&seg->ports[to].lane[queue][from], memory_order_relaxed) ==
		       lane + 1;
}

/* Finds or makes the lane from -> to. Only the thread of `from` looks for its lanes, so what others
 * take meanwhile is no lane of its. Returns its index or -ENOSPC. */
static int lane_find(struct xseg *seg, uint32_t queue, uint32_t from, uint32_t to)
{
	uint32_t word = lane_word(queue, from, to), i;

	for (i = 0; i < seg->geo.nr_lanes; i++)
		if (is_lane_of(seg, i, word))
			return (int)i;
	for (i = 0; i < seg->geo.nr_lanes; i++) {
		uint32_t spare = 0;

		if (atomic_compare_exchange_strong(&seg->lanes[i].word, &spare, word)) {
			XKILL(LANE_JOINED);
			return (int)i;
		}
	}
	return -ENOSPC;
}

XCOLD static int lane_out_open(struct xport *p, uint32_t to, uint32_t queue)
{
	struct lane_out *o = &p->out[queue][to];
	int lane = lane_find(p->seg, queue, p->index, to);

	if (lane < 0)
		return lane;
	xq_writer_attach(&o->w, ring_of(p->seg, (uint32_t)lane), p->seg->geo.lane_slots);
	o->to = (uint16_t)to;
	o->lane = (uint16_t)lane;
	o->queue = (uint8_t)queue;
	o->open = true;
	/* release: partner is the acquire in lane_in_open() */
	atomic_store_explicit(&p->seg->ports[to].lane[queue][p->index], (uint16_t)(lane + 1),
		memory_order_release);
	return 0;
}

XCOLD static bool lane_in_open(struct xport *p, uint32_t from, uint32_t queue)
{
	struct lane_in *in = &p->in[queue][from];
	/* acquire: partner is the release in lane_out_open() */
	uint32_t lane = atomic_load_explicit(&p->sh->lane[queue][from], memory_order_acquire);

	if (lane == 0 || lane > p->seg->geo.nr_lanes ||
		!is_lane_of(p->seg, lane - 1, lane_word(queue, from, p->index)))
		return false;
	xq_reader_attach(&in->r, ring_of(p->seg, lane - 1), p->seg->geo.lane_slots);
	in->lane = (uint16_t)(lane - 1);
	in->open = true;
	return true;
}

/* Q8: the sender has another lane than the one that is open. */
static void lane_in_follow(struct xport *p, uint32_t from, uint32_t queue)
{
	struct lane_in *in = &p->in[queue][from];
	uint32_t lane = atomic_load_explicit(&p->sh->lane[queue][from], memory_order_relaxed);

	if (in->open && lane != in->lane + 1u && lane && lane <= p->seg->geo.nr_lanes &&
		is_lane_of(p->seg, lane - 1, lane_word(queue, from, p->index)))
		lane_in_open(p, from, queue);
}

/* Q8, of a lane that the port writes to. */
static void lane_out_assert(struct xport *p, struct lane_out *o)
{
	uint32_t want = lane_word(o->queue, p->index, o->to);
	_Atomic uint32_t *word = &p->seg->lanes[o->lane].word;
	_Atomic uint16_t *entry = &p->seg->ports[o->to].lane[o->queue][p->index];
	uint32_t now = atomic_load_explicit(word, memory_order_relaxed);

	if (now != want && xs_lane_is_joined(p->seg, o->lane)) {
		o->open = false;	/* somebody has taken it for free, and is in it */
		return;
	}
	if (now != want)
		atomic_compare_exchange_strong(word, &now, want);
	if (atomic_load_explicit(entry, memory_order_relaxed) != o->lane + 1)
		atomic_store_explicit(entry, (uint16_t)(o->lane + 1), memory_order_release);
}

/* The port has the bell that it should have, also if another thread gives it one meanwhile: that
 * thread writes the private word first. */
static void bell_assert(struct xport *p)
{
	/* acquire: partner is the release in xseg_port_share_bell() */
	uint32_t is = atomic_load_explicit(&p->sh->bell, memory_order_acquire);
	uint32_t should = atomic_load_explicit(&p->bell, memory_order_relaxed);

	while (is != should) {
		if (atomic_compare_exchange_strong(&p->sh->bell, &is, should))
			is = should;
		should = atomic_load_explicit(&p->bell, memory_order_relaxed);
	}
}

static void port_assert(struct xport *p)
{
	bell_assert(p);
	for (uint32_t queue = 0; queue < 2; queue++)
		for (uint32_t i = 0; i < p->seg->geo.nr_ports; i++) {
			struct lane_out *o = &p->out[queue][i];

			if (o->open && !o->staged)
				lane_out_assert(p, o);
			lane_in_follow(p, i, queue);
		}
}

/* False when the lane is full. */
static inline bool lane_push(struct xport *p, struct lane_out *o, uint64_t offer)
{
	if (!xq_push(&o->w, offer))
		return false;
	XKILL(OFFER_WRITTEN);
	p->fresh = true;
	if (!o->staged) {
		o->staged = true;
		p->staged[p->nr_staged++] = (uint16_t)((uint32_t)o->queue << 15 | o->to);
	}
	return true;
}

/* Rings whoever serves the port, after one of its hints was set. */
static void alert(struct xseg *seg, uint32_t port)
{
	uint32_t bell;

	/* seq_cst: partner is the fence in announce() (bell.c), before which he has said which
	 * bell is his (xseg_port_share_bell()), and that he sleeps: he sees the hint, or we see
	 * both */
	atomic_thread_fence(memory_order_seq_cst);
	bell = atomic_load_explicit(&seg->ports[port].bell, memory_order_relaxed);
	if (bell < seg->geo.nr_ports)
		xs_bell_ring(seg, bell, NULL);
}

/* Q6: slow, as the receiver looks at all requests; the segment should have been made with more
 * ports. */
XCOLD static void offer_by_place(struct xport *p, uint32_t to, uint64_t offer)
{
	/* release: partners are the acquire in take_asked(), which then sees the request as it was
	 * written, and the exchange there */
	atomic_store_explicit(&p->seg->reqs[(uint32_t)offer].ask,
		ask_word(to, (uint32_t)(offer >> 32)), memory_order_release);
	atomic_fetch_or_explicit(&p->seg->ports[to].asked, XS_ASKED, memory_order_release);
	alert(p->seg, to);
}

/* The lane is full. False: the offer has to wait until it is not. One with a head that cannot be
 * may be so for long: Q6. */
static bool offer_past(struct xport *p, const struct lane_out *o, uint32_t to, uint64_t offer)
{
	if (!o->w.bad)
		return false;
	offer_by_place(p, to, offer);
	return true;
}

/* Offers the backlog once more, oldest first; drops what is out of date. */
XCOLD static void retry_backlog(struct xport *p)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->nr_backlog; i++) {
		struct late_offer late = p->backlog[i];
		struct lane_out *o = &p->out[QUEUE_REQUEST][late.to];
		uint64_t place = atomic_load_explicit(
			&p->seg->reqs[(uint32_t)late.offer].place, memory_order_relaxed);

		if (!o->open)
			offer_by_place(p, late.to, late.offer);
		else if (place_seq(place) == (uint32_t)(late.offer >> 32) &&
			!lane_push(p, o, late.offer) && !offer_past(p, o, late.to, late.offer))
			p->backlog[kept++] = late;
	}
	p->nr_backlog = kept;
}

void xs_offer(struct xport *p, uint32_t to, uint64_t offer)
{
	if (!xs_near_push(p, to, offer))
		xs_offer_by_lane(p, to, offer);
}

void xs_offer_by_lane(struct xport *p, uint32_t to, uint64_t offer)
{
	struct lane_out *o = &p->out[QUEUE_REQUEST][to];

	if (!o->open && !o->none)
		o->none = lane_out_open(p, to, QUEUE_REQUEST) == -ENOSPC;
	if (!o->open) {
		offer_by_place(p, to, offer);
		return;
	}
	if (lane_push(p, o, offer) || offer_past(p, o, to, offer))
		return;
	if (p->nr_backlog == p->seg->geo.nr_requests)
		retry_backlog(p);
	/* what is in date is there once a request, so there is room, but for an offer that was made
	 * twice */
	if (p->nr_backlog < p->seg->geo.nr_requests)
		p->backlog[p->nr_backlog++] = (struct late_offer){ .offer = offer,
			.to = (uint16_t)to };
}

XCOLD void xs_port_alert(struct xseg *seg, uint32_t port)
{
	/* release: partner is the exchange in take_answered(), which then sees the places as we
	 * left them */
	atomic_store_explicit(&seg->ports[port].answered, 1, memory_order_release);
	alert(seg, port);
}

void xs_offer_answer(struct xport *p, uint32_t to, uint64_t offer)
{
	struct lane_out *o = &p->out[QUEUE_REPLY][to];

	if (!o->open && !o->none)
		o->none = lane_out_open(p, to, QUEUE_REPLY) == -ENOSPC;
	if (!o->open || !lane_push(p, o, offer))
		xs_port_alert(p->seg, to);
}

static _Atomic uint64_t *mask_word(struct xport *p, const struct lane_out *o)
{
	return &p->seg->ports[o->to].mask[o->queue][p->index / 64];
}

static bool has_mask_bit(struct xport *p, const struct lane_out *o)
{
	return atomic_load_explicit(mask_word(p, o), memory_order_relaxed) >> (p->index % 64) & 1;
}

static void set_mask_bit(struct xport *p, const struct lane_out *o)
{
	/* relaxed: the fence in xseg_port_flush() comes before, and is the partner of those in
	 * collect_mask() */
	if (!has_mask_bit(p, o))
		atomic_fetch_or_explicit(
			mask_word(p, o), 1ull << (p->index % 64), memory_order_relaxed);
}

static struct lane_out *staged_lane(struct xport *p, uint32_t i)
{
	return &p->out[p->staged[i] >> 15][p->staged[i] & 0x7fff];
}

static void publish_lanes(struct xport *p)
{
	for (uint32_t i = 0; i < p->nr_staged; i++)
		xq_publish(&staged_lane(p, i)->w);
	p->fresh = false;
	XKILL(OFFERS_PUBLISHED);
}

/* Nobody's, when the segment says what cannot be. */
static uint32_t bell_of(struct xport *p, const struct lane_out *o)
{
	uint32_t bell = atomic_load_explicit(&p->seg->ports[o->to].bell, memory_order_relaxed);

	return bell < p->seg->geo.nr_ports ? bell : XSEG_NONE;
}

/* Notes a port that this one sends to, or takes from, in `way`. `back` has the partners of the
 * other way. If requests have a new partner, the partner of their replies is not known yet: a peer
 * that forwards may not answer the new one itself. Replies with a new partner say nothing of
 * requests. A client of volumed sends to volumed, and its replies come from the peer below. */
static void note_partner(
	_Atomic uint16_t *way, _Atomic uint16_t *back, uint32_t queue, uint32_t port)
{
	if (atomic_load_explicit(&way[queue], memory_order_relaxed) == port + 1)
		return;
	atomic_store_explicit(&way[queue], (uint16_t)(port + 1), memory_order_relaxed);
	if (queue == QUEUE_REQUEST)
		atomic_store_explicit(&back[QUEUE_REPLY], 0, memory_order_relaxed);
}

void xseg_port_flush(struct xport *p)
{
	if (p->nr_backlog)
		retry_backlog(p);
	if (p->nr_staged == 0)
		return;
	if (p->fresh)
		publish_lanes(p);
	/* seq_cst: partners are the exchange in collect_mask() and the fence in xseg_bell_wait() */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < p->nr_staged; i++) {
		struct lane_out *o = staged_lane(p, i);
		uint32_t bell = bell_of(p, o);

		o->staged = false;
		note_partner(p->sent_to, p->got_from, o->queue, o->to);
		set_mask_bit(p, o);
		XKILL(OFFERS_MARKED);
		if (bell != XSEG_NONE)
			xs_bell_ring(p->seg, bell, p->rung);
	}
	p->nr_staged = 0;
}

void xseg_port_publish(struct xport *p)
{
	bool waits = false;

	if (!p->fresh)
		return;
	publish_lanes(p);
	for (uint32_t i = 0; i < p->nr_staged; i++) {
		struct lane_out *o = staged_lane(p, i);
		uint32_t bell = bell_of(p, o);

		waits |= !has_mask_bit(p, o) ||
			 (bell != XSEG_NONE && xs_bell_announced(p->seg, bell));
	}
	if (waits)
		xseg_port_flush(p);
}

/* The bits of a word of a mask that may be set: of ports that the segment has (R5). */
static uint64_t ports_of_word(const struct xport *p, uint32_t w)
{
	uint32_t nr = p->seg->geo.nr_ports - w * 64;

	return nr >= 64 ? UINT64_MAX : (1ull << nr) - 1;
}

static bool lane_has_work(struct xport *p, uint32_t from, uint32_t queue)
{
	struct lane_in *in = &p->in[queue][from];

	return (in->open || lane_in_open(p, from, queue)) && xq_has_work(&in->r);
}

/* It has, if that is not to be seen, as somebody has scribbled over its tail. If he has over its
 * head, its writer may wait for room, which is there from now on. */
static bool lane_was_bad(struct xport *p, uint32_t from, uint32_t queue)
{
	struct lane_in *in = &p->in[queue][from];
	bool bad = in->open && in->r.bad;

	if (in->open && !xq_reader_is_sound(&in->r))
		xq_reader_again(&in->r);
	return bad;
}

/* Of the lanes of a word of a mask, those that have work. */
XCOLD static uint64_t lanes_with_work(struct xport *p, uint32_t queue, uint32_t w, uint64_t bits)
{
	uint64_t with = 0;
	uint32_t from;

	for (; bits; bits &= bits - 1) {
		from = w * 64 + (uint32_t)__builtin_ctzll(bits);
		if (lane_has_work(p, from, queue) || lane_was_bad(p, from, queue))
			with |= bits & -bits;
	}
	return with;
}

/* Lanes that a call has still to look at: bits of ports, and of the words that have some. */
struct lanes {
	uint64_t bits[XSEG_MASK_WORDS];
	uint32_t words;
};
_Static_assert(XSEG_MASK_WORDS < 32, "words have a bit each");

/* Adds newly announced lanes to the private mask, a copy of which is given back. Lanes that had
 * work stay in it, with their shared bit set, so that a busy pair of ports does not pass the mask's
 * cache line to and fro. A cold look takes the shared bits out, and forgets lanes that are empty
 * and have not been announced since the last one: what they get next is announced. */
static void collect_mask(struct xport *p, uint32_t queue, bool cold, struct lanes *left)
{
	bool cleared = false;

	left->words = 0;
	for (uint32_t w = 0; w < p->mask_words; w++) {
		uint64_t bits = atomic_load_explicit(&p->sh->mask[queue][w], memory_order_relaxed),
			 known = p->pending[queue][w];

		if (!(bits | known))
			continue;
		if (cold && bits) {
			bits = atomic_exchange(&p->sh->mask[queue][w], 0);
			cleared = true;
		}
		if (bits & ~known)
			bits &= ports_of_word(p, w);
		known = bits | (cold ? lanes_with_work(p, queue, w, known & ~bits) : known);
		p->pending[queue][w] = left->bits[w] = known;
		left->words |= (uint32_t)(known != 0) << w;
	}
	/* seq_cst: partner is the fence in xseg_port_flush(): the sender sees its bit clear, or we
	 * see what it published */
	if (cleared)
		atomic_thread_fence(memory_order_seq_cst);
}

/* Both lines of its header: an answer that lends has written the second one, too. */
static void prefetch_req(struct xseg *seg, uint32_t index)
{
	if (index >= seg->geo.nr_requests)
		return;
	__builtin_prefetch(&seg->reqs[index], 1);
	__builtin_prefetch(&seg->reqs[index].page[0], 1);
}

/* Takes up to max live offers of one lane; looks at no more than it has room for, whatever is being
 * written. */
static uint32_t take_lane(
	struct xport *p, uint32_t from, uint32_t queue, struct xreq **out, uint32_t max)
{
	struct lane_in *in = &p->in[queue][from];
	uint64_t offer[XSEG_BATCH];
	uint32_t got = 0, seen = 0, n, i;

	for (; got < max && seen < p->seg->geo.lane_slots; seen += n) {
		n = xq_take(&in->r, offer, max - got < XSEG_BATCH ? max - got : XSEG_BATCH);
		if (n == 0)
			break;
		for (i = 0; i < n; i++)
			prefetch_req(p->seg, (uint32_t)offer[i]);
		for (i = 0; i < n; i++) {
			struct xreq *r = xs_req_accept(p, offer[i], queue);

			if (r)
				out[got++] = r;
		}
		XKILL(OFFERS_ACCEPTED);
		xq_release(&in->r, n);
	}
	return got;
}

/* Takes the first lane at or after `start` out, going round once; there is one. */
static uint32_t next_lane(struct lanes *left, uint32_t start)
{
	uint32_t w = start / 64, bit;
	uint64_t bits = left->words >> w & 1 ? left->bits[w] & ~0ull << (start % 64) : 0;

	if (!bits) {
		uint32_t after = left->words & ~1u << w;

		w = (uint32_t)__builtin_ctz(after ? after : left->words);
		bits = left->bits[w];
	}
	bit = (uint32_t)__builtin_ctzll(bits);
	left->bits[w] &= ~(1ull << bit);
	if (left->bits[w] == 0)
		left->words &= ~(1u << w);
	return w * 64 + bit;
}

/* Serves the lanes in turn, from the one after the last, so that a busy one does not starve the
 * others. What counts is what was looked at in vain since all had work: a port that has many lanes
 * forgets those that are silent sooner, also while others are busy. */
static uint32_t take_queue(struct xport *p, uint32_t queue, struct xreq **out, uint32_t max)
{
	bool cold = p->vain[queue] >= COLD_LOOKS;
	uint32_t got = 0, vain = 0, from;
	struct lanes left;

	collect_mask(p, queue, cold, &left);
	if (!left.words) {
		p->vain[queue] = cold ? 0 : p->vain[queue];
		return 0;
	}
	while (got < max && left.words) {
		from = next_lane(&left, p->turn[queue]);
		if (!lane_has_work(p, from, queue)) {
			vain++;
			continue;
		}
		p->turn[queue] = from + 1 < p->mask_words * 64 ? from + 1 : 0;
		note_partner(p->got_from, p->sent_to, queue, from);
		got += take_lane(p, from, queue, out + got, max - got);
	}
	p->vain[queue] = cold || (got && !vain) ? 0 : p->vain[queue] + vain;
	return got;
}

/* The lanes that are open, though somebody may have scribbled over them: Q6. */
static void lanes_again(struct xport *p, uint32_t queue)
{
	for (uint32_t from = 0; from < p->seg->geo.nr_ports; from++)
		if (p->in[queue][from].open)
			xq_reader_again(&p->in[queue][from].r);
}

/* Takes up to max answers whose offers found no lane or no room (Q5). */
XCOLD static uint32_t take_answered(struct xport *p, struct xreq **out, uint32_t max)
{
	uint32_t got = 0, i;

	/* acquire: partner is the release in xs_port_alert(); cleared first, so that a later alert
	 * stands */
	if (!atomic_exchange_explicit(&p->sh->answered, 0, memory_order_acquire))
		return 0;
	lanes_again(p, QUEUE_REPLY);
	for (i = 0; i < p->req_nr && got < max; i++) {
		uint64_t place = atomic_load_explicit(
			&p->seg->reqs[p->req_first + i].place, memory_order_acquire);
		struct xreq *r = NULL;

		if (place_state(place) == XSEG_REQ_ANSWERED)
			r = xs_req_accept(p, offer_word(p->req_first + i, place), QUEUE_REPLY);
		if (!r)
			r = xs_req_accept_lost(p, p->req_first + i);
		if (r)
			out[got++] = r;
	}
	if (i < p->req_nr)
		atomic_store_explicit(&p->sh->answered, 1, memory_order_relaxed);
	return got;
}

/* Whether the request is offered to that port without a lane, or by one that somebody has written
 * over; *offer is what to accept. */
static bool is_asked(
	struct xseg *seg, uint32_t index, uint32_t port, uint32_t how, uint64_t *offer)
{
	uint64_t ask = atomic_load_explicit(&seg->reqs[index].ask, memory_order_acquire), place;
	bool sent = (how & XS_ASKED_ALL) && xs_req_is_offered_to(seg, index, port);

	if (!sent && ask >> 32 != port + 1)
		return false;
	place = atomic_load_explicit(&seg->reqs[index].place, memory_order_acquire);
	*offer = offer_word(index, place);
	return sent || (place_seq(place) == (uint32_t)ask && place_may_be_offered(place));
}

/* Takes up to max requests that found no lane (Q6). */
XCOLD static uint32_t take_asked(struct xport *p, struct xreq **out, uint32_t max)
{
	/* acquire: partner is the release in offer_by_place(); cleared first, so that a later one
	 * stands */
	uint32_t how = atomic_exchange_explicit(&p->sh->asked, 0, memory_order_acquire);
	uint32_t got = 0, i;

	if (!how)
		return 0;
	lanes_again(p, QUEUE_REQUEST);
	for (i = 0; i < p->seg->geo.nr_requests && got < max; i++) {
		uint64_t offer;
		struct xreq *r = is_asked(p->seg, i, p->index, how, &offer)
					 ? xs_req_accept(p, offer, QUEUE_REQUEST)
					 : NULL;

		if (r)
			out[got++] = r;
	}
	if (i < p->seg->geo.nr_requests)
		atomic_fetch_or_explicit(&p->sh->asked, how, memory_order_relaxed);
	return got;
}

static bool is_alerted(struct xport *p)
{
	return p->req_nr && atomic_load_explicit(&p->sh->answered, memory_order_relaxed);
}

static bool has_asked(struct xport *p)
{
	return xs_port_gets_requests(p) &&
	       atomic_load_explicit(&p->sh->asked, memory_order_relaxed);
}

bool xs_port_peek(struct xport *p)
{
	if (is_alerted(p) || has_asked(p) || xs_near_has(p))
		return true;
	for (uint32_t queue = p->first_queue; queue < p->end_queue; queue++)
		for (uint32_t w = 0; w < p->mask_words; w++) {
			uint64_t bits = p->pending[queue][w] |
					(atomic_load_explicit(
						 &p->sh->mask[queue][w], memory_order_relaxed) &
						ports_of_word(p, w));

			for (; bits; bits &= bits - 1)
				if (lane_has_work(
					    p, w * 64 + (uint32_t)__builtin_ctzll(bits), queue))
					return true;
		}
	return false;
}

/* From lanes, and from other ports of the thread: now these first, now those, so that neither
 * starves. */
static uint32_t take_requests(struct xport *p, struct xreq **out, uint32_t max)
{
	uint32_t n;

	if (!xs_near_has(p))
		return take_queue(p, QUEUE_REQUEST, out, max);
	p->near_last = !p->near_last;
	if (p->near_last) {
		n = take_queue(p, QUEUE_REQUEST, out, max);
		return n + xs_near_take(p, out + n, max - n);
	}
	n = xs_near_take(p, out, max);
	return n < max ? n + take_queue(p, QUEUE_REQUEST, out + n, max - n) : n;
}

XHOT uint32_t xseg_port_receive(struct xport *p, struct xreq **out, uint32_t max)
{
	uint32_t n = take_requests(p, out, max), kept = 0;
	struct xs_origin origin = { .port = XSEG_NONE };

	if (n < max && has_asked(p))
		n += take_asked(p, out + n, max - n);
	for (uint32_t i = 0; i < n; i++) {
		if (xs_req_receive(p->seg, out[i], &origin)) {
			xs_count_bad(p->seg);
			xseg_req_answer(p, out[i], -EPROTO);
		} else {
			out[kept++] = out[i];
		}
	}
	/* the caller does not know of these answers: he may go to sleep without flushing */
	if (kept < n)
		xseg_port_flush(p);
	return kept;
}

XHOT uint32_t xseg_port_replies(struct xport *p, struct xreq **out, uint32_t max)
{
	uint32_t n = take_queue(p, QUEUE_REPLY, out, max);

	if (n < max && is_alerted(p))
		n += take_answered(p, out + n, max - n);
	return n;
}

bool xseg_port_has_work(struct xport *p)
{
	port_assert(p);
	if (is_alerted(p) || has_asked(p))
		return true;
	for (uint32_t queue = p->first_queue; queue < p->end_queue; queue++)
		for (uint32_t from = 0; from < p->seg->geo.nr_ports; from++)
			if (lane_has_work(p, from, queue) || lane_was_bad(p, from, queue)) {
				p->pending[queue][from / 64] |= 1ull << (from % 64);
				return true;
			}
	return xs_near_has(p);
}

uint32_t xseg_port_index(struct xport *p)
{
	return p->index;
}

struct xseg_peer *xseg_port_peer(struct xport *p)
{
	return p->peer;
}
