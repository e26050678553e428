/* data - the data of pages: asked for before it is wanted, and copied.
 *
 * What a core can do about data is bounded by the lines that it waits for at a time. Two things
 * make a copy faster than memcpy() alone: lines are asked for while something else is done; and
 * lines that are overwritten as a whole need not come from memory first.
 *
 * data_copy_past() does the latter: its stores go past the caches, to memory. So half of what such
 * a copy reads is not read, and what others have in the caches stays there. Its stores are in no
 * order with others: data_settle() waits for them, before anything is stored that says that they
 * are there. To wait costs as much as a page: so it is for writes of several pages. What was
 * written so comes from memory when it is read; of what is written into a cache of gigabytes little
 * would be in the processor's any more.
 *
 * Contract: any thread. Pages are whole, and aligned to their size.
 */
#ifndef PEERS_CACHED_DATA_H
#define PEERS_CACHED_DATA_H

#include <stdint.h>

#include "xseg/xseg.h"

#define PAGE_LINES (XSEG_PAGE_SIZE / 64)
#define DATA_PAST_PAGES 2u	/* so many pages at a time, and more, are copied past the caches */

/* gcc takes a function that only asks for lines for one without any effect, and leaves its calls
 * out. */
static inline void data_effect(const char *data)
{
	__asm__ volatile("" : : "r"(data));
}

/* Ask for the first lines of a page, that is to be read; that is to be filled. */
static inline void data_prefetch(const char *data, uint32_t lines)
{
	data_effect(data);
	for (uint32_t i = 0; i < lines; i++)
		__builtin_prefetch(data + i * 64, 0);
}
static inline void data_prefetch_fill(char *data, uint32_t lines)
{
	data_effect(data);
	for (uint32_t i = 0; i < lines; i++)
		__builtin_prefetch(data + i * 64, 1);
}

/* Asks for a page that is to be read after DATA_AHEAD - 1 others: for two lines of each eight, into
 * the second cache. On these the processor fetches those beside them by itself, and more at a time
 * than it would if it were asked for all. */
#define DATA_AHEAD 2u
static inline void data_prefetch_ahead(const char *data)
{
	data_effect(data);
	for (uint32_t i = 0; i < PAGE_LINES; i += 8) {
		__builtin_prefetch(data + i * 64, 0, 2);
		__builtin_prefetch(data + (i + 1) * 64, 0, 2);
	}
}

void data_copy_past(void *to, const void *from);	/* a page; then, after the last of them: */
void data_settle(void);

/* what it does on processors without AVX-512 */
void data_copy_past_old(void *to, const void *from);

#endif
