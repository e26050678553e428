/* filed_files - the files that filed knows of at the moment: open files, unsynced files, and names
 * without a file. A file is checked when it is opened (filed_tag.h).
 *
 * The table is bounded; slot i has mark i in the arena (filed_marks.h). The least recently used
 * slot that no request uses is given to another name. Its unsynced data is synced before. If that
 * sync fails, another slot is taken: the error is for requests that ask for a sync of that file.
 *
 *   from            to       when                                              by
 *   FREE            CLOSED   a name that no slot has is asked for              filed_file_get
 *   FREE            CLOSED   a predecessor left a mark                         filed_files_open
 *   CLOSED, ABSENT  BUSY     it is to be opened or made                        filed_file_get
 *   BUSY            OPEN, ABSENT   that succeeded; there is no such file       filed_file_get
 *   BUSY            CLOSED, ABSENT  that failed, or it is a wrong file: its    filed_file_get
 *                                   state before
 *   OPEN            BUSY     it was opened to be deleted, and is to be checked  filed_file_get
 *   BUSY            OPEN     it was checked, with any result                   filed_file_get
 *   OPEN, ABSENT, CLOSED  BUSY     the slot is wanted for another name         filed_file_get
 *   BUSY            FREE     it was synced and closed                          filed_file_get
 *   BUSY            OPEN, ABSENT, CLOSED  the sync failed: its state before    filed_file_get
 *   OPEN            BUSY     it is to be deleted                               filed_file_delete
 *   BUSY            ABSENT, OPEN   that succeeded; failed                      filed_file_delete
 *   OPEN            BUSY     it may have no data left: a sync of all, or its   drop_if_empty_locked
 *                            slot is wanted
 *   BUSY            ABSENT, OPEN   it had none, and was deleted; it stays      drop_if_empty_locked
 *
 * Contract: any thread. `lock` is a leaf and held for a few instructions. It is held for a look at
 * each slot where one is to be given away or all are counted. The functions marked "blocks" do I/O
 * without the lock. They also wait while another thread makes the same slot BUSY or syncing. A
 * thread that makes a slot so waits for no other until the slot is free of it. So workers never
 * wait for each other in a ring.
 *
 * Invariants:
 *   F1  A slot that is BUSY or syncing has one thread that makes it so.
 *   F2  A descriptor is closed only after all data written through it was synced, or the file was
 *       deleted.
 *   F3  A slot with lost data is not given to another name.
 *   F4  refs counts the requests that use the slot. Only slots without users are given away.
 *   F5  No request uses a file whose check failed, but the file may be deleted.
 *   F6  A thread that makes a file grow has a reference. There is one such thread at a time.
 *   F7  A file without data that no request uses is deleted in a sync of all, and before its slot
 *       is given away. It reads as if it were not there. One that has lost data stays, because of
 *       F3.
 */
#ifndef PEERS_FILED_FILED_FILES_H
#define PEERS_FILED_FILED_FILES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "peers/filed/filed_dir.h"
#include "peers/filed/filed_marks.h"
#include "peers/filed/filed_tag.h"
#include "xtypes/xhash.h"
#include "xtypes/xlist.h"
#include "xtypes/xpool.h"

enum filed_file_state {
	FILED_FREE,				/* it has no name */
	FILED_CLOSED,				/* it is not known whether there is such a file */
	FILED_BUSY,				/* a thread opens, deletes or gives it away (F1) */
	FILED_OPEN,
	FILED_ABSENT,				/* there is no such file */
	FILED_NR_STATES
};

struct filed_change;

struct filed_file {
	enum filed_file_state state;
	int fd; /* of an OPEN one; does not change while refs > 0, but by a delete */
	uint32_t refs;
	bool syncing, growing;
	bool emptied;			/* data was taken out since somebody looked for some */
	bool checked;			/* of an OPEN one: its check succeeded (F5) */
	uint64_t length;		/* of a checked one, as filed_tag_check() says */
	/* what is not stable of it, if its last sync failed or it has lost data; else 0 */
	uint64_t failed_bytes;
	uint64_t hash;
	struct filed_change *changes;	/* in flight */
	uint32_t lost_syncs;		/* syncs of it that have lost data */
};

/* A request that changes a range of a file, from before the kernel gets it until it is done. */
struct filed_change {
	struct filed_file *file;
	uint64_t from, to;
	uint32_t lost_syncs;	/* the file's when it began */
	struct filed_change *next, *prev;
};

struct filed_files {
	struct filed_dir *dir;
	uint32_t nr;
	struct filed_mark *marks;	/* in the arena */
	void *memory;

	pthread_mutex_t lock;		/* guards all below */
	pthread_cond_t changed;		/* some slot is no longer BUSY, or no longer syncing */
	struct filed_file *file;
	struct xhash index;
	struct xlist lru;		/* all that are not FREE; the most recently used first */
	struct xpool free;
	uint64_t sync_errors;
	uint64_t failed_bytes;		/* of all files */
	struct xseg_peer *told;		/* whose word says so; or NULL */
	/* directories ab/cd, a bit each, that are known to be durable, with those above */
	uint8_t durable[65536 / 8];
};

/* What a file is asked for. */
enum filed_use {
	FILED_USE,				/* as it is, or to learn that it is not there */
	FILED_MAKE,				/* it is made where it is not there */
	FILED_REMOVE				/* to be deleted, even a wrong one */
};

struct filed_counts {
	uint32_t open, unsynced, lost;
	uint64_t sync_errors;
};

/* Of nr slots, or of as many as a predecessor's arena has marks (filed_marks_open()). */
int filed_files_open(struct filed_files *ff, struct filed_dir *dir, const char *place, void *arena,
	uint64_t bytes, uint32_t nr, struct xseg_error *err) XSEG_MUST_CHECK;
/* From now on a word of the peer (words.h) follows how much a sync has failed for. Once, after
 * open. */
void filed_files_tell(struct filed_files *ff, struct xseg_peer *peer);
/* The bytes that a sync has failed for. Any thread. */
uint64_t filed_files_failed(struct filed_files *ff);
/* Closes all; syncs nothing. Nobody may be in. */
void filed_files_close(struct filed_files *ff);

/* The slot of a name if it is OPEN and reaches to `end`, or ABSENT and not to be made; else NULL.
 * Takes a reference. *fd is the file's descriptor, or -1: there is no such file. */
struct filed_file *filed_file_try(struct filed_files *ff, uint64_t hash, const char *name,
	enum filed_use use, uint64_t end, int *fd);
/* The same, opened or made first, whatever its length. Blocks. -EAGAIN: all slots are in use, try
 * when one has been put; -EIO: all slots have lost data, or cannot be synced; errors of
 * filed_tag_check(): it is a wrong file. */
int filed_file_get(struct filed_files *ff, uint64_t hash, const char *name, enum filed_use use,
	struct filed_file **file, int *fd) XSEG_MUST_CHECK;
/* Before a change of an OPEN file that the caller has: it reaches to `end`, and has its attribute.
 * Blocks. */
int filed_file_grow(struct filed_files *ff, struct filed_file *file, uint64_t end) XSEG_MUST_CHECK;
/* Gives the reference back; true: nobody uses the slot now. */
bool filed_file_put(struct filed_files *ff, struct filed_file *file);

void filed_change_begin(struct filed_files *ff, struct filed_change *c, struct filed_file *file,
	uint64_t from, uint64_t to);
void filed_change_end(struct filed_files *ff, struct filed_change *c, bool ok);
/* A sync of its file has failed since it began: the kernel may have dropped it, whatever a later
 * one says. Also after its end, while the caller has the file. */
bool filed_change_is_lost(struct filed_files *ff, const struct filed_change *c);

/* What was changed until now, and answered or not, becomes durable. Blocks. -EIO or so: it did
 * not. */
int filed_file_sync(struct filed_files *ff, struct filed_file *file) XSEG_MUST_CHECK;
/* Who asks for a sync of many files. Both are called with the lock held; `name` is the mark's. */
struct filed_asker {
	bool (*wants)(void *arg, const char *name);
	/* hears of a file that is not durable, and why */
	void (*tell)(void *arg, const char *name, int error);
	void *arg;
};
/* All files that it wants. Blocks. It is told of those that could not be synced, and of those that
 * have lost data. What has no data left goes (F7). */
void filed_files_sync(struct filed_files *ff, const struct filed_asker *asker);
/* Of a file that the caller has, data was taken out. */
void filed_file_emptied(struct filed_files *ff, struct filed_file *file);
/* The caller has a reference and is the only one to use the file. Blocks. */
int filed_file_delete(struct filed_files *ff, struct filed_file *file) XSEG_MUST_CHECK;
/* Of a file that is ABSENT, which the caller has: nothing is lost any more, or nothing of a
 * range. */
void filed_file_forget(struct filed_files *ff, struct filed_file *file, bool all, uint64_t from,
	uint64_t to);

void filed_files_count(struct filed_files *ff, struct filed_counts *counts);

#endif
