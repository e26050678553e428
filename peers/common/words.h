/* words - what the runtime keeps in a peer's own words of the segment (xseg_peer_user_set()), for
 * others to read.
 *
 *   PEER_WORD_STOPPING	1: it was asked to stop, and is going to. Its process writes it; if that
 *			dies, its successor clears it before it serves. It says nothing of a peer
 *			that is not alive
 *
 * Contract: any thread; one load.
 */
#ifndef PEERS_COMMON_WORDS_H
#define PEERS_COMMON_WORDS_H

#include "xseg/xseg.h"

enum peer_word { PEER_WORD_STOPPING };

static inline bool peer_word_stopping(const struct xseg_peer_info *info)
{
	return info->user[PEER_WORD_STOPPING] != 0;
}

#endif
