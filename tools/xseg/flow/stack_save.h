/* stack_save - settings of a running peer go into the stack file, and into the segment's copy.
 *
 * The file is the one that `up` or `reload` was given; the segment remembers its path. Comments,
 * order and all other lines stay. A new file takes the place of the old one at once, with its owner
 * and its mode; where the path is a link, the file that it leads to is replaced.
 *
 * Contract: reports its errors (tool.h) and returns an exit code. `what` is the command.
 */
#ifndef TOOLS_XSEG_STACK_SAVE_H
#define TOOLS_XSEG_STACK_SAVE_H

#include "peers/common/options/stack_record.h"
#include "tools/xseg/base/tool.h"

/* The segment's stack, for a command that can do nothing without its file. TOOL_REFUSED: the
 * segment does not know the file, or the file is gone, or was changed since it was used; or another
 * command changes the stack (stack_lock.h). */
int stack_save_check(struct tool *t, struct xseg *seg, const char *what,
	struct stack_record *record) XSEG_MUST_CHECK;
/* Writes " KEY=VALUE..." of a peer into the file, and into the segment. record: as checked. */
int stack_save_write(struct tool *t, struct xseg *seg, const char *what,
	struct stack_record *record, const char *peer, const char *settings) XSEG_MUST_CHECK;
/* Has the segment remember where its stack file is, if it is a regular file, and what named the
 * segment (STACK_NAMED_...). */
void stack_save_remember(struct tool *t, struct xseg *seg, const char *path, const char *named);

#endif
