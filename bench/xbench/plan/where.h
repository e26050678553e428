/* where - the target of the load: a volume, or a peer's objects of xbench's own naming. It also
 * writes a place in the target into a request.
 *
 * Contract: xb_where_find() may block for some seconds (it asks volumed) and opens a client peer of
 * its own for that time; the rest is cheap. A struct xb_where is constant once found and shared by
 * all jobs; a struct xb_place is one job's.
 */
#ifndef BENCH_XBENCH_WHERE_H
#define BENCH_XBENCH_WHERE_H

#include "bench/xbench/plan/gen.h"
#include "xseg/xseg.h"

struct xb_where {
	struct xseg *seg;
	uint32_t peer;				/* whom to send to */
	uint32_t volume;			/* id; 0: objects */
	uint64_t object_size;
	int object_shift;			/* if it is a power of two; -1: it is not */
	uint64_t total_bytes;
	uint64_t boundary;			/* what no I/O may cross, or 0 */
	uint64_t identity;	/* for stamps: the same volume or set of objects has the same */
	char peer_name[XSEG_NAME_MAX];
};

/* An object that was addressed: its name and hash, as a program has them that knows its objects. */
struct xb_place {
	uint64_t object;			/* + 1; 0: none yet */
	uint64_t hash;
	char name[48];
};
#define XB_PLACES 1024u				/* of a table of them, by object */

/* A client with one port, called after the process and `nr` (client_peer.h). */
int xb_client_open(struct xseg *seg, uint32_t nr, uint32_t nr_requests, struct xseg_peer **peer,
		   struct xseg_error *err) XSEG_MUST_CHECK;

/* 0; -ENOENT: no such peer or volume; -EINVAL: it does not fit the options (sets o->size); else
 * -errno. A line in err. */
int xb_where_find(struct xb_where *w, struct xseg *seg, struct xb_options *o,
		  struct xseg_error *err) XSEG_MUST_CHECK;

/* Sets volume, target, hash, offset and obj_offset for a byte of the range. places: a table, all 0
 * at first. */
void xb_where_address(const struct xb_where *w, struct xb_place *places, struct xreq *r,
		      uint64_t offset);
/* Name of the object that holds this byte; returns its length. */
size_t xb_where_object_name(uint64_t object, char name[XSEG_TARGET_MAX]);

/* Who on the path from the target down is not alive: writes "PEER is dead" or the like, or says
 * that all are alive. */
void xb_where_health(const struct xb_where *w, char *out, size_t size);
/* Nobody will serve the target any more, as the segment was removed: true, and a line in err. */
bool xb_where_is_lost(const struct xb_where *w, struct xseg_error *err);
/* The target is below a cache, and serves nobody else: true, and a line in err. */
bool xb_where_is_taken(const struct xb_where *w, struct xseg_error *err);

#endif
