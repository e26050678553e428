/* fds - how many descriptors the peers of a process may open: the soft limit of open files.
 *
 * Several peers may share a process, so each takes its part of the limit at init, and gives it back
 * at fini. Nothing stops a peer from opening more than its part.
 *
 * Contract: any thread.
 */
#ifndef PEERS_COMMON_FDS_H
#define PEERS_COMMON_FDS_H

#include <sys/resource.h>

#include "xseg/xseg.h"

#define FDS_RESERVED 64u	/* what a peer needs besides those that it counts */

/* The process may have `want` more descriptors, or as many as it is allowed: *got. Raises the soft
 * limit up to the hard one. -errno with a line in err. */
int fds_take(rlim_t want, rlim_t *got, struct xseg_error *err) XSEG_MUST_CHECK;
void fds_give_back(rlim_t nr);

#endif
