/* piece - the data of a request as a blocker passes it on: in pieces, each contiguous in memory.
 *
 * Pages that lie side by side in the segment make one piece. Bytes and pages are aligned as the
 * object is, by obj_offset.
 *
 * Contract: any thread, about a request that is its caller's. Nothing blocks or allocates.
 */
#ifndef PEERS_COMMON_PIECE_H
#define PEERS_COMMON_PIECE_H

#include "xseg/xseg.h"

/* Bytes from .. from + len - 1 of the request. Begun as { .from = F }: before the one that begins
 * there. */
struct piece {
	uint8_t *data;
	uint32_t from, len;
};

/* The piece behind this one; none goes beyond byte end - 1 of the request. False: there is none. */
bool piece_next(struct xseg *seg, const struct xreq *r, uint32_t end, struct piece *p);

#endif
