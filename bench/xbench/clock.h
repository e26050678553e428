/* clock - monotonic nanoseconds that are cheap to read: by the CPU's time stamp counter where that
 * counts at one rate for ever, else by clock_gettime().
 *
 * Contract: xb_clock_init() once, before any thread reads; it takes 10 ms. xb_clock_ns() from any
 * thread. Times are comparable between threads of the process, not with other clocks (off by some
 * parts in 10^5).
 */
#ifndef BENCH_XBENCH_CLOCK_H
#define BENCH_XBENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

struct xb_clock {
	uint64_t base;				/* of the counter */
	uint64_t scale;			/* ns a count, times 2^32; 0: the counter is not used */
};

extern struct xb_clock xb_clock;

void xb_clock_init(void);

static inline uint64_t xb_clock_system_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t xb_clock_ns(void)
{
#if defined(__x86_64__)
	if (xb_clock.scale)
		return (uint64_t)((unsigned __int128)(__rdtsc() - xb_clock.base) * xb_clock.scale >>
				  32);
#endif
	return xb_clock_system_ns();
}

#endif
