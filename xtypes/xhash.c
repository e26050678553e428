/* xhash - the writers' side of the table. Contract, algorithm and invariants: xhash.h. */
#include "xtypes/xhash.h"

#include <assert.h>
#include <errno.h>

/* log2 of the number of slots: the smallest power of two that is at least twice the capacity. */
static uint32_t slots_bits(uint32_t capacity)
{
	uint32_t bits = 1;

	assert(capacity >= 1 && capacity <= XHASH_CAPACITY_MAX);
	while ((UINT64_C(1) << bits) < 2 * (uint64_t)capacity)
		bits++;
	return bits;
}

size_t xhash_mem_bytes(uint32_t capacity)
{
	return sizeof(uint64_t) << slots_bits(capacity);
}

static uint64_t slot_get(const struct xhash *h, uint32_t at)
{
	return atomic_load_explicit(&h->slots[at], memory_order_relaxed);
}

static void slot_set(struct xhash *h, uint32_t at, uint64_t v)
{
	/* release: partner is the acquire in xhash_probe(); the entry, the odd sequence and the
	 * new place of a shifted entry come before the slot */
	atomic_store_explicit(&h->slots[at], v, memory_order_release);
}

static void nr_add(struct xhash *h, uint32_t delta)
{
	atomic_store_explicit(&h->nr, xhash_nr(h) + delta, memory_order_relaxed);
}

static void seq_bump(struct xhash *h)
{
	uint32_t seq = atomic_load_explicit(&h->seq, memory_order_relaxed);

	/* release: partner is the acquire in xhash_find(). For the odd value the release of the
	 * slots that follow would do. */
	atomic_store_explicit(&h->seq, seq + 1, memory_order_release);
}

void xhash_init(struct xhash *h, void *mem, uint32_t capacity)
{
	uint32_t bits = slots_bits(capacity);
	uint32_t i;

	h->slots = mem;
	h->mask = (uint32_t)((UINT64_C(1) << bits) - 1);
	h->shift = 32 - bits;
	h->capacity = capacity;
	atomic_init(&h->seq, 0);
	atomic_init(&h->nr, 0);
	for (i = 0; i < h->mask; i++)
		atomic_init(&h->slots[i], 0);
	atomic_init(&h->slots[h->mask], 0);
}

int xhash_insert(struct xhash *h, uint64_t hash, uint32_t idx)
{
	uint32_t tag = xhash_tag(hash);
	uint32_t at = xhash_home(h, tag);

	assert(idx != XHASH_NONE);
	if (xhash_nr(h) == h->capacity)
		return -ENOSPC;
	while (slot_get(h, at) != 0)
		at = (at + 1) & h->mask;
	slot_set(h, at, (uint64_t)tag << 32 | (idx + 1));
	nr_add(h, 1);
	return 0;
}

/* Closes the gap at `hole`: each later entry of the run that may not be left behind an empty slot
 * moves into it and leaves a new gap. An entry at j with home k stays iff k is in (hole, j]. */
static void shift_back(struct xhash *h, uint32_t hole)
{
	uint32_t at = hole;
	uint32_t home;
	uint64_t v;

	for (;;) {
		at = (at + 1) & h->mask;
		v = slot_get(h, at);
		if (v == 0)
			break;
		home = xhash_home(h, (uint32_t)(v >> 32));
		if (((at - home) & h->mask) < ((at - hole) & h->mask))
			continue;
		slot_set(h, hole, v);
		hole = at;
	}
	slot_set(h, hole, 0);
}

bool xhash_remove(struct xhash *h, uint64_t hash, uint32_t idx)
{
	uint32_t tag = xhash_tag(hash);
	uint64_t want = (uint64_t)tag << 32 | (idx + 1);
	uint32_t at = xhash_home(h, tag);
	uint64_t v;

	for (;; at = (at + 1) & h->mask) {
		v = slot_get(h, at);
		if (v == 0)
			return false;
		if (v == want)
			break;
	}
	seq_bump(h);
	shift_back(h, at);
	seq_bump(h);
	nr_add(h, -1u);
	return true;
}

void xhash_check(const struct xhash *h)
{
	uint64_t nr_slots = (uint64_t)h->mask + 1;
	uint64_t i;
	uint32_t nr = 0, at;
	uint64_t v;

	for (i = 0; i < nr_slots; i++) {
		v = slot_get(h, (uint32_t)i);
		if (v == 0)
			continue;
		nr++;
		for (at = xhash_home(h, (uint32_t)(v >> 32)); at != i; at = (at + 1) & h->mask)
			assert(slot_get(h, at) != 0);					/* H2 */
	}
	assert(nr == xhash_nr(h) && nr <= h->capacity && h->capacity <= nr_slots / 2);	/* H1 */
	assert(!(atomic_load_explicit(&h->seq, memory_order_relaxed) & 1));		/* H3 */
}
