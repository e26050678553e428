/* options - see options.h. The table is all that --help, the manual's test and the parser know. */
#include "bench/xbench/plan/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/xbench/plan/fio_options.h"
#include "bench/xbench/plan/kv_options.h"
#include "peers/common/options/cli.h"
#include "peers/common/say/hint.h"

#define FIELD(f) offsetof(struct xb_options, f)

static const char *const rw_names[] = {
	[XB_RW_READ] = "read", [XB_RW_WRITE] = "write", [XB_RW_RANDREAD] = "randread",
	[XB_RW_RANDWRITE] = "randwrite", [XB_RW_RW] = "rw", [XB_RW_RANDRW] = "randrw",
	[XB_RW_TRIM] = "trim", [XB_RW_RANDTRIM] = "randtrim", [XB_RW_GET] = "get",
	[XB_RW_PUT] = "put", [XB_RW_GETPUT] = "getput", [XB_RW_FILL] = "fill", NULL
};
static const char *const data_names[] = {
	[XB_DATA_COPY] = "copy", [XB_DATA_LOAN] = "loan", [XB_DATA_DIRECT] = "direct", NULL
};
static const char *const direct_names[] = {
	[XB_DIRECT_NEVER] = "never", [XB_DIRECT_AUTO] = "auto", [XB_DIRECT_0] = "0",
	[XB_DIRECT_1] = "1", NULL
};
/* fio's names. Here 1, sync and dsync are the same, and so are 0 and none. */
static const char *const sync_names[] = {
	[XB_SYNC_0] = "0", [XB_SYNC_1] = "1", [XB_SYNC_NONE] = "none", [XB_SYNC_SYNC] = "sync",
	[XB_SYNC_DSYNC] = "dsync", NULL
};
static const char *const verify_names[] = { "none", "crc32c", NULL };
static const char *const format_names[] = {
	[XB_FORMAT_NORMAL] = "normal", [XB_FORMAT_JSON] = "json", NULL
};

#define STR(n, a, h) \
	{ \
		.name = #n, .kind = OPT_STR, .off = FIELD(n), .arg = a, .help = h, \
		.len = sizeof(((struct xb_options *)0)->n) \
	}
#define NAME(n, a, h) \
	{ \
		.name = #n, .kind = OPT_STR, .off = FIELD(n), .arg = a, .help = h, \
		.len = sizeof(((struct xb_options *)0)->n), .check = cli_check_name \
	}
#define NUM(n, k, d, lo, hi, a, h) \
	{ \
		.name = #n, .kind = k, .off = FIELD(n), .def = d, .min = lo, .max = hi, .arg = a, \
		.help = h \
	}
#define ENUM(n, d, list, h) \
	{ \
		.name = #n, .kind = OPT_ENUM, .off = FIELD(n), .def = d, .names = list, .help = h \
	}
#define BOOL(n, d, h) \
	{ \
		.name = #n, .kind = OPT_BOOL, .off = FIELD(n), .def = d, .flags = OPT_0_OR_1, \
		.help = h \
	}

const struct opt xb_opts[] = {
	NAME(segment, "NAME",
	     "segment, also -s NAME (else $XSEG_SEGMENT, else the only one there is, else xseg)"),
	OWNER_OPT(offsetof(struct xb_options, owner)),
	NAME(volume, "VOL", "volume to use"),
	NAME(target, "PEER", "peer to send to; xbench names the objects"),
	{ .name = "kvd", .kind = OPT_STR, .off = FIELD(kv.kvd), .arg = "NAME",
	  .len = XSEG_NAME_MAX, .check = cli_check_name,
	  .help = "store of values by key to use" },
	{ .name = "keys", .kind = OPT_SIZE, .off = FIELD(kv.keys), .arg = "N", .min = 1,
	  .max = XB_KEYS_MAX, .help = "with --kvd: number of keys (else 64k)" },
	{ .name = "key_size", .kind = OPT_SIZE, .off = FIELD(kv.key_size), .arg = "SIZE",
	  .min = 1, .max = XB_KEY_SIZE_MAX, .help = "with --kvd: size of a key (else 16)" },
	{ .name = "value_size", .kind = OPT_SIZE, .off = FIELD(kv.value_size), .arg = "SIZE",
	  .min = 1, .max = XB_VALUE_SIZE_MAX,
	  .help = "with --kvd: size of a value (else 1k)" },
	{ .name = "value_dist", .kind = OPT_STR, .off = FIELD(kv.value_dist), .arg = "exp:MEAN",
	  .len = sizeof(((struct xb_options *)0)->kv.value_dist),
	  .help = "with --kvd: sizes of values, exponential with this mean" },
	{ .name = "force", .kind = OPT_BOOL, .off = FIELD(kv.force), .flags = OPT_0_OR_1,
	  .help = "with --kvd: every change is on stable storage when it is answered" },
	{ .name = "unchecked", .kind = OPT_BOOL, .off = FIELD(kv.unchecked), .flags = OPT_0_OR_1,
	  .help = "with --kvd: the CRC of a value that is got is not checked" },
	NUM(objects, OPT_SIZE, NULL, 1, 1ull << 32, "N",
	    "with --target: number of objects (else 1024)"),
	NUM(object_size, OPT_SIZE, NULL, 4096, 1ull << 40, "SIZE",
	    "with --target: size of an object (else 4M)"),
	ENUM(rw, "read", rw_names, "kind of I/O"),
	NUM(rwmixread, OPT_PERCENT, "50", 0, 100, "PERCENT",
	    "part of reads in rw, randrw and getput"),
	STR(opmix, "OP:PERCENT,...",
	    "operations to mix in: flush, trim, write_zeroes, copy, info; with --kvd flush, "
	    "delete, add, cas, incr, exists"),
	NUM(bs, OPT_SIZE, NULL, 512, XSEG_REQ_BYTES, "SIZE",
	    "block size, 4k unless --bsrange is given"),
	STR(bsrange, "MIN-MAX", "random block sizes, multiples of MIN"),
	NUM(iodepth, OPT_UINT, "1", 1, 4096, "N", "I/Os in flight for each job"),
	NUM(numjobs, OPT_UINT, "1", 1, XB_MAX_JOBS, "N", "jobs, each a thread with a port"),
	NUM(size, OPT_SIZE, NULL, 512, 0, "SIZE",
	    "size of a job's range (else all after --offset)"),
	NUM(offset, OPT_SIZE, NULL, 0, 0, "SIZE", "where the range begins"),
	NUM(offset_increment, OPT_SIZE, NULL, 0, 0, "SIZE",
	    "distance between the offsets of a job and the next"),
	NUM(runtime, OPT_TIME, NULL, 0, 0, "TIME",
		"end after this time; at the end of the range, begin it again"),
	BOOL(time_based, NULL, "repeat the I/Os of --number_ios until the runtime is over"),
	NUM(number_ios, OPT_SIZE, NULL, 0, 1ull << 47, "N",
		"end each job after this number of I/Os"),
	NUM(ramp_time, OPT_TIME, NULL, 0, 0, "TIME", "run this long before counting begins"),
	{ .name = "data", .kind = OPT_ENUM, .off = FIELD(by.data), .def = "copy",
	  .names = data_names, .help = "how data moves" },
	{ .name = "direct", .kind = OPT_ENUM, .off = FIELD(by.direct), .def = "auto",
	  .names = direct_names,
	  .help = "read without a request, while that pays (fio's 0 and 1 mean auto: there is no "
		  "page cache)" },
	BOOL(once, NULL,
	     "a cache keeps no data of these reads and writes that it does not have already"),
	STR(random_distribution, "random|zipf:T", "distribution of random offsets (else random)"),
	ENUM(sync, "0", sync_names, "whether every write is FUA (fio's names)"),
	NUM(fsync, OPT_UINT, "0", 0, 0, "N", "flush after every N writes, and wait for it"),
	NUM(rate_iops, OPT_U64, "0", 0, 1000000000, "N",
	    "I/Os a second for each job (0: no limit)"),
	STR(rate, "RATE[,RATE]",
	    "bytes a second for each job, such as 10M; with a comma reads, then all others (0 or "
	    "nothing: no limit)"),
	ENUM(verify, "none", verify_names, "stamp data that is written, check data that is read"),
	BOOL(do_verify, "yes", "with --verify: at the end read all written data again"),
	BOOL(verify_only, NULL,
	     "only read and check the data of an earlier run; implies --verify"),
	STR(verify_state, "FILE",
	    "save which writes were acknowledged, or with --verify_only read that; implies "
	    "--verify"),
	STR(write_iolog, "FILE", "write each I/O to a file that fio can replay"),
	NUM(randseed, OPT_U64, "1", 0, 0, "N", "seed of the random numbers"),
	STR(cpus, "LIST", "CPUs for the jobs, in turn, such as 0,2-3"),
	{ .name = "status-interval", .kind = OPT_TIME, .off = FIELD(status_interval), .arg = "TIME",
	  .min = 1000000, .flags = OPT_OR_ZERO,
	  .help = "how often to print rates and add a sample to the JSON (else, or with 0: "
		  "never)" },
	NAME(name, "NAME", "name of the jobs in the results (else xbench.N)"),
	BOOL(group_reporting, NULL, "one result for all jobs together"),
	NUM(io_timeout, OPT_TIME, NULL, 0, 0, "TIME",
	    "give up after this time without an answer (else wait for ever)"),
	{ .name = "output-format", .kind = OPT_ENUM, .off = FIELD(output_format),
	  .names = format_names, .def = "normal", .help = "format of the results" },
	STR(output, "FILE", "file for the results (else standard output)"),
	BOOL(help, NULL, "print this"),
	BOOL(version, NULL, "print the version"),
	{ .name = NULL }
};

/* What the objects are that only a target has. */
static int choose_objects(struct xb_options *o, struct xseg_error *err)
{
	if (*o->volume && !*o->target && (o->objects || o->object_size))
		return xseg_fail(err, -EINVAL,
				 "%s is for a --target only, volumed chooses the objects of a "
				 "volume; leave it out",
				 o->objects ? "objects" : "object_size");
	if (!*o->target)
		return 0;
	if (!o->objects)
		o->objects = 1024;
	if (!o->object_size)
		o->object_size = 4 << 20;
	return 0;
}

/* ---- texts with an inner syntax ---------------------------------------------------------- */

static int parse_bsrange(struct xb_options *o, struct xseg_error *err)
{
	char low[sizeof(o->bsrange)];
	const char *dash = strchr(o->bsrange, '-');

	if (!*o->bsrange) {
		if (!o->bs)
			o->bs = 4096;
		o->bs_min = o->bs_max = o->bs;
		return 0;
	}
	if (o->bs)
		return xseg_fail(err, -EINVAL,
				 "bs and bsrange exclude each other; give one of them");
	snprintf(low, sizeof(low), "%.*s", dash ? (int)(dash - o->bsrange) : 0, o->bsrange);
	if (!dash || opt_parse_size(low, &o->bs_min) || opt_parse_size(dash + 1, &o->bs_max))
		return xseg_fail(err, -EINVAL, "bsrange: '%s' is not a range such as 512-256k",
				 o->bsrange);
	if (o->bs_min < XSEG_SECTOR || o->bs_min > o->bs_max || o->bs_max > XSEG_REQ_BYTES)
		return xseg_fail(
			err, -EINVAL,
			"bsrange: %s is out of range, it must be 512 to 1M, the smaller size first",
			o->bsrange);
	return 0;
}

static int parse_distribution(struct xb_options *o, struct xseg_error *err)
{
	const char *text = o->random_distribution;
	char *end;

	if (!*text || !strcmp(text, "random"))
		return 0;
	if (!strncmp(text, "zipf:", 5) && isdigit((unsigned char)text[5])) {
		o->zipf = strtod(text + 5, &end);
		if (!*end && o->zipf > 0 && o->zipf <= 5)
			return 0;
	}
	return xseg_fail(
		err, -EINVAL,
		"random_distribution: '%s' is not random or zipf:T with T above 0 and at most 5",
		text);
}

static const struct {
	const char *name;
	enum xb_op op;
} mixed[] = {
	{ "flush", XB_FLUSH }, { "trim", XB_TRIM }, { "write_zeroes", XB_ZEROES },
	{ "copy", XB_COPY }, { "info", XB_INFO }, { "delete", XB_DELETE }, { "add", XB_ADD },
	{ "cas", XB_CAS }, { "incr", XB_INCR }, { "exists", XB_EXISTS }
};

/* A flush is of all; the others are of a kvd, or of what is no kvd. */
static bool is_mixable(const struct xb_options *o, enum xb_op op)
{
	return op == XB_FLUSH || (op >= XB_DELETE) == xb_options_kv(o);
}

static int parse_mix_item(struct xb_options *o, const char *item, struct xseg_error *err)
{
	size_t i, len = strcspn(item, ":");
	unsigned percent = 0;
	int used = 0;

	for (i = 0; i < sizeof(mixed) / sizeof(mixed[0]); i++)
		if (strlen(mixed[i].name) == len && !strncmp(mixed[i].name, item, len) &&
			is_mixable(o, mixed[i].op))
			break;
	if (i == sizeof(mixed) / sizeof(mixed[0]))
		return xseg_fail(
			err, -EINVAL, "opmix: '%.*s' is not one of %s", (int)len, item,
			xb_options_kv(o) ? "flush, delete, add, cas, incr, exists"
					 : "flush, trim, write_zeroes, copy, info");
	if (!isdigit((unsigned char)item[len + (item[len] == ':')]) ||
	    sscanf(item + len, ":%3u%n", &percent, &used) != 1 || item[len + (size_t)used] ||
	    percent > 100)
		return xseg_fail(err, -EINVAL,
				 "opmix: '%s' is not OP:PERCENT with a percentage of 0 to 100",
				 item);
	if (o->mix[mixed[i].op])
		return xseg_fail(err, -EINVAL, "opmix: %s is given twice; give it once",
				 mixed[i].name);
	o->mix[mixed[i].op] = percent;
	return 0;
}

static int parse_opmix(struct xb_options *o, struct xseg_error *err)
{
	char text[sizeof(o->opmix)], *item, *save = NULL;
	uint32_t i, sum = 0;
	int rc;

	snprintf(text, sizeof(text), "%s", o->opmix);
	for (item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		rc = parse_mix_item(o, item, err);
		if (rc)
			return rc;
	}
	for (i = 0; i < XB_NR_OPS; i++)
		sum += o->mix[i];
	if (sum > 100)
		return xseg_fail(err, -EINVAL,
			"opmix: %s adds up to %u percent, it must be at most 100",
				 o->opmix, sum);
	return 0;
}

static int parse_cpus(struct xb_options *o, struct xseg_error *err)
{
	o->nr_cpus = cpus_parse(o->cpus, o->cpu, err);
	return o->nr_cpus < 0 ? o->nr_cpus : 0;
}

static int parse_rate(struct xb_options *o, struct xseg_error *err)
{
	char text[sizeof(o->rate)], *comma, *part[XB_NR_RATES];

	snprintf(text, sizeof(text), "%s", o->rate);
	comma = strchr(text, ',');
	part[XB_RATE_READ] = text;
	part[XB_RATE_WRITE] = comma ? comma + 1 : text;
	if (comma)
		*comma = '\0';
	for (uint32_t i = 0; i < XB_NR_RATES; i++)
		if (*part[i] && opt_parse_rate(part[i], &o->rate_bytes[i]))
			return xseg_fail(err, -EINVAL,
				"rate: '%s' is not a rate such as 200M/s, or two such as 10M,5M; "
				"--rate_iops limits I/Os a second",
				o->rate);
	return 0;
}

/* There is no page cache to go past, so fio's two values change nothing. */
static int choose_direct(struct xb_options *o, struct xseg_error *err)
{
	(void)err;
	if (o->by.direct == XB_DIRECT_0 || o->by.direct == XB_DIRECT_1)
		o->by.direct = XB_DIRECT_AUTO;
	return 0;
}

static int choose_sync(struct xb_options *o, struct xseg_error *err)
{
	(void)err;
	o->sync = o->sync == XB_SYNC_0 || o->sync == XB_SYNC_NONE ? XB_SYNC_0 : XB_SYNC_1;
	return 0;
}

/* ---- checks ------------------------------------------------------------------------------ */

static int check_sectors(const struct xb_options *o, struct xseg_error *err)
{
	const struct {
		const char *name;
		uint64_t bytes, unit;
	} all[] = {
		{ *o->bsrange ? "bsrange" : "bs", o->bs_min, XSEG_SECTOR },
		{ *o->bsrange ? "bsrange" : "bs", o->bs_max, XSEG_SECTOR },
		{ "size", o->size, XSEG_SECTOR },
		{ "offset", o->offset, XSEG_SECTOR },
		{ "offset_increment", o->offset_increment, XSEG_SECTOR },
		{ "object_size", o->object_size, XSEG_PAGE_SIZE },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].bytes % all[i].unit)
			return xseg_fail(err, -EINVAL,
					 "%s: %" PRIu64 " is not a multiple of %" PRIu64 " bytes",
					 all[i].name, all[i].bytes, all[i].unit);
	return 0;
}

static bool ends_by_bytes(const struct xb_options *o)
{
	return !o->runtime && !o->number_ios;
}

bool xb_options_write(const struct xb_options *o)
{
	bool reads = o->rw == XB_RW_READ || o->rw == XB_RW_RANDREAD || o->rw == XB_RW_GET ||
		     ((o->rw == XB_RW_RW || o->rw == XB_RW_RANDRW || o->rw == XB_RW_GETPUT) &&
			     o->rwmixread == 100);

	return !reads || o->mix[XB_TRIM] || o->mix[XB_ZEROES] || o->mix[XB_DELETE] ||
	       o->mix[XB_ADD] || o->mix[XB_CAS] || o->mix[XB_INCR];
}

static int check_mix_and_verify(const struct xb_options *o, struct xseg_error *err)
{
	if (o->mix[XB_COPY] && *o->volume)
		return xseg_fail(
			err, -EINVAL,
			"opmix: copy works on objects only; use --target instead of --volume");
	if (o->verify && o->mix[XB_COPY])
		return xseg_fail(
			err, -EINVAL,
			"opmix: copy moves stamps away from where verify expects them; leave out "
			"copy or verify");
	if (o->verify_only && !*o->verify_state && o->runtime)
		return xseg_fail(
			err, -EINVAL,
			"verify_only: how much a run with --runtime wrote is not known; give the "
			"--verify_state that it saved");
	if (o->verify_only && !*o->verify_state && !xb_options_write(o))
		return xseg_fail(
			err, -EINVAL,
			"verify_only: a run with these options writes nothing, so there is nothing "
			"to verify; give its --verify_state, or all options of the run that wrote");
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Where a file that is not there is to be: *dir; its name in it is returned. NULL: nowhere. */
static const char *place_of(const char *path, struct stat *dir)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];

	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash + 1 - path) : 1,
		 slash ? path : ".");
	return stat(parent, dir) ? NULL : slash ? slash + 1 : path;
}

/* What is there and no regular file takes what both write: /dev/null. */
static bool is_one_file(const char *a, const char *b)
{
	const char *name_a, *name_b;
	struct stat at, bt;

	if (!*a || !*b)
		return false;
	if (!stat(a, &at))
		return S_ISREG(at.st_mode) && !stat(b, &bt) && is_same(&at, &bt);
	name_a = place_of(a, &at);
	name_b = place_of(b, &bt);
	return name_a && name_b && !strcmp(name_a, name_b) && is_same(&at, &bt);
}

/* Else the one that is written later has its beginning over that of the other, or its place. */
static int check_files(const struct xb_options *o, struct xseg_error *err)
{
	const struct {
		const char *name, *path;
	} all[] = { { "verify_state", o->verify_state },
		    { "write_iolog", o->write_iolog },
		    { "output", o->output } };

	for (size_t i = 1; i < sizeof(all) / sizeof(all[0]); i++)
		for (size_t j = 0; j < i; j++)
			if (is_one_file(all[i].path, all[j].path))
				return xseg_fail(err, -EINVAL,
						 "%s and %s are one file; give each its own",
						 all[j].name, all[i].name);
	return 0;
}

static int check_together(const struct xb_options *o, struct xseg_error *err)
{
	int rc = check_files(o, err);

	if (rc)
		return rc;
	if (!!*o->volume + !!*o->target + xb_options_kv(o) != 1)
		return xseg_fail(err, -EINVAL,
			"give one of --volume=VOL, --target=PEER and --kvd=NAME");
	if (o->time_based && !o->runtime)
		return xseg_fail(err, -EINVAL, "time_based needs a --runtime");
	if (o->once && o->by.data == XB_DATA_DIRECT)
		return xseg_fail(err, -EINVAL,
			"once: a read without a request says nothing to a cache; leave out --once "
			"or --data=direct");
	if (!xb_options_kv(o) && ends_by_bytes(o) && o->mix[XB_FLUSH] + o->mix[XB_INFO] >= 100)
		return xseg_fail(
			err, -EINVAL,
			"opmix: flush and info move no bytes, so the run would not end; give"
			" --number_ios or --runtime");
	if (o->numjobs * o->iodepth > XB_MAX_INFLIGHT)
		return xseg_fail(err, -EINVAL, "numjobs * iodepth is %u, it must be at most %u",
				 o->numjobs * o->iodepth, XB_MAX_INFLIGHT);
	rc = xb_kv_options_together(o, err);
	return rc ? rc : check_mix_and_verify(o, err);
}

int xb_options_parse(struct xb_options *o, int argc, char **argv, struct xseg_error *err)
{
	const struct cli_group groups[] = { { xb_opts, o }, { NULL, NULL } };
	static int (*const steps[])(struct xb_options *, struct xseg_error *) = {
		choose_sync, xb_kv_options, choose_objects, parse_bsrange, parse_distribution,
		parse_opmix, parse_cpus, parse_rate, choose_direct
	};
	int rc;

	memset(o, 0, sizeof(*o));
	opt_set_defaults(xb_opts, o);
	rc = xb_fio_options(xb_opts, argc, argv, err);
	if (!rc)
		rc = cli_parse(groups, argc, argv, err);
	if (rc < 0 || o->help || o->version)
		return rc < 0 ? rc : 0;
	if (rc < argc)
		return xseg_fail(err, -EINVAL, "'%.60s' is not an option", argv[rc]);
	if (o->verify_only || *o->verify_state)
		o->verify = 1;
	if (!*o->segment)
		snprintf(o->segment, sizeof(o->segment), "%s", hint_default_segment());
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		rc = steps[i](o, err);
		if (rc)
			return rc;
	}
	rc = check_sectors(o, err);
	return rc ? rc : check_together(o, err);
}

uint64_t xb_options_end(const struct xb_options *o)
{
	return o->offset + (o->numjobs - 1) * o->offset_increment + o->size;
}

int xb_options_fit(struct xb_options *o, uint64_t total_bytes, struct xseg_error *err)
{
	const char *what = *o->volume ? o->volume : "the set of objects";
	char total[24], size[24], other[24];
	uint64_t last, end;

	opt_format_size(total_bytes, total, sizeof(total));
	if (__builtin_mul_overflow(o->offset_increment, (uint64_t)o->numjobs - 1, &last) ||
	    __builtin_add_overflow(last, o->offset, &last) || last >= total_bytes)
		return xseg_fail(err, -EINVAL,
				 "%s: it is at or beyond the end, %s has %s; give a smaller one",
				 o->offset < total_bytes ? "offset_increment" : "offset", what,
				 total);
	if (!o->size)
		o->size = (total_bytes - last) / XSEG_SECTOR * XSEG_SECTOR;
	opt_format_size(o->size, size, sizeof(size));
	if (__builtin_add_overflow(last, o->size, &end) || end > total_bytes) {
		opt_format_size(last, other, sizeof(other));
		return xseg_fail(err, -EINVAL,
				 "size: %s from offset %s reach beyond the end of %s, which has "
				 "%s; give a smaller size, or none to use all",
				 size, other, what, total);
	}
	if (o->bs_max > o->size) {
		opt_format_size(o->bs_max, other, sizeof(other));
		return xseg_fail(err, -EINVAL,
				 "bs: a block of %s does not fit into a size of %s; give a smaller"
				 " one",
				 other, size);
	}
	return 0;
}

uint64_t xb_options_signature(const struct xb_options *o)
{
	char text[512];
	int len = snprintf(text, sizeof(text),
			   "%u %u %s %" PRIu64 " %" PRIu64 " %u %u %" PRIu64 " %" PRIu64 " %" PRIu64
			   " %" PRIu64 " %a %u %" PRIu64 " %" PRIu64,
			   o->rw, o->rwmixread, o->opmix, o->bs_min, o->bs_max, o->iodepth,
			   o->numjobs, o->size, o->offset, o->offset_increment, o->number_ios,
			   o->zipf, o->fsync, o->randseed, *o->target ? o->object_size : 0);

	return xseg_hash(text, (size_t)len);
}
