/* peer_text - the peers of a segment as JSON and as a table; used by peer list and status.
 *
 * Contract: pure, but for looks at /proc for halted processes and replaced programs.
 */
#ifndef TOOLS_XSEG_PEER_TEXT_H
#define TOOLS_XSEG_PEER_TEXT_H

#include <jansson.h>

#include "tools/xseg/base/out.h"
#include "tools/xseg/base/opened.h"
#include "tools/xseg/base/view.h"

json_t *peer_text_json(const struct view_peers *peers);
/* all: each client has a line; else those of one process share one, which has their sums. Clients
 * have a column for what they have open, if there are any. */
struct out_table *peer_text_table(
	const struct view_peers *peers, const struct opened *o, bool all);

/* Notes each process of the stack whose program was replaced since, with the command that starts it
 * anew. */
void peer_text_note_replaced(const struct tool *t, const struct view_peers *peers);

/* An array for each peer that nobody sends to: the names from it down. Caches off the path are in
 * none. */
json_t *peer_text_chains(const struct view_peers *peers);
/* The names of those caches. */
json_t *peer_text_off_path(const struct view_peers *peers);

#endif
