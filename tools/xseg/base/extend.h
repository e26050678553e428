/* extend - a command that a service manager waits for puts the manager's time-out off while data is
 * flushed, or a log is opened.
 *
 * Both may take longer than any time-out that fits all else. So while the command waits for a flush
 * (tool_flushes()), it says EXTEND_TIMEOUT_USEC (notify.h) when there is less dirty data, or when a
 * cache has written some. Of a log (tool_goes_on()) it says so when more of it was read. If nothing
 * goes on for a minute, the manager's time-out holds.
 *
 * Contract: one thread; works on any attachment. Without a manager nothing is done.
 */
#ifndef TOOLS_XSEG_EXTEND_H
#define TOOLS_XSEG_EXTEND_H

#include "tools/xseg/base/tool.h"

#define EXTEND_US 60000000u		/* after this long without any progress the manager acts */

struct extend {
	struct xseg *seg;
	const char *what;			/* the command */
	uint64_t looked_ns, went_on_ns, dirty, flushed;
	bool told;
};

/* seg and e live until extend_end(). */
void extend_begin(struct extend *e, struct tool *t, struct xseg *seg, const char *what);
/* code: with which the command ends */
void extend_end(struct extend *e, struct tool *t, int code);

#endif
