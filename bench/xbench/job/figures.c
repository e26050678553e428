/* figures - see figures.h. */
#include "bench/xbench/job/figures.h"

#include <stdio.h>
#include <string.h>

const double xb_percentiles[XB_NR_PERCENTILES] = {
	1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99
};

uint64_t xb_rate(uint64_t count, uint64_t span_ns)
{
	return span_ns ? (uint64_t)((unsigned __int128)count * 1000000000u / span_ns) : 0;
}

void xb_figures_of(
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

void xb_jobs_figures(
	struct xb_job *const *jobs, uint32_t nr, uint32_t stat, struct xb_figures *f)
{
	uint64_t bytes = 0, span_ns = 0;
	struct xhist lat;

	xhist_init(&lat);
	for (uint32_t i = 0; i < nr; i++) {
		const struct xb_results *r = &jobs[i]->results;
		uint64_t counted_ns = atomic_load(&r->counted_ns[stat == XB_STAT_VERIFY]);

		xhist_merge(&lat, &r->stats[stat].lat);
		bytes += atomic_load(&r->stats[stat].bytes);
		if (counted_ns > span_ns)
			span_ns = counted_ns;
	}
	xb_figures_of(&lat, bytes, span_ns, f);
}

void xb_jobs_totals(struct xb_job *const *jobs, uint32_t nr, struct xb_totals *t)
{
	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < nr; i++) {
		const struct xb_results *r = &jobs[i]->results;
		uint64_t runtime_ns = atomic_load(&r->counted_ns[0]);

		if (!t->error)
			t->error = atomic_load(&r->error);
		t->errors += atomic_load(&r->errors);
		t->verify_errors += atomic_load(&r->verify_errors);
		t->misses += atomic_load(&r->misses);
		t->refused += atomic_load(&r->refused);
		t->direct_ios += atomic_load(&r->direct_ios);
		if (runtime_ns > t->runtime_ns)
			t->runtime_ns = runtime_ns;
	}
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
