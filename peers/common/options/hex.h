/* hex - sixteen digits of hexadecimal without a loop, for names of objects, which are made for each
 * request.
 *
 * Nibbles are spread to bytes. All are compared with 10 at once, and turned into digits at once.
 *
 * Contract: pure; any thread.
 */
#ifndef PEERS_COMMON_HEX_H
#define PEERS_COMMON_HEX_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define HEX_DIGITS 16u
#define HEX_ZEROES 0x3030303030303030ull

static inline uint64_t hex_of_half(uint32_t x)
{
	uint64_t v = x, letters;

	v = (v << 16 | v) & 0x0000ffff0000ffffull;
	v = (v << 8 | v) & 0x00ff00ff00ff00ffull;
	v = (v << 4 | v) & 0x0f0f0f0f0f0f0f0full;
	letters = ((v + 0x0606060606060606ull) >> 4) & 0x0101010101010101ull;
	return htobe64(v + HEX_ZEROES + letters * ('a' - '0' - 10));
}

/* The digits of two halves; HEX_ZEROES: of 0. */
static inline void hex_put(char to[HEX_DIGITS], uint64_t high, uint64_t low)
{
	const uint64_t digits[2] = { high, low };

	memcpy(to, digits, sizeof(digits));
}

/* Lower case, zeroes in front, the highest first; no byte behind them is touched. */
static inline void hex_digits(char to[HEX_DIGITS], uint64_t x)
{
	/* few objects have so high a number */
	hex_put(to, x >> 32 ? hex_of_half((uint32_t)(x >> 32)) : HEX_ZEROES,
		hex_of_half((uint32_t)x));
}

#endif
