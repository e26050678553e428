/* stack_errors - all that is wrong with a stack file, in the order of its lines; the lines of a
 * section's keys, which errors name.
 *
 * Contract: pure functions over the caller's memory. Errors beyond STACK_MAX_ERRORS are counted,
 * and not kept.
 */
#ifndef PEERS_COMMON_STACK_ERRORS_H
#define PEERS_COMMON_STACK_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "peers/common/options/opt.h"
#include "xseg/xseg.h"

#define STACK_MAX_ERRORS      64
#define STACK_TABLE_KEYS      16		/* at most, of a section's own table */
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

/* Zeroed, the section is not there. */
struct stack_lines {
	unsigned section, last;			/* of [SECTION], and of its last key */
	unsigned key[STACK_TABLE_KEYS];		/* by its place in the table; 0: not given */
};

/* Notes the line of a key. False: the section has the key already. */
bool stack_lines_note(
	struct stack_lines *l, const struct opt *table, const struct opt *o, unsigned line);
/* The key's line; the section's line if the section does not have the key. */
unsigned stack_line_of(
	const struct stack_lines *l, const struct opt *table, const char *key);

#endif
