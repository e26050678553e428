/* room - see room.h. */
#include "peers/host/room.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/runtime/peer.h"
#include "peers/common/say/export_words.h"
#include "peers/host/kinds.h"

#define MIB	     (1u << 20)
#define DEFAULT_PORTS 64			/* xseg_create()'s, as for requests */

<<<<<<< HEAD
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
=======
static int add_peer(struct room_need *n, const struct stack *stack, uint32_t at,
		    struct xseg_error *err)
>>>>>>> 6f612bc0 (options: all errors of a stack file, from the top)
{
	const struct stack_peer *from = &stack->peers[at];
	const struct peer_class *cls = kinds_find(from->kind);
	struct peer *p = cls ? peer_create(cls) : NULL;
	uint64_t units;
	int rc;

	if (!cls)
		return xseg_fail(err, -EINVAL, "this build has no %s", from->kind);
	if (!p)
		return xseg_fail(err, -ENOMEM, "out of memory");
	rc = stack_set_options(from, cls->opts, p, err);
	if (!rc && cls->fit)
		rc = cls->fit(p, err);
	p->threads = from->threads;
	if (!rc && cls->memory_bytes)
		n->peer_bytes[at] = cls->memory_bytes(p);
	n->memory_bytes += n->peer_bytes[at];
	if (!rc) {
		units = cls->nr_requests ? cls->nr_requests(p) : 0;
		units = (units + XSEG_REQUEST_UNIT - 1) / XSEG_REQUEST_UNIT;
		n->requests += units * XSEG_REQUEST_UNIT * p->threads;
		n->ports += p->threads;
	}
	peer_destroy(p);
	return rc;
}

<<<<<<< HEAD
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
=======
int room_count(struct xseg *seg, const struct stack *stack, struct room_need *need,
	       struct xseg_error *err)
{
	int rc = 0, one;

	memset(need, 0, sizeof(*need));
	for (uint32_t i = 0; i < stack->nr_peers; i++) {
		if (seg && xseg_peer_find(seg, stack->peers[i].name) != XSEG_NONE)
			continue;
		one = add_peer(need, stack, i, rc ? NULL : err);
		if (one && !rc)
			rc = one;
	}
	for (uint32_t i = 0; i < stack->nr_exports; i++)
		need->exports_bytes += (uint64_t)stack->exports[i].queues * XSEG_EXTENT_SIZE;
	return rc;
}

const char *room_text(
	const struct stack *stack, const struct room_need *need, char text[ROOM_TEXT])
{
	size_t used = 0, len;
	char size[32];

	text[0] = '\0';
	for (uint32_t i = 0; i < stack->nr_peers; i++) {
		if (!need->peer_bytes[i])
			continue;
		opt_human_size(need->peer_bytes[i], size, sizeof(size));
		len = (size_t)snprintf(text + used, ROOM_TEXT - used, "%s%s %s", used ? ", " : "",
			stack->peers[i].name, size);
		if (used + len >= ROOM_TEXT - sizeof(", ...")) {
			snprintf(text + used, ROOM_TEXT - used, ", ...");
			break;
		}
		used += len;
	}
	return text;
}

uint64_t room_good_memory(uint64_t need)
>>>>>>> 6f612bc0 (options: all errors of a stack file, from the top)
{
	uint64_t step = 32 * MIB;

	return (need + need / 8 + step - 1) / step * step;
}

int room_check(struct xseg *seg, const struct stack *stack, struct xseg_error *err)
{
	char left[32], needs[32], good[32], of[ROOM_TEXT];
	uint64_t memory_left, ports_left;
<<<<<<< HEAD
	char name[XSEG_NAME_MAX];
	uint32_t i;
	int rc = 0;
=======
	struct room_need n;
	struct xseg_info has;
	int rc = room_count(seg, stack, &n, err);
>>>>>>> 6f612bc0 (options: all errors of a stack file, from the top)

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
	if (n.memory_bytes > memory_left) {
		opt_human_size(memory_left, left, sizeof(left));
		opt_human_size(n.memory_bytes, needs, sizeof(needs));
		opt_format_size(room_good_memory(has.memory_bytes - memory_left + n.memory_bytes),
			good, sizeof(good));
		return xseg_fail(err, -ENOSPC,
			"the segment has %s of memory left and its peers need %s (%s); set memory "
			"= %s in [segment], or give them less",
			left, needs, room_text(stack, &n, of), good);
	}
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

static void check_memory(const struct stack *stack, const struct room_need *need,
			 uint64_t given_bytes, struct stack_errors *errors)
{
	char given[32], needs[32], good[32], of[ROOM_TEXT];

	opt_human_size(given_bytes, given, sizeof(given));
	opt_human_size(need->memory_bytes, needs, sizeof(needs));
	opt_format_size(room_good_memory(need->memory_bytes + need->exports_bytes), good,
		sizeof(good));
	if (!stack->segment.memory)
		stack_errors_add(errors, stack->segment_line, "memory",
			"[segment] has no memory; add memory = %s", good);
	else if (need->memory_bytes > given_bytes)
		stack_errors_add(errors, stack->memory_line, "memory",
			"memory: %s is too little, the peers need %s (%s); set memory = %s, or "
			"give them less",
			given, needs, room_text(stack, need, of), good);
}

void room_check_plan(const struct stack *stack, const struct room_need *need,
		     struct stack_errors *errors)
{
	uint64_t ports = stack->segment.ports ? stack->segment.ports : DEFAULT_PORTS;
	unsigned line = stack->segment_line;
	struct xseg_error why = { "" };
	struct xseg_config cfg;
	struct xseg_plan plan = { 0 };

	if (stack_errors_has(errors, 0, UINT32_MAX, "memory"))
		return;
	if (stack_segment_config(&stack->segment, &cfg, &why)) {
		stack_errors_add(errors, line, "group", "%s; make it, or name another", why.text);
		return;
	}
	if (cfg.memory_bytes && xseg_plan(&cfg, &plan, &why)) {
		stack_errors_add(errors, line, "", "[segment]: %s", why.text);
		return;
	}
	check_memory(stack, need, plan.pages_bytes, errors);
	/* the supervisor has one, too */
	if (need->ports + 1 > ports)
		stack_errors_add(errors, line, "ports",
			"ports: %" PRIu64 " are too few, the peers and their supervisor need %" PRIu64
			"; set ports = %" PRIu64 ", or give them fewer threads",
			ports, need->ports + 1, need->ports + need->ports / 2 + 16);
	if (plan.nr_requests && need->requests > plan.nr_requests)
		stack_errors_add(errors, line, "requests",
			"requests: %" PRIu32 " are too few, the peers need %" PRIu64
			"; set requests = %" PRIu64 ", or give the peers fewer",
			plan.nr_requests, need->requests, need->requests * 2);
}
