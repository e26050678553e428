/* filed_rights - see filed_rights.h for the rule, the contract and the invariants. */
#include "peers/filed/filed_rights.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/options/owner.h"

#define OTHERS 077u			/* what is not the owner's */
#define DEPTH  3			/* directories: DIR, ab, cd */

int filed_rights_init(struct filed_rights *fr, const char *group, struct xseg_error *err)
{
	int64_t gid;

	*fr = (struct filed_rights){ .dir = 0700, .file = 0600 };
	if (!*group)
		return 0;
	if (owner_need_group(group, &gid, err))
		return -EINVAL;
	*fr = (struct filed_rights){
		.dir = 0750, .file = 0640, .has_group = true, .group = (gid_t)gid
	};
	return 0;
}

int filed_rights_settle(const struct filed_rights *fr, int fd, bool made)
{
	mode_t want, keep = S_ISUID | S_ISGID | S_ISVTX | (made ? 0 : S_IRWXU);
	struct stat st;
	int changed = 0;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return 0;
	want = S_ISDIR(st.st_mode) ? fr->dir : fr->file;
	want = (st.st_mode & keep) | (want & ~keep);		/* FR1 */
	if (fr->has_group && st.st_gid != fr->group) {
		if (fchown(fd, (uid_t)-1, fr->group))
			return -errno;
		changed = 1;
	}
	if ((st.st_mode & 07777) == want)
		return changed;
	return fchmod(fd, want) ? -errno : 1;
}

/* ---- what an older filed has left -------------------------------------------------------- */

static void mend_fd(const struct filed_rights *fr, int fd, struct filed_mended *mended)
{
	int rc = filed_rights_settle(fr, fd, false);

	mended->nr += rc > 0;
	mended->nr_not += rc < 0;
}

/* "ab": of DIR's entries others are none of filed's. */
static bool is_filed_dir(const char *name)
{
	return isxdigit((unsigned char)name[0]) && isxdigit((unsigned char)name[1]) && !name[2];
}

/* FR4 */
static int open_entry(int dir, const char *name)
{
	return TEMP_FAILURE_RETRY(openat(dir, name,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

/* All below the directory of that descriptor, which it closes; `depth` directories are left. */
static int mend_below(const struct filed_rights *fr, int fd, int depth, struct filed_mended *mended)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *e;
	struct stat st;
	int entry;

	if (!dir) {
		close(fd);
		return -errno;
	}
	while ((e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
			(depth > 1 && !is_filed_dir(e->d_name)))
			continue;
		entry = open_entry(dirfd(dir), e->d_name);
		if (entry < 0) {
			mended->nr_not += errno != ENOENT && errno != ELOOP;
			continue;
		}
		mend_fd(fr, entry, mended);
		if (depth > 1 && !fstat(entry, &st) && S_ISDIR(st.st_mode))
			mended->nr_not += !!mend_below(fr, entry, depth - 1, mended);
		else
			close(entry);
	}
	closedir(dir);
	return 0;
}

static bool is_right(const struct filed_rights *fr, int dir, const char *format)
{
	struct stat st;

	if (fstatat(dir, format, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT;
	return (st.st_mode & OTHERS) == (fr->file & OTHERS) &&
	       (!fr->has_group || st.st_gid == fr->group);
}

int filed_rights_mend(const struct filed_rights *fr, int dir, const char *format,
	struct filed_mended *mended)
{
	bool right = is_right(fr, dir, format);
	int fd, rc;

	*mended = (struct filed_mended){ 0 };
	mend_fd(fr, dir, mended);				/* FR3 */
	if (right && !mended->nr)
		return 0;
	fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = fd < 0 ? -errno : mend_below(fr, fd, DEPTH, mended);
	/* durable before the file that says so */
	if (!rc && mended->nr && syncfs(dir))
		rc = -errno;
	fd = rc ? -1 : open_entry(dir, format);
	if (fd >= 0) {
		mend_fd(fr, fd, mended);
		close(fd);
	}
	return rc;
}
