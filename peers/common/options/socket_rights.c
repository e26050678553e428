/* socket_rights - see socket_rights.h. */
#include "peers/common/options/socket_rights.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/common/options/mode.h"
#include "peers/common/options/owner.h"

#define SOCKET_BITS 0666u		/* of a segment's mode */

int socket_rights_find(struct xseg *seg, const char *mode, const char *group,
	struct socket_rights *r, struct xseg_error *err)
{
	int rc = xseg_access_get(seg, &r->mode, &r->group);	/* SR1 */

	if (rc)
		return xseg_fail(err, rc, "the segment's mode and group: %s", strerror(-rc));
	r->mode &= SOCKET_BITS;
	if (*mode && mode_read(mode, &r->mode))
		return mode_check(mode, err);
	return *group ? owner_need_group(group, &r->group, err) : 0;
}

int socket_rights_set(const char *path, const struct socket_rights *r, struct xseg_error *err)
{
	char group[OWNER_BYTES];
	struct stat st;
	int rc = 0;

	if (lstat(path, &st) || !S_ISSOCK(st.st_mode))
		return xseg_fail(err, -ENOENT, "socket %s: it is not there", path);
	if (st.st_gid != (gid_t)r->group)			/* SR2 */
		rc = chmod(path, r->mode & 0600) || lchown(path, (uid_t)-1, (gid_t)r->group);
	if (!rc)
		rc = chmod(path, r->mode);
	if (!rc)
		return 0;
	rc = -errno;
	owner_group_name((uint32_t)r->group, group);
	return xseg_fail(err, rc, "socket %s cannot have group %s: %s%s", path, group,
		strerror(-rc), rc == -EPERM ? "; the server's user has to be in that group" : "");
}
