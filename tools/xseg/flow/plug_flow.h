/* plug_flow - a cache enters the path between peers that serve, or leaves it.
 *
 * The demand is stored in the segment at once, and the peers do it. Afterwards the command only
 * watches, so it may be ended at any time.
 *
 * Contract: a function that returns an int reports its errors (tool.h) and returns an exit code.
 * Waiting ends as tool.h says.
 */
#ifndef TOOLS_XSEG_PLUG_FLOW_H
#define TOOLS_XSEG_PLUG_FLOW_H

#include "tools/xseg/base/tool.h"

/* The caller gives t, seg and cache; all else is zeroed. */
struct plugging {
	struct tool *t;
	struct xseg *seg;
	uint32_t cache, lower, nr_upper, upper[XSEG_MAX_PORTS];
	uint64_t dirty_bytes, began_ns;		/* what was dirty at the beginning */
	struct tool_span gone;			/* somebody is whom nobody starts again */
};

/* Adds one of the peers that are to send to the cache; a peer twice is that peer. */
void plug_flow_add_upper(struct plugging *p, uint32_t peer);
/* Adds all that send to p->lower. */
void plug_flow_senders(struct plugging *p);
/* Finds who stands above and below the cache: as is wanted, or as it is. */
void plug_flow_ends(struct plugging *p);
/* Puts it between those above, who are all that send there, and p->lower. */
int plug_flow_enter(struct plugging *p);
/* Takes it off the path. Finds the ends itself. */
int plug_flow_leave(struct plugging *p);
/* All upper peers pass at once, so one of them tells. */
bool plug_flow_is_on_path(const struct plugging *p);
/* Until the next call. */
const char *plug_flow_name(struct plugging *p, uint32_t index);
/* Says why the segment has refused it; `what` is the command. */
int plug_flow_refused(int rc, const struct xseg_error *err, const char *what, const char *name);

#endif
