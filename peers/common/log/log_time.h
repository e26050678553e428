/* log_time - the time in front of a line of the log.
 *
 * Contract: any thread, and a signal handler, which may not ask the library for a date. Nothing
 * blocks or allocates.
 */
#ifndef PEERS_COMMON_LOG_TIME_H
#define PEERS_COMMON_LOG_TIME_H

#include <time.h>

#define LOG_TIME_CHARS 25 /* "2026-11-26T08:15:00.123Z " */

/* A time in UTC, as it stands in front of lines. */
void log_format_time(const struct timespec *at, char text[LOG_TIME_CHARS + 1]);
/* The date, which can jump: for people only. */
void log_date(struct timespec *now);
/* What stands in front of a line that is written now; "" where no time is wanted. */
void log_format_now(char text[LOG_TIME_CHARS + 1]);

#endif
