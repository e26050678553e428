/* launch - starts a stack's processes and waits until its peers serve.
 *
 * Contract: reports its errors (tool.h) and returns an exit code. A peer is started from the text
 * of the stack that the segment holds. A started process is detached and writes to the log of
 * proc_log_path().
 */
#ifndef TOOLS_XSEG_LAUNCH_H
#define TOOLS_XSEG_LAUNCH_H

#include <limits.h>
#include <sys/types.h>

#include "peers/common/options/stack.h"
#include "tools/xseg/base/stopped.h"
#include "tools/xseg/base/tool.h"

/* Starts one peer of the stack in the segment, with those of its group that are not alive, unless
 * they stay stopped; waits until it serves. */
int launch_peer(struct tool *t, struct xseg *seg, const char *name);
/* The stack in the segment; `what` is what shall be done with it, for messages. *text: as it is
 * there, to be freed; NULL: not wanted. Refuses one of another user's segment, whose text may start
 * anything. */
int launch_stack(struct tool *t, struct xseg *seg, const char *what, struct stack **stack,
		 char **text);

/* A stack on its way up. */
struct launch {
	struct tool *t;
	struct xseg *seg;
	const struct stack *stack;
	const char *what;			/* the command, for messages */
	char log[PATH_MAX];
	off_t log_from;				/* where this start's lines begin */
	uint32_t nr_away;			/* launch_wait(): peers that it did not wait for */
	struct tool_span no_supervisor;
};

/* Says that somebody else's supervisor is at work; TOOL_REFUSED. */
int launch_refuse(const struct tool *t, struct xseg *seg);
/* Starts the supervisor, which keeps the stack's text in the segment; it is at work when this
 * returns TOOL_DONE. TOOL_REFUSED: another one is. */
int launch_supervisor(struct launch *l, struct tool *t, struct xseg *seg, const struct stack *stack,
		      const char *text);
/* Waits until all peers serve, but those that stay away. TOOL_FAILED, TOOL_REFUSED: one of them
 * could not be started, or was refused what it is to serve, or the supervisor has gone; the reason
 * is printed. */
int launch_wait(struct launch *l);
/* Whether a peer of the stack, by its place, does not serve and stays so: `xseg peer stop` has
 * stopped it, or one below it, without which it is not started. */
bool launch_stays_away(const struct launch *l, const struct stopped *s, uint32_t peer);
/* Tells of each such peer. */
void launch_note_away(const struct launch *l);
/* Whether the start of `waiting` has failed, or that of a peer that it needs, as the supervisor's
 * log says. It is a peer or an export, and does not serve yet. Another command may just be
 * replacing the supervisor. TOOL_FAILED, TOOL_REFUSED: the reason is printed. */
int launch_look_for_failure(struct launch *l, const char *waiting);
/* Waits until that incarnation of a peer has stopped, and the supervisor has started the next one,
 * which serves. *stays: `xseg peer stop` has stopped it meanwhile, and nobody starts it. l:
 * launch_watch()'s. */
int launch_wait_again(struct launch *l, const struct xseg_peer_info *old, bool *stays);
/* What the supervisor logs from now on. */
void launch_watch(struct launch *l, struct tool *t, struct xseg *seg, const struct stack *stack,
		  const char *what);
/* Whether a supervisor that has gone was asked to by somebody else, and has stopped all: one that
 * was killed stays listed, as dead, and one that had to leave leaves others alive. */
bool launch_ended_in_order(struct xseg *seg);
/* Repeats what was warned of since it began. */
void launch_note_warnings(const struct launch *l);

#endif
