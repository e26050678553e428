/* xcrc_test - the checksum by the processor's instruction, and by the table. */
#include "xtypes/xcrc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void the_checksum_is_crc32c(void **state)
{
	uint8_t data[64] = { 0 };

	(void)state;
	assert_int_equal(xcrc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(xcrc32c_table(0, "123456789", 9), 0xe3069283);
	for (unsigned i = 0; i < sizeof(data); i++) {
		data[i] = (uint8_t)(i * 37);
		assert_int_equal(xcrc32c(5, data, i), xcrc32c_table(5, data, i));
	}
}

static void that_of_two_pieces_begins_with_that_of_the_first(void **state)
{
	uint8_t data[64];

	(void)state;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 41 + 3);
	assert_int_equal(xcrc32c(xcrc32c(0, data, 30), data + 30, 34), xcrc32c(0, data, 64));
}

/* Of every length up to several rounds, and of every place in a line. */
static void long_data_has_the_same_checksum(void **state)
{
	static uint8_t data[2048];
	uint32_t x = 1;

	(void)state;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
	for (unsigned i = 0; i < 1500; i++)
		assert_int_equal(xcrc32c(i * 77, data + i % 64, i),
			xcrc32c_table(i * 77, data + i % 64, i));
	assert_int_equal(xcrc32c(~0u, data, sizeof(data)), xcrc32c_table(~0u, data, sizeof(data)));
}

static void a_copy_has_the_checksum_of_what_was_copied(void **state)
{
	static uint8_t data[1500], to[1600];

	(void)state;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 59 + i / 7);
	for (unsigned i = 0; i < sizeof(data) - 64; i++) {
		memset(to, 0xee, sizeof(to));
		assert_int_equal(xcrc32c_copy(i, to + i % 33, data + i % 64, i),
			xcrc32c_table(i, data + i % 64, i));
		assert_memory_equal(to + i % 33, data + i % 64, i);
		assert_int_equal(to[i % 33 + i], 0xee);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_checksum_is_crc32c),
		cmocka_unit_test(a_copy_has_the_checksum_of_what_was_copied),
		cmocka_unit_test(long_data_has_the_same_checksum),
		cmocka_unit_test(that_of_two_pieces_begins_with_that_of_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
