/* guard.h - the declarations that the two files of the guard share; nobody else includes it.
 *
 *   guard.c            sockets begin and end, answers, the calls that go through the guard
 *   guard_requests.c   what a client sends: small writes, and requests for nbdkit
 */
#ifndef XSEG_NBDKIT_GUARD_H
#define XSEG_NBDKIT_GUARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct conn {
	_Atomic bool used;			/* changed under `table` */
	pthread_t first;			/* does the handshake; requests only if alone */
	bool begun;				/* `first` is known: it sends before all else */
	bool bound;				/* it has chosen an export */
	void *export;				/* whose writers it has; NULL: nobody's */
	uint64_t since_ns;

	/* its reader's alone */
	bool ended;
	uint8_t *in;				/* its bytes [at, end) are read, and not yet used */
	size_t at, end;
	size_t give_bytes;			/* of nbdkit's request, still to be given to it */
	bool bulk;				/* that request has more data than a writer takes */
	void *writer;				/* or NULL: then nr_written is 0 */
	unsigned nr_written;			/* small writes in flight */
	bool slow;				/* these take long */
	unsigned pause, pause_left;		/* small writes for nbdkit: all, and to come */
	unsigned nr_quick;			/* small writes since the last pause */

	/* held from the first byte of an answer to the last; nothing is taken under it */
	pthread_mutex_t sending;
	bool answering;				/* nbdkit's sender holds it */

	/* guards `owed`; nothing is taken under it */
	pthread_mutex_t lock;
	pthread_cond_t paid;			/* owed is 0 */
	unsigned owed;
};

/* ---- guard.c ----------------------------------------------------------------------------- */

ssize_t guard_libc_read(int fd, void *buf, size_t size);
ssize_t guard_libc_recv(int fd, void *buf, size_t size, int flags);
int guard_fd(const struct conn *c);
/* G2: all of it, or the socket is shut. Under c->sending. */
void guard_send(struct conn *c, const void *buf, size_t size, int flags);
void guard_owe(struct conn *c);
void guard_pay(struct conn *c, unsigned nr);
unsigned guard_owed(struct conn *c);
void guard_wait_until_paid(struct conn *c);

/* ---- guard_requests.c -------------------------------------------------------------------- */

/* The constructor of each process; before there are clients. */
void guard_requests_start(void);
/* A connection has one thread, which does its requests one after the other. */
bool guard_is_serial(void);
/* False: no memory. */
bool guard_requests_init(struct conn *c);
/* Waits for the small writes in flight. */
void guard_requests_fini(struct conn *c);
/* For nbdkit's reader: as read(), of what nbdkit is to get. */
ssize_t guard_requests_read(struct conn *c, void *buf, size_t size);

#endif
