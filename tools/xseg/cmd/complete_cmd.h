/* complete_cmd - complete: how the last word of a command line of `xseg` may go on, for a shell.
 *
 * Contract: prints words only, and no error: what cannot be found out is left out. A peer that is
 * asked for names has a second to answer.
 */
#ifndef TOOLS_XSEG_COMPLETE_CMD_H
#define TOOLS_XSEG_COMPLETE_CMD_H

#include "peers/common/options/opt.h"
#include "tools/xseg/base/tool.h"

struct complete_tables {
	const struct command *commands;
	size_t nr;
	const struct opt *global;
};

int complete_words(struct tool *t, const struct complete_tables *tables, int argc, char **argv);

#endif
