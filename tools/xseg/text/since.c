/* since - see since.h. */
#include "tools/xseg/text/since.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "peers/common/log/log_time.h"
#include "tools/xseg/base/out.h"

#define DAY_S UINT64_C(86400)

/* "12s", "5m", "3h", "2d" */
static const char *age_text(uint64_t ms, char text[OUT_TEXT])
{
	static const struct {
		uint64_t s;
		char unit;
	} units[] = { { DAY_S, 'd' }, { 3600, 'h' }, { 60, 'm' } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (ms / 1000 >= 2 * units[i].s) {
			snprintf(text, OUT_TEXT, "%" PRIu64 "%c", ms / 1000 / units[i].s,
				units[i].unit);
			return text;
		}
	return out_time(ms * 1000000, text);
}

static const char *tell(time_t at, uint64_t age_ms, char text[SINCE_TEXT])
{
	char date[32] = "?", age[OUT_TEXT];
	struct tm tm;

	if (localtime_r(&at, &tm))
		strftime(date, sizeof(date), age_ms < DAY_S * 1000 ? "%H:%M:%S" : "%Y-%m-%d %H:%M",
			&tm);
	snprintf(text, SINCE_TEXT, "since %s (%s)", date, age_text(age_ms, age));
	return text;
}

const char *since_text(uint64_t since_s, char text[SINCE_TEXT])
{
	struct timespec now;
	uint64_t now_s;

	log_date(&now);
	now_s = (uint64_t)now.tv_sec;
	return tell((time_t)since_s, now_s > since_s ? (now_s - since_s) * 1000 : 0, text);
}

const char *since_ago_text(uint64_t ms, char text[SINCE_TEXT])
{
	struct timespec now;
	uint64_t now_ms;

	/* in milliseconds, so that the moment stays the same while its age grows */
	log_date(&now);
	now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	return tell((time_t)((now_ms > ms ? now_ms - ms : 0) / 1000), ms, text);
}
