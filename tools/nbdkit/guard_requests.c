/* guard_requests - what a client sends, after its handshake. The guard (guard.c) reads it before
 * nbdkit does, as much as there is by one call. Small writes are done by the plug-in's writers
 * (writers.h), in batches, and nbdkit never sees them. All else goes on to nbdkit unchanged.
 *
 * nbdkit has a thread for each request, which sleeps until the request is done. For a write of 4
 * KiB these sleeps and wake-ups cost several times as much as the write
 * (docs/decisions/025-small-nbd-writes-go-past-nbdkit.md).
 *
 *   the first bytes that are not used yet    what happens
 *   less than a request                      answers are sent as they come, and more is read
 *   a small write: no more than WRITER_BYTES submitted to the connection's writer
 *     with flags that nbdkit would take; a
 *     writer is idle, and there is no pause
 *   nonsense                                 the connection ends
 *   DISC                                     nbdkit gets it when no answer is owed
 *   any other                                nbdkit gets it
 *
 * Contract: one thread of the connection is in guard_requests_read() at a time (nbdkit's lock). It
 * alone uses the connection's writer. That thread may leave with small writes in flight; the next
 * reader then answers them (Q3).
 *
 * Batches pay only where writes are quick. If none is done in QUICK_NS, the connection's next small
 * writes go to nbdkit (`pause`), which has a thread for each.
 *
 * Invariants
 *   Q1  The writer has nr_written writes in flight, and the client is owed their answers. If there
 *       are none, the connection gives the writer back before it sleeps.
 *   Q2  nbdkit gets whole requests only: it is owed the rest of one (give_bytes), or the next byte
 *       begins one.
 *   Q3  Small writes are in flight only while a thread of nbdkit reads, or will: nbdkit's last free
 *       thread gets no request before they are answered. So their answers wait for no other
 *       request.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/nbdkit/guard.h"
#include "tools/nbdkit/writers.h"

/* A request, as the NBD protocol has it: magic, flags, type, handle, offset, size. */
#define REQUEST_BYTES 28u
#define REQUEST_MAGIC 0x25609513u
#define FLAGS_AT      4
#define TYPE_AT	      6
#define HANDLE_AT     8
#define OFFSET_AT     16
#define SIZE_AT	      24
#define TYPE_WRITE    1
#define TYPE_DISC     2
#define FLAG_FUA      1
#define WRITE_MAX     (128u << 20)	/* nbdkit reads, and drops, what it refuses; no more */

/* An answer: magic, error, handle. */
#define ANSWER_BYTES 16u
#define ANSWER_MAGIC 0x67446698u

#define IN_BYTES (128u << 10)
#define QUICK_NS 500000ull	/* writes that take longer are waited for beside the socket */
#define PAUSE_MIN 64u				/* small writes */
#define PAUSE_MAX 1024u
#define LONG_NS	 100000000ull

enum kind { KIND_PART, KIND_NONSENSE, KIND_SMALL_WRITE, KIND_DISC, KIND_OTHER };

static const struct writer_ops *ops;		/* NULL: nobody does small writes */
static unsigned nr_threads;			/* of a connection; 0: not known */

void guard_requests_start(void)
{
	const char *threads = getenv("XSEG_GUARD_THREADS");

	nr_threads = threads ? (unsigned)strtoul(threads, NULL, 10) : 0;
}

bool guard_is_serial(void)
{
	return nr_threads == 1;
}

bool xseg_guard_use_writers(const struct writer_ops *theirs)
{
	if (nr_threads > 1)
		ops = theirs;
	return ops;
}

bool guard_requests_init(struct conn *c)
{
	c->ended = c->bulk = c->slow = false;
	c->at = c->end = c->give_bytes = 0;
	c->writer = c->export = NULL;
	c->nr_written = c->pause = c->pause_left = c->nr_quick = 0;
	c->in = malloc(IN_BYTES);
	return c->in;
}

/* ---- small writes ------------------------------------------------------------------------ */

static void answer(struct conn *c, const struct writer_answer *answers, unsigned nr)
{
	uint8_t out[WRITER_ANSWERS][ANSWER_BYTES];

	for (unsigned i = 0; i < nr; i++) {
		uint32_t words[2] = { htonl(ANSWER_MAGIC), htonl(answers[i].error) };

		memcpy(out[i], words, sizeof(words));
		memcpy(out[i] + sizeof(words), &answers[i].handle, sizeof(answers[i].handle));
	}
	pthread_mutex_lock(&c->sending);
	guard_send(c, out, nr * ANSWER_BYTES, 0);
	pthread_mutex_unlock(&c->sending);
	guard_pay(c, nr);
}

static bool reap(struct conn *c, uint64_t timeout_ns)
{
	struct writer_answer answers[WRITER_ANSWERS];
	unsigned nr = ops->reap(c->writer, answers, timeout_ns);

	if (!nr)
		return false;
	c->nr_written -= nr;
	c->slow &= c->nr_written > 0;
	answer(c, answers, nr);
	return true;
}

static void finish(struct conn *c)
{
	while (c->nr_written)
		reap(c, LONG_NS);
	if (c->writer)
		ops->put(c->writer);
	c->writer = NULL;
}

void guard_requests_fini(struct conn *c)
{
	finish(c);
	free(c->in);
}

/* Batches do not pay. Those in flight are waited for, and the next ones go to nbdkit. */
static void pause_small_writes(struct conn *c)
{
	c->slow = true;
	c->pause = c->pause ? c->pause * 2 : PAUSE_MIN;
	if (c->pause > PAUSE_MAX)
		c->pause = PAUSE_MAX;
	c->pause_left = c->pause;
	c->nr_quick = 0;
}

/* Until a small write is done, or the client sends something. */
static void wait_for_both(struct conn *c)
{
	struct pollfd fds[2] = { { .fd = guard_fd(c), .events = POLLIN }, { .events = POLLIN } };

	fds[1].fd = ops->arm(c->writer);
	if (fds[1].fd >= 0)
		poll(fds, 2, -1);
	else if (fds[1].fd != -EAGAIN)
		reap(c, LONG_NS);
}

/* The client has sent no more. */
static void wait_for_writes(struct conn *c)
{
	if (!c->slow && reap(c, QUICK_NS))
		return;
	if (!c->slow)
		pause_small_writes(c);
	ops->leave();
	wait_for_both(c);
	if (c->nr_written)
		reap(c, 0);
}

static uint64_t long_word(const uint8_t *at)
{
	uint32_t w[2];

	memcpy(w, at, sizeof(w));
	return (uint64_t)ntohl(w[0]) << 32 | ntohl(w[1]);
}

static uint32_t word(const uint8_t *at)
{
	uint32_t w;

	memcpy(&w, at, sizeof(w));
	return ntohl(w);
}

static unsigned half(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

/* False: nbdkit is to do it. */
static bool write_small(struct conn *c)
{
	const uint8_t *head = c->in + c->at;
	struct writer_io w = { .offset = long_word(head + OFFSET_AT),
		.size = word(head + SIZE_AT),
		.fua = half(head + FLAGS_AT) & FLAG_FUA,
		.data = head + REQUEST_BYTES };
	int rc;

	if (c->pause_left) {
		c->pause_left--;
		return false;
	}
	if (!c->writer)
		c->writer = ops->take(c->export);
	if (!c->writer)
		return false;
	memcpy(&w.handle, head + HANDLE_AT, sizeof(w.handle));
	while ((rc = ops->submit(c->writer, &w)) == -EAGAIN)
		reap(c, LONG_NS);
	c->at += REQUEST_BYTES + w.size;
	c->bulk = false;
	guard_owe(c);
	if (rc)
		answer(c, &(struct writer_answer){ w.handle, (uint32_t)-rc }, 1);
	else
		c->nr_written++;
	if (++c->nr_quick == PAUSE_MIN)
		c->pause = 0;
	return true;
}

/* ---- requests ---------------------------------------------------------------------------- */

static enum kind kind_of(const struct conn *c)
{
	const uint8_t *head = c->in + c->at;
	size_t bytes = c->end - c->at;
	uint32_t size;

	if (bytes < REQUEST_BYTES)
		return KIND_PART;
	if (word(head) != REQUEST_MAGIC)
		return KIND_NONSENSE;
	if (half(head + TYPE_AT) == TYPE_DISC)
		return KIND_DISC;
	if (half(head + TYPE_AT) != TYPE_WRITE)
		return KIND_OTHER;
	size = word(head + SIZE_AT);
	if (size > WRITE_MAX)
		return KIND_NONSENSE;
	if (!c->export || size == 0 || size > WRITER_BYTES || half(head + FLAGS_AT) & ~FLAG_FUA)
		return KIND_OTHER;
	return bytes < REQUEST_BYTES + size ? KIND_PART : KIND_SMALL_WRITE;
}

/* Reads more. False: there is no more. If the data of a large write is likely to come, only its
 * head: nbdkit reads the data to its place. */
static bool fill(struct conn *c)
{
	size_t max;
	ssize_t rc;

	memmove(c->in, c->in + c->at, c->end - c->at);
	c->end -= c->at;
	c->at = 0;
	max = c->bulk && c->end < REQUEST_BYTES ? REQUEST_BYTES - c->end : IN_BYTES - c->end;
	if (!c->nr_written) {
		finish(c);
		rc = guard_libc_read(guard_fd(c), c->in + c->end, max);
	} else {
		rc = guard_libc_recv(guard_fd(c), c->in + c->end, max, MSG_DONTWAIT);
		if (rc < 0 && errno == EAGAIN) {
			wait_for_writes(c);
			return true;
		}
	}
	if (rc < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	c->end += rc > 0 ? (size_t)rc : 0;
	return rc > 0;
}

/* nbdkit gets the first request, and answers it. */
static void hand_out(struct conn *c)
{
	const uint8_t *head = c->in + c->at;
	size_t data = half(head + TYPE_AT) == TYPE_WRITE ? word(head + SIZE_AT) : 0;

	if (c->nr_written)
		reap(c, 0);
	while (c->nr_written && guard_owed(c) - c->nr_written + 1 >= nr_threads)	/* Q3 */
		reap(c, LONG_NS);
	if (ops)
		ops->leave();
	guard_owe(c);
	c->bulk = data > WRITER_BYTES;
	c->give_bytes = REQUEST_BYTES + data;
}

/* False: there is no more request. */
static bool next_request(struct conn *c)
{
	while (!c->give_bytes) {
		switch (kind_of(c)) {
		case KIND_PART:
			if (!fill(c))
				return false;
			break;
		case KIND_NONSENSE:
			shutdown(guard_fd(c), SHUT_RDWR);
			return false;
		case KIND_DISC:
			finish(c);
			guard_wait_until_paid(c);
			c->give_bytes = REQUEST_BYTES;
			break;
		case KIND_SMALL_WRITE:
			if (write_small(c))
				break;
			/* fallthrough */
		case KIND_OTHER:
			hand_out(c);
		}
	}
	return true;
}

static ssize_t give(struct conn *c, void *buf, size_t size)
{
	size_t here = c->end - c->at;
	ssize_t rc;

	if (size > c->give_bytes)
		size = c->give_bytes;
	if (here) {
		rc = (ssize_t)(size < here ? size : here);
		memcpy(buf, c->in + c->at, (size_t)rc);
		c->at += (size_t)rc;
	} else {
		do
			rc = guard_libc_read(guard_fd(c), buf, size);
		while (rc < 0 && (errno == EINTR || errno == EAGAIN));
	}
	c->give_bytes -= rc > 0 ? (size_t)rc : 0;
	return rc;
}

/* The client has no more of it: what it began to say is no request, and gets no answer. */
static ssize_t end(struct conn *c)
{
	if (!c->ended && c->give_bytes)
		guard_pay(c, 1);
	c->ended = true;
	finish(c);
	guard_wait_until_paid(c);
	return 0;
}

ssize_t guard_requests_read(struct conn *c, void *buf, size_t size)
{
	ssize_t rc;

	if (c->ended || !next_request(c))
		return end(c);
	rc = give(c, buf, size);
	return rc > 0 ? rc : end(c);
}
