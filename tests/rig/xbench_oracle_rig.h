/* xbench_oracle_rig - for the tests of the verify oracle: one oracle, and writes and reads of one
 * of its sectors. Included once by each test. */
#ifndef TESTS_UNIT_XBENCH_ORACLE_RIG_H
#define TESTS_UNIT_XBENCH_ORACLE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/xbench/oracle/oracle.c" /* NOLINT(bugprone-suspicious-include) */
#include "bench/xbench/oracle/sector.c" /* NOLINT(bugprone-suspicious-include) */

#define NR_FLOORS 64

static _Atomic uint64_t floors[NR_FLOORS];
static struct xb_oracle *oracle;

static inline int begin(void **state)
{
	struct xseg_error err;

	(void)state;
	for (unsigned i = 0; i < NR_FLOORS; i++)
		atomic_store(&floors[i], XB_NOT_READING);
	oracle = xb_oracle_create(4096, 1u << 20, floors, NR_FLOORS, &err);
	return oracle ? 0 : -1;
}

static inline int end(void **state)
{
	(void)state;
	xb_oracle_destroy(oracle);
	return 0;
}

/* ---- one sector, step by step ------------------------------------------------------------ */

#define AT 8192u

static inline uint64_t write_begin(uint64_t value)
{
	uint64_t issued = xb_oracle_tick(oracle);

	xb_oracle_write_begin(oracle, AT, 512, value, issued);
	return issued;
}

static inline void write_end(uint64_t issued, bool ok)
{
	xb_oracle_write_end(oracle, AT, 512, issued, ok);
}

static inline void write_value(uint64_t value)
{
	write_end(write_begin(value), true);
}

static inline uint64_t read_begin(void)
{
	return xb_oracle_read_begin(oracle, AT, 512);
}

/* A read whose floor is known, as a job does it: for those that are out while much happens. */
static inline uint64_t long_read_begin(unsigned job)
{
	uint64_t issued;

	atomic_store(&floors[job], xb_oracle_now(oracle));
	issued = read_begin();
	atomic_store(&floors[job], issued);
	return issued;
}

static inline bool read_end_kind(uint64_t issued, uint64_t value, enum xb_kind kind)
{
	struct xb_seen seen = { .value = value, .kind = kind, .offset = AT };

	return xb_oracle_read_end(oracle, AT, 512, issued, &seen) == 0;
}

static inline bool read_end(uint64_t issued, uint64_t value)
{
	return read_end_kind(issued, value, value == XB_VALUE_ZERO ? XB_SEEN_ZERO : XB_SEEN_OURS);
}

static inline bool read_value(uint64_t value)
{
	return read_end(read_begin(), value);
}

#define V(n) xb_value(0, n)

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif
