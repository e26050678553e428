/* sosd_rados - the way to the pool: connecting, the calls, and the memory for librados' answers.
 *
 * A *call* is one trip to RADOS. All calls that may be out at a time are allocated when the pool is
 * opened. librados itself allocates for each of them, and we cannot change that.
 *
 * Data that is contiguous in memory goes straight from the request's pages and to them. (librados
 * copies written data once, into its message: its C interface has no other way.) Data in pieces,
 * such as a cache's pages, goes through a buffer. Without it each piece is a step of a compound
 * operation, and a step costs the OSD more than the copy costs us:
 *
 *   I/O      pieces   the OSD's processor   read         written
 *   16 KiB   4        180 us
 *   16 KiB   1        85 us
 *   1 MiB    256                            80 MB/s      300 MB/s
 *   1 MiB    16                             470 MB/s     600 MB/s
 *   1 MiB    1                              1,020 MB/s   600 MB/s
 *
 * One buffer serves all writes, as librados has copied it when it has taken the call. SOSD_BOUNCES
 * buffers serve reads. When all of those are in use, the pieces become steps. The OSD does all of
 * the steps or none.
 *
 * Contract: sosd_rados_open() and _close() block, and belong to init and fini. sosd_call_*() are
 * called by the thread of the call's port. They do not block: librados' throttles are set above the
 * number of calls that can be out. A thread of librados announces the end of a call by `ended`,
 * which may come before sosd_call_*() has returned.
 *
 * Invariants:
 *   C1  A call is free, or out, or has ended and is held by its port.
 *   C2  librados writes into a request's pages, a bounce buffer or a call only while the call is
 *       out. That holds after ETIMEDOUT too: a late reply finds no operation. No buffer is given to
 *       the messenger where there is a timeout (Ceph's #9582).
 *   C3  A buffer for reads is spare, or belongs to a call that is out.
 */
#ifndef PEERS_SOSD_SOSD_RADOS_H
#define PEERS_SOSD_SOSD_RADOS_H

#include <rados/librados.h>
#include <stdbool.h>
#include <stdint.h>

#include "peers/common/say/space.h"
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
/* Of the cluster, before copies. It waits for a monitor. */
int sosd_rados_space(struct sosd_rados *s, struct space *space) XSEG_MUST_CHECK;
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
