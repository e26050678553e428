/* events - a child is back from the store (object/events.h explains upcalls).
 *
 * Contract: inside its object, if it has one. Completes the child, and puts it.
 */
#ifndef PEERS_CACHED_STORE_EVENTS_H
#define PEERS_CACHED_STORE_EVENTS_H

#include <stdint.h>

struct child;
struct cport;

void child_done(struct cport *ps, struct child *ch, int64_t result);

#endif
