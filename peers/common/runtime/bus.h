/* bus - the end of a process whose segment's memory is gone: another process truncated the file
 * that it has mapped (SIGBUS).
 *
 * Nothing can be saved then. The data in the missing part is lost, and the rest is not ours alone.
 * So the process says why, in one line, and leaves as a kill would. The next process that attaches
 * is told that the segment is truncated. Peers and the supervisor check each second. So processes
 * that did not touch the missing part end too.
 */
#ifndef PEERS_COMMON_BUS_H
#define PEERS_COMMON_BUS_H

#include <stdbool.h>
#include <stdint.h>

struct xport;

/* From now on, for all threads: ends with `code` after a line that begins with `who`. Call it again
 * to name another segment. */
void bus_watch(const char *who, const char *segment, int code);
/* For a thread of a peer's own, which is to get no signals: all are blocked but SIGBUS, which would
 * else end the process without the line. */
void bus_block_others(void);
/* The same end, for who finds it out before he touches what is gone (xseg_is_whole()). */
void bus_leave(void) __attribute__((noreturn));
/* xseg_port_wait(), for a client's program: leaves when it waits in vain for a segment that is
 * gone. */
bool bus_port_wait(struct xport *port, uint64_t timeout_ns);

#endif
