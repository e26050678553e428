/* input - see fuzz.h. */
#include "tests/fuzz/fuzz.h"

uint64_t in_wild(struct input *in)
{
	uint8_t how = in_u8(in);

	switch (how % 8) {
	case 0:
	case 1:
	case 2:
		return in_u8(in);
	case 3:
		return in_u16(in);
	case 4:
		return UINT64_MAX - in_u8(in);
	case 5:
		return (1ull << (how / 8 * 2)) + (uint64_t)(int8_t)in_u8(in);
	case 6:
		return (uint64_t)in_u8(in) * 4096;
	default:
		return in_number(in, 8);
	}
}

size_t in_copy(struct input *in, void *to, size_t max)
{
	size_t n = max < in->left ? max : in->left;

	memcpy(to, in->at, n);
	in->at += n;
	in->left -= n;
	return n;
}
