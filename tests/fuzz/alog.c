/* alog - zones of an append-only log as a store may return them. A zone is made with records, hints
 * and a footer that verify; then the input scribbles over it. The scan, the hints and the zone's
 * header are read, or refused: nothing outside of the image is read, each record that is told is
 * whole and lies within the zone, and the scan ends.
 */
#include <assert.h>
#include <stdlib.h>

#include "peers/alog/inside.h"
#include "tests/fuzz/fuzz.h"
#include "xtypes/xcrc.h"

#define ZONE_BYTES 16384u

static const struct alog_config config = { .prefix = "f", .zone_bytes = ZONE_BYTES,
	.uuid = { 1, 2, 3 } };

/* Returns where the records end. */
static uint32_t make_zone(uint8_t *image, struct input *in)
{
	struct alog_zone_info info = { .epoch = 3 };
	uint32_t at = ALOG_ZONE_HEAD_END, nr = in_u8(in) % 24,
		 seed = xrecord_seed(config.uuid, 9, 3);
	struct alog_footer f = { .epoch = 3, .nr = nr };
	struct alog_hint hints[24];
	struct xrecord_header h;

	alog_zone_encode(config.uuid, 9, &info, image);
	for (uint32_t i = 0; i < nr; i++) {
		struct xrecord rec = { .sequence = i + 1, .type = ALOG_VALUE,
			.value_bytes = in_u8(in), .flags = in_u8(in) & 13 };
		uint32_t bytes = xrecord_bytes_at(at, 0, rec.value_bytes, rec.flags);

		if (at + bytes > alog_hints_at(ZONE_BYTES, nr)) {
			f.nr = nr = i;
			break;
		}
		memset(image + at + xrecord_data_at(at, 0, rec.flags), (int)i, rec.value_bytes);
		rec.data_crc = xcrc32c(0, scan_data(image, at, &rec), rec.value_bytes);
		if (rec.sequence % 7 == 0)
			rec.type = ALOG_FILLER;
		xrecord_encode(&rec, seed, at, &h);
		memcpy(image + at, &h, sizeof(h));
		scan_hint(&rec, at, bytes, &hints[i]);
		at += bytes;
	}
	f.end = at;
	f.hints_crc = xcrc32c(0, hints, nr * ALOG_HINT_BYTES);
	memcpy(image + alog_hints_at(ZONE_BYTES, nr), hints, nr * ALOG_HINT_BYTES);
	alog_footer_encode(config.uuid, 9, ZONE_BYTES, &f);
	memcpy(image + ZONE_BYTES - sizeof(f), &f, sizeof(f));
	return at;
}

static void scan_all(const uint8_t *image, uint32_t end, bool chains)
{
	struct scan s;
	struct xrecord rec;
	uint32_t at, bytes, before = ALOG_ZONE_HEAD_END;
	enum scan_found found;

	scan_init(&s, image, end, xrecord_seed(config.uuid, 9, 3), chains);
	while ((found = scan_next(&s, &rec, &at, &bytes)) != SCAN_END) {
		assert(at >= before && bytes > 0 && bytes <= end - at);
		before = at + bytes;
		if (found == SCAN_RECORD)
			assert(xcrc32c(0, scan_data(image, at, &rec),
				       rec.key_bytes + rec.value_bytes) == rec.data_crc);
	}
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t *image = calloc(1, ZONE_BYTES);	/* of just its size */
	struct alog_zone_info info;
	struct alog_footer f;
	struct alog_hint hint;
	uint32_t end, place;

	assert(image);
	end = make_zone(image, &in);
	while (in.left) {
		place = in_u16(&in) % ZONE_BYTES;
		image[place] = in_u8(&in);
	}
	scan_all(image, end, false);
	scan_all(image, ZONE_BYTES, true);
	alog_zone_decode(config.uuid, 9, image, &info);
	if (scan_hints_ok(&config, 9, image, &f))
		for (uint32_t i = 0; i < f.nr; i++) {
			memcpy(&hint, image + alog_hints_at(ZONE_BYTES, f.nr) +
					i * ALOG_HINT_BYTES, sizeof(hint));
			assert(!alog_hint_ok(&hint, &f) || hint.place + hint.bytes <= f.end);
		}
	free(image);
}
