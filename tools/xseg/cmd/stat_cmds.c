/* stat_cmds - stat and top: counters and latencies, once, at intervals, or on a whole terminal.
 *
 * Contract: see commands.h. An observer only: works on a segment whose peers are all dead. The
 * terminal is put back as it was whenever top ends, also by Ctrl-C.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tools/xseg/cmd/commands.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/text/stat_text.h"

#define SCREEN_BEGIN "\033[?1049h\033[?25l"	/* the other screen, no cursor */
#define SCREEN_END   "\033[?25h\033[?1049l"
#define SCREEN_HOME  "\033[H"
#define LINE_END     "\033[K"
#define SCREEN_CLEAR "\033[J"			/* from here to the end */

#define DAY_NS	     86400000000000ull

#define AT(field) offsetof(struct stat_opts, field)
const struct opt stat_table[] = {
	{ .name = "interval", .kind = OPT_TIME, .off = AT(interval_ns), .min = 1000000,
	  .max = DAY_NS,
	  .help = "print the counts of each such interval; without it, those since the beginning" },
	{ .name = "count", .kind = OPT_UINT, .off = AT(count),
	  .help = "end after N intervals (0: go on until Ctrl-C)" },
	{ 0 },
};
const struct opt top_table[] = {
	{ .name = "interval", .kind = OPT_TIME, .off = AT(interval_ns), .min = 50000000,
	  .max = DAY_NS, .def = "1s",
	  .help = "how often the numbers change" },
	{ 0 },
};
#undef AT

static int take(struct xseg *seg, struct stat_snapshot *snapshot)
{
	if (!stat_take(seg, snapshot))
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED, "no memory for statistics; free some");
}

static int show(const struct tool *t, const struct stat_snapshot *older,
		const struct stat_snapshot *newer)
{
	if (t->json && older)
		return out_json_line(stat_json(older, newer));
	if (t->json)
		return out_json(stat_json(older, newer));
	stat_write(older, newer, false, stdout);
	if (!newer->stats.nr)
		tool_say(t, "nothing is counted: no peers; start some with 'xseg up STACK.conf'");
	return out_done();
}

/* ---- stat -------------------------------------------------------------------------------- */

/* Sleeps until `at`; false when the command should end. */
static bool sleep_until(const struct tool *t, uint64_t at)
{
	uint64_t now;

	while (!tool_out_of_time(t) && (now = tool_now_ns()) < at)
		tool_sleep_ns(at - now);
	return !tool_out_of_time(t);
}

/* What a stack has left behind does not change any more. */
static bool is_left_behind(struct xseg *seg)
{
	return xseg_is_removed(seg) && !xseg_supervisor_alive(seg);
}

static int look_for_removal(const struct tool *t, struct xseg *seg, const char *what)
{
	if (!is_left_behind(seg))
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED,
		"%s: segment %s was removed, as 'xseg down' does; start its stack with 'xseg up "
		"STACK.conf', and run it again",
		what, t->segment);
}

static int run_intervals(const struct tool *t, struct xseg *seg, const struct stat_opts *o)
{
	uint64_t interval = o->interval_ns ? o->interval_ns : TOOL_SECOND, next = tool_now_ns();
	struct stat_snapshot older, newer;
	uint32_t i;
	int rc;

	rc = take(seg, &older);
	for (i = 0; !rc && (!o->count || i < o->count); i++) {
		next += interval;
		if (!sleep_until(t, next))
			break;
		rc = look_for_removal(t, seg, "stat");
		if (!rc)
			rc = take(seg, &newer);
		if (rc)
			break;
		if (i && !t->json)
			putchar('\n');
		rc = show(t, &older, &newer);
		stat_drop(&older);
		older = newer;
	}
	stat_drop(&older);
	if (!rc && o->count && i < o->count)
		return tool_later("stat: %u of %u intervals were printed; run it again", i,
				  o->count);
	return rc;
}

static int run_once(const struct tool *t, struct xseg *seg)
{
	struct stat_snapshot now;
	int rc = take(seg, &now);

	if (!rc)
		rc = show(t, NULL, &now);
	stat_drop(&now);
	return rc;
}

int stat_run(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct stat_opts *o = opts;
	struct xseg *seg;
	int rc;

	(void)argc;
	(void)argv;
	rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);
	if (rc)
		return rc;
	rc = o->interval_ns || o->count ? run_intervals(t, seg, o) : run_once(t, seg);
	xseg_detach(seg);
	return rc;
}

/* ---- top --------------------------------------------------------------------------------- */

static void write_head(struct xseg *seg, FILE *out)
{
	struct xseg_info info;
	char memory[OUT_TEXT], free_text[OUT_TEXT];

	xseg_get_info(seg, &info);
	fprintf(out, "%.40s: %s free of %s, %u of %u requests free   q quits\n\n", info.name,
		out_size(info.free_pages * XSEG_PAGE_SIZE, free_text),
		out_size(info.memory_bytes, memory), info.free_requests, info.nr_requests);
}

/* Prints as much of the text as the terminal has lines and columns. */
static void paint(const char *text)
{
	struct winsize ws = { .ws_row = 24, .ws_col = 80 };
	int row, len;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) || !ws.ws_row || !ws.ws_col)
		ws = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	fputs(SCREEN_HOME, stdout);
	for (row = 0; *text && row < ws.ws_row - 1; row++) {
		len = (int)strcspn(text, "\n");
		printf("%.*s%s\r\n", len < ws.ws_col ? len : ws.ws_col, text, LINE_END);
		text += len + (text[len] == '\n');
	}
	fputs(SCREEN_CLEAR, stdout);
	fflush(stdout);
}

static int repaint(struct xseg *seg, const struct stat_snapshot *older,
		   const struct stat_snapshot *newer)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return tool_fail(TOOL_FAILED, "no memory for a screen; free some");
	write_head(seg, out);
	stat_write(older, newer, true, out);
	fclose(out);
	paint(text);
	free(text);
	return TOOL_DONE;
}

/* Waits until `at`, or for a key; true when it was q or the terminal is gone. */
static bool quit_pressed(uint64_t at, bool keys)
{
	struct pollfd in = { .fd = keys ? STDIN_FILENO : -1, .events = POLLIN };
	uint64_t now = tool_now_ns();
	char key = 0;

	if (now >= at || poll(&in, 1, (int)((at - now) / 1000000) + 1) <= 0)
		return false;
	return read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q';
}

static int run_screen(const struct tool *t, struct xseg *seg, uint64_t interval, bool keys)
{
	struct stat_snapshot older, newer;
	uint64_t next = tool_now_ns();
	bool quit = false;
	int rc;

	rc = take(seg, &older);
	if (!rc)
		rc = repaint(seg, NULL, &older);
	while (!rc && !quit && !tool_out_of_time(t)) {
		for (next += interval; !quit && !tool_out_of_time(t) && tool_now_ns() < next;)
			quit = quit_pressed(next, keys);
		if (quit || tool_out_of_time(t) || is_left_behind(seg))
			break;
		rc = take(seg, &newer);
		if (rc)
			break;
		rc = repaint(seg, &older, &newer);
		stat_drop(&older);
		older = newer;
	}
	stat_drop(&older);
	return rc;
}

int stat_top(struct tool *t, const void *opts, int argc, char **argv)
{
	const struct stat_opts *o = opts;
	bool keys = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
	struct termios before, raw;
	struct xseg *seg;
	int rc;

	if (t->json || !isatty(STDOUT_FILENO))
		return stat_run(t, &(struct stat_opts){ 0 }, argc, argv);
	rc = tool_attach(t, XSEG_ATTACH_OBSERVER, &seg);
	if (rc)
		return rc;
	keys = keys && !tcgetattr(STDIN_FILENO, &before);
	if (keys) {
		raw = before;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	fputs(SCREEN_BEGIN, stdout);
	rc = run_screen(t, seg, o->interval_ns, keys);
	fputs(SCREEN_END, stdout);
	if (keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	if (!rc)
		rc = look_for_removal(t, seg, "top");
	xseg_detach(seg);
	return rc ? rc : out_done();
}
