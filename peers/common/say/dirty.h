/* dirty - the amount of data that is newer than the store, as the segment says it, whether its
 * cache, or its kvd, lives or not.
 *
 * Contract: any attachment, any thread. It reads the counters of caches and of kvds. A write raises
 * its counter before it is answered, and a successor leaves the counter alone until it has counted
 * anew. So 0 of a dead cache means that nothing would be lost with it.
 */
#ifndef PEERS_COMMON_DIRTY_H
#define PEERS_COMMON_DIRTY_H

#include "xseg/xseg.h"

/* Of that peer (XSEG_NONE: of all), in bytes. UINT64_MAX where there is no memory to look. */
uint64_t dirty_bytes_of(struct xseg *seg, uint32_t peer);
/* How much caches have written to the peers below since they were made; a number that grows says
 * that the store takes data. */
uint64_t flushed_bytes_of(struct xseg *seg, uint32_t peer);
/* The same of data of writes that were answered with an error, which is kept as long as there is
 * room. */
uint64_t unpromised_bytes_of(struct xseg *seg, uint32_t peer);

#endif
