/* space - whether a store has little room left: the same limits for the log of the store and for
 * the warnings of xseg.
 *
 * Contract: any thread; pure arithmetic. A struct space is its owner's.
 */
#ifndef PEERS_COMMON_SPACE_H
#define PEERS_COMMON_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#define SPACE_LOW_PART	10u			/* of the store: a tenth */
#define SPACE_LOW_BYTES (UINT64_C(32) << 30)	/* more than that is never little */

/* size_bytes 0: it is not known. */
static inline bool space_is_low(uint64_t size_bytes, uint64_t free_bytes)
{
	return free_bytes < size_bytes / SPACE_LOW_PART && free_bytes < SPACE_LOW_BYTES;
}

/* Files that a file system can have: no room for another one looks like no room at all. */
static inline bool space_files_are_low(uint64_t files, uint64_t free_files)
{
	return free_files < files / (10 * SPACE_LOW_PART);
}

struct space {
	uint64_t size_bytes, free_bytes;	/* 0, 0: not known */
	uint64_t files, free_files;		/* 0, 0: there is no limit */
};

static inline bool space_low(const struct space *s)
{
	return space_is_low(s->size_bytes, s->free_bytes) ||
	       space_files_are_low(s->files, s->free_files);
}

enum space_news { SPACE_SAME, SPACE_LOW, SPACE_ENOUGH };

/* What is worth a line of the log. *low: what was told last. Room that comes and goes at the limit
 * is told once: there is enough again when there is a quarter more. */
static inline enum space_news space_news(const struct space *s, bool *low)
{
	struct space less = *s;

	less.free_bytes -= less.free_bytes / 5;
	less.free_files -= less.free_files / 5;
	if (*low == (*low ? space_low(&less) : space_low(s)))
		return SPACE_SAME;
	*low = !*low;
	return *low ? SPACE_LOW : SPACE_ENOUGH;
}

#endif
