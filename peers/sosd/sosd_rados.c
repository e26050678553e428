/* sosd_rados - see sosd_rados.h for the contract. This file has connecting, and the end of it. */
#include "peers/sosd/sosd_rados.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_S   10				/* until the monitors are given up */
#define BYTES_MAX   (2 * XSEG_REQ_BYTES)	/* librados counts of a call so much at most */
#define SECOND_NS   UINT64_C(1000000000)
#define FENCE_S	    3600

/* ---- connecting -------------------------------------------------------------------------- */

static int set(struct sosd_rados *s, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lu", (unsigned long)value);
	return rados_conf_set(s->cluster, key, text);
}

/* librados counts in whole seconds. */
int sosd_rados_set_timeout(struct sosd_rados *s, uint64_t timeout_ns)
{
	return set(s, "rados_osd_op_timeout", (timeout_ns + SECOND_NS - 1) / SECOND_NS);
}

static int configure(
	struct sosd_rados *s, const struct sosd_rados_params *p, struct xseg_error *err)
{
	int rc = rados_conf_read_file(s->cluster, p->conf[0] ? p->conf : NULL);

	if (rc == -ENOENT)
		return xseg_fail(err, rc,
			"no Ceph configuration %s%s; conf= names the file, which says mon_host = "
			"... at least",
			p->conf[0] ? "at " : "in /etc/ceph/ceph.conf or where $CEPH_CONF says",
			p->conf);
	if (rc)
		return xseg_fail(err, rc, "the Ceph configuration %s cannot be read: %s; correct "
			"it, or have conf= name another",
			p->conf[0] ? p->conf : "that $CEPH_CONF names or /etc/ceph/ceph.conf",
			strerror(-rc));
	/* a limit of librados that is reached would have it block the thread that sends */
	rc = sosd_rados_set_timeout(s, p->timeout_ns);
	if (!rc)
		rc = set(s, "rados_mon_op_timeout", CONNECT_S);
	if (!rc)
		rc = set(s, "client_mount_timeout", CONNECT_S);
	if (!rc)
		rc = set(s, "objecter_inflight_ops", p->max_out + 1);
	if (!rc)
		rc = set(s, "objecter_inflight_op_bytes", (uint64_t)(p->max_out + 1) * BYTES_MAX);
	return rc ? xseg_fail(err, rc, "librados does not take an option: %s", strerror(-rc)) : 0;
}

static void get(struct sosd_rados *s, const char *key, char *value, size_t size)
{
	if (rados_conf_get(s->cluster, key, value, size))
		value[0] = '\0';
}

/* Whether there is a key at all, right or wrong: librados says the same of both. `keyring` is a
 * list, and is not changed. */
static bool has_key(struct sosd_rados *s, const char *keyring)
{
	char text[160], path[256];
	const char *at = keyring;

	get(s, "key", text, sizeof(text));
	if (text[0])
		return true;
	for (at += strspn(at, ", ;"); *at; at += strspn(at, ", ;")) {
		snprintf(path, sizeof(path), "%.*s", (int)strcspn(at, ", ;"), at);
		if (!access(path, R_OK))
			return true;
		at += strcspn(at, ", ;");
	}
	return false;
}

static int fail_connect(
	struct sosd_rados *s, const struct sosd_rados_params *p, int rc, struct xseg_error *err)
{
	char mon[128], keyring[512];

	get(s, "mon_host", mon, sizeof(mon));
	get(s, "keyring", keyring, sizeof(keyring));
	if ((rc == -ENOENT || rc == -EPERM || rc == -EACCES) && !has_key(s, keyring))
		return xseg_fail(err, rc,
			"no key for client.%s in %.120s; user= names another user, keyring = in "
			"the Ceph configuration another file",
			p->user, keyring);
	if (!mon[0])
		return xseg_fail(err, rc,
			"the Ceph configuration names no monitor; it needs mon_host = ..., and "
			"conf= says which file it is");
	switch (-rc) {
	case EPERM:
	case EACCES:
		return xseg_fail(err, rc,
			"the monitor refuses client.%s: the key in %.80s is not the one that 'ceph "
			"auth get client.%s' shows, or has no caps for mon",
			p->user, keyring, p->user);
	case EIO:
		return xseg_fail(err, rc,
			"the key of client.%s cannot be read from %.120s; that is a file as 'ceph "
			"auth get client.%s' writes it",
			p->user, keyring, p->user);
	case EINVAL:
		/* not EINVAL: the name's server may be back when it is tried again */
		return xseg_fail(err, -EHOSTUNREACH,
			"mon_host = %s is neither a known host nor an address; correct it", mon);
	case ETIMEDOUT:
		return xseg_fail(err, rc,
			"no monitor answers within %u s (mon_host = %s); check whether one runs "
			"there",
			CONNECT_S, mon);
	default:
		return xseg_fail(err, rc,
			"cannot connect to the monitors (mon_host = %s) as client.%s: %s", mon,
			p->user, strerror(-rc));
	}
}

static int open_pool(
	struct sosd_rados *s, const struct sosd_rados_params *p, struct xseg_error *err)
{
	int rc = rados_ioctx_create(s->cluster, p->pool, &s->io), wants_aligned = 0;

	if (rc == -ENOENT)
		return xseg_fail(err, rc,
			"there is no pool '%s'; 'ceph osd pool ls' shows the pools, 'ceph osd pool "
			"create \"%s\"' makes this one",
			p->pool, p->pool);
	if (rc)
		return xseg_fail(
			err, rc, "the pool '%s' cannot be used: %s", p->pool, strerror(-rc));
	s->opened = true;
	rc = rados_ioctx_pool_requires_alignment2(s->io, &wants_aligned);
	if (rc || wants_aligned)
		return xseg_fail(err, rc ? rc : -EOPNOTSUPP,
			"the pool '%s' cannot overwrite a part of an object; 'ceph osd pool set %s "
			"allow_ec_overwrites true' allows that",
			p->pool, p->pool);
	/* a full cluster says so, rather than to wait until it is not */
	rados_set_pool_full_try(s->io);
	s->pool_id = rados_ioctx_get_id(s->io);
	snprintf(s->pool, sizeof(s->pool), "%s", p->pool);
	return 0;
}

static int learn_address(struct sosd_rados *s, struct xseg_error *err)
{
	char *text = NULL;
	int rc = rados_getaddrs(s->cluster, &text);

	if (!rc && strlen(text) >= sizeof(s->address))
		rc = -ENAMETOOLONG;
	if (!rc)
		memcpy(s->address, text, strlen(text) + 1);
	rados_buffer_free(text);
	return rc ? xseg_fail(err, rc,
			    "librados does not tell this process's address in the cluster: %s",
			    strerror(-rc))
		  : 0;
}

int sosd_rados_space(struct sosd_rados *s, struct space *space)
{
	struct rados_cluster_stat_t stat;
	int rc = rados_cluster_stat(s->cluster, &stat);

	if (!rc)
		*space = (struct space){ .size_bytes = stat.kb * 1024,
			.free_bytes = stat.kb_avail * 1024 };
	return rc;
}

int sosd_rados_open(struct sosd_rados *s, const struct sosd_rados_params *p, struct xseg_error *err)
{
	int rc = rados_create(&s->cluster, p->user);

	if (rc) {
		s->cluster = NULL;
		return xseg_fail(
			err, rc, "librados cannot begin as client.%s: %s", p->user, strerror(-rc));
	}
	rc = configure(s, p, err);
	if (rc)
		goto out_close;
	rc = rados_connect(s->cluster);
	if (rc) {
		rc = fail_connect(s, p, rc, err);
		goto out_close;
	}
	rc = open_pool(s, p, err);
	if (!rc)
		rc = learn_address(s, err);
	if (rc)
		goto out_close;
	return 0;
out_close:
	sosd_rados_close(s);
	return rc;
}

void sosd_rados_close(struct sosd_rados *s)
{
	if (s->opened)
		rados_ioctx_destroy(s->io);
	if (s->cluster)
		rados_shutdown(s->cluster);
	s->opened = false;
	s->cluster = NULL;
}

int sosd_rados_fence(struct sosd_rados *s, const char *address)
{
	char text[sizeof(s->address)];

	snprintf(text, sizeof(text), "%s", address);
	return rados_blocklist_add(s->cluster, text, FENCE_S);
}

bool sosd_rados_has_pool(struct sosd_rados *s)
{
	char name[sizeof(s->pool)];

	return rados_pool_reverse_lookup(s->cluster, s->pool_id, name, sizeof(name)) != -ENOENT;
}
