/* sim - the simulator's main(): options, one run after the other, what is printed.
 *
 *	sim [--seeds N] [--seed S] [--ops N] [--threads N] [--verbose] [--paranoid]
 *
 * Runs seeds S .. S + N - 1 and ends with "N passed, N failed"; at the first that fails it stops, says what is wrong and
 * how to repeat it, and exits with 1.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/sim.h"

struct options {
	uint64_t seed;
	uint32_t seeds, ops, threads, check_every;
	bool verbose;
};

/* What is said of the seed that runs, made beforehand: a handler of signals cannot print. */
static struct {
	char repeat[128], aborted[256], crashed[256];
} words;

static void words_of_end(char *text, size_t size, const struct options *opt, uint64_t seed, const char *how)
{
	snprintf(text, size, "not ok - seed %" PRIu64 ": %s\n%s%" PRIu64 " passed, 1 failed\n", seed, how, words.repeat,
		 seed - opt->seed);
}

static void words_make(const struct options *opt, uint64_t seed)
{
	snprintf(words.repeat, sizeof(words.repeat), "repeat with: build/tests/sim --seed %" PRIu64 " --ops %u%s --verbose\n", seed,
		 opt->ops, opt->threads == 1 ? " --threads 1" : opt->threads ? " --threads 2" : "");
	words_of_end(words.aborted, sizeof(words.aborted), opt, seed, "an assertion failed");
	words_of_end(words.crashed, sizeof(words.crashed), opt, seed, "crashed");
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	printf("not ok - seed %" PRIu64 ", step %" PRIu64 ": ", s->seed, s->step);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	longjmp(s->failed, 1);
}

void sim_log(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->verbose)
		return;
	printf("%8" PRIu64 " %10.3f ms  ", s->step, (double)(s->now - 1000 * SEC) / 1e6);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* An assertion of a peer, or worse: says which seed it was. */
static void crashed(int sig)
{
	const char *text = sig == SIGABRT ? words.aborted : words.crashed;

	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(1);
	signal(sig, SIG_DFL);
	raise(sig);
}

static bool all_done(struct sim *s)
{
	return s->issued >= s->plan.ops && s->in_flight == 0;
}

static bool all_answered(struct sim *s)
{
	return s->in_flight == 0 && !s->faulty && !s->admin.r && world_is_sized(s);
}

static void run(struct sim *s, const struct options *opt)
{
	plan_make(s, opt->ops, opt->threads);
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

/* 0: passed. */
static int run_seed(const struct options *opt, uint64_t seed)
{
	static struct sim s;

	memset(&s, 0, sizeof(s));
	s.seed = seed;
	s.rng.state = seed * 0x2545f4914f6cdd1dull;
	s.verbose = opt->verbose;
	s.check_every = opt->check_every;
	words_make(opt, seed);
	if (setjmp(s.failed)) {
		printf("%s", words.repeat);
		return 1;
	}
	run(&s, opt);
	if (opt->verbose)
		printf("seed %" PRIu64 ": %" PRIu64 " steps, %" PRIu64 " reads, %" PRIu64 " writes, %" PRIu64 " flushes, %" PRIu64
		       " kills, %" PRIu64 " losses of power, %" PRIu64 " errors, %.3f s simulated\n", seed, s.nr_steps, s.nr_reads,
		       s.nr_writes, s.nr_flushes, s.nr_kills, s.nr_losses, s.nr_errors, (double)(s.now - 1000 * SEC) / 1e9);
	return 0;
}

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

static void parse(int argc, char **argv, struct options *opt)
{
	static const struct option options[] = {
		{ "seeds", required_argument, NULL, 'n' }, { "seed", required_argument, NULL, 's' },
		{ "ops", required_argument, NULL, 'o' }, { "threads", required_argument, NULL, 't' },
		{ "verbose", no_argument, NULL, 'v' }, { "paranoid", no_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' }, { 0 },
	};
	int c;

	*opt = (struct options){ .seed = 1, .seeds = 1, .ops = 300, .check_every = 100 };
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'n': opt->seeds = (uint32_t)number(optarg); break;
		case 's': opt->seed = number(optarg); break;
		case 'o': opt->ops = (uint32_t)number(optarg); break;
		case 't': opt->threads = (uint32_t)number(optarg); break;
		case 'v': opt->verbose = true; break;
		case 'p': opt->check_every = 1; break;
		default:
			printf("usage: sim [--seeds N] [--seed S] [--ops N] [--threads 1..4] [--verbose] [--paranoid]\n");
			exit(c == 'h' ? 0 : 2);
		}
	}
}

int main(int argc, char **argv)
{
	struct options opt;
	uint32_t failed = 0, i;

	parse(argc, argv, &opt);
	if (opt.threads > MAX_PORTS || opt.ops == 0) {
		fprintf(stderr, "sim: --threads 1 to %d, --ops at least 1\n", MAX_PORTS);
		return 2;
	}
	/* by lines: what was said before a crash must be out */
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGABRT, crashed);
	signal(SIGSEGV, crashed);
	signal(SIGFPE, crashed);
	for (i = 0; i < opt.seeds && !failed; i++)
		failed = (uint32_t)run_seed(&opt, opt.seed + i);
	printf("%u passed, %u failed\n", i - failed, failed);
	return failed != 0;
}
