/* runs - runs in a process of their own: however a run ends, its seed and its output are known.
 *
 * Contract: the caller runs nothing itself. The remains of a failed run belong to its process, and
 * go with it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/sim.h"

/* What the runs tell, in memory that is shared with them. Written by the one process that runs. */
struct report {
	uint64_t seed;				/* that it is at */
	bool failed;				/* and why is in `failure` */
	struct failure failure;
};

static struct report *report;

static void report_open(void)
{
	if (!report)
		report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED) {
		perror("sim: mmap");
		exit(2);
	}
	memset(report, 0, sizeof(*report));
}

/* Of the time that a run may take: see sim_run(). */
static void does_not_return(int sig)
{
	static const char words[] = "a callback does not return";

	(void)sig;
	memcpy(report->failure.text, words, sizeof(words));
	memcpy(report->failure.kind, words, sizeof(words));
	report->failed = true;
	_exit(1);
}

static void be_quiet(void)
{
	int null = open("/dev/null", O_WRONLY);

	if (null >= 0) {
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		close(null);
	}
}

static void run_seeds(struct choice *c, uint32_t seeds)
{
	static struct sim s;

	signal(SIGVTALRM, does_not_return);
	for (; seeds; seeds--, c->seed++) {
		report->seed = c->seed;
		if (sim_run(&s, c))
			continue;
		report->failure = s.failure;
		report->failed = true;
		exit(1);
	}
	exit(0);
}

static void say_end(struct failure *f, int status)
{
	if (WIFSIGNALED(status))
		snprintf(
			f->text, sizeof(f->text), "ended by SIG%s", sigabbrev_np(WTERMSIG(status)));
	else
		snprintf(f->text, sizeof(f->text), "ended with exit code %d", WEXITSTATUS(status));
	snprintf(f->kind, sizeof(f->kind), "%.200s", f->text);
}

bool runs_pass(struct choice *c, uint32_t seeds, bool quiet, struct failure *failure)
{
	int status;
	pid_t pid;

	report_open();
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (quiet)
			be_quiet();
		run_seeds(c, seeds);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("sim: fork");
		exit(2);
	}
	c->seed = report->seed;
	if (report->failed)
		*failure = report->failure;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		exit(2);
	else if (status)
		say_end(failure, status);
	return status == 0;
}
