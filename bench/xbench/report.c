/* report - see report.h. The JSON's fields are described in docs/xbench.1. */
#include "bench/xbench/report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

#include "peers/common/options/cli.h"

static const char *name_of(const struct xb_options *o)
{
	return *o->name ? o->name : "xbench";
}

/* ---- entries ----------------------------------------------------------------------------- */

/* What has one result: a job, or with --group_reporting all of them. */
struct xb_entry {
	struct xb_job *const *jobs;
	uint32_t nr;
	struct xb_totals totals;
	char name[XSEG_NAME_MAX + 16];
};

static uint32_t nr_entries(const struct xb_run *run)
{
	return run->opts->group_reporting ? 1 : run->nr_jobs;
}

/* Jobs of a name that was given are told apart only if there are several. */
static void entry_of(const struct xb_run *run, uint32_t nr, struct xb_entry *e)
{
	const struct xb_options *o = run->opts;

	e->jobs = &run->jobs[nr];
	e->nr = o->group_reporting ? run->nr_jobs : 1;
	xb_jobs_totals(e->jobs, e->nr, &e->totals);
	if (nr_entries(run) > 1 || !*o->name)
		snprintf(e->name, sizeof(e->name), "%s.%" PRIu32, name_of(o), nr);
	else
		snprintf(e->name, sizeof(e->name), "%s", o->name);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void set_int(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *json_figures(const struct xb_figures *f)
{
	json_t *all = json_object(), *lat = json_object(), *percentile = json_object();
	char key[16];

	set_int(all, "total_ios", f->ios);
	set_int(all, "io_bytes", f->bytes);
	set_int(all, "iops", xb_rate(f->ios, f->span_ns));
	set_int(all, "bw_bytes", xb_rate(f->bytes, f->span_ns));
	set_int(all, "runtime_ns", f->span_ns);
	set_int(lat, "min", f->min);
	set_int(lat, "max", f->max);
	set_int(lat, "mean", f->mean);
	set_int(lat, "N", f->ios);
	for (uint32_t i = 0; i < XB_NR_PERCENTILES; i++) {
		snprintf(key, sizeof(key), "%.6f", xb_percentiles[i]);
		set_int(percentile, key, f->percentile[i]);
	}
	json_object_set_new(lat, "percentile", percentile);
	json_object_set_new(all, "lat_ns", lat);
	return all;
}

/* JSON is UTF-8, and the name of a file need not be: then what is not ASCII is question marks. */
static json_t *json_text(char *text)
{
	json_t *value = json_string(text);

	for (char *c = text; !value && *c; c++)
		*c = *c & 0x80 ? '?' : *c;
	return value ? value : json_string(text);
}

static json_t *json_options(const struct xb_options *o)
{
	json_t *all = json_object();
	char text[PATH_MAX];

	for (const struct opt *opt = xb_opts; opt->name; opt++) {
		opt_get(opt, o, text, sizeof(text));
		if (*text && strcmp(opt->name, "help") && strcmp(opt->name, "version"))
			json_object_set_new(all, opt->name, json_text(text));
	}
	return all;
}

/* A kvd has some operations of its own, and others not. */
static bool has_stat(const struct xb_options *o, uint32_t stat)
{
	if (stat == XB_READ || stat == XB_WRITE || stat == XB_FLUSH || stat == XB_STAT_VERIFY)
		return true;
	return (stat >= XB_DELETE) == xb_options_kv(o);
}

static json_t *json_entry(const struct xb_run *run, const struct xb_entry *e)
{
	json_t *all = json_object();
	struct xb_figures f;

	json_object_set_new(all, "jobname", json_string(e->name));
	set_int(all, "error", (uint64_t)e->totals.error);
	set_int(all, "total_err", e->totals.errors);
	set_int(all, "verify_errors", e->totals.verify_errors);
	if (run->shared.kv) {
		set_int(all, "misses", e->totals.misses);
		set_int(all, "refused", e->totals.refused);
	} else {
		set_int(all, "direct_ios", e->totals.direct_ios);
	}
	set_int(all, "job_runtime_ns", e->totals.runtime_ns);
	for (uint32_t stat = 0; stat < XB_NR_STATS; stat++) {
		if (!has_stat(run->opts, stat))
			continue;
		xb_jobs_figures(e->jobs, e->nr, stat, &f);
		json_object_set_new(all, xb_stat_names[stat], json_figures(&f));
	}
	return all;
}

static json_t *json_samples(const struct xb_run *run)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < run->sampler.nr_samples; i++) {
		const struct xb_sample *sample = &run->sampler.samples[i];
		json_t *one = json_object();

		set_int(one, "start_ns", sample->start_ns);
		set_int(one, "end_ns", sample->end_ns);
		for (uint32_t op = 0; op < XB_NR_OPS; op++)
			if (has_stat(run->opts, op))
				json_object_set_new(one, xb_stat_names[op],
					json_figures(&sample->figures[op]));
		json_array_append_new(all, one);
	}
	return all;
}

static json_t *json_verify(const struct xb_run *run)
{
	json_t *all = json_object();

	for (enum xb_key_wrong wrong = 0; run->shared.kv && wrong < XB_NR_KEY_WRONG; wrong++)
		set_int(all, xb_key_wrong_names[wrong], xb_keys_wrong(run->kv.keys, wrong));
	if (run->shared.kv)
		return all;
	for (enum xb_wrong wrong = 0; wrong < XB_NR_WRONG; wrong++)
		set_int(all, xb_wrong_names[wrong], xb_oracle_wrong(run->verify.oracle, wrong));
	return all;
}

static uint64_t wall_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int print_json(const struct xb_run *run, FILE *out)
{
	json_t *all = json_object(), *jobs = json_array();
	int rc;

	json_object_set_new(all, "xbench version", json_string(XSEG_VERSION));
	set_int(all, "timestamp_ms", wall_ms());
	json_object_set_new(all, "options", json_options(run->opts));
	json_object_set_new(all, "interrupted", json_boolean(run->interrupted));
	json_object_set_new(all, "timed_out", json_boolean(run->timed_out));
	json_object_set_new(all, "segment_removed", json_boolean(run->lost));
	json_object_set_new(all, "ended_early", json_boolean(run->is_full || run->taken));
	for (uint32_t i = 0; i < nr_entries(run); i++) {
		struct xb_entry e;

		entry_of(run, i, &e);
		json_array_append_new(jobs, json_entry(run, &e));
	}
	json_object_set_new(all, "jobs", jobs);
	if (run->opts->status_interval)
		json_object_set_new(all, "samples", json_samples(run));
	if (run->opts->verify)
		json_object_set_new(all, "verify", json_verify(run));
	rc = json_dumpf(all, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	json_decref(all);
	fputc('\n', out);
	return rc ? -ENOMEM : 0;		/* or out has the error */
}

/* ---- for people -------------------------------------------------------------------------- */

/* "IOPS=..., BW=.../s (.../...), N I/Os" */
static void print_rates(FILE *out, uint64_t ios, uint64_t bytes, uint64_t span_ns)
{
	char bw[24], total[24], time[24];

	opt_human_size(xb_rate(bytes, span_ns), bw, sizeof(bw));
	opt_human_size(bytes, total, sizeof(total));
	fprintf(out, "IOPS=%" PRIu64 ", BW=%s/s (%s/%s), %" PRIu64 " I/Os", xb_rate(ios, span_ns),
		bw, total, xb_human_ns(span_ns, time, sizeof(time)), ios);
}

static bool is_shown(double percentile)
{
	return percentile == 50 || percentile >= 90;
}

/* Two lines of columns, so that none is longer than 100. */
static void print_percentiles(FILE *out, const struct xb_figures *f)
{
	uint32_t shown = 0;
	char text[24];

	for (uint32_t i = 0; i < XB_NR_PERCENTILES; i++) {
		if (!is_shown(xb_percentiles[i]))
			continue;
		fprintf(out, "%s%6g%%=%-*s", shown == 0 ? "    lat percentiles:"
			: shown == 4 ? "\n                    " : "", xb_percentiles[i],
			shown % 4 < 3 ? 8 : 0,
			xb_human_ns(f->percentile[i], text, sizeof(text)));
		shown++;
	}
	fputc('\n', out);
}

static void print_figures(FILE *out, const char *name, const struct xb_figures *f)
{
	char min[24], mean[24], max[24];

	fprintf(out, "  %s: ", name);
	print_rates(out, f->ios, f->bytes, f->span_ns);
	fprintf(out, "\n    lat: min=%s, avg=%s, max=%s\n", xb_human_ns(f->min, min, sizeof(min)),
		xb_human_ns(f->mean, mean, sizeof(mean)), xb_human_ns(f->max, max, sizeof(max)));
	print_percentiles(out, f);
}

/* Also what was read back at the end. */
static bool has_read(const struct xb_entry *e)
{
	struct xb_figures load, back;

	xb_jobs_figures(e->jobs, e->nr, XB_READ, &load);
	xb_jobs_figures(e->jobs, e->nr, XB_STAT_VERIFY, &back);
	return load.ios || back.ios;
}

static void print_entry(const struct xb_run *run, const struct xb_entry *e, FILE *out)
{
	struct xb_figures f;

	fprintf(out, "%s: ", e->name);
	if (e->nr > 1)
		fprintf(out, "%" PRIu32 " jobs, ", e->nr);
	fprintf(out, "err=%d, failed I/Os=%" PRIu64, e->totals.error, e->totals.errors);
	if (run->opts->verify)
		fprintf(out, ", verify errors=%" PRIu64, e->totals.verify_errors);
	if (run->shared.kv)
		fprintf(out, ", misses=%" PRIu64 ", refused=%" PRIu64, e->totals.misses,
			e->totals.refused);
	if (has_read(e) && e->jobs[0]->direct)
		fprintf(out, ", read without a request=%" PRIu64, e->totals.direct_ios);
	fputc('\n', out);
	for (uint32_t stat = 0; stat < XB_NR_STATS; stat++) {
		xb_jobs_figures(e->jobs, e->nr, stat, &f);
		if (f.ios)
			print_figures(out, xb_stat_names[stat], &f);
	}
}

/* All jobs together, one line an operation. */
static void print_together(const struct xb_run *run, FILE *out)
{
	struct xb_figures f;

	for (uint32_t op = 0; op < XB_NR_OPS; op++) {
		xb_jobs_figures(run->jobs, run->nr_jobs, op, &f);
		if (!f.ios)
			continue;
		fprintf(out, "all %" PRIu32 " jobs: %s ", run->nr_jobs, xb_stat_names[op]);
		print_rates(out, f.ios, f.bytes, f.span_ns);
		fputc('\n', out);
	}
}

/* The last line: everything in one, and whether it was good. */
static void print_sum(const struct xb_run *run, FILE *out)
{
	uint64_t ios = 0, bytes = 0;
	struct xb_totals t;

	xb_jobs_totals(run->jobs, run->nr_jobs, &t);
	for (uint32_t op = 0; op < XB_NR_OPS; op++) {
		struct xb_figures f;

		xb_jobs_figures(run->jobs, run->nr_jobs, op, &f);
		ios += f.ios;
		bytes += f.bytes;
	}
	fputs("sum: ", out);
	print_rates(out, ios, bytes, t.runtime_ns);
	fprintf(out, ", failed=%" PRIu64, t.errors);
	if (run->opts->verify)
		fprintf(out, ", verify errors=%" PRIu64, t.verify_errors);
	fprintf(out, "%s\n", run->interrupted ? ", interrupted"
		: run->lost	 ? ", the segment was removed"
		: run->taken	 ? ", the target got a cache"
		: run->timed_out ? ", timed out"
		: run->is_full	 ? ", ended early"
				 : "");
}

static int print_normal(const struct xb_run *run, FILE *out)
{
	for (uint32_t i = 0; i < nr_entries(run); i++) {
		struct xb_entry e;

		entry_of(run, i, &e);
		print_entry(run, &e, out);
	}
	if (nr_entries(run) > 1)
		print_together(run, out);
	print_sum(run, out);
	return 0;
}

/* ---- before the load --------------------------------------------------------------------- */

/* ", name=value" of an option; nothing, if it has none or its default. */
static void print_option(FILE *out, const struct xb_options *o, const char *name)
{
	const struct opt *opt = opt_find(xb_opts, name);
	char text[PATH_MAX];

	opt_get(opt, o, text, sizeof(text));
	if (*text && strcmp(text, opt->def ? opt->def : opt->kind == OPT_STR ? "" : "0") &&
		strcmp(text, opt->kind == OPT_BOOL ? "no" : "0s"))
		fprintf(out, ", %s=%s", name, text);
}

/* How large what is moved is. */
static void print_sizes(const struct xb_options *o, FILE *out)
{
	char low[24], high[24], size[24];

	opt_format_size(o->bs_min, low, sizeof(low));
	opt_format_size(o->bs_max, high, sizeof(high));
	opt_format_size(o->size, size, sizeof(size));
	if (xb_options_kv(o)) {
		opt_format_size(o->kv.value_size, low, sizeof(low));
		fprintf(out, "keys=%" PRIu64 ", %s=%s%s", o->kv.keys,
			o->kv.is_exp ? "value_dist" : "value_size", o->kv.is_exp ? "exp:" : "",
			low);
	} else {
		fprintf(out, "bs=%s%s%s, size=%s", low, o->bs_min < o->bs_max ? "-" : "",
			o->bs_min < o->bs_max ? high : "", size);
	}
}

static void print_plan(const struct xb_options *o, FILE *out)
{
	static const char *const others[] = { "offset", "offset_increment", "random_distribution",
		"opmix", "data", "direct", "once", "force", "sync", "fsync", "rate", "rate_iops",
		"ramp_time", "number_ios", "runtime", "time_based", "verify", "cpus" };
	char rw[16];

	opt_get(opt_find(xb_opts, "rw"), o, rw, sizeof(rw));
	fprintf(out, "%s %s, rw=%s, ", *o->volume ? "volume" : *o->target ? "target" : "kvd",
		*o->volume ? o->volume : *o->target ? o->target : o->kv.kvd,
		o->verify_only ? "none (verify_only)" : rw);
	if (o->rw == XB_RW_RW || o->rw == XB_RW_RANDRW || o->rw == XB_RW_GETPUT)
		fprintf(out, "rwmixread=%" PRIu32 ", ", o->rwmixread);
	print_sizes(o, out);
	fprintf(out, ", iodepth=%" PRIu32 ", jobs=%" PRIu32, o->iodepth, o->numjobs);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		print_option(out, o, others[i]);
	if (!o->runtime && !o->number_ios && !o->verify_only)
		fputs(", one pass", out);
}

void xb_report_begin(const struct xb_options *o, FILE *out)
{
	char text[1024] = "";
	FILE *plan;

	if (o->output_format != XB_FORMAT_NORMAL)
		return;
	plan = fmemopen(text, sizeof(text), "w");
	if (!plan)
		return;
	print_plan(o, plan);
	fclose(plan);
	fprintf(out, "%s: ", name_of(o));
	cli_print_words(out, (int)strlen(name_of(o)) + 2, text);
	fflush(out);
}

/* ---- all together ------------------------------------------------------------------------ */

static int print(const struct xb_run *run, FILE *out)
{
	static int (*const formats[])(const struct xb_run *, FILE *) = {
		[XB_FORMAT_NORMAL] = print_normal, [XB_FORMAT_JSON] = print_json,
	};
	int rc;

	errno = 0;
	rc = formats[run->opts->output_format](run, out);
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return rc;
}

int xb_report_open(const struct xb_options *o, FILE **out, struct xseg_error *err)
{
	*out = *o->output ? fopen(o->output, "we") : stdout;
	return *out ? 0
		    : xseg_fail(err, -errno, "output: cannot write %s: %s", o->output,
			      strerror(errno));
}

int xb_report(const struct xb_run *run, FILE *out, struct xseg_error *err)
{
	const char *path = run->opts->output;
	int rc = print(run, out);

	if (*path && fclose(out) && !rc)
		rc = -errno;
	if (!rc)
		return 0;
	return xseg_fail(err, rc, "output: cannot write %s: %s", *path ? path : "the results",
			 strerror(-rc));
}
