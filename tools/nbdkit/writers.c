/* writers - small writes of the plug-in in batches, for the guard (writers.h): queues of the
 * library with WRITER_DEPTH writes in flight each. Their data is copied to pages that the cache
 * lends, so the cache does not copy it again.
 *
 *   writer  to      when                                                      by
 *   IDLE    TAKEN   a connection has a small write, and none in flight        writer_take
 *   TAKEN   IDLE    its writes are answered                                   writer_put
 *
 * Lanes and writers are apart: a thread that waits for a lane waits for no writer's answers. So a
 * connection may keep a writer as long as it sends small writes. Connections without a writer write
 * through nbdkit. So a segment without room for the writers' queues has fewer writers, or none.
 *
 * Contract: writers_open() and writers_close() when the export has no clients. A writer's
 * functions: one thread at a time, from take() to put(). Errors are printed through nbdkit_error().
 *
 * Invariants
 *   W1  A writer is on the list of idle ones, or is one connection's alone.
 *   W2  A writer that was lost has no queue, or answers are still to be taken from its queue.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nbdkit/plugin.h"
#include "tools/nbdkit/writers.h"

#define WRITERS	      4
#define WRITER_DEPTH  15u		/* a port has 16 requests, one unit */
#define COPY_BYTES    (64u << 10)	/* a write may begin anywhere in a page */
#define FOLLOW_CPUS   2		/* follow_init() */
#define PAGES_MAX     (WRITER_BYTES / 4096u + 2u)

struct write {
	struct xseg_io io;
	uint64_t handle;
};

struct writer {
	struct writers *pool;
	struct writer *next;			/* of the idle ones */
	struct xseg_queue *queue;		/* NULL: it was lost */
	struct write *idle[WRITER_DEPTH];
	unsigned nr_idle;
	bool deep;				/* several were in flight since it was taken */
	struct write writes[WRITER_DEPTH];
};

struct writers {
	struct export *export;
	struct writer all[WRITERS];
	pthread_mutex_t lock; /* guards `idle` and the writers' next; nothing is taken under it */
	struct writer *idle;
};

/* ---- where a waiting thread runs --------------------------------------------------------- */

/* Before there are clients. */
static cpu_set_t allowed;			/* of nbdkit's threads */
static bool follows, looked;
static _Thread_local int followed_to = -1;

/* If there are two processors, the client needs one, and this thread and the reactor the other. The
 * scheduler often puts the reactor on the client's: then a batch waits until the client has sent
 * all its requests. On the reactor's own processor, a wait here runs the reactor. */
static void follow_init(void)
{
	if (looked)
		return;
	looked = true;
	follows = !sched_getaffinity(0, sizeof(allowed), &allowed) &&
		  CPU_COUNT(&allowed) == FOLLOW_CPUS;
}

static void follow(const struct writer *w)
{
	int cpu = follows && w->deep ? xseg_queue_server_cpu(w->queue) : -1;
	cpu_set_t one;

	if (cpu < 0 || cpu == followed_to || !CPU_ISSET((size_t)cpu, &allowed))
		return;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	if (!sched_setaffinity(0, sizeof(one), &one))
		followed_to = cpu;
}

static void writer_leave(void)
{
	if (followed_to >= 0 && !sched_setaffinity(0, sizeof(allowed), &allowed))
		followed_to = -1;
}

/* ---- taking ------------------------------------------------------------------------------ */

static void *writer_take(void *of)
{
	struct export *e = of;
	struct writers *pool = e->writers;
	struct writer *w;

	if (!pool)
		return NULL;
	pthread_mutex_lock(&pool->lock);
	w = pool->idle;
	if (w)
		pool->idle = w->next;
	pthread_mutex_unlock(&pool->lock);
	return w;
}

static void writer_put(void *arg)
{
	struct writer *w = arg;
	struct writers *pool = w->pool;

	if (!w->deep)
		writer_leave();
	w->deep = false;
	pthread_mutex_lock(&pool->lock);
	w->next = pool->idle;
	pool->idle = w;
	pthread_mutex_unlock(&pool->lock);
}

/* ---- writes ------------------------------------------------------------------------------ */

static int queue_open(
	const struct writer *w, struct xseg_queue **queue, struct xseg_error *err)
{
	struct xseg_queue_params params = { .depth = WRITER_DEPTH,
		.copy_bytes = COPY_BYTES,
		.direct = XSEG_DIRECT_NEVER };

	return xseg_queue_create(w->pool->export->volume, &params, queue, err);
}

/* The queue of a new writer, if the segment then has room for one queue more: its last requests are
 * for clients and commands. */
static int spare_queue_open(struct writer *w, struct xseg_error *err)
{
	struct xseg_queue *more = NULL;
	int rc = queue_open(w, &w->queue, err);

	if (rc)
		return rc;
	rc = queue_open(w, &more, err);
	if (rc) {
		xseg_queue_destroy(w->queue);
		w->queue = NULL;
	}
	xseg_queue_destroy(more);
	return rc;
}

/* The next write makes a new one. */
static void drop_lost_queue(struct writer *w)
{
	if (xseg_queue_out(w->queue))
		return;
	xseg_queue_destroy(w->queue);
	w->queue = NULL;
}

static int send(struct writer *w, struct write *write, const void *data)
{
	struct iovec piece[PAGES_MAX];
	int nr = xseg_io_prepare(w->queue, &write->io, piece, PAGES_MAX);

	for (int i = 0; i < nr; i++) {
		memcpy(piece[i].iov_base, data, piece[i].iov_len);
		data = (const char *)data + piece[i].iov_len;
	}
	return nr < 0 ? nr : xseg_queue_submit(w->queue, &write->io);
}

static int writer_submit(void *arg, const struct writer_io *io)
{
	struct writer *w = arg;
	struct xseg_error err = { "" };
	struct write *write;
	int rc;

	if (!w->nr_idle)
		return -EAGAIN;
	write = w->idle[w->nr_idle - 1];
	write->handle = io->handle;
	write->io = (struct xseg_io){ .op = XSEG_OP_WRITE,
		.flags = XSEG_IO_GIVE | (io->fua ? XSEG_IO_FUA : 0),
		.offset = io->offset,
		.size = io->size,
		.cookie = write };
	rc = !w->queue && queue_open(w, &w->queue, &err) ? -EIO : send(w, write, io->data);
	if (rc == -ENOTCONN)
		drop_lost_queue(w);
	if (rc < 0)
		return -export_error(w->pool->export, &write->io, "write", rc, &err);
	w->deep |= --w->nr_idle < WRITER_DEPTH - 1;
	return 0;
}

/* ---- answers ----------------------------------------------------------------------------- */

static unsigned writer_reap(void *arg, struct writer_answer *answers, uint64_t timeout_ns)
{
	struct writer *w = arg;
	struct xseg_io *done[WRITER_ANSWERS];
	bool lost = false;
	unsigned nr;

	if (timeout_ns)
		follow(w);
	nr = xseg_queue_wait(w->queue, done, WRITER_ANSWERS, timeout_ns);
	for (unsigned i = 0; i < nr; i++) {
		struct write *write = done[i]->cookie;
		int64_t rc = done[i]->result;

		answers[i].handle = write->handle;
		answers[i].error = 0;
		if (rc < 0)
			answers[i].error = (uint32_t)export_error(w->pool->export, done[i], "write",
				rc, &(struct xseg_error){ "" });
		else
			export_worked(w->pool->export);
		lost |= rc == -ENOTCONN;
		w->idle[w->nr_idle++] = write;
	}
	if (lost)
		drop_lost_queue(w);
	return nr;
}

static int writer_arm(void *arg)
{
	struct writer *w = arg;
	int fd = xseg_queue_fd(w->queue), rc = fd < 0 ? fd : xseg_queue_arm(w->queue);

	return rc == 0 ? fd : rc > 0 ? -EAGAIN : rc;
}

/* ---- beginning and ending ---------------------------------------------------------------- */

static const struct writer_ops writer_ops = {
	.take = writer_take,
	.put = writer_put,
	.submit = writer_submit,
	.reap = writer_reap,
	.leave = writer_leave,
	.arm = writer_arm,
};

static bool guard_uses_writers(void)
{
	use_writers_fn *use_writers;

	*(void **)&use_writers = dlsym(RTLD_DEFAULT, WRITERS_SYMBOL);
	return use_writers && use_writers(&writer_ops);
}

int writers_open(struct export *e, struct xseg_error *err)
{
	struct writers *pool;
	int rc;

	if (e->read_only || !guard_uses_writers())
		return 0;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return xseg_fail(err, -ENOMEM, "out of memory");
	follow_init();
	pool->export = e;
	pthread_mutex_init(&pool->lock, NULL);
	e->writers = pool;
	for (unsigned i = 0; i < WRITERS; i++) {
		struct writer *w = &pool->all[i];

		w->pool = pool;
		rc = spare_queue_open(w, err);
		if (rc)
			return rc;
		for (unsigned k = 0; k < WRITER_DEPTH; k++)
			w->idle[w->nr_idle++] = &w->writes[k];
		writer_put(w);
	}
	return 0;
}

void writers_close(struct export *e)
{
	for (unsigned i = 0; e->writers && i < WRITERS; i++)
		xseg_queue_destroy(e->writers->all[i].queue);
	free(e->writers);
	e->writers = NULL;
}

bool writers_bind(struct export *e)
{
	bind_fn *bind;

	*(void **)&bind = dlsym(RTLD_DEFAULT, BIND_SYMBOL);
	if (bind)
		bind(e && !e->read_only ? e : NULL);
	return bind;
}
