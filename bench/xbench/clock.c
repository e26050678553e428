/* clock - see clock.h. */
#include "bench/xbench/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

struct xb_clock xb_clock;

#if defined(__x86_64__)
#define CALIBRATE_NS 10000000u

/* CPUID 80000007h, EDX bit 8: the counter keeps its rate in all states of the CPU. */
static int counter_is_steady(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8);
}

void xb_clock_init(void)
{
	struct timespec nap = { .tv_nsec = CALIBRATE_NS };
	uint64_t ns, count;

	if (!counter_is_steady())
		return;
	ns = xb_clock_system_ns();
	count = __rdtsc();
	nanosleep(&nap, NULL);
	ns = xb_clock_system_ns() - ns;
	xb_clock.base = count;
	count = __rdtsc() - count;
	if (count)
		xb_clock.scale = (uint64_t)(((unsigned __int128)ns << 32) / count);
}
#else
void xb_clock_init(void)
{
}
#endif
