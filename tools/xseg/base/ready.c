/* ready - see ready.h. */
#include "tools/xseg/base/ready.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/xseg/base/asker.h"
#include "tools/xseg/base/halted.h"
#include "tools/xseg/base/out.h"

#define LOOK_NS	    (TOOL_SECOND / 20)
#define CRASHES_MAX 5			/* one or two are an accident */
#define STRANDED_NS (3 * TOOL_SECOND)	/* a peer below may just be started by hand */

/* ---- one peer ---------------------------------------------------------------------------- */

void ready_read(const char *answer, struct ready *r)
{
	char word[32];

	*r = (struct ready){ .answers = true };
	if (client_line(answer, "reason", r->why, sizeof(r->why))) {
		r->state = READY_NO;
		r->usage = client_value(answer, "error", word, sizeof(word)) &&
			   !strcmp(word, "EINVAL");
	} else if (client_value(answer, "state", word, sizeof(word)) && !strcmp(word, "opening")) {
		r->state = READY_OPENS;
		r->done = client_number(answer, "opening_done");
		r->of = client_number(answer, "opening_of");
		r->went = r->done + client_number(answer, "large_keys");
	}
}

const char *ready_percent(const struct ready *r, char text[READY_TEXT])
{
	text[0] = '\0';
	if (r->state == READY_OPENS && r->of)
		snprintf(text, READY_TEXT, " (%" PRIu64 "%%)", r->done * 100 / r->of % 1000);
	return text;
}

/* What a wait remembers of each peer of the stack. */
struct waiting {
	struct tool_span stranded;
	uint64_t went;
	uint32_t generation, nr_generations;
};

struct ready_wait {
	struct tool *t;
	struct xseg *seg;
	const struct stack *stack;
	struct asker asker;
	struct waiting of[STACK_MAX_PEERS];
};

/* It opens its log, and cannot go on without a peer that nobody starts. */
static bool lacks_store(struct ready_wait *w, uint32_t peer, const struct xseg_peer_info *info,
	struct ready *r)
{
	struct xseg_peer_info below = { .name = "" };
	bool lacks = r->state == READY_OPENS && view_stranded(w->seg, info, &below);
	char how[VIEW_START_MAX];

	if (tool_span_ns(&w->of[peer].stranded, lacks) < STRANDED_NS)
		return false;
	r->state = READY_NO;
	snprintf(r->why, sizeof(r->why), "its log is not open, as it needs %s, which is %s; %s",
		below.name, view_state_name(below.state),
		view_how_to_start(w->seg, below.name, how));
	return true;
}

/* One that was stopped, or is not started as a peer below it was stopped, is told of by others. */
static bool stays_away(struct ready_wait *w, const struct xseg_peer_info *info)
{
	struct xseg_peer_info below;

	if (info->state == XSEG_PEER_FREE || info->state == XSEG_PEER_STOPPED)
		return true;
	return info->state != XSEG_PEER_LIVE && view_stranded(w->seg, info, &below);
}

/* It ends again and again while it opens its log, or for good. */
static bool cannot_run(struct ready_wait *w, uint32_t peer, const struct xseg_peer_info *info,
	struct ready *r)
{
	struct waiting *of = &w->of[peer];

	of->nr_generations += of->generation != info->generation;
	of->generation = info->generation;
	if (of->nr_generations <= CRASHES_MAX && !xseg_peer_is_gone(w->seg, info))
		return false;
	r->state = READY_NO;
	snprintf(r->why, sizeof(r->why),
		"its process ended while it opened its log; see the log of the stack, then 'xseg "
		"peer restart %s'",
		info->name);
	return true;
}

static void ask(struct ready_wait *w, const struct xseg_peer_info *info, struct ready *r)
{
	const char *answer;

	r->state = READY_OPENS;
	if (info->state != XSEG_PEER_LIVE)
		return;
	w->asker.quick.deadline_ns = tool_now_ns() + ASKER_FIRST_NS;
	answer = asker_ask(&w->asker, info, "info");
	if (answer)
		ready_read(answer, r);
	else if (!w->asker.c)
		r->state = READY_YES;
}

static void look(struct ready_wait *w, uint32_t peer, struct ready *r)
{
	const struct stack_peer *p = &w->stack->peers[peer];
	uint32_t index = xseg_peer_find(w->seg, p->name);
	char percent[READY_TEXT], text[XSEG_NAME_MAX + 32];
	struct xseg_peer_info info;

	*r = (struct ready){ .state = READY_YES };
	if (strcmp(p->kind, "kvd") || index == XSEG_NONE ||
		!xseg_peer_get_info(w->seg, index, &info) || stays_away(w, &info) ||
		cannot_run(w, peer, &info, r))
		return;
	ask(w, &info, r);
	if (!lacks_store(w, peer, &info, r) && r->went > w->of[peer].went) {
		w->of[peer].went = r->went;
		snprintf(text, sizeof(text), "%s opens its log%s", info.name,
			ready_percent(r, percent));
		tool_goes_on(w->t, text);
	}
}

/* ---- several ----------------------------------------------------------------------------- */

/* What one look at all of them has found. */
struct found {
	uint32_t nr_open, nr_not;
	const char *opens, *not;		/* the first of each */
	struct ready open_state, not_state;
};

static bool is_meant(const struct stack *stack, uint32_t peer, const char *only)
{
	uint32_t at = only ? stack_find(stack, only) : STACK_NONE;

	if (!only || at == STACK_NONE)
		return !only;
	return at == peer || (stack->peers[at].group != STACK_NONE &&
				     stack->peers[at].group == stack->peers[peer].group);
}

/* A command about others is not a client of anything. */
static bool has_any(const struct stack *stack, const char *only)
{
	bool any = false;

	for (uint32_t i = 0; i < stack->nr_peers; i++)
		any |= !strcmp(stack->peers[i].kind, "kvd") && is_meant(stack, i, only);
	return any;
}

static void look_at_all(struct ready_wait *w, const char *only, struct found *f)
{
	struct ready r;

	*f = (struct found){ .nr_open = 0 };
	for (uint32_t i = 0; i < w->stack->nr_peers; i++) {
		if (!is_meant(w->stack, i, only))
			continue;
		look(w, i, &r);
		if (r.state == READY_OPENS && !f->nr_open++) {
			f->opens = w->stack->peers[i].name;
			f->open_state = r;
		} else if (r.state == READY_NO && !f->nr_not++) {
			f->not = w->stack->peers[i].name;
			f->not_state = r;
		}
	}
}

static void show_wait(struct ready_wait *w, const struct found *f)
{
	char percent[READY_TEXT];

	if (f->open_state.answers)
		tool_progress(w->t, "waiting for %s, which opens its log%s", f->opens,
			ready_percent(&f->open_state, percent));
	else
		tool_progress(w->t, "waiting for %s, which does not answer", f->opens);
}

static int fail_not_ready(const char *what, const struct found *f)
{
	char others[64] = "";

	if (f->nr_not > 1)
		snprintf(others, sizeof(others), ", and %u more do not ('xseg status')",
			f->nr_not - 1);
	return tool_fail(f->not_state.usage ? TOOL_USAGE : TOOL_FAILED,
		"%s: %s runs and does not serve%s: %s", what, f->not, others, f->not_state.why);
}

static int later(const char *what, const struct found *f)
{
	char percent[READY_TEXT];

	return tool_later("%s: %s runs and does not serve yet: its log is being opened%s, and that "
			  "goes on; see 'xseg status'",
		what, f->opens, ready_percent(&f->open_state, percent));
}

int ready_wait(struct tool *t, struct xseg *seg, const struct stack *stack, const char *what,
	const char *only, uint32_t *nr_not)
{
	struct ready_wait w = { .t = t, .seg = seg, .stack = stack };
	struct found f;
	bool in_time;

	if (nr_not)
		*nr_not = 0;
	if (!has_any(stack, only))
		return TOOL_DONE;
	asker_init(&w.asker, t);
	for (;;) {
		look_at_all(&w, only, &f);
		in_time = !tool_out_of_time(t);
		if (!f.nr_open || !in_time)
			break;
		show_wait(&w, &f);
		tool_sleep_ns(LOOK_NS);
	}
	tool_progress_end();
	asker_fini(&w.asker);
	if (nr_not)
		*nr_not = f.nr_not + f.nr_open;
	if (f.nr_not)
		return fail_not_ready(what, &f);
	return f.nr_open ? later(what, &f) : TOOL_DONE;
}

int ready_wait_named(struct tool *t, struct xseg *seg, const char *what, const char *only)
{
	struct stack *stack = view_stack(seg);
	int rc = stack ? ready_wait(t, seg, stack, what, only, NULL) : TOOL_DONE;

	stack_destroy(stack);
	return rc;
}
