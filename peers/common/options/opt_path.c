/* opt_path - see opt_path.h. */
#include "peers/common/options/opt_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory that a path is in. */
static const char *directory_of(const char *path, char above[PATH_MAX])
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	while (len > 0 && path[len - 1] != '/')
		len--;
	while (len > 1 && path[len - 1] == '/')
		len--;
	snprintf(above, PATH_MAX, "%.*s", len ? (int)len : 1, len ? path : ".");
	return above;
}

static bool may(const char *path, int how)
{
	return !faccessat(AT_FDCWD, path, how, AT_EACCESS) || errno == EROFS;
}

/* /run/xseg/NAME, on a machine with the package: the service xseg@NAME makes it when it starts. */
static bool service_makes(const char *dir)
{
	static const char all[] = "/run/xseg/";
	size_t len = strlen(all);

	return !strncmp(dir, all, len) && dir[len] && !strchr(dir + len, '/') && may(all, F_OK);
}

/* Something is made in it. */
static int check_above(const struct opt *o, const char *path, struct xseg_error *err)
{
	char above[PATH_MAX];
	struct stat st;

	if (stat(directory_of(path, above), &st)) {
		int why = errno;

		if (why == ENOENT && service_makes(above))
			return 0;
		return xseg_fail(err, -EINVAL,
			"%s: %.100s cannot be made, as %.100s is not there: %s; make that first",
			o->name, path, above, strerror(why));
	}
	if (!S_ISDIR(st.st_mode))
		return xseg_fail(err, -EINVAL,
			"%s: %.100s is no directory, so nothing can be made in it; name another",
			o->name, above);
	if (!may(above, W_OK | X_OK))
		return xseg_fail(err, -EINVAL,
			"%s: nothing may be made in %.100s: %s; give it to this user, or name "
			"another",
			o->name, above, strerror(errno));
	return 0;
}

static int check_dir(const struct opt *o, const char *path, struct xseg_error *err)
{
	int how = o->flags & OPT_MAKES ? W_OK | X_OK : R_OK | X_OK;
	struct stat st;

	if (stat(path, &st)) {
		if (errno == ENOENT && o->flags & OPT_MAKES)
			return check_above(o, path, err);
		return xseg_fail(err, -EINVAL,
			"%s: directory %.100s cannot be opened: %s; make it, or name another",
			o->name, path, strerror(errno));
	}
	if (!S_ISDIR(st.st_mode))
		return xseg_fail(err, -EINVAL, "%s: %.100s is no directory; name another", o->name,
			path);
	if (!may(path, how))
		return xseg_fail(err, -EINVAL,
			"%s: directory %.100s may not be %s; give it to this user, or name another",
			o->name, path, o->flags & OPT_MAKES ? "written to" : "read");
	return 0;
}

int opt_path_check(const struct opt *o, const char *value, struct xseg_error *err)
{
	if (!*value)
		return 0;
	if (o->flags & (OPT_DIR | OPT_MAKES))
		return check_dir(o, value, err);
	if (o->flags & OPT_FILE && !may(value, R_OK))
		return xseg_fail(err, -EINVAL, "%s: %.100s cannot be read: %s; name another",
			o->name, value, strerror(errno));
	if (!(o->flags & OPT_SOCKET))
		return 0;
	value += strncmp(value, "unix:", 5) ? 0 : 5;
	return *value == '/' ? check_above(o, value, err) : 0;
}
