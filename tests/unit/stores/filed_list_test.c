/* filed_list_test - listings of a directory that holds more than an answer or a buffer does. */
#include "peers/filed/filed_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/common/blocker/listing.h"
#include "tests/rig/seg_pair.h"
#include "tests/rig/tree.h"

#define MANY	  300u
#define BUF_BYTES (64u << 10)			/* room for fewer than MANY names */

static char dir[100];
static struct filed_dir d;
static uint32_t name_of[MANY];			/* "nNUMBER" */
static uint32_t named[MANY], others;
static _Alignas(16) uint8_t buf[BUF_BYTES];

static void file_make(const char *name)
{
	char path[FILED_PATH_MAX];
	int fd;

	assert_int_equal(filed_dir_path(name, xseg_hash(name, strlen(name)), path), 0);
	fd = filed_dir_open_file(&d, path, true);
	assert_true(fd >= 0);
	close(fd);
}

/* Names whose files are all in one directory. */
static void files_make(void)
{
	char name[16];
	uint32_t nr = 0, i;

	for (i = 0; nr < MANY; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		if (xseg_hash(name, strlen(name)) >> 48 != 0x1234)
			continue;
		file_make(name);
		name_of[nr++] = i;
	}
}

static void begin(void)
{
	struct xseg_error err;

	snprintf(dir, sizeof(dir), "/tmp/filed-list-%d", (int)getpid());
	remove_tree(dir);
	assert_int_equal(filed_dir_open(&d, dir, false, "", &err), 0);
}

static void end(void)
{
	filed_dir_close(&d);
	remove_tree(dir);
}

static void count(const char *name)
{
	uint32_t nr = name[0] == 'n' ? (uint32_t)strtoul(name + 1, NULL, 10) : UINT32_MAX, i;

	for (i = 0; i < MANY && name_of[i] != nr; i++)
		;
	if (i < MANY)
		named[i]++;
	else
		others++;
}

static struct xreq request(const char *prefix, uint64_t cursor)
{
	struct xreq r = { .op = XSEG_OP_LIST, .size = XSEG_PAGE_SIZE, .nr_pages = 1, .page = { 5 },
		.obj_offset = cursor };

	snprintf(r.target, sizeof(r.target), "%s", prefix);
	return r;
}

static uint32_t list_whole(const char *prefix)
{
	struct listing_names names;
	char name[XSEG_TARGET_MAX];
	uint64_t cursor = 0;
	uint32_t steps = 0;

	memset(named, 0, sizeof(named));
	others = 0;
	do {
		struct xreq r = request(prefix, cursor);

		r.result = filed_list_run(&d, seg, &r, buf, sizeof(buf));
		assert_int_equal(listing_open(&names, seg, &r), 0);
		while (listing_next(&names, name) == 1)
			count(name);
		assert_true(!names.head.next || names.head.next > cursor);
		cursor = names.head.next;
		steps++;
	} while (cursor);
	return steps;
}

static void a_directory_with_more_files_than_the_buffer_holds_is_listed_in_steps(void **state)
{
	char digits[16];
	uint32_t i;

	(void)state;
	begin();
	files_make();
	file_make("other");
	assert_true(list_whole("") > 1);
	for (i = 0; i < MANY; i++)
		assert_int_equal(named[i], 1);
	assert_int_equal(others, 1);
	list_whole("o");
	assert_int_equal(others, 1);
	list_whole("n1");
	for (i = 0; i < MANY; i++) {
		snprintf(digits, sizeof(digits), "%u", name_of[i]);
		assert_int_equal(named[i], digits[0] == '1');
	}
	end();
}

static void what_no_filed_made_is_not_named(void **state)
{
	static const char *const strange[] = { "ab/cd/a~", "ab/cd/%zz", "ab/cd/%2", "ab/cd/plain",
		"ab/xx", "abc", "ab/cd/%00" };
	char path[200];
	uint32_t i;

	(void)state;
	begin();
	file_make("other");
	snprintf(path, sizeof(path), "%s/ab", dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/ab/cd", dir);
	mkdir(path, 0700);
	for (i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, strange[i]);
		close(creat(path, 0600));
		assert_int_equal(access(path, F_OK), 0);
	}
	list_whole("");
	assert_int_equal(others, 1);
	end();
}

static void a_directory_that_was_removed_is_an_error(void **state)
{
	struct xreq r = request("", 0);

	(void)state;
	begin();
	remove_tree(dir);
	assert_int_equal(filed_list_run(&d, seg, &r, buf, sizeof(buf)), -EIO);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_directory_with_more_files_than_the_buffer_holds_is_listed_in_steps),
		T(what_no_filed_made_is_not_named),
		T(a_directory_that_was_removed_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
