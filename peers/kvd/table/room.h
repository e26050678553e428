/* room - room in the index: deleted keys leave it before it is full of them.
 *
 * The entry of a deleted key stays for as long as the log has an older record of the key. Where
 * small values come and go, the index would be full of deleted keys long before the log is full of
 * records. So their records are compacted although there is space: in a pass of the log over all of
 * its zones (alog_pass_begin()).
 *
 * Contract: kvd's thread; the log serves.
 *
 * Invariants
 *   M1  A pass begins when an eighth or more of the index is of deleted keys. So it copies at most
 *       seven live records for each deleted key.
 *   M2  If two passes have freed no entry, none begins before more keys are deleted. Two are
 *       needed where a tombstone stands in one zone with an older record of its key.
 */
#ifndef PEERS_KVD_TABLE_ROOM_H
#define PEERS_KVD_TABLE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "peers/alog/alog.h"
#include "peers/kvd/table/index.h"

/* Zeroed at first. */
struct room {
	uint64_t tombstones;			/* when the last pass began */
	uint32_t vain;	/* passes that have begun since an entry was freed, or more were deleted */
};

void room_freed(struct room *m);		/* an entry has left the index */
/* Less than an eighth of the index is free. */
bool room_is_short(const struct index *ix);
/* A pass goes on, or begins now. Call it as long as room is wanted: it goes on by that. */
bool room_pass(struct room *m, const struct index *ix, struct alog *log);

#endif
