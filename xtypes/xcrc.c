/* xcrc - see xcrc.h. */
#include "xtypes/xcrc.h"

#include <string.h>

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

uint32_t xcrc32c(uint32_t crc, const void *data, size_t len)
{
	return __builtin_cpu_supports("sse4.2") ? with_instruction(crc, data, len)
						: xcrc32c_table(crc, data, len);
}
#else
uint32_t xcrc32c(uint32_t crc, const void *data, size_t len)
{
	return xcrc32c_table(crc, data, len);
}
#endif
