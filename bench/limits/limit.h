/* limit.h - shared by the files of bench-limit: options, the shared memory and the format of a word
 * in it.
 *
 * Contract: the server is the parent, each client a child made by fork(). struct limit is filled in
 * before the fork and is the same in all processes, except for the index, which is the server's
 * own.
 *
 * Invariants
 *   L1  the first word of a page is the number of the block whose data it holds, whichever process
 *       wrote it last: so every answer is checked, and a wrong one is counted as an error
 *   L2  a lane holds at least as many words as its client has slots, and a word is released before
 *       its answer is pushed: so a push never fails
 *   L3  a page is listed by one slot of the index, or is one client's own; a give swaps the two
 */
#ifndef BENCH_LIMITS_LIMIT_H
#define BENCH_LIMITS_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/common/program.h"
#include "xtypes/xhash.h"
#include "xtypes/xhist.h"
#include "xtypes/xq.h"

#define PAGE		4096u
#define LINE		64u
#define HUGE_BYTES	(2u << 20)
#define MAX_JOBS	16u
#define MIN_BATCH	8u	/* requests that a side has in hand at once: half of those */
#define MAX_BATCH	32u			/* in flight, within these bounds */

enum mode { CHASE, LINES, MEMCPY, ECHO_WORD, LOOKUP, LOAN, COPY };
enum touch { FIRST_LINE, ALL_LINES };
enum format { NORMAL, JSON };

struct options {
	uint32_t mode, rw, touch, iodepth, numjobs, output_format;
	uint64_t bs, size, object_size, runtime_ns, ramp_ns, randseed;
	char set[256];
	struct bench_cpus cpus;
	bool huge, scatter, help;
};

extern const struct opt limit_opts[];
extern const char *const limit_mode_names[];

/* A client's result: written by it alone, read by the server when it has ended. */
struct result {
	struct xhist lat;			/* in ticks */
	uint64_t ios, wrong, ns, ticks;		/* how long was counted, by both clocks */
	uint64_t sum;				/* of what was read: so that it is read */
};

/* What the index leads to: the pages of an object, in its order. */
struct object {
	uint64_t number;
	uint32_t page[];
};

struct limit {
	const struct options *o;
	uint32_t block_pages;			/* of a request */
	uint32_t object_pages;
	uint32_t nr_pages;			/* of the set */
	uint8_t *map;
	size_t map_bytes;
	bool huge;				/* it is of huge pages */
	uint32_t lane_slots, batch;
	_Atomic uint32_t *ended;		/* clients that are done */
	struct result *result;
	struct xq *asks[MAX_JOBS], *answers[MAX_JOBS];
	uint32_t *lists;		/* block_pages for each slot: its pages after the first */
	uint8_t *pages;				/* those of the set, then the clients' own */
	/* the server's own */
	struct xhash index;
	uint8_t *objects;
	size_t object_bytes;			/* of one of them */
};

/* A word: the client's slot, the block that it asks for as the number of its first page in the set,
 * and a page: of a request the first one given, of an answer the first one lent or given back. */
#define NR_BITS		26u
#define NR_MASK		((UINT64_C(1) << NR_BITS) - 1)

static inline uint64_t word_make(uint64_t slot, uint64_t block, uint64_t page)
{
	return slot << (2 * NR_BITS) | block << NR_BITS | page;
}

static inline uint64_t word_slot(uint64_t word)
{
	return word >> (2 * NR_BITS);
}

static inline uint32_t word_block(uint64_t word)
{
	return (uint32_t)(word >> NR_BITS & NR_MASK);
}

static inline uint32_t word_page(uint64_t word)
{
	return (uint32_t)(word & NR_MASK);
}

static inline uint8_t *page_at(const struct limit *l, uint64_t page)
{
	return l->pages + page * PAGE;
}

/* The first of the pages that a client's slot has to begin with. With copies these stay its
 * buffer. */
static inline uint32_t own_page(const struct limit *l, uint32_t job, uint64_t slot)
{
	return l->nr_pages + (uint32_t)((job * (uint64_t)l->o->iodepth + slot) * l->block_pages);
}

/* Where the pages of a block after the first are listed, at [1] and on. */
static inline uint32_t *list_at(const struct limit *l, uint32_t job, uint64_t slot)
{
	return l->lists + (job * (uint64_t)l->o->iodepth + slot) * l->block_pages;
}

static inline uint64_t *first_word(uint8_t *page)
{
	return (uint64_t *)(void *)page;
}

static inline struct object *object_at(const struct limit *l, uint32_t i)
{
	return (struct object *)(void *)(l->objects + i * l->object_bytes);
}

#define AHEAD_LINES	4u			/* of a page that are prefetched */

static inline void limit_prefetch_page(const uint8_t *page)
{
	for (uint32_t i = 0; i < AHEAD_LINES; i++)
		__builtin_prefetch(page + i * LINE);
}

/* Maps the shared memory, fills the set and makes the index. */
__attribute__((warn_unused_result)) int limit_prepare(struct limit *l, struct xseg_error *err);

/* Pins process 0, the server, or client `process` - 1. Returns whether another process has the same
 * CPU. */
bool limit_pin(const struct options *o, uint32_t process);

/* Yields after many looks in vain, for who else may need the CPU. *looks: since the last work. */
void limit_idle(bool shared, uint32_t *looks);

/* Serves until all clients have ended. */
void limit_serve(struct limit *l);

/* Makes all requests of a client; returns the exit code of its process. */
int limit_run_client(struct limit *l, uint32_t nr);

/* The same for the modes in which there is nothing to ask a server for. */
int limit_run_alone(struct limit *l, uint32_t nr);

/* What a client's process does first: all memory is mapped, and not when it is touched. */
void limit_begin(struct limit *l);

uint64_t limit_clock_ticks(void);

/* Prints the results. */
void limit_print(const struct limit *l);

#endif
