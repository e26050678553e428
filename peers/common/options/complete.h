/* complete - how a word of a command line may go on, by tables of options: for the completion of
 * commands by a shell (tools/completion).
 *
 * Contract: prints to standard output, a line for each whole word that is possible. Where a name or
 * a file is wanted the caller is asked: names() is given what kind of, what stands before it in the
 * word, and how it begins.
 *
 * Kinds: "files", "segments", "volumes", "peers"; and kinds of peers, such as "volumed".
 */
#ifndef PEERS_COMMON_COMPLETE_H
#define PEERS_COMMON_COMPLETE_H

#include "peers/common/options/cli.h"

typedef void complete_names(const char *kind, const char *before, const char *begin, void *arg);

/* before: the words that precede it; word: what is there of the one to be completed. False: it is
 * no option, nor the value of one. */
bool complete_option(const struct cli_group *groups, const char *before, const char *word,
		     complete_names *names, void *arg);
/* The option whose value follows that word; NULL: none does. */
const struct opt *complete_awaits(const struct cli_group *groups, const char *word);
/* Prints it, if it begins so. */
void complete_print(const char *before, const char *candidate, const char *begin);

#endif
