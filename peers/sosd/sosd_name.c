/* sosd_name - see sosd_name.h for the contract. */
#include "peers/sosd/sosd_name.h"

#include <stdio.h>
#include <string.h>

bool sosd_prefix_ok(const char *prefix)
{
	size_t len = strlen(prefix);

	return len > 0 && len < SOSD_PREFIX_MAX &&
	       strspn(prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") ==
		       len;
}

static bool is_plain(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '%';
}

void sosd_name(const char *prefix, const char *target, char name[SOSD_NAME_MAX])
{
	static const char hex[] = "0123456789ABCDEF";
	size_t at = (size_t)snprintf(name, SOSD_NAME_MAX, "%.*s.", SOSD_PREFIX_MAX - 1, prefix);
	const unsigned char *c = (const unsigned char *)target, *end = c + XSEG_TARGET_MAX - 1;

	for (; *c && c < end; c++) {
		if (is_plain(*c)) {
			name[at++] = (char)*c;
			continue;
		}
		name[at++] = '%';
		name[at++] = hex[*c >> 4];
		name[at++] = hex[*c & 15];
	}
	name[at] = '\0';
}
