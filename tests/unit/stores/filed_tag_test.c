/* filed_tag_test - the attribute that says which object a file is of, on files alone. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "peers/filed/filed_tag.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define MANY "a name of 127 bytes, the longest: ............................................" \
	     "................................................."

static int fd;
static uint64_t length;
static bool full;

/* filed_tag's, and this file's own. */
int fsetxattr(int file, const char *name, const void *value, size_t bytes, int flags)
{
	if (!full)
		return (int)syscall(SYS_fsetxattr, file, name, value, bytes, flags);
	errno = ENOSPC;
	return -1;
}

static int setup(void **state)
{
	char path[] = "/var/tmp/filed-tag-test-XXXXXX";

	(void)state;
	fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(fd);
	return 0;
}

static const char *tag(void)
{
	static char text[300];
	ssize_t n = fgetxattr(fd, "user.xseg", text, sizeof(text) - 1);

	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

static void set(const char *text)
{
	assert_int_equal(fsetxattr(fd, "user.xseg", text, strlen(text), 0), 0);
}

static uint64_t size(void)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_size;
}

static void a_file_has_the_power_of_two_that_its_data_needs(void **state)
{
	static const struct {
		uint64_t end, length;
	} grow[] = {
		{ 1, 64 * KIB }, { 64 * KIB, 64 * KIB }, { 64 * KIB + 1, 128 * KIB },
		{ 1 * MIB, 1 * MIB }, { 3 * MIB, 4 * MIB }, { 4 * MIB, 4 * MIB },
		{ 4 * MIB + 1, 8 * MIB }, { 8 * MIB + 1, 12 * MIB },
		{ UINT64_C(5) << 40, UINT64_C(5) << 40 }
	};
	char text[100];
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(grow) / sizeof(*grow); i++) {
		assert_int_equal(filed_tag_grow(fd, "a b", grow[i].end, &length), 0);
		assert_int_equal(length, grow[i].length);
		assert_int_equal(size(), length);
		snprintf(text, sizeof(text), "1 %lu %lu a b", length, length);
		assert_string_equal(tag(), text);
		assert_int_equal(filed_tag_check(fd, "a b", &length), 0);
		assert_int_equal(length, grow[i].length);
	}
	assert_int_equal(filed_tag_grow(fd, "a b", 1, &length), 0);
	assert_int_equal(size(), UINT64_C(5) << 40);
}

static void any_name_is_kept(void **state)
{
	static const char *const names[] = { "a", " ", "1 2 3 ", "\x01\xff\n%", MANY };
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_int_equal(filed_tag_grow(fd, names[i], 1, &length), 0);
		assert_int_equal(filed_tag_check(fd, names[i], &length), 0);
		assert_int_equal(length, 64 * KIB);
		assert_int_equal(filed_tag_check(fd, "other", &length), -FILED_EOTHER);
	}
	assert_int_equal(strlen(MANY), 127);
}

static void a_file_of_another_object_is_wrong(void **state)
{
	(void)state;
	assert_int_equal(filed_tag_grow(fd, "vol:00000001", 1, &length), 0);
	assert_int_equal(filed_tag_check(fd, "vol:0000000", &length), -FILED_EOTHER);
	assert_int_equal(filed_tag_check(fd, "vol:000000010", &length), -FILED_EOTHER);
	assert_int_equal(filed_tag_check(fd, "vol:00000001", &length), 0);
}

static void a_file_that_was_cut_short_is_wrong(void **state)
{
	(void)state;
	assert_int_equal(filed_tag_grow(fd, "a", 100 * KIB, &length), 0);
	assert_int_equal(ftruncate(fd, (off_t)(128 * KIB - 1)), 0);
	assert_int_equal(filed_tag_check(fd, "a", &length), -FILED_ESHORT);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(filed_tag_check(fd, "a", &length), -FILED_ESHORT);
	assert_int_equal(ftruncate(fd, (off_t)(128 * KIB)), 0);
	assert_int_equal(filed_tag_check(fd, "a", &length), 0);
}

static void a_file_whose_filed_died_as_it_grew_is_right(void **state)
{
	static const struct {
		const char *tag;
		uint64_t size;
	} states[] = {
		{ NULL, 0 },
		{ "1 65536 0 a", 0 },
		{ "1 65536 0 a", 65536 },
		{ "1 131072 65536 a", 65536 },
		{ "1 131072 65536 a", 100000 },		/* it had another length before */
		{ "1 131072 65536 a", 131072 },
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(states) / sizeof(*states); i++) {
		if (states[i].tag)
			set(states[i].tag);
		assert_int_equal(ftruncate(fd, (off_t)states[i].size), 0);
		assert_int_equal(filed_tag_check(fd, "a", &length), 0);
		assert_int_equal(length, 0);			/* it is grown before a change */
	}
	assert_int_equal(filed_tag_grow(fd, "a", 1, &length), 0);
	assert_string_equal(tag(), "1 131072 131072 a");
}

static void a_file_of_an_older_filed_keeps_its_bytes_and_gets_the_attribute(void **state)
{
	char text[] = "odd";

	(void)state;
	assert_int_equal(pwrite(fd, text, 3, 70000), 3);
	assert_int_equal(filed_tag_check(fd, "a", &length), 0);
	assert_int_equal(length, 0);
	assert_int_equal(filed_tag_grow(fd, "a", 0, &length), 0);
	assert_int_equal(length, 128 * KIB);
	assert_string_equal(tag(), "1 131072 131072 a");
	assert_int_equal(pread(fd, text, 3, 70000), 3);
	assert_string_equal(text, "odd");
	/* an older one wrote to it since */
	assert_int_equal(pwrite(fd, text, 3, 140000), 3);
	assert_int_equal(filed_tag_check(fd, "a", &length), 0);
	assert_int_equal(length, 0);
	assert_int_equal(filed_tag_grow(fd, "a", 0, &length), 0);
	assert_int_equal(size(), 256 * KIB);
}

static void what_is_no_attribute_of_this_version_is_wrong(void **state)
{
	static const char *const texts[] = { "", "1", "1 65536", "1 65536 0", "2 65536 0 a",
		"1 65536 65537 a", "1 -65536 0 a", "1  65536 0 a",
		"1 99999999999999999999999 0 a", "one", "0 65536 0 a" };
	char many[400];
	uint32_t i;

	(void)state;
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		set(texts[i]);
		assert_int_equal(filed_tag_check(fd, "a", &length), -FILED_ETAG);
	}
	assert_int_equal(fsetxattr(fd, "user.xseg", "1 65536 0 a\0b", 13, 0), 0);
	assert_int_equal(filed_tag_check(fd, "a", &length), -FILED_ETAG);
	memset(many, '1', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	set(many);
	assert_int_equal(filed_tag_check(fd, "a", &length), -FILED_ETAG);
}

/* What makes room goes on without the attribute, which may need a block. */
static void on_a_full_disk_a_file_stays_as_it_is_unless_it_has_to_grow(void **state)
{
	(void)state;
	assert_int_equal(ftruncate(fd, 100000), 0);
	full = true;
	assert_int_equal(filed_tag_grow(fd, "a", 0, &length), 0);
	assert_int_equal(length, 0);
	assert_int_equal(filed_tag_grow(fd, "a", 100000, &length), 0);
	assert_int_equal(length, 0);
	assert_int_equal(size(), 100000);
	assert_int_equal(filed_tag_grow(fd, "a", 100001, &length), -ENOSPC);
	full = false;
	assert_int_equal(filed_tag_grow(fd, "a", 0, &length), 0);
	assert_int_equal(length, 128 * KIB);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(on_a_full_disk_a_file_stays_as_it_is_unless_it_has_to_grow),
		T(a_file_has_the_power_of_two_that_its_data_needs),
		T(any_name_is_kept),
		T(a_file_of_another_object_is_wrong),
		T(a_file_that_was_cut_short_is_wrong),
		T(a_file_whose_filed_died_as_it_grew_is_right),
		T(a_file_of_an_older_filed_keeps_its_bytes_and_gets_the_attribute),
		T(what_is_no_attribute_of_this_version_is_wrong),
	};

	setup(NULL);
	if (!filed_tag_can(fd)) {
		print_message("skipped: /var/tmp has no user attributes\n");
		return 0;
	}
	teardown(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
