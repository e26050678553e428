/* iolog - each I/O as a line of text, in the format "fio version 2 iolog", which fio can replay
 * (--read_iolog).
 *
 * Contract: one log a job, used by its thread; lines are buffered. An operation that fio lacks is
 * written as the nearest one: write_zeroes as trim, copy as write; info is left out.
 */
#ifndef BENCH_XBENCH_IOLOG_H
#define BENCH_XBENCH_IOLOG_H

#include "bench/xbench/plan/gen.h"

struct xb_iolog;

/* file: how fio shall call what the I/O goes to. NULL with a line in err. */
struct xb_iolog *xb_iolog_create(const char *path, const char *file, struct xseg_error *err);
void xb_iolog_add(struct xb_iolog *log, const struct xb_io *io);
/* 0 or -errno of whatever could not be written. */
int xb_iolog_destroy(struct xb_iolog *log) XSEG_MUST_CHECK;

#endif
