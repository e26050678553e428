/* plugin - a volume for nbdkit, through the library (xseg/volume.h):
 * build/lib/nbdkit-xseg-plugin.so. `xseg export` starts nbdkit with it.
 *
 * nbdkit calls from many threads at once, each of which waits for its I/O: 16 a connection by
 * default. So there is a pool of lanes, each a queue of the library with one I/O. A call takes a
 * lane, and waits if all are taken. The lanes are made when nbdkit begins, and nothing is allocated
 * later. An nbdkit with more connections than lanes gets slower, and takes no more of the segment.
 *
 * Small writes may go past nbdkit and the lanes (writers.c).
 *
 *   lane    to      when                                                    by
 *   IDLE    TAKEN   a call takes it, or waits for it                        lane_get
 *   TAKEN   IDLE    its I/O is back; if nobody served it, without a queue   lane_put
 *
 * A lane without a queue gets a new one from the next call that takes it. So the export goes on
 * when volumed does.
 *
 * Contract: nbdkit's (nbdkit-plugin(3)), with its parallel thread model. Until after_fork() there
 * is one thread. In after_fork() volume and lanes are made. nbdkit goes to the background before
 * it, and a child has no part in its parent's attachment. Errors are printed by nbdkit, through
 * nbdkit_error().
 *
 * Invariants
 *   N1  A lane is on the list of idle ones, or is one thread's alone.
 *   N2  A thread that has a lane never waits for another.
 *   N3  A flush may go through any lane and any connection: the library's covers all that was
 *       answered before (so: multi-conn).
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "tools/nbdkit/plugin.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

/* Of a queue: with the page of zeroes that it has, that is one piece of 2 MiB. An I/O that is
 * larger goes round. */
#define LANE_DEPTH	7
#define LANE_COPY_BYTES (256u << 10)
#define LANES		16
#define LANES_MAX	64
#define IO_BYTES_MAX	(32u << 20) /* what NBD's clients may send to a server that says nothing */

struct lane {
	struct lane *next;			/* of the idle ones */
	struct xseg_queue *queue;		/* NULL: it was lost */
	struct xseg_io io;
};

/* Written before there are threads, but for what is guarded by `lock`, and `failing`. */
static struct {
	const char *segment, *volume_name, *volumed, *owner;
	unsigned nr_lanes;
	uint32_t direct;
	struct xseg_volume *volume;
	struct lane *lanes;
	_Atomic int failing; /* the last I/O's error, so that what goes on failing is said once */

	/* guards `idle` and the lanes' next; held for a few instructions, nothing is taken under
	 * it */
	pthread_mutex_t lock;
	pthread_cond_t put;			/* one was put back */
	struct lane *idle;
} export = {
	.segment = "xseg",
	.nr_lanes = LANES,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.put = PTHREAD_COND_INITIALIZER,
};

/* ---- options ----------------------------------------------------------------------------- */

static int parse_direct(const char *value)
{
	export.direct = strcmp(value, "auto") ? XSEG_DIRECT_NEVER : XSEG_DIRECT_AUTO;
	if (!strcmp(value, "auto") || !strcmp(value, "never"))
		return 0;
	nbdkit_error("direct=%s: give auto or never", value);
	return -1;
}

static int export_config(const char *key, const char *value)
{
	if (!strcmp(key, "segment")) {
		export.segment = value;
	} else if (!strcmp(key, "volume")) {
		export.volume_name = value;
	} else if (!strcmp(key, "volumed")) {
		export.volumed = value;
	} else if (!strcmp(key, "owner")) {
		export.owner = value;
	} else if (!strcmp(key, "queues")) {
		if (nbdkit_parse_unsigned("queues", value, &export.nr_lanes))
			return -1;
		if (export.nr_lanes < 1 || export.nr_lanes > LANES_MAX) {
			nbdkit_error("queues=%s: give 1 to %d", value, LANES_MAX);
			return -1;
		}
	} else if (!strcmp(key, "direct")) {
		return parse_direct(value);
	} else {
		nbdkit_error("unknown parameter '%s': there are segment, volume, volumed, owner, "
			     "queues and direct",
			key);
		return -1;
	}
	return 0;
}

static int export_config_complete(void)
{
	if (export.volume_name)
		return 0;
	nbdkit_error("name a volume, as in volume=disk");
	return -1;
}

#define CONFIG_HELP \
	"[volume=]VOLUME    The volume to serve (required).\n" \
	"segment=SEGMENT    The segment that it is in; xseg if none is given.\n" \
	"volumed=NAME       Which volumed, where there are several.\n" \
	"owner=USER         Also use a segment of that user; else $XSEG_OWNER.\n" \
	"queues=N           Requests in progress at a time, 1 to 64; 16 if none is given.\n" \
	"direct=WHEN        When reads take cached data without a request: auto, which is while\n" \
	"                   that pays, or never; auto if none is given."

/* ---- beginning and ending ---------------------------------------------------------------- */

static int volume_open(void)
{
	struct xseg_volume_params params = {
		.segment = export.segment, .volume = export.volume_name,
		.volumed = export.volumed,
		.owner = export.owner ? export.owner : getenv("XSEG_OWNER")
	};
	struct xseg_error err = { "" };

	if (!xseg_volume_open(&params, &export.volume, &err))
		return 0;
	nbdkit_error("%s", err.text);
	return -1;
}

static int lane_open(struct lane *l, struct xseg_error *err)
{
	struct xseg_queue_params params = { .depth = LANE_DEPTH,
		.copy_bytes = LANE_COPY_BYTES,
		.direct = export.direct };

	return xseg_queue_create(export.volume, &params, &l->queue, err);
}

/* What is wrong with the names is said before nbdkit goes to the background. */
static int export_get_ready(void)
{
	int rc = volume_open();

	xseg_volume_close(export.volume);
	export.volume = NULL;
	return rc;
}

static void export_cleanup(void)
{
	for (unsigned i = 0; export.lanes && i < export.nr_lanes; i++)
		xseg_queue_destroy(export.lanes[i].queue);
	writers_close();
	xseg_volume_close(export.volume);
	free(export.lanes);
	export.lanes = export.idle = NULL;
	export.volume = NULL;
}

static int lanes_open(void)
{
	struct xseg_error err = { "" };

	export.lanes = calloc(export.nr_lanes, sizeof(*export.lanes));
	if (!export.lanes) {
		nbdkit_error("no memory for %u queues", export.nr_lanes);
		return -1;
	}
	for (unsigned i = 0; i < export.nr_lanes; i++) {
		if (lane_open(&export.lanes[i], &err)) {
			nbdkit_error("queue %u of %u: %s", i + 1, export.nr_lanes, err.text);
			return -1;
		}
		export.lanes[i].next = export.idle;
		export.idle = &export.lanes[i];
	}
	if (writers_open(export.volume, &err))
		nbdkit_debug("fewer queues for small writes: %s", err.text);
	return 0;
}

/* If it fails, nbdkit exits at once. */
static int export_after_fork(void)
{
	if (!volume_open() && !lanes_open())
		return 0;
	export_cleanup();
	return -1;
}

/* ---- lanes ------------------------------------------------------------------------------- */

/* The one that was used last: what is in the processor's caches. */
static struct lane *lane_get(void)
{
	struct lane *l;

	pthread_mutex_lock(&export.lock);
	while (!export.idle)
		pthread_cond_wait(&export.put, &export.lock);
	l = export.idle;
	export.idle = l->next;
	pthread_mutex_unlock(&export.lock);
	return l;
}

static void lane_put(struct lane *l)
{
	pthread_mutex_lock(&export.lock);
	l->next = export.idle;
	export.idle = l;
	pthread_cond_signal(&export.put);
	pthread_mutex_unlock(&export.lock);
}

/* A queue that is lost has to be destroyed, and a new one can be had when somebody serves again.
 * What the segment has not left for that, which *err says, is no error of the store's. */
static int64_t lane_run(struct lane *l, struct xseg_error *err)
{
	int64_t rc;

	if (!l->queue && lane_open(l, err))
		return -EIO;
	rc = xseg_queue_run(l->queue, &l->io);
	if (rc == -ENOTCONN) {
		xseg_queue_destroy(l->queue);
		l->queue = NULL;
	}
	return rc;
}

/* ---- I/O --------------------------------------------------------------------------------- */

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

/* Into *err, where nothing is there that says it better. */
static const char *why(int64_t rc, struct xseg_error *err)
{
	if (*err->text)
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
			export.segment);
		return err->text;
	default:
		return strerror((int)-rc);
	}
}

int export_error(const struct xseg_io *io, const char *what, int64_t rc, struct xseg_error *err)
{
	/* relaxed: only to say it once */
	if (atomic_exchange_explicit(&export.failing, (int)rc, memory_order_relaxed) != (int)rc)
		nbdkit_error("%s of %" PRIu64 " bytes at %" PRIu64 ": %s", what, io->size,
			io->offset, why(rc, err));
	return errno_of(io, rc);
}

void export_worked(void)
{
	if (atomic_load_explicit(&export.failing, memory_order_relaxed))
		atomic_store_explicit(&export.failing, 0, memory_order_relaxed);
}

/* Its result, or -1. */
static int64_t run(struct xseg_io io, const char *what, uint32_t flags)
{
	struct lane *l = lane_get();
	struct xseg_error err;
	int64_t rc;

	err.text[0] = '\0';
	io.flags |= flags & NBDKIT_FLAG_FUA ? XSEG_IO_FUA : 0;
	l->io = io;
	rc = lane_run(l, &err);
	lane_put(l);
	if (rc < 0) {
		nbdkit_set_error(export_error(&io, what, rc, &err));
		return -1;
	}
	export_worked();
	return rc;
}

static int run_all(struct xseg_io io, const char *what, uint32_t flags)
{
	return run(io, what, flags) < 0 ? -1 : 0;
}

static int export_pread(void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle;
	return run_all((struct xseg_io){ .op = XSEG_OP_READ,
			       .offset = offset,
			       .size = count,
			       .buf = buf },
		"read", flags);
}

static int export_pwrite(
	void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle;
	return run_all(
		(struct xseg_io){
			.op = XSEG_OP_WRITE, .offset = offset, .size = count, .buf = (void *)buf },
		"write", flags);
}

static int export_flush(void *handle, uint32_t flags)
{
	(void)handle;
	return run_all((struct xseg_io){ .op = XSEG_OP_FLUSH }, "flush", flags);
}

static int export_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle;
	return run_all((struct xseg_io){ .op = XSEG_OP_DISCARD, .offset = offset, .size = count },
		"trim", flags);
}

/* Whether it may trim is the store's choice, which makes holes where it can. Zeroes are written at
 * once in the cache and by most stores, but a file system without holes writes them all, and nobody
 * can tell before: so there are none that are known to be fast. That is offered and refused, as an
 * nbdkit that does not offer it (1.32) ends by an assertion when a client asks for it all the
 * same. */
static int export_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle;
	if (flags & NBDKIT_FLAG_FAST_ZERO) {
		nbdkit_set_error(EOPNOTSUPP);
		return -1;
	}
	return run_all(
		(struct xseg_io){ .op = XSEG_OP_WRITE_ZEROES, .offset = offset, .size = count },
		"zero", flags);
}

/* What the store has not got is a hole, object by object: the start of an object that it has counts
 * as data, as far as it reaches. */
static int export_extents(void *handle, uint32_t count, uint64_t offset, uint32_t flags,
	struct nbdkit_extents *extents)
{
	struct xseg_volume_info info;
	uint64_t at = offset - offset % XSEG_SECTOR, end = offset + count;
	bool first_is_data = false, changed = false;

	(void)handle;
	xseg_volume_get_info(export.volume, &info);
	end += -end % XSEG_SECTOR;
	while (at < end && !(changed && flags & NBDKIT_FLAG_REQ_ONE)) {
		uint64_t room = info.object_bytes - at % info.object_bytes,
			 size = end - at < room ? end - at : room;
		int64_t data = run(
			(struct xseg_io){ .op = XSEG_OP_INFO, .offset = at, .size = size },
			"status", 0);

		if (data < 0 || (data && nbdkit_add_extent(extents, at, (uint64_t)data, 0)) ||
			((uint64_t)data < size && nbdkit_add_extent(extents, at + (uint64_t)data,
							  size - (uint64_t)data,
							  NBDKIT_EXTENT_HOLE | NBDKIT_EXTENT_ZERO)))
			return -1;
		if (at <= offset)
			first_is_data = data > 0;
		changed = (data > 0) != first_is_data || (data > 0 && (uint64_t)data < size);
		at += size;
	}
	return 0;
}

/* ---- connections ------------------------------------------------------------------------- */

/* xseg_volume_refresh() takes a port: connections that begin together take one. Each needs one that
 * was begun after it came, as the volume may have grown before. So those that come during one share
 * the next one, and none waits for more than two, however many there are. */
static struct {
	pthread_mutex_t lock;			/* guards all; nothing is taken under it */
	pthread_cond_t ended;			/* one has ended */
	bool runs;
	uint64_t begun, done;			/* how many */
	int rc;					/* of the last one that has ended */
} refresh = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

/* Under refresh.lock, which is not held meanwhile. */
static void refresh_now(void)
{
	int rc;

	refresh.runs = true;
	refresh.begun++;
	pthread_mutex_unlock(&refresh.lock);
	rc = xseg_volume_refresh(export.volume);
	pthread_mutex_lock(&refresh.lock);
	refresh.rc = rc;
	refresh.done = refresh.begun;
	refresh.runs = false;
	pthread_cond_broadcast(&refresh.ended);
}

static int refresh_shared(void)
{
	uint64_t wanted;
	int rc;

	pthread_mutex_lock(&refresh.lock);
	wanted = refresh.begun + 1;
	while (refresh.done < wanted) {
		if (refresh.runs)
			pthread_cond_wait(&refresh.ended, &refresh.lock);
		else
			refresh_now();
	}
	rc = refresh.rc;
	pthread_mutex_unlock(&refresh.lock);
	return rc;
}

/* Each sees the volume as large as it is when it begins. */
static void *export_open(int readonly)
{
	struct xseg_error err = { "" };
	int rc = refresh_shared();

	(void)readonly;
	if (!rc)
		return NBDKIT_HANDLE_NOT_NEEDED;
	if (rc == -ENOSPC)
		xseg_fail(&err, 0,
			"segment %s has no port or request left for a new connection; end a "
			"client, or make the segment with more --ports and --requests",
			export.segment);
	nbdkit_error("volume %s: %s", export.volume_name, why(rc, &err));
	return NULL;
}

static int64_t export_get_size(void *handle)
{
	struct xseg_volume_info info;

	(void)handle;
	xseg_volume_get_info(export.volume, &info);
	return (int64_t)info.size_bytes;
}

static int export_block_size(
	void *handle, uint32_t *minimum, uint32_t *preferred, uint32_t *maximum)
{
	struct xseg_volume_info info;

	(void)handle;
	xseg_volume_get_info(export.volume, &info);
	*minimum = info.sector_bytes;
	*preferred = info.page_bytes;
	*maximum = IO_BYTES_MAX;
	return 0;
}

static int yes(void *handle)
{
	(void)handle;
	return 1;
}

static int fua_native(void *handle)
{
	(void)handle;
	return NBDKIT_FUA_NATIVE;
}

/* ---- what nbdkit looks for --------------------------------------------------------------- */

static struct nbdkit_plugin plugin = {
	.name = "xseg",
	.longname = "xseg",
	.version = XSEG_VERSION,
	.description = "serves a volume of an xseg segment",
	.config = export_config,
	.config_complete = export_config_complete,
	.config_help = CONFIG_HELP,
	.magic_config_key = "volume",
	.get_ready = export_get_ready,
	.after_fork = export_after_fork,
	.cleanup = export_cleanup,
	.open = export_open,
	.get_size = export_get_size,
	.block_size = export_block_size,
	.can_flush = yes,
	.can_trim = yes,
	.can_zero = yes,
	.can_fast_zero = yes,
	.can_extents = yes,
	.can_fua = fua_native,
	.can_multi_conn = yes,
	.pread = export_pread,
	.pwrite = export_pwrite,
	.flush = export_flush,
	.trim = export_trim,
	.zero = export_zero,
	.extents = export_extents,
};

struct nbdkit_plugin *plugin_init(void);
NBDKIT_REGISTER_PLUGIN(plugin)
