/* kv_wire - the form of requests to kvd, and of its answers. libxseg (kv.c) and peers/kvd use it.
 *
 * All requests bear the id of the log as their `volume`, offset 0 and whole pages. kvd refuses
 * those of another id with -ESTALE. Everything in them is input to kvd, and each answer is input
 * to the client. Numbers are in the machine's byte order.
 *
 * A query is a READ. Its first `size` / 4096 pages are for the answer. A struct kv_query and the
 * key stand in further pages of its list, which no peer below looks at. Answer and query together
 * have at most XSEG_REQ_PAGES pages.
 *      KV_GET      The answer holds the record of the key. kvd sends the request on to the peer
 *                  that has it, or answers it from the tail. The note words say where the record
 *                  is (see kv_note_*). The client checks the record's sums and its key. It is not
 *                  found if it has an expiry, and that is not later than the time in the notes.
 *                  With a version that is not 0: only that version, else -ESTALE; the client
 *                  compares it with the record's. -ENOENT: no such key. -EMSGSIZE: the pages do
 *                  not hold the record; the note words say its length; none of it was read.
 *                  -EIO: it is damaged. -EINVAL: with the flag XSEG_REQ_DIRECT. If a record does
 *                  not verify, or has another key, the client asks once more with the flag KV_LOOK
 *                  and the zone and place that failed. kvd then reads the record itself, and
 *                  answers.
 *      KV_EXISTS   The answer is a struct kv_info_of_key. -ENOENT.
 *      KV_SCAN     The answer is a struct kv_scan_head and entries, in the order of the index.
 *      KV_PIECE    A range of a large value: kvd sends the request on to the zone that has it.
 *                  `held` is the handle of a KV_HOLD. `offset` is a multiple of KV_PAGE, and the
 *                  range does not leave its piece. The client checks the piece's sum. -EBADF: no
 *                  such handle. -EINVAL: the range is not of the value.
 *      KV_INFO     The answer is a struct kv_info. The request's volume is not looked at.
 *      KV_BACKUP   The answer is a struct kv_backup_head and records of the log, in any order. All
 *                  records of a backup are the state of its begin: of each identity the one with
 *                  the highest sequence counts, of equal ones any. Cursor 0 begins a backup, which
 *                  holds deleted space until its end; -EBUSY: another one, or a verify, is under
 *                  way. -ESTALE: it is not under way any more; -EIO, -ENOSPC: it broke off: begin
 *                  anew. -EMSGSIZE: the pages do not hold the next record; ask for 256.
 *                  A large value is read by KV_PIECE before the backup is asked on. Then `held`
 *                  is 0, `cursor` that of the answer with its record (kv_backup_head.next), and
 *                  `zone` that of its struct kv_large. -ESTALE: as above.
 *
 * A change is a WRITE. Its pages hold a struct kv_batch, `nr` times a struct kv_change, and keys
 * and values. All changes of a batch are done, or none is. No two are of the same key. FUA:
 * answered when they survive a loss of power. kvd writes the outcome of each change into its struct
 * kv_change, in the client's page, before it answers. The result is `size`, or an error of the
 * batch as a whole: -EINVAL: it is malformed; -EPROTO: a data_crc is wrong; -EFBIG: it is larger
 * than kv_info.record_max, or a record could not be read in one request; -ENOSPC: the log is full,
 * or has as many keys as it can.
 * The value of a KV_PUT that stands alone, and has 32 KiB or more from a page on, behind all else,
 * is not copied and not read by kvd. A wrong data_crc is found by the clients that get it, as -EIO.
 * The pages have to stay as they are until the answer. What follows the value in its last page is
 * kept, and should be zeroes. Gets find the old value until it is written below.
 * A DELETE of an absent key without a condition has the result -ENOENT, and is no failure of the
 * batch.
 *
 * A DELETE_ALL has no key and no condition. All values that were put before it are gone when it is
 * answered, in one step. With an `expiry` that is later than kvd's time they stay until then, and
 * so do those that are put meanwhile: all that is there at that moment goes. A later DELETE_ALL
 * replaces one that waits for its time.
 *
 * A FLUSH covers all changes that were answered before it was sent.
 *
 * Large values
 *
 * A large value has zones of its own, and its record has a struct kv_large and a CRC32C of each
 * piece in place of the value. A piece is kv_info.piece_bytes long, the last one may be shorter.
 * Each value that does not fit into a record (kv_is_large(), kv_info.record_max) is put in this
 * way, and any other may be, but for that of no bytes:
 *
 *      KV_BEGIN    `key` is that of the value to come, for its length. `total` is the value's
 *                  length; 0: it is not known yet. `number` becomes a handle. -ENOSPC: the log
 *                  has no room for so much. -EFBIG: it never can have, or kv_info.value_max is
 *                  less. -EBUSY: too many handles are out.
 *      PART        One piece: a WRITE whose first `size` / 4096 pages are the piece, and whose
 *                  next page begins with a struct kv_part. A WRITE with such a page is a PART, so a
 *                  batch lists no more pages than it fills. `size` is whole pages; what follows the
 *                  value in the last one is kept, and should be zeroes. Pages are not copied by
 *                  kvd, and have to stay as they are until the answer, which is `size`. Parts may
 *                  be sent in any order, many at a time, and again. -EBADF: no such handle.
 *                  -ENOSPC: of a value whose length was not known. -EINVAL: it is malformed, or
 *                  beyond `total`. Other errors are those of the store; then KV_COMMIT fails, too.
 *      KV_COMMIT   Each part has been answered. The value of the change is the CRC32C of each
 *                  piece, and `total` the length. It is a put of `key` in all else: conditions,
 *                  expiry, KV_TTL, FUA, new_version. If it is done, the handle is no more. With
 *                  any other outcome the handle stays. -EBADF: no such handle. -EINVAL: a part is
 *                  out, or `total` does not fit the sums. -EIO: the store may have lost a part;
 *                  the value is to be put anew.
 *      KV_HOLD     The large value that `key` has now, or has in this `version`, is kept as it is
 *                  until KV_DROP. `number` becomes a handle for KV_PIECE, and new_version is its
 *                  version. -ENOENT: no such key. -ESTALE: another version. -EINVAL: its value is
 *                  not large. -EBUSY: too many handles are out.
 *      KV_DROP     Ends a handle of KV_HOLD, or one of KV_BEGIN and what was sent. -EBADF: there
 *                  is none, or none any more.
 *
 * These errors are the change's result. Each of these changes stands alone in its batch. All
 * handles of a client end with it: that is the peer of the segment that sent KV_BEGIN or KV_HOLD.
 * They outlive a kvd that is killed. After a loss of power there are none.
 *
 * To read one, GET its record, which has the flag XRECORD_LARGE; HOLD that version; send KV_PIECE
 * for what is wanted, many at a time, and compare the sums; DROP it. If HOLD says -ESTALE, GET it
 * again.
 */
#ifndef XSEG_KV_WIRE_H
#define XSEG_KV_WIRE_H

#include <stdint.h>

#define KV_KEY_MAX     65536u
#define KV_LARGE       (1u << 20)		/* values from here on have zones of their own */
#define KV_VALUE_MAX   (64ull << 30)
#define KV_BATCH_MAX   1000u			/* changes */
#define KV_PIECE_BYTES (1u << 20)		/* of a large value, at most: kv_info.piece_bytes */
#define KV_HANDLES_MAX 128u			/* of a client */
#define KV_PAGE	       4096u
#define KV_PAGES       257u			/* of a request: XSEG_REQ_PAGES */
#define KV_RECORD_HEADER 64u			/* XRECORD_HEADER_BYTES */

/* ---- queries ---- */

enum kv_query_kind { KV_GET = 1, KV_EXISTS, KV_SCAN, KV_PIECE, KV_INFO, KV_BACKUP, KV_NR_QUERIES };

/* A request with XSEG_REQ_ONCE is for reads of which a cache below keeps nothing. */
#define KV_LOOK	   1u			/* GET: kvd reads the record itself */

struct kv_query {
	uint32_t magic;				/* KV_QUERY_MAGIC */
	uint8_t kind, flags;
	uint16_t unused;
	uint32_t key_bytes;	/* of the key, or of SCAN's prefix; it stands behind this */
	uint32_t place;				/* LOOK */
	uint64_t zone;				/* LOOK; PIECE of a backup */
	uint64_t version;			/* GET; 0: whatever there is */
	uint64_t cursor;	/* SCAN, BACKUP: 0, then kv_scan_head.next; PIECE of a backup */
	uint64_t held;				/* PIECE: the handle of KV_HOLD; 0: of a backup */
	uint64_t offset;			/* PIECE: in the value */
};
#define KV_QUERY_MAGIC 0x4b565131u

/* The note words of a GET that was answered with >= 0, or with -EMSGSIZE. TIME is kvd's, in
 * seconds, when it looked; 0: no record of its log expires. */
enum { KV_NOTE_PLACE, KV_NOTE_ZONE, KV_NOTE_TIME, KV_NOTE_EPOCH };

/* Place of the record in its zone, and its length in bytes. */
static inline uint64_t kv_note_place(uint32_t place, uint32_t bytes)
{
	return (uint64_t)place << 32 | bytes;
}

/* Epoch of the zone, for the sum of the record's header; and where the record begins in the
 * pages of the answer. */
static inline uint64_t kv_note_epoch(uint64_t epoch, uint32_t begin)
{
	return epoch << 24 | (begin & 0xffffff);
}

/* Version, sequence and expiry are 0 if the index alone answered: the record was not read. */
struct kv_info_of_key {
	uint64_t version, sequence;
	uint32_t record_bytes;			/* in the log, header and key included */
	uint32_t expiry;
	uint64_t large_bytes;			/* of a large value; 0: it is not large */
};

struct kv_scan_head {
	uint64_t next;				/* the cursor to go on with; 0: that was the end */
	uint32_t nr, bytes;			/* of the answer, this header included */
};

/* Each entry is followed by its key, and the next begins at a multiple of 8 bytes. */
struct kv_scan_entry {
	uint64_t version;
	uint64_t value_bytes;
	uint32_t key_bytes;
	uint32_t expiry, client;
	uint32_t unused;
};

struct kv_backup_head {
	uint64_t next;				/* the cursor to go on with; 0: that was the end */
	uint64_t bad;				/* damaged records so far, which are left out */
	uint32_t nr, bytes;			/* of the answer, this header included */
};

/* Key and value follow, and the next begins at a multiple of 8 bytes. A record without
 * KV_BACKUP_SET says that the key is deleted; its key may be missing. */
struct kv_backup_entry {
	uint64_t identity[2], sequence, version;
	uint32_t key_bytes, value_bytes;
	uint32_t data_crc;			/* of key and value */
	uint32_t expiry, client;
	uint32_t flags;				/* KV_BACKUP_SET, _LARGE */
};
#define KV_BACKUP_SET	1u
#define KV_BACKUP_LARGE 2u			/* the value is a struct kv_large and its sums */

struct kv_info {
	uint32_t version;			/* KV_WIRE_VERSION */
	uint32_t id;				/* what requests bear as their volume */
	uint8_t uuid[16];			/* for the sum of a record's header */
	uint32_t record_max;			/* bytes of a record, or of a batch, in the log */
	uint32_t time;				/* kvd's, in seconds: expiry is compared with it */
	uint64_t keys, keys_max, live_bytes, log_bytes, size_bytes;
	uint64_t value_max;			/* bytes, of a large one */
	uint32_t piece_bytes, unused;		/* of a large value: whole pages */
};
#define KV_WIRE_VERSION 1u

/* ---- changes ---- */

enum kv_change_kind {
	KV_PUT = 1,
	KV_DELETE,
	/* those below stand alone in their batch */
	KV_APPEND,		/* the value is appended to what is there; -ENOENT without */
	KV_PREPEND,
	KV_INCR,		/* the value is a decimal number; `amount` is added, modulo 2^64 */
	KV_DECR,				/* `amount` is taken away, down to 0 */
	KV_TOUCH,				/* the expiry is changed, and nothing else */
	KV_HOLD,				/* those below are of large values */
	KV_DROP,
	KV_BEGIN,
	KV_COMMIT,
	KV_DELETE_ALL,				/* of no key; stands alone */
	KV_NR_CHANGES
};

enum kv_condition { KV_ALWAYS, KV_IF_ABSENT, KV_IF_PRESENT, KV_IF_VERSION };

#define KV_TTL 1u		/* of a change: `expiry` counts from now by kvd's clock, unless 0 */

struct kv_batch {
	uint32_t magic;				/* KV_BATCH_MAGIC */
	uint16_t nr, unused;
};
#define KV_BATCH_MAGIC 0x4b564231u

/* Key and value stand within the request's `size` bytes, at key_at and value_at. A value of 32 KiB
 * and more begins at a page, so that it need not be copied. */
struct kv_change {
	uint8_t kind, condition;
	uint16_t flags;				/* KV_TTL */
	uint32_t key_bytes, value_bytes;
	uint32_t key_at, value_at;
	uint32_t data_crc;			/* CRC32C of the key, then the value */
	uint32_t expiry;	/* seconds of kvd's clock; 0: never; DELETE_ALL: now */
	uint32_t client;			/* flags of the client's, kept with the value */
	uint64_t version;			/* IF_VERSION */
	uint64_t amount;			/* INCR, DECR */
	uint64_t handle, total, unused;		/* of a large value */
	/* kvd writes these */
	/* 0, -EEXIST (IF_ABSENT, IF_VERSION), -ENOENT, -EINVAL (INCR of what is no number),
	 * -ECANCELED: another change of the batch failed */
	int32_t result;
	uint32_t new_bytes;
	uint64_t new_version;
	uint64_t number;	/* INCR, DECR: the value as it is now; BEGIN, HOLD: the handle */
};

static inline uint64_t kv_pages(uint64_t bytes)
{
	return (bytes + KV_PAGE - 1) / KV_PAGE;
}

/* A value is large if its record, wherever it begins in its page, does not fit into the pages of an
 * answer beside the query, or if its put does not fit into a request. A put of it is refused with
 * -EFBIG. */
static inline int kv_is_large(uint32_t key_bytes, uint64_t value_bytes)
{
	uint64_t query = kv_pages(sizeof(struct kv_query) + key_bytes),
		 record = 1 + kv_pages(KV_RECORD_HEADER + key_bytes) + kv_pages(value_bytes),
		 put = kv_pages(sizeof(struct kv_batch) + sizeof(struct kv_change) + key_bytes) +
		       kv_pages(value_bytes);

	return value_bytes >= KV_LARGE || query + record > KV_PAGES || put > KV_PAGES - 1;
}

/* At the begin of the page behind those of a PART. */
struct kv_part {
	uint32_t magic;				/* KV_PART_MAGIC */
	uint32_t unused;
	uint64_t handle;
	uint64_t offset;			/* in the value; a multiple of piece_bytes */
};
#define KV_PART_MAGIC 0x4b565031u

/* The value of a record with the flag XRECORD_LARGE: this, then a CRC32C of each piece. */
struct kv_large {
	uint64_t bytes;				/* of the value */
	uint64_t zone;				/* the first of nr_zones ids; kvd's alone */
	uint32_t nr_zones, nr_pieces;
	uint32_t piece_bytes, unused;
};

#endif
