/* stack_record - see stack_record.h. */
#include "peers/common/options/stack_record.h"

#include <errno.h>
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
	take(at, end, record->pending, sizeof(record->pending));
	return *record->text;
}

static size_t add(char *bytes, size_t used, const char *text)
{
	size_t len = strlen(text) + 1;

	if (used + len > STACK_TEXT_BYTES)
		return used;
	memcpy(bytes + used, text, len);
	return used + len;
}

size_t stack_record_pack(const struct stack_record *record, char *bytes)
{
	size_t used = add(bytes, 0, record->text), with_path = add(bytes, used, record->path);

	return with_path > used ? add(bytes, with_path, record->pending) : used;
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
