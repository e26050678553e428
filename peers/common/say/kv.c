/* kv - see kv.h. */
#include "peers/common/say/kv.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char *next_piece(char **cursor, const char *ends, char **value)
{
	char *piece;

	do
		piece = strsep(cursor, ends);
	while (piece && !*piece);
	*value = piece ? strchr(piece, '=') : NULL;
	if (*value)
		*(*value)++ = '\0';
	return piece;
}

char *kv_next_word(char **cursor, char **value)
{
	return next_piece(cursor, " \t\r\n", value);
}

char *kv_next_line(char **cursor, char **value)
{
	return next_piece(cursor, "\r\n", value);
}

int kv_number(const char *text, uint32_t *out)
{
	uint64_t value = 0;
	const char *c;

	for (c = text; isdigit((unsigned char)*c) && value <= UINT32_MAX; c++)
		value = value * 10 + (uint64_t)(*c - '0');
	if (c == text || *c || value > UINT32_MAX)
		return -EINVAL;
	*out = (uint32_t)value;
	return 0;
}

void kv_init(struct kv_text *t, char *buf, size_t size)
{
	*t = (struct kv_text){ .buf = buf, .size = size };
	if (size)
		buf[0] = '\0';
}

bool kv_add(struct kv_text *t, const char *fmt, ...)
{
	size_t room = t->size - t->used;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(t->buf + t->used, room, fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= room) {
		if (room)
			t->buf[t->used] = '\0';
		t->full = true;
		return false;
	}
	t->used += (size_t)len;
	return true;
}
