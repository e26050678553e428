/* extend - see extend.h. */
#include "tools/xseg/base/extend.h"

#include <stdio.h>
#include <stdlib.h>

#include "peers/common/say/dirty.h"
#include "tools/xseg/base/notify.h"
#include "tools/xseg/base/out.h"

#define LOOK_NS TOOL_SECOND

static void put_off(struct extend *e, const char *text)
{
	e->told = true;
	notify_send("EXTEND_TIMEOUT_USEC=%u\nSTATUS=%s: %s", EXTEND_US, e->what, text);
}

static void look_at_flushes(void *arg)
{
	uint64_t now = tool_now_ns(), dirty, flushed;
	struct extend *e = arg;
	char text[OUT_TEXT];
	char line[OUT_TEXT + 16];
	bool goes_on;

	if (now - e->looked_ns < LOOK_NS)
		return;
	e->looked_ns = now;
	dirty = dirty_bytes_of(e->seg, XSEG_NONE);
	flushed = flushed_bytes_of(e->seg, XSEG_NONE);
	goes_on = dirty < e->dirty || flushed > e->flushed;
	if (dirty < e->dirty)
		e->dirty = dirty;
	e->flushed = flushed;
	if (!goes_on)
		return;
	snprintf(line, sizeof(line), "%s dirty", out_size(dirty, text));
	put_off(e, line);
}

static void goes_on(void *arg, const char *text)
{
	uint64_t now = tool_now_ns();
	struct extend *e = arg;

	if (now - e->went_on_ns < LOOK_NS)
		return;
	e->went_on_ns = now;
	put_off(e, text);
}

void extend_begin(struct extend *e, struct tool *t, struct xseg *seg, const char *what)
{
	*e = (struct extend){ .seg = seg, .what = what };
	if (!getenv("NOTIFY_SOCKET"))
		return;
	e->dirty = dirty_bytes_of(seg, XSEG_NONE);
	e->flushed = flushed_bytes_of(seg, XSEG_NONE);
	t->flushes = look_at_flushes;
	t->goes_on = goes_on;
	t->waits_arg = e;
}

void extend_end(struct extend *e, struct tool *t, int code)
{
	t->flushes = NULL;
	t->goes_on = NULL;
	if (!e->told)
		return;
	if (code)
		notify_send("STATUS=%s has ended with exit code %d", e->what, code);
	else
		notify_send("STATUS=all peers serve");
}
