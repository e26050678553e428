/* kinds - the kinds of peers that this program was built with.
 *
 * Contract: constant; nothing blocks.
 */
#ifndef PEERS_HOST_KINDS_H
#define PEERS_HOST_KINDS_H

#include "peers/common/runtime/peer.h"

extern const struct peer_class *const kinds[];		/* ended by NULL */

/* NULL: this build has none of that name. */
const struct peer_class *kinds_find(const char *kind);

#endif
