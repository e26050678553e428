/* clock - the time, for a thread that asks for it all the time.
 *
 * It is that of CLOCK_MONOTONIC. A call to the system waits until all loads in flight have ended.
 * In a loop that costs most of the work that the loop could have overlapped. So the system is asked
 * at least once in CLOCK_SPAN_NS. In between the processor's counter says how much later it is. The
 * counter's rate is the rate between the last calls, and is used only if the counter never changes
 * its rate. A rate that differs from the one before by more than one part in 1024 is not used: the
 * thread, or the machine, was stopped in the middle of a call.
 *
 * Invariants
 *   T1  The value of clock_ns() never becomes less.
 *   T2  It is off the system's clock by no more than a part in 1024 of CLOCK_SPAN_NS. A jump of the
 *       system's clock is seen within CLOCK_SPAN_NS. After a long sleep the rate does not show that
 *       the thread was stopped in the middle of a look. Then the clock is behind by that stop,
 *       until the next look.
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
/* Seconds since 1970 by the system's date, which can jump: for peer_port.date_s alone. */
uint32_t clock_date_s(void);

/* How long after `from_ns` it is; 0 if `from_ns` is later, as another thread's clock may say. Every
 * time that one thread notes and another compares goes through here: the plain difference would be
 * five hundred years. */
static inline uint64_t clock_since(uint64_t from_ns, uint64_t now_ns)
{
	return now_ns > from_ns ? now_ns - from_ns : 0;
}

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t clock_ns(struct clock *c)
{
	uint64_t since = clock_counter() - c->count;

	return since < c->span ? c->ns + (since * c->scale >> 32) : clock_look(c);
}

#endif
