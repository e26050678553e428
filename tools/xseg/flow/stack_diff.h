/* stack_diff - what differs between a stack that runs and a stack file.
 *
 * Live keys are compared with what the running peers say. Routes and kinds are compared with those
 * of the segment, and [segment] with what the segment is. All else is compared with the text in the
 * segment.
 *
 * Contract: reports its errors (tool.h) and returns an exit code. Changes nothing.
 */
#ifndef TOOLS_XSEG_STACK_DIFF_H
#define TOOLS_XSEG_STACK_DIFF_H

#include <jansson.h>

#include "peers/common/options/stack_record.h"
#include "tools/xseg/base/route_plan.h"
#include "tools/xseg/flow/stack_file.h"

#define STACK_DIFF_MAX	  4096			/* more than all keys of a stack */
#define STACK_DIFF_VALUE 256

enum stack_diff_how {
	STACK_DIFF_LIVE,			/* may be set while the peer runs */
	STACK_DIFF_RESTART,			/* holds when the peer is started again */
	STACK_DIFF_ADD,				/* a peer that is new */
	STACK_DIFF_REMOVE,			/* a peer that the file does not have */
	STACK_DIFF_STACK,			/* the supervisor's alone: it takes another text */
	STACK_DIFF_ROUTE,			/* a cache is plugged or unplugged */
	STACK_DIFF_REPLACE,			/* the peer is stopped, and begins elsewhere */
	STACK_DIFF_DOWN,			/* needs down and up */
	STACK_DIFF_FIXED,			/* never, as long as the peer has its data */
	STACK_DIFF_NR
};

struct stack_diff_row {
	char section[XSEG_NAME_MAX + 16], key[STACK_ERROR_KEY_BYTES];
	char now[STACK_DIFF_VALUE], file[STACK_DIFF_VALUE];	/* a list's values in a line each */
	char peer[XSEG_NAME_MAX];		/* "" if it is of none */
	enum stack_diff_how how;
};

struct stack_diff {
	uint32_t nr;
	struct stack_diff_row row[STACK_DIFF_MAX];
	struct route_plan plan;			/* of routes, kinds and processes */
};

/* record: of the segment. */
int stack_diff_make(struct tool *t, struct xseg *seg, const struct stack_record *record,
	const struct stack_file *file, struct stack_diff *d) XSEG_MUST_CHECK;
/* How many rows there are of that kind. */
uint32_t stack_diff_count(const struct stack_diff *d, enum stack_diff_how how);
/* A table for people, on stdout; an exit code. */
int stack_diff_print(const struct stack_diff *d);
/* An array of {section, key, now, file, how}. */
json_t *stack_diff_json(const struct stack_diff *d);

#endif
