/* limit_server.c - the server of bench-limit: takes words from the lanes, does the mode's work,
 * pushes them back.
 *
 * The server does each step for all words of a batch before the next step. Each step prefetches the
 * data of the next one, so the misses of the batch overlap.
 */
#include <assert.h>
#include <string.h>

#include "bench/limits/limit.h"

struct server {
	struct limit *l;
	struct xq_reader asks[MAX_JOBS];
	struct xq_writer answers[MAX_JOBS];
};

struct wanted {
	const struct limit *l;
	uint64_t number;
};

static bool is_wanted(void *arg, uint32_t i)
{
	const struct wanted *w = arg;

	return object_at(w->l, i)->number == w->number;
}

/* The slots of the index that hold the requests' pages. */
static void look_up(const struct limit *l, const uint64_t *word, uint32_t n, uint32_t **slot)
{
	uint64_t hash[MAX_BATCH];
	uint32_t i;

	for (i = 0; i < n; i++) {
		hash[i] = bench_scramble(word_block(word[i]) / l->object_pages);
		xhash_prefetch(&l->index, hash[i]);
	}
	for (i = 0; i < n; i++) {
		uint32_t block = word_block(word[i]);
		struct wanted wanted = { l, block / l->object_pages };
		uint32_t at = xhash_find(&l->index, hash[i], is_wanted, &wanted);

		assert(at != XHASH_NONE);
		slot[i] = &object_at(l, at)->page[block % l->object_pages];
		__builtin_prefetch(slot[i]);
	}
}

static void serve_echo(struct limit *l, uint32_t job, uint64_t *word, uint32_t n)
{
	(void)l, (void)job, (void)word, (void)n;
}

/* What was found is answered as a number, which the client compares and does not follow. */
static void serve_lookup(struct limit *l, uint32_t job, uint64_t *word, uint32_t n)
{
	uint32_t *slot[MAX_BATCH];

	(void)job;
	look_up(l, word, n, slot);
	for (uint32_t i = 0; i < n; i++)
		word[i] = word_make(word_slot(word[i]), word_block(word[i]), *slot[i]);
}

static void lend(struct limit *l, uint32_t *list, const uint32_t *slot)
{
	for (uint32_t k = 1; k < l->block_pages; k++)
		list[k] = slot[k];
}

static void take_given(struct limit *l, uint32_t *list, uint32_t *slot)
{
	for (uint32_t k = 1; k < l->block_pages; k++) {
		uint32_t given = list[k];

		list[k] = slot[k];
		slot[k] = given;			/* L3 */
	}
}

static void serve_loan(struct limit *l, uint32_t job, uint64_t *word, uint32_t n)
{
	uint32_t *slot[MAX_BATCH];

	look_up(l, word, n, slot);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t number = word_slot(word[i]);
		uint32_t was = *slot[i];

		if (l->o->rw == RANDREAD) {
			lend(l, list_at(l, job, number), slot[i]);
		} else {
			take_given(l, list_at(l, job, number), slot[i]);
			*slot[i] = word_page(word[i]);	/* L3 */
		}
		word[i] = word_make(number, word_block(word[i]), was);
	}
}

static void serve_copy(struct limit *l, uint32_t job, uint64_t *word, uint32_t n)
{
	uint32_t *slot[MAX_BATCH];

	look_up(l, word, n, slot);
	for (uint32_t i = 0; i < n; i++)
		limit_prefetch_page(page_at(l, *slot[i]));
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *buffer = page_at(l, own_page(l, job, word_slot(word[i])));

		for (uint32_t k = 0; k < l->block_pages; k++, buffer += PAGE) {
			uint8_t *page = page_at(l, slot[i][k]);

			if (l->o->rw == RANDREAD)
				memcpy(buffer, page, PAGE);
			else
				memcpy(page, buffer, PAGE);
		}
	}
}

/* Turns requests into answers, in place. */
static void (*const serve_fns[])(struct limit *l, uint32_t job, uint64_t *word, uint32_t n) = {
	[ECHO_WORD] = serve_echo,
	[LOOKUP] = serve_lookup,
	[LOAN] = serve_loan,
	[COPY] = serve_copy,
};

static uint32_t serve_lane(struct server *s, uint32_t job)
{
	uint64_t word[MAX_BATCH];
	uint32_t n = xq_take(&s->asks[job], word, s->l->batch);

	if (!n)
		return 0;
	xq_release(&s->asks[job], n);
	serve_fns[s->l->o->mode](s->l, job, word, n);
	for (uint32_t i = 0; i < n; i++) {
		bool pushed = xq_push(&s->answers[job], word[i]);

		assert(pushed);				/* L2 */
	}
	xq_publish(&s->answers[job]);
	return n;
}

void limit_serve(struct limit *l)
{
	struct server s = { .l = l };
	bool shared = limit_pin(l->o, 0);
	uint32_t nr = l->o->numjobs, looks = 0, done;

	for (uint32_t i = 0; i < nr; i++) {
		xq_reader_attach(&s.asks[i], l->asks[i], l->lane_slots);
		xq_writer_attach(&s.answers[i], l->answers[i], l->lane_slots);
	}
	/* acquire: partner is the release in limit_run_client(), whose lanes are empty then */
	while (atomic_load_explicit(l->ended, memory_order_acquire) < nr) {
		done = 0;
		for (uint32_t i = 0; i < nr; i++)
			done += serve_lane(&s, i);
		if (done)
			looks = 0;
		else
			limit_idle(shared, &looks);
	}
}
