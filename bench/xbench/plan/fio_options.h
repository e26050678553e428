/* fio_options - options that fio has and xbench has not: what to type in their place.
 *
 * Contract: pure.
 */
#ifndef BENCH_XBENCH_FIO_OPTIONS_H
#define BENCH_XBENCH_FIO_OPTIONS_H

#include "peers/common/options/opt.h"

/* The first word of argv that is such an option: -EINVAL with a line in err. 0: there is none. */
int xb_fio_options(const struct opt *table, int argc, char **argv,
		   struct xseg_error *err) XSEG_MUST_CHECK;

#endif
