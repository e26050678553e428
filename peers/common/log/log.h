/* log - lines for people on stderr: starts, stops, changes, failures.
 *
 * Contract: any thread. Each line is one write(2), "NAME: text". If stderr is a file, the time
 * stands in front of it. A terminal is read at once, and a journal has times of its own. The log is
 * not for the data path, which has counters. Each place in the code prints at most LOG_PER_SECOND
 * lines a second. Lines held back are counted, and the count is printed later. Commands in a line,
 * 'xseg WORDS', are for the segment that was named.
 */
#ifndef PEERS_COMMON_LOG_H
#define PEERS_COMMON_LOG_H

#include <stdatomic.h>
#include <stdint.h>

#define LOG_PER_SECOND 10

struct log_site {
	_Atomic uint64_t second;
	_Atomic uint32_t printed, held_back;
};

/* The segment of all lines from now on (hint.h); the text stays the caller's. */
void log_name_segment(const char *segment);

/* What follows the time, if the line begins with one. */
const char *log_skip_time(const char *line);

/* what: "", "warning: " or "error: "; stands after the name. */
void log_line(struct log_site *site, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define LOG_AT(what, ...) \
	do { \
		static struct log_site log_site_; \
		log_line(&log_site_, what, __VA_ARGS__); \
	} while (0)

/* log_info("%s: text", name, ...) */
#define log_info(...)  LOG_AT("", __VA_ARGS__)
#define log_warn(...)  LOG_AT("warning: ", __VA_ARGS__)
#define log_error(...) LOG_AT("error: ", __VA_ARGS__)

#endif
