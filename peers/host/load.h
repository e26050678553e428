/* load - reads stack files for this program, from a file or a segment, and checks them against the
 * kinds.
 *
 * Contract: one thread. A function prints the one line of an error to stderr and returns an exit
 * code (enum main_exit).
 */
#ifndef PEERS_HOST_LOAD_H
#define PEERS_HOST_LOAD_H

#include "peers/common/options/stack.h"

/* Reads a stack file ("-": standard input), of which nothing is checked. Free it with free(). */
int load_text(const char *path, char **text);
/* Checks all of such a text, which `from` names in the error's line. Free with stack_destroy(). */
int load_parse(const char *who, const char *from, const char *text, struct stack **stack);
/* The stack that was copied into an attached segment. */
int load_segment(const char *who, struct xseg *seg, struct stack **stack);
/* The same, once more: NULL if there is none, or one with errors; nothing is printed. */
struct stack *load_again(struct xseg *seg);

#endif
