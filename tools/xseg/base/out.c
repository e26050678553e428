/* out - see out.h. */
#include "tools/xseg/base/out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/xseg/base/tool.h"

#define MAX_COLUMNS 16

struct out_table {
	char *rows;				/* lines of cells, the headings first */
	size_t used, room;
};

/* ---- JSON -------------------------------------------------------------------------------- */

int out_done(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return TOOL_DONE;
	return tool_fail(TOOL_FAILED, "standard output: %s; nothing more was printed",
			 strerror(errno));
}

static int dump(json_t *j, size_t flags)
{
	bool whole;

	tool_progress_end();
	whole = j && json_dumpf(j, stdout, flags) == 0;
	json_decref(j);
	if (whole)
		putchar('\n');
	else if (!ferror(stdout))
		return tool_fail(TOOL_FAILED, "no memory for the JSON; free some");
	return out_done();
}

int out_json(json_t *j)
{
	return dump(j, JSON_INDENT(2));
}

int out_state(const char *name, const char *state)
{
	json_t *j = json_object();

	out_set_text(j, "name", name);
	out_set_text(j, "state", state);
	return out_json(j);
}

int out_json_line(json_t *j)
{
	return dump(j, JSON_COMPACT);
}

void out_set_int(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

void out_set_text(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, text ? tool_json_text(text) : json_null());
}

void out_set_bool(json_t *object, const char *key, bool value)
{
	json_object_set_new(object, key, json_boolean(value));
}

uint64_t out_int(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

const char *out_text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "?";
}

/* ---- tables ------------------------------------------------------------------------------ */

static bool append(struct out_table *table, const char *line)
{
	size_t len = strlen(line);
	char *grown;

	if (table->used + len + 2 > table->room) {
		grown = realloc(table->rows, 2 * table->room + len + 2);
		if (!grown)
			return false;
		table->rows = grown;
		table->room = 2 * table->room + len + 2;
	}
	memcpy(table->rows + table->used, line, len);
	table->used += len;
	table->rows[table->used++] = '\n';
	table->rows[table->used] = '\0';
	return true;
}

struct out_table *out_table_create(const char *headings)
{
	struct out_table *table = calloc(1, sizeof(*table));

	if (table && !append(table, headings)) {
		free(table);
		return NULL;
	}
	return table;
}

void out_table_free(struct out_table *table)
{
	if (table)
		free(table->rows);
	free(table);
}

void out_table_row(struct out_table *table, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (!table)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	append(table, line);
}

/* The next cell of a line: its length, and where the one after it begins (NULL: it was the
 * last). */
static size_t next_cell(const char *cell, const char **after)
{
	size_t len = strcspn(cell, "\t\n");

	*after = cell[len] == '\t' ? cell + len + 1 : NULL;
	return len;
}

static void measure(const struct out_table *table, int *width)
{
	const char *line, *cell, *after;
	int column, len;

	for (line = table->rows; *line; line = strchr(line, '\n') + 1) {
		cell = line;
		for (column = 0; cell && column < MAX_COLUMNS; column++) {
			len = (int)next_cell(cell, &after);
			if (line == table->rows && *cell == '>')
				len--;
			if (len > width[column])
				width[column] = len;
			cell = after;
		}
	}
}

static void write_line(FILE *out, const char *line, const int *width, const bool *right,
		       bool heading)
{
	const char *cell, *after;
	int column, len;

	for (cell = line, column = 0; cell && column < MAX_COLUMNS; cell = after, column++) {
		len = (int)next_cell(cell, &after);
		if (heading && *cell == '>') {
			cell++;
			len--;
		}
		if (right[column])
			fprintf(out, "%*s%.*s", width[column] - len, "", len, cell);
		else
			fprintf(out, "%.*s%*s", len, cell,
				after && *after != '\n' ? width[column] - len : 0, "");
		if (after && *after != '\n')
			fputs("  ", out);
	}
	fputc('\n', out);
}

void out_table_write(struct out_table *table, FILE *out)
{
	bool right[MAX_COLUMNS] = { false };
	const char *line, *cell, *after;
	int width[MAX_COLUMNS] = { 0 };
	int column;

	if (!table)
		return;
	measure(table, width);
	cell = table->rows;
	column = 0;
	do {
		right[column] = *cell == '>';
		next_cell(cell, &after);
		cell = after;
	} while (cell && ++column < MAX_COLUMNS);
	for (line = table->rows; *line; line = strchr(line, '\n') + 1)
		write_line(out, line, width, right, line == table->rows);
	out_table_free(table);
}

int out_table_print(struct out_table *table)
{
	if (!table)
		return tool_fail(TOOL_FAILED, "no memory for a table; free some");
	tool_progress_end();
	out_table_write(table, stdout);
	return out_done();
}

/* ---- numbers for people ------------------------------------------------------------------ */

const char *out_size(uint64_t bytes, char *buf)
{
	opt_human_size(bytes, buf, OUT_TEXT);
	return buf;
}

const char *out_bytes(uint64_t bytes, char *buf)
{
	if (bytes >= 1024)
		return out_size(bytes, buf);
	snprintf(buf, OUT_TEXT, "%u bytes", (unsigned)bytes);
	return buf;
}

static const char *scaled(uint64_t n, const char *const *units, uint64_t factor, char *buf)
{
	double value = (double)n;

	while (value >= (double)factor && units[1]) {
		value /= (double)factor;
		units++;
	}
	snprintf(buf, OUT_TEXT, value == (double)n || value >= 100 ? "%.0f%s" : "%.1f%s", value,
		 *units);
	return buf;
}

const char *out_time(uint64_t ns, char *buf)
{
	static const char *const units[] = { "ns", "us", "ms", "s", NULL };

	return scaled(ns, units, 1000, buf);
}

const char *out_moment(uint64_t s, char *buf)
{
	time_t at = (time_t)s;
	struct tm tm;

	if (!localtime_r(&at, &tm) || !strftime(buf, OUT_TEXT, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(buf, OUT_TEXT, "?");
	return buf;
}

const char *out_eta(uint64_t ns, uint64_t done, uint64_t left, char *buf)
{
	if (done)
		return out_time((uint64_t)((double)ns * (double)left / (double)done), buf);
	snprintf(buf, OUT_TEXT, "?");
	return buf;
}

const char *out_count(uint64_t n, char *buf)
{
	static const char *const units[] = { "", "k", "M", "G", "T", NULL };

	return scaled(n, units, 1000, buf);
}

const char *out_s(uint64_t n)
{
	return n == 1 ? "" : "s";
}

const char *out_percent(uint64_t part, uint64_t whole, char *buf)
{
	if (whole)
		snprintf(buf, OUT_TEXT, "%.1f%%", 100.0 * (double)part / (double)whole);
	else
		snprintf(buf, OUT_TEXT, "-");
	return buf;
}
