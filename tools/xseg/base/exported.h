/* exported - the exports of a segment's stack file, and the state that each is in.
 *
 * Contract: works on any attachment, an observer's too. A snapshot may be old when it is printed.
 */
#ifndef TOOLS_XSEG_EXPORTED_H
#define TOOLS_XSEG_EXPORTED_H

#include "peers/common/options/stack.h"
#include "xseg/xseg.h"

enum exported_state {
	EXPORTED_SERVING,
	EXPORTED_NO_VOLUME,			/* it is served, and its volume is not there */
	EXPORTED_STARTING,	/* or to be started again, as when its settings have changed */
	EXPORTED_STOPPED,
	EXPORTED_FAILED,			/* it died, and has restart = no */
	EXPORTED_DEAD,				/* nobody starts it: there is no supervisor */
	EXPORTED_NR_STATES
};

struct exported {
	const struct stack_export *e;		/* of the stack below */
	enum exported_state state;
	struct xseg_peer_info peer;		/* while it is served */
	uint32_t connections;
	uint64_t since_s;			/* since 1970; 0: it is not served */
};

struct exported_all {
	struct stack *stack;
	uint32_t nr;
	struct exported export[STACK_MAX_EXPORTS];
};

/* None if the segment has no stack file. 0 or -errno. */
int exported_load(struct xseg *seg, struct exported_all *all) XSEG_MUST_CHECK;
void exported_fini(struct exported_all *all);
/* How it is now: e and its place in the stack. */
void exported_look(
	struct xseg *seg, const struct stack_export *e, uint32_t place, struct exported *out);
bool exported_is_served(const struct exported *x);
const char *exported_state_name(enum exported_state state);

/* What a client is given: "nbd+unix:///NAME?socket=PATH" or "nbds://HOST:PORT/NAME". Returns
 * buf. */
#define EXPORTED_URI_MAX (3 * STACK_SOCKET_MAX + 2 * XSEG_NAME_MAX + 64)
const char *exported_uri(const struct stack_export *e, char buf[EXPORTED_URI_MAX]);
/* The same of the only export of a Unix socket, by its absolute path. */
const char *exported_uri_of_socket(const char *path, char buf[EXPORTED_URI_MAX]);

#endif
