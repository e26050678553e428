/* sosd_rados - the way to the pool: connecting, what is sent, and what librados writes its answers
 * into.
 *
 * A *call* is one trip to RADOS. As many as may be out at a time are allocated when the pool is
 * opened; librados itself allocates for each of them, which is out of our hands.
 *
 * Data that lies in one in memory goes straight from the request's pages and to them. (librados
 * copies what is written once, into its message: its C interface has no other way.) What lies in
 * pieces, as a cache's pages do, goes by a buffer: a step of a compound operation for each of them
 * costs the OSD more than the copy costs us. 16 KiB in 4 pieces took 180 us of its processor, in
 * one 85; 1 MiB in 256 pieces was read at 80 MB/s, in 16 at 470, in one at 1,020, and written at
 * 300, 600 and 600. There is one buffer for what is written, which librados has copied when it has
 * taken the call, and SOSD_BOUNCES for what is read; when all of those are in use the pieces are
 * steps, of which the OSD does all or none.
 *
 * Contract: sosd_rados_open() and _close() block, and belong to init and fini. sosd_call_*() are
 * called by the thread of the port that the call is of, and do not block: librados' throttles are
 * set above what can be out. The end of a call is announced by `ended` on a thread of librados,
 * also before sosd_call_*() has returned.
 *
 * Invariants:
 *   C1  a call is free, or out, or has ended and is in the hands of its port
 *   C2  librados writes into a request's pages, a bounce buffer or a call only while the call is
 *       out; after ETIMEDOUT too, as a reply that comes later finds no operation, and no buffer is
 *       given to the messenger where there is a timeout (Ceph's #9582)
 *   C3  a buffer for reads is spare, or the call's that is out
 */
#ifndef PEERS_SOSD_SOSD_RADOS_H
#define PEERS_SOSD_SOSD_RADOS_H

#include <rados/librados.h>
#include <stdbool.h>
#include <stdint.h>

#include "xseg/xseg.h"

#define SOSD_BOUNCES 16			/* for each port */

struct sosd_call {
	struct sosd_call *next;			/* free, or NULL */
	rados_completion_t completion;
	uint64_t size;				/* of a stat */
	uint32_t nr;			/* of a read: how many pieces, and what came of each */
	size_t got[XSEG_REQ_PAGES];
	uint8_t *bounce;			/* what was read is here, in one piece; or NULL */
};

struct sosd_calls {
	struct sosd_call *call, *free;
	uint32_t nr, nr_out;
	uint8_t *buffers;	/* of XSEG_REQ_BYTES: the one for writes, and SOSD_BOUNCES */
	uint8_t *spare[SOSD_BOUNCES];
	uint32_t nr_spare;
};

struct sosd_rados {
	rados_t cluster;
	rados_ioctx_t io;
	int64_t pool_id;
	bool opened;				/* io is there */
	char pool[128];
	uint64_t capacity_bytes;		/* of the cluster, before copies, at the start; 0: not known */
	char address[56]; /* by which the OSDs know this process, and can be told to refuse it */
};

struct sosd_rados_params {
	const char *pool, *conf, *user;
	uint64_t timeout_ns;
	uint32_t max_out;			/* calls of all ports together */
};

typedef void sosd_ended(rados_completion_t c, void *arg); /* rados_callback_t; arg is the owner's */

/* Fails with a line that says what is missing: configuration, keyring, monitor, pool. */
int sosd_rados_open(struct sosd_rados *s, const struct sosd_rados_params *p,
	struct xseg_error *err) XSEG_MUST_CHECK;
/* what is out is forgotten: `ended` is not called after that */
void sosd_rados_close(struct sosd_rados *s);
/* How long librados sends an operation again, for those that are sent from now on. */
int sosd_rados_set_timeout(struct sosd_rados *s, uint64_t timeout_ns) XSEG_MUST_CHECK;
/* The OSDs refuse what another process of that address sent and they have not done yet, before they
 * do anything that is sent from now on. -EACCES when the user may not ask for that. */
int sosd_rados_fence(struct sosd_rados *s, const char *address) XSEG_MUST_CHECK;
bool sosd_rados_has_pool(struct sosd_rados *s);	/* as far as this process knows; does not block */

int sosd_calls_open(struct sosd_calls *cs, uint32_t nr) XSEG_MUST_CHECK;
void sosd_calls_close(struct sosd_calls *cs);	/* after sosd_rados_close() */

static inline bool sosd_calls_has_room(const struct sosd_calls *cs)
{
	return cs->free;
}

/* There is room. NULL: librados has no memory for it. */
struct sosd_call *sosd_call_get(struct sosd_calls *cs, sosd_ended *ended, void *arg);
void sosd_call_put(struct sosd_calls *cs, struct sosd_call *c);

/* 0: it is out, and `ended` is or will be called; else it is not. `name` is the object's, in the
 * pool. */
int sosd_call_read(struct sosd_rados *s, struct sosd_calls *cs, struct sosd_call *c,
	const char *name, struct xseg *seg, const struct xreq *r) XSEG_MUST_CHECK;
int sosd_call_write(struct sosd_rados *s, struct sosd_calls *cs, struct sosd_call *c,
	const char *name, struct xseg *seg, const struct xreq *r) XSEG_MUST_CHECK;
int sosd_call_stat(struct sosd_rados *s, struct sosd_call *c, const char *name) XSEG_MUST_CHECK;
int sosd_call_remove(struct sosd_rados *s, struct sosd_call *c, const char *name) XSEG_MUST_CHECK;
/* Zeroes within an object of `size` bytes, which keeps its size. offset < size. */
int sosd_call_punch(struct sosd_rados *s, struct sosd_call *c, const char *name, uint64_t offset,
	uint64_t len, uint64_t size) XSEG_MUST_CHECK;
/* One buffer; a copy's. */
int sosd_call_load(struct sosd_rados *s, struct sosd_call *c, const char *name, void *buf,
	uint32_t len, uint64_t offset) XSEG_MUST_CHECK;
int sosd_call_store(struct sosd_rados *s, struct sosd_call *c, const char *name, const void *buf,
	uint32_t len, uint64_t offset) XSEG_MUST_CHECK;

/* A read has ended well: all of it is in its pages after that, with zeroes in the place of what is
 * not there. */
void sosd_call_fill(const struct sosd_call *c, struct xseg *seg, const struct xreq *r);
/* Its object is not there: all of it is zeroes. */
void sosd_fill_all(struct xseg *seg, const struct xreq *r);

#endif
