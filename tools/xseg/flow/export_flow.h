/* export_flow - the servers of a stack's exports on their way up, and down without a supervisor.
 *
 * Contract: reports its errors (tool.h) and returns an exit code. Waiting ends as tool.h says.
 */
#ifndef TOOLS_XSEG_EXPORT_FLOW_H
#define TOOLS_XSEG_EXPORT_FLOW_H

#include "peers/common/say/words.h"
#include "tools/xseg/base/exported.h"
#include "tools/xseg/base/tool.h"
#include "tools/xseg/flow/launch.h"

/* Waits until all exports of the stack are served, as launch_wait() does for peers. One whose
 * volume is not there is served, and is told of. One that `xseg export stop` has stopped is told
 * of, too, and not waited for. */
int export_flow_wait(struct launch *l);
/* Ends the servers of exports that `old`, the stack of the segment, has and `file` does not have.
 * Waits for that. The supervisor does it, if there is one. what: the command */
int export_flow_end_gone(struct tool *t, struct xseg *seg, const struct stack *old,
	const struct stack *file, const char *what);
/* Ends all servers of exports in order, and waits for that. No supervisor may be there. */
int export_flow_end(struct tool *t, struct xseg *seg);
/* Waits until the supervisor has done that: the export is served by another incarnation than
 * `before`, or is stopped. l: launch_watch()'s. */
int export_flow_wait_order(
	struct launch *l, enum export_order order, const struct exported *before);

#endif
