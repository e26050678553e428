/* percent - a byte of a name as %XX, where it cannot stand as it is.
 *
 * Contract: pure.
 */
#ifndef PEERS_COMMON_PERCENT_H
#define PEERS_COMMON_PERCENT_H

#include <ctype.h>
#include <stddef.h>

#define PERCENT_CHARS 3u

/* Writes PERCENT_CHARS, with capital letters. */
static inline void percent_put(char *to, char byte)
{
	static const char hex[] = "0123456789ABCDEF";

	to[0] = '%';
	to[1] = hex[(unsigned char)byte >> 4];
	to[2] = hex[(unsigned char)byte & 15];
}

static inline int percent_digit(char c)
{
	if (!isxdigit((unsigned char)c))
		return -1;
	return isdigit((unsigned char)c) ? c - '0' : toupper((unsigned char)c) - 'A' + 10;
}

/* The byte that a '%' and what follows it stand for, in `left` characters; -1: none. */
static inline int percent_get(const char *from, size_t left)
{
	int high = left < PERCENT_CHARS ? -1 : percent_digit(from[1]);
	int low = high < 0 ? -1 : percent_digit(from[2]);

	return low < 0 ? -1 : high * 16 + low;
}

#endif
