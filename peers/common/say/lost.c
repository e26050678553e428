/* lost - see the header. */
#include <inttypes.h>
#include <stdio.h>

#include "peers/common/say/lost.h"

const char *lost_tell(char buf[LOST_MAX], uint64_t records, uint64_t volumes)
{
	int len = 0;

	if (!records && !volumes)
		snprintf(buf, LOST_MAX, "no volume is known to be lost");
	if (records)
		len = snprintf(buf, LOST_MAX, "%" PRIu64 " record%s cannot be read", records,
			records == 1 ? "" : "s");
	if (volumes)
		snprintf(buf + len, LOST_MAX - (size_t)len, "%s%" PRIu64 " volume%s not served",
			records ? ", " : "", volumes, volumes == 1 ? " is" : "s are");
	return buf;
}
