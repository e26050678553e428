/* exports - the supervisor starts nbdkit for the exports of a stack, restarts it, and ends it.
 *
 * A server is one nbdkit, for all exports with the same address (stack_export.h).
 *
 *   from      to        when
 *   WAITING   RUNNING   its time has come, and the volumeds of its exports serve: it is started; or
 *                       a server of the same settings turns out to run
 *   WAITING   WAITING   it could not be started: again later
 *   RUNNING   WAITING   it died: again after 0.1 s, doubling to 5 s, as peers (supervise.h); or it
 *                       ended as it was asked to, and is to be started then
 *   RUNNING   STOPPED   it ended as it was asked to, by `xseg export stop` or as all is stopped
 *   RUNNING   FAILED    it died, and has restart = no
 *   STOPPED, FAILED  WAITING  `xseg export start`
 *   STOPPED   WAITING   the stop of all is taken back
 *   STOPPED, FAILED  RUNNING  a server of the same settings turns out to run
 *
 * Invariants
 *   H1  A server that runs when the supervisor begins is left alone and watched, if it was started
 *       with the settings that the stack has now. Else it is ended, as in H3.
 *   H2  A socket is removed before a server is started only if nobody listens on it.
 *   H3  Servers end before peers are asked to stop, and after the first flush. One that was asked
 *       to end, and has not END_MS later, is killed, also if it is wanted again meanwhile.
 *   H4  The segment says which exports are stopped or have failed, and which are served with other
 *       settings still (SUPERVISOR_WORD_EXPORTS).
 *   H5  A server that `xseg export stop` has stopped stays so under each later supervisor, until
 *       `xseg export start`: the names of its exports are in the record of the stack (held.h).
 *       The command writes them before it gives the order.
 *   H6  Mode and group of a socket are no setting of H1: a supervisor sets them at a server that
 *       runs, and its clients stay.
 *   H7  No server is started while a volumed of its exports is to stop: the server could not open
 *       the volume, and would end. A volumed that is being replaced (replace.h) is such a one.
 *
 * Contract: one thread, the supervisor's. Nothing blocks.
 */
#ifndef PEERS_HOST_EXPORTS_H
#define PEERS_HOST_EXPORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "peers/common/options/stack_export.h"
#include "peers/common/say/words.h"
#include "xseg/xseg.h"

struct supervisor;

enum server_state {
	SERVER_WAITING,
	SERVER_RUNNING,
	SERVER_STOPPED,
	SERVER_FAILED,
	SERVER_NR_STATES
};

struct server {
	uint32_t first;				/* of its exports, in the stack */
	enum server_state state;
	pid_t child;				/* 0: not our child */
	uint64_t id;				/* its settings: EXPORT_WORD_SERVER */
	bool held;				/* `xseg export stop` */
	bool return_once;			/* it was asked to end, and is started then */
	uint64_t asked_ms;			/* RUNNING: since when it is to end; 0: it is not */
	bool killed;
	uint64_t since_ms, at_ms;		/* as of units */
	uint32_t backoff_ms;
};

/* A server of other settings (H1). */
struct stranger {
	uint32_t generation;			/* its client's, when it was seen first */
	uint64_t asked_ms;			/* since when it is to end; 0: it was not asked */
	bool killed;
};

struct exports {
	uint32_t nr;
	struct server server[STACK_MAX_EXPORTS];
	uint64_t looked_ms;			/* for strangers */
	struct stranger stranger[XSEG_MAX_PORTS];	/* by the client's place in the segment */
};

/* The stack is known, and what is held: servers that run are watched. */
void exports_make(struct supervisor *s, uint64_t now_ms);
void exports_step(struct supervisor *s, uint64_t now_ms);
/* A child has ended. False: it was none of these. */
bool exports_ended(struct supervisor *s, pid_t pid, int status, uint64_t now_ms);
/* H3: no server runs. */
bool exports_have_ended(const struct supervisor *s);
/* As a command asks. */
void exports_command(struct supervisor *s, enum export_order order, uint32_t index);
/* How long the supervisor may sleep, at most. */
int exports_poll_ms(const struct supervisor *s, int ms);

#endif
