/* opened - what the clients of a segment have open, by name: volumes, and stores of values.
 *
 * A client says the number of its volume in a word of its own. Only volumed knows the name. If
 * volumed does not answer in time, the number is shown.
 *
 * Contract: attaches as a client for the questions, and waits two seconds at most. Prints nothing.
 */
#ifndef TOOLS_XSEG_OPENED_H
#define TOOLS_XSEG_OPENED_H

#include "tools/xseg/base/tool.h"
#include "tools/xseg/base/view.h"

struct opened_volume {
	uint32_t volumed, id;			/* as the client's word has them */
	char name[XSEG_NAME_MAX];
};

struct opened {
	uint32_t nr;
	struct opened_volume *volume;		/* NULL: there is none, or no memory */
};

void opened_load(const struct tool *t, const struct view_peers *peers, struct opened *o);
void opened_fini(struct opened *o);

/* Which peer's volume or store that client has open: *server is that peer. False: none. */
bool opened_by(const struct view_peers *peers, const struct xseg_peer_info *client,
	const struct xseg_peer_info **server);
/* The name of its volume, or of its store of values. Returns buf. */
const char *opened_name(const struct opened *o, const struct xseg_peer_info *client,
	const struct xseg_peer_info *server, char buf[XSEG_NAME_MAX]);

#endif
