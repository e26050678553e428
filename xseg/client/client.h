/* client.h - what the libraries for programs share, which are volumes (queue.h) and stores of
 * values (kv_inside.h): the server that a program sends to, and the clients by which it does. No
 * other room includes this.
 *
 *   server.c       which peer: attaching, finding it, asking it, whether anybody serves it
 *   client.c       clients of the segment, and memory of theirs
 *   client_wait.c  sleeping, the descriptor
 *
 * Contract: struct xs_server is shared by the threads of the process, and does not change after it
 * was found. struct xs_client is used by one thread at a time, except where struct xs_watch says
 * otherwise.
 */
#ifndef XSEG_CLIENT_H
#define XSEG_CLIENT_H

#include <pthread.h>

#include "xseg/internal.h"

#define LOOK_NS 100000000ull	/* between two looks whether the server is there */

/* ---- server.c ---- */

struct xs_server {
	struct xseg *seg;
	bool attached_here;			/* it is ours to detach */
	const char *kind;			/* of peer: "volumed", "kvd" */
	char name[XSEG_NAME_MAX];
	uint32_t peer;				/* its index */
	uint64_t gone_ns, timeout_ns;
	uint64_t restart_ns;		/* for how long one may be stopped that is opened */
};

/* Since when the server is gone; 0: it is not, as far as was seen. It may have been there between
 * two looks: then it is of another generation, and has not been gone for so long. */
struct gone {
	uint64_t since_ns;
	uint32_t generation;
};

/* To `attached`, or to the segment of that name; the times are set. See xseg_volume_params. */
int xs_server_attach(struct xs_server *s, struct xseg *attached, const char *segment,
	const char *owner, struct xseg_error *err) XSEG_MUST_CHECK;
void xs_server_detach(struct xs_server *s);
/* The peer of s->kind of that name or, for NULL, the only one. One that is being started is waited
 * for, until then, and one that is stopped under a supervisor for up to
 * restart_ns: it may be on its way through a restart. */
int xs_server_find(struct xs_server *s, const char *name, uint64_t until,
	struct xseg_error *err) XSEG_MUST_CHECK;
/* When an answer that is asked for now is late. */
uint64_t xs_server_until(const struct xs_server *s);
/* Nobody serves it, and nobody will start it. Any thread. */
bool xs_server_is_gone(struct xs_server *s);
/* What has its place in the segment is that one, or a successor: not another peer, since it was
 * forgotten. *known is the caller's, 0 at first. */
bool xs_server_is_there(const struct xs_server *s, uint64_t *known);
/* Has it been gone for long enough? *gone is the caller's, 0 at first. Any thread, with one of its
 * own. */
bool xs_server_is_lost(struct xs_server *s, uint64_t now, struct gone *gone);
/* 0: somebody serves it, or will; or why nobody does, for people. Any thread. */
int xs_server_look(struct xs_server *s, struct xseg_error *err) XSEG_MUST_CHECK;
/* Waits for the one request of that port; -ENOTCONN and -ETIMEDOUT leave it out. */
int64_t xs_server_wait(struct xs_server *s, struct xport *port);
/* -EPROTO where its file was truncated. Not in a forked child. */
int xs_check_whole(struct xseg *seg, struct xseg_error *err) XSEG_MUST_CHECK;

/* ---- client.c ---- */

/* Pages of the client's, mapped as one piece. */
struct region {
	struct region *next;
	uint8_t *base;
	size_t bytes;
	uint32_t page[];
};

/* The sleeper for the descriptor. `lock` is a leaf; it guards all that follows it. */
struct xs_watch {
	int fd;	/* -1: nobody asked for it. The client's thread, before the sleeper is there */
	pthread_t thread;
	bool announced;	/* the client's thread: it has announced a sleep on its port's doorbell */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t word, turn;			/* what to sleep on; which arming that was */
	bool armed, fired, stop;	/* fired: the descriptor was written, and not read since */
	bool late;				/* something waits for room in a lane */
};

struct xs_client;

struct xs_client_class {
	/* Takes answers, and sends what waited for that. Returns how many answers. */
	uint32_t (*advance)(struct xs_client *c);
	/* The server is gone for good: all that is out comes back. */
	void (*lose)(struct xs_client *c);
	/* Nothing is to be done for a while: what was lent for later goes back. */
	void (*rest)(struct xs_client *c);
	/* Something is there for the caller. */
	bool (*has_back)(const struct xs_client *c);
};

/* The first member of a queue. A queue that was not opened is zeroed, but for `watch`. */
struct xs_client {
	const struct xs_client_class *cls;
	struct xs_server *server;
	struct xseg *seg;
	struct xseg_peer *peer;
	struct xport *port;
	struct region *regions;
	uint32_t nr_sent;			/* requests that are out */
	bool lost;
	uint32_t vain;				/* looks for answers */
	uint64_t looked_ns;			/* when the server was looked at */
	uint64_t known;				/* for xs_server_is_there() */
	struct gone gone;
	struct xs_watch watch;
};

/* A peer of kind "client", under a name of its own. */
int xs_client_open(struct xseg *seg, uint32_t nr_requests, struct xseg_peer **peer,
	struct xseg_error *err) XSEG_MUST_CHECK;
/* The same for a queue, whose class and server are given; nothing is opened if that fails. */
int xs_client_begin(struct xs_client *c, uint32_t nr_requests, struct xseg_error *err)
	XSEG_MUST_CHECK;
/* The sleeper ends, then the peer, then its memory. */
void xs_client_end(struct xs_client *c);
/* Whether the server is gone for good; loses the client then. Looks no more than ten times a
 * second. */
void xs_client_look(struct xs_client *c);

#define XS_LOOKS 1024u		/* in vain, after which the time is asked for, and the server */

/* After each look for answers: how many there were. */
static inline void xs_client_looked(struct xs_client *c, uint32_t answers)
{
	if (answers)
		c->vain = 0;
	else if (c->nr_sent && ++c->vain % XS_LOOKS == 0)
		xs_client_look(c);
}

/* Sends a request of the client's. False: there is no such peer any more. */
static inline bool xs_client_submit(struct xs_client *c, struct xreq *r)
{
	return xs_server_is_there(c->server, &c->known) &&
	       !xseg_req_submit(c->port, r, c->server->peer);
}

#define XS_BATCH 32u		/* answers that are taken at a time */

/* Sends what was submitted, and takes all answers. `end` handles one: false, if the server is gone.
 * `ahead` sees some before they are handled one after the other; or NULL. `more` sends what waited
 * for answers. Inline, so that all are, too. */
static inline uint32_t xs_client_take(struct xs_client *c,
	void (*ahead)(struct xs_client *c, struct xreq *const *r, uint32_t nr),
	bool (*end)(struct xs_client *c, struct xreq *r), void (*more)(struct xs_client *c))
{
	struct xreq *r[XS_BATCH];
	uint32_t all = 0, n = XS_BATCH;
	bool gone = false;

	if (c->lost)
		return 0;
	xseg_port_flush(c->port);
	while (c->nr_sent && n == XS_BATCH) {
		n = xseg_port_replies(c->port, r, XS_BATCH);
		if (ahead)
			ahead(c, r, n);
		for (uint32_t i = 0; i < n; i++)
			gone |= !end(c, r[i]);
		if (gone)
			c->cls->lose(c);
		if (n && !c->lost)
			more(c);
		xseg_port_flush(c->port);
		all += n;
	}
	xs_client_looked(c, all);
	return all;
}

/* A request of the client's own, with that cookie; NULL, and why. */
struct xreq *xs_client_request(struct xs_client *c, void *cookie, struct xseg_error *err);
/* The first memory of a queue of that depth. `option` is what makes it smaller, beside the depth.
 * NULL, with the error in *rc, and why. */
struct region *xs_client_memory(struct xs_client *c, size_t bytes, uint32_t depth,
	const char *option, int *rc, struct xseg_error *err);
/* More memory of the segment, mapped; NULL with the error in *rc. */
struct region *xs_region_add(struct xs_client *c, size_t bytes, int *rc);
/* Memory that begins there goes back, unless a lost request may write it yet. */
void xs_region_drop(struct xs_client *c, const void *base);
/* Which memory of the client's has that address; NULL: none. */
const struct region *xs_region_of(const struct xs_client *c, const uint8_t *at);

/* ---- client_wait.c ---- */

/* Takes answers; sleeps for them, if there are none, up to that time. */
void xs_client_sleep(struct xs_client *c, uint64_t timeout_ns);
/* Sleeps until something is there for the caller, or nothing is out; up to that time. */
void xs_client_wait(struct xs_client *c, uint64_t timeout_ns);
int xs_client_server_cpu(const struct xs_client *c);
/* See xseg_queue_fd(), xseg_queue_arm(). */
int xs_client_fd(struct xs_client *c);
int xs_client_arm(struct xs_client *c) XSEG_MUST_CHECK;
/* There is no descriptor yet; the client is awake, whatever was armed; the sleeper ends. */
void xs_watch_init(struct xs_client *c);
void xs_watch_disarm(struct xs_client *c);
void xs_watch_fini(struct xs_client *c);

#endif
