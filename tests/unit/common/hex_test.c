/* hex_test - digits without a loop are those of printf. */
#include "peers/common/options/hex.h"

#include <inttypes.h>
#include <stdio.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

static void is_as_printed(uint64_t x)
{
	char digits[HEX_DIGITS + 2] = { [HEX_DIGITS] = '!' }, printed[HEX_DIGITS + 1];

	hex_digits(digits, x);
	snprintf(printed, sizeof(printed), "%016" PRIx64, x);
	assert_memory_equal(digits, printed, HEX_DIGITS);
	assert_int_equal(digits[HEX_DIGITS], '!');
}

static void every_digit_in_every_place(void **state)
{
	(void)state;
	for (unsigned digit = 0; digit < 16; digit++)
		for (unsigned place = 0; place < HEX_DIGITS; place++)
			is_as_printed((uint64_t)digit << 4 * place);
}

static void neighbours_do_not_matter(void **state)
{
	uint64_t x = 1;

	(void)state;
	is_as_printed(UINT64_MAX);
	for (unsigned i = 0; i < 100000;
		i++, x = x * 6364136223846793005ull + 1442695040888963407ull)
		is_as_printed(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_digit_in_every_place),
		cmocka_unit_test(neighbours_do_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
