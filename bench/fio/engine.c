/* engine - fio's I/O on a volume, through the library (xseg/volume.h). It becomes
 * build/lib/fio-xseg.so, for ioengine=external:PATH.
 *
 * Each job is a queue with fio's iodepth. A job opens the volume itself: fio forks its jobs after
 * setup(), and a child does not inherit its parent's attachment. fio's buffers are memory of the
 * segment. So aligned data, which is all data if bs is 4 KiB or more, is not copied here, unless a
 * read finds it in the cache without a request.
 *
 * Contract: fio's. The functions of a job are called by its thread. fio prints; the engine uses
 * only fio's log.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include <fio.h>
#include <optgroup.h>

#include "xseg/volume.h"

#define SECOND	   1000000000ull
#define COPY_BYTES 131072ull			/* the most that a request of a job copies */

/* fio stores at their offsets; 0 would be none. */
struct engine_options {
	void *pad;
	char *segment, *volume, *volumed, *owner;
	unsigned int write_zeroes, direct_reads;
};

struct engine {
	struct xseg_volume *volume;
	struct xseg_queue *queue;
	struct xseg_io **done;			/* of the last getevents(): up to iodepth */
	bool told;				/* that nobody serves the volume any more */
};

#define OPTION(field, kind, text) \
	.name = #field, .lname = #field, .type = kind, \
	.off1 = offsetof(struct engine_options, field), .help = text, \
	.category = FIO_OPT_C_ENGINE, .group = FIO_OPT_G_INVALID

static struct fio_option options[] = {
	{ OPTION(segment, FIO_OPT_STR_STORE,
		"Name of the segment, else $XSEG_SEGMENT, else xseg") },
	{ OPTION(volume, FIO_OPT_STR_STORE, "Name of the volume") },
	{ OPTION(volumed, FIO_OPT_STR_STORE, "Name of the volumed, if there are several") },
	{ OPTION(owner, FIO_OPT_STR_STORE,
		"User whose segment may be used, too, else $XSEG_OWNER") },
	{ OPTION(write_zeroes, FIO_OPT_BOOL, "Trims write zeroes instead of discarding"),
	  .def = "0" },
	{ OPTION(direct_reads, FIO_OPT_BOOL,
		"Read cached data without a request, while that pays"),
	  .def = "1" },
	{ .name = NULL },
};

/* ---- a volume ---------------------------------------------------------------------------- */

static const char *segment_of(const struct engine_options *o)
{
	const char *env = getenv("XSEG_SEGMENT");

	if (o->segment)
		return o->segment;
	return env && *env ? env : "xseg";
}

static int volume_open(struct thread_data *td, struct xseg_volume **volume)
{
	const struct engine_options *o = td->eo;
	struct xseg_volume_params params = {
		.segment = segment_of(o), .volume = o->volume, .volumed = o->volumed,
		.owner = o->owner ? o->owner : getenv("XSEG_OWNER")
	};
	struct xseg_error err = { "" };
	int rc;

	if (!o->volume) {
		log_err("fio: xseg: name a volume, as in volume=disk\n");
		return 1;
	}
	rc = xseg_volume_open(&params, volume, &err);
	if (rc) {
		log_err("fio: xseg: %s\n", err.text);
		td_verror(td, -rc, "xseg_volume_open");
		return 1;
	}
	return 0;
}

/* In fio's own process, before it makes those of the jobs: how large it is. */
static int engine_setup(struct thread_data *td)
{
	const struct engine_options *o = td->eo;
	struct xseg_volume *volume = NULL;
	struct xseg_volume_info info;

	if (volume_open(td, &volume))
		return 1;
	xseg_volume_get_info(volume, &info);
	xseg_volume_close(volume);
	/* a file of which fio knows no more than its size */
	if (!td->files_index) {
		add_file(td, o->volume, 0, 0);
		td->o.nr_files = td->o.nr_files ? td->o.nr_files : 1;
		td->o.open_files++;
	}
	td->files[0]->real_file_size = info.size_bytes;
	return 0;
}

static void engine_cleanup(struct thread_data *td)
{
	struct engine *e = td->io_ops_data;

	if (!e)
		return;
	xseg_queue_destroy(e->queue);
	xseg_volume_close(e->volume);
	free(e->done);
	free(e);
	td->io_ops_data = NULL;
}

static int engine_init(struct thread_data *td)
{
	unsigned long long max_bs = td_max_bs(td) + XSEG_PAGE_SIZE;
	const struct engine_options *o = td->eo;
	struct xseg_queue_params params = { .depth = td->o.iodepth,
		.copy_bytes = (uint32_t)(max_bs < COPY_BYTES ? max_bs : COPY_BYTES),
		.direct = o->direct_reads ? XSEG_DIRECT_AUTO : XSEG_DIRECT_NEVER };
	struct engine *e = calloc(1, sizeof(*e));
	struct xseg_error err = { "" };

	if (!e)
		return 1;
	td->io_ops_data = e;
	e->done = calloc(td->o.iodepth, sizeof(struct xseg_io *));
	if (!e->done || volume_open(td, &e->volume))
		return 1;
	if (xseg_queue_create(e->volume, &params, &e->queue, &err)) {
		log_err("fio: xseg: %s\n", err.text);
		return 1;
	}
	return 0;
}

/* ---- memory ------------------------------------------------------------------------------ */

static int engine_iomem_alloc(struct thread_data *td, size_t bytes)
{
	struct engine *e = td->io_ops_data;

	td->orig_buffer = xseg_queue_buffer(e->queue, bytes);
	if (!td->orig_buffer)
		log_err("fio: xseg: the segment has less than the %zu MiB left that fio's buffers "
			"need; use a smaller iodepth or bs, or make it with more memory\n",
			(bytes + XSEG_EXTENT_SIZE - 1) / XSEG_EXTENT_SIZE * 2);
	return td->orig_buffer ? 0 : 1;
}

/* fio frees it before or after it cleans up: it goes with the queue. */
static void engine_iomem_free(struct thread_data *td)
{
	td->orig_buffer = NULL;
}

static int engine_io_u_init(struct thread_data *td, struct io_u *io_u)
{
	(void)td;
	io_u->engine_data = calloc(1, sizeof(struct xseg_io));
	return io_u->engine_data ? 0 : 1;
}

static void engine_io_u_free(struct thread_data *td, struct io_u *io_u)
{
	(void)td;
	free(io_u->engine_data);
	io_u->engine_data = NULL;
}

/* ---- I/O --------------------------------------------------------------------------------- */

static enum xseg_op op_of(struct thread_data *td, const struct io_u *io_u)
{
	const struct engine_options *o = td->eo;

	switch (io_u->ddir) {
	case DDIR_READ:
		return XSEG_OP_READ;
	case DDIR_WRITE:
		return XSEG_OP_WRITE;
	case DDIR_TRIM:
		return o->write_zeroes ? XSEG_OP_WRITE_ZEROES : XSEG_OP_DISCARD;
	default:
		return XSEG_OP_FLUSH;
	}
}

static uint32_t flags_of(struct thread_data *td, const struct xseg_io *io)
{
	return io->op == XSEG_OP_WRITE && td->o.sync_io ? XSEG_IO_FUA : 0;
}

/* fio itself has no more than the words of an errno. */
static int error_of(struct engine *e, int64_t result)
{
	struct xseg_error err = { "" };

	if (result == -ENOTCONN && !e->told && xseg_volume_look(e->volume, &err)) {
		e->told = true;
		log_err("fio: xseg: %s\n", err.text);
	}
	return result < 0 ? (int)-result : 0;
}

static enum fio_q_status engine_queue(struct thread_data *td, struct io_u *io_u)
{
	struct engine *e = td->io_ops_data;
	struct xseg_io *io = io_u->engine_data;
	int rc;

	fio_ro_check(td, io_u);
	io->op = op_of(td, io_u);
	io->flags = flags_of(td, io);
	io->offset = io->op == XSEG_OP_FLUSH ? 0 : io_u->offset;
	io->size = io->op == XSEG_OP_FLUSH ? 0 : io_u->xfer_buflen;
	io->buf = io_u->xfer_buf;
	io->cookie = io_u;
	rc = xseg_queue_submit(e->queue, io);
	if (rc) {
		io_u->error = (unsigned int)error_of(e, rc);
		return FIO_Q_COMPLETED;
	}
	return FIO_Q_QUEUED;
}

/* When all are out, fio asks for events next, and that sends them: they are sent together with what
 * other answers let it submit. */
static int engine_commit(struct thread_data *td)
{
	struct engine *e = td->io_ops_data;

	if (xseg_queue_out(e->queue) < td->o.iodepth)
		xseg_queue_kick(e->queue);
	return 0;
}

static int engine_getevents(
	struct thread_data *td, unsigned int min, unsigned int max, const struct timespec *ts)
{
	struct engine *e = td->io_ops_data;
	uint64_t limit = ts ? (uint64_t)ts->tv_sec * SECOND + (uint64_t)ts->tv_nsec : SECOND;
	unsigned int nr = xseg_queue_poll(e->queue, e->done, max), got;

	while (nr < min && xseg_queue_out(e->queue)) {
		got = xseg_queue_wait(e->queue, e->done + nr, max - nr, limit);
		nr += got;
		if (!got && ts)
			break;
	}
	return (int)nr;
}

static struct io_u *engine_event(struct thread_data *td, int event)
{
	struct engine *e = td->io_ops_data;
	const struct xseg_io *io = e->done[event];
	struct io_u *io_u = io->cookie;

	io_u->error = (unsigned int)error_of(e, io->result);
	io_u->resid = 0;
	return io_u;
}

/* ---- a file that is none ----------------------------------------------------------------- */

static int engine_open_file(struct thread_data *td, struct fio_file *f)
{
	(void)td;
	(void)f;
	return 0;
}

/* There is no page cache. */
static int engine_invalidate(struct thread_data *td, struct fio_file *f)
{
	(void)td;
	(void)f;
	return 0;
}

/* fio finds it by its name. */
struct ioengine_ops ioengine;
struct ioengine_ops ioengine = {
	.name = "xseg",
	.version = FIO_IOOPS_VERSION,
	.flags = FIO_DISKLESSIO | FIO_NOEXTEND | FIO_MEMALIGN | FIO_RAWIO,
	.options = options,
	.option_struct_size = sizeof(struct engine_options),
	.setup = engine_setup,
	.init = engine_init,
	.cleanup = engine_cleanup,
	.iomem_alloc = engine_iomem_alloc,
	.iomem_free = engine_iomem_free,
	.io_u_init = engine_io_u_init,
	.io_u_free = engine_io_u_free,
	.queue = engine_queue,
	.commit = engine_commit,
	.getevents = engine_getevents,
	.event = engine_event,
	.open_file = engine_open_file,
	.invalidate = engine_invalidate,
};
