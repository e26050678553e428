/* clock - see clock.h. */
#include "peers/common/clock/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* CPUID 80000007h, EDX bit 8: it keeps its rate in all states of the processor. Asked once, as in a
 * virtual machine the host answers. */
static bool counter_is_steady(void)
{
	static _Atomic int steady;	/* 0: not asked yet; any thread writes it, the same */
	unsigned a, b, c, d;
	int is = atomic_load_explicit(&steady, memory_order_relaxed);

	if (is == 0) {
		is = __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8) ? 1 : -1;
		atomic_store_explicit(&steady, is, memory_order_relaxed);
	}
	return is > 0;
}
#else
static bool counter_is_steady(void)
{
	return false;
}
#endif

static uint64_t system_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static bool agree(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) <= a >> 10;
}

/* The rate since the last time, if that is long ago enough to say something. */
static void learn(struct clock *c, uint64_t now_ns, uint64_t count)
{
	uint64_t passed_ns = now_ns - c->from_ns, counts = count - c->from_count, scale = 0;

	if (passed_ns < CLOCK_SPAN_NS / 2)
		return;
	if (counts)
		scale = (uint64_t)(((unsigned __int128)passed_ns << 32) / counts);
	c->span = scale && agree(c->scale, scale) && counter_is_steady()
			  ? (CLOCK_SPAN_NS << 32) / scale
			  : 0;
	c->scale = scale;
	c->from_ns = now_ns;
	c->from_count = count;
}

uint64_t clock_look(struct clock *c)
{
	/* T1: nothing later has been said */
	uint64_t said_ns = c->ns + (c->span * c->scale >> 32);
	uint64_t now_ns = system_ns(CLOCK_MONOTONIC), count = clock_counter();

	learn(c, now_ns, count);
	c->ns = now_ns > said_ns ? now_ns : said_ns;
	c->count = count;
	return c->ns;
}

uint64_t clock_thread_ns(void)
{
	return system_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint32_t clock_date_s(void)
{
	return (uint32_t)(system_ns(CLOCK_REALTIME) / 1000000000ull);
}

uint64_t clock_ms(void)
{
	return system_ns(CLOCK_MONOTONIC) / 1000000;
}
