/* pagecache_data.c - which page is next, and what is read and written of it.
 *
 * All systems use these functions, so the order of the pages and the work on their data are the
 * same. The number of words of each sum is a constant, which lets the compiler use vectors. The
 * result is printed in the end, so that no read is left out.
 */
#include "bench/pagecache/pagecache.h"

#define LINE_WORDS (LINE / sizeof(uint64_t))
#define PAGE_WORDS (PAGE / sizeof(uint64_t))
#define QUARTER    (PAGE_WORDS / 4)

uint64_t page_next(struct job *j)
{
	return j->in_sequence ? j->at++ : bench_random(&j->random, j->nr_pages);
}

static uint64_t sum_line(const uint64_t *word)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < LINE_WORDS; i++)
		sum += word[i];
	return sum;
}

/* The quarters side by side, so that memory sends lines of all four at a time. */
static uint64_t sum_page(const uint64_t *word)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < QUARTER; i++)
		sum += word[i] + word[i + QUARTER] + word[i + 2 * QUARTER] + word[i + 3 * QUARTER];
	return sum;
}

/* Memory sends the next page while this one is summed. */
static uint64_t sum_page_ahead(const uint64_t *word, const uint64_t *next)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < PAGE_WORDS; i += LINE_WORDS) {
		__builtin_prefetch(next + i, 0, 2);
		sum += sum_line(word + i);
	}
	return sum;
}

void page_read(struct job *j, uint64_t nr, const void *page, const void *next)
{
	if (j->o->touch == ALL_LINES)
		j->sum += next ? sum_page_ahead(page, next) : sum_page(page);
	else
		j->sum += sum_line(page);
	j->wrong += sum_line(page) != LINE_WORDS * nr + LINE_WORDS * (LINE_WORDS - 1) / 2;
}

void page_write(const struct job *j, uint64_t nr, void *page)
{
	uint64_t *word = page;

	for (size_t i = 0; i < LINE_WORDS; i++)
		word[i] = nr + i;
	if (j->o->touch == ALL_LINES)
		for (size_t i = LINE_WORDS; i < PAGE_WORDS; i++)
			word[i] = nr + i;
}
