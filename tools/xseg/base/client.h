/* client - the tool as a client in the segment: it asks peers (the admin protocol) and sends
 * requests.
 *
 * Contract: one thread. Port 0 carries I/O, port 1 questions to peers, so that one can ask while
 * the other works. Each has one call at a time. Waiting ends as tool.h says (T3). A request that is
 * out then stays out. Others complete or free it after client_close().
 *
 * Invariants:
 *   C1  A call that was not answered is never waited for again, and its port is not used any more.
 *   C2  No call waits for a peer that no one will start again, or that needs such a one below it.
 */
#ifndef TOOLS_XSEG_CLIENT_H
#define TOOLS_XSEG_CLIENT_H

#include "tools/xseg/base/tool.h"
#include "tools/xseg/base/view.h"

#define CLIENT_TEXT_PAGES 16			/* an answer's room */

enum { CLIENT_PORT_IO, CLIENT_PORT_ADMIN, CLIENT_NR_PORTS };

/* A request of the tool's that is out at a peer. */
struct client_call {
	struct xport *port;
	struct xreq *r;				/* NULL: none is out */
	uint32_t peer;
	struct tool_span gone;			/* nobody serves it, or what it needs */
};

struct client {
	struct tool *t;
	struct xseg *seg;
	struct xseg_peer *peer;
	/* of its own: CLIENT_TEXT_PAGES of them are for questions */
	uint32_t *page;
	struct client_call call[CLIENT_NR_PORTS];
	bool told;				/* it has sent what changes something */
	struct xseg_peer_info lacks;		/* C2: what a peer needs that did not answer */
	/* the last answer, or the peer's reason */
	char text[CLIENT_TEXT_PAGES * XSEG_PAGE_SIZE + 1];
};

/* Attaches and opens the client. Prints why not and returns an exit code. Close after success
 * only. */
int client_open(struct tool *t, struct client **client) XSEG_MUST_CHECK;
void client_close(struct client *c);

/* Whether other processes than the client's own have the volume open; users: their names, as
 * volume_users_but() writes them. */
bool client_other_users(
	struct client *c, uint32_t volumed, uint32_t volume, char *users, size_t size);

/* Finds the peer of that name and kind (NULL: any) or, when name is empty, the only one of that
 * kind, beside those that are stopped, and waits while it is being started. Prints why not and
 * returns an exit code. */
int client_find_peer(struct client *c, const char *kind, const char *name,
		     uint32_t *index) XSEG_MUST_CHECK;

/* Sends a line to a peer and waits for the answer, which is then in c->text. Returns its length or
 * a negative errno, c->text being the reason (maybe empty); -EINTR and -ETIMEDOUT as T3, and
 * without --timeout after 30 s. */
int64_t client_ask(struct client *c, uint32_t peer, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), warn_unused_result));
/* The same of a line that changes something: without --timeout for as long as that takes. */
int64_t client_tell(struct client *c, uint32_t peer, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), warn_unused_result));
/* After -EINTR or -ETIMEDOUT: waits up to limit_ns for the answer that is still due, or until the
 * next interrupt. True: *result and c->text are as they would have been. */
bool client_settle(struct client *c, uint64_t limit_ns, int64_t *result);
/* Prints "WHAT: reason; hint" for what client_ask() or a request returned; returns the exit
 * code. */
int client_fail(struct client *c, int64_t rc, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The same of c->lacks; `what` is the command and its object. */
int client_fail_lacks(const struct client *c, const char *what);

/* Sends a FLUSH of a volume (0: all) to a peer and waits for it, with progress. Prints "WHAT NAME:
 * ..." on failure. */
int client_flush(
	struct client *c, uint32_t peer, uint32_t volume, const char *what, const char *name);

/* The two halves of that: sends the FLUSH; 0 or a negative errno. Then looks for its end for
 * wait_ns: true when it has ended, *result as the store's, or -EHOSTDOWN: nobody will answer. */
int client_flush_begin(struct client *c, uint32_t peer, uint32_t volume) XSEG_MUST_CHECK;
bool client_flush_poll(struct client *c, uint64_t wait_ns, int64_t *result);

/* " KEY=VALUE..." from the words of a command, to follow an admin command. Prints what is wrong
 * with them and returns an exit code. */
int client_settings(int argc, char **argv, char *text, size_t size) XSEG_MUST_CHECK;

/* " KEY=VALUE..." of the same keys as they were set, as the peer's answer in c->text has them. */
void client_settings_done(struct client *c, int argc, char **argv, char *text, size_t size);

/* The value of "key=..." in text of "key=value" words, one a line or several; false when it is not
 * there. */
bool client_value(const char *text, const char *key, char *value, size_t size);
/* The same of text that has one a line: all that the line says, also words with spaces between. */
bool client_line(const char *text, const char *key, char *value, size_t size);
uint64_t client_number(const char *text, const char *key);	/* 0 when it is not there */

#endif
