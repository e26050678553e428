/* admin - texts about the cache for people, and the settings of single volumes.
 *
 * Contract: any port's thread, outside of any object, unless it says otherwise.
 */
#ifndef PEERS_CACHED_ADMIN_H
#define PEERS_CACHED_ADMIN_H

#include "peers/cached/life/cached.h"

void publish_gauges(struct cached *k, uint64_t now_ns);
void cost_now(struct cached *k, struct cache_cost *cost);	/* what it costs beside its pages */

/* ---- status.c ---- */
int64_t status_text(struct cport *ps, char *out, size_t size);
int64_t drop_clean(struct cport *ps, char *out, size_t size);

/* ---- volume_set.c, volume_text.c: what an administrator sets and asks; texts as
 * peers/common/runtime/peer.h has them ---- */
/* A predecessor may have been killed while volumes drained: they do so again. */
void volumes_drain(struct cached *k);
/* "id=N name=VOL KEY=VALUE..." */
int64_t volume_set_text(struct cached *k, char *args, char *out, size_t size);
int64_t volume_get_text(struct cached *k, char *args, char *out, size_t size);		/* "id=N" */
int64_t volume_forget_text(struct cached *k, char *args, char *out, size_t size);	/* "id=N" */
int64_t volume_status_text(struct cached *k, char *args, char *out, size_t size);	/* "id=N" */
/* "[FROM]": a line for each record */
int64_t volume_list_text(struct cached *k, char *args, char *out, size_t size);

#endif
