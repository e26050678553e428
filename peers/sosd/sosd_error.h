/* sosd_error - the meaning of librados' errors: whether an error is temporary, how long to wait
 * then, and the error that a client gets.
 *
 * librados itself sends again a request that an OSD did not answer. It sends it to whichever OSD
 * the map names, and as the same operation, so the operation is done once. That goes on for
 * io_timeout (rados_osd_op_timeout). A dead OSD is ETIMEDOUT after that and nothing before. sosd
 * retries the temporary errors that librados returns at once.
 *
 * Contract: pure functions; errors are negative errnos.
 */
#ifndef PEERS_SOSD_SOSD_ERROR_H
#define PEERS_SOSD_SOSD_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#define SOSD_PAUSE_MIN_NS UINT64_C(50000000)
#define SOSD_PAUSE_MAX_NS UINT64_C(2000000000)

/* It may be well the next time, without anybody doing anything to it. */
bool sosd_error_passes(int error);
/* Something is wrong with the store, not with what was asked for. */
bool sosd_error_is_the_stores(int error);
/* What the request is answered with. */
int sosd_error_for_client(int error);
/* For people: what it means in a cluster, and what to do. */
const char *sosd_error_remedy(int error);
/* How long to wait before the n-th time (from 1) that it is tried again: doubles, up to a
 * maximum. */
uint64_t sosd_error_pause_ns(uint32_t n);

#endif
