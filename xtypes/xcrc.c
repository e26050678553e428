/* xcrc - see xcrc.h.
 *
 * Three ways, by the processor: the table; the instruction, 8 bytes at a time; and multiplication
 * without carries, 256 bytes at a time ("Fast CRC Computation for Generic Polynomials Using
 * PCLMULQDQ Instruction", Intel 2009). A block of 16 bytes is *folded* into a block that stands D
 * bits behind: the product of its first half and x^(D+32), and of its second half and x^(D-32), is
 * added there. The sum of all bytes is then that of the last blocks. Short data goes to the
 * instruction, which waits three cycles for each 8 bytes.
 */
#include "xtypes/xcrc.h"

#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define POLYNOMIAL 0x82f63b78u

static uint32_t table[256];

__attribute__((constructor)) static void make_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = (table[i] >> 1) ^ (table[i] & 1 ? POLYNOMIAL : 0);
	}
}

uint32_t xcrc32c_table(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	crc = ~crc;
	while (len--)
		crc = (crc >> 8) ^ table[(crc ^ *p++) & 255];
	return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t with_instruction(uint32_t crc, const void *data,
								   size_t len)
{
	const uint8_t *p = data;
	uint64_t c = (uint32_t)~crc, word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		c = __builtin_ia32_crc32di(c, word);
	}
	for (; len; len--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
	return ~(uint32_t)c;
}

#define WIDE 256u	/* bytes of a round, and the least that is folded */

/* The factors of D = 128, 256, 384 (in the order of the blocks of a register, from the first one,
 * and 0 for the last), of D = 512, 1024, 1536, and of D = 2048. */
static uint64_t factor[5][8];

/* x^n modulo the polynomial, bits in the order of the instruction's register, shifted as the
 * product of two such needs it. */
static uint64_t power(unsigned n)
{
	uint32_t p = 1u << 31;

	while (n--)
		p = (p >> 1) ^ (p & 1 ? POLYNOMIAL : 0);
	return (uint64_t)p << 1;
}

static void make_factors(uint64_t *to, unsigned bits)
{
	to[0] = power(bits + 32);
	to[1] = power(bits - 32);
}

__attribute__((constructor)) static void make_all_factors(void)
{
	static const unsigned bits[] = { 512, 1024, 1536, 2048 };

	for (unsigned i = 0; i < 3; i++)
		make_factors(&factor[0][i * 2], 384 - i * 128);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned at = 0; at < 8; at += 2)
			make_factors(&factor[i + 1][at], bits[i]);
}

#define BY_FOLDING __attribute__((target("sse4.2,avx512f,vpclmulqdq")))

/* x is folded into y. */
BY_FOLDING static inline __m512i fold(__m512i x, __m512i by, __m512i y)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, by, 0x00),
		_mm512_clmulepi64_epi128(x, by, 0x11), y, 0x96);
}

/* Blocks of 16 bytes, the first three into the last. */
BY_FOLDING static inline __m128i fold_four(__m512i x)
{
	__m512i y = fold(x, _mm512_loadu_si512(factor[0]), _mm512_setzero_si512());
	__m128i a = _mm_xor_si128(_mm512_castsi512_si128(y), _mm512_extracti32x4_epi32(y, 1)),
		b = _mm_xor_si128(_mm512_extracti32x4_epi32(y, 2), _mm512_extracti32x4_epi32(x, 3));

	return _mm_xor_si128(a, b);
}

/* The next 64 bytes; they are copied if `to` is not NULL. */
BY_FOLDING static inline __attribute__((always_inline)) __m512i take(
	const uint8_t *p, uint8_t *to, size_t at)
{
	__m512i x = _mm512_loadu_si512(p + at);

	if (to)
		_mm512_storeu_si512(to + at, x);
	return x;
}

/* Whole rounds and blocks of 64 bytes, of which there are WIDE bytes at least. The rest is left. */
BY_FOLDING static inline __attribute__((always_inline)) uint32_t fold_all(
	uint32_t crc, const uint8_t *p, uint8_t *to, size_t len)
{
	__m512i by = _mm512_loadu_si512(factor[4]), a = take(p, to, 0), b = take(p, to, 64),
		c = take(p, to, 128), d = take(p, to, 192);
	__m128i rest;
	size_t at = WIDE;

	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
	for (; at + WIDE <= len; at += WIDE) {
		a = fold(a, by, take(p, to, at));
		b = fold(b, by, take(p, to, at + 64));
		c = fold(c, by, take(p, to, at + 128));
		d = fold(d, by, take(p, to, at + 192));
	}
	d = fold(a, _mm512_loadu_si512(factor[3]), d);
	d = fold(b, _mm512_loadu_si512(factor[2]), d);
	by = _mm512_loadu_si512(factor[1]);
	d = fold(c, by, d);
	for (; at + 64 <= len; at += 64)
		d = fold(d, by, take(p, to, at));
	rest = fold_four(d);
	crc = (uint32_t)__builtin_ia32_crc32di(0, (uint64_t)_mm_cvtsi128_si64(rest));
	return ~(uint32_t)__builtin_ia32_crc32di(crc, (uint64_t)_mm_extract_epi64(rest, 1));
}

BY_FOLDING static uint32_t by_folding(uint32_t crc, const uint8_t *p, size_t len)
{
	size_t whole = len / 64 * 64;

	return with_instruction(fold_all(crc, p, NULL, whole), p + whole, len - whole);
}

BY_FOLDING static uint32_t copy_by_folding(uint32_t crc, uint8_t *to, const uint8_t *p, size_t len)
{
	size_t whole = len / 64 * 64;

	crc = fold_all(crc, p, to, whole);
	memcpy(to + whole, p + whole, len - whole);
	return with_instruction(crc, to + whole, len - whole);
}

static bool can_fold(size_t len)
{
	return len >= WIDE && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

uint32_t xcrc32c(uint32_t crc, const void *data, size_t len)
{
	if (can_fold(len))
		return by_folding(crc, data, len);
	return __builtin_cpu_supports("sse4.2") ? with_instruction(crc, data, len)
						: xcrc32c_table(crc, data, len);
}

uint32_t xcrc32c_copy(uint32_t crc, void *to, const void *from, size_t len)
{
	if (can_fold(len))
		return copy_by_folding(crc, to, from, len);
	memcpy(to, from, len);
	return xcrc32c(crc, to, len);
}
#else
uint32_t xcrc32c(uint32_t crc, const void *data, size_t len)
{
	return xcrc32c_table(crc, data, len);
}

uint32_t xcrc32c_copy(uint32_t crc, void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	return xcrc32c_table(crc, to, len);
}
#endif
