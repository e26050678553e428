/* view - see view.h. */
#include "tools/xseg/base/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/say/dirty.h"
#include "peers/common/say/words.h"
#include "peers/common/options/stack.h"
#include "tools/xseg/base/tool.h"

/* ---- peers ------------------------------------------------------------------------------- */

int view_peers_load(struct xseg *seg, struct view_peers *peers)
{
	uint32_t i, bound = xseg_nr_peers(seg);

	peers->seg = seg;
	peers->nr = 0;
	peers->info = calloc(bound ? bound : 1, sizeof(*peers->info));
	if (!peers->info)
		return -ENOMEM;
	for (i = 0; i < bound; i++)
		if (xseg_peer_get_info(seg, i, &peers->info[peers->nr]) &&
		    !view_peer_is_supervisor(&peers->info[peers->nr]))
			peers->nr++;
	return 0;
}

int view_peers_need(struct xseg *seg, struct view_peers *peers)
{
	if (view_peers_load(seg, peers))
		return tool_fail(TOOL_FAILED, "no memory for a list of peers; free some");
	return TOOL_DONE;
}

struct stack *view_stack(struct xseg *seg)
{
	struct stack *stack = stack_create();
	char *text = malloc(STACK_TEXT_BYTES);

	if (!stack || !text || !xseg_stack_get(seg, text, STACK_TEXT_BYTES) ||
		stack_parse(text, stack, NULL)) {
		stack_destroy(stack);
		stack = NULL;
	}
	free(text);
	return stack;
}

bool view_in_stack(struct xseg *seg, const char *name)
{
	struct stack *stack = view_stack(seg);
	bool is = stack && stack_find(stack, name) != STACK_NONE;

	stack_destroy(stack);
	return is;
}

bool view_is_failing(struct xseg *seg, const char *name)
{
	struct xseg_peer_info supervisor;
	struct stack *stack;
	uint64_t failing;
	uint32_t place;

	if (!view_supervisor(seg, &supervisor))
		return false;
	failing = supervisor.user[SUPERVISOR_WORD_FAILING];
	stack = failing ? view_stack(seg) : NULL;
	place = stack ? stack_find(stack, name) : STACK_NONE;
	stack_destroy(stack);
	return place != STACK_NONE && failing >> place & 1;
}

const char *view_failing_tell(const char *name, char text[VIEW_FAILING_TEXT])
{
	snprintf(text, VIEW_FAILING_TEXT,
		"%s: its process ends soon after each start, and is started again; the log says "
		"why",
		name);
	return text;
}

bool view_stranded(struct xseg *seg, const struct xseg_peer_info *peer,
		   struct xseg_peer_info *below)
{
	uint32_t next = peer->downstream, hops;

	for (hops = 0; next != XSEG_NONE && hops < xseg_nr_peers(seg); hops++) {
		if (!xseg_peer_get_info(seg, next, below))
			return false;
		if (!view_peer_alive(below))
			return xseg_peer_is_gone(seg, below) || !view_in_stack(seg, below->name);
		next = below->downstream;
	}
	return false;
}

const char *view_how_to_start(struct xseg *seg, const char *name, char buf[VIEW_START_MAX])
{
	if (view_is_failing(seg, name))
		snprintf(buf, VIEW_START_MAX, "see in the log of the stack why %s cannot run",
			name);
	else if (view_in_stack(seg, name))
		snprintf(buf, VIEW_START_MAX, "'xseg peer start %s' starts it", name);
	else
		snprintf(buf, VIEW_START_MAX,
			"it is not in the stack; start it as it was started before");
	return buf;
}

bool view_supervisor(struct xseg *seg, struct xseg_peer_info *info)
{
	uint32_t i;

	for (i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, info) && view_peer_is_supervisor(info) &&
		    view_peer_alive(info))
			return true;
	return false;
}

void view_peers_fini(struct view_peers *peers)
{
	free(peers->info);
	peers->info = NULL;
	peers->nr = 0;
}

const struct xseg_peer_info *view_peer_named(const struct view_peers *peers, const char *name)
{
	uint32_t i;

	for (i = 0; i < peers->nr; i++)
		if (!strcmp(peers->info[i].name, name))
			return &peers->info[i];
	return NULL;
}

const struct xseg_peer_info *view_peer_at(const struct view_peers *peers, uint32_t index)
{
	uint32_t i;

	for (i = 0; i < peers->nr; i++)
		if (peers->info[i].index == index)
			return &peers->info[i];
	return NULL;
}

const struct xseg_peer_info *view_peer_of_kind(const struct view_peers *peers, const char *kind,
					       const struct xseg_peer_info *after)
{
	uint32_t i = after ? (uint32_t)(after - peers->info) + 1 : 0;

	for (; i < peers->nr; i++)
		if (!strcmp(peers->info[i].kind, kind))
			return &peers->info[i];
	return NULL;
}

const struct xseg_peer_info *view_peer_meant(struct xseg *seg, const struct view_peers *peers,
					     const char *kind, bool *several)
{
	struct xseg_meant meant = { .nr = 0 };
	const struct xseg_peer_info *p = NULL;

	while ((p = view_peer_of_kind(peers, kind, p)))
		xseg_meant_add(seg, &meant, p);
	*several = meant.nr > 1;
	return meant.nr ? view_peer_named(peers, meant.info.name) : NULL;
}

/* Whether it is that peer or somewhere below it, for as far as routes go. */
static bool is_below(struct xseg *seg, const struct xseg_peer_info *p, uint32_t top)
{
	struct xseg_peer_info at = { .downstream = top };
	uint32_t hops;

	for (hops = xseg_nr_peers(seg); hops && at.downstream != p->index; hops--)
		if (!xseg_peer_get_info(seg, at.downstream, &at))
			return false;
	return hops;
}

const char *view_dirty_command(struct xseg *seg, uint32_t peer, char buf[VIEW_COMMAND_MAX])
{
	uint64_t dirty, most = 0;
	struct xseg_peer_info p;
	bool found = false;
	uint32_t i;

	snprintf(buf, VIEW_COMMAND_MAX, "xseg status");
	for (i = 0; i < xseg_nr_peers(seg); i++) {
		if (!xseg_peer_get_info(seg, i, &p) || strcmp(p.kind, "cached") ||
		    (peer != XSEG_NONE && !is_below(seg, &p, peer)))
			continue;
		dirty = dirty_bytes_of(seg, i);
		if (found && dirty <= most)
			continue;
		snprintf(buf, VIEW_COMMAND_MAX, "xseg cache status %s", p.name);
		found = true;
		most = dirty;
	}
	return buf;
}

bool view_peer_alive(const struct xseg_peer_info *p)
{
	return xseg_peer_is_up(p->state);
}

bool view_peer_is_client(const struct xseg_peer_info *p)
{
	return !strcmp(p->kind, "client");
}

bool view_peer_is_supervisor(const struct xseg_peer_info *p)
{
	return !strcmp(p->kind, "supervisor");
}

const char *view_state_name(enum xseg_peer_state state)
{
	static const char *const names[] = {
		[XSEG_PEER_FREE] = "free",    [XSEG_PEER_OPENING] = "opening",
		[XSEG_PEER_LIVE] = "running", [XSEG_PEER_STOPPED] = "stopped",
		[XSEG_PEER_DEAD] = "dead",
	};

	return names[state];
}

uint32_t view_peer_names(const struct view_peers *peers,
			 bool (*which)(const struct xseg_peer_info *p,
				       const struct xseg_peer_info *of),
			 const struct xseg_peer_info *of, char *out, size_t size)
{
	uint32_t i, nr = 0;
	size_t used = 0;

	out[0] = '\0';
	for (i = 0; i < peers->nr; i++) {
		if (!which(&peers->info[i], of))
			continue;
		nr++;
		if (used < size)
			used += (size_t)snprintf(out + used, size - used, "%s %s",
						 used ? "," : "", peers->info[i].name);
	}
	return nr;
}

bool view_sends_to(const struct xseg_peer_info *p, const struct xseg_peer_info *of)
{
	return p->index != of->index && p->downstream == of->index && view_peer_alive(p);
}

bool view_shares_process(const struct xseg_peer_info *p, const struct xseg_peer_info *of)
{
	return p->index != of->index && p->member == of->member && !view_peer_is_client(p) &&
	       view_peer_alive(p) && view_peer_alive(of);
}

/* ---- statistics -------------------------------------------------------------------------- */

uint64_t view_connections(struct xseg *seg, uint32_t peer)
{
	struct xseg_stats_view *block = malloc(sizeof(*block));
	uint64_t nr = 0;

	for (uint32_t i = 0; block && i < xseg_nr_stats(seg); i++)
		if (xseg_stats_view(seg, i, block) && block->peer == peer)
			nr += xseg_stats_value(block, "curr_connections");
	free(block);
	return nr;
}

static void sum_into(struct xseg_stats_view *to, const struct xseg_stats_view *from)
{
	uint32_t i, j;

	for (i = 0; i < from->nr; i++)
		for (j = 0; j < to->nr; j++)
			if (!strcmp(from->key[i], to->key[j])) {
				to->value[j] += from->value[i];
				break;
			}
	xhist_merge(&to->lat, &from->lat);
}

bool view_stats_is_volume(const struct xseg_stats_view *block)
{
	return !strcmp(block->kind, "volume");
}

/* peer: whose volume it is; of other kinds there is one of a name. */
static struct xseg_stats_view *find_block(const struct view_stats *stats, const char *kind,
					  const char *name, uint32_t peer)
{
	struct xseg_stats_view *b = stats->block;

	for (; b < stats->block + stats->nr; b++)
		if (!strcmp(b->kind, kind) && !strcmp(b->name, name) &&
		    (!view_stats_is_volume(b) || b->peer == peer))
			return b;
	return NULL;
}

static void add_key(struct xseg_stats_view *b, const char *key, uint64_t value)
{
	if (b->nr == XSEG_STATS_MAX)
		return;
	snprintf(b->key[b->nr], sizeof(b->key[b->nr]), "%s", key);
	b->value[b->nr++] = value;
}

/* What was read in a cache's tables, past its queues: its peer has that. */
static void add_direct(struct xseg *seg, struct xseg_stats_view *b)
{
	struct xseg_peer_info info;

	if (strcmp(b->kind, "cache") || !xseg_peer_get_info(seg, b->peer, &info))
		return;
	add_key(b, "direct_reads", info.direct_reads);
	add_key(b, "direct_bytes", info.direct_bytes);
}

/* The name of its peer, which outlives each of its processes. */
static void name_volumed(struct xseg *seg, struct view_stats *stats, uint32_t i)
{
	struct xseg_peer_info info;

	if (view_stats_is_volume(&stats->block[i]) &&
	    xseg_peer_get_info(seg, stats->block[i].peer, &info))
		snprintf(stats->volumed[i], sizeof(stats->volumed[i]), "%s", info.name);
}

int view_stats_load(struct xseg *seg, struct view_stats *stats)
{
	uint32_t i, bound = xseg_nr_stats(seg);
	struct xseg_stats_view *next, *same;

	stats->nr = 0;
	stats->block = calloc(bound ? bound : 1, sizeof(*stats->block));
	stats->volumed = calloc(bound ? bound : 1, sizeof(*stats->volumed));
	if (!stats->block || !stats->volumed)
		return -ENOMEM;
	for (i = 0; i < bound; i++) {
		next = &stats->block[stats->nr];
		if (!xseg_stats_view(seg, i, next))
			continue;
		same = find_block(stats, next->kind, next->name, next->peer);
		if (same)
			sum_into(same, next);
		else
			stats->nr++;
	}
	for (i = 0; i < stats->nr; i++) {
		add_direct(seg, &stats->block[i]);
		name_volumed(seg, stats, i);
	}
	return 0;
}

void view_stats_fini(struct view_stats *stats)
{
	free(stats->block);
	free(stats->volumed);
	stats->block = NULL;
	stats->volumed = NULL;
	stats->nr = 0;
}

const struct xseg_stats_view *view_stats_find(const struct view_stats *stats, const char *kind,
					      const char *name)
{
	return find_block(stats, kind, name, XSEG_NONE);
}

const struct xseg_stats_view *view_stats_same(const struct view_stats *stats,
					      const struct xseg_stats_view *block)
{
	return find_block(stats, block->kind, block->name, block->peer);
}
