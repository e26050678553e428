/* ended - how a child of the supervisor has ended, in words for the log.
 *
 * Contract: one thread; reads /proc.
 */
#ifndef PEERS_HOST_ENDED_H
#define PEERS_HOST_ENDED_H

#include <stdint.h>

#define ENDED_HOW_MAX 96

/* How often the kernel has killed a process of this machine because memory ran out. */
uint64_t ended_oom_kills(void);
/* "was killed by signal 9", of a status as of waitpid(). *oom_kills is the number when it was asked
 * for last, and becomes the new one: if it has grown, memory may be the reason of a SIGKILL. */
void ended_how(uint64_t *oom_kills, int status, char how[ENDED_HOW_MAX]);

#endif
