/* beside - a second upper peer of a run: it stands beside volumed on whatever volumed sends to.
 *
 * Clients send some of the I/O of volumes to it, with the object's name, as they do where there is
 * no volumed. So the same sectors are written and read through two upper peers. A cache has to
 * enter below both, and to leave, at one moment. Otherwise a read through one of them misses a
 * write through the other (S1).
 *
 * Contract: the callbacks of a peer. It keeps nothing.
 */
#include "tests/sim/sim.h"

static const struct opt beside_opts[] = { { .name = NULL } };

static bool quiesced(struct peer *p, uint64_t *left_bytes)
{
	(void)p;
	*left_bytes = 0;
	return true;
}

const struct peer_class beside_class = {
	.kind = "beside",
	.opts = beside_opts,
	.size = sizeof(struct peer),
	.sends = true,
	.request = peer_forward,
	.quiesced = quiesced,
};

bool goes_beside(const struct sim *s, const struct item *it, const struct io *io)
{
	uint32_t objects = s->plan.object_size / ORACLE_SECTOR;
	char name[XSEG_TARGET_MAX];

	return s->plan.node[NODE_BESIDE] && s->plan.node[NODE_VOLUMED] &&
	       (io->op == XSEG_OP_READ || io->op == XSEG_OP_WRITE || io->op == XSEG_OP_DISCARD ||
		       io->op == XSEG_OP_WRITE_ZEROES) &&
	       io->first % objects + io->nr <= objects && object_name(s, io->volume, 0, name) &&
	       rng_mix(s->seed ^ (uint64_t)(it - s->item) << 32) % 2;
}
