/* filed_list - the names of the objects whose files are in filed's directory, in steps.
 *
 * The order is that of the upper 56 bits of the names' hashes, and the cursor is the first of these
 * values that was not listed yet. A file's directory "ab/cd" is the first 16 bits of its hash, so
 * the walk goes through the directories by their numbers. A directory is read whole in each step
 * that lists some of it; the names with the smallest hashes are kept, and the others come in a
 * later step. So a cursor depends on names alone: it is good for a successor, and whatever is made
 * or deleted meanwhile.
 *
 * Contract: one thread for a buffer; it blocks. Nothing allocates, and no lock is taken: a listing
 * waits for earlier LISTs only.
 *
 * Invariants:
 *   LI1  a name in an answer is that of a file where filed_dir_path() puts it; other files are none
 *        of filed's
 *   LI2  names of one cursor value are in one answer together, or all come again in the next
 *   LI3  a step looks into at most FILED_LIST_DIRS directories
 */
#ifndef PEERS_FILED_LIST_H
#define PEERS_FILED_LIST_H

#include "peers/filed/filed_dir.h"
#include "xseg/xseg.h"

#define FILED_LIST_DIRS 1024u

/* Answers r, a LIST that shape_check() has accepted. buf: `bytes` bytes, at least 64 KiB, aligned
 * for any type. The result to answer with: bytes or -errno. -ESTALE: the cursor is no value of
 * this listing. */
int64_t filed_list_run(struct filed_dir *d, struct xseg *seg, const struct xreq *r, void *buf,
	size_t bytes);

#endif
