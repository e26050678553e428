/* owner - see owner.h. */
#include "peers/common/options/owner.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "XSEG_OWNER"

int owner_check(const char *text, struct xseg_error *err)
{
	uint32_t uid;

	return xseg_user_find(text, &uid, err);
}

void owner_use(const char *text)
{
	/* without memory for it nobody's is let in */
	if (*text && setenv(VARIABLE, text, 1))
		unsetenv(VARIABLE);
}

static const char *named(void)
{
	const char *text = getenv(VARIABLE);

	return text && *text ? text : NULL;
}

bool owner_is_named(void)
{
	struct xseg_error err = { "" };
	uint32_t uid;

	return named() && (xseg_user_find(named(), &uid, &err) || uid != geteuid());
}

static void write_name(const char *known, uint32_t id, char name[OWNER_BYTES])
{
	if (known)
		snprintf(name, OWNER_BYTES, "%s", known);
	else
		snprintf(name, OWNER_BYTES, "%u", id);
}

void owner_name(uint32_t uid, char name[OWNER_BYTES])
{
	const struct passwd *user = getpwuid(uid);

	write_name(user ? user->pw_name : NULL, uid, name);
}

void owner_group_name(uint32_t gid, char name[OWNER_BYTES])
{
	const struct group *group = getgrgid(gid);

	write_name(group ? group->gr_name : NULL, gid, name);
}

/* Of a segment that may not be opened, if another user made it. */
static void tell_foreign(const char *name, struct xseg_error *err)
{
	char user[OWNER_BYTES];
	uint32_t uid = 0;

	if (xseg_owner_of(name, &uid) || uid == geteuid())
		return;
	owner_name(uid, user);
	xseg_fail(err, -EACCES,
		"segment %s: not yours (user %s), and its mode and group do not let you in; that "
		"user can make it with another --mode or --group",
		name, user);
}

int owner_attach(const char *name, unsigned flags, struct xseg **seg, struct xseg_error *err)
{
	int rc = xseg_attach_owned(name, named(), flags, seg, err);

	if (rc == -EACCES)
		tell_foreign(name, err);
	return rc;
}

bool owner_refused(int rc, const struct xseg_error *err)
{
	return rc == -EPERM || (rc == -EACCES && strchr(err->text, ';'));
}

int owner_find_group(const char *text, int64_t *gid)
{
	const struct group *group;
	unsigned long number;
	char *end;

	number = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : UINT32_MAX;
	if (number < UINT32_MAX && !*end) {
		*gid = (int64_t)number;
		return 0;
	}
	group = getgrnam(text);
	if (!group)
		return -ENOENT;
	*gid = group->gr_gid;
	return 0;
}

int owner_need_group(const char *text, int64_t *gid, struct xseg_error *err)
{
	if (!owner_find_group(text, gid))
		return 0;
	return xseg_fail(err, -EINVAL,
		"group: this machine has no group '%s'; make it, or name another", text);
}
