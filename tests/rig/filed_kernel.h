/* filed_kernel - filed's system calls, which fail on a test's demand, and accounts of the data that
 * they have made durable.
 *
 * The linker leads the calls of a test program through here (--wrap, see the Makefile). Syncs are
 * lines in the accounts only:
 *   pieces    for each 4 KiB of each file, whether it was written since the last good sync of the
 *             file, or lost by a bad one
 *   entries   for each name in each directory, whether it came or went since the last good sync of
 *             that directory
 *
 * Contract: one test at a time; the calls come from any thread. At most FK_FILES files.
 */
#ifndef TESTS_UNIT_FILED_KERNEL_H
#define TESTS_UNIT_FILED_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "peers/filed/filed_dir.h"

#define FK_FILES      20u
#define FK_PIECE      4096u
#define FK_PIECES     6u		/* of a file; what is behind is not looked after */

enum fk_call {
	FK_SUBMIT, FK_TRANSFER, FK_PREAD, FK_PWRITE, FK_OPENAT, FK_MKDIRAT, FK_UNLINKAT,
	FK_FTRUNCATE, FK_FALLOCATE, FK_FSTAT,
	FK_FACCESSAT, FK_FSYNC, FK_FDATASYNC, FK_FGETXATTR, FK_FSETXATTR, FK_NR_CALLS
};
extern const char *const fk_call_names[FK_NR_CALLS];

/* IN_PART: half of it, in whole sectors; ODDLY: a part that ends within a sector; LATE: all of it,
 * and long after what was asked for later. */
enum fk_fault {
	FK_EIO,
	FK_ENOSPC,
	FK_EINTR,
	FK_EAGAIN,
	FK_EINVAL,
	FK_EOPNOTSUPP,
	FK_EMFILE,
	FK_IN_PART,
	FK_ODDLY,
	FK_LATE,
	FK_NR_FAULTS
};

struct fk_fault_info {
	const char *name;
	int error;
	bool harmless, harmless_for_ever;	/* no request may fail for that */
};
extern const struct fk_fault_info fk_faults[FK_NR_FAULTS];
/* Whether that call can fail so. */
bool fk_can(enum fk_call call, enum fk_fault fault);

/* Forgets all: files are below `root`; no fault. */
void fk_begin(const char *root);
/* From now on calls are counted, each kind from 1 on; the at-th of that kind fails so, which it
 * can, and, for ever, each that can from then on. What workers do changes places with what goes on
 * beside it, but seldom within a kind. 0: none. */
void fk_arm(enum fk_fault fault, enum fk_call call, uint32_t at, bool for_ever);
/* Instead of that: one sync of a file's data in so many fails, by chance, and each takes a moment.
 * 0: no more. */
void fk_fail_syncs(uint32_t one_in, uint32_t seed);
void fk_heal(void);
uint32_t fk_nr_calls(enum fk_call call);
uint32_t fk_nr_fired(void);

/* Why a file of that path below the root is not durable, in the pieces that are whole in that
 * range, or, if it is not there, why that is not; NULL: it is. */
const char *fk_not_durable(const char *path, uint64_t from, uint64_t to);

#endif
