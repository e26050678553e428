/* queue - I/Os of a queue: the parts that they are sent in, and the handling of the answers.
 *
 * A queue has `depth` slots, each with a request that stays allocated and room for its copied data.
 * An I/O is sent in parts, each in a slot, in order, as slots are free. I/Os wait for slots in a
 * FIFO, and only the first of it may have some parts sent and others not. A part is as much as one
 * request may have, up to a page's end; volumed splits by objects.
 *
 *   slot   to     when                                                  by
 *   IDLE   OUT    a part is sent                                        part_send
 *   IDLE   KEPT   its pages are to be written by the caller             xseg_io_prepare
 *   IDLE   KEPT   a read found its pages where a cache has them, and    part_find
 *                 the caller reads them
 *   KEPT   OUT    they have been                                        part_send
 *   KEPT   IDLE   the caller needs them no more                         xseg_io_release
 *   OUT    OUT    a copy has been read: now it is written; the store    part_end
 *                 knows no zeroes: they are sent as data
 *   OUT    KEPT   a read was answered, and the caller reads its pages   part_end
 *   OUT    IDLE   it was answered                                       part_end
 *   OUT    LOST   nobody will answer: the request is out for good       queue_lose
 *
 *   I/O    to     when                                                  by
 *   REST   OUT    it is submitted                                       io_begin
 *   REST   KEPT   the caller is to write its pages                      xseg_io_prepare
 *   KEPT   OUT    it has, and the I/O is submitted                      io_begin
 *   KEPT   REST   the caller needs its pages no more                    xseg_io_release
 *   OUT    BACK   it is done, and in the list of those                  io_back
 *   OUT    REST   xseg_queue_run() would wait for it for ever           io_home
 *   BACK   REST   the caller has it                                     io_home
 *   BACK   LENT   the same, and reads its pages                         io_home
 *   LENT   REST   the caller needs them no more                         xseg_io_release
 *
 * An I/O that is KEPT or LENT, or will be when the caller has it, has a slot that is KEPT
 * (own.slot).
 *
 * Invariants
 *   V1  An I/O comes back once: all of its parts sent, or one failed, and none out.
 *   V2  After a part has failed no further part is sent; the I/O's result is the first error.
 *   V3  A slot that is LOST is never used again, nor are pages that it lists: a successor of
 *       volumed may do the request yet.
 *   V4  A read's loans are let go of before the slot is IDLE. Pages lent for writes stay with the
 *       slot until it is used for something else, or the queue has nothing to do
 *       (drop_gifts()).
 *
 * Contract: the queue's thread. Nothing here sleeps or allocates. A system call is made only to
 * wake a thread.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "xseg/client/queue.h"
#include "xtypes/xstate.h"

/* In struct xseg_io; REST, KEPT, LENT: it is the caller's, from KEPT on with a slot. */
enum io_state { IO_REST, IO_OUT, IO_BACK, IO_KEPT, IO_LENT, IO_NR_STATES };

/* ---- slots ------------------------------------------------------------------------------- */

#define TO(s) (1u << SLOT_##s)
static const struct xstates slot_states = {
	.what = "slot of a queue",
	XSTATE(SLOT_, IDLE, TO(OUT) | TO(KEPT)),
	XSTATE(SLOT_, KEPT, TO(OUT) | TO(IDLE)),
	XSTATE(SLOT_, OUT, TO(OUT) | TO(KEPT) | TO(IDLE) | TO(LOST)),
};
#undef TO

static void slot_set(struct xseg_queue *q, struct slot *s, enum slot_state state)
{
	xstate_check(&slot_states, s->state, state);
	q->client.nr_sent += (state == SLOT_OUT) - (s->state == SLOT_OUT);
	s->state = state;
}

static struct slot *slot_take(struct xseg_queue *q, bool gives)
{
	if (q->nr_gifted && (gives || !q->nr_plain))
		return q->idle[q->depth - q->nr_gifted--];
	return q->nr_plain ? q->idle[--q->nr_plain] : NULL;
}

/* Of what it was lent it keeps what may be written. */
static void slot_put(struct xseg_queue *q, struct slot *s)
{
	s->io = NULL;
	if (xseg_req_gives(s->r) && xseg_req_has_gift(s->r)) {
		q->idle[q->depth - ++q->nr_gifted] = s;
		return;
	}
	if (s->r->nr_lent)
		xseg_req_drop_loans(q->client.port, s->r);
	q->idle[q->nr_plain++] = s;
}

static void drop_gifts(struct xseg_queue *q)
{
	while (q->nr_gifted) {
		struct slot *s = q->idle[q->depth - q->nr_gifted--];

		xseg_req_drop_loans(q->client.port, s->r);
		q->idle[q->nr_plain++] = s;
	}
}

/* ---- I/Os, and when they are over -------------------------------------------------------- */

#define TO(s) (1u << IO_##s)
static const struct xstates io_states = {
	.what = "I/O of a queue",
	XSTATE(IO_, REST, TO(OUT) | TO(KEPT)),
	XSTATE(IO_, OUT, TO(BACK) | TO(REST)),
	XSTATE(IO_, BACK, TO(REST) | TO(LENT)),
	XSTATE(IO_, KEPT, TO(OUT) | TO(REST)),
	XSTATE(IO_, LENT, TO(REST)),
};

static void io_set(struct xseg_io *io, enum io_state state)
{
	xstate_check(&io_states, io->state, state);
	io->state = state;
}

static void io_back(struct xseg_queue *q, struct xseg_io *io)
{
	if (io->result >= 0 && io->op != XSEG_OP_INFO)
		io->result = (int64_t)io->size;
	io_set(io, IO_BACK);
	io_list_push(&q->back, io);
}

/* V1. The first of those that wait may have failed before all of it was begun. */
static void io_look(struct xseg_queue *q, struct xseg_io *io)
{
	if (io->own.out || (io->result >= 0 && io->own.begun < io->size))
		return;
	if (q->waiting.first == io)
		io_list_pop(&q->waiting);
	io_back(q, io);
}

/* All that is out, or waits, comes back with -ENOTCONN. */
static void queue_lose(struct xseg_queue *q)
{
	struct xseg_io *io;

	q->client.lost = true;
	for (uint32_t i = 0; i < q->depth; i++) {
		struct slot *s = &q->slots[i];

		if (s->state != SLOT_OUT)
			continue;
		io = s->io;
		s->io = NULL;
		slot_set(q, s, SLOT_LOST);
		if (io->result >= 0)
			io->result = -ENOTCONN;
		io->own.out--;
		io_look(q, io);
	}
	while ((io = io_list_pop(&q->waiting))) {
		io->result = -ENOTCONN;
		io_back(q, io);
	}
}

/* ---- sending ----------------------------------------------------------------------------- */

/* Sends the slot's request; false: there is no such peer any more. */
static bool part_send(struct xseg_queue *q, struct slot *s)
{
	if (!xs_client_submit(&q->client, s->r))
		return false;
	slot_set(q, s, SLOT_OUT);
	return true;
}

/* A read that needs no request. */
static bool part_find(struct xseg_queue *q, struct slot *s)
{
	struct xseg_io *io = s->io;

	if (!xs_part_find(q, s))
		return false;
	if (io->flags & XSEG_IO_LOAN) {
		slot_set(q, s, SLOT_KEPT);
		io->own.slot = s;
		if (!q->back.first)	/* the caller reads nothing else before it */
			xs_slot_fetch(q, s);
	} else {
		xs_slot_copy_out(q, s);
		slot_put(q, s);
	}
	return true;
}

/* Does parts of what waits, while there are slots. */
static void send_waiting(struct xseg_queue *q)
{
	struct xseg_io *io;
	struct slot *s;
	bool found;

	while ((io = q->waiting.first)) {
		s = slot_take(q, io->flags & XSEG_IO_GIVE);
		if (!s)
			return;
		xs_part_fill(q, s, io);
		found = part_find(q, s);
		if (!found && !part_send(q, s)) {
			slot_put(q, s);
			queue_lose(q);
			return;
		}
		io->own.begun += xs_part_bytes(io, s);
		io->own.out += !found;
		if (io->own.begun == io->size)
			io_list_pop(&q->waiting);
		if (found)
			io_look(q, io);
	}
}

/* ---- answers ----------------------------------------------------------------------------- */

static int error_of(const struct slot *s)
{
	int64_t result = s->r->result;

	if (result == -ENOENT)
		return s->r->op == XSEG_OP_INFO ? 0 : -ESTALE;
	if (result < 0)
		return (int)result;
	return s->r->nr_pages && result != s->r->size ? -EIO : 0;
}

/* How far into the range the object reaches; there is none, if the store has not got it. */
static int64_t data_of(const struct xseg_queue *q, const struct xseg_io *io, int64_t object_bytes)
{
	uint64_t in = io->offset & (((uint64_t)1 << q->v->object_shift) - 1);
	uint64_t end = object_bytes > 0 ? (uint64_t)object_bytes : 0;

	return end <= in ? 0 : (int64_t)(end - in < io->size ? end - in : io->size);
}

/* False: more was to be sent for it, and there is no such peer any more. The caller loses the queue
 * when no answer is left in his hands: a slot that is LOST has no I/O. */
static bool part_end(struct xseg_queue *q, struct slot *s)
{
	struct xseg_io *io = s->io;
	int error = error_of(s);
	bool again = xs_part_again(q, s, error);

	if (again && part_send(q, s))
		return true;
	if (again)
		error = -ENOTCONN;
	if (error == 0)
		xs_part_learn(q, s);
	if (error == 0 && io->flags & XSEG_IO_LOAN) {
		slot_set(q, s, SLOT_KEPT);
		io->own.slot = s;
	} else {
		if (error == 0 && io->op == XSEG_OP_READ && !s->direct)
			xs_slot_copy_out(q, s);
		slot_set(q, s, SLOT_IDLE);
		slot_put(q, s);
	}
	if (error && io->result >= 0)
		io->result = error;
	else if (io->op == XSEG_OP_INFO && !error)
		io->result = data_of(q, io, s->r->result);
	io->own.out--;
	io_look(q, io);
	return !again;
}

static bool end_one(struct xs_client *c, struct xreq *r)
{
	return part_end((struct xseg_queue *)c, r->cookie);
}

static void send_more(struct xs_client *c)
{
	struct xseg_queue *q = (struct xseg_queue *)c;

	if (q->waiting.first)
		send_waiting(q);
}

static uint32_t advance(struct xs_client *c)
{
	return xs_client_take(c, NULL, end_one, send_more);
}

static void lose(struct xs_client *c)
{
	queue_lose((struct xseg_queue *)c);
}

static void rest(struct xs_client *c)
{
	drop_gifts((struct xseg_queue *)c);
}

static bool has_back(const struct xs_client *c)
{
	return ((const struct xseg_queue *)c)->back.first;
}

const struct xs_client_class xs_queue_class = {
	.advance = advance, .lose = lose, .rest = rest, .has_back = has_back
};

/* ---- the caller's ------------------------------------------------------------------------ */

static bool has_range(const struct xseg_io *io)
{
	return io->op != XSEG_OP_FLUSH;
}

/* Pages that the caller sees: one request, of room that is copied into by others. */
static bool is_seen(const struct xseg_io *io)
{
	return io->flags & XSEG_IO_LOAN || (io->flags & XSEG_IO_GIVE && !io->buf && !io->iov);
}

static int check_flags(const struct xseg_queue *q, const struct xseg_io *io)
{
	static const int64_t may[XSEG_NR_OPS] = {
#define XSEG_OP_ROW(op, word, range, changes, data, cut, flags) [XSEG_OP_##op] = flags,
#include "xseg/ops.def"
	};

	if ((unsigned)io->op >= XSEG_NR_OPS || may[io->op] < 0 || io->flags & ~may[io->op])
		return -EINVAL;
	if (io->flags & XSEG_IO_LOAN && (io->buf || io->iov))
		return -EINVAL;
	if (is_seen(io))
		return io->size && io->offset % XSEG_PAGE_SIZE + io->size <= q->copy_bytes
			       ? 0
			       : -EINVAL;
	return (io->op == XSEG_OP_READ || io->op == XSEG_OP_WRITE) && !xs_io_fits(io) ? -EINVAL : 0;
}

static int check_range(const struct xseg_queue *q, uint64_t offset, uint64_t size)
{
	uint64_t end = atomic_load_explicit(&q->v->size_bytes, memory_order_relaxed);

	if ((offset | size) % XSEG_SECTOR)
		return -EINVAL;
	return offset > end || size > end - offset ? -ENXIO : 0;
}

static int check(const struct xseg_queue *q, const struct xseg_io *io)
{
	int rc = check_flags(q, io);

	if (rc || !has_range(io))
		return rc || io->size == 0 ? rc : -EINVAL;
	rc = check_range(q, io->offset, io->size);
	if (!rc && io->op == XSEG_OP_INFO && io->size &&
		(io->offset ^ (io->offset + io->size - 1)) >> q->v->object_shift)
		rc = -EINVAL;
	if (rc || io->op != XSEG_OP_COPY)
		return rc;
	rc = check_range(q, io->from, io->size);
	if (!rc && io->from < io->offset + io->size && io->offset < io->from + io->size)
		rc = -EINVAL;
	return rc;
}

/* Neither out already nor refused. */
static int admit(const struct xseg_queue *q, const struct xseg_io *io)
{
	if (q->client.lost || xs_is_forked(q->client.seg))
		return -ENOTCONN;
	return io->state != IO_REST ? -EBUSY : check(q, io);
}

static void io_begin(struct xseg_queue *q, struct xseg_io *io)
{
	memset(&io->own, 0, sizeof(io->own));
	io->result = 0;
	io_set(io, IO_OUT);
	q->nr_ios++;
}

/* A slot of this queue's. It is not, if a copy of the I/O was sent or released. */
static bool is_kept(const struct xseg_queue *q, const struct slot *s)
{
	return s >= q->slots && s < q->slots + q->depth && s->state == SLOT_KEPT;
}

/* What was prepared is in its slot, and its data is where it was to be written for that range. */
static int submit_prepared(struct xseg_queue *q, struct xseg_io *io)
{
	struct slot *s = io->own.slot;

	if (q->client.lost || xs_is_forked(q->client.seg))
		return -ENOTCONN;
	if (!is_kept(q, s) || !is_seen(io) ||
		io->flags & ~(XSEG_IO_FUA | XSEG_IO_GIVE | XSEG_IO_ONCE) ||
		io->offset != s->r->offset || io->size != s->r->size)
		return -EINVAL;
	xs_part_fill_gift(q, s, io);		/* FUA may be new */
	if (!part_send(q, s)) {
		queue_lose(q);
		xseg_io_release(q, io);
		return -ENOTCONN;
	}
	io_begin(q, io);
	io->own.begun = io->size;
	io->own.out = 1;
	return 0;
}

int xseg_queue_submit(struct xseg_queue *q, struct xseg_io *io)
{
	int rc;

	if (io->state == IO_KEPT && io->op == XSEG_OP_WRITE)
		return submit_prepared(q, io);
	rc = admit(q, io);
	if (!rc && io->op == XSEG_OP_WRITE && is_seen(io))
		rc = -EINVAL;
	if (rc)
		return rc;
	io_begin(q, io);
	if (has_range(io) && io->size == 0) {
		io_back(q, io);
		return 0;
	}
	io_list_push(&q->waiting, io);
	send_waiting(q);
	return 0;
}

int xseg_io_prepare(struct xseg_queue *q, struct xseg_io *io, struct iovec *piece, uint32_t max)
{
	struct slot *s;
	int rc = admit(q, io);

	if (rc || io->op != XSEG_OP_WRITE || !is_seen(io))
		return rc ? rc : -EINVAL;
	s = slot_take(q, true);
	if (!s)
		return -EAGAIN;
	memset(&io->own, 0, sizeof(io->own));
	xs_part_fill_gift(q, s, io);
	slot_set(q, s, SLOT_KEPT);
	io_set(io, IO_KEPT);
	io->own.slot = s;
	return (int)xseg_io_data(q, io, piece, max);
}

void xseg_io_release(struct xseg_queue *q, struct xseg_io *io)
{
	struct slot *s = io->own.slot;

	if ((io->state != IO_LENT && io->state != IO_KEPT) || !is_kept(q, s))
		return;
	io_set(io, IO_REST);
	io->own.slot = NULL;
	if (xs_is_forked(q->client.seg))
		return;
	slot_set(q, s, SLOT_IDLE);
	slot_put(q, s);
	if (q->client.lost)
		return;
	send_waiting(q);
}

void xseg_queue_kick(struct xseg_queue *q)
{
	if (!q->client.lost && !xs_is_forked(q->client.seg))
		xseg_port_flush(q->client.port);
}

static void io_home(struct xseg_queue *q, struct xseg_io *io)
{
	io_set(io, io->own.slot ? IO_LENT : IO_REST);
	q->nr_ios--;
}

uint32_t xseg_queue_poll(struct xseg_queue *q, struct xseg_io **done, uint32_t max)
{
	uint32_t n = 0;

	if (!xs_is_forked(q->client.seg)) {
		xs_watch_disarm(&q->client);
		if (advance(&q->client) == 0 && q->client.nr_sent == 0)
			drop_gifts(q);
	} else if (!q->client.lost) {
		queue_lose(q);			/* what is out is the parent's to be answered */
	}
	while (n < max && q->back.first) {
		done[n] = io_list_pop(&q->back);
		io_home(q, done[n++]);
	}
	return n;
}

uint32_t xseg_queue_wait(
	struct xseg_queue *q, struct xseg_io **done, uint32_t max, uint64_t timeout_ns)
{
	uint32_t n = xseg_queue_poll(q, done, max);

	if (n || xs_is_forked(q->client.seg))
		return n;
	xs_client_wait(&q->client, timeout_ns);
	return xseg_queue_poll(q, done, max);
}

static void io_list_remove(struct io_list *l, struct xseg_io *io)
{
	struct xseg_io **at = &l->first;

	while (*at && *at != io)
		at = &(*at)->own.next;
	assert(*at == io);
	*at = io->own.next;
	if (!*at)
		l->last = at;
}

int64_t xseg_queue_run(struct xseg_queue *q, struct xseg_io *io)
{
	int rc = xseg_queue_submit(q, io);

	if (rc)
		return rc;
	while (io->state != IO_BACK && q->client.nr_sent)
		xs_client_sleep(&q->client, LOOK_NS);
	if (io->state != IO_BACK)
		io->result = -EDEADLK;
	io_list_remove(io->state == IO_BACK ? &q->back : &q->waiting, io);
	io_home(q, io);
	return io->result;
}

uint32_t xseg_queue_out(const struct xseg_queue *q)
{
	return q->nr_ios;
}

int xseg_queue_server_cpu(const struct xseg_queue *q)
{
	return xs_client_server_cpu(&q->client);
}

int xseg_queue_fd(struct xseg_queue *q)
{
	return xs_client_fd(&q->client);
}

int xseg_queue_arm(struct xseg_queue *q)
{
	return xs_client_arm(&q->client);
}
