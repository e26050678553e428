/* tool - the common part of all commands of `xseg`: the segment, the time limit, the errors.
 *
 * Contract
 *   One thread. A command's handler returns an exit code (enum tool_exit). The function that finds
 *   an error prints it, once, by tool_fail() or one of its sisters, and hands the code up.
 *
 * Invariants
 *   T1  An error is one line on stderr: the thing, the reason, and the next step.
 *   T2  Progress is shown on stderr. On a terminal it is shown in place, and is gone before
 *       anything else is printed. Elsewhere it is a line after 5 s of a wait, and then every 30 s.
 *   T3  A wait ends when the deadline has passed or Ctrl-C was pressed, with TOOL_LATER: the work
 *       goes on.
 *   T4  No signal is sent to a bare pid: see proc.h.
 *   T5  A command that a person must type is written 'xseg WORDS' and printed by tool_hints(), as
 *       all lines of tool_fail() and its sisters are. It gets -s if xseg would take another
 *       segment.
 *   T6  A line names a thing once, beside commands to type. Where a reason has the name in quotes,
 *       as in "there is no volume 'disk'", it is left out before the reason. If nothing else
 *       stands there, the words of the command do.
 */
#ifndef TOOLS_XSEG_TOOL_H
#define TOOLS_XSEG_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "peers/common/options/opt.h"
#include "xseg/xseg.h"

enum tool_exit {
	TOOL_DONE,
	TOOL_FAILED,				/* store, system, full, damage found */
	TOOL_USAGE,				/* wrong usage, key or size */
	TOOL_LATER,				/* timed out or interrupted, the work goes on */
	TOOL_REFUSED			/* exists, is not there, is in use, would lose data */
};

#define TOOL_SECOND 1000000000ull

struct tool {
	char segment[XSEG_NAME_MAX];		/* the name to work on */
	bool segment_given;			/* by -s or $XSEG_SEGMENT */
	bool json, quiet;
	uint64_t timeout_ns;			/* 0: none */
	uint64_t deadline_ns;			/* monotonic; UINT64_MAX: none */
	/* unless they are NULL, tool_flushes() and tool_goes_on() call them */
	void (*flushes)(void *arg);
	void (*goes_on)(void *arg, const char *text);
	void *waits_arg;
};

/* One command. `words` are one or two; handlers get what is neither a word nor an option. */
struct command {
	const char *words;
	int (*run)(struct tool *t, const void *opts, int argc, char **argv);
	const struct opt *opts;			/* NULL: none of its own */
	size_t opts_size;
	int min_args, max_args;
	const char *args;			/* for the usage line */
	const char *help;			/* one line */
};

uint64_t tool_now_ns(void);
/* Starts the clock of --timeout: from then on signals end system calls that block, again and
 * again. */
void tool_start_clock(struct tool *t);
/* The deadline or, without --timeout, now + ns. */
uint64_t tool_limit(const struct tool *t, uint64_t ns);
void tool_sleep_ns(uint64_t ns);	/* ends early when interrupted */

/* For how long something has been so, by looks at it, the first of which counts nothing. Zeroed, it
 * has not been so. */
struct tool_span {
	uint64_t seen_ns, ns;
};
/* To be called every 0.1 s or so. Between two looks a quarter of a second counts at most: who stood
 * still himself, or with the whole machine, has not looked, and nor has anybody done anything about
 * it. */
uint64_t tool_span_ns(struct tool_span *span, bool is_so);
/* A peer that is being started again looks gone for a moment: it must look so for a while. */
#define TOOL_GONE_NS (2 * TOOL_SECOND)

/* Ctrl-C, SIGTERM and SIGHUP set a flag from now on; a second one ends the program at once. */
void tool_catch_signals(void);
bool tool_interrupted(void);
/* Forgets it, for commands that end something in order after Ctrl-C; the next one interrupts
 * that. */
void tool_clear_interrupt(void);
/* While signals are held, they count as not sent yet: a wait that must not be cut short. A second
 * one still ends the program. */
void tool_hold_signals(bool hold);
/* While interrupts are muted, tool_later() prints nothing of one: the command does what the signal
 * asks for, and says so itself. */
void tool_mute_interrupts(bool mute);
/* True when the command should stop waiting (T3). */
bool tool_out_of_time(const struct tool *t);
/* To be called again and again while a wait is for data that a cache writes to the store. */
void tool_flushes(const struct tool *t);
/* Something else that the command waits for has come further, as the text says. */
void tool_goes_on(const struct tool *t, const char *text);

/* Whose commands hints name (T5); the text stays the caller's, and may change later. */
void tool_name_segment(const char *segment);
/* The volumed that was named, if one was. */
void tool_name_volumed(const char *volumed);
/* The words of the command that runs; the text stays the caller's. */
void tool_name_command(const char *words);
const char *tool_command(void);
/* T5; copies text, and returns buf. */
const char *tool_hints(char *buf, size_t size, const char *text);

/* From now on an error is one line of JSON: {"error": {"code", "what", "why", "next"}}, with null
 * for what the error does not say. Notes and progress are {"note": {"what", "why", "next"}}. */
void tool_tell_as_json(void);
/* A text of any bytes, as a file may be called; JSON has UTF-8 only. If it is not UTF-8, U+FFFD
 * stands for each byte that is not ASCII, and a very long one is cut. */
json_t *tool_json_text(const char *text);
/* Prints "xseg: ..." as one line and returns code. */
int tool_fail(enum tool_exit code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "xseg: WHAT: REASON; HINT": the reason is the text in err, else strerror's. The hint (may be
 * NULL) is left out when the reason has one (a ';'). The code is made from rc. */
int tool_fail_errno(int64_t rc, const struct xseg_error *err, const char *hint, const char *fmt,
		    ...) __attribute__((format(printf, 4, 5)));
/* The same with a code of the caller's; the reason is in err, and has its hint. */
int tool_fail_reason(enum tool_exit code, const struct xseg_error *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The code for what a store says, from the one for its errno: its EINVAL is nobody's wrong usage,
 * and its ETIMEDOUT an end. */
static inline int tool_exit_of_store(int code)
{
	return code == TOOL_USAGE || code == TOOL_LATER ? TOOL_FAILED : code;
}
/* "interrupted: WHAT" or "timed out: WHAT", which says what goes on. Returns TOOL_LATER. */
int tool_later(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* While muted, errors are not printed: for what is nice to know and no reason to fail. */
void tool_mute(bool mute);

/* T2; to be called again and again, until tool_progress_end(). On a terminal five times a second
 * are shown at most. */
void tool_progress(const struct tool *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void tool_progress_end(void);
/* A line to stderr that is no error: why it takes so long. Not with --quiet. */
void tool_note(const struct tool *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same, also with --quiet: what went wrong although the command goes on. */
void tool_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A line of another program, as it is; with --json it is a note. It may be changed. */
void tool_pass_on(char *line);

/* A line for people on stdout: not with --json or --quiet. */
void tool_say(const struct tool *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The file `name` in the directory of this program, where it was built, or in ../libexec/xseg,
 * where it was installed, if it can be read (how: R_OK) or run (X_OK). -ENOENT: it is in
 * neither. */
int tool_file(const char *name, int how, char *path, size_t size) XSEG_MUST_CHECK;
/* That of a program. */
int tool_program(const char *name, char *path, size_t size) XSEG_MUST_CHECK;

/* Whether an error of making a segment, or of attaching to one, says something of the limits that
 * this process has, and nothing of the segment. */
bool tool_is_own_limit(int rc);
/* What to do where a segment cannot be made; NULL: that depends on what was asked for. */
const char *tool_make_hint(int rc);

/* Attaches to the segment; prints why not and returns an exit code. */
int tool_fail_attach(const struct tool *t, int rc, const struct xseg_error *err);
int tool_attach(struct tool *t, unsigned flags, struct xseg **seg) XSEG_MUST_CHECK;
/* Waits for locks of what is attached end as T3 says; who holds one for long is told. t lives as
 * long as the attachment. */
void tool_be_patient(struct tool *t, struct xseg *seg);

#endif
