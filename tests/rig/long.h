/* long - whether a test is to take its time: LONG is in the environment, as with
 * `make check-long`. */
#ifndef TESTS_UNIT_LONG_H
#define TESTS_UNIT_LONG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static inline bool is_long(void)
{
	const char *wanted = getenv("LONG");

	return wanted && *wanted;
}

/* In a short test one in so many. */
static inline uint32_t in_short(uint32_t nr, uint32_t one_in)
{
	return is_long() ? nr : nr / one_in;
}

/* In a short test a load of real processes rests now and then: others want a processor, too. */
static inline void rest_in_short(uint32_t us)
{
	if (!is_long())
		usleep(us);
}

#endif
