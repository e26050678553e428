/* record - the form of all that the log writes: record headers, zone headers, hints, footers.
 *
 * Contract: pure functions over memory; any thread. Bytes that come from a store are input: each
 * length is checked against the zone before it is used. Numbers are in the machine's byte order.
 *
 * Invariants
 *   F1  The CRC of a header is seeded with the log's UUID, the zone, the epoch and the place. So a
 *       header verifies only where the log wrote it, in the opening that wrote it.
 *   F2  The headers of a zone and of its hints bear epoch 0 in their seed, since the epoch is read
 *       from them.
 *   F3  A record is whole if header, and key with value, verify. Both CRCs are needed.
 *   F4  The value of a PAGED record begins at a page of the zone, and the record ends at a page.
 *       The key stands in front of the value, and a gap between header and key.
 */
#ifndef PEERS_ALOG_RECORD_H
#define PEERS_ALOG_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#define ALOG_PAGE	   4096u
#define ALOG_ZONE_MAX	   (4u << 20)
#define ALOG_ALIGN	   8u
#define ALOG_HEADER_BYTES  64u
#define ALOG_FOOTER_BYTES  64u
#define ALOG_HINT_BYTES	   40u
#define ALOG_KEY_MAX	   65536u
#define ALOG_PAGED_LEAST   32768u		/* such a copy costs more than the gaps */
#define ALOG_ZONE_HEAD_END 104u			/* where the first record of a zone may begin */

enum alog_type {
	ALOG_NOTHING, ALOG_VALUE, ALOG_TOMBSTONE, ALOG_ZONE,
	ALOG_FILLER,				/* in place of a record that was not finished */
	ALOG_FOOTER, ALOG_NR_TYPES
};

enum alog_flag {
	ALOG_MORE = 1,				/* the next record belongs to the same batch */
	ALOG_PACKED = 2,			/* the value is compressed: reserved */
	ALOG_PAGED = 4,				/* the value begins at a page: alog_data_at() */
	ALOG_CONTINUED = 8			/* the record before it belongs to the same batch */
};

/* What a record says of itself. */
struct alog_record {
	uint64_t identity[2];
	uint64_t sequence, version;
	uint32_t key_bytes, value_bytes;
	uint32_t data_crc;			/* of key and value, made by the client */
	uint32_t expiry;			/* seconds, by the user's count; 0: never */
	uint32_t client;			/* the user's: flags of its client */
	uint8_t type, flags;
};

struct alog_header {
	uint32_t crc;				/* of the header, with the place in this field */
	uint8_t type, flags;
	uint16_t unused;
	uint32_t key_bytes, value_bytes;
	uint64_t sequence, version, identity[2];
	uint32_t data_crc, expiry, client, unused2;
};
_Static_assert(sizeof(struct alog_header) == ALOG_HEADER_BYTES, "the header of a record");

/* The value of the record at place 0 of a zone. */
struct alog_zone_info {
	uint64_t epoch;				/* of the opening that writes the zone */
	uint64_t durable;	/* zones up to this id were flushed as a whole; 0: none was */
	uint64_t previous;			/* the zone before it in the chain, or 0 */
	uint8_t uuid[16];			/* of the log: for a salvage, which has no head */
};
_Static_assert(ALOG_HEADER_BYTES + sizeof(struct alog_zone_info) == ALOG_ZONE_HEAD_END,
	"the header of a zone");

struct alog_hint {
	uint64_t identity[2];
	uint64_t sequence;
	uint32_t place, bytes;			/* of the record */
	uint32_t expiry;
	uint8_t type, flags;
	uint16_t unused;
};
_Static_assert(sizeof(struct alog_hint) == ALOG_HINT_BYTES, "a hint");

struct alog_footer {
	uint32_t crc;				/* of the footer, as a header's */
	uint8_t type, unused[3];
	uint64_t epoch;
	uint32_t nr, hints_crc;
	uint32_t end;				/* where the records end */
	uint32_t unused2[9];
};
_Static_assert(sizeof(struct alog_footer) == ALOG_FOOTER_BYTES, "the footer of a zone");

static inline uint32_t alog_round(uint32_t n, uint32_t to)
{
	return (n + to - 1) / to * to;
}

/* The bytes that a record that is not PAGED takes in its zone. The lengths are within limits. */
static inline uint32_t alog_record_bytes(uint32_t key_bytes, uint32_t value_bytes)
{
	return alog_round(ALOG_HEADER_BYTES + key_bytes + value_bytes, ALOG_ALIGN);
}

/* From the begin of a record at this place to its key; its value follows the key. */
static inline uint32_t alog_data_at(uint32_t place, uint32_t key_bytes, uint8_t flags)
{
	if (!(flags & ALOG_PAGED))
		return ALOG_HEADER_BYTES;
	return alog_round(place + ALOG_HEADER_BYTES + key_bytes, ALOG_PAGE) - key_bytes - place;
}

static inline uint32_t alog_bytes_at(
	uint32_t place, uint32_t key_bytes, uint32_t value_bytes, uint8_t flags)
{
	if (!(flags & ALOG_PAGED))
		return alog_record_bytes(key_bytes, value_bytes);
	return alog_data_at(place, key_bytes, flags) + key_bytes +
	       alog_round(value_bytes, ALOG_PAGE);
}

/* The most that such a record takes, at whatever place. */
static inline uint32_t alog_bytes_most(uint32_t key_bytes, uint32_t value_bytes, uint8_t flags)
{
	if (!(flags & ALOG_PAGED))
		return alog_record_bytes(key_bytes, value_bytes);
	return alog_round(ALOG_HEADER_BYTES + key_bytes, ALOG_ALIGN) + ALOG_PAGE - ALOG_ALIGN +
	       alog_round(value_bytes, ALOG_PAGE);
}

/* Where the hints begin. */
static inline uint32_t alog_hints_at(uint32_t zone_bytes, uint32_t nr)
{
	return zone_bytes - ALOG_FOOTER_BYTES - nr * ALOG_HINT_BYTES;
}

uint32_t alog_seed(const uint8_t uuid[16], uint64_t zone, uint64_t epoch);

void alog_header_encode(
	const struct alog_record *rec, uint32_t seed, uint32_t place, struct alog_header *h);
/* False: no header of this place. `room`: bytes from the place to the end of what may be records; a
 * record that is longer is refused. Key and value are not looked at. */
bool alog_header_decode(const void *from, uint32_t seed, uint32_t place, uint32_t room,
	struct alog_record *rec);

/* `to` has room for ALOG_ZONE_HEAD_END bytes. */
void alog_zone_encode(const uint8_t uuid[16], uint64_t zone, const struct alog_zone_info *info,
	void *to);
bool alog_zone_decode(
	const uint8_t uuid[16], uint64_t zone, const void *from, struct alog_zone_info *info);

/* The same, of a log whose UUID is not known: it is in the header, which has to verify with it. */
bool alog_zone_identify(uint64_t zone, const void *from, struct alog_zone_info *info);

void alog_footer_encode(
	const uint8_t uuid[16], uint64_t zone, uint32_t zone_bytes, struct alog_footer *f);
/* The number of hints, their place and `end` fit into the zone if it verifies. */
bool alog_footer_decode(const uint8_t uuid[16], uint64_t zone, uint32_t zone_bytes,
	const void *from, struct alog_footer *f);
/* A hint names a place and a length between the zone's header and `end`, and a type that may be. */
bool alog_hint_ok(const struct alog_hint *hint, const struct alog_footer *f);

#endif
