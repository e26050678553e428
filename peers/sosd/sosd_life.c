/* sosd_life - sosd's options, how it begins and how it leaves. See sosd.h.
 *
 * Contract: as peer.h says for init, quiesced, close_how, fini and admin. fini ends all that init
 * began, even if init ended half-way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/sosd/sosd.h"

#define OPS_SPARE  (2 * PEER_MAX_THREADS)	/* ops between answer and order_leave() */
#define SECOND_NS  UINT64_C(1000000000)
#define HOUR_NS	   (3600 * SECOND_NS)
/* the lock is waited for so long at the beginning and in the end */
#define SHORTLY_NS (5 * SECOND_NS)

/* ---- life -------------------------------------------------------------------------------- */

static int ports_open(struct sosd *s)
{
	struct sosd_port *port;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < s->peer.nr_ports && !rc; i++) {
		port = &s->port[i];
		ops_list_init(&port->ready);
		ops_list_init(&port->paused);
		ops_list_init(&port->lined_up);
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

	sosd_owner_close(&s->owner);
	sosd_lister_close(&s->lister);
	sosd_rados_close(&s->rados);
	for (uint32_t i = 0; i < PEER_MAX_THREADS; i++) {
		sosd_calls_close(&s->port[i].calls);
		free(s->port[i].copy_buf);
		s->port[i] = (struct sosd_port){ .asked_ns = 0 };
	}
	ops_close(&s->ops);
	failures_fini(&s->failures);
	order_fini(&s->order);
}

/* On the keeper's thread. */
static void owner_changed(void *arg)
{
	struct sosd *s = arg;

	for (uint32_t i = 0; i < s->peer.nr_ports; i++)
		peer_port_kick(&s->peer.ports[i]);
}

static int pool_open(struct sosd *s, struct xseg_error *err)
{
	struct sosd_rados_params params = { .pool = s->pool,
					    .conf = s->conf,
					    .user = s->user,
					    .timeout_ns = SHORTLY_NS,
					    .max_out = s->peer.nr_ports * s->iodepth +
						       SOSD_SIZES_OUT };
	struct sosd_owner_params owner = { .prefix = s->prefix,
					   .segment = xseg_name(s->peer.seg),
					   .peer = s->peer.name,
					   .xp = s->peer.xp,
					   .expiry_ns = s->lock_expiry_ns,
					   .changed = owner_changed,
					   .arg = s };
	struct xseg_info info;
	int rc = sosd_rados_open(&s->rados, &params, err);

	if (rc)
		return rc;
	xseg_get_info(s->peer.seg, &info);
	owner.made_at_s = info.made_at_s;
	rc = sosd_owner_open(&s->owner, &s->rados, &owner, err);
	if (rc)
		return rc;
	rc = sosd_rados_set_timeout(&s->rados, s->io_timeout_ns);
	return rc ? xseg_fail(err, rc, "librados does not take io_timeout: %s", strerror(-rc)) : 0;
}

static int sosd_init(struct peer *p, struct xseg_error *err)
{
	struct sosd *s = sosd_of(p);
	int rc;

	order_init(&s->order);
	failures_init(&s->failures);
	atomic_store(&s->timeout_ns, s->io_timeout_ns);
	rc = ops_open(&s->ops, xseg_nr_requests(p->seg) + OPS_SPARE, sizeof(struct sosd_op));
	if (!rc)
		rc = ports_open(s);
	if (rc) {
		xseg_fail(err, rc, "no memory for the table of requests");
		goto out_fini;
	}
	rc = pool_open(s, err);
	if (rc)
		goto out_fini;
	rc = sosd_lister_open(&s->lister, &s->rados, p, s->prefix, sosd_post);
	if (rc) {
		xseg_fail(err, rc, "no thread can be had for listings: %s", strerror(-rc));
		goto out_fini;
	}
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

static bool sosd_quiesced(struct peer *p, uint64_t *left_bytes)
{
	(void)left_bytes;
	return ops_pending(&sosd_of(p)->ops) == 0;
}

/* What is in the pool needs nothing of the segment. */
static enum xseg_close sosd_close_how(struct peer *p, bool clean)
{
	struct sosd *s = sosd_of(p);

	if (clean && !sosd_rados_set_timeout(&s->rados, SHORTLY_NS))
		sosd_owner_leave(&s->owner);
	return XSEG_CLOSE_FREE_ARENA;
}

static const char *const owner_names[] = {
	[SOSD_ASKING] = "asking", [SOSD_OWNER] = "yes", [SOSD_LOST] = "lost"
};

/* Whose lease has run out asks for it again. */
static const char *owner_name(struct sosd *s)
{
	enum sosd_owner_state own = sosd_owner_state(&s->owner);

	if (own == SOSD_OWNER && !sosd_owner_may_send(&s->owner))
		own = SOSD_ASKING;
	return owner_names[own];
}

static int64_t tell_status(struct peer_port *pp, char *out, size_t size)
{
	struct sosd *s = sosd_of(pp->peer);
	uint64_t sum[SOSD_NR_COUNTS] = { 0 };
	struct kv_text t;
	uint32_t i, k;

	for (i = 0; i < pp->peer->nr_ports; i++)
		for (k = 0; k < SOSD_NR_COUNTS; k++)
			sum[k] += atomic_load_explicit(&s->port[i].count[k], memory_order_relaxed);
	kv_init(&t, out, size);
	kv_add(&t,
		"pool=%s\ncapacity_bytes=%lu\nfree_bytes=%lu\nprefix=%s\naddress=%s\nowner=%s\n"
		"pending=%u\ntrips=%lu\ntried_again=%lu\ntimeouts=%lu\nsilences=%lu\n",
		s->rados.pool,
		(unsigned long)atomic_load_explicit(&s->lister.size_bytes, memory_order_relaxed),
		(unsigned long)atomic_load_explicit(&s->lister.free_bytes, memory_order_relaxed),
		s->prefix, s->rados.address, owner_name(s), ops_pending(&s->ops),
		(unsigned long)sum[SOSD_COUNT_TRIPS], (unsigned long)sum[SOSD_COUNT_AGAIN],
		(unsigned long)sum[SOSD_COUNT_TIMEOUTS], (unsigned long)sum[SOSD_COUNT_SILENCES]);
	failures_tell(&s->failures, pp->now_ns, &t);
	sosd_lister_look(&s->lister);		/* the next question has newer figures */
	return (int64_t)t.used;
}

static int64_t sosd_admin(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size)
{
	struct sosd *s = sosd_of(pp->peer);
	bool count = false;
	int64_t rc;

	(void)r;
	if (!strcmp(line, "status"))
		return tell_status(pp, out, size);
	rc = usage_ask(&s->lister.sizes.usage, line, pp->now_ns, out, size, &count);
	if (count)
		sosd_lister_count(&s->lister);
	return rc;
}

static int check_prefix(const char *text, struct xseg_error *err)
{
	return sosd_prefix_ok(text)
		       ? 0
		       : xseg_fail(err, -EINVAL,
				 "prefix: '%.60s' is not 1 to %d letters, digits, - and _", text,
				 SOSD_PREFIX_MAX - 1);
}

static int check_user(const char *text, struct xseg_error *err)
{
	if (!text[0])
		return xseg_fail(err, -EINVAL, "user: it is empty");
	if (strncmp(text, "client.", strlen("client.")))
		return 0;
	return xseg_fail(err, -EINVAL, "user: '%.60s' begins with 'client.'; leave that out", text);
}

#define FIELD(x) offsetof(struct sosd, x)

static const struct opt sosd_opts[] = {
	{ .name = "pool", .kind = OPT_STR, .off = FIELD(pool), .flags = OPT_REQUIRED,
	  .len = sizeof(((struct sosd *)0)->pool), .arg = "POOL",
	  .help = "pool for the objects; it must exist" },
	{ .name = "conf", .kind = OPT_STR, .off = FIELD(conf), .flags = OPT_FILE,
	  .len = sizeof(((struct sosd *)0)->conf), .arg = "FILE",
	  .help = "Ceph's configuration; else $CEPH_CONF, /etc/ceph/ceph.conf" },
	{ .name = "user", .kind = OPT_STR, .off = FIELD(user),
	  .len = sizeof(((struct sosd *)0)->user), .def = "admin", .arg = "NAME",
	  .check = check_user,
	  .help = "Ceph user, without 'client.'" },
	{ .name = "prefix", .kind = OPT_STR, .off = FIELD(prefix), .len = SOSD_PREFIX_MAX,
	  .def = "xseg", .arg = "WORD", .check = check_prefix,
	  .help = "objects are called WORD.NAME; segments with the same prefix share their "
		  "volumes" },
	{ .name = "io_timeout", .kind = OPT_TIME, .off = FIELD(io_timeout_ns), .min = SECOND_NS,
	  .max = HOUR_NS, .def = "60s", .flags = OPT_LIVE, .arg = "TIME",
	  .help = "how long a request is tried that RADOS does not answer" },
	{ .name = "lock_expiry", .kind = OPT_TIME, .off = FIELD(lock_expiry_ns), .min = SECOND_NS,
	  .max = HOUR_NS, .def = "30s", .arg = "TIME",
	  .help = "another host may serve the prefix after this time without a sign of life" },
	{ .name = "iodepth", .kind = OPT_UINT, .off = FIELD(iodepth), .min = 1, .max = 4096,
	  .def = "128", .arg = "N", .help = "requests in flight at RADOS, for each thread" },
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
