/* volumed - the volume peer: maps volumes to objects of a store. The parts that its files share.
 *
 * Subject
 *   A volume is a name, an id, an identity and a size. Its bytes are in objects of object_size
 *   bytes, "PREFIX:%016x" (the object's number in hex). A request within one object gets the
 *   object's name and is forwarded, so its reply goes straight to its origin. A request that
 *   crosses objects is split (split.c). The volumes stand in a catalogue in the same store
 *   (catalog.c), which has a header and a copy. Changes are recorded there before they are answered
 *   (volumed_admin.c). The objects of removed volumes are deleted in the background (job.c).
 *
 * Names of objects
 *   An id is 32 bits, for requests, and may be used again some day. An identity is 64 bits, and no
 *   other volume of the store ever has it. The prefix is '-', the identity in 16 digits of hex, and
 *   a letter for the size of the objects ('a': 4 KiB, 'k': 4 MiB). So an object's name has 35 bytes
 *   in all. No volume's name begins with '-'. A record of version 1 has no identity (0). Then the
 *   prefix is the volume's name, until the volume is removed.
 *
 * Threads
 *   A port's callbacks run in that port's thread. Port 0's thread alone changes the catalogue, the
 *   admin commands and the table of volumes. All threads read the table without a lock.
 *   No file here makes a system call or reads a clock but now_ns. The exception is a removal: it
 *   asks the kernel which clients are alive.
 *
 * Invariants
 *   V1  A volume's id is non-zero only while I/O to it is allowed. All else that the data path
 *       reads (serial, shift, prefix) changes only while the id is 0 and no port looks at it
 *       (J1). A name changes by a word that says which of two it is.
 *   V2  A change that was answered to an admin stands in the catalogue, on stable storage.
 *   V3  One record at most is on its way to the catalogue.
 *   V4  A request is at one place only: forwarded, held (catalogue not read yet), in the splitter,
 *       in the admin's queue or answered.
 *   V5  A slot is used for another volume only after the old one's objects are deleted (J2) and its
 *       record says FREE.
 *   V6  A volume gets an identity after the header says, on stable storage, that the identity is
 *       used. So the objects of a volume are never another one's, whatever its name, size or slot.
 *   V7  Of the volumes of one name, one at most is not REMOVING.
 */
#ifndef PEERS_VOLUMED_VOLUMED_H
#define PEERS_VOLUMED_VOLUMED_H

#include <stdatomic.h>

#include "peers/common/blocker/listing.h"
#include "peers/common/runtime/peer.h"

#define VD_SLOTS	  8192u
#define VD_RECORD_BYTES	  512u			/* a sector: written whole or not at all */
#define VD_OBJECT_MIN	  4096u
#define VD_OBJECT_MAX	  (4u << 20)
#define VD_SIZE_MAX	  (((uint64_t)1 << 63) - XSEG_SECTOR)
#define VD_OBJECTS_MAX	  ((uint64_t)1 << 32)	/* of a volume that is made, or grows */
#define VD_PREFIX_BYTES	  64			/* a name of 63 and ':'; or an identity's */
#define VD_LOAD_PAGES	  256u			/* the catalogue is read by 1 MiB */
#define VD_PAGE_RECORDS	  (XSEG_PAGE_SIZE / VD_RECORD_BYTES)
#define VD_PAGE_WORDS	  (VD_SLOTS / VD_PAGE_RECORDS / 64)	/* a bit for each page of records */
#define VD_LIST_PAGES	  128u			/* of these, when it is read: names of objects */
#define VD_PART_RECORDS	  128u			/* is mended in one piece */
#define VD_ZERO_PAGES	  256u
#define VD_JOB_DEPTH	  16u			/* background requests in flight */
#define VD_JOB_SLICE	  4096u			/* objects of a volume, then it is another's turn */
#define VD_RESERVED	  (VD_JOB_DEPTH + 1)	/* own requests that split I/O never gets */
#define VD_LINE_BYTES	  512u
#define VD_USERS_BYTES	  256u			/* of text: who has a volume open */
#define VD_NAMED	  4096u			/* names that a port remembers: 128 KiB */
#define VD_IOPS_MAX	  10000000u
#define VD_BANDWIDTH_MIN  4096u			/* bytes a second */
#define VD_BANDWIDTH_MAX  (1ull << 40)
#define VD_BURST_MIN_NS	  10000000ull		/* and that of a limit that says none */
#define VD_BURST_MAX_NS	  60000000000ull
#define VD_RETRY_NS	  1000000000ull
#define VD_CONNECT_NS	  50000000ull		/* looks for a downstream that is not there yet */
#define VD_DRAIN_NS	  1000000ull		/* between looks for older requests */
#define VD_AGAIN_NS	  100000000ull		/* deletes again while there are some; doubles */
#define VD_AGAIN_MAX_NS	  5000000000ull

/* A slot of the catalogue, as recorded.
 *
 *   from       to         when                                             by
 *   FREE       LIVE       a volume is created                              volumed_admin.c
 *   LIVE       LIVE       it grows, gets limits or another name            volumed_admin.c
 *   LIVE       SHRINKING  it shrinks: size_bytes is the new size           volumed_admin.c
 *   LIVE       REMOVING   it is removed                                    volumed_admin.c
 *   SHRINKING  LIVE       what was beyond the new size is deleted          job.c
 *   REMOVING   FREE       all of its objects are deleted                   job.c
 *   FREE       any        so says its record; DAMAGED: that cannot be      catalog_load.c
 *                         believed; LOST: the catalogue lacks it, the copy
 *                         has it, or they differ (neither is ever recorded)
 *   DAMAGED    FREE       somebody wants what is lost back                 recover.c
 *   LOST       FREE       the same; then it becomes what it was            recover.c
 *
 * vd_volume_become() (volume.c) alone changes it, once all records have been read.
 */
enum vd_slot_state {
	VD_FREE, VD_LIVE, VD_REMOVING, VD_SHRINKING, VD_DAMAGED, VD_LOST, VD_NR_STATES
};

/* What a volume may do; 0: as much as it can (limit.c). */
struct vd_limits {
	uint64_t iops, bandwidth;		/* requests, bytes a second */
	uint64_t burst_ns;			/* not 0 where one of them is not */
};

struct vd_meta {
	/* DAMAGED: name, generation, identity and object size as far as they can be read, and
	 * nothing proves them */
	char name[XSEG_NAME_MAX];
	enum vd_slot_state state;
	uint32_t generation;			/* 16 bits; each volume in a slot has the next */
	uint64_t size_bytes;
	uint64_t object_size;
	uint64_t cut_bytes;			/* SHRINKING: the size before */
	uint64_t identity;			/* FREE: the last one's; 0: record version 1 */
	uint64_t change;			/* the catalogue's that wrote it; 0: old program */
	uint64_t replaced;			/* vd_record_sum() of the record before */
	struct vd_limits limits;		/* a program that knows none ignores them */
};

struct vd_volume {
	/* Read by every port (V1). */
	_Alignas(64) _Atomic uint32_t id;
	uint64_t serial;			/* no other volume of this process had it, or 0 */
	uint8_t shift;				/* log2 of the object size */
	uint8_t prefix_len;
	_Atomic bool limited;			/* it has limits: stored after them */
	_Atomic uint64_t size_bytes;
	char prefix[VD_PREFIX_BYTES];		/* with its ':', padded with zeroes */
	/* the name is the one of that number: a renamed volume's is put into the other place */
	_Atomic uint32_t name_at;
	char names[2][XSEG_NAME_MAX];
	/* Port 0's thread. */
	struct vd_meta meta;			/* what the catalogue holds */
	struct xreq *waiter;			/* an admin's resize, until the shrink is done */
	/* Of its job: port 0's thread (job.c). */
	struct vd_volume *next_job;
	uint64_t cursor;			/* of this round: of the LIST; or the next object */
	uint64_t deleted;			/* objects, in all rounds */
	uint64_t listed;			/* objects of the last answer, not deleted yet */
	uint64_t retry_ns;			/* waits until then, for its next turn */
	uint64_t again_ns, again;		/* next round, if older requests are left; step */
	uint32_t waits_for;			/* older requests, at the last look */
	bool passed;				/* every port has passed a point since the change */
	bool in_round, drained, zeroed, found;
	bool told;				/* a failure has been logged */
};

/* LOADING -> LOADED: all records are read; -> FOREIGN: one is of another version, and nothing is
 * served. load_end() (catalog.c) is the only one that changes it. */
enum vd_load { VD_LOADING, VD_LOADED, VD_FOREIGN };

/* An own request that is out, or a split one; by request index. The thread that has the request. */
struct vd_context {
	void (*done)(struct peer_port *pp, struct xreq *r);	/* out: its answer is here */
	struct xreq *parent;			/* child: whose */
	uint32_t sent;				/* parent: bytes handed to children */
	uint32_t out;				/* parent: children not answered */
	uint32_t part;				/* parent: number of the next child */
	bool begun;				/* parent: it, or a predecessor, sent a part */
	bool cutting;				/* parent: counted in its port's `cutting` */
	int64_t result;				/* parent: sum, or the first error */
	/* waits for its volume's limit, and is the oldest of its client that does (limit.c) */
	struct {
		struct xreq *newest;		/* of this client */
		struct xreq *next;		/* the oldest of another client */
		uint64_t credit_ns;		/* of what this client may cost */
	} wait;
};

struct vd_fifo {				/* requests by ->next */
	struct xreq *first, **last;
};

/* What the name of an object came to, of the first 2^32 of a volume: the last one of those that
 * share the place. */
struct vd_named {
	uint64_t serial;			/* of its volume; 0: nothing is here */
	uint64_t hash;				/* of the whole name */
	uint64_t digits;			/* the last eight of it */
	uint32_t object;
};

/* How a volume is held to its limits; by slot. Port 0's thread stores what they are, any port reads
 * it; all else is the thread's of the volume's home port. See limit.c. */
struct vd_limit {
	_Atomic uint64_t iops, bandwidth, burst_ns;
	_Atomic uint32_t change;		/* counts changes of them */
	_Atomic uint32_t nr_waiting;		/* requests; the home port's thread writes it */
	uint32_t seen;				/* the change that the times below go by */
	uint64_t ops_ns, bytes_ns;		/* when what was let go on is paid for */
	uint64_t due_ns;			/* the next that waits may go on */
	struct xreq *first, **last;		/* of each client that waits the oldest */
	struct vd_limit *next;			/* of its port, with requests that wait */
	bool listed;
};

struct vd_port {
	struct vd_named *named;			/* VD_NAMED; the port's thread */
	struct vd_fifo held;			/* wait for the catalogue */
	struct vd_fifo splitting;		/* parents with parts not sent */
	/* requests for volumes whose home it is, from other ports; newest first */
	_Atomic(struct xreq *) limit_inbox;
	_Atomic bool limit_look;		/* limits, or volumes, have changed */
	struct vd_limit *limit_list;		/* those that have requests waiting */
	_Atomic uint32_t nr_limits;		/* of these; the port's thread writes it */
	uint64_t limit_due_ns;			/* the first of them is due */
	uint32_t children;			/* out, of this port's parents */
	/* begun parents that reach beyond what their volume is cut to, with parts not sent; written
	 * by the port's thread */
	_Atomic uint32_t cutting;
	_Atomic uint32_t busy;			/* own requests out; written by the port's thread */
};

/* What is being written to the catalogue; the table is in catalog.c. */
enum vd_write {
	VD_WRITE_NONE, VD_WRITE_RESERVE, VD_WRITE_COPY, VD_WRITE_RECORD, VD_WRITE_HEAD,
	VD_UNDO_HEAD, VD_UNDO_RECORD, VD_UNDO_COPY,
	VD_MEND_COPY, VD_MEND_RECORD, VD_MEND_HEAD,
	VD_NR_WRITES
};

/* What the header says, or will. */
struct vd_head {
	uint64_t generation;			/* changes of the catalogue */
	uint64_t next_identity;			/* no volume has had this one, or a higher one */
	uint64_t sum;				/* of all records: vd_record_sum() added up */
	uint32_t count;				/* records that are not all zeroes */
	uint32_t flags;				/* VD_HEAD_* */
};
#define VD_HEAD_DAMAGED 1u	/* what was read did not fit together; until it is recovered */
#define VD_HEAD_UNSURE	2u	/* and nothing proved which is right: `sum` says nothing */

/* The one record on its way (V3), and the reading of all. Port 0's thread. */
struct vd_catalog {
	_Atomic int load;			/* enum vd_load */
	_Atomic int error;			/* why it could not be read so far, or 0 */
	bool wanted;				/* recovered: may be read */
	struct vd_loading *loading;		/* catalog_load.c's: what was read */
	uint64_t retry_ns;
	struct xreq *r;				/* being read or written */
	const uint32_t *page;			/* VD_LOAD_PAGES; the first for records, too */
	/* Writing. */
	enum vd_write write;
	struct vd_volume *v;			/* whose record */
	struct vd_meta meta;			/* and what it says, with all numbers */
	void (*written)(struct peer_port *pp, int rc);
	struct vd_head head;			/* the store's, of the last change that is done */
	struct vd_head sent;			/* that is on its way */
	uint64_t next_identity;			/* to be given next */
	struct vd_volume *uncertain;		/* its record, or copy, may differ from v->meta */
	/* Mending: parts of VD_PART_RECORDS records, a bit each, of the copy and the catalogue; the
	 * header last. */
	uint64_t mend_copy, mend_record;
	uint64_t mend_later;			/* of the copy, when mend_record is done */
	bool mends;
	int mend_error;				/* of the last try, or 0 */
};

/* Of the one change that is under way (volumed_admin.c).
 *
 *   from     to       when                                                   by
 *   IDLE     WRITING  a command is to change a record                        change_begin
 *   WRITING  IDLE     the record is written                                  change_done
 *   WRITING  UNDOING  it may or may not be: the old one is to be written     change_failed
 *   UNDOING  IDLE     that is done                                           change_written
 */
enum vd_change { VD_CHANGE_IDLE, VD_CHANGE_WRITING, VD_CHANGE_UNDOING, VD_CHANGE_NR_STATES };

struct vd_admin {
	_Atomic(struct xreq *) inbox;		/* from any port; newest first */
	/* Port 0's thread. */
	struct vd_fifo queue;
	struct vd_fifo begun;		/* of those that a predecessor had, what it had begun */
	struct vd_fifo questions;	/* need no change to end first (A3) */
	enum vd_change change;
	struct xreq *r;			/* WRITING, UNDOING: who asked; NULL: is answered */
	struct vd_volume *v;
	struct vd_meta next;			/* WRITING: what v->meta becomes */
	bool sent;				/* the record is on its way */
	int error;				/* UNDOING: why */
	uint64_t retry_ns;
	uint32_t nr_waiters;			/* volumes with a waiter */
	char line[VD_LINE_BYTES], text[PEER_TEXT_BYTES];
};

/* What they are, and which follows which, is in job.c. */
enum vd_job_step {
	VD_JOB_NONE, VD_JOB_POINT, VD_JOB_ZERO, VD_JOB_LIST, VD_JOB_DELETE, VD_JOB_ASK,
	VD_JOB_FLUSH, VD_JOB_RECORD, VD_JOB_RECORDING, VD_JOB_NR_STEPS
};

/* One volume at a time has objects deleted; see job.c. Port 0's thread. */
struct vd_job {
	/* POINT: the port that is to pass its own; else 0. Any port's */
	_Atomic uint32_t turn;
	struct vd_volume *v;
	enum vd_job_step step;
	uint64_t zero_next, zero_end;		/* bytes of the volume to zero */
	struct xreq *list;			/* DELETE: the answer that names them */
	struct listing_names names;
	uint64_t ask_from;			/* ASK: the first object of this slice */
	bool flush_sent;			/* FLUSH */
	uint32_t slice;				/* deletes until it is another volume's turn */
	uint32_t out;				/* requests in flight */
	uint64_t retry_ns;			/* something failed: until then v waits; or 0 */
	bool zeroes_by_write;			/* the store knows no WRITE_ZEROES */
	bool lists_nothing;			/* the store knows no LIST */
	struct vd_volume *queue, **queue_last;
	/* a volume with a waiter is cut: volumed_admin.c */
	void (*shrunk)(struct peer_port *pp, struct vd_volume *v);
};

/* What they are, and which follows which, is in recover.c. */
enum vd_recover_step {
	VD_RECOVER_IDLE, VD_RECOVER_ASKED, VD_RECOVER_LOOKING, VD_RECOVER_MENDING,
	VD_RECOVER_ORPHANS, VD_RECOVER_HEAD, VD_RECOVER_NR_STEPS
};

/* Bringing back what is lost. Port 0's thread. */
struct vd_recover {
	enum vd_recover_step step;
	struct xreq *r;				/* who asked, and is answered so */
	void (*done)(struct peer_port *pp, struct xreq *r, int rc);
	uint32_t nr;				/* volumes that are back */
	uint32_t orphan;			/* ORPHANS: the place of the next one */
	struct vd_volume *v;			/* for whose record this is */
	bool sent;				/* it is on its way */
	uint32_t looks_at;			/* LOOKING: enum vd_load_step of the object */
	uint32_t look_slot;			/* the first record of the page */
	/* refused: this object of the catalogue was given up, and can be read by now; or NULL */
	const char *readable;
};

struct vd_counters {
	struct xseg_stats *stats;		/* NULL: not counted */
};

struct volumed {
	struct peer peer;
	uint64_t object_size;			/* options */
	uint32_t requests;
	struct vd_volume *volume;		/* VD_SLOTS */
	struct vd_counters *counters;		/* by slot and port; the port's thread */
	struct vd_limit *limit;			/* VD_SLOTS */
	struct vd_context *context;		/* by request index */
	struct vd_port *port;
	uint32_t *page;				/* the catalogue's, then VD_ZERO_PAGES of zeroes */
	struct vd_catalog catalog;
	struct vd_admin admin;
	struct vd_job job;
	struct vd_recover recover;
	uint32_t nr_jobs;		/* port 0's: volumes that are REMOVING or SHRINKING */
	uint64_t serial;		/* port 0's: the last volume's */
	_Atomic uint32_t nr_volumes, nr_removing, nr_damaged, nr_lost, nr_orphans, nr_stats;
	_Atomic bool stats_full;		/* the segment had no block left */
};

static inline struct volumed *vd_of(const struct peer_port *pp)
{
	return (struct volumed *)pp->peer;
}

static inline struct vd_port *vd_port_of(const struct peer_port *pp)
{
	return &vd_of(pp)->port[pp->nr];
}

static inline bool vd_stopping(const struct peer_port *pp)
{
	return atomic_load_explicit(&pp->peer->stopping, memory_order_relaxed);
}

static inline void vd_fifo_init(struct vd_fifo *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static inline void vd_fifo_push(struct vd_fifo *q, struct xreq *r)
{
	r->next = NULL;
	*q->last = r;
	q->last = &r->next;
}

static inline struct xreq *vd_fifo_pop(struct vd_fifo *q)
{
	struct xreq *r = q->first;

	q->first = r->next;
	if (!q->first)
		q->last = &q->first;
	return r;
}

/* A list that any port's thread adds to, and one thread takes as a whole. True: it was empty. */
static inline bool vd_inbox_put(_Atomic(struct xreq *) *inbox, struct xreq *r)
{
	r->next = atomic_load_explicit(inbox, memory_order_relaxed);
	/* release: partner is the acquire in vd_inbox_take() */
	while (!atomic_compare_exchange_weak_explicit(
		inbox, &r->next, r, memory_order_release, memory_order_relaxed))
		;
	return !r->next;
}

/* What is in it, oldest first, by ->next. */
static inline struct xreq *vd_inbox_take(_Atomic(struct xreq *) *inbox)
{
	/* acquire: partner is the release in vd_inbox_put() */
	struct xreq *r = atomic_exchange_explicit(inbox, NULL, memory_order_acquire);
	struct xreq *oldest = NULL, *next;

	for (; r; r = next) {
		next = r->next;
		r->next = oldest;
		oldest = r;
	}
	return oldest;
}

static inline struct vd_limit *vd_limit_of(const struct volumed *vd, const struct vd_volume *v)
{
	return &vd->limit[v - vd->volume];
}

/* The port whose thread holds the volume to its limits. */
static inline uint32_t vd_home_of(const struct volumed *vd, const struct vd_volume *v)
{
	return (uint32_t)(v - vd->volume) % vd->peer.nr_ports;
}

/* Requests that wait for the volume's limits. Any port. */
static inline uint32_t vd_limit_waiting(const struct volumed *vd, const struct vd_volume *v)
{
	return atomic_load_explicit(&vd_limit_of(vd, v)->nr_waiting, memory_order_relaxed);
}

/* It has a size. */
static inline bool vd_is_in_one_object(const struct vd_volume *v, const struct xreq *r)
{
	return (r->offset ^ (r->offset + r->size - 1)) >> v->shift == 0;
}

static inline uint32_t vd_slot_of(const struct volumed *vd, const struct vd_volume *v)
{
	return (uint32_t)(v - vd->volume);
}

static inline uint32_t vd_make_id(uint32_t slot, uint32_t generation)
{
	return (slot + 1) | (generation & 0xffff) << 16;
}

static inline uint32_t vd_id_of(const struct volumed *vd, const struct vd_volume *v)
{
	return vd_make_id(vd_slot_of(vd, v), v->meta.generation);
}

static inline const char *vd_name_of(const struct vd_volume *v)
{
	/* acquire: partner is the release in name_set() */
	return v->names[atomic_load_explicit(&v->name_at, memory_order_acquire)];
}

/* ---- volumed.c --------------------------------------------------------------------------- */

/* ---- send.c ---- */
/* Sends an own request, whose answer goes to done(). 0, or an error: the caller still has it. */
int vd_submit(struct peer_port *pp, struct xreq *r,
	      void (*done)(struct peer_port *, struct xreq *)) XSEG_MUST_CHECK;
/* An answer has come for one of those. */
void vd_reply(struct peer_port *pp, struct xreq *r);

/* ---- volume.c: the table ----------------------------------------------------------------- */

/* The volume of that id, or NULL. Any port. */
struct vd_volume *vd_volume_get(struct volumed *vd, uint32_t id);
/* 0, or why that range of the volume cannot be: -EINVAL: no whole sectors; -ENXIO: beyond the end.
 * Any port. */
int vd_volume_check(const struct vd_volume *v, uint64_t offset, uint64_t size) XSEG_MUST_CHECK;
/* Says in which object byte `offset` is: sets target, hash and obj_offset. */
void vd_volume_address(const struct vd_volume *v, struct xreq *r, uint64_t offset);
/* The same for r->offset, by what the port remembers; false: it does not, and the hash is to be set
 * by vd_volume_hash(). */
bool vd_volume_name(struct peer_port *pp, const struct vd_volume *v, struct xreq *r);
void vd_volume_hash(struct peer_port *pp, const struct vd_volume *v, struct xreq *r);
/* Names the volume as a whole (FLUSH); NULL: all volumes. */
void vd_volume_address_all(const struct vd_volume *v, struct xreq *r);
/* Counts a request in the volume's block of this port. */
void vd_volume_count(struct peer_port *pp, struct vd_volume *v, const struct xreq *r);
/* The volume's limits, or the number of requests that wait for them, are others; with `more`, one
 * request more has to wait. Its home port's thread. */
void vd_volume_count_wait(struct peer_port *pp, struct vd_volume *v, bool more);
/* Whether such limits can be. A burst of 0 becomes the least, or 0 where there is no limit. */
bool vd_limits_ok(struct vd_limits *l) XSEG_MUST_CHECK;
bool vd_object_size_ok(uint64_t bytes);
bool vd_size_ok(uint64_t bytes);		/* of a volume */
/* Objects that a volume of that size may have. */
uint64_t vd_volume_objects(const struct vd_meta *meta, uint64_t size_bytes);
/* How the names of the volume's objects begin, with the ':'; returns its length. */
uint32_t vd_prefix_make(const struct vd_meta *meta, char prefix[VD_PREFIX_BYTES]);
/* The identity and the object size that a prefix, with or without its ':', says; false: it has
 * none. */
bool vd_prefix_identity(const char *prefix, uint64_t *identity, uint64_t *object_size);
/* The number in the name of one of the volume's objects; false: it is none of its. */
bool vd_object_number(const struct vd_volume *v, const char *name, uint64_t *number);

/* Port 0's thread: by name, or NULL: one that is not REMOVING, if there is one. An unused slot, or
 * NULL. */
struct vd_volume *vd_volume_find(struct volumed *vd, const char *name);
struct vd_volume *vd_volume_unused(struct volumed *vd);
/* The slot whose record bears that name, and is DAMAGED or LOST; or NULL. */
struct vd_volume *vd_volume_damaged(struct volumed *vd, const char *name);
/* All ports have been quiet about the volume since its id went (J1): frees its counters. */
void vd_volume_quiet(struct volumed *vd, struct vd_volume *v);
/* v becomes what has just been recorded: publishes or withdraws it, begins its job. */
void vd_volume_become(struct peer_port *pp, struct vd_volume *v, const struct vd_meta *meta);
/* v is REMOVING or SHRINKING: its objects will be deleted. Port 0's thread. */
void vd_job_add(struct peer_port *pp, struct vd_volume *v);
/* Behind the others that wait for their turn. */
void vd_job_queue(struct vd_job *job, struct vd_volume *v);
/* Clients may read past this peer (xseg/direct.c) while all volumes are what they were when that
 * was learned: from when the catalogue is read, but while something is deleted that they could
 * still find below. */
void vd_direct_follow(struct volumed *vd);

/* ---- catalog.c --------------------------------------------------------------------------- */

#define VD_CATALOG	":catalog"
#define VD_CATALOG_HEAD ":catalog.head"
#define VD_CATALOG_COPY ":catalog.copy"

void vd_record_encode(const struct vd_meta *meta, uint32_t slot, void *record);
/* 0; -EPROTO: of another version; -EBADMSG: damaged. */
int vd_record_decode(const void *record, uint32_t slot, struct vd_meta *meta) XSEG_MUST_CHECK;
/* Of a record as it is on the store; 0: it is all zeroes. */
uint64_t vd_record_sum(const void *record);
uint64_t vd_meta_sum(const struct vd_meta *meta, uint32_t slot);
void vd_head_encode(const struct vd_head *head, void *sector);
/* 0; -ENOENT: there is none; -EPROTO: of another version; -EBADMSG: damaged. */
int vd_head_decode(const void *sector, struct vd_head *head) XSEG_MUST_CHECK;
/* An own request to one of the three objects, with the catalogue's pages from `page` on; NULL: none
 * is free. */
struct xreq *vd_catalog_request(struct peer_port *pp, const char *target, enum xseg_op op,
	uint64_t offset, uint32_t size, uint32_t page);

/* Port 0's thread. Writes the copy of a slot's record, the record and the header (FUA each), in
 * that order; written() gets 0 or why not. Then catalog.meta is what was written. False: another
 * one is on its way, or something is being mended; try again. */
bool vd_catalog_write(struct peer_port *pp, struct vd_volume *v, const struct vd_meta *meta,
		      void (*written)(struct peer_port *pp, int rc));
/* Makes sure that the store has what the table has, where a write failed before. As above. */
bool vd_catalog_undo(struct peer_port *pp, void (*written)(struct peer_port *pp, int rc));
/* Writes what vd_catalog.mend_* say. */
void vd_catalog_mend(struct peer_port *pp);
/* Takes the next identity for a volume that is to be made. */
uint64_t vd_identity_take(struct volumed *vd);
/* Goes on with reading and mending. Returns when to be called again. */
uint64_t vd_catalog_poll(struct peer_port *pp);

/* ---- catalog_load.c ---------------------------------------------------------------------- */

/* A volume that its objects tell of, and no record. Or one that is known, which is passed over. */
struct vd_orphan {
	char prefix[VD_PREFIX_BYTES];		/* with the ':'; "": nothing is here */
	bool known;
	uint64_t nr, highest;			/* objects; the highest number */
	char name[XSEG_NAME_MAX];		/* as a damaged record says, or "" */
	uint64_t object_size;			/* the same, or 0 */
};
#define VD_ORPHANS (2 * VD_SLOTS)

/* What was read of the catalogue. It is kept for what is lost. */
struct vd_loading {
	enum vd_load_step {
		VD_LOAD_COPY, VD_LOAD_RECORDS, VD_LOAD_HEAD, VD_LOAD_LIST, VD_LOAD_END
	} step;
	uint32_t read;				/* records of this object, or given up */
	uint32_t piece;				/* records of one request: 1 MiB, or a page */
	uint32_t failed;			/* times that this object was not read */
	/* by step: given up, with these pages of records, and not written since */
	bool unreadable[VD_LOAD_LIST];
	uint64_t lost[2][VD_PAGE_WORDS];
	bool by_pages[2];			/* where a part is EIO, in this round */
	bool answered, answered_before;		/* the store, in this round, in the one before */
	bool refused;				/* the store, all of the last round */
	bool give_up, gives_up;			/* an admin asked: the next round, this counts */
	uint64_t cursor;			/* of the LIST */
	/* as read, by slot; the catalogue's records are in the table itself */
	uint64_t sum[2][VD_SLOTS];		/* VD_LOAD_COPY, VD_LOAD_RECORDS */
	struct vd_meta copy[VD_SLOTS];		/* of a LOST slot: what is believed to be right */
	struct vd_head head;
	int head_rc;				/* of vd_head_decode() */
	_Atomic(const char *) damage;		/* what does not fit; NULL: all fits */
	bool lists_nothing;			/* the store knows no LIST */
	struct vd_orphan orphan[VD_ORPHANS];	/* by hash of the prefix */
};

int vd_load_init(struct volumed *vd) XSEG_MUST_CHECK;
void vd_load_fini(struct volumed *vd);
uint64_t vd_load_poll(struct peer_port *pp);
/* The name of the object that a step before VD_LOAD_END reads; "" of LIST. */
const char *vd_load_target(enum vd_load_step step);
/* The object of the catalogue that was given up, or NULL. Port 0's thread. */
const char *vd_unreadable(const struct volumed *vd);
/* Of the copy (VD_LOAD_COPY) or the catalogue: whether that record was given up; how many pages
 * were; whether the object was read, but for these (catalog.c). */
bool vd_load_is_lost(const struct vd_loading *l, unsigned which, uint32_t slot);
uint32_t vd_load_lost_pages(const struct vd_loading *l, unsigned which);
bool vd_load_in_part(const struct vd_loading *l, unsigned which);
/* The store refuses all three objects, and reading is retried: they are given up if it goes on.
 * False: it is not so, or this was asked before and has failed. */
bool vd_load_give_up(struct volumed *vd);
/* What does not fit, or NULL. Any port reads it. */
const char *vd_damage(const struct volumed *vd);
void vd_damage_set(struct volumed *vd, const char *damage);
#define VD_DAMAGE_ORPHANS "there are objects of volumes without a record"

/* ---- orphans.c: only where there is damage ------------------------------------------------ */

/* The prefixes of all records that can be believed, or that are noted for a LOST slot. */
void vd_orphans_know(struct volumed *vd);
/* The listing is given up, and the catalogue is read anew. */
void vd_orphans_forget(struct volumed *vd);
/* An object of that name is in the store. */
void vd_orphan_note(struct volumed *vd, const char *name);
/* All are noted: an orphan gets the name that a damaged record has for it. */
void vd_orphans_name(struct volumed *vd);
/* Any port. */
uint32_t vd_orphans_nr(const struct volumed *vd);
void vd_orphans_add(struct volumed *vd, uint32_t by);
/* The orphan of that place, or NULL. */
struct vd_orphan *vd_orphan_get(struct volumed *vd, uint32_t i);
/* What is noted of the objects of that volume, known or not; or NULL. */
struct vd_orphan *vd_orphan_of(struct volumed *vd, const struct vd_meta *meta);
/* Whether there is an orphan whose prefix is that name. */
bool vd_orphan_has_name(struct volumed *vd, const char *name);
/* No record, header or object that was found has this identity, or a higher one. */
uint64_t vd_identities_end(struct volumed *vd);

/* ---- recover.c ---------------------------------------------------------------------------- */

/* What an orphan, or a LOST slot, would become; false: its name is taken. */
bool vd_recover_orphan(struct volumed *vd, const struct vd_orphan *o,
	struct vd_meta *meta) XSEG_MUST_CHECK;
bool vd_recover_lost(struct volumed *vd, const struct vd_volume *v,
	struct vd_meta *meta) XSEG_MUST_CHECK;
/* Brings back all that can be. r is answered by vd_admin_recovered(). */
void vd_recover_begin(struct peer_port *pp, struct xreq *r,
		      void (*done)(struct peer_port *pp, struct xreq *r, int rc));
bool vd_recover_runs(const struct volumed *vd);
void vd_recover_poll(struct peer_port *pp);
/* A line for each thing that is lost, from the i-th on. Returns which did not fit, or
 * UINT32_MAX. */
struct kv_text;
uint32_t vd_recover_list(struct volumed *vd, uint32_t i, struct kv_text *t);

/* ---- split.c ----------------------------------------------------------------------------- */

/* Sends on a request for data of the volume, in parts if it crosses objects. It has a size. */
void vd_data_send(struct peer_port *pp, struct vd_volume *v, struct xreq *r);
/* A predecessor has done some of the request's parts. */
bool vd_split_is_begun(struct peer_port *pp, const struct xreq *r);
/* Of a volume that is being cut: notes which begun requests reach beyond its new size (S6). */
void vd_split_mark(struct peer_port *pp, const struct vd_volume *v);

/* ---- limit.c ----------------------------------------------------------------------------- */

int vd_limit_init(struct volumed *vd) XSEG_MUST_CHECK;
void vd_limit_fini(struct volumed *vd);
/* Sends on a request for data of a limited volume, now or when the limit allows that. It was
 * checked, and has a size. */
void vd_limit_take(struct peer_port *pp, struct vd_volume *v, struct xreq *r);
/* Goes on with what waits. Returns when to be called again. */
uint64_t vd_limit_poll(struct peer_port *pp);

/* ---- job.c ------------------------------------------------------------------------------- */

uint64_t vd_job_poll(struct peer_port *pp);
/* Objects that are known to be left; more may come to light. Port 0's thread. */
uint64_t vd_job_left(const struct volumed *vd, const struct vd_volume *v);

/* ---- volumed_admin.c --------------------------------------------------------------------- */

int64_t vd_admin_command(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size);
uint64_t vd_admin_poll(struct peer_port *pp);
/* Answers who waits for a shrink: it is done, or goes on at the next start. */
void vd_admin_shrunk(struct peer_port *pp, struct vd_volume *v);
/* Answers who asked for what is lost: all that can be is back, or why not. */
void vd_admin_recovered(struct peer_port *pp, struct xreq *r, int rc);

#endif
