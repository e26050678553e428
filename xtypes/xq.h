/* xq - the lane: a ring of 64-bit words in shared memory, from one writer to one reader.
 *
 * Algorithm: Lamport's single-producer single-consumer ring (L. Lamport, "Proving the Correctness
 * of Multiprocess Programs", IEEE TSE 1977). Each side has a private copy of the opposite side's
 * index. It reads that index's cache line only when the copy says full or empty (J. Giacomoni et
 * al., "FastForward", PPoPP 2008; P. Lee et al., "A Lock-Free, Cache-Efficient Shared Ring Buffer",
 * ANCS 2009). One store publishes a whole batch.
 *
 * Contract: struct xq lives in shared memory and holds no pointer. One thread at a time owns the
 * writer, and one the reader; they may be in different processes. Nothing here blocks, allocates or
 * makes a system call, and every function is O(1) (take and publish: O(batch)). Nothing wakes the
 * reader. A writer that must wake it publishes, executes a seq_cst fence and looks whether the
 * reader sleeps. The reader announces its sleep, fences and calls xq_has_work() once more.
 *
 * The other side's words are input. The geometry is private to each side, and masks every slot
 * number. A shared index that cannot be true is counted in `bad` and not followed. Then a process
 * has scribbled over it, or had done so when the other side began. The two sides would wait for
 * each other for ever. xq_reader_again() mends that. The reader stores its head again, so the
 * writer finds the position that the reader has released. If the tail cannot be true, the reader
 * gets the words of all slots before it again, old ones too. When it has released them it is where
 * the writer is. So words may come again, or be lost.
 *
 * Invariants:
 *   Q1  head <= tail <= head + nr_slots, in arithmetic modulo 2^64, as each side sees it.
 *   Q2  Only the writer stores tail and the ring, only the reader stores head.
 *   Q3  A word is visible to the reader only after the xq_publish() that covers it.
 *   Q4  A word may be overwritten only after the xq_release() that covers it. A successor of a
 *       reader that died between take and release is given the same words again.
 */
#ifndef XTYPES_XQ_H
#define XTYPES_XQ_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xq {
	_Alignas(64) _Atomic uint64_t tail;	/* the writer's: words published since the start */
	_Alignas(64) _Atomic uint64_t head;	/* the reader's: words released since the start */
	_Alignas(64) _Atomic uint64_t ring[];
};

/* The writer's private side. */
struct xq_writer {
	struct xq *q;
	uint64_t tail;		/* staged up to here */
	uint64_t published;	/* visible up to here: the last value stored to q->tail */
	uint64_t head_seen;	/* the reader has released at least up to here */
	uint32_t mask;		/* nr_slots - 1 */
	uint32_t bad;		/* impossible heads seen */
};

/* The reader's private side. */
struct xq_reader {
	struct xq *q;
	uint64_t head;		/* released up to here: the last value stored to q->head */
	uint64_t tail_seen;	/* the writer has published at least up to here */
	uint32_t mask;		/* nr_slots - 1 */
	uint32_t bad;		/* impossible tails seen */
	bool vain;		/* nothing new was there at the last look */
};

/* Bytes of shared memory for a lane of nr_slots words (a power of two), a multiple of 64. */
size_t xq_size_bytes(uint32_t nr_slots);

/* Makes an empty lane whose indices begin at `start` (0, or near the wrap in tests). Before any
 * attach; q must be aligned to 64 bytes. */
void xq_init(struct xq *q, uint64_t start);

/* Takes a side over, from the beginning or from a predecessor that died: what the predecessor had
 * staged and not published is gone, what it had taken and not released comes again. */
void xq_writer_attach(struct xq_writer *w, struct xq *q, uint32_t nr_slots);
void xq_reader_attach(struct xq_reader *r, struct xq *q, uint32_t nr_slots);

/* Reads the shared head; false if there is no room, or no head to believe. */
static inline bool xq_writer_refresh(struct xq_writer *w)
{
	/* acquire: partner is the release in xq_release(); the reader has copied what it freed */
	uint64_t head = atomic_load_explicit(&w->q->head, memory_order_acquire);
	uint64_t used = w->tail - head;

	if (used > (uint64_t)w->mask + 1) {
		w->bad++;
		return false;
	}
	w->head_seen = head;
	return used <= w->mask;
}

/* Stages one word; false if the lane is full. The reader sees it after xq_publish(). */
static inline bool xq_push(struct xq_writer *w, uint64_t v)
{
	if (w->tail - w->head_seen > w->mask && !xq_writer_refresh(w))
		return false;
	atomic_store_explicit(&w->q->ring[w->tail & w->mask], v, memory_order_relaxed);
	w->tail++;
	return true;
}

/* True if words were pushed that are not published. */
static inline bool xq_staged(const struct xq_writer *w)
{
	return w->tail != w->published;
}

/* Makes all staged words visible, with one store; no store if there are none. */
static inline void xq_publish(struct xq_writer *w)
{
	if (!xq_staged(w))
		return;
	/* release: partner is the acquire in xq_reader_refresh(); the words come before the tail */
	atomic_store_explicit(&w->q->tail, w->tail, memory_order_release);
	w->published = w->tail;
}

/* Reads the shared tail; false if nothing new is there, or no tail to believe. Who waits for one
 * word asks for the line that it will be in, too, and has both at once. Where words are there at
 * each look that would take the line from a writer who is still filling it. */
static inline bool xq_reader_refresh(struct xq_reader *r)
{
	if (r->vain)
		__builtin_prefetch((const void *)&r->q->ring[r->head & r->mask]);
	/* acquire: partner is the release in xq_publish(); the words up to tail are there */
	uint64_t tail = atomic_load_explicit(&r->q->tail, memory_order_acquire);

	if (tail - r->head > (uint64_t)r->mask + 1) {
		r->bad++;
		return false;
	}
	r->tail_seen = tail;
	r->vain = tail == r->head;
	return !r->vain;
}

/* False: it has found no tail to believe, or the writer may find no head to believe, or a wrong
 * one. */
static inline bool xq_reader_is_sound(const struct xq_reader *r)
{
	return !r->bad && atomic_load_explicit(&r->q->head, memory_order_relaxed) == r->head;
}

/* Where it may not be sound: goes on from what is there. Not in a hurry. */
void xq_reader_again(struct xq_reader *r);

/* True if at least one published word is not released. */
static inline bool xq_has_work(struct xq_reader *r)
{
	return r->tail_seen != r->head || xq_reader_refresh(r);
}

/* Copies up to max of the oldest unreleased words to out and says how many. It releases nothing:
 * the same words are given again until xq_release(). It looks at the shared tail only when all
 * that it knew of is released, so it may return less than what is published, never 0 of it. */
static inline uint32_t xq_take(struct xq_reader *r, uint64_t *out, uint32_t max)
{
	uint64_t avail;
	uint32_t nr, i;

	if (!xq_has_work(r))
		return 0;
	avail = r->tail_seen - r->head;
	nr = avail < max ? (uint32_t)avail : max;
	for (i = 0; i < nr; i++)
		out[i] = atomic_load_explicit(&r->q->ring[(r->head + i) & r->mask],
					      memory_order_relaxed);
	return nr;
}

/* Gives the oldest n words' slots back; n is at most what the last xq_take() returned. */
static inline void xq_release(struct xq_reader *r, uint32_t n)
{
	assert(n <= r->tail_seen - r->head);
	r->head += n;
	/* release: partner is the acquire in xq_writer_refresh(); our copies come before it */
	atomic_store_explicit(&r->q->head, r->head, memory_order_release);
}

#endif
