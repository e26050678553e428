/* layout - where each part of a segment lies: its geometry, and the stamp of the build that made
 * it.
 *
 * Contract: any thread; computes, and touches no segment.
 *
 * A geometry follows from three counts: requests, ports, extents. The maker of a segment gets them
 * from its configuration, and an attacher from the superblock. So both bound the counts, and
 * neither believes an offset that it has not computed (S1 of segment.c).
 */
#include <errno.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "xseg/arenas.h"
#include "xseg/internal.h"

#define NR_REQUESTS_DEFAULT 2048u
#define NR_PORTS_DEFAULT    64u
#define NR_STATS	    192u
#define LANES_PER_PORT	    8u
#define MAX_MEMORY	    (1ull << 40)
#define MIN_MEMORY	    (4ull << 20)

/* L1: every size, offset and format that two builds could disagree on. */
uint64_t layout_stamp(void)
{
	const uint64_t v[] = {
		sizeof(struct xs_super),
		sizeof(struct xs_member),
		sizeof(struct xs_peer),
		sizeof(struct xs_port),
		sizeof(struct xs_bell),
		sizeof(struct xs_lane),
		sizeof(struct xs_req),
		sizeof(struct xs_extent),
		sizeof(struct xs_stats),
		sizeof(struct xs_kept_peer),
		sizeof(struct xs_kept_port),
		sizeof(struct xq),
		XSEG_MAX_PORTS,
		XSEG_MAX_MEMBERS,
		XSEG_PEER_PORTS,
		XSEG_REQ_PAGES,
		XSEG_TARGET_MAX,
		XSEG_NAME_MAX,
		XSEG_EXTENT_SIZE,
		XSEG_STACK_BYTES,
		XHIST_NR,
		offsetof(struct xs_peer, word),
		offsetof(struct xs_peer, route),
		offsetof(struct xs_peer, user),
		offsetof(struct xs_peer, direct),
		offsetof(struct xs_peer, direct_max),
		offsetof(struct xs_peer, direct_reads),
		offsetof(struct xs_peer, arena_epoch),
		offsetof(struct xs_peer, plug),
		PLUG_DECIDED,
		offsetof(struct xs_peer, turn),
		offsetof(struct xs_peer, above),
		offsetof(struct xs_peer, was_above),
		offsetof(struct xs_port, answered),
		offsetof(struct xs_port, asked),
		offsetof(struct xs_req, ask),
		offsetof(struct xs_port, mask),
		offsetof(struct xs_port, lane),
		offsetof(struct xs_req, offset),
		offsetof(struct xs_req, result),
		offsetof(struct xs_req, hash),
		offsetof(struct xs_req, parent),
		offsetof(struct xs_req, via),
		offsetof(struct xs_req, to),
		offsetof(struct xs_req, pass),
		offsetof(struct xs_req, done),
		offsetof(struct xs_req, page),
		offsetof(struct xs_req, nr_lent),
		sizeof(struct xs_page),
		offsetof(struct xs_req, target),
		offsetof(struct xs_req, target_rest),
		offsetof(struct xs_stats, value),
		offsetof(struct xs_stats, volume),
		offsetof(struct xs_stats, told),
		offsetof(struct xs_stats, lat),
		offsetof(struct xq, head),
		offsetof(struct xq, ring),
		XSEG_NR_OPS,
		XSEG_STATS_MAX,
		XSEG_PAGE_GIVEN,
		XSEG_LENT_GIFT,
		offsetof(struct xs_geometry, off_touched),
		sizeof(struct xseg_slots),
		XSEG_SLOT_DIRECT,
		XSEG_FORMAT_CACHED,
		XSEG_FORMAT_FILED,
		XSEG_FORMAT_KVD,
		XSEG_FORMAT_MEMD,
		XSEG_FORMAT_WORDS,
	};

	return XXH3_64bits(v, sizeof(v));
}

static uint64_t take(uint64_t *at, uint64_t bytes, uint64_t align)
{
	uint64_t off = (*at + align - 1) / align * align;

	*at = off + bytes;
	return off;
}

/* Fills everything of geo that follows from nr_requests, nr_ports and nr_extents. */
static void geometry_compute(struct xs_geometry *geo)
{
	uint64_t at = sizeof(struct xs_super);

	geo->nr_lanes = geo->nr_ports * LANES_PER_PORT;
	geo->nr_stats = NR_STATS;
	for (geo->lane_slots = 64; geo->lane_slots < geo->nr_requests; geo->lane_slots *= 2)
		;
	geo->ring_bytes = xq_size_bytes(geo->lane_slots);
	geo->off_members = take(&at, XSEG_MAX_MEMBERS * sizeof(struct xs_member), 4096);
	geo->off_peers = take(&at, (uint64_t)geo->nr_ports * sizeof(struct xs_peer), 4096);
	geo->off_ports = take(&at, (uint64_t)geo->nr_ports * sizeof(struct xs_port), 4096);
	geo->off_bells = take(&at, (uint64_t)geo->nr_ports * sizeof(struct xs_bell), 4096);
	geo->off_lanes = take(&at, (uint64_t)geo->nr_lanes * sizeof(struct xs_lane), 4096);
	geo->off_rings = take(&at, geo->nr_lanes * geo->ring_bytes, 4096);
	geo->off_requests = take(&at, (uint64_t)geo->nr_requests * sizeof(struct xs_req), 4096);
	geo->off_extents = take(&at, (uint64_t)geo->nr_extents * sizeof(struct xs_extent), 4096);
	geo->off_owners = take(&at, (uint64_t)geo->nr_extents * XSEG_EXTENT_PAGES * 8, 4096);
	geo->off_touched = take(&at, (uint64_t)geo->nr_extents * XSEG_EXTENT_PAGES, 4096);
	geo->off_stats = take(&at, (uint64_t)geo->nr_stats * sizeof(struct xs_stats), 4096);
	geo->off_stack = take(&at, XSEG_STACK_BYTES, 4096);
	geo->off_kept_peers =
		take(&at, (uint64_t)geo->nr_ports * sizeof(struct xs_kept_peer), 4096);
	geo->off_kept_ports =
		take(&at, (uint64_t)geo->nr_ports * sizeof(struct xs_kept_port), 4096);
	geo->off_pages = take(&at, (uint64_t)geo->nr_extents * XSEG_EXTENT_SIZE, XSEG_EXTENT_SIZE);
	geo->total_bytes = at;
}

int xs_geometry_from_config(
	const struct xseg_config *cfg, struct xs_geometry *geo, struct xseg_error *err)
{
	memset(geo, 0, sizeof(*geo));
	if (cfg->memory_bytes < MIN_MEMORY || cfg->memory_bytes > MAX_MEMORY)
		return xseg_fail(err, -EINVAL, "memory of %llu MiB: must be 4M to 1024G",
				 (unsigned long long)cfg->memory_bytes >> 20);
	geo->nr_requests = cfg->nr_requests ? cfg->nr_requests : NR_REQUESTS_DEFAULT;
	geo->nr_ports = cfg->nr_ports ? cfg->nr_ports : NR_PORTS_DEFAULT;
	if (geo->nr_requests < 32 || geo->nr_requests > 1u << 20)
		return xseg_fail(
			err, -EINVAL, "%u requests: must be 32 to 1048576", geo->nr_requests);
	if (geo->nr_ports < 4 || geo->nr_ports > XSEG_MAX_PORTS)
		return xseg_fail(
			err, -EINVAL, "%u ports: must be 4 to %u", geo->nr_ports, XSEG_MAX_PORTS);
	geo->nr_requests = (geo->nr_requests + XSEG_REQ_UNIT - 1) / XSEG_REQ_UNIT * XSEG_REQ_UNIT;
	geo->nr_extents = (uint32_t)((cfg->memory_bytes + XSEG_EXTENT_SIZE - 1) / XSEG_EXTENT_SIZE);
	geometry_compute(geo);
	return 0;
}

bool xs_geometry_again(const struct xs_geometry *found, struct xs_geometry *geo)
{
	*geo = (struct xs_geometry){ .nr_requests = found->nr_requests,
		.nr_ports = found->nr_ports,
		.nr_extents = found->nr_extents };
	if (geo->nr_requests < 32 || geo->nr_requests > 1u << 20 ||
		geo->nr_requests % XSEG_REQ_UNIT || geo->nr_ports < 4 ||
		geo->nr_ports > XSEG_MAX_PORTS || geo->nr_extents < MIN_MEMORY / XSEG_EXTENT_SIZE ||
		geo->nr_extents > MAX_MEMORY / XSEG_EXTENT_SIZE)
		return false;
	geometry_compute(geo);
	return true;
}

int xseg_plan(const struct xseg_config *cfg, struct xseg_plan *plan, struct xseg_error *err)
{
	struct xs_geometry geo;
	int rc = xs_geometry_from_config(cfg, &geo, err);

	if (rc)
		return rc;
	plan->total_bytes = geo.total_bytes;
	plan->nr_requests = geo.nr_requests;
	plan->nr_ports = geo.nr_ports;
	plan->pages_bytes = (uint64_t)geo.nr_extents * XSEG_EXTENT_SIZE;
	plan->requests_bytes = (uint64_t)geo.nr_requests * sizeof(struct xs_req);
	plan->lanes_bytes = geo.nr_lanes * geo.ring_bytes;
	plan->stats_bytes = (uint64_t)geo.nr_stats * sizeof(struct xs_stats);
	plan->tables_bytes = plan->total_bytes - plan->pages_bytes - plan->requests_bytes -
			     plan->lanes_bytes - plan->stats_bytes;
	return 0;
}
