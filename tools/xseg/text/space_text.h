/* space_text - a store's room, and what it fails now: as JSON for scripts, as lines for people, and
 * as warnings before it is full.
 *
 * Contract: pure but for space_print() and space_warnings_print(), which write to stdout.
 */
#ifndef TOOLS_XSEG_SPACE_TEXT_H
#define TOOLS_XSEG_SPACE_TEXT_H

#include <jansson.h>

#include "tools/xseg/base/view.h"

bool space_is_store(const struct xseg_peer_info *p);
/* The store at the end of the routes from a peer, which may be that peer; NULL: there is none. */
const struct xseg_peer_info *space_store_below(
	const struct view_peers *peers, const struct xseg_peer_info *p);

/* "name kind dir dir_removed size_bytes free_bytes files free_files failing used_bytes used_age_ms
 * volumes_bytes dirty_bytes", from a store's answers to "status" and to "usage" (NULL: it gave
 * none). What is not known is null. */
json_t *space_json(const struct view_peers *peers, const struct xseg_peer_info *p,
	const char *status, const char *usage);
/* Adds to volumes_bytes what the volumes of one more volumed may take. */
void space_add_volumes(json_t *store, uint64_t bytes);

/* Adds an object "kind of text" to the array for each thing that a store's user must know before it
 * is full: low_space, low_files, dirty_exceeds_free, store_fails. */
void space_warn(const json_t *store, json_t *warnings);

/* "12.0G of 40.0G free (30.0%), in DIR", and a line of what objects take. */
void space_print(const json_t *store);
void space_warnings_print(const json_t *warnings);

#endif
