/* data - the data of pages: asked for before it is wanted, and copied.
 *
 * What a core can do about data is bounded by the lines that it waits for at a time. Two things
 * make a copy faster than memcpy() alone: lines are asked for while something else is done; and
 * lines that are overwritten as a whole need not come from memory first.
 *
 * data_copy_past() does the latter: its stores go past the caches, to memory. So half of what such
 * a copy reads is not read, and what others have in the caches stays there. Its stores are in no
 * order with others: data_settle() waits for them, before anything is stored that says that they
 * are there. What was written so comes from memory when it is read; of what is written into a cache
 * of gigabytes little would be in the processor's any more.
 *
 * What is best differs between processors, by up to twice the rate (docs/BENCHMARKS.md):
 *			      AMD		     Intel, and others
 *   a page of several	      all its lines: it	     two lines of each eight: it fetches those
 *			      fetches few others     beside them by itself
 *   it is asked for	      two pages before	     with AVX-512, while the page before it is
 *						     copied; else as there
 *   through the caches       the C library's copy   what gcc makes of a size that it knows
 *
 * Contract: any thread. Pages are whole, and aligned to their size.
 */
#ifndef PEERS_CACHED_DATA_H
#define PEERS_CACHED_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "xseg/xseg.h"

#define PAGE_LINES (XSEG_PAGE_SIZE / 64)

static inline bool data_on_amd(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_is("amd");
#else
	return false;
#endif
}

/* gcc takes a function that only asks for lines for one without any effect, and leaves its calls
 * out. */
static inline void data_effect(const char *data)
{
	__asm__ volatile("" : : "r"(data));
}

/* Asks for the first lines of a page that is to be read. */
static inline void data_prefetch(const char *data, uint32_t lines)
{
	data_effect(data);
	for (uint32_t i = 0; i < lines; i++)
		__builtin_prefetch(data + i * 64, 0);
}

/* Asks for all lines of a page, into the second cache: a core that asks for more than some 20 into
 * the first one stops until they are there. */
static inline void data_prefetch_all(const char *data)
{
	data_effect(data);
	for (uint32_t i = 0; i < PAGE_LINES; i++)
		__builtin_prefetch(data + i * 64, 0, 2);
}

/* Whether a page is asked for while the one before it is copied. */
static inline bool data_asks_between(void)
{
#if defined(__x86_64__)
	return !data_on_amd() && __builtin_cpu_supports("avx512f");
#else
	return false;
#endif
}

/* How many pages ahead data_copy() asks. */
static inline uint32_t data_ahead(void)
{
	return data_asks_between() ? 1 : 2;
}

/* Asks for a page that is to be read after others. */
static inline void data_prefetch_ahead(const char *data)
{
	if (data_on_amd()) {
		data_prefetch_all(data);
		return;
	}
	data_effect(data);
	for (uint32_t i = 0; i < PAGE_LINES; i += 8) {
		__builtin_prefetch(data + i * 64, 0, 2);
		__builtin_prefetch(data + (i + 1) * 64, 0, 2);
	}
}

/* data_copy() where data_asks_between(). */
void data_copy_between(void *to, const void *from, const void *next);

/* A page, through the caches; asks for the page that is copied as the data_ahead()th after it, if
 * there is one. */
static inline void data_copy(void *to, const void *from, const void *next)
{
	size_t size = XSEG_PAGE_SIZE;

	if (next && data_asks_between()) {
		data_copy_between(to, from, next);
		return;
	}
	if (next)
		data_prefetch_ahead(next);
	if (data_on_amd()) {
		__asm__("" : "+r"(size));	/* gcc shall not know it */
		memcpy(to, from, size);
	} else {
		memcpy(to, from, XSEG_PAGE_SIZE);
	}
}

void data_copy_past(void *to, const void *from);	/* a page; then, after the last of them: */
void data_settle(void);

/* what it does on processors without AVX-512 */
void data_copy_past_old(void *to, const void *from);

#endif
