/* view - the contents of a segment as an observer sees them: its peers and its blocks of
 * statistics.
 *
 * The supervisor is listed in a segment as a peer, too. Here it is not one of the peers.
 *
 * Contract: snapshots in private memory. All functions only read the segment, so an observer may
 * use them. A snapshot may be old by the time it is printed. Free with view_*_fini(), also after an
 * error.
 */
#ifndef TOOLS_XSEG_VIEW_H
#define TOOLS_XSEG_VIEW_H

#include "xseg/xseg.h"

struct view_peers {
	struct xseg *seg;			/* the caller's */
	uint32_t nr;
	/* by index in the segment; free slots are left out */
	struct xseg_peer_info *info;
};

struct view_stats {
	uint32_t nr;
	/* those of one name and kind are summed; of volumes, if they are of one volumed */
	struct xseg_stats_view *block;
	char (*volumed)[XSEG_NAME_MAX];		/* of each that is a volume's, else "" */
};

int view_peers_load(struct xseg *seg, struct view_peers *peers) XSEG_MUST_CHECK;
/* The same for a command that cannot do without: says so, and returns its exit code. */
int view_peers_need(struct xseg *seg, struct view_peers *peers) XSEG_MUST_CHECK;
void view_peers_fini(struct view_peers *peers);
const struct xseg_peer_info *view_peer_named(const struct view_peers *peers, const char *name);
const struct xseg_peer_info *view_peer_at(const struct view_peers *peers, uint32_t index);
/* The next of that kind after `after` (NULL: the first). */
const struct xseg_peer_info *view_peer_of_kind(const struct view_peers *peers, const char *kind,
					       const struct xseg_peer_info *after);
/* The one of that kind that is meant where none is named, or NULL. *several: more may be, and which
 * is returned says nothing. */
const struct xseg_peer_info *view_peer_meant(struct xseg *seg, const struct view_peers *peers,
					     const char *kind, bool *several);

/* Writes which command shows what is dirty at a peer and below it (XSEG_NONE: anywhere): the status
 * of the cache there that has most, or of the whole stack where there is none. Returns buf. */
#define VIEW_COMMAND_MAX (XSEG_NAME_MAX + 32)
const char *view_dirty_command(struct xseg *seg, uint32_t peer, char buf[VIEW_COMMAND_MAX]);

/* The stack that is kept in the segment, or NULL: there is none, it has errors, or no memory. Free
 * with stack_destroy(). */
struct stack;
struct stack *view_stack(struct xseg *seg);
/* Whether the stack of the segment has it: nothing else is started by its supervisor, or by
 * 'xseg peer start'. */
bool view_in_stack(struct xseg *seg, const char *name);
/* Whether the supervisor starts it again and again, as its process ends soon after each start. */
bool view_is_failing(struct xseg *seg, const char *name);
/* Writes that line of such a peer. Returns text. */
#define VIEW_FAILING_TEXT (XSEG_NAME_MAX + 100)
const char *view_failing_tell(const char *name, char text[VIEW_FAILING_TEXT]);
/* Whether something below the peer is not alive, and nobody starts it again: *below is that. What
 * needs it waits for ever, unless somebody starts it. */
bool view_stranded(struct xseg *seg, const struct xseg_peer_info *peer,
		   struct xseg_peer_info *below);
/* Writes what starts a peer that nobody starts, as the half of a sentence. Returns buf. */
#define VIEW_START_MAX (XSEG_NAME_MAX + 64)
const char *view_how_to_start(struct xseg *seg, const char *name, char buf[VIEW_START_MAX]);

/* How many clients are connected to a gateway; 0 for other peers. */
uint64_t view_connections(struct xseg *seg, uint32_t peer);

/* The supervisor's entry, while it is alive. */
bool view_supervisor(struct xseg *seg, struct xseg_peer_info *info);

bool view_peer_alive(const struct xseg_peer_info *p);	/* opening or live: it has a process */
bool view_peer_is_client(const struct xseg_peer_info *p);
bool view_peer_is_supervisor(const struct xseg_peer_info *p);
const char *view_state_name(enum xseg_peer_state state);

/* Writes " NAME, NAME" of each peer for which which() is true; returns how many there are. */
uint32_t view_peer_names(const struct view_peers *peers,
			 bool (*which)(const struct xseg_peer_info *p,
				       const struct xseg_peer_info *of),
			 const struct xseg_peer_info *of, char *out, size_t size);
/* For view_peer_names(): other peers that are alive and send to `of`; that live in the process of
 * `of`, but its own clients. */
bool view_sends_to(const struct xseg_peer_info *p, const struct xseg_peer_info *of);
bool view_shares_process(const struct xseg_peer_info *p, const struct xseg_peer_info *of);

int view_stats_load(struct xseg *seg, struct view_stats *stats) XSEG_MUST_CHECK;
void view_stats_fini(struct view_stats *stats);
/* No volume's. */
const struct xseg_stats_view *view_stats_find(const struct view_stats *stats, const char *kind,
					      const char *name);
/* What it has of what `block` is about. */
const struct xseg_stats_view *view_stats_same(const struct view_stats *stats,
					      const struct xseg_stats_view *block);
bool view_stats_is_volume(const struct xseg_stats_view *block);

#endif
