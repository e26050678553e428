/* wiring - where each room's part is in the cache, and in a port's side (bucket/cport.h).
 *
 * The accessors are plain functions, which the linker turns into additions. If the rooms saw struct
 * cached they would soon use all of it.
 */
#include "peers/cached/life/cached.h"

_Static_assert(offsetof(struct cached, peer) == 0, "cached_of() casts");
_Static_assert(offsetof(struct cport_rooms, base) == 0, "whole_port() casts");

/* A part is changed by whom its room lets, also where a caller changes nothing. */
static struct cached *whole(const struct cached *k) { return (struct cached *)(uintptr_t)k; }
static struct cport_rooms *whole_port(const struct cport *ps)
{
	return (struct cport_rooms *)(uintptr_t)ps;
}

struct cached *cached_of(struct peer *p) { return (struct cached *)p; }
struct peer *peer_of(const struct cached *k) { return &whole(k)->peer; }
struct streams *streams_of(const struct cached *k) { return &whole(k)->streams; }
struct cport *cport_at(const struct cached *k, uint32_t port)
{
	return &whole(k)->ports[port].base;
}

#define ROOM(name, type)                                                                           \
	struct type *name##_of(const struct cached *k) { return &whole(k)->name; }
ROOM(options, cached_options)
ROOM(memory, memory_room)
ROOM(object, object_room)
ROOM(volume, volume_room)
ROOM(store, store_room)
ROOM(lend, lend_room)
ROOM(flush, flush_room)
ROOM(evict, evict_room)
ROOM(policy, policy_room)
ROOM(request, request_room)
ROOM(life, life_room)
ROOM(admin, admin_room)

#define PORT(name)                                                                                 \
	struct name##_port *name##_port(const struct cport *ps) { return &whole_port(ps)->name; }
PORT(memory)
PORT(object)
PORT(volume)
PORT(store)
PORT(lend)
PORT(flush)
PORT(request)
PORT(life)
