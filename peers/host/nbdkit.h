/* nbdkit - how the supervisor starts an nbdkit for the exports of one address.
 *
 * nbdkit gets xseg's plug-in and guard (tools/nbdkit), from where they were built or installed. It
 * inherits the supervisor's log, and has a session of its own.
 *
 * Contract: one thread, the supervisor's. Nothing blocks. Errors are one line in *err.
 */
#ifndef PEERS_HOST_NBDKIT_H
#define PEERS_HOST_NBDKIT_H

#include <stdint.h>
#include <sys/types.h>

#include "xseg/xseg.h"

struct supervisor;
struct stack_export;

/* The settings of a server as a number that is not 0: `first` is its first export. */
uint64_t nbdkit_id(const struct supervisor *s, uint32_t first);
/* Removes a socket on which nobody listens. -EADDRINUSE, -EEXIST and others: the address cannot be
 * had. */
int nbdkit_clear_address(const struct stack_export *e, struct xseg_error *err) XSEG_MUST_CHECK;
/* The same after its end; that another process has the socket is no error. */
void nbdkit_remove_socket(const struct stack_export *e);
/* Mode and group of the socket of a server that runs, as the stack has them now. */
int nbdkit_set_rights(const struct supervisor *s, uint32_t first,
	struct xseg_error *err) XSEG_MUST_CHECK;
int nbdkit_start(struct supervisor *s, uint32_t first, uint64_t id, pid_t *pid,
	struct xseg_error *err) XSEG_MUST_CHECK;

#endif
