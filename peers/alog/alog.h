/* alog - an append-only log of records over a route: what its user calls, and what it calls.
 *
 * Contract
 *   One thread at a time. No call blocks, makes a system call or reads a clock. Nothing is
 *   allocated after alog_create(). The log sends requests by the user's send(), and the user hands
 *   each back by alog_done(). Upcalls come from alog_poll() and alog_done() alone, and from
 *   alog_append() none. They may call alog_dead(), and nothing else of the log.
 *
 *   The arena outlives the process. When alog_create() finds a predecessor's arena, none of the
 *   predecessor's requests may be in flight any more.
 *
 * Life: alog_create -> alog_poll until alog_serves() or alog_failed() -> append, force, poll ...
 *   -> alog_destroy. A kill may come anywhere, and power may fail at any time.
 *
 * Rules: L1 (flush.c), L2 and L8 (repair.c), L3 (zone.c), L4 (open.c), L5, L6 and L7 (grave.c). The
 * design, and how it was attacked: docs/design/alog.md.
 */
#ifndef PEERS_ALOG_H
#define PEERS_ALOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peers/alog/record.h"
#include "xseg/xseg.h"

#define ALOG_IO_PAGES	256u			/* of one request: 1 MiB */
#define ALOG_BATCH_MAX	1000u			/* records of one append */
#define ALOG_USER_BYTES 128u
#define ALOG_NEVER	UINT64_MAX

struct alog;

/* A request that the log wants sent. Its range is whole pages of the object `target`; FLUSH is for
 * all objects whose names begin with it. */
struct alog_io {
	uint8_t op;				/* enum xseg_op: READ, WRITE, FLUSH or DELETE */
	bool fua;
	bool once;				/* a cache below need not keep this */
	uint16_t nr_pages;
	uint32_t offset, size;
	char target[XSEG_TARGET_MAX];
	uint32_t page[ALOG_IO_PAGES];		/* indices in the segment */
	void *user;				/* free for the user while it is out */
};

enum alog_verdict {
	ALOG_DEAD,				/* nothing needs this record */
	ALOG_LIVE,				/* the index has it at this place */
	ALOG_EXPIRED				/* the same; kept as a tombstone without value */
};

enum alog_damage {
	ALOG_BAD_RECORD,			/* within a zone that was flushed */
	ALOG_BAD_HINTS,				/* older versions of a lost record's key may show */
	ALOG_BAD_HEAD,				/* one copy of the head */
	ALOG_HOLE				/* of a loss of power: nothing was promised there */
};

struct alog_user {
	void *ctx;
	/* False: it cannot be sent now; it is tried again at the next poll. */
	bool (*send)(void *ctx, struct alog_io *io);
	/* The index in the segment of the page at this address, of the arena or of the scratch. */
	uint32_t (*page)(void *ctx, const void *at);
	/* Opening: a record is in this zone. Of an identity the highest sequence counts; of equal
	 * ones the higher zone. alog_dead() is called for the other one. */
	void (*found)(void *ctx, uint64_t zone, const struct alog_hint *hint);
	/* `keep`: a tombstone that the index has is LIVE, also if it is the last record of its
	 * identity. */
	enum alog_verdict (*judge)(void *ctx, uint64_t zone, const struct alog_hint *hint,
		bool keep);
	/* A copy of the record `from` stands at `to`; the original stays for a while. An index that
	 * points to the original points to the copy from now on, and alog_dead() is not called for
	 * the original. `to->type` is a tombstone if it expired. */
	void (*copied)(void *ctx, uint64_t from_zone, const struct alog_hint *from,
		uint64_t to_zone, const struct alog_hint *to);
	/* L7: the zone is going to be deleted, with this record. It is not said of zones that a
	 * repair leaves: a tombstone of such an identity stays until the next opening. */
	void (*gone)(void *ctx, uint64_t zone, const struct alog_hint *hint);
	/* Records that the index has in this zone are damaged; the index drops them. */
	void (*lost)(void *ctx, uint64_t zone);
	void (*damage)(void *ctx, enum alog_damage what, uint64_t zone, uint32_t place,
		uint32_t bytes);
};

struct alog_config {
	char prefix[XSEG_NAME_MAX];		/* objects are named +PREFIX:... */
	uint32_t zones;				/* at most so many at a time */
	uint32_t zone_bytes;			/* whole pages, up to ALOG_ZONE_MAX */
	uint32_t tail_pages;			/* of the ring in the arena */
	uint32_t reserve;	/* zones that callers cannot fill: for tombstones and copies */
	uint8_t uuid[16];			/* of a log that is new */
	uint64_t owner;				/* of the segment: tells its arenas from others */
};

/* What a log of this configuration needs. -EINVAL: it cannot be. */
struct alog_cost {
	uint64_t arena_bytes;			/* zeroed when new; page aligned */
	uint64_t scratch_bytes;			/* pages of the segment, private to the process */
	uint64_t private_bytes;			/* allocated by alog_create() */
	uint32_t record_max;			/* bytes of a record, or of a batch, in the log */
};
int alog_cost(const struct alog_config *cfg, struct alog_cost *cost) XSEG_MUST_CHECK;

/* NULL: no memory, or a configuration that cannot be. */
struct alog *alog_create(const struct alog_config *cfg, const struct alog_user *user, void *arena,
	void *scratch);
void alog_destroy(struct alog *l);

/* Goes on with all that is to be done. Returns when it wants to be called next (absolute ns), or
 * ALOG_NEVER: after the next answer or append. */
uint64_t alog_poll(struct alog *l, uint64_t now_ns);
/* A request is back: bytes, or a negative errno. */
void alog_done(struct alog *l, struct alog_io *io, int64_t result);

bool alog_serves(const struct alog *l);
/* Why the log does not serve: 0, or -EBADMSG: both heads are damaged; -ESTALE: another segment has
 * opened the log since this arena was written; -EINVAL: the log has another geometry; -EIO: it has
 * served, and the store has lost what it had answered. Then the log is to be destroyed when no
 * request is out, and created again: older versions of what was lost may show. */
int alog_failed(const struct alog *l);

/* ---- appending ---- */

struct alog_put {
	struct alog_record rec;	/* sequence and flags are the log's; version 0: the sequence */
	const void *key, *value;
};

/* Where a record stands. */
struct alog_place {
	uint64_t zone, sequence;
	uint64_t end;				/* of the whole append, in the stream */
	uint32_t place, bytes;
};

/* Appends nr records, all or none, and says where each stands. -EAGAIN: tail, ids or requests are
 * short; again after a poll. -ENOSPC: the log is full. -E2BIG: more than record_max. A tombstone
 * may use a part of the reserve. */
int alog_append(struct alog *l, const struct alog_put *put, uint32_t nr, struct alog_place *at)
	XSEG_MUST_CHECK;
/* Where the next append of nr records of `bytes` in all would stand, without appending: its
 * sequence and place are noted before. The next append has just this place. Errors as above. */
int alog_next(struct alog *l, uint32_t bytes, uint32_t nr, bool tombstone, struct alog_place *at)
	XSEG_MUST_CHECK;
/* The record of this place and length is superseded, or its key is deleted. */
void alog_dead(struct alog *l, uint64_t zone, uint32_t bytes);

/* ---- promises ---- */

uint64_t alog_end(const struct alog *l);	/* of all that was appended */
uint64_t alog_written(const struct alog *l);	/* all before is answered by the peer below */
uint64_t alog_stable(const struct alog *l);	/* all before survives a loss of power */
/* Pages up to this position are wanted below, also those that are not full. */
void alog_push(struct alog *l, uint64_t pos);
/* A flush is wanted for this position. alog_stable() shows when it is done. */
void alog_force(struct alog *l, uint64_t pos);
/* All is written, and nothing is out. */
bool alog_idle(const struct alog *l);

/* ---- reading ---- */

/* Copies a range of a zone from the tail. False: the range is not in the tail any more, so it is
 * below. */
bool alog_read_tail(struct alog *l, uint64_t zone, uint32_t from, uint32_t bytes, void *to);

/* For the seed of a header's CRC (alog_seed()). Epoch 0: there is no such zone, or it is not known.
 * The UUID is valid when it serves. */
uint64_t alog_zone_epoch(struct alog *l, uint64_t zone);
const uint8_t *alog_uuid(const struct alog *l);

/* Tells each record of the log, good or bad, zone after zone. With `hold` no zone is deleted before
 * the walk is over. `data` is key and value; NULL: they do not verify, or are not there. */
struct alog_walk {
	void (*record)(void *ctx, uint64_t zone, const struct alog_hint *hint,
		const struct alog_record *rec, const void *data);
	void (*over)(void *ctx);
	void *ctx;
	bool hold;
};
/* -EBUSY: a walk is under way. */
int alog_walk(struct alog *l, const struct alog_walk *walk) XSEG_MUST_CHECK;

/* ---- figures, and words of the user ---- */

struct alog_stats {
	uint64_t epoch, records, appended_bytes, copied_bytes, written_bytes;
	uint64_t zones_deleted, repairs, bad_records, holes, flushes;
	uint32_t zones, zones_free, opened_by_hints, opened_by_scan;
};
void alog_stats(const struct alog *l, struct alog_stats *stats);

/* ALOG_USER_BYTES that stand in the head: written with its next write. They are zeroes in a log
 * that is new. Valid when it serves. */
void *alog_words(struct alog *l);
/* The head is to be written now; alog_words_stable() says whether that is done. */
void alog_words_write(struct alog *l);
bool alog_words_stable(const struct alog *l);

#endif
