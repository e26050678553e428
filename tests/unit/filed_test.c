/* filed_test - filed through peer.h, one client and one store in one thread, on files of this
 * machine; and its parts alone.
 *
 * Syncs go through this file's fdatasync(), fsync() and close(), which count, and fail when a
 * test wants them to.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "peers/filed/filed.h"
#include "tests/unit/blocker_rig.h"

#define KIB 1024u
#define MIB (1024u * 1024)

#define OPTIONS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- the system calls -------------------------------------------------------------------- */

static _Atomic int nr_data_syncs, nr_dir_syncs, fail_data_syncs, fail_dir_syncs, slow_data_syncs;

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
	struct timespec while_ns = { 0, 20000000 };

	if (slow_data_syncs)
		nanosleep(&while_ns, NULL);
	return sync_fd(SYS_fdatasync, fd, &nr_data_syncs, &fail_data_syncs);
}

int fsync(int fd)
{
	return sync_fd(SYS_fsync, fd, &nr_dir_syncs, &fail_dir_syncs);
}

/* ---- directories ------------------------------------------------------------------------- */

static char base[200];				/* of all directories of the tests */
static char opt_dir[300];			/* "dir=..." of the test that runs */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* A directory that is not there yet. */
static const char *fresh_dir(const char *below)
{
	static int nr;

	snprintf(opt_dir, sizeof(opt_dir), "dir=%s/filed-test-%d-%d", below, (int)getpid(), nr++);
	remove_tree(opt_dir + 4);
	nr_data_syncs = nr_dir_syncs = fail_data_syncs = fail_dir_syncs = slow_data_syncs = 0;
	return opt_dir;
}

static void filed_open(struct rig *g, const char *const *options)
{
	rig_open(g, &filed_class, options, true);
}

static void filed_close(struct rig *g)
{
	rig_close(g);
	remove_tree(opt_dir + 4);
}

static void status_is(struct rig *g, const char *line)
{
	char text[2000];

	assert_true(rig_admin(g, "status", text, sizeof(text)) > 0);
	if (!strstr(text, line))
		print_message("%s is not in\n%s", line, text);
	assert_non_null(strstr(text, line));
}

/* ---- data -------------------------------------------------------------------------------- */

static void holes_ends_and_missing_objects_read_as_zeroes(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_true(rig_holds(&g, "none", 0, 128 * KIB, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "none", 0, 0), -ENOENT);
	assert_int_equal(rig_fill(&g, "a", 64 * KIB, 4 * KIB, 0x11, 0), 4 * KIB);
	assert_true(rig_holds(&g, "a", 0, 64 * KIB, 0));
	assert_true(rig_holds(&g, "a", 64 * KIB, 4 * KIB, 0x11));
	assert_true(rig_holds(&g, "a", 68 * KIB, 60 * KIB, 0));
	assert_true(rig_holds(&g, "a", 1 * MIB, 4 * KIB, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 68 * KIB);
	assert_int_equal(rig_fill(&g, "big", UINT64_C(5) << 30, 4 * KIB, 0x22, 0), 4 * KIB);
	assert_true(rig_holds(&g, "big", UINT64_C(5) << 30, 4 * KIB, 0x22));
	filed_close(&g);
}

static void reads_over_an_odd_end_are_filled_with_zeroes(void **state)
{
	uint8_t buf[64 * KIB];
	struct rig g;
	uint32_t i;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_fill(&g, "a", 0, 5001, 0x11, 0), 5001);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 5001);
	assert_int_equal(rig_read(&g, "a", 0, buf, sizeof(buf)), sizeof(buf));
	for (i = 0; i < sizeof(buf); i++)
		assert_int_equal(buf[i], i < 5001 ? 0x11 : 0);
	assert_true(rig_holds(&g, "a", 4000, 1001, 0x11));
	assert_true(rig_holds(&g, "a", 5001, 30000, 0));
	filed_close(&g);
}

static void odd_writes_keep_their_neighbours_and_the_end(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_fill(&g, "a", 0, 20000, 0x11, 0), 20000);
	assert_int_equal(rig_fill(&g, "a", 100, 1, 0x22, 0), 1);
	assert_int_equal(rig_fill(&g, "a", 4095, 8194, 0x33, 0), 8194);
	assert_int_equal(rig_fill(&g, "a", 511, 514, 0x44, 0), 514);
	assert_true(rig_holds(&g, "a", 0, 100, 0x11));
	assert_true(rig_holds(&g, "a", 100, 1, 0x22));
	assert_true(rig_holds(&g, "a", 101, 410, 0x11));
	assert_true(rig_holds(&g, "a", 511, 514, 0x44));
	assert_true(rig_holds(&g, "a", 1025, 3070, 0x11));
	assert_true(rig_holds(&g, "a", 4095, 8194, 0x33));
	assert_true(rig_holds(&g, "a", 12289, 20000 - 12289, 0x11));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 20000);
	assert_int_equal(rig_fill(&g, "a", 3 * MIB + 17, MIB, 0x55, 0), MIB);
	assert_true(rig_holds(&g, "a", 3 * MIB + 17, MIB, 0x55));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 4 * MIB + 17);
	filed_close(&g);
}

static void discard_and_write_zeroes_read_as_zeroes(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_fill(&g, "a", 0, 64 * KIB, 0x11, 0), 64 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 1000, 30000), 30000);
	assert_true(rig_holds(&g, "a", 0, 1000, 0x11));
	assert_true(rig_holds(&g, "a", 1000, 30000, 0));
	assert_true(rig_holds(&g, "a", 31000, 64 * KIB - 31000, 0x11));
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "a", 60 * KIB, 100 * KIB), 100 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 64 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_WRITE_ZEROES, "a", 56 * KIB, 12 * KIB), 12 * KIB);
	assert_true(rig_holds(&g, "a", 56 * KIB, 12 * KIB, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 68 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_DISCARD, "none", 0, 4096), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "none", 0, 0), -ENOENT);
	filed_close(&g);
}

static void a_deleted_object_is_gone(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), -ENOENT);
	assert_int_equal(rig_fill(&g, "a", 0, 64 * KIB, 0x11, 0), 64 * KIB);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), -ENOENT);
	assert_true(rig_holds(&g, "a", 0, 64 * KIB, 0));
	assert_int_equal(rig_fill(&g, "a", 4096, 4096, 0x22, 0), 4096);
	assert_true(rig_holds(&g, "a", 0, 4096, 0));
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), 8192);
	filed_close(&g);
}

static void copy_takes_the_same_range_of_another_object(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_fill(&g, "a", 4 * KIB, 8 * KIB, 0x11, 0), 8 * KIB);
	assert_int_equal(rig_fill(&g, "b", 0, 64 * KIB, 0x22, 0), 64 * KIB);
	assert_int_equal(rig_copy(&g, "a", "b", 2000, 20000), 20000);
	assert_true(rig_holds(&g, "b", 0, 2000, 0x22));
	assert_true(rig_holds(&g, "b", 2000, 2096, 0));
	assert_true(rig_holds(&g, "b", 4096, 8192, 0x11));
	assert_true(rig_holds(&g, "b", 12288, 22000 - 12288, 0));
	assert_true(rig_holds(&g, "b", 22000, 64 * KIB - 22000, 0x22));
	assert_int_equal(rig_copy(&g, "none", "c", 0, 4096), -ENOENT);
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "c", 0, 0), -ENOENT);
	assert_int_equal(rig_copy(&g, "", "b", 0, 4096), -EOPNOTSUPP);
	assert_int_equal(rig_copy(&g, "b", "b", 0, 4096), 4096);
	filed_close(&g);
}

static void any_name_is_one_file(void **state)
{
	static const char *const names[] = { "a/b", "../x", ".", "..", ".hidden", "%41", "A", "a b",
		"\xc3\xa4", "xseg-filed", "a:b_c-d" };
	struct rig g;
	uint32_t i;
	char many[128];

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(rig_fill(&g, names[i], 0, 512, (uint8_t)(i + 1), 0), 512);
	rig_restart(&g);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(rig_holds(&g, names[i], 0, 512, (uint8_t)(i + 1)));
	memset(many, '/', 127);
	many[127] = '\0';
	assert_int_equal(rig_fill(&g, many, 0, 512, 1, 0), -ENAMETOOLONG);
	memset(many, 'n', 127);
	assert_int_equal(rig_fill(&g, many, 0, 512, 1, 0), 512);
	assert_int_equal(rig_fill(&g, "", 0, 512, 1, 0), -EPROTO);
	filed_close(&g);
}

/* Every op against a plain array, aligned and not, with kills in between; the seed is printed. */
static void random_ops_on(const char *below, const char *direct)
{
	static uint8_t model[3][256 * KIB];
	const char *names[] = { "x", "y", "z" };
	unsigned seed = (unsigned)time(NULL), i, o, p, off, len;
	uint8_t *buf = malloc(256 * KIB);
	struct rig g;

	print_message("seed %u\n", seed);
	memset(model, 0, sizeof(model));
	filed_open(&g, OPTIONS(fresh_dir(below), direct, "files=16"));
	for (i = 0; i < 1000; i++) {
		o = (unsigned)rand_r(&seed) % 3;
		p = (unsigned)rand_r(&seed) % 3;
		off = (unsigned)rand_r(&seed) % (200 * KIB);
		len = 1 + (unsigned)rand_r(&seed) % (56 * KIB);
		if (rand_r(&seed) % 2) {
			off &= ~511u;
			len = (len + 511) & ~511u;
		}
		switch (rand_r(&seed) % 6) {
		case 0:
		case 1:
			memset(buf, (int)(i & 0xff), len);
			assert_int_equal(rig_write(&g, names[o], off, buf, len, 0), len);
			memcpy(model[o] + off, buf, len);
			break;
		case 2:
			assert_int_equal(rig_op(&g, i & 1 ? XSEG_OP_DISCARD : XSEG_OP_WRITE_ZEROES,
						 names[o], off, len),
				len);
			memset(model[o] + off, 0, len);
			break;
		case 3:
			if (rig_copy(&g, names[p], names[o], off, len) == (int64_t)len)
				memmove(model[o] + off, model[p] + off, len);
			break;
		case 4:
			if (rand_r(&seed) % 8 == 0) {
				rig_op(&g, XSEG_OP_DELETE, names[o], 0, 0);
				memset(model[o], 0, sizeof(model[o]));
			} else if (rand_r(&seed) % 8 == 0) {
				rig_restart(&g);
			} else if (rand_r(&seed) % 8 == 0) {
				assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
			}
			break;
		default:
			assert_int_equal(rig_read(&g, names[o], off, buf, len), len);
			assert_memory_equal(buf, model[o] + off, len);
		}
	}
	free(buf);
	filed_close(&g);
}

static void random_ops_agree_with_an_array(void **state)
{
	(void)state;
	random_ops_on(base, "direct=yes");
}

static void random_ops_without_o_direct_agree_with_an_array(void **state)
{
	(void)state;
	random_ops_on(base, "direct=no");
}

static void random_ops_on_tmpfs_agree_with_an_array(void **state)
{
	(void)state;
	random_ops_on("/dev/shm", "direct=yes");
}

/* ---- order ------------------------------------------------------------------------------- */

static void overlapping_requests_go_in_order_of_arrival(void **state)
{
	struct rig_io *io[12], *read;
	uint8_t data[8192], got[8192];
	struct rig g;
	uint32_t i;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "iodepth=4"));
	for (i = 0; i < 12; i++) {
		memset(data, (int)i + 1, sizeof(data));
		io[i] = rig_send(&g, XSEG_OP_WRITE, "a", i * 100, 8192 - i * 200, data, 0);
	}
	read = rig_send(&g, XSEG_OP_READ, "a", 0, 8192, NULL, 0);
	for (i = 0; i < 12; i++)
		assert_int_equal(rig_wait(&g, io[i]), 8192 - i * 200);
	assert_int_equal(rig_wait(&g, read), 8192);
	rig_data(&g, read, got, sizeof(got));
	for (i = 0; i < 4096; i++)
		assert_int_equal(got[i], i / 100 < 11 ? i / 100 + 1 : 12);
	filed_close(&g);
}

static void more_requests_than_iodepth_and_slots_are_served(void **state)
{
	struct rig_io *io[30];
	uint8_t data[4096];
	char name[16];
	uint32_t i, k;
	struct rig g;

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
	for (i = 0; i < 75; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		assert_true(rig_holds(&g, name, 0, 4096, (uint8_t)(i + 1)));
	}
	filed_close(&g);
}

static void requests_of_a_dead_predecessor_are_done_again(void **state)
{
	struct rig_io *write, *gone;
	uint8_t data[4096];
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	memset(data, 0x11, sizeof(data));
	write = rig_send(&g, XSEG_OP_WRITE, "a", 0, 4096, data, 0);
	gone = rig_send(&g, XSEG_OP_DELETE, "none", 0, 0, NULL, 0);
	peer_port_step_request(&g.peer->ports[0]);
	peer_port_step_request(&g.peer->ports[0]);
	rig_restart(&g);
	assert_int_equal(rig_wait(&g, write), 4096);
	assert_int_equal(rig_wait(&g, gone), 0);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
	filed_close(&g);
}

/* ---- syncs ------------------------------------------------------------------------------- */

static void flush_syncs_what_was_written_and_nothing_else(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x11, 0), 4096);
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
	nr_data_syncs = nr_dir_syncs = 0;
	status_is(&g, "unsynced_files=2\n");
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(nr_data_syncs, 2);
	assert_int_equal(nr_dir_syncs, 6);
	status_is(&g, "unsynced_files=0\n");
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
	filed_close(&g);
}

static void a_successor_flushes_what_the_dead_one_wrote(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(rig_fill(&g, "b", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(rig_fill(&g, "c", 0, 4096, 0x11, 0), 4096);
	nr_data_syncs = nr_dir_syncs = 0;
	rig_restart(&g);
	assert_int_equal(nr_data_syncs, 0);
	status_is(&g, "unsynced_files=2\n");
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	assert_int_equal(nr_data_syncs, 2);
	assert_int_equal(nr_dir_syncs, 3);
	status_is(&g, "unsynced_files=0\n");
	filed_close(&g);
}

static void an_orderly_stop_syncs(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	assert_int_equal(nr_data_syncs, 0);
	rig_stop(&g);
	assert_int_equal(nr_data_syncs, 1);
	assert_int_equal(rig_start(&g), 0);
	status_is(&g, "unsynced_files=0\n");
	assert_true(rig_holds(&g, "a", 0, 4096, 0x11));
	filed_close(&g);
}

static void a_file_is_synced_before_it_is_closed(void **state)
{
	char name[16];
	struct rig g;
	int i;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "files=16"));
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		assert_int_equal(rig_fill(&g, name, 0, 4096, (uint8_t)i, 0), 4096);
	}
	assert_int_equal(nr_data_syncs, 24);
	status_is(&g, "open_files=16\n");
	status_is(&g, "unsynced_files=16\n");
	filed_close(&g);
}

static void fua_is_answered_after_the_sync(void **state)
{
	struct rig_io *io[8];
	uint8_t data[4096] = { 1 };
	struct rig g;
	int i;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	nr_dir_syncs = 0;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, XSEG_REQ_FUA), 4096);
	assert_int_equal(nr_data_syncs, 1);
	assert_int_equal(nr_dir_syncs, 3);
	status_is(&g, "unsynced_files=0\n");
	slow_data_syncs = 1;
	for (i = 0; i < 8; i++)
		io[i] = rig_send(&g, XSEG_OP_WRITE, "a", (uint64_t)i * 4096, 4096, data,
			XSEG_REQ_FUA);
	for (i = 0; i < 8; i++)
		assert_int_equal(rig_wait(&g, io[i]), 4096);
	assert_in_range(nr_data_syncs, 2, 8);
	fail_data_syncs = 1;
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, XSEG_REQ_FUA), -EIO);
	filed_close(&g);
}

static void a_write_during_a_sync_is_synced_by_the_next(void **state)
{
	struct rig_io *flush;
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	slow_data_syncs = 1;
	flush = rig_send(&g, XSEG_OP_FLUSH, "", 0, 0, NULL, 0);
	rig_step(&g);
	usleep(5000);
	assert_int_equal(rig_fill(&g, "a", 4096, 4096, 0x22, 0), 4096);
	assert_int_equal(rig_wait(&g, flush), 0);
	status_is(&g, "unsynced_files=1\n");
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	status_is(&g, "unsynced_files=0\n");
	assert_int_equal(nr_data_syncs, 2);
	filed_close(&g);
}

static void after_a_failed_sync_flush_fails_until_all_is_overwritten(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_fill(&g, "a", 0, 16384, 0x11, 0), 16384);
	fail_data_syncs = 1;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	status_is(&g, "sync_errors=1\n");
	status_is(&g, "lost_files=1\n");
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	rig_restart(&g);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_fill(&g, "a", 0, 8192, 0x22, 0), 8192);
	assert_int_equal(rig_fill(&g, "a", 8192, 4608, 0x22, 0), 4608);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_fill(&g, "a", 12288, 4096, 0x22, 0), 4096);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	status_is(&g, "lost_files=0\n");
	filed_close(&g);
}

static void a_failed_sync_of_a_rewrite_loses_it_again(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	fail_data_syncs = 1;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	fail_data_syncs = 1;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "a", 0, 0), 0);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	filed_close(&g);
}

static void a_directory_that_cannot_be_synced_fails_flush_until_it_can(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	fail_dir_syncs = 2;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
	filed_close(&g);
}

static void files_with_lost_data_keep_their_slots(void **state)
{
	char name[16];
	struct rig g;
	int i;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "files=16"));
	for (i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		assert_int_equal(rig_fill(&g, name, 0, 4096, 1, 0), 4096);
	}
	fail_data_syncs = 16;
	assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), -EIO);
	status_is(&g, "lost_files=16\n");
	assert_int_equal(rig_fill(&g, "one more", 0, 4096, 1, 0), -EIO);
	assert_int_equal(rig_op(&g, XSEG_OP_DELETE, "o3", 0, 0), 0);
	assert_int_equal(rig_fill(&g, "one more", 0, 4096, 1, 0), 4096);
	filed_close(&g);
}

/* ---- the directory ----------------------------------------------------------------------- */

static void a_second_filed_on_a_directory_is_refused(void **state)
{
	struct filed_dir second;
	struct xseg_error err;
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base)));
	assert_int_equal(filed_dir_open(&second, opt_dir + 4, true, &err), -EBUSY);
	assert_non_null(strstr(err.text, "in use by another filed"));
	filed_close(&g);
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
	assert_int_equal(filed_dir_open(&d, path, true, &err), -ENOENT);
	assert_int_equal(mkdir(dir, 0777), 0);
	snprintf(path, sizeof(path), "%s/letter", dir);
	fd = creat(path, 0666);
	assert_true(fd >= 0);
	assert_int_equal(filed_dir_open(&d, dir, true, &err), -ENOTEMPTY);
	assert_int_equal(filed_dir_open(&d, path, true, &err), -ENOTDIR);
	unlink(path);
	close(fd);
	snprintf(path, sizeof(path), "%s/xseg-filed", dir);
	fd = creat(path, 0666);
	assert_int_equal(filed_dir_open(&d, dir, true, &err),
		0); /* one that died before it wrote the version */
	filed_dir_close(&d);
	close(fd);
	fd = creat(path, 0666);
	assert_int_equal(write(fd, "xseg-filed 9\n", 13), 13);
	close(fd);
	assert_int_equal(filed_dir_open(&d, dir, true, &err), -EPROTO);
	remove_tree(dir);
}

static void another_directory_does_not_inherit_what_was_unsynced(void **state)
{
	static char first[300], second[300];
	const char *options[] = { first, NULL };
	struct rig g;

	(void)state;
	snprintf(first, sizeof(first), "%s", fresh_dir(base));
	snprintf(second, sizeof(second), "%s", fresh_dir(base));
	filed_open(&g, options);
	assert_int_equal(rig_fill(&g, "a", 0, 4096, 0x11, 0), 4096);
	rig_kill(&g);
	g.options = OPTIONS(second);
	assert_int_equal(rig_start(&g), 0);
	status_is(&g, "unsynced_files=0\n");
	assert_int_equal(rig_op(&g, XSEG_OP_INFO, "a", 0, 0), -ENOENT);
	filed_close(&g);
	remove_tree(first + 4);
}

static void status_tells_whether_o_direct_is_used(void **state)
{
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "direct=no"));
	status_is(&g, "direct_in_use=no\n");
	status_is(&g, "align_bytes=1\n");
	status_is(&g, opt_dir);
	filed_close(&g);
}

static void a_full_disk_answers_enospc(void **state)
{
	char path[300];
	struct rig g;
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

/* ---- threads ----------------------------------------------------------------------------- */

static void ports_on_threads_do_not_tear_blocks(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
	struct rig_io *io[16] = { 0 };
	uint8_t data[4096], got[4096];
	unsigned seed = 1, i, k;
	struct rig g;

	(void)state;
	filed_open(&g, OPTIONS(fresh_dir(base), "threads=3", "files=16"));
	rig_threads_start(&g);
	for (i = 0; i < 1000; i++) {
		if (io[i % 16] && rig_wait(&g, io[i % 16]) == 4096 &&
			io[i % 16]->r->op == XSEG_OP_READ) {
			rig_data(&g, io[i % 16], got, sizeof(got));
			for (k = 1; k < sizeof(got); k++)
				assert_int_equal(got[k], got[0]);
		}
		memset(data, (int)(i & 0xff), sizeof(data));
		if (i % 50 == 0)
			rig_copy(&g, names[i / 50 % 6], names[i / 300 % 6], 0, 8192);
		if (i % 70 == 0)
			rig_op(&g, XSEG_OP_DELETE, names[i / 70 % 6], 0, 0);
		if (i % 90 == 0)
			assert_int_equal(rig_op(&g, XSEG_OP_FLUSH, "", 0, 0), 0);
		k = (unsigned)rand_r(&seed);
		io[i % 16] = rig_send(&g, k & 1 ? XSEG_OP_WRITE : XSEG_OP_READ, names[k / 8 % 6],
			k & 2 ? 4096 : 0, 4096, k & 1 ? data : NULL, k % 64 ? 0 : XSEG_REQ_FUA);
	}
	for (i = 0; i < 16; i++)
		rig_wait(&g, io[i]);
	rig_threads_stop(&g);
	filed_close(&g);
}

static int find_base(void **state)
{
	const char *build = getenv("BUILD");

	(void)state;
	snprintf(base, sizeof(base), "%s",
		build && !access(build, W_OK) ? build
		: !access("build", W_OK)      ? "build"
					      : "/tmp");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holes_ends_and_missing_objects_read_as_zeroes),
		cmocka_unit_test(reads_over_an_odd_end_are_filled_with_zeroes),
		cmocka_unit_test(odd_writes_keep_their_neighbours_and_the_end),
		cmocka_unit_test(discard_and_write_zeroes_read_as_zeroes),
		cmocka_unit_test(a_deleted_object_is_gone),
		cmocka_unit_test(copy_takes_the_same_range_of_another_object),
		cmocka_unit_test(any_name_is_one_file),
		cmocka_unit_test(random_ops_agree_with_an_array),
		cmocka_unit_test(random_ops_without_o_direct_agree_with_an_array),
		cmocka_unit_test(random_ops_on_tmpfs_agree_with_an_array),
		cmocka_unit_test(overlapping_requests_go_in_order_of_arrival),
		cmocka_unit_test(more_requests_than_iodepth_and_slots_are_served),
		cmocka_unit_test(requests_of_a_dead_predecessor_are_done_again),
		cmocka_unit_test(flush_syncs_what_was_written_and_nothing_else),
		cmocka_unit_test(a_successor_flushes_what_the_dead_one_wrote),
		cmocka_unit_test(an_orderly_stop_syncs),
		cmocka_unit_test(a_file_is_synced_before_it_is_closed),
		cmocka_unit_test(fua_is_answered_after_the_sync),
		cmocka_unit_test(a_write_during_a_sync_is_synced_by_the_next),
		cmocka_unit_test(after_a_failed_sync_flush_fails_until_all_is_overwritten),
		cmocka_unit_test(a_failed_sync_of_a_rewrite_loses_it_again),
		cmocka_unit_test(a_directory_that_cannot_be_synced_fails_flush_until_it_can),
		cmocka_unit_test(files_with_lost_data_keep_their_slots),
		cmocka_unit_test(a_second_filed_on_a_directory_is_refused),
		cmocka_unit_test(foreign_directories_are_refused),
		cmocka_unit_test(another_directory_does_not_inherit_what_was_unsynced),
		cmocka_unit_test(status_tells_whether_o_direct_is_used),
		cmocka_unit_test(a_full_disk_answers_enospc),
		cmocka_unit_test(ports_on_threads_do_not_tear_blocks),
	};

	return cmocka_run_group_tests(tests, find_base, NULL);
}
