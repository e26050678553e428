/* cli - a command line, read by tables of options (opt.h).
 *
 * Contract: cli_parse() prints nothing and does not exit. It writes the fields that the tables
 * name. It reads
 * 	--name=value   --name value   --name (a boolean: yes)   -s X = --segment X   -h = --help
 *
 * A boolean that --help shows with yes|no takes one of these two words if it follows; a flag takes
 * none. In names '-' and '_' are the same. The parser stops at "--", at "-" and at the first word
 * that is no option.
 *
 * To let options follow other words ("create VOL --size 1G"), take the word and call it again from
 * there.
 */
#ifndef PEERS_COMMON_CLI_H
#define PEERS_COMMON_CLI_H

#include <stdio.h>

#include "peers/common/options/opt.h"

struct cli_group {
	const struct opt *table;		/* NULL ends an array of groups */
	void *base;
};

/* First in main(): those of the three standard descriptors that are closed lead nowhere from then
 * on, and using them fails. A file that is opened would else have their number, and what is
 * printed. What a limit of the size of files forbids fails, as on a disk that is full. */
void cli_begin(void);
/* Last in main(), with its exit code: returns that, or 1 with a line on stderr, where it is 0 and
 * not all that was printed could be written. */
int cli_end(const char *program, int code) XSEG_MUST_CHECK;

/* argv[0] is skipped. Returns the index of the first argument that is no option ("--" itself is
 * passed over), argc when there is none, or -EINVAL with a line in err, which the caller ends by
 * saying where the options are told. */
int cli_parse(const struct cli_group *groups, int argc, char **argv,
	      struct xseg_error *err) XSEG_MUST_CHECK;
/* For a program that takes options only; `at` is from cli_parse(). 0, or -EINVAL with a line in err
 * that names the first argument that is no option. */
int cli_only_options(int at, int argc, char **argv, struct xseg_error *err) XSEG_MUST_CHECK;

/* Aligned, for a terminal of 80 columns: name, argument, help, range, default. */
void cli_print_options(FILE *out, const struct opt *table);
/* What stands behind "name=", "" for a flag; its range or its choices, written into out, which is
 * returned: "4M to 1T", "wait, fail", or "". */
const char *cli_argument(const struct opt *o);
const char *cli_limits(const struct opt *o, char *out, size_t size);
/* The words of a text from column `at` on, where the line is now: a line that is full is followed
 * by others, which begin there, too. Ends the line. */
void cli_print_words(FILE *out, int at, const char *text);

/* The option whose name is nearest to `name` (edit distance), or NULL when none is near. */
const struct opt *cli_nearest(const struct cli_group *groups, const char *name);

/* For struct opt's check: a name of a segment, a peer or a volume. An empty one is none: a
 * script says it whose variable is not set. */
int cli_check_name(const char *text, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
