/* alog_record_test - zone headers and footers: they verify where they were written, and nowhere
 * else (F1 to F4 of record.h). Record headers: unit/xrecord_test. */
#include "peers/alog/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define ZONE_BYTES 65536u

static const uint8_t uuid[16] = { 1, 2, 3 }, other[16] = { 1, 2, 4 };

static void a_paged_value_begins_and_ends_at_a_page_wherever_its_record_is(void **state)
{
	uint32_t data, bytes;

	(void)state;
	for (uint32_t place = ALOG_ZONE_HEAD_END; place < 3 * ALOG_PAGE; place += ALOG_ALIGN)
		for (uint32_t key = 1; key < 5000; key += 77) {
			data = xrecord_data_at(place, key, ALOG_PAGED);
			bytes = xrecord_bytes_at(place, key, 40000, ALOG_PAGED);
			assert_in_range(data, ALOG_HEADER_BYTES, ALOG_HEADER_BYTES + ALOG_PAGE - 1);
			assert_int_equal((place + data + key) % ALOG_PAGE, 0);
			assert_int_equal((place + bytes) % ALOG_PAGE, 0);
			assert_in_range(bytes, data + key + 40000,
				alog_bytes_most(key, 40000, ALOG_PAGED));
		}
}

static void zeroes_are_no_header(void **state)
{
	struct xrecord rec;
	static const uint8_t zeroes[ALOG_ZONE_HEAD_END];
	struct alog_zone_info info;
	struct alog_footer f;

	(void)state;
	assert_false(xrecord_decode(zeroes, xrecord_seed(uuid, 9, 3), 0, ZONE_BYTES, &rec));
	assert_false(alog_zone_decode(uuid, 9, zeroes, &info));
	assert_false(alog_footer_decode(uuid, 9, ZONE_BYTES, zeroes, &f));
}

static void a_zone_header_tells_the_epoch(void **state)
{
	struct alog_zone_info info = { .epoch = 7, .durable = 5, .previous = 8 }, back;
	uint8_t to[ALOG_ZONE_HEAD_END];

	(void)state;
	alog_zone_encode(uuid, 9, &info, to);
	assert_true(alog_zone_decode(uuid, 9, to, &back));
	assert_memory_equal(&back, &info, sizeof(info));
	assert_false(alog_zone_decode(uuid, 10, to, &back));
	assert_false(alog_zone_decode(other, 9, to, &back));
	to[ALOG_ZONE_HEAD_END - 1] ^= 1;
	assert_false(alog_zone_decode(uuid, 9, to, &back));
}

static struct alog_footer footer(uint32_t nr, uint32_t end)
{
	struct alog_footer f = { .epoch = 7, .nr = nr, .end = end };

	alog_footer_encode(uuid, 9, ZONE_BYTES, &f);
	return f;
}

static void a_footer_that_does_not_fit_its_zone_is_refused(void **state)
{
	struct alog_footer f = footer(10, 4096), back;

	(void)state;
	assert_true(alog_footer_decode(uuid, 9, ZONE_BYTES, &f, &back));
	assert_false(alog_footer_decode(uuid, 9, ZONE_BYTES / 2, &f, &back));
	f = footer(ZONE_BYTES, 4096);
	assert_false(alog_footer_decode(uuid, 9, ZONE_BYTES, &f, &back));
	f = footer(10, alog_hints_at(ZONE_BYTES, 10) + 8);
	assert_false(alog_footer_decode(uuid, 9, ZONE_BYTES, &f, &back));
	f = footer(UINT32_MAX / ALOG_HINT_BYTES + 2, 4096);
	assert_false(alog_footer_decode(uuid, 9, ZONE_BYTES, &f, &back));
}

static void a_hint_that_leaves_the_records_is_refused(void **state)
{
	struct alog_footer f = footer(1, 4096);
	struct alog_hint ok = { .place = 1024, .bytes = 3072, .type = ALOG_VALUE }, h = ok;

	(void)state;
	assert_true(alog_hint_ok(&ok, &f));
	h.bytes += 8;
	assert_false(alog_hint_ok(&h, &f));
	h.bytes = UINT32_MAX - 7;
	assert_false(alog_hint_ok(&h, &f));
	h = ok;
	h.place = 0;
	assert_false(alog_hint_ok(&h, &f));
	h = ok;
	h.place = UINT32_MAX - 7;
	assert_false(alog_hint_ok(&h, &f));
	h = ok;
	h.type = ALOG_ZONE;
	assert_false(alog_hint_ok(&h, &f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_paged_value_begins_and_ends_at_a_page_wherever_its_record_is),
		cmocka_unit_test(zeroes_are_no_header),
		cmocka_unit_test(a_zone_header_tells_the_epoch),
		cmocka_unit_test(a_footer_that_does_not_fit_its_zone_is_refused),
		cmocka_unit_test(a_hint_that_leaves_the_records_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
