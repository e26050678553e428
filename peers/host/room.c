/* room - see room.h. */
#include "peers/host/room.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/common/runtime/peer.h"
#include "peers/common/say/export_words.h"
#include "peers/host/kinds.h"

#define DEFAULT_PORTS  64			/* xseg_create()'s, as for requests */
#define ROOM_NEED_TEXT (ROOM_TEXT + 32)

static int add_peer(struct room_need *n, const struct stack *stack, uint32_t at,
		    struct xseg_error *err)
{
	const struct stack_peer *from = &stack->peers[at];
	const struct peer_class *cls = kinds_find(from->kind);
	struct peer *p = cls ? peer_create(cls) : NULL;
	const char *key;
	uint64_t units;
	int rc;

	if (!cls)
		return xseg_fail(err, -EINVAL, "this build has no %s", from->kind);
	if (!p)
		return xseg_fail(err, -ENOMEM, "out of memory");
	rc = stack_set_options(from, cls->opts, p, err);
	if (!rc && cls->fit)
		rc = cls->fit(p, &key, err);
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

/* Each queue of an export has a port, requests and a piece of memory. Its queues for small writes
 * are taken only if they are there. */
static void add_export(struct room_need *n, const struct stack *stack, uint32_t at)
{
	const struct stack_export *e = &stack->exports[at];

	n->export_bytes[at] = (uint64_t)e->queues * XSEG_EXTENT_SIZE;
	n->memory_bytes += n->export_bytes[at];
	n->requests += (uint64_t)e->queues * XSEG_REQUEST_UNIT;
	n->ports += e->queues + 1;
}

int room_count(struct xseg *seg, const struct stack *stack, struct room_need *need,
	       struct xseg_error *err)
{
	char name[XSEG_NAME_MAX];
	int rc = 0, one;

	memset(need, 0, sizeof(*need));
	for (uint32_t i = 0; i < stack->nr_peers; i++) {
		if (seg && xseg_peer_find(seg, stack->peers[i].name) != XSEG_NONE)
			continue;
		one = add_peer(need, stack, i, rc ? NULL : err);
		if (one && !rc)
			rc = one;
	}
	for (uint32_t i = 0; i < stack->nr_exports; i++) {
		export_peer_name(stack->exports[i].name, name);
		if (!seg || xseg_peer_find(seg, name) == XSEG_NONE)
			add_export(need, stack, i);
	}
	return rc;
}

/* One part; false: there is no room for it, and no more. */
static bool add_part(char text[ROOM_TEXT], size_t *used, const char *name, uint64_t bytes)
{
	char size[32];
	size_t len;

	if (!bytes)
		return true;
	opt_human_size(bytes, size, sizeof(size));
	len = (size_t)snprintf(text + *used, ROOM_TEXT - *used, "%s%s %s", *used ? ", " : "", name,
		size);
	if (*used + len >= ROOM_TEXT - sizeof(", ...")) {
		snprintf(text + *used, ROOM_TEXT - *used, ", ...");
		return false;
	}
	*used += len;
	return true;
}

const char *room_text(
	const struct stack *stack, const struct room_need *need, char text[ROOM_TEXT])
{
	bool fits = true;
	size_t used = 0;
	uint32_t i;

	text[0] = '\0';
	for (i = 0; fits && i < stack->nr_peers; i++)
		fits = add_part(text, &used, stack->peers[i].name, need->peer_bytes[i]);
	for (i = 0; fits && i < stack->nr_exports; i++)
		fits = add_part(text, &used, stack->exports[i].name, need->export_bytes[i]);
	return text;
}

int room_check(struct xseg *seg, const struct stack *stack, struct xseg_error *err)
{
	char left[32], needs[32], good[32], of[ROOM_TEXT];
	uint64_t memory_left, ports_left;
	struct room_need n;
	struct xseg_info has;
	int rc = room_count(seg, stack, &n, err);

	if (rc)
		return rc;
	xseg_get_info(seg, &has);
	memory_left = (uint64_t)has.free_extents * XSEG_EXTENT_SIZE;
	ports_left = has.free_ports + has.reserve_ports;
	if (n.memory_bytes > memory_left) {
		opt_human_size(memory_left, left, sizeof(left));
		opt_human_size(n.memory_bytes, needs, sizeof(needs));
		opt_format_size(stack_good_memory(has.memory_bytes - memory_left + n.memory_bytes),
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

/* "70.0M (cached 66.0M, ...)", and a good value. */
static void need_texts(const struct stack *stack, const struct room_need *need,
	char needs[ROOM_NEED_TEXT], char good[32])
{
	char size[32], of[ROOM_TEXT];

	opt_human_size(need->memory_bytes, size, sizeof(size));
	snprintf(needs, ROOM_NEED_TEXT, "%s (%s)", size, room_text(stack, need, of));
	opt_format_size(stack_good_memory(need->memory_bytes), good, 32);
}

void room_add_good(const struct stack *stack, const struct room_need *need,
	struct stack_error *error)
{
	char needs[ROOM_NEED_TEXT], good[32];
	size_t used = strlen(error->why.text);

	need_texts(stack, need, needs, good);
	snprintf(error->why.text + used, sizeof(error->why.text) - used,
		", the peers need %s; set memory = %s", needs, good);
}

static unsigned line_of(const struct stack *stack, const char *key)
{
	return stack_line_of(&stack->segment_lines, stack_segment_table, key);
}

static void check_memory(const struct stack *stack, const struct room_need *need,
			 uint64_t given_bytes, struct stack_errors *errors)
{
	char given[32], needs[ROOM_NEED_TEXT], good[32];

	opt_human_size(given_bytes, given, sizeof(given));
	need_texts(stack, need, needs, good);
	if (!stack->segment.memory && stack->nr_peers)
		stack_errors_add(errors, stack->segment_lines.section, "memory",
			"[segment] has no memory; add memory = %s",
			need->memory_bytes ? good : "SIZE");
	else if (stack->segment.memory && need->memory_bytes > given_bytes)
		stack_errors_add(errors, line_of(stack, "memory"), "memory",
			"memory: %s is too little, the peers need %s; set memory = %s, or give "
			"them less",
			given, needs, good);
}

void room_check_plan(const struct stack *stack, const struct room_need *need,
		     struct stack_errors *errors)
{
	uint64_t ports = stack->segment.ports ? stack->segment.ports : DEFAULT_PORTS;
	struct xseg_error why = { "" };
	struct xseg_config cfg;
	struct xseg_plan plan = { 0 };

	if (stack_errors_has(errors, 0, UINT32_MAX, "memory"))
		return;
	if (stack_segment_config(&stack->segment, &cfg, &why)) {
		stack_errors_add(errors, line_of(stack, "group"), "group",
			"%s; make it, or name another", why.text);
		return;
	}
	if (cfg.memory_bytes && xseg_plan(&cfg, &plan, &why)) {
		stack_errors_add(errors, line_of(stack, ""), "", "[segment]: %s", why.text);
		return;
	}
	check_memory(stack, need, plan.pages_bytes, errors);
	/* the supervisor has one, too */
	if (need->ports + 1 > ports)
		stack_errors_add(errors, line_of(stack, "ports"), "ports",
			"ports: %" PRIu64 " are too few, the peers%s and their supervisor need "
			"%" PRIu64 "; set ports = %" PRIu64 ", or give %s",
			ports, stack->nr_exports ? ", exports" : "", need->ports + 1,
			need->ports + need->ports / 2 + 16,
			stack->nr_exports ? "exports fewer queues" : "them fewer threads");
	if (plan.nr_requests && need->requests > plan.nr_requests)
		stack_errors_add(errors, line_of(stack, "requests"), "requests",
			"requests: %" PRIu32 " are too few, the peers need %" PRIu64
			"; set requests = %" PRIu64 ", or give the peers fewer",
			plan.nr_requests, need->requests, need->requests * 2);
}
