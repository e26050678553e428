/* sample - see sample.h; and how figures are made of histograms. */
#include "bench/xbench/sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const double xb_percentiles[XB_NR_PERCENTILES] = {
	1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99
};

/* ---- figures ----------------------------------------------------------------------------- */

uint64_t xb_rate(uint64_t count, uint64_t span_ns)
{
	return span_ns ? (uint64_t)((unsigned __int128)count * 1000000000u / span_ns) : 0;
}

/* From what was counted in `span_ns`. */
static void figures_of(
	const struct xhist *lat, uint64_t bytes, uint64_t span_ns, struct xb_figures *f)
{
	memset(f, 0, sizeof(*f));
	f->ios = atomic_load_explicit(&lat->count, memory_order_relaxed);
	f->bytes = bytes;
	f->span_ns = span_ns;
	if (!f->ios)
		return;
	f->min = atomic_load_explicit(&lat->min, memory_order_relaxed);
	f->max = atomic_load_explicit(&lat->max, memory_order_relaxed);
	f->mean = xhist_mean(lat);
	for (uint32_t i = 0; i < XB_NR_PERCENTILES; i++)
		f->percentile[i] = xhist_percentile(lat, xb_percentiles[i]);
}

void xb_job_figures(const struct xb_job *job, uint32_t stat, struct xb_figures *f)
{
	figures_of(&job->results.stats[stat].lat, atomic_load(&job->results.stats[stat].bytes),
		atomic_load(&job->results.counted_ns[stat == XB_STAT_VERIFY]), f);
}

const char *xb_human_ns(uint64_t ns, char *out, size_t size)
{
	static const struct {
		uint64_t limit;
		double by;
		const char *unit;
	} units[] = { { 10000, 1, "ns" },
		      { 10000000, 1e3, "us" },
		      { 10000000000, 1e6, "ms" },
		      { UINT64_MAX, 1e9, "s" } };
	unsigned i = 0;

	while (ns >= units[i].limit)
		i++;
	snprintf(out, size, "%.*f%s", i ? 1 : 0, (double)ns / units[i].by, units[i].unit);
	return out;
}

/* ---- samples ----------------------------------------------------------------------------- */

void xb_sampler_init(struct xb_sampler *s, struct xb_run *run)
{
	memset(s, 0, sizeof(*s));
	s->run = run;
	s->sums = calloc(2 * XB_NR_OPS, sizeof(*s->sums));
	for (uint32_t i = 0; s->sums && i < 2 * XB_NR_OPS; i++)
		xhist_init(&s->sums[i].lat);
}

void xb_sampler_fini(struct xb_sampler *s)
{
	free(s->sums);
}

void xb_sampler_start(struct xb_sampler *s, uint64_t now_ns)
{
	s->begin_ns = s->last_ns =
		now_ns + (s->run->opts->verify_only ? 0 : s->run->opts->ramp_time);
	s->next_ns = s->begin_ns + s->run->opts->status_interval;
}

int xb_sampler_timeout_ms(const struct xb_sampler *s, uint64_t now_ns)
{
	uint64_t left = s->next_ns > now_ns ? (s->next_ns - now_ns) / 1000000 + 1 : 0;

	return left < INT_MAX ? (int)left : INT_MAX;
}

static struct xb_sample *add_sample(struct xb_sampler *s)
{
	struct xb_run *run = s->run;
	uint32_t room = s->room ? s->room * 2 : 64;
	struct xb_sample *more;

	if (run->nr_samples == s->room) {
		more = realloc(run->samples, room * sizeof(*more));
		if (!more)
			return NULL;
		run->samples = more;
		s->room = room;
	}
	return &run->samples[run->nr_samples++];
}

static void print_line(const struct xb_sample *sample)
{
	char bw[24], p99[24];
	bool idle = true;

	fprintf(stderr, "xbench: %6.1fs", (double)sample->end_ns / 1e9);
	for (uint32_t op = 0; op < XB_NR_OPS; op++) {
		const struct xb_figures *f = &sample->figures[op];

		if (!f->ios)
			continue;
		opt_human_size(xb_rate(f->bytes, f->span_ns), bw, sizeof(bw));
		fprintf(stderr, "  %s %" PRIu64 " IOPS %s/s p99=%s", xb_stat_names[op],
			xb_rate(f->ios, f->span_ns), bw,
			xb_human_ns(f->percentile[12], p99, sizeof(p99)));
		idle = false;
	}
	fputs(idle ? "  0 IOPS\n" : "\n", stderr);
}

/* Sums one operation over the jobs, and leaves what is new since the last time in *f. */
static void sum_up(struct xb_sampler *s, uint32_t op, uint64_t span_ns, struct xb_figures *f)
{
	struct xb_stat *last = &s->sums[op], *now = &s->sums[XB_NR_OPS + op];
	struct xhist delta;
	uint64_t bytes = 0;

	xhist_init(&now->lat);
	for (uint32_t i = 0; i < s->run->nr_jobs; i++) {
		const struct xb_stat *stat = &s->run->jobs[i]->results.stats[op];

		xhist_merge(&now->lat, &stat->lat);
		bytes += atomic_load_explicit(&stat->bytes, memory_order_relaxed);
	}
	xhist_sub(&delta, &now->lat, &last->lat);
	figures_of(&delta, bytes - atomic_load(&last->bytes), span_ns, f);
	memcpy((void *)&last->lat, (const void *)&now->lat, sizeof(last->lat));
	atomic_store(&last->bytes, bytes);
}

static void take(struct xb_sampler *s, uint64_t now_ns)
{
	struct xb_sample *sample = s->sums ? add_sample(s) : NULL;

	if (!sample)
		return;
	sample->start_ns = s->last_ns - s->begin_ns;
	sample->end_ns = now_ns - s->begin_ns;
	for (uint32_t op = 0; op < XB_NR_OPS; op++)
		sum_up(s, op, now_ns - s->last_ns, &sample->figures[op]);
	s->last_ns = now_ns;
	print_line(sample);
}

void xb_sampler_look(struct xb_sampler *s, uint64_t now_ns)
{
	if (now_ns < s->next_ns)
		return;
	take(s, now_ns);
	while (s->next_ns <= now_ns)
		s->next_ns += s->run->opts->status_interval;
}

void xb_sampler_end(struct xb_sampler *s, uint64_t now_ns)
{
	uint64_t rest = now_ns > s->last_ns ? now_ns - s->last_ns : 0;

	if (rest && (!s->run->nr_samples || rest >= s->run->opts->status_interval / 10))
		take(s, now_ns);
}
