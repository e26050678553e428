/* kv - the words and lines that tools and peers say to each other (XSEG_OP_ADMIN).
 *
 * Contract: pure functions over the caller's memory. Values hold no blanks and no line breaks,
 * except that the value of a whole line "key=value\n" may hold blanks (kv_next_line()).
 */
#ifndef PEERS_COMMON_KV_H
#define PEERS_COMMON_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xseg/xseg.h"

/* The next word of *cursor, cut out in place; NULL: none left. "a=b" gives word "a", *value "b";
 * "a" gives *value NULL. */
char *kv_next_word(char **cursor, char **value);
/* The same for the next line that is not empty. */
char *kv_next_line(char **cursor, char **value);

/* A number of 32 bits, in digits and nothing else: 0, or -EINVAL and *out is as it was. */
int kv_number(const char *text, uint32_t *out) XSEG_MUST_CHECK;

/* Text that grows in a buffer of fixed size, and knows when it did not fit. */
struct kv_text {
	char *buf;
	size_t size, used;			/* used: without the NUL */
	bool full;				/* something was left out */
};

void kv_init(struct kv_text *t, char *buf, size_t size);
/* Adds all of it or nothing. */
bool kv_add(struct kv_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
