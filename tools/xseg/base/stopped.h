/* stopped - which peers and exports commands have stopped, as the record of the stack says
 * (peers/common/options/stack_record.h): no supervisor starts them.
 *
 * Contract: reading works on any attachment, an observer's too, and may be old when it is used.
 * Writing needs the lock of stack_lock.h.
 */
#ifndef TOOLS_XSEG_STOPPED_H
#define TOOLS_XSEG_STOPPED_H

#include "peers/common/options/stack_record.h"
#include "tools/xseg/base/tool.h"

struct stopped {
	char names[STACK_STOPPED_BYTES];	/* "": none */
};

void stopped_load(struct xseg *seg, struct stopped *s);
/* `xseg peer stop` has stopped it, and it stays so. */
bool stopped_peer(const struct stopped *s, const struct xseg_peer_info *peer);
/* The same, of the segment as it is now. */
bool stopped_look(struct xseg *seg, const struct xseg_peer_info *peer);
bool stopped_export(const struct stopped *s, const char *name);

/* Writes the line of a peer: that it stays so, and what starts it. Returns text. */
#define STOPPED_TEXT (2 * XSEG_NAME_MAX + 100)
const char *stopped_tell(const char *name, char text[STOPPED_TEXT]);

/* Names, and whether they are to be in the record, or not. */
struct stopped_change {
	enum stack_stopped what;
	bool stopped;
	uint32_t nr;
	const char *name[STACK_MAX_EXPORTS];
};
/* Changes the record; the caller has the lock. `what` is the command. Reports its errors, and
 * returns an exit code. */
int stopped_write(struct tool *t, struct xseg *seg, const char *what,
	const struct stopped_change *change) XSEG_MUST_CHECK;
/* The same with the lock taken for it. TOOL_REFUSED, too: another command changes the stack. */
int stopped_remember(struct tool *t, struct xseg *seg, const char *what,
	const struct stopped_change *change) XSEG_MUST_CHECK;

#endif
