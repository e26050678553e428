/* export_cmds - export: nbdkit serves a volume on a socket, in the foreground, until it is
 * interrupted.
 *
 * nbdkit is a child that ends with this process, however that ends (--exit-with-parent). Its output
 * comes through a pipe. Before it serves, its last line is the reason why it does not; afterwards
 * its lines go to stderr. It serves when a client is greeted, or turned away as others have all
 * places. The socket's file is removed at the end, unless another export that began at the same
 * time has it. If a signal ends an nbdkit that has served, nbdkit is begun anew: otherwise all its
 * clients would be without their disks.
 *
 * A library is preloaded into nbdkit, so that a client harms only itself (tools/nbdkit/guard.c). It
 * bounds the connections, and nbdkit does not end because of a client's messages. When this process
 * ends, or wants it, the library cuts connections whose clients do not take their answers. Without
 * the library there is no export. If the dynamic linker cannot load a library, it only warns, and
 * goes on. So the library sends a byte when nbdkit accepts the first client, and an nbdkit whose
 * library has sent none is ended.
 *
 * Contract: see commands.h. The exit code is 0 after an interrupt, which is how an export ends; 1
 * if nbdkit exits by itself, or the segment was removed; 3 if it does not serve in time.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers/common/options/cli.h"
#include "peers/common/options/mode.h"
#include "peers/common/options/owner.h"
#include "peers/common/options/stack.h"
#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/base/exported.h"
#include "tools/xseg/base/out.h"
#include "xseg/volume.h"

#define START_NS   (30 * TOOL_SECOND)
#define STALL_NS   (5 * TOOL_SECOND)	/* nbdkit does not end, which is said */
#define LOOK_MS	   500		/* an interrupt may come between the look at it and the sleep */
#define START_MS   20
#define AGAIN_MS   100				/* before one that has died is begun anew */
#define GREETED_MS 1000
#define LINE_BYTES 1024
#define PLUGIN	   "nbdkit-xseg-plugin.so"
#define GUARD	   "xseg-nbdkit-guard.so"
#define THREADS	   2			/* a connection's, at least: guard.c's contract */
#define PRELOAD_BYTES (64u << 10)

#define AT(field) offsetof(struct export_opts, field)
const struct opt export_table[] = {
	{ .name = "nbd", .kind = OPT_STR, .off = AT(nbd), .len = EXPORT_SOCKET_MAX,
	  .flags = OPT_REQUIRED, .arg = "SOCKET", .help = "the Unix socket to serve on" },
	{ .name = "mode", .kind = OPT_STR, .off = AT(mode), .len = 8, .def = "0600", .arg = "MODE",
	  .check = mode_check, .help = "users that may connect to the socket, as a file mode" },
	{ .name = "group", .kind = OPT_STR, .off = AT(group), .len = 33, .arg = "GROUP",
	  .check = stack_check_group,
	  .help = "group that the socket is given to, by name or number" },
	{ .name = "read-only", .kind = OPT_BOOL, .off = AT(read_only),
	  .help = "clients cannot write" },
	{ .name = "queues", .kind = OPT_UINT, .off = AT(queues), .min = 1, .max = 64, .def = "16",
	  .arg = "N",
	  .help = "requests in progress at a time, beside small writes; each takes a port and 2 "
		  "MiB of the segment, as do four more queues for small writes" },
	{ .name = "connections", .kind = OPT_UINT, .off = AT(connections), .min = 1, .max = 1024,
	  .def = "64", .arg = "N",
	  .help = "connections at a time; more are closed at once" },
	{ .name = "volumed", .kind = OPT_STR, .off = AT(volumed), .len = XSEG_NAME_MAX,
	  .arg = "NAME", .check = cli_check_name,
	  .help = "the volume's volumed, if there are several" },
	{ 0 },
};
#undef AT

struct server {
	struct tool *t;
	const struct export_opts *opts;
	const char *volume;
	struct xseg *seg;			/* an observer's, while it serves */
	uint32_t volumed;			/* the peer */
	uint64_t size_bytes;
	struct sockaddr_un address;
	int64_t group;				/* of the socket; -1: it is left */
	char uri[EXPORTED_URI_MAX];
	pid_t pid;				/* 0: there is none */
	int said;				/* what nbdkit prints; -1: it has ended */
	int cut;		/* to the library; when it is closed, connections are cut; or -1 */
	int guard;				/* the library to preload; or -1 */
	bool serves;
	char line[LINE_BYTES], last[LINE_BYTES]; /* one that is not yet whole; the last whole one */
	size_t len;
};

/* ---- before it begins -------------------------------------------------------------------- */

/* That the volume is there is found out here, for the exit code. */
static int look_at_volume(struct server *s)
{
	struct xseg_volume_params params = { .volume = s->volume,
		.timeout_ns = s->t->timeout_ns,
		.volumed = *s->opts->volumed ? s->opts->volumed : NULL };
	struct xseg_volume *volume;
	struct xseg_volume_info info;
	struct xseg_error err = { "" };
	bool several;
	int rc = tool_attach(s->t, 0, &params.attached);

	if (rc)
		return rc;
	rc = xseg_volume_open(&params, &volume, &err);
	if (rc) {
		several = rc == -EINVAL && !params.volumed && xseg_name_ok(s->volume);
		rc = tool_fail_errno(rc, &err,
			several ? "'xseg peer list' shows them, --volumed=NAME chooses one" : NULL,
			"export %s", s->volume);
	} else {
		xseg_volume_get_info(volume, &info);
		s->size_bytes = info.size_bytes;
		s->volumed = xseg_peer_find(params.attached, info.volumed);
		xseg_volume_close(volume);
	}
	xseg_detach(params.attached);
	return rc ? rc : tool_attach(s->t, XSEG_ATTACH_OBSERVER, &s->seg);
}

/* An export outlives a stop of volumed, which may be started again. A segment that was removed does
 * not come back: a stack of its name has another. */
static int look_for_removal(const struct server *s)
{
	struct xseg_peer_info info;

	if (!xseg_is_removed(s->seg) || (xseg_peer_get_info(s->seg, s->volumed, &info) &&
						!xseg_peer_is_gone(s->seg, &info)))
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED,
		"export %s: segment %s was removed, as 'xseg down' does; start its stack with "
		"'xseg up STACK.conf', and export the volume again",
		s->volume, s->t->segment);
}

static int dial(const struct server *s)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)&s->address, sizeof(s->address)))
		return fd;
	close(fd);
	return -errno;
}

/* Whether our nbdkit, if there is one, listens at the other end: that of another export may. */
static bool is_ours(const struct server *s, int fd)
{
	socklen_t size = sizeof(struct ucred);
	struct ucred other;

	return !s->pid || (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &size) &&
				  other.pid == s->pid);
}

/* Greeted as a client, and taken leave of in order: flags (fixed newstyle, no zeroes), then the
 * option ABORT. Our nbdkit may also close before it greets: then it serves, and clients that were
 * quicker have all places. */
static bool is_served(const struct server *s)
{
	/* the last 0 is the string's own */
	static const char leave[] = "\0\0\0\3IHAVEOPT\0\0\0\2\0\0\0";
	struct timeval limit = { .tv_sec = GREETED_MS / 1000 };
	char greeting[18], answer[20];
	int fd = dial(s);
	ssize_t got;
	bool ok;

	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	got = recv(fd, greeting, sizeof(greeting), MSG_WAITALL);
	ok = is_ours(s, fd) &&
	     ((got == 0 && s->pid) ||
		     (got == sizeof(greeting) && !memcmp(greeting, "NBDMAGICIHAVEOPT", 16) &&
			     send(fd, leave, sizeof(leave), MSG_NOSIGNAL) == sizeof(leave) &&
			     recv(fd, answer, sizeof(answer), MSG_WAITALL) == sizeof(answer)));
	close(fd);
	return ok;
}

static int refuse_socket(const struct server *s)
{
	return tool_fail(TOOL_REFUSED,
		"export: another process serves on %s; choose another socket",
			 s->address.sun_path);
}

/* Whether nobody listens on it any more. */
static bool is_left(const struct server *s)
{
	int fd = is_served(s) ? 0 : dial(s);

	if (fd > 0)
		close(fd);
	return fd == -ECONNREFUSED;
}

/* Of a socket that is to be made. */
static int need_directory(const char *path)
{
	char dir[PATH_MAX];
	struct stat st;

	snprintf(dir, sizeof(dir), "%s", path);
	if (!stat(dirname(dir), &st))
		return TOOL_DONE;
	return tool_fail_errno(-errno, NULL, "make its directory, or choose another",
		"export: socket %s", path);
}

/* A socket on which nobody listens was left by an export that was killed. */
static int clear_socket(const struct server *s)
{
	const char *path = s->address.sun_path;
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? need_directory(path)
				       : tool_fail_errno(-errno, NULL, "choose another",
						 "export: socket %s", path);
	if (!S_ISSOCK(st.st_mode))
		return tool_fail(
			TOOL_REFUSED,
			"export: %s exists and is not a socket; choose another", path);
	if (!is_left(s))
		return refuse_socket(s);
	return unlink(path) ? tool_fail_errno(-errno, NULL, "remove it", "export: socket %s", path)
			    : TOOL_DONE;
}

/* Absolute, as URIs are. */
static int name_socket(struct server *s)
{
	const char *nbd = s->opts->nbd;
	char dir[PATH_MAX] = "", *path = s->address.sun_path;

	if (strspn(nbd, "0123456789") == strlen(nbd) || strchr(nbd, ':'))
		return tool_fail(TOOL_USAGE,
			"export: %s: it serves on a Unix socket and on no port; name the socket's "
			"file, such as ./%s.sock",
			nbd, s->volume);
	if (*nbd != '/' && !getcwd(dir, sizeof(dir)))
		return tool_fail_errno(
			-errno, NULL, "give an absolute path", "export: this directory");
	s->address.sun_family = AF_UNIX;
	if ((size_t)snprintf(path, sizeof(s->address.sun_path), "%s%s%s", dir, *dir ? "/" : "",
		    nbd) >= sizeof(s->address.sun_path))
		return tool_fail(TOOL_USAGE,
			"export: %s%s%s: a socket's path has at most %zu bytes; choose a shorter "
			"one",
			dir, *dir ? "/" : "", nbd, sizeof(s->address.sun_path) - 1);
	exported_uri_of_socket(path, s->uri);
	return TOOL_DONE;
}

static int find_group(struct server *s)
{
	struct xseg_error why;

	return *s->opts->group && owner_need_group(s->opts->group, &s->group, &why)
		       ? tool_fail(TOOL_USAGE, "export %s: %s", s->volume, why.text)
		       : TOOL_DONE;
}

/* ---- nbdkit ------------------------------------------------------------------------------ */

/* Where it was built, or installed; else nbdkit looks for it by its name. */
static void find_plugin(char *path, size_t size)
{
	static const char *const places[] = { "../lib/" PLUGIN, "../lib/nbdkit/plugins/" PLUGIN };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!tool_file(places[i], R_OK, path, size))
			return;
	snprintf(path, size, "xseg");
}

/* Where it was built, or installed. */
static int open_guard(struct server *s)
{
	char path[PATH_MAX];
	int rc = tool_file("../lib/" GUARD, R_OK, path, sizeof(path));

	if (rc == -ENOENT)
		rc = tool_file(GUARD, R_OK, path, sizeof(path));
	if (!rc) {
		s->guard = open(path, O_RDONLY | O_CLOEXEC);
		rc = s->guard < 0 ? -errno : 0;
	}
	if (!rc)
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED,
		"export %s: " GUARD " cannot be read in ../lib or ../libexec/xseg beside this "
		"program (%s), and without it one client can end all others; install the package "
		"xseg-nbdkit, or put it there",
		s->volume, strerror(-rc));
}

static unsigned nr_threads(const struct server *s)
{
	return s->opts->queues < THREADS ? THREADS : s->opts->queues;
}

/* In the child. By a descriptor, as a path may have a blank, which separates preloaded ones. */
static int preload_guard(const struct server *s, int cut)
{
	const char *others = getenv("LD_PRELOAD");
	char text[PRELOAD_BYTES];

	/* both are to be there after exec */
	if (fcntl(s->guard, F_SETFD, 0))
		return -errno;
	if (fcntl(cut, F_SETFD, 0))
		return -errno;
	if (snprintf(text, sizeof(text), "/proc/self/fd/%d%s%s", s->guard, others ? ":" : "",
		    others ? others : "") >= (int)sizeof(text))
		return -E2BIG;
	setenv("LD_PRELOAD", text, 1);
	snprintf(text, sizeof(text), "%u", s->opts->connections);
	setenv("XSEG_GUARD_CONNECTIONS", text, 1);
	snprintf(text, sizeof(text), "%d", cut);
	setenv("XSEG_GUARD_CUT", text, 1);
	snprintf(text, sizeof(text), "%u", nr_threads(s));
	if (s->opts->read_only)
		unsetenv("XSEG_GUARD_THREADS");
	else
		setenv("XSEG_GUARD_THREADS", text, 1);
	return 0;
}

static int pipe_failed(const struct server *s)
{
	return tool_fail_errno(-errno, NULL, "close something", "export %s: a pipe", s->volume);
}

/* In the child, which may have become nbdkit: why it has not. */
static _Noreturn void run_nbdkit(const struct server *s, int said, int cut, const char *const *argv)
{
	int rc = dup2(said, STDOUT_FILENO) < 0 || dup2(said, STDERR_FILENO) < 0 ? -errno : 0;

	if (!rc)
		rc = preload_guard(s, cut);
	if (rc)
		dprintf(STDERR_FILENO, "its environment cannot be made: %s; shorten LD_PRELOAD\n",
			strerror(-rc));
	if (rc)
		_exit(127);
	execvp(argv[0], (char *const *)argv);
	dprintf(STDERR_FILENO, "%s; install the package nbdkit, or put it into PATH\n",
		strerror(errno));
	_exit(127);
}

static void cut_clients(struct server *s)
{
	if (s->cut >= 0)
		close(s->cut);
	s->cut = -1;
}

static int start(struct server *s)
{
	char plugin[PATH_MAX], threads[16], queues[32], segment[XSEG_NAME_MAX + 16],
		volume[XSEG_NAME_MAX + 16], volumed[XSEG_NAME_MAX + 16];
	char socket[sizeof(s->address.sun_path) + 16], mode[16], group[32];
	const char *argv[] = { "nbdkit", "--foreground", "--exit-with-parent", "--unix",
		s->address.sun_path, "--threads", threads, plugin, segment, volume, queues, socket,
		mode, NULL, NULL, NULL, NULL };
	size_t argc = 13;
	int said[2], cut[2], rc;

	find_plugin(plugin, sizeof(plugin));
	snprintf(threads, sizeof(threads), "%u", nr_threads(s));
	snprintf(queues, sizeof(queues), "queues=%u", s->opts->queues);
	snprintf(segment, sizeof(segment), "segment=%s", s->t->segment);
	snprintf(volume, sizeof(volume), "volume=%s", s->volume);
	snprintf(volumed, sizeof(volumed), "volumed=%s", s->opts->volumed);
	snprintf(socket, sizeof(socket), "socket=%s", s->address.sun_path);
	snprintf(mode, sizeof(mode), "mode=%s", s->opts->mode);
	snprintf(group, sizeof(group), "group=%" PRId64, s->group);
	if (s->group >= 0)
		argv[argc++] = group;
	if (*s->opts->volumed)
		argv[argc++] = volumed;
	if (s->opts->read_only)
		argv[argc++] = "--readonly";
	if (pipe2(said, O_CLOEXEC))
		return pipe_failed(s);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, cut)) {
		rc = pipe_failed(s);
		close(said[0]);
		close(said[1]);
		return rc;
	}
	s->pid = fork();
	if (s->pid == 0)
		run_nbdkit(s, said[1], cut[0], argv);
	close(said[1]);
	close(cut[0]);
	s->cut = cut[1];
	if (s->pid < 0) {
		s->pid = 0;
		close(said[0]);
		cut_clients(s);
		return tool_fail_errno(
			-errno, NULL, "end some processes", "export %s: a process", s->volume);
	}
	s->said = said[0];
	return TOOL_DONE;
}

/* Why it does not serve. */
static const char *reason(const struct server *s)
{
	static const char prefix[] = "nbdkit: error: ";

	if (!*s->last)
		return "it printed nothing; try it by hand";
	return s->last + (strncmp(s->last, prefix, sizeof(prefix) - 1) ? 0 : sizeof(prefix) - 1);
}

static void end_line(struct server *s)
{
	s->line[s->len] = '\0';
	if (s->len)
		snprintf(s->last, sizeof(s->last), "%s", s->line);
	if (s->len && s->serves)
		tool_pass_on(s->line);
	s->len = 0;
}

/* Waits so long for something that nbdkit says, or its end. */
static void listen_to(struct server *s, int timeout_ms)
{
	struct pollfd p = { .fd = s->said, .events = POLLIN };
	char text[LINE_BYTES];
	ssize_t got;

	if (poll(&p, 1, timeout_ms) <= 0)
		return;
	got = read(s->said, text, sizeof(text));
	if (got < 0 && errno == EINTR)
		return;
	for (ssize_t i = 0; i < got; i++) {
		if (text[i] == '\n' || s->len == sizeof(s->line) - 1)
			end_line(s);
		if (text[i] != '\n')
			s->line[s->len++] = text[i];
	}
	if (got > 0)
		return;
	end_line(s);
	close(s->said);
	s->said = -1;
}

/* How it ended. */
static int reap(struct server *s)
{
	int status = 0;

	while (s->pid && waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
	cut_clients(s);
	return status;
}

/* The library has sent its byte before nbdkit greeted. */
static int check_guard(const struct server *s)
{
	char byte;

	if (recv(s->cut, &byte, 1, MSG_DONTWAIT) == 1)
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED,
		"export %s: nbdkit has begun without " GUARD ", and without it one client can end "
		"all others%s%s; build or install that library again",
		s->volume, *s->last ? ": " : "", s->last);
}

static int wait_until_served(struct server *s)
{
	uint64_t limit = tool_limit(s->t, START_NS);
	struct xseg_error why;

	while (s->said >= 0 && !tool_interrupted() && tool_now_ns() < limit) {
		if (is_served(s)) {
			listen_to(s, 0);
			s->serves = true;
			return check_guard(s);
		}
		listen_to(s, START_MS);
	}
	if (s->said < 0) {
		reap(s);
		if (is_served(s))
			return refuse_socket(s);		/* it was quicker */
		xseg_fail(&why, 0, "%s", reason(s));
		return tool_fail_errno(-EIO, &why, "mend that and export it again",
			"export %s: nbdkit", s->volume);
	}
	return tool_later(
		"export %s: nbdkit does not serve yet, and is ended; see 'xseg status'", s->volume);
}

/* Asks it to end until it has: between fork and exec a signal is caught, and does nothing. It
 * ends the I/O that it is doing first, which a client that takes no answer keeps it from until it
 * is cut, and a store that stands still may keep it from; a second interrupt ends this process, and
 * nbdkit ends when it can. */
static void stop(struct server *s)
{
	uint64_t since = tool_now_ns();
	bool noted = false;

	for (;;) {
		if (s->pid)
			kill(s->pid, SIGTERM);
		cut_clients(s);
		if (s->said < 0)
			break;
		listen_to(s, LOOK_MS);
		if (noted || tool_now_ns() - since < STALL_NS)
			continue;
		noted = true;
		tool_note(s->t,
			"export %s: nbdkit waits for I/O that is not answered; 'xseg status' shows "
			"which peer does not answer, and another interrupt leaves nbdkit to end by "
			"itself",
			s->volume);
	}
	reap(s);
	if (is_left(s))
		unlink(s->address.sun_path);
}

/* It has ended by itself. --timeout counts for the next one from its own beginning. */
static int begin_anew(struct server *s)
{
	int status = reap(s), rc;

	if (!WIFSIGNALED(status))
		return tool_fail(TOOL_FAILED,
			"export %s: nbdkit has ended by itself; begin it anew", s->volume);
	tool_warn(
		"export %s: nbdkit was ended by signal %d (%s); it is started again, and clients "
		"must connect again",
		s->volume, WTERMSIG(status), strsignal(WTERMSIG(status)));
	s->serves = false;
	poll(NULL, 0, AGAIN_MS);
	tool_start_clock(s->t);
	rc = clear_socket(s);
	if (!rc)
		rc = start(s);
	return rc ? rc : wait_until_served(s);
}

/* ---- the command ------------------------------------------------------------------------- */

static int show(const struct server *s)
{
	json_t *j;

	if (!s->t->json) {
		printf("%s\n", s->uri);
		return out_done();
	}
	j = json_object();
	out_set_text(j, "volume", s->volume);
	out_set_text(j, "uri", s->uri);
	out_set_text(j, "socket", s->address.sun_path);
	out_set_bool(j, "read_only", s->opts->read_only);
	out_set_int(j, "size_bytes", s->size_bytes);
	out_set_int(j, "pid", (uint64_t)s->pid);
	return out_json_line(j);
}

static int serve(struct server *s)
{
	int rc = wait_until_served(s);

	if (!rc)
		rc = show(s);
	while (!rc && !tool_interrupted()) {
		listen_to(s, LOOK_MS);
		if (!tool_interrupted())
			rc = look_for_removal(s);
		if (!rc && s->said < 0 && !tool_interrupted())
			rc = begin_anew(s);
	}
	return rc;
}

int export_run(struct tool *t, const void *opts, int argc, char **argv)
{
	struct server s = { .t = t, .opts = opts, .volume = argv[0], .said = -1, .cut = -1,
		.guard = -1, .group = -1 };
	int rc = name_socket(&s);

	(void)argc;
	if (!rc)
		rc = find_group(&s);
	if (!rc)
		rc = look_at_volume(&s);
	if (!rc)
		rc = clear_socket(&s);
	if (!rc)
		rc = open_guard(&s);
	if (!rc)
		rc = start(&s);
	if (!rc) {
		rc = serve(&s);
		stop(&s);
	}
	if (s.guard >= 0)
		close(s.guard);
	if (s.seg)
		xseg_detach(s.seg);
	return rc;
}
