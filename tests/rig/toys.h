/* toys - for the tests of the runtime: a toy kind of peer that stands for all kinds, peers of it on
 * real threads over a private segment, and a client.
 *
 * Contract: the client is the test's thread. Everything asserts (cmocka): an error here is a failed
 * test.
 */
#ifndef TESTS_UNIT_TOYS_H
#define TESTS_UNIT_TOYS_H

#include <stdatomic.h>

#include "peers/common/runtime/reactor.h"

#define TOYS_DEPTH  16				/* requests that the client has */
#define TOYS_SECOND 1000000000ull
/* For what has to come: less than what tests/run.sh allows a test, so that a failure names its
 * line. No test depends on it. */
#define TOYS_PATIENCE_NS (600 * TOYS_SECOND)

/* What a toy does with a request: answer with its offset; send it on; answer after delay_ns; answer
 * when an eventfd was written; answer when `release` is seen, after a kick or in any round; keep
 * the thread until then, as a round that takes long or a processor that others have; answer, and
 * end the round after each that is 0. */
enum toy_way {
	TOY_ECHO, TOY_FORWARD, TOY_DELAY, TOY_EVENT, TOY_KICK, TOY_HOLD, TOY_STAND, TOY_END
};

struct toy {
	struct peer peer;
	uint32_t way, level;
	uint64_t delay_ns, spare;
	_Atomic uint64_t stamp_ns;	/* when the last held one came, by the port's time */
	char words[64];
	int fd[PEER_MAX_THREADS];
	struct xreq *held[PEER_MAX_THREADS][TOYS_DEPTH * 2];
	uint32_t nr_held[PEER_MAX_THREADS];
	_Atomic bool release;		/* TOY_KICK, TOY_HOLD, TOY_STAND: answer what is held */
	_Atomic bool stands;			/* a thread is kept */
	_Atomic uint32_t nr_recovered, nr_polls;
	_Atomic uint32_t nr_batches;		/* calls of requests() */
	uint64_t init_ns;			/* what the time was */
	_Atomic uint64_t dirty;			/* one less at each look of quiesced() */
};

struct toys {
	struct xseg *seg;
	struct xseg_peer *client;
	struct xport *port;
	uint32_t page[XSEG_EXTENT_PAGES];
	struct peer *peers[3];
	unsigned nr;
	struct reactor_set *set;
};

uint64_t toys_clock_ns(void);

/* A segment and a client; then toys, bottom up; then threads, and all toys serve. */
void toys_open(struct toys *g);
struct toy *toys_add(struct toys *g, const char *name, enum toy_way way, uint32_t threads,
		     const char *downstream);
void toys_start(struct toys *g);
void toys_wait_serving(struct toys *g, const char *name);
void toys_serve(struct toys *g);	/* both of that */
/* Stops and destroys all toys; others may be added. */
void toys_stop(struct toys *g);
/* The segment must be in order. */
void toys_close(struct toys *g);

/* Requests are INFO with `value` as their offset and hash. */
void toys_send(struct toys *g, const char *to, uint64_t value);
/* The result of the next reply, or -ETIMEDOUT. */
int64_t toys_receive(struct toys *g, uint64_t timeout_ns);
int64_t toys_ask(struct toys *g, const char *to, uint64_t value);
/* `nr` requests, up to TOYS_DEPTH in flight; every answer is one that is awaited. */
void toys_flood(struct toys *g, const char *to, uint32_t nr);
/* `nr` of them, thousands, or as many as there are in a few seconds: on a busy machine each change
 * of threads may take milliseconds. Returns how many. */
uint32_t toys_flood_for_a_while(struct toys *g, const char *to, uint32_t nr);
/* The text of the answer to a command. */
char *toys_admin(struct toys *g, const char *to, const char *line, int64_t *result);
/* A counter in the statistics of a peer, all ports together. */
uint64_t toys_counter(struct toys *g, const char *name, const char *key);
/* Asserts that it is, or soon becomes, n: what is answered is counted a moment later. */
void toys_counts(struct toys *g, const char *name, const char *key, uint64_t n);

#endif
