/* memd_heap - see memd_heap.h. */
#include "peers/memd/memd_heap.h"

#include <stdbool.h>

static bool before(const struct memd_timer *a, const struct memd_timer *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->seq < b->seq;
}

void memd_heap_push(struct memd_heap *h, struct memd_timer *t)
{
	uint32_t i = h->nr++, up;

	t->seq = h->seq++;
	for (; i; i = up) {
		up = (i - 1) / 2;
		if (!before(t, h->timer[up]))
			break;
		h->timer[i] = h->timer[up];
	}
	h->timer[i] = t;
}

struct memd_timer *memd_heap_pop(struct memd_heap *h)
{
	struct memd_timer *top = h->timer[0], *last = h->timer[--h->nr];
	uint32_t i = 0, child;

	for (; (child = 2 * i + 1) < h->nr; i = child) {
		if (child + 1 < h->nr && before(h->timer[child + 1], h->timer[child]))
			child++;
		if (!before(h->timer[child], last))
			break;
		h->timer[i] = h->timer[child];
	}
	h->timer[i] = last;
	return top;
}
