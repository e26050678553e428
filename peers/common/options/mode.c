/* mode - see mode.h. */
#include "peers/common/options/mode.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

int mode_read(const char *text, uint32_t *mode)
{
	char *end;

	*mode = (uint32_t)strtoul(text, &end, 8);
	return !isdigit((unsigned char)*text) || *end || !*mode || *mode > 0777 ? -EINVAL : 0;
}

int mode_check(const char *text, struct xseg_error *err)
{
	uint32_t mode;

	if (mode_read(text, &mode))
		return xseg_fail(err, -EINVAL,
				 "mode: '%.60s' is not a file mode such as 0600 or 0660", text);
	return 0;
}
