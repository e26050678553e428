/* stack_file - see stack_file.h. The lines of xseg-host's report are in peers/host/check.h. */
#include "tools/xseg/flow/stack_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/runtime/main.h"
#include "tools/xseg/base/out.h"
#include "tools/xseg/base/proc.h"

static int read_text(struct stack_file *f, const char *what)
{
	FILE *in = fopen(f->path, "re");
	int error = in ? 0 : errno, rc = TOOL_DONE;
	size_t len = 0;

	f->text = calloc(1, STACK_TEXT_BYTES + 1);
	if (in && f->text)
		len = fread(f->text, 1, STACK_TEXT_BYTES, in);
	if (in && ferror(in))
		error = errno;
	if (!f->text)
		rc = tool_fail(TOOL_FAILED, "%s: no memory for the stack file; free some", what);
	else if (error)
		rc = tool_fail_errno(-error, NULL, "name a stack file that can be read", "%s: %s",
				     what, f->path);
	else if (len >= STACK_TEXT_BYTES || strlen(f->text) != len)
		rc = tool_fail(TOOL_USAGE,
			       "%s: %s: it is not a text of less than 64k; name a stack file", what,
			       f->path);
	if (in)
		fclose(in);
	return rc;
}

/* ---- the report -------------------------------------------------------------------------- */

static uint64_t number(char **rest)
{
	return strtoull(proc_word(rest), NULL, 10);
}

static void take_error(struct stack_errors *errors, char *rest)
{
	unsigned line = (unsigned)number(&rest);
	const char *key = proc_word(&rest);

	stack_errors_add(errors, line, key, "%s", proc_word(&rest));
}

static void take_line(struct stack_file *f, char *line)
{
	const char *kind = proc_word(&line), *name;

	if (!strcmp(kind, "error")) {
		take_error(&f->errors, line);
	} else if (!strcmp(kind, "room")) {
		take_error(&f->room, line);
	} else if (!strcmp(kind, "more")) {
		f->errors.nr_more += (uint32_t)number(&line);
	} else if (!strcmp(kind, "memory")) {
		f->needed_bytes = number(&line);
		f->given_bytes = number(&line);
		f->good_bytes = number(&line);
	} else if (!strcmp(kind, "need")) {
		name = proc_word(&line);
		out_set_int(f->needs, name, number(&line));
	}
}

static int ask_host(struct tool *t, struct stack_file *f, const char *what)
{
	char path[PATH_MAX], *report, *rest, *line;
	int rc = tool_program("xseg-host", path, sizeof(path)), fd;

	(void)t;
	if (rc)
		return tool_fail_errno(rc, NULL, "build or install it", "program xseg-host");
	fd = proc_open_text(f->text, strlen(f->text));
	if (fd < 0)
		return tool_fail_errno(
			fd, NULL, "free some memory", "%s: the stack file's text", what);
	rc = proc_run_read((char *[]){ path, "--check", "-", "--report", NULL }, fd, NULL, &report);
	close(fd);
	rest = report;
	while (rest && (line = strsep(&rest, "\n")))
		take_line(f, line);
	free(report);
	if (rc == MAIN_DONE || rc == MAIN_USAGE)
		return TOOL_DONE;
	/* Ctrl-C ended that, too */
	if (rc == -EPIPE && tool_interrupted())
		return tool_later("%s: nothing was begun; run it again", what);
	return tool_fail(TOOL_FAILED, "%s: xseg-host cannot check the stack file; see above", what);
}

/* What is wrong the report has said. */
static int parse(struct stack_file *f, const char *what)
{
	struct xseg_error err = { "" };

	f->stack = stack_create();
	if (!f->stack)
		return tool_fail(TOOL_FAILED, "%s: no memory for a stack; free some", what);
	if (stack_parse(f->text, f->stack, &err) && !f->errors.nr)
		return tool_fail(TOOL_USAGE, "%s: %s: %s", what, f->path, err.text);
	if (!f->errors.nr && !f->stack->nr_peers)
		stack_errors_add(&f->errors, 0, "",
			"it has no [peer NAME] section; add one for each peer");
	return TOOL_DONE;
}

struct stack_file *stack_file_read(struct tool *t, const char *what, const char *path, int *code)
{
	struct stack_file *f = calloc(1, sizeof(*f));

	if (f)
		f->needs = json_object();
	if (!f || !f->needs) {
		*code = tool_fail(TOOL_FAILED, "%s: no memory for a stack; free some", what);
		free(f);
		return NULL;
	}
	f->path = path;
	*code = read_text(f, what);
	if (!*code)
		*code = ask_host(t, f, what);
	if (!*code)
		*code = parse(f, what);
	return f;
}

void stack_file_drop(struct stack_file *f)
{
	if (!f)
		return;
	stack_destroy(f->stack);
	json_decref(f->needs);
	free(f->text);
	free(f);
}

/* ---- what is wrong ----------------------------------------------------------------------- */

/* Calls tell() for each error of both lists, by their lines. */
static void each_error(const struct stack_file *f, bool makes,
	void (*tell)(const struct stack_error *error, void *arg), void *arg)
{
	uint32_t nr_room = makes ? f->room.nr : 0, i = 0, k = 0;

	while (i < f->errors.nr || k < nr_room)
		if (k == nr_room ||
			(i < f->errors.nr && f->errors.error[i].line <= f->room.error[k].line))
			tell(&f->errors.error[i++], arg);
		else
			tell(&f->room.error[k++], arg);
}

struct telling {
	const struct stack_file *f;
	const char *what;
};

static void tell_line(const struct stack_error *error, void *arg)
{
	const struct telling *telling = arg;
	struct xseg_error text;

	tool_fail(TOOL_USAGE, "%s: %s: %s", telling->what, telling->f->path,
		stack_error_text(error, &text));
}

int stack_file_tell(const struct stack_file *f, const char *what, bool makes)
{
	struct telling telling = { f, what };

	each_error(f, makes, tell_line, &telling);
	if (f->errors.nr_more)
		tool_fail(TOOL_USAGE,
			"%s: %s: %" PRIu32 " more error%s; correct those above first", what,
			f->path, f->errors.nr_more, out_s(f->errors.nr_more));
	return f->errors.nr || (makes && f->room.nr) ? TOOL_USAGE : TOOL_DONE;
}

/* The text is cut where the next step begins. */
static void add_error(const struct stack_error *error, void *arg)
{
	char what[sizeof(error->why.text)], *next;
	json_t *j = json_object(), *array = arg;

	snprintf(what, sizeof(what), "%s", error->why.text);
	next = strstr(what, "; ");
	if (next) {
		*next = '\0';
		next += 2;
	}
	if (error->line)
		out_set_int(j, "line", error->line);
	else
		json_object_set_new(j, "line", json_null());
	out_set_text(j, "key", error->key[0] ? error->key : NULL);
	out_set_text(j, "what", what);
	out_set_text(j, "next", next);
	json_array_append_new(array, j);
}

json_t *stack_file_errors(const struct stack_file *f)
{
	json_t *array = json_array();

	each_error(f, true, add_error, array);
	return array;
}
