/* limit_report.c - the results of bench-limit, in xbench's JSON or in a line for people. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "bench/limits/limit.h"

static const double percentiles[] = { 50, 90, 95, 99, 99.9, 99.99 };
#define NR_PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static uint64_t in_ns(const struct result *r, uint64_t ticks)
{
	return r->ticks ? (uint64_t)((unsigned __int128)ticks * r->ns / r->ticks) : 0;
}

static uint64_t iops_of(const struct result *r)
{
	return r->ns ? (uint64_t)((unsigned __int128)r->ios * 1000000000u / r->ns) : 0;
}

/* xbench's fields. */
static void print_figures(const char *name, uint64_t bs, const struct result *r)
{
	printf("      \"%s\": {\"total_ios\": %" PRIu64 ", \"io_bytes\": %" PRIu64
	       ", \"iops\": %" PRIu64 ", \"bw_bytes\": %" PRIu64 ", \"runtime_ns\": %" PRIu64 ",\n",
	       name, r->ios, r->ios * bs, iops_of(r), iops_of(r) * bs, r->ns);
	printf("        \"lat_ns\": {\"min\": %" PRIu64 ", \"max\": %" PRIu64 ", \"mean\": %" PRIu64
	       ", \"N\": %" PRIu64 ", \"percentile\": {", r->ios ? in_ns(r, r->lat.min) : 0,
	       in_ns(r, r->lat.max), in_ns(r, xhist_mean(&r->lat)), r->ios);
	for (size_t i = 0; i < NR_PERCENTILES; i++)
		printf("%s\"%.6f\": %" PRIu64, i ? ", " : "", percentiles[i],
		       in_ns(r, xhist_percentile(&r->lat, percentiles[i])));
	printf("}}}");
}

static void print_job_json(const struct limit *l, uint32_t nr)
{
	static const struct result none;
	const struct result *r = &l->result[nr];

	printf("    {\"jobname\": \"limit.%u\", \"error\": %d, \"total_err\": %" PRIu64 ",\n", nr,
	       r->wrong ? EIO : 0, r->wrong);
	print_figures("read", l->o->bs, l->o->rw == RANDREAD ? r : &none);
	printf(",\n");
	print_figures("write", l->o->bs, l->o->rw == RANDWRITE ? r : &none);
	printf("}");
}

/* What a file is called may have anything in it. */
static void print_text(const char *text)
{
	putchar('"');
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < ' ')
			printf("\\u%04x", (unsigned)*text);
		else
			putchar(*text);
	putchar('"');
}

static void print_json(const struct limit *l)
{
	char text[256];

	printf("{\n  \"bench-limit version\": \"%s\",\n  \"options\": {", XSEG_VERSION);
	for (const struct opt *opt = limit_opts; opt->off != offsetof(struct options, help);
		opt++) {
		opt_get(opt, l->o, text, sizeof(text));
		printf("%s\"%s\": ", opt == limit_opts ? "" : ", ", opt->name);
		print_text(text);
	}
	printf("},\n  \"huge_pages\": %s,\n  \"jobs\": [\n", l->huge ? "true" : "false");
	for (uint32_t i = 0; i < l->o->numjobs; i++) {
		if (i)
			printf(",\n");
		print_job_json(l, i);
	}
	printf("\n  ]\n}\n");
}

static void print_normal(const struct limit *l)
{
	const struct options *o = l->o;
	char bs[24], bw[24];

	opt_format_size(o->bs, bs, sizeof(bs));
	for (uint32_t i = 0; i < o->numjobs; i++) {
		const struct result *r = &l->result[i];

		opt_human_size(iops_of(r) * o->bs, bw, sizeof(bw));
		printf("limit.%u: %s %s, bs=%s, iodepth=%u: IOPS=%" PRIu64 ", BW=%s/s, "
		       "lat avg=%" PRIu64 "ns 50%%=%" PRIu64 "ns 99%%=%" PRIu64 "ns, "
		       "wrong=%" PRIu64 "\n",
			i, limit_mode_names[o->mode], bench_rw_names[o->rw], bs, o->iodepth,
			iops_of(r), bw, in_ns(r, xhist_mean(&r->lat)),
			in_ns(r, xhist_percentile(&r->lat, 50)),
			in_ns(r, xhist_percentile(&r->lat, 99)), r->wrong);
	}
}

void limit_print(const struct limit *l)
{
	(l->o->output_format == JSON ? print_json : print_normal)(l);
}
