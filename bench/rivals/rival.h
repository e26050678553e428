/* rival.h - shared by the clients for other people's stores: options, clock, results in xbench's
 * JSON.
 *
 * A client makes the load that xbench makes: blocks of 4 KiB at random over a set, with a fixed
 * number in flight. A store of keys and values gets a key for each block. The first word of a value
 * is the number of its block; every answer is checked.
 *
 * Contract: rival.c has main(), and calls rival_run(). Each program has one: rival_socket.c for
 * servers that speak a protocol, rival_lsm.c for libraries. rival_lsm.c is linked with one struct
 * rival_store.
 */
#ifndef BENCH_RIVALS_RIVAL_H
#define BENCH_RIVALS_RIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/common/program.h"
#include "xtypes/xhist.h"

#define VALUE_BYTES	4096u
#define KEY_BYTES	24u			/* with the NUL */
#define MAX_DEPTH	256u

enum rival_protocol { REDIS, MEMCACHED };

struct rival_options {
	uint32_t rw, iodepth, protocol, connections;
	uint64_t size, cache, runtime_ns, ramp_ns, randseed;
	char path[256];
	struct bench_cpus cpus;
	bool fill, warm, direct, help;
};

/* What one thread counts; the histogram is in ns. */
struct rival_result {
	struct xhist lat;
	uint64_t ios, wrong, ns;
};

/* When a thread begins to count, and when it is over. */
struct rival_clock {
	uint64_t from_ns, end_ns;
	bool counting;
};

/* Makes the load, or fills the store. `result` has room for MAX_DEPTH, *nr of which were used. */
__attribute__((warn_unused_result)) int rival_run(const struct rival_options *o,
	struct rival_result *result, uint32_t *nr, struct xseg_error *err);

void rival_clock_start(struct rival_clock *c, const struct rival_options *o);

/* Counts n I/Os, none of them when the ramp is not over; false when the run is over. */
bool rival_count(struct rival_clock *c, struct rival_result *r, uint64_t now_ns, uint32_t n);

/* Returns the length. */
size_t rival_key(char key[KEY_BYTES], uint64_t block);
void rival_value(uint8_t value[VALUE_BYTES], uint64_t block);
bool rival_value_is(const void *value, size_t bytes, uint64_t block);

/* A library: each function but open is called by many threads. put and get return 0, or 1 with a
 * message in *why, which is malloc()ed. What get returns in *value is given back to release(). */
struct rival_store {
	const char *name;
	void *(*open)(const struct rival_options *o, char **why);
	int (*put)(void *db, const char *key, size_t key_len, const void *value, size_t bytes,
		char **why);
	int (*get)(
		void *db, const char *key, size_t key_len, char **value, size_t *bytes, char **why);
	void (*release)(void *value);
	void (*close)(void *db);
};
extern const struct rival_store rival_store;

#endif
