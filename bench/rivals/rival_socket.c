/* rival_socket.c - connections to a server over a socket of the machine, each with --iodepth requests
 * in flight. It speaks redis's RESP and memcached's text protocol. Both servers answer in order.
 *
 * A round takes the answers that have come on a connection, and sends as many new requests by one
 * send(). One connection is waited for in recv(), several by epoll.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/rivals/rival.h"

#define REQUEST_BYTES	(VALUE_BYTES + 128u)	/* a request or an answer at most */

struct flight {
	uint64_t block, ns;
};

struct line {
	int fd;
	struct flight flight[MAX_DEPTH];	/* a ring: [asked % MAX_DEPTH] is the next one */
	uint64_t asked, answered;
	char *out, *in;
	size_t nr_out, nr_in;
};

struct client {
	const struct rival_options *o;
	struct rival_result *result;
	struct rival_clock clock;
	uint64_t random, nr_blocks, next_fill;
	uint64_t asked, answered;		/* of all lines */
	bool over;
	int epoll;
	struct line *line;			/* o->connections of them */
	uint8_t value[VALUE_BYTES];
};

static bool writes(const struct client *c)
{
	return c->o->fill || c->o->rw == RANDWRITE;
}

static int connect_to(struct client *c, struct line *l, struct xseg_error *err)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = l };
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	if (strlen(c->o->path) >= sizeof(to.sun_path))
		return xseg_fail(err, -EINVAL, "the name of the socket is too long");
	memcpy(to.sun_path, c->o->path, strlen(c->o->path) + 1);
	l->out = malloc(MAX_DEPTH * REQUEST_BYTES);
	l->in = malloc(MAX_DEPTH * REQUEST_BYTES);
	if (!l->out || !l->in)
		return xseg_fail(err, -ENOMEM, "no memory");
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&to, sizeof(to)) ||
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, l->fd, &e))
		return xseg_fail(
			err, -errno, "no connection to %s: %s", c->o->path, strerror(errno));
	return 0;
}

/* ---- requests ---------------------------------------------------------------------------- */

static void put_text(struct line *l, const char *text, size_t len)
{
	memcpy(l->out + l->nr_out, text, len);
	l->nr_out += len;
}

static void put_request(struct client *c, struct line *l, uint64_t block)
{
	char key[KEY_BYTES], text[96];
	size_t len = rival_key(key, block);
	int n;

	if (c->o->protocol == REDIS && writes(c))
		n = snprintf(text, sizeof(text), "*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%u\r\n", len,
			key, VALUE_BYTES);
	else if (c->o->protocol == REDIS)
		n = snprintf(text, sizeof(text), "*2\r\n$3\r\nGET\r\n$%zu\r\n%s\r\n", len, key);
	else if (writes(c))
		n = snprintf(text, sizeof(text), "set %s 0 0 %u\r\n", key, VALUE_BYTES);
	else
		n = snprintf(text, sizeof(text), "get %s\r\n", key);
	put_text(l, text, (size_t)n);
	if (writes(c)) {
		rival_value(c->value, block);
		put_text(l, (const char *)c->value, VALUE_BYTES);
		put_text(l, "\r\n", 2);
	}
}

static void ask(struct client *c, struct line *l, uint64_t now)
{
	uint64_t block = c->o->fill ? c->next_fill++ : bench_random(&c->random, c->nr_blocks);

	l->flight[l->asked++ % MAX_DEPTH] = (struct flight){ block, now };
	c->asked++;
	put_request(c, l, block);
}

static int send_all(struct line *l, struct xseg_error *err)
{
	size_t sent = 0;

	while (sent < l->nr_out) {
		ssize_t n = send(l->fd, l->out + sent, l->nr_out - sent, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return xseg_fail(err, -errno, "the server cannot be written to: %s",
				strerror(errno));
		sent += n > 0 ? (size_t)n : 0;
	}
	l->nr_out = 0;
	return 0;
}

/* ---- answers ----------------------------------------------------------------------------- */

/* The length of the answer at `at`, of which `room` bytes are there; 0 when it is not complete.
 * *value: its value. */
static size_t parse_answer(const struct client *c, const char *at, size_t room, const char **value)
{
	const char *end = memchr(at, '\n', room);
	size_t line, tail = c->o->protocol == REDIS ? 2 : 7;	/* "\r\n", and "END\r\n" after it */

	*value = NULL;
	if (!end)
		return 0;
	line = (size_t)(end - at) + 1;
	if (*at != '$' && *at != 'V')
		return line;			/* no value: what a write gets, a miss, an error */
	if (*at == '$' && at[1] == '-')
		return line;
	if (room < line + VALUE_BYTES + tail)
		return 0;
	*value = end + 1;
	return line + VALUE_BYTES + tail;
}

static bool is_right(const struct client *c, const char *answer, const char *value, uint64_t block)
{
	if (!writes(c))
		return value && rival_value_is(value, VALUE_BYTES, block);
	return !strncmp(answer, "+OK", 3) || !strncmp(answer, "STORED", 6);
}

/* Takes what answers there are; returns how many. */
static uint32_t take_answers(struct client *c, struct line *l, uint64_t now)
{
	size_t at = 0, len;
	const char *value;
	uint32_t n = 0;

	while ((len = parse_answer(c, l->in + at, l->nr_in - at, &value)) != 0) {
		struct flight *f = &l->flight[l->answered++ % MAX_DEPTH];

		assert(l->answered <= l->asked);
		c->result->wrong += !is_right(c, l->in + at, value, f->block);
		if (c->clock.counting)
			xhist_record(&c->result->lat, now - f->ns);
		at += len;
		n++;
	}
	memmove(l->in, l->in + at, l->nr_in - at);
	l->nr_in -= at;
	c->answered += n;
	return n;
}

static int receive(struct line *l, struct xseg_error *err)
{
	ssize_t n = recv(l->fd, l->in + l->nr_in, MAX_DEPTH * REQUEST_BYTES - l->nr_in, 0);

	if (n < 0 && errno == EINTR)
		return 0;
	if (n <= 0)
		return xseg_fail(err, -EIO, "the server closed the connection");
	l->nr_in += (size_t)n;
	return 0;
}

static bool is_over(struct client *c, uint64_t now, uint32_t n)
{
	if (c->o->fill)
		return c->next_fill == c->nr_blocks;
	return !rival_count(&c->clock, c->result, now, n);
}

/* What has come on a line, and as many new requests. */
static int serve(struct client *c, struct line *l, struct xseg_error *err)
{
	int rc = receive(l, err);
	uint64_t now = bench_now_ns();
	uint32_t n = take_answers(c, l, now);

	c->over = c->over || is_over(c, now, n);
	for (uint32_t i = 0; i < n && !c->over && c->next_fill < c->nr_blocks; i++)
		ask(c, l, now);
	return rc ? rc : send_all(l, err);
}

/* One line is waited for in recv(). */
static int serve_lines(struct client *c, struct xseg_error *err)
{
	struct epoll_event event[64];
	int n, rc = 0;

	if (c->o->connections == 1)
		return serve(c, c->line, err);
	n = epoll_wait(c->epoll, event, 64, -1);
	for (int i = 0; i < n && !rc; i++)
		rc = serve(c, event[i].data.ptr, err);
	return rc;
}

static int load(struct client *c, struct xseg_error *err)
{
	int rc = 0;

	rival_clock_start(&c->clock, c->o);
	for (uint32_t i = 0; i < c->o->connections && !rc; i++) {
		for (uint32_t k = 0; k < c->o->iodepth && c->next_fill < c->nr_blocks; k++)
			ask(c, &c->line[i], bench_now_ns());
		rc = send_all(&c->line[i], err);
	}
	while (!rc && c->answered < c->asked)
		rc = serve_lines(c, err);
	return rc;
}

int rival_run(const struct rival_options *o, struct rival_result *result, uint32_t *nr,
	struct xseg_error *err)
{
	struct client c = { .o = o, .result = result, .random = o->randseed,
		.nr_blocks = o->size / VALUE_BYTES };
	int rc = bench_cpus_bind(&o->cpus, 0, err);

	if (rc)
		return rc;
	*nr = 1;
	memset(c.value, 0x5a, sizeof(c.value));
	c.line = calloc(o->connections, sizeof(*c.line));
	c.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!c.line || c.epoll < 0)
		rc = xseg_fail(err, -ENOMEM, "no memory for %u connections", o->connections);
	for (uint32_t i = 0; i < o->connections && !rc; i++)
		rc = connect_to(&c, &c.line[i], err);
	if (!rc)
		rc = load(&c, err);
	for (uint32_t i = 0; c.line && i < o->connections; i++) {
		free(c.line[i].out);
		free(c.line[i].in);
		if (c.line[i].out && c.line[i].fd > 0)
			close(c.line[i].fd);
	}
	if (c.epoll >= 0)
		close(c.epoll);
	free(c.line);
	return rc;
}
