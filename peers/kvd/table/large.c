/* large - see large.h.
 *
 * Runs stand in two hash tables with chains: by the first zone, and by the identity of the record
 * that names them. The number of a handle is its slot and a count, so its slot is found at once.
 */
#include "peers/kvd/table/large.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH 0x9e3779b97f4a7c15ull

static uint32_t heads(uint32_t runs)
{
	uint32_t n = 16;

	while (n < runs)
		n *= 2;
	return n;
}

uint64_t large_bytes(uint32_t runs)
{
	return runs * sizeof(struct large_run) + 2ull * heads(runs) * sizeof(uint32_t);
}

int large_open(struct large *l, uint32_t runs, uint32_t zone_bytes, struct large_arena *arena)
{
	uint32_t n = heads(runs), piece = zone_bytes < KV_PIECE_BYTES ? zone_bytes : KV_PIECE_BYTES;

	*l = (struct large){ .nr = runs, .mask = n - 1, .arena = arena, .piece_bytes = piece,
		.zone_bytes = zone_bytes / piece * piece };
	l->run = calloc(runs, sizeof(*l->run));
	l->by_first = malloc(n * sizeof(*l->by_first));
	l->by_id = malloc(n * sizeof(*l->by_id));
	return l->run && l->by_first && l->by_id ? 0 : -ENOMEM;
}

void large_close(struct large *l)
{
	free(l->run);
	free(l->by_first);
	free(l->by_id);
	*l = (struct large){ .nr = 0 };
}

void large_begin(struct large *l)
{
	memset(l->by_first, 0xff, (l->mask + 1) * sizeof(*l->by_first));
	memset(l->by_id, 0xff, (l->mask + 1) * sizeof(*l->by_id));
	memset(l->of_handle, 0, sizeof(l->of_handle));
	l->free = l->leaving = LARGE_NONE;
	for (uint32_t i = l->nr; i-- > 0;) {
		l->run[i] = (struct large_run){ .next_first = l->free };
		l->free = i;
	}
	l->named = l->named_bytes = 0;
	l->nr_handles = l->turn = 0;
	l->kept = false;
}

/* ---- where a value lies ---- */

uint64_t large_pieces(const struct large *l, uint64_t bytes)
{
	return (bytes + l->piece_bytes - 1) / l->piece_bytes;
}

uint64_t large_zones(const struct large *l, uint64_t bytes)
{
	return (bytes + l->zone_bytes - 1) / l->zone_bytes;
}

uint64_t large_at(const struct large *l, const struct large_run *run, uint64_t offset,
	uint32_t *place)
{
	*place = (uint32_t)(offset % l->zone_bytes);
	return run->first + offset / l->zone_bytes;
}

bool large_ok(const struct large *l, const void *value, uint32_t bytes, struct kv_large *of)
{
	if (bytes < sizeof(*of))
		return false;
	memcpy(of, value, sizeof(*of));
	return of->bytes && of->bytes <= KV_VALUE_MAX && of->piece_bytes == l->piece_bytes &&
	       of->nr_pieces == large_pieces(l, of->bytes) &&
	       of->nr_zones == large_zones(l, of->bytes) &&
	       (bytes - sizeof(*of)) / sizeof(uint32_t) == of->nr_pieces;
}

/* ---- runs ---- */

static uint32_t *chain_of_first(struct large *l, uint64_t first)
{
	return &l->by_first[(first * HASH >> 32) & l->mask];
}

static uint32_t *chain_of_id(struct large *l, const uint64_t id[2])
{
	return &l->by_id[(id[0] * HASH >> 32) & l->mask];
}

/* The index keeps 16 bits of the second word. */
static bool is_id(const struct large_run *run, const uint64_t id[2])
{
	return run->id[0] == id[0] && (uint16_t)run->id[1] == (uint16_t)id[1];
}

struct large_run *large_by_first(struct large *l, uint64_t first)
{
	for (uint32_t i = *chain_of_first(l, first); i != LARGE_NONE; i = l->run[i].next_first)
		if (l->run[i].first == first)
			return &l->run[i];
	return NULL;
}

struct large_run *large_by_id(struct large *l, const uint64_t id[2])
{
	for (uint32_t i = *chain_of_id(l, id); i != LARGE_NONE; i = l->run[i].next_id)
		if (is_id(&l->run[i], id))
			return &l->run[i];
	return NULL;
}

struct large_run *large_add(struct large *l, uint64_t first, uint32_t ids, enum large_state state)
{
	struct large_run *run = l->free == LARGE_NONE ? NULL : &l->run[l->free];
	uint32_t *chain = chain_of_first(l, first);

	if (!run || large_by_first(l, first))
		return NULL;
	l->free = run->next_first;
	*run = (struct large_run){ .first = first, .ids = ids, .zones = ids,
		.next_first = *chain, .next_id = LARGE_NONE, .state = (uint8_t)state };
	*chain = (uint32_t)(run - l->run);
	return run;
}

void large_name(struct large *l, struct large_run *run, const uint64_t id[2])
{
	uint32_t *chain = chain_of_id(l, id);

	assert(run->state == LARGE_UPLOAD && !large_by_id(l, id));
	run->state = LARGE_NAMED;
	run->id[0] = id[0];
	run->id[1] = id[1];
	run->next_id = *chain;
	*chain = (uint32_t)(run - l->run);
	l->named++;
	l->named_bytes += run->bytes;
}

/* G1 */
static void leave_if_free(struct large *l, struct large_run *run)
{
	if (run->state != LARGE_GONE || run->holds)
		return;
	run->next_id = l->leaving;
	l->leaving = (uint32_t)(run - l->run);
}

static void be_gone(struct large *l, struct large_run *run)
{
	run->state = LARGE_GONE;
	leave_if_free(l, run);
}

void large_hold(struct large_run *run)
{
	run->holds++;
}

void large_let_go(struct large *l, struct large_run *run)
{
	assert(run->holds);
	run->holds--;
	leave_if_free(l, run);
}

void large_gone(struct large *l, const uint64_t id[2])
{
	struct large_run *run = large_by_id(l, id);
	uint32_t *link = chain_of_id(l, id);

	if (!run)
		return;
	while (&l->run[*link] != run)
		link = &l->run[*link].next_id;
	*link = run->next_id;
	l->named--;
	l->named_bytes -= run->bytes;
	be_gone(l, run);
}

void large_clear(struct large *l)
{
	for (uint32_t i = 0; i < l->nr && l->named; i++) {
		if (l->run[i].state != LARGE_NAMED)
			continue;
		l->named--;
		be_gone(l, &l->run[i]);
	}
	l->named_bytes = 0;
	memset(l->by_id, 0xff, ((size_t)l->mask + 1) * sizeof(*l->by_id));
}

struct large_run *large_leaving(struct large *l)
{
	return l->kept || l->leaving == LARGE_NONE ? NULL : &l->run[l->leaving];
}

bool large_may_leave(const struct large *l)
{
	return l->leaving != LARGE_NONE;
}

void large_freed(struct large *l, struct large_run *run)
{
	uint32_t *link = chain_of_first(l, run->first);

	assert(run == large_leaving(l) && !run->holds);
	l->leaving = run->next_id;
	while (&l->run[*link] != run)
		link = &l->run[*link].next_first;
	*link = run->next_first;
	*run = (struct large_run){ .next_first = l->free };
	l->free = (uint32_t)(run - l->run);
}

struct large_run *large_victim(struct large *l)
{
	for (uint32_t i = 0; i < 2 * l->nr && l->named; i++) {
		struct large_run *run = &l->run[l->turn++ % l->nr];

		if (run->state != LARGE_NAMED || run->holds)
			continue;
		if (!run->hit)
			return run;
		run->hit = false;
	}
	return NULL;
}

struct large_run *large_expired(struct large *l, uint64_t time_s)
{
	for (uint32_t i = 0; i < l->nr && l->named; i++)
		if (l->run[i].state == LARGE_NAMED && l->run[i].expiry &&
			l->run[i].expiry <= time_s)
			return &l->run[i];
	return NULL;
}

uint32_t large_next_expiry(const struct large *l)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < l->nr && l->named; i++)
		if (l->run[i].state == LARGE_NAMED && l->run[i].expiry &&
			(!next || l->run[i].expiry < next))
			next = l->run[i].expiry;
	return next;
}

/* ---- handles ---- */

static uint64_t number_in(const struct large_handle *h)
{
	return atomic_load_explicit(&h->number, memory_order_relaxed);
}

static uint64_t slot_of(uint64_t number)
{
	return number % (LARGE_HANDLES + 1);
}

static struct large_handle *find(struct large *l, uint64_t number)
{
	uint64_t slot = slot_of(number);

	return number && slot < LARGE_HANDLES && number_in(&l->arena->handle[slot]) == number
		       ? &l->arena->handle[slot] : NULL;
}

uint64_t large_number(struct large *l, uint64_t sender)
{
	uint64_t next = atomic_load_explicit(&l->arena->next, memory_order_relaxed) + 1;
	uint32_t free = LARGE_NONE, nr = 0;

	for (uint32_t i = 0; i < LARGE_HANDLES; i++) {
		if (!number_in(&l->arena->handle[i]))
			free = i;
		else
			nr += l->arena->handle[i].sender == sender;
	}
	if (free == LARGE_NONE || nr >= KV_HANDLES_MAX)
		return 0;
	atomic_store_explicit(&l->arena->next, next, memory_order_release);
	return next * (LARGE_HANDLES + 1) + free;
}

void large_take(struct large *l, uint64_t number, enum large_kind kind, uint64_t sender,
	struct large_run *run, uint64_t bytes)
{
	struct large_handle *h = &l->arena->handle[slot_of(number)];

	h->sender = sender;
	h->first = run->first;
	h->bytes = bytes;
	h->version = run->version;
	h->ids = run->ids;
	h->kind = (uint8_t)kind;
	atomic_store_explicit(&h->failed, 0, memory_order_relaxed);
	atomic_store_explicit(&h->zones, run->zones, memory_order_relaxed);
	/* G2; release: its partner is the kernel, from which a successor learns of the death */
	atomic_store_explicit(&h->number, number, memory_order_release);
	l->of_handle[slot_of(number)] = run;
	l->nr_handles++;
	if (kind == LARGE_READS)
		large_hold(run);
}

/* G5 */
void large_fail(struct large *l, uint64_t number)
{
	struct large_handle *h = find(l, number);

	if (h)
		atomic_store_explicit(&h->failed, 1, memory_order_release);
}

void large_fail_writers(struct large *l)
{
	for (uint32_t i = 0; i < LARGE_HANDLES && l->nr_handles; i++)
		large_fail(l, number_in(&l->arena->handle[i]));
}

bool large_failed(struct large *l, uint64_t number)
{
	const struct large_handle *h = find(l, number);

	return h && atomic_load_explicit(&h->failed, memory_order_relaxed);
}

bool large_is_handle(const struct large *l, uint32_t slot)
{
	const struct large_handle *h = &l->arena->handle[slot];

	return number_in(h) && slot_of(number_in(h)) == slot && h->ids &&
	       atomic_load_explicit(&h->zones, memory_order_relaxed) <= h->ids &&
	       (h->kind == LARGE_WRITES || h->kind == LARGE_READS);
}

void large_adopt(struct large *l, uint32_t slot, struct large_run *run)
{
	l->of_handle[slot] = run;
	l->nr_handles++;
	if (l->arena->handle[slot].kind == LARGE_READS)
		large_hold(run);
}

struct large_run *large_run_of(struct large *l, uint64_t number, enum large_kind kind)
{
	const struct large_handle *h = find(l, number);

	return h && h->kind == kind ? l->of_handle[slot_of(number)] : NULL;
}

void large_grow(struct large *l, uint64_t number, uint32_t zones)
{
	l->of_handle[slot_of(number)]->zones = zones;
	atomic_store_explicit(
		&l->arena->handle[slot_of(number)].zones, zones, memory_order_release);
}

void large_forget(struct large *l, uint64_t number)
{
	struct large_handle *h = find(l, number);

	atomic_store_explicit(&h->number, 0, memory_order_release);
	l->nr_handles -= l->of_handle[slot_of(number)] != NULL;
	l->of_handle[slot_of(number)] = NULL;
}

void large_forget_writers(struct large *l)
{
	for (uint32_t i = 0; i < LARGE_HANDLES; i++)
		if (number_in(&l->arena->handle[i]) && l->arena->handle[i].kind == LARGE_WRITES)
			large_forget(l, number_in(&l->arena->handle[i]));
}

bool large_drop(struct large *l, uint64_t number)
{
	struct large_handle *h = find(l, number);
	struct large_run *run = h ? l->of_handle[slot_of(number)] : NULL;

	if (!run)
		return false;
	if (h->kind == LARGE_WRITES)
		be_gone(l, run);
	else
		large_let_go(l, run);
	large_forget(l, number);
	return true;
}

bool large_look(struct large *l, struct xseg *seg)
{
	for (uint32_t i = 0; i < LARGE_HANDLES && l->nr_handles; i++) {
		const struct large_handle *h = &l->arena->handle[i];

		if (number_in(h) && !xseg_sender_serves(seg, h->sender))
			large_drop(l, number_in(h));
	}
	return l->nr_handles != 0;
}
