/* stack_file - a stack file: read, and checked by xseg-host, which alone knows the kinds' options.
 *
 * Contract: a function that returns an int reports its errors (tool.h) and returns an exit code.
 * `what` is the command, for messages.
 */
#ifndef TOOLS_XSEG_STACK_FILE_H
#define TOOLS_XSEG_STACK_FILE_H

#include <jansson.h>

#include "peers/common/options/stack.h"
#include "tools/xseg/base/tool.h"

struct stack_file {
	const char *path;			/* the caller's */
	char *text;
	struct stack *stack;			/* valid if there are no errors */
	struct stack_errors errors;
	struct stack_errors room;		/* if [segment] is to be made by the file */
	uint64_t needed_bytes, given_bytes, good_bytes;	/* of [segment] memory */
	json_t *needs;				/* {peer: bytes} */
};

/* Reads and checks the file; errors of the file itself are in `f`, and not reported. Free with
 * stack_file_drop(), also after a failure. NULL: no memory, which is reported. */
struct stack_file *stack_file_read(struct tool *t, const char *what, const char *path, int *code);
void stack_file_drop(struct stack_file *f);
/* Prints a line for each error, top first, also of `room` if `makes`. TOOL_USAGE if there is any.
 */
int stack_file_tell(const struct stack_file *f, const char *what, bool makes);
/* All errors: an array of {line, key, what, next}. */
json_t *stack_file_errors(const struct stack_file *f);

#endif
