/* events - upcalls from the memory to the rooms above (object/events.h explains upcalls).
 *
 * Contract: under mem_lock.
 */
#ifndef PEERS_CACHED_MEMORY_EVENTS_H
#define PEERS_CACHED_MEMORY_EVENTS_H

#include <stdint.h>

struct cached;

/* The record of the volume whose bucket the page is in; OTHERS: it is in none. */
uint32_t page_record(struct cached *k, uint32_t page);

#endif
