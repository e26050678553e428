/* report - see report.h. The JSON's fields are described in docs/xbench.1. */
#include "bench/xbench/report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

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

static json_t *json_job(const struct xb_run *run, uint32_t nr)
{
	const struct xb_job *job = run->jobs[nr];
	const struct xb_results *results = &job->results;
	json_t *all = json_object();
	struct xb_figures f;
	char name[32];

	snprintf(name, sizeof(name), "xbench.%" PRIu32, nr);
	json_object_set_new(all, "jobname", json_string(name));
	set_int(all, "error", (uint64_t)atomic_load(&results->error));
	set_int(all, "total_err", atomic_load(&results->errors));
	set_int(all, "verify_errors", atomic_load(&results->verify_errors));
	if (run->shared.kv) {
		set_int(all, "misses", atomic_load(&results->misses));
		set_int(all, "refused", atomic_load(&results->refused));
	} else {
		set_int(all, "direct_ios", atomic_load(&results->direct_ios));
	}
	set_int(all, "job_runtime_ns", atomic_load(&results->counted_ns[0]));
	for (uint32_t stat = 0; stat < XB_NR_STATS; stat++) {
		if (!has_stat(run->opts, stat))
			continue;
		xb_job_figures(job, stat, &f);
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
	json_object_set_new(all, "ended_early", json_boolean(run->is_full));
	for (uint32_t i = 0; i < run->nr_jobs; i++)
		json_array_append_new(jobs, json_job(run, i));
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

static void print_figures(FILE *out, const char *name, const struct xb_figures *f)
{
	char bw[24], total[24], t[6][24];

	opt_human_size(xb_rate(f->bytes, f->span_ns), bw, sizeof(bw));
	opt_human_size(f->bytes, total, sizeof(total));
	fprintf(out, "  %s: IOPS=%" PRIu64 ", BW=%s/s (%s/%s), %" PRIu64 " I/Os\n", name,
		xb_rate(f->ios, f->span_ns), bw, total, xb_human_ns(f->span_ns, t[0], sizeof(t[0])),
		f->ios);
	fprintf(out, "    lat: min=%s, avg=%s, max=%s\n", xb_human_ns(f->min, t[0], sizeof(t[0])),
		xb_human_ns(f->mean, t[1], sizeof(t[1])), xb_human_ns(f->max, t[2], sizeof(t[2])));
	fprintf(out, "    lat percentiles:");
	for (uint32_t i = 0; i < XB_NR_PERCENTILES; i++)
		if (xb_percentiles[i] == 50 || xb_percentiles[i] >= 90)
			fprintf(out, " %g%%=%s", xb_percentiles[i],
				xb_human_ns(f->percentile[i], t[0], sizeof(t[0])));
	fputc('\n', out);
}

/* Also what was read back at the end. */
static bool has_read(const struct xb_job *job)
{
	struct xb_figures load, back;

	xb_job_figures(job, XB_READ, &load);
	xb_job_figures(job, XB_STAT_VERIFY, &back);
	return load.ios || back.ios;
}

static void print_job(const struct xb_run *run, uint32_t nr, FILE *out)
{
	const struct xb_job *job = run->jobs[nr];
	const struct xb_results *results = &job->results;
	struct xb_figures f;

	fprintf(out, "xbench.%u: err=%d, failed I/Os=%" PRIu64, nr, atomic_load(&results->error),
		atomic_load(&results->errors));
	if (run->opts->verify)
		fprintf(out, ", verify errors=%" PRIu64, atomic_load(&results->verify_errors));
	if (run->shared.kv)
		fprintf(out, ", misses=%" PRIu64 ", refused=%" PRIu64,
			atomic_load(&results->misses), atomic_load(&results->refused));
	if (has_read(job) && job->direct)
		fprintf(out, ", read without a request=%" PRIu64,
			atomic_load(&results->direct_ios));
	fputc('\n', out);
	for (uint32_t stat = 0; stat < XB_NR_STATS; stat++) {
		xb_job_figures(job, stat, &f);
		if (f.ios)
			print_figures(out, xb_stat_names[stat], &f);
	}
}

/* All jobs together, one line an operation. */
static void print_total(const struct xb_run *run, FILE *out)
{
	char bw[24];

	for (uint32_t op = 0; op < XB_NR_OPS; op++) {
		uint64_t ios = 0, iops = 0, bytes = 0;

		for (uint32_t i = 0; i < run->nr_jobs; i++) {
			struct xb_figures f;

			xb_job_figures(run->jobs[i], op, &f);
			ios += f.ios;
			iops += xb_rate(f.ios, f.span_ns);
			bytes += xb_rate(f.bytes, f.span_ns);
		}
		if (!ios)
			continue;
		opt_human_size(bytes, bw, sizeof(bw));
		fprintf(out, "all %u jobs: %s IOPS=%" PRIu64 ", BW=%s/s, %" PRIu64 " I/Os\n",
			run->nr_jobs, xb_stat_names[op], iops, bw, ios);
	}
}

/* How large what is moved is. */
static void print_sizes(const struct xb_options *o, FILE *out)
{
	char low[24], high[24];

	opt_format_size(o->bs_min, low, sizeof(low));
	opt_format_size(o->bs_max, high, sizeof(high));
	if (xb_options_kv(o)) {
		opt_format_size(o->kv.value_size, low, sizeof(low));
		fprintf(out, "keys=%" PRIu64 ", %s=%s%s", o->kv.keys,
			o->kv.is_exp ? "value_dist" : "value_size", o->kv.is_exp ? "exp:" : "",
			low);
	} else {
		fprintf(out, "bs=%s%s%s", low, o->bs_min < o->bs_max ? "-" : "",
			o->bs_min < o->bs_max ? high : "");
	}
}

static int print_normal(const struct xb_run *run, FILE *out)
{
	const struct xb_options *o = run->opts;
	char rw[16];

	opt_get(opt_find(xb_opts, "rw"), o, rw, sizeof(rw));
	fprintf(out, "xbench: %s %s, rw=%s, ",
		*o->volume ? "volume" : *o->target ? "target" : "kvd",
		*o->volume ? o->volume : *o->target ? o->target : o->kv.kvd,
		o->verify_only ? "none (verify_only)" : rw);
	print_sizes(o, out);
	fprintf(out, ", iodepth=%u, jobs=%u%s\n", o->iodepth, run->nr_jobs,
		run->interrupted ? ", interrupted"
		: run->timed_out ? ", timed out"
		: run->is_full	 ? ", ended early"
				 : "");
	for (uint32_t i = 0; i < run->nr_jobs; i++)
		print_job(run, i, out);
	if (run->nr_jobs > 1)
		print_total(run, out);
	return 0;
}

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
