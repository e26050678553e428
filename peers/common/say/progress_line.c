/* progress_line - see progress_line.h. */
#include "peers/common/say/progress_line.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BEGIN "\r\033[K"			/* to the first column, and clear the line */

static _Atomic bool is_shown;

bool progress_line_possible(void)
{
	static _Atomic int terminal = -1;

	if (atomic_load(&terminal) < 0)
		atomic_store(&terminal, isatty(STDERR_FILENO));
	return atomic_load(&terminal);
}

/* A line that the terminal breaks is not gone when its last part is. */
static int columns(void)
{
	struct winsize ws;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) || !ws.ws_col)
		return 79;
	return ws.ws_col - 1;
}

void progress_line_show(const char *text)
{
	if (!progress_line_possible())
		return;
	fprintf(stderr, BEGIN "%.*s", columns(), text);
	fflush(stderr);
	atomic_store(&is_shown, true);
}

void progress_line_hide(void)
{
	if (!atomic_exchange(&is_shown, false))
		return;
	fputs(BEGIN, stderr);
	fflush(stderr);
}
