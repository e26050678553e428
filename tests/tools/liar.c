/* liar - a store that lies on purpose, so that xbench's verifier must find the lies. For tests.
 *
 *	liar -s SEGMENT [--name=liar] [--size=16M] [--object_size=4M]
 *	     [--lie=KIND] [--every=N] [--fail=N]
 *
 * It serves xbench's objects from its own memory, one thread, first come, first served. Lies, each
 * Nth time that one is possible:
 *   stale      a read returns, for one sector, the data from before its last write
 *   lost       a write is answered and not done
 *   torn       a write does only the first half of its first sector
 *   misplaced  a read returns, for one sector, the data of the sector before it
 *   short      a read is answered with 512 bytes less than it asked for
 *
 * --fail=N: every Nth write fails with EIO, and is done all the same every second time.
 *
 * Ends orderly at SIGTERM; prints the number of lies told.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/options/cli.h"
#include "xseg/xseg.h"

#define PREFIX_LEN 7				/* of "xbench:" */

enum lie { LIE_NONE, LIE_STALE, LIE_LOST, LIE_TORN, LIE_MISPLACED, LIE_SHORT };

static const char *const lies[] = {
	[LIE_NONE] = "none", [LIE_STALE] = "stale", [LIE_LOST] = "lost", [LIE_TORN] = "torn",
	[LIE_MISPLACED] = "misplaced", [LIE_SHORT] = "short", NULL
};

struct liar {
	char segment[XSEG_NAME_MAX], name[XSEG_NAME_MAX];
	uint64_t size, object_size;
	uint32_t lie, every, fail;
	struct xseg *seg;
	struct xport *port;
	uint8_t *now, *before;		/* the objects, and each sector before its last write */
	uint64_t chances, told, writes;
};

#define FIELD(f) offsetof(struct liar, f)
#define NAME(n, d) \
	{ \
		.name = #n, .kind = OPT_STR, .off = FIELD(n), .len = XSEG_NAME_MAX, .def = d \
	}
#define NUM(n, k, d, lo) \
	{ \
		.name = #n, .kind = k, .off = FIELD(n), .def = d, .min = lo \
	}

static const struct opt opts[] = {
	NAME(segment, NULL),
	NAME(name, "liar"),
	NUM(size, OPT_SIZE, "16M", 4096),
	NUM(object_size, OPT_SIZE, "4M", 4096),
	NUM(every, OPT_UINT, "100", 1),
	NUM(fail, OPT_UINT, "0", 0),
	{ .name = "lie", .kind = OPT_ENUM, .off = FIELD(lie), .names = lies, .def = "none" },
	{ .name = NULL }
};

static volatile sig_atomic_t stopping;

static void on_signal(int sig)
{
	(void)sig;
	stopping = 1;
}

/* Whether a lie of this kind is due, now that one is possible. */
static bool lie_now(struct liar *l, enum lie lie)
{
	if (l->lie != lie || ++l->chances % l->every)
		return false;
	l->told++;
	return true;
}

static bool is_zero(const uint8_t *sector)
{
	return !sector[0] && !memcmp(sector, sector + 1, XSEG_SECTOR - 1);
}

static int64_t serve_read(struct liar *l, const struct xreq *r, uint64_t at)
{
	const uint8_t *now = l->now + at, *before = l->before + at;

	xseg_req_write_data(l->seg, r, 0, now, r->size);
	if (memcmp(now, before, XSEG_SECTOR) && lie_now(l, LIE_STALE))
		xseg_req_write_data(l->seg, r, 0, before, XSEG_SECTOR);
	if (at && !is_zero(now) && !is_zero(now - XSEG_SECTOR) && lie_now(l, LIE_MISPLACED))
		xseg_req_write_data(l->seg, r, 0, now - XSEG_SECTOR, XSEG_SECTOR);
	return lie_now(l, LIE_SHORT) ? r->size - XSEG_SECTOR : r->size;
}

static int64_t serve_write(struct liar *l, const struct xreq *r, uint64_t at)
{
	uint8_t sector[XSEG_SECTOR];
	bool fails = l->fail && ++l->writes % l->fail == 0;

	if (fails && l->writes / l->fail % 2)
		return -EIO;
	if (!is_zero(l->now + at) && lie_now(l, LIE_LOST))
		return r->size;
	memcpy(sector, l->now + at, sizeof(sector));
	memcpy(l->before + at, l->now + at, r->size);
	if (r->op == XSEG_OP_WRITE)
		xseg_req_read_data(l->seg, r, 0, l->now + at, r->size);
	else
		memset(l->now + at, 0, r->size);
	if (r->op == XSEG_OP_WRITE && lie_now(l, LIE_TORN))
		memcpy(l->now + at + XSEG_SECTOR / 2, sector + XSEG_SECTOR / 2, XSEG_SECTOR / 2);
	return fails ? -EIO : (int64_t)r->size;
}

static int64_t serve(struct liar *l, const struct xreq *r)
{
	uint64_t at;

	if (r->op == XSEG_OP_FLUSH)
		return 0;
	if (strlen(r->target) != PREFIX_LEN + 16)
		return -ENOENT;
	at = strtoull(r->target + PREFIX_LEN, NULL, 16) * l->object_size + r->obj_offset;
	if (at > l->size || r->size > l->size - at)
		return -EINVAL;
	switch (r->op) {
	case XSEG_OP_READ:
		return serve_read(l, r, at);
	case XSEG_OP_WRITE:
	case XSEG_OP_DISCARD:
	case XSEG_OP_WRITE_ZEROES:
		return serve_write(l, r, at);
	default:
		return -EOPNOTSUPP;
	}
}

static void run(struct liar *l)
{
	struct xreq *r[64];
	uint32_t n, i;

	while (!stopping) {
		n = xseg_port_receive(l->port, r, 64);
		for (i = 0; i < n; i++)
			xseg_req_answer(l->port, r[i], serve(l, r[i]));
		xseg_port_flush(l->port);
		if (!n)
			xseg_port_wait(l->port, 50000000);
	}
}

static int open_all(struct liar *l, struct xseg_peer **peer, struct xseg_error *err)
{
	int rc = xseg_attach(l->segment, 0, &l->seg, err);

	if (rc)
		return rc;
	l->now = calloc(1, l->size);
	l->before = calloc(1, l->size);
	if (!l->now || !l->before)
		return xseg_fail(err, -ENOMEM, "no memory");
	return xseg_peer_open(
		l->seg,
		&(struct xseg_peer_params){ .name = l->name, .kind = "liar", .nr_ports = 1 }, peer,
		err);
}

int main(int argc, char **argv)
{
	static struct liar l;
	const struct cli_group groups[] = { { opts, &l }, { NULL, NULL } };
	struct xseg_error err = { "" };
	struct xseg_peer *peer = NULL;
	int rc;

	opt_set_defaults(opts, &l);
	rc = cli_parse(groups, argc, argv, &err);
	if (rc >= 0)
		rc = open_all(&l, &peer, &err);
	if (rc) {
		fprintf(stderr, "liar: %s\n", err.text);
		return 2;
	}
	signal(SIGTERM, on_signal);
	l.port = xseg_peer_port(peer, 0);
	xseg_peer_serve(peer);
	run(&l);
	printf("lies=%" PRIu64 "\n", l.told);
	xseg_peer_close(peer, XSEG_CLOSE_FREE_ARENA);
	xseg_detach(l.seg);
	free(l.now);
	free(l.before);
	return 0;
}
