/* log - see log.h. */
#include "peers/common/log/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peers/common/say/hint.h"
#include "peers/common/log/log_time.h"
#include "xseg/xseg.h"

static const char *_Atomic named_segment;	/* NULL: not known yet */

/* False: this place has said enough in this second. *held_back: lines of earlier seconds, to be
 * told now. */
static bool may_print(struct log_site *site, uint32_t *held_back)
{
	struct timespec now;
	uint64_t second, before;

	clock_gettime(CLOCK_MONOTONIC, &now);
	second = (uint64_t)now.tv_sec;
	before = atomic_load(&site->second);
	*held_back = 0;
	if (before != second && atomic_compare_exchange_strong(&site->second, &before, second)) {
		atomic_store(&site->printed, 0);
		*held_back = atomic_exchange(&site->held_back, 0);
	}
	if (atomic_fetch_add(&site->printed, 1) < LOG_PER_SECOND)
		return true;
	atomic_fetch_add(&site->held_back, 1);
	return false;
}

const char *log_skip_time(const char *line)
{
	bool has = strlen(line) >= LOG_TIME_CHARS && line[4] == '-' && line[7] == '-' &&
		   line[10] == 'T' && line[13] == ':' && line[16] == ':' && line[19] == '.' &&
		   line[23] == 'Z' && line[24] == ' ';

	return has ? line + LOG_TIME_CHARS : line;
}

static void write_line(const char *line, size_t len)
{
	ssize_t done;

	do {
		done = write(STDERR_FILENO, line, len);
		if (done > 0) {
			line += done;
			len -= (size_t)done;
		}
	} while (done > 0 && len);
}

void log_name_segment(const char *segment)
{
	atomic_store(&named_segment, segment);
}

void log_line(struct log_site *site, const char *what, const char *fmt, ...)
{
	char said[1024], hinted[1100], line[1400], time[LOG_TIME_CHARS + 1];
	const char *segment = atomic_load(&named_segment), *text = said;
	uint32_t held_back;
	const char *colon;
	size_t used = 0;
	va_list ap;
	int name;

	if (!may_print(site, &held_back))
		return;
	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
	if (segment)
		text = hint_name_segment(hinted, sizeof(hinted), said, segment);
	colon = strstr(text, ": ");
	name = colon ? (int)(colon + 2 - text) : 0;
	log_format_now(time);
	if (held_back)
		used = (size_t)snprintf(line, sizeof(line),
					"%s%.*ssuppressed %u lines like the next\n", time,
					name < XSEG_NAME_MAX + 2 ? name : 0, text, held_back);
	used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%.*s%s%s\n", time, name, text,
				 what, text + name);
	if (used >= sizeof(line)) {
		used = sizeof(line) - 1;
		line[used - 1] = '\n';
	}
	write_line(line, used);
}
