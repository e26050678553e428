/* xcrc_test - the checksum by the processor's instruction, and by the table. */
#include "xtypes/xcrc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_checksum_is_crc32c),
		cmocka_unit_test(that_of_two_pieces_begins_with_that_of_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
