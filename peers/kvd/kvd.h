/* kvd - what the files of kvd share: values by key, as records of an append-only log.
 *
 * A change is appended to the log (peers/alog), and the index gets its place. A get is sent on to
 * the peer below, which answers the client itself. The form of requests is xseg/kv_wire.h. The
 * design: docs/design/kvd.md; how it was attacked: docs/design/kvd-attacks.md.
 *
 *   file        what is there
 *   kvd.c       the class, options, what a port does each round
 *   life.c      memory, the id and the prefix, opening, naming
 *   logged.c    what the log asks of its user: sending, the index at opening and at copies
 *   date.c      kvd's time, which never goes back
 *   keep.c      the opening's second part: which large values there are; the preload
 *   large.c     handles: BEGIN, HOLD, DROP, PIECE; what COMMIT waits for; zones that go back
 *   part.c      PART
 *   clear.c     DELETE_ALL, and the sweep that it begins
 *   flush.c     FLUSH, and answers that wait for the log
 *   query.c     GET, EXISTS, INFO, and looking at a record that a client cannot read
 *   scan.c      SCAN
 *   parse.c     the parsing of queries and changes; what they will need is prefetched
 *   change.c    changes: conditions, the append, answers, and changes that a predecessor began
 *   paged.c     puts whose value goes below from the client's own pages
 *   value.c     new values that are made of old ones: APPEND, INCR and so on; a put's to the log
 *   record.c    kvd's own requests and reads; identities; whether a record verifies
 *   backup.c    BACKUP
 *   salvage.c   the command `salvage`: BACKUP of a log whose heads are damaged
 *   admin.c     commands, of which `verify` reads all; counters
 *   table/      the index: identity -> place; large values: zones, and clients that have them
 *
 * Contract: one thread, that of port 0. No callback blocks. Nothing is allocated after init,
 * but for a salvage.
 *
 *   state    from            when
 *   OPENING  (begin), OPEN   the log is read; again after the store lost what it had answered
 *   NAMING   OPENING         the log is new: its secret is written, to both copies of the head
 *   KEEPING  OPENING, NAMING records of large values are read; other zones of their kind go
 *   OPEN     KEEPING         requests are served
 *   BROKEN   OPENING         the log cannot be opened: requests are answered with the error
 *   SALVAGING, SALVAGED      from BROKEN, see salvage.c
 *
 * Requests wait in one of these lists:
 *   held     in any order, until the log is OPEN
 *   begun    STARTED or APPLIED by a predecessor, until the log is OPEN
 *   waiting  changes, for room in the tail, a job, or a read; oldest first
 *   behind   for a put that is on its way (paged.c): changes of its key, and the begin of a backup
 *   written, stable   done, and not answered before their position is (option sync)
 *   barriers flushes of what an earlier process may have left, for the log's FLUSH
 *   no_job   queries, for a job
 *   begins   BEGIN, for zones
 *   parts    PART, for a request or zones
 *   commits  COMMIT, for the flush of its parts; oldest first
 *   jobs     each has a read of kvd's own out, or wants one
 */
#ifndef PEERS_KVD_H
#define PEERS_KVD_H

#include "peers/alog/alog.h"
#include "peers/common/runtime/peer.h"
#include "peers/common/say/kv.h"
#include "peers/kvd/table/index.h"
#include "peers/kvd/table/large.h"
#include "peers/kvd/table/paged.h"
#include "peers/kvd/table/room.h"
#include "xseg/kv_wire.h"

#define KVD_ID_FROM	0x8000u			/* low 16 bits of a kvd's id are at or above */
#define KVD_JOBS	32u
#define KVD_BIG_READS	4u
#define KVD_SMALL_READS 14u
#define KVD_AHEAD_READS 16u			/* of scans */
#define KVD_BIG_PAGES	257u
#define KVD_SMALL_PAGES 18u			/* header and longest key, at any place */
#define KVD_AHEAD_PAGES 2u			/* header and most keys */
#define KVD_REQUESTS	64u
#define KVD_NR_READS	(KVD_BIG_READS + KVD_SMALL_READS + KVD_AHEAD_READS)
#define KVD_KEEPERS	8u
#define KVD_PARTS	24u			/* out at a time; others of kvd have the rest */
#define KVD_OWN_MAX	8192u			/* large values, at most: the head names them */
#define KVD_OWED	500u			/* peers */
#define KVD_SECOND	1000000000ull

enum { KVD_WORD_ID = 2 };			/* of a peer's own words in the segment */

struct kvd;

/* From BROKEN on requests are answered with the error. */
enum kvd_state {
	KVD_OPENING, KVD_NAMING, KVD_KEEPING, KVD_OPEN, KVD_BROKEN, KVD_SALVAGING, KVD_SALVAGED
};
enum kvd_full { KVD_REFUSE, KVD_EVICT };
enum kvd_sync { KVD_NEVER, KVD_WRITTEN, KVD_ALWAYS, KVD_TIMED };

enum kvd_stat {
	KS_PUTS, KS_GETS, KS_DELETES, KS_HITS, KS_MISSES, KS_SCANS, KS_LOOKS, KS_BAD_RECORDS,
	KS_EXPIRED, KS_EVICTED, KS_REFUSED, KS_PRELOADED_BYTES, KS_KEYS, KS_LIVE_BYTES,
	KS_DIRTY_BYTES, KS_LARGE_KEYS, KS_LARGE_BYTES, KVD_NR_STATS
};

struct kvd_fifo {				/* requests by ->next */
	struct xreq *first, **last;
};

/* The first page of kvd's arena. `magic` is written last. */
struct kvd_arena {
	uint64_t magic, owner;
	uint32_t zones, zone_bytes, tail_pages;
	_Atomic uint32_t is_new;		/* 1: no kvd has had a log open in it */
	_Atomic uint64_t time_s;		/* the latest that anything was judged by */
	_Atomic uint64_t owed[KVD_OWED];	/* A2 of flush.c: senders; 0: none */
};
_Static_assert(sizeof(struct kvd_arena) <= XSEG_PAGE_SIZE, "its words have a page");

/* The user's words in the log's head. */
struct kvd_words {
	uint64_t magic;
	uint8_t secret[16];			/* of the hash */
	uint64_t time_s;			/* D2 of date.c */
	uint64_t cleared;			/* E3 of clear.c; of KVD_WORDS_CLEARED */
};
/* The second one is of a log that once had a DELETE_ALL: a version that knows none refuses it. */
#define KVD_WORDS	  0x3144524f57445648ull	/* "HVDWORD1" */
#define KVD_WORDS_CLEARED 0x3244524f57445648ull	/* "HVDWORD2" */
_Static_assert(sizeof(struct kvd_words) <= ALOG_USER_BYTES, "they fit into the head");

/* A read of kvd's own: of a record, or the begin of one; or of a piece of a large value. */
struct kvd_read {
	struct kvd_read *next;			/* free */
	uint8_t *pages;
	uint32_t nr_pages;
	uint64_t zone, epoch;
	uint32_t place, bytes;			/* in the zone */
	bool own;				/* the zone is a large value's */
	const uint8_t *data;			/* the first byte */
	int64_t result;
	struct kvd_job *job;			/* that goes on when it is back */
};

/* What a record's header says, as far as conditions need it. */
struct kvd_fact {
	uint64_t zone, version;
	uint32_t place, expiry;
};

/* A client's request that needs reads of kvd's own. */
struct kvd_job {
	struct kvd_job *next;			/* free, or wanting a read */
	struct xreq *r;
	void (*run)(struct kvd *k, struct kvd_job *j);
	struct kvd_read *read;			/* that is back, or whose data is still needed */
	bool out;				/* its read is */
	uint32_t tries;
	uint32_t at;				/* change: whose record is being read */
	struct kvd_fact *fact;			/* KV_BATCH_MAX */
	/* SCAN */
	uint64_t cursor, last_hash;
	uint32_t skip;				/* so many of the cursor's hash are passed */
	uint32_t nr, used;			/* entries, bytes of the answer */
	uint32_t group, group_nr;		/* where those of last_hash begin; how many */
	uint64_t ahead;				/* a hash: where reading ahead goes on */
	struct kvd_job *awaits;			/* one of kvd_jobs.ahead; NULL: none */
	/* of kvd_jobs.ahead: the scan for which it reads; NULL: none any more */
	struct kvd_job *scan;
};

/* One of kvd's own requests, by its index in the segment; or a COMMIT of a client's. */
struct kvd_context {
	struct alog_io *io;			/* of the log */
	struct kvd_read *read;
	struct xreq *part;			/* a client's, of which it is the write */
	struct large_run *run;			/* of the part */
	uint64_t number;			/* the handle; of a COMMIT, too */
};

struct kvd_options {
	uint64_t size_bytes, keys_max, tail_bytes, zone_bytes;
	uint32_t full, reserve_percent;
	char prefix[XSEG_NAME_MAX], preload[16], sync_text[16];
};

struct kvd_memory {				/* life.c */
	uint8_t *base;
	uint64_t base_bytes;
	uint32_t *extent;			/* first page of each of the arena's extents */
	struct kvd_arena *arena;
	uint64_t again_ns;			/* L4: another log is tried then; 0: at once */
};

struct kvd_lists {
	struct kvd_fifo held, begun, waiting, behind, no_job, written, stable, barriers;
	struct kvd_fifo begins, parts, commits;
};

struct kvd_reads {				/* record.c */
	struct kvd_read read[KVD_NR_READS], *big_free, *small_free, *ahead_free;
	uint32_t out;
};

struct kvd_jobs {				/* record.c */
	struct kvd_job job[KVD_JOBS], *free, *wants_first, **wants_last;
	struct kvd_job ahead[KVD_AHEAD_READS];	/* scan.c */
	struct kvd_fact *facts;			/* of all jobs */
	uint32_t nr;
};

#define KVD_AHEAD_KEY 44u			/* bytes of a key; longer ones are hashed anew */

/* Keys of the requests that come next, of whose identities kvd_prefetch() has made the hashes. */
struct kvd_ahead {
	uint32_t nr, at;			/* at: the next, if each request asks for its own */
	struct {
		uint64_t id[2];
		uint32_t bytes;
		uint8_t key[KVD_AHEAD_KEY];
	} known[PEER_TAKE];
};

#define KVD_SEEN 2048u				/* twice KV_BATCH_MAX and a little */

/* Of the request that is being looked at. */
struct kvd_now {
	uint8_t *batch, *value;			/* a batch; a value that is made */
	uint32_t batch_bytes;
	struct kvd_work *work;
	struct alog_put *put;
	struct alog_place *at;
	uint8_t *key, *record;			/* of a query; of a record from the tail */
	uint16_t seen[KVD_SEEN];		/* by identity: the change's number + 1; 0: none */
	struct kvd_ahead ahead;
};

struct kvd_time {				/* date.c */
	uint64_t s;				/* kvd's */
	uint64_t until, asked;	/* D2: the head has; a head on its way has; 0: none is */
	uint64_t held_ns;			/* D3: until then requests wait */
	bool used;				/* D4: a record expires */
	bool ends;				/* kvd stops */
};

struct kvd_preload {
	uint64_t zone, lowest, left;		/* goes down; bytes */
	uint32_t from;
	bool begun;
};

#define KVD_VERIFY_BYTES 16384u
struct kvd_verify {
	struct xreq *r;				/* the command; NULL: none is under way */
	struct xreq *waits;			/* the same, for the log to be open */
	uint64_t until_ns;			/* so long */
	uint64_t records, bytes, live, bad, bad_live, pieces, bad_pieces;
	struct kvd_job job;			/* reads the pieces of a large value */
	struct large_run *run;			/* that one; NULL: none */
	uint32_t *sums, piece, nr_pieces;
	bool busy, is_bad, over;		/* busy: the job has a read, or wants one */
	char *buf;
	struct kv_text text;
};

struct kvd_backup {
	struct xreq *r;				/* that is being filled, or NULL */
	uint64_t cursor;			/* of the next request; 0: none is under way */
	uint64_t before, cleared, bad, asked_ns;
	uint32_t nr, used;
	struct large_run *run;			/* of the last answer */
	bool walked;				/* all records are told */
};

struct kvd_salvage {				/* SALVAGING */
	struct xreq *r;				/* the command, in any state; NULL: none */
	uint64_t *zone, cursor;			/* that the store lists */
	uint32_t nr, room;
	struct kvd_job job;
	bool asks, listed, opens, walks;
	bool is_full;				/* the index is */
};

struct kvd_large {				/* large.c */
	struct large t;
	uint64_t look_ns;			/* when clients are looked for again */
	uint64_t expire_ns;			/* when expired values are */
	uint32_t parts_out;
	/* KEEPING */
	struct kvd_job job[KVD_KEEPERS];
	uint64_t slot;				/* the next of the index; or INDEX_NONE */
	uint32_t unread;			/* records that could not be read */
};

/* clear.c: a record of type CLEAR. */
struct kvd_clear_record {
	uint64_t zone, sequence;
	uint32_t place, bytes;			/* bytes 0: there is none */
	uint32_t at_s;				/* of one that waits */
};

struct kvd_clear {
	struct kvd_clear_record last, waits;
	uint64_t sequence;			/* E1: what is below is dead */
	uint64_t counted_from;			/* E2: what is below is not counted */
	uint64_t cursor;			/* of the sweep: a hash */
	bool sweeps;
};

/* A stop. */
struct kvd_stop {
	bool head_asked, settled;		/* the last head; all is below and stable */
	uint64_t end;				/* that was asked for last */
};

/* Of the zone that is being emptied: how much of it was kept for having been got, and
 * up to which place that was decided. */
struct kvd_evicted {
	uint64_t zone, kept;
	uint32_t decided;
	uint64_t lost_zone, lost_hash;		/* of the last record that was lost; zone 0: none */
};

struct kvd {
	struct peer peer;
	struct kvd_options opt;
	enum kvd_sync sync;
	uint64_t sync_ns;
	uint32_t id;
	enum kvd_state state;
	int error;				/* BROKEN */
	uint64_t opened_ns, began_ns;
	struct peer_port *pp;

	struct kvd_memory mem;
	struct alog_config cfg;
	struct alog_cost cost;
	uint32_t record_max;			/* a record, or a batch, in the log */
	struct alog *log;
	struct index index;
	struct kvd_context *context;
	uint32_t log_out;			/* requests of the log */

	uint8_t secret[16];
	struct kvd_time time;
	uint32_t naming;			/* NAMING: heads written */

	struct kvd_lists q;
	struct kvd_reads reads;
	struct kvd_jobs jobs;
	struct kvd_now now;
	uint64_t sync_at_ns;			/* when the appended is wanted below; or NEVER */
	struct kvd_evicted evicted;
	struct room room;
	struct kvd_clear clear;
	struct paged paged;
	struct kvd_preload preload;
	struct kvd_large large;
	struct kvd_verify verify;
	struct kvd_backup backup;
	struct kvd_salvage salvage;
	struct kvd_stop stop;

	char target[XSEG_TARGET_MAX];		/* "+PREFIX:" */
	uint32_t target_len;
	struct xseg_stats *stats;
};

static inline struct kvd *kvd_of(struct peer *p)
{
	return (struct kvd *)p;
}

static inline void fifo_init(struct kvd_fifo *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static inline void fifo_push(struct kvd_fifo *q, struct xreq *r)
{
	r->next = NULL;
	*q->last = r;
	q->last = &r->next;
}

static inline void fifo_push_first(struct kvd_fifo *q, struct xreq *r)
{
	r->next = q->first;
	if (!q->first)
		q->last = &r->next;
	q->first = r;
}

static inline struct xreq *fifo_pop(struct kvd_fifo *q)
{
	struct xreq *r = q->first;

	q->first = r->next;
	if (!q->first)
		q->last = &q->first;
	return r;
}

static inline void kvd_count(struct kvd *k, enum kvd_stat what, uint64_t by)
{
	xseg_stats_add(k->stats, what, by);
}

/* ---- kvd.c ---- */
void kvd_serve(struct kvd *k, struct xreq *r);	/* OPEN: does it, or has it wait */
int kvd_sync_parse(const char *text, enum kvd_sync *sync, uint64_t *ns);

/* ---- life.c ---- */
int kvd_cost(const struct kvd *k, struct alog_config *cfg, struct alog_cost *cost);
uint64_t kvd_arena_bytes(const struct kvd *k);
uint64_t kvd_private_bytes(const struct kvd *k);
int kvd_life_init(struct kvd *k, struct xseg_error *err);
void kvd_life_fini(struct kvd *k);
void kvd_life_poll(struct kvd *k);		/* the state */
bool kvd_make_log(struct kvd *k);		/* L4; false: no memory, and the old one stays */
uint32_t kvd_id_of(const char *prefix);

/* ---- date.c ---- */
#define KVD_AHEAD_S 8u				/* D2 */
void kvd_see_date(struct kvd *k);
void kvd_date_begin(struct kvd *k);		/* the log is open */
void kvd_date_end(struct kvd *k);		/* the head is to have the time, and no later one */
uint64_t kvd_time(const struct kvd *k);		/* D2: by which records are judged */
bool kvd_time_lags(struct kvd *k);		/* D3: requests have to wait */
/* An expiry of 0 is never. */
bool kvd_is_expired(struct kvd *k, uint32_t expiry);

/* ---- logged.c ---- */
/* The reason of a log that is BROKEN with that error, and what to do. */
#define KVD_BROKEN_FORMAT "its log +%s cannot be opened: %s"	/* prefix, reason */
const char *kvd_why_broken(int error);
extern const struct alog_user kvd_log_user;	/* ctx is to be set */
/* The index has the record of the identity at this place from now on. There is room (change.c). */
void kvd_index_put(struct kvd *k, const uint64_t id[2], const struct alog_place *at,
	const struct xrecord *rec);
/* The same in two steps: the log has the record, and it does not show; then it shows. */
void kvd_index_expect(struct kvd *k, const uint64_t id[2], const struct alog_place *at);
void kvd_index_show(struct kvd *k, const struct paged_put *p);

/* ---- record.c: requests ---- */
uint32_t kvd_page_of(void *ctx, const void *at);
/* False: it could not be sent, and is free. */
bool kvd_submit(struct kvd *k, struct xreq *r, struct kvd_context c);
void kvd_target(const struct kvd *k, uint64_t zone, struct xreq *r);
void kvd_identity(const struct kvd *k, const void *key, uint32_t bytes, uint64_t id[2]);

/* ---- record.c ---- */
enum kvd_got { KVD_HERE, KVD_SENT, KVD_LATER };
/* Reads `bytes` from the begin of the entry's record. HERE: j->read has it, from the tail. SENT:
 * j->run() is called when it is back. LATER: the same when a read is free, and j->read is NULL. */
enum kvd_got kvd_read_record(struct kvd *k, struct kvd_job *j, const struct index_entry *e,
	uint32_t bytes);
/* The same; LATER: the caller is to ask again. */
enum kvd_got kvd_try_record(struct kvd *k, struct kvd_job *j, const struct index_entry *e,
	uint32_t bytes);
/* The same with one of the reads that are for scans; `bytes` are in KVD_AHEAD_PAGES. */
enum kvd_got kvd_try_ahead(struct kvd *k, struct kvd_job *j, const struct index_entry *e,
	uint32_t bytes);
/* The job goes on when there is room for a read. */
void kvd_job_wants(struct kvd *k, struct kvd_job *j);
/* The same of a range of whole pages of a large value's zone. */
enum kvd_got kvd_read_own(struct kvd *k, struct kvd_job *j, uint64_t zone, uint32_t place,
	uint32_t bytes);
/* The header verifies. `whole`: key and value, too, and the read has them. */
bool kvd_record_ok(const struct kvd *k, const struct kvd_read *rd, bool whole,
	struct xrecord *rec);
/* The same of bytes in memory. */
bool kvd_bytes_ok(struct kvd *k, const struct index_entry *e, const uint8_t *data, uint32_t bytes,
	bool whole, struct xrecord *rec);
/* Counts and tells a record that is damaged, once. */
void kvd_record_bad(struct kvd *k, uint64_t slot, struct index_entry *e);
/* Its key, and its value behind; `data` is the record at that place. */
static inline const uint8_t *kvd_record_key(const uint8_t *data, uint32_t place,
	const struct xrecord *rec)
{
	return data + xrecord_data_at(place, rec->key_bytes, rec->flags);
}
void kvd_read_put(struct kvd *k, struct kvd_job *j);	/* j->read, if there is one */
struct kvd_read **kvd_read_list(struct kvd *k, const struct kvd_read *rd); /* where it is free */
void kvd_read_back(struct kvd *k, struct kvd_read *rd, int64_t result);
struct kvd_job *kvd_job_get(struct kvd *k, struct xreq *r,
	void (*run)(struct kvd *k, struct kvd_job *j));	/* NULL: none is free */
void kvd_job_put(struct kvd *k, struct kvd_job *j);
void kvd_job_answer(struct kvd *k, struct kvd_job *j, int64_t result);	/* and puts it */
void kvd_jobs_poll(struct kvd *k);		/* those that want a read go on */

/* ---- query.c ---- */
void kvd_query(struct kvd *k, struct xreq *r);
void kvd_queries_poll(struct kvd *k);		/* those that wait for a job go on */

/* ---- scan.c ---- */
void kvd_scan(struct kvd *k, struct xreq *r, const struct kv_query *q);
void kvd_scan_forget(struct kvd *k);		/* what was read ahead is of another log */

/* ---- parse.c ---- */
/* As kvd_identity(), which it spares if the key was seen ahead. */
void kvd_identity_seen(struct kvd *k, const void *key, uint32_t bytes, uint64_t id[2]);
/* The struct of a query, and its key into k->key. */
int kvd_query_parse(struct kvd *k, const struct xreq *r, struct kv_query *q) XSEG_MUST_CHECK;
bool kvd_is_part(const struct xreq *r);		/* of a WRITE */
int kvd_part_parse(struct kvd *k, const struct xreq *r, struct kv_part *part) XSEG_MUST_CHECK;
/* One change of a batch, checked. */
struct kvd_work {
	struct kv_change c;
	uint64_t id[2];
	const uint8_t *key, *value;		/* in k->batch */
	bool left;				/* the value is in the request (kvd_lay()) */
	struct index_entry e;			/* of its identity, if `known` */
	bool known, present;			/* present: it has a record that has not expired */
	bool does;				/* it is appended */
	int result;
	struct kvd_fact fact;			/* if its record was looked at */
};
/* Copies and checks a batch: k->work has its changes. Returns how many, or an error. */
int kvd_batch_parse(struct kvd *k, const struct xreq *r) XSEG_MUST_CHECK;
uint8_t kvd_kind_of(struct kvd *k, const struct xreq *r);	/* unchecked: of its first change */
/* Writes the outcome of a batch's change into the client's page. */
void kvd_outcome(struct kvd *k, const struct xreq *r, uint32_t i, int result, uint32_t bytes,
	uint64_t version, uint64_t number);

/* ---- large.c ---- */
int kvd_large_open(struct kvd *k, void *arena);	/* -ENOMEM */
uint64_t kvd_value_max(const struct kvd *k);
/* Of a client's: HOLD, DROP or BEGIN, which is work[0]. */
void kvd_large_change(struct kvd *k, struct xreq *r);
/* A COMMIT: 0: it may be done; 1: it waits in its list; or its result. */
int kvd_commit_check(struct kvd *k, struct xreq *r, const struct kvd_work *w);
struct xreq *kvd_commit_next(struct kvd *k);	/* that has waited; NULL: none */
bool kvd_commits_due(struct kvd *k);
/* The value of its record, into k->value; and its record is appended. */
void kvd_commit_make(struct kvd *k, const struct kvd_work *w, struct alog_put *put);
void kvd_commit_done(struct kvd *k, const struct kvd_work *w, const struct alog_put *put,
	const struct alog_place *at);
void kvd_piece(struct kvd *k, struct xreq *r, const struct kv_query *q);
/* Returns when it wants to be called again. */
uint64_t kvd_larges_poll(struct kvd *k);

/* ---- part.c ---- */
void kvd_part(struct kvd *k, struct xreq *r);
void kvd_part_done(struct kvd *k, struct kvd_context c, int64_t result);
void kvd_parts_poll(struct kvd *k);

/* ---- clear.c ---- */
void kvd_clear_begin(struct kvd *k);		/* an opening begins */
/* True: the record is a clear, or counts for nothing by the head. */
bool kvd_clear_found(struct kvd *k, uint64_t zone, const struct alog_hint *hint);
void kvd_clear_known(struct kvd *k);		/* all records are found */
/* Of those in the index, each that the last clear has made dead becomes a ghost. While the index
 * has sequences. */
void kvd_clear_sweep_found(struct kvd *k);
/* Of a record of type CLEAR. */
enum alog_verdict kvd_clear_judge(struct kvd *k, uint64_t zone, const struct alog_hint *hint);
void kvd_clear_copied(struct kvd *k, uint64_t from_zone, const struct alog_hint *from,
	uint64_t to_zone, const struct alog_hint *to);
/* The zone's damaged record of a clear that counts; false: it has none. */
bool kvd_clear_lost(struct kvd *k, uint64_t zone, struct alog_hint *hint);
void kvd_clear_make(struct kvd *k, const struct kvd_work *w, struct alog_put *put);
void kvd_clear_put(struct kvd *k, const struct alog_place *at, const struct xrecord *rec);
bool kvd_clear_lags(struct kvd *k);		/* all requests have to wait (E4) */
bool kvd_clear_sweeps(const struct kvd *k);	/* there will be room soon (E5) */
uint64_t kvd_clear_poll(struct kvd *k);		/* when it wants to be called again */

/* ---- keep.c ---- */
void kvd_keep_begin(struct kvd *k);
bool kvd_keep_poll(struct kvd *k);		/* true: all large values are known */
void kvd_preload_begin(struct kvd *k);		/* once */

/* ---- value.c: to the log ---- */
/* The value that was left is copied to where its record will stand. -EPROTO: its CRC is wrong. */
int kvd_lay(struct kvd *k, const struct xreq *r, const struct alog_place *next) XSEG_MUST_CHECK;

/* ---- parse.c: ahead ---- */
void kvd_prefetch(struct peer_port *pp, struct xreq *const *r, uint32_t nr);

/* ---- paged.c ---- */
/* The put of work[0] need not be copied. */
bool kvd_paged_may(const struct kvd *k, const struct kvd_work *w);
/* Appends it. The request is STARTED, and kvd_paged_next() returns it. */
int kvd_paged_append(struct kvd *k, struct xreq *r, struct alog_place *at) XSEG_MUST_CHECK;
/* One of a key of these changes is on its way. */
bool kvd_paged_meets(struct kvd *k, uint32_t nr);
/* Step 4: the next one that is written below, with its end; NULL: none is. */
struct xreq *kvd_paged_next(struct kvd *k, uint64_t *end);
bool kvd_paged_due(struct kvd *k);		/* one can be answered */
/* The log is read anew: whether they were appended is to be found out, as by a successor. */
void kvd_paged_leave(struct kvd *k);

/* ---- change.c ---- */
static inline bool kvd_is_of_large(uint8_t kind)
{
	return kind >= KV_HOLD && kind <= KV_COMMIT;
}
void kvd_change(struct kvd *k, struct xreq *r);
void kvd_changes_poll(struct kvd *k);
bool kvd_changes_due(struct kvd *k);		/* one can be answered */

/* ---- flush.c ---- */
/* What is appended up to `end` goes below as `sync` says, now or later. */
void kvd_want_below(struct kvd *k, uint64_t end);
void kvd_flush(struct kvd *k, struct xreq *r);
void kvd_answers_poll(struct kvd *k);
bool kvd_answers_due(struct kvd *k);
void kvd_owe_all(struct kvd *k);		/* the store has lost what it had answered */
bool kvd_owed(struct kvd *k, const struct xreq *r);	/* and it is told of that by an error */

/* ---- logged.c: begun changes ---- */
/* The notes of a change: where its first record stands, and its version (C6 of change.c). */
enum { KVD_NOTE_ZONE, KVD_NOTE_PLACE, KVD_NOTE_SEQUENCE, KVD_NOTE_VERSION };
/* One that a predecessor had STARTED or APPLIED. */
void kvd_change_begun(struct kvd *k, struct xreq *r);
/* The opening found a record: whether a STARTED change has made it. */
void kvd_change_found(struct kvd *k, const struct alog_hint *hint);

/* ---- value.c ---- */
/* The record of work[0] is in `rd`; the new value goes into k->value. 0 or the change's result. */
int kvd_value_make(struct kvd *k, struct kvd_work *w, const struct kvd_read *rd,
	const struct xrecord *old, struct alog_put *put, uint64_t *number);
bool kvd_needs_value(uint8_t kind);
/* A record of a key and a value can be, and can be read (B3). */
bool kvd_fits(const struct kvd *k, uint32_t key_bytes, uint64_t value_bytes);

/* ---- admin.c: verify ---- */
int64_t kvd_verify(struct kvd *k, struct xreq *r, struct kv_text *t);
uint64_t kvd_verify_poll(struct kvd *k);	/* when it wants to be called again */
void kvd_verify_fail(struct kvd *k, int error);	/* one that is under way */

/* ---- backup.c ---- */
void kvd_backup(struct kvd *k, struct xreq *r, const struct kv_query *q);
void kvd_backup_poll(struct kvd *k);
void kvd_backup_fail(struct kvd *k, int error);	/* one that is under way */
/* The same; the log's walk ends, too. */
void kvd_backup_break(struct kvd *k, int error);
/* The large value that an answer of the backup had. NULL: it had none, or it is over. */
struct large_run *kvd_backup_run(struct kvd *k, const struct kv_query *q);

/* ---- salvage.c ---- */
int64_t kvd_salvage(struct kvd *k, struct xreq *r, struct kv_text *t);	/* the command */
uint64_t kvd_salvage_poll(struct kvd *k);	/* when it wants to be called again */
void kvd_salvage_request(struct kvd *k, struct xreq *r);	/* BROKEN and behind */
void kvd_salvage_close(struct kvd *k);

/* ---- admin.c ---- */
int64_t kvd_admin(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size);
int kvd_stats_open(struct kvd *k);
void kvd_stats_update(struct kvd *k);

#endif
