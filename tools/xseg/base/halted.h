/* halted - processes that a signal has halted, as SIGSTOP does, or a debugger. They are not dead:
 * no successor takes their place, all that need them wait, and no other sign tells why.
 *
 * Contract: only looks, at a segment and at /proc.
 */
#ifndef TOOLS_XSEG_HALTED_H
#define TOOLS_XSEG_HALTED_H

#include "tools/xseg/base/view.h"

/* Only of a process that is not proved to be another one. */
bool halted_is(struct xseg *seg, const struct xseg_peer_info *p);

/* Writes who it is and what ends that, as a sentence without an end. Returns text. */
#define HALTED_TEXT (XSEG_NAME_MAX + 160)
const char *halted_tell(const char *name, uint64_t pid, char text[HALTED_TEXT]);

/* The first that is: the supervisor, or a peer that is no client. */
bool halted_find(struct xseg *seg, struct xseg_peer_info *p);
/* The first client that is: it keeps what was lent to it. */
bool halted_find_client(struct xseg *seg, struct xseg_peer_info *p);

#endif
