/* volume_use - what each volume takes in its store and in the caches above that, and which
 * processes have it open.
 *
 * The store counts the bytes of its objects in the background (peers/common/blocker/usage.h). The
 * figures are those of a complete count: of one that begins now, if it ends within VOLUME_USE_NS,
 * else of the one before.
 *
 * Contract: volume_use_load() asks the peers below one volumed, and waits as said above. It prints
 * nothing: what is not known is null, and `why` says why. volume_use_print() writes to stdout.
 */
#ifndef TOOLS_XSEG_VOLUME_USE_H
#define TOOLS_XSEG_VOLUME_USE_H

#include <jansson.h>

#include "tools/xseg/base/asker.h"
#include "tools/xseg/base/client.h"

#define VOLUME_USE_NS	 (2 * TOOL_SECOND)
#define VOLUME_USE_USERS 64u			/* processes of a volume that are named */
#define VOLUME_USE_WHY	 256u

struct volume_use {
	uint32_t volumed;
	json_t *used;		/* by prefix: an array of bytes and objects; NULL: not known */
	json_t *cached;				/* by id: an array of bytes and dirty bytes */
	uint64_t age_ms;			/* of the count */
	char why[VOLUME_USE_WHY];		/* `used` is not known; else "" */
};

/* Has a store count its objects, and waits so long for the end of that. Returns its last answer to
 * "usage", or NULL. */
char *volume_use_count(struct asker *a, const struct tool *t, const struct xseg_peer_info *store,
	uint64_t wait_ns);

void volume_use_load(const struct tool *t, struct xseg *seg, uint32_t volumed,
	struct volume_use *u);
void volume_use_free(struct volume_use *u);
/* Adds to a volume's JSON object: "used_bytes used_objects used_age_ms cached_bytes dirty_bytes
 * open_by[]{program pid export clients since_s}". */
void volume_use_put(const struct volume_use *u, struct xseg *seg, json_t *volume, uint32_t id,
	const char *prefix);

/* Cells of a table, of what volume_use_put() has added. */
struct volume_use_text {
	char used[32], cached[32], dirty[32], open_by[256];
};
void volume_use_cells(const json_t *volume, struct volume_use_text *text);
/* Lines of `volume info`. */
void volume_use_print(const json_t *volume);

#endif
