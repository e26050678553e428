/* filed_marks - the bytes of a file that were written since its last sync, and those that a failed
 * sync lost. The marks stand in filed's arena, so a successor knows the unsynced writes of a dead
 * filed.
 *
 * A mark is a name, a state word and four bitmaps. A bitmap has a bit for each 4 KiB,
 * FILED_MARK_BITS in all, so 4 MiB. In a larger file a bit stands for several pieces, see `wide`.
 *
 *   written    changed since the last sync began (and writes that were in flight when it began)
 *   syncing    the bytes that the sync in progress covers
 *   lost       the bytes that a failed sync covered, and bytes written until it failed: they do
 *              not count as written, whatever the file says
 *   rewritten  lost pieces that were overwritten whole; the next good sync takes them out of `lost`
 *
 * Contract: one thread at a time for a mark (filed_files.c calls with its lock held), and one alone
 * when the arena is opened. Nothing blocks or allocates. A kill may come between any two stores.
 * Every state in between says too much is unsynced, never too little.
 *
 * Invariants:
 *   K1  A bit is in `written` before the write is handed to the kernel.
 *   K2  A bit leaves written|syncing only into `lost`, or when a sync succeeded that began after
 *       the write had ended.
 *   K3  A bit leaves `lost` only if the file was deleted, or its piece was overwritten whole and
 *       then synced, or discarded of a file that is not there. A file that another program took
 *       away was not deleted.
 *   K4  A mark whose state is 0 is free and its bitmaps are empty.
 */
#ifndef PEERS_FILED_FILED_MARKS_H
#define PEERS_FILED_FILED_MARKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "xseg/xseg.h"

#define FILED_MARK_WORDS 16
#define FILED_MARK_BITS	 (FILED_MARK_WORDS * 64)
#define FILED_MARK_PIECE 4096u

/* Bits of a mark's state word. */
#define FILED_MARK_USED	   1u	/* it has a name */
#define FILED_MARK_ENTRY   2u	/* its directory got or lost an entry, and was not synced since */
#define FILED_MARK_PARENTS 4u	/* nor were the directories above that */
#define FILED_MARK_WIDE	   8u	/* written beyond 4 MiB: lost bits speak of several pieces, and stay
				 * until the file is deleted */
#define FILED_MARK_DELETING 16u	/* it is being deleted: that it is not there is no loss */

struct filed_bits {
	_Atomic uint64_t word[FILED_MARK_WORDS];
};

struct filed_mark {
	char name[XSEG_TARGET_MAX];
	_Atomic uint64_t state;
	struct filed_bits written, syncing, lost, rewritten;
};

/* What became of the file's data in a sync. */
enum filed_data {
	FILED_DATA_SYNCED,
	FILED_DATA_LOST,
	FILED_DATA_DELETED,	/* a predecessor has deleted the file */
	FILED_DATA_UNTRIED	/* it did not come to the sync: all is as before it */
};

/* What a sync has to know until it ends. */
struct filed_sync {
	bool data;		/* the file is to be synced */
	uint32_t dirs;		/* FILED_MARK_ENTRY, _PARENTS: directories are to be synced */
	uint64_t rewritten[FILED_MARK_WORDS];
};

/* Gives a free mark a name. */
void filed_mark_name(struct filed_mark *m, const char *name);
/* The mark is clean and not lost: it becomes free. */
void filed_mark_free(struct filed_mark *m);

/* Before a write (K1); when it has succeeded. */
void filed_mark_write(struct filed_mark *m, uint64_t from, uint64_t to);
void filed_mark_wrote(struct filed_mark *m, uint64_t from, uint64_t to);
/* Before the directory changes. */
void filed_mark_entry(struct filed_mark *m, uint32_t dirs);
/* Before the file is unlinked; when that has failed, or a predecessor had not come to it. */
void filed_mark_deleting(struct filed_mark *m);
void filed_mark_kept(struct filed_mark *m);
/* The file is gone, with all that was unsynced or lost of it. */
void filed_mark_deleted(struct filed_mark *m);
/* There is no such file. If nobody was deleting it, what was unsynced is lost: a file system that
 * was repaired, or the backup that took its place, does not have it. */
void filed_mark_absent(struct filed_mark *m);
/* Of a file that is not there a range was discarded. */
void filed_mark_discarded(struct filed_mark *m, uint64_t from, uint64_t to);

/* A sync begins; then the caller calls filed_mark_write() for each write that is in flight. */
void filed_mark_sync_begin(struct filed_mark *m, struct filed_sync *s);
void filed_mark_sync_end(struct filed_mark *m, const struct filed_sync *s, enum filed_data data,
	bool dirs_ok);

/* The arena: a header, and a mark for each slot of the table of files. */
uint64_t filed_marks_bytes(uint32_t nr);
/* Nothing was ever made there: a predecessor died before. */
bool filed_marks_is_blank(const void *arena);
/* What stands there is about that directory. */
bool filed_marks_know(const void *arena, const struct stat *dir);
/* The directory was at that place (filed_dir.h); who opens the marks notes it then. One that was
 * noted half is none. */
bool filed_marks_had_path(const void *arena, const char *path);
void filed_marks_note_path(void *arena, const char *path);
/* Takes over the marks of a predecessor, of which there may be another number than *nr, or makes
 * them in zeroed memory. What they say of another directory than `dir` is forgotten, unless it is
 * at the same place: a disk may come back with another number. */
int filed_marks_open(void *arena, uint64_t bytes, const struct stat *dir, const char *place,
	uint32_t *nr, struct filed_mark **marks, struct xseg_error *err) XSEG_MUST_CHECK;

bool filed_mark_unsynced(const struct filed_mark *m);		/* data or directory */
bool filed_mark_lost(const struct filed_mark *m);
/* How much of it is unsynced or lost, in whole pieces; a directory counts as one. */
uint64_t filed_mark_bytes(const struct filed_mark *m);

static inline uint64_t filed_mark_state(const struct filed_mark *m)
{
	return atomic_load_explicit(&m->state, memory_order_acquire);
}

#endif
