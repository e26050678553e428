/* clock - the time, for a thread that asks for it all the time.
 *
 * It is that of CLOCK_MONOTONIC. Asking the system for it waits until all loads that are under way
 * have ended, which in a loop is most of what the loop could have overlapped. So the system is
 * asked once in CLOCK_SPAN_NS at least; in between the processor's counter says how much later it
 * is, by its rate between the last looks, where it counts at one rate for ever. A rate that differs
 * from the one before by more than one part in 1024 is not used: somebody stopped the thread in the
 * middle of a look, or the machine.
 *
 * Invariants
 *   T1  what clock_ns() says never becomes less
 *   T2  it is off the system's clock by no more than a part in 1024 of CLOCK_SPAN_NS, and what the
 *       system's clock jumps is seen within CLOCK_SPAN_NS
 *
 * Contract: a struct clock is one thread's, all zero at first. Those of two threads may differ by
 * T2.
 */
#ifndef PEERS_COMMON_CLOCK_H
#define PEERS_COMMON_CLOCK_H

#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define CLOCK_SPAN_NS 1000000ull

struct clock {
	uint64_t ns, count;			/* at the last look */
	uint64_t scale;			/* ns a count, times 2^32 */
	uint64_t span;			/* so many counts long `scale` holds; 0: it does not */
	uint64_t from_ns, from_count;		/* since then the rate is taken */
};

static inline uint64_t clock_counter(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return 0;
#endif
}

/* Asks the system. */
uint64_t clock_look(struct clock *c);
/* How long the calling thread has run, in nanoseconds; a system call. */
uint64_t clock_thread_ns(void);
/* Milliseconds of CLOCK_MONOTONIC, for who asks now and then. */
uint64_t clock_ms(void);

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t clock_ns(struct clock *c)
{
	uint64_t since = clock_counter() - c->count;

	return since < c->span ? c->ns + (since * c->scale >> 32) : clock_look(c);
}

#endif
