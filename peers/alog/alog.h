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
 * Rules: L1 (flush.c), L2, L8 and L9 (repair.c), L3 (zone.c), L4 (open.c), L5, L6 and L7 (grave.c).
 * The design, and how it was attacked: docs/design/alog.md.
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
	uint8_t op;		/* enum xseg_op: READ, WRITE, FLUSH, DELETE; INFO of an object */
	bool fua;
	bool once;				/* a cache below need not keep this */
	bool lent;	/* WRITE: some of its pages are those that alog_append_paged() lists */
	uint16_t nr_pages;
	uint32_t offset, size;
	char target[XSEG_TARGET_MAX];
	uint32_t page[ALOG_IO_PAGES];		/* indices in the segment */
	void *user;				/* free for the user while it is out */
};

enum alog_verdict {
	ALOG_DEAD,				/* nothing needs this record */
	ALOG_LIVE,				/* the index has it at this place */
	ALOG_EXPIRED,				/* the same; kept as a tombstone without value */
	/* it goes though nothing supersedes it; no other record of its identity is left, and
	 * alog_dead() was called for it */
	ALOG_EVICTED
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
	/* judge() or gone() will be called for this identity soon. NULL: it need not be said. */
	void (*soon)(void *ctx, const uint64_t identity[2]);
	/* A copy of the record `from` stands at `to`; the original stays for a while. An index that
	 * points to the original points to the copy from now on, and alog_dead() is not called for
	 * the original. `to->type` is a tombstone if it expired. */
	void (*copied)(void *ctx, uint64_t from_zone, const struct alog_hint *from,
		uint64_t to_zone, const struct alog_hint *to);
	/* L7: the zone is going to be deleted, with this record. It is not said of zones that a
	 * repair leaves: a tombstone of such an identity stays until the next opening. */
	void (*gone)(void *ctx, uint64_t zone, const struct alog_hint *hint);
	/* A record that the index has in this zone is damaged: which one, with its place, length
	 * and type. A record of the type ALOG_LOST takes its place, or a tombstone that of a
	 * tombstone; copied() tells it. So no older record of the identity counts again. An
	 * ALOG_CLEAR, whose sequence and expiry the user says, is written anew as it was. False:
	 * there is none that the index does not drop. */
	bool (*lost)(void *ctx, uint64_t zone, struct alog_hint *hint);
	void (*damage)(void *ctx, enum alog_damage what, uint64_t zone, uint32_t place,
		uint32_t bytes);
	/* The page of the segment with this index, which alog_append_paged() lists. NULL if the
	 * user lends none. */
	const void *(*at)(void *ctx, uint32_t page);
};

struct alog_config {
	char prefix[XSEG_NAME_MAX];		/* objects are named +PREFIX:... */
	uint32_t zones;				/* at most so many at a time */
	uint32_t zone_bytes;			/* whole pages, up to ALOG_ZONE_MAX */
	uint32_t tail_pages;			/* of the ring in the arena */
	uint32_t reserve;	/* zones that callers cannot fill: for tombstones and copies */
	uint8_t uuid[16];			/* of a log that is new */
	uint64_t owner;				/* of the segment: tells its arenas from others */
	/* Space is made by emptying the zone that was closed first, whatever it has. judge() says
	 * which of its records go. */
	bool evicts;
	uint32_t own;				/* runs of own zones at a time, at most; 0: none */
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
/* The arena is that of the last opening, so nothing of it was lost to a loss of power. */
bool alog_is_warm(const struct alog *l);
/* Why the log does not serve: 0, or -EBADMSG: both heads are damaged; -ESTALE: another segment has
 * opened the log since this arena was written; -EINVAL: the log has another geometry;
 * -EPROTONOSUPPORT: its form is that of another version; -EPROTO: words of the arena cannot be;
 * -EIO: it has served, and the store has lost what it had answered.
 * Then the log is to be destroyed when no request is out, and created again: older versions of what
 * was lost may show. */
int alog_failed(const struct alog *l);

/* ---- salvage ---- */

/* Before the first poll: the log is opened for walks alone, though its heads may be damaged.
 * Nothing is written or deleted, and found() is not called. `zone` has the ids of all objects of
 * the store that alog_zone_of() takes for zones, and stays until alog_salvages(). If a head
 * verifies, it says which zones there are. A walk tells what verifies; older versions of a record
 * may be told, and the highest sequence counts. */
void alog_salvage(struct alog *l, const uint64_t *zone, uint32_t nr);
bool alog_salvages(const struct alog *l);
/* The id of the zone that an object's name says; 0: it is another object. */
uint64_t alog_zone_of(const struct alog_config *cfg, const char *target);

/* ---- appending ---- */

struct alog_put {
	struct xrecord rec;	/* sequence and flags are the log's; version 0: the sequence */
	const void *key, *value;
	bool laid;				/* the value stands where alog_lay() has said */
};

/* Where a record stands. */
struct alog_place {
	uint64_t zone, sequence;
	uint64_t end;				/* of the whole append, in the stream */
	uint32_t place, bytes;
};

/* Appends nr records, all or none, and says where each stands. -EAGAIN: tail, ids or requests are
 * short; again after a poll. -ENOSPC: the log is full. -E2BIG: more than record_max. A record that
 * is no value may use a part of the reserve. */
int alog_append(struct alog *l, const struct alog_put *put, uint32_t nr, struct alog_place *at)
	XSEG_MUST_CHECK;
/* Where the next append of nr records of `bytes` in all would stand, without appending: its
 * sequence and place are noted before. The next append has just this place. Errors as above. */
int alog_next(struct alog *l, uint32_t bytes, uint32_t nr, bool tombstone, struct alog_place *at)
	XSEG_MUST_CHECK;
/* Where byte number `at` of the next append will stand, and how many behind it side by side. So a
 * value can be copied there, and looked at, before it is appended. What was laid and is not
 * appended then means nothing. NULL: the value has to be copied by the append. */
void *alog_lay(struct alog *l, const struct alog_place *next, uint32_t at, uint32_t *bytes);
/* A log that evicts: the zone that was closed first is emptied now, though there is space. If none
 * is closed, the open one is. True: a zone is emptied, now or soon. */
bool alog_evict(struct alog *l);
/* A pass: all zones of now, also the open one, are compacted though there is space, the oldest
 * first. When judge() is asked for a tombstone, all zones older than its own have been emptied. If
 * an older record of its identity stands in its own zone, the tombstone is copied, and goes with
 * the next pass. A log that is killed forgets its pass.
 *
 * False: it cannot begin now. The log evicts, is being repaired, or has no space for copies; or a
 * walk holds zones. */
bool alog_pass_begin(struct alog *l) XSEG_MUST_CHECK;
/* Whether a pass goes on. This call pays for a zone's copies, as appends do otherwise. A pass ends
 * early if space is short and no compaction gains any, or if a walk holds zones. */
bool alog_pass_goes_on(struct alog *l);
/* A record of which the value begins at a page (ALOG_PAGED): for values of ALOG_PAGED_LEAST bytes
 * and more. `page` has an index for each page of the value. The log does not copy these pages: its
 * writes list them, and it reads them by at(). They have to stay as they are until alog_written()
 * has reached at->end; then the append is to be answered. NULL: put->value is copied.
 *
 * A kill before that undoes it: the successor puts a filler in its place, and does not tell it by
 * found(). It is found only if a copy of it was made. So a reader that must not see it come and go
 * waits for alog_written(). */
int alog_append_paged(struct alog *l, const struct alog_put *put, const uint32_t *page,
	struct alog_place *at) XSEG_MUST_CHECK;
int alog_next_paged(struct alog *l, uint32_t key_bytes, uint32_t value_bytes,
	struct alog_place *at) XSEG_MUST_CHECK;

/* The record of this place and length is superseded, or its key is deleted. */
void alog_dead(struct alog *l, uint64_t zone, uint32_t bytes);

/* Zones of which gone() was told are numbered in the order of their deletion: the number that the
 * next one gets, also while gone() is told of it; and up to which number their deletion is stable,
 * so no opening finds their records. */
uint64_t alog_gone_next(const struct alog *l);
uint64_t alog_gone_stable(const struct alog *l);
/* The deletion of all that are numbered is to be stable soon, though there is space. */
void alog_gone_hasten(struct alog *l);

/* ---- promises ---- */

uint64_t alog_end(const struct alog *l);	/* of all that was appended */
uint64_t alog_written(const struct alog *l);	/* all before is answered by the peer below */
uint64_t alog_stable(const struct alog *l);	/* all before survives a loss of power */
/* Pages up to this position are wanted below, also those that are not full. */
void alog_push(struct alog *l, uint64_t pos);
/* A flush is wanted for this position. alog_stable() shows when it is done. */
void alog_force(struct alog *l, uint64_t pos);
/* The last zone gets its hints, as if it were full; for a user that stops, when all is stable. The
 * next opening then need not scan it, and calls a bad record in it damage. False: not all of it has
 * been appended. */
bool alog_seal(struct alog *l) XSEG_MUST_CHECK;
/* All is written, and nothing is out. */
bool alog_idle(const struct alog *l);

/* Asks for a FLUSH that begins after this call; the user has written to own zones. 1: it has
 * succeeded. 0: not yet. -EIO: it has failed, and what was written is to be written anew, to other
 * zones. The outcome is known until 1,024 later ones were asked for. */
uint64_t alog_barrier(struct alog *l);
int alog_barrier_state(const struct alog *l, uint64_t barrier);

/* ---- own zones ----
 *
 * Objects of up to zone_bytes that the user writes and reads itself: the pieces of large values.
 * They count against the size of the log. They are not copied, not scanned, not told by a walk.
 *
 * A value: alog_own(); write its pieces; alog_barrier() when all are answered; when that has
 * succeeded, append the record that names the run. So no record shows that has lost a piece. */

/* So many ids, one behind the other, of which nr are counted against the size of the log. -EAGAIN:
 * after a poll; -ENOSPC: no space, or no run is free; -E2BIG: it never can be. */
int alog_own(struct alog *l, uint32_t ids, uint32_t nr, uint64_t *first) XSEG_MUST_CHECK;
/* So many of a run's ids are counted. The user writes to no more than the first nr. Errors as
 * above; fewer can always be had. */
int alog_own_count(struct alog *l, uint64_t first, uint32_t nr) XSEG_MUST_CHECK;
/* The run is of these ids alone; the user has written to none behind them. */
int alog_own_cut(struct alog *l, uint64_t first, uint32_t nr) XSEG_MUST_CHECK;
/* XSEG_TARGET_MAX bytes. */
void alog_own_target(const struct alog *l, uint64_t id, char *to);
/* No record that counts names the run any more, and nobody reads it, or needs it for a record that
 * could not be appended. It is deleted when what superseded the record is as safe as the record
 * was. -ENOENT: it is no run of alog_own() or alog_own_keep(). */
int alog_own_free(struct alog *l, uint64_t first, uint32_t nr) XSEG_MUST_CHECK;
/* After an opening the user looks at each record that counts, and keeps what it names. Then all
 * else that was found is deleted. -ENOENT: it was not found, so the value is damaged. -ENOSPC: more
 * than `own`. */
int alog_own_keep(struct alog *l, uint64_t first, uint32_t nr) XSEG_MUST_CHECK;
void alog_own_swept(struct alog *l);

/* ---- reading ---- */

/* Copies a range of a zone from the tail. False: the range is not in the tail any more, so it is
 * below. */
bool alog_read_tail(struct alog *l, uint64_t zone, uint32_t from, uint32_t bytes, void *to);

/* For the seed of a header's CRC (xrecord_seed()). Epoch 0: there is no such zone, or it is not
 * known. The UUID is valid when it serves. */
uint64_t alog_zone_epoch(struct alog *l, uint64_t zone);
const uint8_t *alog_uuid(const struct alog *l);

/* Tells each record of the log, good or bad, zone after zone: for verify, and for a backup while
 * the log is used. Reads are marked `once`.
 *
 * With `hold` no zone is deleted before it was told, and all records with a sequence below `before`
 * of alog_walk_state() are a consistent state: of each identity the highest one counts. A hold
 * breaks if a repair begins, or if callers need space while the user lets the walk wait.
 *
 * `data` is key and value; NULL: they do not verify, or are not there. It is valid in the call. */
struct alog_walk {
	void (*record)(void *ctx, uint64_t zone, const struct alog_hint *hint,
		const struct xrecord *rec, const void *data);
	void (*over)(void *ctx);		/* also if the hold breaks: see `error` */
	void *ctx;
	bool hold;
	/* May be NULL. Whether a record of so many bytes may be told; false: the walk waits for
	 * alog_walk_go(), and others use the scratch meanwhile. */
	bool (*ready)(void *ctx, uint32_t bytes);
	/* May be NULL. Beside records: a zone's header, its hints, pages that cannot be read. */
	void (*bad)(void *ctx, enum alog_damage what, uint64_t zone, uint32_t place,
		uint32_t bytes);
};
/* -EBUSY: a walk is under way, or a repair, which a hold cannot begin in; or the log does not
 * serve. */
int alog_walk(struct alog *l, const struct alog_walk *walk) XSEG_MUST_CHECK;
void alog_walk_go(struct alog *l);
/* Ends it without a further upcall of it. */
void alog_walk_stop(struct alog *l);

struct alog_walk_state {
	uint64_t before;			/* the sequence at its begin */
	uint32_t zones, told;
	int error;	/* of the last: 0; -EIO: a repair broke the hold; -ENOSPC: callers did */
	bool active, waits;
};
void alog_walk_state(const struct alog *l, struct alog_walk_state *state);

/* ---- figures, and words of the user ---- */

struct alog_stats {
	uint64_t epoch, records, appended_bytes, copied_bytes, written_bytes;
	uint64_t zones_deleted, repairs, bad_records, holes, flushes;
	uint32_t zones, zones_free, opened_by_hints, opened_by_scan, own_zones;
	uint64_t opening_done, opening_of;	/* zones of the opening; each is looked at twice */
	bool warm;		/* the arena is that of the last opening before this one */
};
void alog_stats(const struct alog *l, struct alog_stats *stats);

/* ALOG_USER_BYTES that stand in the head: written with its next write. They are zeroes in a log
 * that is new. Valid when it serves. */
void *alog_words(struct alog *l);
/* The head is to be written now; alog_words_stable() says whether that is done. */
void alog_words_write(struct alog *l);
bool alog_words_stable(const struct alog *l);

#endif
