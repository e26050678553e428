/* rival.h - shared by the programs that load a store of keys and values: other people's, and kvd by
 * its C API. Options, operations, values, clock, results in xbench's JSON.
 *
 * Each program is the same driver with another store: the same keys, values, threads and checks. A
 * value bears the number of its key and a version at its begin, and again each 4 KiB. Every value
 * that is got is checked: its length, and that all its stamps are of this key and of one version.
 * That version was put by a driver before, and it is no older than one that was answered before the
 * get.
 *
 * Contract: rival.c has main(), and calls rival_run() of rival_work.c. Each program is linked with
 * one struct rival_store. That of rival_socket.c needs one struct rival_wire, a protocol; that of
 * rival_lib.c needs one struct rival_lib, a library. rival_xseg.c has a rival_store itself.
 */
#ifndef BENCH_RIVALS_RIVAL_H
#define BENCH_RIVALS_RIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/common/program.h"
#include "xtypes/xhist.h"

#define MAX_DEPTH	256u
#define MAX_THREADS	256u
#define KEY_MAX		65536u
#define STAMP_STEP	4096u			/* from one stamp of a value to the next */

/* What a driver does: with keys at random for a time, or with each key once. */
enum rival_rw {
	RIVAL_GET, RIVAL_PUT, RIVAL_MIXED,	/* at random */
	RIVAL_FILL,				/* puts each key once */
	RIVAL_READ,				/* gets each key once */
	RIVAL_BOTH,				/* the one, and then the other */
	/* each thread puts all keys in order, and each of --readers gets them */
	RIVAL_COUNTER,
	RIVAL_SCAN		/* a library goes through all that it has, in its own order */
};

struct rival_options {
	uint32_t rw, iodepth, threads, readers, connections, rwmixread;
	uint64_t keys, key_size, value_size, cache, runtime_ns, ramp_ns, randseed;
	char path[256], kvd[64];
	struct bench_cpus cpus;
	bool exponential, force, warm, direct, may_drop, help;
};

/* An operation. A store's `result` is 0 of a put, the value's bytes of a get, or a negative errno;
 * -ENOENT: it is not there. */
struct rival_op {
	bool put, checked, right;		/* checked: the store says whether it is right */
	uint32_t slot;				/* which of its thread's */
	uint64_t number, version, oldest, ns;
	const char *key;
	size_t key_bytes, bytes;		/* bytes: of the value */
	uint8_t *value;				/* room for a value, unless the store streams */
	const uint8_t *got;			/* of a get: where its value is */
	int64_t result;
	struct rival_op *next;			/* the store's */
};

/* What one thread counts of one kind of operation; the histogram is in ns. */
struct rival_count {
	struct xhist lat;
	uint64_t ios, bytes, misses, failed, wrong, ns;
};

enum { RIVAL_READS, RIVAL_WRITES, RIVAL_KINDS };

struct rival_result {
	struct rival_count kind[RIVAL_KINDS];
};

/* A store. open() and close() are the main thread's. Each thread has a session. All but close() and
 * end() fail with a line in err, or in op->result. */
struct rival_store {
	const char *(*name)(void);
	/* values of that size and more go in pieces, one operation at a time: the driver gives no
	 * memory for them, see rival_stamp() and rival_is_stamped(); 0: none */
	size_t stream_from;
	bool has_no_depth;			/* a thread has one operation at a time */
	int (*open)(const struct rival_options *o, void **db, struct xseg_error *err);
	void (*close)(void *db);
	int (*begin)(void *db, void **session, struct xseg_error *err);
	void (*end)(void *session);
	/* Takes an operation, which next() returns later. */
	void (*submit)(void *session, struct rival_op *op);
	/* Waits for one that is done; NULL: the session is lost, with a line in err. */
	struct rival_op *(*next)(void *session, struct xseg_error *err);
	/* After a get was looked at. May be NULL. */
	void (*release)(void *session, struct rival_op *op);
	/* Goes through all values: how many, or a negative errno. NULL: it cannot. */
	int64_t (*scan)(void *session, struct rival_count *count, struct xseg_error *err);
};
extern const struct rival_store rival_store;

/* Makes the load. *result is the sum of all threads. */
int rival_run(const struct rival_options *o, struct rival_result *result,
	struct xseg_error *err) XSEG_MUST_CHECK;

/* ---- keys and values --------------------------------------------------------------------- */

/* The bytes of a key's value. */
size_t rival_bytes(const struct rival_options *o, uint64_t number);
/* The most that a value has. */
size_t rival_bytes_max(const struct rival_options *o);
/* Writes the key of a number, and returns its length; the rest of a long key is there already. */
size_t rival_key(const struct rival_options *o, char *key, uint64_t number);
/* Stamps a piece of an operation's value that begins at a multiple of STAMP_STEP. */
void rival_stamp(const struct rival_op *op, uint8_t *piece, uint64_t offset, size_t bytes);
/* Whether a piece that was got is right. op->version is 0 before the first piece. */
bool rival_is_stamped(
	struct rival_op *op, const uint8_t *piece, uint64_t offset, size_t bytes);
/* Versions of this process are larger than those of an earlier one. */
void rival_versions_begin(void);
uint64_t rival_version(void);

/* ---- a library --------------------------------------------------------------------------- */

/* Called by many threads, but for open and close. put and get return 0, or 1 with a message in
 * *why, which is malloc()ed. What get returns in *value is given back to release(). scan calls
 * visit() with each. */
struct rival_lib {
	const char *name;
	void *(*open)(const struct rival_options *o, char **why);
	int (*put)(void *db, const char *key, size_t key_len, const void *value, size_t bytes,
		char **why);
	int (*get)(
		void *db, const char *key, size_t key_len, char **value, size_t *bytes, char **why);
	void (*release)(void *value);
	int (*scan)(void *db, void (*visit)(void *arg, const char *value, size_t bytes), void *arg,
		char **why);
	void (*close)(void *db);
};
extern const struct rival_lib rival_lib;

/* ---- a server ---------------------------------------------------------------------------- */

/* A connection. What is appended to `out` is sent; `in` has [at .. nr_in) to be parsed. */
struct rival_conn {
	int fd;
	char *out, *in;
	size_t nr_out, sent, room_out, nr_in, at, room_in;
	struct rival_op *first, **last;		/* in the order in which they were asked */
	void *state;				/* the protocol's */
};

/* A protocol, whose server answers in order. */
struct rival_wire {
	const char *name;
	void *(*begin)(void);			/* a connection's state; may be NULL */
	void (*end)(void *state);
	/* Appends a request by rival_out(); -errno. */
	int (*ask)(struct rival_conn *c, struct rival_op *op);
	/* Takes one answer of what was received: true if it is complete. */
	bool (*answer)(struct rival_conn *c, struct rival_op *op);
	void (*release)(struct rival_conn *c, struct rival_op *op);	/* may be NULL */
};
extern const struct rival_wire rival_wire;

int rival_out(struct rival_conn *c, const void *data, size_t bytes) XSEG_MUST_CHECK;

#endif
