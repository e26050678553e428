/* rig - a segment, a stack of peers and two clients, in one thread, driven by the peer core like
 * the simulator's.
 *
 * The segment is made once. rig_begin() resets its tables to their first state, so that each input
 * finds the same. No memory is mapped beyond the segment's end, so an access there is a SIGSEGV.
 *
 * Contract: one thread; time is rig.now_ns. Peers say nothing (log_line() is the rig's).
 */
#ifndef TESTS_FUZZ_RIG_H
#define TESTS_FUZZ_RIG_H

#include "peers/common/runtime/peer.h"
#include "tests/fuzz/fuzz.h"
#include "xseg/internal.h"

#define RIG_PAGES 512u				/* of each client */
#define RIG_MS	  1000000ull
#define RIG_S	  1000000000ull

enum rig_node { RIG_STORE, RIG_CACHED, RIG_VOLUMED, RIG_NODES };
enum rig_client { RIG_EVIL, RIG_HONEST, RIG_CLIENTS };

struct rig_peer {
	const struct peer_class *cls;		/* NULL: not part of this stack */
	const char *name, *downstream, *options;	/* options: "key=value key=value" */
	struct peer *p;				/* NULL: is not there */
	bool serving;
	uint64_t next_ns;
};

struct rig {
	struct xseg *seg;
	struct rig_peer node[RIG_NODES];
	struct xseg_peer *client[RIG_CLIENTS];
	struct xport *port[RIG_CLIENTS];
	uint32_t page[RIG_CLIENTS][RIG_PAGES];
	uint64_t now_ns;
};
extern struct rig rig;

/* A fresh segment without peers. */
void rig_begin(void);
/* What is there is left as a kill would. */
void rig_end(void);

/* Says who is in the stack, bottom up; cls NULL: nobody. */
void rig_plan(enum rig_node n, const struct peer_class *cls, const char *name,
	const char *downstream, const char *options);
/* Starts a peer. False: it refused, and said why. */
bool rig_start(enum rig_node n);
void rig_kill(enum rig_node n);
bool rig_client_open(enum rig_client c);	/* false: the segment has no room for it any more */
void rig_client_close(enum rig_client c, enum xseg_close how);

enum rig_what { RIG_REQUEST, RIG_REPLY, RIG_POLL, RIG_NR_WHAT };
bool rig_serves(const char *name);
/* One step of one peer, on all of its ports; true when it did something. */
bool rig_step(enum rig_node n, enum rig_what what);
/* Everybody's turn, once. */
bool rig_round(void);
/* Rounds until nothing moves, up to `rounds`; time goes on when nothing else does. True: nothing
 * moves any more. */
bool rig_settle(unsigned rounds);

/* A line to a peer, from the honest client; its result, the text in rig_text. Negative: also what
 * was not answered. */
extern char rig_text[4 * XSEG_PAGE_SIZE + 1];
int64_t rig_admin(const char *peer, const char *line);

#endif
