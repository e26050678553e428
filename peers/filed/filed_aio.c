/* filed_aio - see filed_aio.h for the contract. */
#include "peers/filed/filed_aio.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "peers/common/blocker/piece.h"
#include "xtypes/xkill.h"

#define REAP_MAX 64

struct filed_transfer {
	struct iocb cb;
	void *owner;
	int64_t result;				/* of a failed one */
	struct filed_transfer *next;
	struct iovec iov[XSEG_REQ_PAGES];
};

int filed_aio_open(struct filed_aio *a, uint32_t depth, struct xseg_error *err)
{
	uint32_t i;
	int rc;

	memset(a, 0, sizeof(*a));
	a->depth = depth;
	a->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (a->eventfd < 0)
		return xseg_fail(err, -errno, "no eventfd: %s", strerror(errno));
	rc = io_setup((int)depth, &a->ctx);
	if (rc) {
		xseg_fail(err, rc,
			"no asynchronous I/O of depth %u: %s; choose a smaller iodepth=, or raise "
			"fs.aio-max-nr",
			depth, strerror(-rc));
		goto out_close;
	}
	a->transfer = calloc(depth, sizeof(*a->transfer));
	a->batch = calloc(depth, sizeof(struct iocb *));
	if (!a->transfer || !a->batch) {
		rc = xseg_fail(err, -ENOMEM, "no memory for an iodepth of %u", depth);
		goto out_close;
	}
	for (i = depth; i-- > 0;) {
		a->transfer[i].next = a->free;
		a->free = &a->transfer[i];
	}
	return 0;
out_close:
	filed_aio_close(a);
	return rc;
}

void filed_aio_close(struct filed_aio *a)
{
	if (a->ctx)
		io_destroy(a->ctx);
	a->ctx = NULL;
	free(a->transfer);
	free(a->batch);
	a->transfer = NULL;
	a->batch = NULL;
	if (a->eventfd > 0)
		close(a->eventfd);
	a->eventfd = -1;
}

static int fill_iov(struct iovec *iov, struct xseg *seg, const struct xreq *r, uint32_t from,
	uint32_t len)
{
	struct piece p = { .from = from };
	int nr = 0;

	while (piece_next(seg, r, from + len, &p))
		iov[nr++] = (struct iovec){ p.data, p.len };
	return nr;
}

void filed_aio_add(struct filed_aio *a, struct xseg *seg, const struct xreq *r, uint32_t from,
	uint32_t len, int fd, uint64_t offset, void *owner)
{
	struct filed_transfer *t = a->free;
	int nr = fill_iov(t->iov, seg, r, from, len);

	a->free = t->next;
	t->owner = owner;
	if (r->op == XSEG_OP_READ)
		io_prep_preadv(&t->cb, fd, t->iov, nr, (long long)offset);
	else
		io_prep_pwritev(&t->cb, fd, t->iov, nr, (long long)offset);
	io_set_eventfd(&t->cb, a->eventfd);
	a->batch[a->nr_batch++] = &t->cb;
}

static struct filed_transfer *transfer_of(struct iocb *cb)
{
	return (struct filed_transfer *)((uint8_t *)cb - offsetof(struct filed_transfer, cb));
}

static void batch_drop(struct filed_aio *a, uint32_t nr)
{
	a->nr_batch -= nr;
	memmove(a->batch, a->batch + nr, a->nr_batch * sizeof(struct iocb *));
}

bool filed_aio_submit(struct filed_aio *a)
{
	struct filed_transfer *t;
	int rc;

	while (a->nr_batch) {
		rc = io_submit(a->ctx, a->nr_batch, a->batch);
		if (rc == -EINTR || rc == -EAGAIN || rc == 0)
			return true;
		if (rc > 0) {
			XKILL(IO_SUBMITTED);
			a->nr_kernel += (uint32_t)rc;
			batch_drop(a, (uint32_t)rc);
			continue;
		}
		t = transfer_of(a->batch[0]);	/* it is the first that the kernel objects to */
		t->result = rc;
		t->next = a->failed;
		a->failed = t;
		batch_drop(a, 1);
	}
	return false;
}

static void transfer_done(struct filed_aio *a, struct filed_transfer *t, int64_t result,
	struct filed_done *done)
{
	*done = (struct filed_done){ t->owner, result };
	t->next = a->free;
	a->free = t;
}

uint32_t filed_aio_reap(struct filed_aio *a, struct filed_done *done, uint32_t max)
{
	struct io_event event[REAP_MAX];
	struct timespec now = { 0, 0 };
	struct filed_transfer *t;
	uint32_t nr = 0;
	int got = 0, i;

	while (a->failed && nr < max) {
		t = a->failed;
		a->failed = t->next;
		transfer_done(a, t, t->result, &done[nr++]);
	}
	if (a->nr_kernel && nr < max)
		got = io_getevents(a->ctx, 0, max - nr < REAP_MAX ? max - nr : REAP_MAX, event,
			&now);
	for (i = 0; i < got; i++) {
		transfer_done(a, transfer_of(event[i].obj), (int64_t)(long)event[i].res,
			&done[nr++]);
		a->nr_kernel--;
	}
	return nr;
}
