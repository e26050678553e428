/* filed_aio - one port's I/O through the kernel's asynchronous interface (io_submit(2), through
 * libaio).
 *
 * Added transfers are collected, and submitted in one call a round. Completions are looked for
 * without a system call (the kernel's ring is mapped). An eventfd announces them to a reactor that
 * sleeps.
 *
 * Contract: one thread. Nothing blocks, but for io_submit(2) itself where the kernel has to read
 * metadata or the file is not open for O_DIRECT. Memory of a transfer stays untouched until it is
 * done. Nothing allocates after open.
 *
 * Invariants:
 *   A1  Every transfer that was added is returned by filed_aio_reap() once.
 *   A2  free + waiting to be submitted + with the kernel + failed == depth
 */
#ifndef PEERS_FILED_FILED_AIO_H
#define PEERS_FILED_FILED_AIO_H

#include <libaio.h>
#include <stdbool.h>
#include <stdint.h>

#include "xseg/xseg.h"

struct filed_transfer;

struct filed_aio {
	io_context_t ctx;
	int eventfd;
	uint32_t depth;
	struct filed_transfer *transfer;	/* depth of them */
	struct filed_transfer *free;
	struct iocb **batch;			/* added, not yet the kernel's: nr_batch of them */
	uint32_t nr_batch, nr_kernel;
	struct filed_transfer *failed;		/* the kernel did not take them */
};

struct filed_done {
	void *owner;
	int64_t result;				/* bytes or -errno, the kernel's */
};

int filed_aio_open(struct filed_aio *a, uint32_t depth, struct xseg_error *err) XSEG_MUST_CHECK;
/* Waits for what the kernel has. */
void filed_aio_close(struct filed_aio *a);

static inline bool filed_aio_has_room(const struct filed_aio *a)
{
	return a->free;
}

/* Bytes from .. from + len - 1 of a request, to or from `offset` of the file. There is room. */
void filed_aio_add(struct filed_aio *a, struct xseg *seg, const struct xreq *r, uint32_t from,
	uint32_t len, int fd, uint64_t offset, void *owner);
/* Hands over what was added; true: some is left, as the kernel takes no more now. */
bool filed_aio_submit(struct filed_aio *a);
uint32_t filed_aio_reap(struct filed_aio *a, struct filed_done *done, uint32_t max);

#endif
