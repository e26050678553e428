/* stack_edit - see stack_edit.h. Lines are told apart as stack.c and inih tell them: a section
 * begins at the start of its line, a line that begins with a blank goes on with the key before. The
 * text may begin with a byte order mark.
 */
#include "peers/common/options/stack_edit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/opt.h"
#include "peers/common/options/stack.h"

#define LINE_MAX_BYTES 198

static size_t line_bytes(const char *line)
{
	size_t len = strcspn(line, "\n");

	return len + (line[len] == '\n');
}

/* "[peer NAME]", with any blanks. */
static bool is_section(const char *line, const char *peer)
{
	size_t len = strlen(peer);

	if (strncmp(line, "[", 1))
		return false;
	line += 1 + strspn(line + 1, " \t");
	if (strncmp(line, "peer", 4) || !strchr(" \t", line[4]))
		return false;
	line += 4 + strspn(line + 4, " \t");
	return !strncmp(line, peer, len) && line[len + strspn(line + len, " \t")] == ']';
}

static bool is_comment(const char *line)
{
	line += strspn(line, " \t\r");
	return *line == ';' || *line == '#' || *line == '\n' || !*line;
}

/* A line KEY = ..., of a key that is at the start of its line. */
static bool is_key(const char *line, const char *key)
{
	char name[64];
	size_t len = strcspn(line, " \t=:\n");

	snprintf(name, sizeof(name), "%.*s", (int)len, line);
	line += len + strspn(line + len, " \t");
	return len && len < sizeof(name) && opt_same_name(name, key) &&
	       (*line == '=' || *line == ':');
}

/* Where the value of such a line begins, and where it ends: before a comment, and blanks. */
static void find_value(const char *line, size_t *begin, size_t *end)
{
	size_t at = strcspn(line, "=:") + 1;

	at += strspn(line + at, " \t");
	*begin = *end = at;
	for (; line[at] && line[at] != '\n' && line[at] != '\r'; at++) {
		if (line[at] == ';' && (at == *begin || strchr(" \t", line[at - 1])))
			return;
		if (!strchr(" \t", line[at]))
			*end = at + 1;
	}
}

/* ---- writing ----------------------------------------------------------------------------- */

/* The next of the values, or false. */
static bool next_value(const char **values, const char **value, int *len)
{
	if (!*values || !**values)
		return false;
	*value = *values;
	*len = (int)strcspn(*values, "\n");
	*values += *len + ((*values)[*len] == '\n');
	return true;
}

/* end: how lines of the file end */
static bool put_line(FILE *out, const char *key, const char **values, const char *end)
{
	const char *value;
	int len;

	if (!next_value(values, &value, &len))
		return false;
	fprintf(out, "%s = %.*s%s", key, len, value, end);
	return true;
}

/* Copies a line of the key with the next value; none is left: the line goes. */
static void replace_line(FILE *out, const char *line, const char **values)
{
	const char *value;
	size_t begin, end;
	int len;

	if (!next_value(values, &value, &len))
		return;
	find_value(line, &begin, &end);
	fwrite(line, 1, begin, out);
	fwrite(value, 1, (size_t)len, out);
	fwrite(line + end, 1, line_bytes(line) - end, out);
}

static bool lines_fit(const char *text)
{
	for (; *text; text += line_bytes(text))
		if (strcspn(text, "\n") > LINE_MAX_BYTES)
			return false;
	return true;
}

/* The end of the section that begins here; *last: where its last line that is no comment ends. */
static const char *end_of_section(const char *section, const char **last)
{
	const char *line = section + line_bytes(section);

	*last = line;
	for (; *line && *line != '['; line += line_bytes(line))
		if (!is_comment(line))
			*last = line + line_bytes(line);
	return line;
}

static void write_section(FILE *out, const char *section, const char *key, const char *values)
{
	const char *last, *end = end_of_section(section, &last), *line;
	const char *line_end = strcspn(section, "\r") < strcspn(section, "\n") ? "\r\n" : "\n";
	bool goes_on = false;

	for (line = section; line < last; line += line_bytes(line)) {
		/* a value that goes on was replaced with its first line */
		if (goes_on && strchr(" \t", *line) && !is_comment(line))
			continue;
		goes_on = is_key(line, key);
		if (!goes_on)
			fwrite(line, 1, line_bytes(line), out);
		else
			replace_line(out, line, &values);
	}
	if (last > section && last[-1] != '\n' && *values)
		fputs(line_end, out);
	while (put_line(out, key, &values, line_end))
		;
	fwrite(last, 1, (size_t)(end - last), out);
}

char *stack_edit_set(const char *text, const char *peer, const char *key, const char *values)
{
	const char *section = text, *last, *end;
	char *new = NULL;
	size_t len;
	FILE *out;

	if (!strncmp(section, STACK_BOM, strlen(STACK_BOM)))
		section += strlen(STACK_BOM);
	while (*section && !is_section(section, peer))
		section += line_bytes(section);
	out = *section ? open_memstream(&new, &len) : NULL;
	if (!out)
		return NULL;
	end = end_of_section(section, &last);
	fwrite(text, 1, (size_t)(section - text), out);
	write_section(out, section, key, values);
	fputs(end, out);
	if (fclose(out) || !lines_fit(new)) {
		free(new);
		return NULL;
	}
	return new;
}

unsigned stack_edit_differs(const char *a, const char *b, char *in_a, char *in_b, size_t size)
{
	unsigned line = 1;

	for (; *a || *b; line++) {
		size_t x = strcspn(a, "\n"), y = strcspn(b, "\n");

		if (x != y || strncmp(a, b, x) || a[x] != b[y]) {
			snprintf(in_a, size, "%.*s", (int)x, a);
			snprintf(in_b, size, "%.*s", (int)y, b);
			return line;
		}
		a += line_bytes(a);
		b += line_bytes(b);
	}
	return 0;
}
