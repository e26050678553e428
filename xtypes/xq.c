/* xq - making a lane and taking a side of it over. Contract, algorithm and invariants: xq.h. */
#include "xtypes/xq.h"

#include "xtypes/xline.h"

_Static_assert(sizeof(struct xq) == 128, "the lane's indices have a cache line each");
_Static_assert(offsetof(struct xq, ring) == 128, "the ring follows the indices");
_Static_assert(sizeof(_Atomic uint64_t) == 8, "words of the lane are plain 64-bit words");

static void geometry_check(const struct xq *q, uint32_t nr_slots)
{
	assert(nr_slots != 0 && (nr_slots & (nr_slots - 1)) == 0);
	assert((uintptr_t)q % 64 == 0);
}

size_t xq_size_bytes(uint32_t nr_slots)
{
	geometry_check(NULL, nr_slots);
	return xline_round(sizeof(struct xq) + nr_slots * sizeof(uint64_t));
}

void xq_init(struct xq *q, uint64_t start)
{
	atomic_store_explicit(&q->head, start, memory_order_relaxed);
	/* release: partner is the acquire in the attach of either side */
	atomic_store_explicit(&q->tail, start, memory_order_release);
}

void xq_writer_attach(struct xq_writer *w, struct xq *q, uint32_t nr_slots)
{
	geometry_check(q, nr_slots);
	w->q = q;
	w->mask = nr_slots - 1;
	w->bad = 0;
	/* acquire: partner is the predecessor's release in xq_publish(), or xq_init() */
	w->tail = atomic_load_explicit(&q->tail, memory_order_acquire);
	w->published = w->tail;
	w->head_seen = w->tail - nr_slots;	/* "full": so the first push looks at head */
}

void xq_reader_attach(struct xq_reader *r, struct xq *q, uint32_t nr_slots)
{
	geometry_check(q, nr_slots);
	r->q = q;
	r->mask = nr_slots - 1;
	r->bad = 0;
	r->vain = false;
	/* acquire: partner is the predecessor's release in xq_release(), or xq_init() */
	r->head = atomic_load_explicit(&q->head, memory_order_acquire);
	r->tail_seen = r->head;			/* "empty": so the first take looks at tail */
}

void xq_reader_again(struct xq_reader *r)
{
	/* acquire: as in xq_reader_refresh() */
	uint64_t tail = atomic_load_explicit(&r->q->tail, memory_order_acquire);

	if (tail - r->head > (uint64_t)r->mask + 1) {
		r->head = tail - r->mask - 1;
		r->tail_seen = tail;
	}
	r->bad = 0;
	/* release: as in xq_release() */
	atomic_store_explicit(&r->q->head, r->head, memory_order_release);
}
