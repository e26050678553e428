/* progress_line - one line on the terminal of stderr, which is written over again and again.
 *
 * Contract: one thread shows; any thread hides, before it writes another line to stderr. Without a
 * terminal nothing is shown.
 */
#ifndef PEERS_COMMON_PROGRESS_LINE_H
#define PEERS_COMMON_PROGRESS_LINE_H

#include <stdbool.h>

/* Whether stderr is a terminal. */
bool progress_line_possible(void);
/* Only what fits a line of the terminal is shown. */
void progress_line_show(const char *text);
/* Clears the line, if one is shown. */
void progress_line_hide(void);

#endif
