/* stack_errors - all that is wrong with a stack file, in the order of its lines.
 *
 * Contract: pure functions over the caller's memory. Errors beyond STACK_MAX_ERRORS are counted,
 * and not kept.
 */
#ifndef PEERS_COMMON_STACK_ERRORS_H
#define PEERS_COMMON_STACK_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "xseg/xseg.h"

#define STACK_MAX_ERRORS      64
#define STACK_ERROR_KEY_BYTES 48

struct stack_error {
	unsigned line;				/* 0: of the whole file */
	char key[STACK_ERROR_KEY_BYTES];	/* "" if it is about no key */
	struct xseg_error why;			/* without the line */
};

/* Zeroed, there are none. */
struct stack_errors {
	uint32_t nr, nr_more;			/* kept; beyond those */
	struct stack_error error[STACK_MAX_ERRORS];
};

/* An error goes behind others of its line. */
void stack_errors_add(struct stack_errors *e, unsigned line, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Whether one is about that key, from line `first` to line `last`. */
bool stack_errors_has(
	const struct stack_errors *e, unsigned first, unsigned last, const char *key);
/* 0 if there are none. Else -EINVAL, and err has the first one: "line N: ...". */
int stack_errors_first(const struct stack_errors *e, struct xseg_error *err) XSEG_MUST_CHECK;
/* One as a line for people; returns out->text. */
const char *stack_error_text(const struct stack_error *error, struct xseg_error *out);

#endif
