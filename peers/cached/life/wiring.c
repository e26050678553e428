/* wiring - where each room's part is in the cache, and in a port's side (bucket/cport.h).
 *
 * The accessors are plain functions, which the linker turns into additions. A room that could see
 * struct cached would soon use all of it.
 */
#include "peers/cached/life/cached.h"

_Static_assert(offsetof(struct cached, base) == 0, "base_of() casts");
_Static_assert(offsetof(struct cached_base, peer) == 0, "cached_of() casts");
_Static_assert(offsetof(struct cport_rooms, base) == 0, "whole_port() casts");

const size_t cport_first = offsetof(struct cached, ports);
const size_t cport_stride = sizeof(struct cport_rooms);

/* Not const, as in base_of(). */
static struct cached *whole(const struct cached *k) { return (struct cached *)(uintptr_t)k; }
static struct cport_rooms *whole_port(const struct cport *ps)
{
	return (struct cport_rooms *)(uintptr_t)ps;
}

#define ROOM(name, type)                                                                           \
	struct type *name##_of(const struct cached *k) { return &whole(k)->name; }
ROOM(memory, memory_room)
ROOM(object, object_room)
ROOM(volume, volume_room)
ROOM(store, store_room)
ROOM(lend, lend_room)
ROOM(flush, flush_room)
ROOM(evict, evict_room)
ROOM(policy, policy_room)
ROOM(creq, creq_room)
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
