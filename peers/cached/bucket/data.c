/* data - see data.h. */
#include "peers/cached/bucket/data.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define LINE 64u

/* A line with one store: it never waits, half filled, for the rest. */
__attribute__((target("avx512f"))) static void copy_by_lines(char *to, const char *from)
{
	for (uint32_t at = 0; at < XSEG_PAGE_SIZE; at += LINE)
		_mm512_stream_si512((void *)(to + at), _mm512_load_si512(from + at));
}

void data_copy_past_old(void *to, const void *from)
{
	for (uint32_t at = 0; at < XSEG_PAGE_SIZE; at += LINE) {
		const __m128i *in = (const void *)((const char *)from + at);
		__m128i a = _mm_load_si128(in), b = _mm_load_si128(in + 1),
			c = _mm_load_si128(in + 2), d = _mm_load_si128(in + 3);
		__m128i *out = (void *)((char *)to + at);

		_mm_stream_si128(out, a);
		_mm_stream_si128(out + 1, b);
		_mm_stream_si128(out + 2, c);
		_mm_stream_si128(out + 3, d);
	}
}

__attribute__((target("avx512f"))) void data_copy_between(
	void *to, const void *from, const void *next)
{
	const char *ask = next, *in = from;
	char *out = to;

	for (uint32_t at = 0; at < XSEG_PAGE_SIZE; at += LINE) {
		if (at % (8 * LINE) < 2 * LINE)
			__builtin_prefetch(ask + at, 0, 2);
		_mm512_store_si512(out + at, _mm512_load_si512(in + at));
	}
}

void data_copy_past(void *to, const void *from)
{
	if (__builtin_cpu_supports("avx512f"))
		copy_by_lines(to, from);
	else
		data_copy_past_old(to, from);
}

void data_settle(void)
{
	_mm_sfence();
}

#else

void data_copy_between(void *to, const void *from, const void *next)
{
	(void)next;
	memcpy(to, from, XSEG_PAGE_SIZE);
}

void data_copy_past(void *to, const void *from)
{
	memcpy(to, from, XSEG_PAGE_SIZE);
}

void data_copy_past_old(void *to, const void *from)
{
	data_copy_past(to, from);
}

void data_settle(void)
{
}

#endif
