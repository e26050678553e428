/* room - see room.h. */
#include "peers/host/room.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/runtime/peer.h"
#include "peers/common/say/export_words.h"
#include "peers/host/kinds.h"

#define MIB (1u << 20)

/* Of all peers and exports that are new to the segment. */
struct need {
	uint64_t memory_bytes, requests, ports;
	char memory_of[160];			/* "cached 34M, memd 4M" */
	bool more;				/* and others, for which it had no room */
};

static void note_memory(struct need *n, const char *name, uint64_t bytes)
{
	size_t at = strlen(n->memory_of), left = sizeof(n->memory_of) - at;
	int len = snprintf(n->memory_of + at, left, "%s%s %" PRIu64 "M", at ? ", " : "", name,
			   bytes / MIB);

	n->memory_bytes += bytes;
	if ((size_t)len >= left) {
		n->memory_of[at] = '\0';
		n->more = true;
	}
}

static int add_peer(struct need *n, const struct stack_peer *from, struct xseg_error *err)
{
	const struct peer_class *cls = kinds_find(from->kind);
	struct peer *p = peer_create(cls);
	uint64_t units;
	int rc;

	if (!p)
		return xseg_fail(err, -ENOMEM, "out of memory");
	rc = stack_set_options(from, cls->opts, p, err);
	p->threads = from->threads;
	if (!rc && cls->memory_bytes)
		note_memory(n, from->name, cls->memory_bytes(p));
	if (!rc) {
		units = cls->nr_requests ? cls->nr_requests(p) : 0;
		units = (units + XSEG_REQUEST_UNIT - 1) / XSEG_REQUEST_UNIT;
		n->requests += units * XSEG_REQUEST_UNIT * p->threads;
		n->ports += p->threads;
	}
	peer_destroy(p);
	return rc;
}

/* Each queue of an export has a port, requests and a piece of memory. Its queues for small writes
 * are taken only if they are there. */
static void add_export(struct need *n, const struct stack_export *e)
{
	note_memory(n, e->name, (uint64_t)e->queues * XSEG_EXTENT_SIZE);
	n->requests += (uint64_t)e->queues * XSEG_REQUEST_UNIT;
	n->ports += e->queues + 1;
}

/* For peers that need so much: clients find room, too, and it is a number that a person takes. */
static uint64_t good_memory(uint64_t need)
{
	uint64_t step = 32 * MIB;

	return (need + need / 8 + step - 1) / step * step;
}

int room_check(struct xseg *seg, const struct stack *stack, struct xseg_error *err)
{
	struct need n = { 0 };
	struct xseg_info has;
	uint64_t memory_left, ports_left;
	char name[XSEG_NAME_MAX];
	uint32_t i;
	int rc = 0;

	for (i = 0; i < stack->nr_peers && !rc; i++)
		if (xseg_peer_find(seg, stack->peers[i].name) == XSEG_NONE)
			rc = add_peer(&n, &stack->peers[i], err);
	if (rc)
		return rc;
	for (i = 0; i < stack->nr_exports; i++) {
		export_peer_name(stack->exports[i].name, name);
		if (xseg_peer_find(seg, name) == XSEG_NONE)
			add_export(&n, &stack->exports[i]);
	}
	xseg_get_info(seg, &has);
	memory_left = (uint64_t)has.free_extents * XSEG_EXTENT_SIZE;
	ports_left = has.free_ports + has.reserve_ports;
	if (n.memory_bytes > memory_left)
		return xseg_fail(err, -ENOSPC,
			"the segment has %" PRIu64 "M of memory left and its peers need %" PRIu64
			"M (%s%s); set memory = %" PRIu64 "M in [segment], or give them less",
			memory_left / MIB, n.memory_bytes / MIB, n.memory_of,
			n.more ? ", ..." : "",
			good_memory(has.memory_bytes - memory_left + n.memory_bytes) / MIB);
	if (n.ports > ports_left)
		return xseg_fail(err, -ENOSPC,
			"the segment has %" PRIu64 " ports left and its peers%s need %" PRIu64
			"; set ports in [segment], give %s, or close clients",
			ports_left, stack->nr_exports ? " and exports" : "", n.ports,
			stack->nr_exports ? "exports fewer queues" : "them fewer threads");
	if (n.requests > has.unowned_requests)
		return xseg_fail(err, -ENOSPC,
			"the segment has %" PRIu32 " requests left and its peers%s need %" PRIu64
			"; set requests in [segment], give %s fewer, or close clients",
			has.unowned_requests, stack->nr_exports ? " and exports" : "", n.requests,
			stack->nr_exports ? "exports" : "the peers");
	return 0;
}
