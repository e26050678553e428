/* xseg.h - the public interface of libxseg: segments, peers, ports, requests, pages, statistics.
 *
 * Purpose
 *   Processes ("peers" and their clients) talk through one segment of shared memory. A peer has
 *   ports; a port has a request queue, a reply queue and requests of its own. A client is a peer
 *   that only sends.
 *
 * How a client does one I/O
 *	xseg_attach("xseg", 0, &seg, &err);
 *	xseg_peer_open(seg, &(struct xseg_peer_params){ .name = "me", .kind = "client",
 *			.nr_ports = 1, .nr_requests = 16 }, &peer, &err);
 *	port = xseg_peer_port(peer, 0);
 *	xseg_pages_take(peer, 512, pages);	   // whole extents of 2 MiB: take once, keep
 *	r = xseg_req_alloc(port);
 *	r->op = XSEG_OP_READ; r->volume = id; r->offset = 0; r->size = 4096;
 *	r->nr_pages = 1; r->page[0] = pages[0];
 *	xseg_req_submit(port, r, xseg_peer_find(seg, "volumed"));
 *	xseg_port_flush(port);			   // publishes and rings: once for a batch
 *	while (xseg_port_replies(port, &r, 1) == 0)
 *		xseg_port_wait(port, 1000000000);
 *	// r->result: bytes, or a negative errno; the data is in xseg_page(seg, pages[0])
 *	xseg_req_free(port, r);
 *
 * Where the data of a request is
 *   Byte `offset + o` of the target is in r->page[(offset % 4096 + o) / 4096], at byte
 *   (offset + o) % 4096 of that page. Pages and target are aligned alike. So a page can be handed
 *   on (to a store, to a cache) without copying, at any offset.
 *
 * Threads
 *   A struct xport and the requests received or allocated through it belong to one thread at a
 *   time. A peer with several threads may answer and forward through any of its ports a request
 *   that another of its ports received, as long as one thread at a time has the request.
 *   Functions that take a struct xseg or struct xseg_peer may be called from any thread.
 *
 * Errors
 *   0 or a negative errno. Functions that can fail for a reason that a person must know take a
 *   struct xseg_error. Its text gives the error and its reason in one line. Nothing here prints or
 *   exits.
 *
 * Trust
 *   All that comes out of the segment was written by another process. A struct xreq is a private
 *   copy of a request, made and checked when it was accepted. Its fields and page numbers are safe
 *   to use as they are. (Rule R5; the idea of checking a private copy is that of every kernel's
 *   copy_from_user.)
 */
#ifndef XSEG_XSEG_H
#define XSEG_XSEG_H

#ifdef __cplusplus
#error "xseg/xseg.h is C11: a C++ program includes xseg/volume.h, and sees volumes and queues"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "xseg/base.h"
#include "xtypes/xhist.h"

struct xseg_peer;
struct xport;
struct xreq;

/* ---- segments ---------------------------------------------------------------------------- */

enum xseg_huge { XSEG_HUGE_AUTO, XSEG_HUGE_NEVER, XSEG_HUGE_REQUIRE };

struct xseg_config {
	uint64_t memory_bytes;	/* the page pool: buckets, buffers, arenas; rounded up to 2 MiB */
	uint32_t nr_requests;			/* 0: 2048 */
	uint32_t nr_ports;			/* 0: 64; at most 256 */
	enum xseg_huge huge;
	uint32_t mode;				/* file mode; 0: 0600 */
	int64_t group;				/* gid, or -1 */
};

/* What a segment of that configuration costs. All bytes. */
struct xseg_plan {
	uint64_t total_bytes, pages_bytes, requests_bytes, lanes_bytes, stats_bytes, tables_bytes;
	uint32_t nr_requests, nr_ports;
};

/* Ports get requests in units of this many. */
#define XSEG_REQUEST_UNIT 16

struct xseg_info {
	char name[XSEG_NAME_MAX];
	uint64_t total_bytes, memory_bytes, made_at_s, bad_count;
	/* free: what new clients of volumes can have, in units of XSEG_REQUEST_UNIT; a port gets
	 * one piece, of largest_requests at most. reserve: what is left of the reserve, beside
	 * that. unowned: those that no port has, also where no port is left for them. idle: of all
	 * requests, also of those that ports have, those that nobody has in use */
	uint32_t nr_requests, free_requests, largest_requests, reserve_requests;
	uint32_t unowned_requests, idle_requests;
	uint32_t nr_ports, free_ports, reserve_ports, nr_lanes, used_lanes;
	uint32_t nr_extents, free_extents, arena_extents, page_extents;
	uint64_t free_pages;			/* of free extents */
	enum xseg_huge huge;
	bool huge_reserved;		/* the pool is in huge pages that were set aside: hugetlb */
};

/* The costs of a segment, without making it. Returns -EINVAL with a reason for a configuration out
 * of range. */
int xseg_plan(const struct xseg_config *cfg, struct xseg_plan *plan,
	struct xseg_error *err) XSEG_MUST_CHECK;

/* Makes /dev/shm/xseg.NAME and takes its memory at once (-ENOSPC now rather than SIGBUS later).
 * Where huge pages are not refused, a hugetlbfs of 2 MiB is mounted that may be written to, and
 * enough is left of what was set aside, the pages are a file there. -EEXIST when there is one of
 * that name, -EINVAL for a name or a configuration out of range. Nothing is left behind on
 * failure. */
int xseg_create(
	const char *name, const struct xseg_config *cfg, struct xseg_error *err) XSEG_MUST_CHECK;

/* Maps a segment and becomes a member of it. Checks size, magic, ABI stamp, state and geometry;
 * -ENOENT when there is none, -EINVAL for a name that none can have, -EPROTO (foreign, damaged,
 * truncated, another build), -EAGAIN (it is being made), -ESTALE (its maker died before it was
 * made: nobody uses it, and xseg_create() replaces it), -EUSERS (320 processes are attached). A
 * child after fork() has no part of it (MADV_DONTFORK; the descriptor is closed there): attach
 * after the last fork. Closing its peers and detaching frees the child's memory, and no more. */
/* reads only what xseg_*_info gives, and may call xseg_stack_set(); is not a member */
#define XSEG_ATTACH_OBSERVER 1
#define XSEG_ATTACH_POPULATE 2			/* touches all of the page pool now (a server) */
int xseg_attach(const char *name, unsigned flags, struct xseg **seg,
	struct xseg_error *err) XSEG_MUST_CHECK;

/* The same. xseg_attach() lets in segments that the caller or root has made, and those of which the
 * file has a group of the caller's that may read and write (0660); to root a group says nothing.
 * Else it is -EPERM, as the owner of the file could read and change all that goes through. This one
 * lets in a segment of the user `owner`, too: a name, or a number as text; NULL: nobody's. -EINVAL:
 * there is no such user. */
int xseg_attach_owned(const char *name, const char *owner, unsigned flags, struct xseg **seg,
	struct xseg_error *err) XSEG_MUST_CHECK;
/* The uid of a user, by name or number; -EINVAL: this machine has no such user. */
int xseg_user_find(const char *text, uint32_t *uid, struct xseg_error *err) XSEG_MUST_CHECK;
/* The uid of whoever owns the file of that name in /dev/shm, attached or not; -ENOENT. */
int xseg_owner_of(const char *name, uint32_t *uid) XSEG_MUST_CHECK;
/* The caller owns it, and so may start what its text says (xseg_stack_get()). */
bool xseg_is_own(struct xseg *seg);
/* Changes which users may attach: the mode of the segment's files, and, unless it is -1, their
 * group. Processes that are attached stay so. -EPERM: the caller may not; 0 or another negative
 * errno. */
int xseg_access_set(struct xseg *seg, uint32_t mode, int64_t group) XSEG_MUST_CHECK;
/* The two as they are now. 0 or a negative errno. */
int xseg_access_get(struct xseg *seg, uint32_t *mode, int64_t *group) XSEG_MUST_CHECK;

/* ---- locks of the segment ----
 *
 * Calls that change the segment's tables wait while another process changes them, and has a lock
 * for it. That is short, but for a process that stands still meanwhile (SIGSTOP, a debugger, a
 * freezer).
 */

/* How long calls on an attachment wait. All zero, as it is when it is attached: 30 s. */
struct xseg_patience {
	uint64_t limit_ns;	/* of each wait, which then is -ETIMEDOUT; 0: 30 s */
	/* Asked again and again while a call waits, by the thread that waits; true ends the wait
	 * with -EINTR. Or NULL */
	bool (*stop)(void *arg);
	/* Told once when a wait has taken 5 s: by which process the lock is held. Or NULL */
	void (*tell)(const char *text, void *arg);
	void *arg;
};

/* Before other threads use the attachment. */
void xseg_set_patience(struct xseg *seg, const struct xseg_patience *patience);

/* A lock that some process has. */
struct xseg_lock_info {
	char lock[XSEG_NAME_MAX + 32];		/* "the control lock" */
	uint32_t pid;		/* 0: not known; the kernel tells only its user and root */
	char name[XSEG_NAME_MAX];		/* of its program */
	bool halted;				/* by a signal or a debugger */
	uint64_t held_ns;			/* for so long it was seen to be held */
};

/* "the control lock has been held for 5 s by PID (NAME), ...": what to do, too. Returns text. */
#define XSEG_LOCK_TEXT 320
const char *xseg_lock_text(const struct xseg_lock_info *info, char text[XSEG_LOCK_TEXT]);

/* What was seen of locks that processes have; zeroed at first. */
#define XSEG_LOCKS_WATCHED 16
struct xseg_lock_watch {
	uint32_t nr;
	struct {
		uint64_t byte, since_ns;
		uint32_t pid;
	} seen[XSEG_LOCKS_WATCHED];
};
/* Looks which locks are held now, by whom, and since when the same process was seen to have each;
 * returns how many. Reads /proc only where there is one. Also for observers; waits for nobody. */
uint32_t xseg_lock_look(struct xseg *seg, struct xseg_lock_watch *watch,
	struct xseg_lock_info info[XSEG_LOCKS_WATCHED]);
/* Held for longer than any work takes, or by who stands still. */
static inline bool xseg_lock_is_long(const struct xseg_lock_info *info)
{
	return info->halted || info->held_ns >= 900000000ull;
}

/* A segment without a name, seen by this process only: for tests and simulation. */
int xseg_create_private(
	const struct xseg_config *cfg, struct xseg **seg, struct xseg_error *err) XSEG_MUST_CHECK;

/* All peers of this process must have been closed. */
void xseg_detach(struct xseg *seg);

/* Removes the name of what is attached; processes that are attached, too, keep what they have
 * mapped. -EBUSY while there are some, but for observers, unless `in_use` says that this does not
 * matter; -ENOENT when somebody has removed it already, whoever has the name now. */
int xseg_remove(struct xseg *seg, bool in_use) XSEG_MUST_CHECK;
/* How many others are attached, but for observers. Asks the kernel about each place. */
uint32_t xseg_nr_others(struct xseg *seg);
/* Removes whatever has the name: for what cannot be attached. -ENOENT when there is none, -EINVAL
 * for a name that none can have. */
int xseg_destroy(const char *name) XSEG_MUST_CHECK;

/* Calls fn with the name of each segment of this machine, in their order. 0 or a negative errno. */
int xseg_list(void (*fn)(const char *name, void *arg), void *arg);

void xseg_get_info(struct xseg *seg, struct xseg_info *info);
/* of its pages, in huge pages. Touches all of them once, and reads /proc: for people */
uint64_t xseg_huge_bytes(struct xseg *seg);
/* false: somebody truncated the file: to touch what is gone is a SIGBUS */
bool xseg_is_whole(struct xseg *seg);
/* Its name was removed, as 'xseg down' does at its end. Peers that are attached may run on; nobody
 * else can attach any more. False of a private segment, and in a forked child. */
bool xseg_is_removed(struct xseg *seg);
const char *xseg_name(struct xseg *seg);

/* True for 1 to 63 characters of [A-Za-z0-9._-], not beginning with '.' or '-'. */
bool xseg_name_ok(const char *name);

/* The text of the stack file, kept in the segment for whoever starts a peer later. -E2BIG: more
 * than 64 KiB. */
int xseg_stack_set(struct xseg *seg, const char *text, size_t len) XSEG_MUST_CHECK;
/* NUL-terminated; returns its length */
size_t xseg_stack_get(struct xseg *seg, char *buf, size_t size);

/* The lock of the supervisor: 0 and held until detach or death; -EBUSY when another process has
 * it. */
int xseg_supervisor_lock(struct xseg *seg) XSEG_MUST_CHECK;
/* Whether somebody else has it: what was attached to take it is told false. */
bool xseg_supervisor_alive(struct xseg *seg);

/* Verifies all invariants of the segment; calls report for each that does not hold.
 * Exact only while nothing runs; while peers run it looks at what cannot change under it.
 * With fix, rebuilds what is derived. Returns the number of problems left; XSEG_NOT_CHECKED: it
 * could not have the segment's lock, which the one problem says that was reported. */
#define XSEG_NOT_CHECKED (~0u)
unsigned xseg_check(
	struct xseg *seg, bool fix, void (*report)(const char *problem, void *arg), void *arg);

/* Frees what dead clients left: requests, pages, ports. Any process, at any time; peers do it once
 * a second. Waits for nobody: where another process has the lock, it is left for the next time.
 * Returns how many clients were swept away. */
unsigned xseg_sweep(struct xseg *seg);

/* ---- peers ------------------------------------------------------------------------------- */

enum xseg_peer_state {
	XSEG_PEER_FREE,
	XSEG_PEER_OPENING,	/* its process is getting ready: recovering, not yet serving */
	XSEG_PEER_LIVE,
	XSEG_PEER_STOPPED,		/* closed on purpose; its name, ports and arena are kept */
	XSEG_PEER_DEAD			/* its process died; waits for a successor (or the sweep) */
};

/* A process serves it, or is getting ready to. */
static inline bool xseg_peer_is_up(enum xseg_peer_state state)
{
	return state == XSEG_PEER_OPENING || state == XSEG_PEER_LIVE;
}

struct xseg_peer_params {
	const char *name, *kind;		/* kind "client": vanishes when closed or swept */
	uint32_t nr_ports;			/* one a reactor; 1..16 */
	uint32_t nr_requests;			/* of its own, each port; may be 0 */
	bool leaves_reserve;			/* -ENOSPC rather than a part of it; see below */
};

/* The last ports and requests of a segment are a reserve for administration: for commands that ask
 * peers, and for peers that begin. Clients that do I/O leave it, as any number of them may come. It
 * is an eighth of the segment's ports and a sixteenth of its requests (whole units), at least what
 * one command takes, and no more than twice that. A segment that is smaller than
 * XSEG_RESERVE_FROM_ has none. */
#define XSEG_COMMAND_PORTS	   2		/* of 16 requests each: tools/xseg/base/client.c */
#define XSEG_COMMAND_REQUESTS	   32
#define XSEG_RESERVE_PORTS	   (2 * XSEG_COMMAND_PORTS)
#define XSEG_RESERVE_REQUESTS	   (2 * XSEG_COMMAND_REQUESTS)
#define XSEG_RESERVE_FROM_PORTS	   8
#define XSEG_RESERVE_FROM_REQUESTS 256

/* Plugging: see below. */
enum xseg_plug_op { XSEG_PLUG_NONE, XSEG_PLUG_ENTER, XSEG_PLUG_LEAVE };
enum xseg_turn { XSEG_TURN_NONE, XSEG_TURN_ASKED, XSEG_TURN_HELD };

struct xseg_peer_info {
	char name[XSEG_NAME_MAX], kind[16], member_label[XSEG_NAME_MAX];
	enum xseg_peer_state state; /* DEAD is told by the kernel's lock, whatever the word says */
	uint32_t index, pid, generation, nr_ports, member;
	uint32_t downstream;			/* peer index or XSEG_NONE */
	uint64_t epoch;
	uint64_t arena_bytes;
	uint64_t user[8];
	uint64_t direct_reads, direct_bytes;	/* of a cache: what was read in its tables */
	enum xseg_plug_op plug;			/* what is wanted of it: see below */
	uint32_t plug_lower;			/* peer index, where something is wanted */
	enum xseg_turn turn;		/* as an upper peer that is asked to hold what it sends */
	uint32_t keeper;	/* peer index of the one that has it to itself, or XSEG_NONE */
};

/* Registers a peer, or takes over one of that name that is stopped or dead: its ports, its
 * requests, its arena and its route. -EEXIST when it is alive, or the name is that of a peer of
 * another kind, or of a client that has requests out; -EINVAL for a name, a kind (15 characters) or
 * a number of ports out of range; -EPERM for an observer; -ENOSPC when the segment has not so many
 * ports or requests left. The peer is OPENING until xseg_peer_serve(); a client is LIVE at once. A
 * successor with fewer ports than its predecessor gets all the old ports (xseg_peer_nr_ports). */
int xseg_peer_open(struct xseg *seg, const struct xseg_peer_params *params, struct xseg_peer **peer,
		   struct xseg_error *err) XSEG_MUST_CHECK;

/* How many requests of its own a dead predecessor still has at other peers. A successor
 * calls this until it is 0 before it recovers: those I/Os may still be changing what it
 * is about to touch. */
uint32_t xseg_peer_orphans(struct xseg_peer *peer);

/* For a successor that need not wait for all of them, as it can tell what each may still change:
 * shows every request of its own that a predecessor still has at other peers. `sent` is what it was
 * sent with, for the time of the call. `r` is what will be answered, as any other request is, and
 * freed by the successor then: until it is answered, it is its holder's, who may be in this
 * process. Whoever keeps them so does not call xseg_peer_orphans(). Returns how many there are that
 * could not be shown, as they are damaged. */
uint32_t xseg_peer_adopt(struct xseg_peer *peer,
	void (*fn)(struct xport *port, struct xreq *r, const struct xreq *sent, void *arg),
	void *arg) XSEG_MUST_CHECK;
/* Of an adopted request that was answered: what it was sent with, as it was shown. */
void xseg_req_recall(struct xport *port, struct xreq *r);

/* Hands over each request that was at the predecessor's ports, oldest state first: STARTED, then
 * APPLIED, then AT. Call once, after orphans are gone and before serving. r->state says which. */
void xseg_peer_recover(struct xseg_peer *peer,
	void (*fn)(struct xport *port, struct xreq *r, void *arg), void *arg);

/* OPENING -> LIVE; rings everybody's doorbell. */
void xseg_peer_serve(struct xseg_peer *peer);

enum xseg_close { XSEG_CLOSE_KEEP_ARENA, XSEG_CLOSE_FREE_ARENA, XSEG_CLOSE_ABANDON };
/* Leaves. A client disappears (its requests that are still out are freed when they are answered);
 * any other peer becomes STOPPED. ABANDON leaves everything as a kill would, and the peer DEAD: it
 * could not begin in the place of a dead one (and tests); so it ends as well where no descriptor is
 * left to take the control lock with. */
void xseg_peer_close(struct xseg_peer *peer, enum xseg_close how);

/* Forgets a stopped or dead peer for good: name, ports, arena. -EBUSY when it is alive, -ENOTEMPTY
 * while it holds requests, others have submitted or forwarded some to it (published or not),
 * somebody has pages that it lent, others send to it, or a cache is to be plugged or unplugged
 * beside it, -ENOENT when there is none. */
int xseg_peer_forget(struct xseg *seg, uint32_t peer_index) XSEG_MUST_CHECK;

struct xseg *xseg_peer_segment(struct xseg_peer *peer);
uint32_t xseg_peer_index(struct xseg_peer *peer);
/* Not 0, and no other incarnation of the name has it. */
uint32_t xseg_peer_generation(const struct xseg_peer *peer);
uint32_t xseg_peer_nr_ports(struct xseg_peer *peer);
/* What the name was when it was opened: FREE, it was nobody's; STOPPED or DEAD, its predecessor. */
enum xseg_peer_state xseg_peer_before(const struct xseg_peer *peer);
struct xport *xseg_peer_port(struct xseg_peer *peer, uint32_t i);
/* The peer's own word n (0..7), kept in the segment across its death. One writer: the peer. */
void xseg_peer_user_set(struct xseg_peer *peer, unsigned n, uint64_t value);
uint64_t xseg_peer_user(struct xseg_peer *peer, unsigned n);

/* A client whose I/O is to one volume says so in a word of its own, so that who is about to remove
 * that, or to make it smaller, can tell. A second word says since when: seconds since 1970, for
 * people. A queue of libxseg does by itself. */
enum { XSEG_CLIENT_WORD_VOLUME, XSEG_CLIENT_WORD_SINCE };

static inline void xseg_client_volume_set(
	struct xseg_peer *client, uint32_t volumed_index, uint32_t volume)
{
	xseg_peer_user_set(client, XSEG_CLIENT_WORD_SINCE, (uint64_t)time(NULL));
	xseg_peer_user_set(
		client, XSEG_CLIENT_WORD_VOLUME, ((uint64_t)volumed_index + 1) << 32 | volume);
}

static inline bool xseg_client_has_volume(
	const struct xseg_peer_info *client, uint32_t volumed_index, uint32_t volume)
{
	return client->user[XSEG_CLIENT_WORD_VOLUME] ==
	       (((uint64_t)volumed_index + 1) << 32 | volume);
}

static inline bool xseg_client_has_any_volume(
	const struct xseg_peer_info *client, uint32_t volumed_index)
{
	return client->user[XSEG_CLIENT_WORD_VOLUME] >> 32 == (uint64_t)volumed_index + 1;
}

uint32_t xseg_peer_find(struct xseg *seg, const char *name);	/* index or XSEG_NONE */
/* How many of its requests are out at other peers, or answered and not taken back yet. A look at
 * words that change. */
uint32_t xseg_peer_requests_out(struct xseg *seg, uint32_t index);
/* false: no such peer */
bool xseg_peer_get_info(struct xseg *seg, uint32_t index, struct xseg_peer_info *info);
/* What `info` says of a peer's process, proved by the kernel (proof.c): info->pid alone is a word
 * that any process may have written there. All three read /proc.
 *
 * A pidfd of the process that serves the peer in that generation, to be signalled through; the
 * caller closes it. -ESRCH: nobody serves it in that generation any more, or its process ends at
 * this moment; -EPROTO: the segment is damaged, and its pid is not that of the process that serves;
 * -EACCES, -EPERM: it is another user's, so that cannot be known. */
int xseg_peer_pidfd(struct xseg *seg, const struct xseg_peer_info *info) XSEG_MUST_CHECK;
/* 0: info->pid is the process that serves the peer; or an error as above. */
int xseg_peer_pid_check(struct xseg *seg, const struct xseg_peer_info *info) XSEG_MUST_CHECK;
/* The pid of that process, whatever info->pid is, to be told to a person; 0: it is not known. Looks
 * at all processes. */
uint32_t xseg_peer_pid_find(struct xseg *seg, const struct xseg_peer_info *info);

/* No process serves it, and none will unless somebody starts it: it is stopped, or it is dead and
 * no supervisor is there, or that one leaves it dead. One that is being started again looks so for
 * a moment. */
bool xseg_peer_is_gone(struct xseg *seg, const struct xseg_peer_info *info);
/* As xseg_peer_get_info(). A peer that is stopped under a supervisor is first given up to limit_ns
 * to come back, for amid a restart it is stopped for a moment. Looks each 10 ms. */
bool xseg_peer_get_settled(struct xseg *seg, uint32_t index, uint64_t limit_ns,
			   struct xseg_peer_info *info);
/* A limit that is longer than a restart takes. */
#define XSEG_RESTART_NS 2000000000ull
/* Which dead peers it leaves dead a supervisor says in words of its own: a peer of that kind, and
 * in its word XSEG_SUPERVISOR_WORD_LEFT + i / 64 bit i % 64 for peer i. */
#define XSEG_SUPERVISOR_KIND "supervisor"
enum { XSEG_SUPERVISOR_WORD_LEFT = 4, XSEG_SUPERVISOR_NR_LEFT = 4 };
/* Which of several peers is meant where none is named: the only one, of those that are not gone, if
 * there are any. Begin with { .nr = 0 } and add each; then it is `info` if nr is 1. */
struct xseg_meant {
	struct xseg_peer_info info;
	uint32_t nr;				/* to choose from */
	bool gone;				/* they are */
};
void xseg_meant_add(struct xseg *seg, struct xseg_meant *m, const struct xseg_peer_info *info);
uint32_t xseg_nr_peers(struct xseg *seg);			/* bound of the indices */

/* Where `upper` sends. lower may be XSEG_NONE. Refuses a loop (-ELOOP), a peer that is not there
 * (-ENOENT), and one that another has to itself (-EBUSY). -EAGAIN: a cache is being plugged or
 * unplugged there, and others hold for it. */
int xseg_route_set(struct xseg *seg, uint32_t upper, uint32_t lower) XSEG_MUST_CHECK;
/* The same, and `upper` has it to itself from then on: the route of a peer that keeps copies of
 * what is below. -EBUSY also when another peer, not a client, sends to lower. */
int xseg_route_claim(struct xseg *seg, uint32_t upper, uint32_t lower) XSEG_MUST_CHECK;
/* One load; index or XSEG_NONE; epoch may be NULL. The epoch changes when others may have changed
 * what is below. */
uint32_t xseg_route(struct xseg_peer *peer, uint64_t *epoch);

/* ---- plugging ---------------------------------------------------------------------------- */

/* A peer that keeps copies (a cache) goes between others while they serve, and out again. What is
 * wanted is one word of the cache, and the peers themselves do it: the cache asks all upper peers
 * to hold what they send, and switches their routes when nothing that was sent is below them any
 * more. plug.c has the steps, and what a kill leaves at each. */
struct xseg_plug {
	enum xseg_plug_op op;
	uint32_t lower;				/* peer index; XSEG_NONE with op NONE */
};

/* Asks for it. `upper` are all peers that send to lower, but clients. What cannot be is refused,
 * with one line of reason: -ENOENT no such peer, -EEXIST it is there already, -EHOSTDOWN one of
 * them does not serve, -EBUSY something else is there or is being done, -ELOOP the same peer twice,
 * -ENOTCONN the peers do not stand so. 0 also when just that is being done. */
int xseg_plug(struct xseg *seg, uint32_t cache, const uint32_t *upper, uint32_t nr_upper,
	uint32_t lower, struct xseg_error *err) XSEG_MUST_CHECK;
int xseg_unplug(struct xseg *seg, uint32_t cache, struct xseg_error *err) XSEG_MUST_CHECK;
/* Takes either back. -ENOENT: there is nothing to be taken back, or it is done. */
int xseg_plug_cancel(struct xseg *seg, uint32_t cache, struct xseg_error *err) XSEG_MUST_CHECK;

/* The cache's part. Any of its threads, one at a time. */
struct xseg_plug xseg_plug_get(struct xseg_peer *peer);		/* one load */
/* Which peer the cache sent to until it left the path the last time, or XSEG_NONE. */
uint32_t xseg_plug_was_above(struct xseg *seg, uint32_t cache);
/* Asks the upper peers to hold what they send. -EBUSY: one is being asked by another; -EAGAIN: one
 * does not serve, so the others go on until it does; -ESTALE: nothing is wanted any more. */
int xseg_plug_call(struct xseg_peer *peer) XSEG_MUST_CHECK;
bool xseg_plug_is_held(struct xseg_peer *peer);	/* all do, and nothing that they sent is below */
uint32_t xseg_plug_uppers(struct xseg_peer *peer);	/* how many there are to hold */
/* They go on as before. Fails when the segment cannot be locked: then nothing has changed, and it
 * is to be tried again before anything else. */
int xseg_plug_let_go(struct xseg_peer *peer) XSEG_MUST_CHECK;
/* ENTER, held: the cache has its route, and the lower peer to itself. -ESTALE: one does not hold
 * any more. */
int xseg_plug_claim(struct xseg_peer *peer) XSEG_MUST_CHECK;
/* requests of others that the peer below has still; after claiming, fewer and fewer */
uint32_t xseg_plug_others(struct xseg_peer *peer);
/* Switches the upper peers' routes: to the cache, or past it, which has no route from then on. They
 * go on. -ESTALE as above. */
int xseg_plug_switch(struct xseg_peer *peer) XSEG_MUST_CHECK;
/* A successor, before it serves: ends what its predecessor was at the last step of, and gives up
 * the peer below if others have it. Fails when the segment cannot be locked: then it may not
 * serve. */
int xseg_plug_settle(struct xseg_peer *peer, struct xseg_error *err) XSEG_MUST_CHECK;

/* Changes with each word that asks something of the peer: two loads. For who is about to sleep. */
uint64_t xseg_peer_called(struct xseg_peer *peer);

/* The upper peer's part. */
enum xseg_turn xseg_turn(struct xseg_peer *peer);	/* one load */
/* Requests that it sent and that are not answered; once it sends nothing more, fewer and fewer. */
uint32_t xseg_turn_below(struct xseg_peer *peer);
/* Says that there are none, and that it sends nothing. Where the segment cannot be locked it says
 * nothing, and is still asked. */
void xseg_turn_hold(struct xseg_peer *peer);
/* While it holds, from time to time: goes on if who asked does not serve any more. */
void xseg_turn_mind(struct xseg_peer *peer);

/* How many requests to a volume of this peer's, reaching beyond byte `from` of it, were sent on by
 * servers and are not answered: wherever they are, of dead clients and at dead peers, too. With
 * from 0 a cache's own requests for the volume count as well. It is the number that the request
 * bears (r->volume); of the operations those with a range count: READ, WRITE, DISCARD,
 * WRITE_ZEROES, COPY. For a peer that has stopped to send such requests: there are fewer and fewer,
 * and after 0 none of them changes anything any more (drain.c). Any thread. */
uint32_t xseg_volume_requests(struct xseg_peer *peer, uint32_t volume, uint64_t from);

/* A request that this port has accepted, of a peer that another has to itself. It is not to be
 * served. */
bool xseg_req_is_foreign(struct xport *port, const struct xreq *r);
/* False: none of those that it has accepted until now is. */
bool xseg_port_is_kept(struct xport *port);

/* ---- arenas and pages -------------------------------------------------------------------- */

/* The peer's arena, mapped as one piece. Makes it, zeroed, when there is none (*fresh = true);
 * otherwise returns the one the predecessor left, of *bytes, which may differ from what is asked
 * for. -ENOMEM when the pool has not enough free extents, -EINVAL for an arena of no bytes, -EPROTO
 * for one that is damaged. */
int xseg_arena_open(struct xseg_peer *peer, uint64_t *bytes, void **base, bool *fresh,
	struct xseg_error *err) XSEG_MUST_CHECK;
/* The first page of each of the arena's extents, in their order, for requests that list pages of
 * the arena: writes up to max, returns how many extents it has. It is open. */
uint32_t xseg_arena_pages(struct xseg_peer *peer, uint32_t *first, uint32_t max);
/* The epoch of the route to what the arena has copies of: while it is the route's nobody else has
 * changed that. The peer says it; it outlives the peer, as the arena does. XSEG_NO_EPOCH: it has no
 * copies, or has never said. */
#define XSEG_NO_EPOCH UINT64_MAX
uint64_t xseg_arena_epoch(struct xseg_peer *peer);
void xseg_arena_epoch_set(struct xseg_peer *peer, uint64_t epoch);
/* Unmaps it and gives its extents back. -EMFILE, -ENFILE: there is no descriptor to lock the
 * segment with, and the arena is as it was. */
int xseg_arena_free(struct xseg_peer *peer, struct xseg_error *err) XSEG_MUST_CHECK;

/* Takes `nr` zeroed pages, beside those that the peer has already (rounded up to whole extents; all
 * indices of them are written: the array needs room for xseg_pages_round(nr)). -ENOMEM: not enough
 * free extents, none taken. */
uint32_t xseg_pages_round(uint32_t nr);
int xseg_pages_take(struct xseg_peer *peer, uint32_t nr, uint32_t *page) XSEG_MUST_CHECK;
/* The pages that the peer has already (a successor): writes up to max indices, returns how many
 * there are. */
uint32_t xseg_pages_owned(struct xseg_peer *peer, uint32_t *page, uint32_t max);
/* Gives the extent back that begins with this page: XSEG_EXTENT_PAGES of them. The caller uses none
 * of them any more. One store, no lock, no system call. What is not the peer's stays as it is. */
void xseg_pages_give(struct xseg_peer *peer, uint32_t first_page);
/* that are nobody's, at this moment: whole extents */
uint32_t xseg_nr_free_pages(struct xseg *seg);
void *xseg_page(struct xseg *seg, uint32_t page);	/* address; asserts the range */
uint32_t xseg_nr_pages(struct xseg *seg);
uint32_t xseg_nr_requests(struct xseg *seg);	/* of all ports: an index of a request is less */
/* A page's owner word: what its owner says of it (cached: which bucket it is). One writer: the
 * owner; of its threads, whoever has the page, and where two may want it the one whose swap
 * succeeds. */
void xseg_page_owner_set(struct xseg *seg, uint32_t page, uint64_t owner);
bool xseg_page_owner_swap(
	struct xseg *seg, uint32_t page, uint64_t from, uint64_t to) XSEG_MUST_CHECK;
uint64_t xseg_page_owner(struct xseg *seg, uint32_t page);
/* a hint: it is going to be written */
void xseg_page_owner_prefetch(struct xseg *seg, uint32_t page);

/* ---- requests ---------------------------------------------------------------------------- */

const char *xseg_op_name(enum xseg_op op);

/* LIST asks a peer that keeps objects for the names of those that begin with the request's target;
 * an empty target names all. obj_offset is the cursor, 0 at the beginning. `size` is the room in
 * bytes, at least a page, and the request has xseg_req_span(0, size) pages.
 *
 * The answer begins with struct xseg_list, at the first byte of the first page. Then come `nr`
 * names, each with its NUL. The result is the number of bytes written.
 *
 * An object that exists during the whole listing is named at least once, in any order. An object
 * made or deleted meanwhile may be missing. An answer may hold no name and still lead on.
 * -ESTALE: the cursor means nothing any more; begin anew. -EOPNOTSUPP: the peer cannot list.
 *
 * A store uses the low 56 bits of a cursor. A cache that lists its own objects has its peer
 * index + 1 in the top byte. */
struct xseg_list {
	uint64_t next;				/* the cursor to go on with; 0: that was the end */
	uint32_t nr;
	uint32_t bytes;				/* of the answer, this header included */
};

#define XSEG_LIST_STORE_BITS 56			/* of a cursor, which a store may use */

#define XSEG_REQ_FUA	 1u			/* answered when on stable storage */
/* READ: the answer may lend pages, in the place of data in the origin's */
#define XSEG_REQ_LOAN	 2u
/* WRITE: pages that were lent for that may be kept, and others lent in exchange */
#define XSEG_REQ_GIVE	 4u
/* READ, beside LOAN: what is lent may be read again without asking: see "reading directly" */
#define XSEG_REQ_DIRECT	 8u
/* READ, WRITE: for scans and copies of much data. A cache serves what it has, and this is no use of
 * it. It keeps nothing new for a READ. What a WRITE brings is the first to be evicted, once it is
 * clean. All else holds as ever. Volumed and caches pass the flag on, also to each other, but not
 * with data that they write back; stores ignore it. */
#define XSEG_REQ_ONCE	 16u

/* COPY to a volume: the id of the volume that it copies from, as decimal text at this byte of its
 * first page. volumed writes before it what a store wants there: the name of the object. */
#define XSEG_COPY_VOLUME 2048u

#define XSEG_PAGE_INDEX	 0x0fffffffu		/* the index part of r->page[] and r->lent[] */
#define XSEG_PAGE_GIVEN	 0x80000000u		/* in the segment alone: see gift.c */
#define XSEG_LENT_PAGE	 0x80000000u		/* r->lent[]: data is in the page of that index, */
#define XSEG_LENT_ZEROES 0x40000000u /* or it is zeroes; neither: it is in the origin's own page */
/* beside PAGE: the origin may write there, for its next write */
#define XSEG_LENT_GIFT	 0x20000000u

enum xseg_req_state {
	XSEG_REQ_FREE,
	XSEG_REQ_PRIVATE,
	XSEG_REQ_AT,
	XSEG_REQ_STARTED,
	XSEG_REQ_APPLIED,
	XSEG_REQ_ANSWERED
};

/* A private, checked copy of a request, while this process has it. */
struct xreq {
	uint32_t index;				/* of the request in the segment */
	uint8_t op, flags;	/* enum xseg_op, XSEG_REQ_*: the origin's, not changed by others */
	uint16_t nr_pages;
	uint16_t nr_lent;			/* an answer: so many of lent[] hold; libxseg's */
	uint32_t size;		/* bytes; at most XSEG_REQ_BYTES; 0 where the op has no range */
	uint32_t volume;			/* volume id (volumed's) or 0 */
	uint64_t offset; /* in the volume or, sent straight to an object peer, in the object */
	uint64_t obj_offset;			/* in the object: valid at an object peer */
	uint64_t hash;				/* of target: xseg_hash() */
	int64_t result;				/* >= 0 bytes, < 0 errno */
	enum xseg_req_state state;
	uint16_t origin;			/* port it came from */
	uint32_t parent, part;		/* of a child: parent's index + 1 and which part; or 0 */
	uint16_t via;				/* port + 1 that sent it last; 0: recovered */
	uint64_t place;				/* libxseg's: the exact place word */
	uint32_t pass;				/* libxseg's: which submission of it this is */
	uint64_t sent_on; /* libxseg's: the place at which it was sent on as it is here, or 0 */
	_Atomic uint16_t holder; /* libxseg's: port + 1 of this process that has it; 0: none has */
	bool out; /* libxseg's: submitted by a port of this process, or adopted, and not back */
	uint32_t direct;	/* libxseg's: by which path a direct reader sent it (direct.c) */
	uint32_t sent_to;			/* libxseg's: the peer that its origin sent it to */
	void *cookie;				/* the origin's: kept while the request is out */
	/* Free for who has it: its origin, or its holder between accepting and answering or sending
	 * on. */
	struct xreq *next;
	void *user;
	uint64_t stamp_ns;
	char target[XSEG_TARGET_MAX];		/* object name */
	uint32_t page[XSEG_REQ_PAGES];		/* page indices */
	uint32_t lent[XSEG_REQ_PAGES];		/* of an answer: see xseg_req_lend() */
};

/* A request of the port's own (PRIVATE; fields zeroed but for pages), or NULL when none is free. */
struct xreq *xseg_req_alloc(struct xport *port);
void xseg_req_free(struct xport *port, struct xreq *r);	/* PRIVATE -> FREE: own requests only */
uint32_t xseg_port_nr_requests(struct xport *port);	/* how many it has in all */
uint32_t xseg_port_nr_free(struct xport *port);

/* 64-bit hash of a target's name (XXH3). The same everywhere: ports are chosen by it. */
uint64_t xseg_hash(const char *target, size_t len);
/* Sets r->target and r->hash. Name of at most 127 bytes. */
void xseg_req_set_target(struct xreq *r, const char *target, size_t len);
/* Of a READ that the caller has and is to send on: its answer lends nothing, so its origin learns
 * nothing from it (see "reading directly"). The origin still gets all data, in its own pages. */
void xseg_req_unlend(struct xport *port, struct xreq *r);

/* Writes the request out and offers it to the port of `peer` that r->hash leads to. Not seen before
 * xseg_port_flush(). -ENOENT: no such peer; -EINVAL: it is not PRIVATE, or
 * lists more than XSEG_REQ_PAGES pages; the caller still has it. */
int xseg_req_submit(struct xport *port, struct xreq *r, uint32_t peer) XSEG_MUST_CHECK;

/* Offers a received request on to `peer`; its reply will go straight to the origin. The caller may
 * have changed target, hash and obj_offset, nothing else (it would be received by a peer of the
 * same process, and by no other). After 0 the caller has it no more.
 * -ENOENT as above; -EINVAL: it is not AT. */
int xseg_req_forward(struct xport *port, struct xreq *r, uint32_t peer) XSEG_MUST_CHECK;

/* AT -> STARTED, STARTED -> APPLIED (rule R3). */
void xseg_req_start(struct xport *port, struct xreq *r);
void xseg_req_apply(struct xport *port, struct xreq *r);

/* Records the result and gives the request back to its origin. The caller has it no more. */
void xseg_req_answer(struct xport *port, struct xreq *r, int64_t result);

/* A request that its holder splits into children: r->parent of a child is the index of the split
 * request + 1, r->part the number of the part, below XSEG_REQ_PAGES. A part that was answered, also
 * with an error, must not be done again by a successor, as others may have seen it, and overwritten
 * it since: mark it before the child is freed, and ask before sending a part. A result below the
 * child's size marks the request as failed too: a successor answers it so, and sends no more of it.
 * What was answered to a peer that died is marked when its successor opens. */
void xseg_req_part_set_done(struct xport *port, const struct xreq *child);
bool xseg_req_part_is_done(struct xport *port, const struct xreq *r, uint32_t part);
bool xseg_req_part_failed(struct xport *port, const struct xreq *r);

/* Words in which the holder of a request that is not split notes how far it is, each by one store,
 * for a successor that is to do it again. 0 at first. What is read is input. */
#define XSEG_REQ_NOTES 4
void xseg_req_note_set(struct xseg *seg, const struct xreq *r, unsigned n, uint64_t value);
uint64_t xseg_req_note(struct xseg *seg, const struct xreq *r, unsigned n);

/* Takes up to max requests (accepted: they are this port's now), or replies to own requests
 * (PRIVATE again). Who looks at the begin of each page that he is lent takes about ten replies at
 * once, not more: these lines have one set of the first cache, which holds 8 or 12. */
uint32_t xseg_port_receive(struct xport *port, struct xreq **out, uint32_t max);
uint32_t xseg_port_replies(struct xport *port, struct xreq **out, uint32_t max);

/* Publishes what was submitted, forwarded and answered through this port since the last call, and
 * rings whoever sleeps: one fence, and one wake a sleeper, for the whole batch. */
void xseg_port_flush(struct xport *port);
/* Publishes, and leaves the ringing to xseg_port_flush(), which has to follow before the caller
 * waits, does what takes long, or leaves the port to another thread. Who looks at the lane sees
 * what was sent; all is done at once where somebody is seen to sleep, or to have forgotten the
 * lane. What is left is he who is just doing so. The fence then needs not wait for the stores,
 * which have reached their lines meanwhile. */
void xseg_port_publish(struct xport *port);

/* Looks at every lane that it may get something by: a client gets no requests, and who has no
 * requests of its own no replies. */
bool xseg_port_has_work(struct xport *port);
uint32_t xseg_port_index(struct xport *port);
struct xseg_peer *xseg_port_peer(struct xport *port);

/* Lends: the holder of a READ with XSEG_REQ_LOAN says where the data of its i-th page is: in
 * `page`, at the same place of it, or, for XSEG_NONE, that it is zeroes. From then on the request
 * pins the page, until its origin drops the loans, frees it or submits it again: so long its data
 * does not change, and it is not used for anything else; nobody counts. What is not lent is copied
 * into the origin's page, as ever. The holder has to be alone with whatever else may let go of the
 * page. */
void xseg_req_lend(struct xport *port, struct xreq *r, uint32_t i, uint32_t page);
/* Takes back what was lent by r (its holder), or gives it back (its origin). */
void xseg_req_drop_loans(struct xport *port, struct xreq *r);
/* What a child was lent becomes its parent's, from page `first` of the parent on: to be done before
 * the child is freed. */
void xseg_req_pass_loans(
	struct xport *port, const struct xreq *child, struct xreq *parent, uint32_t first);
/* The port on whose behalf the pages would be lent: the origin's; of a part, that of the request
 * that was split. */
uint32_t xseg_req_borrower(struct xseg *seg, const struct xreq *r);
/* The peer that a request came from, as one number that no other peer will have. And whether that
 * peer is in service still. One that died is gone when the sweep has marked it. Any thread. */
uint64_t xseg_req_sender(struct xseg *seg, const struct xreq *r);
bool xseg_sender_serves(struct xseg *seg, uint64_t sender);
/* Shows every page that a request has been lent, and by which port; twice, as one look may miss
 * what meanwhile goes from a part to the request that was split: a page that is shown in neither,
 * and that nobody lends any more, is pinned by none. A page may be shown often. Acquires what was
 * done before the loans that it does not see were dropped. */
void xseg_loans(struct xseg *seg,
	void (*fn)(uint32_t page, uint32_t port, unsigned look, void *arg), void *arg);

/* Gives: a WRITE with XSEG_REQ_GIVE need not be copied. Its answer may lend its origin pages to
 * write in, which are the request's until it is freed, submitted as something else, or drops them:
 * the origin writes the data of its next write there, whole pages of it, and submits the same
 * request again. From then on it does not touch them: who answers may have kept them, and lent
 * others in exchange. What is given is always what was lent; where nothing was, data is written to
 * the origin's own page, as ever. As with other loans: who has no use for what it was lent for a
 * while drops it, as its lender may be waiting for it. */
static inline bool xseg_req_gives(const struct xreq *r)
{
	return r->op == XSEG_OP_WRITE && r->flags & XSEG_REQ_GIVE;
}
/* The origin's: where to write the data of the i-th page; whether any of its pages is one that was
 * lent for that. */
void *xseg_req_gift_page(struct xseg *seg, const struct xreq *r, uint32_t i);
bool xseg_req_has_gift(const struct xreq *r);
/* The holder's. NONE: the page is to be copied. GIVEN: it may be kept, by the peer that it is a
 * page of. TAKEN: it was, before, and what is in it now is nobody's business. */
enum xseg_gift { XSEG_GIFT_NONE, XSEG_GIFT_GIVEN, XSEG_GIFT_TAKEN };
enum xseg_gift xseg_req_gift(struct xseg *seg, const struct xreq *r, uint32_t i);
/* The data of the i-th page is where it stays, and will be found there by a successor: the origin
 * is lent `page` for its next write; XSEG_NONE: nothing. One store, which tells a successor, too;
 * once for each page. What was listed is not pinned by the request any more. False: the request
 * gives nothing, and nothing was stored. */
bool xseg_req_exchange(
	struct xseg *seg, const struct xreq *r, uint32_t i, uint32_t page) XSEG_MUST_CHECK;

/* Where the data of the i-th page is, after an answer: the origin's page, or what was lent, which
 * is only to be read. */
const void *xseg_req_page(struct xseg *seg, const struct xreq *r, uint32_t i);
/* Data of a request, by byte offset from its beginning; crosses pages. len within r->size. */
void xseg_req_read_data(
	struct xseg *seg, const struct xreq *r, uint32_t from, void *buf, uint32_t len);
void xseg_req_write_data(
	struct xseg *seg, const struct xreq *r, uint32_t from, const void *buf, uint32_t len);
/* The pages a range takes: (offset % 4096 + size + 4095) / 4096. */
uint32_t xseg_req_span(uint64_t offset, uint32_t size);

/* ---- reading directly -------------------------------------------------------------------- */

/* A client of a cache need not ask for a page that it has been lent before: it looks into the
 * cache's own tables where the page is, lists it in a request, which pins it as any loan, looks
 * again, and reads. No request is sent, nothing is shared but what is read.
 *
 *      xseg_direct_create(port, peer, 4096, &d);		   // peer: where the requests go
 *      r->op = XSEG_OP_READ; r->flags = XSEG_REQ_LOAN | XSEG_REQ_DIRECT; ...	as ever, pages too
 *      if (!xseg_direct_read(d, r, object, offset_in_object)) {
 *              xseg_req_submit(port, r, peer); ...				   // and wait, as
 *              ever xseg_direct_learn(d, r, object, offset_in_object);
 *      }
 *      // xseg_req_page(seg, r, i); then xseg_req_drop_loans(port, r)
 *
 * It is a permission, as LOAN: whatever is not as it was when the object was learned is a miss, and
 * asked for. A read is never older than what was acknowledged before it began. Each 4 KiB is read
 * at one moment; of several each at one of its own, as by several requests. It is counted at the
 * cache's peer (xseg_peer_get_info(); up to 15 reads late) and, by a client, in the volume's
 * counters (xseg_stats_of_volume()), not among requests. One thread, the port's. */
struct xseg_direct;
#define XSEG_DIRECT_PAGES 16u			/* what spans more is sent */

/* `objects`: how many it can know at a time (rounded up to a power of two, at most 2^20). -ENOMEM,
 * -EINVAL. */
int xseg_direct_create(struct xport *port, uint32_t peer, uint32_t objects,
	struct xseg_direct **d) XSEG_MUST_CHECK;
/* Before the port's peer is closed: the last reads are counted there. */
void xseg_direct_destroy(struct xseg_direct *d);
/* r is filled as for xseg_req_submit(). True: it is answered: r->result, and all its pages are
 * lent. False: nothing was done, submit it. `object`: the caller's number for it, one number for
 * each object of r->volume; offset: in the object, in which all of the read is: what lies beyond
 * its end is nothing that the caller may look at. */
bool xseg_direct_read(struct xseg_direct *d, struct xreq *r, uint64_t object, uint64_t offset);
/* Whether a read of that object is worth a try, by how the last ones went; a try is a call of
 * xseg_direct_read(). For a caller that can as well send a request without XSEG_REQ_DIRECT, once
 * for each read. */
bool xseg_direct_pays(struct xseg_direct *d, uint32_t volume, uint64_t object);
/* Of a read with XSEG_REQ_DIRECT that was sent and is answered, before its loans are dropped: where
 * the object is, if it says that. */
void xseg_direct_learn(
	struct xseg_direct *d, const struct xreq *r, uint64_t object, uint64_t offset);

/* What a cache publishes is what it has anyway: entries, each with the numbers of the chunks in
 * which its slots are, and slots. Chunk n - 1 is the ((n - 1) % 8)th eighth of page (n - 1) / 8; n
 * 0: there is none. */
#define XSEG_SLOTS_CHUNKS  16u
#define XSEG_CHUNK_SLOTS   64u
struct xseg_slots {
	_Atomic uint32_t chunk[XSEG_SLOTS_CHUNKS];
	/* changes before a chunk of it, or its name, can be another's; never back */
	_Atomic uint64_t version;
};
/* A slot: bits 0-27 are a page. With this bit it may be read, and will not be changed in place or
 * used again before no request lists it; the bit is set and cleared in one store with the page. */
#define XSEG_SLOT_DIRECT   (1ull << 35)
/* And the page's owner word is then: entry + 1 from bit 16 on, below it the number of the slot in
 * its entry. */
static inline uint64_t xseg_slot_name(uint32_t entry, uint32_t slot)
{
	return (uint64_t)(entry + 1) << 16 | slot;
}

/* The served side. Where the entries are in the arena: the first one's xseg_slots, how many, how
 * far apart; `nr` 0: the peer has none, and hands reads on as they are, with another address.
 * `max`: pages that a port may pin so. */
struct xseg_direct_table {
	uint64_t off;
	uint32_t nr, stride, max;
};
void xseg_direct_open(struct xseg_peer *peer, const struct xseg_direct_table *t); /* it is shut */
/* Nobody reads directly, from or through this peer, what is done to its data after that; but pages
 * may still be pinned. */
void xseg_direct_shut(struct xseg_peer *peer);
bool xseg_direct_is_open(struct xseg_peer *peer);
void xseg_direct_max_set(struct xseg_peer *peer, uint32_t max);
/* Whether a page was read directly since it was last asked; forgets that. Its owner's. */
bool xseg_page_touched(struct xseg *seg, uint32_t page);

/* ---- waiting ----------------------------------------------------------------------------- */

/* Each port has a doorbell of its own. Who has work for `port` rings that of `with` from now on;
 * ports that one thread serves share one. Any thread of the process. */
void xseg_port_share_bell(struct xport *port, struct xport *with);
/* Whom a hash leads to `port` sends to `to`, another port of the same peer, from now on; `to` ==
 * `port`: no more. A hint: somebody may just have looked, so both go on to be served. Ports that
 * one thread serves so become one to who sends, and batches twice as large. Any thread of the
 * process. (The indirection table of a network card that spreads flows over its queues.) */
void xseg_port_steer(struct xport *port, struct xport *to);

/* Ports of one attachment that one thread serves, all of them and until they are closed: what one
 * of them sends to another goes by memory of this process, and is accepted without a locked
 * instruction (near.c). Made before that thread uses them, and destroyed after the last is closed.
 * NULL: out of memory. xseg_near_add(): 0, -ENOMEM, or -EINVAL when it is in one already, or of
 * another attachment; then the port uses lanes as any other. */
struct xseg_near;
struct xseg_near *xseg_near_create(struct xseg *seg);
void xseg_near_destroy(struct xseg_near *near);
int xseg_near_add(struct xseg_near *near, struct xport *port);

/* Announces that the thread which sleeps on the doorbell of `port` does so; then looks(arg) once
 * more; then sleeps until rung or timeout_ns have passed; takes the announcement back. Returns true
 * when rung or when looks() found work. (eventcount; the pair of fences is explained in bell.c.) */
bool xseg_bell_wait(struct xport *port, uint64_t timeout_ns, bool (*looks)(void *arg), void *arg);
/* Rings as who has work for this port does, from a thread or signal handler of the same process. */
void xseg_bell_ring(struct xport *port);
/* Wakes who sleeps on this port's own doorbell, whoever serves the port meanwhile. */
void xseg_bell_wake(struct xport *port);

/* ---- handing a processor over (bell.c) ---- */

#define XSEG_POLL_NS 50000ull	/* the longest time that a thread polls before it sleeps */

/* The calling thread, which sleeps on the doorbell of `port`, says on which processor it runs. */
void xseg_bell_here(struct xport *port);
/* Whether a partner of `port` can run, and has to wait for the processor of the calling thread: it
 * ran there last, and does not sleep. A partner is a port that sent to this one last, or that this
 * one sent to. Then polling keeps the partner from its work, and the thread should yield.
 * A hint, for the thread that sleeps on the doorbell of `port`. */
bool xseg_port_blocks_partner(const struct xport *port);
/* The time to poll at the next wait, after one of poll_ns that was followed by work in waited_ns.
 * (The idea: halt polling, Linux virt/kvm/kvm_main.c.) */
uint64_t xseg_poll_adapt(uint64_t poll_ns, uint64_t waited_ns);

/* Client's wait: polls for up to 50 us with sched_yield, then sleeps. It yields after each look
 * while a partner waits for this processor. True when the port has work. */
bool xseg_port_wait(struct xport *port, uint64_t timeout_ns);

/* ---- administration ---------------------------------------------------------------------- */

/* Sends a line of text to a peer (XSEG_OP_ADMIN) and waits for its answer, which is text in the
 * same page or pages. port: a client's, with nothing else in flight; pages: nr_pages of its own,
 * the first holds the text. Returns the answer's length, or a negative errno (-ETIMEDOUT: not
 * answered in time: the request stays out, the port and pages must not be used again; -EAGAIN: the
 * port has no request free; -EINVAL: a text longer than a page, or not 1 to XSEG_REQ_PAGES pages),
 * in which case the text in the pages, if any, is the peer's reason. */
int64_t xseg_admin_call(struct xport *port, uint32_t peer, const char *text, uint32_t *page,
	uint32_t nr_pages, uint64_t timeout_ns) XSEG_MUST_CHECK;

/* ---- statistics -------------------------------------------------------------------------- */

/* A block of named 64-bit counters and a latency histogram in the segment. One writer (the reactor
 * that opened it), any reader. Lives as long as the peer's name: a successor goes on counting. */
struct xseg_stats;
/* keys: static array of nr names. -ENOSPC when the segment has no block left, -EINVAL for more than
 * XSEG_STATS_MAX names. */
int xseg_stats_open(struct xseg_peer *peer, const char *name, const char *kind,
	const char *const *keys, uint32_t nr, struct xseg_stats **stats) XSEG_MUST_CHECK;
/* frees the block: its subject is gone */
void xseg_stats_close(struct xseg_peer *peer, struct xseg_stats *stats);
/* The block counts I/O to a volume of the peer's (id, not 0). What fails of that, and how long it
 * takes, is told by whoever sends it, in any process, from now on: each error adds 1 to the counter
 * `errors`, which nobody else writes to any more, and of each port's I/Os one in 32 is recorded,
 * from its submission until its answer is taken. The two counters after `errors` are of the same
 * kind: reads that needed no request, and their bytes. */
void xseg_stats_of_volume(struct xseg_stats *stats, uint32_t volume, uint32_t errors);
/* Of all blocks of the peer that count I/O to this volume. Their writers may go on meanwhile; a
 * reader may miss one that is just being named. One thread of the peer at a time. */
void xseg_stats_rename(struct xseg_peer *peer, uint32_t volume, const char *name);
void xseg_stats_add(struct xseg_stats *stats, uint32_t key, uint64_t n);
void xseg_stats_set(struct xseg_stats *stats, uint32_t key, uint64_t value);
uint64_t xseg_stats_get(const struct xseg_stats *stats, uint32_t key);
struct xhist *xseg_stats_lat(struct xseg_stats *stats);		/* nanoseconds */

struct xseg_stats_view {
	char name[XSEG_NAME_MAX], kind[16];
	uint32_t peer, nr;
	char key[XSEG_STATS_MAX][XSEG_STATS_KEY];
	uint64_t value[XSEG_STATS_MAX];
	struct xhist lat;
};
uint32_t xseg_nr_stats(struct xseg *seg);
/* false: block i is free */
bool xseg_stats_view(struct xseg *seg, uint32_t i, struct xseg_stats_view *view);
/* 0 also where there is no such counter */
uint64_t xseg_stats_value(const struct xseg_stats_view *view, const char *key);

#endif
