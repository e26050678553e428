/* filed_list - the names of the objects whose files are in filed's directory, and the bytes that
 * the files take, in steps.
 *
 * The order is that of the upper 56 bits of the names' hashes. The cursor is the first of these
 * values that was not listed yet. A file's directory "ab/cd" is the first 16 bits of its hash, so
 * the walk goes through the directories by their numbers. Each step that lists some of a directory
 * reads all of it. It keeps the names with the smallest hashes; the others come in a later step. So
 * a cursor depends on names alone. It is good for a successor, and while objects are made or
 * deleted.
 *
 * Contract: one thread for a buffer; it blocks. Nothing allocates, and no lock is taken: a listing
 * waits for earlier LISTs only.
 *
 * Invariants:
 *   LI1  A name in an answer is that of a file where filed_dir_path() puts it. Other files do not
 *        belong to filed.
 *   LI2  Names of one cursor value are in one answer together, or all come again in the next.
 *   LI3  A step looks into at most FILED_LIST_DIRS directories; one of a count into 257.
 */
#ifndef PEERS_FILED_LIST_H
#define PEERS_FILED_LIST_H

#include "peers/common/blocker/usage.h"
#include "peers/filed/filed_dir.h"
#include "xseg/xseg.h"

#define FILED_LIST_DIRS 1024u

/* Answers r, a LIST that shape_check() has accepted. buf: `bytes` bytes, at least 64 KiB, aligned
 * for any type. The result to answer with: bytes or -errno. -ESTALE: the cursor is no value of
 * this listing. */
int64_t filed_list_run(struct filed_dir *d, struct xseg *seg, const struct xreq *r, void *buf,
	size_t bytes);

/* Adds the files of all directories "PARENT/..". buf: as above. 0 or -errno. */
#define FILED_LIST_PARENTS 256u
int filed_list_count(struct filed_dir *d, struct usage *usage, uint32_t parent, void *buf)
	XSEG_MUST_CHECK;

#endif
