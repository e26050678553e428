/* data - the data of pages: prefetched before it is needed, and copied.
 *
 * A core waits for a limited number of cache lines at a time. That bounds its rate of copying. Two
 * things make a copy faster than memcpy() alone. Lines are prefetched while something else is done.
 * Lines that are overwritten as a whole need not come from memory first.
 *
 * data_copy_past() does the latter: its stores go past the caches, to memory. So such a copy reads
 * half as much, and other data stays in the caches. Its stores are in no order with others. The
 * function data_settle() waits for them. It must be called before any store that says that the data
 * is there. Data that was written so comes from memory when it is read. In a cache of gigabytes,
 * little of it would still be in the processor's caches anyway.
 *
 * The best way differs between processors, by up to half the rate (docs/BENCHMARKS.md). While
 * data_copy() copies one page of a read of several pages, it prefetches:
 *
 *   AMD			  all lines of the next but one: it fetches few others by itself
 *   AMD, since Zen 5		  the same where pages lie side by side; else the first lines of the
 *				  next one, from where it goes on by itself
 *   Intel, and others		  two lines of each eight of the next but one: it fetches those
 *				  beside them by itself; with AVX-512 of the next one, bit by bit
 *
 * Through the caches, the C library copies on AMD. Elsewhere, data_copy_between() copies if there
 * is AVX-512 and a next page to prefetch. Otherwise the code copies that gcc makes for a known
 * size.
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
