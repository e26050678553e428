/* rng - the simulator's random numbers: everything that a run does comes from one seed.
 *
 * Algorithm: splitmix64 (G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number
 * Generators", OOPSLA 2014).
 */
#ifndef TESTS_SIM_RNG_H
#define TESTS_SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline uint64_t rng_next(struct rng *r)
{
	return rng_mix(r->state += 0x9e3779b97f4a7c15ull);
}

/* 0 .. n - 1; n > 0. */
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}

/* lo .. hi */
static inline uint32_t rng_range(struct rng *r, uint32_t lo, uint32_t hi)
{
	return lo + rng_below(r, hi - lo + 1);
}

/* One of n times. */
static inline bool rng_one_in(struct rng *r, uint32_t n)
{
	return rng_below(r, n) == 0;
}

static inline bool rng_percent(struct rng *r, uint32_t percent)
{
	return rng_below(r, 100) < percent;
}

#endif
