/* rival.c - main() of the clients for other people's stores: options, and results in xbench's
 * JSON. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/rivals/rival.h"
#include "peers/common/options/cli.h"

static const char *const rw_names[] = { [RANDREAD] = "randread", [RANDWRITE] = "randwrite", NULL };
static const char *const protocol_names[] = { [REDIS] = "redis", [MEMCACHED] = "memcached", NULL };

#define AT(f) offsetof(struct rival_options, f)
static const struct opt rival_opts[] = {
	{ .name = "rw", .kind = OPT_ENUM, .off = AT(rw), .names = rw_names, .def = "randread",
	  .help = "kind of I/O" },
	{ .name = "iodepth", .kind = OPT_UINT, .off = AT(iodepth), .min = 1, .max = MAX_DEPTH,
	  .def = "1", .arg = "N", .help = "requests in flight; of a library: threads" },
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
	{ .name = "runtime", .kind = OPT_TIME, .off = AT(runtime_ns), .min = 1000000,
	  .max = 3600000000000ull, .def = "1s", .arg = "TIME",
	  .help = "the time that is measured" },
	{ .name = "ramp_time", .kind = OPT_TIME, .off = AT(ramp_ns), .max = 60000000000ull,
	  .def = "50ms", .arg = "TIME", .help = "run this long before counting begins" },
	{ .name = "randseed", .kind = OPT_U64, .off = AT(randseed), .def = "1", .arg = "N",
	  .help = "seed" },
	{ .name = "cpus", .kind = OPT_STR, .off = AT(cpus),
	  .len = sizeof(((struct rival_options *)0)->cpus), .arg = "LIST", .check = cpus_check,
	  .help = "CPUs for the threads, in turn" },
	{ .name = "help", .kind = OPT_BOOL, .off = AT(help), .help = "print this" },
	{ .name = NULL }
};
#undef AT

static int parse(struct rival_options *o, int argc, char **argv, struct xseg_error *err)
{
	const struct cli_group groups[] = { { rival_opts, o }, { NULL, NULL } };
	int rc;

	opt_set_defaults(rival_opts, o);
	rc = cli_parse(groups, argc, argv, err);
	if (rc < 0 || o->help)
		return rc < 0 ? rc : 0;
	rc = cli_only_options(rc, argc, argv, err);
	if (rc)
		return rc;
	if (!*o->path)
		return xseg_fail(err, -EINVAL, "give --path");
	o->nr_cpus = cpus_parse(o->cpus, o->cpu, err);
	return o->nr_cpus < 0 ? o->nr_cpus : 0;
}

/* ---- what the clients use ---------------------------------------------------------------- */

uint64_t rival_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void rival_clock_start(struct rival_clock *c, const struct rival_options *o)
{
	c->from_ns = rival_now_ns() + o->ramp_ns;
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

/* (splitmix64: G. Steele et al., "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014) */
uint64_t rival_next_block(uint64_t *state, uint64_t nr_blocks)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint64_t)((unsigned __int128)(x ^ x >> 31) * nr_blocks >> 64);
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

void rival_pin(const struct rival_options *o, uint32_t n)
{
	cpu_set_t set;

	if (!o->nr_cpus)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)o->cpu[n % (uint32_t)o->nr_cpus], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fprintf(stderr, "bench-rival: not pinned to CPU %d: %s\n",
			o->cpu[n % (uint32_t)o->nr_cpus], strerror(errno));
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

int main(int argc, char **argv)
{
	static struct rival_options o;
	static struct rival_result result[MAX_DEPTH];
	struct xseg_error err = { "" };
	uint64_t wrong;
	uint32_t nr = 0;
	int code = 2, rc = parse(&o, argc, argv, &err);

	if (!rc && o.help) {
		printf("Usage: %s --path=PATH [OPTION...]\nLoads a store of keys and values as "
			"xbench would.\n",
			argv[0]);
		cli_print_options(stdout, rival_opts);
		return 0;
	}
	if (!rc) {
		code = 1;
		for (uint32_t i = 0; i < MAX_DEPTH; i++)
			xhist_init(&result[i].lat);
		rc = rival_run(&o, result, &nr, &err);
	}
	if (rc) {
		fprintf(stderr, "bench-rival: %s\n", err.text);
		return code;
	}
	wrong = print_json(&o, result, nr);
	if (wrong)
		fprintf(stderr,
			"bench-rival: %" PRIu64 " I/Os failed, or were of other data; fill the "
			"store with --fill first\n",
			wrong);
	return fflush(stdout) || wrong ? 1 : 0;
}
