/* cache_volume - single volumes in a cache: their ids, settings and counters.
 *
 * A cache knows volumes by their ids, which volumed has. It answers "volume-status id=N" with
 * "key=value" lines. It answers "volumes [FROM]" with a line of "key=value" words for each volume.
 * The keys are the names of the JSON fields, nested ones dotted.
 *
 * Contract: a function that returns an int prints the reason of a failure and returns an exit code.
 */
#ifndef TOOLS_XSEG_CACHE_VOLUME_H
#define TOOLS_XSEG_CACHE_VOLUME_H

#include <jansson.h>

#include "tools/xseg/base/client.h"

/* Of the commands for a cache, or for a volume in it. */
struct cache_opts {
	char volume[XSEG_NAME_MAX], volumed[XSEG_NAME_MAX];
	bool save;				/* of `cache set` */
};

/* The id of the volume named by --volume, 0 without. Refused where its I/O does not pass the cache:
 * ids are a volumed's own, and there it is another one's. */
int cache_volume_id(struct client *c, uint32_t cache, const struct cache_opts *o,
		    uint32_t *id) XSEG_MUST_CHECK;
/* What a cache says of itself, and of its volumes; one that dies in between says nothing of these.
 * Negative, as client_ask(): it does not answer, and *status is NULL. */
int64_t cache_ask_status(struct client *c, uint32_t peer, const struct xseg_peer_info *cache,
	json_t **status) XSEG_MUST_CHECK;
/* One of them. */
int cache_volume_status(struct tool *t, const char *cache, const struct cache_opts *o);
/* A volume of that volumed was removed: no cache keeps settings for it. Says nothing of caches that
 * do not answer. */
void cache_volume_forget(struct client *c, uint32_t volumed, uint32_t id);
/* It has that name now: the settings that a cache has for it are of that name, and stay when
 * another volume gets the old one. As above. */
void cache_volume_rename(struct client *c, uint32_t volumed, uint32_t id, const char *name);
/* A table for people, if there are any. */
void cache_volumes_print(const json_t *volumes);

#endif
