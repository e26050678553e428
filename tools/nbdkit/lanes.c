/* lanes - the I/O of an export: a pool of lanes, each a queue of the library with one I/O.
 *
 * nbdkit calls from many threads at once, each of which waits for its I/O: 16 a connection by
 * default. A call takes a lane, and waits if all are taken. The lanes are made when the volume is
 * opened, and nothing is allocated later. An nbdkit with more connections than lanes gets slower,
 * and takes no more of the segment.
 *
 *   lane    to      when                                                    by
 *   IDLE    TAKEN   a call takes it, or waits for it                        lane_get
 *   TAKEN   IDLE    its I/O is back; if nobody served it, without a queue   lane_put
 *
 * A lane without a queue gets a new one from the next call that takes it. So the export goes on
 * when volumed does.
 *
 * Contract: any thread, while the export has connections; lanes_open() and lanes_close() while it
 * has none. Errors are printed through nbdkit_error().
 *
 * Invariants
 *   N1  A lane is on the list of idle ones, or is one thread's alone.
 *   N2  A thread that has a lane never waits for another.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "tools/nbdkit/plugin.h"

/* Of a queue: together one piece of 2 MiB. An I/O that is larger goes round. */
#define LANE_DEPTH	8
#define LANE_COPY_BYTES (256u << 10)

struct lane {
	struct lane *next;			/* of the idle ones */
	struct xseg_queue *queue;		/* NULL: it was lost */
	struct xseg_io io;
};

static int lane_open(struct export *e, struct lane *l, struct xseg_error *err)
{
	struct xseg_queue_params params = { .depth = LANE_DEPTH,
		.copy_bytes = LANE_COPY_BYTES,
		.direct = exports_direct() };

	return xseg_queue_create(e->volume, &params, &l->queue, err);
}

void lanes_close(struct export *e)
{
	for (unsigned i = 0; e->lanes && i < e->nr_lanes; i++)
		xseg_queue_destroy(e->lanes[i].queue);
	free(e->lanes);
	e->lanes = e->idle = NULL;
}

int lanes_open(struct export *e)
{
	struct xseg_error err = { "" };

	e->lanes = calloc(e->nr_lanes, sizeof(*e->lanes));
	if (!e->lanes) {
		nbdkit_error("no memory for %u queues", e->nr_lanes);
		return -1;
	}
	for (unsigned i = 0; i < e->nr_lanes; i++) {
		if (lane_open(e, &e->lanes[i], &err)) {
			nbdkit_error("queue %u of %u: %s", i + 1, e->nr_lanes, err.text);
			return -1;
		}
		e->lanes[i].next = e->idle;
		e->idle = &e->lanes[i];
	}
	return 0;
}

/* The one that was used last: what is in the processor's caches. */
static struct lane *lane_get(struct export *e)
{
	struct lane *l;

	pthread_mutex_lock(&e->lock);
	while (!e->idle)
		pthread_cond_wait(&e->put, &e->lock);
	l = e->idle;
	e->idle = l->next;
	pthread_mutex_unlock(&e->lock);
	return l;
}

static void lane_put(struct export *e, struct lane *l)
{
	pthread_mutex_lock(&e->lock);
	l->next = e->idle;
	e->idle = l;
	pthread_cond_signal(&e->put);
	pthread_mutex_unlock(&e->lock);
}

/* A queue that is lost has to be destroyed, and a new one can be had when somebody serves again.
 * What the segment has not left for that, which *err says, is no error of the store's. */
static int64_t run(struct export *e, struct lane *l, struct xseg_error *err)
{
	int64_t rc;

	if (!l->queue && lane_open(e, l, err))
		return -EIO;
	rc = xseg_queue_run(l->queue, &l->io);
	if (rc == -ENOTCONN) {
		xseg_queue_destroy(l->queue);
		l->queue = NULL;
	}
	return rc;
}

/* ---- errors ------------------------------------------------------------------------------ */

/* Of what the protocol has; all others would become EINVAL. */
static int errno_of(const struct xseg_io *io, int64_t rc)
{
	switch (-rc) {
	case EPERM:
	case ENOMEM:
	case EINVAL:
	case ENOSPC:
		return (int)-rc;
	case EOPNOTSUPP:
		return ENOTSUP;
	case ENXIO:			/* beyond the end of a volume that was made smaller */
		return io->op == XSEG_OP_WRITE || io->op == XSEG_OP_WRITE_ZEROES ? ENOSPC : EINVAL;
	default:
		return EIO;
	}
}

const char *export_why(struct xseg_volume *volume, int64_t rc, struct xseg_error *err)
{
	if (*err->text || (rc == -ENOTCONN && volume && xseg_volume_look(volume, err)))
		return err->text;
	switch (rc) {
	case -ESTALE:
		return "the volume has been removed; begin the export anew";
	case -EPROTO:
		return "the segment is damaged, or somebody truncated its file";
	case -ENXIO:
		return "it is beyond the end of the volume, which was made smaller";
	case -ENOTCONN:
		xseg_fail(err, 0, "no volumed serves the volume; see 'xseg -s %s status'",
			exports_segment());
		return err->text;
	default:
		return strerror((int)-rc);
	}
}

int export_error(struct export *e, const struct xseg_io *io, const char *what, int64_t rc,
	struct xseg_error *err)
{
	/* relaxed: only to say it once */
	if (atomic_exchange_explicit(&e->failing, (int)rc, memory_order_relaxed) != (int)rc)
		nbdkit_error("%s of %" PRIu64 " bytes at %" PRIu64 "%s%s: %s", what, io->size,
			io->offset, e->name ? " of export " : "", e->name ? e->name : "",
			export_why(e->volume, rc, err));
	return errno_of(io, rc);
}

void export_worked(struct export *e)
{
	if (atomic_load_explicit(&e->failing, memory_order_relaxed))
		atomic_store_explicit(&e->failing, 0, memory_order_relaxed);
}

int64_t lane_run(struct export *e, struct xseg_io io, const char *what, uint32_t flags)
{
	struct lane *l = lane_get(e);
	struct xseg_error err;
	int64_t rc;

	err.text[0] = '\0';
	io.flags |= flags & NBDKIT_FLAG_FUA ? XSEG_IO_FUA : 0;
	l->io = io;
	rc = run(e, l, &err);
	lane_put(e, l);
	if (rc < 0) {
		nbdkit_set_error(export_error(e, &io, what, rc, &err));
		return -1;
	}
	export_worked(e);
	return rc;
}
