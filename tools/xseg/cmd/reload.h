/* reload - what the files of `xseg reload` share: reload_cmd.c has the order of the steps, and
 * reload_steps.c those that change routes, rights and incarnations.
 *
 * Contract: as commands.h.
 */
#ifndef TOOLS_XSEG_RELOAD_H
#define TOOLS_XSEG_RELOAD_H

#include "tools/xseg/flow/launch.h"
#include "tools/xseg/flow/stack_diff.h"

struct reloading {
	struct tool *t;
	struct xseg *seg;
	struct stack_record *record, *before;
	struct stack_file *file;
	struct stack_diff *d;
	int lock;				/* stack_lock.h; -1: none */
};

#define RELOAD "reload"

/* Whether a peer is to be replaced at all. */
bool reload_replaces(const struct reloading *r);
/* Refuses what would harm the users of a peer that goes, or gets other data. */
int reload_check(struct reloading *r);
/* Has all caches flush, if some peers are to be replaced: the rest of that is quick then. */
int reload_flush(struct reloading *r);
/* The mode and the group of the segment. */
bool reload_changes_rights(const struct reloading *r);
int reload_rights(struct reloading *r);
/* Ends the servers of exports that the file does not have. */
int reload_end_exports(struct reloading *r);
int reload_unplug(struct reloading *r);
/* Refuses if a peer is another incarnation than the one that is to be replaced. */
int reload_check_same(struct reloading *r);
/* Waits until the supervisor has replaced all that was to be. */
int reload_wait_replaced(struct reloading *r, struct launch *launch);
int reload_plug(struct reloading *r);
/* Whether those that were replaced send where the file says: one that died meanwhile does not. */
int reload_verify(struct reloading *r);

#endif
