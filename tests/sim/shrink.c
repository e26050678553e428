/* shrink - from a run that fails to a short one that fails in the same way.
 *
 * Algorithm: delta debugging over the items of the script, large parts first and single ones last,
 * then over the knobs of the plan. It repeats until nothing more can go. (A. Zeller, R.
 * Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002.) Leaving
 * an item out changes the order of all steps after it, and a failure in one order may pass in
 * another. So each candidate is tried in a few orders.
 *
 * Contract: runs nothing in this process (runs.c).
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/sim/sim.h"

#define ORDERS 4u				/* that each candidate is tried in */
#define RUNS   3000u				/* in all, */
#define CPU_S  60				/* and seconds of the processor */

struct shrinker {
	struct choice best, next;		/* what fails so far; what is tried */
	struct plan seeds;			/* as the seed chose it, */
	struct plan plan;			/* and as it is tried */
	bool *kept;				/* by item */
	uint32_t nr_items, nr_kept, runs;
	time_t began_s;				/* of the processor's time */
	struct failure failure, last;		/* failure: of `best` */
};

/* What the runs took so far. */
static time_t cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec;
}

static bool may_run(const struct shrinker *h)
{
	return h->runs < RUNS && cpu_s() < h->began_s + CPU_S;
}

static size_t add(char *to, size_t at, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static size_t add(char *to, size_t at, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = at < size ? vsnprintf(to + at, size - at, fmt, ap) : 0;
	va_end(ap);
	return at + (size_t)n;
}

/* The items that are kept, as --only wants them; false: there is no room for so many pieces. */
static bool write_only(struct shrinker *h)
{
	char *to = h->next.only;
	size_t at = 0, size = sizeof(h->next.only);
	uint32_t from, i;

	to[0] = '\0';
	for (i = 0; i < h->nr_items && h->nr_kept < h->nr_items; i++) {
		if (!h->kept[i])
			continue;
		for (from = i; i + 1 < h->nr_items && h->kept[i + 1]; i++)
			;
		at = add(to, at, size, from == i ? "%s%u" : "%s%u-%u", at ? "," : "", from, i);
	}
	return at < size;
}

static bool write_with(struct shrinker *h)
{
	char *to = h->next.with;
	size_t at = 0, size = sizeof(h->next.with);

	to[0] = '\0';
	for (const struct knob *k = knobs; k->name; k++)
		if (*knob_of(&h->plan, k) != *knob_of(&h->seeds, k))
			at = add(to, at, size, "%s%s=%u", at ? "," : "", k->name,
				*knob_of(&h->plan, k));
	return at < size;
}

/* Whether what is kept now fails like the first run did, in some order. */
static bool still_fails(struct shrinker *h)
{
	h->next = h->best;
	if (!write_only(h) || !write_with(h))
		return false;
	for (uint32_t i = 0; i < ORDERS && may_run(h); i++, h->next.order++) {
		h->runs++;
		if (runs_pass(&h->next, 1, true, &h->last) ||
			strcmp(h->last.kind, h->failure.kind) != 0)
			continue;
		h->best = h->next;
		h->failure = h->last;
		return true;
	}
	return false;
}

/* Leaves out up to nr of the items that are kept, from *at on; *at: the next after them. Returns
 * how many. */
static uint32_t leave_out(struct shrinker *h, uint32_t *at, uint32_t nr, uint32_t *out)
{
	uint32_t n = 0;

	for (; *at < h->nr_items && n < nr; ++*at)
		if (h->kept[*at]) {
			h->kept[*at] = false;
			out[n++] = *at;
		}
	h->nr_kept -= n;
	return n;
}

static bool shrink_script(struct shrinker *h)
{
	uint32_t *out = malloc(h->nr_items * sizeof(*out)), before = h->nr_kept, n;

	assert(out);
	for (uint32_t size = (h->nr_kept + 1) / 2; size; size /= 2)
		for (uint32_t at = 0; at < h->nr_items && may_run(h);) {
			n = leave_out(h, &at, size, out);
			if (n == 0 || still_fails(h))
				continue;
			h->nr_kept += n;
			while (n)
				h->kept[out[--n]] = true;
		}
	free(out);
	return h->nr_kept < before;
}

/* The least value first, then twice that and so on. */
static bool shrink_knob(struct shrinker *h, const struct knob *k)
{
	uint32_t *value = knob_of(&h->plan, k), was = *value;

	for (uint32_t n = k->least; n < was; n = n ? n * 2 : 1) {
		*value = n;
		if (still_fails(h))
			return true;
	}
	*value = was;
	return false;
}

static bool shrink_plan(struct shrinker *h)
{
	bool any = false;

	for (const struct knob *k = knobs; k->name; k++)
		any |= shrink_knob(h, k);
	return any;
}

static void print(struct shrinker *h, struct sim *s)
{
	printf("shrunk to %u of %u items, in %u runs:\n", h->nr_kept, h->nr_items, h->runs);
	if (!sim_init(s, &h->best))
		return;
	script_print(s);
	sim_fini(s);
	printf("ends with: %s\n", h->failure.text);
	sim_print_repeat(&h->best);
}

void shrink(const struct choice *c, const struct failure *failure)
{
	static struct shrinker h;
	static struct sim s;
	bool smaller;

	if (!sim_init(&s, c))
		return;
	h = (struct shrinker){ .best = *c,
		.plan = s.plan,
		.nr_items = s.nr_items,
		.failure = *failure,
		.began_s = cpu_s() };
	h.best.verbose = false;
	h.kept = calloc(s.nr_items, sizeof(*h.kept));
	assert(h.kept);
	for (uint32_t i = 0; i < s.nr_items; i++)
		h.nr_kept += h.kept[i] = !s.item[i].left_out;
	sim_fini(&s);
	h.next = *c;
	h.next.with[0] = '\0';
	if (!sim_init(&s, &h.next))
		return;
	h.seeds = s.plan;
	sim_fini(&s);
	do {
		smaller = shrink_script(&h);
		smaller |= shrink_plan(&h);
	} while (smaller && may_run(&h));
	print(&h, &s);
	free(h.kept);
}
