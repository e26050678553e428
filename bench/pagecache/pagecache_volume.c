/* pagecache_volume.c - a queue of a volume, by libxseg, with several I/Os in flight.
 *
 *   --data        a read                                   a write
 *   copy          a request; the peer copies the data      the same
 *   loan          a request; the data is read in the       a request; the data is written into a
 *                 cache's page                             page that the cache keeps
 *   direct        no request; the data is read in the
 *                 cache's page
 *   direct-copy   no request; the library copies the data
 *                 into the caller's buffer
 *
 * A read without a request needs a page that was read before. --make reads each page so. Several
 * reads that are back at once are read one after the other, and the next one is fetched meanwhile
 * (page_read()).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pagecache/pagecache.h"

struct load {
	struct job *j;
	struct xseg_queue *q;
	struct xseg_io *ios, **done;
	uint32_t depth;
};

static bool is_in_place(const struct job *j)
{
	return j->rw == RANDREAD ? j->o->data == LOAN || j->o->data == DIRECT : j->o->data == LOAN;
}

static bool is_direct(const struct job *j)
{
	return j->o->data == DIRECT || j->o->data == DIRECT_COPY;
}

static uint32_t flags_of(const struct job *j)
{
	uint32_t flags = 0;

	if (is_in_place(j))
		flags |= j->rw == RANDREAD ? XSEG_IO_LOAN : XSEG_IO_GIVE;
	if (j->rw == RANDREAD && is_direct(j) && j->in_sequence)
		flags |= XSEG_IO_DIRECT; /* until each page has been met */
	return flags;
}

static int send(struct load *l, struct xseg_io *io)
{
	struct iovec piece = { io->buf, PAGE };
	uint64_t nr = page_next(l->j);
	int rc = 1;

	io->offset = nr * PAGE;
	if (l->j->rw == RANDWRITE) {
		if (is_in_place(l->j))
			rc = xseg_io_prepare(l->q, io, &piece, 1);
		if (rc == 1)
			page_write(l->j, nr, piece.iov_base);
	}
	if (rc == 1)
		rc = xseg_queue_submit(l->q, io);
	return rc ? xseg_fail(&l->j->err, rc, "an I/O cannot be sent: %s", strerror(-rc)) : 0;
}

/* Where the data of a read is that is back. NULL: it failed. */
static const void *data_of(struct load *l, const struct xseg_io *io)
{
	struct iovec piece = { io->buf, PAGE };

	if (io->result != PAGE || (is_in_place(l->j) && xseg_io_data(l->q, io, &piece, 1) != 1))
		return NULL;
	return piece.iov_base;
}

/* Of n I/Os that are back, the first is over. The data of the second is known by then. */
static int take(struct load *l, struct xseg_io *const *done, uint32_t n)
{
	int rc = job_check(l->j, done[0]->result);

	if (!rc && l->j->rw == RANDREAD) {
		page_read(l->j, done[0]->offset / PAGE, data_of(l, done[0]),
			n > 1 ? data_of(l, done[1]) : NULL);
		xseg_io_release(l->q, done[0]);
	}
	job_count(l->j);
	return rc;
}

static int load_run(struct load *l, uint8_t *buffers)
{
	uint32_t n;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < l->depth && !job_is_over(l->j); i++) {
		l->ios[i] = (struct xseg_io){ .op = l->j->rw == RANDREAD ? XSEG_OP_READ
									 : XSEG_OP_WRITE,
			.size = PAGE,
			.flags = flags_of(l->j),
			.buf = is_in_place(l->j) ? NULL : buffers + (size_t)i * PAGE };
		rc = send(l, &l->ios[i]);
	}
	while (!rc && xseg_queue_out(l->q)) {
		n = xseg_queue_wait(l->q, l->done, l->depth, 1000000000);
		for (uint32_t i = 0; !rc && i < n; i++) {
			rc = take(l, l->done + i, n - i);
			if (!rc && !job_is_over(l->j))
				rc = send(l, l->done[i]);
		}
	}
	return rc;
}

/* A queue finds nothing in an object before an answer has told it where the object is. So one page
 * of each is read by a request before counting begins. */
static int meet_objects(struct load *l)
{
	struct xseg_volume_info info;
	uint8_t page[PAGE];
	struct xseg_io io = { .op = XSEG_OP_READ,
		.size = PAGE,
		.flags = XSEG_IO_DIRECT,
		.buf = page };
	int rc = 0;

	xseg_volume_get_info(l->j->volume, &info);
	for (; !rc && io.offset < l->j->o->size; io.offset += info.object_bytes)
		rc = job_check(l->j, xseg_queue_run(l->q, &io));
	return rc;
}

int volume_run(struct job *j)
{
	struct xseg_queue_params params = { .depth = j->o->iodepth,
		.copy_bytes = PAGE,
		.direct = is_direct(j) ? XSEG_DIRECT_AUTO : XSEG_DIRECT_NEVER };
	struct load l = { .j = j, .depth = j->o->iodepth };
	uint8_t *buffers = NULL;
	int rc = 0;

	l.ios = calloc(l.depth, sizeof(*l.ios));
	l.done = calloc(l.depth, sizeof(struct xseg_io *));
	if (!l.ios || !l.done)
		rc = xseg_fail(&j->err, -ENOMEM, "no memory");
	if (!rc)
		rc = xseg_queue_create(j->volume, &params, &l.q, &j->err);
	if (!rc && !is_in_place(j)) {
		buffers = xseg_queue_buffer(l.q, (size_t)l.depth * PAGE);
		if (!buffers)
			rc = xseg_fail(&j->err, -ENOMEM, "the segment has no memory for buffers");
	}
	if (!rc && is_direct(j))
		rc = meet_objects(&l);
	if (!rc) {
		job_ready(j);
		rc = load_run(&l, buffers);
	}
	xseg_queue_destroy(l.q);
	free(l.done);
	free(l.ios);
	return rc;
}
