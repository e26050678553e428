/* report - the results of a run: for people, in fio's manner, or as JSON in fio's shape.
 *
 * Contract: the main thread's. 0 or -errno with a line in err.
 */
#ifndef BENCH_XBENCH_REPORT_H
#define BENCH_XBENCH_REPORT_H

#include <stdio.h>

#include "bench/xbench/run.h"

/* The file of --output, else standard output: before the run, which would be for nothing if its
 * results could not be written. */
int xb_report_open(const struct xb_options *o, FILE **out, struct xseg_error *err) XSEG_MUST_CHECK;

/* Before the load: one line of what will run, for people. */
void xb_report_begin(const struct xb_options *o, FILE *out);

/* After the run; closes the file. */
int xb_report(const struct xb_run *run, FILE *out, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
