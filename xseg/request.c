/* request - the place word: the port that has a request, and how the request changes hands.
 *
 * The place is one 64-bit word (state, port, generation of that port, sequence). It alone says
 * which port has the request. Queues only carry hints (index, sequence) of it.
 *
 *   from      to        when                                        by
 *   FREE      PRIVATE   xseg_req_alloc                              its origin
 *   PRIVATE   FREE      xseg_req_free; its origin died              origin; repair
 *   PRIVATE   AT        an offer is accepted                        the receiver
 *   AT        AT        an offer is accepted (forwarded)            the receiver
 *   AT, STARTED, APPLIED  the same  a successor takes over          the successor
 *   AT        STARTED   all that it may wait for is there           the holder
 *   STARTED   APPLIED   its effect is complete, its answer waits    the holder
 *   AT, STARTED, APPLIED  ANSWERED  result written                  the holder
 *   ANSWERED  PRIVATE   the reply is accepted                       its origin
 *   ANSWERED  FREE      its origin died                             repair
 *
 * Every edge adds 1 to the sequence, so an offer made before it is dead. In PRIVATE, ANSWERED and
 * FREE the port is the origin; in AT, STARTED and APPLIED it is the holder.
 *
 * Invariants:
 *   E1  Each edge is from the exact old word. Acceptance can race with takeover or repair, so each
 *       of them is one compare-and-swap; the loser lets go. Some words only one port may change
 *       while its process lives. These are a holder's request, the request that it sends on to a
 *       port of its own thread (near.c, N3), and an answer to its origin. That port changes the
 *       word by a look and a store. Any other process proves that process's death first (offer.pml:
 *       a holder's own swap never fails).
 *   E2  The origin's fields do not change after submission. Results are written before ANSWERED.
 *   E3  A process reads each field of a request once, into its private copy (xs_req_copy_in). It
 *       does so after the edge that made it the holder, and checks the copy. There is one
 *       exception: a request that the same attachment sent on and accepts itself, with no holder in
 *       between. It does not read that again. While sent_on is not 0, the view shows the request as
 *       it was sent on at that place. The origin's view is another one, and stays as the origin
 *       wrote it.
 *   E4  A private copy has one holder in its process. An answer is taken only for a request that is
 *       out. So scribbled places and lanes never give a port a request that another part of the
 *       process has, or an answer that it did not ask for.
 *   E5  A holder or an origin may find that a place is not as it left it. If the request is still
 *       the one that it has (`pass`; it is in its pool), it puts the place right (place.c).
 *
 * Contract: a struct xreq is used by one thread at a time; nothing here blocks.
 */
#include <errno.h>
#include <string.h>

#include "xseg/internal.h"
#include "xtypes/xhot.h"
#include "xtypes/xkill.h"
#include "xtypes/xstate.h"

static const char *const op_names[XSEG_NR_OPS] = {
#define XSEG_OP_ROW(op, word, ...) [XSEG_OP_##op] = word,
#include "xseg/ops.def"
};

/* Bits, by operation: those whose pages hold data. */
enum {
	OPS_WITH_DATA = 0
#define XSEG_OP_ROW(op, word, range, changes, data, ...) | (data) << XSEG_OP_##op
#include "xseg/ops.def"
};

const char *xseg_op_name(enum xseg_op op)
{
	return (unsigned)op < XSEG_NR_OPS ? op_names[op] : "unknown";
}

uint32_t xseg_req_span(uint64_t offset, uint32_t size)
{
	return size ? ((uint32_t)(offset % XSEG_PAGE_SIZE) + size + XSEG_PAGE_SIZE - 1) /
			       XSEG_PAGE_SIZE
		    : 0;
}

/* The edges that a holder makes by itself; accepting and taking over are xs_req_take()'s. */
#define TO(s) (1u << XSEG_REQ_##s)
static const struct xstates states = {
	.what = "request",
	XSTATE(XSEG_REQ_, FREE, TO(PRIVATE)),
	XSTATE(XSEG_REQ_, PRIVATE, TO(FREE)),
	XSTATE(XSEG_REQ_, AT, TO(STARTED) | TO(ANSWERED)),
	XSTATE(XSEG_REQ_, STARTED, TO(APPLIED) | TO(ANSWERED)),
	XSTATE(XSEG_REQ_, APPLIED, TO(ANSWERED)),
	XSTATE(XSEG_REQ_, ANSWERED, 0),
};

/* Without xstate_may()'s look at the number, which a hit would do, too: each view's state has a
 * row. */
static bool is_legal(enum xseg_req_state from, enum xseg_req_state to)
{
	return states.next[from] >> to & 1;
}

static bool moves_data(uint8_t op)
{
	return op < XSEG_NR_OPS && OPS_WITH_DATA >> op & 1;
}

static void origin_of(struct xseg *seg, uint32_t port, struct xs_origin *o)
{
	*o = (struct xs_origin){ .port = port };
	if (xs_peer_of_port(seg, port))
		o->nr = xs_port_requests(seg, port, &o->first);
}

static bool origin_owns(const struct xs_origin *o, uint32_t i)
{
	return i >= o->first && i - o->first < o->nr;
}

XCOLD uint32_t xs_req_owner(struct xseg *seg, uint32_t i)
{
	struct xs_origin o;

	for (uint32_t k = 0; k < seg->geo.nr_ports; k++) {
		origin_of(seg, k, &o);
		if (origin_owns(&o, i))
			return k;
	}
	return XSEG_NONE;
}

/* Whatever the request says of its origin, its answer goes to the port that has it; false when it
 * lied. */
static bool check_origin(struct xseg *seg, struct xreq *r, struct xs_origin *origin)
{
	uint32_t owner;

	if (r->origin != origin->port)
		origin_of(seg, r->origin, origin);
	if (origin_owns(origin, r->index))
		return true;
	owner = xs_req_owner(seg, r->index);
	r->origin = owner == XSEG_NONE ? 0 : (uint16_t)owner;
	return false;
}

/* The last byte of the head says whether the name goes on in the rest: it is 0 if it does not. If
 * it changes meanwhile it is another name, with an end of its own. */
static void target_in(const struct xs_req *sh, struct xreq *r)
{
	memcpy(r->target, sh->target, sizeof(sh->target));
	if (r->target[sizeof(sh->target) - 1] == '\0')
		return;
	memcpy(r->target + sizeof(sh->target), sh->target_rest, sizeof(sh->target_rest));
	r->target[XSEG_TARGET_MAX - 1] = '\0';
}

/* By words, as it was written a moment ago in pieces of that size at least: see write_forward(). */
static void head_out(struct xs_req *sh, const struct xreq *r)
{
#pragma GCC unroll 8
	for (size_t at = 0; at < sizeof(sh->target); at += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, r->target + at, sizeof(word));
		/* no two of them become one */
		__asm__ volatile("" : "+r"(word));
		memcpy(sh->target + at, &word, sizeof(word));
	}
}

/* What is behind the end of a name is copied, too, where that is one piece: a name that is there,
 * or was before. */
static void target_out(struct xs_req *sh, const struct xreq *r)
{
	size_t bytes, head = sizeof(sh->target);

	if (r->target[head - 1] == '\0') {
		head_out(sh, r);
		return;
	}
	bytes = strlen(r->target) + 1;
	memcpy(sh->target, r->target, bytes < head ? bytes : head);
	if (bytes < head)
		sh->target[head - 1] = '\0';
	else if (bytes > head)
		memcpy(sh->target_rest, r->target + head, bytes - head);
}

/* What a receiver finds empty. Whatever the view says from now on, it was not sent on. */
static void view_begin(struct xreq *r)
{
	r->sent_on = 0;
	r->result = 0;
	r->nr_lent = 0;
	r->next = NULL;
	r->user = NULL;
}

int xs_req_receive(struct xseg *seg, struct xreq *r, struct xs_origin *origin)
{
	int rc;

	if (!r->sent_on) {
		rc = xs_req_copy_in(seg, r, origin);
		/* F1 of place.c */
		return xs_req_is_idle(seg, r->index) ? -EPROTO : rc;
	}
	view_begin(r);
	return 0;
}

int xs_req_copy_in(struct xseg *seg, struct xreq *r, struct xs_origin *origin)
{
	const struct xs_req *sh = &seg->reqs[r->index];
	uint32_t i, given, bad = 0;

	r->op = XS_FETCH(sh->op);
	r->flags = XS_FETCH(sh->flags);
	r->nr_pages = XS_FETCH(sh->nr_pages);
	r->size = XS_FETCH(sh->size);
	r->offset = XS_FETCH(sh->offset);
	r->volume = XS_FETCH(sh->volume);
	r->obj_offset = XS_FETCH(sh->obj_offset);
	r->hash = XS_FETCH(sh->hash);
	r->parent = atomic_load_explicit(&sh->parent, memory_order_relaxed);
	r->part = XS_FETCH(sh->part);
	r->pass = XS_FETCH(sh->pass);
	r->origin = XS_FETCH(sh->origin);
	r->via = atomic_load_explicit(&sh->via, memory_order_relaxed);
	view_begin(r);
	if (!check_origin(seg, r, origin) || r->op >= XSEG_NR_OPS || r->nr_pages > XSEG_REQ_PAGES ||
	    r->size > XSEG_REQ_BYTES || r->offset + r->size < r->offset)
		bad = 1;
	if (r->nr_pages > XSEG_REQ_PAGES)
		r->nr_pages = 0;
	given = xseg_req_gives(r) ? XSEG_PAGE_GIVEN : 0;
	for (i = 0; i < r->nr_pages; i++) {
		r->page[i] = XS_FETCH(sh->page[i].page) & ~given;
		bad |= r->page[i] >= seg->nr_pages;
	}
	if (moves_data(r->op) && r->nr_pages < xseg_req_span(r->offset, r->size))
		bad = 1;
	target_in(sh, r);
	return bad ? -EPROTO : 0;
}

/* From exactly `old`, by the only one who may (E1): false when somebody has scribbled there. */
static bool place_store(struct xseg *seg, uint32_t index, uint64_t old, uint64_t new)
{
	_Atomic uint64_t *place = &seg->reqs[index].place;

	if (atomic_load_explicit(place, memory_order_relaxed) != old)
		return false;
	/* release: what we wrote into the request is seen by the next holder */
	atomic_store_explicit(place, new, memory_order_release);
	/* release: what is stored in a STARTED request's name comes after that (rule R3) */
	atomic_thread_fence(memory_order_release);
	return true;
}

/* An edge of the table above, in the view: it is written before the place, as after an answer its
 * next holder may be another thread of this process. False when the table has no such edge. */
static inline bool view_move(
	struct xreq *r, enum xseg_req_state state, uint64_t own_place, uint64_t *old)
{
	if (!is_legal(r->state, state))
		return false;
	*old = r->place;
	r->place = place_own(own_place, state, place_seq(*old) + 1);
	r->state = state;
	return true;
}

/* E5. The request has not been submitted again, nor answered, nor is it free, and its holder has no
 * successor: it is still its holder's. */
static bool is_still_held(struct xseg *seg, const struct xreq *r)
{
	const struct xs_req *sh = &seg->reqs[r->index];
	uint32_t peer = xs_peer_of_port(seg, place_port(r->place));

	return peer && peer <= seg->geo.nr_ports &&
	       (peer_gen(xs_peer_word(seg, peer - 1)) & 0xfffff) == place_gen(r->place) &&
	       XS_FETCH(sh->pass) == r->pass &&
	       atomic_load_explicit(&sh->result, memory_order_relaxed) == XS_NOT_ANSWERED &&
	       place_state(atomic_load_explicit(&sh->place, memory_order_acquire)) != XSEG_REQ_FREE;
}

/* The holder's, where the place is not what it left there. False: the request is its no more. */
XCOLD static bool hold_mend(struct xseg *seg, struct xreq *r)
{
	if (!is_still_held(seg, r)) {
		xs_count_bad(seg);
		return false;
	}
	r->place = xs_place_force(seg, r->index, place_whose(r->place), r->state);
	return true;
}

/* The place is what it should be, or is put right; false: the request is its holder's no more. */
static inline bool hold_check(struct xseg *seg, struct xreq *r)
{
	if (atomic_load_explicit(&seg->reqs[r->index].place, memory_order_relaxed) == r->place)
		return true;
	return hold_mend(seg, r);
}

/* One edge that a holder makes, and keeps it; false when there is none, or it is the holder no
 * more. */
static inline bool hold_move(struct xseg *seg, struct xreq *r, enum xseg_req_state state)
{
	uint64_t old;

	if (!view_move(r, state, place_whose(r->place), &old)) {
		xs_count_bad(seg);
		return false;
	}
	return place_store(seg, r->index, old, r->place) || hold_mend(seg, r);
}

/* The same for an origin's request that is at rest: somebody may be accepting it meanwhile, or take
 * it back, if it was offered all the same. */
static bool rest_move(struct xport *port, struct xreq *r, enum xseg_req_state state)
{
	uint64_t old;

	/* acq_rel: what we wrote into the request is seen by the next holder, and what the last one
	 * wrote by us */
	return view_move(r, state, port->own_place, &old) &&
	       atomic_compare_exchange_strong_explicit(&port->seg->reqs[r->index].place, &old,
		       r->place, memory_order_acq_rel, memory_order_relaxed);
}

#define ERRNO_MAX 4095

/* The origin's look at its answer: a store that claims to have moved more than was asked for is not
 * believed, nor an error that is no errno (callers have it in an int). */
static int64_t result_of(struct xseg *seg, const struct xreq *r)
{
	int64_t result = atomic_load_explicit(&seg->reqs[r->index].result, memory_order_relaxed);

	if (result >= -ERRNO_MAX && (!moves_data(r->op) || result <= (int64_t)r->size))
		return result;
	xs_count_bad(seg);
	return -EPROTO;
}

/* E4. Who lets go of a request clears it before the offer or the swap that the next holder waits
 * for. */
static bool is_held(const struct xreq *r)
{
	/* acquire: partner is the release in set_holder(): who takes it by an offer that was never
	 * made sees all of the view, too */
	return atomic_load_explicit(&r->holder, memory_order_acquire) != 0;
}

static void set_holder(struct xreq *r, const struct xport *port)
{
	atomic_store_explicit(
		&r->holder, port ? (uint16_t)(port->index + 1) : 0, memory_order_release);
}

static void view_forget(struct xport *port, struct xreq *r)
{
	if (atomic_load_explicit(&r->holder, memory_order_relaxed) == port->index + 1)
		set_holder(r, NULL);
}

/* Only views that the port can have are looked at: those of all requests are some MiB, which a
 * command that ends would touch for the first time. */
void xs_views_forget(struct xport *port)
{
	for (uint32_t i = 0; i < port->req_nr; i++) {
		struct xreq *own = view_own(port->seg, port->req_first + i);

		view_forget(port, own);
		own->out = false;
	}
	for (uint32_t i = 0; xs_port_gets_requests(port) && i < port->seg->geo.nr_requests; i++)
		view_forget(port, view_held(port->seg, i));
}

/* The place and the view say so; the rest of the view is ours to write. */
static inline void view_take(struct xport *port, struct xreq *r, uint32_t index, uint64_t place,
	enum xseg_req_state state)
{
	r->index = index;
	r->place = place;
	r->state = state;
	set_holder(r, port);
}

static bool nobody_has(struct xport *port, const struct xreq *r)
{
	if (!is_held(r))
		return true;
	xs_count_bad(port->seg);
	return false;
}

bool xs_req_take(struct xport *port, struct xreq *r, uint32_t index, uint64_t place,
	enum xseg_req_state state)
{
	uint64_t old = place;
	uint64_t new = place_own(port->own_place, state, place_seq(place) + 1);

	/* acquire and release as in rest_move(); seq_cst: comes before the receiver's look at who
	 * may send to it (xseg_port_is_kept(), xseg_req_is_foreign()), or that look sees what
	 * xseg_plug_claim() stored before it looked at places */
	if (!nobody_has(port, r) ||
		!atomic_compare_exchange_strong_explicit(&port->seg->reqs[index].place, &old, new,
			memory_order_seq_cst, memory_order_relaxed))
		return false;
	view_take(port, r, index, new, state);
	return true;
}

/* The request is its origin's again, by that place. */
static inline struct xreq *answer_in(
	struct xport *port, struct xreq *r, uint32_t index, uint64_t place)
{
	view_take(port, r, index, place, XSEG_REQ_PRIVATE);
	XKILL(ANSWER_ACCEPTED);
	r->result = result_of(port->seg, r);
	if (xs_req_lists_gifts(r) ? xs_req_gifts_in(port->seg, r) : xs_req_loans_in(port->seg, r))
		r->result = -EPROTO;
	r->out = false;
	if (r->result < 0 || index == port->measure.index)
		xs_measure_take(port, r);
	return r;
}

/* It was answered, whatever the place says: a result is written before that. */
static bool has_result(struct xseg *seg, uint32_t index)
{
	int64_t result = atomic_load_explicit(&seg->reqs[index].result, memory_order_relaxed);

	return result != XS_NOT_ANSWERED && result != XS_IDLE;
}

/* The answer to a request of the port's own. Only its origin takes it (E1). */
static struct xreq *accept_answer(struct xport *port, uint32_t index, uint64_t place)
{
	uint64_t new = place_own(port->own_place, XSEG_REQ_PRIVATE, place_seq(place) + 1);
	struct xreq *r = view_own(port->seg, index);

	if (place_state(place) != XSEG_REQ_ANSWERED || place_port(place) != port->index ||
	    index < port->req_first || index - port->req_first >= port->req_nr)
		return NULL;
	if (!r->out || !has_result(port->seg, index)) {
		xs_count_bad(port->seg);
		return NULL;
	}
	if (!nobody_has(port, r) || !place_store(port->seg, index, place, new))
		return NULL;
	return answer_in(port, r, index, new);
}

XCOLD struct xreq *xs_req_accept_lost(struct xport *port, uint32_t index)
{
	uint64_t place = atomic_load_explicit(&port->seg->reqs[index].place, memory_order_acquire);
	enum xseg_req_state s = place_state(place);
	struct xreq *r = view_own(port->seg, index);

	/* a holder that lives may be about to say that it is answered */
	if (!r->out || !has_result(port->seg, index) ||
		(s >= XSEG_REQ_AT && s <= XSEG_REQ_APPLIED && !xs_place_is_lost(port->seg, place)))
		return NULL;
	/* it was answered since the caller looked: nothing is lost */
	if (s == XSEG_REQ_ANSWERED) {
		struct xreq *answered =
			xs_req_accept(port, offer_word(index, place), QUEUE_REPLY);

		if (answered)
			return answered;
	}
	if (!nobody_has(port, r))
		return NULL;
	place = xs_place_force(port->seg, index, port->own_place, XSEG_REQ_PRIVATE);
	return answer_in(port, r, index, place);
}

struct xreq *xs_req_accept(struct xport *port, uint64_t offer, uint32_t queue)
{
	uint32_t index = (uint32_t)offer;
	struct xreq *r;
	uint64_t place;

	if (index >= port->seg->geo.nr_requests) {
		xs_count_bad(port->seg);
		return NULL;
	}
	/* acquire: partner is the release in the sender's place_store(), or rest_move() */
	place = atomic_load_explicit(&port->seg->reqs[index].place, memory_order_acquire);
	if (place_seq(place) != (uint32_t)(offer >> 32))
		return NULL;
	if (queue == QUEUE_REPLY)
		return accept_answer(port, index, place);
	if (!place_may_be_offered(place))
		return NULL;
	r = view_held(port->seg, index);
	if (!xs_req_take(port, r, index, place, XSEG_REQ_AT))
		return NULL;
	XKILL(REQ_ACCEPTED);
	if (r->sent_on != place)
		r->sent_on = 0;
	return r;
}

/* What was sent on as the view says, and was offered to nobody else. Others, and what is out of
 * date, go the long way. */
struct xreq *xs_req_accept_near(struct xport *port, uint64_t offer)
{
	uint32_t index = (uint32_t)offer;
	struct xreq *r = view_held(port->seg, index);
	uint64_t old = r->place, new = place_own(port->own_place, XSEG_REQ_AT, place_seq(old) + 1);

	if (r->sent_on != old || place_seq(old) != (uint32_t)(offer >> 32))
		return xs_req_accept(port, offer, QUEUE_REQUEST);
	if (!nobody_has(port, r) || !place_store(port->seg, index, old, new))
		return NULL;
	view_take(port, r, index, new, XSEG_REQ_AT);
	XKILL(REQ_ACCEPTED);
	return r;
}

struct xreq *xseg_req_alloc(struct xport *port)
{
	uint32_t index = xpool_get(&port->free);
	struct xreq *r;

	if (index == XPOOL_NONE)
		return NULL;
	r = view_own(port->seg, index);
	r->index = index;
	r->place = atomic_load_explicit(&port->seg->reqs[index].place, memory_order_acquire);
	r->state = place_state(r->place);
	/* what is in the pool is ours, whatever the place says: E5 */
	if (r->state != XSEG_REQ_FREE || !rest_move(port, r, XSEG_REQ_PRIVATE)) {
		r->state = XSEG_REQ_PRIVATE;
		r->place = xs_place_force(port->seg, index, port->own_place, r->state);
	}
	XKILL(REQ_TAKEN);
	set_holder(r, port);
	xs_req_loans_drop(port->seg, r);	/* of an origin that died with it */
	r->out = false;
	/* nobody has sent it: plug.c looks at that while it is PRIVATE */
	atomic_store_explicit(&port->seg->reqs[index].via, 0, memory_order_relaxed);
	r->op = r->flags = 0;
	r->nr_pages = 0;
	r->size = r->volume = r->parent = r->part = r->direct = 0;
	r->offset = r->obj_offset = r->hash = 0;
	r->result = 0;
	r->origin = (uint16_t)port->index;
	r->target[0] = '\0';
	r->cookie = r->user = NULL;
	r->next = NULL;
	return r;
}

/* It is a child no more: what is marked later would be another request's. The swap to FREE comes
 * after it. */
static void parent_forget(struct xs_req *sh)
{
	atomic_store_explicit(&sh->parent, 0, memory_order_relaxed);
}

/* F1 of place.c. Not where it has been submitted again since `result` was seen. */
static void idle_set(struct xs_req *sh, int64_t result)
{
	atomic_compare_exchange_strong_explicit(
		&sh->result, &result, XS_IDLE, memory_order_relaxed, memory_order_relaxed);
}

void xseg_req_free(struct xport *port, struct xreq *r)
{
	if (place_port(r->place) != port->index || r->state != XSEG_REQ_PRIVATE) {
		xs_count_bad(port->seg);
		return;
	}
	parent_forget(&port->seg->reqs[r->index]);
	XKILL(REQ_DISOWNED);
	atomic_store_explicit(
		&port->seg->reqs[r->index].result, XS_IDLE, memory_order_relaxed);
	set_holder(r, NULL);
	if (!rest_move(port, r, XSEG_REQ_FREE))
		xs_place_force(port->seg, r->index, place_whose(r->place), XSEG_REQ_FREE);
	xpool_put(&port->free, r->index);
}

uint32_t xseg_nr_requests(struct xseg *seg)
{
	return seg->geo.nr_requests;
}

void xseg_req_recall(struct xport *port, struct xreq *r)
{
	int64_t result = r->result;

	if (xs_req_copy_in(port->seg, r, &(struct xs_origin){ .port = XSEG_NONE })) {
		xs_count_bad(port->seg);
		r->nr_pages = 0;
	}
	r->result = result;
}

uint32_t xseg_port_nr_requests(struct xport *port)
{
	return port->req_nr;
}

uint32_t xseg_port_nr_free(struct xport *port)
{
	return xpool_nr(&port->free);
}

bool xs_req_home(struct xseg *seg, uint32_t index, uint64_t place, uint32_t port)
{
	struct xs_req *sh = &seg->reqs[index];
	int64_t result = atomic_load_explicit(&sh->result, memory_order_relaxed);

	/* What has no answer keeps its parent: it may be accepted in this moment, and is a child
	 * until it is answered. It does no harm to what is FREE: nothing is marked before there is
	 * an answer, and the parent is written anew before that. */
	if (has_result(seg, index)) {
		xs_req_mark_part(seg, index, result);
		parent_forget(sh);
	}
	/* acq_rel: as in rest_move() */
	if (!atomic_compare_exchange_strong_explicit(&sh->place, &place,
		    place_word(XSEG_REQ_FREE, port, 0, place_seq(place) + 1), memory_order_acq_rel,
		    memory_order_relaxed))
		return false;
	idle_set(sh, result);
	XKILL(REQ_HOMED);
	return true;
}

void xseg_req_set_target(struct xreq *r, const char *target, size_t len)
{
	if (len > XSEG_TARGET_MAX - 1)
		len = XSEG_TARGET_MAX - 1;
	memcpy(r->target, target, len);
	r->target[len] = '\0';
	r->hash = xseg_hash(target, len);
}

void xseg_req_unlend(struct xport *port, struct xreq *r)
{
	r->flags = (uint8_t)(r->flags & ~(XSEG_REQ_LOAN | XSEG_REQ_DIRECT));
	/* relaxed: its next holder gets it by the offer, and nobody else reads its meaning */
	__atomic_store_n(&port->seg->reqs[r->index].flags, r->flags, __ATOMIC_RELAXED);
}

/* The forwarder's fields: who sends, to which port, to which object. Fetched one by one, as they
 * were written a moment ago: a compiler would load two at once, and a processor can do that only
 * when both stores have reached its cache. */
static void write_forward(struct xport *port, struct xreq *r, uint32_t to)
{
	struct xs_req *sh = &port->seg->reqs[r->index];

	sh->obj_offset = XS_FETCH(r->obj_offset);
	sh->hash = XS_FETCH(r->hash);
	atomic_store_explicit(&sh->to, (uint16_t)(to + 1), memory_order_relaxed);
	target_out(sh, r);
}

static void write_pages(struct xseg *seg, struct xreq *r)
{
	struct xs_req *sh = &seg->reqs[r->index];

	if (xs_req_lists_gifts(r)) {
		xs_req_gifts_out(seg, r);
		return;
	}
	xs_req_loans_drop(seg, r);
	for (uint32_t i = 0; i < r->nr_pages; i++)
		sh->page[i].page = r->page[i];
}

/* A line that another core wants next goes to the cache that all cores share, where it is found
 * sooner than in this core's own. A hint: processors that do not have the instruction take it for a
 * NOP. (The idea is DPDK's rte_cldemote().) */
static inline void demote(const void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("cldemote %0" : : "m"(*(const char *)line) : "memory");
#else
	(void)line;
#endif
}

/* What the next holder looks at of a request. */
static void demote_header(const struct xs_req *sh)
{
	demote(sh);
	demote(&sh->page[0]);
}

/* After it another thread may have the request. */
static void give_offer(struct xport *port, struct xreq *r, uint32_t to, bool own)
{
	uint64_t offer = offer_word(r->index, r->place);
	struct xs_req *sh = &port->seg->reqs[r->index];

	if (own)
		r->out = true;
	r->via = (uint16_t)(port->index + 1);
	set_holder(r, NULL);
	/* release: partner is the acquire in xs_req_is_offered_to(): whoever sees it may accept */
	atomic_store_explicit(&sh->via, (uint16_t)(port->index + 1), memory_order_release);
	xs_offer(port, to, offer);
}

XHOT int xseg_req_submit(struct xport *port, struct xreq *r, uint32_t peer)
{
	struct xs_req *sh = &port->seg->reqs[r->index];
	int to = xs_route_port(port->seg, peer, r->hash);

	if (r->state != XSEG_REQ_PRIVATE || r->nr_pages > XSEG_REQ_PAGES)
		return -EINVAL;
	if (to < 0)
		return to;
	if (atomic_load_explicit(&sh->place, memory_order_relaxed) != r->place)
		r->place = xs_place_force(port->seg, r->index, port->own_place, XSEG_REQ_PRIVATE);
	r->sent_to = peer;
	if (--port->measure.until == 0)
		xs_measure_submit(port, r);
#pragma GCC unroll 8
	for (uint32_t i = 0; i < XSEG_DONE_WORDS; i++)
		atomic_store_explicit(&sh->done[i], 0, memory_order_relaxed);
	/* one by one, as in write_forward() */
	/* of the submission before, until this one is offered */
	atomic_store_explicit(&sh->via, 0, memory_order_relaxed);
	sh->origin = (uint16_t)port->index;	/* what it is anyway */
	sh->op = XS_FETCH(r->op);
	sh->flags = XS_FETCH(r->flags);
	sh->nr_pages = XS_FETCH(r->nr_pages);
	sh->size = XS_FETCH(r->size);
	sh->offset = r->offset;
	sh->volume = r->volume;
	sh->part = r->part;
	sh->pass = r->pass = place_seq(r->place);
	atomic_store_explicit(&sh->result, XS_NOT_ANSWERED, memory_order_relaxed);
	/* release: partner is the acquire in xs_req_mark_part(); a repair that sees the parent sees
	 * that there is no answer yet */
	atomic_store_explicit(&sh->parent, r->parent, memory_order_release);
	write_pages(port->seg, r);
	write_forward(port, r, (uint32_t)to);
	XKILL(REQ_FILLED);
	demote_header(sh);
	give_offer(port, r, (uint32_t)to, true);
	return 0;
}

int xseg_req_forward(struct xport *port, struct xreq *r, uint32_t peer)
{
	int to = xs_route_port(port->seg, peer, r->hash);

	if (r->state != XSEG_REQ_AT)
		return -EINVAL;
	if (to < 0)
		return to;
	if (!hold_check(port->seg, r))
		return -EINVAL;
	write_forward(port, r, (uint32_t)to);
	XKILL(REQ_ADDRESSED);
	r->sent_on = r->place;
	give_offer(port, r, (uint32_t)to, false);
	return 0;
}

void xseg_req_start(struct xport *port, struct xreq *r)
{
	hold_move(port->seg, r, XSEG_REQ_STARTED);
	XKILL(REQ_STARTED);
}

void xseg_req_apply(struct xport *port, struct xreq *r)
{
	hold_move(port->seg, r, XSEG_REQ_APPLIED);
	XKILL(REQ_APPLIED);
}

void xseg_req_answer(struct xport *port, struct xreq *r, int64_t result)
{
	uint32_t origin = r->origin, index = r->index;
	uint64_t old, place;

	if (is_legal(r->state, XSEG_REQ_ANSWERED) && !hold_check(port->seg, r)) {
		set_holder(r, NULL);
		return;
	}
	if (!view_move(r, XSEG_REQ_ANSWERED, place_word(XSEG_REQ_FREE, origin, 0, 0), &old)) {
		xs_count_bad(port->seg);
		return;
	}
	place = r->place;
	r->result = result;
	if (r->nr_lent == 0 && !xs_req_lists_gifts(r))
		xs_req_loans_drop(port->seg, r);	/* what a predecessor may have lent */
	set_holder(r, NULL);
	/* no result is one of the two that say that there is none: its origin refuses it */
	atomic_store_explicit(&port->seg->reqs[index].result,
		result > XS_IDLE ? result : XS_IDLE + 1, memory_order_relaxed);
	XKILL(RESULT_WRITTEN);
	if (place_store(port->seg, index, old, place)) {
		XKILL(REQ_ANSWERED);
		demote_header(&port->seg->reqs[index]);
		xs_offer_answer(port, origin, offer_word(index, place));
	} else {
		/* written over in this moment: its origin finds the result */
		xs_count_bad(port->seg);
		xs_port_alert(port->seg, origin);
	}
}
