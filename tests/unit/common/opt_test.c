/* opt_test - values of options: which ones parse, which are refused, the message; command lines;
 * lists of processors; key=value lines.
 */
#include "peers/common/options/opt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "peers/common/options/cli.h"
#include "peers/common/options/cpus.h"
#include "peers/common/say/kv.h"

struct sample {
	uint64_t memory, age, interval, rate, count;
	uint32_t depth, high, policy;
	bool direct, flag;
	char dir[16];
	char fail[32];
	char segment[16];
};

static const char *const policies[] = { "write-back", "write-through", NULL };

static int no_dots(const char *text, struct xseg_error *err)
{
	return strchr(text, '.') ? xseg_fail(err, -EINVAL, "dir: '%s' has a dot", text) : 0;
}

#define S(field) offsetof(struct sample, field)
static const struct opt table[] = {
	{ .name = "memory", .kind = OPT_SIZE, .off = S(memory), .min = 4096, .max = 1ull << 40,
	  .def = "1G", .arg = "SIZE", .help = "how much" },
	{ .name = "dirty_age", .kind = OPT_TIME, .off = S(age), .def = "30s", .flags = OPT_LIVE,
	  .help = "how old" },
	{ .name = "interval", .kind = OPT_TIME, .off = S(interval), .min = 1000000,
	  .flags = OPT_OR_ZERO, .help = "how often" },
	{ .name = "flush_rate", .kind = OPT_RATE, .off = S(rate), .help = "how fast" },
	{ .name = "count", .kind = OPT_U64, .off = S(count), .help = "how many" },
	{ .name = "iodepth", .kind = OPT_UINT, .off = S(depth), .min = 1, .max = 1024,
	  .def = "32", .help = "how deep" },
	{ .name = "dirty_high", .kind = OPT_PERCENT, .off = S(high), .def = "70",
	  .help = "how full" },
	{ .name = "policy", .kind = OPT_ENUM, .off = S(policy), .names = policies,
	  .def = "write-back", .help = "which" },
	{ .name = "direct", .kind = OPT_BOOL, .off = S(direct), .def = "yes", .help = "whether" },
	{ .name = "flag", .kind = OPT_BOOL, .off = S(flag), .help = "whether it is given" },
	{ .name = "dir", .kind = OPT_STR, .off = S(dir), .len = 16, .flags = OPT_REQUIRED,
	  .check = no_dots, .help = "where" },
	{ .name = "fail", .kind = OPT_LIST, .off = S(fail), .len = 32, .help = "what" },
	{ .name = "segment", .kind = OPT_STR, .off = S(segment), .len = 16, .help = "segment" },
	{ 0 }
};

static struct sample sample;
static struct xseg_error error;

static int fresh(void **state)
{
	(void)state;
	memset(&sample, 0xee, sizeof(sample));
	opt_set_defaults(table, &sample);
	error.text[0] = '\0';
	return 0;
}

static int set(const char *name, const char *text)
{
	const struct opt *o = opt_find(table, name);

	assert_non_null(o);
	return opt_set(o, &sample, text, &error);
}

static void defaults_fill_every_field(void **state)
{
	(void)state;
	assert_int_equal(sample.memory, 1ull << 30);
	assert_int_equal(sample.age, 30000000000ull);
	assert_int_equal(sample.rate, 0);
	assert_int_equal(sample.depth, 32);
	assert_int_equal(sample.high, 70);
	assert_int_equal(sample.policy, 0);
	assert_true(sample.direct);
	assert_string_equal(sample.dir, "");
	assert_string_equal(sample.fail, "");
}

static void sizes_are_powers_of_1024_and_exact(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 },           { "513", 513 },           { "4k", 4096 },
		{ "4K", 4096 },       { "512M", 512ull << 20 }, { "8G", 8ull << 30 },
		{ "2T", 2ull << 40 }, { "1.5G", 3ull << 29 },   { "0.5k", 512 },
		{ "1P", 1ull << 50 }, { "15E", 15ull << 60 },   { "7.5P", 15ull << 49 },
		{ "4KiB", 4096 },     { "8GiB", 8ull << 30 },   { "2EiB", 1ull << 61 },
		{ "4kB", 4000 },      { "8GB", 8000000000ull }, { "1.5mb", 1500000 },
		{ "1EB", 1000000000000000000ull },
	};
	static const char *const bad[] = {
		"", "k", "-1", "4kk", "4 k", "0.3k", "1.", ".5k", "0x10", "lots",
		"99999999999999999999",
		"16777216T", "4x", "16E", "16384P", "19EB", "4B", "4iB", "4GiBs",
	};
	uint64_t bytes;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(opt_parse_size(good[i].text, &bytes), 0);
		assert_int_equal(bytes, good[i].bytes);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(opt_parse_size(bad[i], &bytes), -EINVAL);
}

static void times_and_rates_have_units(void **state)
{
	uint64_t v;

	(void)state;
	assert_int_equal(opt_parse_time("500us", &v), 0);
	assert_int_equal(v, 500000);
	assert_int_equal(opt_parse_time("500ms", &v), 0);
	assert_int_equal(v, 500000000);
	assert_int_equal(opt_parse_time("2.5ms", &v), 0);
	assert_int_equal(v, 2500000);
	assert_int_equal(opt_parse_time("10s", &v), 0);
	assert_int_equal(v, 10000000000ull);
	assert_int_equal(opt_parse_time("2m", &v), 0);
	assert_int_equal(v, 120000000000ull);
	assert_int_equal(opt_parse_time("3", &v), 0);
	assert_int_equal(v, 3000000000ull);
	assert_int_equal(opt_parse_time("10 s", &v), -EINVAL);
	assert_int_equal(opt_parse_time("6000000h", &v), -EINVAL);
	/* as many digits as 64 bits have room for, whatever the unit */
	assert_int_equal(opt_parse_time("0.999999h", &v), 0);
	assert_int_equal(v, 3599996400000ull);
	assert_int_equal(opt_parse_time("0.9999999h", &v), -EINVAL);
	assert_int_equal(opt_parse_rate("200M/s", &v), 0);
	assert_int_equal(v, 200ull << 20);
	assert_int_equal(opt_parse_rate("200M", &v), 0);
	assert_int_equal(opt_parse_rate("0", &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(opt_parse_rate("200M/h", &v), -EINVAL);
}

static void what_is_printed_parses_to_the_same(void **state)
{
	static const uint64_t values[] = { 0,
					   1,
					   513,
					   4096,
					   1536 << 10,
					   1ull << 30,
					   (1ull << 40) + 1,
					   16384ull << 40,
					   1ull << 63,
					   1000000000,
					   UINT64_MAX,
					   60000000000ull,
					   1500000,
					   999 };
	char text[32];
	uint64_t back;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		opt_format_size(values[i], text, sizeof(text));
		assert_int_equal(opt_parse_size(text, &back), 0);
		assert_int_equal(back, values[i]);
	}
	opt_format_size(1536 << 10, text, sizeof(text));
	assert_string_equal(text, "1536k");
	opt_human_size(3ull << 29, text, sizeof(text));
	assert_string_equal(text, "1.5G");
	opt_human_size(212ull << 20, text, sizeof(text));
	assert_string_equal(text, "212M");
	opt_human_size(1024, text, sizeof(text));
	assert_string_equal(text, "1.0k");
	opt_human_size(7, text, sizeof(text));
	assert_string_equal(text, "7");
}

static void every_option_gives_back_what_was_set(void **state)
{
	static const char *const pairs[][2] = {
		{ "memory", "64M" },
		{ "dirty_age", "500ms" },
		{ "interval", "1ms" },
		{ "interval", "0s" },
		{ "flush_rate", "200M/s" },
		{ "count", "12345678901" },
		{ "iodepth", "7" },
		{ "iodepth", "1024" },
		{ "dirty_high", "33" },
		{ "policy", "write-through" },
		{ "direct", "no" },
		{ "dir", "/some/where" },
		{ "fail", "a:b" },
	};
	char text[64];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_int_equal(set(pairs[i][0], pairs[i][1]), 0);
		opt_get(opt_find(table, pairs[i][0]), &sample, text, sizeof(text));
		assert_string_equal(text, pairs[i][1]);
	}
	assert_int_equal(set("dirty_high", "44%"), 0);
	assert_int_equal(sample.high, 44);
}

static void what_is_set_is_nothing_but_its_own_field(void **state)
{
	struct sample wanted = sample;

	(void)state;
	wanted.depth = 7;
	assert_int_equal(set("iodepth", "7"), 0);
	assert_memory_equal(&wanted, &sample, sizeof(sample));
	wanted.high = 33;
	assert_int_equal(set("dirty_high", "33"), 0);
	assert_memory_equal(&wanted, &sample, sizeof(sample));
}

static void a_wrong_value_changes_nothing_and_says_what_is_right(void **state)
{
	static const struct {
		const char *name, *text, *says;
	} wrong[] = {
		{ "memory", "1k", "4k to 1T" },
		{ "memory", "big", "512M" },
		{ "memory", "2T", "out of range" },
		{ "dirty_age", "soon", "10s" },
		{ "interval", "999us", "at least 1ms, or 0" },
		{ "flush_rate", "fast", "200M/s" },
		{ "iodepth", "0", "1 to 1024" },
		{ "iodepth", "1025", "1 to 1024" },
		{ "iodepth", "-3", "whole number" },
		{ "dirty_high", "101", "0 to 100" },
		{ "dirty_high", "7x", "percentage such as 70" },
		{ "dirty_high", "7%%", "percentage such as 70" },
		{ "iodepth", "7k", "whole number" },
		{ "policy", "1", "write-back, write-through" },
		{ "policy", "write", "write-back" },
		{ "direct", "1", "yes or no" },
		{ "direct", "Yes", "yes or no" },
		{ "dir", "a.b", "dot" },
		{ "dir", "0123456789abcdef", "15 characters" },
		{ "dir", "a\nb", "control character" },
	};
	struct sample before = sample;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(set(wrong[i].name, wrong[i].text), -EINVAL);
		assert_non_null(strstr(error.text, wrong[i].says));
		assert_non_null(strstr(error.text, wrong[i].name));
		assert_null(strchr(error.text, '\n'));
		assert_memory_equal(&before, &sample, sizeof(sample));
	}
}

static void lists_grow_and_an_empty_text_empties_them(void **state)
{
	(void)state;
	assert_int_equal(set("fail", "read:1:EIO"), 0);
	assert_int_equal(set("fail", "write:1:EIO"), 0);
	assert_string_equal(sample.fail, "read:1:EIO\nwrite:1:EIO");
	assert_int_equal(set("fail", "flush:1:EIO"), -EINVAL);
	assert_string_equal(sample.fail, "read:1:EIO\nwrite:1:EIO");
	assert_int_equal(set("fail", ""), 0);
	assert_string_equal(sample.fail, "");
}

static void dashes_and_underscores_are_the_same(void **state)
{
	(void)state;
	assert_ptr_equal(opt_find(table, "dirty-high"), opt_find(table, "dirty_high"));
	assert_null(opt_find(table, "dirty"));
	assert_null(opt_find(table, "dirty_high_"));
	assert_null(opt_find(table, "dirty.high"));
	assert_null(opt_find(table, "-irty_high"));
	assert_null(opt_find(table, ""));
}

static void a_required_option_is_missed(void **state)
{
	(void)state;
	assert_string_equal(opt_missing(table, &sample), "dir");
	assert_int_equal(set("dir", "x"), 0);
	assert_null(opt_missing(table, &sample));
}

/* ---- command lines ----------------------------------------------------------------------- */

static int parse(const char *const *words)
{
	struct cli_group groups[] = { { table, &sample }, { NULL, NULL } };
	char *argv[16];
	int argc = 0;

	for (; words[argc]; argc++)
		argv[argc] = (char *)(uintptr_t)words[argc];
	argv[argc] = NULL;
	return cli_parse(groups, argc, argv, &error);
}

static void a_program_that_takes_options_only_names_what_is_none(void **state)
{
	char *argv[] = { "prog", "rest", NULL };

	(void)state;
	assert_int_equal(cli_only_options(2, 2, argv, &error), 0);
	assert_int_equal(cli_only_options(1, 2, argv, &error), -EINVAL);
	assert_string_equal(error.text, "'rest' is not an option; see --help");
}

#define PARSE(...) parse((const char *const[]){ "prog", __VA_ARGS__, NULL })

static void options_take_their_value_in_every_form(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--memory=2G", "--dirty-age", "5s", "--direct=no", "-s", "one",
			       "rest", "--count=1"),
			 7);
	assert_int_equal(sample.memory, 2ull << 30);
	assert_int_equal(sample.age, 5000000000ull);
	assert_false(sample.direct);
	assert_string_equal(sample.segment, "one");
	assert_int_equal(sample.count, 0);
	assert_int_equal(PARSE("-stwo", "--direct"), 3);
	assert_string_equal(sample.segment, "two");
	assert_true(sample.direct);
	assert_int_equal(PARSE("--fail=a", "--fail=b", "--", "--memory=1G"), 4);
	assert_string_equal(sample.fail, "a\nb");
	assert_int_equal(PARSE("-"), 1);
	assert_int_equal(PARSE("--direct", "no"), 3);
	assert_false(sample.direct);
	assert_int_equal(PARSE("--direct", "never"), 2);
	assert_true(sample.direct);
	/* a flag takes no word */
	assert_int_equal(PARSE("--flag", "no"), 2);
	assert_true(sample.flag);
}

static void a_wrong_command_line_names_the_nearest_option(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--memroy=2G"), -EINVAL);
	assert_non_null(strstr(error.text, "--memroy"));
	assert_non_null(strstr(error.text, "did you mean --memory?"));
	assert_int_equal(PARSE("--dirty-hihg=2"), -EINVAL);
	assert_non_null(strstr(error.text, "--dirty_high?"));
	assert_int_equal(PARSE("--zzzzzzzzzzzzzzz"), -EINVAL);
	assert_null(strstr(error.text, "did you mean"));
	assert_int_equal(PARSE("--mexyz=2"), -EINVAL);
	assert_null(strstr(error.text, "did you mean"));
	assert_int_equal(PARSE("-x"), -EINVAL);
	assert_non_null(strstr(error.text, "-x"));
	assert_int_equal(PARSE("--memory"), -EINVAL);
	assert_non_null(strstr(error.text, "needs a value: SIZE"));
	assert_int_equal(PARSE("--memory=none"), -EINVAL);
	assert_int_equal(PARSE("--0123456789012345678901234567890123456789012345678901234567890"),
			 -EINVAL);
}

/* No line is longer than a terminal, and what goes on does so below where it began. */
static void expect_narrow(const char *text, int column)
{
	size_t len;

	for (; *text; text += len + 1) {
		len = strcspn(text, "\n");
		assert_in_range(len, 1, 80);
		if (*text == ' ' && text[2] == ' ')
			assert_int_equal(strspn(text, " "), column);
	}
}

static void help_fits_a_terminal(void **state)
{
	static const char *const names[] = { "write-back", "write-through", "write-around", NULL };
	static const struct opt wide[] = {
		{ .name = "size", .kind = OPT_SIZE, .help = "short" },
		{ .name = "policy", .kind = OPT_ENUM, .names = names, .def = "write-back",
		  .flags = OPT_LIVE, .arg = "POLICY",
		  .help = "words that are too many for a line, so that it goes on in another one, "
			  "and even in one more" },
		{ 0 }
	};
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	cli_print_options(out, wide);
	fclose(out);
	expect_narrow(text, 19);
	assert_non_null(strstr(text, "  --size=SIZE      short\n  --policy=POLICY  words that"));
	assert_non_null(strstr(text, "write-around [write-back] (live)\n"));
	free(text);
}

static void help_names_every_option_with_range_and_default(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	const struct opt *o;
	char name[32];

	(void)state;
	cli_print_options(out, table);
	fclose(out);
	for (o = table; o->name; o++) {
		snprintf(name, sizeof(name), "--%s", o->name);
		assert_non_null(strstr(text, name));
	}
	assert_non_null(strstr(text, "4k to 1T"));
	assert_non_null(strstr(text, "[1G]"));
	assert_non_null(strstr(text, "write-back, write-through"));
	assert_non_null(strstr(text, "(required)"));
	assert_non_null(strstr(text, "(live)"));
	free(text);
}

/* ---- the small ones ---------------------------------------------------------------------- */

static void lists_of_processors_keep_their_order(void **state)
{
	static const char *const bad[] = { "a",  "1-",   "-1",  "3-2", "1,,2",
					   "1,", "0-64", "1 2", "9999" };
	int cpu[CPUS_MAX];
	size_t i;

	(void)state;
	assert_int_equal(cpus_parse("", cpu, &error), 0);
	assert_int_equal(cpus_parse("5,0,2-4", cpu, &error), 5);
	assert_int_equal(cpu[0], 5);
	assert_int_equal(cpu[1], 0);
	assert_int_equal(cpu[4], 4);
	assert_int_equal(cpus_parse("0-63", cpu, &error), 64);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(cpus_check(bad[i], &error), -EINVAL);
		assert_non_null(strstr(error.text, "0,2-3"));
	}
}

static void words_and_lines_are_cut_at_the_first_equals_sign(void **state)
{
	char words[] = "  a=1 b c==x\n", lines[] = "name=two words\n\nnone\n";
	char *cursor = words, *value;

	(void)state;
	assert_string_equal(kv_next_word(&cursor, &value), "a");
	assert_string_equal(value, "1");
	assert_string_equal(kv_next_word(&cursor, &value), "b");
	assert_null(value);
	assert_string_equal(kv_next_word(&cursor, &value), "c");
	assert_string_equal(value, "=x");
	assert_null(kv_next_word(&cursor, &value));
	cursor = lines;
	assert_string_equal(kv_next_line(&cursor, &value), "name");
	assert_string_equal(value, "two words");
	assert_string_equal(kv_next_line(&cursor, &value), "none");
	assert_null(kv_next_line(&cursor, &value));
}

static void a_number_of_32_bits_is_that_and_nothing_else(void **state)
{
	static const char *const wrong[] = { "", "-1", "+1", " 1", "1 ", "0x1", "4294967296",
					     "18446744073709551617" };
	uint32_t n = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(kv_number(wrong[i], &n), -EINVAL);
	assert_int_equal(n, 7);
	assert_int_equal(kv_number("4294967295", &n), 0);
	assert_int_equal(n, UINT32_MAX);
	assert_int_equal(kv_number("0", &n), 0);
	assert_int_equal(n, 0);
}

static void text_that_does_not_fit_is_left_out_whole(void **state)
{
	struct kv_text t;
	char buf[8];

	(void)state;
	kv_init(&t, buf, sizeof(buf));
	assert_true(kv_add(&t, "a=%d\n", 1));
	assert_false(kv_add(&t, "b=%d\n", 12));
	assert_true(t.full);
	assert_string_equal(buf, "a=1\n");
	assert_true(kv_add(&t, "c=1"));
	assert_int_equal(t.used, 7);
	kv_init(&t, buf, sizeof(buf));
	assert_false(kv_add(&t, "a=%d", 123456));
	assert_string_equal(buf, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(defaults_fill_every_field, fresh),
		cmocka_unit_test(sizes_are_powers_of_1024_and_exact),
		cmocka_unit_test(times_and_rates_have_units),
		cmocka_unit_test(what_is_printed_parses_to_the_same),
		cmocka_unit_test_setup(every_option_gives_back_what_was_set, fresh),
		cmocka_unit_test_setup(what_is_set_is_nothing_but_its_own_field, fresh),
		cmocka_unit_test_setup(a_wrong_value_changes_nothing_and_says_what_is_right, fresh),
		cmocka_unit_test_setup(lists_grow_and_an_empty_text_empties_them, fresh),
		cmocka_unit_test(dashes_and_underscores_are_the_same),
		cmocka_unit_test_setup(a_required_option_is_missed, fresh),
		cmocka_unit_test_setup(
			a_program_that_takes_options_only_names_what_is_none, fresh),
		cmocka_unit_test_setup(options_take_their_value_in_every_form, fresh),
		cmocka_unit_test_setup(a_wrong_command_line_names_the_nearest_option, fresh),
		cmocka_unit_test(help_names_every_option_with_range_and_default),
		cmocka_unit_test(help_fits_a_terminal),
		cmocka_unit_test(lists_of_processors_keep_their_order),
		cmocka_unit_test(words_and_lines_are_cut_at_the_first_equals_sign),
		cmocka_unit_test(a_number_of_32_bits_is_that_and_nothing_else),
		cmocka_unit_test(text_that_does_not_fit_is_left_out_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
