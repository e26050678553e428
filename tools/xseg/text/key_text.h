/* key_text - keys of a store of values, which are any bytes, as text.
 *
 *   percent   for people, and for names of files: a byte that may not stand there is %XX, as in
 *             URLs. `%` itself is %25, so the text leads back to the key
 *   part      a part of a path, which is literal wherever it can be. It is percent-encoded if no
 *             file can have that name, or if the name would be taken for an encoded one
 *   JSON      member `key`, or `key_base64` where the key is not UTF-8
 *
 * Contract: pure functions over the caller's memory.
 */
#ifndef TOOLS_XSEG_KEY_TEXT_H
#define TOOLS_XSEG_KEY_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The room for the text of a key of so many bytes, with its NUL. */
#define KEY_TEXT_BYTES(bytes) ((size_t)(bytes)*3 + 1)

/* The name of a file that is not whole yet. No key is exported under it. */
#define KEY_TEXT_PARTIAL ".xseg-kv.partial"

/* What a person can read on a terminal: UTF-8 without control characters stays as it is. */
const char *key_text(const void *key, uint32_t bytes, char *text);
/* What can be the name of a file: letters, digits, `_`, `-`, `~`, and `.` but at the begin. */
const char *key_text_name(const void *key, uint32_t bytes, char *text);
/* Decodes %XX; all else stands for itself. `key` has room for `len` bytes. Returns how many bytes
 * that are, or -EINVAL: a `%` without two digits. */
int64_t key_text_decode(const char *text, size_t len, uint8_t *key);

/* A part of a key, between slashes, as the name of a file or a directory. The part of no bytes is
 * "%", but for a key without slashes (`alone`), which has bytes. `text` has
 * KEY_TEXT_BYTES(bytes) + 1 bytes. */
const char *key_text_part(const void *part, size_t bytes, bool alone, char *text);
/* The part of a key that has this name, which key_text_part() leads back to. `part` has room for
 * `len` bytes. Returns how many bytes it has. */
size_t key_text_of_part(const char *text, size_t len, bool alone, uint8_t *part);

/* Sets the member NAME, or NAME_base64. */
void key_text_json(json_t *object, const char *name, const void *data, size_t bytes);

#endif
