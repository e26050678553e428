/* rival_value.c - the keys and values of a load: the size and the bytes of a key's value, and the
 * check of a value that was got. */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/rivals/rival.h"

struct stamp {
	uint64_t number, version;
};

#define SMALLEST   ((double)sizeof(struct stamp))
#define LARGEST	   (1u << 19)			/* of exponential sizes: every store takes it */

static _Atomic uint64_t last_version;

void rival_versions_begin(void)
{
	struct timespec ts = { 0 };

	clock_gettime(CLOCK_REALTIME, &ts);
	last_version = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t rival_version(void)
{
	return atomic_fetch_add_explicit(&last_version, 1, memory_order_relaxed) + 1;
}

/* The same size each time, so that the set does not grow. */
size_t rival_bytes(const struct rival_options *o, uint64_t number)
{
	double u, bytes;

	if (!o->exponential)
		return o->value_size;
	u = (double)(bench_scramble(number + 1) >> 11) / 9007199254740992.0;	/* [0, 1) */
	bytes = SMALLEST - ((double)o->value_size - SMALLEST) * log1p(-u);
	return bytes > LARGEST ? LARGEST : (size_t)bytes;
}

size_t rival_bytes_max(const struct rival_options *o)
{
	return o->exponential ? LARGEST : o->value_size;
}

size_t rival_key(const struct rival_options *o, char *key, uint64_t number)
{
	static const char digit[] = "0123456789abcdef";

	memcpy(key, "xbench:", 7);
	for (unsigned i = 0; i < 16; i++)
		key[7 + i] = digit[number >> (60 - 4 * i) & 15];
	return o->key_size ? o->key_size : 23;
}

void rival_stamp(const struct rival_op *op, uint8_t *piece, uint64_t offset, size_t bytes)
{
	struct stamp stamp = { op->number, op->version };

	for (size_t at = 0; at < bytes; at += STAMP_STEP) {
		size_t room = bytes - at;

		stamp.number = op->number ^ (offset + at);
		memcpy(piece + at, &stamp, room < sizeof(stamp) ? room : sizeof(stamp));
	}
}

bool rival_is_stamped(struct rival_op *op, const uint8_t *piece, uint64_t offset, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += STAMP_STEP) {
		struct stamp stamp = { 0 };

		if (bytes - at < sizeof(stamp)) {	/* of which a version need not be whole */
			stamp.number = op->number ^ (offset + at);
			if (memcmp(piece + at, &stamp, bytes - at < 8 ? bytes - at : 8))
				return false;
			break;
		}
		memcpy(&stamp, piece + at, sizeof(stamp));
		if (!op->version && stamp.version > last_version)
			return false;
		if (!op->version)
			op->version = stamp.version;
		if (stamp.number != (op->number ^ (offset + at)) || stamp.version != op->version)
			return false;
	}
	return op->version >= op->oldest || !bytes;
}
