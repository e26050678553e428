/* xrecord - the header of a record in an append-only log. The log writes it (peers/alog), and a
 * client that reads a record checks it (xseg/kv.h).
 *
 * A record is a header of 64 bytes, a key and a value. Records begin at multiples of 8 bytes of
 * their zone, which is an object of at most 4 MiB.
 *
 * Contract: pure functions over memory; any thread. Bytes that come from a store are input: each
 * length is checked against the room that the caller names. Numbers are in the machine's byte
 * order.
 *
 * Invariants
 *   F1  The CRC of a header is seeded with the log's UUID, the zone, the epoch and the place. So a
 *       header verifies only where the log wrote it, in the opening that wrote it.
 *   F3  A record is whole if its header verifies, and key with value do. Both CRCs are needed.
 *   F4  The value of a PAGED record begins at a page of the zone, and the record ends at a page.
 *       The key stands in front of the value, and a gap between header and key.
 */
#ifndef XTYPES_XRECORD_H
#define XTYPES_XRECORD_H

#include <stdbool.h>
#include <stdint.h>

#define XRECORD_HEADER_BYTES 64u
#define XRECORD_ALIGN	     8u
#define XRECORD_KEY_MAX	     65536u
#define XRECORD_ZONE_MAX     (4u << 20)

#define XRECORD_PAGE	     4096u

/* ZONE, FILLER and FOOTER are the log's own blocks, which have the same CRC. CLEAR is a user's: all
 * records with lower sequences are dead. LOST stands for a value whose record was damaged: it has
 * neither key nor value. */
enum xrecord_type {
	XRECORD_NOTHING, XRECORD_VALUE, XRECORD_TOMBSTONE, XRECORD_ZONE, XRECORD_FILLER,
	XRECORD_FOOTER, XRECORD_CLEAR, XRECORD_LOST,
	XRECORD_NR_TYPES
};

/* MORE, CONTINUED, PACKED and PAGED are the log's (peers/alog/record.h). */
enum xrecord_flag {
	XRECORD_MORE = 1, XRECORD_PACKED = 2, XRECORD_PAGED = 4, XRECORD_CONTINUED = 8,
	XRECORD_LARGE = 16		/* the value lies in zones of its own; here is its list */
};

/* What a record says of itself. */
struct xrecord {
	uint64_t identity[2];
	uint64_t sequence, version;
	uint32_t key_bytes, value_bytes;
	uint32_t data_crc;			/* of key and value, made by the client */
	uint32_t expiry;			/* seconds, by the user's count; 0: never */
	uint32_t client;			/* the user's: flags of its client */
	uint8_t type, flags;
};

struct xrecord_header {
	uint32_t crc;				/* of the header, with the place in this field */
	uint8_t type, flags;
	uint16_t unused;
	uint32_t key_bytes, value_bytes;
	uint64_t sequence, version, identity[2];
	uint32_t data_crc, expiry, client, unused2;
};
_Static_assert(sizeof(struct xrecord_header) == XRECORD_HEADER_BYTES, "the header of a record");

static inline uint32_t xrecord_round(uint32_t n, uint32_t to)
{
	return (n + to - 1) / to * to;
}

/* The bytes that a record that is not PAGED takes in its zone. The lengths are within limits. */
static inline uint32_t xrecord_bytes(uint32_t key_bytes, uint32_t value_bytes)
{
	return xrecord_round(XRECORD_HEADER_BYTES + key_bytes + value_bytes, XRECORD_ALIGN);
}

/* From the begin of a record at this place to its key; its value follows the key (F4). */
static inline uint32_t xrecord_data_at(uint32_t place, uint32_t key_bytes, uint8_t flags)
{
	if (!(flags & XRECORD_PAGED))
		return XRECORD_HEADER_BYTES;
	return xrecord_round(place + XRECORD_HEADER_BYTES + key_bytes, XRECORD_PAGE) - key_bytes -
	       place;
}

static inline uint32_t xrecord_bytes_at(
	uint32_t place, uint32_t key_bytes, uint32_t value_bytes, uint8_t flags)
{
	if (!(flags & XRECORD_PAGED))
		return xrecord_bytes(key_bytes, value_bytes);
	return xrecord_data_at(place, key_bytes, flags) + key_bytes +
	       xrecord_round(value_bytes, XRECORD_PAGE);
}

/* What the CRC of each header of that zone begins with, as written in the opening `epoch`. */
uint32_t xrecord_seed(const uint8_t uuid[16], uint64_t zone, uint64_t epoch);
/* The CRC of a block of 64 bytes: its first four bytes count as the place. */
uint32_t xrecord_sum(const void *block, uint32_t seed, uint32_t place);

void xrecord_encode(
	const struct xrecord *rec, uint32_t seed, uint32_t place, struct xrecord_header *h);
/* False: no header of this place. `room`: bytes from the place to the end of what may be records; a
 * record that is longer is refused. Key and value are not looked at. */
bool xrecord_decode(
	const void *from, uint32_t seed, uint32_t place, uint32_t room, struct xrecord *rec);

#endif
