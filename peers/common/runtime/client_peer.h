/* client_peer - the peer of a program that is a client of a segment, and not in its stack file.
 *
 * Contract: any thread; as xseg_peer_open().
 */
#ifndef PEERS_COMMON_CLIENT_PEER_H
#define PEERS_COMMON_CLIENT_PEER_H

#include "xseg/xseg.h"

/* xseg_peer_open() with that name, which is the program's and its process's, or with a number
 * behind it where that is another's: of a process that had the same pid and is dead, or has it in
 * another container. */
int client_peer_open(struct xseg *seg, const struct xseg_peer_params *params,
	struct xseg_peer **peer, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
