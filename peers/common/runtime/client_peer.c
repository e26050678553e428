/* client_peer - see client_peer.h. */
#include "peers/common/runtime/client_peer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Of as many names as there are peers, and one more, one is free. */
int client_peer_open(struct xseg *seg, const struct xseg_peer_params *params,
	struct xseg_peer **peer, struct xseg_error *err)
{
	struct xseg_peer_params p = *params;
	int rc = xseg_peer_open(seg, &p, peer, err);
	char name[XSEG_NAME_MAX];

	p.name = name;
	for (uint32_t i = 1; i <= xseg_nr_peers(seg) && rc == -EEXIST; i++) {
		snprintf(name, sizeof(name), "%s.%" PRIu32, params->name, i);
		rc = xseg_peer_open(seg, &p, peer, err);
	}
	return rc;
}
