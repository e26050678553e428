/* stack_lock - one command at a time changes what a segment keeps of its stack (stack_record.h).
 *
 * The lock is on the segment's file, and apart from the segment's own locks. It is advisory, and
 * ends with the process that has it.
 *
 * Contract: reports its errors (tool.h) and returns an exit code. `what` is the command.
 */
#ifndef TOOLS_XSEG_STACK_LOCK_H
#define TOOLS_XSEG_STACK_LOCK_H

#include "tools/xseg/base/tool.h"

/* Waits for up to five seconds, so that short commands that come together all succeed. *fd is for
 * stack_unlock(). TOOL_REFUSED: another command has the lock for longer, as 'xseg reload' does. */
int stack_lock(struct tool *t, const char *what, int *fd) XSEG_MUST_CHECK;
/* The same, and waits as T3 of tool.h says. It is for commands that agree with whatever the other
 * one makes of the stack. */
int stack_lock_patiently(struct tool *t, const char *what, int *fd) XSEG_MUST_CHECK;
/* Whether anybody has it. */
bool stack_is_locked(const struct tool *t);
/* -1: nothing is to be done. */
void stack_unlock(int fd);

#endif
