/* inside - the log's own structures, which its files share. No user includes this.
 *
 * Contract: by the thread that has the log.
 *
 * Words of the arena (struct alog_arena) are the only ones that a successor believes. Each is
 * changed by one store, in an order that the file concerned gives.
 *
 * Positions count bytes of the stream: page k of the stream is slot k % tail_pages.
 */
#ifndef PEERS_ALOG_INSIDE_H
#define PEERS_ALOG_INSIDE_H

#include <stdatomic.h>

#include "peers/alog/alog.h"

#define ALOG_IOS	  32u		/* requests at a time, at most */
#define ALOG_GROUPS	  4u			/* FLUSHes at a time */
#define ALOG_READ_IOS	  4u
#define ALOG_STEP	  64u		/* ids that a head reserves ahead, at most */
#define ALOG_SPAN_EXTRA	  1024u		/* ids of openings that reserve and then die */
#define ALOG_RETRY_NS	  100000000ull
#define ALOG_RETRY_MAX_NS 5000000000ull
#define ALOG_DELETED_MAX  1024u
#define ALOG_BARRIERS	  1024u		/* of which the outcome is known */

/* ---- the arena ---- */

struct alog_slot {
	uint64_t zone;				/* 0: none; its content does not count */
	uint32_t page;				/* of the zone */
	uint32_t back;	/* stream bytes back to the begin of the append that its first byte is of */
	uint32_t lent;				/* index + 1 of the page with the content */
	uint32_t unused;
};

struct alog_arena {
	uint64_t magic;				/* written last */
	uint32_t tail_pages, zone_bytes;
	uint8_t uuid[16];
	uint64_t owner;
	_Atomic uint64_t epoch, next_epoch;	/* of the head, and of one that may be on its way */
	_Atomic uint64_t born;			/* the epoch of the first opening with this arena */
	_Atomic uint64_t first;			/* page of the stream */
	_Atomic uint64_t end;			/* position: all below is appended */
	_Atomic uint64_t stable;		/* position: all below is on stable storage */
	_Atomic uint64_t doubt_low, doubt_high;	/* ids; low 0: none is in doubt */
	_Atomic uint64_t filled_low, filled_high;	/* ids: zones that got fillers (T5) */
	struct alog_slot slot[];
};

/* ---- private ---- */

/* What is known of a slot's page. Bytes from its start. */
struct page_state {
	uint16_t fill, sent, acked;
	bool out, failed;
	bool fresh;				/* not only copies are in it */
};

enum io_kind {
	IO_PAGES, IO_FLUSH, IO_HEAD, IO_DELETE, IO_READ, IO_OWN, IO_NR_KINDS
};

struct io {
	struct alog_io pub;
	struct io *next;			/* free */
	uint64_t from;	/* PAGES: page of the stream; READ: offset; OWN: run */
	uint8_t kind, which;			/* FLUSH: group; HEAD: copy */
	bool wanted;				/* to be sent at the next poll */
};

enum zone_state {
	ZONE_FREE, ZONE_OPEN, ZONE_SEALING, ZONE_CLOSED, ZONE_EMPTY, ZONE_DELETING
};

struct zone {
	uint64_t id, epoch;
	uint64_t base;				/* page of the stream of its first page */
	uint64_t from, to;			/* positions; 0: of an earlier process */
	uint64_t sequence;			/* when it was closed: its age */
	uint64_t after;				/* EMPTY: position that has to be stable (L5) */
	uint32_t end;				/* where its records end */
	uint32_t live, total;			/* bytes of records */
	uint32_t nr_hints;
	uint8_t state;
	bool old;				/* of an earlier opening (L3) */
	bool sealed, believed;			/* has a footer; its hints count (L4) */
	bool sick;				/* its header is lost: it is to be emptied soon */
	bool drops;				/* EMPTY: its compaction dropped a tombstone (L7) */
	bool untold;				/* a walk has to tell it */
	bool doomed;				/* in doubt: it is left, and never called flushed */
	uint64_t mark;				/* doomed, EMPTY: of the head that says so */
};

enum own_state { OWN_NONE, OWN_FOUND, OWN_LIVE, OWN_FREED, OWN_DELETING, OWN_DELETED };

struct own_run {
	uint64_t first;
	uint32_t nr, gone;			/* gone: deleted of them */
	uint64_t from;				/* position when it was taken */
	uint64_t after;				/* FREED: V2; DELETED: its number */
	uint32_t counted;			/* zones, against the size of the log */
	uint8_t state;
	bool old;				/* of an earlier opening */
};

struct own_named {				/* in the head */
	uint64_t first;
	uint32_t nr, unused;
};

struct own {
	struct own_run *run;
	uint64_t next, in, on_its_way;		/* ids: all below `in` are reserved */
	uint64_t deleted, stable;		/* runs */
	uint64_t retry_ns;
	uint32_t used;				/* zones that are counted */
	uint32_t top;				/* slots from here on are NONE */
	uint32_t hint;				/* slots before are not NONE */
	uint32_t taken;				/* runs that are neither NONE nor FOUND */
	uint32_t ask;				/* ids that the next head reserves at least */
	uint32_t wanted;			/* zones that alog_own() did not find */
	uint64_t seen;				/* of stable and written, when none might go */
	bool leaving;				/* some are FREED or DELETING */
};

struct group {
	uint64_t target;
	uint64_t written;			/* when it was sent: all before is covered */
	uint64_t deleted, own_deleted;		/* DELETEs answered when it was sent */
	uint64_t barrier;			/* barriers wanted when it was sent */
	bool used, sent;
};

enum repair_state { REPAIR_NONE, REPAIR_WAIT, REPAIR_TAIL, REPAIR_COPY, REPAIR_SETTLE };

struct repair {
	enum repair_state state;
	bool fua;				/* L8: until a FLUSH succeeds */
	uint64_t flush_ns;			/* fua: when a FLUSH is tried again */
	uint64_t hold;				/* promises stop here ... */
	uint64_t until;	/* ... until this is written, and the zones are `named` */
	bool named;				/* L9: the head says that they are dying */
	uint64_t covered;			/* stable then; 0: copies may be lost */
	uint64_t mark;				/* of that head */
	uint64_t at;				/* the zone that is next */
	uint64_t retry_ns, pause_ns;
	uint32_t again;				/* R1: writes that were sent again, in a row */
};

/* What the scratch is used for: one at a time. */
enum job { JOB_NONE, JOB_OPEN, JOB_COPY, JOB_WALK };

enum copy_state { COPY_NONE, COPY_READ, COPY_RUN };
enum copy_why {
	COPY_COMPACT,
	COPY_TAIL,				/* a repair: what the tail alone may have */
	COPY_REST				/* a repair: what is left */
};

struct scan {
	const uint8_t *image;
	uint32_t at, end;
	uint32_t seed;
	uint32_t chain;				/* records left of a chain that is whole */
	bool chains;				/* whole chains only */
};

/* A compaction by the hints (pick.c). */
struct picked {
	bool on;				/* else the zone is scanned */
	bool in_chain;				/* the record before goes on in the next one */
	uint32_t nr, next, end;			/* hints; end: of the records */
	uint64_t pages[ALOG_ZONE_MAX / ALOG_PAGE / 64];	/* bits: they are read */
};

struct copier {
	enum copy_state state;
	struct zone *zone;			/* NULL while it reads: given up */
	struct scan scan;
	struct picked picked;
	uint32_t split;				/* TAIL: records that end before it are left */
	enum copy_why why;
	struct alog_put *put;			/* ALOG_BATCH_MAX of each: a chain */
	struct alog_place *at;
	struct alog_hint *from;
	enum alog_verdict *verdict;
};

struct reader {
	void (*then)(struct alog *l);
	uint64_t zone;
	uint32_t from, to, next;
	uint64_t pin;				/* T4: page of the stream */
	uint32_t out;				/* requests */
	uint32_t piece;				/* 1 MiB, or a page where that failed */
	bool active, head;
	bool asks;				/* whether the object is there, and no more */
	const uint64_t *pages;			/* bits of those that are read; NULL: all */
	bool absent;				/* the store has no such object */
	uint32_t bad;				/* pages that could not be read */
	uint32_t tries;
	uint64_t again_ns;			/* all of it is read again then; 0: read now */
};

enum open_state {
	OPEN_HEADS, OPEN_FIRST, OPEN_RECORDS, OPEN_DELETE, OPEN_HEAD, OPEN_SERVES, OPEN_FAILED,
	OPEN_IDENTIFY, OPEN_SALVAGES		/* alog_salvage() */
};

struct opening {
	enum open_state state;
	int error;
	bool warm, suspect;			/* suspect: one copy of the head is bad */
	bool scanned;				/* the image of the zone is whole */
	uint64_t at;				/* the id that is looked at */
	uint64_t durable;			/* zones up to this id were flushed as a whole */
	uint64_t epoch;				/* of the zone before */
	uint64_t owner;
	uint64_t mark;				/* of the head that it ends with */
	const uint64_t *listed;			/* alog_salvage() */
	uint32_t nr_listed;
	bool salvage;
	struct alog_footer footer;
};

/* Reservations, and what a head says beside. */
struct reserved {
	uint64_t id, sequence;			/* all below may be used */
	uint64_t mark;				/* of head_want() */
	uint64_t deleted;			/* DELETEs that were answered before */
};

struct head {
	uint64_t version, epoch, lowest, next_id;
	struct reserved in, on_its_way;		/* in the stable head; in one that is out */
	uint64_t mark;				/* the newest that head_want() gave */
	uint64_t retry_ns, pause_ns;
	bool out, wanted;
};

struct stream {
	uint8_t *tail;				/* the pages of the slots */
	struct page_state *page;		/* of slots */
	uint64_t next_page;			/* that has no slot yet */
	uint64_t end, written, stable;
	uint64_t send_from;			/* page: all before it has been sent */
	uint64_t again_ns;			/* a failed write is sent again then */
	uint64_t push, force;			/* wanted: written, stable */
	uint64_t flush_sent;			/* `end` when the last FLUSH was sent */
	uint64_t recovered;			/* `end` of a predecessor's tail */
	uint64_t lent_from;			/* page: none before it is lent */
	uint64_t sequence;			/* the next record's */
	bool flushed;				/* all that the opening found is stable */
	uint64_t barrier, barrier_over;		/* given out, and of which the end is known */
	uint64_t barrier_bad[ALOG_BARRIERS / 64];	/* by ticket % ALOG_BARRIERS: it failed */
};

struct zones {
	struct zone *table, *open;
	uint32_t nr, used;
	uint32_t span, step;
	uint32_t *of_id;			/* id % span: zone + 1 */
	uint64_t *live, *dying, *poor;		/* bits by id % span */
	struct alog_hint *hints;		/* of the open zone */
	uint32_t seed;				/* of the open zone */
	uint32_t sealing;			/* bytes of hints and footer that are appended */
	uint64_t live_bytes;			/* of all zones */
	bool some_dead;				/* a closed zone may have no live record */
};

struct graves {
	uint32_t *list, from, nr;		/* zones in the order of their deletion */
	uint64_t deleted, stable;		/* DELETEs: answered, and stable */
	uint64_t *id;				/* of the last ALOG_DELETED_MAX */
	uint64_t cleared;			/* of them no bit is left */
	uint64_t retry_ns;
	bool want_flush;			/* deletions have to become stable */
	uint64_t hasten;			/* and all up to this one, soon */
};

struct walker {
	struct alog_walk walk;
	struct alog_walk_state state;
	uint64_t at, until;			/* ids */
	uint64_t image;				/* l->images: the scratch has the zone `at` */
	uint64_t waits_ns;			/* since when */
	uint32_t told;				/* records of the zone */
	bool begun, hinted, chains;		/* how the zone is told, from its first record on */
};

struct alog {
	struct alog_config cfg;
	struct alog_user user;
	struct alog_arena *arena;
	uint8_t *scratch, *head_page;
	uint32_t record_max;
	uint64_t now;

	struct stream s;
	struct zones z;
	struct graves g;
	struct own own;
	struct group group[ALOG_GROUPS];
	struct repair repair;
	enum job job;
	struct copier copier;
	struct reader reader;
	uint64_t gave_up_ns;			/* the last reading of which pages were missing */
	struct opening opening;
	struct head head;
	struct walker w;
	uint64_t credit;			/* bytes that compaction may copy */
	bool evict;				/* alog_evict() was called */
	uint64_t pass;	/* alog_pass_begin(): zones up to this id are compacted; 0: none are */
	uint64_t images;			/* readings into the scratch */

	struct io *io, *io_free;
	uint32_t io_out[IO_NR_KINDS];
	uint32_t io_wanted;			/* of them io.wanted */
	struct alog_stats stats;
	uint8_t words[ALOG_USER_BYTES];
};

/* ---- io.c ---- */
struct io *io_get(struct alog *l, enum io_kind kind);	/* NULL: none is free */
void io_target(struct alog *l, struct io *io, uint64_t zone);
void io_send(struct alog *l, struct io *io);
void io_put(struct alog *l, struct io *io);
void io_retry(struct alog *l);			/* sends what could not be sent */
void io_page(struct io *io, uint32_t page);
void io_pages(struct alog *l, struct io *io, uint8_t *at, uint32_t bytes);

/* ---- zone.c ---- */
struct zone *zone_find(struct alog *l, uint64_t id);
struct zone *zone_add(struct alog *l, uint64_t id);	/* NULL: the table is full */
void zone_remove(struct alog *l, struct zone *z);
void zone_begin(struct alog *l);		/* a new zone becomes the open one */
void zone_close(struct alog *l);		/* without hints */
bool zone_seal(struct alog *l);			/* with hints; false: more of the tail is needed */
/* of the open zone, for nr records more */
uint32_t zone_room(const struct alog *l, uint32_t nr);
uint64_t zone_durable(const struct alog *l);	/* all zones up to this id were flushed */
bool zone_promised(const struct alog *l, const struct zone *z);
bool zone_is_durable(const struct alog *l, const struct zone *z);
uint32_t zones_free(const struct alog *l);

/* ---- tail.c ---- */
/* REST: of a repair, when no failed page is left in the ring */
enum tail_use { TAIL_CALLER, TAIL_COPY, TAIL_REST, TAIL_REPAIR };
bool tail_room(struct alog *l, uint32_t pages, enum tail_use use);
uint8_t *tail_page(const struct alog *l, uint64_t k);	/* of the ring */
const uint8_t *tail_content(const struct alog *l, uint64_t k);	/* of the ring, or lent */
struct alog_slot *tail_slot(const struct alog *l, uint64_t k);
struct page_state *tail_state(const struct alog *l, uint64_t k);
void tail_open_page(struct alog *l, uint64_t zone, uint32_t page, uint64_t begun);
void tail_put(struct alog *l, uint64_t *pos, uint32_t zone_at, const void *from, uint32_t bytes,
	uint64_t begun);
void tail_skip(struct alog *l, uint64_t *pos, uint32_t zone_at, uint32_t bytes, uint64_t begun);
void tail_zero_rest(const struct alog *l, uint64_t k);	/* T6 */
void tail_lend(struct alog *l, uint64_t *pos, uint32_t zone_at, uint32_t page, uint64_t begun);
void tail_keep(struct alog *l);			/* T7: no page is lent any more */
void tail_publish(struct alog *l, uint64_t end);
void tail_release(struct alog *l);		/* T5: lent pages that are not needed any more */
void tail_overlay(const struct alog *l, uint64_t zone, uint8_t *image);
uint64_t tail_pin(const struct alog *l, uint64_t zone);
uint64_t tail_first(const struct alog *l);	/* page of the stream */
/* The zone's pages are wanted no more. The caller looks what is written then (write_advance()). */
void tail_drop(struct alog *l, uint64_t zone);
void tail_drop_before(struct alog *l, uint64_t zone, uint32_t place);
uint64_t tail_front(const struct alog *l);
uint32_t tail_kept_from(const struct alog *l, const struct zone *z);
uint64_t tail_lowest_zone(const struct alog *l);
int tail_recover(struct alog *l);

/* ---- append.c ---- */
int append_ready(struct alog *l, uint32_t bytes, uint32_t nr, enum tail_use use, bool tombstone);
/* `lent`: the pages of the value, if there is one record and it is PAGED; else NULL. */
void append_records(struct alog *l, const struct alog_put *put, uint32_t nr, const uint32_t *lent,
	struct alog_place *at);

/* ---- write.c ---- */
bool write_pump(struct alog *l);
/* zone 0: none has failed; else promises stop at `hold`. */
struct failed_run {
	uint64_t zone, hold;
	uint64_t from;				/* page of the stream */
	uint32_t nr;
};
struct failed_run write_done(struct alog *l, struct io *io, int64_t result);
void write_again(struct alog *l, const struct failed_run *run);	/* after a pause */
void write_advance(struct alog *l);

/* ---- flush.c ---- */
bool flush_pump(struct alog *l);
enum flush_end { FLUSH_GOOD, FLUSH_BAD, FLUSH_PROBED, FLUSH_PROBED_BAD };
enum flush_end flush_is_back(struct alog *l, struct io *io, int64_t result);
void flush_stable(struct alog *l, uint64_t pos);	/* all before is on stable storage */

/* ---- marks.c ---- */
bool bit_get(const uint64_t *bits, const struct alog *l, uint64_t id);
void bit_set(uint64_t *bits, const struct alog *l, uint64_t id, bool on);
void bits_clear(struct alog *l, uint64_t id);	/* the zone is no more */
void grave_stable(struct alog *l, uint64_t deleted, bool flushed);
void grave_count(struct alog *l, uint64_t id);	/* a DELETE of it is answered */
bool grave_hastens(const struct alog *l);	/* some are to be stable soon */
uint32_t own_slots(const struct alog_config *cfg);
bool own_leaves(const struct alog *l);		/* some are to be deleted */
void own_stable(struct alog *l, uint64_t deleted);
bool filled_has(const struct alog *l, uint64_t id);
void filled_note(struct alog *l, uint64_t id);
uint64_t doubt_low(const struct alog *l);	/* 0: no zone is in doubt */
uint64_t doubt_high(const struct alog *l);
bool doubt_has(const struct alog *l, uint64_t id);
void doubt_note(struct alog *l, uint64_t low, uint64_t high);
bool doubt_take_over(struct alog *l);
void doubt_forget(struct alog *l);		/* if no zone in doubt is left */

/* ---- zone.c: how much space there is ---- */
uint32_t space_margin(const struct alog *l);
uint32_t space_soon(const struct alog *l);	/* zones that are free, or emptied */
uint32_t space_dead(const struct alog *l, const struct zone *z);
bool space_gains(const struct alog *l, const struct zone *z);
void space_credit(struct alog *l, uint32_t bytes);
bool space_is_hopeless(const struct alog *l);	/* compaction cannot make a free zone */

/* ---- repair.c ---- */
void repair_begin(struct alog *l, uint64_t low, uint64_t high, uint64_t hold, bool fua);
bool repair_pump(struct alog *l);
bool repair_waits(struct alog *l);		/* R1: a failed write is to be sent again */
void repair_probed(struct alog *l, bool ok);	/* fua: the FLUSH that was tried is answered */

/* ---- head.c ---- */
uint32_t head_bytes(const struct alog_config *cfg);
bool head_pump(struct alog *l);
void head_reserve_ahead(struct alog *l);
void head_done(struct alog *l, struct io *io, int64_t result);
/* The newer good copy of the two that were read. -ENOENT: there is none, and none was. -EBADMSG,
 * -EINVAL: as alog_failed(). */
int head_read(struct alog *l);
uint64_t head_want(struct alog *l);		/* a mark; in.mark >= it: the head has it */
void head_target(struct alog *l, struct io *io, uint32_t copy);

/* ---- scan.c ---- */
enum scan_found { SCAN_END, SCAN_RECORD, SCAN_BAD };
void scan_init(struct scan *s, const uint8_t *image, uint32_t end, uint32_t seed, bool chains);
/* RECORD: it is whole. BAD: *at and *bytes are what does not verify, rec may be its header. */
enum scan_found scan_next(struct scan *s, struct xrecord *rec, uint32_t *at, uint32_t *bytes);
/* The last epoch of these under which a record of the zone verifies; 0: none. */
uint64_t scan_epoch(const struct alog_config *cfg, uint64_t zone, const uint8_t *image,
	uint64_t newest, uint64_t oldest);
bool scan_is_whole(const struct scan *s, uint32_t at, struct xrecord *rec, uint32_t *bytes);
/* The footer and the hints of an image verify. */
bool scan_hints_ok(const struct alog_config *cfg, uint64_t zone, const uint8_t *image,
	struct alog_footer *f);
void scan_hint(const struct xrecord *rec, uint32_t at, uint32_t bytes, struct alog_hint *h);
/* Key and value of a record of an image. */
static inline const uint8_t *scan_data(
	const uint8_t *image, uint32_t at, const struct xrecord *rec)
{
	return image + at + xrecord_data_at(at, rec->key_bytes, rec->flags);
}

/* ---- read.c ---- */
void read_zone(struct alog *l, uint64_t zone, uint32_t from, uint32_t to,
	void (*then)(struct alog *l));
/* Whether the store has the object of the zone: reader.absent. If it does not say, it has. */
void read_exists(struct alog *l, uint64_t zone, void (*then)(struct alog *l));
void read_heads(struct alog *l, void (*then)(struct alog *l));
bool read_pump(struct alog *l);
/* False: requests of it are out. */
bool read_stop(struct alog *l);
void read_done(struct alog *l, struct io *io, int64_t result);

/* ---- open.c ---- */
bool open_pump(struct alog *l);
void open_deleted(struct alog *l, struct io *io, int64_t result);

/* ---- copy.c ---- */
bool copy_begin(struct alog *l, struct zone *z, enum copy_why why);
bool copy_pump(struct alog *l);
void copy_stop(struct alog *l);

/* ---- pick.c ---- */
bool pick_can(const struct zone *z);
/* The scratch has the end of the zone. False: its hints do not verify. */
bool pick_begin(struct alog *l, const struct zone *z);
bool pick_is_empty(const struct alog *l);	/* no page is to be read */
/* The next record. END: there is none; BAD: it is to be copied, and is not whole. If *verdict is
 * DEAD, *rec may be empty. */
enum scan_found pick_next(struct alog *l, struct alog_hint *hint, struct xrecord *rec,
	enum alog_verdict *verdict);
/* Number i of the nr hints in the scratch; the user hears of one some places behind it. */
struct alog_hint pick_hint(const struct alog *l, uint32_t nr, uint32_t i);

/* ---- choose.c ---- */
bool choose_pump(struct alog *l);

/* ---- grave.c ---- */
void grave_add(struct alog *l, struct zone *z);
uint64_t grave_name(struct alog *l, uint64_t stable);
bool grave_pump(struct alog *l);
void grave_done(struct alog *l, struct io *io, int64_t result);

/* ---- own.c ---- */
void own_found(struct alog *l, uint64_t first, uint32_t nr);
uint32_t own_write(const struct alog *l, struct own_named *to);
bool own_pump(struct alog *l);
void own_done(struct alog *l, struct io *io, int64_t result);

/* ---- walk.c ---- */
bool walk_pump(struct alog *l);
bool walk_holds(const struct alog *l, const struct zone *z);
void walk_break(struct alog *l, int error);	/* if it holds */
uint64_t walk_patience(const struct alog *l);	/* until when it may wait; ALOG_NEVER */

static inline bool serves(const struct alog *l)
{
	return l->opening.state == OPEN_SERVES;
}

static inline bool salvages(const struct alog *l)
{
	return l->opening.state == OPEN_SALVAGES;
}

static inline void log_fail(struct alog *l, int error)
{
	l->opening.error = error;
	l->opening.state = OPEN_FAILED;
	l->job = JOB_NONE;
}

static inline void zone_live(struct alog *l, struct zone *z, uint32_t bytes)
{
	z->live += bytes;
	l->z.live_bytes += bytes;
}

static inline void zone_dead(struct alog *l, struct zone *z, uint32_t bytes)
{
	if (bytes > z->live)
		bytes = z->live;
	z->live -= bytes;
	l->z.live_bytes -= bytes;
}

static inline uint32_t zone_pages(const struct alog *l)
{
	return l->cfg.zone_bytes / ALOG_PAGE;
}

static inline void damage(struct alog *l, enum alog_damage what, uint64_t zone, uint32_t place,
	uint32_t bytes)
{
	l->stats.bad_records += what == ALOG_BAD_RECORD;
	l->stats.holes += what == ALOG_HOLE;
	l->user.damage(l->user.ctx, what, zone, place, bytes);
}

#endif
