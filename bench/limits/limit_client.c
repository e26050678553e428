/* limit_client.c - a client of bench-limit: keeps its slots busy, touches the data of its answers,
 * checks it, and counts.
 *
 * --touch says how much of its data a client touches: the first line of each page, or all of it. A
 * client reads a page where it is: in its own buffer after a copy, in the set after a loan. A
 * client gives another page each time: the page that the last answer gave back.
 *
 * First lines of pages all have the same set of the first cache, which holds 8 or 12 lines. If a
 * client asks for more at once, the first lines are gone before it reads them. So it takes at most
 * 8 answers with loans together.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bench/limits/limit.h"

#define CLOCK_EVERY	64u			/* rounds between looks at the clock */

struct slot {
	uint64_t ticks;				/* when it was asked */
	uint32_t block;
	uint32_t own;				/* the first page of its own */
};

struct client {
	struct limit *l;
	struct result *result;
	struct xq_writer asks;
	struct xq_reader answers;
	uint32_t nr, inflight, round;
	uint64_t random, nr_blocks;
	uint64_t from_ns, end_ns, from_ticks;
	bool counting, over;
	struct slot *slots;
};

static uint64_t next_random(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return bench_scramble(*state);
}

/* ---- data -------------------------------------------------------------------------------- */

typedef uint64_t line_t __attribute__((vector_size(LINE), aligned(LINE)));

static uint64_t read_page(uint8_t *page)
{
	const line_t *line = (const line_t *)(const void *)page;
	line_t sum = line[0];

	for (uint32_t i = 1; i < PAGE / LINE; i++)
		sum += line[i];
	return sum[0] ^ sum[7];
}

static void write_page(uint8_t *page, uint64_t block, uint32_t touch)
{
	if (touch == ALL_LINES)
		memset(page, (int)block, PAGE);
	*first_word(page) = block;			/* L1 */
}

/* Page k of a slot's data: where the answer `word` says that it is, or where the next request has
 * it from. */
static uint32_t data_page(const struct client *c, uint64_t slot, uint32_t first, uint32_t k)
{
	if (!k || c->l->o->mode != LOAN)
		return first + k;
	return list_at(c->l, c->nr, slot)[k];
}

static uint32_t data_of(const struct client *c, uint64_t word)
{
	return c->l->o->mode == LOAN ? word_page(word) : c->slots[word_slot(word)].own;
}

/* The number of the block: of a page that was read, or that was given back. */
static void check_data(struct client *c, uint64_t word)
{
	const struct options *o = c->l->o;
	uint64_t slot = word_slot(word);
	uint32_t block = c->slots[slot].block, first = data_of(c, word);

	for (uint32_t k = 0; k < c->l->block_pages; k++) {
		uint8_t *page = page_at(c->l, data_page(c, slot, first, k));

		c->result->wrong += *first_word(page) != block + k;
		if (o->touch == ALL_LINES && o->rw == RANDREAD)
			c->result->sum += read_page(page);
	}
}

static void check(struct client *c, uint64_t word)
{
	const struct options *o = c->l->o;

	c->result->wrong += word_block(word) != c->slots[word_slot(word)].block;
	if (o->mode == LOOKUP)
		c->result->wrong += word_page(word) != word_block(word);
	else if (o->mode == LOAN || (o->mode == COPY && o->rw == RANDREAD))
		check_data(c, word);
	if (o->mode == LOAN && o->rw == RANDWRITE)
		c->slots[word_slot(word)].own = word_page(word);
}

/* ---- requests ---------------------------------------------------------------------------- */

static void ask(struct client *c, uint64_t number, uint64_t now)
{
	unsigned __int128 random = next_random(&c->random);
	struct slot *slot = &c->slots[number];
	bool pushed;

	slot->block = (uint32_t)(random * c->nr_blocks >> 64) * c->l->block_pages;
	slot->ticks = now;
	for (uint32_t k = 0; k < c->l->block_pages && c->l->o->rw == RANDWRITE; k++)
		write_page(page_at(c->l, data_page(c, number, slot->own, k)), slot->block + k,
			c->l->o->touch);
	pushed = xq_push(&c->asks, word_make(number, slot->block, slot->own));
	assert(pushed);					/* L2 */
	c->inflight++;
}

static void look_at_clock(struct client *c)
{
	uint64_t now = bench_now_ns();

	if (!c->counting && now >= c->from_ns) {
		c->counting = true;
		c->from_ns = now;
		c->from_ticks = limit_clock_ticks();
		c->end_ns = now + c->l->o->runtime_ns;
	} else if (c->counting && !c->over && now >= c->end_ns) {
		c->over = true;
		c->counting = false;
		c->result->ns = now - c->from_ns;
		c->result->ticks = limit_clock_ticks() - c->from_ticks;
	}
}

static uint32_t batch_of(const struct limit *l)
{
	return l->o->mode == LOAN ? MIN_BATCH : l->batch;
}

static uint32_t client_round(struct client *c)
{
	uint64_t word[MAX_BATCH], since[MAX_BATCH], now;
	uint32_t n = xq_take(&c->answers, word, batch_of(c->l)), i;

	if (!n)
		return 0;
	xq_release(&c->answers, n);
	now = limit_clock_ticks();
	for (i = 0; i < n && c->l->o->mode >= LOAN; i++)
		__builtin_prefetch(page_at(c->l, data_of(c, word[i])));
	for (i = 0; i < n; i++) {
		uint64_t slot = word_slot(word[i]);

		check(c, word[i]);
		since[i] = now - c->slots[slot].ticks;
		c->inflight--;
		if (!c->over)
			ask(c, slot, now);
	}
	xq_publish(&c->asks);
	for (i = 0; i < n && c->counting; i++)
		xhist_record(&c->result->lat, since[i]);
	c->result->ios += c->counting ? n : 0;
	return n;
}

static void begin(struct client *c)
{
	const struct limit *l = c->l;

	limit_begin(c->l);
	for (uint32_t i = 0; i < l->o->iodepth; i++) {
		c->slots[i].own = own_page(l, c->nr, i);
		for (uint32_t k = 1; k < l->block_pages; k++)
			list_at(l, c->nr, i)[k] = c->slots[i].own + k;
	}
	c->from_ns = bench_now_ns() + l->o->ramp_ns;
	for (uint32_t i = 0; i < l->o->iodepth; i++)
		ask(c, i, limit_clock_ticks());
	xq_publish(&c->asks);
}

int limit_run_client(struct limit *l, uint32_t nr)
{
	struct client c = {
		.l = l, .nr = nr, .result = &l->result[nr], .nr_blocks = l->o->size / l->o->bs
	};
	bool shared = limit_pin(l->o, 1 + nr);
	uint32_t looks = 0;

	c.slots = calloc(l->o->iodepth, sizeof(*c.slots));
	if (!c.slots)
		return 1;
	c.random = l->o->randseed + nr * UINT64_C(0x632be59bd9b4e019);
	xq_writer_attach(&c.asks, l->asks[nr], l->lane_slots);
	xq_reader_attach(&c.answers, l->answers[nr], l->lane_slots);
	begin(&c);
	while (c.inflight) {
		if (++c.round % CLOCK_EVERY == 0)
			look_at_clock(&c);
		if (client_round(&c))
			looks = 0;
		else
			limit_idle(shared, &looks);
	}
	free(c.slots);
	return 0;
}
