/* filed_dir - the directory of a filed: its permitted users, the place of an object's file, and the
 * needs of O_DIRECT there.
 *
 * 	DIR/xseg-filed	says what the directory is, and the version of its format
 * 	DIR/ab/cd/NAME	the file of an object; ab and cd are the first bytes of its name's hash
 *
 * Bytes of a name other than letters, digits and ._:- are written %XX, as is a first '.'.
 *
 * Contract: any thread, after open; all functions block. New entries are not durable before
 * filed_dir_sync(). Entries that were there at open may not be durable either. Only the
 * predecessor's marks tell that; without them filed_dir_sync_all() is needed.
 */
#ifndef PEERS_FILED_FILED_DIR_H
#define PEERS_FILED_FILED_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "peers/common/say/space.h"
#include "peers/filed/filed_rights.h"
#include "xseg/xseg.h"

#define FILED_PATH_MAX 288		/* "ab/cd/" and a file's name */

struct filed_dir {
	int fd;				/* of DIR, with a lock on it */
	bool found;			/* a filed has made it, and perhaps files, before */
	bool direct;			/* files are opened with O_DIRECT */
	uint32_t align;			/* of offsets and lengths; 1 without O_DIRECT */
	bool tags;			/* files have attributes (filed_tag.h) */
	struct filed_rights rights;	/* of what is made */
	struct filed_mended mended;	/* what was not so at the start */
};

/* Makes the directory when its parent exists, locks it, makes or checks the file that says what it
 * is, and corrects the rights of all that is there (filed_rights.h). `direct` asks for O_DIRECT,
 * which a file system may not have: d->direct says. `group`: may read it, or "".
 * -EBUSY: another filed has it; -ENOTEMPTY, -EPROTO: it is something else's. */
int filed_dir_open(struct filed_dir *d, const char *path, bool direct, const char *group,
	struct xseg_error *err) XSEG_MUST_CHECK;
void filed_dir_close(struct filed_dir *d);
/* How much the file system of the directory holds, and has left for this user; all 0 when it does
 * not say. */
void filed_dir_space(const struct filed_dir *d, struct space *space);
/* Somebody has removed the directory: nothing can be written or found in it any more. */
bool filed_dir_is_removed(const struct filed_dir *d);
/* Whether a filed has made what is there. */
bool filed_dir_is_made(const char *path);
/* What a path leads to, or would if something were there, in the one way to write that: whole and
 * without links. Where it cannot be told the path as it is. */
void filed_dir_place(const char *path, char place[PATH_MAX]);

/* The path of an object's file below DIR. -ENAMETOOLONG: the name has too many bytes that need
 * %XX. */
int filed_dir_path(const char *name, uint64_t hash, char path[FILED_PATH_MAX]) XSEG_MUST_CHECK;

/* The name of the object whose file has that name, in XSEG_TARGET_MAX bytes. -EINVAL: none has. It
 * may be written in another way than filed_dir_path() would. */
int filed_dir_name(const char *file, char *name) XSEG_MUST_CHECK;

/* Opens a file for reading and writing, with create also makes it and the directories above. The
 * descriptor or -errno; -EIO: DIR itself was removed. */
int filed_dir_open_file(struct filed_dir *d, const char *path, bool create) XSEG_MUST_CHECK;
/* Opens a directory below DIR. The descriptor or -errno; -EIO: DIR itself was removed. */
int filed_dir_open_dir(struct filed_dir *d, const char *path) XSEG_MUST_CHECK;
int filed_dir_unlink(struct filed_dir *d, const char *path) XSEG_MUST_CHECK;

/* Makes entries durable: that of the file in its directory; with `parents` also those of the
 * directories above. -ENOENT: its directory was never made, so nothing was synced. */
int filed_dir_sync(struct filed_dir *d, const char *path, bool parents) XSEG_MUST_CHECK;
/* All that is there, and the directory's own entry. */
int filed_dir_sync_all(struct filed_dir *d) XSEG_MUST_CHECK;

#endif
