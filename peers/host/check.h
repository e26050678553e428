/* check - all that is wrong with a stack file, for people and for programs; the keys that a stack
 * file may have.
 *
 * Contract: one thread; prints. An error that is not one of the file is a line on stderr. Returns
 * an exit code (enum main_exit).
 *
 * A report is lines on stdout, with tabs between their words:
 *
 *	error  LINE KEY TEXT		what is wrong, top first; KEY may be empty, LINE 0
 *	room   LINE KEY TEXT		[segment] is too small for all peers, if the file makes it
 *	more   N			so many errors beside those
 *	memory NEEDED GIVEN GOOD	bytes: of all; of [segment], or 0; a good value
 *	need   PEER BYTES		the part of each; "export NAME" of an export
 *
 * Keys are such lines, too:
 *
 *	SECTION KEY ARG LIMITS DEFAULT FLAGS HELP
 *
 * SECTION is segment, peer, export, run, or a kind of peers. FLAGS are of the letters r (required),
 * l (live), m (may be repeated).
 */
#ifndef PEERS_HOST_CHECK_H
#define PEERS_HOST_CHECK_H

#include <stdbool.h>

/* "-": standard input. MAIN_USAGE: something is wrong. */
int check_file(const char *path, bool report);
int check_keys(void);

#endif
