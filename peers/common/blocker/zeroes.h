/* zeroes - whether data is nothing but zeroes, so that it may be a hole.
 *
 * Contract: pure.
 */
#ifndef PEERS_COMMON_ZEROES_H
#define PEERS_COMMON_ZEROES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Each byte is the one before it, and the first is 0. No bytes are zeroes, too. */
static inline bool data_is_zeroes(const void *data, size_t bytes)
{
	const char *at = data;

	return !bytes || (at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0);
}

#endif
