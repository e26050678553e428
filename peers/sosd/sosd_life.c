/* sosd_life - sosd's options, how it begins and how it leaves. See sosd.h.
 *
 * The address by which the OSDs know the process stands in words of the peer in the segment (FIRST_WORD ..), as text, from before its first
 * trip until it has left in order:
 *
 *   stored by        when                                                 if it dies before
 *   init             connected, and its predecessor is fenced             the predecessor's is still there, whole or in part, and nothing was sent
 *   close_how        it leaves, and nothing is out                        its successor fences somebody who does nothing any more
 * The first word is cleared first and stored last; 0: there is none.
 *
 * Contract: as peer.h says for init, quiesced, close_how, fini and admin. What init began fini ends, also half of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/log.h"
#include "peers/common/words.h"
#include "peers/sosd/sosd.h"

#define OPS_SPARE  (2 * PEER_MAX_THREADS)	/* ops between answer and order_leave() */
#define FIRST_WORD (PEER_WORD_STOPPING + 1)
#define NR_WORDS   (sizeof(((struct sosd_rados *)0)->address) / sizeof(uint64_t))
#define SECOND_NS  UINT64_C(1000000000)
#define HOUR_NS	   (3600 * SECOND_NS)

_Static_assert(FIRST_WORD + NR_WORDS <= 8, "an address fits into the words of a peer");

/* ---- the address ------------------------------------------------------------------------- */

static void address_forget(struct peer *p)
{
	xseg_peer_user_set(p->xp, FIRST_WORD, 0);
}

static void address_store(struct peer *p, const char *address)
{
	uint64_t word[NR_WORDS] = { 0 };
	unsigned i;

	memcpy(word, address, strlen(address));
	address_forget(p);
	for (i = 1; i < NR_WORDS; i++)
		xseg_peer_user_set(p->xp, FIRST_WORD + i, word[i]);
	xseg_peer_user_set(p->xp, FIRST_WORD, word[0]);
}

/* What is read is input. */
static void address_load(struct peer *p, char address[NR_WORDS * sizeof(uint64_t) + 1])
{
	uint64_t word[NR_WORDS] = { 0 };
	unsigned i;

	for (i = 0; i < NR_WORDS; i++)
		word[i] = xseg_peer_user(p->xp, FIRST_WORD + i);
	memcpy(address, word, sizeof(word));
	address[sizeof(word)] = '\0';
	if (strspn(address, "0123456789abcdefABCDEFv.:/[]-") != strlen(address))
		address[0] = '\0';
}

/* S3. */
static void fence_predecessor(struct sosd *s)
{
	char address[NR_WORDS * sizeof(uint64_t) + 1];
	int rc;

	address_load(&s->peer, address);
	if (!address[0])
		return;
	rc = sosd_rados_fence(&s->rados, address);
	if (rc)
		log_warn("%s: the OSDs cannot be told to refuse what a predecessor (%s) may have sent before it died: %s; give the user mon 'profile rbd'",
			 s->peer.name, address, strerror(-rc));
	else
		log_info("%s: the OSDs refuse what its predecessor (%s) sent", s->peer.name, address);
}

/* ---- life -------------------------------------------------------------------------------- */

static int ops_alloc(struct sosd *s)
{
	uint32_t nr = xseg_nr_requests(s->peer.seg) + OPS_SPARE, i;

	s->ops = calloc(nr, sizeof(*s->ops));
	if (!s->ops)
		return -ENOMEM;
	s->pending = nr;
	for (i = 0; i < nr; i++)
		sosd_op_put(s, &s->ops[i]);
	return 0;
}

static int ports_open(struct sosd *s)
{
	struct sosd_port *port;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < s->peer.nr_ports && !rc; i++) {
		port = &s->port[i];
		sosd_list_init(&port->ready);
		sosd_list_init(&port->paused);
		sosd_list_init(&port->lined_up);
		port->copying = NULL;
		port->copy_buf = malloc(XSEG_REQ_BYTES);
		rc = port->copy_buf ? sosd_calls_open(&port->calls, s->iodepth) : -ENOMEM;
	}
	return rc;
}

/* Also after a part of init. */
static void sosd_fini(struct peer *p)
{
	struct sosd *s = sosd_of(p);

	sosd_rados_close(&s->rados);
	for (uint32_t i = 0; i < PEER_MAX_THREADS; i++) {
		sosd_calls_close(&s->port[i].calls);
		free(s->port[i].copy_buf);
		s->port[i] = (struct sosd_port){ 0 };
	}
	free(s->ops);
	s->ops = NULL;
	s->free = NULL;
	order_fini(&s->order);
	pthread_mutex_destroy(&s->lock);
}

static int sosd_init(struct peer *p, struct xseg_error *err)
{
	struct sosd *s = sosd_of(p);
	struct sosd_rados_params params = { .pool = s->pool,
					    .conf = s->conf,
					    .user = s->user,
					    .timeout_ns = s->io_timeout_ns,
					    .max_out = p->nr_ports * s->iodepth };
	int rc;

	pthread_mutex_init(&s->lock, NULL);
	order_init(&s->order);
	atomic_store(&s->timeout_ns, s->io_timeout_ns);
	rc = ops_alloc(s);
	if (!rc)
		rc = ports_open(s);
	if (rc) {
		xseg_fail(err, rc, "no memory for the table of requests");
		goto out_fini;
	}
	rc = sosd_rados_open(&s->rados, &params, err);
	if (rc)
		goto out_fini;
	fence_predecessor(s);
	address_store(p, s->rados.address);
	return 0;
out_fini:
	sosd_fini(p);
	return rc;
}

static int sosd_changed(struct peer *p, const struct opt *o, struct xseg_error *err)
{
	struct sosd *s = sosd_of(p);
	int rc;

	(void)o;
	rc = sosd_rados_set_timeout(&s->rados, s->io_timeout_ns);
	if (rc)
		return xseg_fail(err, rc, "librados does not take that: %s", strerror(-rc));
	atomic_store_explicit(&s->timeout_ns, s->io_timeout_ns, memory_order_relaxed);
	return 0;
}

static uint32_t nr_pending(struct sosd *s)
{
	uint32_t nr;

	pthread_mutex_lock(&s->lock);
	nr = s->pending;
	pthread_mutex_unlock(&s->lock);
	return nr;
}

static bool sosd_quiesced(struct peer *p, uint64_t *left_bytes, uint64_t *total_bytes)
{
	(void)left_bytes;
	(void)total_bytes;
	return nr_pending(sosd_of(p)) == 0;
}

/* What is in the pool needs nothing of the segment. */
static enum xseg_close sosd_close_how(struct peer *p, bool clean)
{
	if (clean)
		address_forget(p);
	return XSEG_CLOSE_FREE_ARENA;
}

static int64_t sosd_admin(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size)
{
	struct sosd *s = sosd_of(pp->peer);
	uint64_t sum[SOSD_NR_COUNTS] = { 0 };
	uint32_t i, k;

	(void)r;
	if (strcmp(line, "status"))
		return -ENOSYS;
	for (i = 0; i < pp->peer->nr_ports; i++)
		for (k = 0; k < SOSD_NR_COUNTS; k++)
			sum[k] += atomic_load_explicit(&s->port[i].count[k], memory_order_relaxed);
	return snprintf(out, size, "pool=%s\nprefix=%s\naddress=%s\npending=%u\ntrips=%lu\ntried_again=%lu\ntimeouts=%lu\nsilences=%lu\n",
			s->rados.pool, s->prefix, s->rados.address, nr_pending(s), (unsigned long)sum[SOSD_COUNT_TRIPS],
			(unsigned long)sum[SOSD_COUNT_AGAIN], (unsigned long)sum[SOSD_COUNT_TIMEOUTS],
			(unsigned long)sum[SOSD_COUNT_SILENCES]);
}

static int check_prefix(const char *text, struct xseg_error *err)
{
	return sosd_prefix_ok(text) ? 0 :
		xseg_fail(err, -EINVAL, "prefix: '%.60s' is not 1 to %d letters, digits, - and _", text, SOSD_PREFIX_MAX - 1);
}

#define FIELD(x) offsetof(struct sosd, x)

static const struct opt sosd_opts[] = {
	{ .name = "pool", .kind = OPT_STR, .off = FIELD(pool), .flags = OPT_REQUIRED, .len = sizeof(((struct sosd *)0)->pool),
	  .arg = "POOL", .help = "where the objects are; it is there already" },
	{ .name = "conf", .kind = OPT_STR, .off = FIELD(conf), .len = sizeof(((struct sosd *)0)->conf), .arg = "FILE",
	  .help = "Ceph's configuration; else $CEPH_CONF, /etc/ceph/ceph.conf" },
	{ .name = "user", .kind = OPT_STR, .off = FIELD(user), .len = sizeof(((struct sosd *)0)->user), .def = "admin", .arg = "NAME",
	  .help = "as who, without 'client.'" },
	{ .name = "prefix", .kind = OPT_STR, .off = FIELD(prefix), .len = SOSD_PREFIX_MAX, .def = "xseg", .arg = "WORD",
	  .check = check_prefix, .help = "objects are called WORD.NAME; segments of one prefix have their volumes in common" },
	{ .name = "io_timeout", .kind = OPT_TIME, .off = FIELD(io_timeout_ns), .min = SECOND_NS, .max = HOUR_NS, .def = "60s",
	  .flags = OPT_LIVE, .arg = "TIME", .help = "a request that RADOS does not answer is tried for so long" },
	{ .name = "iodepth", .kind = OPT_UINT, .off = FIELD(iodepth), .min = 1, .max = 4096, .def = "128", .arg = "N",
	  .help = "requests that RADOS has at a time, for each thread" },
	{ 0 }
};

const struct peer_class sosd_class = {
	.kind = "sosd",
	.summary = "objects in a pool of Ceph RADOS, through librados",
	.opts = sosd_opts,
	.size = sizeof(struct sosd),
	.init = sosd_init,
	.recover = sosd_recover,
	.request = sosd_request,
	.poll = sosd_poll,
	.admin = sosd_admin,
	.changed = sosd_changed,
	.quiesced = sosd_quiesced,
	.close_how = sosd_close_how,
	.fini = sosd_fini,
};
