/* record - see record.h. */
#include "peers/alog/record.h"

#include <stddef.h>
#include <string.h>

#include "xtypes/xcrc.h"

uint32_t alog_seed(const uint8_t uuid[16], uint64_t zone, uint64_t epoch)
{
	struct {
		uint8_t uuid[16];
		uint64_t zone, epoch;
	} from;

	memcpy(from.uuid, uuid, sizeof(from.uuid));
	from.zone = zone;
	from.epoch = epoch;
	return xcrc32c(0, &from, sizeof(from));
}

/* F1: the place stands in the field of the CRC while it is made. */
static uint32_t sum_of(const void *block, uint32_t seed, uint32_t place)
{
	uint8_t copy[ALOG_HEADER_BYTES];

	memcpy(copy, block, sizeof(copy));
	memcpy(copy, &place, sizeof(place));
	return xcrc32c(seed, copy, sizeof(copy));
}

void alog_header_encode(
	const struct alog_record *rec, uint32_t seed, uint32_t place, struct alog_header *h)
{
	memset(h, 0, sizeof(*h));
	h->type = rec->type;
	h->flags = rec->flags;
	h->key_bytes = rec->key_bytes;
	h->value_bytes = rec->value_bytes;
	h->sequence = rec->sequence;
	h->version = rec->version;
	h->identity[0] = rec->identity[0];
	h->identity[1] = rec->identity[1];
	h->data_crc = rec->data_crc;
	h->expiry = rec->expiry;
	h->client = rec->client;
	h->crc = sum_of(h, seed, place);
}

bool alog_header_decode(const void *from, uint32_t seed, uint32_t place, uint32_t room,
	struct alog_record *rec)
{
	struct alog_header h;

	if (room < sizeof(h))
		return false;
	memcpy(&h, from, sizeof(h));
	if (h.type == ALOG_NOTHING || h.type >= ALOG_FOOTER)
		return false;
	if (h.key_bytes > ALOG_KEY_MAX || h.value_bytes > ALOG_ZONE_MAX ||
		alog_bytes_at(place, h.key_bytes, h.value_bytes, h.flags) > room)
		return false;
	if (h.crc != sum_of(&h, seed, place))
		return false;
	*rec = (struct alog_record){ .identity = { h.identity[0], h.identity[1] },
		.sequence = h.sequence, .version = h.version, .key_bytes = h.key_bytes,
		.value_bytes = h.value_bytes, .data_crc = h.data_crc, .expiry = h.expiry,
		.client = h.client, .type = h.type, .flags = h.flags };
	return true;
}

void alog_zone_encode(
	const uint8_t uuid[16], uint64_t zone, const struct alog_zone_info *info, void *to)
{
	struct alog_record rec = { .type = ALOG_ZONE, .value_bytes = sizeof(*info),
		.data_crc = xcrc32c(0, info, sizeof(*info)) };
	struct alog_header h;

	alog_header_encode(&rec, alog_seed(uuid, zone, 0), 0, &h);
	memcpy(to, &h, sizeof(h));
	memcpy((uint8_t *)to + sizeof(h), info, sizeof(*info));
}

bool alog_zone_decode(
	const uint8_t uuid[16], uint64_t zone, const void *from, struct alog_zone_info *info)
{
	struct alog_record rec;

	if (!alog_header_decode(from, alog_seed(uuid, zone, 0), 0, ALOG_ZONE_HEAD_END, &rec) ||
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
	f->crc = sum_of(f, alog_seed(uuid, zone, 0), zone_bytes - ALOG_FOOTER_BYTES);
}

bool alog_footer_decode(const uint8_t uuid[16], uint64_t zone, uint32_t zone_bytes,
	const void *from, struct alog_footer *f)
{
	memcpy(f, from, sizeof(*f));
	return f->type == ALOG_FOOTER &&
	       f->crc == sum_of(f, alog_seed(uuid, zone, 0), zone_bytes - ALOG_FOOTER_BYTES) &&
	       f->nr <= (zone_bytes - ALOG_FOOTER_BYTES) / ALOG_HINT_BYTES &&
	       f->end >= ALOG_ZONE_HEAD_END && f->end % ALOG_ALIGN == 0 &&
	       f->end <= alog_hints_at(zone_bytes, f->nr);
}

bool alog_hint_ok(const struct alog_hint *hint, const struct alog_footer *f)
{
	return (hint->type == ALOG_VALUE || hint->type == ALOG_TOMBSTONE) &&
	       hint->place >= ALOG_ZONE_HEAD_END && hint->place % ALOG_ALIGN == 0 &&
	       hint->bytes >= ALOG_HEADER_BYTES && hint->bytes % ALOG_ALIGN == 0 &&
	       hint->place <= f->end && hint->bytes <= f->end - hint->place;
}
