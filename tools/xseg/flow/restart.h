/* restart - peers are stopped in order and started again, by the programs that are in place then.
 *
 * If a supervisor runs, it starts the processes, so they are its children and have its log and its
 * limits. Without one this process starts them.
 *
 * Contract: reports its errors (tool.h) and returns an exit code. Requests of other peers and of
 * clients wait meanwhile, and none of them fails.
 */
#ifndef TOOLS_XSEG_RESTART_H
#define TOOLS_XSEG_RESTART_H

#include "tools/xseg/base/tool.h"

/* One peer, which is in the stack and alive, or has stopped and may be being restarted by another
 * command. Others of its process serve on; then it gets a process of its own. locked: the caller
 * has the lock of stack_lock.h. */
int restart_peer(
	struct tool *t, struct xseg *seg, const struct xseg_peer_info *peer, bool locked);
/* All peers of the stack that are alive, process by process, bottom up; then the supervisor. Those
 * that `xseg peer stop` has stopped are told of.
 * If the supervisor tries to start a peer, this waits for that first: peers above could not write
 * to it. If it fails, nothing above it is stopped, and the command fails.
 * if_replaced: only processes whose program's file has been replaced, and no gateway that clients
 * are connected to. */
int restart_all(struct tool *t, struct xseg *seg, bool if_replaced);

#endif
