/* listen - the sockets that accept: files of the file system, and TCP addresses.
 *
 * A socket's file is made under another name and renamed, so nobody can connect before it has its
 * mode. A file that is left of a process that was killed is replaced; one on which somebody listens
 * is an error. All workers watch all listening sockets. The kernel wakes one of them for each
 * connection, once: a worker that was woken accepts until nobody waits. So one that finds no
 * descriptor free is not woken again and again. It tries again when a connection of its own is
 * closed, and ten times a second.
 */
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "peers/common/log/log.h"
#include "peers/common/clock/clock.h"
#include "peers/memcached/memcached.h"

#define ACCEPTS 16				/* of a listener in a round */
#define AGAIN_NS 100000000u			/* after it found no descriptor */
#define SAY_NS	 60000000000u			/* between two lines of the log about that */
#define BACKLOG 1024
#define PATH_BYTES 99u				/* of sun_path, with a suffix */

static const char refused[] = "ERROR Too many open connections\r\n";

static bool is_unix(const char *text)
{
	return !strncmp(text, "unix:", 5);
}

/* Host and port of "HOST:PORT" or "[HOST]:PORT". */
static int split(const char *text, char *host, size_t size, const char **port)
{
	const char *colon = strrchr(text, ':'), *from = text;
	size_t bytes;

	if (!colon || colon == text || !colon[1])
		return -EINVAL;
	bytes = (size_t)(colon - text);
	if (*from == '[' && text[bytes - 1] == ']') {
		from++;
		bytes -= 2;
	}
	if (bytes == 0 || bytes >= size)
		return -EINVAL;
	memcpy(host, from, bytes);
	host[bytes] = '\0';
	*port = colon + 1;
	return 0;
}

int mc_listen_check(const char *text, struct xseg_error *err)
{
	char host[256], *end;
	const char *port;
	unsigned long n;

	if (is_unix(text)) {
		if (text[5] == '/' && strlen(text + 5) <= PATH_BYTES)
			return 0;
		return xseg_fail(err, -EINVAL, "listen: the path in '%.60s' does not begin with /, "
			"or has more than %u bytes", text, PATH_BYTES);
	}
	if (split(text, host, sizeof(host), &port))
		return xseg_fail(err, -EINVAL, "listen: '%.60s' is neither unix:PATH nor HOST:PORT",
			text);
	n = strtoul(port, &end, 10);
	if (!isdigit((unsigned char)*port) || *end || n == 0 || n > 65535)
		return xseg_fail(err, -EINVAL, "listen: the port in '%.60s' is not 1 to 65535",
			text);
	return 0;
}

/* Whether somebody listens there, or that cannot be known. */
static bool is_served(const struct sockaddr_un *a)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool served = fd < 0 || !connect(fd, (const struct sockaddr *)a, sizeof(*a)) ||
		      (errno != ECONNREFUSED && errno != ENOENT);

	if (fd >= 0)
		close(fd);
	return served;
}

/* The mode that was asked for, else that of the segment, and its group. */
static int take_mode(struct memcached *mc, mode_t *mode, gid_t *group, struct xseg_error *err)
{
	char path[sizeof("/dev/shm/xseg.") + XSEG_NAME_MAX];
	struct stat st;

	*group = (gid_t)-1;
	if (mc->opt.mode[0]) {
		*mode = (mode_t)strtoul(mc->opt.mode, NULL, 8);
		return 0;
	}
	snprintf(path, sizeof(path), "/dev/shm/xseg.%s", mc->peer.segment);
	if (stat(path, &st))
		return xseg_fail(err, -errno, "%s: %s", path, strerror(errno));
	*mode = st.st_mode & 0666;
	if (st.st_gid != getegid())
		*group = st.st_gid;
	return 0;
}

/* Binds and listens under another name, and gives it the name then. */
static int listen_at(int fd, struct sockaddr_un *made, const char *path, mode_t mode, gid_t group)
{
	unlink(made->sun_path);
	/* before bind(), so that the file is never there with another mode */
	if (fchmod(fd, mode & 0600) || bind(fd, (struct sockaddr *)made, sizeof(*made)))
		return -errno;
	if (lchown(made->sun_path, (uid_t)-1, group) || chmod(made->sun_path, mode) ||
		listen(fd, BACKLOG) || rename(made->sun_path, path)) {
		int rc = -errno;

		unlink(made->sun_path);
		return rc;
	}
	return 0;
}

static int open_unix(struct memcached *mc, struct mc_listener *l, const char *path,
	struct xseg_error *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX }, made = a;
	struct stat st;
	gid_t group;
	mode_t mode = 0;
	int fd, rc;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	snprintf(made.sun_path, sizeof(made.sun_path), "%s.%d", path, (int)getpid() % 1000000);
	rc = take_mode(mc, &mode, &group, err);
	if (rc)
		return rc;
	if (!lstat(path, &st) && (!S_ISSOCK(st.st_mode) || is_served(&a)))
		return xseg_fail(err, -EADDRINUSE, "%s is %s; give another listen=", path,
			S_ISSOCK(st.st_mode) ? "served by another process" : "no socket");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return xseg_fail(err, -errno, "no socket: %s", strerror(errno));
	rc = listen_at(fd, &made, path, mode, group);
	if (rc || lstat(path, &st)) {
		close(fd);
		return xseg_fail(err, rc ? rc : -errno, "cannot listen at %s: %s", path,
			strerror(rc ? -rc : errno));
	}
	*l = (struct mc_listener){ .fd = fd, .device = st.st_dev, .inode = st.st_ino };
	snprintf(l->path, sizeof(l->path), "%s", path);
	return 0;
}

static int open_tcp(struct mc_listener *l, const char *text, struct xseg_error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *a;
	int rc, fd, one = 1;
	const char *port;
	char host[256];

	if (split(text, host, sizeof(host), &port))
		return -EINVAL;
	rc = getaddrinfo(strcmp(host, "*") ? host : NULL, port, &hints, &a);
	if (rc)
		return xseg_fail(err, -EINVAL, "listen: %.60s: %s", text, gai_strerror(rc));
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, BACKLOG)) {
		rc = xseg_fail(err, -errno, "cannot listen at %.60s: %s", text, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(a);
	l->fd = fd;
	return rc;
}

static int watch(struct memcached *mc, struct mc_listener *l)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLET, .data.ptr = l };

	for (uint32_t i = 0; i < mc->peer.nr_ports; i++)
		if (epoll_ctl(mc->worker[i].epoll, EPOLL_CTL_ADD, l->fd, &e))
			return -errno;
	return 0;
}

/* The default: a file in the user's own directory for such files. */
static void default_listen(struct memcached *mc)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	snprintf(mc->opt.listen, sizeof(mc->opt.listen), "unix:%s/xseg-%.40s-%.40s.sock",
		dir && *dir ? dir : "/tmp", mc->peer.segment, mc->peer.name);
}

int mc_listen_open(struct memcached *mc, struct xseg_error *err)
{
	char list[sizeof(mc->opt.listen)], *next = list, *text;
	struct mc_listener *l;
	int rc = 0;

	if (!mc->opt.listen[0])
		default_listen(mc);
	memcpy(list, mc->opt.listen, sizeof(list));
	while (!rc && (text = strsep(&next, "\n"))) {
		if (!*text)
			continue;
		if (mc->nr_listeners == MC_LISTEN_MAX)
			return xseg_fail(err, -EINVAL, "listen: more than %u are given",
				MC_LISTEN_MAX);
		l = &mc->listener[mc->nr_listeners];
		rc = is_unix(text) ? open_unix(mc, l, text + 5, err) : open_tcp(l, text, err);
		if (rc)
			return rc;
		mc->nr_listeners++;
		rc = watch(mc, l);
		log_info("%s: clients connect to %s", mc->peer.name, text);
	}
	return rc;
}

/* Another process may have put its socket there meanwhile. */
static void unlink_own(const struct mc_listener *l)
{
	struct stat st;

	if (l->path[0] && !lstat(l->path, &st) && st.st_dev == l->device &&
		st.st_ino == l->inode)
		unlink(l->path);
}

/* A descriptor that was closed could be another file's when a worker accepts from it. */
void mc_listen_end(struct memcached *mc)
{
	for (struct mc_listener *l = mc->listener; l < mc->listener + mc->nr_listeners; l++) {
		if (l->ended)
			continue;
		l->ended = true;
		shutdown(l->fd, SHUT_RDWR);
		unlink_own(l);
	}
}

void mc_listen_close(struct memcached *mc)
{
	mc_listen_end(mc);
	for (uint32_t i = 0; i < mc->nr_listeners; i++)
		close(mc->listener[i].fd);
	mc->nr_listeners = 0;
}

static void take_client(struct mc_worker *w, int fd)
{
	int one = 1;

	/* no effect on a socket of the file system */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	mc_count(w, MS_CONNECTIONS_TOTAL, 1);
	if (w->free_conns) {
		mc_conn_open(w, fd);
		return;
	}
	mc_count(w, MS_CONNECTIONS_REFUSED, 1);
	send(fd, refused, sizeof(refused) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

/* Clients wait, and those that are connected go on. */
static void wait_for_fds(struct mc_worker *w, int error)
{
	struct memcached *mc = w->mc;
	uint64_t now_ns = w->pp->now_ns, said_ns = atomic_load(&mc->no_fds_ns);

	w->accept_ns = now_ns + AGAIN_NS;
	mc_count(w, MS_LISTEN_DISABLED, 1);
	if ((!said_ns || clock_since(said_ns, now_ns) > SAY_NS) &&
		atomic_compare_exchange_strong(&mc->no_fds_ns, &said_ns, now_ns))
		log_warn("%s: clients wait to be accepted: %s; raise ulimit -n, or give fewer "
			"connections", mc->peer.name, strerror(error));
}

/* What has become of a listener. */
enum waiting { NOBODY_WAITS, MAY_WAIT, NO_FDS };

static enum waiting accept_of(struct mc_worker *w, int listener, bool *any)
{
	for (int i = 0; i < ACCEPTS; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			take_client(w, fd);
			*any = true;
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			   errno == ENOMEM) {
			wait_for_fds(w, errno);
			return NO_FDS;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			return NOBODY_WAITS;
		}
	}
	return MAY_WAIT;
}

bool mc_accept(struct mc_worker *w)
{
	bool any = false, more = false;

	for (uint32_t i = 0; i < w->mc->nr_listeners; i++) {
		enum waiting left = accept_of(w, w->mc->listener[i].fd, &any);

		more |= left != NOBODY_WAITS;
		if (left == NO_FDS)
			break;
	}
	w->accepts = more;
	return any;
}
