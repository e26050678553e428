/* clients_text - the processes that are clients of a segment, as JSON and as a table; used by
 * clients and peer list.
 *
 * Contract: reads /proc for the users of processes.
 */
#ifndef TOOLS_XSEG_CLIENTS_TEXT_H
#define TOOLS_XSEG_CLIENTS_TEXT_H

#include <jansson.h>

#include "tools/xseg/base/opened.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/view.h"

/* One object a process, in the order of their first clients. Processes that serve peers are left
 * out, unless they have a volume or a store open. */
json_t *clients_text_json(const struct view_peers *peers, const struct opened *o);
/* How many of these there are. */
uint32_t clients_text_count(const struct view_peers *peers);
/* Of that array. */
struct out_table *clients_text_table(const json_t *clients);

/* "disk, scratch" of the volumes and stores that the process of this client has open; "" for none.
 * Returns buf. */
#define CLIENTS_NAMES_MAX 256
const char *clients_text_names(const struct view_peers *peers, const struct opened *o,
	const struct xseg_peer_info *client, char buf[CLIENTS_NAMES_MAX]);

#endif
