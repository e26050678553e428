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
 * What is best differs between processors, by up to half the rate (docs/BENCHMARKS.md). Of a read
 * of several pages are asked for, while one is copied:
 *   AMD			  all lines of the next but one: it fetches few others by itself
 *   AMD, since Zen 5		  the same where pages lie side by side; else the first lines of the
 *				  next one, from where it goes on by itself
 *   Intel, and others		  two lines of each eight of the next but one: it fetches those
 *				  beside them by itself; with AVX-512 of the next one, bit by bit
 * And through the caches copies the C library on AMD, else what gcc makes of a size that it knows.
 *
 * Contract: any thread. Pages are whole, and aligned to their size.
 */
#ifndef PEERS_CACHED_DATA_H
#define PEERS_CACHED_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "xseg/xseg.h"

#define PAGE_LINES  (XSEG_PAGE_SIZE / 64)
#define FIRST_LINES 12u

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

/* The same into the second cache: a core that asks for more than some 20 lines into the first one
 * stops until they are there. */
static inline void data_prefetch_second(const char *data, uint32_t lines)
{
	data_effect(data);
	for (uint32_t i = 0; i < lines; i++)
		__builtin_prefetch(data + i * 64, 0, 2);
}

/* Asks for all lines of a page. */
static inline void data_prefetch_all(const char *data)
{
	data_prefetch_second(data, PAGE_LINES);
}

/* Whether a page is asked for bit by bit, while the one before it is copied. */
static inline bool data_asks_between(void)
{
#if defined(__x86_64__)
	return !data_on_amd() && __builtin_cpu_supports("avx512f");
#else
	return false;
#endif
}

/* Whether the first lines of a page will do, where it lies anywhere. Told by an instruction that of
 * AMD's only these have, as gcc 12 does not know their name. */
static inline bool data_asks_first(void)
{
#if defined(__x86_64__)
	return data_on_amd() && __builtin_cpu_supports("avx512vp2intersect");
#else
	return false;
#endif
}

/* How many pages of a request are asked for before it is served, by whether its first two lie side
 * by side. */
static inline uint32_t data_ahead(bool beside)
{
	return data_asks_between() || (data_asks_first() && !beside) ? 1 : 2;
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

/* While `from` is copied. */
static inline void data_ask(const char *from, const char *next, const char *after)
{
	if (!data_asks_first()) {
		if (after)
			data_prefetch_ahead(after);
	} else if (after && after == from + 2 * XSEG_PAGE_SIZE) {
		data_prefetch_all(after);
	} else if (next) {
		data_prefetch_second(next, FIRST_LINES);
	}
}

/* A page, through the caches; `next` is copied next, and `after` after that: NULL where there is
 * none. */
static inline void data_copy(void *to, const void *from, const void *next, const void *after)
{
	size_t size = XSEG_PAGE_SIZE;

	if (next && data_asks_between()) {
		data_copy_between(to, from, next);
		return;
	}
	data_ask(from, next, after);
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
