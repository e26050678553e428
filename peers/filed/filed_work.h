/* filed_work - the threads for calls that block: opening, syncing, deleting, unaligned I/O.
 *
 * Contract: work is pushed from any thread and run once by one of the pool's threads, in order of
 * arrival. A piece of work belongs to the pool from push until its run() is called, which may push
 * it again. Nothing allocates after open.
 *
 * Waking a thread costs more than most of the work. So a push wakes one only if no work waited. A
 * worker that takes some work wakes the next one only if more waits.
 *
 * Invariants:
 *   J1  While work waits, all workers are at work, or one has been woken for it, or is about to be.
 */
#ifndef PEERS_FILED_FILED_WORK_H
#define PEERS_FILED_FILED_WORK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "xseg/xseg.h"

#define FILED_WORKERS	   4
#define FILED_BLOCK_MAX	   4096u		/* what O_DIRECT may ask for */
/* The largest request, rounded out to whole blocks, and a block more. */
#define FILED_BOUNCE_BYTES (XSEG_REQ_BYTES + 3 * FILED_BLOCK_MAX)

struct filed_work {
	/* `bounce`: FILED_BOUNCE_BYTES of aligned memory, the worker's */
	void (*run)(struct filed_work *w, void *arg, uint8_t *bounce);
	struct filed_work *next;
};

struct filed_pool {
	void *arg;
	uint8_t *bounce;			/* FILED_BOUNCE_BYTES for each thread */
	uint32_t nr_threads;			/* at most FILED_WORKERS */
	pthread_t thread[FILED_WORKERS];

	pthread_mutex_t lock;			/* a leaf; guards what follows */
	pthread_cond_t some;			/* there is work, or an end */
	struct filed_work *first, **last;
	uint32_t nr_taken;			/* workers that have started */
	bool stopping;
};

/* arg is handed to all work. Of `nr` threads, at most FILED_WORKERS. */
int filed_pool_open(struct filed_pool *p, uint32_t nr, void *arg) XSEG_MUST_CHECK;
/* Waits for what runs; what has not begun is dropped. */
void filed_pool_close(struct filed_pool *p);
void filed_pool_push(struct filed_pool *p, struct filed_work *w);

#endif
