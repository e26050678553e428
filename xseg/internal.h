/* internal - the declarations that the files of libxseg share; nobody else includes it.
 *
 * Contract: struct xseg is one attachment of one process. struct xport is used by one thread at a
 * time. Everything reached through xs_* pointers is shared memory.
 *
 * Locks, in the order in which they may be taken. No wait for one is without end (K6 of lock.c):
 *   control lock (kernel, XSEG_LOCK_CONTROL)  the entries of the tables: new names, and ports that
 *	a peer has not had; clients, from their beginning to their end; sweeping and forgetting. It
 *	is the only lock that clients take. It dies with its holder, as all here do.
 *   lock of routes (kernel, XSEG_LOCK_ROUTES)  routes, plugging, the stack's text: servers, the
 *	supervisor and commands take it.
 *   lock of a peer (kernel, XSEG_LOCK_PEER0 + index, ascending)  the entry of a peer that is no
 *	client, while its name lives: taking over from a dead or stopped one, leaving, making its
 *	arena. The functions that make a server serve again take this lock and that of routes. They
 *	never wait for a lock that clients take.
 *   No lock: lanes, extents and blocks of statistics, which are taken by a swap; reading.
 *   member lock (kernel, one byte a member)   held for the life of an attachment. No other
 *	process ever takes it: a free byte proves the member's death (lock.c, K5).
 */
#ifndef XSEG_INTERNAL_H
#define XSEG_INTERNAL_H

#include "xseg/layout.h"
#include "xtypes/xpool.h"
#include "xtypes/xq.h"

#define XSEG_OBSERVER_MEMBER UINT32_MAX
#define XSEG_BATCH	     32
#define XSEG_LATE_NS	     1000000ull	/* nobody rings when a full lane has room again */

struct xseg {
	int fd;			/* the one open file description that holds the member's lock */
	int map_fd;	/* another one, that holds none: for mappings, which keep theirs open */
	int pool_fd;	/* of the file that has the pages; -1: its own has them (pool_file.c) */
	struct xseg *next;		/* that this process has attached: lock.c */
	bool observer;
	bool is_named;			/* its file had a name when it was attached */
	uint32_t member;
	struct xseg_patience patience;	/* set before other threads use it: lock.c */
	uint8_t *base;
	struct xs_geometry geo;	/* checked private copy: the shared one is never read again */
	struct xs_super *super;
	struct xs_member *members;
	struct xs_peer *peers;
	struct xs_port *ports;
	struct xs_bell *bells;
	struct xs_lane *lanes;
	struct xs_req *reqs;
	struct xs_extent *extents;
	_Atomic uint64_t *owners;
	_Atomic uint8_t *touched;
	struct xs_stats *stats;
	struct xs_kept_peer *kept_peers;
	struct xs_kept_port *kept_ports;
	char *stack;
	uint8_t *pages;
	uint32_t nr_pages;
	/* Private copies of requests, by index: a port's own, and below them those that a port has
	 * got from others. They are two, so that what an origin knows of its request stays what it
	 * wrote, also when who has it is a part of this process. */
	struct xreq *views;
	char name[XSEG_NAME_MAX];
};

static inline uint64_t pool_bytes(const struct xseg *seg)
{
	return (uint64_t)seg->geo.nr_extents * XSEG_EXTENT_SIZE;
}

/* An offer of a request that met a full lane. */
struct late_offer {
	uint64_t offer;
	uint16_t to;
};

/* One direction to one other port. */
struct lane_out {
	struct xq_writer w;
	uint16_t to, lane;
	uint8_t queue;
	bool open, staged;
	bool none;			/* the segment had no lane left: it will have none later */
};

struct lane_in {
	struct xq_reader r;
	uint16_t lane;
	bool open;
};

/* Of the I/O that a port sends to volumes: measure.c. The port's thread. */
struct measure {
	uint32_t until;			/* submissions until one is measured */
	uint32_t index;			/* of the request that is being measured, or XSEG_NONE */
	uint64_t at_ns;			/* when it was submitted */
	bool client;			/* its peer is one */
	/* where was told last; block XSEG_NONE: there was none, and is not looked for `absent`
	 * times */
	uint32_t peer, volume, block, absent;
};

struct xport {
	struct xseg *seg;
	struct xseg_peer *peer;
	struct xs_port *sh;
	uint32_t index, generation;
	/* that its server sleeps on: what `sh` says, or should; under the lock of whoever moves
	 * ports between threads, and read without */
	_Atomic uint32_t bell;
	uint64_t own_place;	/* place_word() of what it has, without state and sequence */
	uint32_t req_first, req_nr;		/* checked private copy */
	uint32_t mask_words;		/* of a mask of lanes: those that ports can be in */
	/* The queues that it takes from, from the first to before the second: a client gets no
	 * requests, and who has none of its own no answers (Q7 of port.c) */
	uint32_t first_queue, end_queue;
	struct xpool free;		/* own requests that are FREE; derived from their places */
	void *free_mem;
	struct lane_out *out[2];		/* by receiving port */
	struct lane_in *in[2];			/* by sending port */
	/* lanes worth looking at: private copy of the masks */
	uint64_t pending[2][XSEG_MASK_WORDS];
	uint32_t vain[2];			/* looks into lanes that were in vain: COLD_LOOKS */
	uint32_t turn[2];			/* the lane to begin with: fairness */
	uint16_t staged[2 * XSEG_MAX_PORTS];	/* lanes to publish: queue << 15 | port */
	uint32_t nr_staged;
	bool fresh;				/* something was pushed since they were published */
	/* retried at each flush; room for every request of the segment */
	struct late_offer *backlog;
	uint32_t nr_backlog;
	uint32_t *rung;		/* by bell: its word as we left it, so as not to ring twice */
	/* 1 + the port that it sent to last, and from which it took last, by queue; 0: none yet; of
	 * replies also: none since requests have another partner. The port's thread writes them,
	 * and the thread that sleeps for it reads them: bell.c */
	_Atomic uint16_t sent_to[2], got_from[2];
	uint64_t poll_ns;	/* how long xseg_port_wait() polls */
	/* what others of its thread offer, from head to tail modulo 2^32: near.c; NULL: it is not
	 * one of several */
	struct xseg_near *near;
	uint64_t *near_ring;
	uint32_t near_head, near_tail, near_mask;
	bool near_last;			/* it was looked there last when both had something */
	struct measure measure;
};

/* Ports that one thread serves, by index: near.c. */
struct xseg_near {
	struct xseg *seg;
	struct xport *port[XSEG_MAX_PORTS];
};

struct xseg_peer {
	struct xseg *seg;
	struct xs_peer *sh;
	uint32_t index, generation, nr_ports;
	bool client;				/* as it was opened, whatever the segment says */
	enum xseg_peer_state state;		/* as this process has made it: peer.c */
	enum xseg_peer_state before;		/* as it found it */
	struct xport port[XSEG_PEER_PORTS];
	void *arena;				/* mapped arena, or NULL */
	size_t arena_map_bytes;
	/* blocks that this process writes, a bit each: by threads of several ports (stats.c, T3) */
	_Atomic uint64_t stats_open[4];
};

enum { QUEUE_REQUEST = 0, QUEUE_REPLY = 1 };

/* ---- words: built and taken apart here and nowhere else ---- */

#define PLACE_NO_PORT 0x1ffu

static inline uint64_t place_word(enum xseg_req_state s, uint32_t port, uint32_t gen, uint32_t seq)
{
	return (uint64_t)s << 61 | (uint64_t)(port & 0x1ff) << 52 |
	       (uint64_t)(gen & 0xfffff) << 32 | seq;
}
/* The same from a port's own_place, which is made once. */
static inline uint64_t place_own(uint64_t own_place, enum xseg_req_state s, uint32_t seq)
{
	return own_place | (uint64_t)s << 61 | seq;
}
/* A word's port and generation: the own_place of who has the request. */
static inline uint64_t place_whose(uint64_t w) { return w & 0x1fffffff00000000ull; }
static inline enum xseg_req_state place_state(uint64_t w) { return (enum xseg_req_state)(w >> 61); }
static inline uint32_t place_port(uint64_t w) { return (uint32_t)(w >> 52) & 0x1ff; }
static inline uint32_t place_gen(uint64_t w) { return (uint32_t)(w >> 32) & 0xfffff; }
static inline uint32_t place_seq(uint64_t w) { return (uint32_t)w; }

/* What a lane carries: a request, and the sequence that its place has while the offer is good. */
static inline uint64_t offer_word(uint32_t index, uint64_t place)
{
	return (uint64_t)place_seq(place) << 32 | index;
}

/* An offer of the place's sequence is good: the request is its origin's, or may be sent on. */
static inline bool place_may_be_offered(uint64_t place)
{
	return place_state(place) == XSEG_REQ_PRIVATE || place_state(place) == XSEG_REQ_AT;
}

/* See struct xs_req. */
static inline uint64_t ask_word(uint32_t port, uint32_t seq)
{
	return (uint64_t)(port + 1) << 32 | seq;
}

static inline uint64_t peer_word(enum xseg_peer_state s, uint32_t member, uint32_t gen)
{
	return (uint64_t)s << 56 | (uint64_t)(member & 0xffff) << 32 | gen;
}
static inline enum xseg_peer_state peer_state(uint64_t w)
{
	return (enum xseg_peer_state)(w >> 56);
}
static inline uint32_t peer_member(uint64_t w) { return (uint32_t)(w >> 32) & 0xffff; }
static inline uint32_t peer_gen(uint64_t w) { return (uint32_t)w; }

static inline uint64_t extent_word(enum xs_extent_kind k, uint32_t peer, uint32_t nr)
{
	return (uint64_t)k << 60 | (uint64_t)(peer & 0xffff) << 32 | nr;
}
static inline enum xs_extent_kind extent_kind(uint64_t w) { return (enum xs_extent_kind)(w >> 60); }
static inline uint32_t extent_peer(uint64_t w) { return (uint32_t)(w >> 32) & 0xffff; }
static inline uint32_t extent_nr(uint64_t w) { return (uint32_t)w; }

static inline uint64_t route_word(uint32_t lower, uint64_t epoch)
{
	return epoch << 16 | (lower == XSEG_NONE ? 0 : lower + 1);
}
static inline uint32_t route_lower(uint64_t w)
{
	return (w & 0xffff) ? (uint32_t)(w & 0xffff) - 1 : XSEG_NONE;
}
static inline uint64_t route_epoch(uint64_t w) { return w >> 16; }

/* What is wanted of a cache: it enters above `lower`, or leaves from there. PLUG_DECIDED: all upper
 * peers hold, and their routes are being stored (plug.c). */
#define PLUG_DECIDED (1u << 16)
static inline uint64_t plug_word(enum xseg_plug_op op, uint32_t lower)
{
	return (uint64_t)op << 32 | lower;
}
static inline enum xseg_plug_op plug_op(uint64_t w) { return (enum xseg_plug_op)(w >> 32); }
static inline uint32_t plug_lower(uint64_t w) { return (uint32_t)w & 0xffff; }
static inline bool plug_is_decided(uint64_t w) { return w & PLUG_DECIDED; }

/* gen: HELD: of the incarnation that holds; a successor has still to stop what it sends. */
static inline uint64_t turn_word(enum xseg_turn turn, uint32_t cache, uint32_t gen)
{
	return (uint64_t)turn << 60 | (uint64_t)cache << 32 | gen;
}
static inline enum xseg_turn turn_state(uint64_t w) { return (enum xseg_turn)(w >> 60); }
static inline uint32_t turn_cache(uint64_t w) { return (uint32_t)(w >> 32) & 0xffff; }
static inline uint32_t turn_gen(uint64_t w) { return (uint32_t)w; }

/* Of a text that is there, or of the one that was there while another is being written. */
#define STACK_WRITING (1u << 31)
static inline uint32_t stack_word(uint32_t bytes, uint32_t version)
{
	return (version & 0x3fff) << 17 | bytes;
}
static inline uint32_t stack_bytes(uint32_t w) { return w & 0x1ffff; }
static inline uint32_t stack_version(uint32_t w) { return w >> 17 & 0x3fff; }

static inline uint32_t lane_word(uint32_t queue, uint32_t from, uint32_t to)
{
	return 1u << 31 | queue << 30 | from << 10 | to;
}

/* ---- layout.c ---- */
/* Of this build: L1 of layout.h. */
uint64_t layout_stamp(void);
/* What a configuration makes; -EINVAL: its counts are out of range. */
int xs_geometry_from_config(
	const struct xseg_config *cfg, struct xs_geometry *geo, struct xseg_error *err);
/* What a superblock's counts make; false: they are out of range. */
bool xs_geometry_again(const struct xs_geometry *found, struct xs_geometry *geo);

/* ---- segment.c ---- */
/* Memory for [at, at + bytes) of the file now, so that nobody meets SIGBUS later. Returns an
 * errno. */
int xs_file_take(int fd, uint64_t at, uint64_t bytes);

/* ---- pool_file.c ---- */
/* A file in huge pages for the pages of the segment whose own file is `fd`, whose maker calls this;
 * all of its memory is taken. -1: there is no hugetlbfs that may be used, or it has not enough. */
int xs_pool_make(const char *name, int fd, uint64_t bytes);
/* Returns a descriptor, or -EPROTO: it is gone, truncated, or not mounted here. */
int xs_pool_open(const char *name, int fd, uint64_t bytes, struct xseg_error *err);
/* Removes those of the maker's predecessors of the same name, which nobody can find any more. */
void xs_pool_remove_old(const char *name, int fd);
/* Also where there is none. Who has mapped it keeps that. */
void xs_pool_remove(const char *name, int fd);
/* Maps bytes of the pages, from `off` on, at an address that xs_room_take() gave; all in bytes. */
int xs_pool_map(const struct xseg *seg, void *at, uint64_t off, uint64_t bytes, int flags);

/* ---- lock.c ---- */
/* Takes the lock on a byte (XSEG_LOCK_*); returns a descriptor that holds it or -errno: -ETIMEDOUT
 * and -EINTR when the attachment's patience is at its end. The same thread lets go, and takes no
 * other before. */
int xs_lock(struct xseg *seg, uint64_t byte);
/* The control lock, that of routes, and those of all peers. */
int xs_lock_all(struct xseg *seg);
/* The control lock, without waiting: -EAGAIN; and all others, where *all says so. */
int xs_lock_try(struct xseg *seg, bool *all);
void xs_unlock(int fd);
/* After that has failed with rc, for people: by whom the lock is held, and what to do. */
int xs_fail_lock(struct xseg *seg, int rc, struct xseg_error *err);
/* Waits of this thread for a lock take as long as that at most, also where the attachment would
 * wait for longer; 0: no matter. Returns what held before. */
uint64_t xs_wait_limit(uint64_t limit_ns);
/* Whether the member's byte is locked. Of a member that a word named before, false proves its death
 * (K2); true means something only if the word is the same afterwards: xs_peer_now(). */
bool xs_member_alive(struct xseg *seg, uint32_t member);
/* The segment's descriptors, those that are open. */
void xs_files_close(struct xseg *seg);
/* From before its description is locked until that is closed, by xs_attached_remove(). */
int xs_attached_add(struct xseg *seg);
void xs_attached_remove(struct xseg *seg);
/* The lock on a byte (XSEG_LOCK_*) is the open file description's: 0, or -EAGAIN or -EACCES when
 * another has it; xs_byte_locked(): another has it now. */
int xs_lock_byte(int fd, uint64_t byte);
/* Waits for a range of bytes, as patiently as the attachment is (K6); seg is NULL before there is
 * one. */
int xs_lock_wait(struct xseg *seg, int fd, uint64_t byte, uint64_t nr);
void xs_unlock_byte(int fd, uint64_t byte);
bool xs_byte_locked(int fd, uint64_t byte);
/* Makes the attachment a member; waits for nobody. -EUSERS: there is no place left. */
int xs_member_join(struct xseg *seg);
/* Nobody can join from now on; -EAGAIN or -EACCES: there are other members. And joining is possible
 * again. */
int xs_members_shut(struct xseg *seg);
void xs_members_open(struct xseg *seg);
/* The caller is a child that was forked since the segment was attached: nothing of it is mapped
 * here. */
static inline bool xs_is_forked(const struct xseg *seg) { return seg->fd < 0; }
/* Its memory can be touched: it is mapped here, and nobody has truncated the file. */
static inline bool xs_is_usable(struct xseg *seg)
{
	return !xs_is_forked(seg) && xseg_is_whole(seg);
}

/* A second description of the same file, also when its name is gone; or -errno. */
int xs_open_again(struct xseg *seg);

/* ---- port.c ---- */
/* The private side of a port that the peer has, under that one's lock; no request is in its pool
 * yet. -ENOMEM. */
int xs_port_init(struct xport *p, struct xseg_peer *peer, uint32_t index, uint32_t generation);
void xs_port_fini(struct xport *p);
/* A cheap look at the lanes that are known to be in use or are announced. */
bool xs_port_peek(struct xport *p);
/* Offers a request: to a port of the same thread, by a lane, or else by its place; an answer to its
 * origin. */
void xs_offer(struct xport *p, uint32_t to_port, uint64_t offer);
/* The same but for the first way. */
void xs_offer_by_lane(struct xport *p, uint32_t to_port, uint64_t offer);
void xs_offer_answer(struct xport *p, uint32_t to_port, uint64_t offer);
/* Both say so: what the lane joins, and the receiving port which lane that is. */
bool xs_lane_is_joined(struct xseg *seg, uint32_t lane);
/* Tells the server of a port that answers are to be found by their places. */
void xs_port_alert(struct xseg *seg, uint32_t port);

/* ---- near.c ---- */
/* Offers a request of `port` to another of its thread; false: it has to go by a lane. */
static inline bool xs_near_push(struct xport *port, uint32_t to_port, uint64_t offer)
{
	struct xport *to = port->near ? port->near->port[to_port] : NULL;

	if (!to || to->near_tail - to->near_head > to->near_mask)
		return false;
	to->near_ring[to->near_tail++ & to->near_mask] = offer;
	return true;
}
static inline bool xs_near_has(const struct xport *port)
{
	return port->near_head != port->near_tail;
}
/* Up to max requests that were offered so, accepted. */
uint32_t xs_near_take(struct xport *port, struct xreq **out, uint32_t max);
/* The port is being closed, and this is not under a lock: all that it has sent and been
 * sent goes by lanes. */
void xs_near_close(struct xport *port);

/* ---- request.c ---- */
/* The port that has request i among its own, or XSEG_NONE. */
uint32_t xs_req_owner(struct xseg *seg, uint32_t i);
/* A request of a dead or leaving peer, seen at rest with its port, becomes FREE; if it was
 * answered, its part is marked before. False if somebody was faster: it is not at rest any more. */
bool xs_req_home(struct xseg *seg, uint32_t index, uint64_t place, uint32_t port);
/* The requests that a port owns, as they are while one is out; port XSEG_NONE: not known. */
struct xs_origin {
	uint32_t port, first, nr;
};
/* The private copy of a request that was just accepted; -EPROTO when something in it is wrong.
 * origin: of the one before, which is still held; of this one afterwards. */
int xs_req_copy_in(struct xseg *seg, struct xreq *r, struct xs_origin *origin);
/* The same for what came by an offer. What this attachment has sent on, and nobody has had since,
 * is in the private copy already: then origin stays that of the one before. */
int xs_req_receive(struct xseg *seg, struct xreq *r, struct xs_origin *origin);
/* Makes the port the holder of what an offer names, or returns NULL: the offer is out of date. */
struct xreq *xs_req_accept(struct xport *port, uint64_t offer, uint32_t queue);
/* The same for an offer of another port of the thread: near.c. */
struct xreq *xs_req_accept_near(struct xport *port, uint64_t offer);
/* Takes the answer to a request that is out, where a result is written and the place does not say
 * so; NULL: there is none, or the place may be right. */
struct xreq *xs_req_accept_lost(struct xport *port, uint32_t index);
/* Nobody is behind the port any more: no request is held by it, nor out. */
void xs_views_forget(struct xport *port);
/* Moves a request from exactly `place` to (state, port), which has it from now on. */
bool xs_req_take(struct xport *port, struct xreq *r, uint32_t index, uint64_t place,
	enum xseg_req_state state);

/* A client's port gets answers alone. */
static inline bool xs_port_gets_requests(const struct xport *port)
{
	return port->first_queue == QUEUE_REQUEST;
}

/* The origin's view of a request, and the holder's. */
static inline struct xreq *view_own(struct xseg *seg, uint32_t index)
{
	return &seg->views[index];
}

static inline struct xreq *view_held(struct xseg *seg, uint32_t index)
{
	return &seg->views[seg->geo.nr_requests + index];
}

static inline size_t views_bytes(const struct xseg *seg)
{
	return 2 * seg->geo.nr_requests * sizeof(struct xreq);
}

/* ---- kept.c ---- */
/* Stores a word of a peer, and its copy; by who may change it. */
void xs_keep(struct xseg *seg, uint32_t peer, enum xs_kept_row row, uint64_t value);
/* The peer's word may be what its writer stored last. */
bool xs_kept_agrees(struct xseg *seg, uint32_t peer, uint64_t word);
/* Of a peer's word that is swapped from `from` to `to`: before, and after. */
void xs_keep_dead_open(struct xseg *seg, uint32_t peer);
void xs_keep_dead_not(struct xseg *seg, uint32_t peer);	/* another was faster */
void xs_keep_dead(struct xseg *seg, uint32_t peer, uint64_t from, uint64_t to);
/* The same of a port: whose it is (peer + 1, or 0), and its requests. */
void xs_keep_port(struct xseg *seg, uint32_t port, uint32_t peer);
void xs_keep_range(struct xseg *seg, uint32_t port, uint32_t first, uint32_t nr);
/* A peer's name and kind, with an empty list of ports; its list gets that port as its at'th; and a
 * copy of what its words say now, whatever that is. */
void xs_keep_name(struct xseg *seg, uint32_t peer, const char *name, const char *kind);
void xs_keep_listed(struct xseg *seg, uint32_t peer, uint32_t at, uint32_t port);
void xs_keep_lists(struct xseg *seg, uint32_t peer);
void xs_kept_init(struct xseg *seg);
/* Calls fn, if it is not NULL, for each that is not what its copy says, and returns how many there
 * are; with fix, which needs all locks (xs_lock_all()), they are put back, and copies that are not
 * to be believed made anew. One of peer and port is XSEG_NONE. */
unsigned xs_kept_look(struct xseg *seg, bool fix,
	void (*fn)(uint32_t peer, uint32_t port, const char *what, void *arg), void *arg);
/* Whether all of a peer, and of its ports, is what its copies say. No lock is needed. */
bool xs_kept_is_sound(struct xseg *seg, uint32_t peer);
/* Under the peer's lock, and it is sound: copies that its predecessor left void are made anew. */
void xs_kept_close(struct xseg *seg, uint32_t peer);
/* Under the control lock: puts back what that is for: ports, entries of clients and of nobody. */
void xs_kept_mend_clients(struct xseg *seg);
/* Every port looks for what was offered to it, or answered, by places alone. */
void xs_look_again(struct xseg *seg);

/* ---- place.c ---- */
/* Nobody has submitted it: whatever its place says, no process holds it. */
bool xs_req_is_idle(struct xseg *seg, uint32_t index);
/* The place says that somebody holds the request, and no process can: not as `seg` is at this
 * moment, nor later. owner: the peer that has the request among its own. */
bool xs_place_is_stray(struct xseg *seg, uint32_t index, uint64_t place, uint32_t owner);
/* The same of a place alone: it is in no state, at a port of nobody, or with a generation that the
 * peer that serves does not have. */
bool xs_place_is_lost(struct xseg *seg, uint64_t place);
/* It was sent to that port, or sent on, and nobody has accepted it: the sender has it still. */
bool xs_req_is_offered_to(struct xseg *seg, uint32_t index, uint32_t port);
/* From whatever the place is to this one, with the next sequence, by who knows that it is his;
 * returns what it is then. */
uint64_t xs_place_force(struct xseg *seg, uint32_t index, uint64_t own_place,
	enum xseg_req_state state);

/* ---- part.c ---- */
/* Marks in the parent what its child was answered: see xseg_req_part_set_done(). */
void xs_req_mark_part(struct xseg *seg, uint32_t child, int64_t result);

/* ---- loan.c ---- */
/* Of an answer, into the private copy: what is lent; -EPROTO when that is no page. */
int xs_req_loans_in(struct xseg *seg, struct xreq *r);
/* Nothing is lent by it any more. */
void xs_req_loans_drop(struct xseg *seg, struct xreq *r);
/* Whether a request lists a page of that peer's, which lends no more. */
bool xs_has_lent(struct xseg *seg, uint32_t peer);

/* ---- gift.c ---- */
/* It gives pages, and its own list is the one that counts. */
bool xs_req_lists_gifts(const struct xreq *r);
/* Its page list, as it is submitted; of its answer, into the private copy: -EPROTO when what is
 * lent is no page. */
void xs_req_gifts_out(struct xseg *seg, struct xreq *r);
int xs_req_gifts_in(struct xseg *seg, struct xreq *r);

/* ---- direct.c ---- */
/* Readers go to the peer's queues from now on; those that had pinned a page before are seen by a
 * look that is made after this. */
void xs_direct_shut(struct xs_peer *p);

/* ---- info.c ---- */
/* What nobody has, and how much of it is the reserve (xseg.h). */
struct xs_free {
	uint32_t ports, requests, largest;	/* requests: in whole units; the largest piece */
	uint32_t reserve_ports, reserve_requests;
};
void xs_count_free(struct xseg *seg, struct xs_free *f);

/* ---- bell.c ---- */
uint64_t xs_now_ns(void);		/* of the monotonic clock */
void xs_ring_peer(struct xseg *seg, uint32_t peer);	/* all that serve its ports */
/* After the caller's fence. rung (by bell) remembers what we left there, so that one sleep costs us
 * one wake; or NULL. */
void xs_bell_ring(struct xseg *seg, uint32_t bell, uint32_t *rung);
/* Somebody sleeps there, or is about to: without the fence that would make it sure. */
static inline bool xs_bell_announced(struct xseg *seg, uint32_t bell)
{
	return atomic_load_explicit(&seg->bells[bell].word, memory_order_relaxed) & 1;
}
void xs_ring_all(struct xseg *seg);	/* with a fence, as xs_ring_peer() */
/* The steps of a sleep on the port's own doorbell, for a thread that has another one sleep in its
 * stead (queue_wait.c). It announces, looks once more, and retracts, which ends the sleep; between
 * the two the other one may sleep, on the word that was announced. */
uint32_t xs_bell_announce(struct xport *port);
/* false: the time is over, and nobody rang */
bool xs_bell_sleep(struct xport *port, uint32_t word, uint64_t timeout_ns);
void xs_bell_retract(struct xport *port);
/* 1 + the processor of the thread that takes this port's requests, a hint; 0: not known. */
uint32_t xs_port_server_cpu(const struct xport *port);

/* ---- arena.c ---- */
/* Addresses, aligned as extents are so that huge pages can be used, for what is then mapped there;
 * munmap() gives them back. NULL: none left (errno). */
void *xs_room_take(size_t bytes);
/* All of that peer's extents of a kind; under its lock, or a client's under the control lock. */
void xs_extents_free(struct xseg *seg, uint32_t peer, enum xs_extent_kind kind);
/* It stays in the segment. */
void xs_arena_unmap(struct xseg_peer *peer);
/* Maps pages, as xseg_pages_take() gave them, whole extents, once more as one piece; munmap()
 * undoes it. */
int xs_pages_map(struct xseg *seg, const uint32_t *page, uint32_t nr, void **base);

/* ---- owner.c ---- */
/* Whether the segment that fd has open may be attached by this process, which lets in the user
 * `owner` (NULL or "": nobody), too. -EPERM: it is another user's; -EINVAL: no such user. */
int xs_owner_check(int fd, const char *name, const char *owner, struct xseg_error *err);

/* ---- proof.c ---- */
/* The process that has the lock on a byte of the segment's file, as /proc tells; 0: none, or
 * another user's. Looks at all processes: for people, when something takes long. */
uint32_t xs_byte_holder(struct xseg *seg, uint64_t byte);
/* Whether that process has it, or may have, as it is another user's. */
bool xs_pid_has_byte(struct xseg *seg, uint32_t pid, uint64_t byte);

/* ---- holder.c ---- */
/* Who has the lock on a byte, of which the caller has seen for so long that it is taken. */
void xs_lock_describe(
	struct xseg *seg, uint64_t byte, uint64_t held_ns, struct xseg_lock_info *info);

/* ---- peer.c ---- */
/* By its kind, which does not change while it has a name. */
bool xs_peer_is_client(struct xseg *seg, uint32_t index);

/* ---- sweep.c ---- */
/* The peer's word, and in *state the state that is true: DEAD where the word says OPENING or LIVE
 * and its process is dead. The one way to read a state without having proved it (W1). */
uint64_t xs_peer_now(struct xseg *seg, uint32_t peer, enum xseg_peer_state *state);
/* Every sleeper looks around, and peers whose member is gone become DEAD. No lock is needed. */
void xs_mark_dead(struct xseg *seg);
/* The same for those that name a member of which the caller has the claim (K4 of lock.c). */
void xs_mark_dead_before(struct xseg *seg, uint32_t member);
/* The rest under the control lock. */
/* An answer whose offer may have died with the answerer is found by its place. A hint: not only
 * under the lock. */
void xs_alert_answered(struct xseg *seg);
/* How many requests of a peer are still out, after those at rest were brought home. */
uint32_t xs_requests_out(struct xseg *seg, uint32_t index);
/* Everything of a peer goes back; its name is forgotten. */
void xs_peer_release(struct xseg *seg, uint32_t index);
/* Releases a dead client that has nothing out. */
bool xs_sweep_client(struct xseg *seg, uint32_t index);

/* ---- route.c ---- */
/* The port of a peer that a hash leads to; -ENOENT: there is no such peer. */
int xs_route_port(struct xseg *seg, uint32_t peer, uint64_t hash);
/* Under the lock of routes, these two. Stores a route; with new_epoch what is below may be other
 * data from then on. */
void xs_route_store(struct xseg *seg, uint32_t upper, uint32_t lower, bool new_epoch);
/* The peer other than `but` that sends to it and is no client, or XSEG_NONE. */
uint32_t xs_route_upper(struct xseg *seg, uint32_t lower, uint32_t but);

/* ---- plug.c ---- */
/* Under the lock of routes: what it has begun is ended or undone, and nobody refers to that peer
 * any more. Its route is as it was. */
void xs_plug_forget(struct xseg *seg, uint32_t index);
/* Under the lock of routes: of all plugs that are decided, stores what is not stored yet. */
void xs_plug_settle_all(struct xseg *seg);
/* Whether a cache is to enter or to leave below that peer: it is one of the upper peers, or one
 * whose route has just been switched. */
bool xs_plug_is_upper(struct xseg *seg, uint32_t cache, uint32_t peer);
/* Under the lock of routes: whether a peer that is about to send to `lower` has to wait, as those
 * that send there are asked to hold. */
bool xs_plug_waits(struct xseg *seg, uint32_t lower);
/* Whether a cache is to be plugged or unplugged there. */
bool xs_plug_refers(struct xseg *seg, uint32_t index);
/* Who has that peer to itself, or XSEG_NONE. */
uint32_t xs_plug_keeper(struct xseg *seg, uint32_t lower);

/* ---- stats.c ---- */
/* All blocks of that peer, or those that a dead one was making; under its lock, or a client's under
 * the control lock. */
void xs_stats_free(struct xseg *seg, uint32_t peer, bool all);

/* ---- measure.c ---- */
/* Of a port that is its peer's. */
void xs_measure_init(struct xport *port);
/* A request is submitted, and `until` is 0. */
void xs_measure_submit(struct xport *port, const struct xreq *r);
/* An answer is taken: an error, or that of the request that is measured. */
void xs_measure_take(struct xport *port, const struct xreq *r);
/* Reads of a peer's volume that needed no request. */
void xs_measure_direct(
	struct xport *port, uint32_t peer, uint32_t volume, uint32_t reads, uint64_t bytes);

/* ---- what stands in the tables ---- */

static inline uint64_t xs_peer_word(struct xseg *seg, uint32_t peer)
{
	return atomic_load_explicit(&seg->peers[peer].word, memory_order_acquire);
}

/* By who has looked at the word before; peer.c does it for a peer that is open here. */
static inline void xs_peer_word_set(struct xseg *seg, uint32_t peer, enum xseg_peer_state state,
	uint32_t member, uint32_t gen)
{
	xs_keep(seg, peer, XS_KEPT_WORD, peer_word(state, member, gen));
}

/* Whose port it is, peer + 1; 0: nobody's, or there is no such port (R5). Acquire: partner is the
 * release in add_port(). */
static inline uint32_t xs_peer_of_port(struct xseg *seg, uint32_t port)
{
	return port < seg->geo.nr_ports
		       ? atomic_load_explicit(&seg->ports[port].peer, memory_order_acquire)
		       : 0;
}

/* P2 of peer.c. */
static inline bool xs_peer_has_port(struct xseg *seg, uint32_t peer, uint32_t port)
{
	return xs_peer_of_port(seg, port) == peer + 1;
}

/* Whether the request that has this place has been accepted by a port of the peer's, and not been
 * answered. */
static inline bool xs_peer_holds(struct xseg *seg, uint32_t peer, uint64_t place)
{
	enum xseg_req_state s = place_state(place);

	return (s == XSEG_REQ_AT || s == XSEG_REQ_STARTED || s == XSEG_REQ_APPLIED) &&
	       xs_peer_has_port(seg, peer, place_port(place));
}

/* One load, of this word alone. Of one that another process may be writing (R5), what was checked
 * is what is used. */
#define XS_FETCH(word) (*(const volatile __typeof__(word) *)&(word))

/* A function that reads plain words of the segment while others may write them. It copies each
 * word once, and its caller checks the copy. ThreadSanitizer does not look at it, so it has no
 * atomic loads: their order would be lost, too. */
#define XS_RACY __attribute__((no_sanitize("thread")))
/* Copies bytes in such a way. */
void xs_racy_copy(void *to, const void *from, size_t bytes);

/* How many requests of its own a port has, and the first: what the segment says, bounded (R5). */
static inline uint32_t xs_port_requests(struct xseg *seg, uint32_t port, uint32_t *first)
{
	uint32_t nr = XS_FETCH(seg->ports[port].req_nr);

	*first = XS_FETCH(seg->ports[port].req_first);
	return *first <= seg->geo.nr_requests && nr <= seg->geo.nr_requests - *first ? nr : 0;
}

/* The lock under which a peer's entry is changed. */
static inline uint64_t xs_peer_lock_byte(const struct xseg_peer *peer)
{
	return peer->client ? XSEG_LOCK_CONTROL : XSEG_LOCK_PEER0 + peer->index;
}

static inline void xs_count_bad(struct xseg *seg)
{
	atomic_fetch_add_explicit(&seg->super->bad_count, 1, memory_order_relaxed);
}

#endif
