/* program.c - main() of a program of bench, and the CPUs of its threads. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/common/program.h"

const char *const bench_rw_names[] = { [RANDREAD] = "randread", [RANDWRITE] = "randwrite", NULL };

static int parse(const struct bench_program *p, void *options, bool *help, int argc, char **argv,
	struct xseg_error *err)
{
	const struct cli_group groups[] = { { p->options, options }, { NULL, NULL } };
	const struct opt *help_opt = opt_find(p->options, "help");
	int rc;

	opt_set_defaults(p->options, options);
	rc = cli_parse(groups, argc, argv, err);
	if (rc < 0)
		return rc;
	*help = *(const bool *)((const char *)options + help_opt->off);
	if (*help)
		return 0;
	rc = cli_only_options(rc, argc, argv, err);
	return rc || !p->check ? rc : p->check(options, err);
}

int bench_main(const struct bench_program *p, void *options, int argc, char **argv)
{
	struct xseg_error err = { "" };
	bool help = false;
	int code = 2, rc;

	cli_begin();
	rc = parse(p, options, &help, argc, argv, &err);
	if (!rc && help) {
		printf("Usage: %s\n", p->usage);
		cli_print_options(stdout, p->options);
	} else if (!rc) {
		code = 1;
		rc = p->run(options, &err);
	}
	if (rc)
		fprintf(stderr, "%s: %s\n", p->name, err.text);
	return cli_end(p->name, rc ? code : 0);
}

int bench_cpus_parse(struct bench_cpus *cpus, struct xseg_error *err)
{
	cpus->nr = cpus_parse(cpus->text, cpus->cpu, err);
	return cpus->nr < 0 ? cpus->nr : 0;
}

int bench_bind(int cpu, struct xseg_error *err)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return xseg_fail(err, -errno, "a thread is not bound to CPU %d: %s", cpu,
			strerror(errno));
	return 0;
}

int bench_cpus_bind(const struct bench_cpus *cpus, uint32_t n, struct xseg_error *err)
{
	return cpus->nr ? bench_bind(cpus->cpu[n % (uint32_t)cpus->nr], err) : 0;
}

uint64_t bench_now_ns(void)
{
	struct timespec ts = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
