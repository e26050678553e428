/* sim - the seeded simulator: the very object files of volumed, cached and memd, with clients, in
 * one thread.
 *
 * One seed chooses everything: geometry, policy, options, the store's delays and faults, every step
 * of the scheduler, the kills of peers, the deaths of clients and the losses of power. Time is
 * simulated. So a seed that finds an interleaving finds it again.
 *
 * Contract: one thread; no clock, no system call after a world is open but those of peer_open() and
 * peer_close(). Errors end in sim_fail(), which does not return.
 *
 * Invariants that every run checks:
 *   S1  a read returns the values that oracle.h allows, also over kills of any peer; after a loss
 *       of power the values that P1 (oracle.h) allows; when a FLUSH or a FUA write is answered
 *       the store holds, durably, the values that P1 allows; a write that waits for the store is
 *       there when it is answered
 *   S2  no request fails but for faults that were set in the store
 *   S3  every request is answered once the store works and the peers run (no hang, no spinning
 *       without effect)
 *   S4  cached_check() holds after each step, and xseg_check() finds nothing at any moment
 *   S5  a cache reaches the size that it was asked to have, and each volume in it comes down to its
 *       maximum; one at its minimum loses nothing to others
 *   S6  if anything waits for a port's poll, that port is going to poll: work for it does not stay
 *       there until it has other work
 *   S7  work that a kill leaves half done is STARTED, and is finished before anything that it
 *       overlaps
 *   S8  a part of a split request that was answered is marked before any peer could forget it, is
 *       not sent again, and its failure is told
 *   S9  a read's lent pages do not change before the client lets go of them; nor do pages that a
 *       write was lent, but by the client
 *   S10 at the end nothing is left half plugged, the store alone has everything, nothing is leaked
 *       and xseg_check() finds nothing
 *   S11 no request is counted as one that took longer than the run
 *   S12 data that was cut off a volume, or was of a removed one, is not seen again and does not
 *       stay in the store; a write beyond the end is done before the cut, or refused (keeper.c)
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>

#include "peers/common/runtime/peer.h"
#include "tests/sim/oracle.h"
#include "tests/sim/rng.h"

#define MAX_CLIENTS 4
#define MAX_DEPTH   8
#define MAX_PORTS   4
#define MAX_VOLUMES 6
#define MAX_AGAIN   2
#define EVERY	    UINT32_MAX		/* in the place of a volume: the cache as a whole */
#define ADMIN_PAGES 2u
/* other random numbers than those of the rest */
#define CUTS	    0x6375747373747563ull
#define BESIDES	    0x6265736964656573ull
#define LIMITS	    0x6c696d6974736c69ull
#define VALUES	    0x76616c7565736b76ull
#define LARGES	    0x6c61726765736b76ull
#define MS	    1000000ull
#define SEC	    1000000000ull
#define BEGIN_NS    (1000 * SEC)		/* what the time is when a run begins */

/* From the store upwards. CACHED_LOW is a second cache, below the first. BESIDE is a second upper
 * peer, beside volumed (beside.c). KVD stands there, too, or on the top peer. What a seed has
 * without these two does not change. */
enum node_id {
	NODE_MEMD, NODE_CACHED_LOW, NODE_CACHED, NODE_VOLUMED, NODE_BESIDE, NODE_KVD, NR_NODES
};
#define NR_STACKED NODE_BESIDE

/* What a run is about (theme.c): what there is more of than elsewhere. */
struct about {
	uint32_t with, without;		/* nodes, a bit for each: they are there, and are not */
	uint32_t places;			/* hot ones */
	uint32_t fua, flushes, reads, copies;	/* percent: of the writes; of the I/Os */
	uint32_t kills, faults, plugs;		/* at least, in a run of 300 I/Os */
	uint32_t victims;			/* who is killed: a bit for each node; 0: anybody */
	uint32_t together;			/* and all of them at once */
	uint32_t gifts;			/* there may be some: these have places of their own */
	uint32_t cuts;			/* at least, in a run of 300 I/Os */
	uint32_t ports;			/* percent: of the runs in which all peers have several */
};

/* What a seed chose: the geometry, and how much of what there is to be. All but the arrays of sizes
 * are knobs (plan.c): --with gives them other values. */
struct plan {
	uint32_t node[NR_NODES];		/* whether there is one */
	uint32_t threads[NR_NODES];
	uint32_t nr_volumes, sectors[MAX_VOLUMES];
	uint32_t object_size;
	uint32_t magazines;		/* it is so large that ports keep pages of their own */
	/* of the smallest cache, more of a larger one; 0: as many as it has */
	uint32_t cache_pages;
	uint32_t max_io;			/* bytes */
	uint32_t nr_clients, depth;
	uint32_t resizable;			/* caches may change their size */
	uint32_t slow;			/* a store so slow that the cache has to slow its writers */
	uint32_t wide;			/* much becomes newly dirty, and there are few FLUSHes */
	uint32_t shares;			/* volumes get minima and maxima */
	uint32_t track;				/* the store knows what is durable */
	uint32_t off;				/* the upper cache begins beside the path */
	uint32_t loans;				/* reads may be lent their pages */
	uint32_t gifts;				/* writes may give theirs */
	uint32_t direct;			/* reads by loan may do without a request */
	uint32_t near;			/* the peers are one thread's, and die together */
	uint32_t jumps;			/* the clock goes on by an hour, now and then */
	uint32_t cuts;			/* volumes shrink, grow, go and come again */
	uint32_t limits;		/* volumes may do so many requests a second; 0: all */
	/* of kvd's log; every change is answered when it is stable */
	uint32_t zones, zone_pages, tail_pages, paged_least, always;
	uint32_t evicts;			/* a full log evicts */
	uint32_t preload;			/* what it has is read when it begins */
	uint32_t large;				/* large values, too */
	uint32_t bad;				/* sectors go bad below kvd, and stay so */
	uint32_t theme;
	struct about about;
};

/* One thing that happens in a run, in the order of the script. Items are numbered, and a run may be
 * made of some of them (--only). */
/* of a cut: what counts. ANY: all but looks at pages; PAGES: these, too; SLOTS: slots alone */
enum aim { AIM_ANY, AIM_PAGES, AIM_SLOTS };
enum act {
	ACT_OPTION, ACT_IO, ACT_KILL, ACT_LOSS, ACT_FAULT, ACT_CHANGE, ACT_PLUG, ACT_SLEEP,
	ACT_DEATH, ACT_VOLUME, ACT_STEER, ACT_VALUE, NR_ACTS
};
/* Of ACT_VALUE (kv/values.c). INFO is for the beginning. RENEW puts a key of which it is not known
 * what it holds, LARGE a large value; both come in the place of others. BAD is a sector that goes
 * bad. */
enum value_op {
	VALUE_CHANGE, VALUE_BATCH, VALUE_GET, VALUE_EXISTS, VALUE_SCAN, VALUE_FLUSH, VALUE_DATE,
	VALUE_DELETE_ALL, VALUE_INFO, VALUE_RENEW, VALUE_LARGE, VALUE_BAD
};
struct item {
	uint8_t act, node, op;
	bool left_out;
	bool fua;				/* IO */
	bool publish;				/* IO: at once */
	uint8_t aim;				/* KILL: enum aim */
	/* KILL: a bit for each node that is in the same process; PLUG, SLEEP: whose port sleeps */
	uint8_t with;
	bool promised;			/* LOSS: at the next answer that promises something */
	/* IO: sectors; CHANGE: volume, or EVERY; FAULT: nr I/Os until it is healed; PLUG: nr 1:
	 * what is under way is taken back; VOLUME: nr sectors is its size; STEER: first is the port
	 * that what was port nr's goes to */
	uint32_t volume, first, nr;
	uint32_t then;				/* VOLUME: its size after that; of both, 0: none */
	bool beyond;				/* IO: may be where the volume ended once */
	uint32_t source;			/* IO, COPY: the volume to copy from */
	bool give;				/* IO, WRITE: gives its pages */
	bool once;				/* IO, READ, WRITE: with XSEG_REQ_ONCE */
	bool ranged;	/* IO, INFO: of where its range has data; else of a volume's size */
	/* IO, READ: by loan, which is kept for so many steps less one; 0: by copy. WRITE that
	 * gives: what it is lent, the same, if it is not used */
	uint32_t keep;
	/* KILL: in the middle of a callback, after so many calls less one; 0: between two steps;
	 * PLUG, SLEEP: which port of it */
	uint32_t calls;
	/* KILL: steps until its successor begins; FAULT: ms until it is healed; PLUG, SLEEP: steps
	 * that the port sleeps; VOLUME: ms between its two sizes */
	uint32_t down;
	/* KILL: the same for its successors, while they recover; 0: not */
	uint32_t again[MAX_AGAIN];
	uint32_t memory;	/* KILL: MiB that the successor is started with; 0: as before */
	char text[48];			/* OPTION: key=value; FAULT; CHANGE: a line for the node */
};

/* How a run ended badly: what it says, and the same without numbers, by which two failures are told
 * to be one. */
struct failure {
	char text[24576], kind[256];
};

/* A run: the seed, and what of its plan and script is to be another or to be left out, as on the
 * command line. */
struct choice {
	uint64_t seed;
	uint32_t ops, threads;		/* threads: ports of each peer; 0: as the seed says */
	uint32_t order;				/* of the steps: another one for each number */
	uint32_t check_every;			/* so many steps the whole segment */
	bool verbose;
	bool values;				/* each run has a kvd */
	char with[256], only[8192];		/* "": as the seed says, everything */
};

struct node {
	const struct peer_class *cls;
	struct peer *p;				/* NULL: killed, or not part of this run */
	bool serving;
	bool ran;				/* since its invariants were checked */
	const struct item *death;		/* the last kill that was planned for it */
	uint32_t deaths;			/* by that one */
	uint64_t up_step;			/* killed: when its successor begins */
	bool cutting;				/* to be killed in the middle of a callback, */
	uint32_t cut_calls;			/* after as many calls (cut.c) */
	uint32_t nr_pages;			/* of a cache, when it was last seen to */
	uint64_t next_ns[MAX_PORTS];
};

/* An I/O of a client. */
struct io {
	struct xreq *r;				/* NULL: none */
	uint8_t op;
	uint32_t volume, first, nr;		/* sectors; volume ORACLE_VOLUMES: a FLUSH of all */
	uint32_t source;			/* COPY: the volume whose sectors are copied */
	uint32_t write;				/* the oracle's number */
	/* of its volume; the smallest and the largest size it may have had since (keeper.c) */
	uint32_t id, least, most;
	/* READ by loan, WRITE that gives: for so many steps, and one, it keeps what it was lent */
	uint32_t keep;
	bool give;				/* WRITE: gives its pages */
	bool once;				/* with XSEG_REQ_ONCE */
	bool ranged;				/* INFO: of where its range has data */
	bool beside;				/* sent to NODE_BESIDE */
	/* r is NULL: a request that was lent pages to write in, for the next write */
	struct xreq *gift;
	bool kept;				/* it was answered, and keeps that */
	uint64_t until_step, sum;		/* how long, and what was in it */
	uint64_t begin, issued_ns;
	uint32_t *page;
};

struct client {
	struct xport *port;			/* NULL: gone */
	struct xseg_direct *direct;
	struct io io[MAX_DEPTH];
};

/* The administrator: one line at a time. */
struct admin {
	struct xport *port;			/* NULL: gone */
	uint32_t *page;
	struct xreq *r;				/* out */
	int64_t result;
	char text[XSEG_PAGE_SIZE + 1];
};

struct sim_volume {
	uint32_t id;				/* that requests bear; the last, if it is gone */
	uint32_t least, most;			/* sectors that it may have; 0: it may be gone */
	char prefix[64];			/* of its objects' names; "": not known yet */
};

/* Who changes the volumes (keeper.c). */
enum keeper_step { KEEPER_IDLE, KEEPER_SEND, KEEPER_OUT };
struct keeper {
	struct admin line;
	enum keeper_step step;
	uint32_t volume, size[2], nr;		/* sizes that it is to have, one after the other */
	uint64_t wait_ns, retry_ns;
	uint32_t tries;				/* of the first size */
	bool asks;				/* what the id of the new one is */
	bool cutting;				/* `cut` is the oracle's number */
	uint32_t cut;
};

struct sim {
	uint64_t seed, now, step;
	struct rng rng;
	struct rng clock;			/* what is the matter with it */
	struct plan plan;
	struct item *item;			/* the script, */
	uint32_t nr_items, room_items, at;	/* and how far it is */
	struct xseg *seg;
	struct xseg_near *near;			/* or NULL */
	struct node node[NR_NODES];
	/* a port for each client, and the admin's: they share one extent */
	struct xseg_peer *clients;
	uint32_t *pages;
	struct client client[MAX_CLIENTS];
	struct admin admin;
	struct keeper keeper;
	struct values *values;			/* NULL: there is no kvd */
	struct oracle oracle;
	struct sim_volume volume[ORACLE_VOLUMES + 1];
	bool has_volumed;			/* or had one, before the run ended */
	uint32_t issued, in_flight;
	bool issuing;				/* clients send new I/O */
	bool faulty; /* a fault is set; errors are to be expected until all that is out has ended */
	bool errors_ok;
	uint64_t heal_ns;
	uint32_t heal_at;			/* by I/Os sent */
	bool healing;
	bool loss_due;				/* power is to be lost at the next promise */
	bool waits;				/* every write is answered when the store has it */
	bool promised;				/* a FLUSH or FUA write was answered just now */
	uint64_t settled_ns;			/* since when nothing disturbs: kills, faults */
	struct {
		enum node_id node;
		uint32_t port;
		uint64_t until;			/* nr_steps */
	} asleep;		/* a port that is not run for a while, as the kernel has it */
	/* reads that were lent something; writes that were lent pages to give */
	uint64_t nr_kept, nr_given;
	uint64_t nr_direct;			/* reads that sent no request */
	uint64_t nr_value_changes, nr_value_gets;
	uint64_t nr_steps, nr_reads, nr_writes, nr_flushes, nr_kills, nr_losses, nr_deaths,
		nr_plugs, nr_errors, nr_cuts, nr_refused;
	bool verbose, leaving;
	bool values_always;			/* each run has a kvd */
	bool dropping;				/* the administrator has the clean data dropped */
	uint32_t check_every;			/* so many steps the whole segment */
	jmp_buf failed;
	struct failure failure;
};

/* ---- sim.c ---- */
/* Plan and script of a choice; false: it names what there is not. sim_fini() frees them. */
bool sim_init(struct sim *s, const struct choice *c);
void sim_fini(struct sim *s);
bool sim_run(struct sim *s, const struct choice *c);	/* false: s->failure says why */
void sim_print_repeat(const struct choice *c);
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
void sim_log(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- plan.c: what a seed chooses ---- */
void plan_make(struct sim *s, uint32_t threads);
struct knob {
	const char *name;
	size_t off;				/* of an uint32_t in struct plan */
	/* the simplest value that a run can have; a power of two times it is one, too */
	uint32_t least;
};
extern const struct knob knobs[];		/* ended by .name == NULL */
uint32_t *knob_of(struct plan *p, const struct knob *k);
void plan_option(struct sim *s, enum node_id id, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "KNOB=N,...": false: there is no such knob or number. */
bool plan_apply(struct plan *p, const char *with);

/* ---- theme.c ---- */
void theme_choose(struct sim *s);		/* s->plan.about */
/* in the end: what the theme needs takes the place of what was chosen */
void theme_apply(struct sim *s);

/* ---- script.c: what happens in a run ---- */
void script_make(struct sim *s, uint32_t ops);
struct item *script_add(struct sim *s, enum act act);
struct item *script_next(struct sim *s); /* what is not left out, nor an option; NULL: no more */
/* "1,4-7": leaves the others out; false: it is no such list */
bool script_keep(struct sim *s, const char *only);
/* Among the items that are not left out. */
bool script_has(const struct sim *s, enum act act);
void script_print(struct sim *s);
const char *node_name(enum node_id id);

/* ---- runs.c ----
 * Runs c's seed and those after it in a process of its own, until one fails; c->seed: the last one
 * that ran. True: all passed. */
bool runs_pass(struct choice *c, uint32_t seeds, bool quiet, struct failure *failure);

/* ---- shrink.c ----
 * Finds a short run that fails like that of `c` did, prints it, and says how to repeat it. */
void shrink(const struct choice *c, const struct failure *failure);

/* ---- world.c: segment and peers ----
 * A run that fails leaves all behind: no other may follow. */
void world_open(struct sim *s);
void world_close(struct sim *s);		/* orderly, with all that S10 asks */
/* A kill as the script says: with those in the same process. */
void node_die(struct sim *s, enum node_id id);
/* Calls fn, in which the node may be cut off if that was planned; then it has been killed, and
 * false is returned. */
bool node_call(struct sim *s, struct node *n, void (*fn)(struct sim *s, struct node *n, void *arg),
	void *arg);
void node_tend(struct sim *s);		/* goes on with starting those that are not serving */
void world_power_loss(struct sim *s);
void world_clients_die(struct sim *s);		/* and others come in their place */
/* The administrator's plug, unplug or cancel, as it comes; whether something of the kind is under
 * way. */
void world_plug(struct sim *s, const struct item *it);
bool world_is_plugging(struct sim *s);
void nodes_spare(struct sim *s);			/* no more kills that are planned */
void world_check(struct sim *s);		/* S4, of who ran */
void world_check_segment(struct sim *s);	/* S4 */
void world_check_polls(struct sim *s);		/* S6 */
/* cached may have changed its size: it is to have the pages that were planned */
void world_keep_tiny(struct sim *s);
bool world_is_sized(struct sim *s);		/* S5 */
bool is_cache(enum node_id id);
void node_set_time(struct sim *s, struct node *n, uint32_t port);
/* Sends a line, and does not wait for its answer, which is in s->admin then; one at a time. */
void admin_send(struct sim *s, enum node_id id, const char *line);
void admin_replies(struct sim *s);
/* Sends one and waits for its answer. */
int64_t admin_call(struct sim *s, enum node_id id, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same of any administrator; true: the answer is there. */
void line_submit(struct sim *s, struct admin *a, enum node_id id, const char *line);
bool line_reply(struct sim *s, struct admin *a);
/* Where the clients' requests go. */
enum node_id world_top(const struct sim *s);

/* ---- sched.c ---- */
/* Steps until done(s); fails the run when nothing moves any more. */
void sched_run(struct sim *s, bool (*done)(struct sim *s));
void sched_kick(struct sim *s);			/* all polls are due again */
/* a port is not run for a while; one at a time */
void sched_sleep(struct sim *s, const struct item *it);
/* what is sent to one port of a peer goes to another one */
void sched_steer(struct sim *s, const struct item *it);

/* ---- client.c ---- */
const char *clients_name(const struct sim *s);	/* of those that there are, or were last */
void clients_open(struct sim *s);
void clients_close(struct sim *s, enum xseg_close how);
/* With what they have out: nobody will hear what becomes of it. Writes are not ended before nothing
 * of theirs is out: their numbers go to `write` (MAX_CLIENTS * MAX_DEPTH). Returns how many. */
uint32_t clients_die(struct sim *s, uint32_t *write);
bool is_write(uint8_t op);
bool client_replies(struct sim *s, struct client *c);
bool clients_keep(const struct sim *s);		/* something that they were lent; for a time only */
bool client_issue(struct sim *s, struct client *c);	/* one more, if it has room */
/* Reads all of every volume, a piece at a time. */
void client_read_back(struct sim *s);
void client_dump(struct sim *s);

/* ---- beside.c ---- */
extern const struct peer_class beside_class;
/* Whether an I/O of the script is sent there. */
bool goes_beside(const struct sim *s, const struct item *it, const struct io *io);

/* ---- keeper.c ---- */
void keeper_open(struct sim *s);		/* makes them */
void keeper_change(struct sim *s, const struct item *it);
bool keeper_tend(struct sim *s);		/* the keeper's lines and answers */
bool keeper_idle(struct sim *s);		/* the keeper has nothing to do */
uint64_t keeper_due_ns(const struct sim *s);
/* The volume of an I/O is gone, and there is to be one again: most clients wait for that. */
bool keeper_is_making(const struct sim *s, const struct item *it);
/* The keeper is gone, with the clients or by a loss of power, and another one comes. */
void keeper_lost(struct sim *s, bool power);
void keeper_note_io(const struct sim *s, struct io *io);	/* it is sent */
bool keeper_may_refuse(const struct io *io, int64_t result);	/* whether that answer may be */
void keeper_refused(struct sim *s, const struct io *io, int64_t result);	/* it was */
void keeper_check_done(struct sim *s, const struct io *io);
bool keeper_settled(struct sim *s);		/* all jobs are over */
void keeper_check_leaks(struct sim *s);

/* ---- kv/values.c: clients of kvd ---- */
void values_open(struct sim *s);
void values_learn(struct sim *s);		/* kvd is up: which log it has */
void values_close(struct sim *s);
const char *values_name(const struct sim *s);
uint32_t values_date(const struct sim *s);	/* that peers are told */
bool values_room(const struct sim *s);		/* something may be sent */
void values_send(struct sim *s, const struct item *it);
bool values_replies(struct sim *s);
bool values_flush(struct sim *s);		/* publishes what was sent */
bool values_idle(struct sim *s);
bool values_too_old(const struct sim *s, uint64_t age_ns);
void values_die(struct sim *s);
void values_again(struct sim *s, bool power_lost);
void values_read_back(struct sim *s);
/* kvd has begun just now: waits until it has read ahead what it is to. */
void values_preloaded(struct sim *s);
/* The log has own zones for the large values that there are, and no others. */
bool values_own_known(struct sim *s);
void values_dump(const struct sim *s);

/* ---- kv/bad.c ---- */
void values_go_bad(struct sim *s, struct rng *g);
void bad_mend(void);				/* all that went bad is good again */
void bad_watch(struct sim *s);			/* a run begins */
/* The result of a request that memd answers. */
int64_t bad_answer(const struct xport *port, const struct xreq *r, int64_t result);

/* ---- promise.c ---- */
/* Sectors that an answered FLUSH or FUA write covers: what a loss of power would leave of them must
 * be allowed. */
void promise_check(struct sim *s, uint32_t volume, uint32_t first, uint32_t nr);
/* Sectors of a write that was answered: where all writes wait for the store (s->waits), it has
 * them. */
void promise_check_stored(struct sim *s, uint32_t volume, uint32_t first, uint32_t nr);
bool promise_waits(const struct sim *s);	/* whether they do */
/* False: it is not known yet. */
bool object_name(const struct sim *s, uint32_t volume, uint64_t object, char name[XSEG_TARGET_MAX]);

/* ---- started.c: rule R3 (S7) ---- */
void started_watch(struct sim *s);
void started_check_kill(struct sim *s, struct node *n);
void started_check_answer(struct xport *port, const struct xreq *r, int64_t result);

/* ---- spared.c: what volumes have for sure (S5) ---- */
struct cport;
struct object;
void spared_watch(struct sim *s);
void scribbled(struct sim *s, enum node_id id, const struct item *it);	/* scribbled.c */
void spared_check(struct cport *ps, struct object *o, uint32_t b);

/* ---- parts.c: parts of split requests (S8) ---- */
void parts_watch(struct sim *s);
void parts_check_free(struct xport *port, const struct xreq *r);
void parts_check_send(struct xport *port, const struct xreq *r);
void parts_check_exchange(struct xseg *seg, const struct xreq *r, uint32_t i, uint32_t page);
void parts_check_answer(struct xport *port, const struct xreq *r, int64_t result);

/* ---- dump.c ---- */
void cached_dump(struct peer *p, FILE *out);

/* ---- cut.c ---- */
/* After that many more calls of the peer's that change the segment the program goes on at `to`. */
void cut_arm(uint32_t calls, enum aim aim, jmp_buf *to);
uint32_t cut_disarm(void);			/* returns how many are left */

/* ---- chaos.c: disturbances between steps ---- */
void chaos(struct sim *s);

#endif
