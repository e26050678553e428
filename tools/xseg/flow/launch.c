/* launch - see launch.h.
 *
 * The supervisor's lines in the log tell that a peer failed to start (start_log.h).
 */
#include "tools/xseg/flow/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers/common/options/args.h"
#include "peers/common/say/dirty.h"
#include "peers/common/say/hint.h"
#include "peers/common/log/log_file.h"
#include "peers/common/runtime/main.h"
#include "peers/common/say/words.h"
#include "tools/xseg/flow/ending.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/proc.h"
#include "tools/xseg/base/start_log.h"
#include "tools/xseg/base/view.h"

#define LOOK_NS		(TOOL_SECOND / 50)
#define LINE_BYTES	START_LOG_LINE
#define SUPERVISOR	"supervisor: "			/* how its lines begin */
#define CRASHES_MAX	5			/* one or two are an accident */

static off_t log_size(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_size;
}

/* Of a name that the segment does not have: XSEG_PEER_FREE. */
static void get_info(struct xseg *seg, const char *name, struct xseg_peer_info *info)
{
	uint32_t index = xseg_peer_find(seg, name);

	if (index == XSEG_NONE || !xseg_peer_get_info(seg, index, info))
		*info = (struct xseg_peer_info){ .state = XSEG_PEER_FREE };
}

static bool serves(struct xseg *seg, const char *name, struct xseg_peer_info *info)
{
	get_info(seg, name, info);
	return info->state == XSEG_PEER_LIVE && !peer_word_stopping(info);
}

/* Nobody starts it. */
static bool is_gone(struct xseg *seg, const struct xseg_peer_info *info)
{
	return info->state == XSEG_PEER_FREE || xseg_peer_is_gone(seg, info);
}

static void note_line(const char *line, void *arg)
{
	tool_note(arg, "%s", line);
}

/* Who has started it may not look into the log of what serves. */
static void note_warnings(struct tool *t, const char *log, off_t from)
{
	proc_each_line(log, from, ": warning: ", note_line, t);
}

/* ---- one peer ---------------------------------------------------------------------------- */

/* The names of those of its group that are not alive: they are started with it. */
static void add_group(struct args *a, struct xseg *seg, const struct stack *stack,
		      const struct stack_peer *p)
{
	const struct stack_group *g = &stack->groups[p->group];
	struct xseg_peer_info info;
	struct stopped s;
	uint32_t i;

	stopped_load(seg, &s);
	for (i = 0; i < g->nr; i++)
		if (!serves(seg, stack->peers[g->peer[i]].name, &info) && !view_peer_alive(&info) &&
			!stopped_peer(&s, &info))
			args_add(a, "%s", stack->peers[g->peer[i]].name);
}

static int build_arguments(struct tool *t, struct xseg *seg, const struct stack *stack,
			   const struct stack_peer *p, struct args *a)
{
	const char *program = p->group == STACK_NONE ? stack_program(p->kind) : "xseg-host";
	char path[PATH_MAX];
	int rc = tool_program(program, path, sizeof(path));

	if (rc)
		return tool_fail_errno(rc, NULL, "build or install it",
				       "program %s", program);
	args_add(a, "%s", path);
	args_add(a, "--segment=%s", t->segment);
	if (p->group == STACK_NONE)
		args_add_peer(a, seg, stack, p);
	else
		add_group(a, seg, stack, p);
	return a->failed ? tool_fail(TOOL_FAILED, "%s: no memory for its arguments; free some",
				     p->name)
			 : TOOL_DONE;
}

/* Of a peer's process that ended by itself: who was refused is refused here, too. */
static enum tool_exit exit_of_peer(long code)
{
	return code == MAIN_REFUSED ? TOOL_REFUSED : TOOL_FAILED;
}

static int start_failed(const char *name, int status, const char *log, off_t from)
{
	char word[XSEG_NAME_MAX + 16], line[LINE_BYTES];
	size_t skip = 0;

	snprintf(word, sizeof(word), "%s: error: ", name);
	if (proc_last_line(log, from, word, NULL, line, sizeof(line)))
		skip = strlen(word);
	else if (!proc_last_line(log, from, "", NULL, line, sizeof(line)))
		snprintf(line, sizeof(line), "it left no line in its log");
	return tool_fail(exit_of_peer(WIFEXITED(status) ? WEXITSTATUS(status) : MAIN_FAILED),
			 "%s did not start: %s (log: %s)", name, line + skip, log);
}

/* N1 of tools/xseg/cmd/peer_cmds.c: its name was taken out, so another command has put it there. */
static int refuse_stopped(const char *name)
{
	return tool_fail(TOOL_REFUSED,
		"%s: 'xseg peer stop' has stopped it before it served; 'xseg peer start %s' starts "
		"it",
		name, name);
}

/* child: 0 when somebody else is starting it */
static int wait_for_peer(struct tool *t, struct xseg *seg, const char *name, pid_t child,
			 const char *log, off_t from)
{
	struct xseg_peer_info info;
	struct tool_span gone = { 0 };
	int status;

	while (!serves(seg, name, &info)) {
		if (child && proc_ended(child, &status)) {
			child = 0;
			if (serves(seg, name, &info) || view_peer_alive(&info))
				continue;	/* the supervisor's process has come first */
			return stopped_look(seg, &info)
				       ? refuse_stopped(name)
				       : start_failed(name, status, log, from);
		}
		if (!child && stopped_look(seg, &info))
			return refuse_stopped(name);
		if (!child && tool_span_ns(&gone, is_gone(seg, &info)) > TOOL_GONE_NS)
			return tool_fail(TOOL_FAILED,
				"%s did not start: the process that was starting it has ended; see "
				"%s, and do this again",
				name, log);
		if (tool_out_of_time(t))
			return tool_later(
				"%s is not serving yet, it goes on starting; see 'xseg peer list' "
				"and %s",
				name, log);
		tool_progress(t, "starting %s", name);
		tool_sleep_ns(LOOK_NS);
	}
	return TOOL_DONE;
}

/* Starts it, and waits until it serves. */
static int run_peer(struct tool *t, struct xseg *seg, const char *name, char *const argv[],
		    const char *log)
{
	off_t from = log_size(log);
	struct xseg_error err = { "" };
	int fd = log_file_open(log, &err), rc;
	const char *limit;
	pid_t pid;

	if (fd < 0)
		return tool_fail(TOOL_FAILED, "%s did not start: %s", name, err.text);
	pid = proc_spawn(argv, fd);
	close(fd);
	limit = hint_of_limit(pid);
	if (pid < 0)
		return tool_fail_errno(pid, NULL, limit ? limit : "see 'xseg peer list'",
				       "%s did not start: %s", name, argv[0]);
	rc = wait_for_peer(t, seg, name, pid, log, from);
	if (!rc)
		note_warnings(t, log, from);
	return rc;
}

static int spawn_peer(struct tool *t, struct xseg *seg, const struct stack *stack,
		      const struct stack_peer *p)
{
	struct args a = { 0 };
	char log[PATH_MAX];
	int rc;

	proc_log_path(t->segment, log, sizeof(log));
	rc = build_arguments(t, seg, stack, p, &a);
	if (!rc)
		rc = run_peer(t, seg, p->name, a.arg, log);
	args_free(&a);
	return rc;
}

static int start_from_stack(struct tool *t, struct xseg *seg, const struct stack *stack,
			    const char *name)
{
	uint32_t peer = stack_find(stack, name);
	struct xseg_peer_info info;

	if (peer == STACK_NONE)
		return tool_fail(TOOL_REFUSED,
			"%s: the stack file of segment %s has no peer of that name; add its "
			"section to the file, and 'xseg reload' starts it",
			name, t->segment);
	if (serves(seg, name, &info))
		return tool_fail(
			TOOL_REFUSED,
			"%s: it is running already; stop it first with 'xseg peer stop %s'", name,
			name);
	if (view_peer_alive(&info) && peer_word_stopping(&info))
		return tool_fail(TOOL_REFUSED,
			"%s: it is stopping; start it when it has stopped, as 'xseg peer list' "
			"shows",
			name);
	if (info.state == XSEG_PEER_OPENING)
		return wait_for_peer(t, seg, name, 0, "its log", 0);
	return spawn_peer(t, seg, stack, &stack->peers[peer]);
}

int launch_stack(struct tool *t, struct xseg *seg, const char *what, struct stack **stack,
		 char **text)
{
	char *copy = malloc(STACK_TEXT_BYTES);
	struct xseg_error err = { "" };
	int rc = TOOL_DONE;

	*stack = stack_create();
	if (!*stack || !copy)
		rc = tool_fail(TOOL_FAILED, "no memory for a stack; free some");
	else if (!xseg_is_own(seg))
		rc = tool_fail(TOOL_REFUSED,
			"%s: another user made segment %s, so nothing is started from its stack "
			"file; that user can start the peer, or run its program yourself",
			what, t->segment);
	else if (!xseg_stack_get(seg, copy, STACK_TEXT_BYTES))
		rc = tool_fail(
			TOOL_REFUSED,
			"%s: segment %s holds no stack file; start one with 'xseg up STACK.conf'",
			what, t->segment);
	else if (stack_parse(copy, *stack, &err))
		rc = tool_fail(TOOL_FAILED,
			       "the stack file in segment %s: %s; give it another with 'xseg up "
			       "STACK.conf'",
			       t->segment, err.text);
	if (rc) {
		stack_destroy(*stack);
		*stack = NULL;
	}
	if (rc || !text)
		free(copy);
	else
		*text = copy;
	return rc;
}

int launch_peer(struct tool *t, struct xseg *seg, const char *name)
{
	struct stack *stack;
	int rc = launch_stack(t, seg, name, &stack, NULL);

	if (!rc)
		rc = start_from_stack(t, seg, stack, name);
	stack_destroy(stack);
	return rc;
}

/* ---- a stack ----------------------------------------------------------------------------- */

/* rc: of its process. said: before it had a log, or "" */
static int supervisor_failed(const struct launch *l, int rc, const char *said)
{
	static const char word[] = SUPERVISOR "error: ";
	char line[LINE_BYTES];
	size_t skip = 0;

	if (rc == MAIN_REFUSED && xseg_supervisor_alive(l->seg))
		return launch_refuse(l->t, l->seg);
	if (rc == -EINTR)
		return tool_later(
			"the supervisor is not there yet, the start goes on; see 'xseg status' and "
			"%s, or stop it by 'xseg down'",
			l->log);
	if (said[0])
		return tool_fail(TOOL_FAILED, "the supervisor did not start: %s", said);
	if (proc_last_line(l->log, l->log_from, word, NULL, line, sizeof(line)))
		skip = strlen(word);
	else if (!proc_last_line(l->log, l->log_from, SUPERVISOR, NULL, line, sizeof(line)))
		snprintf(line, sizeof(line), "it left no line in its log");
	return tool_fail(exit_of_peer(rc), "the supervisor did not start: %s (log: %s)",
			 line + skip, l->log);
}

int launch_refuse(const struct tool *t, struct xseg *seg)
{
	struct xseg_peer_info supervisor;

	if (view_supervisor(seg, &supervisor) && peer_word_stopping(&supervisor))
		return tool_fail(TOOL_REFUSED,
			"up: segment %s has a stack that is being stopped; 'xseg down' waits until "
			"it is, then do this again",
			t->segment);
	return tool_fail(TOOL_REFUSED,
		"up: segment %s has a stack that runs; see 'xseg status', or stop it with 'xseg "
		"down'",
		t->segment);
}

int launch_supervisor(struct launch *l, struct tool *t, struct xseg *seg, const struct stack *stack,
		      const char *text)
{
	char path[PATH_MAX], said[LINE_BYTES] = "";
	int rc, fd;

	*l = (struct launch){ .t = t, .seg = seg, .stack = stack, .what = "up" };
	proc_log_path(t->segment, l->log, sizeof(l->log));
	l->log_from = log_size(l->log);
	rc = tool_program("xseg-host", path, sizeof(path));
	if (rc)
		return tool_fail_errno(rc, NULL, "build or install it",
				       "program xseg-host");
	fd = proc_open_text(text, strlen(text));
	if (fd < 0)
		return tool_fail_errno(fd, NULL, "free some memory", "up: the stack file's text");
	rc = proc_run((char *[]){ path, "--supervise", "-s", t->segment, "--daemon", "--log",
				  l->log, "--stack", "-", NULL },
		      fd, t, said, sizeof(said));
	close(fd);
	return rc ? supervisor_failed(l, rc, said) : TOOL_DONE;
}

/* What the peer sends to: as routes are now, or as the file says while it has none. */
static uint32_t place_below(
	const struct launch *l, uint32_t peer, const struct xseg_peer_info *info)
{
	struct xseg_peer_info below;

	if (info->state != XSEG_PEER_FREE && info->downstream != XSEG_NONE &&
		xseg_peer_get_info(l->seg, info->downstream, &below))
		return stack_find(l->stack, below.name);
	return l->stack->peers[peer].downstream;
}

static bool is_needed(const struct start_log_names *n, const char *name)
{
	for (uint32_t i = 0; i < n->nr; i++)
		if (!strcmp(n->name[i], name))
			return true;
	return !n->nr;
}

static void need(struct start_log_names *n, const char *name)
{
	if (!n->nr || !is_needed(n, name))
		n->name[n->nr++] = name;
}

/* The peer, and those below it. */
static void need_peer(const struct launch *l, struct start_log_names *n, uint32_t peer)
{
	struct xseg_peer_info info;

	for (uint32_t hops = 0; peer != STACK_NONE && hops < l->stack->nr_peers; hops++) {
		need(n, l->stack->peers[peer].name);
		get_info(l->seg, l->stack->peers[peer].name, &info);
		peer = place_below(l, peer, &info);
	}
}

/* The peer or the export that is waited for, and the peers that it needs. */
static void find_needed(const struct launch *l, const char *waiting, struct start_log_names *n)
{
	uint32_t export = stack_find_export(l->stack, waiting);

	need(n, waiting);
	need_peer(l, n, stack_find(l->stack, waiting));
	for (uint32_t i = 0; export != STACK_NONE && i < l->stack->nr_peers; i++)
		if (stack_export_takes(&l->stack->exports[export], &l->stack->peers[i]))
			need_peer(l, n, i);
}

/* What the supervisor's line tells, or nbdkit's. */
static enum tool_exit exit_of_line(const char *line)
{
	const char *at = strstr(line, START_LOG_ENDED);

	if (strstr(line, "another process serves on ") || strstr(line, " is not a socket;") ||
		strstr(line, "Address already in use"))
		return TOOL_REFUSED;
	return at ? exit_of_peer(strtol(at + strlen(START_LOG_ENDED), NULL, 10)) : TOOL_FAILED;
}

/* nbdkit's last line; an address that cannot be had stands there without its name. */
static bool find_line_of_nbdkit(const struct launch *l, char *line, size_t size)
{
	return proc_last_line(l->log, l->log_from, "nbdkit: ", NULL, line, size) ||
	       proc_last_line(l->log, l->log_from, "bind: ", NULL, line, size);
}

/* The reason: the last error of such a peer that does not serve, in its own words. */
static int report_failure(
	const struct launch *l, const struct start_log_names *needed, const char *supervisor_line)
{
	enum tool_exit code = exit_of_line(supervisor_line);
	char word[XSEG_NAME_MAX + 16], line[LINE_BYTES];
	struct xseg_peer_info info;
	uint32_t i;

	for (i = 0; i < l->stack->nr_peers; i++) {
		if (!is_needed(needed, l->stack->peers[i].name) ||
			serves(l->seg, l->stack->peers[i].name, &info))
			continue;
		snprintf(word, sizeof(word), "%s: error: ", l->stack->peers[i].name);
		if (proc_last_line(l->log, l->log_from, word, NULL, line, sizeof(line)))
			return tool_fail(code, "%s: %s did not start: %s (log: %s)",
					 l->what, l->stack->peers[i].name, line + strlen(word),
					 l->log);
	}
	/* it ended after that */
	if (strstr(supervisor_line, "process of export") &&
		find_line_of_nbdkit(l, line, sizeof(line)))
		return tool_fail(exit_of_line(line), "%s: %s; %s (log: %s)", l->what, line,
			supervisor_line, l->log);
	return tool_fail(code, "%s: %s (log: %s)", l->what, supervisor_line, l->log);
}

/* The supervisor goes on for ever, as it has to once the peer has served; here nobody would learn
 * of it. text: what is to be said of a process that was killed, or "". */
static int look_for_crashes(const struct launch *l, const char *name, char *text, size_t size)
{
	struct start_log_crashes c;

	start_log_count_crashes(l->log, l->log_from, name, &c);
	text[0] = '\0';
	if (c.nr_kills >= CRASHES_MAX)
		snprintf(text, size, " (killed by signal %d %u times%s; see %s)", SIGKILL,
			 c.nr_kills,
			 c.memory ? ", perhaps by the kernel because memory ran out" : "", l->log);
	if (c.nr < CRASHES_MAX)
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED,
			 "%s: %s did not start: its process was killed by signal %d, the last of "
			 "%u times (log: %s)",
			 l->what, name, c.signal, c.nr, l->log);
}

/* The one for which it stays away: itself, or one below it. STACK_NONE: it does not stay away. */
static uint32_t away_for(const struct launch *l, const struct stopped *s, uint32_t peer)
{
	struct xseg_peer_info info;
	uint32_t hops;

	for (hops = 0; peer != STACK_NONE && hops < l->stack->nr_peers; hops++) {
		if (serves(l->seg, l->stack->peers[peer].name, &info))
			return STACK_NONE;
		if (stopped_peer(s, &info))
			return peer;
		peer = place_below(l, peer, &info);
	}
	return STACK_NONE;
}

bool launch_stays_away(const struct launch *l, const struct stopped *s, uint32_t peer)
{
	return away_for(l, s, peer) != STACK_NONE;
}

void launch_note_away(const struct launch *l)
{
	char text[STOPPED_TEXT];
	struct stopped s;
	uint32_t at;

	stopped_load(l->seg, &s);
	for (uint32_t i = 0; i < l->stack->nr_peers; i++) {
		at = away_for(l, &s, i);
		if (at == i)
			tool_note(l->t, "%s", stopped_tell(l->stack->peers[i].name, text));
		else if (at != STACK_NONE)
			tool_note(l->t, "%s: it is not started while %s is stopped",
				l->stack->peers[i].name, l->stack->peers[at].name);
	}
}

/* How many peers serve; *waiting is the name of one that does not. */
static uint32_t count_serving(struct launch *l, const char **waiting)
{
	uint32_t order[STACK_MAX_PEERS], i, nr = 0;
	struct xseg_peer_info info;
	struct stopped s;

	*waiting = NULL;
	l->nr_away = 0;
	stopped_load(l->seg, &s);
	stack_order(l->stack, order);
	for (i = 0; i < l->stack->nr_peers; i++) {
		const char *name = l->stack->peers[order[i]].name;

		if (serves(l->seg, name, &info))
			nr++;
		else if (launch_stays_away(l, &s, order[i]))
			l->nr_away++;
		else if (!*waiting)
			*waiting = name;
	}
	return nr;
}

/* The process that serves a name until it has stopped, as it was told to before: the next one
 * begins then, and that may be long. */
struct old_process {
	struct xseg_peer_info info;
	struct ending_stall stall;
};

/* text: what is to be said of that of `name`, or "". */
static void look_at_old(const struct launch *l, struct old_process *old, const char *name,
			char *text, size_t size)
{
	struct xseg_peer_info info;
	char dirty[OUT_TEXT];

	text[0] = '\0';
	if (serves(l->seg, name, &info) || !view_peer_alive(&info) || !peer_word_stopping(&info))
		return;
	if (old->info.generation != info.generation) {
		old->info = info;
		old->stall = ENDING_STALL_OF(&old->info);
	}
	ending_look_for_stall(l->t, l->seg, &old->stall);
	snprintf(text, size, " (the one before is still stopping: %s dirty)",
		 out_size(dirty_bytes_of(l->seg, info.index), dirty));
}

bool launch_ended_in_order(struct xseg *seg)
{
	struct xseg_peer_info info;
	uint32_t i;

	for (i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &info) &&
			(view_peer_is_supervisor(&info) ? info.state == XSEG_PEER_DEAD
				: view_peer_alive(&info) && !view_peer_is_client(&info)))
			return false;
	return true;
}

/* What is seen of a start that has not failed: whether somebody stops it all, and what is to be
 * said of a process that was killed, or "". */
struct sight {
	bool stopping;
	char killed[PATH_MAX + 100];
};

/* The process that ended, as the supervisor's line says, was one too many: another one serves, or
 * will, as `xseg peer start` has started it at the same time. */
static bool is_begun(const struct launch *l, const char *peer, const char *line)
{
	char word[XSEG_NAME_MAX + 16];
	struct xseg_peer_info info;

	snprintf(word, sizeof(word), "process of %s ended ", peer);
	return strstr(line, word) && (serves(l->seg, peer, &info) || view_peer_alive(&info));
}

/* How peers end while all is being stopped, as somebody asked for, is no failure to start. Nor is
 * the failure of a peer that `waiting` does not need, unless all peers are waited for. */
static int look_for_failure(
	struct launch *l, const char *waiting, bool all, struct sight *sight)
{
	struct start_log_names needed = { .nr = 0 };
	struct xseg_peer_info supervisor;
	bool alive = view_supervisor(l->seg, &supervisor);
	uint64_t away_ns = tool_span_ns(&l->no_supervisor, !alive);
	char line[LINE_BYTES];

	sight->killed[0] = '\0';
	sight->stopping = alive && peer_word_stopping(&supervisor);
	if (sight->stopping)
		return TOOL_DONE;
	if (!alive && launch_ended_in_order(l->seg))
		return tool_fail(TOOL_FAILED,
			"%s: the stack was stopped before all of it served, by 'xseg down' or a "
			"signal to its supervisor; the log is %s",
			l->what, l->log);
	if (!all)
		find_needed(l, waiting, &needed);
	if (start_log_failed(l->log, l->log_from, &needed, line) && !is_begun(l, waiting, line))
		return report_failure(l, &needed, line);
	if (look_for_crashes(l, waiting, sight->killed, sizeof(sight->killed)))
		return TOOL_FAILED;
	return away_ns <= TOOL_GONE_NS
		       ? TOOL_DONE
		       : tool_fail(TOOL_FAILED, "%s: the supervisor went away; see %s", l->what,
				 l->log);
}

int launch_look_for_failure(struct launch *l, const char *waiting)
{
	struct sight sight;

	return look_for_failure(l, waiting, false, &sight);
}

int launch_wait(struct launch *l)
{
	uint32_t nr = l->stack->nr_peers, serving;
	struct old_process old = { 0 };
	char why[LINE_BYTES];
	const char *waiting;
	struct sight sight;
	int rc;

	while ((serving = count_serving(l, &waiting)) + l->nr_away < nr) {
		rc = look_for_failure(l, waiting, true, &sight);
		if (rc)
			return rc;
		look_at_old(l, &old, waiting, why, sizeof(why));
		if (tool_out_of_time(l->t))
			return tool_later(
				"%u of %u peers serve, %s does not yet%s%s, %s; see 'xseg status' "
				"and %s%s",
				serving, nr, waiting, why, sight.killed,
				sight.stopping ? "and the stack is being stopped"
					       : "the start goes on",
				l->log, sight.stopping ? "" : ", or stop it by 'xseg down'");
		tool_progress(l->t, "%u of %u peers serve, %s %s%s%s", serving, nr,
			      sight.stopping ? "the stack is being stopped, with" : "waiting for",
			      waiting, why, sight.killed);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	return TOOL_DONE;
}

void launch_watch(struct launch *l, struct tool *t, struct xseg *seg, const struct stack *stack,
		  const char *what)
{
	struct xseg_peer_info supervisor;

	*l = (struct launch){ .t = t, .seg = seg, .stack = stack, .what = what };
	if (!view_supervisor(seg, &supervisor) ||
		!proc_errors_path(supervisor.pid, l->log, sizeof(l->log)))
		proc_log_path(t->segment, l->log, sizeof(l->log));
	l->log_from = log_size(l->log);
}

int launch_wait_again(struct launch *l, const struct xseg_peer_info *old, bool *stays)
{
	struct ending_stall stall = ENDING_STALL_OF(old);
	struct tool_span stranded = { 0 };
	struct xseg_peer_info info;
	struct sight sight;
	char dirty[OUT_TEXT];
	int rc;

	*stays = false;
	while (!serves(l->seg, old->name, &info) || info.generation == old->generation) {
		*stays = stopped_look(l->seg, &info);
		if (*stays)
			break;
		if (info.generation == old->generation && view_peer_alive(&info)) {
			rc = ending_look_stranded(l->seg, &info, &stranded);
			if (rc)
				return rc;
			ending_look_for_stall(l->t, l->seg, &stall);
			tool_progress(l->t, "stopping %s: %s dirty", old->name,
				      out_size(dirty_bytes_of(l->seg, old->index), dirty));
		} else {
			rc = look_for_failure(l, old->name, false, &sight);
			if (rc)
				return rc;
			tool_progress(l->t, "starting %s%s", old->name, sight.killed);
		}
		if (tool_out_of_time(l->t))
			return tool_later("%s: %s does not serve yet, the restart goes on; see "
					  "'xseg peer list'",
					  l->what, old->name);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	return TOOL_DONE;
}

void launch_note_warnings(const struct launch *l)
{
	note_warnings(l->t, l->log, l->log_from);
}
