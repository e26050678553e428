/* sosd_name - see sosd_name.h for the contract. */
#include "peers/sosd/sosd_name.h"

#include <stdio.h>
#include <string.h>

#include "peers/common/options/percent.h"

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
	size_t at = (size_t)snprintf(name, SOSD_NAME_MAX, "%.*s.", SOSD_PREFIX_MAX - 1, prefix);
	const unsigned char *c = (const unsigned char *)target, *end = c + XSEG_TARGET_MAX - 1;

	for (; *c && c < end; c++) {
		if (is_plain(*c)) {
			name[at++] = (char)*c;
			continue;
		}
		percent_put(name + at, (char)*c);
		at += PERCENT_CHARS;
	}
	name[at] = '\0';
}

/* What has no target of this prefix gives another name on the way back. */
bool sosd_name_target(
	const char *prefix, const char *name, size_t len, char target[XSEG_TARGET_MAX])
{
	size_t skip = strlen(prefix) + 1, to = 0, step;
	char again[SOSD_NAME_MAX];
	int byte;

	if (len <= skip || memcmp(name, prefix, skip - 1))
		return false;
	for (size_t from = skip; from < len; from += step) {
		step = name[from] == '%' ? PERCENT_CHARS : 1;
		byte = step == 1 ? name[from] : percent_get(name + from, len - from);
		if (to == XSEG_TARGET_MAX - 1 || byte == 0 || (byte < 0 && step != 1))
			return false;
		target[to++] = (char)byte;
	}
	target[to] = '\0';
	sosd_name(prefix, target, again);
	return strlen(again) == len && memcmp(again, name, len) == 0;
}
