/* kv_gen - the sequence of operations of a job on a kvd: which, on which key, how large a value.
 *
 * Contract: as gen.h: one thread, a pure function of the options, the job's number and the number
 * of earlier calls; nothing allocates or blocks.
 *
 * Keys are drawn as gen.h draws offsets: uniform, or by Zipf ranks that a multiplication spreads. A
 * `fill` goes through the keys once: job j has the keys j, j + numjobs and so on.
 *
 * Invariants:
 *   G3  key < keys, but for INCR: there keys <= key < keys + counters
 *   G4  seq counts 1, 2, 3 ... over all operations of the job, also those of repetitions
 */
#ifndef BENCH_XBENCH_KV_GEN_H
#define BENCH_XBENCH_KV_GEN_H

#include "bench/xbench/plan/gen.h"

struct xb_kv_io {
	enum xb_op op;
	uint32_t bytes;				/* of the value of a put, an add or a cas */
	uint64_t key, seq;
};

struct xb_kv_gen {
	const struct xb_options *opts;
	uint64_t seed, rng, ios_max;		/* ios_max 0: no limit */
	uint32_t job, counters;
	uint64_t mix_below[XB_NR_OPS];	/* thresholds over 2^32 of what is mixed in, cumulative */
	uint64_t read_below;			/* the same for gets among the rest */
	bool mixed;
	struct xb_zipf zipf;
	uint64_t seq, ios;			/* ios: of this round */
};

void xb_kv_gen_init(struct xb_kv_gen *g, const struct xb_options *o, uint32_t job);
/* False at the end of the job. */
bool xb_kv_gen_next(struct xb_kv_gen *g, struct xb_kv_io *io);
void xb_kv_gen_restart(struct xb_kv_gen *g);

/* The name of a key: key_size bytes, of which the last ones are digits. The others never change. */
void xb_kv_name_begin(char *name, uint64_t key_size);
void xb_kv_name(char *name, uint64_t key_size, uint64_t key);

#endif
