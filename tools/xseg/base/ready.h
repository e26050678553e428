/* ready - whether peers that run can do what they are for. A kvd serves nothing before its log in
 * the store is open. Opening takes long if there is much to read, and some logs cannot be opened.
 *
 * Contract: works on any attachment, an observer's too. Asks as a client of its own. If no client
 * can be opened, as in a segment without a free port, all that run count as ready. Waiting ends as
 * tool.h says (T3).
 */
#ifndef TOOLS_XSEG_READY_H
#define TOOLS_XSEG_READY_H

#include "peers/common/options/stack.h"
#include "tools/xseg/base/client.h"

#define READY_WHY 512

enum ready_state {
	READY_YES,
	READY_OPENS,				/* it may be ready later, without any command */
	READY_NO				/* it never is, as it is */
};

struct ready {
	enum ready_state state;
	bool answers;
	bool usage;				/* NO: its options are wrong for its log */
	uint64_t done, of;			/* OPENS: how far it is; of 0: not known */
	uint64_t went;				/* it grows as long as the opening goes on */
	char why[READY_WHY];			/* NO: the reason; what to do */
};

/* What a kvd's answer to "info" says of it. */
void ready_read(const char *answer, struct ready *r);
/* " (43%)" of one that opens, or "". Returns text. */
#define READY_TEXT 16
const char *ready_percent(const struct ready *r, char text[READY_TEXT]);

/* Waits until peers of the stack that run are ready: the one called `only` and those of its group,
 * or all if that is NULL. Prints which peer is not, why, and what to do: TOOL_FAILED, or TOOL_USAGE
 * if its options are wrong. TOOL_LATER: one still opens. `what` is the command. *nr_not (may be
 * NULL): how many peers are not ready. */
int ready_wait(struct tool *t, struct xseg *seg, const struct stack *stack, const char *what,
	const char *only, uint32_t *nr_not) XSEG_MUST_CHECK;
/* The same of the stack in the segment. */
int ready_wait_named(struct tool *t, struct xseg *seg, const char *what, const char *only)
	XSEG_MUST_CHECK;

#endif
