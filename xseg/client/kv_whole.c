/* kv_whole - a PUT or a GET of a whole large value, by operations of a stream.
 *
 *   state   to      when                                              what is out then
 *   NEW     ASKED   at once                                           BEGIN; OPEN
 *   ASKED   DATA    kvd has a handle, or the value's length is known  PARTs; PIECEs
 *   ASKED   DONE    it is refused, or the key is not there            nothing
 *   DATA    COMMIT  all parts are answered                            COMMIT
 *   DATA    LEAVE   all pieces are here, or one has failed            ABORT; CLOSE
 *   COMMIT  DONE    the value is put                                  nothing
 *   COMMIT  LEAVE   it is not                                         ABORT
 *   LEAVE   NEW     kvd had forgotten the stream, or lost a part      BEGIN; OPEN
 *   LEAVE   DONE    else                                              nothing
 *
 * Invariants
 *   H1  The program's operation is back when no operation of its stream is out.
 *   H2  After TRIES times the error that made it begin anew is the result.
 *
 * Contract: the queue's thread. Nothing here sends: operations are added to those that wait. One
 * structure is allocated for each PUT or GET, and freed when that is back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xseg/client/kv_inside.h"
#include "xtypes/xstate.h"

#define TRIES 4u
#define PARTS 4u				/* out at a time, if the queue has the rooms */

enum whole_state { WHOLE_NEW, WHOLE_ASKED, WHOLE_DATA, WHOLE_COMMIT, WHOLE_LEAVE, WHOLE_DONE,
	WHOLE_NR_STATES };

#define TO(s) (1u << WHOLE_##s)
static const struct xstates whole_states = {
	.what = "put or get of a whole large value",
	XSTATE(WHOLE_, NEW, TO(ASKED)),
	XSTATE(WHOLE_, ASKED, TO(DATA) | TO(DONE)),
	XSTATE(WHOLE_, DATA, TO(COMMIT) | TO(LEAVE)),
	XSTATE(WHOLE_, COMMIT, TO(LEAVE) | TO(DONE)),
	XSTATE(WHOLE_, LEAVE, TO(NEW) | TO(DONE)),
};
#undef TO

struct kv_whole {
	struct kv_whole *next, **prev;		/* of the queue */
	enum whole_state state;
	bool inside;				/* go_on() is on the stack */
	struct xseg_kv_io *io;			/* the program's */
	struct xseg_kv_stream *stream;
	struct xseg_kv_io turn;			/* BEGIN, OPEN, COMMIT, ABORT, CLOSE */
	struct xseg_kv_io part[PARTS];
	uint32_t out, tries;
	uint64_t at, end;			/* of the data: the next piece */
	int64_t error, result;
};

static void whole_set(struct kv_whole *w, enum whole_state state)
{
	xstate_check(&whole_states, w->state, state);
	w->state = state;
}

static bool puts_it(const struct kv_whole *w)
{
	return w->io->op == XSEG_KV_PUT;
}

/* ---- operations of the stream ------------------------------------------------------------ */

static void push(struct xseg_kv_queue *q, struct kv_whole *w, struct xseg_kv_io *io,
	enum xseg_kv_op op, uint32_t flags)
{
	io->op = op;
	io->flags = w->io->flags & flags;
	io->stream = w->stream;
	io->own.whole = w;
	w->out++;
	xs_kv_push(q, io);
}

/* With the program's key and what it says of the value. */
static void push_turn(struct xseg_kv_queue *q, struct kv_whole *w, enum xseg_kv_op op)
{
	w->turn.item = w->io->item;
	push(q, w, &w->turn, op,
		op == XSEG_KV_COMMIT ? XSEG_KV_FORCE : op == XSEG_KV_OPEN ? XSEG_KV_ONCE : 0);
}

static struct xseg_kv_io *free_part(struct kv_whole *w)
{
	for (uint32_t i = 0; i < PARTS; i++)
		if (!w->part[i].own.whole)
			return &w->part[i];
	return NULL;
}

/* The next piece, if that may go out now. */
static bool push_part(struct xseg_kv_queue *q, struct kv_whole *w)
{
	uint64_t bytes = w->end - w->at;
	struct xseg_kv_io *io = free_part(w);

	if (!io || w->out >= q->nr_large)
		return false;
	if (bytes > w->stream->piece_bytes)
		bytes = w->stream->piece_bytes;
	io->item = (struct xseg_kv_item){ .value = (uint8_t *)w->io->item.value + w->at,
		.value_bytes = bytes };
	io->offset = w->at;
	w->at += bytes;
	push(q, w, io, puts_it(w) ? XSEG_KV_PART : XSEG_KV_PIECE,
		XSEG_KV_ONCE | (puts_it(w) ? 0 : XSEG_KV_UNCHECKED));
	return true;
}

static void leave(struct xseg_kv_queue *q, struct kv_whole *w)
{
	whole_set(w, WHOLE_LEAVE);
	push_turn(q, w, puts_it(w) ? XSEG_KV_ABORT : XSEG_KV_CLOSE);
}

/* Does what is to be done now. False: an answer has to come first. */
static bool step(struct xseg_kv_queue *q, struct kv_whole *w)
{
	if (w->state == WHOLE_NEW) {
		w->at = w->end = 0;
		w->error = 0;
		whole_set(w, WHOLE_ASKED);
		push_turn(q, w, puts_it(w) ? XSEG_KV_BEGIN : XSEG_KV_OPEN);
		return true;
	}
	if (w->state != WHOLE_DATA)
		return false;
	if (!w->error && w->at < w->end)
		return push_part(q, w);
	if (w->out)
		return false;
	if (w->error || !puts_it(w)) {
		leave(q, w);
	} else {
		whole_set(w, WHOLE_COMMIT);
		push_turn(q, w, XSEG_KV_COMMIT);
	}
	return true;
}

/* ---- their answers ----------------------------------------------------------------------- */

static void asked(struct kv_whole *w, const struct xseg_kv_io *turn)
{
	const struct xseg_kv_item *told = &turn->item;
	struct xseg_kv_item *item = &w->io->item;

	if (turn->result < 0) {
		w->error = turn->result;
		whole_set(w, WHOLE_DONE);
		return;
	}
	w->end = item->value_bytes;
	if (puts_it(w)) {
		w->error = xs_kv_stream_reserve(w->stream, w->end) ? 0 : -ENOMEM;
	} else {
		w->result = turn->result;
		w->end = w->end < (uint64_t)turn->result ? w->end : (uint64_t)turn->result;
		item->version = told->version;
		item->expiry = told->expiry;
		item->client = told->client;
	}
	whole_set(w, WHOLE_DATA);
}

static void committed(struct xseg_kv_queue *q, struct kv_whole *w, const struct xseg_kv_io *turn)
{
	w->error = turn->result;
	if (turn->result == 0 || turn->result == -EEXIST)
		w->io->item.version = turn->item.version;
	if (turn->result)
		leave(q, w);
	else
		whole_set(w, WHOLE_DONE);
}

/* H2 */
static void left(struct kv_whole *w)
{
	bool again = w->error == -ESTALE || (puts_it(w) && w->error == -EIO);

	whole_set(w, again && ++w->tries < TRIES ? WHOLE_NEW : WHOLE_DONE);
}

static void is_back(struct xseg_kv_queue *q, struct kv_whole *w, const struct xseg_kv_io *io)
{
	if (q->client.lost)
		return;
	switch (io->op) {
	case XSEG_KV_BEGIN:
	case XSEG_KV_OPEN:
		asked(w, io);
		break;
	case XSEG_KV_COMMIT:
		committed(q, w, io);
		break;
	case XSEG_KV_ABORT:
	case XSEG_KV_CLOSE:
		left(w);
		break;
	default:
		if (io->result < 0 && !w->error)
			w->error = io->result;
	}
}

/* ---- one of them ------------------------------------------------------------------------- */

void xs_kv_whole_end(struct xseg_kv_queue *q, struct kv_whole *w)
{
	(void)q;
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	xseg_kv_stream_destroy(w->stream);
	free(w);
}

/* H1 */
static void finish(struct xseg_kv_queue *q, struct kv_whole *w)
{
	struct xseg_kv_io *io = w->io;

	io->result = q->client.lost ? -ENOTCONN : w->error ? w->error : w->result;
	if (puts_it(w))
		io->item.result = (int32_t)io->result;
	xs_kv_whole_end(q, w);
	xs_kv_back(q, io);
}

static void go_on(struct xseg_kv_queue *q, struct kv_whole *w)
{
	if (w->inside)
		return;
	w->inside = true;
	while (!q->client.lost && step(q, w))
		;
	w->inside = false;
	if (w->out == 0 && (w->state == WHOLE_DONE || q->client.lost))
		finish(q, w);
}

void xs_kv_whole_go_on(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	struct kv_whole *w = io->own.whole;

	io->own.whole = NULL;
	w->out--;
	is_back(q, w, io);
	go_on(q, w);
}

int xs_kv_whole_begin(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	struct kv_whole *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->stream = xseg_kv_stream_create(q);
	if (!w->stream) {
		free(w);
		return -ENOMEM;
	}
	w->io = io;
	w->prev = &q->wholes;
	w->next = q->wholes;
	if (w->next)
		w->next->prev = &w->next;
	q->wholes = w;
	io->own.whole = w;
	go_on(q, w);
	return 0;
}

void xs_kv_whole_forget(struct xseg_kv_queue *q, struct xseg_kv_io *io)
{
	struct kv_whole *w = io->own.whole;

	xs_kv_unpush(q, &w->turn);
	for (uint32_t i = 0; i < PARTS; i++)
		xs_kv_unpush(q, &w->part[i]);
	io->own.whole = NULL;
	xs_kv_whole_end(q, w);
}
