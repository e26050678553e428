/* rival.c - main() of the programs that load a store of keys and values: options, and results in
 * xbench's JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rivals/rival.h"

static const char *const rw_names[] = {
	[RIVAL_GET] = "get", [RIVAL_PUT] = "put", [RIVAL_MIXED] = "mixed", [RIVAL_FILL] = "fill",
	[RIVAL_READ] = "read", [RIVAL_BOTH] = "both", [RIVAL_COUNTER] = "counter",
	[RIVAL_SCAN] = "scan", NULL
};

#define AT(f) offsetof(struct rival_options, f)
static const struct opt rival_opts[] = {
	{ .name = "rw", .kind = OPT_ENUM, .off = AT(rw), .names = rw_names, .def = "get",
	  .help = "at random: get, put, mixed; each key once: fill, read, both, counter, scan" },
	{ .name = "path", .kind = OPT_STR, .off = AT(path),
	  .len = sizeof(((struct rival_options *)0)->path), .arg = "PATH",
	  .help = "the server's socket; of a library: its folder; of xseg: the segment" },
	{ .name = "kvd", .kind = OPT_STR, .off = AT(kvd),
	  .len = sizeof(((struct rival_options *)0)->kvd), .arg = "NAME",
	  .help = "of xseg: which kvd; else the only one" },
	{ .name = "keys", .kind = OPT_SIZE, .off = AT(keys), .min = 1, .max = 1ull << 40,
	  .def = "16k", .arg = "N", .help = "number of keys" },
	{ .name = "key_size", .kind = OPT_SIZE, .off = AT(key_size), .min = 23, .max = KEY_MAX,
	  .flags = OPT_OR_ZERO, .def = "0", .arg = "SIZE", .help = "of a key; 0: 23 bytes" },
	{ .name = "value_size", .kind = OPT_SIZE, .off = AT(value_size), .max = 1ull << 36,
	  .def = "4k", .arg = "SIZE", .help = "of a value" },
	{ .name = "exponential", .kind = OPT_BOOL, .off = AT(exponential),
	  .help = "sizes of values are exponential, and --value_size is their mean" },
	{ .name = "threads", .kind = OPT_UINT, .off = AT(threads), .min = 1, .max = MAX_THREADS,
	  .def = "1", .arg = "N", .help = "threads; of counter: those that put" },
	{ .name = "readers", .kind = OPT_UINT, .off = AT(readers), .max = MAX_THREADS, .def = "0",
	  .arg = "N", .help = "of counter: threads that get" },
	{ .name = "iodepth", .kind = OPT_UINT, .off = AT(iodepth), .min = 1, .max = MAX_DEPTH,
	  .def = "1", .arg = "N",
	  .help = "operations in flight of each thread, or pieces of a large value; a library has "
		  "one" },
	{ .name = "connections", .kind = OPT_UINT, .off = AT(connections), .min = 1,
	  .max = MAX_DEPTH, .def = "1", .arg = "N", .help = "of each thread to a server" },
	{ .name = "rwmixread", .kind = OPT_PERCENT, .off = AT(rwmixread), .max = 100, .def = "80",
	  .arg = "PERCENT", .help = "of mixed: so many are gets" },
	{ .name = "force", .kind = OPT_BOOL, .off = AT(force),
	  .help = "xseg, a library: a put is on stable storage before it is back" },
	{ .name = "cache", .kind = OPT_SIZE, .off = AT(cache), .max = 1ull << 40, .def = "64M",
	  .arg = "SIZE", .help = "a library's cache" },
	{ .name = "direct", .kind = OPT_BOOL, .off = AT(direct),
	  .help = "a library bypasses the page cache" },
	{ .name = "warm", .kind = OPT_BOOL, .off = AT(warm),
	  .help = "every value is got once before" },
	{ .name = "may_drop", .kind = OPT_BOOL, .off = AT(may_drop),
	  .help = "a get that finds nothing is counted, and is no error" },
	BENCH_RUNTIME(AT(runtime_ns)),
	BENCH_RAMP_TIME(AT(ramp_ns), "50ms"),
	BENCH_RANDSEED(AT(randseed)),
	BENCH_CPUS(AT(cpus.text), "CPUs for the threads, in turn"),
	BENCH_HELP(AT(help)),
	{ .name = NULL }
};
#undef AT

static int check(void *options, struct xseg_error *err)
{
	struct rival_options *o = options;

	if (!*o->path)
		return xseg_fail(err, -EINVAL, "give --path");
	if (o->readers && o->rw != RIVAL_COUNTER)
		return xseg_fail(err, -EINVAL, "--readers is for --rw=counter");
	if (o->threads + o->readers > MAX_THREADS)
		return xseg_fail(err, -EINVAL, "--threads and --readers are %u at most",
			MAX_THREADS);
	if (o->connections > o->iodepth)
		return xseg_fail(err, -EINVAL, "--connections is --iodepth at most");
	if (o->rw == RIVAL_SCAN && !rival_store.scan)
		return xseg_fail(err, -EINVAL, "--rw=scan is for libraries");
	return bench_cpus_parse(&o->cpus, err);
}

/* ---- results ----------------------------------------------------------------------------- */

static const double percentiles[] = { 50, 90, 95, 99, 99.9 };
#define NR_PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static uint64_t a_second(uint64_t n, uint64_t ns)
{
	return ns ? (uint64_t)((unsigned __int128)n * 1000000000u / ns) : 0;
}

static void print_figures(const char *name, const struct rival_count *c)
{
	printf("      \"%s\": {\"total_ios\": %" PRIu64 ", \"io_bytes\": %" PRIu64
	       ", \"iops\": %" PRIu64 ", \"bw_bytes\": %" PRIu64 ", \"runtime_ns\": %" PRIu64
	       ", \"misses\": %" PRIu64 ",\n        \"lat_ns\": {\"mean\": %" PRIu64
	       ", \"percentile\": {",
		name, c->ios, c->bytes, a_second(c->ios, c->ns), a_second(c->bytes, c->ns), c->ns,
		c->misses, c->ios ? xhist_mean(&c->lat) : 0);
	for (size_t i = 0; i < NR_PERCENTILES; i++)
		printf("%s\"%.6f\": %" PRIu64, i ? ", " : "", percentiles[i],
			xhist_percentile(&c->lat, percentiles[i]));
	printf("}}}");
}

/* All threads together, as one job. Returns how many operations failed or were wrong. */
static uint64_t print_json(const struct rival_options *o, const struct rival_result *result)
{
	const struct rival_count *reads = &result->kind[RIVAL_READS];
	const struct rival_count *writes = &result->kind[RIVAL_WRITES];
	uint64_t bad = reads->failed + reads->wrong + writes->failed;
	char text[256];

	bad += o->may_drop || o->rw == RIVAL_COUNTER ? 0 : reads->misses;
	printf("{\n  \"bench-rival version\": \"%s\",\n  \"store\": \"%s\",\n  \"options\": {",
		XSEG_VERSION, rival_store.name());
	for (const struct opt *opt = rival_opts; opt->off != offsetof(struct rival_options, help);
		opt++) {
		opt_get(opt, o, text, sizeof(text));
		printf("%s\"%s\": \"%s\"", opt == rival_opts ? "" : ", ", opt->name, text);
	}
	printf("},\n  \"jobs\": [\n    {\"jobname\": \"rival\", \"error\": %d, "
	       "\"total_err\": %" PRIu64 ", \"wrong\": %" PRIu64 ",\n",
		bad ? EIO : 0, bad, reads->wrong);
	print_figures("read", reads);
	printf(",\n");
	print_figures("write", writes);
	printf("}\n  ]\n}\n");
	return bad;
}

static int run(void *options, struct xseg_error *err)
{
	static struct rival_result result;
	const struct rival_options *o = options;
	uint64_t bad;
	int rc = rival_run(o, &result, err);

	if (rc)
		return rc;
	bad = print_json(o, &result);
	if (!bad)
		return 0;
	return xseg_fail(err, -EIO,
		"%" PRIu64 " operations failed, or were of other data; fill the store with "
		"--rw=fill first", bad);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = { .name = "bench-rival",
		.usage = "bench-rival-STORE --path=PATH [OPTION...]\n"
			 "Loads a store of keys and values, and checks every value that it gets.",
		.options = rival_opts, .check = check, .run = run };
	static struct rival_options o;

	return bench_main(&program, &o, argc, argv);
}
