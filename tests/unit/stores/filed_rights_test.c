/* filed_rights_test - which users may read files that filed makes, and files that an older one has
 * made.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "peers/filed/filed_dir.h"
#include "tests/rig/tree.h"

static char path[64];			/* of the store of the test that runs */
static struct filed_dir dir;
static struct xseg_error err;
static mode_t was;			/* the umask */

static int setup(void **state)
{
	(void)state;
	was = umask(022);
	snprintf(path, sizeof(path), "/var/tmp/filed-rights-test-%d", (int)getpid());
	remove_tree(path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	umask(was);
	remove_tree(path);
	return 0;
}

static void make_file(const char *name)
{
	int fd = filed_dir_open_file(&dir, name, true);

	assert_true(fd >= 0);
	close(fd);
}

/* The store, with files in two directories. */
static void make_store(const char *group)
{
	assert_int_equal(filed_dir_open(&dir, path, false, group, &err), 0);
	make_file("0a/0b/one");
	make_file("0a/0c/two");
	filed_dir_close(&dir);
}

static void open_again(const char *group)
{
	assert_int_equal(filed_dir_open(&dir, path, false, group, &err), 0);
	filed_dir_close(&dir);
}

/* A group that is not this user's first one, where it can be. */
static const char *some_group(void)
{
	static char text[16];

	snprintf(text, sizeof(text), "%u", geteuid() ? getegid() : 54321u);
	return text;
}

static mode_t dirs, files;
static gid_t group;
static int nr_seen;

static int look(const char *at, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if (type == FTW_SL)
		return 0;
	nr_seen++;
	if ((st->st_mode & 0777) == (S_ISDIR(st->st_mode) ? dirs : files) &&
		(group == (gid_t)-1 || st->st_gid == group))
		return 0;
	print_error("%s: %04o, group %u\n", at, st->st_mode & 07777, st->st_gid);
	return -1;
}

static void all_have(mode_t of_dirs, mode_t of_files, const char *of_group, int nr)
{
	dirs = of_dirs;
	files = of_files;
	group = *of_group ? (gid_t)strtoul(of_group, NULL, 10) : (gid_t)-1;
	nr_seen = 0;
	assert_int_equal(nftw(path, look, 16, FTW_PHYS), 0);
	assert_int_equal(nr_seen, nr);
}

/* DIR, xseg-filed, 0a, 0a/0b, 0a/0c and two files. */
#define NR_ALL 7

static int widen(const char *at, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	return type == FTW_SL ? 0 : chmod(at, S_ISDIR(st->st_mode) ? 0755 : 0644);
}

/* As a filed had it that knew nothing of rights. */
static void make_old_store(void)
{
	make_store("");
	assert_int_equal(nftw(path, widen, 16, FTW_PHYS), 0);
}

static void change(const char *below, mode_t mode)
{
	char at[128];

	snprintf(at, sizeof(at), "%s/%s", path, below);
	assert_int_equal(chmod(at, mode), 0);
}

static mode_t mode_of(const char *at)
{
	struct stat st;

	assert_int_equal(stat(at, &st), 0);
	return st.st_mode & 07777;
}

static void what_is_made_is_this_user_s_alone_whatever_the_umask(void **state)
{
	static const mode_t masks[] = { 0, 022, 027, 077, 0777 };
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
		remove_tree(path);
		umask(masks[i]);
		make_store("");
		all_have(0700, 0600, "", NR_ALL);
		assert_int_equal(dir.mended.nr, 0);
	}
}

static void a_group_may_read_it_whatever_the_umask(void **state)
{
	static const mode_t masks[] = { 0, 022, 077, 0777 };
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
		remove_tree(path);
		umask(masks[i]);
		make_store(some_group());
		all_have(0750, 0640, some_group(), NR_ALL);
	}
}

static void what_an_older_filed_has_made_is_corrected_once(void **state)
{
	(void)state;
	make_old_store();
	open_again("");
	assert_int_equal(dir.mended.nr, NR_ALL);
	assert_int_equal(dir.mended.nr_not, 0);
	all_have(0700, 0600, "", NR_ALL);
	open_again("");
	assert_int_equal(dir.mended.nr, 0);
}

static void a_correction_that_was_cut_short_is_done_again(void **state)
{
	(void)state;
	make_old_store();
	assert_int_equal(chmod(path, 0700), 0);
	change("0a/0b/one", 0600);
	open_again("");
	assert_int_equal(dir.mended.nr, NR_ALL - 2);
	all_have(0700, 0600, "", NR_ALL);
}

static void a_directory_that_was_opened_to_others_since_is_corrected_with_all_in_it(void **state)
{
	(void)state;
	make_store("");
	change("0a", 0777);
	change("0a/0c/two", 0666);
	open_again("");
	assert_int_equal(dir.mended.nr, 0);	/* it lets nobody in */
	assert_int_equal(chmod(path, 0755), 0);
	open_again("");
	assert_int_equal(dir.mended.nr, 3);
	all_have(0700, 0600, "", NR_ALL);
}

static void a_group_comes_and_goes(void **state)
{
	(void)state;
	make_store("");
	open_again(some_group());
	all_have(0750, 0640, some_group(), NR_ALL);
	open_again(some_group());
	assert_int_equal(dir.mended.nr, 0);
	open_again("");
	all_have(0700, 0600, "", NR_ALL);
}

static void a_file_that_is_opened_has_its_rights(void **state)
{
	(void)state;
	make_store("");
	change("0a/0b/one", 0604);
	assert_int_equal(filed_dir_open(&dir, path, false, "", &err), 0);
	make_file("0a/0b/one");
	filed_dir_close(&dir);
	all_have(0700, 0600, "", NR_ALL);
}

static void what_a_link_leads_to_and_what_is_not_filed_s_stays_as_it_is(void **state)
{
	char other[80], at[128], lost[128];
	int fd;

	(void)state;
	make_old_store();
	snprintf(other, sizeof(other), "%s-other", path);
	fd = creat(other, 0644);
	assert_true(fd >= 0);
	close(fd);
	snprintf(at, sizeof(at), "%s/0a/0b/link", path);
	assert_int_equal(symlink(other, at), 0);
	snprintf(lost, sizeof(lost), "%s/lost+found", path);
	assert_int_equal(mkdir(lost, 0755), 0);
	open_again("");
	assert_int_equal(mode_of(other), 0644);
	assert_int_equal(mode_of(lost), 0755);
	unlink(other);
	rmdir(lost);
	all_have(0700, 0600, "", NR_ALL);
}

static void rights_that_their_owner_took_away_stay_away(void **state)
{
	char at[128];

	(void)state;
	make_old_store();
	change("0a/0b/one", 0444);
	open_again("");
	snprintf(at, sizeof(at), "%s/0a/0b/one", path);
	assert_int_equal(mode_of(at), 0400);
}

static void a_group_that_does_not_exist_is_refused(void **state)
{
	(void)state;
	assert_int_equal(filed_dir_open(&dir, path, false, "no-such-group", &err), -EINVAL);
	assert_non_null(strstr(err.text, "no group 'no-such-group'; make it"));
	assert_int_equal(access(path, F_OK), -1);
}

/* Root may give away anything, so it looks as somebody else. */
static void a_group_that_this_user_is_not_in_is_refused(void **state)
{
	int rc;

	(void)state;
	make_store("");
	if (!geteuid()) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		change("xseg-filed", 0666);
		assert_int_equal(seteuid(65534), 0);
	}
	rc = filed_dir_open(&dir, path, false, geteuid() == 65534 ? "54321" : "0", &err);
	assert_int_equal(rc, -EPERM);
	assert_non_null(strstr(err.text, "cannot be given to group"));
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_made_is_this_user_s_alone_whatever_the_umask),
		T(a_group_may_read_it_whatever_the_umask),
		T(what_an_older_filed_has_made_is_corrected_once),
		T(a_correction_that_was_cut_short_is_done_again),
		T(a_directory_that_was_opened_to_others_since_is_corrected_with_all_in_it),
		T(a_group_comes_and_goes),
		T(a_file_that_is_opened_has_its_rights),
		T(what_a_link_leads_to_and_what_is_not_filed_s_stays_as_it_is),
		T(rights_that_their_owner_took_away_stay_away),
		T(a_group_that_does_not_exist_is_refused),
		T(a_group_that_this_user_is_not_in_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
