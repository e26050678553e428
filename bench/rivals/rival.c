/* rival.c - main() of the clients for other people's stores: options, and results in xbench's
 * JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rivals/rival.h"

static const char *const protocol_names[] = { [REDIS] = "redis", [MEMCACHED] = "memcached", NULL };

#define AT(f) offsetof(struct rival_options, f)
static const struct opt rival_opts[] = {
	BENCH_RW(AT(rw)),
	{ .name = "iodepth", .kind = OPT_UINT, .off = AT(iodepth), .min = 1, .max = MAX_DEPTH,
	  .def = "1", .arg = "N",
	  .help = "requests in flight, of each connection; of a library: threads" },
	{ .name = "connections", .kind = OPT_UINT, .off = AT(connections), .min = 1, .max = 1024,
	  .def = "1", .arg = "N", .help = "connections to a server, all of one thread" },
	{ .name = "size", .kind = OPT_SIZE, .off = AT(size), .min = VALUE_BYTES, .max = 1ull << 40,
	  .def = "64M", .arg = "SIZE", .help = "size of the set, in values of 4k" },
	{ .name = "path", .kind = OPT_STR, .off = AT(path),
	  .len = sizeof(((struct rival_options *)0)->path), .arg = "PATH",
	  .help = "the server's socket; of a library: its folder" },
	{ .name = "protocol", .kind = OPT_ENUM, .off = AT(protocol), .names = protocol_names,
	  .def = "redis", .help = "protocol of the server" },
	{ .name = "cache", .kind = OPT_SIZE, .off = AT(cache), .max = 1ull << 40, .def = "64M",
	  .arg = "SIZE", .help = "a library's cache" },
	{ .name = "direct", .kind = OPT_BOOL, .off = AT(direct),
	  .help = "a library bypasses the page cache" },
	{ .name = "fill", .kind = OPT_BOOL, .off = AT(fill),
	  .help = "write every value once, and nothing else" },
	{ .name = "warm", .kind = OPT_BOOL, .off = AT(warm),
	  .help = "a library reads every value once before" },
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
	return bench_cpus_parse(&o->cpus, err);
}

/* ---- what the clients use ---------------------------------------------------------------- */

void rival_clock_start(struct rival_clock *c, const struct rival_options *o)
{
	c->from_ns = bench_now_ns() + o->ramp_ns;
	c->end_ns = c->from_ns + o->runtime_ns;
	c->counting = false;
}

bool rival_count(struct rival_clock *c, struct rival_result *r, uint64_t now_ns, uint32_t n)
{
	if (c->counting) {
		r->ios += n;
		r->ns = now_ns - c->from_ns;
	} else if (now_ns >= c->from_ns) {
		c->counting = true;
		c->from_ns = now_ns;
	}
	return now_ns < c->end_ns || !r->ios;	/* however long the CPU was another's */
}

size_t rival_key(char key[KEY_BYTES], uint64_t block)
{
	return (size_t)snprintf(key, KEY_BYTES, "xbench:%016" PRIx64, block);
}

void rival_value(uint8_t value[VALUE_BYTES], uint64_t block)
{
	memcpy(value, &block, sizeof(block));
}

bool rival_value_is(const void *value, size_t bytes, uint64_t block)
{
	return bytes == VALUE_BYTES && !memcmp(value, &block, sizeof(block));
}

/* ---- results ----------------------------------------------------------------------------- */

static const double percentiles[] = { 50, 90, 95, 99, 99.9 };
#define NR_PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static void print_figures(const char *name, const struct rival_result *r)
{
	uint64_t iops = r->ns ? (uint64_t)((unsigned __int128)r->ios * 1000000000u / r->ns) : 0;

	printf("      \"%s\": {\"total_ios\": %" PRIu64 ", \"io_bytes\": %" PRIu64
	       ", \"iops\": %" PRIu64 ", \"bw_bytes\": %" PRIu64 ", \"runtime_ns\": %" PRIu64
	       ",\n        \"lat_ns\": {\"mean\": %" PRIu64 ", \"percentile\": {",
		name, r->ios, r->ios * VALUE_BYTES, iops, iops * VALUE_BYTES, r->ns,
		r->ios ? xhist_mean(&r->lat) : 0);
	for (size_t i = 0; i < NR_PERCENTILES; i++)
		printf("%s\"%.6f\": %" PRIu64, i ? ", " : "", percentiles[i],
			xhist_percentile(&r->lat, percentiles[i]));
	printf("}}}");
}

/* All threads together, as one job. Returns how many I/Os were wrong. */
static uint64_t print_json(const struct rival_options *o, struct rival_result *result, uint32_t nr)
{
	static struct rival_result none, all;
	char text[256];

	xhist_init(&none.lat);
	xhist_init(&all.lat);
	for (uint32_t i = 0; i < nr; i++) {
		xhist_merge(&all.lat, &result[i].lat);
		all.ios += result[i].ios;
		all.wrong += result[i].wrong;
		all.ns = result[i].ns > all.ns ? result[i].ns : all.ns;
	}
	printf("{\n  \"bench-rival version\": \"%s\",\n  \"options\": {", XSEG_VERSION);
	for (const struct opt *opt = rival_opts; opt->off != offsetof(struct rival_options, help);
		opt++) {
		opt_get(opt, o, text, sizeof(text));
		printf("%s\"%s\": \"%s\"", opt == rival_opts ? "" : ", ", opt->name, text);
	}
	printf("},\n  \"jobs\": [\n    {\"jobname\": \"rival\", \"error\": %d, "
	       "\"total_err\": %" PRIu64 ",\n",
		all.wrong ? EIO : 0, all.wrong);
	print_figures("read", o->rw == RANDREAD ? &all : &none);
	printf(",\n");
	print_figures("write", o->rw == RANDWRITE ? &all : &none);
	printf("}\n  ]\n}\n");
	return all.wrong;
}

static int run(void *options, struct xseg_error *err)
{
	static struct rival_result result[MAX_DEPTH];
	const struct rival_options *o = options;
	uint64_t wrong;
	uint32_t nr = 0;
	int rc;

	for (uint32_t i = 0; i < MAX_DEPTH; i++)
		xhist_init(&result[i].lat);
	rc = rival_run(o, result, &nr, err);
	if (rc)
		return rc;
	wrong = print_json(o, result, nr);
	return !wrong ? 0 : xseg_fail(err, -EIO, "%" PRIu64 " I/Os failed, or were of other data; "
		"fill the store with --fill first", wrong);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = { .name = "bench-rival",
		.usage = "bench-rival-STORE --path=PATH [OPTION...]\n"
			 "Loads a store of keys and values as xbench would.",
		.options = rival_opts, .check = check, .run = run };
	static struct rival_options o;

	return bench_main(&program, &o, argc, argv);
}
