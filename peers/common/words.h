/* words - what the runtime keeps in a peer's own words of the segment (xseg_peer_user_set()), for
 * others to read.
 *
 *   PEER_WORD_STOPPING	1: it was asked to stop, and is going to. Its process writes it; if that
 *			dies, its successor clears it before it serves. Of a stopped one: 0: it
 *			could not begin, and nobody has asked it to stop. It says nothing of one
 *			that is dead. Of a supervisor: it is stopping the whole stack
 *   PEER_WORD_UNSYNCED	of a store: bytes that are not stable, as a sync of them has failed; 0:
 * 			none. What it was when its process ended holds until a successor has counted
 * 			anew
 *
 * Contract: any thread; one load.
 */
#ifndef PEERS_COMMON_WORDS_H
#define PEERS_COMMON_WORDS_H

#include "xseg/xseg.h"

/* behind these are the kind's own */
enum peer_word { PEER_WORD_STOPPING, PEER_WORD_UNSYNCED, PEER_NR_WORDS };

static inline bool peer_word_stopping(const struct xseg_peer_info *info)
{
	return info->user[PEER_WORD_STOPPING] != 0;
}

static inline uint64_t peer_word_unsynced(const struct xseg_peer_info *info)
{
	return info->user[PEER_WORD_UNSYNCED];
}

#endif
