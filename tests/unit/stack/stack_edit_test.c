/* stack_edit_test - one key of a stack file is changed, and all other lines stay; and a file is
 * replaced at once, also where the process is killed.
 */
#include "peers/common/options/stack_edit.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "peers/common/options/stack.h"
#include "peers/common/options/text_file.h"
#include "tests/rig/xorshift.h"

#define LINE_MAX_BYTES 198

/* ---- one key ----------------------------------------------------------------------------- */

static void expect_edit(const char *text, const char *key, const char *values, const char *wanted)
{
	char *new = stack_edit_set(text, "cached", key, values);

	assert_non_null(new);
	assert_string_equal(new, wanted);
	free(new);
}

static void a_value_is_changed_and_all_other_lines_stay(void **state)
{
	(void)state;
	expect_edit("# the first line\n[segment]\nmemory = 1G\n\n[peer memd]\nmemory = 1M\n"
		    "; of cached\n[peer cached]\n\n# how much\nmemory   =  64M   ; all of it\n"
		    "objects = 10\n\n# the last one\n[peer volumed]\nmemory = 2M\n",
		"memory", "32M",
		"# the first line\n[segment]\nmemory = 1G\n\n[peer memd]\nmemory = 1M\n"
		"; of cached\n[peer cached]\n\n# how much\nmemory   =  32M   ; all of it\n"
		"objects = 10\n\n# the last one\n[peer volumed]\nmemory = 2M\n");
}

static void a_new_key_goes_behind_the_last_one_of_its_section(void **state)
{
	(void)state;
	expect_edit("[peer cached]\nmemory = 64M\n# a comment\n\n# of volumed\n[peer volumed]\n",
		"objects", "9",
		"[peer cached]\nmemory = 64M\nobjects = 9\n# a comment\n\n# of volumed\n"
		"[peer volumed]\n");
	expect_edit("[peer cached]\n[peer volumed]\n", "objects", "9",
		"[peer cached]\nobjects = 9\n[peer volumed]\n");
}

static void lines_end_as_those_of_the_file(void **state)
{
	(void)state;
	expect_edit("[peer cached]\r\nmemory = 64M\r\n\r\n[peer x]\r\n", "memory", "1M",
		"[peer cached]\r\nmemory = 1M\r\n\r\n[peer x]\r\n");
	expect_edit("[peer cached]\r\nmemory = 64M\r\n\r\n[peer x]\r\n", "objects", "9",
		"[peer cached]\r\nmemory = 64M\r\nobjects = 9\r\n\r\n[peer x]\r\n");
	expect_edit("[peer cached]\r\nmemory = 64M", "objects", "9",
		"[peer cached]\r\nmemory = 64M\r\nobjects = 9\r\n");
}

static void the_last_line_need_not_end(void **state)
{
	(void)state;
	expect_edit("[peer cached]\nmemory = 64M", "memory", "1M", "[peer cached]\nmemory = 1M");
	expect_edit("[peer cached]\nmemory = 64M", "objects", "9",
		"[peer cached]\nmemory = 64M\nobjects = 9\n");
	expect_edit("[peer cached]", "objects", "9", "[peer cached]\nobjects = 9\n");
	/* "memory" alone is no key: nothing is read behind the text */
	expect_edit("[peer cached]\nmemory", "memory", "9", "[peer cached]\nmemory\nmemory = 9\n");
}

static void a_byte_order_mark_is_no_part_of_a_section(void **state)
{
	(void)state;
	expect_edit(STACK_BOM "[peer cached]\nmemory = 64M\n", "memory", "1M",
		STACK_BOM "[peer cached]\nmemory = 1M\n");
}

static void of_sections_of_one_name_the_first_is_meant(void **state)
{
	struct stack *stack = stack_create();

	(void)state;
	expect_edit("[peer cached2]\nmemory = 1M\n[peer  cached ]\nmemory = 2M\n[peer cached]\n"
		    "memory = 3M\n",
		"memory", "4M",
		"[peer cached2]\nmemory = 1M\n[peer  cached ]\nmemory = 4M\n[peer cached]\n"
		"memory = 3M\n");
	/* such a file is none that a segment has */
	assert_non_null(stack);
	assert_int_equal(stack_parse("[peer cached]\n[peer cached]\n", stack, NULL), -EINVAL);
	stack_destroy(stack);
	assert_null(stack_edit_set("[peer cached2]\n", "cached", "memory", "1M"));
	assert_null(stack_edit_set("", "cached", "memory", "1M"));
	assert_null(stack_edit_set("[peer", "cached", "memory", "1M"));
	assert_null(stack_edit_set("[export cached]\n", "cached", "memory", "1M"));
}

static void a_list_has_a_line_for_each_value(void **state)
{
	static const char two[] = "[peer cached]\nfail = a ; x\nmemory = 1M\nfail = b\n"
				  "objects = 2\n";

	(void)state;
	expect_edit(two, "fail", "1\n2", "[peer cached]\nfail = 1 ; x\nmemory = 1M\nfail = 2\n"
		"objects = 2\n");
	expect_edit(two, "fail", "1", "[peer cached]\nfail = 1 ; x\nmemory = 1M\nobjects = 2\n");
	expect_edit(two, "fail", "", "[peer cached]\nmemory = 1M\nobjects = 2\n");
	expect_edit(two, "fail", "1\n2\n3", "[peer cached]\nfail = 1 ; x\nmemory = 1M\nfail = 2\n"
		"objects = 2\nfail = 3\n");
}

static void a_value_that_goes_on_is_replaced_as_a_whole(void **state)
{
	(void)state;
	expect_edit("[peer cached]\nfail = a\n  b\n\t c\n  # a comment\nmemory = 1M\n", "fail", "d",
		"[peer cached]\nfail = d\n  # a comment\nmemory = 1M\n");
}

static void a_semicolon_within_a_value_is_no_comment(void **state)
{
	(void)state;
	expect_edit("[peer cached]\ndir = a;b ;c\n", "dir", "d", "[peer cached]\ndir = d ;c\n");
	expect_edit("[peer cached]\ndir =;c\n", "dir", "d", "[peer cached]\ndir =d;c\n");
}

static void a_key_is_found_however_it_is_written(void **state)
{
	(void)state;
	expect_edit("[peer cached]\ndirty-age: 1s\n", "dirty_age", "2s",
		"[peer cached]\ndirty-age: 2s\n");
	/* one that begins as it does is another */
	expect_edit("[peer cached]\ndirty_age_x = 1s\n", "dirty_age", "2s",
		"[peer cached]\ndirty_age_x = 1s\ndirty_age = 2s\n");
}

static void a_line_that_inih_would_cut_is_not_written(void **state)
{
	char value[LINE_MAX_BYTES + 1], wanted[2 * LINE_MAX_BYTES];
	size_t fits = LINE_MAX_BYTES - strlen("dir = ");

	(void)state;
	memset(value, 'v', sizeof(value));
	value[fits] = '\0';
	snprintf(wanted, sizeof(wanted), "[peer cached]\ndir = %s\n", value);
	expect_edit("[peer cached]\n", "dir", value, wanted);
	value[fits] = 'v';
	value[fits + 1] = '\0';
	assert_null(stack_edit_set("[peer cached]\n", "cached", "dir", value));
	assert_null(stack_edit_set("[peer cached]\ndir = x\n", "cached", "dir", value));
}

/* ---- any text ---------------------------------------------------------------------------- */

#define NR_KEYS 4u

static const char *const keys[NR_KEYS] = { "memory", "latency", "jitter", "seed" };

/* What a peer has; 0: no such key. */
struct peer_model {
	unsigned value[NR_KEYS];
};

static void put_noise(char *text, size_t size, uint64_t *seed, const char *end)
{
	static const char *const noise[] = { "", "", "# memory = 1M", "; [peer p0]", "  # blank" };

	snprintf(text + strlen(text), size - strlen(text), "%s%s",
		noise[xorshift_below(seed, sizeof(noise) / sizeof(noise[0]))], end);
}

static void make_text(char *text, size_t size, uint64_t *seed, struct peer_model model[3])
{
	const char *end = xorshift_below(seed, 3) ? "\n" : "\r\n";
	unsigned key, turn = xorshift_below(seed, NR_KEYS);

	text[0] = '\0';
	for (unsigned i = 0; i < 3; i++) {
		put_noise(text, size, seed, end);
		snprintf(text + strlen(text), size - strlen(text), "[peer p%u]%skind = memd%s", i,
			end, end);
		model[i] = (struct peer_model){ { 0 } };
		for (unsigned k = 0; k < NR_KEYS; k++) {
			key = (k + turn) % NR_KEYS;
			if (xorshift_below(seed, 2))
				put_noise(text, size, seed, end);
			if (xorshift_below(seed, 3) == 0)
				continue;
			model[i].value[key] = 1 + xorshift_below(seed, 100);
			snprintf(text + strlen(text), size - strlen(text), "%s%s%u%s%s", keys[key],
				xorshift_below(seed, 2) ? " = " : "=", model[i].value[key],
				xorshift_below(seed, 2) ? " ; said" : "", end);
		}
	}
	if (xorshift_below(seed, 3) == 0)
		text[strlen(text) - strlen(end)] = '\0';
}

static void check_values(const char *text, const struct peer_model model[3], uint64_t seed)
{
	struct stack *stack = stack_create();
	struct xseg_error err = { "" };
	unsigned nr, found;

	assert_non_null(stack);
	if (stack_parse(text, stack, &err))
		fail_msg("seed %llu: %s in:\n%s", (unsigned long long)seed, err.text, text);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < NR_KEYS; k++) {
			nr = found = 0;
			for (unsigned o = 0; o < stack->peers[i].nr_options; o++)
				if (!strcmp(stack->peers[i].option[o].key, keys[k])) {
					nr++;
					found = (unsigned)strtoul(
						stack->peers[i].option[o].value, NULL, 10);
				}
			if (nr != (model[i].value[k] != 0) || found != model[i].value[k])
				fail_msg("seed %llu: p%u %s is %u (%u times), not %u in:\n%s",
					(unsigned long long)seed, i, keys[k], found, nr,
					model[i].value[k], text);
		}
	stack_destroy(stack);
}

/* Lines of comments, of sections and of all other keys, in their order. */
static void expect_same_but_one_line(const char *old, const char *new, uint64_t seed)
{
	char a[256], b[256];
	unsigned differ = 0;

	while (*old || *new) {
		size_t x = strcspn(old, "\n"), y = strcspn(new, "\n");

		snprintf(a, sizeof(a), "%.*s", (int)x, old);
		snprintf(b, sizeof(b), "%.*s", (int)y, new);
		a[strcspn(a, "\r")] = b[strcspn(b, "\r")] = '\0';
		if (strcmp(a, b) && !(*old && *new && strcspn(a, "=") == strcspn(b, "=") &&
					    !strncmp(a, b, strcspn(a, "=")))) {
			/* a line more, or a line less */
			differ++;
			new += strlen(new) > strlen(old) ? y + (new[y] == '\n') : 0;
			old += strlen(old) > strlen(new) ? x + (old[x] == '\n') : 0;
			if (differ > 1)
				fail_msg("seed %llu: '%s' became '%s'", (unsigned long long)seed, a,
					b);
			continue;
		}
		differ += strcmp(a, b) != 0;
		old += x + (old[x] == '\n');
		new += y + (new[y] == '\n');
	}
	assert_true(differ <= 1);
}

static void any_text_has_the_new_value_and_all_others_after_an_edit(void **state)
{
	struct peer_model model[3];
	char text[4096], name[8], value[16];
	unsigned peer, key;
	char *new;

	(void)state;
	for (uint64_t first = 1; first <= 2000; first++) {
		uint64_t seed = first * 0x9e3779b97f4a7c15ull;

		make_text(text, sizeof(text), &seed, model);
		check_values(text, model, first);
		peer = xorshift_below(&seed, 3);
		key = xorshift_below(&seed, NR_KEYS);
		model[peer].value[key] = xorshift_below(&seed, 4) ? 200 : 0;
		snprintf(name, sizeof(name), "p%u", peer);
		snprintf(value, sizeof(value), "%s", model[peer].value[key] ? "200" : "");
		new = stack_edit_set(text, name, keys[key], value);
		assert_non_null(new);
		check_values(new, model, first);
		expect_same_but_one_line(text, new, first);
		free(new);
	}
}

static void the_first_line_that_differs_is_found(void **state)
{
	char a[8], b[8];

	(void)state;
	assert_int_equal(stack_edit_differs("", "", a, b, sizeof(a)), 0);
	assert_int_equal(stack_edit_differs("x\ny\n", "x\ny\n", a, b, sizeof(a)), 0);
	assert_int_equal(stack_edit_differs("x\ny\n", "x\nz\n", a, b, sizeof(a)), 2);
	assert_string_equal(a, "y");
	assert_string_equal(b, "z");
	assert_int_equal(stack_edit_differs("x\n", "x\na long line\n", a, b, sizeof(a)), 2);
	assert_string_equal(a, "");
	assert_string_equal(b, "a long ");
	/* the end of the last line counts */
	assert_int_equal(stack_edit_differs("x", "x\n", a, b, sizeof(a)), 1);
}

/* ---- the file ---------------------------------------------------------------------------- */

/* What rename() does, by the linker. */
static enum { RENAME_DONE, RENAME_KILLED, RENAME_FAILS } renames;

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
	if (renames == RENAME_KILLED)
		kill(getpid(), SIGKILL);
	if (renames == RENAME_FAILS) {
		errno = EIO;
		return -1;
	}
	return __real_rename(from, to);
}

static char dir[64];

static const char *path_of(const char *name)
{
	static char path[2][128];
	static unsigned turn;

	turn ^= 1;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
	return path[turn];
}

static void put(const char *name, const char *text)
{
	FILE *out = fopen(path_of(name), "w");

	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void expect_text(const char *name, const char *wanted)
{
	char text[64];

	assert_int_equal(text_file_read(path_of(name), text, sizeof(text)), 0);
	assert_string_equal(text, wanted);
}

static unsigned nr_files(void)
{
	char command[128];
	unsigned nr = 0;
	FILE *in;

	snprintf(command, sizeof(command), "ls -A %s | wc -l", dir);
	in = popen(command, "r");
	assert_non_null(in);
	assert_int_equal(fscanf(in, "%u", &nr), 1);
	pclose(in);
	return nr;
}

static int make_dir(void **state)
{
	(void)state;
	renames = RENAME_DONE;
	snprintf(dir, sizeof(dir), "/tmp/stack_edit_test.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void a_file_is_replaced_with_its_mode_and_owner(void **state)
{
	struct stat st;

	(void)state;
	put("a", "old");
	assert_int_equal(chmod(path_of("a"), 0640), 0);
	if (!geteuid())
		assert_int_equal(chown(path_of("a"), 12, 34), 0);
	assert_int_equal(text_file_replace(path_of("a"), "new"), 0);
	expect_text("a", "new");
	assert_int_equal(stat(path_of("a"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_uid, geteuid() ? geteuid() : 12);
	assert_int_equal(st.st_gid, geteuid() ? getegid() : 34);
	assert_int_equal(nr_files(), 1);
}

static void a_link_stays_and_its_file_is_replaced(void **state)
{
	struct stat st;

	(void)state;
	put("a", "old");
	assert_int_equal(symlink("a", path_of("link")), 0);
	assert_int_equal(text_file_replace(path_of("link"), "new"), 0);
	expect_text("a", "new");
	assert_int_equal(lstat(path_of("link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(nr_files(), 2);
}

static void a_kill_before_the_rename_leaves_the_old_file(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	put("a", "old");
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		renames = RENAME_KILLED;
		(void)!text_file_replace(path_of("a"), "new");
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	expect_text("a", "old");
	assert_int_equal(text_file_replace(path_of("a"), "newer"), 0);
	expect_text("a", "newer");
}

static void a_file_that_cannot_be_replaced_stays(void **state)
{
	(void)state;
	put("a", "old");
	renames = RENAME_FAILS;
	assert_int_equal(text_file_replace(path_of("a"), "new"), -EIO);
	renames = RENAME_DONE;
	expect_text("a", "old");
	assert_int_equal(nr_files(), 1);
	assert_int_equal(text_file_replace(path_of("none"), "new"), -ENOENT);
	assert_int_equal(mkdir(path_of("b"), 0700), 0);
	assert_int_equal(text_file_replace(path_of("b"), "new"), -EISDIR);
	assert_int_equal(nr_files(), 2);
}

static void only_a_text_that_fits_is_read(void **state)
{
	char text[8];
	FILE *out;

	(void)state;
	put("a", "1234567");
	assert_int_equal(text_file_read(path_of("a"), text, sizeof(text)), 0);
	assert_string_equal(text, "1234567");
	put("a", "12345678");
	assert_int_equal(text_file_read(path_of("a"), text, sizeof(text)), -EFBIG);
	out = fopen(path_of("a"), "w");
	assert_non_null(out);
	assert_int_equal(fwrite("1\0002", 1, 3, out), 3);
	fclose(out);
	assert_int_equal(text_file_read(path_of("a"), text, sizeof(text)), -EINVAL);
	assert_int_equal(text_file_read(path_of("none"), text, sizeof(text)), -ENOENT);
	put("a", "");
	expect_text("a", "");
}

#define F(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_is_changed_and_all_other_lines_stay),
		cmocka_unit_test(a_new_key_goes_behind_the_last_one_of_its_section),
		cmocka_unit_test(lines_end_as_those_of_the_file),
		cmocka_unit_test(the_last_line_need_not_end),
		cmocka_unit_test(a_byte_order_mark_is_no_part_of_a_section),
		cmocka_unit_test(of_sections_of_one_name_the_first_is_meant),
		cmocka_unit_test(a_list_has_a_line_for_each_value),
		cmocka_unit_test(a_value_that_goes_on_is_replaced_as_a_whole),
		cmocka_unit_test(a_semicolon_within_a_value_is_no_comment),
		cmocka_unit_test(a_key_is_found_however_it_is_written),
		cmocka_unit_test(a_line_that_inih_would_cut_is_not_written),
		cmocka_unit_test(any_text_has_the_new_value_and_all_others_after_an_edit),
		cmocka_unit_test(the_first_line_that_differs_is_found),
		F(a_file_is_replaced_with_its_mode_and_owner),
		F(a_link_stays_and_its_file_is_replaced),
		F(a_kill_before_the_rename_leaves_the_old_file),
		F(a_file_that_cannot_be_replaced_stays),
		F(only_a_text_that_fits_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
