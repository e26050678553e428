/* guard - keeps one client of an nbdkit from ending it under all others:
 * build/lib/xseg-nbdkit-guard.so, which `xseg export` has the dynamic linker preload into nbdkit.
 * The reasons are in docs/decisions/001-one-nbd-client-throws-others-out.md.
 *
 * nbdkit 1.32 has several threads a connection. A thread that cannot send its answer, or reads
 * nonsense, shuts the socket. Another thread that is about to send then fails an assertion, and
 * nbdkit ends with all its clients. So the library stands between nbdkit and the C library:
 * accept4(), read(), send() and close() of a client's socket go through it. It tells nbdkit that a
 * connection has ended when no other thread of the connection can send.
 *
 *   phase       to       when                                            by
 *   HANDSHAKE   SERVED   a second thread reads: nbdkit has begun its     read
 *                        threads that do requests
 *   any         ENDED    the client has closed, an error, nonsense; in   read
 *                        HANDSHAKE also when its time is over
 *
 * Contract: of a connection, one thread reads at a time, and one sends (nbdkit has locks for both).
 * Each connection has two threads of nbdkit or more (--threads). At the end of a connection read()
 * waits for other threads' answers, and at no other time. An answer ends with the send() that does
 * not say MSG_MORE. The library sees nothing of TLS.
 *
 * Settings are in the environment:
 *   $XSEG_GUARD_CONNECTIONS   how many sockets there may be
 *   $XSEG_GUARD_CUT           a descriptor, of a socket. A byte is sent to it before nbdkit gets
 *                             its first client, so the other end knows that the library is in
 *                             its place. When it ends, sockets that are owed nothing are shut at
 *                             once, others when they are owed nothing any more, or CUT_S later
 *
 * Invariants
 *   G1  A connection's end, and a request that says that it ends, reach nbdkit when `owed` is 0.
 *   G2  send() of a thread that does requests never fails. If it cannot send, the data is dropped
 *       and the socket is shut, so that its reader finds the end.
 *   G3  `owed` is the number of requests that nbdkit has read, and not yet answered.
 *   G4  There are no more sockets than the bound. One more is closed when it is accepted, so
 *       nbdkit's other clients lose nothing.
 *   G5  HANDSHAKE_NS after it was accepted, a client that is still in its handshake reads the end.
 *       One that takes no answer in it is not ended by that: its send() may wait until it is cut.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HANDSHAKE_NS 10000000000ull
#define CUT_S	     3
#define MS_NS	     1000000u
#define FDS	     4096
#define CONN_FDS     3				/* of a connection: a socket and a pipe */
#define OWN_FDS	     64				/* nbdkit's own, and those of the plug-in */

/* A request, as the NBD protocol has it: magic, flags, type, handle, offset, size. */
#define REQUEST_BYTES 28
#define REQUEST_MAGIC 0x25609513u
#define TYPE_AT	      6
#define SIZE_AT	      24
#define TYPE_WRITE    1
#define TYPE_DISC     2
#define WRITE_MAX     (128u << 20)	/* nbdkit reads, and drops, what it refuses; no more */

struct conn {
	_Atomic bool used;			/* changed under `table` */
	pthread_t first;			/* does the handshake, and no request */
	bool begun;				/* `first` is known: it sends before all else */
	uint64_t since_ns;

	/* its reader's alone */
	bool ended;
	uint8_t head[REQUEST_BYTES];
	size_t head_bytes;			/* read of it */
	uint32_t payload_bytes;			/* still to be read of a write's data */

	/* guards `owed`; nothing is taken under it */
	pthread_mutex_t lock;
	pthread_cond_t paid;			/* owed is 0 */
	unsigned owed;
};

static struct conn conns[FDS];
/* Guards which are used, and how many; held when a socket is closed or cut, so that no other file
 * gets its descriptor meanwhile. Taken before a connection's lock. */
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static unsigned nr_used, limit = FDS;
static bool said;				/* that there are as many as there may be */
static bool lowered;				/* descriptors bound them, not the setting */
static _Atomic bool cut;			/* the export ends */
static int cut_fd = -1;

static struct {
	int (*accept4)(int, struct sockaddr *, socklen_t *, int);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*send)(int, const void *, size_t, int);
	int (*close)(int);
} libc;

/* What nbdkit begins itself (--run) is no server of clients, and would not find the library by our
 * descriptor. A script that begins nbdkit is to hand it on. */
__attribute__((constructor)) static void leave_environment(void)
{
	if (strstr(program_invocation_short_name, "nbdkit"))
		unsetenv("LD_PRELOAD");
}

/* Another library's constructor may be before this one. */
static void find_libc(void)
{
	*(void **)&libc.accept4 = dlsym(RTLD_NEXT, "accept4");
	*(void **)&libc.read = dlsym(RTLD_NEXT, "read");
	*(void **)&libc.send = dlsym(RTLD_NEXT, "send");
	*(void **)&libc.close = dlsym(RTLD_NEXT, "close");
}

static pthread_once_t found = PTHREAD_ONCE_INIT;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct conn *conn_of(int fd)
{
	/* acquire: what remember() wrote */
	if (fd < 0 || fd >= FDS || !atomic_load_explicit(&conns[fd].used, memory_order_acquire))
		return NULL;
	return &conns[fd];
}

/* ---- sockets begin and end --------------------------------------------------------------- */

static void shut(bool also_owed)
{
	pthread_mutex_lock(&table);
	limit = 0;
	for (int fd = 0; fd < FDS; fd++) {
		struct conn *c = conn_of(fd);

		if (!c)
			continue;
		pthread_mutex_lock(&c->lock);
		if (also_owed || !c->owed)
			shutdown(fd, SHUT_RDWR);
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_unlock(&table);
}

/* Waits for the other end's end, which is that of who started nbdkit, or its wish. */
static void *cut_all(void *arg)
{
	struct timespec left = { .tv_sec = CUT_S };
	char byte;

	(void)arg;
	while (libc.read(cut_fd, &byte, 1) < 0 && errno == EINTR)
		;
	/* seq_cst, and before the look at what each is owed: pay() looks after it has paid */
	atomic_store(&cut, true);
	shut(false);
	while (nanosleep(&left, &left) && errno == EINTR)
		;
	shut(true);
	return NULL;
}

/* nbdkit without a descriptor left would try to accept, without end. */
static void bound_by_descriptors(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max < FDS ? files.rlim_max : FDS;
	if (setrlimit(RLIMIT_NOFILE, &files) && getrlimit(RLIMIT_NOFILE, &files))
		return;
	if (files.rlim_cur >= OWN_FDS + (rlim_t)limit * CONN_FDS)
		return;
	limit = files.rlim_cur > OWN_FDS ? (files.rlim_cur - OWN_FDS) / CONN_FDS : 0;
	lowered = true;
}

/* When the first client comes: nbdkit goes to the background before. Signals are nbdkit's. */
static void start(void)
{
	const char *connections = getenv("XSEG_GUARD_CONNECTIONS"),
		   *end = getenv("XSEG_GUARD_CUT");
	sigset_t all, before;
	pthread_t thread;

	if (connections)
		limit = (unsigned)strtoul(connections, NULL, 10);
	bound_by_descriptors();
	if (!end)
		return;
	cut_fd = (int)strtol(end, NULL, 10);
	/* nobody there: cut_all() finds that, too */
	(void)libc.send(cut_fd, "", 1, MSG_NOSIGNAL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(&thread, NULL, cut_all, NULL))
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool remember(int fd)
{
	struct conn *c = fd < FDS ? &conns[fd] : NULL;
	bool ok;

	pthread_mutex_lock(&table);
	ok = c && nr_used < limit;
	if (ok) {
		nr_used++;
		c->begun = c->ended = false;
		c->since_ns = now_ns();
		c->head_bytes = c->payload_bytes = c->owed = 0;
		pthread_mutex_init(&c->lock, NULL);
		pthread_cond_init(&c->paid, NULL);
		/* release: with all of the above */
		atomic_store_explicit(&c->used, true, memory_order_release);
	}
	if (!ok && !said && !cut)
		dprintf(STDERR_FILENO,
			"xseg export: all %u connections are taken, and new ones are closed; end "
			"one, or export the volume with more %s\n",
			limit,
			lowered ? "descriptors (ulimit -n), which bound them" : "--connections");
	said = !ok;
	pthread_mutex_unlock(&table);
	return ok;
}

/* nbdkit says "Too many users", too. */
int accept4(int listener, struct sockaddr *addr, socklen_t *size, int flags)
{
	static pthread_once_t started = PTHREAD_ONCE_INIT;
	int fd;

	pthread_once(&found, find_libc);
	pthread_once(&started, start);
	fd = libc.accept4(listener, addr, size, flags);
	if (fd < 0 || remember(fd))
		return fd;
	libc.close(fd);
	errno = EUSERS;
	return -1;
}

int close(int fd)
{
	struct conn *c = conn_of(fd);
	int rc;

	pthread_once(&found, find_libc);
	if (!c)
		return libc.close(fd);
	pthread_mutex_lock(&table);
	atomic_store_explicit(&c->used, false, memory_order_relaxed);
	nr_used--;
	pthread_cond_destroy(&c->paid);
	pthread_mutex_destroy(&c->lock);
	rc = libc.close(fd);
	pthread_mutex_unlock(&table);
	return rc;
}

/* ---- answers ----------------------------------------------------------------------------- */

static void owe(struct conn *c)
{
	pthread_mutex_lock(&c->lock);
	c->owed++;
	pthread_mutex_unlock(&c->lock);
}

static void pay(struct conn *c)
{
	pthread_mutex_lock(&c->lock);
	if (c->owed && !--c->owed) {
		pthread_cond_signal(&c->paid);
		if (atomic_load(&cut))
			shutdown((int)(c - conns), SHUT_RDWR);
	}
	pthread_mutex_unlock(&c->lock);
}

static void wait_until_paid(struct conn *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->owed)
		pthread_cond_wait(&c->paid, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

/* Whether the caller does the handshake. */
static bool is_first(struct conn *c)
{
	if (!c->begun) {
		c->first = pthread_self();
		c->begun = true;
	}
	return pthread_equal(c->first, pthread_self());
}

/* All of it, or what can be sent. */
ssize_t send(int fd, const void *buf, size_t size, int flags)
{
	struct conn *c = conn_of(fd);
	size_t sent = 0;

	pthread_once(&found, find_libc);
	if (!c || is_first(c))
		return libc.send(fd, buf, size, flags);
	while (sent < size) {
		ssize_t rc = libc.send(fd, (const char *)buf + sent, size - sent, flags);

		if (rc < 0 && errno != EINTR && errno != EAGAIN) {
			shutdown(fd, SHUT_RDWR);
			break;
		}
		sent += rc > 0 ? (size_t)rc : 0;
	}
	if (!(flags & MSG_MORE))
		pay(c);
	return (ssize_t)size;
}

/* ---- requests ---------------------------------------------------------------------------- */

static ssize_t read_in_handshake(struct conn *c, int fd, void *buf, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t age = now_ns() - c->since_ns;
	int rc;

	while (age < HANDSHAKE_NS) {
		rc = poll(&p, 1, (int)((HANDSHAKE_NS - age) / MS_NS) + 1);
		if (rc > 0 || (rc < 0 && errno != EINTR))
			return libc.read(fd, buf, size);
		age = now_ns() - c->since_ns;
	}
	return 0;
}

static uint32_t word(const struct conn *c, size_t at)
{
	uint32_t w;

	memcpy(&w, c->head + at, sizeof(w));
	return ntohl(w);
}

static unsigned type_of(const struct conn *c)
{
	return (unsigned)c->head[TYPE_AT] << 8 | c->head[TYPE_AT + 1];
}

/* The client has no more of it: what it began to say is no request, and gets no answer. */
static ssize_t end(struct conn *c)
{
	if (!c->ended && c->payload_bytes)
		pay(c);
	c->ended = true;
	wait_until_paid(c);
	return 0;
}

/* Of what nbdkit is about to get. false: it is nonsense. */
static bool look(struct conn *c, const uint8_t *buf, size_t size)
{
	while (size) {
		size_t n = REQUEST_BYTES - c->head_bytes;

		if (c->payload_bytes) {
			n = size < c->payload_bytes ? size : c->payload_bytes;
			c->payload_bytes -= (uint32_t)n;
		} else {
			n = size < n ? size : n;
			memcpy(c->head + c->head_bytes, buf, n);
			c->head_bytes += n;
		}
		buf += n;
		size -= n;
		if (c->head_bytes < REQUEST_BYTES)
			continue;
		c->head_bytes = 0;
		if (word(c, 0) != REQUEST_MAGIC)
			return false;
		if (type_of(c) == TYPE_DISC) {
			wait_until_paid(c);
			continue;
		}
		if (type_of(c) == TYPE_WRITE && word(c, SIZE_AT) > WRITE_MAX)
			return false;
		owe(c);
		c->payload_bytes = type_of(c) == TYPE_WRITE ? word(c, SIZE_AT) : 0;
	}
	return true;
}

ssize_t read(int fd, void *buf, size_t size)
{
	struct conn *c = conn_of(fd);
	ssize_t rc;

	pthread_once(&found, find_libc);
	if (!c)
		return libc.read(fd, buf, size);
	if (is_first(c))
		return read_in_handshake(c, fd, buf, size);
	if (c->ended)
		return end(c);
	rc = libc.read(fd, buf, size);
	if (rc < 0 && (errno == EINTR || errno == EAGAIN))
		return rc;
	if (rc > 0 && look(c, buf, (size_t)rc))
		return rc;
	if (rc > 0)
		shutdown(fd, SHUT_RDWR);
	return end(c);
}
