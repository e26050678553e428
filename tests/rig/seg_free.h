/* seg_free - what is free of a segment before a client of it begins, and the wait until that is
 * free again.
 *
 * Contract: everything asserts.
 */
#ifndef TESTS_RIG_SEG_FREE_H
#define TESTS_RIG_SEG_FREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "xseg/xseg.h"

struct segfree {
	uint32_t extents, requests;
};

static inline struct segfree segfree_of(struct xseg *seg)
{
	struct xseg_info info;

	xseg_get_info(seg, &info);
	return (struct segfree){ .extents = info.free_extents, .requests = info.idle_requests };
}

/* The segment is sound, and all that a client had is free again: soon, as objects may be deleted
 * yet, and what a client left may be on its way. */
static inline void segfree_wait(struct xseg *seg, struct segfree wanted)
{
	struct segfree now = { 0 };
	struct xseg_info info;

	for (unsigned i = 0; i < 60000; i++) {
		xseg_sweep(seg);
		xseg_get_info(seg, &info);
		assert_int_equal(info.bad_count, 0);
		now = segfree_of(seg);
		if (now.extents >= wanted.extents && now.requests >= wanted.requests)
			return;
		usleep(10000);
	}
	fail_msg("%u of %u requests and %u of %u extents are free", now.requests, wanted.requests,
		now.extents, wanted.extents);
}

#endif
