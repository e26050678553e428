/* gen - the sequence of I/Os of a job: operation, place and length of each.
 *
 * Contract: a struct xb_gen belongs to one thread. xb_gen_next() is a pure function of the plan,
 * the job's number and the number of earlier calls. Time, answers and other jobs do not affect it.
 * So a run can be made again without doing its I/O (verify_only). Nothing allocates or blocks.
 *
 * Random offsets are drawn with replacement (fio's norandommap). Zipf ranks come from rejection
 * inversion: exact for any exponent, without tables. (W. Hoermann, G. Derflinger,
 * "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6(3),
 * 1996.) Ranks are spread over the range by a multiplication modulo the number of blocks, so that
 * neighbours in popularity are not neighbours in place.
 *
 * Invariants:
 *   G1  offset and size of each I/O are multiples of 512, within the job's range, and cross no
 *       multiple of `boundary`
 *   G2  seq counts 1, 2, 3 ... over all I/Os of the job, flushes and repetitions included
 */
#ifndef BENCH_XBENCH_GEN_H
#define BENCH_XBENCH_GEN_H

#include "bench/xbench/plan/options.h"

struct xb_io {
	enum xb_op op;
	uint32_t size;				/* bytes; 0 for flush and info */
	uint64_t offset;
	uint64_t from;			/* copy: a place in the object that it copies from */
	uint64_t seq;
	bool barrier;			/* a flush due by --fsync: issued alone, and waited for */
};

struct xb_zipf {
	double exponent, h_x1, h_n, s;
	uint64_t n, step;
};

struct xb_gen {
	const struct xb_options *opts;
	uint64_t seed, rng;
	uint64_t start, length, boundary;	/* bytes; boundary 0: none */
	uint64_t nr_blocks;			/* of bs_min bytes */
	uint64_t nr_sizes;			/* sizes to choose from */
	uint64_t mix_below[XB_NR_OPS];	/* thresholds over 2^32 of what is mixed in, cumulative */
	uint64_t read_below;			/* the same for reads among the rest */
	enum xb_op other;			/* what is not a read */
	bool random, mixed;
	bool whole;			/* all I/Os have one size, and none is to be cut */
	struct xb_zipf zipf;
	/* changed by xb_gen_next() */
	uint64_t seq;
	uint64_t ios, bytes;			/* of this round */
	uint64_t next[XB_NR_OPS];		/* where a sequential op goes on, from start */
	uint32_t unsynced;			/* writes since the last barrier */
};

/* boundary: what no I/O may cross (object size), or 0. */
void xb_gen_init(struct xb_gen *g, const struct xb_options *o, uint64_t boundary, uint32_t job);
/* False at the end of the job. A plan with a runtime and no number_ios never ends. */
bool xb_gen_next(struct xb_gen *g, struct xb_io *io);
/* For --time_based: the same sequence again; seq goes on. */
void xb_gen_restart(struct xb_gen *g);

/* Ranks of 1 to n, of which the i-th is drawn in proportion to i to the power of -exponent. */
void xb_zipf_init(struct xb_zipf *z, double exponent, uint64_t n);
/* A rank of 1 to n. rng: state of a generator. */
uint64_t xb_zipf_rank(const struct xb_zipf *z, uint64_t *rng);

/* Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014. */
static inline uint64_t xb_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline uint64_t xb_random(uint64_t *rng)
{
	return xb_mix(*rng += 0x9e3779b97f4a7c15ull);
}

/* 0 .. n - 1 (D. Lemire, "Fast random integer generation in an interval", 2019, without rejection).
 */
static inline uint64_t xb_random_below(uint64_t *rng, uint64_t n)
{
	return (uint64_t)((unsigned __int128)xb_random(rng) * n >> 64);
}

#endif
