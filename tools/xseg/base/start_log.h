/* start_log - what the supervisor's log tells of the processes that it starts: that one ended by
 * itself, could not be run, or was killed again and again. Only the supervisor sees how its
 * children end, and it goes on trying.
 *
 * Contract: reads the log from one offset on, where a command began. A process that had begun
 * before that says nothing of the command: it may have failed for a reason that is gone by now. So
 * an end counts only behind the beginning of the same process.
 */
#ifndef TOOLS_XSEG_START_LOG_H
#define TOOLS_XSEG_START_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "peers/common/options/stack.h"

#define START_LOG_LINE 1024
#define START_LOG_ENDED " ended with exit code "	/* the supervisor's words */

/* Peers, or an export and peers. nr 0: all that the supervisor starts. */
struct start_log_names {
	uint32_t nr;
	const char *name[1 + STACK_MAX_PEERS];
};

/* True when a process with one of these names has failed to start. *line: the supervisor's last
 * line that says so, without its time. */
bool start_log_failed(const char *log, off_t from, const struct start_log_names *names,
	char line[static START_LOG_LINE]);

/* Processes of one name that a signal has ended. SIGKILL is somebody's will, and no crash; or the
 * kernel's, and memory may be there later. */
struct start_log_crashes {
	unsigned nr, nr_kills;
	bool memory;				/* it ran out, as the log says */
	int signal;				/* the last one of nr */
};

void start_log_count_crashes(
	const char *log, off_t from, const char *name, struct start_log_crashes *crashes);

#endif
