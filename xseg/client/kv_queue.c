/* kv_queue - operations of a queue of a store: sending them, and the handling of the answers.
 *
 * A queue has `depth` slots, each with a request that stays allocated and a room of memory. An
 * operation has one slot until it is done. Operations wait in a FIFO for a slot, and for one of the
 * queue's large rooms if they do not fit a slot's own. A PUT or GET of a whole large value has no
 * slot: kv_whole.c does it by operations of a stream.
 *
 *   slot   to     when                                                  by
 *   IDLE   OUT    its operation is sent                                 op_send
 *   IDLE   KEPT   the caller is to write a value to its room            xseg_kv_prepare
 *   KEPT   OUT    it has, and the operation is submitted                submit_prepared
 *   OUT    OUT    it has to be asked once more                          op_end
 *   OUT    KEPT   a get was answered, and the caller reads its pages    op_end
 *   OUT    IDLE   it was answered, or needs the large room              op_end
 *   OUT    LOST   nobody will answer: the request is out for good       queue_lose
 *   KEPT   IDLE   the caller needs them no more                         xseg_kv_release
 *
 *   op     to     when                                                  by
 *   REST   OUT    it is submitted                                       xseg_kv_submit
 *   REST   KEPT   the caller is to write its value                      xseg_kv_prepare
 *   KEPT   OUT    it has, and the operation is submitted                submit_prepared
 *   KEPT   REST   it is not to be sent after all                        xseg_kv_release
 *   OUT    BACK   it is done, and in the list of those                  op_back
 *   OUT    REST   xseg_kv_run() would wait for it for ever              op_home
 *   BACK   REST   the caller has it                                     op_home
 *   BACK   LENT   the same, and reads its pages                         op_home
 *   LENT   REST   the caller needs them no more                         xseg_kv_release
 *
 * Invariants
 *   K1  An operation comes back once.
 *   K2  A slot that is LOST is never used again, nor are its pages: a successor of kvd may do the
 *       request yet.
 *   K3  Loans are let go of before the slot is IDLE, and before its request is sent again.
 *   K4  One operation has a large room: that of its `user`. A get of which all pages are lent gives
 *       it back before the caller reads.
 *   K5  An operation of the library's own (kv_whole.c) is no operation of the program's: it is not
 *       counted, and never in the list of those that are back.
 *
 * Contract: the queue's thread. Nothing here sleeps or allocates. A system call is made only to
 * wake a thread.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "xseg/client/kv_inside.h"
#include "xtypes/xstate.h"

enum op_state { OP_REST, OP_OUT, OP_BACK, OP_KEPT, OP_LENT, OP_NR_STATES };

/* ---- lists ------------------------------------------------------------------------------- */

static void list_push(struct kv_list *l, struct xseg_kv_io *io)
{
	io->own.next = NULL;
	*l->last = io;
	l->last = &io->own.next;
}

static void list_push_first(struct kv_list *l, struct xseg_kv_io *io)
{
	io->own.next = l->first;
	if (!l->first)
		l->last = &io->own.next;
	l->first = io;
}

static void list_remove(struct kv_list *l, struct xseg_kv_io *io)
{
	struct xseg_kv_io **at = &l->first;

	while (*at && *at != io)
		at = &(*at)->own.next;
	assert(*at == io);
	*at = io->own.next;
	if (!*at)
		l->last = at;
}

static struct xseg_kv_io *list_pop(struct kv_list *l)
{
	struct xseg_kv_io *io = l->first;

	if (io)
		list_remove(l, io);
	return io;
}

/* ---- slots and operations ---------------------------------------------------------------- */

#define TO(s) (1u << KV_SLOT_##s)
static const struct xstates slot_states = {
	.what = "slot of a queue of a store",
	XSTATE(KV_SLOT_, IDLE, TO(OUT) | TO(KEPT)),
	XSTATE(KV_SLOT_, OUT, TO(OUT) | TO(KEPT) | TO(IDLE) | TO(LOST)),
	XSTATE(KV_SLOT_, KEPT, TO(IDLE) | TO(OUT)),
};
#undef TO

#define TO(s) (1u << OP_##s)
static const struct xstates op_states = {
	.what = "operation of a store",
	XSTATE(OP_, REST, TO(OUT) | TO(KEPT)),
	XSTATE(OP_, OUT, TO(BACK) | TO(REST)),
	XSTATE(OP_, BACK, TO(REST) | TO(LENT)),
	XSTATE(OP_, KEPT, TO(OUT) | TO(REST)),
	XSTATE(OP_, LENT, TO(REST)),
};
#undef TO

static void slot_set(struct xseg_kv_queue *q, struct kv_slot *s, enum kv_slot_state state)
{
	xstate_check(&slot_states, s->state, state);
	q->client.nr_sent += (state == KV_SLOT_OUT) - (s->state == KV_SLOT_OUT);
	s->state = state;
}

static void op_set(struct xseg_kv_io *io, enum op_state state)
{
	xstate_check(&op_states, io->state, state);
	io->state = state;
}

static bool is_inner(const struct xseg_kv_io *io)
{
	return io->own.whole && xs_kv_is_stream(io->op);
}

/* K5 */
static void op_back(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	if (xs_kv_is_stream(io->op))
		xs_kv_stream_is_back(io);
	op_set(io, OP_BACK);
	if (is_inner(io)) {
		op_set(io, OP_REST);
		xs_kv_whole_go_on(q, io);
	} else {
		list_push(&q->back, io);
	}
}

/* K4 */
static void room_put(struct kv_slot *s)
{
	s->room->user = NULL;
	s->room = &s->own;
}

static struct kv_room *large_room(struct xseg_kv_queue *q)
{
	for (uint32_t i = 0; i < q->nr_large; i++)
		if (!q->large[i].user)
			return &q->large[i];
	return NULL;
}

/* A slot with a room of so many pages; NULL: it has to be waited for. */
static struct kv_slot *slot_take(struct xseg_kv_queue *q, uint32_t pages)
{
	struct kv_room *large = pages > q->room_pages ? large_room(q) : NULL;
	struct kv_slot *s;

	if (q->nr_idle == 0 || (pages > q->room_pages && !large))
		return NULL;
	s = q->idle[--q->nr_idle];
	if (large) {
		large->user = s;
		s->room = large;
	}
	return s;
}

/* Of a slot that is not sent. */
static void slot_put(struct xseg_kv_queue *q, struct kv_slot *s)
{
	s->io = NULL;
	if (s->r->nr_lent)
		xseg_req_drop_loans(q->client.port, s->r);
	room_put(s);
	q->idle[q->nr_idle++] = s;
}

/* All that is out, or waits, comes back with -ENOTCONN. */
static void queue_lose(struct xseg_kv_queue *q)
{
	struct xseg_kv_io *io;

	q->client.lost = true;
	for (uint32_t i = 0; i < q->depth; i++) {
		struct kv_slot *s = &q->slots[i];

		if (s->state != KV_SLOT_OUT)
			continue;
		io = s->io;
		s->io = NULL;
		slot_set(q, s, KV_SLOT_LOST);
		io->result = -ENOTCONN;
		op_back(q, io);
	}
	while ((io = list_pop(&q->waiting))) {
		io->result = -ENOTCONN;
		op_back(q, io);
	}
}

/* ---- sending ----------------------------------------------------------------------------- */

/* False: there is no such peer any more. */
static bool op_send(struct xseg_kv_queue *q, struct kv_slot *s)
{
	if (!xs_client_submit(&q->client, s->r))
		return false;
	slot_set(q, s, KV_SLOT_OUT);
	return true;
}

static uint32_t pages_of(const struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	if (io->op == XSEG_KV_FLUSH)
		return 0;
	if (xs_kv_is_query(io))
		return xs_kv_query_pages(q, io);
	return xs_kv_is_stream(io->op) ? xs_kv_stream_pages(io) : xs_kv_change_pages(io);
}

static void fill_flush(const struct xseg_kv_queue *q, struct xreq *r)
{
	r->op = XSEG_OP_FLUSH;
	r->flags = 0;
	r->volume = q->kv->id;
	r->offset = 0;
	r->size = 0;
	r->nr_pages = 0;
	r->hash = 0;
}

static void op_fill(struct xseg_kv_queue *q, struct kv_slot *s, struct xseg_kv_io *io)
{
	s->io = io;
	if (io->op == XSEG_KV_FLUSH)
		fill_flush(q, s->r);
	else if (xs_kv_is_query(io))
		xs_kv_query_fill(q, s, io);
	else if (xs_kv_is_stream(io->op))
		xs_kv_stream_fill(q, s, io);
	else
		xs_kv_change_fill(q, s, io);
}

static void send_waiting(struct xseg_kv_queue *q)
{
	struct xseg_kv_io *io;
	struct kv_slot *s;

	while ((io = q->waiting.first)) {
		s = slot_take(q, pages_of(q, io));
		if (!s)
			return;
		op_fill(q, s, io);
		if (!op_send(q, s)) {
			slot_put(q, s);
			queue_lose(q);
			return;
		}
		list_pop(&q->waiting);
	}
}

/* ---- answers ----------------------------------------------------------------------------- */

static enum kv_step flush_end(const struct kv_slot *s)
{
	s->io->result = s->r->result < 0 ? s->r->result : 0;
	return KV_DONE;
}

static enum kv_step answer_end(struct xseg_kv_queue *q, struct kv_slot *s)
{
	if (s->io->op == XSEG_KV_FLUSH)
		return flush_end(s);
	if (xs_kv_is_query(s->io))
		return xs_kv_query_end(q, s);
	return xs_kv_is_stream(s->io->op) ? xs_kv_stream_end(q, s) : xs_kv_change_end(q, s);
}

static bool all_is_lent(const struct kv_slot *s)
{
	uint32_t i = 0;

	while (i < s->io->own.asked && i < s->r->nr_lent &&
		s->r->lent[i] & (XSEG_LENT_PAGE | XSEG_LENT_ZEROES))
		i++;
	return i == s->io->own.asked;
}

static void op_done(struct xseg_kv_queue *q, struct kv_slot *s)
{
	struct xseg_kv_io *io = s->io;

	if (io->op == XSEG_KV_GET && io->flags & XSEG_KV_LOAN && io->result >= 0) {
		slot_set(q, s, KV_SLOT_KEPT);
		io->own.slot = s;
		if (all_is_lent(s))
			room_put(s);
	} else {
		slot_set(q, s, KV_SLOT_IDLE);
		slot_put(q, s);
	}
	op_back(q, io);
}

/* A GET has found a large value. */
static void op_whole(struct xseg_kv_queue *q, struct kv_slot *s)
{
	struct xseg_kv_io *io = s->io;
	int rc;

	slot_set(q, s, KV_SLOT_IDLE);
	slot_put(q, s);
	rc = xs_kv_whole_begin(q, io);
	if (!rc)
		return;
	io->result = rc;
	op_back(q, io);
}

/* False: it was to be sent again, and there is no such peer any more. The caller loses the queue
 * when no answer is left in its hands: a slot that is LOST has no operation. */
static bool op_end(struct xseg_kv_queue *q, struct kv_slot *s)
{
	struct xseg_kv_io *io = s->io;

	switch (answer_end(q, s)) {
	case KV_AGAIN:
		if (s->r->nr_lent)
			xseg_req_drop_loans(q->client.port, s->r);
		op_fill(q, s, io);
		if (op_send(q, s))
			return true;
		io->result = -ENOTCONN;
		op_done(q, s);
		return false;
	case KV_WAIT:
		slot_set(q, s, KV_SLOT_IDLE);
		slot_put(q, s);
		list_push_first(&q->waiting, io);
		return true;
	case KV_WHOLE:
		op_whole(q, s);
		return true;
	default:
		op_done(q, s);
		return true;
	}
}

/* Their first lines are on their way together. */
static void see_ahead(struct xs_client *c, struct xreq *const *r, uint32_t nr)
{
	struct xseg_kv_queue *q = (struct xseg_kv_queue *)c;
	const struct kv_slot *s;

	for (uint32_t i = 0; i < nr; i++) {
		s = r[i]->cookie;
		if (s->io->op == XSEG_KV_GET)
			xs_kv_get_prefetch(q, s, false);
	}
	q->ahead = r;
	q->nr_ahead = nr;
}

/* All lines of the next one come while this one is looked at. */
static bool end_one(struct xs_client *c, struct xreq *r)
{
	struct xseg_kv_queue *q = (struct xseg_kv_queue *)c;
	const struct kv_slot *next;

	if (--q->nr_ahead) {
		next = (*++q->ahead)->cookie;
		if (next->io->op == XSEG_KV_GET)
			xs_kv_get_prefetch(q, next, true);
	}
	return op_end(q, r->cookie);
}

static void send_more(struct xs_client *c)
{
	struct xseg_kv_queue *q = (struct xseg_kv_queue *)c;

	if (q->waiting.first)
		send_waiting(q);
}

static uint32_t advance(struct xs_client *c)
{
	return xs_client_take(c, see_ahead, end_one, send_more);
}

static void lose(struct xs_client *c)
{
	queue_lose((struct xseg_kv_queue *)c);
}

static void rest(struct xs_client *c)
{
	(void)c;				/* a store lends nothing for later */
}

static bool has_back(const struct xs_client *c)
{
	return ((const struct xseg_kv_queue *)c)->back.first;
}

const struct xs_client_class xs_kv_class = {
	.advance = advance, .lose = lose, .rest = rest, .has_back = has_back
};

/* ---- the caller's ------------------------------------------------------------------------ */

static int check(const struct xseg_kv_queue *q, const struct xseg_kv_io *io)
{
	if (q->client.lost || xs_is_forked(q->client.seg))
		return -ENOTCONN;
	if (io->state != OP_REST)
		return -EBUSY;
	if ((unsigned)io->op >= XSEG_KV_NR_OPS)
		return -EINVAL;
	if (io->op == XSEG_KV_FLUSH)
		return io->flags ? -EINVAL : 0;
	if (xs_kv_is_stream(io->op))
		return xs_kv_stream_check(q, io);
	return io->op <= XSEG_KV_BACKUP ? xs_kv_query_check(q->kv, io)
					: xs_kv_change_check(q->kv, io);
}

void xs_kv_push(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	struct kv_whole *whole = io->own.whole;

	memset(&io->own, 0, sizeof(io->own));
	io->own.whole = whole;
	io->result = 0;
	op_set(io, OP_OUT);
	if (xs_kv_is_stream(io->op))
		xs_kv_stream_goes(io);
	if (xs_kv_is_stream(io->op) && xs_kv_stream_at_once(io))
		op_back(q, io);
	else
		list_push(&q->waiting, io);
}

void xs_kv_unpush(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	if (io->state != OP_OUT)
		return;
	list_remove(&q->waiting, io);
	op_set(io, OP_REST);
}

void xs_kv_back(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	io->own.whole = NULL;
	op_back(q, io);
}

static bool is_whole(const struct xseg_kv_queue *q, const struct xseg_kv_io *io)
{
	return io->op == XSEG_KV_PUT &&
	       xseg_kv_is_large(q->kv, io->item.key_bytes, io->item.value_bytes);
}

/* ---- values that the caller writes where they are sent from ---- */

/* As it will be when the value is there. */
static int check_prepared(const struct xseg_kv_queue *q, const struct xseg_kv_io *io)
{
	struct xseg_kv_io full = *io;
	uint8_t there;

	if ((io->op != XSEG_KV_PUT && io->op != XSEG_KV_PART) || !(io->flags & XSEG_KV_GIVE) ||
		io->item.value || io->item.value_bytes == 0)
		return -EINVAL;
	full.state = OP_REST;
	full.item.value = &there;
	return check(q, &full);
}

/* A slot of this queue's. It is not, if a copy of the operation was sent or released. */
static bool is_kept(const struct xseg_kv_queue *q, const struct kv_slot *s)
{
	return s >= q->slots && s < q->slots + q->depth && s->state == KV_SLOT_KEPT;
}

static bool is_same(const struct xseg_kv_io *io, const struct xseg_kv_io *prepared)
{
	return io->op == prepared->op && io->item.value_bytes <= prepared->item.value_bytes &&
	       (io->op == XSEG_KV_PUT ? io->item.key_bytes == prepared->item.key_bytes
				      : io->stream == prepared->stream &&
						io->offset == prepared->offset);
}

static int submit_prepared(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	struct kv_slot *s = io->own.slot;
	int rc;

	if (q->client.lost || xs_is_forked(q->client.seg))
		return -ENOTCONN;
	if (!is_kept(q, s) || !is_same(io, &s->prepared))
		return -EINVAL;
	rc = check_prepared(q, io);
	if (rc)
		return rc;
	memset(&io->own, 0, sizeof(io->own));
	io->result = 0;
	op_fill(q, s, io);
	if (!op_send(q, s)) {
		io->own.slot = s;
		queue_lose(q);
		xseg_kv_release(q, io);
		return -ENOTCONN;
	}
	op_set(io, OP_OUT);
	if (xs_kv_is_stream(io->op))
		xs_kv_stream_goes(io);
	q->nr_ios++;
	return 0;
}

int xseg_kv_prepare(struct xseg_kv_queue *q, struct xseg_kv_io *io, struct iovec *piece,
	uint32_t max)
{
	uint8_t key = 0;
	struct xseg_kv_io full = *io;
	struct kv_slot *s;
	int rc;

	if (io->state != OP_REST)
		return -EBUSY;
	if (!full.item.key)
		full.item.key = &key;
	rc = check_prepared(q, &full);
	if (rc)
		return rc;
	if (is_whole(q, io))
		return -EFBIG;
	s = slot_take(q, pages_of(q, io));
	if (!s)
		return -EAGAIN;
	s->io = io;
	s->prepared = *io;
	s->value_at = io->op == XSEG_KV_PUT ? xs_kv_change_value_at(io) : 0;
	s->value_bytes = (uint32_t)io->item.value_bytes;
	slot_set(q, s, KV_SLOT_KEPT);
	op_set(io, OP_KEPT);
	memset(&io->own, 0, sizeof(io->own));
	io->own.slot = s;
	if (max)
		*piece = (struct iovec){ s->room->mem + s->value_at, s->value_bytes };
	return max ? 1 : 0;
}

int xseg_kv_submit(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	int rc;

	if (io->state == OP_KEPT)
		return submit_prepared(q, io);
	rc = check(q, io);
	if (rc)
		return rc;
	memset(&io->own, 0, sizeof(io->own));
	if (is_whole(q, io)) {
		rc = xs_kv_whole_begin(q, io);
		if (rc)
			return rc;
		op_set(io, OP_OUT);
	} else {
		xs_kv_push(q, io);
	}
	q->nr_ios++;
	send_waiting(q);
	return 0;
}

void xseg_kv_release(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	struct kv_slot *s = io->own.slot;

	if ((io->state != OP_LENT && io->state != OP_KEPT) || !is_kept(q, s))
		return;
	op_set(io, OP_REST);
	io->own.slot = NULL;
	if (xs_is_forked(q->client.seg))
		return;
	slot_set(q, s, KV_SLOT_IDLE);
	slot_put(q, s);
	if (!q->client.lost)
		send_waiting(q);
}

void xseg_kv_kick(struct xseg_kv_queue *q)
{
	if (!q->client.lost && !xs_is_forked(q->client.seg))
		xseg_port_flush(q->client.port);
}

static void op_home(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	op_set(io, io->own.slot ? OP_LENT : OP_REST);
	q->nr_ios--;
}

uint32_t xseg_kv_poll(struct xseg_kv_queue *q, struct xseg_kv_io **done, uint32_t max)
{
	uint32_t n = 0;

	if (!xs_is_forked(q->client.seg)) {
		xs_watch_disarm(&q->client);
		advance(&q->client);
	} else if (!q->client.lost) {
		queue_lose(q);			/* what is out is the parent's to be answered */
	}
	while (n < max && q->back.first) {
		done[n] = list_pop(&q->back);
		op_home(q, done[n++]);
	}
	return n;
}

uint32_t xseg_kv_wait(
	struct xseg_kv_queue *q, struct xseg_kv_io **done, uint32_t max, uint64_t timeout_ns)
{
	uint32_t n = xseg_kv_poll(q, done, max);

	if (n || xs_is_forked(q->client.seg))
		return n;
	xs_client_wait(&q->client, timeout_ns);
	return xseg_kv_poll(q, done, max);
}

int64_t xs_kv_wait_for(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	while (io->state != OP_BACK && q->client.nr_sent)
		xs_client_sleep(&q->client, LOOK_NS);
	if (io->state == OP_BACK) {
		list_remove(&q->back, io);
	} else {
		io->result = -EDEADLK;
		if (io->own.whole)
			xs_kv_whole_forget(q, io);
		else
			list_remove(&q->waiting, io);
		if (xs_kv_is_stream(io->op))
			xs_kv_stream_is_back(io);
	}
	op_home(q, io);
	return io->result;
}

int64_t xseg_kv_run(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	int rc = xseg_kv_submit(q, io);

	return rc ? rc : xs_kv_wait_for(q, io);
}

uint32_t xseg_kv_out(const struct xseg_kv_queue *q)
{
	return q->nr_ios;
}

int xseg_kv_fd(struct xseg_kv_queue *q)
{
	return xs_client_fd(&q->client);
}

int xseg_kv_arm(struct xseg_kv_queue *q)
{
	return xs_client_arm(&q->client);
}
