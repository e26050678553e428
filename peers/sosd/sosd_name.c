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

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* What %XX means, or -1. */
static int decoded(const char *name, const char *end)
{
	if (end - name < 3 || digit(name[1]) < 0 || digit(name[2]) < 0)
		return -1;
	return digit(name[1]) << 4 | digit(name[2]);
}

bool sosd_name_target(
	const char *prefix, const char *name, size_t len, char target[XSEG_TARGET_MAX])
{
	size_t skip = strlen(prefix) + 1, at = 0;
	const char *end = name + len;
	int c;

	if (len <= skip || memcmp(name, prefix, skip - 1) || name[skip - 1] != '.')
		return false;
	for (name += skip; name < end; name += c == '%' ? 3 : 1) {
		c = (unsigned char)*name;
		if (at == XSEG_TARGET_MAX - 1 || !is_plain((unsigned char)c) == (c != '%'))
			return false;
		target[at] = (char)(c == '%' ? decoded(name, end) : c);
		if (c == '%' && (decoded(name, end) <= 0 || is_plain((unsigned char)target[at])))
			return false;
		at++;
	}
	target[at] = '\0';
	return true;
}
