/* filed_rights - which users may read filed's directory and files: this user alone, or a group,
 * too.
 *
 * 	               no group    group = NAME
 * 	directories    0700        0750, of that group
 * 	files          0600        0640, of that group
 *
 * The umask has no effect on it. filed_rights_mend() corrects the directory's own file, xseg-filed,
 * last. So that file's rights say that all below the directory has had its rights. A store of an
 * older filed, or one whose group has changed, is gone through once.
 *
 * Contract: init and mend once, at the start; settle from any thread. All block.
 *
 * Invariants:
 *   FR1  Only the user and that group are ever given a right. Owners' rights that are taken away by
 *        hand stay away.
 *   FR2  A new entry is made with no more than the user's rights, and then gets the group's.
 *   FR3  Others are shut out of the directory before anything below it is looked at.
 *   FR4  No link is followed, and nothing but directories and files is changed.
 */
#ifndef PEERS_FILED_FILED_RIGHTS_H
#define PEERS_FILED_FILED_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "xseg/xseg.h"

struct filed_rights {
	mode_t dir, file;
	bool has_group;
	gid_t group;
};

/* What mend has done. */
struct filed_mended {
	uint64_t nr;			/* of directories and files that were corrected */
	uint64_t nr_not;		/* and of those that could not be: another user's */
};

/* group: a name or a number; "": none. -EINVAL: there is no such group. */
int filed_rights_init(struct filed_rights *fr, const char *group,
	struct xseg_error *err) XSEG_MUST_CHECK;
/* Gives what an open descriptor leads to its rights; `made`: by this filed, just now. -EPERM and
 * the like: it stays as it is. 1: it was changed. */
int filed_rights_settle(const struct filed_rights *fr, int fd, bool made);
/* Corrects the directory, all that is filed's below it, and its file `format`, which may not be
 * there. -errno: the directory could not be read. */
int filed_rights_mend(const struct filed_rights *fr, int dir, const char *format,
	struct filed_mended *mended) XSEG_MUST_CHECK;

#endif
