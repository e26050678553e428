/* volumed - the volume peer: maps volumes to objects of a store. What its files share.
 *
 * What it does
 *   A volume is a name, an id and a size. Its bytes are in objects "VOL:%016x" (the object's number
 *   in hex) of object_size bytes. A request within one object is addressed and forwarded, so its
 *   reply goes straight to its origin; one that crosses objects is split (split.c). The volumes
 *   stand in a catalogue, one object of the same store (catalog.c); changes are recorded there
 *   before they are answered (volumed_admin.c); what was removed is deleted behind the scenes
 *   (job.c).
 *
 * Threads
 *   A port's callbacks run in that port's thread. The catalogue, admin commands and the table of
 *   volumes are changed by port 0's thread alone. Everybody reads the table, without a lock.
 *   No file here makes a system call or reads a clock but now_ns; opening a block of counters takes
 *   the segment's control lock, and a removal asks who is alive, which do.
 *
 * Invariants
 *   V1  a volume's id is non-zero only while I/O to it is allowed; all else that the data path
 *       reads (serial, shift, prefix) changes only while the id is 0 and no port looks at it (J1)
 *   V2  what has been answered to an admin stands in the catalogue, on stable storage
 *   V3  one record at most is on its way to the catalogue
 *   V4  a request is at one place only: forwarded, held (catalogue not read yet), in the splitter,
 *       in the admin's queue or answered
 *   V5  a slot is used for another volume only after every port has deleted the old one's objects
 *       (J1) and its record says FREE
 */
#ifndef PEERS_VOLUMED_VOLUMED_H
#define PEERS_VOLUMED_VOLUMED_H

#include <stdatomic.h>

#include "peers/common/peer.h"

#define VD_SLOTS	  8192u
#define VD_RECORD_BYTES	  512u			/* a sector: written whole or not at all */
#define VD_OBJECT_MIN	  4096u
#define VD_OBJECT_MAX	  (4u << 20)
#define VD_SIZE_MAX	  (((uint64_t)1 << 63) - XSEG_SECTOR)
#define VD_OBJECTS_MAX	  ((uint64_t)1 << 32)	/* of a volume that is made, or grows */
#define VD_PREFIX_BYTES	  64			/* a name of 63 and ':' */
#define VD_LOAD_PAGES	  256u			/* the catalogue is read by 1 MiB */
#define VD_ZERO_PAGES	  256u
#define VD_JOB_DEPTH	  16u			/* background requests in flight */
#define VD_JOB_SLICE	  4096u			/* objects of a volume, then it is another's turn */
#define VD_RESERVED	  (VD_JOB_DEPTH + 1)	/* own requests that split I/O never gets */
#define VD_LINE_BYTES	  512u
#define VD_USERS_BYTES	  256u			/* of text: who has a volume open */
#define VD_NAMED	  4096u			/* names that a port remembers: 128 KiB */
#define VD_RETRY_NS	  1000000000ull
#define VD_CONNECT_NS	  50000000ull		/* looks for a downstream that is not there yet */

/* A slot of the catalogue, as recorded.
 *
 *   from       to         when                                             by
 *   FREE       LIVE       a volume is created                              volumed_admin.c
 *   LIVE       LIVE       it grows                                         volumed_admin.c
 *   LIVE       SHRINKING  it shrinks: size_bytes is the new size           volumed_admin.c
 *   LIVE       REMOVING   it is removed                                    volumed_admin.c
 *   SHRINKING  LIVE       what was beyond the new size is deleted          job.c
 *   REMOVING   FREE       all of its objects are deleted                   job.c
 *   FREE       any        so says its record; DAMAGED: that cannot be      catalog.c, loading
 *                         believed (never recorded)
 *
 * vd_volume_become() (volume.c) alone changes it, once all records have been read.
 */
enum vd_slot_state { VD_FREE, VD_LIVE, VD_REMOVING, VD_SHRINKING, VD_DAMAGED, VD_NR_STATES };

struct vd_meta {
	char name[XSEG_NAME_MAX];		/* DAMAGED: as far as it can be read */
	enum vd_slot_state state;
	uint32_t generation;			/* 16 bits; each volume in a slot has the next */
	uint64_t size_bytes;
	uint64_t object_size;
	uint64_t cut_bytes;			/* SHRINKING: the size before */
};

struct vd_volume {
	/* Read by every port (V1). */
	_Alignas(64) _Atomic uint32_t id;
	uint64_t serial;			/* no other volume of this process had it, or 0 */
	uint8_t shift;				/* log2 of the object size */
	uint8_t prefix_len;
	_Atomic uint64_t size_bytes;
	char prefix[VD_PREFIX_BYTES];		/* "VOL:", padded with zeroes */
	/* Port 0's thread. */
	struct vd_meta meta;			/* what the catalogue holds */
	struct xreq *waiter;			/* an admin's resize, until the shrink is done */
	/* Of its job: port 0's thread, and who has the turn. */
	struct vd_volume *next_job;
	uint64_t next_object;			/* all before it are deleted */
	uint64_t retry_ns;			/* waits until then, for its next turn */
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
	int64_t result;				/* parent: sum, or the first error */
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

struct vd_port {
	struct vd_named *named;			/* VD_NAMED; the port's thread */
	struct vd_fifo held;			/* wait for the catalogue */
	struct vd_fifo splitting;		/* parents with parts not sent */
	uint32_t children;			/* out, of this port's parents */
	_Atomic uint32_t busy;			/* own requests out; written by the port's thread */
};

/* The one record on its way (V3), and the reading of all. Port 0's thread. */
struct vd_catalog {
	_Atomic int load;			/* enum vd_load */
	_Atomic int error;			/* why it could not be read so far, or 0 */
	bool wanted;				/* recovered: may be read */
	uint32_t loaded;			/* records read */
	uint64_t retry_ns;
	struct xreq *r;				/* being read or written */
	void (*written)(struct peer_port *pp, int rc);
	const uint32_t *page;			/* VD_LOAD_PAGES; the first for records, too */
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
	VD_JOB_NONE, VD_JOB_PASS, VD_JOB_FLUSH, VD_JOB_RECORD, VD_JOB_RECORDING, VD_JOB_NR_STEPS
};

/* One volume at a time has objects deleted; see job.c. */
struct vd_job {
	_Atomic uint32_t turn;			/* the port whose thread has the fields below */
	struct vd_volume *v;
	enum vd_job_step step;
	uint64_t next, end;			/* objects to delete in this pass */
	uint64_t zero_next, zero_end;		/* bytes of the volume to zero in this pass */
	uint32_t out;				/* requests in flight */
	uint64_t retry_ns;			/* something failed: until then v waits; or 0 */
	bool zeroes_by_write;			/* the store knows no WRITE_ZEROES */
	_Atomic uint64_t deleted;		/* objects of this slice, over all passes */
	/* Port 0's thread. */
	struct vd_volume *queue, **queue_last;
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
	struct vd_context *context;		/* by request index */
	struct vd_port *port;
	uint32_t *page;				/* the catalogue's, then VD_ZERO_PAGES of zeroes */
	struct vd_catalog catalog;
	struct vd_admin admin;
	struct vd_job job;
	uint32_t nr_jobs;		/* port 0's: volumes that are REMOVING or SHRINKING */
	uint64_t serial;		/* port 0's: the last volume's */
	_Atomic uint32_t nr_volumes, nr_removing, nr_damaged, nr_stats;
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

/* ---- volumed.c --------------------------------------------------------------------------- */

/* Sends an own request, whose answer goes to done(). 0, or an error: the caller still has it. */
int vd_submit(struct peer_port *pp, struct xreq *r,
	      void (*done)(struct peer_port *, struct xreq *)) XSEG_MUST_CHECK;

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
bool vd_object_size_ok(uint64_t bytes);
bool vd_size_ok(uint64_t bytes);		/* of a volume */
/* Objects that a volume of that size may have. */
uint64_t vd_volume_objects(const struct vd_meta *meta, uint64_t size_bytes);

/* Port 0's thread: by name (not FREE, not DAMAGED), or NULL; an unused slot, or NULL. */
struct vd_volume *vd_volume_find(struct volumed *vd, const char *name);
struct vd_volume *vd_volume_unused(struct volumed *vd);
/* The slot whose damaged record bears that name, or NULL. */
struct vd_volume *vd_volume_damaged(struct volumed *vd, const char *name);
/* v becomes what has just been recorded: publishes or withdraws it, begins its job. */
void vd_volume_become(struct peer_port *pp, struct vd_volume *v, const struct vd_meta *meta);
/* Clients may read past this peer (xseg/direct.c) while all volumes are what they were when that
 * was learned: from when the catalogue is read, but while something is deleted that they could
 * still find below. */
void vd_direct_follow(struct volumed *vd);

/* ---- catalog.c --------------------------------------------------------------------------- */

void vd_record_encode(const struct vd_meta *meta, uint32_t slot, void *record);
/* 0; -EPROTO: of another version; -EBADMSG: damaged. */
int vd_record_decode(const void *record, uint32_t slot, struct vd_meta *meta) XSEG_MUST_CHECK;

/* Port 0's thread. Writes a slot's record (FUA); written() gets 0 or why not. False: one is on its
 * way; try again. */
bool vd_catalog_write(struct peer_port *pp, struct vd_volume *v, const struct vd_meta *meta,
		      void (*written)(struct peer_port *pp, int rc));
/* Goes on with reading. Returns when to be called again. */
uint64_t vd_catalog_poll(struct peer_port *pp);

/* ---- split.c ----------------------------------------------------------------------------- */

void vd_split_begin(struct peer_port *pp, struct xreq *r);

/* ---- job.c ------------------------------------------------------------------------------- */

/* v is REMOVING or SHRINKING: its objects will be deleted. Port 0's thread. */
void vd_job_add(struct peer_port *pp, struct vd_volume *v);
uint64_t vd_job_poll(struct peer_port *pp);
/* Objects that are still to be deleted. Port 0's thread. */
uint64_t vd_job_left(const struct volumed *vd, const struct vd_volume *v);

/* ---- volumed_admin.c --------------------------------------------------------------------- */

int64_t vd_admin_command(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size);
uint64_t vd_admin_poll(struct peer_port *pp);
/* Answers who waits for a shrink: it is done, or goes on at the next start. */
void vd_admin_shrunk(struct peer_port *pp, struct vd_volume *v);

#endif
