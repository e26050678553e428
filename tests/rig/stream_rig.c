/* stream_rig - see stream_rig.h. */
#include "tests/rig/stream_rig.h"
#include "tests/rig/xorshift.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

struct streams srig;
unsigned srig_asked, srig_cut;
static uint64_t rng;

int srig_begin(void **state)
{
	(void)state;
	streams_init(&srig, CUTOFF, AHEAD);
	srig_asked = srig_cut = 0;
	return 0;
}

int srig_end(void **state)
{
	(void)state;
	streams_fini(&srig);
	return 0;
}

void srig_again(void)
{
	srig_end(NULL);
	srig_begin(NULL);
}

void srig_seed(uint64_t value)
{
	print_message("seed %llu\n", (unsigned long long)value);
	rng = value * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

uint64_t srig_random_below(uint64_t n)
{
	return (xorshift_next(&rng) >> 11) % n;
}

/* S4 */
void srig_check_lists(void)
{
	uint32_t n = 0;

	for (uint32_t i = xlist_head(&srig.proven); i != XLIST_NONE;
		i = xlist_next(&srig.proven, i), n++)
		assert_true(srig.stream[i].score > 0);
	assert_int_equal(n, srig.proven.nr);
	for (uint32_t i = xlist_head(&srig.tried); i != XLIST_NONE;
		i = xlist_next(&srig.tried, i), n++)
		assert_int_equal(srig.stream[i].score, 0);
	assert_int_equal(n, STREAMS_NR);
}

/* S1, S3 */
void srig_check_advice(struct stream_advice a, uint64_t obj_offset, uint32_t size)
{
	if (a.cut_off)
		assert_true(srig.cutoff_bytes > 0);
	if (a.ahead_bytes == 0)
		return;
	assert_true(a.ahead_bytes <= srig.ahead_max_bytes);
	assert_true(a.ahead_from % 4096 == 0 && a.ahead_bytes % 4096 == 0);
	assert_true(a.ahead_from >= obj_offset + size);
	assert_true(a.ahead_from + a.ahead_bytes <= OBJECT);
}

struct stream_advice srig_note_in(uint32_t volume, uint64_t offset, uint32_t size)
{
	struct stream_advice a = stream_note(
		&srig, volume, volume ? offset / OBJECT : 77, offset, offset % OBJECT, size);

	srig_check_advice(a, offset % OBJECT, size);
	srig_asked += a.ahead_bytes > 0;
	srig_cut += a.cut_off;
	return a;
}

struct stream_advice srig_note(uint64_t offset, uint32_t size)
{
	return srig_note_in(1, offset, size);
}

struct stream_advice srig_read_on(uint64_t offset, uint32_t size, uint32_t n)
{
	struct stream_advice a = { 0 };

	for (uint32_t i = 0; i < n; i++)
		a = srig_note(offset + (uint64_t)i * size, size);
	return a;
}

uint64_t srig_longest(void)
{
	uint64_t max = 0;

	for (uint32_t i = 0; i < STREAMS_NR; i++)
		if (srig.stream[i].length > max)
			max = srig.stream[i].length;
	return max;
}

void srig_expect_range(struct stream_advice a, uint64_t from, uint32_t bytes)
{
	assert_int_equal(a.ahead_bytes, bytes);
	if (bytes)
		assert_int_equal(a.ahead_from, from);
}
