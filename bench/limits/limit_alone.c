/* limit_alone.c - the memory as one core sees it, without lanes, lookups or a working server. The
 * other figures of a machine follow from these.
 *
 *      chase    the first line of one page after the other, each at random; the address of the next
 *               one depends on the data of the last one: the latency of memory
 *      lines    the first line of one page after the other, each at random, and none waits for
 *               another: how many lines of memory a core has in flight. All of them have the same
 *               set of its first cache, so as many as that has ways. With --scatter any line of
 *               each page
 *      memcpy   blocks at random are copied from the set into buffers, or back, as the server does
 *               it: the bandwidth of memory. With --scatter a block's pages lie anywhere, as those
 *               of a cache do in which pages have changed places
 */
#include <string.h>

#include "bench/limits/limit.h"

#define ROUND_CHASES	1024u
#define ROUND_LINES	512u
#define SCATTER		UINT64_C(2654435761)	/* prime, and larger than any number of pages */

struct alone {
	struct limit *l;
	struct result *result;
	uint64_t random, nr_blocks;
	uint32_t nr, next_slot;
};

static uint32_t next_block(struct alone *a)
{
	return (uint32_t)bench_random(&a->random, a->nr_blocks) * a->l->block_pages;
}

/* Returns how many I/Os were made. */
static uint32_t chase(struct alone *a)
{
	for (uint32_t i = 0; i < ROUND_CHASES; i++) {
		uint32_t block = next_block(a);
		uint64_t word = *first_word(page_at(a->l, block));

		a->result->wrong += word != block;
		a->random += word;
	}
	return ROUND_CHASES;
}

/* Where they are is known before the first is read, so that nothing else keeps the core busy. */
static uint32_t lines(struct alone *a)
{
	const uint8_t *at[ROUND_LINES];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < ROUND_LINES; i++) {
		at[i] = page_at(a->l, next_block(a));
		if (a->l->o->scatter)
			at[i] += bench_scramble(a->random) % PAGE;
	}
	for (uint32_t i = 0; i < ROUND_LINES; i++)
		sum += *at[i];
	a->result->sum += sum;
	return ROUND_LINES;
}

/* Where the n-th page of the set is. */
static uint32_t page_nr(const struct alone *a, uint32_t n)
{
	return a->l->o->scatter ? (uint32_t)(n * SCATTER % a->l->nr_pages) : n;
}

static uint32_t copy(struct alone *a)
{
	uint32_t block[MIN_BATCH];

	for (uint32_t i = 0; i < MIN_BATCH; i++) {
		block[i] = next_block(a);
		limit_prefetch_page(page_at(a->l, page_nr(a, block[i])));
	}
	for (uint32_t i = 0; i < MIN_BATCH; i++) {
		uint8_t *buffer = page_at(
			a->l, own_page(a->l, a->nr, a->next_slot++ % a->l->o->iodepth));

		for (uint32_t k = 0; k < a->l->block_pages; k++, buffer += PAGE) {
			uint32_t nr = page_nr(a, block[i] + k);
			uint8_t *page = page_at(a->l, nr);

			if (a->l->o->scatter && k + 1 < a->l->block_pages)
				limit_prefetch_page(
					page_at(a->l, page_nr(a, block[i] + k + 1)));
			if (a->l->o->rw == RANDREAD) {
				memcpy(buffer, page, PAGE);
				a->result->wrong += *first_word(buffer) != nr;
			} else {
				*first_word(buffer) = nr;		/* L1 */
				memcpy(page, buffer, PAGE);
			}
		}
	}
	return MIN_BATCH;
}

int limit_run_alone(struct limit *l, uint32_t nr)
{
	static uint32_t (*const fns[])(struct alone *) = {
		[CHASE] = chase, [LINES] = lines, [MEMCPY] = copy
	};
	struct alone a = { .l = l,
		.nr = nr,
		.result = &l->result[nr],
		.random = l->o->randseed + nr,
		.nr_blocks = l->o->size / l->o->bs };
	uint64_t from_ns, end_ns = UINT64_MAX, now_ns, ticks, from_ticks = 0, last = 0;

	limit_pin(l->o, 1 + nr);
	limit_begin(l);
	from_ns = bench_now_ns() + l->o->ramp_ns;
	/* one at the least is counted, however long the CPU was another's */
	for (now_ns = 0; now_ns < end_ns || !a.result->ios; now_ns = bench_now_ns()) {
		uint32_t n = fns[l->o->mode](&a);

		ticks = limit_clock_ticks();
		if (from_ticks) {
			a.result->ios += n;
			xhist_record(&a.result->lat, (ticks - last) / n);
		} else if (now_ns >= from_ns) {
			from_ticks = ticks;
			from_ns = bench_now_ns();
			end_ns = from_ns + l->o->runtime_ns;
		}
		last = ticks;
	}
	a.result->ns = now_ns - from_ns;
	a.result->ticks = limit_clock_ticks() - from_ticks;
	return 0;
}
