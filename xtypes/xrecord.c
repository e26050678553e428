/* xrecord - see xrecord.h. */
#include "xtypes/xrecord.h"

#include <string.h>

#include "xtypes/xcrc.h"

uint32_t xrecord_seed(const uint8_t uuid[16], uint64_t zone, uint64_t epoch)
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
uint32_t xrecord_sum(const void *block, uint32_t seed, uint32_t place)
{
	uint8_t copy[XRECORD_HEADER_BYTES];

	memcpy(copy, block, sizeof(copy));
	memcpy(copy, &place, sizeof(place));
	return xcrc32c(seed, copy, sizeof(copy));
}

void xrecord_encode(
	const struct xrecord *rec, uint32_t seed, uint32_t place, struct xrecord_header *h)
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
	h->crc = xrecord_sum(h, seed, place);
}

bool xrecord_decode(
	const void *from, uint32_t seed, uint32_t place, uint32_t room, struct xrecord *rec)
{
	struct xrecord_header h;

	if (room < sizeof(h))
		return false;
	memcpy(&h, from, sizeof(h));
	if (h.type == XRECORD_NOTHING || h.type == XRECORD_FOOTER || h.type >= XRECORD_NR_TYPES)
		return false;
	if (h.key_bytes > XRECORD_KEY_MAX || h.value_bytes > XRECORD_ZONE_MAX ||
		place > XRECORD_ZONE_MAX ||
		xrecord_bytes_at(place, h.key_bytes, h.value_bytes, h.flags) > room)
		return false;
	if (h.crc != xrecord_sum(&h, seed, place))
		return false;
	*rec = (struct xrecord){ .identity = { h.identity[0], h.identity[1] },
		.sequence = h.sequence, .version = h.version, .key_bytes = h.key_bytes,
		.value_bytes = h.value_bytes, .data_crc = h.data_crc, .expiry = h.expiry,
		.client = h.client, .type = h.type, .flags = h.flags };
	return true;
}
