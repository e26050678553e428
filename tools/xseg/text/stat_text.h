/* stat_text - the statistics of a segment at two moments, as JSON and as tables.
 *
 * Contract: pure but for reading the segment in stat_take(). The output is the difference between
 * the older snapshot and the newer, or all that was ever counted if there is no older one.
 *
 * Invariants
 *   S1  A level (how much is dirty now) is shown as it is, a count as its difference.
 *   S2  A block that is new is shown whole. So is one that counts less than before (its subject was
 *       made anew).
 */
#ifndef TOOLS_XSEG_STAT_TEXT_H
#define TOOLS_XSEG_STAT_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "tools/xseg/base/view.h"

struct stat_snapshot {
	uint64_t at_ns;				/* monotonic */
	struct view_stats stats;
};

int stat_take(struct xseg *seg, struct stat_snapshot *snapshot) XSEG_MUST_CHECK;
void stat_drop(struct stat_snapshot *snapshot);

/* older may be NULL. Neither is changed. */
json_t *stat_json(const struct stat_snapshot *older, const struct stat_snapshot *newer);
/* Counts are shown per second when there is an older snapshot. narrow: for 80 columns. */
void stat_write(const struct stat_snapshot *older, const struct stat_snapshot *newer, bool narrow,
		FILE *out);

#endif
