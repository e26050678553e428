/* filed_test - filed through peer.h, one client and one store in one thread, on files of this
 * machine: the contract of blockers, syncs, directories.
 *
 * Syncs go through this file's fdatasync(), fsync() and syncfs(), which count, and fail on a test's
 * demand. Holes and ends of files go through its fallocate() and ftruncate(), data through its
 * pwrite() and io_submit().
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "peers/common/say/words.h"
#include "peers/filed/filed.h"
#include "tests/rig/blocker_contract.h"
#include "tests/rig/long.h"
#include "tests/rig/tree.h"

/* ---- the system calls -------------------------------------------------------------------- */

static _Atomic int nr_data_syncs, nr_dir_syncs, fail_data_syncs, fail_dir_syncs;
static _Atomic int nr_begun_data_syncs, hold_data_syncs;

static int sync_fd(long call, int fd, _Atomic int *nr, _Atomic int *fail)
{
	(*nr)++;
	if (*fail > 0) {
		(*fail)--;
		errno = EIO;
		return -1;
	}
	return (int)syscall(call, fd);
}

int fdatasync(int fd)
{
	nr_begun_data_syncs++;
	while (hold_data_syncs)
		usleep(100);
	return sync_fd(SYS_fdatasync, fd, &nr_data_syncs, &fail_data_syncs);
}

int fsync(int fd)
{
	return sync_fd(SYS_fsync, fd, &nr_dir_syncs, &fail_dir_syncs);
}

static _Atomic int no_holes, hold_truncates, nr_begun_truncates;

int fallocate(int fd, int mode, off_t at, off_t len)
{
	if (!no_holes)
		return (int)syscall(SYS_fallocate, fd, mode, at, len);
	errno = EOPNOTSUPP;
	return -1;
}

int ftruncate(int fd, off_t size)
{
	nr_begun_truncates++;
	while (hold_truncates)
		usleep(100);
	return (int)syscall(SYS_ftruncate, fd, size);
}

static _Atomic int no_attributes;

ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
{
	if (!no_attributes)
		return syscall(SYS_fgetxattr, fd, name, value, size);
	errno = EOPNOTSUPP;
	return -1;
}

int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
	if (!no_attributes)
		return (int)syscall(SYS_fsetxattr, fd, name, value, size, flags);
	errno = EOPNOTSUPP;
	return -1;
}

static _Atomic int odd_writes, fail_submits;

/* An odd one ends within a block, as often as it is tried. */
ssize_t pwrite(int fd, const void *buf, size_t len, off_t at)
{
	return odd_writes ? 100 : (ssize_t)syscall(SYS_pwrite64, fd, buf, len, at);
}

int io_submit(io_context_t ctx, long nr, struct iocb **all)
{
	int rc;

	if (fail_submits > 0) {
		fail_submits--;
		return -EIO;
	}
	rc = (int)syscall(SYS_io_submit, ctx, nr, all);
	return rc < 0 ? -errno : rc;
}

static _Atomic int nr_fs_syncs, fail_fs_syncs;

int syncfs(int fd)
{
	(void)fd;
	nr_fs_syncs++;
	if (fail_fs_syncs == 0)
		return 0;
	fail_fs_syncs--;
	errno = EIO;
	return -1;
}

/* ---- directories ------------------------------------------------------------------------- */

static char base[200];				/* of all directories of the tests */
static char opt_dir[300];			/* "dir=..." of the test that runs */

/* A directory that is not there yet. */
static const char *fresh_dir(const char *below)
{
	static int nr;

	snprintf(opt_dir, sizeof(opt_dir), "dir=%s/filed-test-%d-%d", below, (int)getpid(), nr++);
	remove_tree(opt_dir + 4);
	nr_data_syncs = nr_dir_syncs = fail_data_syncs = fail_dir_syncs = nr_begun_data_syncs =
		hold_data_syncs = no_holes = hold_truncates = nr_begun_truncates = no_attributes =
			nr_fs_syncs = fail_fs_syncs = odd_writes = fail_submits = 0;
	return opt_dir;
}

static void filed_open(struct rig *r, const char *const *options)
{
	rig_open(r, &filed_class, options, true);
}

static void filed_close(struct rig *r)
{
	rig_close(r);
	remove_tree(opt_dir + 4);
}

/* ---- the contract of blockers ------------------------------------------------------------ */

/* Few I/Os at a time, or few files for several threads. */
static void open_empty(struct rig *r, uint32_t ports)
{
	static const char *const one[] = { opt_dir, "iodepth=4", NULL };
	static const char *const more[] = { opt_dir, "threads=3", "files=16", NULL };

	fresh_dir(base);
	filed_open(r, ports == 1 ? one : more);
	assert_int_equal(r->peer->nr_ports, ports);
}

static void hold(struct rig *r, uint32_t n)
{
	while (n--)
		peer_port_step_request(&r->peer->ports[0]);
}

static const struct contract contract = {
	.open = open_empty,
	.close = filed_close,
	.hold = hold,
	.thin = true,
	.align = 512,
	.nr_random = 1000,
	.nr_torn = 1000,
};

/* ---- data -------------------------------------------------------------------------------- */

/* The test's store. T has it opened with no options, O opens it itself. */
static struct rig g;

static int setup(void **state)
{
	static const char *const options[] = { opt_dir, NULL };

	(void)state;
	fresh_dir(base);
	filed_open(&g, options);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	filed_close(&g);
	return 0;
}

static void objects_have_no_largest_size(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 3 * MIB + 17, MIB, 0x55, 0), MIB);
	assert_true(rig_holds(&g, "a", 3 * MIB + 17, MIB, 0x55));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 4 * MIB + 17);
	assert_int_equal(rig_fill(&g, "big", UINT64_C(5) << 30, 4 * KIB, 0x22, 0), 4 * KIB);
	assert_true(rig_holds(&g, "big", UINT64_C(5) << 30, 4 * KIB, 0x22));
}

static void a_name_whose_file_would_have_too_long_a_name_is_refused(void **state)
{
	char many[128];

	(void)state;
	memset(many, '/', 127);
	many[127] = '\0';
	assert_int_equal(rig_fill(&g, many, 0, 512, 1, 0), -ENAMETOOLONG);
}

/* `escaped` bytes that are written %XX, and `plain` ones that are not. */
static char *mixed_name(size_t escaped, size_t plain)
{
	static char name[XSEG_TARGET_MAX];

	assert_true(escaped + plain < sizeof(name));
	memset(name, '/', escaped);
	memset(name + escaped, 'a', plain);
	name[escaped + plain] = '\0';
	return name;
}

static void a_name_whose_file_has_the_longest_name_there_is_can_be_used(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, mixed_name(85, 0), 0, 512, 0x11, 0), 512);
	assert_int_equal(rig_fill(&g, mixed_name(84, 3), 0, 512, 0x22, 0), 512);
	assert_int_equal(rig_fill(&g, mixed_name(84, 2), 0, 512, 0x33, 0), 512);
	assert_true(rig_holds(&g, mixed_name(85, 0), 0, 512, 0x11));
	assert_true(rig_holds(&g, mixed_name(84, 3), 0, 512, 0x22));
	assert_true(rig_holds(&g, mixed_name(84, 2), 0, 512, 0x33));
	assert_int_equal(rig_fill(&g, mixed_name(84, 4), 0, 512, 1, 0), -ENAMETOOLONG);
	assert_int_equal(rig_fill(&g, mixed_name(85, 1), 0, 512, 1, 0), -ENAMETOOLONG);
}

static void random_ops_without_o_direct_agree_with_an_array(void **state)
{
	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "direct=no", "files=16"));
	contract_random_ops(&g, in_short(1000, 3), 512);
}

static void random_ops_on_tmpfs_agree_with_an_array(void **state)
{
	(void)state;
	filed_open(&g, OPTIONS(fresh_dir("/dev/shm"), "direct=yes", "files=16"));
	contract_random_ops(&g, in_short(1000, 3), 512);
}

static void more_requests_than_iodepth_and_slots_are_served(void **state)
{
	struct rig_io *io[30];
	uint8_t data[4096];
	char name[16];
	uint32_t i, k;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "iodepth=2", "files=16"));
	for (k = 0; k < 4; k++) {
		for (i = 0; i < 30; i++) {
			snprintf(name, sizeof(name), "o%u", k * 15 + i);
			memset(data, (int)(k * 15 + i + 1), sizeof(data));
			io[i] = rig_send(&g, XSEG_OP_WRITE, name, 0, 4096, data,
				i % 3 ? 0 : XSEG_REQ_FUA);
		}
		for (i = 0; i < 30; i++)
			assert_int_equal(rig_wait(&g, io[i]), 4096);
	}
	rig_many_hold(&g, 75);
}

/* Its last block ends behind the file, which is then to end where it did. */
static void a_discard_without_holes_does_not_cut_off_what_is_written_behind_it(void **state)
{
	struct rig_io *trim, *write;
	uint8_t data[4096];

	(void)state;
	if (((struct filed *)g.peer)->dir.align == 1) {
		print_message("skipped: no O_DIRECT in %s\n", base);
		skip();
	}
	no_attributes = 1;			/* else no file ends there */
	memset(data, 0x22, sizeof(data));
	assert_int_equal(rig_fill(&g, "a", 0, 4196, 0x11, 0), 4196);
	no_holes = hold_truncates = 1;
	nr_begun_truncates = 0;
	trim = rig_send(&g, XSEG_OP_DISCARD, "a", 4096, 4096, NULL, 0);
	while (!nr_begun_truncates)
		rig_step(&g);
	write = rig_send(&g, XSEG_OP_WRITE, "a", 8192, 4096, data, 0);
	rig_settle(&g);
	hold_truncates = 0;
	assert_int_equal(rig_wait(&g, trim), 4096);
	assert_int_equal(rig_wait(&g, write), 4096);
	assert_true(rig_holds(&g, "a", 4096, 4096, 0));
	assert_true(rig_holds(&g, "a", 8192, 4096, 0x22));
}

static void a_transfer_that_comes_no_block_further_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	if (((struct filed *)g.peer)->dir.align == 1) {
		print_message("skipped: no O_DIRECT here\n");
		skip();
	}
	odd_writes = 1;
	assert_int_equal(rig_fill(&g, "a", 512, 1000, 0x22, 0), -EIO);
	odd_writes = 0;
	assert_int_equal(rig_fill(&g, "a", 512, 1000, 0x22, 0), 1000);
	assert_true(rig_holds(&g, "a", 512, 1000, 0x22));
}

/* Nothing else would call the port again. */
static void what_the_kernel_refuses_is_answered_at_once(void **state)
{
	struct peer_port *pp = &g.peer->ports[0];
	uint8_t data[4096] = { 1 };
	struct rig_io *io;

	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	fail_submits = 1;
	io = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	assert_true(peer_port_step_request(pp));
	assert_in_range(peer_port_step_poll(pp), 0, pp->now_ns);
	assert_int_equal(fail_submits, 0);
	assert_int_equal(rig_wait(&g, io), -EIO);
}

static void what_has_no_data_left_goes_when_it_is_synced(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 100000, 0x11, 0), 100000);
	assert_int_equal(rig_fill(&g, "b", 0, 8192, 0x11, 0), 8192);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 0, 50000), 50000);
	assert_int_equal(rig_op(&g, XSEG_OP_WRITE_ZEROES, "b", 0, 4096), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_true(rig_holds(&g, "a", 50000, 50000, 0x11));
	assert_true(rig_holds(&g, "b", 4096, 4096, 0x11));
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 0, 200000), 200000);
	assert_int_equal(rig_op(&g, XSEG_OP_WRITE_ZEROES, "b", 0, MIB), MIB);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -ENOENT);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "b", 0, 0), -ENOENT);
	rig_status_has(&g, "unsynced_files=0\n");
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), 4096);
	rig_restart(&g);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x22));
	assert_true(rig_holds(&g, "a", 4096, MIB - 4096, 0));
	assert_true(rig_holds(&g, "b", 0, MIB, 0));
}

/* Of more objects than it may have files open: most are closed before the FLUSH. */
static void what_has_no_data_left_goes_when_its_file_is_closed(void **state)
{
	char name[16];

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "files=16"));
	for (int turn = 0; turn < 2; turn++)
		for (unsigned i = 0; i < 40; i++) {
			snprintf(name, sizeof(name), "o%u", i);
			if (turn == 0)
				assert_int_equal(rig_fill(&g, name, 0, 4096, 1, 0), 4096);
			else
				assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, name, 0, MIB), MIB);
		}
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		assert_int_equal(rig_op(&g, XSEG_OP_INFO, name, 0, 0), -ENOENT);
	}
}

static void a_copy_of_a_hole_is_a_hole(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 64 * KIB, 64 * KIB, 0x11, 0), 64 * KIB);
	assert_int_equal(rig_copy(&g, "a", "none", 0, 64 * KIB), 64 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "none", 0, 0), -ENOENT);
	assert_int_equal(rig_fill(&g, "b", 0, 128 * KIB, 0x22, 0), 128 * KIB);
	assert_int_equal(rig_copy(&g, "a", "b", 1000, 63000), 63000);
	assert_true(rig_holds(&g, "b", 0, 1000, 0x22));
	assert_true(rig_holds(&g, "b", 1000, 63000, 0));
	assert_true(rig_holds(&g, "b", 64000, 64 * KIB, 0x22));
}

/* ---- wrong files ------------------------------------------------------------------------- */

/* The path of an object's file. */
static const char *file_of(const char *name)
{
	static char path[2][700];
	static uint32_t nr;
	char below[FILED_PATH_MAX], *at = path[nr++ % 2];

	assert_int_equal(filed_dir_path(name, xseg_hash(name, strlen(name)), below), 0);
	snprintf(at, sizeof(path[0]), "%s/%s", opt_dir + 4, below);
	return at;
}

/* The store has the objects a and b, and is stopped. */
static void stop_with_two(void)
{
	assert_int_equal(rig_fill(&g, "a", 0, 8192, 0x11, 0), 8192);
	assert_int_equal(rig_fill(&g, "b", 0, 8192, 0x22, 0), 8192);
	rig_stop(&g);
}

/* Nothing of an object is read or changed, but it can be deleted, and made anew. */
static void is_wrong(const char *name)
{
	assert_int_equal(rig_fill(&g, name, 0, 4096, 0x33, 0), -EIO);
	assert_int_equal(rig_fill(&g, name, 100, 100, 0x33, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_READ, name, 0, 4096), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_READ, name, 100, 100), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, name, 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, name, 0, 4096), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_WRITE_ZEROES, name, 0, 4096), -EIO);
	assert_int_equal(rig_copy(&g, name, "copy", 0, 4096), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, name, 0, 0), 0);
	assert_true(rig_holds(&g, name, 0, 8192, 0));
	assert_int_equal(rig_fill(&g, name, 0, 4096, 0x44, 0), 4096);
	assert_true(rig_holds(&g, name, 0, 4096, 0x44));
}

static void the_files_of_two_objects_that_were_swapped_are_not_served(void **state)
{
	char other[720];

	(void)state;
	stop_with_two();
	snprintf(other, sizeof(other), "%s/other", opt_dir + 4);
	assert_int_equal(rename(file_of("a"), other), 0);
	assert_int_equal(rename(file_of("b"), file_of("a")), 0);
	assert_int_equal(rename(other, file_of("b")), 0);
	assert_int_equal(rig_start(&g), 0);
	is_wrong("a");
	is_wrong("b");
}

static void a_file_that_was_cut_short_is_not_served(void **state)
{
	(void)state;
	stop_with_two();
	assert_int_equal(truncate(file_of("a"), 8192), 0);	/* all data is there: who knows */
	assert_int_equal(truncate(file_of("b"), 0), 0);
	assert_int_equal(rig_start(&g), 0);
	is_wrong("a");
	is_wrong("b");
}

static void a_file_with_another_attribute_is_not_served(void **state)
{
	(void)state;
	stop_with_two();
	assert_int_equal(setxattr(file_of("a"), "user.xseg", "2 65536 65536 a", 15, 0), 0);
	assert_int_equal(setxattr(file_of("b"), "user.xseg", "", 0, 0), 0);
	assert_int_equal(rig_start(&g), 0);
	is_wrong("a");
	is_wrong("b");
}

/* Whoever puts it back need not start filed again. */
static void the_right_file_that_is_put_back_is_served(void **state)
{
	char other[720];

	(void)state;
	stop_with_two();
	snprintf(other, sizeof(other), "%s/other", opt_dir + 4);
	assert_int_equal(link(file_of("a"), other), 0);
	assert_int_equal(rename(file_of("b"), file_of("a")), 0);
	assert_int_equal(rig_start(&g), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_READ, "a", 0, 4096), -EIO);
	assert_int_equal(rename(other, file_of("a")), 0);
	assert_true(rig_holds(&g, "a", 0, 8192, 0x11));
}

static void a_file_without_attribute_is_served_and_gets_it_at_its_first_change(void **state)
{
	struct stat st;

	(void)state;
	stop_with_two();
	assert_int_equal(removexattr(file_of("a"), "user.xseg"), 0);
	assert_int_equal(truncate(file_of("a"), 8192), 0);
	assert_int_equal(rig_start(&g), 0);
	assert_true(rig_holds(&g, "a", 0, 8192, 0x11));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 8192);
	assert_int_equal(getxattr(file_of("a"), "user.xseg", NULL, 0), -1);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 0, 4096), 4096);
	assert_int_equal(getxattr(file_of("a"), "user.xseg", NULL, 0), 15);
	assert_int_equal(stat(file_of("a"), &st), 0);
	assert_int_equal(st.st_size, 64 * KIB);
	assert_true(rig_holds(&g, "a", 4096, 4096, 0x11));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 8192);
}

static void a_store_without_attributes_serves_and_says_so(void **state)
{
	const char *options[] = { fresh_dir(base), NULL };

	(void)state;
	no_attributes = 1;
	filed_open(&g, options);
	rig_status_has(&g, "attributes=no\n");
	assert_int_equal(rig_fill(&g, "a", 0, 70000, 0x11, 0), 70000);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 70000);
	rig_restart(&g);
	assert_true(rig_holds(&g, "a", 0, 70000, 0x11));
	no_attributes = 0;
	rig_restart(&g);
	rig_status_has(&g, "attributes=yes\n");
	assert_true(rig_holds(&g, "a", 0, 70000, 0x11));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), 4096);
	assert_int_equal(getxattr(file_of("a"), "user.xseg", NULL, 0), 17);
}

/* ---- syncs ------------------------------------------------------------------------------- */

static void flush_syncs_what_was_written_and_nothing_else(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x11, 0), 4096);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
	nr_data_syncs = nr_dir_syncs = 0;
	rig_status_has(&g, "unsynced_files=2\n");
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(nr_data_syncs, 2);
	assert_int_equal(nr_dir_syncs, 6);
	rig_status_has(&g, "unsynced_files=0\n");
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(nr_data_syncs, 2);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x22, 0), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(nr_data_syncs, 3);
	assert_int_equal(nr_dir_syncs, 6);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "b", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(nr_data_syncs, 3);
	assert_int_equal(nr_dir_syncs, 7);
}

static void a_successor_flushes_what_the_dead_one_wrote(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_fill(&g, "c", 0, 4096, 0x11, 0), 4096);
	nr_data_syncs = nr_dir_syncs = 0;
	rig_restart(&g);
	assert_int_equal(nr_data_syncs, 0);
	rig_status_has(&g, "unsynced_files=2\n");
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(nr_data_syncs, 2);
	assert_int_equal(nr_dir_syncs, 3);
	rig_status_has(&g, "unsynced_files=0\n");
}

static void an_orderly_stop_syncs(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(nr_data_syncs, 0);
	rig_stop(&g);
	assert_int_equal(nr_data_syncs, 1);
	assert_int_equal(rig_start(&g), 0);
	rig_status_has(&g, "unsynced_files=0\n");
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
}

static void also_what_was_written_since_a_flush(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(nr_data_syncs, 1);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), 4096);
	rig_stop(&g);
	assert_int_equal(nr_data_syncs, 2);
	assert_int_equal(rig_start(&g), 0);
	rig_status_has(&g, "unsynced_files=0\n");
}

static void a_file_is_synced_before_it_is_closed(void **state)
{
	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "files=16"));
	rig_fill_many(&g, 40);
	assert_int_equal(nr_data_syncs, 24);
	rig_status_has(&g, "open_files=16\n");
	rig_status_has(&g, "unsynced_files=16\n");
}

/* Though it is the one that was used last. */
static void a_file_that_needs_no_sync_is_closed_rather_than_one_that_does(void **state)
{
	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "files=16"));
	rig_fill_many(&g, 16);
	assert_int_equal(rig_fill(&g, "o5", 0, 4096, 0x11, XSEG_REQ_FUA), 4096);
	nr_data_syncs = 0;
	assert_int_equal(rig_fill(&g, "one more", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(nr_data_syncs, 0);
	rig_status_has(&g, "open_files=16\n");
	rig_status_has(&g, "unsynced_files=16\n");
}

/* FUA ops whose data is written, and that the sync under way is not for. */
static uint32_t nr_that_wait_for_the_next_sync(void)
{
	struct filed *f = filed_of(g.peer);
	struct order_op *op;
	uint32_t nr = 0, i;

	pthread_mutex_lock(&f->lock);
	for (i = 0; i < f->files.nr; i++)
		for (op = f->fua[i].ops.first; op; op = op->next)
			nr++;
	pthread_mutex_unlock(&f->lock);
	return nr;
}

/* One sync is held. Steps until `n` FUA ops wait for the one after it. */
static void wait_behind_a_held_sync(uint32_t n)
{
	while (nr_that_wait_for_the_next_sync() < n) {
		rig_rest(&g);
		rig_step(&g);
	}
	assert_int_equal(nr_begun_data_syncs - nr_data_syncs, 1);
}

/* Those that come during a sync share the next one. */
static void fua_is_answered_after_the_sync(void **state)
{
	struct rig_io *io[8];
	uint8_t data[4096] = { 1 };
	int i;

	(void)state;
	nr_dir_syncs = 0;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, XSEG_REQ_FUA), 4096);
	assert_int_equal(nr_data_syncs, 1);
	assert_int_equal(nr_dir_syncs, 3);
	rig_status_has(&g, "unsynced_files=0\n");
	hold_data_syncs = 1;
	io[0] = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, XSEG_REQ_FUA);
	while (nr_begun_data_syncs < 2)
		rig_step(&g);
	for (i = 1; i < 8; i++)
		io[i] = rig_send(&g, XSEG_OP_WRITE, "a", (uint64_t)i * 4096, 4096, data,
			XSEG_REQ_FUA);
	wait_behind_a_held_sync(7);
	rig_step(&g);
	for (i = 0; i < 8; i++)
		assert_false(io[i]->done);
	hold_data_syncs = 0;
	for (i = 0; i < 8; i++)
		assert_int_equal(rig_wait(&g, io[i]), 4096);
	assert_int_equal(nr_data_syncs, 3);
	fail_data_syncs = 1;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, XSEG_REQ_FUA), -EIO);
}

static void a_write_during_a_sync_is_synced_by_the_next(void **state)
{
	struct rig_io *flush;

	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	hold_data_syncs = 1;
	flush = rig_send(&g, XSEG_OP_FLUSH, "", 0, 0, NULL, 0);
	while (!nr_begun_data_syncs)
		rig_step(&g);
	assert_int_equal(rig_fill(&g, "a", 4096, 4096, 0x22, 0), 4096);
	hold_data_syncs = 0;
	assert_int_equal(rig_wait(&g, flush), 0);
	rig_status_has(&g, "unsynced_files=1\n");
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	rig_status_has(&g, "unsynced_files=0\n");
	assert_int_equal(nr_data_syncs, 2);
}

/* As on a disk that is very slow, or full: removing a volume begins with a listing. */
static void a_listing_does_not_wait_for_workers_that_all_sync(void **state)
{
	static const uint8_t data[4096];
	struct rig_io *io[FILED_WORKERS + 1], *list;
	char name[16];
	uint32_t i;

	(void)state;
	hold_data_syncs = 1;
	for (i = 0; i <= FILED_WORKERS; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		io[i] = rig_send(&g, XSEG_OP_WRITE, name, 0, 4096, data, XSEG_REQ_FUA);
	}
	while (nr_begun_data_syncs < (int)FILED_WORKERS)
		rig_step(&g);
	list = rig_send_list(&g, "", 0, 4096);
	assert_true(rig_wait(&g, list) > 0);
	hold_data_syncs = 0;
	for (i = 0; i <= FILED_WORKERS; i++)
		assert_int_equal(rig_wait(&g, io[i]), 4096);
}

static void after_a_failed_sync_flush_fails_until_all_is_overwritten(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 16384, 0x11, 0), 16384);
	fail_data_syncs = 1;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	rig_status_has(&g, "sync_errors=1\n");
	rig_status_has(&g, "lost_files=1\n");
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	rig_restart(&g);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_fill(&g, "a", 0, 8192, 0x22, 0), 8192);
	assert_int_equal(rig_fill(&g, "a", 8192, 4608, 0x22, 0), 4608);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_fill(&g, "a", 12288, 4096, 0x22, 0), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	rig_status_has(&g, "lost_files=0\n");
}

/* Once: by the sync that failed, and not by a later one of the same file. */
static void a_fua_write_that_another_one_s_sync_has_lost_fails(void **state)
{
	static const uint8_t data[4096];
	struct rig_io *first, *second;

	(void)state;
	hold_data_syncs = 1;
	first = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, XSEG_REQ_FUA);
	while (!nr_begun_data_syncs)
		rig_step(&g);
	second = rig_send(&g, XSEG_OP_WRITE, "a", 4096, 4096, data, XSEG_REQ_FUA);
	wait_behind_a_held_sync(1);
	fail_data_syncs = 1;
	hold_data_syncs = 0;
	assert_int_equal(rig_wait(&g, first), -EIO);
	assert_int_equal(rig_wait(&g, second), -EIO);
	assert_int_equal(rig_fill(&g, "a", 0, 8192, 0x22, XSEG_REQ_FUA), 8192);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
}

static void what_a_volume_has_lost_fails_its_own_flush_and_that_of_all(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "v:0", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_fill(&g, "v:1", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(rig_fill(&g, "w:0", 0, 4096, 0x11, 0), 4096);
	fail_data_syncs = 1;
	assert_int_equal(rig_flush(&g, 1, "v:"), 0);
	rig_status_has(&g, "lost_files=0\n");	/* it was not synced, so its own FLUSH is told */
	assert_int_equal(rig_flush(&g, 2, "w:"), -EIO);
	assert_int_equal(rig_flush(&g, 1, "v:"), 0);
	assert_int_equal(rig_flush(&g, 2, "w:1"), -EIO);
	assert_int_equal(rig_flush(&g, 0, ":"), -EIO);
	assert_int_equal(rig_flush(&g, 0, "v:0"), -EIO);
	assert_int_equal(rig_flush(&g, 0, ""), -EIO);
	assert_int_equal(rig_fill(&g, "w:0", 0, 4096, 0x22, 0), 4096);
	assert_int_equal(rig_flush(&g, 2, "w:"), 0);
}

static void a_failed_sync_of_a_rewrite_loses_it_again(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	fail_data_syncs = 1;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	fail_data_syncs = 1;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
}

static void a_directory_that_cannot_be_synced_fails_flush_until_it_can(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	fail_dir_syncs = 2;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
}

static void files_with_lost_data_keep_their_slots(void **state)
{
	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "files=16"));
	rig_fill_many(&g, 16);
	fail_data_syncs = 16;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	rig_status_has(&g, "lost_files=16\n");
	assert_int_equal(rig_fill(&g, "one more", 0, 4096, 1, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "o3", 0, 0), 0);
	assert_int_equal(rig_fill(&g, "one more", 0, 4096, 1, 0), 4096);
}

static void who_needs_a_slot_does_not_get_the_error_of_a_file_that_cannot_be_synced(void **state)
{
	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "files=16"));
	rig_fill_many(&g, 16);
	fail_dir_syncs = 15;
	assert_true(rig_holds(&g, "one more", 0, 4096, 0));
	assert_int_equal(fail_dir_syncs, 0);
	rig_status_has(&g, "unsynced_files=15\n");
	assert_int_equal(rig_fill(&g, "one more", 0, 4096, 1, 0), 4096);
	fail_dir_syncs = 1000;
	assert_int_equal(rig_fill(&g, "and one", 0, 4096, 1, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	fail_dir_syncs = 0;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(rig_fill(&g, "and one", 0, 4096, 1, 0), 4096);
}

static uint64_t told_unsynced(void)
{
	struct xseg_peer_info info;

	assert_true(xseg_peer_get_info(g.seg, xseg_peer_find(g.seg, "filed"), &info));
	return peer_word_unsynced(&info);
}

static void what_a_sync_failed_for_is_known_also_while_there_is_no_filed(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 16384, 0x11, 0), 16384);
	assert_int_equal(told_unsynced(), 0);
	fail_data_syncs = 1;
	rig_stop(&g);
	assert_int_equal(told_unsynced(), 16384);
	assert_int_equal(rig_start(&g), 0);
	assert_int_equal(told_unsynced(), 16384);
	assert_int_equal(rig_fill(&g, "a", 0, 12288, 0x11, 0), 12288);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(told_unsynced(), 4096);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x11, 0), 4096);
	fail_dir_syncs = 1;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(told_unsynced(), 8192);
	rig_kill(&g);
	assert_int_equal(told_unsynced(), 8192);
	assert_int_equal(rig_start(&g), 0);
	assert_int_equal(told_unsynced(), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), 0);
	assert_int_equal(told_unsynced(), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
}

/* The path of an object's file below the directory of the test that runs. */
static const char *path_of(const char *name)
{
	static char path[700];
	char below[FILED_PATH_MAX];

	assert_int_equal(filed_dir_path(name, xseg_hash(name, strlen(name)), below), 0);
	snprintf(path, sizeof(path), "%s/%s", opt_dir + 4, below);
	return path;
}

/* As by a repair of the file system, or by a backup in its place. */
static void a_file_that_is_gone_with_what_was_not_synced_has_lost_it(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 8192, 0x11, 0), 8192);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_fill(&g, "c", 0, 4096, 0x11, 0), 4096);
	rig_kill(&g);
	assert_int_equal(unlink(path_of("a")) || unlink(path_of("c")), 0);
	assert_int_equal(rig_start(&g), 0);
	assert_true(rig_holds(&g, "a", 0, 8192, 0));	/* it is opened, or by the sync */
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	rig_status_has(&g, "lost_files=2\n");
	assert_int_equal(told_unsynced(), 12288);
	rig_restart(&g);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "c", 0, 0), -ENOENT);
	assert_int_equal(told_unsynced(), 8192);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(told_unsynced(), 4096);
	assert_int_equal(rig_fill(&g, "a", 4096, 4096, 0x22, 0), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(told_unsynced(), 0);
}

static void what_a_sync_has_lost_is_lost_when_its_file_is_gone(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 16384, 0x11, 0), 16384);
	fail_data_syncs = 1;
	rig_stop(&g);
	assert_int_equal(unlink(path_of("a")), 0);
	assert_int_equal(rig_start(&g), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -ENOENT);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 512, 12288), 12288);
	assert_int_equal(told_unsynced(), 8192);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 0, 16384), 16384);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(told_unsynced(), 0);
}

/* ---- the directory ----------------------------------------------------------------------- */

static void a_second_filed_on_a_directory_is_refused(void **state)
{
	struct filed_dir second;
	struct xseg_error err;

	(void)state;
	assert_int_equal(filed_dir_open(&second, opt_dir + 4, true, "", &err), -EBUSY);
	assert_non_null(strstr(err.text, "in use by another filed"));
}

static void foreign_directories_are_refused(void **state)
{
	char path[400];
	struct filed_dir d;
	struct xseg_error err;
	const char *dir = fresh_dir(base) + 4;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/not/there", dir);
	assert_int_equal(filed_dir_open(&d, path, true, "", &err), -ENOENT);
	assert_int_equal(mkdir(dir, 0777), 0);
	snprintf(path, sizeof(path), "%s/letter", dir);
	fd = creat(path, 0666);
	assert_true(fd >= 0);
	assert_int_equal(filed_dir_open(&d, dir, true, "", &err), -ENOTEMPTY);
	assert_int_equal(filed_dir_open(&d, path, true, "", &err), -ENOTDIR);
	unlink(path);
	close(fd);
	snprintf(path, sizeof(path), "%s/xseg-filed", dir);
	fd = creat(path, 0666);
	/* one that died before it wrote the version */
	assert_int_equal(filed_dir_open(&d, dir, true, "", &err), 0);
	filed_dir_close(&d);
	close(fd);
	fd = creat(path, 0666);
	assert_int_equal(write(fd, "xseg-filed 9\n", 13), 13);
	close(fd);
	assert_int_equal(filed_dir_open(&d, dir, true, "", &err), -EPROTO);
	remove_tree(dir);
}

/* What a message tells is done: an empty directory in its place would lose what is there. */
static void a_directory_of_objects_whose_format_is_lost_is_not_called_foreign(void **state)
{
	char path[400];
	struct filed_dir d;
	struct xseg_error err;
	const char *dir = fresh_dir(base) + 4;
	int fd;

	(void)state;
	assert_int_equal(mkdir(dir, 0777), 0);
	snprintf(path, sizeof(path), "%s/0a", dir);
	assert_int_equal(mkdir(path, 0777), 0);
	assert_int_equal(filed_dir_open(&d, dir, true, "", &err), -EUCLEAN);
	snprintf(path, sizeof(path), "%s/xseg-filed", dir);
	fd = creat(path, 0666);
	assert_true(fd >= 0);
	assert_int_equal(filed_dir_open(&d, dir, true, "", &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "(this version writes the line 'xseg-filed 1')"));
	assert_int_equal(write(fd, "xseg-filed 1\n", 13), 13);
	close(fd);
	assert_int_equal(filed_dir_open(&d, dir, true, "", &err), 0);
	filed_dir_close(&d);
	snprintf(path, sizeof(path), "%s/letter", dir);
	fd = creat(path, 0666);
	close(fd);
	snprintf(path, sizeof(path), "%s/xseg-filed", dir);
	unlink(path);
	assert_int_equal(filed_dir_open(&d, dir, true, "", &err), -ENOTEMPTY);
	remove_tree(dir);
}

static void another_directory_does_not_inherit_what_was_unsynced(void **state)
{
	static char first[300], second[300];
	const char *options[] = { first, NULL };

	(void)state;
	snprintf(first, sizeof(first), "%s", fresh_dir(base));
	snprintf(second, sizeof(second), "%s", fresh_dir(base));
	filed_open(&g, options);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	rig_kill(&g);
	g.options = OPTIONS(second);
	assert_int_equal(rig_start(&g), 0);
	rig_status_has(&g, "unsynced_files=0\n");
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -ENOENT);
	remove_tree(first + 4);
}

/* As when its disk has another number by now. */
static void another_directory_in_the_same_place_does(void **state)
{
	char was[310], format[330];

	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x11, 0), 4096);
	fail_data_syncs = 1;
	rig_stop(&g);
	assert_int_equal(told_unsynced(), 4096);
	snprintf(was, sizeof(was), "%s-was", opt_dir + 4);
	assert_int_equal(rename(opt_dir + 4, was) || mkdir(opt_dir + 4, 0777), 0);
	snprintf(format, sizeof(format), "%s/xseg-filed", was);
	assert_int_equal(rig_start(&g), -EBUSY);
	snprintf(was, sizeof(was), "%s/xseg-filed", opt_dir + 4);
	assert_int_equal(rename(format, was), 0);
	assert_int_equal(rig_start(&g), 0);
	assert_int_equal(told_unsynced(), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	snprintf(was, sizeof(was), "%s-was", opt_dir + 4);
	remove_tree(was);
}

/* Root is let in everywhere, so it looks as somebody else; another user takes its own right
 * away. */
static void a_directory_that_may_not_be_written_to_is_refused(void **state)
{
	bool root = geteuid() == 0;
	struct filed_dir dir;
	struct xseg_error err;
	int rc;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	rig_kill(&g);
	assert_int_equal(chmod(opt_dir + 4, root ? 0755 : 0555), 0);
	assert_int_equal(root ? seteuid(65534) : 0, 0);
	rc = filed_dir_open(&dir, opt_dir + 4, false, "", &err);
	assert_int_equal(root ? seteuid(0) : chmod(opt_dir + 4, 0755), 0);
	assert_int_equal(rc, -EACCES);
	assert_non_null(strstr(err.text, "this user"));
	assert_int_equal(rig_start(&g), 0);
}

/* A killed filed had made a file, and its segment is gone: a FUA write to that file is not durable
 * unless the directories on the way are, and no mark says so. */
static void what_a_filed_of_another_segment_has_left_is_synced_before_it_is_used(void **state)
{
	const char *options[] = { opt_dir, NULL };

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(nr_fs_syncs, 0);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	rig_restart(&g);
	assert_int_equal(nr_fs_syncs, 0);	/* the marks say what is not durable */
	rig_kill(&g);
	xseg_peer_close(g.client, XSEG_CLOSE_FREE_ARENA);
	free(g.pages);
	xseg_detach(g.seg);
	filed_open(&g, options);
	assert_int_equal(nr_fs_syncs, 1);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, XSEG_REQ_FUA), 4096);
	rig_restart(&g);
	assert_int_equal(nr_fs_syncs, 1);
}

/* It was made, and then a sync failed, or filed was killed: the next one finds it there. */
static void a_directory_that_was_made_and_not_synced_is_synced_by_the_next(void **state)
{
	char first[300];

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	rig_kill(&g);
	snprintf(first, sizeof(first), "%s", opt_dir);
	g.options = OPTIONS(fresh_dir(base));
	fail_dir_syncs = 1;
	assert_int_equal(rig_start(&g), -EIO);
	assert_int_equal(nr_fs_syncs, 0);
	fail_fs_syncs = 1;
	assert_int_equal(rig_start(&g), -EIO);
	assert_int_equal(rig_start(&g), 0);
	assert_int_equal(nr_fs_syncs, 2);
	remove_tree(first + 4);
}

/* The sync of the format file, of the directory, and of its entry in the one above. */
static void a_directory_that_somebody_else_has_made_is_durable_before_it_is_used(void **state)
{
	const char *dir = fresh_dir(base) + 4;

	(void)state;
	assert_int_equal(mkdir(dir, 0777), 0);
	nr_dir_syncs = 0;
	filed_open(&g, OPTIONS(opt_dir));
	assert_int_equal(nr_dir_syncs, 3);
	rig_restart(&g);
	assert_int_equal(nr_dir_syncs, 3);
}

static void a_directory_that_was_removed_does_not_read_as_zeroes(void **state)
{
	(void)state;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, XSEG_REQ_FUA), 4096);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x11, 0), 4096);
	assert_true(rig_holds(&g, "none", 0, 4096, 0));
	rig_restart(&g);
	remove_tree(opt_dir + 4);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_wait(&g, rig_send(&g, XSEG_OP_READ, "a", 0, 4096, NULL, 0)), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), -EIO);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x22, 0), -EIO);
}

static void a_relative_path_that_leads_elsewhere_is_refused(void **state)
{
	int before = open(".", O_PATH | O_CLOEXEC);
	const char *dir = fresh_dir(base) + 4;

	(void)state;
	assert_int_equal(mkdir(dir, 0777) || chdir(dir), 0);
	filed_open(&g, OPTIONS("dir=objects"));
	rig_kill(&g);
	assert_int_equal(mkdir("elsewhere", 0777) || chdir("elsewhere"), 0);
	assert_int_equal(rig_start(&g), -EBUSY);
	assert_int_equal(access("objects", F_OK), -1);	/* nor is it made there */
	assert_int_equal(mkdir("objects", 0777), 0);
	assert_int_equal(rig_start(&g), -EBUSY);
	assert_int_equal(rmdir("objects"), 0);		/* nothing was put there */
	assert_int_equal(chdir(".."), 0);
	assert_int_equal(rig_start(&g), 0);
	assert_int_equal(fchdir(before), 0);
	close(before);
}

/* As while its disk is not mounted. Another place may be given, and what was copied there. */
static void no_store_is_made_where_one_was_and_is_not(void **state)
{
	static char first[300], away[310], format[320];
	const char *options[] = { first, NULL };
	int fd;

	(void)state;
	snprintf(first, sizeof(first), "%s", fresh_dir(base));
	snprintf(away, sizeof(away), "%s-away", first + 4);
	snprintf(format, sizeof(format), "%s/xseg-filed", first + 4);
	filed_open(&g, options);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	rig_kill(&g);
	assert_int_equal(rename(first + 4, away), 0);
	assert_int_equal(rig_start(&g), -EBUSY);
	assert_int_equal(access(first + 4, F_OK), -1);
	assert_int_equal(mkdir(first + 4, 0777), 0);
	assert_int_equal(rig_start(&g), -EBUSY);
	assert_int_equal(rmdir(first + 4), 0);		/* nothing was put there */
	assert_int_equal(rename(away, first + 4), 0);
	assert_int_equal(rig_start(&g), 0);
	rig_status_has(&g, "unsynced_files=1\n");
	rig_kill(&g);
	remove_tree(first + 4);
	assert_int_equal(mkdir(first + 4, 0777), 0);
	fd = creat(format, 0666);
	assert_int_equal(write(fd, "xseg-filed 1\n", 13), 13);
	close(fd);
	assert_int_equal(rig_start(&g), 0);
	rig_kill(&g);
	g.options = OPTIONS(fresh_dir(base));
	assert_int_equal(rig_start(&g), 0);
	remove_tree(first + 4);
}

/* The same place by another path, whether its directory is not there, or another one is. */
static void however_its_path_is_written(void **state)
{
	static char first[300], other[640];
	static const struct {
		const char *link, *before, *after;
	} ways[] = {
		{ "", "/", "/" }, { "", "//", "" }, { "", "/./", "/." }, { "-link", "/", "" }
	};
	const char *options[] = { other, NULL }, *top = first + 4, *name;
	char away[310], link[310];
	size_t i;

	(void)state;
	snprintf(first, sizeof(first), "%s", fresh_dir(base));
	name = strrchr(first, '/') + 1;
	snprintf(away, sizeof(away), "%s-away", top);
	snprintf(link, sizeof(link), "%s-link", top);
	filed_open(&g, OPTIONS(first));
	rig_kill(&g);
	assert_int_equal(rename(top, away) || symlink(base, link), 0);
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		snprintf(other, sizeof(other), "dir=%s%s%s%s", *ways[i].link ? link : base,
			ways[i].before, name, ways[i].after);
		g.options = options;
		assert_int_equal(rig_start(&g), -EBUSY);
		assert_int_equal(mkdir(top, 0777), 0);
		assert_int_equal(rig_start(&g), -EBUSY);
		assert_int_equal(rmdir(top) || rename(away, top), 0);
		assert_int_equal(rig_start(&g), 0);
		rig_kill(&g);
		assert_int_equal(rename(top, away), 0);
	}
	assert_int_equal(rename(away, top) || rig_start(&g) || unlink(link), 0);
}

static void status_tells_whether_o_direct_is_used(void **state)
{
	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "direct=no"));
	rig_status_has(&g, "direct_in_use=no\n");
	rig_status_has(&g, "align_bytes=1\n");
	rig_status_has(&g, opt_dir);
}

static void a_full_disk_answers_enospc(void **state)
{
	char path[300];
	int i, full = 0;

	(void)state;
	snprintf(path, sizeof(path), "%s/filed-full-%d", base, (int)getpid());
	mkdir(path, 0777);
	if (mount("tmpfs", path, "tmpfs", 0, "size=1m")) {
		rmdir(path);
		print_message("skipped: needs to mount a tmpfs (%s)\n", strerror(errno));
		skip();
	}
	filed_open(&g, OPTIONS(fresh_dir(path)));
	for (i = 0; i < 4; i++)
		full += rig_fill(&g, "a", (uint64_t)i * MIB / 2, MIB / 2, 0x11, 0) == -ENOSPC;
	assert_in_range(full, 2, 3);
	assert_true(rig_holds(&g, "a", 0, MIB / 2, 0x11));
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 0, MIB / 2), MIB / 2);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x22, 0), 4096);
	filed_close(&g);
	umount(path);
	rmdir(path);
}

/* ---- arenas that somebody wrote over ----------------------------------------------------- */

/* A table of four marks in a block of just its size, and what filed says of it. */
static struct filed_mark *marks;

static void keep_error(void *arg, const char *name, int error)
{
	(void)name;
	*(int *)arg = error;
}

static bool wants_all(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return true;
}

static int open_marks(void (*scribble)(void), uint32_t nr)
{
	uint64_t bytes = filed_marks_bytes(4);
	uint8_t *arena = calloc(1, bytes);
	struct filed_files *ff = calloc(1, sizeof(*ff));
	struct xseg_error err = { "" };
	struct filed_dir dir;
	int rc;
	struct filed_asker asker = { wants_all, keep_error, &rc };

	assert_true(arena && ff);
	marks = (struct filed_mark *)(arena + bytes - 4 * sizeof(struct filed_mark));
	assert_int_equal(filed_dir_open(&dir, opt_dir + 4, false, "", &err), 0);
	assert_int_equal(filed_files_open(ff, &dir, "", arena, bytes, 4, &err), 0);
	filed_files_close(ff);
	scribble();
	rc = filed_files_open(ff, &dir, "", arena, bytes, nr, &err);
	if (rc == 0)
		filed_files_sync(ff, &asker);
	else
		assert_true(strlen(err.text) > 0);
	filed_files_close(ff);
	filed_dir_close(&dir);
	free(ff);
	free(arena);
	return rc;
}

static void nothing(void)
{
}

static void a_name_without_a_path(void)
{
	memset(marks[1].name, '%', sizeof(marks[1].name) - 1);
	atomic_store(&marks[1].state, FILED_MARK_USED);
	atomic_store(&marks[1].written.word[0], 1);
}

static void no_name(void)
{
	atomic_store(&marks[1].state, FILED_MARK_USED | FILED_MARK_ENTRY);
}

static void bits_of_a_free_mark(void)
{
	atomic_store(&marks[2].lost.word[3], 5);
	atomic_store(&marks[2].written.word[0], UINT64_MAX);
}

static void marks_that_were_written_over_are_refused_or_cleared(void **state)
{
	(void)state;
	fresh_dir(base);
	assert_int_equal(open_marks(nothing, 4), 0);
	assert_int_equal(open_marks(a_name_without_a_path, 4), -EPROTO);
	assert_int_equal(open_marks(no_name, 4), -EPROTO);
	assert_int_equal(open_marks(bits_of_a_free_mark, 4), 0);
	remove_tree(opt_dir + 4);
}

/* The predecessor was killed when it had its arena and nothing in it. */
static void an_arena_too_small_for_the_table_is_made_anew_when_it_is_blank(void **state)
{
	struct xseg_peer_params params = { .name = "filed", .kind = "filed", .nr_ports = 1 };
	struct xseg_peer *peer;
	uint64_t bytes = 4096;
	struct filed *f;
	void *arena;
	bool fresh;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "files=64"));
	rig_stop(&g);
	assert_int_equal(xseg_peer_open(g.seg, &params, &peer, NULL), 0);
	assert_int_equal(xseg_arena_free(peer, NULL), 0);
	assert_int_equal(xseg_arena_open(peer, &bytes, &arena, &fresh, NULL), 0);
	assert_true(fresh);
	xseg_peer_close(peer, XSEG_CLOSE_ABANDON);
	assert_int_equal(rig_start(&g), 0);
	f = (struct filed *)g.peer;
	assert_int_equal(f->files.nr, 64);
	rig_fill_many(&g, 70);
	rig_many_hold(&g, 70);
}

/* ---- descriptors ------------------------------------------------------------------------- */

static struct rlimit limit_was;

static void limit_files(rlim_t nr)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit_was), 0);
	limit = (struct rlimit){ .rlim_cur = nr, .rlim_max = limit_was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void each_filed_of_a_process_may_open_its_files(void **state)
{
	static struct rig other;
	const char *files = is_long() ? "files=150" : "files=80";
	uint32_t nr = is_long() ? 150 : 80;
	char first[300];

	(void)state;
	limit_files(64);
	snprintf(first, sizeof(first), "%s", fresh_dir(base));
	filed_open(&other, OPTIONS(first, files));
	filed_open(&g, OPTIONS(fresh_dir(base), files));
	rig_fill_many(&other, nr);
	rig_fill_many(&g, nr);
	rig_close(&other);
	remove_tree(first + 4);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit_was), 0);
}

/* It has as many slots as its predecessor, who has left marks in them. */
static void a_filed_that_is_to_open_fewer_files_may_open_those_that_it_has_slots_for(void **state)
{
	uint32_t nr = in_short(300, 3);

	(void)state;
	limit_files(64);
	filed_open(&g, OPTIONS(fresh_dir(base), is_long() ? "files=300" : "files=100"));
	rig_fill_many(&g, nr);
	rig_kill(&g);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit_was), 0);
	limit_files(64);
	g.options = OPTIONS(opt_dir, "files=16");
	assert_int_equal(rig_start(&g), 0);
	rig_many_hold(&g, nr);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit_was), 0);
}

static void find_base(void)
{
	const char *build = getenv("BUILD");
	char *whole = realpath(build && !access(build, W_OK) ? build
			       : !access("build", W_OK)      ? "build"
							     : "/tmp",
			       NULL);

	assert_non_null(whole);
	snprintf(base, sizeof(base), "%s", whole);
	free(whole);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define O(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(objects_have_no_largest_size),
		T(a_name_whose_file_would_have_too_long_a_name_is_refused),
		T(a_name_whose_file_has_the_longest_name_there_is_can_be_used),
		O(random_ops_without_o_direct_agree_with_an_array),
		O(random_ops_on_tmpfs_agree_with_an_array),
		O(more_requests_than_iodepth_and_slots_are_served),
		T(a_discard_without_holes_does_not_cut_off_what_is_written_behind_it),
		T(a_transfer_that_comes_no_block_further_is_an_error),
		T(what_the_kernel_refuses_is_answered_at_once),
		T(what_has_no_data_left_goes_when_it_is_synced),
		O(what_has_no_data_left_goes_when_its_file_is_closed),
		T(a_copy_of_a_hole_is_a_hole),
		T(the_files_of_two_objects_that_were_swapped_are_not_served),
		T(a_file_that_was_cut_short_is_not_served),
		T(a_file_with_another_attribute_is_not_served),
		T(the_right_file_that_is_put_back_is_served),
		T(a_file_without_attribute_is_served_and_gets_it_at_its_first_change),
		O(a_store_without_attributes_serves_and_says_so),
		T(flush_syncs_what_was_written_and_nothing_else),
		T(a_successor_flushes_what_the_dead_one_wrote),
		T(an_orderly_stop_syncs),
		T(also_what_was_written_since_a_flush),
		O(a_file_is_synced_before_it_is_closed),
		O(a_file_that_needs_no_sync_is_closed_rather_than_one_that_does),
		T(fua_is_answered_after_the_sync),
		T(a_write_during_a_sync_is_synced_by_the_next),
		T(a_listing_does_not_wait_for_workers_that_all_sync),
		T(after_a_failed_sync_flush_fails_until_all_is_overwritten),
		T(a_fua_write_that_another_one_s_sync_has_lost_fails),
		T(what_a_volume_has_lost_fails_its_own_flush_and_that_of_all),
		T(a_failed_sync_of_a_rewrite_loses_it_again),
		T(a_directory_that_cannot_be_synced_fails_flush_until_it_can),
		O(files_with_lost_data_keep_their_slots),
		T(what_a_sync_failed_for_is_known_also_while_there_is_no_filed),
		T(a_file_that_is_gone_with_what_was_not_synced_has_lost_it),
		T(what_a_sync_has_lost_is_lost_when_its_file_is_gone),
		T(another_directory_in_the_same_place_does),
		O(a_directory_that_may_not_be_written_to_is_refused),
		O(who_needs_a_slot_does_not_get_the_error_of_a_file_that_cannot_be_synced),
		T(a_second_filed_on_a_directory_is_refused),
		cmocka_unit_test(foreign_directories_are_refused),
		cmocka_unit_test(a_directory_of_objects_whose_format_is_lost_is_not_called_foreign),
		O(another_directory_does_not_inherit_what_was_unsynced),
		O(what_a_filed_of_another_segment_has_left_is_synced_before_it_is_used),
		O(a_directory_that_was_made_and_not_synced_is_synced_by_the_next),
		T(a_directory_that_was_removed_does_not_read_as_zeroes),
		O(a_directory_that_somebody_else_has_made_is_durable_before_it_is_used),
		O(a_relative_path_that_leads_elsewhere_is_refused),
		O(no_store_is_made_where_one_was_and_is_not),
		O(however_its_path_is_written),
		O(status_tells_whether_o_direct_is_used),
		cmocka_unit_test(a_full_disk_answers_enospc),
		cmocka_unit_test(marks_that_were_written_over_are_refused_or_cleared),
		O(each_filed_of_a_process_may_open_its_files),
		O(a_filed_that_is_to_open_fewer_files_may_open_those_that_it_has_slots_for),
		O(an_arena_too_small_for_the_table_is_made_anew_when_it_is_blank),
	};

	find_base();
	return contract_run(&contract) + cmocka_run_group_tests(tests, NULL, NULL);
}
