/* tool - see tool.h. */
#include "tools/xseg/base/tool.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "peers/common/say/hint.h"
#include "peers/common/say/progress_line.h"
#include "peers/common/options/owner.h"
#include "tools/xseg/base/proc.h"

#define PROGRESS_EVERY_NS (TOOL_SECOND / 5)
/* where there is no terminal */
#define LINE_FIRST_NS	  (5 * TOOL_SECOND)
#define LINE_EVERY_NS	  (30 * TOOL_SECOND)
#define SECOND_SIGNAL_NS  (TOOL_SECOND / 4)
#define LOOK_MAX_NS	  (TOOL_SECOND / 4)
#define HINT_BYTES	  4096			/* a line with all that its commands need */

static volatile sig_atomic_t interrupted;
static volatile uint64_t interrupted_ns;	/* when; written and read by the handler alone */
static bool signals_held, interrupts_muted;
static bool muted;
/* when the next line is due, without a terminal; 0: nothing is waited for */
static uint64_t line_due_ns;
static const char *named_segment;		/* NULL: not known yet */
static const char *named_volumed = "";
static const char *named_command = "xseg";
static bool told_as_json;

/* ---- time and signals -------------------------------------------------------------------- */

uint64_t tool_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * TOOL_SECOND + (uint64_t)ts.tv_nsec;
}

uint64_t tool_span_ns(struct tool_span *span, bool is_so)
{
	uint64_t now = tool_now_ns(), since = now - span->seen_ns;

	if (!is_so)
		*span = (struct tool_span){ 0 };
	else if (span->seen_ns)
		span->ns += since < LOOK_MAX_NS ? since : LOOK_MAX_NS;
	if (is_so)
		span->seen_ns = now;
	return span->ns;
}

static void on_alarm(int sig)
{
	(void)sig;
}

void tool_start_clock(struct tool *t)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct itimerval timer = { .it_interval = { .tv_usec = 100000 } };

	t->deadline_ns = UINT64_MAX;
	if (!t->timeout_ns ||
	    __builtin_add_overflow(tool_now_ns(), t->timeout_ns, &t->deadline_ns)) {
		t->deadline_ns = UINT64_MAX;
		return;
	}
	sigemptyset(&sa.sa_mask);
	sigaction(SIGALRM, &sa, NULL);
	timer.it_value.tv_sec = (time_t)(t->timeout_ns / TOOL_SECOND);
	timer.it_value.tv_usec = (suseconds_t)(t->timeout_ns % TOOL_SECOND / 1000);
	if (!timer.it_value.tv_sec && !timer.it_value.tv_usec)
		timer.it_value.tv_usec = 1;
	setitimer(ITIMER_REAL, &timer, NULL);
}

uint64_t tool_limit(const struct tool *t, uint64_t ns)
{
	return t->timeout_ns ? t->deadline_ns : tool_now_ns() + ns;
}

void tool_sleep_ns(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / TOOL_SECOND),
			       .tv_nsec = (long)(ns % TOOL_SECOND) };

	if (!tool_interrupted())
		nanosleep(&ts, NULL);
}

/* The second one counts when it comes some time after the first: timeout(1) and terminals send one
 * both to a process and to its group. */
static void on_signal(int sig)
{
	uint64_t now = tool_now_ns();

	if (interrupted && now - interrupted_ns > SECOND_SIGNAL_NS)
		_exit(TOOL_LATER);
	if (!interrupted)
		interrupted_ns = now;
	interrupted = sig;
}

void tool_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

bool tool_interrupted(void)
{
	return interrupted && !signals_held;
}

void tool_clear_interrupt(void)
{
	interrupted = 0;
}

void tool_hold_signals(bool hold)
{
	signals_held = hold;
}

void tool_mute_interrupts(bool mute)
{
	interrupts_muted = mute;
}

bool tool_out_of_time(const struct tool *t)
{
	return tool_interrupted() ||
	       (t->deadline_ns != UINT64_MAX && tool_now_ns() >= t->deadline_ns);
}

void tool_flushes(const struct tool *t)
{
	if (t->flushes)
		t->flushes(t->waits_arg);
}

void tool_goes_on(const struct tool *t, const char *text)
{
	if (t->goes_on)
		t->goes_on(t->waits_arg, text);
}

/* ---- saying things ----------------------------------------------------------------------- */

void tool_name_segment(const char *segment)
{
	named_segment = segment;
}

void tool_name_volumed(const char *volumed)
{
	named_volumed = volumed;
}

void tool_name_command(const char *words)
{
	named_command = words;
}

const char *tool_command(void)
{
	return named_command;
}

const char *tool_hints(char *buf, size_t size, const char *text)
{
	const char *segment = named_segment ? named_segment : hint_default_segment();
	char volumed[HINT_BYTES];

	if (*named_volumed)
		text = hint_name_volumed(volumed, sizeof(volumed), text, named_volumed);
	return hint_for_shell(buf, size, text, segment);
}

void tool_tell_as_json(void)
{
	told_as_json = true;
}

json_t *tool_json_text(const char *text)
{
	json_t *j = json_string(text);
	char utf8[3 * HINT_BYTES];
	size_t used = 0;

	if (j)
		return j;
	for (; *text && used + 4 <= sizeof(utf8); text++)
		used += (size_t)snprintf(utf8 + used, sizeof(utf8) - used, "%.*s",
			(unsigned char)*text < 0x80 ? 1 : 3,
			(unsigned char)*text < 0x80 ? text : "\xef\xbf\xbd");
	return json_string(utf8);
}

/* A line as JSON, cut at its first ": " and at the "; " behind that (T1). code: TOOL_DONE for a
 * note. */
static void print_json_line(enum tool_exit code, char *line)
{
	char *why = strstr(line, ": "), *next = strstr(why ? why : line, "; ");
	json_t *told = json_object(), *j = json_object();

	if (next) {
		*next = '\0';
		next += 2;
	}
	if (why) {
		*why = '\0';
		why += 2;
	}
	if (code != TOOL_DONE)
		json_object_set_new(told, "code", json_integer(code));
	json_object_set_new(told, "what", tool_json_text(line));
	json_object_set_new(told, "why", why ? tool_json_text(why) : json_null());
	json_object_set_new(told, "next", next ? tool_json_text(next) : json_null());
	json_object_set_new(j, code == TOOL_DONE ? "note" : "error", told);
	json_dumpf(j, stderr, JSON_COMPACT);
	fputc('\n', stderr);
	json_decref(j);
}

/* A line of stderr, as JSON if that was asked for. */
static void print_text(enum tool_exit code, const char *program, char *line)
{
	if (told_as_json)
		print_json_line(code, line);
	else
		fprintf(stderr, "%s%s\n", program, line);
}

static void print_line(enum tool_exit code, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* code: TOOL_DONE for what is no error. Line breaks inside become spaces, those at the end vanish
 * (T1). */
static void print_line(enum tool_exit code, const char *fmt, va_list ap)
{
	char line[2048], hinted[HINT_BYTES];
	size_t len;
	char *c;

	if (muted)
		return;
	tool_progress_end();
	fflush(stdout);
	vsnprintf(line, sizeof(line), fmt, ap);
	len = strlen(line);
	while (len && line[len - 1] == '\n')
		line[--len] = '\0';
	for (c = line; *c; c++)
		if (*c == '\n')
			*c = ' ';
	tool_hints(hinted, sizeof(hinted), line);
	print_text(code, "xseg: ", hinted);
}

void tool_mute(bool mute)
{
	muted = mute;
}

int tool_fail(enum tool_exit code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(code, fmt, ap);
	va_end(ap);
	return code;
}

static enum tool_exit exit_of(int64_t rc)
{
	static const struct {
		int err;
		enum tool_exit code;
	} codes[] = {
		{ EEXIST, TOOL_REFUSED },   { ENOENT, TOOL_REFUSED }, { EBUSY, TOOL_REFUSED },
		{ EISDIR, TOOL_REFUSED },   { ENOTDIR, TOOL_REFUSED },
		{ ENOTEMPTY, TOOL_REFUSED }, { ELOOP, TOOL_REFUSED },  { ENOTCONN, TOOL_REFUSED },
		{ EINVAL, TOOL_USAGE },	    { ENAMETOOLONG, TOOL_USAGE }, { ENOSYS, TOOL_USAGE },
		{ ERANGE, TOOL_USAGE },	    { ETIMEDOUT, TOOL_LATER }, { EINTR, TOOL_LATER },
	};
	size_t i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].err == -rc)
			return codes[i].code;
	return TOOL_FAILED;
}

/* Cuts the last word off, and what stands between it and the word before. */
static void cut_word(char *text, char *word)
{
	while (word > text && strchr(" :", word[-1]))
		word--;
	*word = '\0';
}

static char *last_word(char *text)
{
	char *space = strrchr(text, ' ');

	return space ? space + 1 : text;
}

/* T6: the last word, which the reason has in quotes; then the noun before it, which the reason has
 * before the quotes, too. */
static void leave_out_name(char *what, const char *reason)
{
	char quoted[XSEG_NAME_MAX + 2], *word = last_word(what), *noun;
	const char *at;
	size_t len;

	if (!*word || (size_t)snprintf(quoted, sizeof(quoted), "'%s'", word) >= sizeof(quoted))
		return;
	at = strstr(reason, quoted);
	if (!at)
		return;
	cut_word(what, word);
	noun = last_word(what);
	len = strlen(noun) + 1;
	if (len > 1 && at >= reason + len && at[-1] == ' ' && !strncmp(at - len, noun, len - 1))
		cut_word(what, noun);
}

static int fail_with_reason(enum tool_exit code, char *what, const char *reason, const char *hint)
{
	if (strchr(reason, ';'))
		hint = NULL;
	leave_out_name(what, reason);
	return tool_fail(code, "%s: %s%s%s", *what ? what : named_command, reason,
			 hint ? "; " : "", hint ? hint : "");
}

int tool_fail_errno(int64_t rc, const struct xseg_error *err, const char *hint, const char *fmt,
		    ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return fail_with_reason(exit_of(rc), what,
		err && err->text[0] ? err->text : strerror((int)-rc), hint);
}

int tool_fail_reason(enum tool_exit code, const struct xseg_error *err, const char *fmt, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return fail_with_reason(code, what, err->text, NULL);
}

int tool_later(const char *fmt, ...)
{
	char what[512];
	va_list ap;

	if (tool_interrupted() && interrupts_muted)
		return TOOL_LATER;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return tool_fail(
		TOOL_LATER, "%s: %s", tool_interrupted() ? "interrupted" : "timed out", what);
}

/* Whether it is time for the next look at progress, which so is counted as shown. */
static bool is_due(uint64_t now)
{
	static uint64_t last_ns;

	if (progress_line_possible()) {
		if (now - last_ns < PROGRESS_EVERY_NS)
			return false;
		last_ns = now;
		return true;
	}
	if (!line_due_ns)
		line_due_ns = now + LINE_FIRST_NS;
	if (now < line_due_ns)
		return false;
	line_due_ns = now + LINE_EVERY_NS;
	return true;
}

void tool_progress(const struct tool *t, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	if (t->quiet || !is_due(tool_now_ns()))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (progress_line_possible())
		progress_line_show(line);
	else
		print_text(TOOL_DONE, "xseg: ", line);
}

void tool_progress_end(void)
{
	line_due_ns = 0;
	progress_line_hide();
}

void tool_say(const struct tool *t, const char *fmt, ...)
{
	char line[2048], hinted[4096];
	va_list ap;

	if (t->json || t->quiet)
		return;
	tool_progress_end();
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	puts(tool_hints(hinted, sizeof(hinted), line));
}

void tool_note(const struct tool *t, const char *fmt, ...)
{
	va_list ap;

	if (t->quiet)
		return;
	va_start(ap, fmt);
	print_line(TOOL_DONE, fmt, ap);
	va_end(ap);
}

void tool_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(TOOL_DONE, fmt, ap);
	va_end(ap);
}

void tool_pass_on(char *line)
{
	tool_progress_end();
	print_text(TOOL_DONE, "", line);
}

/* ---- places ------------------------------------------------------------------------------ */

/* The directory of this program. */
static int own_directory(char *path, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	if (len < 0)
		return -errno;
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

int tool_file(const char *name, int how, char *path, size_t size)
{
	static const char *const places[] = { "", "../libexec/xseg/" };
	char own[4096];
	int rc = own_directory(own, sizeof(own));

	for (size_t i = 0; !rc && i < sizeof(places) / sizeof(places[0]); i++) {
		if ((size_t)snprintf(path, size, "%s/%s%s", own, places[i], name) >= size)
			return -ENAMETOOLONG;
		if (!access(path, how))
			return 0;
		if (errno != ENOENT)
			return -errno;
	}
	return rc ? rc : -ENOENT;
}

int tool_program(const char *name, char *path, size_t size)
{
	return tool_file(name, X_OK, path, size);
}

bool tool_is_own_limit(int rc)
{
	return rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE;
}

const char *tool_make_hint(int rc)
{
	const char *limit = hint_of_limit(rc);

	if (limit)
		return limit;
	switch (rc) {
	case -EROFS:
	case -ENOENT:
	case -ENOTDIR:
	case -EACCES:
		return "is /dev/shm mounted, and may you write there?";
	default:
		return NULL;
	}
}

static const char *attach_hint(int rc)
{
	const char *hint = hint_of_attach(rc);

	return hint ? hint : "remove it with 'xseg destroy --force' if nothing uses it";
}

/* A stack that runs in it holds what is not flushed: how that ends is told, whatever else is
 * wrong. */
static int fail_attach_of_running(const struct tool *t, uint32_t pid, const struct xseg_error *err)
{
	if (!err)
		return tool_fail(TOOL_REFUSED,
			"segment %s: its file was removed from /dev/shm, and its stack runs on; "
			"'kill %u' stops that in order, then run 'xseg up STACK.conf'",
			t->segment, pid);
	return tool_fail(TOOL_FAILED,
		"%.*s, and its stack runs; stop that by 'kill %u', which loses nothing, then run "
		"'xseg destroy --force'",
		(int)strcspn(err->text, ";"), err->text, pid);
}

struct names {
	char *text;
	size_t size, used;
};

static void add_name(const char *name, void *arg)
{
	struct names *n = arg;

	if (n->used < n->size)
		n->used += (size_t)snprintf(n->text + n->used, n->size - n->used, "%s %s",
			n->used ? "," : "", name);
}

static int fail_no_segment(const struct tool *t)
{
	char text[512] = "";
	struct names names = { .text = text, .size = sizeof(text) };

	if (xseg_list(add_name, &names) >= 0 && names.used)
		return tool_fail(TOOL_REFUSED,
			"segment %s: there is none of that name, but there are:%s; name one with "
			"-s, or make it with 'xseg create' or 'xseg up STACK.conf'",
			t->segment, text);
	return tool_fail(TOOL_REFUSED,
		"segment %s: there is none of that name; make it with 'xseg create' or 'xseg up "
		"STACK.conf'",
		t->segment);
}

int tool_fail_attach(const struct tool *t, int rc, const struct xseg_error *err)
{
	uint32_t pid = rc == -ENOENT || rc == -EPROTO
			       ? proc_find_supervisor(t->segment, rc != -ENOENT) : 0;

	if (pid)
		return fail_attach_of_running(t, pid, rc == -ENOENT ? NULL : err);
	if (rc == -ENOENT)
		return fail_no_segment(t);
	if (owner_refused(rc, err))
		return tool_fail(TOOL_REFUSED, "%s", err->text);
	tool_fail_errno(rc, err, attach_hint(rc), "segment %s", t->segment);
	/* its maker is at work: nothing has failed */
	return rc == -EAGAIN ? TOOL_REFUSED : TOOL_FAILED;
}

static bool is_over(void *t)
{
	return tool_out_of_time(t);
}

static void say_held(const char *text, void *t)
{
	tool_note(t, "%s", text);
}

void tool_be_patient(struct tool *t, struct xseg *seg)
{
	xseg_set_patience(seg,
		&(struct xseg_patience){ .stop = is_over, .tell = say_held, .arg = t });
}

int tool_attach(struct tool *t, unsigned flags, struct xseg **seg)
{
	struct xseg_error err = { "" };
	int rc = owner_attach(t->segment, flags, seg, &err);

	if (rc)
		return tool_fail_attach(t, rc, &err);
	tool_be_patient(t, *seg);
	return TOOL_DONE;
}
