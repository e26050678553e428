/* start_log - see start_log.h. */
#include "tools/xseg/base/start_log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/args.h"
#include "tools/xseg/base/proc.h"

#define SUPERVISOR "supervisor: "
#define STARTED	   "started "
#define PROCESS	   "the process of "
#define KILLED	   " was killed by signal "

/* How it tells of a failure: the names of the process stand between the two. */
static const struct {
	const char *before, *after;
	bool began;				/* the process was there */
} failures[] = {
	{ PROCESS, START_LOG_ENDED, true },
	{ "", " cannot be started with these options", true },
	{ PROCESS, " is not started again (restart = no)", true },
	{ "cannot start ", ": ", false },
};

/* The text behind `word`, or NULL if it begins with another one. */
static const char *behind(const char *text, const char *word)
{
	return !text || strncmp(text, word, strlen(word)) ? NULL : text + strlen(word);
}

/* The supervisor's words in a line of its own, or NULL. */
static const char *words_of(const char *line)
{
	const char *words = behind(line, SUPERVISOR), *rest = behind(words, "warning: ");

	if (!rest)
		rest = behind(words, "error: ");
	return rest ? rest : words;
}

/* ---- names ------------------------------------------------------------------------------- */

/* "a, b" at the beginning of the text, or "exports a, b": how long that is. */
static size_t length_of_names(const char *text)
{
	static const char *const after[] = { " (", ": ", " ended with ", " was killed ", " died",
					     " cannot be " };
	size_t len = strlen(text);

	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		const char *at = strstr(text, after[i]);

		if (at && (size_t)(at - text) < len)
			len = (size_t)(at - text);
	}
	return len;
}

static bool has_name(const char *text, size_t len, const char *name)
{
	const char *at = text, *end = text + len;
	size_t word;

	for (; at < end; at += word + strspn(at + word, ", ")) {
		word = strcspn(at, ", ");
		if (word > (size_t)(end - at))
			word = (size_t)(end - at);
		if (strlen(name) == word && !strncmp(at, name, word))
			return true;
	}
	return false;
}

static bool has_one_of(const char *text, size_t len, const struct start_log_names *names)
{
	for (uint32_t i = 0; i < names->nr; i++)
		if (has_name(text, len, names->name[i]))
			return true;
	return !names->nr;
}

/* ---- failures ---------------------------------------------------------------------------- */

struct search {
	const struct start_log_names *names;
	struct args started;			/* the names of each process that began, once */
	char *line;
	bool found;
};

static bool has_started(const struct search *s, const char *names, size_t len)
{
	for (int i = 0; i < s->started.nr; i++)
		if (!strncmp(s->started.arg[i], names, len) && !s->started.arg[i][len])
			return true;
	return s->started.failed;
}

static void note_started(struct search *s, const char *names)
{
	size_t len = length_of_names(names);

	if (!has_started(s, names, len))
		args_add(&s->started, "%.*s", (int)len, names);
}

static void look_at_line(const char *line, void *arg)
{
	const char *words = words_of(line), *names = behind(words, STARTED);
	struct search *s = arg;
	size_t len;

	if (names)
		note_started(s, names);
	for (size_t i = 0; words && i < sizeof(failures) / sizeof(failures[0]); i++) {
		names = behind(words, failures[i].before);
		len = names ? length_of_names(names) : 0;
		if (!names || !strstr(names, failures[i].after) ||
			!has_one_of(names, len, s->names) ||
			(failures[i].began && !has_started(s, names, len)))
			continue;
		snprintf(s->line, START_LOG_LINE, "%s", line);
		s->found = true;
	}
}

bool start_log_failed(const char *log, off_t from, const struct start_log_names *names,
	char line[static START_LOG_LINE])
{
	struct search *s = calloc(1, sizeof(*s));
	bool found;

	if (!s)
		return false;			/* the next look may have memory */
	s->names = names;
	s->line = line;
	proc_each_line(log, from, SUPERVISOR, look_at_line, s);
	found = s->found;
	args_free(&s->started);
	free(s);
	return found;
}

/* ---- crashes ----------------------------------------------------------------------------- */

struct counted {
	const char *name;
	struct start_log_crashes *crashes;
};

static void count_crash(const char *line, void *arg)
{
	struct counted *c = arg;
	const char *names = behind(words_of(line), PROCESS);
	int signal;

	if (!names || !has_name(names, length_of_names(names), c->name))
		return;
	signal = (int)strtol(strstr(line, KILLED) + strlen(KILLED), NULL, 10);
	if (signal == SIGKILL) {
		c->crashes->nr_kills++;
		c->crashes->memory |= strstr(line, "memory ran out") != NULL;
		return;
	}
	c->crashes->nr++;
	c->crashes->signal = signal;
}

void start_log_count_crashes(
	const char *log, off_t from, const char *name, struct start_log_crashes *crashes)
{
	struct counted c = { .name = name, .crashes = crashes };

	*crashes = (struct start_log_crashes){ .nr = 0 };
	proc_each_line(log, from, KILLED, count_crash, &c);
}
