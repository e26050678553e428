/* record - see record.h. */
#include "peers/alog/record.h"

#include <string.h>

#include "xtypes/xcrc.h"

void alog_zone_encode(
	const uint8_t uuid[16], uint64_t zone, const struct alog_zone_info *info, void *to)
{
	struct xrecord rec = { .type = ALOG_ZONE, .value_bytes = sizeof(*info),
		.data_crc = xcrc32c(0, info, sizeof(*info)) };
	struct xrecord_header h;

	xrecord_encode(&rec, xrecord_seed(uuid, zone, 0), 0, &h);
	memcpy(to, &h, sizeof(h));
	memcpy((uint8_t *)to + sizeof(h), info, sizeof(*info));
}

bool alog_zone_decode(
	const uint8_t uuid[16], uint64_t zone, const void *from, struct alog_zone_info *info)
{
	struct xrecord rec;

	if (!xrecord_decode(from, xrecord_seed(uuid, zone, 0), 0, ALOG_ZONE_HEAD_END, &rec) ||
		rec.type != ALOG_ZONE || rec.key_bytes || rec.value_bytes != sizeof(*info))
		return false;
	memcpy(info, (const uint8_t *)from + ALOG_HEADER_BYTES, sizeof(*info));
	return xcrc32c(0, info, sizeof(*info)) == rec.data_crc;
}

bool alog_zone_identify(uint64_t zone, const void *from, struct alog_zone_info *info)
{
	struct alog_zone_info said;

	memcpy(&said, (const uint8_t *)from + ALOG_HEADER_BYTES, sizeof(said));
	return alog_zone_decode(said.uuid, zone, from, info);
}

void alog_footer_encode(
	const uint8_t uuid[16], uint64_t zone, uint32_t zone_bytes, struct alog_footer *f)
{
	f->type = ALOG_FOOTER;
	f->crc = xrecord_sum(f, xrecord_seed(uuid, zone, 0), zone_bytes - ALOG_FOOTER_BYTES);
}

bool alog_footer_decode(const uint8_t uuid[16], uint64_t zone, uint32_t zone_bytes,
	const void *from, struct alog_footer *f)
{
	memcpy(f, from, sizeof(*f));
	return f->type == ALOG_FOOTER &&
	       f->crc == xrecord_sum(f, xrecord_seed(uuid, zone, 0), zone_bytes - ALOG_FOOTER_BYTES) &&
	       f->nr <= (zone_bytes - ALOG_FOOTER_BYTES) / ALOG_HINT_BYTES &&
	       f->end >= ALOG_ZONE_HEAD_END && f->end % ALOG_ALIGN == 0 &&
	       f->end <= alog_hints_at(zone_bytes, f->nr);
}

bool alog_hint_ok(const struct alog_hint *hint, const struct alog_footer *f)
{
	return (hint->type == ALOG_VALUE || hint->type == ALOG_TOMBSTONE ||
		       hint->type == ALOG_CLEAR || hint->type == ALOG_LOST) &&
	       hint->place >= ALOG_ZONE_HEAD_END && hint->place % ALOG_ALIGN == 0 &&
	       hint->bytes >= ALOG_HEADER_BYTES && hint->bytes % ALOG_ALIGN == 0 &&
	       hint->place <= f->end && hint->bytes <= f->end - hint->place;
}
