/* record - the form of all that the log writes: record headers (xtypes/xrecord.h), zone headers,
 * hints, footers.
 *
 * Contract: pure functions over memory; any thread. Bytes that come from a store are input: each
 * length is checked against the zone before it is used. Numbers are in the machine's byte order.
 *
 * Invariants
 *   F1, F3, F4  of xtypes/xrecord.h
 *   F2  The headers of a zone and of its hints bear epoch 0 in their seed, since the epoch is read
 *       from them.
 */
#ifndef PEERS_ALOG_RECORD_H
#define PEERS_ALOG_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "xtypes/xrecord.h"

#define ALOG_PAGE	   4096u
#define ALOG_ZONE_MAX	   XRECORD_ZONE_MAX
#define ALOG_ALIGN	   XRECORD_ALIGN
#define ALOG_HEADER_BYTES  XRECORD_HEADER_BYTES
#define ALOG_FOOTER_BYTES  64u
#define ALOG_HINT_BYTES	   40u
#define ALOG_KEY_MAX	   XRECORD_KEY_MAX
#define ALOG_PAGED_LEAST   32768u		/* such a copy costs more than the gaps */
#define ALOG_ZONE_HEAD_END 104u			/* where the first record of a zone may begin */

/* The header of a record is in xtypes/xrecord.h, as clients of kvd check it too. These are the
 * log's names of its types and flags. */
enum alog_type {
	ALOG_NOTHING = XRECORD_NOTHING, ALOG_VALUE = XRECORD_VALUE,
	ALOG_TOMBSTONE = XRECORD_TOMBSTONE, ALOG_ZONE = XRECORD_ZONE,
	ALOG_FILLER = XRECORD_FILLER,		/* in place of a record that was not finished */
	ALOG_FOOTER = XRECORD_FOOTER,
	ALOG_CLEAR = XRECORD_CLEAR,		/* of no key; what it means is the user's */
	ALOG_LOST = XRECORD_LOST,		/* in place of a value that was damaged */
	ALOG_NR_TYPES = XRECORD_NR_TYPES
};

enum alog_flag {
	ALOG_MORE = XRECORD_MORE,		/* the next record belongs to the same batch */
	ALOG_PACKED = XRECORD_PACKED,		/* the value is compressed: reserved */
	ALOG_PAGED = XRECORD_PAGED,		/* the value begins at a page */
	ALOG_CONTINUED = XRECORD_CONTINUED,	/* the record before it belongs to the same batch */
	ALOG_LARGE = XRECORD_LARGE,		/* the value names own zones: the user's to set */
	ALOG_OF_BATCH = ALOG_MORE | ALOG_CONTINUED
};

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

/* The most that a record takes, at whatever place. */
static inline uint32_t alog_bytes_most(uint32_t key_bytes, uint32_t value_bytes, uint8_t flags)
{
	if (!(flags & ALOG_PAGED))
		return xrecord_bytes(key_bytes, value_bytes);
	return xrecord_round(ALOG_HEADER_BYTES + key_bytes, ALOG_ALIGN) + ALOG_PAGE - ALOG_ALIGN +
	       xrecord_round(value_bytes, ALOG_PAGE);
}

/* Where the hints begin. */
static inline uint32_t alog_hints_at(uint32_t zone_bytes, uint32_t nr)
{
	return zone_bytes - ALOG_FOOTER_BYTES - nr * ALOG_HINT_BYTES;
}

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
