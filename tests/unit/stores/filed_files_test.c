/* filed_files_test - the data that a failed sync takes with it. A kernel that could not write a
 * page may drop it, and says so once. The same holds for data that was written while that sync was
 * in flight. And a table that cannot be opened.
 *
 * fdatasync() is this program's own: it does the test's work meanwhile, and returns the test's
 * error.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "peers/filed/filed_files.h"
#include "tests/rig/tree.h"

#define NR_FILES 4u
#define PIECE	 ((uint64_t)FILED_MARK_PIECE)

static struct filed_dir dir;
static struct filed_files files;
static struct filed_file *file;
static char path[64];
static void *arena;

static void (*meanwhile)(void);
static int sync_error;

int fdatasync(int fd)
{
	assert_true(fd >= 0);
	if (meanwhile)
		meanwhile();
	errno = sync_error;
	return sync_error ? -1 : 0;
}

static int up(void **state)
{
	struct xseg_error err;
	uint64_t bytes = filed_marks_bytes(NR_FILES);
	int fd;

	(void)state;
	meanwhile = NULL;
	sync_error = 0;
	snprintf(path, sizeof(path), "/tmp/filed_files_test.XXXXXX");
	assert_non_null(mkdtemp(path));
	arena = calloc(1, bytes);
	assert_non_null(arena);
	assert_int_equal(filed_dir_open(&dir, path, false, "", &err), 0);
	assert_int_equal(filed_files_open(&files, &dir, "", arena, bytes, NR_FILES, &err), 0);
	assert_int_equal(filed_file_get(&files, 1, "a", FILED_MAKE, &file, &fd), 0);
	return 0;
}

static int down(void **state)
{
	(void)state;
	assert_true(filed_file_put(&files, file));
	filed_files_close(&files);
	filed_dir_close(&dir);
	free(arena);
	remove_tree(path);
	return 0;
}

/* Writes that piece whole. */
static void write_piece(uint64_t piece)
{
	struct filed_change c;

	filed_change_begin(&files, &c, file, piece * PIECE, (piece + 1) * PIECE);
	filed_change_end(&files, &c, true);
}

static void write_second(void)
{
	write_piece(1);
}

static struct filed_change slow;

static void begin_slow(void)
{
	filed_change_begin(&files, &slow, file, PIECE, 2 * PIECE);
}

static void keep_error(void *arg, const char *name, int error)
{
	int *kept = arg;

	assert_string_equal(name, "a");
	*kept = error;
}

static bool wants_all(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return true;
}

static int sync_all(void)
{
	int error = 0;
	struct filed_asker asker = { wants_all, keep_error, &error };

	filed_files_sync(&files, &asker);
	return error;
}

static void fails_once(void (*during)(void))
{
	write_piece(0);
	meanwhile = during;
	sync_error = EIO;
	assert_int_equal(sync_all(), -EIO);
	meanwhile = NULL;
	sync_error = 0;
}

static void lost_until_written_again(uint64_t piece)
{
	assert_int_equal(sync_all(), -EIO);
	write_piece(piece);
	assert_int_equal(sync_all(), 0);
}

static void what_it_covered_is_lost_until_it_is_written_again(void **state)
{
	(void)state;
	fails_once(NULL);
	lost_until_written_again(0);
}

static void so_is_what_was_written_meanwhile(void **state)
{
	(void)state;
	fails_once(write_second);
	write_piece(0);
	lost_until_written_again(1);
}

/* The kernel may have had it before the sync failed, and filed hears of it later. */
static void a_write_under_way_when_it_fails_does_not_count_as_written_again(void **state)
{
	(void)state;
	fails_once(begin_slow);
	filed_change_end(&files, &slow, true);
	write_piece(0);
	lost_until_written_again(1);
}

static void what_is_written_while_a_good_sync_goes_on_is_not_synced_and_not_lost(void **state)
{
	(void)state;
	write_piece(0);
	meanwhile = write_second;
	assert_int_equal(sync_all(), 0);
	meanwhile = NULL;
	assert_true(filed_mark_unsynced(&files.marks[0]) && !filed_mark_lost(&files.marks[0]));
	assert_int_equal(sync_all(), 0);
	assert_false(filed_mark_unsynced(&files.marks[0]));
}

/* Its file could not be opened. */
static void a_sync_that_was_not_tried_changes_nothing(void **state)
{
	static struct filed_mark m;
	struct filed_sync s;

	(void)state;
	filed_mark_name(&m, "a");
	filed_mark_write(&m, 0, PIECE);
	filed_mark_sync_begin(&m, &s);
	filed_mark_sync_end(&m, &s, FILED_DATA_LOST, true);
	filed_mark_write(&m, 0, PIECE);
	filed_mark_wrote(&m, 0, PIECE);
	filed_mark_sync_begin(&m, &s);
	filed_mark_sync_end(&m, &s, FILED_DATA_UNTRIED, true);
	assert_true(filed_mark_lost(&m) && filed_mark_unsynced(&m));
	filed_mark_sync_begin(&m, &s);
	filed_mark_sync_end(&m, &s, FILED_DATA_SYNCED, true);
	assert_false(filed_mark_lost(&m) || filed_mark_unsynced(&m));
}

/* Its second mark has no name; slots are taken over from the last to the first. */
static void a_table_of_damaged_marks_closes_nothing_that_it_did_not_open(void **state)
{
	struct filed_mark *marks = NULL;
	struct filed_files other;
	struct xseg_error err;
	struct stat st;
	uint32_t nr = NR_FILES;
	void *damaged = calloc(1, filed_marks_bytes(nr));

	(void)state;
	assert_non_null(damaged);
	assert_int_equal(fstat(dir.fd, &st), 0);
	assert_int_equal(
		filed_marks_open(damaged, filed_marks_bytes(nr), &st, "", &nr, &marks, &err), 0);
	filed_mark_name(&marks[1], "b");
	filed_mark_write(&marks[1], 0, PIECE);
	marks[1].name[0] = '\0';
	assert_true(fcntl(0, F_GETFD) >= 0 || open("/dev/null", O_RDONLY) == 0);
	assert_int_equal(
		filed_files_open(&other, &dir, "", damaged, filed_marks_bytes(nr), nr, &err),
		-EPROTO);
	assert_true(fcntl(0, F_GETFD) >= 0);
	free(damaged);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, up, down)
	const struct CMUnitTest tests[] = {
		T(what_it_covered_is_lost_until_it_is_written_again),
		T(so_is_what_was_written_meanwhile),
		T(a_write_under_way_when_it_fails_does_not_count_as_written_again),
		T(what_is_written_while_a_good_sync_goes_on_is_not_synced_and_not_lost),
		T(a_sync_that_was_not_tried_changes_nothing),
		T(a_table_of_damaged_marks_closes_nothing_that_it_did_not_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
