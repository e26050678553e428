/* fuzz - shared by the programs of tests/fuzz: an input that is read piece by piece, and the call
 * of a program.
 *
 * A program is one file with fuzz_one(). Built with clang it is a libFuzzer target (`make fuzz`).
 * Built like all else, drive.c replays the files of tests/fuzz/corpus, and any other named file
 * (`make check`).
 *
 * Contract: fuzz_one() depends on its input alone, leaves nothing behind that the next call sees,
 * and ends. Its findings are an assert, a signal or a sanitizer's report.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

void fuzz_one(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at;
	size_t left;
};

/* Little-endian; zeroes where the input has ended. */
static inline uint64_t in_number(struct input *in, size_t bytes)
{
	uint64_t n = 0;

	if (bytes > in->left)
		bytes = in->left;
	memcpy(&n, in->at, bytes);
	in->at += bytes;
	in->left -= bytes;
	return n;
}

static inline uint8_t in_u8(struct input *in)
{
	return (uint8_t)in_number(in, 1);
}

static inline uint16_t in_u16(struct input *in)
{
	return (uint16_t)in_number(in, 2);
}

static inline uint32_t in_below(struct input *in, uint32_t n)
{
	return (uint32_t)in_number(in, n > 256 ? 4 : 1) % n;
}

/* A number as they are in the wild: small, all ones, at a power of two, or just any. */
uint64_t in_wild(struct input *in);

/* Copies up to max bytes; returns how many there were. */
size_t in_copy(struct input *in, void *to, size_t max);

#endif
