/* socket_rights - which users may connect to a server's Unix socket: its mode and its group.
 *
 * To connect, a user needs the right to write to the socket.
 *
 * Contract: any thread; owner.h's for names of groups.
 *
 * Invariants
 *   SR1  What is not asked for is that of the segment: users that may attach may connect.
 *   SR2  While the group changes, only the server's user may connect: no group gets the rights of
 *        the other.
 */
#ifndef PEERS_COMMON_SOCKET_RIGHTS_H
#define PEERS_COMMON_SOCKET_RIGHTS_H

#include "xseg/xseg.h"

struct socket_rights {
	uint32_t mode;
	int64_t group;				/* a gid */
};

/* From the texts of two options, each of which may be "". -EINVAL: this machine has no such group;
 * or another negative errno, with the reason in err. */
int socket_rights_find(struct xseg *seg, const char *mode, const char *group,
	struct socket_rights *r, struct xseg_error *err) XSEG_MUST_CHECK;
/* Of a socket that is there already. 0 or a negative errno, with the reason in err. */
int socket_rights_set(const char *path, const struct socket_rights *r,
	struct xseg_error *err) XSEG_MUST_CHECK;

#endif
