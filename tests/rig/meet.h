/* meet - threads wait for each other in rounds, to begin at once what is to overlap.
 *
 * Each thread polls for a while, and then sleeps until the last one is there. With processors to
 * spare, all begin within a microsecond. On a loaded machine, threads that only yield would need a
 * time slice of every other process for each round.
 */
#ifndef TESTS_RIG_MEET_H
#define TESTS_RIG_MEET_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The one that makes *n `want` is the last to come. */
static inline void meet(_Atomic int *n, int want)
{
	int is = atomic_fetch_add(n, 1) + 1;

	if (is == want)
		syscall(SYS_futex, n, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	for (int spins = 0; is < want; spins++) {
		if (spins >= 4096)
			syscall(SYS_futex, n, FUTEX_WAIT_PRIVATE, is, NULL, NULL, 0);
		is = atomic_load(n);
	}
}

#endif
