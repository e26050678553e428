/* sim - the simulator's main(): options, one run after the other, the output.
 *
 *      sim [--seeds N] [--seed S] [--ops N] [--threads N] [--verbose] [--paranoid] [--no-shrink]
 *          [--with KNOB=N,...] [--only ITEM,FIRST-LAST,...] [--order N] [--values]
 *
 * Runs seeds S .. S + N - 1 and ends with "N passed, N failed". At the first failure it stops,
 * names the error and the way to repeat it, and exits with 1. With --values each run has a kvd. By
 * default it then looks for a short script that fails in the same way (shrink.c). --with, --only
 * and --order repeat that script.
 *
 * The runs are in a process of their own: so the failing seed is named however a run ends.
 */
#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "tests/sim/sim.h"

static struct sim *running;			/* for assertions that fail */

void sim_print_repeat(const struct choice *c)
{
	printf("repeat with: build/tests/sim --seed %" PRIu64 " --ops %u", c->seed, c->ops);
	if (c->threads)
		printf(" --threads %u", c->threads);
	if (c->with[0])
		printf(" --with %s", c->with);
	if (c->only[0])
		printf(" --only %s", c->only);
	if (c->values)
		printf(" --values");
	if (c->order)
		printf(" --order %u", c->order);
	printf(" --verbose\n");
}

/* The kind: the first line without its numbers, up to the particulars of a write. */
static void fail_kind(struct failure *f)
{
	size_t n = 0;

	for (const char *at = f->text; *at && *at != '\n' && n + 1 < sizeof(f->kind); at++) {
		bool digit = *at >= '0' && *at <= '9';

		if (strncmp(at, ": write ", 8) == 0)
			break;
		if (!digit || n == 0 || f->kind[n - 1] != '#')
			f->kind[n++] = digit ? '#' : *at;
	}
	f->kind[n] = '\0';
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->failure.text, sizeof(s->failure.text), fmt, ap);
	va_end(ap);
	fail_kind(&s->failure);
	longjmp(s->failed, 1);
}

/* In the place of the C library's: an assertion of a peer is a failure of the run. */
void __assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
	if (running)
		sim_fail(running, "%s:%u: %s: assertion failed: %s", file, line, function, what);
	fprintf(stderr, "%s:%u: %s: assertion failed: %s\n", file, line, function, what);
	abort();
}

void sim_log(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->verbose)
		return;
	printf("%8" PRIu64 " %10.3f ms  ", s->step, (double)(s->now - BEGIN_NS) / 1e6);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* ---- a run ---- */

static bool all_done(struct sim *s)
{
	return !script_next(s) && s->in_flight == 0 && values_idle(s);
}

static bool all_answered(struct sim *s)
{
	return s->in_flight == 0 && values_idle(s) && !s->faulty && !s->admin.r &&
	       world_is_sized(s) && !world_is_plugging(s) && keeper_settled(s);
}

bool sim_init(struct sim *s, const struct choice *c)
{
	memset(s, 0, sizeof(*s));
	s->seed = c->seed;
	s->verbose = c->verbose;
	s->check_every = c->check_every;	/* more ports: each look takes longer */
	s->values_always = c->values;
	s->rng.state = c->seed * 0x2545f4914f6cdd1dull;
	plan_make(s, c->threads);
	if (s->plan.node[NODE_KVD] && s->check_every > 1)
		s->check_every *= 10;
	script_make(s, c->ops);
	s->rng.state = rng_mix(c->seed) + c->order;
	s->clock.state = rng_mix(~c->seed) + c->order;
	return plan_apply(&s->plan, c->with) && (!c->only[0] || script_keep(s, c->only));
}

void sim_fini(struct sim *s)
{
	free(s->item);
	s->item = NULL;
}

static void run(struct sim *s)
{
	world_open(s);
	s->issuing = true;
	sched_run(s, all_done);
	s->issuing = false;
	nodes_spare(s);
	sched_run(s, all_answered);
	s->errors_ok = false;
	client_read_back(s);
	world_close(s);
}

/* A callback that never returns ends its process. */
static void watch(uint32_t seconds)
{
	struct itimerval t = { .it_value = { .tv_sec = (time_t)seconds } };

	setitimer(ITIMER_VIRTUAL, &t, NULL);
}

bool sim_run(struct sim *s, const struct choice *c)
{
	if (!sim_init(s, c)) {
		printf("sim: --with or --only names what this seed does not have\n");
		exit(2);
	}
	if (c->verbose)
		script_print(s);
	if (setjmp(s->failed)) {
		running = NULL;
		return false;
	}
	running = s;
	watch(30 + c->ops / 50);
	run(s);
	running = NULL;
	if (c->verbose)
		printf("seed %" PRIu64 ": %" PRIu64 " steps, %" PRIu64 " reads (%" PRIu64
		       " lent, %" PRIu64 " directly), %" PRIu64 " writes (%" PRIu64
		       " lent pages to give), %" PRIu64 " flushes, %" PRIu64 " kills, %" PRIu64
		       " losses of power, %" PRIu64 " deaths of clients, %" PRIu64
		       " plugs and unplugs, %" PRIu64 " changes of volumes (%" PRIu64
		       " I/Os beyond the end), %" PRIu64 " changes and %" PRIu64
		       " gets of values, %" PRIu64 " errors, %.3f s simulated\n",
			s->seed, s->nr_steps, s->nr_reads, s->nr_kept, s->nr_direct, s->nr_writes,
			s->nr_given, s->nr_flushes, s->nr_kills, s->nr_losses, s->nr_deaths,
			s->nr_plugs, s->nr_cuts, s->nr_refused, s->nr_value_changes,
			s->nr_value_gets, s->nr_errors,
			(double)(s->now - BEGIN_NS) / 1e9);
	sim_fini(s);
	return true;
}

/* ---- the command line ---- */

struct options {
	struct choice first;
	uint32_t seeds;
	bool shrink;
};

static const char usage[] =
	"usage: sim [--seeds N] [--seed S] [--ops N] [--threads 1..4] [--verbose] [--paranoid] "
	"[--no-shrink]\n"
	"           [--with KNOB=N,...] [--only ITEM,FIRST-LAST,...] [--order N] [--values]\n";

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (*end || end == text) {
		fprintf(stderr, "sim: '%s' is no number\n", text);
		exit(2);
	}
	return n;
}

static void text(char *to, size_t size, const char *from)
{
	if (strlen(from) >= size) {
		fprintf(stderr, "sim: '%.40s...' is too long\n", from);
		exit(2);
	}
	snprintf(to, size, "%s", from);
}

static void parse(int argc, char **argv, struct options *opt)
{
	static const struct option options[] = {
		{ "seeds", required_argument, NULL, 'n' }, { "seed", required_argument, NULL, 's' },
		{ "ops", required_argument, NULL, 'o' },
		  { "threads", required_argument, NULL, 't' },
		{ "verbose", no_argument, NULL, 'v' }, { "paranoid", no_argument, NULL, 'p' },
		{ "no-shrink", no_argument, NULL, 'S' }, { "with", required_argument, NULL, 'w' },
		{ "only", required_argument, NULL, 'i' }, { "order", required_argument, NULL, 'r' },
		{ "values", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' }, { 0 },
	};
	struct choice *c = &opt->first;
	int o;

	opt->seeds = 1;
	opt->shrink = true;
	*c = (struct choice){ .seed = 1, .ops = 300, .check_every = 100 };
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 'n': opt->seeds = (uint32_t)number(optarg); break;
		case 's': c->seed = number(optarg); break;
		case 'o': c->ops = (uint32_t)number(optarg); break;
		case 't': c->threads = (uint32_t)number(optarg); break;
		case 'v': c->verbose = true; break;
		case 'p': c->check_every = 1; break;
		case 'S': opt->shrink = false; break;
		case 'w': text(c->with, sizeof(c->with), optarg); break;
		case 'i': text(c->only, sizeof(c->only), optarg); break;
		case 'V': c->values = true; break;
		case 'r': c->order = (uint32_t)number(optarg); break;
		default:
			fputs(usage, o == 'h' ? stdout : stderr);
			exit(o == 'h' ? 0 : 2);
		}
	}
	if (c->threads > MAX_PORTS || c->ops == 0) {
		fprintf(stderr, "sim: --threads 1 to %d, --ops at least 1\n", MAX_PORTS);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct options opt;
	static struct choice last;
	static struct failure failure;
	uint32_t passed;
	bool ok;

	parse(argc, argv, &opt);
	/* by lines: what was said before a crash must be out */
	setvbuf(stdout, NULL, _IOLBF, 0);
	last = opt.first;
	ok = runs_pass(&last, opt.seeds, false, &failure);
	passed = (uint32_t)(last.seed - opt.first.seed) + ok;
	if (!ok) {
		printf("not ok - seed %" PRIu64 ", %s\n", last.seed, failure.text);
		sim_print_repeat(&last);
		if (opt.shrink)
			shrink(&last, &failure);
	}
	printf("%u passed, %u failed\n", passed, !ok);
	return !ok;
}
