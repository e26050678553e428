/* stack_edit - changes one key in the text of a stack file; all other lines stay as they are.
 *
 * Contract: pure functions over texts.
 */
#ifndef PEERS_COMMON_STACK_EDIT_H
#define PEERS_COMMON_STACK_EDIT_H

#include <stddef.h>

/* Sets a key of [peer NAME] to these values, one for each line of `values`, ended by NUL; "": the
 * key's lines go. What is behind the value in its line, as a comment, stays. A key that the section
 * does not have goes behind its last key. Returns a new text, to be freed; NULL: there is no such
 * section, no memory, or a line would be too long. */
char *stack_edit_set(const char *text, const char *peer, const char *key, const char *values);
/* The first line in which two texts differ: its number, 0 if none does; the two lines are cut to
 * `size`. */
unsigned stack_edit_differs(const char *a, const char *b, char *in_a, char *in_b, size_t size);

#endif
