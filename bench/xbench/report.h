/* report - the results of a run: for people, in fio's manner, or as JSON in fio's shape.
 *
 * Contract: the main thread's, after the run. 0 or -errno with a line in err.
 */
#ifndef BENCH_XBENCH_REPORT_H
#define BENCH_XBENCH_REPORT_H

#include <stdio.h>

#include "bench/xbench/run.h"

/* To the file of --output, else standard output. */
int xb_report(const struct xb_run *run, struct xseg_error *err) XSEG_MUST_CHECK;

#endif
