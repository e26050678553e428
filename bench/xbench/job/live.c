/* live - see live.h. */
#include "bench/xbench/job/live.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/xbench/job/figures.h"
#include "peers/common/say/progress_line.h"

#define EVERY_NS    500000000ull
#define NR_SHOWN    3u				/* operations in a line of 80 columns */
#define SECOND_NS   1000000000ull

static void read_point(const struct xb_live *l, uint64_t now_ns, struct xb_live_point *p)
{
	memset(p, 0, sizeof(*p));
	p->at_ns = now_ns;
	for (uint32_t i = 0; i < l->nr_jobs; i++)
		for (uint32_t stat = 0; stat < XB_NR_STATS; stat++) {
			const struct xb_stat *s = &l->jobs[i]->results.stats[stat];

			p->ios[stat] += atomic_load_explicit(&s->lat.count, memory_order_relaxed);
			p->bytes[stat] += atomic_load_explicit(&s->bytes, memory_order_relaxed);
		}
}

void xb_live_start(struct xb_live *l, const struct xb_shared *shared, struct xb_job *const *jobs,
		   uint32_t nr_jobs, uint64_t now_ns)
{
	memset(l, 0, sizeof(*l));
	l->shared = shared;
	l->jobs = jobs;
	l->nr_jobs = nr_jobs;
	l->begin_ns = now_ns;
	l->next_ns = now_ns + EVERY_NS;
	read_point(l, now_ns, &l->first);
	l->last = l->first;
}

/* ---- how much is done -------------------------------------------------------------------- */

static double part(double done, double all)
{
	return all <= 0 || done >= all ? 1 : done / all;
}

/* Blocks or keys that are read back: the jobs share a cursor. */
static double done_of_read_back(const struct xb_shared *s)
{
	double at = (double)atomic_load(&s->cursor);
	const struct xb_oracle *oracle;

	if (!s->verify)
		return part(at, (double)s->opts->kv.keys);
	oracle = s->verify->oracle;
	return part(at - (double)xb_oracle_start(oracle), (double)xb_oracle_length(oracle));
}

/* I/Os, or bytes. What a ramp did is not counted, so then it is not known. */
static double done_of_amount(const struct xb_live *l)
{
	const struct xb_options *o = l->shared->opts;
	uint64_t ios = 0, bytes = 0;
	struct xb_live_point now;

	if (o->ramp_time)
		return -1;
	read_point(l, 0, &now);
	for (uint32_t stat = 0; stat < XB_NR_OPS; stat++) {
		ios += now.ios[stat] - l->first.ios[stat];
		bytes += now.bytes[stat] - l->first.bytes[stat];
	}
	if (o->number_ios)
		return part((double)ios, (double)o->number_ios * l->nr_jobs);
	if (xb_options_kv(o))
		return part((double)ios, (double)o->kv.keys);
	return part((double)bytes, (double)o->size * l->nr_jobs);
}

double xb_live_done(const struct xb_live *l, uint64_t now_ns)
{
	const struct xb_options *o = l->shared->opts;
	double by_time, by_amount;

	if (l->shared->phase != XB_LOAD)
		return done_of_read_back(l->shared);
	if (!o->runtime)
		return done_of_amount(l);
	by_time = part((double)(now_ns - l->begin_ns), (double)(o->ramp_time + o->runtime));
	by_amount = o->number_ios && !o->time_based ? done_of_amount(l) : -1;
	return by_amount > by_time ? by_amount : by_time;
}

/* ---- the line ---------------------------------------------------------------------------- */

static void print_rates(const struct xb_live *l, const struct xb_live_point *now, FILE *out)
{
	uint64_t span_ns = now->at_ns - l->last.at_ns;
	uint32_t shown = 0;
	char bw[24];

	for (uint32_t stat = 0; stat < XB_NR_STATS && shown < NR_SHOWN; stat++) {
		uint64_t ios = now->ios[stat] - l->last.ios[stat];

		if (!ios)
			continue;
		opt_human_size(xb_rate(now->bytes[stat] - l->last.bytes[stat], span_ns), bw,
			sizeof(bw));
		fprintf(out, "  %s %" PRIu64 " IOPS %s/s", xb_stat_names[stat],
			xb_rate(ios, span_ns), bw);
		shown++;
	}
	if (!shown)
		fputs("  0 IOPS", out);
}

static void print_eta(const struct xb_live *l, uint64_t now_ns, FILE *out)
{
	double done = xb_live_done(l, now_ns), seconds;
	double passed = (double)(now_ns - l->begin_ns) / (double)SECOND_NS;

	if (done <= 0)
		return;
	seconds = passed * (1 - done) / done;
	if (seconds < 3600 * 100)
		fprintf(out, "  eta %02u:%02u:%02u", (unsigned)seconds / 3600,
			(unsigned)seconds / 60 % 60, (unsigned)seconds % 60);
}

static void print_line(const struct xb_live *l, const struct xb_live_point *now)
{
	uint64_t ramp_ns = l->shared->phase == XB_LOAD ? l->shared->opts->ramp_time : 0;
	double done = xb_live_done(l, now->at_ns);
	char line[256] = "";
	FILE *out = fmemopen(line, sizeof(line), "w");

	if (!out)
		return;
	fputs("xbench:", out);
	if (done >= 0)
		fprintf(out, " %3.0f%%", done * 100);
	if (now->at_ns - l->begin_ns < ramp_ns)
		fputs("  ramp", out);
	else
		print_rates(l, now, out);
	print_eta(l, now->at_ns, out);
	fclose(out);
	progress_line_show(line);
}

void xb_live_look(struct xb_live *l, uint64_t now_ns)
{
	struct xb_live_point now;

	if (now_ns < l->next_ns || !progress_line_possible())
		return;
	read_point(l, now_ns, &now);
	print_line(l, &now);
	l->last = now;
	l->next_ns = now_ns + EVERY_NS;
}
