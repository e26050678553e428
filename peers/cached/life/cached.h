/* cached - the cache peer: the sum of its rooms, and the rules that hold them together.
 *
 * tests/tidy/floors lists the rooms and their floors. A room uses rooms on lower floors only. A
 * call that points up is declared in the room's events.h and defined in life/events.c.
 *
 * cached keeps objects in 4 KiB buckets between an upper peer and its downstream. An object is an
 * entry of the xcache (its name) plus slots (bucket.h), which live in chunks of 64. Entries,
 * chunks, the pages of the buckets and the records of volumes are in the segment and outlive the
 * process. Everything else is derived from them (arena.c).
 *
 * Threads. A request or a reply becomes a job in its object's work queue (xworkq). The thread that
 * runs the queue is "inside the object" and alone with its slots. (A request that can be served at
 * once enters without a job: hit.c.) Jobs never block. A job that has to wait is put into one of
 * the waiting places (creq.c) and stepped again later. Every creq and every child that has an
 * object holds a reference to it.
 *
 * Locks. A thread may take mem_lock and dirty_lock under volume_lock. It may also take mem_lock
 * under the xcache's own lock, as an entry that becomes free gives back its chunks. All others are
 * leaves.
 *   volume_lock	making records of volumes, and their settings; whether clients may read
 *			directly
 *   mem_lock	extents, free pages, lists of clean pages and of those in limbo, free chunks
 *   dirty_lock	the lists of dirty objects, flush tickets, pending FLUSH requests
 *   throttle.lock	how fast the store takes dirty data, writers that are slowed
 *   streams.lock	the table of streams (stream.h)
 *   loans.lock		credit is being given (loan.c)
 *
 * Invariants:
 *   C1  A slot is changed inside its object only. Its state and page are changed by
 *       bucket_set_at() and bucket_leave() only.
 *   C2  A page with acknowledged data is never changed in place: a write puts a new page into the
 *       slot. Nor is a page that may be on loan, except by the client that was lent it to write
 *       in (gift.c).
 *   C3  A request that changes slots has all it may wait for before it becomes STARTED. It leaves
 *       the object only after all its slots are stored (rule R3).
 *   C4  A page listed by a child in flight is not given to another user.
 *   C5  A request that waits for pages or chunks holds none. Loads and flushes in flight need
 *       nothing more to complete.
 *   C6  Data that a DELETE, DISCARD or WRITE_ZEROES took away comes back by no older change,
 *       wherever that was parked (change.c).
 */
#ifndef PEERS_CACHED_CACHED_H
#define PEERS_CACHED_CACHED_H

#include "peers/cached/bucket/stream.h"
#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/lend/lend.h"
#include "peers/cached/life/plug.h"
#include "peers/cached/life/resize.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/object/object.h"
#include "peers/cached/object/walk.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/request/request.h"
#include "peers/cached/store/store.h"
#include "peers/cached/volume/volume.h"

struct arena_head {
	uint64_t magic, version;
	uint32_t nr_objects, nr_volumes;
	_Atomic uint64_t size; /* size_word(): what was asked for; what there is, the extents say */
	uint32_t nr_ports, spare;		/* nr_ports: that have counters of volumes here */
	uint64_t off_volumes, off_objects, bytes;
	/* policy_note(): what it was started with, and what was set since */
	_Atomic uint64_t policy;
	_Atomic uint64_t ready;			/* 1: all of the above is written */
};

/* The arena, private tables, and how the cache enters and leaves. */
struct life_room {
	struct arena_head *head;
	bool made_arena;			/* so nothing is in it before it serves */
	bool has_tables;			/* make_tables() is done */
	struct resize resize;
	struct plug plug;
};

struct life_port {
	uint64_t polled_ns;		/* when its last poll looked at everything */
};

/* What the status tells. */
struct admin_room {
	/* When port 0 published the gauges; 0, which anybody may store: it is to do so now. */
	_Atomic uint64_t gauges_ns;
};

/* One port's side: the sum of the rooms' parts of it. */
struct cport_rooms {
	struct cport base;
	struct memory_port memory;
	struct object_port object;
	struct volume_port volume;
	struct store_port store;
	struct lend_port lend;
	struct flush_port flush;
	struct request_port request;
	struct life_port life;
};

/* The sum of its rooms: each part is changed by the code of its room alone. */
struct cached {
	struct cached_base base;
	struct memory_room memory;
	struct object_room object;
	struct volume_room volume;
	struct store_room store;
	struct lend_room lend;
	struct flush_room flush;
	struct evict_room evict;
	struct creq_room creq;
	struct policy_room policy;
	struct request_room request;
	struct life_room life;
	struct admin_room admin;
	struct cport_rooms ports[PEER_MAX_THREADS];
};

struct life_room *life_of(const struct cached *k);
struct life_port *life_port(const struct cport *ps);
struct admin_room *admin_of(const struct cached *k);

/* ---- adopt.c ---- */
/* Once, before serving, when all slots are known. page_is: enum page_is, by page. */
void orphans_adopt(struct cached *k, uint8_t *page_is);
void orphan_done(struct cport *ps, struct child *ch, int64_t result);	/* see store/events.h */

/* ---- arena.c ---- */
/* Of the segment, in whole extents: its arena and its pages, where it has none yet. */
uint64_t arena_memory_bytes(const struct cached *k);
int arena_open(struct cached *k, struct xseg_error *err);
int arena_load(struct cached *k, struct xseg_error *err);
void arena_close(struct cached *k);	/* private tables go; also when arena_open() has failed */

/* Asserts every invariant; nobody may be inside (tests, simulator). */
void cached_check(struct peer *p);
/* Asserts that each page that is on loan is known to be. */
void cached_check_loans(struct peer *p);
/* Nothing is under way: each page and list is somewhere. */
void cached_check_idle(struct peer *p);
/* For tests of small caches; no thread runs. Keeps all but n of the free pages out of use; cuts
 * some into chunks before, for good, where n is to be room for data alone. */
void cached_limit_pages(struct peer *p, uint32_t n);
void cached_cut_pages(struct peer *p);
void cached_drop_reserve(struct peer *p);	/* none is kept, and its pages are out of use */

#endif
