/* xbench - a load generator that submits straight to a port's request queue, with fio's names and
 * fio's JSON.
 *
 * How it is made: each line uses those above it
 *   plan/    options  what to do              gen      which I/O comes next
 *            where    volume or objects       iolog    I/Os for fio to replay
 *   oracle/  oracle   what a sector may hold (sector, stamp, state, verify: see there)
 *   job/     job      one thread, one port, iodepth I/Os in flight
 *            figures  what a job did          sample   figures of each interval
 *   kv/      kv       the same on a kvd (what comes next: plan/kv_gen, plan/kv_options; what a key
 *                     may hold: oracle/keys, oracle/value)
 *   ./       run      jobs, phases, signals   report   JSON, text
 *
 * Exit codes: 0 all I/O done and right; 1 an I/O failed or did not verify, or the system refused
 * something; 2 wrong usage; 3 interrupted or timed out; 4 no such segment, peer or volume.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/xbench/report.h"
#include "peers/common/runtime/bus.h"
#include "peers/common/options/cli.h"
#include "peers/common/options/complete.h"
#include "peers/common/say/hint.h"
#include "peers/common/options/owner.h"

static int exit_code_of(int rc)
{
	switch (rc) {
	case -EINVAL:
		return 2;
	case -ETIMEDOUT:
		return 3;
	case -ENOENT:
	case -EBUSY:
	case -EACCES:
		return 4;
	default:
		return 1;
	}
}

/* more: what to do, if the error does not say it. */
static int fail_with(const struct xb_options *o, const struct xseg_error *err, const char *more,
		     int code)
{
	char text[512], line[720];

	snprintf(text, sizeof(text), "%s%s%s", err->text, more ? "; " : "", more ? more : "");
	hint_for_shell(line, sizeof(line), text, o->segment);
	fprintf(stderr, "xbench: %s\n", line);
	return code;
}

static int fail(const struct xb_options *o, const struct xseg_error *err, int code)
{
	return fail_with(o, err, NULL, code);
}

static int help(void)
{
	printf("usage: xbench [-s SEGMENT] --volume=VOL|--target=PEER|--kvd=NAME [OPTION...]\n"
	       "Puts load on a volume, a peer or a store of values; see xbench(1). Such as:\n"
	       "  xbench --volume=VOL --rw=randread --bs=4k --iodepth=16 --runtime=10s\n\n");
	cli_print_options(stdout, xb_opts);
	return 0;
}

static int check_cpus(const struct xb_options *o, struct xseg_error *err)
{
	cpu_set_t there;

	if (sched_getaffinity(0, sizeof(there), &there))
		return 0;
	for (int i = 0; i < o->nr_cpus; i++)
		if (!CPU_ISSET((size_t)o->cpu[i], &there))
			return xseg_fail(err, -EINVAL,
				"cpus: CPU %d does not exist or is not allowed; choose another",
					 o->cpu[i]);
	return 0;
}

static int bench(struct xb_options *o, struct xseg *seg)
{
	struct xseg_error err = { "" };
	struct xb_run run;
	FILE *results;
	int code = 1, rc = xb_run_open(&run, o, seg, &err);

	if (rc)
		return fail(o, &err, exit_code_of(rc));
	rc = xb_report_open(o, &results, &err);
	if (!rc) {
		xb_report_begin(o, results);
		rc = xb_run_all(&run, &err);
	}
	if (rc) {
		fail(o, &err, 1);
		goto out;
	}
	if (run.shared.verify)
		xb_verify_print(&run.verify);
	if (run.shared.kv && run.kv.keys)
		xb_keys_print(run.kv.keys);
	rc = xb_report(&run, results, &err);
	code = rc ? fail(o, &err, 1) : xb_run_exit_code(&run);
out:
	xb_run_close(&run);
	if (run.log_failed) {
		fprintf(stderr,
			"xbench: write_iolog: %s could not be written completely; is the disk full?"
			"\n",
			o->write_iolog);
		code = 1;
	}
	return code;
}

static void leave_early(int sig)
{
	static const char line[] = "xbench: interrupted before the load began\n";

	(void)sig;
	(void)!write(STDERR_FILENO, line, sizeof(line) - 1);
	_exit(3);
}

/* Who is waited for before the load begins may not answer. From then on run.c takes signals. */
static void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = leave_early };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

static int run_program(int argc, char **argv)
{
	static struct xb_options o;
	struct xseg_error err = { "" };
	struct xseg *seg = NULL;
	const char *hint;
	int code, rc = xb_options_parse(&o, argc, argv, &err);

	if (!rc && o.help)
		return help();
	if (!rc && o.version) {
		printf("xbench %s\n", XSEG_VERSION);
		return 0;
	}
	if (!rc)
		rc = check_cpus(&o, &err);
	if (rc) {
		fprintf(stderr, "xbench: %s; see xbench --help\n", err.text);
		return 2;
	}
	owner_use(o.owner);
	bus_watch("xbench", o.segment, 1);
	catch_signals();
	rc = owner_attach(o.segment, 0, &seg, &err);
	if (rc == -ENOENT || rc == -EPERM)
		return fail(&o, &err, 4);
	hint = hint_of_attach(rc);
	if (rc)
		return fail_with(&o, &err,
			strchr(err.text, ';') ? NULL : hint ? hint : "'xseg info' says more",
			exit_code_of(rc));
	code = bench(&o, seg);
	xseg_detach(seg);
	return code;
}

/* Which names there are xseg knows; tools/completion asks it. */
static void name_kind(const char *kind, const char *before, const char *begin, void *arg)
{
	(void)begin;
	(void)arg;
	printf("%s@%s\n", before, kind);
}

/* xbench complete -- WORD...: how the last word may go on, for a shell */
static int complete(int argc, char **argv)
{
	const struct cli_group groups[] = { { xb_opts, NULL }, { NULL, NULL } };

	complete_option(groups, argc > 1 ? argv[argc - 2] : NULL, argv[argc - 1], name_kind, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	cli_begin();
	if (argc > 3 && !strcmp(argv[1], "complete") && !strcmp(argv[2], "--"))
		return cli_end("xbench", complete(argc - 3, argv + 3));
	return cli_end("xbench", run_program(argc, argv));
}
