/* sample - see sample.h. */
#include "bench/xbench/job/sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/say/progress_line.h"

void xb_sampler_init(struct xb_sampler *s, const struct xb_options *o, struct xb_job *const *jobs,
		     uint32_t nr_jobs)
{
	memset(s, 0, sizeof(*s));
	s->opts = o;
	s->jobs = jobs;
	s->nr_jobs = nr_jobs;
	s->sums = calloc(2 * XB_NR_OPS, sizeof(*s->sums));
	for (uint32_t i = 0; s->sums && i < 2 * XB_NR_OPS; i++)
		xhist_init(&s->sums[i].lat);
}

void xb_sampler_fini(struct xb_sampler *s)
{
	free(s->sums);
	free(s->samples);
	memset(s, 0, sizeof(*s));
}

void xb_sampler_start(struct xb_sampler *s, uint64_t now_ns)
{
	s->begin_ns = s->last_ns = now_ns + (s->opts->verify_only ? 0 : s->opts->ramp_time);
	s->next_ns = s->begin_ns + s->opts->status_interval;
}

int xb_sampler_timeout_ms(const struct xb_sampler *s, uint64_t now_ns)
{
	uint64_t left = s->next_ns > now_ns ? (s->next_ns - now_ns) / 1000000 + 1 : 0;

	return left < INT_MAX ? (int)left : INT_MAX;
}

static struct xb_sample *add_sample(struct xb_sampler *s)
{
	uint32_t room = s->room ? s->room * 2 : 64;
	struct xb_sample *more;

	if (s->nr_samples == s->room) {
		more = realloc(s->samples, room * sizeof(*more));
		if (!more)
			return NULL;
		s->samples = more;
		s->room = room;
	}
	return &s->samples[s->nr_samples++];
}

/* A line for each operation; the time is in the first one. None is longer than 100 columns. */
static void print_lines(const struct xb_sample *sample)
{
	char time[16], bw[24], p99[24], max[24];
	bool idle = true;

	progress_line_hide();
	snprintf(time, sizeof(time), "%.1fs", (double)sample->end_ns / 1e9);
	for (uint32_t op = 0; op < XB_NR_OPS; op++) {
		const struct xb_figures *f = &sample->figures[op];

		if (!f->ios)
			continue;
		opt_human_size(xb_rate(f->bytes, f->span_ns), bw, sizeof(bw));
		fprintf(stderr, "xbench: %8s  %-12s %9" PRIu64 " IOPS %7s/s  p99=%-8s max=%s\n",
			idle ? time : "", xb_stat_names[op], xb_rate(f->ios, f->span_ns), bw,
			xb_human_ns(f->percentile[12], p99, sizeof(p99)),
			xb_human_ns(f->max, max, sizeof(max)));
		idle = false;
	}
	if (idle)
		fprintf(stderr, "xbench: %8s  0 IOPS\n", time);
}

/* Sums one operation over the jobs, and leaves what is new since the last time in *f. */
static void sum_up(struct xb_sampler *s, uint32_t op, uint64_t span_ns, struct xb_figures *f)
{
	struct xb_stat *last = &s->sums[op], *now = &s->sums[XB_NR_OPS + op];
	struct xhist delta;
	uint64_t bytes = 0;

	xhist_init(&now->lat);
	for (uint32_t i = 0; i < s->nr_jobs; i++) {
		const struct xb_stat *stat = &s->jobs[i]->results.stats[op];

		xhist_merge(&now->lat, &stat->lat);
		bytes += atomic_load_explicit(&stat->bytes, memory_order_relaxed);
	}
	xhist_sub(&delta, &now->lat, &last->lat);
	xb_figures_of(&delta, bytes - atomic_load(&last->bytes), span_ns, f);
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
	print_lines(sample);
}

void xb_sampler_look(struct xb_sampler *s, uint64_t now_ns)
{
	if (now_ns < s->next_ns)
		return;
	take(s, now_ns);
	while (s->next_ns <= now_ns)
		s->next_ns += s->opts->status_interval;
}

void xb_sampler_end(struct xb_sampler *s, uint64_t now_ns)
{
	uint64_t rest = now_ns > s->last_ns ? now_ns - s->last_ns : 0;

	if (rest && (!s->nr_samples || rest >= s->opts->status_interval / 10))
		take(s, now_ns);
}
