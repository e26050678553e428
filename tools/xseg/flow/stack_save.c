/* stack_save - see stack_save.h. */
#include "tools/xseg/flow/stack_save.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "peers/common/options/stack_edit.h"
#include "peers/common/options/text_file.h"
#include "peers/common/say/kv.h"
#include "tools/xseg/base/stack_lock.h"

#define LINE_BYTES 200

/* ---- the file ---------------------------------------------------------------------------- */

static int refuse_changed(const char *what, const struct stack_record *record, const char *text)
{
	char in_file[LINE_BYTES], in_segment[LINE_BYTES];
	unsigned line = stack_edit_differs(
		text, record->text, in_file, in_segment, sizeof(in_file));

	if (!line)
		return TOOL_DONE;
	return tool_fail(TOOL_REFUSED,
		"%s: %s was changed since it was used: line %u is '%.80s', and was '%.80s'; 'xseg "
		"reload' takes over the file as it is now",
		what, record->path, line, in_file, in_segment);
}

/* What the segment and the file have, which must be the same. */
static int load(struct tool *t, struct xseg *seg, const char *what, struct stack_record *record)
{
	char *text;
	int rc;

	if (!stack_record_get(seg, record) || !*record->path)
		return tool_fail(TOOL_REFUSED,
			"%s: segment %s does not know its stack file, so nothing can be saved; "
			"'xseg reload STACK.conf' names it",
			what, t->segment);
	text = malloc(STACK_TEXT_BYTES);
	if (!text)
		return tool_fail(TOOL_FAILED, "%s: no memory for the stack file; free some", what);
	rc = text_file_read(record->path, text, STACK_TEXT_BYTES);
	if (rc)
		rc = tool_fail(TOOL_REFUSED,
			"%s: the stack file %s: %s, so nothing can be saved; 'xseg reload "
			"STACK.conf' names another",
			what, record->path, strerror(-rc));
	else
		rc = refuse_changed(what, record, text);
	free(text);
	return rc;
}

int stack_save_check(struct tool *t, struct xseg *seg, const char *what,
	struct stack_record *record)
{
	int fd, rc = stack_lock(t, what, &fd);

	if (!rc)
		rc = load(t, seg, what, record);
	stack_unlock(fd);
	return rc;
}

/* ---- saving ------------------------------------------------------------------------------ */

static bool is_given(const char *settings, size_t len, const char *key)
{
	for (; *settings && len; settings++, len--)
		if (*settings == ' ' && !strncmp(settings + 1, key, strlen(key)) &&
			settings[1 + strlen(key)] == '=')
			return true;
	return false;
}

/* Of a key that is given several times, the values in a line each. */
static void values_of(const char *settings, const char *key, char *values, size_t size)
{
	char copy[2048], *cursor = copy, *name, *value;
	struct kv_text t;

	snprintf(copy, sizeof(copy), "%s", settings);
	kv_init(&t, values, size);
	while ((name = kv_next_word(&cursor, &value)))
		if (!strcmp(name, key) && value && *value)
			kv_add(&t, "%s%s", t.used ? "\n" : "", value);
}

static char *edit(const char *text, const char *peer, const char *settings)
{
	char copy[2048], values[2048], *cursor = copy, *key, *value, *now = strdup(text), *next;

	snprintf(copy, sizeof(copy), "%s", settings);
	while (now && (key = kv_next_word(&cursor, &value))) {
		if (is_given(settings, (size_t)(key - copy) ? (size_t)(key - copy) - 1 : 0, key))
			continue;
		values_of(settings, key, values, sizeof(values));
		next = stack_edit_set(now, peer, key, values);
		free(now);
		now = next;
	}
	return now;
}

/* The record may have got other names since it was checked, and another text, as by another command
 * that saves. The file has that text, too. */
static int look_again(struct xseg *seg, const char *what, struct stack_record *record)
{
	char *text = malloc(STACK_TEXT_BYTES);
	int rc = TOOL_DONE;

	if (!text)
		return tool_fail(TOOL_FAILED, "%s: no memory for the stack file; free some", what);
	if (!stack_record_get(seg, record) ||
		text_file_read(record->path, text, STACK_TEXT_BYTES) ||
		strcmp(record->text, text) != 0)
		rc = tool_fail(TOOL_REFUSED,
			"%s: it is set, and not saved: another command has changed the stack "
			"meanwhile; do this again",
			what);
	free(text);
	return rc;
}

static int write_text(struct tool *t, struct xseg *seg, const char *what,
	struct stack_record *record, const char *text)
{
	int rc = text_file_replace(record->path, text);

	if (rc)
		return tool_fail(TOOL_FAILED,
			"%s: it is set, and not saved: %s cannot be replaced: %s; change it by "
			"hand, or save as a user that may",
			what, record->path, strerror(-rc));
	snprintf(record->text, sizeof(record->text), "%s", text);
	rc = stack_record_set(seg, record);
	if (rc)
		return tool_fail_errno(rc, NULL, "run 'xseg reload'",
			"%s: the segment's copy of %s", what, record->path);
	tool_say(t, "saved in %s", record->path);
	return TOOL_DONE;
}

int stack_save_write(struct tool *t, struct xseg *seg, const char *what,
	struct stack_record *record, const char *peer, const char *settings)
{
	struct stack *stack = stack_create();
	struct xseg_error err = { "no memory" };
	char *text = NULL;
	int fd, rc = stack_lock(t, what, &fd);

	if (!rc)
		rc = look_again(seg, what, record);
	if (!rc)
		text = edit(record->text, peer, settings);
	if (!rc && (!text || strlen(text) >= STACK_TEXT_BYTES || !stack ||
			   stack_parse(text, stack, &err)))
		rc = tool_fail(TOOL_FAILED,
			"%s: it is set, and not saved: %s has no section of that peer that can be "
			"changed; change it by hand",
			what, record->path);
	if (!rc)
		rc = write_text(t, seg, what, record, text);
	stack_unlock(fd);
	stack_destroy(stack);
	free(text);
	return rc;
}

/* Where it is not a regular file, as a pipe, the path cannot be used later. */
static bool find_path(const char *path, char real[PATH_MAX])
{
	struct stat st;

	return realpath(path, real) && !stat(real, &st) && S_ISREG(st.st_mode);
}

void stack_save_remember(struct tool *t, struct xseg *seg, const char *path, const char *named)
{
	struct stack_record *record = calloc(1, sizeof(*record));
	char real[PATH_MAX];
	int fd = -1;

	tool_mute(true);
	if (record && !stack_lock(t, "up", &fd) && stack_record_get(seg, record)) {
		snprintf(record->named, sizeof(record->named), "%s", named);
		if (find_path(path, real))
			snprintf(record->path, sizeof(record->path), "%s", real);
		/* without the path nothing can be saved, which is said then */
		(void)!stack_record_set(seg, record);
	}
	tool_mute(false);
	stack_unlock(fd);
	free(record);
}
