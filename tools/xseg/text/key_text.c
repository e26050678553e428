/* key_text - see key_text.h. */
#include "tools/xseg/text/key_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char hex[] = "0123456789ABCDEF";

/* ---- percent ----------------------------------------------------------------------------- */

/* The bytes of the character of UTF-8 that begins there; 0: none does. Neither too long a form nor
 * a surrogate is one. */
static uint32_t utf8_bytes(const uint8_t *at, uint32_t left)
{
	uint32_t n = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3
							  : at[0] < 0xf5	   ? 4
										   : 0;

	if (n == 0 || n > left)
		return 0;
	for (uint32_t i = 1; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
		(at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return n;
}

static char *put_percent(char *to, uint8_t byte)
{
	*to++ = '%';
	*to++ = hex[byte >> 4];
	*to++ = hex[byte & 15];
	return to;
}

/* Of 2 bytes, U+0080 to U+009F are control characters as well. */
static bool is_printable(const uint8_t *at, uint32_t n)
{
	if (n == 1)
		return at[0] >= 0x20 && at[0] != 0x7f && at[0] != '%';
	return n > 2 || (n == 2 && (at[0] != 0xc2 || at[1] >= 0xa0));
}

const char *key_text(const void *key, uint32_t bytes, char *text)
{
	const uint8_t *at = key, *end = at + bytes;
	char *to = text;

	while (at < end) {
		uint32_t n = utf8_bytes(at, (uint32_t)(end - at));

		if (is_printable(at, n)) {
			memcpy(to, at, n);
			to += n;
			at += n;
		} else {
			to = put_percent(to, *at++);
		}
	}
	*to = '\0';
	return text;
}

static bool may_be_in_a_name(uint8_t c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '~' || (c == '.' && !first);
}

const char *key_text_name(const void *key, uint32_t bytes, char *text)
{
	const uint8_t *at = key;
	char *to = text;

	for (uint32_t i = 0; i < bytes; i++)
		if (may_be_in_a_name(at[i], i == 0))
			*to++ = (char)at[i];
		else
			to = put_percent(to, at[i]);
	*to = '\0';
	return text;
}

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

int64_t key_text_decode(const char *text, size_t len, uint8_t *key)
{
	int64_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] != '%') {
			key[n++] = (uint8_t)text[i];
			continue;
		}
		if (len - i < 3 || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0)
			return -EINVAL;
		key[n++] = (uint8_t)(digit(text[i + 1]) << 4 | digit(text[i + 2]));
		i += 2;
	}
	return n;
}

/* ---- parts of paths ---------------------------------------------------------------------- */

/* No file has this name, or an export has it for its own. */
static bool is_no_name(const uint8_t *part, size_t bytes)
{
	static const char partial[] = KEY_TEXT_PARTIAL;

	return bytes == 0 || memchr(part, 0, bytes) ||
	       (part[0] == '.' && bytes <= 2 && part[bytes - 1] == '.') ||
	       (bytes == sizeof(partial) - 1 && !memcmp(part, partial, bytes));
}

static bool is_coded(uint8_t byte, bool first)
{
	return byte == 0 || byte == '%' || (byte == '.' && first);
}

static void encode_part(const uint8_t *part, size_t bytes, char *text)
{
	for (size_t i = 0; i < bytes; i++)
		if (is_coded(part[i], i == 0))
			text = put_percent(text, part[i]);
		else
			*text++ = (char)part[i];
	if (!bytes)
		*text++ = '%';
	*text = '\0';
}

/* Decodes what encode_part() wrote, also in place. -EINVAL: it did not write this. */
static int64_t decode_part(const uint8_t *text, size_t len, uint8_t *part)
{
	int64_t n = 0;
	size_t i = 0;

	if (len == 1 && text[0] == '%')
		return 0;
	while (i < len) {
		bool first = i == 0, coded = text[i] == '%';
		uint8_t byte = text[i];

		if (coded) {
			const char *a = len - i < 3 ? NULL : memchr(hex, text[i + 1], 16),
				   *b = len - i < 3 ? NULL : memchr(hex, text[i + 2], 16);

			if (!a || !b)
				return -EINVAL;
			byte = (uint8_t)((a - hex) << 4 | (b - hex));
		}
		if (is_coded(byte, first) != coded)
			return -EINVAL;
		part[n++] = byte;
		i += coded ? 3 : 1;
	}
	return n;
}

/* Whether the name stands for other bytes than its own: it leads to what no file can be called,
 * perhaps in several steps. The bytes at `scratch` are lost. */
static bool is_encoded(const void *text, size_t len, bool alone, uint8_t *scratch)
{
	int64_t n = (int64_t)len;

	memmove(scratch, text, len);
	while (memchr(scratch, '%', (size_t)n)) {
		n = decode_part(scratch, (size_t)n, scratch);
		if (n < 0 || (n == 0 && alone))
			return false;
		if (is_no_name(scratch, (size_t)n))
			return true;
	}
	return false;
}

const char *key_text_part(const void *part, size_t bytes, bool alone, char *text)
{
	if (is_no_name(part, bytes) || is_encoded(part, bytes, alone, (uint8_t *)text)) {
		encode_part(part, bytes, text);
	} else {
		memcpy(text, part, bytes);
		text[bytes] = '\0';
	}
	return text;
}

size_t key_text_of_part(const char *text, size_t len, bool alone, uint8_t *part)
{
	if (is_encoded(text, len, alone, part))
		return (size_t)decode_part((const uint8_t *)text, len, part);
	memcpy(part, text, len);
	return len;
}

/* ---- JSON -------------------------------------------------------------------------------- */

static char *base64(const uint8_t *from, size_t bytes)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = malloc((bytes + 2) / 3 * 4 + 1), *to = text;

	for (size_t i = 0; text && i < bytes; i += 3) {
		size_t left = bytes - i;
		uint32_t v = (uint32_t)from[i] << 16 | (left > 1 ? from[i + 1] : 0u) << 8 |
			     (left > 2 ? from[i + 2] : 0u);

		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = left > 1 ? digits[v >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[v & 63] : '=';
	}
	if (text)
		*to = '\0';
	return text;
}

void key_text_json(json_t *object, const char *name, const void *data, size_t bytes)
{
	json_t *text = json_stringn(data ? data : "", bytes);
	char other[64], *coded;

	if (text) {
		json_object_set_new(object, name, text);
		return;
	}
	coded = base64(data, bytes);
	snprintf(other, sizeof(other), "%s_base64", name);
	json_object_set_new(object, other, coded ? json_string(coded) : NULL);
	free(coded);
}
