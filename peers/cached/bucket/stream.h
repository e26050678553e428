/* stream - recognises sequential readers among the reads of a cache, and advises which range to
 * read ahead and which data not to keep.
 *
 * The table has 64 streams. A read counts as the pages that it touches. A stream knows its *edge*,
 * the offset up to which it was read. It also knows which of the 64 *pieces* from the edge on were
 * read already. A piece is a page, or about half of a read if that is more.
 *
 * A read belongs to the stream with the nearest edge, if it begins near enough. Near is at most 64
 * pieces beyond the edge, or 128 before it. (64 pieces are 256 KiB, or 32 reads if that is more; of
 * reads of 1 MiB 16.) The read is
 *
 *   in order  it covers the edge: the edge moves to its end, and on over early pieces    score +2
 *   early     it begins beyond the edge: its pieces are marked                           score  0
 *   late      it ends at the edge or before: it may fill a gap that was given up         score -1
 *
 * A read that fits no stream begins one, with score 0. The score is 0 to 8. From 4 on the stream is
 * *recognised*. So three reads in order make a stream, or two that no other read came between.
 *
 * When more than half of the pieces are early, the stream gives up the gap at the edge. The data of
 * the gap was lost or is in the cache. The edge moves over the gap and the run of pieces behind it.
 * If the run is two reads or longer, the score rises by 1, else it falls by 1.
 *
 * With score 0, two rules differ. An early read that goes on where another one ended takes the edge
 * there at once, and the score becomes 1. A late read more than 16 pieces back begins the stream
 * anew, and then a read in order wins 1 only.
 *
 * So reads that come out of order among some 16 of a stream leave it recognised. So do gaps of
 * cached data. A stride, reads of the same data and random reads in a small region lose more than
 * they win. (A stride whose gaps are smaller than half a read is taken for a stream.)
 *
 * Random reads begin streams all the time. So a stream with a score is replaced only when there are
 * more than 48 of them, or when it had no read among the last 1024. Otherwise the replaced stream
 * is the one without a score that had no read for the longest time.
 *
 * Length: the bytes from the first read to the edge, less the gaps that the edge was moved over.
 * Late reads count as far as they can have filled those gaps. The length is exact while there are
 * no such gaps and all reads are of whole pieces. Otherwise it is within a few percent. It begins
 * anew when the score falls to 0.
 *
 * Read-ahead follows a read that goes on where another one ended, when half of the *window* or less
 * is left of the data read ahead. The advice is the range from there to a window beyond the reader.
 * The window is 32 KiB at first, or twice the read if that is more. Each range doubles it, up to
 * the limit that was set. In the next object of a volume the window is whole at once. The length of
 * objects is not known beforehand: it is 4 MiB until a stream has seen where two of them begin.
 * (The scheme is on-demand read-ahead in Linux: Wu Fengguang, "Sequential File Prefetching in
 * Linux", 2010. The score stands for its look into the page cache.)
 *
 * Contract: stream_note() and streams_set() from any thread. The lock is a leaf, held for some tens
 * of nanoseconds. Nothing is allocated, no clock is read. The answer depends on the calls and their
 * order alone.
 *
 * Invariants (the unit test checks them after each read):
 *   S1  A range is of whole pages, within the object that was read, as far as its length is known,
 *       beyond the read, not longer than the limit.
 *   S2  Ranges of one stream ascend and do not overlap; a stream that was replaced and comes back
 *       is another stream.
 *   S3  No range without a limit, no cut-off without a threshold, neither at a first read.
 *   S4  Each stream is in one list: `proven` if it has a score, else `tried`.
 */
#ifndef PEERS_CACHED_STREAM_H
#define PEERS_CACHED_STREAM_H

#include "xtypes/xlist.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STREAMS_NR	    64
#define STREAM_OBJECT_BYTES (4u << 20)	/* no range goes beyond it */

struct stream {
	uint32_t volume;
	uint32_t unit;		/* bytes of a piece; 0: the entry was never used */
	uint64_t hash;		/* of the object, if it is in no volume; else 0 */
	uint64_t edge;
	uint64_t early;		/* bit i: piece i from the edge on was read */
	uint64_t length;
	uint64_t ahead_to;	/* end of the last range; 0: there was none */
	uint32_t window;	/* 0: it begins anew */
	/* bytes of gaps that the edge was moved over, and that late reads have not filled */
	uint32_t skipped;
	uint32_t touched;	/* streams.nr_notes at its last read */
	uint32_t score;
	uint32_t gain;		/* what a read in order adds to the score */
	uint32_t object;	/* where the object begins that was read last: the low bits */
	uint32_t object_bytes;	/* the least length of one that was seen; 0: none was */
};

struct streams {
	_Atomic uint64_t cutoff_bytes;
	_Atomic uint32_t ahead_max_bytes;

	pthread_mutex_t lock;		/* a leaf; guards all below */
	uint32_t nr_notes;		/* wraps */
	uint32_t newest;	/* the stream that the read before this one began, or XLIST_NONE */
	struct xlist tried;		/* score 0; last read at the head */
	struct xlist proven;		/* score above 0 */
	struct xlist_node node[STREAMS_NR];
	struct stream stream[STREAMS_NR];
	/* edge plus a hash of whose edge it is: finds candidates in one pass */
	uint64_t place[STREAMS_NR];
};

struct stream_advice {
	bool cut_off;		/* the stream is longer than the threshold: not worth to be kept */
	uint64_t ahead_from;	/* offset in the object that was read */
	uint32_t ahead_bytes;	/* 0: nothing is to be read ahead */
};

/* cutoff_bytes 0: nothing is ever cut off. ahead_max_bytes 0: nothing is read ahead. */
void streams_init(struct streams *s, uint64_t cutoff_bytes, uint32_t ahead_max_bytes);
void streams_fini(struct streams *s);

/* Other limits, from the next read on; streams stay known. */
void streams_set(struct streams *s, uint64_t cutoff_bytes, uint32_t ahead_max_bytes);

/* A read of size bytes at obj_offset of its object. In a volume, offset is the volume's, and the
 * hash does not matter. With volume 0, offset is the object's, and a good hash stands for the
 * object. Objects begin at pages of their volume. A read of nothing, or from 2^63 on, is not noted
 * and gets no advice. */
struct stream_advice stream_note(struct streams *s, uint32_t volume, uint64_t hash, uint64_t offset,
	uint64_t obj_offset, uint32_t size);

#endif
