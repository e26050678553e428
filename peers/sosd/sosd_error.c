/* sosd_error - see sosd_error.h for the contract. */
#include "peers/sosd/sosd_error.h"

#include <errno.h>
#include <stddef.h>

#define NO_RIGHT                                                                               \
	"the user needs: osd 'allow rwx pool=POOL'; when it has that, run 'xseg peer stop "     \
	"--force' and start it again, as a session keeps its first rights"

/* ESHUTDOWN is what Ceph calls EBLOCKLISTED. A client that is told ETIMEDOUT would take it for its
 * own patience, and the work for going on. */
static const struct known {
	int error;
	bool passes, stores;
	int client;
	const char *remedy;
} known[] = {
	{ EAGAIN, true, true, EIO, "'ceph -s' may say why" },
	{ EBUSY, true, true, EIO, "'ceph -s' may say why" },
	{ ECANCELED, true, true, EIO, "'ceph -s' may say why" },
	{ ENOTCONN, true, true, EIO, "check whether the monitors can be reached" },
	{ ECONNRESET, true, true, EIO, "check whether the OSDs can be reached" },
	{ ECONNREFUSED, true, true, EIO, "check whether the OSDs run" },
	{ EPIPE, true, true, EIO, "check whether the OSDs can be reached" },
	{ EINTR, true, true, EIO, "'ceph -s' may say why" },
	{ ETIMEDOUT, false, true, EIO,
		"check with 'ceph -s' which OSDs do not run, or whether the network is down" },
	{ ENOSPC, false, true, ENOSPC,
		"the cluster or an OSD is full: 'ceph health detail', 'ceph df'" },
	{ EDQUOT, false, true, ENOSPC, "the pool's quota is used up: 'ceph osd pool get-quota'" },
	{ ESHUTDOWN, false, true, EIO,
		"the cluster has blocklisted this client, as a host does that takes its place: "
		"make sure that none did, then 'xseg peer stop --force' and start it again" },
	{ EPERM, false, true, EACCES, NO_RIGHT },
	{ EACCES, false, true, EACCES, NO_RIGHT },
	{ ENODEV, false, true, EIO, "the pool is gone" },
	{ EIO, false, true, EIO, "the OSDs' logs say why" },
	{ ENOMEM, false, true, ENOMEM, "this process or the OSD is out of memory" },
	/* which the lock gets of that, as it makes its object */
	{ ENOENT, false, false, ENOENT, "the pool is gone" },
	{ EFBIG, false, true, EFBIG,
		"the object is larger than 'ceph config get osd osd_max_object_size' allows: raise "
		"that, or take a smaller object_size for a new pool or prefix" },
	{ EOPNOTSUPP, false, true, EOPNOTSUPP,
		"the pool cannot do that; an erasure-coded pool needs allow_ec_overwrites" },
	{ EPROTO, false, false, EPROTO, "" },
	{ ESTALE, false, false, ESTALE, "" },		/* a cursor of a LIST */
};

static const struct known *find(int error)
{
	static const struct known other = { 0, false, true, EIO, "the OSDs' logs may say why" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].error == -error)
			return &known[i];
	return &other;
}

bool sosd_error_passes(int error)
{
	return find(error)->passes;
}

bool sosd_error_is_the_stores(int error)
{
	return find(error)->stores;
}

int sosd_error_for_client(int error)
{
	return -find(error)->client;
}

const char *sosd_error_remedy(int error)
{
	return find(error)->remedy;
}

uint64_t sosd_error_pause_ns(uint32_t n)
{
	uint64_t ns = SOSD_PAUSE_MIN_NS;

	while (--n && ns < SOSD_PAUSE_MAX_NS)
		ns *= 2;
	return ns < SOSD_PAUSE_MAX_NS ? ns : SOSD_PAUSE_MAX_NS;
}
