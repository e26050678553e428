/* events - upcalls from a volume's record to the rooms above (object/events.h explains upcalls).
 *
 * Contract: under volume_lock.
 */
#ifndef PEERS_CACHED_VOLUME_EVENTS_H
#define PEERS_CACHED_VOLUME_EVENTS_H

#include <stdint.h>

struct cached;

/* It is taken from its volume. */
void record_cleared(struct cached *k, uint32_t rec);
/* Its settings are gone. */
void settings_dropped(struct cached *k, uint32_t rec);

#endif
