/* pace - how soon a process that died is started again: after 0.1 s, doubling to 5 s, until it has
 * lived for a second.
 *
 * Contract: pure.
 */
#ifndef PEERS_HOST_PACE_H
#define PEERS_HOST_PACE_H

#include <stdint.h>

#define PACE_MIN_MS 100u
#define PACE_MAX_MS 5000u
/* a life as long as this was a good one: a kill now and then is a pause of 0.1 s */
#define PACE_LIVED_MS 1000u

/* last: of the time before; 0: there was none. */
static inline uint32_t pace_next(uint32_t last_ms, uint64_t lived_ms)
{
	if (!last_ms || lived_ms >= PACE_LIVED_MS)
		return PACE_MIN_MS;
	return last_ms * 2 < PACE_MAX_MS ? last_ms * 2 : PACE_MAX_MS;
}

#endif
