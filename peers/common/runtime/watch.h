/* watch - wakes a sleeping reactor when a file descriptor becomes readable: an eventfd of the
 * kernel's asynchronous I/O, or an epoll descriptor, which cannot ring a doorbell.
 *
 * A helper thread sleeps on a futex. The reactor arms it on its own way to sleep; then the helper
 * sleeps in poll(2). While the reactor is awake nothing is called, and the descriptors are not
 * looked at.
 *
 *   state   IDLE     -> ARMED   watch_arm: the reactor, after it has announced its sleep
 *           ARMED    -> IDLE    the helper, when something became readable, before it rings
 *           IDLE     -> ARMED   the helper, when it found nobody to ring
 *           any      -> QUIT    watch_fini
 *
 * Invariants
 *   W1  A descriptor that becomes readable after the reactor's announcement ends its sleep: the
 *       helper polls levels, not edges.
 *   W2  The helper reads the event of an eventfd that it reports, so an event ends one sleep, not
 *       all. An epoll descriptor is left as it is: the reactor that is woken sees to its events.
 *   W3  A descriptor is read only while it is in the list, under the lock. The helper may still
 *       poll one that has been taken out of it, which ends no sleep but its own.
 *
 * Contract: watch_add and watch_remove from any thread; watch_arm from the reactor's. Memory is the
 * caller's.
 */
#ifndef PEERS_COMMON_WATCH_H
#define PEERS_COMMON_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WATCH_MAX 64

struct watch {
	void (*ring)(void *arg);
	_Atomic uint32_t state;
	_Atomic bool started;
	pthread_t thread;
	int poke;				/* eventfd: look at the list again, or quit */
	/* guards what follows; nothing else is taken while it is held, ring() is called under it */
	pthread_mutex_t lock;
	uint32_t nr;
	struct {
		int fd;
		void *arg;
	} entry[WATCH_MAX];
};

void watch_init(struct watch *w, void (*ring)(void *arg));
void watch_fini(struct watch *w);	/* ends the helper */

/* ring(arg) is called from the helper when fd has become readable. fd becomes non-blocking. Starts
 * the helper. */
__attribute__((warn_unused_result))
int watch_add(struct watch *w, int fd, void *arg);
/* Takes out the entry of arg; returns its descriptor or -1. ring(arg) is not called any more when
 * it returns. */
int watch_remove(struct watch *w, void *arg);

/* watch_arm()'s part that is not inlined. */
void watch_arm_slowly(struct watch *w);

enum { WATCH_IDLE, WATCH_ARMED, WATCH_QUIT };

static inline void watch_arm(struct watch *w)
{
	if (atomic_load_explicit(&w->started, memory_order_relaxed) &&
	    atomic_load_explicit(&w->state, memory_order_relaxed) == WATCH_IDLE)
		watch_arm_slowly(w);
}

#endif
