/* since - see since.h. */
#include "tools/xseg/text/since.h"

#include <stdio.h>
#include <time.h>

#include "peers/common/log/log_time.h"
#include "tools/xseg/base/out.h"

#define DAY_S UINT64_C(86400)

static const char *tell(time_t at, uint64_t age_ms, char text[SINCE_TEXT])
{
	char date[32] = "?", age[OUT_TEXT];
	struct tm tm;

	if (localtime_r(&at, &tm))
		strftime(date, sizeof(date), age_ms < DAY_S * 1000 ? "%H:%M:%S" : "%Y-%m-%d %H:%M",
			&tm);
	snprintf(text, SINCE_TEXT, "since %s (%s)", date, out_time(age_ms * 1000000, age));
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

	log_date(&now);
	return tell(now.tv_sec - (time_t)(ms / 1000), ms, text);
}
