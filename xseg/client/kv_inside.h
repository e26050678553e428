/* kv_inside - the declarations that the files of stores of values share; nobody else includes it.
 *
 *   kv.c         which store: opening, asking, closing
 *   kv_queue.c   operations: sending them, and the handling of answers
 *   kv_life.c    making and ending queues
 *   kv_change.c  the request of a change, and its outcome
 *   kv_query.c   the request of a query, and what the answer to a get holds
 *   kv_scan.c    what the answers to EXISTS, SCAN and BACKUP hold
 *   kv_guess.c   how many pages a get asks for
 *   kv_stream.c  large values in pieces: the requests of a stream, and their answers
 *   kv_whole.c   PUT and GET of a whole large value, by operations of a stream
 *   kv_easy.c    one operation at a time
 *   kv_calls.c   streams by calls that wait
 *   client.h     what volumes have as well
 *   kv_wire.h    the form of requests and answers, which is also kvd's
 *
 * Contract: struct xseg_kv is shared by the threads of the process, and does not change after it
 * was opened but for its count of references. struct xseg_kv_queue is used by one thread at a time.
 */
#ifndef XSEG_KV_INSIDE_H
#define XSEG_KV_INSIDE_H

#include "xseg/client/client.h"
#include "xseg/kv.h"
#include "xseg/kv_wire.h"

struct xseg_kv {
	struct xs_server server;		/* its kvd */
	uint32_t id;				/* of the log */
	uint8_t uuid[16];
	uint64_t record_max, value_max, piece_bytes;
	_Atomic uint32_t refs;			/* the opener's, and one for each queue */
};

struct kv_slot;
struct kv_whole;
struct xrecord;

/* Memory of the queue's for one operation: `pages` of them, as one piece. */
struct kv_room {
	uint8_t *mem;
	const uint32_t *page;
	uint32_t pages;
	const struct kv_slot *user;		/* of a large one; NULL: it is free */
};

/* A request of the queue's. See kv_queue.c for its states. */
enum kv_slot_state { KV_SLOT_IDLE, KV_SLOT_OUT, KV_SLOT_KEPT, KV_SLOT_LOST, KV_SLOT_NR_STATES };

struct kv_slot {
	enum kv_slot_state state;
	struct xreq *r;
	struct kv_room own;
	struct kv_room *room;			/* the slot's own, or a large one of the queue's */
	struct xseg_kv_io *io;			/* not IDLE, LOST: the operation */
	struct xseg_kv_io prepared;		/* KEPT: what the room was taken for */
	uint32_t value_at, value_bytes;		/* KEPT: in the pages of the answer, or the room */
};

/* ---- kv_guess.c ---- */

#define KV_GUESS_KEYS	 1024u			/* keys whose size is known; a power of two */
#define KV_GUESS_CLASSES 40u

struct kv_guess {
	uint16_t known[KV_GUESS_KEYS];		/* pages; 0: not known */
	uint16_t check[KV_GUESS_KEYS];		/* bits of the hash */
	uint32_t seen[KV_GUESS_CLASSES];	/* how many of each class of sizes */
	uint32_t nr, common;			/* common: pages that most gets need */
};

/* How many pages to ask for. */
uint32_t xs_kv_guess(const struct kv_guess *g, uint64_t hash);
/* The record of that key took so many. */
void xs_kv_learn(struct kv_guess *g, uint64_t hash, uint32_t pages);

/* ---- queues ---- */

struct kv_list {
	struct xseg_kv_io *first, **last;
};

struct xseg_kv_queue {
	struct xs_client client;
	struct xseg_kv *kv;
	uint32_t depth, room_pages;
	struct kv_slot *slots, **idle;
	uint32_t nr_idle, nr_ios, nr_large;
	struct kv_room *large;
	struct kv_list waiting, back;
	struct kv_whole *wholes;		/* under way */
	struct kv_guess guess;
	struct xreq *const *ahead;		/* answers in hand: the one that is looked at ... */
	uint32_t nr_ahead;			/* ... and those behind it */
};

/* What is to be done with a request that was answered. */
enum kv_step {
	KV_DONE,				/* io->result is set */
	KV_AGAIN,				/* it is filled in to be sent again */
	KV_WAIT,		/* io->own.pages does not fit the slot's room: from the start */
	KV_WHOLE				/* the value is a large one: kv_whole.c gets it */
};

/* ---- kv.c ---- */
extern const struct xs_client_class xs_kv_class;
/* Gives a reference back; the last one ends the store. */
void xs_kv_put(struct xseg_kv *kv);

/* ---- kv_change.c ---- */
/* 0, or why the change or the batch cannot be. */
int xs_kv_change_check(const struct xseg_kv *kv, const struct xseg_kv_io *io);
/* The pages of memory that its request needs. */
uint32_t xs_kv_change_pages(const struct xseg_kv_io *io);
/* Where the value of a change stands in its request. Without a value it is there already. */
uint32_t xs_kv_change_value_at(const struct xseg_kv_io *io);
void xs_kv_change_fill(struct xseg_kv_queue *q, struct kv_slot *s, struct xseg_kv_io *io);
enum kv_step xs_kv_change_end(struct xseg_kv_queue *q, struct kv_slot *s);

/* ---- kv_query.c ---- */
int xs_kv_query_check(const struct xseg_kv *kv, const struct xseg_kv_io *io);
uint32_t xs_kv_query_pages(const struct xseg_kv_queue *q, struct xseg_kv_io *io);
void xs_kv_query_fill(struct xseg_kv_queue *q, struct kv_slot *s, struct xseg_kv_io *io);
enum kv_step xs_kv_query_end(struct xseg_kv_queue *q, struct kv_slot *s);
/* The lines of an answer to a GET that are read first; `all`: of the value, too, if they will
 * be. */
void xs_kv_get_prefetch(struct xseg_kv_queue *q, const struct kv_slot *s, bool all);
/* Bytes of an answer, copied from the pages that it has or was lent. */
void xs_kv_answer_copy(
	struct xseg_kv_queue *q, const struct kv_slot *s, uint32_t at, void *to, uint32_t bytes);

/* The CRC of a range of the answer, begun with `crc`. Its bytes go to `to`, up to `room` of
 * them. */
uint32_t xs_kv_answer_sum(struct xseg_kv_queue *q, const struct kv_slot *s, uint32_t crc,
	uint32_t at, uint32_t bytes, uint8_t *to, uint64_t room);

/* ---- kv_scan.c ---- */
/* Of an answer that is no error: the result. */
int64_t xs_kv_take_exists(struct xseg_kv_queue *q, struct kv_slot *s);
int64_t xs_kv_take_scan(struct xseg_kv_queue *q, struct kv_slot *s);
int64_t xs_kv_take_backup(struct xseg_kv_queue *q, struct kv_slot *s);

/* ---- kv_stream.c ---- */

enum kv_stream_state {
	KV_STREAM_FREE, KV_STREAM_PUTS, KV_STREAM_GETS, KV_STREAM_HAS, KV_STREAM_TOLD,
	KV_STREAM_NR_STATES
};

struct kv_calls;

struct xseg_kv_stream {
	const struct xseg_kv_queue *q;
	enum kv_stream_state state;
	uint32_t piece_bytes;
	uint64_t handle;			/* PUTS, GETS: kvd's */
	uint64_t bytes;				/* of the value; PUTS: or XSEG_KV_UNKNOWN */
	uint64_t version;			/* not PUTS */
	uint32_t expiry, client;		/* the same */
	uint64_t zone, cursor;			/* TOLD: what PIECE says to kvd */
	uint64_t *sums;				/* of each piece: see sum_word() */
	uint32_t nr_sums;
	uint32_t out;				/* PARTs and PIECEs that are out */
	bool busy;				/* another operation of it is out */
	uint8_t *has;				/* HAS: the value */
	struct kv_calls *calls;			/* kv_calls.c's */
};

int xs_kv_stream_check(const struct xseg_kv_queue *q, const struct xseg_kv_io *io);
/* For PARTs of a value of that length, which are not checked before. False: no memory. */
bool xs_kv_stream_reserve(struct xseg_kv_stream *st, uint64_t bytes);
/* True: its result is set, and nothing is to be sent. */
bool xs_kv_stream_at_once(struct xseg_kv_io *io);
uint32_t xs_kv_stream_pages(const struct xseg_kv_io *io);
void xs_kv_stream_fill(struct xseg_kv_queue *q, struct kv_slot *s, struct xseg_kv_io *io);
enum kv_step xs_kv_stream_end(struct xseg_kv_queue *q, struct kv_slot *s);
/* An OPEN has got a record that verifies. The result; of a large value, which is to be held next,
 * 0. */
int64_t xs_kv_stream_take(struct xseg_kv_queue *q, struct kv_slot *s, const struct xrecord *rec);
/* An operation of a stream goes out, and is back. */
void xs_kv_stream_goes(struct xseg_kv_io *io);
void xs_kv_stream_is_back(struct xseg_kv_io *io);

/* ---- kv_whole.c ---- */

/* Takes a PUT or a GET whose value is large. -ENOMEM: it is not taken. */
int xs_kv_whole_begin(struct xseg_kv_queue *q, struct xseg_kv_io *io) XSEG_MUST_CHECK;
/* An operation of it is back. */
void xs_kv_whole_go_on(struct xseg_kv_queue *q, struct xseg_kv_io *io);
/* The PUT or GET is given up: no request of it is out, and what waits is not sent. */
void xs_kv_whole_forget(struct xseg_kv_queue *q, struct xseg_kv_io *io);
/* Frees it. */
void xs_kv_whole_end(struct xseg_kv_queue *q, struct kv_whole *w);

/* ---- kv_queue.c ---- */
/* For kv_whole.c: an operation of the library's own is added to those that wait; it is back by
 * xs_kv_whole_go_on(). */
void xs_kv_push(struct xseg_kv_queue *q, struct xseg_kv_io *io);
/* It is not to be sent any more; it waits. */
void xs_kv_unpush(struct xseg_kv_queue *q, struct xseg_kv_io *io);
/* Waits until an operation that was submitted is back; its result. */
int64_t xs_kv_wait_for(struct xseg_kv_queue *q, struct xseg_kv_io *io);
/* The operation of the program's is back. */
void xs_kv_back(struct xseg_kv_queue *q, struct xseg_kv_io *io);

/* ---- kv_easy.c ---- */
/* Submits these, XS_KV_RUN_MAX at most, and waits until they are back. One that is refused has that
 * as its result. */
#define XS_KV_RUN_MAX 16u
void xs_kv_run_all(struct xseg_kv_queue *q, struct xseg_kv_io *io, uint32_t nr);

static inline bool xs_kv_is_query(const struct xseg_kv_io *io)
{
	return io->op <= XSEG_KV_BACKUP || (io->op == XSEG_KV_OPEN && io->own.step == 0);
}

static inline bool xs_kv_is_stream(enum xseg_kv_op op)
{
	return op >= XSEG_KV_BEGIN && op <= XSEG_KV_CLOSE;
}

#endif
