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
 * What a client sends after its handshake is read by guard_requests.c, which also does small
 * writes.
 *
 * With TLS, nbdkit's requests are not to be seen here. Then each connection has one thread, which
 * cannot end another one's answer (serial). The guard bounds the connections and the time of their
 * handshakes, and ends them.
 *
 *   phase       to       when                                            by
 *   HANDSHAKE   SERVED   a second thread reads: nbdkit has begun its     read
 *                        threads that do requests
 *   any         ENDED    the client has closed, an error, nonsense; in   read
 *                        HANDSHAKE also when its time is over
 *
 * Contract: of a connection, one thread reads at a time, and one sends (nbdkit has locks for both).
 * The guard sends answers, too, between those of nbdkit (`sending`).
 * Each connection has two threads of nbdkit or more (--threads), or one if it is serial. At the end
 * of a connection read() waits for other threads' answers, and at no other time. An answer ends
 * with the send() that does not say MSG_MORE.
 *
 * Settings are in the environment:
 *   $XSEG_GUARD_CONNECTIONS   how many sockets there may be
 *   $XSEG_GUARD_THREADS       nbdkit's threads a connection. Without it all requests go to nbdkit.
 *                             1: connections are serial
 *   $XSEG_GUARD_CUT           a descriptor, of a socket. A byte is sent to it before nbdkit gets
 *                             its first client, so the other end knows that the library is in
 *                             its place. When it ends, sockets that are owed nothing are shut at
 *                             once, others when they are owed nothing any more, or CUT_S later
 *   $XSEG_GUARD_TERM          set: SIGTERM does the same, then nbdkit ends, by a SIGINT
 *
 * Invariants
 *   G1  A connection's end, and a request that says that it ends, reach nbdkit when `owed` is 0.
 *   G2  send() of a thread that does requests never fails. If it cannot send, the data is dropped
 *       and the socket is shut, so that its reader finds the end.
 *   G3  `owed` is the number of requests that were read, by nbdkit or past it, and are not
 *       answered.
 *   G4  There are no more sockets than the bound. One more is closed when it is accepted, so
 *       nbdkit's other clients lose nothing.
 *   G5  HANDSHAKE_NS after it was accepted, a client that is still in its handshake reads the end.
 *       One that takes no answer in it is not ended by that: its send() may wait until it is cut.
 */
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

#include "tools/nbdkit/guard.h"
#include "tools/nbdkit/writers.h"

#define HANDSHAKE_NS 10000000000ull
#define CUT_S	     3
#define MS_NS	     1000000u
#define FDS	     4096
#define CONN_FDS     3				/* of a connection: a socket and a pipe */
#define OWN_FDS	     64				/* nbdkit's own, and those of the plug-in */

static struct conn conns[FDS];
/* Guards which are used, and how many; held when a socket is closed or cut, so that no other file
 * gets its descriptor meanwhile. Taken before a connection's lock. */
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static unsigned nr_used, limit = FDS;
static bool said;				/* that there are as many as there may be */
static bool lowered;				/* descriptors bound them, not the setting */
static _Atomic bool cut;			/* the export ends */
static int cut_fd = -1;
static _Thread_local struct conn *in_handshake;	/* of this thread */

static struct {
	int (*accept4)(int, struct sockaddr *, socklen_t *, int);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*recv)(int, void *, size_t, int);
	ssize_t (*send)(int, const void *, size_t, int);
	int (*close)(int);
} libc;

static void *cut_by_signal(void *arg);

/* All threads of nbdkit inherit that SIGTERM is blocked. */
static void take_signal(void)
{
	sigset_t term;
	pthread_t thread;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &term, NULL);
	if (!pthread_create(&thread, NULL, cut_by_signal, NULL))
		pthread_detach(thread);
	else
		pthread_sigmask(SIG_UNBLOCK, &term, NULL);
}

/* What nbdkit begins itself (--run) is no server of clients, and would not find the library by our
 * descriptor. A script that begins nbdkit is to hand it on. */
__attribute__((constructor)) static void begin(void)
{
	guard_requests_start();
	if (!strstr(program_invocation_short_name, "nbdkit"))
		return;
	unsetenv("LD_PRELOAD");
	if (getenv("XSEG_GUARD_TERM"))
		take_signal();
}

/* Another library's constructor may be before this one. */
static void find_libc(void)
{
	*(void **)&libc.accept4 = dlsym(RTLD_NEXT, "accept4");
	*(void **)&libc.read = dlsym(RTLD_NEXT, "read");
	*(void **)&libc.recv = dlsym(RTLD_NEXT, "recv");
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

ssize_t guard_libc_read(int fd, void *buf, size_t size)
{
	return libc.read(fd, buf, size);
}

ssize_t guard_libc_recv(int fd, void *buf, size_t size, int flags)
{
	return libc.recv(fd, buf, size, flags);
}

int guard_fd(const struct conn *c)
{
	return (int)(c - conns);
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

static void begin_cut(void)
{
	/* seq_cst, and before the look at what each is owed: pay() looks after it has paid */
	atomic_store(&cut, true);
	shut(false);
}

static void end_cut(void)
{
	struct timespec left = { .tv_sec = CUT_S };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
	shut(true);
}

/* Waits for the other end's end, which is that of who started nbdkit, or its wish. */
static void *cut_all(void *arg)
{
	char byte;

	(void)arg;
	while (libc.read(cut_fd, &byte, 1) < 0 && errno == EINTR)
		;
	begin_cut();
	end_cut();
	return NULL;
}

/* nbdkit takes SIGINT as it takes SIGTERM. */
static void *cut_by_signal(void *arg)
{
	sigset_t term;
	int sig;

	(void)arg;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	while (sigwait(&term, &sig))
		;
	begin_cut();
	kill(getpid(), SIGINT);
	end_cut();
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
	ok = c && nr_used < limit && guard_requests_init(c);
	if (ok) {
		nr_used++;
		c->begun = c->answering = c->bound = false;
		c->since_ns = now_ns();
		c->owed = 0;
		pthread_mutex_init(&c->sending, NULL);
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
	guard_requests_fini(c);
	pthread_mutex_lock(&table);
	atomic_store_explicit(&c->used, false, memory_order_relaxed);
	nr_used--;
	pthread_cond_destroy(&c->paid);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->sending);
	rc = libc.close(fd);
	pthread_mutex_unlock(&table);
	return rc;
}

/* ---- answers ----------------------------------------------------------------------------- */

void guard_owe(struct conn *c)
{
	pthread_mutex_lock(&c->lock);
	c->owed++;
	pthread_mutex_unlock(&c->lock);
}

void guard_pay(struct conn *c, unsigned nr)
{
	pthread_mutex_lock(&c->lock);
	nr = c->owed < nr ? c->owed : nr;
	c->owed -= nr;
	if (nr && !c->owed) {
		pthread_cond_signal(&c->paid);
		if (atomic_load(&cut))
			shutdown(guard_fd(c), SHUT_RDWR);
	}
	pthread_mutex_unlock(&c->lock);
}

unsigned guard_owed(struct conn *c)
{
	unsigned owed;

	pthread_mutex_lock(&c->lock);
	owed = c->owed;
	pthread_mutex_unlock(&c->lock);
	return owed;
}

void guard_wait_until_paid(struct conn *c)
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
		in_handshake = c;
	}
	return pthread_equal(c->first, pthread_self());
}

void xseg_guard_bind(void *export)
{
	struct conn *c = in_handshake;

	if (!c)
		return;
	c->export = export;
	c->bound = true;
}

void guard_send(struct conn *c, const void *buf, size_t size, int flags)
{
	size_t sent = 0;

	while (sent < size) {
		ssize_t rc = libc.send(guard_fd(c), (const char *)buf + sent, size - sent, flags);

		if (rc < 0 && errno != EINTR && errno != EAGAIN) {
			shutdown(guard_fd(c), SHUT_RDWR);
			break;
		}
		sent += rc > 0 ? (size_t)rc : 0;
	}
}

ssize_t send(int fd, const void *buf, size_t size, int flags)
{
	struct conn *c = conn_of(fd);

	pthread_once(&found, find_libc);
	if (!c || is_first(c))
		return libc.send(fd, buf, size, flags);
	if (!c->answering)
		pthread_mutex_lock(&c->sending);
	guard_send(c, buf, size, flags);
	c->answering = flags & MSG_MORE;
	if (c->answering)
		return (ssize_t)size;
	pthread_mutex_unlock(&c->sending);
	guard_pay(c, 1);
	return (ssize_t)size;
}

/* ---- requests ---------------------------------------------------------------------------- */

/* Whether the client sends something before the time of its handshake is over. If that is done, a
 * serial connection has all the time that it wants. */
static bool comes_in_time(struct conn *c)
{
	struct pollfd p = { .fd = guard_fd(c), .events = POLLIN };
	uint64_t age = now_ns() - c->since_ns;
	int rc;

	if (c->bound && guard_is_serial())
		return true;
	while (age < HANDSHAKE_NS) {
		rc = poll(&p, 1, (int)((HANDSHAKE_NS - age) / MS_NS) + 1);
		if (rc > 0 || (rc < 0 && errno != EINTR))
			return true;
		age = now_ns() - c->since_ns;
	}
	return false;
}

ssize_t read(int fd, void *buf, size_t size)
{
	struct conn *c = conn_of(fd);

	pthread_once(&found, find_libc);
	if (!c)
		return libc.read(fd, buf, size);
	if (is_first(c))
		return comes_in_time(c) ? libc.read(fd, buf, size) : 0;
	return guard_requests_read(c, buf, size);
}

/* By which TLS reads. */
ssize_t recv(int fd, void *buf, size_t size, int flags)
{
	struct conn *c = conn_of(fd);

	pthread_once(&found, find_libc);
	if (c && is_first(c) && !comes_in_time(c))
		return 0;
	return libc.recv(fd, buf, size, flags);
}
