/* memcached - a peer that serves a store of values (kvd) by memcached's protocol.
 *
 * It is a client of its kvd by xseg/kv.h, as any program is. Each of its ports has a worker, with a
 * queue of the store, connections, and operations. Nothing of a worker is seen by another one. So a
 * port's rounds need no lock.
 *
 *   memcached.c   the class: options, what a port does each round
 *   store.c       the store of values: opening it, and again if it was lost
 *   listen.c      sockets that accept
 *   conn.c        a connection: bytes in, bytes out, its life
 *   line.c        the words of a line, and what all commands share
 *   command.c     the table of the commands, and each of them
 *   meta.c        the meta commands: mg ms md ma
 *   op.c          an operation at the store: order, steps, life
 *   value.c       the bytes of a borrowed value
 *   answer.c      the text of an answer
 *   step.c        what a connection does in a round
 *   stats.c       counters, and the command stats
 *
 * Invariants
 *   M1  Answers of a connection go out in the order of its commands.
 *   M2  Of two operations of one connection with the same key, of which one is a change, the later
 *       one is sent when the earlier one is back, and the value that it may have borrowed was
 *       answered: else that could be got again, and be the later one's. The store does operations
 *       that are out together in any order.
 *   M3  A connection that does not send or read holds nothing that others wait for. Operations are
 *       its own. Its value is read into its own memory before an operation begins. A value that
 *       finds no room in its memory for answers is given back to the cache, and got again when
 *       there is room. What the socket does not take at once of a value is copied.
 *   M4  Of the queue's requests an operation has one while it is at the store, and while it holds a
 *       borrowed value. It holds one until the operations before it are answered. If nothing is at
 *       the store and an operation finds no request, those that are held are given back. A large
 *       value takes the queue's one large room, so it is held only while it is copied.
 *   M5  Nothing is allocated after init. The memory of connections is mapped at the start, and
 *       takes RAM only as far as it was used.
 *
 * Contract: callbacks as in peer.h. The thread in store.c opens the store, and touches nothing
 * else.
 */
#ifndef PEERS_MEMCACHED_H
#define PEERS_MEMCACHED_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "peers/common/runtime/peer.h"
#include "xseg/kv.h"

/* Whose answers these are; clients look at it. */
#define MC_VERSION     "1.6.18"
#define MC_KEY_MAX     250u
#define MC_LINE_MAX    2048u			/* of a command, but for gets of many keys */
#define MC_GETS_MAX    65536u			/* of those */
#define MC_VALUE_MAX   (1u << 20)		/* the store's limit is a little less */
#define MC_ANSWER_MAX  1024u			/* of a line: a key in base64 and all flags */
#define MC_IN_BYTES    (MC_VALUE_MAX + MC_GETS_MAX)
#define MC_OUT_BYTES   (MC_VALUE_MAX + MC_GETS_MAX)
#define MC_DEPTH       128u			/* operations of a worker at the store, and loans */
#define MC_CONN_OPS    64u			/* of a connection */
#define MC_HASHES      64u			/* see mc_conn.nr_undone */
#define MC_ROOM_BYTES  (64u << 10)		/* of an operation, in the store's queue */
#define MC_KEEP_BYTES  (64u << 10)	/* of a connection's memory, when it is silent */
#define MC_LISTEN_MAX  4u
#define MC_HOLE_LEAST  8192u		/* bytes of a value that is sent from where it stands */
#define MC_HOLES       16u
#define MC_LATER_S     (30u * 24 * 3600)	/* a longer expiry is a date */

struct mc_worker;
struct mc_conn;

enum mc_stat {
	MS_CONNECTIONS, MS_CONNECTIONS_TOTAL, MS_CONNECTIONS_REFUSED, MS_LISTEN_DISABLED,
	MS_CMD_GET, MS_CMD_SET, MS_CMD_FLUSH, MS_CMD_TOUCH, MS_CMD_META, MS_GET_HITS, MS_GET_MISSES,
	MS_DELETE_HITS, MS_DELETE_MISSES, MS_INCR_HITS, MS_INCR_MISSES, MS_DECR_HITS,
	MS_DECR_MISSES, MS_CAS_HITS, MS_CAS_MISSES, MS_CAS_BADVAL, MS_TOUCH_HITS, MS_TOUCH_MISSES,
	MS_BYTES_READ, MS_BYTES_WRITTEN, MS_ERRORS, MC_NR_STATS
};

/* ---- operations -------------------------------------------------------------------------- */

/* What is asked for, and so which answer there is. */
enum mc_kind {
	MC_TEXT,				/* the answer is known: op->text */
	MC_STATS,				/* the answer is made when it goes out */
	MC_GET,					/* an item of get, gets, gat, gats */
	MC_END,					/* the end of them */
	MC_STORE,				/* set, add, replace, append, prepend, cas */
	MC_DELETE, MC_ARITH, MC_TOUCH,
	MC_FLUSH,				/* flush_all */
	MC_META_GET, MC_META_STORE, MC_META_DELETE, MC_META_ARITH, MC_META_DEBUG
};

/*   state      meaning                                  leaves it
 *   FREE       not used                                 op_begin()
 *   WAITING    for an earlier one of its key (M2), or   op_go_on(): -> OUT
 *              for a request of the queue (M4)
 *   OUT        in the store's queue                     op_back(): -> DONE, or WAITING: next step
 *   DONE       the answer can be made                   conn_answer(): -> FREE, or AGAIN
 *   AGAIN      a get whose value found no room (M3)     op_go_on(): -> OUT
 */
enum mc_op_state { MC_OP_FREE, MC_OP_WAITING, MC_OP_OUT, MC_OP_DONE, MC_OP_AGAIN };

#define MC_OPAQUE_MAX 32u
#define MC_FLAGS_MAX  16u

/* What a meta command asked to be told, in its order. */
struct mc_meta {
	char flag[MC_FLAGS_MAX];		/* letters; ended by 0 */
	char opaque[MC_OPAQUE_MAX + 1];
	bool value, base64, quiet, touches, vivifies;
	uint32_t vivify_ttl;
	uint64_t initial;
};

struct mc_op {
	struct xseg_kv_io io;
	struct mc_conn *conn;
	enum mc_op_state state;
	enum mc_kind kind;
	uint8_t tries;				/* of ma */
	bool quiet;				/* noreply: no answer, whatever happens */
	bool with_cas;				/* gets, gats */
	bool reads;				/* changes nothing */
	bool touches, looks;	/* ma: then the expiry is changed; then it is asked for */
	bool in_place;				/* its value is in the connection's memory */
	bool holds;				/* a borrowed value */
	uint8_t stats;				/* which */
	const char *text;			/* static */
	enum xseg_kv_op arith;			/* of ma, which may put instead at first */
	uint64_t amount;
	int refused;	/* a set that failed with this deletes the old value, which is stale */
	uint32_t ttl_s, expiry;			/* of ma T: for the touch */
	uint64_t hash;				/* of the key */
	uint8_t key_bytes;
	/* what follows is not cleared by mc_op_get() */
	char key[MC_KEY_MAX];
	char number[24];			/* the value that ma N puts */
	struct mc_meta meta;			/* of the meta commands only */
};

/* ---- connections ------------------------------------------------------------------------- */

/*   FREE    -> OPEN     accepted
 *   OPEN    -> ENDING   quit, the end of input, a line that cannot be understood, the peer stops
 *   OPEN    -> BROKEN   the socket failed
 *   ENDING  -> BROKEN   the socket failed
 *   ENDING  -> FREE     no operation, nothing to be written
 *   BROKEN  -> FREE     no operation
 */
enum mc_conn_state { MC_CONN_FREE, MC_CONN_OPEN, MC_CONN_ENDING, MC_CONN_BROKEN };

struct mc_conn {
	struct mc_worker *worker;
	struct mc_conn *next;			/* free, or ready */
	enum mc_conn_state state;
	int fd;
	bool listed;				/* in the worker's list of ready ones */
	bool readable, writable;		/* as far as is known: edges */
	bool leaves;				/* its end of input was told, as an edge */
	bool eof;				/* nothing comes behind what was read */
	bool starved;				/* in the worker's list of those with an operation
						 * that waits for a request of the queue */
	bool held_back;				/* answers wait for more of them, for this round */
	struct mc_conn *next_starved;
	uint8_t *in, *out;			/* MC_IN_BYTES, MC_OUT_BYTES */
	uint32_t in_from, in_to, out_from, out_to;
	uint32_t in_most, out_most;		/* as far as the memory was used */
	bool large;				/* that is more than MC_KEEP_BYTES */
	uint64_t swallow;			/* bytes of a value that was refused */
	/* operations in the order of their commands: a ring of MC_CONN_OPS, from op_first on */
	struct mc_op *op;
	uint32_t op_first, nr_ops, nr_in_place;
	uint32_t nr_waiting;			/* WAITING, AGAIN */
	/* a get of many keys whose line is not done yet */
	bool in_gets, gets_cas, gets_touch;
	bool gets_failed;			/* its answer was an error: nothing else of it */
	uint32_t gets_ttl, gets_expiry;
	uint64_t since_ns;
	/* the command whose value is awaited: the next operation of the ring, which is not begun */
	bool filling;
	uint32_t filling_bytes;
	struct mc_op *pending;
	/* operations that a later one may have to wait for (M2), by hash */
	uint8_t nr_undone[MC_HASHES], nr_flushes;
};

/* A value whose place in a connection's `out` is not written: it is sent from the borrowed pages.
 * There are none but while a connection is answered, in mc_conn_step(). */
struct mc_hole {
	struct mc_op *op;
	uint32_t at, bytes;
};

/* ---- workers ----------------------------------------------------------------------------- */

struct mc_worker {
	struct memcached *mc;
	struct peer_port *pp;
	struct xseg_kv_queue *queue;		/* NULL: the store is not open */
	int epoll, store_fd;			/* store_fd: the queue's; -1: not asked for yet */
	bool armed;
	uint64_t looked_ns, answered_ns;
	struct mc_conn *conn;			/* mc->per_worker of them */
	struct mc_conn *free_conns, *ready, **ready_last, *starved, **starved_last;
	struct mc_op *op;			/* of all connections */
	struct mc_hole hole[MC_HOLES];		/* of one connection, in their order */
	uint32_t nr_holes;
	_Atomic uint32_t nr_conns;		/* others read it */
	uint32_t nr_large, nr_out, nr_held;
	uint64_t idle_ns;			/* when silent connections are looked for */
	bool accepts;				/* clients may wait at a listener ... */
	uint64_t accept_ns;			/* ... and are not taken before this time */
	uint64_t stop_ns;			/* the peer stops, since then; 0: it does not */
	uint64_t count[MC_NR_STATS];
};

struct mc_listener {
	int fd;
	bool ended;				/* port 0's thread: nobody is accepted any more */
	/* of a socket of the file system, which is removed at the end */
	char path[108];
	dev_t device;
	ino_t inode;
};

/* See store.c. */
enum mc_store_state { MC_STORE_CLOSED, MC_STORE_OPENING, MC_STORE_OPEN, MC_STORE_FAILED };

struct mc_store {
	_Atomic enum mc_store_state state;
	struct xseg_kv_queue *queue;
};

struct memcached {
	struct peer peer;
	struct {
		char listen[512], mode[8];
		uint32_t connections;
		uint64_t idle_timeout_ns;
	} opt;
	struct mc_worker worker[PEER_MAX_THREADS];
	uint32_t per_worker;
	struct mc_listener listener[MC_LISTEN_MAX];
	uint32_t nr_listeners;
	uint64_t nr_fds;			/* descriptors that it may have */
	_Atomic uint64_t no_fds_ns;		/* the log said last that none is free */
	uint8_t *memory;
	size_t memory_bytes;
	struct xseg_stats *stats;
	uint64_t begun_ns, published_ns;
	/* the store; store.c */
	struct mc_store store[PEER_MAX_THREADS];	/* of each worker */
	_Atomic bool tried;	/* to open it, once: clients that came before that wait */
	bool has_thread;
	pthread_t thread;
	struct xseg_error why;			/* the last opening failed */
	uint64_t again_ns;
};

static inline struct memcached *memcached_of(struct peer *p)
{
	return (struct memcached *)p;
}

static inline void mc_count(struct mc_worker *w, enum mc_stat what, uint64_t by)
{
	w->count[what] += by;
}

/* ---- store.c ---- */

/* What the queues of so many workers take of the segment's memory. */
uint64_t mc_store_memory(uint32_t nr_workers);
/* Begins to open what is closed, in a thread: it asks kvd, which may be served by this one. */
void mc_store_begin(struct memcached *mc);
/* How many workers' queues are in a state. */
uint32_t mc_stores_in(const struct memcached *mc, enum mc_store_state state);
/* Each round of port 0: joins a thread that has ended; tries an opening that failed again. */
void mc_store_mind(struct memcached *mc, uint64_t now_ns);
/* Takes the worker's queue, if there is a new one. False: the store is not open. */
bool mc_store_take(struct mc_worker *w);
/* The worker's queue is lost: kvd is gone. All of its operations are back, and none holds a value.
 */
void mc_store_lose(struct mc_worker *w);
void mc_store_end(struct memcached *mc);

/* ---- listen.c ---- */

int mc_listen_check(const char *text, struct xseg_error *err);
/* All that the option names. -errno with a line in err. */
int mc_listen_open(struct memcached *mc, struct xseg_error *err);
/* Port 0's thread: nobody is accepted any more. Other workers may be looking at the sockets. */
void mc_listen_end(struct memcached *mc);
/* There are no workers any more. */
void mc_listen_close(struct memcached *mc);
/* Takes connections that wait, some at a time. Whether there were any. */
bool mc_accept(struct mc_worker *w);

/* ---- value.c ---- */

/* The pieces in which `bytes` of a value lie, from a byte on; at most `room` of them. */
uint32_t mc_value_pieces(
	struct mc_op *op, uint32_t from, uint32_t bytes, struct iovec *to, uint32_t room);
void mc_value_copy(struct mc_op *op, uint32_t from, uint8_t *to, uint32_t bytes);

/* ---- conn.c ---- */

#define MC_READ_MOST (64u << 10)	/* of a connection in a round, unless a value is awaited */

int mc_conns_init(struct mc_worker *w, uint8_t *memory, struct xseg_error *err);
void mc_conn_open(struct mc_worker *w, int fd);
/* It has something to do: it is listed for this round or the next one. */
void mc_conn_ready(struct mc_conn *c);
/* No more input is looked at; it is closed when all is answered. */
void mc_conn_end(struct mc_conn *c);
/* It is closed when its operations are back; nothing is written any more. */
void mc_conn_break(struct mc_conn *c);
/* Room for an answer of so many bytes, or NULL: not now. */
uint8_t *mc_conn_room(struct mc_conn *c, uint32_t bytes);
void mc_conn_wrote(struct mc_conn *c, uint32_t bytes);
/* The value of an operation is not copied to that place of the answers. It is sent from its pages
 * by the next mc_conn_write(), before which the operation may not end. False: copy it. */
bool mc_conn_lend(struct mc_op *op, const uint8_t *to);
/* To the socket and from it, as far as it goes now. */
void mc_conn_write(struct mc_conn *c);
void mc_conn_read(struct mc_conn *c);
/* There is room for what it would read. Else there is when its values are stored. */
bool mc_conn_may_read(const struct mc_conn *c);
/* It has no operation, nothing to be written, and is in no list. */
void mc_conn_free(struct mc_conn *c);
/* Of those that are silent memory goes back; those that are for too long are closed. */
void mc_conns_mind(struct mc_worker *w);

/* ---- line.c ---- */

/* What has become of a line. */
enum mc_taken {
	MC_TAKEN,
	MC_NO_OP		/* the connection has enough; the line is still there */
};

#define MC_WORDS 24u

struct mc_line;

/* A row of the table of commands, and what makes those of one function differ. */
struct mc_command {
	const char *name;
	uint32_t bytes;				/* of the name */
	enum mc_taken (*take)(struct mc_line *l);
	enum xseg_kv_op op;
	uint32_t condition;
	bool with_cas, touches;			/* gets; gat */
};

struct mc_line {
	struct mc_conn *conn;
	const struct mc_command *command;
	uint32_t nr;
	struct {
		const char *at;
		uint32_t bytes;
	} word[MC_WORDS];
	bool cut;				/* there were more words */
	uint32_t blanks;			/* before the first one */
	const char *end;			/* of the text */
};

/* The next word of the text; its length, 0 at the end. */
uint32_t mc_next_word(const char **text, const char *end, const char **word);
void mc_line_cut(struct mc_line *l, const char *text, uint32_t bytes);
bool mc_line_is(const struct mc_line *l, uint32_t word, const char *text);
bool mc_number(const char *at, uint32_t bytes, uint64_t *number);
/* An expiry of the protocol's: seconds from now, or a date. False: it is no number. */
bool mc_expiry_of(const char *at, uint32_t bytes, uint32_t *ttl_s, uint32_t *expiry);
/* An answer that is known; no answer, if quiet. */
enum mc_taken mc_say(struct mc_conn *c, const char *text);
enum mc_taken mc_say_unless(struct mc_conn *c, const char *text, bool quiet);
/* An operation on that key; NULL: there is none free. */
struct mc_op *mc_op_of_key(struct mc_conn *c, enum mc_kind kind, const char *key, uint32_t bytes);
/* c->pending, for a command with a value; NULL: there is none free. */
struct mc_op *mc_pending(struct mc_conn *c, enum mc_kind kind, const char *key, uint32_t bytes);
/* A value of so many bytes is awaited for c->pending. */
enum mc_taken mc_fill(struct mc_conn *c, uint64_t bytes);
/* The value of c->pending is there, at that place of the connection's memory. */
enum mc_taken mc_filled(struct mc_conn *c, uint8_t *value, bool is_well_ended);

/* ---- command.c ---- */

enum mc_taken mc_command(struct mc_conn *c, const char *line, uint32_t bytes);
/* Goes on with a get of many keys. *used: how much of the text is done with. */
enum mc_taken mc_command_gets(
	struct mc_conn *c, const char *text, uint32_t bytes, uint32_t *used);

/* ---- meta.c ---- */

enum mc_taken mc_meta_get(struct mc_line *l);
enum mc_taken mc_meta_set(struct mc_line *l);
enum mc_taken mc_meta_delete(struct mc_line *l);
enum mc_taken mc_meta_arith(struct mc_line *l);
enum mc_taken mc_meta_debug(struct mc_line *l);

/* ---- op.c ---- */

static inline struct mc_op *mc_op_at(const struct mc_conn *c, uint32_t i)
{
	return &c->op[(c->op_first + i) % MC_CONN_OPS];
}

/* NULL: the connection has enough. */
struct mc_op *mc_op_get(struct mc_conn *c, enum mc_kind kind);
/* It is put behind those of its connection, and sent if it may be. */
void mc_op_begin(struct mc_op *op);
/* Its io is back. */
void mc_op_back(struct mc_op *op);
/* Of a connection, one is done, or there is room for its answer: those that waited for it. */
void mc_ops_go_on(struct mc_conn *c);
/* Connections whose operations wait for requests of the queue have those that are free. */
void mc_ops_feed(struct mc_worker *w);
/* It waits for requests no more. */
void mc_ops_unstarve(struct mc_conn *c);
/* Its value finds no room now. */
void mc_op_again(struct mc_op *op);
/* The store takes long: what is borrowed, and cannot be answered yet, goes back. */
void mc_ops_give_back(struct mc_worker *w);
/* The first of its connection, whose answer was made. */
void mc_op_end(struct mc_op *op);

/* ---- answer.c ---- */

/* Writes the answer of an operation that is done, when those before it have theirs, if there is
 * room. */
bool mc_answer(struct mc_op *op);

/* ---- step.c ---- */

/* A round of a connection: it reads, understands, answers and writes. */
void mc_conn_step(struct mc_conn *c);

/* ---- stats.c ---- */

int mc_stats_open(struct memcached *mc);
void mc_stats_publish(struct memcached *mc);
uint32_t mc_stats_text(struct mc_worker *w, uint8_t *to, uint32_t room);
uint32_t mc_settings_text(struct mc_worker *w, uint8_t *to, uint32_t room);
uint32_t mc_conns_text(struct mc_worker *w, uint8_t *to, uint32_t room);
int64_t mc_admin(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size);

#endif
