/* lost - how a message counts the losses of a damaged catalogue: volumed's log and xseg's commands
 * use the same words.
 *
 * Contract: any thread.
 */
#ifndef PEERS_COMMON_LOST_H
#define PEERS_COMMON_LOST_H

#include <stdint.h>

#define LOST_MAX 96

/* records: those that cannot be read; volumes: those that are not served. Returns buf. */
const char *lost_tell(char buf[LOST_MAX], uint64_t records, uint64_t volumes);

#endif
