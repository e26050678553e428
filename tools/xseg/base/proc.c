/* proc - see proc.h. */
#include "tools/xseg/base/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peers/common/log/log.h"
#include "peers/common/log/log_time.h"
#include "peers/common/runtime/main.h"
#include "peers/common/say/words.h"
#include "tools/xseg/base/tool.h"

#define LOG_TAIL_BYTES (64 << 10)
#define ARGS_MAX       32

static int signal_named(struct xseg *seg, const struct xseg_peer_info *peer, int sig,
			siginfo_t *info)
{
	int fd = xseg_peer_pidfd(seg, peer), rc = 0;

	if (fd < 0)
		return fd;
	if (peer->pid == (uint32_t)getpid())
		rc = -ESRCH;
	else if (syscall(SYS_pidfd_send_signal, fd, sig, info, 0))
		rc = -errno;
	close(fd);
	return rc;
}

/* Where the segment has a wrong pid, the kernel says which process it is. */
static int signal_peer(struct xseg *seg, const struct xseg_peer_info *peer, int sig,
		       siginfo_t *info)
{
	int rc = signal_named(seg, peer, sig, info);
	struct xseg_peer_info proved = *peer;

	if (rc != -EPROTO)
		return rc;
	proved.pid = xseg_peer_pid_find(seg, peer);
	return proved.pid ? signal_named(seg, &proved, sig, info) : rc;
}

int proc_signal_named(struct xseg *seg, const struct xseg_peer_info *peer, int sig)
{
	return signal_named(seg, peer, sig, NULL);
}

int proc_fail_named(struct xseg *seg, const struct xseg_peer_info *peer, const char *what)
{
	uint32_t pid = xseg_peer_pid_find(seg, peer);

	if (pid)
		return tool_fail(TOOL_REFUSED,
			"%s %s: the segment says process %u, but process %u serves it, so nothing "
			"was signalled; 'xseg check --fix' corrects that",
			what, peer->name, peer->pid, pid);
	return tool_fail(TOOL_REFUSED,
		"%s %s: the segment says process %u, which does not serve it, so nothing was "
		"signalled; see 'xseg check'",
		what, peer->name, peer->pid);
}

int proc_signal_peer(struct xseg *seg, const struct xseg_peer_info *peer, int sig)
{
	return signal_peer(seg, peer, sig, NULL);
}

static int send_value(struct xseg *seg, const struct xseg_peer_info *peer, int sig, uint64_t value)
{
	siginfo_t info = { .si_signo = sig, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = (void *)(uintptr_t)value;
	return signal_peer(seg, peer, sig, &info);
}

int proc_stop_peer(struct xseg *seg, const struct xseg_peer_info *peer)
{
	return send_value(seg, peer, MAIN_STOP_SIGNAL, peer->index);
}

int proc_restart_peer(struct xseg *seg, const struct xseg_peer_info *supervisor, uint32_t place,
	uint32_t generation)
{
	return send_value(seg, supervisor, SUPERVISE_RESTART_SIGNAL,
		supervise_restart_pack(place, generation));
}

int proc_order_export(struct xseg *seg, const struct xseg_peer_info *supervisor,
	enum export_order order, uint32_t place)
{
	return send_value(seg, supervisor, SUPERVISE_RESTART_SIGNAL,
		(uint32_t)supervise_order_pack(order, place));
}

/* Its name before that; "": it has another one, or cannot be told. */
static void replaced_name(uint32_t pid, char *path, size_t size)
{
	static const char gone[] = " (deleted)";
	char link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%u/exe", pid);
	len = readlink(link, path, size - 1);
	if (len < 0)
		len = 0;
	path[len] = '\0';
	len -= (ssize_t)strlen(gone);
	path[len > 0 && !strcmp(path + len, gone) ? len : 0] = '\0';
}

bool proc_is_replaced(uint32_t pid)
{
	char path[PATH_MAX];

	replaced_name(pid, path, sizeof(path));
	return path[0];
}

/* A line of /proc/PID/maps: code of a file that is gone. Data is no matter, as the segment's. */
static bool is_old_code(char *line)
{
	static const char gone[] = " (deleted)\n";
	size_t len = strlen(line), end = strlen(gone);
	const char *rights = strchr(line, ' '), *path = strchr(line, '/');

	return rights && path && rights[3] == 'x' && strncmp(path, "/dev/", 5) != 0 &&
	       strncmp(path, "/memfd:", 7) != 0 && len > end && !strcmp(line + len - end, gone);
}

bool proc_maps_replaced(uint32_t pid)
{
	char path[64], *line = NULL;
	bool replaced = false;
	size_t room = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	in = fopen(path, "re");
	while (in && !replaced && getline(&line, &room, in) > 0)
		replaced = is_old_code(line);
	free(line);
	if (in)
		fclose(in);
	return replaced;
}

void proc_become_new(void)
{
	char path[PATH_MAX], args[4096], *argv[ARGS_MAX + 1] = { NULL };
	FILE *in = fopen("/proc/self/cmdline", "re");
	size_t len = in ? fread(args, 1, sizeof(args) - 1, in) : 0, at = 0;
	int nr = 0;

	if (in)
		fclose(in);
	args[len] = '\0';
	for (; at < len && nr < ARGS_MAX; at += strlen(args + at) + 1)
		argv[nr++] = args + at;
	replaced_name((uint32_t)getpid(), path, sizeof(path));
	if (path[0] && nr && at >= len)
		(void)execv(path, argv);
}

static bool supervises(const char *pid)
{
	char path[300], args[4096];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, args, sizeof(args));
	if (fd >= 0)
		close(fd);
	return len > 0 && memmem(args, (size_t)len, "\0--supervise", sizeof("\0--supervise"));
}

/* The segment that a process has mapped; gone: its file was removed. False: it has none. */
static bool mapped_segment(const char *pid, char name[XSEG_NAME_MAX], bool *gone)
{
	static const char dir[] = "/dev/shm/xseg.", deleted[] = " (deleted)";
	char path[300], *line = NULL, *at = NULL;
	size_t room = 0, len;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	in = fopen(path, "re");
	while (in && !at && getline(&line, &room, in) > 0) {
		line[strcspn(line, "\n")] = '\0';
		at = strstr(line, dir);
	}
	if (at) {
		at += sizeof(dir) - 1;
		len = strlen(at);
		*gone = len >= sizeof(deleted) && !strcmp(at + len - sizeof(deleted) + 1, deleted);
		snprintf(name, XSEG_NAME_MAX, "%.*s",
			(int)(len - (*gone ? sizeof(deleted) - 1 : 0)), at);
	}
	free(line);
	if (in)
		fclose(in);
	return at != NULL;
}

void proc_each_supervisor(
	void (*seen)(const char *segment, bool has_name, uint32_t pid, void *arg), void *arg)
{
	DIR *all = opendir("/proc");
	char segment[XSEG_NAME_MAX];
	struct dirent *e;
	bool gone;

	while (all && (e = readdir(all)))
		if (isdigit((unsigned char)e->d_name[0]) && supervises(e->d_name) &&
			mapped_segment(e->d_name, segment, &gone))
			seen(segment, !gone, (uint32_t)strtoul(e->d_name, NULL, 10), arg);
	if (all)
		closedir(all);
}

struct wanted {
	const char *segment;
	bool has_name;
	uint32_t pid;
};

static void is_wanted(const char *segment, bool has_name, uint32_t pid, void *arg)
{
	struct wanted *w = arg;

	if (has_name == w->has_name && !strcmp(segment, w->segment))
		w->pid = pid;
}

/* The state of a process and its parent, as /proc/PID/stat has them. False: it is not there. */
static bool read_stat(const char *pid, char *state, uint32_t *parent)
{
	char path[64], line[512] = "";
	const char *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.32s/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	end = strrchr(line, ')');
	return end && sscanf(end, ") %c %u", state, parent) == 2;
}

char proc_state(uint32_t pid)
{
	char text[16], state;
	uint32_t parent;

	snprintf(text, sizeof(text), "%u", pid);
	return read_stat(text, &state, &parent) ? state : 'X';
}

uint32_t proc_children(uint32_t pid, uint32_t *child, uint32_t max)
{
	DIR *all = opendir("/proc");
	struct dirent *e;
	uint32_t nr = 0, parent;
	char state;

	while (all && nr < max && (e = readdir(all)))
		if (isdigit((unsigned char)e->d_name[0]) &&
			read_stat(e->d_name, &state, &parent) && parent == pid)
			child[nr++] = (uint32_t)strtoul(e->d_name, NULL, 10);
	if (all)
		closedir(all);
	return nr;
}

uint32_t proc_find_supervisor(const char *segment, bool has_name)
{
	struct wanted w = { .segment = segment, .has_name = has_name };

	proc_each_supervisor(is_wanted, &w);
	return w.pid;
}

/* In the child: errors go to the parent through the pipe, which closes when the program starts, as
 * do the files that a caller had open, whose locks it would hold. */
static void exec_detached(char *const argv[], int out, int report)
{
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC), err;

	setsid();
	signal(SIGHUP, SIG_IGN);	/* as of peers that the supervisor starts */
	close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
	if (in >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    dup2(out, STDERR_FILENO) >= 0)
		execv(argv[0], argv);
	err = errno;
	if (write(report, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

pid_t proc_spawn(char *const argv[], int log)
{
	int report[2], err = 0;
	ssize_t got;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid == 0)
		exec_detached(argv, log, report[1]);
	err = errno;
	close(report[1]);
	if (pid < 0) {
		close(report[0]);
		return -err;
	}
	do
		got = read(report[0], &err, sizeof(err));
	while (got < 0 && errno == EINTR);
	close(report[0]);
	if (got != sizeof(err))
		return pid;
	waitpid(pid, NULL, 0);
	return -err;
}

bool proc_ended(pid_t pid, int *status)
{
	return waitpid(pid, status, WNOHANG) == pid;
}

/* False at the end; the clock of --timeout is none, unless that is to end it (t). */
static bool read_line(FILE *in, char **line, size_t *room, const struct tool *t)
{
	while (getline(line, room, in) <= 0) {
		if (feof(in) || errno != EINTR || (t && tool_out_of_time(t)))
			return false;
		clearerr(in);
	}
	return true;
}

/* Keeps the last line of what comes out of fd that is not empty. False: it has not ended yet. */
static bool read_last_line(int fd, const struct tool *t, char *said, size_t size)
{
	FILE *in = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	bool ended;

	said[0] = '\0';
	if (!in) {
		close(fd);
		return true;
	}
	while (read_line(in, &line, &room, t))
		if (line[0] != '\n') {
			line[strcspn(line, "\n")] = '\0';
			snprintf(said, size, "%s", line);
		}
	ended = feof(in);
	free(line);
	fclose(in);
	return ended;
}

/* Begins a program whose output, and its errors if `errors`, come out of *out. apart: Ctrl-C at the
 * terminal does not end it. */
static pid_t begin(char *const argv[], int in, bool errors, bool apart, int *out)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return -EAGAIN;
	}
	if (pid == 0) {
		if ((!apart || !setpgid(0, 0)) && dup2(in, STDIN_FILENO) >= 0 &&
			(!errors || dup2(ends[1], STDERR_FILENO) >= 0) &&
			dup2(ends[1], STDOUT_FILENO) >= 0)
			execv(argv[0], argv);
		_exit(127);
	}
	close(ends[1]);
	*out = ends[0];
	return pid;
}

static int end(pid_t pid, const struct tool *t)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR || (t && tool_out_of_time(t)))
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EPIPE;
}

int proc_run(char *const argv[], int in, const struct tool *t, char *said, size_t size)
{
	int out;
	pid_t pid = begin(argv, in, true, true, &out);

	if (pid < 0)
		return pid;
	if (!read_last_line(out, t, said, size) && t && tool_out_of_time(t))
		return -EINTR;
	return end(pid, t);
}

/* All that comes out of fd. False: it has not ended yet. */
static bool read_text(int fd, const struct tool *t, char **text)
{
	FILE *in = fdopen(fd, "r"), *to;
	char *line = NULL;
	size_t room = 0, len;
	bool ended;

	to = in ? open_memstream(text, &len) : NULL;
	if (!to) {
		*text = NULL;
		if (in)
			fclose(in);
		else
			close(fd);
		return true;
	}
	while (read_line(in, &line, &room, t))
		fputs(line, to);
	ended = feof(in);
	free(line);
	fclose(in);
	if (fclose(to)) {
		free(*text);
		*text = NULL;
	}
	return ended;
}

int proc_run_read(char *const argv[], int in, const struct tool *t, char **text)
{
	int out;
	pid_t pid = begin(argv, in, false, false, &out);

	*text = NULL;
	if (pid < 0)
		return pid;
	if (!read_text(out, t, text) && t && tool_out_of_time(t))
		return -EINTR;
	return end(pid, t);
}

char *proc_word(char **rest)
{
	char *word = *rest ? strsep(rest, "\t") : NULL;

	return word ? word : "";
}

int proc_open_text(const char *text, size_t len)
{
	int fd = memfd_create("stack", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (write(fd, text, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	close(fd);
	return -ENOMEM;
}

void proc_log_path(const char *segment, char *path, size_t size)
{
	const char *dir = getenv("XDG_STATE_HOME");
	struct stat st;

	if (!dir || dir[0] != '/' || stat(dir, &st) || !S_ISDIR(st.st_mode) || access(dir, W_OK))
		dir = "/tmp";
	snprintf(path, size, "%s/xseg-%s.log", dir, segment);
}

bool proc_errors_path(uint32_t pid, char *path, size_t size)
{
	char link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%u/fd/%d", pid, STDERR_FILENO);
	len = readlink(link, path, size - 1);
	if (len < 0)
		return false;
	path[len] = '\0';
	return true;
}

void proc_log_note(uint32_t pid, const char *fmt, ...)
{
	char path[PATH_MAX], time[LOG_TIME_CHARS + 1], said[512];
	struct timespec now;
	struct stat st;
	va_list ap;
	int fd;

	if (!proc_errors_path(pid, path, sizeof(path)))
		return;
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
	log_date(&now);
	log_format_time(&now, time);
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		dprintf(fd, "%s%s\n", time, said);
	close(fd);
}

void proc_each_line(const char *path, off_t from, const char *word,
		    void (*seen)(const char *line, void *arg), void *arg)
{
	FILE *in = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	off_t end;

	if (!in)
		return;
	if (!fseeko(in, 0, SEEK_END) && (end = ftello(in)) - from > LOG_TAIL_BYTES)
		from = end - LOG_TAIL_BYTES;
	if (!fseeko(in, from, SEEK_SET))
		while (getline(&text, &room, in) > 0)
			if (text[0] != '\n' && (!word || strstr(text, word))) {
				text[strcspn(text, "\n")] = '\0';
				seen(log_skip_time(text), arg);
			}
	free(text);
	fclose(in);
}

struct last_line {
	const char *begin;
	char *line;
	size_t size;
	bool found;
};

static void keep_line(const char *line, void *arg)
{
	struct last_line *last = arg;

	if (strncmp(line, last->begin, strlen(last->begin)))
		return;
	snprintf(last->line, last->size, "%s", line);
	last->found = true;
}

bool proc_last_line(const char *path, off_t from, const char *begin, const char *word, char *line,
		    size_t size)
{
	struct last_line last = { .begin = begin, .line = line, .size = size };

	proc_each_line(path, from, word, keep_line, &last);
	return last.found;
}
