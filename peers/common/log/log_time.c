/* log_time - see log_time.h. */
#include "peers/common/log/log_time.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The last digits of a number, as many as there is room for. */
static void put_digits(char *at, unsigned nr, uint64_t value)
{
	while (nr-- > 0) {
		at[nr] = (char)('0' + value % 10);
		value /= 10;
	}
}

/* The date of a day, counted from 1970, in the Gregorian calendar: years begin in March here, so
 * that the day that a leap year has more is its last, and eras of 400 years are all alike. */
static void put_date(char *at, uint64_t days)
{
	uint64_t d = days + 719468, era = d / 146097, in_era = d % 146097;
	uint64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
	uint64_t in_year = in_era - (365 * year + year / 4 - year / 100);
	uint64_t month = (5 * in_year + 2) / 153;

	put_digits(at, 4, era * 400 + year + (month >= 10));
	put_digits(at + 5, 2, month < 10 ? month + 3 : month - 9);
	put_digits(at + 8, 2, in_year - (153 * month + 2) / 5 + 1);
}

void log_date(struct timespec *now)
{
	clock_gettime(CLOCK_REALTIME, now);
}

void log_format_time(const struct timespec *at, char text[LOG_TIME_CHARS + 1])
{
	uint64_t second = at->tv_sec > 0 ? (uint64_t)at->tv_sec : 0;

	memcpy(text, "0000-00-00T00:00:00.000Z ", LOG_TIME_CHARS + 1);
	put_date(text, second / 86400);
	put_digits(text + 11, 2, second / 3600 % 24);
	put_digits(text + 14, 2, second / 60 % 60);
	put_digits(text + 17, 2, second % 60);
	put_digits(text + 20, 3, (uint64_t)at->tv_nsec / 1000000);
}

void log_format_now(char text[LOG_TIME_CHARS + 1])
{
	struct timespec now;
	struct stat st;

	text[0] = '\0';
	if (fstat(STDERR_FILENO, &st) || !S_ISREG(st.st_mode))
		return;
	log_date(&now);
	log_format_time(&now, text);
}
