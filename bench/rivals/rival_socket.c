/* rival_socket.c - a server on a socket of this machine: --connections of each thread, each with
 * its share of --iodepth in flight. The server answers each connection in order.
 *
 * What is submitted is sent when no answer is left. One round sends to all connections, waits, and
 * receives from those that have something. A connection is written to and read at the same time, so
 * that a server which first writes its answers cannot wait for us for ever.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/rivals/rival.h"

#define RECEIVE_BYTES (256u * 1024)		/* at a time, at least */

struct session {
	const struct rival_options *o;
	struct rival_conn conn[MAX_DEPTH];
	struct pollfd poll[MAX_DEPTH];
	uint32_t nr, at;			/* at: whose answers are looked for next */
};

static int socket_open(const struct rival_options *o, void **db, struct xseg_error *err)
{
	(void)err;
	*db = (void *)(uintptr_t)o;
	return 0;
}

static void socket_close(void *db)
{
	(void)db;
}

static int connect_to(const char *path, struct rival_conn *c, struct xseg_error *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(to.sun_path))
		return xseg_fail(err, -EINVAL, "the name of the socket is too long");
	memcpy(to.sun_path, path, strlen(path) + 1);
	c->last = &c->first;
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)))
		return xseg_fail(err, -errno, "no connection to %s: %s", path, strerror(errno));
	c->state = rival_wire.begin ? rival_wire.begin() : NULL;
	return 0;
}

static void socket_end(void *session)
{
	struct session *s = session;

	for (uint32_t i = 0; i < s->nr; i++) {
		struct rival_conn *c = &s->conn[i];

		if (c->fd >= 0)
			close(c->fd);
		if (c->state)
			rival_wire.end(c->state);
		free(c->out);
		free(c->in);
	}
	free(s);
}

static int socket_begin(void *db, void **session, struct xseg_error *err)
{
	struct session *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return xseg_fail(err, -ENOMEM, "no memory");
	s->o = db;
	for (uint32_t i = 0; i < s->o->connections && !rc; i++) {
		rc = connect_to(s->o->path, &s->conn[i], err);
		s->nr++;
	}
	if (rc)
		socket_end(s);
	else
		*session = s;
	return rc;
}

/* ---- requests ---------------------------------------------------------------------------- */

/* Makes room for so many bytes behind `used`. */
static int make_room(char **memory, size_t *room, size_t used, size_t bytes)
{
	size_t wanted = *room ? *room : 4096;
	char *larger;

	while (wanted < used + bytes)
		wanted *= 2;
	if (wanted == *room)
		return 0;
	larger = realloc(*memory, wanted);
	if (!larger)
		return -ENOMEM;
	*memory = larger;
	*room = wanted;
	return 0;
}

int rival_out(struct rival_conn *c, const void *data, size_t bytes)
{
	int rc = make_room(&c->out, &c->room_out, c->nr_out, bytes);

	if (rc)
		return rc;
	memcpy(c->out + c->nr_out, data, bytes);
	c->nr_out += bytes;
	return 0;
}

/* An operation's connection is that of its slot, so each has the same number of them. */
static void socket_submit(void *session, struct rival_op *op)
{
	struct session *s = session;
	struct rival_conn *c = &s->conn[op->slot % s->nr];

	op->result = rival_wire.ask(c, op);	/* a failed one has asked for nothing */
	op->next = NULL;
	*c->last = op;
	c->last = &op->next;
}

/* ---- answers ----------------------------------------------------------------------------- */

static int send_some(struct rival_conn *c, struct xseg_error *err)
{
	ssize_t n = send(c->fd, c->out + c->sent, c->nr_out - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EINTR && errno != EAGAIN)
		return xseg_fail(err, -errno, "the server cannot be written to: %s",
			strerror(errno));
	c->sent += n > 0 ? (size_t)n : 0;
	if (c->sent == c->nr_out)
		c->sent = c->nr_out = 0;
	return 0;
}

static int receive_some(struct rival_conn *c, int flags, struct xseg_error *err)
{
	ssize_t n;

	memmove(c->in, c->in + c->at, c->nr_in - c->at);
	c->nr_in -= c->at;
	c->at = 0;
	if (make_room(&c->in, &c->room_in, c->nr_in, RECEIVE_BYTES))
		return xseg_fail(err, -ENOMEM, "no memory for an answer of %zu bytes", c->nr_in);
	n = recv(c->fd, c->in + c->nr_in, c->room_in - c->nr_in, flags);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0)
		return xseg_fail(err, -EIO, "the server closed the connection");
	c->nr_in += (size_t)n;
	return 0;
}

static int exchange(struct session *s, struct xseg_error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < s->nr && !rc; i++) {
		struct rival_conn *c = &s->conn[i];

		if (c->nr_out)
			rc = send_some(c, err);
		s->poll[i] = (struct pollfd){ c->fd, POLLIN | (c->nr_out ? POLLOUT : 0), 0 };
	}
	/* a single one that has only to receive waits in recv(), which is a call less */
	if (!rc && s->nr == 1 && !s->conn[0].nr_out)
		return receive_some(&s->conn[0], 0, err);
	if (!rc && poll(s->poll, s->nr, -1) < 0 && errno != EINTR)
		rc = xseg_fail(err, -errno, "poll: %s", strerror(errno));
	for (uint32_t i = 0; i < s->nr && !rc; i++)
		if (s->poll[i].revents & (POLLIN | POLLHUP | POLLERR))
			rc = receive_some(&s->conn[i], MSG_DONTWAIT, err);
	return rc;
}

static struct rival_op *pop(struct rival_conn *c)
{
	struct rival_op *op = c->first;

	c->first = op->next;
	if (!c->first)
		c->last = &c->first;
	return op;
}

static struct rival_op *socket_next(void *session, struct xseg_error *err)
{
	struct session *s = session;

	for (;;) {
		for (; s->at < s->nr; s->at++) {
			struct rival_conn *c = &s->conn[s->at];

			if (c->first && (c->first->result || rival_wire.answer(c, c->first)))
				return pop(c);
		}
		if (exchange(s, err))
			return NULL;
		s->at = 0;
	}
}

static void socket_release(void *session, struct rival_op *op)
{
	struct session *s = session;

	if (rival_wire.release)
		rival_wire.release(&s->conn[op->slot % s->nr], op);
}

static const char *socket_name(void)
{
	return rival_wire.name;
}

const struct rival_store rival_store = {
	.name = socket_name, .open = socket_open, .close = socket_close, .begin = socket_begin,
	.end = socket_end, .submit = socket_submit, .next = socket_next, .release = socket_release
};
