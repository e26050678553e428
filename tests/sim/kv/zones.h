/* zones - see zones.c. */
#ifndef TESTS_SIM_KV_ZONES_H
#define TESTS_SIM_KV_ZONES_H

#include "peers/alog/alog.h"

/* All of the zone is below, and it is opened by its hints whenever kvd is killed. Where these
 * are. */
bool zone_is_known(struct alog *l, uint64_t zone, uint32_t *hints_at);

#endif
