/* peer - a peer is a set of callbacks over ports, driven by a reactor or by the simulator.
 *
 * Contract
 *   A peer kind is one const struct peer_class. Its core is everything reached from request, reply
 *   and poll. The core makes no system call and reads no clock but `now_ns` of its port. So the
 *   simulator runs the same object files. Kinds that must do I/O (filed) do it in poll() and the
 *   functions it hands work to. They are never simulated. One thread at a time, not always the
 *   same, calls request(), reply() and poll() of one peer_port. Different threads may serve
 *   different ports of one peer at the same time.
 *
 * Life: init (one thread: memory, arena, options) -> [orphans gone] -> recover for each old request
 *   -> serving: request/reply/poll -> stop asked: stopping = true, quiesced() polled until true
 *   -> fini. A kill may come anywhere.
 *
 * Invariants
 *   P1  Nothing is allocated after init (R6).
 *   P2  A callback never blocks. Work that has to wait is queued.
 *   P3  peer.c knows no threads and no sleeping. reactor.c knows no peer kind.
 */
#ifndef PEERS_COMMON_PEER_H
#define PEERS_COMMON_PEER_H

#include "peers/common/options/opt.h"
#include "xseg/xseg.h"

#define PEER_NEVER	 UINT64_MAX
#define PEER_TAKE	 8u		/* requests are accepted at most this many at a time */

struct peer;
struct port_box;
struct seat;

/* Of two times, PEER_NEVER among them; or of two spans. */
static inline uint64_t peer_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* As memory of a segment is given out. */
static inline uint64_t peer_whole_extents(uint64_t bytes)
{
	return (bytes + XSEG_EXTENT_SIZE - 1) / XSEG_EXTENT_SIZE * XSEG_EXTENT_SIZE;
}

/* One port of a peer, as its callbacks see it. */
struct peer_port {
	struct peer *peer;
	struct xport *port;
	uint32_t nr;				/* 0 .. peer->nr_ports - 1 */
	bool round_over;			/* peer_end_round() was called in this one */
	bool only;	/* no other thread is, or comes, into a port of its peer in this round */
	uint64_t now_ns;			/* monotonic; set before each round of callbacks */
	/* of a kind that `dates`: seconds since 1970, which may jump, at most 0.1 s old; the driver
	 * sets it; 0: it has not yet */
	uint32_t date_s;
	struct port_box *box;			/* the runtime's own, per port */
	struct xseg_stats *stats;		/* "NAME" block of this port: enum peer_stat */
	struct seat *seat;			/* in a set of reactors; NULL in the simulator */
	void *state;				/* the kind's own, per port */
};

enum peer_stat {				/* counters that every peer has, in this order */
	PEER_STAT_OPS, PEER_STAT_BYTES, PEER_STAT_ERRORS, PEER_STAT_READS, PEER_STAT_WRITES,
	PEER_STAT_FLUSHES,
	PEER_STAT_READ_BYTES, PEER_STAT_WRITE_BYTES, PEER_STAT_AWAKE_IDLE_NS, PEER_STAT_SLEEPS,
	PEER_STAT_WAKES,
	PEER_STAT_PROTO_ERRORS, PEER_STAT_HELPED, PEER_STAT_CALLS, PEER_NR_STATS
};

struct peer_class {
	const char *kind;
	const char *summary;			/* one line, for --help */
	const struct opt *opts;	/* table ended by .name == NULL; offsets into the peer's struct */
	size_t size;		/* of the kind's struct, whose first member is struct peer */
	bool sends;				/* has a downstream */
	/* and copies of what is there: has it to itself, and can be plugged and unplugged */
	bool keeps;
	bool one;				/* none beside it of its kind sends to the same */
	bool dates;				/* it is told the date (peer_port.date_s) */
	bool absent_is_answer;			/* -ENOENT is not counted as an error */

	/* Whether options fit together that are right each by itself: of a struct that has nothing
	 * but options, as a stack file's are looked at, and before init. If they do not, *key (key
	 * is not NULL) names the one to change. NULL: they do. */
	int (*fit)(const struct peer *p, const char **key, struct xseg_error *err);
	/* How many requests of its own each port needs; options are set. NULL: none. */
	uint32_t (*nr_requests)(struct peer *p);
	/* How many bytes of the segment's memory, in whole extents, the peer takes when it begins
	 * and has had none before; options and threads are set. NULL: none. */
	uint64_t (*memory_bytes)(const struct peer *p);
	/* peer->xp, ports, downstream are there; not serving yet. */
	int (*init)(struct peer *p, struct xseg_error *err);
	/* Asked before requests are recovered: whether it has taken over all requests of its own
	 * that a predecessor has at other peers (xseg_peer_adopt()), so that it need not wait for
	 * them. NULL: no. */
	bool (*adopted)(struct peer *p);
	/* A predecessor's request, in the order of xseg_peer_recover(). NULL: handed to
	 * request(). */
	void (*recover)(struct peer_port *pp, struct xreq *r);
	/* All old requests have been handed over; the next thing is serving. May be NULL. */
	void (*recovered)(struct peer *p);
	/* A batch of up to PEER_TAKE requests that will be handed to request() one after the
	 * other, before the next batch is taken: asks for the cache lines that they will need, and
	 * may prepare what nobody else sees, or see meanwhile to requests that the kind kept. May
	 * be NULL. */
	void (*prefetch)(struct peer_port *pp, struct xreq *const *r, uint32_t nr);
	/* never ADMIN, which goes to admin() */
	void (*request)(struct peer_port *pp, struct xreq *r);
	/* The same for a part of a batch, one after the other, for a kind whose requests take
	 * hardly longer than a call. Returns how many were handled, or kept for later by the kind:
	 * at least one, and no more handled after pp->round_over became true. NULL: request() is
	 * called for each. */
	uint32_t (*requests)(struct peer_port *pp, struct xreq *const *r, uint32_t nr);
	/* to a request of its own; NULL if it has none */
	void (*reply)(struct peer_port *pp, struct xreq *r);
	/* Each round, after requests and replies: timers, completions, ready lists. Returns when it
	 * wants to be called next (absolute ns; now or earlier = at once; PEER_NEVER = when
	 * something arrives). May be NULL. */
	uint64_t (*poll)(struct peer_port *pp);
	/* One line in, text out ("key=value\n" lines on success; one line of reason on error).
	 * Returns its length or -errno with the reason in out. Common commands (ping, get, set) are
	 * done before this is asked; -ENOSYS: not mine. May keep r and answer it later: then
	 * returns PEER_ADMIN_LATER. May be asked once more for the same request, by a successor of
	 * a peer that was killed meanwhile: xseg_req_note(seg, r, PEER_NOTE_KIND) is what it noted.
	 * May be NULL. */
	int64_t (*admin)(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size);
	/* After an option marked OPT_LIVE was stored: make it true. May refuse (the old value is
	 * put back). NULL: nothing to do. */
	int (*changed)(struct peer *p, const struct opt *o, struct xseg_error *err);
	/* Asked to stop (SIGTERM, peer stop): true when nothing is left to do. NULL: at once.
	 * Asked by the thread that is its home, outside of rounds, while other threads may be in
	 * some; *left_bytes (may stay 0) is shown as progress. */
	bool (*quiesced)(struct peer *p, uint64_t *left_bytes);
	/* Dirty bytes that would stay behind if the process left now; for messages. May be NULL. */
	uint64_t (*dirty_bytes)(struct peer *p);
	/* What PEER_WORD_UNSYNCED says, after init and before fini. NULL: nothing of the kind. */
	uint64_t (*unsynced_bytes)(struct peer *p);
	/* Before leaving: what becomes of the arena. clean: quiesced() was true. NULL:
	 * FREE_ARENA. */
	enum xseg_close (*close_how)(struct peer *p, bool clean);
	void (*fini)(struct peer *p);		/* frees private memory; not the segment's */
};

#define PEER_ADMIN_LATER INT64_MIN
#define PEER_TEXT_BYTES	 (64u << 10)		/* of an answer to a command, at most */

enum peer_note { PEER_NOTE_LINE, PEER_NOTE_KIND };	/* of a request that is a command */

/* Part of every kind's struct, first. */
struct peer {
	const struct peer_class *cls;
	char name[XSEG_NAME_MAX];
	char segment[XSEG_NAME_MAX];		/* option -s */
	char downstream_name[XSEG_NAME_MAX];	/* option --downstream */
	uint32_t threads;			/* option --threads: how many reactors serve it */
	char cpus[64];				/* option --cpus */
	struct xseg *seg;
	struct xseg_peer *xp;
	uint32_t nr_ports;
	struct peer_port ports[PEER_MAX_THREADS];
	_Atomic bool stopping;			/* somebody asked it to stop */
};

/* ---- life, used by reactor.c, xseg-host and the simulator ---- */

/* Makes a peer of that kind with default options; free with peer_destroy(). NULL: no memory. */
struct peer *peer_create(const struct peer_class *cls);
void peer_destroy(struct peer *p);

/* Registers, takes over what a predecessor left, calls init. The peer is not serving yet.
 * ports[0].now_ns says when that is: how old what a predecessor left may become is counted from
 * there. */
int peer_open(struct peer *p, struct xseg *seg, struct xseg_error *err) XSEG_MUST_CHECK;
/* It will not be served after all: its name is what it was before, as where peer_open() fails. One
 * that was dead is dead again, and so not gone for those that wait for it. */
void peer_undo_open(struct peer *p);
/* Goes on with recovery: false while orphans are still out at others (call again later), true when
 * it serves. */
bool peer_try_serve(struct peer *p);
/* One round of one port: up to `budget` requests and replies each, then poll. Returns whether
 * anything was done; *next_ns: when to be called again. Where nobody else is in the peer (`only`)
 * what was sent in a second round with work in a row is published, and rung for by the port's next,
 * by who looks at the port before he sleeps, or when it is closed. */
bool peer_port_round(struct peer_port *pp, uint64_t now_ns, uint32_t budget, uint64_t *next_ns);
/* Finer steps, for the simulator: handle one request, one reply, or poll; false when there was
 * none. */
bool peer_port_step_request(struct peer_port *pp);
bool peer_port_step_reply(struct peer_port *pp);
uint64_t peer_port_step_poll(struct peer_port *pp);
/* Somebody asks it to stop; the segment says so from then on (words.h). It is open. Any thread. */
void peer_stop(struct peer *p);
/* It is open, and nobody is in its ports any more. */
void peer_close(struct peer *p, enum xseg_close how);

/* ---- for the kinds: with the port that the callback was given, whosever job it does ---- */

/* Answers and counts: ops, bytes, errors, latency from r->stamp_ns. */
void peer_answer(struct peer_port *pp, struct xreq *r, int64_t result);
/* The room for a command's answer. */
uint32_t peer_text_room(const struct xreq *r);
/* Answers a command that admin() kept: `result` bytes of text, or a negative errno with the
 * reason. */
void peer_answer_text(struct peer_port *pp, struct xreq *r, int64_t result, const char *text);
/* Counts and forwards to the downstream: -ENOTCONN is answered to the origin when there is none. */
void peer_forward(struct peer_port *pp, struct xreq *r);
/* Whether something that the kind sent through this port is kept there, until what the port sends
 * is let go on (gate.h). Nobody else can see that it is on its way. */
bool peer_port_keeps(const struct peer_port *pp);
/* Submits an own request to the downstream. 0, or -ENOTCONN: the caller still has it. */
int peer_submit(struct peer_port *pp, struct xreq *r) XSEG_MUST_CHECK;
/* From request(): no more requests are taken in this round. What was begun goes on its way first,
 * where the store would else wait for requests behind it to be looked at, too. */
void peer_end_round(struct peer_port *pp);
/* A peer that is plugged or unplugged: port 0's thread. Whether it accepts requests; whether every
 * port has passed a point between two callbacks since that was changed; whether it has no request
 * (exact when they have, and none is accepted). */
void peer_close_to_requests(struct peer *p, bool closed);
bool peer_has_passed(struct peer *p);
bool peer_has_nothing(struct peer *p);
/* Wakes the thread that sees to this port (from another thread of the same peer that left work for
 * it). */
void peer_port_kick(struct peer_port *pp);

extern const struct peer_class volumed_class, cached_class, filed_class, memd_class, kvd_class,
	memcached_class;

#endif
