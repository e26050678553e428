/* relay - an upper peer beside volumed: it sends each request on, to objects of its own. For
 * tests/system/plug_many.sh, which needs several peers that send to one store.
 *
 *      relay -s SEGMENT --name NAME --downstream PEER [--threads N]
 *
 * An object "ANY:REST" of its clients is "+NAME:REST" below, so objects of two relays, and of
 * volumed, are never the same. Clients give volume 0, which volumed gives to none. A request that
 * is sent on twice, as after a kill, gets the same name.
 *
 * Contract: a peer's callbacks. Nothing is kept here, so a successor has nothing to recover.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/runtime/main.h"
#include "peers/common/runtime/peer.h"

static const struct opt relay_opts[] = { { .name = NULL } };

static void relay_request(struct peer_port *pp, struct xreq *r)
{
	char target[XSEG_TARGET_MAX];
	const char *rest = strchr(r->target, ':');
	int len;

	if (r->volume != 0) {
		peer_answer(pp, r, -EINVAL);
		return;
	}
	if (rest) {
		len = snprintf(target, sizeof(target), "+%s%s", pp->peer->name, rest);
		if (len >= (int)sizeof(target)) {
			peer_answer(pp, r, -ENAMETOOLONG);
			return;
		}
		xseg_req_set_target(r, target, (size_t)len);
	}
	peer_forward(pp, r);
}

static const struct peer_class relay_class = {
	.kind = "relay",
	.summary = "sends each request on, to objects of its own",
	.opts = relay_opts,
	.size = sizeof(struct peer),
	.sends = true,
	.request = relay_request,
};

int main(int argc, char **argv)
{
	return peer_main(&relay_class, argc, argv);
}
