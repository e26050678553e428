/* host_main - xseg-host: several peers in one process on shared reactors, the supervisor of a
 * stack, and the check of a stack file against the kinds of this build.
 *
 *	xseg-host [-s SEG] NAME [NAME...]	serves these peers of the segment's stack file
 *	xseg-host [-s SEG] --supervise		starts and watches all of them
 *	xseg-host --check FILE			0, or a line for each error and 2
 *	xseg-host --kinds			all kinds with their options
 *	xseg-host --keys			all keys of stack files, for programs
 *
 * Contract: an error is one line on stderr; exit codes are those of main.h (enum main_exit).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers/common/options/args.h"
#include "peers/common/options/cli.h"
#include "peers/common/log/log.h"
#include "peers/common/log/log_file.h"
#include "peers/common/runtime/main.h"
#include "peers/common/options/owner.h"
#include "peers/host/check.h"
#include "peers/host/kinds.h"
#include "peers/host/load.h"
#include "peers/host/supervise.h"

#ifndef XSEG_VERSION
#define XSEG_VERSION "unknown"
#endif

static const char me[] = "xseg-host";

struct options {
	char segment[XSEG_NAME_MAX], owner[OWNER_BYTES];
	bool supervise, daemon, report, kinds, keys, help, version;
	char log[PATH_MAX], stack[PATH_MAX], check[PATH_MAX];
};

#define O(field) offsetof(struct options, field)
static const struct opt table[] = {
	{ .name = "segment", .kind = OPT_STR, .off = O(segment), .len = XSEG_NAME_MAX,
	  .arg = "NAME", .check = cli_check_name,
	  .help = "segment to serve, also -s; else $XSEG_SEGMENT, else the only one, else xseg" },
	OWNER_OPT(O(owner)),
	{ .name = "supervise", .kind = OPT_BOOL, .off = O(supervise),
	  .help = "start all peers of the segment's stack file, and restart dead ones" },
	{ .name = "daemon", .kind = OPT_BOOL, .off = O(daemon),
	  .help = "with --supervise: run in the background" },
	{ .name = "log", .kind = OPT_STR, .off = O(log), .len = PATH_MAX, .arg = "FILE",
	  .help = "with --supervise: append all log lines to this file, also those of the peers" },
	{ .name = "stack", .kind = OPT_STR, .off = O(stack), .len = PATH_MAX, .arg = "FILE",
	  .help = "with --supervise: use this stack file (- for standard input) and keep it in the "
		  "segment" },
	{ .name = "check", .kind = OPT_STR, .off = O(check), .len = PATH_MAX, .arg = "FILE",
	  .help = "only check a stack file, - for standard input" },
	{ .name = "report", .kind = OPT_BOOL, .off = O(report),
	  .help = "with --check: print errors and memory in words for programs" },
	{ .name = "kinds", .kind = OPT_BOOL, .off = O(kinds),
	  .help = "list the kinds of peers and their options" },
	{ .name = "keys", .kind = OPT_BOOL, .off = O(keys),
	  .help = "list all keys of stack files, in words for programs" },
	{ .name = "help", .kind = OPT_BOOL, .off = O(help), .help = "print this, also -h" },
	{ .name = "version", .kind = OPT_BOOL, .off = O(version), .help = "print the version" },
	{ 0 }
};

static int print_help(void)
{
	printf("usage: %s [-s SEGMENT] NAME...\n"
	       "       %s [-s SEGMENT] --supervise [--daemon] [--log=FILE] [--stack=FILE]\n"
	       "       %s --check=FILE [--report] | --kinds | --keys\n"
	       "Serves several peers of a stack in one process, or supervises the whole "
	       "stack.\n\nOptions:\n",
		me, me, me);
	cli_print_options(stdout, table);
	return MAIN_DONE;
}

static int print_version(void)
{
	printf("%s %s\n", me, XSEG_VERSION);
	return MAIN_DONE;
}

static int print_kinds(void)
{
	const struct peer_class *const *k;

	for (k = kinds; *k; k++) {
		printf("%s - %s\n", (*k)->kind, (*k)->summary);
		cli_print_options(stdout, (*k)->opts);
		printf("\n");
	}
	return MAIN_DONE;
}

/* ---- several peers in this process ------------------------------------------------------- */

static struct peer *make_peer(
	const struct stack_peer *from, const char *segment, const char *downstream)
{
	struct peer *p = peer_create(kinds_find(from->kind));
	struct xseg_error err = { "out of memory" };

	if (!p || stack_set_options(from, p->cls->opts, p, &err)) {
		log_error("%s: %s: %s", me, from->name, err.text);
		peer_destroy(p);
		return NULL;
	}
	snprintf(p->name, sizeof(p->name), "%s", from->name);
	snprintf(p->segment, sizeof(p->segment), "%s", segment);
	snprintf(p->downstream_name, sizeof(p->downstream_name), "%s", downstream);
	snprintf(p->cpus, sizeof(p->cpus), "%s", from->cpus);
	p->threads = from->threads;
	return p;
}

static bool is_named(const struct stack_peer *p, int nr, char **names)
{
	int i;

	for (i = 0; i < nr; i++)
		if (!strcmp(names[i], p->name))
			return true;
	return false;
}

/* Makes the named peers, bottom up. */
static int make_peers(struct xseg *seg, const struct stack *stack, const char *segment,
		      int nr_names, char **names, struct peer **peers, unsigned *nr)
{
	uint32_t order[STACK_MAX_PEERS], i;
	int k;

	for (k = 0; k < nr_names; k++)
		if (stack_find(stack, names[k]) == STACK_NONE) {
			log_error(
				"%s: the stack of segment '%s' has no peer '%.60s'; see 'xseg "
				"status'",
				me, segment, names[k]);
			return MAIN_USAGE;
		}
	stack_order(stack, order);
	for (i = 0; i < stack->nr_peers; i++) {
		if (!is_named(&stack->peers[order[i]], nr_names, names))
			continue;
		peers[*nr] = make_peer(&stack->peers[order[i]], segment,
			args_downstream(seg, stack, &stack->peers[order[i]]));
		if (!peers[*nr])
			return MAIN_FAILED;
		++*nr;
	}
	return MAIN_DONE;
}

static int host(const char *segment, int nr_names, char **names)
{
	struct peer *peers[STACK_MAX_PEERS] = { NULL };
	struct stack *stack = NULL;
	const char *cpus = "";
	unsigned nr = 0, i;
	struct xseg *seg;
	int rc = main_attach(me, segment, XSEG_ATTACH_OBSERVER, &seg);

	if (rc)
		return rc;
	rc = load_segment(me, seg, &stack);
	if (!rc)
		rc = make_peers(seg, stack, segment, nr_names, names, peers, &nr);
	xseg_detach(seg);
	for (i = 0; i < nr && !*cpus; i++)
		cpus = peers[i]->cpus;
	if (!rc)
		rc = main_serve(peers, nr, segment, cpus);
	for (i = 0; i < nr; i++)
		peer_destroy(peers[i]);
	stack_destroy(stack);
	return rc;
}

/* ---- the supervisor's surroundings ------------------------------------------------------- */

static int redirect_log(const char *path)
{
	struct xseg_error err = { "" };
	int fd = log_file_open(path, &err);

	if (fd < 0) {
		log_error("%s: %s", me, err.text);
		return MAIN_FAILED;
	}
	if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0) {
		log_error("%s: cannot write to %s: %s", me, path, strerror(errno));
		close(fd);
		return MAIN_FAILED;
	}
	close(fd);
	return MAIN_DONE;
}

/* The parent leaves when the child has begun, or with what it has ended with before. */
static _Noreturn void leave_child(pid_t pid, int begun)
{
	int status = 0;
	char byte;

	if (read(begun, &byte, 1) == 1)
		_exit(MAIN_DONE);
	waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : MAIN_FAILED);
}

/* The child has a session of its own, and none of the files that a caller had open, whose locks it
 * would hold. SIGHUP does nothing to it and to the peers that it starts: at the end of a session it
 * comes with SIGTERM, and would have them leave what is to be flushed. *begun: to tell the
 * parent. */
static int become_daemon(int *begun)
{
	int ends[2], null;
	pid_t pid = pipe2(ends, O_CLOEXEC) ? -1 : fork();

	if (pid > 0) {
		close(ends[1]);
		leave_child(pid, ends[0]);
	}
	if (pid == 0 && dup2(ends[1], STDERR_FILENO + 1) >= 0)
		close_range(STDERR_FILENO + 2, ~0u, 0);
	*begun = STDERR_FILENO + 1;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (pid < 0 || setsid() < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
		fcntl(*begun, F_SETFD, FD_CLOEXEC) || signal(SIGHUP, SIG_IGN) == SIG_ERR) {
		log_error("%s: cannot go into the background: %s", me, strerror(errno));
		return MAIN_FAILED;
	}
	close(null);
	return MAIN_DONE;
}

static int run_supervisor(const struct options *o)
{
	char *text = NULL;
	int rc = MAIN_DONE, begun = -1;

	if (o->log[0])
		rc = redirect_log(o->log);
	if (!rc && o->stack[0])
		rc = load_text(o->stack, &text);
	if (!rc && o->daemon)
		rc = become_daemon(&begun);
	if (!rc)
		rc = supervise(o->segment, text, begun);
	free(text);
	return rc;
}

/* One thing is done, and what does nothing then is refused. */
static int check_together(const struct options *o, bool names, struct xseg_error *err)
{
	if (o->kinds + o->keys + !!o->check[0] + o->supervise + names != 1)
		return xseg_fail(err, -EINVAL,
				 "name the peers to serve, or give one of --supervise, --check, "
				 "--kinds and --keys");
	if (o->report && !o->check[0])
		return xseg_fail(err, -EINVAL, "--report is for --check only; leave it out");
	if (!o->supervise && (o->daemon || o->log[0] || o->stack[0]))
		return xseg_fail(err, -EINVAL, "--%s is for --supervise only; leave it out",
				 o->daemon ? "daemon" : o->log[0] ? "log" : "stack");
	return 0;
}

static int run_program(int argc, char **argv)
{
	struct options o = { .supervise = false };
	struct cli_group groups[] = { { table, &o }, { NULL, NULL } };
	struct xseg_error err = { "" };
	int at;

	opt_set_defaults(table, &o);
	main_default_segment(o.segment);
	at = cli_parse(groups, argc, argv, &err);
	if (at >= 0 && o.help)
		return print_help();
	if (at >= 0 && o.version)
		return print_version();
	if (at < 0 || check_together(&o, at < argc, &err)) {
		log_error("%s: %s; see %s --help", me, err.text, me);
		return MAIN_USAGE;
	}
	owner_use(o.owner);
	if (o.kinds)
		return print_kinds();
	if (o.keys)
		return check_keys();
	if (o.check[0])
		return check_file(o.check, o.report);
	return o.supervise ? run_supervisor(&o) : host(o.segment, argc - at, argv + at);
}

/* A build without sosd leaves its place to one with sosd, where that is installed: a package of its
 * own has it, so that not every stack needs Ceph's libraries. */
static void leave_to_ceph(char **argv)
{
#ifndef XSEG_HAVE_SOSD
	static const char suffix[] = ".ceph";
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof(suffix));

	if (len <= 0)
		return;
	memcpy(path + len, suffix, sizeof(suffix));
	(void)execv(path, argv);
#else
	(void)argv;
#endif
}

int main(int argc, char **argv)
{
	leave_to_ceph(argv);
	cli_begin();
	return cli_end(me, run_program(argc, argv));
}
