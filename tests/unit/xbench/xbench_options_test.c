/* xbench_options_test - the command line of xbench: which options are taken, which are refused and
 * in which words.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "bench/xbench/plan/fio_options.c" /* NOLINT(bugprone-suspicious-include) */
#include "bench/xbench/plan/kv_options.c" /* NOLINT(bugprone-suspicious-include) */
#include "bench/xbench/plan/options.c" /* NOLINT(bugprone-suspicious-include) */

static struct xb_options o;
static struct xseg_error err;

/* Parses a line of words. */
static int parse(const char *line)
{
	static char text[512];
	char *argv[32], *save = NULL;
	int argc = 1;

	argv[0] = (char *)"xbench";
	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	err.text[0] = '\0';
	return xb_options_parse(&o, argc, argv, &err);
}

static void assert_refused(const char *line, const char *why)
{
	assert_int_equal(parse(line), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("'%s' says '%s', not '%s'", line, err.text, why);
	assert_null(strchr(err.text, '\n'));
}

static void defaults_are_those_of_the_manual(void **state)
{
	(void)state;
	/* without it the only segment of the machine is taken, which other tests may have made */
	setenv("XSEG_SEGMENT", "of-the-environment", 1);
	assert_int_equal(parse("--volume=v"), 0);
	assert_string_equal(o.segment, "of-the-environment");
	unsetenv("XSEG_SEGMENT");
	assert_int_equal(o.rw, XB_RW_READ);
	assert_int_equal(o.bs, 4096);
	assert_int_equal(o.bs_min, 4096);
	assert_int_equal(o.bs_max, 4096);
	assert_int_equal(o.iodepth, 1);
	assert_int_equal(o.numjobs, 1);
	assert_true(o.do_verify);
	setenv("XSEG_SEGMENT", "other", 1);
	assert_int_equal(parse("--volume=v"), 0);
	assert_string_equal(o.segment, "other");
	assert_int_equal(parse("-s third --volume=v"), 0);
	assert_string_equal(o.segment, "third");
}

static void objects_are_those_of_a_target_only(void **state)
{
	(void)state;
	assert_int_equal(parse("--target=memd"), 0);
	assert_int_equal(o.objects, 1024);
	assert_int_equal(o.object_size, 4u << 20);
	assert_int_equal(parse("--target=memd --objects=3 --object_size=8k"), 0);
	assert_int_equal(o.objects, 3);
	assert_int_equal(o.object_size, 8192);
	assert_refused("--volume=v --objects=1024", "objects is for a --target only");
	assert_refused("--volume=v --object_size=4M", "object_size is for a --target only");
	assert_refused("--volume=v --target=memd --objects=3", "one of --volume");
}

static void every_option_of_the_commands_page_is_taken(void **state)
{
	(void)state;
	assert_int_equal(parse("--target=memd --rw=randrw --rwmixread=70 --bs=8k --iodepth=32"
			       " --opmix=flush:1,trim:2,write_zeroes:3,copy:4,info:5"
			       " --numjobs=4 --size=1G --offset=4k --runtime=10s --time_based"
			       " --number_ios=100 --ramp_time=1s --data=copy --sync=1"
			       " --random_distribution=zipf:1.2 --fsync=16 --rate_iops=1000"), 0);
	assert_int_equal(o.mix[XB_COPY], 4);
	assert_int_equal(o.runtime, 10000000000ull);
	assert_true(o.zipf > 1.19 && o.zipf < 1.21);
	assert_int_equal(parse("--volume=v --bsrange=512-256k --verify=crc32c --verify_only"
			       " --verify_state=/f --write_iolog=/l --randseed=5 --cpus=0,2-3"
			       " --status-interval=1s --output-format=json --output=/o"), 0);
	assert_int_equal(o.bs_min, 512);
	assert_int_equal(o.bs_max, 256 << 10);
	assert_int_equal(o.nr_cpus, 3);
	assert_int_equal(o.cpu[2], 3);
	assert_int_equal(o.output_format, XB_FORMAT_JSON);
	assert_int_equal(parse("--target=p --objects=1M --object_size=64k"), 0);
	assert_int_equal(o.objects, 1u << 20);
}

static void fios_options_are_taken(void **state)
{
	(void)state;
	assert_int_equal(parse("--volume=v --name=mine --direct=1 --group_reporting"), 0);
	assert_string_equal(o.name, "mine");
	assert_int_equal(o.by.direct, XB_DIRECT_AUTO);
	assert_true(o.group_reporting);
	assert_int_equal(parse("--volume=v --direct=0"), 0);
	assert_int_equal(o.by.direct, XB_DIRECT_AUTO);
	assert_string_equal(o.name, "");
	assert_int_equal(parse("--volume=v --direct=never"), 0);
	assert_int_equal(o.by.direct, XB_DIRECT_NEVER);
}

/* --FLAG, and fio's --FLAG=1 and --FLAG=0 */
static void flags_take_the_values_that_fio_has_for_them(void **state)
{
	char line[128];
	uint32_t nr = 0;

	(void)state;
	for (const struct opt *f = xb_opts; f->name; f++) {
		if (f->kind != OPT_BOOL)
			continue;
		nr++;
		snprintf(line, sizeof(line), "--volume=v --version --%s=1", f->name);
		assert_int_equal(parse(line), 0);
		assert_true(*(bool *)((char *)&o + f->off));
		snprintf(line, sizeof(line), "--volume=v --version --%s --%s=0", f->name, f->name);
		assert_int_equal(parse(line), 0);
		assert_false(*(bool *)((char *)&o + f->off));
	}
	assert_true(nr >= 8);
	assert_int_equal(parse("--volume=v --group_reporting=1 --time_based=1 --runtime=1"
			       " --do_verify=0"), 0);
	assert_true(o.group_reporting && o.time_based && !o.do_verify);
	assert_int_equal(parse("--volume=v --group_reporting=0 --time_based=0"), 0);
	assert_true(!o.group_reporting && !o.time_based && o.do_verify);
}

static void sync_has_the_names_of_fio(void **state)
{
	static const struct {
		const char *name;
		uint32_t sync;
	} row[] = { { "0", 0 }, { "none", 0 }, { "1", 1 }, { "sync", 1 }, { "dsync", 1 } };
	char line[64];

	(void)state;
	assert_int_equal(parse("--volume=v"), 0);
	assert_int_equal(o.sync, 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		snprintf(line, sizeof(line), "--volume=v --sync=%s", row[i].name);
		assert_int_equal(parse(line), 0);
		assert_int_equal(o.sync, row[i].sync);
	}
	assert_int_equal(parse("--kvd=k --sync=none"), 0);
	assert_refused("--kvd=k --sync=dsync", "sync is for volumes and targets");
}

static void a_rate_is_of_reads_and_of_writes(void **state)
{
	(void)state;
	assert_int_equal(parse("--volume=v --rate=10m"), 0);
	assert_int_equal(o.rate_bytes[XB_RATE_READ], 10u << 20);
	assert_int_equal(o.rate_bytes[XB_RATE_WRITE], 10u << 20);
	assert_int_equal(parse("--volume=v --rate=1M/s,500k"), 0);
	assert_int_equal(o.rate_bytes[XB_RATE_READ], 1u << 20);
	assert_int_equal(o.rate_bytes[XB_RATE_WRITE], 500u << 10);
	assert_int_equal(parse("--volume=v --rate=,500k"), 0);
	assert_int_equal(o.rate_bytes[XB_RATE_READ], 0);
	assert_int_equal(o.rate_bytes[XB_RATE_WRITE], 500u << 10);
	assert_int_equal(parse("--volume=v --rate=0"), 0);
	assert_int_equal(o.rate_bytes[XB_RATE_READ], 0);
	assert_refused("--volume=v --rate=fast", "not a rate");
	assert_refused("--volume=v --rate=1M,2M,3M", "not a rate");
	assert_refused("--kvd=k --rate=1M", "--rate_iops");
}

/* The words of fio of which xbench has others. */
static void other_options_of_fio_are_explained(void **state)
{
	(void)state;
	assert_refused("--ioengine=libaio --volume=v", "--ioengine is an option of fio");
	assert_refused("--volume=v --filename /dev/sda", "use --volume=VOL");
	assert_refused("--thread", "each job is a thread");
	assert_refused("--volume=v --cpus-allowed=0-3", "use --cpus=LIST");
	assert_refused("--volume=v --blocksize=4k", "use --bs=SIZE");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_null(opt_find(xb_opts, others[i].name));
		assert_true(i == 0 || strcmp(others[i - 1].name, others[i].name) < 0);
	}
}

static void verify_only_and_verify_state_imply_verify(void **state)
{
	(void)state;
	assert_int_equal(parse("--volume=v"), 0);
	assert_int_equal(o.verify, 0);
	assert_int_equal(parse("--volume=v --verify_only --rw=write"), 0);
	assert_int_equal(o.verify, 1);
	assert_int_equal(parse("--volume=v --verify_state=f"), 0);
	assert_int_equal(o.verify, 1);
}

static void what_is_thrown_away_may_be_so_twice(void **state)
{
	(void)state;
	assert_int_equal(parse("--volume=v --output=/dev/null --write_iolog=/dev/null"), 0);
}

static void every_mode_has_fios_name(void **state)
{
	static const char *const modes[] = { "read", "write",  "randread", "randwrite",
					     "rw",   "randrw", "trim",     "randtrim" };
	char line[64];

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		snprintf(line, sizeof(line), "--volume=v --rw=%s", modes[i]);
		assert_int_equal(parse(line), 0);
		assert_int_equal(o.rw, i);
	}
}

static void what_makes_no_sense_is_refused_in_one_line(void **state)
{
	static const struct {
		const char *line, *why;
	} bad[] = {
		{ "", "--volume" },
		{ "--volume=v --target=p", "--volume" },
		{ "--volume= --target=p", "'' is not a name" },
		{ "--volume=v/1", "'v/1' is not a name" },
		{ "--volume=v --bs=1000", "multiple of 512" },
		{ "--volume=v --bs=2M", "out of range" },
		{ "--volume=v --bs=4k --bsrange=4k-8k", "exclude each other" },
		{ "--volume=v --bsrange=8k-4k", "smaller size first" },
		{ "--volume=v --bsrange=4k", "not a range" },
		{ "--volume=v --bsrange=100-4k", "out of range" },
		{ "--volume=v --bsrange=513-4k", "multiple of 512" },
		{ "--volume=v --size=1000", "multiple of 512" },
		{ "--volume=v --offset=1", "multiple of 512" },
		{ "--target=p --object_size=5000", "multiple of 4096" },
		{ "--volume=v --rw=randwright", "not one of" },
		{ "--volume=v --rwmixread=101", "out of range" },
		{ "--volume=v --opmix=sync:1", "not one of" },
		{ "--volume=v --opmix=flush", "OP:PERCENT" },
		{ "--volume=v --opmix=flush:x", "OP:PERCENT" },
		{ "--volume=v --opmix=flush:1x", "OP:PERCENT" },
		{ "--volume=v --opmix=flush:50,flush:60", "flush is given twice" },
		{ "--volume=v --opmix=flush:60,trim:60", "120 percent" },
		{ "--volume=v --opmix=copy:1", "--target" },
		{ "--volume=v --opmix=flush:50,info:50", "would not end" },
		{ "--volume=v --random_distribution=zipf:0", "zipf:T" },
		{ "--volume=v --random_distribution=zipf:9", "zipf:T" },
		{ "--volume=v --random_distribution=pareto:1", "zipf:T" },
		{ "--volume=v --random_distribution=zipf:nan", "zipf:T" },
		{ "--volume=v --time_based", "--runtime" },
		{ "--volume=v --verify=crc32c --verify_only --runtime=1s", "--verify_state" },
		{ "--volume=v --verify_only", "writes nothing" },
		{ "--volume=v --verify_only --rw=randrw --rwmixread=100", "writes nothing" },
		{ "--target=p --verify=crc32c --opmix=copy:1", "moves stamps" },
		{ "--volume=v --data=lend", "copy" },
		{ "--volume=v --numjobs=256 --iodepth=256", "32768" },
		{ "--volume=v --iodepth=0", "out of range" },
		{ "--volume=v --cpus=1-", "" },
		{ "--volume=v --sync=2", "not one of 0, 1, none, sync, dsync" },
		{ "--volume=v --time_based=2", "not yes or no, nor 1 or 0" },
		{ "--volume=v --do_verify=false", "not yes or no, nor 1 or 0" },
		{ "--volume=v --status-interval=999us", "at least 1ms" },
		{ "--volume=v --output=f --verify_state=f", "verify_state and output are one "
			"file" },
		{ "--volume=v --output=f --write_iolog=f", "write_iolog and output are one file" },
		{ "--volume=v --write_iolog=f --verify_state=f", "are one file" },
		{ "--volume=v --write_iolog=./f --output=f", "are one file" },
		{ "--volume=v --bogus=1", "bogus" },
		{ "--volume=v extra", "extra" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_refused(bad[i].line, bad[i].why);
}

static void a_range_must_lie_in_what_is_there(void **state)
{
	(void)state;
	assert_int_equal(parse("--volume=v --offset=1M"), 0);
	assert_int_equal(xb_options_fit(&o, 4u << 20, &err), 0);
	assert_int_equal(o.size, 3u << 20);
	assert_int_equal(parse("--volume=v --offset=1M --size=4M"), 0);
	assert_int_equal(xb_options_fit(&o, 4u << 20, &err), -EINVAL);
	assert_int_equal(parse("--volume=v --offset=4M"), 0);
	assert_int_equal(xb_options_fit(&o, 4u << 20, &err), -EINVAL);
	assert_int_equal(parse("--volume=v --numjobs=4 --offset_increment=1M --size=1M"), 0);
	assert_int_equal(xb_options_fit(&o, 4u << 20, &err), 0);
	assert_int_equal(xb_options_end(&o), 4u << 20);
	assert_int_equal(parse("--volume=v --numjobs=5 --offset_increment=1M --size=1M"), 0);
	assert_int_equal(xb_options_fit(&o, 4u << 20, &err), -EINVAL);
	assert_non_null(strstr(err.text, "offset_increment: it is at or beyond the end"));
	assert_int_equal(parse("--volume=v --bs=1M"), 0);
	assert_int_equal(xb_options_fit(&o, 4096, &err), -EINVAL);
	assert_int_equal(
		parse("--volume=v --numjobs=2 --offset=16383P --offset_increment=16383P"), 0);
	assert_int_equal(xb_options_fit(&o, 4096, &err), -EINVAL);
	assert_int_equal(parse("--volume=v --numjobs=200 --offset_increment=1000000T"), 0);
	assert_int_equal(xb_options_fit(&o, 4096, &err), -EINVAL);
}

static void the_signature_changes_with_what_is_written(void **state)
{
	static const char *const same = "--volume=v --rw=randwrite --number_ios=10 --size=1M";
	static const char *const other[] = {
		" --bs=8k",        " --randseed=2",
		" --numjobs=2",    " --iodepth=2",
		" --offset=4k",    " --rwmixread=10",
		" --opmix=trim:1", " --random_distribution=zipf:1.1",
		" --fsync=3",
	};
	char line[256];
	uint64_t first;

	(void)state;
	assert_int_equal(parse(same), 0);
	first = xb_options_signature(&o);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		snprintf(line, sizeof(line), "%s%s", same, other[i]);
		assert_int_equal(parse(line), 0);
		assert_int_not_equal(xb_options_signature(&o), first);
	}
	snprintf(line, sizeof(line), "%s --verify=crc32c --verify_only --output=x --cpus=0", same);
	assert_int_equal(parse(line), 0);
	assert_int_equal(xb_options_signature(&o), first);
}

static void a_kvd_has_options_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(parse("--kvd=k"), 0);
	assert_int_equal(o.rw, XB_RW_GET);
	assert_int_equal(o.kv.keys, 65536);
	assert_int_equal(o.kv.key_size, 16);
	assert_int_equal(o.kv.value_size, 1024);
	assert_int_equal(o.kv.value_max, 1024);
	assert_int_equal(parse("--kvd=k --rw=getput --rwmixread=80 --value_dist=exp:16k --keys=1M"
			       " --key_size=4k --numjobs=2 --iodepth=32 --data=loan --force"
			       " --random_distribution=zipf:1.1 --verify=crc32c"
			       " --opmix=flush:1,delete:2,add:3,cas:4,incr:5,exists:6"), 0);
	assert_true(o.kv.is_exp && o.kv.force);
	assert_int_equal(o.kv.value_size, 16384);
	assert_int_equal(o.kv.value_max, 16 * 16384);
	assert_int_equal(o.mix[XB_CAS], 4);
	assert_int_equal(xb_kv_counters(&o), 4096);
	assert_int_equal(parse("--kvd=k --rw=fill --value_dist=exp:900k"), 0);
	assert_int_equal(o.kv.value_max, XB_VALUE_SIZE_MAX);
	/* values may have been larger in the run that is verified */
	assert_int_equal(parse("--kvd=k --verify_only --verify_state=f"), 0);
	assert_int_equal(o.kv.value_max, XB_VALUE_SIZE_MAX);
}

static void what_a_kvd_has_not_is_refused_with_it(void **state)
{
	static const char *const all[] = { "--bs=4k", "--bsrange=4k-8k", "--size=1M",
		"--offset=4k", "--offset_increment=4k", "--objects=4", "--object_size=4M",
		"--sync=1", "--fsync=8", "--write_iolog=f", "--data=direct", "--rate=1M" };
	char line[80];

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(line, sizeof(line), "--kvd=k %s", all[i]);
		assert_refused(line, "a kvd has values by key");
	}
	assert_refused("--kvd=k --rw=randread", "rw: a kvd takes get");
	assert_refused("--kvd=k --opmix=trim:1", "'trim' is not one of flush, delete");
	assert_refused("--kvd=k --volume=v", "one of --volume");
	assert_refused("--kvd=k --value_size=1k --value_dist=exp:1k", "exclude each other");
	assert_refused("--kvd=k --value_dist=zipf:1k", "is not exp:MEAN");
	assert_refused("--kvd=k --value_dist=exp:0", "is not exp:MEAN");
	assert_refused("--kvd=k --value_dist=exp:2M", "is not exp:MEAN");
	assert_refused("--kvd=k --value_size=2M", "value_size");
	assert_refused("--kvd=k --key_size=64k", "key_size");
	assert_refused("--kvd=k --key_size=4 --keys=64k", "no room for");
	assert_refused("--kvd=k --value_size=63 --verify=crc32c", "no room for the stamp");
	assert_refused("--kvd=k --iodepth=2048", "at most 1024");
	assert_refused("--kvd=k --verify_only", "needs the --verify_state");
	assert_refused("--kvd=k --rw=put --opmix=incr:1 --verify_state=f", "keeps no counters");
	assert_refused("--kvd=k --rw=fill --runtime=1s", "fill puts each key once");
	assert_refused("--kvd=k --unchecked --verify=crc32c", "unchecked");
	assert_refused("--volume=v --once --data=direct", "once");
	assert_int_equal(parse("--kvd=k --once"), 0);
	assert_int_equal(parse("--volume=v --once --rw=randrw"), 0);
}

static void what_only_a_kvd_has_is_refused_without_one(void **state)
{
	static const char *const all[] = { "--keys=1k", "--key_size=8", "--value_size=1k",
		"--value_dist=exp:1k", "--force", "--unchecked" };
	char line[80];

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(line, sizeof(line), "--volume=v %s", all[i]);
		assert_refused(line, "is for a --kvd only");
	}
	assert_refused("--volume=v --rw=get", "for a --kvd only");
	assert_refused("--target=p --rw=fill", "for a --kvd only");
	assert_refused("--volume=v --opmix=cas:1", "'cas' is not one of flush, trim");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_those_of_the_manual),
		cmocka_unit_test(a_kvd_has_options_of_its_own),
		cmocka_unit_test(what_a_kvd_has_not_is_refused_with_it),
		cmocka_unit_test(what_only_a_kvd_has_is_refused_without_one),
		cmocka_unit_test(objects_are_those_of_a_target_only),
		cmocka_unit_test(every_option_of_the_commands_page_is_taken),
		cmocka_unit_test(fios_options_are_taken),
		cmocka_unit_test(flags_take_the_values_that_fio_has_for_them),
		cmocka_unit_test(sync_has_the_names_of_fio),
		cmocka_unit_test(a_rate_is_of_reads_and_of_writes),
		cmocka_unit_test(other_options_of_fio_are_explained),
		cmocka_unit_test(verify_only_and_verify_state_imply_verify),
		cmocka_unit_test(what_is_thrown_away_may_be_so_twice),
		cmocka_unit_test(every_mode_has_fios_name),
		cmocka_unit_test(what_makes_no_sense_is_refused_in_one_line),
		cmocka_unit_test(a_range_must_lie_in_what_is_there),
		cmocka_unit_test(the_signature_changes_with_what_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
