/* base.h - the base of both public headers of libxseg: sizes, errors, operations. It is for C, and
 * for C++. A C++ program sees only this header and volume.h of libxseg. */
#ifndef XSEG_BASE_H
#define XSEG_BASE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XSEG_PAGE_SIZE	  4096u
#define XSEG_SECTOR	  512u
#define XSEG_EXTENT_SIZE  (2u << 20)
#define XSEG_EXTENT_PAGES (XSEG_EXTENT_SIZE / XSEG_PAGE_SIZE)
#define XSEG_NAME_MAX	  64			/* with the NUL */
#define XSEG_TARGET_MAX	  128			/* with the NUL */
#define XSEG_REQ_PAGES	  257			/* 1 MiB at any offset */
#define XSEG_REQ_BYTES	  (1u << 20)		/* the largest request */
#define XSEG_NONE	  UINT32_MAX
#define XSEG_MAX_PORTS	  256		/* of a segment: an index of a port is less */
#define XSEG_STATS_MAX	  56			/* counters in one block */
#define XSEG_STATS_KEY	  24

#define XSEG_MUST_CHECK	  __attribute__((warn_unused_result))

struct xseg;

/* One line for a person: what failed and why. The remedy may be added by whoever prints it. */
struct xseg_error {
	char text[320];
};

/* Fills err (may be NULL) and returns `code`. */
int xseg_fail(struct xseg_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* XSEG_OP_READ, XSEG_OP_WRITE and so on: ops.def has a row for each. */
enum xseg_op {
#define XSEG_OP_ROW(op, ...) XSEG_OP_##op,
#include "xseg/ops.def"
	XSEG_NR_OPS
};

#ifdef __cplusplus
}
#endif

#endif
