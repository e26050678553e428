/* check - the declarations that the files of `xseg check` share. See check.c.
 *
 * Contract: under all locks, by xseg_check() alone.
 */
#ifndef XSEG_CHECK_H
#define XSEG_CHECK_H

#include "xseg/internal.h"

struct check {
	struct xseg *seg;
	bool fix;
	unsigned problems;
	uint32_t *gift;		/* by page: the request + 1 that it is lent to, to be written */
	bool *seen;		/* by number: an extent of the arena that is being looked at */
	void (*report)(const char *problem, void *arg);
	void *arg;
};

__attribute__((format(printf, 2, 3))) void xs_check_problem(struct check *c, const char *fmt, ...);
#define problem xs_check_problem

/* check_lanes.c: what each lane joins, and where each port finds its own. */
void xs_check_lanes(struct check *c);

#endif
