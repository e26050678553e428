/* reactor_inside - what reactor.c and reactor_set.c share; nobody else includes it.
 *
 * Contract: fields without a note are their thread's, or written before the threads start.
 */
#ifndef PEERS_COMMON_REACTOR_INSIDE_H
#define PEERS_COMMON_REACTOR_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "peers/common/reactor.h"
#include "peers/common/watch.h"

/* A peer that a set drives. */
struct served {
	struct reactor_set *set;
	struct peer *peer;
	struct reactor *home;
	_Atomic enum reactor_phase phase;		/* home writes it */
	_Atomic uint64_t left_bytes, total_bytes;	/* home writes them */
	_Atomic uint32_t ports_away;			/* ports that other reactors have still */
	int watched[PEER_MAX_THREADS];			/* descriptors of ports that were handed over */
	/* home's own */
	bool gathered;
	uint64_t again_ns, retry_ns, turn_ns;
};

struct reactor {
	struct reactor_set *set;
	uint32_t nr;
	int cpu;					/* -1: any */
	bool running;
	pthread_t thread;
	struct peer_port **port;			/* room for all ports of all peers */
	uint32_t nr_ports;
	uint64_t tick_ns, idle_since_ns;		/* idle_since_ns 0: not idle */
	uint32_t looks;
	struct watch watch;
	_Alignas(64) _Atomic bool kicked;		/* any thread sets it, the reactor clears it */
};

struct reactor_set {
	unsigned nr, nr_reactors;
	int events;
	pthread_mutex_t leaving;			/* held while a peer is closed: its ports may be rung under it */
	struct served *served;
	struct reactor reactor[PEER_MAX_THREADS];
};

uint64_t reactor_clock_ns(void);
/* Before the threads start, or in the reactor's own. */
void reactor_add_port(struct reactor *r, struct peer_port *pp);
void *reactor_main(void *arg);
/* arg: a struct peer_port; for struct watch. */
void reactor_ring(void *arg);

#endif
