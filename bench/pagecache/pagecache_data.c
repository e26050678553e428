/* pagecache_data.c - which page is next, and what is read and written of it.
 *
 * All systems use these functions, so the order of the pages and the work on their data is the same.
 * The number of words of each sum is a constant, which lets the compiler use vectors. The result is
 * printed in the end, so that no read is left out.
 */
#include "bench/pagecache/pagecache.h"

#define LINE_WORDS (LINE / sizeof(uint64_t))
#define PAGE_WORDS (PAGE / sizeof(uint64_t))

/* (splitmix64: G. Steele et al., "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014) */
uint64_t page_next(struct job *j)
{
	uint64_t x;

	if (j->in_sequence)
		return j->at++;
	x = j->random += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return (uint64_t)((unsigned __int128)x * j->nr_pages >> 64);
}

static uint64_t sum_line(const uint64_t *word)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < LINE_WORDS; i++)
		sum += word[i];
	return sum;
}

/* All but the first line. */
static uint64_t sum_rest(const uint64_t *word)
{
	uint64_t sum = 0;

	for (size_t i = LINE_WORDS; i < PAGE_WORDS; i++)
		sum += word[i];
	return sum;
}

/* The same. Memory sends the next page while this one is summed: a core that only reads page after
 * page waits for the first lines of each. */
static uint64_t sum_rest_ahead(const uint64_t *word, const uint64_t *next)
{
	uint64_t sum = 0;

	for (size_t i = LINE_WORDS; i < PAGE_WORDS; i += LINE_WORDS) {
		__builtin_prefetch(next + i, 0, 2);
		sum += sum_line(word + i);
	}
	return sum;
}

void page_read(struct job *j, uint64_t nr, const void *page, const void *next)
{
	uint64_t line, rest = 0;

	if (next)
		__builtin_prefetch(next);
	line = sum_line(page);
	if (j->o->touch == ALL_LINES)
		rest = next ? sum_rest_ahead(page, next) : sum_rest(page);
	j->wrong += line != LINE_WORDS * nr + LINE_WORDS * (LINE_WORDS - 1) / 2;
	j->sum += line + rest;
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
