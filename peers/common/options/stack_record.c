/* stack_record - see stack_record.h. */
#include "peers/common/options/stack_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies a text that ends at a NUL or with the bytes; returns what is behind it. */
static const char *take(const char *from, const char *end, char *to, size_t size)
{
	size_t len = strnlen(from, (size_t)(end - from));

	snprintf(to, size, "%.*s", (int)len, from);
	from += len;
	return from < end ? from + 1 : end;
}

bool stack_record_unpack(struct stack_record *record, const char *bytes, size_t len)
{
	const char *at = bytes, *end = bytes + len;

	at = take(at, end, record->text, sizeof(record->text));
	at = take(at, end, record->path, sizeof(record->path));
	at = take(at, end, record->pending, sizeof(record->pending));
	at = take(at, end, record->stopped, sizeof(record->stopped));
	take(at, end, record->named, sizeof(record->named));
	return *record->text;
}

/* False: there is no room. */
static bool add(char *bytes, size_t *used, const char *text)
{
	size_t len = strlen(text) + 1;

	if (*used + len > STACK_TEXT_BYTES)
		return false;
	memcpy(bytes + *used, text, len);
	*used += len;
	return true;
}

size_t stack_record_pack(const struct stack_record *record, char *bytes)
{
	size_t used = 0;

	(void)(add(bytes, &used, record->text) && add(bytes, &used, record->path) &&
		add(bytes, &used, record->pending) && add(bytes, &used, record->stopped) &&
		add(bytes, &used, record->named));
	return used;
}

bool stack_record_fits(const struct stack_record *record)
{
	return strlen(record->text) + strlen(record->path) + strlen(record->pending) +
		       strlen(record->stopped) + strlen(record->named) + 5 <=
	       STACK_TEXT_BYTES;
}

bool stack_record_get(struct xseg *seg, struct stack_record *record)
{
	char *bytes = malloc(STACK_TEXT_BYTES + 1);
	size_t len = bytes ? xseg_stack_get(seg, bytes, STACK_TEXT_BYTES + 1) : 0;
	bool is = stack_record_unpack(record, bytes ? bytes : "", len);

	free(bytes);
	return is;
}

int stack_record_set(struct xseg *seg, const struct stack_record *record)
{
	char *bytes = malloc(STACK_TEXT_BYTES);
	int rc = bytes ? xseg_stack_set(seg, bytes, stack_record_pack(record, bytes)) : -ENOMEM;

	free(bytes);
	return rc;
}

/* ---- entries ----------------------------------------------------------------------------- */

/* The next entry of a list, which is not empty; *list moves behind it. Returns its length. */
static size_t next_entry(const char **list, const char **entry)
{
	size_t len = strcspn(*list, ",");

	*entry = *list;
	*list += len + ((*list)[len] == ',');
	return len;
}

bool stack_replaced_next(const char **pending, struct stack_replaced *out)
{
	const char *entry;
	size_t len, name;
	char *end;

	while (**pending) {
		len = next_entry(pending, &entry);
		name = strcspn(entry, ":=,");
		if (!name || name >= len || name >= sizeof(out->name))
			continue;
		snprintf(out->name, sizeof(out->name), "%.*s", (int)name, entry);
		out->keeps_route = entry[name] == '=';
		out->generation = (uint32_t)strtoul(entry + name + 1, &end, 10);
		if (end == entry + len && end > entry + name + 1)
			return true;
	}
	return false;
}

/* Adds an entry; false: there is no room. */
static bool append(char *list, size_t size, const char *entry)
{
	size_t used = strlen(list), len = strlen(entry) + (used > 0);

	if (used + len >= size)
		return false;
	snprintf(list + used, size - used, "%s%s", used ? "," : "", entry);
	return true;
}

bool stack_replaced_add(char *pending, size_t size, const struct stack_replaced *replaced)
{
	char entry[XSEG_NAME_MAX + 16];

	snprintf(entry, sizeof(entry), "%s%c%" PRIu32, replaced->name,
		replaced->keeps_route ? '=' : ':', replaced->generation);
	return append(pending, size, entry);
}

/* NULL: it is not there. */
static char *find_name(const char *list, const char *name)
{
	size_t len = strlen(name);
	const char *entry;

	while (*list)
		if (next_entry(&list, &entry) == len && !strncmp(entry, name, len))
			return (char *)entry;
	return NULL;
}

bool stack_names_have(const char *list, const char *name)
{
	return find_name(list, name);
}

bool stack_names_add(char *list, size_t size, const char *name)
{
	return find_name(list, name) || append(list, size, name);
}

void stack_names_remove(char *list, const char *name)
{
	char *at = find_name(list, name);
	size_t len = strlen(name);

	if (!at)
		return;
	/* with one comma */
	if (at[len] == ',')
		memmove(at, at + len + 1, strlen(at + len + 1) + 1);
	else
		at[at > list ? -1 : 0] = '\0';
}

/* ---- what a command has stopped ---------------------------------------------------------- */

static const char *stopped_entry(enum stack_stopped what, const char *name,
	char entry[XSEG_NAME_MAX + 8])
{
	snprintf(entry, XSEG_NAME_MAX + 8, "%s%s", what == STACK_STOPPED_PEER ? "peer:" : "", name);
	return entry;
}

bool stack_stopped_has(const char *list, enum stack_stopped what, const char *name)
{
	char entry[XSEG_NAME_MAX + 8];

	return stack_names_have(list, stopped_entry(what, name, entry));
}

bool stack_stopped_add(struct stack_record *record, enum stack_stopped what, const char *name)
{
	char entry[XSEG_NAME_MAX + 8];

	return stack_names_add(record->stopped, sizeof(record->stopped),
		       stopped_entry(what, name, entry)) &&
	       stack_record_fits(record);
}

void stack_stopped_remove(struct stack_record *record, enum stack_stopped what, const char *name)
{
	char entry[XSEG_NAME_MAX + 8];

	stack_names_remove(record->stopped, stopped_entry(what, name, entry));
}
