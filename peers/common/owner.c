/* owner - see owner.h. */
#include "peers/common/owner.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

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
	return named() != NULL;
}

int owner_attach(const char *name, unsigned flags, struct xseg **seg, struct xseg_error *err)
{
	return xseg_attach_owned(name, named(), flags, seg, err);
}

void owner_name(uint32_t uid, char name[OWNER_BYTES])
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(name, OWNER_BYTES, "%s", user->pw_name);
	else
		snprintf(name, OWNER_BYTES, "%u", uid);
}
