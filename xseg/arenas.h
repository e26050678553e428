/* arenas - the formats of the tables that a peer leaves to its next process.
 *
 * After an upgrade the next process is of another build. So each format has a number here, and all
 * numbers are in the stamp of the segment (layout_stamp()): a program never finds a format that it
 * does not know. Raise the number with every change of a format. A change of sizes or offsets in
 * the segment itself is in the stamp anyway.
 *
 * Contract: constants only; any room.
 */
#ifndef XSEG_ARENAS_H
#define XSEG_ARENAS_H

#include <stdint.h>

enum {
	XSEG_FORMAT_CACHED = 11,	/* life/arena.c: objects, chunks, slots, settings */
	XSEG_FORMAT_FILED  = 1,		/* filed_marks.c */
	XSEG_FORMAT_KVD	   = 2,		/* life.c */
	XSEG_FORMAT_MEMD   = 1,		/* memd_store.c */
	XSEG_FORMAT_WORDS  = 1,		/* notes of requests, words of peers */
};

/* The first word of an arena: seven letters, and the format as a digit. */
#define XSEG_ARENA_MAGIC(letters, format) ((uint64_t)('0' + (format)) << 56 | UINT64_C(letters))

#endif
