/* events - upcalls from an object to the rooms above: it calls them by name when something happens.
 *
 * These are uses that point up. They are declared here, in the room that calls, and defined in
 * life/events.c, which sees all rooms. So the set of upcalls is known, and nothing is looked up at
 * run time.
 *
 * Contract: inside the object, by the thread that is.
 */
#ifndef PEERS_CACHED_OBJECT_EVENTS_H
#define PEERS_CACHED_OBJECT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct cached;
struct cport;
struct object;

/* It was asked to do something for itself: what, as bits of enum object_work. */
void object_asked(struct cport *ps, struct object *o, unsigned what);
/* A job in it has ended. */
void object_after(struct cport *ps, struct object *o);
/* It got its first bucket, or may have. */
void object_filled(struct cport *ps, struct object *o);
/* A bucket that had w was flushed. True: it has gone. */
bool bucket_flushed(struct cport *ps, struct object *o, uint32_t b, uint64_t w);
/* Outside of any object: its entry becomes free. */
void entry_freed(struct cached *k, struct object *o);

#endif
