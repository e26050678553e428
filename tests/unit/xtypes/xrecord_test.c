/* xrecord_test - headers of records: they verify where they were written, and nowhere else. The
 * form itself stays: logs on disks have it. What the log adds: unit/alog_record_test. */
#include "xtypes/xrecord.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define ROOM 65536u

static const uint8_t uuid[16] = { 1, 2, 3 }, other[16] = { 1, 2, 4 };

static struct xrecord sample(void)
{
	return (struct xrecord){ .identity = { 11, 22 }, .sequence = 33, .version = 44,
		.key_bytes = 5, .value_bytes = 600, .data_crc = 66, .expiry = 77, .client = 88,
		.type = XRECORD_VALUE, .flags = XRECORD_LARGE };
}

static void a_header_is_read_as_it_was_written(void **state)
{
	struct xrecord rec = sample(), back;
	struct xrecord_header h;
	uint32_t seed = xrecord_seed(uuid, 9, 3);

	(void)state;
	xrecord_encode(&rec, seed, 4096, &h);
	memset(&back, 0xee, sizeof(back));
	assert_true(xrecord_decode(&h, seed, 4096, ROOM, &back));
	assert_memory_equal(back.identity, rec.identity, sizeof(rec.identity));
	assert_int_equal(back.sequence, 33);
	assert_int_equal(back.version, 44);
	assert_int_equal(back.key_bytes, 5);
	assert_int_equal(back.value_bytes, 600);
	assert_int_equal(back.data_crc, 66);
	assert_int_equal(back.expiry, 77);
	assert_int_equal(back.client, 88);
	assert_int_equal(back.type, XRECORD_VALUE);
	assert_int_equal(back.flags, XRECORD_LARGE);
}

static void a_header_at_any_address_is_read(void **state)
{
	struct xrecord rec = sample(), back;
	struct xrecord_header h;
	uint8_t at[sizeof(h) + 8];

	(void)state;
	xrecord_encode(&rec, 7, 8, &h);
	for (unsigned i = 0; i < 8; i++) {
		memcpy(at + i, &h, sizeof(h));
		assert_true(xrecord_decode(at + i, 7, 8, ROOM, &back));
	}
}

static void a_header_of_another_place_or_seed_is_refused(void **state)
{
	struct xrecord rec = sample(), back;
	struct xrecord_header h;
	uint32_t seed = xrecord_seed(uuid, 9, 3);

	(void)state;
	xrecord_encode(&rec, seed, 4096, &h);
	assert_false(xrecord_decode(&h, seed, 4104, ROOM, &back));
	assert_false(xrecord_decode(&h, xrecord_seed(uuid, 9, 4), 4096, ROOM, &back));
	assert_false(xrecord_decode(&h, xrecord_seed(uuid, 8, 3), 4096, ROOM, &back));
	assert_false(xrecord_decode(&h, xrecord_seed(other, 9, 3), 4096, ROOM, &back));
}

static void each_flipped_bit_of_a_header_is_found(void **state)
{
	struct xrecord rec = sample(), back;
	struct xrecord_header h;
	uint32_t seed = xrecord_seed(uuid, 9, 3);

	(void)state;
	xrecord_encode(&rec, seed, 4096, &h);
	for (unsigned bit = 0; bit < sizeof(h) * 8; bit++) {
		((uint8_t *)&h)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(xrecord_decode(&h, seed, 4096, ROOM, &back));
		((uint8_t *)&h)[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void a_record_longer_than_its_room_or_a_zone_is_refused(void **state)
{
	struct xrecord rec = sample(), back;
	struct xrecord_header h;
	uint32_t bytes = xrecord_bytes(5, 600);

	(void)state;
	xrecord_encode(&rec, 1, 0, &h);
	assert_true(xrecord_decode(&h, 1, 0, bytes, &back));
	assert_false(xrecord_decode(&h, 1, 0, bytes - 8, &back));
	assert_false(xrecord_decode(&h, 1, 0, 8, &back));
	rec.value_bytes = UINT32_MAX - 70;	/* a sum that would wrap */
	xrecord_encode(&rec, 1, 0, &h);
	assert_false(xrecord_decode(&h, 1, 0, ROOM, &back));
	rec = sample();
	rec.key_bytes = XRECORD_KEY_MAX + 1;
	xrecord_encode(&rec, 1, 0, &h);
	assert_false(xrecord_decode(&h, 1, 0, UINT32_MAX, &back));
	rec.key_bytes = 5;
	rec.value_bytes = XRECORD_ZONE_MAX + 1;
	xrecord_encode(&rec, 1, 0, &h);
	assert_false(xrecord_decode(&h, 1, 0, UINT32_MAX, &back));
}

/* F4 */
static void a_paged_record_has_its_value_at_a_page_and_ends_at_one(void **state)
{
	struct xrecord rec = sample(), back;
	struct xrecord_header h;

	(void)state;
	for (uint32_t place = 0; place < 3 * XRECORD_PAGE; place += XRECORD_ALIGN) {
		uint32_t key = 1 + place % 5000,
			 at = xrecord_data_at(place, key, XRECORD_PAGED),
			 bytes = xrecord_bytes_at(place, key, 40000, XRECORD_PAGED);

		assert_true(at >= XRECORD_HEADER_BYTES);
		assert_true(at < XRECORD_HEADER_BYTES + XRECORD_PAGE);
		assert_int_equal((place + at + key) % XRECORD_PAGE, 0);
		assert_int_equal((place + bytes) % XRECORD_PAGE, 0);
		assert_true(bytes >= at + key + 40000);
		rec.flags = XRECORD_PAGED;
		rec.key_bytes = key;
		rec.value_bytes = 40000;
		xrecord_encode(&rec, 1, place, &h);
		assert_true(xrecord_decode(&h, 1, place, bytes, &back));
		assert_false(xrecord_decode(&h, 1, place, bytes - 1, &back));
	}
}

static void a_header_of_no_type_or_of_a_footer_is_refused(void **state)
{
	static const uint8_t types[] = { XRECORD_NOTHING, XRECORD_FOOTER, 200 };
	struct xrecord rec = sample(), back;
	struct xrecord_header h;

	(void)state;
	for (unsigned i = 0; i < sizeof(types); i++) {
		rec.type = types[i];
		xrecord_encode(&rec, 1, 0, &h);
		assert_false(xrecord_decode(&h, 1, 0, ROOM, &back));
	}
}

/* Computed once: another value would make all logs unreadable. */
static void the_form_stays(void **state)
{
	struct xrecord rec = sample();
	struct xrecord_header h;

	(void)state;
	xrecord_encode(&rec, xrecord_seed(uuid, 9, 3), 4096, &h);
	assert_int_equal(offsetof(struct xrecord_header, sequence), 16);
	assert_int_equal(h.crc, 0xd5012abdu);
	assert_int_equal(xrecord_bytes(5, 600), 672);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_is_read_as_it_was_written),
		cmocka_unit_test(a_header_at_any_address_is_read),
		cmocka_unit_test(a_header_of_another_place_or_seed_is_refused),
		cmocka_unit_test(each_flipped_bit_of_a_header_is_found),
		cmocka_unit_test(a_record_longer_than_its_room_or_a_zone_is_refused),
		cmocka_unit_test(a_paged_record_has_its_value_at_a_page_and_ends_at_one),
		cmocka_unit_test(a_header_of_no_type_or_of_a_footer_is_refused),
		cmocka_unit_test(the_form_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
