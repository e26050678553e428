/* xorshift - random numbers for tests that repeat from a seed.
 *
 * Algorithm: xorshift64 (G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8, 2003).
 * The state is never 0.
 */
#ifndef TESTS_RIG_XORSHIFT_H
#define TESTS_RIG_XORSHIFT_H

#include <stdint.h>

#define XORSHIFT_SEED 88172645463325252ull	/* the paper's */

static inline uint64_t xorshift_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* 0 .. below - 1; below > 0. */
static inline uint32_t xorshift_below(uint64_t *state, uint32_t below)
{
	return (uint32_t)(xorshift_next(state) >> 11) % below;
}

#endif
