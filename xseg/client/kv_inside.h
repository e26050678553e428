/* kv_inside - the declarations that the files of stores of values share; nobody else includes it.
 *
 *   kv.c         which store: opening, asking, closing
 *   kv_queue.c   operations: sending them, and the handling of answers
 *   kv_life.c    making and ending queues
 *   kv_change.c  the request of a change, and its outcome
 *   kv_query.c   the request of a query, and what the answer to a get holds
 *   kv_scan.c    what the answers to EXISTS, SCAN and BACKUP hold
 *   kv_guess.c   how many pages a get asks for
 *   kv_easy.c    one operation at a time
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
	uint64_t record_max, value_max;
	_Atomic uint32_t refs;			/* the opener's, and one for each queue */
};

/* Memory of the queue's for one operation: `pages` of them, as one piece. */
struct kv_room {
	uint8_t *mem;
	const uint32_t *page;
	uint32_t pages;
};

/* A request of the queue's. See kv_queue.c for its states. */
enum kv_slot_state { KV_SLOT_IDLE, KV_SLOT_OUT, KV_SLOT_KEPT, KV_SLOT_LOST, KV_SLOT_NR_STATES };

struct kv_slot {
	enum kv_slot_state state;
	struct xreq *r;
	struct kv_room own;
	const struct kv_room *room;		/* the slot's own, or the queue's large one */
	struct xseg_kv_io *io;			/* not IDLE, LOST: the operation */
	uint32_t value_at, value_bytes;		/* KEPT: in the pages of the answer */
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
	uint32_t nr_idle, nr_ios;
	struct kv_room large;
	const struct kv_slot *large_user;	/* NULL: it is free */
	struct kv_list waiting, back;
	struct kv_guess guess;
	struct xreq *const *ahead;		/* answers in hand: the one that is looked at ... */
	uint32_t nr_ahead;			/* ... and those behind it */
};

/* What is to be done with a request that was answered. */
enum kv_step {
	KV_DONE,				/* io->result is set */
	KV_AGAIN,				/* it is filled in to be sent again */
	KV_WAIT			/* io->own.pages does not fit the slot's room: from the start */
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
void xs_kv_change_fill(struct xseg_kv_queue *q, struct kv_slot *s, struct xseg_kv_io *io);
enum kv_step xs_kv_change_end(struct xseg_kv_queue *q, struct kv_slot *s);

/* ---- kv_query.c ---- */
int xs_kv_query_check(const struct xseg_kv *kv, const struct xseg_kv_io *io);
uint32_t xs_kv_query_pages(const struct xseg_kv_queue *q, struct xseg_kv_io *io);
void xs_kv_query_fill(struct xseg_kv_queue *q, struct kv_slot *s, struct xseg_kv_io *io);
enum kv_step xs_kv_query_end(struct xseg_kv_queue *q, struct kv_slot *s);
/* The lines of an answer to a GET that are read first; `all`: of the value, too, if they will be. */
void xs_kv_get_prefetch(struct xseg_kv_queue *q, const struct kv_slot *s, bool all);
/* Bytes of an answer, copied from the pages that it has or was lent. */
void xs_kv_answer_copy(
	struct xseg_kv_queue *q, const struct kv_slot *s, uint32_t at, void *to, uint32_t bytes);

/* ---- kv_scan.c ---- */
/* Of an answer that is no error: the result. */
int64_t xs_kv_take_exists(struct xseg_kv_queue *q, struct kv_slot *s);
int64_t xs_kv_take_scan(struct xseg_kv_queue *q, struct kv_slot *s);
int64_t xs_kv_take_backup(struct xseg_kv_queue *q, struct kv_slot *s);

static inline bool xs_kv_is_query(enum xseg_kv_op op)
{
	return op <= XSEG_KV_BACKUP;
}

#endif
